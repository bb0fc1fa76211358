"""NumPy: whole arrays at once, on one thread, but for the matrix product, which is OpenBLAS."""

import numpy as np

from .workloads import f32, life_numpy, mandelbrot_numpy, nbody_numpy, softmax_numpy, stencil_numpy


def saxpy(d):
    np.add(d.a * d.x, d.y, out=d.y)


def sigmoid(d):
    np.negative(d.x, out=d.out)
    np.exp(d.out, out=d.out)
    np.add(d.out, f32(1), out=d.out)
    np.reciprocal(d.out, out=d.out)


def gelu(d):
    v, out = d.x, d.out
    np.multiply(v, v, out=out)
    out *= f32(0.044715 * 0.7978845608)
    out += f32(0.7978845608)
    out *= v
    np.tanh(out, out=out)
    out += f32(1)
    out *= v
    out *= f32(0.5)


def mandelbrot(d):
    d.out[...] = mandelbrot_numpy(d.n, d.step)


def histogram(d):
    d.bins[...] = np.bincount(d.x, minlength=256)


def nbody(d):
    for first in range(0, d.n, 256):
        some = np.arange(first, min(d.n, first + 256))
        d.ax[some], d.ay[some], d.az[some] = nbody_numpy(d, some)


FORMS = {
    "vector_add": lambda d: np.add(d.a, d.b, out=d.out),
    "saxpy": saxpy,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "mandelbrot": mandelbrot,
    "stencil": lambda d: stencil_numpy(d.out, d.a),
    "life": lambda d: life_numpy(d.out, d.a),
    "transpose": lambda d: np.copyto(d.out, d.a.T),
    "matmul_512": lambda d: np.matmul(d.a, d.b, out=d.out),
    "matmul_1024": lambda d: np.matmul(d.a, d.b, out=d.out),
    "softmax": lambda d: softmax_numpy(d.out, d.x),
    "histogram": histogram,
    "nbody": nbody,
    "prefix_sum": lambda d: np.cumsum(d.x, out=d.out, dtype=np.int32),
}


def forms(work, data, mode):
    return {"": lambda: FORMS[work.name](data)}
