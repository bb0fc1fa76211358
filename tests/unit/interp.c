/* interp.c - the interpreter on whole kernels: attributes, control flow, values, memory. interp_threads.c has
 * barriers, atomics and faults, lanes.c and simd.c the operations.
 */
#include "unit/interp.h"

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
    ok("kernel k(o: device [u32 x 16], h: device u16x4, p: u32x3 [thread_position_in_grid], n: u32x3 "
       "[threads_per_grid],\n"
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
       "  %all.26 = make [u32 x 16] %i.8, %ugx.20, %ugz.21, %usx.22, %usy.23, %ugsx.24, %li, %lane, %sg, %q, %uqi.25, "
       "%w, 7:u32, %x.0, %y.1, %z.2\n"
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
                const uint32_t want[16] = {i,       x / GX, z / GZ, sx, sy, 2, li, li % 32,
                                           li / 32, li / 4, li % 4, 32, 7,  x, y,  z};
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
       "  %a.1: u32, %b.2: u32, %x.3: u32, %y.4: u32, %z.5: u32 = loop (%k.6: u32 = 0:u32, %f.7: u32 = 0:u32, %g.8: "
       "u32 = 1:u32, %p.9: u32 = 10:u32, %q.10: u32 = 20:u32, %r.11: u32 = 30:u32) {\n"
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
       CALL(70, 64, BUF(out), BUF(in), BUF(bits),
            {&(struct particle){{10, 20, 30, 0}, 1, {0}, 0}, sizeof(struct particle)}));
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
       "kernel k(o: device [u32 x 4], a: device u32, b: device u32, h: device ptr.device, i: u32 "
       "[thread_position_in_grid]) {\n"
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
