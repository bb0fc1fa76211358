/* helper.c - functions that printed code calls where the language leaves open, or defines otherwise, what the IR means.
 * Each is printed once for each type it is used with; vectors go through their components. */
#include "clike/internal.h"

#include <inttypes.h>
#include <stdio.h>

const char *clike_helper(struct clike *p, helper_writer *write, const char *name, ir_type type, uint64_t extra)
{
    for (uint32_t k = 0; k < p->helpers.n; k++) {
        const struct helper *const h = &p->helpers.at[k];
        if (h->write == write && h->type == type && h->extra == extra && strcmp(h->name, name) == 0)
            return h->name;
    }
    VEC_PUSH(p->mem, &p->helpers, ((struct helper){write, name, type, extra}));
    return name;
}

/* Text with these letters replaced: $T the type, $U its unsigned type, $P the
 * prefix of functions that fast maths leaves alone; $( and $) a cast to the type where C computes in int instead. */
static void put_template(struct clike *p, const char *text, enum scalar s)
{
    static const uint8_t unsigned_of[S_COUNT] = {[S_I8] = S_U8, [S_I16] = S_U16, [S_I32] = S_U32, [S_I64] = S_U64};
    for (; *text; text++) {
        if (*text != '$') {
            buf_char(p->b, *text);
            continue;
        }
        text++;
        const enum scalar u = unsigned_of[s] ? (enum scalar)unsigned_of[s] : s;
        /* Arithmetic below 32 bits is done in 32. */
        if (*text == 'U')
            buf_str(p->b, clike_scalar(p, scalar_info[u].bytes < 4 ? S_U32 : u));
        else if (*text == '(' || *text == ')')
            buf_fmt(p->b, scalar_info[s].bytes >= 4 ? "%.0s" : *text == '(' ? "%s(" : ")%.0s", clike_scalar(p, s));
        else if (*text == 'P')
            buf_str(p->b, p->d->precise);
        else
            buf_str(p->b, clike_scalar(p, s));
    }
}

/* result name(T a, T b, …) component by component, by the scalar helper of the same name. */
void helper_elementwise(struct clike *p, const struct helper *h, ir_type result, unsigned n)
{
    static const char letters[] = "xyzw";
    const unsigned width = ir_type_width(h->type);
    buf_str(p->b, p->d->helper);
    clike_type(p, result);
    buf_fmt(p->b, " %s(", h->name);
    for (unsigned k = 0; k < n; k++) {
        buf_str(p->b, k ? ", " : "");
        clike_type(p, h->type);
        buf_fmt(p->b, " %c", "abc"[k]);
    }
    buf_str(p->b, ") {\n    return ");
    clike_type(p, result);
    for (unsigned i = 0; i < width; i++) {
        buf_fmt(p->b, "%s%s(", i ? ", " : "(", h->name);
        for (unsigned k = 0; k < n; k++)
            buf_fmt(p->b, "%s%c.%c", k ? ", " : "", "abc"[k], letters[i]);
        buf_char(p->b, ')');
    }
    buf_str(p->b, ");\n}\n");
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

/* Division truncates; by -1 it is a negation that wraps. A cast stands where C would give an int. */
static const char *body_of(enum op op, unsigned class_)
{
    const bool is_signed = class_ == CLASS_S;
    switch ((unsigned)op) {
    case OP_DIV_TRUNC:
        return is_signed ? "    return b == 0 ? $(0$) : b == -1 ? $T(0 - $U(a)) : $(a / b$);\n"
                         : "    return b == 0 ? $(0$) : $(a / b$);\n";
    case OP_REM_TRUNC:
        return is_signed ? "    return b == 0 || b == -1 ? $(0$) : $(a % b$);\n"
                         : "    return b == 0 ? $(0$) : $(a % b$);\n";
    case OP_DIV_FLOOR:
        if (class_ == CLASS_F)
            return "    $T m = $Pfmod(a, b);\n"
                   "    bool up = m != 0.0f && (m < 0.0f) != (b < 0.0f);\n"
                   "    $T q = (a - m) / b - (up ? 1.0f : 0.0f);\n"
                   "    $T down = floor(q);\n"
                   "    $T nearest = q - down > 0.5f ? down + 1.0f : down;\n"
                   "    return b == 0.0f ? a / b : q == 0.0f ? copysign(0.0f, a / b) : nearest;\n";
        return "    if (b == 0 || b == -1) {\n"
               "        return b == 0 ? $(0$) : $T(0 - $U(a));\n"
               "    }\n"
               "    return $(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)$);\n";
    case OP_REM_FLOOR:
        if (class_ == CLASS_F)
            return "    $T m = $Pfmod(a, b);\n"
                   "    return m == 0.0f ? copysign(0.0f, b) : (m < 0.0f) != (b < 0.0f) ? m + b : m;\n";
        return "    if (b == 0 || b == -1) {\n"
               "        return 0;\n"
               "    }\n"
               "    $T m = $(a % b$);\n"
               "    return m != 0 && (m < 0) != (b < 0) ? $(m + b$) : m;\n";
    case OP_IPOW:
        return is_signed ? "    if (b < 0) {\n"
                           "        return a == 1 || (a == -1 && b % 2 == 0) ? $(1$) : a == -1 ? $(-1$) : $(0$);\n"
                           "    }\n"
                           "    $U power = 1, square = $U(a);\n"
                           "    for ($U n = $U(b); n != 0; n >>= 1) {\n"
                           "        power *= (n & 1) != 0 ? square : 1;\n"
                           "        square *= square;\n"
                           "    }\n"
                           "    return $T(power);\n"
                         : "    $U power = 1, square = a;\n"
                           "    for ($U n = b; n != 0; n >>= 1) {\n"
                           "        power *= (n & 1) != 0 ? square : 1;\n"
                           "        square *= square;\n"
                           "    }\n"
                           "    return $(power$);\n";
    case OP_ABS: return "    return a < 0 ? $T(0 - $U(a)) : a;\n";
    }
    return "";
}

static void write_arith(struct clike *p, const struct helper *h)
{
    const enum op op = (enum op)h->extra;
    const enum scalar s = ir_type_scalar(h->type);
    if (ir_type_width(h->type) > 1) {
        helper_elementwise(p, h, h->type, (unsigned)op_info[op].n);
        return;
    }
    buf_str(p->b, p->d->helper);
    buf_fmt(p->b, "%s %s(%s a", clike_scalar(p, s), h->name, clike_scalar(p, s));
    buf_fmt(p->b, op_info[op].n == 2 ? ", %s b) {\n" : ") {\n", clike_scalar(p, s));
    if (s == S_BF16 || s == S_F16) { /* computed as float */
        buf_fmt(p->b, "    return %s(%s(%s(a), %s(b)));\n", clike_scalar(p, s), h->name, clike_scalar(p, S_F32),
                clike_scalar(p, S_F32));
    } else {
        put_template(p, body_of(op, scalar_info[s].class_), s);
    }
    buf_str(p->b, "}\n");
}

const char *helper_arith(struct clike *p, enum op op, ir_type t)
{
    static const struct {
        enum op op;
        const char *name;
    } names[] = {{OP_DIV_TRUNC, "spork_div"},       {OP_REM_TRUNC, "spork_rem"}, {OP_DIV_FLOOR, "spork_div_floor"},
                 {OP_REM_FLOOR, "spork_rem_floor"}, {OP_IPOW, "spork_pow"},      {OP_ABS, "spork_abs"}};
    const char *name = "";
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].op == op)
            name = names[k].name;
    const enum scalar s = ir_type_scalar(t);
    if (scalar_info[s].class_ == CLASS_U && op == OP_DIV_FLOOR)
        return helper_arith(p, OP_DIV_TRUNC, t);
    if (scalar_info[s].class_ == CLASS_U && op == OP_REM_FLOOR)
        return helper_arith(p, OP_REM_TRUNC, t);
    if (s == S_BF16 || s == S_F16)
        (void)clike_helper(p, write_arith, name, S_F32, op);
    if (ir_type_width(t) > 1)
        (void)clike_helper(p, write_arith, name, (ir_type)s, op);
    return clike_helper(p, write_arith, name, t, op);
}

/* ---- float to integer ------------------------------------------------------------------------------------------ */

/* Truncates and saturates; NaN, told by its bits because fast maths may assume there is none, gives 0. */
static void write_to_int(struct clike *p, const struct helper *h)
{
    const enum scalar to = (enum scalar)(h->extra & 0xff), from = ir_type_scalar(h->type);
    const char *const f32 = clike_scalar(p, S_F32), *const t = clike_scalar(p, to);
    if (ir_type_width(h->type) > 1) {
        helper_elementwise(p, h, ir_type_with(h->type, to), 1);
        return;
    }
    buf_fmt(p->b, "%s%s %s(%s a) {\n", p->d->helper, t, h->name, clike_scalar(p, from));
    if (from != S_F32) {
        buf_fmt(p->b, "    return %s(%s(a));\n}\n", h->name, f32);
        return;
    }
    const struct range r = clike_type_range((ir_type)to);
    const unsigned bits = scalar_info[to].bits;
    const uint64_t most = bits == 64 && scalar_info[to].class_ == CLASS_U ? UINT64_MAX : (uint64_t)r.hi;
    char end[24] = "18446744073709551616"; /* the first value too large */
    if (most < UINT64_MAX)
        (void)snprintf(end, sizeof end, "%" PRIu64, most + 1);
    buf_fmt(p->b, "    if ((%s(a) & 0x7fffffff) > 0x7f800000) {\n        return 0;\n    }\n", p->d->bits_of_f32);
    buf_fmt(p->b, "    return a >= %s.0f ? ", end);
    clike_literal(p, to, most, LITERAL_TYPED, PREC_LOGICAL_OR);
    buf_fmt(p->b, " : a <= %s%s.0f ? ", r.lo < 0 ? "-" : "", r.lo < 0 ? end : "0");
    clike_literal(p, to, (uint64_t)r.lo, LITERAL_TYPED, PREC_LOGICAL_OR);
    buf_fmt(p->b, " : %s(a);\n}\n", t);
}

const char *helper_to_int(struct clike *p, enum scalar to, ir_type from)
{
    static const char *const names[S_COUNT] = {
        [S_I8] = "spork_to_char", [S_U8] = "spork_to_uchar", [S_I16] = "spork_to_short", [S_U16] = "spork_to_ushort",
        [S_I32] = "spork_to_int", [S_U32] = "spork_to_uint", [S_I64] = "spork_to_long",  [S_U64] = "spork_to_ulong"};
    (void)clike_helper(p, write_to_int, names[to], S_F32, to);
    (void)clike_helper(p, write_to_int, names[to], (ir_type)ir_type_scalar(from), to);
    return clike_helper(p, write_to_int, names[to], from, to);
}

/* ---- parts at a run-time index --------------------------------------------------------------------------------- */

static void write_part(struct clike *p, const struct helper *h)
{
    const struct type *const t = ir_type_at(p->m, h->type);
    const uint64_t n = ir_type_parts(p->m, h->type);
    const bool insert = h->extra == OP_INSERT_AT;
    const char *const index = clike_scalar(p, S_U64);
    buf_str(p->b, p->d->helper);
    clike_type(p, insert ? h->type : t->elem);
    buf_fmt(p->b, " %s(", h->name);
    clike_type(p, h->type);
    buf_str(p->b, " whole, ");
    if (insert) {
        clike_type(p, t->elem);
        buf_str(p->b, " part, ");
    }
    buf_fmt(p->b, "%s i) {\n", index);
    if (insert) {
        buf_fmt(p->b, "    if (i < %" PRIu64 ") {\n        whole[i] = part;\n    }\n    return whole;\n}\n", n);
        return;
    }
    buf_fmt(p->b, "    return i < %" PRIu64 " ? whole[i] : ", n);
    clike_zero(p, t->elem);
    buf_str(p->b, ";\n}\n");
}

const char *helper_part(struct clike *p, enum op op, ir_type whole)
{
    return clike_helper(p, write_part, op == OP_INSERT_AT ? "spork_insert" : "spork_extract", whole, op);
}
