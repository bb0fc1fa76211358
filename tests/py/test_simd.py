"""Collectives of a simdgroup, attributes, barriers."""

import functools
import operator

import numpy as np
import pytest

import spork as sk

U32 = sk.DevicePointer[sk.dt.uint32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]
W = 32


def collect(function, x, threads=None, out=None):
    """function(x[i]) over a grid with whole simdgroups, x of any dtype."""
    out_dtype = np.dtype(out) if out else x.dtype
    result = np.zeros(x.shape, out_dtype)

    @sk.jit
    def kernel(
        out: sk.DevicePointer[sk.dtypes.from_numpy(out_dtype)],
        x: sk.DevicePointer[sk.dtypes.from_numpy(x.dtype)],
        i: THREAD,
        lane: sk.Uint[sk.ThreadIndexInSimdgroup],
    ):
        out[i] = function(x[i], lane)

    kernel.launch(result, x, threads=threads or x.size, threadgroup=64)
    return result


def rows(x):
    return x.reshape(-1, W)


@pytest.mark.parametrize("name", ["int32", "uint32", "int8", "uint64", "float16", "float32"])
def test_reductions(name):
    rng = np.random.default_rng(0)
    x = rng.integers(1, 5, 128).astype(name)
    with np.errstate(over="ignore"):
        for function, expected in (
            (sk.simd_sum, rows(x).sum(1, dtype=name)),
            (sk.simd_max, rows(x).max(1)),
            (sk.simd_min, rows(x).min(1)),
        ):
            assert np.array_equal(collect(lambda v, lane, f=function: f(v), x), np.repeat(expected, W))
        small = rng.integers(1, 3, 128).astype(name) if name != "float16" else np.ones(128, name)
        product = np.multiply.reduce(rows(small), 1, dtype=name)
        assert np.array_equal(collect(lambda v, lane: sk.simd_product(v), small), np.repeat(product, W))


def test_float_sum_is_the_xor_tree():
    x = np.random.default_rng(2).standard_normal(64).astype(np.float32)
    expected = rows(x).copy()
    for step in (16, 8, 4, 2, 1):
        expected = expected + expected[:, np.arange(W) ^ step]
    assert np.array_equal(collect(lambda v, lane: sk.simd_sum(v), x), expected.ravel())


def test_bitwise_reductions():
    x = np.random.default_rng(0).integers(0, 2**32, 64, dtype=np.uint32)
    for function, op in ((sk.simd_and, operator.and_), (sk.simd_or, operator.or_), (sk.simd_xor, operator.xor)):
        expected = np.array([functools.reduce(op, row) for row in rows(x)])
        assert np.array_equal(collect(lambda v, lane, f=function: f(v), x), np.repeat(expected, W))


def test_scans():
    x = np.random.default_rng(0).integers(0, 100, 128, dtype=np.uint32)
    inclusive = np.cumsum(rows(x), 1, dtype=np.uint32)
    assert np.array_equal(collect(lambda v, lane: sk.simd_prefix_inclusive_sum(v), x), inclusive.ravel())
    assert np.array_equal(collect(lambda v, lane: sk.simd_prefix_exclusive_sum(v), x), (inclusive - rows(x)).ravel())
    y = (x % 3 + 1).astype(np.uint64)
    product = np.cumprod(rows(y), 1, dtype=np.uint64)
    assert np.array_equal(collect(lambda v, lane: sk.simd_prefix_inclusive_product(v), y), product.ravel())
    assert np.array_equal(collect(lambda v, lane: sk.simd_prefix_exclusive_product(v), y), (product // rows(y)).ravel())


def test_shuffles():
    x = np.arange(64, dtype=np.uint32) * 10
    lanes = np.arange(W)
    for function, source in (
        (lambda v, lane: sk.simd_broadcast(v, 5), np.full(W, 5)),
        (lambda v, lane: sk.simd_shuffle(v, 31 - lane), lanes[::-1]),
        (lambda v, lane: sk.simd_shuffle_xor(v, 3), lanes ^ 3),
        (lambda v, lane: sk.simd_shuffle_up(v, 2), np.where(lanes >= 2, lanes - 2, lanes)),
        (lambda v, lane: sk.simd_shuffle_down(v, 3), np.where(lanes + 3 < W, lanes + 3, lanes)),
    ):
        assert np.array_equal(collect(function, x), rows(x)[:, source].ravel())


def test_absent_lanes_give_0():
    x = np.arange(1, 65, dtype=np.uint32)
    assert not collect(lambda v, lane: sk.simd_shuffle(v, 32 + lane), x).any()
    assert not collect(lambda v, lane: sk.simd_broadcast(v, 40), x).any()
    y = np.arange(1, 41, dtype=np.uint32)
    result = collect(lambda v, lane: sk.simd_shuffle(v, 9), y)
    assert list(result) == [10] * 32 + [0] * 8


def test_votes_and_active_lanes():
    x = np.arange(64, dtype=np.uint32)
    assert np.array_equal(collect(lambda v, lane: sk.simd_all(v < 40), x), np.repeat([1, 0], W))
    assert np.array_equal(collect(lambda v, lane: sk.simd_any(v == 40), x), np.repeat([0, 1], W))

    @sk.jit
    def kernel(out: U32, i: THREAD, lane: sk.Uint[sk.ThreadIndexInSimdgroup]):
        with sk.if_(lane % 2 == 0) as b:
            out[i] = sk.simd_sum(lane)
        with b.else_():
            out[i] = sk.simd_sum(lane) + 1000

    out = np.zeros(32, np.uint32)
    kernel[1, 32](out)
    assert list(out) == [240, 1256] * 16


ATTRIBUTES = {
    "ThreadPositionInGrid": "thread_position_in_grid", "ThreadPositionInThreadgroup": "thread_position_in_threadgroup",
    "ThreadgroupPositionInGrid": "threadgroup_position_in_grid", "ThreadsPerThreadgroup": "threads_per_threadgroup",
    "ThreadsPerGrid": "threads_per_grid", "ThreadsPerSimdgroup": "threads_per_simdgroup",
    "ThreadIndexInSimdgroup": "thread_index_in_simdgroup", "SimdgroupIndexInThreadgroup": "simdgroup_index_in_threadgroup",
    "ThreadIndexInThreadgroup": "thread_index_in_threadgroup", "SimdgroupsPerThreadgroup": "simdgroups_per_threadgroup",
    "ThreadgroupsPerGrid": "threadgroups_per_grid", "DispatchThreadsPerThreadgroup": "dispatch_threads_per_threadgroup",
    "ThreadExecutionWidth": "thread_execution_width", "ThreadIndexInQuadgroup": "thread_index_in_quadgroup",
    "QuadgroupIndexInThreadgroup": "quadgroup_index_in_threadgroup", "QuadgroupsPerThreadgroup": "quadgroups_per_threadgroup",
}  # fmt: skip


def attribute(name, threads, threadgroup):
    @sk.jit
    def kernel(out: U32, i: sk.Uint3[sk.ThreadPositionInGrid], n: sk.Uint3[sk.ThreadsPerGrid], x: sk.Uint[getattr(sk, name)]):
        out[(i.z * n.y + i.y) * n.x + i.x] = x

    out = np.zeros(threads[::-1], np.uint32)
    kernel.launch(out, threads=threads, threadgroup=threadgroup)
    return out


def test_attributes():
    threads, group = (20, 6, 2), (8, 4, 1)
    z, y, x = np.indices(threads[::-1])
    gx, gy = x // 8, y // 4
    own_x, own_y = np.where(gx == 2, 4, 8), np.where(gy == 1, 2, 4)
    linear = (y % 4) * own_x + x % 8
    own = own_x * own_y
    expected = {
        "ThreadPositionInGrid": x, "ThreadPositionInThreadgroup": x % 8, "ThreadgroupPositionInGrid": gx,
        "ThreadsPerThreadgroup": own_x, "ThreadsPerGrid": x * 0 + 20, "ThreadsPerSimdgroup": x * 0 + 32,
        "ThreadIndexInSimdgroup": linear % 32, "SimdgroupIndexInThreadgroup": linear // 32, "ThreadIndexInThreadgroup": linear,
        "SimdgroupsPerThreadgroup": (own + 31) // 32, "ThreadgroupsPerGrid": x * 0 + 3, "DispatchThreadsPerThreadgroup": x * 0 + 8,
        "ThreadExecutionWidth": x * 0 + 32, "ThreadIndexInQuadgroup": linear % 4, "QuadgroupIndexInThreadgroup": linear // 4,
        "QuadgroupsPerThreadgroup": (own + 3) // 4,
    }  # fmt: skip
    assert expected.keys() == ATTRIBUTES.keys()
    for name, metal in ATTRIBUTES.items():
        marker = getattr(sk, name)
        assert issubclass(marker, sk.ThreadAttribute) and marker.metal_attr == metal and marker.__doc__
        assert np.array_equal(attribute(name, threads, group), expected[name]), name


def test_signed_and_short_attributes():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.int32], i: sk.Int[sk.ThreadPositionInGrid], t: sk.Ushort2[sk.ThreadPositionInThreadgroup]):
        out[i] = i - 5
        out[i] += sk.cast(t.y, sk.dt.int32)

    out = np.zeros(32, np.int32)
    kernel[1, 32](out)
    assert np.array_equal(out, np.arange(32) - 5)


def test_barrier_scopes():
    @sk.jit
    def kernel(out: U32, i: THREAD):
        out[i] = 1
        for scopes in ((), ("none",), ("device",), ("threadgroup",), ("device", "threadgroup"), ("texture",), ("threadgroup_imageblock",)):
            sk.threadgroup_barrier(*scopes)
            sk.simdgroup_barrier(*scopes)
        out[i] += 1

    out = np.zeros(64, np.uint32)
    kernel[1, 64](out)
    assert np.all(out == 2)

    @sk.jit
    def wrong(out: U32):
        sk.threadgroup_barrier("everything")

    with pytest.raises(ValueError, match="everything") as caught:
        wrong.ir
    assert caught.value.line == wrong.__wrapped__.__code__.co_firstlineno + 2

    @sk.jit
    def no_text(out: U32):
        sk.threadgroup_barrier(3)

    with pytest.raises(ValueError):
        no_text.ir


def test_divergent_barrier_is_refused():
    @sk.jit
    def wrong(out: U32, t: sk.Uint[sk.ThreadPositionInThreadgroup]):
        with sk.if_(t == 0):
            sk.threadgroup_barrier()
        out[t] = 1

    with pytest.raises(sk.TraceError, match="barrier") as caught:
        wrong.ir
    assert caught.value.line == wrong.__wrapped__.__code__.co_firstlineno + 3

    @sk.jit
    def fine(out: U32, t: sk.Uint[sk.ThreadPositionInThreadgroup]):
        with sk.if_(t < 32):
            sk.threadgroup_barrier()
        out[t] = 1

    out = np.zeros(32, np.uint32)
    fine[1, 32](out)
    assert out.all()


def test_deadlock_is_a_fault():
    @sk.jit
    def kernel(out: U32, t: sk.Uint[sk.ThreadPositionInThreadgroup], n: sk.Uint):
        with sk.if_(t < n) as b:
            sk.threadgroup_barrier()
        with b.else_():
            sk.threadgroup_barrier()
        out[t] = 1

    with pytest.raises(sk.KernelFault):
        kernel[1, 64](np.zeros(64, np.uint32), 32)


def test_no_progress_is_a_fault():
    @sk.jit
    def kernel(out: U32, t: sk.Uint[sk.ThreadPositionInThreadgroup]):
        with sk.if_(t == 0) as b:
            with sk.while_(lambda: sk.atomic_load(out, 0) == 0):
                pass
        with b.else_():
            sk.atomic_store(out, 0, 1)

    with pytest.raises(sk.KernelFault, match="progress"):
        kernel[1, 2](np.zeros(1, np.uint32))
