/* simd.c - collectives. Lanes that are absent or not active hold the identity of what is combined. */
#include <stdio.h>

#include "cpu/ops.h"

struct group { /* a collective being written */
    struct lower *l;
    struct emit *e;
    enum op op;      /* as OP_SIMD_… */
    unsigned width;  /* 32, 4 */
    bool quad, full; /* full: all lanes are active */
    enum scalar s;
};

/* ---- lanes ------------------------------------------------------------------------------------------------------ */

static struct val lane_numbers(struct group *g)
{
    return e_ramp(g->e, E_I32, 1);
}

static struct val places(struct group *g) /* in the group */
{
    return e_bin(g->e, "and", lane_numbers(g), e_i32(g->width - 1));
}

/* Lane l takes lane l xor step. */
static struct val crossed(struct group *g, struct val x, unsigned step)
{
    int lane[32];
    for (unsigned k = 0; k < g->e->width; k++)
        lane[k] = (int)(k ^ step);
    return e_permute(g->e, x, lane);
}

/* Lane l takes lane l - step of its group, the first ones any. */
static struct val raised(struct group *g, struct val x, unsigned step)
{
    int lane[32];
    for (unsigned k = 0; k < g->e->width; k++)
        lane[k] = (k & (g->width - 1)) >= step ? (int)(k - step) : -1;
    return e_permute(g->e, x, lane);
}

static struct val from_place(struct group *g, struct val x, unsigned place)
{
    int lane[32];
    for (unsigned k = 0; k < g->e->width; k++)
        lane[k] = (int)((k & ~(g->width - 1)) + place);
    return e_permute(g->e, x, lane);
}

/* A half of 32 lanes of 32 bits. */
static uint32_t half_of(struct emit *e, struct val x, unsigned which)
{
    const uint32_t r = e_id(e);
    struct buf lanes;
    buf_init(&lanes, e->mem);
    for (unsigned k = 16 * which; k < 16 * which + 16; k++)
        buf_fmt(&lanes, "%si32 %u", k % 16 ? ", " : "", k);
    e_line(e, "%%v%u = shufflevector <32 x i32> %%v%u, <32 x i32> poison, <16 x i32> <%s>", r, x.id, buf_text(&lanes));
    buf_free(&lanes);
    return r;
}

/* 32 lanes of i32 by one instruction for each half. */
static struct val permuted(struct emit *e, struct val x, struct val lane)
{
    static const char name[] = "<16 x i32> @llvm.x86.avx512.vpermi2var.d.512";
    const uint32_t low = half_of(e, x, 0), high = half_of(e, x, 1);
    uint32_t part[2];
    char line[160];
    (void)snprintf(line, sizeof line, "%s(<16 x i32>, <16 x i32>, <16 x i32>)", name);
    e_declare(e, line);
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t from = half_of(e, lane, k);
        part[k] = e_id(e);
        e_line(e, "%%v%u = call %s(<16 x i32> %%v%u, <16 x i32> %%v%u, <16 x i32> %%v%u)", part[k], name, low, from,
               high);
    }
    struct buf lanes;
    buf_init(&lanes, e->mem);
    for (unsigned k = 0; k < 32; k++)
        buf_fmt(&lanes, "%si32 %u", k ? ", " : "", k);
    const struct val r = e_named(E_I32, true, e_id(e));
    e_line(e, "%%v%u = shufflevector <16 x i32> %%v%u, <16 x i32> %%v%u, <32 x i32> <%s>", r.id, part[0], part[1],
           buf_text(&lanes));
    buf_free(&lanes);
    return r;
}

static struct val through_memory(struct emit *e, struct val x, struct val lane)
{
    const enum elem t = (enum elem)x.elem;
    char type[24];
    const uint32_t room = e_room(e, (uint64_t)elem_bits(t) / 8 * e->width);
    e_line(e, "store %s %%v%u, ptr %%v%u, align 64", e_type_name(e, t, true, type), x.id, room);
    return ops_gather(e, room, t, lane);
}

/* x at varying lane numbers below the width. */
static struct val picked(struct group *g, struct val x, struct val lane)
{
    struct emit *const e = g->e;
    const enum elem t = (enum elem)x.elem;
    const bool one = e->width == 32 && (g->l->opt.features & CPU_AVX512);
    if (e_is_uniform(x))
        return x;
    if (elem_bits(t) < 32)
        return e_cast(e, "trunc", picked(g, e_cast(e, "zext", e_vary(e, x), E_I32), lane), t);
    x = e_vary(e, x);
    lane = e_vary(e, lane);
    if (!one)
        return through_memory(e, x, lane);
    if (elem_bits(t) == 32)
        return e_cast(e, "bitcast", permuted(e, e_cast(e, "bitcast", x, E_I32), lane), t);
    const struct val low = permuted(e, e_cast(e, "trunc", x, E_I32), lane);
    const struct val high = permuted(e, e_cast(e, "trunc", e_bin(e, "lshr", x, e_i64(32)), E_I32), lane);
    return e_bin(e, "or", e_cast(e, "zext", low, E_I64), e_bin(e, "shl", e_cast(e, "zext", high, E_I64), e_i64(32)));
}

/* i1: is that lane active? */
static struct val is_on(struct group *g, struct val lane)
{
    struct emit *const e = g->e;
    if (g->full)
        return e_true();
    const struct val bit = e_bin(e, "and", e_bin(e, "lshr", e_bits(e, g->l->mask), lane), e_i32(1));
    return e_cmp(e, "icmp ne", bit, e_i32(0));
}

/* ---- reductions and scans --------------------------------------------------------------------------------------- */

static uint64_t number(enum scalar s, double x)
{
    if (s == S_F16)
        return f16_from_f64(x);
    if (s == S_BF16)
        return bf16_from_f64(x);
    if (s == S_F32)
        return bits_f32((float)x);
    return (uint64_t)(int64_t)x;
}

/* Not of min and max of floats: see extreme. */
static struct val identity(enum op combine, enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    const uint64_t all = ~(uint64_t)0 >> (64 - bits), top = (uint64_t)1 << (bits - 1);
    const bool is_signed = scalar_info[s].class_ == CLASS_S;
    uint64_t x = scalar_info[s].class_ == CLASS_F ? number(s, -0.0) : 0;
    if (combine == OP_MUL)
        x = number(s, 1);
    else if (combine == OP_MIN)
        x = is_signed ? all ^ top : all;
    else if (combine == OP_MAX)
        x = is_signed ? top : 0;
    else if (combine == OP_AND)
        x = all;
    return e_const(lower_elem(s), x);
}

static enum op combining(enum op op)
{
    switch ((unsigned)op) {
    case OP_SIMD_SUM:
    case OP_SIMD_INCLUSIVE_SUM:
    case OP_SIMD_EXCLUSIVE_SUM: return OP_ADD;
    case OP_SIMD_PRODUCT:
    case OP_SIMD_INCLUSIVE_PRODUCT:
    case OP_SIMD_EXCLUSIVE_PRODUCT: return OP_MUL;
    case OP_SIMD_MIN: return OP_MIN;
    case OP_SIMD_MAX: return OP_MAX;
    case OP_SIMD_AND: return OP_AND;
    case OP_SIMD_OR: return OP_OR;
    case OP_SIMD_XOR: return OP_XOR;
    }
    return OP_NONE;
}

/* Lanes `first` to first + n - 1 as a vector of n. */
static struct val some_lanes(struct emit *e, struct val x, unsigned first, unsigned n)
{
    const struct val r = e_named((enum elem)x.elem, true, e_id(e));
    char type[24];
    struct buf lanes;
    buf_init(&lanes, e->mem);
    for (unsigned k = first; k < first + n; k++)
        buf_fmt(&lanes, "%si32 %u", k > first ? ", " : "", k);
    (void)e_type_name(e, (enum elem)x.elem, true, type);
    e_line(e, "%%v%u = shufflevector %s %%v%u, %s poison, <%u x i32> <%s>", r.id, type, x.id, type, n,
           buf_text(&lanes));
    buf_free(&lanes);
    return r;
}

/* What the tree leaves in lane 0, which is in all: of the lanes of a step only the lower half is needed for the
 * next one. The vectors are of half the width each time, and so are the constants that meet them, which are not
 * those of before. For operations that need no function of the module: these are of the full width. */
static struct val halved(struct group *g, enum op combine, struct val x)
{
    struct emit *const e = g->e;
    const unsigned width = e->width;
    struct splat *const at = e->splats.at;
    const uint32_t n = e->splats.n, cap = e->splats.cap;
    for (unsigned step = width / 2; step > 1; step /= 2) {
        const struct val low = some_lanes(e, x, 0, step), high = some_lanes(e, x, step, step);
        e->width = step;
        e->splats.at = NULL;
        e->splats.n = e->splats.cap = 0;
        x = lower_scalar(g->l, combine, g->s, 0, low, high, low);
        VEC_FREE(e->mem, &e->splats);
    }
    const struct val a = e_lane(e, x, e_i32(0)), b = e_lane(e, x, e_i32(1));
    e->width = width;
    e->splats.at = at;
    e->splats.n = n;
    e->splats.cap = cap;
    return lower_scalar(g->l, combine, g->s, 0, a, b, a);
}

static struct val combined(struct group *g, enum op combine, struct val x)
{
    if (!g->quad)
        return halved(g, combine, x);
    for (unsigned step = g->width / 2; step; step /= 2)
        x = lower_scalar(g->l, combine, g->s, 0, x, crossed(g, x, step), x);
    return x;
}

/* Bits of floats as signed integers of the same order, -0.0 before 0.0; and back. */
static struct val ordered(struct emit *e, struct val x)
{
    const enum elem t = (enum elem)x.elem;
    const struct val sign = e_bin(e, "ashr", x, e_const(t, elem_bits(t) - 1));
    return e_bin(e, "xor", x, e_bin(e, "and", sign, e_const(t, UINT64_MAX >> (65 - elem_bits(t)))));
}

/* The least or greatest of floats, as integers. NaNs and lanes that are not active take the end of the order that
 * loses, which stands for a NaN. */
static struct val extreme(struct group *g, enum op combine, struct val x)
{
    struct emit *const e = g->e;
    const enum scalar s = g->s;
    const enum elem real = (enum elem)x.elem, t = s == S_F32 ? E_I32 : E_I16;
    const uint64_t sign = (uint64_t)1 << (elem_bits(t) - 1), inf = s == S_F32   ? 0x7f800000
                                                                   : s == S_F16 ? 0x7c00
                                                                                : 0x7f80;
    const uint64_t nan = s == S_F32 ? 0x7fc00000 : s == S_F16 ? 0x7e00 : 0x7fc0;
    const struct val last = e_const(t, combine == OP_MIN ? sign - 1 : sign);
    x = e_cast(e, "bitcast", e_vary(e, x), t);
    const struct val is_nan = e_cmp(e, "icmp ugt", e_bin(e, "and", x, e_const(t, sign - 1)), e_const(t, inf));
    x = e_select(e, e_or(e, is_nan, e_not(e, g->l->mask)), last, ordered(e, x));
    g->s = s == S_F32 ? S_I32 : S_I16;
    x = combined(g, combine, x);
    g->s = s;
    x = e_select(e, e_cmp(e, "icmp eq", x, last), e_const(t, nan), ordered(e, x));
    return e_cast(e, "bitcast", x, real);
}

static struct val reduce(struct group *g, enum op combine, struct val x)
{
    if (scalar_info[g->s].class_ == CLASS_F && (combine == OP_MIN || combine == OP_MAX))
        return extreme(g, combine, x);
    x = e_vary(g->e, x);
    if (!g->full)
        x = e_select(g->e, g->l->mask, x, identity(combine, g->s));
    return combined(g, combine, x);
}

static struct val at_least(struct group *g, unsigned step)
{
    return e_cmp(g->e, "icmp uge", places(g), e_i32(step));
}

/* i1: a lane below in the group is active. */
static struct val has_below(struct group *g)
{
    struct emit *const e = g->e;
    if (g->full)
        return at_least(g, 1);
    struct val any = e_false();
    if (!g->quad) {
        const struct val in[] = {e_bits(e, g->l->mask), e_false()};
        return e_cmp(e, "icmp ugt", lane_numbers(g), e_intrinsic(e, "llvm.cttz", E_I32, 2, in));
    }
    for (unsigned step = 1; step < g->width; step++)
        any = e_or(e, any, e_and(e, at_least(g, step), raised(g, e_vary(e, g->l->mask), step)));
    return any;
}

static struct val scan(struct group *g, enum op combine, bool exclusive, struct val x)
{
    struct emit *const e = g->e;
    x = e_vary(e, x);
    if (!g->full)
        x = e_select(e, g->l->mask, x, identity(combine, g->s));
    for (unsigned step = 1; step < g->width; step *= 2)
        x = e_select(e, at_least(g, step), lower_scalar(g->l, combine, g->s, 0, raised(g, x, step), x, x), x);
    if (!exclusive)
        return x;
    const struct val none = e_const(lower_elem(g->s), number(g->s, combine == OP_MUL ? 1 : 0));
    return e_select(e, has_below(g), raised(g, x, 1), none);
}

/* ---- values of other lanes -------------------------------------------------------------------------------------- */

#define FAR_AWAY 127u /* a lane number, delta or mask past any end; rotations count modulo the width */

static struct val operand(struct group *g, struct val x, enum scalar s, bool rotates)
{
    struct emit *const e = g->e;
    const bool sg = scalar_info[s].class_ == CLASS_S;
    const unsigned bits = elem_bits((enum elem)x.elem);
    if (x.shape == V_CONST) /* a negative one has high bits */
        return e_i32(rotates ? (uint32_t)x.bits & (g->width - 1) : x.bits < FAR_AWAY ? (uint32_t)x.bits : FAR_AWAY);
    if (rotates)
        return e_bin(e, "and", e_cast(e, bits > 32 ? "trunc" : "zext", x, E_I32), e_i32(g->width - 1));
    if (bits < 32)
        x = e_cast(e, sg ? "sext" : "zext", x, E_I32);
    const struct val near = e_cmp(e, "icmp ult", x, e_const((enum elem)x.elem, FAR_AWAY));
    return e_select(e, near, bits > 32 ? e_cast(e, "trunc", x, E_I32) : x, e_i32(FAR_AWAY));
}

/* The place that lane takes from: below the width of the value, from 64 of the filling (place - 64); FAR_AWAY:
 * nowhere. */
#define FILLING 64u
static struct val source(struct group *g, struct val n)
{
    struct emit *const e = g->e;
    const struct val p = places(g), w = e_i32(g->width), nowhere = e_i32(FAR_AWAY);
    switch ((unsigned)g->op) {
    case OP_SIMD_BROADCAST:
    case OP_SIMD_SHUFFLE: return e_select(e, e_cmp(e, "icmp ult", n, w), n, nowhere);
    case OP_SIMD_SHUFFLE_UP: return e_select(e, e_cmp(e, "icmp ule", n, p), e_bin(e, "sub", p, n), p);
    case OP_SIMD_SHUFFLE_DOWN:
        return e_select(e, e_cmp(e, "icmp ult", n, e_bin(e, "sub", w, p)), e_bin(e, "add", p, n), p);
    case OP_SIMD_SHUFFLE_XOR: {
        const struct val k = e_bin(e, "xor", p, n);
        return e_select(e, e_cmp(e, "icmp ult", k, w), k, nowhere);
    }
    case OP_SIMD_ROTATE_UP: return e_bin(e, "and", e_bin(e, "sub", p, n), e_i32(g->width - 1));
    case OP_SIMD_ROTATE_DOWN: return e_bin(e, "and", e_bin(e, "add", p, n), e_i32(g->width - 1));
    case OP_SIMD_FILL_UP: {
        const struct val from = e_bin(e, "add", e_bin(e, "sub", p, n), e_i32(FILLING + g->width));
        const struct val past = e_select(e, e_cmp(e, "icmp ule", n, e_bin(e, "add", w, p)), from, nowhere);
        return e_select(e, e_cmp(e, "icmp ule", n, p), e_bin(e, "sub", p, n), past);
    }
    case OP_SIMD_FILL_DOWN: {
        const struct val k = e_bin(e, "add", p, n), past = e_bin(e, "add", k, e_i32(FILLING - g->width));
        const struct val in = e_cmp(e, "icmp ult", n, e_bin(e, "sub", w, p));
        const struct val fill = e_cmp(e, "icmp ult", n, e_bin(e, "sub", e_i32(2 * g->width), p));
        return e_select(e, in, k, e_select(e, fill, past, nowhere));
    }
    }
    return p;
}

/* The lanes by number of a shuffle whose operand is a constant. */
struct sources {
    int lane[32];
    uint32_t some, filled; /* lanes that get a value, those among them that get it from the filling */
};

static struct sources constant_sources(const struct group *g, uint32_t n)
{
    const uint32_t w = g->width;
    const bool can_fill = g->op == OP_SIMD_FILL_UP || g->op == OP_SIMD_FILL_DOWN;
    struct sources r = {{0}, 0, 0};
    for (uint32_t l = 0; l < g->e->width; l++) {
        const uint32_t p = l & (w - 1);
        uint32_t k = p;
        switch ((unsigned)g->op) {
        case OP_SIMD_BROADCAST:
        case OP_SIMD_SHUFFLE: k = n; break;
        case OP_SIMD_SHUFFLE_UP: k = n <= p ? p - n : p; break;
        case OP_SIMD_SHUFFLE_DOWN: k = n < w - p ? p + n : p; break;
        case OP_SIMD_SHUFFLE_XOR: k = p ^ n; break;
        case OP_SIMD_ROTATE_UP: k = (p - n) & (w - 1); break;
        case OP_SIMD_ROTATE_DOWN: k = (p + n) & (w - 1); break;
        case OP_SIMD_FILL_UP: k = n <= p ? p - n : n <= w + p ? FILLING + w + p - n : FAR_AWAY; break;
        case OP_SIMD_FILL_DOWN: k = n < w - p ? p + n : n < 2 * w - p ? FILLING + p + n - w : FAR_AWAY; break;
        }
        const bool fills = can_fill && k >= FILLING && k < FILLING + w;
        const uint32_t bit = k < w || fills ? (uint32_t)1 << l : 0;
        r.some |= bit;
        r.filled |= fills ? bit : 0;
        r.lane[l] = bit ? (int)(l - p + (k & (w - 1))) : -1;
    }
    return r;
}

static struct val lanes_of(struct group *g, uint32_t bits)
{
    const uint32_t all = (uint32_t)e_bits(g->e, e_true()).bits;
    return bits == all ? e_true() : bits == 0 ? e_false() : e_from_bits(g->e, e_i32(bits));
}

static struct val constant_shuffle(struct group *g, struct val x, struct val filling, uint32_t n)
{
    struct emit *const e = g->e;
    const struct sources from = constant_sources(g, n);
    struct val r = e_permute(e, x, from.lane), valid = lanes_of(g, from.some);
    if (from.filled)
        r = e_select(e, lanes_of(g, from.filled), e_permute(e, filling, from.lane), r);
    if (!g->full && from.some)
        valid = e_and(e, valid, e_permute(e, g->l->mask, from.lane));
    return e_select(e, valid, r, e_const((enum elem)x.elem, 0));
}

/* From one lane for all: a scalar. */
static struct val one_lane(struct group *g, struct val x, struct val n)
{
    struct emit *const e = g->e;
    const struct val zero = e_const((enum elem)x.elem, 0);
    if (n.shape == V_CONST && n.bits >= g->width)
        return zero;
    const struct val at = e_bin(e, "and", n, e_i32(31));
    const struct val inside = n.shape == V_CONST ? e_true() : e_cmp(e, "icmp ult", n, e_i32(g->width));
    return e_select(e, e_and(e, inside, is_on(g, at)), e_lane(e, x, at), zero);
}

static struct val shuffle(struct group *g, struct val x, struct val filling, struct val n, enum scalar ns)
{
    struct emit *const e = g->e;
    const bool rotates = g->op == OP_SIMD_ROTATE_UP || g->op == OP_SIMD_ROTATE_DOWN;
    const bool fills = g->op == OP_SIMD_FILL_UP || g->op == OP_SIMD_FILL_DOWN;
    const struct val k = operand(g, n, ns, rotates);
    if (!g->quad && (g->op == OP_SIMD_BROADCAST || g->op == OP_SIMD_SHUFFLE) && e_is_uniform(k))
        return one_lane(g, x, k);
    if (k.shape == V_CONST)
        return constant_shuffle(g, x, filling, (uint32_t)k.bits);
    const struct val from = e_vary(e, source(g, k));
    const struct val first = e_bin(e, "and", lane_numbers(g), e_i32(~(g->width - 1)));
    const struct val place = e_bin(e, "and", from, e_i32(g->width - 1));
    const struct val lane = e_bin(e, "and", e_bin(e, "or", place, first), e_i32(e->width - 1));
    struct val r = picked(g, x, lane);
    if (fills)
        r = e_select(e, e_cmp(e, "icmp uge", from, e_i32(FILLING)), picked(g, filling, lane), r);
    const struct val valid = e_and(e, e_cmp(e, "icmp ne", from, e_i32(FAR_AWAY)), is_on(g, lane));
    return e_select(e, valid, r, e_const((enum elem)x.elem, 0));
}

static struct val first_active(struct group *g)
{
    const struct val in[] = {e_bits(g->e, g->l->mask), e_false()};
    return e_bin(g->e, "and", e_intrinsic(g->e, "llvm.cttz", E_I32, 2, in), e_i32(31));
}

static struct val broadcast_first(struct group *g, struct val x)
{
    struct emit *const e = g->e;
    if (!g->quad)
        return e_lane(e, x, g->full ? e_i32(0) : first_active(g));
    x = e_vary(e, x);
    struct val r = from_place(g, x, 3);
    for (unsigned k = 3; k-- > 0;)
        r = e_select(e, g->full ? e_true() : from_place(g, e_vary(e, g->l->mask), k), from_place(g, x, k), r);
    return r;
}

/* ---- votes ------------------------------------------------------------------------------------------------------ */

static struct val vote(struct group *g, struct val x)
{
    struct emit *const e = g->e;
    const bool all = g->op == OP_SIMD_ALL;
    const struct val on = e_vary(e, all ? e_or(e, e_vary(e, x), e_not(e, e_vary(e, g->l->mask)))
                                        : e_and(e, e_vary(e, x), e_vary(e, g->l->mask)));
    if (!g->quad)
        return all ? e_all(e, on) : e_any(e, on);
    struct val r = on;
    for (unsigned step = 2; step; step /= 2)
        r = all ? e_and(e, r, crossed(g, r, step)) : e_or(e, r, crossed(g, r, step));
    return r;
}

/* Bits of the group's lanes, u64. */
static struct val bits_of(struct group *g, struct val on)
{
    struct emit *const e = g->e;
    on = e_vary(e, on);
    if (!g->quad)
        return e_cast(e, "zext", e_bits(e, on), E_I64);
    struct val r = e_bin(e, "shl", e_cast(e, "zext", on, E_I32), places(g));
    for (unsigned step = 2; step; step /= 2)
        r = e_bin(e, "or", r, crossed(g, r, step));
    return e_cast(e, "zext", r, E_I64);
}

static struct val is_first(struct group *g)
{
    if (!g->quad && !g->full)
        return e_cmp(g->e, "icmp eq", lane_numbers(g), first_active(g));
    return e_not(g->e, has_below(g));
}

/* ----------------------------------------------------------------------------------------------------------------- */

bool lower_simd(struct lower *l, uint32_t id)
{
    const struct node x = *ir_at(l->m, id);
    const bool quad = x.op >= OP_QUAD_SUM && x.op <= OP_QUAD_ACTIVE;
    if (!quad && !(x.op >= OP_SIMD_SUM && x.op <= OP_SIMD_ACTIVE))
        return false;
    struct group g = {.l = l, .e = &l->e, .quad = quad, .width = quad ? 4 : 32, .full = e_is(l->mask, 1)};
    g.op = quad ? (enum op)((int)x.op - (int)OP_QUAD_SUM + (int)OP_SIMD_SUM) : (enum op)x.op;
    const uint32_t n = lower_leaves(l->m, x.type), *const in = ir_in(l->m, id);
    g.s = x.n ? ir_type_scalar(ir_at(l->m, in[0])->type) : S_BOOL;
    lower_out(l, id);
    for (uint32_t k = 0; k < n; k++) {
        struct val v[3] = {{0}};
        for (unsigned i = 0; i < x.n; i++)
            v[i] = lower_in(l, in[i], ir_type_width(ir_at(l->m, in[i])->type) > 1 ? k : 0);
        struct val r;
        switch ((unsigned)g.op) {
        case OP_SIMD_SUM:
        case OP_SIMD_PRODUCT:
        case OP_SIMD_MIN:
        case OP_SIMD_MAX:
        case OP_SIMD_AND:
        case OP_SIMD_OR:
        case OP_SIMD_XOR: r = reduce(&g, combining(g.op), v[0]); break;
        case OP_SIMD_INCLUSIVE_SUM:
        case OP_SIMD_INCLUSIVE_PRODUCT: r = scan(&g, combining(g.op), false, v[0]); break;
        case OP_SIMD_EXCLUSIVE_SUM:
        case OP_SIMD_EXCLUSIVE_PRODUCT: r = scan(&g, combining(g.op), true, v[0]); break;
        case OP_SIMD_BROADCAST_FIRST: r = broadcast_first(&g, v[0]); break;
        case OP_SIMD_ALL:
        case OP_SIMD_ANY: r = vote(&g, v[0]); break;
        case OP_SIMD_IS_FIRST: r = is_first(&g); break;
        case OP_SIMD_BALLOT: r = bits_of(&g, e_and(g.e, e_vary(g.e, v[0]), e_vary(g.e, l->mask))); break;
        case OP_SIMD_ACTIVE: r = bits_of(&g, l->mask); break;
        default:
            r = shuffle(&g, v[0], v[1], x.n > 2 ? v[2] : v[1], ir_type_scalar(ir_at(l->m, in[x.n - 1])->type));
            break;
        }
        lower_set(l, id, k, r);
    }
    return true;
}
