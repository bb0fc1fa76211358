/* llvm.h - LLVM's shared library, opened at run time. The only folder that knows LLVM.
 *
 * Only functions of LLVM's C interface are used, from one table (symbols.def). LLVM 19 and 22 are tested, others from 16 up
 * are tried. Everything LLVM does happens on a thread of its own with a large stack, in a context of its own: a fatal error
 * inside ends that thread's work, not the process, and is reported as an error.
 */
#ifndef SK_LLVM_H
#define SK_LLVM_H

#include "base/base.h"

struct llvm;

/* Where the library lies, without opening it: SPORK_LLVM (a path) if set, else the best version in the places where systems
 * keep libraries. False, with the reason and the package to install, if there is none. Cheap: a few stats. */
bool llvm_find(char *path, size_t cap, struct buf *reason);

/* Opens the library and makes it ready for this machine. The library stays open as long as the process. Takes 12 to 65 ms
 * the first time; later calls find it open. Thread-safe. SK_ERR_UNSUPPORTED with the reason: not there, too old (the version
 * is named), a symbol is missing. */
sk_status llvm_open(struct mem *mem, struct llvm **out, sk_error *err);
void llvm_close(struct llvm *l); /* gives back the handle, not the library; null allowed */

/* Begins to open it on a thread of its own, if it is there. Returns at once and reports nothing: llvm_open waits for it and
 * says what went wrong. A fork waits too, for this and for compiles. */
void llvm_prefetch(void);

const char *llvm_version(const struct llvm *l); /* "19.1.7" */
unsigned llvm_major(const struct llvm *l);
bool llvm_tested(const struct llvm *l);
const char *llvm_path(const struct llvm *l);     /* the file */
const char *llvm_triple(const struct llvm *l);   /* of this machine */
const char *llvm_cpu(const struct llvm *l);      /* "znver4" */
const char *llvm_features(const struct llvm *l); /* "+avx2,+fma,…" */

enum llvm_effort {
    LLVM_QUICK, /* a short list of passes: for large kernels, and where the first result is waited for */
    LLVM_FULL,  /* and unrolling (also of loops with the metadata llvm.loop.unroll.full) and a second SROA: for loops */
    LLVM_LEAST  /* a tenth of the time for code at a third of the speed: for kernels too large for the others */
};
enum llvm_output { LLVM_OBJECT, LLVM_ASM, LLVM_IR };

/* Compiles a module in LLVM's text form (syntax of LLVM 16, no target lines: they are added here) for this machine:
 * position-independent, small code model, no calls to the C library beyond memcpy, memset, memmove and the compiler's helpers.
 * *out is memory of `mem` (mem_free with *size); text outputs end with a zero that *size does not count but the allocation
 * holds (free with *size + 1). Blocks; any number of threads at once. SK_ERR_INVALID with LLVM's message for
 * text it refuses, SK_ERR_DEVICE where LLVM gives up, SK_ERR_UNSUPPORTED past 16 MiB or 64 brackets within brackets. Time is
 * not bounded: QUICK and FULL take time by the square of the length of a chain of integer operations (10 s for 20,000). */
sk_status llvm_compile(struct llvm *l, const char *text, size_t n, enum llvm_effort effort, enum llvm_output output,
                       struct mem *mem, char **out, size_t *size, sk_error *err);

#endif
