"""PrivateSynthetic, audited at the level of rho: ours keeps it, and one control per precondition is caught."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from dp_mechanisms import GRID, rule

import countervail as cv
from countervail.core.guarantee.evidence import rho_bound
from countervail.core.rng import generator
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.synthetic.accounting import L1, UNIT, NoiseBudget, rho_of
from countervail.protect.dp.synthetic.bins import MarginalCounts
from countervail.protect.dp.synthetic.draw import PAIRED, PAIRS, TOTAL, BudgetShares, draw_counts, settle
from countervail.protect.dp.synthetic.edges import pair_scores
from countervail.testing import audit_rho

EPSILON, DELTA = 5.25, 1e-6
RHO = rho_of(EPSILON, DELTA)  # about one half
ENTROPY = generator(
    None
)  # quick noise of the same width; the exact samplers are compared with their formulas elsewhere
TABLE = np.column_stack([generator(0).integers(0, m, 400) for m in (2, 4, 5)])
SOMEBODY = np.array([[1, 3, 4]])
MORE = np.concatenate([TABLE, SOMEBODY])


class HalfNoise(NoiseBudget):
    """Draws with half the deviation that it accounts for."""

    def counts(self, exact, budget):
        scale = self.count_scale(budget) / 2
        return exact + self._seeded_noise(scale, exact.shape)


def telling(kind):
    """The whole draw, seen through the counts that one record moves, each by its weight: what tells most of it."""

    def mechanism(codes, n):
        classes, out = rule(codes).astype(np.int64), np.empty(n)
        for i in range(n):
            b = kind(EPSILON, DELTA, "add-remove", ENTROPY)
            drawn = draw_counts(codes, classes, 2, GRID, b)
            spread = BudgetShares.of(drawn.total, 3, 2, b)
            assert spread.level == "pairs" and spread.strata == 1
            marginals, _ = settle(drawn.ones, GRID, spread, b)
            bins = [int(m.bins[SOMEBODY[0, j]]) for j, m in enumerate(marginals)]
            seen = 2 * float(b.total * TOTAL) * drawn.total
            seen += 2 * float(spread.one) * sum(int(y[0, SOMEBODY[0, j]]) for j, y in enumerate(drawn.ones))
            each = float(spread.pairs / max(len(drawn.edges), 1))
            seen += 2 * each * sum(int(y[0, bins[a], bins[c]]) for (a, c), y in zip(drawn.edges, drawn.pairs))
            out[i] = seen
        return np.rint(out * 4).astype(np.int64)

    return mechanism


def audited(mechanism, a, b, training=400, draws=1500):
    return audit_rho(mechanism, a, b, training=training, draws=draws)


def test_the_whole_draw_keeps_its_rho():
    found = audited(telling(NoiseBudget), TABLE, MORE)
    assert 0.05 < found.rho <= RHO  # not silent, and not too loud


def test_half_the_noise_is_caught():
    assert audited(telling(HalfNoise), TABLE, MORE).refutes(RHO)


# Two pairs of columns with equal scores: one more record raises one of them and lowers the other.
LEFT = np.repeat([0, 1], 20)
APART = np.column_stack([LEFT, LEFT, 1 - LEFT])
EVEN = tuple(MarginalCounts.of(np.array([[20, 20]]), np.array([0, 1]), 1.0) for _ in range(3))


def choice(times):
    """Which of the two pairs wins, when scores move by so many times what the noise is made for."""

    def mechanism(codes, n):
        b = NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)
        strata = np.zeros(len(codes), dtype=np.int64)
        scores = pair_scores(codes, strata, EVEN, np.array([40.0]), 0.0, [(0, 1), (0, 2)])
        scores = times * (scores - 40 * UNIT - [UNIT, 0])  # one behind the other, or ahead of it
        return np.array([b.choose(scores, Fraction(RHO)) for _ in range(n)])

    return mechanism


def one_more(codes):
    return np.concatenate([codes, [[0, 0, 0]]])


def test_the_choice_of_a_pair_keeps_its_rho():
    found = audited(choice(1), APART, one_more(APART), 2_000, 10_000)
    assert RHO / 5 < found.rho <= RHO


def test_a_score_that_moves_by_twice_as_much_is_caught():
    assert audited(choice(2), APART, one_more(APART), 2_000, 10_000).refutes(RHO)


def at_the_rule():
    """A table whose number of records is just below the one from which on pairs are counted."""
    b = NoiseBudget(EPSILON, DELTA, "add-remove")
    least = int(np.ceil(PAIRED * b.deviation(b.total * PAIRS / 2)))
    codes = np.resize(TABLE, (least - 1, 3))
    return codes, np.concatenate([codes, SOMEBODY])


def test_what_the_noisy_total_decides_keeps_its_rho():
    def mechanism(codes, n):
        b = NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)
        noisy = len(codes) + b.counts(np.zeros(n, dtype=np.int64), b.total * TOTAL)
        return np.array([BudgetShares.of(int(t), 3, 2, b).level == "pairs" for t in noisy])

    assert not audited(mechanism, *at_the_rule(), 1_000, 5_000).refutes(float(Fraction(RHO) * TOTAL))


def test_an_exact_total_that_decides_is_caught():
    def mechanism(codes, n):
        b = NoiseBudget(EPSILON, DELTA, "add-remove")
        return np.full(n, BudgetShares.of(len(codes), 3, 2, b).level == "pairs")

    assert audited(mechanism, *at_the_rule()).refutes(RHO)


def test_a_grid_read_off_the_data_is_caught():
    def mechanism(codes, n):
        top = int(codes[:, 2].max())  # read off the rows: a column one longer tells that somebody is there
        b = NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)
        return np.array([len(b.counts(np.bincount(codes[:, 2], minlength=top + 1), Fraction(1, 10))) for _ in range(n)])

    few = TABLE[TABLE[:, 2] < 4]
    assert audited(mechanism, few, np.concatenate([few, SOMEBODY])).refutes(RHO)
    frame = pd.DataFrame({"hours": [0, 4], "ok": ["no", "yes"]})
    with pytest.raises(cv.SchemaError, match="declare none"):
        Grid.of(cv.Table.from_frame(frame, target="ok"), "PrivateSynthetic")


def test_decisions_that_look_at_others_are_caught():
    # The rows of each decision are counted apart; were the decision a comparison with the mean, one record moves many.
    def mechanism(codes, n):
        classes = (codes[:, 2] > codes[:, 2].mean()).astype(np.int64)
        b = NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)
        exact = np.bincount(classes, minlength=2)
        return np.array([int(np.rint(b.counts(exact, Fraction(RHO))[1] / 2)) for _ in range(n)])

    level = np.concatenate([np.full((60, 3), 2) - [0, 0, 0], np.zeros((30, 3)), np.full((30, 3), 4)]).astype(np.int64)
    assert audited(mechanism, level, np.concatenate([level, [[0, 0, 0]]]), 1_000, 4_000).refutes(RHO)


def test_the_noise_of_added_records_is_too_little_where_one_is_replaced():
    def mechanism(codes, n):
        b = NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)
        drawn = np.array([b.counts(np.bincount(codes, minlength=2), Fraction(RHO)) for _ in range(n)])
        return np.rint(2 * (drawn[:, 0] - drawn[:, 1])).astype(np.int64)

    a, b = np.array([0] * 20 + [1] * 20), np.array([0] * 19 + [1] * 21)
    assert audited(mechanism, a, b, 2_000, 20_000).refutes(RHO)
    assert L1["replace-one"] == 2


def test_the_bound_on_rho_is_the_one_of_its_event():
    # By hand: p = 0.8, q = 0.2 of a mechanism with rho = 1 / 2 ... the divergence of one event is its own least rho.
    rng = generator(5)
    draws = [rng.random(50_000) < p for p in (0.8, 0.2)]
    sides = tuple(d.astype(np.int64) for d in draws)
    kl = 0.8 * np.log(4) + 0.2 * np.log(0.25)
    found = rho_bound(sides, sides, alpha=1e-6)
    assert 0.9 * kl < found.rho <= kl * 1.01 and found.forward and found.hits > found.misses
    assert rho_bound((sides[0], sides[0]), (sides[0], sides[0])).rho == 0.0
