"""Warp on its CPU device, which runs the threads of a launch one after the other on one core."""

import numpy as np
import warp as wp

from .workloads import Missing

F1, F2 = wp.array(dtype=wp.float32), wp.array2d(dtype=wp.float32)
I1, I2 = wp.array(dtype=wp.int32), wp.array2d(dtype=wp.int32)
B1, B2, U1 = wp.array(dtype=wp.uint8), wp.array2d(dtype=wp.uint8), wp.array(dtype=wp.uint32)


def vector_add(out: F1, a: F1, b: F1):
    i = wp.tid()
    out[i] = a[i] + b[i]


def saxpy(y: F1, x: F1, a: wp.float32):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def sigmoid(out: F1, x: F1):
    i = wp.tid()
    out[i] = 1.0 / (1.0 + wp.exp(-x[i]))


def gelu(out: F1, x: F1):
    i = wp.tid()
    v = x[i]
    out[i] = 0.5 * v * (1.0 + wp.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def mandelbrot(out: I2, step: wp.float32):
    row, column = wp.tid()
    cx = float(column) * step - 2.0
    cy = float(row) * step - 1.5
    x = float(0.0)
    y = float(0.0)
    count = int(0)
    while x * x + y * y <= 4.0 and count < 256:
        t = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = t
        count += 1
    out[row, column] = count


def stencil(out: F2, a: F2):
    y, x = wp.tid()
    n = out.shape[0]
    if x > 0 and x < n - 1 and y > 0 and y < n - 1:
        out[y, x] = 0.5 * a[y, x] + 0.125 * (a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x])
    else:
        out[y, x] = a[y, x]


def life(out: B2, a: B2):
    y, x = wp.tid()
    n = out.shape[0]
    if x > 0 and x < n - 1 and y > 0 and y < n - 1:
        count = int(a[y - 1, x - 1] + a[y - 1, x] + a[y - 1, x + 1] + a[y, x - 1] + a[y, x + 1]
                    + a[y + 1, x - 1] + a[y + 1, x] + a[y + 1, x + 1])
        alive = int(0)
        if count == 3 or (count == 2 and int(a[y, x]) != 0):
            alive = 1
        out[y, x] = wp.uint8(alive)
    else:
        out[y, x] = wp.uint8(0)


def transpose(out: F2, a: F2):
    i, j = wp.tid()
    out[i, j] = a[j, i]


def matmul(c: F2, a: F2, b: F2):
    i, j = wp.tid()
    acc = float(0.0)
    for k in range(a.shape[1]):
        acc += a[i, k] * b[k, j]
    c[i, j] = acc


def softmax(out: F2, x: F2):
    r = wp.tid()
    top = float(x[r, 0])
    for j in range(x.shape[1]):
        top = wp.max(top, x[r, j])
    total = float(0.0)
    for j in range(x.shape[1]):
        e = wp.exp(x[r, j] - top)
        out[r, j] = e
        total += e
    for j in range(x.shape[1]):
        out[r, j] = out[r, j] / total


def histogram(bins: U1, x: B1):
    i = wp.tid()
    wp.atomic_add(bins, int(x[i]), wp.uint32(1))


def nbody(ax: F1, ay: F1, az: F1, px: F1, py: F1, pz: F1, mass: F1):
    i = wp.tid()
    x = px[i]
    y = py[i]
    z = pz[i]
    sx = float(0.0)
    sy = float(0.0)
    sz = float(0.0)
    for j in range(px.shape[0]):
        dx = px[j] - x
        dy = py[j] - y
        dz = pz[j] - z
        inverse = 1.0 / wp.sqrt(dx * dx + dy * dy + dz * dz + 1.0e-3)
        s = mass[j] * inverse * inverse * inverse
        sx += dx * s
        sy += dy * s
        sz += dz * s
    ax[i] = sx
    ay[i] = sy
    az[i] = sz


FORMS = {
    "vector_add": lambda d: (vector_add, d.n, d.out, d.a, d.b),
    "saxpy": lambda d: (saxpy, d.n, d.y, d.x, float(d.a)),
    "sigmoid": lambda d: (sigmoid, d.n, d.out, d.x),
    "gelu": lambda d: (gelu, d.n, d.out, d.x),
    "mandelbrot": lambda d: (mandelbrot, (d.n, d.n), d.out, float(d.step)),
    "stencil": lambda d: (stencil, (d.n, d.n), d.out, d.a),
    "life": lambda d: (life, (d.n, d.n), d.out, d.a),
    "transpose": lambda d: (transpose, (d.n, d.n), d.out, d.a),
    "matmul_512": lambda d: (matmul, (d.n, d.n), d.out, d.a, d.b),
    "matmul_1024": lambda d: (matmul, (d.n, d.n), d.out, d.a, d.b),
    "softmax": lambda d: (softmax, d.rows, d.out, d.x),
    "histogram": lambda d: (histogram, d.n, d.bins, d.x),
    "nbody": lambda d: (nbody, d.n, d.ax, d.ay, d.az, d.x, d.y, d.z, d.mass),
}


def start(fast):
    wp.config.quiet = True
    wp.init()
    wp.set_module_options({"fast_math": fast, "enable_backward": False, "optimization_level": 3})


def view(value):
    """The array itself: Warp reads it where it is."""
    if not isinstance(value, np.ndarray):
        return value
    return wp.array(value, dtype=wp.dtype_from_numpy(value.dtype), device="cpu", copy=False)


def forms(work, data, mode):
    if work.name not in FORMS:
        raise Missing("written for kernels of one launch whose threads are apart: a prefix sum is none")
    start(work.fast)
    function, dim, *args = FORMS[work.name](data)
    command = wp.launch(wp.kernel(function), dim=dim, inputs=[view(x) for x in args], device="cpu", record_cmd=True)

    def run():
        if work.name == "histogram":
            data.bins.fill(0)
        command.launch()

    return {"": run}
