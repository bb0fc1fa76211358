/* literal.c - exact literals, types and declarations. */
#include "clike/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *clike_scalar(const struct clike *p, enum scalar s)
{
    return p->d->scalar[s];
}

bool clike_open(struct clike *p, enum prec mine, enum prec outer)
{
    if (mine < outer)
        buf_char(p->b, '(');
    return mine < outer;
}

/* ---- floats ---------------------------------------------------------------------------------------------------- */

/* The shortest decimal that rounds to the same 16-bit float. */
static void small_float_text(char out[48], float x, bool half)
{
    const uint16_t bits = half ? f16_from_f32(x) : bf16_from_f32(x);
    if (fabsf(x) < 1e6f && x == truncf(x)) {
        text_f32(out, 48, x);
        return;
    }
    for (int digits = 0; digits < 6; digits++) {
        char text[32];
        double y = 0;
        (void)snprintf(text, sizeof text, "%.*e", digits, (double)x);
        if (digits > 0)
            text[x < 0 ? 2 : 1] = '.'; /* whatever the locale's point is */
        if (read_f64(text, &y) && (half ? f16_from_f64(y) : bf16_from_f64(y)) == bits) {
            text_f32(out, 48, (float)y);
            if (read_f64(out, &y) && (half ? f16_from_f64(y) : bf16_from_f64(y)) == bits)
                return;
        }
    }
    text_f32(out, 48, x);
}

static void put_bits(struct clike *p, enum scalar s, uint64_t bits)
{
    if (scalar_info[s].bytes == 2)
        buf_fmt(p->b, "as_type<%s>(%s(0x%04" PRIx64 "))", clike_scalar(p, s), clike_scalar(p, S_U16), bits);
    else
        buf_fmt(p->b, "as_type<%s>(0x%08" PRIx64 "u)", clike_scalar(p, s), bits);
}

static void put_float(struct clike *p, enum scalar s, uint64_t bits, enum prec prec)
{
    const float x = s == S_F32   ? f32_bits((uint32_t)bits)
                    : s == S_F16 ? f16_to_f32((uint16_t)bits)
                                 : bf16_to_f32((uint16_t)bits);
    if (isnan(x) || isinf(x)) {
        const uint64_t quiet = s == S_F32 ? 0x7fc00000 : s == S_F16 ? 0x7e00 : 0x7fc0;
        const bool close = !isnan(x) && x < 0 && s == S_F32 && clike_open(p, PREC_UNARY, prec);
        if (isnan(x) && bits != quiet)
            put_bits(p, s, bits);
        else if (s == S_F32)
            buf_str(p->b, isnan(x) ? "NAN" : x > 0 ? "INFINITY" : "-INFINITY");
        else
            buf_fmt(p->b, "%s(%s)", clike_scalar(p, s), isnan(x) ? "NAN" : x > 0 ? "INFINITY" : "-INFINITY");
        if (close)
            buf_char(p->b, ')');
        return;
    }
    char text[48];
    if (s == S_F32)
        text_f32(text, sizeof text, x);
    else
        small_float_text(text, x, s == S_F16);
    const char *const open = s == S_F16 ? p->d->f16_open : s == S_BF16 ? p->d->bf16_open : "";
    const char *const shut = s == S_F16 ? p->d->f16_close : s == S_BF16 ? p->d->bf16_close : "f";
    const bool close = signbit(x) && !*open && clike_open(p, PREC_UNARY, prec);
    buf_str(p->b, open);
    buf_str(p->b, text);
    buf_str(p->b, shut);
    if (close)
        buf_char(p->b, ')');
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

void clike_number(struct clike *p, uint64_t x)
{
    char digits[20];
    unsigned n = sizeof digits;
    do
        digits[--n] = (char)('0' + x % 10);
    while ((x /= 10));
    buf_bytes(p->b, digits + n, sizeof digits - n);
}

static void put_signed(struct clike *p, int64_t x)
{
    if (x < 0)
        buf_char(p->b, '-');
    clike_number(p, x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

void clike_literal(struct clike *p, enum scalar s, uint64_t bits, unsigned how, enum prec prec)
{
    const unsigned width = scalar_info[s].bits;
    const int64_t x =
        scalar_info[s].class_ == CLASS_S ? (int64_t)(bits << (64 - width)) >> (64 - width) : (int64_t)bits;
    if (s == S_BOOL) {
        buf_str(p->b, bits ? "true" : "false");
        return;
    }
    if (scalar_info[s].class_ == CLASS_F) {
        put_float(p, s, bits, prec);
        return;
    }
    if (s == S_I32 && x == INT32_MIN) {
        buf_str(p->b, "(-2147483647 - 1)");
        return;
    }
    if (s == S_I64 && x == INT64_MIN) {
        buf_str(p->b, "(-9223372036854775807l - 1l)");
        return;
    }
    const bool is_int = s == S_I32 || (how == LITERAL_PLAIN && (scalar_info[s].class_ == CLASS_S || x >= 0) &&
                                       x <= INT32_MAX && x > INT32_MIN);
    if (width < 32 && !is_int) {
        buf_str(p->b, clike_scalar(p, s));
        buf_char(p->b, '(');
        put_signed(p, x);
        buf_char(p->b, ')');
        return;
    }
    const bool close = scalar_info[s].class_ == CLASS_S && x < 0 && clike_open(p, PREC_UNARY, prec);
    if (is_int || s == S_I64)
        put_signed(p, x);
    else
        clike_number(p, bits);
    if (!is_int)
        buf_str(p->b, s == S_I64 ? "l" : s == S_U64 ? "ul" : "u");
    if (close)
        buf_char(p->b, ')');
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

void clike_type(struct clike *p, ir_type t)
{
    const struct type *const x = ir_type_at(p->m, t);
    switch ((enum type_kind)x->kind) {
    case TYPE_KIND_VOID: buf_str(p->b, "void"); return;
    case TYPE_KIND_SCALAR: buf_str(p->b, clike_scalar(p, ir_type_scalar(t))); return;
    case TYPE_KIND_VECTOR:
        buf_str(p->b, clike_scalar(p, ir_type_scalar(t)));
        clike_number(p, ir_type_width(t));
        return;
    case TYPE_KIND_POINTER:
        clike_pointer_declare(p, ir_type_space(t), (struct pointee){S_U8, false}, false, "");
        return;
    case TYPE_KIND_STRUCT:
        p->type_used[t] = 1;
        buf_str(p->b, names_text(p, p->type_names[t]));
        return;
    case TYPE_KIND_ARRAY:
        buf_str(p->b, "array<");
        clike_type(p, x->elem);
        buf_fmt(p->b, ", %" PRIu64 ">", x->count);
        return;
    }
}

void clike_declare(struct clike *p, ir_type t, const char *name)
{
    ir_type elem = t;
    if (!p->array_values)
        while (ir_type_at(p->m, elem)->kind == TYPE_KIND_ARRAY)
            elem = ir_type_at(p->m, elem)->elem;
    clike_type(p, elem);
    buf_str(p->b, *name ? " " : "");
    buf_str(p->b, name);
    for (; t != elem; t = ir_type_at(p->m, t)->elem)
        buf_fmt(p->b, "[%" PRIu64 "]", ir_type_at(p->m, t)->count);
}

void clike_part(struct clike *p, ir_type whole, uint64_t part)
{
    const struct type *const t = ir_type_at(p->m, whole);
    if (t->kind == TYPE_KIND_ARRAY) {
        buf_char(p->b, '[');
        clike_number(p, part);
        buf_char(p->b, ']');
        return;
    }
    buf_char(p->b, '.');
    if (t->kind == TYPE_KIND_VECTOR)
        buf_char(p->b, "xyzw"[part]);
    else
        buf_str(p->b, names_text(p, p->field_names[t->first_field + part]));
}

void clike_zero(struct clike *p, ir_type t)
{
    const enum scalar s = ir_type_scalar(t);
    if (ir_type_width(t) == 1) {
        clike_literal(p, s, 0, LITERAL_TYPED, PREC_LOWEST);
        return;
    }
    clike_type(p, t);
    if (ir_type_width(t) == 0) {
        buf_str(p->b, "{}");
        return;
    }
    buf_char(p->b, '(');
    clike_literal(p, s, 0, LITERAL_PLAIN, PREC_LOWEST);
    buf_char(p->b, ')');
}
