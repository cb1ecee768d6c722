"""The guide shows what was recorded."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What fails of these is not in the draws that an audit looks at: see their docstrings.
OF_OTHERS = {f"published-{name}" for name in ("recourse", "prototypes", "robust-svm", "laplace-recourse")}


@pytest.fixture(scope="module")
def page():
    sys.path.insert(0, str(ROOT / "benchmarks" / "studies"))
    try:
        import published_page
    finally:
        sys.path.pop(0)
    return published_page


@pytest.fixture(scope="module")
def record(page):
    return json.loads(page.RESULTS.read_text(encoding="utf-8"))


def test_the_tables_of_the_guide_are_generated(page, record):
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.tables(record)) == text


def test_every_published_mechanism_was_caught_at_a_claim_of_one(record):
    """All that the paper itself proposes."""
    # The specification's figures: inline about 7.5, noisy max 8.3, noise after the search 2.1.
    least = {"published-inline": 7.5, "published-noisy-max": 8.3, "published-laplace": 2.1}
    for name, audit in record["audits"].items():
        if name in OF_OTHERS:
            assert audit["worst"] <= 2.0
        else:
            assert audit["worst"] > least.get(name, 1.0) if name.startswith("published-") else audit["worst"] <= 1.0


def test_every_row_has_its_people_and_its_interval(record):
    for result in record["beside_the_paper"].values():
        for row in result["rows"]:
            assert row["reported"] is not None and row["people"] >= 100
            assert all(f["low"] <= f["value"] <= f["high"] for f in row["figures"].values())
