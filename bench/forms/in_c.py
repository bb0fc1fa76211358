"""bench/peers.c and bench/limits.c by ctypes: built by bench/cpu.py, found in the folder that SPORK_BENCH_C names."""

import ctypes
import os
from pathlib import Path

import numpy as np

from .workloads import CHUNK, aligned, f32


def library(name):
    return ctypes.CDLL(str(Path(os.environ["SPORK_BENCH_C"]) / f"{name}.so"))


def argument(value):
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, np.floating):
        return ctypes.c_float(value)
    return ctypes.c_double(value) if isinstance(value, float) else ctypes.c_long(value)


def bind(function, *values):
    function.restype = None
    arguments = [argument(value) for value in values]

    def run(_keep=values):
        function(*arguments)

    return run


FORMS = {
    "vector_add": lambda d: {"": ("vector_add", d.out, d.a, d.b, d.n)},
    "saxpy": lambda d: {"": ("saxpy", d.y, d.x, d.a, d.n)},
    "mandelbrot": lambda d: {"": ("mandelbrot", d.out, d.step, d.n)},
    "matmul_512": lambda d: {"": ("matmul", d.out, d.a, d.b, d.n)},
    "matmul_1024": lambda d: {"": ("matmul", d.out, d.a, d.b, d.n)},
    "softmax": lambda d: {"": ("softmax", d.out, d.x, d.rows, d.columns)},
    "histogram": lambda d: {"": ("histogram", d.bins, d.x, d.n), "four tables": ("histogram_four", d.bins, d.x, d.n)},
    "nbody": lambda d: {"": ("nbody", d.ax, d.ay, d.az, d.x, d.y, d.z, d.mass, d.n)},
    "stencil": lambda d: {"": ("stencil", d.out, d.a, d.n)},
    "life": lambda d: {"": ("life", d.out, d.a, d.n), "edges apart": ("life_by_hand", d.out, d.a, d.n)},
    "sigmoid": lambda d: {"": ("sigmoid", d.out, d.x, d.n)},
    "gelu": lambda d: {"": ("gelu", d.out, d.x, d.n)},
    "prefix_sum": lambda d: {"": ("prefix_sum", d.out, d.x, aligned(d.n // CHUNK, np.int32), d.n)},
    "transpose": lambda d: {"": ("transpose", d.out, d.a, d.n)},
}


def forms(work, data, mode):
    code = library("peers-fast" if mode == "fast" else "peers")
    return {name: bind(getattr(code, words[0]), *words[1:]) for name, words in FORMS[work.name](data).items()}


def limits(work, data):
    """What the machine can do with as many bytes, or operations, as the workload has."""
    code = library("limits")
    size = data.rows if hasattr(data, "rows") else data.n
    found = {}
    if work.moved:
        n = int(work.moved(size)) // 12 // 16 * 16
        arrays = [aligned(n, f32) for _ in range(3)]
        for array in arrays:
            array.fill(1)
        found["triad"] = bind(code.triad, *arrays, f32(0.5), n)
        found["triad, streaming"] = bind(code.triad_streaming, *arrays, f32(0.5), n)
    if work.flops:
        found["fma"] = bind(code.fma_peak, float(work.flops(size)))
    return found
