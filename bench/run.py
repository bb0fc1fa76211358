#!/usr/bin/env python3
"""Measures, and prints one table: the median of each row, its spread, its goal and whether it is met.

Programs take turns for a number of rounds, so that a busy moment of the machine does not fall on one row alone.
Every sample is written to bench.json in the build folder as well. The exit code is 1 if a program failed, 0 whether goals are met or not.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# (row as the programs print it, what it is, unit, scale, goal in the unit or None)
ROWS = [
    ("py trace matrix_add", "trace, verify, print matrix_add", "us", 1, 150),
    ("py trace thousand", "trace, verify, print 1,000 statements", "ms", 1e-3, 3),
    ("matrix_add", "the same matrix_add from C", "us", 1, 150),
    ("thousand", "the same 1,000 statements from C", "ms", 1e-3, 3),
    ("verify", "  of these, the verifier", "ms", 1e-3, None),
    ("print", "1,000 statements to text", "ms", 1e-3, None),
    ("parse", "1,000 statements from text, verified", "ms", 1e-3, None),
    ("passes", "all passes on 1,000 statements", "ms", 1e-3, 3),
    ("pass V", "  locals to values", "ms", 1e-3, None),
    ("pass S", "  simplification", "ms", 1e-3, None),
    ("pass E", "  common subexpressions", "ms", 1e-3, None),
    ("pass H", "  hoisting", "ms", 1e-3, None),
    ("pass C", "  contraction", "ms", 1e-3, None),
    ("pass D", "  dead code", "ms", 1e-3, None),
    ("bytes", "bytes per IR node, 1,000 statements", "B", 1, 64),
    ("py matrix_add", "matrix_add 1024x1024, interpreter", "ms", 1e-3, 60),
    ("interp matrix_add", "  the same from C", "ms", 1e-3, 60),
    ("py matmul", "tiled matmul 256x256x256, interpreter", "ms", 1e-3, 1000),
    ("interp matmul", "  the same from C", "ms", 1e-3, 1000),
    ("py launch", "launch of a bound kernel, one group", "us", 1, None),
    ("launch", "  the same from C, sk_pipeline_launch", "us", 1, None),
    ("interp launch", "  the interpreter's part of it", "us", 1, None),
    ("leak context", "context growth over 10,000 launches", "B", 1, 0),
    ("leak resident", "process growth over 10,000 launches", "KiB", 1 / 1024, 512),
    ("py leak", "  the same in Python", "KiB", 1 / 1024, 512),
]


def programs(build):
    """(name, command, its environment), each run once a round."""
    python = dict(os.environ, PYTHONPATH=str(build / "python"), SPORK_DEVICE="interp")
    return [
        ("trace", [build / "bench/bench-trace", "10"], None),
        ("launch", [build / "bench/bench-launch"], None),
        ("interp", [build / "bench/bench-interp", "3"], None),
        ("kernels.py", [sys.executable, ROOT / "bench/kernels.py"], python),
    ]


def measure(build, rounds):
    samples, failed = {}, []
    for number in range(rounds):
        for name, command, env in programs(build):
            if name in failed:
                continue
            if sys.stderr.isatty():
                print(f"\r\033[Kround {number + 1} of {rounds}: {name}", end="", file=sys.stderr, flush=True)
            done = subprocess.run(list(map(str, command)), cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                failed.append(name)
                print(f"\r\033[K{name} failed:\n{done.stdout[-500:]}{done.stderr[-1500:]}", file=sys.stderr)
                continue
            for line in done.stdout.splitlines():
                row, _, value = line.partition("\t")
                samples.setdefault(row, []).append(float(value))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return samples, failed


def number(x):
    return f"{x:.0f}" if abs(x) >= 100 or x == int(x) else f"{x:.3g}"


def main():
    parser = argparse.ArgumentParser(description="Measures, and prints one table.")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--rounds", type=int, default=5, help="how often every program runs (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write rows and samples there (BUILD/bench.json)")
    options = parser.parse_args()
    build = options.build.resolve()
    samples, failed = measure(build, options.rounds)

    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; medians, 10th to 90th percentile")
    print(f"{'':40} {'median':>9} {'':4} {'spread':^19}  {'goal':>8}")
    table = []
    for row, title, unit, scale, goal in ROWS:
        values = sorted(x * scale for x in samples.get(row, []))
        if not values:
            print(f"{title:40} {'-':>9}")
            continue
        median = statistics.median(values)
        low, high = values[len(values) // 10], values[-1 - len(values) // 10]
        met = None if goal is None else median <= goal
        verdict = "" if met is None else "met" if met else "MISSED"
        spread = f"{number(low)} to {number(high)}"
        bound = "" if goal is None else f"{'<= ' if goal else ''}{number(goal)}"
        print(f"{title:40} {number(median):>9} {unit:4} {spread:^19}  {bound:>8} {verdict}".rstrip())
        table.append({"row": row, "title": title.strip(), "unit": unit, "median": median, "p10": low, "p90": high,
                      "goal": goal, "met": met, "samples": values})
    written = {"machine": platform.machine(), "rows": table}
    (options.json or build / "bench.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
