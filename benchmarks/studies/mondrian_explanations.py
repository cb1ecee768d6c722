"""Explanations drawn from a Mondrian table beside CF-K: Tables 7, 10 and 12 of Goethals, Sörensen and Martens (2023).

Every refused person of a test set gets an explanation at k = 5, 10 and 20 from

- `plain`: the paper's baseline. The nearest row with the wanted decision, shown by its class in a table that Mondrian
  made k-anonymous; whatever share of the class the model accepts. The row was found by its exact values, so that
  somebody who reruns the search learns more than the class: no promise;
- `mondrian`: `GroupSearch(grouping="mondrian")`, which searches among the classes of that table only and takes those
  that the model accepts throughout;
- `groups`: CF-K's reciprocal groups (the default), which make the same promise as `mondrian`;
- `exact`: CF-K's smallest regions, which promise less (k against a register alone).

The paper's figures come from other splits, forests and a Mondrian of its own, and are marked as reported.

python benchmarks/studies/mondrian_explanations.py [--sets heart_c cmc ...] [--k 5 10 20]
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from _cfk_sets import RECIPES, Setting, setting
from _record import parse, provenance, write

import countervail as cv
from countervail.core.stats import mean_interval
from countervail.protect import GroupSearch

RESULT = Path(__file__).parents[1] / "results" / "mondrian_explanations.json"
METHODS: dict[str, dict[str, Any]] = {
    "plain": {"search": "exact", "min_pureness": 0.0},
    "mondrian": {"search": GroupSearch(grouping="mondrian")},
    "groups": {},
    "exact": {"search": "exact", "min_pureness": 0.0},
}
# NCP and pureness in percent, people per explanation (C_DM over their number), CM: as reported, Mondrian in Tables 10,
# 7 and 12, CF-K in Tables 9, 6 and 11.
FIELDS = ("ncp", "pureness", "people", "cm")
REPORTED = {
    "adult": {
        5: {"mondrian": (9.28, 92.30, 147.56, 0.82), "cfk": (0.18, 99.69, 106.72, 0.81)},
        10: {"mondrian": (15.97, 90.30, 152.77, 0.83), "cfk": (0.55, 99.81, 110.78, 0.82)},
        20: {"mondrian": (23.32, 85.01, 160.40, 0.82), "cfk": (0.84, 99.61, 118.93, 0.84)},
    },
    "cmc": {
        5: {"mondrian": (4.95, 79.85, 10.71, 0.24), "cfk": (2.07, 96.24, 8.83, 0.24)},
        10: {"mondrian": (7.05, 69.15, 15.56, 0.24), "cfk": (3.84, 93.15, 13.2, 0.28)},
        20: {"mondrian": (12.35, 59.40, 35.85, 0.20), "cfk": (7.46, 88.85, 23.42, 0.25)},
    },
    "german_credit": {
        5: {"mondrian": (42.02, 93.82, 6.07, 0.22), "cfk": (14.53, 99.85, 9.6, 0.07)},
        10: {"mondrian": (59.55, 90.50, 16.05, 0.17), "cfk": (21.41, 98.52, 16.83, 0.03)},
        20: {"mondrian": (71.39, 89.52, 30.53, 0.13), "cfk": (27.38, 99.08, 25.68, 0.02)},
    },
    "heart_c": {
        5: {"mondrian": (24.44, 100.0, 8.68, 0.32), "cfk": (0.93, 100.0, 8.04, 0.25)},
        10: {"mondrian": (53.01, 100.0, 18.64, 0.41), "cfk": (2.81, 100.0, 14.11, 0.32)},
        20: {"mondrian": (57.44, 100.0, 35.77, 0.43), "cfk": (5.02, 100.0, 23.73, 0.39)},
    },
    "informs_5000": {
        5: {"mondrian": (29.40, 74.39, 6.97, 0.31), "cfk": (7.34, 89.16, 7.19, 0.11)},
        10: {"mondrian": (36.31, 72.40, 13.88, 0.40), "cfk": (9.97, 85.33, 13.65, 0.12)},
        20: {"mondrian": (42.62, 72.88, 30.62, 0.33), "cfk": (12.86, 82.46, 24.17, 0.14)},
    },
}


def drawn_from_mondrian(e: cv.Explanations, protector: cv.CFK, s: Setting, k: int) -> cv.Explanations:
    """The same counterfactual rows, each shown by its class in the Mondrian table."""
    owners = protector.search_.explainer_.nearest(s.refused.features, 1)[:, 0]
    mondrian = cv.Mondrian(k).fit(s.train)
    regions = mondrian.regions_[mondrian.cell_of_[owners]]
    cells = {axis.name: [axis.cell(i) for i in range(len(regions))] for axis in regions.axes}
    shown = e.counterfactuals.assign(**{n: pd.Series(c, dtype=object) for n, c in cells.items()})
    why = "the row was found by its exact values before it was generalised"
    return replace(e, counterfactuals=shown, guarantee=cv.NoGuarantee(why), pureness=None)


def figures(s: Setting, k: int, method: str) -> dict[str, Any]:
    """One method at one k, measured by the functions that measure every explanation."""
    start = time.process_time()
    protector = cv.CFK(k=k, reward="none", **METHODS[method]).fit(s.train, s.model)
    fitted = time.process_time() - start
    start = time.process_time()
    e = protector.explain(s.refused)
    spent = time.process_time() - start
    if method == "plain":
        e = drawn_from_mondrian(e, protector, s, k)
    found = int(e.found.sum())
    if not found:
        return {"n": len(e), "found": 0, "guarantee": str(e.guarantee)}
    return {
        "n": len(e),
        "found": found,
        "ncp": mean_interval(100 * cv.measure.ncp(e)).to_dict(),
        "pureness": mean_interval(100 * cv.measure.pureness(e, s.model)).to_dict(),
        "people": cv.measure.discernibility(e) / found,
        "fewest_people": int(np.nanmin(cv.measure.degree_of_privacy(e))),
        "cm": cv.measure.classification_metric(e, s.model),
        "recourse_cost": mean_interval(cv.measure.recourse_cost(e)).to_dict(),
        "fit_s": fitted,
        "ms_per_explanation": 1000 * spent / len(e),
        "guarantee": str(e.guarantee),
    }


def run(name: str, ks: list[int], most: int) -> dict[str, Any]:
    """All methods on one data set."""
    s = setting(name, most)
    out: dict[str, Any] = {"train": len(s.train), "refused": len(s.refused)}
    for k in ks:
        rows = {method: figures(s, k, method) for method in METHODS}
        out[str(k)] = {
            "ours": rows,
            "reported": {who: dict(zip(FIELDS, v)) for who, v in REPORTED[name][k].items()},
        }
        told = ", ".join(
            f"{m} {r['ncp']['value']:.1f}% / {r['pureness']['value']:.0f}% ({r['found']}/{r['n']})"
            for m, r in rows.items()
            if r["found"]
        )
        reported = REPORTED[name][k]
        print(
            f"{name} k={k}: NCP / pureness (found) {told}; reported Mondrian {reported['mondrian'][:2]}, CF-K "
            f"{reported['cfk'][:2]}",
            flush=True,
        )
    return out


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--k", nargs="+", type=int, default=[5, 10, 20])
    parser.add_argument("--most", type=int, default=400, help="refused people per data set")
    options = parse(parser, RESULT)
    about = provenance(options.sets, seed=0)
    found = {}
    for name in options.sets:
        found[name] = run(name, options.k, options.most)
        write(options, {**about, "most": options.most, "sets": found})


if __name__ == "__main__":
    main()
