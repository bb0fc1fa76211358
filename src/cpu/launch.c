/* launch.c - see launch.h.
 *
 * Threadgroups are items of a job of the pool, in linear order: those who take part run chunks of them in that order,
 * so the lowest threadgroup that is not done is always being run, and one that waits for lower ones goes on.
 *
 * Waking a thread costs more than a small launch takes. What is expected to be short is run by the caller alone; else
 * the caller begins, and offers the rest once it has seen that it will pay. What a threadgroup took the last time is
 * remembered.
 */
#include "cpu/launch.h"

#include "cpu/fault.h"
#include "cpu/pool.h"

#include <fenv.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define INLINE_NANOSECONDS 3000u   /* expected to take no longer: no clock is read */
#define AT_ONCE_NANOSECONDS 60000u /* expected to take longer: offered before anything is run */
#define AWAKE_NANOSECONDS 4000u    /* worth offering if a thread looks for work anyway */
#define ASLEEP_NANOSECONDS 25000u  /* worth waking threads */
#define CHUNK_NANOSECONDS 10000u   /* a chunk lasts longer, so that the counter is no matter */

#define FEW_ARGS 32u
#define STACK_AREA 8192u /* working memory of small launches */

struct cpu_job {
    struct pool_job pool; /* first: the pool gives this back */
    const struct cpu_grid *g;
    const void *const *value;
    uint32_t groups[3], full[3];              /* full: so many along each dimension are not cut */
    const struct cpu_variant *code[2];        /* whole, edge */
    size_t threadgroup_at, private_at, bytes; /* in a worker's memory, regions first */
    size_t threadgroup_bytes, sized_at;       /* sized_at: the part that the launch gave the size of */
    uint32_t fibers;                          /* stacks, 0: none needed */
    size_t stack;
    uint32_t stopped; /* atomic */
    uint32_t lock;    /* atomic: guards fault */
    struct cpu_fault fault;
};

static const int never_stop;

static size_t round_up(size_t x, size_t to)
{
    return (x + to - 1) / to * to;
}

static uint32_t product(const uint32_t d[3])
{
    return d[0] * d[1] * d[2];
}

/* ---- what a worker needs ----------------------------------------------------------------------------------------- */

static void plan_variant(struct cpu_job *j, const struct cpu_variant *v)
{
    const struct cpu_lowered *const x = &v->lowered;
    const size_t bundles = (product(j->g->group) + x->width - 1) / x->width;
    const size_t private_bytes = round_up(x->private_bytes, 64) * bundles;
    if (private_bytes > j->bytes) /* not yet the sum */
        j->bytes = private_bytes;
    if (x->threadgroup_bytes > j->sized_at)
        j->sized_at = x->threadgroup_bytes;
    if (!x->fibers)
        return;
    j->fibers = bundles > j->fibers ? (uint32_t)bundles : j->fibers;
    j->stack = v->stack > j->stack ? v->stack : j->stack;
}

/* Regions, threadgroup memory, private memory. */
static void plan_memory(struct cpu_job *j)
{
    size_t regions = 0;
    for (unsigned k = 0; k < 2; k++)
        if (j->code[k]) {
            plan_variant(j, j->code[k]);
            regions += j->code[k]->lowered.region.n;
        }
    const struct cpu_variant *const code = j->code[0] ? j->code[0] : j->code[1];
    j->threadgroup_at = j->private_at = 0;
    if (!code)
        return;
    const struct cpu_lowered *const any = &code->lowered;
    j->threadgroup_bytes = j->sized_at;
    for (uint32_t k = 0; k < any->region.n; k++)
        if (any->region.at[k].kind == CPU_REGION_SIZED)
            j->threadgroup_bytes = round_up(j->threadgroup_bytes, 16) + j->g->args[any->region.at[k].arg].size;
    j->threadgroup_at = round_up(regions * sizeof(struct cpu_region), 64);
    j->private_at = round_up(j->threadgroup_at + j->threadgroup_bytes, 64);
    j->bytes += j->private_at;
}

/* As the interpreter lays them out: sized memory follows that of the kernel's own arrays, in order. */
static void place_regions(const struct cpu_job *j, const struct cpu_lowered *x, char *threadgroup,
                          struct cpu_region *to)
{
    size_t at = j->sized_at;
    for (uint32_t k = 0; k < x->region.n; k++) {
        const struct cpu_region_info *const r = &x->region.at[k];
        to[k] = (struct cpu_region){0};
        switch ((enum cpu_region_kind)r->kind) {
        case CPU_REGION_NULL: break;
        case CPU_REGION_ARG:
            if (j->g->args[r->arg].data)
                to[k] = (struct cpu_region){j->g->args[r->arg].data, j->g->args[r->arg].size};
            break;
        case CPU_REGION_SIZED:
            at = round_up(at, 16);
            to[k] = (struct cpu_region){threadgroup + at, j->g->args[r->arg].size};
            at += j->g->args[r->arg].size;
            break;
        case CPU_REGION_THREADGROUP: to[k] = (struct cpu_region){threadgroup + r->offset, r->size}; break;
        case CPU_REGION_THREAD: to[k].size = r->size; break;
        }
    }
}

struct runner { /* a worker and its two tables of regions */
    struct cpu_worker w;
    const struct cpu_region *region[2];
};

static void begin(struct runner *r, struct cpu_job *j, uint32_t id, char *memory, struct fiber_set *fibers)
{
    const struct cpu_grid *const g = j->g;
    struct cpu_worker *const w = &r->w;
    struct cpu_region *at = (struct cpu_region *)(void *)memory;
    w->value = j->value;
    w->stop = g->stop ? g->stop : &never_stop;
    w->helper = cpu_helpers;
    w->threadgroup_memory = memory + j->threadgroup_at;
    w->private_memory = memory + j->private_at;
    w->fault.kind = CPU_FAULT_NONE;
    w->changes = 0;
    w->job = j;
    w->fibers = fibers;
    w->id = id;
    for (unsigned k = 0; k < 3; k++) {
        w->grid[k] = g->threads[k];
        w->asked[k] = g->group[k];
        w->groups[k] = j->groups[k];
    }
    for (unsigned k = 0; k < 2; k++) {
        r->region[k] = at;
        if (j->code[k]) {
            place_regions(j, &j->code[k]->lowered, w->threadgroup_memory, at);
            at += j->code[k]->lowered.region.n;
        }
    }
}

/* ---- threadgroups ------------------------------------------------------------------------------------------------ */

static bool is_stopped(const struct cpu_worker *w)
{
    return __atomic_load_n(w->stop, __ATOMIC_RELAXED) != 0;
}

/* Generated code zeroes the kernel's own arrays, but on fibers, where no bundle is the first. */
static void zero_threadgroup(const struct cpu_job *j, struct cpu_worker *w, bool all)
{
    const size_t from = all ? 0 : j->sized_at;
    if (j->threadgroup_bytes > from)
        memset(w->threadgroup_memory + from, 0, j->threadgroup_bytes - from);
}

/* Threadgroups x0 to x1 - 1 of one row, all of the size w->dims. True: stopped. */
static bool run_row(struct cpu_job *j, struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    const struct cpu_variant *const v = w->variant;
    bool stopped = false;
    if (!v->lowered.fibers && j->threadgroup_bytes == j->sized_at) {
        stopped = v->kernel(w, x0, x1, y, z) != 0;
    } else {
        const uint32_t width = v->lowered.width, n = (product(w->dims) + width - 1) / width;
        for (uint32_t x = x0; x < x1 && !stopped; x++) {
            zero_threadgroup(j, w, v->lowered.fibers);
            w->group[0] = x;
            w->group[1] = y;
            w->group[2] = z;
            if (v->lowered.fibers)
                stopped = is_stopped(w) || fiber_run(w, v->bundle, n, width);
            else
                stopped = v->kernel(w, x, x + 1, y, z) != 0;
        }
    }
    return stopped;
}

static uint32_t cut(const struct cpu_job *j, unsigned k, uint32_t at)
{
    return at < j->full[k] ? j->g->group[k] : j->g->threads[k] - at * j->g->group[k];
}

/* n threadgroups from the linear index `first` on. */
static bool run_groups(struct runner *r, uint64_t first, uint64_t n)
{
    struct cpu_worker *const w = &r->w;
    struct cpu_job *const j = w->job;
    uint32_t x = (uint32_t)(first % j->groups[0]);
    const uint64_t row = first / j->groups[0];
    uint32_t y = (uint32_t)(row % j->groups[1]), z = (uint32_t)(row / j->groups[1]);
    while (n) {
        const bool inner = x < j->full[0];
        uint64_t run = inner ? j->full[0] - x : 1;
        if (run > n)
            run = n;
        const unsigned which = !inner || y >= j->full[1] || z >= j->full[2];
        w->variant = j->code[which];
        w->region = r->region[which];
        w->dims[0] = cut(j, 0, x);
        w->dims[1] = cut(j, 1, y);
        w->dims[2] = cut(j, 2, z);
        if (run_row(j, w, x, x + (uint32_t)run, y, z))
            return true;
        n -= run;
        x += (uint32_t)run;
        if (x < j->groups[0])
            continue;
        x = 0;
        if (++y < j->groups[1])
            continue;
        y = 0;
        z++;
    }
    return false;
}

static void end(struct runner *r)
{
    struct cpu_job *const j = r->w.job;
    if (r->w.fault.kind == CPU_FAULT_NONE)
        return;
    while (__atomic_exchange_n(&j->lock, 1, __ATOMIC_ACQUIRE))
        pool_pause();
    cpu_fault_merge(&j->fault, &r->w.fault);
    __atomic_store_n(&j->lock, 0, __ATOMIC_RELEASE);
}

static void run_chunks(struct runner *r)
{
    struct cpu_job *const j = r->w.job;
    uint64_t first, n;
    while (!__atomic_load_n(&j->stopped, __ATOMIC_RELAXED) && pool_take(&j->pool, r->w.id, &first, &n))
        if (is_stopped(&r->w) || run_groups(r, first, n))
            __atomic_store_n(&j->stopped, 1, __ATOMIC_RELAXED);
    pool_leave(&j->pool, r->w.id);
}

/* A thread of the pool. Without memory it leaves the work to the others. */
static void help(struct pool_job *pool, uint32_t id, struct pool_scratch *scratch)
{
    struct cpu_job *const j = (struct cpu_job *)(void *)pool;
    struct runner r;
    if (!scratch_need(scratch, j->bytes) || (j->fibers && !fiber_need(&scratch->fibers, j->fibers, j->stack)))
        return;
    begin(&r, j, id, scratch->memory, scratch->fibers);
    run_chunks(&r);
    end(&r);
}

bool cpu_others_before(const struct cpu_worker *w)
{
    return w->job && pool_others_before(&w->job->pool, w->id);
}

/* ---- the caller -------------------------------------------------------------------------------------------------- */

static const struct cpu_variant *main_code(const struct cpu_job *j)
{
    return j->code[0] ? j->code[0] : j->code[1];
}

/* Nanoseconds a threadgroup is expected to take. Never 0. */
static uint64_t expected(const struct cpu_job *j)
{
    const struct cpu_variant *const v = main_code(j);
    const uint64_t seen = __atomic_load_n(&v->cost, __ATOMIC_RELAXED);
    if (seen)
        return seen;
    const uint64_t bundles = (product(j->g->group) + v->lowered.width - 1) / v->lowered.width;
    const uint64_t guess = bundles * v->lowered.weight / 2 + 10;
    /* A loop may run for any time: then the first launch tells. */
    return v->lowered.bounded ? guess : guess > AT_ONCE_NANOSECONDS ? guess : AT_ONCE_NANOSECONDS;
}

static void learn(const struct cpu_job *j, uint64_t nanoseconds, uint64_t groups)
{
    const uint64_t cost = nanoseconds / (groups ? groups : 1) + 1, most = UINT32_MAX;
    /* A hint: the only thing that changes in a variant. */
    __atomic_store_n(&((struct cpu_variant *)(uintptr_t)main_code(j))->cost, (uint32_t)(cost < most ? cost : most),
                     __ATOMIC_RELAXED);
}

/* a * b, but no more than 2^63. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) || r >> 63 ? (uint64_t)1 << 63 : r;
}

static void run_shared(struct runner *r, uint64_t done, uint64_t cost)
{
    struct cpu_job *const j = r->w.job;
    uint64_t first[POOL_MOST];
    for (uint32_t k = 0; k < j->pool.limit; k++)
        first[k] = UINT64_MAX;
    j->pool.next = done;
    j->pool.least = CHUNK_NANOSECONDS / cost + 1;
    j->pool.first = first;
    j->pool.work = help;
    struct pool_slot *const slot = pool_offer(&j->pool);
    if (!slot)
        j->pool.limit = 1;
    const uint64_t start = os_nanoseconds();
    uint64_t begun, n, ran = 0;
    while (!__atomic_load_n(&j->stopped, __ATOMIC_RELAXED) && pool_take(&j->pool, 0, &begun, &n)) {
        if (is_stopped(&r->w) || run_groups(r, begun, n))
            __atomic_store_n(&j->stopped, 1, __ATOMIC_RELAXED);
        ran += n;
    }
    if (ran && !__atomic_load_n(&j->stopped, __ATOMIC_RELAXED))
        learn(j, os_nanoseconds() - start, ran);
    pool_leave(&j->pool, 0);
    pool_finish(slot);
    j->pool.first = NULL;
}

static void run_all(struct runner *r)
{
    struct cpu_job *const j = r->w.job;
    const uint64_t total = j->pool.total;
    uint64_t cost = expected(j);
    if (is_stopped(&r->w)) {
        j->stopped = 1;
        return;
    }
    if (total == 1 || j->pool.limit == 1 ||
        (main_code(j)->lowered.bounded && times(cost, total) < INLINE_NANOSECONDS)) {
        j->stopped = run_groups(r, 0, total);
        return;
    }
    if (times(cost, total) > AT_ONCE_NANOSECONDS) {
        run_shared(r, 0, cost);
        return;
    }
    const uint64_t start = os_nanoseconds();
    uint64_t done = 0, n = INLINE_NANOSECONDS / cost + 1;
    while (done < total) {
        n = n < total - done ? n : total - done;
        if (run_groups(r, done, n)) {
            j->stopped = 1;
            return;
        }
        done += n;
        const uint64_t spent = os_nanoseconds() - start;
        cost = spent / (done ? done : 1) + 1;
        if (done < total && times(cost, total - done) > (pool_is_awake() ? AWAKE_NANOSECONDS : ASLEEP_NANOSECONDS)) {
            run_shared(r, done, cost);
            return;
        }
        n = done;
    }
    learn(j, os_nanoseconds() - start, total);
}

static void run_guarded(struct runner *r)
{
    /* Results must not depend on the rounding mode or the flush-to-zero of a process. */
#if defined(__SSE2__)
    const unsigned before = _mm_getcsr();
    if ((before & ~0x3fu) != 0x1f80)
        _mm_setcsr(0x1f80);
    run_all(r);
    if ((before & ~0x3fu) != 0x1f80)
        _mm_setcsr(before);
#else
    fenv_t env;
    (void)fegetenv(&env);
    (void)fesetenv(FE_DFL_ENV);
    run_all(r);
    (void)fesetenv(&env);
#endif
}

static void run_with(struct cpu_job *j, char *memory, struct fiber_set *fibers)
{
    struct runner r;
    begin(&r, j, 0, memory, fibers);
    run_guarded(&r);
    end(&r);
}

static sk_status run_in_scratch(struct cpu_job *j, sk_error *err)
{
    struct pool_scratch *const s = scratch_borrow();
    const bool room = s && scratch_need(s, j->bytes) && (!j->fibers || fiber_need(&s->fibers, j->fibers, j->stack));
    if (room)
        run_with(j, s->memory, s->fibers);
    scratch_return(s);
    return room ? SK_OK : ERR(err, OUT_OF_MEMORY);
}

sk_status cpu_run(const struct cpu_grid *g, struct mem *mem, sk_error *err)
{
    struct cpu_job j;
    const void *few[FEW_ARGS];
    struct mem *const temp = g->n_args > FEW_ARGS ? mem_temp(mem) : NULL;
    const void **const value = temp ? mem_alloc(temp, g->n_args * sizeof *value) : few;
    for (size_t k = 0; k < g->n_args; k++)
        value[k] = g->is_value[k] ? g->args[k].data : NULL;
    j.g = g;
    j.value = value;
    for (unsigned k = 0; k < 3; k++) {
        j.full[k] = g->threads[k] / g->group[k];
        j.groups[k] = j.full[k] + (g->threads[k] % g->group[k] != 0);
    }
    j.code[0] = g->whole;
    j.code[1] = g->edge;
    j.bytes = j.sized_at = j.stack = 0;
    j.fibers = j.stopped = j.lock = 0;
    j.fault.kind = CPU_FAULT_NONE;
    const uint64_t total = (uint64_t)j.groups[0] * j.groups[1];
    j.pool.total = times(total, j.groups[2]);
    j.pool.limit = g->workers < POOL_MOST ? g->workers : POOL_MOST;
    if (j.pool.limit > j.pool.total)
        j.pool.limit = (uint32_t)j.pool.total;
    j.pool.next = 0;
    j.pool.joined = 0;
    j.pool.first = NULL;
    plan_memory(&j);

    sk_status st = SK_OK;
    if (!j.fibers && j.bytes <= STACK_AREA) {
        _Alignas(64) char area[STACK_AREA];
        run_with(&j, area, NULL);
    } else {
        st = run_in_scratch(&j, err);
    }
    if (temp)
        mem_temp_end(temp);
    TRY(st);
    return j.stopped ? ERR(err, LAUNCH_STOPPED) : cpu_fault_report(&j.fault, g->kernel, err);
}
