/* memory.c - locals, arrays, loads, stores, atomics. */
#include "trace/internal.h"

#include <stdio.h>

/* ---- locals -------------------------------------------------------------------------------------------------------- */

sk_status trace_local(struct trace *t, ir_type type, struct tv init, struct tv *out, sk_error *err)
{
    uint32_t id;
    TRY(trace_use(t, init, &init, err));
    if (type == TYPE_VOID || ir_type_is_pointer(type))
        return FAIL(t, err, LOCAL_TYPE, trace_type_text(t, type).at);
    TRY(trace_implicit_node(t, init, type, "the local", &id, err));
    *out = trace_value(t, ir_node(&t->b, OP_VAR, type, 1, &id, 0, 0));
    out->kind = TV_LOCAL;
    return SK_OK;
}

sk_status trace_assign(struct trace *t, struct tv local, struct tv v, sk_error *err)
{
    uint32_t in[2] = {local.id, 0};
    TRY(trace_use_local(t, local, err));
    TRY(trace_use(t, v, &v, err));
    TRY(trace_implicit_node(t, v, trace_node_type(t, local.id), "the local", &in[1], err));
    (void)ir_node(&t->b, OP_SET, TYPE_VOID, 2, in, 0, 0);
    return SK_OK;
}

sk_status trace_assign_op(struct trace *t, struct tv local, enum op op, struct tv v, sk_error *err)
{
    TRY(trace_use_local(t, local, err));
    const ir_type type = trace_node_type(t, local.id);
    if (op == OP_DIV && !(ir_type_class(t->m, type) & CLASS_F))
        return FAIL(t, err, DIVIDE_IN_PLACE, trace_type_text(t, type).at);
    /* Python reads the left side first. */
    struct tv left, right;
    TRY(trace_use(t, local, &left, err));
    TRY(trace_use(t, v, &right, err));
    if (right.kind == TV_VALUE && ir_type_scalar(trace_node_type(t, right.id)) == S_BOOL &&
        ir_type_scalar(type) != S_BOOL)
        right = trace_value(
            t, ir_convert(&t->b, ir_type_with(trace_node_type(t, right.id), ir_type_scalar(type)), right.id));
    TRY(trace_binary(t, op, left, right, &right, err));
    return trace_assign(t, local, right, err);
}

/* ---- arrays -------------------------------------------------------------------------------------------------------- */

#define THREADGROUP_LIMIT 32768u /* bytes: every Apple GPU has this much */
#define THREAD_LIMIT 65536u      /* bytes of one array */

/* A threadgroup array is a declaration of the kernel: it stands before the outermost open block. */
static uint32_t declare(struct trace *t, enum space space, ir_type whole)
{
    struct ir_builder b = t->b;
    if (space == SPACE_THREADGROUP) {
        const struct frame *const frame = trace_frame(t);
        if (t->scopes.n > frame->first_scope) {
            const struct scope *const s = trace_scope_at(t, frame->first_scope);
            b.region = s->outer;
            b.before = s->break_block ? s->break_block : s->head;
        }
    }
    return ir_node(&b, OP_ALLOC, TYPE_POINTER(space), 0, NULL, 0, whole);
}

sk_status trace_array(struct trace *t, enum space space, ir_type elem, unsigned n_dims, const uint64_t *shape,
                      struct tv *out, sk_error *err)
{
    TRY(trace_open(t, err));
    const bool shared = space == SPACE_THREADGROUP;
    if (n_dims == 0 || (!shared && space != SPACE_THREAD) || elem == TYPE_VOID || ir_type_is_pointer(elem))
        return FAIL(t, err, ARRAY_SHAPE);
    if (shared && !t->m->funcs.at[t->b.func].kernel)
        return FAIL(t, err, ARRAY_IN_FUNCTION);
    ir_type whole = elem;
    for (unsigned k = n_dims; k-- > 0;) { /* row-major: the last index is the innermost array */
        if (shape[k] == 0)
            return FAIL(t, err, ARRAY_SHAPE);
        whole = ir_type_array(t->m, whole, shape[k]);
        if (whole == TYPE_VOID)
            return FAIL(t, err, ARRAY_SIZE, space_name[space], shared ? THREADGROUP_LIMIT : THREAD_LIMIT);
    }
    const uint64_t size = ir_type_at(t->m, whole)->size;
    if (shared ? t->threadgroup_bytes + size > THREADGROUP_LIMIT : size > THREAD_LIMIT)
        return FAIL(t, err, ARRAY_SIZE, space_name[space], shared ? THREADGROUP_LIMIT : THREAD_LIMIT);
    VEC_RESERVE(t->mem, &t->pointers, 1);
    VEC_RESERVE(t->mem, &t->dims, n_dims);
    if (shared)
        t->threadgroup_bytes += size;
    *out = trace_value(t, declare(t, space, whole));
    out->kind = TV_POINTER;
    out->magnitude = t->pointers.n;
    const struct pointer_info info = {.elem = elem, .space = (uint8_t)space, .first_dim = t->dims.n, .n_dims = n_dims};
    VEC_PUSH(t->mem, &t->pointers, info);
    for (unsigned k = 0; k < n_dims; k++)
        t->dims.at[t->dims.n++] = shape[k];
    return SK_OK;
}

ir_type trace_elem(const struct trace *t, struct tv pointer)
{
    if (pointer.kind != TV_POINTER || pointer.serial != t->serial || pointer.magnitude >= t->pointers.n)
        return TYPE_VOID;
    return t->pointers.at[pointer.magnitude].elem;
}

unsigned trace_dims(const struct trace *t, struct tv pointer)
{
    if (pointer.kind != TV_POINTER || pointer.serial != t->serial || pointer.magnitude >= t->pointers.n)
        return 0;
    const unsigned n = t->pointers.at[pointer.magnitude].n_dims;
    return n ? n : 1;
}

/* ---- addresses ----------------------------------------------------------------------------------------------------- */

struct place_in_memory {
    uint32_t pointer;
    const char *name;
    struct pointer_info info;
    unsigned n;
    uint32_t index[8];
};

/* Checks the pointer and its indices and reads what they read, but emits no address yet. */
static sk_status look_up(struct trace *t, struct tv pointer, unsigned n, const struct tv *index,
                         struct place_in_memory *p, sk_error *err)
{
    TRY(trace_use_pointer(t, pointer, err));
    p->pointer = pointer.id;
    p->info = t->pointers.at[pointer.magnitude];
    p->name = trace_pointer_name(t, pointer.magnitude);
    const struct pointer_info *const info = &p->info;
    const unsigned dims = info->n_dims ? info->n_dims : 1;
    if (n != dims || n > sizeof p->index / sizeof *p->index) {
        if (info->n_dims == 0)
            return FAIL(t, err, FLAT_POINTER, p->name, n);
        return FAIL(t, err, INDEX_COUNT, p->name, dims, n);
    }
    p->n = n;
    for (unsigned k = 0; k < n; k++) {
        struct tv v;
        TRY(trace_use(t, index[k], &v, err));
        if (v.kind == TV_INT && v.negative)
            return FAIL(t, err, NEGATIVE_INDEX, trace_weak_text(v).at, p->name);
        TRY(trace_integer(t, v, "an index", &p->index[k], err));
        if (info->n_dims && v.kind == TV_INT && v.magnitude >= t->dims.at[info->first_dim + k])
            return FAIL(t, err, INDEX_RANGE, trace_weak_text(v).at, p->name,
                        (unsigned long long)t->dims.at[info->first_dim + k]);
    }
    return SK_OK;
}

/* One step for each dimension, so that s[i][j] can be printed as such. */
static uint32_t address(struct trace *t, const struct place_in_memory *p)
{
    uint32_t at = p->pointer;
    for (unsigned k = 0; k < p->n; k++) {
        ir_type step = p->info.elem;
        for (unsigned d = p->n - 1; d > k; d--)
            step = ir_type_array(t->m, step, t->dims.at[p->info.first_dim + d]);
        at = ir_index(&t->b, step, at, p->index[k]);
    }
    return at;
}

static unsigned atomic_flags(enum memory_order order, unsigned space)
{
    const unsigned scope = space == SPACE_THREADGROUP ? SCOPE_THREADGROUP : SCOPE_DEVICE;
    return (unsigned)order << NODE_ORDER_SHIFT | scope << NODE_SCOPE_SHIFT;
}

/* What is declared atomic can be touched only atomically in Metal. */
static uint32_t read_at(struct trace *t, const struct place_in_memory *p)
{
    const uint32_t at = address(t, p);
    if (!p->info.atomic)
        return ir_load(&t->b, p->info.elem, at);
    trace_effect(t, FX_ATOMIC);
    return ir_node(&t->b, OP_ATOMIC_LOAD, p->info.elem, 1, &at, atomic_flags(ORDER_RELAXED, p->info.space), 0);
}

/* ---- loads and stores ---------------------------------------------------------------------------------------------- */

sk_status trace_load(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv *out,
                     sk_error *err)
{
    struct place_in_memory p;
    TRY(look_up(t, pointer, n, index, &p, err));
    *out = trace_value(t, read_at(t, &p));
    return SK_OK;
}

sk_status trace_store(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv v,
                      sk_error *err)
{
    struct place_in_memory p;
    uint32_t in[2];
    char what[96];
    TRY(look_up(t, pointer, n, index, &p, err));
    if (p.info.space == SPACE_CONSTANT)
        return FAIL(t, err, STORE_TO_CONSTANT, p.name);
    TRY(trace_use(t, v, &v, err));
    (void)snprintf(what, sizeof what, "element of '%s'", p.name);
    TRY(trace_implicit_node(t, v, p.info.elem, what, &in[1], err));
    in[0] = address(t, &p);
    if (p.info.atomic) {
        (void)ir_node(&t->b, OP_ATOMIC_STORE, TYPE_VOID, 2, in, atomic_flags(ORDER_RELAXED, p.info.space), 0);
        trace_effect(t, FX_ATOMIC);
    } else {
        ir_store(&t->b, in[0], in[1]);
    }
    trace_effect(t, FX_WRITE);
    return SK_OK;
}

sk_status trace_load_where(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv where,
                           struct tv other, struct tv *out, sk_error *err)
{
    struct place_in_memory p;
    uint32_t cond, instead;
    TRY(look_up(t, pointer, n, index, &p, err));
    TRY(trace_use(t, where, &where, err));
    TRY(trace_use(t, other, &other, err));
    TRY(trace_condition(t, where, false, &cond, err));
    TRY(trace_implicit_node(t, other, p.info.elem, "the value of other=", &instead, err));
    const uint32_t outer = t->b.region;
    const uint32_t node = ir_construct(&t->b, OP_IF, 1, &cond, 2);
    t->b.region = ir_region(t->m, node, 0);
    const uint32_t read = read_at(t, &p);
    (void)ir_node(&t->b, OP_YIELD, TYPE_VOID, 1, &read, 0, 0);
    t->b.region = ir_region(t->m, node, 1);
    (void)ir_node(&t->b, OP_YIELD, TYPE_VOID, 1, &instead, 0, 0);
    t->b.region = outer;
    *out = trace_value(t, ir_result(t->m, node, p.info.elem));
    return SK_OK;
}

/* ---- atomics ------------------------------------------------------------------------------------------------------- */

/* Which elements an operation takes. Smaller ones have no atomics anywhere; what one device lacks it refuses itself. */
bool trace_atomic_takes(enum op op, enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    if (bits < 32)
        return false;
    if (op == OP_ATOMIC_AND || op == OP_ATOMIC_OR || op == OP_ATOMIC_XOR)
        return scalar_info[s].class_ != CLASS_F;
    return true;
}

static unsigned atomic_values(enum op op)
{
    return (unsigned)op_info[op].n - 1;
}

sk_status trace_atomic(struct trace *t, enum op op, struct tv pointer, unsigned n, const struct tv *index,
                       unsigned n_values, const struct tv *values, enum memory_order order, struct tv *out,
                       sk_error *err)
{
    struct place_in_memory p;
    uint32_t in[3];
    struct tv v[2];
    if (n_values != atomic_values(op) || n_values > 2)
        return FAIL(t, err, OPERAND_COUNT, op_info[op].name, (int)atomic_values(op), n_values);
    TRY(look_up(t, pointer, n, index, &p, err));
    if (p.info.space != SPACE_DEVICE && p.info.space != SPACE_THREADGROUP)
        return FAIL(t, err, ATOMIC_SPACE, op_info[op].name, space_name[p.info.space]);
    if (ir_type_width(p.info.elem) != 1 || !trace_atomic_takes(op, ir_type_scalar(p.info.elem)))
        return FAIL(t, err, ATOMIC_TYPE, op_info[op].name, trace_type_text(t, p.info.elem).at);
    const bool acquires = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;
    const bool releases = order == ORDER_RELEASE || order == ORDER_ACQ_REL;
    if ((op == OP_ATOMIC_LOAD && releases) || (op == OP_ATOMIC_STORE && acquires) || order >= ORDER_COUNT)
        return FAIL(t, err, ATOMIC_ORDER, op_info[op].name, order < ORDER_COUNT ? order_name[order] : "unknown");
    for (unsigned k = 0; k < n_values; k++)
        TRY(trace_use(t, values[k], &v[k], err));
    for (unsigned k = 0; k < n_values; k++)
        TRY(trace_implicit_node(t, v[k], p.info.elem, "the atomic", &in[1 + k], err));
    in[0] = address(t, &p);
    const ir_type type = op == OP_ATOMIC_STORE ? TYPE_VOID : p.info.elem;
    const uint32_t id = ir_node(&t->b, op, type, 1 + n_values, in, atomic_flags(order, p.info.space), 0);
    trace_effect(t, FX_ATOMIC | (op == OP_ATOMIC_LOAD ? 0 : FX_WRITE));
    if (out)
        *out = type == TYPE_VOID ? (struct tv){.kind = TV_NONE} : trace_value(t, id);
    return SK_OK;
}
