/* cpu_ops.c - every pure operation and collective on the CPU against the interpreter, bit for bit (NaNs are one value).
 *
 * A kernel has many operations on operands of one type, each varying, uniform, linear or constant; a threadgroup of 40
 * threads ends in a bundle that is not full. Which operands an operation gets changes with the round; `cpu_ops N` runs
 * N rounds, of all that there is, one alone is shorter.
 */
#include "check.h"
#include "cpu/launch.h"
#include "interp/interp.h"
#include "llvm/llvm.h"
#include "pass/pass.h"

#include <stdlib.h>

#define GROUP 40u
#define N_EDGES 26u
#define N (GROUP * 30u)

static struct mem mem;
static struct llvm *llvm;
static sk_error error;
static unsigned features;
static bool full; /* all of the optimiser */

/* ---- operands --------------------------------------------------------------------------------------------------- */

static uint64_t state = 0x9e3779b97f4a7c15u;

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

static uint64_t float_bits(enum scalar s, double x)
{
    return s == S_F16 ? f16_from_f64(x) : s == S_BF16 ? bf16_from_f64(x) : bits_f32((float)x);
}

static bool is_float(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_F;
}

static uint64_t edge(enum scalar s, unsigned k)
{
    static const double floats[N_EDGES] = {0.0,
                                           -0.0,
                                           1.0,
                                           -1.0,
                                           0.5,
                                           -0.5,
                                           1.5,
                                           2.5,
                                           -2.5,
                                           3.0,
                                           -7.0,
                                           1e-3,
                                           (double)INFINITY,
                                           -(double)INFINITY,
                                           (double)NAN,
                                           127.0,
                                           255.5,
                                           256.0,
                                           -129.0,
                                           32768.,
                                           65519.,
                                           65520.,
                                           1e-7,
                                           2147483648.0,
                                           1e30,
                                           -1e10};
    static const int64_t ints[N_EDGES] = {
        0,   1,   -1,   2,   -2,  3,     7,      -7,    31,        32,        33,         63,        64,
        127, 128, -128, 255, 256, 32767, -32768, 65535, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN};
    if (is_float(s))
        return float_bits(s, floats[k]);
    return s == S_BOOL ? k & 1 : masked(s, (uint64_t)ints[k]);
}

/* Operand number `which` of thread k. */
static uint64_t operand(enum scalar s, unsigned which, unsigned k)
{
    if (k < N_EDGES * N_EDGES)
        return edge(s, which == 0 ? k / N_EDGES : which == 1 ? k % N_EDGES : (k * 7 + 3) % N_EDGES);
    const uint64_t r = next_random();
    if (is_float(s) && k % 2)
        return float_bits(s, (double)(int64_t)r / 0x1p58);
    const unsigned near = s == S_U64 ? 24 : 0; /* magnitudes of all sizes */
    return masked(s, k % 3 ? r >> (k % 7 ? 0 : r % (40 + near)) : r & 7);
}

/* ---- a kernel being written ------------------------------------------------------------------------------------- */

enum { MAX_OUT = 1200 };
struct kernel {
    struct ir_module *m;
    struct ir_builder b;
    uint32_t f, in[4], out, i, group; /* parameters; in[3] is u32 */
    enum scalar s;
    uint32_t part; /* of the output */
    enum scalar type[MAX_OUT];
    char what[MAX_OUT][56];
};

static void kernel_begin(struct kernel *k, enum scalar s)
{
    memset(k, 0, sizeof *k);
    k->s = s;
    k->m = ir_module_new(&mem);
    k->f = ir_func(k->m, ir_string(k->m, "k"), true, TYPE_VOID, 0);
    for (unsigned j = 0; j < 5; j++) {
        const char name[2] = {"abcno"[j], 0};
        const struct param p = {.name = ir_string(k->m, name),
                                .type = TYPE_POINTER(SPACE_DEVICE),
                                .elem = j < 3    ? (ir_type)s
                                        : j == 3 ? TYPE_U32
                                                 : TYPE_U64,
                                .kind = PARAM_BUFFER};
        const uint32_t id = ir_param(k->m, k->f, &p);
        *(j < 4 ? &k->in[j] : &k->out) = id;
    }
    k->i = ir_param(k->m, k->f,
                    &(struct param){.name = ir_string(k->m, "i"),
                                    .type = TYPE_U32,
                                    .kind = PARAM_ATTRIBUTE,
                                    .attribute = ATTR_THREAD_POSITION_IN_GRID});
    k->group = ir_param(k->m, k->f,
                        &(struct param){.name = ir_string(k->m, "g"),
                                        .type = TYPE_U32,
                                        .kind = PARAM_ATTRIBUTE,
                                        .attribute = ATTR_THREADGROUP_POSITION_IN_GRID});
    k->b = (struct ir_builder){.m = k->m, .func = k->f, .region = k->m->funcs.at[k->f].region};
}

/* Stores a scalar where comparison finds it. */
static void keep(struct kernel *k, uint32_t x, const char *what, const char *mix)
{
    const enum scalar s = ir_type_scalar(ir_at(k->m, x)->type);
    if (k->part == MAX_OUT) {
        CHECK_FAIL_("no room for %s", what);
        return;
    }
    k->type[k->part] = s;
    (void)snprintf(k->what[k->part], sizeof k->what[0], "%s %s (%s)", what, scalar_info[s].name, mix);
    const uint32_t at = ir_op2(&k->b, OP_ADD, k->i, ir_const(k->m, TYPE_U32, k->part++ * N));
    ir_store(&k->b, ir_index(&k->b, TYPE_U64, k->out, at), x);
}

/* All scalars of a value. */
static void keep_all(struct kernel *k, uint32_t x, const char *what, const char *mix)
{
    const ir_type t = ir_at(k->m, x)->type;
    if (ir_type_at(k->m, t)->kind == TYPE_KIND_SCALAR) {
        keep(k, x, what, mix);
        return;
    }
    for (uint64_t j = 0; j < ir_type_parts(k->m, t); j++)
        keep_all(k, ir_node(&k->b, OP_EXTRACT, ir_type_part(k->m, t, j), 1, &x, 0, j), what, mix);
}

enum shape_of { VARYING, UNIFORM, LINEAR, CONSTANT, N_SHAPES };
static const char shape_letter[N_SHAPES + 1] = "vulc";

/* Operand `which` of type s in a shape. Buffer 3 holds u32, the others k->s. */
static uint32_t value(struct kernel *k, unsigned which, enum scalar s, enum shape_of shape)
{
    const enum scalar from = which == 3 ? S_U32 : k->s;
    uint32_t x;
    if (shape == CONSTANT)
        return ir_const(k->m, (ir_type)s, edge(s, (unsigned)(next_random() % N_EDGES)));
    if (shape == LINEAR) {
        x = ir_op2(&k->b, OP_ADD, k->i, ir_const(k->m, TYPE_U32, which * 3u));
        return s == S_U32 ? x : ir_node(&k->b, OP_CONVERT, (ir_type)s, 1, &x, 0, 0);
    }
    uint32_t at = k->i;
    if (shape == UNIFORM)
        at = ir_op2(&k->b, OP_ADD, ir_op2(&k->b, OP_MUL, k->group, ir_const(k->m, TYPE_U32, 19)),
                    ir_const(k->m, TYPE_U32, which * 5));
    x = ir_load(&k->b, (ir_type)from, ir_index(&k->b, (ir_type)from, k->in[which], at));
    return from == s ? x : ir_node(&k->b, OP_CONVERT, (ir_type)s, 1, &x, 0, 0);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static char data[4][N * 8];
static char *want, *got;

static void interpret(const struct kernel *k, size_t size)
{
    const struct interp_arg args[] = {{data[0], sizeof data[0]},
                                      {data[1], sizeof data[1]},
                                      {data[2], sizeof data[2]},
                                      {data[3], sizeof data[3]},
                                      {want, size}};
    const struct interp_launch l = {.threads = {N, 1, 1}, .threadgroup = {GROUP, 1, 1}, .args = args};
    struct interp_program *p = NULL;
    CHECK_EQ(interp_compile(&mem, k->m, k->f, &p, &error), SK_OK);
    CHECK_EQ(interp_run(p, &l, &mem, &error), SK_OK);
    interp_free(p);
}

static sk_status on_cpu(const struct kernel *k, uint32_t width, enum llvm_effort effort, size_t size)
{
    const char *const name = "spork_kernel";
    struct cpu_variant v = {.opt = {.dims = {GROUP, 1, 1}, .width = width, .features = features}, .stack = 1 << 18};
    void *found = NULL;
    struct buf text;
    char *bytes;
    size_t n;
    buf_init(&text, &mem);
    TRY(cpu_lower(&mem, k->m, k->f, &v.opt, &text, &v.lowered, &error));
    if (v.lowered.interpret)
        CHECK_FAIL_("interpret: %s", v.lowered.interpret);
    if (getenv("SHOW"))
        printf("%s\n", buf_text(&text));
    CHECK_EQ(v.lowered.width, width);
    TRY(llvm_compile(llvm, buf_text(&text), text.n, effort, LLVM_OBJECT, &mem, &bytes, &n, &error));
    const sk_status loaded = object_load(bytes, n, &name, 1, &found, &v.code, &error);
    mem_free(&mem, bytes, n);
    buf_free(&text);
    TRY(loaded);
    memcpy(&v.kernel, &found, sizeof v.kernel);
    const sk_arg args[] = {{.data = data[0], .size = sizeof data[0]},
                           {.data = data[1], .size = sizeof data[1]},
                           {.data = data[2], .size = sizeof data[2]},
                           {.data = data[3], .size = sizeof data[3]},
                           {.data = got, .size = size}};
    static const uint8_t is_value[5];
    const struct cpu_grid g = {.kernel = "k",
                               .whole = &v,
                               .threads = {N, 1, 1},
                               .group = {GROUP, 1, 1},
                               .args = args,
                               .is_value = is_value,
                               .n_args = 5,
                               .workers = 1};
    const sk_status st = cpu_run(&g, &mem, &error);
    object_unload(&v.code);
    cpu_lowered_free(&mem, &v.lowered);
    return st;
}

static bool is_nan(enum scalar s, uint64_t x)
{
    const uint64_t inf = float_bits(s, (double)INFINITY);
    return is_float(s) && (x & (masked(s, ~(uint64_t)0) >> 1)) > inf;
}

static void compare(const struct kernel *k, uint32_t width)
{
    for (uint32_t p = 0; p < k->part; p++) {
        unsigned wrong = 0;
        for (uint32_t j = 0; j < N; j++) {
            uint64_t a, b, in[3] = {0};
            memcpy(&a, want + ((size_t)p * N + j) * 8, 8);
            memcpy(&b, got + ((size_t)p * N + j) * 8, 8);
            check_count++;
            const enum scalar s = k->type[p];
            if (a == b || (is_nan(s, a) && is_nan(s, b)) || wrong++)
                continue;
            for (unsigned w = 0; w < 3; w++)
                memcpy(&in[w], data[w] + j * scalar_info[k->s].bytes, scalar_info[k->s].bytes);
            CHECK_FAIL_("%s, operands %s, width %u, thread %u: %#" PRIx64 ", not %#" PRIx64 " (of %#" PRIx64
                        ", %#" PRIx64 ", %#" PRIx64 ")",
                        k->what[p], scalar_info[k->s].name, width, j, b, a, in[0], in[1], in[2]);
        }
    }
}

static void kernel_end(struct kernel *k, unsigned n_widths, const uint32_t *widths)
{
    const size_t size = (size_t)(k->part ? k->part : 1) * N * 8;
    if (ir_verify(k->m, &error) != SK_OK)
        CHECK_FAIL_("%s: %s", error.name, error.message);
    if (k->part == 0) {
        ir_module_free(k->m);
        return;
    }
    for (unsigned j = 0; j < 4; j++) {
        const enum scalar s = j == 3 ? S_U32 : k->s;
        for (unsigned t = 0; t < N; t++) {
            const uint64_t x = j == 3 ? next_random() % (t % 3 ? 5 : 48) - (t % 17 == 0) * 2u : operand(s, j, t);
            memcpy(data[j] + t * scalar_info[s].bytes, &x, scalar_info[s].bytes);
        }
    }
    want = calloc(1, size);
    got = malloc(size);
    interpret(k, size);
    for (unsigned w = 0; w < n_widths; w++) {
        memset(got, 0, size);
        if (on_cpu(k, widths[w], full ? LLVM_FULL : LLVM_QUICK, size) != SK_OK)
            CHECK_FAIL_("%s: %s", error.name, error.message);
        sk_error_clear(&error);
        compare(k, widths[w]);
    }
    free(want);
    free(got);
    ir_module_free(k->m);
}

#define STEP 3u

static const uint32_t *two_widths(unsigned pick, unsigned round)
{
    static const uint32_t widths[][2] = {{1, 32}, {32, 8}, {16, 32}, {32, 4}};
    return widths[(pick + round) % 4];
}

/* ---- elementwise operations ------------------------------------------------------------------------------------- */

/* Rows of floats that have more to them are in cpu_math.c. */
static bool is_simple(enum op op)
{
    return !op_info[op].math || op == OP_ABS || op == OP_MIN || op == OP_MAX || op == OP_CLAMP || op == OP_FMA ||
           op == OP_FLOOR || op == OP_SQRT || op == OP_FABS;
}

static void test_elementwise(enum scalar s, unsigned round)
{
    struct kernel *const k = malloc(sizeof *k);
    kernel_begin(k, s);
    for (unsigned op = 1; op < OP_COUNT; op++) {
        const struct op_info *const info = &op_info[op];
        const bool wanted = info->rule == RULE_SAME || info->rule == RULE_COMPARE || info->rule == RULE_SHIFT;
        if (!wanted || !(info->classes & scalar_info[s].class_) || !is_simple((enum op)op))
            continue;
        for (unsigned again = 0; again < 2; again++) {
            char mix[4] = {0};
            uint32_t in[3];
            for (unsigned j = 0; j < (unsigned)info->n; j++) {
                static const uint8_t pairs[16] = {0x00, 0x01, 0x10, 0x03, 0x23, 0x21, 0x22, 0x12,
                                                  0x11, 0x30, 0x02, 0x20, 0x13, 0x23, 0x03, 0x00};
                const unsigned pick = pairs[(op * 2 + round * 5 + again * 7) % 16];
                const enum shape_of shape = j == 2 ? (enum shape_of)((op + round) % N_SHAPES)
                                            : j    ? pick & 3
                                                   : pick >> 4;
                const enum scalar t =
                    j == 1 && info->rule == RULE_SHIFT ? (enum scalar)(S_I8 + (op + round + again) % 8) : s;
                in[j] = value(k, j, t, shape);
                mix[j] = shape_letter[shape];
            }
            const ir_type t = info->rule == RULE_COMPARE ? TYPE_BOOL : (ir_type)s;
            keep(k, ir_node(&k->b, (enum op)op, t, (unsigned)info->n, in, 0, 0), info->name, mix);
        }
    }
    kernel_end(k, 2, two_widths(s, round));
    free(k);
}

static void test_convert(enum scalar s, unsigned round)
{
    struct kernel *const k = malloc(sizeof *k);
    kernel_begin(k, s);
    for (unsigned shape = 0; shape < N_SHAPES; shape++) {
        const char mix[2] = {shape_letter[shape], 0};
        for (unsigned to = S_BOOL; to < S_COUNT; to++) {
            const uint32_t x = value(k, 0, s, (enum shape_of)shape);
            keep(k, ir_node(&k->b, OP_CONVERT, (ir_type)to, 1, &x, 0, 0), "convert", mix);
            if (s == S_BOOL || to == S_BOOL || scalar_info[s].bytes != scalar_info[to].bytes)
                continue;
            keep(k, ir_node(&k->b, OP_BITCAST, (ir_type)to, 1, &x, 0, 0), "bitcast", mix);
            if (shape != VARYING)
                continue;
            /* NaNs that arithmetic makes have one form, those that only move keep theirs. */
            const uint32_t sum = ir_op2(&k->b, OP_ADD, x, value(k, 1, s, VARYING)), minus = ir_op1(&k->b, OP_NEG, x);
            keep(k, ir_node(&k->b, OP_BITCAST, (ir_type)to, 1, &sum, 0, 0), "bitcast of a sum", mix);
            keep(k, ir_node(&k->b, OP_BITCAST, (ir_type)to, 1, &minus, 0, 0), "bitcast of neg", mix);
            const uint32_t own = ir_node(&k->b, OP_CONVERT, (ir_type)s, 1, &x, 0, 0);
            keep(k, ir_node(&k->b, OP_BITCAST, (ir_type)to, 1, &own, 0, 0), "bitcast of convert", mix);
        }
    }
    kernel_end(k, 2, two_widths(s, round));
    free(k);
}

/* ---- vectors, structs, arrays ------------------------------------------------------------------------------------ */

static uint32_t make(struct kernel *k, ir_type t, unsigned n, unsigned seed)
{
    uint32_t in[48];
    for (unsigned j = 0; j < n; j++)
        in[j] = value(k, j % 3, ir_type_scalar(ir_type_part(k->m, t, j)),
                      seed ? (enum shape_of)((j * 5 + seed) % N_SHAPES) : UNIFORM);
    return ir_node(&k->b, OP_MAKE, t, n, in, 0, 0);
}

static void test_at(struct kernel *k, uint32_t whole, uint32_t part, const char *what)
{
    const ir_type t = ir_at(k->m, whole)->type, p = ir_at(k->m, part)->type;
    static const enum scalar index_type[] = {S_U32, S_I32, S_I8, S_U64, S_I64, S_U16};
    for (unsigned j = 0; j < 6; j++) {
        const enum shape_of shape = (enum shape_of)(j % N_SHAPES);
        const uint32_t index =
            shape == CONSTANT ? ir_const(k->m, (ir_type)index_type[j], 2) : value(k, 3, index_type[j], shape);
        const char mix[2] = {shape_letter[shape], 0};
        keep_all(k, ir_node(&k->b, OP_EXTRACT_AT, p, 2, (const uint32_t[]){whole, index}, 0, 0), what, mix);
        if (ir_type_parts(k->m, t) < 8)
            keep_all(k, ir_node(&k->b, OP_INSERT_AT, t, 3, (const uint32_t[]){whole, part, index}, 0, 0), what, mix);
    }
}

static void vectors(struct kernel *k, unsigned n)
{
    const ir_type t = ir_type_vector(k->s, n);
    const uint32_t a = make(k, t, n, n), b = make(k, t, n, 0), x = value(k, 2, k->s, VARYING);
    keep_all(k, a, "make", "");
    keep_all(k, ir_node(&k->b, OP_SPLAT, t, 1, &x, 0, 0), "splat", "");
    keep_all(k, ir_node(&k->b, OP_INSERT, t, 2, (const uint32_t[]){a, x}, 0, n - 1), "insert", "");
    keep_all(k,
             ir_node(&k->b, OP_SHUFFLE, t, 2, (const uint32_t[]){a, b}, 0,
                     n == 2   ? 0x41
                     : n == 3 ? 0x520
                              : 0x3740),
             "shuffle", "");
    const uint32_t eq = ir_op2(&k->b, OP_EQ, a, b), one = ir_op2(&k->b, OP_EQ, x, value(k, 1, k->s, UNIFORM));
    keep_all(k, eq, "eq", "");
    keep_all(k, ir_op3(&k->b, OP_SELECT, eq, a, b), "select", "");
    keep_all(k, ir_op3(&k->b, OP_SELECT, one, a, b), "select", "one");
    test_at(k, a, x, "vector");
    test_at(k, b, x, "uniform vector");
}

static void casts(struct kernel *k, unsigned n)
{
    const uint32_t a = make(k, ir_type_vector(k->s, n), n, n);
    for (unsigned to = S_I8; to < S_COUNT && k->s != S_BOOL; to++) {
        const unsigned bytes = n * scalar_info[k->s].bytes, each = scalar_info[to].bytes;
        if (bytes % each || bytes / each > 4)
            continue;
        keep_all(k, ir_node(&k->b, OP_BITCAST, ir_type_vector((enum scalar)to, bytes / each), 1, &a, 0, 0), "bitcast",
                 "");
    }
}

static void structs(struct kernel *k)
{
    const struct field fields[] = {{.name = ir_string(k->m, "x"), .type = (ir_type)k->s},
                                   {.name = ir_string(k->m, "y"), .type = ir_type_vector(S_F32, 2)},
                                   {.name = ir_string(k->m, "z"), .type = TYPE_U32}};
    const ir_type record = ir_type_struct(k->m, ir_string(k->m, "r"), 3, fields);
    const uint32_t y = make(k, fields[1].type, 2, 1), x = value(k, 0, k->s, VARYING);
    const uint32_t r = ir_node(&k->b, OP_MAKE, record, 3, (const uint32_t[]){x, y, k->i}, 0, 0);
    keep_all(k, ir_node(&k->b, OP_INSERT, record, 2, (const uint32_t[]){r, k->group}, 0, 2), "struct", "");
    const uint32_t odd = ir_node(&k->b, OP_CONVERT, TYPE_BOOL, 1, &x, 0, 0);
    keep_all(k, ir_op3(&k->b, OP_SELECT, odd, r, ir_zero(k->m, record)), "struct", "select");
    const ir_type three = ir_type_array(k->m, record, 3);
    test_at(k, ir_node(&k->b, OP_MAKE, three, 3, (const uint32_t[]){r, ir_zero(k->m, record), r}, 0, 0), r, "structs");
    const uint32_t low = ir_op2(&k->b, OP_AND, value(k, 3, S_U32, VARYING), ir_const(k->m, TYPE_U32, 63));
    const uint32_t p = ir_index(&k->b, TYPE_U32, k->in[3], k->i), q = ir_index(&k->b, TYPE_U32, k->in[3], low);
    const uint32_t far = ir_op3(&k->b, OP_SELECT, odd, p, q);
    keep(k, ir_load(&k->b, TYPE_U32, far), "pointer", "select");
    keep(k, ir_op2(&k->b, OP_EQ, far, p), "pointer", "eq");
    keep(k, ir_op2(&k->b, OP_NE, p, q), "pointer", "ne");
    keep(k, ir_op2(&k->b, OP_EQ, k->in[0], k->in[3]), "pointer", "other");
}

static void arrays(struct kernel *k, unsigned seed)
{
    const ir_type many = ir_type_array(k->m, (ir_type)k->s, 40);
    test_at(k, make(k, many, 40, seed), value(k, 0, k->s, VARYING), seed ? "array" : "uniform array");
}

static void test_parts(enum scalar s, unsigned round)
{
    for (unsigned what = 0; what < 9; what++) {
        struct kernel *const k = malloc(sizeof *k);
        kernel_begin(k, s);
        if (what < 3)
            vectors(k, what + 2);
        else if (what < 6)
            casts(k, what - 1);
        else if (what < 8)
            arrays(k, what - 6);
        else
            structs(k);
        kernel_end(k, 2, two_widths(s + what, round));
        free(k);
    }
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* Those from `first` to before `end`. */
static void collectives(struct kernel *k, unsigned first, unsigned end)
{
    for (unsigned op = first; op < end; op++) {
        const struct op_info *const info = &op_info[op];
        if (info->n == 0) {
            const ir_type t = op == OP_SIMD_ACTIVE || op == OP_QUAD_ACTIVE ? TYPE_U64 : TYPE_BOOL;
            keep(k, ir_node(&k->b, (enum op)op, t, 0, NULL, 0, 0), info->name, "");
            continue;
        }
        if (!(info->classes & scalar_info[k->s].class_))
            continue;
        for (unsigned shape = 0; shape < 3; shape++) {
            uint32_t in[3] = {value(k, 0, k->s, (enum shape_of)shape), 0, 0};
            if (info->rule != RULE_LANES || info->n == 1) {
                const bool ballot = op == OP_SIMD_BALLOT || op == OP_QUAD_BALLOT;
                const ir_type t = info->rule == RULE_LANES ? (ir_type)k->s : ballot ? TYPE_U64 : TYPE_BOOL;
                keep(k, ir_node(&k->b, (enum op)op, t, 1, in, 0, 0), info->name,
                     shape == 0   ? "v"
                     : shape == 1 ? "u"
                                  : "l");
                continue;
            }
            static const int constants[] = {0, 1, 3, 4, 17, 31, 32, 40, 64, -1};
            for (unsigned j = 0; j < 13; j++) {
                static const enum scalar type[] = {S_U32, S_I32, S_U16, S_I8, S_U64, S_I64};
                const enum scalar t = type[(j + op) % 6];
                const enum shape_of how = j < 10 ? CONSTANT : (enum shape_of)(j % 3);
                if (j < 10 ? (j + op + k->s) % (shape ? 10 : 3) != 0 : shape && j != 10 + shape)
                    continue;
                const uint32_t lane =
                    j < 10 ? ir_const(k->m, (ir_type)t, (uint64_t)(int64_t)constants[j]) : value(k, 3, t, how);
                char mix[16];
                (void)snprintf(mix, sizeof mix, "%c, %c %d", shape_letter[shape], shape_letter[how],
                               j < 10 ? constants[j] : 0);
                in[1] = info->n == 3 ? value(k, 1, k->s, VARYING) : lane;
                in[2] = lane;
                keep(k, ir_node(&k->b, (enum op)op, (ir_type)k->s, (unsigned)info->n, in, 0, 0), info->name, mix);
            }
        }
    }
}

/* inside: in a branch that not all lanes take. LLVM's time grows faster than a kernel: some operations at a time. */
static void test_collectives(enum scalar s, bool quad, bool inside)
{
    static const uint32_t quads[] = {4, 8, 16, 32};
    const unsigned first = quad ? OP_QUAD_SUM : OP_SIMD_SUM, end = 1u + (quad ? OP_QUAD_ACTIVE : OP_SIMD_ACTIVE);
    for (unsigned op = first; op < end; op += STEP) {
        struct kernel *const k = malloc(sizeof *k);
        kernel_begin(k, s);
        if (inside) {
            const uint32_t pick = ir_op2(&k->b, OP_AND, value(k, 3, S_U32, VARYING), ir_const(k->m, TYPE_U32, 1));
            const uint32_t c = ir_node(&k->b, OP_CONVERT, TYPE_BOOL, 1, &pick, 0, 0);
            const uint32_t branch = ir_construct(&k->b, OP_IF, 1, &c, 2);
            k->b.region = ir_region(k->m, branch, 0);
        }
        collectives(k, op, op + STEP < end ? op + STEP : end);
        kernel_end(k, 1, quad ? &quads[(op / STEP + s) % 4] : &quads[3]);
        free(k);
    }
}

/* ----------------------------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
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
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned k = S_BOOL; k < S_COUNT; k++) {
            const enum scalar s = (enum scalar)k;
            full = round % 2 == 1;
            const bool more = rounds > 1 || k % 4 == 0;
#if defined(__x86_64__)
            const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
            features = avx512 && (round + k / 3) % 2 == 0 ? CPU_AVX512 : 0;
#endif
            test_elementwise(s, round);
            test_convert(s, round);
            if (!more)
                continue;
            test_parts(s, round);
            test_collectives(s, false, (k + round) % 2);
            test_collectives(s, true, (k + round) % 2 == 0);
        }
    }
    llvm_close(llvm);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
