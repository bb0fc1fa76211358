#!/usr/bin/env python3
"""Writes python/spork/_core.pyi and dtypes.pyi from the built package, so that they follow the tables.

Run with the package on the path: `.venv/bin/python tools/stubs.py`; with --check it only compares, and exits 1 if a file
is not current.

To a type checker an annotation is a type: dtypes, the markers and sk.Uint and its kin are classes in the stubs, though
they are objects at run time, and a parameter annotated DevicePointer[…] or Uint[…] is seen as what a kernel gets.
"""

import argparse
import sys
from pathlib import Path

import spork
from spork import _core

FOLDER = Path(__file__).resolve().parent.parent / "python" / "spork"
HEAD = '"""Made by tools/stubs.py from the tables; do not edit."""\n\n'

OPERAND = "Operand"
RESULTS = {
    "threadgroup_barrier": "None", "simdgroup_barrier": "None", "atomic_store": "None", "break_": "None", "continue_": "None",
    "return_": "None", "if_": "Block", "while_": "Block", "range": "Iterator[Value]", "local": "Local",
    "threadgroup": "ThreadgroupArray", "devices": "list[Device]", "threads": "int", "set_threads": "None", "default_device": "Device", "zeros": "Buffer", "empty": "Buffer",
}  # fmt: skip
PARAMETERS = {
    "threadgroup_barrier": "*scopes: str", "simdgroup_barrier": "*scopes: str", "range": "*bounds: Operand",
    "while_": "condition: Operand | Callable[[], Operand], /",
    "where": "condition: Operand, a: Operand | Callable[[], Operand], b: Operand | Callable[[], Operand], /",
    "local": "dtype: type[Dtype], init: Operand | Sequence[Operand] = 0", "return_": "value: Operand | None = None, /",
    "threadgroup": "dtype: type[Dtype], shape: int | Sequence[int]", "cast": "value: Operand, dtype: type[Dtype]",
    "bitcast": "value: Operand, dtype: type[Dtype]",
    "load": "ptr: Memory, i: Index, where: Operand = True, other: Operand = 0",
    "zeros": "shape: int | Sequence[int], dtype: type[Dtype]", "empty": "shape: int | Sequence[int], dtype: type[Dtype]",
    "devices": "", "default_device": "", "threads": "", "set_threads": "n: int | None, /", "break_": "", "continue_": "",
}  # fmt: skip
BY_HAND = {"jit", "device_fn"}

CORE = '''from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar, overload

from .dtypes import Dtype as Dtype

__version__: str

_D = TypeVar("_D", bound=Dtype)
_A = TypeVar("_A")

class SporkError(Exception):
    file: str | None
    line: int | None
    column: int | None
    name: str | None

EXCEPTIONS
class ThreadAttribute:
    metal_attr: ClassVar[str]

class Value:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def value(self) -> Value: ...
    @property
    def dtype(self) -> type[Dtype]: ...
    @property
    def x(self) -> Value: ...
    @property
    def y(self) -> Value: ...
    @property
    def z(self) -> Value: ...
    @property
    def w(self) -> Value: ...
OPERATORS
class Local(Value):
    def assign(self, value: Operand, /) -> None: ...
INPLACE
class _Memory:
    @property
    def dtype(self) -> type[Dtype]: ...
    def __getitem__(self, i: Index) -> Value: ...
    def __setitem__(self, i: Index, x: Operand) -> None: ...

class Pointer(_Memory): ...
class ThreadgroupArray(_Memory): ...
class DevicePointer(_Memory, Generic[_D]): ...
class ConstantPointer(_Memory, Generic[_D]): ...
class ThreadgroupPointer(_Memory, Generic[_D]): ...

Operand = Value | int | float | bool | Any
Index = Operand | tuple[Operand, ...]
Memory = _Memory

class ScalarParamSpec:
    dtype: type[Dtype]
    metal_name: str
    vec_size: int
    attribute: type[ThreadAttribute] | None

class Range: ...
class RangeIterator: ...

class Block:
    def __enter__(self) -> Block: ...
    def __exit__(self, *exception: object) -> bool: ...
    def else_(self) -> Block: ...
    def elif_(self, condition: Operand, /) -> Block: ...

class DeviceFn:
    __wrapped__: Callable[..., Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

_Size = int | float | Sequence[int]

class BoundKernel:
    kernel: JittedKernel
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    threads: tuple[int, int, int] | None
    bounds: str
    name: str
    metal_source: str
    ir: str
    cpu_ir: str
    cpu_asm: str
    source_map: dict[int, tuple[str, int]]
    def __call__(self, *args: Any, **kwargs: Any) -> None: ...

class JittedKernel:
    __wrapped__: Callable[..., Any]
    name: str
    metal_source: str
    ir: str
    cpu_ir: str
    cpu_asm: str
    timings: dict[str, float]
    source_map: dict[int, tuple[str, int]]
    def __getitem__(self, geometry: tuple[_Size, _Size]) -> BoundKernel: ...
    def bind(
        self, grid: _Size | None = None, threadgroup: _Size | None = None, *, threads: _Size | None = None, bounds: str = "on"
    ) -> BoundKernel: ...
    def launch(
        self,
        *args: Any,
        threadgroup: _Size | None = None,
        grid: _Size | None = None,
        threads: _Size | None = None,
        bounds: str = "on",
        **kwargs: Any,
    ) -> None: ...

class Device:
    name: str
    description: str

class Buffer:
    dtype: type[Dtype]
    shape: tuple[int, ...]
    nbytes: int
    def __init__(self, shape: int | Sequence[int], dtype: type[Dtype]) -> None: ...

@overload
def jit(fn: Callable[..., Any], /, *, math: str = "precise", contract: bool = True) -> JittedKernel: ...
@overload
def jit(*, math: str = "precise", contract: bool = True) -> Callable[[Callable[..., Any]], JittedKernel]: ...
def device_fn(fn: Callable[..., Any], /) -> DeviceFn: ...
'''

DTYPES = """from typing import Any, ClassVar

class Dtype:
    name: ClassVar[str]
    metal: ClassVar[str]
    nbytes: ClassVar[int]
    is_float: ClassVar[bool]
    is_signed: ClassVar[bool]
    def __init__(self, *components: Any) -> None: ...

def from_numpy(np_dtype: Any, /) -> type[Dtype]: ...
def underlying(dtype: type[Dtype], /) -> type[Dtype]: ...

"""


def parameters(name):
    """From the text signature: every parameter that is not known better is an operand."""
    if name in PARAMETERS:
        return PARAMETERS[name]
    text = getattr(_core, name).__text_signature__
    names = [p.strip() for p in text.strip("()").split(",")][1:]
    types = {"ptr": "Memory", "i": "Index", "order": "str"}
    out = []
    for p in names:
        if p in ("/", "*"):
            out.append(p)
            continue
        bare, _, default = p.partition("=")
        out.append(f"{bare}: {types.get(bare, OPERAND)}" + (f" = {default}" if default else ""))
    return ", ".join(p for k, p in enumerate(out) if not (p == "/" and k == 0))


def function(name):
    return f"def {name}({parameters(name)}) -> {RESULTS.get(name, 'Value')}: ...\n"


def core():
    things = {name: getattr(_core, name) for name in dir(_core) if not name.startswith("_")}
    exceptions = "".join(
        f"class {name}({', '.join(base.__name__ for base in thing.__bases__)}): ...\n"
        for name, thing in things.items()
        if isinstance(thing, type) and issubclass(thing, spork.SporkError) and thing is not spork.SporkError
    )
    binary = "add sub mul truediv floordiv mod pow lshift rshift and or xor".split()
    operators = "".join(f"    def __{r}{op}__(self, other: Operand) -> Value: ...\n" for op in binary for r in ("", "r"))
    operators += "".join(f"    def __{r}divmod__(self, other: Operand) -> tuple[Value, Value]: ...\n" for r in ("", "r"))
    operators += "".join(f"    def __{op}__(self, other: Operand) -> Value: ...\n" for op in ("lt", "le", "gt", "ge"))
    operators += "".join(
        f"    def __{op}__(self, other: Operand) -> Value: ...  # type: ignore[override]\n" for op in ("eq", "ne")
    )
    operators += "".join(f"    def __{op}__(self) -> Value: ...\n" for op in ("neg", "pos", "invert", "abs"))
    operators += "    def __round__(self, ndigits: None = None) -> Value: ...\n"
    inplace = "".join(f"    def __i{op}__(self, other: Operand) -> Local: ...\n" for op in binary)
    text = CORE.replace("EXCEPTIONS", exceptions).replace("OPERATORS", operators).replace("INPLACE", inplace)
    for name, thing in things.items():
        if isinstance(thing, type) and issubclass(thing, spork.ThreadAttribute) and thing is not spork.ThreadAttribute:
            text += f"class {name}(ThreadAttribute): ...\n"
    text += "\n"
    for name, thing in things.items():
        if isinstance(thing, spork.ScalarParamSpec):
            text += f"class {name}(Value, Generic[_A]): ...\n"
    text += "\n"
    for name, thing in things.items():
        if type(thing) is type(len) and name not in BY_HAND:
            text += function(name)
    return HEAD + text


def dtypes():
    return HEAD + DTYPES + "".join(f"class {name}(Dtype): ...\n" for name in _core._dtypes)


def main():
    parser = argparse.ArgumentParser(description="Writes the type stubs of the package.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    options = parser.parse_args()
    old = []
    for name, text in (("_core.pyi", core()), ("dtypes.pyi", dtypes())):
        path = FOLDER / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        old.append(name)
        if not options.check:
            path.write_text(text, encoding="utf-8")
    if options.check and old:
        print(f"not current: {', '.join(old)}; run tools/stubs.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
