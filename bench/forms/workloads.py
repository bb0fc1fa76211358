"""The kernels that bench/cpu.py measures: their data, what NumPy says of the result, and the goals.

A form of a kernel (in_spork.py, in_c.py, ...) is a function of (data, mode) that gives a callable without arguments. The
callable reads and writes the arrays of `data`, which all forms share, so that they meet the same memory.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

f32 = np.float32
CHUNK = 16384  # elements of the prefix sum that one threadgroup, or one C loop, takes


class Missing(Exception):
    """Why a form is not there: a gap of the table, no failure."""


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    sizes: dict  # of "full", "quick", "tiny"
    data: callable  # (n, rng) -> its arrays and numbers
    check: callable  # (data) -> None, or what is wrong with the outputs
    goals: dict = field(default_factory=dict)  # name of a form to the least ratio
    fast: bool = False  # goals are those of fast mode; else of precise mode, and there is no other
    moved: callable = None  # (n) -> bytes to and from memory, where that is the limit
    flops: callable = None  # (n) -> operations, where fused multiply-adds are the limit


def sizes(full, quick, tiny):
    return {"full": full, "quick": quick, "tiny": tiny}


def aligned(shape, dtype):
    """Zeros that begin on a multiple of 64 bytes, so that no form is lucky or unlucky."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    raw = np.zeros(count * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def filled(values, dtype=f32):
    array = aligned(values.shape, dtype)
    array[...] = values
    return array


def normal(rng, *shape):
    return filled(rng.standard_normal(shape, dtype=f32))


def close(actual, expected, rtol, atol):
    """None, or the largest difference where it is too large."""
    difference = np.abs(actual.astype(np.float64) - expected)
    bad = ~(difference <= atol + rtol * np.abs(expected))
    return f"{bad.sum()} of {bad.size} values differ, by up to {difference[bad].max():.3g}" if bad.any() else None


def equal(actual, expected):
    bad = actual != expected
    return f"{bad.sum()} of {bad.size} values differ" if bad.any() else None


def start(data):
    """Before a check: nothing of the form before is left in the outputs."""
    for array in data.outputs:
        array[...] = 77
    if hasattr(data, "reset"):
        data.reset()


# ---- element by element -------------------------------------------------------------------------------------------


def vector_add_data(n, rng):
    d = SimpleNamespace(n=n, a=normal(rng, n), b=normal(rng, n), out=aligned(n, f32))
    d.outputs = [d.out]
    return d


def saxpy_data(n, rng):
    d = SimpleNamespace(n=n, a=f32(0.25), x=normal(rng, n), y=aligned(n, f32))
    d.outputs = [d.y]
    d.reset = lambda: d.y.fill(1)
    return d


def unary_data(n, rng):
    d = SimpleNamespace(n=n, x=filled(rng.standard_normal(n, dtype=f32) * 3), out=aligned(n, f32))
    d.outputs = [d.out]
    return d


def sigmoid_check(d):
    return close(d.out, 1 / (1 + np.exp(-d.x.astype(np.float64))), 2e-6, 1e-7)


def gelu_check(d):
    x = d.x.astype(np.float64)
    return close(d.out, 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))), 1e-5, 1e-6)


# ---- images -------------------------------------------------------------------------------------------------------


def mandelbrot_data(n, rng):
    d = SimpleNamespace(n=n, step=f32(3.0 / n), out=aligned((n, n), np.int32))
    d.outputs = [d.out]
    return d


def mandelbrot_numpy(n, step):
    c = (np.arange(n, dtype=f32) * step - f32(2)) + 1j * (np.arange(n, dtype=f32) * step - f32(1.5))[:, None]
    c = c.astype(np.complex64).ravel()
    count = np.zeros(n * n, np.int32)
    live, z = np.arange(n * n), np.zeros(n * n, np.complex64)
    for _ in range(256):
        keep = z.real * z.real + z.imag * z.imag <= 4
        live, z = live[keep], z[keep]
        z = z * z + c[live]
        count[live] += 1
    return count.reshape(n, n)


def mandelbrot_check(d):
    """Contraction moves points at the edge of the set: a few may differ."""
    bad = np.count_nonzero(d.out != mandelbrot_numpy(d.n, d.step))
    return f"{bad} of {d.out.size} points differ" if bad > 0.01 * d.out.size else None


def stencil_data(n, rng):
    d = SimpleNamespace(n=n, a=normal(rng, n, n), out=aligned((n, n), f32))
    d.outputs = [d.out]
    return d


def stencil_numpy(out, a):
    out[...] = a
    inside = out[1:-1, 1:-1]
    np.add(a[1:-1, :-2], a[1:-1, 2:], out=inside)
    inside += a[:-2, 1:-1]
    inside += a[2:, 1:-1]
    inside *= f32(0.125)
    inside += f32(0.5) * a[1:-1, 1:-1]


def stencil_check(d):
    expected = np.empty_like(d.a)
    stencil_numpy(expected, d.a)
    return close(d.out, expected, 1e-5, 1e-6)


def life_data(n, rng):
    d = SimpleNamespace(n=n, a=filled(rng.random((n, n)) < 0.35, np.uint8), out=aligned((n, n), np.uint8))
    d.outputs = [d.out]
    return d


def life_numpy(out, a):
    rows = a[:-2] + a[1:-1] + a[2:]
    count = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] - a[1:-1, 1:-1]
    out[...] = 0
    out[1:-1, 1:-1] = (count == 3) | ((count == 2) & (a[1:-1, 1:-1] != 0))


def life_check(d):
    expected = np.empty_like(d.a)
    life_numpy(expected, d.a)
    return equal(d.out, expected)


def transpose_check(d):
    return equal(d.out, d.a.T)


# ---- the rest -----------------------------------------------------------------------------------------------------


def matmul_data(n, rng):
    d = SimpleNamespace(n=n, a=normal(rng, n, n), b=normal(rng, n, n), out=aligned((n, n), f32))
    d.outputs = [d.out]
    return d


def matmul_check(d):
    return close(d.out, d.a.astype(np.float64) @ d.b.astype(np.float64), 1e-4, 2e-3)


def softmax_data(n, rng):
    d = SimpleNamespace(rows=n, columns=1024, x=normal(rng, n, 1024), out=aligned((n, 1024), f32))
    d.outputs = [d.out]
    return d


def softmax_numpy(out, x):
    np.subtract(x, x.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(1, keepdims=True)


def softmax_check(d):
    expected = np.empty(d.x.shape, np.float64)
    softmax_numpy(expected, d.x.astype(np.float64))
    return close(d.out, expected, 1e-5, 1e-8)


def histogram_data(n, rng):
    d = SimpleNamespace(n=n, x=filled(rng.integers(0, 256, n, dtype=np.uint8), np.uint8), bins=aligned(256, np.uint32))
    d.outputs = [d.bins]
    return d


def histogram_check(d):
    return equal(d.bins, np.bincount(d.x, minlength=256))


def nbody_data(n, rng):
    position = lambda: normal(rng, n)  # noqa: E731
    d = SimpleNamespace(n=n, x=position(), y=position(), z=position(), mass=filled(rng.random(n, dtype=f32) + f32(0.5)))
    d.ax, d.ay, d.az = (aligned(n, f32) for _ in range(3))
    d.outputs = [d.ax, d.ay, d.az]
    return d


def nbody_numpy(d, of, dtype=f32):
    """Accelerations of the bodies `of`."""
    x, y, z, mass = (v.astype(dtype, copy=False) for v in (d.x, d.y, d.z, d.mass))
    dx, dy, dz = (v[None, :] - v[of][:, None] for v in (x, y, z))
    s = mass / np.sqrt(dx * dx + dy * dy + dz * dz + dtype(1e-3)) ** 3
    return (dx * s).sum(1), (dy * s).sum(1), (dz * s).sum(1)


def nbody_check(d):
    some = np.arange(0, d.n, max(1, d.n // 128))
    for actual, expected in zip(d.outputs, nbody_numpy(d, some, np.float64)):
        wrong = close(actual[some], expected, 1e-3, 1e-4 * np.abs(expected).max())
        if wrong:
            return wrong
    return None


def prefix_data(n, rng):
    d = SimpleNamespace(n=n, x=filled(rng.integers(-100, 100, n, dtype=np.int32), np.int32), out=aligned(n, np.int32))
    d.sums = aligned(n // CHUNK, np.int32)
    d.outputs = [d.out]
    return d


def prefix_check(d):
    return equal(d.out, np.cumsum(d.x, dtype=np.int32))


MEMORY = {"c": 0.95, "numba": 1.0}
MATHS = {"c": 1.2, "numba": 5}
PRODUCT = {"c": 1.8, "numpy": 0.6, "numba": 20}
LINE = sizes(1 << 24, 1 << 20, 1 << 15)
IMAGE = sizes(4096, 1024, 128)

WORKLOADS = [
    Workload("vector_add", "vector add", LINE, vector_add_data, lambda d: equal(d.out, d.a + d.b), MEMORY, moved=lambda n: 12 * n),
    Workload("saxpy", "saxpy", LINE, saxpy_data, lambda d: close(d.y, d.a * d.x + 1, 1e-6, 1e-6), MEMORY, moved=lambda n: 12 * n),
    Workload("stencil", "5-point stencil", IMAGE, stencil_data, stencil_check, MEMORY, moved=lambda n: 8 * n * n),
    Workload("transpose", "transpose", IMAGE, stencil_data, transpose_check, moved=lambda n: 8 * n * n),
    Workload("prefix_sum", "prefix sum, i32", LINE, prefix_data, prefix_check, moved=lambda n: 12 * n),
    Workload("histogram", "histogram, 256 bins, u8", LINE, histogram_data, histogram_check, {"c": 0.8, "numba": 1.0}),
    Workload("life", "Game of Life step, u8", IMAGE, life_data, life_check, {"c": 15, "numba": 20}),
    Workload("mandelbrot", "mandelbrot, 256 iterations", sizes(1024, 256, 32), mandelbrot_data, mandelbrot_check,
             {"c": 10, "numba": 10}, fast=True),
    Workload("matmul_512", "matmul 512", sizes(512, 256, 64), matmul_data, matmul_check, PRODUCT, fast=True,
             flops=lambda n: 2 * n**3),
    Workload("matmul_1024", "matmul 1024", sizes(1024, 512, 128), matmul_data, matmul_check, PRODUCT, fast=True,
             flops=lambda n: 2 * n**3),
    Workload("softmax", "row softmax, rows of 1024", sizes(8192, 1024, 32), softmax_data, softmax_check, MATHS, fast=True,
             moved=lambda n: 8 * 1024 * n),
    Workload("sigmoid", "sigmoid", LINE, unary_data, sigmoid_check, MATHS, fast=True, moved=lambda n: 8 * n),
    Workload("gelu", "gelu", LINE, unary_data, gelu_check, MATHS, fast=True, moved=lambda n: 8 * n),
    Workload("nbody", "n-body, all pairs", sizes(8192, 2048, 256), nbody_data, nbody_check, {"c": 1.8, "numba": 5}, fast=True,
             flops=lambda n: 19 * n * n),
]
NAMED = {work.name: work for work in WORKLOADS}
