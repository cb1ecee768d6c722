"""What a budget buys: how many answers, at which utility; and how far a running figure would be from a promise.

Answers are counted by the ledger itself; utility is that of benchmarks/results/dp_utility.json. The running figure is
"what the answers so far cost by optimal composition", against somebody who stops when it suits him: his true delta,
over all ways to stop, is computed exactly (the worst answers are coins, and only the number of truths matters). The
tables go into docs/guide/budgets.md and docs/decisions/ledger.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from _record import code, parse, versions, write, writes  # noqa: E402

from countervail.core.errors import CountervailError  # noqa: E402
from countervail.core.guarantee.composition import composed_epsilon  # noqa: E402
from countervail.ledger import Ledger  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
OUTPUT = RESULTS / "budgets.json"
PAGES = {"answers": ROOT / "docs" / "guide" / "budgets.md", "running": ROOT / "docs" / "decisions" / "ledger.md"}
BUDGETS: dict[str, dict[str, Any]] = {
    "1, basic": {"epsilon": 1.0},
    "4, basic": {"epsilon": 4.0},
    "4, 1e-6, zcdp": {"epsilon": 4.0, "delta": 1e-6},
    "4, 1e-6, optimal": {"epsilon": 4.0, "delta": 1e-6, "composition": "optimal"},
    "20, 1e-6, zcdp": {"epsilon": 20.0, "delta": 1e-6},
}
SMALL = ("0.01",)  # an epsilon per answer that the utility study does not go down to
METHODS = {
    "all": "PrivateNeighbours",
    "all, no candidate": "the same, no record behind it",
    "noisy-counterfactual": "NoisyCounterfactual",
    "histograms": "PrivateHistograms (one draw)",
    "dp-table": "DPTable (one draw)",
}


def affordable(each: float, budget: dict[str, Any]) -> int:
    """How many answers of this epsilon a new ledger covers."""
    plan = {"plan": each} if budget.get("composition") == "optimal" else {}
    try:
        return Ledger("people", **budget, **plan).left(each)
    except CountervailError:
        return 0  # the budget does not cover a single one


def running_delta(epsilon: float, answers: int, delta: float) -> float:
    """The true delta of the running figure, for one who may stop after any answer."""
    figure = [0.0] + [composed_epsilon(epsilon, t, delta) for t in range(1, answers + 1)]
    truth = 1 / (1 + math.exp(-epsilon))
    value = np.zeros(answers + 2)
    for t in range(answers, -1, -1):
        told = np.arange(t + 1)
        now = -np.expm1(np.minimum(figure[t] - (2 * told - t) * epsilon, 0.0))
        later = truth * value[1 : t + 2] + (1 - truth) * value[: t + 1] if t < answers else 0.0
        value = np.append(np.maximum(now, later), 0.0)
    return float(value[0])


def measure() -> dict[str, Any]:
    """Counts of answers, utilities, and the running figure."""
    utility = json.loads((RESULTS / "dp_utility.json").read_text(encoding="utf-8"))
    epsilons = [*SMALL, *next(iter(utility["sets"].values()))["found"]["all"]]
    counts = {e: {name: affordable(float(e), b) for name, b in BUDGETS.items()} for e in epsilons}
    rows = []
    for name, held in utility["sets"].items():
        for method in METHODS:
            for e, found in held["found"][method].items():
                figures = {"correct": found["correctness"], "plaus_prox": found["plaus_prox"]["mean"]}
                rows.append({"set": name, "method": method, "epsilon": e, **figures})
    cases = [(0.1, 10), (0.1, 100), (0.1, 1000), (1.0, 100)]
    running = [{"epsilon": e, "answers": n, "delta": 1e-6, "true_delta": running_delta(e, n, 1e-6)} for e, n in cases]
    where = {**code(), "seed": None, "versions": versions(), "utility": {k: utility[k] for k in ("commit", "seed")}}
    return {**where, "budgets": BUDGETS, "answers": counts, "rows": rows, "running": running}


def tables(found: dict[str, Any]) -> dict[str, str]:
    """The tables of the pages, in Markdown."""
    names = list(found["budgets"])
    head = ["epsilon per answer", *(f"budget {n}" for n in names)]
    answers = [[e, *(f"{counts[n]:,}" for n in names)] for e, counts in found["answers"].items()]
    sets = list(dict.fromkeys(r["set"] for r in found["rows"]))
    wide = ["protector", "epsilon", *(f"{s}: {what}" for s in sets for what in ("correct", "Plaus_prox"))]
    told: dict[tuple[str, str], list[str]] = {}
    for r in found["rows"]:
        line = told.setdefault((r["method"], r["epsilon"]), [METHODS[r["method"]], r["epsilon"]])
        line += [f"{r['correct']['value']:.0%}", _interval(r["plaus_prox"])]
    running = [
        [f"{r['answers']:,} of epsilon = {r['epsilon']:g}", f"{r['delta']:g}", f"{r['true_delta']:.2g}",
         f"{r['true_delta'] / r['delta']:.1f}"]
        for r in found["running"]
    ]  # fmt: skip
    return {
        "answers": _markdown(head, answers) + "\n\n" + _markdown(wide, list(told.values())),
        "running": _markdown(["answers at most", "delta claimed", "true delta", "times"], running),
    }


def _interval(mean: dict[str, Any]) -> str:
    return f"{mean['value']:.2f} ({mean['low']:.2f} to {mean['high']:.2f})"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def place(page: Path, text: str) -> str:
    """The page with its table between the marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- table -->\n{text}\n<!-- end -->{after}"


def main() -> None:
    """Measure, write down, and put the tables in their pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, OUTPUT)
    found = measure()
    for name, text in tables(found).items():
        print(text)
        if writes(given):
            PAGES[name].write_text(place(PAGES[name], text), encoding="utf-8")
    write(given, found)


if __name__ == "__main__":
    main()
