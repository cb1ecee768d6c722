"""Answers that people can act on: features changed, cost, blur, plausibility and time of CF-K's rewards beside NICE's.

Every data set as it is registered, 60% of the rows for training, a forest of 100 trees, and the first 200 test rows
that it refuses. Times are CPU milliseconds per query on one thread, in one batch; `beyond_model` leaves the forest out.

python benchmarks/speed/actionable.py [--sets heart_c cmc ...] [--splits 0 1 2] [--quick]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from _record import parse, provenance, write
from threadpoolctl import threadpool_limits

import countervail as cv
from countervail.core.stats import mean_interval
from countervail.model import train_forest

K = 10
RESULT = Path(__file__).parents[1] / "results" / "actionable.json"
QUASI = {"heloc": ["ExternalRiskEstimate", "MSinceOldestTradeOpen", "NumSatisfactoryTrades", "NumTotalTrades"]}
# What a person cannot change, or only one way.
LIMITS: dict[str, dict[str, Any]] = {
    "german_credit": {"immutable": ["personal_status", "foreign_worker"], "monotone": {"age": "up"}},
    "heart_c": {"immutable": ["sex"], "monotone": {"age": "up"}},
    "cmc": {"monotone": {"WifeAge": "up", "ChildrenBorn": "up"}},
    "adult": {"immutable": ["sex", "race"], "monotone": {"age": "up"}, "ranges": {"hours-per-week": (10, 60)}},
    "default_credit": {"immutable": ["SEX"], "monotone": {"AGE": "up"}, "ranges": {"LIMIT_BAL": (10_000, 500_000)}},
    "heloc": {"monotone": {"MSinceOldestTradeOpen": "up", "NumTotalTrades": "up"}},
}
METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "groups_none": (cv.CFK, {"k": K, "reward": "none"}),
    **{
        f"nice_{r}": (cv.NICE, {"reward": r, "target": "favourable"}) for r in ("sparsity", "proximity", "plausibility")
    },
    **{f"groups_{r}": (cv.CFK, {"k": K, "reward": r}) for r in ("sparsity", "proximity", "plausibility")},
    "exact_sparsity": (cv.CFK, {"k": K, "search": "exact"}),
    "groups_three": (cv.CFK, {"k": K, "n_counterfactuals": 3}),
}
# The specification's row of features changed by "sparsity", and its NCP in percent.
EXPECTED = {
    "german_credit": (1.00, 0.000),
    "heart_c": (1.67, 0.156),
    "cmc": (1.00, 0.318),
    "adult": (1.05, 0.003),
    "default_credit": (1.19, 0.000),
    "heloc": (2.11, 0.548),
}


class TimedForest:
    """A model that counts the rows it is asked about, and its own CPU time."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_, self.feature_names_in_ = model, model.classes_, model.feature_names_in_
        self.seconds, self.rows = 0.0, 0

    def predict(self, frame: Any) -> Any:
        """The model's labels."""
        return self._timed(self.model.predict, frame)

    def predict_proba(self, frame: Any) -> Any:
        """The model's scores."""
        return self._timed(self.model.predict_proba, frame)

    def _timed(self, call: Any, frame: Any) -> Any:
        start = time.process_time()
        answer = call(frame)
        self.seconds += time.process_time() - start
        self.rows += len(frame)
        return answer


def setting(name: str, split: int, most: int) -> tuple[cv.Table, Any, cv.Table]:
    """A training table, the forest, and people whom it refuses."""
    table = cv.load(name)
    table = table.with_roles(quasi=QUASI[name]) if name in QUASI else table
    train, test = table.split(test_size=0.4, random_state=split)
    model = train_forest(train)
    refused = ~np.isin(model.predict(test.features), list(train.schema.favourable))
    return train, model, test.take(np.flatnonzero(refused)[:most])


def figures(made: Any, train: cv.Table, forest: Any, refused: cv.Table) -> dict[str, Any]:
    """What the answers are like, and what they take."""
    model = TimedForest(forest)
    start = time.process_time()
    made.fit(train, model)
    fitted = time.process_time() - start
    made.explain(refused.take(range(min(8, len(refused)))))  # kernels are compiled or loaded before the clock starts
    model.seconds, model.rows = 0.0, 0
    start = time.process_time()
    e = made.explain(refused)
    spent, n = time.process_time() - start, len(refused)
    out = {
        "n": n,
        "answers": int(e.found.sum()),
        "answered": len(set(e.query[e.found].tolist())),
        "features": mean_interval(cv.measure.sparsity(e)).to_dict(),
        "recourse_cost": mean_interval(cv.measure.recourse_cost(e)).to_dict(),
        "one_nn": mean_interval(cv.measure.plausibility(e)).to_dict(),
        "fit_s": fitted,
        "ms": 1000 * spent / n,
        "ms_beyond_model": 1000 * (spent - model.seconds) / n,
        "model_rows": model.rows / n,
    }
    if isinstance(made, cv.CFK):
        out |= {
            "ncp_percent": mean_interval(100 * cv.measure.ncp(e)).to_dict(),
            "least_pureness": float(np.nanmin(cv.measure.pureness(e, forest))),
            "fewest_people": int(np.nanmin(cv.measure.degree_of_privacy(e))),
            "sampled": sum(bool(note) for note in e.notes or ()),
            "refuted": e.guarantee.refute(e, train),
        }
    return out


def run(name: str, split: int, most: int, methods: list[str]) -> dict[str, Any]:
    """All figures of one split of one data set."""
    train, forest, refused = setting(name, split, most)
    out = {}
    for method in methods:
        kind, parameters = METHODS[method]
        out[method] = figures(kind(**parameters), train, forest, refused)
        _say(name, split, method, out[method])
    out["groups_limited"] = figures(cv.CFK(k=K, **LIMITS[name]), train, forest, refused)
    _say(name, split, "groups_limited", out["groups_limited"])
    return out


def _say(name: str, split: int, method: str, found: dict[str, Any]) -> None:
    ncp = f", NCP {found['ncp_percent']['value']:.3f}%" if "ncp_percent" in found else ""
    aim = f" (specification {EXPECTED[name][0]})" if method == "groups_sparsity" else ""
    print(
        f"{name} {split} {method}: {found['answered']} of {found['n']} answered, "
        f"{found['features']['value']:.2f} features{aim}, cost {found['recourse_cost']['value']:.3f}{ncp}, "
        f"1-NN {found['one_nn']['value']:.3f}; {found['ms']:.1f} ms, {found['ms_beyond_model']:.2f} beyond the model, "
        f"{found['model_rows']:.0f} model rows",
        flush=True,
    )


def main() -> None:
    """Run the benchmark and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(LIMITS), choices=list(LIMITS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parse(parser, RESULT, quick="one small data set, a handful of answers")
    if options.quick:
        options.sets, options.splits = ["heart_c"], [0]
    most = 10 if options.quick else 200
    about = provenance(options.sets, seed=0)
    with threadpool_limits(1):
        found = {
            name: {str(split): run(name, split, most, options.methods) for split in options.splits}
            for name in options.sets
        }
    write(options, {**about, "k": K, "expected_features_and_ncp_percent": EXPECTED, "sets": found})


if __name__ == "__main__":
    main()
