"""The expected Metal source of tests/msl passes a stock clang++ with the shim headers: syntax, types, address spaces."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "msl_check.py"


@pytest.mark.skipif(not shutil.which("clang++"), reason="there is no clang++")
def test_golden_sources_compile():
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
