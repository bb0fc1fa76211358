"""The types of elements and values: float32, uint32, bool_, float32x4, atomic_uint32 and their kin."""

from . import _core
from ._core import Dtype
from ._core import _from_numpy as from_numpy
from ._core import _underlying as underlying

globals().update(_core._dtypes)
__all__ = ["Dtype", "from_numpy", "underlying", *_core._dtypes]


def __getattr__(name):
    return _core._no_dtype(name)


def __dir__():
    return sorted(__all__)
