/* unclip.c - pass U: loops whose last step is clipped, for executors that want their counters linear.
 *
 * `for j in sk.range(start, n, step)` cuts its last step so that nothing wraps:
 *
 *     loop (j = start) { if (j < n) { …; repeat with j + min(step, n - j) } }
 *
 * As long as a thread goes on it has made full steps only, so j is start + k * step, k counting iterations, the same in all
 * threads that are in the loop together. Whether it goes on is known at the end of an iteration, where j < n holds:
 *
 *     loop (k = 0, on = start < n) { j = start + k * step; if (on) { …; repeat with k + 1, n - j > step } }
 *
 * Unsigned counters only. What happens is the same for every thread and every value.
 */
#include "pass/util.h"

struct clipped {
    uint32_t loop, branch, condition, repeat, j, n, step, start;
    unsigned arg;
};

/* The operand of a two-operand operation that is not `other`; 0: it is not there. */
static uint32_t beside(const struct ir_module *m, uint32_t node, enum op op, uint32_t other)
{
    const struct node *const x = ir_at(m, node);
    if (x->op != op || x->n != 2)
        return 0;
    return x->in[0] == other ? x->in[1] : x->in[1] == other ? x->in[0] : 0;
}

static bool is_inside(const struct ir_module *m, uint32_t node, uint32_t loop)
{
    for (uint32_t r = ir_at(m, node)->region; r; r = ir_parent_region(m, r))
        if (ir_region_at(m, r)->owner == loop)
            return true;
    return false;
}

/* j + min(step, n - j), step a constant other than 0. */
static bool is_step(const struct ir_module *m, uint32_t next, struct clipped *c)
{
    const uint32_t least = beside(m, next, OP_ADD, c->j);
    if (!least || ir_at(m, least)->op != OP_MIN)
        return false;
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t step = ir_in(m, least)[k], left = ir_in(m, least)[1 - k];
        const struct node *const x = ir_at(m, left);
        if (ir_is_const(m, step) && ir_at(m, step)->imm && x->op == OP_SUB && x->in[0] == c->n && x->in[1] == c->j) {
            c->step = step;
            return true;
        }
    }
    return false;
}

static bool uses(const struct ir_module *m, uint32_t node, uint32_t value)
{
    for (unsigned k = 0; k < ir_at(m, node)->n; k++)
        if (ir_in(m, node)[k] == value)
            return true;
    return false;
}

/* The one node of the loop's region that branches, after pure ones and before an exit that does not use j. */
static bool find(const struct ir_module *m, uint32_t loop, const struct exits *exits, const uint32_t *count,
                 struct clipped *c)
{
    *c = (struct clipped){.loop = loop};
    IR_EACH(m, ir_region(m, loop, 0), id)
    {
        const struct node *const x = ir_at(m, id);
        if (c->branch && uses(m, id, c->j))
            return false;
        if (x->op != OP_IF || c->branch)
            continue;
        c->branch = id;
        c->condition = x->in[0];
        const struct node *const q = ir_at(m, c->condition);
        if (q->op != OP_LT || ir_at(m, q->in[0])->op != OP_ARG || count[c->condition] != 1)
            return false;
        c->j = q->in[0];
        c->n = q->in[1];
        c->arg = (unsigned)ir_at(m, c->j)->imm;
        if (ir_region_at(m, ir_at(m, c->j)->region)->owner != loop || is_inside(m, c->n, loop) ||
            ir_type_class(m, ir_at(m, c->j)->type) != CLASS_U || ir_type_width(ir_at(m, c->j)->type) != 1)
            return false;
    }
    if (!c->branch)
        return false;
    for (uint32_t e = exits->first[loop]; e; e = exits->next[e])
        if (exit_repeats(m, e, loop)) {
            if (c->repeat)
                return false;
            c->repeat = e;
        }
    c->start = ir_in(m, loop)[c->arg];
    if (!c->repeat || !is_inside(m, c->repeat, c->branch) || !is_step(m, ir_in(m, c->repeat)[c->arg], c))
        return false;
    /* Below the condition, so that it holds: not in the else region. */
    for (uint32_t r = ir_at(m, c->repeat)->region; r; r = ir_parent_region(m, r))
        if (ir_region_at(m, r)->owner == c->branch)
            return r == ir_region(m, c->branch, 0);
    return false;
}

static void rewrite(struct ir_module *m, const struct clipped *c)
{
    const ir_type t = ir_at(m, c->j)->type;
    struct ir_builder before = {.m = m, .region = ir_at(m, c->loop)->region, .before = c->loop};
    before.place = ir_at(m, c->condition)->place;
    const uint32_t enters = ir_op2(&before, OP_LT, c->start, c->n);
    const uint32_t k = ir_add_arg(m, c->loop, t, ir_const(m, t, 0));
    const uint32_t on = ir_add_arg(m, c->loop, TYPE_BOOL, enters);
    const uint32_t region = ir_region(m, c->loop, 0);
    uint32_t first = ir_region_at(m, region)->first;
    while (first && ir_at(m, first)->op == OP_ARG)
        first = ir_at(m, first)->next;
    struct ir_builder at = {.m = m, .region = region, .before = first, .place = before.place};
    const uint32_t j = ir_op2(&at, OP_ADD, c->start, ir_op2(&at, OP_MUL, k, c->step));
    struct pass_map map;
    map_init(&map, m);
    map_set(&map, c->j, j);
    map_set(&map, c->condition, on);
    map_region(&map, region);
    map_free(&map);
    struct ir_builder end = {.m = m, .region = ir_at(m, c->repeat)->region, .before = c->repeat, .place = before.place};
    const uint32_t left = ir_op2(&end, OP_SUB, c->n, j);
    const uint32_t more[2] = {ir_op2(&end, OP_ADD, k, ir_const(m, t, 1)), ir_op2(&end, OP_GT, left, c->step)};
    const unsigned n = ir_at(m, c->repeat)->n;
    struct mem *const temp = mem_temp(m->mem);
    uint32_t *const in = mem_alloc(temp, (n + 2) * sizeof *in);
    memcpy(in, ir_in(m, c->repeat), n * sizeof *in);
    in[c->arg] = c->start; /* nothing looks at it any more */
    in[n] = more[0];
    in[n + 1] = more[1];
    ir_set_inputs(m, c->repeat, n + 2, in);
    mem_temp_end(temp);
}

static void walk(struct ir_module *m, uint32_t region, const struct exits *exits, const uint32_t *count)
{
    IR_EACH(m, region, id)
    {
        if (!ir_is_construct(ir_at(m, id)->op))
            continue;
        for (unsigned r = 0; r < ir_n_regions(m, id); r++)
            walk(m, ir_region(m, id, r), exits, count);
        struct clipped c;
        if (ir_at(m, id)->op == OP_LOOP && find(m, id, exits, count, &c) && !ir_is_const(m, c.start))
            rewrite(m, &c);
    }
}

void pass_unclip(struct ir_module *m, uint32_t func)
{
    struct mem *const temp = mem_temp(m->mem);
    const uint32_t body = m->funcs.at[func].region;
    const struct exits exits = exits_of(m, body, temp);
    walk(m, body, &exits, use_counts(m, body, temp));
    mem_temp_end(temp);
}
