"""Intervals and corrections against independent computations."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from countervail.core.errors import ParameterError
from countervail.core.rng import generator
from countervail.core.stats import (
    clopper_pearson,
    excess_interval,
    excess_p_value,
    holm,
    mean_interval,
    paired_excess_interval,
    plain_json,
)


@given(st.integers(1, 300), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_clopper_pearson_is_scipys_exact_interval(n, data, level):
    hits = data.draw(st.integers(0, n))
    theirs = stats.binomtest(hits, n).proportion_ci(level, method="exact")
    ours = clopper_pearson(hits, n, level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
    assert ours.value == hits / n and ours.n == n and ours.low <= ours.value <= ours.high


def test_no_cases_leave_everything_open():
    nothing = clopper_pearson(0, 0)
    assert math.isnan(nothing.value) and (nothing.low, nothing.high) == (0.0, 1.0)


def slow_holm(p):
    """Holm (1979) from the definition: the j-th smallest times (m - j + 1), never below an earlier one."""
    ranked = sorted(range(len(p)), key=lambda i: p[i])
    return [
        float(min(1, max((len(p) - j) * Fraction(p[ranked[j]]) for j in range(ranked.index(i) + 1))))
        for i in range(len(p))
    ]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_its_definition(p):
    assert holm(p) == pytest.approx(slow_holm(p), rel=1e-12)


def test_holm_of_a_textbook_example():
    # Computed by R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30).filter(lambda v: np.ptp(v) > 1e-3))
def test_the_mean_interval_is_scipys(values):
    ours = mean_interval(values, 0.9)
    low, high = stats.t.interval(0.9, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


def test_values_that_are_not_finite_are_left_out_of_the_mean():
    assert mean_interval([1.0, np.nan, 3.0, np.inf]).n == 2
    assert mean_interval([1.0, np.nan, 3.0]).value == 2.0


def test_one_value_says_nothing_about_the_spread_and_none_nothing_at_all():
    one = mean_interval([2.0])
    assert (one.value, one.low, one.high) == (2.0, -math.inf, math.inf)
    assert mean_interval([]).n == 0 and math.isnan(mean_interval([]).value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: clopper_pearson(3, 2),
        lambda: clopper_pearson(-1, 2),
        lambda: clopper_pearson(1, 2, 1.0),
        lambda: mean_interval([1, 2], 0.0),
        lambda: holm([0.1, 1.1]),
        lambda: holm([float("nan")]),
    ],
)
def test_what_is_no_count_level_or_probability_is_refused(make):
    with pytest.raises(ParameterError, match="parameter of"):
        make()


def test_an_estimate_prints_and_exports():
    estimate = clopper_pearson(5, 10)
    # Source: the exact interval of binomtest(5, 10) in scipy.stats.
    assert str(estimate) == "0.5 [0.187, 0.813] (n=10)"
    assert estimate.to_dict()["n"] == 10 and estimate.to_dict()["level"] == 0.95


def test_one_door_to_chance():
    assert generator(3).random() == generator(3).random()
    assert generator(None).random() != generator(None).random()
    held = np.random.default_rng(0)
    assert generator(held) is held


@dataclass(frozen=True)
class Figures:
    """Fields of all kinds, one in the other."""

    value: object
    parts: tuple[object, ...] = ()
    by: object = None


def test_a_dataclass_becomes_json_through_and_through():
    figures = Figures(
        mean_interval([2.0]),
        (Figures(np.float32("nan")), np.bool_(True), np.int8(3), np.array([1.0, np.inf]), pd.NA),
        {1: pd.Interval(1, 2), "x": math.nan, None: {"b", "a"}},
    )
    plain = plain_json(figures)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain == {
        "value": {"value": 2.0, "low": None, "high": None, "n": 1, "level": 0.95},
        "parts": [{"value": None, "parts": [], "by": None}, True, 3, [1.0, None], None],
        "by": {"1": "(1, 2]", "x": None, "None": ["a", "b"]},
    }
    assert type(plain["parts"][1]) is bool and type(plain["parts"][2]) is int


def slow_score(threshold, hits, n, hits_control, n_control, shift):
    """The score statistic with the likeliest rates found by search instead of in closed form."""
    x, y, ratio = n - hits, n_control - hits_control, 1 - threshold

    def unlikely(q):
        return -(stats.binom.logpmf(x, n, ratio * q) + stats.binom.logpmf(y, n_control, q))

    q = optimize.minimize_scalar(unlikely, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-12}).x
    p = ratio * q
    shifted = x / n - ratio * y / n_control + shift * 0.5 * (1 / n + ratio / n_control)
    return shifted / math.sqrt(p * (1 - p) / n + ratio**2 * q * (1 - q) / n_control)


@given(st.integers(5, 200), st.integers(5, 200), st.data(), st.sampled_from([0.05, 0.09, 0.2, 0.5]))
def test_excess_is_tested_by_the_score_of_the_likeliest_rates(n, m, data, threshold):
    hits, other = data.draw(st.integers(1, n - 1)), data.draw(st.integers(1, m - 1))
    above, below = (slow_score(threshold, hits, n, other, m, shift) for shift in (1, -1))
    assert excess_p_value(hits, n, other, m, threshold, "above") == pytest.approx(stats.norm.cdf(above), abs=2e-4)
    assert excess_p_value(hits, n, other, m, threshold, "below") == pytest.approx(stats.norm.sf(below), abs=2e-4)


@given(st.integers(1, 200), st.integers(1, 200), st.data(), st.sampled_from([0.05, 0.09, 0.2, 0.5]))
def test_what_the_test_of_an_excess_rejects_lies_outside_its_interval(n, m, data, threshold):
    hits, other = data.draw(st.integers(0, n)), data.draw(st.integers(0, m - 1))
    found = excess_interval(hits, n, other, m)
    assert found.low <= found.value + 1e-9 and found.value <= found.high + 1e-9
    tails = [excess_p_value(hits, n, other, m, threshold, side) for side in ("above", "below")]
    if min(tails) < 0.025 - 1e-6:
        assert not found.low <= threshold <= found.high


@pytest.mark.parametrize("rates", [(200, 200, 0.3, 0.1), (500, 200, 0.5, 0.5), (100, 100, 0.95, 0.3)])
def test_intervals_of_an_excess_cover(rates):
    n, m, p, q = rates
    rng = generator(1)
    drawn = zip(rng.binomial(n, p, 2000).tolist(), rng.binomial(m, q, 2000).tolist())
    found = [excess_interval(a, n, b, m) for a, b in drawn]
    assert 0.93 <= np.mean([f.low <= (p - q) / (1 - q) <= f.high for f in found]) <= 0.97


def test_an_excess_without_controls_is_the_rate_itself():
    assert excess_interval(3, 10, 0, 0) == clopper_pearson(3, 10)
    assert excess_p_value(3, 10, 0, 0, 0.1, "above") == pytest.approx(stats.binomtest(3, 10, 0.1, "greater").pvalue)


def test_nothing_is_beyond_controls_who_are_all_found():
    found = excess_interval(10, 10, 10, 10)
    assert (found.value, found.low, found.high) == (0.0, -math.inf, 1.0)
    assert excess_p_value(10, 10, 10, 10, 0.1, "above") == excess_p_value(10, 10, 10, 10, 0.1, "below") == 1.0


@pytest.mark.parametrize("counts", [(-1, 5, 0, 5), (6, 5, 0, 5), (1, 5, 6, 5)])
def test_impossible_counts_have_no_excess(counts):
    with pytest.raises(ParameterError, match="'hits'"):
        excess_interval(*counts)
    with pytest.raises(ParameterError, match="'hits'"):
        excess_p_value(*counts, 0.1, "above")


def slow_paired_score(ratio, both, first, second):
    """The score of pairs, the likeliest shares looked for by hand: `second` alone among all cases with a failure."""

    def shares(alone):
        together = (1 - (1 + ratio) * alone) / ratio
        return together, 1 - together - alone, alone

    def unlikely(alone):
        counts = (both, first, second)
        return -sum(k * math.log(max(share, 1e-300)) for k, share in zip(counts, shares(alone)))

    bounds = (max(0.0, 1 - ratio), 1 / (1 + ratio))
    found = optimize.minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-13}).x
    _, only, alone = shares(found)
    n = both + first + second
    return (both + first - ratio * (both + second)) / math.sqrt(n * ratio * (only + alone))


@given(st.integers(0, 60), st.integers(1, 60), st.integers(1, 60), st.integers(0, 60))
def test_an_interval_of_pairs_ends_where_the_score_test_does(both, first, second, neither):
    n = both + first + second + neither
    found = paired_excess_interval(n - both - first, n - both - second, both, n)
    assert found.low < found.value < found.high
    assert slow_paired_score(1 - found.low, both, first, second) == pytest.approx(-stats.norm.ppf(0.975), abs=1e-4)
    assert slow_paired_score(1 - found.high, both, first, second) == pytest.approx(stats.norm.ppf(0.975), abs=1e-4)


@pytest.mark.parametrize(("n", "easy", "p", "q"), [(300, 0.5, 0.3, 0.3), (60, 0.5, 0.8, 0.2), (200, 0.0, 0.7, 0.6)])
def test_intervals_of_pairs_cover(n, easy, p, q):
    rng, truth, held = generator(1), (p - q) / (1 - q), []
    for _ in range(1000):
        always = rng.random(n) < easy
        a, b = (always | (rng.random(n) < share) for share in (p, q))
        found = paired_excess_interval(int(a.sum()), int(b.sum()), int((~a & ~b).sum()), n)
        held.append(found.low <= truth <= found.high)
    assert 0.93 <= np.mean(held) <= 0.97


def test_pairs_at_the_edges():
    same = paired_excess_interval(7, 7, 3, 10)
    assert same.value == 0 and same.low < 0 < same.high
    assert paired_excess_interval(10, 7, 0, 10).high == 1.0
    assert paired_excess_interval(10, 10, 0, 10).low == -math.inf
    with pytest.raises(ParameterError, match="'both_failed'"):
        paired_excess_interval(7, 7, 4, 10)
    with pytest.raises(ParameterError, match="'both_failed'"):
        paired_excess_interval(2, 3, 4, 10)
