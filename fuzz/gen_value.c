/* gen_value.c - types, constants, and every operation that is no construct. */
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
    static const double x[] = {0.0,  -0.0,  1.0,   -1.0,     0.5,   -0.5, 1.5,    2.5,     2.0,   3.0,    -3.0,     7.25,
                               1e10, -1e10, 1e-10, 65504.0,  1e38,  -1e38, 3e-39, 1.4e-45, 1e-40, 256.0,  16777216, 255.5,
                               0.1,  100.0, -7.0,  2147483648.0, -2147483649.0, 4294967296.0, 1e19, 3.14159265, 127.0};
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
    case 2: return mask;                              /* -1, the largest */
    case 3: return (uint64_t)1 << (bits - 1);         /* the smallest */
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

static uint32_t op1(struct gen *g, enum op op, ir_type t, uint32_t a)
{
    return gen_node(g, op, t, 1, &a, 0, 0);
}

static uint32_t op2(struct gen *g, enum op op, ir_type t, uint32_t a, uint32_t b)
{
    return gen_node(g, op, t, 2, (const uint32_t[]){a, b}, 0, 0);
}

uint32_t gen_condition(struct gen *g, bool same)
{
    if (!same && chance(g, 30))
        return gen_value(g, TYPE_BOOL);
    if (!same && g->lane && chance(g, 30)) /* by the parts of a simdgroup */
        return op2(g, chance(g, 50) ? OP_LT : OP_EQ, TYPE_BOOL,
                   op2(g, OP_AND, TYPE_U32, g->lane, ir_const(g->m, TYPE_U32, 1 + roll(g, 31))),
                   ir_const(g->m, TYPE_U32, roll(g, 16)));
    for (unsigned tries = 0; tries < 8; tries++) {
        const uint32_t x = visible(g, TYPE_VOID);
        if (!x || (same && !gen_same(g, x)))
            continue;
        const ir_type t = ir_at(g->m, x)->type;
        static const enum op compare[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
        const uint32_t y = t == TYPE_BOOL || same ? gen_constant(g, ir_type_scalar(t)) : gen_value(g, t);
        return op2(g, compare[roll(g, t == TYPE_BOOL ? 2 : 6)], TYPE_BOOL, x, y);
    }
    return ir_const(g->m, TYPE_BOOL, roll(g, 2));
}

uint32_t gen_below(struct gen *g, uint64_t count)
{
    if (count == 1 || chance(g, 15))
        return ir_const(g->m, gen_scalar_type(g, CLASS_SU), roll(g, count < 100 ? (uint32_t)count : 100u));
    const uint32_t c = ir_const(g->m, TYPE_U32, count);
    const uint32_t x = gen_value(g, TYPE_U32);
    switch (roll(g, 3)) {
    case 0: return op2(g, OP_MIN, TYPE_U32, x, ir_const(g->m, TYPE_U32, count - 1));
    case 1:
        if ((count & (count - 1)) == 0)
            return op2(g, OP_AND, TYPE_U32, x, ir_const(g->m, TYPE_U32, count - 1));
        break;
    case 2: return op2(g, OP_REM_FLOOR, TYPE_I32, gen_value(g, TYPE_I32), ir_const(g->m, TYPE_I32, count));
    }
    return op2(g, chance(g, 50) ? OP_REM_FLOOR : OP_REM_TRUNC, TYPE_U32, x, c);
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
        nan = op1(g, OP_SPLAT, t, nan);
    const uint32_t in[3] = {op2(g, OP_NE, ir_type_with(t, S_BOOL), x, x), nan, x};
    return gen_node(g, OP_SELECT, t, 3, in, 0, 0);
}

static uint32_t to_u32(struct gen *g, uint32_t x)
{
    const enum scalar s = ir_type_scalar(ir_at(g->m, x)->type);
    if (scalar_info[s].class_ == CLASS_F) {
        const ir_type bits = scalar_info[s].bytes == 2 ? (ir_type)S_U16 : TYPE_U32;
        x = op1(g, OP_BITCAST, bits, canonical(g, x));
    }
    return ir_at(g->m, x)->type == TYPE_U32 ? x : op1(g, OP_CONVERT, TYPE_U32, x);
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
    const uint32_t old = op1(g, OP_GET, TYPE_U32, g->acc);
    const uint32_t mixed = op2(g, OP_MUL, TYPE_U32, old, ir_const(g->m, TYPE_U32, 0x01000193));
    const uint32_t now = op2(g, OP_XOR, TYPE_U32, mixed, to_u32(g, id));
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

/* Operations of which the simplifier knows something: by constants, by equal operands, twice. */
static void algebra(struct gen *g)
{
    static const enum op integer[] = {OP_ADD, OP_SUB, OP_MUL, OP_AND, OP_OR, OP_XOR, OP_DIV_TRUNC, OP_REM_TRUNC,
                                      OP_DIV_FLOOR, OP_REM_FLOOR, OP_SHL, OP_SHR};
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
            b = op1(g, OP_SPLAT, t, b);
        if (op != OP_SHL && op != OP_SHR && chance(g, 40)) {
            const uint32_t swap = a;
            a = b;
            b = swap;
        }
    }
    uint32_t x = op2(g, op, t, a, b);
    if (chance(g, 20)) {
        const enum op twice = is_float || chance(g, 50) ? OP_NEG : OP_NOT;
        x = op1(g, twice, t, op1(g, twice, t, x));
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
        op1(g, OP_CONVERT, ir_type_with(from, (enum scalar)gen_scalar_type(g, CLASS_BSUF)), x);
        return;
    }
    if (ir_type_scalar(from) == S_BOOL)
        return;
    for (unsigned tries = 0; tries < 20; tries++) {
        const ir_type to = gen_numeric_type(g, CLASS_SUF);
        if (value_bits(to) == value_bits(from)) {
            x = canonical(g, x);
            op1(g, OP_BITCAST, to, x);
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
            op2(g, OP_EXTRACT_AT, part, whole, index);
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
    gen_node(g, OP_SHUFFLE, ir_type_vector(ir_type_scalar(t), m), 2, (const uint32_t[]){whole, gen_value(g, t)}, 0, picks);
}

/* The same operation again, for pass E; or with a product that pass C looks for. */
static void again(struct gen *g)
{
    if (chance(g, 30)) {
        const ir_type t = gen_numeric_type(g, CLASS_F);
        const uint32_t product = op2(g, OP_MUL, t, gen_value(g, t), gen_value(g, t));
        const uint32_t c = gen_value(g, t);
        const bool first = chance(g, 50);
        op2(g, chance(g, 50) ? OP_ADD : OP_SUB, t, first ? product : c, first ? c : product);
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

/* ---- statements: locals ---------------------------------------------------------------------------------------- */

static void local(struct gen *g)
{
    if (g->vars.n == 0 || (chance(g, 25) && g->vars.n < 30)) {
        const ir_type t = gen_type(g);
        const uint32_t init = gen_value(g, t);
        const uint32_t var = ir_node(&g->b, OP_VAR, t, 1, &init, 0, 0);
        if (chance(g, 60))
            ir_at(g->m, var)->name = ir_string(g->m, (const char *[]){"v", "acc", "w", "best_2"}[roll(g, 4)]);
        VEC_PUSH(g->mem, &g->vars, var);
        return;
    }
    const uint32_t var = g->vars.at[roll(g, g->vars.n)];
    const ir_type t = ir_at(g->m, var)->type;
    if (chance(g, 45))
        op1(g, OP_GET, t, var);
    else
        ir_node(&g->b, OP_SET, TYPE_VOID, 2, (const uint32_t[]){var, gen_value(g, t)}, 0, 0);
}

/* ---- statements: memory ---------------------------------------------------------------------------------------- */

static uint32_t wild_index(struct gen *g)
{
    if (chance(g, 50))
        return ir_const(g->m, TYPE_I64, (uint64_t)-1 - roll(g, 3));
    return ir_const(g->m, TYPE_U32, 0x40000000 + roll(g, 1000));
}

/* The address of an element or of something in it; *t is its type. `wild`: may lie outside. */
static uint32_t address(struct gen *g, const struct memory *x, bool wild, ir_type *t)
{
    uint32_t index = gen_below(g, x->count);
    if (x->base) {
        index = ir_at(g->m, index)->type == TYPE_U32 ? index : op1(g, OP_CONVERT, TYPE_U32, index);
        index = op2(g, OP_ADD, TYPE_U32, x->base, index);
    }
    if (wild) {
        const uint32_t far = wild_index(g), near = op1(g, OP_CONVERT, ir_at(g->m, far)->type, index);
        index = chance(g, 50) ? far : gen_node(g, OP_SELECT, ir_at(g->m, far)->type, 3,
                                               (const uint32_t[]){gen_condition(g, false), far, near}, 0, 0);
    }
    uint32_t p = gen_node(g, OP_INDEX, ir_at(g->m, x->pointer)->type, 2, (const uint32_t[]){x->pointer, index}, 0, x->elem);
    *t = x->elem;
    while (ir_type_width(*t) != 1 && chance(g, 60)) {
        const ir_type whole = *t;
        const uint32_t n = (uint32_t)ir_type_parts(g->m, whole), k = roll(g, n);
        *t = ir_type_part(g->m, whole, k);
        if (ir_type_at(g->m, whole)->kind == TYPE_KIND_STRUCT)
            p = gen_node(g, OP_FIELD, ir_at(g->m, p)->type, 1, &p, 0, whole | (uint64_t)k << 32);
        else
            p = gen_node(g, OP_INDEX, ir_at(g->m, p)->type, 2, (const uint32_t[]){p, gen_below(g, n)}, 0, *t);
    }
    gen_mark(g, p, x->writable ? MARK_WRITABLE : 0);
    return p;
}

static bool may_be_wild(struct gen *g, bool write)
{
    return (write ? g->p->write_faults : g->p->read_faults) && chance(g, 15);
}

static void load(struct gen *g)
{
    if (g->memories.n == 0)
        return;
    const struct memory x = g->memories.at[roll(g, g->memories.n)];
    ir_type t;
    const uint32_t p = address(g, &x, may_be_wild(g, false), &t);
    const uint32_t id = ir_node(&g->b, OP_LOAD, t, 1, &p, 0, 0);
    gen_push(g, id, x.uniform && gen_same(g, p));
    if (chance(g, 40))
        gen_sink(g, id);
}

void gen_store(struct gen *g)
{
    for (unsigned tries = 0; tries < 6 && g->memories.n; tries++) {
        const struct memory x = g->memories.at[roll(g, g->memories.n)];
        if (!x.writable)
            continue;
        ir_type t;
        const uint32_t p = address(g, &x, may_be_wild(g, true), &t);
        ir_store(&g->b, p, gen_value(g, t));
        return;
    }
}

void gen_wanted(struct gen *g, struct memory *x)
{
    for (unsigned tries = 0; tries < 4 && g->n_callees; tries++) {
        const struct callee *const c = &g->callee[roll(g, g->n_callees)];
        const struct memory *const want = c->n ? &c->memory[roll(g, c->n)] : NULL;
        if (want && want->elem && want->space == x->space) {
            x->elem = want->elem;
            x->count = want->count + roll(g, 3);
        }
    }
}

/* Reads again what was read before, with a write of it in between, perhaps in a construct. */
static void reread(struct gen *g)
{
    uint32_t id = 0;
    for (unsigned tries = 0; tries < 8 && g->values.n && !id; tries++) {
        const uint32_t x = g->values.at[roll(g, g->values.n)];
        if (ir_at(g->m, x)->op == OP_LOAD && g->marks.at[ir_in(g->m, x)[0]] & MARK_WRITABLE)
            id = x;
    }
    if (!id)
        return;
    const struct node x = *ir_at(g->m, id);
    uint32_t again[2];
    again[0] = gen_node(g, OP_LOAD, x.type, 1, x.in, 0, 0);
    if (chance(g, 40)) {
        gen_statements(g, 1);
    } else if (chance(g, 50)) {
        ir_store(&g->b, x.in[0], gen_value(g, x.type));
    } else {
        const uint32_t c = gen_condition(g, false), outer = g->b.region, seen = g->values.n;
        const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
        g->b.region = ir_region(g->m, node, 0);
        ir_store(&g->b, x.in[0], gen_value(g, x.type));
        g->b.region = outer;
        g->values.n = seen;
    }
    again[1] = gen_node(g, OP_LOAD, x.type, 1, x.in, 0, 0);
    for (unsigned k = 0; k < 2; k++)
        gen_sink(g, again[k]);
}

static void alloc(struct gen *g)
{
    if (g->memories.n > 12)
        return;
    struct memory x = {.elem = gen_type(g), .count = 1 + roll(g, 5), .space = SPACE_THREAD, .writable = true};
    gen_wanted(g, &x);
    const ir_type whole = x.count == 1 ? x.elem : ir_type_array(g->m, x.elem, x.count);
    x.pointer = ir_node(&g->b, OP_ALLOC, TYPE_POINTER(SPACE_THREAD), 0, NULL, 0, whole);
    gen_push(g, x.pointer, false);
    VEC_PUSH(g->mem, &g->memories, x);
    if (ir_type_class(g->m, x.elem) & CLASS_SU && ir_type_width(x.elem) == 1 && chance(g, 60)) {
        /* The same bytes as other integers. */
        static const uint8_t ints[] = {S_I8, S_U8, S_I16, S_U16, S_I32, S_U32, S_I64, S_U64};
        const ir_type other = ints[roll(g, sizeof ints)];
        const uint64_t bytes = x.count * ir_type_at(g->m, x.elem)->size, size = ir_type_at(g->m, other)->size;
        if (bytes >= size) {
            x.elem = other;
            x.count = bytes / size;
            VEC_PUSH(g->mem, &g->memories, x);
        }
    }
}

/* One of two pointers; both reach what the result is said to reach. */
static void choose_pointer(struct gen *g)
{
    if (g->memories.n < 2)
        return;
    const struct memory x = g->memories.at[roll(g, g->memories.n)], y = g->memories.at[roll(g, g->memories.n)];
    if (x.space != y.space || x.elem != y.elem || x.base || y.base)
        return;
    struct memory z = x;
    z.count = x.count < y.count ? x.count : y.count;
    z.writable = x.writable && y.writable;
    z.uniform = false;
    const uint32_t in[3] = {gen_condition(g, false), x.pointer, y.pointer};
    z.pointer = gen_node(g, OP_SELECT, ir_at(g->m, x.pointer)->type, 3, in, 0, 0);
    VEC_PUSH(g->mem, &g->memories, z);
    op2(g, chance(g, 50) ? OP_EQ : OP_NE, TYPE_BOOL, z.pointer, y.pointer);
}

/* ---- statements: threads --------------------------------------------------------------------------------------- */

static bool is_atomic_type(ir_type t)
{
    return t == TYPE_I32 || t == TYPE_U32 || t == TYPE_I64 || t == TYPE_U64 || t == TYPE_F32;
}

static unsigned order_flags(struct gen *g, enum op op)
{
    unsigned order = roll(g, ORDER_COUNT);
    if (op == OP_ATOMIC_LOAD && (order == ORDER_RELEASE || order == ORDER_ACQ_REL))
        order = ORDER_RELAXED;
    if (op == OP_ATOMIC_STORE && (order == ORDER_ACQUIRE || order == ORDER_ACQ_REL))
        order = ORDER_RELAXED;
    return order << NODE_ORDER_SHIFT | roll(g, SCOPE_COUNT) << NODE_SCOPE_SHIFT;
}

/* On an element that nobody else touches, any operation and its old value. */
static void own_atomic(struct gen *g)
{
    static const enum op all[] = {OP_ATOMIC_LOAD, OP_ATOMIC_STORE, OP_ATOMIC_EXCHANGE, OP_ATOMIC_CAS, OP_ATOMIC_ADD,
                                  OP_ATOMIC_SUB,  OP_ATOMIC_MIN,   OP_ATOMIC_MAX,      OP_ATOMIC_AND, OP_ATOMIC_OR,
                                  OP_ATOMIC_XOR};
    for (unsigned tries = 0; tries < 6 && g->memories.n; tries++) {
        const struct memory x = g->memories.at[roll(g, g->memories.n)];
        if (!x.writable || x.space != SPACE_DEVICE || !is_atomic_type(x.elem))
            continue;
        const enum op op = all[roll(g, 11)];
        /* Floats have no bits to combine, and a NaN's would be compared. */
        if (x.elem == TYPE_F32 && (op == OP_ATOMIC_CAS || op == OP_ATOMIC_AND || op == OP_ATOMIC_OR || op == OP_ATOMIC_XOR))
            continue;
        ir_type t;
        const uint32_t in[3] = {address(g, &x, may_be_wild(g, true), &t), gen_value(g, x.elem), gen_value(g, x.elem)};
        const uint32_t id = ir_node(&g->b, op, op == OP_ATOMIC_STORE ? TYPE_VOID : x.elem, (unsigned)op_info[op].n, in,
                                    order_flags(g, op), 0);
        if (op != OP_ATOMIC_STORE)
            gen_push(g, id, false);
        return;
    }
}

static void shared_atomic(struct gen *g)
{
    if (g->tallies.n == 0 || !g->kernel)
        return;
    const struct tally x = g->tallies.at[roll(g, g->tallies.n)];
    const uint32_t p = gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2,
                                (const uint32_t[]){x.pointer, gen_below(g, x.count)}, 0, x.elem);
    const uint32_t in[2] = {p, gen_value(g, x.elem)};
    ir_node(&g->b, x.op, x.elem, 2, in, order_flags(g, x.op), 0);
}

static void collective(struct gen *g)
{
    const enum op op = g->collective[roll(g, g->n_collective)];
    const struct op_info *const x = &op_info[op];
    uint32_t in[3] = {0};
    ir_type t = TYPE_BOOL;
    if (x->rule == RULE_LANES) {
        t = gen_numeric_type(g, x->classes);
        in[0] = gen_value(g, t);
        in[1] = gen_value(g, t); /* the filling */
        if (x->n > 1) {
            const ir_type lane = gen_scalar_type(g, CLASS_SU);
            in[x->n - 1] = chance(g, 70) ? ir_const(g->m, lane, roll(g, 34)) : gen_value(g, lane);
        }
    } else if (x->n > 0) {
        in[0] = gen_value(g, TYPE_BOOL);
    }
    if (op == OP_SIMD_BALLOT || op == OP_QUAD_BALLOT || op == OP_SIMD_ACTIVE || op == OP_QUAD_ACTIVE)
        t = TYPE_U64;
    const uint32_t id = gen_node(g, op, t, (unsigned)x->n, in, 0, 0);
    if (chance(g, 50))
        gen_sink(g, id);
    if (chance(g, 25)) { /* the same among fewer lanes */
        const uint32_t c = gen_condition(g, false), outer = g->b.region, seen = g->values.n;
        const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
        g->b.region = ir_region(g->m, node, 0);
        gen_sink(g, gen_node(g, op, t, (unsigned)x->n, in, 0, 0));
        g->b.region = outer;
        g->values.n = seen;
    }
}

void gen_barrier(struct gen *g, unsigned memory)
{
    ir_node(&g->b, OP_BARRIER, TYPE_VOID, 0, NULL, memory << NODE_MEMORY_SHIFT, 0);
}

/* Each thread writes its element; after a barrier all read all. */
static void exchange(struct gen *g)
{
    if (!g->uniform || !g->kernel)
        return;
    if (g->tallies.n && chance(g, 30)) {
        const struct tally x = g->tallies.at[roll(g, g->tallies.n)];
        if (!x.readable)
            return;
        gen_barrier(g, MEMORY_THREADGROUP);
        const uint32_t p = gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2,
                                    (const uint32_t[]){x.pointer, gen_below(g, x.count)}, 0, x.elem);
        gen_push(g, ir_node(&g->b, OP_LOAD, x.elem, 1, &p, 0, 0), false);
        gen_barrier(g, MEMORY_THREADGROUP);
        return;
    }
    if (g->exchanges.n == 0)
        return;
    const uint32_t which = roll(g, g->exchanges.n);
    const struct memory x = g->exchanges.at[which];
    g->exchanges.at[which] = g->exchanges.at[--g->exchanges.n]; /* nobody writes it meanwhile */
    gen_barrier(g, MEMORY_THREADGROUP);
    const uint32_t own = gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2, (const uint32_t[]){x.pointer, g->lane}, 0,
                                  x.elem);
    ir_store(&g->b, own, gen_value(g, x.elem));
    gen_barrier(g, MEMORY_THREADGROUP | (chance(g, 20) ? MEMORY_DEVICE : 0));

    const uint32_t n_memories = g->memories.n;
    VEC_PUSH(g->mem, &g->memories, x);
    load(g);
    gen_statements(g, 1 + roll(g, 3));
    g->memories.n = n_memories;
    if (g->uniform)
        gen_barrier(g, MEMORY_THREADGROUP);
    VEC_PUSH(g->mem, &g->exchanges, x);
}

static void fence(struct gen *g)
{
    if (chance(g, 50))
        ir_node(&g->b, OP_SIMDGROUP_BARRIER, TYPE_VOID, 0, NULL, roll(g, 16) << NODE_MEMORY_SHIFT, 0);
    else
        ir_node(&g->b, OP_FENCE, TYPE_VOID, 0, NULL, order_flags(g, OP_FENCE) | roll(g, 16) << NODE_MEMORY_SHIFT, 0);
}

static void call(struct gen *g)
{
    if (g->n_callees == 0)
        return;
    const struct callee *const c = &g->callee[roll(g, g->n_callees)];
    uint32_t in[8];
    for (unsigned k = 0; k < c->n; k++) {
        if (!ir_type_is_pointer(c->type[k])) {
            in[k] = gen_value(g, c->type[k]);
            continue;
        }
        const struct memory *const want = &c->memory[k];
        uint32_t found = 0;
        for (uint32_t i = 0; i < g->memories.n; i++) {
            const struct memory *const x = &g->memories.at[i];
            if (x->elem == want->elem && x->space == want->space && x->count >= want->count && !x->base &&
                (x->writable || !want->writable) && (!found || chance(g, 50)))
                found = x->pointer;
        }
        if (!found)
            return;
        in[k] = found;
    }
    const uint32_t id = ir_node(&g->b, OP_CALL, c->result, c->n, in, 0, c->func);
    if (c->result) {
        gen_push(g, id, false);
        if (chance(g, 50))
            gen_sink(g, id);
    }
}

void gen_statement(struct gen *g)
{
    static const struct {
        uint8_t weight;
        void (*run)(struct gen *g);
    } kind[] = {
        {22, elementwise}, {12, algebra},   {5, select_value}, {8, convert},       {10, parts},  {8, again},
        {16, local},       {10, load},      {6, gen_store},    {5, reread},     {4, alloc},         {2, choose_pointer},
        {5, own_atomic},   {3, shared_atomic}, {7, collective}, {5, exchange},     {1, fence},   {4, call},
    };
    unsigned total = 0;
    for (unsigned k = 0; k < sizeof kind / sizeof *kind; k++)
        total += kind[k].weight;
    uint32_t at = roll(g, total);
    unsigned k = 0;
    while (at >= kind[k].weight)
        at -= kind[k++].weight;
    kind[k].run(g);
    if (g->values.n && chance(g, 12)) {
        const uint32_t id = g->values.at[g->values.n - 1];
        if (!ir_type_is_pointer(ir_at(g->m, id)->type))
            gen_sink(g, id);
    }
}
