"""metal_source, ir and source_map as Python gives them. What Metal looks like is tested in tests/msl."""

import inspect
import os
import subprocess
import sys

import spork as sk

F32 = sk.DevicePointer[sk.dt.float32]
THREAD = sk.Uint[sk.ThreadPositionInGrid]


@sk.jit
def matrix_add(
    out: F32,
    A: F32,
    B: F32,
    index: THREAD,
):
    out[index] = A[index] + B[index]


def helper(p, i):
    return p[i] * 2


@sk.jit
def names(out: F32, a: F32, n: sk.Uint, i: THREAD):
    total = sk.local(sk.dt.float32)
    tile = sk.threadgroup(sk.dt.float32, (4, 8))
    tile[0, 1] = 1
    for step in sk.range(n):
        x = helper(a, i + step)
        y = sk.sqrt(x)
        a[i] = y
        first = again = y + 1
        a[i] = first * again
        total += x + y
    out[i] = total

    def inner():
        return seen

    seen = total + 1
    out[i] = seen * inner()


def lines_of(kernel, text):
    """(generated line, line of the Python source) of the generated lines that hold this text."""
    generated = kernel.metal_source.splitlines()
    numbers = [k for k, line in enumerate(generated, 1) if text in line]
    assert numbers, kernel.metal_source
    return [(k, kernel.source_map[k]) for k in numbers]


def source_line(kernel, text):
    lines, first = inspect.getsourcelines(kernel.__wrapped__)
    return next(first + k for k, line in enumerate(lines) if text in line)


def test_the_body_of_matrix_add():
    assert matrix_add.metal_source.endswith("{\n    out[index] = A[index] + B[index];\n}\n")
    assert "device const float *A" in matrix_add.metal_source


def test_source_map():
    ((_, place),) = lines_of(matrix_add, "out[index] =")
    assert place[:2] == (__file__, source_line(matrix_add, "out[index] ="))
    assert all(isinstance(k, int) and place[0] == __file__ for k, place in matrix_add.source_map.items())
    matrix_add.source_map.clear()
    assert matrix_add.source_map
    ((_, place),) = lines_of(names, "total += ")
    assert place[1] == source_line(names, "total +=")


def test_variables_keep_their_names():
    for name in ("total", "tile", "step", "x", "y", "first", "seen"):
        assert any(f" {name}{end}" in names.metal_source for end in (" ", ";", "[")), names.metal_source


def test_variables_keep_their_names_however_often_they_are_traced():
    def count(out: sk.DevicePointer[sk.dt.int32], n: sk.Int):
        steps = sk.local(sk.dt.int32)
        for j in sk.range(0, n, 16):
            steps += j
        out[0] = steps

    sources = {sk.jit(count).metal_source for _ in range(20)}  # Python has specialised the code by then
    assert len(sources) == 1
    assert "int steps = 0;" in sources.pop()


def test_ir_is_deterministic():
    code = "import test_metal; print(test_metal.names.ir); print(test_metal.names.metal_source)"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    assert runs.pop().decode() == f"{names.ir}\n{names.metal_source}\n"


def test_code_in_the_package_maps_to_the_caller():
    folder = os.path.dirname(sk.__file__)
    code = compile("def twice(p, i):\n    p[i] = p[i] + p[i]\n", os.path.join(folder, "pretend.py"), "exec")
    scope = {}
    exec(code, scope)

    @sk.jit
    def kernel(out: F32, i: THREAD):
        scope["twice"](out, i)

    ((_, place),) = lines_of(kernel, "out[i]")
    assert place[:2] == (__file__, source_line(kernel, 'scope["twice"]'))
