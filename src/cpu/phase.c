/* phase.c - the function around the bundles of a threadgroup.
 *
 * Without barriers a threadgroup is one phase: a loop over its bundles, each run from beginning to end. With barriers whose
 * control is the same for the whole threadgroup, constructs that hold them are written once around the bundles, and what
 * lies between barriers are phases. Values that the threadgroup shares are computed once, between the phases. Others that
 * live from one phase to another are kept for each bundle in its private memory, or computed again where that is cheap.
 * Other barriers take fibers: then the function runs one bundle, and a barrier is a call.
 */
#include "cpu/control.h"

enum { NO_PHASE, OUTSIDE }; /* then the phases from 2 on */

struct need {
    uint32_t phase, node;
};

struct group_frame { /* a construct around phases */
    uint32_t node, end, head;
};

struct phases {
    struct control *control;
    uint8_t *around;           /* by node: a construct around phases */
    uint8_t *shared;           /* by node: a value of the whole threadgroup, computed between the phases */
    uint8_t *kept;             /* by node: lives from phase to phase in private memory */
    uint32_t *phase;           /* by node */
    uint32_t *stamp;           /* by node: the last phase that is known to need it */
    uint64_t *offset;          /* by node: where it is kept */
    uint32_t *alias;           /* by node: the loop parameter that it becomes, in whose place it is kept; 0: its own */
    uint8_t *returns;          /* [0]: a thread may end inside of a phase */
    VEC(struct need) needs;    /* in the order of phases */
    uint32_t current, written; /* phases: being planned; being written */
    bool pending, fails, loads;
    uint64_t alive; /* offset of the mask of threads that have not ended */
    /* writing */
    uint32_t run_first, run_end; /* nodes of the phase to be written; 0: none */
    VEC(uint32_t) moves;         /* exits whose values that phase puts where they are kept */
    VEC(struct group_frame) frames;
    struct slot x;
    uint32_t next_group;
    VEC(struct carrier) carriers; /* of shared loop parameters and results, by carrier_of */
    uint32_t *carrier_of;
};

static struct phases *of(struct lower *l)
{
    return l->phases;
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

static bool holds_barrier(const struct ir_module *m, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        if (ir_at(m, id)->op == OP_BARRIER)
            return true;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                if (holds_barrier(m, ir_region(m, id, r)))
                    return true;
    }
    return false;
}

/* Does a region leave or repeat a construct around phases? */
static bool exits_around(const struct ir_module *m, const struct phases *p, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        if (ir_at(m, id)->op == OP_BR && p->around[ir_at(m, id)->imm])
            return true;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                if (exits_around(m, p, ir_region(m, id, r)))
                    return true;
    }
    return false;
}

static void mark_around(const struct ir_module *m, struct phases *p, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        if (!ir_is_construct(ir_at(m, id)->op))
            continue;
        bool around = false;
        for (unsigned r = 0; r < ir_n_regions(m, id); r++)
            around = around || holds_barrier(m, ir_region(m, id, r)) || exits_around(m, p, ir_region(m, id, r));
        p->around[id] = around;
        if (around)
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                mark_around(m, p, ir_region(m, id, r));
    }
}

static bool is_address(uint16_t op)
{
    return op == OP_INDEX || op == OP_FIELD || op == OP_ALLOC;
}

static unsigned components(const struct ir_module *m, ir_type t)
{
    const unsigned n = ir_type_width(t);
    (void)m;
    return n ? n : 1;
}

static uint8_t level(const struct lower *l, uint32_t id)
{
    uint8_t most = UNIFORM_G;
    const unsigned n = components(l->m, ir_at(l->m, id)->type);
    for (unsigned k = 0; k < n; k++) {
        const uint8_t u = analysis_lane(&l->a, id, k).uniform;
        most = u > most ? u : most;
    }
    return most;
}

/* Is an operand at hand between the phases? */
static bool is_shared(const struct lower *l, const struct phases *p, uint32_t id)
{
    const struct node *const x = ir_at(l->m, id);
    if (x->op == OP_CONST || x->op == OP_ZERO)
        return true;
    if (x->op == OP_PARAM)
        return ir_type_is_pointer(x->type) || level(l, id) <= UNIFORM_T;
    if (is_address(x->op)) {
        for (unsigned k = 0; k < x->n; k++)
            if (!is_shared(l, p, ir_in(l->m, id)[k]))
                return false;
        return x->op != OP_ALLOC || ir_type_space(x->type) == SPACE_THREADGROUP;
    }
    return p->shared[id];
}

static bool all_shared(const struct lower *l, const struct phases *p, uint32_t id)
{
    for (unsigned k = 0; k < ir_at(l->m, id)->n; k++)
        if (!is_shared(l, p, ir_in(l->m, id)[k]))
            return false;
    return true;
}

/* Cheap enough to compute again in each phase, and then known as uniform or linear there. */
static bool is_cheap(const struct lower *l, uint32_t id)
{
    const struct node *const x = ir_at(l->m, id);
    if (op_info[x->op].effect != EFFECT_PURE || op_info[x->op].math || x->op == OP_ARG || x->op == OP_RESULT ||
        x->op == OP_IPOW || !ir_type_width(x->type) || ir_type_is_pointer(x->type))
        return false;
    const unsigned n = components(l->m, x->type);
    for (unsigned k = 0; k < n; k++) {
        const struct lane_info i = analysis_lane(&l->a, id, k);
        if (i.uniform > UNIFORM_S && !i.linear)
            return false;
    }
    for (unsigned k = 0; k < x->n; k++)
        if (ir_at(l->m, ir_in(l->m, id)[k])->op == OP_LOAD)
            return false;
    return true;
}

/* The phase `at` uses the value. */
static void use(struct lower *l, struct phases *p, uint32_t id, uint32_t at)
{
    const struct node *const x = ir_at(l->m, id);
    if (x->op == OP_CONST || x->op == OP_ZERO || x->op == OP_PARAM || x->op == OP_ALLOC || p->shared[id])
        return;
    if (is_address(x->op)) {
        for (unsigned k = 0; k < x->n; k++)
            use(l, p, ir_in(l->m, id)[k], at);
        return;
    }
    if (p->phase[id] == at || p->stamp[id] == at)
        return;
    p->stamp[id] = at;
    if (is_cheap(l, id))
        for (unsigned k = 0; k < x->n; k++)
            use(l, p, ir_in(l->m, id)[k], at);
    else
        p->kept[id] = 1;
    VEC_PUSH(l->mem, &p->needs, ((struct need){at, id}));
}

static void plan_inner(struct lower *l, struct phases *p, uint32_t id)
{
    const struct node *const x = ir_at(l->m, id);
    p->phase[id] = p->current;
    if (!is_address(x->op) && x->op != OP_RESULT)
        for (unsigned k = 0; k < x->n; k++)
            use(l, p, ir_in(l->m, id)[k], p->current);
    if (x->op == OP_RETURN || x->op == OP_UNREACHABLE)
        p->returns[0] = 1;
    if (p->control->waits[id]) /* threads that give up end */
        p->returns[0] = 1;
    if (ir_is_construct(x->op))
        for (unsigned r = 0; r < ir_n_regions(l->m, id); r++)
            IR_EACH(l->m, ir_region(l->m, id, r), y)
    plan_inner(l, p, y);
}

static void close_phase(struct phases *p)
{
    p->current += p->pending;
    p->pending = false;
}

/* The variable of an exit's operand k: a loop's parameter or a result of a construct. */
static uint32_t variable(const struct ir_module *m, uint32_t exit, uint32_t owner, unsigned k)
{
    const struct node *const x = ir_at(m, exit);
    if (x->op == OP_LOOP)
        return ir_arg(m, exit, k);
    const uint32_t target = x->op == OP_BR ? (uint32_t)x->imm : owner;
    if (x->op == OP_BR && ir_at(m, target)->op == OP_LOOP)
        return ir_arg(m, target, k);
    uint32_t id = ir_at(m, target)->next;
    for (unsigned i = 0; i < k; i++)
        id = ir_at(m, id)->next;
    return id;
}

static uint32_t owner_of(const struct ir_module *m, uint32_t id)
{
    return ir_region_at(m, ir_at(m, id)->region)->owner;
}

static bool is_vector(const struct lower *l, uint32_t id)
{
    const unsigned n = components(l->m, ir_at(l->m, id)->type);
    for (unsigned k = 0; k < n; k++) {
        const struct lane_info i = analysis_lane(&l->a, id, k);
        if (i.uniform <= UNIFORM_S || i.linear)
            return false;
    }
    return true;
}

/* May the value that repeats a loop be kept in the place of the parameter it becomes, from its definition on? Not if a phase
 * between there and the exit still reads the parameter. */
static bool takes_place(const struct lower *l, const struct phases *p, uint32_t exit, uint32_t from, uint32_t to)
{
    if (ir_at(l->m, exit)->op != OP_BR || ir_at(l->m, to)->op != OP_ARG || p->phase[from] <= OUTSIDE ||
        p->alias[from] || ir_at(l->m, from)->region != ir_at(l->m, exit)->region || !is_vector(l, from) ||
        !is_vector(l, to))
        return false;
    for (uint32_t k = p->needs.n; k > 0 && p->needs.at[k - 1].phase > p->phase[from]; k--)
        if (p->needs.at[k - 1].node == to)
            return false;
    return true;
}

/* Values that an exit, or a loop's head, carries: those of each bundle are put by the phase before it. */
static void plan_moves(struct lower *l, struct phases *p, uint32_t exit)
{
    const struct node *const x = ir_at(l->m, exit);
    bool own = false;
    for (unsigned k = 0; k < x->n; k++) { /* what the others read is known first */
        const uint32_t to = variable(l->m, exit, owner_of(l->m, exit), k), from = ir_in(l->m, exit)[k];
        if (!p->shared[to] && p->phase[from] != p->current && ir_at(l->m, from)->op == OP_ARG)
            use(l, p, from, p->current);
    }
    for (unsigned k = 0; k < x->n; k++) {
        const uint32_t to = variable(l->m, exit, owner_of(l->m, exit), k);
        const uint32_t from = ir_in(l->m, exit)[k];
        if (!p->shared[to]) {
            p->kept[to] = 1;
            if (takes_place(l, p, exit, from, to)) {
                p->alias[from] = to;
                p->kept[from] = 1;
                continue;
            }
            own = true;
            use(l, p, from, p->current);
        } else if (!is_shared(l, p, from)) {
            p->fails = true;
        }
    }
    p->pending = p->pending || own;
    close_phase(p);
}

static void plan_region(struct lower *l, struct phases *p, uint32_t region);

static void plan_around(struct lower *l, struct phases *p, uint32_t id)
{
    const struct node *const x = ir_at(l->m, id);
    p->phase[id] = OUTSIDE;
    if (x->op == OP_LOOP) {
        for (unsigned k = 0; k < x->n; k++) {
            const uint32_t arg = ir_arg(l->m, id, k);
            p->shared[arg] = level(l, arg) <= UNIFORM_T && is_shared(l, p, ir_in(l->m, id)[k]);
            p->phase[arg] = OUTSIDE;
        }
        plan_moves(l, p, id);
        p->fails = p->fails || p->control->waits[id];
    } else {
        close_phase(p);
        if (x->n && !is_shared(l, p, ir_in(l->m, id)[0]))
            p->fails = true;
    }
    uint32_t result = x->next;
    for (unsigned r = ir_n_results(l->m, id); r > 0; r--, result = ir_at(l->m, result)->next) {
        p->phase[result] = OUTSIDE;
        p->shared[result] = level(l, result) <= UNIFORM_T;
    }
    /* In the order in which they are written, by which phases are counted: a switch's default last. */
    uint32_t fallback = 0;
    for (unsigned r = 0; r < ir_n_regions(l->m, id); r++) {
        const uint32_t region = ir_region(l->m, id, r);
        if (ir_region_at(l->m, region)->is_default)
            fallback = region;
        else
            plan_region(l, p, region);
    }
    if (fallback)
        plan_region(l, p, fallback);
}

static void plan_region(struct lower *l, struct phases *p, uint32_t region)
{
    IR_EACH(l->m, region, id)
    {
        const struct node *const x = ir_at(l->m, id);
        if (x->op == OP_RESULT || x->op == OP_ARG) {
            if (!p->phase[id])
                p->phase[id] = p->current;
            continue;
        }
        if (x->op == OP_BARRIER) {
            close_phase(p);
        } else if (op_info[x->op].effect == EFFECT_EXIT) {
            plan_moves(l, p, id);
        } else if (ir_is_construct(x->op) && p->around[id]) {
            plan_around(l, p, id);
        } else if (op_info[x->op].effect == EFFECT_PURE && !is_address(x->op) && !ir_type_is_pointer(x->type) &&
                   level(l, id) <= UNIFORM_T && all_shared(l, p, id)) {
            p->shared[id] = 1;
            p->phase[id] = OUTSIDE;
        } else if (p->loads && x->op == OP_LOAD && level(l, id) <= UNIFORM_T && all_shared(l, p, id)) {
            close_phase(p);
            p->shared[id] = 1;
            p->phase[id] = OUTSIDE;
        } else {
            p->pending = true;
            plan_inner(l, p, id);
        }
    }
    close_phase(p);
}

static uint64_t keep(struct lower *l, uint64_t bytes)
{
    const uint64_t at = (l->out->private_bytes + 63) & ~(uint64_t)63;
    l->out->private_bytes = at + bytes;
    return at;
}

static struct phases *plan(struct lower *l, bool loads)
{
    const uint32_t n = l->m->nodes.n;
    struct phases *const p = mem_zalloc(l->mem, sizeof *p);
    p->control = l->control;
    p->around = mem_zalloc(l->mem, n);
    p->shared = mem_zalloc(l->mem, n);
    p->kept = mem_zalloc(l->mem, n);
    p->returns = mem_zalloc(l->mem, 1);
    p->phase = mem_zalloc(l->mem, n * sizeof *p->phase);
    p->stamp = mem_zalloc(l->mem, n * sizeof *p->stamp);
    p->offset = mem_zalloc(l->mem, n * sizeof *p->offset);
    p->alias = mem_zalloc(l->mem, n * sizeof *p->alias);
    p->carrier_of = mem_zalloc(l->mem, n * sizeof *p->carrier_of);
    p->loads = loads;
    p->current = OUTSIDE + 1;
    VEC_PUSH(l->mem, &p->carriers, ((struct carrier){0}));
    mark_around(l->m, p, l->kernel->region);
    plan_region(l, p, l->kernel->region);
    for (uint32_t id = 0; id < n; id++)
        if (p->kept[id] && !p->alias[id])
            p->offset[id] = keep(l, (uint64_t)lower_leaves(l->m, ir_at(l->m, id)->type) * 8 * l->e.width);
    for (uint32_t id = 0; id < n; id++)
        if (p->alias[id])
            p->offset[id] = p->offset[p->alias[id]];
    if (p->returns[0])
        p->alive = keep(l, 64);
    return p;
}

/* ---- values from phase to phase --------------------------------------------------------------------------------- */

/* In private memory every leaf has 8 bytes a lane; bool is kept as bits, uniforms and bases as one scalar. */
static struct val kept_at(struct lower *l, uint64_t offset, uint32_t k)
{
    return e_gep(&l->e, l->private_, e_i64(offset + (uint64_t)k * 8 * l->e.width));
}

static void keep_value(struct lower *l, uint32_t node, uint32_t k, struct val x)
{
    struct emit *const e = &l->e;
    const struct lane_info info = analysis_lane(&l->a, node, k);
    const struct val at = kept_at(l, of(l)->offset[node], k);
    const enum elem t = (enum elem)x.elem;
    char type[24];
    struct buf b;
    if (info.uniform <= UNIFORM_S)
        x = control_uniform(l, x);
    else if (info.linear && t <= E_I64 && t != E_I1)
        x = x.shape == V_VARYING ? e_lane(e, x, e_i32(0)) : e_base(x);
    else
        x = e_vary(e, x);
    if (t == E_I1)
        x = x.shape == V_VARYING ? e_bits(e, x) : e_cast(e, "zext", x, E_I32);
    buf_init(&b, l->mem);
    e_operand(e, &b, x);
    e_line(e, "store %s %s, ptr %%v%u, align 4", e_type_name(e, (enum elem)x.elem, x.shape == V_VARYING, type),
           buf_text(&b), at.id);
    buf_free(&b);
}

static struct val kept_value(struct lower *l, uint32_t node, uint32_t k)
{
    struct emit *const e = &l->e;
    const struct lane_info info = analysis_lane(&l->a, node, k);
    uint64_t offset = 0;
    enum scalar s;
    const enum elem t = lower_leaf_elem(l->m, ir_at(l->m, node)->type, k, &offset, &s);
    const bool uniform = info.uniform <= UNIFORM_S, linear = !uniform && info.linear && t <= E_I64 && t != E_I1;
    const struct val at = kept_at(l, of(l)->offset[node], k);
    const struct val x = e_named(t == E_I1 ? E_I32 : t, t != E_I1 && !uniform && !linear, e_id(e));
    char type[24];
    e_line(e, "%%v%u = load %s, ptr %%v%u, align 4", x.id,
           e_type_name(e, (enum elem)x.elem, x.shape == V_VARYING, type), at.id);
    if (t == E_I1)
        return uniform ? e_cmp(e, "icmp ne", x, e_i32(0)) : e_from_bits(e, x);
    return linear ? e_linear(x, info.stride) : x;
}

static void write_needs(struct lower *l, uint32_t phase)
{
    struct phases *const p = of(l);
    uint32_t low = 0, high = p->needs.n;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (p->needs.at[middle].phase < phase)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->needs.n && p->needs.at[low].phase == phase; low++) {
        const uint32_t id = p->needs.at[low].node;
        if (p->phase[id] == phase || p->shared[id])
            continue;
        if (!p->kept[id]) {
            lower_node(l, id);
            continue;
        }
        const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
        lower_out(l, id);
        for (uint32_t k = 0; k < n; k++)
            lower_set(l, id, k, kept_value(l, id, k));
    }
}

/* A value of the phase is complete. */
static void defined(struct lower *l, uint32_t id)
{
    if (!of(l)->kept[id])
        return;
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, id)->type);
    for (uint32_t k = 0; k < n; k++)
        keep_value(l, id, k, lower_in(l, id, k));
}

/* All values are read before the first is put: an exit may exchange them. */
static void finish(struct lower *l)
{
    struct phases *const p = of(l);
    for (uint32_t i = 0; i < p->moves.n; i++) {
        const uint32_t exit = p->moves.at[i];
        const uint32_t at = l->leaves.n;
        for (unsigned pass = 0; pass < 2; pass++) {
            uint32_t slot = at;
            for (unsigned k = 0; k < ir_at(l->m, exit)->n; k++) {
                const uint32_t to = variable(l->m, exit, owner_of(l->m, exit), k), from = ir_in(l->m, exit)[k];
                if (p->shared[to] || p->alias[from] == to)
                    continue;
                const uint32_t n = lower_leaves(l->m, ir_at(l->m, to)->type);
                for (uint32_t j = 0; j < n; j++, slot++) {
                    if (pass == 0) {
                        const struct val x = lower_in(l, from, j);
                        VEC_PUSH(l->mem, &l->leaves, x);
                    } else {
                        keep_value(l, to, j, l->leaves.at[slot]);
                    }
                }
            }
        }
    }
}

/* ---- bundles ---------------------------------------------------------------------------------------------------- */

static void store_alive(struct lower *l, struct val mask)
{
    struct emit *const e = &l->e;
    const struct val bits = e_bits(e, mask), at = kept_at(l, of(l)->alive, 0);
    struct buf b;
    buf_init(&b, l->mem);
    e_operand(e, &b, bits);
    e_line(e, "store i32 %s, ptr %%v%u", buf_text(&b), at.id);
    buf_free(&b);
}

/* The nodes of a phase for one bundle; `births`: nothing but the mask of the threads that there are. */
static void write_bundle(struct lower *l, uint32_t first, uint32_t end, bool births, uint32_t done)
{
    struct emit *const e = &l->e;
    struct phases *const p = of(l);
    const bool tracks = p && p->returns[0];
    if (births || !tracks) {
        l->mask = attribute_mask(l);
    } else {
        const struct val at = kept_at(l, p->alive, 0), bits = e_named(E_I32, false, e_id(e));
        e_line(e, "%%v%u = load i32, ptr %%v%u", bits.id, at.id);
        l->mask = e_from_bits(e, bits);
    }
    if (births) {
        store_alive(l, l->mask);
        e_jump(e, done);
        return;
    }
    if (p)
        write_needs(l, p->written);
    const uint32_t after = e_block(e);
    control_run(l, first, end, after);
    e_place(e, after);
    if (tracks)
        store_alive(l, control_mask_after(l));
    e_jump(e, done);
}

static void private_of(struct lower *l, struct val all)
{
    struct emit *const e = &l->e;
    if (!l->out->private_bytes)
        return;
    const struct val bundle = e_bin(e, "lshr", l->first_thread, e_i32((uint32_t)__builtin_ctz(e->width)));
    const uint64_t size = (l->out->private_bytes + 63) & ~(uint64_t)63;
    l->private_ = e_gep(e, all, e_bin(e, "mul", e_cast(e, "zext", bundle, E_I64), e_i64(size)));
}

static void write_bundles(struct lower *l, uint32_t first, uint32_t end, bool births)
{
    struct emit *const e = &l->e;
    const struct val all = l->private_, threads = attribute_threads(l);
    const uint32_t done = e_block(e);
    if (threads.shape == V_CONST && threads.bits <= e->width) {
        l->first_thread = e_i32(0);
        write_bundle(l, first, end, births, done);
        e_place(e, done);
        return;
    }
    const struct slot at = e_slot(e, E_I32, false);
    const uint32_t head = e_block(e), next = e_block(e);
    e_put(e, at, e_i32(0));
    e_place(e, head);
    l->first_thread = e_get(e, at);
    const struct val here = l->first_thread;
    private_of(l, all);
    write_bundle(l, first, end, births, next);
    e_place(e, next);
    const struct val following = e_bin(e, "add", here, e_i32(e->width));
    e_put(e, at, following);
    e_branch(e, e_cmp(e, "icmp ult", following, threads), head, done, ODDS_LIKELY);
    e_place(e, done);
    l->private_ = all;
}

/* ---- between the phases ----------------------------------------------------------------------------------------- */

static void flush(struct lower *l, uint32_t moves)
{
    struct phases *const p = of(l);
    if (moves) {
        bool own = false;
        for (unsigned k = 0; k < ir_at(l->m, moves)->n; k++) {
            const uint32_t to = variable(l->m, moves, owner_of(l->m, moves), k);
            own = own || !(p->shared[to] || p->alias[ir_in(l->m, moves)[k]] == to);
        }
        if (own)
            VEC_PUSH(l->mem, &p->moves, moves);
    }
    if (p->run_first || p->moves.n) {
        /* a run without nodes begins and ends at 0 */
        write_bundles(l, p->run_first, p->run_end, false);
        p->written++;
    }
    p->run_first = p->run_end = 0;
    p->moves.n = 0;
}

static void shared_moves(struct lower *l, uint32_t exit)
{
    struct phases *const p = of(l);
    struct emit *const e = &l->e;
    const uint32_t at = l->leaves.n;
    for (unsigned pass = 0; pass < 2; pass++) {
        uint32_t slot = at;
        for (unsigned k = 0; k < ir_at(l->m, exit)->n; k++) {
            const uint32_t to = variable(l->m, exit, owner_of(l->m, exit), k), from = ir_in(l->m, exit)[k];
            if (!p->shared[to])
                continue;
            const uint32_t n = lower_leaves(l->m, ir_at(l->m, to)->type);
            for (uint32_t j = 0; j < n; j++, slot++) {
                if (pass == 0) {
                    const struct val x = lower_in(l, from, j);
                    VEC_PUSH(l->mem, &l->leaves, x);
                } else {
                    e_put(e, p->carriers.at[p->carrier_of[to] + j].slot, l->leaves.at[slot]);
                }
            }
        }
    }
}

static void new_carriers(struct lower *l, uint32_t node)
{
    struct phases *const p = of(l);
    if (!p->shared[node])
        return;
    p->carrier_of[node] = p->carriers.n;
    for (uint32_t k = 0; k < lower_leaves(l->m, ir_at(l->m, node)->type); k++) {
        const struct carrier c = carrier_new(l, node, k);
        VEC_PUSH(l->mem, &p->carriers, c);
    }
}

static void read_carriers(struct lower *l, uint32_t node)
{
    struct phases *const p = of(l);
    if (!p->shared[node])
        return;
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, node)->type);
    lower_out(l, node);
    for (uint32_t k = 0; k < n; k++)
        lower_set(l, node, k, carrier_get(l, &p->carriers.at[p->carrier_of[node] + k]));
}

static void write_region(struct lower *l, uint32_t region);

static void write_around(struct lower *l, uint32_t id)
{
    struct phases *const p = of(l);
    struct emit *const e = &l->e;
    const struct node x = *ir_at(l->m, id);
    const uint32_t end = e_block(e), head = e_block(e);
    for (unsigned r = 0, result = x.next; r < ir_n_results(l->m, id); r++, result = ir_at(l->m, result)->next)
        new_carriers(l, result);
    if (x.op == OP_LOOP)
        for (unsigned k = 0; k < x.n; k++)
            new_carriers(l, ir_arg(l->m, id, k));
    flush(l, x.op == OP_LOOP ? id : 0);
    VEC_PUSH(l->mem, &p->frames, ((struct group_frame){id, end, head}));
    if (x.op == OP_LOOP) {
        shared_moves(l, id);
        e_place(e, head);
        control_poll(l);
        for (unsigned k = 0; k < x.n; k++)
            read_carriers(l, ir_arg(l->m, id, k));
        write_region(l, ir_region(l->m, id, 0));
        e_jump(e, end);
    } else if (x.op == OP_BLOCK) {
        write_region(l, ir_region(l->m, id, 0));
        e_jump(e, end);
    } else if (x.op == OP_IF) {
        const uint32_t then = e_block(e), other = e_block(e);
        e_branch(e, lower_in(l, x.in[0], 0), then, other, ODDS_EVEN);
        e_place(e, then);
        write_region(l, ir_region(l->m, id, 0));
        e_jump(e, end);
        e_place(e, other);
        write_region(l, ir_region(l->m, id, 1));
        e_jump(e, end);
    } else { /* switch */
        const struct val v = lower_in(l, x.in[0], 0);
        uint32_t fallback = 0;
        const unsigned n = ir_n_regions(l->m, id);
        for (unsigned k = 0; k <= n; k++) {
            const uint32_t r = k < n ? ir_region(l->m, id, k) : fallback;
            if (!r)
                break;
            const struct region q = *ir_region_at(l->m, r);
            if (k < n && q.is_default) {
                fallback = r;
                continue;
            }
            const uint32_t here = e_block(e), next = e_block(e);
            struct val match = k < n ? e_false() : e_true();
            for (uint32_t c = 0; c < q.n_cases && k < n; c++)
                match = e_or(
                    e, match,
                    e_cmp(e, "icmp eq", v, e_const((enum elem)v.elem, (uint64_t)l->m->cases.at[q.first_case + c])));
            e_branch(e, match, here, next, ODDS_EVEN);
            e_place(e, here);
            write_region(l, r);
            e_jump(e, end);
            e_place(e, next);
        }
        e_jump(e, end);
    }
    p->frames.n--;
    e_place(e, end);
    for (unsigned r = 0, result = x.next; r < ir_n_results(l->m, id); r++, result = ir_at(l->m, result)->next)
        read_carriers(l, result);
}

static void write_exit(struct lower *l, uint32_t id)
{
    struct phases *const p = of(l);
    const struct node x = *ir_at(l->m, id);
    flush(l, x.op == OP_RETURN || x.op == OP_UNREACHABLE ? 0 : id);
    if (x.op == OP_RETURN || x.op == OP_UNREACHABLE) {
        e_jump(&l->e, p->next_group);
        return;
    }
    shared_moves(l, id);
    uint32_t f = p->frames.n - 1;
    while (x.op == OP_BR && p->frames.at[f].node != (uint32_t)x.imm)
        f--;
    const bool repeats = x.op == OP_BR && ir_at(l->m, p->frames.at[f].node)->op == OP_LOOP;
    e_jump(&l->e, repeats ? p->frames.at[f].head : p->frames.at[f].end);
}

static void write_region(struct lower *l, uint32_t region)
{
    struct phases *const p = of(l);
    IR_EACH(l->m, region, id)
    {
        const struct node *const x = ir_at(l->m, id);
        if (x->op == OP_BARRIER) {
            flush(l, 0);
            control_fence(l, id);
        } else if (op_info[x->op].effect == EFFECT_EXIT) {
            write_exit(l, id);
            return;
        } else if (ir_is_construct(x->op) && p->around[id]) {
            write_around(l, id);
        } else if (p->phase[id] == OUTSIDE) {
            if (x->op == OP_RESULT || x->op == OP_ARG)
                continue;
            if (x->op == OP_LOAD)
                flush(l, 0);
            l->mask = e_true();
            l->first_thread = e_i32(0);
            lower_node(l, id);
        } else {
            if (!p->run_first)
                p->run_first = id;
            p->run_end = x->next;
        }
    }
    flush(l, 0);
}

/* ---- the entry points ------------------------------------------------------------------------------------------- */

static void begin_group(struct lower *l)
{
    struct emit *const e = &l->e;
    for (unsigned k = 0; k < 3; k++) {
        const struct val at = e_gep(e, l->worker, e_i64(WORKER(group) + 4 * k));
        e_line(e, "store i32 %%v%u, ptr %%v%u", l->group[k].id, at.id);
    }
}

static void stop_word(struct lower *l)
{
    l->control->stop = lower_field(l, WORKER(stop), E_PTR);
}

static void zero_threadgroup(struct lower *l)
{
    if (!l->out->threadgroup_bytes)
        return;
    e_declare(&l->e, "void @llvm.memset.p0.i64(ptr, i8, i64, i1)");
    e_line(&l->e, "call void @llvm.memset.p0.i64(ptr align 64 %%v%u, i8 0, i64 %u, i1 false)", l->threadgroup.id,
           l->out->threadgroup_bytes);
}

static void write_bundle_function(struct lower *l)
{
    struct emit *const e = &l->e;
    const uint32_t w = e_id(e), first = e_id(e), x = e_id(e), y = e_id(e), z = e_id(e);
    emit_begin(e, "i32 @spork_bundle(ptr noalias %%v%u, i32 %%v%u, i32 %%v%u, i32 %%v%u, i32 %%v%u) #0", w, first, x, y,
               z);
    l->worker = e_named(E_PTR, false, w);
    lower_start(l);
    stop_word(l);
    const uint32_t at[3] = {x, y, z};
    for (unsigned k = 0; k < 3; k++)
        l->group[k] = e_named(E_I32, false, at[k]);
    l->first_thread = e_named(E_I32, false, first);
    private_of(l, l->private_);
    const uint32_t done = e_block(e);
    write_bundle(l, ir_region_at(l->m, l->kernel->region)->first, 0, false, done);
    e_place(e, done);
    e_return(e, "ret i32 0");
    emit_end(e);
}

static void write_kernel_function(struct lower *l, bool split)
{
    struct emit *const e = &l->e;
    const uint32_t w = e_id(e), x0 = e_id(e), x1 = e_id(e), y = e_id(e), z = e_id(e);
    emit_begin(e, "i32 @spork_kernel(ptr noalias %%v%u, i32 %%v%u, i32 %%v%u, i32 %%v%u, i32 %%v%u) #0", w, x0, x1, y,
               z);
    l->worker = e_named(E_PTR, false, w);
    const struct slot x = e_slot(e, E_I32, false);
    e_put(e, x, e_named(E_I32, false, x0));
    lower_start(l);
    stop_word(l);
    const uint32_t head = e_block(e), next = e_block(e), done = e_block(e);
    e_place(e, head);
    control_poll(l);
    l->group[0] = e_get(e, x);
    l->group[1] = e_named(E_I32, false, y);
    l->group[2] = e_named(E_I32, false, z);
    begin_group(l);
    zero_threadgroup(l);
    const struct val here = l->group[0];
    if (split) {
        struct phases *const p = of(l);
        p->next_group = next;
        p->written = OUTSIDE + 1;
        l->control->defined = defined;
        l->control->finish = finish;
        l->control->skip = p->shared;
        l->control->track_root = p->returns[0] != 0;
        if (p->returns[0])
            write_bundles(l, 0, 0, true);
        write_region(l, l->kernel->region);
    } else {
        write_bundles(l, ir_region_at(l->m, l->kernel->region)->first, 0, false);
    }
    e_jump(e, next);
    e_place(e, next);
    const struct val following = e_bin(e, "add", here, e_i32(1));
    e_put(e, x, following);
    e_branch(e, e_cmp(e, "icmp ult", following, e_named(E_I32, false, x1)), head, done, ODDS_LIKELY);
    e_place(e, done);
    e_return(e, "ret i32 0");
    emit_end(e);
}

bool phase_plan(struct lower *l, bool loads_uniform)
{
    l->phases = plan(l, loads_uniform);
    return !l->phases->fails;
}

void phase_kernel(struct lower *l)
{
    if (l->out->fibers)
        write_bundle_function(l);
    else
        write_kernel_function(l, l->phases != NULL);
}
