"""Adds two matrices with a kernel traced from Python, and checks the sum against NumPy."""

import time

import numpy as np

import spork as sk

shape = (1024, 1024)
A = np.random.randn(*shape).astype(np.float32)
B = np.random.randn(*shape).astype(np.float32)
C = np.zeros(shape, np.float32)


@sk.jit
def matrix_add(
    out: sk.DevicePointer[sk.dt.float32],
    A: sk.DevicePointer[sk.dt.float32],
    B: sk.DevicePointer[sk.dt.float32],
    index: sk.Uint[sk.ThreadPositionInGrid],
):
    out[index] = A[index] + B[index]


if __name__ == "__main__":
    print(matrix_add.metal_source)
    run = matrix_add.bind((int(np.prod(shape)) // 128, 1, 1), (128, 1, 1))
    run(C, A, B)
    start = time.perf_counter()
    run(C, A, B)
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(C, A + B)
    print(f"{shape[0]}x{shape[1]} on device '{sk.default_device()}': equal to NumPy's A + B, {seconds * 1e3:.1f} ms a launch")
