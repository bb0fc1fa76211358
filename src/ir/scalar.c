/* scalar.c - the meaning of every elementwise operation on one scalar.
 *
 * The switches below are expansions of ops.def: a row's rule and classes decide whether it has a meaning for bool,
 * integers or floats, its id names the function: int_ADD_I8 (math.h), math_ADD, math_SIN (here and math.h).
 *
 * f16 and bf16 are computed in f32 and rounded: for + - * / and sqrt that is the correctly rounded result, because 24
 * bits are at least twice 11 and two more. A NaN that an operation makes is the quiet NaN of its format, whatever its
 * operands were; neg, abs and fabs only change the sign bit.
 */
#include "ir/ir.h"
#include "ir/math.h"

static uint64_t mask(enum scalar s, uint64_t bits)
{
    const unsigned width = scalar_info[s].bits;
    return width == 64 ? bits : bits & (((uint64_t)1 << width) - 1);
}

static int64_t as_signed(enum scalar s, uint64_t bits)
{
    const unsigned unused = 64u - scalar_info[s].bits;
    return (int64_t)(bits << unused) >> unused;
}

/* ---- bool ------------------------------------------------------------------------------------------------------ */

#define CALL_1(f) f(a)
#define CALL_2(f) f(a, b)
#define CALL_3(f) f(a, b, c)

#define COMPARE_EQ(x, y) ((x) == (y))
#define COMPARE_NE(x, y) ((x) != (y))
#define COMPARE_LT(x, y) ((x) < (y))
#define COMPARE_LE(x, y) ((x) <= (y))
#define COMPARE_GT(x, y) ((x) > (y))
#define COMPARE_GE(x, y) ((x) >= (y))

#define bool_NOT(x) ((x) ^ 1u)
#define bool_AND(x, y) ((x) & (y))
#define bool_OR(x, y) ((x) | (y))
#define bool_XOR(x, y) ((x) ^ (y))

#define NO_RULE(ID, n, classes)
#define NO_CLASS(ID, n)

#define BOOL_NONE NO_RULE
#define BOOL_GIVEN NO_RULE
#define BOOL_SHIFT NO_RULE
#define BOOL_LANES NO_RULE
#define BOOL_VOTE NO_RULE
#define BOOL_SELECT NO_RULE
#define BOOL_COMPARE(ID, n, classes) return COMPARE_##ID(a, b);
#define BOOL_SAME(ID, n, classes) BOOL_SAME_##classes(ID, n)
#define BOOL_SAME_F NO_CLASS
#define BOOL_SAME_SU NO_CLASS
#define BOOL_SAME_SUF NO_CLASS
#define BOOL_SAME_FSU NO_CLASS
#define BOOL_SAME_BSU(ID, n) return CALL_##n(bool_##ID);

#define BOOL_ROW(ID, n, rule, classes)                                                                                 \
    case OP_##ID: BOOL_##rule(ID, n, classes) break;

static uint64_t eval_bool(enum op op, uint64_t a, uint64_t b)
{
    switch (op) {
#define OP(ID, name, n, rule, classes, effects, msl, doc) BOOL_ROW(ID, n, rule, classes)
#include "ir/ops.def"
    case OP_NONE:
    case OP_COUNT: break;
    }
    return 0;
}

/* ---- integers -------------------------------------------------------------------------------------------------- */

#define INT_BITWISE(ID, T)                                                                                             \
    static T int_NOT_##ID(T a)                                                                                         \
    {                                                                                                                  \
        return (T)~a;                                                                                                  \
    }                                                                                                                  \
    static T int_AND_##ID(T a, T b)                                                                                    \
    {                                                                                                                  \
        return a & b;                                                                                                  \
    }                                                                                                                  \
    static T int_OR_##ID(T a, T b)                                                                                     \
    {                                                                                                                  \
        return a | b;                                                                                                  \
    }                                                                                                                  \
    static T int_XOR_##ID(T a, T b)                                                                                    \
    {                                                                                                                  \
        return a ^ b;                                                                                                  \
    }
#define BITWISE_B(ID, T)
#define BITWISE_S INT_BITWISE
#define BITWISE_U INT_BITWISE
#define BITWISE_F(ID, T)
#define SCALAR(ID, name, msl, bytes, class, bits, ctype) BITWISE_##class(ID, ctype)
#include "ir/types.def"
#undef SCALAR

#define INT_ARGS_1(T) (T) a
#define INT_ARGS_2(T) (T) a, (T)b
#define INT_ARGS_3(T) (T) a, (T)b, (T)c
#define INT_ARGS_SHIFT(T) (T) a, b

#define BY_INT(ID, args)                                                                                               \
    switch (s) {                                                                                                       \
    case S_I8: return (uint64_t)int_##ID##_I8(INT_ARGS_##args(int8_t));                                                \
    case S_U8: return (uint64_t)int_##ID##_U8(INT_ARGS_##args(uint8_t));                                               \
    case S_I16: return (uint64_t)int_##ID##_I16(INT_ARGS_##args(int16_t));                                             \
    case S_U16: return (uint64_t)int_##ID##_U16(INT_ARGS_##args(uint16_t));                                            \
    case S_I32: return (uint64_t)int_##ID##_I32(INT_ARGS_##args(int32_t));                                             \
    case S_U32: return (uint64_t)int_##ID##_U32(INT_ARGS_##args(uint32_t));                                            \
    case S_I64: return (uint64_t)int_##ID##_I64(INT_ARGS_##args(int64_t));                                             \
    case S_U64: return (uint64_t)int_##ID##_U64(INT_ARGS_##args(uint64_t));                                            \
    case S_VOID:                                                                                                       \
    case S_BOOL:                                                                                                       \
    case S_F16:                                                                                                        \
    case S_BF16:                                                                                                       \
    case S_F32:                                                                                                        \
    case S_COUNT: break;                                                                                               \
    }

#define INT_NONE NO_RULE
#define INT_GIVEN NO_RULE
#define INT_LANES NO_RULE
#define INT_VOTE NO_RULE
#define INT_SELECT NO_RULE
#define INT_COMPARE(ID, n, classes)                                                                                    \
    return scalar_info[s].class_ == CLASS_S ? COMPARE_##ID(as_signed(s, a), as_signed(s, b)) : COMPARE_##ID(a, b);
#define INT_SHIFT(ID, n, classes) BY_INT(ID, SHIFT)
#define INT_SAME(ID, n, classes) INT_SAME_##classes(ID, n)
#define INT_SAME_F NO_CLASS
#define INT_SAME_SU BY_INT
#define INT_SAME_SUF BY_INT
#define INT_SAME_FSU BY_INT
#define INT_SAME_BSU BY_INT

#define INT_ROW(ID, n, rule, classes)                                                                                  \
    case OP_##ID: INT_##rule(ID, n, classes) break;

static uint64_t eval_int(enum op op, enum scalar s, uint64_t a, uint64_t b, uint64_t c)
{
    switch (op) {
#define OP(ID, name, n, rule, classes, effects, msl, doc) INT_ROW(ID, n, rule, classes)
#include "ir/ops.def"
    case OP_NONE:
    case OP_COUNT: break;
    }
    return 0;
}

/* ---- floats ---------------------------------------------------------------------------------------------------- */

static float float_of(enum scalar s, uint64_t bits)
{
    if (s == S_F16)
        return f16_to_f32((uint16_t)bits);
    if (s == S_BF16)
        return bf16_to_f32((uint16_t)bits);
    return f32_bits((uint32_t)bits);
}

static uint64_t bits_of(enum scalar s, float x)
{
    if (s == S_F16)
        return x != x ? 0x7e00 : f16_from_f32(x);
    if (s == S_BF16)
        return x != x ? 0x7fc0 : bf16_from_f32(x);
    return x != x ? 0x7fc00000 : bits_f32(x);
}

static float math_NEG(float a)
{
    return -a;
}

static float math_ADD(float a, float b)
{
    return a + b;
}

static float math_SUB(float a, float b)
{
    return a - b;
}

static float math_MUL(float a, float b)
{
    return a * b;
}

static float math_DIV(float a, float b)
{
    return a / b;
}

#define FLOAT_NONE NO_RULE
#define FLOAT_GIVEN NO_RULE
#define FLOAT_SHIFT NO_RULE
#define FLOAT_LANES NO_RULE
#define FLOAT_VOTE NO_RULE
#define FLOAT_SELECT NO_RULE
#define FLOAT_COMPARE(ID, n, classes) return COMPARE_##ID(a, b);
#define FLOAT_SAME(ID, n, classes) FLOAT_SAME_##classes(ID, n)
#define FLOAT_CALL(ID, n) return bits_of(s, CALL_##n(math_##ID));
#define FLOAT_SAME_F FLOAT_CALL
#define FLOAT_SAME_SUF FLOAT_CALL
#define FLOAT_SAME_FSU FLOAT_CALL
#define FLOAT_SAME_SU NO_CLASS
#define FLOAT_SAME_BSU NO_CLASS

#define FLOAT_ROW(ID, n, rule, classes)                                                                                \
    case OP_##ID: FLOAT_##rule(ID, n, classes) break;

static uint64_t eval_float(enum op op, enum scalar s, float a, float b, float c)
{
    switch (op) {
#define OP(ID, name, n, rule, classes, effects, msl, doc) FLOAT_ROW(ID, n, rule, classes)
#include "ir/ops.def"
    case OP_NONE:
    case OP_COUNT: break;
    }
    return 0;
}

/* Rows without a fast form mean the same with the flag. */
static uint64_t eval_fast(enum op op, enum scalar s, float a, float b, float c)
{
#define FAST_0(ID, arity)
#define FAST_1(ID, arity)                                                                                              \
    if (op == OP_##ID)                                                                                                 \
        return bits_of(s, CALL_##arity(math_fast_##ID));
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc) FAST_##fast(ID, arity)
#include "ir/math.def"
#undef MATH
    return eval_float(op, s, a, b, c);
}

/* ---- conversions ----------------------------------------------------------------------------------------------- */

#define FLOAT_TO_B(ID) x != 0
#define FLOAT_TO_S(ID) (uint64_t) int_from_f32_##ID(x)
#define FLOAT_TO_U(ID) int_from_f32_##ID(x)
#define FLOAT_TO_F(ID) bits_of(to, x)
#define FLOAT_TO(ID, class)                                                                                            \
    case S_##ID: return FLOAT_TO_##class(ID);

static uint64_t float_to(enum scalar to, float x)
{
    switch (to) {
#define SCALAR(ID, name, msl, bytes, class, bits, ctype) FLOAT_TO(ID, class)
#include "ir/types.def"
#undef SCALAR
    case S_VOID:
    case S_COUNT: break;
    }
    return 0;
}

static uint64_t convert(enum scalar s, enum scalar to, uint64_t a)
{
    if (scalar_info[s].class_ == CLASS_F)
        return float_to(to, float_of(s, a));
    const bool is_signed = scalar_info[s].class_ == CLASS_S;
    const int64_t i = is_signed ? as_signed(s, a) : 0;
    if (to == S_BOOL)
        return a != 0;
    if (to == S_F16)
        return is_signed ? f16_from_i64(i) : f16_from_u64(a);
    if (to == S_BF16)
        return is_signed ? bf16_from_i64(i) : bf16_from_u64(a);
    if (to == S_F32)
        return bits_f32(is_signed ? (float)i : (float)a);
    return is_signed ? (uint64_t)i : a;
}

/* ---------------------------------------------------------------------------------------------------------------- */

uint64_t ir_scalar_eval(enum op op, enum scalar s, enum scalar to, unsigned flags, uint64_t a, uint64_t b, uint64_t c)
{
    if (op == OP_CONVERT)
        return mask(to, convert(s, to, a));
    if (op == OP_BITCAST)
        return a;
    if (op == OP_SELECT)
        return a ? b : c;
    switch (scalar_info[s].class_) {
    case CLASS_B: return eval_bool(op, a, b);
    case CLASS_S:
    case CLASS_U: return mask(op_info[op].rule == RULE_COMPARE ? S_BOOL : s, eval_int(op, s, a, b, c));
    case CLASS_F: {
        const uint64_t sign = (uint64_t)1 << (scalar_info[s].bits - 1);
        if (op == OP_NEG)
            return a ^ sign;
        if (op == OP_ABS || op == OP_FABS)
            return a & ~sign;
        if (op == OP_FMA && s != S_F32)
            return bits_of(s, math_fma_odd(float_of(s, a), float_of(s, b), float_of(s, c)));
        return (flags & NODE_FAST ? eval_fast : eval_float)(op, s, float_of(s, a), float_of(s, b), float_of(s, c));
    }
    }
    return 0;
}
