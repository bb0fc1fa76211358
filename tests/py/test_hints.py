"""What a newcomer writes: the error is at the line and names the cure."""

import threading

import numpy as np
import pytest

import spork as sk

F32 = sk.DevicePointer[sk.dt.float32]
U8 = sk.DevicePointer[sk.dt.uint8]
THREAD = sk.Uint[sk.ThreadPositionInGrid]
table = np.arange(8, dtype=np.float32)


@sk.jit
def other(out: F32):
    out[0] = 1


@sk.device_fn
def twice(x: sk.Float) -> sk.Float:
    return 2 * x


def forgotten_parentheses(out, i):
    with sk.if_(i > 3) as b:
        out[i] = 1
    with b.else_:
        out[i] = 2


def forgotten_elif(out, i):
    with sk.if_(i > 3) as b:
        out[i] = 1
    with b.elif_:
        out[i] = 2


def body(text):
    """A kernel of one line; its line is 2."""
    space = {}
    exec(compile(f"def one(out, i):\n    {text}\n    out[i] = 1\n", "<one>", "exec"), globals(), space)
    return space["one"]


@pytest.mark.parametrize(
    "what, words",
    [
        ("np.exp(out[i])", ["np.exp", "use sk.exp"]),
        ("np.arctan2(out[i], 1)", ["sk.atan2"]),
        ("np.arcsin(out[i])", ["sk.asin"]),
        ("np.maximum(out[i], 0)", ["sk.max"]),
        ("np.add.reduce(out[i])", ["np.add"]),
        ("np.logical_and(i, 1)", ["use &"]),
        ("table * out[i]", ["an array", "DevicePointer"]),
        ("out[i] * table", ["an array", "DevicePointer"]),
        ("table < out[i]", ["an array", "DevicePointer"]),
        ("table[i]", ["NumPy array", "DevicePointer"]),
        ("out[i] = sk.if_(i > 3 & i < 6)", ["(a < b) & (c < d)"]),
        ("other(out)", ["sk.device_fn"]),
        ("other[1, 1](out)", ["sk.device_fn"]),
        ("sk.else_()", ["sk.else_", "b.else_()"]),
        ("sk.float32(i)", ["sk.dt.float32"]),
        ("sk.nothing(i)", ["sk.nothing"]),
        ("out.shape", ["pointer has no attribute 'shape'", "sk.Uint"]),
        ("out[i].astype(int)", ["sk.cast"]),
        ("i.assign(3)", ["sk.local"]),
        ("i.xy", ["sk.dt.float32x2"]),
        ("out.nothing", ["[index]"]),
        ("sk.cast(sk.dt.int32, i)", ["sk.cast(x, sk.dt.int32)"]),
        ("sk.bitcast(sk.dt.int32, i)", ["sk.bitcast(x, sk.dt.int32)"]),
        ("sk.local(sk.dt.float32, (4,))", ["no shape", "sk.threadgroup"]),
        ("sk.local(sk.dt.float32, [4, 4])", ["no shape"]),
        ("sk.local(sk.dt.float32, initial=1)", ["'initial'", "it has dtype, init"]),
        ("twice(y=1)", ["'y'", "it has x"]),
        ("sk.Uint[sk.ThreadPositionInGrid](3)", ["call sk.Uint"]),
        ("sk.Float2(1, 2, 3)", ["2 components"]),
    ],
)
def test_line(what, words):
    one = body(what)
    one.__annotations__ = {"out": F32, "i": THREAD}
    with pytest.raises((TypeError, AttributeError, sk.TraceError)) as caught:
        sk.jit(one).ir
    assert isinstance(caught.value, sk.SporkError), repr(caught.value)
    assert caught.value.line == 2, str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("one, words", [(forgotten_parentheses, "else_()"), (forgotten_elif, "elif_(condition)")])
def test_forgotten_parentheses(one, words):
    one.__annotations__ = {"out": F32, "i": THREAD}
    with pytest.raises(sk.TraceError, match="parentheses") as caught:
        sk.jit(one).ir
    assert words in str(caught.value) and caught.value.line == one.__code__.co_firstlineno + 3


def test_attributes_are_as_in_python():
    @sk.jit
    def kernel(out: F32, i: THREAD):
        assert not hasattr(out, "shape") and not hasattr(i, "__array_interface__") and hasattr(i, "dtype")
        assert getattr(out[i], "nothing", 3) == 3
        out[i] = 1

    kernel.ir
    assert not hasattr(sk, "nothing")
    with pytest.raises(ImportError):
        from spork import nothing  # noqa: F401


def test_numpy_scalars_on_the_left():
    two, three = np.float32(2), np.int32(3)

    @sk.jit
    def kernel(out: F32, n: sk.DevicePointer[sk.dt.int32], i: THREAD):
        x = out[i]
        out[0] = two * x + two - x / two
        out[1] = two / x
        out[2] = two**x
        out[3] = two // x + two % x
        n[0] = (three & i) | (three << i) ^ (three >> i)
        n[1] = sk.select(two < x, 1, 0) + sk.select(two != x, 10, 0) + sk.select(two >= x, 100, 0)
        q, r = divmod(two, x)
        out[4] = q + r
        out[5] = np.array(2.0) * x

    out, n = np.full(6, 3, np.float32), np.zeros(2, np.int32)
    kernel.launch(out, n, threads=1)
    assert np.allclose(out, [6 + 2 - 1.5, 2 / 3, 8, 2, 2, 6])
    assert n[0] == (3 & 0) | (3 << 0) ^ (3 >> 0) and n[1] == 11


def test_specs_make_values():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32x2], n: sk.DevicePointer[sk.dt.int32], i: THREAD):
        out[i] = sk.Float2(1, i)
        n[i] = sk.Int(2.75)

    out, n = np.zeros((3, 2), np.float32), np.zeros(3, np.int32)
    kernel.launch(out, n, threads=3)
    assert out.tolist() == [[1, 0], [1, 1], [1, 2]] and n.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["atomic_fetch_add", "atomic_fetch_and", "atomic_load"])
def test_atomics_of_bytes(name):
    values = () if name == "atomic_load" else (1,)

    @sk.jit
    def kernel(out: U8, i: THREAD):
        getattr(sk, name)(out, i, *values)

    with pytest.raises(TypeError, match=f"'{name}' works on elements of .*int32.*, not of uint8") as caught:
        kernel.ir
    assert ("float32" in str(caught.value)) == (name != "atomic_fetch_and")


def test_threads_without_a_threadgroup():
    @sk.jit
    def sizes(out: sk.DevicePointer[sk.dt.uint32], g: sk.Uint3[sk.ThreadsPerThreadgroup], i: sk.Uint3[sk.ThreadPositionInGrid]):
        out[i.x + 8 * i.y] = g.x + 1000 * g.y

    out = np.zeros(8, np.uint32)
    sizes.launch(out, threads=8)
    assert (out == 1008).all()
    bound = sizes.bind(threads=(8, 2))
    assert bound.threadgroup == (8, 1, 1) and bound.grid == (1, 2, 1)
    out = np.zeros(16, np.uint32)
    bound(out)
    assert (out == 1008).all()
    out = np.zeros(1000, np.uint32)
    sizes.launch(out, threads=1000)
    assert out[0] == 1256 and out[999] == 1000 + 1000 % 256
    sizes.launch(out, threads=0)
    assert sizes.bind(threads=0).threadgroup == (1, 1, 1)


def test_arguments_of_a_launch():
    out = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match="'outt'.*grid, threads, threadgroup and bounds, and the kernel out"):
        other.launch(outt=out, threads=1)
    with pytest.raises(TypeError, match="'stream'.*the kernel out"):
        other.launch(out, threads=1, stream=3)
    with pytest.raises(TypeError, match="SPORK_DEVICE"):
        other.launch(out, threads=1, device="cuda")
    with pytest.raises(TypeError, match="'device'.*it has grid, threadgroup, threads"):
        other.bind(threads=1, device="cuda")
    with pytest.raises(ValueError, match="argument 'out' is written.*C order"):
        other.launch(np.zeros((4, 4), np.float32, order="F"), threads=1)


def test_a_fortran_input():
    @sk.jit
    def kernel(out: F32, a: F32):
        out[0] = a[1]

    with pytest.raises(ValueError, match="argument 'a'.*ascontiguousarray"):
        kernel.launch(np.zeros(1, np.float32), np.zeros((4, 4), np.float32, order="F"), threads=1)


def test_bfloat16_argument():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.bfloat16]):
        out[0] = 1

    for dtype in (np.float32, np.float64, np.float16):
        with pytest.raises(TypeError, match=rf"not of {np.dtype(dtype).name}.*ml_dtypes\.bfloat16"):
            kernel.launch(np.zeros(1, dtype), threads=1)


def test_a_lambda():
    with pytest.raises(TypeError, match="not a lambda") as caught:
        sk.jit(lambda out: None)
    assert caught.value.line == caught.traceback[0].lineno + 1 or caught.value.line


def test_kernels_that_force_each_other():
    """A cycle is an error in a thread of its own, and never a wait for ever between two."""
    kernels = {}

    def make(name, needs):
        def kernel(out: F32, i: THREAD):
            out[i] = len(kernels[needs].ir)

        kernels[name] = sk.jit(kernel)

    make("a", "b")
    make("b", "a")
    with pytest.raises(sk.TraceError, match="while it is being traced"):
        kernels["a"].ir
    failed = []

    def trace(name):
        try:
            kernels[name].ir
        except sk.TraceError as error:
            failed.append(error)

    for _ in range(20):
        threads = [threading.Thread(target=trace, args=(name,), daemon=True) for name in kernels]
        for t in threads:
            t.start()
        for t in threads:
            t.join(10)
            assert not t.is_alive()
    assert len(failed) == 40
