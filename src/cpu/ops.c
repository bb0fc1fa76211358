/* ops.c - pure operations: elementwise ones, and parts of vectors, structs and arrays. */
#include "cpu/ops.h"

#include <stdio.h>

/* ---- floats of 16 bits ------------------------------------------------------------------------------------------ */

static bool is_float(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_F;
}

static bool is_signed(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_S;
}

/* Where bits of floats become visible as integers in the kernel, a NaN that arithmetic makes is the quiet NaN. */
static struct val canonical(struct lower *l, struct val x)
{
    if (!l->canonical_nans || x.shape == V_CONST)
        return x;
    return e_select(&l->e, e_cmp(&l->e, "fcmp uno", x, x), e_const(E_F32, 0x7fc00000), x);
}

struct val ops_widen(struct lower *l, struct val x, enum scalar s)
{
    struct emit *const e = &l->e;
    if (s == S_F16) {
        const struct val f = e_cast(e, "fpext", e_cast(e, "bitcast", x, E_F16), E_F32);
        /* Else LLVM compares the halves themselves, which most machines can do but one by one. */
        return e_intrinsic(e, "llvm.arithmetic.fence", E_F32, 1, &f);
    }
    if (s == S_BF16)
        return e_cast(e, "bitcast", e_bin(e, "shl", e_cast(e, "zext", x, E_I32), e_i32(16)), E_F32);
    return x;
}

/* Rounds to nearest even, a NaN to some NaN. The steps of bf16 would take one for a number. */
struct val ops_narrow(struct lower *l, struct val x, enum scalar s)
{
    struct emit *const e = &l->e;
    if (s == S_F32)
        return canonical(l, x);
    const struct val nan = e_const(E_I16, s == S_F16 ? 0x7e00 : 0x7fc0);
    if (s == S_F16) {
        const struct val h = e_cast(e, "bitcast", e_cast(e, "fptrunc", x, E_F16), E_I16);
        return l->canonical_nans ? e_select(e, e_cmp(e, "fcmp uno", x, x), nan, h) : h;
    }
    const struct val is_nan = e_cmp(e, "fcmp uno", x, x);
    const struct val bits = e_cast(e, "bitcast", x, E_I32);
    const struct val odd = e_bin(e, "and", e_bin(e, "lshr", bits, e_i32(16)), e_i32(1));
    const struct val up = e_bin(e, "add", e_bin(e, "add", bits, e_i32(0x7fff)), odd);
    return e_select(e, is_nan, nan, e_cast(e, "trunc", e_bin(e, "lshr", up, e_i32(16)), E_I16));
}

/* ---- one scalar operation --------------------------------------------------------------------------------------- */

static struct val compare(struct lower *l, enum op op, enum scalar s, struct val a, struct val b)
{
    static const char *const way[3][6] = {
        {"icmp eq", "icmp ne", "icmp ult", "icmp ule", "icmp ugt", "icmp uge"},
        {"icmp eq", "icmp ne", "icmp slt", "icmp sle", "icmp sgt", "icmp sge"},
        {"fcmp oeq", "fcmp une", "fcmp olt", "fcmp ole", "fcmp ogt", "fcmp oge"},
    };
    if (is_float(s)) {
        a = ops_widen(l, a, s);
        b = ops_widen(l, b, s);
    }
    return e_cmp(&l->e, way[is_float(s) ? 2 : is_signed(s)][op - OP_EQ], a, b);
}

static struct val shift(struct lower *l, enum op op, enum scalar s, struct val a, struct val count)
{
    struct emit *const e = &l->e;
    count = e_bin(e, "and", count, e_const((enum elem)count.elem, scalar_info[s].bits - 1u));
    if (elem_bits((enum elem)count.elem) != elem_bits((enum elem)a.elem))
        count = e_cast(e, elem_bits((enum elem)count.elem) < elem_bits((enum elem)a.elem) ? "zext" : "trunc", count,
                       (enum elem)a.elem);
    return e_bin(e, op == OP_SHL ? "shl" : is_signed(s) ? "ashr" : "lshr", a, count);
}

/* By squaring. A constant exponent's bits are known; else as long as a lane has bits of it left. */
static struct val power_bits(struct emit *e, struct val base, struct val exponent)
{
    const enum elem t = (enum elem)base.elem;
    if (exponent.shape == V_CONST) {
        struct val product = e_const(t, 1);
        for (uint64_t left = exponent.bits; left; left >>= 1) {
            product = left & 1 ? e_bin(e, "mul", product, base) : product;
            base = left > 1 ? e_bin(e, "mul", base, base) : base;
        }
        return product;
    }
    const bool varies = !e_is_uniform(exponent);
    const bool varying = varies || !e_is_uniform(base);
    const struct slot r = e_slot(e, t, varying), b = e_slot(e, t, varying), x = e_slot(e, t, varies);
    const uint32_t head = e_block(e), body = e_block(e), end = e_block(e);
    e_put(e, r, e_const(t, 1));
    e_put(e, b, base);
    e_put(e, x, exponent);
    e_place(e, head);
    const struct val left = e_get(e, x);
    e_branch(e, e_any(e, e_cmp(e, "icmp ne", left, e_const(t, 0))), body, end, ODDS_LIKELY);
    e_place(e, body);
    const struct val bit = e_cmp(e, "icmp ne", e_bin(e, "and", left, e_const(t, 1)), e_const(t, 0));
    const struct val now = e_get(e, b), sofar = e_get(e, r);
    e_put(e, r, e_select(e, bit, e_bin(e, "mul", sofar, now), sofar));
    e_put(e, b, e_bin(e, "mul", now, now));
    e_put(e, x, e_bin(e, "lshr", left, e_const(t, 1)));
    e_jump(e, head);
    e_place(e, end);
    return e_get(e, r);
}

/* The bits above the width, of a negative exponent, make no difference to bases 1 and -1. */
static struct val power(struct lower *l, enum scalar s, struct val base, struct val exponent)
{
    struct emit *const e = &l->e;
    const enum elem t = (enum elem)base.elem;
    const uint64_t top = (uint64_t)1 << (elem_bits(t) - 1);
    const struct val y = power_bits(e, base, exponent);
    if (!is_signed(s) || (exponent.shape == V_CONST && exponent.bits < top))
        return y;
    const struct val one = e_cmp(e, "icmp eq", base, e_const(t, 1));
    const struct val minus = e_cmp(e, "icmp eq", base, e_const(t, UINT64_MAX));
    const struct val fine = e_or(e, e_cmp(e, "icmp sge", exponent, e_const(t, 0)), e_or(e, one, minus));
    return e_select(e, fine, y, e_const(t, 0));
}

static struct val integer(struct lower *l, enum op op, enum scalar s, struct val a, struct val b, struct val c)
{
    struct emit *const e = &l->e;
    const struct val zero = e_const((enum elem)a.elem, 0);
    const bool sg = is_signed(s);
    switch ((unsigned)op) {
    case OP_NEG: return e_bin(e, "sub", zero, a);
    case OP_NOT: return e_not(e, a);
    case OP_ADD: return e_bin(e, "add", a, b);
    case OP_SUB: return e_bin(e, "sub", a, b);
    case OP_MUL: return e_bin(e, "mul", a, b);
    case OP_AND: return e_and(e, a, b);
    case OP_OR: return e_or(e, a, b);
    case OP_XOR: return e_bin(e, "xor", a, b);
    case OP_SHL:
    case OP_SHR: return shift(l, op, s, a, b);
    case OP_DIV_TRUNC:
    case OP_REM_TRUNC:
    case OP_DIV_FLOOR:
    case OP_REM_FLOOR: return ops_divide(l, op, s, a, b);
    case OP_IPOW: return power(l, s, a, b);
    case OP_ABS: return sg ? e_select(e, e_cmp(e, "icmp slt", a, zero), e_bin(e, "sub", zero, a), a) : a;
    case OP_MIN: return e_select(e, e_cmp(e, sg ? "icmp slt" : "icmp ult", a, b), a, b);
    case OP_MAX: return e_select(e, e_cmp(e, sg ? "icmp slt" : "icmp ult", a, b), b, a);
    case OP_CLAMP: return integer(l, OP_MIN, s, integer(l, OP_MAX, s, a, b, b), c, c);
    }
    return a;
}

static struct val real(struct lower *l, enum op op, enum scalar s, unsigned flags, struct val a, struct val b,
                       struct val c)
{
    struct emit *const e = &l->e;
    const unsigned n = (unsigned)op_info[op].n;
    if (op == OP_NEG)
        return s == S_F32 ? e_neg(e, a) : e_bin(e, "xor", a, e_const(E_I16, 0x8000));
    if (op == OP_ABS || op == OP_FABS) {
        const enum elem t = s == S_F32 ? E_I32 : E_I16;
        const struct val bits =
            e_bin(e, "and", e_cast(e, "bitcast", a, t), e_const(t, s == S_F32 ? 0x7fffffff : 0x7fff));
        return e_cast(e, "bitcast", bits, lower_elem(s));
    }
    a = ops_widen(l, a, s);
    if (n > 1)
        b = ops_widen(l, b, s);
    if (n > 2)
        c = ops_widen(l, c, s);
    struct val r;
    if (op == OP_ADD)
        r = e_bin(e, "fadd", a, b);
    else if (op == OP_SUB)
        r = e_bin(e, "fsub", a, b);
    else if (op == OP_MUL)
        r = e_bin(e, "fmul", a, b);
    else if (op == OP_DIV)
        r = e_bin(e, "fdiv", a, b);
    else if (op == OP_FMA && s != S_F32)
        r = s == S_F16 ? math_fma_odd_f16_lower(l, a, b, c) : math_fma_odd_lower(l, a, b, c);
    else
        r = math_lower(l, op, (flags & NODE_FAST) != 0, a, b, c);
    return ops_narrow(l, r, s);
}

struct val lower_scalar(struct lower *l, enum op op, enum scalar s, unsigned flags, struct val a, struct val b,
                        struct val c)
{
    if (op_info[op].rule == RULE_COMPARE)
        return compare(l, op, s, a, b);
    if (is_float(s))
        return real(l, op, s, flags, a, b, c);
    return integer(l, op, s, a, b, c);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* Component k. Where the analysis finds it uniform or linear, it may be computed from what lane 0 has. */
static struct val component(struct lower *l, uint32_t id, uint32_t k)
{
    const struct node x = *ir_at(l->m, id);
    const enum scalar s = ir_type_scalar(ir_at(l->m, ir_in(l->m, id)[0])->type);
    const struct lane_info info = analysis_lane(&l->a, id, k);
    struct val v[3] = {{0}};
    bool varies = false, linear = false;
    for (unsigned i = 0; i < x.n; i++) {
        v[i] = lower_in(l, ir_in(l->m, id)[i], k);
        varies = varies || v[i].shape == V_VARYING;
        linear = linear || v[i].shape == V_LINEAR;
    }
    const bool base = linear && !varies && (info.linear || info.uniform < UNIFORM_V);
    for (unsigned i = 0; base && i < x.n; i++)
        v[i] = e_base(v[i]);
    const struct val r = x.op == OP_CONVERT ? lower_convert(l, v[0], s, ir_type_scalar(x.type))
                                            : lower_scalar(l, (enum op)x.op, s, x.flags, v[0], v[1], v[2]);
    return base && info.linear && info.stride ? e_linear(r, info.stride) : r;
}

static void elementwise(struct lower *l, uint32_t id)
{
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
    lower_out(l, id);
    for (uint32_t k = 0; k < n; k++)
        lower_set(l, id, k, component(l, id, k));
}

static void compare_pointers(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const uint32_t a = ir_in(l->m, id)[0], b = ir_in(l->m, id)[1];
    struct val same = e_true();
    for (uint32_t k = 0; k < 2; k++)
        same = e_and(e, same, e_cmp(e, "icmp eq", lower_in(l, a, k), lower_in(l, b, k)));
    lower_out(l, id);
    lower_set(l, id, 0, ir_at(l->m, id)->op == OP_EQ ? same : e_not(e, same));
}

/* Two linears of one stride, chosen for all lanes together, are one. */
static struct val choose_leaf(struct emit *e, struct val c, struct val a, struct val b)
{
    if (e_is_uniform(c) && a.shape == V_LINEAR && b.shape == V_LINEAR && a.stride == b.stride)
        return e_linear(e_select(e, c, e_base(a), e_base(b)), a.stride);
    return e_select(e, c, a, b);
}

static void choose(struct lower *l, uint32_t id)
{
    const uint32_t *const in = ir_in(l->m, id);
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
    const bool wide = ir_type_width(ir_at(l->m, in[0])->type) > 1;
    lower_out(l, id);
    for (uint32_t k = 0; k < n; k++) {
        const struct val c = lower_in(l, in[0], wide ? k : 0), a = lower_in(l, in[1], k), b = lower_in(l, in[2], k);
        lower_set(l, id, k, choose_leaf(&l->e, c, a, b));
    }
}

/* Leaves before part k of a type. */
static uint32_t part_at(const struct ir_module *m, ir_type t, uint64_t k)
{
    if (ir_type_at(m, t)->kind != TYPE_KIND_STRUCT)
        return (uint32_t)k * lower_leaves(m, ir_type_part(m, t, 0));
    uint32_t at = 0;
    for (uint64_t i = 0; i < k; i++)
        at += lower_leaves(m, ir_type_part(m, t, i));
    return at;
}

static void parts(struct lower *l, uint32_t id)
{
    const struct node x = *ir_at(l->m, id);
    const uint32_t *const in = ir_in(l->m, id);
    const uint32_t n = lower_leaves(l->m, x.type);
    uint32_t at = 0;
    lower_out(l, id);
    switch ((unsigned)x.op) {
    case OP_MAKE:
        for (unsigned i = 0; i < x.n; i++) {
            const uint32_t leaves = lower_leaves(l->m, ir_at(l->m, ir_in(l->m, id)[i])->type);
            for (uint32_t k = 0; k < leaves; k++)
                lower_set(l, id, at++, lower_in(l, ir_in(l->m, id)[i], k));
        }
        break;
    case OP_SPLAT:
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, id, k, lower_in(l, in[0], 0));
        break;
    case OP_EXTRACT:
        at = part_at(l->m, ir_at(l->m, in[0])->type, x.imm);
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, id, k, lower_in(l, in[0], at + k));
        break;
    case OP_INSERT: {
        at = part_at(l->m, x.type, x.imm);
        const uint32_t m = lower_leaves(l->m, ir_at(l->m, in[1])->type);
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, id, k, k >= at && k < at + m ? lower_in(l, in[1], k - at) : lower_in(l, in[0], k));
        break;
    }
    case OP_SHUFFLE:
        for (uint32_t k = 0; k < n; k++) {
            const unsigned pick = (unsigned)(x.imm >> (4 * k)) & 15u;
            lower_set(l, id, k, lower_in(l, in[pick >> 2 & 1], pick & 3));
        }
        break;
    }
}

/* ---- parts at run-time indices ---------------------------------------------------------------------------------- */

/* Of more parts than this one is fetched from the stack, of fewer it is chosen. */
#define MANY_PARTS 24u

/* Reads of a room in which elements of type t, 32 or 64 bits, follow each other. */
struct val ops_gather(struct emit *e, uint32_t room, enum elem t, struct val index)
{
    const unsigned bytes = elem_bits(t) / 8, w = e->width;
    char type[24], line[160];
    const bool varying = index.shape == V_VARYING || index.shape == V_LINEAR;
    (void)e_type_name(e, t, varying, type);
    if (!varying) {
        const struct val offset = e_bin(e, "mul", e_cast(e, "zext", index, E_I64), e_i64(bytes));
        const struct val at = e_gep(e, e_named(E_PTR, false, room), offset), r = e_named(t, false, e_id(e));
        e_line(e, "%%v%u = load %s, ptr %%v%u", r.id, type, at.id);
        return r;
    }
    index = e_vary(e, index);
    const uint32_t at = e_id(e);
    const char *const suffix = bytes == 8 ? "i64" : t == E_F32 ? "f32" : "i32";
    e_line(e, "%%v%u = getelementptr [%u x i8], ptr %%v%u, <%u x i32> %%v%u", at, bytes, room, w, index.id);
    (void)snprintf(line, sizeof line, "%s @llvm.masked.gather.v%u%s.v%up0(<%u x ptr>, i32, <%u x i1>, %s)", type, w,
                   suffix, w, w, w, type);
    e_declare(e, line);
    const struct val all = e_vary(e, e_true()), r = e_named(t, true, e_id(e));
    e_line(e,
           "%%v%u = call %s @llvm.masked.gather.v%u%s.v%up0(<%u x ptr> %%v%u, i32 %u, <%u x i1> %%v%u, %s "
           "zeroinitializer)",
           r.id, type, w, suffix, w, w, at, bytes, w, all.id, type);
    return r;
}

static struct val as_wide(struct emit *e, struct val x) /* as ops_gather wants it */
{
    return elem_bits((enum elem)x.elem) < 32 ? e_cast(e, "zext", x, E_I32) : x;
}

struct parts {
    struct lower *l;
    uint32_t whole, each; /* node; leaves of a part */
    uint64_t n;           /* parts */
    struct val index;     /* i32, within the parts */
    struct val inside;    /* i1: the index is */
};

static struct parts parts_of(struct lower *l, uint32_t whole, uint32_t index)
{
    struct emit *const e = &l->e;
    const ir_type t = ir_at(l->m, whole)->type;
    struct parts p = {.l = l, .whole = whole, .n = ir_type_parts(l->m, t)};
    p.each = lower_leaves(l->m, ir_type_part(l->m, t, 0));
    struct val i = lower_in(l, index, 0);
    const bool is_wide = elem_bits((enum elem)i.elem) > 32;
    if (elem_bits((enum elem)i.elem) < 32)
        i = e_cast(e, is_signed(ir_type_scalar(ir_at(l->m, index)->type)) ? "sext" : "zext", i, E_I32);
    if (i.shape == V_CONST) {
        p.inside = i.bits < p.n ? e_true() : e_false();
        p.index = e_i32(i.bits < p.n ? (uint32_t)i.bits : 0);
        return p;
    }
    p.inside = e_cmp(e, "icmp ult", i, e_const((enum elem)i.elem, p.n));
    p.index = e_select(e, p.inside, is_wide ? e_cast(e, "trunc", i, E_I32) : i, e_i32(0));
    return p;
}

/* Leaf k of the part, any where the index is outside. */
static struct val fetched(const struct parts *p, uint32_t k)
{
    struct emit *const e = &p->l->e;
    const enum elem t = (enum elem)lower_in(p->l, p->whole, k).elem, wide = elem_bits(t) < 32 ? E_I32 : t;
    bool varying = false;
    for (uint64_t i = 0; i < p->n; i++)
        varying = varying || !e_is_uniform(lower_in(p->l, p->whole, (uint32_t)i * p->each + k));
    const uint32_t lanes = varying ? e->width : 1;
    const uint64_t step = (uint64_t)elem_bits(wide) / 8 * lanes;
    const uint32_t room = e_room(e, step * p->n);
    for (uint64_t i = 0; i < p->n; i++) {
        struct val x = lower_in(p->l, p->whole, (uint32_t)i * p->each + k);
        x = as_wide(e, varying ? e_vary(e, x) : x);
        const struct val at = e_gep(e, e_named(E_PTR, false, room), e_i64(i * step));
        struct buf text;
        char type[24];
        buf_init(&text, e->mem);
        e_operand(e, &text, x);
        e_line(e, "store %s %s, ptr %%v%u", e_type_name(e, wide, varying, type), buf_text(&text), at.id);
        buf_free(&text);
    }
    struct val at = p->index;
    if (varying)
        at = e_bin(e, "add", e_bin(e, "mul", at, e_i32(lanes)), e_ramp(e, E_I32, 1));
    const struct val r = ops_gather(e, room, wide, at);
    return wide == t ? r : e_cast(e, "trunc", r, t);
}

static struct val chosen(const struct parts *p, uint32_t k)
{
    struct emit *const e = &p->l->e;
    struct val r = lower_in(p->l, p->whole, k);
    for (uint32_t i = 1; i < p->n; i++)
        r = choose_leaf(e, e_cmp(e, "icmp eq", p->index, e_i32(i)), lower_in(p->l, p->whole, i * p->each + k), r);
    return r;
}

static void extract_at(struct lower *l, uint32_t id)
{
    const struct parts p = parts_of(l, ir_in(l->m, id)[0], ir_in(l->m, id)[1]);
    lower_out(l, id);
    for (uint32_t k = 0; k < p.each; k++) {
        const enum elem t = (enum elem)lower_in(l, p.whole, k).elem;
        struct val r = e_const(t, 0);
        if (p.index.shape == V_CONST)
            r = p.inside.bits ? lower_in(l, p.whole, (uint32_t)p.index.bits * p.each + k) : r;
        else
            r = choose_leaf(&l->e, p.inside, p.n > MANY_PARTS ? fetched(&p, k) : chosen(&p, k), r);
        lower_set(l, id, k, r);
    }
}

static void insert_at(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const uint32_t part = ir_in(l->m, id)[1];
    const struct parts p = parts_of(l, ir_in(l->m, id)[0], ir_in(l->m, id)[2]);
    lower_out(l, id);
    for (uint32_t i = 0; i < p.n; i++) {
        struct val here = e_is(p.index, i) ? p.inside : e_false();
        if (p.index.shape != V_CONST)
            here = e_and(e, p.inside, e_cmp(e, "icmp eq", p.index, e_i32(i)));
        for (uint32_t k = i * p.each; k < (i + 1) * p.each; k++)
            lower_set(l, id, k, choose_leaf(e, here, lower_in(l, part, k % p.each), lower_in(l, p.whole, k)));
    }
}

/* ----------------------------------------------------------------------------------------------------------------- */

static void bitcast(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const uint32_t from = ir_in(l->m, id)[0];
    const enum scalar a = ir_type_scalar(ir_at(l->m, from)->type), b = ir_type_scalar(ir_at(l->m, id)->type);
    const unsigned ab = scalar_info[a].bits, bb = scalar_info[b].bits;
    const enum elem ints[] = {E_I8, E_I16, E_I32, E_I64};
    const enum elem ta = ints[__builtin_ctz(ab / 8)], tb = ints[__builtin_ctz(bb / 8)];
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
    lower_out(l, id);
    for (uint32_t k = 0; k < n; k++) {
        struct val r = e_const(tb, 0);
        for (unsigned at = 0; at < bb; at += ab < bb ? ab : bb) {
            const unsigned place = k * bb + at;
            struct val x = e_cast(e, "bitcast", lower_in(l, from, place / ab), ta);
            if (place % ab)
                x = e_bin(e, "lshr", x, e_const(ta, place % ab));
            if (bb != ab)
                x = e_cast(e, bb < ab ? "trunc" : "zext", x, tb);
            r = e_or(e, r, at ? e_bin(e, "shl", x, e_const(tb, at)) : x);
        }
        lower_set(l, id, k, e_cast(e, "bitcast", r, lower_elem(b)));
    }
}

bool lower_pure(struct lower *l, uint32_t id)
{
    const struct node *const x = ir_at(l->m, id);
    if (op_info[x->op].effect != EFFECT_PURE || x->op == OP_INDEX || x->op == OP_FIELD)
        return false;
    switch ((unsigned)x->op) {
    case OP_CONST:
    case OP_ZERO:
    case OP_PARAM:
    case OP_ARG:
    case OP_RESULT: return true;
    case OP_SELECT: choose(l, id); return true;
    case OP_BITCAST: bitcast(l, id); return true;
    case OP_MAKE:
    case OP_SPLAT:
    case OP_EXTRACT:
    case OP_INSERT:
    case OP_SHUFFLE: parts(l, id); return true;
    case OP_EXTRACT_AT: extract_at(l, id); return true;
    case OP_INSERT_AT: insert_at(l, id); return true;
    case OP_EQ:
    case OP_NE:
        if (ir_type_is_pointer(ir_at(l->m, ir_in(l->m, id)[0])->type)) {
            compare_pointers(l, id);
            return true;
        }
        break;
    }
    elementwise(l, id);
    return true;
}
