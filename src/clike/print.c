/* print.c - a module: which functions, in which order, what they need before them. */
#include "clike/internal.h"

/* ---- lines ----------------------------------------------------------------------------------------------------- */

void clike_begin(struct clike *p)
{
    for (unsigned k = 0; k < p->indent; k++)
        buf_str(p->b, "    ");
}

void clike_end(struct clike *p, uint32_t place)
{
    buf_char(p->b, '\n');
    if (p->b == &p->text)
        VEC_PUSH(p->mem, &p->places, place);
}

void clike_line(struct clike *p, uint32_t place, const char *text)
{
    clike_begin(p);
    buf_str(p->b, text);
    clike_end(p, place);
}

/* ---- refusals -------------------------------------------------------------------------------------------------- */

struct err_place clike_place(const struct clike *p, uint32_t id)
{
    uint32_t place = ir_at(p->m, id)->place;
    for (uint32_t r = ir_at(p->m, id)->region; !place && r; r = ir_parent_region(p->m, r))
        if (ir_region_at(p->m, r)->owner)
            place = ir_at(p->m, ir_region_at(p->m, r)->owner)->place;
    return ir_err_place(p->m, place ? place : p->m->funcs.at[p->func].place);
}

void clike_fail(struct clike *p, sk_status status)
{
    if (p->status == SK_OK)
        p->status = status;
}

/* ---- what is printed ------------------------------------------------------------------------------------------- */

/* Does the type hold a pointer, or an array, inside? */
static bool holds(const struct ir_module *m, ir_type t, enum type_kind kind)
{
    const struct type *const x = ir_type_at(m, t);
    if (x->kind == kind)
        return true;
    if (x->kind == TYPE_KIND_ARRAY)
        return holds(m, x->elem, kind);
    for (uint32_t k = 0; k < x->n_fields; k++)
        if (holds(m, m->fields.at[x->first_field + k].type, kind))
            return true;
    return false;
}

static ir_type value_type(const struct node *x)
{
    return x->op == OP_ALLOC || x->op == OP_INDEX ? (ir_type)x->imm : x->type;
}

static void mark_type(struct clike *p, ir_type t)
{
    const struct type *const x = ir_type_at(p->m, t);
    if (p->type_used[t])
        return;
    p->type_used[t] = 1;
    if (x->kind == TYPE_KIND_ARRAY)
        mark_type(p, x->elem);
    for (uint32_t k = 0; k < x->n_fields; k++)
        mark_type(p, p->m->fields.at[x->first_field + k].type);
}

/* Looks at every node of a function before any is printed: calls, effects, arrays as values, what cannot be printed. */
static void survey_region(struct clike *p, uint32_t region)
{
    const struct ir_module *const m = p->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        p->v[id].events = (uint8_t)clike_events(p, id);
        unsigned events = p->v[id].events & ~EVENT_BIT(EVENT_CONSTRUCT);
        if (x->op == OP_SET || x->op == OP_GET)
            events = 0; /* of the function's own */
        p->func_effects[p->func] |= (uint8_t)events;
        if (ir_is_construct(x->op)) {
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                survey_region(p, ir_region(m, id, k));
            continue;
        }
        if (x->op == OP_PRINT)
            p->uses_logging = true;
        if ((x->flags & NODE_NO_CONTRACT) && (x->op == OP_ADD || x->op == OP_SUB || x->op == OP_MUL))
            p->no_contract = true;
        const bool address = x->op == OP_ALLOC || x->op == OP_INDEX || x->op == OP_FIELD;
        const ir_type t = value_type(x);
        mark_type(p, x->op == OP_FIELD ? (ir_type)x->imm : t);
        if (!address && ir_type_at(m, t)->kind == TYPE_KIND_ARRAY && x->op != OP_EXTRACT)
            p->array_values = true;
        if (!address && !ir_type_is_pointer(t) && holds(m, t, TYPE_KIND_POINTER))
            CLIKE_FAIL(p, id, PRINT_POINTER_STORED, p->d->name);
        if ((x->op == OP_LOAD || x->op == OP_EXTRACT || x->op == OP_EXTRACT_AT) && ir_type_is_pointer(t))
            CLIKE_FAIL(p, id, PRINT_POINTER_STORED, p->d->name);
        for (unsigned k = 0; k < x->n && x->op != OP_RESULT; k++) {
            const uint32_t o = ir_in(m, id)[k];
            const ir_type u = ir_at(m, o)->type;
            if (ir_at(m, o)->op == OP_ZERO) {
                mark_type(p, u);
                p->array_values = p->array_values || ir_type_at(m, u)->kind == TYPE_KIND_ARRAY;
            }
            if (x->op == OP_STORE && k == 1 && ir_type_is_pointer(u))
                CLIKE_FAIL(p, id, PRINT_POINTER_STORED, p->d->name);
        }
    }
}

static void survey(struct clike *p, uint32_t func)
{
    const struct ir_module *const m = p->m;
    const struct func *const f = &m->funcs.at[func];
    p->func = func;
    if (ir_type_is_pointer(f->result))
        clike_fail(p, ERR_AT(p->status ? NULL : p->err, ir_err_place(m, f->place), PRINT_POINTER_RESULT,
                             strtab_str(&m->strings, f->name), p->d->name));
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const q = &m->params.at[f->first_param + k];
        const ir_type t = ir_type_is_pointer(q->type) ? q->elem : q->type;
        mark_type(p, t);
        if (holds(m, t, TYPE_KIND_POINTER))
            clike_fail(p,
                       ERR_AT(p->status ? NULL : p->err, ir_err_place(m, q->place), PRINT_POINTER_STORED, p->d->name));
        if (ir_type_at(m, q->type)->kind == TYPE_KIND_ARRAY)
            p->array_values = true;
    }
    mark_type(p, f->result);
    if (ir_type_at(m, f->result)->kind == TYPE_KIND_ARRAY)
        p->array_values = true;
    if (f->no_contract)
        p->no_contract = true;
    survey_region(p, f->region);
}

/* Callees before callers; the depth is that of the calls, which the verifier limits. */
static void visit(struct clike *p, uint32_t func, uint8_t *seen);

static void visit_region(struct clike *p, uint32_t region, uint8_t *seen)
{
    IR_EACH(p->m, region, id)
    {
        const struct node *const x = ir_at(p->m, id);
        if (x->op == OP_CALL)
            visit(p, (uint32_t)x->imm, seen);
        else if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(p->m, id); k++)
                visit_region(p, ir_region(p->m, id, k), seen);
    }
}

static void visit(struct clike *p, uint32_t func, uint8_t *seen)
{
    if (seen[func])
        return;
    seen[func] = 1;
    visit_region(p, p->m->funcs.at[func].region, seen);
    survey(p, func);
    VEC_PUSH(p->mem, &p->funcs, func);
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

static void function_head(struct clike *p)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    buf_str(p->b, p->d->function);
    clike_type(p, f->result);
    buf_fmt(p->b, " %s(", names_text(p, p->func_name[p->func]));
    for (uint32_t k = 0; k < f->n_params; k++) {
        buf_str(p->b, k ? ", " : "");
        clike_param_declare(p, k, clike_name(p, p->m->params.at[f->first_param + k].node));
    }
    buf_str(p->b, ") {");
    clike_end(p, f->place);
}

static void function(struct clike *p, uint32_t func)
{
    p->func = func;
    clike_plan(p);
    clike_name_function(p);
    if (p->m->funcs.at[func].kernel)
        p->d->kernel_head(p);
    else
        function_head(p);
    clike_body(p);
    clike_line(p, 0, "}");
    names_release(p, 0);
}

/* ---- structs --------------------------------------------------------------------------------------------------- */

/* In the order of their numbers, in which each follows what it holds. */
static void structs(struct clike *p)
{
    for (uint32_t t = TYPE_FIXED_COUNT; t < p->m->types.n; t++) {
        const struct type *const x = &p->m->types.at[t];
        if (!p->type_used[t] || x->kind != TYPE_KIND_STRUCT)
            continue;
        buf_fmt(p->b, "struct %s {\n", names_text(p, p->type_names[t]));
        for (uint32_t k = 0; k < x->n_fields; k++) {
            buf_str(p->b, "    ");
            clike_declare(p, p->m->fields.at[x->first_field + k].type,
                          names_text(p, p->field_names[x->first_field + k]));
            buf_str(p->b, ";\n");
        }
        buf_str(p->b, "};\n\n");
    }
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

static void init(struct clike *p, const struct ir_module *m, const struct clike_dialect *d, struct mem *mem,
                 sk_error *err)
{
    *p = (struct clike){.m = m, .d = d, .mem = mem, .err = err};
    buf_init(&p->text, mem);
    p->b = &p->text;
    p->func_name = mem_zalloc(mem, m->funcs.n * sizeof *p->func_name);
    p->type_names = mem_zalloc(mem, m->types.n * sizeof *p->type_names);
    p->field_names = mem_zalloc(mem, m->fields.n * sizeof *p->field_names);
    names_init(p);
    clike_name_module(p);
}

static sk_status print(struct clike *p, uint32_t func, struct buf *out, struct clike_lines *lines)
{
    const struct ir_module *const m = p->m;
    p->access = mem_zalloc(p->mem, m->params.n);
    p->func_effects = mem_zalloc(p->mem, m->funcs.n);
    p->type_used = mem_zalloc(p->mem, m->types.n);
    p->v = mem_zalloc(p->mem, m->nodes.n * sizeof *p->v);
    uint8_t *const seen = mem_zalloc(p->mem, m->funcs.n);
    for (uint32_t f = 1; f < m->funcs.n; f++)
        if (func ? f == func : m->funcs.at[f].kernel)
            visit(p, f, seen);
    for (uint32_t k = 0; k < p->funcs.n; k++) {
        const struct func *const f = &m->funcs.at[p->funcs.at[k]];
        ir_param_access(m, p->funcs.at[k], p->access + f->first_param, p->mem);
    }
    if (p->status != SK_OK)
        return p->status;
    for (uint32_t k = 0; k < p->funcs.n; k++) {
        if (k > 0)
            clike_line(p, 0, "");
        function(p, p->funcs.at[k]);
        if (p->status != SK_OK)
            return p->status;
    }
    struct buf head;
    buf_init(&head, p->mem);
    p->b = &head;
    buf_str(&head, p->d->prologue);
    p->d->prologue_more(p);
    buf_char(&head, '\n');
    structs(p);
    for (uint32_t k = 0; k < p->helpers.n; k++) { /* writing one may add others before it is needed: see clike_helper */
        const struct helper h = p->helpers.at[k];
        h.write(p, &h);
        buf_char(&head, '\n');
    }
    for (size_t k = 0; k < head.n && lines; k++)
        if (head.at[k] == '\n')
            VEC_PUSH(out->mem, &lines->place, 0);
    for (uint32_t k = 0; k < p->places.n && lines; k++)
        VEC_PUSH(out->mem, &lines->place, p->places.at[k]);
    buf_bytes(out, buf_text(&head), head.n);
    buf_bytes(out, buf_text(&p->text), p->text.n);
    return p->status;
}

sk_status clike_print(const struct ir_module *m, const struct clike_dialect *d, uint32_t func, struct buf *out,
                      struct clike_lines *lines, sk_error *err)
{
    struct mem *const temp = mem_temp(out->mem);
    struct clike *const p = mem_zalloc(temp, sizeof *p);
    init(p, m, d, temp, err);
    const sk_status status = print(p, func, out, lines);
    mem_temp_end(temp);
    return status;
}

void clike_kernel_name(const struct ir_module *m, const struct clike_dialect *d, uint32_t func, struct buf *out)
{
    struct mem *const temp = mem_temp(out->mem);
    struct clike *const p = mem_zalloc(temp, sizeof *p);
    init(p, m, d, temp, NULL);
    buf_str(out, names_text(p, p->func_name[func]));
    mem_temp_end(temp);
}
