/* interp.c - the interpreter's speed: matrix_add of 1024x1024 (goal 60 ms), a tiled 256x256x256 matmul (goal 1 s), the
 * launch of one threadgroup.
 *
 *     build/bench/bench-interp [ROUNDS]
 */
#include "bench.h"

#include <stdlib.h>

#include "interp/interp.h"
#include "pass/pass.h"

static unsigned rounds = 15;

static const char matrix_add[] =
    "kernel k(out: device f32, A: device f32, B: device f32, index: u32 [thread_position_in_grid]) {\n"
    "  %0 = index ptr.device %A, %index of f32\n"
    "  %1 = load f32 %0\n"
    "  %2 = index ptr.device %B, %index of f32\n"
    "  %3 = load f32 %2\n"
    "  %4 = add f32 %1, %3\n"
    "  %5 = index ptr.device %out, %index of f32\n"
    "  store %5, %4\n"
    "}\n";

static const char matmul[] =
    "kernel k(C: device f32, A: device f32, B: device f32, n: u32, g: u32x2 [thread_position_in_grid],\n"
    "         t: u32x2 [thread_position_in_threadgroup]) {\n"
    "  %a.0 = alloc ptr.threadgroup of [f32 x 256]\n"
    "  %b.1 = alloc ptr.threadgroup of [f32 x 256]\n"
    "  %tx.2 = extract u32 %t [0]\n"
    "  %ty.3 = extract u32 %t [1]\n"
    "  %gx.4 = extract u32 %g [0]\n"
    "  %gy.5 = extract u32 %g [1]\n"
    "  %row.6 = mul u32 %ty.3, 16:u32\n"
    "  %mine.7 = add u32 %row.6, %tx.2\n"
    "  %grow.8 = mul u32 %gy.5, %n\n"
    "  %pa.9 = index ptr.threadgroup %a.0, %mine.7 of f32\n"
    "  %pb.10 = index ptr.threadgroup %b.1, %mine.7 of f32\n"
    "  %sum.11: f32 = loop (%k.12: u32 = 0:u32, %acc.13: f32 = 0.0:f32) {\n"
    "    %more.14 = lt bool %k.12, %n\n"
    "    if %more.14 {\n"
    "      %ka.15 = add u32 %k.12, %tx.2\n"
    "      %ia.16 = add u32 %grow.8, %ka.15\n"
    "      %qa.17 = index ptr.device %A, %ia.16 of f32\n"
    "      %va.18 = load f32 %qa.17\n"
    "      store %pa.9, %va.18\n"
    "      %kb.19 = add u32 %k.12, %ty.3\n"
    "      %rb.20 = mul u32 %kb.19, %n\n"
    "      %ib.21 = add u32 %rb.20, %gx.4\n"
    "      %qb.22 = index ptr.device %B, %ib.21 of f32\n"
    "      %vb.23 = load f32 %qb.22\n"
    "      store %pb.10, %vb.23\n"
    "      barrier memory(threadgroup)\n"
    "      %in.24: f32 = loop (%j.25: u32 = 0:u32, %s.26: f32 = %acc.13) {\n"
    "        %go.27 = lt bool %j.25, 16:u32\n"
    "        if %go.27 {\n"
    "          %x.28 = add u32 %row.6, %j.25\n"
    "          %px.29 = index ptr.threadgroup %a.0, %x.28 of f32\n"
    "          %lx.30 = load f32 %px.29\n"
    "          %yr.31 = mul u32 %j.25, 16:u32\n"
    "          %y.32 = add u32 %yr.31, %tx.2\n"
    "          %py.33 = index ptr.threadgroup %b.1, %y.32 of f32\n"
    "          %ly.34 = load f32 %py.33\n"
    "          %pr.35 = mul f32 %lx.30, %ly.34\n"
    "          %s2.36 = add f32 %s.26, %pr.35\n"
    "          %j2.37 = add u32 %j.25, 1:u32\n"
    "          br 1 %j2.37, %s2.36\n"
    "        }\n"
    "        yield %s.26\n"
    "      }\n"
    "      barrier memory(threadgroup)\n"
    "      %k2.38 = add u32 %k.12, 16:u32\n"
    "      br 1 %k2.38, %in.24\n"
    "    }\n"
    "    yield %acc.13\n"
    "  }\n"
    "  %ic.39 = add u32 %grow.8, %gx.4\n"
    "  %pc.40 = index ptr.device %C, %ic.39 of f32\n"
    "  store %pc.40, %sum.11\n"
    "}\n";

static sk_status run(struct mem *mem, const char *text, const struct interp_launch *l, const char *what, sk_error *err)
{
    struct ir_module *m;
    struct interp_program *p;
    TRY(ir_parse(mem, text, strlen(text), what, &m, err));
    TRY(pass_run(m, NULL, err));
    TRY(interp_compile(mem, m, 1, &p, err));
    for (unsigned k = 0; k < rounds; k++) {
        const uint64_t begin = os_nanoseconds();
        TRY(interp_run(p, l, mem, err));
        bench_sample(what, bench_since(begin));
    }
    interp_free(p);
    ir_module_free(m);
    return SK_OK;
}

static float *numbers(size_t n)
{
    float *const x = malloc(n * sizeof *x);
    for (size_t k = 0; x && k < n; k++)
        x[k] = (float)(k * 2654435761u % 1000u) / 500.0f - 1.0f;
    return x;
}

static sk_status all(struct mem *mem, sk_error *err)
{
    const size_t n = 1024 * 1024;
    float *const a = numbers(n), *const b = numbers(n), *const c = numbers(n);
    uint32_t size = 256;
    if (!a || !b || !c)
        return SK_ERR_MEMORY;
    const struct interp_arg args[] = {{c, n * 4}, {a, n * 4}, {b, n * 4}, {&size, 4}};
    TRY(run(mem, matrix_add, &(struct interp_launch){{1024 * 1024, 1, 1}, {128, 1, 1}, args, NULL, 0},
            "interp matrix_add", err));
    for (size_t k = 0; k < n; k++)
        if (c[k] != a[k] + b[k])
            return SK_ERR_FAULT;
    TRY(run(mem, matmul, &(struct interp_launch){{256, 256, 1}, {16, 16, 1}, args, NULL, 0}, "interp matmul", err));
    for (size_t y = 0; y < 256; y++) {
        for (size_t x = 0; x < 256; x++) {
            double sum = 0;
            for (size_t k = 0; k < 256; k++)
                sum += (double)a[y * 256 + k] * (double)b[k * 256 + x];
            if (__builtin_fabs(sum - (double)c[y * 256 + x]) > 1e-3)
                return SK_ERR_FAULT;
        }
    }
    TRY(run(mem, matrix_add, &(struct interp_launch){{32, 1, 1}, {32, 1, 1}, args, NULL, 0}, "interp launch", err));
    TRY(run(mem, matmul, &(struct interp_launch){{16, 16, 1}, {16, 16, 1}, args, NULL, 0}, "interp group", err));
    free(a);
    free(b);
    free(c);
    return SK_OK;
}

int main(int argc, char **argv)
{
    struct mem mem;
    sk_error err = {0};
    sk_status status;
    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, &err, status, all(&mem, &err));
    if (status != SK_OK)
        printf("%s: %s (%s:%u)\n", err.name, err.message, err.file, err.line);
    return status != SK_OK;
}
