/* diff.h - one program against itself: every order of passes must leave the same bytes. */
#ifndef FUZZ_DIFF_H
#define FUZZ_DIFF_H

#include "fuzz/gen.h"
#include "llvm/llvm.h"

struct diff_failure {
    char what[4096];   /* one line, "" for none */
    char letters[256]; /* passes that were run and how, for a reader */
    int way;           /* on the CPU device, from 0; -1: not there */
    struct buf *text;  /* null, or receives the module that fails, as text */
};

/* Whether a program holds what it must: verified, the same after print and parse, and the same results however the passes
 * are run. `m` is the program's module, or a changed one with the same parameters; `seed` decides the random orders. */
bool diff_check(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                struct diff_failure *f);

/* The same; with diff_fork set in a process of its own, whose crash is a failure. It has `seconds` to do it. */
bool diff_check_apart(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                      unsigned seconds, struct diff_failure *f);
extern bool diff_fork;

/* A smaller module that still fails; the caller owns it. */
struct ir_module *diff_reduce(struct mem *mem, const struct gen_program *p, uint64_t seed, struct diff_failure *f);

/* The offset of the first leaf of two values of type `t` that differs, NaNs counting as one; -1: none. */
int64_t diff_value(const struct ir_module *m, ir_type t, const char *a, const char *b);

/* The same results on the CPU device as in the interpreter? `inlined`: the program's module without calls. The seed decides
 * passes and how the code is made. */
bool diff_cpu(struct mem *mem, const struct gen_program *p, const struct ir_module *inlined, uint64_t seed,
              unsigned ways, struct diff_failure *f);
extern struct llvm *diff_llvm; /* null: nothing is run on the CPU device */
extern unsigned diff_ways;     /* on the CPU device, each program */
extern bool diff_only_cpu;     /* passes are not checked */
extern int diff_one_way;       /* nothing is checked but this way on the CPU device; -1: all is */

/* Non-zero stops a launch that does not end. */
extern volatile int diff_stop;

#endif
