"""A small version of `benchmarks/studies/coverage.py`: intervals hold the truth for every estimator of an audit."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).resolve().parents[2] / "benchmarks" / "studies" / "coverage.py"


@pytest.fixture(scope="module")
def study():
    before = list(sys.path)
    yield runpy.run_path(str(STUDY))
    sys.path[:] = before


def test_intervals_hold_the_truth(study, seeds):
    runs = len(seeds(60, 2000))
    for case in study["cases"]():
        held = study["covered"](case, runs)
        assert held.high >= 0.93, case[:2]
        assert case[2] or held.low <= 0.97, case[:2]


def test_harmless_batteries_are_not_rejected(study):
    rng = np.random.default_rng(0)
    assert sum(study["battery"](rng, 15, 0.05) for _ in range(50)) <= 2
