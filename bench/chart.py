#!/usr/bin/env python3
"""chart.py JSON [SVG] - the bars of docs/bench.svg from what bench/cpu.py wrote: how many times as long the others take."""

import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
SERIES = [("c", "C + OpenMP", "#4c78a8"), ("numba", "numba", "#f58518"), ("numpy", "NumPy", "#9d9d9d")]
LEFT, WIDTH, BAR, GAP, TOP = 210, 620, 9, 12, 64
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 } .small { font-size: 10px; fill: #666 } .title { font-size: 14px; font-weight: 600 }
.grid { stroke: #ddd } .one { stroke: #222; stroke-width: 1.5 } .span { stroke: #222; stroke-opacity: .55 } .back { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .small { fill: #999 } .grid { stroke: #444 } .one, .span { stroke: #ddd } .back { fill: #161616 } }
"""


def groups(report):
    """(title, {peer: entry}) of each kernel, in fast mode where it has one."""
    last = {}
    for row in report["rows"]:
        bars = {e["peer"]: e for e in row["against"] if "median" in e and not e["form"]}
        if any(peer in bars for peer, _, _ in SERIES):
            last[row["work"]] = (row["title"] + (", fast" if row["mode"] == "fast" else ""), bars)
    return list(last.values())


def ticks(low, high):
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in (1, 2, 5):
            if low <= step * 10.0**power <= high:
                yield step * 10.0**power


def draw(report):
    found = groups(report)
    values = [e[key] for _, bars in found for peer, _, _ in SERIES if peer in bars for key in ("low", "high") for e in (bars[peer],)]
    low, high = min([0.5, *values]) / 1.1, max([2.0, *values]) * 1.25
    scale = WIDTH / math.log(high / low)

    def at(value):
        return LEFT + math.log(value / low) * scale

    step = len(SERIES) * (BAR + 1) + GAP
    height = TOP + len(found) * step + 46
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 60} {height}" role="img">',
        "<title>Time of the other / time of Spork, CPU</title>",
        f"<style>{STYLE}</style>",
        '<rect class="back" width="100%" height="100%"/>',
        '<text class="title" x="12" y="22">Time of the other / time of Spork, bounds checks on</text>',
    ]
    x = 12
    for _, title, colour in SERIES:
        out.append(f'<rect x="{x}" y="34" width="10" height="10" fill="{colour}"/><text x="{x + 15}" y="43">{escape(title)}</text>')
        x += 30 + 8 * len(title)
    for tick in ticks(low, high):
        kind = "one" if tick == 1 else "grid"
        out.append(f'<line class="{kind}" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{TOP - 6}" y2="{height - 40}"/>')
        out.append(f'<text class="small" text-anchor="middle" x="{at(tick):.1f}" y="{height - 26}">{tick:g}</text>')
    for k, (title, bars) in enumerate(found):
        top = TOP + k * step
        out.append(f'<text text-anchor="end" x="{LEFT - 10}" y="{top + step / 2 - 2:.1f}">{escape(title)}</text>')
        for i, (peer, _, colour) in enumerate(SERIES):
            if peer not in bars:
                continue
            entry, y = bars[peer], top + i * (BAR + 1)
            begin, end = sorted((at(1), at(entry["median"])))
            middle = y + BAR / 2
            out.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR}" fill="{colour}"/>')
            out.append(f'<line class="span" x1="{at(entry["low"]):.1f}" x2="{at(entry["high"]):.1f}" y1="{middle}" y2="{middle}"/>')
            text = f"{entry['median']:.3g}"
            out.append(f'<text class="small" x="{max(end, at(entry["high"])) + 4:.1f}" y="{y + BAR - 1}">{text}</text>')
    machine = report["machine"]
    out.append(f'<text class="small" x="12" y="{height - 8}">{escape(machine["processor"])}, two threads; medians of paired '
               "rounds with their 95% intervals; logarithmic, right of 1 Spork is faster</text>")
    return "\n".join([*out, "</svg>", ""])


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs/bench.svg"
    if not groups(report):
        print("chart: no ratios in there", file=sys.stderr)
        return 1
    target.write_text(draw(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
