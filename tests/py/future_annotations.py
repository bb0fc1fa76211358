"""Kernels whose annotations are text, for test_signatures.py."""

from __future__ import annotations

import spork as sk


@sk.jit
def of_globals(out: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
    out[i] = 1


def of_closure(dtype):
    from spork import ThreadPositionInGrid as Position

    @sk.jit
    def kernel(out: sk.DevicePointer[dtype], i: sk.Uint[Position]):
        out[i] = sk.cast(2, dtype)

    return kernel


def of_locals_only():
    import spork as engine

    dtype = engine.dt.float32

    @sk.jit
    def kernel(out: engine.DevicePointer[dtype], i: engine.Uint[engine.ThreadPositionInGrid]):
        out[i] = 3

    return kernel


@sk.jit
def defined_later(out: Later[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
    out[i] = square(2)


@sk.device_fn
def square(x: sk.dt.float32) -> sk.dt.float32:
    return x * x


def wrong():
    @sk.jit
    def kernel(out: sk.DevicePointer[sk.dt.float64]):
        out[0] = 1

    return kernel


def never_defined():
    @sk.jit
    def kernel(
        out: sk.DevicePointer[sk.dt.float32],
        n: Nowhere,
    ):
        out[0] = 1

    return kernel


Later = sk.DevicePointer
