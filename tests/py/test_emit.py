"""spork emit of Python files, and what spork run says of its arrays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import spork as sk

ROOT = Path(__file__).resolve().parents[2]
SPORK = Path(os.environ.get("SPORK_BUILD", Path(sk.__file__).resolve().parents[2])) / "spork"
HEAD = "import os\nimport spork as sk\nF32 = sk.DevicePointer[sk.dt.float32]\n"
KERNEL = "@sk.jit\ndef {0}(out: F32):\n    out[0] = 1\n"

pytestmark = pytest.mark.skipif(not SPORK.exists(), reason="the command is not built")


def spork(*words, cwd, path=None):
    env = {**os.environ, "PATH": path or os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}
    if path:
        env.pop("PYTHONPATH", None)
    done = subprocess.run([str(SPORK), *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def write(folder, name, text):
    (folder / name).write_text(HEAD + text)


def test_what_the_file_prints(tmp_path):
    write(tmp_path, "a.py", "print('loading')\nos.system('echo below')\n" + KERNEL.format("k") + "    print('tracing')\n")
    code, out, err = spork("emit", "a.py", "--as", "ir", cwd=tmp_path)
    assert code == 0 and out.startswith("kernel k(")
    assert err == "loading\nbelow\ntracing\n"


def test_one_kernel_or_several(tmp_path):
    write(tmp_path, "one.py", KERNEL.format("k") + "again = k\n")
    write(tmp_path, "two.py", "from one import k\n" + KERNEL.format("a") + KERNEL.format("b"))
    write(tmp_path, "mine.py", "from one import k\n" + KERNEL.format("m"))
    write(tmp_path, "none.py", "")
    assert "kernel void k(" in spork("emit", "one.py", cwd=tmp_path)[1]
    assert "kernel void m(" in spork("emit", "mine.py", cwd=tmp_path)[1]
    assert "kernel void k(" in spork("emit", "two.py:k", cwd=tmp_path)[1]
    code, out, err = spork("emit", "two.py", cwd=tmp_path)
    assert (code, out) == (1, "") and err == "two.py: error: it has several kernels; write two.py:KERNEL with one of a, b\n"
    assert "its kernels: a, b" in spork("emit", "two.py:c", cwd=tmp_path)[2]
    assert "sk.jit" in spork("emit", "none.py", cwd=tmp_path)[2]


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("def f():\n    return 1 / 0\nf()\n", 5, "ZeroDivisionError: division by zero"),
        ("x = (\n", 4, "SyntaxError: "),
        ("raise SystemExit(3)\n", 4, "exit code 3"),
        (KERNEL.format("k") + "    out[0] = 1e40\n", 7, "1e40 does not fit f32"),
        ("sk.nothing\n", 4, "there is no sk.nothing"),
        (KERNEL.format("k") + "    [][1]\n", 7, "IndexError: "),
    ],
)
def test_errors_of_the_file(tmp_path, text, line, message):
    write(tmp_path, "bad.py", text)
    code, out, err = spork("emit", "bad.py", cwd=tmp_path)
    last = err.splitlines()[-1]
    assert (code, out) == (1, "") and last.partition(": error: ")[0].endswith(f"bad.py:{line}") and message in last
    assert "_emit.py" not in err and "importlib" not in err


def test_a_python_without_the_package(tmp_path):
    write(tmp_path, "a.py", KERNEL.format("k"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    (tmp_path / "bin" / "python3").chmod(0o755)
    code, out, err = spork("emit", "a.py", cwd=tmp_path, path=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert (code, out) == (1, "") and "cannot import the package spork" in err and "install it" in err
    assert "Traceback" not in err


def test_run_names_what_is_wrong(tmp_path):
    write(tmp_path, "a.py", KERNEL.format("k"))
    (tmp_path / "k.ir").write_text(spork("emit", "a.py", "--as", "ir", cwd=tmp_path)[1])
    for array, words in {
        "zeros:8:f64": "there is no type f64",
        "full:2.5:8:i32": "2.5 is no i32",
        "full:x:8:f32": "x is no f32",
        "range:x:f32": "x is no number of elements",
        "zeros:8": "write zeros:N:TYPE",
        "full:1:f32": "write full:X:N:TYPE",
    }.items():
        code, out, err = spork("run", "k.ir", "k", "--threads", "1", f"out={array}", cwd=tmp_path)
        assert (code, out) == (2, "") and words in err
    code, _, err = spork("run", "a.py", "k", "--threads", "1", cwd=tmp_path)
    assert code == 2 and "spork emit a.py:k --as ir" in err
