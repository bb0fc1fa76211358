"""Launches: forms, sizes, arguments."""

import array
import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import spork as sk
from conftest import blames


@sk.jit
def matrix_add(
    out: sk.DevicePointer[sk.dt.float32],
    A: sk.DevicePointer[sk.dt.float32],
    B: sk.DevicePointer[sk.dt.float32],
    index: sk.Uint[sk.ThreadPositionInGrid],
):
    out[index] = A[index] + B[index]


@sk.jit
def count_threads(out: sk.DevicePointer[sk.dt.uint32], i: sk.Uint3[sk.ThreadPositionInGrid], n: sk.Uint3[sk.ThreadsPerGrid]):
    out[(i.z * n.y + i.y) * n.x + i.x] = 1 + i.x


@sk.jit
def sizes(out: sk.DevicePointer[sk.dt.uint32], i: sk.Uint[sk.ThreadPositionInGrid], n: sk.Uint[sk.ThreadsPerThreadgroup]):
    out[i] = n


def test_matrix_add_in_place():
    rng = np.random.default_rng(1)
    A, B = (rng.standard_normal((64, 32)).astype(np.float32) for _ in range(2))
    C = np.zeros_like(A)
    assert matrix_add[(C.size // 128, 1, 1), (128, 1, 1)](C, A, B) is None
    assert np.array_equal(C, A + B)


@pytest.mark.parametrize("grid", [4, (4,), [4, 1], (4, 1, 1), np.int64(4), 4.0, np.array([4, 1])])
def test_grid_forms(grid):
    out = np.zeros(128, np.uint32)
    sizes[grid, 32](out)
    assert np.all(out == 32)


def test_launch_forms():
    out = np.zeros(100, np.uint32)
    sizes.launch(out, threads=100, threadgroup=32)
    assert list(out) == [32] * 96 + [4] * 4
    sizes.launch(out, grid=(3, 1, 1), threadgroup=(32, 1, 1))
    sizes.launch(out=out, grid=3, threadgroup=32)
    bound = sizes.bind(3, 32)
    bound(out)
    bound = sizes.bind(threads=(100,), threadgroup=32)
    assert (bound.grid, bound.threadgroup, bound.threads) == ((4, 1, 1), (32, 1, 1), (100, 1, 1))
    out[:] = 0
    bound(out=out)
    assert out[99] == 4
    bound = matrix_add[(8, 1, 1), (128, 1, 1)]
    assert isinstance(bound, sk.BoundKernel) and isinstance(matrix_add, sk.JittedKernel)
    assert (bound.grid, bound.threadgroup, bound.threads) == ((8, 1, 1), (128, 1, 1), None)
    assert bound.name == matrix_add.name == "matrix_add"
    assert bound.metal_source == matrix_add.metal_source
    assert bound.source_map == matrix_add.source_map
    assert all(isinstance(n, int) for n in bound.grid + bound.threadgroup)
    A = np.ones(1024, np.float32)
    C = np.zeros(1024, np.float32)
    bound(B=A, out=C, A=A)
    assert np.all(C == 2)


def test_a_million_threads_in_groups_of_256():
    out = np.zeros(1_000_000, np.uint32)
    sizes.launch(out, threads=1_000_000, threadgroup=256)
    assert np.all(out[:-64] == 256) and np.all(out[-64:] == 64)


def test_three_dimensions():
    out = np.zeros((3, 5, 7), np.uint32)
    count_threads.launch(out, threads=(7, 5, 3), threadgroup=(4, 2, 2))
    assert np.array_equal(out, np.broadcast_to(np.arange(1, 8, dtype=np.uint32), out.shape))


def test_zero_is_a_launch_of_nothing():
    out = np.zeros(4, np.uint32)
    sizes.launch(out, threads=0, threadgroup=32)
    sizes[(0, 1, 1), 32](out)
    assert not out.any()


@pytest.mark.parametrize(
    ("size", "kind"),
    [(-1, ValueError), (2.5, ValueError), (float("nan"), ValueError), (2**32, ValueError), (1e300, ValueError), ("8", TypeError),
     ((1, 2, 3, 4), ValueError), ((), ValueError), (None, TypeError), (1j, TypeError)],
)
def test_wrong_sizes(size, kind):
    out = np.zeros(4, np.uint32)
    with blames(kind):
        sizes[size, 32](out)  # blame
    assert not out.any()


def test_over_limit_threadgroup():
    out = np.zeros(4, np.uint32)
    with blames(ValueError, "1024"):
        sizes[1, 1025](out)  # blame
    with pytest.raises(ValueError):
        sizes[1, (32, 32, 2)](out)
    assert not out.any()


def test_without_geometry():
    out = np.zeros(4, np.uint32)
    with blames(TypeError, r"sizes\[grid, threadgroup\]"):
        sizes(out)  # blame
    with pytest.raises(TypeError):
        sizes[4](out)
    with pytest.raises(TypeError):
        sizes[1, 1, 1](out)
    with pytest.raises(TypeError, match="threadgroup"):
        sizes.launch(out, grid=1)
    with pytest.raises(TypeError):
        sizes.launch(out, threads=1, grid=1, threadgroup=1)
    with pytest.raises(TypeError):
        sizes.bind(1)


def test_argument_count():
    a = np.zeros(4, np.float32)
    with blames(TypeError, "takes 3 arguments, 2 were given"):
        matrix_add[1, 4](a, a)  # blame
    with pytest.raises(TypeError):
        matrix_add[1, 4](a, a, a, a)
    with pytest.raises(TypeError, match="no parameter 'nope'"):
        matrix_add[1, 4](a, a, nope=a)
    with pytest.raises(TypeError, match="twice"):
        matrix_add[1, 4](a, a, out=a)


@pytest.mark.parametrize(
    ("array", "kind", "match"),
    [
        (np.zeros(4), TypeError, "64-bit float"),
        (np.zeros(4, np.int32), TypeError, "not of int32"),
        (np.zeros(4, np.float16), TypeError, "not of float16"),
        (np.zeros(4, ">f4"), TypeError, "byte order"),
        (np.zeros((4, 4), np.float32).T[::2], ValueError, "contiguous"),
        (np.zeros(8, np.float32)[::2], ValueError, "contiguous"),
        (np.zeros(4, "c8"), TypeError, "Zf"),
        (np.zeros(4, "f4,f4"), TypeError, "float32"),
        (np.array(["a"]), TypeError, "float32"),
        (np.array([None]), TypeError, "float32"),
        ([1.0, 2.0], TypeError, "not a list"),
        (3.5, TypeError, "not a float"),
        (None, TypeError, "NoneType"),
        ("text", TypeError, "str"),
    ],
)
def test_wrong_arrays(array, kind, match):
    out = np.zeros(4, np.float32)
    with blames(kind, match):
        matrix_add[1, 4](out, array, out)  # blame
    with pytest.raises(kind):
        matrix_add[1, 4](array, out, out)


def test_read_only():
    a = np.ones(4, np.float32)
    a.flags.writeable = False
    out = np.zeros(4, np.float32)
    matrix_add[1, 4](out, a, a)
    assert np.all(out == 2)
    with blames(ValueError, "'out' is written by the kernel, but the array is read-only"):
        matrix_add[1, 4](a, out, out)  # blame
    assert np.all(a == 1)


def test_buffers_of_other_kinds():
    a = array.array("f", [1, 2, 3, 4])
    b = (ctypes.c_float * 4)(10, 20, 30, 40)
    out = bytearray(16)
    matrix_add[1, 4](memoryview(out).cast("f"), a, b)
    assert list(memoryview(out).cast("f")) == [11, 22, 33, 44]
    zero_d = np.array(5, np.float32)
    matrix_add[1, 1](zero_d, zero_d, zero_d)
    assert zero_d == 10


def test_overlapping_arguments():
    a = np.arange(8, dtype=np.float32)
    matrix_add[1, 8](a, a, a)
    assert np.array_equal(a, 2 * np.arange(8))


class OnlyDlpack:
    """An array that only speaks DLPack, of an old kind unless `versioned`."""

    def __init__(self, a, versioned=True, device=(1, 0)):
        self.a, self.versioned, self.device = a, versioned, device

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(versioned):
    a, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    references = sys.getrefcount(a)
    matrix_add[1, 4](OnlyDlpack(out, versioned), OnlyDlpack(a, versioned), a)
    assert np.array_equal(out, a + a)
    assert sys.getrefcount(a) == references
    with pytest.raises(ValueError, match="contiguous"):
        matrix_add[1, 4](out, OnlyDlpack(np.zeros((4, 4), np.float32)[:, 0], versioned), a)
    with pytest.raises(TypeError, match="int32"):
        matrix_add[1, 4](out, OnlyDlpack(a.astype(np.int32), versioned), a)
    with pytest.raises(TypeError, match="64-bit"):
        matrix_add[1, 4](out, OnlyDlpack(a.astype(np.float64), versioned), a)
    with pytest.raises(TypeError, match="DLPack device type 2"):
        matrix_add[1, 4](out, OnlyDlpack(a, versioned, (2, 0)), a)


def test_dlpack_read_only():
    a = np.zeros(4, np.float32)
    a.flags.writeable = False
    out = np.zeros(4, np.float32)
    try:
        a.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):
        pytest.skip("this NumPy exports no read-only arrays")
    matrix_add[1, 4](out, OnlyDlpack(a), a)
    with pytest.raises(ValueError, match="read-only"):
        matrix_add[1, 4](OnlyDlpack(a), out, out)


ALL = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "bool"]


@pytest.mark.parametrize("name", ALL)
def test_every_dtype_through_memory(name):
    dtype = sk.dtypes.from_numpy(np.dtype(name))

    @sk.jit
    def copy_(out: sk.DevicePointer[dtype], a: sk.DevicePointer[dtype], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = a[i]

    a = np.random.default_rng(3).integers(0, 256, 64 * np.dtype(name).itemsize, dtype=np.uint8).view(name)
    a = a.view("u1").astype(bool) if name == "bool" else a
    out = np.zeros_like(a)
    copy_[1, 64](out, a)
    assert np.array_equal(out.view("u1"), a.view("u1")) or np.array_equal(out, a, equal_nan=True)


def test_bfloat16():
    @sk.jit
    def twice(out: sk.DevicePointer[sk.dt.bfloat16], a: sk.DevicePointer[sk.dt.bfloat16], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = a[i] + a[i]

    a = np.arange(8).astype(ml_dtypes.bfloat16)
    out = np.zeros(8, ml_dtypes.bfloat16)
    twice[1, 8](out, a)
    assert np.array_equal(out.astype(np.float32), 2 * np.arange(8, dtype=np.float32))
    bits = np.zeros(8, np.uint16)
    twice[1, 8](bits, a.view(np.uint16))
    assert np.array_equal(bits, out.view(np.uint16))
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        twice[1, 8](a, out)
    with pytest.raises(ValueError, match="contiguous"):
        twice[1, 4](out, out[::2])


# ---- values -------------------------------------------------------------------------------------------------------------


def scalar_kernel(spec, dtype, parts=1):
    @sk.jit
    def kernel(out: sk.DevicePointer[dtype], x: spec):
        if parts == 1:
            out[0] = x
        else:
            for k, name in enumerate("xyzw"[:parts]):
                out[k] = getattr(x, name)

    return kernel


SPECS = {
    "Char": "int8", "Uchar": "uint8", "Short": "int16", "Ushort": "uint16", "Int": "int32", "Uint": "uint32", "Long": "int64",
    "Ulong": "uint64", "Half": "float16", "Float": "float32",
}  # fmt: skip


@pytest.mark.parametrize(("spec", "name"), SPECS.items())
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_scalar_and_vector_arguments(spec, name, parts):
    dtype = sk.dtypes.from_numpy(np.dtype(name))
    kernel = scalar_kernel(getattr(sk, spec + (str(parts) if parts > 1 else "")), dtype, parts)
    out = np.zeros(4, name)
    value = [3, 7, 11, 127][:parts]
    kernel[1, 1](out, value[0] if parts == 1 else tuple(value))
    assert list(out[:parts]) == value
    if parts > 1:
        kernel[1, 1](out, np.array(value[::-1], name))
        assert list(out[:parts]) == value[::-1]
        with pytest.raises(ValueError):
            kernel[1, 1](out, value + [1])
        with pytest.raises(TypeError):
            kernel[1, 1](out, 3)
    else:
        for number in (np.dtype(name).type(5), np.array(5, name), True):
            kernel[1, 1](out, number)
            assert out[0] == number
        with pytest.raises(TypeError):
            kernel[1, 1](out, (1,))
    if np.issubdtype(name, np.integer):
        info = np.iinfo(name)
        for extreme in (info.min, info.max):
            kernel[1, 1](out, extreme if parts == 1 else [extreme] * parts)
            assert out[0] == extreme
        for wrong in (info.min - 1, info.max + 1):
            with pytest.raises(ValueError, match="does not fit"):
                kernel[1, 1](out, wrong if parts == 1 else [wrong] * parts)
        with pytest.raises(TypeError):
            kernel[1, 1](out, 1.0 if parts == 1 else [1.0] * parts)


def test_float_arguments():
    kernel = scalar_kernel(sk.Float, sk.dt.float32)
    out = np.zeros(1, np.float32)
    for x in (0.1, -0.0, 1e-45, 3.4028234663852886e38, float("inf"), 7, np.float64(0.3), np.float16(0.5), 2**24 + 1):
        kernel[1, 1](out, x)
        assert out[0] == np.float32(x) and np.signbit(out[0]) == np.signbit(x)
    kernel[1, 1](out, float("nan"))
    assert np.isnan(out[0])
    kernel[1, 1](out, 2**60 + 2**36 + 1)  # rounded once, not by way of a double
    assert out[0] == np.float32(2**60 + 2**37)
    with blames(ValueError, "1e\\+40 does not fit float32"):
        kernel[1, 1](out, 1e40)  # blame
    half = scalar_kernel(sk.Half, sk.dt.float16)
    out = np.zeros(1, np.float16)
    half[1, 1](out, 65504)
    with pytest.raises(ValueError):
        half[1, 1](out, 65520)
    bf = scalar_kernel(sk.Bfloat, sk.dt.bfloat16)
    out = np.zeros(1, ml_dtypes.bfloat16)
    bf[1, 1](out, 1.00390625)
    assert float(out[0]) == 1.0


def test_bool_arguments():
    kernel = scalar_kernel(sk.Bool, sk.dt.bool_)
    out = np.zeros(1, bool)
    kernel[1, 1](out, True)
    assert out[0]
    kernel[1, 1](out, np.bool_(False))
    assert not out[0]
    with pytest.raises(TypeError):
        kernel[1, 1](out, 1)


def test_constants_keep_their_order():
    @sk.jit
    def kernel(a: sk.Uint, out: sk.DevicePointer[sk.dt.uint32], i: sk.Uint[sk.ThreadPositionInGrid], b: sk.dt.float32):
        out[i] = a + sk.cast(b, sk.dt.uint32)

    out = np.zeros(4, np.uint32)
    kernel[1, 4](5, out, 2.5)
    assert np.all(out == 7)
    with pytest.raises(TypeError):
        kernel[1, 4](out, 5, 2.5)


# ---- what a kernel object can do --------------------------------------------------------------------------------------------


def test_pickle_by_reference():
    assert pickle.loads(pickle.dumps(matrix_add)) is matrix_add
    assert copy.deepcopy(matrix_add) is matrix_add
    bound = pickle.loads(pickle.dumps(matrix_add[4, 32]))
    assert bound.kernel is matrix_add and bound.grid == (4, 1, 1) and bound.threadgroup == (32, 1, 1)
    bound = pickle.loads(pickle.dumps(matrix_add.bind(threads=100, threadgroup=32)))
    assert bound.threads == (100, 1, 1)
    for thing in (sk.dt.float32, sk.dt.float32x4, sk.dt.bool_, sk.dt.atomic_uint32, sk.ThreadPositionInGrid):
        assert pickle.loads(pickle.dumps(thing)) is thing
    spec = sk.DevicePointer[sk.dt.int8]
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_attributes_of_the_function():
    @sk.jit
    def documented(out: sk.DevicePointer[sk.dt.float32]):
        """What it is for."""
        out[0] = 1

    assert documented.__name__ == documented.name == "documented"
    assert documented.__doc__ == "What it is for."
    assert documented.__module__ == __name__
    assert documented.__wrapped__.__name__ == "documented"
    documented.extra = 1
    assert documented.extra == 1
    assert "documented" in repr(documented)


def test_traced_once_and_by_several_threads():
    traced = []

    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        traced.append(1)
        for _ in range(200):
            out[i] = out[i] + 1

    outs = [np.zeros(64, np.float32) for _ in range(8)]
    failures = []

    def work(out):
        try:
            for _ in range(10):
                kernel[1, 64](out)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sum(traced) == 1
    assert all(np.all(out == 2000) for out in outs)


def test_two_threads_trace_two_kernels():
    ready = threading.Barrier(2)

    def make(value):
        @sk.jit
        def kernel(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
            x = out[i]
            for _ in range(3):
                ready.wait()
                x = x + value
            out[i] = x

        return kernel

    outs = [np.zeros(4, np.float32) for _ in range(2)]
    threads = [threading.Thread(target=lambda k=k: make(k + 1)[1, 4](outs[k])) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.all(outs[0] == 3) and np.all(outs[1] == 6)


def test_globals_defined_later():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.uint32]):
        out[0] = defined_later

    global defined_later
    defined_later = 42
    out = np.zeros(1, np.uint32)
    kernel[1, 1](out)
    assert out[0] == 42


# ---- devices and buffers ---------------------------------------------------------------------------------------------------------


def test_devices():
    names = [str(device) for device in sk.devices()]
    assert "interp" in names
    assert sk.default_device() in sk.devices()
    assert all(isinstance(device, sk.Device) and device.description for device in sk.devices())


def run_with_device(name):
    code = "import spork as sk; print(sk.default_device())"
    environment = {**os.environ, "SPORK_DEVICE": name, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_device_from_the_environment():
    assert run_with_device("interp").stdout == "interp\n"
    wrong = run_with_device("abacus")
    assert wrong.returncode == 1 and "DeviceError" in wrong.stderr and "abacus" in wrong.stderr


def test_buffers():
    a = sk.zeros((4, 8), sk.dt.float32)
    b = sk.Buffer(32, sk.dt.float32)
    assert isinstance(a, sk.Buffer) and a.shape == (4, 8) and a.nbytes == 128 and a.dtype is sk.dt.float32
    view = np.asarray(a)
    assert view.shape == (4, 8) and view.dtype == np.float32 and not view.any()
    view[:] = 1
    np.asarray(b)[:] = 2
    matrix_add[1, 32](a, a, b)
    assert np.all(view == 3)
    del a
    assert np.all(view == 3)
    assert np.asarray(sk.empty(3, sk.dt.float32x3)).shape == (3, 4)
    assert np.asarray(sk.empty((), sk.dt.int8)).shape == ()
    with pytest.raises(ValueError):
        sk.zeros(-1, sk.dt.float32)
    with pytest.raises(ValueError):
        sk.zeros((1 << 30, 1 << 30), sk.dt.float32)
    with pytest.raises(TypeError):
        sk.zeros("4", sk.dt.float32)
    with pytest.raises(TypeError):
        sk.zeros(4, "float64")


def test_vector_elements():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float32x4], a: sk.DevicePointer[sk.dt.float32x2], i: sk.Uint[sk.ThreadPositionInGrid]):
        v = a[i]
        out[i] = sk.dt.float32x4(v.x, v.y, v.x + v.y, 1)

    a = np.arange(16, dtype=np.float32).reshape(8, 2)
    out = np.zeros((8, 4), np.float32)
    kernel[1, 8](out, a)
    assert np.array_equal(out, np.stack([a[:, 0], a[:, 1], a[:, 0] + a[:, 1], np.ones(8)], 1))
    kernel[1, 8](out.reshape(-1), a.reshape(-1))
    with pytest.raises(ValueError, match="last dimension"):
        kernel[1, 4](out.reshape(16, 2), a)


# ---- endings ------------------------------------------------------------------------------------------------------------------------


@sk.jit
def endless(out: sk.DevicePointer[sk.dt.uint32]):
    v = sk.local(sk.dt.uint32, 1)
    with sk.while_(v > 0):
        v.assign(v | 1)
    out[0] = v


def test_interrupt():
    code = """
import os, signal, threading, time
import numpy as np
import spork as sk
from test_launch import endless
timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
timer.start()
begin = time.monotonic()
try:
    endless[1, 1](np.zeros(1, np.uint32))
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 10)
endless.metal_source
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert done.stdout == "interrupted True\n", done.stderr


def test_fault_names_the_line():
    a = np.zeros(4, np.float32)
    out = np.zeros(4, np.float32)
    line = matrix_add.__wrapped__.__code__.co_firstlineno + 7
    with blames(sk.KernelFault, "'out'|'A'|'B'", line):
        matrix_add[1, 8](out, a, a)


def test_nothing_leaks():
    a = np.zeros(32, np.float32)
    matrix_add[1, 32](a, a, a)
    references = sys.getrefcount(a), sys.getrefcount(matrix_add), sys.getrefcount(None)
    for _ in range(10_000):
        matrix_add[1, 32](a, a, a)
    after = sys.getrefcount(a), sys.getrefcount(matrix_add), sys.getrefcount(None)
    assert after[:2] == references[:2] and abs(after[2] - references[2]) < 50
