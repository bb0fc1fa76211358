#!/usr/bin/env python3
"""Runs the tests: text files, C programs and, with --py, the Python tests.

A text test is a file of tests/{ir,msl,run,err,bug} with the suffix .ir or .metal. It holds the input and, in comment
lines (`#` in .ir, `//` in .metal):

    # RUN: spork ir %s -p d      the command; %s is this file. Several RUN lines run in order.
    # FAIL                       the commands must exit non-zero (they must exit 0 otherwise)
    # EXPECT:                    everything from here to the end of the file is the expected output, one comment line
    # the first line             for each line of stdout and stderr together

In the output the path of the file reads as its bare name. `--bless` rewrites what follows EXPECT.
Where a command is `spork run`, the test is run on the interpreter, which `--bless` takes, and as a test of its own on the
device cpu: all devices print the same.

A C test is the program that tests/meson.build makes of each tests/unit/*.c and tests/api/*.c; it passes by exiting 0.
The last line printed is `N passed, N failed`, over everything that ran; the exit code is 1 if anything failed.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import programs

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
FOLDERS = ["ir", "msl", "run", "err", "bug"]
COMMENTS = {".ir": "#", ".metal": "//"}
TIMEOUT = 120
# Python tests whose results are the device's: they run on the default device and, once more, on the interpreter.
LAUNCHING = [
    "test_control.py", "test_kernels.py", "test_launch.py", "test_maths.py", "test_memory.py", "test_simd.py", "test_values.py",
]  # fmt: skip


class TextTest:
    """A parsed text test. `head` is the file up to and with the EXPECT line."""

    def __init__(self, path):
        self.path = path
        self.comment = COMMENTS[path.suffix]
        self.commands = []
        self.fails = False
        self.head = []
        self.expected = None
        for line in path.read_text(encoding="utf-8").splitlines():
            text = line[len(self.comment) :].strip() if line.startswith(self.comment) else None
            if self.expected is not None:
                if text is None:
                    raise ValueError(f"a line after EXPECT does not begin with {self.comment}")
                self.expected.append(line[len(self.comment) :].removeprefix(" "))
                continue
            self.head.append(line)
            if text is None:
                continue
            if text.startswith("RUN:"):
                self.commands.append(text[len("RUN:") :].strip())
            elif text == "FAIL":
                self.fails = True
            elif text == "EXPECT:":
                self.expected = []
        if not self.commands:
            raise ValueError("no RUN line")
        for command in self.commands:
            if shlex.split(command)[0] != "spork":
                raise ValueError(f"RUN does not start with spork: {command}")

    def blessed(self, output):
        head = self.head if self.expected is not None else [*self.head, f"{self.comment} EXPECT:"]
        return "\n".join([*head, *(f"{self.comment} {line}".rstrip() for line in output)]) + "\n"


def is_launch(path):
    """Whether the test launches kernels: what it prints is then the device's."""
    words = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.lstrip(COMMENTS[path.suffix] + " ").startswith("RUN: spork run ") for line in words)


def has_device(spork, name):
    """Whether `spork devices` lists it as one that is there."""
    done = subprocess.run([str(spork), "devices"], stdout=subprocess.PIPE, text=True, check=False)
    return re.search(rf"^[* ] {name}\b", done.stdout, re.MULTILINE) is not None


def run_command(command, path, spork, device):
    """The exit code and the output lines of one RUN command, and the command as one would type it."""
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    words = [str(shown) if word == "%s" else word for word in shlex.split(command)[1:]]
    typed = (f"SPORK_DEVICE={device} " if device else "") + shlex.join([os.path.relpath(spork, ROOT), *words])
    try:
        done = subprocess.run(
            [str(spork), *words],
            cwd=ROOT,
            env=dict(os.environ, SPORK_DEVICE=device) if device else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timeout", [], typed
    text = done.stdout.decode("utf-8", "replace").replace(str(shown), path.name)
    # Trailing blanks could not survive in the file.
    return done.returncode, [line.rstrip() for line in text.splitlines()], typed


def run_text(path, spork, bless, device=None):
    """None when the test passes, else what went wrong, as text."""
    try:
        test = TextTest(path)
    except (ValueError, UnicodeDecodeError) as problem:
        return str(problem)
    output = []
    for command in test.commands:
        code, lines, typed = run_command(command, path, spork, device)
        output += lines
        if not isinstance(code, int) or code < 0 or (code != 0) != test.fails:
            wanted = "an error" if test.fails else "0"
            return "\n".join([f"exit code {code}, expected {wanted}", *lines[-40:], f"  {typed}"])
    while output and not output[-1]:
        output.pop()
    if bless:
        text = test.blessed(output)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"blessed {path.parent.name}/{path.name}")
        return None
    if test.expected is None:
        return "no EXPECT line; write it with --bless"
    expected = [line.rstrip() for line in test.expected]
    while expected and not expected[-1]:
        expected.pop()
    if output == expected:
        return None
    diff = difflib.unified_diff(expected, output, "expected", "output", lineterm="")
    return "\n".join([*diff, f"  {typed}"])


def run_program(program):
    if not program.exists():
        return "not built; run make"
    try:
        done = subprocess.run(
            [str(program)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=5 * TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"timeout\n  {os.path.relpath(program, ROOT)}"
    if done.returncode == 0:
        return None
    lines = done.stdout.decode("utf-8", "replace").splitlines()[-60:]
    return "\n".join([f"exit code {done.returncode}", *lines, f"  {os.path.relpath(program, ROOT)}"])


def run_pytest(only, build, preload, files, device):
    """Runs these of tests/py with this interpreter on the package in the build folder; returns (passed, failed, skipped)."""
    env = dict(os.environ, PYTHONPATH=str(build / "python"), SPORK_BUILD=str(build))
    if device:
        env["SPORK_DEVICE"] = device
    if preload:
        # The interpreter itself leaks on purpose, and its own allocator would hide what the sanitizer looks for.
        env.update(LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0", PYTHONMALLOC="malloc")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files]
        if only:
            words += ["-k", only]
        code = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env, check=False).returncode
        try:
            suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
        except (OSError, xml.etree.ElementTree.ParseError):
            return 0, 1, 0
    total, bad, skipped = (
        int(suite.get("tests")),
        int(suite.get("failures")) + int(suite.get("errors")),
        int(suite.get("skipped")),
    )
    if code not in (0, 5) and bad == 0:  # 5: -k left nothing
        bad, total = 1, total + 1
    return total - bad - skipped, bad, skipped


def main():
    parser = argparse.ArgumentParser(description="Runs the tests.")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="tests at once")
    parser.add_argument("-k", default="", metavar="TEXT", help="only tests whose name, as ir/add.ir, contains TEXT")
    parser.add_argument("--bless", action="store_true", help="write what the text tests print as what they expect")
    parser.add_argument("--py", action="store_true", help="the Python tests too")
    parser.add_argument("--preload", default="", help="sanitizer runtimes that the Python tests load first")
    options = parser.parse_args()
    build = options.build.resolve()
    spork = build / "spork"

    cache = tempfile.TemporaryDirectory(prefix="spork-tests-")
    os.environ["SPORK_CACHE_DIR"] = cache.name  # not the user's

    jobs = {}
    on_cpu = {}
    for folder in FOLDERS:
        for path in sorted((TESTS / folder).iterdir() if (TESTS / folder).is_dir() else []):
            if path.suffix in COMMENTS:
                launches = is_launch(path)
                jobs[f"{folder}/{path.name}"] = (run_text, path, spork, options.bless, "interp" if launches else None)
                if launches and not options.bless:
                    on_cpu[f"{folder}/{path.name} (cpu)"] = (run_text, path, spork, False, "cpu")
    if not options.bless:
        for name in programs.names():
            jobs[name] = (run_program, build / "tests" / name.replace("/", "-"))
    jobs = {name: job for name, job in jobs.items() if options.k in name}
    on_cpu = {name: job for name, job in on_cpu.items() if options.k in name}
    if any(job[0] is run_text for job in jobs.values()) and not spork.exists():
        sys.exit(f"{spork} is not built; run make")

    passed = failed = skipped = 0
    if on_cpu and has_device(spork, "cpu"):
        jobs.update(on_cpu)
    elif on_cpu:
        skipped = len(on_cpu)
        print(f"skipped {skipped} text tests on the device cpu: `spork devices` does not list it", flush=True)
    with ThreadPoolExecutor(options.j) as pool:
        results = {name: pool.submit(*job) for name, job in jobs.items()}
        for name, result in results.items():
            problem = result.result()
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"FAIL {name}\n{problem}\n", flush=True)
    if options.py and not options.bless:
        everything = [TESTS / "py"]
        launching = [TESTS / "py" / name for name in LAUNCHING]
        for files, device in (everything, None), (launching, "interp"):
            more = run_pytest(options.k, build, options.preload, [str(file) for file in files], device)
            passed, failed, skipped = passed + more[0], failed + more[1], skipped + more[2]
    if not options.bless:
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
