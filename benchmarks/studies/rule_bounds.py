"""What rules lose when their bounds are round numbers that point at nobody: accuracy on people who took no part.

LERS with k on one half, told by values that somebody has (as published) and by round numbers; both on the same halves,
drawn anew for each seed. The share of the largest class stands beside them.

python benchmarks/studies/rule_bounds.py [--sets german_credit heart_c cmc] [--k 5 20] [--seeds 5] [--rows 2000]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _record import parse, provenance, write, writes

import countervail as cv
from countervail.core.stats import mean_interval

RESULT = Path(__file__).resolve().parents[1] / "results" / "rule_bounds.json"
SETS = ("german_credit", "heart_c", "cmc")
BOUNDS = ("values", "round")


def usable(name: str, rows: int) -> cv.Table:
    """The rows without missing numbers, a draw of them where there are many."""
    table = cv.load(name)
    numbers = [c.name for c in table.schema if c.numeric and c.role != "identifier"]
    whole = np.flatnonzero(table.frame[numbers].notna().all(axis=1).to_numpy())
    drawn = np.random.default_rng(0).permutation(whole)[:rows]
    return table.take(np.sort(drawn))


def judged(table: cv.Table, k: int, seed: int) -> dict[str, tuple[float, int]]:
    """Accuracy on one half, and the number of rules that the other half gives."""
    train, test = table.split(test_size=0.5, random_state=seed)
    out = {}
    for bounds in BOUNDS:
        model = cv.LERS(k=k, bounds=bounds).fit(train)
        out[bounds] = (float((model.predict(test.features) == test.target.to_numpy()).mean()), len(model.rules_))
    return out


def run(name: str, ks: list[int], seeds: int, rows: int) -> dict[str, Any]:
    """Every k on every split."""
    table = usable(name, rows)
    out: dict[str, Any] = {"rows": len(table), "majority": float(table.target.value_counts(normalize=True).iloc[0])}
    for k in ks:
        found = [judged(table, k, seed) for seed in range(seeds)]
        right = {b: np.array([f[b][0] for f in found]) for b in BOUNDS}
        out[f"k={k}"] = {
            **{b: mean_interval(right[b]).to_dict() for b in BOUNDS},
            "lost": mean_interval(right["values"] - right["round"]).to_dict(),
            "rules": {b: float(np.mean([f[b][1] for f in found])) for b in BOUNDS},
        }
        lost = out[f"k={k}"]["lost"]
        print(
            f"{name}, k={k}: values {100 * right['values'].mean():.1f}%, round {100 * right['round'].mean():.1f}%, "
            f"lost {100 * lost['value']:.1f} points ({100 * lost['low']:.1f} to {100 * lost['high']:.1f}), "
            f"largest class {100 * out['majority']:.1f}%",
            flush=True,
        )
    return out


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--k", nargs="+", type=int, default=[5, 20])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=2_000)
    options = parse(parser, RESULT, quick="German credit, two splits")
    if not writes(options) and options.quick:
        options.sets, options.seeds = ["german_credit"], 2
    about = provenance(options.sets, seed=0)
    found = {name: run(name, options.k, options.seeds, options.rows) for name in options.sets}
    write(options, {**about, "splits": options.seeds, "sets": found})


if __name__ == "__main__":
    main()
