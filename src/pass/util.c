/* util.c - what the passes share. */
#include "pass/util.h"

void map_init(struct pass_map *p, struct ir_module *m)
{
    *p = (struct pass_map){.m = m, .n = m->nodes.n, .mem = mem_temp(m->mem)};
    p->to = mem_zalloc(p->mem, sizeof *p->to * p->n);
}

void map_free(struct pass_map *p)
{
    mem_temp_end(p->mem);
}

void map_set(struct pass_map *p, uint32_t from, uint32_t to)
{
    p->to[from] = to;
}

uint32_t map_get(const struct pass_map *p, uint32_t id)
{
    while (id < p->n && p->to[id])
        id = p->to[id];
    return id;
}

void map_inputs(const struct pass_map *p, uint32_t node)
{
    uint32_t *in = ir_in_mut(p->m, node);
    for (unsigned i = 0; i < ir_at(p->m, node)->n; i++)
        in[i] = map_get(p, in[i]);
}

void map_region(const struct pass_map *p, uint32_t region)
{
    IR_EACH(p->m, region, id)
    {
        map_inputs(p, id);
        if (ir_is_construct(ir_at(p->m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(p->m, id); k++)
                map_region(p, ir_region(p->m, id, k));
    }
}

static void count_region(struct ir_module *m, uint32_t region, uint32_t *counts)
{
    IR_EACH(m, region, id)
    {
        const uint32_t *in = ir_in(m, id);
        for (unsigned i = 0; i < ir_at(m, id)->n; i++)
            counts[in[i]]++;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                count_region(m, ir_region(m, id, k), counts);
    }
}

uint32_t *use_counts(struct ir_module *m, uint32_t region, struct mem *mem)
{
    uint32_t *counts = mem_zalloc(mem, sizeof *counts * m->nodes.n);
    count_region(m, region, counts);
    return counts;
}

unsigned node_writes(const struct ir_module *m, uint32_t node)
{
    const struct node *x = ir_at(m, node);
    const unsigned everything = WRITES_SHARED | WRITES_THREAD;

    switch ((enum op_effect)op_info[x->op].effect) {
    case EFFECT_PURE:
    case EFFECT_READ:
    case EFFECT_EXIT: return 0;
    case EFFECT_WRITE:
        if (x->op == OP_SET)
            return WRITES_LOCALS;
        return ir_type_space(ir_at(m, ir_in(m, node)[0])->type) == SPACE_THREAD ? WRITES_THREAD : WRITES_SHARED;
    case EFFECT_ATOMIC: return everything;
    case EFFECT_CONVERGENT:
        /* Barriers order memory; a collective does not touch it. */
        return x->op == OP_BARRIER || x->op == OP_SIMDGROUP_BARRIER ? WRITES_SHARED : 0;
    case EFFECT_CONTROL: {
        if (x->op == OP_CALL)
            return everything;
        if (!ir_is_construct(x->op))
            return 0;
        unsigned w = 0;
        for (unsigned k = 0; k < ir_n_regions(m, node); k++)
            w |= region_writes(m, ir_region(m, node, k));
        return w;
    }
    }
    return everything;
}

unsigned region_writes(const struct ir_module *m, uint32_t region)
{
    unsigned w = 0;
    IR_EACH(m, region, id)
    w |= node_writes(m, id);
    return w;
}

bool region_leaves_to(const struct ir_module *m, uint32_t region, uint32_t construct)
{
    IR_EACH(m, region, id)
    {
        const struct node *x = ir_at(m, id);
        if (x->op == OP_BR && x->imm == construct)
            return true;
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                if (region_leaves_to(m, ir_region(m, id, k), construct))
                    return true;
    }
    return false;
}

bool region_ends_in_exit(const struct ir_module *m, uint32_t region)
{
    const uint32_t last = ir_region_at(m, region)->last;
    return last && op_info[ir_at(m, last)->op].effect == EFFECT_EXIT;
}

static void find_exits(const struct ir_module *m, uint32_t region, struct exits *e)
{
    IR_EACH(m, region, id)
    {
        const struct node *x = ir_at(m, id);
        if (x->op == OP_BR || x->op == OP_YIELD) {
            const uint32_t construct = x->op == OP_BR ? (uint32_t)x->imm : ir_region_at(m, region)->owner;
            e->next[id] = e->first[construct];
            e->first[construct] = id;
        }
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                find_exits(m, ir_region(m, id, k), e);
    }
}

struct exits exits_of(const struct ir_module *m, uint32_t region, struct mem *mem)
{
    struct exits e;
    e.first = mem_zalloc(mem, sizeof *e.first * m->nodes.n);
    e.next = mem_zalloc(mem, sizeof *e.next * m->nodes.n);
    find_exits(m, region, &e);
    return e;
}

bool exit_repeats(const struct ir_module *m, uint32_t exit, uint32_t construct)
{
    return ir_at(m, construct)->op == OP_LOOP && ir_at(m, exit)->op == OP_BR;
}
