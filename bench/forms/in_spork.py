"""The kernels in Spork, as a user would write them."""

import numpy as np

import spork as sk

from .workloads import CHUNK

f32, i32, u8, u32 = sk.dt.float32, sk.dt.int32, sk.dt.uint8, sk.dt.uint32
F32, I32, U8 = sk.DevicePointer[f32], sk.DevicePointer[i32], sk.DevicePointer[u8]
THREAD = sk.Uint[sk.ThreadPositionInGrid]
THREAD2 = sk.Uint2[sk.ThreadPositionInGrid]
LOCAL = sk.Uint[sk.ThreadPositionInThreadgroup]
LOCAL2 = sk.Uint2[sk.ThreadPositionInThreadgroup]
GROUP = sk.Uint[sk.ThreadgroupPositionInGrid]
GROUP2 = sk.Uint2[sk.ThreadgroupPositionInGrid]
LANE = sk.Uint[sk.ThreadIndexInSimdgroup]
SIMDGROUP = sk.Uint[sk.SimdgroupIndexInThreadgroup]


# ---- element by element -------------------------------------------------------------------------------------------


def vector_add(out: F32, a: F32, b: F32, i: THREAD):
    out[i] = a[i] + b[i]


def saxpy(y: F32, x: F32, a: sk.Float, i: THREAD):
    y[i] = a * x[i] + y[i]


def sigmoid(out: F32, x: F32, i: THREAD):
    out[i] = 1 / (1 + sk.exp(-x[i]))


def gelu(out: F32, x: F32, i: THREAD):
    v = x[i]
    out[i] = 0.5 * v * (1 + sk.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


# ---- images -------------------------------------------------------------------------------------------------------


def mandelbrot(out: I32, n: sk.Uint, step: sk.Float, at: THREAD2):
    cx = sk.cast(at.x, f32) * step - 2
    cy = sk.cast(at.y, f32) * step - 1.5
    x = sk.local(f32)
    y = sk.local(f32)
    count = sk.local(i32)
    with sk.while_((x * x + y * y <= 4) & (count < 256)):
        t = x * x - y * y + cx
        y.assign(2 * x * y + cy)
        x.assign(t)
        count += 1
    out[at.y * n + at.x] = count


def stencil(out: F32, a: F32, n: sk.Uint, at: THREAD2):
    x, y = at.x, at.y
    i = y * n + x
    with sk.if_((x > 0) & (x < n - 1) & (y > 0) & (y < n - 1)) as inside:
        out[i] = 0.5 * a[i] + 0.125 * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n])
    with inside.else_():
        out[i] = a[i]


def life(out: U8, a: U8, n: sk.Uint, at: THREAD2):
    x, y = at.x, at.y
    i = y * n + x
    with sk.if_((x > 0) & (x < n - 1) & (y > 0) & (y < n - 1)) as inside:
        above, below = i - n, i + n
        count = a[above - 1] + a[above] + a[above + 1] + a[i - 1] + a[i + 1] + a[below - 1] + a[below] + a[below + 1]
        out[i] = (count == 3) | ((count == 2) & (a[i] != 0))
    with inside.else_():
        out[i] = 0


def transpose(out: F32, a: F32, n: sk.Uint, g: GROUP2, t: LOCAL2):
    """Threadgroups of 32 x 8 move tiles of 32 x 32, whose rows are one longer than needed for the banks of a GPU."""
    tile = sk.threadgroup(f32, (32, 33))
    for j in range(0, 32, 8):
        tile[t.y + j, t.x] = a[(g.y * 32 + t.y + j) * n + g.x * 32 + t.x]
    sk.threadgroup_barrier()
    for j in range(0, 32, 8):
        out[(g.x * 32 + t.y + j) * n + g.y * 32 + t.x] = tile[t.x, t.y + j]


# ---- matrix products ----------------------------------------------------------------------------------------------


def tiled(T):
    """T x T threads, each with one element of the result."""

    def matmul(c: F32, a: F32, b: F32, n: sk.Uint, at: THREAD2, t: LOCAL2):
        left = sk.threadgroup(f32, (T, T))
        right = sk.threadgroup(f32, (T, T))
        acc = sk.local(f32)
        for k in sk.range(0, n, T):
            left[t.y, t.x] = a[at.y * n + k + t.x]
            right[t.y, t.x] = b[(k + t.y) * n + at.x]
            sk.threadgroup_barrier()
            for j in sk.range(T):
                acc += left[t.y, j] * right[j, t.x]
            sk.threadgroup_barrier()
        c[at.y * n + at.x] = acc

    return matmul


def blocked(X, Y, ROWS, COLUMNS):
    """X x Y threads, each with ROWS x COLUMNS elements of the result, X or Y apart, in locals."""
    HEIGHT, WIDTH, DEPTH = Y * ROWS, X * COLUMNS, 16

    def matmul(c: F32, a: F32, b: F32, n: sk.Uint, g: GROUP2, t: LOCAL2, index: sk.Uint[sk.ThreadIndexInThreadgroup]):
        left = sk.threadgroup(f32, (HEIGHT, DEPTH))
        right = sk.threadgroup(f32, (DEPTH, WIDTH))
        row, column = g.y * HEIGHT, g.x * WIDTH
        acc = [[sk.local(f32) for _ in range(COLUMNS)] for _ in range(ROWS)]
        for k in sk.range(0, n, DEPTH):
            for j in range(0, HEIGHT * DEPTH, X * Y):
                at = index + j
                left[at // DEPTH, at % DEPTH] = a[(row + at // DEPTH) * n + k + at % DEPTH]
            for j in range(0, DEPTH * WIDTH, X * Y):
                at = index + j
                right[at // WIDTH, at % WIDTH] = b[(k + at // WIDTH) * n + column + at % WIDTH]
            sk.threadgroup_barrier()
            for j in sk.range(DEPTH):
                ours = [left[t.y + Y * y, j] for y in range(ROWS)]
                theirs = [right[j, t.x + X * x] for x in range(COLUMNS)]
                for y in range(ROWS):
                    for x in range(COLUMNS):
                        acc[y][x] += ours[y] * theirs[x]
            sk.threadgroup_barrier()
        for y in range(ROWS):
            for x in range(COLUMNS):
                c[(row + t.y + Y * y) * n + column + t.x + X * x] = acc[y][x]

    return matmul


# ---- rows, groups, all pairs --------------------------------------------------------------------------------------


def softmax(out: F32, x: F32, columns: sk.Uint, g: GROUP, lane: LANE, simdgroup: SIMDGROUP):
    """A simdgroup for each row, eight of them in a threadgroup."""
    row = (g * 8 + simdgroup) * columns
    most = sk.local(f32, -float("inf"))
    for j in sk.range(lane, columns, 32):
        most.assign(sk.max(most, x[row + j]))
    top = sk.simd_max(most)
    some = sk.local(f32)
    for j in sk.range(lane, columns, 32):
        e = sk.exp(x[row + j] - top)
        out[row + j] = e
        some += e
    scale = 1 / sk.simd_sum(some)
    for j in sk.range(lane, columns, 32):
        out[row + j] = out[row + j] * scale


EACH = 65536  # elements of the histogram that one threadgroup counts


def histogram(bins: sk.DevicePointer[sk.dt.atomic_uint32], x: U8, n: sk.Uint, g: GROUP, t: LOCAL):
    counts = sk.threadgroup(u32, 256)
    for j in sk.range(g * EACH + t, sk.min(n, (g + 1) * EACH), 256):
        sk.atomic_fetch_add(counts, x[j], 1)
    sk.threadgroup_barrier()
    sk.atomic_fetch_add(bins, t, counts[t])


def nbody(ax: F32, ay: F32, az: F32, px: F32, py: F32, pz: F32, mass: F32, n: sk.Uint, i: THREAD):
    x, y, z = px[i], py[i], pz[i]
    sx, sy, sz = sk.local(f32), sk.local(f32), sk.local(f32)
    for j in sk.range(n):
        dx, dy, dz = px[j] - x, py[j] - y, pz[j] - z
        inverse = sk.rsqrt(dx * dx + dy * dy + dz * dz + 1e-3)
        s = mass[j] * inverse * inverse * inverse
        sx += dx * s
        sy += dy * s
        sz += dz * s
    ax[i] = sx
    ay[i] = sy
    az[i] = sz


def group_scan(value, totals, lane, simdgroup):
    """Sums of the threadgroup up to and with each thread, and of all. `totals` has an element for each simdgroup."""
    upto = sk.simd_prefix_inclusive_sum(value)
    with sk.if_(lane == 31):
        totals[simdgroup] = upto
    sk.threadgroup_barrier()
    each = totals[lane]
    before = sk.simd_broadcast(sk.simd_prefix_exclusive_sum(each), simdgroup)
    total = sk.simd_sum(each)
    sk.threadgroup_barrier()
    return before + upto, total


def sum_chunks(sums: I32, x: I32, g: GROUP, t: LOCAL, lane: LANE, simdgroup: SIMDGROUP):
    s = sk.local(i32)
    for j in sk.range(t, CHUNK, 256):
        s += x[g * CHUNK + j]
    parts = sk.threadgroup(i32, 8)
    part = sk.simd_sum(s)
    with sk.if_(lane == 0):
        parts[simdgroup] = part
    sk.threadgroup_barrier()
    with sk.if_(t == 0):
        sums[g] = sum((parts[k] for k in range(1, 8)), parts[0])


def scan_sums(sums: I32, n: sk.Uint, t: LOCAL, lane: LANE, simdgroup: SIMDGROUP):
    """One threadgroup of 1024: what lies before each chunk."""
    totals = sk.threadgroup(i32, 32)
    before = sk.local(i32)
    for j in sk.range(0, n, 1024):
        mine = sk.load(sums, j + t, where=j + t < n, other=0)
        upto, total = group_scan(mine, totals, lane, simdgroup)
        with sk.if_(j + t < n):
            sums[j + t] = before + upto - mine
        before += total


def scan_chunks(out: I32, x: I32, sums: I32, g: GROUP, t: LOCAL, lane: LANE, simdgroup: SIMDGROUP):
    totals = sk.threadgroup(i32, 32)
    before = sk.local(i32, sums[g])
    for j in sk.range(0, CHUNK, 256):
        i = g * CHUNK + j + t
        upto, total = group_scan(x[i], totals, lane, simdgroup)
        out[i] = before + upto
        before += total


# ---- how they are launched ----------------------------------------------------------------------------------------


class Binder:
    """Kernels compiled for one mode; "off" is precise or fast, as `base` says, without bounds checks."""

    def __init__(self, mode, base):
        self.math = base if mode == "off" else mode
        self.options = {"bounds": "off"} if mode == "off" else {}

    def __call__(self, function, *args, **geometry):
        launch = sk.jit(function, math=self.math).bind(**geometry, **self.options)
        return lambda: launch(*args)


def matmul_forms(d, bind):
    forms = {}
    for T in (16, 32):
        forms[f"{T}x{T} tile"] = bind(tiled(T), d.out, d.a, d.b, d.n, grid=(d.n // T, d.n // T), threadgroup=(T, T))
    for X, Y, ROWS, COLUMNS in ((16, 16, 4, 4), (32, 16, 4, 2)):
        if d.n % (X * COLUMNS) == 0 and d.n % (Y * ROWS) == 0:
            forms[f"{X}x{Y} threads, {ROWS}x{COLUMNS} each"] = bind(
                blocked(X, Y, ROWS, COLUMNS), d.out, d.a, d.b, d.n,
                grid=(d.n // (X * COLUMNS), d.n // (Y * ROWS)), threadgroup=(X, Y),
            )
    return forms


def histogram_form(d, bind):
    count = bind(histogram, d.bins, d.x, d.n, grid=-(-d.n // EACH), threadgroup=256)

    def run():
        d.bins.fill(0)
        count()

    return run


def prefix_form(d, bind):
    chunks = d.n // CHUNK
    steps = (
        bind(sum_chunks, d.sums, d.x, grid=chunks, threadgroup=256),
        bind(scan_sums, d.sums, chunks, grid=1, threadgroup=1024),
        bind(scan_chunks, d.out, d.x, d.sums, grid=chunks, threadgroup=256),
    )

    def run():
        for step in steps:
            step()

    return run


IMAGE = {"threadgroup": (32, 8)}
FORMS = {
    "vector_add": lambda d, bind: bind(vector_add, d.out, d.a, d.b, threads=d.n, threadgroup=256),
    "saxpy": lambda d, bind: bind(saxpy, d.y, d.x, d.a, threads=d.n, threadgroup=256),
    "sigmoid": lambda d, bind: bind(sigmoid, d.out, d.x, threads=d.n, threadgroup=256),
    "gelu": lambda d, bind: bind(gelu, d.out, d.x, threads=d.n, threadgroup=256),
    "mandelbrot": lambda d, bind: bind(mandelbrot, d.out, d.n, d.step, threads=(d.n, d.n), **IMAGE),
    "stencil": lambda d, bind: bind(stencil, d.out, d.a, d.n, threads=(d.n, d.n), **IMAGE),
    "life": lambda d, bind: bind(life, d.out, d.a, d.n, threads=(d.n, d.n), **IMAGE),
    "transpose": lambda d, bind: bind(transpose, d.out, d.a, d.n, grid=(d.n // 32, d.n // 32), **IMAGE),
    "matmul_512": matmul_forms,
    "matmul_1024": matmul_forms,
    "softmax": lambda d, bind: bind(softmax, d.out, d.x, d.columns, grid=d.rows // 8, threadgroup=256),
    "histogram": histogram_form,
    "nbody": lambda d, bind: bind(nbody, d.ax, d.ay, d.az, d.x, d.y, d.z, d.mass, d.n, threads=d.n, threadgroup=256),
    "prefix_sum": prefix_form,
}


def can_leave_bounds_out():
    """Whether launches take bounds="off"."""

    def kernel(out: F32, i: THREAD):
        out[i] = 1

    out = np.zeros(1, np.float32)
    try:
        sk.jit(kernel).bind(threads=1, threadgroup=1, bounds="off")(out)
    except (TypeError, NotImplementedError):
        return False
    return bool(out[0] == 1)


def forms(work, data, mode):
    made = FORMS[work.name](data, Binder(mode, "fast" if work.fast else "precise"))
    return made if isinstance(made, dict) else {"": made}
