/* pool.h - threads that help with launches.
 *
 * The pool is one for the process, because the processors and fork are: fork's handlers take no argument. Its threads
 * are made when they are first wanted and then stay. They look for work for some tens of microseconds, then sleep.
 *
 * A job is a range of items, taken in order in chunks by those who take part in it: the caller and as many threads of
 * the pool as the job may have and are free. Several jobs may run at once. In a child of fork the pool is fresh, and
 * jobs of other threads of the parent do not exist.
 */
#ifndef SK_CPU_POOL_H
#define SK_CPU_POOL_H

#include "base/base.h"

#define POOL_MOST 256u /* threads that may take part in a job, the caller included */

struct fiber_set;

/* Working memory that outlives launches: a thread of the pool has one, callers borrow one. */
struct pool_scratch {
    char *memory; /* 64-byte aligned; null: none */
    size_t size;
    struct fiber_set *fibers; /* null until fiber_need made one */
};
bool scratch_need(struct pool_scratch *s, size_t size); /* false: no memory. What it held is lost */
struct pool_scratch *scratch_borrow(void);              /* null: no memory */
void scratch_return(struct pool_scratch *s);            /* null allowed */

struct pool_job {
    /* Takes part: calls pool_take until there is nothing left. `id`: 0 for the caller, below `limit`. Any thread. */
    void (*work)(struct pool_job *job, uint32_t id, struct pool_scratch *scratch);
    uint64_t total;
    uint64_t least;  /* items of a chunk, except the last */
    uint32_t limit;  /* who may take part, at most POOL_MOST */
    uint64_t next;   /* atomic: first item not taken */
    uint32_t joined; /* atomic: threads of the pool that ever came */
    uint64_t *first; /* atomic, [limit]: of each who takes part, the first item of its chunk; UINT64_MAX: it has none */
};

/* The next chunk for `id`; false: none left. */
bool pool_take(struct pool_job *job, uint32_t id, uint64_t *first, uint64_t *n);
void pool_leave(struct pool_job *job, uint32_t id); /* after the last chunk, or to take no more */
/* Is someone else at a chunk before the one that `id` is at? */
bool pool_others_before(const struct pool_job *job, uint32_t id);

struct pool_slot;
/* Offers the job to the pool; null: nobody can help. Then the caller works, and waits for the others in pool_finish,
 * after which the job may go. */
struct pool_slot *pool_offer(struct pool_job *job);
void pool_finish(struct pool_slot *slot); /* null allowed */
bool pool_is_awake(void);                 /* is a thread looking for work right now? */

/* Threads that a launch uses unless told otherwise: SPORK_THREADS, else the processors this process may use. */
uint32_t pool_default(void);
sk_status pool_check(sk_error *err); /* SK_ERR_VALUE: SPORK_THREADS is no number from 1 to POOL_MOST */
uint32_t pool_threads(void);         /* that the pool has now, for tests and reports */

/* Counts forks on the way from the first process that used the pool to this one. Registers fork's handlers. */
uint32_t pool_generation(void);
static inline void pool_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

#endif
