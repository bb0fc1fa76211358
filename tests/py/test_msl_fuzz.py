"""Random programs, printed in Metal and compiled by a stock clang++, leave what the interpreter leaves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spork as sk

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(sk.__file__).resolve().parent.parent.parent


@pytest.mark.skipif(not shutil.which("clang++"), reason="there is no clang++")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="the sanitizers' run time is no part of the compiled programs")
@pytest.mark.skipif(not (BUILD / "fuzz" / "fuzz_msl").exists(), reason="fuzz_msl is not built")
def test_programs_agree():
    command = [sys.executable, str(ROOT / "fuzz" / "msl.py"), "--build", str(BUILD), "--base", "1", "--count", "16"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no difference" in done.stdout
