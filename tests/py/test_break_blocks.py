"""Blocks: left by Python's own statements, chains with functions in their conditions, conditions with locals."""

import threading

import numpy as np
import pytest

import spork as sk
from conftest import blames

I32 = sk.DevicePointer[sk.dt.int32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def left_by_return(o: I32, i: THREAD):
    with sk.if_(i > 3):
        o[i] = 1
        return  # blame
    o[i] = 2


def left_by_return_of_a_value(o: I32, i: THREAD):
    def choose():
        with sk.if_(i > 3):
            o[i] = 1
            return 5  # blame
        return 6

    o[i] = choose()


def left_by_continue(o: I32, i: THREAD):
    for j in sk.range(3):
        with sk.if_(j == 1):
            continue  # blame
        o[i] = j


def left_by_break(o: I32, i: THREAD):
    for j in range(3):
        with sk.if_(o[i] == j):
            o[i] = 9
            break  # blame
        o[i] = j


def while_left_by_return(o: I32, i: THREAD):
    with sk.while_(o[i] > 3):
        o[i] = 1
        return  # blame
    o[i] = 2


def two_left_by_return(o: I32, i: THREAD):
    with sk.if_(i > 3), sk.if_(i > 5):
        o[i] = 1
        return  # blame
    o[i] = 2


def else_left_by_continue(o: I32, i: THREAD):
    for j in range(3):
        with sk.if_(i > 3) as b:
            o[i] = 1
        with b.else_():
            with sk.if_(i > 1):
                o[i] = 4
                if j == 1:
                    continue  # blame
                o[i] = 3
        o[i] = 7


LEFT = [
    left_by_return,
    left_by_return_of_a_value,
    left_by_continue,
    left_by_break,
    while_left_by_return,
    two_left_by_return,
    else_left_by_continue,
]


@pytest.mark.parametrize("function", LEFT, ids=lambda f: f.__name__)
def test_block_left_by_python(function):
    import inspect

    lines, first = inspect.getsourcelines(function)
    line = first + next(k for k, text in enumerate(lines) if "# blame" in text)
    with pytest.raises(sk.TraceError, match="is left here by Python's (return|break|continue)") as caught:
        sk.jit(function).ir
    assert caught.value.line == line


def test_blocks_that_end_are_not_left():
    @sk.jit
    def ordinary(o: I32, i: THREAD):
        def of_value():
            with sk.if_(i > 3):
                o[i] = 1
            return o[i]

        def of_nothing():
            with sk.if_(i > 3):
                o[i] = 1
            return

        def looped(n):
            while True:
                with sk.if_(i > 3), sk.if_(i > 4):
                    if n:
                        o[i] = 1
                    else:
                        o[i] = 2
                if n == 0:
                    return 7
                n -= 1

        for n in range(3):
            with sk.if_(i > n) as b:
                o[i] = 1
            with b.elif_(i > 5):
                pass
            with b.else_():
                "nothing"
        try:
            with sk.if_(i > 3):
                o[i] = 1
        finally:
            o[i] = 2
        of_nothing()
        o[i] = of_value() + looped(2)
        v = sk.local(sk.dt.int32)
        with sk.while_(lambda: v < 3):
            v += 1

    ordinary.ir


def test_elif_whose_condition_traces_a_function_first():
    @sk.device_fn
    def above(x: sk.dt.int32) -> sk.dt.int32:
        with sk.if_(x > 10):
            sk.return_(x - 10)
        sk.return_(0)

    @sk.jit
    def kernel(o: I32, i: THREAD):
        with sk.if_(o[i] > 20) as b:
            o[i] = 1
        with b.elif_(above(o[i]) > 5):
            o[i] = 2
        with b.else_():
            o[i] = 3

    o = np.array([21, 16, 15, 0], np.int32)
    kernel.launch(o, threads=4, threadgroup=4)
    assert list(o) == [1, 2, 3, 3]


def test_condition_of_a_while_reads_a_local_that_began_with_memory():
    @sk.jit
    def kernel(o: I32, i: THREAD):
        v = sk.local(sk.dt.int32, o[i])
        with sk.while_(v > 0):
            v -= 1
            o[i] = o[i] + 10

    o = np.array([0, 1, 3], np.int32)
    kernel.launch(o, threads=3, threadgroup=3)
    assert list(o) == [0, 11, 33]


def test_condition_of_a_while_that_is_not_computed_again():
    with blames(sk.TraceError, match="is not computed again"):

        @sk.jit
        def kernel(o: I32, i: THREAD):
            more = o[i] > 0
            with sk.while_(more):  # blame
                o[i] = o[i] - 1

        kernel.ir


def test_kernels_that_two_threads_trace_inside_each_other():
    """Each needs what the other traces: one of them gets an error, nobody waits for ever."""
    meet = threading.Barrier(2, timeout=5)
    kernels, seen = {}, []

    def make(name, other):
        def kernel(o: I32, i: THREAD):
            o[i] = 1
            meet.wait()
            kernels[other].ir

        kernels[name] = sk.jit(kernel)

    def trace(name):
        try:
            kernels[name].ir
        except (sk.TraceError, threading.BrokenBarrierError) as error:
            seen.append(error)

    make("a", "b")
    make("b", "a")
    threads = [threading.Thread(target=trace, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert seen
