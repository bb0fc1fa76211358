"""Taichi on the CPU, the outermost loop in parallel (over ranges: over the indices of an array it takes several times as long).

Its fast maths is one switch for all, so each workload has one form: fast where Spork's fast form is judged.
"""

import taichi as ti

from .workloads import CHUNK

F1, F2 = ti.types.ndarray(ti.f32, 1), ti.types.ndarray(ti.f32, 2)
I1, I2 = ti.types.ndarray(ti.i32, 1), ti.types.ndarray(ti.i32, 2)
B1, B2, U1 = ti.types.ndarray(ti.u8, 1), ti.types.ndarray(ti.u8, 2), ti.types.ndarray(ti.u32, 1)


def vector_add(out: F1, a: F1, b: F1):
    for i in range(out.shape[0]):
        out[i] = a[i] + b[i]


def saxpy(y: F1, x: F1, a: ti.f32):
    for i in range(y.shape[0]):
        y[i] = a * x[i] + y[i]


def sigmoid(out: F1, x: F1):
    for i in range(out.shape[0]):
        out[i] = 1 / (1 + ti.exp(-x[i]))


def gelu(out: F1, x: F1):
    for i in range(out.shape[0]):
        v = x[i]
        out[i] = 0.5 * v * (1 + ti.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


def mandelbrot(out: I2, step: ti.f32):
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            cx = column * step - 2
            cy = row * step - 1.5
            x = 0.0
            y = 0.0
            count = 0
            while x * x + y * y <= 4 and count < 256:
                t = x * x - y * y + cx
                y = 2 * x * y + cy
                x = t
                count += 1
            out[row, column] = count


def stencil(out: F2, a: F2):
    n = out.shape[0]
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            if 0 < x and x < n - 1 and 0 < y and y < n - 1:
                out[y, x] = 0.5 * a[y, x] + 0.125 * (a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x])
            else:
                out[y, x] = a[y, x]


def life(out: B2, a: B2):
    n = out.shape[0]
    for y in range(out.shape[0]):
        for x in range(out.shape[1]):
            if 0 < x and x < n - 1 and 0 < y and y < n - 1:
                count = (a[y - 1, x - 1] + a[y - 1, x] + a[y - 1, x + 1] + a[y, x - 1] + a[y, x + 1]
                         + a[y + 1, x - 1] + a[y + 1, x] + a[y + 1, x + 1])
                out[y, x] = ti.cast(count == 3 or (count == 2 and a[y, x] != 0), ti.u8)
            else:
                out[y, x] = ti.cast(0, ti.u8)


def transpose(out: F2, a: F2):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = a[j, i]


def matmul(c: F2, a: F2, b: F2):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            acc = 0.0
            for k in range(a.shape[1]):
                acc += a[i, k] * b[k, j]
            c[i, j] = acc


def softmax(out: F2, x: F2):
    for r in range(x.shape[0]):
        top = x[r, 0]
        for j in range(x.shape[1]):
            top = ti.max(top, x[r, j])
        total = 0.0
        for j in range(x.shape[1]):
            e = ti.exp(x[r, j] - top)
            out[r, j] = e
            total += e
        for j in range(x.shape[1]):
            out[r, j] = out[r, j] / total


def histogram(bins: U1, x: B1):
    for k in range(bins.shape[0]):
        bins[k] = ti.cast(0, ti.u32)
    for i in range(x.shape[0]):
        bins[ti.cast(x[i], ti.i32)] += ti.cast(1, ti.u32)


def nbody(ax: F1, ay: F1, az: F1, px: F1, py: F1, pz: F1, mass: F1):
    for i in range(ax.shape[0]):
        sx = 0.0
        sy = 0.0
        sz = 0.0
        for j in range(px.shape[0]):
            dx = px[j] - px[i]
            dy = py[j] - py[i]
            dz = pz[j] - pz[i]
            inverse = ti.rsqrt(dx * dx + dy * dy + dz * dz + 1e-3)
            s = mass[j] * inverse * inverse * inverse
            sx += dx * s
            sy += dy * s
            sz += dz * s
        ax[i] = sx
        ay[i] = sy
        az[i] = sz


def prefix_sum(out: I1, x: I1, sums: I1):
    for c in range(sums.shape[0]):
        total = 0
        for i in range(c * CHUNK, (c + 1) * CHUNK):
            total += x[i]
        sums[c] = total
    for _ in range(1):
        before = 0
        for c in range(sums.shape[0]):
            total = sums[c]
            sums[c] = before
            before += total
    for c in range(sums.shape[0]):
        total = sums[c]
        for i in range(c * CHUNK, (c + 1) * CHUNK):
            total += x[i]
            out[i] = total


FORMS = {
    "vector_add": lambda d: (vector_add, d.out, d.a, d.b),
    "saxpy": lambda d: (saxpy, d.y, d.x, float(d.a)),
    "sigmoid": lambda d: (sigmoid, d.out, d.x),
    "gelu": lambda d: (gelu, d.out, d.x),
    "mandelbrot": lambda d: (mandelbrot, d.out, float(d.step)),
    "stencil": lambda d: (stencil, d.out, d.a),
    "life": lambda d: (life, d.out, d.a),
    "transpose": lambda d: (transpose, d.out, d.a),
    "matmul_512": lambda d: (matmul, d.out, d.a, d.b),
    "matmul_1024": lambda d: (matmul, d.out, d.a, d.b),
    "softmax": lambda d: (softmax, d.out, d.x),
    "histogram": lambda d: (histogram, d.bins, d.x),
    "nbody": lambda d: (nbody, d.ax, d.ay, d.az, d.x, d.y, d.z, d.mass),
    "prefix_sum": lambda d: (prefix_sum, d.out, d.x, d.sums),
}


def start(fast, threads):
    ti.init(arch=ti.cpu, fast_math=fast, cpu_max_num_threads=threads, log_level=ti.ERROR)


def forms(work, data, mode, threads=2):
    start(work.fast, threads)
    function, *args = FORMS[work.name](data)
    kernel = ti.kernel(function)
    return {"": lambda: kernel(*args)}
