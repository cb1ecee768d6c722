"""One private draw for every answer: PrivateSynthetic beside NICE, a pool without data, and other private explainers.

A forest of 100 trees on 60% of the rows explains people of the other 40% whom it refuses. Every private figure is a
mean over several draws of noise; intervals are over people, whose figures are averaged over the draws first;
differences are paired by person. Time is that of the processor, without the model's own. `compas` and `adult` were
looked at while the mechanism was made, `german_credit` for its size, `cmc` when it was settled what to count of few
people, ACS income, credit card defaults and HELOC with a forerunner; those in `NOT_SEEN` were not.
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
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed")]

from _record import parse, write  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.measure.private import answer_figures  # noqa: E402
from countervail.model import train_forest  # noqa: E402
from countervail.protect.dp.grid import Grid  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "synthetic.json"
SEED = 0
NOT_SEEN = ("acs_public_coverage_ca_2018", "give_me_some_credit", "car")
SETS = ("adult", "compas", "german_credit", "cmc", "acs_income_ca_2018", "default_credit", "heloc", *NOT_SEEN)
OTHER_EPSILONS = (0.001, 0.01, 0.1, 10.0)  # on Adult
NO_DATA = 1e-6  # a budget under which nothing is counted: the pool without data
BANDS = 16  # numbers are compared in at most as many bands


class Timed:
    """A model that knows how long it was asked."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_, self.seconds = model, model.classes_, 0.0

    def predict(self, rows: Any) -> Any:
        """Labels."""
        return self._timed(self.model.predict, rows)

    def predict_proba(self, rows: Any) -> Any:
        """Scores."""
        return self._timed(self.model.predict_proba, rows)

    def _timed(self, ask: Any, rows: Any) -> Any:
        start = time.process_time()
        said = ask(rows)
        self.seconds += time.process_time() - start
        return said


class People:
    """Figures of each person under one mechanism, draw by draw."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.figures: dict[str, list[np.ndarray]] = {"dist_rec": [], "plaus_prox": [], "changes": [], "correct": []}
        self.fit_seconds: list[float] = []
        self.answer_ms: list[float] = []

    def add(self, made: Any, fit_seconds: float) -> None:
        """The answers of one draw."""
        s = self.setting
        made.explain(s.rows.iloc[:2])  # compiled
        spent, start = s.model.seconds, time.process_time()
        answers = made.explain(s.rows)
        taken = time.process_time() - start - (s.model.seconds - spent)
        found = answer_figures(answers, s.model.model, table=s.train)
        differ = answers.factuals.astype(object).to_numpy() != answers.counterfactuals.astype(object).to_numpy()
        self.figures["dist_rec"].append(found.dist_rec)
        self.figures["plaus_prox"].append(found.plaus_prox)
        self.figures["changes"].append(differ.sum(axis=1).astype(float))
        self.figures["correct"].append(found.correct.astype(float))
        self.fit_seconds.append(fit_seconds)
        self.answer_ms.append(1000 * taken / len(s.rows))

    def mean(self, name: str) -> np.ndarray:
        """Each person's mean over the draws."""
        found: np.ndarray = np.mean(self.figures[name], axis=0)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Means with 95% intervals over people, and the range of the draws' means."""
        out: dict[str, Any] = {"draws": len(self.fit_seconds)}
        for name, draws in self.figures.items():
            means = [float(d.mean()) for d in draws]
            out[name] = {**plain_json(mean_interval(self.mean(name), 0.95)), "draws": [min(means), max(means)]}
        times = {"fit_seconds": self.fit_seconds, "answer_ms": self.answer_ms}
        return {**out, **{n: float(np.median(v)) for n, v in times.items()}}


class Setting:
    """A data set, a model, and the people who ask."""

    def __init__(self, name: str, queries: int) -> None:
        self.name = name
        table, self.missing = load_declared(name)
        self.train, self.test = table.split(test_size=0.4, random_state=SEED)
        self.model = Timed(train_forest(self.train))
        refused = self.test.take(self.model.predict(self.test.features) != table.schema.favourable[0])
        self.rows = refused.features.iloc[:queries].reset_index(drop=True)

    def fitted(self, made: Any) -> tuple[Any, float]:
        """A fitted explainer, and the seconds it took beyond the model's."""
        spent, start = self.model.seconds, time.process_time()
        made.fit(self.train, self.model)
        return made, time.process_time() - start - (self.model.seconds - spent)


def study(name: str, queries: int, draws: int) -> dict[str, Any]:
    """All mechanisms on one data set."""
    s = Setting(name, queries)
    found: dict[str, People] = {}

    def run(label: str, make: Any, times: int) -> Any:
        people = found[label] = People(s)
        for _ in range(times):
            made, seconds = s.fitted(make())
            people.add(made, seconds)
        show(name, label, people)
        return made

    for reward in ("none", "sparsity", "typical"):
        run(f"NICE {reward}", lambda r=reward: cv.NICE(r, target="favourable"), 1)
    private = {"missing": s.missing}
    for reward in ("sparsity", "typical"):
        run(f"no data, {reward}", lambda r=reward: cv.PrivateSynthetic(NO_DATA, reward=r, **private), 1)
    run("PrivateHistograms", lambda: cv.PrivateHistograms(1.0, adjacency="add-remove", **private), draws)
    run("PrivateNeighbours, 1/100 each", lambda: cv.PrivateNeighbours(0.01, **private), draws)
    level, apart = "", []
    for reward in ("sparsity", "typical"):
        for _ in range(draws):
            made, seconds = s.fitted(cv.PrivateSynthetic(1.0, reward=reward, **private))
            found.setdefault(f"PrivateSynthetic, {reward}", People(s)).add(made, seconds)
            level = made.level_
            apart.append(fidelity(made, s))
        show(name, f"PrivateSynthetic, {reward}", found[f"PrivateSynthetic, {reward}"])
    if name == "adult":
        for epsilon in OTHER_EPSILONS:
            run(
                f"PrivateSynthetic, typical, epsilon {epsilon:g}",
                lambda e=epsilon: cv.PrivateSynthetic(e, reward="typical", **private),
                draws,
            )
    base = found["NICE sparsity"].mean("plaus_prox")
    paired = {
        label: plain_json(mean_interval(found[label].mean("plaus_prox") - base, 0.95))
        for label in found
        if label != "NICE sparsity"
    }
    figures = {n: float(np.mean([a[n] for a in apart])) for n in apart[0]}
    print(name, level, {n: round(v, 4) for n, v in figures.items()}, flush=True)
    return {
        "n_train": len(s.train),
        "n_people": len(s.rows),
        "columns": len(s.train.schema.features),
        "level": level,
        "synthetic_table": figures,
        "found": {label: people.to_dict() for label, people in found.items()},
        "plausibility_less_that_of_nice_sparsity": paired,
    }


def fidelity(made: Any, s: Setting) -> dict[str, float]:
    """Total variation of columns and of pairs of columns, and how often synthetic rows are somebody's, in or out."""
    grid: Grid = made.public_.grid
    a, b, other = made.codes_, grid.codes(s.train.features), grid.codes(s.test.features)
    ones, bands = [], []
    for j, m in enumerate(grid.sizes.tolist()):
        p, q = (np.bincount(x[:, j], minlength=m) / len(x) for x in (a, b))
        ones.append(np.abs(p - q).sum() / 2)
        cuts = np.arange(m - 1)
        if grid.axes[j].ordered and m > BANDS:
            cuts = np.unique(np.quantile(b[:, j], np.linspace(0, 1, BANDS + 1)[1:-1]))
        bands.append((np.searchsorted(cuts, a[:, j]), np.searchsorted(cuts, b[:, j]), len(cuts) + 1))
    twos = []
    for i, (ai, bi, _) in enumerate(bands):
        for aj, bj, m in bands[i + 1 :]:
            size = (max(int(ai.max()), int(bi.max())) + 1) * m
            p, q = (np.bincount(x * m + y, minlength=size) / len(x) for x, y in ((ai, aj), (bi, bj)))
            twos.append(np.abs(p - q).sum() / 2)
    same = np.random.default_rng(SEED)
    few = min(len(b), len(other))  # as many people on both sides
    hits = [_hits(a, x[same.permutation(len(x))[:few]]) for x in (b, other)]
    return {
        "one_way": float(np.mean(ones)),
        "two_way": float(np.mean(twos)),
        "rows_of_training_people": hits[0],
        "rows_of_others": hits[1],
    }


def _hits(made: np.ndarray, people: np.ndarray) -> float:
    """The share of synthetic rows that equal somebody's."""
    known = {row.tobytes() for row in people.astype(np.int64)}
    return float(np.mean([row.tobytes() in known for row in made.astype(np.int64)]))


def show(name: str, label: str, people: People) -> None:
    """One line."""
    q = people.to_dict()
    figures = "  ".join(f"{n} {q[n]['value']:.3f}" for n in ("correct", "dist_rec", "plaus_prox", "changes"))
    times = f"fit {q['fit_seconds']:.2f} s, {q['answer_ms']:.1f} ms each"
    print(f"{name[:14]:<15}{label:<42}{figures}  {times}", flush=True)


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200, help="people explained per data set (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=5, help="draws of noise (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    given = parse(parser, RESULTS, quick="20 people, two draws, one set")
    if given.quick:
        given.queries, given.draws, given.sets = 20, 2, ["compas"]
    about = provenance(None, *given.sets)
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"sets": {}, "data_sha256": {}}
    about["data_sha256"] = old["data_sha256"] | about["data_sha256"]
    sets = dict(old["sets"])  # sets that are not asked for stay as they are, with the commit that they belong to
    for name in given.sets:
        sets[name] = {"commit": about["commit"], **study(name, given.queries, given.draws)}
        note = "noise from the system's entropy, epsilon 1 and delta 1e-6 unless told; 95% intervals over people"
        write(given, {**about, "note": note, "sets": {n: sets[n] for n in SETS if n in sets}})


if __name__ == "__main__":
    main()
