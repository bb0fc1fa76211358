/* pool.c - see pool.h.
 *
 * Slots. A job is offered in one of a fixed number of slots, which are never freed: a thread that looks at a slot
 * looks at no memory of a caller before it has joined. `state` of a slot is 0 when free, else TAKEN, which is the
 * caller's alone to set and to clear; while OPEN is set, threads join by adding one, the caller clears it and waits
 * until the number is 0.
 *
 * Sleep. `signal` counts offers. Who finds no work remembers the count from before it looked and sleeps on it, which
 * the system does only if it is still the same.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#endif
#include "cpu/pool.h"

#include "cpu/fiber.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#define SLOTS 64u
#define STACK_BYTES ((size_t)8 << 20)
#define SPIN_NANOSECONDS 30000u    /* for work, after work */
#define FINISH_NANOSECONDS 100000u /* for those who still work on the last chunks, before sleeping */

enum { OPEN = 1u << 31, TAKEN = 1u << 30, WAITED = 1u << 29, JOINED = WAITED - 1 };

struct pool_slot {
    _Alignas(64) uint32_t state; /* atomic */
    struct pool_job *job;        /* atomic; read after joining */
};

/* One for the process: see pool.h. */
static struct {
    struct pool_slot slot[SLOTS];
    _Alignas(64) uint32_t signal; /* atomic; likewise below */
    uint32_t sleeping, awake;
    uint32_t threads, starting;
    uint32_t generation;
    struct pool_scratch *spare[SLOTS];
} pool;

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

#if defined(__linux__)
static void sleep_on(uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(uint32_t *word, uint32_t n)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n > INT_MAX ? INT_MAX : (int)n, NULL, NULL, 0);
}
#else
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_changed = PTHREAD_COND_INITIALIZER;

static void sleep_on(uint32_t *word, uint32_t value)
{
    pthread_mutex_lock(&sleep_lock);
    if (LOAD(*word) == value)
        pthread_cond_wait(&sleep_changed, &sleep_lock);
    pthread_mutex_unlock(&sleep_lock);
}

static void wake(uint32_t *word, uint32_t n)
{
    (void)word;
    (void)n;
    pthread_mutex_lock(&sleep_lock);
    pthread_cond_broadcast(&sleep_changed);
    pthread_mutex_unlock(&sleep_lock);
}
#endif

/* ---- fork -------------------------------------------------------------------------------------------------------- */

/* In the child there is one thread, which is in no launch. What the others of the parent had is lost. */
static void after_fork_child(void)
{
    for (unsigned k = 0; k < SLOTS; k++)
        pool.slot[k] = (struct pool_slot){0};
    pool.signal = pool.sleeping = pool.awake = pool.threads = pool.starting = 0;
    pool.generation++;
#if !defined(__linux__)
    (void)pthread_mutex_init(&sleep_lock, NULL);
    (void)pthread_cond_init(&sleep_changed, NULL);
#endif
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork_child);
}

uint32_t pool_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    return LOAD(pool.generation);
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

/* Callers keep no more than this for the next one. */
#define KEEP_BYTES ((size_t)16 << 20)

bool scratch_need(struct pool_scratch *s, size_t size)
{
    if (s->size >= size)
        return true;
    free(s->memory);
    s->size = 0;
    size = (size + 4095) & ~(size_t)4095;
    s->memory = aligned_alloc(64, size);
    s->size = s->memory ? size : 0;
    return s->memory != NULL;
}

struct pool_scratch *scratch_borrow(void)
{
    for (unsigned k = 0; k < SLOTS; k++) {
        if (!__atomic_load_n(&pool.spare[k], __ATOMIC_RELAXED))
            continue;
        struct pool_scratch *const s = __atomic_exchange_n(&pool.spare[k], NULL, __ATOMIC_ACQUIRE);
        if (s)
            return s;
    }
    return calloc(1, sizeof(struct pool_scratch));
}

void scratch_return(struct pool_scratch *s)
{
    if (!s)
        return;
    if (s->size > KEEP_BYTES) {
        free(s->memory);
        s->memory = NULL;
        s->size = 0;
    }
    for (unsigned k = 0; k < SLOTS; k++) {
        struct pool_scratch *none = NULL;
        if (__atomic_compare_exchange_n(&pool.spare[k], &none, s, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
    fiber_free(s->fibers);
    free(s->memory);
    free(s);
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

/* A share of what is left, so that all end together and the counter is touched rarely. */
bool pool_take(struct pool_job *job, uint32_t id, uint64_t *first, uint64_t *n)
{
    uint64_t next = LOAD(job->next);
    for (;;) {
        if (next >= job->total)
            return false;
        const uint64_t left = job->total - next, share = left / (4u * (uint64_t)job->limit);
        uint64_t take = share > job->least ? share : job->least;
        if (take > left)
            take = left;
        /* Said before it is taken: nobody may believe that no one is at these items. */
        if (job->first)
            __atomic_store_n(&job->first[id], next, __ATOMIC_SEQ_CST);
        if (__atomic_compare_exchange_n(&job->next, &next, next + take, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) {
            *first = next;
            *n = take;
            return true;
        }
    }
}

void pool_leave(struct pool_job *job, uint32_t id)
{
    if (job->first)
        STORE(job->first[id], UINT64_MAX);
}

bool pool_others_before(const struct pool_job *job, uint32_t id)
{
    if (!job->first)
        return false;
    const uint64_t mine = LOAD(job->first[id]);
    for (uint32_t k = 0; k < job->limit; k++)
        if (k != id && __atomic_load_n(&job->first[k], __ATOMIC_SEQ_CST) < mine)
            return true;
    return false;
}

/* ---- threads of the pool ----------------------------------------------------------------------------------------- */

static bool has_work(struct pool_job *job)
{
    return LOAD(job->next) < job->total;
}

/* Joins what the slot offers, and works on it. False: nothing there. */
static bool help(struct pool_slot *slot, struct pool_scratch *scratch)
{
    uint32_t state = LOAD(slot->state);
    do {
        if (!(state & OPEN))
            return false;
    } while (!__atomic_compare_exchange_n(&slot->state, &state, state + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    struct pool_job *const job = LOAD(slot->job);
    bool worked = false;
    if (has_work(job)) {
        const uint32_t id = __atomic_add_fetch(&job->joined, 1, __ATOMIC_RELAXED);
        worked = id < job->limit;
        if (worked)
            job->work(job, id, scratch);
    }
    /* From here on the job may be gone. */
    state = __atomic_fetch_sub(&slot->state, 1, __ATOMIC_ACQ_REL);
    if ((state & WAITED) && (state & JOINED) == 1)
        wake(&slot->state, 1);
    return worked;
}

static bool help_any(struct pool_scratch *scratch)
{
    bool worked = false;
    for (unsigned k = 0; k < SLOTS; k++)
        worked |= help(&pool.slot[k], scratch);
    return worked;
}

static void *serve(void *unused)
{
    (void)unused;
    struct pool_scratch scratch = {0};
#if defined(__SSE2__)
    _mm_setcsr(0x1f80); /* a thread begins with the float environment of who made it */
#endif
    for (;;) {
        uint32_t seen = LOAD(pool.signal);
        if (help_any(&scratch))
            continue;
        (void)__atomic_add_fetch(&pool.awake, 1, __ATOMIC_RELAXED);
        const uint64_t until = os_nanoseconds() + SPIN_NANOSECONDS;
        while (LOAD(pool.signal) == seen && os_nanoseconds() < until)
            for (unsigned k = 0; k < 16 && LOAD(pool.signal) == seen; k++)
                pool_pause();
        (void)__atomic_sub_fetch(&pool.awake, 1, __ATOMIC_RELAXED);
        if (LOAD(pool.signal) != seen)
            continue;
        (void)__atomic_add_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
        sleep_on(&pool.signal, seen);
        (void)__atomic_sub_fetch(&pool.sleeping, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* Makes threads until there are n, or as many as the system gives. Another thread that is at it will do. */
static void start_threads(uint32_t n)
{
    if (LOAD(pool.threads) >= n || __atomic_exchange_n(&pool.starting, 1, __ATOMIC_ACQUIRE))
        return;
    sigset_t all, before;
    pthread_attr_t attr;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the user's threads */
    if (pthread_attr_init(&attr) == 0) {
        (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_t thread;
        while (LOAD(pool.threads) < n && pthread_create(&thread, &attr, serve, NULL) == 0)
            (void)__atomic_add_fetch(&pool.threads, 1, __ATOMIC_RELEASE);
        (void)pthread_attr_destroy(&attr);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    STORE(pool.starting, 0);
}

/* ---- offers ------------------------------------------------------------------------------------------------------ */

struct pool_slot *pool_offer(struct pool_job *job)
{
    (void)pool_generation();
    if (job->limit <= 1)
        return NULL;
    start_threads(job->limit - 1);
    struct pool_slot *slot = NULL;
    for (unsigned k = 0; k < SLOTS && !slot; k++) {
        uint32_t none = 0;
        if (LOAD(pool.slot[k].state) == 0 &&
            __atomic_compare_exchange_n(&pool.slot[k].state, &none, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            slot = &pool.slot[k];
    }
    if (!slot)
        return NULL;
    STORE(slot->job, job);
    STORE(slot->state, OPEN | TAKEN);
    (void)__atomic_add_fetch(&pool.signal, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool.sleeping, __ATOMIC_SEQ_CST))
        wake(&pool.signal, job->limit - 1);
    return slot;
}

void pool_finish(struct pool_slot *slot)
{
    if (!slot)
        return;
    uint32_t state = __atomic_and_fetch(&slot->state, ~(uint32_t)OPEN, __ATOMIC_ACQ_REL);
    if (state & JOINED) {
        const uint64_t until = os_nanoseconds() + FINISH_NANOSECONDS;
        while (((state = LOAD(slot->state)) & JOINED) && os_nanoseconds() < until)
            for (unsigned k = 0; k < 16 && (LOAD(slot->state) & JOINED); k++)
                pool_pause();
    }
    while (state & JOINED) {
        state = __atomic_or_fetch(&slot->state, WAITED, __ATOMIC_ACQ_REL);
        if (state & JOINED)
            sleep_on(&slot->state, state);
        state = LOAD(slot->state);
    }
    STORE(slot->job, NULL);
    STORE(slot->state, 0);
}

bool pool_is_awake(void)
{
    return __atomic_load_n(&pool.awake, __ATOMIC_RELAXED) != 0;
}

uint32_t pool_threads(void)
{
    return LOAD(pool.threads);
}

/* What SPORK_THREADS asks for; 0: nothing, or nothing that can be. */
static uint32_t asked_for(void)
{
    const char *const text = getenv("SPORK_THREADS");
    if (!text || *text < '0' || *text > '9')
        return 0;
    char *end;
    errno = 0;
    const unsigned long n = strtoul(text, &end, 10);
    return !*end && !errno && n <= POOL_MOST ? (uint32_t)n : 0;
}

sk_status pool_check(sk_error *err)
{
    const char *const text = getenv("SPORK_THREADS");
    if (text && *text && !asked_for())
        return ERR(err, THREADS_ENV, text, POOL_MOST);
    return SK_OK;
}

uint32_t pool_default(void)
{
    const uint32_t asked = asked_for();
    if (asked)
        return asked;
    long n = 0;
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
#endif
    if (n < 1)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n < (long)POOL_MOST ? (uint32_t)n : POOL_MOST;
}
