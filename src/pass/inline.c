/* inline.c - every call of a kernel replaced by a copy of the function's body.
 *
 * A call becomes a block: returns of the body leave it with the value, so that lanes meet again where the call ends.
 * Functions are inlined into one another first, innermost first (verify has refused recursion). Places of the copy say
 * where they were called from.
 */
#include "pass/pass.h"
#include "pass/util.h"

struct inliner {
    struct ir_module *m;
    struct mem *mem; /* working memory */
    uint32_t max_nodes;
    uint8_t *done; /* by function */
    sk_error *err;
};

struct copy {
    struct ir_module *m;
    struct mem *mem;
    uint32_t *to, n; /* by node of the callee */
    uint32_t block;  /* stands for the call */
    uint32_t call_place;
    uint32_t caller;
};

/* What a function says of all its nodes, they have to say themselves in another function. */
static void set_flags(struct ir_module *m, uint32_t region, bool fast, bool no_contract)
{
    IR_EACH(m, region, id)
    {
        struct node *x = ir_at(m, id);
        if (fast && math_info[x->op].fast)
            x->flags |= NODE_FAST;
        if (no_contract && (x->op == OP_ADD || x->op == OP_SUB || x->op == OP_MUL))
            x->flags |= NODE_NO_CONTRACT;
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                set_flags(m, ir_region(m, id, k), fast, no_contract);
    }
}

static uint32_t copied(const struct copy *c, uint32_t id)
{
    return id < c->n && c->to[id] ? c->to[id] : id;
}

static uint32_t copied_place(const struct copy *c, uint32_t place)
{
    if (!place)
        return c->call_place;
    const struct place p = c->m->places.at[place];
    return ir_place(c->m, p.file, p.line, p.column, copied_place(c, p.at));
}

static void copy_region(struct copy *c, uint32_t from, uint32_t to);

static void copy_inputs(struct copy *c, uint32_t from, uint32_t *in)
{
    for (unsigned i = 0; i < ir_at(c->m, from)->n; i++)
        in[i] = copied(c, ir_in(c->m, from)[i]);
}

static void copy_construct(struct copy *c, struct ir_builder *b, uint32_t from, const uint32_t *in)
{
    struct ir_module *m = c->m;
    const struct node x = *ir_at(m, from);
    const unsigned n_regions = ir_n_regions(m, from);
    const uint32_t to = ir_construct(b, (enum op)x.op, x.n, in, n_regions);
    c->to[from] = to;
    ir_at(m, to)->flags = x.flags;
    for (unsigned k = 0; k < n_regions; k++) {
        const uint32_t source = ir_region(m, from, k), target = ir_region(m, to, k);
        const struct region r = *ir_region_at(m, source);
        ir_region_at(m, target)->is_default = r.is_default;
        for (uint32_t i = 0; i < r.n_cases; i++)
            ir_case(m, target, m->cases.at[r.first_case + i]);
        uint32_t arg = ir_region_at(m, target)->first;
        for (uint32_t id = r.first; id && ir_at(m, id)->op == OP_ARG; id = ir_at(m, id)->next) {
            c->to[id] = arg;
            ir_at(m, arg)->name = ir_at(m, id)->name;
            arg = ir_at(m, arg)->next;
        }
        copy_region(c, source, target);
    }
}

static void copy_node(struct copy *c, uint32_t to_region, uint32_t id)
{
    struct ir_module *m = c->m;
    struct ir_builder b = {.m = m, .func = c->caller, .region = to_region};
    const struct node x = *ir_at(m, id);
    uint32_t *in = mem_alloc(c->mem, sizeof *in * (x.n + 1u));

    b.place = copied_place(c, x.place);
    copy_inputs(c, id, in);
    if (x.op == OP_RETURN) {
        ir_br(&b, c->block, x.n, in);
    } else if (x.op == OP_BR) {
        ir_br(&b, copied(c, (uint32_t)x.imm), x.n, in);
    } else if (x.op == OP_RESULT) {
        c->to[id] = ir_result(m, in[0], x.type);
        ir_at(m, c->to[id])->name = x.name;
    } else if (ir_is_construct(x.op)) {
        copy_construct(c, &b, id, in);
    } else {
        c->to[id] = ir_node(&b, (enum op)x.op, x.type, x.n, in, x.flags, x.imm);
        ir_at(m, c->to[id])->name = x.name;
    }
    mem_free(c->mem, in, sizeof *in * (x.n + 1u));
}

static void copy_region(struct copy *c, uint32_t from, uint32_t to)
{
    IR_EACH(c->m, from, id)
    if (ir_at(c->m, id)->op != OP_ARG)
        copy_node(c, to, id);
}

static uint32_t inline_call(struct inliner *s, uint32_t caller, uint32_t call)
{
    struct ir_module *m = s->m;
    const struct node x = *ir_at(m, call);
    const struct func f = m->funcs.at[x.imm];
    struct ir_builder b = {.m = m, .func = caller, .region = x.region, .before = call, .place = x.place};
    struct copy c = {.m = m, .mem = s->mem, .n = m->nodes.n, .call_place = x.place, .caller = caller};

    c.to = mem_zalloc(s->mem, sizeof *c.to * c.n);
    for (uint32_t k = 0; k < f.n_params; k++)
        c.to[m->params.at[f.first_param + k].node] = ir_in(m, call)[k];
    c.block = ir_construct(&b, OP_BLOCK, 0, NULL, 1);
    copy_region(&c, f.region, ir_region(m, c.block, 0));
    mem_free(s->mem, c.to, sizeof *c.to * c.n);

    uint32_t result = 0;
    if (x.type != TYPE_VOID) {
        const uint32_t body = ir_region(m, c.block, 0);
        if (!region_ends_in_exit(
                m, body)) { /* a function may end where control does not come; a region with a result not */
            struct ir_builder end = {.m = m, .func = caller, .region = body, .place = x.place};
            ir_node(&end, OP_UNREACHABLE, TYPE_VOID, 0, NULL, 0, 0);
        }
        result = ir_result(m, c.block, x.type);
        ir_at(m, result)->name = x.name;
    }
    ir_unlink(m, call);
    return result;
}

static sk_status inline_func(struct inliner *s, uint32_t func);

static sk_status inline_region(struct inliner *s, uint32_t func, uint32_t region, struct pass_map *map)
{
    struct ir_module *m = s->m;
    IR_EACH(m, region, id)
    {
        const uint16_t op = ir_at(m, id)->op;
        if (ir_is_construct(op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                TRY(inline_region(s, func, ir_region(m, id, k), map));
        if (op != OP_CALL)
            continue;
        const struct func *callee = &m->funcs.at[ir_at(m, id)->imm];
        if (m->nodes.n > s->max_nodes)
            return ERR_AT(s->err, ir_err_place(m, ir_at(m, id)->place), TOO_LARGE_TO_INLINE,
                          strtab_str(&m->strings, callee->name), s->max_nodes);
        const uint32_t result = inline_call(s, func, id);
        if (result)
            map_set(map, id, result);
    }
    return SK_OK;
}

static bool has_calls(const struct ir_module *m, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        if (ir_at(m, id)->op == OP_CALL)
            return true;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                if (has_calls(m, ir_region(m, id, k)))
                    return true;
    }
    return false;
}

static sk_status inline_callees(struct inliner *s, uint32_t region)
{
    IR_EACH(s->m, region, id)
    {
        if (ir_at(s->m, id)->op == OP_CALL)
            TRY(inline_func(s, (uint32_t)ir_at(s->m, id)->imm));
        if (ir_is_construct(ir_at(s->m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(s->m, id); k++)
                TRY(inline_callees(s, ir_region(s->m, id, k)));
    }
    return SK_OK;
}

static sk_status inline_func(struct inliner *s, uint32_t func)
{
    const uint32_t body = s->m->funcs.at[func].region;
    if (s->done[func])
        return SK_OK;
    s->done[func] = 1;
    const struct func f = s->m->funcs.at[func];
    if (f.fast || (f.no_contract && !f.kernel))
        set_flags(s->m, body, f.fast, f.no_contract && !f.kernel);
    if (!has_calls(s->m, body))
        return SK_OK;
    TRY(inline_callees(s, body));

    struct pass_map map;
    map_init(&map, s->m);
    const sk_status st = inline_region(s, func, body, &map);
    if (st == SK_OK)
        map_region(&map, body);
    map_free(&map);
    return st;
}

sk_status pass_inline(struct ir_module *m, uint32_t kernel, uint32_t max_nodes, sk_error *err)
{
    struct inliner s = {.m = m, .mem = mem_temp(m->mem), .max_nodes = max_nodes, .err = err};
    s.done = mem_zalloc(s.mem, m->funcs.n);
    const sk_status st = inline_func(&s, kernel);
    mem_temp_end(s.mem);
    TRY(st);
    m->funcs.at[1] = m->funcs.at[kernel];
    m->funcs.n = 2;
    return SK_OK;
}
