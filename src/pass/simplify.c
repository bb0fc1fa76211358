/* simplify.c - pass S: algebra that never changes a result, constant folding, constructs that decide nothing.
 *
 * Requirements for a rule:
 *  1. it gives the same bits for every input, floats included (NaN is one value): x + 0.0 stays, it turns -0.0 into 0.0;
 *  2. it keeps the type;
 *  3. it makes the program smaller or an operation cheaper, so that one round ends;
 *  4. it duplicates nothing and moves no effect.
 */
#include "pass/util.h"

struct walk {
    struct ir_module *m;
    struct mem *mem; /* working memory */
    struct pass_map map;
    struct exits exits; /* those that went since count still, to be safe */
    bool later;         /* the map has what walked nodes use */
};

/* The value of a scalar constant, or of a vector of equal ones. */
static bool constant(const struct ir_module *m, uint32_t id, uint64_t *bits)
{
    const struct node *x = ir_at(m, id);
    if (x->op == OP_SPLAT)
        return constant(m, ir_in(m, id)[0], bits);
    if (x->op == OP_ZERO && ir_type_width(x->type) > 1) {
        *bits = 0;
        return true;
    }
    *bits = x->imm;
    return x->op == OP_CONST;
}

static uint64_t all_ones(enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

static uint64_t one(enum scalar s)
{
    switch (s) {
    case S_F16: return 0x3c00;
    case S_BF16: return 0x3f80;
    case S_F32: return 0x3f800000;
    case S_VOID:
    case S_BOOL:
    case S_I8:
    case S_U8:
    case S_I16:
    case S_U16:
    case S_I32:
    case S_U32:
    case S_I64:
    case S_U64:
    case S_COUNT: return 1;
    }
    return 1;
}

static uint64_t negative_zero(enum scalar s)
{
    return (uint64_t)1 << (scalar_info[s].bits - 1u);
}

/* log2 of a power of two above 1 that is positive in type s, else 0. */
static unsigned power_of_two(enum scalar s, uint64_t bits)
{
    const bool sign = scalar_info[s].class_ == CLASS_S && bits >> (scalar_info[s].bits - 1u);
    if (bits < 2 || (bits & (bits - 1)) || sign)
        return 0;
    return (unsigned)__builtin_ctzll(bits);
}

/* A constant of type t, a splat for vectors, made before `node`. */
static uint32_t constant_before(struct ir_module *m, uint32_t node, ir_type t, uint64_t bits)
{
    const uint32_t c = ir_const(m, (ir_type)ir_type_scalar(t), bits);
    if (ir_type_width(t) == 1)
        return c;
    struct ir_builder b = {.m = m, .region = ir_at(m, node)->region, .before = node, .place = ir_at(m, node)->place};
    return ir_node(&b, OP_SPLAT, t, 1, &c, 0, 0);
}

/* Rewrites `node` in place to (op x, constant). */
static void rewrite(struct ir_module *m, uint32_t node, enum op op, uint32_t x, uint64_t bits)
{
    const uint32_t in[2] = {x, constant_before(m, node, ir_at(m, node)->type, bits)};
    ir_at(m, node)->op = (uint16_t)op;
    ir_set_inputs(m, node, 2, in);
}

/* Division and remainder by the constant c of an integer type. */
static uint32_t integer_division(struct ir_module *m, uint32_t id, uint32_t a, uint64_t c)
{
    const struct node x = *ir_at(m, id);
    const enum scalar s = ir_type_scalar(x.type);
    const bool quotient = x.op == OP_DIV_TRUNC || x.op == OP_DIV_FLOOR;
    const bool rounds_down = x.op == OP_DIV_FLOOR || x.op == OP_REM_FLOOR || scalar_info[s].class_ == CLASS_U;

    if (c == 0 || (c == 1 && !quotient))
        return ir_zero(m, x.type);
    if (c == 1)
        return a;
    const unsigned shift = power_of_two(s, c);
    if (shift && rounds_down) {
        if (quotient)
            rewrite(m, id, OP_SHR, a, shift);
        else
            rewrite(m, id, OP_AND, a, c - 1);
    }
    return 0;
}

static uint32_t integer_rule(struct ir_module *m, uint32_t id, uint32_t a, uint32_t b)
{
    const struct node x = *ir_at(m, id);
    const enum scalar s = ir_type_scalar(x.type);
    uint64_t ca = 0, cb = 0;
    const bool ka = constant(m, a, &ca), kb = constant(m, b, &cb);

    switch (x.op) {
    case OP_ADD:
    case OP_OR:
    case OP_XOR:
        if (x.op == OP_OR && a == b)
            return a;
        if (x.op == OP_XOR && a == b)
            return ir_zero(m, x.type);
        return ka && ca == 0 ? b : kb && cb == 0 ? a : 0;
    case OP_SUB: return a == b ? ir_zero(m, x.type) : kb && cb == 0 ? a : 0;
    case OP_MUL:
        if ((ka && ca == 0) || (kb && cb == 0))
            return ir_zero(m, x.type);
        return ka && ca == 1 ? b : kb && cb == 1 ? a : 0;
    case OP_AND:
        if ((ka && ca == 0) || (kb && cb == 0))
            return ir_zero(m, x.type);
        return a == b || (kb && cb == all_ones(s)) ? a : ka && ca == all_ones(s) ? b : 0;
    case OP_SHL:
    case OP_SHR: {
        const enum scalar count = ir_type_scalar(ir_at(m, b)->type);
        return kb && (cb & all_ones(count) & (scalar_info[s].bits - 1u)) == 0 ? a : 0;
    }
    case OP_DIV_TRUNC:
    case OP_REM_TRUNC:
    case OP_DIV_FLOOR:
    case OP_REM_FLOOR: return kb ? integer_division(m, id, a, cb) : 0;
    default: return 0;
    }
}

static uint32_t float_rule(struct ir_module *m, uint32_t id, uint32_t a, uint32_t b)
{
    const struct node *x = ir_at(m, id);
    const enum scalar s = ir_type_scalar(x->type);
    uint64_t ca = 0, cb = 0;
    const bool ka = constant(m, a, &ca), kb = constant(m, b, &cb);

    switch (x->op) {
    case OP_ADD: return kb && cb == negative_zero(s) ? a : ka && ca == negative_zero(s) ? b : 0;
    case OP_SUB: return kb && cb == 0 ? a : 0;
    case OP_MUL: return kb && cb == one(s) ? a : ka && ca == one(s) ? b : 0;
    case OP_DIV: return kb && cb == one(s) ? a : 0;
    default: return 0;
    }
}

/* EXTRACT of a value whose parts are known. */
static uint32_t extract_rule(struct ir_module *m, uint32_t id)
{
    const uint64_t k = ir_at(m, id)->imm;
    uint32_t whole = ir_in(m, id)[0];
    while (ir_at(m, whole)->op == OP_INSERT) {
        if (ir_at(m, whole)->imm == k)
            return ir_in(m, whole)[1];
        whole = ir_in(m, whole)[0];
    }
    if (ir_at(m, whole)->op == OP_MAKE)
        return ir_in(m, whole)[k];
    if (ir_at(m, whole)->op == OP_SPLAT)
        return ir_in(m, whole)[0];
    return 0;
}

/* There and back: a CONVERT of `x`, which is a CONVERT of what had the type already and lost nothing. */
static uint32_t convert_rule(struct ir_module *m, uint32_t id, uint32_t x)
{
    if (ir_at(m, x)->op != OP_CONVERT)
        return 0;
    const uint32_t from = ir_in(m, x)[0];
    const enum scalar s = ir_type_scalar(ir_at(m, from)->type), wide = ir_type_scalar(ir_at(m, x)->type);
    const unsigned class = scalar_info[s].class_, wide_class = scalar_info[wide].class_;
    bool keeps =
        s == S_BOOL || (class & CLASS_SU && wide_class & CLASS_SU && scalar_info[wide].bits >= scalar_info[s].bits);
    keeps = keeps || (class == CLASS_F && wide == S_F32);
    return keeps && ir_at(m, from)->type == ir_at(m, id)->type ? from : 0;
}

/* The value that `id` is equal to, or 0; may rewrite it in place to something cheaper. */
static uint32_t rule(struct ir_module *m, uint32_t id)
{
    const struct node x = *ir_at(m, id);
    const uint32_t *in = ir_in(m, id);
    const uint32_t a = x.n > 0 ? in[0] : 0, b = x.n > 1 ? in[1] : 0;
    const unsigned class = ir_type_class(m, x.type);
    uint64_t c = 0;

    switch (x.op) {
    case OP_NEG:
    case OP_NOT: return ir_at(m, a)->op == x.op ? ir_in(m, a)[0] : 0;
    case OP_EQ:
    case OP_LE:
    case OP_GE:
        if (a == b && ir_type_class(m, ir_at(m, a)->type) & CLASS_BSU && ir_type_width(x.type) == 1)
            return ir_const(m, TYPE_BOOL, 1);
        return 0;
    case OP_NE:
    case OP_LT:
    case OP_GT: return a == b && ir_type_class(m, ir_at(m, a)->type) & CLASS_BSU ? ir_zero(m, x.type) : 0;
    case OP_SELECT:
        if (b == in[2])
            return b;
        return constant(m, a, &c) ? (c ? b : in[2]) : 0;
    case OP_EXTRACT: return extract_rule(m, id);
    case OP_CONVERT: return convert_rule(m, id, a);
    case OP_MIN:
    case OP_MAX:
    case OP_FMIN:
    case OP_FMAX: return a == b ? a : 0;
    default:
        if (x.n == 2 && class & CLASS_BSU)
            return integer_rule(m, id, a, b);
        if (x.n == 2 && class == CLASS_F)
            return float_rule(m, id, a, b);
        return 0;
    }
}

/* Replaces a construct by the nodes of `region`, the only one of its regions that runs; no BR names it. */
static void dissolve(struct walk *w, uint32_t construct, uint32_t region)
{
    struct ir_module *m = w->m;
    const uint32_t last = ir_region_at(m, region)->last;
    const bool leaves = region_ends_in_exit(m, region) && ir_at(m, last)->op != OP_YIELD;
    uint32_t next = ir_at(m, construct)->next;

    while (next && ir_at(m, next)->op == OP_RESULT && ir_in(m, next)[0] == construct) {
        const uint32_t result = next;
        next = ir_at(m, next)->next;
        if (!leaves) {
            const uint32_t value = ir_in(m, last)[ir_at(m, result)->imm];
            if (!ir_at(m, value)->name && ir_at(m, value)->region)
                ir_at(m, value)->name = ir_at(m, result)->name;
            map_set(&w->map, result, value);
        }
        ir_unlink(m, result);
    }
    if (leaves) /* what follows is never reached */
        for (uint32_t after = ir_at(m, construct)->next, n; after; after = n) {
            n = ir_at(m, after)->next;
            ir_unlink(m, after);
        }
    else if (last && ir_at(m, last)->op == OP_YIELD)
        ir_unlink(m, last);
    ir_splice(m, region, construct);
    ir_unlink(m, construct);
}

static void walk(struct walk *w, uint32_t region);

/* The region of a switch that runs for the constant `id`; 0: none. */
static uint32_t chosen_case(const struct ir_module *m, uint32_t sw, uint32_t id)
{
    const enum scalar s = ir_type_scalar(ir_at(m, id)->type);
    const int64_t x = (int64_t)ir_scalar_eval(OP_CONVERT, s, S_I64, 0, ir_at(m, id)->imm, 0, 0);
    uint32_t other = 0;
    for (unsigned k = 0; k < ir_n_regions(m, sw); k++) {
        const struct region *r = ir_region_at(m, ir_region(m, sw, k));
        for (uint32_t i = 0; i < r->n_cases; i++)
            if (m->cases.at[r->first_case + i] == x)
                return ir_region(m, sw, k);
        if (r->is_default)
            other = ir_region(m, sw, k);
    }
    return other;
}

/* A construct of which one region runs becomes a block. */
static void make_block(struct ir_module *m, uint32_t construct, uint32_t region)
{
    ir_region_at(m, region)->n_cases = 0;
    ir_region_at(m, region)->is_default = false;
    ir_at(m, construct)->op = OP_BLOCK;
    ir_at(m, construct)->imm = region | (uint64_t)1 << 32;
    ir_set_inputs(m, construct, 0, NULL);
}

/* A loop that nothing repeats: its parameters are their first values. */
static void make_once(struct walk *w, uint32_t loop)
{
    struct ir_module *m = w->m;
    const uint32_t region = ir_region(m, loop, 0);
    for (uint32_t id = ir_region_at(m, region)->first, next; id && ir_at(m, id)->op == OP_ARG; id = next) {
        next = ir_at(m, id)->next;
        map_set(&w->map, id, ir_in(m, loop)[ir_at(m, id)->imm]);
        ir_unlink(m, id);
    }
    make_block(m, loop, region);
    w->later = true;
}

static void replace(struct walk *w, uint32_t id, uint32_t same)
{
    struct ir_module *m = w->m;
    if (ir_at(m, same)->region && !ir_at(m, same)->name)
        ir_at(m, same)->name = ir_at(m, id)->name;
    map_set(&w->map, id, same);
}

/* Does the value stand in a region around the construct, or in none as constants do? */
static bool is_around(const struct ir_module *m, uint32_t value, uint32_t construct)
{
    const struct node *x = ir_at(m, value);
    if (!x->region)
        return x->op == OP_CONST || x->op == OP_ZERO || x->op == OP_PARAM;
    uint32_t region = ir_at(m, construct)->region;
    while (region && region != x->region)
        region = ir_parent_region(m, region);
    return region != 0;
}

/* The only value that exits give to result (or parameter) k of a construct, if it comes from outside; 0: there is none.
 * For a parameter it is `first` or the parameter itself. */
static uint32_t only_value(const struct walk *w, uint32_t construct, unsigned k, bool parameter, uint32_t first)
{
    const struct ir_module *m = w->m;
    uint32_t only = first;
    for (uint32_t exit = w->exits.first[construct]; exit; exit = w->exits.next[exit]) {
        if (exit_repeats(m, exit, construct) != parameter)
            continue;
        const uint32_t x = map_get(&w->map, ir_in(m, exit)[k]);
        if (only && x != only &&
            !(parameter && ir_at(m, x)->op == OP_ARG && ir_at(m, x)->imm == k &&
              ir_region_at(m, ir_at(m, x)->region)->owner == construct))
            return 0;
        only = only ? only : x;
    }
    return only && is_around(m, only, construct) ? only : 0;
}

/* Results and parameters that are always the same value; pass D takes them out. */
static void carried_values(struct walk *w, uint32_t id)
{
    struct ir_module *m = w->m;
    if (ir_at(m, id)->op == OP_LOOP) {
        for (uint32_t arg = ir_region_at(m, ir_region(m, id, 0))->first; arg && ir_at(m, arg)->op == OP_ARG;
             arg = ir_at(m, arg)->next) {
            const unsigned k = (unsigned)ir_at(m, arg)->imm;
            const uint32_t same = only_value(w, id, k, true, ir_in(m, id)[k]);
            if (same) {
                replace(w, arg, same);
                w->later = true;
            }
        }
    }
    for (uint32_t r = ir_at(m, id)->next; r && ir_at(m, r)->op == OP_RESULT && ir_in(m, r)[0] == id;
         r = ir_at(m, r)->next) {
        const uint32_t same = only_value(w, id, (unsigned)ir_at(m, r)->imm, false, 0);
        if (same)
            replace(w, r, same);
    }
}

static void walk_construct(struct walk *w, uint32_t id)
{
    struct ir_module *m = w->m;
    const struct node x = *ir_at(m, id);

    if ((x.op == OP_IF || x.op == OP_SWITCH) && ir_is_const(m, x.in[0])) {
        uint32_t taken = x.op == OP_IF ? ir_region(m, id, ir_at(m, x.in[0])->imm ? 0 : 1) : chosen_case(m, id, x.in[0]);
        if (!taken) {
            ir_unlink(m, id); /* no default: hence no results */
            return;
        }
        make_block(m, id, taken);
    }
    for (unsigned k = 0; k < ir_n_regions(m, id); k++)
        walk(w, ir_region(m, id, k));
    if (x.op == OP_LOOP && !region_leaves_to(m, ir_region(m, id, 0), id))
        make_once(w, id);
    if (ir_at(m, id)->op == OP_BLOCK && !region_leaves_to(m, ir_region(m, id, 0), id))
        dissolve(w, id, ir_region(m, id, 0));
    else
        carried_values(w, id);
}

static void walk(struct walk *w, uint32_t region)
{
    struct ir_module *m = w->m;
    for (uint32_t id = ir_region_at(m, region)->first, next; id; id = next) {
        map_inputs(&w->map, id);
        const struct node x = *ir_at(m, id);
        const enum op_effect effect = (enum op_effect)op_info[x.op].effect;
        if (ir_is_construct(x.op)) {
            uint32_t after = x.next;
            while (after && ir_at(m, after)->op == OP_RESULT && ir_in(m, after)[0] == id)
                after = ir_at(m, after)->next;
            walk_construct(w, id);
            /* A dissolved construct's nodes have been walked: go on behind them, if there still is something. */
            next = ir_at(m, id)->region ? ir_at(m, id)->next : after && ir_at(m, after)->region ? after : 0;
            continue;
        }
        next = x.next;
        if (effect != EFFECT_PURE || x.op == OP_ARG || x.op == OP_RESULT)
            continue;
        uint32_t same = ir_fold(m, (enum op)x.op, x.type, x.n, ir_in(m, id), x.flags, x.imm);
        if (!same)
            same = rule(m, id);
        if (same) {
            replace(w, id, same);
            ir_unlink(m, id);
        }
    }
    const uint32_t last = ir_region_at(m, region)->last, owner = ir_region_at(m, region)->owner;
    if (last && owner && ir_at(m, last)->op == OP_BR && ir_at(m, last)->imm == owner &&
        ir_at(m, owner)->op != OP_LOOP) {
        ir_at(m, last)->op = OP_YIELD;
        ir_at(m, last)->imm = 0;
        if (!ir_at(m, last)->n)
            ir_unlink(m, last);
    }
}

void pass_simplify(struct ir_module *m, uint32_t func)
{
    struct walk w = {.m = m, .mem = mem_temp(m->mem)};
    w.exits = exits_of(m, m->funcs.at[func].region, w.mem);
    map_init(&w.map, m);
    walk(&w, m->funcs.at[func].region);
    if (w.later)
        map_region(&w.map, m->funcs.at[func].region);
    map_free(&w.map);
    mem_temp_end(w.mem);
}
