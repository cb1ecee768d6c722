"""Are synthetic rows more often those of people who were counted? Many splits of a data set, one draw for each.

On one split the answer is mostly luck: which people stand on which side. So both halves are drawn anew each time, the
first is counted, and the share of synthetic rows that equal somebody's is compared between the halves. The interval is
over splits. The model is the same throughout (a forest that saw half of the people): what it has memorised is no part
of this. Epsilon 1 allows for a share e times as large among those who were counted; 1.0 times is none at all.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "benchmarks" / "studies")]

from _record import parse, write  # noqa: E402
from synthetic import _hits  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.model import train_forest  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "synthetic_hits.json"
SPLITS = {"cmc": 200, "compas": 30, "car": 60, "adult": 12}
EPSILON = 1.0


def study(name: str, splits: int) -> dict[str, Any]:
    """Shares of synthetic rows that are somebody's: of those who were counted, and of as many others."""
    table, missing = load_declared(name)
    model, counted, others = None, [], []
    for seed in range(splits):
        inside, outside = table.split(test_size=0.5, random_state=seed)
        model = train_forest(inside) if model is None else model
        made = cv.PrivateSynthetic(EPSILON, missing=missing).fit(inside, model)
        few = min(len(inside), len(outside))
        for people, shares in ((inside, counted), (outside, others)):
            shares.append(100 * _hits(made.codes_, made.public_.grid.codes(people.features)[:few]))
    more = mean_interval(np.subtract(counted, others), 0.95)
    ratio = float(np.mean(counted) / np.mean(others))
    print(
        f"{name:<8}{splits:>4} splits  counted {np.mean(counted):.2f}%, others {np.mean(others):.2f}%: "
        f"{more.value:+.2f} points ({more.low:+.2f} to {more.high:+.2f}), {ratio:.2f} times where "
        f"{math.exp(EPSILON):.2f} are allowed; "
        f"one split alone is off by {np.std(np.subtract(counted, others), ddof=1):.2f}",
        flush=True,
    )
    return {
        "people": few,
        "splits": splits,
        "counted_percent": float(np.mean(counted)),
        "others_percent": float(np.mean(others)),
        "more_points": plain_json(more),
        "deviation_of_one_split": float(np.std(np.subtract(counted, others), ddof=1)),
        "ratio": ratio,
        "ratio_allowed": math.exp(EPSILON),
    }


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SPLITS), choices=list(SPLITS))
    given = parse(parser, RESULTS, quick="three splits of one set")
    sets = ["cmc"] if given.quick else given.sets
    about = provenance(None, *sets)
    found = {name: study(name, 3 if given.quick else SPLITS[name]) for name in sets}
    write(given, {**about, "epsilon": EPSILON, "delta": 1e-6, "sets": found})


if __name__ == "__main__":
    main()
