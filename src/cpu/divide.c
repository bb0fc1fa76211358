/* divide.c - division of integers. No lane may divide by 0, nor the smallest by -1, whatever it holds: such divisors
 * are replaced before, and what they stand for is put in after.
 */
#include "cpu/ops.h"

struct division {
    struct emit *e;
    enum scalar s;
    bool is_signed;
    struct val a, b;
    struct val zero, one, minus;
};

static bool is_power(uint64_t x)
{
    return x && !(x & (x - 1));
}

/* b is not 0, and for signed types not -1.
 *
 * Vectors have no integer division; LLVM makes multiplications for constants, and one scalar division a lane for the
 * rest. Narrower ones go through floats: let n be the integer above the exact a / b, of magnitudes below 2^p. Then
 * n - a / b >= 1 / b, relative to n at least 1 / (b n) > 2^-(p + 1), as b n <= a + b. A double rounds by at most 2^-53
 * (p = 32), a float by at most 2^-24 (p = 16), so the rounded quotient stays below n and truncates as a / b does.
 */
static struct val quotient_of(const struct division *d, struct val b)
{
    struct emit *const e = d->e;
    const unsigned bits = scalar_info[d->s].bits;
    const enum elem t = (enum elem)d->a.elem;
    if (bits == 64 || (e_is_uniform(d->a) && e_is_uniform(b)) || b.shape == V_CONST)
        return e_bin(e, d->is_signed ? "sdiv" : "udiv", d->a, b);
    const enum elem f = bits == 32 ? E_F64 : E_F32;
    const char *const number = d->is_signed ? "sitofp" : "uitofp";
    const struct val q = e_bin(e, "fdiv", e_cast(e, number, d->a, f), e_cast(e, number, b, f));
    return e_cast(e, "trunc", e_cast(e, d->is_signed || bits < 32 ? "fptosi" : "fptoui", q, E_I32), t);
}

/* From what truncates to what rounds down, for signed types. */
static struct val floored(const struct division *d, struct val q, struct val r, bool rest)
{
    struct emit *const e = d->e;
    const struct val off =
        e_and(e, e_cmp(e, "icmp ne", r, d->zero), e_cmp(e, "icmp slt", e_bin(e, "xor", r, d->b), d->zero));
    if (rest)
        return e_bin(e, "add", r, e_select(e, off, d->b, d->zero));
    return e_bin(e, "add", q, e_cast(e, "sext", off, (enum elem)q.elem));
}

static struct val answer(const struct division *d, struct val q, bool rest, bool floors)
{
    struct emit *const e = d->e;
    if (!rest && !floors)
        return q;
    const struct val r = e_bin(e, "sub", d->a, e_bin(e, "mul", q, d->b));
    return floors ? floored(d, q, r, rest) : r;
}

/* By a constant. */
static struct val by_constant(const struct division *d, bool rest, bool floors)
{
    struct emit *const e = d->e;
    const struct val b = d->b;
    if (e_is(b, 0))
        return d->zero;
    if (d->is_signed && e_is(b, d->minus.bits))
        return rest ? d->zero : e_bin(e, "sub", d->zero, d->a);
    const uint64_t top = (uint64_t)1 << (elem_bits((enum elem)b.elem) - 1);
    if (is_power(b.bits) && (!d->is_signed || (floors && b.bits != top))) {
        if (rest)
            return e_and(e, d->a, e_const((enum elem)b.elem, b.bits - 1));
        const struct val n = e_const((enum elem)b.elem, (uint64_t)__builtin_ctzll(b.bits));
        return e_bin(e, d->is_signed ? "ashr" : "lshr", d->a, n);
    }
    return answer(d, quotient_of(d, b), rest, floors);
}

struct val ops_divide(struct lower *l, enum op op, enum scalar s, struct val a, struct val b)
{
    struct emit *const e = &l->e;
    const enum elem t = (enum elem)a.elem;
    const bool rest = op == OP_REM_TRUNC || op == OP_REM_FLOOR;
    const struct division d = {.e = e,
                               .s = s,
                               .is_signed = scalar_info[s].class_ == CLASS_S,
                               .a = a,
                               .b = b,
                               .zero = e_const(t, 0),
                               .one = e_const(t, 1),
                               .minus = e_const(t, UINT64_MAX)};
    const bool floors = d.is_signed && (op == OP_DIV_FLOOR || op == OP_REM_FLOOR);
    if (b.shape == V_CONST)
        return by_constant(&d, rest, floors);
    const struct val none = e_cmp(e, "icmp eq", b, d.zero);
    struct val safe = e_select(e, none, d.one, b), negated = e_false();
    if (d.is_signed) {
        negated = e_cmp(e, "icmp eq", b, d.minus);
        safe = e_select(e, negated, d.one, safe);
    }
    struct val q = quotient_of(&d, safe);
    if (d.is_signed)
        q = e_select(e, negated, e_bin(e, "sub", d.zero, a), q);
    return e_select(e, none, d.zero, answer(&d, q, rest, floors));
}
