/* address.c - chains of indices on the interpreter: random element sizes, index types and values, among them values that
 * leave all memory and come back, against a sum that saturates term by term.
 */
#include "check.h"
#include "interp/program.h"
#include "pass/pass.h"

#include <stdlib.h>

#define CHAIN 5u
#define THREADS 75u /* the last simdgroup is not full */
#define BYTES 2048u

static struct mem mem;
static sk_error error;
static uint64_t state = 0x2545f4914f6cdd1du;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(next_random() >> 33) % n;
}

struct step {
    enum scalar type; /* of the index */
    uint64_t scale;
    enum scalar to;       /* what the index is converted to */
    bool constant, apart; /* apart: the pointer so far becomes a value */
    int64_t index[THREADS];
};

struct chain {
    struct step step[CHAIN];
    unsigned n;
    enum scalar scalar; /* that is loaded and stored */
    bool stores;
};

__extension__ typedef __int128 wide;

static int64_t fitting(enum scalar s, int64_t x)
{
    const unsigned drop = 64 - scalar_info[s].bits;
    return scalar_info[s].class_ == CLASS_S ? (int64_t)((uint64_t)x << drop) >> drop
                                            : (int64_t)((uint64_t)x << drop >> drop);
}

static int64_t huge(enum scalar s)
{
    const uint64_t r = next_random();
    return fitting(s, r & 1 ? (int64_t)(next_random() >> below(40)) : (int64_t)(0u - (next_random() >> below(40))));
}

static wide number(const struct step *s, unsigned l)
{
    return scalar_info[s->to].class_ == CLASS_S ? (wide)s->index[l] : (wide)(uint64_t)s->index[l];
}

static void random_chain(struct chain *c)
{
    static const enum scalar types[] = {S_U32, S_I32, S_U32, S_I32, S_U64, S_I64, S_U8, S_I8, S_U16, S_I16};
    static const uint64_t scales[] = {1, 4, 64, 12, 256, 1, 24, 1u << 26, (1u << 26) + 1, 1u << 28, (1u << 28) + 4};
    static const enum scalar scalars[] = {S_U8, S_U16, S_U32, S_U64, S_BOOL};
    const bool tame = below(3) != 0;
    wide sum[THREADS] = {0};
    *c = (struct chain){.n = 1 + below(CHAIN), .scalar = scalars[below(5)], .stores = below(2)};
    for (unsigned k = 0; k < c->n; k++) {
        struct step *const s = &c->step[k];
        *s = (struct step){.type = types[below(10)],
                           .scale = scales[below(tame ? 7 : 11)],
                           .constant = below(4) == 0,
                           .apart = below(6) == 0};
        s->to = below(4) ? s->type : below(2) ? S_I64 : S_U64;
        const int64_t same = below(4) ? (int64_t)below(8) : -1; /* in many lanes */
        const bool back = below(2);
        for (unsigned l = 0; l < THREADS; l++) {
            int64_t x = same >= 0 ? same : (int64_t)(l % 32);
            if (s->constant)
                x = l > 0 ? s->index[0] : (int64_t)below(6);
            else if (back && below(3)) /* into bounds, or near their ends */
                x = (int64_t)(((wide)(below(2) ? below(BYTES) : below(2) * BYTES) - sum[l]) / (wide)s->scale +
                              below(3) - 1);
            else if (!tame && below(2))
                x = huge(s->type);
            s->index[l] = fitting(s->type, x);
            sum[l] += number(s, l) * (wide)s->scale;
        }
    }
}

/* As far as a and back again: nothing comes back from past 2^61. */
static void there_and_back(struct chain *c)
{
    *c = (struct chain){.n = CHAIN, .scalar = S_U32};
    for (unsigned k = 0; k < CHAIN; k++)
        c->step[k] = (struct step){.type = S_I64, .to = S_I64, .scale = 1, .apart = below(8) == 0};
    for (unsigned l = 0; l < THREADS; l++) {
        const int64_t a = (int64_t)(next_random() >> (2 + below(4)));
        for (unsigned k = 0; k < 4; k++)
            c->step[k].index[l] = k < 2 ? a : -a;
        c->step[4].index[l] = (int64_t)below(BYTES);
    }
}

static bool is_past(wide x)
{
    return x >= FAR || x <= -(wide)FAR;
}

static bool expected(const struct chain *c, unsigned l, uint64_t *at)
{
    wide sum = 0;
    for (unsigned k = 0; k < c->n; k++) {
        const struct step *const s = &c->step[k];
        const wide product = number(s, l) * (wide)s->scale;
        sum += product;
        if (is_past(sum) || is_past(product))
            return false;
    }
    *at = (uint64_t)sum;
    return sum >= 0 && sum <= (wide)(BYTES - scalar_info[c->scalar].bytes);
}

static enum scalar index_type(const struct chain *c, unsigned k)
{
    return k < c->n ? c->step[k].type : S_U32;
}

static struct ir_module *build(const struct chain *c)
{
    struct ir_module *const m = ir_module_new(&mem);
    const uint32_t f = ir_func(m, ir_string(m, "k"), true, TYPE_VOID, 0);
    struct ir_builder b = {.m = m, .func = f, .region = m->funcs.at[f].region};
    uint32_t param[CHAIN + 2];
    for (unsigned k = 0; k < CHAIN + 2; k++) {
        const char name[2] = {"abcdepo"[k], 0};
        const enum scalar elem = k < CHAIN ? index_type(c, k) : k == CHAIN ? S_U8 : c->scalar;
        param[k] = ir_param(m, f,
                            &(struct param){.name = ir_string(m, name),
                                            .type = TYPE_POINTER(SPACE_DEVICE),
                                            .elem = (ir_type)elem,
                                            .kind = PARAM_BUFFER});
    }
    const uint32_t i = ir_param(m, f,
                                &(struct param){.name = ir_string(m, "i"),
                                                .type = TYPE_U32,
                                                .kind = PARAM_ATTRIBUTE,
                                                .attribute = ATTR_THREAD_POSITION_IN_GRID});
    uint32_t p = param[CHAIN], index[CHAIN];
    for (unsigned k = 0; k < c->n; k++) {
        const struct step *const s = &c->step[k];
        index[k] = s->constant ? ir_const(m, (ir_type)s->type, (uint64_t)s->index[0])
                               : ir_load(&b, (ir_type)s->type, ir_index(&b, (ir_type)s->type, param[k], i));
    }
    for (unsigned k = 0; k < c->n; k++)
        index[k] = ir_convert(&b, (ir_type)c->step[k].to, index[k]);
    const uint32_t yes = ir_node(&b, OP_EQ, TYPE_BOOL, 2, (uint32_t[]){i, i}, 0, 0);
    for (unsigned k = 0; k < c->n; k++) {
        const struct step *const s = &c->step[k];
        if (s->apart)
            p = ir_node(&b, OP_SELECT, TYPE_POINTER(SPACE_DEVICE), 3, (uint32_t[]){yes, p, param[CHAIN]}, 0, 0);
        p = ir_index(&b, ir_type_array(m, (ir_type)S_U8, s->scale), p, index[k]);
    }
    const uint32_t o = ir_index(&b, (ir_type)c->scalar, param[CHAIN + 1], i);
    if (c->stores)
        ir_store(&b, p, ir_load(&b, (ir_type)c->scalar, o));
    else
        ir_store(&b, o, ir_load(&b, (ir_type)c->scalar, p));
    CHECK_EQ(ir_verify(m, &error), SK_OK);
    return m;
}

static void run(const struct chain *c, struct ir_module *m, const struct lane_loops *loops)
{
    static uint8_t data[BYTES], index[CHAIN][THREADS * 8], other[THREADS * 8], data_want[BYTES],
        other_want[THREADS * 8];
    const unsigned bytes = scalar_info[c->scalar].bytes;
    bool faults = false;
    for (unsigned k = 0; k < BYTES; k++)
        data[k] = c->scalar == S_BOOL ? k % 3 == 0 : (uint8_t)(k * 7 + (k >> 8));
    for (unsigned k = 0; k < sizeof other; k++)
        other[k] = c->scalar == S_BOOL ? k % 2 : (uint8_t)(k * 5 + 3);
    memcpy(data_want, data, sizeof data);
    memcpy(other_want, other, sizeof other);
    struct interp_arg args[CHAIN + 2];
    for (unsigned k = 0; k < CHAIN; k++) {
        const unsigned size = scalar_info[index_type(c, k)].bytes;
        for (unsigned l = 0; l < THREADS; l++)
            memcpy(index[k] + (size_t)l * size, &c->step[k].index[l], size);
        args[k] = (struct interp_arg){index[k], sizeof index[k]};
    }
    args[CHAIN] = (struct interp_arg){data, sizeof data};
    args[CHAIN + 1] = (struct interp_arg){other, sizeof other};
    for (unsigned l = 0; l < THREADS; l++) {
        uint64_t at;
        const bool in = expected(c, l, &at);
        faults = faults || !in;
        if (c->stores) {
            if (in)
                memcpy(data_want + at, other_want + (size_t)l * bytes, bytes);
        } else if (in) {
            memcpy(other_want + (size_t)l * bytes, data + at, bytes);
        } else {
            memset(other_want + (size_t)l * bytes, 0, bytes);
        }
    }
    struct interp_program *p = NULL;
    CHECK_EQ(interp_compile_for(&mem, m, 1, loops, &p, &error), SK_OK);
    if (!p)
        return;
    const struct interp_launch l = {.threads = {THREADS, 1, 1}, .threadgroup = {64, 1, 1}, .args = args};
    CHECK_EQ(interp_run(p, &l, &mem, &error), faults ? SK_ERR_FAULT : SK_OK);
    CHECK(memcmp(data, data_want, sizeof data) == 0);
    CHECK(memcmp(other, other_want, sizeof other) == 0);
    interp_free(p);
}

static sk_status all(void)
{
    for (unsigned round = 0; round < 6000 && check_failures == 0; round++) {
        static struct chain c;
        if (round % 32 == 31)
            there_and_back(&c);
        else
            random_chain(&c);
        struct ir_module *const m = build(&c);
        run(&c, m, &lanes_least);
        run(&c, m, lanes_best());
        CHECK_EQ(pass_run(m, NULL, &error), SK_OK);
        run(&c, m, lanes_best());
        if (check_failures)
            printf("in round %u\n", round);
        ir_module_free(m);
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
