/* launch.c - 10,000 launches of one threadgroup through the C interface: their time, and what memory they leave behind.
 *
 *     build/bench/bench-launch
 */
#include "bench.h"

#include <unistd.h>

#define LAUNCHES 10000

static const char source[] = "kernel add_one(x: device f32, i: u32 [thread_position_in_grid]) {\n"
                             "  %0 = index ptr.device %x, %i of f32\n"
                             "  %1 = load f32 %0\n"
                             "  %2 = add f32 %1, 1.0:f32\n"
                             "  store %0, %2\n"
                             "}\n";

/* Resident pages; 0 where the system does not say. */
static long resident(void)
{
    long size = 0, pages = 0;
    FILE *const f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        (void)fclose(f);
    return pages;
}

static sk_status run(sk_context *ctx, sk_error *err)
{
    sk_device *device = NULL;
    sk_library *library = NULL;
    sk_function *function = NULL;
    sk_pipeline *pipeline = NULL;
    float x[32] = {0};
    const sk_arg arg = {x, sizeof x};
    const sk_launch launch = {.grid = {1, 1, 1}, .threadgroup = {32, 1, 1}, .n_args = 1, .args = &arg};
    TRY(sk_device_get(ctx, "interp", &device, err));
    TRY(sk_library_from_ir(device, source, sizeof source - 1, "launch.ir", &library, err));
    TRY(sk_library_function(library, "add_one", &function, err));
    TRY(sk_pipeline_create(function, &pipeline, err));
    for (int k = 0; k < 1000; k++)
        TRY(sk_pipeline_launch(pipeline, &launch, err));
    const size_t bytes = sk_context_bytes(ctx);
    const long pages = resident();
    for (int round = 0; round < 20; round++) {
        const uint64_t begin = os_nanoseconds();
        for (int k = 0; k < LAUNCHES / 20; k++)
            TRY(sk_pipeline_launch(pipeline, &launch, err));
        bench_sample("launch", bench_since(begin) / (LAUNCHES / 20));
    }
    bench_sample("leak context", (double)sk_context_bytes(ctx) - (double)bytes);
    bench_sample("leak resident", (double)(resident() - pages) * (double)sysconf(_SC_PAGESIZE));
    return x[0] == 1000 + LAUNCHES && x[31] == x[0] ? SK_OK : SK_ERR_FAULT;
}

int main(void)
{
    sk_context *ctx = NULL;
    sk_error err = {0};
    sk_status status = sk_context_create(NULL, &ctx, &err);
    if (status == SK_OK)
        status = run(ctx, &err);
    sk_context_destroy(ctx);
    if (status != SK_OK)
        fprintf(stderr, "bench-launch: %s %s\n", sk_status_name(status), err.message);
    return status != SK_OK;
}
