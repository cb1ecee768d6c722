"""The tables in the pages are those of the recorded results."""

import inspect
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "studies"))

import budgets  # noqa: E402

from countervail.measure import private_quality  # noqa: E402


def test_the_pages_show_the_recorded_tables():
    found = json.loads(budgets.OUTPUT.read_text(encoding="utf-8"))
    for name, text in budgets.tables(found).items():
        page = budgets.PAGES[name]
        assert budgets.place(page, text) == page.read_text(encoding="utf-8"), f"run {budgets.__file__}"


def test_the_recorded_counts_are_what_a_ledger_covers():
    found = json.loads(budgets.OUTPUT.read_text(encoding="utf-8"))
    for epsilon, counts in found["answers"].items():
        for name, answers in counts.items():
            assert budgets.affordable(float(epsilon), found["budgets"][name]) == answers


def test_the_running_figure_understates_delta_as_recorded():
    found = json.loads(budgets.OUTPUT.read_text(encoding="utf-8"))
    case = found["running"][1]
    assert budgets.running_delta(case["epsilon"], case["answers"], case["delta"]) > 5 * case["delta"]


def test_the_page_says_what_plaus_prox_measures():
    neighbours = inspect.signature(private_quality).parameters["neighbours"].default
    words = " ".join(budgets.PAGES["answers"].read_text(encoding="utf-8").split())
    assert (
        f"Plaus_prox: mean distance from the answer to its {neighbours} nearest records, whatever their decision"
    ) in words
