/* cpu_simd.c - collectives on the CPU against the interpreter, bit for bit (NaNs are one value): every one on every type, in
 * threadgroups of 1 to 64 threads, hence in simdgroups that are full, partial or of one lane, and under masks drawn anew for each
 * simdgroup, hence all 16 of a quadgroup. Lane numbers, deltas and masks are of every integer type, varying, uniform and
 * constant, within and past both ends.
 *
 * `cpu_simd N`: N rounds of other operands. Few kernels, many operations in each: compiling is what takes time.
 */
#include "check.h"
#include "cpu/launch.h"
#include "interp/interp.h"
#include "llvm/llvm.h"

#include <stdlib.h>

#define GROUPS 20u
#define MOST (64u * GROUPS) /* threads */
#define MAX_OUT 400u

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

static uint64_t float_bits(enum scalar s, double x)
{
    return s == S_F16 ? f16_from_f64(x) : s == S_BF16 ? bf16_from_f64(x) : bits_f32((float)x);
}

static uint64_t some_value(enum scalar s)
{
    static const double floats[] = {0.0, -0.0, 1.0, -1.5, 3.25, 1e-4, 65504.0, 1e-8, -0.1};
    const uint64_t r = next_random();
    if (!is_float(s))
        return r % 3 == 0   ? masked(s, r >> 32 & 7)
               : r % 7 == 1 ? masked(s, UINT64_MAX << (r >> 8 & 63))
                            : masked(s, r >> 3);
    switch (r % 64) {
    case 0: return float_bits(s, (double)INFINITY);
    case 1: return float_bits(s, -(double)INFINITY);
    case 2: return masked(s, UINT64_MAX); /* a NaN with a sign and bits of its own */
    case 3: return 1;                     /* the smallest denormal */
    }
    if (r % 4 == 0)
        return float_bits(s, floats[(r >> 8) % (sizeof floats / sizeof *floats)]);
    return float_bits(s, (double)(int64_t)next_random() / 0x1p61);
}

/* Lane numbers, deltas and masks. */
static uint64_t some_lane(void)
{
    static const int64_t odd[] = {-1,
                                  -2,
                                  -32,
                                  31,
                                  32,
                                  33,
                                  63,
                                  64,
                                  65,
                                  95,
                                  96,
                                  126,
                                  127,
                                  128,
                                  255,
                                  INT32_MAX,
                                  INT32_MIN,
                                  UINT32_MAX,
                                  INT64_MAX,
                                  INT64_MIN,
                                  (int64_t)1 << 32,
                                  ((int64_t)1 << 32) + 3,
                                  256,
                                  65536,
                                  65539};
    const uint64_t r = next_random();
    return r % 3 ? r >> 8 & (r % 5 ? 31 : 3) : (uint64_t)odd[(r >> 8) % (sizeof odd / sizeof *odd)];
}

/* ---- a kernel --------------------------------------------------------------------------------------------------- */

enum { B_VALUE, B_FILL, B_LANE, B_MASK, B_OUT, N_BUFFERS }; /* of the type, of the type, u64, u32, u64 */

struct kernel {
    struct ir_module *m;
    struct ir_builder b;
    uint32_t f, buffer[N_BUFFERS], i, group, lane, total;
    enum scalar s;
    uint32_t part;
    enum scalar type[MAX_OUT];
    char what[MAX_OUT][72];
};

static uint32_t attribute(struct kernel *k, const char *name, enum attribute a)
{
    const struct param p = {
        .name = ir_string(k->m, name), .type = TYPE_U32, .kind = PARAM_ATTRIBUTE, .attribute = (uint8_t)a};
    return ir_param(k->m, k->f, &p);
}

static struct kernel *kernel_begin(enum scalar s)
{
    struct kernel *const k = calloc(1, sizeof *k);
    const ir_type elem[] = {(ir_type)s, (ir_type)s, TYPE_U64, TYPE_U32, TYPE_U64};
    k->s = s;
    k->m = ir_module_new(&mem);
    k->f = ir_func(k->m, ir_string(k->m, "k"), true, TYPE_VOID, 0);
    for (unsigned j = 0; j < N_BUFFERS; j++) {
        const char name[2] = {"abcmo"[j], 0};
        const struct param p = {
            .name = ir_string(k->m, name), .type = TYPE_POINTER(SPACE_DEVICE), .elem = elem[j], .kind = PARAM_BUFFER};
        k->buffer[j] = ir_param(k->m, k->f, &p);
    }
    k->i = attribute(k, "i", ATTR_THREAD_POSITION_IN_GRID);
    k->group = attribute(k, "g", ATTR_THREADGROUP_POSITION_IN_GRID);
    k->lane = attribute(k, "l", ATTR_THREAD_INDEX_IN_SIMDGROUP);
    k->b = (struct ir_builder){.m = k->m, .func = k->f, .region = k->m->funcs.at[k->f].region};
    return k;
}

static uint32_t load(struct kernel *k, unsigned buffer, uint32_t at)
{
    const ir_type t = buffer < B_LANE ? (ir_type)k->s : buffer == B_MASK ? TYPE_U32 : TYPE_U64;
    return ir_load(&k->b, t, ir_index(&k->b, t, k->buffer[buffer], at));
}

/* The rest of the kernel runs where the mask of the simdgroup has a bit for the lane. */
static void under_masks(struct kernel *k)
{
    const uint32_t bits = load(k, B_MASK, ir_op2(&k->b, OP_SHR, k->i, ir_const(k->m, TYPE_U32, 5)));
    const uint32_t bit = ir_op2(&k->b, OP_AND, ir_op2(&k->b, OP_SHR, bits, k->lane), ir_const(k->m, TYPE_U32, 1));
    const uint32_t on = ir_op2(&k->b, OP_NE, bit, ir_const(k->m, TYPE_U32, 0));
    const uint32_t branch = ir_construct(&k->b, OP_IF, 1, &on, 2);
    k->b.region = ir_region(k->m, branch, 0);
}

static void keep(struct kernel *k, uint32_t x, const char *what, const char *mix)
{
    const enum scalar s = ir_type_scalar(ir_at(k->m, x)->type);
    if (k->part == MAX_OUT) {
        CHECK_FAIL_("no room for %s", what);
        return;
    }
    k->type[k->part] = s;
    (void)snprintf(k->what[k->part], sizeof k->what[0], "%s %s%s", what, scalar_info[s].name, mix);
    const uint32_t at = ir_op2(&k->b, OP_ADD, k->i, ir_const(k->m, TYPE_U32, k->part++ * MOST));
    ir_store(&k->b, ir_index(&k->b, TYPE_U64, k->buffer[B_OUT], at), x);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

enum operand_shape { VARYING, UNIFORM, LINEAR, N_SHAPES };
static const char *const shape_name[] = {"", " of a uniform", " of a linear"};

static uint32_t value(struct kernel *k, enum operand_shape shape)
{
    if (shape == LINEAR)
        return ir_convert(&k->b, (ir_type)k->s, k->i);
    return load(k, B_VALUE, shape == UNIFORM ? k->group : k->i);
}

static bool moves(enum op op) /* takes a lane number, delta or mask */
{
    return op_info[op].rule == RULE_LANES && op_info[op].n > 1;
}

/* Everything but what moves values. */
static void combines(struct kernel *k, bool quad, enum operand_shape shape)
{
    for (unsigned op = quad ? OP_QUAD_SUM : OP_SIMD_SUM, last = quad ? OP_QUAD_ACTIVE : OP_SIMD_ACTIVE; op <= last;
         op++) {
        const struct op_info *const info = &op_info[op];
        const bool mask = op == OP_SIMD_ACTIVE || op == OP_QUAD_ACTIVE || op == OP_SIMD_BALLOT || op == OP_QUAD_BALLOT;
        if (moves((enum op)op) || (info->n == 0 && shape) || (info->n && !(info->classes & scalar_info[k->s].class_)))
            continue;
        const uint32_t x = info->n ? value(k, shape) : 0;
        const ir_type t = mask ? TYPE_U64 : info->rule == RULE_LANES ? (ir_type)k->s : TYPE_BOOL;
        keep(k, ir_node(&k->b, (enum op)op, t, (unsigned)info->n, &x, 0, 0), info->name, shape_name[shape]);
    }
}

static void move(struct kernel *k, unsigned op, uint32_t lane, enum operand_shape shape, const char *mix)
{
    const bool fills = op_info[op].n == 3;
    const uint32_t in[3] = {value(k, shape), fills ? load(k, B_FILL, k->i) : lane, lane};
    keep(k, ir_node(&k->b, (enum op)op, (ir_type)k->s, (unsigned)op_info[op].n, in, 0, 0), op_info[op].name, mix);
}

enum { LANES_VARYING, LANES_UNIFORM, LANES_CONSTANT };

/* What moves values, the lane numbers being of that type; of constant ones one in `few`. */
static void moving(struct kernel *k, bool quad, enum scalar t, int lanes, unsigned few, enum operand_shape shape)
{
    static const int64_t constants[] = {0, 1, 2, 3, 5, 16, 31, 32, 33, 47, 63, 64, 96, 127, -1, -3, -128};
    for (unsigned op = quad ? OP_QUAD_SUM : OP_SIMD_SUM, last = quad ? OP_QUAD_ACTIVE : OP_SIMD_ACTIVE; op <= last;
         op++) {
        char mix[48];
        if (!moves((enum op)op))
            continue;
        if (lanes != LANES_CONSTANT) {
            (void)snprintf(mix, sizeof mix, "%s by %s %s", shape_name[shape], lanes ? "uniform" : "varying",
                           scalar_info[t].name);
            const uint32_t wide = load(k, B_LANE, lanes ? k->group : k->i);
            move(k, op, ir_convert(&k->b, (ir_type)t, wide), shape, mix);
            continue;
        }
        for (unsigned j = 0; j < sizeof constants / sizeof *constants; j++) {
            if (j % few != op % few || (shape && j / few % 4 != op % 4))
                continue;
            (void)snprintf(mix, sizeof mix, "%s by %lld %s", shape_name[shape], (long long)constants[j],
                           scalar_info[t].name);
            move(k, op, ir_const(k->m, (ir_type)t, (uint64_t)constants[j]), shape, mix);
        }
    }
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static char data[N_BUFFERS - 1][MOST * 8];
static char *want, *got;
static size_t out_bytes;

static void draw(const struct kernel *k)
{
    for (unsigned t = 0; t < MOST; t++) {
        for (unsigned j = 0; j < 2; j++) {
            const uint64_t x = k->s == S_BOOL ? next_random() >> 7 & 1 : some_value(k->s);
            memcpy(data[j] + t * scalar_info[k->s].bytes, &x, scalar_info[k->s].bytes);
        }
        const uint64_t lane = some_lane();
        memcpy(data[B_LANE] + t * 8, &lane, 8);
        const uint64_t r = next_random();
        const uint32_t mask = t % 4 == 0 ? (uint32_t)1 << (r & 31) : t % 4 == 1 ? (uint32_t)(r & r >> 32) : (uint32_t)r;
        memcpy(data[B_MASK] + t * 4, &mask, 4);
    }
}

static void interpret(const struct interp_program *p, uint32_t group)
{
    struct interp_arg args[N_BUFFERS];
    for (unsigned j = 0; j < N_BUFFERS; j++)
        args[j] = j == B_OUT ? (struct interp_arg){want, out_bytes} : (struct interp_arg){data[j], sizeof data[j]};
    const struct interp_launch l = {.threads = {group * GROUPS, 1, 1}, .threadgroup = {group, 1, 1}, .args = args};
    memset(want, 0x5a, out_bytes);
    if (interp_run(p, &l, &mem, &error) != SK_OK)
        CHECK_FAIL_("%s", error.message);
    sk_error_clear(&error);
}

static void run(const struct cpu_variant *v, uint32_t group)
{
    static const uint8_t is_value[N_BUFFERS];
    sk_arg args[N_BUFFERS];
    for (unsigned j = 0; j < N_BUFFERS; j++)
        args[j] =
            j == B_OUT ? (sk_arg){.data = got, .size = out_bytes} : (sk_arg){.data = data[j], .size = sizeof data[j]};
    const struct cpu_grid g = {.kernel = "k",
                               .whole = v,
                               .threads = {group * GROUPS, 1, 1},
                               .group = {group, 1, 1},
                               .args = args,
                               .is_value = is_value,
                               .n_args = N_BUFFERS,
                               .workers = 1};
    memset(got, 0x5a, out_bytes);
    if (cpu_run(&g, &mem, &error) != SK_OK)
        CHECK_FAIL_("%s", error.message);
    sk_error_clear(&error);
}

static bool is_nan(enum scalar s, uint64_t x)
{
    return is_float(s) && (masked(s, x) & (masked(s, UINT64_MAX) >> 1)) > float_bits(s, (double)INFINITY);
}

static void compare(const struct kernel *k, uint32_t group, const char *how)
{
    for (uint32_t p = 0; p < k->part; p++) {
        unsigned wrong = 0;
        for (uint32_t j = 0; j < MOST; j++) {
            uint64_t a, b, lane;
            memcpy(&a, want + ((size_t)p * MOST + j) * 8, 8);
            memcpy(&b, got + ((size_t)p * MOST + j) * 8, 8);
            check_count++;
            if (a == b || (j < group * GROUPS && is_nan(k->type[p], a) && is_nan(k->type[p], b)) || wrong++)
                continue;
            memcpy(&lane, data[B_LANE] + j * 8, 8);
            CHECK_FAIL_("%s, %s, %u threads, thread %u: %#" PRIx64 ", not %#" PRIx64 " (lane %" PRId64 ")", k->what[p],
                        how, group, j, b, a, (int64_t)lane);
        }
    }
}

static bool compile(const struct kernel *k, uint32_t group, unsigned features, struct cpu_variant *v)
{
    const char *const name = "spork_kernel";
    void *found = NULL;
    struct buf text;
    char *bytes = NULL;
    size_t n = 0;
    *v = (struct cpu_variant){.opt = {.dims = {group, 1, 1}, .width = 32, .features = features}, .stack = 1 << 18};
    buf_init(&text, &mem);
    sk_status st = cpu_lower(&mem, k->m, k->f, &v->opt, &text, &v->lowered, &error);
    if (st == SK_OK && getenv("SHOW"))
        printf("%s\n", buf_text(&text));
    if (st == SK_OK)
        st = llvm_compile(llvm, buf_text(&text), text.n, LLVM_QUICK, LLVM_OBJECT, &mem, &bytes, &n, &error);
    buf_free(&text);
    if (st == SK_OK) {
        st = object_load(bytes, n, &name, 1, &found, &v->code, &error);
        mem_free(&mem, bytes, n);
    }
    if (st != SK_OK || !found)
        CHECK_FAIL_("%s: %s", error.name, error.message);
    memcpy(&v->kernel, &found, sizeof found);
    sk_error_clear(&error);
    return found != NULL;
}

static unsigned best_features(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? CPU_AVX512 : 0;
#else
    return 0;
#endif
}

/* Runs it in threadgroups of those sizes, compiled for the size (full 64: nothing is masked) or for any. */
static void kernel_end(struct kernel *k, uint32_t fixed, unsigned features)
{
    static const uint32_t sizes[] = {1, 7, 31, 32, 33, 40, 64};
    struct interp_program *p = NULL;
    struct cpu_variant v;
    out_bytes = (size_t)k->part * MOST * 8;
    want = malloc(out_bytes);
    got = malloc(out_bytes);
    if (ir_verify(k->m, &error) != SK_OK || interp_compile(&mem, k->m, k->f, &p, &error) != SK_OK)
        CHECK_FAIL_("%s: %s", error.name, error.message);
    draw(k);
    if (p && compile(k, fixed, features, &v)) {
        for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            const uint32_t group = fixed ? fixed : sizes[j];
            interpret(p, group);
            run(&v, group);
            compare(k, group, fixed ? "compiled for it" : "compiled for any");
            if (fixed)
                break;
        }
        object_unload(&v.code);
        cpu_lowered_free(&mem, &v.lowered);
    }
    interp_free(p);
    ir_module_free(k->m);
    free(want);
    free(got);
    free(k);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static void test_combining(enum scalar s, uint32_t fixed, bool masks, bool shapes)
{
    struct kernel *const k = kernel_begin(s);
    if (masks)
        under_masks(k);
    for (unsigned quad = 0; quad < 2; quad++)
        for (unsigned shape = 0; shape < (shapes ? N_SHAPES : 1u); shape++)
            combines(k, quad, (enum operand_shape)shape);
    kernel_end(k, fixed, best_features());
}

/* Values of each type, lane numbers of one. */
static void test_moving_types(enum scalar s, uint32_t fixed, bool masks, unsigned features)
{
    struct kernel *const k = kernel_begin(s);
    const enum scalar t = (enum scalar)(S_I8 + s % 8);
    if (masks)
        under_masks(k);
    for (unsigned quad = 0; quad < 2; quad++) {
        moving(k, quad, t, LANES_VARYING, 1, VARYING);
        moving(k, quad, t, LANES_UNIFORM, 1, VARYING);
        moving(k, quad, t, LANES_VARYING, 1, LINEAR);
    }
    kernel_end(k, fixed, features);
}

/* Lane numbers of each type. */
static void test_moving_lanes(bool masks, bool quad, int lanes)
{
    struct kernel *const k = kernel_begin(S_U32);
    if (masks)
        under_masks(k);
    if (lanes == LANES_CONSTANT) {
        for (unsigned shape = 0; shape < N_SHAPES; shape++)
            moving(k, quad, S_I32, lanes, masks ? 4 : 1, (enum operand_shape)shape);
    } else {
        for (unsigned t = S_I8; t <= S_U64; t++)
            moving(k, quad, (enum scalar)t, lanes, 1, t % 3 ? VARYING : (enum operand_shape)(t / 3 % 3));
    }
    kernel_end(k, masks ? 0 : 64, best_features());
}

/* The bits above the lane numbers of each type. */
static void test_constant_types(unsigned round)
{
    struct kernel *const k = kernel_begin(S_I16);
    under_masks(k);
    for (unsigned op = OP_SIMD_SUM; op <= OP_QUAD_ACTIVE; op++)
        for (unsigned t = S_I8; moves((enum op)op) && t <= S_U64; t++)
            if ((op + t + round) % 5 == 0)
                move(k, op, ir_const(k->m, (ir_type)t, t % 2 ? UINT64_MAX - 1 : (uint64_t)INT64_MIN + 2), VARYING,
                     " by a far constant");
    kernel_end(k, 0, best_features());
}

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
        for (unsigned s = S_BOOL; s < S_COUNT; s++) {
            const bool floats = is_float((enum scalar)s);
            test_combining((enum scalar)s, 0, true, rounds > 1 ? !floats : s == S_U16 || s == S_I64);
            if (s == S_F32 || s % 4 == round % 4)
                test_combining((enum scalar)s, 64, false, true);
            /* Values of 1, 8, 16, 32 and 64 bits move in different ways, whatever they are. */
            if (rounds == 1 && s != S_BOOL && s != S_U8 && s != S_BF16 && s != S_F32 && s != S_I64)
                continue;
            if (s % 2 == round % 2 || s == S_F32)
                test_moving_types((enum scalar)s, 0, true, s % 4 == round % 4 ? 0 : best_features());
            else
                test_moving_types((enum scalar)s, 40, false, best_features());
        }
        for (int lanes = LANES_VARYING; lanes <= LANES_CONSTANT; lanes++) {
            test_moving_lanes(((unsigned)lanes + round) % 2 == 0, false, lanes);
            test_moving_lanes(((unsigned)lanes + round) % 2 == 1, true, lanes);
        }
        test_constant_types(round);
    }
    llvm_close(llvm);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
