/* fiber.c - bundles on fibers: order, rounds, ends, disagreement, stops, frames that hold values over switches. */
#include "check.h"

#include "cpu/fiber.h"
#include "cpu/launch.h"

enum { MOST = 1024 };

static struct {
    uint32_t order[1 << 16];
    uint32_t n;
    uint32_t rounds;
} seen;

static void note(uint32_t x)
{
    if (seen.n < sizeof seen.order / sizeof *seen.order)
        seen.order[seen.n++] = x;
}

static const int running;

static void start(struct cpu_worker *w, struct fiber_set *set)
{
    *w = (struct cpu_worker){.stop = &running, .fibers = set};
    for (unsigned k = 0; k < 3; k++)
        w->grid[k] = w->asked[k] = w->groups[k] = w->dims[k] = k ? 1 : MOST;
    seen.n = 0;
}

/* Frames with values in registers and on the stack: what the switch must keep. */
static int32_t rounds(struct cpu_worker *w, uint32_t first, uint32_t x, uint32_t y, uint32_t z)
{
    volatile double on_stack[64];
    double kept[8];
    for (int k = 0; k < 64; k++)
        on_stack[k] = first * 100.0 + k;
    for (int k = 0; k < 8; k++)
        kept[k] = first + k * 0.5;
    for (uint32_t r = 0; r < seen.rounds; r++) {
        note(first);
        if (helper_barrier(w, 7, 1, first, 1))
            return 1;
        for (int k = 0; k < 8; k++)
            CHECK(kept[k] == first + k * 0.5 + r * 0.25);
        for (int k = 0; k < 8; k++)
            kept[k] += 0.25;
    }
    for (int k = 0; k < 64; k++)
        CHECK(on_stack[k] == first * 100.0 + k);
    CHECK(x == 0 && y == 0 && z == 0 && ((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    return 0;
}

static void test_rounds(uint32_t n, uint32_t width)
{
    struct cpu_worker w;
    struct fiber_set *set = NULL;
    CHECK(fiber_need(&set, n, 65536));
    start(&w, set);
    seen.rounds = 5;
    for (int again = 0; again < 3; again++) {
        seen.n = 0;
        CHECK(!fiber_run(&w, rounds, n, width));
        CHECK_EQ(seen.n, 5 * n);
        for (uint32_t k = 0; k < seen.n; k++)
            CHECK_EQ(seen.order[k], k % n * width);
    }
    CHECK_EQ(w.fault.kind, CPU_FAULT_NONE);
    fiber_free(set);
}

/* Bundle k waits k times. */
static int32_t uneven(struct cpu_worker *w, uint32_t first, uint32_t x, uint32_t y, uint32_t z)
{
    (void)x, (void)y, (void)z;
    for (uint32_t k = 0; k < first; k++) {
        note(first);
        if (helper_barrier(w, 1, 1, first, 1))
            return 1;
    }
    return 0;
}

static void test_ends(void)
{
    struct cpu_worker w;
    struct fiber_set *set = NULL;
    CHECK(fiber_need(&set, 20, 65536));
    start(&w, set);
    CHECK(!fiber_run(&w, uneven, 20, 1));
    CHECK_EQ(w.fault.kind, CPU_FAULT_NONE);
    CHECK_EQ(seen.n, 19 * 20 / 2);
    uint32_t at = 0;
    for (uint32_t round = 1; round < 20; round++)
        for (uint32_t k = round; k < 20; k++)
            CHECK_EQ(seen.order[at++], k);
    fiber_free(set);
}

/* Some wait elsewhere: bundles from 3 on, in their lane 5 and up. */
static int32_t apart(struct cpu_worker *w, uint32_t first, uint32_t x, uint32_t y, uint32_t z)
{
    (void)x, (void)y, (void)z;
    note(first);
    if (helper_barrier(w, 1, 1, first, 0xf0))
        return 1;
    note(first);
    const bool other = first >= 3 * 32;
    if (helper_barrier(w, other ? 20 : 10, other ? 2 : 3, first, other ? ~31u : ~1u))
        return 1;
    note(first);
    return 0;
}

static void test_disagreement(void)
{
    struct cpu_worker w;
    struct fiber_set *set = NULL;
    CHECK(fiber_need(&set, 8, 65536));
    start(&w, set);
    w.group[0] = 2;
    w.groups[0] = 5;
    w.dims[0] = w.asked[0] = 256;
    CHECK(!fiber_run(&w, apart, 8, 32));
    CHECK_EQ(seen.n, 16);
    CHECK_EQ(w.fault.kind, CPU_FAULT_BARRIER);
    CHECK_EQ(w.fault.group, 2);
    CHECK_EQ(w.fault.thread, 1);
    CHECK_EQ(w.fault.site, 10);
    CHECK_EQ(w.fault.other_site, 20);
    CHECK_EQ(w.fault.at[0], 2 * 256 + 1);
    CHECK_EQ(w.fault.other_at[0], 2 * 256 + 3 * 32 + 5);
    /* The set is as good as new. */
    w.fault.kind = CPU_FAULT_NONE;
    w.group[0] = 0;
    seen.n = 0;
    seen.rounds = 2;
    CHECK(!fiber_run(&w, rounds, 8, 32));
    CHECK_EQ(seen.n, 16);
    CHECK_EQ(w.fault.kind, CPU_FAULT_NONE);
    fiber_free(set);
}

static int stop_word;

static int32_t stops(struct cpu_worker *w, uint32_t first, uint32_t x, uint32_t y, uint32_t z)
{
    (void)x, (void)y, (void)z;
    for (uint32_t k = 0;; k++) {
        note(first);
        if (first == 4 && k == 3)
            stop_word = 1;
        if (helper_barrier(w, 1, 1, first, 1))
            return 1;
    }
}

static void test_stop(void)
{
    struct cpu_worker w;
    struct fiber_set *set = NULL;
    CHECK(fiber_need(&set, 8, 65536));
    start(&w, set);
    w.stop = &stop_word;
    stop_word = 0;
    CHECK(fiber_run(&w, stops, 8, 1));
    CHECK_EQ(seen.n, 3 * 8 + 5);
    fiber_free(set);
}

/* Room grows, and what has grown is kept. */
static void test_room(void)
{
    struct cpu_worker w;
    struct fiber_set *set = NULL;
    seen.rounds = 1;
    const struct {
        uint32_t n;
        size_t stack;
    } sizes[] = {{1, 20000}, {32, 65536}, {2, 1 << 20}, {1024, 65536}, {1, 1}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        CHECK(fiber_need(&set, sizes[k].n, sizes[k].stack));
        start(&w, set);
        CHECK(!fiber_run(&w, rounds, sizes[k].n, 1));
        CHECK_EQ(seen.n, sizes[k].n);
    }
    CHECK(!fiber_need(&set, 1024, SIZE_MAX / 4096));
    CHECK(fiber_need(&set, 4, 65536)); /* after a refusal too */
    start(&w, set);
    CHECK(!fiber_run(&w, rounds, 4, 1));
    fiber_free(set);
}

int main(void)
{
    test_rounds(1, 32);
    test_rounds(2, 16);
    test_rounds(32, 32);
    test_rounds(MOST, 1);
    test_ends();
    test_disagreement();
    test_stop();
    test_room();
    return check_done();
}
