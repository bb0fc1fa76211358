/* trace.h - the tracer: what a kernel's author writes, one operation at a time, becomes IR.
 *
 * Both faces call the same functions: the Python extension (python/) and the C builder (trace/capi.c). The conversions,
 * the scopes and the refusals of the language live here and nowhere else.
 *
 * Operands are `struct tv` by value: a typed value, a weak number, a local (a place, read when used) or a pointer.
 * Every function takes the current source place from `trace_place` and returns a status; on failure nothing has been
 * added that matters and `err` names the place. Out of memory jumps (base.h): callers hold a recovery point.
 */
#ifndef SK_TRACE_H
#define SK_TRACE_H

#include "ir/ir.h"

struct trace; /* one kernel with the functions it calls */

enum tv_kind {
    TV_NONE,
    TV_VALUE,  /* node `id` */
    TV_INT,    /* weak integer: (negative ? -magnitude : magnitude) */
    TV_FLOAT,  /* weak float */
    TV_BOOL,   /* weak bool: magnitude 0 or 1 */
    TV_LOCAL,  /* VAR node `id` */
    TV_POINTER /* node `id`; magnitude is the tracer's record of its element type and shape */
};

struct tv {
    uint8_t kind;
    bool negative;
    uint32_t id;
    uint32_t func, serial; /* VALUE, LOCAL, POINTER: function and tracer it belongs to, checked at each use */
    union {
        uint64_t magnitude;
        double f;
    };
};

static inline struct tv tv_int(int64_t i)
{
    return (struct tv){.kind = TV_INT, .negative = i < 0, .magnitude = i < 0 ? 0u - (uint64_t)i : (uint64_t)i};
}
static inline struct tv tv_float(double f)
{
    return (struct tv){.kind = TV_FLOAT, .f = f};
}
static inline struct tv tv_bool(bool b)
{
    return (struct tv){.kind = TV_BOOL, .magnitude = b};
}

/* ---- life ---- */
struct trace *trace_new(struct mem *m);
void trace_free(struct trace *t);             /* null allowed */
uint32_t trace_serial(const struct trace *t); /* not 0; that of another tracer differs, one chance in 2^31 aside */
/* The finished module; the tracer refuses further use ("outside its kernel"). SK_ERR_TRACE if a block is open or
 * nothing was traced. The caller owns *out. Runs the verifier. */
sk_status trace_finish(struct trace *t, struct ir_module **out, sk_error *err);
bool trace_finished(const struct trace *t);
const struct ir_module *trace_module(const struct trace *t); /* while tracing: for types and names */

/* ---- places and names ---- */
uint32_t trace_file(struct trace *t, const char *file);
void trace_place(struct trace *t, uint32_t file, uint32_t line, uint32_t column);
struct err_place trace_at(const struct trace *t); /* the place set last */
/* The last line of the statement being traced, for trace_while: a condition may be written over several lines. Without
 * it, and after each trace_place, that is the line itself. */
void trace_extent(struct trace *t, uint32_t last_line);
/* Names the value for printers if it has no name yet; anything but [A-Za-z0-9_] becomes '_'. Of a weak number: nothing. */
void trace_name(struct trace *t, struct tv v, const char *name);

/* ---- functions and parameters ---- */
struct trace_func_desc {
    const char *name;
    bool kernel, fast, no_contract;
    ir_type result; /* functions: declared result, TYPE_VOID none */
};
/* Begins a kernel (once, first) or a function (nested: inside whatever is being traced). *func is its number. */
sk_status trace_begin(struct trace *t, const struct trace_func_desc *d, uint32_t *func, sk_error *err);
struct trace_param_desc {
    const char *name;
    ir_type type; /* VALUE, ATTRIBUTE: its type; pointers: TYPE_POINTER(space) */
    ir_type elem; /* pointers */
    uint8_t kind, attribute;
    bool atomic;
};
sk_status trace_param(struct trace *t, const struct trace_param_desc *d, struct tv *out, sk_error *err);
/* Ends the function begun last: refuses open blocks; a function with a result must end in a return on every path. */
sk_status trace_end(struct trace *t, sk_error *err);
/* Gives up the function begun last (after a Python exception). Its number stays taken, by an empty function, so that
 * numbers of functions ended since and values made in it keep their meaning. */
void trace_abandon(struct trace *t);
sk_status trace_return(struct trace *t, const struct tv *value, sk_error *err); /* value null: none */
sk_status trace_call(struct trace *t, uint32_t func, unsigned n, const struct tv *args, struct tv *out, sk_error *err);

/* ---- values ---- */
bool trace_usable(const struct trace *t, struct tv v);  /* here, in the open blocks; weak numbers always */
ir_type trace_type(const struct trace *t, struct tv v); /* TYPE_VOID for weak numbers */
/* A typed value of exactly type `to` by the implicit conversions of stores, arguments and returns; `what` names the
 * target in errors ("element of 'out'", "argument 'x'"). */
sk_status trace_implicit(struct trace *t, struct tv v, ir_type to, const char *what, struct tv *out, sk_error *err);
sk_status trace_cast(struct trace *t, struct tv v, ir_type to, struct tv *out, sk_error *err);    /* sk.cast */
sk_status trace_bitcast(struct trace *t, struct tv v, ir_type to, struct tv *out, sk_error *err); /* as_type */
sk_status trace_snapshot(struct trace *t, struct tv v, struct tv *out, sk_error *err);            /* v.value, +v */
/* op: the IR operation as the language means it: DIV true division, DIV_FLOOR and REM_FLOOR //, %, IPOW **, SHL, SHR,
 * comparisons, AND OR XOR; NEG, NOT for unary. */
sk_status trace_unary(struct trace *t, enum op op, struct tv a, struct tv *out, sk_error *err);
sk_status trace_binary(struct trace *t, enum op op, struct tv a, struct tv b, struct tv *out, sk_error *err);
/* A row of math.def, also MIN, MAX, ABS, CLAMP on integers. */
sk_status trace_math(struct trace *t, enum op op, bool fast, unsigned n, const struct tv *a, struct tv *out,
                     sk_error *err);
sk_status trace_select(struct trace *t, struct tv c, struct tv a, struct tv b, struct tv *out, sk_error *err);
sk_status trace_extract(struct trace *t, struct tv v, unsigned component, struct tv *out,
                        sk_error *err); /* .x .y .z .w */
sk_status trace_make(struct trace *t, ir_type vector, unsigned n, const struct tv *parts, struct tv *out,
                     sk_error *err);

/* ---- locals and memory ---- */
sk_status trace_local(struct trace *t, ir_type type, struct tv init, struct tv *out, sk_error *err);
sk_status trace_assign(struct trace *t, struct tv local, struct tv v, sk_error *err);
sk_status trace_assign_op(struct trace *t, struct tv local, enum op op, struct tv v, sk_error *err); /* v += x … */
/* A threadgroup (or thread) array; n_dims >= 1, row-major. */
sk_status trace_array(struct trace *t, enum space space, ir_type elem, unsigned n_dims, const uint64_t *shape,
                      struct tv *out, sk_error *err);
ir_type trace_elem(const struct trace *t, struct tv pointer);
unsigned trace_dims(const struct trace *t, struct tv pointer); /* 1 for parameters */
sk_status trace_load(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv *out,
                     sk_error *err);
sk_status trace_store(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv v,
                      sk_error *err);
/* sk.load(p, i, where=c, other=0): reads only where c holds. */
sk_status trace_load_where(struct trace *t, struct tv pointer, unsigned n, const struct tv *index, struct tv where,
                           struct tv other, struct tv *out, sk_error *err);
/* op: ATOMIC_*; values: none for load, one, or (expected, desired) for ATOMIC_CAS; out null or TV_NONE for store. */
sk_status trace_atomic(struct trace *t, enum op op, struct tv pointer, unsigned n, const struct tv *index,
                       unsigned n_values, const struct tv *values, enum memory_order order, struct tv *out,
                       sk_error *err);
bool trace_atomic_takes(enum op op, enum scalar s); /* whether there is such an atomic, on a device at least */

/* ---- threads ---- */
sk_status trace_barrier(struct trace *t, enum op op, unsigned memory, sk_error *err); /* BARRIER, SIMDGROUP_BARRIER */
/* op: any SIMD_* or QUAD_* row; the operands as in ops.def. */
sk_status trace_simd(struct trace *t, enum op op, unsigned n, const struct tv *a, struct tv *out, sk_error *err);

/* ---- control ----
 * A scope is a number; begin gives it, end takes it. Ending one that is not the innermost open scope is an error that
 * names the line of the one left open. */
sk_status trace_if(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err);
/* Must follow the end of the `if` at once (nothing emitted between). The else region is entered; end with trace_end_scope. */
sk_status trace_else(struct trace *t, uint32_t if_scope, uint32_t *scope, sk_error *err);
/* Must follow the end of the `if` or the last elif; the condition has been traced in between, and nothing else. It moves
 * into the else region. `if_scope` of else and elif: the number of the if or of the last elif. */
sk_status trace_elif(struct trace *t, uint32_t if_scope, struct tv cond, uint32_t *scope, sk_error *err);
/* for v in range(start, stop, step) as the language counts; the variable's type by DESIGN section 4. */
sk_status trace_range(struct trace *t, struct tv start, struct tv stop, struct tv step, struct tv *var, uint32_t *scope,
                      sk_error *err);
/* while: either trace_while with a condition already traced, replayed at each iteration, … */
sk_status trace_while(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err);
/* … or trace_while_begin, trace the condition, trace_while_cond. */
sk_status trace_while_begin(struct trace *t, uint32_t *scope, sk_error *err);
sk_status trace_while_cond(struct trace *t, uint32_t scope, struct tv cond, sk_error *err);
sk_status trace_break(struct trace *t, sk_error *err);
sk_status trace_continue(struct trace *t, sk_error *err);
sk_status trace_end_scope(struct trace *t, uint32_t scope, sk_error *err);
/* sk.where(c, lambda: a, lambda: b): trace_where, trace the first, trace_where_next(value), trace the second,
 * trace_where_end(value) gives the result. */
sk_status trace_where(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err);
sk_status trace_where_next(struct trace *t, uint32_t scope, struct tv first, sk_error *err);
sk_status trace_where_end(struct trace *t, uint32_t scope, struct tv second, struct tv *out, sk_error *err);
uint32_t trace_open_scope(const struct trace *t); /* innermost open scope of the current function, 0: none */
uint32_t trace_ended_if(const struct trace *t);   /* the if or elif that ended last, 0: none */

#endif
