"""The rows of bench/run.py that go through Python. Prints samples as the C programs do: `row<TAB>value`, microseconds.

bench/run.py runs it with PYTHONPATH set to the package in the build folder.
"""

import os
import sys
import time

import numpy as np

import spork as sk

f32 = sk.dt.float32


def sample(row, value):
    print(f"{row}\t{value:.6g}")


def timed(row, times, call):
    for _ in range(times):
        begin = time.perf_counter_ns()
        call()
        sample(row, (time.perf_counter_ns() - begin) / 1e3)


def matrix_add(
    out: sk.DevicePointer[f32],
    A: sk.DevicePointer[f32],
    B: sk.DevicePointer[f32],
    index: sk.Uint[sk.ThreadPositionInGrid],
):
    out[index] = A[index] + B[index]


# The same statements as in bench/trace.c.
TEN = """\
    x = a[(i + {s}) % n]
    y = x * 1.5 + acc
    v = sk.local(f32, y)
    with sk.if_(y > v):
        v.assign(sk.sqrt(sk.fabs(y)))
    for j in sk.range(4):
        v += x * sk.cast(j, f32)
    k = (i ^ {s}) & 255
    acc += sk.select(k < 128, v, x)
    out[i] = acc
"""


def thousand_statements():
    lines = [
        "def thousand(out: sk.DevicePointer[f32], a: sk.DevicePointer[f32], n: sk.Uint, i: sk.Uint[sk.ThreadPositionInGrid]):\n",
        "    acc = sk.local(f32)\n",
        *(TEN.format(s=s) for s in range(100)),
    ]
    names = {"sk": sk, "f32": f32}
    exec(compile("".join(lines), "thousand.py", "exec"), names)
    return names["thousand"]


@sk.jit
def add_one(x: sk.DevicePointer[f32], i: sk.Uint[sk.ThreadPositionInGrid]):
    x[i] = x[i] + 1


@sk.jit
def matmul(
    C: sk.DevicePointer[f32],
    A: sk.DevicePointer[f32],
    B: sk.DevicePointer[f32],
    n: sk.Uint,
    at: sk.Uint2[sk.ThreadPositionInGrid],
    t: sk.Uint2[sk.ThreadPositionInThreadgroup],
):
    a = sk.threadgroup(f32, (16, 16))
    b = sk.threadgroup(f32, (16, 16))
    acc = sk.local(f32)
    for k in sk.range(0, n, 16):
        a[t.y, t.x] = A[at.y * n + k + t.x]
        b[t.y, t.x] = B[(k + t.y) * n + at.x]
        sk.threadgroup_barrier()
        for j in sk.range(16):
            acc += a[t.y, j] * b[j, t.x]
        sk.threadgroup_barrier()
    C[at.y * n + at.x] = acc


def resident():
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def main():
    timed("py trace matrix_add", 20, lambda: sk.jit(matrix_add).metal_source)
    function = thousand_statements()
    timed("py trace thousand", 5, lambda: sk.jit(function).metal_source)

    rng = np.random.default_rng(1)
    A, B = (rng.standard_normal((1024, 1024)).astype(np.float32) for _ in range(2))
    C = np.zeros_like(A)
    add = sk.jit(matrix_add).bind(grid=C.size // 128, threadgroup=128)
    timed("py matrix_add", 3, lambda: add(C, A, B))
    assert (C == A + B).all()

    A, B = (np.ascontiguousarray(x[:256, :256]) for x in (A, B))
    C = np.zeros_like(A)
    product = matmul.bind(grid=(16, 16), threadgroup=(16, 16))
    timed("py matmul", 1, lambda: product(C, A, B, 256))
    assert np.allclose(C, A @ B, atol=1e-3)

    x = np.zeros(32, np.float32)
    launch = add_one.bind(grid=1, threadgroup=32)
    for _ in range(1000):
        launch(x)
    before = resident()
    for _ in range(20):
        begin = time.perf_counter_ns()
        for _ in range(500):
            launch(x)
        sample("py launch", (time.perf_counter_ns() - begin) / 1e3 / 500)
    sample("py leak", resident() - before)
    assert x[0] == x[31] == 11000


if __name__ == "__main__":
    sys.exit(main())
