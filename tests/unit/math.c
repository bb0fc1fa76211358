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

static double ref_EXP(double x) { return exp(x); }
static double ref_EXP2(double x) { return exp2(x); }
static double ref_LOG(double x) { return log(x); }
static double ref_LOG2(double x) { return log2(x); }
static double ref_LOG10(double x) { return log10(x); }
static double ref_SQRT(double x) { return sqrt(x); }
static double ref_RSQRT(double x) { return 1 / sqrt(x); }
static double ref_SIN(double x) { return sin(x); }
static double ref_COS(double x) { return cos(x); }
static double ref_TAN(double x) { return tan(x); }
static double ref_ASIN(double x) { return asin(x); }
static double ref_ACOS(double x) { return acos(x); }
static double ref_ATAN(double x) { return atan(x); }
static double ref_SINH(double x) { return sinh(x); }
static double ref_COSH(double x) { return cosh(x); }
static double ref_TANH(double x) { return tanh(x); }
static double ref_FLOOR(double x) { return floor(x); }
static double ref_CEIL(double x) { return ceil(x); }
static double ref_ROUND(double x) { return round(x); }
static double ref_RINT(double x) { return rint(x); }
static double ref_TRUNC(double x) { return trunc(x); }
static double ref_FABS(double x) { return fabs(x); }
static double ref_ABS(double x) { return fabs(x); }
static double ref_SIGN(double x) { return isnan(x) ? 0 : x == 0 ? x : copysign(1, x); }
static double ref_POW(double x, double y) { return pow(x, y); }
static double ref_FMOD(double x, double y) { return fmod(x, y); }
static double ref_ATAN2(double x, double y) { return atan2(x, y); }
static double ref_FMIN(double x, double y) { return x == y ? (signbit(x) ? x : y) : fmin(x, y); }
static double ref_FMAX(double x, double y) { return x == y ? (signbit(x) ? y : x) : fmax(x, y); }
static double ref_MIN(double x, double y) { return ref_FMIN(x, y); }
static double ref_MAX(double x, double y) { return ref_FMAX(x, y); }
static double ref_CLAMP(double x, double lo, double hi) { return ref_FMIN(ref_FMAX(x, lo), hi); }
static double ref_FMA(double x, double y, double z) { return fma(x, y, z); }

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

static const float positive_edges[] = {
    0.0f,       TINY,    3 * TINY,        0x1p-140f, 0x1.fffffcp-127f, FLT_MIN,     0x1.8p-100f, 0x1p-24f,
    0x1p-12f,   0.1f,    0.25f,           0.5f,      0x1.000002p-1f,   0.70710678f, 0x1.fffffep-1f,
    1.0f,       0x1.000002p0f, 1.5f,      2.0f,      2.5f,             2.7182817f,  3.0f,        3.1415927f,
    4.0f,       10.0f,   22.0f,           88.72283f, 88.72284f,        87.33654f,   89.41598f,   89.41599f,
    103.97208f, 126.0f,  127.0f,          128.0f,    149.0f,           150.0f,      355.0f,      100000.0f,
    0x1.fffffep16f, 0x1p17f, 8388607.5f,  0x1p23f,   0x1p23f + 1,      0x1p24f,     0x1p25f + 4, 1e10f,
    0x1.0p63f,  0x1p100f, FLT_MAX / 2,    FLT_MAX,   INFINITY,         NAN};
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

int main(int argc, char **argv)
{
    if (argc > 1) {
        measure((uint32_t)strtoul(argv[1], NULL, 10), argc > 2 ? argv[2] : NULL);
        return 0;
    }
    check_errors();
    return check_done();
}
