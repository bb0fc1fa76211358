/* gen_flow.c - constructs and exits.
 *
 * `uniform` says whether all live threads of the threadgroup stand here together, so that a barrier may. It is lost in a
 * construct whose condition differs, and behind a construct that some lanes left for one further out, up to the end of that one.
 * Loops with barriers are taken `together`: nobody leaves them alone.
 */
#include "fuzz/gen_internal.h"

/* ---- exits ----------------------------------------------------------------------------------------------------- */

static bool may_exit_to(const struct gen *g, unsigned at)
{
    const struct label *const l = &g->label[at];
    if (l->loop && !l->next)
        return false;
    if (g->uniform)
        return true;
    for (unsigned k = at; k < g->n_labels; k++)
        if (g->label[k].guard || (k > at && g->label[k].together))
            return false;
    return true;
}

static void exit_to(struct gen *g, unsigned at)
{
    const struct label *const l = &g->label[at];
    uint32_t in[5];
    unsigned n = 0;
    if (l->loop)
        in[n++] = l->next;
    for (unsigned k = 0; k < l->n; k++)
        in[n++] = gen_value(g, l->type[k]);
    ir_br(&g->b, l->node, n, in);
    if (!g->uniform)
        for (unsigned k = at + 1; k < g->n_labels; k++)
            g->label[k].escaped = true;
}

static void yield(struct gen *g, unsigned n, const ir_type *type)
{
    uint32_t in[4];
    for (unsigned k = 0; k < n; k++)
        in[k] = gen_value(g, type[k]);
    if (n || chance(g, 3))
        ir_node(&g->b, OP_YIELD, TYPE_VOID, n, in, 0, 0);
}

static void leave_function(struct gen *g)
{
    if (g->result) {
        const uint32_t x = gen_value(g, g->result);
        ir_node(&g->b, OP_RETURN, TYPE_VOID, 1, &x, 0, 0);
    } else {
        ir_node(&g->b, g->kernel && chance(g, 10) ? OP_UNREACHABLE : OP_RETURN, TYPE_VOID, 0, NULL, 0, 0);
    }
}

/* The last of a function whose end is not reached. */
static void return_on_both_sides(struct gen *g)
{
    const uint32_t c = gen_condition(g, false), outer = g->b.region;
    const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t seen = g->values.n;
        g->b.region = ir_region(g->m, node, k);
        leave_function(g);
        g->values.n = seen;
    }
    g->b.region = outer;
}

static void end_construct(struct gen *g)
{
    const struct label *const l = &g->label[g->n_labels - 1];
    const uint32_t r = roll(g, 100);
    if (r < 14) {
        const unsigned at = roll(g, g->n_labels);
        if (may_exit_to(g, at)) {
            exit_to(g, at);
            return;
        }
    } else if (r < 17) {
        leave_function(g);
        return;
    }
    yield(g, l->n, l->type);
}

static void repeat(struct gen *g)
{
    unsigned at = g->n_labels - 1;
    while (!g->label[at].loop)
        at--;
    exit_to(g, at);
}

void gen_region(struct gen *g, uint32_t region, enum ending end)
{
    const uint32_t outer = g->b.region, n_values = g->values.n, n_vars = g->vars.n, n_memories = g->memories.n;
    const uint32_t n_known = g->known.n;
    const bool uniform = g->uniform;
    g->b.region = region;
    gen_statements(g, end == END_FUNCTION || end == END_KERNEL ? g->budget : 1 + roll(g, 6));
    switch (end) {
    case END_CONSTRUCT: end_construct(g); break;
    case END_REPEAT: repeat(g); break;
    case END_FUNCTION:
        if (chance(g, 20))
            return_on_both_sides(g);
        else
            leave_function(g);
        break;
    case END_KERNEL:
        for (unsigned k = 0; k < 4; k++)
            gen_store(g);
        break;
    }
    g->b.region = outer;
    g->values.n = n_values;
    g->vars.n = n_vars;
    g->memories.n = n_memories;
    g->known.n = n_known;
    g->uniform = uniform;
}

/* ---- constructs ------------------------------------------------------------------------------------------------ */

static struct label *open_label(struct gen *g, uint32_t node, bool results)
{
    struct label *const l = &g->label[g->n_labels++];
    *l = (struct label){.node = node};
    if (results && chance(g, 45)) {
        l->n = 1 + roll(g, 3);
        for (unsigned k = 0; k < l->n; k++)
            l->type[k] = gen_type(g);
    }
    return l;
}

/* `uniform`: what held before the construct. */
static void close_label(struct gen *g, bool uniform)
{
    g->n_labels--;
    g->uniform = uniform && !g->label[g->n_labels].escaped;
}

static void results(struct gen *g, uint32_t node, unsigned n, const ir_type *type)
{
    for (unsigned k = 0; k < n; k++) {
        const uint32_t id = ir_result(g->m, node, type[k]);
        if (chance(g, 10))
            ir_at(g->m, id)->name = ir_string(g->m, "r");
        gen_push(g, id, false);
    }
    for (unsigned k = 0; k < n; k++)
        if (chance(g, 40))
            gen_sink(g, g->values.at[g->values.n - 1]);
}

static void block(struct gen *g)
{
    const bool uniform = g->uniform;
    const uint32_t node = ir_construct(&g->b, OP_BLOCK, 0, NULL, 1);
    open_label(g, node, true);
    gen_region(g, ir_region(g->m, node, 0), END_CONSTRUCT);
    close_label(g, uniform);
    const struct label l = g->label[g->n_labels];
    results(g, node, l.n, l.type);
}

static void branch(struct gen *g)
{
    const bool uniform = g->uniform, same = uniform && chance(g, 50);
    const uint32_t n_known = g->known.n;
    uint32_t c = 0;
    if (!same && chance(g, 25)) { /* what the region then knows */
        const ir_type t = (ir_type[]){TYPE_U32, TYPE_U64, S_U16}[roll(g, 3)];
        const struct below b = {g->lane && t == TYPE_U32 && chance(g, 30) ? g->lane : gen_value(g, t), 1 + roll(g, 40)};
        c = gen_op2(g, OP_LT, TYPE_BOOL, b.node, ir_const(g->m, t, b.limit));
        VEC_PUSH(g->mem, &g->known, b);
    } else {
        c = gen_condition(g, same);
    }
    const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
    const bool with_else = open_label(g, node, true)->n > 0 || chance(g, 50);
    g->uniform = uniform && gen_same(g, c);
    gen_region(g, ir_region(g->m, node, 0), END_CONSTRUCT);
    g->known.n = n_known;
    if (with_else)
        gen_region(g, ir_region(g->m, node, 1), END_CONSTRUCT);
    close_label(g, uniform);
    const struct label l = g->label[g->n_labels];
    results(g, node, l.n, l.type);
}

static void choice(struct gen *g)
{
    const bool uniform = g->uniform;
    const ir_type t = gen_scalar_type(g, CLASS_SU);
    uint32_t x = gen_value(g, t);
    if (chance(g, 70))
        x = gen_node(g, OP_AND, t, 2, (const uint32_t[]){x, ir_const(g->m, t, 3)}, 0, 0);
    unsigned n = roll(g, 4);
    const uint32_t node = ir_construct(&g->b, OP_SWITCH, 1, &x, 0);
    const bool with_default = open_label(g, node, true)->n > 0 || chance(g, 50);
    const unsigned first = n ? roll(g, n + 1) : 0; /* where the default stands */
    n += with_default;
    int64_t value = scalar_info[t].class_ == CLASS_S && chance(g, 20) ? -2 : 0;
    for (unsigned k = 0; k < n; k++) {
        const uint32_t region = ir_add_region(g->m, node);
        if (with_default && k == first) {
            ir_region_at(g->m, region)->is_default = true;
            continue;
        }
        for (unsigned i = 1 + roll(g, 2); i > 0; i--)
            ir_case(g->m, region, value++);
    }
    g->uniform = uniform && gen_same(g, x);
    for (unsigned k = 0; k < n; k++)
        gen_region(g, ir_region(g->m, node, k), END_CONSTRUCT);
    close_label(g, uniform);
    const struct label l = g->label[g->n_labels];
    results(g, node, l.n, l.type);
}

struct count { /* a loop's counter: its node, and the value that it does not reach */
    uint32_t loop, counter, limit;
    ir_type type;
    bool negative; /* it begins below 0 */
};

/* A loop with its counter and up to three more parameters; its label is open, the builder in its region. */
static struct count open_loop(struct gen *g, bool together)
{
    struct count c = {.type = gen_scalar_type(g, CLASS_SU)};
    struct label l = {.loop = true, .together = together, .n = roll(g, 4)};
    const bool negative = scalar_info[c.type].class_ == CLASS_S && chance(g, 20);
    uint32_t in[5] = {ir_const(g->m, c.type, negative ? (uint64_t)-2 : 0)};
    for (unsigned k = 0; k < l.n; k++) {
        l.type[k] = gen_type(g);
        in[1 + k] = gen_value(g, l.type[k]);
    }
    c.negative = negative;
    c.limit = ir_const(g->m, c.type, roll(g, g->n_labels < 2 && chance(g, 20) ? 40 : 5));
    if (chance(g, 30)) {
        const uint32_t x = gen_value(g, c.type);
        if (!together || gen_same(g, x))
            c.limit = gen_node(g, OP_AND, c.type, 2, (const uint32_t[]){x, ir_const(g->m, c.type, 3)}, 0, 0);
    }
    c.loop = l.node = ir_construct(&g->b, OP_LOOP, 1 + l.n, in, 1);
    g->label[g->n_labels++] = l;
    g->b.region = ir_region(g->m, c.loop, 0);
    c.counter = ir_arg(g->m, c.loop, 0);
    for (unsigned k = 0; k <= l.n; k++)
        gen_push(g, ir_arg(g->m, c.loop, k), k == 0 && together);
    return c;
}

/* The counter plus 1; or plus a step that is cut to end at the limit, the distance taken in the unsigned type. */
static uint32_t next_count(struct gen *g, const struct count *c)
{
    uint32_t by = ir_const(g->m, c->type, 1);
    if (chance(g, 25)) {
        const ir_type u = scalar_info[c->type].class_ == CLASS_S ? c->type + 1u : c->type;
        const uint32_t from = ir_convert(&g->b, u, c->counter), to = ir_convert(&g->b, u, c->limit);
        const uint32_t distance = gen_node(g, OP_SUB, u, 2, (const uint32_t[]){to, from}, 0, 0);
        const uint32_t step = ir_const(g->m, u, (const uint64_t[]){1, 2, 3, UINT64_MAX}[roll(g, 4)]);
        by = ir_convert(&g->b, c->type, gen_node(g, OP_MIN, u, 2, (const uint32_t[]){step, distance}, 0, 0));
    }
    return gen_node(g, OP_ADD, c->type, 2, (const uint32_t[]){c->counter, by}, 0, 0);
}

/* `x` is below the limit, and perhaps something more. */
static uint32_t goes_on(struct gen *g, const struct count *c, uint32_t x, bool together)
{
    const uint32_t below = gen_node(g, OP_LT, TYPE_BOOL, 2, (const uint32_t[]){x, c->limit}, 0, 0);
    if (chance(g, 70))
        return below;
    return gen_node(g, OP_AND, TYPE_BOOL, 2, (const uint32_t[]){below, gen_condition(g, together)}, 0, 0);
}

/* if (condition) { ...; repeat } within the loop of label `loop`. */
static void repeat_if(struct gen *g, unsigned loop, uint32_t condition, uint32_t next, const struct count *c)
{
    const bool uniform = g->uniform;
    const uint32_t node = ir_construct(&g->b, OP_IF, 1, &condition, 2);
    const uint32_t outer = g->b.region, n_values = g->values.n;
    open_label(g, node, false)->guard = g->label[loop].together;
    g->b.region = ir_region(g->m, node, 0);
    const uint32_t n_known = g->known.n;
    if (!next && ir_at(g->m, c->limit)->op == OP_CONST && !c->negative && ir_at(g->m, c->limit)->imm > 0)
        VEC_PUSH(g->mem, &g->known, ((struct below){c->counter, ir_at(g->m, c->limit)->imm}));
    g->label[loop].next = next ? next : next_count(g, c);
    gen_region(g, ir_region(g->m, node, 0), END_REPEAT);
    g->label[loop].next = 0;
    g->b.region = outer;
    g->values.n = n_values;
    g->known.n = n_known;
    if (chance(g, 15))
        gen_region(g, ir_region(g->m, node, 1), END_CONSTRUCT);
    close_label(g, uniform);
}

static void loop(struct gen *g)
{
    const uint32_t outer = g->b.region, n_values = g->values.n, n_vars = g->vars.n, n_memories = g->memories.n;
    const bool uniform = g->uniform, together = uniform && chance(g, 60);
    const unsigned shape = roll(g, 3);
    uint32_t node = 0;
    struct label with = {0}; /* what has the results */

    if (shape == 2) { /* block { loop { if (done) leave the block; ...; repeat } } */
        node = ir_construct(&g->b, OP_BLOCK, 0, NULL, 1);
        open_label(g, node, true);
        g->b.region = ir_region(g->m, node, 0);
    }
    const unsigned at = g->n_labels;
    const struct count c = open_loop(g, together);
    g->uniform = together;
    if (shape == 0) { /* while */
        gen_statements(g, roll(g, 3));
        if (g->uniform == together)
            repeat_if(g, at, goes_on(g, &c, c.counter, together), 0, &c);
    } else if (shape == 1) { /* do while */
        const uint32_t next = next_count(g, &c);
        gen_statements(g, 1 + roll(g, 5));
        if (g->uniform == together)
            repeat_if(g, at, goes_on(g, &c, next, together), next, &c);
    } else {
        const uint32_t next = next_count(g, &c);
        const uint32_t done = gen_node(g, OP_GE, TYPE_BOOL, 2, (const uint32_t[]){c.counter, c.limit}, 0, 0);
        const uint32_t leave = ir_construct(&g->b, OP_IF, 1, &done, 2);
        const uint32_t body = g->b.region;
        const bool before = g->uniform;
        open_label(g, leave, false);
        g->b.region = ir_region(g->m, leave, 0);
        const uint32_t seen = g->values.n;
        exit_to(g, at - 1);
        g->values.n = seen;
        g->b.region = body;
        close_label(g, before);
        g->label[at].next = next;
        g->uniform = together;
        gen_region(g, body, END_REPEAT);
    }
    if (shape != 2) {
        with.n = roll(g, 3);
        for (unsigned k = 0; k < with.n; k++)
            with.type[k] = gen_type(g);
        yield(g, with.n, with.type);
        node = c.loop;
    }
    g->values.n = n_values;
    g->vars.n = n_vars;
    g->memories.n = n_memories;
    close_label(g, uniform);
    if (shape == 2) {
        g->b.region = ir_region(g->m, node, 0);
        yield(g, g->label[at - 1].n, g->label[at - 1].type); /* never reached */
        g->values.n = n_values;
        close_label(g, uniform);
        with = g->label[g->n_labels];
    }
    g->b.region = outer;
    results(g, node, with.n, with.type);
}

void gen_statements(struct gen *g, unsigned n)
{
    for (; n > 0 && g->budget > 0; n--) {
        g->budget--;
        g->b.place = chance(g, 10) ? 0 : ir_place(g->m, g->file, ++g->line, roll(g, 3), 0);
        if (g->n_labels >= 7 || !chance(g, 20)) {
            gen_statement(g);
            continue;
        }
        unsigned loops = 0;
        for (unsigned k = 0; k < g->n_labels; k++)
            loops += g->label[k].loop;
        const uint32_t r = roll(g, 10);
        if (r < 3 && loops < 3)
            loop(g);
        else if (r < 5)
            block(g);
        else if (r < 6)
            choice(g);
        else
            branch(g);
    }
}
