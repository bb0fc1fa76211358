"""The examples of the pages: each ```python block runs, and prints what the ```text block right after it says."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.S | re.M)


def blocks(page):
    text = page.read_text()
    for match in BLOCK.finditer(text):
        yield text[: match.start()].count("\n") + 2, match[1], match[2]


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
