"""What a private model costs: accuracy, and answers about it; what counting by decision gains; a million rows.

The people and settings of synthetic.py. With a private model (epsilon 1, delta 1e-6) those ask whom *it* refuses, so
NICE about the same model stands beside. Counting pairs by decision is a third column in every clique, under the same
budget: "without" counts pairs of columns alone. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "benchmarks" / "studies")]

from _record import parse, write  # noqa: E402
from synthetic import SEED, SETS, People, Setting, Timed, fidelity, show  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.protect.dp.synthetic import draw as draw_module  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "private_model.json"
EPSILONS = (0.1, 1.0, 10.0)
MILLION = 1_000_000


class PrivateSetting(Setting):
    """The same people, judged by a private model."""

    def __init__(self, base: Setting, queries: int) -> None:
        self.name, self.missing, self.train, self.test = base.name, base.missing, base.train, base.test
        self.model = Timed(cv.train_private_logistic(self.train, 1.0, missing=self.missing))
        refused = self.model.predict(self.test.features) != self.train.schema.favourable[0]
        self.rows = self.test.features[refused].iloc[:queries].reset_index(drop=True)  # perhaps nobody

    def fitted(self, made: Any) -> tuple[Any, float]:
        """A fitted explainer, and the CPU seconds it took."""
        start = time.process_time()
        made.fit(self.train, self.model)
        return made, time.process_time() - start


def accuracy(s: Setting, draws: int) -> dict[str, Any]:
    """How often models are right about people whom they have not seen."""
    truth = s.test.target.astype(object).to_numpy()
    out: dict[str, Any] = {"forest": float(np.mean(s.model.model.predict(s.test.features) == truth))}
    out["most frequent label"] = float(pd.Series(truth).value_counts(normalize=True).iloc[0])
    for epsilon in EPSILONS:
        right, spent = [], []
        for _ in range(draws):
            start = time.process_time()
            model = cv.train_private_logistic(s.train, epsilon, missing=s.missing)
            spent.append(time.process_time() - start)
            right.append(float(np.mean(model.predict(s.test.features) == truth)))
        out[f"private, epsilon {epsilon:g}"] = {"mean": float(np.mean(right)), "draws": [min(right), max(right)]}
        out[f"private, epsilon {epsilon:g}"]["cpu_seconds"] = float(np.median(spent))
    print(s.name, out, flush=True)
    return out


def answered(base: Setting, queries: int, draws: int) -> dict[str, Any]:
    """Answers about private models, one model per draw: whole promises of epsilon 2."""
    kinds = {
        "NICE sparsity": lambda: cv.NICE("sparsity", target="favourable"),
        "NICE typical": lambda: cv.NICE("typical", target="favourable"),
        "PrivateSynthetic, sparsity": lambda: cv.PrivateSynthetic(1.0, reward="sparsity", missing=base.missing),
        "PrivateSynthetic, typical": lambda: cv.PrivateSynthetic(1.0, reward="typical", missing=base.missing),
    }
    figures: dict[str, list[dict[str, float]]] = {}
    for _ in range(draws):
        s = PrivateSetting(base, queries)
        if len(s.rows) < 10:
            continue  # a model that refuses hardly anybody: nobody to answer
        for label, make in kinds.items():
            people = People(s)
            people.add(*s.fitted(make()))
            means = {n: float(people.mean(n).mean()) for n in people.figures}
            figures.setdefault(label, []).append({**means, "people": len(s.rows)})
            show(s.name, label, people)
    return {
        label: {n: plain_json(mean_interval(np.array([f[n] for f in fs]), 0.95)) for n in fs[0]}
        for label, fs in figures.items()
    }


def third_column(s: Setting, draws: int) -> dict[str, Any]:
    """Pairs by decision, and without."""
    out: dict[str, Any] = {}
    usual = draw_module._APART
    for label, apart in (("with", usual), ("without", np.inf)):
        draw_module._APART = apart
        people, worth = People(s), []
        for _ in range(draws):
            made, seconds = s.fitted(cv.PrivateSynthetic(1.0, reward="typical", missing=s.missing))
            people.add(made, seconds)
            worth.append(fidelity(made, s))
        out[label] = {**people.to_dict(), "two_way": float(np.mean([w["two_way"] for w in worth]))}
        show(s.name, f"decision as third column: {label}", people)
    draw_module._APART = usual
    return out


def million() -> dict[str, float]:
    """CPU seconds of a fit on Adult's people, drawn again a million times, beyond the model."""
    table, missing = load_declared("adult")
    train, _ = table.split(test_size=0.4, random_state=SEED)
    rows = np.random.default_rng(SEED).integers(0, len(train), MILLION)
    big = cv.Table(train.frame.iloc[rows].reset_index(drop=True), train.schema)

    class Quick:
        """A rule that costs nothing."""

        classes_ = np.array(sorted(table.target.dropna().unique()), dtype=object)

        def predict(self, frame: Any) -> Any:
            return self.classes_[(frame["age"].to_numpy() > 40).astype(int)]

    out = {}
    for label, work in (
        ("PrivateSynthetic", lambda: cv.PrivateSynthetic(1.0, missing=missing).fit(big, Quick())),
        ("train_private_logistic", lambda: cv.train_private_logistic(big, 1.0, missing=missing)),
    ):
        start = time.process_time()
        work()
        out[label] = time.process_time() - start
    print("a million rows, CPU seconds", out, flush=True)
    return out


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    given = parse(parser, RESULTS, quick="20 people, one draw, one set")
    if given.quick:
        given.queries, given.draws, given.sets = 20, 1, ["compas"]
    about = provenance(None, *given.sets)
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"sets": {}, "data_sha256": {}}
    about["data_sha256"] = old["data_sha256"] | about["data_sha256"]
    sets, rows = dict(old["sets"]), old.get("million_rows_cpu_seconds")
    for name in given.sets:
        s = Setting(name, given.queries)
        found = {"n_train": len(s.train), "accuracy": accuracy(s, given.draws)}
        found["answers"] = answered(s, given.queries, given.draws)
        if name == "adult":
            found["decision_as_third_column"] = third_column(s, given.draws)
            rows = million()
        sets[name] = {"commit": about["commit"], **found}
        kept = {n: sets[n] for n in SETS if n in sets}
        write(given, {**about, "draws": given.draws, "sets": kept, "million_rows_cpu_seconds": rows})


if __name__ == "__main__":
    main()
