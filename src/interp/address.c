/* address.c - pointers and memory operations to instructions.
 *
 * A pointer made by index and field from a parameter or an array is not computed where it is made: the loads and
 * stores take its parts (region, base, terms, displacement) as operands. Only where a pointer is needed as a value, or
 * an index is added to one that has no room for it, its offset goes into a register.
 */
#include "interp/compile.h"

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static uint64_t element_bytes(const struct ir_module *m, ir_type t)
{
    while (ir_type_at(m, t)->kind == TYPE_KIND_ARRAY)
        t = ir_type_at(m, t)->elem;
    return ir_type_at(m, t)->size;
}

static uint32_t region_new(struct compile *c, struct region_info r, uint32_t name, const char *otherwise)
{
    r.name = name ? strtab_str(&c->m->strings, name) : otherwise;
    VEC_PUSH(c->mem, &c->region, r);
    return c->region.n - 1;
}

static void set_pointer(struct compile *c, uint32_t node, struct pointer p)
{
    VEC_PUSH(c->mem, &c->pointer, p);
    c->address[node] = c->pointer.n - 1;
}

void address_params(struct compile *c)
{
    uint32_t arg = 0;
    (void)region_new(c, (struct region_info){.kind = REGION_NULL}, 0, "null");
    VEC_PUSH(c->mem, &c->pointer, (struct pointer){0});
    for (uint32_t k = 0; k < c->func->n_params; k++) {
        const struct param *const p = &c->m->params.at[c->func->first_param + k];
        if (p->kind == PARAM_ATTRIBUTE)
            continue;
        if (p->kind == PARAM_BUFFER || p->kind == PARAM_THREADGROUP) {
            const uint32_t r = region_new(c,
                                          (struct region_info){.elem = element_bytes(c->m, p->elem),
                                                               .arg = arg,
                                                               .kind = REGION_ARG,
                                                               .sized = p->kind == PARAM_THREADGROUP},
                                          p->name, "a parameter");
            set_pointer(c, p->node, (struct pointer){.region = r});
        }
        arg++;
    }
}

static uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

static void compile_alloc(struct compile *c, uint32_t node)
{
    const struct node *const x = ir_at(c->m, node);
    const struct type *const t = ir_type_at(c->m, (ir_type)x->imm);
    struct region_info r = {.elem = element_bytes(c->m, (ir_type)x->imm), .size = t->size};
    if (ir_type_space(x->type) == SPACE_THREADGROUP) {
        r.kind = REGION_THREADGROUP;
        r.offset = align_up(c->threadgroup_bytes, 16);
        c->threadgroup_bytes = r.offset + t->size;
        set_pointer(c, node, (struct pointer){.region = region_new(c, r, x->name, "threadgroup memory")});
        return;
    }
    r.kind = REGION_THREAD;
    r.stride = align_up(t->size, 16);
    r.offset = c->thread_bytes;
    c->thread_bytes += r.stride * LANES;
    const uint32_t region = region_new(c, r, x->name, "thread memory");
    set_pointer(c, node, (struct pointer){.region = region});
    emit(c, (struct inst){.run = memory_zero, .x = region});
}

/* ---- pointers --------------------------------------------------------------------------------------------------- */

static struct pointer pointer_of(struct compile *c, uint32_t node)
{
    if (c->address[node])
        return c->pointer.at[c->address[node]];
    if (ir_at(c->m, node)->op == OP_ZERO)
        return (struct pointer){0};
    const uint32_t base = value(c, node, 0);
    return (struct pointer){.base = base, .region = REGION_DYNAMIC, .region_reg = value(c, node, 1)};
}

/* An access that stands for the address alone. */
static uint32_t access_new(struct compile *c, const struct pointer *p)
{
    const struct region_info *const r = p->region == REGION_DYNAMIC ? NULL : &c->region.at[p->region];
    VEC_PUSH(c->mem, &c->access,
             ((struct access){.disp = p->disp,
                              .region = p->region,
                              .first_leaf = c->leaf.n,
                              .has_base = p->base != 0,
                              .thread = r && r->kind == REGION_THREAD}));
    struct access *const q = &c->access.at[c->access.n - 1];
    memcpy(q->scale, p->scale, sizeof q->scale);
    memcpy(q->index_kind, p->index_kind, sizeof q->index_kind);
    return c->access.n - 1;
}

/* An instruction with the registers of its address. */
static struct inst addressed(const struct pointer *p, struct inst i)
{
    i.a = p->index[0];
    i.b = p->base ? p->base : p->index[1];
    i.c = p->region_reg ? p->region_reg : p->index[2];
    return i;
}

/* The same address with its offset in a register. */
static void compute(struct compile *c, struct pointer *p)
{
    if (p->n_terms == 0 && p->disp == 0 && p->base)
        return;
    uint32_t offset;
    if (p->n_terms == 0 && !p->base) {
        offset = vreg_constant(c, 8, p->disp);
    } else {
        offset = vreg_new(c, 8);
        emit(c, addressed(p, (struct inst){.run = memory_address, .d = offset, .x = access_new(c, p)}));
    }
    *p = (struct pointer){.base = offset, .region = p->region, .region_reg = p->region_reg};
}

uint32_t address_value(struct compile *c, uint32_t node, uint32_t k)
{
    struct pointer p = pointer_of(c, node);
    if (k == 0) {
        compute(c, &p);
        return p.base;
    }
    return p.region == REGION_DYNAMIC ? p.region_reg : vreg_constant(c, 4, p.region);
}

static bool is_32(unsigned index_kind)
{
    return index_kind == INDEX_U32 || index_kind == INDEX_I32;
}

static bool is_near(uint64_t disp)
{
    return (int64_t)disp >= -TERM_DISP && (int64_t)disp <= TERM_DISP;
}

static void add_disp(struct compile *c, struct pointer *p, uint64_t disp)
{
    if (is_32(p->index_kind[0]) && !is_near(far_sum(p->disp, disp)))
        compute(c, p);
    p->disp = far_sum(p->disp, disp);
}

/* Is there room for a term with a 32-bit index beside those of p? */
static bool has_room(const struct pointer *p, uint64_t scale)
{
    if (p->n_terms == 0)
        return is_near(p->disp);
    if (p->n_terms == TERMS || p->base || scale > TERM_SCALE || !is_near(p->disp))
        return false;
    for (unsigned k = 0; k < p->n_terms; k++)
        if (!is_32(p->index_kind[k]) || p->scale[k] > TERM_SCALE)
            return false;
    return true;
}

/* The integer that a wider one was converted from without losing anything. */
static uint32_t narrowest(const struct compile *c, uint32_t index)
{
    for (;;) {
        const struct node *const x = ir_at(c->m, index);
        if (x->op != OP_CONVERT)
            return index;
        const struct scalar_info *const to = &scalar_info[x->type];
        const struct scalar_info *const from = &scalar_info[ir_type_scalar(ir_at(c->m, x->in[0])->type)];
        const bool widens = from->bytes < to->bytes && (from->class_ == CLASS_U || from->class_ == to->class_);
        if (!widens || (from->class_ != CLASS_U && from->class_ != CLASS_S))
            return index;
        index = x->in[0];
    }
}

static void add_index(struct compile *c, struct pointer *p, uint32_t index, uint64_t scale)
{
    index = narrowest(c, index);
    const struct node *const x = ir_at(c->m, index);
    const enum scalar s = (enum scalar)x->type;
    const bool is_signed = scalar_info[s].class_ == CLASS_S;
    if (x->op == OP_CONST) {
        const uint64_t wide = ir_scalar_eval(OP_CONVERT, s, is_signed ? S_I64 : S_U64, 0, x->imm, 0, 0);
        add_disp(c, p, far_product(wide, is_signed, scale));
        return;
    }
    const bool narrow = scalar_info[s].bytes <= 4 && scale <= FAR_SCALE;
    if (narrow ? !has_room(p, scale) : p->n_terms != 0)
        compute(c, p);
    const unsigned k = p->n_terms++;
    p->scale[k] = scale;
    if (narrow) {
        p->index_kind[k] = is_signed ? INDEX_I32 : INDEX_U32;
        p->index[k] = value_as(c, index, 0, is_signed ? S_I32 : S_U32);
    } else {
        p->index_kind[k] = is_signed ? INDEX_I64 : INDEX_U64;
        p->index[k] = value_as(c, index, 0, S_I64);
    }
}

static void compile_pointer(struct compile *c, uint32_t node)
{
    const struct node x = *ir_at(c->m, node);
    struct pointer p = pointer_of(c, x.in[0]);
    if (x.op == OP_INDEX)
        add_index(c, &p, x.in[1], ir_type_at(c->m, (ir_type)x.imm)->size);
    else
        add_disp(c, &p,
                 c->m->fields.at[ir_type_at(c->m, (ir_type)x.imm)->first_field + (uint32_t)(x.imm >> 32)].offset);
    if (c->needs[node])
        compute(c, &p);
    set_pointer(c, node, p);
}

void address_prepare(struct compile *c, uint32_t region)
{
    IR_EACH(c->m, region, id)
    {
        const struct node *const x = ir_at(c->m, id);
        const enum op_effect effect = (enum op_effect)op_info[x->op].effect;
        const bool takes_address =
            x->op == OP_LOAD || x->op == OP_STORE || x->op == OP_INDEX || x->op == OP_FIELD || effect == EFFECT_ATOMIC;
        for (unsigned k = takes_address; k < x->n; k++)
            c->needs[ir_in(c->m, id)[k]] = 1;
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(c->m, id); k++)
                address_prepare(c, ir_region(c->m, id, k));
    }
}

/* ---- accesses --------------------------------------------------------------------------------------------------- */

static void add_leaf(struct compile *c, uint32_t reg, unsigned kind, uint64_t offset)
{
    vreg_touch(c, reg);
    VEC_PUSH(c->mem, &c->leaf, ((struct leaf){.reg = reg, .kind = (uint8_t)kind, .offset = offset}));
}

/* The leaves of type t, whose registers are those of the leaves list from `at` on; returns what follows them. */
static uint32_t add_leaves(struct compile *c, ir_type t, uint32_t at, uint64_t offset)
{
    const struct type x = *ir_type_at(c->m, t);
    switch ((enum type_kind)x.kind) {
    case TYPE_KIND_VOID: break;
    case TYPE_KIND_SCALAR: add_leaf(c, c->leaves.at[at++], x.scalar, offset); break;
    case TYPE_KIND_POINTER:
        add_leaf(c, c->leaves.at[at++], LEAF_OFFSET, offset);
        add_leaf(c, c->leaves.at[at++], LEAF_REGION, offset);
        break;
    case TYPE_KIND_VECTOR:
        for (unsigned k = 0; k < x.n; k++)
            add_leaf(c, c->leaves.at[at++], x.scalar, offset + k * scalar_info[x.scalar].bytes);
        break;
    case TYPE_KIND_STRUCT:
        for (uint32_t k = 0; k < x.n_fields; k++) {
            const struct field f = c->m->fields.at[x.first_field + k];
            at = add_leaves(c, f.type, at, offset + f.offset);
        }
        break;
    case TYPE_KIND_ARRAY:
        for (uint64_t k = 0; k < x.count; k++)
            at = add_leaves(c, x.elem, at, offset + k * ir_type_at(c->m, x.elem)->size);
        break;
    }
    return at;
}

/* Completes the newest access, whose leaves have been added. */
static struct access *complete(struct compile *c, uint32_t node)
{
    struct access *const q = &c->access.at[c->access.n - 1];
    q->n_leaves = c->leaf.n - q->first_leaf;
    q->site = site(c, ir_at(c->m, node)->place);
    for (uint32_t k = 0; k < q->n_leaves; k++) {
        const struct leaf *const f = &c->leaf.at[q->first_leaf + k];
        const uint64_t end = f->offset + (f->kind >= LEAF_OFFSET ? 8 : kind_bytes(f->kind));
        q->extent = q->extent < end ? end : q->extent;
    }
    return q;
}

/* One number that is copied as it is, in memory known by name. */
static bool is_simple(const struct compile *c, const struct access *q)
{
    const unsigned kind = c->leaf.at[q->first_leaf].kind;
    return q->n_leaves == 1 && kind != S_BOOL && kind < LEAF_OFFSET && q->region != REGION_DYNAMIC;
}

static void compile_load(struct compile *c, uint32_t node)
{
    const ir_type t = ir_at(c->m, node)->type;
    const struct pointer p = pointer_of(c, ir_in(c->m, node)[0]);
    define(c, node);
    const uint32_t at = c->first[node], id = access_new(c, &p);
    (void)add_leaves(c, t, at, 0);
    const struct access *const q = complete(c, node);
    if (q->n_leaves == 0)
        return;
    struct inst i = addressed(&p, (struct inst){.run = memory_load, .x = id});
    if (q->n_leaves == 1)
        i.d = c->leaves.at[at];
    if (is_simple(c, q))
        i.run = c->loops->load(kind_bytes(c->leaf.at[q->first_leaf].kind));
    emit(c, i);
}

static void compile_store(struct compile *c, uint32_t node)
{
    const uint32_t x = ir_in(c->m, node)[1];
    const ir_type t = ir_at(c->m, x)->type;
    const struct pointer p = pointer_of(c, ir_in(c->m, node)[0]);
    const uint32_t n = (uint32_t)leaf_count(c->m, t), at = c->leaves.n;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t v = value(c, x, k);
        VEC_PUSH(c->mem, &c->leaves, v);
    }
    const uint32_t id = access_new(c, &p);
    (void)add_leaves(c, t, at, 0);
    struct access *const q = complete(c, node);
    if (q->n_leaves == 0)
        return;
    q->write = true;
    q->tracked = c->waiting != 0;
    struct inst i = addressed(&p, (struct inst){.run = memory_store, .x = id});
    if (q->n_leaves == 1)
        i.d = c->leaves.at[at];
    if (is_simple(c, q) && !q->tracked)
        i.run = c->loops->store(kind_bytes(c->leaf.at[q->first_leaf].kind));
    emit(c, i);
}

static enum op combining(enum op op)
{
    return op == OP_ATOMIC_ADD   ? OP_ADD
           : op == OP_ATOMIC_SUB ? OP_SUB
           : op == OP_ATOMIC_AND ? OP_AND
           : op == OP_ATOMIC_OR  ? OP_OR
           : op == OP_ATOMIC_XOR ? OP_XOR
           : op == OP_ATOMIC_MIN ? OP_MIN
           : op == OP_ATOMIC_MAX ? OP_MAX
                                 : OP_NONE;
}

static void compile_atomic(struct compile *c, uint32_t node)
{
    const struct node x = *ir_at(c->m, node);
    const enum op op = (enum op)x.op;
    const struct pointer p = pointer_of(c, ir_in(c->m, node)[0]);
    const enum scalar s = (enum scalar)(x.n > 1 ? ir_at(c->m, ir_in(c->m, node)[1])->type : x.type);
    uint32_t operand[2] = {0};
    for (unsigned k = 1; k < x.n && k <= 2; k++)
        operand[k - 1] = value(c, ir_in(c->m, node)[k], 0);
    if (op != OP_ATOMIC_STORE)
        define(c, node);
    const uint32_t id = access_new(c, &p);
    add_leaf(c, op != OP_ATOMIC_STORE ? c->leaves.at[c->first[node]] : 0, s, 0);
    for (unsigned k = 1; k < x.n && k <= 2; k++)
        add_leaf(c, operand[k - 1], s, 0);
    struct access *const q = complete(c, node);
    q->write = op != OP_ATOMIC_LOAD;
    q->op = (uint8_t)combining(op);
    emit(c,
         addressed(&p,
                   (struct inst){
                       .run = memory_atomic, .x = id, .y = node_order(x.flags) != ORDER_RELAXED, .imm = (uint64_t)op}));
}

static void compile_fence(struct compile *c, uint32_t node)
{
    (void)node;
    emit(c, (struct inst){.run = memory_fence});
}

bool compile_memory(struct compile *c, uint32_t node)
{
    const enum op op = (enum op)ir_at(c->m, node)->op;
    if (op == OP_FENCE || op == OP_SIMDGROUP_BARRIER)
        compile_fence(c, node);
    else if (op_info[op].effect == EFFECT_ATOMIC)
        compile_atomic(c, node);
    else if (op == OP_ALLOC)
        compile_alloc(c, node);
    else if (op == OP_INDEX || op == OP_FIELD)
        compile_pointer(c, node);
    else if (op == OP_LOAD)
        compile_load(c, node);
    else if (op == OP_STORE)
        compile_store(c, node);
    else
        return false;
    return true;
}
