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
    struct exits exits;
    uint32_t *first_set, *next_set; /* assignments by their local */
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
    case EFFECT_READ: return false;
    case EFFECT_WRITE: return x->op != OP_SET; /* alive with its local */
    case EFFECT_ATOMIC: return true;
    case EFFECT_CONVERGENT: return x->op == OP_BARRIER || x->op == OP_SIMDGROUP_BARRIER;
    case EFFECT_EXIT: return x->op != OP_YIELD;
    case EFFECT_CONTROL: return x->op == OP_LOOP || x->op == OP_CALL || x->op == OP_PRINT || x->op == OP_ASSERT;
    }
    return true;
}

/* Marks the roots, and lists the assignments. */
static void scan(struct sweep *s, uint32_t region)
{
    struct ir_module *m = s->m;
    IR_EACH(m, region, id)
    {
        const uint16_t op = ir_at(m, id)->op;
        if (is_root(m, id))
            mark(s, id);
        if (op == OP_SET) {
            const uint32_t var = ir_in(m, id)[0];
            s->next_set[id] = s->first_set[var];
            s->first_set[var] = id;
        }
        if (ir_is_construct(op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                scan(s, ir_region(m, id, k));
    }
}

static void mark_carried(struct sweep *s, uint32_t construct, bool parameters, unsigned k)
{
    for (uint32_t exit = s->exits.first[construct]; exit; exit = s->exits.next[exit])
        if (exit_repeats(s->m, exit, construct) == parameters)
            mark(s, ir_in(s->m, exit)[k]);
}

static void visit(struct sweep *s, uint32_t id)
{
    struct ir_module *m = s->m;
    const struct node x = *ir_at(m, id);
    const uint32_t owner = x.region ? ir_region_at(m, x.region)->owner : 0;

    if (owner)
        mark(s, owner);
    switch (x.op) {
    case OP_BR: mark(s, (uint32_t)x.imm); return; /* its values are alive one by one, and those below */
    case OP_YIELD:
    case OP_LOOP: return;
    case OP_ARG:
        mark(s, ir_in(m, owner)[x.imm]);
        mark_carried(s, owner, true, (unsigned)x.imm);
        return;
    case OP_RESULT:
        mark(s, x.in[0]);
        mark_carried(s, x.in[0], false, (unsigned)x.imm);
        return;
    case OP_GET: /* the first one that is alive brings the assignments */
        for (uint32_t set = s->first_set[x.in[0]]; set; set = s->next_set[set])
            mark(s, set);
        s->first_set[x.in[0]] = 0;
        break;
    default: break;
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
    const unsigned old = ir_at(m, id)->n;
    unsigned n = 0;
    for (unsigned k = 0; k < old; k++)
        if (keep[k])
            in[n++] = in[k];
    if (n == old)
        return;
    uint32_t *copy = mem_alloc(s->mem, sizeof *copy * (n + 1u));
    memcpy(copy, in, sizeof *copy * n);
    ir_set_inputs(m, id, n, copy);
    mem_free(s->mem, copy, sizeof *copy * (n + 1u));
}

/* Takes dead results (first = first RESULT) or dead loop parameters (first = first ARG) out of a construct. */
static void shrink(struct sweep *s, uint32_t construct, uint32_t first, uint16_t op)
{
    struct ir_module *m = s->m;
    const bool parameters = op == OP_ARG;
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
    if (parameters)
        drop_operands(s, construct, keep);
    for (uint32_t exit = s->exits.first[construct]; exit; exit = s->exits.next[exit])
        if (exit_repeats(m, exit, construct) == parameters)
            drop_operands(s, exit, keep);
    mem_free(s->mem, keep, n);
}

static void sweep_region(struct sweep *s, uint32_t region)
{
    struct ir_module *m = s->m;
    IR_EACH(m, region, id)
    {
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
    s.exits = exits_of(m, body, s.mem);
    s.first_set = mem_zalloc(s.mem, sizeof *s.first_set * n);
    s.next_set = mem_zalloc(s.mem, sizeof *s.next_set * n);
    scan(&s, body);
    while (s.work.n)
        visit(&s, s.work.at[--s.work.n]);
    sweep_region(&s, body);
    mem_temp_end(s.mem);
}
