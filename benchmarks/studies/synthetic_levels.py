"""What PrivateSynthetic had better count of few people: pairs of columns, columns, columns by decision, or nothing.

Each level is forced on small sets at small budgets, whatever the noisy number of people says. The thresholds in
`protect/dp/synthetic/draw.py` were chosen after such runs on COMPAS, CMC and German credit; HELOC and credit card
defaults were run afterwards.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "benchmarks" / "studies")]

from _record import parse, write  # noqa: E402
from synthetic import People, Setting, fidelity  # noqa: E402

import countervail as cv  # noqa: E402
from _private import provenance  # noqa: E402
from countervail.core.stats import mean_interval, plain_json  # noqa: E402
from countervail.protect.dp.synthetic import private_synthetic  # noqa: E402
from countervail.protect.dp.synthetic.draw import CHOICE, ONES, PAIRS, TOTAL, BudgetShares  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "synthetic_levels.json"
CHOSEN_BY = {"compas": (0.1, 0.3), "cmc": (0.1, 0.3, 1.0), "german_credit": (0.1, 0.3, 1.0)}
CASES = {**CHOSEN_BY, "heloc": (0.1, 0.3), "default_credit": (0.1,)}
REWARDS = ("sparsity", "typical")
Rule = Callable[[int, int, int, Any], BudgetShares]


def columns(by_decision: bool) -> Rule:
    """Columns alone."""

    def rule(total: int, d: int, classes: int, budget: Any) -> BudgetShares:
        none = Fraction(0)
        return BudgetShares("columns", classes if by_decision else 1, budget.total * (1 - TOTAL) / d, none, none)

    return rule


def pairs(total: int, d: int, classes: int, budget: Any) -> BudgetShares:
    """Pairs of columns, for all decisions together."""
    whole = budget.total
    return BudgetShares("pairs", 1, whole * ONES / d, whole * CHOICE / (d - 1), whole * PAIRS)


def nothing(total: int, d: int, classes: int, budget: Any) -> BudgetShares:
    """Public rows."""
    return BudgetShares("nothing", 1, budget.total * (1 - TOTAL) / d, Fraction(0), Fraction(0))


LEVELS: dict[str, Rule] = {
    "nothing": nothing,
    "columns by decision": columns(True),
    "columns": columns(False),
    "pairs": pairs,
}


def measured(s: Setting, epsilon: float, rule: Rule, draws: int) -> tuple[dict[str, People], float]:
    """Both searches in the same draws, and the total variation of pairs."""
    people, apart = {r: People(s) for r in REWARDS}, []
    for _ in range(draws):
        with patch.object(BudgetShares, "of", rule):
            made, seconds = s.fitted(cv.PrivateSynthetic(epsilon, reward="sparsity", missing=s.missing))
            people["sparsity"].add(made, seconds)
            held = made.draw_
            with patch.object(private_synthetic, "draw_counts", lambda *records, held=held: held):
                made, seconds = s.fitted(cv.PrivateSynthetic(epsilon, reward="typical", missing=s.missing))
            people["typical"].add(made, seconds)
        apart.append(fidelity(made, s)["two_way"])
    return people, float(np.mean(apart))


def study(name: str, epsilons: tuple[float, ...], queries: int, draws: int) -> dict[str, Any]:
    """All levels at these budgets; differences are paired by person."""
    s = Setting(name, queries)
    d, out = len(s.train.schema.features), {}
    for epsilon in epsilons:
        budget = cv.PrivateSynthetic(epsilon)._budget()
        on_pairs = len(s.train) / budget.deviation(budget.total * PAIRS / (d - 1))
        on_columns = len(s.train) / budget.deviation(budget.total * (1 - TOTAL) / d)
        found = {m: measured(s, epsilon, rule, 1 if m == "nothing" else draws) for m, rule in LEVELS.items()}
        levels: dict[str, Any] = {}
        for level, (people, apart) in found.items():
            levels[level] = {"two_way": apart}
            for reward in REWARDS:
                base = found["columns"][0][reward].mean("plaus_prox")
                less = mean_interval(people[reward].mean("plaus_prox") - base, 0.95)
                figures = people[reward].to_dict()
                levels[level][reward] = {**figures, "plausibility_less_that_of_columns": plain_json(less)}
                near = figures["plaus_prox"]["value"]
                print(f"{name:<14} {epsilon:<4g} {level:<20} {reward:<9} {near:.3f} {less.value:+.3f}", flush=True)
        out[f"{epsilon:g}"] = {"people_per_noise": {"pairs": on_pairs, "columns": on_columns}, "levels": levels}
    about = {"n_train": len(s.train), "n_people": len(s.rows), "draws": draws}
    return {**about, "epsilons": out}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100, help="people explained per data set (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=5, help="draws of noise (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", default=list(CASES), choices=list(CASES))
    given = parse(parser, RESULTS, quick="20 people, one draw, one set")
    if given.quick:
        given.queries, given.draws, given.sets = 20, 1, ["cmc"]
    about = provenance(None, *given.sets)
    old = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"sets": {}, "data_sha256": {}}
    about["data_sha256"] = old["data_sha256"] | about["data_sha256"]
    sets = dict(old["sets"])
    for name in given.sets:
        sets[name] = {"commit": about["commit"], **study(name, CASES[name], given.queries, given.draws)}
        write(given, {**about, "note": "delta 1e-6; 95% intervals over people, paired", "sets": sets})


if __name__ == "__main__":
    main()
