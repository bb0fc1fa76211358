/* verify.c - what a well-formed module is. This file is the definition; docs/ir.md tells it in words.
 *
 * One walk over each function in the order of the text, without recursion. `state` says of each node whether it has been
 * met and whether it is visible at the walk's position; leaving a region takes its nodes out of sight. The walk also
 * follows which positions control can reach, to see whether a function with a result can end without one.
 * Messages show the node in question; places are its own, or those of what holds it.
 */
#include "ir/verify.h"

#include <stdio.h>

enum { SEEN = 1, VISIBLE = 2, LEFT = 4 /* a construct that control can leave */ };

struct edge { /* a call */
    uint32_t caller, callee, node;
};

/* An open construct, or the function's body at depth 0. */
struct frame {
    uint32_t construct, region;
    unsigned n_results;
    bool reached; /* control reaches the construct */
};

struct walk {
    struct verifier v;
    uint8_t *region_seen;
    struct frame frame[IR_MAX_DEPTH + 1];
    unsigned depth;
    bool reached; /* control reaches this position */
    VEC(struct edge) calls;
};

/* ---- messages -------------------------------------------------------------------------------------------------- */

const char *verify_type(struct verifier *v, unsigned slot, ir_type t)
{
    struct buf *const b = &v->type_text[slot];
    b->n = 0;
    ir_type_print(v->m, b, t);
    return buf_text(b);
}

const char *verify_node(struct verifier *v, uint32_t id)
{
    v->node_text.n = 0;
    ir_print_node(v->m, v->func, id, &v->node_text);
    return buf_text(&v->node_text);
}

struct err_place verify_place(const struct verifier *v, uint32_t id)
{
    uint32_t place = ir_at(v->m, id)->place;
    for (uint32_t region = ir_at(v->m, id)->region; !place && region; region = ir_parent_region(v->m, region))
        if (ir_region_at(v->m, region)->owner)
            place = ir_at(v->m, ir_region_at(v->m, region)->owner)->place;
    return ir_err_place(v->m, place ? place : v->f->place);
}

/* ---- types, places, names -------------------------------------------------------------------------------------- */

#define FUNC_FAIL(v, ROW, ...) ERR_AT((v)->err, ir_err_place((v)->m, (v)->f->place), ROW, __VA_ARGS__)

static bool is_string(const struct verifier *v, uint32_t string)
{
    return string == 0 || string < v->m->strings.str.n;
}

static const char *text_of(const struct verifier *v, uint32_t string)
{
    return strtab_str(&v->m->strings, string);
}

/* A name of functions, parameters, structs and fields. */
static bool is_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (size_t n = strlen(s); n > 0;) {
        const unsigned length = utf8_length(s, n);
        if (length == 0 || !ir_name_char(*s))
            return false;
        s += length;
        n -= length;
    }
    return true;
}

/* The name of a value stands before a number and may begin with a digit. */
static bool is_value_name(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return !*s || is_name(s);
}

bool ir_type_word(const char *s)
{
    char text[16];
    for (enum scalar k = S_BOOL; k < S_COUNT; k++) {
        if (strcmp(s, scalar_info[k].name) == 0)
            return true;
        for (int n = 2; n <= 4; n++) {
            (void)snprintf(text, sizeof text, "%sx%d", scalar_info[k].name, n);
            if (strcmp(s, text) == 0)
                return true;
        }
    }
    for (unsigned k = 0; k < SPACE_COUNT; k++)
        if (strcmp(s, space_name[k]) == 0)
            return true;
    return strcmp(s, "ptr") == 0 || strcmp(s, "atomic") == 0 || strcmp(s, "void") == 0;
}

/* Whether the name was met before in the scope that `serial` stands for. */
static bool met(struct verifier *v, uint32_t string, uint32_t serial)
{
    const bool old = v->mark[string] == serial;
    v->mark[string] = serial;
    return old;
}

static sk_status check_types(struct verifier *v)
{
    const struct ir_module *const m = v->m;
    /* How deep types hold each other: others walk them by recursion. */
    uint16_t *const deep = ARENA_NEW(&v->scratch, uint16_t, m->types.n);
    const uint32_t scope = ++v->serial;
    for (uint32_t t = TYPE_FIXED_COUNT; t < m->types.n; t++) {
        const struct type *const x = &m->types.at[t];
        if (x->elem >= t || x->first_field + (uint64_t)x->n_fields > m->fields.n || !is_string(v, x->name))
            return ERR(v->err, IR_BROKEN, "type", t, "refers to what does not exist");
        uint32_t depth = deep[x->elem];
        for (uint32_t k = 0; k < x->n_fields; k++) {
            const struct field *const f = &m->fields.at[x->first_field + k];
            if (f->type >= t || !is_string(v, f->name))
                return ERR(v->err, IR_BROKEN, "type", t, "has a field that does not exist");
            if (depth < deep[f->type])
                depth = deep[f->type];
        }
        if (depth >= IR_MAX_DEPTH)
            return ERR(v->err, IR_TYPE_DEPTH, IR_MAX_DEPTH);
        deep[t] = (uint16_t)(depth + 1);
        if (x->kind != TYPE_KIND_STRUCT)
            continue;
        if (!is_name(text_of(v, x->name)) || ir_type_word(text_of(v, x->name)))
            return ERR(v->err, IR_NAME, text_of(v, x->name), "struct");
        if (met(v, x->name, scope))
            return ERR(v->err, IR_NAME_TWICE, "structs", text_of(v, x->name));
    }
    for (uint32_t t = TYPE_FIXED_COUNT; t < m->types.n; t++) {
        const struct type *const x = &m->types.at[t];
        v->serial++;
        for (uint32_t k = 0; k < x->n_fields; k++) {
            const uint32_t name = m->fields.at[x->first_field + k].name;
            if (!is_name(text_of(v, name)))
                return ERR(v->err, IR_NAME, text_of(v, name), "field");
            if (met(v, name, v->serial))
                return ERR(v->err, IR_NAME_TWICE, "fields of a struct", text_of(v, name));
        }
    }
    for (uint32_t k = 1; k < m->places.n; k++)
        if (m->places.at[k].at >= k || !is_string(v, m->places.at[k].file))
            return ERR(v->err, IR_BROKEN, "place", k, "refers to what does not exist");
    return SK_OK;
}

/* ---- functions and parameters ---------------------------------------------------------------------------------- */

static bool is_u16_u32(ir_type t)
{
    return ir_type_scalar(t) == S_U16 || ir_type_scalar(t) == S_U32;
}

static sk_status check_param(struct verifier *v, const struct param *p)
{
    const struct ir_module *const m = v->m;
    const char *const name = text_of(v, p->name);
    const struct err_place at = ir_err_place(m, p->place ? p->place : v->f->place);
    const bool pointer = ir_type_is_pointer(p->type);
    const enum space space = pointer ? ir_type_space(p->type) : SPACE_THREAD;
    if (!is_name(name))
        return ERR_AT(v->err, at, IR_NAME, name, "parameter");
    if (met(v, p->name, v->serial))
        return ERR_AT(v->err, at, IR_NAME_TWICE, "parameters of a function", name);
    if (p->type == TYPE_VOID || (p->elem && !pointer) || (p->atomic && !p->elem))
        return ERR_AT(v->err, at, IR_PARAM_TYPE, name, verify_type(v, 0, p->type));
    if (p->atomic && !(verify_is_atomic(p->elem) && (space == SPACE_DEVICE || space == SPACE_THREADGROUP)))
        return ERR_AT(v->err, at, IR_PARAM_ATOMIC, name, space_name[space], verify_type(v, 0, p->elem));

    if (p->kind == PARAM_ATTRIBUTE) {
        const struct attr_info *const a = &attr_info[p->attribute < ATTR_COUNT ? p->attribute : ATTR_NONE];
        const unsigned width = ir_type_width(p->type);
        if (!v->f->kernel || a == &attr_info[ATTR_NONE])
            return ERR_AT(v->err, at, IR_PARAM_ATTRIBUTE, name, a->metal);
        if (!is_u16_u32(p->type) || width > (a->vec ? 3u : 1u))
            return ERR_AT(v->err, at, IR_ATTRIBUTE_TYPE, name, a->metal, verify_type(v, 0, p->type),
                          a->vec ? "u16, u32 or a vector of 2 or 3 of them" : "u16 or u32");
        return SK_OK;
    }
    if (p->attribute != ATTR_NONE)
        return ERR_AT(v->err, at, IR_PARAM_ATTRIBUTE, name, attr_info[p->attribute % ATTR_COUNT].metal);
    if (!v->f->kernel)
        return p->kind == PARAM_VALUE ? SK_OK : ERR_AT(v->err, at, IR_PARAM_KIND, name);
    const enum type_kind kind = (enum type_kind)ir_type_at(m, p->type)->kind;
    bool good = false;
    if (p->kind == PARAM_BUFFER)
        good = pointer && p->elem && (space == SPACE_DEVICE || space == SPACE_CONSTANT);
    else if (p->kind == PARAM_THREADGROUP)
        good = pointer && p->elem && space == SPACE_THREADGROUP;
    else
        good = kind == TYPE_KIND_SCALAR || kind == TYPE_KIND_VECTOR || kind == TYPE_KIND_STRUCT;
    return good ? SK_OK : ERR_AT(v->err, at, IR_PARAM_TYPE, name, verify_type(v, 0, p->type));
}

static sk_status check_header(struct verifier *v)
{
    const struct ir_module *const m = v->m;
    const struct func *const f = v->f;
    if (!is_string(v, f->name) || f->place >= m->places.n || f->result >= m->types.n ||
        f->first_param + (uint64_t)f->n_params > m->params.n || f->region == 0 || f->region >= m->regions.n ||
        ir_region_at(m, f->region)->owner)
        return ERR(v->err, IR_BROKEN, "function", v->func, "refers to what does not exist");
    if (!is_name(text_of(v, f->name)))
        return FUNC_FAIL(v, IR_NAME, text_of(v, f->name), "function");
    if (f->kernel && f->result)
        return FUNC_FAIL(v, IR_KERNEL_RESULT, text_of(v, f->name));
    if (f->max_threads && (!f->kernel || f->max_threads > IR_MAX_THREADS))
        return FUNC_FAIL(v, IR_MAX_THREADS_RANGE, text_of(v, f->name), f->max_threads, IR_MAX_THREADS);

    v->serial++;
    unsigned n_buffers = 0, n_threadgroup = 0;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const p = &m->params.at[f->first_param + k];
        if (!is_string(v, p->name) || p->place >= m->places.n || p->type >= m->types.n || p->elem >= m->types.n ||
            p->node >= m->nodes.n || ir_at(m, p->node)->op != OP_PARAM || ir_at(m, p->node)->imm != k ||
            ir_at(m, p->node)->type != p->type)
            return ERR(v->err, IR_BROKEN, "parameter", f->first_param + k, "refers to what does not exist");
        TRY(check_param(v, p));
        n_buffers += p->kind == PARAM_BUFFER || p->kind == PARAM_VALUE;
        n_threadgroup += p->kind == PARAM_THREADGROUP;
    }
    if (f->kernel && (n_buffers > IR_MAX_PARAMS || n_threadgroup > IR_MAX_PARAMS))
        return FUNC_FAIL(v, IR_PARAM_COUNT, text_of(v, f->name), n_buffers > IR_MAX_PARAMS ? n_buffers : n_threadgroup,
                         n_buffers > IR_MAX_PARAMS ? "buffers and values" : "threadgroup memories", IR_MAX_PARAMS);
    return SK_OK;
}

/* ---- operands -------------------------------------------------------------------------------------------------- */

static sk_status broken(struct verifier *v, uint32_t id, const char *what)
{
    return ERR_AT(v->err, ir_err_place(v->m, v->f->place), IR_BROKEN, "node", id, what);
}

/* Constants stand in no region, hence are checked where they are used. */
static sk_status check_const(struct verifier *v, uint32_t user, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    const unsigned bits = scalar_info[ir_type_scalar(x->type)].bits;
    const bool scalar = ir_type_width(x->type) == 1;
    if (x->n || x->flags || x->region || x->prev || x->next || x->type == TYPE_VOID || scalar != (x->op == OP_CONST))
        return broken(v, id, "is no proper constant");
    if (x->op == OP_ZERO ? x->imm != 0 : bits < 64 && x->imm >> bits != 0)
        return FAIL(v, user, IR_CONST_BITS, (unsigned long long)x->imm, verify_type(v, 0, x->type));
    v->state[id] |= SEEN;
    return SK_OK;
}

static sk_status check_operands(struct verifier *v, uint32_t id)
{
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    const uint32_t *const in = ir_in(m, id);
    for (unsigned k = 0; k < x->n; k++) {
        const uint32_t o = in[k];
        if (o == 0 || o >= m->nodes.n)
            return broken(v, id, "has an operand that does not exist");
        const struct node *const y = ir_at(m, o);
        if (!(v->state[o] & VISIBLE)) {
            if (y->type >= m->types.n)
                return broken(v, o, "has a type that does not exist");
            if (y->op == OP_CONST || y->op == OP_ZERO) {
                if (!(v->state[o] & SEEN))
                    TRY(check_const(v, id, o));
            } else if (y->op != OP_PARAM || y->imm >= v->f->n_params ||
                       m->params.at[v->f->first_param + y->imm].node != o) {
                return FAIL(v, id, IR_NOT_VISIBLE, k + 1);
            }
        } else if (y->type == TYPE_VOID) {
            return FAIL(v, id, IR_NO_VALUE, k + 1, op_info[y->op].name);
        } else if (y->op == OP_VAR && (k > 0 || (x->op != OP_GET && x->op != OP_SET))) {
            return FAIL(v, id, IR_VAR_AS_VALUE, k + 1);
        }
    }
    return SK_OK;
}

sk_status verify_carried(struct verifier *v, uint32_t id, uint32_t first, unsigned n, const char *what)
{
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    if (x->n != n)
        return FAIL(v, id, IR_CARRIED_COUNT, x->n, what, n);
    for (unsigned k = 0; k < n; k++, first = ir_at(m, first)->next)
        TRY(verify_operand(v, id, k, ir_at(m, first)->type));
    return SK_OK;
}

/* ---- constructs and exits -------------------------------------------------------------------------------------- */

/* Cases of u64 are held as i64. */
static const char *case_text(bool is_signed, int64_t x, char out[24])
{
    if (is_signed)
        (void)snprintf(out, 24, "%lld", (long long)x);
    else
        (void)snprintf(out, 24, "%llu", (unsigned long long)x);
    return out;
}

static sk_status check_cases(struct verifier *v, uint32_t id, unsigned n_results)
{
    const struct ir_module *const m = v->m;
    const ir_type t = ir_at(m, ir_in(m, id)[0])->type;
    const unsigned bits = scalar_info[ir_type_scalar(t)].bits;
    const bool is_signed = ir_type_class(m, t) == CLASS_S;
    const int64_t low = is_signed ? (int64_t)(~(uint64_t)0 << (bits - 1)) : 0;
    const int64_t high = is_signed ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                                   : (int64_t)(bits < 64 ? ((uint64_t)1 << bits) - 1 : INT64_MAX);
    uint64_t count = 0;
    bool has_default = false;
    for (unsigned k = 0; k < ir_n_regions(m, id); k++) {
        const struct region *const r = ir_region_at(m, ir_region(m, id, k));
        if (r->first_case + (uint64_t)r->n_cases > m->cases.n)
            return broken(v, id, "has cases that do not exist");
        if (r->is_default ? r->n_cases > 0 : r->n_cases == 0)
            return FAIL(v, id, IR_CASE_EMPTY, k + 1);
        if (r->is_default && has_default)
            return FAIL(v, id, IR_DEFAULT_TWICE);
        has_default = has_default || r->is_default;
        count += r->n_cases;
    }
    if (n_results && !has_default)
        return FAIL(v, id, IR_DEFAULT_MISSING);
    if (count > UINT32_MAX / 4)
        return broken(v, id, "has too many cases");

    /* Slots hold the index of a case, from 1. */
    uint32_t n_slots = 4;
    while (n_slots < 2 * count)
        n_slots *= 2;
    uint32_t *const slots = ARENA_NEW(&v->scratch, uint32_t, n_slots);
    for (unsigned k = 0; k < ir_n_regions(m, id); k++) {
        const struct region *const r = ir_region_at(m, ir_region(m, id, k));
        for (uint32_t i = r->first_case; i < r->first_case + r->n_cases; i++) {
            const int64_t x = m->cases.at[i];
            char text[24];
            if ((is_signed || bits < 64) && (x < low || x > high))
                return FAIL(v, id, IR_CASE_RANGE, case_text(is_signed, x, text), verify_type(v, 0, t));
            uint32_t slot = (uint32_t)hash_u64(0, (uint64_t)x) & (n_slots - 1);
            for (; slots[slot]; slot = (slot + 1) & (n_slots - 1))
                if (m->cases.at[slots[slot] - 1] == x)
                    return FAIL(v, id, IR_CASE_TWICE, case_text(is_signed, x, text));
            slots[slot] = i + 1;
        }
    }
    return SK_OK;
}

/* The frame takes note of the results, which follow the construct; the walk enters its first region. */
static sk_status open_construct(struct walk *w, uint32_t id)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    const unsigned n = ir_n_regions(m, id);
    const uint32_t first = (uint32_t)x->imm;
    if (n && (first == 0 || first + (uint64_t)n > m->regions.n))
        return broken(v, id, "has regions that do not exist");
    if (x->op != OP_SWITCH && n != (x->op == OP_IF ? 2u : 1u))
        return broken(v, id, "has the wrong number of regions");
    for (unsigned k = 0; k < n; k++) {
        const struct region *const r = ir_region_at(m, first + k);
        if (r->owner != id || w->region_seen[first + k])
            return broken(v, id, "does not own its regions");
        if (x->op != OP_SWITCH && (r->n_cases || r->is_default))
            return broken(v, id, "has cases");
        w->region_seen[first + k] = 1;
    }
    unsigned n_results = 0;
    for (uint32_t k = x->next; k && k < m->nodes.n && ir_at(m, k)->op == OP_RESULT && ir_at(m, k)->in[0] == id;
         k = ir_at(m, k)->next)
        if (++n_results > UINT16_MAX || ir_at(m, k)->type >= m->types.n)
            return broken(v, id, "has too many results, or one of a type that does not exist");
    if (x->op == OP_SWITCH)
        TRY(check_cases(v, id, n_results));
    if (w->depth == IR_MAX_DEPTH)
        return FAIL(v, id, IR_DEPTH, IR_MAX_DEPTH);
    if (x->op == OP_LOOP) {
        uint32_t arg = ir_region_at(m, first)->first;
        for (unsigned k = 0; k < x->n; k++) {
            if (!arg || arg >= m->nodes.n || ir_at(m, arg)->op != OP_ARG || ir_at(m, arg)->type >= m->types.n)
                return broken(v, id, "has fewer parameters than operands");
            TRY(verify_operand(v, id, k, ir_at(m, arg)->type));
            arg = ir_at(m, arg)->next;
        }
    }
    w->frame[++w->depth] =
        (struct frame){.construct = id, .region = n ? first : 0, .n_results = n_results, .reached = w->reached};
    return SK_OK;
}

static sk_status check_arg(struct verifier *v, uint32_t id)
{
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    const uint32_t owner = ir_region_at(m, x->region)->owner;
    const bool in_order =
        x->prev ? ir_at(m, x->prev)->op == OP_ARG && ir_at(m, x->prev)->imm + 1 == x->imm : x->imm == 0;
    if (!owner || ir_at(m, owner)->op != OP_LOOP || !in_order || x->imm >= ir_at(m, owner)->n)
        return broken(v, id, "is no parameter of its loop");
    return SK_OK;
}

static sk_status check_result(struct verifier *v, uint32_t id)
{
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    const struct node *const before = ir_at(m, x->prev);
    const bool in_order = x->imm == 0
                              ? x->prev == x->in[0]
                              : before->op == OP_RESULT && before->in[0] == x->in[0] && before->imm + 1 == x->imm;
    if (x->n != 1 || !x->prev || !in_order || !ir_is_construct(ir_at(m, x->in[0])->op))
        return broken(v, id, "does not follow its construct");
    return SK_OK;
}

static sk_status check_br(struct walk *w, uint32_t id)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    const uint64_t label = ir_at(m, id)->imm;
    unsigned k = w->depth;
    while (k > 0 && w->frame[k].construct != label)
        k--;
    if (k == 0)
        return FAIL(v, id, IR_LABEL_OUTSIDE);
    const uint32_t construct = (uint32_t)label;
    if (ir_at(m, construct)->op == OP_LOOP) {
        const struct region *const r = ir_region_at(m, ir_region(m, construct, 0));
        return verify_carried(v, id, r->first, ir_at(m, construct)->n, "parameters of the loop");
    }
    if (w->reached)
        v->state[construct] |= LEFT;
    return verify_carried(v, id, ir_at(m, construct)->next, w->frame[k].n_results, "results of the construct");
}

static sk_status check_yield(struct walk *w, uint32_t id)
{
    const struct frame *const f = &w->frame[w->depth];
    if (w->depth == 0)
        return FAIL(&w->v, id, IR_YIELD_OUTSIDE);
    if (w->reached)
        w->v.state[f->construct] |= LEFT;
    return verify_carried(&w->v, id, ir_at(w->v.m, f->construct)->next, f->n_results, "results of the construct");
}

static sk_status check_return(struct verifier *v, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    const unsigned n = v->f->result != TYPE_VOID;
    if (x->n != n)
        return FAIL(v, id, IR_RETURN_COUNT, x->n, text_of(v, v->f->name), n ? "one" : "none");
    return n ? verify_operand(v, id, 0, v->f->result) : SK_OK;
}

static sk_status check_call(struct walk *w, uint32_t id)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    if (x->imm == 0 || x->imm >= m->funcs.n)
        return broken(v, id, "calls a function that does not exist");
    const struct func *const f = &m->funcs.at[x->imm];
    if (f->kernel)
        return FAIL(v, id, IR_CALL_KERNEL, text_of(v, f->name));
    if (x->n != f->n_params)
        return FAIL(v, id, IR_CALL_COUNT, text_of(v, f->name), f->n_params, x->n);
    if (f->first_param + (uint64_t)f->n_params > m->params.n)
        return broken(v, id, "calls a function without its parameters");
    for (unsigned k = 0; k < x->n; k++) {
        if (m->params.at[f->first_param + k].type >= m->types.n)
            return broken(v, id, "calls a function with a type that does not exist");
        TRY(verify_operand(v, id, k, m->params.at[f->first_param + k].type));
    }
    if (f->result >= m->types.n)
        return broken(v, id, "calls a function with a type that does not exist");
    if (x->type != f->result)
        return FAIL(v, id, IR_RESULT_TYPE, verify_type(v, 0, x->type), verify_type(v, 1, f->result));
    VEC_PUSH(m->mem, &w->calls, ((struct edge){v->func, (uint32_t)x->imm, id}));
    return SK_OK;
}

/* ---- the walk -------------------------------------------------------------------------------------------------- */

static sk_status check_node(struct walk *w, uint32_t id, uint32_t region, uint32_t prev)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    if (id >= m->nodes.n)
        return broken(v, id, "does not exist");
    const struct node *const x = ir_at(m, id);
    if (v->state[id])
        return broken(v, id, "stands in two places");
    if (x->region != region || x->prev != prev)
        return broken(v, id, "is not linked to its neighbours");
    if (x->op == OP_NONE || x->op >= OP_COUNT || x->type >= m->types.n || x->place >= m->places.n ||
        !is_string(v, x->name) || (x->n > NODE_INLINE && x->in[0] + (uint64_t)x->n > m->side.n))
        return broken(v, id, "refers to what does not exist");
    if (prev && op_info[ir_at(m, prev)->op].effect == EFFECT_EXIT)
        return FAIL(v, id, IR_AFTER_EXIT, op_info[ir_at(m, prev)->op].name);
    if (x->name && !is_value_name(text_of(v, x->name)))
        return FAIL(v, id, IR_VALUE_NAME, text_of(v, x->name));
    v->state[id] = SEEN;

    const enum op op = (enum op)x->op;
    if (op == OP_RESULT)
        TRY(check_result(v, id));
    else
        TRY(check_operands(v, id));
    TRY(verify_op(v, id));
    v->state[id] = SEEN | VISIBLE;
    if (ir_is_construct(x->op))
        return open_construct(w, id);
    if (op == OP_ARG)
        return check_arg(v, id);
    if (op == OP_BR)
        TRY(check_br(w, id));
    else if (op == OP_YIELD)
        TRY(check_yield(w, id));
    else if (op == OP_RETURN)
        TRY(check_return(v, id));
    else if (op == OP_CALL)
        TRY(check_call(w, id));
    if (op_info[op].effect == EFFECT_EXIT)
        w->reached = false;
    return SK_OK;
}

/* The end of the innermost frame's region: what it defined is out of sight, and control may fall out. */
static sk_status close_region(struct walk *w, uint32_t region, uint32_t last)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    const struct frame *const f = &w->frame[w->depth];
    if (ir_region_at(m, region)->last != last)
        return ERR_AT(v->err, ir_err_place(m, v->f->place), IR_BROKEN, "region", region, "has another last node");
    const bool exits = last && op_info[ir_at(m, last)->op].effect == EFFECT_EXIT;
    if (w->depth && !exits && f->n_results)
        return FAIL(v, f->construct, IR_NO_YIELD);
    if (w->depth == 0 && w->reached && v->f->result)
        return FUNC_FAIL(v, IR_NO_RETURN, text_of(v, v->f->name));
    if (w->depth && w->reached)
        v->state[f->construct] |= LEFT;
    for (uint32_t id = ir_region_at(m, region)->first; id; id = ir_at(m, id)->next)
        v->state[id] = SEEN;
    return SK_OK;
}

/* The frame after its last region: where control goes on. */
static void close_construct(struct walk *w)
{
    const struct frame *const f = &w->frame[w->depth--];
    const struct ir_module *const m = w->v.m;
    bool falls = w->v.state[f->construct] & LEFT;
    if (ir_at(m, f->construct)->op == OP_SWITCH) {
        bool has_default = false;
        for (unsigned k = 0; k < ir_n_regions(m, f->construct); k++)
            has_default = has_default || ir_region_at(m, ir_region(m, f->construct, k))->is_default;
        falls = falls || !has_default;
    }
    w->reached = f->reached && falls;
}

static sk_status check_body(struct walk *w)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    uint32_t region = v->f->region, prev = 0;
    if (w->region_seen[region])
        return ERR(v->err, IR_BROKEN, "function", v->func, "shares its body with another");
    w->region_seen[region] = 1;
    w->depth = 0;
    w->reached = true;
    w->frame[0] = (struct frame){.region = region};
    uint32_t id = ir_region_at(m, region)->first;
    for (;;) {
        while (id) {
            const unsigned depth = w->depth;
            TRY(check_node(w, id, region, prev));
            prev = id;
            if (w->depth == depth) {
                id = ir_at(m, id)->next;
            } else if (w->frame[w->depth].region) {
                region = w->frame[w->depth].region;
                id = ir_region_at(m, region)->first;
                prev = 0;
            } else { /* a switch without regions */
                close_construct(w);
                id = ir_at(m, id)->next;
            }
        }
        TRY(close_region(w, region, prev));
        if (w->depth == 0)
            return SK_OK;
        const struct frame *const f = &w->frame[w->depth];
        if (region + 1 < ir_region(m, f->construct, ir_n_regions(m, f->construct))) {
            w->reached = f->reached;
            id = ir_region_at(m, ++region)->first;
            prev = 0;
        } else {
            prev = f->construct;
            region = ir_at(m, prev)->region;
            id = ir_at(m, prev)->next;
            close_construct(w);
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* Calls stand in the order of their callers. A walk down the calls, depth first, with `height` the longest chain of
 * calls below each function that has been left, and the path from the start in `path`. */
static sk_status check_recursion(struct walk *w)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    enum { NEW, OPEN, DONE };
    struct visit {
        uint32_t next, height;
        uint8_t status;
    } *const visit = ARENA_NEW(&v->scratch, struct visit, m->funcs.n);
    uint32_t *const path = ARENA_NEW(&v->scratch, uint32_t, m->funcs.n);
    for (uint32_t k = w->calls.n; k-- > 0;)
        visit[w->calls.at[k].caller].next = k;

    for (uint32_t start = 1; start < m->funcs.n; start++) {
        uint32_t n = 0;
        if (visit[start].status == NEW)
            path[n++] = start;
        while (n > 0) {
            const uint32_t f = path[n - 1];
            struct visit *const x = &visit[f];
            x->status = OPEN;
            if (x->next < w->calls.n && w->calls.at[x->next].caller == f) {
                const struct edge *const e = &w->calls.at[x->next++];
                v->func = f;
                v->f = &m->funcs.at[f];
                if (visit[e->callee].status == OPEN)
                    return FAIL(v, e->node, IR_RECURSION, text_of(v, m->funcs.at[e->callee].name));
                if (visit[e->callee].status == NEW)
                    path[n++] = e->callee;
                else if (x->height <= visit[e->callee].height)
                    x->height = visit[e->callee].height + 1;
                continue;
            }
            x->status = DONE;
            n--;
            if (n > 0 && visit[path[n - 1]].height <= x->height)
                visit[path[n - 1]].height = x->height + 1;
            if (x->height > IR_MAX_DEPTH)
                return ERR_AT(v->err, ir_err_place(m, m->funcs.at[f].place), IR_CALL_DEPTH, IR_MAX_DEPTH);
        }
    }
    return SK_OK;
}

/* ---- modules --------------------------------------------------------------------------------------------------- */

static sk_status check_module(struct walk *w)
{
    struct verifier *const v = &w->v;
    const struct ir_module *const m = v->m;
    const uint32_t n_strings = m->strings.str.n ? m->strings.str.n : 1;
    v->mark = ARENA_NEW(&v->scratch, uint32_t, n_strings);
    v->state = ARENA_NEW(&v->scratch, uint8_t, m->nodes.n);
    w->region_seen = ARENA_NEW(&v->scratch, uint8_t, m->regions.n);
    TRY(check_types(v));
    for (v->func = 1; v->func < m->funcs.n; v->func++) {
        v->f = &m->funcs.at[v->func];
        TRY(check_header(v));
    }
    const uint32_t scope = ++v->serial;
    for (v->func = 1; v->func < m->funcs.n; v->func++) {
        v->f = &m->funcs.at[v->func];
        if (met(v, v->f->name, scope))
            return FUNC_FAIL(v, IR_NAME_TWICE, "functions", text_of(v, v->f->name));
        TRY(check_body(w));
    }
    return check_recursion(w);
}

static sk_status guarded(struct walk *w)
{
    volatile sk_status status = SK_OK;
    MEM_GUARD(w->v.m->mem, w->v.err, status, check_module(w));
    return status;
}

sk_status ir_verify(const struct ir_module *m, sk_error *err)
{
    struct walk w;
    memset(&w, 0, offsetof(struct walk, frame));
    w.calls.at = NULL;
    w.calls.n = w.calls.cap = 0;
    w.v.m = m;
    w.v.err = err;
    arena_init(&w.v.scratch, m->mem);
    buf_init(&w.v.node_text, m->mem);
    buf_init(&w.v.type_text[0], m->mem);
    buf_init(&w.v.type_text[1], m->mem);
    const sk_status status = guarded(&w);
    arena_free(&w.v.scratch);
    buf_free(&w.v.node_text);
    buf_free(&w.v.type_text[0]);
    buf_free(&w.v.type_text[1]);
    VEC_FREE(m->mem, &w.calls);
    return status;
}
