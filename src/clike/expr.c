/* expr.c - values. Parentheses stand where precedence needs them, and where compilers warn without: around operations
 * inside shifts and bitwise operators, comparisons inside comparisons, && inside ||. */
#include "clike/internal.h"

static const struct node *at(const struct clike *p, uint32_t id)
{
    return ir_at(p->m, id);
}

static const uint32_t *in_of(const struct clike *p, uint32_t id)
{
    return ir_in(p->m, id);
}

static bool is_leaf(const struct clike *p, uint32_t id)
{
    const uint16_t op = at(p, id)->op;
    return op == OP_CONST || op == OP_ZERO || op == OP_PARAM;
}

/* The value's operation is printed here, not the name of a variable. */
static bool is_inline(const struct clike *p, uint32_t id)
{
    return !is_leaf(p, id) && p->v[id].mode == MODE_INLINE;
}

static unsigned class_of(const struct clike *p, uint32_t id)
{
    return ir_type_class(p->m, at(p, id)->type);
}

static bool is_scalar(const struct clike *p, uint32_t id)
{
    return ir_type_width(at(p, id)->type) == 1;
}

/* An integer that C promotes: an operation's result is an int and is cast back. */
static bool is_small(const struct clike *p, uint32_t id)
{
    return is_scalar(p, id) && (class_of(p, id) & CLASS_SU) && scalar_info[at(p, id)->type].bytes < 4;
}

static void close_if(struct clike *p, bool open)
{
    if (open)
        buf_char(p->b, ')');
}

static void open_cast(struct clike *p, enum scalar s)
{
    buf_str(p->b, clike_scalar(p, s));
    buf_char(p->b, '(');
}

static enum scalar unsigned_of(enum scalar s)
{
    switch (s) {
    case S_I8: return S_U8;
    case S_I16: return S_U16;
    case S_I32: return S_U32;
    case S_I64: return S_U64;
    case S_VOID:
    case S_BOOL:
    case S_U8:
    case S_U16:
    case S_U32:
    case S_U64:
    case S_F16:
    case S_BF16:
    case S_F32:
    case S_COUNT: break;
    }
    return s;
}

/* ---- infix operators ------------------------------------------------------------------------------------------- */

struct infix {
    const char *text; /* null: the operation is printed otherwise */
    enum prec prec;
};

static struct infix infix_of(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const bool is_bool = ir_type_scalar(x->type) == S_BOOL;
    switch ((unsigned)x->op) {
    case OP_ADD: return (struct infix){"+", PREC_ADD};
    case OP_SUB: return (struct infix){"-", PREC_ADD};
    case OP_MUL: return (struct infix){"*", PREC_MUL};
    case OP_DIV:
    case OP_DIV_TRUNC:
    case OP_DIV_FLOOR: return (struct infix){"/", PREC_MUL};
    case OP_REM_TRUNC:
    case OP_REM_FLOOR: return (struct infix){"%", PREC_MUL};
    case OP_AND: return is_bool ? (struct infix){"&&", PREC_LOGICAL_AND} : (struct infix){"&", PREC_AND};
    case OP_OR: return is_bool ? (struct infix){"||", PREC_LOGICAL_OR} : (struct infix){"|", PREC_OR};
    case OP_XOR: return is_bool ? (struct infix){"!=", PREC_EQUAL} : (struct infix){"^", PREC_XOR};
    case OP_SHL: return (struct infix){"<<", PREC_SHIFT};
    case OP_SHR: return (struct infix){">>", PREC_SHIFT};
    case OP_EQ: return (struct infix){"==", PREC_EQUAL};
    case OP_NE: return (struct infix){"!=", PREC_EQUAL};
    case OP_LT: return (struct infix){"<", PREC_LESS};
    case OP_LE: return (struct infix){"<=", PREC_LESS};
    case OP_GT: return (struct infix){">", PREC_LESS};
    case OP_GE: return (struct infix){">=", PREC_LESS};
    }
    return (struct infix){NULL, PREC_LOWEST};
}

/* The least precedence of an operand that stands without parentheses. `same`: it is the same operator. */
static enum prec operand_prec(enum prec mine, bool right, bool same)
{
    switch (mine) {
    case PREC_LOGICAL_OR: return same && !right ? PREC_LOGICAL_OR : PREC_OR;
    case PREC_LOGICAL_AND: return same && !right ? PREC_LOGICAL_AND : PREC_OR;
    case PREC_OR:
    case PREC_XOR:
    case PREC_AND: return same && !right ? mine : PREC_UNARY;
    case PREC_EQUAL:
    case PREC_LESS: return PREC_ADD;
    case PREC_SHIFT: return PREC_UNARY;
    case PREC_ADD: return right ? PREC_MUL : PREC_ADD;
    case PREC_MUL: return right ? PREC_UNARY : PREC_MUL;
    case PREC_LOWEST:
    case PREC_ASSIGN:
    case PREC_CHOICE:
    case PREC_UNARY:
    case PREC_POSTFIX: break;
    }
    return PREC_UNARY;
}

static bool is_literal(const struct clike *p, uint32_t id)
{
    return at(p, id)->op == OP_CONST;
}

/* In an operation of vectors a splat stands as its scalar. */
static uint32_t scalar_operand(const struct clike *p, uint32_t id, uint32_t other)
{
    const bool other_splat = at(p, other)->op == OP_ZERO || (is_inline(p, other) && at(p, other)->op == OP_SPLAT);
    return is_inline(p, id) && at(p, id)->op == OP_SPLAT && !other_splat ? in_of(p, id)[0] : id;
}

static bool is_negative(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    if (x->op != OP_CONST || scalar_info[x->type].class_ != CLASS_S)
        return false;
    const struct range r = clike_range(p, id);
    return r.lo < 0 && r.lo > clike_type_range(x->type).lo;
}

static void put_operator(struct clike *p, const char *text)
{
    buf_char(p->b, ' ');
    buf_str(p->b, text);
    buf_char(p->b, ' ');
}

/* x + -1 reads x - 1. Prints the operator and its right operand. */
static void put_right(struct clike *p, uint32_t id, const char *text, uint32_t right, enum prec prec, unsigned how)
{
    if (at(p, id)->op == OP_ADD && is_negative(p, right)) {
        buf_str(p->b, " - ");
        clike_literal(p, (enum scalar)at(p, right)->type, 0u - at(p, right)->imm, how, prec);
        return;
    }
    put_operator(p, text);
    clike_operand(p, right, prec, how);
}

static void put_infix(struct clike *p, uint32_t id, enum prec prec)
{
    const struct infix f = infix_of(p, id);
    const uint32_t left = in_of(p, id)[0], right = in_of(p, id)[1];
    const uint32_t a = scalar_operand(p, left, right), b = scalar_operand(p, right, left);
    const bool same_left = is_inline(p, a) && at(p, a)->op == at(p, id)->op;
    const bool plain = is_scalar(p, left);
    const bool open = clike_open(p, f.prec, prec);
    clike_operand(p, a, operand_prec(f.prec, false, same_left),
                  plain && !is_literal(p, b) ? LITERAL_PLAIN : LITERAL_TYPED);
    put_right(p, id, f.text, b, operand_prec(f.prec, true, false), plain ? LITERAL_PLAIN : LITERAL_TYPED);
    close_if(p, open);
}

/* ---- integer arithmetic that wraps ----------------------------------------------------------------------------- */

static bool may_wrap(const struct clike *p, uint32_t id)
{
    const uint16_t op = at(p, id)->op;
    return (op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_NEG) && clike_wraps(p, id);
}

static void put_unsigned(struct clike *p, uint32_t id, enum prec prec, unsigned how);

/* The operation, done on unsigned operands. */
static void put_wrapping(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const enum scalar u = unsigned_of((enum scalar)x->type);
    const uint64_t mask = UINT64_MAX >> (64 - scalar_info[u].bits);
    const struct infix f = infix_of(p, id);
    const uint32_t *const in = in_of(p, id);
    const bool open = clike_open(p, f.text ? f.prec : PREC_UNARY, prec);
    if (!f.text) {
        buf_char(p->b, '-');
        put_unsigned(p, in[0], PREC_POSTFIX, LITERAL_TYPED);
    } else {
        const bool minus = x->op == OP_ADD && is_negative(p, in[1]);
        put_unsigned(p, in[0], operand_prec(f.prec, false, false), LITERAL_TYPED);
        put_operator(p, minus ? "-" : f.text);
        if (minus)
            clike_literal(p, u, (0u - at(p, in[1])->imm) & mask, LITERAL_PLAIN, PREC_UNARY);
        else
            put_unsigned(p, in[1], operand_prec(f.prec, true, false), LITERAL_PLAIN);
    }
    close_if(p, open);
}

/* A signed value as the unsigned type of its width. */
static void put_unsigned(struct clike *p, uint32_t id, enum prec prec, unsigned how)
{
    const struct node *const x = at(p, id);
    const enum scalar u = unsigned_of((enum scalar)x->type);
    if (x->op == OP_CONST) {
        clike_literal(p, u, x->imm, how, prec);
        return;
    }
    if (is_inline(p, id) && may_wrap(p, id)) {
        put_wrapping(p, id, prec);
        return;
    }
    if (is_inline(p, id) && x->op == OP_CONVERT && (class_of(p, in_of(p, id)[0]) & CLASS_BSU)) {
        const uint32_t from = in_of(p, id)[0];
        if (at(p, from)->type == u) {
            clike_operand(p, from, prec, LITERAL_TYPED);
            return;
        }
        id = from;
    }
    open_cast(p, u);
    clike_expr(p, id, PREC_LOWEST);
    buf_char(p->b, ')');
}

/* Products of 16 bits, and shifted values, may overflow the int that C computes in. */
static bool promotes_badly(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const uint32_t *const in = in_of(p, id);
    const struct range a = clike_range(p, in[0]);
    if (!is_small(p, id))
        return false;
    if (x->op == OP_MUL)
        return a.hi * clike_range(p, in[1]).hi > INT32_MAX;
    return x->op == OP_SHL && (a.lo < 0 || a.hi << (scalar_info[x->type].bits - 1) > INT32_MAX);
}

static void put_arithmetic(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    if (may_wrap(p, id)) {
        open_cast(p, (enum scalar)x->type);
        put_wrapping(p, id, PREC_LOWEST);
        buf_char(p->b, ')');
        return;
    }
    if (!is_small(p, id)) {
        put_infix(p, id, prec);
        return;
    }
    open_cast(p, (enum scalar)x->type);
    if (promotes_badly(p, id)) {
        open_cast(p, S_U32);
        clike_expr(p, in_of(p, id)[0], PREC_LOWEST);
        buf_str(p->b, ") * ");
        clike_operand(p, in_of(p, id)[1], PREC_UNARY, LITERAL_PLAIN);
    } else {
        put_infix(p, id, PREC_LOWEST);
    }
    buf_char(p->b, ')');
}

static void put_negation(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const uint32_t a = in_of(p, id)[0];
    if (may_wrap(p, id)) {
        put_arithmetic(p, id, prec);
        return;
    }
    if (x->op == OP_NOT && ir_type_scalar(x->type) == S_BOOL && is_scalar(p, id)) {
        const bool open = clike_open(p, PREC_UNARY, prec);
        buf_char(p->b, '!');
        clike_expr(p, a, PREC_UNARY);
        close_if(p, open);
        return;
    }
    const bool small = is_small(p, id);
    const bool open = small || clike_open(p, PREC_UNARY, prec);
    if (small)
        open_cast(p, (enum scalar)x->type);
    buf_str(p->b, x->op == OP_NEG ? "-" : ir_type_scalar(x->type) == S_BOOL ? "!" : "~");
    const bool minus = at(p, a)->op == OP_CONST || (is_inline(p, a) && at(p, a)->op == OP_NEG);
    clike_expr(p, a, minus ? PREC_POSTFIX : PREC_UNARY);
    close_if(p, open);
}

/* ---- shifts, division ------------------------------------------------------------------------------------------ */

static void put_count(struct clike *p, uint32_t id, uint32_t count, enum prec prec)
{
    const ir_type t = at(p, id)->type;
    const int64_t mask = scalar_info[ir_type_scalar(t)].bits - 1;
    const bool scalar = is_scalar(p, id), inside = clike_within(clike_range(p, count), 0, mask);
    if (scalar && is_literal(p, count)) {
        clike_number(p, at(p, count)->imm & (uint64_t)mask);
        return;
    }
    const bool open = !inside && clike_open(p, PREC_AND, prec);
    if (inside && !scalar && is_inline(p, count) && at(p, count)->op == OP_SPLAT)
        count = in_of(p, count)[0];
    if (!scalar && ir_type_width(at(p, count)->type) > 1 && at(p, count)->type != t) {
        clike_type(p, t);
        buf_char(p->b, '(');
        clike_expr(p, count, PREC_LOWEST);
        buf_char(p->b, ')');
    } else {
        clike_expr(p, count, inside ? prec : PREC_UNARY);
    }
    if (!inside) {
        buf_str(p->b, " & ");
        if (scalar)
            clike_number(p, (uint64_t)mask);
        else
            clike_literal(p, ir_type_scalar(t), (uint64_t)mask, LITERAL_TYPED, PREC_UNARY);
        close_if(p, open);
    }
}

static void put_shift(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const uint32_t a = in_of(p, id)[0], count = in_of(p, id)[1];
    const bool small = is_small(p, id);
    const bool negative = class_of(p, a) == CLASS_S && clike_range(p, a).lo < 0;
    const bool through_unsigned =
        is_scalar(p, id) && x->op == OP_SHL && (small ? promotes_badly(p, id) : negative || clike_wraps(p, id));
    const bool cast = small || through_unsigned;
    const bool open = cast || clike_open(p, PREC_SHIFT, prec);
    if (cast)
        open_cast(p, (enum scalar)x->type);
    if (through_unsigned && small) {
        open_cast(p, S_U32);
        clike_expr(p, a, PREC_LOWEST);
        buf_char(p->b, ')');
    } else if (through_unsigned) {
        put_unsigned(p, a, PREC_UNARY, LITERAL_TYPED);
    } else {
        clike_expr(p, a, PREC_UNARY);
    }
    buf_str(p->b, x->op == OP_SHL ? " << " : " >> ");
    put_count(p, id, count, PREC_UNARY);
    close_if(p, open);
}

/* Neither a division by zero, nor the smallest by -1, nor (floor) a sign that makes rounding differ. */
static bool divides_plainly(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const struct range a = clike_range(p, in_of(p, id)[0]), b = clike_range(p, in_of(p, id)[1]);
    if (class_of(p, id) == CLASS_F)
        return x->op == OP_DIV;
    if (b.lo <= 0 && (b.hi >= 0 || b.wide))
        return false;
    if (class_of(p, id) == CLASS_U)
        return true;
    if (x->op == OP_DIV_FLOOR || x->op == OP_REM_FLOOR)
        return a.lo >= 0 && b.lo > 0;
    const bool minus_one = b.lo <= -1 && b.hi >= -1;
    return !minus_one || a.lo > clike_type_range(x->type).lo;
}

static void put_division(struct clike *p, uint32_t id, enum prec prec)
{
    if (divides_plainly(p, id))
        put_arithmetic(p, id, prec);
    else
        clike_call(p, helper_arith(p, (enum op)at(p, id)->op, at(p, id)->type), id);
}

/* ---- comparison, choice ---------------------------------------------------------------------------------------- */

static void put_compare(struct clike *p, uint32_t id, enum prec prec)
{
    const uint32_t a = in_of(p, id)[0], b = in_of(p, id)[1];
    if (!ir_type_is_pointer(at(p, a)->type)) {
        put_infix(p, id, prec);
        return;
    }
    const struct pointee t = clike_pointee(p, a);
    const bool open = clike_open(p, PREC_EQUAL, prec);
    clike_pointer(p, a, t, clike_const(p, a), PREC_ADD);
    put_operator(p, infix_of(p, id).text);
    clike_pointer(p, b, t, clike_const(p, b), PREC_ADD);
    close_if(p, open);
}

static void put_choice(struct clike *p, uint32_t cond, uint32_t a, uint32_t b, enum prec prec)
{
    const ir_type t = at(p, a)->type;
    const bool open = clike_open(p, PREC_CHOICE, prec);
    const bool wide = ir_type_width(t) == 1 && (ir_type_class(p->m, t) & CLASS_SU) && scalar_info[t].bytes >= 4;
    clike_expr(p, cond, PREC_LOGICAL_OR);
    buf_str(p->b, " ? ");
    if (ir_type_is_pointer(t)) {
        const struct pointee to = clike_pointee(p, a);
        clike_pointer(p, a, to, clike_const(p, a), PREC_LOGICAL_OR);
        buf_str(p->b, " : ");
        clike_pointer(p, b, to, clike_const(p, b), PREC_CHOICE);
    } else {
        clike_operand(p, a, PREC_LOGICAL_OR, wide && !is_literal(p, b) ? LITERAL_PLAIN : LITERAL_TYPED);
        buf_str(p->b, " : ");
        clike_operand(p, b, PREC_CHOICE, wide && !is_literal(p, a) ? LITERAL_PLAIN : LITERAL_TYPED);
    }
    close_if(p, open);
}

static void put_select(struct clike *p, uint32_t id, enum prec prec)
{
    const uint32_t *const in = in_of(p, id);
    if (is_scalar(p, in[0])) {
        put_choice(p, in[0], in[1], in[2], prec);
        return;
    }
    buf_str(p->b, "select(");
    clike_expr(p, in[2], PREC_ASSIGN);
    buf_str(p->b, ", ");
    clike_expr(p, in[1], PREC_ASSIGN);
    buf_str(p->b, ", ");
    clike_expr(p, in[0], PREC_ASSIGN);
    buf_char(p->b, ')');
}

/* ---- conversions ----------------------------------------------------------------------------------------------- */

static void put_convert(struct clike *p, uint32_t id)
{
    const uint32_t a = in_of(p, id)[0];
    const ir_type from = at(p, a)->type, to = at(p, id)->type;
    const enum scalar s = ir_type_scalar(from), t = ir_type_scalar(to);
    const bool from_float = ir_type_class(p->m, from) == CLASS_F, to_float = ir_type_class(p->m, to) == CLASS_F;
    const bool through_f32 = from_float && to_float && s != S_F32 && t != S_F32 && t != s;
    if (from_float && !to_float && t != S_BOOL)
        buf_str(p->b, helper_to_int(p, t, from));
    else
        clike_type(p, to);
    buf_char(p->b, '(');
    if (through_f32) {
        clike_type(p, ir_type_with(from, S_F32));
        buf_char(p->b, '(');
    }
    clike_expr(p, a, PREC_LOWEST);
    buf_str(p->b, through_f32 ? "))" : ")");
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static const char letters[] = "xyzw";

static bool is_attribute(const struct clike *p, uint32_t id)
{
    return at(p, id)->op == OP_PARAM &&
           p->m->params.at[p->m->funcs.at[p->func].first_param + at(p, id)->imm].kind == PARAM_ATTRIBUTE;
}

static void put_extract(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const uint32_t a = in_of(p, id)[0];
    const struct type *const t = ir_type_at(p->m, at(p, a)->type);
    if (is_attribute(p, a)) {
        p->d->attribute(p, (uint32_t)at(p, a)->imm, (int)x->imm, prec);
        return;
    }
    if (t->kind == TYPE_KIND_STRUCT && is_inline(p, a) && at(p, a)->op == OP_LOAD &&
        clike_arrow(p, in_of(p, a)[0], at(p, a)->type)) {
        buf_str(p->b, names_text(p, p->field_names[t->first_field + x->imm]));
        return;
    }
    clike_expr(p, a, PREC_POSTFIX);
    clike_part(p, at(p, a)->type, x->imm);
}

/* float2(v.y, v.x) reads v.yx; the vector they all come from, or 0. */
static uint32_t swizzled(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    uint32_t whole = 0;
    for (unsigned k = 0; k < x->n; k++) {
        const uint32_t part = in_of(p, id)[k];
        if (!is_inline(p, part) || at(p, part)->op != OP_EXTRACT)
            return 0;
        const uint32_t from = in_of(p, part)[0];
        const ir_type t = at(p, from)->type;
        if (is_attribute(p, from) || is_inline(p, from) || at(p, from)->op == OP_ZERO || ir_type_width(t) < 2 ||
            ir_type_scalar(t) != ir_type_scalar(x->type) || (whole && whole != from))
            return 0;
        whole = from;
    }
    return whole;
}

static void put_make(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const uint32_t *const in = in_of(p, id);
    if (ir_type_width(x->type) < 2) {
        clike_type(p, x->type);
        buf_char(p->b, '{');
        for (unsigned k = 0; k < x->n; k++) {
            buf_str(p->b, k ? ", " : "");
            clike_expr(p, in[k], PREC_ASSIGN);
        }
        buf_char(p->b, '}');
        return;
    }
    const uint32_t whole = swizzled(p, id);
    if (whole) {
        bool all = x->type == at(p, whole)->type;
        for (unsigned k = 0; k < x->n; k++)
            all = all && at(p, in[k])->imm == k;
        clike_expr(p, whole, PREC_POSTFIX);
        if (!all)
            buf_char(p->b, '.');
        for (unsigned k = 0; k < x->n && !all; k++)
            buf_char(p->b, letters[at(p, in[k])->imm]);
        return;
    }
    bool same = true;
    for (unsigned k = 1; k < x->n; k++)
        same = same && in[k] == in[0];
    clike_type(p, x->type);
    buf_char(p->b, '(');
    for (unsigned k = 0; k < (same ? 1 : x->n); k++) {
        buf_str(p->b, k ? ", " : "");
        clike_operand(p, in[k], PREC_ASSIGN, LITERAL_PLAIN);
    }
    buf_char(p->b, ')');
}

static void put_shuffle(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const unsigned n = ir_type_width(x->type), width = ir_type_width(at(p, in_of(p, id)[0])->type);
    unsigned groups = 0, before = 2;
    for (unsigned k = 0; k < n; k++) {
        const unsigned from = (unsigned)(x->imm >> (4 * k + 2)) & 1;
        groups += from != before;
        before = from;
    }
    if (groups > 1) {
        clike_type(p, x->type);
        buf_char(p->b, '(');
    }
    for (unsigned k = 0; k < n;) {
        const unsigned from = (unsigned)(x->imm >> (4 * k + 2)) & 1;
        bool all = n == width && groups == 1;
        for (unsigned i = 0; i < n; i++)
            all = all && ((x->imm >> 4 * i) & 3) == i;
        buf_str(p->b, k ? ", " : "");
        clike_expr(p, in_of(p, id)[from], PREC_POSTFIX);
        if (!all)
            buf_char(p->b, '.');
        for (; k < n && ((x->imm >> (4 * k + 2)) & 1) == from; k++)
            if (!all)
                buf_char(p->b, letters[(x->imm >> 4 * k) & 3]);
    }
    if (groups > 1)
        buf_char(p->b, ')');
}

static void put_part_at(struct clike *p, uint32_t id)
{
    const uint32_t *const in = in_of(p, id);
    const ir_type whole = at(p, in[0])->type;
    const int64_t n = (int64_t)ir_type_parts(p->m, whole);
    if (at(p, id)->op == OP_EXTRACT_AT && clike_within(clike_range(p, in[1]), 0, n - 1)) {
        clike_expr(p, in[0], PREC_POSTFIX);
        buf_char(p->b, '[');
        clike_operand(p, in[1], PREC_LOWEST, LITERAL_PLAIN);
        buf_char(p->b, ']');
        return;
    }
    clike_call(p, helper_part(p, (enum op)at(p, id)->op, whole), id);
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

void clike_call(struct clike *p, const char *function, uint32_t id)
{
    buf_str(p->b, function);
    buf_char(p->b, '(');
    for (unsigned k = 0; k < at(p, id)->n; k++) {
        buf_str(p->b, k ? ", " : "");
        clike_expr(p, in_of(p, id)[k], PREC_ASSIGN);
    }
    buf_char(p->b, ')');
}

static void put_call(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const struct func *const f = &p->m->funcs.at[x->imm];
    buf_str(p->b, names_text(p, p->func_name[x->imm]));
    buf_char(p->b, '(');
    for (unsigned k = 0; k < x->n; k++) {
        const struct param *const q = &p->m->params.at[f->first_param + k];
        const uint32_t a = in_of(p, id)[k];
        buf_str(p->b, k ? ", " : "");
        if (ir_type_is_pointer(q->type))
            clike_pointer(p, a, (struct pointee){q->elem, q->atomic}, clike_const(p, a), PREC_ASSIGN);
        else
            clike_expr(p, a, PREC_ASSIGN);
    }
    buf_char(p->b, ')');
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

void clike_definition(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = at(p, id);
    const uint32_t *const in = in_of(p, id);
    if (op_info[x->op].math) {
        if (x->op == OP_ABS && class_of(p, id) == CLASS_S && clike_range(p, in[0]).lo <= clike_type_range(x->type).lo)
            clike_call(p, helper_arith(p, OP_ABS, x->type), id);
        else
            p->d->math(p, id, prec);
        return;
    }
    if (op_info[x->op].effect == EFFECT_CONVERGENT) {
        p->d->collective(p, id, prec);
        return;
    }
    if (op_info[x->op].effect == EFFECT_ATOMIC) {
        p->d->atomic(p, id, prec);
        return;
    }
    switch ((unsigned)x->op) {
    case OP_NEG:
    case OP_NOT: put_negation(p, id, prec); return;
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_AND:
    case OP_OR:
    case OP_XOR: put_arithmetic(p, id, prec); return;
    case OP_DIV:
    case OP_DIV_TRUNC:
    case OP_REM_TRUNC:
    case OP_DIV_FLOOR:
    case OP_REM_FLOOR: put_division(p, id, prec); return;
    case OP_IPOW: clike_call(p, helper_arith(p, OP_IPOW, x->type), id); return;
    case OP_SHL:
    case OP_SHR: put_shift(p, id, prec); return;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: put_compare(p, id, prec); return;
    case OP_SELECT: put_select(p, id, prec); return;
    case OP_CONVERT: put_convert(p, id); return;
    case OP_BITCAST: p->d->bitcast(p, id, prec); return;
    case OP_MAKE: put_make(p, id); return;
    case OP_SPLAT:
        clike_type(p, x->type);
        buf_char(p->b, '(');
        clike_operand(p, in[0], PREC_LOWEST, LITERAL_PLAIN);
        buf_char(p->b, ')');
        return;
    case OP_EXTRACT: put_extract(p, id, prec); return;
    case OP_SHUFFLE: put_shuffle(p, id); return;
    case OP_EXTRACT_AT:
    case OP_INSERT_AT: put_part_at(p, id); return;
    case OP_GET: buf_str(p->b, clike_name(p, in[0])); return;
    case OP_LOAD: clike_lvalue(p, in[0], x->type, prec); return;
    case OP_INDEX:
    case OP_FIELD:
    case OP_ALLOC: clike_address(p, id, prec); return;
    case OP_CALL: put_call(p, id); return;
    case OP_RESULT: /* of an if printed as ?: */
        put_choice(p, in_of(p, x->in[0])[0], in_of(p, clike_yield(p, ir_region(p->m, x->in[0], 0)))[0],
                   in_of(p, clike_yield(p, ir_region(p->m, x->in[0], 1)))[0], prec);
        return;
    }
    CLIKE_FAIL(p, id, PRINT_UNSUPPORTED, p->d->name, op_info[x->op].name);
}

void clike_operand(struct clike *p, uint32_t id, enum prec prec, unsigned how)
{
    const struct node *const x = at(p, id);
    switch ((unsigned)x->op) {
    case OP_CONST: clike_literal(p, (enum scalar)x->type, x->imm, how, prec); return;
    case OP_ZERO:
        if (ir_type_is_pointer(x->type)) {
            clike_pointer(p, id, (struct pointee){S_U8, false}, false, prec);
            return;
        }
        clike_zero(p, x->type);
        return;
    case OP_PARAM:
        if (is_attribute(p, id))
            p->d->attribute(p, (uint32_t)x->imm, -1, prec);
        else
            buf_str(p->b, clike_name(p, id));
        return;
    }
    if (p->v[id].mode == MODE_INLINE)
        clike_definition(p, id, prec);
    else if (x->op == OP_ALLOC)
        clike_address(p, id, prec);
    else
        buf_str(p->b, clike_name(p, id));
}

void clike_expr(struct clike *p, uint32_t id, enum prec prec)
{
    clike_operand(p, id, prec, LITERAL_TYPED);
}

/* A comparison of integers is negated by its opposite. */
void clike_condition(struct clike *p, uint32_t id, bool negate)
{
    const struct node *const x = at(p, id);
    if (!negate) {
        clike_expr(p, id, PREC_LOWEST);
        return;
    }
    if (is_inline(p, id) && x->op == OP_NOT) {
        clike_expr(p, in_of(p, id)[0], PREC_LOWEST);
        return;
    }
    const bool total = x->op == OP_EQ || x->op == OP_NE || (x->n == 2 && class_of(p, in_of(p, id)[0]) != CLASS_F);
    if (is_inline(p, id) && total && op_info[x->op].rule == RULE_COMPARE &&
        !ir_type_is_pointer(at(p, in_of(p, id)[0])->type)) {
        static const char *const opposite[] = {"!=", "==", ">=", ">", "<=", "<"};
        const uint32_t a = in_of(p, id)[0], b = in_of(p, id)[1];
        clike_operand(p, a, PREC_ADD, is_literal(p, b) ? LITERAL_TYPED : LITERAL_PLAIN);
        put_operator(p, opposite[x->op - OP_EQ]);
        clike_operand(p, b, PREC_ADD, LITERAL_PLAIN);
        return;
    }
    buf_char(p->b, '!');
    clike_expr(p, id, PREC_UNARY);
}

bool clike_compound(const struct clike *p, uint32_t value, const char **op, uint32_t *left, uint32_t *right)
{
    const struct node *const x = at(p, value);
    if (!is_inline(p, value) || x->n != 2 || ir_type_scalar(x->type) == S_BOOL)
        return false;
    bool plain = false;
    switch ((unsigned)x->op) {
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_AND:
    case OP_OR:
    case OP_XOR: plain = !may_wrap(p, value) && !promotes_badly(p, value); break;
    case OP_DIV:
    case OP_DIV_TRUNC:
    case OP_REM_TRUNC:
    case OP_DIV_FLOOR:
    case OP_REM_FLOOR: plain = divides_plainly(p, value); break;
    case OP_SHL: plain = is_scalar(p, value) && class_of(p, value) == CLASS_U && !promotes_badly(p, value); break;
    case OP_SHR: plain = is_scalar(p, value); break;
    }
    *op = infix_of(p, value).text;
    *left = in_of(p, value)[0];
    *right = in_of(p, value)[1];
    return plain;
}

void clike_compound_right(struct clike *p, uint32_t value, const char *op)
{
    const uint32_t left = in_of(p, value)[0], right = in_of(p, value)[1];
    if (at(p, value)->op == OP_SHL || at(p, value)->op == OP_SHR) {
        buf_fmt(p->b, " %s= ", op);
        put_count(p, value, right, PREC_ASSIGN);
    } else if (at(p, value)->op == OP_ADD && is_negative(p, right)) {
        buf_str(p->b, " -= ");
        clike_literal(p, (enum scalar)at(p, right)->type, 0u - at(p, right)->imm, LITERAL_PLAIN, PREC_ASSIGN);
    } else {
        buf_fmt(p->b, " %s= ", op);
        clike_operand(p, scalar_operand(p, right, left), PREC_ASSIGN,
                      is_scalar(p, value) ? LITERAL_PLAIN : LITERAL_TYPED);
    }
}
