"""Shared helpers of the Python tests."""

import atexit
import inspect
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager

import numpy as np
import pytest

import spork as sk


def own_cache_folder():
    """Compiled kernels of the tests and of what they start are not kept among the user's."""
    folder, process = tempfile.mkdtemp(prefix="spork-tests-"), os.getpid()
    os.environ["SPORK_CACHE_DIR"] = folder
    atexit.register(lambda: os.getpid() == process and shutil.rmtree(folder, ignore_errors=True))


own_cache_folder()


@contextmanager
def blames(kind, match=None, line=None):
    """Expects a SporkError of this class whose line is the one marked `# blame` in the calling test function."""
    frame = sys._getframe(2)
    lines, first = inspect.getsourcelines(frame.f_code)
    marked = [first + k for k, text in enumerate(lines) if "# blame" in text]
    assert len(marked) == 1 or line, "a test has one line marked # blame"
    with pytest.raises(kind, match=match) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, sk.SporkError)
    assert error.file == frame.f_code.co_filename
    assert error.line == (line or marked[0]), str(error)
    assert str(error).startswith(f"{error.file}:{error.line}: ")
    assert error.name


def run(kernel, *args, threads=32, threadgroup=32):
    kernel.launch(*args, threads=threads, threadgroup=threadgroup)


def unary(function, x, dtype=None, out=None, threads=None):
    """function(x[i]) for each element, on the device."""
    x = np.ascontiguousarray(x)
    out_dtype = np.dtype(out) if out is not None else x.dtype
    result = np.zeros(x.shape, out_dtype)
    element = sk.dtypes.from_numpy(x.dtype) if dtype is None else dtype

    @sk.jit
    def kernel(
        out: sk.DevicePointer[sk.dtypes.from_numpy(out_dtype)],
        x: sk.DevicePointer[element],
        i: sk.Uint[sk.ThreadPositionInGrid],
    ):
        out[i] = function(x[i])

    kernel.launch(result, x, threads=x.size, threadgroup=min(x.size, 64))
    return result


def binary(function, x, y, out=None):
    """function(x[i], y[i]) for each element, on the device."""
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    out_dtype = np.dtype(out) if out is not None else np.result_type(x, y)
    result = np.zeros(x.shape, out_dtype)

    @sk.jit
    def kernel(
        out: sk.DevicePointer[sk.dtypes.from_numpy(out_dtype)],
        x: sk.DevicePointer[sk.dtypes.from_numpy(x.dtype)],
        y: sk.DevicePointer[sk.dtypes.from_numpy(y.dtype)],
        i: sk.Uint[sk.ThreadPositionInGrid],
    ):
        out[i] = function(x[i], y[i])

    kernel.launch(result, x, y, threads=x.size, threadgroup=min(x.size, 64))
    return result
