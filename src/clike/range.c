/* range.c - bounds of integers, from constants, attributes, masks and the counters of loops.
 *
 * One visit in program order. A bound that would need more than 64 bits, or an operation that may wrap, falls back to
 * the range of the type.
 */
#include "clike/internal.h"
#include "ir/text.h"

static struct range full(enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    switch (scalar_info[s].class_) {
    case CLASS_B: return (struct range){0, 1, false};
    case CLASS_S:
        return (struct range){bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)),
                              bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1, false};
    case CLASS_U: return (struct range){0, bits == 64 ? INT64_MAX : ((int64_t)1 << bits) - 1, bits == 64};
    }
    return (struct range){INT64_MIN, INT64_MAX, true};
}

struct range clike_type_range(ir_type t)
{
    return full(ir_type_scalar(t));
}

bool clike_within(struct range r, int64_t lo, int64_t hi)
{
    return !r.wide && r.lo >= lo && r.hi <= hi;
}

static bool fits(struct range r, ir_type t)
{
    const struct range f = clike_type_range(t);
    return (!r.wide || f.wide) && r.lo >= f.lo && r.hi <= f.hi;
}

static struct range join(struct range a, struct range b)
{
    return (struct range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, a.wide || b.wide};
}

struct range clike_range(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    if (x->op == OP_CONST) {
        const unsigned bits = scalar_info[x->type].bits;
        if (scalar_info[x->type].class_ == CLASS_S) {
            const int64_t value = (int64_t)(x->imm << (64 - bits)) >> (64 - bits);
            return (struct range){value, value, false};
        }
        if (scalar_info[x->type].class_ != CLASS_F && x->imm <= INT64_MAX)
            return (struct range){(int64_t)x->imm, (int64_t)x->imm, false};
        return clike_type_range(x->type);
    }
    if (x->op == OP_ZERO)
        return (struct range){0, 0, false};
    if (x->op == OP_PARAM) {
        const struct func *const f = &p->m->funcs.at[p->func];
        const struct param *const q = &p->m->params.at[f->first_param + x->imm];
        int64_t lo = 0, hi = 0;
        switch ((enum attribute)(q->kind == PARAM_ATTRIBUTE ? q->attribute : ATTR_NONE)) {
        case ATTR_THREAD_POSITION_IN_THREADGROUP:
        case ATTR_THREAD_INDEX_IN_THREADGROUP: hi = IR_MAX_THREADS - 1; break;
        case ATTR_THREADS_PER_THREADGROUP:
        case ATTR_DISPATCH_THREADS_PER_THREADGROUP: lo = 1, hi = IR_MAX_THREADS; break;
        case ATTR_THREAD_INDEX_IN_SIMDGROUP:
        case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: hi = 31; break;
        case ATTR_SIMDGROUPS_PER_THREADGROUP:
        case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP: lo = 1, hi = 32; break;
        case ATTR_THREADS_PER_SIMDGROUP:
        case ATTR_THREAD_EXECUTION_WIDTH: lo = hi = 32; break;
        case ATTR_THREAD_INDEX_IN_QUADGROUP: hi = 3; break;
        case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: hi = IR_MAX_THREADS / 4 - 1; break;
        case ATTR_QUADGROUPS_PER_THREADGROUP:
        case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP: lo = 1, hi = IR_MAX_THREADS / 4; break;
        case ATTR_THREADS_PER_GRID:
        case ATTR_THREADGROUPS_PER_GRID: {
            const struct range r = clike_type_range(q->type);
            return (struct range){1, r.hi, r.wide};
        }
        case ATTR_NONE:
        case ATTR_THREAD_POSITION_IN_GRID:
        case ATTR_THREADGROUP_POSITION_IN_GRID:
        case ATTR_COUNT: return clike_type_range(x->type);
        }
        return (struct range){lo, hi, false};
    }
    return p->v[id].range;
}

/* ---- operations: false if the result does not fit into the arithmetic here ------------------------------------- */

static bool add(struct range a, struct range b, struct range *r)
{
    r->wide = false;
    return !a.wide && !b.wide && !__builtin_add_overflow(a.lo, b.lo, &r->lo) &&
           !__builtin_add_overflow(a.hi, b.hi, &r->hi);
}

static bool sub(struct range a, struct range b, struct range *r)
{
    r->wide = false;
    return !a.wide && !b.wide && !__builtin_sub_overflow(a.lo, b.hi, &r->lo) &&
           !__builtin_sub_overflow(a.hi, b.lo, &r->hi);
}

static bool mul(struct range a, struct range b, struct range *r)
{
    const int64_t x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi};
    if (a.wide || b.wide)
        return false;
    *r = (struct range){INT64_MAX, INT64_MIN, false};
    for (unsigned k = 0; k < 4; k++) {
        int64_t z;
        if (__builtin_mul_overflow(x[k & 1], y[k >> 1], &z))
            return false;
        r->lo = z < r->lo ? z : r->lo;
        r->hi = z > r->hi ? z : r->hi;
    }
    return true;
}

static int64_t next_mask(int64_t x)
{
    uint64_t m = (uint64_t)x;
    for (unsigned k = 1; k < 64; k *= 2)
        m |= m >> k;
    return (int64_t)m;
}

static bool arithmetic(const struct clike *p, uint32_t id, struct range *r)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t *const in = ir_in(p->m, id);
    const struct range a = clike_range(p, in[0]);
    const struct range b = x->n > 1 ? clike_range(p, in[1]) : a;
    const struct range zero = {0, 0, false};
    switch ((unsigned)x->op) {
    case OP_NEG: return sub(zero, a, r);
    case OP_ADD: return add(a, b, r);
    case OP_SUB: return sub(a, b, r);
    case OP_MUL: return mul(a, b, r);
    case OP_DIV_TRUNC:
    case OP_DIV_FLOOR:
        if (a.wide || b.wide || a.lo < 0 || b.lo < 0)
            return false;
        *r = (struct range){0, b.lo > 1 ? a.hi / b.lo : a.hi, false};
        return true;
    case OP_REM_TRUNC:
    case OP_REM_FLOOR:
        if (b.wide || b.lo < 0 || (x->op == OP_REM_TRUNC && (a.lo < 0 || a.wide)) || b.hi == 0)
            return false;
        *r = (struct range){0, b.hi - 1, false};
        if (!a.wide && a.lo >= 0 && a.hi < r->hi)
            r->hi = a.hi;
        return true;
    case OP_AND:
        if ((a.wide || a.lo < 0) && (b.wide || b.lo < 0))
            return false;
        *r = (struct range){0, INT64_MAX, false};
        if (!a.wide && a.lo >= 0)
            r->hi = a.hi;
        if (!b.wide && b.lo >= 0 && b.hi < r->hi)
            r->hi = b.hi;
        return true;
    case OP_OR:
    case OP_XOR:
        if (a.wide || b.wide || a.lo < 0 || b.lo < 0)
            return false;
        *r = (struct range){0, next_mask(a.hi | b.hi), false};
        return true;
    case OP_SHL:
        if (!clike_within(b, 0, 62))
            return false;
        return mul(a, (struct range){(int64_t)1 << b.lo, (int64_t)1 << b.hi, false}, r);
    case OP_SHR:
        if (a.wide || !clike_within(b, 0, scalar_info[ir_type_scalar(x->type)].bits - 1))
            return false;
        *r = (struct range){a.lo < 0 ? a.lo >> b.lo : a.lo >> b.hi, a.hi < 0 ? a.hi >> b.hi : a.hi >> b.lo, false};
        return true;
    case OP_MIN:
        *r = (struct range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi, a.wide && b.wide};
        return true;
    case OP_MAX:
        *r = (struct range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, a.wide || b.wide};
        return true;
    case OP_ABS:
        if (a.wide || a.lo == INT64_MIN)
            return false;
        *r = (struct range){0, -a.lo > a.hi ? -a.lo : a.hi, false};
        return true;
    case OP_CLAMP: {
        const struct range c = clike_range(p, in[2]);
        if (b.wide || c.wide || b.hi > c.lo)
            return false;
        *r = (struct range){b.lo, c.hi, false};
        return true;
    }
    case OP_CONVERT:
    case OP_BITCAST:
        if (!(ir_type_class(p->m, ir_at(p->m, in[0])->type) & CLASS_BSU) ||
            (x->op == OP_BITCAST && ir_type_width(x->type) != ir_type_width(ir_at(p->m, in[0])->type)))
            return false;
        *r = a;
        return true;
    case OP_SPLAT:
    case OP_EXTRACT:
        if (ir_type_width(ir_at(p->m, in[0])->type) == 0)
            return false;
        *r = a;
        return true;
    case OP_MAKE:
        if (ir_type_width(x->type) < 2)
            return false;
        *r = a;
        for (unsigned k = 1; k < x->n; k++)
            *r = join(*r, clike_range(p, in[k]));
        return true;
    case OP_SELECT: *r = join(b, clike_range(p, in[2])); return true;
    }
    return false;
}

/* ---- counters: within { if i < b { … } } after i = a, stepping up, i is at least a and less than b --------------- */

static bool same_bits(const struct clike *p, uint32_t a, uint32_t b)
{
    const struct node *const x = ir_at(p->m, a), *const y = ir_at(p->m, b);
    return a == b || (x->op == OP_CONST && y->op == OP_CONST && x->imm == y->imm);
}

/* The integer that `id` is, or is a conversion of to another of its width. */
static uint32_t unconverted(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    if (x->op != OP_CONVERT)
        return id;
    const ir_type from = ir_at(p->m, x->in[0])->type;
    return (ir_type_class(p->m, from) & CLASS_SU) && ir_type_width(from) == 1 &&
                   scalar_info[from].bits == scalar_info[ir_type_scalar(x->type)].bits
               ? x->in[0]
               : id;
}

/* The node is i + min(step, stop - i), or i - min(step, i - stop), whose distance is of the unsigned type: it gets as far as
 * stop, where i comes from the other side of it. Returns stop as it stands in the distance, 0: it is no such node. */
static uint32_t clipped_at(const struct clike *p, uint32_t id, uint32_t i)
{
    const struct node *const x = ir_at(p->m, id);
    if ((x->op != OP_ADD && x->op != OP_SUB) || ir_type_width(x->type) != 1 || x->in[0] != i)
        return 0;
    const uint32_t m = unconverted(p, x->in[1]);
    const struct node *const min = ir_at(p->m, m);
    if (min->op != OP_MIN || ir_type_class(p->m, min->type) != CLASS_U)
        return 0;
    for (unsigned k = 0; k < 2; k++) {
        const struct node *const d = ir_at(p->m, min->in[k]);
        const unsigned at_i = x->op == OP_ADD;
        if (d->op == OP_SUB && unconverted(p, d->in[at_i]) == i)
            return unconverted(p, d->in[!at_i]);
    }
    return 0;
}

/* Such a node where `i` is on that side: inside of what a test of it guards. */
static bool is_clipped(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t i = x->n == 2 ? ir_in(p->m, id)[0] : 0, stop = i ? clipped_at(p, id, i) : 0;
    uint32_t below = x->region;
    for (uint32_t r = stop ? ir_parent_region(p->m, below) : 0; r; below = r, r = ir_parent_region(p->m, r)) {
        const uint32_t test = ir_region_at(p->m, below)->owner;
        if (ir_at(p->m, test)->op != OP_IF || ir_region(p->m, test, 0) != below)
            continue;
        const uint32_t cond = ir_in(p->m, test)[0];
        if (ir_at(p->m, cond)->op == (x->op == OP_ADD ? OP_LT : OP_GT) && ir_in(p->m, cond)[0] == i &&
            same_bits(p, ir_in(p->m, cond)[1], stop))
            return true;
    }
    return false;
}

static struct range counter(const struct clike *p, uint32_t arg)
{
    const struct range all = clike_type_range(ir_at(p->m, arg)->type);
    const uint32_t body = ir_at(p->m, arg)->region, loop = ir_region_at(p->m, body)->owner;
    const uint32_t test = clike_loop_test(p, loop);
    const unsigned k = (unsigned)ir_at(p->m, arg)->imm;
    if (!test || p->v[loop].raw != 1 || !(ir_type_class(p->m, ir_at(p->m, arg)->type) & CLASS_SU))
        return all;
    const uint32_t cond = ir_in(p->m, test)[0];
    const uint32_t br = ir_region_at(p->m, ir_region(p->m, test, 0))->last, back = ir_in(p->m, br)[k];
    const struct node *const c = ir_at(p->m, cond), *const next = ir_at(p->m, back);
    if (c->region != body || (c->op != OP_LT && c->op != OP_LE && c->op != OP_GT && c->op != OP_GE) ||
        ir_in(p->m, cond)[0] != arg || (next->op != OP_ADD && next->op != OP_SUB) || ir_in(p->m, back)[0] != arg)
        return all;
    /* The bounds hold only past the test: nothing else at the loop's head may use the counter, nor what follows it. */
    IR_EACH(p->m, body, id)
    {
        if (id == test || id == cond || ir_at(p->m, id)->op == OP_ARG)
            continue;
        for (unsigned i = 0; i < ir_at(p->m, id)->n; i++)
            if (ir_in(p->m, id)[i] == arg)
                return all;
    }
    const struct range first = clike_range(p, ir_in(p->m, loop)[k]), bound = clike_range(p, ir_in(p->m, cond)[1]);
    const struct range step = clike_range(p, ir_in(p->m, back)[1]);
    const bool strict = c->op == OP_LT || c->op == OP_GT;
    const bool up = c->op == OP_LT || c->op == OP_LE;
    const bool clipped = up == (next->op == OP_ADD) && is_clipped(p, back);
    const bool grows = next->op == OP_ADD ? step.lo >= 0 : step.hi <= 0;
    const bool shrinks = next->op == OP_ADD ? step.hi <= 0 : step.lo >= 0;
    if (first.wide || bound.wide || (!clipped && (step.wide || !(up ? grows : shrinks))))
        return all;
    struct range in = {up ? first.lo : bound.lo, up ? bound.hi : first.hi, false}, past;
    if (strict && (up ? in.hi == INT64_MIN : in.lo == INT64_MAX))
        return all;
    if (strict && up)
        in.hi--;
    else if (strict)
        in.lo++;
    if (in.hi < in.lo)
        return in.lo >= all.lo && in.lo <= all.hi ? (struct range){in.lo, in.lo, false} : all; /* never runs */
    /* The last step must not wrap, else it would start again. */
    if (!clipped &&
        (!(next->op == OP_ADD ? add(in, step, &past) : sub(in, step, &past)) || !fits(past, ir_at(p->m, arg)->type)))
        return all;
    return in;
}

void clike_ranges(struct clike *p)
{
    for (uint32_t k = 0; k < p->order.n; k++) {
        const uint32_t id = p->order.at[k];
        const struct node *const x = ir_at(p->m, id);
        struct range r = p->v[id].range; /* of the type */
        if (!(ir_type_class(p->m, x->type) & CLASS_BSU))
            continue;
        if (x->op == OP_ARG)
            p->v[id].range = counter(p, id);
        else if (x->op == OP_SIMD_BALLOT || x->op == OP_SIMD_ACTIVE)
            p->v[id].range = (struct range){0, UINT32_MAX, false};
        else if (x->op == OP_QUAD_BALLOT || x->op == OP_QUAD_ACTIVE)
            p->v[id].range = (struct range){0, 15, false};
        else if (x->n > 0 && op_info[x->op].effect == EFFECT_PURE && x->op != OP_RESULT && arithmetic(p, id, &r) &&
                 fits(r, x->type))
            p->v[id].range = r;
    }
}

bool clike_wraps(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    struct range r = {0};
    if (x->type != TYPE_I32 && x->type != TYPE_I64)
        return false;
    if (arithmetic(p, id, &r) && fits(r, x->type))
        return false;
    /* A step that fits, and stops in time. */
    return (x->op != OP_ADD && x->op != OP_SUB) || !is_clipped(p, id) ||
           !clike_within(clike_range(p, unconverted(p, ir_in(p->m, id)[1])), 0, clike_type_range(x->type).hi);
}
