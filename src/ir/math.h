/* math.h - what the elementwise functions and the integer operators mean, for one scalar.
 *
 * The constant folder and the interpreter call these; the CPU back end prints the same steps as vectors, and its
 * results must have the same bits. Names end in the ids of the tables (math.def, ops.def, types.def), so that an
 * expansion of a table can call them: math_EXP, math_fast_EXP, int_DIV_FLOOR_I32, int_from_f32_U8.
 *
 * Every function here is pure, defined for every operand, and assumes the default rounding mode, denormals on, and
 * no contraction (-ffp-contract=off). A NaN result may have any sign and payload.
 */
#ifndef SK_IR_MATH_H
#define SK_IR_MATH_H

#include "base/base.h"

/* ---- floats: math.c --------------------------------------------------------------------------------------------- */

/* float math_ID(float…) for each row of math.def, float math_fast_ID(float…) for those with a fast form. A file that
 * includes math.c itself, to have them inlined, defines MATH_LINKAGE as static inline. */
#ifndef MATH_LINKAGE
#define MATH_LINKAGE
#endif
#define MATH_OPERANDS_1 float
#define MATH_OPERANDS_2 float, float
#define MATH_OPERANDS_3 float, float, float
#define MATH_FAST_0(ID, arity)
#define MATH_FAST_1(ID, arity) MATH_LINKAGE float math_fast_##ID(MATH_OPERANDS_##arity);
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc)                                               \
    MATH_LINKAGE float math_##ID(MATH_OPERANDS_##arity);                                                               \
    MATH_FAST_##fast(ID, arity)
#include "ir/math.def"
#undef MATH

/* `//` and `%` of floats: NumPy's floor_divide and remainder of float32. The quotient is an integer or not finite, the
 * remainder has the divisor's sign and is found exactly before that sign is restored (one rounding). */
MATH_LINKAGE float math_DIV_FLOOR(float x, float y);
MATH_LINKAGE float math_REM_FLOOR(float x, float y);

/* ---- integers --------------------------------------------------------------------------------------------------- */

/* Two's complement, wrapping; x / 0 and x % 0 are 0; the smallest over -1 wraps to itself, with remainder 0; shifts
 * count modulo the width; a negative exponent gives 0, but for bases 1 and -1. */
#define INT_COMMON(ID, T, U, bits)                                                                                     \
    static inline T int_NEG_##ID(T a)                                                                                  \
    {                                                                                                                  \
        return (T)(U)(0u - (uint64_t)a);                                                                               \
    }                                                                                                                  \
    static inline T int_ADD_##ID(T a, T b)                                                                             \
    {                                                                                                                  \
        return (T)(U)((uint64_t)a + (uint64_t)b);                                                                      \
    }                                                                                                                  \
    static inline T int_SUB_##ID(T a, T b)                                                                             \
    {                                                                                                                  \
        return (T)(U)((uint64_t)a - (uint64_t)b);                                                                      \
    }                                                                                                                  \
    static inline T int_MUL_##ID(T a, T b)                                                                             \
    {                                                                                                                  \
        return (T)(U)((uint64_t)a * (uint64_t)b);                                                                      \
    }                                                                                                                  \
    static inline T int_SHL_##ID(T a, uint64_t count)                                                                  \
    {                                                                                                                  \
        return (T)(U)((uint64_t)a << (count & (bits - 1u)));                                                           \
    }                                                                                                                  \
    static inline T int_SHR_##ID(T a, uint64_t count)                                                                  \
    {                                                                                                                  \
        return (T)(a >> (count & (bits - 1u)));                                                                        \
    }                                                                                                                  \
    static inline T int_MIN_##ID(T a, T b)                                                                             \
    {                                                                                                                  \
        return a < b ? a : b;                                                                                          \
    }                                                                                                                  \
    static inline T int_MAX_##ID(T a, T b)                                                                             \
    {                                                                                                                  \
        return a < b ? b : a;                                                                                          \
    }                                                                                                                  \
    static inline T int_CLAMP_##ID(T x, T lo, T hi)                                                                    \
    {                                                                                                                  \
        return int_MIN_##ID(int_MAX_##ID(x, lo), hi);                                                                  \
    }                                                                                                                  \
    /* By squaring: the product of base^(2^i) over the set bits of e. */                                               \
    static inline T int_power_##ID(T base, uint64_t e)                                                                 \
    {                                                                                                                  \
        T r = 1;                                                                                                       \
        for (; e; e >>= 1, base = int_MUL_##ID(base, base))                                                            \
            if (e & 1)                                                                                                 \
                r = int_MUL_##ID(r, base);                                                                             \
        return r;                                                                                                      \
    }

#define INT_SIGNED(ID, T, U, bits)                                                                                     \
    INT_COMMON(ID, T, U, bits)                                                                                         \
    static inline T int_ABS_##ID(T a)                                                                                  \
    {                                                                                                                  \
        return a < 0 ? int_NEG_##ID(a) : a;                                                                            \
    }                                                                                                                  \
    static inline T int_DIV_TRUNC_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return (T)(b == 0 ? 0 : b == -1 ? int_NEG_##ID(a) : a / b);                                                    \
    }                                                                                                                  \
    static inline T int_REM_TRUNC_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return (T)(b == 0 || b == -1 ? 0 : a % b);                                                                     \
    }                                                                                                                  \
    static inline T int_DIV_FLOOR_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        const T r = int_REM_TRUNC_##ID(a, b);                                                                          \
        return (T)(int_DIV_TRUNC_##ID(a, b) - (r != 0 && (r ^ b) < 0));                                                \
    }                                                                                                                  \
    static inline T int_REM_FLOOR_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        const T r = int_REM_TRUNC_##ID(a, b);                                                                          \
        return r != 0 && (r ^ b) < 0 ? (T)(r + b) : r;                                                                 \
    }                                                                                                                  \
    static inline T int_IPOW_##ID(T base, T e)                                                                         \
    {                                                                                                                  \
        return e >= 0 || base == 1 || base == -1 ? int_power_##ID(base, (uint64_t)e) : 0;                              \
    }

#define INT_UNSIGNED(ID, T, U, bits)                                                                                   \
    INT_COMMON(ID, T, U, bits)                                                                                         \
    static inline T int_ABS_##ID(T a)                                                                                  \
    {                                                                                                                  \
        return a;                                                                                                      \
    }                                                                                                                  \
    static inline T int_DIV_TRUNC_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return (T)(b == 0 ? 0 : a / b);                                                                                \
    }                                                                                                                  \
    static inline T int_REM_TRUNC_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return (T)(b == 0 ? 0 : a % b);                                                                                \
    }                                                                                                                  \
    static inline T int_DIV_FLOOR_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return int_DIV_TRUNC_##ID(a, b);                                                                               \
    }                                                                                                                  \
    static inline T int_REM_FLOOR_##ID(T a, T b)                                                                       \
    {                                                                                                                  \
        return int_REM_TRUNC_##ID(a, b);                                                                               \
    }                                                                                                                  \
    static inline T int_IPOW_##ID(T base, T e)                                                                         \
    {                                                                                                                  \
        return int_power_##ID(base, e);                                                                                \
    }

INT_SIGNED(I8, int8_t, uint8_t, 8)
INT_SIGNED(I16, int16_t, uint16_t, 16)
INT_SIGNED(I32, int32_t, uint32_t, 32)
INT_SIGNED(I64, int64_t, uint64_t, 64)
INT_UNSIGNED(U8, uint8_t, uint8_t, 8)
INT_UNSIGNED(U16, uint16_t, uint16_t, 16)
INT_UNSIGNED(U32, uint32_t, uint32_t, 32)
INT_UNSIGNED(U64, uint64_t, uint64_t, 64)
#undef INT_COMMON
#undef INT_SIGNED
#undef INT_UNSIGNED

/* ---- conversions ------------------------------------------------------------------------------------------------ */

/* Truncates and saturates; NaN gives 0. [low, end) are floats: the values that fit after truncation, except those
 * between low - 1 and low, which give the same answer either way. */
#define INT_FROM_F32(ID, T, low, end, least, most)                                                                     \
    static inline T int_from_f32_##ID(float x)                                                                         \
    {                                                                                                                  \
        return x >= end ? most : x >= low ? (T)x : x < low ? least : 0;                                                \
    }
INT_FROM_F32(I8, int8_t, -0x1p7f, 0x1p7f, INT8_MIN, INT8_MAX)
INT_FROM_F32(I16, int16_t, -0x1p15f, 0x1p15f, INT16_MIN, INT16_MAX)
INT_FROM_F32(I32, int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)
INT_FROM_F32(I64, int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)
INT_FROM_F32(U8, uint8_t, 0.0f, 0x1p8f, 0, UINT8_MAX)
INT_FROM_F32(U16, uint16_t, 0.0f, 0x1p16f, 0, UINT16_MAX)
INT_FROM_F32(U32, uint32_t, 0.0f, 0x1p32f, 0, UINT32_MAX)
INT_FROM_F32(U64, uint64_t, 0.0f, 0x1p64f, 0, UINT64_MAX)
#undef INT_FROM_F32

/* x * y + z of 16-bit floats rounded to odd: what a float cannot hold stays in its last bit, so that the rounding to 16
 * bits that follows is the only one. The product is exact in double, and `lost` is what the sum rounds away. */
static inline float math_fma_odd(float x, float y, float z)
{
    const double p = (double)x * (double)y, sum = p + (double)z, part = sum - p;
    const double lost = (p - (sum - part)) + ((double)z - part);
    const float r = (float)sum;
    const double rest = sum - (double)r != 0 ? sum - (double)r : lost;
    const uint32_t bits = bits_f32(r);
    const uint32_t even = (rest > 0 || rest < 0) && !(bits & 1); /* neither: exact, or NaN */
    return f32_bits((rest > 0) == (bits >> 31 == 0) ? bits + even : bits - even);
}

/* An integer as a float of any format, rounded once; narrower integers widen first, which is exact. To f32 a C cast
 * does it. A double holds 53 bits: of a larger magnitude the bits below the top 53 are gathered in the lowest that
 * stays, which no smaller format can mistake for a tie. */
static inline double f64_sticky_u64(uint64_t u)
{
    return u >> 53 ? (double)(u >> 11 | ((u & 0x7ff) != 0)) * 0x1p11 : (double)u;
}
static inline double f64_sticky_i64(int64_t i)
{
    return i < 0 ? -f64_sticky_u64(0u - (uint64_t)i) : f64_sticky_u64((uint64_t)i);
}
static inline uint16_t f16_from_u64(uint64_t u)
{
    return f16_from_f64(f64_sticky_u64(u));
}
static inline uint16_t f16_from_i64(int64_t i)
{
    return f16_from_f64(f64_sticky_i64(i));
}
static inline uint16_t bf16_from_u64(uint64_t u)
{
    return bf16_from_f64(f64_sticky_u64(u));
}
static inline uint16_t bf16_from_i64(int64_t i)
{
    return bf16_from_f64(f64_sticky_i64(i));
}

#endif
