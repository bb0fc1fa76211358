/* memory.c - addresses, loads, stores, atomics.
 *
 * Every access is checked against its region; the offset is computed and checked once, in registers, so that a thread
 * that writes the index meanwhile changes nothing. Out of bounds a load gives zero and a store is dropped, for that
 * lane. Stores go lane by lane in lane order. Values are copied byte by byte in meaning: any alignment, any overlap.
 */
#include "interp/loops.h"

/* ---- addresses -------------------------------------------------------------------------------------------------- */

static inline void add_term(const struct simd *s, uint32_t reg, unsigned kind, uint64_t scale, uint64_t *restrict to)
{
    if (kind == INDEX_U32) {
        const uint32_t *const x = REG(s, const uint32_t, reg);
        for (unsigned l = 0; l < LANES; l++)
            to[l] += x[l] * scale;
    } else {
        const int32_t *const x = REG(s, const int32_t, reg);
        for (unsigned l = 0; l < LANES; l++)
            to[l] += (uint64_t)(int64_t)x[l] * scale;
    }
}

void memory_offsets(const struct simd *s, const struct inst *i, const struct access *q, uint64_t *restrict to)
{
    const uint32_t reg[TERMS] = {i->a, i->b, i->c};
    const unsigned kind = q->index_kind[0];
    if (kind == INDEX_U64 || kind == INDEX_I64) {
        const uint64_t *const a = REG(s, const uint64_t, i->a);
        for (unsigned l = 0; l < LANES; l++)
            to[l] = far_sum(q->disp, far_product(a[l], kind == INDEX_I64, q->scale[0]));
    } else {
        for (unsigned l = 0; l < LANES; l++)
            to[l] = q->disp;
        for (unsigned k = 0; k < TERMS && q->index_kind[k] != INDEX_NONE; k++)
            add_term(s, reg[k], q->index_kind[k], q->scale[k], to);
    }
    if (q->has_base) {
        const uint64_t *const b = REG(s, const uint64_t, i->b);
        for (unsigned l = 0; l < LANES; l++)
            to[l] = far_sum(to[l], b[l]);
    }
}

static char *region_base(const struct simd *s, uint32_t region, unsigned lane)
{
    const struct region_info *const r = &s->run->p->region[region];
    if (r->kind == REGION_THREAD)
        return s->regs + r->offset + r->stride * lane;
    return s->run->region[region].base;
}

/* Addresses of the active lanes; the lanes whose access is in bounds. The others have their fault recorded. */
static uint32_t resolve(struct simd *s, const struct inst *i, const struct access *q, char **restrict at)
{
    uint64_t offset[LANES];
    uint32_t ok = 0;
    memory_offsets(s, i, q, offset);
    EACH_LANE(s->mask, l)
    {
        const uint32_t region = q->region != REGION_DYNAMIC ? q->region : REG(s, const uint32_t, i->c)[l];
        const uint64_t size = s->run->region[region].size;
        if (size >= q->extent && offset[l] <= size - q->extent) {
            at[l] = region_base(s, region, l) + offset[l];
            ok |= (uint32_t)1 << l;
        } else {
            fault_access(s, l, q, region, offset[l], size);
        }
    }
    return ok;
}

/* An address that leaves the load and store that it belongs to: d = offsets. */
const struct inst *memory_address(struct simd *s, const struct inst *i)
{
    memory_offsets(s, i, &s->run->p->access[i->x], REG(s, uint64_t, i->d));
    return i + 1;
}

/* Thread memory begins its life: x: the region. */
const struct inst *memory_zero(struct simd *s, const struct inst *i)
{
    const uint64_t size = s->run->p->region[i->x].size;
    EACH_LANE(s->mask, l)
    memset(region_base(s, i->x, l), 0, size);
    return i + 1;
}

const struct inst *memory_fence(struct simd *s, const struct inst *i)
{
    (void)s;
    __sync_synchronize();
    return i + 1;
}

/* ---- handles: pointers in memory -------------------------------------------------------------------------------- */

static uint64_t handle_get(uint64_t handle, unsigned kind, const struct interp_program *p)
{
    if (kind == LEAF_OFFSET)
        return (uint64_t)((int64_t)(handle << (64 - HANDLE_BITS)) >> (64 - HANDLE_BITS));
    const uint64_t region = handle >> HANDLE_BITS;
    return region < p->n_region ? region : 0; /* not one of ours: the null region */
}

/* An offset that a handle cannot hold is as far out of bounds as one can. */
static uint64_t handle_put(uint64_t offset, uint64_t region)
{
    const int64_t edge = (int64_t)1 << (HANDLE_BITS - 1);
    if ((int64_t)offset >= edge || (int64_t)offset < -edge)
        offset = (uint64_t)-edge;
    return (offset & (((uint64_t)1 << HANDLE_BITS) - 1)) | region << HANDLE_BITS;
}

/* ---- any value -------------------------------------------------------------------------------------------------- */

static unsigned leaf_bytes(const struct leaf *f)
{
    return f->kind == LEAF_OFFSET ? 8 : f->kind == LEAF_REGION ? 4 : scalar_info[f->kind].bytes;
}

#define LOAD_PLAIN(N)                                                                                                  \
    static void load_plain_##N(struct simd *s, const struct leaf *f, uint32_t ok, char *const *at)                     \
    {                                                                                                                  \
        uint##N##_t *const d = REG(s, uint##N##_t, f->reg);                                                            \
        if (ok != ALL_LANES)                                                                                           \
            memset(d, 0, sizeof *d *LANES);                                                                            \
        EACH_LANE(ok, l)                                                                                               \
        memcpy(d + l, at[l] + f->offset, sizeof *d);                                                                   \
    }
EACH_SIZE(LOAD_PLAIN)

/* bool, pointers */
static void load_leaf(struct simd *s, const struct leaf *f, uint32_t ok, char *const *at)
{
    const unsigned bytes = leaf_bytes(f);
    memset(s->regs + f->reg, 0, (size_t)bytes * LANES);
    EACH_LANE(ok, l)
    {
        uint64_t x = 0;
        memcpy(&x, at[l] + f->offset, f->kind == S_BOOL ? 1 : sizeof x);
        lane_set(s, f->reg, bytes, l, f->kind == S_BOOL ? x != 0 : handle_get(x, f->kind, s->run->p));
    }
}

const struct inst *memory_load(struct simd *s, const struct inst *i)
{
    const struct interp_program *const p = s->run->p;
    const struct access *const q = &p->access[i->x];
    char *at[LANES];
    const uint32_t ok = resolve(s, i, q, at);
    for (const struct leaf *f = p->leaf + q->first_leaf, *end = f + q->n_leaves; f < end; f++) {
        if (f->kind == S_BOOL || f->kind >= LEAF_OFFSET)
            load_leaf(s, f, ok, at);
        else
            BY_SIZE(load_plain, scalar_info[f->kind].bytes)(s, f, ok, at);
    }
    return i + 1;
}

static void store_leaf(struct simd *s, const struct access *q, const struct leaf *f, unsigned l, char *at)
{
    unsigned bytes = leaf_bytes(f);
    uint64_t x = lane_get(s, f->reg, bytes, l);
    if (f->kind == LEAF_OFFSET) {
        x = handle_put(x, lane_get(s, f[1].reg, 4, l));
        bytes = 8;
    }
    if (q->tracked && memcmp(at, &x, bytes) != 0)
        *(q->thread ? &s->thread_changes : &s->changes) += 1;
    memcpy(at, &x, bytes);
}

const struct inst *memory_store(struct simd *s, const struct inst *i)
{
    const struct interp_program *const p = s->run->p;
    const struct access *const q = &p->access[i->x];
    const struct leaf *const first = p->leaf + q->first_leaf, *const end = first + q->n_leaves;
    char *at[LANES];
    EACH_LANE(resolve(s, i, q, at), l)
    {
        for (const struct leaf *f = first; f < end; f++)
            if (f->kind != LEAF_REGION)
                store_leaf(s, q, f, l, at[l] + f->offset);
    }
    return i + 1;
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

/* Memory of the device may be shared with other launches and with the host; aligned scalars are then read and written
 * by one relaxed instruction, with fences around where more order is asked for. */
static uint64_t cell_get(const char *at, unsigned bytes)
{
    uint64_t x = 0;
    if (((uintptr_t)at & (bytes - 1)) != 0) {
        memcpy(&x, at, bytes);
        return x;
    }
    switch (bytes) {
    case 1: return __atomic_load_n((const uint8_t *)at, __ATOMIC_RELAXED);
    case 2: return __atomic_load_n((const uint16_t *)(const void *)at, __ATOMIC_RELAXED);
    case 4: return __atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_RELAXED);
    default: return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);
    }
}

/* Writes `desired` if the cell still holds `expected`. */
static bool cell_replace(char *at, unsigned bytes, uint64_t expected, uint64_t desired)
{
    if (((uintptr_t)at & (bytes - 1)) != 0) {
        memcpy(at, &desired, bytes);
        return true;
    }
#define REPLACE(T)                                                                                                     \
    {                                                                                                                  \
        T old = (T)expected;                                                                                           \
        return __atomic_compare_exchange_n((T *)(void *)at, &old, (T)desired, false, __ATOMIC_RELAXED,                 \
                                           __ATOMIC_RELAXED);                                                          \
    }
    switch (bytes) {
    case 1: REPLACE(uint8_t)
    case 2: REPLACE(uint16_t)
    case 4: REPLACE(uint32_t)
    default: REPLACE(uint64_t)
    }
}

/* The common ones without the tables. */
static uint64_t combine(enum op op, enum scalar s, uint64_t a, uint64_t b)
{
    if (s == S_U32 || s == S_I32) {
        if (op == OP_ADD)
            return (uint32_t)(a + b);
        if (op == OP_SUB)
            return (uint32_t)(a - b);
    }
    return ir_scalar_eval(op, s, s, 0, a, b, 0);
}

/* imm: the IR operation; y: an order beyond relaxed. The access' leaves: the value in memory (register of the old one,
 * unless absent), then the operands. Lanes take their turns in lane order. */
const struct inst *memory_atomic(struct simd *s, const struct inst *i)
{
    const struct access *const q = &s->run->p->access[i->x];
    const struct leaf *const f = s->run->p->leaf + q->first_leaf;
    const enum op op = (enum op)i->imm;
    const enum scalar scalar = (enum scalar)f[0].kind;
    const unsigned bytes = scalar_info[scalar].bytes;
    const bool returns = op != OP_ATOMIC_STORE;
    char *at[LANES];
    const uint32_t ok = resolve(s, i, q, at);
    if (i->y)
        __sync_synchronize();
    if (returns && ok != ALL_LANES)
        memset(s->regs + f[0].reg, 0, (size_t)bytes * LANES);
    EACH_LANE(ok, l)
    {
        const uint64_t x = q->n_leaves > 1 ? lane_get(s, f[1].reg, bytes, l) : 0;
        uint64_t old, desired;
        do {
            old = cell_get(at[l], bytes);
            if (op == OP_ATOMIC_CAS)
                desired = old == x ? lane_get(s, f[2].reg, bytes, l) : old;
            else if (op == OP_ATOMIC_LOAD)
                desired = old;
            else
                desired = q->op == OP_NONE ? x : combine((enum op)q->op, scalar, old, x);
        } while (desired != old && !cell_replace(at[l], bytes, old, desired));
        if (desired != old)
            *(q->thread ? &s->thread_changes : &s->changes) += 1;
        if (returns)
            lane_set(s, f[0].reg, bytes, l, scalar == S_BOOL ? old != 0 : old);
    }
    if (i->y)
        __sync_synchronize();
    return i + 1;
}
