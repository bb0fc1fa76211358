/* analysis.c - the parts of the analysis in order, what they found, and that as text. */
#include "pass/analysis.h"

#include "pass/facts.h"

void analysis_run(struct mem *mem, const struct ir_module *m, uint32_t func, const struct shape *shape,
                  bool loads_uniform, struct analysis *out)
{
    const uint32_t n = m->nodes.n;
    *out = (struct analysis){.m = m, .func = func, .shape = *shape};
    out->first = mem_zalloc(mem, sizeof *out->first * (n + 1));
    for (uint32_t id = 1; id < n; id++) {
        const ir_type t = ir_at(m, id)->type;
        out->first[id + 1] = out->first[id] + (t ? components(t) : 0);
    }
    const uint32_t parts = out->first[n];
    out->lane = mem_zalloc(mem, sizeof *out->lane * (parts + 1));
    out->bound = mem_zalloc(mem, sizeof *out->bound * (parts + 1));
    out->active = mem_zalloc(mem, sizeof *out->active * (parts + 1));
    out->control = mem_zalloc(mem, n);
    out->diverges = mem_zalloc(mem, n);
    out->trips = mem_zalloc(mem, sizeof *out->trips * n);
    out->fact_at = mem_zalloc(mem, sizeof *out->fact_at * n);
    range_active(out, mem);
    range_all(out, false);
    uniform_run(out, mem, loads_uniform);
    range_all(out, true);
}

static uint32_t component(const struct analysis *a, uint32_t node, unsigned k)
{
    return a->first[node] + (ir_type_width(ir_at(a->m, node)->type) > 1 ? k : 0);
}

struct lane_info analysis_lane(const struct analysis *a, uint32_t node, unsigned k)
{
    return a->lane[component(a, node, k)];
}

struct bounds analysis_bounds(const struct analysis *a, uint32_t node, unsigned k)
{
    return a->bound[component(a, node, k)];
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

struct facts_text {
    const struct analysis *a;
    struct buf *out;
    uint32_t count;
};

static const char level_name[] = "GTSV";

static void put_name(struct facts_text *p, uint32_t id, unsigned depth)
{
    const struct node *const x = ir_at(p->a->m, id);
    buf_fmt(p->out, "%*s%%", (int)(2 * depth + 2), "");
    if (x->name)
        buf_fmt(p->out, "%s.", strtab_str(&p->a->m->strings, x->name));
    buf_fmt(p->out, "%u", p->count++);
}

static void put_bounds(struct facts_text *p, struct bounds b, ir_type t)
{
    const struct bounds f = bounds_of_type(t);
    if (bounds_same(b, f))
        buf_str(p->out, "any");
    else if (b.wide)
        buf_fmt(p->out, "from %lld", (long long)b.lo);
    else if (b.lo == b.hi)
        buf_fmt(p->out, "%lld", (long long)b.lo);
    else
        buf_fmt(p->out, "%lld to %lld", (long long)b.lo, (long long)b.hi);
}

/* ": u32 V+1 0 to 31 (any lane: any)", for each component. */
static void put_facts(struct facts_text *p, uint32_t id)
{
    const struct analysis *const a = p->a;
    const ir_type t = ir_at(a->m, id)->type;
    buf_str(p->out, ": ");
    ir_type_print(a->m, p->out, t);
    for (unsigned k = 0; k < components(t); k++) {
        const struct lane_info l = analysis_lane(a, id, k);
        const struct bounds all = a->bound[a->first[id] + k], active = a->active[a->first[id] + k];
        buf_fmt(p->out, "%s %c", k ? "," : "", level_name[l.uniform]);
        if (l.linear && l.uniform == UNIFORM_V)
            buf_fmt(p->out, "%+lld", (long long)l.stride);
        if (!(ir_type_class(a->m, t) & CLASS_BSU) || (bounds_same(all, bounds_of_type(t)) && bounds_same(all, active)))
            continue;
        buf_char(p->out, ' ');
        put_bounds(p, active, t);
        if (bounds_same(all, active))
            continue;
        buf_str(p->out, " (all lanes: ");
        put_bounds(p, all, t);
        buf_char(p->out, ')');
    }
    buf_char(p->out, '\n');
}

static void put_region(struct facts_text *p, uint32_t region, unsigned depth, uint8_t *control);

static void put_construct(struct facts_text *p, uint32_t id, unsigned depth)
{
    const struct analysis *const a = p->a;
    const struct ir_module *const m = a->m;
    const struct node *const x = ir_at(m, id);
    for (uint32_t k = x->next; k && ir_at(m, k)->op == OP_RESULT && ir_at(m, k)->in[0] == id; k = ir_at(m, k)->next) {
        put_name(p, k, depth);
        put_facts(p, k);
    }
    for (unsigned k = 0; k < ir_n_regions(m, id); k++) {
        const uint32_t region = ir_region(m, id, k), first = ir_region_at(m, region)->first;
        if (!first)
            continue;
        uint8_t control = a->control[first];
        buf_fmt(p->out, "%*s%s control %c", (int)(2 * depth + 2), "",
                x->op == OP_IF && k == 1      ? "else"
                : x->op == OP_SWITCH && k > 0 ? "case"
                                              : op_info[x->op].name,
                level_name[control]);
        if (x->op == OP_LOOP && a->diverges[id])
            buf_str(p->out, ", diverges");
        if (x->op == OP_LOOP && a->trips[id] != UINT64_MAX)
            buf_fmt(p->out, ", repeats %llu at most", (unsigned long long)a->trips[id]);
        buf_char(p->out, '\n');
        put_region(p, region, depth + 1, &control);
    }
}

static void put_region(struct facts_text *p, uint32_t region, unsigned depth, uint8_t *control)
{
    IR_EACH(p->a->m, region, id)
    {
        const struct node *const x = ir_at(p->a->m, id);
        if (p->a->control[id] != *control) {
            *control = p->a->control[id];
            buf_fmt(p->out, "%*srest control %c\n", (int)(2 * depth + 2), "", level_name[*control]);
        }
        if (ir_is_construct(x->op)) {
            put_construct(p, id, depth);
        } else if (x->type && x->op != OP_RESULT) {
            put_name(p, id, depth);
            put_facts(p, id);
        }
    }
}

void analysis_print(const struct analysis *a, struct buf *out)
{
    const struct func *const f = &a->m->funcs.at[a->func];
    struct facts_text p = {a, out, 0};
    uint8_t control = UNIFORM_G;
    buf_fmt(out, "kernel %s: threadgroup %u,%u,%u%s width %u\n", strtab_str(&a->m->strings, f->name), a->shape.dims[0],
            a->shape.dims[1], a->shape.dims[2], a->shape.edge ? " or less," : "", a->shape.width);
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const q = &a->m->params.at[f->first_param + k];
        buf_fmt(out, "  %%%s", strtab_str(&a->m->strings, q->name));
        put_facts(&p, q->node);
    }
    put_region(&p, f->region, 0, &control);
}
