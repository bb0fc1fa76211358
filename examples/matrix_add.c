/* matrix_add.c - adds two matrices with a kernel traced from C, and checks every element.
 *
 * cc matrix_add.c $(pkg-config --cflags --libs spork) -o matrix_add && ./matrix_add
 */
#include <stdio.h>
#include <stdlib.h>

#include <spork/spork.h>

enum { ROWS = 1024, COLUMNS = 1024, N = ROWS * COLUMNS };

static sk_module *trace_matrix_add(sk_context *ctx, sk_error *err)
{
    sk_tracer *t = NULL;
    sk_module *module = NULL;
    if (sk_tracer_create(ctx, &t, err) != SK_OK)
        return NULL;

    sk_kernel_begin(t, "matrix_add");
    sk_value out = sk_param_buffer(t, "out", SK_F32);
    sk_value a = sk_param_buffer(t, "A", SK_F32);
    sk_value b = sk_param_buffer(t, "B", SK_F32);
    sk_value index = sk_param_attribute(t, "index", SK_U32, SK_THREAD_POSITION_IN_GRID);
    sk_store(out, index, sk_add(sk_load(a, index), sk_load(b, index)));
    sk_kernel_end(t);

    (void)sk_tracer_finish(t, &module, err); /* the first mistake of all the calls above is reported here */
    sk_tracer_release(t);
    return module;
}

static sk_status run(sk_context *ctx, const sk_module *module, float *c, float *a, float *b, sk_error *err)
{
    sk_device *device = NULL;
    sk_library *library = NULL;
    sk_function *function = NULL;
    sk_pipeline *pipeline = NULL;
    const sk_arg args[] = {{c, N * sizeof *c}, {a, N * sizeof *a}, {b, N * sizeof *b}};
    const sk_launch launch = {.grid = {N / 128, 1, 1}, .threadgroup = {128, 1, 1}, .n_args = 3, .args = args};

    sk_status st = sk_device_get(ctx, NULL, &device, err);
    if (st == SK_OK)
        st = sk_library_from_module(device, module, &library, err);
    if (st == SK_OK)
        st = sk_library_function(library, "matrix_add", &function, err);
    if (st == SK_OK)
        st = sk_pipeline_create(function, &pipeline, err);
    if (st == SK_OK)
        st = sk_pipeline_launch(pipeline, &launch, err);
    if (st == SK_OK)
        printf("device: %s\n", sk_device_name(device));
    return st; /* what was made goes with the context */
}

int main(void)
{
    sk_error err = {0};
    sk_context *ctx = NULL;
    const char *metal = NULL;
    float *memory = malloc(3 * N * sizeof *memory);
    int wrong = -1;
    if (!memory || sk_context_create(NULL, &ctx, &err) != SK_OK)
        goto out;
    float *const a = memory, *const b = memory + N, *const c = memory + 2 * N;
    for (int i = 0; i < N; i++) {
        a[i] = (float)i * 0.5f;
        b[i] = 1.0f / (float)(i + 1);
        c[i] = 0;
    }
    sk_module *module = trace_matrix_add(ctx, &err);
    if (!module || sk_module_metal(module, NULL, &metal, NULL, NULL, &err) != SK_OK)
        goto out;
    printf("%s\n", metal);
    if (run(ctx, module, c, a, b, &err) != SK_OK)
        goto out;
    wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += c[i] != a[i] + b[i];
    printf("%dx%d: %d elements differ from a[i] + b[i]\n", ROWS, COLUMNS, wrong);
out:
    if (wrong < 0)
        fprintf(stderr, "%s:%u: error: %s\n", err.file, err.line, err.message);
    sk_context_destroy(ctx);
    free(memory);
    return wrong != 0;
}
