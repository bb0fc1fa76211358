"""Numbers: one rounding where one is promised, and numbers that are not real."""

import ctypes
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import spork as sk
from conftest import blames

F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]
# Stored bits of the mantissa, smallest exponent of a normal number.
FORMATS = {"float16": (10, -14, np.float16), "bfloat16": (7, -126, ml_dtypes.bfloat16)}


def rounded(x, mantissa, smallest):
    """The fraction to nearest even, without a limit above."""
    if x == 0:
        return 0.0
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(x)
    place = Fraction(2) ** (max(exponent, smallest) - mantissa)
    return float(round(x / place) * place)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("contracted", [False, True])
def test_fma_of_small_floats_rounds_once(name, contracted):
    mantissa, smallest, kind = FORMATS[name]
    pointer = sk.DevicePointer[sk.dtypes.from_numpy(np.dtype(kind))]
    rng = np.random.default_rng(3)
    # Addends far below the product, which decide ties only.
    scales = [1, 1, 8, 2.0**-9, 2.0**-14] + ([2.0**80, 2.0**-80, 2.0**-126] if name == "bfloat16" else [])
    x, y, z = ((rng.standard_normal(5000) * rng.choice(scales, 5000)).astype(kind) for _ in range(3))

    @sk.jit
    def kernel(o: pointer, x: pointer, y: pointer, z: pointer, i: THREAD):
        o[i] = x[i] * y[i] + z[i] if contracted else sk.fma(x[i], y[i], z[i])

    out = np.zeros(x.size, kind)
    kernel.launch(out, x, y, z, threads=x.size, threadgroup=64)
    with np.errstate(over="ignore"):
        for got, *operands in zip(out, x, y, z):
            a, b, c = (Fraction(float(v)) for v in operands)
            assert float(got) == float(kind(rounded(a * b + c, mantissa, smallest))), operands


def test_folded_fma_of_small_floats_rounds_once():
    @sk.jit
    def kernel(o: sk.DevicePointer[sk.dt.bfloat16]):
        half = sk.cast(sk.fma(sk.cast(-3.0, sk.dt.bfloat16), sk.cast(125.0, sk.dt.bfloat16), 9.2e-41), sk.dt.bfloat16)
        o[0] = half

    out = np.zeros(1, ml_dtypes.bfloat16)
    kernel.launch(out, threads=1, threadgroup=1)
    assert float(out[0]) == -374.0


@pytest.mark.parametrize("number", [1j, np.complex64(1 + 2j), np.complex128(1), np.array(2j), np.timedelta64(3, "s")], ids=repr)
def test_numbers_that_are_not_real(number):
    with blames(TypeError, match="no operand in a kernel"):

        @sk.jit
        def kernel(o: F32):
            o[0] = o[0] + number  # blame

        kernel.ir

    @sk.jit
    def scaled(o: F32, a: sk.Float):
        o[0] = a

    with pytest.raises(TypeError, match="argument 'a' must be one float32"):
        scaled.launch(np.zeros(1, np.float32), number, threads=1, threadgroup=1)


@sk.jit
def copy(o: F32, a: F32, i: THREAD):
    o[i] = a[i]


@pytest.mark.parametrize(
    "array",
    [np.zeros(4, "M8[s]"), np.zeros(4, "m8[s]"), np.zeros(4, object), np.zeros(4, [("a", "f4")]), np.zeros(4, "c8"), np.zeros(4, "V4"),
     np.zeros(4, "g"), np.ndarray, (ctypes.c_char * 16)()],
    ids=lambda a: str(getattr(a, "dtype", a)),
)  # fmt: skip
def test_arrays_of_other_things(array):
    with pytest.raises(TypeError, match="argument 'a' ") as caught:
        copy.launch(np.zeros(4, np.float32), array, threads=4, threadgroup=4)
    assert isinstance(caught.value, sk.SporkError)


def test_exporter_that_refuses():
    class Refusing:
        error = BufferError("not today")

        def __dlpack__(self, **options):
            raise self.error

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(sk.SporkTypeError, match="argument 'a' cannot be read as an array of float32: not today"):
        copy.launch(np.zeros(4, np.float32), Refusing(), threads=4, threadgroup=4)
    Refusing.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        copy.launch(np.zeros(4, np.float32), Refusing(), threads=4, threadgroup=4)


def test_threads_in_groups_of_none():
    a = np.zeros(4, np.float32)
    with pytest.raises(ValueError):
        copy.launch(a, a, threads=4, threadgroup=0)
    copy.launch(a, a, threads=0, threadgroup=4)
