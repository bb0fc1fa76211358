/* fiber.c - see fiber.h.
 *
 * The switch saves what a call must keep and jumps: a `ret` would be predicted from calls of other fibers. Stack tops
 * are staggered, or all hot frames would share a few sets of the cache. A fiber that a fault or a stop leaves behind
 * is never resumed; its stack is begun anew by the next threadgroup. Nothing on it owns anything.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_NORESERVE */
#endif
#include "cpu/fiber.h"

#include "cpu/fault.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif

#if defined(FIBER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* ---- the switch -------------------------------------------------------------------------------------------------- */

/* Saves the state on this stack and its top in *from, goes on where `to` was saved. */
void fiber_switch(void **from, void *to) __asm__("spork_fiber_switch") __attribute__((visibility("hidden")));
void fiber_entry(void) __asm__("spork_fiber_entry") __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl spork_fiber_switch\n"
        ".hidden spork_fiber_switch\n"
        ".type spork_fiber_switch, @function\n"
        "spork_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n"
        "    jmpq *%rcx\n"
        ".size spork_fiber_switch, . - spork_fiber_switch\n"
        ".p2align 4\n"
        ".globl spork_fiber_entry\n"
        ".hidden spork_fiber_entry\n"
        ".type spork_fiber_entry, @function\n"
        "spork_fiber_entry:\n"
        "    movq %r12, %rdi\n"
        "    xorl %ebp, %ebp\n"
        "    callq *%r13\n"
        "    ud2\n"
        ".size spork_fiber_entry, . - spork_fiber_entry\n"
        ".popsection\n");
#define FRAME_WORDS 9u
/* The saved state of a fiber that has not begun: top is 16-byte aligned. */
static void *first_frame(char *top, void (*run)(void *), void *argument)
{
    void **const frame = (void **)(void *)top - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[2] = (void *)run;         /* r13 */
    frame[3] = argument;            /* r12 */
    frame[6] = (void *)fiber_entry; /* where the switch jumps to; the stack is aligned there as before a call */
    return frame;
}
#elif defined(__aarch64__)
#if defined(__APPLE__)
#define PRELUDE(name) ".text\n.p2align 4\n.globl " name "\n.private_extern " name "\n" name ":\n"
#define POSTLUDE(name) ""
#else
#define PRELUDE(name)                                                                                                  \
    ".pushsection .text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n"
#define POSTLUDE(name) ".size " name ", . - " name "\n.popsection\n"
#endif
__asm__(PRELUDE("spork_fiber_switch") "    stp x19, x20, [sp, #-160]!\n"
                                      "    stp x21, x22, [sp, #16]\n"
                                      "    stp x23, x24, [sp, #32]\n"
                                      "    stp x25, x26, [sp, #48]\n"
                                      "    stp x27, x28, [sp, #64]\n"
                                      "    stp x29, x30, [sp, #80]\n"
                                      "    stp d8, d9, [sp, #96]\n"
                                      "    stp d10, d11, [sp, #112]\n"
                                      "    stp d12, d13, [sp, #128]\n"
                                      "    stp d14, d15, [sp, #144]\n"
                                      "    mov x9, sp\n"
                                      "    str x9, [x0]\n"
                                      "    mov sp, x1\n"
                                      "    ldp x21, x22, [sp, #16]\n"
                                      "    ldp x23, x24, [sp, #32]\n"
                                      "    ldp x25, x26, [sp, #48]\n"
                                      "    ldp x27, x28, [sp, #64]\n"
                                      "    ldp x29, x30, [sp, #80]\n"
                                      "    ldp d8, d9, [sp, #96]\n"
                                      "    ldp d10, d11, [sp, #112]\n"
                                      "    ldp d12, d13, [sp, #128]\n"
                                      "    ldp d14, d15, [sp, #144]\n"
                                      "    ldp x19, x20, [sp], #160\n"
                                      "    ret\n" POSTLUDE("spork_fiber_switch"));
__asm__(PRELUDE("spork_fiber_entry") "    mov x0, x19\n"
                                     "    mov x29, #0\n"
                                     "    blr x20\n"
                                     "    brk #1\n" POSTLUDE("spork_fiber_entry"));
#define FRAME_WORDS 20u
static void *first_frame(char *top, void (*run)(void *), void *argument)
{
    void **const frame = (void **)(void *)top - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[0] = argument;
    frame[1] = (void *)run;
    frame[11] = (void *)fiber_entry; /* x30 */
    return frame;
}
#else
#error "fibers: no switch for this processor"
#endif

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

struct fiber {
    void *sp; /* where it goes on */
    char *low, *top;
    uint32_t first; /* thread */
    bool ended;
    /* where it waits */
    uint32_t site, barrier, thread;
#if defined(FIBER_TSAN)
    void *tsan;
#endif
};

struct fiber_set {
    char *memory; /* of all stacks */
    size_t bytes, stride;
    uint32_t cap;
    struct fiber *fiber;
    /* the threadgroup being run */
    struct cpu_worker *worker;
    fiber_bundle *bundle;
    uint32_t n, current, live;
    bool stopped, stuck;
    void *home; /* the state of fiber_run */
#if defined(FIBER_ASAN)
    const void *home_low;
    size_t home_size;
    void *fake;
#endif
#if defined(FIBER_TSAN)
    void *tsan;
#endif
};

static size_t page_bytes(void)
{
    const long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

#if defined(FIBER_TSAN)
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
#endif

static void drop_stacks(struct fiber_set *s)
{
#if defined(FIBER_TSAN)
    for (uint32_t k = 0; k < s->cap; k++)
        __tsan_destroy_fiber(s->fiber[k].tsan);
#endif
    if (s->memory)
        (void)munmap(s->memory, s->bytes);
    free(s->fiber);
    memset(s, 0, sizeof *s);
}

void fiber_free(struct fiber_set *set)
{
    if (!set)
        return;
    drop_stacks(set);
    free(set);
}

#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

/* A page without access lies below each stack. */
static bool make_stacks(struct fiber_set *s, uint32_t n, size_t stride, size_t page)
{
    s->fiber = calloc(n, sizeof *s->fiber);
    if (!s->fiber)
        return false;
    s->bytes = stride * n;
    s->stride = stride;
    char *const p = mmap(NULL, s->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    s->memory = p;
    for (uint32_t k = 0; k < n; k++) {
        struct fiber *const f = &s->fiber[k];
        f->low = p + stride * k + page;
        if (mprotect(f->low, stride - page, PROT_READ | PROT_WRITE) != 0)
            return false;
        f->top = p + stride * (k + 1) - (k * 640u & 4095u);
#if defined(FIBER_TSAN)
        f->tsan = __tsan_create_fiber(0);
#endif
        s->cap = k + 1;
    }
    return true;
}

bool fiber_need(struct fiber_set **set, uint32_t n, size_t stack)
{
    if (!*set)
        *set = calloc(1, sizeof **set);
    struct fiber_set *const s = *set;
    if (!s)
        return false;
    const size_t page = page_bytes();
    size_t stride = (stack + 4096 + 2 * page - 1) / page * page; /* the stack, what is lost by staggering, the guard */
    if (s->cap >= n && s->stride >= stride)
        return true;
    if (s->stride > stride)
        stride = s->stride;
    if (s->cap > n)
        n = s->cap;
    drop_stacks(s);
    if (n > SIZE_MAX / stride)
        return false;
    if (make_stacks(s, n, stride, page))
        return true;
    drop_stacks(s);
    return false;
}

/* ---- going from one to another ----------------------------------------------------------------------------------- */

/* `ends`: where this one comes from is never resumed. */
static void go(struct fiber_set *s, void **from, struct fiber *to, bool ends)
{
    void *const sp = to ? to->sp : s->home;
#if defined(FIBER_ASAN)
    void *fake = NULL;
    __sanitizer_start_switch_fiber(ends ? NULL : &fake, to ? to->low : s->home_low,
                                   to ? (size_t)(to->top - to->low) : s->home_size);
#endif
#if defined(FIBER_TSAN)
    __tsan_switch_to_fiber(to ? to->tsan : s->tsan, 0);
#endif
    (void)ends;
    fiber_switch(from, sp);
#if defined(FIBER_ASAN)
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

/* The next after `current` that has not ended; null: none in this round. */
static struct fiber *following(struct fiber_set *s, uint32_t from)
{
    for (uint32_t k = from; k < s->n; k++)
        if (!s->fiber[k].ended) {
            s->current = k;
            return &s->fiber[k];
        }
    return NULL;
}

/* All that live wait. Null: they disagree, which is a fault. */
static struct fiber *next_round(struct fiber_set *s)
{
    const struct fiber *const first = following(s, 0);
    for (uint32_t k = s->current + 1; k < s->n; k++) {
        const struct fiber *const f = &s->fiber[k];
        if (f->ended || f->barrier == first->barrier)
            continue;
        cpu_fault_barriers(s->worker, first->thread, first->site, f->thread, f->site);
        s->stuck = true;
        return NULL;
    }
    return &s->fiber[s->current];
}

/* Where to go when the current one waits or has ended; null: home. */
static struct fiber *successor(struct fiber_set *s)
{
    if (s->stopped || s->live == 0)
        return NULL;
    struct fiber *const f = following(s, s->current + 1);
    return f ? f : next_round(s);
}

static void run_fiber(void *argument)
{
    struct fiber_set *const s = argument;
    struct fiber *const f = &s->fiber[s->current];
    struct cpu_worker *const w = s->worker;
#if defined(FIBER_ASAN)
    const void *low;
    size_t size;
    __sanitizer_finish_switch_fiber(NULL, &low, &size);
    if (!s->home_low) { /* the first one comes from home */
        s->home_low = low;
        s->home_size = size;
    }
#endif
    if (s->bundle(w, f->first, w->group[0], w->group[1], w->group[2]))
        s->stopped = true;
    f->ended = true;
    s->live--;
    go(s, &f->sp, successor(s), true);
    __builtin_unreachable();
}

bool fiber_run(struct cpu_worker *worker, fiber_bundle *bundle, uint32_t n, uint32_t width)
{
    struct fiber_set *const s = worker->fibers;
    s->worker = worker;
    s->bundle = bundle;
    s->n = s->live = n;
    s->current = 0;
    s->stopped = s->stuck = false;
#if defined(FIBER_ASAN)
    s->home_low = NULL;
#endif
#if defined(FIBER_TSAN)
    s->tsan = __tsan_get_current_fiber();
#endif
    for (uint32_t k = 0; k < n; k++) {
        struct fiber *const f = &s->fiber[k];
#if defined(FIBER_ASAN)
        __asan_unpoison_memory_region(f->low, (size_t)(f->top - f->low)); /* frames that were left behind */
#endif
        f->sp = first_frame(f->top, run_fiber, s);
        f->first = k * width;
        f->ended = false;
    }
    go(s, &s->home, &s->fiber[0], false);
    return s->stopped;
}

int32_t helper_barrier(struct cpu_worker *worker, uint32_t site, uint32_t barrier, uint32_t first_thread,
                       uint32_t lanes)
{
    struct fiber_set *const s = worker->fibers;
    struct fiber *const f = &s->fiber[s->current];
    if (__atomic_load_n(worker->stop, __ATOMIC_RELAXED))
        return 1;
    f->site = site;
    f->barrier = barrier;
    f->thread = first_thread + (lanes ? (uint32_t)__builtin_ctz(lanes) : 0);
    __sync_synchronize();
    struct fiber *const to = successor(s);
    if (to != f)
        go(s, &f->sp, to, false);
    return s->stopped;
}
