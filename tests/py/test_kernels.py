"""Whole kernels against NumPy: what a user writes, on the default device. tests/run.py runs these on each device."""

import ml_dtypes
import numpy as np
import pytest

import spork as sk

f32, i32, u8, u32 = sk.dt.float32, sk.dt.int32, sk.dt.uint8, sk.dt.uint32
F32, I32, U8, U32 = (sk.DevicePointer[t] for t in (f32, i32, u8, u32))
THREAD = sk.Uint[sk.ThreadPositionInGrid]
THREAD2 = sk.Uint2[sk.ThreadPositionInGrid]
LOCAL = sk.Uint[sk.ThreadPositionInThreadgroup]
LOCAL2 = sk.Uint2[sk.ThreadPositionInThreadgroup]
GROUP = sk.Uint[sk.ThreadgroupPositionInGrid]
GROUP2 = sk.Uint2[sk.ThreadgroupPositionInGrid]
LANE = sk.Uint[sk.ThreadIndexInSimdgroup]
SIMDGROUP = sk.Uint[sk.SimdgroupIndexInThreadgroup]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 1000, 4096])
@pytest.mark.parametrize("threadgroup", [1, 7, 32, 100, 256, 1024])
def test_add_any_size(n, threadgroup):
    @sk.jit
    def add(out: F32, a: F32, b: F32, i: THREAD):
        out[i] = a[i] + b[i]

    a, b, out = numbers(n), numbers(n, seed=1), np.zeros(n, np.float32)
    add.launch(out, a, b, threads=n, threadgroup=threadgroup)
    assert np.array_equal(out, a + b)


@pytest.mark.parametrize("threads", [(1, 1, 1), (5, 3, 2), (33, 9, 4), (64, 8, 8)])
@pytest.mark.parametrize("threadgroup", [(1, 1, 1), (8, 4, 2), (32, 2, 1), (5, 5, 5)])
def test_positions(threads, threadgroup):
    @sk.jit
    def positions(
        out: U32, i: sk.Uint3[sk.ThreadPositionInGrid], t: sk.Uint3[sk.ThreadPositionInThreadgroup], n: sk.Uint3[sk.ThreadsPerGrid]
    ):
        at = 4 * ((i.z * n.y + i.y) * n.x + i.x)
        out[at], out[at + 1], out[at + 2] = i.x, i.y, i.z
        out[at + 3] = t.x + 100 * t.y + 10000 * t.z

    out = np.zeros((threads[2], threads[1], threads[0], 4), np.uint32)
    positions.launch(out, threads=threads, threadgroup=threadgroup)
    z, y, x = np.indices(out.shape[:3])
    assert np.array_equal(out[..., 0], x) and np.array_equal(out[..., 1], y) and np.array_equal(out[..., 2], z)
    tx, ty, tz = (p % g for p, g in zip((x, y, z), threadgroup, strict=True))
    assert np.array_equal(out[..., 3], tx + 100 * ty + 10000 * tz)


def test_mandelbrot():
    @sk.jit(contract=False)
    def mandelbrot(out: I32, n: sk.Uint, step: sk.Float, at: THREAD2):
        cx, cy = sk.cast(at.x, f32) * step - 2, sk.cast(at.y, f32) * step - 1.5
        x, y, count = sk.local(f32), sk.local(f32), sk.local(i32)
        with sk.while_((x * x + y * y <= 4) & (count < 64)):
            t = x * x - y * y + cx
            y.assign(2 * x * y + cy)
            x.assign(t)
            count += 1
        out[at.y * n + at.x] = count

    n = 70
    step = np.float32(3 / n)
    out = np.zeros((n, n), np.int32)
    mandelbrot.launch(out, n, step, threads=(n, n), threadgroup=(16, 16))
    cx = (np.arange(n, dtype=np.float32) * step - np.float32(2))[None, :] + np.zeros((n, 1), np.float32)
    cy = (np.arange(n, dtype=np.float32) * step - np.float32(1.5))[:, None] + np.zeros((1, n), np.float32)
    x, y, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros((n, n), np.int32)
    for _ in range(64):
        on = x * x + y * y <= 4
        x, y = np.where(on, x * x - y * y + cx, x), np.where(on, 2 * x * y + cy, y)
        count += on
    assert np.array_equal(out, count)


def test_stencil_with_edges():
    @sk.jit
    def stencil(out: F32, a: F32, n: sk.Uint, at: THREAD2):
        x, y = at.x, at.y
        i = y * n + x
        with sk.if_((x > 0) & (x < n - 1) & (y > 0) & (y < n - 1)) as inside:
            out[i] = 0.5 * a[i] + 0.125 * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n])
        with inside.else_():
            out[i] = a[i]

    n = 50
    a = numbers(n, n)
    out = np.zeros_like(a)
    stencil.launch(out, a, n, threads=(n, n), threadgroup=(32, 4))
    expected = a.copy()
    around = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    expected[1:-1, 1:-1] = 0.5 * a[1:-1, 1:-1] + 0.125 * around
    assert np.allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_life():
    @sk.jit
    def life(out: U8, a: U8, n: sk.Uint, at: THREAD2):
        x, y = at.x, at.y
        i = y * n + x
        count = sk.local(u8)
        with sk.if_((x > 0) & (x < n - 1) & (y > 0) & (y < n - 1)):
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    if dx or dy:
                        count += a[sk.cast(i, i32) + dy * sk.cast(n, i32) + dx]
            out[i] = (count == 3) | ((count == 2) & (a[i] != 0))

    n = 48
    a = (np.random.default_rng(3).random((n, n)) < 0.4).astype(np.uint8)
    out = np.zeros_like(a)
    life.launch(out, a, n, threads=(n, n), threadgroup=(16, 16))
    count = sum(np.roll(a, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dx or dy)
    expected = ((count == 3) | ((count == 2) & (a != 0))).astype(np.uint8)
    assert np.array_equal(out[1:-1, 1:-1], expected[1:-1, 1:-1])


@pytest.mark.parametrize("T", [4, 16])
def test_matmul_in_tiles(T):
    @sk.jit
    def matmul(c: F32, a: F32, b: F32, n: sk.Uint, at: THREAD2, t: LOCAL2):
        left, right = sk.threadgroup(f32, (T, T)), sk.threadgroup(f32, (T, T))
        acc = sk.local(f32)
        for k in sk.range(0, n, T):
            left[t.y, t.x] = a[at.y * n + k + t.x]
            right[t.y, t.x] = b[(k + t.y) * n + at.x]
            sk.threadgroup_barrier()
            for j in sk.range(T):
                acc += left[t.y, j] * right[j, t.x]
            sk.threadgroup_barrier()
        c[at.y * n + at.x] = acc

    n = 48
    a, b, c = numbers(n, n), numbers(n, n, seed=1), np.zeros((n, n), np.float32)
    matmul.launch(c, a, b, n, threads=(n, n), threadgroup=(T, T))
    assert np.allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_softmax_of_rows():
    @sk.jit
    def softmax(out: F32, x: F32, columns: sk.Uint, g: GROUP, lane: LANE, simdgroup: SIMDGROUP):
        row = (g * 4 + simdgroup) * columns
        most = sk.local(f32, -float("inf"))
        for j in sk.range(lane, columns, 32):
            most.assign(sk.max(most, x[row + j]))
        top = sk.simd_max(most)
        some = sk.local(f32)
        for j in sk.range(lane, columns, 32):
            e = sk.exp(x[row + j] - top)
            out[row + j] = e
            some += e
        scale = 1 / sk.simd_sum(some)
        for j in sk.range(lane, columns, 32):
            out[row + j] = out[row + j] * scale

    x = numbers(8, 75)
    out = np.zeros_like(x)
    softmax[2, 128](out, x, 75)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_histogram():
    @sk.jit
    def histogram(bins: sk.DevicePointer[sk.dt.atomic_uint32], x: U8, n: sk.Uint, g: GROUP, t: LOCAL):
        counts = sk.threadgroup(u32, 256)
        for j in sk.range(g * 1000 + t, sk.min(n, (g + 1) * 1000), 256):
            sk.atomic_fetch_add(counts, x[j], 1)
        sk.threadgroup_barrier()
        sk.atomic_fetch_add(bins, t, counts[t])

    x = np.random.default_rng(5).integers(0, 256, 3500, np.uint8)
    bins = np.zeros(256, np.uint32)
    histogram[4, 256](bins, x, x.size)
    assert np.array_equal(bins, np.bincount(x, minlength=256))


def test_n_body():
    @sk.jit
    def pull(out: F32, p: sk.DevicePointer[sk.dt.float32x4], n: sk.Uint, i: THREAD):
        me, sum_ = p[i], sk.local(f32)
        for j in sk.range(n):
            d = p[j] - me
            sum_ += p[j].w * sk.rsqrt(d.x * d.x + d.y * d.y + d.z * d.z + 1e-2)
        out[i] = sum_

    p = numbers(100, 4)
    out = np.zeros(100, np.float32)
    pull.launch(out, p, 100, threads=100, threadgroup=64)
    q = p.astype(np.float64)
    d = q[:, None, :3] - q[None, :, :3]
    assert np.allclose(out, (q[None, :, 3] / np.sqrt((d * d).sum(2) + 1e-2)).sum(1), rtol=1e-4, atol=1e-4)


def test_prefix_sum_of_a_threadgroup():
    @sk.jit
    def scan(out: I32, x: I32, i: THREAD, lane: LANE, simdgroup: SIMDGROUP):
        totals = sk.threadgroup(i32, 32)
        upto = sk.simd_prefix_inclusive_sum(x[i])
        with sk.if_(lane == 31):
            totals[simdgroup] = upto
        sk.threadgroup_barrier()
        before = sk.simd_broadcast(sk.simd_prefix_exclusive_sum(totals[lane]), simdgroup)
        out[i] = before + upto

    x = np.random.default_rng(2).integers(-100, 100, 1024).astype(np.int32)
    out = np.zeros_like(x)
    scan[1, 1024](out, x)
    assert np.array_equal(out, np.cumsum(x))


def test_transpose():
    @sk.jit
    def transpose(out: F32, a: F32, n: sk.Uint, g: GROUP2, t: LOCAL2):
        tile = sk.threadgroup(f32, (32, 33))
        for j in range(0, 32, 8):
            tile[t.y + j, t.x] = a[(g.y * 32 + t.y + j) * n + g.x * 32 + t.x]
        sk.threadgroup_barrier()
        for j in range(0, 32, 8):
            out[(g.x * 32 + t.y + j) * n + g.y * 32 + t.x] = tile[t.x, t.y + j]

    a = numbers(64, 64)
    out = np.zeros_like(a)
    transpose[(2, 2), (32, 8)](out, a, 64)
    assert np.array_equal(out, a.T)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_wrap(kind):
    element = sk.dtypes.from_numpy(np.dtype(kind))

    @sk.jit
    def arithmetic(out: sk.DevicePointer[element], a: sk.DevicePointer[element], b: sk.DevicePointer[element], i: THREAD):
        x, y = a[i], b[i]
        out[8 * i], out[8 * i + 1], out[8 * i + 2] = x + y, x - y, x * y
        out[8 * i + 3], out[8 * i + 4] = x // y, x % y
        out[8 * i + 5], out[8 * i + 6], out[8 * i + 7] = x & y, sk.min(x, y), x >> (y & 3)

    info = np.iinfo(kind)
    rng = np.random.default_rng(9)
    edges = np.array([info.min, info.max, 0, 1, 2, info.max // 2], kind)
    a = np.concatenate([np.repeat(edges, 6), rng.integers(info.min, info.max, 100, kind)])
    b = np.concatenate([np.tile(edges, 6), rng.integers(info.min, info.max, 100, kind)])
    out = np.zeros((a.size, 8), kind)
    arithmetic.launch(out, a, b, threads=a.size, threadgroup=64)
    with np.errstate(all="ignore"):
        assert np.array_equal(out[:, 0], a + b) and np.array_equal(out[:, 1], a - b) and np.array_equal(out[:, 2], a * b)
        assert np.array_equal(out[:, 3], a // b) and np.array_equal(out[:, 4], a % b)
        assert np.array_equal(out[:, 5], a & b) and np.array_equal(out[:, 6], np.minimum(a, b))
        assert np.array_equal(out[:, 7], a >> (b & kind(3)))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_round_after_each_operation(kind):
    element = sk.dt.float16 if kind is np.float16 else sk.dt.bfloat16

    @sk.jit(contract=False)
    def polynomial(out: sk.DevicePointer[element], x: sk.DevicePointer[element], i: THREAD):
        out[i] = (x[i] * 3 + 1) * x[i] - 2

    x = np.linspace(-4, 4, 999).astype(kind)
    out = np.zeros_like(x)
    polynomial.launch(out, x, threads=x.size, threadgroup=128)
    assert np.array_equal(out, (x * kind(3) + kind(1)) * x - kind(2))


def test_many_locals():
    @sk.jit
    def reverse(out: I32, a: I32, i: THREAD):
        few = [sk.local(i32, a[8 * i + j]) for j in range(8)]
        for j in range(8):
            out[8 * i + j] = few[7 - j]

    a = np.arange(800, dtype=np.int32)
    out = np.zeros_like(a)
    reverse.launch(out, a, threads=100, threadgroup=32)
    assert np.array_equal(out.reshape(100, 8), a.reshape(100, 8)[:, ::-1])


def test_break_and_continue():
    @sk.jit
    def collatz(out: U32, i: THREAD):
        x, steps = sk.local(u32, i + 1), sk.local(u32)
        for _ in sk.range(1000):
            with sk.if_(x == 1):
                sk.break_()
            steps += 1
            with sk.if_(x % 2 == 0):
                x //= 2
                sk.continue_()
            x.assign(3 * x + 1)
        out[i] = steps

    out = np.zeros(300, np.uint32)
    collatz.launch(out, threads=300, threadgroup=64)

    def steps(x):
        return 0 if x == 1 else 1 + steps(x // 2 if x % 2 == 0 else 3 * x + 1)

    assert list(out) == [steps(k + 1) for k in range(300)]


def test_functions_and_early_return():
    @sk.device_fn
    def norm(x: sk.Float, y: sk.Float) -> sk.Float:
        return sk.sqrt(x * x + y * y)

    @sk.jit
    def near(out: F32, p: sk.DevicePointer[sk.dt.float32x2], n: sk.Uint, i: THREAD):
        with sk.if_(i >= n):
            sk.return_()
        out[i] = norm(p[i].x, p[i].y)

    p = numbers(90, 2)
    out = np.full(128, -1, np.float32)
    near[4, 32](out, p, 90)
    assert np.allclose(out[:90], np.hypot(p[:, 0], p[:, 1]), rtol=1e-6) and np.all(out[90:] == -1)


def test_gather_and_scatter():
    @sk.jit
    def permute(out: F32, x: F32, at: U32, i: THREAD):
        out[at[i]] = x[at[at[i]]]

    at = np.random.default_rng(4).permutation(500).astype(np.uint32)
    x, out = numbers(500), np.zeros(500, np.float32)
    permute.launch(out, x, at, threads=500, threadgroup=128)
    expected = np.zeros_like(out)
    expected[at] = x[at[at]]
    assert np.array_equal(out, expected)


def test_shuffles_with_some_lanes_off():
    @sk.jit
    def some(out: U32, i: THREAD, lane: LANE):
        with sk.if_(lane % 3 != 0):
            out[i] = sk.simd_shuffle_xor(lane, 1) + 100 * sk.simd_sum(lane)

    out = np.zeros(64, np.uint32)
    some[1, 64](out)
    lane = np.arange(32)
    on = lane % 3 != 0
    other = np.where(on[lane ^ 1], lane ^ 1, 0)
    assert np.array_equal(out.reshape(2, 32), [np.where(on, other + 100 * lane[on].sum(), 0)] * 2)


def test_math_functions():
    @sk.jit
    def many(out: F32, x: F32, i: THREAD):
        v = x[i]
        for j, f in enumerate((sk.exp, sk.sin, sk.cos, sk.tanh, sk.atan, sk.floor, sk.rint)):
            out[8 * i + j] = f(v)
        out[8 * i + 7] = sk.log(sk.fabs(v) + 0.5)

    x = numbers(300) * 3
    out = np.zeros((300, 8), np.float32)
    many.launch(out, x, threads=300, threadgroup=128)
    d = x.astype(np.float64)
    for j, f in enumerate((np.exp, np.sin, np.cos, np.tanh, np.arctan, np.floor, np.rint)):
        assert np.allclose(out[:, j], f(d), rtol=3e-7, atol=3e-7), f
    assert np.allclose(out[:, 7], np.log(np.abs(x) + np.float32(0.5)), rtol=3e-7, atol=3e-7)


def test_faults_name_the_first_thread():
    @sk.jit
    def past(out: F32, n: sk.Uint, i: THREAD):
        out[i + n] = 1

    out = np.zeros(100, np.float32)
    with pytest.raises(sk.KernelFault, match=r"thread.*93") as caught:
        past.launch(out, 7, threads=100, threadgroup=32)
    assert caught.value.line == past.__wrapped__.__code__.co_firstlineno + 2
    assert out.sum() == 93  # those in bounds stand
    with pytest.raises(sk.KernelFault):
        past.launch(out, 2**31, threads=1, threadgroup=1)
    past.launch(out, 0, threads=100, threadgroup=32)


def test_overlapping_arguments():
    @sk.jit
    def shift(out: F32, a: F32, i: THREAD):
        out[i] = a[i] + 1

    memory = np.zeros(257, np.float32)
    shift.launch(memory[:256], memory[:256], threads=256, threadgroup=64)
    assert np.all(memory[:256] == 1)

    @sk.jit
    def chain(out: F32, a: F32, n: sk.Uint):
        for j in sk.range(n):
            out[j] = a[j] + 1

    memory[:] = 0
    chain[1, 1](memory[1:], memory[:256], 256)  # each iteration reads what the one before wrote
    assert np.array_equal(memory, np.arange(257))

    @sk.jit
    def first(out: F32, a: sk.ConstantPointer[f32], i: THREAD):
        out[i] = a[0] + 1

    memory[:] = 0
    first.launch(memory[:256], memory[:256], threads=256, threadgroup=64)
    assert set(memory[:256]) <= {1.0, 2.0}


def test_a_large_threadgroup_with_much_private_memory():
    @sk.jit
    def much(out: F32, x: F32, i: THREAD):
        values = [sk.local(f32, x[i] + k) for k in range(300)]
        for k in range(300):
            values[k] += values[(k * 7) % 300]
        sk.threadgroup_barrier()
        out[i] = sum((+v for v in values), start=0)

    x = numbers(1024)
    out = np.zeros_like(x)
    much[1, 1024](out, x)
    values = [x + np.float32(k) for k in range(300)]
    for k in range(300):
        values[k] = values[k] + values[(k * 7) % 300]
    expected = np.float32(0)
    for v in values:
        expected = expected + v
    assert np.allclose(out, expected, rtol=1e-5)
