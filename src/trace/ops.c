/* ops.c - operators, functions, choice, vectors and collectives, as the language means them. */
#include "trace/internal.h"

/* How an operator's operands mix. */
static const struct {
    const char *symbol;
    uint8_t mix;
} binary[OP_COUNT] = {
    [OP_ADD] = {"+", MIX_NUMBER | MIX_PROMOTE},
    [OP_SUB] = {"-", MIX_NUMBER | MIX_PROMOTE},
    [OP_MUL] = {"*", MIX_NUMBER | MIX_PROMOTE},
    [OP_DIV] = {"/", MIX_FLOAT | MIX_SIGN},
    [OP_DIV_FLOOR] = {"//", MIX_NUMBER | MIX_PROMOTE | MIX_SIGN},
    [OP_REM_FLOOR] = {"%", MIX_NUMBER | MIX_PROMOTE | MIX_SIGN},
    [OP_DIV_TRUNC] = {"div_trunc", MIX_NUMBER | MIX_PROMOTE | MIX_SIGN},
    [OP_REM_TRUNC] = {"rem_trunc", MIX_NUMBER | MIX_PROMOTE | MIX_SIGN},
    [OP_IPOW] = {"**", MIX_NUMBER | MIX_PROMOTE | MIX_SIGN},
    [OP_AND] = {"&", MIX_PROMOTE},
    [OP_OR] = {"|", MIX_PROMOTE},
    [OP_XOR] = {"^", MIX_PROMOTE},
    [OP_SHL] = {"<<", 0},
    [OP_SHR] = {">>", 0},
    [OP_EQ] = {"==", MIX_COMPARE | MIX_SIGN},
    [OP_NE] = {"!=", MIX_COMPARE | MIX_SIGN},
    [OP_LT] = {"<", MIX_COMPARE | MIX_SIGN},
    [OP_LE] = {"<=", MIX_COMPARE | MIX_SIGN},
    [OP_GT] = {">", MIX_COMPARE | MIX_SIGN},
    [OP_GE] = {">=", MIX_COMPARE | MIX_SIGN},
};

static sk_status class_allowed(struct trace *t, enum op op, const char *what, ir_type type, sk_error *err)
{
    if (SK_UNLIKELY(!(op_info[op].classes & ir_type_class(t->m, type))))
        return FAIL(t, err, WRONG_CLASS, what, trace_type_text(t, type).at);
    return SK_OK;
}

static unsigned fast_flag(const struct trace *t, enum op op, bool fast)
{
    return math_info[op].fast && (fast || t->m->funcs.at[t->b.func].fast) ? NODE_FAST : 0;
}

/* ---- shifts and powers --------------------------------------------------------------------------------------------- */

static bool is_integer_or_bool(const struct trace *t, struct tv v)
{
    if (v.kind == TV_VALUE)
        return (ir_type_class(t->m, trace_node_type(t, v.id)) & CLASS_BSU) != 0;
    return v.kind != TV_FLOAT;
}

/* The left operand's type, or i32 for a bool; a plain left number takes the count's. The count may be any integer. */
static sk_status shift(struct trace *t, enum op op, const struct tv *v, struct tv *out, sk_error *err)
{
    uint32_t in[2];
    for (unsigned k = 0; k < 2; k++)
        if (!is_integer_or_bool(t, v[k]))
            return FAIL(t, err, WRONG_CLASS, binary[op].symbol,
                        v[k].kind == TV_VALUE ? trace_type_text(t, trace_node_type(t, v[k].id)).at : "a float");
    if (v[0].kind != TV_VALUE && v[1].kind == TV_VALUE) {
        enum scalar s = ir_type_scalar(trace_node_type(t, v[1].id));
        s = s == S_BOOL ? S_I32 : s;
        TRY(trace_weak(t, v[0], s, &in[0], err));
    } else {
        TRY(trace_node(t, v[0], &in[0], err));
    }
    ir_type type = trace_node_type(t, in[0]);
    if (ir_type_scalar(type) == S_BOOL)
        in[0] = ir_convert(&t->b, type = ir_type_with(type, S_I32), in[0]);
    if (v[1].kind == TV_VALUE) {
        in[1] = v[1].id;
        const ir_type count = trace_node_type(t, in[1]);
        if (ir_type_scalar(count) == S_BOOL)
            in[1] = ir_convert(&t->b, ir_type_with(count, S_I32), in[1]);
    } else {
        const uint64_t count = v[1].negative ? 0u - v[1].magnitude : v[1].magnitude;
        const enum scalar s = ir_type_scalar(type);
        in[1] = ir_const(t->m, (ir_type)s, count & (scalar_info[s].bits - 1u));
    }
    const unsigned wide[2] = {ir_type_width(type), ir_type_width(trace_node_type(t, in[1]))};
    if (wide[0] > 1 && wide[1] > 1 && wide[0] != wide[1])
        return FAIL(t, err, VECTOR_WIDTHS, binary[op].symbol, wide[0], wide[1]);
    for (unsigned k = 0; k < 2; k++)
        if (wide[k] < wide[1 - k])
            in[k] = trace_splat(t, in[k], wide[1 - k]);
    *out = trace_value(t, ir_op(&t->b, op, 2, in, 0));
    return SK_OK;
}

/* x ** 2 and, for integers, x ** 3 are products: as exact as pow, and what one would write. */
static sk_status power(struct trace *t, const struct tv *v, struct tv *out, sk_error *err)
{
    uint32_t in[2];
    ir_type type;
    const bool integer = is_integer_or_bool(t, v[0]) && is_integer_or_bool(t, v[1]);
    if (integer && v[1].kind == TV_INT && v[1].negative)
        return FAIL(t, err, NEGATIVE_EXPONENT);
    TRY(trace_mix(t, integer ? binary[OP_IPOW].mix : MIX_FLOAT | MIX_SIGN, "**", 2, v, in, &type, err));
    const uint64_t small = v[1].kind == TV_INT && !v[1].negative ? v[1].magnitude : 0;
    if (small == 2 || (small == 3 && integer)) {
        uint32_t id = ir_op2(&t->b, OP_MUL, in[0], in[0]);
        if (small == 3)
            id = ir_op2(&t->b, OP_MUL, id, in[0]);
        *out = trace_value(t, id);
        return SK_OK;
    }
    if (!integer) {
        *out = trace_value(t, ir_op(&t->b, OP_POW, 2, in, fast_flag(t, OP_POW, false)));
        return SK_OK;
    }
    if (ir_is_const(t->m, in[1]) && (ir_type_class(t->m, type) & CLASS_S)) {
        const unsigned bits = scalar_info[ir_type_scalar(type)].bits;
        if (ir_at(t->m, in[1])->imm >> (bits - 1))
            return FAIL(t, err, NEGATIVE_EXPONENT);
    }
    *out = trace_value(t, ir_op(&t->b, OP_IPOW, 2, in, 0));
    return SK_OK;
}

/* ---- operators ----------------------------------------------------------------------------------------------------- */

sk_status trace_unary(struct trace *t, enum op op, struct tv a, struct tv *out, sk_error *err)
{
    uint32_t id;
    TRY(trace_use(t, a, &a, err));
    TRY(trace_node(t, a, &id, err));
    const ir_type type = trace_node_type(t, id);
    if (op == OP_NEG && ir_type_scalar(type) == S_BOOL)
        id = ir_convert(&t->b, ir_type_with(type, S_I32), id);
    TRY(class_allowed(t, op, op == OP_NEG ? "-" : "~", trace_node_type(t, id), err));
    *out = trace_value(t, ir_op1(&t->b, op, id));
    return SK_OK;
}

sk_status trace_binary(struct trace *t, enum op op, struct tv a, struct tv b, struct tv *out, sk_error *err)
{
    struct tv v[2];
    uint32_t in[2];
    ir_type type;
    TRY(trace_use(t, a, &v[0], err));
    TRY(trace_use(t, b, &v[1], err));
    if (op == OP_SHL || op == OP_SHR)
        return shift(t, op, v, out, err);
    if (op == OP_IPOW)
        return power(t, v, out, err);
    TRY(trace_mix(t, binary[op].mix, binary[op].symbol, 2, v, in, &type, err));
    if ((op == OP_DIV_TRUNC || op == OP_REM_TRUNC) && ir_type_class(t->m, type) == CLASS_F) {
        const uint32_t id = op == OP_REM_TRUNC ? ir_op(&t->b, OP_FMOD, 2, in, 0)
                                               : ir_op1(&t->b, OP_TRUNC, ir_op(&t->b, OP_DIV, 2, in, 0));
        *out = trace_value(t, id);
        return SK_OK;
    }
    TRY(class_allowed(t, op, binary[op].symbol, type, err));
    *out = trace_value(t, ir_op(&t->b, op, 2, in, 0));
    return SK_OK;
}

/* Functions that exist for floats only take integers as f32, as NumPy's do; min, max, abs and clamp keep integers. */
sk_status trace_math(struct trace *t, enum op op, bool fast, unsigned n, const struct tv *a, struct tv *out,
                     sk_error *err)
{
    struct tv v[3];
    uint32_t in[3];
    ir_type type;
    if (!op_info[op].math || (int)n != op_info[op].n)
        return FAIL(t, err, OPERAND_COUNT, op_info[op].name, (int)op_info[op].n, n);
    for (unsigned k = 0; k < n; k++)
        TRY(trace_use(t, a[k], &v[k], err));
    const unsigned mix = op_info[op].classes == CLASS_F ? MIX_FLOAT | MIX_SIGN : MIX_NUMBER | MIX_PROMOTE | MIX_SIGN;
    TRY(trace_mix(t, mix, op_info[op].name, n, v, in, &type, err));
    *out = trace_value(t, ir_op(&t->b, op, n, in, fast_flag(t, op, fast)));
    return SK_OK;
}

sk_status trace_select(struct trace *t, struct tv c, struct tv a, struct tv b, struct tv *out, sk_error *err)
{
    struct tv v[2];
    uint32_t in[3];
    ir_type type;
    TRY(trace_use(t, c, &c, err));
    TRY(trace_use(t, a, &v[0], err));
    TRY(trace_use(t, b, &v[1], err));
    TRY(trace_condition(t, c, true, &in[0], err));
    if (v[0].kind == TV_VALUE && v[1].kind == TV_VALUE && trace_node_type(t, v[0].id) == trace_node_type(t, v[1].id)) {
        in[1] = v[0].id; /* structs too */
        in[2] = v[1].id;
        type = trace_node_type(t, in[1]);
    } else {
        TRY(trace_mix(t, MIX_SIGN, "select", 2, v, &in[1], &type, err));
    }
    const unsigned width = ir_type_width(trace_node_type(t, in[0]));
    if (width > 1) {
        if (ir_type_width(type) == 1) {
            in[1] = trace_splat(t, in[1], width);
            in[2] = trace_splat(t, in[2], width);
        } else if (ir_type_width(type) != width) {
            return FAIL(t, err, VECTOR_WIDTHS, "select", width, ir_type_width(type));
        }
    }
    *out = trace_value(t, ir_op(&t->b, OP_SELECT, 3, in, 0));
    return SK_OK;
}

/* ---- vectors ------------------------------------------------------------------------------------------------------- */

sk_status trace_extract(struct trace *t, struct tv v, unsigned component, struct tv *out, sk_error *err)
{
    TRY(trace_use(t, v, &v, err));
    const ir_type type = v.kind == TV_VALUE ? trace_node_type(t, v.id) : TYPE_VOID;
    const unsigned width = ir_type_width(type);
    if (width < 2 || component >= width)
        return FAIL(t, err, NO_COMPONENT, v.kind == TV_VALUE ? trace_type_text(t, type).at : "a plain number",
                    "xyzw"[component & 3]);
    *out = trace_value(t, trace_given(t, OP_EXTRACT, (ir_type)ir_type_scalar(type), 1, &v.id, component));
    return SK_OK;
}

/* One part for all components, or parts (scalars and vectors) that fill them in order. */
sk_status trace_make(struct trace *t, ir_type vector, unsigned n, const struct tv *parts, struct tv *out, sk_error *err)
{
    const unsigned width = ir_type_width(vector);
    const enum scalar s = ir_type_scalar(vector);
    uint32_t in[4];
    struct tv v[4];
    unsigned filled = 0;
    TRY(trace_open(t, err));
    if (width < 2 || n == 0 || n > 4)
        return FAIL(t, err, VECTOR_PARTS, trace_type_text(t, vector).at, width, n);
    for (unsigned k = 0; k < n; k++) {
        TRY(trace_use(t, parts[k], &v[k], err));
        const unsigned w = v[k].kind == TV_VALUE ? ir_type_width(trace_node_type(t, v[k].id)) : 1;
        filled += w ? w : 1;
    }
    if (filled != width && !(n == 1 && filled == 1))
        return FAIL(t, err, VECTOR_PARTS, trace_type_text(t, vector).at, width, filled);
    filled = 0;
    for (unsigned k = 0; k < n; k++) {
        const unsigned w = v[k].kind == TV_VALUE ? ir_type_width(trace_node_type(t, v[k].id)) : 1;
        uint32_t id;
        TRY(trace_implicit_node(t, v[k], ir_type_vector(s, w), "component of a vector", &id, err));
        for (unsigned c = 0; w > 1 && c < w && n > 1; c++)
            in[filled++] = trace_given(t, OP_EXTRACT, (ir_type)s, 1, &id, c);
        if (w == 1 || n == 1)
            in[filled++] = id;
    }
    if (n > 1)
        in[0] = trace_given(t, OP_MAKE, vector, width, in, 0);
    else if (ir_type_width(trace_node_type(t, in[0])) == 1)
        in[0] = trace_splat(t, in[0], width);
    *out = trace_value(t, in[0]);
    return SK_OK;
}

/* ---- collectives --------------------------------------------------------------------------------------------------- */

/* The first operand: a number where the operation computes, anything scalar or vector where it only moves. */
static sk_status collective_value(struct trace *t, enum op op, struct tv v, uint32_t *out, sk_error *err)
{
    TRY(trace_node(t, v, out, err));
    const ir_type type = trace_node_type(t, *out);
    if (ir_type_scalar(type) == S_BOOL && !(op_info[op].classes & CLASS_B))
        *out = ir_convert(&t->b, ir_type_with(type, S_I32), *out);
    return class_allowed(t, op, op_info[op].name, trace_node_type(t, *out), err);
}

sk_status trace_simd(struct trace *t, enum op op, unsigned n, const struct tv *a, struct tv *out, sk_error *err)
{
    struct tv v[3] = {{0}};
    uint32_t in[3];
    TRY(trace_open(t, err));
    if ((int)n != op_info[op].n || n > 3)
        return FAIL(t, err, OPERAND_COUNT, op_info[op].name, (int)op_info[op].n, n);
    for (unsigned k = 0; k < n; k++)
        TRY(trace_use(t, a[k], &v[k], err));
    trace_effect(t, FX_COLLECTIVE);
    if (op_info[op].rule == RULE_LANES) {
        TRY(collective_value(t, op, v[0], &in[0], err));
        if (n == 3) /* the filling of *_fill_* */
            TRY(trace_implicit_node(t, v[1], trace_node_type(t, in[0]), "filling", &in[1], err));
        if (n > 1) {
            if (v[n - 1].kind == TV_INT && (v[n - 1].negative || v[n - 1].magnitude > INT32_MAX))
                return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v[n - 1]).at, "a lane number");
            TRY(trace_integer(t, v[n - 1], "lane, delta or mask", &in[n - 1], err));
        }
        *out = trace_value(t, ir_op(&t->b, op, n, in, 0));
        return SK_OK;
    }
    if (n == 1) /* votes and ballots */
        TRY(trace_condition(t, v[0], false, &in[0], err));
    const bool is_bool = op_info[op].rule == RULE_VOTE || op == OP_SIMD_IS_FIRST || op == OP_QUAD_IS_FIRST;
    *out = trace_value(t, ir_node(&t->b, op, is_bool ? TYPE_BOOL : TYPE_U64, n, in, 0, 0));
    return SK_OK;
}
