/* lanes.c - elementwise operations over the 32 lanes of a simdgroup.
 *
 * The loops are expansions of ops.def, math.def and types.def with the functions of ir/math.h in them, inlined, so they
 * mean what ir_scalar_eval means; tests/unit/lanes.c compares all of them with it. Conversions of 16-bit floats are
 * written out here again without branches. What has no loop here runs lane by lane through lanes_eval.
 */
#define MATH_LINKAGE static inline
#include "interp/loops.h"
#include "ir/math.c" /* NOLINT(bugprone-suspicious-include) */
#undef SIGN          /* is a row of math.def */

/* gcc does not believe restrict on locals; clang warns where it is told of independence and finds no use for it. */
#if defined(__clang__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
/* Runs the statement for every lane l. */
#define EACH(...)                                                                                                      \
    INDEPENDENT                                                                                                        \
    for (unsigned l = 0; l < LANES; l++) {                                                                             \
        __VA_ARGS__;                                                                                                   \
    }
#define LANE_D(T) T *restrict const d = REG(s, T, i->d)
#define LANE_A(T) const T *restrict const a = REG(s, const T, i->a)
#define LANE_B(T) const T *restrict const b = REG(s, const T, i->b)
#define LANE_C(T) const T *restrict const c = REG(s, const T, i->c)

#define LANES_1(NAME, R, T, F)                                                                                         \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(R);                                                                                                     \
        LANE_A(T);                                                                                                     \
        EACH(d[l] = (R)F(a[l]))                                                                                        \
        return i + 1;                                                                                                  \
    }
#define LANES_2(NAME, R, T, F)                                                                                         \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(R);                                                                                                     \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        EACH(d[l] = (R)F(a[l], b[l]))                                                                                  \
        return i + 1;                                                                                                  \
    }
#define LANES_3(NAME, R, T, F)                                                                                         \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(R);                                                                                                     \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        LANE_C(T);                                                                                                     \
        EACH(d[l] = (R)F(a[l], b[l], c[l]))                                                                            \
        return i + 1;                                                                                                  \
    }

/* ---- rows that an expansion skips ---- */

#define NO_RULE(ID, n, classes)
#define NO_CLASS(ID, n)

/* ---- bool ------------------------------------------------------------------------------------------------------- */

#define COMPARE_EQ(x, y) ((x) == (y))
#define COMPARE_NE(x, y) ((x) != (y))
#define COMPARE_LT(x, y) ((x) < (y))
#define COMPARE_LE(x, y) ((x) <= (y))
#define COMPARE_GT(x, y) ((x) > (y))
#define COMPARE_GE(x, y) ((x) >= (y))

#define BIT_NOT(x) (~(x))
#define BIT_AND(x, y) ((x) & (y))
#define BIT_OR(x, y) ((x) | (y))
#define BIT_XOR(x, y) ((x) ^ (y))

#define BOOL_NOT(x) ((x) ^ 1)
#define BOOL_AND BIT_AND
#define BOOL_OR BIT_OR
#define BOOL_XOR BIT_XOR

#define BOOL_RULE_NONE NO_RULE
#define BOOL_RULE_GIVEN NO_RULE
#define BOOL_RULE_SHIFT NO_RULE
#define BOOL_RULE_LANES NO_RULE
#define BOOL_RULE_VOTE NO_RULE
#define BOOL_RULE_SELECT NO_RULE
#define BOOL_RULE_SAME(ID, n, classes) BOOL_SAME_##classes(ID, n)
#define BOOL_SAME_F NO_CLASS
#define BOOL_SAME_SU NO_CLASS
#define BOOL_SAME_SUF NO_CLASS
#define BOOL_SAME_FSU NO_CLASS

#define BOOL_RULE_COMPARE(ID, n, classes) LANES_##n(bool_##ID, uint8_t, uint8_t, COMPARE_##ID)
#define BOOL_SAME_BSU(ID, n) LANES_##n(bool_##ID, uint8_t, uint8_t, BOOL_##ID)
#define OP(ID, name, n, rule, classes, effects, msl, doc) BOOL_RULE_##rule(ID, n, classes)
#include "ir/ops.def"

#undef BOOL_RULE_COMPARE
#undef BOOL_SAME_BSU
#define BOOL_RULE_COMPARE(ID, n, classes) [OP_##ID] = bool_##ID,
#define BOOL_SAME_BSU(ID, n) [OP_##ID] = bool_##ID,
static inst_fn *const bool_ops[OP_COUNT] = {
#define OP(ID, name, n, rule, classes, effects, msl, doc) BOOL_RULE_##rule(ID, n, classes)
#include "ir/ops.def"
};

/* ---- integers --------------------------------------------------------------------------------------------------- */

#define EACH_INT(X, ...)                                                                                               \
    X(I8, int8_t, __VA_ARGS__)                                                                                         \
    X(U8, uint8_t, __VA_ARGS__)                                                                                        \
    X(I16, int16_t, __VA_ARGS__)                                                                                       \
    X(U16, uint16_t, __VA_ARGS__)                                                                                      \
    X(I32, int32_t, __VA_ARGS__)                                                                                       \
    X(U32, uint32_t, __VA_ARGS__)                                                                                      \
    X(I64, int64_t, __VA_ARGS__)                                                                                       \
    X(U64, uint64_t, __VA_ARGS__)

/* One count for all lanes is the rule and has vector instructions; the vectors of old machines have no other shift. */
#define LANES_SHIFT(NAME, T, F)                                                                                        \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        T other = 0;                                                                                                   \
        EACH(other |= (T)(b[l] ^ b[0]))                                                                                \
        if (other == 0) {                                                                                              \
            const unsigned count = (unsigned)b[0] & (8u * sizeof(T) - 1);                                              \
            EACH(d[l] = F(a[l], count))                                                                                \
        } else {                                                                                                       \
            EACH(d[l] = F(a[l], (uint64_t)b[l]))                                                                       \
        }                                                                                                              \
        return i + 1;                                                                                                  \
    }

#define INT_RULE_NONE NO_RULE
#define INT_RULE_GIVEN NO_RULE
#define INT_RULE_LANES NO_RULE
#define INT_RULE_VOTE NO_RULE
#define INT_RULE_SELECT NO_RULE
#define INT_RULE_SAME(ID, n, classes) INT_SAME_##classes(ID, n)
#define INT_SAME_F NO_CLASS

#define INT_MATH(S, T, ID, n) LANES_##n(int_lanes_##ID##_##S, T, T, int_##ID##_##S)
#define INT_BITS(S, T, ID, n) LANES_##n(int_lanes_##ID##_##S, T, T, BIT_##ID)
#define INT_COMPARE(S, T, ID, n) LANES_##n(int_lanes_##ID##_##S, uint8_t, T, COMPARE_##ID)
#define INT_SHIFT(S, T, ID, n) LANES_SHIFT(int_lanes_##ID##_##S, T, int_##ID##_##S)

#define INT_SAME_SU(ID, n) EACH_INT(INT_MATH, ID, n)
#define INT_SAME_SUF(ID, n) EACH_INT(INT_MATH, ID, n)
#define INT_SAME_FSU(ID, n) EACH_INT(INT_MATH, ID, n)
#define INT_SAME_BSU(ID, n) EACH_INT(INT_BITS, ID, n)
#define INT_RULE_COMPARE(ID, n, classes) EACH_INT(INT_COMPARE, ID, n)
#define INT_RULE_SHIFT(ID, n, classes) EACH_INT(INT_SHIFT, ID, n)
#define OP(ID, name, n, rule, classes, effects, msl, doc) INT_RULE_##rule(ID, n, classes)
#include "ir/ops.def"

#undef INT_SAME_SU
#undef INT_SAME_SUF
#undef INT_SAME_FSU
#undef INT_SAME_BSU
#undef INT_RULE_COMPARE
#undef INT_RULE_SHIFT
#define INT_ENTRY(S, T, ID) [S_##S] = int_lanes_##ID##_##S,
#define INT_ROW(ID, n) [OP_##ID] = {EACH_INT(INT_ENTRY, ID)},
#define INT_SAME_SU INT_ROW
#define INT_SAME_SUF INT_ROW
#define INT_SAME_FSU INT_ROW
#define INT_SAME_BSU INT_ROW
#define INT_RULE_COMPARE(ID, n, classes) INT_ROW(ID, n)
#define INT_RULE_SHIFT(ID, n, classes) INT_ROW(ID, n)
static inst_fn *const int_ops[OP_COUNT][S_COUNT] = {
#define OP(ID, name, n, rule, classes, effects, msl, doc) INT_RULE_##rule(ID, n, classes)
#include "ir/ops.def"
};

/* ---- floats ----------------------------------------------------------------------------------------------------- */

/* Written without branches, so that the loops become vectors. */
static inline uint32_t pick(bool c, uint32_t x, uint32_t y)
{
    const uint32_t m = 0u - (uint32_t)c;
    return (x & m) | (y & ~m);
}

/* The multiplication is exact, denormals included. */
static inline float from_F16(uint16_t h)
{
    const uint32_t u = (uint32_t)(h & 0x7fff) << 13;
    const uint32_t finite = bits_f32(f32_bits(u) * 0x1p112f);
    return f32_bits(pick((h & 0x7c00) == 0x7c00, 0x7f800000u | u, finite) | (uint32_t)(h & 0x8000) << 16);
}

/* Round to nearest even; every NaN is the quiet one, as for all results here. Adding 0.5 to a magnitude below 2^-14
 * leaves the f16 denormal in the low bits of the sum, rounded by the addition. */
static inline uint16_t to_F16(float x)
{
    const uint32_t bits = bits_f32(x), u = bits & 0x7fffffff;
    const uint32_t denormal = bits_f32(f32_bits(u) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (u + 0xc8000fffu + (u >> 13 & 1u)) >> 13;
    const uint32_t h = pick(u >= 0x47800000u, 0x7c00u, pick(u < 0x38800000u, denormal, normal));
    return (uint16_t)pick(u > 0x7f800000u, 0x7e00u, h | (bits >> 16 & 0x8000u));
}

static inline float from_BF16(uint16_t h)
{
    return f32_bits((uint32_t)h << 16);
}

static inline uint16_t to_BF16(float x)
{
    const uint32_t u = bits_f32(x);
    return (uint16_t)pick((u & 0x7fffffffu) > 0x7f800000u, 0x7fc0u, (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float from_F32(float x)
{
    return x;
}

static inline float to_F32(float x)
{
    return x == x ? x : f32_bits(0x7fc00000u);
}

/* neg, abs and fabs are sign_flip and sign_clear below and reach these never. */
#define math_NEG(x) (-(x))
#define math_ADD(x, y) ((x) + (y))
#define math_SUB(x, y) ((x) - (y))
#define math_MUL(x, y) ((x) * (y))
#define math_DIV(x, y) ((x) / (y))

#define EACH_FLOAT(X, ...)                                                                                             \
    X(F16, uint16_t, __VA_ARGS__)                                                                                      \
    X(BF16, uint16_t, __VA_ARGS__)                                                                                     \
    X(F32, float, __VA_ARGS__)

#define FLOAT_LANES_1(NAME, S, T, F)                                                                                   \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(T);                                                                                                     \
        EACH(d[l] = to_##S(F(from_##S(a[l]))))                                                                         \
        return i + 1;                                                                                                  \
    }
#define FLOAT_LANES_2(NAME, S, T, F)                                                                                   \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        EACH(d[l] = to_##S(F(from_##S(a[l]), from_##S(b[l]))))                                                         \
        return i + 1;                                                                                                  \
    }
#define FLOAT_LANES_3(NAME, S, T, F)                                                                                   \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        LANE_C(T);                                                                                                     \
        EACH(d[l] = to_##S(F(from_##S(a[l]), from_##S(b[l]), from_##S(c[l]))))                                         \
        return i + 1;                                                                                                  \
    }
#define FLOAT_LANES_COMPARE(NAME, S, T, F)                                                                             \
    static const struct inst *NAME(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        LANE_D(uint8_t);                                                                                               \
        LANE_A(T);                                                                                                     \
        LANE_B(T);                                                                                                     \
        EACH(d[l] = F(from_##S(a[l]), from_##S(b[l])))                                                                 \
        return i + 1;                                                                                                  \
    }

#define FLOAT_RULE_NONE NO_RULE
#define FLOAT_RULE_GIVEN NO_RULE
#define FLOAT_RULE_SHIFT NO_RULE
#define FLOAT_RULE_LANES NO_RULE
#define FLOAT_RULE_VOTE NO_RULE
#define FLOAT_RULE_SELECT NO_RULE
#define FLOAT_RULE_SAME(ID, n, classes) FLOAT_SAME_##classes(ID, n)
#define FLOAT_SAME_SU NO_CLASS
#define FLOAT_SAME_BSU NO_CLASS

#define FLOAT_MATH(S, T, ID, n) FLOAT_LANES_##n(float_lanes_##ID##_##S, S, T, math_##ID)
#define FLOAT_COMPARE(S, T, ID, n) FLOAT_LANES_COMPARE(float_lanes_##ID##_##S, S, T, COMPARE_##ID)
#define FLOAT_SAME_F(ID, n) EACH_FLOAT(FLOAT_MATH, ID, n)
#define FLOAT_SAME_SUF(ID, n) EACH_FLOAT(FLOAT_MATH, ID, n)
#define FLOAT_SAME_FSU(ID, n) EACH_FLOAT(FLOAT_MATH, ID, n)
#define FLOAT_RULE_COMPARE(ID, n, classes) EACH_FLOAT(FLOAT_COMPARE, ID, n)
#define OP(ID, name, n, rule, classes, effects, msl, doc) FLOAT_RULE_##rule(ID, n, classes)
#include "ir/ops.def"

#undef FLOAT_SAME_F
#undef FLOAT_SAME_SUF
#undef FLOAT_SAME_FSU
#undef FLOAT_RULE_COMPARE
#define FLOAT_ENTRY(S, T, ID) [S_##S - S_F16] = float_lanes_##ID##_##S,
#define FLOAT_ROW(ID, n) [OP_##ID] = {EACH_FLOAT(FLOAT_ENTRY, ID)},
#define FLOAT_SAME_F FLOAT_ROW
#define FLOAT_SAME_SUF FLOAT_ROW
#define FLOAT_SAME_FSU FLOAT_ROW
#define FLOAT_RULE_COMPARE(ID, n, classes) FLOAT_ROW(ID, n)
static inst_fn *const float_ops[OP_COUNT][3] = {
#define OP(ID, name, n, rule, classes, effects, msl, doc) FLOAT_RULE_##rule(ID, n, classes)
#include "ir/ops.def"
};

#define FAST_MATH(S, T, ID, n) FLOAT_LANES_##n(fast_lanes_##ID##_##S, S, T, math_fast_##ID)
#define FAST_0(ID, n)
#define FAST_1(ID, n) EACH_FLOAT(FAST_MATH, ID, n)
#define MATH(ID, name, n, classes, python, fast, ulp, fast_ulp, doc) FAST_##fast(ID, n)
#include "ir/math.def"
#undef MATH
#undef FAST_1
#define FAST_ENTRY(S, T, ID) [S_##S - S_F16] = fast_lanes_##ID##_##S,
#define FAST_1(ID, n) [OP_##ID] = {EACH_FLOAT(FAST_ENTRY, ID)},
static inst_fn *const fast_ops[OP_COUNT][3] = {
#define MATH(ID, name, n, classes, python, fast, ulp, fast_ulp, doc) FAST_##fast(ID, n)
#include "ir/math.def"
#undef MATH
};

/* Only large angles need a branch. */
#define ANGLE_LANES(S, T, ID, f)                                                                                       \
    static const struct inst *angle_lanes_##ID##_##S(struct simd *s, const struct inst *i)                             \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(T);                                                                                                     \
        uint32_t large = 0;                                                                                            \
        EACH(large |= (uint32_t)(absolute(from_##S(a[l])) >= MATH_ANGLE_LARGE))                                        \
        if (large)                                                                                                     \
            return float_lanes_##ID##_##S(s, i);                                                                       \
        EACH(d[l] = to_##S(f(from_##S(a[l]), true)))                                                                   \
        return i + 1;                                                                                                  \
    }
#define ANGLE_ENTRY(S, T, ID) [S_##S - S_F16] = angle_lanes_##ID##_##S,
EACH_FLOAT(ANGLE_LANES, SIN, sin_angle)
EACH_FLOAT(ANGLE_LANES, COS, cos_angle)
EACH_FLOAT(ANGLE_LANES, TAN, tan_angle)
static inst_fn *const angle_ops[OP_COUNT][3] = {
    [OP_SIN] = {EACH_FLOAT(ANGLE_ENTRY, SIN)},
    [OP_COS] = {EACH_FLOAT(ANGLE_ENTRY, COS)},
    [OP_TAN] = {EACH_FLOAT(ANGLE_ENTRY, TAN)},
};

#define SIGN_FLIP_16(x) ((x) ^ 0x8000)
#define SIGN_CLEAR_16(x) ((x)&0x7fff)
#define SIGN_FLIP_32(x) ((x) ^ 0x80000000u)
#define SIGN_CLEAR_32(x) ((x)&0x7fffffffu)
LANES_1(sign_flip_16, uint16_t, uint16_t, SIGN_FLIP_16)
LANES_1(sign_clear_16, uint16_t, uint16_t, SIGN_CLEAR_16)
LANES_1(sign_flip_32, uint32_t, uint32_t, SIGN_FLIP_32)
LANES_1(sign_clear_32, uint32_t, uint32_t, SIGN_CLEAR_32)

FLOAT_LANES_3(fma_F16, F16, uint16_t, math_fma_odd)
FLOAT_LANES_3(fma_BF16, BF16, uint16_t, math_fma_odd)

static inst_fn *lanes_op(enum op op, enum scalar s, unsigned flags)
{
    switch (scalar_info[s].class_) {
    case CLASS_B: return bool_ops[op];
    case CLASS_S:
    case CLASS_U: return int_ops[op][s];
    case CLASS_F:
        if (op == OP_NEG)
            return s == S_F32 ? sign_flip_32 : sign_flip_16;
        if (op == OP_ABS || op == OP_FABS)
            return s == S_F32 ? sign_clear_32 : sign_clear_16;
        if (op == OP_FMA && s != S_F32)
            return s == S_F16 ? fma_F16 : fma_BF16;
        if ((flags & NODE_FAST) && fast_ops[op][s - S_F16])
            return fast_ops[op][s - S_F16];
        if (angle_ops[op][s - S_F16])
            return angle_ops[op][s - S_F16];
        return float_ops[op][s - S_F16];
    }
    return NULL;
}

/* ---- conversions ------------------------------------------------------------------------------------------------ */

#define NOT_ZERO(x) ((x) != 0)
#define SAME_VALUE(x) (x)

/* Integers to each size: the source's sign decides how they widen. */
#define INT_TO_8(S, T, _) LANES_1(S##_to_8, uint8_t, T, SAME_VALUE)
#define INT_TO_16(S, T, _) LANES_1(S##_to_16, uint16_t, T, SAME_VALUE)
#define INT_TO_32(S, T, _) LANES_1(S##_to_32, uint32_t, T, SAME_VALUE)
#define INT_TO_64(S, T, _) LANES_1(S##_to_64, uint64_t, T, SAME_VALUE)
#define INT_TO_BOOL(S, T, _) LANES_1(S##_to_bool, uint8_t, T, NOT_ZERO)
#define INT_TO_F32(S, T, _) LANES_1(S##_to_F32, float, T, SAME_VALUE)
EACH_INT(INT_TO_8, )
EACH_INT(INT_TO_16, )
EACH_INT(INT_TO_32, )
EACH_INT(INT_TO_64, )
EACH_INT(INT_TO_BOOL, )
EACH_INT(INT_TO_F32, )

#define INT_FROM(S, T)                                                                                                 \
    {                                                                                                                  \
        [S_BOOL] = S##_to_bool, [S_I8] = S##_to_8, [S_U8] = S##_to_8, [S_I16] = S##_to_16, [S_U16] = S##_to_16,        \
        [S_I32] = S##_to_32, [S_U32] = S##_to_32, [S_I64] = S##_to_64, [S_U64] = S##_to_64, [S_F32] = S##_to_F32,      \
    }

#define FLOAT_TO_INT(S, T, F, FT)                                                                                      \
    static const struct inst *F##_to_##S(struct simd *s, const struct inst *i)                                         \
    {                                                                                                                  \
        LANE_D(T);                                                                                                     \
        LANE_A(FT);                                                                                                    \
        EACH(d[l] = int_from_f32_##S(from_##F(a[l])))                                                                  \
        return i + 1;                                                                                                  \
    }
EACH_INT(FLOAT_TO_INT, F16, uint16_t)
EACH_INT(FLOAT_TO_INT, BF16, uint16_t)
EACH_INT(FLOAT_TO_INT, F32, float)

#define FLOAT_TO(F, FT)                                                                                                \
    static inline bool bool_from_##F(FT x)                                                                             \
    {                                                                                                                  \
        return from_##F(x) != 0;                                                                                       \
    }                                                                                                                  \
    static inline uint16_t F16_from_##F(FT x)                                                                          \
    {                                                                                                                  \
        return to_F16(from_##F(x));                                                                                    \
    }                                                                                                                  \
    static inline uint16_t BF16_from_##F(FT x)                                                                         \
    {                                                                                                                  \
        return to_BF16(from_##F(x));                                                                                   \
    }                                                                                                                  \
    static inline float F32_from_##F(FT x)                                                                             \
    {                                                                                                                  \
        return to_F32(from_##F(x));                                                                                    \
    }                                                                                                                  \
    LANES_1(F##_to_bool, uint8_t, FT, bool_from_##F)                                                                   \
    LANES_1(F##_to_F16, uint16_t, FT, F16_from_##F)                                                                    \
    LANES_1(F##_to_BF16, uint16_t, FT, BF16_from_##F)                                                                  \
    LANES_1(F##_to_F32, float, FT, F32_from_##F)
FLOAT_TO(F16, uint16_t)
FLOAT_TO(BF16, uint16_t)
FLOAT_TO(F32, float)

#define FLOAT_FROM_INT(S, T, F) [S_##S] = F##_to_##S,
#define FLOAT_FROM(F)                                                                                                  \
    {                                                                                                                  \
        [S_BOOL] = F##_to_bool, [S_F16] = F##_to_F16, [S_BF16] = F##_to_BF16, [S_F32] = F##_to_F32,                    \
        EACH_INT(FLOAT_FROM_INT, F)                                                                                    \
    }

#define INT_FROM_ROW(S, T, _) [S_##S] = INT_FROM(S, T),
static inst_fn *const convert_ops[S_COUNT][S_COUNT] = {
    [S_BOOL] = INT_FROM(U8, uint8_t),
    EACH_INT(INT_FROM_ROW, )[S_F16] = FLOAT_FROM(F16),
    [S_BF16] = FLOAT_FROM(BF16),
    [S_F32] = FLOAT_FROM(F32),
};

static inst_fn *lanes_convert(enum scalar from, enum scalar to)
{
    return convert_ops[from][to];
}

/* ---- by size: choice, copies, moves ----------------------------------------------------------------------------- */

#define SELECT(N)                                                                                                      \
    static const struct inst *select_##N(struct simd *s, const struct inst *i)                                         \
    {                                                                                                                  \
        LANE_D(uint##N##_t);                                                                                           \
        LANE_A(uint8_t);                                                                                               \
        LANE_B(uint##N##_t);                                                                                           \
        LANE_C(uint##N##_t);                                                                                           \
        EACH(const uint##N##_t x = b[l], y = c[l]; d[l] = a[l] ? x : y)                                                \
        return i + 1;                                                                                                  \
    }
EACH_SIZE(SELECT)

static inst_fn *lanes_select(unsigned bytes)
{
    return BY_SIZE(select, bytes);
}

/* In vectors, which is how the copy will be read: a load that spans several stores under way waits for them. */
typedef char vector __attribute__((vector_size(LANES)));

#define COPY(N)                                                                                                        \
    static const struct inst *copy_##N(struct simd *s, const struct inst *i)                                           \
    {                                                                                                                  \
        LANE_D(vector);                                                                                                \
        LANE_A(vector);                                                                                                \
        for (unsigned k = 0; k < N / 8; k++) {                                                                         \
            const vector x = a[k];                                                                                     \
            d[k] = x;                                                                                                  \
        }                                                                                                              \
        return i + 1;                                                                                                  \
    }
EACH_SIZE(COPY)

static inst_fn *lanes_copy(unsigned bytes)
{
    return BY_SIZE(copy, bytes);
}

#define MOVE(N)                                                                                                        \
    static const struct inst *move_##N(struct simd *s, const struct inst *i)                                           \
    {                                                                                                                  \
        if (nobody_waits(s))                                                                                           \
            return copy_##N(s, i);                                                                                     \
        LANE_D(uint##N##_t);                                                                                           \
        LANE_A(uint##N##_t);                                                                                           \
        const uint32_t mask = s->mask;                                                                                 \
        EACH(const uint##N##_t x = a[l], y = d[l]; d[l] = mask & lane_bit[l] ? x : y)                                  \
        return i + 1;                                                                                                  \
    }
EACH_SIZE(MOVE)

static inst_fn *lanes_move(unsigned bytes)
{
    return BY_SIZE(move, bytes);
}

const struct lane_loops lanes_least = {
    .op = lanes_op,
    .convert = lanes_convert,
    .select = lanes_select,
    .move = lanes_move,
    .copy = lanes_copy,
    .load = cells_load,
    .store = cells_store,
};
