/* diff.h - one program against itself: every order of passes must leave the same bytes. */
#ifndef FUZZ_DIFF_H
#define FUZZ_DIFF_H

#include "fuzz/gen.h"

struct diff_failure {
    char what[4096];  /* one line, "" for none */
    char letters[64]; /* passes that were run, for a reader */
    struct buf *text; /* null, or receives the module that fails, as text */
};

/* Whether a program holds what it must: verified, the same after print and parse, and the same results however the passes
 * are run. `m` is the program's module, or a changed one with the same parameters; `seed` decides the random orders. */
bool diff_check(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                struct diff_failure *f);

/* A smaller module that still fails; the caller owns it. */
struct ir_module *diff_reduce(struct mem *mem, const struct gen_program *p, uint64_t seed, struct diff_failure *f);

/* The offset of the first leaf of two values of type `t` that differs, NaNs counting as one; -1: none. */
int64_t diff_value(const struct ir_module *m, ir_type t, const char *a, const char *b);

/* Non-zero stops a launch that does not end. */
extern volatile int diff_stop;

#endif
