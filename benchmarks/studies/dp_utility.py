"""What private neighbours cost: Adult and German credit, four budgets, three pools, beside plain NICE.

A forest of 100 trees on 60% of the rows explains people of the other 40% whom it refuses. All means and shares come
with 95% intervals. Which pool is best at which epsilon is read off Correctness (at least 99%) and then the sum of
Plaus_prox and Dist_rec; the result is what the default of `PrivateNeighbours` rests on. The same search with a table
that offers no candidate shows how much of it the records contribute.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed")]

from _record import parse, write, writes  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.core.stats import Estimate  # noqa: E402
from countervail.model import train_forest  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "dp_utility.json"
PICTURES = ROOT / "docs" / "figures"
SEED = 0
EPSILONS = (0.1, 1.0, 5.0, 10.0)
POOLS: dict[str, dict[str, Any]] = {
    "all": {"pool": "all"},
    "sampled, 1 slot": {"pool": "sampled", "slots": 1},
    "sampled, 5 slots": {"pool": "sampled", "slots": 5},
    "features, 2 columns": {"pool": "features", "features": 2},
    "features, 4 columns": {"pool": "features", "features": 4},
}
ABLATION = "all, no candidate"  # a table of one refused person: what is left is the model and the public domain
OTHERS = {"dp-table": cv.DPTable, "noisy-counterfactual": cv.NoisyCounterfactual, "histograms": cv.PrivateHistograms}


def study(name: str, queries: int) -> dict[str, Any]:
    """All mechanisms on one data set."""
    table, missing = load_declared(name)
    train, test = table.split(test_size=0.4, random_state=SEED)
    model = train_forest(train)
    refused = test.take(model.predict(test.features) != table.schema.favourable[0])
    rows = refused.features.iloc[:queries].reset_index(drop=True)
    plain = cv.NICE("sparsity", target="favourable").fit(train, model).explain(rows)
    found: dict[str, Any] = {"NICE": {"none": measured(plain, model)}}
    for pool, settings in POOLS.items():
        found[pool] = {}
        for epsilon in EPSILONS:
            made = cv.PrivateNeighbours(epsilon, missing=missing, **settings).fit(train, model)
            found[pool][f"{epsilon:g}"] = measured(made.explain(rows), model)
            show(name, pool, epsilon, found[pool][f"{epsilon:g}"])
    empty = train.take(np.flatnonzero(model.predict(train.features) != table.schema.favourable[0])[:1])
    found[ABLATION] = {}
    for epsilon in EPSILONS:
        made = cv.PrivateNeighbours(epsilon, missing=missing).fit(empty, model)
        found[ABLATION][f"{epsilon:g}"] = measured(made.explain(rows), model, train)
        show(name, ABLATION, epsilon, found[ABLATION][f"{epsilon:g}"])
    for other, kind in OTHERS.items():
        found[other] = {}
        for epsilon in EPSILONS:
            made = kind(epsilon, missing=missing)
            answers = (
                made.fit(train).explain(rows, model) if other == "dp-table" else made.fit(train, model).explain(rows)
            )
            found[other][f"{epsilon:g}"] = measured(answers, model)
            show(name, other, epsilon, found[other][f"{epsilon:g}"])
    return {"n_train": len(train), "n_queries": len(rows), "features": len(train.schema.features), "found": found}


def measured(answers: cv.Explanations, model: Any, table: cv.Table | None = None) -> dict[str, Any]:
    """The six figures as plain data."""
    return cv.measure.private_quality(answers, model, table=table).to_dict()


def show(name: str, pool: str, epsilon: float, q: dict[str, Any]) -> None:
    """One line."""
    figures = f"correct {q['correctness']['value']:.3f}  dist {q['dist_rec']['mean']['value']:.3f}"
    near = f"plaus {q['plaus_prox']['mean']['value']:.3f}  M1 {q['m1']['value']:.3f}"
    print(f"{name:<14}{pool:<22}eps {epsilon:<5g} {figures}  {near}", flush=True)


def best(found: dict[str, Any]) -> dict[str, str]:
    """Per epsilon, the pool of least Dist_rec + Plaus_prox among those with at least 99% correct answers."""

    def order(pool: str, epsilon: str) -> tuple[bool, float]:
        q = found[pool][epsilon]
        return q["correctness"]["value"] < 0.99, q["plaus_prox"]["mean"]["value"] + q["dist_rec"]["mean"]["value"]

    return {f"{e:g}": min(POOLS, key=lambda pool, e=e: order(pool, f"{e:g}")) for e in EPSILONS}


def draw(name: str, found: dict[str, Any]) -> None:
    """The trade-off pictures."""
    from countervail.report.trade_off import trade_off

    PICTURES.mkdir(parents=True, exist_ok=True)
    for key, label in (("dist_rec", "Dist_rec"), ("plaus_prox", "Plaus_prox")):
        shown = ("all", "sampled, 5 slots", "features, 4 columns", ABLATION)
        series = {p: {float(e): Estimate(**q[key]["mean"]) for e, q in found[p].items()} for p in shown}
        svg = trade_off(series, label, without_noise=Estimate(**found["NICE"]["none"][key]["mean"]))
        (PICTURES / f"dp-{name.replace('_', '-')}-{key.replace('_', '-')}.svg").write_text(svg + "\n", encoding="utf-8")


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=500, help="people explained per data set (default: %(default)s)")
    given = parse(parser, RESULTS)
    about = provenance(SEED, "adult", "german_credit")
    sets = {name: study(name, given.queries) for name in ("adult", "german_credit")}
    for name, result in sets.items():
        result["best"] = best(result["found"])
        if writes(given):
            draw(name, result["found"])
        print(name, result["best"])
    text = {
        **about,
        "note": "noise from the system's entropy; 95% intervals over people, one draw of noise per table or histogram",
        "sets": sets,
    }
    write(given, text)


if __name__ == "__main__":
    main()
