"""Memory: bounds, threadgroup arrays, threadgroup pointers, atomics, device functions."""

import numpy as np
import pytest

import spork as sk

I32 = sk.DevicePointer[sk.dt.int32]
U32 = sk.DevicePointer[sk.dt.uint32]
F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]
LOCAL = sk.Uint[sk.ThreadPositionInThreadgroup]


def test_out_of_bounds_reads_0_drops_stores_and_faults():
    @sk.jit
    def kernel(out: F32, a: F32, i: THREAD):
        out[i] = a[i] + 1

    out, a = np.zeros(12, np.float32), np.ones(5, np.float32)
    with pytest.raises(sk.KernelFault) as caught:
        kernel[1, 8](out, a)
    error = caught.value
    assert "'a'" in str(error) and "5" in str(error)
    assert error.line == kernel.__wrapped__.__code__.co_firstlineno + 2
    assert list(out) == [2] * 5 + [1] * 3 + [0] * 4
    with pytest.raises(sk.KernelFault, match="'out'"):
        kernel[1, 8](out[:4], np.ones(8, np.float32))
    assert list(out[4:8]) == [2 - 0, 1, 1, 1]


@pytest.mark.parametrize("index", [-1, 2**33, 2**62, -(2**63)])
def test_index_far_outside_is_out_of_bounds(index):
    @sk.jit
    def kernel(out: F32, i: sk.DevicePointer[sk.dt.int64]):
        out[i[0]] = 1

    out = np.zeros(4, np.float32)
    with pytest.raises(sk.KernelFault):
        kernel[1, 1](out, np.array([index]))
    assert not out.any()


def test_an_empty_array_obeys_the_bounds():
    @sk.jit
    def kernel(out: F32, i: THREAD):
        out[i] = 1

    with pytest.raises(sk.KernelFault):
        kernel[1, 1](np.zeros(0, np.float32))


def test_threadgroup_memory_and_barriers():
    @sk.jit
    def reverse(out: F32, a: F32, i: THREAD, t: LOCAL, n: sk.Uint[sk.ThreadsPerThreadgroup]):
        s = sk.threadgroup(sk.dt.float32, 64)
        s[t] = a[i]
        sk.threadgroup_barrier()
        out[i] = s[n - 1 - t]

    a = np.arange(256, dtype=np.float32)
    out = np.zeros_like(a)
    reverse[4, 64](out, a)
    assert np.array_equal(out.reshape(4, 64), a.reshape(4, 64)[:, ::-1])


def test_tiled_matmul():
    TILE = 8

    @sk.jit
    def matmul(out: F32, a: F32, b: F32, n: sk.Uint, t: sk.Uint2[sk.ThreadPositionInThreadgroup], g: sk.Uint2[sk.ThreadgroupPositionInGrid]):
        ta = sk.threadgroup(sk.dt.float32, (TILE, TILE))
        tb = sk.threadgroup(sk.dt.float32, (TILE, TILE))
        row, col = g.y * TILE + t.y, g.x * TILE + t.x
        total = sk.local(sk.dt.float32)
        for k in sk.range(0, n, TILE):
            ta[t.y, t.x] = a[row * n + k + t.x]
            tb[t.y, t.x] = b[(k + t.y) * n + col]
            sk.threadgroup_barrier()
            for j in range(TILE):
                total += ta[t.y, j] * tb[j, t.x]
            sk.threadgroup_barrier()
        out[row * n + col] = total

    n = 32
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    out = np.zeros_like(a)
    matmul[(n // TILE, n // TILE), (TILE, TILE)](out, a, b, n)
    assert np.allclose(out, a @ b, atol=1e-4)


def test_threadgroup_memory_is_zero_at_first():
    @sk.jit
    def kernel(out: F32, t: LOCAL, i: THREAD):
        s = sk.threadgroup(sk.dt.float32, 32)
        out[i] = s[t] + 1
        s[t] = 5

    out = np.zeros(128, np.float32)
    kernel[4, 32](out)
    assert np.all(out == 1)


def test_threadgroup_pointer_sized_at_launch():
    @sk.jit
    def kernel(out: F32, s: sk.ThreadgroupPointer[sk.dt.float32], a: F32, i: THREAD, t: LOCAL):
        s[t] = a[i]
        sk.threadgroup_barrier("threadgroup")
        out[i] = s[t ^ 1]

    a = np.arange(64, dtype=np.float32)
    out = np.zeros_like(a)
    kernel[2, 32](out, 32, a)
    assert np.array_equal(out, a.reshape(-1, 2)[:, ::-1].ravel())
    with pytest.raises(sk.KernelFault, match="'s'"):
        kernel[2, 32](out, 16, a)
    for wrong in (-1, 2**40):
        with pytest.raises(ValueError):
            kernel[2, 32](out, wrong, a)
    for wrong in (1.5, "x", a, True):
        with pytest.raises(TypeError):
            kernel[2, 32](out, wrong, a)
    with pytest.raises(ValueError, match="threadgroup memory"):
        kernel[2, 32](out, 8193, a)
    kernel[2, 32](out, 8192, a)


def test_over_limit_threadgroup_memory():
    @sk.jit
    def kernel(out: F32, i: THREAD):
        s = sk.threadgroup(sk.dt.float32, 8193)
        s[i] = 1
        out[i] = s[i]

    with pytest.raises(ValueError, match="threadgroup|32768"):
        kernel[1, 1](np.zeros(1, np.float32))


@pytest.mark.parametrize("shape", [0, -1, (), (4, 0), 2.5, "4", (2, None)])
def test_wrong_shapes(shape):
    @sk.jit
    def kernel(out: F32):
        sk.threadgroup(sk.dt.float32, shape)
        out[0] = 1

    with pytest.raises((ValueError, TypeError)) as caught:
        kernel.ir
    assert isinstance(caught.value, sk.SporkError)


def test_wrong_indices():
    def trace(use):
        @sk.jit
        def kernel(out: F32, i: THREAD):
            s = sk.threadgroup(sk.dt.float32, (4, 8))
            s[0, 0] = 1
            out[0] = 1
            use(out, s, i)

        kernel.ir

    for use, kind in (
        (lambda p, s, i: p[i, i], TypeError),
        (lambda p, s, i: p[-1], ValueError),
        (lambda p, s, i: p[1.0], TypeError),
        (lambda p, s, i: p[sk.cast(i, sk.dt.float32)], TypeError),
        (lambda p, s, i: p[p[0]], TypeError),
        (lambda p, s, i: p[1:2], TypeError),
        (lambda p, s, i: p["x"], TypeError),
        (lambda p, s, i: p.__delitem__(0), TypeError),
        (lambda p, s, i: s[i], TypeError),
        (lambda p, s, i: s[0, 0, 0], TypeError),
        (lambda p, s, i: s[4, 0], ValueError),
        (lambda p, s, i: s[0, -1], ValueError),
        (lambda p, s, i: p + 1, TypeError),
        (lambda p, s, i: p.__setitem__(0, p), TypeError),
        (lambda p, s, i: i[0], TypeError),
        (lambda p, s, i: len(p), TypeError),
        (lambda p, s, i: iter(p), TypeError),
        (lambda p, s, i: list(p), TypeError),
        (lambda p, s, i: 3 in p, TypeError),
        (lambda p, s, i: sk.load(i, 0), TypeError),
        (lambda p, s, i: sk.load(p, 0, other=3), TypeError),
        (lambda p, s, i: sk.atomic_load(i, 0), TypeError),
    ):
        with pytest.raises(kind) as caught:
            trace(use)
        assert isinstance(caught.value, sk.SporkError)


def test_constant_pointer():
    @sk.jit
    def kernel(out: F32, a: sk.ConstantPointer[sk.dt.float32], i: THREAD):
        out[i] = a[i] * 2

    a = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    out = np.zeros(4, np.float32)
    kernel[1, 4](out, a)
    assert np.array_equal(out, a * 2)

    @sk.jit
    def wrong(a: sk.ConstantPointer[sk.dt.float32], i: THREAD):
        a[i] = 1

    with pytest.raises(TypeError, match="constant") as caught:
        wrong.ir
    assert caught.value.line == wrong.__wrapped__.__code__.co_firstlineno + 2


# ---- atomics -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [sk.dt.uint32, sk.dt.atomic_uint32, sk.dt.int32, sk.dt.atomic_int32])
def test_histogram(dtype):
    @sk.jit
    def kernel(bins: sk.DevicePointer[dtype], a: U32, i: THREAD):
        sk.atomic_fetch_add(bins, a[i] % 16, 1)

    a = np.random.default_rng(0).integers(0, 1000, 4096, dtype=np.uint32)
    bins = np.zeros(16, np.dtype(sk.dtypes.underlying(dtype).name))
    kernel[16, 256](bins, a)
    assert np.array_equal(bins, np.bincount(a % 16, minlength=16))


def test_every_atomic():
    @sk.jit
    def kernel(p: sk.DevicePointer[sk.dt.atomic_int32], old: I32):
        old[0] = sk.atomic_load(p, 0)
        sk.atomic_store(p, 0, 12)
        old[1] = sk.atomic_exchange(p, 0, 10, order="relaxed")
        old[2] = sk.atomic_fetch_add(p, 0, 5)
        old[3] = sk.atomic_fetch_sub(p, 0, 3)
        old[4] = sk.atomic_fetch_and(p, 0, 6)
        old[5] = sk.atomic_fetch_or(p, 0, 9)
        old[6] = sk.atomic_fetch_xor(p, 0, 1)
        old[7] = sk.atomic_fetch_min(p, 0, -4)
        old[8] = sk.atomic_fetch_max(p, 0, 100)
        old[9] = sk.atomic_compare_exchange(p, 0, 100, 7)
        old[10] = sk.atomic_compare_exchange(p, 0, 100, 8)
        old[11] = sk.atomic_load(p, 0)

    p, old = np.array([3], np.int32), np.zeros(12, np.int32)
    kernel[1, 1](p, old)
    assert list(old) == [3, 12, 10, 15, 12, 12 & 6, 4 | 9, 13 ^ 1, -4, 100, 7, 7]


def test_float_atomic_add():
    @sk.jit
    def kernel(p: sk.DevicePointer[sk.dt.atomic_float32], i: THREAD):
        sk.atomic_fetch_add(p, 0, 0.5)

    p = np.zeros(1, np.float32)
    kernel[4, 64](p)
    assert p[0] == 128


def test_atomics_on_threadgroup_arrays():
    @sk.jit
    def kernel(out: U32, t: LOCAL, g: sk.Uint[sk.ThreadgroupPositionInGrid]):
        s = sk.threadgroup(sk.dt.uint32, (2, 4))
        sk.atomic_fetch_add(s, (t % 2, t % 4), 1)
        sk.threadgroup_barrier()
        with sk.if_(t < 8):
            out[g * 8 + t] = sk.atomic_load(s, (t // 4, t % 4))

    out = np.zeros((2, 2, 4), np.uint32)
    kernel[2, 64](out)
    assert np.array_equal(out, np.broadcast_to([[16, 0, 16, 0], [0, 16, 0, 16]], out.shape))


def test_wrong_atomics():
    def trace(use):
        @sk.jit
        def kernel(f: sk.DevicePointer[sk.dt.float16], c: sk.ConstantPointer[sk.dt.uint32], u: U32):
            u[0] = 1
            use(f, c, u)

        kernel.ir

    for use, kind in (
        (lambda f, c, u: sk.atomic_fetch_add(f, 0, 1), TypeError),
        (lambda f, c, u: sk.atomic_fetch_add(c, 0, 1), TypeError),
        (lambda f, c, u: sk.atomic_fetch_add(u, 0, 1.5), TypeError),
        (lambda f, c, u: sk.atomic_fetch_add(u, 0, 2**32), ValueError),
        (lambda f, c, u: sk.atomic_fetch_add(u, 0), TypeError),
        (lambda f, c, u: sk.atomic_fetch_add(u, 0, 1, order="nope"), ValueError),
        (lambda f, c, u: sk.atomic_fetch_add(u, 0, 1, what=1), TypeError),
    ):
        with pytest.raises(kind) as caught:
            trace(use)
        assert isinstance(caught.value, sk.SporkError)


# ---- device functions ---------------------------------------------------------------------------------------------------------


@sk.device_fn
def square(x: sk.dt.float32) -> sk.dt.float32:
    return x * x


@sk.device_fn
def hypotenuse(x: sk.dt.float32, y: sk.dt.float32) -> sk.dt.float32:
    return sk.sqrt(square(x) + square(y))


@sk.device_fn
def store_twice(p: sk.DevicePointer[sk.dt.float32], i: sk.dt.uint32, x: sk.Float):
    p[i] = x
    p[i + 1] = x


@sk.device_fn
def sign_of(x: sk.dt.float32) -> sk.dt.int32:
    with sk.if_(x > 0):
        sk.return_(1)
    with sk.if_(x < 0):
        sk.return_(-1)
    sk.return_(0)


def test_device_functions():
    assert isinstance(square, sk.DeviceFn)

    @sk.jit
    def first(out: F32, a: F32, i: THREAD):
        out[i] = hypotenuse(a[i], y=4)

    @sk.jit
    def second(out: F32, a: F32, i: THREAD):
        store_twice(out, i * 2, square(a[i]) + sign_of(a[i]))

    a = np.array([3, -1, 0, 7.5], np.float32)
    out = np.zeros(8, np.float32)
    first[1, 4](out, a)
    assert np.allclose(out[:4], np.hypot(a, 4))
    second[1, 4](out, a)
    assert np.array_equal(out, np.repeat(a * a + np.sign(a), 2))
    assert first.ir.count("func square") == 1


def test_device_function_with_threadgroup_pointers():
    @sk.device_fn
    def total(p: sk.DevicePointer[sk.dt.float32], n: sk.dt.uint32) -> sk.dt.float32:
        t = sk.local(sk.dt.float32)
        for j in sk.range(n):
            t += p[j]
        return t

    @sk.jit
    def kernel(out: F32, a: F32, c: sk.ConstantPointer[sk.dt.float32], i: LOCAL):
        s = sk.threadgroup(sk.dt.float32, 8)
        s[i] = a[i] * 10
        sk.threadgroup_barrier()
        out[i] = total(s, 8) + total(a, 8) + total(c, 8)

    a = np.arange(8, dtype=np.float32)
    out = np.zeros(8, np.float32)
    kernel[1, 8](out, a, a)
    assert np.all(out == a.sum() * 12)


def test_device_function_misuse():
    @sk.device_fn
    def endless(x: sk.dt.float32) -> sk.dt.float32:
        return endless(x) + 1

    @sk.device_fn
    def ping(x: sk.dt.float32) -> sk.dt.float32:
        return pong(x)

    @sk.device_fn
    def pong(x: sk.dt.float32) -> sk.dt.float32:
        return ping(x)

    @sk.device_fn
    def undeclared(x: sk.dt.float32):
        return x

    @sk.device_fn
    def missing(x: sk.dt.float32) -> sk.dt.float32:
        with sk.if_(x > 0):
            sk.return_(x)

    @sk.device_fn
    def raises(x: sk.dt.float32) -> sk.dt.float32:
        raise KeyError("mine")

    @sk.device_fn
    def threadgroup_only(p: sk.ThreadgroupPointer[sk.dt.float32]) -> sk.dt.float32:
        return p[0]

    def trace(use):
        @sk.jit
        def kernel(out: F32, u: U32, i: THREAD):
            out[i] = use(out, u, i)

        kernel.ir

    for use, kind in (
        (lambda p, u, i: endless(p[i]), sk.TraceError),
        (lambda p, u, i: ping(p[i]), sk.TraceError),
        (lambda p, u, i: undeclared(p[i]), TypeError),
        (lambda p, u, i: missing(p[i]), sk.TraceError),
        (lambda p, u, i: raises(p[i]), KeyError),
        (lambda p, u, i: threadgroup_only(p), TypeError),
        (lambda p, u, i: square(p), TypeError),
        (lambda p, u, i: square(), TypeError),
        (lambda p, u, i: square(1, 2), TypeError),
        (lambda p, u, i: square(y=2), TypeError),
        (lambda p, u, i: store_twice(u, 0, 1), TypeError),
        (lambda p, u, i: store_twice(3, 0, 1), TypeError),
    ):
        with pytest.raises(kind):
            trace(use)
    with pytest.raises(sk.TraceError):
        square(3.0)
    with pytest.raises(TypeError):
        sk.device_fn(3)
    with pytest.raises(TypeError, match="launch"):

        @sk.device_fn
        def positioned(i: THREAD):
            pass


def test_values_of_the_caller_are_not_seen_inside():
    def make():
        @sk.jit
        def kernel(out: F32, i: THREAD):
            v = out[i]

            @sk.device_fn
            def inner(x: sk.dt.float32) -> sk.dt.float32:
                return x + v

            out[i] = inner(1)

        return kernel

    with pytest.raises(sk.TraceError, match="argument"):
        make().ir
