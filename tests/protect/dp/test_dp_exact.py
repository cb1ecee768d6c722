"""Exact and deterministic: weights in whole numbers, the stability lemma, and losses summed over every outcome."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from dp_mechanisms import GRID, K, make_pool, nearest, number, pairs, slot_probabilities
from hypothesis import given
from hypothesis import strategies as st

from countervail.core.rng import Words, generator
from countervail.protect.dp import pool, randomiser_kernels
from countervail.protect.dp.histograms import noisy_counts
from countervail.protect.dp.pool import PoolRecords
from countervail.protect.dp.randomiser import (
    Randomiser,
    best_window,
    choose,
    exp_below,
    log_below,
    sampled_budget,
    weights,
)

EPSILONS = [
    Fraction(1, 10**6),
    Fraction(1, 110),
    Fraction(1, 10),
    Fraction(1),
    Fraction(5),
    Fraction(50),
    Fraction(10**7),
]

SUMS = 1e-9  # the tests add up floats; the weights themselves are compared as fractions


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [1, 2, 3, 16, 101])
@pytest.mark.parametrize("ordered", [True, False])
def test_every_table_has_equal_row_sums_and_ratios_within_epsilon(size, ordered, epsilon):
    table = Randomiser.of([size], [ordered], [epsilon]).table(0)
    assert len({sum(row) for row in table}) == 1 and sum(table[0]) <= 2**60
    bound = exp_below(epsilon)
    for column in zip(*table):
        assert min(column) >= 1
        assert Fraction(max(column), min(column)) <= max(bound, Fraction(1))


@given(st.integers(2, 400), st.integers(1, 400), st.fractions(Fraction(1, 1000), 60))
def test_weights_never_exceed_their_budget(size, window, epsilon):
    inside, outside = weights(size, min(window, size), epsilon)
    assert outside >= 1 and Fraction(inside, outside) <= exp_below(epsilon)


@given(st.fractions(Fraction(1, 10**6), 100))
def test_the_bounds_of_exp_and_log_lie_on_the_safe_side(epsilon):
    below = exp_below(epsilon)
    assert float(below) == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert log_below(below) <= epsilon
    assert float(log_below(below)) == pytest.approx(float(epsilon), rel=1e-12, abs=1e-15)


def test_exp_below_is_below_an_independent_bracket():
    # Partial sums of the series of e bracket it: independent of the decimal module.
    low = sum(Fraction(1, math.factorial(i)) for i in range(40))
    assert exp_below(Fraction(1)) < low < exp_below(Fraction(1)) * (1 + Fraction(1, 10**38))


def test_sampled_slots_spend_what_the_specification_says():
    # Specification: k=20, s=1: eps=1 allows 3.57, eps=0.1 allows 1.13.
    assert float(sampled_budget(Fraction(1), 1, 20)) == pytest.approx(3.57, abs=0.005)
    assert float(sampled_budget(Fraction(1, 10), 1, 20)) == pytest.approx(1.13, abs=0.005)
    assert sampled_budget(Fraction(1), 20, 20) == 1


def test_the_window_beats_clamped_laplace_as_specified():
    # Specification: mean error on 101 levels, eps=1: .246 (Laplace .367); eps=3: .112 (Laplace .227).
    for epsilon, error in ((1, 0.246), (3, 0.112)):
        table = np.array(Randomiser.of([101], [True], [Fraction(epsilon)]).table(0), dtype=float)
        far = np.abs(np.subtract.outer(np.arange(101), np.arange(101))) / 100
        assert (table * far).sum(axis=1).mean() / table[0].sum() == pytest.approx(error, abs=0.001)


def test_a_window_is_public_and_never_longer_than_its_axis():
    assert best_window(1, 1.0) == 1
    assert all(1 <= best_window(m, e) <= m for m in (2, 3, 10, 1000) for e in (1e-6, 1.0, 100.0))


def slow_randomise(codes, words, r):
    """The plain twin: walk along the row of weights until the word is used up."""
    out = np.empty_like(codes)
    for (i, j), word in np.ndenumerate(words):
        u, table = int(word) >> 4, r.table(j)[codes[i, j]]
        n, m = int(r.windows[j]), len(table)
        first = min(max(int(codes[i, j]) - n // 2, 0), m - n)
        near = list(range(first, first + n))
        order = near + [y for y in range(m) if y not in near]
        for y in order:
            if u < table[y]:
                out[i, j] = y
                break
            u -= table[y]
    return out


def test_the_kernel_draws_as_its_plain_twin():
    r = Randomiser.of([7, 2, 5], [True, False, True], [Fraction(1), Fraction(1, 2), Fraction(2)])
    rng = generator(0)
    codes = np.stack([rng.integers(0, m, 300) for m in (7, 2, 5)], axis=1)
    words = rng.integers(0, 2**60 - 2**20, (300, 3), dtype=np.uint64) << np.uint64(4)
    out, open_ = np.empty_like(codes), np.ones(codes.shape, dtype=bool)
    left = randomiser_kernels.randomise(codes, words, r.sizes, r.windows, r.inside, r.outside, out, open_)
    assert left == 0 and np.array_equal(out, slow_randomise(codes, words, r))


def test_a_word_beyond_the_total_is_drawn_again():
    r = Randomiser.of([3], [False], [Fraction(1)])
    codes, out, open_ = np.zeros((1, 1), dtype=np.int64), np.full((1, 1), -1), np.ones((1, 1), dtype=bool)
    last = np.full((1, 1), 2**64 - 1, dtype=np.uint64)
    assert int(r.inside[0] + 2 * r.outside[0]) < 2**60
    assert randomiser_kernels.randomise(codes, last, r.sizes, r.windows, r.inside, r.outside, out, open_) == 1
    assert open_.all() and out[0, 0] == -1


def test_noise_has_the_distribution_of_its_table():
    r = Randomiser.of([5], [True], [Fraction(1)])
    for x in range(5):
        drawn = np.bincount(r.draw(np.full((100_000, 1), x), Words(x))[:, 0], minlength=5)
        expected = np.array(r.table(0)[x]) / sum(r.table(0)[x])
        assert np.abs(drawn / 100_000 - expected).max() < 0.01


def test_choices_are_uniform_and_without_repetition():
    picked = choose(60_000, 4, 2, Words(0))
    assert (picked[:, 0] != picked[:, 1]).all()
    counts = np.unique(picked, axis=0, return_counts=True)[1]
    assert len(counts) == 12 and np.abs(counts / 5_000 - 1).max() < 0.06
    whole = choose(1, 50, 50, Words())[0]
    assert sorted(whole) == list(range(50))


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (16, 0.1), (16, 1.0), (24, 3.0)])
def test_opendp_accounts_for_the_same_epsilon(size, epsilon):
    # Independent: OpenDP's randomised response with our probability of the truth.
    import opendp.prelude as dp

    dp.enable_features("contrib")
    row = Randomiser.of([size], [False], [Fraction(epsilon)]).table(0)[0]
    theirs = dp.m.make_randomized_response(categories=[str(i) for i in range(size)], prob=row[0] / sum(row))
    assert theirs.map(d_in=1) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("seed", [None, 0])
def test_counts_get_discrete_laplace_noise(seed):
    noise = noisy_counts(np.zeros(20_000, dtype=np.int64), 2, Fraction(1), seed)
    p = math.exp(-1 / 2)
    assert noise.mean() == pytest.approx(0, abs=0.15)
    assert noise.var() == pytest.approx(2 * p / (1 - p) ** 2, rel=0.1)
    assert (noise == 0).mean() == pytest.approx((1 - p) / (1 + p), abs=0.02)


# The stability lemma.


def multiset_distance(a, b):
    """How many elements of the first multiset have no partner in the second."""
    left = list(map(tuple, a))
    for row in map(tuple, b):
        if row in left:
            left.remove(row)
    return len(left)


def tied_pairs(n, seed):
    """Tiny domains make almost every distance a tie; tables may hold fewer candidates than k, and duplicates."""
    rng = generator(seed)
    for _ in range(n):
        rows = int(rng.integers(1, 12))
        table = np.stack([rng.integers(0, m, rows) for m in (2, 2, 3)], axis=1)
        classes = (table.sum(axis=1) % 2).astype(np.int64)
        other, kind = table.copy(), rng.integers(0, 3)
        at = int(rng.integers(0, rows))
        if kind == 0:
            other[at] = [rng.integers(0, 2), rng.integers(0, 2), rng.integers(0, 3)]
        elif kind == 1 and rows > 1:
            other = np.delete(other, at, axis=0)
        else:
            other = np.vstack([other, [[rng.integers(0, 2), rng.integers(0, 2), rng.integers(0, 3)]]])
        other = other[rng.permutation(len(other))]  # the order of rows must not matter either
        yield table, classes, other, (other.sum(axis=1) % 2).astype(np.int64), rng


def test_one_record_changes_at_most_one_neighbour():
    changed, default = 0, np.array([0, 0, 0])
    for table, classes, other, other_classes, rng in tied_pairs(3000, 0):
        x = np.array([[rng.integers(0, 2), rng.integers(0, 2), rng.integers(0, 3)]])
        far = np.abs(x[:, :, None] - np.arange(3)) * (1 << 30)
        k, wanted = int(rng.integers(1, 6)), np.array([[False, True]])
        a = PoolRecords.of(table, classes, default).nearest(far, wanted, k)[0]
        b = PoolRecords.of(other, other_classes, default).nearest(far, wanted, k)[0]
        assert multiset_distance(a, b) <= 1 and multiset_distance(b, a) <= 1
        changed += multiset_distance(a, b)
    assert changed > 300


def test_partial_sorting_breaks_the_lemma_on_ties():
    # The control: with argpartition on distances alone one record moves several neighbours.
    worst = 0
    for table, classes, other, other_classes, rng in tied_pairs(3000, 0):
        x, k = rng.integers(0, 2, 3), 4
        sides = []
        for rows, labels in ((table, classes), (other, other_classes)):
            rows = rows[labels == 1]
            far = np.abs(rows - x).sum(axis=1)
            sides.append(rows[np.argpartition(far, k)[:k]] if len(rows) > k else rows)
        worst = max(worst, multiset_distance(*sides), multiset_distance(*sides[::-1]))
    assert worst >= 2


def test_the_kernel_finds_what_its_plain_twin_finds():
    rng = generator(1)
    for _ in range(50):
        table = np.stack([rng.integers(0, m, 40) for m in (3, 4, 5)], axis=1)
        classes = rng.integers(0, 3, 40)
        far = rng.integers(0, 4, (6, 3, 5)).astype(np.int64)
        wanted = rng.random((6, 3)) < 0.5
        records = PoolRecords.of(table, classes, np.array([0, 0, 0]))
        found = pool.nearest_kernel(records.codes, records.classes, wanted, far, 7)
        for i in range(6):
            order = sorted(
                (sum(int(far[i, j, v]) for j, v in enumerate(row)), tuple(map(int, row)), r)
                for r, row in enumerate(records.codes)
                if wanted[i, records.classes[r]]
            )
            want = [r for *_, r in order[:7]]
            assert found[i].tolist() == want + [-1] * (7 - len(want))


# Exact losses: the pool's distribution, summed over every outcome.


def pool_loss(p, sides):
    """The largest log-ratio over all pools of K noisy slots, given each slot's distribution."""
    outcomes = np.array(list(product(range(p.shape[1]), repeat=K)))
    both = [
        sum(
            np.prod([p[side[o], outcomes[:, i]] for i, o in enumerate(order)], axis=0)
            for order in permutations(range(K))
        )
        for side in sides
    ]
    return float(np.abs(np.log(both[0] / both[1])).max())


@pytest.mark.parametrize("name", list(pairs()))
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_exact_loss_of_the_whole_pool_is_within_epsilon(name, epsilon):
    sides = [number(nearest(t)[0]) for t in pairs()[name]]
    assert pool_loss(slot_probabilities(epsilon), sides) <= epsilon + SUMS


@pytest.mark.parametrize("name", list(pairs()))
def test_the_exact_loss_of_one_sampled_slot_is_within_epsilon(name):
    r = make_pool("sampled", 1).randomiser
    p = slot_probabilities(float(r.epsilon))
    here, there = (p[number(nearest(t)[0])].mean(axis=0) for t in pairs()[name])
    assert np.abs(np.log(here / there)).max() <= 1 + SUMS


def test_the_sampled_budget_is_used_up():
    # Tight: of three equal records one becomes a record that differs in everything.
    p = slot_probabilities(float(make_pool("sampled", 1).randomiser.epsilon))
    same, other = p[number(np.array([[0, 1, 2]]))][0], p[number(np.array([[1, 3, 4]]))][0]
    lost = np.abs(np.log(3 * same / (2 * same + other)))
    assert 0.95 < lost.max() <= 1 + SUMS


@pytest.mark.parametrize("name", list(pairs()))
def test_the_exact_loss_of_feature_sampled_slots_is_within_epsilon(name):
    r = make_pool("features", 1).randomiser
    starts = np.concatenate([[0], np.cumsum(GRID.sizes)])
    sides = [nearest(t)[0] for t in pairs()[name]]
    rows = {tuple(map(int, row)) for side in sides for row in side}
    index = {row: i for i, row in enumerate(sorted(rows))}
    p = np.zeros((len(index), int(starts[-1])))
    for row, i in index.items():
        for j, v in enumerate(row):
            table = np.array(r.table(j)[v], dtype=float)
            p[i, starts[j] : starts[j + 1]] = table / table.sum() / 3
    assert pool_loss(p, [[index[tuple(map(int, row))] for row in side] for side in sides]) <= 1 + SUMS


def test_a_pool_is_sorted_by_what_it_shows():
    near = np.array([[[0, 1, 2], [1, 3, 4], [0, 0, 0]]])
    for slots in (near, near[:, ::-1]):
        drawn = make_pool("all", 50).draw(np.repeat(slots, 20, axis=0), Words())[0]
        assert all(list(map(tuple, pool)) == sorted(map(tuple, pool)) for pool in drawn)
