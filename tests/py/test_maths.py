"""Maths: each function of the table against NumPy, with its edge cases."""

import math

import numpy as np
import pytest

import spork as sk
from conftest import binary, unary

X = np.concatenate([
    np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan]),
    np.random.default_rng(0).standard_normal(242) * 4,
]).astype(np.float32)  # fmt: skip

ONE = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil,
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)), "rint": np.rint, "trunc": np.trunc, "fabs": np.fabs, "abs": np.abs,
    "sign": lambda x: np.where(np.isnan(x), 0, np.sign(x)),
}  # fmt: skip
FAST = ["exp", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan"]


def close(result, expected, rtol=2e-6):
    return np.allclose(result, expected.astype(np.float32), rtol=rtol, atol=1e-37, equal_nan=True)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument(name):
    x = X if name not in ("sin", "cos", "tan") else np.where(np.abs(X) > 1e20, 3, X)
    with np.errstate(all="ignore"):
        assert close(unary(getattr(sk, name), x), ONE[name](x.astype(np.float64)))
        if name in FAST:
            y = np.abs(X[14:]) + 0.1
            assert close(unary(getattr(sk, "fast_" + name), y), ONE[name](y.astype(np.float64)), 1e-4)


def test_functions_of_two_and_three_arguments():
    y = np.random.default_rng(7).permutation(X)
    with np.errstate(all="ignore"):
        assert np.array_equal(binary(sk.fmin, X, y), np.fmin(X, y), equal_nan=True)
        assert np.array_equal(binary(sk.fmax, X, y), np.fmax(X, y), equal_nan=True)
        assert np.array_equal(binary(sk.min, X, y), np.fmin(X, y), equal_nan=True)
        assert np.array_equal(binary(sk.max, X, y), np.fmax(X, y), equal_nan=True)
        assert np.array_equal(binary(sk.fmod, X, y), np.fmod(X, y), equal_nan=True)
        assert close(binary(sk.atan2, X, y), np.arctan2(X.astype(float), y.astype(float)))
        assert close(binary(sk.pow, np.abs(X), y), np.float64(np.abs(X)) ** y.astype(float), 1e-5)
        assert np.array_equal(unary(lambda v: sk.clamp(v, -1, 2.5), X), np.fmin(np.fmax(X, -1), np.float32(2.5)), equal_nan=True)
    z = X[14:]
    exact = np.float64(z) * np.float64(z) + 1.5
    assert np.array_equal(unary(lambda v: sk.fma(v, v, 1.5), z), exact.astype(np.float32))
    assert close(unary(lambda v: sk.fast_pow(v, 2), np.abs(z)), np.float64(z) ** 2, 1e-4)


def test_min_max_abs_of_integers():
    x = np.array([-5, 3, 7, -128], np.int8)
    y = np.array([2, -3, 7, 127], np.int8)
    assert np.array_equal(binary(sk.min, x, y), np.minimum(x, y))
    assert np.array_equal(binary(sk.max, x, y), np.maximum(x, y))
    assert np.array_equal(unary(lambda v: sk.max(v, 0), x), np.maximum(x, 0))
    assert np.array_equal(unary(lambda v: sk.min(2, v), x), np.minimum(x, 2))
    assert np.array_equal(unary(lambda v: sk.clamp(v, -2, 4), x), np.clip(x, -2, 4))
    assert np.array_equal(unary(sk.abs, x), np.abs(x))


def test_half_is_computed_in_f32_and_rounded():
    x = np.clip(X[14:], -8, 8).astype(np.float16)
    assert np.array_equal(unary(sk.exp, x), np.exp(x.astype(np.float64)).astype(np.float16))


def test_maths_of_integers_is_f32():
    x = np.arange(1, 9, dtype=np.int32)
    assert close(unary(sk.sqrt, x, out="float32"), np.sqrt(x))


def test_maths_of_plain_numbers():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32]):
        out[0] = sk.sqrt(2.0)
        out[1] = sk.sin(1)
        out[2] = sk.max(1, 2.5)

    out = np.zeros(3, np.float32)
    kernel[1, 1](out)
    assert np.allclose(out, [math.sqrt(2), math.sin(1), 2.5])


def test_fast_kernel():
    @sk.jit(math="fast")
    def kernel(out: sk.DevicePointer[sk.dt.float32], x: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = sk.exp(x[i])

    x = np.linspace(-3, 3, 32).astype(np.float32)
    out = np.zeros_like(x)
    kernel[1, 32](out, x)
    assert np.allclose(out, np.exp(x), rtol=1e-5)
    assert "fast" in kernel.ir
    with pytest.raises(ValueError):
        sk.jit(math="sloppy")


def test_wrong_operands():
    for use in (lambda v: sk.sin(), lambda v: sk.sin(v, v), lambda v: sk.pow(v), lambda v: sk.clamp(v, 1), lambda v: sk.sin("x"),
                lambda v: sk.sin(None), lambda v: math.sin(v), lambda v: sk.fma(v, v, np.ones(2))):  # fmt: skip
        with pytest.raises(TypeError) as caught:
            unary(use, X)
        assert isinstance(caught.value, sk.SporkError)


def test_documented():
    for name in [*ONE, "pow", "simd_sum", "simd_shuffle_up", "atomic_fetch_add", "threadgroup_barrier", "fast_exp", "cast", "local"]:
        function = getattr(sk, name)
        assert function.__doc__ and function.__name__ == name and function.__text_signature__
