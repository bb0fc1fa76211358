/* fold.c - constant folding, by the same scalar functions as the interpreter.
 *
 * Folded: elementwise operations, conversions, selects, and the parts of vectors, structs and arrays that are built of
 * constants. A result that is no scalar folds only if all its bits are zero, since nothing else is a constant node.
 * Never folded: what reads, writes, is convergent or controls.
 */
#include "ir/ir.h"

static bool is_constant(const struct ir_module *m, uint32_t id)
{
    return ir_at(m, id)->op == OP_CONST || ir_at(m, id)->op == OP_ZERO;
}

/* Part k of a value as a CONST or ZERO; 0 if it is not known to be one. A walk down a chain of inserts and shuffles. */
static uint32_t constant_part(struct ir_module *m, uint32_t id, uint64_t k)
{
    for (;;) {
        const struct node *const x = ir_at(m, id);
        const uint32_t *const in = ir_in(m, id);
        const ir_type part = ir_type_part(m, x->type, k);
        if (part == TYPE_VOID)
            return 0;
        if (x->op == OP_ZERO)
            return ir_zero(m, part);
        if (x->op == OP_MAKE)
            return k < x->n && is_constant(m, in[k]) ? in[k] : 0;
        if (x->op == OP_SPLAT)
            return is_constant(m, in[0]) ? in[0] : 0;
        if (x->op == OP_INSERT) {
            if (x->imm == k)
                return is_constant(m, in[1]) ? in[1] : 0;
            id = in[0];
        } else if (x->op == OP_SHUFFLE) {
            const unsigned pick = (unsigned)(x->imm >> 4 * k) & 7u;
            id = in[pick >> 2];
            k = pick & 3u;
        } else {
            return 0;
        }
    }
}

/* Component k of a scalar or vector as bits. */
static bool component(struct ir_module *m, uint32_t id, unsigned k, uint64_t *bits)
{
    if (ir_type_width(ir_at(m, id)->type) > 1)
        id = constant_part(m, id, k);
    if (!id || ir_at(m, id)->op != OP_CONST)
        return false;
    *bits = ir_at(m, id)->imm;
    return true;
}

/* The element that ir_scalar_eval wants as `s`. */
static enum scalar operand_scalar(const struct ir_module *m, const uint32_t *in)
{
    return ir_type_scalar(ir_at(m, in[0])->type);
}

static uint32_t elementwise(struct ir_module *m, enum op op, ir_type type, unsigned n, const uint32_t *in,
                            unsigned flags)
{
    const unsigned width = ir_type_width(type);
    const enum scalar to = ir_type_scalar(type);
    const enum scalar s = operand_scalar(m, in);
    uint64_t value = 0;
    for (unsigned k = 0; k < width; k++) {
        uint64_t x[3] = {0};
        for (unsigned i = 0; i < n; i++)
            if (!component(m, in[i], k, &x[i]))
                return 0;
        value = ir_scalar_eval(op, s, to, flags, x[0], x[1], x[2]);
        if (width > 1 && value != 0)
            return 0;
    }
    return width == 1 ? ir_const(m, type, value) : width ? ir_zero(m, type) : 0;
}

/* The condition may be known where the operands are not: one of them then is the result. */
static uint32_t select_one(struct ir_module *m, ir_type type, const uint32_t *in)
{
    if (ir_at(m, in[0])->type != TYPE_BOOL)
        return elementwise(m, OP_SELECT, type, 3, in, 0);
    uint64_t c;
    if (!component(m, in[0], 0, &c))
        return 0;
    const uint32_t chosen = in[c ? 1 : 2];
    return is_constant(m, chosen) ? chosen : 0;
}

/* Components lie in the order of memory, little-endian. The types have one size and no padding, or the same shape. */
static uint32_t bitcast(struct ir_module *m, ir_type type, uint32_t x)
{
    const ir_type from = ir_at(m, x)->type;
    const unsigned n_from = ir_type_width(from), n_to = ir_type_width(type);
    const unsigned bits_from = 8u * scalar_info[ir_type_scalar(from)].bytes;
    const unsigned bits_to = 8u * scalar_info[ir_type_scalar(type)].bytes;
    if (n_from == 0 || n_to == 0 || n_from * bits_from != n_to * bits_to)
        return 0;
    uint64_t whole = 0;
    for (unsigned k = 0; k < n_from; k++) {
        uint64_t bits;
        if (!component(m, x, k, &bits))
            return 0;
        if (n_to > 1 && bits != 0)
            return 0;
        whole |= n_from > 1 ? bits << k * bits_from % 64 : bits;
    }
    return n_to == 1 ? ir_const(m, type, whole) : ir_zero(m, type);
}

static uint32_t all_zero(struct ir_module *m, ir_type type, unsigned n, const uint32_t *in)
{
    for (unsigned k = 0; k < n; k++)
        if (!is_constant(m, in[k]) || (ir_at(m, in[k])->op == OP_CONST && ir_at(m, in[k])->imm != 0))
            return 0;
    return ir_zero(m, type);
}

/* Shuffles and inserts whose parts all are zero. */
static uint32_t parts_zero(struct ir_module *m, ir_type type, uint32_t whole, uint32_t part)
{
    return part && ir_at(m, whole)->op == OP_ZERO ? all_zero(m, type, 1, &part) : 0;
}

static uint32_t extract_at(struct ir_module *m, ir_type type, const uint32_t *in)
{
    if (ir_at(m, in[1])->op != OP_CONST)
        return 0;
    /* A negative index read without its sign is past the end of anything. */
    const uint64_t k = ir_scalar_eval(OP_CONVERT, operand_scalar(m, &in[1]), S_I64, 0, ir_at(m, in[1])->imm, 0, 0);
    return k < ir_type_parts(m, ir_at(m, in[0])->type) ? constant_part(m, in[0], k) : ir_zero(m, type);
}

uint32_t ir_fold(struct ir_module *m, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                 uint64_t imm)
{
    uint32_t copy[3] = {0}; /* `in` may point at nodes, which move */
    if (op == OP_MAKE)
        return n ? all_zero(m, type, n, in) : 0;
    if (op_info[op].effect != EFFECT_PURE || n == 0 || n > 3)
        return 0;
    memcpy(copy, in, n * sizeof *in);
    switch ((enum op_rule)op_info[op].rule) {
    case RULE_SAME:
    case RULE_COMPARE:
    case RULE_SHIFT: return elementwise(m, op, type, n, copy, flags);
    case RULE_SELECT: return select_one(m, type, copy);
    case RULE_NONE:
    case RULE_LANES:
    case RULE_VOTE: return 0;
    case RULE_GIVEN: break;
    }
    if (op == OP_CONVERT)
        return elementwise(m, op, type, n, copy, flags);
    if (op == OP_BITCAST)
        return bitcast(m, type, copy[0]);
    if (op == OP_SPLAT)
        return all_zero(m, type, n, copy);
    if (op == OP_EXTRACT)
        return constant_part(m, copy[0], imm);
    if (op == OP_EXTRACT_AT)
        return extract_at(m, type, copy);
    if (op == OP_INSERT)
        return parts_zero(m, type, copy[0], copy[1]);
    return 0;
}
