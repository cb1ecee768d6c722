"""Should "typical" be what CF-K looks for unless told otherwise? Changes, cost and plausibility of its rewards.

The people, forests and splits of benchmarks/speed/actionable.py, k = 10. Differences from "sparsity" are paired by
person, with 95% intervals over the people of all splits. Writes the record, and the table of its page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / "speed")]

from _record import parse, provenance, write, writes  # noqa: E402
from actionable import K, setting  # noqa: E402

import countervail as cv  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "cfk_rewards.json"
PAGE = ROOT / "docs" / "decisions" / "cfk-reward.md"
START, END = "<!-- table -->\n", "<!-- end -->"
SETS = ("german_credit", "heart_c", "cmc", "compas", "adult")
REWARDS = ("sparsity", "proximity", "plausibility", "typical")
FIGURES = ("changes", "cost", "plausibility")


def answers(name: str, split: int, people: int) -> dict[str, dict[str, Any]]:
    """Figures of each person, by reward."""
    train, forest, refused = setting(name, split, people)
    out: dict[str, dict[str, Any]] = {}
    for reward in REWARDS:
        made = cv.CFK(k=K, reward=reward).fit(train, forest)
        made.explain(refused.take(range(2)))
        start = time.process_time()
        e = made.explain(refused)
        spent = 1000 * (time.process_time() - start) / len(refused)
        figures = (cv.measure.sparsity(e), cv.measure.recourse_cost(e), cv.measure.plausibility(e, neighbours=5))
        out[reward] = {**dict(zip(FIGURES, figures)), "ms": spent, "found": np.asarray(e.found)}
    return out


def study(name: str, splits: list[int], people: int) -> dict[str, Any]:
    """Means, and differences from sparsity, over the people of all splits."""
    parts = [answers(name, split, people) for split in splits]
    found: dict[str, Any] = {}
    for reward in REWARDS:
        mine = found[reward] = {"ms": float(np.median([p[reward]["ms"] for p in parts]))}
        mine["found"] = float(np.mean(np.concatenate([p[reward]["found"] for p in parts])))
        for figure in FIGURES:
            own = np.concatenate([p[reward][figure] for p in parts])
            less = own - np.concatenate([p["sparsity"][figure] for p in parts])
            mine[figure] = plain_json(mean_interval(own[~np.isnan(own)], 0.95))
            mine[f"{figure}_less_sparsity"] = plain_json(mean_interval(less[~np.isnan(less)], 0.95))
        words = "  ".join(f"{f} {mine[f]['value']:.3f}" for f in FIGURES)
        print(f"{name[:14]:<15}{reward:<14}{words}  {mine['ms']:.1f} ms", flush=True)
    return found


def table(sets: dict[str, Any]) -> str:
    """Changes / cost / plausibility of each reward on each set."""
    lines = [f"|  | {' | '.join(sets)} |", f"|---|{'---|' * len(sets)}"]
    for reward in REWARDS:
        cells = [f"{s[reward]['changes']['value']:.2f} / {_pair(s[reward])}" for s in sets.values()]
        lines.append(f"| {reward} | {' | '.join(cells)} |")
    for figure in FIGURES:
        cells = [_interval(s["typical"][f"{figure}_less_sparsity"]) for s in sets.values()]
        lines.append(f"| *{figure}, typical less sparsity (95%)* | {' | '.join(cells)} |")
    lines.append(f"| CPU ms per answer, sparsity / typical | {' | '.join(_times(s) for s in sets.values())} |")
    return "\n".join(lines) + "\n"


def _pair(figures: dict[str, Any]) -> str:
    return f"{figures['cost']['value']:.2f} / {figures['plausibility']['value']:.3f}"


def _times(s: dict[str, Any]) -> str:
    return f"{s['sparsity']['ms']:.1f} / {s['typical']['ms']:.1f}"


def _interval(e: dict[str, Any]) -> str:
    return f"{e['value']:+.2f} ({e['low']:+.2f} to {e['high']:+.2f})"


def place(text: str) -> str:
    """The page with this table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return before + START + text + END + rest.partition(END)[2]


def main() -> None:
    """Run, print, write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100, help="per split (default: %(default)s)")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    given = parse(parser, RESULTS, quick="10 people, one split, one set")
    if given.quick:
        given.people, given.splits, given.sets = 10, [0], ["cmc"]
    about = provenance(given.sets, 0)
    found = {name: study(name, given.splits, given.people) for name in given.sets}
    write(given, {**about, "k": K, "people": given.people, "splits": given.splits, "sets": found})
    if writes(given):
        PAGE.write_text(place(table(json.loads(RESULTS.read_text(encoding="utf-8"))["sets"])), encoding="utf-8")


if __name__ == "__main__":
    main()
