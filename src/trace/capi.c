/* capi.c - the tracer's face for C: values by value, sticky errors, the caller's file and line.
 *
 * All that a tracer allocates comes from the memory of the module that it will become, so that the module can be handed
 * over as it is.
 */
#include "ir/module_object.h"
#include "trace/trace.h"

struct sk_tracer {
    struct object head;
    struct sk_module *module; /* being made; null once given away */
    struct trace *trace;
    sk_error error; /* the first */
};

#define VALUE_PLAIN_RESULT 1u /* bits of a TV_NONE without a tracer: what an operation on plain numbers gives */

/* ---- values ---------------------------------------------------------------------------------------------------------- */

static sk_value plain(struct tv v)
{
    sk_value out = {.kind = v.kind, .negative = v.negative};
    memcpy(&out.bits, &v.magnitude, sizeof out.bits);
    return out;
}

static sk_value wrap(sk_tracer *t, struct tv v)
{
    sk_value out = plain(v);
    out.tracer = t;
    out.id = v.id;
    out.func = v.func;
    out.serial = v.serial;
    return out;
}

static struct tv unwrap(sk_value v)
{
    struct tv out = {.kind = v.kind, .negative = v.negative, .id = v.id, .func = v.func, .serial = v.serial};
    memcpy(&out.magnitude, &v.bits, sizeof v.bits);
    return out;
}

static sk_value nothing(sk_tracer *t)
{
    return (sk_value){.tracer = t, .kind = TV_NONE};
}

sk_value sk_int(int64_t i)
{
    return plain(tv_int(i));
}

sk_value sk_uint(uint64_t u)
{
    return plain((struct tv){.kind = TV_INT, .magnitude = u});
}

sk_value sk_float(double f)
{
    return plain(tv_float(f));
}

sk_value sk_bool(bool b)
{
    return plain(tv_bool(b));
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static void destroy(void *object)
{
    sk_tracer *const t = object;
    if (!t->module)
        return;
    trace_free(t->trace);
    object_release(t->module);
}

static sk_status create_trace(sk_tracer *t)
{
    t->trace = trace_new(&t->module->head.mem);
    return SK_OK;
}

sk_status sk_tracer_create(sk_context *ctx, sk_tracer **out, sk_error *err)
{
    sk_tracer *const t = object_new(ctx, sizeof *t, destroy, err);
    if (!t)
        return SK_ERR_MEMORY;
    t->module = module_object_new(ctx, err);
    sk_status status = t->module ? SK_OK : SK_ERR_MEMORY;
    if (t->module)
        MEM_GUARD(&t->module->head.mem, err, status, create_trace(t));
    if (status != SK_OK) {
        object_release(t);
        return status;
    }
    *out = t;
    return SK_OK;
}

void sk_tracer_release(sk_tracer *tracer)
{
    object_release(tracer);
}

sk_status sk_tracer_status(const sk_tracer *tracer)
{
    return tracer->error.status;
}

sk_status sk_tracer_finish(sk_tracer *tracer, sk_module **out, sk_error *err)
{
    sk_tracer *const t = tracer;
    if (!t->module)
        return ERR(err, TRACE_OVER);
    sk_status status = t->error.status;
    if (status == SK_OK)
        MEM_GUARD(&t->module->head.mem, &t->error, status, trace_finish(t->trace, &t->module->ir, &t->error));
    if (status != SK_OK) {
        if (err && err->status == SK_OK)
            *err = t->error;
        return status;
    }
    trace_free(t->trace);
    *out = t->module;
    t->trace = NULL;
    t->module = NULL;
    return SK_OK;
}

/* ---- one step ---------------------------------------------------------------------------------------------------------- */

enum { MOST_OPERANDS = 64 }; /* of a call; more are reported as so many: no routine has them */

/* A call of the interface: what to run, with what. */
struct step {
    sk_status (*run)(sk_tracer *t, const struct step *s, const struct tv *x, struct tv *out); /* x: the operands */
    const char *file;
    unsigned line;
    unsigned n;
    const sk_value *v;
    const char *name;
    unsigned a, b, c; /* what run says */
    const uint64_t *shape;
};
#define STEP(...) (&(const struct step){__VA_ARGS__, .file = file, .line = line})

static sk_status run_step(sk_tracer *t, const struct step *s, struct tv *out)
{
    struct tv x[MOST_OPERANDS];
    trace_place(t->trace, trace_file(t->trace, s->file), s->line, 0);
    for (unsigned k = 0; k < s->n; k++) {
        if (s->v[k].kind == TV_NONE && !s->v[k].tracer && s->v[k].bits == VALUE_PLAIN_RESULT)
            return ERR_AT(&t->error, ((struct err_place){s->file, s->line, 0}), PLAIN_NUMBERS);
        x[k] = unwrap(s->v[k]);
    }
    return s->run(t, s, x, out);
}

/* Runs it unless an error has been met; gives its value, or nothing. The tracer of an operation is that of its operands
 * (t null): if all are plain numbers, what comes out says so to whoever uses it. */
static sk_value step(sk_tracer *t, const struct step *s)
{
    struct tv out = {.kind = TV_NONE};
    for (unsigned k = 0; !t && k < s->n; k++)
        t = s->v[k].tracer;
    if (!t)
        return (sk_value){.kind = TV_NONE, .bits = VALUE_PLAIN_RESULT};
    sk_tracer *const volatile tracer = t;
    if (t->error.status == SK_OK && !t->module)
        (void)ERR_AT(&t->error, ((struct err_place){s->file, s->line, 0}), TRACE_OVER);
    if (t->error.status != SK_OK)
        return nothing(t);
    volatile sk_status status;
    MEM_GUARD(&tracer->module->head.mem, &tracer->error, status, run_step(tracer, s, &out));
    return status == SK_OK ? wrap(tracer, out) : nothing(tracer);
}

#define RUN(function) static sk_status function(sk_tracer *t, const struct step *s, const struct tv *x, struct tv *out)
/* A type as C gives it: a scalar or vector, or void for what is none. */
static ir_type type_of(unsigned type)
{
    return type < TYPE_FIXED_COUNT && ir_type_width((ir_type)type) ? (ir_type)type : TYPE_VOID;
}

#define UNUSED (void)s, (void)x, (void)out

/* ---- kernels and routines -------------------------------------------------------------------------------------------- */

RUN(run_begin) /* a: kernel, b: type of the result, c: options */
{
    const struct trace_func_desc d = {.name = s->name,
                                      .kernel = s->a,
                                      .fast = (s->c & SK_FAST_MATH) != 0,
                                      .no_contract = (s->c & SK_NO_CONTRACT) != 0,
                                      .result = type_of(s->b)};
    UNUSED;
    return trace_begin(t->trace, &d, &out->id, &t->error);
}

RUN(run_end_function)
{
    UNUSED;
    return trace_end(t->trace, &t->error);
}

RUN(run_call) /* a: the routine */
{
    return trace_call(t->trace, s->a, s->n, x, out, &t->error);
}

RUN(run_return)
{
    UNUSED;
    return trace_return(t->trace, s->n ? x : NULL, &t->error);
}

RUN(run_param) /* a: sk_param_kind, b: type, c: attribute */
{
    static const struct {
        uint8_t kind, space; /* space SPACE_COUNT: no pointer */
    } as[] = {
        [SK_PARAM_VALUE] = {PARAM_VALUE, SPACE_COUNT},
        [SK_PARAM_BUFFER] = {PARAM_BUFFER, SPACE_DEVICE},
        [SK_PARAM_ATOMIC] = {PARAM_BUFFER, SPACE_DEVICE},
        [SK_PARAM_CONSTANT] = {PARAM_BUFFER, SPACE_CONSTANT},
        [SK_PARAM_THREADGROUP] = {PARAM_THREADGROUP, SPACE_THREADGROUP},
        [SK_PARAM_THREAD] = {PARAM_VALUE, SPACE_THREAD},
        [SK_PARAM_ATTRIBUTE] = {PARAM_ATTRIBUTE, SPACE_COUNT},
    };
    UNUSED;
    const bool pointer = as[s->a].space != SPACE_COUNT;
    const struct trace_param_desc d = {.name = s->name,
                                       .type = pointer ? TYPE_POINTER(as[s->a].space) : type_of(s->b),
                                       .elem = pointer ? type_of(s->b) : TYPE_VOID,
                                       .kind = as[s->a].kind,
                                       .attribute = (uint8_t)s->c,
                                       .atomic = s->a == SK_PARAM_ATOMIC};
    return trace_param(t->trace, &d, out, &t->error);
}

RUN(run_name)
{
    trace_name(t->trace, *x, s->name);
    *out = *x;
    return SK_OK;
}

void sk_kernel_begin_at(sk_tracer *t, const char *name, unsigned options, SK_FROM)
{
    (void)step(t, STEP(run_begin, .name = name, .a = true, .c = options));
}

sk_routine sk_routine_begin_at(sk_tracer *t, const char *name, sk_type result, SK_FROM)
{
    return step(t, STEP(run_begin, .name = name, .b = result)).id;
}

void sk_routine_end_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_end_function));
}

sk_value sk_call_at(sk_tracer *t, sk_routine routine, size_t n, const sk_value *args, SK_FROM)
{
    const unsigned count = n < MOST_OPERANDS ? (unsigned)n : MOST_OPERANDS;
    return step(t, STEP(run_call, .a = routine, .n = count, .v = args));
}

void sk_return_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_return));
}

void sk_return_value_at(sk_tracer *t, sk_value v, SK_FROM)
{
    (void)step(t, STEP(run_return, .n = 1, .v = &v));
}

sk_value sk_param_at(sk_tracer *t, const char *name, sk_param_kind kind, sk_type type, sk_attribute attribute, SK_FROM)
{
    return step(t, STEP(run_param, .name = name, .a = kind, .b = type, .c = attribute));
}

/* Before the first error only: a name is no reason for one. */
sk_value sk_name(sk_value v, const char *name)
{
    sk_tracer *const t = v.tracer;
    if (!t || !t->module || t->error.status != SK_OK)
        return v;
    const struct err_place at = trace_at(t->trace);
    const char *const file = at.file ? at.file : "";
    const unsigned line = at.line;
    (void)step(t, STEP(run_name, .name = name, .n = 1, .v = &v));
    return v;
}

/* ---- memory and locals ----------------------------------------------------------------------------------------------- */

RUN(run_load) /* a: number of indices */
{
    return trace_load(t->trace, x[0], s->a, x + 1, out, &t->error);
}

RUN(run_load_where)
{
    UNUSED;
    return trace_load_where(t->trace, x[0], 1, x + 1, x[2], x[3], out, &t->error);
}

RUN(run_store) /* a: number of indices */
{
    UNUSED;
    return trace_store(t->trace, x[0], s->a, x + 1, x[4], &t->error);
}

RUN(run_array) /* a: threadgroup, b: type, c: dimensions */
{
    UNUSED;
    return trace_array(t->trace, s->a ? SPACE_THREADGROUP : SPACE_THREAD, type_of(s->b), s->c, s->shape, out,
                       &t->error);
}

RUN(run_local) /* a: type */
{
    return trace_local(t->trace, type_of(s->a), x[0], out, &t->error);
}

RUN(run_assign)
{
    UNUSED;
    return trace_assign(t->trace, x[0], x[1], &t->error);
}

RUN(run_read)
{
    UNUSED;
    return trace_snapshot(t->trace, x[0], out, &t->error);
}

sk_value sk_load_at(sk_value p, unsigned n, sk_value i, sk_value j, sk_value k, SK_FROM)
{
    return step(p.tracer, STEP(run_load, .a = n, .n = 4, .v = (sk_value[]){p, i, j, k}));
}

sk_value sk_load_where_at(sk_value p, sk_value i, sk_value cond, sk_value other, SK_FROM)
{
    return step(p.tracer, STEP(run_load_where, .n = 4, .v = (sk_value[]){p, i, cond, other}));
}

void sk_store_at(sk_value p, unsigned n, sk_value i, sk_value j, sk_value k, sk_value v, SK_FROM)
{
    (void)step(p.tracer, STEP(run_store, .a = n, .n = 5, .v = (sk_value[]){p, i, j, k, v}));
}

sk_value sk_array_at(sk_tracer *t, bool threadgroup, sk_type elem, unsigned dims, uint64_t n, uint64_t m, uint64_t l,
                     SK_FROM)
{
    return step(t, STEP(run_array, .a = threadgroup, .b = elem, .c = dims, .shape = (uint64_t[]){n, m, l}));
}

sk_value sk_local_at(sk_tracer *t, sk_type type, sk_value init, SK_FROM)
{
    return step(t, STEP(run_local, .a = type, .n = 1, .v = &init));
}

void sk_assign_at(sk_value local, sk_value v, SK_FROM)
{
    (void)step(local.tracer, STEP(run_assign, .n = 2, .v = (sk_value[]){local, v}));
}

sk_value sk_read_at(sk_value v, SK_FROM)
{
    return v.tracer ? step(v.tracer, STEP(run_read, .n = 1, .v = &v)) : v;
}

/* ---- control --------------------------------------------------------------------------------------------------------- */

RUN(run_if)
{
    UNUSED;
    return trace_if(t->trace, *x, &out->id, &t->error);
}

RUN(run_end)
{
    UNUSED;
    return trace_end_scope(t->trace, trace_open_scope(t->trace), &t->error);
}

RUN(run_elif)
{
    UNUSED;
    return trace_elif(t->trace, trace_ended_if(t->trace), *x, &out->id, &t->error);
}

RUN(run_else)
{
    UNUSED;
    TRY(trace_end_scope(t->trace, trace_open_scope(t->trace), &t->error));
    return trace_else(t->trace, trace_ended_if(t->trace), &out->id, &t->error);
}

RUN(run_range)
{
    uint32_t scope;
    UNUSED;
    return trace_range(t->trace, x[0], x[1], x[2], out, &scope, &t->error);
}

RUN(run_while_begin)
{
    UNUSED;
    return trace_while_begin(t->trace, &out->id, &t->error);
}

RUN(run_while)
{
    UNUSED;
    return trace_while_cond(t->trace, trace_open_scope(t->trace), *x, &t->error);
}

RUN(run_break)
{
    UNUSED;
    return trace_break(t->trace, &t->error);
}

RUN(run_continue)
{
    UNUSED;
    return trace_continue(t->trace, &t->error);
}

RUN(run_where_begin)
{
    UNUSED;
    return trace_where(t->trace, *x, &out->id, &t->error);
}

RUN(run_where_next)
{
    UNUSED;
    return trace_where_next(t->trace, trace_open_scope(t->trace), *x, &t->error);
}

RUN(run_where)
{
    UNUSED;
    return trace_where_end(t->trace, trace_open_scope(t->trace), *x, out, &t->error);
}

void sk_if_at(sk_tracer *t, sk_value cond, SK_FROM)
{
    (void)step(t, STEP(run_if, .n = 1, .v = &cond));
}

void sk_elif_begin_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_end));
}

void sk_elif_at(sk_tracer *t, sk_value cond, SK_FROM)
{
    (void)step(t, STEP(run_elif, .n = 1, .v = &cond));
}

void sk_else_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_else));
}

sk_value sk_range_at(sk_tracer *t, sk_value start, sk_value stop, sk_value by, SK_FROM)
{
    return step(t, STEP(run_range, .n = 3, .v = (sk_value[]){start, stop, by}));
}

void sk_while_begin_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_while_begin));
}

void sk_while_at(sk_tracer *t, sk_value cond, SK_FROM)
{
    (void)step(t, STEP(run_while, .n = 1, .v = &cond));
}

void sk_end_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_end));
}

void sk_break_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_break));
}

void sk_continue_at(sk_tracer *t, SK_FROM)
{
    (void)step(t, STEP(run_continue));
}

void sk_where_begin_at(sk_tracer *t, sk_value cond, SK_FROM)
{
    (void)step(t, STEP(run_where_begin, .n = 1, .v = &cond));
}

void sk_where_next_at(sk_tracer *t, sk_value a, SK_FROM)
{
    (void)step(t, STEP(run_where_next, .n = 1, .v = &a));
}

sk_value sk_where_at(sk_tracer *t, sk_value b, SK_FROM)
{
    return step(t, STEP(run_where, .n = 1, .v = &b));
}

/* ---- conversions and vectors ------------------------------------------------------------------------------------------- */

RUN(run_const) /* a: type */
{
    return trace_implicit(t->trace, *x, type_of(s->a), "the constant", out, &t->error);
}

RUN(run_cast) /* a: type */
{
    return trace_cast(t->trace, *x, type_of(s->a), out, &t->error);
}

RUN(run_bitcast) /* a: type */
{
    return trace_bitcast(t->trace, *x, type_of(s->a), out, &t->error);
}

RUN(run_component) /* a: which */
{
    return trace_extract(t->trace, *x, s->a, out, &t->error);
}

RUN(run_make) /* a: type, b: parts */
{
    return trace_make(t->trace, type_of(s->a), s->b, x, out, &t->error);
}

sk_value sk_const_at(sk_tracer *t, sk_type type, sk_value number, SK_FROM)
{
    return step(t, STEP(run_const, .a = type, .n = 1, .v = &number));
}

sk_value sk_cast_at(sk_value v, sk_type type, SK_FROM)
{
    return step(v.tracer, STEP(run_cast, .a = type, .n = 1, .v = &v));
}

sk_value sk_bitcast_at(sk_value v, sk_type type, SK_FROM)
{
    return step(v.tracer, STEP(run_bitcast, .a = type, .n = 1, .v = &v));
}

sk_value sk_component_at(sk_value v, unsigned component, SK_FROM)
{
    return step(v.tracer, STEP(run_component, .a = component, .n = 1, .v = &v));
}

sk_value sk_make_at(sk_tracer *t, sk_type vector, unsigned n, sk_value a, sk_value b, sk_value c, sk_value d, SK_FROM)
{
    return step(t, STEP(run_make, .a = vector, .b = n, .n = 4, .v = (sk_value[]){a, b, c, d}));
}

/* ---- operations by name -------------------------------------------------------------------------------------------------- */

RUN(run_operation) /* a: fast */
{
    const enum op op = op_by_name(s->name, strlen(s->name));
    const struct op_info *const info = &op_info[op];
    if (op != OP_NONE && info->n == (int)s->n) {
        if (info->math)
            return trace_math(t->trace, op, s->a, s->n, x, out, &t->error);
        if (op == OP_SELECT)
            return trace_select(t->trace, x[0], x[1], x[2], out, &t->error);
        if (info->effect == EFFECT_CONVERGENT && op != OP_BARRIER && op != OP_SIMDGROUP_BARRIER)
            return trace_simd(t->trace, op, s->n, x, out, &t->error);
        if (info->effect == EFFECT_PURE &&
            (info->rule == RULE_SAME || info->rule == RULE_COMPARE || info->rule == RULE_SHIFT))
            return s->n == 1 ? trace_unary(t->trace, op, x[0], out, &t->error)
                             : trace_binary(t->trace, op, x[0], x[1], out, &t->error);
    }
    return ERR_AT(&t->error, trace_at(t->trace), UNKNOWN_OPERATION, s->name, s->n);
}

sk_value sk_op0_at(sk_tracer *t, const char *name, SK_FROM)
{
    return step(t, STEP(run_operation, .name = name));
}

sk_value sk_op1_at(const char *name, sk_value a, SK_FROM)
{
    return step(NULL, STEP(run_operation, .name = name, .n = 1, .v = &a));
}

sk_value sk_op2_at(const char *name, sk_value a, sk_value b, SK_FROM)
{
    return step(NULL, STEP(run_operation, .name = name, .n = 2, .v = (sk_value[]){a, b}));
}

sk_value sk_op3_at(const char *name, sk_value a, sk_value b, sk_value c, SK_FROM)
{
    return step(NULL, STEP(run_operation, .name = name, .n = 3, .v = (sk_value[]){a, b, c}));
}

sk_value sk_fast_at(const char *name, unsigned n, sk_value a, sk_value b, SK_FROM)
{
    return step(NULL, STEP(run_operation, .name = name, .a = true, .n = n, .v = (sk_value[]){a, b}));
}

/* ---- atomics and barriers -------------------------------------------------------------------------------------------------- */

_Static_assert((int)SK_RELAXED == (int)ORDER_RELAXED && (int)SK_ACQUIRE == (int)ORDER_ACQUIRE &&
                   (int)SK_RELEASE == (int)ORDER_RELEASE && (int)SK_ACQ_REL == (int)ORDER_ACQ_REL &&
                   (int)SK_SEQ_CST == (int)ORDER_SEQ_CST,
               "sk_order is not memory_order");
_Static_assert((int)SK_MEMORY_DEVICE == (int)MEMORY_DEVICE && (int)SK_MEMORY_THREADGROUP == (int)MEMORY_THREADGROUP &&
                   (int)SK_MEMORY_TEXTURE == (int)MEMORY_TEXTURE && (int)SK_MEMORY_IMAGEBLOCK == (int)MEMORY_IMAGEBLOCK,
               "SK_MEMORY_* are not MEMORY_*");

RUN(run_atomic) /* a: indices, b: values, c: order */
{
    const enum op op = op_by_name(s->name, strlen(s->name));
    if (op < OP_ATOMIC_LOAD || op > OP_ATOMIC_MAX)
        return ERR_AT(&t->error, trace_at(t->trace), UNKNOWN_OPERATION, s->name, s->b + 1);
    return trace_atomic(t->trace, op, x[0], s->a, x + 1, s->b, x + 3, (enum memory_order)s->c, out, &t->error);
}

RUN(run_barrier) /* a: of a simdgroup, b: memory */
{
    UNUSED;
    return trace_barrier(t->trace, s->a ? OP_SIMDGROUP_BARRIER : OP_BARRIER, s->b, &t->error);
}

sk_value sk_atomic_at(const char *name, sk_value p, unsigned n_indices, sk_value i, sk_value j, unsigned n_values,
                      sk_value a, sk_value b, sk_order order, SK_FROM)
{
    return step(p.tracer, STEP(run_atomic, .name = name, .a = n_indices, .b = n_values, .c = order, .n = 5,
                               .v = (sk_value[]){p, i, j, a, b}));
}

void sk_barrier_at(sk_tracer *t, bool simdgroup, unsigned memory, SK_FROM)
{
    (void)step(t, STEP(run_barrier, .a = simdgroup, .b = memory));
}
