/* spork.h - the public C interface of Spork.
 *
 * Conventions.
 *  - Every object is opaque and belongs to a `sk_context`, made by sk_context_create and, with all that is still alive
 *    in it, freed by sk_context_destroy.
 *  - A function that can fail returns a sk_status and fills the caller's sk_error (null allowed). Outputs are written
 *    only on success. The library never prints, exits or aborts.
 *  - Strings are UTF-8 and zero-terminated. Strings returned by pointer live as long as the object they came from,
 *    unless said otherwise.
 *  - Threads: distinct objects may be used from different threads at once. A tracer, a module and an encoder belong to
 *    one thread at a time; a context, device, queue, library, function, pipeline and buffer may be shared.
 */
#ifndef SPORK_H
#define SPORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SK_API __attribute__((visibility("default")))
#else
#define SK_API
#endif

#define SK_VERSION_MAJOR 0
#define SK_VERSION_MINOR 1
#define SK_VERSION_PATCH 0

/* ---- status, errors, memory ------------------------------------------------------------------------------------ */

typedef enum sk_status {
    SK_OK = 0,
    SK_ERR_MEMORY,      /* out of memory */
    SK_ERR_TYPE,        /* an operand, argument or annotation of the wrong type */
    SK_ERR_VALUE,       /* a value out of its range, a malformed size or shape */
    SK_ERR_TRACE,       /* a misuse of tracing: a value outside its block or kernel, an open block, ... */
    SK_ERR_SYNTAX,      /* malformed text */
    SK_ERR_INVALID,     /* IR that the verifier refuses */
    SK_ERR_UNSUPPORTED, /* a feature that a device or printer refuses, by name */
    SK_ERR_FAULT,       /* a kernel faulted at run time: out of bounds, deadlock, no progress */
    SK_ERR_DEVICE,      /* no such device, or the device failed */
    SK_ERR_INTERRUPTED, /* a launch stopped on request */
    SK_ERR_IO           /* a file could not be read or written */
} sk_status;

/* An error, owned by the caller; zero-initialise it before the first use. The first error put into it stays until
 * sk_error_clear. `file` is empty when the error points nowhere; line and column count from 1, 0 is unknown. */
typedef struct sk_error {
    sk_status status;
    char name[32];      /* the row of errors.def, e.g. "OUT_OF_BOUNDS" */
    char message[1024]; /* one line; a cure follows a semicolon */
    char file[512];
    uint32_t line, column;
} sk_error;

SK_API void sk_error_clear(sk_error *err);
SK_API const char *sk_status_name(sk_status status); /* "ok", "memory", ... */

/* Memory functions. `size` of free and `old_size` of resize are what was asked for. resize and allocate return null on
 * failure. All three may be called from several threads at once. */
typedef struct sk_allocator {
    void *(*allocate)(void *user, size_t size);
    void *(*resize)(void *user, void *p, size_t old_size, size_t size);
    void (*release)(void *user, void *p, size_t size);
    void *user;
} sk_allocator;

/* ---- context ---------------------------------------------------------------------------------------------------------- */

typedef struct sk_context sk_context;
SK_API sk_status sk_context_create(const sk_allocator *allocator /* null: malloc */, sk_context **out, sk_error *err);
SK_API void sk_context_destroy(sk_context *ctx);       /* null allowed; frees everything made in it */
SK_API size_t sk_context_bytes(const sk_context *ctx); /* bytes it now holds */

/* ---- types -------------------------------------------------------------------------------------------------------------- */

/* Scalar types; SK_VEC makes vectors of 2, 3 or 4. Metal has no 64-bit float, so there is none here. */
typedef enum sk_scalar {
    SK_VOID,
    SK_BOOL,
    SK_I8,
    SK_U8,
    SK_I16,
    SK_U16,
    SK_I32,
    SK_U32,
    SK_I64,
    SK_U64,
    SK_F16,
    SK_BF16,
    SK_F32,
    SK_SCALAR_COUNT
} sk_scalar;
typedef uint16_t sk_type;
#define SK_VEC(scalar, n) ((sk_type)(SK_SCALAR_COUNT + ((scalar)-1) * 3 + (n)-2))

/* What a kernel parameter is filled with by the launch; in the order of attributes.def. */
typedef enum sk_attribute {
    SK_NO_ATTRIBUTE,
    SK_THREAD_POSITION_IN_GRID,
    SK_THREADS_PER_GRID,
    SK_THREAD_POSITION_IN_THREADGROUP,
    SK_THREADGROUP_POSITION_IN_GRID,
    SK_THREADS_PER_THREADGROUP,
    SK_DISPATCH_THREADS_PER_THREADGROUP,
    SK_THREADGROUPS_PER_GRID,
    SK_THREAD_INDEX_IN_THREADGROUP,
    SK_THREAD_INDEX_IN_SIMDGROUP,
    SK_SIMDGROUP_INDEX_IN_THREADGROUP,
    SK_SIMDGROUPS_PER_THREADGROUP,
    SK_DISPATCH_SIMDGROUPS_PER_THREADGROUP,
    SK_THREADS_PER_SIMDGROUP,
    SK_THREAD_EXECUTION_WIDTH,
    SK_THREAD_INDEX_IN_QUADGROUP,
    SK_QUADGROUP_INDEX_IN_THREADGROUP,
    SK_QUADGROUPS_PER_THREADGROUP,
    SK_DISPATCH_QUADGROUPS_PER_THREADGROUP
} sk_attribute;

/* ---- modules: IR as text, Metal source ------------------------------------------------------------------------------------ */

typedef struct sk_module sk_module;
/* Parses and verifies IR text; `name` stands for the file in errors. */
SK_API sk_status sk_module_parse(sk_context *ctx, const char *text, size_t size, const char *name, sk_module **out,
                                 sk_error *err);
SK_API void sk_module_release(sk_module *module); /* null allowed */
/* The text form. Owned by the module until the next call or its end. */
SK_API sk_status sk_module_print(sk_module *module, bool places, const char **out, sk_error *err);
/* Runs passes by their letters, in the order given; null: the whole pipeline. docs/architecture.md lists them. */
SK_API sk_status sk_module_passes(sk_module *module, const char *letters, sk_error *err);
SK_API size_t sk_module_kernel_count(const sk_module *module);
SK_API const char *sk_module_kernel_name(const sk_module *module, size_t k); /* null past the end */
/* Metal source of one kernel (null: of all), owned by the module until the next call. `lines` (null allowed) receives
 * the place of each generated line: lines[i] is line i + 1; file null where it has none. */
typedef struct sk_line {
    const char *file;
    uint32_t line, column;
} sk_line;
SK_API sk_status sk_module_metal(sk_module *module, const char *kernel, const char **text, const sk_line **lines,
                                 size_t *n_lines, sk_error *err);

/* ---- tracing: kernels written in C ----------------------------------------------------------------------------------
 *
 *     sk_kernel_begin(t, "add");
 *     sk_value out = sk_param_buffer(t, "out", SK_F32), a = sk_param_buffer(t, "a", SK_F32);
 *     sk_value i = sk_param_attribute(t, "i", SK_U32, SK_THREAD_POSITION_IN_GRID);
 *     sk_store(out, i, sk_add(sk_load(a, i), sk_float(1)));
 *     sk_kernel_end(t);
 *
 * The rules of docs/language.md hold; sk_int, sk_uint, sk_float and sk_bool are the plain numbers there. The first error
 * stays in the tracer, with the file and line of the call that made it; everything after it does nothing, and
 * sk_tracer_finish reports it. So no call needs to be checked. The macros supply the caller's file and line to
 * functions of the same name that end in _at. */

typedef struct sk_tracer sk_tracer;

/* A traced value, a local, a pointer or a plain number. Copied freely; the fields are private. */
typedef struct sk_value {
    sk_tracer *tracer; /* null: a plain number */
    uint64_t bits;
    uint32_t id, func, serial;
    uint8_t kind, negative;
} sk_value;

typedef uint32_t sk_routine; /* a device function */

SK_API sk_status sk_tracer_create(sk_context *ctx, sk_tracer **out, sk_error *err);
SK_API void sk_tracer_release(sk_tracer *tracer); /* null allowed */
/* Gives the module with all kernels and routines, or the first error. The tracer takes nothing more. */
SK_API sk_status sk_tracer_finish(sk_tracer *tracer, sk_module **out, sk_error *err);
SK_API sk_status sk_tracer_status(const sk_tracer *tracer); /* of the first error, SK_OK while there is none */

SK_API sk_value sk_int(int64_t i);
SK_API sk_value sk_uint(uint64_t u);
SK_API sk_value sk_float(double f);
SK_API sk_value sk_bool(bool b);

#define SK_HERE __FILE__, __LINE__
#define SK_FROM const char *file, unsigned line

/* Kernels and routines. Parameters come first. A routine may be traced before a kernel or inside one; its parameters are
 * values and pointers. */
enum { SK_FAST_MATH = 1, SK_NO_CONTRACT = 2 }; /* options of a kernel: fast maths throughout; a*b+c never becomes fma */
#define sk_kernel_begin(t, name) sk_kernel_begin_at((t), (name), 0, SK_HERE)
#define sk_kernel_begin_with(t, name, options) sk_kernel_begin_at((t), (name), (options), SK_HERE)
#define sk_kernel_end(t) sk_routine_end_at((t), SK_HERE)
#define sk_routine_begin(t, name, result)                                                                              \
    sk_routine_begin_at((t), (name), (result), SK_HERE) /* result: SK_VOID for none */
#define sk_routine_end(t) sk_routine_end_at((t), SK_HERE)
#define sk_call(t, routine, n, args) sk_call_at((t), (routine), (n), (args), SK_HERE)
#define sk_return(t) sk_return_at((t), SK_HERE)
#define sk_return_value(t, v) sk_return_value_at((t), (v), SK_HERE)
SK_API void sk_kernel_begin_at(sk_tracer *t, const char *name, unsigned options, SK_FROM);
SK_API sk_routine sk_routine_begin_at(sk_tracer *t, const char *name, sk_type result, SK_FROM);
SK_API void sk_routine_end_at(sk_tracer *t, SK_FROM);
SK_API sk_value sk_call_at(sk_tracer *t, sk_routine routine, size_t n, const sk_value *args, SK_FROM);
SK_API void sk_return_at(sk_tracer *t, SK_FROM);
SK_API void sk_return_value_at(sk_tracer *t, sk_value v, SK_FROM);

typedef enum sk_param_kind {
    SK_PARAM_VALUE,       /* a scalar or vector given at launch; of a routine: any */
    SK_PARAM_BUFFER,      /* a pointer to device memory */
    SK_PARAM_ATOMIC,      /* the same, declared with Metal's atomic type: touched by atomics only */
    SK_PARAM_CONSTANT,    /* a pointer to constant memory */
    SK_PARAM_THREADGROUP, /* a pointer to threadgroup memory, sized at launch */
    SK_PARAM_THREAD,      /* routines: a pointer to memory of the thread */
    SK_PARAM_ATTRIBUTE    /* filled by the launch */
} sk_param_kind;
#define sk_param_value(t, name, type) sk_param_at((t), (name), SK_PARAM_VALUE, (type), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_buffer(t, name, elem) sk_param_at((t), (name), SK_PARAM_BUFFER, (elem), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_atomic(t, name, elem) sk_param_at((t), (name), SK_PARAM_ATOMIC, (elem), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_constant(t, name, elem) sk_param_at((t), (name), SK_PARAM_CONSTANT, (elem), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_threadgroup(t, name, elem)                                                                            \
    sk_param_at((t), (name), SK_PARAM_THREADGROUP, (elem), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_thread(t, name, elem) sk_param_at((t), (name), SK_PARAM_THREAD, (elem), SK_NO_ATTRIBUTE, SK_HERE)
#define sk_param_attribute(t, name, type, attribute)                                                                   \
    sk_param_at((t), (name), SK_PARAM_ATTRIBUTE, (type), (attribute), SK_HERE)
SK_API sk_value sk_param_at(sk_tracer *t, const char *name, sk_param_kind kind, sk_type type, sk_attribute attribute,
                            SK_FROM);

/* Names the value in printed code, if it has no name yet; gives it back. */
SK_API sk_value sk_name(sk_value v, const char *name);

/* Memory. Several indices are for arrays of several dimensions. */
#define sk_load(p, i) sk_load_at((p), 1, (i), (i), (i), SK_HERE)
#define sk_load2(p, i, j) sk_load_at((p), 2, (i), (j), (j), SK_HERE)
#define sk_load3(p, i, j, k) sk_load_at((p), 3, (i), (j), (k), SK_HERE)
#define sk_load_where(p, i, cond, other)                                                                               \
    sk_load_where_at((p), (i), (cond), (other), SK_HERE) /* reads only where cond holds */
#define sk_store(p, i, v) sk_store_at((p), 1, (i), (i), (i), (v), SK_HERE)
#define sk_store2(p, i, j, v) sk_store_at((p), 2, (i), (j), (j), (v), SK_HERE)
#define sk_store3(p, i, j, k, v) sk_store_at((p), 3, (i), (j), (k), (v), SK_HERE)
#define sk_threadgroup_array(t, elem, n) sk_array_at((t), true, (elem), 1, (n), 1, 1, SK_HERE)
#define sk_threadgroup_array2(t, elem, n, m) sk_array_at((t), true, (elem), 2, (n), (m), 1, SK_HERE)
#define sk_threadgroup_array3(t, elem, n, m, l) sk_array_at((t), true, (elem), 3, (n), (m), (l), SK_HERE)
#define sk_thread_array(t, elem, n) sk_array_at((t), false, (elem), 1, (n), 1, 1, SK_HERE)
SK_API sk_value sk_load_at(sk_value p, unsigned n, sk_value i, sk_value j, sk_value k, SK_FROM);
SK_API sk_value sk_load_where_at(sk_value p, sk_value i, sk_value cond, sk_value other, SK_FROM);
SK_API void sk_store_at(sk_value p, unsigned n, sk_value i, sk_value j, sk_value k, sk_value v, SK_FROM);
SK_API sk_value sk_array_at(sk_tracer *t, bool threadgroup, sk_type elem, unsigned dims, uint64_t n, uint64_t m,
                            uint64_t l, SK_FROM);

/* Locals: places, read when they are used. */
#define sk_local(t, type, init) sk_local_at((t), (type), (init), SK_HERE)
#define sk_assign(local, v) sk_assign_at((local), (v), SK_HERE)
#define sk_read(v) sk_read_at((v), SK_HERE) /* the value now */
SK_API sk_value sk_local_at(sk_tracer *t, sk_type type, sk_value init, SK_FROM);
SK_API void sk_assign_at(sk_value local, sk_value v, SK_FROM);
SK_API sk_value sk_read_at(sk_value v, SK_FROM);

/* Control. Every sk_if, sk_range and sk_while has its sk_end; elif and else stand before it. */
#define sk_if(t, cond) sk_if_at((t), (cond), SK_HERE)
#define sk_elif(t, cond) (sk_elif_begin_at((t), SK_HERE), sk_elif_at((t), (cond), SK_HERE))
#define sk_else(t) sk_else_at((t), SK_HERE)
#define sk_range(t, start, stop, step) sk_range_at((t), (start), (stop), (step), SK_HERE)      /* the variable */
#define sk_while(t, cond) (sk_while_begin_at((t), SK_HERE), sk_while_at((t), (cond), SK_HERE)) /* computed each time */
#define sk_end(t) sk_end_at((t), SK_HERE)
#define sk_break(t) sk_break_at((t), SK_HERE)
#define sk_continue(t) sk_continue_at((t), SK_HERE)
/* One of two values; only the one that is chosen is computed. */
#define sk_where(t, cond, a, b)                                                                                        \
    (sk_where_begin_at((t), (cond), SK_HERE), sk_where_next_at((t), (a), SK_HERE), sk_where_at((t), (b), SK_HERE))
SK_API void sk_if_at(sk_tracer *t, sk_value cond, SK_FROM);
SK_API void sk_elif_begin_at(sk_tracer *t, SK_FROM);
SK_API void sk_elif_at(sk_tracer *t, sk_value cond, SK_FROM);
SK_API void sk_else_at(sk_tracer *t, SK_FROM);
SK_API sk_value sk_range_at(sk_tracer *t, sk_value start, sk_value stop, sk_value step, SK_FROM);
SK_API void sk_while_begin_at(sk_tracer *t, SK_FROM);
SK_API void sk_while_at(sk_tracer *t, sk_value cond, SK_FROM);
SK_API void sk_end_at(sk_tracer *t, SK_FROM);
SK_API void sk_break_at(sk_tracer *t, SK_FROM);
SK_API void sk_continue_at(sk_tracer *t, SK_FROM);
SK_API void sk_where_begin_at(sk_tracer *t, sk_value cond, SK_FROM);
SK_API void sk_where_next_at(sk_tracer *t, sk_value a, SK_FROM);
SK_API sk_value sk_where_at(sk_tracer *t, sk_value b, SK_FROM);

/* Conversions and vectors. */
#define sk_const(t, type, number) sk_const_at((t), (type), (number), SK_HERE) /* a plain number with a type */
#define sk_cast(v, type) sk_cast_at((v), (type), SK_HERE)
#define sk_bitcast(v, type) sk_bitcast_at((v), (type), SK_HERE)
#define sk_x(v) sk_component_at((v), 0, SK_HERE)
#define sk_y(v) sk_component_at((v), 1, SK_HERE)
#define sk_z(v) sk_component_at((v), 2, SK_HERE)
#define sk_w(v) sk_component_at((v), 3, SK_HERE)
#define sk_vec2(t, scalar, a, b) sk_make_at((t), SK_VEC((scalar), 2), 2, (a), (b), (b), (b), SK_HERE)
#define sk_vec3(t, scalar, a, b, c) sk_make_at((t), SK_VEC((scalar), 3), 3, (a), (b), (c), (c), SK_HERE)
#define sk_vec4(t, scalar, a, b, c, d) sk_make_at((t), SK_VEC((scalar), 4), 4, (a), (b), (c), (d), SK_HERE)
SK_API sk_value sk_const_at(sk_tracer *t, sk_type type, sk_value number, SK_FROM);
SK_API sk_value sk_cast_at(sk_value v, sk_type type, SK_FROM);
SK_API sk_value sk_bitcast_at(sk_value v, sk_type type, SK_FROM);
SK_API sk_value sk_component_at(sk_value v, unsigned component, SK_FROM);
SK_API sk_value sk_make_at(sk_tracer *t, sk_type vector, unsigned n, sk_value a, sk_value b, sk_value c, sk_value d,
                           SK_FROM);

/* Operations by the name that they have in the IR: every operator, function and collective of docs/language.md. */
#define sk_op0(t, name) sk_op0_at((t), (name), SK_HERE)
#define sk_op1(name, a) sk_op1_at((name), (a), SK_HERE)
#define sk_op2(name, a, b) sk_op2_at((name), (a), (b), SK_HERE)
#define sk_op3(name, a, b, c) sk_op3_at((name), (a), (b), (c), SK_HERE)
#define sk_fast1(name, a) sk_fast_at((name), 1, (a), (a), SK_HERE) /* the fast form of a function */
#define sk_fast2(name, a, b) sk_fast_at((name), 2, (a), (b), SK_HERE)
SK_API sk_value sk_op0_at(sk_tracer *t, const char *name, SK_FROM);
SK_API sk_value sk_op1_at(const char *name, sk_value a, SK_FROM);
SK_API sk_value sk_op2_at(const char *name, sk_value a, sk_value b, SK_FROM);
SK_API sk_value sk_op3_at(const char *name, sk_value a, sk_value b, sk_value c, SK_FROM);
SK_API sk_value sk_fast_at(const char *name, unsigned n, sk_value a, sk_value b, SK_FROM);

#define sk_neg(a) sk_op1("neg", a)
#define sk_not(a) sk_op1("not", a)
#define sk_add(a, b) sk_op2("add", a, b)
#define sk_sub(a, b) sk_op2("sub", a, b)
#define sk_mul(a, b) sk_op2("mul", a, b)
#define sk_div(a, b) sk_op2("div", a, b) /* true division: integers give f32 */
#define sk_div_floor(a, b) sk_op2("div_floor", a, b)
#define sk_rem_floor(a, b) sk_op2("rem_floor", a, b)
#define sk_div_trunc(a, b) sk_op2("div_trunc", a, b)
#define sk_rem_trunc(a, b) sk_op2("rem_trunc", a, b)
#define sk_power(a, b) sk_op2("ipow", a, b) /* Python's a ** b: integers stay integers */
#define sk_and(a, b) sk_op2("and", a, b)
#define sk_or(a, b) sk_op2("or", a, b)
#define sk_xor(a, b) sk_op2("xor", a, b)
#define sk_shl(a, b) sk_op2("shl", a, b)
#define sk_shr(a, b) sk_op2("shr", a, b)
#define sk_eq(a, b) sk_op2("eq", a, b)
#define sk_ne(a, b) sk_op2("ne", a, b)
#define sk_lt(a, b) sk_op2("lt", a, b)
#define sk_le(a, b) sk_op2("le", a, b)
#define sk_gt(a, b) sk_op2("gt", a, b)
#define sk_ge(a, b) sk_op2("ge", a, b)
#define sk_select(cond, a, b) sk_op3("select", cond, a, b) /* both are computed */

#define sk_exp(x) sk_op1("exp", x)
#define sk_exp2(x) sk_op1("exp2", x)
#define sk_log(x) sk_op1("log", x)
#define sk_log2(x) sk_op1("log2", x)
#define sk_log10(x) sk_op1("log10", x)
#define sk_sqrt(x) sk_op1("sqrt", x)
#define sk_rsqrt(x) sk_op1("rsqrt", x)
#define sk_sin(x) sk_op1("sin", x)
#define sk_cos(x) sk_op1("cos", x)
#define sk_tan(x) sk_op1("tan", x)
#define sk_asin(x) sk_op1("asin", x)
#define sk_acos(x) sk_op1("acos", x)
#define sk_atan(x) sk_op1("atan", x)
#define sk_sinh(x) sk_op1("sinh", x)
#define sk_cosh(x) sk_op1("cosh", x)
#define sk_tanh(x) sk_op1("tanh", x)
#define sk_floor(x) sk_op1("floor", x)
#define sk_ceil(x) sk_op1("ceil", x)
#define sk_round(x) sk_op1("round", x)
#define sk_rint(x) sk_op1("rint", x)
#define sk_trunc(x) sk_op1("trunc", x)
#define sk_fabs(x) sk_op1("fabs", x)
#define sk_abs(x) sk_op1("abs", x)
#define sk_sign(x) sk_op1("sign", x)
#define sk_pow(x, y) sk_op2("pow", x, y)
#define sk_fmod(x, y) sk_op2("fmod", x, y)
#define sk_atan2(y, x) sk_op2("atan2", y, x)
#define sk_fmin(x, y) sk_op2("fmin", x, y)
#define sk_fmax(x, y) sk_op2("fmax", x, y)
#define sk_min(x, y) sk_op2("min", x, y)
#define sk_max(x, y) sk_op2("max", x, y)
#define sk_clamp(x, lo, hi) sk_op3("clamp", x, lo, hi)
#define sk_fma(x, y, z) sk_op3("fma", x, y, z)

/* Collectives over the active lanes of a simdgroup; those of a quadgroup by sk_op1("quad_sum", x) and so on. */
#define sk_simd_sum(x) sk_op1("simd_sum", x)
#define sk_simd_product(x) sk_op1("simd_product", x)
#define sk_simd_min(x) sk_op1("simd_min", x)
#define sk_simd_max(x) sk_op1("simd_max", x)
#define sk_simd_and(x) sk_op1("simd_and", x)
#define sk_simd_or(x) sk_op1("simd_or", x)
#define sk_simd_xor(x) sk_op1("simd_xor", x)
#define sk_simd_all(x) sk_op1("simd_all", x)
#define sk_simd_any(x) sk_op1("simd_any", x)
#define sk_simd_ballot(x) sk_op1("simd_ballot", x)
#define sk_simd_prefix_inclusive_sum(x) sk_op1("simd_prefix_inclusive_sum", x)
#define sk_simd_prefix_exclusive_sum(x) sk_op1("simd_prefix_exclusive_sum", x)
#define sk_simd_prefix_inclusive_product(x) sk_op1("simd_prefix_inclusive_product", x)
#define sk_simd_prefix_exclusive_product(x) sk_op1("simd_prefix_exclusive_product", x)
#define sk_simd_broadcast(x, lane) sk_op2("simd_broadcast", x, lane)
#define sk_simd_broadcast_first(x) sk_op1("simd_broadcast_first", x)
#define sk_simd_shuffle(x, lane) sk_op2("simd_shuffle", x, lane)
#define sk_simd_shuffle_up(x, delta) sk_op2("simd_shuffle_up", x, delta)
#define sk_simd_shuffle_down(x, delta) sk_op2("simd_shuffle_down", x, delta)
#define sk_simd_shuffle_xor(x, mask) sk_op2("simd_shuffle_xor", x, mask)
#define sk_simd_is_first(t) sk_op0(t, "simd_is_first")
#define sk_simd_active_threads_mask(t) sk_op0(t, "simd_active_threads_mask")

/* Atomics on element i, relaxed; sk_atomic_at takes any order and array. All but store give the old value. */
typedef enum sk_order { SK_RELAXED, SK_ACQUIRE, SK_RELEASE, SK_ACQ_REL, SK_SEQ_CST } sk_order;
#define SK_ATOMIC1(name, p, i, v) sk_atomic_at((name), (p), 1, (i), (i), 1, (v), (v), SK_RELAXED, SK_HERE)
#define sk_atomic_load(p, i) sk_atomic_at("atomic_load", (p), 1, (i), (i), 0, (i), (i), SK_RELAXED, SK_HERE)
#define sk_atomic_store(p, i, v) ((void)SK_ATOMIC1("atomic_store", p, i, v))
#define sk_atomic_exchange(p, i, v) SK_ATOMIC1("atomic_exchange", p, i, v)
#define sk_atomic_cas(p, i, expected, desired)                                                                         \
    sk_atomic_at("atomic_cas", (p), 1, (i), (i), 2, (expected), (desired), SK_RELAXED, SK_HERE)
#define sk_atomic_add(p, i, v) SK_ATOMIC1("atomic_add", p, i, v)
#define sk_atomic_sub(p, i, v) SK_ATOMIC1("atomic_sub", p, i, v)
#define sk_atomic_and(p, i, v) SK_ATOMIC1("atomic_and", p, i, v)
#define sk_atomic_or(p, i, v) SK_ATOMIC1("atomic_or", p, i, v)
#define sk_atomic_xor(p, i, v) SK_ATOMIC1("atomic_xor", p, i, v)
#define sk_atomic_min(p, i, v) SK_ATOMIC1("atomic_min", p, i, v)
#define sk_atomic_max(p, i, v) SK_ATOMIC1("atomic_max", p, i, v)
SK_API sk_value sk_atomic_at(const char *name, sk_value p, unsigned n_indices, sk_value i, sk_value j,
                             unsigned n_values, sk_value a, sk_value b, sk_order order, SK_FROM);

/* Barriers, with the memory that they order. */
enum {
    SK_MEMORY_NONE = 0,
    SK_MEMORY_DEVICE = 1,
    SK_MEMORY_THREADGROUP = 2,
    SK_MEMORY_TEXTURE = 4,
    SK_MEMORY_IMAGEBLOCK = 8
};
#define sk_threadgroup_barrier(t, memory) sk_barrier_at((t), false, (memory), SK_HERE)
#define sk_simdgroup_barrier(t, memory) sk_barrier_at((t), true, (memory), SK_HERE)
SK_API void sk_barrier_at(sk_tracer *t, bool simdgroup, unsigned memory, SK_FROM);

/* ---- host objects, in the shape of Metal's ------------------------------------------------------------------------------------ */

typedef struct sk_size {
    uint32_t x, y, z;
} sk_size;

typedef struct sk_device sk_device;
typedef struct sk_queue sk_queue;
typedef struct sk_library sk_library;
typedef struct sk_function sk_function;
typedef struct sk_pipeline sk_pipeline;
typedef struct sk_buffer sk_buffer;
typedef struct sk_commands sk_commands;

/* Devices of this machine, usable ones first. */
SK_API size_t sk_device_count(sk_context *ctx);
SK_API sk_device *sk_device_at(sk_context *ctx, size_t k); /* null past the end; belongs to the context */
/* By name ("interp", "cpu", "metal", "cuda:0"); null: the environment variable SPORK_DEVICE, else the best there is. */
SK_API sk_status sk_device_get(sk_context *ctx, const char *name, sk_device **out, sk_error *err);
SK_API const char *sk_device_name(const sk_device *device);
SK_API const char *sk_device_description(const sk_device *device); /* one line for a person */
/* Devices that this build knows but cannot use here, with the reason: "cpu: …". null past the end. */
SK_API const char *sk_device_missing(sk_context *ctx, size_t k);

/* What it found on this machine (library, processor, threads), in one line that belongs to the device until the next call. May
 * open the library. */
SK_API sk_status sk_device_details(sk_device *device, const char **out, sk_error *err);
/* Threads of this process that a launch may use, the caller included: SPORK_THREADS, else as many as there are processors. 1 on
 * devices that have no use for them. 0 sets it back. */
SK_API void sk_device_set_threads(sk_device *device, uint32_t n);
SK_API uint32_t sk_device_threads(const sk_device *device);
SK_API bool sk_device_unchecked(const sk_device *device); /* does it take launches that are `unchecked`? */
/* A kernel will be compiled whose source these bytes stand for: a device may begin to get ready in the background. */
SK_API void sk_device_expect(sk_device *device, const void *source, size_t size);

SK_API sk_status sk_queue_create(sk_device *device, sk_queue **out, sk_error *err);
SK_API void sk_queue_release(sk_queue *queue);

/* A library takes a copy of the module's IR. */
SK_API sk_status sk_library_from_module(sk_device *device, const sk_module *module, sk_library **out, sk_error *err);
SK_API sk_status sk_library_from_ir(sk_device *device, const char *text, size_t size, const char *name,
                                    sk_library **out, sk_error *err);
SK_API void sk_library_release(sk_library *library);
SK_API sk_status sk_library_function(sk_library *library, const char *name, sk_function **out, sk_error *err);
SK_API void sk_function_release(sk_function *function);

/* The arguments a launch gives, in order: buffers, constants and threadgroup memory; attributes are left out. */
typedef enum sk_arg_kind { SK_ARG_BUFFER, SK_ARG_VALUE, SK_ARG_THREADGROUP } sk_arg_kind;
typedef struct sk_arg_info {
    const char *name;
    sk_arg_kind kind;
    sk_type type;        /* element of a buffer or threadgroup memory, type of a value; SK_VOID for structs */
    size_t size;         /* bytes of one element, or of the value */
    bool read, written;  /* buffers: what the kernel may do with it */
    bool constant_space; /* buffers in Metal's constant address space */
    bool atomic;         /* declared with an atomic dtype */
} sk_arg_info;
SK_API size_t sk_function_arg_count(const sk_function *function);
SK_API sk_status sk_function_arg(const sk_function *function, size_t k, sk_arg_info *out, sk_error *err);

/* Compiles for the device. A pipeline may be used from several threads at once. */
SK_API sk_status sk_pipeline_create(sk_function *function, sk_pipeline **out, sk_error *err);
SK_API void sk_pipeline_release(sk_pipeline *pipeline);
SK_API uint32_t sk_pipeline_max_threads(const sk_pipeline *pipeline);        /* largest threadgroup */
SK_API uint32_t sk_pipeline_execution_width(const sk_pipeline *pipeline);    /* lanes of a simdgroup: 32 */
SK_API uint32_t sk_pipeline_threadgroup_memory(const sk_pipeline *pipeline); /* bytes declared in the kernel */
/* Devices that compile a kernel for the sizes it is launched with do so at the first launch, or here. */
SK_API sk_status sk_pipeline_prepare(sk_pipeline *pipeline, sk_size threadgroup, sk_error *err);
/* Null, or why the device runs the kernel in a slower way than it promises. Lives as long as the pipeline. */
SK_API const char *sk_pipeline_note(const sk_pipeline *pipeline);
/* For readers: the code of the kernel for threadgroups of that size. The caller frees the text by sk_text_free.
 * SK_ERR_UNSUPPORTED: the device has no such text, or runs the kernel in another way. */
typedef enum sk_text {
    SK_TEXT_LLVM,           /* LLVM's IR as it is generated */
    SK_TEXT_LLVM_OPTIMISED, /* the same after LLVM's passes */
    SK_TEXT_ASM,            /* the processor's instructions */
    SK_TEXT_TIMES           /* lines "step seconds": what the latest compilation for that size took, "" before one */
} sk_text;
SK_API sk_status sk_pipeline_text(sk_pipeline *pipeline, sk_size threadgroup, bool unchecked, sk_text kind, char **out,
                                  sk_error *err);
SK_API void sk_text_free(sk_context *ctx, char *text); /* null allowed */

/* Zero-filled memory of the device's own, or the caller's memory without a copy (it must stay valid). */
SK_API sk_status sk_buffer_create(sk_device *device, size_t size, sk_buffer **out, sk_error *err);
SK_API sk_status sk_buffer_wrap(sk_device *device, void *memory, size_t size, sk_buffer **out, sk_error *err);
SK_API void sk_buffer_release(sk_buffer *buffer);
SK_API void *sk_buffer_contents(sk_buffer *buffer);
SK_API size_t sk_buffer_size(const sk_buffer *buffer);

/* A command buffer with its compute encoder. Errors of the encoding calls are kept and reported by commit. Buffers stay
 * referenced until the commands have completed. */
SK_API sk_status sk_commands_create(sk_queue *queue, sk_commands **out, sk_error *err);
SK_API void sk_commands_release(sk_commands *commands);
SK_API void sk_commands_set_pipeline(sk_commands *commands, sk_pipeline *pipeline);
/* `k` counts the arguments of sk_function_arg. */
SK_API void sk_commands_set_buffer(sk_commands *commands, size_t k, sk_buffer *buffer, size_t offset);
SK_API void sk_commands_set_bytes(sk_commands *commands, size_t k, const void *bytes, size_t size);
SK_API void sk_commands_set_threadgroup_memory(sk_commands *commands, size_t k, size_t bytes);
SK_API void sk_commands_dispatch_threads(sk_commands *commands, sk_size threads, sk_size threadgroup);
SK_API void sk_commands_dispatch_threadgroups(sk_commands *commands, sk_size groups, sk_size threadgroup);
SK_API sk_status sk_commands_commit(sk_commands *commands, sk_error *err);
SK_API sk_status sk_commands_wait(sk_commands *commands, sk_error *err); /* a fault of a kernel is reported here */

/* One launch in one call: what commands are made of, for those who need no queue. */
typedef struct sk_arg {
    void *data;  /* buffer: its memory; value: its bytes; threadgroup memory: null */
    size_t size; /* bytes */
} sk_arg;
typedef struct sk_launch {
    sk_size grid; /* threads if `threads`, else threadgroups; a 0 in it launches nothing */
    sk_size threadgroup;
    bool threads;
    size_t n_args;
    const sk_arg *args;
    const volatile int *stop; /* null, or a word that becomes non-zero to stop the launch: SK_ERR_INTERRUPTED */
    bool
        unchecked; /* accesses are not checked, for measuring: one out of bounds does anything. Devices may refuse it */
    uint32_t workers; /* threads of this process that may take part; 0: those of the device */
} sk_launch;
SK_API sk_status sk_pipeline_launch(sk_pipeline *pipeline, const sk_launch *launch, sk_error *err);
/* Would the launch be over in some microseconds, so that waiting for it is no matter? False where that is not known. */
SK_API bool sk_pipeline_is_short(const sk_pipeline *pipeline, const sk_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
