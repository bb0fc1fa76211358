/* math.c - the float functions of math.def as LLVM text: the steps of src/ir/math.c from the same constants.
 *
 * Each form is a function of the module for each shape, written on first use and inlined by LLVM: @exp.v for vectors,
 * @exp.u for scalars. Bodies read as those of src/ir/math.c, whose comments say why the steps are right; what stands here is
 * what differs. Precise forms give the same bits. So do fast forms, but where the machine has something faster.
 *
 * What src/ir/math.c does under a branch (large angles, remainders of large quotients) is left to helper_math for the lanes
 * concerned, by its scalar functions. Those forms are COLD: their functions take the worker and the mask first.
 */
#include "cpu/avx512.h"
#include "cpu/helpers_math.h"
#include "cpu/lower.h"

#include <float.h>
#include <stdio.h>

#include "ir/math_poly.h"

#define SIGN 0x80000000u
#define INF e_f32(__builtin_inff())
#define NOT_A_NUMBER e_f32(__builtin_nanf(""))
#define NEAREST 0x1.8p23f /* 1.5 * 2^23 */

/* Of a form being written; `e` is in scope wherever the short names below are used. */
struct form {
    struct emit *e;
    unsigned features;  /* of struct cpu_options */
    struct val x, y, z; /* operands */
    struct val rare;    /* lanes that are left to the helper */
};

#define K(c) e_f32(c)
#define ADD(a, b) e_bin(e, "fadd", (a), (b))
#define SUB(a, b) e_bin(e, "fsub", (a), (b))
#define MUL(a, b) e_bin(e, "fmul", (a), (b))
#define DIV(a, b) e_bin(e, "fdiv", (a), (b))
#define FMA(a, b, c) fused(e, (a), (b), (c))
#define IADD(a, b) e_bin(e, "add", (a), (b))
#define ISUB(a, b) e_bin(e, "sub", (a), (b))
#define IAND(a, b) e_bin(e, "and", (a), (b))
#define IOR(a, b) e_bin(e, "or", (a), (b))
#define XOR(a, b) e_bin(e, "xor", (a), (b))
#define SHL(a, n) e_bin(e, "shl", (a), e_i32(n))
#define LSHR(a, n) e_bin(e, "lshr", (a), e_i32(n))
#define LT(a, b) e_cmp(e, "fcmp olt", (a), (b))
#define LE(a, b) e_cmp(e, "fcmp ole", (a), (b))
#define GT(a, b) e_cmp(e, "fcmp ogt", (a), (b))
#define GE(a, b) e_cmp(e, "fcmp oge", (a), (b))
#define EQ(a, b) e_cmp(e, "fcmp oeq", (a), (b))
#define NE(a, b) e_cmp(e, "fcmp une", (a), (b))
#define SELECT(c, a, b) e_select(e, (c), (a), (b))
#define BITS(x) e_cast(e, "bitcast", (x), E_I32)
#define FLOAT(u) e_cast(e, "bitcast", (u), E_F32)
#define CALL(name, x) e_intrinsic(e, "llvm." name, E_F32, 1, (struct val[]){x})
#define HORNER(x, c) horner(e, (x), (c), sizeof(c) / sizeof *(c))

static struct val fused(struct emit *e, struct val a, struct val b, struct val c)
{
    return e_intrinsic(e, "llvm.fma", (enum elem)a.elem, 3, (struct val[]){a, b, c});
}

static struct val horner(struct emit *e, struct val x, const float *c, size_t n)
{
    struct val r = K(c[n - 1]);
    for (size_t i = n - 1; i-- > 0;)
        r = FMA(r, x, K(c[i]));
    return r;
}

static struct val flip(struct emit *e, struct val x, struct val sign) /* negated where `sign` has the sign bit */
{
    return FLOAT(XOR(BITS(x), sign));
}

static struct val sign_of(struct emit *e, struct val x)
{
    return IAND(BITS(x), e_i32(SIGN));
}

static struct val absolute(struct emit *e, struct val x)
{
    return FLOAT(IAND(BITS(x), e_i32(~SIGN)));
}

static struct val power_of_2(struct emit *e, struct val n)
{
    return FLOAT(SHL(IADD(n, e_i32(127)), 23));
}

static struct val is_odd(struct emit *e, struct val n)
{
    return e_cmp(e, "icmp ne", IAND(n, e_i32(1)), e_i32(0));
}

/* ---- exp, exp2 -------------------------------------------------------------------------------------------------- */

static struct val scale(struct emit *e, struct val p, struct val n, struct val negative)
{
    const struct val higher = SELECT(negative, e_i32(64u << 23), e_i32(0));
    const struct val q = FLOAT(IADD(IADD(BITS(p), SHL(n, 23)), higher));
    return MUL(q, SELECT(negative, K(0x1p-64f), K(1.0f)));
}

static struct val scale_fast(struct emit *e, struct val p, struct val n)
{
    return FLOAT(IADD(BITS(p), SHL(n, 23)));
}

static struct val exp_edges(struct emit *e, struct val x, float least, float most, struct val y)
{
    y = SELECT(LT(x, K(least)), K(0.0f), y);
    return SELECT(LE(x, K(most)), y, ADD(x, INF));
}

/* *t: n + NEAREST */
static struct val split_exp(struct emit *e, struct val x, struct val *t)
{
    *t = FMA(x, K(MATH_LOG2_E), K(NEAREST));
    const struct val k = SUB(*t, K(NEAREST));
    return FMA(k, K(-MATH_LN2_B), FMA(k, K(-MATH_LN2_A), x));
}

/* 2^k p rounds once and to all of 0, denormals and infinity, so that x only has to stay where k and p are right. */
static struct val held(struct emit *e, struct val x, float least, float most)
{
    x = SELECT(LT(K(most), x), K(most), x); /* a NaN stays */
    return SELECT(GT(K(least), x), K(least), x);
}

static struct val any_exp(struct form *f, float least, const float *poly, size_t n, bool fast)
{
    struct emit *const e = f->e;
    const bool own = f->features & CPU_AVX512;
    struct val k;
    const struct val x = own ? held(e, f->x, -104.0f, 89.0f) : f->x, r = split_exp(e, x, &k);
    const struct val p = ADD(K(1.0f), FMA(MUL(r, r), horner(e, r, poly, n), r));
    if (own)
        return avx512(e, &avx512_scalef, p, SUB(k, K(NEAREST)));
    const struct val y = fast ? scale_fast(e, p, BITS(k)) : scale(e, p, BITS(k), LT(x, K(0.0f)));
    return exp_edges(e, x, least, MATH_EXP_MAX, y);
}

static struct val any_exp2(struct form *f, float least, const float *poly, size_t n, bool fast)
{
    struct emit *const e = f->e;
    const bool own = f->features & CPU_AVX512;
    const struct val x = own ? held(e, f->x, -151.0f, 128.0f) : f->x;
    const struct val t = ADD(x, K(NEAREST)), k = SUB(t, K(NEAREST)), r = SUB(x, k);
    const struct val p = FMA(r, horner(e, r, poly, n), K(1.0f));
    if (own)
        return avx512(e, &avx512_scalef, p, k);
    const struct val y = fast ? scale_fast(e, p, BITS(t)) : scale(e, p, BITS(t), LT(x, K(0.0f)));
    return exp_edges(e, x, least, MATH_EXP2_MAX, y);
}

#define EXPONENTIAL(name, how, least, poly, fast)                                                                      \
    static struct val name(struct form *f)                                                                             \
    {                                                                                                                  \
        return how(f, least, poly, sizeof(poly) / sizeof *(poly), fast);                                               \
    }
EXPONENTIAL(form_EXP, any_exp, MATH_EXP_MIN, math_poly_EXP, false)
EXPONENTIAL(fast_EXP, any_exp, MATH_EXP_NORMAL, math_poly_fast_EXP, true)
EXPONENTIAL(form_EXP2, any_exp2, -150.0f, math_poly_EXP2, false)
EXPONENTIAL(fast_EXP2, any_exp2, -126.0f, math_poly_fast_EXP2, true)

/* ---- log, log2, log10 ------------------------------------------------------------------------------------------- */

static struct val split_log(struct emit *e, struct val x, struct val *exponent)
{
    const struct val above = ISUB(BITS(x), e_i32(0x3f2aaaabu));
    *exponent = e_cast(e, "sitofp", e_bin(e, "ashr", above, e_i32(23)), E_F32);
    return SUB(FLOAT(ISUB(BITS(x), IAND(above, e_i32(0xff800000u)))), K(1.0f));
}

static struct val split_log_any(struct emit *e, struct val x, struct val *exponent)
{
    const struct val small = LT(x, K(FLT_MIN));
    const struct val f = split_log(e, SELECT(small, MUL(x, K(0x1p23f)), x), exponent);
    *exponent = SELECT(small, SUB(*exponent, K(23.0f)), *exponent);
    return f;
}

static struct val join_LOG(struct emit *e, struct val f, struct val k)
{
    const struct val p = HORNER(f, math_poly_LOG);
    return FMA(k, K(MATH_LN2_A), FMA(MUL(f, f), p, FMA(k, K(MATH_LN2_B), f)));
}

static struct val join_LOG2(struct emit *e, struct val f, struct val k)
{
    return ADD(k, FMA(f, HORNER(f, math_poly_LOG2), f));
}

static struct val join_LOG10(struct emit *e, struct val f, struct val k)
{
    const struct val s = FMA(f, HORNER(f, math_poly_LOG10), MUL(k, K(MATH_LOG10_2_B)));
    return FMA(k, K(MATH_LOG10_2_A), FMA(f, K(MATH_LOG10_E), s));
}

static struct val log_edges(struct emit *e, struct val x, float least, struct val y)
{
    y = SELECT(LT(x, INF), y, x);
    y = SELECT(LT(x, K(least)), K(-__builtin_inff()), y);
    return SELECT(LT(x, K(0.0f)), NOT_A_NUMBER, y);
}

/* By instructions that know denormals: the same f and e for all positive finite x. */
static struct val split_log_avx512(struct emit *e, struct val x, struct val *exponent)
{
    const struct val k = avx512(e, &avx512_getexp, x, (struct val){0}),
                     m = avx512(e, &avx512_getmant, x, (struct val){0});
    const struct val large = GE(m, FLOAT(e_i32(0x3faaaaabu))); /* twice 2/3 as split_log has it */
    *exponent = SELECT(large, ADD(k, K(1.0f)), k);
    return SUB(SELECT(large, MUL(m, K(0.5f)), m), K(1.0f));
}

typedef struct val join_fn(struct emit *e, struct val f, struct val k);

static struct val any_log(struct form *f, join_fn *join, bool fast)
{
    struct emit *const e = f->e;
    struct val k;
    if (f->features & CPU_AVX512) {
        const struct val r = split_log_avx512(e, f->x, &k);
        return avx512(e, &avx512_fixup_log, join(e, r, k), f->x);
    }
    const struct val r = fast ? split_log(e, f->x, &k) : split_log_any(e, f->x, &k);
    return log_edges(e, f->x, fast ? FLT_MIN : FLT_TRUE_MIN, join(e, r, k));
}

#define LOGARITHM(ID)                                                                                                  \
    static struct val form_##ID(struct form *f) {                                                                      \
        return any_log(f, join_##ID, false);                                                                           \
    } static struct val fast_##ID(struct form *f) {                                                                    \
        return any_log(f, join_##ID, true);                                                                            \
    }
LOGARITHM(LOG)
LOGARITHM(LOG2)
LOGARITHM(LOG10)

/* ---- roots ------------------------------------------------------------------------------------------------------ */

static struct val form_SQRT(struct form *f)
{
    struct emit *const e = f->e;
    return CALL("sqrt", f->x);
}

/* From a guess y of error 2^-14 one step does, and with h at most 2^-13 its terms past h / 2 are not felt. Denormals do not
 * count as 0 here. */
static struct val root_step(struct form *f, bool inverse)
{
    struct emit *const e = f->e;
    const struct val y = avx512(e, &avx512_rsqrt14, f->x, (struct val){0});
    const struct val g = MUL(f->x, y), h = FMA(e_neg(e, g), y, K(1.0f)), from = inverse ? y : g;
    const struct val r = FMA(MUL(from, K(0.5f)), h, from);
    return avx512(e, inverse ? &avx512_fixup_rsqrt : &avx512_fixup_sqrt, r, f->x);
}

static struct val fast_SQRT(struct form *f)
{
    return f->features & CPU_AVX512 ? root_step(f, false) : form_SQRT(f);
}

static struct val form_RSQRT(struct form *f)
{
    struct emit *const e = f->e;
    return DIV(K(1.0f), CALL("sqrt", f->x));
}

static struct val fast_RSQRT(struct form *f)
{
    if (f->features & CPU_AVX512)
        return root_step(f, true);
    struct emit *const e = f->e;
    struct val y = FLOAT(ISUB(e_i32(MATH_RSQRT_GUESS), LSHR(BITS(f->x), 1)));
    for (int i = 0; i < 2; i++) {
        const struct val h = FMA(MUL(e_neg(e, f->x), y), y, K(1.0f));
        y = FMA(MUL(y, h), FMA(h, K(0.375f), K(0.5f)), y);
    }
    y = SELECT(LT(f->x, INF), y, DIV(K(1.0f), f->x));
    y = SELECT(LT(f->x, K(FLT_MIN)), flip(e, INF, sign_of(e, f->x)), y);
    return SELECT(LE(f->x, K(-FLT_MIN)), NOT_A_NUMBER, y);
}

/* ---- sin, cos, tan ---------------------------------------------------------------------------------------------- */

/* x - k pi unit: a unit of 1/2 instead of half of k gives the same products. */
static struct val minus_pi(struct emit *e, struct val x, struct val k, float unit)
{
    return FMA(k, K(-MATH_PI_C * unit), FMA(k, K(-MATH_PI_B * unit), FMA(k, K(-MATH_PI_A * unit), x)));
}

static struct val split_angle(struct form *f, struct val *n)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x);
    const struct val t = FMA(a, K(MATH_2_PI), K(NEAREST));
    *n = BITS(t);
    f->rare = GE(a, K(MATH_ANGLE_LARGE));
    return minus_pi(e, a, SUB(t, K(NEAREST)), 0.5f);
}

static struct val sin_quadrant(struct emit *e, struct val r, struct val n)
{
    const struct val z = MUL(r, r);
    const struct val s = FMA(MUL(r, z), HORNER(z, math_poly_SIN), r);
    const struct val c = FMA(z, HORNER(z, math_poly_COS), K(1.0f));
    return flip(e, SELECT(is_odd(e, n), c, s), IAND(SHL(n, 30), e_i32(SIGN)));
}

static struct val form_SIN(struct form *f)
{
    struct emit *const e = f->e;
    struct val n;
    const struct val r = split_angle(f, &n);
    return flip(e, sin_quadrant(e, r, n), sign_of(e, f->x));
}

static struct val form_COS(struct form *f)
{
    struct emit *const e = f->e;
    struct val n;
    const struct val r = split_angle(f, &n);
    return sin_quadrant(e, r, IADD(n, e_i32(1)));
}

static struct val sin_half(struct emit *e, struct val r, struct val n)
{
    const struct val z = MUL(r, r);
    return flip(e, FMA(MUL(r, z), HORNER(z, math_poly_fast_SIN), r), SHL(n, 31));
}

static struct val fast_SIN(struct form *f)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x);
    const struct val t = FMA(a, K(MATH_1_PI), K(NEAREST));
    return flip(e, sin_half(e, minus_pi(e, a, SUB(t, K(NEAREST)), 1.0f), BITS(t)), sign_of(e, f->x));
}

static struct val fast_COS(struct form *f)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x);
    const struct val t = ADD(FMA(a, K(MATH_1_PI), K(-0.5f)), K(NEAREST));
    return sin_half(e, minus_pi(e, a, ADD(SUB(t, K(NEAREST)), K(0.5f)), 1.0f), IADD(BITS(t), e_i32(1)));
}

static struct val tan_quadrant(struct emit *e, struct val r, struct val n)
{
    const struct val z = MUL(r, r);
    const struct val t = FMA(MUL(r, z), HORNER(z, math_poly_TAN), r);
    const struct val odd = is_odd(e, n);
    return DIV(SELECT(odd, K(-1.0f), t), SELECT(odd, t, K(1.0f)));
}

static struct val form_TAN(struct form *f)
{
    struct emit *const e = f->e;
    struct val n;
    const struct val r = split_angle(f, &n);
    return flip(e, tan_quadrant(e, r, n), sign_of(e, f->x));
}

static struct val fast_TAN(struct form *f)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x);
    const struct val t = FMA(a, K(MATH_2_PI), K(NEAREST));
    const struct val r = minus_pi(e, a, SUB(t, K(NEAREST)), 0.5f);
    return flip(e, tan_quadrant(e, r, BITS(t)), sign_of(e, f->x));
}

/* ---- asin, acos, atan ------------------------------------------------------------------------------------------- */

static struct val asin_poly(struct emit *e, struct val a, struct val large)
{
    const struct val z = SELECT(large, MUL(SUB(K(1.0f), a), K(0.5f)), MUL(a, a));
    const struct val s = SELECT(large, CALL("sqrt", z), a);
    return FMA(MUL(s, z), HORNER(z, math_poly_ASIN), s);
}

static struct val form_ASIN(struct form *f)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x), large = GT(a, K(0.5f));
    const struct val p = asin_poly(e, a, large);
    const struct val y = SELECT(large, ADD(FMA(K(-2.0f), p, K(MATH_PI_2_A)), K(MATH_PI_2_B)), p);
    return flip(e, y, sign_of(e, f->x));
}

static struct val form_ACOS(struct form *f)
{
    struct emit *const e = f->e;
    const struct val a = absolute(e, f->x), large = GT(a, K(0.5f));
    const struct val p = asin_poly(e, a, large);
    const struct val q = SELECT(large, p, flip(e, p, sign_of(e, f->x)));
    const struct val c = SUB(K(MATH_PI_2_A), SUB(q, K(MATH_PI_2_B)));
    return SELECT(large, MUL(K(2.0f), SELECT(GT(f->x, K(0.0f)), p, c)), c);
}

static struct val atan_quadrant(struct emit *e, struct val y, struct val x)
{
    const struct val steep = LT(x, y);
    const struct val t = DIV(SELECT(steep, x, y), SELECT(steep, y, x));
    const struct val z = MUL(t, t);
    const struct val p = FMA(MUL(t, z), HORNER(z, math_poly_ATAN), t);
    return SELECT(steep, SUB(K(MATH_PI_2_A), SUB(p, K(MATH_PI_2_B))), p);
}

static struct val form_ATAN(struct form *f)
{
    struct emit *const e = f->e;
    return flip(e, atan_quadrant(e, absolute(e, f->x), K(1.0f)), sign_of(e, f->x));
}

static struct val form_ATAN2(struct form *f)
{
    struct emit *const e = f->e;
    const struct val y = f->x, x = f->y; /* in this order */
    const struct val a = absolute(e, x), b = absolute(e, y);
    const struct val infinite = e_and(e, EQ(a, INF), EQ(b, INF));
    const struct val zero = e_and(e, EQ(a, K(0.0f)), EQ(b, K(0.0f)));
    const struct val p = atan_quadrant(e, SELECT(infinite, K(1.0f), b), SELECT(e_or(e, infinite, zero), K(1.0f), a));
    const struct val left = e_cmp(e, "icmp slt", BITS(x), e_i32(0));
    return flip(e, SELECT(left, SUB(K(MATH_PI_A), SUB(p, K(MATH_PI_B))), p), sign_of(e, y));
}

/* ---- sinh, cosh, tanh ------------------------------------------------------------------------------------------- */

struct hyperbolic {
    struct val sinh, cosh, n;
};

static struct hyperbolic hyperbolic(struct emit *e, struct val a, float most)
{
    struct hyperbolic h;
    struct val t;
    const struct val r = split_exp(e, SELECT(GT(a, K(most)), K(most), a), &t);
    h.n = BITS(t);
    struct val k = ISUB(h.n, e_i32(bits_f32(NEAREST)));
    if (most > 40.0f) /* else k is below 60 */
        k = SELECT(e_cmp(e, "icmp slt", k, e_i32(60)), k, e_i32(60));
    const struct val q = FLOAT(ISUB(e_i32(127u << 23), SHL(k, 24))); /* 2^(-2 k) */
    const struct val u = SUB(K(1.0f), q), v = ADD(K(1.0f), q), z = MUL(r, r);
    const struct val s = FMA(MUL(r, z), HORNER(z, math_poly_SINH), r);
    const struct val c = MUL(z, HORNER(z, math_poly_COSH));
    h.sinh = ADD(u, FMA(u, c, MUL(v, s)));
    h.cosh = ADD(v, FMA(v, c, MUL(u, s)));
    return h;
}

static struct val unscale(struct emit *e, struct val y, struct val n)
{
    return MUL(MUL(K(2.0f), y), power_of_2(e, ISUB(n, e_i32(2))));
}

static struct val form_SINH(struct form *f)
{
    struct emit *const e = f->e;
    const struct hyperbolic h = hyperbolic(e, absolute(e, f->x), 90.0f);
    return flip(e, unscale(e, h.sinh, h.n), sign_of(e, f->x));
}

static struct val form_COSH(struct form *f)
{
    struct emit *const e = f->e;
    const struct hyperbolic h = hyperbolic(e, absolute(e, f->x), 90.0f);
    return unscale(e, h.cosh, h.n);
}

static struct val form_TANH(struct form *f)
{
    struct emit *const e = f->e;
    const struct hyperbolic h = hyperbolic(e, absolute(e, f->x), 10.0f);
    return flip(e, DIV(h.sinh, h.cosh), sign_of(e, f->x));
}

/* ---- rounding, sign, min, max ----------------------------------------------------------------------------------- */

#define INSTRUCTION(ID, name)                                                                                          \
    static struct val form_##ID(struct form *f) {                                                                      \
        struct emit *const e = f->e;                                                                                   \
        return CALL(name, f->x);                                                                                       \
    }
INSTRUCTION(FLOOR, "floor")
INSTRUCTION(CEIL, "ceil")
INSTRUCTION(TRUNC, "trunc")
INSTRUCTION(RINT, "roundeven")

static struct val form_ROUND(struct form *f)
{
    struct emit *const e = f->e;
    const struct val t = CALL("trunc", f->x);
    const struct val up = ADD(t, flip(e, K(1.0f), sign_of(e, f->x)));
    return SELECT(GE(absolute(e, SUB(f->x, t)), K(0.5f)), up, t);
}

static struct val form_FABS(struct form *f)
{
    return absolute(f->e, f->x);
}

static struct val form_SIGN(struct form *f)
{
    struct emit *const e = f->e;
    const struct val x = f->x, zero = K(0.0f);
    const struct val rest = SELECT(EQ(x, zero), x, zero);
    return SELECT(GT(x, zero), K(1.0f), SELECT(LT(x, zero), K(-1.0f), rest));
}

static struct val smaller(struct emit *e, struct val x, struct val y)
{
    struct val r = SELECT(LT(x, y), x, y);
    r = SELECT(EQ(x, y), FLOAT(IOR(BITS(x), BITS(y))), r);
    return SELECT(NE(y, y), x, r);
}

static struct val larger(struct emit *e, struct val x, struct val y)
{
    struct val r = SELECT(GT(x, y), x, y);
    r = SELECT(EQ(x, y), FLOAT(IAND(BITS(x), BITS(y))), r);
    return SELECT(NE(y, y), x, r);
}

static struct val form_FMIN(struct form *f)
{
    return smaller(f->e, f->x, f->y);
}

static struct val form_FMAX(struct form *f)
{
    return larger(f->e, f->x, f->y);
}

static struct val form_CLAMP(struct form *f)
{
    return smaller(f->e, larger(f->e, f->x, f->y), f->z);
}

static struct val form_FMA(struct form *f)
{
    return fused(f->e, f->x, f->y, f->z);
}

/* ---- pow -------------------------------------------------------------------------------------------------------- */

static struct val horner_f64(struct emit *e, struct val x, const double *c, size_t n)
{
    struct val r = e_f64(c[n - 1]);
    for (size_t i = n - 1; i-- > 0;)
        r = FMA(r, x, e_f64(c[i]));
    return r;
}

#define HORNER_F64(x, c) horner_f64(e, (x), (c), sizeof(c) / sizeof *(c))

static struct val pow_positive(struct form *form, struct val a, struct val y)
{
    struct emit *const e = form->e;
    struct val exponent;
    const struct val part =
        form->features & CPU_AVX512 ? split_log_avx512(e, a, &exponent) : split_log_any(e, a, &exponent);
    const struct val f = e_cast(e, "fpext", part, E_F64);
    const struct val log2 = FMA(f, HORNER_F64(f, math_poly_POW_LOG2), e_cast(e, "fpext", exponent, E_F64));
    const struct val product = MUL(e_cast(e, "fpext", y, E_F64), log2);
    const struct val low = SELECT(LT(product, e_f64(-160.0)), e_f64(-160.0), product);
    const struct val t = SELECT(GT(product, e_f64(160.0)), e_f64(160.0), low);
    const struct val k = ADD(t, e_f64(0x1.8p52));
    const struct val r = SUB(t, SUB(k, e_f64(0x1.8p52)));
    const struct val p = FMA(r, HORNER_F64(r, math_poly_POW_EXP2), e_f64(1.0));
    const struct val n = e_bin(e, "shl", e_cast(e, "bitcast", k, E_I64), e_i64(52));
    return e_cast(e, "fptrunc", e_cast(e, "bitcast", IADD(e_cast(e, "bitcast", p, E_I64), n), E_F64), E_F32);
}

static struct val form_POW(struct form *f)
{
    struct emit *const e = f->e;
    const struct val x = f->x, y = f->y, zero = K(0.0f), one = K(1.0f);
    const struct val a = absolute(e, x), half = MUL(y, K(0.5f));
    const struct val integer = EQ(CALL("trunc", y), y);
    const struct val odd = e_and(e, integer, NE(CALL("trunc", half), half));
    struct val r = pow_positive(f, a, y);
    const struct val none = EQ(a, zero);
    const struct val same = e_cmp(e, "icmp eq", none, LT(y, zero));
    r = SELECT(e_or(e, none, EQ(a, INF)), SELECT(same, INF, zero), r);
    r = SELECT(EQ(a, one), one, r);
    r = SELECT(e_and(e, e_and(e, LT(x, zero), LT(a, INF)), e_not(e, integer)), NOT_A_NUMBER, r);
    r = flip(e, r, SELECT(odd, sign_of(e, x), e_i32(0)));
    r = SELECT(e_cmp(e, "fcmp uno", x, y), NOT_A_NUMBER, r);
    return SELECT(e_or(e, EQ(x, one), EQ(y, zero)), one, r);
}

static struct val fast_POW(struct form *f)
{
    struct emit *const e = f->e;
    struct form log2 = *f;
    const struct val y = f->y, l = fast_LOG2(&log2);
    const struct val t = FMA(y, l, K(NEAREST));
    const struct val r = FMA(y, l, SUB(K(NEAREST), t));
    const struct val p = FMA(r, HORNER(r, math_poly_fast_EXP2), K(1.0f));
    return exp_edges(e, MUL(y, l), -126.0f, MATH_EXP2_MAX, scale_fast(e, p, BITS(t)));
}

/* ---- remainders ------------------------------------------------------------------------------------------------- */

/* One turn of the loop of math_FMOD, for quotients below 2^24; larger ones are rare. With r = |x| >= b = |y| > 0:
 * the quotient rounds to q < 2^24. Every integer up to 2^24 is a float and rounding is monotone, so that r / b >= m gives
 * q >= m and r / b < m gives q <= m: n = trunc q is the integer part or one too large. Both r and n b are multiples of the
 * last place of b, and |r - n b| <= b, so that the difference is a float, and fma gives it exactly. Denormals are no case
 * of their own: a quotient that overflows is rare. For r < b the result is r. */
static struct val near_remainder(struct form *f)
{
    struct emit *const e = f->e;
    const struct val b = absolute(e, f->y), a = absolute(e, f->x);
    const struct val q = DIV(a, b);
    const struct val defined = e_and(e, GT(b, K(0.0f)), LT(a, INF));
    f->rare = e_and(e, defined, GE(q, K(0x1p24f)));
    const struct val d = FMA(e_neg(e, CALL("trunc", q)), b, a);
    const struct val turn = SELECT(LT(d, K(0.0f)), ADD(d, b), d);
    const struct val r = flip(e, SELECT(GE(a, b), turn, a), sign_of(e, f->x));
    return SELECT(defined, r, NOT_A_NUMBER);
}

static struct val form_FMOD(struct form *f)
{
    return near_remainder(f);
}

/* m != 0 and truncation was upwards */
static struct val is_below(struct form *f, struct val m)
{
    struct emit *const e = f->e;
    const struct val signs = e_cmp(e, "icmp ne", LT(f->y, K(0.0f)), LT(m, K(0.0f)));
    return e_and(e, NE(m, K(0.0f)), signs);
}

static struct val form_DIV_FLOOR(struct form *f)
{
    struct emit *const e = f->e;
    const struct val x = f->x, y = f->y, m = near_remainder(f);
    const struct val q = SUB(DIV(SUB(x, m), y), SELECT(is_below(f, m), K(1.0f), K(0.0f)));
    const struct val down = CALL("floor", q);
    struct val r = SELECT(GT(SUB(q, down), K(0.5f)), ADD(down, K(1.0f)), down);
    r = SELECT(EQ(q, K(0.0f)), FLOAT(XOR(sign_of(e, x), sign_of(e, y))), r);
    return SELECT(EQ(y, K(0.0f)), DIV(x, y), r);
}

static struct val form_REM_FLOOR(struct form *f)
{
    struct emit *const e = f->e;
    const struct val m = near_remainder(f);
    const struct val r = SELECT(is_below(f, m), ADD(m, f->y), m);
    return SELECT(EQ(m, K(0.0f)), FLOAT(sign_of(e, f->y)), r);
}

/* ---- 16-bit fma ------------------------------------------------------------------------------------------------- */

/* `rest`: what r has lost. */
static struct val to_odd(struct emit *e, struct val r, struct val rest)
{
    const struct val zero = e_const((enum elem)rest.elem, 0);
    const struct val bits = BITS(r), above = GT(rest, zero);
    const struct val inexact = e_or(e, above, LT(rest, zero));
    const struct val even = IAND(e_cast(e, "zext", inexact, E_I32), e_not(e, bits));
    const struct val away = e_cmp(e, "icmp eq", above, e_cmp(e, "icmp sge", bits, e_i32(0)));
    return FLOAT(SELECT(away, IADD(bits, even), ISUB(bits, even)));
}

/* p + z; *lost: what that rounds away */
static struct val two_sum(struct emit *e, struct val p, struct val z, struct val *lost)
{
    const struct val sum = ADD(p, z), part = SUB(sum, p);
    *lost = ADD(SUB(p, SUB(sum, part)), SUB(z, part));
    return sum;
}

static struct val form_fma_odd(struct form *f)
{
    struct emit *const e = f->e;
    const struct val p = MUL(e_cast(e, "fpext", f->x, E_F64), e_cast(e, "fpext", f->y, E_F64));
    struct val lost;
    const struct val sum = two_sum(e, p, e_cast(e, "fpext", f->z, E_F64), &lost);
    const struct val r = e_cast(e, "fptrunc", sum, E_F32);
    const struct val left = SUB(sum, e_cast(e, "fpext", r, E_F64));
    return to_odd(e, r, SELECT(NE(left, e_f64(0)), left, lost));
}

/* Of f16 a product is exact in f32 already. What is between two floats rounds to the odd one however it is found. */
static struct val form_fma_odd_f16(struct form *f)
{
    struct emit *const e = f->e;
    struct val lost;
    const struct val sum = two_sum(e, MUL(f->x, f->y), f->z, &lost);
    return to_odd(e, sum, lost);
}

/* ---- forms as functions ----------------------------------------------------------------------------------------- */

typedef struct val form_fn(struct form *f);

enum form_kind {
    PLAIN,
    DIRECT, /* a single instruction: written in place */
    COLD    /* has rare lanes */
};

struct form_info {
    const char *name;
    form_fn *form, *fast;
    uint8_t arity, kind;
};

#define form_ABS form_FABS
#define form_MIN form_FMIN
#define form_MAX form_FMAX

static const struct form_info form_infos[OP_COUNT] = {
#define FAST_0(ID) NULL
#define FAST_1(ID) fast_##ID
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc)                                               \
    [OP_##ID] = {name, form_##ID, FAST_##fast(ID), arity, KIND_##ID},
#define KIND_EXP PLAIN
#define KIND_EXP2 PLAIN
#define KIND_LOG PLAIN
#define KIND_LOG2 PLAIN
#define KIND_LOG10 PLAIN
#define KIND_SQRT PLAIN
#define KIND_RSQRT PLAIN
#define KIND_SIN COLD
#define KIND_COS COLD
#define KIND_TAN COLD
#define KIND_ASIN PLAIN
#define KIND_ACOS PLAIN
#define KIND_ATAN PLAIN
#define KIND_SINH PLAIN
#define KIND_COSH PLAIN
#define KIND_TANH PLAIN
#define KIND_FLOOR DIRECT
#define KIND_CEIL DIRECT
#define KIND_ROUND PLAIN
#define KIND_RINT DIRECT
#define KIND_TRUNC DIRECT
#define KIND_FABS DIRECT
#define KIND_ABS DIRECT
#define KIND_SIGN PLAIN
#define KIND_POW PLAIN
#define KIND_FMOD COLD
#define KIND_ATAN2 PLAIN
#define KIND_FMIN PLAIN
#define KIND_FMAX PLAIN
#define KIND_MIN PLAIN
#define KIND_MAX PLAIN
#define KIND_CLAMP PLAIN
#define KIND_FMA DIRECT
#include "ir/math.def"
#undef MATH
    [OP_DIV_FLOOR] = {"div_floor", form_DIV_FLOOR, NULL, 2, COLD},
    [OP_REM_FLOOR] = {"rem_floor", form_REM_FLOOR, NULL, 2, COLD},
};

static const struct form_info fma_odd = {"fma_odd", form_fma_odd, NULL, 3, PLAIN};
static const struct form_info fma_odd_f16 = {"fma_odd_f16", form_fma_odd_f16, NULL, 3, PLAIN};

/* y with the rare lanes computed by the helper. It touches nothing but the operands' and results' places, and the call says
 * so: what the code around has read from memory stays known. */
static struct val with_rare(struct form *f, enum op op, unsigned arity, struct val worker, struct val mask,
                            struct val y)
{
    struct emit *const e = f->e;
    const bool varying = y.shape == V_VARYING;
    const struct val in[] = {f->x, f->y};
    const struct val lanes = e_and(e, f->rare, mask);
    const struct slot result = e_slot(e, E_F32, varying);
    const uint32_t cold = e_block(e), done = e_block(e);
    char type[24];
    (void)e_type_name(e, E_F32, varying, type);
    e_put(e, result, y);
    e_branch(e, e_any(e, lanes), cold, done, ODDS_UNLIKELY);
    e_place(e, cold);
    const uint64_t stride = sizeof(float) * MATH_LANES;
    const struct val room = e_named(E_PTR, false, e_room(e, stride * (arity + 1)));
    for (unsigned k = 0; k < arity; k++)
        e_line(e, "store %s %%v%u, ptr %%v%u, align 4", type, in[k].id, e_gep(e, room, e_i64(stride * k)).id);
    const struct val out = e_gep(e, room, e_i64(stride * arity));
    e_line(e, "store %s %%v%u, ptr %%v%u, align 4", type, y.id, out.id);
    const uint32_t table = e_id(e), helper = e_id(e), after = e_id(e);
    const struct val bits = varying ? e_bits(e, lanes) : e_cast(e, "zext", lanes, E_I32);
    e_line(e, "%%v%u = load ptr, ptr %%v%u, align 8", table, e_gep(e, worker, e_i64(WORKER(helper))).id);
    e_line(e, "%%v%u = load ptr, ptr %%v%u, align 8", helper,
           e_gep(e, e_named(E_PTR, false, table), e_i64(sizeof(void *) * HELPER_MATH)).id);
    e_line(e,
           "call void %%v%u(ptr readnone %%v%u, i32 %u, ptr %%v%u, ptr %%v%u, i32 %%v%u) nounwind willreturn "
           "memory(argmem: readwrite)",
           helper, worker.id, (unsigned)op, room.id, out.id, bits.id);
    e_line(e, "%%v%u = load %s, ptr %%v%u, align 4", after, type, out.id);
    e_put(e, result, e_named(E_F32, varying, after));
    e_place(e, done);
    return e_get(e, result);
}

/* The function for one shape: "define internal <32 x float> @exp.v(<32 x float> %v1)". */
static void write_form(struct lower *l, const struct form_info *info, enum op op, bool fast, const char *name,
                       bool varying)
{
    struct emit *const e = &l->e;
    const bool cold = info->kind == COLD && !fast;
    struct val v[3] = {{0}}, worker = {0}, mask = e_true();
    char type[24], mask_type[24];
    (void)e_type_name(e, E_F32, varying, type);
    struct buf head;
    buf_init(&head, e->mem);
    buf_fmt(&head, "internal %s @%s(", type, name);
    if (cold) {
        worker = e_named(E_PTR, false, e_id(e));
        buf_fmt(&head, "ptr %%v%u, ", worker.id);
    }
    if (cold && varying) {
        mask = e_named(E_I1, true, e_id(e));
        buf_fmt(&head, "%s %%v%u, ", e_type_name(e, E_I1, true, mask_type), mask.id);
    }
    for (unsigned k = 0; k < info->arity; k++) {
        v[k] = e_named(E_F32, varying, e_id(e));
        buf_fmt(&head, "%s%s %%v%u", k ? ", " : "", type, v[k].id);
    }
    emit_begin(e, "%s) alwaysinline nounwind", buf_text(&head));
    buf_free(&head);
    struct form f = {e, l->opt.features, v[0], v[1], v[2], e_false()};
    struct val y = fast ? info->fast(&f) : info->form(&f);
    if (cold)
        y = with_rare(&f, op, info->arity, worker, mask, y);
    char text[48];
    (void)snprintf(text, sizeof text, "ret %s %%v%u", type, y.id);
    e_return(e, text);
    emit_end(e);
}

static struct val call_cold(struct lower *l, const char *name, bool varying, unsigned arity, const struct val *in)
{
    struct emit *const e = &l->e;
    struct val arg[3];
    for (unsigned k = 0; k < arity; k++)
        arg[k] = varying ? e_vary(e, in[k]) : in[k];
    const struct val mask = varying ? e_vary(e, l->mask) : l->mask;
    const struct val r = e_named(E_F32, varying, e_id(e));
    char type[24];
    (void)e_type_name(e, E_F32, varying, type);
    struct buf line;
    buf_init(&line, e->mem);
    buf_fmt(&line, "%%v%u = call %s @%s(ptr %%v%u", r.id, type, name, l->worker.id);
    if (varying)
        buf_fmt(&line, ", <%u x i1> %%v%u", e->width, mask.id);
    for (unsigned k = 0; k < arity; k++) {
        buf_fmt(&line, ", %s ", type);
        e_operand(e, &line, arg[k]);
    }
    e_line(e, "%s)", buf_text(&line));
    buf_free(&line);
    return r;
}

static struct val use_form(struct lower *l, const struct form_info *info, enum op op, bool fast, const struct val *in)
{
    struct emit *const e = &l->e;
    bool varying = false;
    for (unsigned k = 0; k < info->arity; k++)
        varying = varying || in[k].shape == V_VARYING;
    fast = fast && info->fast;
    if (info->kind == DIRECT) {
        struct form f = {e, l->opt.features, in[0], in[1], in[2], e_false()};
        return fast ? info->fast(&f) : info->form(&f);
    }
    char name[32], full[40];
    (void)snprintf(name, sizeof name, "%s%s", fast ? "fast_" : "", info->name);
    (void)snprintf(full, sizeof full, "%s.%c", name, varying ? 'v' : 'u');
    const uint32_t known = e->declared.str.n;
    (void)strtab_id(&e->declared, full, strlen(full));
    if (e->declared.str.n != known)
        write_form(l, info, op, fast, full, varying);
    if (info->kind == COLD && !fast)
        return call_cold(l, full, varying, info->arity, in);
    return e_call(e, name, E_F32, info->arity, in);
}

struct val math_lower(struct lower *l, enum op op, bool fast, struct val a, struct val b, struct val c)
{
    return use_form(l, &form_infos[op], op, fast, (struct val[]){a, b, c});
}

struct val math_fma_odd_lower(struct lower *l, struct val a, struct val b, struct val c)
{
    return use_form(l, &fma_odd, OP_FMA, false, (struct val[]){a, b, c});
}

struct val math_fma_odd_f16_lower(struct lower *l, struct val a, struct val b, struct val c)
{
    return use_form(l, &fma_odd_f16, OP_FMA, false, (struct val[]){a, b, c});
}
