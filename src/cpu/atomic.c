/* atomic.c - atomics.
 *
 * A threadgroup stays on one thread of the machine, so atomics in its memory are plain reads and writes. In device memory each
 * active lane does one atomic instruction, in lane order; lanes that meet at one address are combined first where the old
 * value is not asked for, or follows from the number of lanes below. What is rare is left to helpers.c: floats, exchange on
 * a condition, addresses that may be misaligned, loops that wait for memory.
 */
#include "cpu/memory.h"

struct atomic {
    struct lower *l;
    uint32_t node;
    enum op op;
    enum scalar scalar;
    enum elem elem; /* as integer */
    bool plain, used, is_signed;
    struct spot place;
    struct val x;  /* the operand, V_NONE: a load */
    uint32_t room; /* lanes' indices, then as the helper has it */
    uint64_t at_x, at_old;
};

static const char *instruction(const struct atomic *q)
{
    switch ((unsigned)q->op) {
    case OP_ATOMIC_ADD: return "add";
    case OP_ATOMIC_SUB: return "sub";
    case OP_ATOMIC_AND: return "and";
    case OP_ATOMIC_OR: return "or";
    case OP_ATOMIC_XOR: return "xor";
    case OP_ATOMIC_MIN: return q->is_signed ? "min" : "umin";
    case OP_ATOMIC_MAX: return q->is_signed ? "max" : "umax";
    case OP_ATOMIC_EXCHANGE: return "xchg";
    default: return NULL;
    }
}

static bool is_arithmetic(enum op op)
{
    return op == OP_ATOMIC_ADD || op == OP_ATOMIC_SUB || op == OP_ATOMIC_AND || op == OP_ATOMIC_OR ||
           op == OP_ATOMIC_XOR || op == OP_ATOMIC_MIN || op == OP_ATOMIC_MAX;
}

static struct val combine(const struct atomic *q, struct val old, struct val x)
{
    struct emit *const e = &q->l->e;
    char name[16];
    const struct val in[] = {old, x};
    switch ((unsigned)q->op) {
    case OP_ATOMIC_EXCHANGE:
    case OP_ATOMIC_STORE: return x;
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_MAX:
        (void)snprintf(name, sizeof name, "llvm.%c%s", q->is_signed ? 's' : 'u',
                       q->op == OP_ATOMIC_MIN ? "min" : "max");
        return e_intrinsic(e, name, q->elem, 2, in);
    default: return e_bin(e, instruction(q), old, x);
    }
}

/* One lane's, or all lanes' as one. Gives the old value; x: uniform. */
static struct val at_once(const struct atomic *q, struct val ptr, struct val x)
{
    struct emit *const e = &q->l->e;
    char type[24];
    (void)e_type_name(e, q->elem, false, type);
    const unsigned align = elem_bits(q->elem) / 8;
    if (q->plain) {
        if (q->op == OP_ATOMIC_LOAD)
            return memory_scalar(q->l, ptr, q->elem);
        const bool reads = q->used || is_arithmetic(q->op);
        const struct val old = reads ? memory_scalar(q->l, ptr, q->elem) : x;
        memory_scalar_put(q->l, ptr, combine(q, old, x));
        return old;
    }
    if (q->op == OP_ATOMIC_LOAD) {
        const struct val old = e_named(q->elem, false, e_id(e));
        e_line(e, "%%v%u = load atomic %s, ptr %%v%u monotonic, align %u", old.id, type, ptr.id, align);
        return old;
    }
    struct buf b;
    buf_init(&b, q->l->mem);
    e_operand(e, &b, x);
    struct val old = {0};
    if (q->op == OP_ATOMIC_STORE || (q->op == OP_ATOMIC_EXCHANGE && !q->used)) {
        e_line(e, "store atomic %s %s, ptr %%v%u monotonic, align %u", type, buf_text(&b), ptr.id, align);
    } else {
        old = e_named(q->elem, false, e_id(e));
        e_line(e, "%%v%u = atomicrmw %s ptr %%v%u, %s %s monotonic, align %u", old.id, instruction(q), ptr.id, type,
               buf_text(&b), align);
    }
    buf_free(&b);
    return old;
}

/* ---- all lanes at one address ----------------------------------------------------------------------------------- */

static uint64_t identity(const struct atomic *q)
{
    const uint64_t ones = UINT64_MAX, top = (uint64_t)1 << (elem_bits(q->elem) - 1);
    switch ((unsigned)q->op) {
    case OP_ATOMIC_AND: return ones;
    case OP_ATOMIC_MIN: return q->is_signed ? top - 1 : ones;
    case OP_ATOMIC_MAX: return q->is_signed ? top : 0;
    default: return 0;
    }
}

static struct val count_active(struct lower *l, enum elem t)
{
    struct emit *const e = &l->e;
    if (l->mask.shape == V_CONST)
        return e_const(t, e->width);
    const struct val bits = e_bits(e, l->mask);
    return e_cast(e, "zext", e_intrinsic(e, "llvm.ctpop", E_I32, 1, &bits), t);
}

static struct val reduced(const struct atomic *q)
{
    struct lower *const l = q->l;
    struct emit *const e = &l->e;
    const bool adds = q->op == OP_ATOMIC_ADD || q->op == OP_ATOMIC_SUB;
    if (e_is_uniform(q->x)) {
        if (adds)
            return e_bin(e, "mul", q->x, count_active(l, q->elem));
        if (q->op == OP_ATOMIC_XOR)
            return e_bin(e, "mul", q->x, e_bin(e, "and", count_active(l, q->elem), e_const(q->elem, 1)));
        return q->x;
    }
    struct val x = e_vary(e, q->x);
    if (l->mask.shape != V_CONST)
        x = e_select(e, l->mask, x, e_const(q->elem, identity(q)));
    const char *const how = adds                     ? "add"
                            : q->op == OP_ATOMIC_MIN ? (q->is_signed ? "smin" : "umin")
                            : q->op == OP_ATOMIC_MAX ? (q->is_signed ? "smax" : "umax")
                                                     : instruction(q);
    char name[64], line[128], type[24], vector[24];
    (void)e_type_name(e, q->elem, false, type);
    (void)e_type_name(e, q->elem, true, vector);
    (void)snprintf(name, sizeof name, "llvm.vector.reduce.%s.v%u%s", how, e->width, type);
    (void)snprintf(line, sizeof line, "%s @%s(%s)", type, name, vector);
    e_declare(e, line);
    const struct val r = e_named(q->elem, false, e_id(e));
    e_line(e, "%%v%u = call %s @%s(%s %%v%u)", r.id, type, name, vector, x.id);
    return r;
}

/* How many active lanes lie below each. */
static struct val lanes_below(struct lower *l, enum elem t)
{
    struct emit *const e = &l->e;
    if (l->mask.shape == V_CONST)
        return e_ramp(e, t, 1);
    const struct val below = e_bin(e, "sub", e_bin(e, "shl", e_vary(e, e_i32(1)), e_ramp(e, E_I32, 1)), e_i32(1));
    const struct val lower = e_bin(e, "and", below, e_bits(e, l->mask));
    return e_cast(e, "zext", e_intrinsic(e, "llvm.ctpop", E_I32, 1, &lower), t);
}

/* False: it takes lane after lane. */
static bool in_one(const struct atomic *q, struct val *old)
{
    struct emit *const e = &q->l->e;
    if (q->place.way != WAY_ONE)
        return false;
    if (q->op == OP_ATOMIC_LOAD) {
        *old = at_once(q, q->place.ptr, (struct val){0});
        return true;
    }
    if (!q->used && !is_arithmetic(q->op)) {
        (void)at_once(q, q->place.ptr, memory_high(q->l, q->x));
        return true;
    }
    if (!q->used) {
        (void)at_once(q, q->place.ptr, reduced(q));
        return true;
    }
    if ((q->op == OP_ATOMIC_ADD || q->op == OP_ATOMIC_SUB) && e_is_uniform(q->x)) {
        const struct val first = at_once(q, q->place.ptr, reduced(q));
        *old = e_bin(e, instruction(q), first, e_bin(e, "mul", lanes_below(q->l, q->elem), q->x));
        *old = e_vary(e, *old);
        return true;
    }
    return false;
}

/* ---- lane after lane -------------------------------------------------------------------------------------------- */

static struct val room_at(const struct atomic *q, uint64_t at, struct val lane, unsigned bytes)
{
    struct emit *const e = &q->l->e;
    const struct val base = e_gep(e, e_named(E_PTR, false, q->room), e_i64(at));
    return e_gep(e, base, e_bin(e, "mul", e_cast(e, "zext", lane, E_I64), e_i64(bytes)));
}

static void one_lane(struct lower *l, struct val lane, void *data)
{
    const struct atomic *const q = data;
    struct emit *const e = &l->e;
    const unsigned bytes = elem_bits(q->elem) / 8;
    struct val ptr = q->place.ptr, x = q->x;
    if (q->place.way == WAY_ROW) {
        ptr = e_gep(e, ptr, e_bin(e, "mul", e_cast(e, "zext", lane, E_I64), e_i64((uint64_t)q->place.stride)));
    } else if (q->place.way == WAY_EACH) {
        const struct val index = memory_scalar(l, room_at(q, 0, lane, 4), E_I32);
        ptr = e_gep(e, ptr, e_bin(e, "mul", e_cast(e, "zext", index, E_I64), e_i64(q->place.unit)));
    }
    if (x.shape != V_NONE && !e_is_uniform(x))
        x = memory_scalar(l, room_at(q, q->at_x, lane, bytes), q->elem);
    const struct val old = at_once(q, ptr, x);
    if (q->used)
        memory_scalar_put(l, room_at(q, q->at_old, lane, bytes), old);
}

static void each_lane(struct atomic *q)
{
    if (q->place.way == WAY_EACH)
        memory_raw_put(q->l, q->room, 0, q->place.index);
    if (q->x.shape != V_NONE && !e_is_uniform(q->x))
        memory_raw_put(q->l, q->room, q->at_x, q->x);
    memory_lanes(q->l, one_lane, q);
}

/* ---- the operation ---------------------------------------------------------------------------------------------- */

static bool is_inline(const struct atomic *q, const struct address *a)
{
    const struct lower *const l = q->l;
    const unsigned bytes = scalar_info[q->scalar].bytes;
    if (a->region == CPU_REGION_DYNAMIC || a->region == 0 || l->waiting || q->op == OP_ATOMIC_CAS || bytes < 4)
        return false;
    if (scalar_info[q->scalar].class_ == CLASS_F && is_arithmetic(q->op))
        return false;
    const uint8_t kind = l->out->region.at[a->region].kind;
    if (kind == CPU_REGION_THREAD)
        return false;
    bool aligned = a->n <= ADDRESS_TERMS && a->disp % bytes == 0;
    for (unsigned k = 0; k < a->n && aligned; k++)
        aligned = a->term[k].scale % bytes == 0;
    return aligned || kind != CPU_REGION_ARG;
}

static struct val bits_of(struct lower *l, struct val x, enum elem t)
{
    return e_cast(&l->e, "bitcast", x.shape == V_LINEAR && (enum elem)x.elem != t ? e_vary(&l->e, x) : x, t);
}

static void add_cell(struct lower *l, enum scalar s)
{
    const struct cell c = {
        .bytes = scalar_info[s].bytes, .elem = (uint8_t)(s == S_BOOL ? E_I8 : lower_elem(s)), .scalar = (uint8_t)s};
    VEC_PUSH(l->mem, &l->memory->cells, c);
}

static void finish(struct lower *l, uint32_t node, struct val old)
{
    lower_out(l, node);
    lower_set(l, node, 0, old);
}

bool atomic_lower(struct lower *l, uint32_t node)
{
    struct emit *const e = &l->e;
    struct memory *const m = l->memory;
    const struct node x = *ir_at(l->m, node);
    const bool returns = x.op != OP_ATOMIC_STORE, fenced = node_order(x.flags) != ORDER_RELAXED;
    struct atomic q = {.l = l,
                       .node = node,
                       .op = (enum op)x.op,
                       .scalar = (enum scalar)(x.n > 1 ? ir_at(l->m, ir_in(l->m, node)[1])->type : x.type),
                       .used = returns && m->used[node]};
    const unsigned operands = x.n > 2 ? 2 : x.n - 1u;
    struct val in[2] = {{0}, {0}};
    q.is_signed = scalar_info[q.scalar].class_ == CLASS_S;
    m->cells.n = 0;
    m->extent = scalar_info[q.scalar].bytes;
    for (unsigned k = 0; k < operands; k++) {
        add_cell(l, q.scalar);
        in[k] = lower_in(l, ir_in(l->m, node)[k + 1], 0);
    }
    add_cell(l, q.scalar);
    const struct cell cell = m->cells.at[0];
    q.elem = cell.elem == E_F32 ? E_I32 : (enum elem)cell.elem;
    if (operands)
        q.x = bits_of(l, in[0], q.elem);
    const struct address a = address_of(l, ir_in(l->m, node)[0]);
    const bool direct = is_inline(&q, &a);
    const uint8_t kind = a.region == CPU_REGION_DYNAMIC ? CPU_REGION_NULL : l->out->region.at[a.region].kind;
    q.plain = kind != CPU_REGION_ARG;
    q.place = address_place(l, &a, 0, direct && !q.plain ? cell.bytes : 0);
    if (!direct)
        q.place.fits = e_false();
    q.room = memory_room(l, memory_cell_at(l, operands + 1));
    q.at_x = CPU_ROOM_CELLS(e->width);
    q.at_old = memory_cell_at(l, operands);
    const uint32_t fast = e_block(e), cold = e_block(e), join = e_block(e);
    const bool tested = q.place.fits.shape != V_CONST, never = !tested && !q.place.fits.bits;
    struct val old = {0};
    if (!never) {
        if (tested) {
            e_branch(e, q.place.fits, fast, cold, ODDS_LIKELY);
            e_place(e, fast);
        }
        if (fenced)
            e_line(e, "fence seq_cst");
        if (!in_one(&q, &old))
            each_lane(&q);
        if (fenced)
            e_line(e, "fence seq_cst");
        if (q.used && old.shape != V_NONE) /* through the room: both ways meet there */
            memory_raw_put(l, q.room, q.at_old, old);
    }
    if (tested || never) {
        if (tested) {
            e_jump(e, join);
            e_place(e, cold);
        }
        memory_help(l, &a, node, HELPER_ATOMIC,
                    (q.op != OP_ATOMIC_LOAD ? CPU_ACCESS_WRITE : 0u) | (fenced ? CPU_ACCESS_FENCED : 0u) |
                        (q.used ? CPU_ACCESS_OLD : 0u),
                    q.op, q.scalar, operands, in);
        e_jump(e, join);
        e_place(e, join);
    }
    if (!returns)
        return true;
    if (!q.used) {
        finish(l, node, e_const((enum elem)cell.elem, 0));
    } else if (!tested && !never && old.shape != V_NONE) {
        finish(l, node, bits_of(l, old, (enum elem)cell.elem));
    } else {
        old = memory_raw_get(l, q.room, q.at_old, q.elem, true);
        finish(l, node, bits_of(l, old, (enum elem)cell.elem));
    }
    return true;
}
