/* interp.h - the reference interpreter: the meaning of the IR.
 *
 * A program is a kernel flattened for execution: it runs one operation for the 32 lanes of a simdgroup at once. It is
 * immutable after interp_compile and may be run by several threads at once.
 */
#ifndef SK_INTERP_H
#define SK_INTERP_H

#include "ir/ir.h"

struct interp_program;

/* Compiles kernel `func` of `m` (inlined and run through the passes by the caller). The program keeps no reference to m. */
sk_status interp_compile(struct mem *mem, const struct ir_module *m, uint32_t func, struct interp_program **out,
                         sk_error *err);
void interp_free(struct interp_program *p);                        /* null allowed */
uint32_t interp_threadgroup_bytes(const struct interp_program *p); /* static threadgroup memory */

struct interp_arg {
    void *data;    /* buffer memory; value bytes; null for threadgroup memory */
    uint64_t size; /* bytes */
};
struct interp_launch {
    uint32_t threads[3];           /* threads in the grid, all at least 1 */
    uint32_t threadgroup[3];       /* as asked for; edge groups are cut */
    const struct interp_arg *args; /* one for each parameter of the kernel that is not an attribute, in order */
    const volatile int *stop;
    uint64_t loop_limit; /* "no progress" limit of iterations of a waiting loop; 0: the default */
};
/* Runs to the end. Faults (out of bounds, deadlock, no progress, assert) are reported after the launch has ended:
 * SK_ERR_FAULT with the lowest faulting thread's message and the user's line. `mem` is used for working storage: it must
 * belong to the calling thread. */
sk_status interp_run(const struct interp_program *p, const struct interp_launch *l, struct mem *mem, sk_error *err);

#endif
