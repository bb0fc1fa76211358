/* cpu_convert.c - conversions and integer divisions on the CPU over dense samples against ir_scalar_eval, bit for bit: every value
 * of 8 and 16 bits to every type, f32 and wider integers at random and around every power of two and every tie of f16, bf16
 * and f32, and the quotients by floats where they come closest to the next integer.
 *
 * `cpu_convert N`: 2^20 N random operands more.
 */
#include "check.h"
#include "cpu/launch.h"
#include "llvm/llvm.h"

#include <stdlib.h>

#define GROUP 64u
#define BLOCK (GROUP * 1024u) /* operands of a launch */
#define MAX_OUT 16u

static struct mem mem;
static struct llvm *llvm;
static sk_error error;

static uint64_t state = 0x2545f4914f6cdd1du;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t masked(enum scalar s, uint64_t bits)
{
    const unsigned width = scalar_info[s].bits;
    return width == 64 ? bits : bits & (((uint64_t)1 << width) - 1);
}

static bool is_float(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_F;
}

static bool is_nan(enum scalar s, uint64_t x)
{
    static const uint64_t infinite[S_COUNT] = {[S_F16] = 0x7c00, [S_BF16] = 0x7f80, [S_F32] = 0x7f800000};
    return is_float(s) && (x & (masked(s, UINT64_MAX) >> 1)) > infinite[s];
}

/* ---- a kernel: for each thread, each of some operations on its operands -------------------------------------------- */

struct kernel {
    struct ir_module *m;
    enum scalar s;
    unsigned n;
    enum op op[MAX_OUT];
    enum scalar to[MAX_OUT];
    uint32_t func;
    struct cpu_variant v;
};

static uint32_t parameter(struct ir_module *m, uint32_t f, const char *name, enum scalar s)
{
    const struct param p = {.name = ir_string(m, name),
                            .type = s == S_VOID ? TYPE_U32 : TYPE_POINTER(SPACE_DEVICE),
                            .elem = (ir_type)s,
                            .kind = s == S_VOID ? PARAM_ATTRIBUTE : PARAM_BUFFER,
                            .attribute = s == S_VOID ? ATTR_THREAD_POSITION_IN_GRID : ATTR_NONE};
    return ir_param(m, f, &p);
}

static bool compile(struct kernel *k, uint32_t width)
{
    const char *const name = "spork_kernel";
    void *found = NULL;
    struct buf text;
    char *bytes = NULL;
    size_t n = 0;
    k->m = ir_module_new(&mem);
    k->func = ir_func(k->m, ir_string(k->m, "k"), true, TYPE_VOID, 0);
    uint32_t in[2], a[2];
    in[0] = parameter(k->m, k->func, "a", k->s);
    in[1] = parameter(k->m, k->func, "b", k->s);
    const uint32_t out = parameter(k->m, k->func, "o", S_U64), i = parameter(k->m, k->func, "i", S_VOID);
    struct ir_builder b = {.m = k->m, .func = k->func, .region = k->m->funcs.at[k->func].region};
    for (unsigned j = 0; j < 2; j++)
        a[j] = ir_load(&b, (ir_type)k->s, ir_index(&b, (ir_type)k->s, in[j], i));
    for (unsigned j = 0; j < k->n; j++) {
        const uint32_t at = ir_op2(&b, OP_ADD, i, ir_const(k->m, TYPE_U32, j * BLOCK));
        const uint32_t x = ir_node(&b, k->op[j], (ir_type)k->to[j], (unsigned)op_info[k->op[j]].n, a, 0, 0);
        ir_store(&b, ir_index(&b, TYPE_U64, out, at), x);
    }
    k->v = (struct cpu_variant){.opt = {.dims = {GROUP, 1, 1}, .width = width, .unchecked = true}, .stack = 1 << 18};
    buf_init(&text, &mem);
    sk_status st = ir_verify(k->m, &error);
    if (st == SK_OK)
        st = cpu_lower(&mem, k->m, k->func, &k->v.opt, &text, &k->v.lowered, &error);
    if (st == SK_OK)
        st = llvm_compile(llvm, buf_text(&text), text.n, LLVM_QUICK, LLVM_OBJECT, &mem, &bytes, &n, &error);
    buf_free(&text);
    if (st == SK_OK) {
        st = object_load(bytes, n, &name, 1, &found, &k->v.code, &error);
        mem_free(&mem, bytes, n);
    }
    if (st != SK_OK || !found)
        CHECK_FAIL_("%s: %s", error.name, error.message);
    memcpy(&k->v.kernel, &found, sizeof found);
    sk_error_clear(&error);
    return found != NULL;
}

static void release(struct kernel *k)
{
    object_unload(&k->v.code);
    cpu_lowered_free(&mem, &k->v.lowered);
    ir_module_free(k->m);
}

/* ---- operands, in blocks ------------------------------------------------------------------------------------------- */

static char data[2][BLOCK * 8];
static uint64_t got[MAX_OUT * BLOCK], operand[2][BLOCK];
static uint32_t filled;

static void run(const struct kernel *k)
{
    static const uint8_t is_value[3];
    const unsigned bytes = scalar_info[k->s].bytes;
    if (!filled)
        return;
    for (uint32_t t = 0; t < BLOCK; t++)
        for (unsigned j = 0; j < 2; j++) {
            if (t >= filled)
                operand[j][t] = operand[j][t % filled];
            memcpy(data[j] + t * bytes, &operand[j][t], bytes);
        }
    const sk_arg args[] = {{.data = data[0], .size = sizeof data[0]},
                           {.data = data[1], .size = sizeof data[1]},
                           {.data = got, .size = sizeof got}};
    const struct cpu_grid g = {.kernel = "k",
                               .whole = &k->v,
                               .threads = {BLOCK, 1, 1},
                               .group = {GROUP, 1, 1},
                               .args = args,
                               .is_value = is_value,
                               .n_args = 3,
                               .workers = 1};
    memset(got, 0, sizeof got);
    if (cpu_run(&g, &mem, &error) != SK_OK)
        CHECK_FAIL_("%s", error.message);
    sk_error_clear(&error);
    for (unsigned j = 0; j < k->n; j++) {
        for (uint32_t t = 0; t < filled; t++) {
            const uint64_t a = operand[0][t], b = operand[1][t];
            const uint64_t is_signed = scalar_info[k->s].class_ == CLASS_S ? 64u - scalar_info[k->s].bits : 0;
            const uint64_t wide = is_signed ? (uint64_t)((int64_t)(a << is_signed) >> is_signed) : a;
            const uint64_t want = ir_scalar_eval(k->op[j], k->s, k->to[j], 0, a, b, 0),
                           is = masked(k->to[j], got[j * BLOCK + t]);
            check_count++;
            if (is != want && !(is_nan(k->to[j], is) && is_nan(k->to[j], want)))
                CHECK_FAIL_("%s %s %s of %#" PRIx64 " (%" PRId64 "), %#" PRIx64 ", width %u: %#" PRIx64
                            ", not %#" PRIx64,
                            op_info[k->op[j]].name, scalar_info[k->s].name, scalar_info[k->to[j]].name, a,
                            (int64_t)wide, b, k->v.opt.width, is, want);
        }
    }
    filled = 0;
}

static void add(const struct kernel *k, uint64_t a, uint64_t b)
{
    operand[0][filled] = masked(k->s, a);
    operand[1][filled++] = masked(k->s, b);
    if (filled == BLOCK)
        run(k);
}

/* ---- conversions --------------------------------------------------------------------------------------------------- */

/* Integers next to 2^p (m + 1/2 of the last of `digits` binary digits), of both signs. */
static void add_ties(const struct kernel *k, unsigned digits)
{
    for (unsigned top = digits; top < scalar_info[k->s].bits; top++) {
        for (unsigned j = 0; j < 24; j++) {
            const unsigned shift = top + 1 - digits;
            const uint64_t m = j < 4 ? j : j < 8 ? ((uint64_t)1 << (digits - 1)) - 1 - (j & 3) : next_random();
            const uint64_t lead = (uint64_t)1 << top;
            const uint64_t tie = lead | ((m << shift) & (lead - 1)) | (uint64_t)1 << (shift - 1);
            for (unsigned d = 0; d < 5; d++)
                add(k, tie + d - 2, 0), add(k, 0 - (tie + d - 2), 0);
            const uint64_t low = (uint64_t)1 << next_random() % (shift ? shift : 1);
            add(k, tie | low, 0);
            add(k, tie - low, 0);
            add(k, 0 - (tie - low), 0);
        }
    }
}

/* f32 next to integers, halves, the ends of every integer type, ties of f16 and bf16. */
static void add_floats(const struct kernel *k)
{
    for (uint32_t exponent = 0; exponent < 256; exponent++) {
        static const uint32_t fraction[] = {0,        1,        0x400000, 0x7fffff, 0x7ffffe, 0x1000,
                                            0x0fff,   0x1001,   0x3000,   0x8000,   0x7fff,   0x8001,
                                            0x18000,  0x17fff,  0x18001,  0x7f8000, 0x7f7fff, 0x7f8001,
                                            0x7ff000, 0x7fefff, 0x7ff001, 0x7fe000, 0x200000, 0x600000};
        for (unsigned j = 0; j < sizeof fraction / sizeof *fraction; j++) {
            add(k, exponent << 23 | fraction[j], 0);
            add(k, 0x80000000u | exponent << 23 | fraction[j], 0);
        }
        for (unsigned j = 0; j < 23; j++) { /* one bit, and all below it */
            add(k, exponent << 23 | 1u << j, 0);
            add(k, exponent << 23 | ((1u << j) - 1), 0);
            add(k, 0x80000000u | exponent << 23 | (0x7fffffu & ~((1u << j) - 1)), 0);
        }
    }
}

static void test_convert(enum scalar s, uint32_t width, unsigned rounds)
{
    struct kernel k = {.s = s};
    for (unsigned to = S_BOOL; to < S_COUNT; to++) {
        if (to == (unsigned)s)
            continue;
        k.op[k.n] = OP_CONVERT;
        k.to[k.n++] = (enum scalar)to;
    }
    if (compile(&k, width)) {
        const unsigned bits = scalar_info[s].bits;
        for (uint32_t x = 0; bits <= 16 && x < (uint32_t)1 << bits; x++)
            add(&k, x, 0);
        if (bits > 16 && !is_float(s)) {
            add_ties(&k, 8);
            add_ties(&k, 11);
            add_ties(&k, 24);
            for (uint64_t x = 0; x < 5000; x++) {
                add(&k, x, 0);
                add(&k, 0 - x, 0);
                add(&k, 65400 + x % 300, 0); /* the end of f16 */
                add(&k, 0 - (65400 + x % 300), 0);
                add(&k, ((uint64_t)1 << (bits - 1)) + x - 2500, 0);
            }
        }
        if (s == S_F32)
            add_floats(&k);
        for (uint32_t x = 0, n = (width == 32 ? 2 * BLOCK : BLOCK / 4) + (rounds << 20); bits > 16 && x < n; x++) {
            const uint64_t r = next_random();
            add(&k, is_float(s) ? r >> 32 : r >> (next_random() & 63), 0);
        }
        run(&k);
    }
    release(&k);
}

/* ---- divisions ----------------------------------------------------------------------------------------------------- */

static void test_divide(enum scalar s, uint32_t width, unsigned rounds)
{
    static const enum op ops[] = {OP_DIV_TRUNC, OP_REM_TRUNC, OP_DIV_FLOOR, OP_REM_FLOOR};
    struct kernel k = {.s = s, .n = 4};
    for (unsigned j = 0; j < 4; j++) {
        k.op[j] = ops[j];
        k.to[j] = s;
    }
    if (compile(&k, width)) {
        const unsigned bits = scalar_info[s].bits;
        const uint64_t all = masked(s, UINT64_MAX), top = (uint64_t)1 << (bits - 1);
        for (uint32_t x = 0; bits == 8 && x < 65536; x++) /* all pairs */
            add(&k, x & 255, x >> 8);
        static const int64_t offsets[] = {-3, -2, -1, 0, 1, 2, 3};
        for (unsigned p = 0; p < bits; p++) /* powers of two and their neighbours */
            for (unsigned q = 0; q < bits; q++)
                for (unsigned j = 0; j < 49; j++) {
                    const uint64_t a = ((uint64_t)1 << p) + (uint64_t)offsets[j % 7],
                                   b = ((uint64_t)1 << q) + (uint64_t)offsets[j / 7];
                    add(&k, j & 1 ? a : 0 - a, j & 2 ? b : 0 - b);
                    if (width < 32 && j % 3)
                        break;
                }
        /* Quotients just below and at an integer: n b - 1, n b, n b + 1; the largest n for a b most of all. */
        for (uint32_t x = 0, n = (width == 32 ? 2 * BLOCK : BLOCK / 4) + (rounds << 20); x < n; x++) {
            const uint64_t r = next_random();
            const uint64_t b = (masked(s, r) >> (next_random() % bits)) | 1;
            const uint64_t most = all / b, q = x & 1 ? most - (r >> 60) : next_random() % (most ? most : 1);
            const uint64_t a = q * b + (x >> 1) % 3 - 1;
            add(&k, x & 16 ? 0 - a : a, x & 32 ? 0 - b : b);
            add(&k, top + (x & 7) - 4, x & 8 ? all - (x >> 4 & 3) : x >> 4 & 3);
        }
        run(&k);
    }
    release(&k);
}

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    static const uint32_t widths[] = {1, 8, 16, 32};
    struct buf why;
    char path[512];
    mem_init(&mem, NULL);
    buf_init(&why, &mem);
    if (!llvm_find(path, sizeof path, &why)) {
        printf("skipped: %s\n", buf_text(&why));
        buf_free(&why);
        return 0;
    }
    buf_free(&why);
    if (llvm_open(&mem, &llvm, &error) != SK_OK) {
        CHECK_FAIL_("%s: %s", error.name, error.message);
        return check_done();
    }
    for (unsigned s = S_BOOL; s < S_COUNT; s++) {
        for (unsigned w = 0; w < 4; w++) {
            if (w < 3 && (s + w) % 3 != 0 && !rounds) /* the others share their code with width 32 */
                continue;
            test_convert((enum scalar)s, widths[w], rounds);
            if (s != S_BOOL && !is_float((enum scalar)s))
                test_divide((enum scalar)s, widths[w], rounds);
        }
    }
    llvm_close(llvm);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
