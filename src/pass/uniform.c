/* uniform.c - which values are the same in which threads, which grow evenly from lane to lane, and who goes where together.
 *
 * Everything is uniform until shown to vary: sweeps in program order, until nothing changes. What a sweep cannot know when it
 * meets it is what comes from further down, by branches that repeat a loop: its parameters, and the level at which it is
 * repeated. These only ever rise.
 *
 * Levels of control are relative: a frame holds the level of the control in its construct as seen from the construct's head.
 * An exit walks outwards over the frames up to its target and takes the highest level it meets; constructs on the way have
 * lost lanes at that level, so that what follows them in their region is of that level too.
 */
#include "pass/facts.h"

enum { SWEEPS = 64, UNSEEN = 255, SEVERAL = UINT32_MAX };

struct lane { /* of a component */
    struct lane_info i;
    uint8_t zeros; /* low bits that are known to be 0 in the value of lane 0; of uniform and linear ones */
};

struct frame {
    struct frame *up;
    uint32_t node;    /* construct; 0: the function's body */
    uint8_t entry;    /* level of the control that enters the regions, as seen from the whole grid */
    uint8_t decided;  /* if, switch: level of the condition; loop: at which it is repeated */
    uint8_t now;      /* at this place of the region, as seen from its head */
    uint8_t left;     /* at which lanes left for something outside */
    uint8_t arriving; /* at which exits arrive at the end */
    uint8_t again;    /* loop: at which branches repeat it, as seen from one iteration */
};

struct uniform {
    struct analysis *a;
    const struct ir_module *m;
    struct lane *lane;     /* by component */
    struct lane *arriving; /* by component of parameters and results */
    uint32_t *one;         /* by parameter and result: the node that all exits carry; 0: none yet, SEVERAL */
    uint8_t *repeated;     /* by loop: level at which it is repeated */
    struct lane load;      /* the least a load varies */
    bool loads_uniform, changed;
};

static const struct lane unseen = {{UNSEEN, true, 0}, 64};

static uint8_t higher(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

/* ---- the lattice ----------------------------------------------------------------------------------------------- */

static bool is_integer(ir_type t)
{
    return ir_type_width(t) && (scalar_info[ir_type_scalar(t)].class_ & CLASS_SU);
}

static int64_t modulo(ir_type t, uint64_t x)
{
    const unsigned unused = 64u - scalar_info[ir_type_scalar(t)].bits;
    return (int64_t)(x << unused) >> unused;
}

/* As a value of type t: what has stride 0 is uniform, and so is everything in bundles of one lane. */
static struct lane settled(const struct uniform *u, ir_type t, struct lane x)
{
    if (x.i.uniform == UNSEEN)
        return x;
    if (!is_integer(t))
        x.i.linear = false;
    if (x.i.linear)
        x.i.stride = modulo(t, (uint64_t)x.i.stride);
    if (x.i.uniform == UNIFORM_V && (u->a->shape.width == 1 || (x.i.linear && x.i.stride == 0)))
        x.i.uniform = UNIFORM_S;
    if (x.i.uniform < UNIFORM_V) {
        x.i.linear = is_integer(t);
        x.i.stride = 0;
    }
    if (!x.i.linear)
        x.zeros = 0, x.i.stride = 0;
    return x;
}

static struct lane at_level(uint8_t level)
{
    return (struct lane){{level, level < UNIFORM_V, 0}, 0};
}

static struct lane joined(struct lane a, struct lane b)
{
    if (a.i.uniform == UNSEEN)
        return b;
    if (b.i.uniform == UNSEEN)
        return a;
    struct lane r = a;
    r.i.uniform = higher(a.i.uniform, b.i.uniform);
    r.i.linear = a.i.linear && b.i.linear && a.i.stride == b.i.stride;
    r.zeros = a.zeros < b.zeros ? a.zeros : b.zeros;
    if (!r.i.linear)
        r.i.stride = 0, r.zeros = 0;
    return r;
}

/* What lanes may have from different places at that level. */
static struct lane raised(struct lane x, uint8_t level)
{
    if (x.i.uniform == UNSEEN || level == UNIFORM_G)
        return x;
    x.i.uniform = higher(x.i.uniform, level);
    if (level == UNIFORM_V)
        x.i.linear = false, x.i.stride = 0, x.zeros = 0;
    return x;
}

static struct lane lane_of(const struct uniform *u, uint32_t node, unsigned k)
{
    return u->lane[u->a->first[node] + (ir_type_width(ir_at(u->m, node)->type) > 1 ? k : 0)];
}

/* All components of a value together. */
static struct lane whole(const struct uniform *u, uint32_t node)
{
    struct lane r = unseen;
    for (uint32_t c = u->a->first[node]; c < u->a->first[node + 1]; c++)
        r = joined(r, u->lane[c]);
    return r;
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

/* Is the value this number in all lanes? */
static bool number(const struct uniform *u, uint32_t node, unsigned k, int64_t *x)
{
    const uint32_t c = u->a->first[node] + (ir_type_width(ir_at(u->m, node)->type) > 1 ? k : 0);
    const struct bounds b = u->a->bound[c];
    *x = b.lo;
    return !b.wide && b.lo == b.hi && u->lane[c].i.uniform < UNIFORM_V;
}

static uint8_t trailing_zeros(uint64_t x)
{
    return x ? (uint8_t)__builtin_ctzll(x) : 64;
}

static uint8_t zeros_of(const struct uniform *u, uint32_t node, unsigned k)
{
    int64_t x;
    const struct lane l = lane_of(u, node, k);
    return number(u, node, k, &x) ? trailing_zeros((uint64_t)x) : l.i.linear ? l.zeros : 0;
}

/* Is x lane 0's value with l * stride in bits that are 0 there, all among the lowest `bits`? */
static bool in_low_bits(const struct uniform *u, struct lane x, unsigned bits)
{
    const uint32_t last = u->a->shape.width - 1;
    const unsigned room = x.zeros < bits ? x.zeros : bits;
    return x.i.linear && x.i.stride >= 0 && room < 63 && x.i.stride <= (((int64_t)1 << room) - 1) / (last ? last : 1);
}

/* Does the conversion of a linear value to a wider type give base + l * stride there, too? */
static bool widens(const struct uniform *u, uint32_t id, unsigned k)
{
    const uint32_t from = ir_in(u->m, id)[0];
    const ir_type t = ir_at(u->m, from)->type;
    const int64_t stride = lane_of(u, from, k).i.stride;
    if (stride > INT32_MAX || stride < -INT32_MAX)
        return false;
    const int64_t span = stride * (u->a->shape.width - 1);
    /* Lane 0's value lies within `bound`, and so do the others': they differ by less than the type has numbers. */
    struct bounds b = analysis_bounds(u->a, from, k), r;
    if (!b.wide && bounds_sub(b, b, &r) && bounds_add(r, (struct bounds){0, span < 0 ? -span : span, false}, &r) &&
        r.hi < ((int64_t)1 << (scalar_info[ir_type_scalar(t)].bits < 62 ? scalar_info[ir_type_scalar(t)].bits : 62)))
        return true;
    /* Some active lane's value is base + l * stride: then so far from it the base is still a number of the type. */
    b = analysis_bounds_active(u->a, from, k, id);
    return !b.wide && bounds_sub(b, (struct bounds){span < 0 ? span : 0, span > 0 ? span : 0, false}, &r) &&
           bounds_fit(r, t);
}

static struct lane converted(const struct uniform *u, uint32_t id, unsigned k)
{
    const uint32_t from = ir_in(u->m, id)[0];
    const ir_type t = ir_at(u->m, id)->type, f = ir_at(u->m, from)->type;
    struct lane x = lane_of(u, from, k);
    if (x.i.uniform == UNSEEN || x.i.uniform < UNIFORM_V) {
        x.zeros = is_integer(t) && is_integer(f) ? x.zeros : 0;
        return x;
    }
    if (!x.i.linear || !is_integer(t))
        return at_level(UNIFORM_V);
    if (scalar_info[ir_type_scalar(t)].bits <= scalar_info[ir_type_scalar(f)].bits || widens(u, id, k))
        return x;
    return at_level(UNIFORM_V);
}

/* Integer operations of two operands, one linear at least, none of it neither uniform nor linear. */
static struct lane combined(const struct uniform *u, uint32_t id, unsigned k, struct lane a, struct lane b)
{
    const struct node *const x = ir_at(u->m, id);
    const uint32_t *const in = ir_in(u->m, id);
    const unsigned bits = scalar_info[ir_type_scalar(x->type)].bits;
    const uint8_t za = zeros_of(u, in[0], k), zb = zeros_of(u, in[1], k), low = za < zb ? za : zb;
    struct lane r = {{UNIFORM_V, true, 0}, low};
    int64_t n;
    switch ((unsigned)x->op) {
    case OP_ADD: r.i.stride = (int64_t)((uint64_t)a.i.stride + (uint64_t)b.i.stride); return r;
    case OP_SUB: r.i.stride = (int64_t)((uint64_t)a.i.stride - (uint64_t)b.i.stride); return r;
    case OP_MUL:
        r.zeros = (uint8_t)(za + zb < 64 ? za + zb : 64);
        if (number(u, in[1], k, &n))
            r.i.stride = (int64_t)((uint64_t)a.i.stride * (uint64_t)n);
        else if (number(u, in[0], k, &n))
            r.i.stride = (int64_t)((uint64_t)b.i.stride * (uint64_t)n);
        else
            break;
        return r;
    case OP_SHL:
        if (!number(u, in[1], k, &n))
            break;
        n &= bits - 1;
        r.i.stride = (int64_t)((uint64_t)a.i.stride << n);
        r.zeros = (uint8_t)(za + n < 64 ? za + n : 64);
        return r;
    case OP_SHR:
        if (!number(u, in[1], k, &n) || !in_low_bits(u, a, (unsigned)(n &= bits - 1)))
            break;
        r.zeros = za > n ? (uint8_t)(za - n) : 0;
        return r;
    case OP_DIV_TRUNC:
    case OP_DIV_FLOOR:
    case OP_REM_TRUNC:
    case OP_REM_FLOOR: {
        const bool quotient = x->op == OP_DIV_TRUNC || x->op == OP_DIV_FLOOR;
        const bool floors = x->op == OP_DIV_FLOOR || x->op == OP_REM_FLOOR;
        if (!number(u, in[1], k, &n) || n <= 0 || (n & (n - 1)) || !in_low_bits(u, a, trailing_zeros((uint64_t)n)) ||
            (!floors && scalar_info[ir_type_scalar(x->type)].class_ != CLASS_U &&
             analysis_bounds(u->a, in[0], k).lo < 0))
            break;
        r.i.stride = quotient ? 0 : a.i.stride;
        const uint8_t z = trailing_zeros((uint64_t)n);
        r.zeros = quotient ? (uint8_t)(za > z ? za - z : 0) : za >= z ? 64 : za;
        return r;
    }
    case OP_AND:
    case OP_OR:
    case OP_XOR:
        /* The vector's bits stand where the other operand, a scalar, has only zeros, or (and, by a number) only ones. */
        for (unsigned side = 0; side < 2; side++) {
            const struct lane v = side ? b : a, s = side ? a : b;
            const uint8_t z = side ? za : zb;
            const struct bounds low_only = {0, ((int64_t)1 << (z < 62 ? z : 62)) - 1, false};
            if (s.i.uniform == UNIFORM_V)
                continue;
            if (in_low_bits(u, v, z) || bounds_within(analysis_bounds(u->a, in[side], k), low_only.lo, low_only.hi)) {
                r.i.stride = x->op == OP_AND ? 0 : v.i.stride;
                r.zeros = x->op == OP_AND ? higher(za, zb) : low;
                return r;
            }
            if (x->op == OP_AND && number(u, in[!side], k, &n) && in_low_bits(u, v, trailing_zeros(~(uint64_t)n))) {
                r.i.stride = v.i.stride;
                r.zeros = n >= 0 && v.zeros < 63 && n < (int64_t)1 << v.zeros ? 64 : higher(za, zb);
                return r;
            }
        }
        break;
    case OP_EQ:
    case OP_NE: /* their difference is the same in all lanes */
        if (a.i.stride == b.i.stride)
            return at_level(UNIFORM_S);
        break;
    }
    return at_level(UNIFORM_V);
}

/* Of component k of any operation with a value that is computed elementwise. */
static struct lane elementwise(const struct uniform *u, uint32_t id, unsigned k)
{
    const struct node *const x = ir_at(u->m, id);
    const uint32_t *const in = ir_in(u->m, id);
    uint8_t level = UNIFORM_G;
    bool linear = x->n > 0 && x->n <= 2;
    for (unsigned j = 0; j < x->n; j++) {
        const struct lane l = lane_of(u, in[j], k);
        if (l.i.uniform == UNSEEN)
            return unseen;
        level = higher(level, l.i.uniform);
        linear = linear && l.i.linear;
    }
    if (level < UNIFORM_V) {
        struct lane r = at_level(level);
        if (is_integer(x->type) && linear) { /* zeros */
            struct lane a = lane_of(u, in[0], k), b = x->n > 1 ? lane_of(u, in[1], k) : a;
            if (x->n == 2)
                r.zeros = combined(u, id, k, a, b).zeros;
            else if (x->op == OP_NEG)
                r.zeros = zeros_of(u, in[0], k);
        }
        return r;
    }
    if (!linear)
        return at_level(UNIFORM_V);
    const struct lane a = lane_of(u, in[0], k);
    if (x->n == 2)
        return combined(u, id, k, a, lane_of(u, in[1], k));
    if (x->op == OP_NEG || x->op == OP_NOT) {
        struct lane r = a;
        r.i.stride = (int64_t)(0 - (uint64_t)a.i.stride);
        r.zeros = x->op == OP_NEG ? a.zeros : 0;
        return r;
    }
    return at_level(UNIFORM_V);
}

static struct lane selected(const struct uniform *u, uint32_t id, unsigned k)
{
    const uint32_t *const in = ir_in(u->m, id);
    const struct lane c = lane_of(u, in[0], k);
    if (c.i.uniform == UNSEEN)
        return unseen;
    return raised(joined(lane_of(u, in[1], k), lane_of(u, in[2], k)), c.i.uniform);
}

static struct lane loaded(const struct uniform *u, uint32_t id)
{
    const uint32_t p = ir_in(u->m, id)[0];
    const struct lane at = lane_of(u, p, 0);
    if (at.i.uniform == UNSEEN)
        return unseen;
    switch (ir_type_space(ir_at(u->m, p)->type)) {
    case SPACE_THREAD: return at_level(UNIFORM_V); /* the same address of each thread's own memory */
    case SPACE_CONSTANT: return at_level(at.i.uniform);
    case SPACE_DEVICE:
    case SPACE_THREADGROUP:
    case SPACE_COUNT: break;
    }
    if (at.i.uniform <= UNIFORM_T && u->loads_uniform && u->a->control[id] <= UNIFORM_T)
        return at_level(UNIFORM_T);
    return at_level(higher(at.i.uniform, UNIFORM_S));
}

/* Collectives whose result is the same in all lanes of a simdgroup. */
static struct lane collective(const struct uniform *u, uint32_t id)
{
    const struct node *const x = ir_at(u->m, id);
    if (u->a->shape.width != 32)
        return at_level(UNIFORM_V);
    if ((x->op >= OP_SIMD_SUM && x->op <= OP_SIMD_XOR) || x->op == OP_SIMD_BROADCAST_FIRST || x->op == OP_SIMD_ALL ||
        x->op == OP_SIMD_ANY || x->op == OP_SIMD_BALLOT || x->op == OP_SIMD_ACTIVE)
        return at_level(UNIFORM_S);
    if (x->op == OP_SIMD_BROADCAST || x->op == OP_SIMD_SHUFFLE) {
        const struct lane l = whole(u, ir_in(u->m, id)[1]);
        return l.i.uniform == UNSEEN ? unseen : at_level(higher(l.i.uniform, UNIFORM_S));
    }
    return at_level(UNIFORM_V);
}

static struct lane of_all(const struct uniform *u, uint32_t id)
{
    struct lane r = at_level(UNIFORM_G);
    for (unsigned k = 0; k < ir_at(u->m, id)->n; k++) {
        const struct lane l = whole(u, ir_in(u->m, id)[k]);
        if (l.i.uniform == UNSEEN)
            return unseen;
        r.i.uniform = higher(r.i.uniform, l.i.uniform);
    }
    return at_level(r.i.uniform);
}

static struct lane computed(const struct uniform *u, uint32_t id, unsigned k)
{
    const struct node *const x = ir_at(u->m, id);
    const uint32_t *const in = ir_in(u->m, id);
    const bool vector = ir_type_width(x->type) > 1;
    switch ((enum op_effect)op_info[x->op].effect) {
    case EFFECT_PURE: break;
    case EFFECT_READ: return x->op == OP_LOAD ? loaded(u, id) : at_level(UNIFORM_V);
    case EFFECT_CONVERGENT: return collective(u, id);
    case EFFECT_CONTROL: return at_level(x->op == OP_ALLOC ? UNIFORM_G : UNIFORM_V);
    case EFFECT_WRITE:
    case EFFECT_ATOMIC:
    case EFFECT_EXIT: return at_level(UNIFORM_V);
    }
    switch ((unsigned)x->op) {
    case OP_MAKE: return vector ? lane_of(u, in[k], 0) : of_all(u, id);
    case OP_SPLAT: return lane_of(u, in[0], 0);
    case OP_EXTRACT:
        return ir_type_width(ir_at(u->m, in[0])->type) ? lane_of(u, in[0], (unsigned)x->imm) : whole(u, in[0]);
    case OP_INSERT:
        if (!vector)
            return of_all(u, id);
        return k == x->imm ? lane_of(u, in[1], 0) : lane_of(u, in[0], k);
    case OP_SHUFFLE: {
        const unsigned place = (unsigned)(x->imm >> 4 * k) & 7u;
        return lane_of(u, in[place >> 2], place & 3u);
    }
    case OP_BITCAST:
        if (is_integer(x->type) && is_integer(ir_at(u->m, in[0])->type) &&
            ir_type_width(x->type) == ir_type_width(ir_at(u->m, in[0])->type))
            return lane_of(u, in[0], k);
        return of_all(u, id);
    case OP_EXTRACT_AT:
    case OP_INSERT_AT:
    case OP_INDEX:
    case OP_FIELD: return of_all(u, id);
    case OP_CONVERT: return converted(u, id, k);
    case OP_SELECT: return selected(u, id, k);
    }
    return elementwise(u, id, k);
}

/* ---- control --------------------------------------------------------------------------------------------------- */

static void rise(struct uniform *u, uint8_t *level, uint8_t to)
{
    if (to > *level) {
        *level = to;
        u->changed = true;
    }
}

/* An exit from here to the end of `target`, or repeating it. */
static void leave(struct uniform *u, struct frame *f, uint32_t target, bool repeat)
{
    uint8_t level = UNIFORM_G;
    for (; f; f = f->up) {
        level = higher(level, f->now);
        if (f->node == target)
            break;
        level = higher(level, f->decided);
        f->left = higher(f->left, level);
    }
    if (!f)
        return;
    if (repeat) {
        f->again = higher(f->again, level);
        rise(u, &u->repeated[target], level);
    } else {
        f->arriving = higher(f->arriving, higher(level, f->decided));
    }
}

/* Lanes that reach a barrier apart from others will not meet them again. */
static void part(struct frame *f, uint8_t level)
{
    for (; f && level >= UNIFORM_S; f = f->up)
        f->left = higher(f->left, level);
}

static void carry(struct uniform *u, uint32_t id, uint32_t to, bool first)
{
    for (unsigned j = 0; j < ir_at(u->m, id)->n; j++, to = ir_at(u->m, to)->next) {
        const uint32_t v = ir_in(u->m, id)[j];
        if (!first)
            u->one[to] = u->one[to] == 0 || u->one[to] == v ? v : SEVERAL;
        for (unsigned k = 0; k < components(ir_at(u->m, v)->type); k++) {
            struct lane *const at = &u->arriving[u->a->first[to] + k];
            *at = joined(*at, u->lane[u->a->first[v] + k]);
        }
    }
}

static uint32_t owner_of(const struct ir_module *m, uint32_t id)
{
    return ir_at(m, id)->region ? ir_region_at(m, ir_at(m, id)->region)->owner : 0;
}

/* The level at which lanes bring different executions of node v to its construct: that of the loops between, and of the
 * construct if it is a loop that they leave. G if v stands outside. */
static uint8_t executions(const struct uniform *u, uint32_t v, uint32_t construct, bool repeat)
{
    uint8_t level = UNIFORM_G;
    for (uint32_t c = owner_of(u->m, v); c; c = owner_of(u->m, c)) {
        if (ir_at(u->m, c)->op == OP_LOOP && (c != construct || !repeat))
            level = higher(level, u->repeated[c]);
        if (c == construct)
            return level;
    }
    return UNIFORM_G;
}

static uint8_t apart(const struct uniform *u, uint32_t to, uint32_t construct, bool repeat, uint8_t several)
{
    const uint32_t v = u->one[to];
    return v == 0 ? UNIFORM_G : v == SEVERAL ? several : executions(u, v, construct, repeat);
}

static void region(struct uniform *u, struct frame *f, uint32_t which);

static void loop(struct uniform *u, struct frame *f, uint32_t id)
{
    const uint32_t body = ir_region(u->m, id, 0), head = ir_region_at(u->m, body)->first;
    const unsigned n = ir_at(u->m, id)->n;
    uint32_t arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(u->m, arg)->next) {
        u->one[arg] = 0;
        for (uint32_t c = u->a->first[arg]; c < u->a->first[arg + 1]; c++)
            u->arriving[c] = unseen;
    }
    carry(u, id, head, true);
    arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(u->m, arg)->next)
        for (uint32_t c = u->a->first[arg]; c < u->a->first[arg + 1]; c++)
            u->lane[c] = settled(u, ir_at(u->m, arg)->type, joined(u->lane[c], u->arriving[c]));
    region(u, f, body);
    const uint8_t step = u->repeated[id] < UNIFORM_V ? u->repeated[id] : UNIFORM_S;
    arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(u->m, arg)->next) {
        const uint8_t level = higher(step, apart(u, arg, id, true, f->again));
        for (uint32_t c = u->a->first[arg]; c < u->a->first[arg + 1]; c++) {
            struct lane x = raised(joined(u->arriving[c], u->lane[c]), level);
            x = settled(u, ir_at(u->m, arg)->type, x);
            const struct lane old = u->lane[c];
            if (x.zeros < old.zeros && old.zeros < 64)
                x.zeros = 0; /* rather than bit by bit */
            if (x.i.uniform == old.i.uniform && x.i.linear == old.i.linear && x.i.stride == old.i.stride &&
                x.zeros == old.zeros)
                continue;
            u->lane[c] = x;
            u->changed = true;
        }
    }
}

static void construct(struct uniform *u, struct frame *up, uint32_t id)
{
    const struct node *const x = ir_at(u->m, id);
    struct frame f = {.up = up, .node = id};
    for (uint32_t k = x->next; k && ir_at(u->m, k)->op == OP_RESULT && ir_at(u->m, k)->in[0] == id;
         k = ir_at(u->m, k)->next) {
        u->one[k] = 0;
        for (uint32_t c = u->a->first[k]; c < u->a->first[k + 1]; c++)
            u->arriving[c] = unseen;
    }
    if (x->op == OP_IF || x->op == OP_SWITCH) {
        const uint8_t level = lane_of(u, ir_in(u->m, id)[0], 0).i.uniform;
        f.decided = level == UNSEEN ? (uint8_t)UNIFORM_G : level;
    } else if (x->op == OP_LOOP) {
        f.decided = u->repeated[id];
    }
    f.entry = higher(higher(up->entry, up->now), f.decided);
    if (x->op == OP_LOOP)
        loop(u, &f, id);
    else
        for (unsigned k = 0; k < ir_n_regions(u->m, id); k++)
            region(u, &f, ir_region(u->m, id, k));
    for (uint32_t k = x->next; k && ir_at(u->m, k)->op == OP_RESULT && ir_at(u->m, k)->in[0] == id;
         k = ir_at(u->m, k)->next) {
        const uint8_t level = apart(u, k, id, false, f.arriving);
        for (uint32_t c = u->a->first[k]; c < u->a->first[k + 1]; c++)
            u->lane[c] = settled(u, ir_at(u->m, k)->type, raised(u->arriving[c], level));
    }
    up->now = higher(up->now, f.left);
}

static void region(struct uniform *u, struct frame *f, uint32_t which)
{
    f->now = UNIFORM_G;
    IR_EACH(u->m, which, id)
    {
        const struct node *const x = ir_at(u->m, id);
        u->a->control[id] = higher(f->entry, f->now);
        if (ir_is_construct(x->op)) {
            construct(u, f, id);
            continue;
        }
        switch ((unsigned)x->op) {
        case OP_ARG:
        case OP_RESULT: continue; /* their construct's */
        case OP_BARRIER: part(f, u->a->control[id]); continue;
        case OP_YIELD:
            leave(u, f, f->node, false);
            carry(u, id, ir_at(u->m, f->node)->next, false);
            continue;
        case OP_BR: {
            const uint32_t to = (uint32_t)x->imm;
            const bool repeat = ir_at(u->m, to)->op == OP_LOOP;
            leave(u, f, to, repeat);
            carry(u, id, repeat ? ir_region_at(u->m, ir_region(u->m, to, 0))->first : ir_at(u->m, to)->next, false);
            continue;
        }
        }
        for (unsigned k = 0; x->type && k < components(x->type); k++)
            u->lane[u->a->first[id] + k] = settled(u, x->type, computed(u, id, k));
    }
}

/* ---- what is given --------------------------------------------------------------------------------------------- */

/* The position along axis d in the threadgroup. */
static struct lane position(const struct shape *s, unsigned d)
{
    const uint32_t n = s->dims[d], w = s->width;
    uint32_t before = 1; /* threads from one position along d to the next, or a number that divides them */
    bool first = true, last = true;
    for (unsigned k = 0; k < d; k++) {
        before *= s->dims[k] ? s->dims[k] : 1;
        first = first && s->dims[k] == 1;
    }
    for (unsigned k = d + 1; k < 3; k++)
        last = last && s->dims[k] == 1;
    const uint8_t aligned = trailing_zeros(w);
    if (n == 1)
        return (struct lane){{UNIFORM_G, true, 0}, 64};
    if (before % w == 0)
        return at_level(UNIFORM_S);
    if (first && (last || (n && n % w == 0)))
        return (struct lane){{UNIFORM_V, true, 1}, aligned};
    return at_level(UNIFORM_V);
}

static struct lane attribute(const struct shape *s, const struct param *p, unsigned k)
{
    const unsigned ones = (unsigned)(s->dims[0] == 1) + (s->dims[1] == 1) + (s->dims[2] == 1);
    const struct lane index = {{UNIFORM_V, true, 1}, trailing_zeros(s->width)};
    const bool counts = !s->edge || ones >= 2; /* are indices those of the lanes? */
    switch ((enum attribute)p->attribute) {
    case ATTR_THREAD_POSITION_IN_THREADGROUP: return position(s, k);
    case ATTR_THREAD_POSITION_IN_GRID: {
        /* The threadgroup's position times the size as asked for, which is dims if they are known. */
        struct lane x = position(s, k);
        const bool known = s->dims[0] && s->dims[1] && s->dims[2];
        const uint8_t zeros = known ? trailing_zeros(s->dims[k]) : 0;
        x.i.uniform = higher(x.i.uniform, UNIFORM_T);
        x.zeros = zeros < x.zeros ? zeros : x.zeros;
        return x;
    }
    case ATTR_THREAD_INDEX_IN_THREADGROUP: return counts ? index : at_level(UNIFORM_V);
    case ATTR_THREAD_INDEX_IN_SIMDGROUP: return counts ? index : at_level(UNIFORM_V);
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: return at_level(counts ? UNIFORM_S : UNIFORM_V);
    case ATTR_NONE:
    case ATTR_THREADS_PER_GRID:
    case ATTR_THREADGROUP_POSITION_IN_GRID:
    case ATTR_THREADS_PER_THREADGROUP:
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP:
    case ATTR_THREADGROUPS_PER_GRID:
    case ATTR_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH:
    case ATTR_THREAD_INDEX_IN_QUADGROUP:
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP:
    case ATTR_QUADGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP:
    case ATTR_COUNT: break;
    }
    return at_level(attr_info[p->attribute].uniform);
}

static void fixed(struct uniform *u)
{
    const struct func *const f = &u->m->funcs.at[u->a->func];
    for (uint32_t id = 1; id < u->m->nodes.n; id++) {
        const struct node *const x = ir_at(u->m, id);
        struct lane l = at_level(UNIFORM_G);
        if (x->op == OP_CONST || x->op == OP_ZERO)
            l.zeros = x->op == OP_CONST ? trailing_zeros(x->imm) : 64;
        else if (x->op != OP_PARAM)
            l = unseen;
        for (uint32_t c = u->a->first[id]; c < u->a->first[id + 1]; c++)
            u->lane[c] = settled(u, x->type, l);
    }
    for (uint32_t j = 0; j < f->n_params; j++) {
        const struct param *const p = &u->m->params.at[f->first_param + j];
        for (unsigned k = 0; p->kind == PARAM_ATTRIBUTE && k < components(p->type); k++)
            u->lane[u->a->first[p->node] + k] = settled(u, p->type, attribute(&u->a->shape, p, k));
    }
}

/* Gives up on loops, for the sweeps to end. */
static void force(struct uniform *u)
{
    for (uint32_t id = 1; id < u->m->nodes.n; id++) {
        const struct node *const x = ir_at(u->m, id);
        u->repeated[id] = UNIFORM_V;
        for (uint32_t c = u->a->first[id]; x->op == OP_ARG && c < u->a->first[id + 1]; c++)
            u->lane[c] = at_level(UNIFORM_V);
    }
}

void uniform_run(struct analysis *a, struct mem *mem, bool loads_uniform)
{
    const uint32_t n = a->m->nodes.n, parts = a->first[n];
    struct uniform *const u = mem_zalloc(mem, sizeof *u);
    u->a = a;
    u->m = a->m;
    u->loads_uniform = loads_uniform;
    u->lane = mem_zalloc(mem, sizeof *u->lane * (parts + 1));
    u->arriving = mem_zalloc(mem, sizeof *u->arriving * (parts + 1));
    u->one = mem_zalloc(mem, sizeof *u->one * n);
    u->repeated = mem_zalloc(mem, n);
    fixed(u);
    u->changed = true;
    for (unsigned k = 0; u->changed; k++) {
        struct frame top = {0};
        if (k == SWEEPS)
            force(u);
        u->changed = false;
        region(u, &top, a->m->funcs.at[a->func].region);
        if (k == SWEEPS)
            break;
    }
    for (uint32_t id = 1; id < n; id++)
        a->diverges[id] = ir_at(a->m, id)->op == OP_LOOP && u->repeated[id] == UNIFORM_V;
    for (uint32_t c = 0; c < parts; c++) /* what is never computed */
        a->lane[c] = u->lane[c].i.uniform == UNSEEN ? (struct lane_info){UNIFORM_V, false, 0} : u->lane[c].i;
}
