/* hoist.c - pass H: pure operations whose operands come from outside a loop move before it, innermost loops first.
 * Loads stay: they may fault, and other threads may write. Convergent operations never move.
 */
#include "pass/util.h"

static void hoist_from(struct ir_module *m, uint32_t region, uint32_t loop)
{
    IR_EACH(m, region, id) {
        const struct node x = *ir_at(m, id);
        if (ir_is_construct(x.op)) {
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                hoist_from(m, ir_region(m, id, k), loop);
            continue;
        }
        if (op_info[x.op].effect != EFFECT_PURE || x.op == OP_ARG || x.op == OP_RESULT)
            continue;
        const uint32_t *in = ir_in(m, id);
        bool invariant = true;
        for (unsigned i = 0; i < x.n && invariant; i++)
            invariant = !region_is_inside(m, ir_at(m, in[i])->region, loop);
        if (invariant) {
            ir_unlink(m, id);
            ir_insert_before(m, id, ir_at(m, loop)->region, loop);
        }
    }
}

static void find_loops(struct ir_module *m, uint32_t region)
{
    IR_EACH(m, region, id) {
        if (!ir_is_construct(ir_at(m, id)->op))
            continue;
        for (unsigned k = 0; k < ir_n_regions(m, id); k++)
            find_loops(m, ir_region(m, id, k));
        if (ir_at(m, id)->op == OP_LOOP)
            hoist_from(m, ir_region(m, id, 0), id);
    }
}

void pass_hoist(struct ir_module *m, uint32_t func)
{
    find_loops(m, m->funcs.at[func].region);
}
