/* waits.c - which loops wait for memory.
 *
 * A loop waits if whether it goes on follows from memory it reads and from nothing else that its iterations change:
 * then, as long as nobody writes that memory, it never ends, and a fault is a right answer. The conditions that decide
 * are those of the ifs and switches around a br that repeats the loop and around every exit that leaves it. What they
 * are made of is followed back to values from before the loop. Coming back to a loop parameter or local on the way
 * means that it depends on its own last value, as counters do: such a loop is taken to get somewhere.
 */
#include "pass/analysis.h"

enum mark { UNSEEN, OPEN, DONE };

/* Past these a loop is taken to get somewhere, too. */
#define DEPTH_LIMIT 1000u
#define STEP_LIMIT 1000000u

struct waits {
    const struct ir_module *m;
    uint32_t loop;
    uint8_t *mark; /* by node */
    uint32_t depth, steps;
    bool reads, reads_thread, changes;
};

static bool inside(const struct waits *w, uint32_t node)
{
    const struct ir_module *const m = w->m;
    for (uint32_t region = ir_at(m, node)->region; region; region = ir_parent_region(m, region))
        if (ir_region_at(m, region)->owner == w->loop)
            return true;
    return false;
}

static void follow(struct waits *w, uint32_t node);

static void follow_inputs(struct waits *w, uint32_t node)
{
    for (unsigned k = 0; k < ir_at(w->m, node)->n; k++)
        follow(w, ir_in(w->m, node)[k]);
}

/* Operand k of every exit that carries values to `construct`: br, and yield from its own regions. A parameter that is
 * handed on as it is does not change. Results depend on the
 * conditions inside, too. */
static void follow_values(struct waits *w, uint32_t itself, uint32_t construct, uint32_t region, unsigned k,
                          bool to_args)
{
    const struct ir_module *const m = w->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        const bool is_br = x->op == OP_BR && x->imm == construct;
        const bool is_yield = x->op == OP_YIELD && ir_region_at(m, region)->owner == construct;
        if (++w->steps > STEP_LIMIT)
            w->changes = true;
        if ((to_args ? is_br : is_yield || (is_br && ir_at(m, construct)->op != OP_LOOP)) && k < x->n &&
            ir_in(m, id)[k] != itself)
            follow(w, ir_in(m, id)[k]);
        if (!ir_is_construct(x->op))
            continue;
        if (!to_args && (x->op == OP_IF || x->op == OP_SWITCH))
            follow(w, ir_in(m, id)[0]);
        for (unsigned r = 0; r < ir_n_regions(m, id); r++)
            follow_values(w, itself, construct, ir_region(m, id, r), k, to_args);
    }
}

static void follow_sets(struct waits *w, uint32_t var, uint32_t region)
{
    const struct ir_module *const m = w->m;
    IR_EACH(m, region, id)
    {
        if (++w->steps > STEP_LIMIT)
            w->changes = true;
        if (ir_at(m, id)->op == OP_SET && ir_in(m, id)[0] == var)
            follow(w, ir_in(m, id)[1]);
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                follow_sets(w, var, ir_region(m, id, r));
    }
}

static void follow(struct waits *w, uint32_t node)
{
    const struct ir_module *const m = w->m;
    const struct node *const x = ir_at(m, node);
    if (w->changes || w->mark[node] == DONE || (x->op != OP_VAR && !inside(w, node)))
        return;
    if (w->mark[node] == OPEN || w->depth == DEPTH_LIMIT) {
        w->changes = true;
        return;
    }
    w->mark[node] = OPEN;
    w->depth++;
    if (x->op == OP_ARG) {
        const uint32_t loop = ir_region_at(m, x->region)->owner;
        if (loop != w->loop)
            follow(w, ir_in(m, loop)[x->imm]);
        follow_values(w, node, loop, ir_region(m, loop, 0), (unsigned)x->imm, true);
    } else if (x->op == OP_RESULT) {
        const uint32_t construct = x->in[0];
        for (unsigned k = 0; k < ir_at(m, construct)->n; k++)
            if (ir_at(m, construct)->op != OP_LOOP)
                follow(w, ir_in(m, construct)[k]);
        for (unsigned r = 0; r < ir_n_regions(m, construct); r++)
            follow_values(w, node, construct, ir_region(m, construct, r), (unsigned)x->imm, false);
    } else if (x->op == OP_VAR) {
        follow_sets(w, node, ir_region(m, w->loop, 0));
        if (inside(w, node))
            follow_inputs(w, node);
    } else {
        const enum op_effect effect = (enum op_effect)op_info[x->op].effect;
        if (x->op == OP_LOAD || (effect == EFFECT_ATOMIC && x->n)) {
            w->reads = true;
            if (ir_type_space(ir_at(m, ir_in(m, node)[0])->type) == SPACE_THREAD)
                w->reads_thread = true;
        }
        follow_inputs(w, node);
    }
    w->depth--;
    w->mark[node] = DONE;
}

/* Does the region hold a br that repeats the loop, or an exit that leaves it? Follows the conditions around them. */
static bool decides(struct waits *w, uint32_t region)
{
    const struct ir_module *const m = w->m;
    bool found = false;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (x->op == OP_RETURN || x->op == OP_UNREACHABLE)
            found = true;
        else if (x->op == OP_BR && (x->imm == w->loop || !inside(w, (uint32_t)x->imm)))
            found = true;
        if (!ir_is_construct(x->op))
            continue;
        bool here = false;
        for (unsigned r = 0; r < ir_n_regions(m, id); r++)
            here |= decides(w, ir_region(m, id, r));
        if (here && (x->op == OP_IF || x->op == OP_SWITCH))
            follow(w, ir_in(m, id)[0]);
        /* Repeating or leaving from inside of another loop depends on how that one goes. */
        if (here && x->op == OP_LOOP)
            w->changes = true;
        found |= here;
    }
    return found;
}

bool loop_waits(const struct ir_module *m, uint32_t loop, uint8_t *marks, bool *thread)
{
    struct waits w = {.m = m, .loop = loop, .mark = marks};
    memset(marks, UNSEEN, m->nodes.n);
    (void)decides(&w, ir_region(m, loop, 0));
    *thread = w.reads_thread;
    return w.reads && !w.changes;
}
