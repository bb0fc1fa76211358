/* math.c - the float functions of math.def.
 *
 * The steps here are the meaning of the language: the CPU back end prints the same ones, lane by lane equal, from the
 * same constants (math_poly.h). So they are taken from a small set that every machine computes alike: + - * / sqrt fma
 * and conversions, all correctly rounded; comparison, select, bit casts and integer arithmetic. Code is straight:
 * a condition is a select, both sides being computed, except where a comment says "branch". Polynomials are evaluated
 * by Horner's rule with fma. Doubles appear in pow (whose exponent magnifies the error of the logarithm by 128) and
 * in the last step of the reduction of large angles.
 *
 * Shapes that recur:
 *  - n = nearest integer to a float: add 1.5 * 2^23 and subtract it. The sum's low bits are n, so shifts of those
 *    bits by 23 or 31 give the exponent or the parity without a conversion. Garbage for large or NaN operands is
 *    harmless integer arithmetic, overridden at the end by a select or drowned by the NaN.
 *  - odd functions are computed for |x| and get the sign of x at the end, so that -0 stays -0.
 *  - pi, pi/2, ln 2 are sums of two or three floats; n * part is subtracted from x by fma, the first time exactly.
 */
#include "ir/math.h"

#include <float.h>
#include <math.h>

#include "ir/math_poly.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must be done in float");

#define SIGN 0x80000000u
#define INF __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")
#define NEAREST 0x1.8p23f /* 1.5 * 2^23 */

#define HORNER(x, c) horner((x), (c), sizeof(c) / sizeof *(c))

static inline float horner(float x, const float *c, size_t n)
{
    float r = c[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        r = fmaf(r, x, c[i]);
    return r;
}

static inline float flip(float x, uint32_t sign) /* negated where `sign` has the sign bit */
{
    return f32_bits(bits_f32(x) ^ sign);
}

static inline uint32_t sign_of(float x)
{
    return bits_f32(x) & SIGN;
}

static inline float absolute(float x)
{
    return f32_bits(bits_f32(x) & ~SIGN);
}

/* 2^n for -126 <= n <= 127; n may be the bits of k + NEAREST, whose upper part the shift drops. */
static inline float power_of_2(uint32_t n)
{
    return f32_bits((n + 127) << 23);
}

/* ---- exp, exp2 -------------------------------------------------------------------------------------------------- */

/* p * 2^n, n in the low bits of `n`, p near 1, the product not above FLT_MAX * 2: for negative n the exponent is held
 * 64 higher and the last multiplication rounds a denormal result, once. */
static inline float scale(float p, uint32_t n, bool negative)
{
    const float q = f32_bits(bits_f32(p) + (n << 23) + (negative ? 64u << 23 : 0));
    return q * (negative ? 0x1p-64f : 1.0f);
}

/* `y`, but 0 for x < least, infinity for x > most, NaN for NaN. */
static inline float exp_edges(float x, float least, float most, float y)
{
    y = x < least ? 0.0f : y;
    return x <= most ? y : x + INF;
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; returns r. */
static inline float split_exp(float x, uint32_t *n)
{
    const float t = fmaf(x, MATH_LOG2_E, NEAREST);
    const float k = t - NEAREST;
    *n = bits_f32(t);
    return fmaf(k, -MATH_LN2_B, fmaf(k, -MATH_LN2_A, x));
}

float math_EXP(float x)
{
    uint32_t n;
    const float r = split_exp(x, &n);
    const float p = 1.0f + fmaf(r * r, HORNER(r, math_poly_EXP), r);
    const float y = scale(p, n, x < 0);
    return exp_edges(x, MATH_EXP_MIN, MATH_EXP_MAX, y);
}

float math_fast_EXP(float x)
{
    uint32_t n;
    const float r = split_exp(x, &n);
    const float p = 1.0f + fmaf(r * r, HORNER(r, math_poly_fast_EXP), r);
    const float y = f32_bits(bits_f32(p) + (n << 23));
    return exp_edges(x, MATH_EXP_NORMAL, MATH_EXP_MAX, y);
}

float math_EXP2(float x)
{
    const float t = x + NEAREST;
    const float r = x - (t - NEAREST);
    const float p = fmaf(r, HORNER(r, math_poly_EXP2), 1.0f);
    const float y = scale(p, bits_f32(t), x < 0);
    return exp_edges(x, -150.0f, MATH_EXP2_MAX, y);
}

float math_fast_EXP2(float x)
{
    const float t = x + NEAREST;
    const float r = x - (t - NEAREST);
    const float p = fmaf(r, HORNER(r, math_poly_fast_EXP2), 1.0f);
    const float y = f32_bits(bits_f32(p) + (bits_f32(t) << 23));
    return exp_edges(x, -126.0f, MATH_EXP2_MAX, y);
}

/* ---- log, log2, log10 ------------------------------------------------------------------------------------------- */

/* x = 2^e (1 + f), 2/3 <= 1 + f < 4/3, for positive normal x; returns f, exact. */
static inline float split_log(float x, float *e)
{
    const uint32_t above = bits_f32(x) - 0x3f2aaaabu; /* 2/3 */
    *e = (float)((int32_t)above >> 23);
    return f32_bits(bits_f32(x) - (above & 0xff800000u)) - 1.0f;
}

/* The same for denormals too. */
static inline float split_log_any(float x, float *e)
{
    const bool small = x < FLT_MIN;
    const float f = split_log(small ? x * 0x1p23f : x, e);
    *e = small ? *e - 23.0f : *e;
    return f;
}

static inline float join_log(float f, float e)
{
    return fmaf(e, MATH_LN2_A, fmaf(f * f, HORNER(f, math_poly_LOG), fmaf(e, MATH_LN2_B, f)));
}

static inline float join_log2(float f, float e)
{
    return e + fmaf(f, HORNER(f, math_poly_LOG2), f);
}

static inline float join_log10(float f, float e)
{
    const float s = fmaf(f, HORNER(f, math_poly_LOG10), e * MATH_LOG10_2_B);
    return fmaf(e, MATH_LOG10_2_A, fmaf(f, MATH_LOG10_E, s));
}

/* `y`, but for x where a logarithm is infinite or NaN. Numbers below `least` count as zero. */
static inline float log_edges(float x, float least, float y)
{
    y = x < INF ? y : x; /* inf, NaN */
    y = x < least ? -INF : y;
    return x < 0 ? NOT_A_NUMBER : y;
}

float math_LOG(float x)
{
    float e;
    const float f = split_log_any(x, &e);
    return log_edges(x, FLT_TRUE_MIN, join_log(f, e));
}

float math_LOG2(float x)
{
    float e;
    const float f = split_log_any(x, &e);
    return log_edges(x, FLT_TRUE_MIN, join_log2(f, e));
}

float math_LOG10(float x)
{
    float e;
    const float f = split_log_any(x, &e);
    return log_edges(x, FLT_TRUE_MIN, join_log10(f, e));
}

/* The fast forms save the care for denormals, which they take for zero. */
float math_fast_LOG(float x)
{
    float e;
    const float f = split_log(x, &e);
    return log_edges(x, FLT_MIN, join_log(f, e));
}

float math_fast_LOG2(float x)
{
    float e;
    const float f = split_log(x, &e);
    return log_edges(x, FLT_MIN, join_log2(f, e));
}

float math_fast_LOG10(float x)
{
    float e;
    const float f = split_log(x, &e);
    return log_edges(x, FLT_MIN, join_log10(f, e));
}

/* ---- roots ------------------------------------------------------------------------------------------------------ */

float math_SQRT(float x)
{
    return sqrtf(x);
}

float math_fast_SQRT(float x)
{
    return sqrtf(x);
}

float math_RSQRT(float x)
{
    return 1.0f / sqrtf(x);
}

/* A first guess from the exponent's half (error 3.5 %), then two steps of third order: with h = 1 - x y^2,
 * 1 / sqrt(x) = y (1 - h)^(-1/2) = y (1 + h/2 + 3/8 h^2 + …). Leaves the slow unit for roots and divisions alone. */
float math_fast_RSQRT(float x)
{
    float y = f32_bits(MATH_RSQRT_GUESS - (bits_f32(x) >> 1));
    for (int i = 0; i < 2; i++) {
        const float h = fmaf(-x * y, y, 1.0f);
        y = fmaf(y * h, fmaf(h, 0.375f, 0.5f), y);
    }
    y = x < INF ? y : 1.0f / x; /* inf, NaN */
    y = x < FLT_MIN ? flip(INF, sign_of(x)) : y;
    return x <= -FLT_MIN ? NOT_A_NUMBER : y;
}

/* ---- sin, cos, tan ---------------------------------------------------------------------------------------------- */

/* frac(x / 2 pi) * 2^64 for finite x >= 2^16, error below 4: a product of x's 24 bits with the 96 bits of 1 / 2 pi
 * that matter for its exponent, those above giving whole turns. */
static uint64_t turns(float x)
{
    const uint32_t bits = bits_f32(x);
    const uint64_t m = (bits & 0x7fffff) | 0x800000;
    const uint32_t shift = (bits >> 23) - 142; /* the string begins with 8 zero bits: x = m 2^(shift - 8) */
    const bool far2 = shift & 64, far1 = shift & 32;
    uint32_t a[5], b[4], w[3];
    for (int i = 0; i < 5; i++)
        a[i] = far2 ? math_1_2PI[i + 2] : math_1_2PI[i];
    for (int i = 0; i < 4; i++)
        b[i] = far1 ? a[i + 1] : a[i];
    for (int i = 0; i < 3; i++)
        w[i] = (uint32_t)(((uint64_t)b[i] << 32 | b[i + 1]) >> (32 - (shift & 31)));
    return (m * w[0] << 32) + m * w[1] + (m * w[2] >> 32);
}

/* Large x: x = n pi/2 + r, |r| <= pi/4; returns r. */
static inline float split_large(uint64_t turn, uint32_t *n)
{
    const uint64_t t = turn << 2;
    *n = (uint32_t)((turn >> 62) + (t >> 63));
    return (float)((double)(int64_t)t * MATH_PI_2_64);
}

/* x - k pi */
static inline float minus_pi(float x, float k)
{
    return fmaf(k, -MATH_PI_C, fmaf(k, -MATH_PI_B, fmaf(k, -MATH_PI_A, x)));
}

/* The same for x >= 0 of any size, infinity too. `small`: x is known to be below MATH_ANGLE_LARGE. */
static inline float split_angle(float x, bool small, uint32_t *n)
{
    const float t = fmaf(x, MATH_2_PI, NEAREST);
    *n = bits_f32(t);
    const float r = minus_pi(x, (t - NEAREST) * 0.5f);
    if (small || !(x >= MATH_ANGLE_LARGE)) /* branch: small x, and NaN */
        return r;
    return x < INF ? split_large(turns(x), n) : NOT_A_NUMBER;
}

/* sin(n pi/2 + r), |r| <= pi/4 */
static inline float sin_quadrant(float r, uint32_t n)
{
    const float z = r * r;
    const float s = fmaf(r * z, HORNER(z, math_poly_SIN), r);
    const float c = fmaf(z, HORNER(z, math_poly_COS), 1.0f);
    return flip(n & 1 ? c : s, n << 30 & SIGN);
}

static inline float sin_angle(float x, bool small)
{
    uint32_t n;
    const float r = split_angle(absolute(x), small, &n);
    return flip(sin_quadrant(r, n), sign_of(x));
}

static inline float cos_angle(float x, bool small)
{
    uint32_t n;
    const float r = split_angle(absolute(x), small, &n);
    return sin_quadrant(r, n + 1);
}

float math_SIN(float x)
{
    return sin_angle(x, false);
}

float math_COS(float x)
{
    return cos_angle(x, false);
}

/* The fast forms subtract multiples of pi, so that one polynomial does. sin r (-1)^n, |r| <= pi/2: */
static inline float sin_half(float r, uint32_t n)
{
    const float z = r * r;
    return flip(fmaf(r * z, HORNER(z, math_poly_fast_SIN), r), n << 31);
}

float math_fast_SIN(float x)
{
    const float a = absolute(x);
    const float t = fmaf(a, MATH_1_PI, NEAREST);
    return flip(sin_half(minus_pi(a, t - NEAREST), bits_f32(t)), sign_of(x));
}

/* cos x = sin(x + pi/2): an odd multiple of pi/2 is subtracted. */
float math_fast_COS(float x)
{
    const float a = absolute(x);
    const float t = fmaf(a, MATH_1_PI, -0.5f) + NEAREST;
    return sin_half(minus_pi(a, (t - NEAREST) + 0.5f), bits_f32(t) + 1);
}

/* tan r, or -1 / tan r where n is odd, |r| <= pi/4 */
static inline float tan_quadrant(float r, uint32_t n)
{
    const float z = r * r;
    const float t = fmaf(r * z, HORNER(z, math_poly_TAN), r);
    return (n & 1 ? -1.0f : t) / (n & 1 ? t : 1.0f);
}

static inline float tan_angle(float x, bool small)
{
    uint32_t n;
    const float r = split_angle(absolute(x), small, &n);
    return flip(tan_quadrant(r, n), sign_of(x));
}

float math_TAN(float x)
{
    return tan_angle(x, false);
}

float math_fast_TAN(float x)
{
    const float a = absolute(x);
    const float t = fmaf(a, MATH_2_PI, NEAREST);
    return flip(tan_quadrant(minus_pi(a, (t - NEAREST) * 0.5f), bits_f32(t)), sign_of(x));
}

/* ---- asin, acos, atan ------------------------------------------------------------------------------------------- */

/* asin of s, where s = a for a <= 1/2, else sqrt((1 - a) / 2): then asin a = pi/2 - 2 asin s. NaN for a > 1. */
static inline float asin_poly(float a)
{
    const float z = a > 0.5f ? (1.0f - a) * 0.5f : a * a;
    const float s = a > 0.5f ? sqrtf(z) : a;
    return fmaf(s * z, HORNER(z, math_poly_ASIN), s);
}

float math_ASIN(float x)
{
    const float a = absolute(x);
    const float p = asin_poly(a);
    const float y = a > 0.5f ? fmaf(-2.0f, p, MATH_PI_2_A) + MATH_PI_2_B : p;
    return flip(y, sign_of(x));
}

float math_ACOS(float x)
{
    const float a = absolute(x);
    const float p = asin_poly(a);
    const float q = a > 0.5f ? p : flip(p, sign_of(x));
    const float c = MATH_PI_2_A - (q - MATH_PI_2_B); /* pi/2 - q */
    return a > 0.5f ? 2.0f * (x > 0 ? p : c) : c;
}

/* Angle of the point (x, y) in the first quadrant. */
static inline float atan_quadrant(float y, float x)
{
    const float lo = x < y ? x : y;
    const float hi = x < y ? y : x; /* a NaN stays in one of them */
    const float t = lo / hi;
    const float z = t * t;
    const float p = fmaf(t * z, HORNER(z, math_poly_ATAN), t);
    return x < y ? MATH_PI_2_A - (p - MATH_PI_2_B) : p;
}

float math_ATAN(float x)
{
    return flip(atan_quadrant(absolute(x), 1.0f), sign_of(x));
}

float math_ATAN2(float y, float x)
{
    const float a = absolute(x), b = absolute(y);
    const bool infinite = a == INF && b == INF; /* as 1, 1 */
    const bool zero = a == 0 && b == 0;         /* as 0, 1 */
    const float p = atan_quadrant(infinite ? 1.0f : b, infinite || zero ? 1.0f : a);
    return flip(sign_of(x) ? MATH_PI_A - (p - MATH_PI_B) : p, sign_of(y));
}

/* ---- sinh, cosh, tanh ------------------------------------------------------------------------------------------- */

/* With |x| = n ln 2 + r and q = 2^-2n, both are 2^(n-1) times
 *   sinh: (1 - q) cosh r + (1 + q) sinh r       cosh: (1 + q) cosh r + (1 - q) sinh r
 * where cosh r - 1 and sinh r are short polynomials: no cancellation, no division, no case for small x. */
struct hyperbolic {
    float sinh, cosh;
    uint32_t n;
};

static inline struct hyperbolic hyperbolic(float x)
{
    uint32_t n;
    const float r = split_exp(x, &n);
    const int32_t k = (int32_t)(n - bits_f32(NEAREST));
    const float q = power_of_2((uint32_t)(-2 * (k < 60 ? k : 60)));
    const float u = 1.0f - q, v = 1.0f + q, z = r * r;
    const float s = fmaf(r * z, HORNER(z, math_poly_SINH), r);
    const float c = z * HORNER(z, math_poly_COSH);
    return (struct hyperbolic){u + fmaf(u, c, v * s), v + fmaf(v, c, u * s), n};
}

/* 2^(n-1) y; doubling first keeps denormals exact and overflows only where the result does. */
static inline float unscale(float y, uint32_t n)
{
    return 2.0f * y * power_of_2(n - 2);
}

float math_SINH(float x)
{
    const float a = absolute(x);
    const struct hyperbolic h = hyperbolic(a > 90.0f ? 90.0f : a);
    return flip(unscale(h.sinh, h.n), sign_of(x));
}

float math_COSH(float x)
{
    const float a = absolute(x);
    const struct hyperbolic h = hyperbolic(a > 90.0f ? 90.0f : a);
    return unscale(h.cosh, h.n);
}

float math_TANH(float x)
{
    const float a = absolute(x);
    const struct hyperbolic h = hyperbolic(a > 10.0f ? 10.0f : a); /* tanh 10 rounds to 1 */
    return flip(h.sinh / h.cosh, sign_of(x));
}

/* ---- rounding, sign --------------------------------------------------------------------------------------------- */

float math_FLOOR(float x)
{
    return floorf(x);
}

float math_CEIL(float x)
{
    return ceilf(x);
}

float math_TRUNC(float x)
{
    return truncf(x);
}

float math_RINT(float x)
{
    return rintf(x);
}

float math_ROUND(float x)
{
    const float t = truncf(x);
    return absolute(x - t) >= 0.5f ? t + flip(1.0f, sign_of(x)) : t; /* x - t is exact */
}

float math_FABS(float x)
{
    return absolute(x);
}

float math_ABS(float x)
{
    return absolute(x);
}

float math_SIGN(float x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : 0.0f;
}

/* ---- min, max --------------------------------------------------------------------------------------------------- */

/* Equal operands differ at most in the sign of zero: or, and of their bits decide it. */
float math_FMIN(float x, float y)
{
    float r = x < y ? x : y;
    r = x == y ? f32_bits(bits_f32(x) | bits_f32(y)) : r;
    return y != y ? x : r;
}

float math_FMAX(float x, float y)
{
    float r = x > y ? x : y;
    r = x == y ? f32_bits(bits_f32(x) & bits_f32(y)) : r;
    return y != y ? x : r;
}

float math_MIN(float x, float y)
{
    return math_FMIN(x, y);
}

float math_MAX(float x, float y)
{
    return math_FMAX(x, y);
}

float math_CLAMP(float x, float lo, float hi)
{
    return math_FMIN(math_FMAX(x, lo), hi);
}

float math_FMA(float x, float y, float z)
{
    return fmaf(x, y, z);
}

/* ---- pow -------------------------------------------------------------------------------------------------------- */

static inline double f64_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double horner_f64(double x, const double *c, size_t n)
{
    double r = c[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        r = fma(r, x, c[i]);
    return r;
}

#define HORNER_F64(x, c) horner_f64((x), (c), sizeof(c) / sizeof *(c))

/* a^y for a > 0, from log2 a in double, good to 36 bits: the one rounding to float makes exact powers exact. */
static inline float pow_positive(float a, float y)
{
    float e;
    const double f = (double)split_log_any(a, &e);
    double t = (double)y * fma(f, HORNER_F64(f, math_poly_POW_LOG2), (double)e);
    t = t > 160.0 ? 160.0 : t < -160.0 ? -160.0 : t; /* further out the result is the same; NaN stays */
    const double k = t + 0x1.8p52;
    const double r = t - (k - 0x1.8p52);
    const double p = fma(r, HORNER_F64(r, math_poly_POW_EXP2), 1.0);
    return (float)f64_bits(bits_f64(p) + (bits_f64(k) << 52)); /* rounds to denormals and infinity too */
}

float math_POW(float x, float y)
{
    const float a = absolute(x);
    const bool integer = truncf(y) == y;
    const bool odd = integer && truncf(y * 0.5f) != y * 0.5f;
    float r = pow_positive(a, y);
    r = a == 0 || a == INF ? ((a == 0) == (y < 0) ? INF : 0.0f) : r;
    r = a == 1.0f ? 1.0f : r; /* y infinite: 0 * inf */
    r = x < 0 && a < INF && !integer ? NOT_A_NUMBER : r;
    r = odd ? flip(r, sign_of(x)) : r;
    r = x != x || y != y ? NOT_A_NUMBER : r;
    return x == 1.0f || y == 0 ? 1.0f : r;
}

float math_fast_POW(float x, float y)
{
    const float l = math_fast_LOG2(x);
    const float t = fmaf(y, l, NEAREST);
    const float r = fmaf(y, l, NEAREST - t); /* the product's rounding is not felt */
    const float p = fmaf(r, HORNER(r, math_poly_fast_EXP2), 1.0f);
    return exp_edges(y * l, -126.0f, MATH_EXP2_MAX, f32_bits(bits_f32(p) + (bits_f32(t) << 23)));
}

/* ---- remainders ------------------------------------------------------------------------------------------------- */

/* Exact for all operands. Each turn of the loop takes from r = |x| the largest multiple of y 2^k, with k such that the
 * quotient stays below 2^23: one turn if |x / y| < 2^22, 13 at most. Rounding the quotient may carry it up to the next
 * integer but never down past one, so its integer part is right or one too large, and fma gives the difference exactly
 * either way: it is a multiple of the last place of y 2^k and not larger than y 2^k. */
float math_FMOD(float x, float y)
{
    const float b = absolute(y);
    const bool small = b < FLT_MIN;
    const int32_t exponent = (int32_t)(bits_f32(small ? b * 0x1p24f : b) >> 23) - (small ? 24 : 0);
    float r = absolute(x);
    while (r >= b && r < INF && b > 0) {
        const int32_t k = (int32_t)(bits_f32(r) >> 23) - exponent - 22;
        const uint32_t n = k > 0 ? (uint32_t)k : 0;
        const float s = b * power_of_2(n >> 1) * power_of_2(n - (n >> 1));
        const float d = fmaf(-truncf(r / s), s, r);
        r = d < 0 ? d + s : d;
    }
    r = flip(r, sign_of(x));
    return b > 0 && absolute(x) < INF ? r : NOT_A_NUMBER; /* b > 0: nor NaN */
}

struct floor_div {
    float quotient, remainder;
};

/* From the exact remainder m of truncation: x - m is nearly a multiple of y, so that the quotient is nearly an integer
 * and is rounded to the nearest. */
static struct floor_div floor_div(float x, float y)
{
    const float m = math_FMOD(x, y);
    const bool below = m != 0 && (y < 0) != (m < 0); /* truncation was upwards */
    const float q = (x - m) / y - (below ? 1.0f : 0.0f);
    const float down = floorf(q);
    struct floor_div r;
    r.quotient = q - down > 0.5f ? down + 1.0f : down;
    r.quotient = q == 0 ? flip(0.0f, sign_of(x) ^ sign_of(y)) : r.quotient;
    r.quotient = y == 0 ? x / y : r.quotient;
    r.remainder = below ? m + y : m;
    r.remainder = m == 0 ? flip(0.0f, sign_of(y)) : r.remainder;
    return r;
}

float math_DIV_FLOOR(float x, float y)
{
    return floor_div(x, y).quotient;
}

float math_REM_FLOOR(float x, float y)
{
    return floor_div(x, y).remainder;
}
