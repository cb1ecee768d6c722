"""Rates and areas that tell members: known answers, coverage, and what too few strangers cannot show."""

import numpy as np
import pytest
from scipy.stats import norm

import countervail as cv
from countervail.attack.shared.roc import auc, curve, tell_members, tpr_at
from countervail.testing import small_table


def test_scores_that_part_members_from_strangers():
    told = tell_members(np.arange(100.0) + 1000, np.arange(100.0), 0.1, 0)
    assert told.detail["AUC"].value == 1
    assert told.members.value == 1
    assert told.controls.value <= 0.3


def test_equal_scores_tell_nobody():
    told = tell_members(np.zeros(50), np.zeros(100), 0.1, 0)
    assert (told.members.value, told.controls.value, told.detail["AUC"].value) == (0, 0, 0.5)


def test_areas_are_counted_as_a_slow_twin_counts_them():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, 30).astype(float), rng.integers(0, 4, 20).astype(float)
    slow = np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b])
    assert auc(a, b).value == pytest.approx(slow)


def test_intervals_of_the_area_cover():
    rng = np.random.default_rng(3)
    truth = norm.cdf(1.5 / np.sqrt(2))
    found = [auc(rng.normal(1.5, 1, 200), rng.normal(0, 1, 200)) for _ in range(2000)]
    assert 0.93 <= np.mean([e.low <= truth <= e.high for e in found]) <= 0.97


@pytest.mark.parametrize(("shift", "fpr", "n"), [(1.0, 0.1, 400), (2.0, 0.05, 400)])
def test_intervals_of_the_true_positive_rate_cover(shift, fpr, n):
    rng = np.random.default_rng(4)
    truth = norm.sf(norm.isf(fpr) - shift)
    found = [tpr_at(rng.normal(shift, 1, n), rng.normal(0, 1, n), fpr) for _ in range(500)]
    assert 0.92 <= np.mean([e.low <= truth <= e.high for e in found]) <= 0.98


def test_rates_below_the_resolution_are_no_numbers():
    table, control = small_table(80), small_table(70, seed=1)
    attack = cv.attack.Membership()
    result = attack.run(attack.planted(table, control), table, control)
    assert "TPR at FPR 10.0%" in result.detail
    assert [k for k in result.detail if "0.1%" in k or "1.0%" in k] == []
    assert result.remarks == (
        "TPR at FPR 1.0%: not measurable with n=70 controls; it takes 500.",
        "TPR at FPR 0.1%: not measurable with n=70 controls; it takes 5,000.",
    )
    assert result.to_dict()["remarks"] == list(result.remarks)


def test_curves_rise():
    rng = np.random.default_rng(5)
    points = np.array(curve(rng.normal(1, 1, 500), rng.normal(0, 1, 500)))
    assert (np.diff(points, axis=0) >= 0).all()
    assert points[-1].tolist() == [1, pytest.approx(1, abs=0.05)]


def test_one_stranger_is_too_few():
    with pytest.raises(ValueError, match="at least two people"):
        tell_members(np.zeros(5), np.zeros(1), 0.1, 0)
