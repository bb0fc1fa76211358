"""Python's return, break and continue that leave a block of the kernel: an error at their line, never lost code."""

import pytest

import spork as sk

I32 = sk.DevicePointer[sk.dt.int32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def returned(out, i):
    with sk.if_(i > 3):
        return  # blame
    out[i] = 1


def returned_on_the_line(out, i):
    with sk.if_(i > 3): return  # noqa: E701  # blame
    out[i] = 1


def returned_after_a_store(out, i):
    with sk.if_(i > 3):
        out[i] = 2
        return  # blame
    out[i] = 1


def returned_none(out, i):
    with sk.if_(i > 3):
        out[i] = 2
        return None  # blame
    out[i] = 1


def returned_from_both(out, i):
    with sk.if_(i > 3):
        with sk.if_(i > 4):
            return  # blame
        out[i] = 2
    out[i] = 1


def returned_from_two_in_one(out, i):
    with sk.if_(i > 3), sk.if_(i > 4):
        return  # blame
    out[i] = 1


def returned_from_else(out, i):
    with sk.if_(i > 3) as b:
        out[i] = 1
    with b.else_():
        return  # blame
    out[i] = 3


def returned_from_elif(out, i):
    with sk.if_(i > 3) as b:
        out[i] = 1
    with b.elif_(i > 2):
        return  # blame
    with b.else_():
        out[i] = 4


def returned_as_the_last(out, i):
    with sk.if_(i > 3):
        out[i] = 2
        return  # blame


def returned_from_while(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3):
        v += 1
        return  # blame


def returned_from_while_on_the_line(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3): v += 1; return  # noqa: E701, E702  # blame


def returned_inside_while(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3):
        v += 1
        with sk.if_(v > 1): return  # noqa: E701  # blame


def returned_in_range(out, i):
    for j in sk.range(4):
        with sk.if_(j > 2):
            return  # blame
        out[j] = 1


def broke(out, i):
    for j in range(3):
        with sk.if_(i > j):
            out[i] = j
            break  # blame
        out[i] = 9


def broke_last(out, i):
    for j in range(3):
        with sk.if_(i > j):
            break  # blame


def broke_a_range(out, i):
    for j in sk.range(3):
        with sk.if_(i > j):
            break  # blame


def continued(out, i):
    for j in range(3):
        with sk.if_(i > j):
            continue  # blame
        out[i] = 9


def continued_last(out, i):
    for j in range(3):
        with sk.if_(i > j):
            out[i] = 1
            continue  # blame


def continued_a_range(out, i):
    for j in sk.range(3):
        with sk.if_(i > j):
            continue  # blame
        out[j] = 1


def continued_in_a_while(out, i):
    k = 0
    while k < 3:
        k += 1
        with sk.if_(i > k):
            continue  # blame
        out[k] = 1


def python_condition(out, i):
    with sk.if_(i > 3):
        if out is not None:
            return  # blame
        out[i] = 2
    out[i] = 1


WRONG = [f for f in list(globals().values()) if getattr(f, "__module__", None) == __name__ and hasattr(f, "__code__")]


def blamed(body):
    code = body.__code__
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return next(k for k in range(code.co_firstlineno, code.co_firstlineno + 12) if "# blame" in lines[k - 1])


def traced(body):
    body.__annotations__ = {"out": I32, "i": THREAD}
    return sk.jit(body)


@pytest.mark.parametrize("body", WRONG, ids=lambda f: f.__name__)
def test_is_refused(body):
    for _ in range(30):  # specialised bytecode too
        with pytest.raises(sk.TraceError) as caught:
            traced(body).ir
        error = caught.value
        assert error.name == "BLOCK_LEFT"
        assert error.line == blamed(body), str(error)
        way = {"broke": "break", "continued": "continue"}.get(body.__name__.split("_")[0], "return")
        assert f"sk.{way}_()" in str(error)


def test_a_value_returned_from_a_block():
    @sk.device_fn
    def f(x: sk.dt.int32) -> sk.dt.int32:
        with sk.if_(x > 3):
            return x + 1  # blame
        return x

    @sk.device_fn
    def constant(x: sk.dt.int32) -> sk.dt.int32:
        with sk.if_(x > 3):
            return 5
        return 6

    for function in (f, constant):

        @sk.jit
        def kernel(out: I32, i: THREAD):
            out[i] = function(out[i])

        with pytest.raises(sk.TraceError, match="sk.return_"):
            kernel.ir


def test_in_try():
    @sk.jit
    def kernel(out: I32, i: THREAD):
        with sk.if_(i > 3):
            try:
                return
            finally:
                out[i] = 3
        out[i] = 1

    with pytest.raises(sk.TraceError, match="sk.return_"):
        kernel.ir


def test_without_source():
    text = """
def body(out, i):
    with sk.if_(i > 3):
        return
    out[i] = 1
"""
    space = {"sk": sk}
    exec(compile(text, "<nowhere>", "exec"), space)
    with pytest.raises(sk.TraceError, match="return, break or continue") as caught:
        traced(space["body"]).ir
    assert caught.value.line == 4


def fine_last(out, i):
    out[i] = 1
    with sk.if_(i > 3):
        out[i] = 2


def fine_pass(out, i):
    with sk.if_(i > 3):
        out[i] = 2
        pass
    with sk.if_(i > 4):
        "text"
        out[i] = 3
        ...
    out[i] = 1


def fine_pass_last(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3):
        v += 1
        pass


def fine_one_line(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3): v += 1  # noqa: E701 # not a return


def fine_nested_last(out, i):
    with sk.if_(i > 3):
        with sk.if_(i > 4), sk.if_(i > 5):
            out[i] = 2


def fine_before_return(out, i):
    with sk.if_(i > 3):
        out[i] = 2
    return


def fine_in_loops(out, i):
    for j in range(3):
        with sk.if_(i > j):
            out[i] = 2
    for j in sk.range(3):
        with sk.if_(i > j):
            out[i] = 2
    k = 0
    while k < 3:
        k += 1
        with sk.if_(i > k):
            out[i] = 2
    for j in range(3):
        with sk.if_(i > j):
            out[i] = 2
        continue
    for j in range(3):
        with sk.if_(i > j):
            out[i] = 2
        break
    for j in range(3):
        with sk.if_(i > j):
            with sk.if_(i > j):
                out[i] = 2
        if j == 1:
            continue


def fine_in_try(out, i):
    try:
        with sk.if_(i > 3):
            out[i] = 2
    finally:
        out[i] = 3


def fine_python_branches(out, i):
    if len([1]) == 1:
        with sk.if_(i > 3):
            out[i] = 1
    else:
        with sk.if_(i > 4):
            out[i] = 2
    for j in range(2):
        if j:
            with sk.if_(i > 4) as b:
                out[i] = 2
            with b.else_():
                out[i] = 3
        else:
            with sk.if_(i > 4):
                for k in range(2):
                    if k:
                        break
                    out[i] = 4


def fine_with_words(out, i):
    v = sk.local(sk.dt.int32)
    with sk.while_(v < 3):
        v += 1
        with sk.if_(v > 2): sk.return_()  # noqa: E701


FINE = [f for f in list(globals().values()) if getattr(f, "__name__", "").startswith("fine_")]


@pytest.mark.parametrize("body", FINE, ids=lambda f: f.__name__)
def test_is_fine(body):
    for _ in range(30):
        traced(body).ir


def test_contextlib_is_left_alone():
    import contextlib

    @sk.jit
    def kernel(out: I32, i: THREAD):
        with contextlib.ExitStack() as stack:
            stack.enter_context(sk.if_(i > 3))
            out[i] = 1

    kernel.ir
