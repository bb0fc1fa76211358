/* contract.c - pass C: contraction, the one place where a*b+c becomes fma.
 *
 * The rule, which is part of the language because every executor runs this pass on the same input: a float add or sub
 * one of whose operands is a mul of the same type used nowhere else, neither marked no_contract, becomes
 *     a*b + c -> fma(a, b, c)     a*b - c -> fma(a, b, -c)
 *     c + a*b -> fma(a, b, c)     c - a*b -> fma(-a, b, c)
 * the first operand being tried first. Metal is printed before this pass.
 */
#include "pass/util.h"

static bool is_product(const struct ir_module *m, const uint32_t *uses, uint32_t id)
{
    const struct node *x = ir_at(m, id);
    return x->op == OP_MUL && uses[id] == 1 && !(x->flags & NODE_NO_CONTRACT);
}

static uint32_t negated(struct ir_module *m, uint32_t before, uint32_t x)
{
    struct ir_builder b = {
        .m = m, .region = ir_at(m, before)->region, .before = before, .place = ir_at(m, before)->place};
    return ir_op1(&b, OP_NEG, x);
}

static void contract_region(struct ir_module *m, uint32_t *uses, uint32_t n_uses, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        const struct node x = *ir_at(m, id);
        if (ir_is_construct(x.op)) {
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                contract_region(m, uses, n_uses, ir_region(m, id, k));
            continue;
        }
        if ((x.op != OP_ADD && x.op != OP_SUB) || ir_type_class(m, x.type) != CLASS_F || x.flags & NODE_NO_CONTRACT)
            continue;
        const uint32_t a = ir_in(m, id)[0], b = ir_in(m, id)[1];
        uint32_t fma[3];
        if (a < n_uses && is_product(m, uses, a)) {
            fma[0] = ir_in(m, a)[0];
            fma[1] = ir_in(m, a)[1];
            fma[2] = x.op == OP_SUB ? negated(m, id, b) : b;
        } else if (b < n_uses && is_product(m, uses, b)) {
            fma[0] = x.op == OP_SUB ? negated(m, id, ir_in(m, b)[0]) : ir_in(m, b)[0];
            fma[1] = ir_in(m, b)[1];
            fma[2] = a;
        } else {
            continue;
        }
        ir_at(m, id)->op = OP_FMA;
        ir_set_inputs(m, id, 3, fma);
    }
}

void pass_contract(struct ir_module *m, uint32_t func)
{
    const uint32_t body = m->funcs.at[func].region, n = m->nodes.n;
    if (m->funcs.at[func].no_contract)
        return;
    struct mem *temp = mem_temp(m->mem);
    contract_region(m, use_counts(m, body, temp), n, body);
    mem_temp_end(temp);
}
