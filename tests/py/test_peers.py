"""What other tracing engines for Metal get silently wrong, with the right values."""

import numpy as np

import spork as sk

I32 = sk.DevicePointer[sk.dt.int32]
F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def test_a_swap_keeps_both_values():
    @sk.jit
    def kernel(a: F32, b: F32, i: THREAD):
        t = a[i]
        a[i] = b[i]
        b[i] = t

    a, b = np.arange(4, dtype=np.float32), np.arange(4, 8, dtype=np.float32)
    kernel[1, 4](a, b)
    assert list(a) == [4, 5, 6, 7] and list(b) == [0, 1, 2, 3]


def test_an_expression_of_a_local_is_a_snapshot():
    @sk.jit
    def kernel(o: I32):
        v = sk.local(sk.dt.int32, 10)
        old = v + 0
        v += 1
        o[0] = old
        o[1] = v

    o = np.zeros(2, np.int32)
    kernel[1, 1](o)
    assert list(o) == [10, 11]


def test_a_range_from_a_negative_number():
    @sk.jit
    def kernel(o: I32):
        k = sk.local(sk.dt.uint32)
        for j in sk.range(-3, 3):
            o[k] = j
            k += 1

    o = np.full(8, 99, np.int32)
    kernel[1, 1](o)
    assert list(o) == [-3, -2, -1, 0, 1, 2, 99, 99]


def test_a_loop_variable_does_not_shadow_a_parameter():
    @sk.jit
    def kernel(o: I32, x: I32, i0: THREAD):
        for j in sk.range(3):
            o[i0] += x[i0 + j]

    x = np.arange(8, dtype=np.int32)
    o = np.zeros(4, np.int32)
    kernel[1, 4](o, x)
    assert list(o) == [3, 6, 9, 12]


def test_division_of_negative_numbers():
    @sk.jit
    def kernel(o: I32, f: F32, i: sk.Int[sk.ThreadPositionInGrid]):
        o[i] = (i - 7) // 2
        o[i + 16] = (i - 7) % 2
        f[i] = i / 2

    o, f = np.zeros(32, np.int32), np.zeros(16, np.float32)
    kernel[1, 16](o, f)
    i = np.arange(16)
    assert np.array_equal(o[:16], (i - 7) // 2) and np.array_equal(o[16:], (i - 7) % 2)
    assert np.array_equal(f, i / 2)


def test_infinity_is_a_constant():
    @sk.jit
    def kernel(o: F32, j: THREAD):
        o[j] = float("inf")

    o = np.zeros(4, np.float32)
    kernel[1, 4](o)
    assert np.all(np.isposinf(o))
    assert "inff" not in kernel.metal_source


def test_a_kernel_called_kernel():
    @sk.jit
    def kernel(constant: F32, i: THREAD):
        constant[i] = 1

    o = np.zeros(4, np.float32)
    kernel[1, 4](o)
    assert np.all(o == 1)
    assert "kernel void kernel(" not in kernel.metal_source
    assert " constant [[" not in kernel.metal_source and "*constant " not in kernel.metal_source
