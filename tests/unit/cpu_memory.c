/* cpu_memory.c - memory on the CPU against the interpreter: the same bytes and the same fault, for kernels written here and
 * for random ones.
 *
 * `cpu_memory N` runs N random kernels, `cpu_memory N S` from seed S on; one that fails prints its seed and text.
 */
#include "check.h"
#include "cpu/launch.h"
#include "cpu/object.h"
#include "interp/interp.h"
#include "llvm/llvm.h"
#include "pass/pass.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct mem mem;
static struct llvm *llvm;
static sk_error error;

#define ARGS_MAX 8
struct arg {
    void *data;
    size_t size;
    bool value, skewed; /* skewed: where it lies is no multiple of anything */
};
struct call {
    uint32_t threads[3], group[3];
    struct arg args[ARGS_MAX];
    uint32_t width;
    bool edge, unchecked, dynamic; /* dynamic: the size of the threadgroup is a run-time value */
};

/* ---- running ---------------------------------------------------------------------------------------------------- */

struct outcome {
    sk_status status;
    char message[512];
    uint32_t line;
    char *data[ARGS_MAX], *block[ARGS_MAX];
};

#define PAGE ((size_t)4096)
static size_t block_bytes(const struct call *c, unsigned k)
{
    return (c->args[k].size + 1 + PAGE) / PAGE * PAGE;
}

/* Each buffer ends, or begins but for a byte, where no memory is. */
static void copy_args(const struct call *c, struct outcome *o)
{
    *o = (struct outcome){0};
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (!c->args[k].data)
            continue;
        const size_t n = block_bytes(c, k);
        char *const pages = mmap(NULL, n + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + PAGE, n, PROT_READ | PROT_WRITE) != 0)
            abort();
        o->block[k] = pages + PAGE;
        o->data[k] = o->block[k] + (c->args[k].skewed ? 1 : n - c->args[k].size);
        memset(o->block[k], 0xa5, n);
        memcpy(o->data[k], c->args[k].data, c->args[k].size);
    }
}

static void note(struct outcome *o, sk_status status)
{
    o->status = status;
    if (status != SK_OK) {
        (void)snprintf(o->message, sizeof o->message, "%.500s", error.message);
        o->line = error.line;
    }
    sk_error_clear(&error);
}

static void interpret(const struct ir_module *m, uint32_t func, const struct call *c, struct outcome *o)
{
    struct interp_program *p;
    struct interp_arg args[ARGS_MAX];
    copy_args(c, o);
    for (unsigned k = 0; k < ARGS_MAX; k++)
        args[k] = (struct interp_arg){o->data[k], c->args[k].size};
    const struct interp_launch l = {.threads = {c->threads[0], c->threads[1], c->threads[2]},
                                    .threadgroup = {c->group[0], c->group[1], c->group[2]},
                                    .args = args};
    sk_status status = interp_compile(&mem, m, func, &p, &error);
    if (status == SK_OK) {
        status = interp_run(p, &l, &mem, &error);
        interp_free(p);
    }
    note(o, status);
}

static bool compile(const struct ir_module *m, uint32_t func, const struct call *c, bool edge, struct cpu_variant *v)
{
    const char *const names[] = {"spork_kernel", "spork_bundle"};
    void *found[2] = {0};
    struct buf text;
    char *bytes;
    size_t size;
    *v = (struct cpu_variant){.opt = {.edge = edge, .unchecked = c->unchecked, .width = c->width}, .stack = 1 << 18};
    for (unsigned k = 0; k < 3; k++)
        v->opt.dims[k] = c->dynamic && c->group[k] > 1 ? 0 : c->group[k];
    buf_init(&text, &mem);
    sk_status status = cpu_lower(&mem, m, func, &v->opt, &text, &v->lowered, &error);
    if (status == SK_OK && v->lowered.interpret) {
        CHECK_FAIL_("interpret: %s", v->lowered.interpret);
        return false;
    }
    if (status == SK_OK && getenv("SHOW"))
        printf("%s\n", buf_text(&text));
    if (status == SK_OK)
        status = llvm_compile(llvm, buf_text(&text), text.n, LLVM_FULL, LLVM_OBJECT, &mem, &bytes, &size, &error);
    if (status == SK_OK) {
        status = object_load(bytes, size, names, 2, found, &v->code, &error);
        mem_free(&mem, bytes, size);
    }
    if (status != SK_OK)
        CHECK_FAIL_("%s: %s", error.name, error.message);
    memcpy(&v->kernel, &found[0], sizeof v->kernel);
    memcpy(&v->bundle, &found[1], sizeof v->bundle);
    if (v->kernel)
        v->bundle = NULL;
    buf_free(&text);
    sk_error_clear(&error);
    return status == SK_OK;
}

static bool run_cpu(const struct ir_module *m, uint32_t func, const struct call *c, struct outcome *o)
{
    struct cpu_variant whole, edge = {0};
    sk_arg args[ARGS_MAX];
    uint8_t is_value[ARGS_MAX];
    bool cut = false;
    for (unsigned k = 0; k < 3; k++)
        cut = cut || c->threads[k] % c->group[k];
    copy_args(c, o);
    if (!compile(m, func, c, false, &whole))
        return false;
    struct call at_run_time = *c;
    at_run_time.dynamic = true;
    if (cut && !compile(m, func, c->edge ? c : &at_run_time, c->edge, &edge))
        return false;
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        args[k] = (sk_arg){.data = o->data[k], .size = c->args[k].size};
        is_value[k] = c->args[k].value;
    }
    const struct cpu_grid g = {.kernel = strtab_str(&m->strings, m->funcs.at[func].name),
                               .whole = &whole,
                               .edge = cut ? &edge : NULL,
                               .threads = {c->threads[0], c->threads[1], c->threads[2]},
                               .group = {c->group[0], c->group[1], c->group[2]},
                               .args = args,
                               .is_value = is_value,
                               .n_args = ARGS_MAX,
                               .workers = 1};
    note(o, cpu_run(&g, &mem, &error));
    object_unload(&whole.code);
    cpu_lowered_free(&mem, &whole.lowered);
    if (cut) {
        object_unload(&edge.code);
        cpu_lowered_free(&mem, &edge.lowered);
    }
    return true;
}

static void release(const struct call *c, struct outcome *o)
{
    for (unsigned k = 0; k < ARGS_MAX; k++)
        if (o->block[k])
            (void)munmap(o->block[k] - PAGE, block_bytes(c, k) + 2 * PAGE);
}

/* False: they differ. */
static bool same(const struct call *c, const struct outcome *a, const struct outcome *b, bool messages)
{
    bool ok = true;
    if (messages && (a->status != b->status || strcmp(a->message, b->message) != 0 || a->line != b->line)) {
        CHECK_FAIL_("the interpreter says \"%s\" (line %u), the CPU \"%s\" (line %u)", a->message, a->line, b->message,
                    b->line);
        ok = false;
    }
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        const size_t n = c->args[k].data ? block_bytes(c, k) : 0;
        size_t at = 0;
        while (at < n && a->block[k][at] == b->block[k][at])
            at++;
        if (at < n) {
            CHECK_FAIL_("argument %u differs at byte %zd of %zu (width %u): %02x, not %02x", k,
                        (ptrdiff_t)at - (a->data[k] - a->block[k]), c->args[k].size, c->width, (uint8_t)b->block[k][at],
                        (uint8_t)a->block[k][at]);
            ok = false;
        }
    }
    return ok;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The texts here call values by any name; the parser wants numbers for all but parameters. */
static void number_values(const char *text, struct buf *out)
{
    struct strtab names;
    strtab_init(&names, &mem);
    const char *const head = strstr(text, "kernel "), *const end = strstr(head, ") {");
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (*p == '%' && is_word(p[1 + n]))
            n++;
        bool is_param = false;
        for (const char *q = head; n && q < end; q++)
            is_param = is_param || ((q[0] == '(' || q[0] == ' ') && memcmp(q + 1, p + 1, n) == 0 && q[1 + n] == ':');
        if (n && !is_param) {
            buf_fmt(out, "%%%u", strtab_id(&names, p + 1, n));
            p += 1 + n;
        } else {
            buf_char(out, *p++);
        }
    }
    strtab_free(&names);
}

static struct ir_module *module_of(const char *text)
{
    struct ir_module *m = NULL;
    struct buf numbered;
    buf_init(&numbered, &mem);
    number_values(text, &numbered);
    sk_error_clear(&error);
    const sk_status status = ir_parse(&mem, buf_text(&numbered), numbered.n, "test.ir", &m, &error);
    buf_free(&numbered);
    if (status != SK_OK) {
        CHECK_FAIL_("%s: %s, line %u\n%s", error.name, error.message, error.line, text);
        return NULL;
    }
    if (pass_run(m, NULL, &error) != SK_OK)
        CHECK_FAIL_("%s: %s\n%s", error.name, error.message, text);
    return m;
}

/* The last function of the text on both. Gives the interpreter's status. */
static sk_status both(const char *text, const struct call *c)
{
    struct outcome a, b;
    struct ir_module *const m = module_of(text);
    if (!m)
        return SK_ERR_INVALID;
    const uint32_t func = m->funcs.n - 1;
    interpret(m, func, c, &a);
    check_count++;
    const bool ran = run_cpu(m, func, c, &b);
    if (!ran || !same(c, &a, &b, !c->unchecked))
        printf("%s\n", text);
    release(c, &a);
    release(c, &b);
    ir_module_free(m);
    return a.status;
}

#define BUF(a)                                                                                                         \
    {                                                                                                                  \
        .data = (a), .size = sizeof(a)                                                                                 \
    }
#define VALUE(a)                                                                                                       \
    {                                                                                                                  \
        .data = &(a), .size = sizeof(a), .value = true                                                                 \
    }

/* ---- kernels written here --------------------------------------------------------------------------------------- */

static void test_add(void)
{
    static float a[100], b[100], out[100];
    for (unsigned k = 0; k < 100; k++) {
        a[k] = (float)k;
        b[k] = 1000.0f * (float)k;
    }
    static const char text[] =
        "kernel add(out: device f32, a: device f32, b: device f32, i: u32 [thread_position_in_grid]) {\n"
        "  %0 = index ptr.device %a, %i of f32\n"
        "  %1 = load f32 %0\n"
        "  %2 = index ptr.device %b, %i of f32\n"
        "  %3 = load f32 %2\n"
        "  %4 = add f32 %1, %3\n"
        "  %5 = index ptr.device %out, %i of f32\n"
        "  store %5, %4\n"
        "}\n";
    for (uint32_t w = 1; w <= 32; w = w == 1 ? 8 : w * 4) {
        struct call c = {{96, 1, 1}, {32, 1, 1}, {BUF(out), BUF(a), BUF(b)}, .width = w};
        CHECK_EQ(both(text, &c), SK_OK);
        c.args[1].skewed = true;
        c.threads[0] = 100;
        CHECK_EQ(both(text, &c), SK_OK);
        c.edge = true;
        CHECK_EQ(both(text, &c), SK_OK);
        c.threads[0] = 160;
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
        c.args[1].size = 0;
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
    }
}

/* Atomics of every operation in both kinds of memory; old values asked for and not, one address and many. */
static void test_atomics(void)
{
    static uint64_t out[64 * 64], cells[64];
    static uint32_t picks[64];
    static const char *const op[] = {"add", "sub", "and", "or", "xor", "min", "max", "exchange"};
    static const char *const type[] = {"u32", "i32", "u64", "i64", "f32"};
    for (unsigned k = 0; k < 64; k++) {
        cells[k] = k * UINT64_C(0x9e3779b97f4a7c15);
        picks[k] = k * 7 % 13;
    }
    picks[40] = 100; /* out of bounds for some */
    for (unsigned t = 0; t < 5; t++) {
        for (unsigned local = 0; local < 2; local++) {
            char text[16384];
            size_t n = 0;
            unsigned slot = 0;
            const char *const ty = type[t], *const space = local ? "threadgroup" : "device";
#define ADD(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
            ADD("kernel k(out: device %s, c: device atomic %s, p: device u32, i: u32 [thread_position_in_grid]) {\n",
                ty, ty);
            if (local)
                ADD("  %%t = alloc ptr.threadgroup of [%s x 16]\n", ty);
            else
                ADD("  %%t = index ptr.device %%c, 0:u32 of %s\n", ty);
            ADD("  %%pp = index ptr.device %%p, %%i of u32\n  %%pick = load u32 %%pp\n  %%x = convert %s %%i\n", ty);
            ADD("  %%bit = and u32 %%i, 5:u32\n  %%odd = ne bool %%bit, 0:u32\n");
            for (unsigned masked = 0; masked < 2; masked++) {
                if (masked)
                    ADD("  if %%odd {\n");
                for (unsigned o = 0; o < 8; o++) {
                    if (t == 4 && o >= 2 && o <= 4)
                        continue;
                    for (unsigned way = 0; way < 4; way++) {
                        const unsigned id = masked * 1000 + o * 10 + way;
                        ADD("  %%a%u = index ptr.%s %%t, %s of %s\n", id, space,
                            way < 2    ? "3:u32"
                            : way == 2 ? "%pick"
                                       : "%bit",
                            ty);
                        ADD("  %%o%u = atomic_%s %s %%a%u, %s%s order(relaxed) scope(%s)\n", id, op[o], ty, id,
                            way & 1  ? "%x"
                            : t == 4 ? "2.5:"
                                     : "5:",
                            way & 1 ? "" : ty, space);
                        if ((o + way) % 3 == 0)
                            continue;
                        ADD("  %%q%u = add u32 %%i, %u:u32\n  %%r%u = index ptr.device %%out, %%q%u of %s\n  store "
                            "%%r%u, %%o%u\n",
                            id, slot++ * 64 + 0, id, id, ty, id, id);
                    }
                }
                ADD("  %%ca%u = index ptr.%s %%t, %%bit of %s\n", masked, space, ty);
                if (t < 4) {
                    ADD("  %%c%u = atomic_cas %s %%ca%u, %%x, 7:%s order(relaxed) scope(%s)\n", masked, ty, masked, ty,
                        space);
                    ADD("  %%cr%u = index ptr.device %%out, %%i of %s\n  store %%cr%u, %%c%u\n", masked, ty, masked,
                        masked);
                }
                ADD("  %%l%u = atomic_load %s %%ca%u order(seq_cst) scope(device)\n", masked, ty, masked);
                ADD("  atomic_store %%ca%u, %%l%u order(relaxed) scope(device)\n", masked, masked);
                if (masked)
                    ADD("  }\n");
            }
            ADD("  %%z = index ptr.%s %%t, %%i of %s\n  %%zv = load %s %%z\n", space, ty, ty);
            ADD("  %%zo = index ptr.device %%out, %%i of %s\n  store %%zo, %%zv\n}\n", ty);
#undef ADD
            for (unsigned skew = 0; skew < 2; skew++) {
                struct call c = {{64, 1, 1}, {32, 1, 1}, {BUF(out), BUF(cells), BUF(picks)}, .width = 32};
                c.args[1].skewed = skew;
                (void)both(text, &c);
            }
        }
    }
}

/* Arrays of threads: whole and in parts, read as other types, with indices of all kinds; pointers kept in memory. */
static void test_thread_arrays(void)
{
    static uint32_t out[64 * 8], picks[64];
    for (unsigned k = 0; k < 64; k++)
        picks[k] = k * 5 % 11;
    static const char text[] = "struct S { a: u8, b: f32, c: [u16 x 3] }\n"
                               "kernel k(out: device u32, p: device u32, i: u32 [thread_position_in_grid]) {\n"
                               "  %q = alloc ptr.thread of [u32 x 9]\n"
                               "  %w = alloc ptr.thread of [u32 x 8]\n"
                               "  %s = alloc ptr.thread of S\n"
                               "  %h = alloc ptr.thread of [ptr.thread x 2]\n"
                               "  %d = alloc ptr.thread of [ptr.device x 2]\n"
                               "  %b = alloc ptr.thread of [u8 x 5]\n"
                               "  %pp = index ptr.device %p, %i of u32\n"
                               "  %pick = load u32 %pp\n"
                               "  loop (%k: u32 = 0:u32) {\n"
                               "    %go = lt bool %k, 9:u32\n"
                               "    if %go {\n"
                               "      %e = index ptr.thread %q, %k of u32\n"
                               "      %v = mul u32 %k, %i\n"
                               "      store %e, %v\n"
                               "      %k2 = add u32 %k, 1:u32\n"
                               "      br 1 %k2\n"
                               "    }\n"
                               "  }\n"
                               "  %e1 = index ptr.thread %q, %pick of u32\n"
                               "  %v1 = load u32 %e1\n"
                               "  %o1 = index ptr.device %out, %i of u32\n"
                               "  store %o1, %v1\n"
                               "  %w1 = index ptr.thread %w, 1:u32 of f32x2\n"
                               "  %f = convert f32 %pick\n"
                               "  %f2 = make f32x2 %f, 2.5:f32\n"
                               "  store %w1, %f2\n"
                               "  %w2 = index ptr.thread %w, %pick of u8\n"
                               "  %w2b = index ptr.thread %w2, 3:u32 of u8\n"
                               "  %u = load u32 %w2b\n"
                               "  %odd = and u32 %i, 3:u32\n"
                               "  %is = ne bool %odd, 0:u32\n"
                               "  if %is {\n"
                               "    store %w2, 0x1234:u16\n"
                               "    %bb = index ptr.thread %b, %pick of u8\n"
                               "    %lo = convert u8 %i\n"
                               "    store %bb, %lo\n"
                               "  }\n"
                               "  %w3 = index ptr.thread %w, 0:u32 of u32\n"
                               "  %x3 = load u32 %w3\n"
                               "  %y3 = xor u32 %x3, %u\n"
                               "  %j3 = add u32 %i, 64:u32\n"
                               "  %o3 = index ptr.device %out, %j3 of u32\n"
                               "  store %o3, %y3\n"
                               "  %sb = field ptr.thread %s of S [1]\n"
                               "  store %sb, %f\n"
                               "  %sc = field ptr.thread %s of S [2]\n"
                               "  %sce = index ptr.thread %sc, %odd of u16\n"
                               "  store %sce, 7:u16\n"
                               "  %all = load S %s\n"
                               "  %m = extract [u16 x 3] %all [2]\n"
                               "  %m1 = extract u16 %m [1]\n"
                               "  %m1w = convert u32 %m1\n"
                               "  %j4 = add u32 %i, 128:u32\n"
                               "  %o4 = index ptr.device %out, %j4 of u32\n"
                               "  store %o4, %m1w\n"
                               "  store %h, %e1\n"
                               "  %back = load ptr.thread %h\n"
                               "  store %back, 99:u32\n"
                               "  %v5 = load u32 %e1\n"
                               "  %j5 = add u32 %i, 192:u32\n"
                               "  %o5 = index ptr.device %out, %j5 of u32\n"
                               "  store %d, %o5\n"
                               "  %o5b = load ptr.device %d\n"
                               "  store %o5b, %v5\n"
                               "  %b3 = index ptr.thread %b, 3:u32 of u8\n"
                               "  %v6 = load u8 %b3\n"
                               "  %v6w = convert u32 %v6\n"
                               "  %j6 = add u32 %i, 256:u32\n"
                               "  %o6 = index ptr.device %out, %j6 of u32\n"
                               "  store %o6, %v6w\n"
                               "  %d1 = index ptr.thread %d, 1:u32 of ptr.device\n"
                               "  %null = load ptr.device %d1\n"
                               "  %zero = load u32 %null\n"
                               "  %j7 = add u32 %i, 320:u32\n"
                               "  %o7 = index ptr.device %out, %j7 of u32\n"
                               "  store %o7, %zero\n"
                               "}\n";
    for (uint32_t w = 1; w <= 32; w *= 2) {
        struct call c = {{64, 1, 1}, {32, 1, 1}, {BUF(out), BUF(picks)}, .width = w};
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
        c.threads[0] = 50;
        c.edge = true;
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
    }
}

/* What lives across barriers: thread arrays of both layouts, threadgroup memory sized at launch, addresses from before. */
static void test_phases(void)
{
    static uint32_t out[256], in[256];
    for (unsigned k = 0; k < 256; k++)
        in[k] = k * 2654435761u;
    static const char text[] = "kernel k(out: device u32, in: device u32, i: u32 [thread_position_in_grid], l: u32 "
                               "[thread_position_in_threadgroup]) {\n"
                               "  %t = alloc ptr.threadgroup of [u32 x 64]\n"
                               "  %a = alloc ptr.thread of [u32 x 5]\n"
                               "  %b = alloc ptr.thread of [u8 x 20]\n"
                               "  %p = index ptr.device %in, %i of u32\n"
                               "  %v = load u32 %p\n"
                               "  %l5 = and u32 %l, 3:u32\n"
                               "  %a1 = index ptr.thread %a, %l5 of u32\n"
                               "  store %a1, %v\n"
                               "  %b1 = index ptr.thread %b, 4:u32 of u32\n"
                               "  store %b1, %v\n"
                               "  %t1 = index ptr.threadgroup %t, %l of u32\n"
                               "  store %t1, %v\n"
                               "  barrier memory(threadgroup)\n"
                               "  %n = xor u32 %l, 33:u32\n"
                               "  %t2 = index ptr.threadgroup %t, %n of u32\n"
                               "  %w = load u32 %t2\n"
                               "  %x = load u32 %a1\n"
                               "  %b2 = index ptr.thread %b, 17:u32 of u8\n"
                               "  %y = load u8 %b2\n"
                               "  %yw = convert u32 %y\n"
                               "  %s1 = add u32 %w, %x\n"
                               "  %s2 = mul u32 %s1, 3:u32\n"
                               "  %s3 = add u32 %s2, %yw\n"
                               "  barrier memory(threadgroup)\n"
                               "  %x2 = load u32 %a1\n"
                               "  %s4 = add u32 %s3, %x2\n"
                               "  %o = index ptr.device %out, %i of u32\n"
                               "  store %o, %s4\n"
                               "}\n";
    for (uint32_t w = 8; w <= 32; w *= 2) {
        struct call c = {{192, 1, 1}, {64, 1, 1}, {BUF(out), BUF(in)}, .width = w};
        CHECK_EQ(both(text, &c), SK_OK);
        c.args[1].size = 4 * 100;
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
        c.dynamic = true;
        CHECK_EQ(both(text, &c), SK_ERR_FAULT);
    }
}

/* The position of the fault in three dimensions, in whole threadgroups and in cut ones. */
static void test_positions(void)
{
    static uint32_t out[30 * 7 * 2];
    static const char text[] =
        "kernel k(out: device u32, g: u32x3 [thread_position_in_grid], n: u32x3 [threads_per_grid]) {\n"
        "  %x = extract u32 %g [0]\n  %y = extract u32 %g [1]\n  %z = extract u32 %g [2]\n"
        "  %nx = extract u32 %n [0]\n  %ny = extract u32 %n [1]\n"
        "  %a = mul u32 %z, %ny\n  %b = add u32 %a, %y\n  %c = mul u32 %b, %nx\n  %d = add u32 %c, %x\n"
        "  %p = index ptr.device %out, %d of u32\n"
        "  store %p, %d\n"
        "}\n";
    for (unsigned edge = 0; edge < 2; edge++) {
        for (size_t n = 30 * 7 * 2; n > 10; n -= n / 3 + 1) {
            struct call c = {{30, 7, 2}, {8, 4, 1}, {BUF(out)}, .edge = edge};
            c.args[0].size = n * 4;
            CHECK_EQ(both(text, &c), n == 30 * 7 * 2 ? SK_OK : SK_ERR_FAULT);
            c.group[0] = 16;
            CHECK_EQ(both(text, &c), n == 30 * 7 * 2 ? SK_OK : SK_ERR_FAULT);
        }
    }
}

/* Loops that wait for memory which they write themselves get on: in device memory and in a thread's own. */
static void test_waits(void)
{
    static uint32_t out[64];
    for (unsigned own = 0; own < 2; own++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "kernel k(out: device u32, i: u32 [thread_position_in_grid]) {\n"
                       "  %%a = alloc ptr.thread of [u32 x 2]\n"
                       "  %%o = index ptr.device %%out, %%i of u32\n"
                       "  %%c = index ptr.%s %s, 0:u32 of u32\n"
                       "  loop {\n"
                       "    %%v = load u32 %%c\n"
                       "    %%go = lt bool %%v, 1500000:u32\n"
                       "    if %%go {\n"
                       "      %%w = add u32 %%v, 1:u32\n"
                       "      store %%c, %%w\n"
                       "      br 1\n"
                       "    }\n"
                       "  }\n"
                       "  %%e = load u32 %%c\n"
                       "  store %%o, %%e\n"
                       "}\n",
                       own ? "thread" : "device", own ? "%a" : "%o");
        struct call c = {{4, 1, 1}, {4, 1, 1}, {BUF(out)}, .width = 4};
        CHECK_EQ(both(text, &c), SK_OK);
    }
}

/* ---- random kernels --------------------------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t roll(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % n;
}

static char script[1 << 17];
static size_t script_n;
static unsigned fresh, slots, depth;
static bool racy;

SK_PRINTF(1, 2) static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    script_n += (size_t)vsnprintf(script + script_n, sizeof script - script_n, fmt, args);
    va_end(args);
}

struct value {
    char name[24];
    const char *type;
};
static struct value indices[64];
static unsigned n_indices;

static const char *const index_types[] = {"u32", "i32", "u16", "i16", "u8", "i8", "u64", "i64"};
static const char *const scalars[] = {"bool", "i8",  "u8",  "i16", "u16",  "i32",
                                      "u32",  "i64", "u64", "f16", "bf16", "f32"};
static const char *const wholes[] = {"f32x2",     "f32x4", "u8x4", "u16x2", "f32x3", "u64x2",
                                     "[u32 x 3]", "P",     "Q",    "R",     "i8x3"};

static const struct value *new_index(const char *type)
{
    struct value *const v = &indices[n_indices++];
    (void)snprintf(v->name, sizeof v->name, "%%x%u", fresh++);
    v->type = type;
    return v;
}

/* An integer of some type and shape, small most of the time. */
static struct value index_of(void)
{
    if (n_indices < 40 && roll(3)) {
        const struct value a = indices[roll(n_indices)];
        const unsigned how = roll(9);
        if (how < 3) {
            const char *const to = index_types[roll(8)];
            if (strcmp(to, a.type) == 0)
                return a;
            const struct value *const v = new_index(to);
            say("%s = convert %s %s\n", v->name, v->type, a.name);
            return *v;
        }
        const struct value *const v = new_index(a.type);
        if (how < 6)
            say("%s = add %s %s, %u:%s\n", v->name, v->type, a.name, roll(4) ? roll(40) : roll(120), v->type);
        else if (how == 6)
            say("%s = sub %s %s, %u:%s\n", v->name, v->type, a.name, roll(20), v->type);
        else if (how == 7)
            say("%s = mul %s %s, %u:%s\n", v->name, v->type, a.name, roll(5), v->type);
        else
            say("%s = and %s %s, %u:%s\n", v->name, v->type, a.name, roll(3) ? 15 : roll(128), v->type);
        return *v;
    }
    if (roll(8) == 0) {
        struct value v = {.type = "u32"};
        (void)snprintf(v.name, sizeof v.name, "%u:u32", roll(30));
        return v;
    }
    return indices[roll(n_indices)];
}

static const char *any_type(void)
{
    return roll(3) ? scalars[roll(12)] : wholes[roll(11)];
}

/* A pointer some way into one of the memories. */
static const char *pointer_of(const char *elem, const char **space, bool write)
{
    static char name[32];
    static const char *const roots[] = {"%big", "%small", "%tg", "%th", "%un", "%big"};
    if (racy && roll(8) == 0) { /* a pointer held as a value */
        const struct value i = index_of();
        *space = "device";
        say("%%p%u = index ptr.device %%dy, %s of %s\n", fresh, i.name, elem);
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
        return name;
    }
    const unsigned r = write && !racy ? 3 + roll(2) : roll(6);
    const char *root = roots[r];
    *space = r == 2 ? "threadgroup" : r == 3 || r == 4 ? "thread" : "device";
    if (r == 4) { /* only ever u32 */
        const struct value i = index_of();
        say("%%p%u = index ptr.thread %%un, %s of u32\n", fresh, i.name);
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
        return name;
    }
    (void)snprintf(name, sizeof name, "%s", root);
    if (roll(3) == 0) {
        say("%%p%u = index ptr.%s %s, %u:u32 of u8\n", fresh, *space, name, roll(2) ? 4 * roll(20) : roll(40));
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
    }
    if (roll(5) == 0) {
        const struct value i = index_of();
        say("%%p%u = index ptr.%s %s, %s of [f32 x 8]\n", fresh, *space, name, i.name);
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
    }
    for (unsigned more = roll(16) == 0 ? roll(9) : 0; more > 0; more--) {
        const struct value i = index_of();
        say("%%p%u = index ptr.%s %s, %s of %s\n", fresh, *space, name, i.name, roll(2) ? "u8" : "u16");
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
    }
    const struct value i = index_of();
    const char *step = elem;
    if (roll(8) == 0)
        step = any_type();
    say("%%p%u = index ptr.%s %s, %s of %s\n", fresh, *space, name, i.name, step);
    (void)snprintf(name, sizeof name, "%%p%u", fresh++);
    if (strcmp(step, "P") == 0 && strcmp(elem, "P") != 0) {
        say("%%p%u = field ptr.%s %s of P [%u]\n", fresh, *space, name, roll(3));
        (void)snprintf(name, sizeof name, "%%p%u", fresh++);
    }
    return name;
}

static void statement(void)
{
    const unsigned what = roll(10);
    const char *space;
    if (what < 5) { /* a load, whose value is kept at the thread's own place */
        char p[32], type[16];
        (void)snprintf(type, sizeof type, "%s", any_type());
        (void)snprintf(p, sizeof p, "%s", pointer_of(type, &space, false));
        const unsigned v = fresh++;
        say("%%v%u = load %s %s\n", v, type, p);
        say("%%o%u = index ptr.device %%out, %u:u32 of [u8 x 4096]\n", v, slots++ % 32);
        say("%%w%u = index ptr.device %%o%u, %%i of %s\nstore %%w%u, %%v%u\n", v, v, type, v, v);
    } else if (what < 8) { /* a store of what was loaded */
        char p[32], type[16];
        (void)snprintf(type, sizeof type, "%s", any_type());
        const unsigned v = fresh++;
        const struct value i = index_of();
        say("%%l%u = index ptr.device %%in, %s of %s\n%%v%u = load %s %%l%u\n", v, roll(4) ? "%i" : i.name, type, v,
            type, v);
        (void)snprintf(p, sizeof p, "%s", pointer_of(type, &space, true));
        say("store %s, %%v%u\n", p, v);
    } else if (what == 8 && depth < 3) {
        static const char *const test[] = {"lt", "ge", "ne"};
        const struct value i = index_of();
        const unsigned c = fresh++, keep = n_indices;
        say("%%c%u = %s bool %s, %s%s\nif %%c%u {\n", c, test[roll(3)], i.name,
            strchr(i.name, ':') ? "7:" : "9:", i.type, c);
        depth++;
        for (unsigned k = roll(4) + 1; k > 0; k--)
            statement();
        depth--;
        n_indices = keep;
        say("}\n");
    } else if (what == 9 && depth < 2 && roll(2)) {
        const unsigned c = fresh++, keep = n_indices;
        const struct value lim = index_of();
        say("%%n%u = convert u32 %s\n%%m%u = and u32 %%n%u, 3:u32\n", c, lim.name, c, c);
        say("loop (%%k%u: u32 = 0:u32) {\n%%g%u = lt bool %%k%u, %%m%u\nif %%g%u {\n", c, c, c, c, c);
        struct value *const k = &indices[n_indices++];
        (void)snprintf(k->name, sizeof k->name, "%%k%u", c);
        k->type = "u32";
        depth++;
        for (unsigned j = roll(3) + 1; j > 0; j--)
            statement();
        depth--;
        n_indices = keep;
        say("%%e%u = add u32 %%k%u, 1:u32\nbr 1 %%e%u\n}\n}\n", c, c, c);
    }
}

static void write_kernel(void)
{
    static const char *const given[] = {"i", "lane", "gx", "u", "s", "ul", "sl"};
    static const char *const type[] = {"u32", "u32", "u32", "u32", "i32", "u64", "i64"};
    script_n = 0;
    fresh = slots = depth = 0;
    n_indices = 0;
    say("struct P { a: f32, b: u32, c: u8 }\nstruct Q { a: f32, b: u32 }\nstruct R { a: u16, b: u8, c: u64, d: bool }\n"
        "kernel k(out: device u8, in: device u8, big: device f32, small: device u32, u: u32, s: i32, ul: u64, sl: i64, "
        "i: u32 [thread_position_in_grid], lane: u32 [thread_position_in_threadgroup], gx: u32 "
        "[threadgroup_position_in_grid]) {\n"
        "%%tg = alloc ptr.threadgroup of [f32 x 64]\n%%th = alloc ptr.thread of [f32 x 10]\n%%un = alloc ptr.thread of "
        "[u32 x 12]\n");
    for (unsigned k = 0; k < 7; k++) {
        (void)snprintf(indices[n_indices].name, sizeof indices[0].name, "%%%s", given[k]);
        indices[n_indices++].type = type[k];
    }
    for (unsigned k = 0; k < 8; k++) {
        const struct value *const v = new_index(index_types[k]);
        say("%%a%u = index ptr.device %%in, %%i of %s\n%s = load %s %%a%u\n", k, v->type, v->name, v->type, k);
    }
    say("%%db = and u32 %%x0, 1:u32\n%%dc = ne bool %%db, 0:u32\n%%dy = select ptr.device %%dc, %%big, %%small\n");
    for (unsigned k = 0; k < 8; k++)
        statement();
    say("%%un0 = index ptr.thread %%un, %%lane of u32\nstore %%un0, %%i\n}\n");
}

static void test_random(unsigned n, uint64_t seed)
{
    static char out[32 * 4096], in[8192], big[3000], small[200];
    for (unsigned k = 0; k < n; k++, seed++) {
        state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
        (void)roll(1);
        struct call c = {{64, 1, 1}, {32, 1, 1}, .width = 32};
        racy = roll(3) != 0;
        if (!racy)
            c.width = 1u << (1 + roll(5));
        c.dynamic = roll(5) == 0;
        c.edge = roll(2);
        c.group[0] = roll(3) ? 32 : roll(2) ? 64 : 20 + roll(30);
        c.threads[0] = roll(3) ? c.group[0] * (1 + roll(3)) : 1 + roll(120);
        for (size_t b = 0; b < sizeof in; b++)
            in[b] = (char)(roll(4) ? b % 8 == 0 ? roll(24) : 0 : roll(256));
        if (roll(2))
            for (size_t b = 0; b < sizeof in; b++)
                in[b] = (char)(b % 4 == 0 ? roll(9) : 0);
        for (size_t b = 0; b < sizeof big; b++)
            big[b] = (char)roll(256);
        uint32_t u = roll(4) ? roll(20) : UINT32_MAX - roll(40);
        int32_t s = (int32_t)roll(20) - 5;
        uint64_t ul = roll(3) ? roll(20) : (uint64_t)roll(8) << 59 | roll(16);
        int64_t sl = roll(3) ? (int64_t)roll(20) - 4 : (int64_t)((uint64_t)roll(8) << 58);
        const struct arg args[ARGS_MAX] = {BUF(out), BUF(in),  BUF(big),  BUF(small),
                                           VALUE(u), VALUE(s), VALUE(ul), VALUE(sl)};
        memcpy(c.args, args, sizeof args);
        static const size_t sizes[] = {3000, 2048, 512, 100, 3, 0};
        c.args[2].size = sizes[roll(6)];
        c.args[3].size = roll(201);
        for (unsigned j = 1; j < 4; j++)
            c.args[j].skewed = roll(3) == 0;
        write_kernel();
        const long before = check_failures;
        const sk_status status = both(script, &c);
        if (status == SK_OK && roll(2)) {
            c.unchecked = true;
            (void)both(script, &c);
        }
        if (check_failures != before)
            printf("seed %llu: threads %u, group %u, width %u, edge %d, dynamic %d\n", (unsigned long long)seed,
                   c.threads[0], c.group[0], c.width, c.edge, c.dynamic);
        if (check_failures > 3)
            return;
    }
}

int main(int n, char **arg)
{
    mem_init(&mem, NULL);
    jmp_buf recover;
    if (setjmp(recover)) {
        CHECK_FAIL_("out of memory");
        return check_done();
    }
    mem.recover = &recover;
    if (llvm_open(&mem, &llvm, &error) != SK_OK) {
        printf("no LLVM: %s\n", error.message);
        return 0;
    }
    if (n > 1) {
        test_random((unsigned)atoi(arg[1]), n > 2 ? strtoull(arg[2], NULL, 10) : 1);
    } else {
        test_add();
        test_atomics();
        test_thread_arrays();
        test_phases();
        test_positions();
        test_waits();
        test_random(16, 1);
    }
    llvm_close(llvm);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
