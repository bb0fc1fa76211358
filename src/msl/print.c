/* print.c - Metal Shading Language: the Metal dialect of the C-like printer. */
#include "msl/msl.h"
#include "msl/msl_ops.h"

#define LINE_MAX 120u

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* Vectors, packed vectors and matrices of every scalar that has them. */
#define VECTORS(t) #t "2", #t "3", #t "4", "packed_" #t "2", "packed_" #t "3", "packed_" #t "4"
#define MATRICES(t)                                                                                                    \
#t "2x2", #t "2x3", #t "2x4", #t "3x2", #t "3x3", #t "3x4", #t "4x2", #t "4x3", #t "4x4", "simdgroup_" #t "8x8"

static const char *const words[] = {
#define WORD(x) #x,
#include "msl/words.def"
#undef WORD
    VECTORS(bool),  VECTORS(char),   VECTORS(uchar),   VECTORS(short), VECTORS(ushort), VECTORS(int),
    VECTORS(uint),  VECTORS(long),   VECTORS(ulong),   VECTORS(half),  VECTORS(bfloat), VECTORS(float),
    MATRICES(half), MATRICES(float), MATRICES(bfloat), NULL,
};

/* simd_sum and its like are rows of ops.def. */
static const char *const library[] = {
#define LIBRARY(x) #x,
#include "msl/words.def"
#undef LIBRARY
    NULL,
};

/* ---- parameters filled by the launch --------------------------------------------------------------------------- */

/* How an attribute is declared: one parameter stands for all that name it. Positions and sizes of one kernel have one width,
 * that of the widest, and those of one family one type, ushort only if all of its family are. */
struct declared {
    uint32_t first; /* the parameter that is printed */
    enum scalar scalar;
    unsigned width;
};

static const struct param *param_at(const struct clike *p, uint32_t k)
{
    return &p->m->params.at[p->m->funcs.at[p->func].first_param + k];
}

static struct declared declared_as(const struct clike *p, uint32_t k)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    const uint8_t attribute = param_at(p, k)->attribute;
    const struct attr_info *const info = &attr_info[attribute];
    struct declared d = {k, S_U16, 1};
    for (uint32_t i = 0; i < f->n_params; i++) {
        const struct param *const q = param_at(p, i);
        if (q->kind != PARAM_ATTRIBUTE)
            continue;
        if (q->attribute == attribute && i < d.first)
            d.first = i;
        const bool same = q->attribute == attribute, both = info->family && attr_info[q->attribute].family;
        if ((same || both) && ir_type_width(q->type) > d.width)
            d.width = ir_type_width(q->type);
        if ((same || (both && attr_info[q->attribute].family == info->family)) && ir_type_scalar(q->type) != S_U16)
            d.scalar = S_U32;
    }
    return d;
}

static void put_attribute(struct clike *p, uint32_t k, int part, enum prec prec)
{
    const struct param *const q = param_at(p, k);
    const struct declared d = declared_as(p, k);
    const unsigned width = part < 0 ? ir_type_width(q->type) : 1;
    const bool cast = ir_type_scalar(q->type) != d.scalar;
    (void)prec;
    if (cast) {
        clike_type(p, ir_type_vector(ir_type_scalar(q->type), width));
        buf_char(p->b, '(');
    }
    buf_str(p->b, clike_name(p, param_at(p, d.first)->node));
    if (width < d.width)
        buf_char(p->b, '.'), buf_bytes(p->b, &"xyz"[part < 0 ? 0 : part], width);
    if (cast)
        buf_char(p->b, ')');
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

/* Prints parameter k, with its attribute; false: another one stands for it. */
static bool put_param(struct clike *p, uint32_t k, unsigned *buffers, unsigned *threadgroups)
{
    const struct param *const q = param_at(p, k);
    const char *const name = clike_name(p, q->node);
    switch ((enum param_kind)q->kind) {
    case PARAM_VALUE:
        buf_fmt(p->b, "%s ", p->d->space[SPACE_CONSTANT]);
        clike_type(p, q->type);
        buf_fmt(p->b, " &%s [[buffer(%u)]]", name, (*buffers)++);
        return true;
    case PARAM_BUFFER:
        clike_param_declare(p, k, name);
        buf_fmt(p->b, " [[buffer(%u)]]", (*buffers)++);
        return true;
    case PARAM_THREADGROUP:
        clike_param_declare(p, k, name);
        buf_fmt(p->b, " [[threadgroup(%u)]]", (*threadgroups)++);
        return true;
    case PARAM_ATTRIBUTE: {
        const struct declared d = declared_as(p, k);
        if (d.first != k)
            return false;
        clike_declare(p, ir_type_vector(d.scalar, d.width), name);
        buf_fmt(p->b, " [[%s]]", attr_info[q->attribute].metal);
        return true;
    }
    }
    return true;
}

/* All parameters on one line, or each on a line of its own below the first. */
static size_t put_params(struct clike *p, bool lines, unsigned column)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    const size_t before = p->b->n;
    unsigned buffers = 0, threadgroups = 0;
    uint32_t place = f->place;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const size_t at = p->b->n;
        const bool separate = at > before;
        if (separate)
            buf_str(p->b, ", ");
        const size_t from = p->b->n;
        if (!put_param(p, k, &buffers, &threadgroups)) {
            p->b->n = at;
            continue;
        }
        if (separate && lines) { /* the blank after the comma becomes the end of the line */
            struct buf text;
            buf_init(&text, p->mem);
            buf_bytes(&text, p->b->at + from, p->b->n - from);
            p->b->n = at + 1;
            clike_end(p, place);
            buf_fmt(p->b, "%*s%s", (int)column, "", buf_text(&text));
            buf_free(&text);
        }
        place = param_at(p, k)->place;
    }
    return p->b->n - before;
}

static void kernel_head(struct clike *p)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    const char *const name = names_text(p, p->func_name[p->func]);
    const unsigned column = (unsigned)strlen("kernel void (") + (unsigned)strlen(name);
    if (f->max_threads) {
        buf_fmt(p->b, "[[max_total_threads_per_threadgroup(%u)]]", f->max_threads);
        clike_end(p, f->place);
    }
    buf_fmt(p->b, "kernel void %s(", name);
    const size_t at = p->b->n;
    const size_t length = put_params(p, false, column);
    const bool lines = column + length + strlen(") {") > LINE_MAX;
    if (lines) {
        p->b->n = at;
        (void)put_params(p, true, column);
    }
    buf_str(p->b, ") {");
    clike_end(p, lines && f->n_params ? param_at(p, f->n_params - 1)->place : f->place);
}

static void prologue_more(struct clike *p)
{
    if (p->uses_logging)
        buf_str(p->b, "#include <metal_logging>\n");
    buf_str(p->b, "using namespace metal;\n");
    if (p->no_contract)
        buf_str(p->b, "#pragma METAL fp contract(off)\n");
}

/* ---------------------------------------------------------------------------------------------------------------- */

static const struct clike_dialect metal = {
    .name = "Metal",
    .prologue = "#include <metal_stdlib>\n",
    .function = "static ",
    .helper = "static inline ",
    .scalar =
        {
#define SCALAR(ID, name, msl, bytes, class, bits, ctype) [S_##ID] = msl,
#include "ir/types.def"
#undef SCALAR
        },
    .space =
        {
#define SPACE(ID, name, msl) [SPACE_##ID] = msl,
#include "ir/types.def"
#undef SPACE
        },
    .f16_open = "",
    .f16_close = "h",
    .bf16_open = "bfloat(",
    .bf16_close = "f)",
    .words = words,
    .library = library,
    .precise = "precise::",
    .bits_of_f32 = "as_type<uint>",
    .prologue_more = prologue_more,
    .kernel_head = kernel_head,
    .attribute = put_attribute,
    .math = msl_math,
    .bitcast = msl_bitcast,
    .collective = msl_collective,
    .atomic = msl_atomic,
    .statement = msl_statement,
    .fence = msl_fence,
    .atomic_type = msl_atomic_type,
};

_Static_assert(sizeof(struct msl_lines) == sizeof(struct clike_lines), "msl_lines is clike_lines under another name");

sk_status msl_print(const struct ir_module *m, uint32_t func, struct buf *out, struct msl_lines *lines, sk_error *err)
{
    return clike_print(m, &metal, func, out, (struct clike_lines *)(void *)lines, err);
}

void msl_kernel_name(const struct ir_module *m, uint32_t func, struct buf *out)
{
    clike_kernel_name(m, &metal, func, out);
}
