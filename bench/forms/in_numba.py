"""numba: the loops of the kernels under prange, numbers of 32 bits where f32 is meant.

Compiled code is kept in the folder that NUMBA_CACHE_DIR names, apart for each mode, since numba's key has no modes.
"""

import math
import os

import numba
import numpy as np
from numba import prange

from .workloads import CHUNK, f32

ONE, TWO, HALF, EIGHTH, FOUR = f32(1), f32(2), f32(0.5), f32(0.125), f32(4)
NEAR, CUBE, ROOT, EDGE = f32(1e-3), f32(0.044715), f32(0.7978845608), f32(1.5)


def vector_add(out, a, b):
    for i in prange(out.size):
        out[i] = a[i] + b[i]


def saxpy(y, x, a):
    for i in prange(y.size):
        y[i] = a * x[i] + y[i]


def sigmoid(out, x):
    for i in prange(out.size):
        out[i] = ONE / (ONE + math.exp(-x[i]))


def gelu(out, x):
    for i in prange(out.size):
        v = x[i]
        out[i] = HALF * v * (ONE + math.tanh(ROOT * (v + CUBE * v * v * v)))


def mandelbrot(out, step):
    n = out.shape[0]
    for row in prange(n):
        for column in range(n):
            cx = f32(column) * step - TWO
            cy = f32(row) * step - EDGE
            x = f32(0)
            y = f32(0)
            count = 0
            while x * x + y * y <= FOUR and count < 256:
                t = x * x - y * y + cx
                y = TWO * x * y + cy
                x = t
                count += 1
            out[row, column] = count


def stencil(out, a):
    n = out.shape[0]
    for y in prange(n):
        for x in range(n):
            if x > 0 and x < n - 1 and y > 0 and y < n - 1:
                out[y, x] = HALF * a[y, x] + EIGHTH * (a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x])
            else:
                out[y, x] = a[y, x]


def life(out, a):
    n = out.shape[0]
    for y in prange(n):
        for x in range(n):
            if x > 0 and x < n - 1 and y > 0 and y < n - 1:
                count = (a[y - 1, x - 1] + a[y - 1, x] + a[y - 1, x + 1] + a[y, x - 1] + a[y, x + 1]
                         + a[y + 1, x - 1] + a[y + 1, x] + a[y + 1, x + 1])
                out[y, x] = count == 3 or (count == 2 and a[y, x] != 0)
            else:
                out[y, x] = 0


def transpose(out, a):
    n = out.shape[0]
    for tile in prange((n // 32) * (n // 32)):
        i0, j0 = tile // (n // 32) * 32, tile % (n // 32) * 32
        for i in range(i0, i0 + 32):
            for j in range(j0, j0 + 32):
                out[i, j] = a[j, i]


def matmul(c, a, b):
    n = c.shape[0]
    for i in prange(n):
        for j in range(n):
            acc = f32(0)
            for k in range(n):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


def matmul_by_rows(c, a, b):
    """The loops turned round by hand, so that the inner one runs along rows."""
    n = c.shape[0]
    for i in prange(n):
        for j in range(n):
            c[i, j] = 0
        for k in range(n):
            x = a[i, k]
            for j in range(n):
                c[i, j] += x * b[k, j]


def softmax(out, x):
    for r in prange(out.shape[0]):
        top = x[r, 0]
        for j in range(x.shape[1]):
            top = max(top, x[r, j])
        total = f32(0)
        for j in range(x.shape[1]):
            e = math.exp(x[r, j] - top)
            out[r, j] = e
            total += e
        scale = ONE / total
        for j in range(x.shape[1]):
            out[r, j] *= scale


def histogram(bins, x, parts):
    total = np.zeros(256, np.uint32)
    for part in prange(parts):
        mine = np.zeros(256, np.uint32)
        for value in x[part * x.size // parts : (part + 1) * x.size // parts]:
            mine[value] += np.uint32(1)
        total += mine
    bins[:] = total


def nbody(ax, ay, az, px, py, pz, mass):
    for i in prange(ax.size):
        x, y, z = px[i], py[i], pz[i]
        sx, sy, sz = f32(0), f32(0), f32(0)
        for j in range(ax.size):
            dx, dy, dz = px[j] - x, py[j] - y, pz[j] - z
            inverse = ONE / math.sqrt(dx * dx + dy * dy + dz * dz + NEAR)
            s = mass[j] * inverse * inverse * inverse
            sx += dx * s
            sy += dy * s
            sz += dz * s
        ax[i], ay[i], az[i] = sx, sy, sz


def prefix_sum(out, x, sums):
    for c in prange(sums.size):
        total = np.int32(0)
        for i in range(c * CHUNK, (c + 1) * CHUNK):
            total += x[i]
        sums[c] = total
    before = np.int32(0)
    for c in range(sums.size):
        total = sums[c]
        sums[c] = before
        before += total
    for c in prange(sums.size):
        total = sums[c]
        for i in range(c * CHUNK, (c + 1) * CHUNK):
            total += x[i]
            out[i] = total


FORMS = {
    "vector_add": lambda d: {"": (vector_add, d.out, d.a, d.b)},
    "saxpy": lambda d: {"": (saxpy, d.y, d.x, d.a)},
    "sigmoid": lambda d: {"": (sigmoid, d.out, d.x)},
    "gelu": lambda d: {"": (gelu, d.out, d.x)},
    "mandelbrot": lambda d: {"": (mandelbrot, d.out, d.step)},
    "stencil": lambda d: {"": (stencil, d.out, d.a)},
    "life": lambda d: {"": (life, d.out, d.a)},
    "transpose": lambda d: {"": (transpose, d.out, d.a)},
    "matmul_512": lambda d: {"": (matmul, d.out, d.a, d.b), "by rows": (matmul_by_rows, d.out, d.a, d.b)},
    "matmul_1024": lambda d: {"": (matmul, d.out, d.a, d.b), "by rows": (matmul_by_rows, d.out, d.a, d.b)},
    "softmax": lambda d: {"": (softmax, d.out, d.x)},
    "histogram": lambda d: {"": (histogram, d.bins, d.x, numba.get_num_threads())},
    "nbody": lambda d: {"": (nbody, d.ax, d.ay, d.az, d.x, d.y, d.z, d.mass)},
    "prefix_sum": lambda d: {"": (prefix_sum, d.out, d.x, np.zeros_like(d.sums))},
}


def compiled(function, mode):
    numba.config.CACHE_DIR = os.path.join(os.environ["NUMBA_CACHE_DIR"], mode)
    return numba.njit(parallel=True, fastmath=mode == "fast", cache=True)(function)


def forms(work, data, mode):
    made = {}
    for name, (function, *args) in FORMS[work.name](data).items():
        made[name] = lambda call=compiled(function, mode), args=args: call(*args)
    return made
