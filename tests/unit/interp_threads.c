/* interp_threads.c - the interpreter: barriers, atomics, faults, endless loops, stopping, refusals, out of memory. */
#include "faulty.h"
#include "unit/interp.h"

#include <fenv.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- barriers --------------------------------------------------------------------------------------------------- */

static void reduction(void)
{
    static uint32_t out[8];
    static uint32_t in[1000];
    for (uint32_t k = 0; k < 1000; k++)
        in[k] = k * k;
    ok("kernel k(o: device u32, a: device u32, t: threadgroup u32, i: u32 [thread_position_in_grid],\n"
       "         li: u32 [thread_index_in_threadgroup], g: u32 [threadgroup_position_in_grid]) {\n"
       "  %pa.0 = index ptr.device %a, %i of u32\n"
       "  %x.1 = load u32 %pa.0\n"
       "  %pt.2 = index ptr.threadgroup %t, %li of u32\n"
       "  store %pt.2, %x.1\n"
       "  barrier memory(threadgroup)\n"
       "  loop (%step.3: u32 = 64:u32) {\n"
       "    %more.4 = gt bool %step.3, 0:u32\n"
       "    if %more.4 {\n"
       "      %act.5 = lt bool %li, %step.3\n"
       "      if %act.5 {\n"
       "        %j.6 = add u32 %li, %step.3\n"
       "        %pj.7 = index ptr.threadgroup %t, %j.6 of u32\n"
       "        %u.8 = load u32 %pj.7\n"
       "        %v.9 = load u32 %pt.2\n"
       "        %w.10 = add u32 %u.8, %v.9\n"
       "        store %pt.2, %w.10\n"
       "      }\n"
       "      barrier memory(threadgroup)\n"
       "      %half.11 = shr u32 %step.3, 1:u32\n"
       "      br 1 %half.11\n"
       "    }\n"
       "  }\n"
       "  %first.12 = eq bool %li, 0:u32\n"
       "  if %first.12 {\n"
       "    %po.13 = index ptr.device %o, %g of u32\n"
       "    %r.14 = load u32 %t\n"
       "    store %po.13, %r.14\n"
       "  }\n"
       "}\n",
       CALL(1000, 128, BUF(out), BUF(in), {NULL, 128 * 4}));
    for (uint32_t g = 0; g < 8; g++) {
        uint32_t sum = 0;
        for (uint32_t k = g * 128; k < 1000 && k < (g + 1) * 128; k++)
            sum += in[k];
        CHECK_EQ(out[g], sum); /* the last group has 104 threads; the rest of its memory is zero */
    }
}

/* Threads that have ended are not waited for. */
static void ended_threads(void)
{
    static uint32_t out[96];
    ok("kernel k(o: device u32, li: u32 [thread_index_in_threadgroup]) {\n"
       "  %s.0 = alloc ptr.threadgroup of [u32 x 96]\n"
       "  %m.1 = rem_trunc u32 %li, 7:u32\n"
       "  %q.2 = eq bool %m.1, 3:u32\n"
       "  if %q.2 {\n"
       "    return\n"
       "  }\n"
       "  %p.3 = index ptr.threadgroup %s.0, %li of u32\n"
       "  %x.4 = add u32 %li, 1:u32\n"
       "  store %p.3, %x.4\n"
       "  barrier memory(threadgroup)\n"
       "  %last.5 = sub u32 95:u32, %li\n"
       "  %pl.6 = index ptr.threadgroup %s.0, %last.5 of u32\n"
       "  %y.7 = load u32 %pl.6\n"
       "  %po.8 = index ptr.device %o, %li of u32\n"
       "  store %po.8, %y.7\n"
       "}\n",
       CALL(96, 96, BUF(out)));
    for (uint32_t k = 0; k < 96; k++)
        CHECK_EQ(out[k], k % 7 == 3 || (95 - k) % 7 == 3 ? 0 : 96 - k);
}

/* Lanes of one simdgroup reach the barrier in different iterations: they wait as fragments, and go on together. */
static void fragments(void)
{
    static uint32_t out[80][4];
    ok("kernel k(o: device [u32 x 4], li: u32 [thread_index_in_threadgroup]) {\n"
       "  %s.0 = alloc ptr.threadgroup of [u32 x 80]\n"
       "  %mem.1 = alloc ptr.thread of [u32 x 4]\n"
       "  %late.2 = rem_trunc u32 %li, 3:u32\n"
       "  %n.3: u32, %sum.4: u32, %seen.5: u32 = loop (%k.6: u32 = 0:u32) {\n"
       "    %early.7 = lt bool %k.6, %late.2\n"
       "    if %early.7 {\n"
       "      %k1.8 = add u32 %k.6, 1:u32\n"
       "      %pm.9 = index ptr.thread %mem.1, %k.6 of u32\n"
       "      %lk.10 = add u32 %li, %k.6\n"
       "      store %pm.9, %lk.10\n"
       "      br 1 %k1.8\n"
       "    }\n"
       "    %p.11 = index ptr.threadgroup %s.0, %li of u32\n"
       "    %v.12 = add u32 %li, %k.6\n"
       "    store %p.11, %v.12\n"
       "    %together.13 = simd_sum u32 1:u32\n"
       "    barrier memory(threadgroup)\n"
       "    %after.14 = simd_sum u32 1:u32\n"
       "    %j0.15 = add u32 %li, 1:u32\n"
       "    %j.16 = rem_trunc u32 %j0.15, 80:u32\n"
       "    %pj.17 = index ptr.threadgroup %s.0, %j.16 of u32\n"
       "    %x.18 = load u32 %pj.17\n"
       "    %both0.19 = mul u32 %together.13, 100:u32\n"
       "    %both.20 = add u32 %both0.19, %after.14\n"
       "    yield %k.6, %x.18, %both.20\n"
       "  }\n"
       "  %m0.21 = index ptr.thread %mem.1, 1:u32 of u32\n"
       "  %mx.22 = load u32 %m0.21\n"
       "  %all.23 = make [u32 x 4] %n.3, %sum.4, %seen.5, %mx.22\n"
       "  %po.24 = index ptr.device %o, %li of [u32 x 4]\n"
       "  store %po.24, %all.23\n"
       "}\n",
       CALL(80, 80, BUF(out)));
    for (uint32_t k = 0; k < 80; k++) {
        uint32_t together = 0;
        for (uint32_t j = k / 32 * 32; j < 80 && j < k / 32 * 32 + 32; j++)
            together += j % 3 == k % 3;
        const uint32_t j = (k + 1) % 80;
        CHECK_EQ(out[k][0], k % 3);
        CHECK_EQ(out[k][1], j + j % 3);
        CHECK_EQ(out[k][2], together * 100 + (k < 64 ? 32 : 16));
        CHECK_EQ(out[k][3], k % 3 == 2 ? k + 1 : 0);
    }
}

/* The lanes that did not wait end first: what is released goes on without them. */
static void fragment_alone(void)
{
    static uint32_t out[64];
    memset(out, 0, sizeof out);
    ok("kernel k(o: device u32, li: u32 [thread_index_in_threadgroup]) {\n"
       "  %lane.0 = and u32 %li, 31:u32\n"
       "  block {\n"
       "    %low.1 = lt bool %lane.0, 8:u32\n"
       "    if %low.1 {\n"
       "      br 1\n"
       "    }\n"
       "    barrier memory(none)\n"
       "  }\n"
       "  %p.2 = index ptr.device %o, %li of u32\n"
       "  %old.3 = load u32 %p.2\n"
       "  %mask.4 = simd_active_threads_mask u64\n"
       "  %m.5 = convert u32 %mask.4\n"
       "  %new.6 = add u32 %old.3, %m.5\n"
       "  store %p.2, %new.6\n"
       "}\n",
       CALL(64, 64, BUF(out)));
    for (uint32_t k = 0; k < 64; k++)
        CHECK_EQ(out[k], k % 32 < 8 ? 0xffu : 0xffffff00u);
}

static const char two_barriers[] =
    "kernel k(o: device u32, li: u32 [thread_index_in_threadgroup], g: u32 [threadgroup_position_in_grid]) {\n"
    "  %c.0 = lt bool %li, 40:u32\n"
    "  %odd.1 = eq bool %g, 1:u32\n"
    "  %d.2 = and bool %c.0, %odd.1\n"
    "  if %d.2 {\n"
    "    barrier memory(threadgroup)\n"
    "  } else {\n"
    "    barrier memory(device)\n"
    "  }\n"
    "  %i0.3 = mul u32 %g, 64:u32\n"
    "  %i.4 = add u32 %i0.3, %li\n"
    "  %po.5 = index ptr.device %o, %i.4 of u32\n"
    "  store %po.5, 1:u32\n"
    "}\n";

static void deadlock(void)
{
    static uint32_t out[192];
    CHECK_EQ(run(two_barriers, CALL(192, 64, BUF(out))), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "BARRIER_DEADLOCK");
    CHECK_EQ(error.line, 6);
    CHECK(strstr(error.message, "thread (64, 0, 0) at line 6, thread (104, 0, 0) at test.ir:8"));
    for (int k = 0; k < 192; k++)
        CHECK_EQ(out[k], k < 64 || k >= 128); /* the other groups end */
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

static void atomics(void)
{
    static uint32_t hist[8], old[1000];
    static int64_t wide[4] = {0, 1000, -1000, 0};
    static float real[3] = {0, 1e9f, -1e9f};
    ok("kernel k(h: device atomic u32, w: device i64, r: device f32, old: device u32, i: u32 "
       "[thread_position_in_grid]) {\n"
       "  %s.0 = alloc ptr.threadgroup of [u32 x 8]\n"
       "  %b.1 = and u32 %i, 7:u32\n"
       "  %ps.2 = index ptr.threadgroup %s.0, %b.1 of u32\n"
       "  %o.3 = atomic_add u32 %ps.2, 1:u32 order(relaxed) scope(threadgroup)\n"
       "  %po.4 = index ptr.device %old, %i of u32\n"
       "  store %po.4, %o.3\n"
       "  barrier memory(threadgroup)\n"
       "  %first.5 = eq bool %o.3, 0:u32\n"
       "  if %first.5 {\n"
       "    %n.6 = atomic_load u32 %ps.2 order(relaxed) scope(threadgroup)\n"
       "    %ph.7 = index ptr.device %h, %b.1 of u32\n"
       "    %d.8 = atomic_add u32 %ph.7, %n.6 order(relaxed) scope(device)\n"
       "  }\n"
       "  %l.9 = convert i64 %i\n"
       "  %e0.10 = atomic_add i64 %w, %l.9 order(relaxed) scope(device)\n"
       "  %w1.11 = index ptr.device %w, 1:u32 of i64\n"
       "  %e1.12 = atomic_min i64 %w1.11, %l.9 order(relaxed) scope(device)\n"
       "  %w2.13 = index ptr.device %w, 2:u32 of i64\n"
       "  %e2.14 = atomic_max i64 %w2.13, %l.9 order(relaxed) scope(device)\n"
       "  %w3.15 = index ptr.device %w, 3:u32 of i64\n"
       "  %e3.16 = atomic_xor i64 %w3.15, %l.9 order(relaxed) scope(device)\n"
       "  %f.17 = convert f32 %i\n"
       "  %g0.18 = atomic_add f32 %r, %f.17 order(relaxed) scope(device)\n"
       "  %r1.19 = index ptr.device %r, 1:u32 of f32\n"
       "  %g1.20 = atomic_min f32 %r1.19, %f.17 order(relaxed) scope(device)\n"
       "  %r2.21 = index ptr.device %r, 2:u32 of f32\n"
       "  loop (%seen.22: f32 = 0.0:f32) {\n"
       "    %bigger.23 = gt bool %f.17, %seen.22\n"
       "    %was.24 = atomic_cas f32 %r2.21, %seen.22, %f.17 order(relaxed) scope(device)\n"
       "    %ok.25 = eq bool %was.24, %seen.22\n"
       "    %bad.26 = not bool %ok.25\n"
       "    %again.27 = and bool %bad.26, %bigger.23\n"
       "    if %again.27 {\n"
       "      br 1 %was.24\n"
       "    }\n"
       "  }\n"
       "}\n",
       CALL(1000, 100, BUF(hist), BUF(wide), BUF(real), BUF(old)));
    for (int k = 0; k < 8; k++)
        CHECK_EQ(hist[k], 125);
    for (uint32_t k = 0; k < 1000; k++) { /* lane order, simdgroup after simdgroup */
        uint32_t n = 0;
        for (uint32_t j = k / 100 * 100; j < k; j++)
            n += j % 8 == k % 8;
        CHECK_EQ(old[k], n);
    }
    CHECK_EQ(wide[0], 499500);
    CHECK_EQ(wide[1], 0);
    CHECK_EQ(wide[2], 999);
    CHECK_EQ(wide[3], 0);
    CHECK_NEAR(real[0], 499500, 0);
    CHECK_NEAR(real[1], 0, 0);
    CHECK_NEAR(real[2], 999, 0);
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

static const char shifted_copy[] =
    "kernel copy(o: device f32, A: device f32, d: i32, i: u32 [thread_position_in_grid]) {\n"
    "  %s.0 = convert i32 %i\n"
    "  %j.1 = add i32 %s.0, %d\n"
    "  %p.2 = index ptr.device %A, %j.1 of f32\n"
    "  %x.3 = load f32 %p.2\n"
    "  %q.4 = index ptr.device %o, %i of f32\n"
    "  store %q.4, %x.3\n"
    "}\n";

static void out_of_bounds(void)
{
    float in[100], out[100];
    for (int k = 0; k < 100; k++)
        in[k] = (float)k + 1;
    int32_t d = 1;
    memset(out, 0xff, sizeof out);
    CHECK_EQ(run(shifted_copy, CALL(100, 64, BUF(out), BUF(in), {&d, 4})), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "READ_OUT_OF_BOUNDS");
    CHECK(strstr(error.message, "'copy' reads 'A' out of bounds: index 100, its size is 100, in thread (99, 0, 0);"));
    CHECK(strstr(error.message, "where="));
    CHECK_EQ(error.line, 5);
    CHECK_EQ_STR(error.file, "test.ir");
    for (int k = 0; k < 100; k++)
        CHECK_EQ(out[k], k == 99 ? 0 : k + 2);

    d = -3; /* in a full simdgroup, the lowest of three */
    CHECK_EQ(run(shifted_copy, CALL(100, 64, BUF(out), BUF(in), {&d, 4})), SK_ERR_FAULT);
    CHECK(strstr(error.message, "index -3, its size is 100, in thread (0, 0, 0);"));
    for (int k = 0; k < 100; k++)
        CHECK_EQ(out[k], k < 3 ? 0 : k - 2);

    d = 0; /* a last element that is not whole */
    CHECK_EQ(run(shifted_copy, CALL(96, 96, BUF(out), {in, 95 * 4 + 2}, {&d, 4})), SK_ERR_FAULT);
    CHECK(strstr(error.message, "index 95, its size is 95, in thread (95, 0, 0);"));
    CHECK_EQ(out[95], 0);

    d = 0; /* writes past the end are dropped */
    out[50] = -1;
    CHECK_EQ(run(shifted_copy, CALL(100, 64, {out, 200}, BUF(in), {&d, 4})), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "WRITE_OUT_OF_BOUNDS");
    CHECK(strstr(error.message, "'copy' writes 'o' out of bounds: index 50, its size is 50, in thread (50, 0, 0);"));
    CHECK_EQ(error.line, 7);
    CHECK_EQ(out[49], 50);
    CHECK_EQ(out[50], -1);

    CHECK_EQ(run(shifted_copy, CALL(1, 1, BUF(out), {in, 0}, {&d, 4})), SK_ERR_FAULT);
    CHECK(strstr(error.message, "index 0, its size is 0"));
}

/* Indices at the limits of 32 bits in a buffer of 4 GiB, which is never touched. */
static void large_buffer(void)
{
    const size_t size = (size_t)1 << 32;
    uint8_t out[64];
    char *const big = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (big == MAP_FAILED)
        return;
    struct interp_arg args[] = {BUF(out), {big, size}};
    for (unsigned wraps = 0; wraps < 2; wraps++) {
        const char *const text = wraps ? "kernel k(o: device u8, a: device u8, i: u32 [thread_position_in_grid]) {\n"
                                         "  %j.0 = add u32 %i, 4294967280:u32\n"
                                         "  %p.1 = index ptr.device %a, %j.0 of u8\n"
                                         "  %x.2 = load u8 %p.1\n"
                                         "  %q.3 = index ptr.device %o, %i of u8\n"
                                         "  store %q.3, %x.2\n"
                                         "}\n"
                                       : "kernel k(o: device u8, a: device u8, i: u32 [thread_position_in_grid]) {\n"
                                         "  %s.0 = convert i32 %i\n"
                                         "  %j.1 = sub i32 %s.0, 5:i32\n"
                                         "  %p.2 = index ptr.device %a, %j.1 of u8\n"
                                         "  %x.3 = load u8 %p.2\n"
                                         "  %q.4 = index ptr.device %o, %i of u8\n"
                                         "  store %q.4, %x.3\n"
                                         "}\n";
        struct ir_module *m;
        struct interp_program *p;
        sk_error_clear(&error);
        CHECK_EQ(ir_parse(&mem, text, strlen(text), "test.ir", &m, &error), SK_OK);
        CHECK_EQ(interp_compile(&mem, m, 1, &p, &error), SK_OK);
        const struct interp_launch l = {.threads = {64, 1, 1}, .threadgroup = {64, 1, 1}, .args = args};
        CHECK_EQ(interp_run(p, &l, &mem, &error), wraps ? SK_OK : SK_ERR_FAULT);
        if (!wraps)
            CHECK(strstr(error.message, "index -5, its size is 4294967296, in thread (0, 0, 0)"));
        interp_free(p);
        ir_module_free(m);
    }
    munmap(big, size);
}

/* The fault of the lowest thread counts, not the first in time; of one thread the first in program order. */
static void lowest_thread(void)
{
    float out[4] = {0};
    CHECK_EQ(
        run("kernel k(o: device f32, li: u32 [thread_index_in_threadgroup], g: u32 [threadgroup_position_in_grid]) {\n"
            "  %second.0 = eq bool %g, 1:u32\n"
            "  %high.1 = ge bool %li, 40:u32\n"
            "  %c.2 = and bool %second.0, %high.1\n"
            "  %far.3 = index ptr.device %o, 77:u32 of f32\n"
            "  %farther.4 = index ptr.device %o, 88:u32 of f32\n"
            "  if %c.2 {\n"
            "    store %far.3, 1.0:f32\n"
            "  }\n"
            "  barrier memory(none)\n"
            "  %five.5 = eq bool %li, 5:u32\n"
            "  %d.6 = and bool %second.0, %five.5\n"
            "  if %d.6 {\n"
            "    store %farther.4, 1.0:f32\n"
            "    store %far.3, 1.0:f32\n"
            "  }\n"
            "  %last.7 = eq bool %g, 2:u32\n"
            "  if %last.7 {\n"
            "    store %far.3, 1.0:f32\n"
            "  }\n"
            "}\n",
            CALL(300, 100, BUF(out))),
        SK_ERR_FAULT);
    CHECK(strstr(error.message, "index 88, its size is 4, in thread (105, 0, 0)"));
    CHECK_EQ(error.line, 14);
}

/* A struct is in bounds as a whole or not at all; bytes are counted where the address is on no element; arrays have
 * their names; the overflow of an index is caught. */
static void odd_bounds(void)
{
    static uint32_t out[16];
    uint64_t big = UINT64_MAX / 4 + 2; /* times 4: 4 */
    CHECK_EQ(run("kernel k(o: device u32) {\n"
                 "  %p.0 = index ptr.device %o, 50:u32 of u8\n"
                 "  %x.1 = load u32x4 %p.0\n"
                 "  %y.2 = extract u32 %x.1 [0]\n"
                 "  store %o, %y.2\n"
                 "}\n",
                 CALL(1, 1, BUF(out))),
             SK_ERR_FAULT);
    CHECK(strstr(error.message, "from byte 50 past the end, its size is 64 bytes"));
    CHECK_EQ(run("kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n"
                 "  %tile.0 = alloc ptr.threadgroup of [[u32 x 4] x 4]\n"
                 "  %r.1 = index ptr.threadgroup %tile.0, %i of [u32 x 4]\n"
                 "  %p.2 = index ptr.threadgroup %r.1, 2:u32 of u32\n"
                 "  store %p.2, 1:u32\n"
                 "}\n",
                 CALL(8, 8, BUF(out))),
             SK_ERR_FAULT);
    CHECK(strstr(error.message, "writes 'tile' out of bounds: index 18, its size is 16, in thread (4, 0, 0)"));
    CHECK_EQ(run("kernel k(o: device u32, n: u64) {\n"
                 "  %p.0 = index ptr.device %o, %n of u32\n"
                 "  store %p.0, 5:u32\n"
                 "}\n",
                 CALL(1, 1, BUF(out), {&big, 8})),
             SK_ERR_FAULT); /* the distance does not wrap back into bounds */
    CHECK(strstr(error.message, "an index past 2^61 bytes"));
    CHECK_EQ(out[1], 0);
    big = UINT64_MAX / 8;
    CHECK_EQ(run("kernel k(o: device u32, n: u64) {\n"
                 "  %p.0 = index ptr.device %o, %n of u32\n"
                 "  store %p.0, 5:u32\n"
                 "}\n",
                 CALL(1, 1, BUF(out), {&big, 8})),
             SK_ERR_FAULT);
    CHECK_EQ(run("kernel k(o: device u32, h: device ptr.device, i: u32 [thread_position_in_grid]) {\n"
                 "  %x.0 = load ptr.device %h\n"
                 "  %p.1 = index ptr.device %x.0, %i of u32\n"
                 "  store %p.1, 5:u32\n"
                 "}\n",
                 CALL(2, 2, BUF(out), BUF(out))),
             SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "NULL_ACCESS");
}

static void assertions(void)
{
    static uint32_t out[64];
    CHECK_EQ(run("kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n"
                 "  %c.0 = ne bool %i, 37:u32\n"
                 "  assert %c.0 \"i must not be 37\"\n"
                 "  %p.1 = index ptr.device %o, %i of u32\n"
                 "  store %p.1, 1:u32\n"
                 "}\n",
                 CALL(64, 64, BUF(out))),
             SK_ERR_FAULT);
    CHECK_EQ_STR(error.message, "kernel 'k': assertion failed: i must not be 37, in thread (37, 0, 0)");
    CHECK_EQ(error.line, 3);
    CHECK_EQ(out[37], 1);
}

/* ---- loops without end ------------------------------------------------------------------------------------------ */

static const char spin[] = "kernel k(f: device u32, o: device u32, i: u32 [thread_position_in_grid]) {\n"
                           "  %n.0: u32 = loop (%spins.1: u32 = 0:u32) {\n"
                           "    %x.2 = atomic_load u32 %f order(relaxed) scope(device)\n"
                           "    %z.3 = eq bool %x.2, 0:u32\n"
                           "    if %z.3 {\n"
                           "      %more.4 = add u32 %spins.1, 1:u32\n"
                           "      br 1 %more.4\n"
                           "    }\n"
                           "    yield %spins.1\n"
                           "  }\n"
                           "  %p.5 = index ptr.device %o, %i of u32\n"
                           "  store %p.5, 3:u32\n"
                           "  store %f, 1:u32\n"
                           "}\n";

static const char spin_in_locals[] = "kernel k(f: device u32, o: device u32, i: u32 [thread_position_in_grid]) {\n"
                                     "  %v.0 = var u32 0:u32\n"
                                     "  %t.1 = alloc ptr.thread of u32\n"
                                     "  loop {\n"
                                     "    %x.2 = load u32 %f\n"
                                     "    set %v.0, %x.2\n"
                                     "    %c.3 = load u32 %t.1\n"
                                     "    %c1.4 = add u32 %c.3, 1:u32\n"
                                     "    store %t.1, %c1.4\n"
                                     "    store %o, 9:u32\n"
                                     "    %g.5 = get u32 %v.0\n"
                                     "    %z.6 = eq bool %g.5, 0:u32\n"
                                     "    if %z.6 {\n"
                                     "      br 1\n"
                                     "    }\n"
                                     "  }\n"
                                     "}\n";

static const char spin_with_param[] = "kernel k(f: device u32, o: device u32, i: u32 [thread_position_in_grid]) {\n"
                                      "  %s.0 = alloc ptr.threadgroup of [u32 x 4]\n"
                                      "  %r.1: u32 = loop (%e.2: u32 = %i, %x.3: u32 = 0:u32) {\n"
                                      "    %z.4 = ne bool %x.3, %e.2\n"
                                      "    %big.5 = gt bool %e.2, 3:u32\n"
                                      "    %on.6 = and bool %z.4, %big.5\n"
                                      "    if %on.6 {\n"
                                      "      %y.7 = load u32 %s.0\n"
                                      "      br 1 %e.2, %y.7\n"
                                      "    }\n"
                                      "    yield %x.3\n"
                                      "  }\n"
                                      "  %p.8 = index ptr.device %o, %i of u32\n"
                                      "  store %p.8, %r.1\n"
                                      "}\n";

static const char lock[] = "kernel k(f: device u32, o: device u32, i: u32 [thread_position_in_grid]) {\n"
                           "  loop {\n"
                           "    %x.0 = atomic_exchange u32 %f, 1:u32 order(relaxed) scope(device)\n"
                           "    %z.1 = ne bool %x.0, 0:u32\n"
                           "    if %z.1 {\n"
                           "      br 1\n"
                           "    }\n"
                           "  }\n"
                           "}\n";

/* Progress all the same: a walk along memory, a count in memory, a loop over a limit in memory. */
static const char no_spin[] = "kernel k(f: device u32, o: device u32, i: u32 [thread_position_in_grid]) {\n"
                              "  loop (%k.0: u32 = 0:u32) {\n"
                              "    %q.1 = index ptr.device %o, %k.0 of u32\n"
                              "    %x.2 = load u32 %q.1\n"
                              "    %z.3 = eq bool %x.2, 0:u32\n"
                              "    if %z.3 {\n"
                              "      %k1.4 = add u32 %k.0, 1:u32\n"
                              "      br 1 %k1.4\n"
                              "    }\n"
                              "  }\n"
                              "  loop {\n"
                              "    %n.5 = load u32 %f\n"
                              "    %more.6 = lt bool %n.5, 5000:u32\n"
                              "    if %more.6 {\n"
                              "      %n1.7 = add u32 %n.5, 1:u32\n"
                              "      store %f, %n1.7\n"
                              "      br 1\n"
                              "    }\n"
                              "  }\n"
                              "  %t.8 = alloc ptr.thread of u32\n"
                              "  loop {\n"
                              "    %m.9 = load u32 %t.8\n"
                              "    %end.10 = load u32 %f\n"
                              "    %go.11 = lt bool %m.9, %end.10\n"
                              "    if %go.11 {\n"
                              "      %m1.12 = add u32 %m.9, 1:u32\n"
                              "      store %t.8, %m1.12\n"
                              "      br 1\n"
                              "    }\n"
                              "  }\n"
                              "}\n";

static void no_progress(void)
{
    static uint32_t flag[1], out[4096];
    struct call c = {
        .threads = {64, 1, 1}, .threadgroup = {64, 1, 1}, .args = {BUF(flag), BUF(out)}, .loop_limit = 1000};
    CHECK_EQ(run(spin, &c), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "NO_PROGRESS");
    CHECK_EQ(error.line, 2);
    CHECK(strstr(error.message, "thread (0, 0, 0)"));
    CHECK_EQ(out[0], 0); /* the waiting threads end there */
    CHECK_EQ(run(spin_in_locals, &c), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "NO_PROGRESS");
    CHECK_EQ(run(spin_with_param, &c), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "NO_PROGRESS");
    CHECK(strstr(error.message, "thread (4, 0, 0)"));
    flag[0] = 0;
    CHECK_EQ(run(lock, &c), SK_ERR_FAULT);
    CHECK_EQ_STR(error.name, "NO_PROGRESS");
    CHECK(strstr(error.message, "thread (1, 0, 0)"));
    memset(out, 0, sizeof out);
    flag[0] = 0;
    out[4095] = 1;
    ok(no_spin, &c);
    CHECK_EQ(flag[0], 5000);
}

static volatile int stop_word;

static void *stop_soon(void *unused)
{
    (void)unused;
    usleep(20000);
    __atomic_store_n(&stop_word, 1, __ATOMIC_RELAXED);
    return NULL;
}

static const char forever[] = "kernel k(o: device u32, li: u32 [thread_index_in_threadgroup]) {\n"
                              "  %c.0 = lt bool %li, 3:u32\n"
                              "  if %c.0 {\n"
                              "    loop {\n"
                              "      br 0\n"
                              "    }\n"
                              "  }\n"
                              "}\n";

static void stop(void)
{
    static uint32_t out[4];
    struct call c = {.threads = {64, 1, 1}, .threadgroup = {32, 1, 1}, .args = {BUF(out)}, .stop = &stop_word};
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, stop_soon, NULL), 0);
    CHECK_EQ(run(forever, &c), SK_ERR_INTERRUPTED);
    pthread_join(t, NULL);
    CHECK_EQ(run(two_barriers, &c), SK_ERR_INTERRUPTED);
    CHECK_EQ(out[0], 0);
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static void refusals(void)
{
    uint32_t out[4];
    CHECK_EQ(run("kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n  print %i \"i = {}\"\n}\n",
                 CALL(1, 1, BUF(out))),
             SK_ERR_UNSUPPORTED);
    CHECK(strstr(error.message, "'print'"));
    CHECK_EQ(error.line, 2);
    CHECK_EQ(run("kernel k(o: device [u32 x 100000]) {\n  %x.0 = load [u32 x 100000] %o\n  store %o, %x.0\n}\n",
                 CALL(1, 1, BUF(out))),
             SK_ERR_UNSUPPORTED);
    CHECK_EQ(run("kernel k(o: device u32) {\n  %x.0 = alloc ptr.thread of [u32 x 10000000]\n  %y.1 = load u32 %x.0\n  "
                 "store %o, %y.1\n}\n",
                 CALL(1, 1, BUF(out))),
             SK_ERR_UNSUPPORTED);
}

/* Rounding mode and flush-to-zero of the process change nothing and are left alone. */
static void float_environment(void)
{
    float in[64], out[64];
    for (int k = 0; k < 64; k++)
        in[k] = 1e-40f * (float)(k + 1);
    fesetround(FE_UPWARD);
    ok("kernel k(o: device f32, A: device f32, i: u32 [thread_position_in_grid]) {\n"
       "  %p.0 = index ptr.device %A, %i of f32\n"
       "  %x.1 = load f32 %p.0\n"
       "  %h.2 = mul f32 %x.1, 0.1:f32\n"
       "  %q.3 = index ptr.device %o, %i of f32\n"
       "  store %q.3, %h.2\n"
       "}\n",
       CALL(64, 64, BUF(out), BUF(in)));
    CHECK_EQ(fegetround(), FE_UPWARD);
    fesetround(FE_TONEAREST);
    for (int k = 0; k < 64; k++)
        CHECK_EQ(bits_f32(out[k]), bits_f32(in[k] * 0.1f));
}

/* One program, several threads. */
struct shared {
    const struct interp_program *p;
    uint32_t out[500];
};

static void *run_shared(void *x)
{
    struct shared *const s = x;
    struct mem own;
    sk_error err = {0};
    sk_status status = SK_OK;
    mem_init(&own, NULL);
    const struct interp_arg args[] = {BUF(s->out)};
    const struct interp_launch l = {.threads = {500, 1, 1}, .threadgroup = {100, 1, 1}, .args = args};
    for (int k = 0; k < 20 && status == SK_OK; k++)
        MEM_GUARD(&own, &err, status, interp_run(s->p, &l, &own, &err));
    return s;
}

static void several_threads(void)
{
    static const char text[] = "kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n"
                               "  %s.0 = simd_sum u32 %i\n"
                               "  barrier memory(none)\n"
                               "  %p.1 = index ptr.device %o, %i of u32\n"
                               "  store %p.1, %s.0\n"
                               "}\n";
    struct ir_module *m;
    struct interp_program *p;
    static struct shared s[4];
    pthread_t t[4];
    CHECK_EQ(ir_parse(&mem, text, strlen(text), "t", &m, &error), SK_OK);
    CHECK_EQ(interp_compile(&mem, m, 1, &p, &error), SK_OK);
    for (int k = 0; k < 4; k++) {
        s[k].p = p;
        CHECK_EQ(pthread_create(&t[k], NULL, run_shared, &s[k]), 0);
    }
    for (int k = 0; k < 4; k++) {
        pthread_join(t[k], NULL);
        CHECK_EQ(s[k].out[0], 31 * 16);
        CHECK(memcmp(s[k].out, s[0].out, sizeof s[0].out) == 0);
    }
    interp_free(p);
    ir_module_free(m);
}

/* ---- out of memory ---------------------------------------------------------------------------------------------- */

static sk_status compile_and_run(struct mem *scarce, const struct ir_module *m, const struct interp_launch *l,
                                 struct interp_program **p, sk_error *err)
{
    TRY(interp_compile(scarce, m, 1, p, err));
    return interp_run(*p, l, scarce, err);
}

static void scarce_memory(void)
{
    static const char text[] = "kernel k(o: device u32, li: u32 [thread_index_in_threadgroup]) {\n"
                               "  %s.0 = alloc ptr.threadgroup of [u32 x 64]\n"
                               "  loop (%k.1: u32 = 0:u32) {\n"
                               "    %late.2 = rem_trunc u32 %li, 3:u32\n"
                               "    %early.3 = lt bool %k.1, %late.2\n"
                               "    if %early.3 {\n"
                               "      %k1.4 = add u32 %k.1, 1:u32\n"
                               "      br 1 %k1.4\n"
                               "    }\n"
                               "    barrier memory(threadgroup)\n"
                               "  }\n"
                               "  %p.5 = index ptr.device %o, %li of u32\n"
                               "  store %p.5, %li\n"
                               "}\n";
    uint32_t out[64];
    const struct interp_arg args[] = {BUF(out)};
    const struct interp_launch l = {.threads = {64, 1, 1}, .threadgroup = {64, 1, 1}, .args = args};
    struct ir_module *m;
    struct mem scarce;
    struct faulty f = {.for_good = true};
    const sk_allocator a = faulty_allocator(&f);
    CHECK_EQ(ir_parse(&mem, text, strlen(text), "t", &m, &error), SK_OK);
    mem_init(&scarce, &a);
    for (long k = 0; k < 10000; k++) {
        struct interp_program *p = NULL;
        sk_error err = {0};
        sk_status status;
        f.left = k;
        f.failed = false;
        MEM_GUARD(&scarce, &err, status, compile_and_run(&scarce, m, &l, &p, &err));
        interp_free(p);
        CHECK_EQ(scarce.live, 0);
        CHECK(faulty_clean(&f));
        if (status == SK_OK)
            break;
        CHECK_EQ(status, SK_ERR_MEMORY);
    }
    CHECK(!f.failed);
    ir_module_free(m);
}

static sk_status all(void)
{
    reduction();
    ended_threads();
    fragments();
    fragment_alone();
    deadlock();
    atomics();
    out_of_bounds();
    large_buffer();
    lowest_thread();
    odd_bounds();
    assertions();
    no_progress();
    stop();
    refusals();
    float_environment();
    several_threads();
    scarce_memory();
    return SK_OK;
}

int main(void)
{
    sk_status status;
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, &error, status, all());
    CHECK_EQ(status, SK_OK);
    CHECK_EQ(mem.live, 0);
    return check_done();
}
