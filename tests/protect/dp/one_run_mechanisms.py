"""Mechanisms with many records that a coin puts in or leaves out: for audits of one run at epsilon 1, delta 1e-6.

Each is (mechanism, canaries, guesses, delta). Every canary is alone at its position of a long column. The more there
are, the farther out the guesses lie, where little noise tells most; but each may be given away with a chance of delta.
So many canaries take a smaller delta, at which the same rho allows for a larger epsilon.
"""

import numpy as np
import pandas as pd

import countervail as cv
from countervail.core.rng import generator
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.protect.dp.synthetic.draw import draw_counts

EPSILON, DELTA, ENTROPY = 1.0, 1e-6, generator(None)
MANY, GUESSES = 10_000, 1_000
VERY_MANY, TINY = 4_000_000, 1e-9
PEOPLE = 20_000  # besides, so that pairs are counted


def noise():
    return NoiseBudget(EPSILON, DELTA, "add-remove", ENTROPY)


def a_count(part):
    """Counts of one column, with so much less noise."""

    def mechanism(included):
        b = noise()
        near = ENTROPY.random(len(included)) / 2  # equal counts in no order that the canaries have
        return included + b._seeded_noise(b.count_scale(b.total) / part, included.shape) + near

    return mechanism


class NoNoise(NoiseBudget):
    """Lets counts out as they are."""

    def counts(self, exact, budget):
        return exact


def whole_draw(kind):
    """The draw of PrivateSynthetic: the count at the position of each canary."""
    frame = pd.DataFrame({"place": [0, 1], "side": ["a", "b"], "ok": ["no", "yes"]})
    domains = {"place": (0, MANY - 1, MANY), "side": ["a", "b"], "ok": ["no", "yes"]}
    grid = Grid.of(cv.Table.from_frame(frame, target="ok", domains=domains), "audit")
    rng = generator(0)
    others = np.column_stack([np.zeros(PEOPLE, dtype=np.int64), rng.integers(0, 2, PEOPLE)])

    def mechanism(included):
        at = np.flatnonzero(included)
        codes = np.concatenate([others, np.column_stack([at, at % 2])])
        b = kind(EPSILON, DELTA, "add-remove", ENTROPY)
        drawn = draw_counts(codes, codes[:, 1], 2, grid, b)
        return drawn.ones[0].sum(axis=0) + ENTROPY.random(MANY) / 2

    return mechanism


ONE_RUN = {
    "one run: counts of a column": (a_count(1), MANY, GUESSES, DELTA),
    "one run: counts of a long column": (a_count(1), VERY_MANY, GUESSES, TINY),
    "one run: the whole draw": (whole_draw(NoiseBudget), MANY, GUESSES, DELTA),
}
ONE_RUN_BROKEN = {
    "one run: half the noise": (a_count(2), VERY_MANY, GUESSES, TINY),
    "one run: a quarter of the noise": (a_count(4), MANY, GUESSES, DELTA),
    "one run: counts without noise": (whole_draw(NoNoise), MANY, GUESSES, DELTA),
}
