/* bounds.c - bounds of integers: types, constants, attributes, and what pure operations make of them.
 *
 * What may wrap, or needs more than 64 bits, has the bounds of its type.
 */
#include "ir/text.h"
#include "pass/facts.h"

/* ---- bounds as sets -------------------------------------------------------------------------------------------- */

static struct bounds of_scalar(enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    switch (scalar_info[s].class_) {
    case CLASS_B: return (struct bounds){0, 1, false};
    case CLASS_S: return (struct bounds){INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits), false};
    case CLASS_U: return (struct bounds){0, bits == 64 ? INT64_MAX : ((int64_t)1 << bits) - 1, bits == 64};
    }
    return NO_BOUNDS;
}

struct bounds bounds_of_type(ir_type t)
{
    return ir_type_width(t) ? of_scalar(ir_type_scalar(t)) : NO_BOUNDS;
}

struct bounds bounds_join(struct bounds a, struct bounds b)
{
    if (bounds_empty(a))
        return b;
    if (bounds_empty(b))
        return a;
    return (struct bounds){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, a.wide || b.wide};
}

struct bounds bounds_meet(struct bounds a, struct bounds b)
{
    if (bounds_empty(a) || bounds_empty(b))
        return EMPTY_BOUNDS;
    struct bounds r = {a.lo > b.lo ? a.lo : b.lo, 0, a.wide && b.wide};
    r.hi = a.wide ? b.hi : b.wide ? a.hi : a.hi < b.hi ? a.hi : b.hi;
    return bounds_empty(r) ? EMPTY_BOUNDS : r;
}

bool bounds_fit(struct bounds b, ir_type t)
{
    const struct bounds f = bounds_of_type(t);
    return (!b.wide || f.wide) && b.lo >= f.lo && (f.wide || b.hi <= f.hi);
}

struct bounds bounds_const(const struct ir_module *m, uint32_t id)
{
    const struct node *const x = ir_at(m, id);
    if (x->op == OP_ZERO && ir_type_class(m, x->type) & CLASS_BSU)
        return (struct bounds){0, 0, false};
    if (x->op != OP_CONST || !(ir_type_class(m, x->type) & CLASS_BSU))
        return bounds_of_type(x->type);
    const unsigned bits = scalar_info[x->type].bits;
    const int64_t value =
        scalar_info[x->type].class_ == CLASS_S ? (int64_t)(x->imm << (64 - bits)) >> (64 - bits) : (int64_t)x->imm;
    if (scalar_info[x->type].class_ == CLASS_U && value < 0)
        return (struct bounds){INT64_MAX, INT64_MAX, true};
    return (struct bounds){value, value, false};
}

/* ---- attributes ------------------------------------------------------------------------------------------------ */

static uint32_t div_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* The largest position along axis d of a thread, or of any lane. */
static uint32_t last_position(const struct shape *s, unsigned d, uint32_t last_lane, bool all)
{
    const uint32_t n = s->dims[d];
    if (n == 1)
        return 0;
    if (!all)
        return n ? n - 1 : IR_MAX_THREADS - 1;
    uint32_t before = 1;
    bool outermost = true;
    for (unsigned k = 0; k < d; k++)
        before *= s->dims[k] ? s->dims[k] : 1;
    for (unsigned k = d + 1; k < 3; k++)
        outermost = outermost && s->dims[k] == 1;
    if (!outermost)
        return n ? n - 1 : IR_MAX_THREADS - 1;
    return n > last_lane / before ? n - 1 : last_lane / before;
}

struct bounds bounds_attribute(const struct shape *s, const struct param *p, unsigned k, bool all)
{
    const bool known = s->dims[0] && s->dims[1] && s->dims[2], exact = known && !s->edge;
    const uint32_t n = known ? s->dims[0] * s->dims[1] * s->dims[2] : IR_MAX_THREADS;
    const uint32_t last_lane = div_up(n, s->width) * s->width - 1, last = all ? last_lane : n - 1;
    const struct bounds type = bounds_of_type(p->type);
    int64_t lo = 0, hi = type.hi; /* NOLINT(clang-analyzer-deadcode.DeadStores): gcc wants it */
    switch ((enum attribute)p->attribute) {
    case ATTR_NONE:
    case ATTR_COUNT:
    case ATTR_THREAD_POSITION_IN_GRID: return type;
    case ATTR_THREADGROUP_POSITION_IN_GRID: return type;
    case ATTR_THREADS_PER_GRID:
    case ATTR_THREADGROUPS_PER_GRID:
        lo = 1;
        hi = UINT32_MAX;
        break;
    case ATTR_THREAD_POSITION_IN_THREADGROUP: hi = last_position(s, k, last_lane, all); break;
    case ATTR_THREADS_PER_THREADGROUP:
        hi = s->dims[k] ? s->dims[k] : IR_MAX_THREADS;
        lo = s->dims[k] && !s->edge ? hi : 1;
        break;
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP:
        hi = known ? s->dims[k] : IR_MAX_THREADS;
        lo = known ? hi : 1;
        break;
    case ATTR_THREAD_INDEX_IN_THREADGROUP: hi = last; break;
    case ATTR_THREAD_INDEX_IN_SIMDGROUP: hi = all || n > 32 ? 31 : n - 1; break;
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: hi = (n - 1) / 32; break;
    case ATTR_THREAD_INDEX_IN_QUADGROUP: hi = 3; break;
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: hi = last / 4; break;
    case ATTR_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP:
        hi = div_up(n, 32);
        lo = exact || (known && p->attribute == ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP) ? hi : 1;
        break;
    case ATTR_QUADGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP:
        hi = div_up(n, 4);
        lo = exact || (known && p->attribute == ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP) ? hi : 1;
        break;
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH: lo = hi = 32; break;
    }
    /* Past the smaller group, indices count whatever they do. */
    const bool counts =
        p->attribute == ATTR_THREAD_INDEX_IN_THREADGROUP || p->attribute == ATTR_THREAD_INDEX_IN_SIMDGROUP ||
        p->attribute == ATTR_SIMDGROUP_INDEX_IN_THREADGROUP || p->attribute == ATTR_THREAD_INDEX_IN_QUADGROUP ||
        p->attribute == ATTR_QUADGROUP_INDEX_IN_THREADGROUP;
    const struct bounds r = {lo, hi, false};
    return (all && s->edge && counts) || !bounds_fit(r, p->type) ? type : r;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

bool bounds_add(struct bounds a, struct bounds b, struct bounds *r)
{
    r->wide = false;
    return !a.wide && !b.wide && !__builtin_add_overflow(a.lo, b.lo, &r->lo) &&
           !__builtin_add_overflow(a.hi, b.hi, &r->hi);
}

bool bounds_sub(struct bounds a, struct bounds b, struct bounds *r)
{
    r->wide = false;
    return !a.wide && !b.wide && !__builtin_sub_overflow(a.lo, b.hi, &r->lo) &&
           !__builtin_sub_overflow(a.hi, b.lo, &r->hi);
}

bool bounds_mul(struct bounds a, struct bounds b, struct bounds *r)
{
    const int64_t x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi};
    if (a.wide || b.wide)
        return false;
    *r = (struct bounds){INT64_MAX, INT64_MIN, false};
    for (unsigned k = 0; k < 4; k++) {
        int64_t z;
        if (__builtin_mul_overflow(x[k & 1], y[k >> 1], &z))
            return false;
        r->lo = z < r->lo ? z : r->lo;
        r->hi = z > r->hi ? z : r->hi;
    }
    return true;
}

static int64_t low_ones(int64_t x)
{
    uint64_t m = (uint64_t)x;
    for (unsigned k = 1; k < 64; k *= 2)
        m |= m >> k;
    return (int64_t)m;
}

/* Modulo 2^bits, if that moves all of b by the same amount; else the type's. */
static struct bounds wrapped(struct bounds b, ir_type t)
{
    const struct bounds full = bounds_of_type(t);
    const unsigned bits = scalar_info[ir_type_scalar(t)].bits;
    const int64_t most = (int64_t)1 << 62;
    if (bounds_fit(b, t))
        return b;
    if (bits == 64 || scalar_info[ir_type_scalar(t)].class_ == CLASS_B || !bounds_within(b, -most, most - 1))
        return full;
    const int64_t n = (b.lo - full.lo) >> bits;
    if ((b.hi - full.lo) >> bits != n)
        return full;
    const int64_t move = (int64_t)((uint64_t)n << bits);
    return (struct bounds){b.lo - move, b.hi - move, false};
}

/* 0, 1: false, true; -1: either. */
static int compared(enum op op, struct bounds a, struct bounds b)
{
    const bool below = !a.wide && a.hi < b.lo, above = !b.wide && b.hi < a.lo;
    const bool at_most = !a.wide && a.hi <= b.lo, at_least = !b.wide && b.hi <= a.lo;
    const bool equal = at_most && at_least;
    switch ((unsigned)op) {
    case OP_LT: return below ? 1 : at_least ? 0 : -1;
    case OP_LE: return at_most ? 1 : above ? 0 : -1;
    case OP_GT: return above ? 1 : at_most ? 0 : -1;
    case OP_GE: return at_least ? 1 : below ? 0 : -1;
    case OP_EQ: return equal ? 1 : below || above ? 0 : -1;
    case OP_NE: return equal ? 0 : below || above ? 1 : -1;
    }
    return -1;
}

static bool divided(enum op op, struct bounds a, struct bounds b, struct bounds *r)
{
    if (a.wide || b.wide || b.lo < 0 || (a.lo < 0 && b.lo == 0))
        return false;
    const int64_t least = b.lo > 1 ? b.lo : 1; /* x / 0 is 0 */
    if (a.lo >= 0) {
        *r = (struct bounds){b.lo == 0 || b.hi > a.lo ? 0 : a.lo / b.hi, a.hi / least, false};
        return true;
    }
    /* Rounding down is at least as far below as rounding to zero. */
    *r = (struct bounds){a.lo / least - (op == OP_DIV_FLOOR && a.lo % least != 0), a.hi > 0 ? a.hi / least : 0, false};
    return true;
}

static bool remainder_of(enum op op, struct bounds a, struct bounds b, struct bounds *r)
{
    if (b.wide || b.lo < 0)
        return false;
    const int64_t most = b.hi > 0 ? b.hi - 1 : 0; /* x % 0 is 0 */
    *r = (struct bounds){0, most, false};
    if (!a.wide && a.lo >= 0) {
        r->hi = a.hi < most ? a.hi : most;
        if (a.hi < b.lo)
            r->lo = a.lo;
    } else if (op == OP_REM_TRUNC && a.lo < 0) {
        r->lo = a.lo > -most ? a.lo : -most;
        r->hi = a.hi < 0 ? 0 : a.hi < most ? a.hi : most;
        if (a.wide)
            r->hi = most;
    }
    return true;
}

/* False: nothing is known. Operands are not empty. */
static bool arithmetic(const struct node *x, const struct bounds in[3], ir_type from, struct bounds *r)
{
    const struct bounds a = in[0], b = in[1], c = in[2], zero = {0, 0, false};
    const unsigned bits = scalar_info[ir_type_scalar(x->type)].bits;
    switch ((unsigned)x->op) {
    case OP_NEG: return bounds_sub(zero, a, r);
    case OP_NOT: {
        const struct bounds f = bounds_of_type(x->type);
        return !f.wide && bounds_sub((struct bounds){f.lo + f.hi, f.lo + f.hi, false}, a, r); /* ~x is lo + hi - x */
    }
    case OP_ADD: return bounds_add(a, b, r);
    case OP_SUB: return bounds_sub(a, b, r);
    case OP_MUL: return bounds_mul(a, b, r);
    case OP_DIV_TRUNC:
    case OP_DIV_FLOOR: return divided((enum op)x->op, a, b, r);
    case OP_REM_TRUNC:
    case OP_REM_FLOOR: return remainder_of((enum op)x->op, a, b, r);
    case OP_AND:
        if ((a.wide || a.lo < 0) && (b.wide || b.lo < 0))
            return false;
        *r = (struct bounds){0, INT64_MAX, false};
        if (!a.wide && a.lo >= 0)
            r->hi = a.hi;
        if (!b.wide && b.lo >= 0 && b.hi < r->hi)
            r->hi = b.hi;
        return true;
    case OP_OR:
    case OP_XOR:
        if (a.wide || b.wide || a.lo < 0 || b.lo < 0)
            return false;
        *r = (struct bounds){x->op == OP_OR ? (a.lo > b.lo ? a.lo : b.lo) : 0, low_ones(a.hi | b.hi), false};
        return true;
    case OP_SHL:
        if (!bounds_within(b, 0, bits - 1 < 62 ? bits - 1 : 62))
            return false;
        return bounds_mul(a, (struct bounds){(int64_t)1 << b.lo, (int64_t)1 << b.hi, false}, r);
    case OP_SHR:
        if (a.wide || !bounds_within(b, 0, bits - 1))
            return false;
        *r = (struct bounds){a.lo < 0 ? a.lo >> b.lo : a.lo >> b.hi, a.hi < 0 ? a.hi >> b.hi : a.hi >> b.lo, false};
        return true;
    case OP_MIN:
        *r = (struct bounds){a.lo < b.lo ? a.lo : b.lo,
                             a.wide                  ? b.hi
                             : b.wide || a.hi < b.hi ? a.hi
                                                     : b.hi,
                             a.wide && b.wide};
        return true;
    case OP_MAX:
        *r = (struct bounds){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, a.wide || b.wide};
        return true;
    case OP_ABS:
        if (a.wide || a.lo == INT64_MIN)
            return false;
        *r = (struct bounds){a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0, -a.lo > a.hi ? -a.lo : a.hi, false};
        return true;
    case OP_CLAMP: /* min(max(a, b), c) */
        if (a.wide || b.wide || c.wide)
            return false;
        r->wide = false;
        r->lo = a.lo > b.lo ? a.lo : b.lo;
        r->lo = r->lo < c.lo ? r->lo : c.lo;
        r->hi = a.hi > b.hi ? a.hi : b.hi;
        r->hi = r->hi < c.hi ? r->hi : c.hi;
        return true;
    case OP_CONVERT:
        if (!(scalar_info[ir_type_scalar(from)].class_ & CLASS_BSU))
            return false;
        *r = a;
        if (scalar_info[ir_type_scalar(x->type)].class_ == CLASS_B && !bounds_within(a, 0, 1))
            *r = (struct bounds){a.lo > 0 || (!a.wide && a.hi < 0), 1, false};
        return true;
    case OP_BITCAST:
        if (!(scalar_info[ir_type_scalar(from)].class_ & CLASS_SU) || ir_type_width(x->type) != ir_type_width(from))
            return false;
        *r = a;
        return true;
    case OP_SELECT: *r = a.lo == 1 ? b : !a.wide && a.hi == 0 ? c : bounds_join(b, c); return true;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: {
        const int known = compared((enum op)x->op, a, b);
        *r = known < 0 ? (struct bounds){0, 1, false} : (struct bounds){known, known, false};
        return ir_type_width(from) != 0 && (scalar_info[ir_type_scalar(from)].class_ & CLASS_BSU) != 0;
    }
    }
    return false;
}

struct bounds bounds_eval(const struct ir_module *m, uint32_t id, unsigned k, const struct bounds_source *s)
{
    const struct node *const x = ir_at(m, id);
    const uint32_t *const in = ir_in(m, id);
    const struct bounds full = bounds_of_type(x->type);
    if (full.wide && full.lo == INT64_MIN)
        return full;
    switch ((unsigned)x->op) {
    case OP_MAKE: return s->get(s, in[k], 0);
    case OP_SPLAT: return s->get(s, in[0], 0);
    case OP_EXTRACT: return ir_type_width(ir_at(m, in[0])->type) ? s->get(s, in[0], (unsigned)x->imm) : full;
    case OP_INSERT: return k == x->imm ? s->get(s, in[1], 0) : s->get(s, in[0], k);
    case OP_SHUFFLE: {
        const unsigned place = (unsigned)(x->imm >> 4 * k) & 7u;
        return s->get(s, in[place >> 2], place & 3u);
    }
    case OP_EXTRACT_AT: {
        struct bounds r = {0, 0, false}; /* outside */
        if (ir_type_width(ir_at(m, in[0])->type) == 0)
            return full;
        for (unsigned j = 0; j < ir_type_width(ir_at(m, in[0])->type); j++)
            r = bounds_join(r, s->get(s, in[0], j));
        return r;
    }
    case OP_INSERT_AT: return bounds_join(s->get(s, in[0], k), s->get(s, in[1], 0));
    }
    struct bounds operand[3] = {{0, 0, false}, {0, 0, false}, {0, 0, false}}, r;
    for (unsigned j = 0; j < x->n && j < 3; j++) {
        operand[j] = s->get(s, in[j], ir_type_width(ir_at(m, in[j])->type) > 1 ? k : 0);
        if (bounds_empty(operand[j]))
            return EMPTY_BOUNDS;
    }
    const ir_type from = x->n ? ir_at(m, in[0])->type : TYPE_VOID;
    return x->n && x->n <= 3 && arithmetic(x, operand, from, &r) ? wrapped(r, x->type) : full;
}
