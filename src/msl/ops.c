/* ops.c - maths, casts of bits, atomics, barriers and messages in Metal. */
#include "msl/msl_ops.h"

/* ---- maths ----------------------------------------------------------------------------------------------------- */

/* Metal's fast maths, on unless turned off, replaces these; precise::f is f as documented. The others are exact. */
static const char *prefix_of(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    const bool fast = p->m->funcs.at[p->func].fast;
    if (((x->flags & NODE_FAST) || fast) && math_info[x->op].fast)
        return "fast::";
    if (fast)
        return "";
    switch ((unsigned)x->op) {
    case OP_EXP:
    case OP_EXP2:
    case OP_LOG:
    case OP_LOG2:
    case OP_LOG10:
    case OP_SQRT:
    case OP_RSQRT:
    case OP_SIN:
    case OP_COS:
    case OP_TAN:
    case OP_ASIN:
    case OP_ACOS:
    case OP_ATAN:
    case OP_SINH:
    case OP_COSH:
    case OP_TANH:
    case OP_POW:
    case OP_FMOD:
    case OP_ATAN2: return "precise::";
    }
    return "";
}

/* `open`: a cast around each, of bfloat to float. */
static void put_args(struct clike *p, uint32_t id, const char *open, unsigned first, unsigned n)
{
    for (unsigned k = first; k < first + n; k++) {
        const uint32_t o = ir_in(p->m, id)[k];
        buf_str(p->b, k > first ? ", " : "");
        if (*open && ir_at(p->m, o)->op == OP_CONST) {
            clike_literal(p, S_F32, ir_at(p->m, o)->imm << 16, LITERAL_TYPED, PREC_ASSIGN);
            continue;
        }
        buf_str(p->b, open);
        clike_expr(p, o, PREC_ASSIGN);
        buf_str(p->b, *open ? ")" : "");
    }
}

/* clamp is undefined in Metal for lo > hi. */
static bool clamps_plainly(const struct clike *p, uint32_t id)
{
    const uint32_t lo = ir_in(p->m, id)[1], hi = ir_in(p->m, id)[2];
    const struct node *const a = ir_at(p->m, lo), *const b = ir_at(p->m, hi);
    if (ir_type_class(p->m, a->type) & CLASS_SU) {
        const struct range r = clike_range(p, lo), s = clike_range(p, hi);
        return !r.wide && !s.wide && r.hi <= s.lo;
    }
    return a->op == OP_CONST && b->op == OP_CONST &&
           ir_scalar_eval(OP_LE, (enum scalar)a->type, S_BOOL, 0, a->imm, b->imm, 0);
}

void msl_math(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = ir_at(p->m, id);
    const enum scalar s = ir_type_scalar(x->type);
    const bool is_float = scalar_info[s].class_ == CLASS_F;
    struct buf open;
    (void)prec;
    buf_init(&open, p->mem);
    if (s == S_BF16) { /* Metal's functions take no bfloat */
        struct buf *const to = p->b;
        p->b = &open;
        clike_type(p, ir_type_with(x->type, S_F32));
        buf_char(p->b, '(');
        p->b = to;
        clike_type(p, x->type);
        buf_char(p->b, '(');
    }
    const char *const prefix = s == S_F32 || s == S_BF16 ? prefix_of(p, id) : "";
    if (x->op == OP_CLAMP && !clamps_plainly(p, id)) {
        buf_str(p->b, is_float ? "fmin(fmax(" : "min(max(");
        put_args(p, id, buf_text(&open), 0, 2);
        buf_str(p->b, "), ");
        put_args(p, id, buf_text(&open), 2, 1);
    } else {
        buf_fmt(p->b, "%s%s(", prefix, op_info[x->op].msl);
        put_args(p, id, buf_text(&open), 0, x->n);
    }
    buf_str(p->b, s == S_BF16 ? "))" : ")");
    buf_free(&open);
}

void msl_bitcast(struct clike *p, uint32_t id, enum prec prec)
{
    const ir_type to = ir_at(p->m, id)->type, from = ir_at(p->m, ir_in(p->m, id)[0])->type;
    const bool integers = (ir_type_class(p->m, to) & CLASS_SU) && (ir_type_class(p->m, from) & CLASS_SU) &&
                          ir_type_width(to) == ir_type_width(from);
    (void)prec;
    buf_str(p->b, integers ? "" : "as_type<");
    clike_type(p, to);
    buf_str(p->b, integers ? "(" : ">(");
    clike_expr(p, ir_in(p->m, id)[0], PREC_LOWEST);
    buf_char(p->b, ')');
}

/* ---- atomics --------------------------------------------------------------------------------------------------- */

/* Metal has 32-bit integers in both memories, float in device memory with addition only, and of 64 bits an unsigned
 * minimum and maximum that return nothing. Float is otherwise emulated through its bits. */
const char *msl_atomic_type(struct clike *p, ir_type t)
{
    (void)p;
    return t == TYPE_I32   ? "atomic_int"
           : t == TYPE_U32 ? "atomic_uint"
           : t == TYPE_F32 ? "atomic_float"
           : t == TYPE_U64 ? "atomic_ulong"
                           : NULL;
}

static void put_place(struct clike *p, uint32_t pointer, ir_type t)
{
    const struct pointee want = {t, true};
    clike_pointer(p, pointer, want, false, PREC_ASSIGN);
}

static void put_space(struct clike *p, uint64_t extra)
{
    buf_fmt(p->b, "%s ", p->d->space[extra & 0xff]);
}

/* old = expected until the exchange succeeds or fails for good: Metal's may fail for no reason. */
static void write_cas(struct clike *p, const struct helper *h)
{
    const char *const t = clike_scalar(p, ir_type_scalar(h->type));
    buf_fmt(p->b, "%s%s %s(", p->d->helper, t, h->name);
    put_space(p, h->extra);
    buf_fmt(p->b, "%s *place, %s expected, %s desired) {\n    %s old = expected;\n", msl_atomic_type(p, h->type), t, t,
            t);
    buf_str(p->b, "    while (!atomic_compare_exchange_weak_explicit(place, &old, desired, memory_order_relaxed, "
                  "memory_order_relaxed) &&\n           old == expected) {\n    }\n    return old;\n}\n");
}

static void write_float(struct clike *p, const struct helper *h)
{
    const enum op op = (enum op)(h->extra >> 8);
    buf_fmt(p->b, "%sfloat %s(", p->d->helper, h->name);
    put_space(p, h->extra);
    buf_str(p->b, "atomic_uint *place, float x) {\n"
                  "    uint old = atomic_load_explicit(place, memory_order_relaxed);\n"
                  "    while (!atomic_compare_exchange_weak_explicit(place, &old, as_type<uint>(");
    buf_str(p->b, op == OP_ATOMIC_ADD   ? "as_type<float>(old) + x"
                  : op == OP_ATOMIC_SUB ? "as_type<float>(old) - x"
                  : op == OP_ATOMIC_MIN ? "fmin(as_type<float>(old), x)"
                                        : "fmax(as_type<float>(old), x)");
    buf_str(p->b,
            "),\n                                                  memory_order_relaxed, memory_order_relaxed)) {\n"
            "    }\n    return as_type<float>(old);\n}\n");
}

static void put_native(struct clike *p, uint32_t id, const char *function, ir_type as, bool bits)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t *const in = ir_in(p->m, id);
    const bool result = bits && x->type != TYPE_VOID;
    buf_fmt(p->b, "%s%s(", result ? "as_type<float>(" : "", function);
    put_place(p, in[0], as);
    for (unsigned k = 1; k < x->n; k++) {
        buf_str(p->b, bits ? ", as_type<uint>(" : ", ");
        clike_expr(p, in[k], PREC_ASSIGN);
        buf_str(p->b, bits ? ")" : "");
    }
    buf_fmt(p->b, ", memory_order_relaxed)%s", result ? ")" : "");
}

static void put_float_atomic(struct clike *p, uint32_t id, enum op op, enum space space)
{
    const uint32_t *const in = ir_in(p->m, id);
    const bool device = space == SPACE_DEVICE;
    if (op == OP_ATOMIC_CAS) {
        const char *const name = clike_helper(p, write_cas, "spork_atomic_cas", TYPE_U32, space);
        buf_fmt(p->b, "as_type<float>(%s(", name);
        put_place(p, in[0], TYPE_U32);
        for (unsigned k = 1; k < 3; k++) {
            buf_str(p->b, ", as_type<uint>(");
            clike_expr(p, in[k], PREC_LOWEST);
            buf_char(p->b, ')');
        }
        buf_str(p->b, "))");
    } else if (op == OP_ATOMIC_LOAD || op == OP_ATOMIC_STORE || op == OP_ATOMIC_EXCHANGE) {
        put_native(p, id, op_info[op].msl, device ? TYPE_F32 : TYPE_U32, !device);
    } else if (device && (op == OP_ATOMIC_ADD || op == OP_ATOMIC_SUB)) {
        put_native(p, id, op_info[op].msl, TYPE_F32, false);
    } else {
        static const char *const names[] = {"spork_atomic_add", "spork_atomic_sub", "spork_atomic_min",
                                            "spork_atomic_max"};
        const unsigned k = op == OP_ATOMIC_ADD ? 0 : op == OP_ATOMIC_SUB ? 1 : op == OP_ATOMIC_MIN ? 2 : 3;
        buf_fmt(p->b, "%s(", clike_helper(p, write_float, names[k], TYPE_F32, (uint64_t)op << 8 | space));
        put_place(p, in[0], TYPE_U32);
        buf_str(p->b, ", ");
        clike_expr(p, in[1], PREC_ASSIGN);
        buf_char(p->b, ')');
    }
}

void msl_atomic(struct clike *p, uint32_t id, enum prec prec)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t *const in = ir_in(p->m, id);
    const enum op op = (enum op)x->op;
    const enum space space = ir_type_space(ir_at(p->m, in[0])->type);
    const ir_type t = op == OP_ATOMIC_LOAD ? x->type : ir_at(p->m, in[1])->type;
    (void)prec;
    if (t == TYPE_F32) {
        put_float_atomic(p, id, op, space);
    } else if (scalar_info[ir_type_scalar(t)].bytes == 8) {
        const bool bound = op == OP_ATOMIC_MIN || op == OP_ATOMIC_MAX;
        if (t != TYPE_U64 || !bound || space != SPACE_DEVICE || p->v[id].uses)
            CLIKE_FAIL(p, id, PRINT_WIDE_ATOMIC, p->d->name, op_info[op].name, scalar_info[t].name, space_name[space]);
        else
            put_native(p, id, op == OP_ATOMIC_MIN ? "atomic_min_explicit" : "atomic_max_explicit", t, false);
    } else if (op == OP_ATOMIC_CAS) {
        buf_fmt(p->b, "%s(", clike_helper(p, write_cas, "spork_atomic_cas", t, space));
        put_place(p, in[0], t);
        for (unsigned k = 1; k < 3; k++) {
            buf_str(p->b, ", ");
            clike_expr(p, in[k], PREC_ASSIGN);
        }
        buf_char(p->b, ')');
    } else {
        put_native(p, id, op_info[op].msl, t, false);
    }
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

static void put_memory(struct clike *p, unsigned memory)
{
    bool first = true;
    for (unsigned k = 0; k < 4; k++) {
        if (!(memory >> k & 1))
            continue;
        buf_fmt(p->b, "%smem_flags::mem_%s", first ? "" : " | ", memory_name[k]);
        first = false;
    }
    if (first)
        buf_str(p->b, "mem_flags::mem_none");
}

static void put_fence(struct clike *p, uint32_t place, unsigned memory, enum memory_order order,
                      enum memory_scope scope)
{
    clike_begin(p);
    buf_str(p->b, "atomic_thread_fence(");
    put_memory(p, memory);
    buf_fmt(p->b, ", memory_order_%s, thread_scope_%s);", order_name[order], scope_name[scope]);
    clike_end(p, place);
}

/* Metal's atomics are relaxed; an order is a fence before (release) or after (acquire). */
void msl_fence(struct clike *p, uint32_t id, bool before)
{
    const struct node *const x = ir_at(p->m, id);
    const enum memory_order order = node_order(x->flags);
    const bool releases = order == ORDER_RELEASE || order == ORDER_ACQ_REL || order == ORDER_SEQ_CST;
    const bool acquires = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL || order == ORDER_SEQ_CST;
    if (before ? releases : acquires)
        put_fence(p, x->place, MEMORY_DEVICE | MEMORY_THREADGROUP,
                  order == ORDER_ACQ_REL ? (before ? ORDER_RELEASE : ORDER_ACQUIRE) : order, node_scope(x->flags));
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static void put_quoted(struct clike *p, char c)
{
    if (c == '\n')
        buf_str(p->b, "\\n");
    else if (c == '\t')
        buf_str(p->b, "\\t");
    else if (c == '"' || c == '\\')
        buf_fmt(p->b, "\\%c", c);
    else if ((unsigned char)c < ' ' || (unsigned char)c == 0x7f)
        buf_fmt(p->b, "\\%03o", (unsigned)(unsigned char)c);
    else
        buf_char(p->b, c);
}

static const char *conversion(ir_type t)
{
    const enum scalar s = ir_type_scalar(t);
    switch (scalar_info[s].class_) {
    case CLASS_F: return "%f";
    case CLASS_S: return scalar_info[s].bytes == 8 ? "%ld" : "%d";
    }
    return scalar_info[s].bytes == 8 ? "%lu" : "%u";
}

/* "x = {}" with each {} a value; a vector is its components. */
static void put_print(struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    unsigned next = 0;
    buf_str(p->b, "os_log_default.log_info(\"");
    for (const char *s = strtab_str(&p->m->strings, (uint32_t)x->imm); *s; s++) {
        if (s[0] == '{' && s[1] == '}' && next < x->n) {
            const ir_type t = ir_at(p->m, ir_in(p->m, id)[next++])->type;
            for (unsigned k = 0; k < ir_type_width(t); k++)
                buf_fmt(p->b, "%s%s", k ? ", " : "", conversion(t));
            s++;
        } else if (*s == '%') {
            buf_str(p->b, "%%");
        } else {
            put_quoted(p, *s);
        }
    }
    buf_char(p->b, '"');
    for (unsigned k = 0; k < next; k++) {
        const uint32_t o = ir_in(p->m, id)[k];
        const ir_type t = ir_at(p->m, o)->type;
        const enum scalar s = ir_type_scalar(t);
        const unsigned width = ir_type_width(t);
        if (width == 0) {
            CLIKE_FAIL(p, id, PRINT_UNSUPPORTED, p->d->name, op_info[x->op].name);
            return;
        }
        for (unsigned i = 0; i < width; i++) {
            const bool cast = scalar_info[s].class_ == CLASS_F && s != S_F32;
            buf_str(p->b, cast ? ", float(" : ", ");
            clike_expr(p, o, width > 1 ? PREC_POSTFIX : PREC_ASSIGN);
            if (width > 1)
                buf_fmt(p->b, ".%c", "xyzw"[i]);
            buf_str(p->b, cast ? ")" : "");
        }
    }
    buf_str(p->b, ");");
}

void msl_statement(struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    if (x->op == OP_FENCE) {
        put_fence(p, x->place, node_memory(x->flags), node_order(x->flags), node_scope(x->flags));
        return;
    }
    clike_begin(p);
    if (x->op == OP_PRINT) {
        put_print(p, id);
    } else {
        buf_fmt(p->b, "%s(", op_info[x->op].msl);
        put_memory(p, node_memory(x->flags));
        buf_str(p->b, ");");
    }
    clike_end(p, x->place);
}
