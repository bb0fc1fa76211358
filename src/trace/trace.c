/* trace.c - the tracer's life, places and names, functions with their parameters, calls. */
#include "trace/internal.h"

#include <stdio.h>

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void fill(struct trace *t)
{
    t->m = ir_module_new(t->mem);
    t->b.m = t->m;
    VEC_PUSH(t->mem, &t->file_strings, 0);
    VEC_PUSH(t->mem, &t->funcs, (struct func_info){0});
    VEC_PUSH(t->mem, &t->pointers, (struct pointer_info){0});
    VEC_PUSH(t->mem, &t->frozen, (struct frozen){0});
}

struct trace *trace_new(struct mem *m)
{
    struct trace *const t = mem_zalloc(m, sizeof *t);
    t->mem = m;
    strtab_init(&t->files, m);
    /* There is no counter, since the library has no variables: address and time tell tracers apart. */
    t->serial = (uint32_t)hash_u64(os_nanoseconds(), (uintptr_t)t) | 1u;
    jmp_buf *const outer = m->recover;
    jmp_buf here;
    if (_setjmp(here) != 0) { /* only this function knows t: free it, and jump on */
        m->recover = outer;
        trace_free(t);
        mem_out_of_memory(m);
    }
    m->recover = &here;
    fill(t);
    m->recover = outer;
    return t;
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    struct mem *const m = t->mem;
    ir_module_free(t->m);
    strtab_free(&t->files);
    VEC_FREE(m, &t->file_strings);
    VEC_FREE(m, &t->frames);
    VEC_FREE(m, &t->scopes);
    VEC_FREE(m, &t->funcs);
    VEC_FREE(m, &t->pointers);
    VEC_FREE(m, &t->dims);
    VEC_FREE(m, &t->frozen);
    VEC_FREE(m, &t->mark);
    VEC_FREE(m, &t->work);
    mem_free(m, t, sizeof *t);
}

uint32_t trace_serial(const struct trace *t)
{
    return t->serial;
}

bool trace_finished(const struct trace *t)
{
    return !t->m;
}

const struct ir_module *trace_module(const struct trace *t)
{
    return t->m;
}

sk_status trace_finish(struct trace *t, struct ir_module **out, sk_error *err)
{
    if (!t->m)
        return FAIL(t, err, TRACE_OVER);
    if (t->frames.n > 0) {
        const struct func *const f = &t->m->funcs.at[t->b.func];
        return ERR_AT(err, ir_err_place(t->m, f->place), FUNCTION_OPEN, strtab_str(&t->m->strings, f->name));
    }
    bool kernel = false;
    for (uint32_t f = 1; f < t->m->funcs.n; f++)
        kernel |= t->m->funcs.at[f].kernel;
    if (!kernel)
        return FAIL(t, err, NO_KERNEL);
    TRY(ir_verify(t->m, err));
    *out = t->m;
    t->m = t->b.m = NULL;
    return SK_OK;
}

/* ---- places and names ---------------------------------------------------------------------------------------------- */

struct err_place trace_at(const struct trace *t)
{
    return (struct err_place){t->file ? strtab_str(&t->files, t->file) : NULL, t->line, t->column};
}

uint32_t trace_file(struct trace *t, const char *file)
{
    const uint32_t id = strtab_id(&t->files, file, strlen(file));
    if (t->m && id >= t->file_strings.n) {
        const uint32_t string = ir_string(t->m, file);
        VEC_RESERVE(t->mem, &t->file_strings, id + 1 - t->file_strings.n);
        while (t->file_strings.n <= id)
            t->file_strings.at[t->file_strings.n++] = string; /* ids are given in order: one at a time */
    }
    return id;
}

void trace_place(struct trace *t, uint32_t file, uint32_t line, uint32_t column)
{
    t->last_line = line;
    if (line == t->line && column == t->column && file == t->file)
        return;
    t->file = file;
    t->line = line;
    t->column = column;
    if (t->m && file < t->file_strings.n)
        t->b.place = ir_place(t->m, t->file_strings.at[file], line, column, 0);
}

void trace_extent(struct trace *t, uint32_t last_line)
{
    t->last_line = last_line > t->line ? last_line : t->line;
}

const char *trace_pointer_name(const struct trace *t, uint64_t pointer)
{
    const uint32_t name = t->pointers.at[pointer].name;
    return name ? strtab_str(&t->m->strings, name) : "the array";
}

uint32_t trace_symbol(struct trace *t, const char *name)
{
    char text[64];
    size_t n = 0;
    if (*name >= '0' && *name <= '9')
        text[n++] = '_';
    for (; *name && n < sizeof text; name++) {
        const bool plain =
            (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9');
        text[n++] = plain ? *name : '_';
    }
    return strtab_id(&t->m->strings, text, n);
}

void trace_name(struct trace *t, struct tv v, const char *name)
{
    if ((v.kind != TV_VALUE && v.kind != TV_LOCAL && v.kind != TV_POINTER) || !t->m || v.serial != t->serial)
        return;
    if (ir_at(t->m, v.id)->region == 0 || ir_at(t->m, v.id)->name != 0)
        return;
    const uint32_t symbol = trace_symbol(t, name);
    ir_at(t->m, v.id)->name = symbol;
    if (v.kind == TV_POINTER && t->pointers.at[v.magnitude].name == 0)
        t->pointers.at[v.magnitude].name = symbol;
}

/* ---- walks --------------------------------------------------------------------------------------------------------- */

void trace_walk(struct trace *t)
{
    const uint32_t n = t->m->nodes.n;
    if (t->mark.n < n) {
        VEC_RESERVE(t->mem, &t->mark, n - t->mark.n);
        memset(t->mark.at + t->mark.n, 0, (n - t->mark.n) * sizeof *t->mark.at);
        t->mark.n = n;
    }
    if (++t->mark_now == 0) {
        memset(t->mark.at, 0, t->mark.n * sizeof *t->mark.at);
        t->mark_now = 1;
    }
}

bool trace_seen(struct trace *t, uint32_t id)
{
    const bool seen = t->mark.at[id] == t->mark_now;
    t->mark.at[id] = t->mark_now;
    return seen;
}

/* ---- functions ----------------------------------------------------------------------------------------------------- */

/* The name, or the name with the first number that no function has. */
static uint32_t free_func_name(struct trace *t, uint32_t name)
{
    uint32_t tried = name;
    for (unsigned k = 2; ir_func_by_name(t->m, strtab_str(&t->m->strings, tried)); k++) {
        char text[96];
        (void)snprintf(text, sizeof text, "%s_%u", strtab_str(&t->m->strings, name), k);
        tried = ir_string(t->m, text);
    }
    return tried;
}

sk_status trace_begin(struct trace *t, const struct trace_func_desc *d, uint32_t *func, sk_error *err)
{
    if (!t->m)
        return FAIL(t, err, TRACE_OVER);
    uint32_t name = trace_symbol(t, d->name);
    if (name == 0)
        name = ir_string(t->m, d->kernel ? "kernel" : "function");
    if (d->kernel && t->frames.n > 0)
        return FAIL(t, err, KERNEL_INSIDE);
    if (d->kernel && ir_func_by_name(t->m, strtab_str(&t->m->strings, name)))
        return FAIL(t, err, NAME_TAKEN, strtab_str(&t->m->strings, name));
    if (!d->kernel)
        name = free_func_name(t, name);
    VEC_RESERVE(t->mem, &t->frames, 1);
    VEC_RESERVE(t->mem, &t->funcs, 1);
    const uint32_t id = ir_func(t->m, name, d->kernel, d->result, t->b.place);
    struct func *const f = &t->m->funcs.at[id];
    f->fast = d->fast;
    f->no_contract = d->no_contract;
    VEC_PUSH(t->mem, &t->funcs, (struct func_info){0});
    const struct frame frame = {.func = t->b.func,
                                .first_scope = t->scopes.n,
                                .outer_region = t->b.region,
                                .outer_dead = t->dead,
                                .outer_dead_at = t->dead_at,
                                .outer_ended = t->ended};
    VEC_PUSH(t->mem, &t->frames, frame);
    t->b.func = id;
    t->b.region = f->region;
    t->dead = 0;
    t->ended = (struct ended_if){0};
    if (d->kernel)
        t->threadgroup_bytes = 0;
    *func = id;
    return SK_OK;
}

/* Back to what was traced before. */
static void leave_frame(struct trace *t)
{
    const struct frame *const frame = trace_frame(t);
    while (t->scopes.n > frame->first_scope)
        if (t->scopes.at[--t->scopes.n].first_frozen)
            t->frozen.n = t->scopes.at[t->scopes.n].first_frozen;
    t->b.func = frame->func;
    t->b.region = frame->outer_region;
    t->dead = frame->outer_dead;
    t->dead_at = frame->outer_dead_at;
    t->ended = frame->outer_ended;
    t->frames.n--;
}

/* Whether control can leave the region by its end. */
static bool falls_out(const struct trace *t, uint32_t region)
{
    const uint32_t last = ir_region_at(t->m, region)->last;
    if (!last)
        return true;
    const uint16_t op = ir_at(t->m, last)->op;
    if (op == OP_IF)
        return falls_out(t, ir_region(t->m, last, 0)) || falls_out(t, ir_region(t->m, last, 1));
    return op != OP_RETURN && op != OP_UNREACHABLE && op != OP_BR;
}

sk_status trace_end(struct trace *t, sk_error *err)
{
    TRY(trace_open(t, err));
    if (t->scopes.n > trace_frame(t)->first_scope)
        return trace_left_open(t, err);
    const struct func *const f = &t->m->funcs.at[t->b.func];
    const char *const name = strtab_str(&t->m->strings, f->name);
    const struct err_place place = ir_err_place(t->m, f->place);
    if (f->kernel && ir_region_at(t->m, f->region)->last == trace_frame(t)->prologue)
        return ERR_AT(err, place, EMPTY_KERNEL, name);
    if (f->result != TYPE_VOID && falls_out(t, f->region))
        return ERR_AT(err, place, NO_RETURN, name);
    if (f->result != TYPE_VOID && ir_at(t->m, ir_region_at(t->m, f->region)->last)->op == OP_IF) {
        t->b.region = f->region;
        (void)ir_node(&t->b, OP_UNREACHABLE, TYPE_VOID, 0, NULL, 0, 0);
    }
    t->funcs.at[t->b.func].ended = true;
    leave_frame(t);
    return SK_OK;
}

void trace_abandon(struct trace *t)
{
    if (!t->m || t->frames.n == 0)
        return;
    struct func *const f = &t->m->funcs.at[t->b.func];
    struct region *const body = ir_region_at(t->m, f->region);
    body->first = body->last = 0;
    f->kernel = false;
    f->result = TYPE_VOID;
    f->n_params = 0;
    leave_frame(t);
}

/* ---- parameters ---------------------------------------------------------------------------------------------------- */

#define MAX_BUFFERS 31u /* Metal's argument table; values given at launch take an entry each, like buffers */

static bool name_taken(const struct trace *t, const struct func *f, uint32_t name)
{
    for (uint32_t k = 0; k < f->n_params; k++)
        if (t->m->params.at[f->first_param + k].name == name)
            return true;
    return false;
}

static uint32_t free_param_name(struct trace *t, const struct func *f, const char *name)
{
    uint32_t first = trace_symbol(t, name);
    if (first == 0)
        first = ir_string(t->m, "p");
    uint32_t tried = first;
    for (unsigned k = 2; name_taken(t, f, tried); k++) {
        char text[96];
        (void)snprintf(text, sizeof text, "%s_%u", strtab_str(&t->m->strings, first), k);
        tried = ir_string(t->m, text);
    }
    return tried;
}

static sk_status check_attribute(struct trace *t, const struct trace_param_desc *d, sk_error *err)
{
    const struct attr_info *const a = &attr_info[d->attribute < ATTR_COUNT ? d->attribute : ATTR_NONE];
    const enum scalar s = ir_type_scalar(d->type);
    const unsigned width = ir_type_width(d->type);
    const bool integer = (scalar_info[s].class_ & CLASS_SU) && scalar_info[s].bits >= 16 && scalar_info[s].bits <= 32;
    if (!integer || width == 0 || a == attr_info || width > (a->vec ? 3 : 1))
        return FAIL(t, err, ATTRIBUTE_TYPE, d->name, a->metal, a->vec ? ", or a vector of 2 or 3 of them" : "",
                    trace_type_text(t, d->type).at);
    return SK_OK;
}

static sk_status check_param(struct trace *t, const struct trace_param_desc *d, const struct func *f, sk_error *err)
{
    const bool pointer = ir_type_is_pointer(d->type);
    if (ir_region_at(t->m, f->region)->last != trace_frame(t)->prologue)
        return FAIL(t, err, PARAM_LATE, d->name);
    if (d->type == TYPE_VOID || (pointer && d->elem == TYPE_VOID))
        return FAIL(t, err, PARAM_TYPE, d->name);
    if (!f->kernel)
        return SK_OK;
    bool right = false;
    switch ((enum param_kind)d->kind) {
    case PARAM_VALUE: right = !pointer; break;
    case PARAM_BUFFER: right = d->type == TYPE_POINTER(SPACE_DEVICE) || d->type == TYPE_POINTER(SPACE_CONSTANT); break;
    case PARAM_THREADGROUP: right = d->type == TYPE_POINTER(SPACE_THREADGROUP); break;
    case PARAM_ATTRIBUTE: return check_attribute(t, d, err);
    }
    if (!right)
        return FAIL(t, err, PARAM_TYPE, d->name);
    unsigned same = 0;
    const bool memory = d->kind == PARAM_THREADGROUP;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const unsigned kind = t->m->params.at[f->first_param + k].kind;
        same += kind != PARAM_ATTRIBUTE && (kind == PARAM_THREADGROUP) == memory;
    }
    if (same == MAX_BUFFERS)
        return FAIL(t, err, TOO_MANY_BUFFERS, d->name, MAX_BUFFERS);
    return SK_OK;
}

/* Metal's attributes are unsigned: where a signed one is asked for, the parameter is converted. */
static ir_type declared_type(const struct trace_param_desc *d, bool kernel)
{
    const enum scalar s = ir_type_scalar(d->type);
    const bool twin = kernel && d->kind == PARAM_ATTRIBUTE && scalar_info[s].class_ == CLASS_S;
    return twin ? ir_type_with(d->type, (enum scalar)(s + 1)) : d->type;
}

sk_status trace_param(struct trace *t, const struct trace_param_desc *d, struct tv *out, sk_error *err)
{
    TRY(trace_open(t, err));
    const struct func *f = &t->m->funcs.at[t->b.func];
    TRY(check_param(t, d, f, err));
    const uint32_t name = free_param_name(t, f, d->name);
    const bool pointer = ir_type_is_pointer(d->type);
    const struct param p = {.name = name,
                            .place = t->b.place,
                            .type = declared_type(d, f->kernel),
                            .elem = pointer ? d->elem : TYPE_VOID,
                            .kind = f->kernel ? d->kind : (uint8_t)PARAM_VALUE,
                            .attribute = f->kernel && d->kind == PARAM_ATTRIBUTE ? d->attribute : (uint8_t)ATTR_NONE,
                            .atomic = d->atomic};
    VEC_RESERVE(t->mem, &t->pointers, 1);
    *out = trace_value(t, ir_param(t->m, t->b.func, &p));
    if (pointer) {
        out->kind = TV_POINTER;
        out->magnitude = t->pointers.n;
        const struct pointer_info info = {
            .name = name, .elem = d->elem, .space = (uint8_t)ir_type_space(d->type), .atomic = d->atomic};
        VEC_PUSH(t->mem, &t->pointers, info);
    } else if (p.type != d->type) {
        out->id = ir_convert(&t->b, d->type, out->id);
        trace_frame(t)->prologue = out->id;
    }
    return SK_OK;
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

static sk_status pointer_argument(struct trace *t, struct tv v, const struct param *p, const char *what, uint32_t *out,
                                  sk_error *err)
{
    if (v.kind != TV_POINTER)
        return FAIL(t, err, ARGUMENT_POINTER, what, space_name[ir_type_space(p->type)], trace_type_text(t, p->elem).at);
    TRY(trace_use_pointer(t, v, err));
    const struct pointer_info *const info = &t->pointers.at[v.magnitude];
    if (trace_node_type(t, v.id) != p->type || info->elem != p->elem)
        return FAIL(t, err, ARGUMENT_POINTER, what, space_name[ir_type_space(p->type)], trace_type_text(t, p->elem).at);
    *out = v.id;
    return SK_OK;
}

sk_status trace_call(struct trace *t, uint32_t func, unsigned n, const struct tv *args, struct tv *out, sk_error *err)
{
    TRY(trace_open(t, err));
    if (func == 0 || func >= t->m->funcs.n || t->m->funcs.at[func].kernel)
        return FAIL(t, err, NOT_CALLABLE);
    const char *const name = strtab_str(&t->m->strings, t->m->funcs.at[func].name);
    if (!t->funcs.at[func].ended)
        return FAIL(t, err, RECURSION, name);
    const struct func f = t->m->funcs.at[func];
    if (n != f.n_params)
        return FAIL(t, err, ARGUMENT_COUNT, name, f.n_params, n);
    const unsigned effects = t->funcs.at[func].effects;
    if (effects & FX_BARRIER)
        TRY(trace_converged(t, name, err));
    const uint32_t mark = t->work.n;
    VEC_RESERVE(t->mem, &t->work, n);
    for (unsigned k = 0; k < n; k++) {
        const struct param p = t->m->params.at[f.first_param + k];
        char what[160];
        uint32_t id;
        (void)snprintf(what, sizeof what, "argument '%.60s' of '%.60s'", strtab_str(&t->m->strings, p.name), name);
        sk_status status;
        if (ir_type_is_pointer(p.type)) {
            status = pointer_argument(t, args[k], &p, what, &id, err);
        } else {
            struct tv v;
            status = trace_use(t, args[k], &v, err);
            if (status == SK_OK)
                status = trace_implicit_node(t, v, p.type, what, &id, err);
        }
        if (status != SK_OK) {
            t->work.n = mark;
            return status;
        }
        t->work.at[t->work.n++] = id;
    }
    trace_effect(t, effects);
    const uint32_t id = ir_node(&t->b, OP_CALL, f.result, n, t->work.at + mark, 0, func);
    t->work.n = mark;
    *out = f.result == TYPE_VOID ? (struct tv){.kind = TV_NONE} : trace_value(t, id);
    return SK_OK;
}
