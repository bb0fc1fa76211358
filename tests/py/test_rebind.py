"""Python names bound anew inside a block of the kernel, which Python runs once: an error if the name is read later."""

import numpy as np
import pytest

import spork as sk

F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def number_in_if(out, a, i):
    s = 1.0
    with sk.if_(a[i] > 0):
        s = 2.0  # blame
    out[i] = s


def number_in_else(out, a, i):
    with sk.if_(a[i] > 0) as b:
        s = 2.0
    with b.else_():
        s = 3.0  # blame
    out[i] = s


def number_in_elif(out, a, i):
    s = 1
    with sk.if_(a[i] > 0) as b:
        out[i] = s
    with b.elif_(a[i] > -1):
        s = 2  # blame
    with b.else_():
        out[i] = s


def number_in_range(out, a, i):
    s = 0
    for j in sk.range(4):
        s = 1  # blame
    out[i] = s


def counter_in_range(out, a, i):
    k = 0
    for j in sk.range(4):
        out[k] = a[j]
        k += 1  # blame


def counter_in_while(out, a, i):
    v = sk.local(sk.dt.int32)
    k = 0
    with sk.while_(v < 4):
        v += 1
        out[k] = 1
        k = k + 1  # blame


def value_carried(out, a, i):
    last = a[0]
    for j in sk.range(1, 4):
        out[j] = last
        last = a[j]  # blame


def outer_value(out, a, i):
    x, y = a[i], a[i + 1]
    v = x
    with sk.if_(x > y):
        v = y  # blame
    out[i] = v


def outer_pointer(out, a, i):
    p = out
    with sk.if_(a[i] > 0):
        p = a  # blame
    p[i] = 1


def swapped(out, a, i):
    x, y = a[i], a[i + 1]
    with sk.if_(x > y):
        x, y = y, x  # blame
    out[i] = x - y


def function(out, a, i):
    f = sk.sin
    with sk.if_(a[i] > 0):
        f = sk.cos  # blame
    out[i] = f(a[i])


def text(out, a, i):
    how = "relaxed"
    with sk.if_(a[i] > 0):
        how = "seq_cst"  # blame
    out[i] = len(how)


def none(out, a, i):
    x = None
    with sk.if_(a[i] > 0):
        x = 2  # blame
    out[i] = x


def pair(out, a, i):
    p = (1, 2)
    with sk.if_(a[i] > 0):
        p = (1, 3)  # blame
    out[i] = p[1]


def numpy_scalar(out, a, i):
    s = np.float32(1)
    with sk.if_(a[i] > 0):
        s = np.float32(2)  # blame
    out[i] = s


def other_type(out, a, i):
    s = 1
    with sk.if_(a[i] > 0):
        s = 1.0  # blame
    out[i] = i // s


def signed_zero(out, a, i):
    s = 0.0
    with sk.if_(a[i] > 0):
        s = -0.0  # blame
    out[i] = s


def parameter(out, a, i):
    with sk.if_(a[i] > 0):
        i = 3  # blame
    out[i] = 1


def nested(out, a, i):
    s = 1
    with sk.if_(a[i] > 0):
        with sk.if_(a[i] > 1):
            s = 2  # blame
        out[i] = s


def python_loop(out, a, i):
    s = 0
    for k in range(3):
        out[k] = s
        with sk.if_(a[i] > k):
            s = k + 1  # blame


def flag(out, a, i):
    found = False
    for j in sk.range(4):
        with sk.if_(a[j] > 0):
            found = True  # blame
    if found:
        out[i] = 1


def captured(out, a, i):
    s = 1.0
    with sk.if_(a[i] > 0):
        s = 2.0  # blame
    out[i] = sk.where(a[i] > 0, lambda: s, lambda: 0.0)


def try_reads(out, a, i):
    s = 1
    with sk.if_(a[i] > 0):
        s = 2  # blame
    try:
        s = int("x")
    except ValueError:
        out[i] = s


def many(out, a, i):
    q0 = q1 = q2 = q3 = q4 = q5 = q6 = q7 = q8 = q9 = r0 = r1 = r2 = r3 = r4 = r5 = r6 = r7 = r8 = r9 = 0
    with sk.if_(a[i] > 0):
        r9 = 1  # blame
    out[i] = q0 + q1 + q2 + q3 + q4 + q5 + q6 + q7 + q8 + q9 + r0 + r1 + r2 + r3 + r4 + r5 + r6 + r7 + r8 + r9


LOCALS = []


def local(body):
    LOCALS.append(body)


@local
def sum_in_range(out, a, i):
    s = sk.local(sk.dt.float32)
    for j in sk.range(4):
        s = s + a[j]  # blame
    out[i] = s


@local
def sum_in_if(out, a, i):
    s = sk.local(sk.dt.float32)
    with sk.if_(a[i] > 0):
        s = s + 1  # blame
    out[i] = s


@local
def number_for_local(out, a, i):
    s = sk.local(sk.dt.float32)
    with sk.if_(a[i] > 0):
        s = 1.0  # blame
    out[i] = s


WRONG = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__ and hasattr(f, "__code__")]
WRONG.remove(local)


def blamed(body):
    code = body.__code__
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return next(k for k in range(code.co_firstlineno, code.co_firstlineno + 12) if "# blame" in lines[k - 1])


def traced(body):
    body.__annotations__ = {"out": F32, "a": F32, "i": THREAD}
    return sk.jit(body)


@pytest.mark.parametrize("body", WRONG + LOCALS, ids=lambda f: f.__name__)
def test_is_refused(body):
    for _ in range(20):
        with pytest.raises(sk.TraceError, match=r"\.assign\(") as caught:
            traced(body).ir
        assert caught.value.name == ("REBOUND_LOCAL" if body in LOCALS else "REBOUND")
        assert caught.value.line == blamed(body), str(caught.value)


def fine_temporaries(out, a, i):
    with sk.if_(a[i] > 0):
        t = a[i] + 1
        n = 3
        out[i] = t * n
    with sk.if_(a[i] < 0):
        t = a[i] - 1
        n = 4
        out[i] = t * n
    for j in sk.range(3):
        t = a[j]
        n = 5
        out[j] = t + n
    n = 6
    out[i] = n


def fine_loop_variables(out, a, i):
    for k in range(3):
        out[k] = k
    with sk.if_(a[i] > 0):
        for k in range(4):
            out[k] = a[k]
    for j in sk.range(4):
        for k in range(2):
            out[k] = a[j]
    squares = [k * k for k in range(3)]
    k = 5
    out[i] = squares[2] + k


def fine_comprehension(out, a, i):
    k = 0
    out[k] = 1
    with sk.if_(a[i] > 0):
        k = 1
        out[k] = 2
    out[i] = sum([k + m for k in range(3) for m in range(2)])


def fine_the_same(out, a, i):
    n, s, p, t = 3, 1.5, (1, "x"), "y"
    with sk.if_(a[i] > 0):
        n, s, p, t = int("3"), float("1.5"), tuple([1, "x"]), "".join(["y"])
    out[i] = n + s + p[0] + len(t)


def fine_locals(out, a, i):
    s = sk.local(sk.dt.float32)
    for j in sk.range(4):
        s += a[j]
        with sk.if_(a[j] > 2):
            s.assign(0)
            s *= 2
    out[i] = s


def fine_blocks(out, a, i):
    with sk.if_(a[i] > 0) as b:
        out[i] = 1
    with b.else_():
        with sk.if_(a[i] > 1) as b:
            out[i] = 2
        with b.else_():
            out[i] = 3
    with sk.if_(a[i] > 0) as b:
        out[i] = 1
    with b.elif_(a[i] > 1) as b:
        out[i] = 4
    with b.else_():
        out[i] = 5


def fine_first_bound(out, a, i):
    with sk.if_(a[i] > 0):
        size = 4
        out[i] = size
    with sk.if_(a[i] < 0):
        out[i] = size + 1


def fine_same_loop_variable(out, a, i):
    for j in sk.range(3):
        out[j] = 1
    for j in sk.range(4):
        out[j] = 2
    for j in range(2):
        for k in sk.range(2):
            out[k] = j


def fine_rewritten_on_each_path(out, a, i):
    n = 1
    out[n] = 0
    with sk.if_(a[i] > 0):
        n = 2
        out[n] = 0
    if len([1]) == 1:
        n = 3
    else:
        n = 4
    out[n] = 0


def fine_deleted(out, a, i):
    n = 1
    with sk.if_(a[i] > 0):
        n = 2
        out[n] = 1
        del n
    n = 3
    out[n] = 1


def fine_try(out, a, i):
    n = 1
    with sk.if_(a[i] > 0):
        n = 2
        out[n] = 1
    n = 3
    try:
        out[n] = 2
    finally:
        out[n] = 3


FINE = [f for f in list(globals().values()) if getattr(f, "__name__", "").startswith("fine_")]


@pytest.mark.parametrize("body", FINE, ids=lambda f: f.__name__)
def test_is_fine(body):
    for _ in range(20):
        traced(body).ir


def test_a_value_of_a_block_is_refused_where_it_is_used():
    @sk.jit
    def kernel(out: F32, a: F32, i: THREAD):
        x = a[i]
        with sk.if_(x > 0):
            x = x + 1
        out[i] = x  # blame

    with pytest.raises(sk.TraceError, match="sk.local"):
        kernel.ir


def test_in_a_function_that_the_kernel_calls():
    def helper(out, c):
        n = 1
        with sk.if_(c):
            n = 2
        out[0] = n

    @sk.jit
    def kernel(out: F32, i: THREAD):
        helper(out, i > 3)

    with pytest.raises(sk.TraceError, match="'n'"):
        kernel.ir
