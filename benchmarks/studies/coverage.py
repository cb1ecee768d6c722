"""Do the intervals of an audit hold the truth? Simulated runs with known rates, for every estimator that it uses.

Each row: 2,000 runs, how often a 95% interval held the truth, and the interval of that
share. Some intervals (`cautious`) may hold it more often than they promise, never less: exact ones of Clopper and
Pearson, because counts are steps and they keep their promise at every rate; exact bounds of epsilon; the worst of
several groups, sure for all at once; what people with several rows weigh, as if their rows always fared alike; and what
members reach beyond strangers by the same conditions, which are taken for conditions of their own. Attacks
are run on harmless releases too: a few strangers' records, each handed to many askers, and a table of strangers with
one to five rows each.
Largest and average risk are counted on all that was released and have no interval. Last, batteries of attacks on
releases that are just acceptable, or harmless: how often any is rejected after Holm's correction; and whole audits of
answers that are made up.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _record import ROOT, code, parse, versions, write

import countervail as cv
from countervail.attack import AttackResult
from countervail.attack.result import rate, share_of
from countervail.attack.shared.crowds import coincidence
from countervail.attack.shared.planted import explained, open_release
from countervail.attack.shared.roc import auc, tpr_at
from countervail.auditing.appetite import Appetite
from countervail.auditing.finding import Counts, Finding, WorstGroup, worst_group
from countervail.auditing.verdict import decide, overall
from countervail.core.guarantee.evidence import epsilon_bound
from countervail.core.guarantee.one_run import one_run_bound
from countervail.core.stats import (
    Estimate,
    clopper_pearson,
    difference_interval,
    excess_interval,
    mean_interval,
    paired_excess_interval,
)
from countervail.testing import small_table

RESULTS = ROOT / "benchmarks" / "results" / "coverage.json"
RUNS, BATTERIES, WHOLE = 2000, 1000, 100
ATTACKED = "excess, attacked"
NOBODY = clopper_pearson(0, 0)
Case = tuple[
    str, str, bool, Callable[[np.random.Generator], tuple[Estimate, float]]
]  # estimator, setting, cautious, run


def rates() -> Iterator[Case]:
    """Shares of members, of controls, and of blind guesses."""
    for n, p in ((50, 0.1), (200, 0.02), (1000, 0.3)):
        yield "rate", f"{p:g} of {n}", True, lambda rng, n=n, p=p: (clopper_pearson(int(rng.binomial(n, p)), n), p)


def excesses() -> Iterator[Case]:
    """Success beyond controls: of plain shares, of averages over columns, and of a model's copies."""
    for n, m, p, q in ((200, 200, 0.3, 0.1), (500, 200, 0.5, 0.5), (100, 100, 0.95, 0.3), (300, 300, 0.1, 0.05)):

        def one(rng: Any, n: int = n, m: int = m, p: float = p, q: float = q) -> tuple[Estimate, float]:
            return excess_interval(int(rng.binomial(n, p)), n, int(rng.binomial(m, q)), m), (p - q) / (1 - q)

        yield "excess", f"{p:g} of {n}, controls {q:g} of {m}", False, one

    def averaged(rng: Any) -> tuple[Estimate, float]:
        skill = rng.beta(2, 2, (2, 150, 1)) * np.array([0.9, 0.5])[:, None, None]
        inside, outside = (rate(v.astype(bool)) for v in rng.random((2, 150, 4)) < skill)
        return AttackResult("x", inside, outside, NOBODY).excess, (0.45 - 0.25) / 0.75

    def copied(rng: Any) -> tuple[Estimate, float]:
        easy = rng.random(300) < 0.8  # rows that any copy of the model gets right: both copies are tried on the same
        better, worse = (easy | (rng.random(300) < p) for p in (0.6, 0.3))
        hits, fewer, neither = (int(v.sum()) for v in (better, worse, ~better & ~worse))
        return paired_excess_interval(hits, fewer, neither, 300), (0.92 - 0.86) / 0.14

    yield "excess of averages", "150 people, 4 columns", False, averaged
    yield "excess of extraction fidelity", ".92 and .86 of the same 300 rows", False, copied


def averages() -> Iterator[Case]:
    """Means: over columns for each person, of distances, of costs; and differences of means."""

    def columns(rng: Any) -> tuple[Estimate, float]:
        right = rng.random((150, 4)) < rng.beta(2, 2, (150, 1))
        return share_of(right.mean(axis=1)), 0.5

    yield "average rate", "150 people, 4 columns", False, columns
    yield "mean", "100 gamma", False, lambda rng: (mean_interval(rng.gamma(2.0, 1.0, 100)), 2.0)
    yield (
        "difference of means",
        "60 and 120 gamma",
        False,
        lambda rng: (difference_interval(rng.gamma(2.0, 1.0, 60), rng.gamma(3.0, 1.0, 120)), -1.0),
    )


def membership() -> Iterator[Case]:
    """Areas and true positive rates of normal scores."""
    for shift, n, m in ((0.0, 100, 100), (0.5, 50, 200), (1.5, 200, 200), (3.0, 200, 200)):

        def area(rng: Any, shift: float = shift, n: int = n, m: int = m) -> tuple[Estimate, float]:
            return auc(rng.normal(shift, 1, n), rng.normal(0, 1, m)), float(norm.cdf(shift / math.sqrt(2)))

        yield "AUC", f"{norm.cdf(shift / math.sqrt(2)):.3f}, {n} and {m}", False, area
    for shift, fpr, n in ((0.0, 0.1, 400), (1.0, 0.1, 400), (2.0, 0.05, 400), (1.0, 0.01, 1000)):

        def power(rng: Any, shift: float = shift, fpr: float = fpr, n: int = n) -> tuple[Estimate, float]:
            return tpr_at(rng.normal(shift, 1, n), rng.normal(0, 1, n), fpr), float(norm.sf(norm.isf(fpr) - shift))

        yield "TPR at FPR", f"shift {shift:g}, FPR {fpr:g}, {n} and {n}", False, power


def crowds() -> Iterator[Case]:
    """Conditions that one of n strangers meets, told from fewer strangers."""
    for spread in (0.0, 1.0):

        def alone(rng: Any, spread: float = spread) -> tuple[Estimate, float]:
            w = np.minimum(0.003 * rng.lognormal(0, spread, 20_000), 1)
            return coincidence(rng.binomial(200, w[:150]), 300, 200), float((300 * w * (1 - w) ** 299).mean())

        def beyond(rng: Any, spread: float = spread) -> tuple[Estimate, float]:
            w = np.minimum(0.003 * rng.lognormal(0, spread, 20_000), 1)
            leaked = rng.random(150) < 0.2  # a fifth of the conditions are somebody's record, whom nobody else meets
            inside = np.where(leaked, 1, rng.binomial(300, w[:150]))
            members = clopper_pearson(int((inside == 1).sum()), 150)
            outside = coincidence(rng.binomial(200, w[:150]), 300, 200)
            return AttackResult("x", members, outside, NOBODY).excess, 0.2

        yield "coincidence among strangers", f"spread {spread:g}, 150 conditions, 200 for 300", False, alone
        yield "excess over coincidence", f"spread {spread:g}, 150 conditions, 200 for 300", True, beyond


def epsilons() -> Iterator[Case]:
    """Lower bounds of epsilon: randomised response, and coins guessed in one run, at a confidence of 95%."""

    def answers(rng: Any) -> tuple[Estimate, float]:
        p = math.e / (1 + math.e)
        a, b = ((rng.random(4000) < q).astype(np.int64) for q in (p, 1 - p))
        found = epsilon_bound((a[:1000], b[:1000]), (a[1000:], b[1000:]), alpha=0.05)
        return Estimate(found.epsilon, found.epsilon, math.inf, 3000), 1.0

    def coins(rng: Any) -> tuple[Estimate, float]:
        right = int(rng.binomial(500, math.e / (1 + math.e)))
        return Estimate(0.0, one_run_bound(500, 500, right, alpha=0.05).epsilon, math.inf, 500), 1.0

    yield "epsilon, at least", "randomised response, 3,000 draws", True, answers
    yield "epsilon of one run, at least", "500 coins", True, coins


def drawn(rng: Any, people: int, rows: int = 1) -> cv.Table:
    """People with up to so many rows, who keep their quasi-identifiers."""
    who = np.repeat(np.arange(people), rng.integers(1, rows + 1, people))
    columns = {"age": rng.integers(18, 90, people), "place": rng.integers(0, 20, people)}
    frame = pd.DataFrame({n: v[who] for n, v in columns.items()})
    frame["ill"] = rng.choice(["no", "flu", "cold"], people)[who]
    drawing = rng.integers(10**15)  # nobody is drawn twice
    frame["id"] = [f"{drawing}-{w}" for w in who]
    return cv.Table.from_frame(frame, identifiers=["id"], quasi_identifiers=list(columns), sensitive=["ill"])


def attacked() -> Iterator[Case]:
    """Attacks on releases that say as much of strangers as of members: their excess is nought."""

    def equal(rng: Any) -> tuple[Estimate, float]:
        table, control, others, askers = (drawn(rng, n) for n in (60, 60, 30, 150))
        cells = others.features.iloc[rng.integers(30, size=150)]
        release = explained(askers.features, cells, table)
        return cv.attack.Reidentification(share=0.3).run(release, table, control).excess, 0.0

    def several(rng: Any) -> tuple[Estimate, float]:
        table, control, others = (drawn(rng, 40, rows=5) for _ in range(3))
        return cv.attack.Reidentification(share=0.3).run(open_release(others), table, control).excess, 0.0

    def inferred(rng: Any) -> tuple[Estimate, float]:
        table, control, others = (drawn(rng, 40, rows=5) for _ in range(3))
        return cv.attack.AttributeInference().run(open_release(others), table, control).excess, 0.0

    yield ATTACKED, "30 records told to 150 askers, re-identification", False, equal
    yield ATTACKED, "40 people of 1 to 5 rows, re-identification", True, several
    yield ATTACKED, "40 people of 1 to 5 rows, attribute inference", True, inferred


def groups() -> Iterator[Case]:
    """The worst of several groups, chosen because it looks worst."""

    def worst(rng: Any) -> tuple[Estimate, float]:
        truth = {str(g): 0.1 + 0.02 * g for g in range(6)}
        counts = {
            g: Counts(int(rng.binomial(60, 0.1 + 0.9 * x)), 60, int(rng.binomial(200, 0.1)), 200)
            for g, x in truth.items()
        }
        found = worst_group(counts)
        assert found is not None
        return found.excess(), truth[found.group]

    yield "worst of six groups", "60 people each", True, worst


def battery(rng: Any, attacks: int, excess: float, parts: int = 0) -> bool:
    """Whether a battery of attacks whose true excess is this, in so many groups too, rejects anything."""
    p = 0.2 + 0.8 * excess

    def worst() -> WorstGroup | None:
        return worst_group(
            {str(g): Counts(int(rng.binomial(60, p)), 60, int(rng.binomial(200, 0.2)), 200) for g in range(parts)}
        )

    kinds = ("singling out", "linkability", "inference", "membership")
    found = [
        Finding(
            str(i),
            kinds[i % 4],
            False,
            "",
            status="run",
            counts=Counts(int(a), 200, int(b), 200),
            planted=Counts(100, 100, 0, 100),
            worst=worst(),
        )
        for i, (a, b) in enumerate(zip(rng.binomial(200, p, attacks), rng.binomial(200, 0.2, attacks)))
    ]
    return overall(decide(found, (), Appetite.default()), found) == "reject"


class MadeUp:
    """Answers each with a row whose values strangers have, drawn column by column, the same whenever it is asked."""

    def __init__(self, strangers: cv.Table, table: cv.Table) -> None:
        self.held, self.table = strangers.features, table

    def explain(self, rows: Any) -> cv.Explanations:
        """The same row for the same question."""
        rows = pd.DataFrame(rows).reset_index(drop=True)
        at = pd.util.hash_pandas_object(rows.astype(str), index=False).to_numpy()
        places = {n: (at // 7**j % len(self.held)).astype(int) for j, n in enumerate(self.held)}
        return explained(rows, pd.DataFrame({n: self.held[n].iloc[p].array for n, p in places.items()}), self.table)


def whole(seed: int) -> str:
    """The verdict of all attacks on answers that hold nothing of the table, where 0.09 is accepted of each."""
    wishes = {"singling_out": 0.09, "linkability": 0.09, "inference": 0.09, "membership": 0.09}
    members, rest = small_table(1500, seed=seed).split(test_size=2 / 3, random_state=seed)
    control, strangers = rest.split(test_size=0.5, random_state=seed)
    appetite = {"version": 1, "recipients": {"public": wishes}}
    what = MadeUp(strangers, members)
    return cv.audit(what, members, control=control, appetite=appetite, budget=None, jobs=1).verdict


def cases() -> list[Case]:
    """All of them."""
    return [c for part in (rates, excesses, averages, membership, crowds, epsilons, groups, attacked) for c in part()]


def covered(case: Case, runs: int, seed: int = 0) -> Estimate:
    """How often an interval holds the truth."""
    rng, held = np.random.default_rng(seed), 0
    for _ in range(runs):
        found, truth = case[3](rng)
        held += found.low <= truth <= found.high
    return clopper_pearson(held, runs)


def main() -> None:
    """Simulate, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="100 runs")
    origin = code()
    runs, tries = (100, 50) if given.quick else (RUNS, BATTERIES)
    rows = []
    for case in cases():
        found = covered(case, runs)
        rows.append({"estimator": case[0], "setting": case[1], "cautious": case[2], "held": found.to_dict()})
        print(f"{case[0]:32} {case[1]:45} {found} {'cautious' if case[2] else ''}", flush=True)
    batteries = []
    for attacks, parts in ((6, 0), (15, 0), (24, 0), (24, 5)):
        for excess in (0.09, 0.0):
            rng = np.random.default_rng(7)
            share = clopper_pearson(sum(battery(rng, attacks, excess, parts) for _ in range(tries)), tries)
            said = {"attacks": attacks, "groups": parts, "true_excess": excess, "accepted": 0.09}
            batteries.append({**said, "rejected": share.to_dict()})
            print(f"{attacks} attacks, {parts} groups, true excess {excess:g}: {share} rejected", flush=True)
    audited = [whole(seed) for seed in range(2 if given.quick else WHOLE)]
    harmless = {word: clopper_pearson(audited.count(word), len(audited)).to_dict() for word in ("reject", "void")}
    print(f"{len(audited)} audits of made-up answers, all attacks: {harmless}", flush=True)
    told = {"runs": runs, "coverage": rows, "batteries": batteries, "audits": harmless}
    write(given, {**origin, "seed": 0, "versions": versions(), **told})


if __name__ == "__main__":
    main()
