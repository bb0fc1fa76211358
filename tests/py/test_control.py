"""Control flow: sk.range, sk.if_, sk.while_, sk.where, break, continue, return."""

import numpy as np
import pytest

import spork as sk

I32 = sk.DevicePointer[sk.dt.int32]
U32 = sk.DevicePointer[sk.dt.uint32]
F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


def collect(bounds, count=64):
    """The values that `for j in sk.range(*bounds)` takes, through a kernel."""

    @sk.jit
    def kernel(out: I32, n: I32, s: I32):
        k = sk.local(sk.dt.uint32, 0)
        for j in sk.range(*[s[0] if b == "s" else b for b in bounds]):
            out[k] = sk.cast(j, sk.dt.int32)
            k += 1
        n[0] = sk.cast(k, sk.dt.int32)

    out, n = np.zeros(count, np.int32), np.zeros(1, np.int32)
    kernel[1, 1](out, n, np.array([5], np.int32))
    return list(out[: n[0]])


@pytest.mark.parametrize(
    "bounds", [(0,), (5,), (-3, 3), (2, 9), (2, 9, 3), (9, 2), (9, 2, -3), (3, -4, -1), (-5,), (0, 10, 100), (7, 7), (-9, -2, 2)]
)
def test_range_counts_as_python(bounds):
    assert collect(bounds) == list(range(*bounds))
    traced = tuple("s" if b == 5 else b for b in bounds)
    assert collect(traced) == list(range(*bounds))


def test_range_of_traced_bounds():
    assert collect(("s",)) == list(range(5))
    assert collect((1, "s")) == list(range(1, 5))
    assert collect(("s", 0, -2)) == list(range(5, 0, -2))
    assert collect((0, 20, "s")) == list(range(0, 20, 5))


def range_dtype(*bounds):
    seen = []

    @sk.jit
    def kernel(out: I32, a: sk.DevicePointer[sk.dt.int8], b: sk.DevicePointer[sk.dt.int64], u: U32):
        given = {"a": a[0], "b": b[0], "u": u[0]}
        for j in sk.range(*[given.get(x, x) for x in bounds]):
            seen.append(j.dtype)
            out[0] = 1

    kernel.ir
    return seen[0]


def test_type_of_the_variable():
    assert range_dtype(5) is range_dtype(1, 5) is range_dtype(1, 5, 2) is sk.dt.uint32
    assert range_dtype(-1, 5) is range_dtype(5, 1, -1) is sk.dt.int32
    assert range_dtype("a") is sk.dt.int8
    assert range_dtype("a", "b") is sk.dt.int64
    assert range_dtype("u") is range_dtype(0, "u", 2) is sk.dt.uint32
    assert range_dtype(-3, "u") is range_dtype("u", 0, -1) is sk.dt.int32


def test_range_ends_at_the_limits_of_its_type():
    @sk.jit
    def kernel(out: U32):
        n = sk.local(sk.dt.uint32)
        for j in sk.range(2**32 - 5, 2**32 - 1, 3):
            n += 1
        out[0] = n
        m = sk.local(sk.dt.uint32)
        for j in sk.range(sk.cast(out[1], sk.dt.uint8), sk.cast(out[2], sk.dt.uint8), 3):
            m += 1
        out[1] = m

    out = np.array([0, 250, 255], np.uint32)
    kernel[1, 1](out)
    assert list(out[:2]) == [2, 2]


def test_bounds_are_read_once():
    @sk.jit
    def kernel(out: U32):
        n = sk.local(sk.dt.uint32, 3)
        k = sk.local(sk.dt.uint32)
        for _ in sk.range(n):
            n += 1
            k += 1
        out[0] = k

    out = np.zeros(1, np.uint32)
    kernel[1, 1](out)
    assert out[0] == 3


def test_zero_step():
    def make(step):
        @sk.jit
        def kernel(out: I32):
            for j in sk.range(0, 5, step):  # blame
                out[j] = 1

        return kernel

    with pytest.raises(ValueError, match="step"):
        make(0).ir
    with pytest.raises(TypeError):
        make(0.5).ir


def test_nested_loops_break_and_continue():
    @sk.jit
    def kernel(out: I32, i: THREAD):
        total = sk.local(sk.dt.int32)
        for j in sk.range(10):
            with sk.if_(j == 2):
                sk.continue_()
            with sk.if_(j == 7):
                sk.break_()
            for k in sk.range(10):
                with sk.if_(k > j):
                    sk.break_()
                with sk.if_(k % 2 == 1):
                    sk.continue_()
                total += sk.cast(j * 10 + k + i, sk.dt.int32)
        out[i] = total

    def expected(i):
        total = 0
        for j in range(10):
            if j == 2:
                continue
            if j == 7:
                break
            for k in range(10):
                if k > j:
                    break
                if k % 2 == 1:
                    continue
                total += j * 10 + k + i
        return total

    out = np.zeros(40, np.int32)
    kernel.launch(out, threads=40, threadgroup=32)
    assert list(out) == [expected(i) for i in range(40)]


def test_if_elif_else():
    @sk.jit
    def kernel(out: I32, x: I32, i: THREAD):
        v = x[i]
        with sk.if_(v < 0) as b:
            out[i] = 1
        with b.elif_(v == 0):
            out[i] = 2
        with b.elif_(v < 10):
            with sk.if_(v & 1) as odd:
                out[i] = 3
            with odd.else_():
                out[i] = 4
        with b.else_():
            out[i] = 5

    x = np.arange(-3, 14, dtype=np.int32)
    out = np.zeros_like(x)
    kernel[1, x.size](out, x)
    assert list(out) == [1 if v < 0 else 2 if v == 0 else (3 if v & 1 else 4) if v < 10 else 5 for v in x]


def test_conditions_are_any_scalar():
    @sk.jit
    def kernel(out: I32, x: F32, i: THREAD):
        with sk.if_(x[i]):
            out[i] = 1
        with sk.if_(1):
            out[i] += 2
        with sk.if_(False):
            out[i] += 100
        with sk.if_(i):
            out[i] += 4

    out = np.zeros(4, np.int32)
    kernel[1, 4](out, np.array([0, 1, -0.0, np.nan], np.float32))
    assert list(out) == [2, 7, 6, 7]


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@pytest.mark.parametrize("as_lambda", [True, False])
def test_while(as_lambda):
    @sk.jit
    def kernel(out: U32, i: THREAD):
        n = sk.local(sk.dt.uint32, i + 1)
        steps = sk.local(sk.dt.uint32)
        with sk.while_((lambda: n != 1) if as_lambda else n != 1):
            with sk.if_(n % 2 == 0) as b:
                n //= 2
            with b.else_():
                n.assign(3 * n + 1)
            steps += 1
        out[i] = steps

    out = np.zeros(64, np.uint32)
    kernel[2, 32](out)
    assert list(out) == [collatz(n) for n in range(1, 65)]


def test_while_reads_memory_again():
    @sk.jit
    def kernel(out: U32):
        with sk.while_(out[0] < 10):
            out[0] += 3
        k = sk.local(sk.dt.uint32)
        with sk.while_(True):
            k += 1
            with sk.if_(k == 5):
                sk.break_()
        out[1] = k

    out = np.zeros(2, np.uint32)
    kernel[1, 1](out)
    assert list(out) == [12, 5]


def test_while_with_an_atomic_needs_a_lambda():
    @sk.jit
    def wrong(out: U32):
        with sk.while_(sk.atomic_fetch_add(out, 0, 1) < 5):
            out[1] += 1

    with pytest.raises(sk.TraceError, match="lambda"):
        wrong.ir

    @sk.jit
    def right(out: U32):
        with sk.while_(lambda: sk.atomic_fetch_add(out, 0, 1) < 5):
            out[1] += 1

    out = np.zeros(2, np.uint32)
    right[1, 1](out)
    assert list(out) == [6, 5]


def test_while_with_a_frozen_value_needs_a_lambda():
    @sk.jit
    def wrong(out: U32):
        v = sk.local(sk.dt.uint32, 3)
        t = +v
        with sk.while_(t < 5):
            v += 1
        out[0] = v

    with pytest.raises(sk.TraceError, match="lambda"):
        wrong.ir


def test_return_ends_the_thread():
    @sk.jit
    def kernel(out: I32, i: THREAD):
        with sk.if_(i >= 3):
            sk.return_()
        for j in sk.range(5):
            out[i] += 1
            with sk.if_(j == i):
                sk.return_()
        out[i] = 100

    out = np.zeros(8, np.int32)
    kernel[1, 8](out)
    assert list(out) == [1, 2, 3, 0, 0, 0, 0, 0]


def test_where_and_load_touch_only_what_they_may():
    @sk.jit
    def kernel(out: F32, a: F32, n: sk.Uint, i: THREAD):
        x = sk.where(i < n, lambda: a[i], lambda: -1.0)
        y = sk.load(a, i, where=i < n, other=-2)
        z = sk.load(a, i + 1, where=i + 1 < n)
        w = sk.where(i < n, lambda: a[i] * 2, 3)
        out[i] = x * 1000 + y * 100 + z * 10 + w

    a = np.arange(1, 5, dtype=np.float32)
    out = np.zeros(8, np.float32)
    kernel[1, 8](out, a, 4)
    expected = [(a[i] * 1100 + (a[i + 1] if i < 3 else 0) * 10 + a[i] * 2) if i < 4 else -1000 - 200 + 3 for i in range(8)]
    assert list(out) == expected


def test_select_evaluates_both():
    @sk.jit
    def kernel(out: F32, a: F32, n: sk.Uint, i: THREAD):
        out[i] = sk.select(i < n, a[i], 0)

    out = np.zeros(8, np.float32)
    with pytest.raises(sk.KernelFault, match="'a'"):
        kernel[1, 8](out, np.ones(4, np.float32), 4)
    assert list(out) == [1] * 4 + [0] * 4


# ---- misuse ------------------------------------------------------------------------------------------------------------------


def fails(body, kind=sk.TraceError, match=None):
    """Traces a kernel with this body, which has a line marked `# blame`."""
    with blames_in(body, kind, match):
        jitted(body).ir


def blames_in(body, kind, match):
    code = body.__code__
    import inspect

    lines, first = inspect.getsourcelines(code)
    line = next(first + k for k, text in enumerate(lines) if "# blame" in text)

    class Check:
        def __enter__(self):
            self.raises = pytest.raises(kind, match=match)
            self.caught = self.raises.__enter__()

        def __exit__(self, *exception):
            result = self.raises.__exit__(*exception)
            error = self.caught.value
            assert isinstance(error, sk.SporkError)
            assert (error.file, error.line) == (code.co_filename, line), str(error)
            return result

    return Check()


def jitted(body):
    body.__annotations__ = {"out": F32, "i": THREAD}
    return sk.jit(body)


def test_range_left_by_break():
    def body(out, i):
        for j in sk.range(4):
            out[j] = 1
            break
        out[i] = 2

    with pytest.raises(sk.TraceError, match=r"sk\.break_\(\)"):
        jitted(body).ir

    def at_the_end(out, i):
        out[i] = 2
        for j in sk.range(4):
            out[j] = 1
            break

    with pytest.raises(sk.TraceError, match=r"sk\.break_\(\)"):
        jitted(at_the_end).ir

    def returned(out, i):
        for j in sk.range(4):
            out[j] = 1
            return

    with pytest.raises(sk.TraceError, match=r"sk\.break_\(\)"):
        jitted(returned).ir

    def in_an_if(out, i):
        with sk.if_(i < 2):
            for j in sk.range(4):
                out[j] = 1
                break

    with pytest.raises(sk.TraceError, match=r"sk\.break_\(\)"):
        jitted(in_an_if).ir


def test_range_not_in_a_for():
    for use in (
        lambda: list(zip(sk.range(4), [1, 2])),
        lambda: list(enumerate(sk.range(4))),
        lambda: next(sk.range(4)),
        lambda: next(iter(sk.range(4))),
        lambda: list(sk.range(4)),
        lambda: [*sk.range(4)],
    ):

        body = (lambda use: lambda out, i: (out.__setitem__(i, 1), use(), None)[2])(use)
        body.__name__ = "body"
        with pytest.raises(TypeError, match="for statement"):
            jitted(body).ir

    def unpacked(out, i):
        a, b = sk.range(2)  # blame
        out[i] = a

    fails(unpacked, TypeError)


def test_block_never_entered():
    def body(out, i):
        sk.if_(i < 3)  # blame
        out[i] = 1

    fails(body, match="with")

    def last(out, i):
        out[i] = 1
        sk.while_(i < 3)  # blame

    fails(last, match="with")


def test_else_must_follow():
    def body(out, i):
        with sk.if_(i < 3) as b:
            out[i] = 1
        out[i] = 2
        with b.else_():  # blame
            out[i] = 3

    fails(body)

    def inside(out, i):
        with sk.if_(i < 3) as b:
            with b.else_():  # blame
                out[i] = 3

    fails(inside)


def test_value_after_its_block():
    def body(out, i):
        with sk.if_(i < 3):
            v = out[i] + 1
        out[i] = v  # blame

    fails(body, match="sk.local")

    def after_loop(out, i):
        for j in sk.range(3):
            v = out[j]
        out[i] = v  # blame

    fails(after_loop, match="sk.local")

    def variable(out, i):
        for j in sk.range(3):
            out[j] = 0
        out[j] = 1  # blame

    fails(variable)


def test_value_outside_its_kernel():
    kept = []

    def body(out, i):
        kept.append(i)
        out[i] = 1

    jitted(body).ir
    with pytest.raises(sk.TraceError):
        kept[0] + 1
    assert "finished" in repr(kept[0])

    def other(out, i):
        out[i] = kept[0]  # blame

    fails(other)


def test_statements_outside_a_kernel():
    for use in (lambda: sk.range(3), lambda: sk.if_(True), lambda: sk.local(sk.dt.float32), lambda: sk.sin(1.0), sk.break_,
                sk.threadgroup_barrier, lambda: sk.threadgroup(sk.dt.float32, 4), lambda: sk.simd_sum(1), sk.return_):  # fmt: skip
        with pytest.raises(sk.TraceError, match="no kernel is being traced"):
            use()


def test_break_outside_a_loop():
    def body(out, i):
        out[i] = 1
        sk.break_()  # blame

    fails(body)

    def nested(out, i):
        with sk.if_(i > 1):
            sk.continue_()  # blame

    fails(nested)


def test_a_kernel_that_raises_leaves_nothing():
    attempts = []

    def body(out, i):
        with sk.if_(i < 2):
            for j in sk.range(3):
                attempts.append(1)
                if len(attempts) == 1:
                    raise KeyError("mine")
                out[j] = 7

    kernel = jitted(body)
    with pytest.raises(KeyError, match="mine"):
        kernel.ir
    out = np.zeros(4, np.float32)
    kernel[1, 4](out)
    assert list(out) == [7, 7, 7, 0] and len(attempts) == 2


def test_exception_caught_inside_the_kernel():
    def body(out, i):
        try:
            with sk.if_(i < 2):
                out[i] = 5
                raise KeyError
        except KeyError:
            pass
        out[i] += 1

    out = np.zeros(4, np.float32)
    jitted(body)[1, 4](out)
    assert list(out) == [6, 6, 1, 1]


def test_an_empty_kernel():
    def body(out, i):
        pass

    with pytest.raises(sk.TraceError):
        jitted(body).ir
