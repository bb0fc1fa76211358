/* helpers.c - memory as generated code leaves it to the runtime: lane by lane, as the interpreter does (interp/memory.c). */
#include "cpu/fault.h"
#include "cpu/fiber.h"
#include "cpu/helpers_math.h"
#include "cpu/memory.h"

const void *const cpu_helpers[HELPER_COUNT] = {
#define HELPER(ID, function, type, doc) [HELPER_##ID] = (const void *)function,
#include "cpu/helpers.def"
#undef HELPER
};

/* ---- faults ----------------------------------------------------------------------------------------------------- */

struct cpu_fault *cpu_fault_record(struct cpu_worker *w, uint32_t thread, enum cpu_fault_kind kind, bool edge)
{
    struct cpu_fault *const f = &w->fault;
    const uint64_t group = ((uint64_t)w->group[2] * w->groups[1] + w->group[1]) * w->groups[0] + w->group[0];
    if (f->kind != CPU_FAULT_NONE && (f->group < group || (f->group == group && f->thread <= thread)))
        return NULL;
    const uint32_t *const d = edge ? w->asked : w->dims;
    const uint32_t at[3] = {thread % d[0], thread / d[0] % d[1], thread / d[0] / d[1]};
    *f = (struct cpu_fault){.kind = kind, .group = group, .thread = thread, .variant = w->variant};
    for (unsigned k = 0; k < 3; k++)
        f->at[k] = w->group[k] * w->asked[k] + at[k];
    return f;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

#define EACH_LANE(bits, l)                                                                                             \
    for (uint32_t l##_rest_ = (bits), l = l##_rest_ ? (uint32_t)__builtin_ctz(l##_rest_) : 0; l##_rest_;               \
         l##_rest_ &= l##_rest_ - 1, l = l##_rest_ ? (uint32_t)__builtin_ctz(l##_rest_) : 0)

struct cpu_place {
    char *base; /* null: out of bounds */
    uint64_t spread;
    bool thread;
};

/* Where a lane's access lies; a fault is recorded where that is out of bounds. */
static struct cpu_place resolve(struct cpu_worker *w, const struct cpu_access *a, const char *room, char *base,
                                uint32_t lane, uint32_t first)
{
    uint64_t offset;
    uint32_t region = a->region;
    memcpy(&offset, room + 8u * lane, sizeof offset);
    if (region == CPU_REGION_DYNAMIC)
        memcpy(&region, room + CPU_ROOM_REGIONS(a->width) + 4u * lane, sizeof region);
    const struct cpu_region *const r = &w->region[region];
    if (r->size >= a->extent && offset <= r->size - a->extent) {
        if (a->region != CPU_REGION_DYNAMIC && a->lane_stride)
            return (struct cpu_place){base + offset * a->spread + lane * a->lane_stride, a->spread, true};
        const struct cpu_own *const own = (const struct cpu_own *)(const void *)&a->cell[a->n_cells];
        if (a->region == CPU_REGION_DYNAMIC && own[region].lane_stride)
            return (struct cpu_place){base + own[region].offset + offset + lane * own[region].lane_stride, 1, true};
        return (struct cpu_place){r->base + offset, 1, false};
    }
    struct cpu_fault *const f =
        cpu_fault_record(w, first + lane, a->flags & CPU_ACCESS_WRITE ? CPU_FAULT_WRITE : CPU_FAULT_READ,
                         (a->flags & CPU_ACCESS_EDGE) != 0);
    if (f) {
        f->site = a->site;
        f->region = region;
        f->offset = offset;
        f->size = r->size;
    }
    return (struct cpu_place){0};
}

static void count_change(struct cpu_worker *w, const struct cpu_access *a, bool thread)
{
    if (!thread || a->flags & CPU_ACCESS_OWN)
        w->changes++;
}

/* ---- loads, stores, zeros --------------------------------------------------------------------------------------- */

void helper_load(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                 uint32_t first)
{
    EACH_LANE(lanes, l)
    {
        const struct cpu_place p = resolve(w, a, room, base, l, first);
        for (uint32_t k = 0; k < a->n_cells; k++) {
            const struct cpu_cell *const c = &a->cell[k];
            char *const to = room + c->at + l * c->bytes;
            if (p.base)
                memcpy(to, p.base + c->offset * p.spread, c->bytes);
            else
                memset(to, 0, c->bytes);
        }
    }
}

void helper_store(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                  uint32_t first)
{
    EACH_LANE(lanes, l)
    {
        const struct cpu_place p = resolve(w, a, room, base, l, first);
        for (uint32_t k = 0; k < a->n_cells && p.base; k++) {
            const struct cpu_cell *const c = &a->cell[k];
            const char *const from = room + c->at + l * c->bytes;
            char *const to = p.base + c->offset * p.spread;
            if (a->flags & CPU_ACCESS_TRACKED && memcmp(to, from, c->bytes) != 0)
                count_change(w, a, p.thread);
            memcpy(to, from, c->bytes);
        }
    }
}

void helper_zero(struct cpu_worker *w, char *base, uint64_t bytes, uint64_t lane_stride, uint32_t lanes)
{
    (void)w;
    EACH_LANE(lanes, l)
    memset(base + l * lane_stride, 0, bytes);
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

static bool is_aligned(const char *at, unsigned bytes)
{
    return ((uintptr_t)at & (bytes - 1)) == 0;
}

/* Aligned scalars are read and written by one relaxed instruction. */
static uint64_t cell_get(const char *at, unsigned bytes)
{
    uint64_t x = 0;
    if (!is_aligned(at, bytes)) {
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
    if (!is_aligned(at, bytes)) {
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

static enum op combining(enum op op)
{
    return op == OP_ATOMIC_ADD   ? OP_ADD
           : op == OP_ATOMIC_SUB ? OP_SUB
           : op == OP_ATOMIC_AND ? OP_AND
           : op == OP_ATOMIC_OR  ? OP_OR
           : op == OP_ATOMIC_XOR ? OP_XOR
           : op == OP_ATOMIC_MIN ? OP_MIN
           : op == OP_ATOMIC_MAX ? OP_MAX
                                 : OP_NONE;
}

void helper_atomic(struct cpu_worker *w, const struct cpu_access *a, char *room, char *base, uint32_t lanes,
                   uint32_t first)
{
    const enum op op = (enum op)a->op, inner = combining(op);
    const enum scalar s = (enum scalar)a->scalar;
    const unsigned bytes = scalar_info[s].bytes;
    const struct cpu_cell *const to = &a->cell[a->n_cells - 1];
    if (a->flags & CPU_ACCESS_FENCED)
        __sync_synchronize();
    EACH_LANE(lanes, l)
    {
        const struct cpu_place p = resolve(w, a, room, base, l, first);
        uint64_t old = 0, desired = 0, x = 0, y = 0;
        if (a->n_cells > 1)
            memcpy(&x, room + a->cell[0].at + l * bytes, bytes);
        if (a->n_cells > 2)
            memcpy(&y, room + a->cell[1].at + l * bytes, bytes);
        if (p.base) {
            do {
                old = cell_get(p.base, bytes);
                if (op == OP_ATOMIC_CAS)
                    desired = old == x ? y : old;
                else if (op == OP_ATOMIC_LOAD)
                    desired = old;
                else
                    desired = inner == OP_NONE ? x : ir_scalar_eval(inner, s, s, 0, old, x, 0);
            } while (desired != old && !cell_replace(p.base, bytes, old, desired));
            if (desired != old)
                count_change(w, a, p.thread);
        }
        if (a->flags & CPU_ACCESS_OLD)
            memcpy(room + to->at + l * bytes, &old, bytes);
    }
    if (a->flags & CPU_ACCESS_FENCED)
        __sync_synchronize();
}
