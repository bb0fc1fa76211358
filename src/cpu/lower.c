/* lower.c - a kernel to LLVM text: the driver, and values as operands. */
#include "cpu/control.h"

#include <stdio.h>

struct value_param {
    uint32_t first, n; /* of l->leaves */
};

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

uint32_t lower_leaves(const struct ir_module *m, ir_type t)
{
    const struct type x = *ir_type_at(m, t);
    uint64_t n = 0;
    switch ((enum type_kind)x.kind) {
    case TYPE_KIND_VOID: return 0;
    case TYPE_KIND_SCALAR: return 1;
    case TYPE_KIND_POINTER: return 2;
    case TYPE_KIND_VECTOR: return x.n;
    case TYPE_KIND_STRUCT:
        for (uint32_t k = 0; k < x.n_fields && n < UINT16_MAX; k++)
            n += lower_leaves(m, m->fields.at[x.first_field + k].type);
        break;
    case TYPE_KIND_ARRAY: {
        const uint64_t each = lower_leaves(m, x.elem);
        n = each && x.count > UINT16_MAX / each ? UINT32_MAX : each * x.count;
        break;
    }
    }
    return n > UINT16_MAX ? UINT32_MAX : (uint32_t)n;
}

enum elem lower_elem(enum scalar s)
{
    switch (s) {
    case S_BOOL: return E_I1;
    case S_I8:
    case S_U8: return E_I8;
    case S_I16:
    case S_U16:
    case S_F16:
    case S_BF16: return E_I16;
    case S_I32:
    case S_U32: return E_I32;
    case S_I64:
    case S_U64: return E_I64;
    case S_F32: return E_F32;
    case S_VOID:
    case S_COUNT: break;
    }
    return E_I8;
}

/* The element of leaf k of a type; with `offset` and `scalar` where it lies in memory and what it is (pointers: S_VOID). */
enum elem lower_leaf_elem(const struct ir_module *m, ir_type t, uint32_t k, uint64_t *offset, enum scalar *scalar)
{
    for (;;) {
        const struct type x = *ir_type_at(m, t);
        switch ((enum type_kind)x.kind) {
        case TYPE_KIND_VOID: return E_I8;
        case TYPE_KIND_SCALAR: *scalar = (enum scalar)x.scalar; return lower_elem(*scalar);
        case TYPE_KIND_POINTER: *scalar = S_VOID; return k ? E_I32 : E_I64;
        case TYPE_KIND_VECTOR:
            *offset += (uint64_t)k * scalar_info[x.scalar].bytes;
            *scalar = (enum scalar)x.scalar;
            return lower_elem(*scalar);
        case TYPE_KIND_STRUCT:
            for (uint32_t f = 0; f < x.n_fields; f++) {
                const struct field *const q = &m->fields.at[x.first_field + f];
                const uint32_t n = lower_leaves(m, q->type);
                if (k < n) {
                    t = q->type;
                    *offset += q->offset;
                    break;
                }
                k -= n;
            }
            break;
        case TYPE_KIND_ARRAY: {
            const uint32_t n = lower_leaves(m, x.elem);
            *offset += (uint64_t)(k / n) * ir_type_at(m, x.elem)->size;
            k %= n;
            t = x.elem;
            break;
        }
        }
    }
}

static struct val zero_leaf(const struct lower *l, ir_type t, uint32_t k)
{
    uint64_t offset = 0;
    enum scalar s;
    return e_const(lower_leaf_elem(l->m, t, k, &offset, &s), 0);
}

static struct val param_leaf(struct lower *l, const struct param *p, uint32_t number, uint32_t node, uint32_t k)
{
    switch ((enum param_kind)p->kind) {
    case PARAM_BUFFER:
    case PARAM_THREADGROUP: return memory_pointer(l, node, k);
    case PARAM_VALUE: return l->leaves.at[l->value_param[number].first + k];
    case PARAM_ATTRIBUTE: {
        const struct val x = attribute_lower(l, (enum attribute)p->attribute, k);
        return ir_type_scalar(p->type) == S_U16 ? e_cast(&l->e, "trunc", x, E_I16) : x;
    }
    }
    return e_i32(0);
}

struct val lower_in(struct lower *l, uint32_t node, uint32_t k)
{
    const struct node *const x = ir_at(l->m, node);
    if (x->op == OP_CONST)
        return e_const(lower_elem((enum scalar)x->type), x->imm);
    if (x->op == OP_ZERO)
        return zero_leaf(l, x->type, k);
    if (x->op == OP_PARAM)
        return param_leaf(l, &l->m->params.at[l->kernel->first_param + x->imm], (uint32_t)x->imm, node, k);
    if (x->op == OP_INDEX || x->op == OP_FIELD || x->op == OP_ALLOC)
        return memory_pointer(l, node, k);
    return l->leaves.at[l->first[node] + k];
}

void lower_out(struct lower *l, uint32_t node)
{
    const uint32_t n = lower_leaves(l->m, ir_at(l->m, node)->type);
    l->first[node] = l->leaves.n;
    for (uint32_t k = 0; k < n; k++)
        VEC_PUSH(l->mem, &l->leaves, ((struct val){0}));
}

void lower_set(struct lower *l, uint32_t node, uint32_t k, struct val x)
{
    l->leaves.at[l->first[node] + k] = x;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

uint32_t lower_site(struct lower *l, uint32_t place)
{
    if (l->site_of[place])
        return l->site_of[place] - 1;
    const struct err_place at = ir_err_place(l->m, place);
    const struct cpu_site s = {at.file, at.line, at.column};
    VEC_PUSH(l->mem, &l->out->site, s);
    l->site_of[place] = l->out->site.n;
    return l->out->site.n - 1;
}

/* ---- the worker ------------------------------------------------------------------------------------------------- */

struct val lower_field(struct lower *l, unsigned offset, enum elem t)
{
    struct emit *const e = &l->e;
    const struct val at = e_gep(e, l->worker, e_i64(offset));
    const struct val r = e_named(t, false, e_id(e));
    char type[24];
    e_line(e, "%%v%u = load %s, ptr %%v%u", r.id, e_type_name(e, t, false, type), at.id);
    return r;
}

static const char *const helper_type[HELPER_COUNT] = {
#define HELPER(ID, function, type, doc) [HELPER_##ID] = type,
#include "cpu/helpers.def"
#undef HELPER
};

struct val lower_help(struct lower *l, enum helper h, enum elem to, unsigned n, const struct val *args)
{
    struct emit *const e = &l->e;
    const struct val table = lower_field(l, WORKER(helper), E_PTR);
    const struct val at = e_gep(e, table, e_i64(h * sizeof(void *)));
    const uint32_t function = e_id(e);
    e_line(e, "%%v%u = load ptr, ptr %%v%u", function, at.id);
    struct val r = {0};
    struct buf b;
    buf_init(&b, l->mem);
    if (to != E_COUNT) {
        r = e_named(to, false, e_id(e));
        buf_fmt(&b, "%%v%u = ", r.id);
    }
    buf_fmt(&b, "call %s %%v%u(ptr %%v%u", helper_type[h], function, l->worker.id);
    for (unsigned k = 0; k < n; k++) {
        char type[24];
        buf_fmt(&b, ", %s ", e_type_name(e, (enum elem)args[k].elem, false, type));
        e_operand(e, &b, args[k]);
    }
    buf_str(&b, ") #2");
    e_line(e, "%s", buf_text(&b));
    buf_free(&b);
    return r;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

void lower_node(struct lower *l, uint32_t node)
{
    if (!lower_memory(l, node) && !lower_pure(l, node))
        (void)lower_simd(l, node);
}

/* Parameters given by value are read at the start of the function. */
static void load_values(struct lower *l)
{
    struct emit *const e = &l->e;
    const struct val table = lower_field(l, WORKER(value), E_PTR);
    uint32_t arg = 0;
    l->value_param = mem_zalloc(l->mem, (l->kernel->n_params + 1u) * sizeof *l->value_param);
    for (uint32_t i = 0; i < l->kernel->n_params; i++) {
        const struct param *const p = &l->m->params.at[l->kernel->first_param + i];
        if (p->kind == PARAM_ATTRIBUTE)
            continue;
        arg++;
        if (p->kind != PARAM_VALUE)
            continue;
        const struct val slot = e_gep(e, table, e_i64((arg - 1) * sizeof(void *)));
        const struct val at = e_named(E_PTR, false, e_id(e));
        e_line(e, "%%v%u = load ptr, ptr %%v%u", at.id, slot.id);
        const uint32_t n = lower_leaves(l->m, p->type);
        const uint32_t first = l->leaves.n;
        for (uint32_t k = 0; k < n; k++) {
            uint64_t offset = 0;
            enum scalar s;
            const enum elem t = lower_leaf_elem(l->m, p->type, k, &offset, &s);
            const struct val from = e_gep(e, at, e_i64(offset));
            struct val x = e_named(t == E_I1 ? E_I8 : t, false, e_id(e));
            char type[24];
            e_line(e, "%%v%u = load %s, ptr %%v%u, align 1", x.id, e_type_name(e, (enum elem)x.elem, false, type),
                   from.id);
            if (t == E_I1)
                x = e_cmp(e, "icmp ne", x, e_const(E_I8, 0));
            VEC_PUSH(l->mem, &l->leaves, x);
        }
        l->value_param[i] = (struct value_param){first, n};
    }
}

void lower_start(struct lower *l)
{
    for (unsigned k = 0; k < 3; k++) {
        const uint32_t d = l->opt.dims[k];
        l->grid[k] = lower_field(l, WORKER(grid) + 4 * k, E_I32);
        l->groups[k] = lower_field(l, WORKER(groups) + 4 * k, E_I32);
        l->asked[k] = d ? e_i32(d) : lower_field(l, WORKER(asked) + 4 * k, E_I32);
        l->dims[k] = d ? e_i32(d) : lower_field(l, WORKER(dims) + 4 * k, E_I32);
    }
    l->threadgroup = lower_field(l, WORKER(threadgroup_memory), E_PTR);
    l->private_ = lower_field(l, WORKER(private_memory), E_PTR);
    load_values(l);
    memory_params(l);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

/* More leaves in one value than this are for memory, not for registers. */
#define MAX_VALUE_LEAVES 1024u

struct census {
    bool barrier, collective, returns_apart;
    bool float_bits; /* bits of floats become integers */
    const char *refused;
    uint8_t level; /* the highest level of control at a barrier */
};

static void count(const struct lower *l, uint32_t region, struct census *c)
{
    IR_EACH(l->m, region, id)
    {
        const struct node *const x = ir_at(l->m, id);
        if (x->op == OP_BARRIER) {
            c->barrier = true;
            c->level = l->a.control[id] > c->level ? l->a.control[id] : c->level;
        }
        if ((x->op == OP_RETURN || x->op == OP_UNREACHABLE) && l->a.control[id] > UNIFORM_T)
            c->returns_apart = true;
        if (op_info[x->op].effect == EFFECT_CONVERGENT && x->op != OP_BARRIER)
            c->collective = true;
        if (x->op == OP_CALL || x->op == OP_PRINT || x->op == OP_VAR)
            c->refused = op_info[x->op].name;
        if (x->op == OP_BITCAST) {
            const enum scalar from = ir_type_scalar(ir_at(l->m, x->in[0])->type);
            c->float_bits = c->float_bits || (scalar_info[from].class_ == CLASS_F && from != ir_type_scalar(x->type));
        }
        if (x->type != TYPE_VOID && lower_leaves(l->m, x->type) > MAX_VALUE_LEAVES)
            c->refused = "a value of more than 1,024 scalars";
        if (ir_is_construct(x->op))
            for (unsigned r = 0; r < ir_n_regions(l->m, id); r++)
                count(l, ir_region(l->m, id, r), c);
    }
}

static void analyse(struct lower *l, bool loads_uniform, struct census *c)
{
    const struct shape shape = {
        .dims = {l->opt.dims[0], l->opt.dims[1], l->opt.dims[2]}, .width = l->opt.width, .edge = l->opt.edge};
    analysis_run(l->mem, l->m, l->func, &shape, loads_uniform, &l->a);
    *c = (struct census){0};
    count(l, l->kernel->region, c);
}

/* How often a bundle runs what is in a region, and whether each loop ends soon. */
#define SHORT_TRIPS ((uint64_t)1 << 16)
static uint64_t weigh(const struct lower *l, uint32_t region, bool *bounded)
{
    uint64_t sum = 0;
    IR_EACH(l->m, region, id)
    {
        uint64_t inside = 1;
        if (ir_is_construct(ir_at(l->m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(l->m, id); r++)
                inside += weigh(l, ir_region(l->m, id, r), bounded);
        if (ir_at(l->m, id)->op == OP_LOOP) {
            const uint64_t trips = l->a.trips[id];
            *bounded = *bounded && trips <= SHORT_TRIPS;
            inside *= trips <= SHORT_TRIPS ? trips : 16;
        }
        sum += inside;
        if (sum > UINT32_MAX)
            sum = UINT32_MAX;
    }
    return sum;
}

/* Kernels with barriers: one phase if a bundle is all of the threadgroup, split at the barriers if their control is that of
 * the threadgroup (if need be, with what is loaded from shared addresses loaded once for all), else fibers. */
static bool choose_form(struct lower *l, struct census *c)
{
    const uint32_t n = l->opt.dims[0] * l->opt.dims[1] * l->opt.dims[2];
    if (!c->barrier || (c->level <= UNIFORM_S && n && n <= l->opt.width))
        return true;
    if (c->level <= UNIFORM_T && phase_plan(l, false))
        return true;
    l->phases = NULL;
    l->out->private_bytes = 0;
    if (!c->returns_apart) {
        analyse(l, true, c);
        if (c->level <= UNIFORM_T && phase_plan(l, true))
            return true;
        l->phases = NULL;
        l->out->private_bytes = 0;
        analyse(l, false, c);
    }
    l->out->fibers = true;
    if (c->level <= UNIFORM_S)
        return true;
    if (c->collective) {
        l->out->interpret = "barriers that lanes of a simdgroup reach apart, and collectives";
        return false;
    }
    l->opt.width = l->e.width = 1; /* a fiber for each thread */
    analyse(l, false, c);
    control_plan(l, l->kernel->region);
    return true;
}

static sk_status lower_all(struct lower *l, struct buf *text)
{
    struct census c;
    l->opt.width = attribute_width(l->m, l->func, &l->opt);
    emit_init(&l->e, l->mem, l->opt.width);
    analyse(l, false, &c);
    if (c.refused) {
        l->out->interpret = c.refused;
        return SK_OK;
    }
    l->canonical_nans = c.float_bits;
    control_plan(l, l->kernel->region);
    if (!choose_form(l, &c))
        return SK_OK;
    l->out->bounded = true;
    const uint64_t weight = weigh(l, l->kernel->region, &l->out->bounded);
    l->out->weight = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
    l->out->bounded = l->out->bounded && weight < 4 * SHORT_TRIPS;
    l->out->width = l->opt.width;
    phase_kernel(l);
    emit_text(&l->e, text);
    return SK_OK;
}

sk_status cpu_lower(struct mem *mem, const struct ir_module *m, uint32_t func, const struct cpu_options *opt,
                    struct buf *text, struct cpu_lowered *out, sk_error *err)
{
    (void)err;
    *out = (struct cpu_lowered){0};
    struct mem *const temp = mem_temp(mem);
    struct cpu_lowered found = {0};
    struct lower *const l = mem_zalloc(temp, sizeof *l);
    *l = (struct lower){.mem = temp, .m = m, .func = func, .kernel = &m->funcs.at[func], .opt = *opt, .out = &found};
    l->first = mem_zalloc(temp, (m->nodes.n + 1u) * sizeof *l->first);
    l->region_of = mem_zalloc(temp, (m->nodes.n + 1u) * sizeof *l->region_of);
    l->site_of = mem_zalloc(temp, (m->places.n + 1u) * sizeof *l->site_of);
    VEC_PUSH(temp, &l->leaves, ((struct val){0}));
    const sk_status st = lower_all(l, text);
    *out = found;
    out->site.at = NULL, out->site.n = out->site.cap = 0;
    out->region.at = NULL, out->region.n = out->region.cap = 0;
    out->message.at = NULL, out->message.n = out->message.cap = 0;
    for (uint32_t k = 0; k < found.site.n; k++)
        VEC_PUSH(mem, &out->site, found.site.at[k]);
    for (uint32_t k = 0; k < found.region.n; k++)
        VEC_PUSH(mem, &out->region, found.region.at[k]);
    for (uint32_t k = 0; k < found.message.n; k++)
        VEC_PUSH(mem, &out->message, found.message.at[k]);
    mem_temp_end(temp);
    return st;
}

void cpu_lowered_free(struct mem *mem, struct cpu_lowered *x)
{
    VEC_FREE(mem, &x->site);
    VEC_FREE(mem, &x->region);
    VEC_FREE(mem, &x->message);
}
