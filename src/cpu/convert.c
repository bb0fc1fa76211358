/* convert.c - conversions between scalars. */
#include "cpu/ops.h"

static bool is_signed(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_S;
}

/* Truncates and saturates, NaN gives 0: LLVM's conversion sees only numbers that fit. */
static struct val to_integer(struct lower *l, struct val x, enum scalar to)
{
    struct emit *const e = &l->e;
    const unsigned bits = scalar_info[to].bits;
    const bool sg = is_signed(to);
    const float end = (float)(sg ? 0x1p-1 : 0x1p0) * (float)(bits == 64 ? 0x1p64 : (double)((uint64_t)1 << bits));
    const float low = sg ? -end : 0.0f;
    const enum elem t = lower_elem(to), wide = bits < 32 ? E_I32 : t;
    const struct val above = e_cmp(e, "fcmp oge", x, e_f32(end)), fits = e_cmp(e, "fcmp oge", x, e_f32(low));
    const struct val inside = e_and(e, fits, e_not(e, above));
    struct val r = e_cast(e, sg || bits < 32 ? "fptosi" : "fptoui", e_select(e, inside, x, e_f32(0.0f)), wide);
    if (wide != t)
        r = e_cast(e, "trunc", r, t);
    const uint64_t most = sg ? ~(uint64_t)0 >> (65 - bits) : ~(uint64_t)0 >> (64 - bits);
    r = e_select(e, above, e_const(t, most), r);
    if (!sg)
        return r;
    return e_select(e, e_cmp(e, "fcmp olt", x, e_f32(low)), e_const(t, (uint64_t)1 << (bits - 1)), r);
}

/* bf16 has 8 bits: of a magnitude of more than 24 the bits below the top 24 are gathered in the lowest, which no
 * rounding to 8 can mistake for a tie; then it is exact in f32, and rounded once. */
static struct val gathered(struct lower *l, struct val x, bool sg)
{
    struct emit *const e = &l->e;
    struct val negative = e_false();
    if (sg) {
        negative = e_cmp(e, "icmp slt", x, e_i64(0));
        x = e_select(e, negative, e_bin(e, "sub", e_i64(0), x), x);
    }
    const struct val in[] = {x, e_false()};
    const struct val zeros = e_intrinsic(e, "llvm.ctlz", E_I64, 2, in);
    const struct val few = e_cmp(e, "icmp ugt", zeros, e_i64(40));
    const struct val count = e_select(e, few, e_i64(0), e_bin(e, "sub", e_i64(40), e_select(e, few, e_i64(40), zeros)));
    const struct val top = e_bin(e, "lshr", x, count);
    const struct val lost = e_cmp(e, "icmp ne", e_bin(e, "shl", top, count), x);
    const struct val m = e_or(e, top, e_cast(e, "zext", lost, E_I64));
    const struct val scale = e_bin(e, "shl", e_bin(e, "add", e_cast(e, "trunc", count, E_I32), e_i32(127)), e_i32(23));
    const struct val f =
        e_bin(e, "fmul", e_cast(e, "uitofp", e_cast(e, "trunc", m, E_I32), E_F32), e_cast(e, "bitcast", scale, E_F32));
    return sg ? e_select(e, negative, e_neg(e, f), f) : f;
}

static struct val from_integer(struct lower *l, struct val x, enum scalar from, enum scalar to)
{
    struct emit *const e = &l->e;
    const bool sg = is_signed(from);
    const unsigned bits = scalar_info[from].bits;
    const char *const wide = sg ? "sext" : "zext", *const number = sg ? "sitofp" : "uitofp";
    if (from == S_BOOL)
        return from_integer(l, e_cast(e, "zext", x, E_I32), S_I32, to);
    if (to == S_BOOL)
        return e_cmp(e, "icmp ne", x, e_const((enum elem)x.elem, 0));
    if (to == S_F32)
        return e_cast(e, number, bits < 32 ? e_cast(e, wide, x, E_I32) : x, E_F32);
    if (to == S_F16) { /* past 2^17 all is infinite, up to there exact in f32 */
        if (bits < 32)
            return ops_narrow(l, from_integer(l, x, from, S_F32), to);
        const struct val most = e_const((enum elem)x.elem, 1 << 17),
                         least = e_const((enum elem)x.elem, -((uint64_t)1 << 17));
        x = e_select(e, e_cmp(e, sg ? "icmp slt" : "icmp ult", x, most), x, most);
        if (sg)
            x = e_select(e, e_cmp(e, "icmp sgt", x, least), x, least);
        return ops_narrow(l, e_cast(e, "sitofp", e_cast(e, "trunc", x, E_I32), E_F32), to);
    }
    if (to == S_BF16) {
        if (bits < 32)
            return ops_narrow(l, from_integer(l, x, from, S_F32), to);
        return ops_narrow(l, gathered(l, e_cast(e, wide, x, E_I64), sg), to);
    }
    const unsigned to_bits = scalar_info[to].bits;
    return to_bits == bits ? x : e_cast(e, to_bits > bits ? wide : "trunc", x, lower_elem(to));
}

struct val lower_convert(struct lower *l, struct val x, enum scalar from, enum scalar to)
{
    if (from == to)
        return x;
    if (scalar_info[from].class_ != CLASS_F)
        return from_integer(l, x, from, to);
    const struct val f = ops_widen(l, x, from);
    if (to == S_BOOL)
        return e_cmp(&l->e, "fcmp une", f, e_f32(0.0f));
    if (scalar_info[to].class_ == CLASS_F)
        return ops_narrow(l, f, to);
    return to_integer(l, f, to);
}
