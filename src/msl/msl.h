/* msl.h - Metal Shading Language from IR: the Metal dialect of the C-like printer. */
#ifndef SK_MSL_H
#define SK_MSL_H

#include "ir/ir.h"

/* Prints kernel `func` (0: all kernels) with what it calls. Reads the IR as traced: no pass is needed before. `lines`
 * receives the place id of each generated line (0: none), lines.at[i] for line i + 1. SK_ERR_UNSUPPORTED names what Metal
 * cannot express. */
struct msl_lines {
    VEC(uint32_t) place;
};
sk_status msl_print(const struct ir_module *m, uint32_t func, struct buf *out, struct msl_lines *lines, sk_error *err);
/* The name of kernel `func` in the printed source: its own unless Metal has reserved that. */
void msl_kernel_name(const struct ir_module *m, uint32_t func, struct buf *out);

#endif
