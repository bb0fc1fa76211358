/* access.c - what functions do through their pointer parameters.
 *
 * Every load, store and atomic is followed back to the parameters its pointer may come from. A pointer whose origin is
 * not plain (carried by a loop, read from a local) counts for every parameter of its address space. Calls pass on
 * what the callee does; functions are visited until nothing changes, which ends because bits are only added.
 */
#include "ir/ir.h"

struct scan {
    const struct ir_module *m;
    uint8_t *access; /* by index into module.params */
    uint32_t func;
    bool changed;
};

static void add(struct scan *s, uint32_t param, unsigned bits)
{
    const unsigned before = s->access[param];
    s->access[param] = (uint8_t)(before | bits);
    s->changed |= s->access[param] != before;
}

static void mark_pointer(struct scan *s, uint32_t id, unsigned bits)
{
    const struct func *const f = &s->m->funcs.at[s->func];
    while (ir_at(s->m, id)->op == OP_INDEX || ir_at(s->m, id)->op == OP_FIELD)
        id = ir_in(s->m, id)[0];
    const struct node *const x = ir_at(s->m, id);
    if (x->op == OP_PARAM) {
        add(s, f->first_param + (uint32_t)x->imm, bits);
    } else if (x->op == OP_SELECT) {
        const uint32_t a = ir_in(s->m, id)[1], b = ir_in(s->m, id)[2];
        mark_pointer(s, a, bits);
        mark_pointer(s, b, bits);
    } else if (x->op != OP_ALLOC) {
        for (uint32_t k = 0; k < f->n_params; k++)
            if (s->m->params.at[f->first_param + k].type == x->type)
                add(s, f->first_param + k, bits);
    }
}

static void scan_region(struct scan *s, uint32_t region)
{
    const struct ir_module *const m = s->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (ir_is_construct(x->op)) {
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                scan_region(s, ir_region(m, id, k));
        } else if (x->op == OP_CALL) {
            const struct func *const callee = &m->funcs.at[x->imm];
            for (uint32_t k = 0; k < callee->n_params; k++)
                if (ir_type_is_pointer(m->params.at[callee->first_param + k].type))
                    mark_pointer(s, ir_in(m, id)[k], s->access[callee->first_param + k]);
        } else if (x->op == OP_LOAD || x->op == OP_ATOMIC_LOAD) {
            mark_pointer(s, ir_in(m, id)[0], ACCESS_READ);
        } else if (x->op == OP_STORE || x->op == OP_ATOMIC_STORE) {
            mark_pointer(s, ir_in(m, id)[0], ACCESS_WRITE);
        } else if (x->op >= OP_ATOMIC_EXCHANGE && x->op <= OP_ATOMIC_MAX) {
            mark_pointer(s, ir_in(m, id)[0], ACCESS_READ | ACCESS_WRITE);
        }
    }
}

void ir_param_access(const struct ir_module *m, uint32_t func, uint8_t *access, struct mem *mem)
{
    struct mem *const temp = mem_temp(mem);
    struct scan s = {.m = m, .changed = true};
    const struct func *const f = &m->funcs.at[func];
    s.access = mem_zalloc(temp, m->params.n);
    while (s.changed) {
        s.changed = false;
        for (s.func = 1; s.func < m->funcs.n; s.func++)
            scan_region(&s, m->funcs.at[s.func].region);
    }
    memcpy(access, s.access + f->first_param, f->n_params);
    mem_temp_end(temp);
}
