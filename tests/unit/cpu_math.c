/* cpu_math.c - the functions of math.def as the CPU back end writes them against those of src/ir/math.c: the same bits, for
 * vectors of every width and for scalars; fast forms of the machine's own within their stated error.
 *
 * `cpu_math bench WIDTH` prints the time of each instead, vectors and scalars, in nanoseconds an element, from the first-level
 * cache; `cpu_math NAME WIDTH` compares one function of one operand over every float there is.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "cpu/helpers_math.h"
#include "cpu/lower.h"
#include "cpu/object.h"
#include "ir/math.h"
#include "llvm/llvm.h"

#define COUNT (1u << 21) /* room for operands */
#define STRIDE 4001u     /* of bit patterns; prime */

typedef void kernel_fn(struct cpu_worker *, const float *, const float *, const float *, float *, uint64_t);

struct row {
    const char *name;
    enum op op;
    unsigned arity;
    bool fast, f16; /* f16: operands are of that format */
    unsigned fast_ulp;
    float (*f1)(float);
    float (*f2)(float, float);
    float (*f3)(float, float, float);
};

static float same(float x)
{
    return x;
}

static const struct row rows[] = {
#define ROW_1(ID, name, f, fast, ulp) {name, OP_##ID, 1, fast, .fast_ulp = ulp, .f1 = f},
#define ROW_2(ID, name, f, fast, ulp) {name, OP_##ID, 2, fast, .fast_ulp = ulp, .f2 = f},
#define ROW_3(ID, name, f, fast, ulp) {name, OP_##ID, 3, fast, .fast_ulp = ulp, .f3 = f},
#define FAST_0(ID, name, arity, ulp)
#define FAST_1(ID, name, arity, ulp) ROW_##arity(ID, "fast_" name, math_fast_##ID, true, ulp)
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc)                                               \
    ROW_##arity(ID, name, math_##ID, false, 0) FAST_##fast(ID, name, arity, fast_ulp)
#include "ir/math.def"
#undef MATH
    {"div_floor", OP_DIV_FLOOR, 2, .f2 = math_DIV_FLOOR},
    {"rem_floor", OP_REM_FLOOR, 2, .f2 = math_REM_FLOOR},
    {"fma_odd", OP_NONE, 3, .f3 = math_fma_odd},
    {"fma_odd_f16", OP_NONE, 3, .f3 = math_fma_odd, .f16 = true},
    {"copy", OP_COUNT, 1, .f1 = same}, /* what the loop itself costs */
};
#define ROWS (sizeof rows / sizeof *rows)

/* ---- the module ------------------------------------------------------------------------------------------------- */

/* void NAME.v(worker, a, b, c, out, n): out[i] = f(a[i], b[i], c[i]) for i below n, a multiple of the width; NAME.u: by
 * scalars. With `odd`, only odd lanes are active. */
static void write_kernel(struct lower *l, const struct row *r, bool varying, bool odd)
{
    struct emit *const e = &l->e;
    const char *const shape = odd ? "odd" : varying ? "v" : "u";
    struct val p[5];
    for (unsigned k = 0; k < 5; k++)
        p[k] = e_named(E_PTR, false, e_id(e));
    const struct val n = e_named(E_I64, false, e_id(e));
    l->worker = p[0];
    emit_begin(e, "void @test.%s.%s(ptr %%v%u, ptr %%v%u, ptr %%v%u, ptr %%v%u, ptr noalias %%v%u, i64 %%v%u)", r->name,
               shape, p[0].id, p[1].id, p[2].id, p[3].id, p[4].id, n.id);
    l->mask = odd ? e_from_bits(e, e_i32(0xaaaaaaaau)) : e_true();
    const struct slot i = e_slot(e, E_I64, false);
    const uint32_t loop = e_block(e), body = e_block(e), done = e_block(e);
    char type[24];
    (void)e_type_name(e, E_F32, varying, type);
    e_place(e, loop);
    const struct val at = e_get(e, i);
    e_branch(e, e_cmp(e, "icmp ult", at, n), body, done, ODDS_LIKELY);
    e_place(e, body);
    const struct val offset = e_bin(e, "mul", at, e_i64(4));
    struct val x[3] = {{0}}, y;
    for (unsigned k = 0; k < r->arity; k++) {
        const struct val from = e_gep(e, p[k + 1], offset);
        x[k] = e_named(E_F32, varying, e_id(e));
        e_line(e, "%%v%u = load %s, ptr %%v%u, align 4", x[k].id, type, from.id);
    }
    if (r->op == OP_COUNT)
        y = x[0];
    else if (r->op == OP_NONE)
        y = (r->f16 ? math_fma_odd_f16_lower : math_fma_odd_lower)(l, x[0], x[1], x[2]);
    else
        y = math_lower(l, r->op, r->fast, x[0], x[1], x[2]);
    const struct val to = e_gep(e, p[4], offset);
    e_line(e, "store %s %%v%u, ptr %%v%u, align 4", type, y.id, to.id);
    e_put(e, i, e_bin(e, "add", at, e_i64(varying ? e->width : 1)));
    e_jump(e, loop);
    e_place(e, done);
    e_return(e, "ret void");
    emit_end(e);
}

struct module {
    unsigned width, features;
    struct object_code code;
    kernel_fn *vector[ROWS], *scalar[ROWS], *odd[ROWS]; /* null: not in this module */
};

enum { ALL_ROWS = 1, SCALARS = 2 };

static bool is_cold(const struct row *r)
{
    return !r->fast && (r->op == OP_SIN || r->op == OP_COS || r->op == OP_TAN || r->op == OP_FMOD ||
                        r->op == OP_DIV_FLOOR || r->op == OP_REM_FLOOR);
}

/* Of narrow modules: what depends on the width. */
static bool is_chosen(const struct row *r, unsigned what)
{
    return (what & ALL_ROWS) || is_cold(r) || r->op == OP_RSQRT || r->op == OP_SQRT || r->op == OP_EXP ||
           r->op == OP_POW;
}

static void find(const char *const *names, void **address, size_t n, const char *name, kernel_fn **out)
{
    *out = NULL;
    for (size_t k = 0; k < n; k++)
        if (strcmp(names[k], name) == 0)
            memcpy(out, &address[k], sizeof *out);
}

static void build(struct llvm *llvm, struct mem *mem, unsigned width, unsigned features, unsigned what,
                  struct module *m)
{
    m->width = width;
    m->features = features;
    struct lower *const l = mem_zalloc(mem, sizeof *l);
    l->mem = mem;
    l->opt.features = features;
    emit_init(&l->e, mem, width);
    static char name_text[3 * ROWS][32];
    static const char *names[3 * ROWS];
    static void *address[3 * ROWS];
    size_t n = 0;
    for (size_t k = 0; k < ROWS; k++) {
        if (!is_chosen(&rows[k], what))
            continue;
        (void)snprintf(name_text[n++], 32, "test.%s.v", rows[k].name);
        write_kernel(l, &rows[k], true, false);
        if (is_cold(&rows[k])) {
            (void)snprintf(name_text[n++], 32, "test.%s.odd", rows[k].name);
            write_kernel(l, &rows[k], true, true);
        }
        if (what & SCALARS) {
            (void)snprintf(name_text[n++], 32, "test.%s.u", rows[k].name);
            write_kernel(l, &rows[k], false, false);
        }
    }
    for (size_t k = 0; k < n; k++)
        names[k] = name_text[k];
    struct buf text;
    buf_init(&text, mem);
    emit_text(&l->e, &text);
    sk_error err = {0};
    char *object = NULL;
    size_t size = 0;
    CHECK_EQ(llvm_compile(llvm, buf_text(&text), text.n, LLVM_QUICK, LLVM_OBJECT, mem, &object, &size, &err), SK_OK);
    CHECK_EQ(object_load(object, size, names, n, address, &m->code, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    mem_free(mem, object, size);
    for (size_t k = 0; k < ROWS; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "test.%s.v", rows[k].name);
        find(names, address, n, name, &m->vector[k]);
        (void)snprintf(name, sizeof name, "test.%s.u", rows[k].name);
        find(names, address, n, name, &m->scalar[k]);
        (void)snprintf(name, sizeof name, "test.%s.odd", rows[k].name);
        find(names, address, n, name, &m->odd[k]);
        CHECK_EQ(m->vector[k] != NULL, is_chosen(&rows[k], what));
        CHECK_EQ(m->scalar[k] != NULL, is_chosen(&rows[k], what) && (what & SCALARS));
        CHECK_EQ(m->odd[k] != NULL, is_chosen(&rows[k], what) && is_cold(&rows[k]));
    }
    buf_free(&text);
    emit_free(&l->e);
    mem_free(mem, l, sizeof *l);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state * 0x2545f4914f6cdd1du) >> 32);
}

static const float positive_edges[] = {0.0f,
                                       FLT_TRUE_MIN,
                                       3 * FLT_TRUE_MIN,
                                       0x1p-140f,
                                       0x1.fffffcp-127f,
                                       FLT_MIN,
                                       0x1.8p-100f,
                                       0x1p-24f,
                                       0x1p-12f,
                                       0.1f,
                                       0.25f,
                                       0.5f,
                                       0x1.000002p-1f,
                                       0.70710678f,
                                       0x1.fffffep-1f,
                                       1.0f,
                                       0x1.000002p0f,
                                       1.5f,
                                       2.0f,
                                       2.5f,
                                       2.7182817f,
                                       3.0f,
                                       3.1415927f,
                                       4.0f,
                                       10.0f,
                                       22.0f,
                                       88.72283f,
                                       88.72284f,
                                       87.33654f,
                                       89.41598f,
                                       89.41599f,
                                       103.97208f,
                                       104.0f,
                                       126.0f,
                                       127.0f,
                                       128.0f,
                                       149.0f,
                                       150.0f,
                                       355.0f,
                                       100000.0f,
                                       0x1.fffffep16f,
                                       0x1p17f,
                                       8388607.5f,
                                       0x1p23f,
                                       0x1p23f + 1,
                                       0x1.fffffep23f,
                                       0x1p24f,
                                       0x1p25f + 4,
                                       1e10f,
                                       0x1p63f,
                                       0x1p100f,
                                       FLT_MAX / 2,
                                       FLT_MAX,
                                       INFINITY,
                                       NAN};
#define EDGES (2 * sizeof positive_edges / sizeof *positive_edges + 2)

static float edge(size_t i)
{
    if (i >= EDGES - 2)
        return f32_bits(i & 1 ? 0x7f800001u : 0xffa00000u); /* signalling NaNs */
    const float e = positive_edges[i / 2];
    return i & 1 ? -e : e;
}

static float *in[3], *out, *want;

static float *new_floats(void)
{
    float *const p = aligned_alloc(64, COUNT * sizeof *p);
    if (!p)
        abort();
    memset(p, 0, COUNT * sizeof *p);
    return p;
}

static uint32_t n_operands;

static void operands(float x, float y, float z)
{
    in[0][n_operands] = x;
    in[1][n_operands] = y;
    in[2][n_operands++] = z;
}

static float between(uint64_t *state, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(next_random(state) >> 8) * 0x1p-24f);
}

/* Fills in[], a multiple of 32 of them. */
static void choose(unsigned arity)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    n_operands = 0;
    if (arity == 1) {
        for (size_t i = 0; i < EDGES; i++)
            operands(edge(i), 0, 0);
        for (uint32_t h = 0; h < 0x10000; h++)
            operands(f16_to_f32((uint16_t)h), 0, 0);
        for (uint64_t u = 0; u < 1ull << 32; u += STRIDE)
            operands(f32_bits((uint32_t)u), 0, 0);
    } else if (arity == 2) {
        for (size_t i = 0; i < EDGES * EDGES; i++)
            operands(edge(i / EDGES), edge(i % EDGES), 0);
        for (uint32_t i = 0; i < 60000; i++) {
            const float x = f32_bits(next_random(&state)), y = f32_bits(next_random(&state));
            const float p = between(&state, 0, 2), q = between(&state, -2, 2);
            const float n = rintf(between(&state, -0x1.8p24f, 0x1.8p24f)); /* quotients near 2^24 */
            operands(x, y, 0);
            operands(p, between(&state, -40, 40), 0);
            operands(p, x, 0);
            operands(fabsf(x), q, 0);
            operands(x, rintf(4 * q), 0);
            operands(q, p, 0);
            operands(rintf(20 * q), rintf(4 * p), 0);
            operands(n, between(&state, 0.5f, 2), 0);
            operands(n * p, p, 0);
            operands(nextafterf(x * rintf(20 * q), 0), x, 0);
            operands(x, x * 0x1p-23f * p, 0);
            operands(f32_bits(next_random(&state) & 0x80ffffffu), f32_bits(next_random(&state) & 0x80ffffffu), 0);
        }
    } else {
        for (size_t i = 0; i < EDGES * EDGES * EDGES; i += 7)
            operands(edge(i / EDGES / EDGES), edge(i / EDGES % EDGES), edge(i % EDGES));
        for (uint32_t i = 0; i < 200000; i++) {
            const float a = between(&state, -4, 4), b = between(&state, -4, 4), c = between(&state, -4, 4);
            operands(a, b, c);
            operands(f16_to_f32(f16_from_f32(a)), f16_to_f32(f16_from_f32(b)), f16_to_f32(f16_from_f32(c)));
            operands(bf16_to_f32(bf16_from_f32(a)), bf16_to_f32(bf16_from_f32(b)), -bf16_to_f32(bf16_from_f32(a * b)));
        }
    }
    while (n_operands % 32)
        operands(1, 1, 1);
}

static float reference(const struct row *r, uint32_t i)
{
    return r->f1 ? r->f1(in[0][i]) : r->f2 ? r->f2(in[0][i], in[1][i]) : r->f3(in[0][i], in[1][i], in[2][i]);
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static uint32_t asked; /* lanes that went to the helper */

static void counting_helper(struct cpu_worker *worker, uint32_t op, const float *from, float *to, uint32_t lanes)
{
    asked |= lanes;
    helper_math(worker, op, from, to, lanes);
}

static void run(kernel_fn *f, uint64_t n)
{
    const void *table[HELPER_COUNT] = {0};
    void (*const helper)(struct cpu_worker *, uint32_t, const float *, float *, uint32_t) = counting_helper;
    memcpy(&table[HELPER_MATH], &helper, sizeof helper);
    struct cpu_worker worker = {.helper = table};
    asked = 0;
    f(&worker, in[0], in[1], in[2], out, n);
}

static bool agree(float a, float b)
{
    return a != a ? b != b : bits_f32(a) == bits_f32(b);
}

/* A fast form of the machine's own, whose error is measured apart. */
static bool is_own(const struct row *r, unsigned features)
{
    return r->fast && (r->op == OP_SQRT || r->op == OP_RSQRT) && (features & CPU_AVX512);
}

/* Fast forms may take denormals for zero or not. */
static bool right(const struct row *r, float got, uint32_t i)
{
    const float x = fabsf(in[0][i]);
    const bool log = r->op == OP_LOG || r->op == OP_LOG2 || r->op == OP_LOG10 || r->op == OP_POW;
    const bool exp = r->op == OP_EXP || r->op == OP_EXP2;
    if (r->fast && log && x > 0 && x < FLT_MIN)
        return true;
    if (r->fast && exp && want[i] == 0)
        return got >= 0 && got < FLT_MIN;
    return agree(got, want[i]);
}

static void compare(const struct row *r, kernel_fn *f, const char *shape, unsigned width, bool odd)
{
    memset(out, 0x55, n_operands * sizeof *out);
    run(f, n_operands);
    uint32_t wrong = 0, first = 0;
    for (uint32_t i = 0; i < n_operands; i++)
        if ((!odd || i % width % 2) && !right(r, out[i], i) && wrong++ == 0)
            first = i;
    check_count++;
    if (wrong)
        CHECK_FAIL_("%s.%s, width %u: %u of %u are wrong: (%a, %a, %a) gives %a, not %a", r->name, shape, width, wrong,
                    n_operands, (double)in[0][first], (double)in[1][first], (double)in[2][first], (double)out[first],
                    (double)want[first]);
}

static void compare_module(const struct row *r, size_t k, const struct module *m)
{
    if (!m->vector[k] || is_own(r, m->features))
        return;
    compare(r, m->vector[k], "v", m->width, false);
    CHECK_EQ(asked != 0, is_cold(r));
    if (m->scalar[k])
        compare(r, m->scalar[k], "u", m->width, false);
    if (m->odd[k]) {
        compare(r, m->odd[k], "v under a mask", m->width, true);
        CHECK_EQ(asked & 0x55555555u, 0);
    }
}

static void compare_all(const struct module *modules, size_t n)
{
    for (unsigned arity = 1; arity <= 3; arity++) {
        choose(arity);
        for (size_t k = 0; k < ROWS; k++) {
            if (rows[k].arity != arity)
                continue;
            for (uint32_t i = 0; i < 3 * n_operands && rows[k].f16; i++) /* no other row of three operands follows */
                in[i % 3][i / 3] = f16_to_f32(f16_from_f32(in[i % 3][i / 3]));
            for (uint32_t i = 0; i < n_operands; i++)
                want[i] = reference(&rows[k], i);
            for (size_t j = 0; j < n; j++)
                compare_module(&rows[k], k, &modules[j]);
        }
    }
}

/* Every float there is, for one row of one operand. */
static void compare_every(const char *name, const struct module *m)
{
    for (size_t k = 0; k < ROWS; k++) {
        if (rows[k].arity != 1 || strcmp(rows[k].name, name) != 0)
            continue;
        for (uint64_t u = 0; u < 1ull << 32; u += COUNT) {
            n_operands = COUNT;
            for (uint32_t i = 0; i < COUNT; i++) {
                in[0][i] = f32_bits((uint32_t)u + i);
                want[i] = reference(&rows[k], i);
            }
            compare(&rows[k], m->vector[k], "v", m->width, false);
        }
    }
}

/* ---- forms of the machine's own --------------------------------------------------------------------------------- */

static double exact_root(const struct row *r, float x)
{
    return r->op == OP_SQRT ? sqrt((double)x) : 1 / sqrt((double)x);
}

static void check_error(const struct row *r, kernel_fn *f, uint32_t from, uint32_t count)
{
    double worst = 0;
    for (uint32_t k = 0; k < count; k += n_operands) {
        n_operands = count - k < COUNT ? count - k : COUNT;
        for (uint32_t i = 0; i < n_operands; i++)
            in[0][i] = f32_bits(from + k + i);
        run(f, n_operands);
        for (uint32_t i = 0; i < n_operands; i++) {
            const double exact = exact_root(r, in[0][i]);
            int e;
            (void)frexp(exact, &e);
            worst = fmax(worst, fabs((double)out[i] - exact) * ldexp(1, 24 - e));
        }
    }
    check_count++;
    if (!(worst <= r->fast_ulp))
        CHECK_FAIL_("%s is off by %g ulp, not %u", r->name, worst, r->fast_ulp);
}

/* All mantissas with an odd and an even exponent if `whole`, some with every exponent, edges as the precise form's. */
static void check_root(const struct row *r, kernel_fn *f, bool whole)
{
    check_error(r, f, bits_f32(1.0f), whole ? 1u << 24 : 1u << 15);
    for (uint32_t e = 0; e < 255; e++)
        check_error(r, f, e << 23 | (e * 0x1234u & 0x7fff00u) | 0x100, 64);
    n_operands = 0;
    for (size_t i = 0; i < EDGES; i++)
        operands(edge(i), 0, 0);
    while (n_operands % 32)
        operands(1, 1, 1);
    run(f, n_operands);
    for (uint32_t i = 0; i < n_operands; i++) {
        const float x = in[0][i];
        const float exact = r->op == OP_SQRT ? math_SQRT(x) : math_RSQRT(x);
        check_count++;
        if (!(x > 0 && x < INFINITY) && !agree(out[i], exact))
            CHECK_FAIL_("%s(%a) is %a, not %a", r->name, (double)x, (double)out[i], (double)exact);
    }
}

/* ---- speed ------------------------------------------------------------------------------------------------------ */

#define BENCH 1024u

static double time_of(kernel_fn *f)
{
    double best = HUGE_VAL;
    for (int turn = 0; turn < 25; turn++) {
        const uint64_t start = os_nanoseconds();
        for (int k = 0; k < 40; k++)
            run(f, BENCH);
        best = fmin(best, (double)(os_nanoseconds() - start) / (40 * BENCH));
    }
    return best;
}

static void bench(const struct module *m)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < BENCH; i++) {
        in[0][i] = between(&state, 0.01f, 20);
        in[1][i] = between(&state, 0.1f, 4);
        in[2][i] = between(&state, 4, 8);
    }
    for (size_t k = 0; k < ROWS; k++) {
        printf("%-12s %6.3f", rows[k].name, time_of(m->vector[k]));
        if (m->scalar[k])
            printf(" %6.2f", time_of(m->scalar[k]));
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    struct mem mem;
    mem_init(&mem, NULL);
    struct llvm *llvm = NULL;
    sk_error err = {0};
    if (llvm_open(&mem, &llvm, &err) != SK_OK) {
        printf("skipped: %s\n", err.message);
        return 0;
    }
    for (int k = 0; k < 3; k++)
        in[k] = new_floats();
    out = new_floats();
    want = new_floats();
    unsigned features = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        features = CPU_AVX512;
#endif
    static struct module m[8];
    if (argc > 2) {
        build(llvm, &mem, (unsigned)atoi(argv[2]), features, ALL_ROWS | SCALARS, m);
        if (strcmp(argv[1], "bench") == 0)
            bench(m);
        else
            compare_every(argv[1], m);
        return check_done();
    }
    const struct {
        unsigned width, features, what;
    } shapes[] = {{32, 0, ALL_ROWS | SCALARS},
                  {32, features, ALL_ROWS | SCALARS},
                  {16, features, ALL_ROWS},
                  {8, features, 0},
                  {4, features, 0},
                  {2, features, 0},
                  {1, features, 0}};
    const size_t n = sizeof shapes / sizeof *shapes;
    for (size_t j = 0; j < n; j++)
        build(llvm, &mem, shapes[j].width, shapes[j].features, shapes[j].what, &m[j]);
    compare_all(m, n);
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < ROWS; k++)
            if (m[j].vector[k] && is_own(&rows[k], m[j].features)) {
                check_root(&rows[k], m[j].vector[k], m[j].width == 32);
                if (m[j].scalar[k])
                    check_root(&rows[k], m[j].scalar[k], false);
            }
    for (size_t j = 0; j < n; j++)
        object_unload(&m[j].code);
    for (int k = 0; k < 3; k++)
        free(in[k]);
    free(out);
    free(want);
    llvm_close(llvm);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
