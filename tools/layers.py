#!/usr/bin/env python3
"""Checks that includes go down only. Prints each that does not, and exits 1 if there is one.

A folder may include its own headers, spork/spork.h, and what the tables allow.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folders of src/ whose headers a folder of src/ may include. A folder that is missing here is an error.
BELOW = {
    "base": [],
    "ir": ["base"],
    "pass": ["base", "ir"],
    "interp": ["base", "ir", "pass"],
    "trace": ["base", "ir"],
    "clike": ["base", "ir"],
    "msl": ["base", "ir", "clike"],
    "llvm": ["base"],
    "cpu": ["base", "ir", "pass", "llvm"],
    "device": ["base", "ir", "pass", "interp", "trace", "clike", "msl", "llvm", "cpu"],
}

# Internal headers that the code outside src/ may include.
OUTSIDE = {
    "python": ["base/base.h", "trace/trace.h", "ir/module_object.h", "ir/attributes.def", "ir/math.def", "ir/ops.def", "ir/types.def"],
    "cli": ["base/base.h", "cpu/cache.h", "ir/ir.h", "pass/analysis.h", "pass/pass.h", "trace/trace.h"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def sources(folder):
    return sorted(file for file in folder.rglob("*") if file.suffix in (".c", ".h", ".def"))


def problem(layer, bracket, name):
    """Why a file of this layer (a folder of src/, or `python`, `cli`) may not include name; None if it may."""
    if bracket == "<":
        return "Python.h outside python/" if name == "Python.h" and layer != "python" else None
    if name == "spork/spork.h":
        return None
    folder = name.split("/")[0] if "/" in name else ""
    if layer in OUTSIDE:
        if not folder or name in OUTSIDE[layer]:
            return None
        return f"{layer}/ may not include it (see OUTSIDE in tools/layers.py)"
    if not folder:
        return 'write the folder: "folder/file.h"'
    if folder == layer or folder in BELOW[layer]:
        return None
    return f"src/{layer} may not include from src/{folder} (see BELOW in tools/layers.py)"


def check(root):
    found = []
    layers = [(folder.name, folder) for folder in sorted((root / "src").iterdir()) if folder.is_dir()]
    layers += [(name, root / name) for name in OUTSIDE]
    for layer, folder in layers:
        if layer not in BELOW and layer not in OUTSIDE:
            found.append(f"src/{layer}: not in the table of tools/layers.py")
            continue
        for file in sources(folder):
            text = file.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                why = problem(layer, *match.groups())
                if why:
                    line = text.count("\n", 0, match.start(2)) + 1
                    found.append(f"{file.relative_to(root)}:{line}: {match.group(2)}: {why}")
    return found


if __name__ == "__main__":
    wrong = check(ROOT)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)
