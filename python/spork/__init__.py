"""Spork: write a Metal compute kernel once, in Python; run it, check it and speed it up on any machine.

    import spork as sk

    @sk.jit
    def add(out: sk.DevicePointer[sk.dt.float32], a: sk.DevicePointer[sk.dt.float32], i: sk.Uint[sk.ThreadPositionInGrid]):
        out[i] = a[i] + 1

    add.launch(out, a, threads=out.size, threadgroup=256)
"""

from . import _core as _core
from . import dtypes
from . import dtypes as dt
from ._core import *  # noqa: F403
from ._core import __version__ as __version__

globals()["__getattr__"] = _core._no_name  # names that are not there; hidden from type checkers
