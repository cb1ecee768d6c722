"""The steps of PrivateSynthetic on tiny tables, and each with one precondition taken away: for the audit of rho.

Each is (mechanism, table, neighbour, claimed rho). The noise is numpy's, of the same width and quick; the exact
samplers are compared with their formulas elsewhere.
"""

from fractions import Fraction

import numpy as np
from dp_mechanisms import GRID, rule

from countervail.core.rng import generator
from countervail.protect.dp.private_logistic import Shares, reach, slopes
from countervail.protect.dp.synthetic.accounting import UNIT, NoiseBudget, rho_of
from countervail.protect.dp.synthetic.bins import MarginalCounts
from countervail.protect.dp.synthetic.draw import PAIRED, PAIRS, SURE, TOTAL, BudgetShares, draw_counts, settle
from countervail.protect.dp.synthetic.edges import pair_counts, pair_scores

EPSILON, DELTA = 5.25, 1e-6
RHO = rho_of(EPSILON, DELTA)  # about one half
ENTROPY = generator(None)
TABLE = np.column_stack([generator(0).integers(0, m, 400) for m in (2, 4, 5)])
SOMEBODY = np.array([[1, 3, 4]])
MORE = np.concatenate([TABLE, SOMEBODY])


def noise(kind=NoiseBudget):
    return kind(EPSILON, DELTA, "add-remove", ENTROPY)


class HalfNoise(NoiseBudget):
    """Draws with half the deviation that it accounts for."""

    def counts(self, exact, budget):
        return exact + self._seeded_noise(self.count_scale(budget) / 2, exact.shape)


def whole_draw(kind):
    """The whole draw, seen through the counts that one record moves, each by its weight: what tells most of it."""

    def mechanism(codes, n):
        classes, out = rule(codes).astype(np.int64), np.empty(n)
        for i in range(n):
            b = noise(kind)
            drawn = draw_counts(codes, classes, 2, GRID, b)
            shares = BudgetShares.of(drawn.total, 3, 2, b)
            assert shares.level == "pairs" and shares.strata == 1
            marginals, _ = settle(drawn.ones, GRID, shares, b)
            bins = [int(m.bins[SOMEBODY[0, j]]) for j, m in enumerate(marginals)]
            seen = 2 * float(b.total * TOTAL) * drawn.total
            seen += 2 * float(shares.one) * sum(int(y[0, SOMEBODY[0, j]]) for j, y in enumerate(drawn.ones))
            each = float(shares.pairs / max(len(drawn.edges), 1))
            seen += 2 * each * sum(int(y[0, bins[a], bins[c]]) for (a, c), y in zip(drawn.edges, drawn.pairs))
            out[i] = seen
        return np.rint(out * 4).astype(np.int64)

    return mechanism


# Two pairs of columns with equal scores: one more record raises one of them and lowers the other.
LEFT = np.repeat([0, 1], 20)
APART = np.column_stack([LEFT, LEFT, 1 - LEFT])
EVEN = tuple(MarginalCounts.of(np.array([[20, 20]]), np.array([0, 1]), np.array([[20.0, 20.0]])) for _ in range(3))


def choice(times):
    """Which of the two pairs wins, when scores move by so many times what the noise is made for."""

    def mechanism(codes, n):
        strata = np.zeros(len(codes), dtype=np.int64)
        scores = pair_scores(
            lambda a, b: pair_counts(codes, strata, EVEN, a, b), EVEN, np.array([40.0]), 0.0, [(0, 1), (0, 2)]
        )
        scores = times * (scores - 40 * UNIT - [UNIT, 0])  # one behind the other, or ahead of it
        b = noise()
        return np.array([b.choose(scores, Fraction(RHO)) for _ in range(n)])

    return mechanism


def at_the_rule():
    """A table whose number of records is just below the one from which on pairs are counted, and one above."""
    b = noise()
    least = int(np.ceil(max(PAIRED * b.deviation(b.total * PAIRS / 2), SURE * b.deviation(b.total * TOTAL))))
    codes = np.resize(TABLE, (least - 1, 3))
    return codes, np.concatenate([codes, SOMEBODY])


def level_by_noise(codes, n):
    b = noise()
    noisy = len(codes) + b.counts(np.zeros(n, dtype=np.int64), b.total * TOTAL)
    return np.array([BudgetShares.of(int(t), 3, 2, b).level == "pairs" for t in noisy])


def level_by_the_true_total(codes, n):
    return np.full(n, BudgetShares.of(len(codes), 3, 2, noise()).level == "pairs")


def grid_of_the_rows(codes, n):
    """A column as long as the largest value there is: one longer tells that somebody is there."""
    b, top = noise(), int(codes[:, 2].max())
    return np.array([len(b.counts(np.bincount(codes[:, 2], minlength=top + 1), Fraction(1, 10))) for _ in range(n)])


def decisions_by_the_mean(codes, n):
    """The decision about a record compares it with all others: one record moves many."""
    b, classes = noise(), (codes[:, 2] > codes[:, 2].mean()).astype(np.int64)
    exact = np.bincount(classes, minlength=2)
    return np.rint(b.counts(np.full(n, exact[1]), Fraction(RHO)) / 2).astype(np.int64)


def two_cells(codes, n):
    """Counts with the noise for one record more or less."""
    b = noise()
    drawn = b.counts(np.tile(np.bincount(codes, minlength=2), (n, 1)), Fraction(RHO))
    return np.rint(2 * (drawn[:, 0] - drawn[:, 1])).astype(np.int64)


HERE = [Shares.of(a) for a in GRID.axes]
FAR = np.concatenate([s.parts[SOMEBODY[0, j]] for j, s in enumerate(HERE)])  # the shares of the record that is added


def a_step(times):
    """The slopes at no weights yet, along those of one record, with noise for slopes shorter by so many times."""

    def mechanism(codes, n):
        exact = slopes(codes, np.zeros(len(codes), dtype=np.int64), HERE, np.zeros((1, len(FAR)), dtype=np.int64))
        l1, l2_squared = reach(len(HERE), 1)
        drawn = noise().sums(np.tile(exact, (n, 1)), Fraction(RHO), l1, l2_squared // times**2)
        return np.rint(drawn @ FAR / (FAR @ FAR) / 200).astype(np.int64)

    return mechanism


FEW = TABLE[TABLE[:, 2] < 4]
LEVEL = np.concatenate([np.full((60, 3), 2), np.zeros((30, 3)), np.full((30, 3), 4)]).astype(np.int64)
ZERO = np.zeros((1, 3), dtype=np.int64)

OURS = {
    "the whole draw": (whole_draw(NoiseBudget), TABLE, MORE, RHO),
    "the choice of a pair": (choice(1), APART, np.concatenate([APART, ZERO]), RHO),
    "a step of the private model": (a_step(1), TABLE, MORE, RHO / 4),  # at no weights a miss is half of the longest
    "what the noisy total decides": (level_by_noise, *at_the_rule(), RHO * float(TOTAL)),
}
BROKEN = {
    "slopes that are twice as long": (a_step(4), TABLE, MORE, RHO),  # four times for a miss of a half
    "half the noise": (whole_draw(HalfNoise), TABLE, MORE, RHO),
    "a score that moves by twice as much": (choice(2), APART, np.concatenate([APART, ZERO]), RHO),
    "an exact total decides": (level_by_the_true_total, *at_the_rule(), RHO),
    "a grid read off the data": (grid_of_the_rows, FEW, np.concatenate([FEW, SOMEBODY]), RHO),
    "decisions that look at others": (decisions_by_the_mean, LEVEL, np.concatenate([LEVEL, ZERO]), RHO),
    "noise of added records where one is replaced": (
        two_cells,
        np.repeat([0, 1], [20, 20]),
        np.repeat([0, 1], [19, 21]),
        RHO,
    ),
}
QUICK = (
    "a step of the private model",
    "slopes that are twice as long",
    "noise of added records where one is replaced",
    "decisions that look at others",
)
SLOW = ("the whole draw", "half the noise")  # thousands of draws a minute, not a second
