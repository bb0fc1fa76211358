"""Measures one workload: every form of it, in turns. bench/cpu.py starts this once a workload, in the environment of the peers.

Each form is checked against NumPy once, before any time is taken. In a round every form runs once, in an order drawn anew,
so that whatever happens to the machine happens to all; ratios are those of one round. Prints one line of JSON.
"""

import argparse
import gc
import importlib
import json
import math
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

from forms.workloads import NAMED, Missing, start  # noqa: E402

PEERS = ["spork", "c", "numba", "numpy", "taichi", "drjit", "warp"]
REST = 0.002  # seconds before each form, in which the threads of the form before stop spinning
SHORTEST = 0.004  # seconds that one sample takes at least, by calling more than once
LONG = 0.3  # seconds from which one call is enough to know about how long it takes


class Variant:
    def __init__(self, peer, form, mode, run):
        self.peer, self.form, self.mode, self.run = peer, form, mode, run
        self.samples = {}  # round -> seconds a call

    def label(self):
        return " ".join(filter(None, (self.peer, self.form, self.mode)))

    def calibrate(self):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - begin)
            if times[-1] > LONG:
                break
        self.about = min(times)
        self.calls = max(1, min(1000, math.ceil(SHORTEST / self.about)))

    def sample(self, number):
        time.sleep(REST)
        if self.about < 0.02:
            self.run()  # its threads are awake then, and the caches as the form itself leaves them
        run, calls = self.run, self.calls
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        self.samples[number] = (time.perf_counter() - begin) / calls


def modes(peer, work, options):
    if peer == "spork":
        wanted = ["precise", "fast"] if work.fast else ["precise"]
        return wanted + ["off"] if options.off else wanted
    if peer in ("c", "numba"):
        return ["precise", "fast"] if work.fast else ["precise"]
    if peer == "numpy":
        return [""]
    return ["fast" if work.fast else "precise"]


def build(work, data, options, gaps):
    made = []
    for peer in options.peers:
        try:
            module = importlib.import_module(f"forms.in_{peer}")
        except Exception as error:  # a peer that is not there or does not load is a gap
            gaps.append({"peer": peer, "why": f"{type(error).__name__}: {error}"})
            continue
        for mode in modes(peer, work, options):
            try:
                for form, run in module.forms(work, data, mode).items():
                    wrong = check(work, data, run)
                    if wrong:
                        gaps.append({"peer": peer, "form": form, "mode": mode, "why": f"wrong result: {wrong}"})
                    else:
                        made.append(Variant(peer, form, mode, run))
            except Missing as error:
                gaps.append({"peer": peer, "mode": mode, "why": str(error)})
            except Exception as error:
                gaps.append({"peer": peer, "mode": mode, "why": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
    if "c" in options.peers:
        from forms.in_c import limits

        made += [Variant("limit", name, "", run) for name, run in limits(work, data).items()]
    return made


def check(work, data, run):
    start(data)
    run()
    if hasattr(run, "fetch"):
        run.fetch()
    return work.check(data)


def has_goal(work, variant):
    return variant.peer in ("spork", "limit") or variant.peer in work.goals and variant.mode in ("", "fast" if work.fast else "precise")


def measure(work, variants, options):
    turns = {}
    for variant in variants:
        variant.calibrate()
        turns[variant] = options.pairs
        if not has_goal(work, variant):
            turns[variant] = max(3, min(options.pairs, int(options.seconds / variant.about)))
    order = random.Random(work.name)
    end = time.perf_counter() + options.limit
    gc.disable()
    for number in range(options.pairs):
        if number >= 5 and time.perf_counter() > end:
            break
        now = [variant for variant in variants if number < turns[variant]]
        order.shuffle(now)
        for variant in now:
            variant.sample(number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=NAMED)
    parser.add_argument("--size", default="full")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2.0, help="what a form without a goal may take in all, from three rounds on")
    parser.add_argument("--limit", type=float, default=100, help="seconds after which no further round begins, from the sixth on")
    parser.add_argument("--peers", default=",".join(PEERS), type=lambda text: text.split(","))
    parser.add_argument("--off", action="store_true", help="without bounds checks as well")
    options = parser.parse_args()
    work = NAMED[options.work]
    size = work.sizes[options.size]
    data = work.data(size, np.random.default_rng(1))
    gaps = []
    variants = build(work, data, options, gaps)
    measure(work, variants, options)
    found = {
        "work": work.name,
        "n": size,
        "moved": work.moved(size) if work.moved else None,
        "flops": work.flops(size) if work.flops else None,
        "gaps": gaps,
        "variants": [{"peer": v.peer, "form": v.form, "mode": v.mode, "samples": v.samples} for v in variants],
    }
    sys.stdout.flush()
    os.write(1, ("\n" + json.dumps(found) + "\n").encode())
    os._exit(0)  # peers whose threads will not end do not matter


if __name__ == "__main__":
    main()
