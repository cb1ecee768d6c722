"""What one run proves: guesses about many records that coins put in or left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countervail.core.guarantee.composition import zcdp_epsilon

_FAR = 64.0  # no epsilon beyond it is told


@dataclass(frozen=True, slots=True)
class OneRunEvidence:
    """What one run proves: epsilon (at delta) is at least `epsilon`, but for a chance of `alpha`.

    Of `canaries` records with a coin each, `guesses` were guessed in or out, and `right` of these guesses were right.
    """

    epsilon: float
    delta: float
    alpha: float
    canaries: int
    guesses: int
    right: int

    def refutes(self, epsilon: float) -> bool:
        """Whether a promise of this epsilon, at the same delta, is broken."""
        return self.epsilon > epsilon

    def refutes_rho(self, rho: float) -> bool:
        """Whether a promise of this rho is broken: it allows for no more than its epsilon at this delta."""
        return self.delta > 0 and self.epsilon > zcdp_epsilon(rho, self.delta)


def one_run_chance(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """How likely so many right guesses are at most, under (epsilon, delta).

    Theorem 5.2 of Steinke, Nasr, Jagielski: Privacy auditing with one (1) training run (2023).

    Without a delta a guess is right with e**epsilon / (1 + e**epsilon) at most, whatever the others are. With one, each
    of the canaries may be given away with a chance of twice delta, and i of them change the number of right guesses
    by i.
    """
    from scipy.stats import binom

    truth = 1 / (1 + np.exp(-epsilon))
    enough = float(binom.sf(right - 1, guesses, truth))
    if delta == 0:
        return min(enough, 1.0)
    fewer = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, truth))
    worst = float((fewer / np.arange(1, right + 1)).max(initial=0.0))
    return min(enough + worst * delta * 2 * canaries, 1.0)


def one_run_bound(
    canaries: int, guesses: int, right: int, *, delta: float = 0.0, alpha: float = 0.01
) -> OneRunEvidence:
    """The largest epsilon under which so many right guesses are less likely than `alpha`.

    Examples
    --------
    >>> found = one_run_bound(10, 10, 10, alpha=0.05)  # by hand: q**10 = 0.05, and epsilon = ln(q / (1 - q))
    >>> round(found.epsilon, 3)
    1.052
    """
    low, high = 0.0, _FAR
    if one_run_chance(canaries, guesses, right, 0.0, delta) >= alpha:
        return OneRunEvidence(0.0, delta, alpha, canaries, guesses, right)
    for _ in range(60):
        middle = (low + high) / 2
        proven = one_run_chance(canaries, guesses, right, middle, delta) < alpha
        low, high = (middle, high) if proven else (low, middle)
    return OneRunEvidence(low, delta, alpha, canaries, guesses, right)
