/* range.c - bounds of the values of a kernel, and how often its loops repeat.
 *
 * Active lanes. Sweeps in program order. In the first ones loop parameters grow from their first values, a bound that
 * moves twice going to its type's; once nothing grows, further sweeps narrow them: any sweep from bounds that hold gives bounds
 * that hold. So `loop (k = 0) { if k < 16 { … br k + 1 } }` ends with k from 0 to 16, of 0 to 15 below the condition.
 * Conditions are facts, a linked list that grows inwards; what the conditions of ifs say holds in their regions, and after an
 * if one side of which never arrives at the end.
 */
#include "pass/facts.h"

enum { GROWING = 16, NARROWING = 4, FACTS_SEEN = 64, DEPTH = 3 };

struct progress { /* of a loop parameter, over the branches that repeat the loop */
    uint8_t how;  /* enum progress_how */
    int64_t step; /* the least */
    int64_t edge; /* the furthest value from which the loop is repeated */
};
enum progress_how { NO_BRANCH, UP, DOWN, GROWS, SHRINKS, NO_PROGRESS };

struct ranges {
    struct analysis *a;
    const struct ir_module *m;
    struct mem *mem;
    uint32_t *fact_of, *saved; /* by node: the innermost fact about it; by fact: the one before */
    uint32_t n_saved;
    VEC(struct fact) fact;
    uint32_t chain;
    struct bounds *arriving;   /* by component of parameters and results */
    struct progress *progress; /* by component of parameters */
    uint32_t *arrivals;        /* by construct: branches to it */
    bool *repeated;            /* by loop */
    bool growing, changed, widen, last;
};

/* ---- bounds at hand -------------------------------------------------------------------------------------------- */

static struct bounds now(const struct ranges *r, uint32_t node, unsigned k)
{
    const struct bounds b = r->a->active[r->a->first[node] + k];
    const uint32_t f = r->fact_of[node];
    return f ? bounds_meet(b, r->fact.at[f].bound) : b;
}

struct now_source {
    struct bounds_source s;
    const struct ranges *r;
};

static struct bounds now_get(const struct bounds_source *s, uint32_t node, unsigned k)
{
    return now(((const struct now_source *)(const void *)s)->r, node, k);
}

/* As now, looking through operations that stand where less was known. */
static struct bounds deep(const struct ranges *r, uint32_t node, unsigned k, unsigned depth);

static struct bounds deep_get(const struct bounds_source *s, uint32_t node, unsigned k)
{
    return deep(((const struct now_source *)(const void *)s)->r, node, k, s->depth);
}

static bool is_operation(const struct ir_module *m, uint32_t node)
{
    const struct node *const x = ir_at(m, node);
    return op_info[x->op].effect == EFFECT_PURE && x->region && x->op != OP_ARG && x->op != OP_RESULT;
}

static struct bounds deep(const struct ranges *r, uint32_t node, unsigned k, unsigned depth)
{
    const struct bounds b = now(r, node, k);
    if (!depth || !r->chain || !is_operation(r->m, node) || !(ir_type_class(r->m, ir_at(r->m, node)->type) & CLASS_BSU))
        return b;
    const struct now_source s = {{deep_get, r->a, depth - 1, 0}, r};
    return bounds_meet(b, bounds_eval(r->m, node, k, &s.s));
}

/* ---- facts ----------------------------------------------------------------------------------------------------- */

static void add_fact(struct ranges *r, uint32_t node, struct bounds b, unsigned depth)
{
    const struct node *const x = ir_at(r->m, node);
    const struct bounds old = now(r, node, 0), both = bounds_meet(old, b);
    if (bounds_same(old, both) || x->op == OP_CONST || x->op == OP_ZERO)
        return;
    if (r->fact.n == r->n_saved) {
        const uint32_t n = r->n_saved * 2;
        r->saved = mem_realloc(r->mem, r->saved, sizeof *r->saved * r->n_saved, sizeof *r->saved * n);
        r->n_saved = n;
    }
    r->saved[r->fact.n] = r->fact_of[node];
    VEC_PUSH(r->mem, &r->fact, ((struct fact){both, node, r->chain}));
    r->chain = r->fact_of[node] = r->fact.n - 1;
    if (!depth || bounds_empty(both) || (x->op != OP_CONVERT && x->op != OP_ADD && x->op != OP_SUB))
        return;
    /* What it says of the operand that this came from. */
    const uint32_t *const in = ir_in(r->m, node);
    const struct bounds from = now(r, in[0], 0);
    struct bounds back;
    if (x->op == OP_CONVERT) {
        if (ir_type_class(r->m, ir_at(r->m, in[0])->type) & CLASS_SU && bounds_fit(from, x->type))
            add_fact(r, in[0], both, depth - 1);
        return;
    }
    const struct bounds by = now(r, in[1], 0);
    if (by.wide || by.lo != by.hi)
        return;
    if (x->op == OP_ADD ? bounds_add(from, by, &back) && bounds_fit(back, x->type) && bounds_sub(both, by, &back)
                        : bounds_sub(from, by, &back) && bounds_fit(back, x->type) && bounds_add(both, by, &back))
        add_fact(r, in[0], back, depth - 1);
}

/* a < b, or a <= b. */
static void add_below(struct ranges *r, uint32_t a, uint32_t b, bool strict)
{
    const struct bounds x = now(r, a, 0), y = now(r, b, 0);
    if (bounds_empty(x) || bounds_empty(y))
        return;
    if (!y.wide && !(strict && y.hi == INT64_MIN))
        add_fact(r, a, (struct bounds){INT64_MIN, y.hi - strict, false}, DEPTH);
    if (!(strict && x.lo == INT64_MAX))
        add_fact(r, b, (struct bounds){x.lo + strict, INT64_MAX, y.wide}, DEPTH);
}

static void add_other(struct ranges *r, uint32_t a, uint32_t b)
{
    const struct bounds x = now(r, a, 0), y = now(r, b, 0);
    if (y.wide || y.lo != y.hi || bounds_empty(x))
        return;
    if (x.lo == y.lo && x.lo < INT64_MAX)
        add_fact(r, a, (struct bounds){x.lo + 1, x.hi, x.wide}, DEPTH);
    else if (!x.wide && x.hi == y.hi)
        add_fact(r, a, (struct bounds){x.lo, x.hi - 1, false}, DEPTH);
}

static void add_condition(struct ranges *r, uint32_t c, bool holds, unsigned depth)
{
    const struct node *const x = ir_at(r->m, c);
    const uint32_t *const in = ir_in(r->m, c);
    if (x->type != TYPE_BOOL)
        return;
    add_fact(r, c, (struct bounds){holds, holds, false}, 0);
    if (!is_operation(r->m, c) || !depth)
        return;
    if (x->op == OP_NOT) {
        add_condition(r, in[0], !holds, depth - 1);
        return;
    }
    if ((x->op == OP_AND && holds) || (x->op == OP_OR && !holds)) {
        add_condition(r, in[0], holds, depth - 1);
        add_condition(r, in[1], holds, depth - 1);
        return;
    }
    if (op_info[x->op].rule != RULE_COMPARE || !(ir_type_class(r->m, ir_at(r->m, in[0])->type) & CLASS_SU) ||
        ir_type_width(ir_at(r->m, in[0])->type) != 1)
        return;
    switch ((unsigned)x->op) {
    case OP_LT:
    case OP_GE:
        if ((x->op == OP_LT) == holds)
            add_below(r, in[0], in[1], true);
        else
            add_below(r, in[1], in[0], false);
        return;
    case OP_GT:
    case OP_LE:
        if ((x->op == OP_GT) == holds)
            add_below(r, in[1], in[0], true);
        else
            add_below(r, in[0], in[1], false);
        return;
    case OP_EQ:
    case OP_NE:
        if ((x->op == OP_EQ) == holds) {
            add_fact(r, in[0], now(r, in[1], 0), DEPTH);
            add_fact(r, in[1], now(r, in[0], 0), DEPTH);
        } else {
            add_other(r, in[0], in[1]);
            add_other(r, in[1], in[0]);
        }
        return;
    }
}

static void forget(struct ranges *r, uint32_t chain)
{
    for (; r->chain != chain; r->chain = r->fact.at[r->chain].before)
        r->fact_of[r->fact.at[r->chain].node] = r->saved[r->chain];
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

/* A loop is repeated from here with value v for parameter `arg`. */
static void note_progress(struct ranges *r, uint32_t arg, uint32_t v)
{
    struct progress *const p = &r->progress[r->a->first[arg]];
    const struct node *const x = ir_at(r->m, v), *const t = ir_at(r->m, arg);
    const uint32_t *const in = ir_in(r->m, v);
    const struct bounds at = deep(r, arg, 0, DEPTH);
    struct bounds by, to;
    if (bounds_empty(at))
        return;
    enum progress_how how = NO_PROGRESS;
    int64_t step = 0;
    if (!at.wide && ir_type_width(t->type) == 1 && ir_type_class(r->m, t->type) & CLASS_SU && is_operation(r->m, v) &&
        x->n == 2) {
        const bool swapped = x->op == OP_ADD && in[1] == arg;
        by = deep(r, in[!swapped], 0, DEPTH);
        if (in[swapped] != arg || bounds_empty(by) || by.wide)
            how = NO_PROGRESS;
        else if (x->op == OP_ADD && bounds_add(at, by, &to) && bounds_fit(to, t->type))
            how = by.lo > 0 ? UP : by.hi < 0 ? DOWN : NO_PROGRESS, step = by.lo > 0 ? by.lo : -by.hi;
        else if (x->op == OP_SUB && bounds_sub(at, by, &to) && bounds_fit(to, t->type))
            how = by.lo > 0 ? DOWN : NO_PROGRESS, step = by.lo;
        else if (x->op == OP_SHR && at.lo > 0 && bounds_within(by, 1, scalar_info[t->type].bits - 1))
            how = SHRINKS, step = (int64_t)1 << (by.lo < 62 ? by.lo : 62);
        else if ((x->op == OP_DIV_TRUNC || x->op == OP_DIV_FLOOR) && at.lo > 0 && by.lo > 1)
            how = SHRINKS, step = by.lo;
        else if (x->op == OP_MUL && at.lo > 0 && by.lo > 1 && bounds_mul(at, by, &to) && bounds_fit(to, t->type))
            how = GROWS, step = by.lo;
        else if (x->op == OP_SHL && at.lo > 0 && bounds_within(by, 1, 62) &&
                 bounds_mul(at, (struct bounds){(int64_t)1 << by.lo, (int64_t)1 << by.hi, false}, &to) &&
                 bounds_fit(to, t->type) && by.hi < scalar_info[t->type].bits)
            how = GROWS, step = (int64_t)1 << by.lo;
    }
    const bool up = how == UP || how == GROWS;
    const int64_t edge = up ? at.hi : at.lo;
    if (p->how == NO_BRANCH)
        *p = (struct progress){(uint8_t)how, step, edge};
    else if (p->how != how)
        p->how = NO_PROGRESS;
    p->step = step < p->step ? step : p->step;
    p->edge = (up ? edge > p->edge : edge < p->edge) ? edge : p->edge;
}

static uint64_t repeats(const struct progress *p, struct bounds first)
{
    uint64_t n = 0;
    int64_t x;
    if (first.wide || bounds_empty(first))
        return p->how == NO_BRANCH || bounds_empty(first) ? 0 : UINT64_MAX;
    switch ((enum progress_how)p->how) {
    case NO_BRANCH: return 0;
    case UP: return p->edge < first.lo ? 0 : ((uint64_t)p->edge - (uint64_t)first.lo) / (uint64_t)p->step + 1;
    case DOWN: return p->edge > first.hi ? 0 : ((uint64_t)first.hi - (uint64_t)p->edge) / (uint64_t)p->step + 1;
    case SHRINKS:
        for (x = first.hi; x >= p->edge && x > 0; x /= p->step)
            n++;
        return n;
    case GROWS:
        if (first.lo < 1)
            return UINT64_MAX;
        for (x = first.lo; x <= p->edge; x = x > p->edge / p->step ? INT64_MAX : x * p->step) {
            n++;
            if (x == INT64_MAX)
                break;
        }
        return n;
    case NO_PROGRESS: break;
    }
    return UINT64_MAX;
}

static void arrive(struct ranges *r, uint32_t to, unsigned to_k, struct bounds b)
{
    struct bounds *const at = &r->arriving[r->a->first[to] + to_k];
    *at = bounds_join(*at, b);
}

/* Values that an exit, or the head of a loop, gives to parameters or results from `to` on. */
static void carry(struct ranges *r, uint32_t id, uint32_t to, bool repeat)
{
    for (unsigned j = 0; j < ir_at(r->m, id)->n; j++, to = ir_at(r->m, to)->next) {
        const uint32_t v = ir_in(r->m, id)[j];
        for (unsigned k = 0; k < components(ir_at(r->m, v)->type); k++)
            arrive(r, to, k, deep(r, v, k, DEPTH));
        if (repeat && r->last)
            note_progress(r, to, v);
    }
}

static void region(struct ranges *r, uint32_t region);

static void loop(struct ranges *r, uint32_t id)
{
    const uint32_t body = ir_region(r->m, id, 0), head = ir_region_at(r->m, body)->first;
    const unsigned n = ir_at(r->m, id)->n;
    uint32_t arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(r->m, arg)->next)
        for (unsigned k = 0; k < components(ir_at(r->m, arg)->type); k++) {
            const uint32_t c = r->a->first[arg] + k;
            r->arriving[c] = EMPTY_BOUNDS;
            r->progress[c] = (struct progress){NO_BRANCH, 0, 0};
        }
    carry(r, id, head, false);
    struct bounds *const first = mem_alloc(r->mem, sizeof *first * (n + 1));
    arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(r->m, arg)->next) {
        first[j] = r->arriving[r->a->first[arg]];
        for (unsigned k = 0; r->growing && k < components(ir_at(r->m, arg)->type); k++) {
            const uint32_t c = r->a->first[arg] + k;
            r->a->active[c] = bounds_join(r->a->active[c], r->arriving[c]);
        }
    }
    r->repeated[id] = false;
    region(r, body);
    uint64_t trips = r->repeated[id] ? UINT64_MAX : 0;
    arg = head;
    for (unsigned j = 0; j < n; j++, arg = ir_at(r->m, arg)->next) {
        const struct bounds type = bounds_of_type(ir_at(r->m, arg)->type);
        for (unsigned k = 0; k < components(ir_at(r->m, arg)->type); k++) {
            const uint32_t c = r->a->first[arg] + k;
            const struct bounds old = r->a->active[c];
            struct bounds x = r->growing ? bounds_join(old, r->arriving[c]) : bounds_meet(old, r->arriving[c]);
            if (bounds_same(x, old))
                continue;
            r->changed = true;
            if (r->growing && r->widen) {
                x.lo = x.lo < old.lo ? type.lo : x.lo;
                x.wide = type.wide && (x.wide || x.hi > old.hi);
                x.hi = x.hi > old.hi ? type.hi : x.hi;
            }
            r->a->active[c] = x;
        }
        const uint64_t most =
            r->last && r->repeated[id] ? repeats(&r->progress[r->a->first[arg]], first[j]) : UINT64_MAX;
        trips = most < trips ? most : trips;
    }
    r->a->trips[id] = trips;
    mem_free(r->mem, first, sizeof *first * (n + 1));
}

/* ---- regions --------------------------------------------------------------------------------------------------- */

/* Does control come to the end of the construct from the end of this region of it, or from within? */
static bool arrives(const struct ranges *r, uint32_t construct, unsigned k)
{
    const uint32_t last = ir_region_at(r->m, ir_region(r->m, construct, k))->last;
    return !last || r->arrivals[construct] || op_info[ir_at(r->m, last)->op].effect != EFFECT_EXIT ||
           ir_at(r->m, last)->op == OP_YIELD;
}

static void choose(struct ranges *r, uint32_t id)
{
    const uint32_t c = ir_in(r->m, id)[0], outer = r->chain;
    for (unsigned k = 0; k < 2; k++) {
        add_condition(r, c, k == 0, 8);
        region(r, ir_region(r->m, id, k));
        forget(r, outer);
    }
    if (!arrives(r, id, 0))
        add_condition(r, c, false, 8);
    else if (!arrives(r, id, 1))
        add_condition(r, c, true, 8);
}

static void select_case(struct ranges *r, uint32_t id)
{
    const uint32_t x = ir_in(r->m, id)[0], outer = r->chain;
    for (unsigned k = 0; k < ir_n_regions(r->m, id); k++) {
        const struct region *const q = ir_region_at(r->m, ir_region(r->m, id, k));
        struct bounds b = EMPTY_BOUNDS;
        for (uint32_t j = 0; j < q->n_cases; j++) {
            const int64_t value = r->m->cases.at[q->first_case + j];
            b = bounds_join(b, (struct bounds){value, value, false});
        }
        if (!q->is_default && q->n_cases && ir_at(r->m, x)->type != TYPE_U64)
            add_fact(r, x, b, DEPTH);
        region(r, ir_region(r->m, id, k));
        forget(r, outer);
    }
}

static void set_results(struct ranges *r, uint32_t id)
{
    for (uint32_t k = ir_at(r->m, id)->next; k && ir_at(r->m, k)->op == OP_RESULT && ir_at(r->m, k)->in[0] == id;
         k = ir_at(r->m, k)->next)
        for (unsigned j = 0; j < components(ir_at(r->m, k)->type); j++)
            r->arriving[r->a->first[k] + j] = EMPTY_BOUNDS;
}

static struct bounds of_node(const struct ranges *r, uint32_t id, unsigned k)
{
    const struct now_source s = {{now_get, r->a, 0, 0}, r};
    switch ((unsigned)ir_at(r->m, id)->op) {
    case OP_RESULT: return r->arriving[r->a->first[id] + k];
    case OP_SIMD_BALLOT:
    case OP_SIMD_ACTIVE: return (struct bounds){0, UINT32_MAX, false};
    case OP_QUAD_BALLOT:
    case OP_QUAD_ACTIVE: return (struct bounds){0, 15, false};
    }
    return is_operation(r->m, id) ? bounds_eval(r->m, id, k, &s.s) : bounds_of_type(ir_at(r->m, id)->type);
}

static void region(struct ranges *r, uint32_t which)
{
    const uint32_t outer = r->chain;
    IR_EACH(r->m, which, id)
    {
        const struct node *const x = ir_at(r->m, id);
        r->a->fact_at[id] = r->chain;
        if (ir_is_construct(x->op))
            set_results(r, id);
        switch ((unsigned)x->op) {
        case OP_ARG: continue;
        case OP_IF: choose(r, id); continue;
        case OP_SWITCH: select_case(r, id); continue;
        case OP_BLOCK: region(r, ir_region(r->m, id, 0)); continue;
        case OP_LOOP: loop(r, id); continue;
        case OP_YIELD: carry(r, id, ir_at(r->m, ir_region_at(r->m, which)->owner)->next, false); continue;
        case OP_BR: {
            const uint32_t to = (uint32_t)x->imm;
            const bool repeat = ir_at(r->m, to)->op == OP_LOOP;
            if (repeat)
                r->repeated[to] = true;
            carry(r, id, repeat ? ir_region_at(r->m, ir_region(r->m, to, 0))->first : ir_at(r->m, to)->next, repeat);
            continue;
        }
        }
        for (unsigned k = 0; x->type && k < components(x->type); k++)
            r->a->active[r->a->first[id] + k] = of_node(r, id, k);
    }
    forget(r, outer);
}

static void sweep(struct ranges *r)
{
    r->changed = false;
    r->fact.n = 0;
    r->chain = 0;
    VEC_PUSH(r->mem, &r->fact, ((struct fact){NO_BOUNDS, 0, 0}));
    region(r, r->m->funcs.at[r->a->func].region);
}

static void count_arrivals(struct ranges *r, uint32_t which)
{
    IR_EACH(r->m, which, id)
    {
        const struct node *const x = ir_at(r->m, id);
        if (x->op == OP_BR)
            r->arrivals[x->imm]++;
        for (unsigned k = 0; ir_is_construct(x->op) && k < ir_n_regions(r->m, id); k++)
            count_arrivals(r, ir_region(r->m, id, k));
    }
}

/* Values without a place in a region. */
static void fixed(const struct analysis *a, struct bounds *to, bool all)
{
    const struct func *const f = &a->m->funcs.at[a->func];
    for (uint32_t id = 1; id < a->m->nodes.n; id++) {
        const struct node *const x = ir_at(a->m, id);
        if (x->op == OP_CONST || x->op == OP_ZERO)
            for (unsigned k = 0; k < components(x->type); k++)
                to[a->first[id] + k] = bounds_const(a->m, id);
    }
    for (uint32_t j = 0; j < f->n_params; j++) {
        const struct param *const p = &a->m->params.at[f->first_param + j];
        for (unsigned k = 0; k < components(p->type); k++)
            to[a->first[p->node] + k] =
                p->kind == PARAM_ATTRIBUTE ? bounds_attribute(&a->shape, p, k, all) : bounds_of_type(p->type);
    }
}

static void force(struct ranges *r, uint32_t which)
{
    IR_EACH(r->m, which, id)
    {
        const struct node *const x = ir_at(r->m, id);
        for (unsigned k = 0; x->op == OP_ARG && k < components(x->type); k++)
            r->a->active[r->a->first[id] + k] = bounds_of_type(x->type);
        for (unsigned k = 0; ir_is_construct(x->op) && k < ir_n_regions(r->m, id); k++)
            force(r, ir_region(r->m, id, k));
    }
}

void range_active(struct analysis *a, struct mem *mem)
{
    const uint32_t n = a->m->nodes.n, parts = a->first[n];
    struct ranges *const r = mem_zalloc(mem, sizeof *r);
    r->a = a;
    r->m = a->m;
    r->mem = mem;
    r->fact_of = mem_zalloc(mem, sizeof *r->fact_of * n);
    r->n_saved = 64;
    r->saved = mem_zalloc(mem, sizeof *r->saved * r->n_saved);
    r->arriving = mem_zalloc(mem, sizeof *r->arriving * (parts + 1));
    r->progress = mem_zalloc(mem, sizeof *r->progress * (parts + 1));
    r->arrivals = mem_zalloc(mem, sizeof *r->arrivals * n);
    r->repeated = mem_zalloc(mem, n);
    const uint32_t body = a->m->funcs.at[a->func].region;
    count_arrivals(r, body);
    for (uint32_t k = 0; k < parts; k++)
        a->active[k] = EMPTY_BOUNDS;
    fixed(a, a->active, false);
    r->growing = r->changed = true;
    for (unsigned k = 0; r->changed && k < GROWING; k++) {
        r->widen = k > 0;
        sweep(r);
    }
    if (r->changed)
        force(r, body);
    r->growing = false;
    r->changed = true;
    for (unsigned k = 0; r->changed && k < NARROWING; k++)
        sweep(r);
    r->last = true;
    sweep(r);
    a->fact = r->fact.at;
    for (uint32_t k = 0, id = 1; id < n; id++) /* never computed: nothing is claimed */
        for (k = a->first[id]; k < a->first[id + 1]; k++)
            if (bounds_empty(a->active[k]))
                a->active[k] = bounds_of_type(ir_at(a->m, id)->type);
}

/* ---- all lanes ------------------------------------------------------------------------------------------------- */

static struct bounds all_get(const struct bounds_source *s, uint32_t node, unsigned k)
{
    return s->a->bound[s->a->first[node] + k];
}

/* A scalar in all lanes, written by active ones; or still the first value, where no lane ever was. */
static bool is_scalar(const struct analysis *a, uint32_t arg, unsigned k)
{
    const uint32_t loop = ir_region_at(a->m, ir_at(a->m, arg)->region)->owner;
    const uint32_t first = ir_in(a->m, loop)[ir_at(a->m, arg)->imm];
    const struct bounds b = a->bound[a->first[first] + k], c = a->active[a->first[arg] + k];
    return a->lane[a->first[arg] + k].uniform != UNIFORM_V && bounds_same(bounds_join(b, c), c);
}

static void all_region(struct analysis *a, uint32_t which, bool lanes)
{
    const struct bounds_source s = {all_get, a, 0, 0};
    IR_EACH(a->m, which, id)
    {
        const struct node *const x = ir_at(a->m, id);
        for (unsigned k = 0; x->type && k < components(x->type); k++) {
            const uint32_t c = a->first[id] + k;
            struct bounds b = bounds_of_type(x->type);
            if (x->op == OP_SIMD_BALLOT || x->op == OP_SIMD_ACTIVE)
                b = (struct bounds){0, UINT32_MAX, false};
            else if (x->op == OP_ARG && lanes && is_scalar(a, id, k))
                b = a->active[c];
            else if (is_operation(a->m, id))
                b = bounds_eval(a->m, id, k, &s);
            if (lanes && x->op == OP_CONVERT && a->lane[c].linear && a->lane[c].uniform == UNIFORM_V &&
                scalar_info[ir_type_scalar(ir_at(a->m, x->in[0])->type)].bits <
                    scalar_info[ir_type_scalar(x->type)].bits)
                b = bounds_of_type(x->type); /* lanes that are not active may be past the narrower type */
            a->bound[c] = b;
        }
        for (unsigned k = 0; ir_is_construct(x->op) && k < ir_n_regions(a->m, id); k++)
            all_region(a, ir_region(a->m, id, k), lanes);
    }
}

void range_all(struct analysis *a, bool lanes)
{
    for (uint32_t id = 1; id < a->m->nodes.n; id++)
        for (uint32_t k = a->first[id]; k < a->first[id + 1]; k++)
            a->bound[k] = bounds_of_type(ir_at(a->m, id)->type);
    fixed(a, a->bound, true);
    all_region(a, a->m->funcs.at[a->func].region, lanes);
}

/* ---- at a place ------------------------------------------------------------------------------------------------ */

static struct bounds place_get(const struct bounds_source *s, uint32_t node, unsigned k)
{
    const struct analysis *const a = s->a;
    const struct ir_module *const m = a->m;
    struct bounds b = a->active[a->first[node] + k];
    unsigned seen = 0;
    for (uint32_t f = s->fact; f && seen < FACTS_SEEN; f = a->fact[f].before, seen++)
        if (a->fact[f].node == node) {
            b = bounds_meet(b, a->fact[f].bound);
            break;
        }
    if (!s->fact || !s->depth || !is_operation(m, node) || !(ir_type_class(m, ir_at(m, node)->type) & CLASS_BSU))
        return b;
    struct bounds_source inner = *s;
    inner.depth--;
    return bounds_meet(b, bounds_eval(m, node, k, &inner));
}

struct bounds analysis_bounds_active(const struct analysis *a, uint32_t node, unsigned k, uint32_t at)
{
    const struct bounds_source s = {place_get, a, DEPTH, a->fact_at[at]};
    const struct bounds b = place_get(&s, node, k);
    return bounds_empty(b) ? bounds_of_type(ir_at(a->m, node)->type) : b;
}
