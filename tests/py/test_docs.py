"""The examples: each ```python block of a page, each ```c block with a main, and the programs of examples/.

What a block prints is the ```text block right after it.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BUILD = Path(os.environ.get("SPORK_BUILD", ROOT / "build"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.S | re.M)
C_BLOCK = re.compile(r"^```c\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.S | re.M)


def blocks(page, pattern=BLOCK):
    text = page.read_text()
    for match in pattern.finditer(text):
        yield text[: match.start()].count("\n") + 2, match[1], match[2]


C_PROGRAMS = [
    pytest.param(code, expected, id=f"{page.name}:{line}")
    for page in PAGES
    if page.exists()
    for line, code, expected in blocks(page, C_BLOCK)
    if "int main" in code
]


@pytest.mark.parametrize("page", [p for p in PAGES if p.exists() and BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_page(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {"__name__": f"page_{page.stem}"}
    ran = 0
    for line, code, expected in blocks(page):
        out = io.StringIO()
        # The line numbers of the page, so that errors point into it.
        program = compile("\n" * (line - 1) + code, str(page), "exec")
        with contextlib.redirect_stdout(out):
            exec(program, names)
        if expected is not None:
            assert out.getvalue() == expected, f"{page.name}:{line}"
        ran += 1
    assert ran


def test_tables_are_current():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "docs.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(words):
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def compiled(source, folder, compiler="cc", standard="c11"):
    """Compiles a program of the C interface as a user would, against the shared library, and gives its path."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    program = folder / "program"
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", f"-I{ROOT / 'include'}"]
    link = [f"-L{BUILD}", "-lspork", f"-Wl,-rpath,{BUILD}"]
    done = run([compiler, *flags, str(source), "-o", str(program), *link])
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("code, expected", C_PROGRAMS)
def test_c_program_of_a_page(code, expected, tmp_path):
    source = tmp_path / "program.c"
    source.write_text(code)
    done = run([str(compiled(source, tmp_path))])
    assert (done.returncode, done.stderr) == (0, "")
    assert expected is not None and done.stdout == expected


def test_the_c_page_has_programs():
    assert len(C_PROGRAMS) >= 5


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name, last", [("matrix_add", "1024x1024: 0 elements differ from a[i] + b[i]"), ("add_arrays", "3.0 3.0")])
def test_c_example(name, last, compiler, tmp_path):
    done = run([str(compiled(ROOT / "examples" / f"{name}.c", tmp_path, compiler))])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == last


def test_python_example():
    done = run([sys.executable, str(ROOT / "examples" / "matrix_add.py")])
    assert done.returncode == 0, done.stderr
    assert "    out[index] = A[index] + B[index];\n" in done.stdout
    assert "equal to NumPy's A + B" in done.stdout


@pytest.mark.parametrize("compiler, standard, name", [("cc", "c11", "header.c"), ("c++", "c++17", "header.cpp")])
def test_header(compiler, standard, name):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = ROOT / "tests" / "api" / "header" / name
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused", f"-I{ROOT / 'include'}"]
    done = run([compiler, *flags, "-fsyntax-only", str(source)])
    assert done.returncode == 0, done.stderr


def test_static_library(tmp_path):
    """Its internal names are its own: a program may have an ir_parse."""
    if not (BUILD / "libspork.a").exists():
        pytest.skip("no libspork.a")
    source = tmp_path / "program.c"
    source.write_text(
        "#include <spork/spork.h>\n"
        "int ir_parse = 3;\n"
        "int main(void)\n"
        "{\n"
        "    sk_context *ctx = NULL;\n"
        "    const sk_status status = sk_context_create(NULL, &ctx, NULL);\n"
        "    sk_context_destroy(ctx);\n"
        "    return status == SK_OK && ir_parse == 3 ? 0 : 1;\n"
        "}\n"
    )
    words = ["cc", f"-I{ROOT / 'include'}", str(source), str(BUILD / "libspork.a"), "-lm", "-pthread"]
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("the static library is linked without the sanitizers that this build needs")
    done = run([*words, "-o", str(tmp_path / "program")])
    assert done.returncode == 0, done.stderr
    assert run([str(tmp_path / "program")]).returncode == 0
