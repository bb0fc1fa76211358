/* gen_value.c - types, constants, and operations on values. */
#include "fuzz/gen_internal.h"

uint64_t gen_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint32_t roll(struct gen *g, uint32_t n)
{
    return (uint32_t)((gen_random(&g->state) >> 32) * n >> 32);
}

bool chance(struct gen *g, unsigned percent)
{
    return roll(g, 100) < percent;
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

void gen_tables(struct gen *g)
{
    for (unsigned k = 1; k < OP_COUNT; k++) {
        const struct op_info *const x = &op_info[k];
        if (x->effect == EFFECT_CONVERGENT && k != OP_BARRIER && k != OP_SIMDGROUP_BARRIER)
            g->collective[g->n_collective++] = (enum op)k;
        else if (x->effect == EFFECT_PURE && (x->rule == RULE_SAME || x->rule == RULE_COMPARE || x->rule == RULE_SHIFT))
            g->elementwise[g->n_elementwise++] = (enum op)k;
    }
}

ir_type gen_scalar_type(struct gen *g, unsigned classes)
{
    static const uint8_t common[] = {S_I32, S_U32, S_F32, S_F32, S_I32, S_U32, S_BOOL};
    for (;;) {
        const uint32_t s = chance(g, 60) ? common[roll(g, sizeof common)] : 1 + roll(g, S_COUNT - 1);
        if (scalar_info[s].class_ & classes)
            return (ir_type)s;
    }
}

ir_type gen_numeric_type(struct gen *g, unsigned classes)
{
    const enum scalar s = (enum scalar)gen_scalar_type(g, classes);
    return chance(g, 70) ? (ir_type)s : ir_type_vector(s, 2 + roll(g, 3));
}

ir_type gen_type(struct gen *g)
{
    if (g->n_aggregates && chance(g, 12))
        return g->aggregate[roll(g, g->n_aggregates)];
    return gen_numeric_type(g, CLASS_BSUF);
}

void gen_new_aggregate(struct gen *g)
{
    if (g->n_aggregates == sizeof g->aggregate / sizeof *g->aggregate)
        return;
    ir_type t;
    if (chance(g, 50)) {
        t = ir_type_array(g->m, gen_type(g), 1 + roll(g, 4));
    } else {
        struct field f[5] = {0};
        char name[8] = "f0";
        const unsigned n = 1 + roll(g, 5);
        for (unsigned k = 0; k < n; k++) {
            name[1] = (char)('0' + k);
            f[k].name = ir_string(g->m, name);
            f[k].type = gen_type(g);
        }
        name[0] = 'S';
        name[1] = (char)('0' + g->n_structs++);
        t = ir_type_struct(g->m, ir_string(g->m, name), n, f);
    }
    if (t != TYPE_VOID && ir_type_at(g->m, t)->size <= 256)
        g->aggregate[g->n_aggregates++] = t;
}

/* ---- constants ------------------------------------------------------------------------------------------------- */

static double special_float(struct gen *g)
{
    static const double x[] = {
        0.0,      -0.0,  1.0,   -1.0,  0.5,     -0.5,         1.5,           2.5,          2.0,     3.0,        -3.0,
        7.25,     1e10,  -1e10, 1e-10, 65504.0, 1e38,         -1e38,         3e-39,        1.4e-45, 1e-40,      256.0,
        16777216, 255.5, 0.1,   100.0, -7.0,    2147483648.0, -2147483649.0, 4294967296.0, 1e19,    3.14159265, 127.0};
    const uint32_t k = roll(g, sizeof x / sizeof *x + 5);
    if (k < sizeof x / sizeof *x)
        return x[k];
    switch (k - sizeof x / sizeof *x) {
    case 0: return (double)__builtin_inff();
    case 1: return (double)-__builtin_inff();
    case 2: return (double)__builtin_nanf("");
    }
    return (double)(int32_t)roll(g, 2000) - 1000.0;
}

uint64_t gen_bits(struct gen *g, enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    const uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    if (scalar_info[s].class_ == CLASS_F) {
        const double x = chance(g, 75) ? special_float(g) : (double)roll(g, 1u << 20) / 65536.0 - 8.0;
        if (s == S_F16)
            return f16_from_f64(x);
        if (s == S_BF16)
            return bf16_from_f64(x);
        return bits_f32((float)x);
    }
    switch (roll(g, 10)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return mask;                      /* -1, the largest */
    case 3: return (uint64_t)1 << (bits - 1); /* the smallest */
    case 4: return mask >> 1;
    case 5: return ((uint64_t)bits + roll(g, 3) - 1) & mask; /* about the width, for shifts */
    case 6: return (uint64_t)1 << roll(g, bits);
    case 7: return gen_random(&g->state) & mask;
    }
    return roll(g, 20) & mask;
}

uint32_t gen_constant(struct gen *g, enum scalar s)
{
    return ir_const(g->m, (ir_type)s, gen_bits(g, s));
}

/* ---- the visible values ---------------------------------------------------------------------------------------- */

bool gen_same(const struct gen *g, uint32_t id)
{
    const uint16_t op = ir_at(g->m, id)->op;
    return op == OP_CONST || op == OP_ZERO || (id < g->marks.n && g->marks.at[id] & MARK_SAME);
}

void gen_mark(struct gen *g, uint32_t id, unsigned mark)
{
    while (g->marks.n <= id)
        VEC_PUSH(g->mem, &g->marks, 0);
    g->marks.at[id] = (uint8_t)(g->marks.at[id] | mark);
}

void gen_push(struct gen *g, uint32_t id, bool same)
{
    gen_mark(g, id, same ? MARK_SAME : 0);
    if (ir_at(g->m, id)->region || ir_at(g->m, id)->op == OP_PARAM)
        VEC_PUSH(g->mem, &g->values, id);
}

uint32_t gen_node(struct gen *g, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags, uint64_t imm)
{
    bool same = op_info[op].effect == EFFECT_PURE;
    for (unsigned k = 0; k < n; k++)
        same = same && gen_same(g, in[k]);
    if (op_info[op].effect == EFFECT_PURE && n && chance(g, 40)) { /* sometimes folded as the tracer would */
        const uint32_t folded = ir_fold(g->m, op, type, n, in, flags, imm);
        if (folded)
            return folded;
    }
    const uint32_t id = ir_node(&g->b, op, type, n, in, flags, imm);
    if (chance(g, 3))
        ir_at(g->m, id)->name = type ? ir_string(g->m, chance(g, 50) ? "t" : "x1") : 0;
    if (type != TYPE_VOID)
        gen_push(g, id, same);
    return id;
}

/* A visible value of type t (TYPE_VOID: of any scalar type), newer ones more often; 0: none. */
static uint32_t visible(struct gen *g, ir_type t)
{
    const uint32_t n = g->values.n;
    uint32_t at = n ? roll(g, n) : 0;
    if (chance(g, 50) && n > 12)
        at = n - 1 - roll(g, 12);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t id = g->values.at[(at + n - k) % n];
        const ir_type have = ir_at(g->m, id)->type;
        if (t ? have == t : ir_type_width(have) == 1)
            return id;
    }
    return 0;
}

static uint32_t fresh(struct gen *g, ir_type t, unsigned depth);

static uint32_t value(struct gen *g, ir_type t, unsigned depth)
{
    const uint32_t id = chance(g, 75) ? visible(g, t) : 0;
    return id ? id : fresh(g, t, depth);
}

static uint32_t fresh(struct gen *g, ir_type t, unsigned depth)
{
    const unsigned width = ir_type_width(t);
    uint32_t part[8];
    if (width == 1) {
        const uint32_t from = chance(g, 45) ? visible(g, TYPE_VOID) : 0;
        if (from && ir_at(g->m, from)->type != t)
            return gen_node(g, OP_CONVERT, t, 1, &from, 0, 0);
        return gen_constant(g, ir_type_scalar(t));
    }
    if (depth > 3 || chance(g, 8))
        return ir_zero(g->m, t);
    if (width > 1 && chance(g, 35)) {
        part[0] = value(g, (ir_type)ir_type_scalar(t), depth + 1);
        return gen_node(g, OP_SPLAT, t, 1, part, 0, 0);
    }
    const uint64_t n = ir_type_parts(g->m, t);
    if (n == 0 || n > 8)
        return ir_zero(g->m, t);
    for (uint64_t k = 0; k < n; k++)
        part[k] = value(g, ir_type_part(g->m, t, k), depth + 1);
    return gen_node(g, OP_MAKE, t, (unsigned)n, part, 0, 0);
}

uint32_t gen_value(struct gen *g, ir_type t)
{
    return value(g, t, 0);
}

uint32_t gen_op1(struct gen *g, enum op op, ir_type t, uint32_t a)
{
    return gen_node(g, op, t, 1, &a, 0, 0);
}

uint32_t gen_op2(struct gen *g, enum op op, ir_type t, uint32_t a, uint32_t b)
{
    return gen_node(g, op, t, 2, (const uint32_t[]){a, b}, 0, 0);
}

uint32_t gen_condition(struct gen *g, bool same)
{
    if (!same && chance(g, 30))
        return gen_value(g, TYPE_BOOL);
    if (!same && g->lane && chance(g, 30)) /* by the parts of a simdgroup */
        return gen_op2(g, chance(g, 50) ? OP_LT : OP_EQ, TYPE_BOOL,
                       gen_op2(g, OP_AND, TYPE_U32, g->lane, ir_const(g->m, TYPE_U32, 1 + roll(g, 31))),
                       ir_const(g->m, TYPE_U32, roll(g, 16)));
    uint32_t disguised = 0; /* see gen_memory.c */
    for (uint32_t k = g->values.n; same && k > 0 && !disguised; k--) {
        const uint32_t x = g->values.at[k - 1];
        if (ir_at(g->m, x)->op == OP_LOAD && gen_same(g, x) && ir_type_width(ir_at(g->m, x)->type) == 1)
            disguised = x;
    }
    for (unsigned tries = 0; tries < 8; tries++) {
        const uint32_t x = disguised && chance(g, 60) ? disguised : visible(g, TYPE_VOID);
        if (!x || (same && !gen_same(g, x)))
            continue;
        const ir_type t = ir_at(g->m, x)->type;
        static const enum op compare[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
        const uint32_t y = t == TYPE_BOOL || same ? gen_constant(g, ir_type_scalar(t)) : gen_value(g, t);
        return gen_op2(g, compare[roll(g, t == TYPE_BOOL ? 2 : 6)], TYPE_BOOL, x, y);
    }
    return ir_const(g->m, TYPE_BOOL, roll(g, 2));
}

uint32_t gen_below(struct gen *g, uint64_t count)
{
    if (count == 1 || chance(g, 15))
        return ir_const(g->m, gen_scalar_type(g, CLASS_SU), roll(g, count < 100 ? (uint32_t)count : 100u));
    if (g->known.n && chance(g, 50)) {
        const struct below b = g->known.at[roll(g, g->known.n)];
        const ir_type t = ir_at(g->m, b.node)->type;
        if (b.limit <= count && chance(g, 60))
            return b.node;
        if (2 * b.limit <= count && scalar_info[t].bits >= 32)
            return gen_op2(g, OP_ADD, t, gen_op2(g, OP_MUL, t, b.node, ir_const(g->m, t, 2)),
                           ir_const(g->m, t, roll(g, 2)));
    }
    const uint32_t c = ir_const(g->m, TYPE_U32, count);
    const uint32_t x = gen_value(g, TYPE_U32);
    switch (roll(g, 3)) {
    case 0: return gen_op2(g, OP_MIN, TYPE_U32, x, ir_const(g->m, TYPE_U32, count - 1));
    case 1:
        if ((count & (count - 1)) == 0)
            return gen_op2(g, OP_AND, TYPE_U32, x, ir_const(g->m, TYPE_U32, count - 1));
        break;
    case 2: return gen_op2(g, OP_REM_FLOOR, TYPE_I32, gen_value(g, TYPE_I32), ir_const(g->m, TYPE_I32, count));
    }
    return gen_op2(g, chance(g, 50) ? OP_REM_FLOOR : OP_REM_TRUNC, TYPE_U32, x, c);
}

/* NaN is one value as long as nobody looks at its bits: they are made the same first. */
static uint32_t canonical(struct gen *g, uint32_t x)
{
    const ir_type t = ir_at(g->m, x)->type;
    const enum scalar s = ir_type_scalar(t);
    if (scalar_info[s].class_ != CLASS_F)
        return x;
    uint32_t nan = ir_const_f(g->m, (ir_type)s, (double)__builtin_nanf(""));
    if (ir_type_width(t) > 1)
        nan = gen_op1(g, OP_SPLAT, t, nan);
    const uint32_t in[3] = {gen_op2(g, OP_NE, ir_type_with(t, S_BOOL), x, x), nan, x};
    return gen_node(g, OP_SELECT, t, 3, in, 0, 0);
}

static uint32_t to_u32(struct gen *g, uint32_t x)
{
    const enum scalar s = ir_type_scalar(ir_at(g->m, x)->type);
    if (scalar_info[s].class_ == CLASS_F) {
        const ir_type bits = scalar_info[s].bytes == 2 ? (ir_type)S_U16 : TYPE_U32;
        x = gen_op1(g, OP_BITCAST, bits, canonical(g, x));
    }
    return ir_at(g->m, x)->type == TYPE_U32 ? x : gen_op1(g, OP_CONVERT, TYPE_U32, x);
}

void gen_sink(struct gen *g, uint32_t id)
{
    while (ir_type_width(ir_at(g->m, id)->type) != 1) {
        const ir_type t = ir_at(g->m, id)->type;
        const uint64_t k = roll(g, (uint32_t)ir_type_parts(g->m, t));
        id = gen_node(g, OP_EXTRACT, ir_type_part(g->m, t, k), 1, &id, 0, k);
    }
    if (!g->acc)
        return;
    const uint32_t old = gen_op1(g, OP_GET, TYPE_U32, g->acc);
    const uint32_t mixed = gen_op2(g, OP_MUL, TYPE_U32, old, ir_const(g->m, TYPE_U32, 0x01000193));
    const uint32_t now = gen_op2(g, OP_XOR, TYPE_U32, mixed, to_u32(g, id));
    ir_node(&g->b, OP_SET, TYPE_VOID, 2, (const uint32_t[]){g->acc, now}, 0, 0);
}

/* ---- statements: values ---------------------------------------------------------------------------------------- */

static void elementwise(struct gen *g)
{
    const enum op op = g->elementwise[roll(g, g->n_elementwise)];
    const struct op_info *const x = &op_info[op];
    const ir_type t = gen_numeric_type(g, x->classes & CLASS_BSUF);
    uint32_t in[3];
    for (int k = 0; k < x->n; k++)
        in[k] = gen_value(g, t);
    if (x->rule == RULE_SHIFT)
        in[1] = gen_value(g, ir_type_with(t, (enum scalar)gen_scalar_type(g, CLASS_SU)));
    unsigned flags = 0;
    if (x->math && math_info[op].fast && chance(g, 20))
        flags = NODE_FAST;
    if ((op == OP_ADD || op == OP_SUB || op == OP_MUL) && chance(g, 10))
        flags = NODE_NO_CONTRACT;
    gen_node(g, op, x->rule == RULE_COMPARE ? ir_type_with(t, S_BOOL) : t, (unsigned)x->n, in, flags, 0);
}

/* Integers of which the lanes of a bundle differ by a constant, or nearly: a position times a stride, shifted, cut, narrowed,
 * with something the same for all. */
uint32_t gen_linear(struct gen *g)
{
    uint32_t x = g->lane && chance(g, 50) ? g->lane : g->index;
    if (!x || chance(g, 20))
        x = gen_value(g, (ir_type[]){TYPE_U32, TYPE_I32, TYPE_U64, TYPE_I64}[roll(g, 4)]);
    if (g->known.n && chance(g, 30)) /* a loop's counter, or so */
        x = g->known.at[roll(g, g->known.n)].node;
    for (unsigned n = 1 + roll(g, 4); n > 0; n--) {
        ir_type t = ir_at(g->m, x)->type;
        uint32_t c = chance(g, 70) ? ir_const(g->m, t, (uint64_t)(int64_t)((int32_t)roll(g, 12) - 3)) : gen_value(g, t);
        if (chance(g, 5))
            c = gen_constant(g, ir_type_scalar(t));
        const ir_type to = (ir_type[]){TYPE_U32, TYPE_I32, TYPE_U64, TYPE_I64, S_U16, S_I16, S_U8, S_I8}[roll(g, 8)];
        switch (roll(g, 11)) {
        case 0:
        case 1: x = gen_op2(g, OP_MUL, t, x, c); break;
        case 2:
        case 3: x = gen_op2(g, OP_ADD, t, x, c); break;
        case 4: x = gen_op2(g, OP_SUB, t, chance(g, 50) ? x : c, chance(g, 50) ? c : x); break;
        case 5: x = gen_op2(g, chance(g, 50) ? OP_SHL : OP_SHR, t, x, ir_const(g->m, TYPE_U32, roll(g, 7))); break;
        case 6:
            x = gen_op2(g, OP_AND, t, x,
                        ir_const(g->m, t, (uint64_t[]){1, 3, 7, 15, 31, 63, 255, 0xfffffff0u}[roll(g, 8)]));
            break;
        case 7: {
            static const enum op divide[] = {OP_DIV_TRUNC, OP_DIV_FLOOR, OP_REM_TRUNC, OP_REM_FLOOR};
            const uint64_t by[] = {2, 3, 4, 8, 16, 32, 5};
            x = gen_op2(g, divide[roll(g, 4)], t, x, ir_const(g->m, t, by[roll(g, 7)]));
            break;
        }
        case 8: x = gen_op2(g, chance(g, 50) ? OP_MIN : OP_MAX, t, x, c); break;
        case 9: x = chance(g, 50) ? gen_op1(g, OP_NEG, t, x) : gen_op1(g, OP_NOT, t, x); break;
        case 10:
            if (to != t)
                x = gen_op1(g, OP_CONVERT, to, x);
            break;
        }
    }
    if (chance(g, 50))
        gen_sink(g, x);
    return x;
}

static void linear(struct gen *g)
{
    (void)gen_linear(g);
}

/* Operations of which the simplifier knows something: by constants, by equal operands, twice. */
static void algebra(struct gen *g)
{
    static const enum op integer[] = {OP_ADD,       OP_SUB,       OP_MUL,       OP_AND,       OP_OR,  OP_XOR,
                                      OP_DIV_TRUNC, OP_REM_TRUNC, OP_DIV_FLOOR, OP_REM_FLOOR, OP_SHL, OP_SHR};
    static const enum op real[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV};
    const bool is_float = chance(g, 35);
    const ir_type t = gen_numeric_type(g, is_float ? CLASS_F : CLASS_SU);
    const enum op op = is_float ? real[roll(g, 4)] : integer[roll(g, 12)];
    const enum scalar s = ir_type_scalar(t);
    uint32_t a = gen_value(g, t), b;
    if (chance(g, 20)) {
        b = a;
    } else {
        b = is_float ? ir_const_f(g->m, (ir_type)s, (double[]){0.0, -0.0, 1.0, -1.0}[roll(g, 4)])
                     : ir_const(g->m, (ir_type)s, (uint64_t[]){0, 1, ~(uint64_t)0, 2, 4, 8, 32, 128}[roll(g, 8)]);
        if (ir_type_width(t) > 1)
            b = gen_op1(g, OP_SPLAT, t, b);
        if (op != OP_SHL && op != OP_SHR && chance(g, 40)) {
            const uint32_t swap = a;
            a = b;
            b = swap;
        }
    }
    uint32_t x = gen_op2(g, op, t, a, b);
    if (chance(g, 20)) {
        const enum op twice = is_float || chance(g, 50) ? OP_NEG : OP_NOT;
        x = gen_op1(g, twice, t, gen_op1(g, twice, t, x));
    }
}

static void select_value(struct gen *g)
{
    const ir_type t = gen_type(g);
    const ir_type c = ir_type_width(t) > 1 && chance(g, 60) ? ir_type_with(t, S_BOOL) : TYPE_BOOL;
    const uint32_t in[3] = {chance(g, 10) ? ir_zero(g->m, c) : gen_value(g, c), gen_value(g, t), gen_value(g, t)};
    gen_node(g, OP_SELECT, t, 3, in, 0, 0);
}

static unsigned value_bits(ir_type t)
{
    return ir_type_width(t) * 8u * scalar_info[ir_type_scalar(t)].bytes;
}

static void convert(struct gen *g)
{
    const ir_type from = gen_numeric_type(g, CLASS_BSUF);
    uint32_t x = gen_value(g, from);
    if (chance(g, 50)) {
        gen_op1(g, OP_CONVERT, ir_type_with(from, (enum scalar)gen_scalar_type(g, CLASS_BSUF)), x);
        return;
    }
    if (ir_type_scalar(from) == S_BOOL)
        return;
    for (unsigned tries = 0; tries < 20; tries++) {
        const ir_type to = gen_numeric_type(g, CLASS_SUF);
        if (value_bits(to) == value_bits(from)) {
            x = canonical(g, x);
            gen_op1(g, OP_BITCAST, to, x);
            return;
        }
    }
}

static void parts(struct gen *g)
{
    ir_type t = gen_type(g);
    if (ir_type_width(t) == 1)
        t = ir_type_vector(ir_type_scalar(t), 2 + roll(g, 3));
    const uint32_t whole = gen_value(g, t);
    const uint32_t n = (uint32_t)ir_type_parts(g->m, t), k = roll(g, n);
    const ir_type part = ir_type_part(g->m, t, k);
    const bool is_struct = ir_type_at(g->m, t)->kind == TYPE_KIND_STRUCT;
    const ir_type count = gen_scalar_type(g, CLASS_SU);
    const uint32_t index = chance(g, 70) ? gen_below(g, n) : gen_value(g, count);
    switch (roll(g, 5)) {
    case 0: gen_node(g, OP_EXTRACT, part, 1, &whole, 0, k); return;
    case 1: gen_node(g, OP_INSERT, t, 2, (const uint32_t[]){whole, gen_value(g, part)}, 0, k); return;
    case 2:
        if (!is_struct)
            gen_op2(g, OP_EXTRACT_AT, part, whole, index);
        return;
    case 3:
        if (!is_struct)
            gen_node(g, OP_INSERT_AT, t, 3, (const uint32_t[]){whole, gen_value(g, part), index}, 0, 0);
        return;
    }
    if (ir_type_width(t) == 0)
        return;
    const unsigned m = 2 + roll(g, 3);
    uint64_t picks = 0;
    for (unsigned i = 0; i < m; i++)
        picks |= (uint64_t)(roll(g, n) + 4 * roll(g, 2)) << 4 * i;
    gen_node(g, OP_SHUFFLE, ir_type_vector(ir_type_scalar(t), m), 2, (const uint32_t[]){whole, gen_value(g, t)}, 0,
             picks);
}

/* The same operation again, for pass E; or with a product that pass C looks for. */
static void again(struct gen *g)
{
    if (chance(g, 30)) {
        const ir_type t = gen_numeric_type(g, CLASS_F);
        const uint32_t product = gen_op2(g, OP_MUL, t, gen_value(g, t), gen_value(g, t));
        const uint32_t c = gen_value(g, t);
        const bool first = chance(g, 50);
        gen_op2(g, chance(g, 50) ? OP_ADD : OP_SUB, t, first ? product : c, first ? c : product);
        return;
    }
    const uint32_t n = g->values.n, id = n ? g->values.at[n - 1 - roll(g, n < 40 ? n : 40)] : 0;
    if (!id)
        return;
    const struct node x = *ir_at(g->m, id);
    if (x.op == OP_ARG || x.op == OP_RESULT || x.op == OP_PARAM || x.n > 3 ||
        (op_info[x.op].effect != EFFECT_PURE && op_info[x.op].effect != EFFECT_CONVERGENT && x.op != OP_LOAD))
        return;
    if (x.op == OP_LOAD && ir_type_space(ir_at(g->m, x.in[0])->type) == SPACE_THREADGROUP)
        return; /* others may be writing it by now */
    gen_node(g, (enum op)x.op, x.type, x.n, x.in, x.flags, x.imm);
}

/* ---- choice ---------------------------------------------------------------------------------------------------- */

void gen_choose(struct gen *g, const struct gen_kind *kind, unsigned n)
{
    unsigned total = 0, k = 0;
    for (unsigned i = 0; i < n; i++)
        total += kind[i].weight;
    uint32_t at = roll(g, total);
    while (at >= kind[k].weight)
        at -= kind[k++].weight;
    kind[k].run(g);
}

void gen_value_statement(struct gen *g)
{
    static const struct gen_kind kind[] = {{22, elementwise}, {12, algebra}, {5, select_value}, {8, convert},
                                           {10, parts},       {8, again},    {10, linear}};
    gen_choose(g, kind, sizeof kind / sizeof *kind);
}
