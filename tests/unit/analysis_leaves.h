/* analysis_leaves.h - scalars of values, for analysis.c: leaves in order, as bits. */
#ifndef ANALYSIS_LEAVES_H
#define ANALYSIS_LEAVES_H

#include "ir/ir.h"

static uint32_t leaves(const struct ir_module *m, ir_type t)
{
    if (ir_type_width(t) == 1 || ir_type_is_pointer(t) || t == TYPE_VOID)
        return t != TYPE_VOID;
    uint32_t n = 0;
    for (uint64_t k = 0; k < ir_type_parts(m, t); k++)
        n += leaves(m, ir_type_part(m, t, k));
    return n;
}

static uint32_t leaf_of_part(const struct ir_module *m, ir_type t, uint64_t part)
{
    uint32_t n = 0;
    for (uint64_t k = 0; k < part; k++)
        n += leaves(m, ir_type_part(m, t, k));
    return n;
}

/* The scalar of leaf k of a value; S_VOID: a pointer. */
static enum scalar leaf_scalar(const struct ir_module *m, ir_type t, uint32_t k)
{
    if (ir_type_is_pointer(t))
        return S_VOID;
    if (ir_type_width(t))
        return ir_type_scalar(t);
    for (uint64_t j = 0; j < ir_type_parts(m, t); j++) {
        const uint32_t n = leaves(m, ir_type_part(m, t, j));
        if (k < n)
            return leaf_scalar(m, ir_type_part(m, t, j), k);
        k -= n;
    }
    return S_VOID;
}

static uint64_t masked(enum scalar s, uint64_t x)
{
    return s == S_VOID || scalar_info[s].bits == 64 ? x : x & (((uint64_t)1 << scalar_info[s].bits) - 1);
}

static int64_t as_signed(enum scalar s, uint64_t x)
{
    const unsigned unused = 64u - scalar_info[s].bits;
    return scalar_info[s].class_ == CLASS_S ? (int64_t)(x << unused) >> unused : (int64_t)x;
}

#endif
