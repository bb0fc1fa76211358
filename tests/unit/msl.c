/* msl.c - the Metal printer: literals, names, precedence, the map of lines, and running out of memory. Whole kernels are
 * the text tests in tests/msl. */
#include "check.h"
#include "faulty.h"

#include <stdlib.h>

#include "msl/msl.h"

static struct mem mem;

static sk_status print_text(const char *ir, struct buf *out, struct msl_lines *lines, struct ir_module **m,
                            sk_error *err)
{
    TRY(ir_parse(&mem, ir, strlen(ir), "test.ir", m, err));
    return msl_print(*m, 0, out, lines, err);
}

/* The Metal source of a module given as text; "" after an error, which fails the check unless `want` names it. */
static char *metal(const char *ir, const char *want)
{
    static char text[65536];
    struct buf out;
    struct msl_lines lines = {0};
    struct ir_module *volatile module = NULL;
    sk_error err = {0};
    sk_status status = SK_OK;
    buf_init(&out, &mem);
    MEM_GUARD(&mem, &err, status, print_text(ir, &out, &lines, (struct ir_module **)&module, &err));
    text[0] = 0;
    if (want)
        CHECK_EQ_STR(err.name, want);
    else
        CHECK_EQ_STR(err.message, "");
    if (status == SK_OK)
        (void)snprintf(text, sizeof text, "%s", buf_text(&out));
    ir_module_free((struct ir_module *)module);
    buf_free(&out);
    VEC_FREE(&mem, &lines.place);
    return text;
}

/* What is printed between "*o = " and ";" when the last value of `body` is stored. */
static const char *expression(const char *params, const char *type, const char *body, const char *value)
{
    static char ir[4096], found[1024];
    (void)snprintf(ir, sizeof ir, "kernel k(o: device %s, %s) {\n%s\n  store %%o, %s\n}\n", type, params, body, value);
    const char *at = strstr(metal(ir, NULL), "*o = ");
    found[0] = 0;
    if (at)
        (void)snprintf(found, sizeof found, "%s", at + 5);
    for (char *s = found; *s; s++)
        if (*s == ';')
            *s = 0;
    return found;
}

static void literals(void)
{
    static const struct {
        const char *type, *value, *text;
    } rows[] = {
        {"f32", "0.0:f32", "0.0f"},
        {"f32", "-0.0:f32", "-0.0f"},
        {"f32", "16777216.0:f32", "16777216.0f"},
        {"f32", "1e9:f32", "1e9f"},
        {"f32", "1.1754944e-38:f32", "1.1754944e-38f"},
        {"f32", "1e-45:f32", "1e-45f"},
        {"f32", "0.3:f32", "0.3f"},
        {"f32", "inf:f32", "INFINITY"},
        {"f32", "-inf:f32", "-INFINITY"},
        {"f32", "nan:f32", "NAN"},
        {"f32", "0xffc00000:f32", "as_type<float>(0xffc00000u)"},
        {"f16", "0.1:f16", "0.1h"},
        {"f16", "0.333:f16", "0.333h"},
        {"f16", "6e-8:f16", "6e-8h"},
        {"f16", "65504.0:f16", "65504.0h"},
        {"bf16", "0.1:bf16", "bfloat(0.1f)"},
        {"bf16", "-2.0:bf16", "bfloat(-2.0f)"},
        {"bf16", "inf:bf16", "bfloat(INFINITY)"},
        {"i8", "-128:i8", "-128"},
        {"u16", "65535:u16", "65535"},
        {"i32", "-2147483648:i32", "(-2147483647 - 1)"},
        {"i32", "2147483647:i32", "2147483647"},
        {"u32", "2147483647:u32", "2147483647"},
        {"u32", "2147483648:u32", "2147483648u"},
        {"i64", "-2147483648:i64", "-2147483648l"},
        {"i64", "4294967296:i64", "4294967296l"},
        {"i64", "-9223372036854775808:i64", "(-9223372036854775807l - 1l)"},
        {"u64", "1:u64", "1"},
        {"u64", "9223372036854775808:u64", "9223372036854775808ul"},
        {"bool", "false", "false"},
        {"f32x3", "zero:f32x3", "float3(0.0f)"},
        {"u8x2", "zero:u8x2", "uchar2(0)"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        CHECK_EQ_STR(expression("x: u32", rows[k].type, "", rows[k].value), rows[k].text);
    /* Every half prints a literal that reads back as itself. */
    for (unsigned bits = 0; bits < 0x7c00; bits += 7) {
        char ir[32];
        double x = 0;
        (void)snprintf(ir, sizeof ir, "0x%04x:f16", bits);
        const char *const text = expression("x: u32", "f16", "", ir);
        const char *const end = read_f64(text, &x);
        CHECK(end && strcmp(end, "h") == 0);
        CHECK_EQ(f16_from_f64(x), bits);
    }
}

static void precedence(void)
{
    static const struct {
        const char *a, *b, *text; /* x a (y b z) */
    } rows[] = {
        {"add", "mul", "x + y * z"},   {"mul", "add", "x * (y + z)"}, {"sub", "sub", "x - (y - z)"},
        {"add", "add", "x + (y + z)"}, {"and", "or", "x & (y | z)"},  {"or", "and", "x | (y & z)"},
        {"xor", "add", "x ^ (y + z)"}, {"add", "and", "x + (y & z)"}, {"mul", "mul", "x * (y * z)"},
        {"and", "and", "x & (y & z)"},
    };
    char body[256];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        (void)snprintf(body, sizeof body, "  %%0 = %s u32 %%y, %%z\n  %%1 = %s u32 %%x, %%0", rows[k].b, rows[k].a);
        CHECK_EQ_STR(expression("x: u32, y: u32, z: u32", "u32", body, "%1"), rows[k].text);
    }
    /* A chain of one operator needs no parentheses on its left. */
    static const char *const ops[][2] = {{"add", "+"}, {"sub", "-"}, {"mul", "*"},
                                         {"and", "&"}, {"or", "|"},  {"xor", "^"}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        char text[64];
        (void)snprintf(body, sizeof body, "  %%0 = %s u32 %%x, %%y\n  %%1 = %s u32 %%0, %%z", ops[k][0], ops[k][0]);
        (void)snprintf(text, sizeof text, "x %s y %s z", ops[k][1], ops[k][1]);
        CHECK_EQ_STR(expression("x: u32, y: u32, z: u32", "u32", body, "%1"), text);
    }
}

static void names(void)
{
    /* Words that no parameter may be called, and names that look like them. */
    static const char *const taken[] = {"device",  "constant", "kernel",   "half",      "uint", "float4",
                                        "using",   "class",    "INFINITY", "metal",     "main", "array",
                                        "as_type", "bfloat2",  "M_PI_F",   "atomic_int"};
    static const char *const kept[] = {"out",     "index", "exp", "step", "input", "Float4",
                                       "threads", "A",     "_x",  "min",  "in"};
    char params[64];
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
        char text[64];
        (void)snprintf(params, sizeof params, "%s: u32", taken[k]);
        (void)snprintf(text, sizeof text, "%%%s", taken[k]);
        const char *const printed = expression(params, "u32", "", text);
        (void)snprintf(text, sizeof text, "%s_1", taken[k]);
        CHECK_EQ_STR(printed, text);
    }
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        char text[64];
        (void)snprintf(params, sizeof params, "%s: u32", kept[k]);
        (void)snprintf(text, sizeof text, "%%%s", kept[k]);
        CHECK_EQ_STR(expression(params, "u32", "", text), kept[k]);
    }
    CHECK_EQ_STR(expression("min: u32, min_1: u32", "u32", "  %0 = min u32 %min, %min_1", "%0"), "min(min_2, min_1)");
    CHECK_EQ_STR(expression("__x: u32, v0: u32", "u32", "  %0 = add u32 %__x, %v0", "%0"), "v__x + v0");
    CHECK_EQ_STR(expression("h\xc3\xb6he: u32", "u32", "", "%h\xc3\xb6he"), "h_he");
}

static sk_status check_lines(sk_error *err)
{
    static const char ir[] = "place 1 \"life.py\" 7 1\nplace 2 \"life.py\" 8 1\n\n"
                             "kernel step(o: device f32, i: u32 [thread_position_in_grid]) {\n"
                             "  %0 = index ptr.device %o, %i of f32 !1\n  %t.1 = load f32 %0 !1\n"
                             "  %2 = add f32 %t.1, 1.0:f32 !2\n  store %0, %2 !2\n  store %0, %t.1 !1\n}\n"
                             "\nkernel kernel(o: device f32) {\n  store %o, 1.0:f32 !2\n}\n";
    struct ir_module *m = NULL;
    struct buf out;
    struct msl_lines lines = {0};
    TRY(ir_parse(&mem, ir, sizeof ir - 1, "test.ir", &m, err));
    buf_init(&out, &mem);
    sk_status status = msl_print(m, ir_func_by_name(m, "step"), &out, &lines, err);
    if (status == SK_OK) {
        static const uint32_t want[] = {0, 0, 0, 0, 7, 8, 7, 0}; /* includes, blank, head, three statements, brace */
        unsigned n = 0;
        for (size_t k = 0; k < out.n; k++)
            n += out.at[k] == '\n';
        CHECK_EQ(n, lines.place.n);
        CHECK_EQ(lines.place.n, sizeof want / sizeof *want);
        for (unsigned k = 0; k < lines.place.n && k < sizeof want / sizeof *want; k++)
            CHECK_EQ(ir_err_place(m, lines.place.at[k]).line, want[k]);
        CHECK(!strstr(buf_text(&out), "kernel_1"));
        out.n = 0;
        msl_kernel_name(m, ir_func_by_name(m, "kernel"), &out);
        CHECK_EQ_STR(buf_text(&out), "kernel_1");
        out.n = 0;
        status = msl_print(m, 0, &out, NULL, err);
        CHECK(strstr(buf_text(&out), "kernel void kernel_1(") != NULL);
    }
    buf_free(&out);
    VEC_FREE(&mem, &lines.place);
    ir_module_free(m);
    return status;
}

/* ---- out of memory ------------------------------------------------------------------------------------------------ */

static void out_of_memory(void)
{
    static const char ir[] =
        "func f(x: i32, y: i32) -> i32 {\n  %0 = rem_floor i32 %x, %y\n  return %0\n}\n\n"
        "kernel k(o: device i32, n: i32) {\n  loop (%i.0: i32 = 0:i32) {\n    %1 = lt bool %i.0, %n\n"
        "    if %1 {\n      %2 = call i32 @f(%i.0, %n)\n      store %o, %2\n"
        "      %3 = add i32 %i.0, 1:i32\n      br 1 %3\n    }\n  }\n}\n";
    struct faulty f = {.left = -1};
    const sk_allocator failing = faulty_allocator(&f);
    mem_init(&mem, &failing);
    sk_status status = SK_ERR_MEMORY;
    for (long n = 0; status == SK_ERR_MEMORY && n < 10000; n++) {
        struct buf out;
        struct msl_lines lines = {0};
        struct ir_module *volatile module = NULL;
        sk_error err = {0};
        f.left = -1;
        buf_init(&out, &mem);
        MEM_GUARD(&mem, &err, status, ir_parse(&mem, ir, sizeof ir - 1, "test.ir", (struct ir_module **)&module, &err));
        CHECK_EQ(status, SK_OK);
        f.left = n;
        MEM_GUARD(&mem, &err, status, msl_print((struct ir_module *)module, 0, &out, &lines, &err));
        f.left = -1;
        buf_free(&out);
        VEC_FREE(&mem, &lines.place);
        ir_module_free((struct ir_module *)module);
        CHECK_EQ(mem.live, 0);
        CHECK(faulty_clean(&f));
    }
    CHECK_EQ(status, SK_OK);
    mem_init(&mem, NULL);
}

int main(void)
{
    mem_init(&mem, NULL);
    literals();
    precedence();
    names();
    sk_error err = {0};
    sk_status status = SK_OK;
    MEM_GUARD(&mem, &err, status, check_lines(&err));
    CHECK_EQ_STR(err.message, "");
    CHECK_EQ(status, SK_OK);
    (void)metal("kernel k(o: device u64) {\n  %0 = atomic_add u64 %o, 1:u64 order(relaxed) scope(device)\n}\n",
                "PRINT_WIDE_ATOMIC");
    CHECK_EQ(mem.live, 0);
    out_of_memory();
    return check_done();
}
