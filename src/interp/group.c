/* group.c - a launch: threadgroups, their simdgroups, barriers.
 *
 * Threadgroups run one after the other in linear order, x fastest. Without barriers a simdgroup runs to its end before
 * the next one starts, all in one register file. With barriers every simdgroup has its own; it runs until it ends or
 * reaches a barrier, and when all live threads wait at one barrier, all go on. Lanes that reach a barrier while others
 * of their simdgroup stand elsewhere wait as a fragment, with a copy of the registers; the others go on and do not
 * wait for them where they would have met again. Lanes of a simdgroup that a barrier releases go on together.
 */
#include "interp/program.h"

#include <fenv.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static void run_simd(struct simd *s, const struct inst *i)
{
    while (i)
        i = i->run(s, i);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static uint32_t div_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static uint32_t product(const uint32_t *d)
{
    return d[0] * d[1] * d[2];
}

static void same(uint32_t *to, uint32_t x)
{
    for (unsigned l = 0; l < LANES; l++)
        to[l] = x;
}

static void ramp(uint32_t *to, uint32_t first, unsigned shift, uint32_t mask)
{
    for (unsigned l = 0; l < LANES; l++)
        to[l] = (first + l) >> shift & mask;
}

static void attribute_lanes(const struct run *r, uint32_t simd, enum attribute a, unsigned k, uint32_t *to)
{
    const uint32_t first = simd * LANES, asked = product(r->l->threadgroup);
    switch (a) {
    case ATTR_THREAD_POSITION_IN_GRID:
        for (unsigned l = 0; l < LANES; l++)
            to[l] = r->origin[k] + r->local[k][first + l];
        break;
    case ATTR_THREADS_PER_GRID: same(to, r->l->threads[k]); break;
    case ATTR_THREAD_POSITION_IN_THREADGROUP: memcpy(to, r->local[k] + first, LANES * sizeof *to); break;
    case ATTR_THREADGROUP_POSITION_IN_GRID: same(to, r->group_at[k]); break;
    case ATTR_THREADS_PER_THREADGROUP: same(to, r->dims[k]); break;
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP: same(to, r->l->threadgroup[k]); break;
    case ATTR_THREADGROUPS_PER_GRID: same(to, r->groups[k]); break;
    case ATTR_THREAD_INDEX_IN_THREADGROUP: ramp(to, first, 0, UINT32_MAX); break;
    case ATTR_THREAD_INDEX_IN_SIMDGROUP: ramp(to, 0, 0, UINT32_MAX); break;
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: same(to, simd); break;
    case ATTR_SIMDGROUPS_PER_THREADGROUP: same(to, r->n_simds); break;
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP: same(to, div_up(asked, LANES)); break;
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH: same(to, LANES); break;
    case ATTR_THREAD_INDEX_IN_QUADGROUP: ramp(to, 0, 0, 3); break;
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: ramp(to, first, 2, UINT32_MAX); break;
    case ATTR_QUADGROUPS_PER_THREADGROUP: same(to, div_up(r->n_threads, 4)); break;
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP: same(to, div_up(asked, 4)); break;
    case ATTR_NONE:
    case ATTR_COUNT: same(to, 0); break;
    }
}

/* Writes the attributes first to end - 1 of the program into the register file. */
static void fill_attributes(struct simd *s, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++) {
        const struct attribute_leaf *const f = &s->run->p->attribute[k];
        const unsigned bytes = scalar_info[f->scalar].bytes;
        uint32_t x[LANES];
        attribute_lanes(s->run, s->index, (enum attribute)f->attribute, f->component, x);
        if (bytes == sizeof *x)
            memcpy(s->regs + f->reg, x, sizeof x);
        else
            for (unsigned l = 0; l < LANES; l++)
                lane_set(s, f->reg, bytes, l, x[l]);
    }
}

/* ---- fragments -------------------------------------------------------------------------------------------------- */

static void *aligned(char *p)
{
    return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

/* Register file, slots and counts follow the struct. */
static struct simd *simd_new(struct run *r, uint32_t index)
{
    const struct interp_program *const p = r->p;
    const size_t counts = sizeof(struct wait_count) * p->n_counts, slots = sizeof(uint32_t) * p->n_slots;
    char *const block = mem_zalloc(r->mem, 64 + r->file_bytes + sizeof(struct simd) + counts + slots);
    char *const regs = aligned(block);
    struct simd *const s = (struct simd *)(void *)(regs + r->file_bytes);
    s->regs = regs;
    s->run = r;
    s->count = (struct wait_count *)(void *)(s + 1);
    s->slot = (uint32_t *)(void *)((char *)s->count + counts);
    s->index = index;
    return s;
}

/* The active lanes of s as a fragment of their own. */
static struct simd *split(struct simd *s)
{
    struct run *const r = s->run;
    struct simd *const f = r->spare ? r->spare : simd_new(r, s->index);
    if (r->spare)
        r->spare = f->next;
    memcpy(f->regs, s->regs, r->file_bytes);
    memset(f->slot, 0, sizeof *f->slot * r->p->n_slots); /* an active lane waits nowhere */
    if (r->p->n_counts)
        memcpy(f->count, s->count, sizeof *f->count * r->p->n_counts);
    f->mask = s->mask;
    f->gone = ~s->mask;
    f->index = s->index;
    f->changes = s->changes;
    f->thread_changes = s->thread_changes;
    s->gone |= s->mask;
    s->mask = 0;
    return f;
}

/* x: site. skip: where the lanes that stand elsewhere go on. */
const struct inst *group_barrier(struct simd *s, const struct inst *i)
{
    __sync_synchronize();
    if (nobody_waits(s)) {
        s->parked = i;
        s->pc = i + 1;
        return NULL;
    }
    struct simd *const f = split(s), *const head = s->run->simds[s->index];
    f->parked = i;
    f->pc = i + 1;
    f->next = head->next;
    head->next = f;
    return i + i->skip;
}

static void copy_lanes(struct simd *to, const struct simd *from, uint32_t lanes)
{
    const struct interp_program *const p = to->run->p;
    uint32_t at = 0;
    for (unsigned k = 0; k < 4; k++) {
        const unsigned bytes = 8u >> k;
        for (; at + bytes * LANES <= p->class_end[k]; at += bytes * LANES)
            EACH_LANE(lanes, l)
        lane_set(to, at, bytes, l, lane_get(from, at, bytes, l));
        at = p->class_end[k];
    }
    for (uint32_t k = 0; k < p->n_region; k++) {
        const struct region_info *const r = &p->region[k];
        if (r->kind != REGION_THREAD)
            continue;
        EACH_LANE(lanes, l)
        memcpy(to->regs + r->offset + r->stride * l, from->regs + r->offset + r->stride * l, r->size);
    }
}

static void exchange(struct simd *a, struct simd *b)
{
    const struct simd x = *a, y = *b;
    *a = y;
    *b = x;
    a->next = x.next;
    b->next = y.next;
}

/* Adds f to s. Both wait at one barrier with all the lanes they have, so no slot of a construct around it holds any. */
static void merge(struct simd *s, struct simd *f)
{
    if (s->gone == ALL_LANES) {
        exchange(s, f);
        return;
    }
    copy_lanes(s, f, ~f->gone);
    s->mask |= f->mask;
    s->gone &= f->gone;
    s->changes += f->changes + 1; /* counts of waiting loops begin again */
}

static void release(struct simd *head)
{
    struct run *const r = head->run;
    while (head->next) {
        struct simd *const f = head->next;
        head->next = f->next;
        if (f->gone != ALL_LANES)
            merge(head, f);
        f->next = r->spare;
        r->spare = f;
    }
    head->parked = NULL;
}

/* ---- threadgroups ----------------------------------------------------------------------------------------------- */

static void start(struct simd *s, uint32_t index)
{
    struct run *const r = s->run;
    const uint32_t rest = r->n_threads - index * LANES;
    s->index = index;
    s->mask = rest >= LANES ? ALL_LANES : ((uint32_t)1 << rest) - 1;
    s->gone = ~s->mask;
    s->parked = NULL;
    fill_attributes(s, r->p->first_varying, r->p->n_attribute);
}

static void run_plain(struct run *r)
{
    struct simd *const s = r->simds[0];
    fill_attributes(s, r->p->first_grouped, r->p->first_varying);
    for (uint32_t k = 0; k < r->n_simds && !r->stopped; k++) {
        start(s, k);
        run_simd(s, r->p->code);
    }
}

static uint32_t lowest_thread(const struct simd *s)
{
    return s->index * LANES + (uint32_t)__builtin_ctz(s->mask);
}

/* Two fragments that wait at different barriers, the lowest thread's first; false if there are none. `waiting`: does
 * anyone wait at all? */
static bool disagree(const struct run *r, struct simd **first, struct simd **other, bool *waiting)
{
    *first = *other = NULL;
    for (uint32_t k = 0; k < r->n_simds; k++)
        for (struct simd *s = r->simds[k]; s; s = s->next)
            if (s->parked && (!*first || lowest_thread(s) < lowest_thread(*first)))
                *first = s;
    *waiting = *first != NULL;
    for (uint32_t k = 0; k < r->n_simds && *first; k++)
        for (struct simd *s = r->simds[k]; s; s = s->next)
            if (s->parked && s->parked != (*first)->parked && (!*other || lowest_thread(s) < lowest_thread(*other)))
                *other = s;
    return *other != NULL;
}

static void run_with_barriers(struct run *r)
{
    for (uint32_t k = 0; k < r->n_simds; k++) {
        struct simd *const s = r->simds[k];
        start(s, k);
        fill_attributes(s, r->p->first_grouped, r->p->first_varying);
        s->pc = r->p->code;
    }
    for (bool waiting = true; waiting;) {
        for (uint32_t k = 0; k < r->n_simds; k++) {
            struct simd *const s = r->simds[k]; /* fragments made meanwhile wait */
            if (s->gone != ALL_LANES)
                run_simd(s, s->pc);
            if (r->stopped)
                return;
        }
        struct simd *first, *other;
        const bool stuck = disagree(r, &first, &other, &waiting);
        if (stuck)
            fault_barriers(first, other);
        for (uint32_t k = 0; k < r->n_simds; k++)
            release(r->simds[k]);
        if (stuck)
            return;
    }
}

/* ---- the launch ------------------------------------------------------------------------------------------------- */

static void locate(struct run *r)
{
    if (memcmp(r->local_dims, r->dims, sizeof r->dims) == 0)
        return;
    memcpy(r->local_dims, r->dims, sizeof r->dims);
    uint32_t k = 0;
    for (uint32_t z = 0; z < r->dims[2]; z++)
        for (uint32_t y = 0; y < r->dims[1]; y++)
            for (uint32_t x = 0; x < r->dims[0]; x++, k++) {
                r->local[0][k] = x;
                r->local[1][k] = y;
                r->local[2][k] = z;
            }
}

static void run_group(struct run *r, uint32_t x, uint32_t y, uint32_t z)
{
    const uint32_t at[3] = {x, y, z};
    for (unsigned k = 0; k < 3; k++) {
        r->group_at[k] = at[k];
        r->origin[k] = at[k] * r->l->threadgroup[k];
        const uint32_t rest = r->l->threads[k] - r->origin[k];
        r->dims[k] = rest < r->l->threadgroup[k] ? rest : r->l->threadgroup[k];
    }
    r->n_threads = product(r->dims);
    r->n_simds = div_up(r->n_threads, LANES);
    locate(r);
    if (r->threadgroup_bytes)
        memset(r->threadgroup_memory, 0, r->threadgroup_bytes);
    if (r->p->has_barrier)
        run_with_barriers(r);
    else
        run_plain(r);
}

static sk_status run_all(struct run *r)
{
    for (uint32_t z = 0; z < r->groups[2]; z++)
        for (uint32_t y = 0; y < r->groups[1]; y++)
            for (uint32_t x = 0; x < r->groups[0]; x++, r->group++) {
                if (__atomic_load_n(r->stop, __ATOMIC_RELAXED))
                    r->stopped = true;
                if (r->stopped)
                    return SK_OK;
                run_group(r, x, y, z);
            }
    return SK_OK;
}

/* Constants, values and the attributes of the whole grid. */
static void fill_file(struct simd *s)
{
    const struct interp_program *const p = s->run->p;
    for (uint32_t k = 0; k < p->n_constant; k++)
        for (unsigned l = 0; l < LANES; l++)
            lane_set(s, p->constant[k].reg, p->constant[k].bytes, l, p->constant[k].bits);
    for (uint32_t k = 0; k < p->n_value; k++) {
        const struct value_leaf *const v = &p->value[k];
        const struct interp_arg *const a = &s->run->l->args[v->arg];
        const unsigned bytes = scalar_info[v->kind].bytes;
        uint64_t x = 0;
        if (v->offset + bytes <= a->size)
            memcpy(&x, (const char *)a->data + v->offset, bytes);
        if (v->kind == S_BOOL)
            x = x != 0;
        for (unsigned l = 0; l < LANES; l++)
            lane_set(s, v->reg, bytes, l, x);
    }
    fill_attributes(s, 0, p->first_grouped);
}

static void place_regions(struct run *r)
{
    const struct interp_program *const p = r->p;
    r->region = mem_zalloc(r->mem, sizeof *r->region * p->n_region);
    r->threadgroup_bytes = p->threadgroup_bytes;
    for (uint32_t k = 0; k < p->n_region; k++)
        if (p->region[k].kind == REGION_ARG && p->region[k].sized)
            r->threadgroup_bytes = ((r->threadgroup_bytes + 15) & ~(size_t)15) + r->l->args[p->region[k].arg].size;
    r->threadgroup_memory = aligned(r->threadgroup_bytes ? mem_alloc(r->mem, 64 + r->threadgroup_bytes) : NULL);
    size_t at = p->threadgroup_bytes;
    for (uint32_t k = 0; k < p->n_region; k++) {
        const struct region_info *const info = &p->region[k];
        struct region_memory *const m = &r->region[k];
        switch ((enum region_kind)info->kind) {
        case REGION_NULL: break;
        case REGION_ARG: {
            const struct interp_arg *const a = &r->l->args[info->arg];
            at = info->sized ? (at + 15) & ~(size_t)15 : at;
            m->base = info->sized ? r->threadgroup_memory + at : a->data;
            m->size = m->base ? a->size : 0;
            at += info->sized ? a->size : 0;
            break;
        }
        case REGION_THREADGROUP:
            m->base = r->threadgroup_memory + info->offset;
            m->size = info->size;
            break;
        case REGION_THREAD: m->size = info->size; break;
        }
    }
}

static void prepare(struct run *r)
{
    const uint32_t n = product(r->l->threadgroup), n_simds = div_up(n, LANES);
    for (unsigned k = 0; k < 3; k++) {
        r->groups[k] = div_up(r->l->threads[k], r->l->threadgroup[k]);
        r->local[k] = mem_zalloc(r->mem, sizeof *r->local[k] * n_simds * LANES);
    }
    place_regions(r);
    r->file_bytes = (r->p->class_end[3] + r->p->thread_bytes + 63) & ~(size_t)63;
    r->n_files = r->p->has_barrier ? n_simds : 1;
    r->simds = mem_zalloc(r->mem, sizeof *r->simds * r->n_files);
    for (uint32_t k = 0; k < r->n_files; k++) {
        r->simds[k] = simd_new(r, k);
        fill_file(r->simds[k]);
    }
}

sk_status interp_run(const struct interp_program *p, const struct interp_launch *l, struct mem *mem, sk_error *err)
{
    struct mem *const t = mem_temp(mem);
    struct run *const r = mem_zalloc(t, sizeof *r);
    r->p = p;
    r->l = l;
    r->mem = t;
    r->stop = l->stop ? l->stop : &r->never_stop;
    r->loop_limit = l->loop_limit ? l->loop_limit : LOOP_LIMIT;
    prepare(r);

    /* Results must not depend on the rounding mode or on the flush-to-zero of a process: the default for the launch,
     * and the caller's again after it, hence a recovery point here. */
    fenv_t env;
    sk_status status;
    (void)fegetenv(&env);
    (void)fesetenv(FE_DFL_ENV);
#if defined(__SSE2__)
    _mm_setcsr(0x1f80);
#endif
    MEM_GUARD(mem, err, status, run_all(r));
    (void)fesetenv(&env);

    if (status == SK_OK)
        status = r->stopped ? ERR(err, LAUNCH_STOPPED) : fault_report(r, err);
    mem_temp_end(t);
    return status;
}
