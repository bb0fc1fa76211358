"""Bad input inside a kernel: a clear error at the user's own line."""

import math

import numpy as np
import pytest

import spork as sk

F32 = sk.DevicePointer[sk.dt.float32]
I32 = sk.DevicePointer[sk.dt.int32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def if_truth(out, i):
    if i > 3:  # blame
        out[i] = 1


def and_truth(out, i):
    x = i > 3 and i < 5  # blame
    out[i] = x


def or_truth(out, i):
    out[i] = out[i] or 1  # blame


def not_truth(out, i):
    out[i] = not i  # blame


def chained(out, i):
    out[i] = 1 < i < 5  # blame


def python_bool(out, i):
    out[i] = bool(i)  # blame


def ternary(out, i):
    out[i] = 1 if i > 2 else 2  # blame


def python_while(out, i):
    while i < 3:  # blame
        out[i] = 1


def python_assert(out, i):
    assert i < 3  # blame


def python_int(out, i):
    out[int(i)] = 1  # blame


def python_float(out, i):
    out[i] = float(out[i])  # blame


def list_index(out, i):
    out[i] = [1, 2, 3][i]  # blame


def math_sin(out, i):
    out[i] = math.sin(out[i])  # blame


def math_floor(out, i):
    out[i] = math.floor(out[i])  # blame


def python_range(out, i):
    for j in range(i):  # blame
        out[j] = 1


def python_max(out, i):
    out[i] = max(out[i], 0)  # blame


def python_sum(out, i):
    out[i] = sum(out)  # blame


def python_len(out, i):
    out[i] = len(out)  # blame


def iterate(out, i):
    for x in out:  # blame
        out[i] = x


def contains(out, i):
    out[i] = 1 in out  # blame


def in_list(out, i):
    out[i] = i in [1, 2]  # blame


def two_indices(out, i):
    out[i, i] = 1  # blame


def read_two_indices(out, i):
    out[i] = out[0, i]  # blame


def negative_index(out, i):
    out[i] = out[-1]  # blame


def float_index(out, i):
    out[i] = out[1.5]  # blame


def traced_float_index(out, i):
    out[i] = out[out[i]]  # blame


def slice_index(out, i):
    out[i] = out[0:2]  # blame


def none_index(out, i):
    out[None] = 1  # blame


def store_text(out, i):
    out[i] = "1"  # blame


def store_none(out, i):
    out[i] = None  # blame


def store_array(out, i):
    out[i] = np.ones(3)  # blame


def store_pointer(out, i):
    out[i] = out  # blame


def store_overflow(out, i):
    out[i] = 1e40  # blame


def store_huge(out, i):
    out[i] = i + 2**70  # blame


def add_pointers(out, i):
    out[i] = out + out  # blame


def shift_by_float(out, i):
    out[i] = i << 1.5  # blame


def invert_float(out, i):
    out[i] = ~out[i]  # blame


def float_and(out, i):
    out[i] = out[i] & 1  # blame


def pow_modulus(out, i):
    out[i] = pow(i, 2, 7)  # blame


def compare_none(out, i):
    out[i] = i == None  # noqa: E711  # blame


def matrix_product(out, i):
    out[i] = out[i] @ out[i]  # blame


def subscript_value(out, i):
    out[i] = i[0]  # blame


def component_of_scalar(out, i):
    out[i] = i.x  # blame


def assign_component(out, i):
    i.x = 3  # blame


def local_of_text(out, i):
    v = sk.local(sk.dt.float32, "x")  # blame
    out[i] = v


def local_overflow(out, i):
    v = sk.local(sk.dt.int8, 300)  # blame
    out[i] = v


def local_of_f64(out, i):
    v = sk.local(float, 1)  # blame
    out[i] = v


def local_of_atomic(out, i):
    v = sk.local(sk.dt.atomic_uint32)  # blame
    out[i] = v


def local_index(out, i):
    v = sk.local(sk.dt.int32)
    out[i] = (1, 2)[v]  # blame


def local_truth(out, i):
    v = sk.local(sk.dt.int32)
    if v:  # blame
        out[i] = 1


def narrowing(out, i):
    v = sk.local(sk.dt.int32)
    v += 1.5  # blame
    out[i] = v


def assign_narrowing(out, i):
    v = sk.local(sk.dt.int32)
    v.assign(out[i])  # blame
    out[i] = v


def cast_to_nothing(out, i):
    out[i] = sk.cast(i, "x")  # blame


def cast_to_f64(out, i):
    out[i] = sk.cast(i, np.float64)  # blame


def mixed_signs(out, i):
    v = sk.local(sk.dt.int32)
    out[i] = v < i  # blame


def mixed_floor(out, i):
    v = sk.local(sk.dt.int32)
    out[i] = v // i  # blame


def wrong_range(out, i):
    for j in sk.range(out[0]):  # blame
        out[j] = 1


def range_without(out, i):
    for j in sk.range():  # blame
        out[j] = 1


def range_of_text(out, i):
    for j in sk.range("x"):  # blame
        out[j] = 1


def condition_is_text(out, i):
    with sk.if_("x"):  # blame
        out[i] = 1


def condition_is_a_pointer(out, i):
    with sk.if_(out):  # blame
        out[i] = 1


def uncalled(out, i):
    out[i] = sk.simd_sum  # blame


def huge_threadgroup(out, i):
    s = sk.threadgroup(sk.dt.float32, 100000)  # blame
    s[0] = 1


def launch_inside(out, i):
    other[1, 1](np.zeros(1, np.float32))  # blame


def formatted(out, i):
    out[i] = len(f"{i:3}")  # blame


@sk.jit
def other(out: F32):
    out[0] = 1


CASES = [f for f in list(globals().values()) if callable(f) and getattr(f, "__code__", None) and f.__module__ == __name__]


@pytest.mark.parametrize("body", CASES, ids=lambda f: f.__name__)
def test_blames_the_line(body):
    code = body.__code__
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    line = next(k for k in range(code.co_firstlineno, code.co_firstlineno + 10) if "# blame" in lines[k - 1])
    body.__annotations__ = {"out": F32, "i": THREAD}
    kernel = sk.jit(body)
    out = np.full(8, 9, np.float32)
    for _ in range(2):  # nothing is left behind: the second time is as the first
        with pytest.raises((TypeError, ValueError, sk.TraceError)) as caught:
            kernel[1, 1](out)
        if body.__name__ == "matrix_product":
            continue
        assert isinstance(caught.value, sk.SporkError), repr(caught.value)
        assert (caught.value.file, caught.value.line) == (__file__, line)
        assert str(caught.value).startswith(f"{__file__}:{line}: ")
    assert np.all(out == 9)


def test_errors_know_the_column():
    import sys

    body = float_index
    body.__annotations__ = {"out": F32, "i": THREAD}
    with pytest.raises(TypeError) as caught:
        sk.jit(body).ir
    if sys.version_info >= (3, 11):
        assert caught.value.column == 14


def test_the_classes():
    assert issubclass(sk.SporkTypeError, (sk.SporkError, TypeError)) and issubclass(sk.SporkTypeError, TypeError)
    assert issubclass(sk.SporkValueError, ValueError) and issubclass(sk.SporkValueError, sk.SporkError)
    assert issubclass(sk.KernelFault, sk.SporkError) and issubclass(sk.TraceError, sk.SporkError)
    assert issubclass(sk.SporkMemoryError, MemoryError)
    assert sk.SporkError("x").line is None
