#!/usr/bin/env python3
"""Compares printed Metal source with the interpreter: random programs (fuzz_msl), compiled as C++ with the library that
tests/msl_shim declares, run with one thread.

    fuzz/msl.py seed:N...                these programs
    fuzz/msl.py --count N [--base SEED]  N programs from a seed on (a random one)
    fuzz/msl.py --seconds S              programs for S seconds

A finding prints the command that replays it; the exit code is then 1. Needs clang++: without it nothing is compared, which is
said, and no failure.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import msl_check  # noqa: E402

BATCH = 16
# Overflow, wide shifts and the like trap, except in the shim, whose functions wrap as Metal's do.
FLAGS = ["-std=c++17", "-x", "c++", "-fdeclspec", "-w", "-O0", "-ffp-contract=off", "-fPIC", "-shared"]
UNDEFINED = "signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow"
# `threadgroup` is a macro of the shim; a variable of that space is there for all threads, and starts as zero.
PARAMETER = re.compile(r"\[\[threadgroup\(")
VARIABLE = re.compile(r"^( +)threadgroup ([^*=\n]*;)$", re.MULTILINE)


def as_cpp(sources):
    """The sources, each in a namespace of its own, and a function of the name in its first line that calls the kernel."""
    parts = ["#include <metal_stdlib>", "#include <metal_logging>", "#undef kernel", "#define kernel", '#include "msl_call.h"']
    for source in sources:
        head, text = source.split("\n", 1)
        name, kernel = head.split()
        text = VARIABLE.sub(r"\1static \2", PARAMETER.sub("[[memory(", re.sub(r"^#include .*\n", "", text, flags=re.MULTILINE)))
        parts.append(f"namespace of_{name} {{\n{text}}}")
        parts.append(f'extern "C" void {name}(void **a) {{ call_kernel(of_{name}::{kernel}, a); }}')
    return "\n".join(parts) + "\n"


def check(clang, build, seeds, folder, counts):
    """What is wrong with the programs, in lines; adds to the counts."""
    words, program = [f"seed:{seed}" for seed in seeds], str(build / "fuzz" / "fuzz_msl")
    printed = subprocess.run([program, "--print", *words], capture_output=True, text=True, check=False)
    sources = re.split(r"^// (?=run_\d+_\d+ \w+$)", printed.stdout, flags=re.MULTILINE)[1:]
    source, library = folder / "programs.cpp", folder / "programs.so"
    source.write_text(as_cpp(sources), encoding="utf-8")
    (folder / "shim_swizzles.h").write_text(msl_check.swizzles(), encoding="utf-8")
    (folder / "ignore").write_text("src:*metal_stdlib\n", encoding="utf-8")
    traps = [f"-fsanitize={UNDEFINED}", "-fsanitize-trap=all", f"-fsanitize-ignorelist={folder / 'ignore'}"]
    paths = ["-I", str(msl_check.SHIM), "-I", str(folder), "-I", str(ROOT / "fuzz")]
    maths = ["-x", "none", str(build / "libspork_all.a"), "-lm"]  # the shim's functions are the interpreter's
    command = [clang, *FLAGS, *traps, *paths, str(source), *maths, "-o", str(library)]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in printed.stdout.splitlines() if line.startswith("FAIL")]
    lines += [line for line in compiled.stderr.splitlines() if "error" in line][:4]
    if printed.returncode or compiled.returncode:
        return [*lines, "no library"]
    compared = subprocess.run([program, "--compare", str(library), *words], capture_output=True, text=True, check=False)
    for number, kind in re.findall(r"(\d+) (compared|refused|left out)", compared.stdout):
        counts[kind] += int(number)
    lines = (compared.stdout + compared.stderr).splitlines()
    return [*lines, f"exit code {compared.returncode}"] if compared.returncode else []



def main():
    parser = argparse.ArgumentParser(description="Compares printed Metal source with the interpreter.")
    parser.add_argument("seeds", nargs="*", metavar="seed:N")
    parser.add_argument("--count", type=int, default=BATCH)
    parser.add_argument("--base", type=int, help="the first seed (a random one)")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--clang", default="clang++")
    options = parser.parse_args()
    clang, build = shutil.which(options.clang), options.build.resolve()
    if not clang:
        print(f"fuzz_msl: skipped, there is no {options.clang}")
        return 0
    base = random.SystemRandom().randrange(10**12) if options.base is None else options.base
    end = time.monotonic() + options.seconds if options.seconds else None
    seeds = [int(word.removeprefix("seed:")) for word in options.seeds]
    done, wrong, counts = 0, [], Counter()
    with tempfile.TemporaryDirectory() as folder:
        while not wrong and (time.monotonic() < end if end else done < (len(seeds) or options.count)):
            batch = seeds[done : done + BATCH] or range(base + done, base + done + BATCH)
            wrong = check(clang, build, batch, Path(folder), counts)
            done += len(batch)
    if wrong:
        named = dict.fromkeys(re.findall(r"^FAIL (seed:\d+)", "\n".join(wrong), re.MULTILINE))
        where = "" if build == ROOT / "build" else f" --build {options.build}"
        print(*wrong, f"  replay: fuzz/msl.py{where} {' '.join(named or [f'seed:{seed}' for seed in batch])}", sep="\n")
    details = ", ".join(f"{number} {kind}" for kind, number in counts.items())
    print(f"fuzz_msl: {done} programs {'given' if seeds else f'from seed {base}'} ({details}): {'FAILED' if wrong else 'no difference'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
