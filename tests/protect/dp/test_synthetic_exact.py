"""PrivateSynthetic, exact: distributions against their formulas, sensitivities by brute force, budgets as fractions."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_mechanisms import GRID, rule
from hypothesis import given
from hypothesis import strategies as st

from countervail.core.guarantee.composition import zcdp_epsilon
from countervail.core.rng import generator
from countervail.protect.dp.synthetic import edges as edges_module
from countervail.protect.dp.synthetic.accounting import L1, L2, UNIT, NoiseBudget, rho_of
from countervail.protect.dp.synthetic.bins import MarginalCounts, nearest_counts, settle_bins, smoothed
from countervail.protect.dp.synthetic.column_tree import ColumnTree
from countervail.protect.dp.synthetic.draw import (
    CHOICE,
    ONES,
    PAIRS,
    TOTAL,
    BudgetShares,
    Draw,
    cell_counts,
    draw_counts,
)
from countervail.protect.dp.synthetic.edges import pair_counts, pair_scores

RECORDS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12)


def records(rows):
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def neighbours(rows, at, new):
    """The table, and it with a record less, one more, and one replaced."""
    held = records(rows)
    less = np.delete(held, at % len(held), axis=0)
    more = np.concatenate([held, records([new])])
    other = held.copy()
    other[at % len(held)] = new
    return held, {"less": less, "more": more, "replaced": other}


def strata_of(codes):
    return rule(codes).astype(np.int64) if len(codes) else np.zeros(0, dtype=np.int64)


def fixed_marginals(seed=0, strata=2):
    """Columns as some noisy draw may have left them: public once drawn."""
    rng, found = generator(seed), []
    for size in (2, 4, 5):
        noisy = rng.integers(-2, 9, (strata, size))
        bins = settle_bins(np.maximum(noisy, 0).sum(axis=0).astype(float), 3.0, 1.0, size == 5)
        found.append(MarginalCounts.of(noisy, bins, np.maximum(noisy, 0).astype(float)))
    return tuple(found)


MARGINALS = fixed_marginals()
TOTALS = np.array([7.3, 5.1])
COLUMNS = [(0, 1), (0, 2), (1, 2)]


def all_counts(codes):
    """Every exact table that noise is added to."""
    strata = strata_of(codes)
    binned = np.column_stack([m.bins[codes[:, j]] for j, m in enumerate(MARGINALS)])
    ones = [cell_counts(strata, codes[:, j], 2, m) for j, m in enumerate((2, 4, 5))]
    return ones + [pair_counts(binned, strata, MARGINALS, a, b) for a, b in COLUMNS]


def scores(codes):
    binned = np.column_stack([m.bins[codes[:, j]] for j, m in enumerate(MARGINALS)])
    strata = strata_of(codes)
    return pair_scores(lambda a, b: pair_counts(binned, strata, MARGINALS, a, b), MARGINALS, TOTALS, 0.7, COLUMNS)


@given(RECORDS, st.integers(0, 11), st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 4)))
def test_one_record_moves_counts_and_scores_by_what_the_noise_is_made_for(rows, at, new):
    held, others = neighbours(rows, at, new)
    for kind, other in others.items():
        adjacency = "replace-one" if kind == "replaced" else "add-remove"
        for before, after in zip(all_counts(held), all_counts(other)):
            moved = np.abs(after - before)
            assert moved.sum() <= L1[adjacency] and (moved**2).sum() <= L1[adjacency]
            assert kind == "replaced" or moved.sum() == 1
        assert np.abs(scores(other) - scores(held)).max() <= L1[adjacency] * UNIT


def test_the_bounds_are_reached():
    held, other = records([(0, 1, 2)] * 3), records([(1, 3, 4)] + [(0, 1, 2)] * 2)
    assert (all_counts(held)[1] - all_counts(other)[1]).astype(float).ravel() @ np.ones(8) == 0
    assert np.abs(all_counts(held)[1] - all_counts(other)[1]).sum() == 2
    many = records([(0, 1, 2)] * 40)  # above every guess: each further record moves a score by a whole unit
    assert (scores(np.concatenate([many, many[:1]])) - scores(many) == UNIT).all()
    assert Fraction(L2["replace-one"]) ** 2 >= 2 and L2["add-remove"] == 1


def test_scores_are_whole_numbers_that_no_rounding_touches():
    assert scores(records([(0, 1, 2)] * 5)).dtype == np.int64 and UNIT == 2**20
    assert edges_module.UNIT is UNIT


def budget(epsilon=5.2, delta=1e-6, adjacency="add-remove", seed=None):
    return NoiseBudget(epsilon, delta, adjacency, None if seed is None else generator(seed))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_draw_spends_its_budget_and_not_more(delta, adjacency):
    b = budget(10.0, delta, adjacency)
    codes = np.tile(records([(0, 1, 2), (1, 2, 3), (0, 0, 0), (1, 3, 4)]), (400, 1))
    drawn = draw_counts(codes, strata_of(codes), 2, GRID, b)
    assert b.spent <= b.total and b.spent > b.total * Fraction(9, 10)
    assert len(drawn.ones) == 3 and len(drawn.pairs) == len(drawn.edges) <= 2


def test_the_total_is_paid_for():
    b = budget(1.0)
    draw_counts(records([(0, 0, 0)]), np.zeros(1, dtype=np.int64), 2, GRID, b)  # too few for anything else
    share = b.total * TOTAL
    assert share * Fraction(999, 1000) < b.spent <= share


def test_shares_add_up():
    assert TOTAL + ONES + CHOICE + PAIRS == 1
    b = budget(1.0)
    for people in (10, 1_000, 100_000):
        s = BudgetShares.of(people, 3, 2, b)
        assert b.total * TOTAL + 3 * s.one + 2 * s.choice + s.pairs == b.total


def test_too_much_is_refused():
    b = budget(1.0)
    b.total = b.total / 2  # somebody else has spent half
    with pytest.raises(AssertionError, match="more than this draw may spend"):
        b.counts(np.zeros(3, dtype=np.int64), b.total * 2)


@given(st.floats(0.01, 20), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_rho_never_pays_for_more_than_epsilon_and_delta(epsilon, delta):
    assert zcdp_epsilon(rho_of(epsilon, delta), delta) <= epsilon


def test_rho_is_that_of_the_specification():
    assert rho_of(1.0, 1e-6) == pytest.approx(0.02436, abs=5e-6)


def gaussian(scale, reach):
    x = np.arange(-reach, reach + 1)
    p = np.exp(-(x**2) / (2 * scale**2))
    return x, p / p.sum()


@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 2), Fraction(2)])
def test_gaussian_counts_of_neighbours_differ_by_their_rho_at_most(share):
    # Exact: the divergence of two discrete Gaussians one apart, summed over every outcome that matters.
    scale = budget().count_scale(share)
    x = np.arange(-400, 401)
    whole = np.logaddexp.reduce(-(x**2) / (2 * scale**2))
    log_p, log_q = (-((x - shift) ** 2) / (2 * scale**2) - whole for shift in (0, 1))
    for order in (1.01, 1.5, 2.0, 5.0, 20.0):
        d = np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)
        assert d <= order * float(share) * (1 + 1e-9)


def test_counts_are_drawn_from_the_distribution_that_the_proof_speaks_of():
    b, n = budget(), 20_000
    b.total = Fraction(10)
    for pure in (False, True):
        b.pure = pure
        share = Fraction(1, 2)
        noise = b.counts(np.zeros(n, dtype=np.int64), share)
        scale = b.count_scale(share)
        x, p = gaussian(scale, 60)
        if pure:
            p = np.exp(-np.abs(x) / scale)
            p /= p.sum()
        seen = np.bincount(np.clip(noise + 60, 0, 120), minlength=121)
        expected = p * n
        large = expected >= 5
        squares = ((seen - expected)[large] ** 2 / expected[large]).sum()
        assert squares < large.sum() + 6 * math.sqrt(2 * large.sum())


def test_choices_follow_the_formula():
    b, n = budget(), 1500
    b.total = Fraction(10**6)
    share = Fraction(1, 2)
    gap = UNIT
    got = sum(b.choose(np.array([0, gap]), share) for _ in range(n)) / n
    true = 1 / (1 + math.exp(-gap / b.score_scale(share)))
    assert abs(got - true) < 5 * math.sqrt(true * (1 - true) / n)
    b.pure = True  # exponential noise: the smaller one wins half as often as its noise exceeds the gap
    got = sum(b.choose(np.array([0, gap]), share) for _ in range(n)) / n
    true = 1 - math.exp(-gap / b.score_scale(share)) / 2
    assert abs(got - true) < 5 * math.sqrt(true * (1 - true) / n)


class Silent(NoiseBudget):
    """Noise that says nothing at all: constants instead of counts."""

    def counts(self, exact, share):
        return np.full(exact.shape, 40, dtype=np.int64) if exact.size > 1 else np.array([5_000])

    def choose(self, scores, share):
        return 0


def test_nothing_of_the_records_passes_by_the_noise():
    # With constants in the place of noisy counts, whatever else is let out would have to show.
    tables = [records([(0, 0, 0)]), records([(1, 3, 4)] * 50 + [(0, 2, 1)] * 9), np.zeros((0, 3), dtype=np.int64)]
    noise = Silent(5.2, 1e-6, "add-remove")
    found = [draw_counts(codes, strata_of(codes), 2, GRID, noise).to_dict() for codes in tables]
    assert found[0] == found[1] == found[2] and found[0]["edges"]


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.floats(1, 500))
def test_the_nearest_counts_are_counts_with_that_total(noisy, total):
    y = np.array(noisy)
    found = nearest_counts(y, total)
    assert (found >= 0).all() and found.sum() == pytest.approx(total)
    # Nearest: the shift is the same for all that are above zero, and the others would be below it.
    shift = (y - found)[found > 0]
    assert np.ptp(shift) == pytest.approx(0, abs=1e-6) and (y[found == 0] <= shift[0] + 1e-6).all()


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.booleans())
def test_bins_hold_every_position_once_and_keep_the_order(mass, ordered):
    bins = settle_bins(np.array(mass), 5.0, 1.0, ordered)
    assert set(bins.tolist()) == set(range(int(bins.max()) + 1))
    assert not ordered or (np.diff(bins) >= 0).all()


def test_a_tree_recovers_counts_that_agree_with_each_other():
    rng = generator(3)
    joint = rng.random((2, 3, 4)) * 100  # a chain: the middle column separates the others
    chain = np.einsum("ab,bc->abc", joint.sum(axis=2), joint.sum(axis=0) / joint.sum(axis=(0, 2))[:, None])
    total = float(chain.sum())
    ones = [(chain.sum(axis=ax), np.ones(s)) for ax, s in (((1, 2), 2), ((0, 2), 3), ((0, 1), 4))]
    pairs = [(chain.sum(axis=2), 1.0), (chain.sum(axis=0).T, 1.0)]
    tree = ColumnTree([2, 3, 4], [(0, 1), (2, 1)], total).fit(ones, pairs)
    for got, (want, _) in zip(tree.one + tree.two, ones + pairs):
        assert got == pytest.approx(want, rel=0.02, abs=0.2)
    drawn = tree.sample(generator(0), 40_000)
    seen = np.zeros((2, 3, 4))
    np.add.at(seen, tuple(drawn.T), 1)
    assert np.abs(seen / 40_000 - chain / total).sum() / 2 < 0.02


def test_a_draw_survives_bytes_and_json():
    b = budget(10.0, seed=1)
    codes = np.tile(records([(0, 1, 2), (1, 2, 3)]), (400, 1))
    drawn = draw_counts(codes, strata_of(codes), 2, GRID, b)
    for again in (Draw.from_bytes(drawn.to_bytes()), Draw.from_dict(drawn.to_dict())):
        assert again.to_dict() == drawn.to_dict() and again.seed() == drawn.seed()


@given(st.lists(st.integers(-20, 60), min_size=2, max_size=20), st.floats(0.1, 30))
def test_smoothing_takes_off_what_noise_would_make_and_nothing_else(noisy, noise):
    y, bins = np.array(noisy, dtype=float), np.zeros(len(noisy), dtype=np.int64)
    found = smoothed(y, bins, noise)
    assert (found >= 0).all() and np.ptp(found) <= np.ptp(y) + 1e-9
    if y.var(ddof=1) <= noise**2:
        assert np.ptp(found) == pytest.approx(0, abs=1e-9)  # all of it may be noise


def test_what_is_made_of_a_draw_is_the_same_everywhere():
    one = Draw(5, (np.array([[1, -2]]),), (), ())
    spelt = b'{"edges": [], "ones": [[[1, -2]]], "pairs": [], "total": 5}'
    assert one.seed() == int.from_bytes(hashlib.sha256(spelt).digest()[:16], "little")
