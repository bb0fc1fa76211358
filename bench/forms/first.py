"""first.py PEER: from the decorator to the first result of matrix_add in this process, then of a second kernel. Milliseconds, as JSON.

bench/cpu.py runs it with empty caches (cold), and again with what that left there (warm).
"""

import json
import os
import sys
import time

begin = time.perf_counter()
import numpy as np  # noqa: E402

times = {"import numpy": time.perf_counter() - begin}
N = 1 << 16


def passed(name, since):
    times[name] = time.perf_counter() - since


def spork(kernels):
    begin = time.perf_counter()
    import spork as sk

    passed("import", begin)
    F32 = sk.DevicePointer[sk.dt.float32]

    def matrix_add(out: F32, A: F32, B: F32, index: sk.Uint[sk.ThreadPositionInGrid]):
        out[index] = A[index] + B[index]

    def second(out: F32, A: F32, B: F32, index: sk.Uint[sk.ThreadPositionInGrid]):
        s = sk.local(sk.dt.float32)
        for j in sk.range(4):
            s += A[index] * sk.cast(j, sk.dt.float32)
        out[index] = sk.select(s > B[index], s, sk.sqrt(sk.fabs(s)))

    def make(function):
        def decorate_and_run(out, a, b):
            kernel = sk.jit(function)
            kernel[N // 128, 128](out, a, b)
            return kernel

        return decorate_and_run

    kernels(make(matrix_add), make(second))


def numba(kernels):
    begin = time.perf_counter()
    import numba

    passed("import", begin)

    def matrix_add(out, a, b):
        for i in numba.prange(out.size):
            out[i] = a[i] + b[i]

    def second(out, a, b):
        for i in numba.prange(out.size):
            s = np.float32(0)
            for j in range(4):
                s += a[i] * np.float32(j)
            out[i] = s if s > b[i] else np.sqrt(abs(s))

    kernels(*(lambda out, a, b, f=f: numba.njit(parallel=True, cache=True)(f)(out, a, b) for f in (matrix_add, second)))


def taichi(kernels):
    begin = time.perf_counter()
    import taichi as ti

    ti.init(arch=ti.cpu, log_level=ti.ERROR, offline_cache=True)
    passed("import", begin)
    F = ti.types.ndarray(ti.f32, 1)

    def matrix_add(out: F, a: F, b: F):
        for i in range(out.shape[0]):
            out[i] = a[i] + b[i]

    def second(out: F, a: F, b: F):
        for i in range(out.shape[0]):
            s = 0.0
            for j in range(4):
                s += a[i] * j
            out[i] = s if s > b[i] else ti.sqrt(abs(s))

    kernels(*(lambda out, a, b, f=f: ti.kernel(f)(out, a, b) for f in (matrix_add, second)))


def drjit(kernels):
    begin = time.perf_counter()
    import drjit as dr
    from drjit.llvm import Float

    passed("import", begin)

    def run(result, out):
        dr.eval(result)
        out[:] = result.numpy()

    def second(out, a, b):
        a, b = Float(a), Float(b)
        s = a * 0 + a * 1 + a * 2 + a * 3
        run(dr.select(s > b, s, dr.sqrt(dr.abs(s))), out)

    kernels(lambda out, a, b: run(Float(a) + Float(b), out), second)


def warp(kernels):
    begin = time.perf_counter()
    import warp as wp

    wp.config.quiet = True
    wp.init()
    passed("import", begin)
    F = wp.array(dtype=wp.float32)

    def matrix_add(out: F, a: F, b: F):
        i = wp.tid()
        out[i] = a[i] + b[i]

    def second(out: F, a: F, b: F):
        i = wp.tid()
        s = float(0.0)
        for j in range(4):
            s += a[i] * float(j)
        out[i] = wp.where(s > b[i], s, wp.sqrt(wp.abs(s)))

    def run(function, *arrays):
        views = [wp.array(x, dtype=wp.float32, device="cpu", copy=False) for x in arrays]
        wp.launch(wp.kernel(function, module="unique"), dim=N, inputs=views, device="cpu")

    kernels(*(lambda out, a, b, f=f: run(f, out, a, b) for f in (matrix_add, second)))


def kernels(first, second):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(N, dtype=np.float32) for _ in range(2))
    out = np.zeros(N, np.float32)
    begin = time.perf_counter()
    kernel = first(out, a, b)
    passed("first", begin)
    assert (out == a + b).all()
    # Where the library says what became of the time: a mapping of step to seconds.
    for step, seconds in (getattr(kernel, "timings", None) or {}).items():
        times[f"first: {step}"] = seconds
    begin = time.perf_counter()
    second(out, a, b)
    passed("second", begin)
    s = a * 0 + a * 1 + a * 2 + a * 3
    assert np.allclose(out, np.where(s > b, s, np.sqrt(abs(s))), 1e-4, 1e-5)


globals()[sys.argv[1]](kernels)
sys.stdout.flush()
os.write(1, ("\n" + json.dumps({name: seconds * 1e3 for name, seconds in times.items()}) + "\n").encode())
os._exit(0)
