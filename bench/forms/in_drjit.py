"""Dr.Jit's LLVM back end. It keeps its own arrays: results are fetched for the check, not in the time."""

import drjit as dr
from drjit.llvm import Float, Int, UInt, UInt8


class Form:
    """Traces the arrays that `make` returns, runs them and waits; `to` are the arrays that a check looks at."""

    def __init__(self, make, *to):
        self.make, self.to = make, to

    def __call__(self):
        self.result = self.make()
        dr.eval(self.result)
        dr.sync_thread()

    def fetch(self):
        results = self.result if isinstance(self.result, tuple) else (self.result,)
        for array, result in zip(self.to, results):
            array[...] = result.numpy().reshape(array.shape)


def arrays(*values):
    made = []
    for value in values:
        kind = {"float32": Float, "uint8": UInt8, "int32": Int}[value.dtype.name]
        made.append(kind(value.ravel()))
    dr.eval(*made)
    dr.sync_thread()
    return made


def vector_add(d):
    a, b = arrays(d.a, d.b)
    return Form(lambda: a + b, d.out)


def saxpy(d):
    x, ones = arrays(d.x, d.y * 0 + 1)
    state = {"y": ones}

    def step():
        state["y"] = dr.fma(x, float(d.a), state["y"])
        return state["y"]

    form = Form(step, d.y)
    return form


def sigmoid(d):
    (x,) = arrays(d.x)
    return Form(lambda: dr.rcp(1 + dr.exp(-x)), d.out)


def gelu(d):
    (x,) = arrays(d.x)
    return Form(lambda: 0.5 * x * (1 + dr.tanh(0.7978845608 * (x + 0.044715 * x * x * x))), d.out)


def mandelbrot(d):
    n = d.n

    def make():
        index = dr.arange(UInt, n * n)
        cx = Float(index % n) * float(d.step) - 2
        cy = Float(index // n) * float(d.step) - 1.5

        def body(x, y, count):
            return x * x - y * y + cx, 2 * x * y + cy, count + 1

        state = (dr.zeros(Float, n * n), dr.zeros(Float, n * n), dr.zeros(Int, n * n))
        return dr.while_loop(state, lambda x, y, count: (x * x + y * y <= 4) & (count < 256), body)[2]

    return Form(make, d.out)


def neighbours(d, a, n):
    index = dr.arange(UInt, n * n)
    x, y = index % n, index // n
    inside = (x > 0) & (x < n - 1) & (y > 0) & (y < n - 1)
    return index, inside, lambda step: dr.gather(type(a), a, index + UInt(step & 0xFFFFFFFF), inside)


def stencil(d):
    (a,) = arrays(d.a)

    def make():
        index, inside, at = neighbours(d, a, d.n)
        return dr.select(inside, 0.5 * a + 0.125 * (at(-1) + at(1) + at(-d.n) + at(d.n)), a)

    return Form(make, d.out)


def life(d):
    (a,) = arrays(d.a)
    n = d.n

    def make():
        index, inside, at = neighbours(d, a, n)
        count = sum((at(step) for step in (-n, -n + 1, -1, 1, n - 1, n, n + 1)), at(-n - 1))
        return dr.select(inside & ((count == 3) | ((count == 2) & (a != 0))), UInt8(1), UInt8(0))

    return Form(make, d.out)


def transpose(d):
    (a,) = arrays(d.a)

    def make():
        index = dr.arange(UInt, d.n * d.n)
        return dr.gather(Float, a, index % d.n * d.n + index // d.n)

    return Form(make, d.out)


def matmul(d):
    """A loop over k in each element, by gathers: Dr.Jit's threads share no memory."""
    a, b = arrays(d.a, d.b)
    n = d.n

    def make():
        index = dr.arange(UInt, n * n)
        left, right = index // n * n, index % n

        def body(k, acc):
            return k + 1, dr.fma(dr.gather(Float, a, left + k), dr.gather(Float, b, right + k * n), acc)

        return dr.while_loop((UInt(0), dr.zeros(Float, n * n)), lambda k, acc: k < n, body)[1]

    return Form(make, d.out)


def softmax(d):
    (x,) = arrays(d.x)
    columns = d.columns

    def make():
        row = dr.arange(UInt, d.rows * columns) // columns
        top = dr.block_reduce(dr.ReduceOp.Max, x, columns)
        e = dr.exp(x - dr.gather(Float, top, row))
        total = dr.block_reduce(dr.ReduceOp.Add, e, columns)
        return e * dr.gather(Float, dr.rcp(total), row)

    return Form(make, d.out)


def histogram(d):
    (x,) = arrays(d.x)

    def make():
        bins = dr.zeros(UInt, 256)
        dr.scatter_reduce(dr.ReduceOp.Add, bins, UInt(1), UInt(x))
        return bins

    return Form(make, d.bins)


def nbody(d):
    px, py, pz, mass = arrays(d.x, d.y, d.z, d.mass)

    def make():
        def body(j, sx, sy, sz):
            dx, dy, dz = (dr.gather(Float, v, j) - v for v in (px, py, pz))
            inverse = dr.rsqrt(dx * dx + dy * dy + dz * dz + 1e-3)
            s = dr.gather(Float, mass, j) * inverse * inverse * inverse
            return j + 1, sx + dx * s, sy + dy * s, sz + dz * s

        state = (UInt(0), *(dr.zeros(Float, d.n) for _ in range(3)))
        return dr.while_loop(state, lambda j, sx, sy, sz: j < d.n, body)[1:]

    return Form(make, d.ax, d.ay, d.az)


def prefix_sum(d):
    (x,) = arrays(d.x)
    return Form(lambda: dr.cumsum(x), d.out)


FORMS = {
    "vector_add": vector_add, "saxpy": saxpy, "sigmoid": sigmoid, "gelu": gelu, "mandelbrot": mandelbrot,
    "stencil": stencil, "life": life, "transpose": transpose, "matmul_512": matmul, "matmul_1024": matmul,
    "softmax": softmax, "histogram": histogram, "nbody": nbody, "prefix_sum": prefix_sum,
}


def forms(work, data, mode, threads=2):
    dr.set_thread_count(threads)
    if hasattr(dr.JitFlag, "FastMath"):
        dr.set_flag(dr.JitFlag.FastMath, work.fast)
    return {"": FORMS[work.name](data)}
