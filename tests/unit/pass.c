/* Passes from C: inlining, the pipeline's errors, memory that runs out, time that does not run away. */
#include "check.h"
#include "faulty.h"
#include "ir/ir.h"
#include "pass/pass.h"

#include <stdlib.h>

static struct mem mem;
static sk_error err;

static struct ir_module *parse(const char *text)
{
    struct ir_module *m = NULL;
    sk_error_clear(&err);
    CHECK_EQ(ir_parse(&mem, text, strlen(text), "pass.ir", &m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    return m;
}

static const char *print(const struct ir_module *m)
{
    static char text[1 << 14];
    struct buf b;
    buf_init(&b, &mem);
    ir_print(m, &b, 0);
    (void)snprintf(text, sizeof text, "%s", buf_text(&b));
    buf_free(&b);
    return text;
}

static void expect_inlined(const char *text, const char *want)
{
    struct ir_module *m = parse(text);
    CHECK_EQ(pass_inline(m, ir_func_by_name(m, "k"), 1000, &err), SK_OK);
    CHECK_EQ(ir_verify(m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    CHECK_EQ_STR(print(m), want);
    ir_module_free(m);
}

static void test_inline(void)
{
    /* A call becomes a block that returns leave; functions go into one another first. */
    expect_inlined("func f(x: u32) -> u32 {\n"
                   "  %0 = eq bool %x, 0:u32\n"
                   "  if %0 {\n"
                   "    return 1:u32\n"
                   "  }\n"
                   "  %1 = mul u32 %x, 2:u32\n"
                   "  return %1\n"
                   "}\n"
                   "func g(p: device u32, x: u32) {\n"
                   "  %r.0 = call u32 @f(%x)\n"
                   "  store %p, %r.0\n"
                   "}\n"
                   "kernel k(out: device u32, i: u32 [thread_position_in_grid]) {\n"
                   "  %0 = index ptr.device %out, %i of u32\n"
                   "  call @g(%0, %i)\n"
                   "}\n",
                   "kernel k(out: device u32, i: u32 [thread_position_in_grid]) {\n"
                   "  %0 = index ptr.device %out, %i of u32\n"
                   "  block {\n"
                   "    %r.1: u32 = block {\n"
                   "      %2 = eq bool %i, 0:u32\n"
                   "      if %2 {\n"
                   "        br 1 1:u32\n"
                   "      }\n"
                   "      %3 = mul u32 %i, 2:u32\n"
                   "      br 0 %3\n"
                   "    }\n"
                   "    store %0, %r.1\n"
                   "  }\n"
                   "}\n");
    /* A function whose end is not reached, and what it says of all its nodes. */
    expect_inlined("func f(x: f32) -> f32 fast no_contract {\n"
                   "  %0 = gt bool %x, 0.0:f32\n"
                   "  if %0 {\n"
                   "    %1 = exp f32 %x\n"
                   "    %2 = mul f32 %1, %x\n"
                   "    return %2\n"
                   "  } else {\n"
                   "    return 0.0:f32\n"
                   "  }\n"
                   "}\n"
                   "kernel k(out: device f32, x: f32) {\n"
                   "  %0 = call f32 @f(%x)\n"
                   "  %1 = exp f32 %0\n"
                   "  store %out, %1\n"
                   "}\n",
                   "kernel k(out: device f32, x: f32) {\n"
                   "  %0: f32 = block {\n"
                   "    %1 = gt bool %x, 0.0:f32\n"
                   "    if %1 {\n"
                   "      %2 = exp f32 %x fast\n"
                   "      %3 = mul f32 %2, %x no_contract\n"
                   "      br 1 %3\n"
                   "    } else {\n"
                   "      br 1 0.0:f32\n"
                   "    }\n"
                   "    unreachable\n"
                   "  }\n"
                   "  %4 = exp f32 %0\n"
                   "  store %out, %4\n"
                   "}\n");
}

static void test_limits(void)
{
    struct buf text;
    buf_init(&text, &mem);
    buf_str(&text, "func f0(p: device u32) {\n  store %p, 1:u32\n}\n");
    for (int k = 1; k < 30; k++) /* doubles each time */
        buf_fmt(&text, "func f%d(p: device u32) {\n  call @f%d(%%p)\n  call @f%d(%%p)\n}\n", k, k - 1, k - 1);
    buf_str(&text, "kernel k(out: device u32) {\n  call @f29(%out)\n}\n");
    struct ir_module *m = parse(buf_text(&text));
    CHECK_EQ(pass_inline(m, ir_func_by_name(m, "k"), 10000, &err), SK_ERR_UNSUPPORTED);
    CHECK_EQ_STR(err.name, "TOO_LARGE_TO_INLINE");
    CHECK(err.line > 0);
    ir_module_free(m);
    buf_free(&text);

    m = parse("kernel k(out: device u32) {\n  store %out, 1:u32\n}\n");
    CHECK_EQ(pass_run(m, "VXS", &err), SK_ERR_VALUE);
    CHECK_EQ_STR(err.name, "UNKNOWN_PASS");
    ir_module_free(m);
    for (unsigned k = 1; k < pass_count; k++)
        for (unsigned j = 0; j < k; j++)
            CHECK(pass_info[j].letter != pass_info[k].letter);
}

/* ---- memory ---- */

static const char everything[] =
    "func f(x: u32) -> u32 {\n"
    "  %0 = mul u32 %x, 2:u32\n"
    "  return %0\n"
    "}\n"
    "kernel k(out: device u32, a: device f32, n: u32, i: u32 [thread_position_in_grid]) {\n"
    "  %v.0 = var u32 0:u32\n"
    "  %w.1 = var f32 0.0:f32\n"
    "  %x.2 = var u32 0:u32\n"
    "  %y.3 = var u32 0:u32\n"
    "  loop (%4: u32 = 0:u32) {\n"
    "    %5 = lt bool %4, %n\n"
    "    if %5 {\n"
    "      %6 = call u32 @f(%n)\n"
    "      %7 = div_floor u32 %6, 8:u32\n"
    "      set %v.0, %7\n"
    "      %8 = load f32 %a\n"
    "      %9 = mul f32 %8, %8\n"
    "      %10 = add f32 %9, 1.0:f32\n"
    "      set %w.1, %10\n"
    "      switch %4 {\n"
    "        case 1 {\n"
    "          set %x.2, %6\n"
    "          set %y.3, %7\n"
    "        }\n"
    "      }\n"
    "      %11 = add u32 %4, 1:u32\n"
    "      br 1 %11\n"
    "    }\n"
    "  }\n"
    "  %12 = get u32 %v.0\n"
    "  %13 = get f32 %w.1\n"
    "  %14 = get u32 %y.3\n"
    "  %15 = add u32 %12, %14\n"
    "  store %out, %15\n"
    "  store %a, %13\n"
    "}\n";

static sk_status inline_and_run(struct ir_module *m)
{
    TRY(pass_inline(m, ir_func_by_name(m, "k"), 1000, &err));
    return pass_run(m, NULL, &err);
}

static void test_memory(void)
{
    struct mem small;
    struct faulty f = {.for_good = true};
    const sk_allocator a = faulty_allocator(&f);
    mem_init(&small, &a);
    sk_status status = SK_ERR_MEMORY;
    long k = 0;
    for (; status != SK_OK && k < 10000; k++) {
        struct ir_module *volatile m = NULL;
        struct ir_module *parsed = NULL;
        f.left = -1;
        MEM_GUARD(&small, &err, status, ir_parse(&small, everything, sizeof everything - 1, "m.ir", &parsed, &err));
        CHECK_EQ(status, SK_OK);
        m = parsed;
        f.left = k;
        sk_error_clear(&err);
        MEM_GUARD(&small, &err, status, inline_and_run(m));
        CHECK(status == SK_OK || status == SK_ERR_MEMORY);
        ir_module_free(m);
        CHECK_EQ(small.live, 0);
        CHECK(faulty_clean(&f));
    }
    CHECK(k > 20);
    CHECK_EQ(status, SK_OK);
}

/* ---- time ---- */

/* Programs on which a pass that looks at everything again and again would take minutes. */
static void timed(const char *what, struct buf *text)
{
    struct ir_module *m = parse(buf_text(text));
    const uint64_t begin = os_nanoseconds();
    CHECK_EQ(pass_run(m, NULL, &err), SK_OK);
    const double seconds = (double)(os_nanoseconds() - begin) / 1e9;
    if (seconds > 5)
        CHECK_FAIL_("%s: %.1f s", what, seconds);
    check_count++;
    CHECK_EQ(ir_verify(m, &err), SK_OK);
    ir_module_free(m);
    buf_free(text);
}

static void test_time(void)
{
    struct buf b;
    buf_init(&b, &mem);
    buf_str(&b, "kernel k(out: device u32, c: bool, x: u32) {\n");
    for (int k = 0; k < 1000; k++)
        buf_fmt(&b, "  %%%d = var u32 %%x\n", k);
    for (int k = 0; k < 1000; k++)
        buf_fmt(&b, "  %%%d = get u32 %%%d\n  store %%out, %%%d\n  if %%c {\n    set %%%d, %d:u32\n  }\n", 1000 + k, k,
                1000 + k, k, k);
    buf_str(&b, "}\n");
    timed("locals", &b);

    buf_str(&b, "kernel k(out: device u32, c: bool, x: u32) {\n");
    for (int k = 0; k < 1000; k++)
        buf_fmt(&b, "  %%%d = var u32 %%x\n", k);
    buf_str(&b, "  loop (%1000: u32 = 0:u32) {\n    if %c {\n");
    for (int k = 0; k < 1000; k++)
        buf_fmt(&b, "      %%%d = get u32 %%%d\n      %%%d = add u32 %%%d, %%%d\n      set %%%d, %%%d\n", 1001 + 2 * k,
                k, 1002 + 2 * k, 1001 + 2 * k, 1000 + k, k, 1002 + 2 * k);
    buf_str(&b, "      br 1 %3000\n    }\n  }\n");
    for (int k = 0; k < 1000; k++)
        buf_fmt(&b, "  %%%d = get u32 %%%d\n  store %%out, %%%d\n", 4000 + k, k, 4000 + k);
    buf_str(&b, "}\n");
    timed("a loop with a thousand locals", &b);

    buf_str(&b, "kernel k(out: device u32, c: bool, x: u32) {\n  %v.0 = var u32 %x\n");
    for (int k = 0; k < 150; k++)
        buf_str(&b, k % 2 ? "if %c {\n" : "loop {\n");
    for (int k = 1; k < 5000; k++)
        buf_fmt(&b, "  %%%d = add u32 %%x, %d:u32\n  store %%out, %%%d\n", k, k, k);
    buf_str(&b, "  set %v.0, %1\n");
    for (int k = 0; k < 150; k++)
        buf_str(&b, "}\n");
    buf_str(&b, "  %9000 = get u32 %v.0\n  store %out, %9000\n}\n");
    timed("deep nesting", &b);

    buf_str(&b, "kernel k(out: device u32, x: u32) {\n  %0 = add u32 %x, 0:u32\n");
    for (int k = 1; k < 20000; k++)
        buf_fmt(&b, "  %%%d = add u32 %%%d, 0:u32\n", k, k - 1);
    buf_str(&b, "  store %out, %19999\n}\n");
    timed("a long chain", &b);
}

static sk_status all(void)
{
    test_inline();
    test_limits();
    test_memory();
    test_time();
    CHECK_EQ(mem.live, 0);
    return SK_OK;
}

int main(void)
{
    sk_status status = SK_OK;
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, &err, status, all());
    CHECK_EQ(status, SK_OK);
    return check_done();
}
