"""tests/run.py and tools/layers.py themselves."""

import importlib.util
import stat
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location("tested_" + path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


run = load(ROOT / "tests/run.py")
layers = load(ROOT / "tools/layers.py")

# Prints its words, and the file without comment lines; exits with the number after "exit" in it.
FAKE = """#!/usr/bin/env python3
import sys
print("words", *sys.argv[1:], flush=True)
code = 0
for line in open(sys.argv[2]):
    if line.startswith("exit "):
        code = int(line.split()[1])
    elif not line.startswith("#"):
        print(line.rstrip(), file=sys.stderr, flush=True)
sys.exit(code)
"""


@pytest.fixture
def spork(tmp_path):
    program = tmp_path / "spork"
    program.write_text(FAKE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def write(tmp_path, text):
    path = tmp_path / "a.ir"
    path.write_text(text)
    return path


def test_pass_and_diff(tmp_path, spork):
    head = "# RUN: spork ir %s -p d\n\nbody\n# EXPECT:\n"
    path = write(tmp_path, head + "# words ir a.ir -p d\n#\n# other\n")
    problem = run.run_text(path, spork, False).splitlines()
    assert "+body" in problem and "-other" in problem
    assert "spork ir" in problem[-1] and problem[-1].endswith("a.ir -p d")
    for _ in range(2):
        assert run.run_text(path, spork, True) is None
        assert path.read_text() == head + "# words ir a.ir -p d\n#\n# body\n"
        assert run.run_text(path, spork, False) is None


def test_exit_codes(tmp_path, spork):
    path = write(tmp_path, "# RUN: spork ir %s\nexit 2\n# EXPECT:\n# words ir a.ir\n")
    assert run.run_text(path, spork, False).startswith("exit code 2, expected 0")
    assert run.run_text(path, spork, True) is not None
    path = write(tmp_path, "# RUN: spork ir %s\n# FAIL\nexit 2\n# EXPECT:\n# words ir a.ir\n")
    assert run.run_text(path, spork, False) is None
    path = write(tmp_path, "# RUN: spork ir %s\n# FAIL\n# EXPECT:\n# words ir a.ir\n")
    assert run.run_text(path, spork, False).startswith("exit code 0, expected an error")


def test_malformed(tmp_path, spork):
    assert run.run_text(write(tmp_path, "body\n"), spork, False) == "no RUN line"
    assert "EXPECT" in run.run_text(write(tmp_path, "# RUN: spork ir %s\n# EXPECT:\nbody\n"), spork, False)
    assert "--bless" in run.run_text(write(tmp_path, "# RUN: spork ir %s\nbody\n"), spork, False)
    assert "spork" in run.run_text(write(tmp_path, "# RUN: rm %s\n# EXPECT:\n"), spork, False)


def test_layers():
    assert layers.check(ROOT) == []
    for layer, name in [("base", "ir/ir.h"), ("ir", "pass/pass.h"), ("trace", "pass/pass.h"), ("cli", "msl/msl.h")]:
        assert layers.problem(layer, '"', name)
    for layer, name in [("pass", "ir/ir.h"), ("ir", "spork/spork.h"), ("python", "state.h"), ("device", "msl/msl.h")]:
        assert layers.problem(layer, '"', name) is None
    assert layers.problem("ir", '"', "ir.h") and layers.problem("ir", "<", "Python.h")
