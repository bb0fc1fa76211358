/* interp.c - the interpreter on whole kernels: control flow, memory, barriers, atomics, faults. Each kernel runs as it is
 * written and again after the passes; both must agree. lanes.c and simd.c beside this file have the operations.
 */
#include "check.h"
#include "interp/interp.h"
#include "pass/pass.h"

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct mem mem;
static sk_error error;

#define ARGS_MAX 6
struct call {
    uint32_t threads[3], threadgroup[3];
    struct interp_arg args[ARGS_MAX];
    const volatile int *stop;
    uint64_t loop_limit;
};

static sk_status run_module(struct ir_module *m, const struct call *c)
{
    struct interp_program *p;
    TRY(interp_compile(&mem, m, m->funcs.n - 1, &p, &error));
    const struct interp_launch l = {.threads = {c->threads[0], c->threads[1], c->threads[2]},
                                    .threadgroup = {c->threadgroup[0], c->threadgroup[1], c->threadgroup[2]},
                                    .args = c->args,
                                    .stop = c->stop,
                                    .loop_limit = c->loop_limit};
    const sk_status status = interp_run(p, &l, &mem, &error);
    interp_free(p);
    return status;
}

/* The last function of the text runs. Its status, with `error` filled; buffers hold the result. */
static sk_status run(const char *text, const struct call *c)
{
    struct ir_module *m = NULL;
    char *before[ARGS_MAX] = {0}, *plain[ARGS_MAX] = {0};
    sk_error_clear(&error);
    if (ir_parse(&mem, text, strlen(text), "test.ir", &m, &error) != SK_OK) {
        CHECK_FAIL_("%s: %s, line %u", error.name, error.message, error.line);
        return error.status;
    }
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (!c->args[k].data)
            continue;
        before[k] = malloc(c->args[k].size + 1);
        plain[k] = malloc(c->args[k].size + 1);
        memcpy(before[k], c->args[k].data, c->args[k].size);
    }
    const sk_status first = run_module(m, c);
    const sk_error first_error = error;
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (!c->args[k].data)
            continue;
        memcpy(plain[k], c->args[k].data, c->args[k].size);
        memcpy(c->args[k].data, before[k], c->args[k].size);
    }
    sk_error_clear(&error);
    CHECK_EQ(pass_run(m, NULL, &error), SK_OK);
    const sk_status second = run_module(m, c);
    CHECK_EQ(first, second);
    if (first == second)
        CHECK_EQ_STR(first_error.message, error.message);
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (c->args[k].data)
            CHECK(memcmp(plain[k], c->args[k].data, c->args[k].size) == 0);
        free(before[k]);
        free(plain[k]);
    }
    ir_module_free(m);
    return first;
}

static void ok(const char *text, const struct call *c)
{
    const sk_status status = run(text, c);
    if (status != SK_OK)
        CHECK_FAIL_("%s: %s (line %u)", error.name, error.message, error.line);
}

#define CALL(n, g, ...) &(struct call){.threads = {n, 1, 1}, .threadgroup = {g, 1, 1}, .args = {__VA_ARGS__}}
#define BUF(a) {(a), sizeof(a)}

/* ---- attributes, edge groups ------------------------------------------------------------------------------------ */

static void edge_groups(void)
{
    static uint32_t out[1000003 * 3];
    ok("kernel k(o: device u32, i: u32 [thread_position_in_grid], t: u32 [threads_per_threadgroup],\n"
       "         s: u32 [simdgroups_per_threadgroup], d: u32 [dispatch_threads_per_threadgroup]) {\n"
       "  %j.0 = mul u32 %i, 3:u32\n"
       "  %p.1 = index ptr.device %o, %j.0 of u32\n"
       "  store %p.1, %t\n"
       "  %p1.2 = index ptr.device %p.1, 1:u32 of u32\n"
       "  store %p1.2, %s\n"
       "  %p2.3 = index ptr.device %p.1, 2:i32 of u32\n"
       "  %x.4 = add u32 %i, %d\n"
       "  store %p2.3, %x.4\n"
       "}\n",
       CALL(1000003, 256, BUF(out)));
    unsigned wrong = 0;
    for (uint32_t i = 0; i < 1000003; i++) {
        const uint32_t size = i < 1000003 / 256 * 256 ? 256 : 1000003 % 256;
        wrong += out[3 * i] != size || out[3 * i + 1] != (size + 31) / 32 || out[3 * i + 2] != i + 256;
    }
    CHECK_EQ(wrong, 0);
}

static void dimensions(void)
{
    enum { X = 5, Y = 7, Z = 3, GX = 4, GY = 2, GZ = 2, N = X * Y * Z };
    static uint32_t out[N][16];
    static uint16_t half[N][4];
    ok("kernel k(o: device [u32 x 16], h: device u16x4, p: u32x3 [thread_position_in_grid], n: u32x3 [threads_per_grid],\n"
       "         t: u16x3 [thread_position_in_threadgroup], g: u16x3 [threadgroup_position_in_grid],\n"
       "         s: u16x3 [threads_per_threadgroup], gs: u16x2 [threadgroups_per_grid],\n"
       "         li: u32 [thread_index_in_threadgroup], lane: u32 [thread_index_in_simdgroup],\n"
       "         sg: u32 [simdgroup_index_in_threadgroup], q: u32 [quadgroup_index_in_threadgroup],\n"
       "         qi: u16 [thread_index_in_quadgroup], w: u32 [threads_per_simdgroup]) {\n"
       "  %x.0 = extract u32 %p [0]\n"
       "  %y.1 = extract u32 %p [1]\n"
       "  %z.2 = extract u32 %p [2]\n"
       "  %nx.3 = extract u32 %n [0]\n"
       "  %ny.4 = extract u32 %n [1]\n"
       "  %a.5 = mul u32 %z.2, %ny.4\n"
       "  %b.6 = add u32 %a.5, %y.1\n"
       "  %c.7 = mul u32 %b.6, %nx.3\n"
       "  %i.8 = add u32 %c.7, %x.0\n"
       "  %tx.9 = extract u16 %t [0]\n"
       "  %ty.10 = extract u16 %t [1]\n"
       "  %tz.11 = extract u16 %t [2]\n"
       "  %gx.12 = extract u16 %g [0]\n"
       "  %gz.13 = extract u16 %g [2]\n"
       "  %sx.14 = extract u16 %s [0]\n"
       "  %sy.15 = extract u16 %s [1]\n"
       "  %gsx.16 = extract u16 %gs [0]\n"
       "  %gsy.17 = extract u16 %gs [1]\n"
       "  %v.18 = make u16x4 %tx.9, %ty.10, %tz.11, %gsy.17\n"
       "  %ph.19 = index ptr.device %h, %i.8 of u16x4\n"
       "  store %ph.19, %v.18\n"
       "  %ugx.20 = convert u32 %gx.12\n"
       "  %ugz.21 = convert u32 %gz.13\n"
       "  %usx.22 = convert u32 %sx.14\n"
       "  %usy.23 = convert u32 %sy.15\n"
       "  %ugsx.24 = convert u32 %gsx.16\n"
       "  %uqi.25 = convert u32 %qi\n"
       "  %all.26 = make [u32 x 16] %i.8, %ugx.20, %ugz.21, %usx.22, %usy.23, %ugsx.24, %li, %lane, %sg, %q, %uqi.25, %w, 7:u32, %x.0, %y.1, %z.2\n"
       "  %po.27 = index ptr.device %o, %i.8 of [u32 x 16]\n"
       "  store %po.27, %all.26\n"
       "}\n",
       &(struct call){.threads = {X, Y, Z}, .threadgroup = {GX, GY, GZ}, .args = {BUF(out), BUF(half)}});
    for (uint32_t z = 0, i = 0; z < Z; z++) {
        for (uint32_t y = 0; y < Y; y++) {
            for (uint32_t x = 0; x < X; x++, i++) {
                const uint32_t sx = X - x / GX * GX < GX ? X - x / GX * GX : GX;
                const uint32_t sy = Y - y / GY * GY < GY ? Y - y / GY * GY : GY;
                const uint32_t li = x % GX + sx * (y % GY + sy * (z % GZ));
                const uint32_t want[16] = {i,  x / GX,  z / GZ,  sx,     sy,     2, li,  li % 32,
                                           li / 32, li / 4, li % 4, 32, 7, x, y, z};
                for (unsigned k = 0; k < 16; k++)
                    CHECK_EQ(out[i][k], want[k]);
                CHECK_EQ(half[i][0], x % GX);
                CHECK_EQ(half[i][1], y % GY);
                CHECK_EQ(half[i][2], z % GZ);
                CHECK_EQ(half[i][3], 4);
            }
        }
    }
}

/* ---- control flow ----------------------------------------------------------------------------------------------- */

/* Steps of Collatz with a limit: break from inside of an if, continue, early return of some lanes. */
static void divergence(void)
{
    static uint32_t out[1000];
    memset(out, 0xff, sizeof out);
    ok("kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n"
       "  %m.0 = rem_trunc u32 %i, 13:u32\n"
       "  %q.1 = eq bool %m.0, 12:u32\n"
       "  if %q.1 {\n"
       "    return\n"
       "  }\n"
       "  %r.2: u32 = loop (%x.3: u32 = %i, %n.4: u32 = 0:u32) {\n"
       "    %small.5 = le bool %x.3, 1:u32\n"
       "    if %small.5 {\n"
       "      br 0\n"
       "    } else {\n"
       "      %many.6 = ge bool %n.4, 50:u32\n"
       "      if %many.6 {\n"
       "        br 1\n"
       "      }\n"
       "      %n1.7 = add u32 %n.4, 1:u32\n"
       "      %bit.8 = and u32 %x.3, 1:u32\n"
       "      %odd.9 = ne bool %bit.8, 0:u32\n"
       "      if %odd.9 {\n"
       "        %t.10 = mul u32 %x.3, 3:u32\n"
       "        %t1.11 = add u32 %t.10, 1:u32\n"
       "        br 2 %t1.11, %n1.7\n"
       "      }\n"
       "      %h.12 = shr u32 %x.3, 1:u32\n"
       "      br 1 %h.12, %n1.7\n"
       "    }\n"
       "    yield %n.4\n"
       "  }\n"
       "  %p.13 = index ptr.device %o, %i of u32\n"
       "  store %p.13, %r.2\n"
       "}\n",
       CALL(1000, 100, BUF(out)));
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t x = i, n = 0;
        while (x > 1 && n < 50) {
            x = x & 1 ? 3 * x + 1 : x / 2;
            n++;
        }
        CHECK_EQ(out[i], i % 13 == 12 ? UINT32_MAX : n);
    }
}

/* Three nested loops; a lane leaves all of them, or repeats the outermost, from the innermost. Results over blocks. */
static void several_levels(void)
{
    static uint32_t out[256][2];
    ok("kernel k(o: device u32x2, i: u32 [thread_position_in_grid]) {\n"
       "  %c.0 = var u32 0:u32\n"
       "  %res.1: u32 = block {\n"
       "    %left.2: u32 = loop (%a.3: u32 = 0:u32) {\n"
       "      %am.4 = lt bool %a.3, 7:u32\n"
       "      if %am.4 {\n"
       "        loop (%b.5: u32 = 0:u32) {\n"
       "          %bm.6 = lt bool %b.5, 5:u32\n"
       "          if %bm.6 {\n"
       "            loop (%d.7: u32 = 0:u32) {\n"
       "              %dm.8 = lt bool %d.7, 4:u32\n"
       "              if %dm.8 {\n"
       "                %c0.9 = get u32 %c.0\n"
       "                %c1.10 = add u32 %c0.9, 1:u32\n"
       "                set %c.0, %c1.10\n"
       "                %h0.11 = mul u32 %c1.10, 2654435761:u32\n"
       "                %h1.12 = mul u32 %i, 40503:u32\n"
       "                %h2.13 = xor u32 %h0.11, %h1.12\n"
       "                %h.14 = shr u32 %h2.13, 26:u32\n"
       "                switch %h.14 {\n"
       "                  case 0 {\n"
       "                    %a1.15 = add u32 %a.3, 100:u32\n"
       "                    br 7 %a1.15\n"
       "                  }\n"
       "                  case 1, 2, 3, 4 {\n"
       "                    %a2.16 = add u32 %a.3, 1:u32\n"
       "                    br 6 %a2.16\n"
       "                  }\n"
       "                  case 5, 6 {\n"
       "                    %b2.17 = add u32 %b.5, 1:u32\n"
       "                    br 4 %b2.17\n"
       "                  }\n"
       "                  case 7 {\n"
       "                    return\n"
       "                  }\n"
       "                  default {\n"
       "                    %d3.18 = add u32 %d.7, 2:u32\n"
       "                    br 2 %d3.18\n"
       "                  }\n"
       "                }\n"
       "              }\n"
       "            }\n"
       "            %b4.19 = add u32 %b.5, 2:u32\n"
       "            br 1 %b4.19\n"
       "          }\n"
       "        }\n"
       "        %a4.20 = add u32 %a.3, 3:u32\n"
       "        br 1 %a4.20\n"
       "      }\n"
       "      yield %a.3\n"
       "    }\n"
       "    yield %left.2\n"
       "  }\n"
       "  %n.21 = get u32 %c.0\n"
       "  %v.22 = make u32x2 %res.1, %n.21\n"
       "  %p.23 = index ptr.device %o, %i of u32x2\n"
       "  store %p.23, %v.22\n"
       "}\n",
       CALL(256, 64, BUF(out)));
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t a = 0, c = 0, want[2] = {0};
    outer:
        while (a < 7) {
            uint32_t b = 0;
        middle:
            while (b < 5) {
                for (uint32_t d = 0; d < 4; d += 2) {
                    c++;
                    const uint32_t h = ((c * 2654435761u) ^ (i * 40503u)) >> 26;
                    if (h == 0) {
                        a += 100;
                        goto done;
                    }
                    if (h <= 4) {
                        a++;
                        goto outer;
                    }
                    if (h <= 6) {
                        b++;
                        goto middle;
                    }
                    if (h == 7)
                        goto gone;
                }
                b += 2;
            }
            a += 3;
        }
    done:
        want[0] = a;
        want[1] = c;
    gone:
        CHECK_EQ(out[i][0], want[0]);
        CHECK_EQ(out[i][1], want[1]);
    }
}

static void switches(void)
{
    static int64_t out[64];
    static int8_t in[64];
    for (int k = 0; k < 64; k++)
        in[k] = (int8_t)(k * 37 - 100);
    in[5] = -1;
    in[6] = -128;
    ok("kernel k(o: device i64, a: device i8, i: u32 [thread_position_in_grid]) {\n"
       "  %p.0 = index ptr.device %a, %i of i8\n"
       "  %x.1 = load i8 %p.0\n"
       "  %r.2: i64 = switch %x.1 {\n"
       "    case -1 {\n"
       "      yield 1:i64\n"
       "    }\n"
       "    case -128, 127, 11 {\n"
       "      yield 2:i64\n"
       "    }\n"
       "    default {\n"
       "      %w.3 = convert i64 %x.1\n"
       "      yield %w.3\n"
       "    }\n"
       "  }\n"
       "  switch %x.1 {\n"
       "    case 48 {\n"
       "      %q.4 = index ptr.device %o, 0:u32 of i64\n"
       "      return\n"
       "    }\n"
       "  }\n"
       "  %s.5 = index ptr.device %o, %i of i64\n"
       "  store %s.5, %r.2\n"
       "}\n",
       CALL(64, 64, BUF(out), BUF(in)));
    for (int k = 0; k < 64; k++)
        CHECK_EQ(out[k], in[k] == 48 ? 0 : in[k] == -1 ? 1 : in[k] == -128 || in[k] == 127 || in[k] == 11 ? 2 : in[k]);
}

/* Loop parameters are assigned at once: a swap, a rotation, a Fibonacci step, under a divergent count. */
static void parallel_moves(void)
{
    static uint32_t out[100][5];
    ok("kernel k(o: device [u32 x 5], i: u32 [thread_position_in_grid]) {\n"
       "  %n.0 = rem_trunc u32 %i, 17:u32\n"
       "  %a.1: u32, %b.2: u32, %x.3: u32, %y.4: u32, %z.5: u32 = loop (%k.6: u32 = 0:u32, %f.7: u32 = 0:u32, %g.8: u32 = 1:u32, %p.9: u32 = 10:u32, %q.10: u32 = 20:u32, %r.11: u32 = 30:u32) {\n"
       "    %m.12 = lt bool %k.6, %n.0\n"
       "    if %m.12 {\n"
       "      %k1.13 = add u32 %k.6, 1:u32\n"
       "      %s.14 = add u32 %f.7, %g.8\n"
       "      br 1 %k1.13, %g.8, %s.14, %q.10, %r.11, %p.9\n"
       "    }\n"
       "    yield %f.7, %g.8, %p.9, %q.10, %r.11\n"
       "  }\n"
       "  %v.15 = make [u32 x 5] %a.1, %b.2, %x.3, %y.4, %z.5\n"
       "  %w.16 = index ptr.device %o, %i of [u32 x 5]\n"
       "  store %w.16, %v.15\n"
       "}\n",
       CALL(100, 50, BUF(out)));
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t f = 0, g = 1, r[3] = {10, 20, 30};
        for (uint32_t k = 0; k < i % 17; k++) {
            const uint32_t s = f + g, t = r[0];
            f = g;
            g = s;
            r[0] = r[1];
            r[1] = r[2];
            r[2] = t;
        }
        CHECK_EQ(out[i][0], f);
        CHECK_EQ(out[i][1], g);
        for (int k = 0; k < 3; k++)
            CHECK_EQ(out[i][2 + k], r[k]);
    }
}

/* ---- values and memory ------------------------------------------------------------------------------------------ */

struct particle { /* as Metal lays it out */
    float pos[4]; /* f32x3 */
    uint8_t alive;
    _Alignas(4) uint16_t tag[2];
    int64_t id;
};
_Static_assert(sizeof(struct particle) == 32, "");

static void aggregates(void)
{
    static struct particle in[70], out[70];
    static uint64_t bits[70];
    memset(out, 0xee, sizeof out);
    for (unsigned k = 0; k < 70; k++)
        in[k] = (struct particle){{(float)k, 2, 3, 4}, k % 3 ? 7 : 0, {(uint16_t)k, 9}, -(int64_t)k};
    ok("struct P { pos: f32x3, alive: bool, tag: u16x2, id: i64 }\n\n"
       "kernel k(o: device P, a: device P, b: device u64, one: P, i: u32 [thread_position_in_grid]) {\n"
       "  %pa.0 = index ptr.device %a, %i of P\n"
       "  %x.1 = load P %pa.0\n"
       "  %pos.2 = extract f32x3 %x.1 [0]\n"
       "  %opos.3 = extract f32x3 %one [0]\n"
       "  %sum.4 = add f32x3 %pos.2, %opos.3\n"
       "  %rev.5 = shuffle f32x3 %sum.4, %pos.2 [2, 1, 4]\n"
       "  %y.6 = insert P %x.1, %rev.5 [0]\n"
       "  %po.7 = index ptr.device %o, %i of P\n"
       "  store %po.7, %y.6\n"
       "  %pt.8 = field ptr.device %po.7 of P [2]\n"
       "  %tag.9 = load u16x2 %pt.8\n"
       "  %u.10 = bitcast u32 %tag.9\n"
       "  %pair.11 = make u32x2 %u.10, %i\n"
       "  %big.12 = bitcast u64 %pair.11\n"
       "  %back.13 = bitcast u16x4 %big.12\n"
       "  %b2.14 = extract u16 %back.13 [2]\n"
       "  %w.15 = convert u64 %b2.14\n"
       "  %ww.16 = shl u64 %w.15, 48:u8\n"
       "  %z.17 = xor u64 %big.12, %ww.16\n"
       "  %pb.18 = index ptr.device %b, %i of u64\n"
       "  store %pb.18, %z.17\n"
       "}\n",
       CALL(70, 64, BUF(out), BUF(in), BUF(bits), {&(struct particle){{10, 20, 30, 0}, 1, {0}, 0}, sizeof(struct particle)}));
    for (unsigned k = 0; k < 70; k++) {
        CHECK_EQ(out[k].pos[0], 33);
        CHECK_EQ(out[k].pos[1], 22);
        CHECK_EQ(out[k].pos[2], k);
        CHECK_EQ(bits_f32(out[k].pos[3]), 0xeeeeeeee); /* padding is not written */
        CHECK_EQ(out[k].alive, k % 3 != 0);            /* a bool is 0 or 1 */
        CHECK_EQ(out[k].id, -(int64_t)k);
        CHECK_EQ(bits[k], ((uint64_t)k << 32 | 9u << 16 | k) ^ (uint64_t)k << 48);
    }
}

static void run_time_parts(void)
{
    static float out[64][2];
    static int32_t index[64];
    for (int k = 0; k < 64; k++)
        index[k] = k % 9 - 2;
    ok("kernel k(o: device f32x2, a: device i32, i: u32 [thread_position_in_grid]) {\n"
       "  %p.0 = index ptr.device %a, %i of i32\n"
       "  %n.1 = load i32 %p.0\n"
       "  %f.2 = convert f32 %i\n"
       "  %v.3 = make [f32 x 5] 1.0:f32, 2.0:f32, 3.0:f32, 4.0:f32, 5.0:f32\n"
       "  %w.4 = insert_at [f32 x 5] %v.3, %f.2, %n.1\n"
       "  %x.5 = extract_at f32 %w.4, %n.1\n"
       "  %y.6 = extract f32 %w.4 [2]\n"
       "  %r.7 = make f32x2 %x.5, %y.6\n"
       "  %q.8 = index ptr.device %o, %i of f32x2\n"
       "  store %q.8, %r.7\n"
       "}\n",
       CALL(64, 64, BUF(out), BUF(index)));
    for (int k = 0; k < 64; k++) {
        CHECK_EQ(out[k][0], index[k] < 0 || index[k] > 4 ? 0 : k);
        CHECK_EQ(out[k][1], index[k] == 2 ? k : 3);
    }
}

/* Pointers as values: chosen, carried by a loop, compared, kept in thread memory and in a buffer. */
static void pointers(void)
{
    static uint32_t out[64][4], a[64], b[64];
    static uint64_t handles[64];
    for (uint32_t k = 0; k < 64; k++) {
        a[k] = 100 + k;
        b[k] = 200 + k;
    }
    ok("struct Link { p: ptr.device, n: u32 }\n\n"
       "kernel k(o: device [u32 x 4], a: device u32, b: device u32, h: device ptr.device, i: u32 [thread_position_in_grid]) {\n"
       "  %bit.0 = and u32 %i, 1:u32\n"
       "  %odd.1 = ne bool %bit.0, 0:u32\n"
       "  %pa.2 = index ptr.device %a, %i of u32\n"
       "  %pb.3 = index ptr.device %b, %i of u32\n"
       "  %p.4 = select ptr.device %odd.1, %pa.2, %pb.3\n"
       "  %x.5 = load u32 %p.4\n"
       "  %same.6 = eq bool %p.4, %pa.2\n"
       "  %sum.7: u32 = loop (%q.8: ptr.device = %p.4, %k.9: u32 = 0:u32, %s.10: u32 = 0:u32) {\n"
       "    %e.11 = load u32 %q.8\n"
       "    %s1.12 = add u32 %s.10, %e.11\n"
       "    %k1.13 = add u32 %k.9, 1:u32\n"
       "    %back.14 = index ptr.device %q.8, -1:i32 of u32\n"
       "    %m.15 = lt bool %k1.13, 3:u32\n"
       "    %enough.16 = ge bool %i, 2:u32\n"
       "    %both.17 = and bool %m.15, %enough.16\n"
       "    if %both.17 {\n"
       "      br 1 %back.14, %k1.13, %s1.12\n"
       "    }\n"
       "    yield %s1.12\n"
       "  }\n"
       "  %link.18 = make Link %p.4, %i\n"
       "  %t.19 = alloc ptr.thread of [Link x 3]\n"
       "  %t1.20 = index ptr.thread %t.19, 1:u32 of Link\n"
       "  store %t1.20, %link.18\n"
       "  %tl.21 = load Link %t1.20\n"
       "  %tp.22 = extract ptr.device %tl.21 [0]\n"
       "  %y.23 = load u32 %tp.22\n"
       "  %ph.24 = index ptr.device %h, %i of ptr.device\n"
       "  store %ph.24, %p.4\n"
       "  %lp.25 = load ptr.device %ph.24\n"
       "  %z0.26 = load u32 %lp.25\n"
       "  %one.27 = convert u32 %same.6\n"
       "  %z.28 = add u32 %z0.26, %one.27\n"
       "  %v.29 = make [u32 x 4] %x.5, %sum.7, %y.23, %z.28\n"
       "  %po.30 = index ptr.device %o, %i of [u32 x 4]\n"
       "  store %po.30, %v.29\n"
       "}\n",
       CALL(64, 64, BUF(out), BUF(a), BUF(b), BUF(handles)));
    for (uint32_t k = 0; k < 64; k++) {
        const uint32_t x = (k & 1 ? 100 : 200) + k;
        CHECK_EQ(out[k][0], x);
        CHECK_EQ(out[k][1], k < 2 ? x : 3 * x - 3);
        CHECK_EQ(out[k][2], x);
        CHECK_EQ(out[k][3], x + (k & 1));
    }
}

/* Thread memory is zero at each execution of its alloc, has bytes, and belongs to one thread. */
static void thread_memory(void)
{
    static uint32_t out[96][3];
    ok("kernel k(o: device [u32 x 3], i: u32 [thread_position_in_grid]) {\n"
       "  %n.0 = rem_trunc u32 %i, 5:u32\n"
       "  %r.1: u32 = loop (%k.2: u32 = 0:u32, %s.3: u32 = 0:u32) {\n"
       "    %m.4 = le bool %k.2, %n.0\n"
       "    if %m.4 {\n"
       "      %t.5 = alloc ptr.thread of [u32 x 8]\n"
       "      %q.6 = index ptr.thread %t.5, %k.2 of u32\n"
       "      %old.7 = load u32 %q.6\n"
       "      %old2.8 = add u32 %old.7, 3:u32\n"
       "      store %q.6, %old2.8\n"
       "      %q0.9 = index ptr.thread %t.5, 0:u32 of u32\n"
       "      %e.10 = load u32 %q0.9\n"
       "      %e2.11 = load u32 %q.6\n"
       "      %s1.12 = add u32 %s.3, %e.10\n"
       "      %s2.13 = add u32 %s1.12, %e2.11\n"
       "      %k1.14 = add u32 %k.2, 1:u32\n"
       "      br 1 %k1.14, %s2.13\n"
       "    }\n"
       "    yield %s.3\n"
       "  }\n"
       "  %u.15 = alloc ptr.thread of f32x4\n"
       "  %f.16 = convert f32 %i\n"
       "  %v.17 = make f32x4 1.0:f32, %f.16, 3.0:f32, 4.0:f32\n"
       "  store %u.15, %v.17\n"
       "  %b.18 = index ptr.thread %u.15, 6:u32 of u8\n"
       "  %w.19 = load u32 %b.18\n"
       "  %c.20 = index ptr.thread %u.15, 4:u32 of u8\n"
       "  store %c.20, 7:u8\n"
       "  %x.21 = load u32 %c.20\n"
       "  %all.22 = make [u32 x 3] %r.1, %w.19, %x.21\n"
       "  %po.23 = index ptr.device %o, %i of [u32 x 3]\n"
       "  store %po.23, %all.22\n"
       "}\n",
       CALL(96, 96, BUF(out)));
    for (uint32_t k = 0; k < 96; k++) {
        const float f = (float)k;
        CHECK_EQ(out[k][0], 3 * (k % 5 + 1) + 3);
        CHECK_EQ(out[k][1], bits_f32(f) >> 16 | 0x40400000u << 16);
        CHECK_EQ(out[k][2], (bits_f32(f) & ~0xffu) | 7);
    }
}

/* Stores of one simdgroup go lane by lane: where they overlap the last lane wins. Any alignment. */
static void overlapping_stores(void)
{
    static uint8_t out[200];
    static uint32_t last[1];
    ok("kernel k(o: device u8, l: device u32, i: u32 [thread_position_in_grid]) {\n"
       "  %p.0 = index ptr.device %o, %i of u8\n"
       "  %a.1 = mul u32 %i, 16843009:u32\n"
       "  %v.2 = make u32x2 %a.1, %a.1\n"
       "  store %p.0, %v.2\n"
       "  store %l, %i\n"
       "}\n",
       CALL(100, 100, BUF(out), BUF(last)));
    for (unsigned k = 0; k < 107; k++)
        CHECK_EQ(out[k], k < 100 ? k : 99);
    CHECK_EQ(last[0], 99);
}

/* An index added to an index; a get before a set. */
static void two_indices(void)
{
    static uint32_t out[64], in[64][4];
    for (uint32_t k = 0; k < 256; k++)
        in[k / 4][k % 4] = 1000 + k;
    ok("kernel k(o: device u32, a: device [u32 x 4], i: u32 [thread_position_in_grid]) {\n"
       "  %v.0 = var u32 %i\n"
       "  %old.1 = get u32 %v.0\n"
       "  %j.2 = and u32 %i, 3:u32\n"
       "  set %v.0, %j.2\n"
       "  %row.3 = index ptr.device %a, %old.1 of [u32 x 4]\n"
       "  %jj.4 = get u32 %v.0\n"
       "  %p.5 = index ptr.device %row.3, %jj.4 of u32\n"
       "  %q.6 = index ptr.device %row.3, %old.1 of u8\n"
       "  %x.7 = load u32 %p.5\n"
       "  %far.8 = gt bool %old.1, 60:u32\n"
       "  %y.9: u32 = if %far.8 {\n"
       "    yield 0:u32\n"
       "  } else {\n"
       "    %b.10 = load u8 %q.6\n"
       "    %w.11 = convert u32 %b.10\n"
       "    yield %w.11\n"
       "  }\n"
       "  %z.12 = add u32 %x.7, %y.9\n"
       "  %po.13 = index ptr.device %o, %old.1 of u32\n"
       "  store %po.13, %z.12\n"
       "}\n",
       CALL(64, 64, BUF(out), BUF(in)));
    for (uint32_t k = 0; k < 64; k++)
        CHECK_EQ(out[k], in[k][k & 3] + (k > 60 ? 0 : ((const uint8_t *)in)[16 * k + k]));
}

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

static const char two_barriers[] = "kernel k(o: device u32, li: u32 [thread_index_in_threadgroup], g: u32 [threadgroup_position_in_grid]) {\n"
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
    ok("kernel k(h: device atomic u32, w: device i64, r: device f32, old: device u32, i: u32 [thread_position_in_grid]) {\n"
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

static const char shifted_copy[] = "kernel copy(o: device f32, A: device f32, d: i32, i: u32 [thread_position_in_grid]) {\n"
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
    CHECK_EQ(run("kernel k(o: device f32, li: u32 [thread_index_in_threadgroup], g: u32 [threadgroup_position_in_grid]) {\n"
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
    CHECK(strstr(error.message, "byte 50, its size is 64 bytes"));
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
             SK_OK); /* addresses wrap, as the arithmetic of pointers does */
    CHECK_EQ(out[1], 5);
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
    struct call c = {.threads = {64, 1, 1}, .threadgroup = {64, 1, 1}, .args = {BUF(flag), BUF(out)}, .loop_limit = 1000};
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
    stop_word = 1;
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
    CHECK_EQ(run("kernel k(o: device u32, i: u32 [thread_position_in_grid]) {\n  print %i \"i = {}\"\n}\n", CALL(1, 1, BUF(out))), SK_ERR_UNSUPPORTED);
    CHECK(strstr(error.message, "'print'"));
    CHECK_EQ(error.line, 2);
    CHECK_EQ(run("kernel k(o: device [u32 x 100000]) {\n  %x.0 = load [u32 x 100000] %o\n  store %o, %x.0\n}\n", CALL(1, 1, BUF(out))), SK_ERR_UNSUPPORTED);
    CHECK_EQ(run("kernel k(o: device u32) {\n  %x.0 = alloc ptr.thread of [u32 x 10000000]\n  %y.1 = load u32 %x.0\n  store %o, %y.1\n}\n", CALL(1, 1, BUF(out))),
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

static long countdown;

static void *scarce_allocate(void *user, size_t size)
{
    (void)user;
    return countdown-- > 0 ? malloc(size) : NULL;
}

static void *scarce_resize(void *user, void *p, size_t old, size_t size)
{
    (void)user;
    (void)old;
    return countdown-- > 0 ? realloc(p, size) : NULL;
}

static void scarce_release(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

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
    CHECK_EQ(ir_parse(&mem, text, strlen(text), "t", &m, &error), SK_OK);
    mem_init(&scarce, &(sk_allocator){scarce_allocate, scarce_resize, scarce_release, NULL});
    for (long k = 0; k < 10000; k++) {
        struct interp_program *p = NULL;
        sk_error err = {0};
        sk_status status;
        countdown = k;
        MEM_GUARD(&scarce, &err, status, compile_and_run(&scarce, m, &l, &p, &err));
        interp_free(p);
        CHECK_EQ(scarce.live, 0);
        if (status == SK_OK)
            break;
        CHECK_EQ(status, SK_ERR_MEMORY);
    }
    CHECK(countdown >= 0);
    ir_module_free(m);
}

static sk_status all(void)
{
    edge_groups();
    dimensions();
    divergence();
    several_levels();
    switches();
    parallel_moves();
    aggregates();
    run_time_parts();
    two_indices();
    pointers();
    thread_memory();
    overlapping_stores();
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
