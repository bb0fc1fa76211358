"""What values mean: types of operands, conversions, Python's operators. NumPy is the reference."""

import operator

import ml_dtypes
import numpy as np
import pytest

import spork as sk
from conftest import binary, blames, unary

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SIGNED = INTEGERS[::2]
FLOATS = ["float16", "float32"]


def interesting(name, seed=0):
    """Edge values and random ones, 256 of them."""
    rng = np.random.default_rng(seed)
    if name in FLOATS:
        edges = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 7, -7, 100, 1e-3], name)
        return np.concatenate([edges, rng.standard_normal(256 - len(edges)).astype(name) * 8]).astype(name)
    info = np.iinfo(name)
    edges = np.array([0, 1, 2, 3, 7, info.max, info.min, info.max - 1, info.min + 1, info.max // 2], name)
    return np.concatenate([edges, rng.integers(info.min, info.max, 256 - len(edges), dtype=name, endpoint=True)])


def pairs(name):
    x = interesting(name)
    y = np.random.default_rng(5).permutation(interesting(name, 1))
    return x, y


def traced_dtype(function, *dtypes):
    """The dtype of function(a, b, …) for values of these dtypes."""
    seen = []
    n = len(dtypes)
    names = {f"p{k}": sk.DevicePointer[d] for k, d in enumerate(dtypes)}

    def body(out, p0, p1=None, p2=None):
        pass

    source = f"def kernel(out, {', '.join(names)}):\n    seen.append(function({', '.join(f'{p}[0]' for p in names)}).dtype)\n    out[0] = 1\n"
    scope = {"seen": seen, "function": function}
    exec(source, scope)
    kernel = scope["kernel"]
    kernel.__annotations__ = {"out": sk.DevicePointer[sk.dt.int32], **names}
    sk.jit(kernel).ir
    assert n
    return seen[0]


# ---- one type --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul])
def test_arithmetic_wraps_and_keeps_the_type(name, op):
    x, y = pairs(name)
    with np.errstate(all="ignore"):
        expected = op(x, y)
    result = binary(op, x, y)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected, equal_nan=True)
    assert traced_dtype(op, sk.dtypes.from_numpy(np.dtype(name)), sk.dtypes.from_numpy(np.dtype(name))).name == name


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bitwise(name, op):
    x, y = pairs(name)
    assert np.array_equal(binary(op, x, y), op(x, y))
    assert np.array_equal(unary(operator.invert, x), ~x)


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
@pytest.mark.parametrize("op", [operator.floordiv, operator.mod])
def test_floor_division(name, op):
    x, y = pairs(name)
    with np.errstate(all="ignore"):
        expected = op(x, y)
    if name in INTEGERS:
        expected = np.where(y == 0, 0, expected).astype(name)
    assert np.array_equal(binary(op, x, y), expected, equal_nan=True)


def test_floor_division_of_small_negatives():
    i = np.arange(-10, 10, dtype=np.int32)
    assert np.array_equal(unary(lambda x: (x - 7) // 2, i), (i - 7) // 2)
    assert np.array_equal(unary(lambda x: (x - 7) % 3, i), (i - 7) % 3)
    assert np.array_equal(unary(lambda x: x // -2, i), i // -2)
    assert np.array_equal(unary(lambda x: 7 // x, i), np.where(i == 0, 0, 7 // np.where(i == 0, 1, i)))
    assert np.array_equal(unary(lambda x: x / 2, i, out="float32"), (i / 2).astype(np.float32))
    assert np.array_equal(unary(lambda x: divmod(x, 3)[0] * 100 + divmod(x, 3)[1], i), i // 3 * 100 + i % 3)
    assert np.array_equal(unary(lambda x: divmod(17, x)[1], i), np.where(i == 0, 0, 17 % np.where(i == 0, 1, i)))


def test_smallest_divided_by_minus_one_wraps():
    for name in SIGNED:
        low = np.full(4, np.iinfo(name).min, name)
        assert np.array_equal(unary(lambda x: x // -1, low), low)
        assert not unary(lambda x: x % -1, low).any()
        assert np.array_equal(unary(abs, low), low)
        assert np.array_equal(unary(lambda x: -x, low), low)


def test_truncating_division():
    x, y = pairs("int32")
    y = np.where(y == 0, 3, y).astype(np.int32)
    wide = x.astype(object), y.astype(object)
    quotient = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(*wide)]
    assert np.array_equal(binary(sk.div_trunc, x, y), np.array(quotient, np.int64).astype(np.int32))
    remainder = [a - q * b for a, b, q in zip(*wide, quotient)]
    assert np.array_equal(binary(sk.rem_trunc, x, y), np.array(remainder, np.int64).astype(np.int32))


@pytest.mark.parametrize("name", FLOATS)
def test_true_division(name):
    x, y = pairs(name)
    with np.errstate(all="ignore"):
        assert np.array_equal(binary(operator.truediv, x, y), x / y, equal_nan=True)


def test_true_division_of_integers_is_f32():
    x, y = pairs("int32")
    with np.errstate(all="ignore"):
        expected = x.astype(np.float32) / y.astype(np.float32)
    assert np.array_equal(binary(operator.truediv, x, y, out="float32"), expected, equal_nan=True)
    assert traced_dtype(operator.truediv, sk.dt.uint8, sk.dt.uint8) is sk.dt.float32
    assert traced_dtype(operator.truediv, sk.dt.float16, sk.dt.float16) is sk.dt.float16


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_count_modulo_the_width(name):
    x = interesting(name)
    bits = np.dtype(name).itemsize * 8
    for count in (0, 1, bits - 1, bits, bits + 3, 255):
        y = np.full(x.shape, count, np.uint8)
        assert np.array_equal(binary(operator.lshift, x, y, out=name), x << np.array(count % bits, name))
        assert np.array_equal(binary(operator.rshift, x, y, out=name), x >> np.array(count % bits, name))
        assert np.array_equal(unary(lambda v, c=count: v << c, x), x << np.array(count % bits, name))
    assert traced_dtype(operator.lshift, sk.dtypes.from_numpy(np.dtype(name)), sk.dt.int64).name == name
    assert np.array_equal(unary(lambda v: 1 << v, np.arange(8, dtype=np.uint8), out="int32"), 1 << np.arange(8, dtype=np.int32))


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_power(name):
    x = interesting(name)
    for exponent in (0, 1, 2, 3, 10):
        with np.errstate(all="ignore"):
            assert np.array_equal(unary(lambda v, e=exponent: v**e, x), x**exponent)
    y = (np.arange(256) % 9).astype(name)
    with np.errstate(all="ignore"):
        assert np.array_equal(binary(operator.pow, x, y), x**y)
    assert np.array_equal(unary(lambda v: 2**v, np.arange(7, dtype=name)), 2 ** np.arange(7))


def test_float_power():
    x = np.abs(interesting("float32"))
    assert np.allclose(unary(lambda v: v**2.5, x), x**2.5, rtol=1e-5)
    assert np.allclose(unary(lambda v: v**2, x), x**2, rtol=1e-6)
    assert np.allclose(unary(lambda v: 2.0**v, np.arange(8, dtype=np.float32)), 2.0 ** np.arange(8))


def test_negative_exponent_is_refused():
    with blames(ValueError):
        unary(lambda v: v**-1, np.ones(4, np.int32))  # blame


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_comparisons(name):
    x, y = pairs(name)
    for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        assert np.array_equal(binary(op, x, y, out="bool"), op(x, y))
        assert traced_dtype(op, sk.dtypes.from_numpy(np.dtype(name)), sk.dtypes.from_numpy(np.dtype(name))) is sk.dt.bool_


def test_comparison_with_nan():
    x = np.array([np.nan, 1.0], np.float32)
    assert list(unary(lambda v: v == v, x, out="bool")) == [False, True]  # noqa: PLR0124
    assert list(unary(lambda v: v != v, x, out="bool")) == [True, False]  # noqa: PLR0124


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
def test_unary_operators(name):
    x = interesting(name)
    with np.errstate(all="ignore"):
        assert np.array_equal(unary(operator.neg, x), -x)
        assert np.array_equal(unary(abs, x), np.abs(x))
    assert np.array_equal(unary(operator.pos, x), x)


def test_round_is_to_even():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, -0.2], np.float32)
    result = unary(round, x)
    assert np.array_equal(result, np.rint(x)) and np.array_equal(np.signbit(result), np.signbit(x))
    away = np.array([1, 2, 3, -1, -2, 2, 3, 0], np.float32)
    assert np.array_equal(unary(sk.round, x), away)
    assert np.array_equal(unary(sk.rint, x), np.rint(x))
    assert np.array_equal(unary(round, np.arange(4, dtype=np.int32)), np.arange(4))
    with blames(TypeError, "digits"):
        unary(lambda v: round(v, 2), x)  # blame


def test_reflected_forms():
    x = np.array([1, 2, 3, 5], np.int32)
    for f in (lambda v: 10 + v, lambda v: 10 - v, lambda v: 10 * v, lambda v: 10 // v, lambda v: 10 % v, lambda v: 2**v,
              lambda v: 10 & v, lambda v: 10 | v, lambda v: 10 ^ v, lambda v: 10 << v, lambda v: 1000 >> v):  # fmt: skip
        assert np.array_equal(unary(f, x), f(x))
    assert np.array_equal(unary(lambda v: 10 / v, x, out="float32"), (10 / x).astype(np.float32))
    for op in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        assert np.array_equal(unary(lambda v, op=op: op(3, v), x, out="bool"), op(3, x))


# ---- weak numbers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weak", [2, np.int8(2), np.uint64(2), True, np.bool_(True)])
def test_weak_integers_take_the_other_type(weak):
    for name in INTEGERS + FLOATS:
        x = interesting(name)
        with np.errstate(all="ignore"):
            assert np.array_equal(unary(lambda v: v + weak, x), x + np.array(weak, name))
        assert traced_dtype(lambda v: v + weak, sk.dtypes.from_numpy(np.dtype(name))).name == name


@pytest.mark.parametrize("weak", [2.5, np.float32(2.5), np.float64(2.5), np.float16(2.5), np.array(2.5)])
def test_weak_floats(weak):
    for name in FLOATS:
        x = interesting(name)
        assert np.array_equal(unary(lambda v: v * weak, x), x * np.array(2.5, name))
        assert traced_dtype(lambda v: weak * v, sk.dtypes.from_numpy(np.dtype(name))).name == name
    for name in INTEGERS:
        assert traced_dtype(lambda v: v * weak, sk.dtypes.from_numpy(np.dtype(name))) is sk.dt.float32
    assert traced_dtype(lambda v: v * weak, sk.dt.bool_) is sk.dt.float32
    assert traced_dtype(lambda v: v * weak, sk.dt.bfloat16) is sk.dt.bfloat16


def test_weak_numbers_must_fit():
    x = np.array([1, 2, 2**32 - 1, 0], np.uint32)
    assert np.array_equal(unary(lambda v: v & 0xFFFFFFFF, x), x)
    for f in (lambda v: v & 0x1FFFFFFFF, lambda v: v + -1, lambda v: v * 2**200):
        with pytest.raises(ValueError, match="fit"):
            unary(f, x)
    with blames(ValueError, "fit"):
        unary(lambda v: v + 200, np.zeros(4, np.int8))  # blame
    with pytest.raises(ValueError, match="fit"):
        unary(lambda v: v + 1e40, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="fit"):
        unary(lambda v: v + 65520.0, np.zeros(4, np.float16))


def test_exact_constants():
    out = np.zeros(8, np.float32)
    numbers = [float("inf"), float("-inf"), -0.0, 1e-45, 0.1, 3.4028234663852886e38, 16777217, float("nan")]

    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32]):
        for k, x in enumerate(numbers):
            out[k] = x

    kernel[1, 1](out)
    expected = np.array(numbers, np.float32)
    assert np.array_equal(out, expected, equal_nan=True) and np.array_equal(np.signbit(out[:7]), np.signbit(expected[:7]))


# ---- two types -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("int8", "int32", "int32"), ("uint8", "uint16", "uint16"), ("int64", "int8", "int64"), ("uint8", "int16", "int16"),
        ("int32", "float32", "float32"), ("int64", "float16", "float16"), ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"), ("float16", "bfloat16", "float32"), ("uint32", "bfloat16", "bfloat16"),
        ("int32", "uint32", "uint32"), ("int8", "uint64", "uint64"), ("bool_", "uint8", "int32"), ("bool_", "float16", "float16"),
        ("bool_", "bool_", "int32"),
    ],
)  # fmt: skip
def test_mixed_types(a, b, result):
    a, b, result = (getattr(sk.dt, name) for name in (a, b, result))
    assert traced_dtype(operator.add, a, b) is result
    assert traced_dtype(operator.add, b, a) is result


def test_mixed_signs_wrap_where_the_bits_do_not_tell():
    x, y = interesting("int32"), interesting("uint32", 1)
    for op in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor):
        assert np.array_equal(binary(op, x, y, out="uint32"), op(x.view(np.uint32), y))


@pytest.mark.parametrize("op", [operator.lt, operator.ge, operator.eq, operator.floordiv, operator.mod, sk.min, sk.max])
def test_mixed_signs_are_refused_where_they_matter(op):
    x, y = np.zeros(4, np.int32), np.zeros(4, np.uint32)
    with blames(TypeError, "cast one side"):
        binary(lambda a, b: op(a, b), x, y, out="int32")  # blame


def test_mixed_signs_to_float():
    with pytest.raises(TypeError, match="cast one side"):
        binary(operator.truediv, np.zeros(4, np.int32), np.zeros(4, np.uint32), out="float32")


def test_bools():
    t = np.array([True, False, True, False])
    u = np.array([True, True, False, False])
    for op in (operator.and_, operator.or_, operator.xor):
        assert np.array_equal(binary(op, t, u), op(t, u))
        assert traced_dtype(op, sk.dt.bool_, sk.dt.bool_) is sk.dt.bool_
    assert np.array_equal(unary(operator.invert, t), ~t)
    assert np.array_equal(binary(operator.add, t, u, out="int32"), t.astype(int) + u)
    assert np.array_equal(unary(lambda v: v & True, t), t)
    assert np.array_equal(unary(lambda v: -v, t, out="int32"), -t.astype(np.int32))


def test_f16_rounds_after_every_operation():
    x, y = pairs("float16")
    with np.errstate(all="ignore"):
        expected = (x + y) * y / (x - y)
    assert np.array_equal(binary(lambda a, b: (a + b) * b / (a - b), x, y), expected, equal_nan=True)


def test_bf16_rounds_after_every_operation():
    x = np.random.default_rng(1).standard_normal(64).astype(ml_dtypes.bfloat16)

    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.bfloat16], x: sk.DevicePointer[sk.dt.bfloat16], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = (x[i] + x[i]) * x[i] / 3

    out = np.zeros_like(x)
    kernel[1, 64](out, x)
    assert np.array_equal(out, (x + x) * x / ml_dtypes.bfloat16(3))


def test_denormals_are_kept():
    x = np.array([1e-40, -1e-45, 1e-38], np.float32)
    assert np.array_equal(unary(lambda v: v * 0.5, x), x * np.float32(0.5))


def test_contraction_is_a_choice():
    x = np.array([1 + 2**-12] * 4, np.float32)
    source = lambda v: v * v - 1  # noqa: E731
    exact = np.float32(np.float64(x[0]) * np.float64(x[0]) - 1)
    assert unary(source, x)[0] == exact

    @sk.jit(contract=False)
    def kernel(out: sk.DevicePointer[sk.dt.float32], x: sk.DevicePointer[sk.dt.float32]):
        out[0] = source(x[0])

    out = np.zeros(1, np.float32)
    kernel[1, 1](out, x)
    assert out[0] == x[0] * x[0] - np.float32(1)


# ---- conversions -------------------------------------------------------------------------------------------------------------------------


def test_implicit_conversion_on_store():
    x = interesting("int32")
    assert np.array_equal(unary(lambda v: v, x, out="float32"), x.astype(np.float32))
    assert np.array_equal(unary(lambda v: v, x, out="int64"), x.astype(np.int64))
    assert np.array_equal(unary(lambda v: v, x, out="uint32"), x.astype(np.uint32))
    y = interesting("float32") * 100
    assert np.array_equal(unary(lambda v: v, y, out="float16"), y.astype(np.float16))
    assert np.array_equal(unary(lambda v: v > 3, y, out="int8"), (y > 3).astype(np.int8))


@pytest.mark.parametrize(("source", "target"), [("float32", "int32"), ("int32", "int16"), ("int64", "uint32"), ("int32", "bool")])
def test_narrowing_needs_a_cast(source, target):
    with pytest.raises(TypeError, match="sk.cast"):
        unary(lambda v: v, np.zeros(4, source), out=target)


@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_integer_saturates(target):
    x = np.array([0, 1.9, -1.9, 300, -300, 1e10, -1e10, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    result = unary(lambda v: sk.cast(v, sk.dtypes.from_numpy(np.dtype(target))), x, out=target)
    info = np.iinfo(target)
    expected = [0 if np.isnan(v) else min(max(int(v) if np.isfinite(v) else int(np.sign(v)) << 70, info.min), info.max) for v in x]
    assert [int(v) for v in result] == expected


def test_casts():
    x = interesting("int32")
    for name in INTEGERS + ["float32", "float16"]:
        with np.errstate(over="ignore"):
            assert np.array_equal(unary(lambda v, n=name: sk.cast(v, sk.dtypes.from_numpy(np.dtype(n))), x, out=name), x.astype(name))
    assert np.array_equal(unary(lambda v: sk.cast(v, sk.dt.bool_), x, out="bool"), x != 0)
    assert np.array_equal(unary(lambda v: sk.dt.int8(v), x, out="int8"), x.astype(np.int8))
    y = interesting("float32")
    assert np.array_equal(unary(lambda v: sk.bitcast(v, sk.dt.uint32), y, out="uint32"), y.view(np.uint32))
    with blames(TypeError):
        unary(lambda v: sk.bitcast(v, sk.dt.uint16), y, out="uint16")  # blame


def test_select_takes_numbers_and_values():
    x = interesting("float32")
    assert np.array_equal(unary(lambda v: sk.select(v > 0, v, 0), x), np.where(x > 0, x, 0).astype(np.float32))
    assert np.array_equal(unary(lambda v: sk.select(v > 0, 1, -1.5), x), np.where(x > 0, 1, -1.5).astype(np.float32))
    y = interesting("int32")
    assert np.array_equal(unary(lambda v: sk.select(v, 5, 7), y), np.where(y != 0, 5, 7))


# ---- order -----------------------------------------------------------------------------------------------------------------------------------


def test_a_read_is_a_value():
    @sk.jit
    def swap(a: sk.DevicePointer[sk.dt.float32], b: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        t = a[i]
        a[i] = b[i]
        b[i] = t

    a, b = np.arange(8, dtype=np.float32), -np.arange(8, dtype=np.float32)
    swap[1, 8](a, b)
    assert np.array_equal(a, -np.arange(8)) and np.array_equal(b, np.arange(8))


def test_locals_are_places():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.int32]):
        v = sk.local(sk.dt.int32, 5)
        snapshots = v + 0, +v, v.value
        alias = v
        v += 1
        for k, x in enumerate(snapshots):
            out[k] = x
        out[3] = alias
        v -= 3
        v *= 4
        v //= 5
        v <<= 3
        v |= 5
        v &= 0xF
        v ^= 1
        v %= 7
        v **= 3
        v >>= 1
        out[4] = v
        v.assign(out[3] * 2)
        out[5] = v
        w = sk.local(sk.dt.float32)
        w += 1.5
        w /= 2
        out[6] = sk.cast(w * 100, sk.dt.int32)

    out = np.zeros(8, np.int32)
    kernel[1, 1](out)
    v = 6 - 3
    v = ((((v * 4 // 5) << 3 | 5) & 0xF) ^ 1) % 7
    assert list(out[:7]) == [5, 5, 5, 6, v**3 >> 1, 12, 75]


def test_divide_in_place():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.int32]):
        v = sk.local(sk.dt.int32, 5)
        v /= 2  # blame
        out[0] = v

    with blames(TypeError, "use //=", line=kernel.__wrapped__.__code__.co_firstlineno + 3):
        kernel.ir


def test_vector_values():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32], p: sk.Float3, q: sk.Int2):
        v = p * 2 + sk.dt.float32x3(1, 2, 3)
        for k, name in enumerate("xyz"):
            out[k] = getattr(v, name)
        w = sk.local(sk.dt.float32x3, p)
        w.y = w.x + 10
        w += p
        out[3] = w.x
        out[4] = w.y
        out[5] = w.z
        out[6] = q.x // q.y
        m = sk.local(sk.dt.int32x2, (3, 4))
        out[7] = (m * q).y

    out = np.zeros(8, np.float32)
    kernel[1, 1](out, (1, 2, 3), (7, -2))
    assert list(out) == [3, 6, 9, 2, 13, 6, -4, -8]
    with pytest.raises(TypeError, match="component"):

        @sk.jit
        def wrong(out: sk.DevicePointer[sk.dt.float32], p: sk.Float2):
            out[0] = p.z

        wrong.ir


def test_numpy_does_not_take_over():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32], x: sk.DevicePointer[sk.dt.float32]):
        out[0] = np.float32(2.0) * x[0]
        out[1] = x[0] - np.float64(0.5)
        out[2] = np.int64(3) + x[0]

    out = np.zeros(3, np.float32)
    kernel[1, 1](out, np.array([4], np.float32))
    assert list(out) == [8, 3.5, 7]
    for f in (lambda v: np.ones(3) + v, lambda v: v + np.ones(3), lambda v: v * np.ones(1)):
        with pytest.raises(TypeError, match="array"):
            unary(f, out)
    with pytest.raises(TypeError):
        unary(np.sin, out)
    for thing in ("text", None, [1], 1j, object(), sk.dt.float32, len):
        with pytest.raises(TypeError) as caught:
            unary(lambda v, t=thing: v + t, out)
        assert isinstance(caught.value, sk.SporkError)
