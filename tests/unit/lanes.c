/* lanes.c - every elementwise operation on every scalar type: the interpreter's lanes against ir_scalar_eval, bit for
 * bit, on edge values against each other and on random bits. A last simdgroup of 11 lanes runs under a partial mask.
 * All is done with the loops for the least machine and with those for this one.
 */
#include "check.h"
#include "interp/program.h"

#include <stdlib.h>

#define N_EDGES 26u
#define N (N_EDGES * N_EDGES + 1003u)

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
    if (scalar_info[s].class_ == CLASS_F)
        return float_bits(s, floats[k]);
    if (s == S_BOOL)
        return k & 1;
    return masked(s, (uint64_t)ints[k]);
}

/* Operand number `which` of case k. */
static uint64_t operand(enum scalar s, unsigned which, unsigned k)
{
    if (k < N_EDGES * N_EDGES)
        return edge(s, which == 0 ? k / N_EDGES : which == 1 ? k % N_EDGES : (k * 7 + 3) % N_EDGES);
    const uint64_t r = next_random();
    if (scalar_info[s].class_ == CLASS_F && k % 2)
        return float_bits(s, (double)(int64_t)r / 0x1p58);
    return masked(s, k % 3 ? r : r & 7);
}

struct test {
    enum op op;
    enum scalar in[3], to; /* in[n..]: S_VOID */
    unsigned flags;
};

static struct mem mem;
static sk_error error;

static struct interp_program *build(const struct test *t, const struct lane_loops *loops)
{
    struct ir_module *const m = ir_module_new(&mem);
    const uint32_t f = ir_func(m, ir_string(m, "k"), true, TYPE_VOID, 0);
    struct ir_builder b = {.m = m, .func = f, .region = m->funcs.at[f].region};
    uint32_t in[3] = {0}, param[4];
    unsigned n = 0;
    for (unsigned k = 0; k < 4; k++) {
        const enum scalar s = k == 3 ? t->to : t->in[k] ? t->in[k] : S_U8;
        const char name[2] = {"abco"[k], 0};
        param[k] = ir_param(m, f,
                            &(struct param){.name = ir_string(m, name),
                                            .type = TYPE_POINTER(SPACE_DEVICE),
                                            .elem = (ir_type)s,
                                            .kind = PARAM_BUFFER});
    }
    const uint32_t i = ir_param(m, f,
                                &(struct param){.name = ir_string(m, "i"),
                                                .type = TYPE_U32,
                                                .kind = PARAM_ATTRIBUTE,
                                                .attribute = ATTR_THREAD_POSITION_IN_GRID});
    for (; n < 3 && t->in[n]; n++)
        in[n] = ir_load(&b, (ir_type)t->in[n], ir_index(&b, (ir_type)t->in[n], param[n], i));
    const uint32_t x = ir_node(&b, t->op, (ir_type)t->to, n, in, t->flags, 0);
    ir_store(&b, ir_index(&b, (ir_type)t->to, param[3], i), x);
    CHECK_EQ(ir_verify(m, &error), SK_OK);
    struct interp_program *p = NULL;
    CHECK_EQ(interp_compile_for(&mem, m, f, loops, &p, &error), SK_OK);
    ir_module_free(m);
    return p;
}

static void run_with(const struct test *t, const struct lane_loops *loops)
{
    static uint64_t bits[3][N];
    static char data[4][N * 8];
    struct interp_program *const p = build(t, loops);
    if (!p)
        return;
    for (unsigned j = 0; j < 3; j++) {
        const enum scalar s = t->in[j] ? t->in[j] : S_U8;
        for (unsigned k = 0; k < N; k++) {
            bits[j][k] = t->in[j] ? operand(s, j, k) : 0;
            memcpy(data[j] + k * scalar_info[s].bytes, &bits[j][k], scalar_info[s].bytes);
        }
    }
    const struct interp_arg args[] = {
        {data[0], sizeof data[0]}, {data[1], sizeof data[1]}, {data[2], sizeof data[2]}, {data[3], sizeof data[3]}};
    const struct interp_launch l = {.threads = {N, 1, 1}, .threadgroup = {96, 1, 1}, .args = args};
    CHECK_EQ(interp_run(p, &l, &mem, &error), SK_OK);
    for (unsigned k = 0; k < N; k++) {
        uint64_t got = 0;
        memcpy(&got, data[3] + k * scalar_info[t->to].bytes, scalar_info[t->to].bytes);
        uint64_t b = bits[1][k];
        if (op_info[t->op].rule == RULE_SHIFT && scalar_info[t->in[1]].class_ == CLASS_S)
            b = (uint64_t)((int64_t)(b << (64 - scalar_info[t->in[1]].bits)) >> (64 - scalar_info[t->in[1]].bits));
        const uint64_t want =
            ir_scalar_eval(t->op, t->op == OP_SELECT ? t->to : t->in[0], t->to, t->flags, bits[0][k], b, bits[2][k]);
        check_count++;
        if (got != want) {
            CHECK_FAIL_("%s %s->%s flags %u (%#jx, %#jx, %#jx): %#jx, not %#jx", op_info[t->op].name,
                        scalar_info[t->in[0]].name, scalar_info[t->to].name, t->flags, (uintmax_t)bits[0][k],
                        (uintmax_t)b, (uintmax_t)bits[2][k], (uintmax_t)got, (uintmax_t)want);
            break;
        }
    }
    interp_free(p);
}

static void run(const struct test *t)
{
    run_with(t, &lanes_least);
    if (lanes_best() != &lanes_least)
        run_with(t, lanes_best());
}

static void by_rule(enum op op, enum scalar s)
{
    const struct op_info *const o = &op_info[op];
    struct test t = {.op = op, .to = s};
    switch ((enum op_rule)o->rule) {
    case RULE_SAME:
    case RULE_COMPARE:
        if (!(o->classes & scalar_info[s].class_))
            return;
        for (int k = 0; k < o->n; k++)
            t.in[k] = s;
        if (o->rule == RULE_COMPARE)
            t.to = S_BOOL;
        run(&t);
        if (o->math && math_info[op].fast) {
            t.flags = NODE_FAST;
            run(&t);
        }
        break;
    case RULE_SHIFT:
        if (!(o->classes & scalar_info[s].class_))
            return;
        for (unsigned count = S_I8; count <= S_U64; count++) {
            t.in[0] = s;
            t.in[1] = (enum scalar)count;
            run(&t);
        }
        break;
    case RULE_SELECT:
        t.in[0] = S_BOOL;
        t.in[1] = t.in[2] = s;
        run(&t);
        break;
    case RULE_NONE:
    case RULE_LANES:
    case RULE_VOTE:
    case RULE_GIVEN: break;
    }
}

static sk_status all(void)
{
    for (unsigned s = 1; s < S_COUNT; s++) {
        for (unsigned op = 1; op < OP_COUNT; op++)
            by_rule((enum op)op, (enum scalar)s);
        for (unsigned to = 1; to < S_COUNT; to++) {
            if (to != s)
                run(&(struct test){.op = OP_CONVERT, .in = {(enum scalar)s}, .to = (enum scalar)to});
            if (to != s && to != S_BOOL && s != S_BOOL && scalar_info[s].bytes == scalar_info[to].bytes)
                run(&(struct test){.op = OP_BITCAST, .in = {(enum scalar)s}, .to = (enum scalar)to});
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
    CHECK_EQ_STR(error.message, "");
    CHECK_EQ(mem.live, 0);
    return check_done();
}
