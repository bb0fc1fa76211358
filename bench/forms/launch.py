"""What a launch costs from Python, in microseconds: of one group of 32 threads, and of 1,000 groups, that add 1 to an array.

The base is a method of a C extension that does nothing. Prints one line of JSON.
"""

import argparse
import functools
import gc
import importlib.util
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

from forms.workloads import aligned, f32  # noqa: E402

GROUP, MANY = 32, 1000


def empty_call(x):
    path = Path(os.environ["SPORK_BENCH_C"]) / "spork_bench_empty.so"
    spec = importlib.util.spec_from_file_location("spork_bench_empty", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda call=module.empty, x=x: (call, (x,))


def spork(x, groups):
    import spork as sk

    def add_one(x: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        x[i] = x[i] + 1

    return sk.jit(add_one).bind(grid=groups, threadgroup=GROUP), (x,)


def c(x, groups):
    import ctypes

    from forms.in_c import library

    function = getattr(library("peers"), "add_one" if groups == 1 else "add_one_parallel")
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_long), None
    return function, (x.ctypes.data, x.size)


def numba(x, groups):
    import numba

    if groups == 1:

        @numba.njit
        def add_one(x):
            for i in range(x.size):
                x[i] += f32(1)
    else:

        @numba.njit(parallel=True)
        def add_one(x):
            for i in numba.prange(x.size):
                x[i] += f32(1)

    return add_one, (x,)


def numpy(x, groups):
    return np.add, (x, f32(1), x)


def taichi(x, groups):
    import taichi as ti

    from forms.in_taichi import start

    start(True, 2)

    @ti.kernel
    def add_one(x: ti.types.ndarray(ti.f32, 1)):
        for i in range(x.shape[0]):
            x[i] += 1.0

    return add_one, (x,)


def drjit(x, groups):
    import drjit as dr
    from drjit.llvm import Float

    dr.set_thread_count(2)
    state = [Float(x)]

    def add_one():
        state[0] = state[0] + 1
        dr.eval(state[0])
        dr.sync_thread()
        x[0] = 1  # what it did is in its own array

    return add_one, ()


@functools.cache
def warp_kernel():
    """Once: another kernel of the same name would unload the code of recorded launches."""
    import warp as wp

    wp.config.quiet = True
    wp.init()

    def add_one(x: wp.array(dtype=wp.float32)):
        i = wp.tid()
        x[i] = x[i] + 1.0

    return wp.kernel(add_one)


def warp(x, groups):
    import warp as wp

    kernel = warp_kernel()
    view = wp.array(x, dtype=wp.float32, device="cpu", copy=False)
    return wp.launch(kernel, dim=x.size, inputs=[view], device="cpu", record_cmd=True).launch, ()


def timed(call, args, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        call(*args)
    return (time.perf_counter() - begin) / calls * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--peers", default="spork,c,numba,numpy,taichi,drjit,warp", type=lambda text: text.split(","))
    options = parser.parse_args()
    gaps, calls = [], []
    try:
        x = aligned(GROUP, f32)
        calls.append(["empty", 1, *empty_call(x)()])
    except Exception as error:
        gaps.append({"peer": "empty", "why": f"{type(error).__name__}: {error}"})
    for peer in options.peers:
        for groups in (1, MANY):
            x = aligned(GROUP * groups, f32)
            try:
                call, args = globals()[peer](x, groups)
                call(*args)
                if x[0] != 1:
                    raise ValueError("wrong result")
                calls.append([peer, groups, call, args])
            except Exception as error:
                gaps.append({"peer": peer, "why": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
                break
    for row in calls:
        for _ in range(3):
            about = timed(*row[2:], 20)
        row.append(max(10, min(20000, int(2000 / about))))
    samples = [[] for _ in calls]
    order, shuffled = list(range(len(calls))), random.Random(1)
    gc.disable()
    for _ in range(options.pairs):
        shuffled.shuffle(order)
        for k in order:
            time.sleep(0.002)
            timed(calls[k][2], calls[k][3], calls[k][4] // 4 + 1)
            samples[k].append(timed(*calls[k][2:]))
    rows = [{"peer": row[0], "groups": row[1], "samples": values} for row, values in zip(calls, samples)]
    sys.stdout.flush()
    os.write(1, ("\n" + json.dumps({"rows": rows, "gaps": gaps}) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
