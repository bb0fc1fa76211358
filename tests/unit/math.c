/* math.c - the functions of math.def: their error against the C library's double functions, their edge cases; the
 * integer operators; conversions.
 *
 * `math STRIDE [NAME]` instead prints the errors found on every STRIDE-th bit pattern (1: all, a minute each).
 */
#include "ir/math.h"

#include <float.h>
#include <stdlib.h>

#include "check.h"

#define TINY FLT_TRUE_MIN
#define STRIDE 4001u /* prime */

static uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state * 0x2545f4914f6cdd1du) >> 32);
}

/* ---- what is right ---------------------------------------------------------------------------------------------- */

/* Distance in units of the last place that a float has at `want`; infinite if one is NaN, or both are zeros of unequal
 * sign. Past FLT_MAX the last binade goes on. */
static double ulp_error(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
    if (want == 0 && got == 0)
        return (signbit(want) != 0) == (signbit(got) != 0) ? 0 : HUGE_VAL;
    double g = (double)got;
    if (isinf(got) && !isinf(want))
        g = copysign(0x1p128, g);
    if (isinf(want))
        return isinf(got) && g == want ? 0 : HUGE_VAL;
    if (isinf(got) && fabs(want) >= 0x1p128)
        return g * want > 0 ? 0 : HUGE_VAL;
    int e;
    frexp(want, &e);
    e = e - 1 < -126 ? -126 : e - 1 > 127 ? 127 : e - 1;
    return fabs(g - want) * ldexp(1, 23 - e);
}

/* The double function for each row. */
#define ref_EXP exp
#define ref_EXP2 exp2
#define ref_LOG log
#define ref_LOG2 log2
#define ref_LOG10 log10
#define ref_SQRT sqrt
#define ref_SIN sin
#define ref_COS cos
#define ref_TAN tan
#define ref_ASIN asin
#define ref_ACOS acos
#define ref_ATAN atan
#define ref_SINH sinh
#define ref_COSH cosh
#define ref_TANH tanh
#define ref_FLOOR floor
#define ref_CEIL ceil
#define ref_ROUND round
#define ref_RINT rint
#define ref_TRUNC trunc
#define ref_FABS fabs
#define ref_POW pow
#define ref_FMOD fmod
#define ref_ATAN2 atan2
#define ref_FMA fma
#define ref_ABS fabs
#define ref_MIN ref_FMIN
#define ref_MAX ref_FMAX
static double ref_RSQRT(double x)
{
    return 1 / sqrt(x);
}
static double ref_SIGN(double x)
{
    return isnan(x) ? 0 : x == 0 ? x : copysign(1, x);
}
static double ref_FMIN(double x, double y)
{
    return x == y ? (signbit(x) ? x : y) : fmin(x, y);
}
static double ref_FMAX(double x, double y)
{
    return x == y ? (signbit(x) ? y : x) : fmax(x, y);
}
static double ref_CLAMP(double x, double lo, double hi)
{
    return ref_FMIN(ref_FMAX(x, lo), hi);
}

/* The range of the fast forms, as math.def states it. What the doc calls zero or infinite is checked apart. */
static bool fast_range(const char *name, double x, double y)
{
    const bool normal = fabs(x) >= (double)FLT_MIN || x == 0 || isnan(x);
    if (strcmp(name, "exp") == 0)
        return !(x < -87.3365);
    if (strcmp(name, "exp2") == 0)
        return !(x < -126);
    if (strcmp(name, "sin") == 0 || strcmp(name, "cos") == 0 || strcmp(name, "tan") == 0)
        return fabs(x) <= 0x1p17;
    if (strcmp(name, "sqrt") == 0)
        return true;
    if (strcmp(name, "pow") == 0)
        return x >= (double)FLT_MIN && isfinite(x) && fabs(y * log2(x)) <= 16;
    return normal;
}

/* ---- error over many operands ----------------------------------------------------------------------------------- */

struct row {
    const char *name;
    unsigned arity;
    double ulp;
    bool fast;
    float (*f1)(float);
    double (*ref1)(double);
    float (*f2)(float, float);
    double (*ref2)(double, double);
    float (*f3)(float, float, float);
    double (*ref3)(double, double, double);
    double worst;
    float at[3];
};

static struct row rows[] = {
#define ROW_1(name, f, r, fast, ulp) {name, 1, ulp, fast, .f1 = f, .ref1 = r},
#define ROW_2(name, f, r, fast, ulp) {name, 2, ulp, fast, .f2 = f, .ref2 = r},
#define ROW_3(name, f, r, fast, ulp) {name, 3, ulp, fast, .f3 = f, .ref3 = r},
#define FAST_0(ID, name, arity, ulp)
#define FAST_1(ID, name, arity, ulp) ROW_##arity(name, math_fast_##ID, ref_##ID, true, ulp)
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc)                                               \
    ROW_##arity(name, math_##ID, ref_##ID, false, ulp) FAST_##fast(ID, name, arity, fast_ulp)
#include "ir/math.def"
#undef MATH
};
#define ROWS (sizeof rows / sizeof *rows)

static void note(struct row *r, double err, float x, float y, float z)
{
    if (err > r->worst) {
        r->worst = err;
        r->at[0] = x, r->at[1] = y, r->at[2] = z;
    }
}

static void try1(struct row *r, float x)
{
    if (!r->fast || fast_range(r->name, (double)x, 0))
        note(r, ulp_error(r->f1(x), r->ref1((double)x)), x, 0, 0);
}

static void try2(struct row *r, float x, float y)
{
    if (!r->fast || fast_range(r->name, (double)x, (double)y))
        note(r, ulp_error(r->f2(x, y), r->ref2((double)x, (double)y)), x, y, 0);
}

static void try3(struct row *r, float x, float y, float z)
{
    note(r, ulp_error(r->f3(x, y, z), r->ref3((double)x, (double)y, (double)z)), x, y, z);
}

static const float positive_edges[] = {0.0f,
                                       TINY,
                                       3 * TINY,
                                       0x1p-140f,
                                       0x1.fffffcp-127f,
                                       FLT_MIN,
                                       0x1.8p-100f,
                                       0x1p-24f,
                                       0x1p-12f,
                                       0.1f,
                                       0.25f,
                                       0.5f,
                                       0x1.000002p-1f,
                                       0.70710678f,
                                       0x1.fffffep-1f,
                                       1.0f,
                                       0x1.000002p0f,
                                       1.5f,
                                       2.0f,
                                       2.5f,
                                       2.7182817f,
                                       3.0f,
                                       3.1415927f,
                                       4.0f,
                                       10.0f,
                                       22.0f,
                                       88.72283f,
                                       88.72284f,
                                       87.33654f,
                                       89.41598f,
                                       89.41599f,
                                       103.97208f,
                                       126.0f,
                                       127.0f,
                                       128.0f,
                                       149.0f,
                                       150.0f,
                                       355.0f,
                                       100000.0f,
                                       0x1.fffffep16f,
                                       0x1p17f,
                                       8388607.5f,
                                       0x1p23f,
                                       0x1p23f + 1,
                                       0x1p24f,
                                       0x1p25f + 4,
                                       1e10f,
                                       0x1.0p63f,
                                       0x1p100f,
                                       FLT_MAX / 2,
                                       FLT_MAX,
                                       INFINITY,
                                       NAN};
#define EDGES (2 * sizeof positive_edges / sizeof *positive_edges)

static float edge(size_t i)
{
    const float e = positive_edges[i / 2];
    return i & 1 ? -e : e;
}

static float any_float(uint64_t *state)
{
    return f32_bits(next_random(state));
}

/* lo to hi, evenly. */
static float between(uint64_t *state, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(next_random(state) >> 8) * 0x1p-24f);
}

static void sweep1(struct row *r, uint32_t stride)
{
    for (size_t i = 0; i < EDGES; i++)
        try1(r, edge(i));
    for (uint32_t h = 0; h < 0x10000; h++)
        try1(r, f16_to_f32((uint16_t)h));
    for (uint64_t u = 0; u < 1ull << 32; u += stride)
        try1(r, f32_bits((uint32_t)u));
}

static void sweep2(struct row *r, uint32_t count)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < EDGES; i++)
        for (size_t j = 0; j < EDGES; j++)
            try2(r, edge(i), edge(j));
    for (uint32_t i = 0; i < count; i++) {
        const float x = any_float(&state), y = any_float(&state), p = between(&state, 0, 2), q = between(&state, -2, 2);
        try2(r, x, y);
        try2(r, p, between(&state, -40, 40));
        try2(r, p, x);
        try2(r, fabsf(x), q);
        try2(r, x, rintf(4 * q));
        try2(r, q, p);
        try2(r, rintf(20 * q), rintf(4 * p));
    }
}

static void sweep3(struct row *r, uint32_t count)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < EDGES; i++)
        for (size_t j = 0; j < EDGES; j++)
            for (size_t k = 0; k < EDGES; k += 3)
                try3(r, edge(i), edge(j), edge(k));
    for (uint32_t i = 0; i < count; i++)
        try3(r, between(&state, -4, 4), between(&state, -4, 4), between(&state, -4, 4));
}

static void sweep(struct row *r, uint32_t stride)
{
    const uint32_t count = 400000000 / stride;
    if (r->arity == 1)
        sweep1(r, stride);
    else if (r->arity == 2)
        sweep2(r, count);
    else
        sweep3(r, count);
}

static void measure(uint32_t stride, const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct row *const r = &rows[i];
        if (name && strcmp(name, r->name) != 0)
            continue;
        sweep(r, stride);
        printf("%s%-8s %.4f ulp (%g) at %a %a %a\n", r->fast ? "fast_" : "     ", r->name, r->worst, r->ulp,
               (double)r->at[0], (double)r->at[1], (double)r->at[2]);
        fflush(stdout);
    }
}

static void check_errors(void)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct row *const r = &rows[i];
        sweep(r, STRIDE);
        check_count++;
        if (!(r->worst <= (r->ulp > 0 ? r->ulp : 0.5 + 0x1p-20))) /* 0: correctly rounded */
            CHECK_FAIL_("%s%s: %g ulp at %a %a %a", r->fast ? "fast_" : "", r->name, r->worst, (double)r->at[0],
                        (double)r->at[1], (double)r->at[2]);
    }
}

/* ---- edges ------------------------------------------------------------------------------------------------------ */

/* Equal, zeros with their sign; two NaNs are equal. */
static bool same(float a, float b)
{
    return ulp_error(a, (double)b) == 0;
}

#define CHECK_SAME(got, want)                                                                                          \
    do {                                                                                                               \
        const float check_got_ = (got), check_want_ = (want);                                                          \
        check_count++;                                                                                                 \
        if (!same(check_got_, check_want_))                                                                            \
            CHECK_FAIL_("%s is %a, not %a", #got, (double)check_got_, (double)check_want_);                            \
    } while (0)

/* x, y, x // y, x % y as NumPy 2.4 has them. */
static const float floor_division[][4] = {
    {7.0f, 2.0f, 3.0f, 1.0f},
    {-7.0f, 2.0f, -4.0f, 1.0f},
    {7.0f, -2.0f, -4.0f, -1.0f},
    {-7.0f, -2.0f, 3.0f, -1.0f},
    {6.0f, 3.0f, 2.0f, 0.0f},
    {-6.0f, 3.0f, -2.0f, 0.0f},
    {6.0f, -3.0f, -2.0f, -0.0f},
    {0.0f, 3.0f, 0.0f, 0.0f},
    {-0.0f, 3.0f, -0.0f, 0.0f},
    {0.0f, -3.0f, -0.0f, -0.0f},
    {-0.0f, -3.0f, 0.0f, -0.0f},
    {1.0f, 0.1f, 9.0f, 0.09999999f},
    {-1.0f, 0.1f, -10.0f, 1.4901161e-08f},
    {0.3f, 0.1f, 3.0f, 7.450581e-09f},
    {1e10f, 3.0f, 3333333248.0f, 1.0f},
    {TINY, 1.0f, 0.0f, TINY},
    {-TINY, 1.0f, -1.0f, 1.0f},
    {1.0f, INFINITY, 0.0f, 1.0f},
    {-1.0f, INFINITY, -1.0f, INFINITY},
    {1.0f, -INFINITY, -1.0f, -INFINITY},
    {-1.0f, -INFINITY, 0.0f, -1.0f},
    {0.0f, INFINITY, 0.0f, 0.0f},
    {-0.0f, -INFINITY, 0.0f, -0.0f},
    {INFINITY, 1.0f, NAN, NAN},
    {-INFINITY, 2.0f, NAN, NAN},
    {INFINITY, INFINITY, NAN, NAN},
    {1.0f, 0.0f, INFINITY, NAN},
    {-1.0f, 0.0f, -INFINITY, NAN},
    {1.0f, -0.0f, -INFINITY, NAN},
    {0.0f, 0.0f, NAN, NAN},
    {NAN, 1.0f, NAN, NAN},
    {1.0f, NAN, NAN, NAN},
    {NAN, 0.0f, NAN, NAN},
    {3e38f, TINY, INFINITY, 0.0f},
    {0x1p24f, 3.0f, 5592405.0f, 1.0f},
    {-0x1p24f, 5.0f, -3355444.0f, 4.0f},
    {5.5f, -1.5f, -4.0f, -0.5f},
    {-0.5f, 1e38f, -1.0f, 1e38f},
    {2.5f, 0.5f, 5.0f, 0.0f},
};

static void check_floor_division(void)
{
    for (size_t i = 0; i < sizeof floor_division / sizeof *floor_division; i++) {
        const float *const c = floor_division[i];
        CHECK_SAME(math_DIV_FLOOR(c[0], c[1]), c[2]);
        CHECK_SAME(math_REM_FLOOR(c[0], c[1]), c[3]);
    }
}

/* Results that a program may count on although the bound would allow more. */
static void check_exact(void)
{
    for (int i = -149; i <= 127; i++) {
        const float p = ldexpf(1, i);
        CHECK_SAME(math_EXP2((float)i), p);
        CHECK_SAME(math_LOG2(p), (float)i);
        CHECK_SAME(math_fast_EXP2((float)i), i < -126 ? 0.0f : p);
        CHECK_SAME(math_fast_LOG2(p), i < -126 ? -INFINITY : (float)i);
        CHECK_SAME(math_POW(2.0f, (float)i), p);
    }
    float ten = 1;
    for (int i = 0; i <= 10; i++, ten *= 10) {
        CHECK_SAME(math_LOG10(ten), (float)i);
        CHECK_SAME(math_POW(10.0f, (float)i), ten);
    }
    for (int i = -4096; i <= 4096; i++) {
        CHECK_SAME(math_POW((float)i, 2.0f), (float)(i * i));
        CHECK_SAME(math_POW((float)(i * i), 0.5f), fabsf((float)i));
    }
    CHECK_SAME(math_EXP(0.0f), 1.0f);
    CHECK_SAME(math_LOG(1.0f), 0.0f);
    CHECK_SAME(math_COS(0.0f), 1.0f);
    CHECK_SAME(math_ACOS(1.0f), 0.0f);
    CHECK_SAME(math_ATAN2(0.0f, -1.0f), 3.14159265f);
    CHECK_SAME(math_TANH(20.0f), 1.0f);
    CHECK_SAME(math_RSQRT(0.25f), 2.0f);
    for (uint64_t u = 0; u < 1ull << 32; u += STRIDE) {
        const float x = f32_bits((uint32_t)u);
        if (fabsf(math_SIN(x)) > 1 || fabsf(math_COS(x)) > 1 || fabsf(math_TANH(x)) > 1 || math_COSH(x) < 1)
            CHECK_FAIL_("out of range at %a", (double)x);
    }
    /* The C library's fmaf rounds once: 24929 * 673 + 2^-40 is above the tie at 2^24 + 1. */
    CHECK_SAME(math_FMA(24929.0f, 673.0f, 0x1p-40f), 16777218.0f);
}

static void check_edges(void)
{
    CHECK_SAME(math_POW(NAN, 0.0f), 1.0f);
    CHECK_SAME(math_POW(1.0f, NAN), 1.0f);
    CHECK_SAME(math_POW(-1.0f, INFINITY), 1.0f);
    CHECK_SAME(math_POW(-0.0f, -3.0f), -INFINITY);
    CHECK_SAME(math_POW(-0.0f, -2.5f), INFINITY);
    CHECK_SAME(math_POW(-INFINITY, 3.0f), -INFINITY);
    CHECK_SAME(math_POW(-2.0f, 0.5f), NAN);
    CHECK_SAME(math_POW(-2.0f, 3.0f), -8.0f);
    CHECK_SAME(math_ATAN2(-0.0f, -0.0f), -3.14159265f);
    CHECK_SAME(math_ATAN2(INFINITY, -INFINITY), 2.3561945f);
    CHECK_SAME(math_FMIN(0.0f, -0.0f), -0.0f);
    CHECK_SAME(math_FMAX(-0.0f, 0.0f), 0.0f);
    CHECK_SAME(math_FMIN(NAN, 1.0f), 1.0f);
    CHECK_SAME(math_FMAX(1.0f, NAN), 1.0f);
    CHECK_SAME(math_CLAMP(NAN, 1.0f, 2.0f), 1.0f);
    CHECK_SAME(math_CLAMP(5.0f, 2.0f, 1.0f), 1.0f);
    CHECK_SAME(math_SIGN(NAN), 0.0f);
    CHECK_SAME(math_SIGN(-0.0f), -0.0f);
    CHECK_SAME(math_ROUND(-2.5f), -3.0f);
    CHECK_SAME(math_ROUND(0x1.fffffep-2f), 0.0f);
    CHECK_SAME(math_ROUND(-0.25f), -0.0f);
    CHECK_SAME(math_RINT(2.5f), 2.0f);
    CHECK_SAME(math_FMOD(-FLT_MAX, TINY), -0.0f);
    CHECK_SAME(math_FMOD(-1.0f, INFINITY), -1.0f);
    /* fast: zero, infinity and NaN as ever, denormals as zero */
    CHECK_SAME(math_fast_EXP(89.0f), INFINITY);
    CHECK_SAME(math_fast_EXP(-INFINITY), 0.0f);
    CHECK_SAME(math_fast_EXP(-90.0f), 0.0f);
    CHECK_SAME(math_fast_EXP(NAN), NAN);
    CHECK_SAME(math_fast_EXP2(128.0f), INFINITY);
    CHECK_SAME(math_fast_LOG(TINY), -INFINITY);
    CHECK_SAME(math_fast_LOG(-TINY), NAN);
    CHECK_SAME(math_fast_LOG10(INFINITY), INFINITY);
    CHECK_SAME(math_fast_RSQRT(TINY), INFINITY);
    CHECK_SAME(math_fast_RSQRT(-0.0f), -INFINITY);
    CHECK_SAME(math_fast_RSQRT(INFINITY), 0.0f);
    CHECK_SAME(math_fast_RSQRT(-1.0f), NAN);
    CHECK_SAME(math_fast_POW(0.0f, 2.0f), 0.0f);
    CHECK_SAME(math_fast_POW(0.0f, -2.0f), INFINITY);
    CHECK_SAME(math_fast_POW(2.0f, 1000.0f), INFINITY);
    CHECK_SAME(math_fast_POW(2.0f, -1000.0f), 0.0f);
    CHECK_SAME(math_fast_POW(-2.0f, 2.0f), NAN);
    CHECK_SAME(math_fast_SIN(-0.0f), -0.0f);
    CHECK_SAME(math_fast_SIN(INFINITY), NAN);
    CHECK_SAME(math_fast_TAN(-INFINITY), NAN);
}

/* ---- integers --------------------------------------------------------------------------------------------------- */

/* All pairs of 8-bit operands against plain int arithmetic, in which nothing overflows. */
static void check_bytes(void)
{
    for (int a = -128; a < 128; a++)
        for (int b = -128; b < 128; b++) {
            const int8_t x = (int8_t)a, y = (int8_t)b;
            const int floored = b ? (int)floor((double)a / b) : 0;
            CHECK_EQ(int_ADD_I8(x, y), (int8_t)(a + b));
            CHECK_EQ(int_SUB_I8(x, y), (int8_t)(a - b));
            CHECK_EQ(int_MUL_I8(x, y), (int8_t)(a * b));
            CHECK_EQ(int_DIV_TRUNC_I8(x, y), (int8_t)(b ? a / b : 0));
            CHECK_EQ(int_REM_TRUNC_I8(x, y), b ? a % b : 0);
            CHECK_EQ(int_DIV_FLOOR_I8(x, y), (int8_t)floored);
            CHECK_EQ(int_REM_FLOOR_I8(x, y), b ? a - floored * b : 0);
            CHECK_EQ(int_MIN_I8(x, y), a < b ? a : b);
            CHECK_EQ(int_MAX_I8(x, y), a > b ? a : b);
            CHECK_EQ(int_SHL_I8(x, (uint64_t)b), (int8_t)(a * (1 << (b & 7))));
            CHECK_EQ(int_SHR_I8(x, (uint64_t)b), (int)floor(ldexp(a, -(b & 7))));
            int8_t p = b < 0 ? (int8_t)(a == 1 ? 1 : a != -1 ? 0 : b & 1 ? -1 : 1) : 1;
            for (int i = 0; i < b; i++)
                p = (int8_t)(p * a);
            CHECK_EQ(int_IPOW_I8(x, y), p);

            const int c = a + 128, d = b + 128;
            const uint8_t u = (uint8_t)c, v = (uint8_t)d;
            CHECK_EQ(int_ADD_U8(u, v), (uint8_t)(c + d));
            CHECK_EQ(int_SUB_U8(u, v), (uint8_t)(c - d));
            CHECK_EQ(int_MUL_U8(u, v), (uint8_t)(c * d));
            CHECK_EQ(int_DIV_FLOOR_U8(u, v), d ? c / d : 0);
            CHECK_EQ(int_REM_FLOOR_U8(u, v), d ? c % d : 0);
            CHECK_EQ(int_SHR_U8(u, v), c >> (d & 7));
            uint8_t q = 1;
            for (int i = 0; i < d; i++)
                q = (uint8_t)(q * c);
            CHECK_EQ(int_IPOW_U8(u, v), q);
        }
    CHECK_EQ(int_NEG_I8(INT8_MIN), INT8_MIN);
    CHECK_EQ(int_ABS_I8(INT8_MIN), INT8_MIN);
    CHECK_EQ(int_CLAMP_I8(5, 2, 1), 1);
}

static void check_wide(void)
{
    CHECK_EQ(int_MUL_U16(65535, 65535), 1);
    CHECK_EQ(int_MUL_I16(-32768, -32768), 0);
    CHECK_EQ(int_ADD_I32(INT32_MAX, 1), INT32_MIN);
    CHECK_EQ(int_MUL_I64(INT64_MIN, -1), INT64_MIN);
    CHECK_EQ(int_NEG_I64(INT64_MIN), INT64_MIN);
    CHECK_EQ(int_NEG_U32(1), UINT32_MAX);
    CHECK_EQ(int_DIV_FLOOR_I32(INT32_MIN, -1), INT32_MIN);
    CHECK_EQ(int_REM_FLOOR_I32(INT32_MIN, -1), 0);
    CHECK_EQ(int_DIV_TRUNC_I64(INT64_MIN, -1), INT64_MIN);
    CHECK_EQ(int_DIV_FLOOR_I64(INT64_MIN, 0), 0);
    CHECK_EQ(int_DIV_FLOOR_I64(INT64_MIN, INT64_MAX), -2);
    CHECK_EQ(int_REM_FLOOR_I64(INT64_MIN, INT64_MAX), INT64_MAX - 1);
    CHECK(int_DIV_FLOOR_U64(UINT64_MAX, 2) == (uint64_t)INT64_MAX);
    CHECK_EQ(int_IPOW_I32(3, 21), (int32_t)(10460353203 & 0xffffffff));
    CHECK_EQ(int_IPOW_I64(-2, 63), INT64_MIN);
    CHECK(int_IPOW_U64(3, UINT64_MAX) == 0xaaaaaaaaaaaaaaabu); /* the inverse of 3 */
    CHECK_EQ(int_SHL_I64(-1, 64 + 63), INT64_MIN);
    CHECK_EQ(int_SHR_I32(INT32_MIN, 31), -1);
    CHECK_EQ(int_SHR_U32(0x80000000u, 63), 1);
}

static void check_conversions(void)
{
    CHECK_EQ(int_from_f32_I8(127.9f), 127);
    CHECK_EQ(int_from_f32_I8(128.0f), 127);
    CHECK_EQ(int_from_f32_I8(-128.9f), -128);
    CHECK_EQ(int_from_f32_I8(-INFINITY), -128);
    CHECK_EQ(int_from_f32_I8(-0.9f), 0);
    CHECK_EQ(int_from_f32_I16(NAN), 0);
    CHECK_EQ(int_from_f32_I32(0x1p31f), INT32_MAX);
    CHECK_EQ(int_from_f32_I32(0x1.fffffep30f), 0x7fffff80);
    CHECK_EQ(int_from_f32_I32(-0x1p31f), INT32_MIN);
    CHECK_EQ(int_from_f32_I64(1e30f), INT64_MAX);
    CHECK_EQ(int_from_f32_I64(-1e30f), INT64_MIN);
    CHECK_EQ(int_from_f32_U8(-0.5f), 0);
    CHECK_EQ(int_from_f32_U8(-1.0f), 0);
    CHECK_EQ(int_from_f32_U8(255.99f), 255);
    CHECK_EQ(int_from_f32_U16(1e9f), 65535);
    CHECK_EQ(int_from_f32_U32(NAN), 0);
    CHECK_EQ(int_from_f32_U32(0x1.fffffep31f), 0xffffff00u);
    CHECK(int_from_f32_U64(INFINITY) == UINT64_MAX);

    CHECK_EQ(f16_from_i64(2049), 0x6800); /* a tie, to even */
    CHECK_EQ(f16_from_i64(-2051), 0xe802);
    CHECK_EQ(f16_from_u64(65519), 0x7bff); /* the last that is finite */
    CHECK_EQ(f16_from_u64(65520), 0x7c00);
    CHECK_EQ(f16_from_i64(INT64_MIN), 0xfc00);
    CHECK_EQ(bf16_from_u64(257), 0x4380);                             /* a tie */
    CHECK_EQ(bf16_from_u64((1ull << 56) + (1ull << 48)), 0x5b80);     /* a tie … */
    CHECK_EQ(bf16_from_u64((1ull << 56) + (1ull << 48) + 1), 0x5b81); /* … and 2^-56 above, lost in a double */
    CHECK_EQ(bf16_from_i64(-(1ll << 56) - (1ll << 48) - 1), 0xdb81);
    CHECK_EQ(bf16_from_u64((1ull << 56) + (3ull << 48) - 1), 0x5b81);
    CHECK_EQ(bf16_from_u64(UINT64_MAX), 0x5f80);
    CHECK_EQ(bf16_from_i64(INT64_MIN), 0xdf00);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        measure((uint32_t)strtoul(argv[1], NULL, 10), argc > 2 ? argv[2] : NULL);
        return 0;
    }
    check_errors();
    check_exact();
    check_edges();
    check_floor_division();
    check_bytes();
    check_wide();
    check_conversions();
    return check_done();
}
