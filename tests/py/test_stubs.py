"""The type stubs follow the tables."""

import subprocess
import sys
from pathlib import Path

import spork as sk

ROOT = Path(__file__).resolve().parents[2]


def test_stubs_are_current():
    words = [sys.executable, str(ROOT / "tools" / "stubs.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_of_the_package():
    for name in (
        "jit JittedKernel BoundKernel device_fn DeviceFn DevicePointer ScalarParamSpec ThreadAttribute Uint Uint2 Uint3 Int Int2 "
        "Int3 dt dtypes local range if_ while_ break_ continue_ return_ threadgroup threadgroup_barrier simdgroup_barrier cast "
        "select where load ThreadgroupPointer devices default_device Buffer KernelFault SporkError __version__"
    ).split():
        assert hasattr(sk, name), name
