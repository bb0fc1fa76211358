/* avx512.h - instructions of AVX-512 (F and VL) that no generic LLVM operation becomes, for vectors of any width and scalars. */
#ifndef SK_CPU_AVX512_H
#define SK_CPU_AVX512_H

#include "cpu/emit.h"

/* `operands` of the intrinsic in order: a, b floats; t a table of 32 bits for each lane; i the immediate; z what masked lanes
 * get; m the mask; r the rounding mode, which only the widest form has. */
struct avx512_instruction {
    const char *name, *operands;
    uint32_t immediate, table;
};

extern const struct avx512_instruction avx512_rsqrt14; /* 1 / sqrt(a), error 2^-14 */
extern const struct avx512_instruction avx512_scalef;  /* a 2^floor(b), rounded once */
extern const struct avx512_instruction avx512_getexp;  /* floor(log2 |a|), of denormals too */
extern const struct avx512_instruction avx512_getmant; /* a / 2^getexp(a), in [1, 2) for positive a */
/* a, but the function's value at b where b is NaN, negative, 0 or infinite. */
extern const struct avx512_instruction avx512_fixup_log, avx512_fixup_sqrt, avx512_fixup_rsqrt;

struct val avx512(struct emit *e, const struct avx512_instruction *i, struct val a,
                  struct val b); /* b: {0} if not used */

#endif
