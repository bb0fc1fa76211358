#!/usr/bin/env python3
"""Lets stock clang++ check printed Metal source: the expected text of tests/msl/*.ir, or the .metal files named.

Usage: tools/msl_check.py [--clang PROGRAM] [FILE...]

Metal's compiler exists on Apple's machines only. tests/msl_shim declares enough of its library for clang to check syntax
and types. Each source is checked with address spaces erased; sources of scalars only are checked with real address
spaces as well (clang's classes do not work in them). Without clang++ nothing is checked, which is said, and no failure.
"""

import argparse
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIM = ROOT / "tests" / "msl_shim"
FLAGS = ["-std=c++17", "-x", "c++", "-fsyntax-only", "-fdeclspec", "-Wall", "-Wextra", "-Werror"]
# Attributes and the pragma are Metal's; tests have unused parameters; a switch over a constant is a switch.
FLAGS += ["-Wno-unknown-attributes", "-Wno-ignored-attributes", "-Wno-unknown-pragmas", "-Wno-unused-parameter"]
FLAGS += ["-Wno-tautological-compare", "-Wno-self-assign", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function", "-Wno-user-defined-literals"]
CLASSES = re.compile(r"\bstruct\b|\barray<|\b(bool|u?char|u?short|u?int|u?long|half|bfloat|float)[234]\b|\bhalf\b|\bbfloat\b")
# `threadgroup` is a macro here, and a variable of an address space must be static.
THREADGROUP_VARIABLE = re.compile(r"^( +)(threadgroup [^*\n]*;)$", re.MULTILINE)


def swizzles():
    """Every swizzle of two to four components that a vector of each width has, as properties."""
    lines = []
    for width in (2, 3, 4):
        lines.append(f"#if SHIM_W == {width}")
        for n in (2, 3, 4):
            for letters in itertools.product("xyzw"[:width], repeat=n):
                name = "".join(letters)
                puts = len(set(letters)) == n
                put = f", put = put_{name}" if puts else ""
                lines.append(f"vec<T, {n}> get_{name}() const {{ return vec<T, {n}>({', '.join(letters)}); }}")
                if puts:
                    sets = " ".join(f"{to} = a.v[{k}];" for k, to in enumerate(letters))
                    lines.append(f"void put_{name}(vec<T, {n}> a) {{ {sets} }}")
                lines.append(f"__declspec(property(get = get_{name}{put})) vec<T, {n}> {name};")
        lines.append("#endif")
    return "\n".join(lines) + "\n"


def source_of(path):
    """The Metal source in a file; None if there is none to check."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".metal":
        return text
    if "# FAIL\n" in text or "# EXPECT:\n" not in text or "--as msl" not in text:
        return None
    expected = text.split("# EXPECT:\n", 1)[1].splitlines()
    return "\n".join(line[1:].removeprefix(" ") for line in expected) + "\n"


def check(clang, folder, path):
    """None, or what clang says."""
    source = source_of(path)
    if source is None:
        return None
    modes = [[]] if CLASSES.search(source) else [[], ["-DSHIM_SPACES"]]
    for mode in modes:
        done = subprocess.run(
            [clang, *FLAGS, *mode, "-I", str(SHIM), "-I", str(folder), "-"],
            input=THREADGROUP_VARIABLE.sub(r"\1static \2", source.replace("[[threadgroup(", "[[threadgroup_(")),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return f"{' '.join(mode)}\n{done.stderr}"
    return None


def main():
    parser = argparse.ArgumentParser(description="Checks printed Metal source with clang++.")
    parser.add_argument("--clang", default="clang++")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    clang = shutil.which(options.clang)
    if not clang:
        print("msl_check: skipped, there is no clang++")
        return 0
    files = options.files or sorted((ROOT / "tests" / "msl").glob("*.ir"))
    bad = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        (Path(folder) / "shim_swizzles.h").write_text(swizzles(), encoding="utf-8")
        for path, problem in zip(files, pool.map(lambda path: check(clang, folder, path), files)):
            if problem:
                bad += 1
                print(f"FAIL {path.name} {problem}")
    print(f"msl_check: {len(files) - bad} of {len(files)} sources pass")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
