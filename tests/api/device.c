/* The host objects: launches in both forms, limits and refusals, commands, and every allocation failing in turn. */
#include "check.h"
#include "faulty.h"

#include <stdlib.h>

#include "spork/spork.h"

static const char text[] = "func twice(x: f32) -> f32 {\n"
                           "  %0 = add f32 %x, %x\n"
                           "  return %0\n"
                           "}\n"
                           "\n"
                           "kernel scale(out: device f32, a: device f32, n: u32, t: threadgroup f32, i: u32 "
                           "[thread_position_in_grid], l: u32 [thread_index_in_threadgroup]) {\n"
                           "  %s.0 = alloc ptr.threadgroup of [f32 x 64]\n"
                           "  %1 = lt bool %i, %n\n"
                           "  if %1 {\n"
                           "    %2 = index ptr.device %a, %i of f32\n"
                           "    %3 = load f32 %2\n"
                           "    %4 = call f32 @twice(%3)\n"
                           "    %5 = index ptr.threadgroup %t, %l of f32\n"
                           "    store %5, %4\n"
                           "  }\n"
                           "  barrier memory(threadgroup)\n"
                           "  if %1 {\n"
                           "    %6 = index ptr.threadgroup %t, %l of f32\n"
                           "    %7 = load f32 %6\n"
                           "    %8 = index ptr.device %out, %i of f32\n"
                           "    store %8, %7\n"
                           "  }\n"
                           "}\n"
                           "\n"
                           "kernel write(out: device f32, i: u32 [thread_position_in_grid]) {\n"
                           "  %0 = index ptr.device %out, %i of f32\n"
                           "  store %0, 1.0:f32\n"
                           "}\n";

enum { N = 100 };

struct machine {
    sk_context *ctx;
    sk_device *device;
    sk_module *module;
    sk_library *library;
    sk_function *function;
    sk_pipeline *pipeline;
};

static sk_status open_machine(struct machine *m, const sk_allocator *a, const char *kernel, sk_error *err)
{
    *m = (struct machine){0};
    sk_status st = sk_context_create(a, &m->ctx, err);
    if (st == SK_OK)
        st = sk_device_get(m->ctx, NULL, &m->device, err);
    if (st == SK_OK)
        st = sk_module_parse(m->ctx, text, sizeof text - 1, "device.ir", &m->module, err);
    if (st == SK_OK)
        st = sk_library_from_module(m->device, m->module, &m->library, err);
    if (st == SK_OK)
        st = sk_library_function(m->library, kernel, &m->function, err);
    if (st == SK_OK)
        st = sk_pipeline_create(m->function, &m->pipeline, err);
    return st;
}

static void test_arguments(void)
{
    struct machine m;
    sk_error err = {0};
    CHECK_EQ(open_machine(&m, NULL, "scale", &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    CHECK_EQ(sk_function_arg_count(m.function), 4);
    sk_arg_info info;
    CHECK_EQ(sk_function_arg(m.function, 0, &info, &err), SK_OK);
    CHECK(info.kind == SK_ARG_BUFFER && info.written && !info.read && info.type == SK_F32 && info.size == 4);
    CHECK_EQ(sk_function_arg(m.function, 1, &info, &err), SK_OK);
    CHECK(info.kind == SK_ARG_BUFFER && !info.written && info.read);
    CHECK_EQ(sk_function_arg(m.function, 2, &info, &err), SK_OK);
    CHECK(info.kind == SK_ARG_VALUE && info.type == SK_U32 && info.size == 4);
    CHECK_EQ(sk_function_arg(m.function, 3, &info, &err), SK_OK);
    CHECK(info.kind == SK_ARG_THREADGROUP && info.type == SK_F32);
    CHECK_EQ(sk_function_arg(m.function, 4, &info, &err), SK_ERR_VALUE);
    CHECK_EQ(sk_pipeline_execution_width(m.pipeline), 32);
    CHECK_EQ(sk_pipeline_max_threads(m.pipeline), 1024);
    sk_context_destroy(m.ctx);
}

static sk_status launch(struct machine *m, sk_launch l, sk_error *err)
{
    sk_error_clear(err);
    return sk_pipeline_launch(m->pipeline, &l, err);
}

static void test_launches(void)
{
    struct machine m;
    sk_error err = {0};
    float a[N], out[N] = {0};
    uint32_t n = N;
    for (int i = 0; i < N; i++)
        a[i] = (float)i;
    CHECK_EQ(open_machine(&m, NULL, "scale", &err), SK_OK);
    sk_arg args[] = {{out, sizeof out}, {a, sizeof a}, {&n, sizeof n}, {NULL, 64 * 4}};
    const sk_launch good = {.grid = {N, 1, 1}, .threadgroup = {64, 1, 1}, .threads = true, .n_args = 4, .args = args};
    sk_launch l = good;
    CHECK_EQ(launch(&m, l, &err), SK_OK);
    for (int i = 0; i < N; i++)
        CHECK_NEAR(out[i], 2 * i, 0);

    memset(out, 0, sizeof out);
    l.threads = false;
    l.grid.x = 1; /* one group: 64 threads */
    CHECK_EQ(launch(&m, l, &err), SK_OK);
    CHECK_NEAR(out[63], 126, 0);
    CHECK_NEAR(out[64], 0, 0);

    l.grid.y = 0; /* nothing, whatever the rest says */
    CHECK_EQ(launch(&m, l, &err), SK_OK);
    l = good;
    l.threadgroup.z = 0;
    CHECK_EQ(launch(&m, l, &err), SK_ERR_VALUE);
    CHECK(strstr(err.message, "64x1x0 has no threads"));

    l = good;
    l.n_args = 3;
    CHECK_EQ(launch(&m, l, &err), SK_ERR_TYPE);
    CHECK(strstr(err.message, "takes 4 arguments, 3 were given"));
    l = good;
    l.threadgroup = (sk_size){32, 32, 2};
    CHECK_EQ(launch(&m, l, &err), SK_ERR_VALUE);
    CHECK(strstr(err.message, "2048 threads"));
    l.threadgroup = (sk_size){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    CHECK_EQ(launch(&m, l, &err), SK_ERR_VALUE);
    l = good;
    l.threads = false;
    l.grid.x = UINT32_MAX;
    CHECK_EQ(launch(&m, l, &err), SK_ERR_VALUE);

    args[3].size = 32768;
    CHECK_EQ(launch(&m, good, &err), SK_OK);
    args[3].size = 32769;
    CHECK_EQ(launch(&m, good, &err), SK_ERR_VALUE);
    CHECK(strstr(err.message, "threadgroup memory"));
    args[3].size = SIZE_MAX;
    CHECK_EQ(launch(&m, good, &err), SK_ERR_VALUE);
    args[3].size = 256;
    args[2].size = 8;
    CHECK_EQ(launch(&m, good, &err), SK_ERR_TYPE);
    args[2].size = 4;
    args[0].data = NULL;
    CHECK_EQ(launch(&m, good, &err), SK_ERR_VALUE);
    args[0].data = out;

    args[0].size = 50 * 4;
    CHECK_EQ(launch(&m, good, &err), SK_ERR_FAULT);
    CHECK_EQ_STR(err.file, "device.ir");
    CHECK_EQ(err.line, 21);
    CHECK(strstr(err.message, "'out'") && strstr(err.message, "50"));
    sk_context_destroy(m.ctx);
}

static void test_devices(void)
{
    sk_context *ctx = NULL;
    sk_error err = {0};
    sk_device *d = NULL;
    CHECK_EQ(sk_context_create(NULL, &ctx, &err), SK_OK);
    CHECK(sk_device_count(ctx) >= 1);
    CHECK(sk_device_at(ctx, 1000) == NULL);
    CHECK(sk_device_missing(ctx, 1000) == NULL);
    CHECK_EQ(sk_device_get(ctx, "interp", &d, &err), SK_OK);
    CHECK_EQ_STR(sk_device_name(d), "interp");
    d = NULL;
    CHECK_EQ(sk_device_get(ctx, "abacus", &d, &err), SK_ERR_DEVICE);
    CHECK(!d && strstr(err.message, "'abacus'") && strstr(err.message, "interp"));
    sk_context_destroy(ctx);
}

static void test_commands(void)
{
    struct machine m;
    sk_error err = {0};
    sk_queue *queue = NULL;
    sk_commands *c = NULL;
    sk_buffer *b = NULL;
    CHECK_EQ(open_machine(&m, NULL, "write", &err), SK_OK);
    CHECK_EQ(sk_queue_create(m.device, &queue, &err), SK_OK);
    CHECK_EQ(sk_buffer_create(m.device, 40, &b, &err), SK_OK);
    CHECK_EQ(sk_buffer_size(b), 40);
    float *x = sk_buffer_contents(b);

    CHECK_EQ(sk_commands_create(queue, &c, &err), SK_OK);
    CHECK_EQ(sk_commands_wait(c, &err), SK_ERR_VALUE);
    sk_error_clear(&err);
    sk_commands_set_pipeline(c, m.pipeline);
    sk_commands_set_buffer(c, 0, b, 8);
    sk_commands_dispatch_threads(c, (sk_size){8, 1, 1}, (sk_size){3, 1, 1});
    CHECK_EQ(sk_commands_commit(c, &err), SK_OK);
    CHECK_EQ(sk_commands_wait(c, &err), SK_OK);
    CHECK(x[0] == 0 && x[1] == 0 && x[2] == 1 && x[9] == 1);
    CHECK_EQ(sk_commands_commit(c, &err), SK_ERR_VALUE);
    sk_commands_release(c);

    /* A fault waits for sk_commands_wait; the pipeline may be released once it is set. */
    sk_error_clear(&err);
    CHECK_EQ(sk_commands_create(queue, &c, &err), SK_OK);
    sk_commands_set_pipeline(c, m.pipeline);
    sk_commands_set_buffer(c, 0, b, 0);
    sk_commands_dispatch_threadgroups(c, (sk_size){11, 1, 1}, (sk_size){1, 1, 1});
    sk_buffer_release(b);
    sk_pipeline_release(m.pipeline);
    CHECK_EQ(sk_commands_commit(c, &err), SK_OK);
    CHECK_EQ(sk_commands_wait(c, &err), SK_ERR_FAULT);
    sk_commands_release(c);

    sk_error_clear(&err);
    CHECK_EQ(sk_commands_create(queue, &c, &err), SK_OK);
    sk_commands_dispatch_threads(c, (sk_size){1, 1, 1}, (sk_size){1, 1, 1});
    CHECK_EQ(sk_commands_commit(c, &err), SK_ERR_VALUE);
    CHECK(strstr(err.message, "pipeline"));
    sk_commands_release(c);
    sk_queue_release(queue);
    sk_context_destroy(m.ctx);
}

/* ---- every allocation fails once ---- */

/* Everything there is, from text to the result; the status of what failed first. */
static sk_status everything(const sk_allocator *a, float *result)
{
    struct machine m;
    sk_error err = {0};
    sk_queue *queue = NULL;
    sk_commands *c = NULL;
    sk_buffer *in = NULL, *out = NULL;
    const char *printed = NULL;
    const sk_line *lines = NULL;
    size_t n_lines = 0;
    const uint32_t n = N;
    sk_status st = open_machine(&m, a, "scale", &err);
    if (st == SK_OK)
        st = sk_module_passes(m.module, "VSEHCD", &err);
    if (st == SK_OK)
        st = sk_module_print(m.module, true, &printed, &err);
    if (st == SK_OK)
        st = sk_module_metal(m.module, NULL, &printed, &lines, &n_lines, &err);
    if (st == SK_OK)
        st = sk_queue_create(m.device, &queue, &err);
    if (st == SK_OK)
        st = sk_buffer_create(m.device, N * 4, &in, &err);
    if (st == SK_OK)
        st = sk_buffer_create(m.device, N * 4, &out, &err);
    if (st == SK_OK)
        st = sk_commands_create(queue, &c, &err);
    if (st == SK_OK) {
        ((float *)sk_buffer_contents(in))[N - 1] = 21;
        sk_commands_set_pipeline(c, m.pipeline);
        sk_commands_set_buffer(c, 0, out, 0);
        sk_commands_set_buffer(c, 1, in, 0);
        sk_commands_set_bytes(c, 2, &n, sizeof n);
        sk_commands_set_threadgroup_memory(c, 3, 32 * 4);
        sk_commands_dispatch_threads(c, (sk_size){N, 1, 1}, (sk_size){32, 1, 1});
        st = sk_commands_commit(c, &err);
    }
    if (st == SK_OK)
        st = sk_commands_wait(c, &err);
    if (st == SK_OK)
        *result = ((float *)sk_buffer_contents(out))[N - 1];
    if (st != SK_OK)
        CHECK_EQ_STR(err.message, "out of memory");
    sk_context_destroy(m.ctx);
    return st;
}

static void test_memory(void)
{
    long k = 0;
    for (sk_status st = SK_ERR_MEMORY; st != SK_OK && k < 100000; k++) {
        struct faulty f = {.left = k};
        const sk_allocator a = faulty_allocator(&f);
        float result = 0;
        st = everything(&a, &result);
        CHECK(st == SK_ERR_MEMORY || (st == SK_OK && result == 42));
        CHECK(faulty_clean(&f));
        if (st != SK_OK && st != SK_ERR_MEMORY)
            break;
    }
    CHECK(k > 50); /* many allocations were made to fail before it went through */
}

int main(void)
{
    test_arguments();
    test_launches();
    test_devices();
    test_commands();
    test_memory();
    return check_done();
}
