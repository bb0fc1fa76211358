/* pointer.c - addresses. The IR's pointers are opaque; C's have a type, which is known from where they come from. An
 * access of another type goes through a cast. */
#include "clike/internal.h"

static const struct node *at(const struct clike *p, uint32_t id)
{
    return ir_at(p->m, id);
}

static uint32_t base_of(const struct clike *p, uint32_t id)
{
    return ir_in(p->m, id)[0];
}

static enum type_kind kind_of(const struct clike *p, ir_type t)
{
    return (enum type_kind)ir_type_at(p->m, t)->kind;
}

static ir_type elem_of(const struct clike *p, ir_type t)
{
    return ir_type_at(p->m, t)->elem;
}

static ir_type field_type(const struct clike *p, uint32_t id)
{
    const uint64_t imm = at(p, id)->imm;
    return ir_type_part(p->m, (ir_type)imm, imm >> 32);
}

/* An array prints as a C array, which is no value but turns into a pointer to its first element. */
static bool decays(const struct clike *p, ir_type t)
{
    return kind_of(p, t) == TYPE_KIND_ARRAY && !p->array_values;
}

/* ---- what C takes a pointer for -------------------------------------------------------------------------------- */

static const struct param *param_of(const struct clike *p, uint32_t id)
{
    return &p->m->params.at[p->m->funcs.at[p->func].first_param + at(p, id)->imm];
}

static struct pointee decayed(const struct clike *p, struct pointee t)
{
    if (decays(p, t.type))
        t.type = elem_of(p, t.type);
    return t;
}

static bool is_place(const struct clike *p, uint32_t id)
{
    const uint16_t op = at(p, id)->op;
    return op == OP_ALLOC || ((op == OP_INDEX || op == OP_FIELD) && p->v[id].mode == MODE_INLINE);
}

/* The object that *pointer is, as printed; a byte if it is not known. Follows what is printed in one expression. */
static struct pointee object(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const struct pointee unknown = {S_U8, false};
    if (x->op == OP_PARAM)
        return param_of(p, id)->elem ? (struct pointee){param_of(p, id)->elem, param_of(p, id)->atomic} : unknown;
    if (x->op == OP_ALLOC)
        return (struct pointee){(ir_type)x->imm, false};
    if (x->op == OP_GET)
        return p->v[ir_in(p->m, id)[0]].pointee;
    if (x->op == OP_ZERO || p->v[id].mode != MODE_INLINE)
        return x->op == OP_ZERO ? unknown : p->v[id].pointee;
    if (x->op == OP_FIELD)
        return (struct pointee){field_type(p, id), false};
    if (x->op == OP_INDEX) {
        uint32_t root = base_of(p, id);
        while (at(p, root)->op == OP_INDEX && p->v[root].mode == MODE_INLINE)
            root = base_of(p, root);
        const struct pointee base = is_place(p, root) || at(p, root)->op == OP_ZERO ? unknown : object(p, root);
        return (struct pointee){(ir_type)x->imm, base.atomic && base.type == x->imm};
    }
    return x->op == OP_SELECT ? clike_pointee(p, ir_in(p->m, id)[1]) : unknown;
}

struct pointee clike_pointee(const struct clike *p, uint32_t id)
{
    const struct pointee t = object(p, id);
    return is_place(p, id) ? decayed(p, t) : t;
}

/* Whether a pointer of this space and of no known origin points at what is const: it is written only if every
 * parameter of its space counts as written (see ir_param_access). */
static bool space_const(const struct clike *p, ir_type pointer)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const q = &p->m->params.at[f->first_param + k];
        if (q->type == pointer && !(p->access[f->first_param + k] & ACCESS_WRITE))
            return true;
    }
    return false;
}

bool clike_const(const struct clike *p, uint32_t id)
{
    while (is_place(p, id) && at(p, id)->op != OP_ALLOC)
        id = base_of(p, id);
    const struct node *const x = at(p, id);
    if (x->type == TYPE_POINTER(SPACE_CONSTANT) || x->op == OP_ALLOC || x->op == OP_ZERO)
        return false;
    if (x->op == OP_PARAM) {
        const struct func *const f = &p->m->funcs.at[p->func];
        const struct param *const q = param_of(p, id);
        return !q->atomic && !(f->kernel && q->kind == PARAM_THREADGROUP) &&
               !(p->access[f->first_param + x->imm] & ACCESS_WRITE);
    }
    if (x->op == OP_GET)
        return p->v[ir_in(p->m, id)[0]].points_const;
    if (p->v[id].mode != MODE_INLINE)
        return p->v[id].points_const;
    if (x->op == OP_SELECT)
        return clike_const(p, ir_in(p->m, id)[1]) || clike_const(p, ir_in(p->m, id)[2]);
    return space_const(p, x->type);
}

void clike_settle_pointer(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    struct cvalue *const v = &p->v[id];
    uint32_t from = 0;
    if (!ir_type_is_pointer(x->type) || v->mode != MODE_NAMED || x->op == OP_ALLOC)
        return;
    v->points_const = space_const(p, x->type);
    switch ((unsigned)x->op) {
    case OP_INDEX:
    case OP_FIELD:
    case OP_SELECT: /* as if it were printed in place */
        v->mode = MODE_INLINE;
        v->points_const = clike_const(p, id);
        v->pointee = clike_pointee(p, id);
        v->mode = MODE_NAMED;
        return;
    case OP_VAR: from = base_of(p, id); break;
    case OP_ARG: from = ir_in(p->m, ir_region_at(p->m, x->region)->owner)[x->imm]; break;
    case OP_RESULT:
        for (unsigned k = 0; k < ir_n_regions(p->m, x->in[0]) && !from; k++) {
            const uint32_t yield = clike_yield(p, ir_region(p->m, x->in[0], k));
            from = yield ? ir_in(p->m, yield)[x->imm] : 0;
        }
        break;
    }
    if (from)
        v->pointee = clike_pointee(p, from);
}

/* ---- declarations ---------------------------------------------------------------------------------------------- */

static void put_space(struct clike *p, enum space space)
{
    if (*p->d->space[space])
        buf_str(p->b, p->d->space[space]), buf_char(p->b, ' ');
}

void clike_pointer_declare(struct clike *p, enum space space, struct pointee t, bool is_const, const char *name)
{
    put_space(p, space);
    if (is_const)
        buf_str(p->b, "const ");
    ir_type elem = t.type;
    if (!p->array_values)
        while (kind_of(p, elem) == TYPE_KIND_ARRAY)
            elem = elem_of(p, elem);
    if (t.atomic && p->d->atomic_type(p, t.type))
        buf_str(p->b, p->d->atomic_type(p, t.type));
    else
        clike_type(p, elem == TYPE_VOID ? (ir_type)S_U8 : elem);
    buf_fmt(p->b, elem != t.type ? " (*%s)" : " *%s", name);
    for (ir_type a = t.type; a != elem; a = elem_of(p, a))
        buf_fmt(p->b, "[%llu]", (unsigned long long)ir_type_at(p->m, a)->count);
}

void clike_pointer_cast(struct clike *p, enum space space, struct pointee t, bool is_const)
{
    buf_char(p->b, '(');
    clike_pointer_declare(p, space, t, is_const, "");
    buf_char(p->b, ')');
}

void clike_param_declare(struct clike *p, uint32_t k, const char *name)
{
    const struct param *const q = &p->m->params.at[p->m->funcs.at[p->func].first_param + k];
    if (ir_type_is_pointer(q->type))
        clike_pointer_declare(p, ir_type_space(q->type), (struct pointee){q->elem, q->atomic}, clike_const(p, q->node),
                              name);
    else
        clike_declare(p, q->type, name);
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

static void put_index(struct clike *p, uint32_t i)
{
    buf_char(p->b, '[');
    clike_operand(p, i, PREC_LOWEST, LITERAL_PLAIN);
    buf_char(p->b, ']');
}

/* The pointer with a subscript to follow, its type being a pointer to, or an array of, elem. */
static void put_base(struct clike *p, uint32_t id, ir_type elem)
{
    const struct pointee o = object(p, id), t = clike_pointee(p, id);
    const bool array = kind_of(p, o.type) == TYPE_KIND_ARRAY && elem_of(p, o.type) == elem;
    if (array && !o.atomic)
        clike_lvalue(p, id, o.type, PREC_POSTFIX);
    else
        clike_pointer(p, id, (struct pointee){elem, t.atomic && t.type == elem}, clike_const(p, id), PREC_POSTFIX);
}

static bool is_zero(const struct clike *p, uint32_t id)
{
    return at(p, id)->op == OP_CONST && at(p, id)->imm == 0;
}

/* The object itself, not through a cast. */
static void put_object(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const bool inline_ = p->v[id].mode == MODE_INLINE;
    if (x->op == OP_ALLOC) {
        buf_str(p->b, clike_name(p, id));
    } else if (x->op == OP_INDEX && inline_) {
        const uint32_t base = base_of(p, id), i = ir_in(p->m, id)[1];
        const ir_type elem = (ir_type)x->imm;
        if (is_zero(p, i) && at(p, base)->op == OP_ALLOC && at(p, base)->imm == elem) {
            buf_str(p->b, clike_name(p, base));
            return;
        }
        put_base(p, base, elem);
        put_index(p, i);
    } else if (x->op == OP_FIELD && inline_) {
        const uint32_t base = base_of(p, id);
        const ir_type whole = (ir_type)x->imm;
        const uint32_t field = ir_type_at(p->m, whole)->first_field + (uint32_t)(x->imm >> 32);
        if (is_place(p, base) && object(p, base).type == whole) {
            put_object(p, base, PREC_POSTFIX);
            buf_char(p->b, '.');
        } else {
            clike_pointer(p, base, (struct pointee){whole, false}, clike_const(p, base), PREC_POSTFIX);
            buf_str(p->b, "->");
        }
        p->type_used[whole] = 1;
        buf_str(p->b, names_text(p, p->field_names[field]));
    } else {
        const bool close = clike_open(p, PREC_UNARY, prec);
        buf_char(p->b, '*');
        clike_expr(p, id, PREC_UNARY);
        if (close)
            buf_char(p->b, ')');
    }
}

/* An element of a vector in memory, at a constant index: v[i].y */
static bool put_component(struct clike *p, uint32_t id, ir_type t)
{
    const struct node *const x = at(p, id);
    if (x->op != OP_INDEX || p->v[id].mode != MODE_INLINE || x->imm != t || !ir_is_const(p->m, ir_in(p->m, id)[1]))
        return false;
    const uint64_t k = at(p, ir_in(p->m, id)[1])->imm;
    const struct pointee o = object(p, base_of(p, id));
    const unsigned width = ir_type_width(o.type);
    if (o.atomic || width < 2 || k >= width || ir_type_scalar(o.type) != t)
        return false;
    clike_lvalue(p, base_of(p, id), o.type, PREC_POSTFIX);
    clike_part(p, o.type, k);
    return true;
}

void clike_lvalue(struct clike *p, uint32_t id, ir_type t, enum prec prec)
{
    const struct pointee o = object(p, id);
    if (put_component(p, id, t))
        return;
    if (o.type == t && !o.atomic) {
        put_object(p, id, prec);
        return;
    }
    /* The first element of an array. */
    unsigned depth = 0;
    ir_type first = o.type;
    for (; first != t && kind_of(p, first) == TYPE_KIND_ARRAY; depth++)
        first = elem_of(p, first);
    if (depth && first == t && !o.atomic) {
        put_object(p, id, PREC_POSTFIX);
        while (depth-- > 0)
            buf_str(p->b, "[0]");
        return;
    }
    const struct node *const x = at(p, id);
    const bool is_const = clike_const(p, id);
    if (o.atomic && o.type == t && x->op == OP_INDEX && p->v[id].mode == MODE_INLINE) {
        buf_char(p->b, '(');
        clike_pointer(p, base_of(p, id), (struct pointee){t, false}, is_const, PREC_UNARY);
        buf_char(p->b, ')');
        put_index(p, ir_in(p->m, id)[1]);
        return;
    }
    const bool close = clike_open(p, PREC_UNARY, prec);
    buf_char(p->b, '*');
    clike_pointer(p, id, (struct pointee){t, false}, is_const, PREC_UNARY);
    if (close)
        buf_char(p->b, ')');
}

/* ---- values of pointers ---------------------------------------------------------------------------------------- */

void clike_pointer(struct clike *p, uint32_t id, struct pointee want, bool want_const, enum prec prec)
{
    const struct node *const x = at(p, id);
    const struct pointee have = clike_pointee(p, id);
    if (x->op == OP_ZERO) {
        clike_pointer_cast(p, ir_type_space(x->type), want, want_const);
        buf_char(p->b, '0');
        return;
    }
    const bool cast = have.type != want.type || have.atomic != want.atomic;
    const bool close = cast && clike_open(p, PREC_UNARY, prec);
    if (cast) {
        clike_pointer_cast(p, ir_type_space(x->type), want, want_const || clike_const(p, id));
        prec = PREC_UNARY;
    }
    clike_expr(p, id, prec);
    if (close)
        buf_char(p->b, ')');
}

void clike_address(struct clike *p, uint32_t id, enum prec prec)
{
    if (decays(p, object(p, id).type)) {
        put_object(p, id, prec);
        return;
    }
    const bool close = clike_open(p, PREC_UNARY, prec);
    buf_char(p->b, '&');
    put_object(p, id, PREC_UNARY);
    if (close)
        buf_char(p->b, ')');
}

/* "p->", if the pointer is a name whose object has that type. */
bool clike_arrow(struct clike *p, uint32_t id, ir_type t)
{
    const struct pointee o = object(p, id);
    if (is_place(p, id) || o.type != t || o.atomic)
        return false;
    clike_expr(p, id, PREC_POSTFIX);
    buf_str(p->b, "->");
    return true;
}
