/* Tracing through the public interface: kernels written in C, sticky errors, memory that runs out. */
#include "check.h"
#include "faulty.h"
#include "spork/spork.h"

#include <stdlib.h>

static sk_context *ctx;
static sk_tracer *t;

static void begin(void)
{
    CHECK_EQ(sk_context_create(NULL, &ctx, NULL), SK_OK);
    CHECK_EQ(sk_tracer_create(ctx, &t, NULL), SK_OK);
}

static void end(void)
{
    sk_context_destroy(ctx);
}

/* Finishes and compares the text form. */
static void expect(const char *text)
{
    sk_module *m = NULL;
    sk_error err = {0};
    const char *got = "";
    CHECK_EQ(sk_tracer_finish(t, &m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    if (m)
        CHECK_EQ(sk_module_print(m, false, &got, &err), SK_OK);
    CHECK_EQ_STR(got, text);
    end();
}

/* Finishes with that error at that line. */
static void expect_error(sk_status status, const char *name, int line)
{
    sk_module *m = NULL;
    sk_error err = {0};
    CHECK_EQ(sk_tracer_status(t), status);
    CHECK_EQ(sk_tracer_finish(t, &m, &err), status);
    CHECK_EQ_STR(err.name, name);
    CHECK(strstr(err.file, "trace.c") != NULL);
    CHECK_EQ(err.line, line);
    CHECK(m == NULL);
    end();
}

static void test_matrix_add(void)
{
    begin();
    sk_kernel_begin(t, "matrix_add");
    const sk_value out = sk_param_buffer(t, "out", SK_F32);
    const sk_value a = sk_param_buffer(t, "A", SK_F32), b = sk_param_buffer(t, "B", SK_F32);
    const sk_value index = sk_param_attribute(t, "index", SK_U32, SK_THREAD_POSITION_IN_GRID);
    sk_store(out, index, sk_add(sk_load(a, index), sk_load(b, index)));
    sk_kernel_end(t);
    sk_module *m = NULL;
    const char *text = "";
    CHECK_EQ(sk_tracer_finish(t, &m, NULL), SK_OK);
    sk_tracer_release(t); /* the module outlives it */
    CHECK_EQ(sk_module_kernel_count(m), 1);
    CHECK_EQ_STR(sk_module_kernel_name(m, 0), "matrix_add");
    CHECK_EQ(sk_module_print(m, false, &text, NULL), SK_OK);
    /* C does not say in which order the two loads are traced. */
    CHECK(strstr(text, "kernel matrix_add(out: device f32, A: device f32, B: device f32, "
                       "index: u32 [thread_position_in_grid]) {\n") == text);
    CHECK(strstr(text, "  %5 = index ptr.device %out, %index of f32\n  store %5, %4\n}\n") != NULL);
    sk_module_release(m);
    end();
}

/* Every construct of the interface. */
static void trace_all(void)
{
    const sk_routine scale = sk_routine_begin(t, "scale", SK_F32);
    const sk_value x = sk_param_value(t, "x", SK_F32), p = sk_param_buffer(t, "p", SK_F32);
    sk_if(t, sk_lt(x, sk_int(0)));
    sk_return_value(t, sk_neg(x));
    sk_end(t);
    sk_return_value(t, sk_mul(x, sk_load(p, sk_int(0))));
    sk_routine_end(t);

    const sk_routine touch = sk_routine_begin(t, "touch", SK_VOID);
    const sk_value q = sk_param_thread(t, "q", SK_U32), g = sk_param_threadgroup(t, "g", SK_F32);
    sk_store(q, sk_int(0), sk_const(t, SK_U32, sk_uint(0xffffffffu)));
    sk_store(g, sk_int(0), sk_float(-0.0));
    sk_return(t);
    sk_routine_end(t);

    sk_kernel_begin(t, "everything");
    const sk_value out = sk_param_buffer(t, "out", SK_F32), a = sk_param_constant(t, "a", SK_F32);
    const sk_value hits = sk_param_atomic(t, "hits", SK_U32), n = sk_param_value(t, "n", SK_U32);
    const sk_value v = sk_param_value(t, "v", SK_VEC(SK_F32, 4)), shared = sk_param_threadgroup(t, "shared", SK_F32);
    const sk_value i = sk_param_attribute(t, "i", SK_U32, SK_THREAD_POSITION_IN_GRID);
    const sk_value tile = sk_name(sk_threadgroup_array2(t, SK_F32, 4, 8), "tile");
    const sk_value cube = sk_threadgroup_array3(t, SK_I32, 2, 2, 2);
    const sk_value row = sk_threadgroup_array(t, SK_F32, 32);
    const sk_value own = sk_thread_array(t, SK_U32, 4);
    const sk_value acc = sk_name(sk_local(t, SK_F32, sk_int(0)), "acc");
    const sk_value before = sk_name(sk_read(acc), "before");
    const sk_value j = sk_name(sk_range(t, sk_int(0), n, sk_int(1)), "j");
    sk_if(t, sk_eq(j, sk_int(3)));
    sk_continue(t);
    sk_elif(t, sk_gt(sk_load(a, j), sk_float(100)));
    sk_break(t);
    sk_else(t);
    sk_assign(acc, sk_add(acc, sk_load(a, j)));
    sk_end(t);
    sk_end(t);
    sk_range(t, n, sk_int(-1), sk_int(-2));
    sk_end(t);
    sk_while(t, sk_lt(acc, sk_atomic_add(hits, sk_int(0), sk_int(1))));
    sk_assign(acc, sk_mul(acc, sk_int(2)));
    sk_end(t);
    sk_threadgroup_barrier(t, SK_MEMORY_THREADGROUP | SK_MEMORY_DEVICE);
    sk_simdgroup_barrier(t, SK_MEMORY_NONE);
    sk_store2(tile, sk_int(1), sk_and(i, sk_int(7)), acc);
    sk_store3(cube, sk_int(1), sk_int(1), sk_and(i, sk_int(1)), sk_load3(cube, sk_int(0), sk_int(0), sk_int(0)));
    sk_store(row, i, sk_load2(tile, sk_int(0), i));
    sk_store(shared, i, sk_load_where(a, i, sk_lt(i, n), sk_int(0)));
    const sk_value w = sk_where(t, sk_lt(i, n), sk_load(a, i), sk_int(0));
    sk_store(out, i, sk_add(w, sk_call(t, scale, 2, ((const sk_value[]){acc, out}))));
    (void)sk_call(t, touch, 2, ((const sk_value[]){own, row}));
    (void)sk_atomic_cas(hits, sk_int(1), sk_int(0), sk_int(1));
    sk_atomic_store(hits, sk_int(2), sk_uint(7));
    (void)sk_atomic_load(hits, sk_int(2));
    (void)sk_atomic_at("atomic_max", hits, 1, i, i, 1, n, n, SK_RELAXED, SK_HERE);
    const sk_value vv = sk_vec4(t, SK_F32, sk_x(v), sk_y(v), sk_z(v), sk_w(v));
    (void)sk_make_at(t, SK_VEC(SK_F32, 3), 2, sk_vec2(t, SK_F32, before, w), sk_int(1), w, w, SK_HERE);
    sk_store(out, i, sk_x(sk_add(vv, sk_int(1))));
    sk_store(out, i, sk_select(sk_bool(true), sk_clamp(acc, sk_int(0), sk_int(1)), sk_fast1("exp", acc)));
    sk_store(out, i, sk_bitcast(sk_cast(sk_power(i, sk_int(3)), SK_U32), SK_F32));
    sk_store(out, i, sk_simd_shuffle_down(sk_simd_sum(acc), sk_int(4)));
    sk_if(t, sk_and(sk_simd_is_first(t), sk_op1("quad_any", acc)));
    sk_store(out, i, sk_fast2("pow", sk_atan2(acc, w), sk_fma(acc, acc, w)));
    sk_return(t);
    sk_store(out, i, w);
    sk_end(t);
    sk_kernel_end(t);
}

static void test_order_and_names(void)
{
    begin();
    sk_kernel_begin(t, "k");
    const sk_value out = sk_param_buffer(t, "out", SK_F32);
    const sk_value i = sk_param_attribute(t, "i", SK_U32, SK_THREAD_POSITION_IN_GRID);
    const sk_value old = sk_name(sk_load(out, i), "old");
    sk_store(out, i, sk_load(out, sk_int(0)));
    sk_store(out, sk_int(0), old);
    const sk_value v = sk_name(sk_local(t, SK_I32, sk_int(1)), "v");
    const sk_value was = sk_name(sk_add(v, sk_int(0)), "was");
    sk_assign(v, sk_int(2));
    sk_store(out, i, was);
    sk_kernel_end(t);
    expect("kernel k(out: device f32, i: u32 [thread_position_in_grid]) {\n"
           "  %0 = index ptr.device %out, %i of f32\n"
           "  %old.1 = load f32 %0\n"
           "  %2 = index ptr.device %out, 0:i32 of f32\n"
           "  %3 = load f32 %2\n"
           "  %4 = index ptr.device %out, %i of f32\n"
           "  store %4, %3\n"
           "  %5 = index ptr.device %out, 0:i32 of f32\n"
           "  store %5, %old.1\n"
           "  %v.6 = var i32 1:i32\n"
           "  %7 = get i32 %v.6\n"
           "  %was.8 = add i32 %7, 0:i32\n"
           "  set %v.6, 2:i32\n"
           "  %9 = convert f32 %was.8\n"
           "  %10 = index ptr.device %out, %i of f32\n"
           "  store %10, %9\n"
           "}\n");
}

static void test_loops_text(void)
{
    begin();
    sk_kernel_begin(t, "k");
    const sk_value n = sk_param_value(t, "n", SK_U32), out = sk_param_buffer(t, "out", SK_U32);
    const sk_value j = sk_name(sk_range(t, sk_int(0), n, sk_int(4)), "j");
    sk_if(t, sk_eq(j, sk_int(8)));
    sk_continue(t);
    sk_end(t);
    sk_store(out, j, j);
    sk_end(t);
    sk_kernel_end(t);
    expect("kernel k(n: u32, out: device u32) {\n"
           "  loop (%j.0: u32 = 0:u32) {\n"
           "    %1 = lt bool %j.0, %n\n"
           "    if %1 {\n"
           "      block {\n"
           "        %2 = eq bool %j.0, 8:u32\n"
           "        if %2 {\n"
           "          br 1\n"
           "        }\n"
           "        %3 = index ptr.device %out, %j.0 of u32\n"
           "        store %3, %j.0\n"
           "      }\n"
           "      %4 = sub u32 %n, %j.0\n"
           "      %5 = min u32 4:u32, %4\n"
           "      %6 = add u32 %j.0, %5\n"
           "      br 1 %6\n"
           "    }\n"
           "  }\n"
           "}\n");
}

static void test_options(void)
{
    begin();
    sk_kernel_begin_with(t, "k", SK_FAST_MATH | SK_NO_CONTRACT);
    const sk_value o = sk_param_buffer(t, "o", SK_F32);
    sk_store(o, sk_int(0), sk_exp(sk_load(o, sk_int(0))));
    sk_kernel_end(t);
    expect("kernel k(o: device f32) fast no_contract {\n"
           "  %0 = index ptr.device %o, 0:i32 of f32\n"
           "  %1 = load f32 %0\n"
           "  %2 = exp f32 %1 fast\n"
           "  %3 = index ptr.device %o, 0:i32 of f32\n"
           "  store %3, %2\n"
           "}\n");
}

/* ---- errors -------------------------------------------------------------------------------------------------------------- */

static sk_value out, i;

static void begin_kernel(void)
{
    begin();
    sk_kernel_begin(t, "k");
    out = sk_param_buffer(t, "out", SK_F32);
    i = sk_param_attribute(t, "i", SK_I32, SK_THREAD_POSITION_IN_GRID);
    sk_store(out, i, sk_int(0));
}

static void test_sticky_errors(void)
{
    int line;

    begin_kernel();
    line = __LINE__ + 1;
    sk_value bad = sk_load(out, sk_float(0.5));
    bad = sk_add(bad, sk_int(1)); /* does nothing, says nothing */
    sk_store(out, bad, bad);
    sk_break(t);
    expect_error(SK_ERR_TYPE, "NOT_AN_INTEGER", line);

    begin_kernel();
    line = __LINE__ + 1;
    sk_store(out, sk_int(-1), sk_int(0));
    sk_kernel_end(t);
    expect_error(SK_ERR_VALUE, "NEGATIVE_INDEX", line);

    begin_kernel();
    line = __LINE__ + 1;
    sk_store(out, i, sk_add(sk_int(1), sk_int(2)));
    expect_error(SK_ERR_TYPE, "PLAIN_NUMBERS", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_op1("exq", i);
    expect_error(SK_ERR_VALUE, "UNKNOWN_OPERATION", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_op2("barrier", i, i);
    expect_error(SK_ERR_VALUE, "UNKNOWN_OPERATION", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_cast(i, (sk_type)9999);
    expect_error(SK_ERR_TYPE, "CANNOT_CAST", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_load(sk_int(3), i);
    expect_error(SK_ERR_TYPE, "NOT_A_POINTER", line);

    begin_kernel();
    line = __LINE__ + 1;
    sk_else(t);
    expect_error(SK_ERR_TRACE, "BLOCK_ENDED", line);

    begin_kernel();
    line = __LINE__ + 1;
    sk_if(t, i);
    sk_kernel_end(t);
    expect_error(SK_ERR_TRACE, "BLOCK_OPEN", line);

    begin_kernel();
    line = __LINE__ + 1;
    sk_while(t, sk_where(t, i, sk_where_at(t, i, SK_HERE), i));
    expect_error(SK_ERR_TRACE, "BLOCK_INCOMPLETE", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_call(t, 77, 0, NULL);
    expect_error(SK_ERR_TYPE, "NOT_CALLABLE", line);

    begin_kernel();
    line = __LINE__ + 1;
    (void)sk_param_value(t, "late", SK_F32);
    expect_error(SK_ERR_TRACE, "PARAM_LATE", line);

    begin_kernel();
    sk_kernel_end(t);
    line = __LINE__ + 1;
    sk_kernel_begin(t, "k");
    expect_error(SK_ERR_VALUE, "NAME_TAKEN", line);

    begin_kernel();
    sk_kernel_end(t);
    sk_kernel_begin(t, "k2");
    line = __LINE__ + 1;
    sk_store(out, i, sk_int(0)); /* of the first kernel */
    expect_error(SK_ERR_TRACE, "OTHER_FUNCTION", line);
}

static void test_two_tracers(void)
{
    begin_kernel();
    sk_tracer *other = NULL, *const first = t;
    CHECK_EQ(sk_tracer_create(ctx, &other, NULL), SK_OK);
    sk_kernel_begin(other, "other");
    const sk_value p = sk_param_buffer(other, "p", SK_F32);
    const int line = __LINE__ + 1;
    sk_store(p, sk_int(0), sk_load(out, i));
    CHECK_EQ(sk_tracer_status(first), SK_OK);
    t = other;
    expect_error(SK_ERR_TRACE, "OTHER_KERNEL", line);
}

static void test_after_finish(void)
{
    sk_module *m = NULL, *again = NULL;
    sk_error err = {0};
    begin_kernel();
    sk_kernel_end(t);
    CHECK_EQ(sk_tracer_finish(t, &m, &err), SK_OK);
    sk_store(out, i, sk_int(0)); /* nothing happens to the module */
    CHECK_EQ(sk_tracer_status(t), SK_ERR_TRACE);
    CHECK_EQ(sk_tracer_finish(t, &again, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(err.name, "TRACE_OVER");
    CHECK(again == NULL);
    end();

    begin();
    sk_error_clear(&err);
    CHECK_EQ(sk_tracer_finish(t, &m, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(err.name, "NO_KERNEL");
    end();
}

/* ---- memory that runs out -------------------------------------------------------------------------------------------------- */

/* Traces everything; the text, or null where memory ran out. */
static char *trace_with(struct faulty *f)
{
    const sk_allocator alloc = faulty_allocator(f);
    sk_error err = {0};
    sk_module *m = NULL;
    const char *text = NULL;
    char *copy = NULL;
    ctx = NULL;
    sk_status status = sk_context_create(&alloc, &ctx, &err);
    if (status == SK_OK)
        status = sk_tracer_create(ctx, &t, &err);
    if (status == SK_OK) {
        trace_all();
        status = sk_tracer_finish(t, &m, &err);
    }
    if (status == SK_OK)
        status = sk_module_print(m, true, &text, &err);
    CHECK(status == SK_OK || (status == SK_ERR_MEMORY && err.status == SK_ERR_MEMORY));
    if (status != SK_OK && status != SK_ERR_MEMORY)
        printf("%s:%u: %s\n", err.file, err.line, err.message);
    if (status == SK_OK) {
        copy = malloc(strlen(text) + 1);
        (void)strcpy(copy, text);
        CHECK(sk_context_bytes(ctx) > strlen(text));
    }
    sk_context_destroy(ctx);
    CHECK(faulty_clean(f));
    return copy;
}

static void test_all_and_out_of_memory(void)
{
    struct faulty f = {.left = -1};
    char *const whole = trace_with(&f);
    CHECK(whole != NULL);
    if (!whole)
        return;
    long k = 0;
    for (char *text = NULL; !text && k < 100000; k++) {
        f = (struct faulty){.left = k};
        text = trace_with(&f);
        if (text) {
            CHECK_EQ_STR(text, whole);
            free(text);
        }
    }
    CHECK(k > 20);

    /* it reads back as the same text, and its constructs pass the verifier */
    sk_module *m = NULL;
    sk_error err = {0};
    const char *again = "";
    CHECK_EQ(sk_context_create(NULL, &ctx, NULL), SK_OK);
    CHECK_EQ(sk_module_parse(ctx, whole, strlen(whole), "all.ir", &m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    if (m)
        CHECK_EQ(sk_module_print(m, true, &again, NULL), SK_OK);
    CHECK_EQ_STR(again, whole);
    sk_context_destroy(ctx);
    free(whole);
}

int main(void)
{
    test_matrix_add();
    test_order_and_names();
    test_loops_text();
    test_options();
    test_sticky_errors();
    test_two_tracers();
    test_after_finish();
    test_all_and_out_of_memory();
    return check_done();
}
