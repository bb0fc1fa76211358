/* simd.c - simdgroup and quadgroup operations.
 *
 * Metal asks that deltas, masks and the lane of a broadcast are the same in all lanes, and leaves lanes past the end
 * undefined. Where that is not plain to see, a helper guards the lane, or goes through all deltas. An absent or inactive
 * lane is undefined in Metal and stays so. Metal's shuffles take no bool, bfloat or 64-bit values: they travel as others.
 */
#include "msl/msl_ops.h"

static bool is_quad(enum op op)
{
    return op >= OP_QUAD_SUM && op <= OP_QUAD_ACTIVE;
}

/* The SIMD row of the same meaning. */
static enum op simd_of(enum op op)
{
    return is_quad(op) ? (enum op)((int)op - (int)OP_QUAD_SUM + (int)OP_SIMD_SUM) : op;
}

static unsigned lanes(enum op op)
{
    return is_quad(op) ? 4 : 32;
}

/* The type that a value travels as: its lanes' bits, or (reductions of bfloat) its value. */
struct carrier {
    ir_type type;
    bool bits;
};

static struct carrier carrier_of(enum op op, ir_type t)
{
    const enum scalar s = ir_type_scalar(t);
    const unsigned width = ir_type_width(t);
    const bool moves = simd_of(op) >= OP_SIMD_BROADCAST;
    const bool bitwise = simd_of(op) == OP_SIMD_AND || simd_of(op) == OP_SIMD_OR || simd_of(op) == OP_SIMD_XOR;
    if (s == S_BF16)
        return moves ? (struct carrier){ir_type_with(t, S_U16), true} : (struct carrier){ir_type_with(t, S_F32), false};
    if (s == S_BOOL)
        return (struct carrier){ir_type_with(t, S_U32), false};
    if (scalar_info[s].bytes == 8 && (moves || bitwise))
        return (struct carrier){width > 2 ? TYPE_VOID : ir_type_vector(S_U32, 2 * width), true};
    if (scalar_info[s].bytes == 8)
        return (struct carrier){TYPE_VOID, false};
    return (struct carrier){t, false};
}

static void put_cast(struct clike *p, ir_type t, bool bits)
{
    buf_str(p->b, bits ? "as_type<" : "");
    clike_type(p, t);
    buf_str(p->b, bits ? ">(" : "(");
}

/* Metal's function of values given as text. */
static void put_native(struct clike *p, enum op op, ir_type t, const char *a, const char *filling, const char *lane)
{
    const struct carrier c = carrier_of(op, t);
    const bool cast = c.type != t;
    if (cast)
        put_cast(p, t, c.bits);
    buf_fmt(p->b, "%s(", op_info[op].msl);
    for (unsigned k = 0; k < (filling ? 2u : 1u); k++) {
        buf_str(p->b, k ? ", " : "");
        if (cast)
            put_cast(p, c.type, c.bits);
        buf_str(p->b, k ? filling : a);
        buf_str(p->b, cast ? ")" : "");
    }
    if (lane)
        buf_fmt(p->b, ", %s", lane);
    buf_str(p->b, cast ? "))" : ")");
}

/* ---- helpers --------------------------------------------------------------------------------------------------- */

static void open_helper(struct clike *p, const struct helper *h, const char *params)
{
    buf_str(p->b, p->d->helper);
    clike_type(p, h->type);
    buf_fmt(p->b, " %s(", h->name);
    clike_type(p, h->type);
    buf_fmt(p->b, " a%s) {\n", params);
}

/* The lane, delta or mask, the same in all lanes unless it is shuffle's, may lie past the end. */
static void write_guarded(struct clike *p, const struct helper *h)
{
    const enum op op = (enum op)h->extra, simd = simd_of(op);
    const bool own = simd == OP_SIMD_SHUFFLE_UP || simd == OP_SIMD_SHUFFLE_DOWN;
    const unsigned n = lanes(op);
    open_helper(p, h, ", ulong n");
    buf_str(p->b, "    ");
    clike_type(p, h->type);
    buf_str(p->b, " b = ");
    put_native(p, op, h->type, "a", NULL, n == 4 ? "ushort(n & 3)" : "ushort(n & 31)");
    buf_fmt(p->b, ";\n    return n < %u ? b : ", n);
    if (own)
        buf_char(p->b, 'a');
    else
        clike_zero(p, h->type);
    buf_str(p->b, ";\n}\n");
}

/* Every delta or mask in turn, the lanes that asked for it keep what they get. */
static void write_varying(struct clike *p, const struct helper *h)
{
    const enum op op = (enum op)h->extra;
    const enum op simd = simd_of(op);
    const bool fills = op_info[op].n == 3, rotates = simd == OP_SIMD_ROTATE_UP || simd == OP_SIMD_ROTATE_DOWN;
    const bool own = simd == OP_SIMD_SHUFFLE_UP || simd == OP_SIMD_SHUFFLE_DOWN;
    const unsigned n = lanes(op);
    buf_str(p->b, p->d->helper);
    clike_type(p, h->type);
    buf_fmt(p->b, " %s(", h->name);
    clike_type(p, h->type);
    buf_str(p->b, " a, ");
    if (fills) {
        clike_type(p, h->type);
        buf_str(p->b, " filling, ");
    }
    buf_str(p->b, "ulong n) {\n    ");
    clike_type(p, h->type);
    buf_str(p->b, " result = ");
    if (own)
        buf_str(p->b, "a");
    else
        clike_zero(p, h->type);
    buf_fmt(p->b, ";\n    for (ushort k = 0; k < %u; k += 1) {\n        ", n);
    clike_type(p, h->type);
    buf_str(p->b, " b = ");
    put_native(p, op, h->type, "a", fills ? "filling" : NULL, "k");
    if (rotates)
        buf_fmt(p->b, ";\n        result = (n & %u) == k ? b : result;\n", n - 1);
    else
        buf_str(p->b, ";\n        result = n == k ? b : result;\n");
    if (fills) { /* as far again: what the filling has there */
        struct buf zero, *const to = p->b;
        buf_init(&zero, p->mem);
        p->b = &zero;
        clike_zero(p, h->type);
        p->b = to;
        buf_str(p->b, "        b = ");
        put_native(p, op, h->type, "filling", buf_text(&zero), "k");
        buf_free(&zero);
        buf_fmt(p->b, ";\n        result = n == k + %uu ? b : result;\n", n);
    }
    buf_str(p->b, "    }\n    return result;\n}\n");
}

/* Reductions and scans of 64 bits: over the active lanes in order. */
static void write_wide(struct clike *p, const struct helper *h)
{
    const enum op op = (enum op)h->extra, simd = simd_of(op);
    const char *const q = is_quad(op) ? "quad" : "simd";
    const char *const t = clike_scalar(p, ir_type_scalar(h->type));
    const bool scan = simd >= OP_SIMD_INCLUSIVE_SUM && simd <= OP_SIMD_EXCLUSIVE_PRODUCT;
    const bool exclusive = simd == OP_SIMD_EXCLUSIVE_SUM || simd == OP_SIMD_EXCLUSIVE_PRODUCT;
    const bool product =
        simd == OP_SIMD_PRODUCT || simd == OP_SIMD_INCLUSIVE_PRODUCT || simd == OP_SIMD_EXCLUSIVE_PRODUCT;
    const bool bound = simd == OP_SIMD_MIN || simd == OP_SIMD_MAX;
    open_helper(p, h, "");
    buf_fmt(p->b, "    ulong lanes = ulong((%s_vote::vote_t)%s_active_threads_mask());\n", q, q);
    if (scan)
        buf_fmt(p->b, "    ushort place = %s_prefix_exclusive_sum(ushort(1));\n    ushort n = 0;\n", q);
    if (bound)
        buf_fmt(p->b, "    %s result = a;\n", t);
    else
        buf_fmt(p->b, "    ulong result = %u;\n", product);
    buf_fmt(p->b, "    for (ushort k = 0; k < %u; k += 1) {\n", lanes(op));
    buf_str(p->b, "        if ((lanes >> k & 1) == 0) {\n            continue;\n        }\n");
    buf_fmt(p->b, "        %s b = as_type<%s>(%s_shuffle(as_type<uint2>(a), k));\n", t, t, q);
    if (bound)
        buf_fmt(p->b, "        result = %s(result, b);\n", simd == OP_SIMD_MIN ? "min" : "max");
    else if (!scan)
        buf_fmt(p->b, "        result %s= ulong(b);\n", product ? "*" : "+");
    else
        buf_fmt(p->b, "        result %s= n %s place ? ulong(b) : %u;\n        n += 1;\n", product ? "*" : "+",
                exclusive ? "<" : "<=", product);
    buf_fmt(p->b, "    }\n    return %s(result);\n}\n", t);
}

static const char *helper_name(enum op op, bool varying)
{
    /* "spork_" and Metal's name, for each row. */
    static const char *const names[][2] = {
#define OP(ID, name, n, rule, classes, effects, msl, doc) {"spork_" msl, "spork_" msl "_varying"},
#include "ir/ops.def"
    };
    return names[op - 1][varying];
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void put_lane(struct clike *p, uint32_t id, unsigned mask)
{
    if (mask) {
        clike_expr(p, id, PREC_UNARY);
        buf_fmt(p->b, " & %u", mask);
    } else {
        clike_operand(p, id, PREC_ASSIGN, LITERAL_PLAIN);
    }
}

static void put_direct(struct clike *p, uint32_t id, enum op op, unsigned mask)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t *const in = ir_in(p->m, id);
    const struct carrier c = carrier_of(op, x->type);
    const bool cast = c.type != x->type;
    if (cast)
        put_cast(p, x->type, c.bits);
    buf_fmt(p->b, "%s(", op_info[op].msl);
    const unsigned values = x->n == 3 ? 2 : 1;
    for (unsigned k = 0; k < values; k++) {
        buf_str(p->b, k ? ", " : "");
        if (cast)
            put_cast(p, c.type, c.bits);
        clike_expr(p, in[k], PREC_ASSIGN);
        buf_str(p->b, cast ? ")" : "");
    }
    if (x->n > 1) {
        buf_str(p->b, ", ");
        put_lane(p, in[x->n - 1], mask);
    }
    buf_str(p->b, cast ? "))" : ")");
}

static void put_move(struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    const enum op op = (enum op)x->op, simd = simd_of(op);
    const uint32_t lane = ir_in(p->m, id)[x->n - 1];
    const unsigned n = lanes(op);
    const bool inside = clike_within(clike_range(p, lane), 0, n - 1), uniform = clike_uniform(p, lane);
    const bool rotates = simd == OP_SIMD_ROTATE_UP || simd == OP_SIMD_ROTATE_DOWN;
    if (simd == OP_SIMD_SHUFFLE || simd == OP_SIMD_BROADCAST) {
        const enum op shuffle = is_quad(op) ? OP_QUAD_SHUFFLE : OP_SIMD_SHUFFLE;
        if (inside)
            put_direct(p, id, uniform ? op : shuffle, 0);
        else
            clike_call(p, clike_helper(p, write_guarded, helper_name(shuffle, false), x->type, shuffle), id);
    } else if (uniform && (inside || rotates)) {
        put_direct(p, id, op, inside ? 0 : n - 1);
    } else if (uniform && x->n == 2) {
        clike_call(p, clike_helper(p, write_guarded, helper_name(op, false), x->type, op), id);
    } else {
        clike_call(p, clike_helper(p, write_varying, helper_name(op, true), x->type, op), id);
    }
}

void msl_collective(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = ir_at(p->m, id);
    const enum op op = (enum op)x->op, simd = simd_of(op);
    if (simd == OP_SIMD_ALL || simd == OP_SIMD_ANY || simd == OP_SIMD_IS_FIRST) {
        clike_call(p, op_info[op].msl, id);
        return;
    }
    if (simd == OP_SIMD_BALLOT || simd == OP_SIMD_ACTIVE) {
        const bool open = !is_quad(op) && clike_open(p, PREC_UNARY, prec);
        buf_str(p->b, is_quad(op) ? "ulong((quad_vote::vote_t)" : "(ulong)");
        clike_call(p, op_info[op].msl, id);
        buf_str(p->b, open || is_quad(op) ? ")" : "");
        return;
    }
    const bool moves = simd >= OP_SIMD_BROADCAST;
    if (carrier_of(op, x->type).type == TYPE_VOID) {
        if (moves || ir_type_width(x->type) > 1) {
            CLIKE_FAIL(p, id, PRINT_WIDE_COLLECTIVE, p->d->name, op_info[op].name);
            return;
        }
        clike_call(p, clike_helper(p, write_wide, helper_name(op, false), x->type, op), id);
        return;
    }
    if (moves && x->n > 1)
        put_move(p, id);
    else
        put_direct(p, id, op, 0);
}
