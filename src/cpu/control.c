/* control.c - the regions of one bundle, under masks.
 *
 * A construct whose lanes all go the same way is a branch. Where they may not, each region runs under the lanes that take it,
 * if there are any; lanes that leave a construct wait at its end. Where lanes get lost on the way (they left an outer
 * construct, or ended) the mask at a construct's end is gathered from those that arrive; elsewhere it is that on entry.
 * What follows a construct is written twice where it touches memory and the mask was full before: once for a mask that still
 * is, once for any other.
 */
#include "cpu/control.h"

/* ---- the plan --------------------------------------------------------------------------------------------------- */

struct plan {
    struct lower *l;
    struct control *c;
    VEC(uint32_t) open; /* constructs around */
    bool changed;
};

static bool is_varying(const struct lower *l, uint32_t construct)
{
    const struct node *const x = ir_at(l->m, construct);
    return (x->op == OP_IF || x->op == OP_SWITCH) &&
           analysis_lane(&l->a, ir_in(l->m, construct)[0], 0).uniform == UNIFORM_V;
}

static void set(struct plan *p, uint8_t *flag)
{
    p->changed = p->changed || !*flag;
    *flag = 1;
}

/* An exit to the construct at depth q of p->open (-1: out of the kernel). */
static void plan_exit(struct plan *p, uint32_t exit, int q)
{
    struct control *const c = p->c;
    bool seen = false;
    for (int k = (int)p->open.n - 1; k >= 0 && k >= q; k--) {
        const uint32_t f = p->open.at[k];
        if (seen)
            set(p, &c->mixed[f]);
        if (k == q)
            break;
        seen = seen || is_varying(p->l, f) || c->mixed[f];
        if (seen)
            set(p, &c->apart[f]);
    }
    if (seen && exit)
        set(p, &c->partial[exit]);
    if (seen && q < 0)
        c->root_apart = true;
}

static void plan_region(struct plan *p, uint32_t region)
{
    const struct ir_module *const m = p->l->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (x->op == OP_BR) {
            int q = (int)p->open.n - 1;
            while (q > 0 && p->open.at[q] != (uint32_t)x->imm)
                q--;
            plan_exit(p, id, q);
        } else if (x->op == OP_RETURN || x->op == OP_UNREACHABLE) {
            plan_exit(p, id, -1);
        }
        if (!ir_is_construct(x->op))
            continue;
        VEC_PUSH(p->l->mem, &p->open, id);
        if (p->c->waits[id]) { /* lanes that give up end, from inside of the loop */
            set(p, &p->c->mixed[id]);
            plan_exit(p, 0, -1);
        }
        for (unsigned r = 0; r < ir_n_regions(m, id); r++)
            plan_region(p, ir_region(m, id, r));
        p->open.n--;
    }
}

static void find_waits(struct lower *l, uint32_t region)
{
    struct control *const c = l->control;
    bool thread;
    IR_EACH(l->m, region, id)
    {
        const uint16_t op = ir_at(l->m, id)->op;
        if (op == OP_LOOP)
            c->waits[id] = loop_waits(l->m, id, c->marks, &thread);
        if (ir_is_construct(op))
            for (unsigned r = 0; r < ir_n_regions(l->m, id); r++)
                find_waits(l, ir_region(l->m, id, r));
    }
}

void control_plan(struct lower *l, uint32_t region)
{
    const size_t n = l->m->nodes.n;
    struct control *const c = l->control = mem_zalloc(l->mem, sizeof *l->control);
    c->apart = mem_zalloc(l->mem, n);
    c->mixed = mem_zalloc(l->mem, n);
    c->partial = mem_zalloc(l->mem, n);
    c->waits = mem_zalloc(l->mem, n);
    c->marks = mem_zalloc(l->mem, n);
    c->frame_of = mem_zalloc(l->mem, n * sizeof *c->frame_of);
    c->budget = 2000 + 2 * (uint64_t)n;
    find_waits(l, region);
    struct plan p = {.l = l, .c = c, .changed = true};
    while (p.changed) {
        p.changed = false;
        plan_region(&p, region);
    }
}

/* ---- carriers --------------------------------------------------------------------------------------------------- */

struct carrier carrier_new(struct lower *l, uint32_t node, uint32_t k)
{
    const struct lane_info info = analysis_lane(&l->a, node, k);
    uint64_t offset = 0;
    enum scalar s;
    const enum elem t = lower_leaf_elem(l->m, ir_at(l->m, node)->type, k, &offset, &s);
    const bool uniform = info.uniform <= UNIFORM_S;
    const bool linear = !uniform && info.linear && t <= E_I64 && t != E_I1;
    return (struct carrier){e_slot(&l->e, t, !uniform && !linear), info.stride, linear};
}

struct val carrier_get(struct lower *l, const struct carrier *c)
{
    const struct val x = e_get(&l->e, c->slot);
    return c->linear ? e_linear(x, c->stride) : x;
}

struct val control_uniform(struct lower *l, struct val x)
{
    struct emit *const e = &l->e;
    if (e_is_uniform(x))
        return x;
    struct val lane = e_i32(0);
    if (l->mask.shape != V_CONST) {
        const struct val in[] = {e_bits(e, l->mask), e_false()};
        lane = e_intrinsic(e, "llvm.cttz", E_I32, 2, in);
        lane = e_bin(e, "and", lane, e_i32(e->width - 1));
    }
    return e_lane(e, x, lane);
}

/* Puts leaf values of the operands of an exit where the construct keeps them. */
static void carry(struct lower *l, uint32_t exit, uint32_t from, uint32_t first, uint32_t n, bool blend)
{
    struct emit *const e = &l->e;
    struct control *const c = l->control;
    struct val few[16], *const v = n > 16 ? mem_alloc(l->mem, n * sizeof *v) : few;
    uint32_t at = 0;
    for (unsigned k = from; k < ir_at(l->m, exit)->n && at < n; k++) {
        const uint32_t x = ir_in(l->m, exit)[k], leaves = lower_leaves(l->m, ir_at(l->m, x)->type);
        for (uint32_t i = 0; i < leaves && at < n; i++)
            v[at++] = lower_in(l, x, i);
    }
    for (uint32_t k = 0; k < at; k++) {
        const struct carrier to = c->carriers.at[first + k];
        if (to.linear)
            v[k] = v[k].shape == V_VARYING ? e_lane(e, v[k], e_i32(0)) : e_base(v[k]);
        else if (!to.slot.varying)
            v[k] = control_uniform(l, v[k]);
        else if (blend && l->mask.shape != V_CONST)
            v[k] = e_select(e, l->mask, v[k], e_get(e, to.slot));
        e_put(e, to.slot, v[k]);
    }
    if (v != few)
        mem_free(l->mem, v, n * sizeof *v);
}

/* ---- exits ------------------------------------------------------------------------------------------------------ */

static struct frame *top(struct lower *l)
{
    return &l->control->frames.at[l->control->frames.n - 1];
}

static bool keeps_out(const struct lower *l, const struct frame *f)
{
    return f->node ? l->control->apart[f->node] : l->control->root_apart || l->control->track_root;
}

/* The lanes of l->mask come to the end of the construct, with the values of `exit` (0: none). */
static void arrive(struct lower *l, uint32_t frame, uint32_t exit)
{
    struct emit *const e = &l->e;
    struct frame *const f = &l->control->frames.at[frame];
    if (exit && f->n_results)
        carry(l, exit, 0, f->first_result, f->n_results, f->arrived || (f->node && l->control->mixed[f->node]));
    f->arrived = true;
    if (keeps_out(l, f))
        e_put(e, f->out, e_or(e, e_get(e, f->out), l->mask));
}

/* Do lanes leave for this frame at several times, in iterations of a loop inside of it? */
static bool leaves_apart(const struct lower *l, uint32_t frame)
{
    const struct control *const c = l->control;
    for (uint32_t k = frame + 1; k < c->frames.n; k++)
        if (c->mixed[c->frames.at[k].node] && ir_at(l->m, c->frames.at[k].node)->op == OP_LOOP)
            return true;
    return false;
}

static void repeat(struct lower *l, uint32_t frame, uint32_t exit)
{
    struct emit *const e = &l->e;
    struct frame *const f = &l->control->frames.at[frame];
    carry(l, exit, 0, f->first_arg, f->n_args, f->repeated || leaves_apart(l, frame));
    f->repeated = true;
    if (l->control->mixed[f->node])
        e_put(e, f->again, e_or(e, e_get(e, f->again), l->mask));
}

/* Where lanes that leave alone meet those that they leave: all that is nearer they leave together. */
static uint32_t meeting(const struct lower *l)
{
    const struct control *const c = l->control;
    uint32_t f = c->frames.n - 1;
    while (f && !is_varying(l, c->frames.at[f].node) && !c->mixed[c->frames.at[f].node])
        f--;
    return c->frames.at[f].next;
}

static void exit_node(struct lower *l, uint32_t id, uint32_t after)
{
    struct control *const c = l->control;
    const struct node *const x = ir_at(l->m, id);
    const bool partial = c->partial[id];
    if (x->op == OP_YIELD) {
        arrive(l, c->frames.n - 1, id);
        e_jump(&l->e, after);
    } else if (x->op == OP_BR) {
        const uint32_t f = c->frame_of[(uint32_t)x->imm];
        const bool loop = ir_at(l->m, (uint32_t)x->imm)->op == OP_LOOP;
        if (loop)
            repeat(l, f, id);
        else
            arrive(l, f, id);
        e_jump(&l->e, partial ? meeting(l) : loop ? c->frames.at[f].head : c->frames.at[f].next);
    } else { /* return, unreachable */
        e_jump(&l->e, partial ? meeting(l) : c->frames.at[0].next);
    }
}

/* ---- the stop word ---------------------------------------------------------------------------------------------- */

void control_poll(struct lower *l)
{
    struct emit *const e = &l->e;
    const uint32_t word = e_id(e), leave = e_block(e), on = e_block(e);
    e_line(e, "%%v%u = load volatile i32, ptr %%v%u", word, l->control->stop.id);
    e_branch(e, e_cmp(e, "icmp ne", e_named(E_I32, false, word), e_i32(0)), leave, on, ODDS_UNLIKELY);
    e_place(e, leave);
    e_return(e, "ret i32 1");
    e_place(e, on);
}

static uint64_t nodes_below(const struct ir_module *m, uint32_t region, const struct analysis *a)
{
    uint64_t n = 0;
    IR_EACH(m, region, id)
    {
        uint64_t inside = 1;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                inside += nodes_below(m, ir_region(m, id, r), a);
        if (a && ir_at(m, id)->op == OP_LOOP)
            inside = a->trips[id] > UINT32_MAX ? UINT32_MAX : inside * a->trips[id];
        n += inside;
        if (n > UINT32_MAX)
            return UINT32_MAX;
    }
    return n;
}

/* A bundle's loop that may run longer than about a millisecond polls. */
#define SHORT_NODES ((uint64_t)1 << 20)

bool control_is_long(struct lower *l, uint32_t loop)
{
    const uint64_t trips = l->a.trips[loop];
    return trips > SHORT_NODES || trips * nodes_below(l->m, ir_region(l->m, loop, 0), &l->a) > SHORT_NODES;
}

/* ---- constructs ------------------------------------------------------------------------------------------------- */

static uint32_t push(struct lower *l, uint32_t node, uint32_t next)
{
    struct control *const c = l->control;
    struct frame f = {.node = node, .next = next, .entry = l->mask};
    f.first_result = c->carriers.n;
    for (unsigned r = 0; r < ir_n_results(l->m, node); r++) {
        uint32_t id = ir_at(l->m, node)->next;
        for (unsigned k = 0; k < r; k++)
            id = ir_at(l->m, id)->next;
        for (uint32_t k = 0; k < lower_leaves(l->m, ir_at(l->m, id)->type); k++) {
            const struct carrier x = carrier_new(l, id, k);
            VEC_PUSH(l->mem, &c->carriers, x);
        }
    }
    f.n_results = c->carriers.n - f.first_result;
    f.first_arg = c->carriers.n;
    if (ir_at(l->m, node)->op == OP_LOOP)
        for (unsigned a = 0; a < ir_at(l->m, node)->n; a++)
            for (uint32_t k = 0; k < lower_leaves(l->m, ir_at(l->m, ir_arg(l->m, node, a))->type); k++) {
                const struct carrier x = carrier_new(l, ir_arg(l->m, node, a), k);
                VEC_PUSH(l->mem, &c->carriers, x);
            }
    f.n_args = c->carriers.n - f.first_arg;
    if (keeps_out(l, &f)) {
        f.out = e_slot(&l->e, E_I1, true);
        e_put(&l->e, f.out, e_false());
    }
    c->frame_of[node] = c->frames.n;
    VEC_PUSH(l->mem, &c->frames, f);
    return c->frames.n - 1;
}

static void nodes(struct lower *l, uint32_t first, uint32_t end, uint32_t after);

static void region(struct lower *l, uint32_t r, struct val mask, uint32_t after)
{
    l->mask = mask;
    nodes(l, ir_region_at(l->m, r)->first, 0, after);
}

/* Ends a construct: its results become values, l->mask is what arrived. */
static void pop(struct lower *l)
{
    struct emit *const e = &l->e;
    struct control *const c = l->control;
    const struct frame f = *top(l);
    uint32_t at = f.first_result, id = ir_at(l->m, f.node)->next;
    for (unsigned r = 0; r < ir_n_results(l->m, f.node); r++, id = ir_at(l->m, id)->next) {
        const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
        lower_out(l, id);
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, id, k, carrier_get(l, &c->carriers.at[at++]));
    }
    l->mask = c->apart[f.node] ? e_get(e, f.out) : f.entry;
    c->carriers.n = f.first_result;
    c->frames.n--;
}

/* Does it pay to write these nodes once more for a full mask? Takes it from the budget. */
static bool touches_memory(const struct ir_module *m, uint32_t first, uint32_t end, uint64_t *n)
{
    bool touches = false;
    for (uint32_t id = first; id && id != end; id = ir_at(m, id)->next) {
        const struct node *const x = ir_at(m, id);
        *n += 1;
        touches = touches || x->op == OP_LOAD || x->op == OP_STORE || op_info[x->op].effect == EFFECT_ATOMIC ||
                  op_info[x->op].effect == EFFECT_CONVERGENT;
        if (ir_is_construct(x->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                touches |= touches_memory(m, ir_region_at(m, ir_region(m, id, r))->first, 0, n);
    }
    return touches;
}

static bool write_twice(struct lower *l, uint32_t first, uint32_t end)
{
    uint64_t n = 0;
    if (!touches_memory(l->m, first, end, &n) || n > l->control->budget)
        return false;
    l->control->budget -= n;
    return true;
}

static void save_flags(struct lower *l, uint8_t *flags)
{
    for (uint32_t k = 0; k < l->control->frames.n; k++)
        flags[k] = (uint8_t)(l->control->frames.at[k].arrived | l->control->frames.at[k].repeated << 1);
}

static void load_flags(struct lower *l, const uint8_t *flags)
{
    for (uint32_t k = 0; k < l->control->frames.n; k++) {
        l->control->frames.at[k].arrived = flags[k] & 1;
        l->control->frames.at[k].repeated = flags[k] >> 1;
    }
}

/* Nodes under `mask`, a varying that was narrowed from a full one if `was_full`: a copy for all lanes on, then one for
 * some; none on goes to `after` at once. */
static void under_mask(struct lower *l, uint32_t first, uint32_t end, struct val mask, bool was_full, uint32_t after)
{
    struct emit *const e = &l->e;
    struct control *const c = l->control;
    uint8_t flags[2][IR_MAX_DEPTH + 8] = {{0}};
    const uint32_t some = e_block(e);
    const bool maybe_full = c->maybe_full;
    if ((was_full || maybe_full) && mask.shape == V_VARYING && write_twice(l, first, end)) {
        const uint32_t all = e_block(e), rest = e_block(e);
        const struct val bits = e_bits(e, mask);
        e_branch(e, e_cmp(e, "icmp eq", bits, e_bits(e, e_true())), all, rest, ODDS_EVEN);
        save_flags(l, flags[0]);
        e_place(e, all);
        l->mask = e_true();
        nodes(l, first, end, after);
        save_flags(l, flags[1]);
        load_flags(l, flags[0]);
        e_place(e, rest);
        e_branch(e, e_cmp(e, "icmp ne", bits, e_i32(0)), some, after, ODDS_EVEN);
        e_place(e, some);
        l->mask = mask;
        c->maybe_full = false;
        nodes(l, first, end, after);
        c->maybe_full = maybe_full;
        for (uint32_t k = 0; k < l->control->frames.n; k++) {
            l->control->frames.at[k].arrived |= flags[1][k] & 1;
            l->control->frames.at[k].repeated |= flags[1][k] >> 1;
        }
        return;
    }
    e_branch(e, e_any(e, mask), some, after, ODDS_EVEN);
    e_place(e, some);
    l->mask = mask;
    c->maybe_full = false;
    nodes(l, first, end, after);
    c->maybe_full = maybe_full;
}

/* A region with nothing but a few pure operations and its yield is computed for all lanes. */
#define FEW_NODES 12u
static bool is_plain(const struct ir_module *m, uint32_t r, unsigned *n)
{
    IR_EACH(m, r, id)
    {
        const struct node *const x = ir_at(m, id);
        if (x->op != OP_YIELD && (op_info[x->op].effect != EFFECT_PURE || op_info[x->op].math || x->op == OP_IPOW ||
                                  x->op == OP_EXTRACT_AT || x->op == OP_INSERT_AT))
            return false;
        if (++*n > FEW_NODES)
            return false;
    }
    return true;
}

static bool flatten(struct lower *l, uint32_t id, struct val c)
{
    unsigned n = 0;
    const uint32_t r[2] = {ir_region(l->m, id, 0), ir_region(l->m, id, 1)};
    if (!is_plain(l->m, r[0], &n) || !is_plain(l->m, r[1], &n))
        return false;
    uint32_t yield[2] = {0, 0};
    for (unsigned k = 0; k < 2; k++)
        IR_EACH(l->m, r[k], x)
        {
            if (ir_at(l->m, x)->op == OP_YIELD)
                yield[k] = x;
            else
                lower_node(l, x);
        }
    uint32_t result = ir_at(l->m, id)->next;
    for (unsigned k = 0; k < ir_n_results(l->m, id); k++, result = ir_at(l->m, result)->next) {
        const uint32_t leaves = lower_leaves(l->m, ir_at(l->m, result)->type);
        lower_out(l, result);
        for (uint32_t i = 0; i < leaves; i++) {
            const struct val a = lower_in(l, ir_in(l->m, yield[0])[k], i);
            const struct val b = lower_in(l, ir_in(l->m, yield[1])[k], i);
            lower_set(l, result, i, e_select(&l->e, c, a, b));
        }
    }
    return true;
}

static void write_if(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const struct val c = lower_in(l, ir_in(l->m, id)[0], 0), mask = l->mask;
    const bool varying = is_varying(l, id), full = mask.shape == V_CONST;
    if (varying && flatten(l, id, c))
        return;
    const uint32_t then = ir_region(l->m, id, 0), other = ir_region(l->m, id, 1);
    const uint32_t end = e_block(e), second = e_block(e), first = e_block(e);
    const uint32_t f = push(l, id, end);
    if (!varying) {
        e_branch(e, control_uniform(l, c), first, second, ODDS_EVEN);
        e_place(e, first);
        region(l, then, mask, end);
        e_place(e, second);
        region(l, other, mask, end);
    } else {
        const struct val cv = e_vary(e, c);
        const bool one = ir_region_at(l->m, other)->first == 0;
        if (one && keeps_out(l, top(l))) { /* lanes that skip the only region are at the end */
            l->mask = e_and(e, mask, e_not(e, cv));
            e_put(e, top(l)->out, e_or(e, e_get(e, top(l)->out), l->mask));
        }
        l->control->frames.at[f].next = one ? end : second;
        under_mask(l, ir_region_at(l->m, then)->first, 0, e_and(e, mask, cv), full, one ? end : second);
        if (!one) {
            e_place(e, second);
            l->control->frames.at[f].next = end;
            under_mask(l, ir_region_at(l->m, other)->first, 0, e_and(e, mask, e_not(e, cv)), full, end);
        } else {
            (void)first;
        }
    }
    e_place(e, end);
    pop(l);
}

static void write_block(struct lower *l, uint32_t id)
{
    const uint32_t end = e_block(&l->e);
    (void)push(l, id, end);
    region(l, ir_region(l->m, id, 0), l->mask, end);
    e_place(&l->e, end);
    pop(l);
}

/* i1: the operand is one of region r's cases. */
static struct val matches(struct lower *l, struct val x, uint32_t r)
{
    struct emit *const e = &l->e;
    const struct region q = *ir_region_at(l->m, r);
    struct val any = e_false();
    for (uint32_t k = 0; k < q.n_cases; k++) {
        const struct val value = e_const((enum elem)x.elem, (uint64_t)l->m->cases.at[q.first_case + k]);
        any = e_or(e, any, e_cmp(e, "icmp eq", x, value));
    }
    return any;
}

static void write_switch(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const bool varying = is_varying(l, id), full = l->mask.shape == V_CONST;
    struct val x = lower_in(l, ir_in(l->m, id)[0], 0);
    if (!varying)
        x = control_uniform(l, x);
    const struct val mask = l->mask;
    const unsigned n = ir_n_regions(l->m, id);
    const uint32_t end = e_block(e);
    const uint32_t f = push(l, id, end);
    struct val *const match = mem_zalloc(l->mem, n * sizeof *match + 1);
    struct val listed = e_false();
    unsigned fallback = n;
    for (unsigned k = 0; k < n; k++) {
        const uint32_t r = ir_region(l->m, id, k);
        if (ir_region_at(l->m, r)->is_default) {
            fallback = k;
            continue;
        }
        match[k] = matches(l, x, r);
        listed = e_or(e, listed, match[k]);
    }
    const struct val unlisted = e_not(e, listed);
    if (fallback < n) {
        match[fallback] = unlisted;
    } else if (keeps_out(l, top(l))) {
        l->mask = e_and(e, mask, unlisted);
        e_put(e, top(l)->out, e_or(e, e_get(e, top(l)->out), e_vary(e, l->mask)));
    }
    for (unsigned k = 0; k < n; k++) {
        const uint32_t r = ir_region(l->m, id, k), next = k + 1 < n ? e_block(e) : end;
        if (varying) {
            l->control->frames.at[f].next = next;
            under_mask(l, ir_region_at(l->m, r)->first, 0, e_and(e, mask, e_vary(e, match[k])), full, next);
        } else {
            const uint32_t here = e_block(e), miss = next == end ? end : next;
            e_branch(e, match[k], here, miss, ODDS_EVEN);
            e_place(e, here);
            region(l, r, mask, end);
        }
        if (next != end)
            e_place(e, next);
    }
    if (n == 0)
        e_jump(e, end);
    e_place(e, end);
    mem_free(l->mem, match, n * sizeof *match + 1);
    pop(l);
}

/* Lanes that have waited too long end. Gives what is left of the mask. */
static struct val write_wait(struct lower *l, uint32_t id, uint32_t state, struct val mask)
{
    struct emit *const e = &l->e;
    const struct val args[] = {e_named(E_PTR, false, state), e_i32(lower_site(l, ir_at(l->m, id)->place)),
                               l->first_thread, e_bits(e, mask)};
    const struct val gives_up = lower_help(l, HELPER_WAIT, E_I32, 4, args);
    return e_and(e, mask, e_vary(e, e_cmp(e, "icmp eq", gives_up, e_i32(0))));
}

static void write_loop(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    struct control *const c = l->control;
    const bool mixed = c->mixed[id], waits = c->waits[id];
    const uint32_t end = e_block(e), head = e_block(e), latch = mixed ? e_block(e) : head;
    const uint32_t f = push(l, id, mixed ? latch : end);
    c->frames.at[f].head = latch;
    struct slot live = {0}, again = {0};
    carry(l, id, 0, c->frames.at[f].first_arg, c->frames.at[f].n_args, false);
    uint32_t state = 0;
    if (mixed) {
        live = e_slot(e, E_I1, true);
        again = e_slot(e, E_I1, true);
        e_put(e, live, l->mask);
        c->frames.at[f].again = again;
    }
    if (waits) {
        state = e_room(e, 16);
        e_line(e, "store <2 x i64> zeroinitializer, ptr %%v%u", state);
        l->waiting++;
    }
    e_place(e, head);
    if (control_is_long(l, id))
        control_poll(l);
    uint32_t at = c->frames.at[f].first_arg;
    for (unsigned a = 0; a < ir_at(l->m, id)->n; a++) {
        const uint32_t arg = ir_arg(l->m, id, a), n = lower_leaves(l->m, ir_at(l->m, arg)->type);
        lower_out(l, arg);
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, arg, k, carrier_get(l, &c->carriers.at[at++]));
    }
    struct val mask = l->mask;
    if (mixed) {
        mask = e_get(e, live);
        e_put(e, again, e_false());
    }
    const bool maybe_full = c->maybe_full;
    c->maybe_full = mixed && l->mask.shape == V_CONST;
    region(l, ir_region(l->m, id, 0), mask, mixed ? latch : end);
    c->maybe_full = maybe_full;
    if (mixed) {
        e_place(e, latch);
        struct val left = e_get(e, again);
        if (waits) {
            const uint32_t ask = e_block(e), on = e_block(e);
            e_put(e, live, left);
            e_branch(e, e_any(e, left), ask, end, ODDS_EVEN);
            e_place(e, ask);
            left = write_wait(l, id, state, left);
            e_jump(e, on);
            e_place(e, on);
        }
        e_put(e, live, left);
        e_branch(e, e_any(e, left), head, end, ODDS_LIKELY);
    }
    if (waits)
        l->waiting--;
    e_place(e, end);
    pop(l);
}

static void write_construct(struct lower *l, uint32_t id)
{
    switch ((unsigned)ir_at(l->m, id)->op) {
    case OP_IF: write_if(l, id); break;
    case OP_BLOCK: write_block(l, id); break;
    case OP_LOOP: write_loop(l, id); break;
    case OP_SWITCH: write_switch(l, id); break;
    }
}

/* ---- asserts, barriers ------------------------------------------------------------------------------------------ */

static void write_assert(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    const struct val c = e_vary(e, lower_in(l, ir_in(l->m, id)[0], 0));
    const struct val wrong = e_and(e, l->mask, e_not(e, c));
    const uint32_t bad = e_block(e), on = e_block(e);
    e_branch(e, e_any(e, wrong), bad, on, ODDS_UNLIKELY);
    e_place(e, bad);
    const char *const text = strtab_str(&l->m->strings, (uint32_t)ir_at(l->m, id)->imm);
    VEC_PUSH(l->mem, &l->out->message, text);
    const struct val args[] = {e_i32(lower_site(l, ir_at(l->m, id)->place)), e_i32(l->out->message.n - 1),
                               l->first_thread, e_bits(e, wrong)};
    (void)lower_help(l, HELPER_ASSERT, E_COUNT, 4, args);
    e_jump(e, on);
    e_place(e, on);
}

void control_fence(struct lower *l, uint32_t barrier)
{
    if (node_memory(ir_at(l->m, barrier)->flags) & MEMORY_DEVICE)
        e_line(&l->e, "fence acq_rel");
}

/* Inside a run: on a fiber it waits; a threadgroup of one bundle has nobody to wait for. */
static void write_barrier(struct lower *l, uint32_t id)
{
    struct emit *const e = &l->e;
    control_fence(l, id);
    if (!l->out->fibers)
        return;
    const struct val args[] = {e_i32(lower_site(l, ir_at(l->m, id)->place)), e_i32(id), l->first_thread,
                               e_bits(e, l->mask)};
    const struct val stop = lower_help(l, HELPER_BARRIER, E_I32, 4, args);
    const uint32_t leave = e_block(e), on = e_block(e);
    e_branch(e, e_cmp(e, "icmp ne", stop, e_i32(0)), leave, on, ODDS_UNLIKELY);
    e_place(e, leave);
    e_return(e, "ret i32 1");
    e_place(e, on);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static void defined(struct lower *l, uint32_t id)
{
    if (l->control->defined && l->control->frames.n == 1 && ir_at(l->m, id)->type != TYPE_VOID)
        l->control->defined(l, id);
}

static void nodes(struct lower *l, uint32_t first, uint32_t end, uint32_t after)
{
    struct emit *const e = &l->e;
    for (uint32_t id = first; id && id != end; id = ir_at(l->m, id)->next) {
        const struct node *const x = ir_at(l->m, id);
        if (l->control->skip && l->control->skip[id])
            continue;
        if (op_info[x->op].effect == EFFECT_EXIT) {
            exit_node(l, id, after);
            return;
        }
        if (ir_is_construct(x->op)) {
            const bool was_full = l->mask.shape == V_CONST;
            write_construct(l, id);
            uint32_t next = ir_at(l->m, id)->next;
            for (unsigned r = ir_n_results(l->m, id); r > 0; r--, next = ir_at(l->m, next)->next)
                defined(l, next);
            if (l->control->apart[id] && next && next != end) {
                under_mask(l, next, end, l->mask, was_full, after);
                return;
            }
        } else if (x->op == OP_ASSERT) {
            write_assert(l, id);
        } else if (x->op == OP_BARRIER) {
            write_barrier(l, id);
        } else if (x->op != OP_RESULT && x->op != OP_ARG) {
            lower_node(l, id);
            defined(l, id);
        }
    }
    if (l->control->frames.n == 1 && l->control->finish)
        l->control->finish(l);
    arrive(l, l->control->frames.n - 1, 0);
    e_jump(e, after);
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

void control_run(struct lower *l, uint32_t first, uint32_t end, uint32_t after)
{
    struct control *const c = l->control;
    struct emit *const e = &l->e;
    struct frame root = {.next = after, .entry = l->mask};
    c->frames.n = 0;
    c->carriers.n = 0;
    if (keeps_out(l, &root)) {
        root.out = e_slot(e, E_I1, true);
        e_put(e, root.out, e_false());
    }
    VEC_PUSH(l->mem, &c->frames, root);
    if (l->mask.shape == V_CONST)
        nodes(l, first, end, after);
    else
        under_mask(l, first, end, l->mask, true, after);
}

struct val control_mask_after(struct lower *l)
{
    const struct frame f = l->control->frames.at[0];
    return keeps_out(l, &f) ? e_get(&l->e, f.out) : f.entry;
}
