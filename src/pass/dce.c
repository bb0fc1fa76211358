/* dce.c - pass D: dead code.
 *
 * Roots are what has an effect: stores, atomics, barriers, calls, reports, exits other than yields, loops (one may not
 * end). A root keeps the constructs around it. A value that an exit carries is alive only if the result or loop parameter
 * it becomes is alive. A load whose value is not used is not an access: it goes, and cannot fault. What is left over
 * of a construct's results and a loop's parameters is taken out of every exit.
 */
#include "pass/util.h"

struct sweep {
    struct ir_module *m;
    struct mem *mem; /* working memory */
    uint8_t *alive;
    VEC(uint32_t) work;
};

static void mark(struct sweep *s, uint32_t id)
{
    if (s->alive[id])
        return;
    s->alive[id] = 1;
    VEC_PUSH(s->mem, &s->work, id);
}

static bool is_root(const struct ir_module *m, uint32_t id)
{
    const struct node *x = ir_at(m, id);
    switch ((enum op_effect)op_info[x->op].effect) {
    case EFFECT_PURE:
    case EFFECT_READ:
        return false;
    case EFFECT_WRITE:
        return x->op != OP_SET; /* alive with its local */
    case EFFECT_ATOMIC:
        return true;
    case EFFECT_CONVERGENT:
        return x->op == OP_BARRIER || x->op == OP_SIMDGROUP_BARRIER;
    case EFFECT_EXIT:
        return x->op != OP_YIELD;
    case EFFECT_CONTROL:
        return x->op == OP_LOOP || x->op == OP_CALL || x->op == OP_PRINT || x->op == OP_ASSERT;
    }
    return true;
}

static void mark_roots(struct sweep *s, uint32_t region)
{
    IR_EACH(s->m, region, id) {
        if (is_root(s->m, id))
            mark(s, id);
        if (ir_is_construct(ir_at(s->m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(s->m, id); k++)
                mark_roots(s, ir_region(s->m, id, k));
    }
}

/* Marks operand k of every exit in `region` that gives a value to result (or loop parameter) k of `construct`. */
static void mark_carried(struct sweep *s, uint32_t region, uint32_t construct, bool parameters, unsigned k)
{
    struct ir_module *m = s->m;
    IR_EACH(m, region, id) {
        const struct node *x = ir_at(m, id);
        const bool loop = ir_at(m, construct)->op == OP_LOOP;
        const bool yields = x->op == OP_YIELD && ir_region_at(m, region)->owner == construct && !parameters;
        const bool leaves = x->op == OP_BR && x->imm == construct && loop == parameters;
        if (yields || leaves)
            mark(s, ir_in(m, id)[k]);
        if (ir_is_construct(x->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                mark_carried(s, ir_region(m, id, r), construct, parameters, k);
    }
}

static void mark_sets(struct sweep *s, uint32_t region, uint32_t var)
{
    IR_EACH(s->m, region, id) {
        if (ir_at(s->m, id)->op == OP_SET && ir_in(s->m, id)[0] == var)
            mark(s, id);
        if (ir_is_construct(ir_at(s->m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(s->m, id); k++)
                mark_sets(s, ir_region(s->m, id, k), var);
    }
}

static void visit(struct sweep *s, uint32_t id)
{
    struct ir_module *m = s->m;
    const struct node x = *ir_at(m, id);
    const uint32_t owner = x.region ? ir_region_at(m, x.region)->owner : 0;

    if (owner)
        mark(s, owner);
    switch (x.op) {
    case OP_BR:
        mark(s, (uint32_t)x.imm);
        return; /* its values are alive one by one */
    case OP_YIELD:
        return;
    case OP_LOOP:
        return;
    case OP_ARG:
        mark(s, ir_in(m, owner)[x.imm]);
        mark_carried(s, x.region, owner, true, (unsigned)x.imm);
        return;
    case OP_RESULT: {
        const uint32_t construct = ir_in(m, id)[0];
        mark(s, construct);
        for (unsigned k = 0; k < ir_n_regions(m, construct); k++)
            mark_carried(s, ir_region(m, construct, k), construct, false, (unsigned)x.imm);
        return;
    }
    case OP_GET:
        mark_sets(s, ir_at(m, ir_in(m, id)[0])->region, ir_in(m, id)[0]);
        break;
    default:
        break;
    }
    const uint32_t *in = ir_in(m, id);
    for (unsigned i = 0; i < x.n; i++)
        mark(s, in[i]);
}

/* Drops the operands of an exit or loop whose receiver is dead; `keep[k]` tells of receiver k. */
static void drop_operands(struct sweep *s, uint32_t id, const uint8_t *keep)
{
    struct ir_module *m = s->m;
    uint32_t *in = ir_in_mut(m, id);
    unsigned n = 0;
    for (unsigned k = 0; k < ir_at(m, id)->n; k++)
        if (keep[k])
            in[n++] = in[k];
    if (n == ir_at(m, id)->n)
        return;
    uint32_t *copy = mem_alloc(s->mem, sizeof *copy * (n + 1u));
    memcpy(copy, in, sizeof *copy * n);
    ir_set_inputs(m, id, n, copy);
    mem_free(s->mem, copy, sizeof *copy * (n + 1u));
}

static void shrink_exits(struct sweep *s, uint32_t region, uint32_t construct, bool parameters, const uint8_t *keep)
{
    struct ir_module *m = s->m;
    const bool loop = ir_at(m, construct)->op == OP_LOOP;
    IR_EACH(m, region, id) {
        const struct node x = *ir_at(m, id);
        if ((x.op == OP_YIELD && ir_region_at(m, region)->owner == construct && !parameters) ||
            (x.op == OP_BR && x.imm == construct && loop == parameters))
            drop_operands(s, id, keep);
        if (ir_is_construct(x.op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                shrink_exits(s, ir_region(m, id, k), construct, parameters, keep);
    }
}

/* Takes dead results (first = first RESULT) or dead loop parameters (first = first ARG) out of a construct. */
static void shrink(struct sweep *s, uint32_t construct, uint32_t first, uint16_t op)
{
    struct ir_module *m = s->m;
    unsigned n = 0, alive = 0;
    for (uint32_t id = first; id && ir_at(m, id)->op == op; id = ir_at(m, id)->next) {
        n++;
        alive += s->alive[id];
    }
    if (n == alive)
        return;

    uint8_t *keep = mem_alloc(s->mem, n);
    unsigned k = 0, kept = 0;
    for (uint32_t id = first, next; k < n; id = next, k++) {
        next = ir_at(m, id)->next;
        keep[k] = s->alive[id];
        if (keep[k])
            ir_at(m, id)->imm = kept++;
        else
            ir_unlink(m, id);
    }
    if (op == OP_ARG)
        drop_operands(s, construct, keep);
    for (unsigned r = 0; r < ir_n_regions(m, construct); r++)
        shrink_exits(s, ir_region(m, construct, r), construct, op == OP_ARG, keep);
    mem_free(s->mem, keep, n);
}

static void sweep_region(struct sweep *s, uint32_t region)
{
    struct ir_module *m = s->m;
    IR_EACH(m, region, id) {
        const uint16_t op = ir_at(m, id)->op;
        if (op == OP_YIELD) {
            if (ir_at(m, id)->n == 0)
                ir_unlink(m, id);
            continue;
        }
        if (!s->alive[id]) {
            ir_unlink(m, id);
            continue;
        }
        if (!ir_is_construct(op))
            continue;
        const uint32_t after = ir_at(m, id)->next;
        shrink(s, id, after && ir_at(m, after)->op == OP_RESULT && ir_in(m, after)[0] == id ? after : 0, OP_RESULT);
        id_next_ = ir_at(m, id)->next;
        if (op == OP_LOOP)
            shrink(s, id, ir_region_at(m, ir_region(m, id, 0))->first, OP_ARG);
        for (unsigned k = 0; k < ir_n_regions(m, id); k++)
            sweep_region(s, ir_region(m, id, k));
    }
}

void pass_dce(struct ir_module *m, uint32_t func)
{
    struct sweep s = {.m = m, .mem = mem_temp(m->mem)};
    const uint32_t n = m->nodes.n, body = m->funcs.at[func].region;
    s.alive = mem_zalloc(s.mem, n);
    mark_roots(&s, body);
    while (s.work.n)
        visit(&s, s.work.at[--s.work.n]);
    sweep_region(&s, body);
    mem_temp_end(s.mem);
}
