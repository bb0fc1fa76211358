/* hoist.c - pass H: pure operations whose operands come from outside a loop move before it, out of as many loops as that
 * holds for. Loads stay: they may fault, and other threads may write. Convergent operations never move.
 *
 * One walk in the order of the text, so that operands have moved before what uses them. Operands are visible where they are
 * used, hence all that matters of one is how deep its region is nested.
 */
#include "pass/util.h"

struct walk {
    struct ir_module *m;
    uint32_t *depth;             /* by region: regions around it */
    uint32_t loop[IR_MAX_DEPTH]; /* those around the walk, outermost first */
    unsigned n_loops;
};

static void hoist_node(struct walk *w, uint32_t id)
{
    struct ir_module *m = w->m;
    const uint32_t *in = ir_in(m, id);
    uint32_t depth = 0;
    for (unsigned k = 0; k < ir_at(m, id)->n; k++) {
        const uint32_t region = ir_at(m, in[k])->region;
        if (region && w->depth[region] > depth)
            depth = w->depth[region];
    }
    for (unsigned k = 0; k < w->n_loops; k++) {
        const uint32_t region = ir_at(m, w->loop[k])->region;
        if (w->depth[region] >= depth) {
            ir_unlink(m, id);
            ir_insert_before(m, id, region, w->loop[k]);
            return;
        }
    }
}

static void walk(struct walk *w, uint32_t region, uint32_t depth)
{
    struct ir_module *m = w->m;
    w->depth[region] = depth;
    IR_EACH(m, region, id)
    {
        const uint16_t op = ir_at(m, id)->op;
        if (ir_is_construct(op)) {
            const bool loop = op == OP_LOOP && w->n_loops < IR_MAX_DEPTH;
            if (loop)
                w->loop[w->n_loops++] = id;
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                walk(w, ir_region(m, id, k), depth + 1);
            w->n_loops -= loop;
        } else if (w->n_loops && op_info[op].effect == EFFECT_PURE && op != OP_ARG && op != OP_RESULT) {
            hoist_node(w, id);
        }
    }
}

void pass_hoist(struct ir_module *m, uint32_t func)
{
    struct mem *temp = mem_temp(m->mem);
    struct walk w = {.m = m};
    w.depth = mem_zalloc(temp, sizeof *w.depth * m->regions.n);
    walk(&w, m->funcs.at[func].region, 1);
    mem_temp_end(temp);
}
