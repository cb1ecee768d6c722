"""What two shares prove together: never too much, wherever they lie, and more than two bounds apart."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from countervail.core.guarantee.evidence import epsilon_bound
from countervail.core.guarantee.two_shares import TwoShares, share_above, share_below

ALPHA = 0.1


def apart(hits, n, misses, m, alpha, delta=0.0):
    """Two bounds at half of alpha each."""
    low = float(share_below(hits, n, alpha / 2)) - delta
    return math.log(low / float(share_above(misses, m, alpha / 2))) if low > 0 else -math.inf


@pytest.mark.parametrize(("n", "m", "delta"), [(8, 8, 0.0), (5, 11, 0.0), (9, 6, 0.1)])
def test_no_shares_make_it_wrong_more_often_than_alpha(n, m, delta):
    bounds = np.array([[TwoShares(x, n, y, m).epsilon(ALPHA, delta) for y in range(m + 1)] for x in range(n + 1)])
    worst = 0.0
    for epsilon in (-1.0, 0.0, 0.3, 1.0, 2.0):
        wrong = bounds > epsilon
        for q in np.linspace(0, 1, 41):
            for p in min(1.0, math.exp(epsilon) * q + delta) * np.array([1.0, 0.9, 0.5]):  # within epsilon
                chance = binom.pmf(np.arange(n + 1), n, p) @ wrong @ binom.pmf(np.arange(m + 1), m, q)
                worst = max(worst, float(chance))
    assert ALPHA / 4 < worst <= ALPHA


def test_it_is_the_greatest_chance_over_a_fine_grid_of_shares():
    n, m, hits, misses = 40, 60, 30, 9
    found = TwoShares(hits, n, misses, m).epsilon(ALPHA)
    x, y = np.arange(n + 1)[:, None], np.arange(m + 1)[None]
    proves = share_below(x, n, ALPHA / 2) / share_above(y, m, ALPHA / 2)
    as_much = proves >= proves[hits, misses] * (1 - 1e-12)
    near = float(share_below(misses, m, 0.01 * ALPHA)), float(share_above(misses, m, 0.01 * ALPHA))

    def chance(epsilon):
        shares = np.linspace(*near, 400)
        pairs = [(min(1.0, math.exp(epsilon) * q), q) for q in shares]
        return max(binom.pmf(x[:, 0], n, p) @ as_much @ binom.pmf(y[0], m, q) for p, q in pairs)

    assert chance(found) < 0.98 * ALPHA < chance(found + 0.06)


def test_it_proves_more_than_two_bounds_apart(seeds):
    for seed in seeds(40, 400):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(20, 4000, 2).tolist()
        hits, misses = int(rng.binomial(n, rng.random())), int(rng.binomial(m, rng.random() / 2))
        alpha = float(rng.choice([0.05, 1e-3, 1e-6]))
        found, other = TwoShares(hits, n, misses, m).epsilon(alpha), apart(hits, n, misses, m, alpha)
        assert found >= other - 0.02 * abs(other) - 0.02
        if other > 0.3 and alpha == 0.05 and min(hits, misses) > 5:
            assert found > other


def test_more_hits_prove_more_and_more_misses_less():
    found = [[TwoShares(x, 50, y, 50).epsilon(0.05) for y in (0, 4, 9, 30, 50)] for x in (0, 3, 20, 41, 50)]
    assert all(np.diff(found[i]).max() <= 2e-3 for i in range(1, 5))
    assert all(np.diff([row[j] for row in found[1:]]).min() >= -2e-3 for j in range(5))


def test_nothing_is_proven_by_nothing():
    assert TwoShares(0, 0, 0, 0).epsilon(0.05) == -math.inf
    assert TwoShares(0, 50, 0, 50).epsilon(0.05) == -math.inf
    assert TwoShares(10, 50, 0, 50).epsilon(0.05, delta=0.5) == -math.inf
    assert TwoShares(50, 50, 0, 50).epsilon(0.05) > 2.5


@pytest.mark.parametrize("flip", [False, True])
def test_the_training_draws_choose_the_direction(flip):
    rng = np.random.default_rng(0)

    def sides(n):
        quiet, loud = np.zeros(n, dtype=np.int64), (rng.random(n) < 0.2).astype(np.int64)
        return (loud, quiet) if flip else (quiet, loud)

    found = epsilon_bound(sides(500), sides(2000), alpha=1e-3)
    assert found.epsilon > 3 and found.forward is flip
