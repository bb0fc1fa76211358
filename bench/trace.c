/* trace.c - a kernel from its first line to its Metal text, through the C interface: matrix_add, and a kernel of 1,000
 * statements, the same as in bench/kernels.py. Then the parts: verifier, printers, parser, each pass.
 *
 *     build/bench/bench-trace [ROUNDS]
 */
#include "bench.h"

#include <stdlib.h>

#include "ir/ir.h"
#include "pass/pass.h"

static sk_context *ctx;
static sk_error err;

static void matrix_add(sk_tracer *t)
{
    sk_kernel_begin(t, "matrix_add");
    const sk_value out = sk_param_buffer(t, "out", SK_F32);
    const sk_value a = sk_param_buffer(t, "A", SK_F32), b = sk_param_buffer(t, "B", SK_F32);
    const sk_value index = sk_param_attribute(t, "index", SK_U32, SK_THREAD_POSITION_IN_GRID);
    sk_store(out, index, sk_add(sk_load(a, index), sk_load(b, index)));
    sk_kernel_end(t);
}

/* 100 times ten statements. */
static void thousand(sk_tracer *t)
{
    sk_kernel_begin(t, "thousand");
    const sk_value out = sk_param_buffer(t, "out", SK_F32), a = sk_param_buffer(t, "a", SK_F32);
    const sk_value n = sk_param_value(t, "n", SK_U32);
    const sk_value i = sk_param_attribute(t, "i", SK_U32, SK_THREAD_POSITION_IN_GRID);
    const sk_value acc = sk_local(t, SK_F32, sk_int(0));
    for (int s = 0; s < 100; s++) {
        const sk_value x = sk_load(a, sk_rem_floor(sk_add(i, sk_int(s)), n));
        const sk_value y = sk_add(sk_mul(x, sk_float(1.5)), acc);
        const sk_value v = sk_local(t, SK_F32, y);
        sk_if(t, sk_gt(y, v));
        sk_assign(v, sk_sqrt(sk_fabs(y)));
        sk_end(t);
        const sk_value j = sk_range(t, sk_int(0), sk_int(4), sk_int(1));
        sk_assign(v, sk_add(v, sk_mul(x, sk_cast(j, SK_F32))));
        sk_end(t);
        const sk_value k = sk_and(sk_xor(i, sk_int(s)), sk_int(255));
        sk_assign(acc, sk_add(acc, sk_select(sk_lt(k, sk_int(128)), v, x)));
        sk_store(out, i, sk_read(acc));
    }
    sk_kernel_end(t);
}

static sk_module *trace(void (*kernel)(sk_tracer *))
{
    sk_tracer *t = NULL;
    sk_module *m = NULL;
    if (sk_tracer_create(ctx, &t, &err) != SK_OK)
        return NULL;
    kernel(t);
    (void)sk_tracer_finish(t, &m, &err);
    sk_tracer_release(t);
    return m;
}

/* Trace, verify (finishing does) and print as Metal. */
static bool whole(const char *row, void (*kernel)(sk_tracer *), unsigned rounds)
{
    for (unsigned k = 0; k < rounds; k++) {
        const char *text = NULL;
        const uint64_t begin = os_nanoseconds();
        sk_module *const m = trace(kernel);
        if (!m || sk_module_metal(m, NULL, &text, NULL, NULL, &err) != SK_OK)
            return false;
        sk_module_release(m);
        bench_sample(row, bench_since(begin));
    }
    return true;
}

static sk_status parts(struct mem *mem, const char *text, size_t n, unsigned rounds)
{
    struct ir_module *m = NULL, *copy;
    struct buf out;
    buf_init(&out, mem);
    TRY(ir_parse(mem, text, n, "thousand.ir", &m, &err));
    bench_sample("bytes", (double)ir_module_bytes(m) / (m->nodes.n - 1));
    bench_sample("nodes", m->nodes.n - 1);
    for (unsigned k = 0; k < rounds; k++) {
        uint64_t begin = os_nanoseconds();
        TRY(ir_verify(m, &err));
        bench_sample("verify", bench_since(begin));

        out.n = 0;
        begin = os_nanoseconds();
        ir_print(m, &out, IR_PRINT_PLACES);
        bench_sample("print", bench_since(begin));

        begin = os_nanoseconds();
        TRY(ir_parse(mem, text, n, "thousand.ir", &copy, &err));
        bench_sample("parse", bench_since(begin));
        ir_module_free(copy);

        copy = ir_module_clone(mem, m);
        begin = os_nanoseconds();
        TRY(pass_run(copy, NULL, &err));
        bench_sample("passes", bench_since(begin));
        ir_module_free(copy);

        copy = ir_module_clone(mem, m);
        for (unsigned p = 0; p < pass_count; p++) {
            if (!pass_info[p].pipeline)
                continue;
            char row[16] = "pass ";
            const char letters[2] = {pass_info[p].letter, 0};
            row[5] = letters[0];
            begin = os_nanoseconds();
            TRY(pass_run(copy, letters, &err));
            bench_sample(row, bench_since(begin));
        }
        ir_module_free(copy);
    }
    ir_module_free(m);
    buf_free(&out);
    return SK_OK;
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 50;
    struct mem mem;
    sk_status status = SK_OK;
    const char *text = NULL;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        return 1;
    bool good = whole("matrix_add", matrix_add, rounds) && whole("thousand", thousand, rounds);
    sk_module *const m = trace(thousand);
    if (m && sk_module_print(m, true, &text, &err) == SK_OK) {
        mem_init(&mem, NULL);
        MEM_GUARD(&mem, &err, status, parts(&mem, text, strlen(text), rounds));
        good = good && status == SK_OK;
    } else {
        good = false;
    }
    sk_context_destroy(ctx);
    if (!good)
        fprintf(stderr, "bench-trace: %s:%u: %s\n", err.file, err.line, err.message);
    return !good;
}
