/* add_arrays.c - 1,000,000 sums, in the shape of a Metal host program.
 *
 * cc add_arrays.c $(pkg-config --cflags --libs spork) -o add_arrays && ./add_arrays
 */
#include <stdio.h>
#include <stdlib.h>

#include <spork/spork.h>

enum { COUNT = 1000000 };

/* An example stops at the first error, as a Metal program would return nil. */
static void check(sk_status status, const sk_error *err)
{
    if (status == SK_OK)
        return;
    fprintf(stderr, "error: %s\n", err->message);
    exit(1);
}

static sk_module *kernel(sk_context *ctx, sk_error *err)
{
    sk_tracer *t = NULL;
    sk_module *module = NULL;
    check(sk_tracer_create(ctx, &t, err), err);
    sk_kernel_begin(t, "add_arrays");
    sk_value in_a = sk_param_buffer(t, "inA", SK_F32);
    sk_value in_b = sk_param_buffer(t, "inB", SK_F32);
    sk_value result = sk_param_buffer(t, "result", SK_F32);
    sk_value index = sk_param_attribute(t, "index", SK_U32, SK_THREAD_POSITION_IN_GRID);
    sk_store(result, index, sk_add(sk_load(in_a, index), sk_load(in_b, index)));
    sk_kernel_end(t);
    check(sk_tracer_finish(t, &module, err), err);
    sk_tracer_release(t);
    return module;
}

int main(void)
{
    sk_error err = {0};
    sk_context *ctx = NULL;
    check(sk_context_create(NULL, &ctx, &err), &err);

    sk_device *device = NULL;
    sk_queue *queue = NULL;
    check(sk_device_get(ctx, NULL, &device, &err), &err);
    check(sk_queue_create(device, &queue, &err), &err);

    sk_library *library = NULL;
    sk_function *function = NULL;
    sk_pipeline *pipeline = NULL;
    check(sk_library_from_module(device, kernel(ctx, &err), &library, &err), &err);
    check(sk_library_function(library, "add_arrays", &function, &err), &err);
    check(sk_pipeline_create(function, &pipeline, &err), &err);

    sk_buffer *in_a = NULL, *in_b = NULL, *result = NULL;
    const size_t size = COUNT * sizeof(float);
    check(sk_buffer_create(device, size, &in_a, &err), &err);
    check(sk_buffer_create(device, size, &in_b, &err), &err);
    check(sk_buffer_create(device, size, &result, &err), &err);
    for (int i = 0; i < COUNT; i++) {
        ((float *)sk_buffer_contents(in_a))[i] = 1.0f;
        ((float *)sk_buffer_contents(in_b))[i] = 2.0f;
    }

    sk_commands *commands = NULL;
    check(sk_commands_create(queue, &commands, &err), &err);
    sk_commands_set_pipeline(commands, pipeline);
    sk_commands_set_buffer(commands, 0, in_a, 0);
    sk_commands_set_buffer(commands, 1, in_b, 0);
    sk_commands_set_buffer(commands, 2, result, 0);
    const uint32_t limit = sk_pipeline_max_threads(pipeline);
    const sk_size threads = {COUNT, 1, 1}, threadgroup = {limit < 256 ? limit : 256, 1, 1};
    sk_commands_dispatch_threads(commands, threads, threadgroup);
    check(sk_commands_commit(commands, &err), &err);
    check(sk_commands_wait(commands, &err), &err);

    const float *sums = sk_buffer_contents(result);
    printf("%.1f %.1f\n", (double)sums[0], (double)sums[COUNT - 1]);
    sk_context_destroy(ctx);
    return 0;
}
