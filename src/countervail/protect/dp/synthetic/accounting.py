"""Exact noise, and what it costs: the only place where exact counts become noisy ones."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter
from countervail.core.guarantee.composition import zcdp_rho
from countervail.core.rng import RandomState, generator

Neighbouring = Literal["add-remove", "replace-one"]
UNIT = 1 << 20  # scores are whole numbers of 2**-20 records
# How far one record moves counts of disjoint cells: there or not, by one; replaced, it leaves one cell for another.
L1: dict[str, int] = {"add-remove": 1, "replace-one": 2}
L2: dict[str, float] = {"add-remove": 1.0, "replace-one": math.sqrt(2.0)}  # the double lies above the true root
_UP = 1 + 1e-12  # scales are rounded up, so that floats cost nothing
_SAFE = 1 - 1e-9  # more than rounding can add to a rho


@lru_cache(maxsize=64)
def rho_of(epsilon: float, delta: float) -> float:
    """The rho of zCDP that (epsilon, delta) pays for, on the safe side.

    Examples
    --------
    >>> round(rho_of(1.0, 1e-6), 5)
    0.02436
    """
    return zcdp_rho(epsilon, delta) * _SAFE


def check_budget(epsilon: float, delta: float, owner: str) -> None:
    """An epsilon and a delta that some rho pays for."""
    if delta and not rho_of(float(epsilon), float(delta)) > 0:
        must = f"large enough for a delta of {delta:g}"
        raise bad_parameter(owner, "epsilon", must, epsilon, "No noise that is counted in rho keeps so little.")


class NoiseBudget:
    """A budget that noise is drawn from: rho of zCDP with a delta, epsilon without.

    What OpenDP accounts for is added up in fractions and compared with what was given before anything leaves.
    """

    def __init__(self, epsilon: float, delta: float, adjacency: Neighbouring, random_state: RandomState = None) -> None:
        self.pure = delta == 0
        self.total = Fraction(float(epsilon) if self.pure else rho_of(float(epsilon), float(delta)))
        self.adjacency = adjacency
        self.spent = Fraction(0)
        self._seeded = None if random_state is None else generator(random_state)

    def deviation(self, budget: Fraction) -> float:
        """The standard deviation of counts that are drawn with this budget."""
        return self.count_scale(budget) * (math.sqrt(2) if self.pure else 1.0)

    def count_scale(self, budget: Fraction) -> float:
        """The scale of discrete Laplace noise, or the deviation of discrete Gaussian noise, on counts."""
        return self._scale(self._far_in_counts, budget)

    def sum_scale(self, budget: Fraction, l1: int, l2_squared: int) -> float:
        """The same on sums of vectors of whole numbers, none longer than this."""
        return self._scale(self._far_in_sums(l1, l2_squared), budget)

    def score_scale(self, budget: Fraction) -> float:
        """The scale of the noise on scores; each moves by `UNIT` with one record, or by twice that."""
        far = L1[self.adjacency] * UNIT
        return (float(2 * far / budget) if self.pure else far / math.sqrt(2 * float(budget))) * _UP

    def counts(self, exact: Ints, budget: Fraction) -> Ints:
        """Counts of disjoint cells, every record in at most one of them, with noise."""
        return self._drawn(exact, self._far_in_counts, budget)

    def sums(self, exact: Ints, budget: Fraction, l1: int, l2_squared: int) -> Ints:
        """Sums of a vector of whole numbers from each record, none longer than this in L1 and in L2, with noise."""
        return self._drawn(exact, self._far_in_sums(l1, l2_squared), budget)

    def choose(self, scores: Ints, budget: Fraction) -> int:
        """The place of a large score, by noisy max; one record moves each score by at most `UNIT` (or twice that)."""
        scale = self.score_scale(budget)
        if self._seeded is not None:
            return int(np.argmax(scores / scale + self._seeded.gumbel(size=len(scores))))
        dp = _opendp()
        measure = dp.max_divergence() if self.pure else dp.zero_concentrated_divergence()
        domain = dp.vector_domain(dp.atom_domain(T="i64"))
        drawn = dp.m.make_noisy_max(domain, dp.linf_distance(T="i64"), measure, scale=scale)
        self._pay(budget, drawn.map(L1[self.adjacency] * UNIT))
        return int(drawn(scores.tolist()))

    @property
    def _far_in_counts(self) -> float:
        return L1[self.adjacency] if self.pure else L2[self.adjacency]

    def _far_in_sums(self, l1: int, l2_squared: int) -> float:
        """There or not, a record moves a sum by its own vector; replaced, by two of them at most."""
        times = L1[self.adjacency]
        return times * l1 if self.pure else times * root_above(l2_squared)

    def _scale(self, far: float, budget: Fraction) -> float:
        if self.pure:
            return float(Fraction(far) / budget) * _UP
        return far / math.sqrt(2 * float(budget)) * _UP

    def _drawn(self, exact: Ints, far: float, budget: Fraction) -> Ints:
        """Whole numbers that one record moves by `far` at most (in L1, or in L2 with a delta), with noise for that."""
        scale = self._scale(far, budget)
        if self._seeded is not None:
            return exact + self._seeded_noise(scale, exact.shape)
        dp = _opendp()
        domain = dp.vector_domain(dp.atom_domain(T="i64"))
        if self.pure:
            drawn = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
            self._pay(budget, drawn.map(int(far)))
        else:
            drawn = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
            self._pay(budget, drawn.map(far))
        noisy: Ints = np.array(drawn(exact.ravel().tolist()), dtype=np.int64).reshape(exact.shape)
        return noisy

    def _pay(self, given: Fraction, accounted: float) -> None:
        self.spent += Fraction(accounted)
        if Fraction(accounted) > given or self.spent > self.total:
            raise AssertionError("OpenDP accounts for more than this draw may spend")

    def _seeded_noise(self, scale: float, shape: tuple[int, ...]) -> Ints:
        """Rounded noise of the same width for tests: OpenDP cannot be seeded."""
        assert self._seeded is not None
        draw = self._seeded.laplace if self.pure else self._seeded.normal
        noise: Ints = np.rint(draw(0.0, scale, shape)).astype(np.int64)
        return noise


def root_above(square: int) -> float:
    """The least double that is not below the square root of a whole number, or one above it."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")  # measurements whose proofs are written but not yet vetted by OpenDP
    return dp
