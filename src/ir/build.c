/* build.c - the only writer of nodes.
 *
 * Operand lists may be given by a pointer into the module itself (`ir_in`): every function copies them before it adds
 * anything. An operand list of more than 65,535 values does not fit a node and counts as out of memory; whoever reads
 * untrusted input limits lists first.
 */
#include "ir/ir.h"

#include <assert.h>

/* ---- tables: strings, places, constants ------------------------------------------------------------------------ */

uint32_t ir_string(struct ir_module *m, const char *s)
{
    return strtab_id(&m->strings, s, strlen(s));
}

/* A hash table of ids whose keys are found through the id; 0 is free, at most half of the slots are taken. */
static uint32_t *grow_slots(struct mem *mem, const uint32_t *old, uint32_t n_old, uint32_t n_new,
                            uint64_t (*hash)(const struct ir_module *, uint32_t), const struct ir_module *m)
{
    uint32_t *const slots = mem_zalloc(mem, n_new * sizeof *slots);
    for (uint32_t k = 0; k < n_old; k++) {
        if (!old[k])
            continue;
        uint32_t i = (uint32_t)hash(m, old[k]) & (n_new - 1);
        while (slots[i])
            i = (i + 1) & (n_new - 1);
        slots[i] = old[k];
    }
    return slots;
}

#define GROW_SLOTS(m, taken, slots, n_slots, hash)                                                                     \
    do {                                                                                                               \
        if (SK_UNLIKELY(2 * ((taken) + 1) > (m)->n_slots)) {                                                           \
            const uint32_t n_ = (m)->n_slots ? 2 * (m)->n_slots : 64;                                                  \
            uint32_t *const fresh_ = grow_slots((m)->mem, (m)->slots, (m)->n_slots, n_, (hash), (m));                  \
            mem_free((m)->mem, (m)->slots, (m)->n_slots * sizeof *(m)->slots);                                         \
            (m)->slots = fresh_;                                                                                       \
            (m)->n_slots = n_;                                                                                         \
        }                                                                                                              \
    } while (0)

static uint64_t place_hash(const struct place *p)
{
    return hash_u64(hash_u64(p->at, (uint64_t)p->file << 32 | p->line), p->column);
}

static uint64_t place_id_hash(const struct ir_module *m, uint32_t id)
{
    return place_hash(&m->places.at[id]);
}

uint32_t ir_place(struct ir_module *m, uint32_t file, uint32_t line, uint32_t column, uint32_t at)
{
    const struct place p = {file, line, column, at};
    if (!(file | line | column | at))
        return 0;
    GROW_SLOTS(m, m->places.n, place_slots, n_place_slots, place_id_hash);
    uint32_t i = (uint32_t)place_hash(&p) & (m->n_place_slots - 1);
    for (; m->place_slots[i]; i = (i + 1) & (m->n_place_slots - 1)) {
        const struct place *const old = &m->places.at[m->place_slots[i]];
        if (old->file == file && old->line == line && old->column == column && old->at == at)
            return m->place_slots[i];
    }
    const uint32_t id = m->places.n;
    VEC_PUSH(m->mem, &m->places, p);
    m->place_slots[i] = id;
    return id;
}

struct err_place ir_err_place(const struct ir_module *m, uint32_t place)
{
    const struct place *const p = &m->places.at[place];
    if (!p->file)
        return (struct err_place){NULL, p->line, p->column};
    return (struct err_place){strtab_str(&m->strings, p->file), p->line, p->column};
}

static uint64_t const_hash(ir_type type, uint64_t bits)
{
    return hash_u64(type, bits);
}

static uint64_t const_id_hash(const struct ir_module *m, uint32_t id)
{
    const struct node *const x = ir_at(m, id);
    return const_hash(x->type, x->imm);
}

/* A type has either CONST or ZERO nodes, so that (type, bits) is the whole key. */
static uint32_t intern_const(struct ir_module *m, enum op op, ir_type type, uint64_t bits)
{
    GROW_SLOTS(m, m->n_consts, const_slots, n_const_slots, const_id_hash);
    uint32_t i = (uint32_t)const_hash(type, bits) & (m->n_const_slots - 1);
    for (; m->const_slots[i]; i = (i + 1) & (m->n_const_slots - 1)) {
        const struct node *const old = ir_at(m, m->const_slots[i]);
        if (old->imm == bits && old->type == type)
            return m->const_slots[i];
    }
    const uint32_t id = m->nodes.n;
    VEC_PUSH(m->mem, &m->nodes, ((struct node){.op = (uint16_t)op, .type = type, .imm = bits}));
    m->const_slots[i] = id;
    m->n_consts++;
    return id;
}

uint32_t ir_const(struct ir_module *m, ir_type scalar, uint64_t bits)
{
    const unsigned width = scalar_info[ir_type_scalar(scalar)].bits;
    return intern_const(m, OP_CONST, scalar, width == 64 ? bits : bits & (((uint64_t)1 << width) - 1));
}

uint32_t ir_zero(struct ir_module *m, ir_type t)
{
    return intern_const(m, ir_type_width(t) == 1 ? OP_CONST : OP_ZERO, t, 0);
}

uint32_t ir_const_f(struct ir_module *m, ir_type scalar, double x)
{
    if (scalar == S_F16)
        return ir_const(m, scalar, f16_from_f64(x));
    if (scalar == S_BF16)
        return ir_const(m, scalar, bf16_from_f64(x));
    return ir_const(m, scalar, bits_f32((float)x));
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

/* `n` new regions in a row; the first. */
static uint32_t new_regions(struct ir_module *m, uint32_t owner, unsigned n)
{
    VEC_RESERVE(m->mem, &m->regions, n);
    const uint32_t first = m->regions.n;
    for (unsigned k = 0; k < n; k++)
        m->regions.at[m->regions.n++] = (struct region){.owner = owner};
    return first;
}

uint32_t ir_func(struct ir_module *m, uint32_t name, bool kernel, ir_type result, uint32_t place)
{
    VEC_RESERVE(m->mem, &m->funcs, 1);
    const uint32_t region = new_regions(m, 0, 1);
    const uint32_t id = m->funcs.n;
    VEC_PUSH(m->mem, &m->funcs,
             ((struct func){.name = name, .place = place, .region = region, .result = result, .kernel = kernel}));
    return id;
}

uint32_t ir_param(struct ir_module *m, uint32_t func, const struct param *p)
{
    const struct param copy = *p;
    struct func *const f = &m->funcs.at[func];
    VEC_RESERVE(m->mem, &m->params, f->n_params + 1);
    VEC_RESERVE(m->mem, &m->nodes, 1);
    if (f->first_param + f->n_params != m->params.n) { /* none yet, or another function's came between */
        const uint32_t first = m->params.n;
        for (uint32_t k = 0; k < f->n_params; k++)
            m->params.at[m->params.n++] = m->params.at[f->first_param + k];
        f->first_param = first;
    }
    const uint32_t id = m->nodes.n;
    m->nodes.at[m->nodes.n++] =
        (struct node){.op = OP_PARAM, .type = copy.type, .place = copy.place, .name = copy.name, .imm = f->n_params};
    struct param *const fresh = &m->params.at[m->params.n++];
    *fresh = copy;
    fresh->node = id;
    f->n_params++;
    return id;
}

uint32_t ir_func_by_name(const struct ir_module *m, const char *name)
{
    for (uint32_t f = 1; f < m->funcs.n; f++)
        if (strcmp(strtab_str(&m->strings, m->funcs.at[f].name), name) == 0)
            return f;
    return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* Links an unlinked node into a region, before `before` (0: at the end). */
static void link_node(struct ir_module *m, uint32_t id, uint32_t region, uint32_t before)
{
    struct node *const x = ir_at(m, id);
    struct region *const r = ir_region_at(m, region);
    const uint32_t prev = before ? ir_at(m, before)->prev : r->last;
    x->region = region;
    x->prev = prev;
    x->next = before;
    *(prev ? &ir_at(m, prev)->next : &r->first) = id;
    *(before ? &ir_at(m, before)->prev : &r->last) = id;
}

/* Puts the operands into x, in the side array if they are many, where there is already room for `room`. */
static void set_operands(struct ir_module *m, uint32_t id, unsigned n, const uint32_t *in, unsigned room)
{
    if (SK_UNLIKELY(n > UINT16_MAX))
        mem_out_of_memory(m->mem);
    if (n <= NODE_INLINE) {
        struct node *const x = ir_at(m, id);
        uint32_t copy[NODE_INLINE] = {0};
        for (unsigned k = 0; k < n; k++)
            copy[k] = in[k];
        memcpy(x->in, copy, sizeof copy);
        x->n = (uint16_t)n;
        return;
    }
    if (n <= room) {
        memmove(m->side.at + ir_at(m, id)->in[0], in, n * sizeof *in);
    } else {
        const bool own = (uintptr_t)in >= (uintptr_t)m->side.at && (uintptr_t)in < (uintptr_t)(m->side.at + m->side.n);
        const size_t offset = own ? (size_t)(in - m->side.at) : 0;
        VEC_RESERVE(m->mem, &m->side, n);
        memcpy(m->side.at + m->side.n, own ? m->side.at + offset : in, n * sizeof *in);
        ir_at(m, id)->in[0] = m->side.n;
        m->side.n += n;
    }
    ir_at(m, id)->n = (uint16_t)n;
}

/* An unlinked node. */
static uint32_t new_node(struct ir_module *m, const struct node *x, unsigned n, const uint32_t *in)
{
    struct node fresh = *x;
    if (n <= NODE_INLINE) {
        fresh.n = (uint16_t)n;
        for (unsigned k = 0; k < n; k++)
            fresh.in[k] = in[k];
    }
    const uint32_t id = m->nodes.n;
    VEC_PUSH(m->mem, &m->nodes, fresh);
    if (n > NODE_INLINE)
        set_operands(m, id, n, in, 0);
    return id;
}

uint32_t ir_node(struct ir_builder *b, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                 uint64_t imm)
{
    struct ir_module *const m = b->m;
    const struct node x = {.op = (uint16_t)op, .type = type, .flags = (uint16_t)flags, .place = b->place, .imm = imm};
    const uint32_t id = new_node(m, &x, n, in);
    if (b->region)
        link_node(m, id, b->region, b->before);
    return id;
}

static ir_type result_type(const struct ir_module *m, enum op op, const uint32_t *in)
{
    switch ((enum op_rule)op_info[op].rule) {
    case RULE_NONE:
    case RULE_GIVEN: return TYPE_VOID;
    case RULE_SAME:
    case RULE_SHIFT:
    case RULE_LANES: return ir_at(m, in[0])->type;
    case RULE_SELECT: return ir_at(m, in[1])->type;
    case RULE_VOTE: return TYPE_BOOL;
    case RULE_COMPARE: {
        const ir_type t = ir_at(m, in[0])->type;
        return ir_type_is_pointer(t) ? TYPE_BOOL : ir_type_with(t, S_BOOL);
    }
    }
    return TYPE_VOID;
}

static bool all_constant(const struct ir_module *m, unsigned n, const uint32_t *in)
{
    for (unsigned k = 0; k < n; k++)
        if (ir_at(m, in[k])->op != OP_CONST && ir_at(m, in[k])->op != OP_ZERO)
            return false;
    return n > 0;
}

uint32_t ir_op(struct ir_builder *b, enum op op, unsigned n, const uint32_t *in, unsigned flags)
{
    const ir_type type = result_type(b->m, op, in);
    if (all_constant(b->m, n, in)) {
        const uint32_t id = ir_fold(b->m, op, type, n, in, flags, 0);
        if (id)
            return id;
    }
    return ir_node(b, op, type, n, in, flags, 0);
}

uint32_t ir_convert(struct ir_builder *b, ir_type to, uint32_t x)
{
    if (ir_at(b->m, x)->type == to)
        return x;
    if (all_constant(b->m, 1, &x)) {
        const uint32_t id = ir_fold(b->m, OP_CONVERT, to, 1, &x, 0, 0);
        if (id)
            return id;
    }
    return ir_node(b, OP_CONVERT, to, 1, &x, 0, 0);
}

uint32_t ir_load(struct ir_builder *b, ir_type t, uint32_t pointer)
{
    return ir_node(b, OP_LOAD, t, 1, &pointer, 0, 0);
}

void ir_store(struct ir_builder *b, uint32_t pointer, uint32_t x)
{
    (void)ir_node(b, OP_STORE, TYPE_VOID, 2, (const uint32_t[]){pointer, x}, 0, 0);
}

uint32_t ir_index(struct ir_builder *b, ir_type elem, uint32_t pointer, uint32_t i)
{
    return ir_node(b, OP_INDEX, ir_at(b->m, pointer)->type, 2, (const uint32_t[]){pointer, i}, 0, elem);
}

/* ---- constructs ------------------------------------------------------------------------------------------------ */

uint32_t ir_construct(struct ir_builder *b, enum op op, unsigned n, const uint32_t *in, unsigned n_regions)
{
    struct ir_module *const m = b->m;
    const uint32_t id = ir_node(b, op, TYPE_VOID, n, in, 0, 0);
    const uint32_t first = new_regions(m, id, n_regions);
    ir_at(m, id)->imm = first | (uint64_t)n_regions << 32;
    if (op == OP_LOOP) {
        struct ir_builder body = {.m = m, .func = b->func, .region = first, .place = b->place};
        VEC_RESERVE(m->mem, &m->nodes, n);
        for (unsigned k = 0; k < n; k++)
            (void)ir_node(&body, OP_ARG, ir_at(m, ir_in(m, id)[k])->type, 0, NULL, 0, k);
    }
    return id;
}

uint32_t ir_region(const struct ir_module *m, uint32_t construct, unsigned k)
{
    return (uint32_t)ir_at(m, construct)->imm + k;
}

unsigned ir_n_regions(const struct ir_module *m, uint32_t construct)
{
    return (unsigned)(ir_at(m, construct)->imm >> 32);
}

uint32_t ir_arg(const struct ir_module *m, uint32_t loop, unsigned k)
{
    const uint32_t region = ir_region(m, loop, 0);
    uint32_t id = ir_region_at(m, region)->first;
    const uint64_t guess = (uint64_t)id + k; /* they were made in a row */
    if (guess < m->nodes.n) {
        const struct node *const x = ir_at(m, (uint32_t)guess);
        if (x->op == OP_ARG && x->region == region && x->imm == k)
            return (uint32_t)guess;
    }
    while (id && ir_at(m, id)->op == OP_ARG && ir_at(m, id)->imm != k)
        id = ir_at(m, id)->next;
    return id && ir_at(m, id)->op == OP_ARG ? id : 0;
}

/* One more operand at the end. */
static void append_operand(struct ir_module *m, uint32_t id, uint32_t operand)
{
    const unsigned n = ir_at(m, id)->n;
    if (SK_UNLIKELY(n == UINT16_MAX))
        mem_out_of_memory(m->mem);
    VEC_RESERVE(m->mem, &m->side, n + 1);
    struct node *const x = ir_at(m, id);
    if (n < NODE_INLINE) {
        x->in[n] = operand;
    } else if (n > NODE_INLINE && x->in[0] + n == m->side.n) {
        m->side.at[m->side.n++] = operand;
    } else {
        memcpy(m->side.at + m->side.n, ir_in(m, id), n * sizeof operand);
        x->in[0] = m->side.n;
        m->side.n += n;
        m->side.at[m->side.n++] = operand;
    }
    x->n++;
}

uint32_t ir_add_arg(struct ir_module *m, uint32_t loop, ir_type t, uint32_t first)
{
    const uint32_t region = ir_region(m, loop, 0);
    const unsigned n = ir_at(m, loop)->n;
    const struct node arg = {.op = OP_ARG, .type = t, .place = ir_at(m, loop)->place, .imm = n};
    const uint32_t before = n ? ir_at(m, ir_arg(m, loop, n - 1))->next : ir_region_at(m, region)->first;
    const uint32_t id = new_node(m, &arg, 0, NULL);
    append_operand(m, loop, first);
    link_node(m, id, region, before);
    return id;
}

static bool is_result_of(const struct ir_module *m, uint32_t id, uint32_t construct)
{
    return id && ir_at(m, id)->op == OP_RESULT && ir_at(m, id)->in[0] == construct;
}

uint32_t ir_result(struct ir_module *m, uint32_t construct, ir_type t)
{
    uint32_t before = ir_at(m, construct)->next;
    unsigned k = 0;
    for (; is_result_of(m, before, construct); before = ir_at(m, before)->next)
        k++;
    const struct node x = {.op = OP_RESULT, .type = t, .place = ir_at(m, construct)->place, .imm = k};
    const uint32_t id = new_node(m, &x, 1, &construct);
    link_node(m, id, ir_at(m, construct)->region, before);
    return id;
}

unsigned ir_n_results(const struct ir_module *m, uint32_t construct)
{
    unsigned k = 0;
    for (uint32_t id = ir_at(m, construct)->next; is_result_of(m, id, construct); id = ir_at(m, id)->next)
        k++;
    return k;
}

uint32_t ir_br(struct ir_builder *b, uint32_t construct, unsigned n, const uint32_t *in)
{
    return ir_node(b, OP_BR, TYPE_VOID, n, in, 0, construct);
}

void ir_case(struct ir_module *m, uint32_t region, int64_t value)
{
    const uint32_t n = ir_region_at(m, region)->n_cases;
    VEC_RESERVE(m->mem, &m->cases, n + 1);
    struct region *const r = ir_region_at(m, region);
    if (r->first_case + n != m->cases.n) { /* none yet, or another region's came between */
        const uint32_t first = m->cases.n;
        for (uint32_t k = 0; k < n; k++)
            m->cases.at[m->cases.n++] = m->cases.at[r->first_case + k];
        r->first_case = first;
    }
    m->cases.at[m->cases.n++] = value;
    r->n_cases++;
}

uint32_t ir_add_region(struct ir_module *m, uint32_t sw)
{
    const uint32_t old = ir_region(m, sw, 0);
    const unsigned n = ir_n_regions(m, sw);
    uint32_t first = old;
    if (n == 0 || old + n != m->regions.n) { /* others came between: a construct's regions lie in a row */
        first = new_regions(m, sw, n + 1);
        for (unsigned k = 0; k < n; k++) {
            *ir_region_at(m, first + k) = *ir_region_at(m, old + k);
            for (uint32_t id = ir_region_at(m, old + k)->first; id; id = ir_at(m, id)->next)
                ir_at(m, id)->region = first + k;
        }
    } else {
        (void)new_regions(m, sw, 1);
    }
    ir_at(m, sw)->imm = first | (uint64_t)(n + 1) << 32;
    return first + n;
}

/* ---- changing -------------------------------------------------------------------------------------------------- */

void ir_set_inputs(struct ir_module *m, uint32_t node, unsigned n, const uint32_t *in)
{
    const unsigned old = ir_at(m, node)->n;
    set_operands(m, node, n, in, old > NODE_INLINE ? old : 0);
}

void ir_unlink(struct ir_module *m, uint32_t node)
{
    struct node *const x = ir_at(m, node);
    if (!x->region)
        return;
    struct region *const r = ir_region_at(m, x->region);
    *(x->prev ? &ir_at(m, x->prev)->next : &r->first) = x->next;
    *(x->next ? &ir_at(m, x->next)->prev : &r->last) = x->prev;
    x->region = x->prev = x->next = 0;
}

void ir_insert_before(struct ir_module *m, uint32_t node, uint32_t region, uint32_t before)
{
    assert(!ir_at(m, node)->region && (!before || ir_at(m, before)->region == region));
    link_node(m, node, region, before);
}

void ir_splice(struct ir_module *m, uint32_t region, uint32_t where)
{
    struct region *const from = ir_region_at(m, region);
    if (!from->first)
        return;
    struct node *const after = ir_at(m, where);
    struct region *const to = ir_region_at(m, after->region);
    for (uint32_t id = from->first; id; id = ir_at(m, id)->next)
        ir_at(m, id)->region = after->region;
    *(after->prev ? &ir_at(m, after->prev)->next : &to->first) = from->first;
    ir_at(m, from->first)->prev = after->prev;
    ir_at(m, from->last)->next = where;
    after->prev = from->last;
    from->first = from->last = 0;
}
