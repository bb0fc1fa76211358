/* scalar.c - ir_scalar_eval: every elementwise operation on every type it allows, against 128-bit integers and doubles;
 * and that constant folding says the same.
 *
 * The f32 functions of math.def have their own test (math.c); here they are taken as given, and what is checked is that
 * each is reached, that f16 and bf16 round once more, and the operators, which have no other test.
 */
#include "ir/ir.h"
#include "ir/math.h"

#include <stdlib.h>

#include "check.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1du;
}

static bool is_float(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_F;
}
static bool is_signed(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_S;
}

static uint64_t mask(enum scalar s)
{
    return ~(uint64_t)0 >> (64 - scalar_info[s].bits);
}

static wide least(enum scalar s)
{
    return is_signed(s) ? -((wide)1 << (scalar_info[s].bits - 1)) : 0;
}
static wide most(enum scalar s)
{
    return least(s) + (wide)mask(s);
}

/* The integer that the bits stand for. */
static wide value(enum scalar s, uint64_t bits)
{
    return is_signed(s) && bits >> (scalar_info[s].bits - 1) ? (wide)bits - (wide)mask(s) - 1 : (wide)bits;
}

static double f64(enum scalar s, uint64_t bits)
{
    return (double)(s == S_F16    ? f16_to_f32((uint16_t)bits)
                    : s == S_BF16 ? bf16_to_f32((uint16_t)bits)
                                  : f32_bits((uint32_t)bits));
}

static uint64_t quiet_nan(enum scalar s)
{
    return s == S_F16 ? 0x7e00 : s == S_BF16 ? 0x7fc0 : 0x7fc00000;
}

/* One rounding of a double; a double's own rounding of f32 + - * / does not show (53 >= 2 * 24 + 2). */
static uint64_t round_to(enum scalar s, double x)
{
    if (isnan(x))
        return quiet_nan(s);
    return s == S_F16 ? f16_from_f64(x) : s == S_BF16 ? bf16_from_f64(x) : bits_f32((float)x);
}

/* ---- what is right --------------------------------------------------------------------------------------------- */

static wide floor_div(wide a, wide b)
{
    wide q = a / b;
    while (q * b > a ? b > 0 : q * b < a && b < 0)
        q--;
    return q;
}

/* Left to right over the exponent's bits. */
static uint64_t power(uint64_t base, uint64_t e)
{
    uint64_t r = 1;
    for (int i = 63; i >= 0; i--) {
        r *= r;
        if (e >> i & 1)
            r *= base;
    }
    return r;
}

static bool compare(enum op op, int order) /* -1, 0, 1; 2: unordered */
{
    if (op == OP_EQ)
        return order == 0;
    if (op == OP_NE)
        return order != 0;
    if (op == OP_LT)
        return order == -1;
    if (op == OP_LE)
        return order == -1 || order == 0;
    if (op == OP_GT)
        return order == 1;
    return order == 1 || order == 0;
}

static bool integer_answer(enum op op, enum scalar s, const uint64_t x[3], uint64_t *out)
{
    const wide a = value(s, x[0]), b = value(s, x[1]), c = value(s, x[2]);
    wide r = 0;
    if (op_info[op].rule == RULE_COMPARE) {
        *out = compare(op, a < b ? -1 : a > b);
        return true;
    }
    if (op == OP_NEG)
        r = -a;
    else if (op == OP_NOT)
        r = -1 - a;
    else if (op == OP_ADD)
        r = a + b;
    else if (op == OP_SUB)
        r = a - b;
    else if (op == OP_MUL)
        r = (wide)((uwide)a * (uwide)b);
    else if (op == OP_DIV_TRUNC)
        r = b ? a / b : 0;
    else if (op == OP_REM_TRUNC)
        r = b ? a % b : 0;
    else if (op == OP_DIV_FLOOR)
        r = b ? floor_div(a, b) : 0;
    else if (op == OP_REM_FLOOR)
        r = b ? a - b * floor_div(a, b) : 0;
    else if (op == OP_IPOW)
        r = b >= 0 ? (wide)power((uint64_t)a, (uint64_t)b) : a == 1 ? 1 : a == -1 ? ((b & 1) ? -1 : 1) : 0;
    else if (op == OP_AND)
        r = a & b;
    else if (op == OP_OR)
        r = a | b;
    else if (op == OP_XOR)
        r = a ^ b;
    else if (op == OP_SHL)
        r = (wide)((uwide)a << (x[1] % scalar_info[s].bits));
    else if (op == OP_SHR)
        r = a >> (x[1] % scalar_info[s].bits);
    else if (op == OP_ABS)
        r = a < 0 ? -a : a;
    else if (op == OP_MIN)
        r = a < b ? a : b;
    else if (op == OP_MAX)
        r = a > b ? a : b;
    else if (op == OP_CLAMP)
        r = (a > b ? a : b) < c ? (a > b ? a : b) : c;
    else
        return false;
    *out = (uint64_t)r & mask(s);
    return true;
}

static bool bool_answer(enum op op, const uint64_t x[3], uint64_t *out)
{
    const bool a = x[0] != 0, b = x[1] != 0;
    if (op_info[op].rule == RULE_COMPARE)
        *out = compare(op, a - b);
    else if (op == OP_NOT)
        *out = !a;
    else if (op == OP_AND)
        *out = a && b;
    else if (op == OP_OR)
        *out = a || b;
    else if (op == OP_XOR)
        *out = a != b;
    else
        return false;
    return true;
}

/* NumPy's divmod of finite a, b != 0 whose quotient is small enough to be exact. */
static bool exact_quotient(enum scalar s, double a, double b)
{
    return isfinite(a) && isfinite(b) && b != 0 && fabs(a / b) < (s == S_BF16 ? 128 : 2048);
}

static double floor_mod(double a, double b)
{
    const double r = fmod(a, b);
    return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r;
}

/* Operators; *known false: the answer is not checked for these operands. */
static bool float_answer(enum op op, enum scalar s, const uint64_t x[3], uint64_t *out, bool *known)
{
    const double a = f64(s, x[0]), b = f64(s, x[1]);
    const uint64_t sign = (mask(s) >> 1) + 1;
    if (op_info[op].rule == RULE_COMPARE) {
        *out = compare(op, isnan(a) || isnan(b) ? 2 : a < b ? -1 : a > b);
    } else if (op == OP_NEG) {
        *out = x[0] ^ sign;
    } else if (op == OP_ABS || op == OP_FABS) {
        *out = x[0] & ~sign;
    } else if (op == OP_ADD) {
        *out = round_to(s, a + b);
    } else if (op == OP_SUB) {
        *out = round_to(s, a - b);
    } else if (op == OP_MUL) {
        *out = round_to(s, a * b);
    } else if (op == OP_DIV) {
        *out = round_to(s, a / b);
    } else if (op == OP_SQRT) {
        *out = round_to(s, sqrt(a));
    } else if (op == OP_DIV_FLOOR) {
        *known = exact_quotient(s, a, b);
        const double q = floor((a - floor_mod(a, b)) / b + 0.5);
        *out = round_to(s, q == 0 ? copysign(0, a / b) : q);
    } else if (op == OP_REM_FLOOR) {
        /* NumPy computes f16 in f32: the remainder is rounded there first. */
        *known = isfinite(a) && isfinite(b) && b != 0;
        *out = round_to(s, (double)(float)floor_mod(a, b));
    } else {
        return false;
    }
    return true;
}

/* x * y + z of 16-bit floats, rounded once: in double the product is exact; a sum that is not moves to the neighbour
 * beyond which the exact value lies, so that it is no longer on a tie of the shorter format. */
static double fma_once(double x, double y, double z)
{
    const double p = x * y, sum = p + z;
    const double big = fabs(p) > fabs(z) ? p : z, small = fabs(p) > fabs(z) ? z : p;
    const double rest = small - (sum - big);
    return isfinite(sum) && rest != 0 ? nextafter(sum, rest > 0 ? INFINITY : -INFINITY) : sum;
}

/* Rows of math.def on floats: the f32 function, rounded once more. */
static bool math_answer(enum op op, enum scalar s, unsigned flags, const uint64_t x[3], uint64_t *out)
{
    float (*f1)(float) = NULL;
    float (*f2)(float, float) = NULL;
    float (*f3)(float, float, float) = NULL;
#define FAST_0(ID, n) f##n = math_##ID;
#define FAST_1(ID, n)                                                                                                  \
    if (flags & NODE_FAST)                                                                                             \
        f##n = math_fast_##ID;                                                                                         \
    else                                                                                                               \
        f##n = math_##ID;
#define MATH(ID, name, n, classes, python, fast, ulp, fast_ulp, doc)                                                   \
    if (op == OP_##ID) {                                                                                               \
        FAST_##fast(ID, n)                                                                                             \
    }
#include "ir/math.def"
#undef MATH
    const float a = (float)f64(s, x[0]), b = (float)f64(s, x[1]), c = (float)f64(s, x[2]);
    if (op == OP_FMA && s != S_F32)
        *out = round_to(s, fma_once((double)a, (double)b, (double)c));
    else if (f1)
        *out = round_to(s, (double)f1(a));
    else if (f2)
        *out = round_to(s, (double)f2(a, b));
    else if (f3)
        *out = round_to(s, (double)f3(a, b, c));
    return f1 || f2 || f3;
}

/* ---- operands -------------------------------------------------------------------------------------------------- */

#define EDGES 24
/* Zero, small, largest, smallest, their neighbours; for floats also halves, infinities, NaNs, the smallest denormal. */
static uint64_t edge(enum scalar s, unsigned k)
{
    static const double floats[] = {0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7, 100, 0.1, 0x1p-20, -0x1.8p-14};
    if (s == S_BOOL)
        return k & 1;
    if (!is_float(s))
        return (k % 4 == 0   ? k / 4
                : k % 4 == 1 ? 0u - (uint64_t)(k / 4)
                : k % 4 == 2 ? (uint64_t)most(s) - k / 4
                             : (uint64_t)least(s) + k / 4) &
               mask(s);
    const uint64_t inf = s == S_F16 ? 0x7c00 : s == S_BF16 ? 0x7f80 : 0x7f800000;
    const uint64_t sign = (mask(s) >> 1) + 1;
    const uint64_t bits[] = {inf, inf | sign, inf - 1, (inf - 1) | sign, inf + 1, mask(s), quiet_nan(s), 1, sign | 1};
    if (k < sizeof bits / sizeof *bits)
        return bits[k];
    return round_to(s, floats[(k - sizeof bits / sizeof *bits) % (sizeof floats / sizeof *floats)]);
}

/* Edges, any bits, and floats or integers of moderate size. */
static uint64_t any_operand(enum scalar s, uint64_t *state)
{
    const uint64_t r = next_random(state);
    if (r % 4 == 0)
        return edge(s, (unsigned)(r >> 8) % EDGES);
    if (r % 4 == 1)
        return r >> 8 & mask(s) >> (r >> 2 & 3) * (scalar_info[s].bits / 4u);
    if (r % 4 == 2 && is_float(s))
        return round_to(s, (double)(int64_t)(r >> 40) * 0x1p-12 - 2048);
    return next_random(state) & mask(s);
}

/* ---- checks ---------------------------------------------------------------------------------------------------- */

static void same_bits(enum op op, enum scalar s, const uint64_t x[3], uint64_t got, uint64_t want)
{
    check_count++;
    if (got != want)
        CHECK_FAIL_("%s %s %#jx %#jx %#jx is %#jx, not %#jx", op_info[op].name, scalar_info[s].name, (uintmax_t)x[0],
                    (uintmax_t)x[1], (uintmax_t)x[2], (uintmax_t)got, (uintmax_t)want);
}

static struct ir_builder builder;

/* Folding a node of constants gives the constant. */
static void folds(enum op op, enum scalar s, enum scalar second, ir_type result, const uint64_t x[3], uint64_t want)
{
    struct ir_module *const m = builder.m;
    const uint32_t in[3] = {ir_const(m, (ir_type)s, x[0]), ir_const(m, (ir_type)second, x[1]),
                            ir_const(m, (ir_type)s, x[2])};
    const uint32_t id = ir_op(&builder, op, (unsigned)op_info[op].n, in, 0);
    CHECK_EQ(ir_at(m, id)->op, OP_CONST);
    CHECK_EQ(ir_at(m, id)->type, result);
    same_bits(op, s, x, ir_at(m, id)->imm, want);
}

static void check_operands(enum op op, enum scalar s, const uint64_t x[3], bool fold)
{
    const bool comparison = op_info[op].rule == RULE_COMPARE;
    for (unsigned flags = 0; flags <= NODE_FAST; flags++) {
        uint64_t want = 0;
        bool known = true;
        bool found;
        if (s == S_BOOL)
            found = bool_answer(op, x, &want);
        else if (is_float(s))
            found = float_answer(op, s, x, &want, &known) || math_answer(op, s, flags, x, &want);
        else
            found = integer_answer(op, s, x, &want);
        if (!found) {
            CHECK_FAIL_("no reference for %s of %s", op_info[op].name, scalar_info[s].name);
            return;
        }
        if (known && !(flags && op == OP_SQRT))
            same_bits(op, s, x, ir_scalar_eval(op, s, S_VOID, flags, x[0], x[1], x[2]), want);
        if (known && fold && !flags)
            folds(op, s, s, comparison ? TYPE_BOOL : (ir_type)s, x, want);
    }
}

static void check_op(enum op op, enum scalar s)
{
    uint64_t state = 0x9e3779b9u + (uint64_t)op * 64 + s;
    uint64_t x[3] = {0};
    for (unsigned i = 0; i < EDGES; i++) {
        for (unsigned j = 0; j < (op_info[op].n > 1 ? EDGES : 1); j++) {
            x[0] = edge(s, i);
            x[1] = edge(s, j);
            x[2] = edge(s, i * 7 + j);
            check_operands(op, s, x, true);
        }
    }
    for (unsigned i = 0; i < 4000; i++) {
        for (unsigned k = 0; k < 3; k++)
            x[k] = any_operand(s, &state);
        check_operands(op, s, x, i < 20);
    }
    if (op_info[op].n == 1 && scalar_info[s].bits <= 16)
        for (x[0] = 0; x[0] <= mask(s); x[0]++)
            check_operands(op, s, x, false);
}

/* A value from any format in a wider one: doubles are exact but for 64-bit integers, whose rounding is done by hand. */
static uint64_t integer_to_float(enum scalar to, wide v)
{
    const wide a = v < 0 ? -v : v;
    double x;
    if (a >> 53) { /* 30 leading bits and one that stands for the rest: enough for 24 */
        int shift = 0;
        while (a >> shift >> 30)
            shift++;
        const bool rest = ((a >> shift) << shift) != a;
        x = ldexp((double)((a >> shift) * 2 + rest), shift - 1);
    } else {
        x = (double)a;
    }
    return round_to(to, v < 0 ? -x : x);
}

static uint64_t converted(enum scalar s, enum scalar to, uint64_t bits)
{
    if (is_float(s)) {
        const double x = f64(s, bits);
        if (to == S_BOOL)
            return !(x == 0);
        if (is_float(to))
            return round_to(to, x);
        if (isnan(x))
            return 0;
        return (uint64_t)(x <= (double)least(to) ? least(to) : x >= (double)most(to) ? most(to) : (wide)x) & mask(to);
    }
    if (to == S_BOOL)
        return bits != 0;
    return is_float(to) ? integer_to_float(to, value(s, bits)) : (uint64_t)value(s, bits) & mask(to);
}

static void check_convert(enum scalar s, enum scalar to)
{
    uint64_t state = 0x1234567u + (uint64_t)s * 16 + to;
    for (unsigned i = 0; i < 20000; i++) {
        const uint64_t x[3] = {i < EDGES ? edge(s, i) : any_operand(s, &state)};
        const uint64_t want = converted(s, to, x[0]);
        same_bits(OP_CONVERT, s, x, ir_scalar_eval(OP_CONVERT, s, to, 0, x[0], 0, 0), want);
        if (i < 2 * EDGES && s != to) {
            const uint32_t id = ir_convert(&builder, (ir_type)to, ir_const(builder.m, (ir_type)s, x[0]));
            CHECK_EQ(ir_at(builder.m, id)->op, OP_CONST);
            same_bits(OP_CONVERT, s, x, ir_at(builder.m, id)->imm, want);
        }
        if (scalar_info[s].bytes == scalar_info[to].bytes && s != S_BOOL && to != S_BOOL)
            same_bits(OP_BITCAST, s, x, ir_scalar_eval(OP_BITCAST, s, to, 0, x[0], 0, 0), x[0]);
        CHECK_EQ(ir_scalar_eval(OP_SELECT, S_BOOL, S_VOID, 0, i & 1, x[0], ~x[0]), i & 1 ? x[0] : ~x[0]);
    }
}

/* Shift counts of other types than the operand's, negative ones included. */
static void check_shift(enum scalar s, enum scalar count)
{
    for (unsigned i = 0; i < EDGES * EDGES; i++) {
        uint64_t x[3] = {edge(s, i / EDGES), edge(count, i % EDGES)}, want;
        for (int k = 0; k < 2; k++) {
            const enum op op = k ? OP_SHL : OP_SHR;
            /* modulo the width as mathematics has it */
            const int bits = scalar_info[s].bits;
            const uint64_t modulo = (uint64_t)((value(count, x[1]) % bits + bits) % bits);
            CHECK(integer_answer(op, s, (const uint64_t[3]){x[0], modulo}, &want));
            same_bits(op, s, x, ir_scalar_eval(op, s, S_VOID, 0, x[0], x[1], 0), want);
            if (i % 5 == 0)
                folds(op, s, count, (ir_type)s, x, want);
        }
    }
}

/* Cases that the language's text names. */
static void check_named(void)
{
#define F(x) bits_f32(x)
#define EVAL(op, s, a, b) ir_scalar_eval(OP_##op, S_##s, S_VOID, 0, (uint64_t)(a), (uint64_t)(b), 0)
    CHECK_EQ(EVAL(DIV_FLOOR, I32, (uint32_t)-7, 2), (uint32_t)-4);
    CHECK_EQ(EVAL(REM_FLOOR, I32, (uint32_t)-7, 2), 1);
    CHECK_EQ(EVAL(DIV_FLOOR, I32, 0x80000000u, 0xffffffffu), 0x80000000u);
    CHECK_EQ(EVAL(REM_FLOOR, I32, 0x80000000u, 0xffffffffu), 0);
    CHECK_EQ(EVAL(DIV_FLOOR, U8, 7, 0), 0);
    CHECK_EQ(EVAL(REM_TRUNC, I64, 7, 0), 0);
    CHECK_EQ(EVAL(IPOW, I32, 3, 40), 12157665459056928801u & 0xffffffffu);
    CHECK_EQ(EVAL(IPOW, I32, 0, 0), 1);
    CHECK_EQ(EVAL(SHL, U32, 1, 33), 2);
    CHECK_EQ(EVAL(ABS, I8, 0x80, 0), 0x80);
    CHECK_EQ(EVAL(NEG, I64, (uint64_t)1 << 63, 0), (uint64_t)1 << 63);
    CHECK_EQ(EVAL(ADD, F16, 0x7bff, 0x7bff), 0x7c00);
    CHECK_EQ(EVAL(ADD, F16, 0x6800, 0x3c00), 0x6800); /* 2048 + 1: to even */
    CHECK_EQ(EVAL(MUL, F32, F(1e-38f), F(0.1f)), F(1e-39f));
    CHECK_EQ(EVAL(DIV, F32, F(1), F(-0.0f)), F(-INFINITY));
    CHECK_EQ(EVAL(DIV, F32, 0, 0), 0x7fc00000);
    CHECK_EQ(EVAL(SUB, F32, F(INFINITY), F(INFINITY)), 0x7fc00000);
    CHECK_EQ(EVAL(SUB, BF16, 0x7f80, 0x7f80), 0x7fc0);
    CHECK_EQ(EVAL(NEG, F32, 0x7f800001, 0), 0xff800001);
    CHECK_EQ(EVAL(FABS, F32, 0xffc00000, 0), 0x7fc00000);
    CHECK_EQ(EVAL(SIGN, F32, 0x7fc00000, 0), 0);
    CHECK_EQ(EVAL(SIGN, F32, F(-0.0f), 0), F(-0.0f));
    CHECK_EQ(EVAL(MIN, F32, 0x7fc00000, F(2)), F(2));
    CHECK_EQ(EVAL(MAX, F16, 0x3c00, 0xfe00), 0x3c00);
    CHECK_EQ(EVAL(DIV_FLOOR, F32, F(-7), F(2)), F(-4));
    CHECK_EQ(EVAL(REM_FLOOR, F32, F(-7), F(2)), F(1));
    CHECK_EQ(EVAL(REM_FLOOR, F32, F(7), F(-2)), F(-1));
    CHECK_EQ(EVAL(DIV_FLOOR, F32, F(1), F(0)), F(INFINITY));
    CHECK_EQ(EVAL(DIV_FLOOR, F32, F(-1), F(0)), F(-INFINITY));
    CHECK_EQ(EVAL(DIV_FLOOR, F32, F(0), F(0)), 0x7fc00000);
    CHECK_EQ(EVAL(REM_FLOOR, F32, F(1), F(0)), 0x7fc00000);
    CHECK_EQ(EVAL(REM_FLOOR, F32, F(-1), F(INFINITY)), F(INFINITY));
    CHECK_EQ(EVAL(FMOD, F32, F(-7), F(2)), F(-1));
    CHECK_EQ(EVAL(EQ, F32, 0x7fc00000, 0x7fc00000), 0);
    CHECK_EQ(EVAL(NE, BF16, 0x7fc0, 0x7fc0), 1);
    CHECK_EQ(EVAL(EQ, F16, 0, 0x8000), 1);
    CHECK_EQ(EVAL(LT, I8, 0xff, 0), 1);
    CHECK_EQ(EVAL(LT, U8, 0xff, 0), 0);
    CHECK_EQ(EVAL(LT, BOOL, 0, 1), 1);
    CHECK_EQ(EVAL(ROUND, F32, F(-2.5f), 0), F(-3));
    CHECK_EQ(EVAL(RINT, F32, F(2.5f), 0), F(2));
#undef EVAL
#define CONVERT(s, to, a) ir_scalar_eval(OP_CONVERT, S_##s, S_##to, 0, (uint64_t)(a), 0, 0)
    CHECK_EQ(CONVERT(F32, I32, F(-1.9f)), (uint32_t)-1);
    CHECK_EQ(CONVERT(F32, U8, F(-1)), 0);
    CHECK_EQ(CONVERT(F32, U8, F(300)), 255);
    CHECK_EQ(CONVERT(F32, I8, F(-INFINITY)), 0x80);
    CHECK_EQ(CONVERT(F32, U64, F(INFINITY)), UINT64_MAX);
    CHECK_EQ(CONVERT(F32, I32, 0xffc00000), 0);
    CHECK_EQ(CONVERT(F32, BOOL, 0x7fc00000), 1);
    CHECK_EQ(CONVERT(F32, BOOL, F(-0.0f)), 0);
    CHECK_EQ(CONVERT(F32, F16, 0x7f800001), 0x7e00);
    CHECK_EQ(CONVERT(F32, F16, F(65520)), 0x7c00);
    CHECK_EQ(CONVERT(I32, U8, 0xffffffff), 0xff);
    CHECK_EQ(CONVERT(I8, U64, 0xff), UINT64_MAX);
    CHECK_EQ(CONVERT(U32, F32, 0xffffffff), F(0x1p32f));
    CHECK_EQ(CONVERT(I64, F32, 0x4000004000000001), F(0x1.000002p62f)); /* past a tie that a double would make */
    CHECK_EQ(CONVERT(BOOL, F16, 1), 0x3c00);
}

static void check_all(void)
{
    for (enum op op = 1; op < OP_COUNT; op++) {
        const struct op_info *const row = &op_info[op];
        if (row->rule != RULE_SAME && row->rule != RULE_COMPARE && row->rule != RULE_SHIFT)
            continue;
        for (enum scalar s = S_BOOL; s < S_COUNT; s++)
            if (scalar_info[s].class_ & row->classes)
                check_op(op, s);
    }
    for (enum scalar s = S_BOOL; s < S_COUNT; s++)
        for (enum scalar to = S_BOOL; to < S_COUNT; to++) {
            check_convert(s, to);
            if (!is_float(s) && !is_float(to) && s != S_BOOL && to != S_BOOL)
                check_shift(s, to);
        }
    check_named();
}

static sk_status run(struct mem *m)
{
    builder.m = ir_module_new(m);
    builder.func = ir_func(builder.m, ir_string(builder.m, "f"), true, TYPE_VOID, 0);
    builder.region = builder.m->funcs.at[builder.func].region;
    check_all();
    CHECK_EQ(ir_region_at(builder.m, builder.region)->first, 0); /* all were folded */
    ir_module_free(builder.m);
    return SK_OK;
}

/* Apart from main, whose recovery point would make the compiler doubt every local it inlines. */
__attribute__((noinline)) static sk_status run_guarded(struct mem *m)
{
    return run(m);
}

int main(void)
{
    struct mem m;
    mem_init(&m, NULL);
    sk_error err = {0};
    volatile sk_status status = SK_OK;
    MEM_GUARD(&m, &err, status, run_guarded(&m));
    CHECK_EQ(status, SK_OK);
    CHECK_EQ(m.live, 0);
    return check_done();
}
