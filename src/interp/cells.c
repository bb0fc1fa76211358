/* cells.c - loads and stores of one number in memory whose region is known, with 32 lanes at once: the common case.
 *
 * The offsets of all lanes are computed and compared with the bounds together. Where that does not settle it, memory.c
 * does the access again lane by lane, and reports the faults.
 */
#include "interp/loops.h"

/* Offsets from `base`, all in bounds; those of inactive lanes are, too. Lanes are looked at in packs, because rows of
 * a threadgroup are often narrower than a simdgroup. */
#if defined(WIDE)
#define PACK 8u
#define EACH_OF_PACK(X, ...)                                                                                           \
    {                                                                                                                  \
        X(0, __VA_ARGS__), X(1, __VA_ARGS__), X(2, __VA_ARGS__), X(3, __VA_ARGS__), X(4, __VA_ARGS__),                 \
            X(5, __VA_ARGS__), X(6, __VA_ARGS__), X(7, __VA_ARGS__)                                                    \
    }
#else
#define PACK 4u
#define EACH_OF_PACK(X, ...)                                                                                           \
    {                                                                                                                  \
        X(0, __VA_ARGS__), X(1, __VA_ARGS__), X(2, __VA_ARGS__), X(3, __VA_ARGS__)                                     \
    }
#endif
struct cells {
    char *base;
    bool consecutive, uniform; /* within each pack */
    uint32_t at[LANES];
};

/* All bits of the lanes that are active. */
static inline void active_lanes(uint32_t mask, uint32_t *restrict to)
{
    for (unsigned l = 0; l < LANES; l++)
        to[l] = mask & lane_bit[l] ? ALL_LANES : 0;
}

typedef uint32_t pack __attribute__((vector_size(4 * PACK)));

static inline bool any(const pack *x)
{
    uint64_t w[PACK / 2], all = 0;
    memcpy(w, x, sizeof w);
    for (unsigned k = 0; k < PACK / 2; k++)
        all |= w[k];
    return all != 0;
}

#define STEP(k, bytes) (k) * (bytes)
static inline void find_pattern(struct cells *restrict f, unsigned bytes)
{
    const pack step = EACH_OF_PACK(STEP, bytes);
    pack unlike = {0}, differ = {0};
    for (unsigned p = 0; p < LANES; p += PACK) {
        pack at;
        memcpy(&at, f->at + p, sizeof at);
        unlike |= at ^ (step + f->at[p]);
        differ |= at ^ f->at[p];
    }
    f->consecutive = !any(&unlike);
    f->uniform = !any(&differ);
}

/* False: not known to be in bounds. If the greatest values of all terms together are in bounds, all lanes are. A negative
 * index counts as out of bounds here. */
static inline bool find_cells(const struct simd *s, const struct inst *i, const struct access *q, unsigned bytes,
                              struct cells *restrict f)
{
    const struct region_memory m = s->run->region[q->region];
    const uint32_t reg[TERMS] = {i->a, i->b, i->c};
    uint64_t reach = 0;
    uint32_t active[LANES];
    if (q->has_base || q->thread || m.size < bytes || q->disp > m.size - bytes || q->index_kind[0] == INDEX_NONE)
        return false;
    active_lanes(s->mask, active);
    for (unsigned k = 0; k < TERMS && q->index_kind[k] != INDEX_NONE; k++) {
        if (q->index_kind[k] != INDEX_U32 && q->index_kind[k] != INDEX_I32)
            return false;
        const uint32_t *const x = REG(s, const uint32_t, reg[k]), scale = (uint32_t)q->scale[k];
        uint32_t most = 0, y[LANES];
        for (unsigned l = 0; l < LANES; l++) {
            y[l] = x[l] & active[l];
            most = y[l] > most ? y[l] : most;
        }
        if (k == 0)
            for (unsigned l = 0; l < LANES; l++)
                f->at[l] = y[l] * scale;
        else
            for (unsigned l = 0; l < LANES; l++)
                f->at[l] += y[l] * scale;
        if (q->index_kind[k] == INDEX_I32 && most > INT32_MAX)
            return false;
        reach += (uint64_t)most * scale;
    }
    if (reach > UINT32_MAX - PACK * 8 || reach > m.size - bytes - q->disp) /* so that nothing wraps in a pack */
        return false;
    f->base = m.base + q->disp;
    find_pattern(f, bytes);
    return true;
}

/* The same for any offset and for thread memory; where[l] are places. */
static bool find_places(const struct simd *s, const struct inst *i, const struct access *q, unsigned bytes,
                        char *restrict *where)
{
    const struct region_info *const r = &s->run->p->region[q->region];
    const uint64_t size = s->run->region[q->region].size, stride = q->thread ? r->stride : 0;
    char *const base = q->thread ? s->regs + r->offset : s->run->region[q->region].base;
    uint64_t at[LANES], most = 0;
    if (size < bytes)
        return false;
    memory_offsets(s, i, q, at);
    for (unsigned l = 0; l < LANES; l++) {
        at[l] &= 0u - (uint64_t)(s->mask >> l & 1u);
        most = at[l] > most ? at[l] : most;
    }
    if (most > size - bytes)
        return false;
    for (unsigned l = 0; l < LANES; l++)
        where[l] = base + (at[l] + l * stride);
    return true;
}

#define CELL_AT(k, cell, base, at) cell((base) + (at)[k]) /* base 0: `at` has pointers */

/* Whole packs are read and written at once, however they were gathered: a load that finds its bytes in several stores
 * still under way would wait for all of them. */
#define CELLS(N)                                                                                                       \
    typedef uint##N##_t pack_##N __attribute__((vector_size(N / 8 * PACK)));                                           \
    typedef uint##N##_t pack_anywhere_##N __attribute__((vector_size(N / 8 * PACK), aligned(1)));                      \
    static inline uint##N##_t cell_##N(const char *at)                                                                 \
    {                                                                                                                  \
        uint##N##_t x;                                                                                                 \
        memcpy(&x, at, sizeof x);                                                                                      \
        return x;                                                                                                      \
    }                                                                                                                  \
    static const struct inst *load_##N(struct simd *s, const struct inst *i)                                           \
    {                                                                                                                  \
        const struct access *const q = &s->run->p->access[i->x];                                                       \
        pack_##N *restrict const d = REG(s, pack_##N, i->d);                                                           \
        struct cells f;                                                                                                \
        char *where[LANES];                                                                                            \
        if (find_cells(s, i, q, N / 8, &f)) {                                                                          \
            const uint32_t *const at = f.at;                                                                           \
            if (f.consecutive)                                                                                         \
                for (unsigned p = 0; p < LANES / PACK; p++)                                                            \
                    d[p] = *(const pack_anywhere_##N *)(const void *)(f.base + at[p * PACK]);                          \
            else if (f.uniform)                                                                                        \
                for (unsigned p = 0; p < LANES / PACK; p++)                                                            \
                    d[p] = (pack_##N){0} + cell_##N(f.base + at[p * PACK]);                                            \
            else                                                                                                       \
                for (unsigned p = 0; p < LANES / PACK; p++)                                                            \
                    d[p] = (pack_##N)EACH_OF_PACK(CELL_AT, cell_##N, f.base, at + p * PACK);                           \
        } else if (find_places(s, i, q, N / 8, where)) {                                                               \
            for (unsigned p = 0; p < LANES / PACK; p++)                                                                \
                d[p] = (pack_##N)EACH_OF_PACK(CELL_AT, cell_##N, 0, where + p * PACK);                                 \
        } else {                                                                                                       \
            return memory_load(s, i);                                                                                  \
        }                                                                                                              \
        return i + 1;                                                                                                  \
    }                                                                                                                  \
    static const struct inst *store_##N(struct simd *s, const struct inst *i)                                          \
    {                                                                                                                  \
        const struct access *const q = &s->run->p->access[i->x];                                                       \
        const uint##N##_t *const d = REG(s, const uint##N##_t, i->d);                                                  \
        struct cells f;                                                                                                \
        char *where[LANES];                                                                                            \
        if (find_cells(s, i, q, N / 8, &f)) {                                                                          \
            if (s->mask == ALL_LANES && f.consecutive)                                                                 \
                for (unsigned p = 0; p < LANES; p += PACK)                                                             \
                    *(pack_anywhere_##N *)(void *)(f.base + f.at[p]) = *(const pack_##N *)(const void *)(d + p);       \
            else                                                                                                       \
                EACH_LANE(s->mask, l)                                                                                  \
            memcpy(f.base + f.at[l], d + l, sizeof *d);                                                                \
        } else if (find_places(s, i, q, N / 8, where)) {                                                               \
            EACH_LANE(s->mask, l)                                                                                      \
            memcpy(where[l], d + l, sizeof *d);                                                                        \
        } else {                                                                                                       \
            return memory_store(s, i);                                                                                 \
        }                                                                                                              \
        return i + 1;                                                                                                  \
    }
EACH_SIZE(CELLS)

inst_fn *cells_load(unsigned bytes)
{
    return BY_SIZE(load, bytes);
}

inst_fn *cells_store(unsigned bytes)
{
    return BY_SIZE(store, bytes);
}
