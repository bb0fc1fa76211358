/* pool.c - launches over the pool, with kernels written in C in the place of compiled ones: every threadgroup once
 * and in order, edges, memory of threadgroups, faults, stopping, waiting for lower threadgroups, several launches at
 * once, fork. */
#include "check.h"

#include "base/base.h"
#include "cpu/fault.h"
#include "cpu/launch.h"
#include "cpu/pool.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct mem mem;
static uint32_t wrong_in_threads;

/* CHECK is for one thread. */
#define EXPECT(cond)                                                                                                   \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            __atomic_add_fetch(&wrong_in_threads, (uint32_t)__LINE__, __ATOMIC_RELAXED);                               \
    } while (0)

/* ---- launches of C functions ------------------------------------------------------------------------------------- */

static struct cpu_variant variant(cpu_kernel *k)
{
    struct cpu_variant v = {.kernel = k};
    v.lowered.width = 32;
    v.lowered.weight = 50;
    return v;
}

static void add_region(struct cpu_variant *v, enum cpu_region_kind kind, uint32_t arg, uint64_t size, uint64_t offset)
{
    VEC_PUSH(&mem, &v->lowered.region,
             ((struct cpu_region_info){
                 .name = "x", .elem = 4, .size = size, .offset = offset, .arg = arg, .kind = (uint8_t)kind}));
}

static void add_site(struct cpu_variant *v, uint32_t line)
{
    VEC_PUSH(&mem, &v->lowered.site, ((struct cpu_site){"kernel.py", line, 1}));
}

static void drop(struct cpu_variant *v)
{
    VEC_FREE(&mem, &v->lowered.region);
    VEC_FREE(&mem, &v->lowered.site);
}

static struct cpu_grid grid_of(const struct cpu_variant *v, uint32_t groups, uint32_t workers)
{
    return (struct cpu_grid){
        .kernel = "k", .whole = v, .threads = {groups * 32, 1, 1}, .group = {32, 1, 1}, .workers = workers};
}

static sk_status run(struct mem *m, const struct cpu_grid *g, sk_error *err)
{
    sk_status st;
    MEM_GUARD(m, err, st, cpu_run(g, m, err));
    return st;
}

/* ---- every threadgroup once -------------------------------------------------------------------------------------- */

static uint8_t *hits;
static volatile uint32_t work_per_group;

static void spend(uint32_t n)
{
    for (volatile uint32_t k = 0; k < n; k++)
        ;
}

static int32_t count(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    for (uint32_t x = x0; x < x1; x++) {
        const size_t at = ((size_t)z * w->groups[1] + y) * w->groups[0] + x;
        __atomic_add_fetch(&hits[at], 1, __ATOMIC_RELAXED);
        spend(work_per_group);
    }
    return 0;
}

static void test_once(uint32_t workers)
{
    struct cpu_variant v = variant(count);
    add_region(&v, CPU_REGION_NULL, 0, 0, 0);
    const uint32_t sizes[][3] = {{1, 1, 1},   {2, 1, 1},   {7, 1, 1},     {1000, 1, 1},
                                 {13, 11, 7}, {1, 500, 1}, {100000, 1, 1}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint32_t cost = 0; cost < 3; cost++) {
            const size_t n = (size_t)sizes[k][0] * sizes[k][1] * sizes[k][2];
            hits = calloc(n, 1);
            work_per_group = cost == 0 ? 0 : cost == 1 ? 20 : n < 2000 ? 3000 : 0;
            const struct cpu_grid g = {.kernel = "k",
                                       .whole = &v,
                                       .threads = {sizes[k][0] * 4, sizes[k][1] * 2, sizes[k][2]},
                                       .group = {4, 2, 1},
                                       .workers = workers};
            CHECK_EQ(run(&mem, &g, NULL), SK_OK);
            size_t wrong = 0;
            for (size_t i = 0; i < n; i++)
                wrong += hits[i] != 1;
            CHECK_EQ(wrong, 0);
            free(hits);
        }
    drop(&v);
}

/* ---- edges: which code runs what, and of which size -------------------------------------------------------------- */

static uint32_t threads_seen[3];
static uint32_t whole_seen, edge_seen;

static int32_t sizes(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    const uint32_t at[3] = {x0, y, z};
    for (unsigned k = 0; k < 3; k++) {
        const uint32_t rest = w->grid[k] - at[k] * w->asked[k];
        EXPECT(w->dims[k] == (rest < w->asked[k] ? rest : w->asked[k]));
    }
    const uint32_t n = w->dims[0] * w->dims[1] * w->dims[2] * (x1 - x0);
    __atomic_add_fetch(&threads_seen[0], n, __ATOMIC_RELAXED);
    const bool full = w->dims[0] == w->asked[0] && w->dims[1] == w->asked[1] && w->dims[2] == w->asked[2];
    EXPECT(w->variant->opt.edge == (!full));
    __atomic_add_fetch(full ? &whole_seen : &edge_seen, x1 - x0, __ATOMIC_RELAXED);
    return 0;
}

static void test_edges(void)
{
    struct cpu_variant whole = variant(sizes), edge = variant(sizes);
    edge.opt.edge = true;
    const uint32_t n[][3] = {{10, 7, 5}, {3, 1, 1}, {8, 8, 8}, {9, 8, 8}, {8, 9, 8}, {8, 8, 9}, {100, 1, 3}};
    for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
        const uint32_t g[3] = {4, 2, 2};
        uint32_t full = 1, all = 1;
        for (unsigned d = 0; d < 3; d++) {
            full *= n[k][d] / g[d];
            all *= (n[k][d] + g[d] - 1) / g[d];
        }
        const struct cpu_grid launch = {.kernel = "k",
                                        .whole = full ? &whole : NULL,
                                        .edge = full != all ? &edge : NULL,
                                        .threads = {n[k][0], n[k][1], n[k][2]},
                                        .group = {4, 2, 2},
                                        .workers = 1};
        threads_seen[0] = whole_seen = edge_seen = 0;
        CHECK_EQ(run(&mem, &launch, NULL), SK_OK);
        CHECK_EQ(threads_seen[0], n[k][0] * n[k][1] * n[k][2]);
        CHECK_EQ(whole_seen, full);
        CHECK_EQ(edge_seen, all - full);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int32_t regions(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)y, (void)z;
    for (uint32_t x = x0; x < x1; x++) {
        EXPECT(((uintptr_t)w->threadgroup_memory & 63) == 0 && ((uintptr_t)w->private_memory & 63) == 0);
        EXPECT(w->region[0].base == NULL && w->region[0].size == 0);
        EXPECT(w->region[1].size == (400));
        EXPECT(w->region[2].size == (100));
        EXPECT(w->region[3].size == (40));
        EXPECT(w->region[2].base == w->threadgroup_memory + 64);
        EXPECT(w->region[3].base == w->threadgroup_memory + 176);
        EXPECT(w->region[4].base == w->threadgroup_memory + 16 && w->region[4].size == 36);
        EXPECT(w->region[5].base == NULL && w->region[5].size == 8);
        EXPECT(w->value[0] == NULL && *(const int *)w->value[3] == 77);
        for (int k = 0; k < 40; k++) {
            EXPECT(w->region[3].base[k] == 0); /* sized by the launch: zero in each threadgroup */
            w->region[3].base[k] = 1;
        }
        for (size_t k = 0; k < (size_t)1 << 15; k++) /* 1,024 threads in 32 bundles of 1,000 bytes */
            w->private_memory[k] = 3;
        ((uint32_t *)(void *)w->region[1].base)[x] += x;
    }
    return 0;
}

static void test_memory(void)
{
    struct cpu_variant v = variant(regions);
    add_region(&v, CPU_REGION_NULL, 0, 0, 0);
    add_region(&v, CPU_REGION_ARG, 0, 0, 0);
    add_region(&v, CPU_REGION_SIZED, 1, 0, 0);
    add_region(&v, CPU_REGION_SIZED, 2, 0, 0);
    add_region(&v, CPU_REGION_THREADGROUP, 0, 36, 16);
    add_region(&v, CPU_REGION_THREAD, 0, 8, 0);
    v.lowered.threadgroup_bytes = 52;
    v.lowered.private_bytes = 1000;
    uint32_t out[100] = {0};
    const int number = 77;
    const sk_arg args[] = {{out, sizeof out}, {NULL, 100}, {NULL, 40}, {(void *)(uintptr_t)&number, sizeof number}};
    const uint8_t is_value[] = {0, 0, 0, 1};
    struct cpu_grid g = grid_of(&v, 100, 4);
    g.threads[0] = 100 * 1024;
    g.group[0] = 1024;
    g.args = args;
    g.is_value = is_value;
    g.n_args = 4;
    CHECK_EQ(run(&mem, &g, NULL), SK_OK);
    for (uint32_t k = 0; k < 100; k++)
        CHECK_EQ(out[k], k);
    drop(&v);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static int32_t faulty(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    for (uint32_t x = x0; x < x1; x++) {
        w->group[0] = x;
        w->group[1] = y;
        w->group[2] = z;
        spend(200);
        if (x % 7 == 5) {
            helper_assert(w, 1, 0, 0, 0xf00); /* thread 8 */
            helper_assert(w, 0, 0, 0, 0x30);  /* thread 4: lower */
            helper_assert(w, 1, 0, 0, 0x10);  /* again: the first stays */
        }
    }
    return 0;
}

static void test_faults(void)
{
    struct cpu_variant v = variant(faulty);
    add_site(&v, 11);
    add_site(&v, 12);
    VEC_PUSH(&mem, &v.lowered.message, "never");
    for (uint32_t workers = 1; workers <= 8; workers++) {
        sk_error err = {0};
        struct cpu_grid g = grid_of(&v, 2000, workers);
        CHECK_EQ(run(&mem, &g, &err), SK_ERR_FAULT);
        CHECK_EQ_STR(err.message, "kernel 'k': assertion failed: never, in thread (164, 0, 0)");
        CHECK_EQ_STR(err.file, "kernel.py");
        CHECK_EQ(err.line, 11);
    }
    VEC_FREE(&mem, &v.lowered.message);
    drop(&v);
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

static int stop_word;

static int32_t endless(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)x0, (void)x1, (void)y, (void)z;
    while (!__atomic_load_n(w->stop, __ATOMIC_RELAXED))
        ;
    return 1;
}

static void *stop_soon(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    __atomic_store_n(&stop_word, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void test_stop(void)
{
    struct cpu_variant v = variant(endless);
    for (uint32_t workers = 1; workers <= 4; workers++) {
        sk_error err = {0};
        pthread_t t;
        struct cpu_grid g = grid_of(&v, 100, workers);
        g.stop = &stop_word;
        stop_word = 0;
        CHECK_EQ(pthread_create(&t, NULL, stop_soon, NULL), 0);
        const uint64_t start = os_nanoseconds();
        CHECK_EQ(run(&mem, &g, &err), SK_ERR_INTERRUPTED);
        CHECK(os_nanoseconds() - start < 2000000000u);
        (void)pthread_join(t, NULL);
        /* Set from the start: nothing runs. */
        sk_error_clear(&err);
        CHECK_EQ(run(&mem, &g, &err), SK_ERR_INTERRUPTED);
    }
    drop(&v);
}

/* ---- waiting for lower threadgroups ------------------------------------------------------------------------------ */

static uint32_t turn;

/* Each waits for the one before it. */
static int32_t chain(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)y, (void)z;
    for (uint32_t x = x0; x < x1; x++) {
        struct cpu_wait state = {0};
        w->group[0] = x;
        w->group[1] = w->group[2] = 0;
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != x)
            if (helper_wait(w, &state, 0, 0, 1))
                return 0;
        __atomic_store_n(&turn, x + 1, __ATOMIC_RELEASE);
    }
    return 0;
}

/* Waits for the one after it. */
static int32_t wrong_way(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)y, (void)z;
    for (uint32_t x = x0; x < x1; x++) {
        struct cpu_wait state = {0};
        w->group[0] = x;
        w->group[1] = w->group[2] = 0;
        while (x < 3 && __atomic_load_n(&turn, __ATOMIC_ACQUIRE) != 1000 + x)
            if (helper_wait(w, &state, 0, 0, 4))
                break;
    }
    return 0;
}

static void test_waiting(void)
{
    struct cpu_variant v = variant(chain), wrong = variant(wrong_way);
    add_site(&wrong, 5);
    for (uint32_t workers = 1; workers <= 8; workers++) {
        sk_error err = {0};
        struct cpu_grid g = grid_of(&v, 3000, workers);
        turn = 0;
        CHECK_EQ(run(&mem, &g, &err), SK_OK);
        CHECK_EQ_STR(err.message, "");
        CHECK_EQ(turn, 3000);
        g = grid_of(&wrong, 50, workers);
        CHECK_EQ(run(&mem, &g, &err), SK_ERR_FAULT);
        CHECK(strstr(err.message, "no progress") && strstr(err.message, "(2, 0, 0)"));
        CHECK_EQ(err.line, 5);
    }
    drop(&v);
    drop(&wrong);
}

/* ---- fibers ------------------------------------------------------------------------------------------------------ */

/* Each bundle leaves its number, then reads its neighbour's. */
static int32_t exchange(struct cpu_worker *w, uint32_t first, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t *const shared = (uint32_t *)(void *)w->threadgroup_memory;
    const uint32_t n = w->dims[0] / 32, k = first / 32;
    (void)y, (void)z;
    for (uint32_t r = 0; r < 3; r++) {
        if (r == 0)
            EXPECT(shared[k] == (0));
        shared[k] = x + k + r;
        if (helper_barrier(w, 0, 1, first, 1))
            return 1;
        EXPECT(shared[(k + 1) % n] == (x + (k + 1) % n + r));
        if (helper_barrier(w, 0, 2, first, 1))
            return 1;
    }
    __atomic_add_fetch(&hits[x], 1, __ATOMIC_RELAXED);
    return 0;
}

static void test_fibers(void)
{
    struct cpu_variant v = {.bundle = exchange, .stack = 65536};
    v.lowered.width = 32;
    v.lowered.fibers = true;
    v.lowered.threadgroup_bytes = 128;
    for (uint32_t workers = 1; workers <= 8; workers++) {
        struct cpu_grid g = grid_of(&v, 1, workers);
        g.threads[0] = 500 * 256;
        g.group[0] = 256;
        hits = calloc(500, 1);
        CHECK_EQ(run(&mem, &g, NULL), SK_OK);
        for (unsigned k = 0; k < 500; k++)
            CHECK_EQ(hits[k], 8);
        free(hits);
    }
}

/* ---- the float environment --------------------------------------------------------------------------------------- */

static int32_t environment(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)w, (void)x0, (void)x1, (void)y, (void)z;
    volatile float one = 1, tiny = 1e-30f;
    EXPECT(one + tiny == 1.0f);
    return 0;
}

static void test_environment(void)
{
    struct cpu_variant v = variant(environment);
    struct cpu_grid g = grid_of(&v, 1, 1);
    CHECK_EQ(fesetround(FE_UPWARD), 0);
    CHECK_EQ(run(&mem, &g, NULL), SK_OK);
    CHECK_EQ(fegetround(), FE_UPWARD);
    CHECK_EQ(fesetround(FE_TONEAREST), 0);
}

/* ---- several at once --------------------------------------------------------------------------------------------- */

static int32_t add_one(struct cpu_worker *w, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z)
{
    (void)y, (void)z;
    uint8_t *const out = (uint8_t *)w->region[1].base;
    for (uint32_t x = x0; x < x1; x++) {
        spend(100);
        out[x]++;
    }
    return 0;
}

static void *many_launches(void *argument)
{
    const struct cpu_variant *const v = argument;
    struct mem own;
    mem_init(&own, NULL);
    uint8_t out[1000] = {0};
    const sk_arg arg = {out, sizeof out};
    const uint8_t is_value = 0;
    for (int k = 0; k < 200; k++) {
        struct cpu_grid g = grid_of(v, k % 3 ? 1000 : 3, 1 + (uint32_t)k % 5);
        g.args = &arg;
        g.is_value = &is_value;
        g.n_args = 1;
        EXPECT(run(&own, &g, NULL) == (SK_OK));
    }
    size_t wrong = 0;
    for (int x = 0; x < 1000; x++)
        wrong += out[x] != (x < 3 ? 200 : 133);
    EXPECT(wrong == (0));
    return NULL;
}

static void test_at_once(void)
{
    struct cpu_variant v = variant(add_one);
    add_region(&v, CPU_REGION_NULL, 0, 0, 0);
    add_region(&v, CPU_REGION_ARG, 0, 0, 0);
    pthread_t t[6];
    for (int k = 0; k < 6; k++)
        CHECK_EQ(pthread_create(&t[k], NULL, many_launches, &v), 0);
    for (int k = 0; k < 6; k++)
        (void)pthread_join(t[k], NULL);
    drop(&v);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static void *launch_until_stopped(void *argument)
{
    const struct cpu_variant *const v = argument;
    struct mem own;
    mem_init(&own, NULL);
    while (!__atomic_load_n(&stop_word, __ATOMIC_RELAXED)) {
        uint8_t out[1000];
        const sk_arg arg = {out, sizeof out};
        const uint8_t is_value = 0;
        struct cpu_grid g = grid_of(v, 1000, 3);
        g.args = &arg;
        g.is_value = &is_value;
        g.n_args = 1;
        EXPECT(run(&own, &g, NULL) == (SK_OK));
    }
    return NULL;
}

static void test_fork(void)
{
#if defined(__SANITIZE_THREAD__) /* which has no threads after a fork */
    return;
#endif
    struct cpu_variant v = variant(add_one);
    add_region(&v, CPU_REGION_NULL, 0, 0, 0);
    add_region(&v, CPU_REGION_ARG, 0, 0, 0);
    pthread_t t[2];
    stop_word = 0;
    for (int k = 0; k < 2; k++)
        CHECK_EQ(pthread_create(&t[k], NULL, launch_until_stopped, &v), 0);
    const uint32_t generation = pool_generation();
    for (int k = 0; k < 20; k++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        (void)fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            check_failures = 0;
            wrong_in_threads = 0;
            (void)alarm(60);
            CHECK_EQ(pool_generation(), generation + 1);
            CHECK_EQ(pool_threads(), 0);
            (void)many_launches(&v);
            CHECK(pool_threads() > 0);
            _exit(check_failures != 0 || wrong_in_threads);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_EQ(status, 0);
    }
    __atomic_store_n(&stop_word, 1, __ATOMIC_RELAXED);
    for (int k = 0; k < 2; k++)
        (void)pthread_join(t[k], NULL);
    drop(&v);
}

/* ---- no growth --------------------------------------------------------------------------------------------------- */

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *const f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    (void)fclose(f);
    return resident;
}

static void test_growth(void)
{
    struct cpu_variant v = variant(count);
    v.lowered.private_bytes = 4096;
    hits = calloc(100, 1);
    work_per_group = 10;
    long before = 0;
    for (int k = 0; k < 11000; k++) {
        if (k == 1000)
            before = resident_pages();
        struct cpu_grid g = grid_of(&v, 1 + (uint32_t)k % 100, 4);
        CHECK_EQ(run(&mem, &g, NULL), SK_OK);
    }
    CHECK(resident_pages() < before + 256);
    CHECK_EQ(mem.live, 0);
    CHECK(pool_threads() < 16);
    free(hits);
}

static void test_settings(void)
{
    (void)setenv("SPORK_THREADS", "5", 1);
    CHECK_EQ(pool_default(), 5);
    CHECK_EQ(pool_check(NULL), SK_OK);
    (void)unsetenv("SPORK_THREADS");
    CHECK_EQ(pool_check(NULL), SK_OK);
    const uint32_t n = pool_default();
    CHECK(n >= 1);
    static const char *const bad[] = {"99999", "many", "0", "-1", "3x", "+2", "4294967298"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        sk_error error = {0};
        (void)setenv("SPORK_THREADS", bad[k], 1);
        CHECK_EQ(pool_default(), n);
        CHECK_EQ(pool_check(&error), SK_ERR_VALUE);
        CHECK_EQ_STR(error.name, "THREADS_ENV");
    }
    (void)unsetenv("SPORK_THREADS");
}

int main(void)
{
    mem_init(&mem, NULL);
    test_settings();
    for (uint32_t workers = 1; workers <= 8; workers++)
        test_once(workers);
    test_edges();
    test_memory();
    test_faults();
    test_stop();
    test_waiting();
    test_fibers();
    test_environment();
    test_at_once();
    test_fork();
    test_growth();
    CHECK_EQ(wrong_in_threads, 0);
    return check_done();
}
