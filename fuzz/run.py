#!/usr/bin/env python3
"""Runs the fuzzers for a while: random programs through random passes and on the device cpu (fuzz_diff), and through Metal
source (msl.py), bytes through the parser (parse_fuzz).

Every core but one runs fuzz_diff, each from a base seed of its own, which is printed. A finding stops everything: what it
printed says how to replay it, and files that it wrote lie in the build folder. The last line counts; the exit code is 1 if there was a finding.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def texts():
    """What the parser's fuzzer starts from."""
    return sorted(str(path) for folder in ("ir", "err", "run", "bug") for path in (ROOT / "tests" / folder).glob("*.ir"))


def main():
    parser = argparse.ArgumentParser(description="Runs the fuzzers for a while.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--base", type=int, help="the first seed (a random one)")
    options = parser.parse_args()
    build = options.build.resolve()
    subprocess.run(["ninja", "-C", str(build), "--quiet", "fuzz/fuzz_diff", "fuzz/fuzz_msl", "fuzz/parse_fuzz"], check=True)

    base = random.SystemRandom().randrange(10**12) if options.base is None else options.base
    seconds = f"{options.seconds:g}"
    commands = [
        [str(build / "fuzz/fuzz_diff"), "--seconds", seconds, "--base", str(base + k * 10**9)]
        for k in range(max(1, (os.cpu_count() or 1) - 1))
    ]
    commands.append([sys.executable, str(ROOT / "fuzz/msl.py"), "--build", str(build), "--seconds", seconds, "--base", str(base)])
    commands.append([str(build / "fuzz/parse_fuzz"), "--seconds", f"{max(1, round(options.seconds))}", "--seed", str(base % 2**31), *texts()])
    print(f"fuzz: {seconds} seconds from base seed {base}", flush=True)

    with tempfile.TemporaryFile("w+") as output:
        running = [subprocess.Popen(words, cwd=build, stdout=output, stderr=subprocess.STDOUT, text=True) for words in commands]
        failed = False
        while any(process.poll() is None for process in running) and not failed:
            failed = any(process.poll() for process in running)
            time.sleep(0.05)
        failed = failed or any(process.poll() for process in running)
        for process in running:
            if process.poll() is None:
                process.terminate()
            process.wait()
        output.seek(0)
        text = output.read()
    sys.stdout.write(text)
    programs = sum(int(n) for n in re.findall(r"^fuzz_diff: (\d+) programs", text, re.MULTILINE))
    print(f"fuzz: {programs} programs, {'a FINDING, replayed as shown above' if failed else 'no findings'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
