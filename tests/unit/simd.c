/* simd.c - the collectives of the interpreter, each on every scalar type it takes, under full and partial masks and in
 * a last simdgroup of 20 lanes, against the rules of ops.def and src/interp/simd.c written down once more, lane by
 * lane.
 */
#include "check.h"
#include "interp/interp.h"

#define N 116u /* three simdgroups of 32 and one of 20 */

static struct mem mem;
static sk_error error;
static uint64_t state = 88172645463325252u;

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

static uint64_t number(enum scalar s, double x)
{
    return s == S_F16    ? f16_from_f64(x)
           : s == S_BF16 ? bf16_from_f64(x)
           : s == S_F32  ? bits_f32((float)x)
                         : masked(s, (uint64_t)(int64_t)x);
}

static bool is_float(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_F;
}

/* ---- what must come out ----------------------------------------------------------------------------------------- */

struct lanes {
    uint64_t x[32], fill[32];
    int64_t lane[32];
    uint32_t mask;
    unsigned width;
    enum scalar s;
};

static uint64_t apply(enum op op, enum scalar s, uint64_t a, uint64_t b)
{
    return ir_scalar_eval(op, s, s, 0, a, b, 0);
}

static uint64_t identity(enum op op, enum scalar s)
{
    if (op == OP_ADD)
        return is_float(s) ? number(s, -0.0) : 0;
    if (op == OP_MUL)
        return number(s, 1);
    if (op == OP_AND)
        return masked(s, UINT64_MAX);
    if (op == OP_MIN || op == OP_MAX) {
        if (is_float(s))
            return number(s, (double)NAN);
        const bool is_signed = scalar_info[s].class_ == CLASS_S;
        const uint64_t top = (uint64_t)1 << (scalar_info[s].bits - 1), all = masked(s, UINT64_MAX);
        return op == OP_MIN ? (is_signed ? all ^ top : all) : is_signed ? top : 0;
    }
    return 0;
}

static uint64_t reduced(const struct lanes *in, enum op op, unsigned l)
{
    uint64_t x[32], y[32];
    for (unsigned k = 0; k < 32; k++)
        x[k] = in->mask >> k & 1 ? in->x[k] : identity(op, in->s);
    for (unsigned step = in->width / 2; step; step /= 2) {
        for (unsigned k = 0; k < 32; k++)
            y[k] = apply(op, in->s, x[k], x[k ^ step]);
        memcpy(x, y, sizeof x);
    }
    return x[l];
}

static uint64_t scanned(const struct lanes *in, enum op op, bool exclusive, unsigned l)
{
    uint64_t x[32], y[32];
    const unsigned w = in->width;
    for (unsigned k = 0; k < 32; k++)
        x[k] = in->mask >> k & 1 ? in->x[k] : identity(op, in->s);
    for (unsigned step = 1; step < w; step *= 2) {
        for (unsigned k = 0; k < 32; k++)
            y[k] = k % w >= step ? apply(op, in->s, x[k - step], x[k]) : x[k];
        memcpy(x, y, sizeof x);
    }
    if (!exclusive)
        return x[l];
    for (unsigned k = l / w * w; k < l; k++)
        if (in->mask >> k & 1)
            return x[l - 1];
    return number(in->s, op == OP_MUL ? 1 : 0);
}

/* The value at a place of the lane's group, 0 if nobody is there. */
static uint64_t at(const struct lanes *in, const uint64_t *x, int64_t place, unsigned l)
{
    if (place < 0 || place >= in->width)
        return 0;
    const unsigned lane = l / in->width * in->width + (unsigned)place;
    return in->mask >> lane & 1 ? x[lane] : 0;
}

static uint64_t expected(const struct lanes *in, enum op op, unsigned l)
{
    const int64_t w = in->width, place = l % in->width, n = in->lane[l];
    const uint64_t group = in->width == 32 ? UINT32_MAX : 15u << l / 4 * 4;
    const uint64_t here = in->mask & group;
    uint64_t holds = 0;
    for (unsigned k = 0; k < 32; k++)
        holds |= (here >> k & 1 && in->x[k] & 1) ? (uint64_t)1 << k : 0;
#define CASES(W)                                                                                                       \
    if (op == OP_##W##_SUM)                                                                                            \
        return reduced(in, OP_ADD, l);                                                                                 \
    if (op == OP_##W##_PRODUCT)                                                                                        \
        return reduced(in, OP_MUL, l);                                                                                 \
    if (op == OP_##W##_MIN)                                                                                            \
        return reduced(in, OP_MIN, l);                                                                                 \
    if (op == OP_##W##_MAX)                                                                                            \
        return reduced(in, OP_MAX, l);                                                                                 \
    if (op == OP_##W##_AND)                                                                                            \
        return reduced(in, OP_AND, l);                                                                                 \
    if (op == OP_##W##_OR)                                                                                             \
        return reduced(in, OP_OR, l);                                                                                  \
    if (op == OP_##W##_XOR)                                                                                            \
        return reduced(in, OP_XOR, l);                                                                                 \
    if (op == OP_##W##_INCLUSIVE_SUM)                                                                                  \
        return scanned(in, OP_ADD, false, l);                                                                          \
    if (op == OP_##W##_EXCLUSIVE_SUM)                                                                                  \
        return scanned(in, OP_ADD, true, l);                                                                           \
    if (op == OP_##W##_INCLUSIVE_PRODUCT)                                                                              \
        return scanned(in, OP_MUL, false, l);                                                                          \
    if (op == OP_##W##_EXCLUSIVE_PRODUCT)                                                                              \
        return scanned(in, OP_MUL, true, l);                                                                           \
    if (op == OP_##W##_BROADCAST || op == OP_##W##_SHUFFLE)                                                            \
        return at(in, in->x, n, l);                                                                                    \
    if (op == OP_##W##_BROADCAST_FIRST)                                                                                \
        return in->x[__builtin_ctzll(here)];                                                                           \
    if (op == OP_##W##_SHUFFLE_UP)                                                                                     \
        return at(in, in->x, n < 0 || n > place ? place : place - n, l);                                               \
    if (op == OP_##W##_SHUFFLE_DOWN)                                                                                   \
        return at(in, in->x, n < 0 || place + n >= w ? place : place + n, l);                                          \
    if (op == OP_##W##_SHUFFLE_XOR)                                                                                    \
        return at(in, in->x, place ^ n, l);                                                                            \
    if (op == OP_##W##_ROTATE_UP)                                                                                      \
        return at(in, in->x, ((place - n) % w + w) % w, l);                                                            \
    if (op == OP_##W##_ROTATE_DOWN)                                                                                    \
        return at(in, in->x, ((place + n) % w + w) % w, l);                                                            \
    if (op == OP_##W##_FILL_UP)                                                                                        \
        return n >= 0 && n <= place ? at(in, in->x, place - n, l) : n < 0 ? 0 : at(in, in->fill, w + place - n, l);    \
    if (op == OP_##W##_FILL_DOWN)                                                                                      \
        return n >= 0 && place + n < w ? at(in, in->x, place + n, l) : n < 0 ? 0 : at(in, in->fill, place + n - w, l); \
    if (op == OP_##W##_ALL)                                                                                            \
        return holds == here;                                                                                          \
    if (op == OP_##W##_ANY)                                                                                            \
        return holds != 0;                                                                                             \
    if (op == OP_##W##_IS_FIRST)                                                                                       \
        return (unsigned)__builtin_ctzll(here) == l;                                                                   \
    if (op == OP_##W##_BALLOT)                                                                                         \
        return holds >> l / in->width * in->width;                                                                     \
    if (op == OP_##W##_ACTIVE)                                                                                         \
        return here >> l / in->width * in->width;
    CASES(SIMD)
    CASES(QUAD)
    return 0;
}

/* ---- a kernel for each ------------------------------------------------------------------------------------- */

static uint32_t buffer(struct ir_module *m, uint32_t f, const char *name, ir_type elem)
{
    return ir_param(
        m, f,
        &(struct param){
            .name = ir_string(m, name), .type = TYPE_POINTER(SPACE_DEVICE), .elem = elem, .kind = PARAM_BUFFER});
}

/* if (on[i]) out[i] = op(a[i], …); the lane operand has type `lane`. */
static struct interp_program *build(enum op op, enum scalar s, enum scalar to, enum scalar lane)
{
    struct ir_module *const m = ir_module_new(&mem);
    const uint32_t f = ir_func(m, ir_string(m, "k"), true, TYPE_VOID, 0);
    struct ir_builder b = {.m = m, .func = f, .region = m->funcs.at[f].region};
    const uint32_t out = buffer(m, f, "out", (ir_type)to), on = buffer(m, f, "on", TYPE_BOOL);
    const uint32_t a = buffer(m, f, "a", (ir_type)s), fill = buffer(m, f, "fill", (ir_type)s),
                   n = buffer(m, f, "n", (ir_type)lane);
    const uint32_t i = ir_param(m, f,
                                &(struct param){.name = ir_string(m, "i"),
                                                .type = TYPE_U32,
                                                .kind = PARAM_ATTRIBUTE,
                                                .attribute = ATTR_THREAD_POSITION_IN_GRID});
    const uint32_t condition = ir_load(&b, TYPE_BOOL, ir_index(&b, TYPE_BOOL, on, i));
    const uint32_t branch = ir_construct(&b, OP_IF, 1, &condition, 2);
    b.region = ir_region(m, branch, 0);
    uint32_t in[3];
    unsigned k = 0;
    if (op_info[op].n > 0)
        in[k++] = ir_load(&b, (ir_type)s, ir_index(&b, (ir_type)s, a, i));
    if (op_info[op].n > 2)
        in[k++] = ir_load(&b, (ir_type)s, ir_index(&b, (ir_type)s, fill, i));
    if (op_info[op].n > 1)
        in[k++] = ir_load(&b, (ir_type)lane, ir_index(&b, (ir_type)lane, n, i));
    ir_store(&b, ir_index(&b, (ir_type)to, out, i), ir_node(&b, op, (ir_type)to, k, in, 0, 0));
    CHECK_EQ(ir_verify(m, &error), SK_OK);
    CHECK_EQ_STR(error.message, "");
    struct interp_program *p = NULL;
    CHECK_EQ(interp_compile(&mem, m, f, &p, &error), SK_OK);
    ir_module_free(m);
    return p;
}

static void run(enum op op, enum scalar s, enum scalar lane)
{
    const enum op_rule rule = (enum op_rule)op_info[op].rule;
    const bool mask = op == OP_SIMD_BALLOT || op == OP_SIMD_ACTIVE || op == OP_QUAD_BALLOT || op == OP_QUAD_ACTIVE;
    const enum scalar to = rule == RULE_VOTE ? S_BOOL : rule == RULE_LANES ? s : mask ? S_U64 : S_BOOL;
    const unsigned bytes = scalar_info[s].bytes, lane_bytes = scalar_info[lane].bytes, to_bytes = scalar_info[to].bytes;
    static char out[N * 8], a[N * 8], fill[N * 8], n[N * 8];
    static uint8_t on[N];
    struct lanes in[4] = {0};
    memset(out, 0, sizeof out);
    for (unsigned k = 0; k < N; k++) {
        struct lanes *const g = &in[k / 32];
        const unsigned l = k % 32;
        g->width = op >= OP_QUAD_SUM ? 4 : 32;
        g->s = s;
        on[k] = k / 32 == 0 || (k / 32 == 1 ? l % 5 == 2 || l == 16 : next_random() % 4 != 0);
        g->mask |= (uint32_t)on[k] << l;
        g->x[l] = is_float(s) ? number(s, ((double)(next_random() % 2000) - 1000) / 512) : masked(s, next_random());
        if (k % 29 == 7 && is_float(s))
            g->x[l] = number(s, k % 2 ? (double)NAN : -0.0);
        if (k / 32 == 1 && is_float(s)) /* sums of nothing but -0.0 */
            g->x[l] = number(s, -0.0);
        g->fill[l] = is_float(s) ? number(s, k) : masked(s, k + 1);
        const uint64_t r = next_random();
        g->lane[l] = r % 16 == 0 ? -(int64_t)(r >> 8 & 3) - 1
                                 : (int64_t)(r >> 8) % (r % 16 < 3          ? 80
                                                        : op >= OP_QUAD_SUM ? 4
                                                                            : 32);
        if (scalar_info[lane].class_ == CLASS_U && g->lane[l] < 0)
            g->lane[l] = (int64_t)(masked(lane, UINT64_MAX) >> 1);
        memcpy(a + k * bytes, &g->x[l], bytes);
        memcpy(fill + k * bytes, &g->fill[l], bytes);
        memcpy(n + k * lane_bytes, &g->lane[l], lane_bytes);
    }
    struct interp_program *const p = build(op, s, to, lane);
    const struct interp_arg args[] = {
        {out, N * to_bytes}, {on, N}, {a, N * bytes}, {fill, N * bytes}, {n, N * lane_bytes}};
    CHECK_EQ(interp_run(p, &(struct interp_launch){.threads = {N, 1, 1}, .threadgroup = {N, 1, 1}, .args = args}, &mem,
                        &error),
             SK_OK);
    interp_free(p);
    for (unsigned k = 0; k < N; k++) {
        uint64_t got = 0;
        memcpy(&got, out + k * to_bytes, to_bytes);
        const uint64_t want = on[k] ? expected(&in[k / 32], op, k % 32) : 0;
        check_count++;
        if (got != want)
            CHECK_FAIL_("%s %s lane %u of simdgroup %u: %#jx, not %#jx", op_info[op].name, scalar_info[s].name, k % 32,
                        k / 32, (uintmax_t)got, (uintmax_t)want);
    }
}

static sk_status all(void)
{
    for (unsigned op = OP_SIMD_SUM; op <= OP_QUAD_ACTIVE; op++) {
        const unsigned classes = op_info[op].classes ? op_info[op].classes : CLASS_B;
        for (unsigned s = 1; s < S_COUNT; s++) {
            if (!(classes & scalar_info[s].class_))
                continue;
            run((enum op)op, (enum scalar)s, S_I32);
            if (op_info[op].n > 1) {
                run((enum op)op, (enum scalar)s, S_U16);
                run((enum op)op, (enum scalar)s, S_I8);
                run((enum op)op, (enum scalar)s, S_U32);
                run((enum op)op, (enum scalar)s, S_I64);
            }
        }
    }
    return SK_OK;
}

int main(void)
{
    sk_status status;
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, &error, status, all());
    CHECK_EQ(status, SK_OK);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
