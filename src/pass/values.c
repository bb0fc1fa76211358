/* values.c - pass V: locals to values.
 *
 * One walk in program order with the current value of every local. A construct that assigns locals declared outside it
 * carries them: a loop as parameters and results, others as results. Every exit to a construct appends the current
 * values of what that construct carries, in the order of their declaration. What turns out unused goes with pass D.
 */
#include <stdlib.h>

#include "pass/util.h"

struct carry { /* the locals one construct carries, ascending */
    uint32_t *vars, n;
};

struct walk {
    struct ir_module *m;
    struct mem *mem; /* working memory */
    struct arena arena;
    struct pass_map map;
    uint32_t *current;     /* by VAR node: its value now */
    uint32_t *depth;       /* by VAR node: nesting of the region that declares it */
    struct carry *carries; /* by construct node */
};

struct id_vec {
    VEC(uint32_t) v;
};

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void find_carries(struct walk *w, uint32_t construct, unsigned depth);

/* Appends the locals assigned in `region` (at nesting `depth`) that are declared at nesting `outer` or less. */
static void find_assigned(struct walk *w, uint32_t region, unsigned depth, unsigned outer, struct id_vec *out)
{
    IR_EACH(w->m, region, id)
    {
        const struct node *x = ir_at(w->m, id);
        if (x->op == OP_VAR) {
            w->depth[id] = depth;
        } else if (x->op == OP_SET) {
            const uint32_t var = ir_in(w->m, id)[0];
            if (w->depth[var] <= outer)
                VEC_PUSH(w->mem, &out->v, var);
        } else if (ir_is_construct(x->op)) {
            find_carries(w, id, depth);
            const struct carry c = w->carries[id];
            for (uint32_t i = 0; i < c.n; i++)
                if (w->depth[c.vars[i]] <= outer)
                    VEC_PUSH(w->mem, &out->v, c.vars[i]);
        }
    }
}

/* `depth` is the nesting of the region that the construct stands in. */
static void find_carries(struct walk *w, uint32_t construct, unsigned depth)
{
    struct id_vec set = {0};
    for (unsigned k = 0; k < ir_n_regions(w->m, construct); k++)
        find_assigned(w, ir_region(w->m, construct, k), depth + 1, depth, &set);

    struct carry c = {0};
    if (set.v.n) {
        qsort(set.v.at, set.v.n, sizeof *set.v.at, ascending);
        c.vars = ARENA_NEW(&w->arena, uint32_t, set.v.n);
        for (uint32_t i = 0; i < set.v.n; i++)
            if (!c.n || c.vars[c.n - 1] != set.v.at[i])
                c.vars[c.n++] = set.v.at[i];
    }
    VEC_FREE(w->mem, &set.v);
    w->carries[construct] = c;
}

/* Adds the current values of what `construct` carries to the operands of `exit`. */
static void extend_exit(struct walk *w, uint32_t exit, uint32_t construct)
{
    const struct carry c = w->carries[construct];
    if (!c.n)
        return;
    const unsigned old = ir_at(w->m, exit)->n;
    uint32_t *in = ARENA_NEW(&w->arena, uint32_t, old + c.n);
    memcpy(in, ir_in(w->m, exit), sizeof *in * old);
    for (uint32_t i = 0; i < c.n; i++)
        in[old + i] = w->current[c.vars[i]];
    ir_set_inputs(w->m, exit, old + c.n, in);
}

static bool has_default(const struct ir_module *m, uint32_t sw)
{
    for (unsigned k = 0; k < ir_n_regions(m, sw); k++)
        if (ir_region_at(m, ir_region(m, sw, k))->is_default)
            return true;
    return false;
}

static void walk_region(struct walk *w, uint32_t func, uint32_t region);

static void walk_construct(struct walk *w, uint32_t func, uint32_t id)
{
    struct ir_module *m = w->m;
    const struct carry c = w->carries[id];
    const bool loop = ir_at(m, id)->op == OP_LOOP;
    uint32_t *entry = ARENA_NEW(&w->arena, uint32_t, c.n + 1u);

    for (uint32_t i = 0; i < c.n; i++) {
        entry[i] = w->current[c.vars[i]];
        if (loop) {
            const struct node var = *ir_at(m, c.vars[i]);
            entry[i] = ir_add_arg(m, id, var.type, entry[i]);
            ir_at(m, entry[i])->name = var.name;
        }
    }
    /* A value that no case lists leaves with the values it came with. */
    if (ir_at(m, id)->op == OP_SWITCH && c.n && !has_default(m, id))
        ir_region_at(m, ir_add_region(m, id))->is_default = true;

    for (unsigned k = 0; k < ir_n_regions(m, id); k++) {
        const uint32_t region = ir_region(m, id, k);
        for (uint32_t i = 0; i < c.n; i++)
            w->current[c.vars[i]] = entry[i];
        walk_region(w, func, region);
        if (c.n && !region_ends_in_exit(m, region)) {
            struct ir_builder b = {.m = m, .func = func, .region = region, .place = ir_at(m, id)->place};
            extend_exit(w, ir_node(&b, OP_YIELD, TYPE_VOID, 0, NULL, 0, 0), id);
        }
    }
    for (uint32_t i = 0; i < c.n; i++) {
        const struct node var = *ir_at(m, c.vars[i]);
        const uint32_t result = ir_result(m, id, var.type);
        ir_at(m, result)->name = var.name;
        w->current[c.vars[i]] = result;
    }
}

static void walk_region(struct walk *w, uint32_t func, uint32_t region)
{
    struct ir_module *m = w->m;
    IR_EACH(m, region, id)
    {
        map_inputs(&w->map, id);
        const uint16_t op = ir_at(m, id)->op;
        const uint32_t *in = ir_in(m, id);
        if (op == OP_VAR) {
            w->current[id] = in[0];
            ir_unlink(m, id);
        } else if (op == OP_GET) {
            map_set(&w->map, id, w->current[in[0]]);
            ir_unlink(m, id);
        } else if (op == OP_SET) {
            w->current[in[0]] = in[1];
            ir_unlink(m, id);
        } else if (op == OP_BR) {
            extend_exit(w, id, (uint32_t)ir_at(m, id)->imm);
        } else if (op == OP_YIELD) {
            extend_exit(w, id, ir_region_at(m, region)->owner);
        } else if (ir_is_construct(op)) {
            walk_construct(w, func, id);
        }
    }
}

static bool has_locals(const struct ir_module *m, uint32_t region)
{
    IR_EACH(m, region, id)
    {
        if (ir_at(m, id)->op == OP_VAR)
            return true;
        if (ir_is_construct(ir_at(m, id)->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                if (has_locals(m, ir_region(m, id, k)))
                    return true;
    }
    return false;
}

void pass_values(struct ir_module *m, uint32_t func)
{
    const uint32_t body = m->funcs.at[func].region, n = m->nodes.n;
    if (!has_locals(m, body))
        return;

    struct walk w = {.m = m, .mem = mem_temp(m->mem)};
    arena_init(&w.arena, w.mem);
    map_init(&w.map, m);
    w.current = ARENA_NEW(&w.arena, uint32_t, n);
    w.depth = ARENA_NEW(&w.arena, uint32_t, n);
    w.carries = ARENA_NEW(&w.arena, struct carry, n);

    struct id_vec none = {0};
    find_assigned(&w, body, 1, 0, &none);
    walk_region(&w, func, body);

    map_free(&w.map);
    mem_temp_end(w.mem);
}
