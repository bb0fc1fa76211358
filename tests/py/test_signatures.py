"""Functions and their annotations."""

import inspect

import numpy as np
import pytest

import future_annotations
import spork as sk
from conftest import blames

F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def line_of(text, thing):
    lines, first = inspect.getsourcelines(thing)
    return next(max(first, 1) + k for k, line in enumerate(lines) if text in line)


# ---- the annotations themselves ------------------------------------------------------------------------------------------------


def test_dtypes():
    assert sk.dt is sk.dtypes
    for name, metal, nbytes, is_float, is_signed in (
        ("float32", "float", 4, True, True), ("float16", "half", 2, True, True), ("bfloat16", "bfloat", 2, True, True),
        ("int32", "int", 4, False, True), ("uint32", "uint", 4, False, False), ("int64", "long", 8, False, True),
        ("uint64", "ulong", 8, False, False), ("bool_", "bool", 1, False, False), ("int8", "char", 1, False, True),
        ("uint16", "ushort", 2, False, False), ("atomic_uint32", "atomic_uint", 4, False, False),
        ("atomic_int32", "atomic_int", 4, False, True), ("atomic_float32", "atomic_float", 4, True, True),
        ("float32x3", "float3", 16, True, True), ("uint8x4", "uchar4", 4, False, False),
    ):  # fmt: skip
        d = getattr(sk.dt, name)
        assert isinstance(d, sk.dt.Dtype) and isinstance(d, sk.Dtype)
        assert (d.name, d.metal, d.nbytes, d.is_float, d.is_signed) == (name, metal, nbytes, is_float, is_signed)
        assert repr(d) == f"dt.{name}" and name in dir(sk.dt)
        with pytest.raises((AttributeError, TypeError)):
            d.name = "x"
    with pytest.raises(TypeError):
        sk.Dtype()


def test_from_numpy_and_underlying():
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32"):
        assert sk.dtypes.from_numpy(np.dtype(name)).name == name
        assert sk.dtypes.from_numpy(getattr(np, name)).name == name
    assert sk.dtypes.from_numpy(np.dtype(bool)) is sk.dt.bool_
    import ml_dtypes

    assert sk.dtypes.from_numpy(np.dtype(ml_dtypes.bfloat16)) is sk.dt.bfloat16
    for wrong in (np.dtype("f8"), np.float64, np.dtype("c8"), np.dtype("U3"), np.dtype("M8[s]"), "nope", 3, None):
        with pytest.raises(TypeError):
            sk.dtypes.from_numpy(wrong)
    assert sk.dtypes.underlying(sk.dt.atomic_uint32) is sk.dt.uint32
    assert sk.dtypes.underlying(sk.dt.float32) is sk.dt.float32


def test_specs():
    assert isinstance(F32, sk.DevicePointer) and F32.dtype is sk.dt.float32
    assert F32 == sk.DevicePointer[sk.dt.float32] and hash(F32) == hash(sk.DevicePointer[sk.dt.float32])
    assert F32 != sk.DevicePointer[sk.dt.int32] and F32 != sk.ConstantPointer[sk.dt.float32]
    assert repr(F32) == "DevicePointer[dt.float32]"
    assert isinstance(sk.Uint, sk.ScalarParamSpec) and isinstance(THREAD, sk.ScalarParamSpec)
    assert (sk.Uint.dtype, sk.Uint.vec_size, sk.Uint.metal_name, sk.Uint.attribute) == (sk.dt.uint32, 1, "uint", None)
    three = sk.Uint3[sk.ThreadPositionInThreadgroup]
    assert (three.dtype, three.vec_size, three.metal_name) == (sk.dt.uint32, 3, "uint3")
    assert three.attribute is sk.ThreadPositionInThreadgroup
    assert repr(three) == "Uint3[ThreadPositionInThreadgroup]"
    assert three == sk.Uint3[sk.ThreadPositionInThreadgroup] != sk.Uint3


def test_wrong_specs():
    for make in (
        lambda: sk.DevicePointer[3],
        lambda: sk.DevicePointer["float64"],
        lambda: sk.DevicePointer[float],
        lambda: sk.DevicePointer[np.float64],
        lambda: sk.DevicePointer[sk.Uint],
        lambda: sk.DevicePointer[None],
        lambda: sk.Uint[3],
        lambda: sk.Uint[sk.ThreadAttribute],
        lambda: THREAD[sk.ThreadPositionInGrid],
        lambda: sk.Float[sk.ThreadPositionInGrid],
        lambda: sk.Uint4[sk.ThreadPositionInGrid],
        lambda: sk.Uint2[sk.ThreadIndexInSimdgroup],
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert isinstance(caught.value, sk.SporkError)
    with blames(TypeError, "no 64-bit float"):
        sk.DevicePointer[np.float64]  # blame


def test_unknown_dtype():
    with pytest.raises(AttributeError, match="no 64-bit float") as caught:
        sk.dt.float64  # noqa: B018
    assert isinstance(caught.value, sk.SporkError) and "test_signatures.py" in str(caught.value)
    with pytest.raises(AttributeError, match="no dtype 'float33'"):
        sk.dt.float33  # noqa: B018
    assert not hasattr(sk.dt, "float64")


# ---- functions ---------------------------------------------------------------------------------------------------------------------


def test_missing_annotation():
    with blames(TypeError, "'n' has no annotation"):

        @sk.jit
        def kernel(
            out: F32,
            n,  # blame
        ):
            out[0] = n


@pytest.mark.parametrize("annotation", [int, float, 3, "sk.Uint3[0]", list, sk.ThreadAttribute, sk.DevicePointer, sk.dt, None, "1 +", sk.ThreadPositionInGrid])
def test_wrong_annotation(annotation):
    with blames(TypeError, "'n'"):

        @sk.jit
        def kernel(
            out: F32,
            n: annotation,  # blame
        ):
            out[0] = n


def test_wrong_functions():
    def generator(out: F32):
        yield

    async def coroutine(out: F32):
        pass

    def defaults(out: F32, n: sk.Uint = 3):
        pass

    def star(*out: F32):
        pass

    def keywords(out: F32, **n: sk.Uint):
        pass

    def keyword_only(out: F32, *, n: sk.Uint):
        pass

    for function in (generator, coroutine, defaults, star, keywords, keyword_only):
        for decorator in (sk.jit, sk.device_fn):
            with pytest.raises(TypeError) as caught:
                decorator(function)
            assert caught.value.line == function.__code__.co_firstlineno
    for thing in (3, len, int, sk.jit, None, "text"):
        with pytest.raises(TypeError, match="Python function"):
            sk.jit(thing)
    with pytest.raises(TypeError):
        sk.jit(nope=1)


def test_too_many_buffers():
    names = [f"p{k}" for k in range(32)]

    def make(n):
        scope = {"F32": F32, "sk": sk}
        exec(f"@sk.jit\ndef kernel({', '.join(f'{p}: F32' for p in names[:n])}):\n    p0[0] = 1\n", scope)
        return scope["kernel"]

    out = np.zeros(1, np.float32)
    make(31)[1, 1](*[out] * 31)
    assert out[0] == 1
    with pytest.raises(ValueError, match="31"):
        make(32)


def test_kernel_that_returns():
    @sk.jit
    def kernel(out: F32, i: THREAD):
        out[i] = 1
        return i

    with pytest.raises(TypeError, match="returns a value") as caught:
        kernel.ir
    assert caught.value.line == line_of("def kernel", kernel.__wrapped__)


def test_names_that_metal_reserves():
    @sk.jit
    def kernel(constant: F32, float: F32, i0: THREAD, device: sk.Uint):
        for int in sk.range(device):
            constant[i0] = float[i0] + int

    out = np.zeros(4, np.float32)
    kernel[1, 4](out, np.ones(4, np.float32), 3)
    assert np.all(out == 3)


def test_unicode_names():
    @sk.jit
    def größe(aus: F32, λ: THREAD):
        ähnlich = aus[λ] + 1
        aus[λ] = ähnlich

    out = np.zeros(4, np.float32)
    größe[1, 4](out)
    assert np.all(out == 1) and größe.name == "größe"


def test_future_annotations():
    out = np.zeros(4, np.float32)
    future_annotations.of_globals[1, 4](out)
    assert np.all(out == 1)
    future_annotations.of_closure(sk.dt.float32)[1, 4](out)
    assert np.all(out == 2)
    future_annotations.of_locals_only()[1, 4](out)
    assert np.all(out == 3)
    future_annotations.defined_later[1, 4](out)
    assert np.all(out == 4)
    with pytest.raises((TypeError, AttributeError), match="64-bit") as caught:
        future_annotations.wrong()
    assert isinstance(caught.value, sk.SporkError)
    kernel = future_annotations.never_defined()
    with pytest.raises(TypeError, match="Nowhere") as caught:
        kernel.ir
    assert caught.value.file == future_annotations.__file__
    assert caught.value.line == line_of("n: Nowhere", future_annotations)


def test_scalar_annotation_by_dtype():
    @sk.jit
    def kernel(out: F32, n: sk.dt.uint32, v: sk.dt.float32x2):
        out[0] = n + v.y

    out = np.zeros(1, np.float32)
    kernel[1, 1](out, 3, (1, 2.5))
    assert out[0] == 5.5
    with pytest.raises(TypeError, match="atomic"):

        @sk.jit
        def wrong(out: F32, n: sk.dt.atomic_uint32):
            out[0] = n
