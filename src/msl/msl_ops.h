/* msl_ops.h - the operations that Metal spells in its own way; internal to src/msl. */
#ifndef SK_MSL_OPS_H
#define SK_MSL_OPS_H

#include "clike/clike.h"

void msl_math(struct clike *p, uint32_t id, enum prec prec);
void msl_bitcast(struct clike *p, uint32_t id, enum prec prec);
void msl_collective(struct clike *p, uint32_t id, enum prec prec); /* simd.c */
void msl_atomic(struct clike *p, uint32_t id, enum prec prec);     /* atomic.c, and the rest */
void msl_fence(struct clike *p, uint32_t id, bool before);
void msl_statement(struct clike *p, uint32_t id);
const char *msl_atomic_type(struct clike *p, ir_type t);

#endif
