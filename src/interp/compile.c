/* compile.c - a kernel's IR to a program: values and operations; program.h describes the result. */
#include "interp/compile.h"

/* Past these a kernel is refused. */
#define LEAF_LIMIT 65536u               /* scalars of one value */
#define FILE_LIMIT ((uint64_t)64 << 20) /* bytes of registers and thread memory of a simdgroup */

/* ---- leaves ----------------------------------------------------------------------------------------------------- */

unsigned kind_bytes(unsigned kind)
{
    return kind == LEAF_OFFSET ? 8 : kind == LEAF_REGION ? 4 : scalar_info[kind].bytes;
}

/* Counts past the limit are not exact. */
uint64_t leaf_count(const struct ir_module *m, ir_type t)
{
    const struct type *const x = ir_type_at(m, t);
    switch ((enum type_kind)x->kind) {
    case TYPE_KIND_VOID: return 0;
    case TYPE_KIND_SCALAR:
    case TYPE_KIND_VECTOR: return x->n;
    case TYPE_KIND_POINTER: return 2;
    case TYPE_KIND_STRUCT: {
        uint64_t n = 0;
        for (uint32_t k = 0; k < x->n_fields && n <= LEAF_LIMIT; k++)
            n += leaf_count(m, m->fields.at[x->first_field + k].type);
        return n;
    }
    case TYPE_KIND_ARRAY: {
        const uint64_t n = leaf_count(m, x->elem);
        return n && x->count > LEAF_LIMIT / n ? (uint64_t)LEAF_LIMIT + 1 : n * x->count;
    }
    }
    return 0;
}

/* Number of the first leaf of part k. */
static uint32_t part_leaf(const struct compile *c, ir_type t, uint64_t k)
{
    const struct type *const x = ir_type_at(c->m, t);
    if (x->kind != TYPE_KIND_STRUCT)
        return (uint32_t)(k * leaf_count(c->m, x->elem));
    uint64_t n = 0;
    for (uint32_t j = 0; j < k; j++)
        n += leaf_count(c->m, c->m->fields.at[x->first_field + j].type);
    return (uint32_t)n;
}

static void push_leaf(struct compile *c, uint32_t v)
{
    VEC_PUSH(c->mem, &c->leaves, v);
}

static void fresh_leaves(struct compile *c, ir_type t)
{
    const struct type x = *ir_type_at(c->m, t);
    switch ((enum type_kind)x.kind) {
    case TYPE_KIND_VOID: break;
    case TYPE_KIND_SCALAR:
    case TYPE_KIND_VECTOR:
        for (unsigned k = 0; k < x.n; k++)
            push_leaf(c, vreg_new(c, scalar_info[x.scalar].bytes));
        break;
    case TYPE_KIND_POINTER:
        push_leaf(c, vreg_new(c, 8));
        push_leaf(c, vreg_new(c, 4));
        break;
    case TYPE_KIND_STRUCT:
        for (uint32_t k = 0; k < x.n_fields; k++)
            fresh_leaves(c, c->m->fields.at[x.first_field + k].type);
        break;
    case TYPE_KIND_ARRAY:
        for (uint64_t k = 0; k < x.count; k++)
            fresh_leaves(c, x.elem);
        break;
    }
}

void define(struct compile *c, uint32_t node)
{
    c->first[node] = c->leaves.n;
    fresh_leaves(c, ir_at(c->m, node)->type);
}

/* The size of leaf k of a type. */
static unsigned leaf_bytes(const struct compile *c, ir_type t, uint64_t k)
{
    for (;;) {
        const struct type *const x = ir_type_at(c->m, t);
        if (x->kind == TYPE_KIND_POINTER)
            return k == 0 ? 8 : 4;
        if (x->kind == TYPE_KIND_STRUCT) {
            uint32_t f = x->first_field;
            for (uint64_t n; k >= (n = leaf_count(c->m, c->m->fields.at[f].type)); f++)
                k -= n;
            t = c->m->fields.at[f].type;
        } else if (x->kind == TYPE_KIND_ARRAY) {
            k %= leaf_count(c->m, x->elem);
            t = x->elem;
        } else {
            return scalar_info[x->scalar].bytes;
        }
    }
}

uint32_t value(struct compile *c, uint32_t node, uint32_t k)
{
    if (c->first[node])
        return c->leaves.at[c->first[node] + k];
    const struct node *const x = ir_at(c->m, node);
    if (c->address[node])
        return address_value(c, node, k);
    if (x->op != OP_CONST)
        return vreg_constant(c, leaf_bytes(c, x->type, k), 0);
    const uint32_t v = vreg_constant(c, scalar_info[x->type].bytes, x->imm);
    c->first[node] = c->leaves.n;
    push_leaf(c, v);
    return v;
}

/* ---- instructions ----------------------------------------------------------------------------------------------- */

struct inst *emit(struct compile *c, struct inst i)
{
    vreg_touch(c, i.d);
    vreg_touch(c, i.a);
    vreg_touch(c, i.b);
    vreg_touch(c, i.c);
    VEC_PUSH(c->mem, &c->code, i);
    return &c->code.at[c->code.n - 1];
}

uint32_t site(struct compile *c, uint32_t place)
{
    if (c->site_of[place])
        return c->site_of[place] - 1;
    const struct err_place at = ir_err_place(c->m, place);
    VEC_PUSH(c->mem, &c->site, ((struct site){at.file, at.line, at.column}));
    c->site_of[place] = c->site.n;
    return c->site.n - 1;
}

static void elementwise(struct compile *c, enum op op, enum scalar s, unsigned flags, struct inst i)
{
    const enum scalar to = op_info[op].rule == RULE_COMPARE ? S_BOOL : s;
    i.run = c->loops->op(op, s, flags);
    if (!i.run) {
        i.run = lanes_eval;
        i.imm = LANES_EVAL(op, s, to, flags);
    }
    emit(c, i);
}

/* Do all values of `from` have the same bits in `to`? */
static bool same_bits(enum scalar from, enum scalar to)
{
    const struct scalar_info *const f = &scalar_info[from], *const t = &scalar_info[to];
    return from == to || (f->bytes == t->bytes && f->class_ != CLASS_F && t->class_ != CLASS_F && to != S_BOOL);
}

void convert(struct compile *c, uint32_t d, uint32_t a, enum scalar from, enum scalar to)
{
    struct inst i = {.run = c->loops->convert(from, to), .d = d, .a = a};
    if (!i.run) {
        i.run = lanes_eval;
        i.imm = LANES_EVAL(OP_CONVERT, from, to, 0);
    }
    emit(c, i);
}

static uint32_t converted(struct compile *c, uint32_t v, enum scalar from, enum scalar to)
{
    if (same_bits(from, to))
        return v;
    const uint32_t d = vreg_new(c, scalar_info[to].bytes);
    convert(c, d, v, from, to);
    return d;
}

uint32_t value_as(struct compile *c, uint32_t node, uint32_t k, enum scalar to)
{
    return converted(c, value(c, node, k), ir_type_scalar(ir_at(c->m, node)->type), to);
}

/* ---- operations by rule ----------------------------------------------------------------------------------------- */

static void compile_same(struct compile *c, uint32_t node)
{
    const struct node x = *ir_at(c->m, node);
    const uint32_t *const in = ir_in(c->m, node);
    const ir_type operand = ir_at(c->m, in[0])->type;
    define(c, node);
    if (ir_type_is_pointer(operand)) { /* eq, ne: both halves */
        const uint32_t offset = vreg_new(c, 1), region = vreg_new(c, 1);
        const uint32_t a0 = value(c, in[0], 0), b0 = value(c, in[1], 0), a1 = value(c, in[0], 1),
                       b1 = value(c, in[1], 1);
        elementwise(c, (enum op)x.op, S_U64, 0, (struct inst){.d = offset, .a = a0, .b = b0});
        elementwise(c, (enum op)x.op, S_U32, 0, (struct inst){.d = region, .a = a1, .b = b1});
        elementwise(c, x.op == OP_EQ ? OP_AND : OP_OR, S_BOOL, 0,
                    (struct inst){.d = value(c, node, 0), .a = offset, .b = region});
        return;
    }
    const enum scalar s = ir_type_scalar(operand);
    for (unsigned k = 0; k < ir_type_width(operand); k++) {
        struct inst i = {.d = value(c, node, k), .a = value(c, in[0], k)};
        if (x.n > 1)
            i.b = value(c, in[1], k);
        if (x.n > 2)
            i.c = value(c, in[2], k);
        if (op_info[x.op].rule == RULE_SHIFT) /* only the low bits of the count count */
            i.b = converted(c, i.b, ir_type_scalar(ir_at(c->m, in[1])->type), s);
        elementwise(c, (enum op)x.op, s, x.flags & NODE_FAST, i);
    }
}

static void compile_select(struct compile *c, uint32_t node)
{
    const uint32_t *const in = ir_in(c->m, node);
    const uint32_t n = (uint32_t)leaf_count(c->m, ir_at(c->m, node)->type);
    const bool each = ir_type_width(ir_at(c->m, in[0])->type) > 1;
    define(c, node);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t d = value(c, node, k);
        emit(c, (struct inst){.run = c->loops->select(c->vreg.at[d].bytes),
                              .d = d,
                              .a = value(c, in[0], each ? k : 0),
                              .b = value(c, in[1], k),
                              .c = value(c, in[2], k)});
    }
}

static void compile_collective(struct compile *c, uint32_t node)
{
    const struct node x = *ir_at(c->m, node);
    const uint32_t *const in = ir_in(c->m, node);
    const enum op op = (enum op)x.op;
    const bool fills = x.n == 3;
    const uint32_t lane = x.n < 2 ? 0 : in[x.n - 1];
    const bool lane_each = lane && ir_type_width(ir_at(c->m, lane)->type) > 1;
    uint32_t wide = lane && !lane_each ? value_as(c, lane, 0, S_I64) : 0;
    enum op combine = OP_NONE;
    (void)simd_combines(op, &combine);
    define(c, node);
    const ir_type t = x.n ? ir_at(c->m, in[0])->type : TYPE_BOOL;
    for (unsigned k = 0; k < ir_type_width(t); k++) {
        if (lane_each)
            wide = value_as(c, lane, k, S_I64);
        emit(c, (struct inst){.run = simd_op(op),
                              .d = value(c, node, k),
                              .a = x.n ? value(c, in[0], k) : 0,
                              .b = wide,
                              .c = fills ? value(c, in[1], k) : 0,
                              .x = ir_type_scalar(t),
                              .y = op >= OP_QUAD_SUM ? 4 : LANES,
                              .imm = combine});
    }
}

/* ---- operations with types of their own ------------------------------------------------------------------------- */

static void compile_convert(struct compile *c, uint32_t node)
{
    const uint32_t in = ir_in(c->m, node)[0];
    const enum scalar from = ir_type_scalar(ir_at(c->m, in)->type), to = ir_type_scalar(ir_at(c->m, node)->type);
    const unsigned n = ir_type_width(ir_at(c->m, node)->type);
    if (!same_bits(from, to)) {
        define(c, node);
        for (unsigned k = 0; k < n; k++)
            convert(c, value(c, node, k), value(c, in, k), from, to);
        return;
    }
    const uint32_t first = c->leaves.n;
    for (unsigned k = 0; k < n; k++)
        push_leaf(c, 0);
    for (unsigned k = 0; k < n; k++) {
        const uint32_t v = value(c, in, k); /* may move the list */
        c->leaves.at[first + k] = v;
    }
    c->first[node] = first;
}

static void add_list(struct compile *c, uint32_t v)
{
    vreg_touch(c, v);
    VEC_PUSH(c->mem, &c->list, v);
    VEC_PUSH(c->mem, &c->list, c->vreg.at[v].bytes);
}

static void compile_bitcast(struct compile *c, uint32_t node)
{
    const uint32_t in = ir_in(c->m, node)[0];
    const ir_type from = ir_at(c->m, in)->type, to = ir_at(c->m, node)->type;
    const unsigned n = ir_type_width(from), m = ir_type_width(to);
    if (n == m) {
        const uint32_t first = c->leaves.n;
        for (unsigned k = 0; k < n; k++)
            push_leaf(c, 0);
        for (unsigned k = 0; k < n; k++) {
            const uint32_t v = value(c, in, k);
            c->leaves.at[first + k] = v;
        }
        c->first[node] = first;
        return;
    }
    const uint32_t list = c->list.n;
    define(c, node);
    for (unsigned k = 0; k < n; k++)
        add_list(c, value(c, in, k));
    for (unsigned k = 0; k < m; k++)
        add_list(c, value(c, node, k));
    emit(c, (struct inst){.run = lanes_bitcast, .x = list, .y = n, .imm = m});
}

/* A value made of the registers of others: collected in `v` first, since making constants adds leaves. */
static void alias(struct compile *c, uint32_t node, const uint32_t *v, uint32_t n)
{
    c->first[node] = c->leaves.n;
    for (uint32_t k = 0; k < n; k++)
        push_leaf(c, v[k]);
}

static void compile_parts(struct compile *c, uint32_t node)
{
    const struct node x = *ir_at(c->m, node);
    const uint32_t *const in = ir_in(c->m, node);
    const uint32_t n = (uint32_t)leaf_count(c->m, x.type);
    uint32_t *const v = ARENA_NEW(&c->scratch, uint32_t, n), done = 0;
    if (x.op == OP_MAKE) {
        for (unsigned k = 0; k < x.n; k++)
            for (uint32_t j = 0; j < leaf_count(c->m, ir_at(c->m, in[k])->type); j++)
                v[done++] = value(c, in[k], j);
    } else if (x.op == OP_SPLAT) {
        for (; done < n; done++)
            v[done] = value(c, in[0], 0);
    } else if (x.op == OP_EXTRACT) {
        const uint32_t from = part_leaf(c, ir_at(c->m, in[0])->type, x.imm);
        for (; done < n; done++)
            v[done] = value(c, in[0], from + done);
    } else if (x.op == OP_INSERT) {
        const uint32_t from = part_leaf(c, x.type, x.imm);
        const uint32_t part = (uint32_t)leaf_count(c->m, ir_at(c->m, in[1])->type);
        for (; done < n; done++)
            v[done] = done >= from && done - from < part ? value(c, in[1], done - from) : value(c, in[0], done);
    } else { /* shuffle: places from 4 on are the second vector's */
        for (; done < n; done++) {
            const unsigned place = (unsigned)(x.imm >> 4 * done) & 7u;
            v[done] = value(c, in[place >> 2], place & 3u);
        }
    }
    alias(c, node, v, n);
}

static void compile_extract_at(struct compile *c, uint32_t node)
{
    const uint32_t *const in = ir_in(c->m, node);
    const uint32_t n = (uint32_t)leaf_count(c->m, ir_at(c->m, node)->type);
    const uint32_t whole = (uint32_t)leaf_count(c->m, ir_at(c->m, in[0])->type);
    const uint32_t index = value_as(c, in[1], 0, S_I64);
    define(c, node);
    if (n == 0)
        return;
    const uint32_t list = c->list.n;
    for (uint32_t k = 0; k < n; k++)
        add_list(c, value(c, node, k));
    for (uint32_t k = 0; k < whole; k++)
        add_list(c, value(c, in[0], k));
    emit(c, (struct inst){.run = lanes_extract, .b = index, .x = list, .y = n, .imm = whole});
}

static void copy_leaves(struct compile *c, uint32_t node, uint32_t from)
{
    const uint32_t n = (uint32_t)leaf_count(c->m, ir_at(c->m, node)->type);
    define(c, node);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t d = value(c, node, k);
        emit(c, (struct inst){.run = c->loops->copy(c->vreg.at[d].bytes), .d = d, .a = value(c, from, k)});
    }
}

static void compile_insert_at(struct compile *c, uint32_t node)
{
    const uint32_t *const in = ir_in(c->m, node);
    const uint32_t whole = (uint32_t)leaf_count(c->m, ir_at(c->m, node)->type);
    const uint32_t n = (uint32_t)leaf_count(c->m, ir_at(c->m, in[1])->type);
    const uint32_t index = value_as(c, in[2], 0, S_I64);
    copy_leaves(c, node, in[0]);
    if (n == 0)
        return;
    const uint32_t list = c->list.n;
    for (uint32_t k = 0; k < whole; k++)
        add_list(c, value(c, node, k));
    for (uint32_t k = 0; k < n; k++)
        add_list(c, value(c, in[1], k));
    emit(c, (struct inst){.run = lanes_insert, .b = index, .x = list, .y = n, .imm = whole});
}

/* A get is a copy, since the local may change before the value is used. A var has registers from here on. */
static void compile_local(struct compile *c, uint32_t node)
{
    const uint32_t *const in = ir_in(c->m, node);
    if (ir_at(c->m, node)->op != OP_SET) {
        copy_leaves(c, node, in[0]);
        return;
    }
    const uint32_t n = (uint32_t)leaf_count(c->m, ir_at(c->m, in[1])->type);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t d = value(c, in[0], k);
        emit(c, (struct inst){.run = c->loops->move(c->vreg.at[d].bytes), .d = d, .a = value(c, in[1], k)});
    }
}

static void (*const given[OP_COUNT])(struct compile *c, uint32_t node) = {
    [OP_CONVERT] = compile_convert,
    [OP_BITCAST] = compile_bitcast,
    [OP_MAKE] = compile_parts,
    [OP_SPLAT] = compile_parts,
    [OP_EXTRACT] = compile_parts,
    [OP_INSERT] = compile_parts,
    [OP_SHUFFLE] = compile_parts,
    [OP_EXTRACT_AT] = compile_extract_at,
    [OP_INSERT_AT] = compile_insert_at,
    [OP_VAR] = compile_local,
    [OP_GET] = compile_local,
    [OP_SET] = compile_local,
    [OP_SIMD_IS_FIRST] = compile_collective,
    [OP_SIMD_BALLOT] = compile_collective,
    [OP_SIMD_ACTIVE] = compile_collective,
    [OP_QUAD_IS_FIRST] = compile_collective,
    [OP_QUAD_BALLOT] = compile_collective,
    [OP_QUAD_ACTIVE] = compile_collective,
};

void compile_node(struct compile *c, uint32_t node)
{
    const enum op op = (enum op)ir_at(c->m, node)->op;
    if (given[op]) {
        given[op](c, node);
        return;
    }
    if (compile_control(c, node) || compile_memory(c, node))
        return;
    switch ((enum op_rule)op_info[op].rule) {
    case RULE_SAME:
    case RULE_COMPARE:
    case RULE_SHIFT: compile_same(c, node); break;
    case RULE_SELECT: compile_select(c, node); break;
    case RULE_LANES:
    case RULE_VOTE: compile_collective(c, node); break;
    case RULE_NONE:
    case RULE_GIVEN: break;
    }
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static void value_leaves(struct compile *c, uint32_t arg, ir_type t, uint64_t offset)
{
    const struct type x = *ir_type_at(c->m, t);
    switch ((enum type_kind)x.kind) {
    case TYPE_KIND_VOID: break;
    case TYPE_KIND_SCALAR:
    case TYPE_KIND_VECTOR:
        for (unsigned k = 0; k < x.n; k++) {
            const unsigned bytes = scalar_info[x.scalar].bytes;
            const uint32_t v = vreg_pinned(c, bytes);
            push_leaf(c, v);
            VEC_PUSH(c->mem, &c->value,
                     ((struct value_leaf){.arg = arg, .reg = v, .kind = x.scalar, .offset = offset + k * bytes}));
        }
        break;
    case TYPE_KIND_POINTER: /* a host cannot give one: null */
        push_leaf(c, vreg_constant(c, 8, 0));
        push_leaf(c, vreg_constant(c, 4, 0));
        break;
    case TYPE_KIND_STRUCT:
        for (uint32_t k = 0; k < x.n_fields; k++) {
            const struct field f = c->m->fields.at[x.first_field + k];
            value_leaves(c, arg, f.type, offset + f.offset);
        }
        break;
    case TYPE_KIND_ARRAY:
        for (uint64_t k = 0; k < x.count; k++)
            value_leaves(c, arg, x.elem, offset + k * ir_type_at(c->m, x.elem)->size);
        break;
    }
}

/* Attributes by how often they change. */
static void compile_attributes(struct compile *c, enum uniformity u)
{
    for (uint32_t k = 0; k < c->func->n_params; k++) {
        const struct param p = c->m->params.at[c->func->first_param + k];
        if (p.kind != PARAM_ATTRIBUTE || (enum uniformity)attr_info[p.attribute].uniform != u)
            continue;
        c->first[p.node] = c->leaves.n;
        for (unsigned j = 0; j < ir_type_width(p.type); j++) {
            const enum scalar s = ir_type_scalar(p.type);
            const uint32_t v = vreg_pinned(c, scalar_info[s].bytes);
            push_leaf(c, v);
            VEC_PUSH(c->mem, &c->attribute,
                     ((struct attribute_leaf){
                         .reg = v, .attribute = p.attribute, .component = (uint8_t)j, .scalar = (uint8_t)s}));
        }
    }
}

static void compile_params(struct compile *c)
{
    uint32_t arg = 0;
    push_leaf(c, 0); /* leaf 0: none */
    address_params(c);
    for (uint32_t k = 0; k < c->func->n_params; k++) {
        const struct param p = c->m->params.at[c->func->first_param + k];
        if (p.kind == PARAM_VALUE) {
            c->first[p.node] = c->leaves.n;
            value_leaves(c, arg, p.type, 0);
        }
        arg += p.kind != PARAM_ATTRIBUTE;
    }
    compile_attributes(c, UNIFORM_G);
    c->p.first_grouped = c->attribute.n;
    compile_attributes(c, UNIFORM_T);
    c->p.first_varying = c->attribute.n;
    compile_attributes(c, UNIFORM_S);
    compile_attributes(c, UNIFORM_V);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static sk_status check_type(const struct ir_module *m, ir_type t, uint32_t place, sk_error *err)
{
    if (leaf_count(m, t) > LEAF_LIMIT)
        return ERR_AT(err, ir_err_place(m, place), INTERP_VALUE_TOO_LARGE, LEAF_LIMIT);
    return SK_OK;
}

static sk_status check_region(const struct ir_module *m, uint32_t region, sk_error *err)
{
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (x->op == OP_CALL || x->op == OP_PRINT)
            return ERR_AT(err, ir_err_place(m, x->place), INTERP_UNSUPPORTED, op_info[x->op].name);
        TRY(check_type(m, x->type, x->place, err));
        for (unsigned k = 0; k < x->n; k++)
            TRY(check_type(m, ir_at(m, ir_in(m, id)[k])->type, x->place, err));
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                TRY(check_region(m, ir_region(m, id, k), err));
    }
    return SK_OK;
}

static void resolve_jumps(struct compile *c)
{
    for (uint32_t k = 0; k < c->patch.n; k++) {
        const struct patch *const x = &c->patch.at[k];
        const int32_t distance = (int32_t)(c->label.at[x->label] - x->inst);
        *(x->skip ? &c->code.at[x->inst].skip : &c->code.at[x->inst].jump) = distance;
    }
}

/* The program is one allocation, the last one: what fails before leaves nothing behind. */
struct packing {
    char *at; /* null while measuring */
    size_t n;
};

static void *pack(struct packing *k, const void *from, size_t size)
{
    void *const to = k->at ? memcpy(k->at + k->n, from, size) : NULL;
    k->n += (size + 15) & ~(size_t)15;
    return to;
}

static const char *pack_text(struct packing *k, const char *s)
{
    return s ? pack(k, s, strlen(s) + 1) : NULL;
}

#define PACK(field, count)                                                                                             \
    do {                                                                                                               \
        static const char none_[1];                                                                                    \
        p->count = c->field.n;                                                                                         \
        p->field = pack(k, c->field.n ? (const void *)c->field.at : none_,                                             \
                        c->field.n ? sizeof *c->field.at * c->field.n : 1);                                            \
    } while (0)

static void pack_program(const struct compile *c, struct packing *k, struct interp_program *p)
{
    k->n = (sizeof *p + 15) & ~(size_t)15;
    p->name = pack_text(k, c->name);
    PACK(code, n_code);
    PACK(access, n_access);
    PACK(leaf, n_leaf);
    PACK(list, n_list);
    PACK(cases, n_cases);
    PACK(site, n_site);
    PACK(text, n_text);
    PACK(region, n_region);
    PACK(constant, n_constant);
    PACK(value, n_value);
    PACK(attribute, n_attribute);
    const char *file = NULL, *copy = NULL; /* sites of one file share its name */
    for (uint32_t j = 0; j < c->site.n; j++) {
        if (c->site.at[j].file != file)
            copy = pack_text(k, file = c->site.at[j].file);
        if (k->at)
            p->site[j].file = copy;
    }
    for (uint32_t j = 0; j < c->text.n; j++) {
        const char *const text = pack_text(k, c->text.at[j]);
        if (k->at)
            p->text[j] = text;
    }
    for (uint32_t j = 0; j < c->region.n; j++) {
        const char *const text = pack_text(k, c->region.at[j].name);
        if (k->at)
            p->region[j].name = text;
    }
}

static struct interp_program *finish(struct compile *c, struct mem *mem)
{
    struct interp_program measured = c->p;
    struct packing k = {0};
    pack_program(c, &k, &measured);
    struct interp_program *const p = mem_alloc(mem, k.n);
    *p = c->p;
    p->mem = mem;
    p->bytes = k.n;
    k.at = (char *)p;
    pack_program(c, &k, p);
    return p;
}

static sk_status check_sizes(struct compile *c, sk_error *err)
{
    const uint64_t registers = c->p.class_end[3];
    if (registers + c->thread_bytes > FILE_LIMIT || c->threadgroup_bytes > FILE_LIMIT || c->region.n > UINT16_MAX)
        return ERR_AT(err, ir_err_place(c->m, c->func->place), INTERP_TOO_LARGE, (unsigned)(FILE_LIMIT >> 20));
    c->p.thread_bytes = c->thread_bytes;
    c->p.threadgroup_bytes = (uint32_t)c->threadgroup_bytes;
    for (uint32_t k = 0; k < c->region.n; k++)
        if (c->region.at[k].kind == REGION_THREAD)
            c->region.at[k].offset += registers;
    return SK_OK;
}

static sk_status compile_all(struct compile *c, uint32_t func, sk_error *err)
{
    const struct ir_module *const m = c->m;
    c->func = &m->funcs.at[func];
    c->name = strtab_str(&m->strings, c->func->name);
    for (uint32_t k = 0; k < c->func->n_params; k++) {
        const struct param *const p = &m->params.at[c->func->first_param + k];
        TRY(check_type(m, p->type, p->place, err));
    }
    TRY(check_region(m, c->func->region, err));

    c->first = ARENA_NEW(&c->scratch, uint32_t, m->nodes.n);
    c->address = ARENA_NEW(&c->scratch, uint32_t, m->nodes.n);
    c->site_of = ARENA_NEW(&c->scratch, uint32_t, m->places.n + 1);
    c->needs = ARENA_NEW(&c->scratch, uint8_t, m->nodes.n);
    c->marks = ARENA_NEW(&c->scratch, uint8_t, m->nodes.n);
    address_prepare(c, c->func->region);
    compile_params(c);
    c->landing = label_new(c);
    compile_region(c, c->func->region);
    label_here(c, c->landing);
    emit(c, (struct inst){.run = exec_finish});
    resolve_jumps(c);
    vreg_place(c);
    return check_sizes(c, err);
}

sk_status interp_compile_for(struct mem *mem, const struct ir_module *m, uint32_t func, const struct lane_loops *loops,
                             struct interp_program **out, sk_error *err)
{
    struct mem *const t = mem_temp(mem);
    struct compile *const c = mem_zalloc(t, sizeof *c);
    c->mem = t;
    c->m = m;
    c->loops = loops;
    arena_init(&c->scratch, t);
    const sk_status status = compile_all(c, func, err);
    if (status == SK_OK)
        *out = finish(c, mem);
    mem_temp_end(t);
    return status;
}

sk_status interp_compile(struct mem *mem, const struct ir_module *m, uint32_t func, struct interp_program **out,
                         sk_error *err)
{
    return interp_compile_for(mem, m, func, lanes_best(), out, err);
}

void interp_free(struct interp_program *p)
{
    if (p)
        mem_free(p->mem, p, p->bytes);
}

uint32_t interp_threadgroup_bytes(const struct interp_program *p)
{
    return p->threadgroup_bytes;
}
