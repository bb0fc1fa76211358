/* emit.c - LLVM IR as text, see emit.h. */
#include "cpu/emit.h"

#include <stdio.h>

static const struct {
    const char *name, *suffix; /* suffix: in the names of overloaded intrinsics */
    uint8_t bits;
} elem_info[E_COUNT] = {
    [E_I1] = {"i1", "i1", 1},       [E_I8] = {"i8", "i8", 8},        [E_I16] = {"i16", "i16", 16},
    [E_I32] = {"i32", "i32", 32},   [E_I64] = {"i64", "i64", 64},    [E_F16] = {"half", "f16", 16},
    [E_F32] = {"float", "f32", 32}, [E_F64] = {"double", "f64", 64}, [E_PTR] = {"ptr", "p0", 64},
};

struct emit_outer { /* what emit_begin puts aside */
    struct buf entry, body;
    VEC(struct splat) splats;
    bool open;
    struct emit_outer *outer;
};

unsigned elem_bits(enum elem t)
{
    return elem_info[t].bits;
}

static uint64_t masked(enum elem t, uint64_t bits)
{
    return elem_bits(t) == 64 ? bits : bits & (((uint64_t)1 << elem_bits(t)) - 1);
}

static bool is_integer(enum elem t)
{
    return t <= E_I64;
}

/* ---- the module ------------------------------------------------------------------------------------------------- */

void emit_init(struct emit *e, struct mem *mem, unsigned width)
{
    *e = (struct emit){.mem = mem, .width = width, .next = 1};
    buf_init(&e->head, mem);
    buf_init(&e->entry, mem);
    buf_init(&e->body, mem);
    buf_init(&e->decl, mem);
    strtab_init(&e->declared, mem);
}

void emit_free(struct emit *e)
{
    buf_free(&e->head);
    buf_free(&e->entry);
    buf_free(&e->body);
    buf_free(&e->decl);
    strtab_free(&e->declared);
    VEC_FREE(e->mem, &e->splats);
}

void emit_begin(struct emit *e, const char *head, ...)
{
    struct emit_outer *const o = mem_zalloc(e->mem, sizeof *o);
    o->entry = e->entry;
    o->body = e->body;
    o->splats.at = e->splats.at;
    o->splats.n = e->splats.n;
    o->splats.cap = e->splats.cap;
    o->open = e->open;
    o->outer = e->outer;
    e->outer = o;
    buf_init(&e->entry, e->mem);
    buf_init(&e->body, e->mem);
    e->splats.at = NULL;
    e->splats.n = e->splats.cap = 0;
    char text[512];
    va_list args;
    va_start(args, head);
    (void)vsnprintf(text, sizeof text, head, args);
    va_end(args);
    buf_fmt(&e->entry, "define %s {\nentry:\n", text);
    e->open = true;
}

void emit_end(struct emit *e)
{
    struct emit_outer *const o = e->outer;
    buf_bytes(&e->head, e->entry.at, e->entry.n);
    buf_str(&e->head, "  br label %start\nstart:\n");
    buf_bytes(&e->head, buf_text(&e->body), e->body.n);
    buf_str(&e->head, "}\n\n");
    buf_free(&e->entry);
    buf_free(&e->body);
    VEC_FREE(e->mem, &e->splats);
    e->entry = o->entry;
    e->body = o->body;
    e->splats.at = o->splats.at;
    e->splats.n = o->splats.n;
    e->splats.cap = o->splats.cap;
    e->open = o->open;
    e->outer = o->outer;
    mem_free(e->mem, o, sizeof *o);
}

void emit_text(struct emit *e, struct buf *out)
{
    buf_bytes(out, buf_text(&e->decl), e->decl.n);
    buf_char(out, '\n');
    buf_bytes(out, buf_text(&e->head), e->head.n);
    buf_str(out, "attributes #0 = { nounwind \"no-builtins\" \"prefer-vector-width\"=\"512\" }\n"
                 "attributes #2 = { cold nounwind }\n"
                 "attributes #1 = { alwaysinline nounwind \"no-builtins\" \"prefer-vector-width\"=\"512\" }\n"
                 "!0 = !{!\"branch_weights\", i32 2000, i32 1}\n!1 = !{!\"branch_weights\", i32 1, i32 2000}\n");
}

void e_line(struct emit *e, const char *fmt, ...)
{
    char small[256];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    buf_str(&e->body, "  ");
    if (n >= 0 && (size_t)n < sizeof small) {
        buf_bytes(&e->body, small, (size_t)n);
    } else {
        const size_t size = (size_t)n + 1;
        char *const large = mem_alloc(e->mem, size);
        va_start(args, fmt);
        (void)vsnprintf(large, size, fmt, args);
        va_end(args);
        buf_bytes(&e->body, large, (size_t)n);
        mem_free(e->mem, large, size);
    }
    buf_char(&e->body, '\n');
}

void e_declare(struct emit *e, const char *line)
{
    const uint32_t n = e->declared.str.n;
    (void)strtab_id(&e->declared, line, strlen(line));
    if (e->declared.str.n == n)
        return;
    buf_fmt(&e->decl, "declare %s\n", line);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

struct val e_const(enum elem t, uint64_t bits)
{
    return (struct val){.shape = V_CONST, .elem = (uint8_t)t, .bits = masked(t, bits)};
}

struct val e_f32(float x)
{
    return e_const(E_F32, bits_f32(x));
}

struct val e_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return e_const(E_F64, bits);
}

struct val e_linear(struct val base, int64_t stride)
{
    if (stride == 0)
        return base;
    if (base.shape == V_CONST)
        return (struct val){.shape = V_LINEAR, .elem = base.elem, .bits = base.bits, .stride = stride};
    return (struct val){.shape = V_LINEAR, .elem = base.elem, .id = base.id, .stride = stride};
}

struct val e_base(struct val a)
{
    if (a.shape != V_LINEAR)
        return a;
    if (a.id)
        return (struct val){.shape = V_UNIFORM, .elem = a.elem, .id = a.id};
    return e_const((enum elem)a.elem, a.bits);
}

uint32_t e_id(struct emit *e)
{
    return e->next++;
}

struct val e_named(enum elem t, bool varying, uint32_t id)
{
    return (struct val){.shape = varying ? V_VARYING : V_UNIFORM, .elem = (uint8_t)t, .id = id};
}

const char *e_type_name(const struct emit *e, enum elem t, bool varying, char out[24])
{
    if (varying)
        (void)snprintf(out, 24, "<%u x %s>", e->width, elem_info[t].name);
    else
        (void)snprintf(out, 24, "%s", elem_info[t].name);
    return out;
}

static void number(struct buf *to, enum elem t, uint64_t bits)
{
    switch (t) {
    case E_I1: buf_str(to, bits ? "true" : "false"); return;
    case E_I8:
    case E_I16:
    case E_I32:
    case E_I64: {
        const unsigned unused = 64 - elem_bits(t);
        buf_fmt(to, "%lld", (long long)((int64_t)(bits << unused) >> unused));
        return;
    }
    case E_F16: buf_fmt(to, "0xH%04X", (unsigned)bits); return;
    case E_F32: {
        const float x = f32_bits((uint32_t)bits);
        const double wide = (double)x;
        uint64_t image;
        memcpy(&image, &wide, sizeof image);
        if (x != x) /* the hexadecimal form would lose what kind of NaN it is */
            buf_fmt(to, "bitcast (i32 %d to float)", (int)(int32_t)(uint32_t)bits);
        else
            buf_fmt(to, "0x%016llX", (unsigned long long)image);
        return;
    }
    case E_F64: buf_fmt(to, "0x%016llX", (unsigned long long)bits); return;
    case E_PTR: buf_str(to, "null"); return;
    case E_COUNT: return;
    }
}

void e_operand(struct emit *e, struct buf *to, struct val a)
{
    (void)e;
    if (a.shape == V_CONST)
        number(to, (enum elem)a.elem, a.bits);
    else
        buf_fmt(to, "%%v%u", a.id);
}

static struct val define(struct emit *e, enum elem t, bool varying)
{
    const struct val v = e_named(t, varying, e_id(e));
    buf_fmt(&e->body, "  %%v%u = ", v.id);
    return v;
}

static void type_to(const struct emit *e, struct buf *to, enum elem t, bool varying)
{
    char name[24];
    buf_str(to, e_type_name(e, t, varying, name));
}

/* "type operand" */
static void typed(struct emit *e, struct val a)
{
    type_to(e, &e->body, (enum elem)a.elem, a.shape == V_VARYING);
    buf_char(&e->body, ' ');
    e_operand(e, &e->body, a);
}

static void end_line(struct emit *e)
{
    buf_char(&e->body, '\n');
}

static void splat_lines(struct emit *e, struct buf *to, struct val a, uint32_t id)
{
    char scalar[24], vector[24];
    (void)e_type_name(e, (enum elem)a.elem, false, scalar);
    (void)e_type_name(e, (enum elem)a.elem, true, vector);
    const uint32_t one = e_id(e);
    buf_fmt(to, "  %%v%u = insertelement %s poison, %s ", one, vector, scalar);
    e_operand(e, to, a);
    buf_fmt(to, ", i64 0\n  %%v%u = shufflevector %s %%v%u, %s poison, <%u x i32> zeroinitializer\n", id, vector, one,
            vector, e->width);
}

/* base + lane * stride, of constants */
static void ramp_line(struct emit *e, struct buf *to, struct val a, uint32_t id)
{
    char vector[24];
    (void)e_type_name(e, (enum elem)a.elem, true, vector);
    buf_fmt(to, "  %%v%u = add %s zeroinitializer, <", id, vector);
    for (unsigned l = 0; l < e->width; l++) {
        buf_fmt(to, "%s%s ", l ? ", " : "", elem_info[a.elem].name);
        number(to, (enum elem)a.elem, masked((enum elem)a.elem, a.bits + l * (uint64_t)a.stride));
    }
    buf_str(to, ">\n");
}

/* A vector of constants, written once in the entry block. */
static struct val constant_vector(struct emit *e, struct val a)
{
    for (uint32_t k = e->splats.n; k-- > 0;) {
        const struct splat *const s = &e->splats.at[k];
        if (s->from.shape == a.shape && s->from.elem == a.elem && s->from.bits == a.bits && s->from.stride == a.stride)
            return s->to;
    }
    const struct splat s = {a, e_named((enum elem)a.elem, true, e_id(e))};
    if (a.shape == V_CONST)
        splat_lines(e, &e->entry, a, s.to.id);
    else
        ramp_line(e, &e->entry, a, s.to.id);
    VEC_PUSH(e->mem, &e->splats, s);
    return s.to;
}

struct val e_ramp(struct emit *e, enum elem t, uint64_t step)
{
    return constant_vector(e, (struct val){.shape = V_LINEAR, .elem = (uint8_t)t, .stride = (int64_t)step});
}

struct val e_vary(struct emit *e, struct val a)
{
    switch ((enum val_shape)a.shape) {
    case V_VARYING:
    case V_NONE: return a;
    case V_CONST: return constant_vector(e, a);
    case V_UNIFORM: {
        const struct val v = e_named((enum elem)a.elem, true, e_id(e));
        splat_lines(e, &e->body, a, v.id);
        return v;
    }
    case V_LINEAR:
        if (!a.id)
            return constant_vector(e, a);
        return e_bin(e, "add", e_vary(e, e_base(a)), e_ramp(e, (enum elem)a.elem, (uint64_t)a.stride));
    }
    return a;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static bool varies(struct val a)
{
    return a.shape == V_VARYING || a.shape == V_LINEAR;
}

static bool fold(const char *op, enum elem t, uint64_t a, uint64_t b, uint64_t *r)
{
    if (!is_integer(t))
        return false;
    if (strcmp(op, "add") == 0)
        *r = a + b;
    else if (strcmp(op, "sub") == 0)
        *r = a - b;
    else if (strcmp(op, "mul") == 0)
        *r = a * b;
    else if (strcmp(op, "and") == 0)
        *r = a & b;
    else if (strcmp(op, "or") == 0)
        *r = a | b;
    else if (strcmp(op, "xor") == 0)
        *r = a ^ b;
    else if (strcmp(op, "shl") == 0 && b < elem_bits(t))
        *r = a << b;
    else if (strcmp(op, "lshr") == 0 && b < elem_bits(t))
        *r = a >> b;
    else
        return false;
    return true;
}

/* Sums and multiples of linear values stay linear; V_NONE: this one does not. */
static struct val linear(struct emit *e, const char *op, struct val a, struct val b)
{
    const struct val none = {0};
    if (a.shape == V_VARYING || b.shape == V_VARYING || (a.shape != V_LINEAR && b.shape != V_LINEAR))
        return none;
    if (strcmp(op, "add") == 0)
        return e_linear(e_bin(e, op, e_base(a), e_base(b)), (int64_t)((uint64_t)a.stride + (uint64_t)b.stride));
    if (strcmp(op, "sub") == 0)
        return e_linear(e_bin(e, op, e_base(a), e_base(b)), (int64_t)((uint64_t)a.stride - (uint64_t)b.stride));
    if (strcmp(op, "mul") == 0 && a.shape == V_CONST)
        return e_linear(e_bin(e, op, a, e_base(b)), (int64_t)(a.bits * (uint64_t)b.stride));
    if (strcmp(op, "mul") == 0 && b.shape == V_CONST)
        return e_linear(e_bin(e, op, e_base(a), b), (int64_t)((uint64_t)a.stride * b.bits));
    if (strcmp(op, "shl") == 0 && b.shape == V_CONST && b.bits < elem_bits((enum elem)a.elem))
        return e_linear(e_bin(e, op, e_base(a), b), (int64_t)((uint64_t)a.stride << b.bits));
    return none;
}

struct val e_bin(struct emit *e, const char *op, struct val a, struct val b)
{
    const enum elem t = (enum elem)a.elem;
    uint64_t bits;
    if (a.shape == V_CONST && b.shape == V_CONST && fold(op, t, a.bits, b.bits, &bits))
        return e_const(t, bits);
    if (is_integer(t) && e_is(b, 0) && (strcmp(op, "add") == 0 || strcmp(op, "sub") == 0 || strcmp(op, "or") == 0))
        return a;
    if (is_integer(t) && e_is(a, 0) && (strcmp(op, "add") == 0 || strcmp(op, "or") == 0))
        return b;
    if (strcmp(op, "mul") == 0 && e_is(b, 1))
        return a;
    if (strcmp(op, "mul") == 0 && e_is(a, 1))
        return b;
    const struct val l = linear(e, op, a, b);
    if (l.shape != V_NONE)
        return l;
    const bool v = varies(a) || varies(b);
    if (v) {
        a = e_vary(e, a);
        b = e_vary(e, b);
    }
    const struct val r = define(e, t, v);
    buf_fmt(&e->body, "%s ", op);
    typed(e, a);
    buf_str(&e->body, ", ");
    e_operand(e, &e->body, b);
    end_line(e);
    return r;
}

struct val e_cmp(struct emit *e, const char *op, struct val a, struct val b)
{
    const bool v = varies(a) || varies(b);
    if (v) {
        a = e_vary(e, a);
        b = e_vary(e, b);
    }
    const struct val r = define(e, E_I1, v);
    buf_fmt(&e->body, "%s ", op);
    typed(e, a);
    buf_str(&e->body, ", ");
    e_operand(e, &e->body, b);
    end_line(e);
    return r;
}

static bool same(struct val a, struct val b)
{
    return a.shape == b.shape && a.elem == b.elem && a.id == b.id && a.bits == b.bits && a.stride == b.stride;
}

struct val e_select(struct emit *e, struct val c, struct val a, struct val b)
{
    if (c.shape == V_CONST)
        return c.bits ? a : b;
    if (same(a, b))
        return a;
    const bool v = varies(c) || varies(a) || varies(b);
    if (v) {
        a = e_vary(e, a);
        b = e_vary(e, b);
        c = c.shape == V_UNIFORM ? c : e_vary(e, c);
    }
    const struct val r = define(e, (enum elem)a.elem, v);
    buf_str(&e->body, "select ");
    typed(e, c);
    buf_str(&e->body, ", ");
    typed(e, a);
    buf_str(&e->body, ", ");
    typed(e, b);
    end_line(e);
    return r;
}

struct val e_cast(struct emit *e, const char *op, struct val a, enum elem to)
{
    const unsigned bits = elem_bits((enum elem)a.elem);
    if ((enum elem)a.elem == to)
        return a;
    if (strcmp(op, "trunc") == 0 && a.shape == V_LINEAR)
        return e_linear(e_cast(e, op, e_base(a), to), a.stride);
    if (a.shape == V_CONST) {
        if (strcmp(op, "zext") == 0 || strcmp(op, "trunc") == 0 || (strcmp(op, "bitcast") == 0 && to != E_PTR))
            return e_const(to, a.bits);
        if (strcmp(op, "sext") == 0)
            return e_const(to, (uint64_t)((int64_t)(a.bits << (64 - bits)) >> (64 - bits)));
    }
    const bool v = varies(a);
    if (v)
        a = e_vary(e, a);
    const struct val r = define(e, to, v);
    buf_fmt(&e->body, "%s ", op);
    typed(e, a);
    buf_str(&e->body, " to ");
    type_to(e, &e->body, to, v);
    end_line(e);
    return r;
}

struct val e_neg(struct emit *e, struct val a)
{
    if (varies(a))
        a = e_vary(e, a);
    const struct val r = define(e, (enum elem)a.elem, a.shape == V_VARYING);
    buf_str(&e->body, "fneg ");
    typed(e, a);
    end_line(e);
    return r;
}

#define MAX_OPERANDS 8u

/* Operands in one shape: varying if one is. */
static bool align(struct emit *e, unsigned n, const struct val *in, struct val out[MAX_OPERANDS])
{
    bool v = false;
    for (unsigned k = 0; k < n; k++)
        v = v || varies(in[k]);
    for (unsigned k = 0; k < n; k++)
        out[k] = v ? e_vary(e, in[k]) : in[k];
    return v;
}

static struct val call(struct emit *e, const char *name, enum elem to, bool v, unsigned n, const struct val *in)
{
    const struct val r = define(e, to, v);
    buf_str(&e->body, "call ");
    type_to(e, &e->body, to, v);
    buf_fmt(&e->body, " @%s(", name);
    for (unsigned k = 0; k < n; k++) {
        if (k)
            buf_str(&e->body, ", ");
        typed(e, in[k]);
    }
    buf_str(&e->body, ")\n");
    return r;
}

struct val e_intrinsic(struct emit *e, const char *name, enum elem to, unsigned n, const struct val *in)
{
    struct val args[MAX_OPERANDS];
    const bool v = align(e, n, in, args);
    for (unsigned k = 0; k < n && to != E_I1; k++) /* flags are immediates, in vectors too */
        if (in[k].elem == E_I1 && in[k].shape == V_CONST)
            args[k] = in[k];
    char full[96], line[512], type[24];
    if (v)
        (void)snprintf(full, sizeof full, "%s.v%u%s", name, e->width, elem_info[to].suffix);
    else
        (void)snprintf(full, sizeof full, "%s.%s", name, elem_info[to].suffix);
    size_t at = (size_t)snprintf(line, sizeof line, "%s @%s(", e_type_name(e, to, v, type), full);
    for (unsigned k = 0; k < n; k++)
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", k ? ", " : "",
                               e_type_name(e, (enum elem)args[k].elem, varies(args[k]), type));
    (void)snprintf(line + at, sizeof line - at, ")");
    e_declare(e, line);
    return call(e, full, to, v, n, args);
}

struct val e_call(struct emit *e, const char *name, enum elem to, unsigned n, const struct val *in)
{
    struct val args[MAX_OPERANDS];
    const bool v = align(e, n, in, args);
    char full[96];
    (void)snprintf(full, sizeof full, "%s.%c", name, v ? 'v' : 'u');
    return call(e, full, to, v, n, args);
}

struct val e_gep(struct emit *e, struct val base, struct val offset)
{
    if (e_is(offset, 0))
        return base;
    const struct val r = define(e, E_PTR, false);
    buf_str(&e->body, "getelementptr i8, ");
    typed(e, base);
    buf_str(&e->body, ", ");
    typed(e, offset);
    end_line(e);
    return r;
}

struct val e_lane(struct emit *e, struct val a, struct val l)
{
    if (a.shape == V_LINEAR) {
        const enum elem t = (enum elem)a.elem;
        const char *const cast = elem_bits(t) > 32 ? "zext" : "trunc";
        return e_bin(e, "add", e_base(a), e_bin(e, "mul", e_cast(e, cast, l, t), e_const(t, (uint64_t)a.stride)));
    }
    if (a.shape != V_VARYING)
        return a;
    const struct val r = define(e, (enum elem)a.elem, false);
    buf_str(&e->body, "extractelement ");
    typed(e, a);
    buf_str(&e->body, ", ");
    typed(e, l);
    end_line(e);
    return r;
}

struct val e_with_lane(struct emit *e, struct val a, struct val l, struct val x)
{
    a = e_vary(e, a);
    const struct val r = define(e, (enum elem)a.elem, true);
    buf_str(&e->body, "insertelement ");
    typed(e, a);
    buf_str(&e->body, ", ");
    typed(e, x);
    buf_str(&e->body, ", ");
    typed(e, l);
    end_line(e);
    return r;
}

struct val e_permute(struct emit *e, struct val a, const int *lane)
{
    if (!varies(a))
        return a;
    a = e_vary(e, a);
    char vector[24];
    (void)e_type_name(e, (enum elem)a.elem, true, vector);
    const struct val r = define(e, (enum elem)a.elem, true);
    buf_fmt(&e->body, "shufflevector %s %%v%u, %s poison, <%u x i32> <", vector, a.id, vector, e->width);
    for (unsigned l = 0; l < e->width; l++)
        buf_fmt(&e->body, "%si32 %d", l ? ", " : "", lane[l] < 0 ? 0 : lane[l]);
    buf_str(&e->body, ">\n");
    return r;
}

struct val e_bits(struct emit *e, struct val mask)
{
    if (mask.shape == V_CONST)
        return e_i32(!mask.bits ? 0 : e->width == 32 ? UINT32_MAX : ((uint32_t)1 << e->width) - 1);
    mask = e_vary(e, mask);
    const uint32_t whole = e_id(e);
    e_line(e, "%%v%u = bitcast <%u x i1> %%v%u to i%u", whole, e->width, mask.id, e->width);
    if (e->width == 32)
        return e_named(E_I32, false, whole);
    const uint32_t wide = e_id(e);
    e_line(e, "%%v%u = zext i%u %%v%u to i32", wide, e->width, whole);
    return e_named(E_I32, false, wide);
}

struct val e_from_bits(struct emit *e, struct val bits)
{
    const struct val wide = e_cast(e, "zext", bits, E_I64);
    const uint32_t narrow = e_id(e);
    buf_fmt(&e->body, "  %%v%u = trunc i64 ", narrow);
    e_operand(e, &e->body, wide);
    buf_fmt(&e->body, " to i%u\n", e->width);
    const struct val r = e_named(E_I1, true, e_id(e));
    e_line(e, "%%v%u = bitcast i%u %%v%u to <%u x i1>", r.id, e->width, narrow, e->width);
    return r;
}

struct val e_any(struct emit *e, struct val mask)
{
    if (!varies(mask))
        return mask;
    return e_cmp(e, "icmp ne", e_bits(e, mask), e_i32(0));
}

struct val e_all(struct emit *e, struct val mask)
{
    if (!varies(mask))
        return mask;
    return e_cmp(e, "icmp eq", e_bits(e, mask), e_bits(e, e_true()));
}

struct val e_and(struct emit *e, struct val a, struct val b)
{
    const uint64_t ones = masked((enum elem)a.elem, UINT64_MAX);
    if (e_is(a, ones) || e_is(b, 0))
        return b;
    if (e_is(b, ones) || e_is(a, 0))
        return a;
    return same(a, b) ? a : e_bin(e, "and", a, b);
}

struct val e_or(struct emit *e, struct val a, struct val b)
{
    const uint64_t ones = masked((enum elem)a.elem, UINT64_MAX);
    if (e_is(a, 0) || e_is(b, ones))
        return b;
    if (e_is(b, 0) || e_is(a, ones))
        return a;
    return same(a, b) ? a : e_bin(e, "or", a, b);
}

struct val e_not(struct emit *e, struct val a)
{
    return e_bin(e, "xor", a, e_const((enum elem)a.elem, UINT64_MAX));
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

struct slot e_slot(struct emit *e, enum elem t, bool varying)
{
    const struct slot s = {e_id(e), (uint8_t)t, varying};
    char type[24];
    (void)e_type_name(e, t, varying, type);
    buf_fmt(&e->entry, "  %%v%u = alloca %s\n  store %s zeroinitializer, ptr %%v%u\n", s.id, type, type, s.id);
    return s;
}

struct val e_get(struct emit *e, struct slot s)
{
    const struct val r = define(e, (enum elem)s.elem, s.varying);
    buf_str(&e->body, "load ");
    type_to(e, &e->body, (enum elem)s.elem, s.varying);
    buf_fmt(&e->body, ", ptr %%v%u\n", s.id);
    return r;
}

void e_put(struct emit *e, struct slot s, struct val a)
{
    if (s.varying)
        a = e_vary(e, a);
    buf_str(&e->body, "  store ");
    typed(e, a);
    buf_fmt(&e->body, ", ptr %%v%u\n", s.id);
}

uint32_t e_room(struct emit *e, uint64_t bytes)
{
    const uint32_t id = e_id(e);
    buf_fmt(&e->entry, "  %%v%u = alloca [%llu x i8], align 64\n", id, (unsigned long long)bytes);
    return id;
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

uint32_t e_block(struct emit *e)
{
    return e_id(e);
}

void e_place(struct emit *e, uint32_t block)
{
    if (e->open)
        e_line(e, "br label %%b%u", block);
    buf_fmt(&e->body, "b%u:\n", block);
    e->open = true;
}

void e_jump(struct emit *e, uint32_t block)
{
    if (!e->open)
        return;
    e_line(e, "br label %%b%u", block);
    e->open = false;
}

void e_branch(struct emit *e, struct val c, uint32_t then, uint32_t otherwise, enum e_odds odds)
{
    if (!e->open)
        return;
    if (c.shape == V_CONST) {
        e_jump(e, c.bits ? then : otherwise);
        return;
    }
    static const char *const weights[] = {
        [ODDS_EVEN] = "", [ODDS_LIKELY] = ", !prof !0", [ODDS_UNLIKELY] = ", !prof !1"};
    e_line(e, "br i1 %%v%u, label %%b%u, label %%b%u%s", c.id, then, otherwise, weights[odds]);
    e->open = false;
}

void e_return(struct emit *e, const char *text)
{
    if (!e->open)
        return;
    e_line(e, "%s", text);
    e->open = false;
}
