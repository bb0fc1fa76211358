#!/usr/bin/env python3
"""Measures the CPU device against C with OpenMP, numba, NumPy, other peers and the machine's limits, and prints tables.

Every number is a ratio, time of the other / our time: above 1 we are faster. It is the median over rounds in which all took
turns, with the interval that holds the true median with 95% (order statistics). A goal is missed only if the whole interval
is on the wrong side. All use two threads, but where a peer has only one.

Peers live in build-bench/env, which the first run makes by pip from bench/requirements.txt. What is missing is named at the
end and fails nothing. The exit code is 0 whether goals are met or not. Everything goes to bench-cpu.json as well.
"""

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build-bench"
PEERS = {"c": "C + OpenMP", "numba": "numba", "numpy": "NumPy", "taichi": "Taichi", "drjit": "Dr.Jit", "warp": "Warp"}
THREADS = "2"
TOO_LONG = "took more than"

sys.path.insert(0, str(ROOT / "bench"))


def say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


# ---- what is needed -----------------------------------------------------------------------------------------------


def environment(gaps):
    """The Python that has the peers, made if it is not there."""
    python, stamp = HOME / "env/bin/python", HOME / "env/installed"
    wanted = (ROOT / "bench/requirements.txt").read_text(encoding="utf-8")
    key = f"{sys.version}\n{ROOT}\n{wanted}"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return python
    try:
        say("bench: an environment for the peers")
        subprocess.run([sys.executable, "-m", "venv", "--clear", HOME / "env"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        gaps.append({"peer": "all", "why": f"no environment for them: {error}"})
        return Path(sys.executable)
    complete = True
    for line in wanted.splitlines():
        name = line.split("#")[0].strip()
        if not name:
            continue
        say(f"bench: pip install {name}")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", name]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:  # perhaps there is another version for this Python
            install[-1] = name.split("==")[0]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            complete = False
            last = (done.stderr.strip().splitlines() or ["?"])[-1]
            gaps.append({"peer": name, "why": f"pip cannot install it: {last}"})
    if complete:
        stamp.write_text(key, encoding="utf-8")
    return python


def compile_c(gaps):
    compiler = os.environ.get("CC", "cc").split()
    include = "-I" + sysconfig.get_path("include")
    native = ["-O3", "-march=native", "-fopenmp"]
    for name, source, flags in (
        ("peers", "peers.c", native),
        ("peers-fast", "peers.c", [*native, "-ffast-math"]),
        ("limits", "limits.c", native),
        ("spork_bench_empty", "empty.c", ["-O2", include]),
    ):
        words = [*compiler, *flags, "-std=gnu11", "-fPIC", "-shared", ROOT / "bench" / source, "-o", HOME / f"{name}.so", "-lm"]
        try:
            subprocess.run(words, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            gaps.append({"peer": name, "why": f"{compiler[0]} cannot compile it: {getattr(error, 'stderr', error)}"[:400]})


def variables(build):
    """Two threads for all; threads that wait give the core back soon, so that the next form has it."""
    env = dict(
        os.environ,
        PYTHONPATH=str(build / "python"),
        SPORK_BENCH_C=str(HOME),
        SPORK_CACHE_DIR=str(HOME / "cache/spork"),
        NUMBA_CACHE_DIR=str(HOME / "cache/numba"),
        XDG_CACHE_HOME=str(HOME / "cache"),
        SPORK_THREADS=THREADS,
        OMP_NUM_THREADS=THREADS,
        NUMBA_NUM_THREADS=THREADS,
        OPENBLAS_NUM_THREADS=THREADS,
        GOMP_SPINCOUNT="20000",
        OPENBLAS_THREAD_TIMEOUT="20",
    )
    # An OpenBLAS for another processor would be no peer.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    return env


ABOUT = """
import json, sys
found = {"python": sys.version.split()[0]}
try:
    import spork as sk
    found["devices"] = [[d.name, d.description] for d in sk.devices()]
    found["device"] = str(sk.default_device())
    from forms.in_spork import can_leave_bounds_out
    found["off"] = can_leave_bounds_out()
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
try:
    import numpy, threadpoolctl
    found["blas"] = [[p.get("internal_api"), p.get("version"), p.get("architecture")] for p in threadpoolctl.threadpool_info()]
except Exception:
    pass
import importlib.metadata
found["versions"] = {}
for name in ("numpy", "numba", "taichi", "drjit", "warp-lang"):
    try:
        found["versions"][name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class Runner:
    """Starts programs in the environment of the peers and reads the JSON of their last line."""

    def __init__(self, python, env):
        self.python, self.env = str(python), env

    def __call__(self, *words, env=None, limit=400):
        """(what it said, None) or (None, why not)"""
        words = [self.python, *map(str, words)]
        try:
            done = subprocess.run(words, cwd=ROOT / "bench", env=env or self.env, capture_output=True, text=True,
                                  timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return None, f"{TOO_LONG} {limit} s"
        try:
            return json.loads(done.stdout.strip().splitlines()[-1]), None
        except (IndexError, ValueError):
            text = " ".join(done.stderr.split())[-300:]
            return None, f"ended with code {done.returncode}: {text}"


# ---- statistics ---------------------------------------------------------------------------------------------------


def interval(values):
    """Median, and the values between which the true median lies with at least 95%."""
    values = sorted(values)
    n, below, k = len(values), 0.0, 0
    while k < n // 2 and below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    k = max(k, 1)
    return {"median": statistics.median(values), "low": values[k - 1], "high": values[n - k], "pairs": n}


def judged(found, least=None, most=None):
    """`found` with its goal and what came of it."""
    goal = least if least is not None else most
    if goal is None:
        return found
    if least is not None:
        met, missed = found["median"] >= least, found["high"] < least
    else:
        met, missed = found["median"] <= most, found["low"] > most
    return dict(found, goal=goal, verdict="met" if met else "MISSED" if missed else "open")


def ratios(other, ours):
    return interval([other[r] / ours[r] for r in other if r in ours])


# ---- kernels ------------------------------------------------------------------------------------------------------


def run_workload(runner, work, options, device):
    """Its variants; peers that bring the process down are left out of a second try."""
    peers = [p for p in ("spork", *PEERS) if p in options.peers]
    words = ["--size", options.size, "--pairs", options.pairs] + (["--off"] if device.get("off") else [])
    gaps = []
    for without in ((), ("warp",), ("taichi", "drjit", "warp"), ("spork",)):
        some = [p for p in peers if p not in without]
        found, why = runner("forms/worker.py", work.name, *words, "--peers", ",".join(some))
        if found:
            found["gaps"] += gaps
            return found
        gaps.append({"peer": "+".join(some), "why": why})
        if why.startswith(TOO_LONG):
            break
    return {"work": work.name, "n": None, "variants": [], "gaps": gaps}


def table_rows(work, found):
    """A row for each mode of Spork's."""
    numbered = [dict(v, samples={int(k): x for k, x in v["samples"].items()}) for v in found["variants"]]
    goal_mode = "fast" if work.fast else "precise"
    rows = []
    for mode in ("precise", "fast") if work.fast else ("precise",):
        ours = [v for v in numbered if v["peer"] == "spork" and v["mode"] == mode]
        row = {"work": work.name, "title": work.title, "mode": mode, "n": found["n"], "forms": {}, "against": []}
        rows.append(row)
        for v in ours:
            row["forms"][v["form"]] = interval([x * 1e3 for x in v["samples"].values()])
        if ours:
            best = min(ours, key=lambda v: statistics.median(v["samples"].values()))
            row["ours"] = best["form"]
        for v in numbered:
            if v["peer"] == "spork" or v["mode"] not in (mode, ""):  # "": NumPy and the limits have no modes
                continue
            entry = {"peer": v["peer"], "form": v["form"], "ms": statistics.median(v["samples"].values()) * 1e3}
            if ours:
                goal = work.goals.get(v["peer"]) if mode == goal_mode and not v["form"] else None
                entry.update(judged(ratios(v["samples"], best["samples"]), least=goal))
            row["against"].append(entry)
        unchecked = [v for v in numbered if v["peer"] == "spork" and v["mode"] == "off"]
        if ours and unchecked and mode == goal_mode:
            twin = next((v for v in unchecked if v["form"] == best["form"]), None)
            if twin:
                row["checks"] = ratios(best["samples"], twin["samples"])
                row["checks_samples"] = {r: best["samples"][r] / twin["samples"][r] for r in best["samples"]}
    return rows


def cost_of_checks(rows):
    """The geometric mean over kernels, in each round."""
    samples = [row.pop("checks_samples") for row in rows if "checks_samples" in row]
    if not samples:
        return None
    rounds = set.intersection(*(set(s) for s in samples))
    return judged(interval([math.exp(statistics.fmean(math.log(s[r]) for s in samples)) for r in rounds]), most=1.10)


# ---- launches, first results, sizes -------------------------------------------------------------------------------


def launches(runner, options, gaps):
    for without in ((), ("warp",), ("taichi", "drjit", "warp"), ("spork",)):
        some = [p for p in options.peers if p not in without]
        found, why = runner("forms/launch.py", "--pairs", options.pairs, "--peers", ",".join(some))
        if found:
            break
        gaps.append({"work": "launch", "peer": "+".join(some), "why": why})
    if not found:
        return []
    gaps += [dict(gap, work="launch") for gap in found["gaps"]]
    base = next((row["samples"] for row in found["rows"] if row["peer"] == "empty"), None)
    rows = []
    for row in found["rows"]:
        entry = {"peer": row["peer"], "groups": row["groups"], "us": interval(row["samples"])}
        if base and row["peer"] == "spork" and row["groups"] == 1:
            entry["over"] = judged(interval([x - y for x, y in zip(row["samples"], base)]), most=1.0)
        rows.append(entry)
    return rows


FIRST_GOALS = {("spork", "cold", "first"): 120, ("spork", "cold", "second"): 15, ("spork", "warm", "first"): 3,
               ("spork", "warm", "import"): 15}


def first_results(runner, options, gaps):
    samples = {}
    for number in range(options.processes):
        for peer in options.peers:
            if peer in ("c", "numpy") or (peer != "spork" and number >= 3):
                continue
            say(f"first results: {peer}, {number + 1} of {options.processes}")
            with tempfile.TemporaryDirectory() as folder:
                env = dict(runner.env, HOME=folder, XDG_CACHE_HOME=f"{folder}/cache", NUMBA_CACHE_DIR=f"{folder}/numba",
                           SPORK_CACHE_DIR=f"{folder}/spork")
                for state in ("cold", "warm"):
                    found, why = runner("forms/first.py", peer, env=env)
                    if not found:
                        gaps.append({"peer": peer, "work": f"first result, {state}", "why": why})
                        break
                    for step, value in found.items():
                        samples.setdefault((peer, state, step), []).append(value)
    return [
        {"peer": peer, "state": state, "step": step, "ms": judged(interval(values), most=FIRST_GOALS.get((peer, state, step)))}
        for (peer, state, step), values in samples.items()
    ]


def folder_size(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file() and not f.is_symlink() and "__pycache__" not in f.parts)


def sizes(build, python):
    """MB of each package as it lies on the disk, what it needs beyond NumPy included."""
    package = build / "python/spork"
    kept = [f for f in package.iterdir() if f.is_file()] if package.is_dir() else []
    found = {"spork": sum(f.stat().st_size for f in kept)}
    site = next((python.parent.parent / "lib").glob("python3*/site-packages"), None)
    for peer, names in {"numba": ["numba", "llvmlite", "llvmlite.libs"], "taichi": ["taichi"], "drjit": ["drjit"], "warp": ["warp"]}.items():
        folders = [site / name for name in names if site and (site / name).is_dir()]
        if folders:
            found[peer] = sum(map(folder_size, folders))
    return {name: size / 1e6 for name, size in found.items()}


# ---- tables -------------------------------------------------------------------------------------------------------


def number(x):
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.3g}"


def spread(entry, unit=""):
    text = f"{number(entry['median'])}{unit} [{number(entry['low'])} {number(entry['high'])}]"
    if entry.get("pairs", 99) < 30:
        text += f" n={entry['pairs']}"
    return text


def verdict(entry, sign=">="):
    return f" {sign} {entry['goal']:g} {entry['verdict']}" if "goal" in entry else ""


def cell(row, peer, form=""):
    entry = next((e for e in row["against"] if e["peer"] == peer and e["form"] == form), None)
    if entry is None:
        return "-"
    return spread(entry) + verdict(entry) if "median" in entry else f"({number(entry['ms'])} ms)"


def print_kernels(rows):
    print(f"\n{'kernel':28}{'mode':9}{'ours, ms':>9}   {'C + OpenMP':34} {'numba':34} NumPy")
    for row in rows:
        best = row["forms"].get(row.get("ours"))
        ours = number(best["median"]) if best else "-"
        print(f"{row['title']:28}{row['mode']:9}{ours:>9}   {cell(row, 'c'):34} {cell(row, 'numba'):34} {cell(row, 'numpy')}")
        for entry in row["against"]:
            if entry["form"] and entry["peer"] in ("c", "numba"):
                text = cell(row, entry["peer"], entry["form"])
                pad = "" if entry["peer"] == "c" else f"{'':35}"
                print(f"{'':49}{pad}{entry['form']}: {text}")
        if len(row["forms"]) > 1:
            for form, took in row["forms"].items():
                print(f"    {'*' if form == row.get('ours') else ' '} {form:28} {number(took['median']):>9} ms")


def print_others(rows):
    print(f"\n{'kernel':28}{'mode':9}   {'Taichi':24} {'Dr.Jit':24} {'Warp, one thread':24} the machine's limit")
    for row in rows:
        cells = [cell(row, peer) for peer in ("taichi", "drjit", "warp")]
        limits = [f"{e['form']} {cell(row, 'limit', e['form'])}" for e in row["against"] if e["peer"] == "limit"]
        if any(text != "-" for text in cells) or limits:
            print(f"{row['title']:28}{row['mode']:9}   {cells[0]:24} {cells[1]:24} {cells[2]:24} {', '.join(limits)}")


def print_report(report):
    machine = report["machine"]
    print(f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {THREADS} threads, size {report['size']}; device "
          f"{machine.get('device', '-')}: {machine.get('description', '')}")
    print(", ".join(f"{name} {version}" for name, version in machine.get("versions", {}).items()) + f"; BLAS {machine.get('blas', '?')}")
    print("Time of the other / our time: median [95% interval]; above 1 Spork is faster. n: pairs, where fewer than 30.")
    print_kernels(report["rows"])
    print_others(report["rows"])
    if report["checks"]:
        print(f"\nbounds checks, geometric mean of with / without: {spread(report['checks'])}{verdict(report['checks'], '<=')}")
        print("  " + ", ".join(f"{r['title']} {number(r['checks']['median'])}" for r in report["rows"] if "checks" in r))
    if report["launch"]:
        print(f"\n{'a call from Python, us':26}{'one group of 32':24}{'1,000 groups':24}")
        for peer in dict.fromkeys(row["peer"] for row in report["launch"]):
            cells = {row["groups"]: row for row in report["launch"] if row["peer"] == peer}
            title = {"spork": "Spork, bound", "empty": "an empty C method"}.get(peer) or PEERS[peer]
            texts = [spread(cells[k]["us"]) if k in cells else "" for k in (1, 1000)]
            over = cells[1].get("over")
            more = f"beyond the empty method {spread(over)}{verdict(over, '<=')}" if over else ""
            print(f"{title:26}{texts[0]:24}{texts[1]:24}{more}".rstrip())
    if report["first"]:
        print("\nfrom the decorator to the first result, ms (cold: nothing cached; warm: a new process; n: processes)")
        for row in report["first"]:
            if row["step"] != "import numpy":
                title = {"spork": "Spork"}.get(row["peer"]) or PEERS[row["peer"]]
                took = {k: v for k, v in row["ms"].items() if k != "pairs"}
                print(f"{title:10}{row['state']:6}{row['step']:20}{spread(took)}{verdict(took, '<=')}")
    print("\nsize of the packages, MB: " + ", ".join(f"{name} {number(size)}" for name, size in report["sizes"].items()))
    if report["gaps"]:
        print("\ngaps:")
        for gap in report["gaps"]:
            words = [str(gap[key]) for key in ("work", "peer", "form", "mode") if gap.get(key)]
            print(f"  {' '.join(words)}: {' '.join(gap['why'].split())[:200]}")


def unique(gaps):
    """Each reason once, however many kernels have it."""
    seen, kept = set(), []
    for gap in gaps:
        key = (gap.get("peer"), gap["why"])
        if key not in seen:
            seen.add(key)
            kept.append(gap)
    return kept


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description="Measures the CPU device against its peers.")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder (build)")
    parser.add_argument("--size", choices=["full", "quick", "tiny"], default="full", help="how large the data are (full)")
    parser.add_argument("--quick", action="store_true", help="--size quick with fewer rounds")
    parser.add_argument("--pairs", type=int, help="rounds (30)")
    parser.add_argument("--kernels", metavar="NAME,…", type=lambda text: text.split(","), help="only these")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["spork", *PEERS], help="only these")
    parser.add_argument("--only-kernels", action="store_true", help="no launches, first results, sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there (BUILD/bench-cpu.json)")
    options = parser.parse_args()
    if options.quick:
        options.size = "quick"
    options.pairs = options.pairs or (10 if options.size != "full" else 30)
    options.processes = 3 if options.size != "full" else 10
    build = options.build.resolve()
    begin = time.monotonic()

    gaps = []
    HOME.mkdir(exist_ok=True)
    python = environment(gaps)
    compile_c(gaps)
    env = variables(build)
    shutil.rmtree(env["SPORK_CACHE_DIR"], ignore_errors=True)
    runner = Runner(python, env)
    about, why = runner("-c", "import sys; sys.path.insert(0, '.')\n" + ABOUT)
    about = about or {"error": why}
    names = dict(about.get("devices", []))
    if "error" in about or (about.get("device") != "cpu" and options.size != "tiny"):
        reason = about.get("error") or f"the default device is {about.get('device')}, not cpu"
        gaps.append({"peer": "spork", "why": reason})
        options.peers = [peer for peer in options.peers if peer != "spork"]
    elif not about.get("off"):
        gaps.append({"peer": "spork", "mode": "off", "why": 'launches do not take bounds="off"'})
    machine = {"processor": processor(), "cores": os.cpu_count(), "python": about.get("python"), "device": about.get("device"),
               "description": names.get(about.get("device"), ""), "versions": about.get("versions", {}), "blas": about.get("blas")}

    from forms.workloads import WORKLOADS

    works = [work for work in WORKLOADS if not options.kernels or work.name in options.kernels]
    rows = []
    for work in works:
        say(f"{work.title} ({time.monotonic() - begin:.0f} s)")
        started = time.monotonic()
        found = run_workload(runner, work, options, about)
        gaps += [dict(gap, work=work.name) for gap in found["gaps"]]
        made = table_rows(work, found)
        for row in made:
            row["seconds"] = time.monotonic() - started
        rows += made
    report = {"machine": machine, "size": options.size, "pairs": options.pairs, "rows": rows, "checks": cost_of_checks(rows),
              "launch": [], "first": [], "sizes": {}}
    if not options.only_kernels:
        say("launches")
        report["launch"] = launches(runner, options, gaps)
        report["first"] = first_results(runner, options, gaps)
        report["sizes"] = sizes(build, python)
    say("")
    report["gaps"] = unique(gaps)
    report["seconds"] = time.monotonic() - begin
    print_report(report)
    print(f"\n{report['seconds']:.0f} s")
    target = options.json or build / "bench-cpu.json"
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
