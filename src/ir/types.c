/* types.c - types: fixed numbers for scalars, vectors and pointers, interned structs and arrays. */
#include "ir/ir.h"

#include <inttypes.h>

#define TYPE_LIMIT 65536u                   /* ir_type has 16 bits */
#define TYPE_SIZE_LIMIT ((uint64_t)1 << 40) /* bytes */

/* ---- scalars, vectors, pointers: known from the number alone --------------------------------------------------- */

static bool is_vector(ir_type t)
{
    return t >= TYPE_VECTOR(1, 2) && t < TYPE_POINTER(0);
}

ir_type ir_type_vector(enum scalar s, unsigned n)
{
    if (s == S_VOID || n == 0 || n > 4)
        return TYPE_VOID;
    return n == 1 ? (ir_type)s : TYPE_VECTOR(s, n);
}

enum scalar ir_type_scalar(ir_type t)
{
    if (t < S_COUNT)
        return (enum scalar)t;
    return is_vector(t) ? (enum scalar)((t - S_COUNT) / 3 + 1) : S_VOID;
}

unsigned ir_type_width(ir_type t)
{
    if (t == TYPE_VOID)
        return 0;
    if (t < S_COUNT)
        return 1;
    return is_vector(t) ? (t - S_COUNT) % 3u + 2 : 0;
}

ir_type ir_type_with(ir_type shape, enum scalar s)
{
    return ir_type_vector(s, ir_type_width(shape));
}

bool ir_type_is_pointer(ir_type t)
{
    return t >= TYPE_POINTER(0) && t < TYPE_POINTER(SPACE_COUNT);
}

enum space ir_type_space(ir_type t)
{
    return (enum space)(t - TYPE_POINTER(0));
}

void ir_types_init(struct ir_module *m)
{
    VEC_RESERVE(m->mem, &m->types, TYPE_FIXED_COUNT);
    m->types.n = TYPE_FIXED_COUNT;
    memset(m->types.at, 0, TYPE_FIXED_COUNT * sizeof *m->types.at);
    for (unsigned s = 1; s < S_COUNT; s++) {
        const uint8_t bytes = scalar_info[s].bytes;
        m->types.at[s] =
            (struct type){.kind = TYPE_KIND_SCALAR, .scalar = (uint8_t)s, .n = 1, .align = bytes, .size = bytes};
        for (unsigned n = 2; n <= 4; n++) {
            const unsigned size = bytes * (n == 3 ? 4 : n);
            m->types.at[TYPE_VECTOR(s, n)] = (struct type){.kind = TYPE_KIND_VECTOR,
                                                           .scalar = (uint8_t)s,
                                                           .n = (uint8_t)n,
                                                           .elem = (ir_type)s,
                                                           .align = (uint16_t)size,
                                                           .size = size};
        }
    }
    for (unsigned k = 0; k < SPACE_COUNT; k++)
        m->types.at[TYPE_POINTER(k)] =
            (struct type){.kind = TYPE_KIND_POINTER, .space = (uint8_t)k, .align = 8, .size = 8};
}

/* ---- structs and arrays ---------------------------------------------------------------------------------------- */

static uint64_t type_hash(const struct ir_module *m, const struct type *t, const struct field *fields)
{
    if (t->kind == TYPE_KIND_ARRAY)
        return hash_u64(hash_u64(t->kind, t->elem), t->count);
    uint64_t h = hash_u64(t->kind, t->name);
    if (!fields)
        fields = m->fields.at + t->first_field;
    for (uint32_t k = 0; k < t->n_fields; k++)
        h = hash_u64(h, (uint64_t)fields[k].name << 16 | fields[k].type);
    return h;
}

static bool same_type(const struct ir_module *m, const struct type *old, const struct type *t,
                      const struct field *fields)
{
    if (old->kind != t->kind)
        return false;
    if (t->kind == TYPE_KIND_ARRAY)
        return old->elem == t->elem && old->count == t->count;
    if (old->name != t->name || old->n_fields != t->n_fields)
        return false;
    for (uint32_t k = 0; k < t->n_fields; k++) {
        const struct field *const f = &m->fields.at[old->first_field + k];
        if (f->name != fields[k].name || f->type != fields[k].type)
            return false;
    }
    return true;
}

/* Slots hold type numbers, 0 is free; at most half are taken. */
static void rehash(struct ir_module *m)
{
    const uint32_t n = m->n_type_slots ? 2 * m->n_type_slots : 16;
    uint32_t *const slots = mem_zalloc(m->mem, n * sizeof *slots);
    for (uint32_t id = TYPE_FIXED_COUNT; id < m->types.n; id++) {
        uint32_t i = (uint32_t)type_hash(m, &m->types.at[id], NULL) & (n - 1);
        while (slots[i])
            i = (i + 1) & (n - 1);
        slots[i] = id;
    }
    mem_free(m->mem, m->type_slots, m->n_type_slots * sizeof *slots);
    m->type_slots = slots;
    m->n_type_slots = n;
}

/* The fields of a struct lie behind those in use; they are kept if the type is new. */
static ir_type intern(struct ir_module *m, const struct type *t)
{
    const struct field *const fields = m->fields.at + m->fields.n;
    if (2 * (m->types.n - TYPE_FIXED_COUNT + 1) > m->n_type_slots)
        rehash(m);
    uint32_t i = (uint32_t)type_hash(m, t, fields) & (m->n_type_slots - 1);
    for (; m->type_slots[i]; i = (i + 1) & (m->n_type_slots - 1))
        if (same_type(m, &m->types.at[m->type_slots[i]], t, fields))
            return (ir_type)m->type_slots[i];
    if (m->types.n == TYPE_LIMIT)
        return TYPE_VOID;

    VEC_RESERVE(m->mem, &m->types, 1);
    const uint32_t id = m->types.n;
    VEC_PUSH(m->mem, &m->types, *t);
    m->types.at[id].first_field = m->fields.n;
    m->fields.n += t->n_fields;
    m->type_slots[i] = id;
    return (ir_type)id;
}

ir_type ir_type_array(struct ir_module *m, ir_type elem, uint64_t count)
{
    const struct type e = *ir_type_at(m, elem);
    if (elem == TYPE_VOID || count == 0 || count > TYPE_SIZE_LIMIT / e.size)
        return TYPE_VOID;
    const struct type t = {
        .kind = TYPE_KIND_ARRAY, .elem = elem, .align = e.align, .size = e.size * count, .count = count};
    return intern(m, &t);
}

static uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

ir_type ir_type_struct(struct ir_module *m, uint32_t name, uint32_t n, const struct field *f)
{
    struct type t = {.kind = TYPE_KIND_STRUCT, .align = 1, .name = name, .n_fields = n};
    VEC_RESERVE(m->mem, &m->fields, n);
    for (uint32_t k = 0; k < n; k++) {
        const struct type *const part = ir_type_at(m, f[k].type);
        if (f[k].type == TYPE_VOID)
            return TYPE_VOID;
        if (t.align < part->align)
            t.align = part->align;
        const uint64_t offset = align_up(t.size, part->align);
        t.size = offset + part->size;
        if (t.size > TYPE_SIZE_LIMIT)
            return TYPE_VOID;
        m->fields.at[m->fields.n + k] = (struct field){f[k].name, f[k].type, offset};
    }
    t.size = align_up(n ? t.size : 1, t.align); /* an empty struct has a byte, as in C++ */
    return intern(m, &t);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

const struct type *ir_type_at(const struct ir_module *m, ir_type t)
{
    return &m->types.at[t];
}

void ir_type_print(const struct ir_module *m, struct buf *b, ir_type t)
{
    const struct type *const x = ir_type_at(m, t);
    switch ((enum type_kind)x->kind) {
    case TYPE_KIND_VOID:
    case TYPE_KIND_SCALAR: buf_str(b, scalar_info[x->scalar].name); break;
    case TYPE_KIND_VECTOR:
        buf_str(b, scalar_info[x->scalar].name);
        buf_char(b, 'x');
        buf_char(b, (char)('0' + x->n));
        break;
    case TYPE_KIND_POINTER:
        buf_str(b, "ptr.");
        buf_str(b, space_name[x->space]);
        break;
    case TYPE_KIND_STRUCT: buf_str(b, strtab_str(&m->strings, x->name)); break;
    case TYPE_KIND_ARRAY:
        buf_char(b, '[');
        ir_type_print(m, b, x->elem);
        buf_fmt(b, " x %" PRIu64 "]", x->count);
        break;
    }
}

unsigned ir_type_class(const struct ir_module *m, ir_type t)
{
    const struct type *const x = ir_type_at(m, t);
    switch ((enum type_kind)x->kind) {
    case TYPE_KIND_VOID: return CLASS_N;
    case TYPE_KIND_SCALAR:
    case TYPE_KIND_VECTOR: return scalar_info[x->scalar].class_;
    case TYPE_KIND_POINTER: return CLASS_P;
    case TYPE_KIND_STRUCT:
    case TYPE_KIND_ARRAY: return CLASS_AGGREGATE;
    }
    return CLASS_N;
}

uint64_t ir_type_parts(const struct ir_module *m, ir_type t)
{
    const struct type *const x = ir_type_at(m, t);
    switch ((enum type_kind)x->kind) {
    case TYPE_KIND_VECTOR: return x->n;
    case TYPE_KIND_STRUCT: return x->n_fields;
    case TYPE_KIND_ARRAY: return x->count;
    case TYPE_KIND_VOID:
    case TYPE_KIND_SCALAR:
    case TYPE_KIND_POINTER: return 0;
    }
    return 0;
}

ir_type ir_type_part(const struct ir_module *m, ir_type t, uint64_t k)
{
    if (k >= ir_type_parts(m, t))
        return TYPE_VOID;
    const struct type *const x = ir_type_at(m, t);
    return x->kind == TYPE_KIND_STRUCT ? m->fields.at[x->first_field + k].type : x->elem;
}
