"""How often the same thing would happen by chance, among as many strangers as there are members."""

from __future__ import annotations

import numpy as np

from countervail.attack.shared.persons import many, owners
from countervail.core.arrays import Floats, Ints
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

_DRAWS = 2000  # of the bootstrap behind an interval
_STEPS = 60  # of bisection


def crowd(control: Table, size: int, random_state: int) -> Table:
    """As many strangers as there are members, with all their rows; all of them where they are fewer."""
    person, people = owners(control), many(control)
    if people <= size:
        return control
    some = np.sort(generator(random_state).permutation(people)[:size])
    return control.take(some if person is None else np.flatnonzero(np.isin(person, some)))


def coincidence(strangers: Ints, n: int, m: int) -> Estimate:
    """Share of conditions that exactly one of n strangers meets, where `strangers` of only m do.

    With m >= n it is counted. With fewer, how many meet a condition is taken for negative binomial over conditions: its
    two parameters are those that give the shares of conditions which nobody, and exactly one, of the m meets, and its
    mean grows with the number of strangers. The interval is the bootstrap's, over conditions. No member is looked at.
    """
    hits, cases = int((strangers == 1).sum()), len(strangers)
    if cases == 0 or n <= m:
        return clopper_pearson(hits, cases)
    none, more = int((strangers == 0).sum()), n / m
    if hits == 0:  # either nobody meets any of them, or many meet each: one alone is as rare among n
        exact = clopper_pearson(0, cases)
        return Estimate(0.0, 0.0, min(1.0, more * exact.high), cases)
    counted = np.array([none, hits, cases - none - hits]) / cases
    value = float(_grown(counted[None, :], more)[0])
    drawn = generator(0).multinomial(cases, counted, size=_DRAWS) / cases
    low, high = np.quantile(_grown(drawn, more), [0.025, 0.975])
    exact = clopper_pearson(hits, cases)
    high = max(float(high), value + (exact.high - exact.value))  # a bootstrap of very few hits is too narrow
    return Estimate(value, min(float(low), value), min(high, 1.0), cases)


def _grown(shares: Floats, more: float) -> Floats:
    """The share of conditions that exactly one person meets, among `more` times as many people.

    `shares`: of the conditions that nobody, one person, or more people meet now. With q = a / (a + mean), nobody has
    the share q^a and one person a (1 - q) q^a; so one's share over nobody's, by the logarithm of nobody's, is
    (1 - q) / -log q, which rises with q.
    """
    none, one = np.maximum(shares[:, 0], 1e-9), shares[:, 1]
    decay = -np.log(np.minimum(none, 1 - 1e-12))
    ratio = one / none / decay
    low, high = np.full(len(none), 1e-12), np.full(len(none), 1 - 1e-9)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        above = (1 - middle) / -np.log(middle) > ratio
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    q = (low + high) / 2
    a = decay / -np.log(q)
    grown = 1 / (1 + more * (1 - q) / q)
    out: Floats = np.where(one > 0, a * (1 - grown) * grown**a, 0.0)
    return out
