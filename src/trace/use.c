/* use.c - operands: where a value may be used, what a plain number becomes, which types mix.
 *
 * The rules, in the order they are applied to the operands of an operation:
 *  1. typed operands: the wider type; an integer with a float gives that float; f16 with bf16 gives f32; a signed integer
 *     with an unsigned one as wide or wider gives the unsigned type where the bits do not depend on the sign, else an
 *     error; a bool counts as i32 in arithmetic and takes the other type elsewhere;
 *  2. plain (weak) numbers take that type; a plain float beside integers or bools makes it f32;
 *  3. a number that the type cannot hold is an error, a float that it holds rounded is not;
 *  4. plain numbers among themselves: f32 if one is a float, else the first of i32, u32, i64, u64 that holds all.
 */
#include "trace/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- may it be used here ------------------------------------------------------------------------------------------- */

sk_status trace_open(struct trace *t, sk_error *err)
{
    if (SK_UNLIKELY(!t->m))
        return FAIL(t, err, TRACE_OVER);
    if (SK_UNLIKELY(t->frames.n == 0))
        return FAIL(t, err, NO_KERNEL);
    return SK_OK;
}

SK_COLD static sk_status not_here(struct trace *t, struct tv v, sk_error *err)
{
    if (v.serial != t->serial || v.id >= t->m->nodes.n)
        return FAIL(t, err, OTHER_KERNEL);
    const struct func *const funcs = t->m->funcs.at;
    if (v.func != t->b.func) {
        if (v.func >= t->m->funcs.n)
            return FAIL(t, err, OTHER_KERNEL);
        return FAIL(t, err, OTHER_FUNCTION, strtab_str(&t->m->strings, funcs[v.func].name),
                    strtab_str(&t->m->strings, funcs[t->b.func].name));
    }
    return FAIL(t, err, AFTER_BLOCK, ir_err_place(t->m, ir_at(t->m, v.id)->place).line);
}

static bool is_visible(const struct trace *t, uint32_t id)
{
    const uint32_t region = ir_at(t->m, id)->region;
    if (!region)
        return true;
    for (uint32_t r = t->b.region; r; r = ir_parent_region(t->m, r))
        if (r == region)
            return true;
    return false;
}

static sk_status check(struct trace *t, struct tv v, sk_error *err)
{
    TRY(trace_open(t, err));
    if (SK_UNLIKELY(v.serial != t->serial || v.func != t->b.func || v.id >= t->m->nodes.n || !is_visible(t, v.id)))
        return not_here(t, v, err);
    return SK_OK;
}

bool trace_usable(const struct trace *t, struct tv v)
{
    if (v.kind != TV_VALUE && v.kind != TV_LOCAL && v.kind != TV_POINTER)
        return true;
    return t->m && v.serial == t->serial && v.func == t->b.func && v.id < t->m->nodes.n && is_visible(t, v.id);
}

sk_status trace_use(struct trace *t, struct tv v, struct tv *out, sk_error *err)
{
    switch ((enum tv_kind)v.kind) {
    case TV_INT:
    case TV_FLOAT:
    case TV_BOOL: TRY(trace_open(t, err)); break;
    case TV_VALUE: TRY(check(t, v, err)); break;
    case TV_LOCAL: {
        TRY(check(t, v, err));
        v = trace_value(t, ir_node(&t->b, OP_GET, trace_node_type(t, v.id), 1, &v.id, 0, 0));
        break;
    }
    case TV_POINTER: TRY(check(t, v, err)); return FAIL(t, err, POINTER_AS_VALUE, trace_pointer_name(t, v.magnitude));
    case TV_NONE: return FAIL(t, err, NO_VALUE);
    }
    *out = v;
    return SK_OK;
}

sk_status trace_use_local(struct trace *t, struct tv v, sk_error *err)
{
    if (v.kind != TV_LOCAL)
        return FAIL(t, err, NOT_A_LOCAL);
    return check(t, v, err);
}

sk_status trace_use_pointer(struct trace *t, struct tv v, sk_error *err)
{
    if (v.kind != TV_POINTER)
        return FAIL(t, err, NOT_A_POINTER);
    return check(t, v, err);
}

ir_type trace_type(const struct trace *t, struct tv v)
{
    if (v.kind != TV_VALUE && v.kind != TV_LOCAL && v.kind != TV_POINTER)
        return TYPE_VOID;
    if (!t->m || v.serial != t->serial || v.id >= t->m->nodes.n)
        return TYPE_VOID;
    return trace_node_type(t, v.id);
}

/* ---- words for messages -------------------------------------------------------------------------------------------- */

struct type_text trace_type_text(const struct trace *t, ir_type type)
{
    struct type_text out = {{0}};
    struct buf b;
    buf_init(&b, t->mem);
    ir_type_print(t->m, &b, type);
    (void)snprintf(out.at, sizeof out.at, "%s", buf_text(&b));
    buf_free(&b);
    return out;
}

struct type_text trace_weak_text(struct tv v)
{
    struct type_text out = {{0}};
    if (v.kind == TV_FLOAT)
        text_f64(out.at, sizeof out.at, v.f);
    else if (v.kind == TV_BOOL)
        (void)snprintf(out.at, sizeof out.at, "%s", v.magnitude ? "True" : "False");
    else
        (void)snprintf(out.at, sizeof out.at, "%s%" PRIu64, v.negative ? "-" : "", v.magnitude);
    return out;
}

/* ---- weak numbers -------------------------------------------------------------------------------------------------- */

static unsigned class_of(enum scalar s)
{
    return scalar_info[s].class_;
}

/* The number as a double that rounds to the narrower float types as the number itself does: bits that a double has no
 * room for leave an odd last bit. */
static double weak_double(struct tv v)
{
    if (v.kind == TV_FLOAT)
        return v.f;
    uint64_t x = v.magnitude;
    if (x >> 53)
        x = (x >> 11 | ((x & 0x7ff) != 0)) << 11;
    return v.negative ? -(double)x : (double)x;
}

static bool float_fits(double x, enum scalar s)
{
    if (!isfinite(x))
        return true;
    if (s == S_F16)
        return (f16_from_f64(x) & 0x7fff) != 0x7c00;
    if (s == S_BF16)
        return (bf16_from_f64(x) & 0x7fff) != 0x7f80;
    return isfinite((float)x) != 0;
}

bool trace_weak_fits(struct tv v, enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    switch (class_of(s)) {
    case CLASS_B: return v.kind != TV_FLOAT && v.magnitude <= (v.negative ? 0 : 1);
    case CLASS_S: return v.kind != TV_FLOAT && v.magnitude <= ((uint64_t)1 << (bits - 1)) - !v.negative;
    case CLASS_U:
        return v.kind != TV_FLOAT && (!v.negative || v.magnitude == 0) && (bits == 64 || v.magnitude >> bits == 0);
    case CLASS_F: return float_fits(weak_double(v), s);
    }
    return false;
}

/* The number fits. */
static uint32_t weak_const(struct trace *t, struct tv v, enum scalar s)
{
    if (class_of(s) == CLASS_F)
        return ir_const_f(t->m, (ir_type)s, weak_double(v));
    return ir_const(t->m, (ir_type)s, v.negative ? 0u - v.magnitude : v.magnitude);
}

sk_status trace_weak(struct trace *t, struct tv v, enum scalar s, uint32_t *out, sk_error *err)
{
    if (SK_UNLIKELY(!trace_weak_fits(v, s)))
        return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v).at, scalar_info[s].name);
    *out = weak_const(t, v, s);
    return SK_OK;
}

sk_status trace_weak_type(struct trace *t, unsigned n, const struct tv *v, enum scalar *out, sk_error *err)
{
    static const enum scalar order[] = {S_I32, S_U32, S_I64, S_U64};
    bool all_bool = true;
    for (unsigned k = 0; k < n; k++) {
        if (v[k].kind == TV_FLOAT) {
            *out = S_F32;
            return SK_OK;
        }
        all_bool &= v[k].kind == TV_BOOL;
    }
    if (all_bool) {
        *out = S_BOOL;
        return SK_OK;
    }
    for (unsigned s = 0; s < sizeof order / sizeof *order; s++) {
        unsigned fit = 0;
        while (fit < n && trace_weak_fits(v[fit], order[s]))
            fit++;
        if (fit == n) {
            *out = order[s];
            return SK_OK;
        }
    }
    return FAIL(t, err, NO_COMMON_INTEGER);
}

sk_status trace_node(struct trace *t, struct tv v, uint32_t *out, sk_error *err)
{
    if (v.kind == TV_VALUE) {
        *out = v.id;
        return SK_OK;
    }
    enum scalar s;
    TRY(trace_weak_type(t, 1, &v, &s, err));
    return trace_weak(t, v, s, out, err);
}

/* ---- operands of one operation ------------------------------------------------------------------------------------- */

uint32_t trace_given(struct trace *t, enum op op, ir_type type, unsigned n, const uint32_t *in, uint64_t imm)
{
    bool constant = n > 0;
    for (unsigned k = 0; k < n; k++) {
        const uint16_t from = ir_at(t->m, in[k])->op;
        constant &= from == OP_CONST || from == OP_ZERO;
    }
    const uint32_t folded = constant ? ir_fold(t->m, op, type, n, in, 0, imm) : 0;
    return folded ? folded : ir_node(&t->b, op, type, n, in, 0, imm);
}

uint32_t trace_splat(struct trace *t, uint32_t id, unsigned width)
{
    if (width == 1)
        return id;
    return trace_given(t, OP_SPLAT, ir_type_vector((enum scalar)trace_node_type(t, id), width), 1, &id, 0);
}

/* The common scalar of two typed operands; S_VOID: their signs differ and that matters. */
static enum scalar merge(enum scalar a, enum scalar b, unsigned mix)
{
    if (a == b || b == S_VOID)
        return a;
    if (a == S_VOID)
        return b;
    const unsigned ca = class_of(a), cb = class_of(b);
    if (ca == CLASS_F || cb == CLASS_F)
        return ca != CLASS_F ? b : cb != CLASS_F ? a : S_F32;
    if (ca == CLASS_B || cb == CLASS_B) {
        const enum scalar other = ca == CLASS_B ? b : a;
        return (mix & MIX_PROMOTE) && scalar_info[other].bits < 32 ? S_I32 : other;
    }
    const enum scalar wide = scalar_info[a].bits >= scalar_info[b].bits ? a : b, narrow = wide == a ? b : a;
    if (ca == cb || (class_of(wide) == CLASS_S && scalar_info[wide].bits > scalar_info[narrow].bits))
        return wide;
    if (mix & MIX_SIGN)
        return S_VOID;
    return ca == CLASS_U ? a : b;
}

static sk_status merge_typed(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v,
                             enum scalar *scalar, unsigned *width, sk_error *err)
{
    enum scalar s = S_VOID;
    unsigned w = 1;
    for (unsigned k = 0; k < n; k++) {
        if (v[k].kind != TV_VALUE)
            continue;
        const ir_type type = trace_node_type(t, v[k].id);
        const enum scalar sk = ir_type_scalar(type);
        const unsigned wk = ir_type_width(type);
        if (SK_UNLIKELY(wk == 0))
            return FAIL(t, err, NOT_A_NUMBER, what, trace_type_text(t, type).at);
        if (SK_UNLIKELY(wk > 1 && w > 1 && wk != w))
            return FAIL(t, err, VECTOR_WIDTHS, what, w, wk);
        w = wk > w ? wk : w;
        const enum scalar both = merge(s, sk, mix);
        if (SK_UNLIKELY(both == S_VOID))
            return FAIL(t, err, MIXED_SIGNS, what, scalar_info[s].name, scalar_info[sk].name);
        s = both;
    }
    *scalar = s;
    *width = w;
    return SK_OK;
}

static sk_status common(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v,
                        enum scalar *scalar, unsigned *width, sk_error *err)
{
    enum scalar s = S_VOID;
    TRY(merge_typed(t, mix, what, n, v, &s, width, err));
    if (s == S_VOID) {
        TRY(trace_weak_type(t, n, v, &s, err));
    } else if (class_of(s) != CLASS_F) {
        bool weak_float = false, weak_int = false;
        for (unsigned k = 0; k < n; k++) {
            weak_float |= v[k].kind == TV_FLOAT;
            weak_int |= v[k].kind == TV_INT;
        }
        if (weak_float)
            s = S_F32;
        else if (weak_int && s == S_BOOL && (mix & (MIX_COMPARE | MIX_NUMBER)))
            s = S_I32;
    }
    if ((mix & MIX_NUMBER) && s == S_BOOL)
        s = S_I32;
    if ((mix & MIX_FLOAT) && class_of(s) != CLASS_F)
        s = S_F32;
    *scalar = s;
    return SK_OK;
}

sk_status trace_common(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v, ir_type *type,
                       sk_error *err)
{
    enum scalar s = S_VOID;
    unsigned width = 1;
    TRY(common(t, mix, what, n, v, &s, &width, err));
    for (unsigned k = 0; k < n; k++)
        if (v[k].kind != TV_VALUE && !trace_weak_fits(v[k], s))
            return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v[k]).at, scalar_info[s].name);
    *type = ir_type_vector(s, width);
    return SK_OK;
}

uint32_t trace_coerce(struct trace *t, struct tv v, ir_type type)
{
    const enum scalar s = ir_type_scalar(type);
    if (v.kind == TV_VALUE && trace_node_type(t, v.id) == type)
        return v.id;
    const uint32_t id =
        v.kind != TV_VALUE ? weak_const(t, v, s) : ir_convert(&t->b, ir_type_with(trace_node_type(t, v.id), s), v.id);
    return ir_type_width(trace_node_type(t, id)) == ir_type_width(type) ? id : trace_splat(t, id, ir_type_width(type));
}

sk_status trace_mix(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v, uint32_t *out,
                    ir_type *type, sk_error *err)
{
    TRY(trace_common(t, mix, what, n, v, type, err));
    for (unsigned k = 0; k < n; k++)
        out[k] = trace_coerce(t, v[k], *type);
    return SK_OK;
}

/* ---- one operand to one type --------------------------------------------------------------------------------------- */

static bool converts(enum scalar from, enum scalar to)
{
    const unsigned cf = class_of(from), ct = class_of(to);
    if (from == to || cf == CLASS_B || (ct == CLASS_F && cf != CLASS_B))
        return true;
    return cf != CLASS_F && (ct & CLASS_SU) && scalar_info[to].bits >= scalar_info[from].bits;
}

sk_status trace_implicit_node(struct trace *t, struct tv v, ir_type to, const char *what, uint32_t *out, sk_error *err)
{
    const enum scalar s = ir_type_scalar(to);
    const unsigned width = ir_type_width(to);
    if (v.kind != TV_VALUE) {
        if (width == 0 && v.kind == TV_INT && v.magnitude == 0 && to != TYPE_VOID && !ir_type_is_pointer(to)) {
            *out = ir_zero(t->m, to);
            return SK_OK;
        }
        if (width == 0 || (v.kind == TV_FLOAT && class_of(s) != CLASS_F))
            return FAIL(t, err, NEEDS_CAST, what, trace_type_text(t, to).at,
                        v.kind == TV_FLOAT ? "a float" : "a number");
        TRY(trace_weak(t, v, s, out, err));
        *out = trace_splat(t, *out, width);
        return SK_OK;
    }
    const ir_type from = trace_node_type(t, v.id);
    if (from == to) {
        *out = v.id;
        return SK_OK;
    }
    const unsigned from_width = ir_type_width(from);
    if (width == 0 || (from_width != 1 && from_width != width) || !converts(ir_type_scalar(from), s))
        return FAIL(t, err, NEEDS_CAST, what, trace_type_text(t, to).at, trace_type_text(t, from).at);
    *out = ir_convert(&t->b, ir_type_vector(s, from_width), v.id);
    if (from_width != width)
        *out = trace_splat(t, *out, width);
    return SK_OK;
}

sk_status trace_implicit(struct trace *t, struct tv v, ir_type to, const char *what, struct tv *out, sk_error *err)
{
    uint32_t id;
    TRY(trace_use(t, v, &v, err));
    TRY(trace_implicit_node(t, v, to, what, &id, err));
    *out = trace_value(t, id);
    return SK_OK;
}

sk_status trace_condition(struct trace *t, struct tv v, bool vector, uint32_t *out, sk_error *err)
{
    if (v.kind != TV_VALUE) {
        const bool truth = v.kind == TV_FLOAT ? v.f < 0 || v.f > 0 || isnan(v.f) : v.magnitude != 0;
        *out = ir_const(t->m, TYPE_BOOL, truth);
        return SK_OK;
    }
    const ir_type type = trace_node_type(t, v.id);
    const unsigned width = ir_type_width(type);
    if (width == 0 || (width > 1 && !vector))
        return FAIL(t, err, NOT_A_CONDITION, trace_type_text(t, type).at);
    *out = ir_type_scalar(type) == S_BOOL ? v.id : ir_op2(&t->b, OP_NE, v.id, ir_zero(t->m, type));
    return SK_OK;
}

sk_status trace_integer(struct trace *t, struct tv v, const char *what, uint32_t *out, sk_error *err)
{
    if (v.kind == TV_INT) {
        for (enum scalar s = S_I32; s <= S_U64; s = (enum scalar)(s + 1)) {
            if (!trace_weak_fits(v, s))
                continue;
            *out = weak_const(t, v, s);
            return SK_OK;
        }
        return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v).at, "an integer of 64 bits");
    }
    if (v.kind != TV_VALUE)
        return FAIL(t, err, NOT_AN_INTEGER, what, v.kind == TV_FLOAT ? "a float" : "a bool");
    const ir_type type = trace_node_type(t, v.id);
    if (ir_type_width(type) != 1 || !(ir_type_class(t->m, type) & CLASS_SU))
        return FAIL(t, err, NOT_AN_INTEGER, what, trace_type_text(t, type).at);
    *out = v.id;
    return SK_OK;
}

/* ---- sk.cast, as_type, snapshots ----------------------------------------------------------------------------------- */

/* A plain number cast to an integer type loses its fraction, and may have the bits of the other sign (-1 as u32), but it
 * must be a number that the bits can hold. */
static sk_status cast_weak(struct trace *t, struct tv v, enum scalar s, uint32_t *out, sk_error *err)
{
    if (class_of(s) == CLASS_B)
        return trace_condition(t, v, false, out, err);
    if (class_of(s) == CLASS_F)
        return trace_weak(t, v, s, out, err);
    struct tv whole = v;
    if (v.kind == TV_FLOAT) {
        const double x = trunc(v.f);
        if (!(fabs(x) < 18446744073709551616.0))
            return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v).at, scalar_info[s].name);
        whole = (struct tv){.kind = TV_INT, .negative = x < 0, .magnitude = (uint64_t)fabs(x)};
    }
    const enum scalar twin = (enum scalar)(class_of(s) == CLASS_S ? s + 1 : s - 1);
    if (!trace_weak_fits(whole, s) && (v.kind == TV_FLOAT || !trace_weak_fits(whole, twin)))
        return FAIL(t, err, DOES_NOT_FIT, trace_weak_text(v).at, scalar_info[s].name);
    *out = weak_const(t, whole, s);
    return SK_OK;
}
_Static_assert(S_U8 == S_I8 + 1 && S_U16 == S_I16 + 1 && S_U32 == S_I32 + 1 && S_U64 == S_I64 + 1,
               "twins are neighbours");

sk_status trace_cast(struct trace *t, struct tv v, ir_type to, struct tv *out, sk_error *err)
{
    const enum scalar s = ir_type_scalar(to);
    const unsigned width = ir_type_width(to);
    uint32_t id;
    TRY(trace_use(t, v, &v, err));
    if (width == 0)
        return FAIL(t, err, CANNOT_CAST, "a value", trace_type_text(t, to).at);
    if (v.kind != TV_VALUE) {
        TRY(cast_weak(t, v, s, &id, err));
        *out = trace_value(t, trace_splat(t, id, width));
        return SK_OK;
    }
    const ir_type from = trace_node_type(t, v.id);
    const unsigned from_width = ir_type_width(from);
    if (from_width == 0 || (from_width != 1 && from_width != width))
        return FAIL(t, err, CANNOT_CAST, trace_type_text(t, from).at, trace_type_text(t, to).at);
    id = ir_convert(&t->b, ir_type_vector(s, from_width), v.id);
    *out = trace_value(t, from_width == width ? id : trace_splat(t, id, width));
    return SK_OK;
}

sk_status trace_bitcast(struct trace *t, struct tv v, ir_type to, struct tv *out, sk_error *err)
{
    uint32_t id;
    TRY(trace_use(t, v, &v, err));
    TRY(trace_node(t, v, &id, err));
    const ir_type from = trace_node_type(t, id);
    const enum scalar sf = ir_type_scalar(from), st = ir_type_scalar(to);
    const unsigned bits_from = scalar_info[sf].bytes * ir_type_width(from);
    const unsigned bits_to = scalar_info[st].bytes * ir_type_width(to);
    if (bits_from == 0 || bits_from != bits_to || sf == S_BOOL || st == S_BOOL)
        return FAIL(t, err, CANNOT_BITCAST, trace_type_text(t, from).at, trace_type_text(t, to).at);
    *out = trace_value(t, from == to ? id : trace_given(t, OP_BITCAST, to, 1, &id, 0));
    return SK_OK;
}

sk_status trace_snapshot(struct trace *t, struct tv v, struct tv *out, sk_error *err)
{
    return trace_use(t, v, out, err);
}
