"""How much likelier is an event on one side than on the other, at least? Both shares are tested at once.

The proof is in docs/decisions/epsilon-bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from countervail.core.arrays import Floats

_CELLS, _BLOCKS = 64, 384  # cells of the share that is not known, and blocks of counts, each taken at its worst
_LEFT = 0.02  # of the chance of error: that the share lies outside of its interval
_FINE = 1e-3  # how near the largest bound that is proven is approached
_FAR = 64.0  # no epsilon beyond it is told, in either direction


def share_below(hits: ArrayLike, n: int, alpha: float) -> Floats:
    """Clopper and Pearson's lower bound, one-sided."""
    from scipy.stats import beta

    x = np.asarray(hits, dtype=float)
    return np.where(x == 0, 0.0, beta.ppf(alpha, np.maximum(x, 1), n - x + 1))


def share_above(hits: ArrayLike, n: int, alpha: float) -> Floats:
    """Clopper and Pearson's upper bound, one-sided."""
    from scipy.stats import beta

    x = np.asarray(hits, dtype=float)
    return np.where(x >= n, 1.0, beta.ppf(1 - alpha, x + 1, np.maximum(n - x, 1)))


@dataclass(frozen=True, slots=True)
class TwoShares:
    """An event that came `hits` times in n draws, and `misses` times in m draws of the other side."""

    hits: int
    n: int
    misses: int
    m: int

    def epsilon(self, alpha: float, delta: float = 0.0) -> float:
        """The largest epsilon for which no shares p <= e**epsilon q + delta fit, but for a chance of alpha.

        Minus infinity where nothing is proven.

        Examples
        --------
        >>> round(TwoShares(75, 100, 25, 100).epsilon(0.05), 2)  # 3 to 1; two bounds at half of alpha each: 0.63
        0.75
        """
        if self.n < 1 or self.m < 1:
            return -math.inf
        low = float(share_below(self.hits, self.n, alpha / 2)) - delta
        if low <= 0:
            return -math.inf
        start = math.log(low / float(share_above(self.misses, self.m, alpha / 2)))
        worst = _Worst(self, alpha, delta, start)
        step, down = 0.02, start
        while not worst.refutes(down):
            down, step = down - step, 2 * step
            if down < -_FAR:
                return -math.inf
        step, up = 0.05, down + 0.05
        while worst.refutes(up):
            if up > _FAR:
                return _FAR
            down, up, step = up, up + step, 2 * step
        while up - down > _FINE:
            middle = (down + up) / 2
            down, up = (middle, up) if worst.refutes(middle) else (down, middle)
        return down


class _Worst:
    """The greatest chance of counts that prove as much as those seen.

    What counts prove is told by two bounds apart: the lower one of one share, less delta, over the upper one of the
    other. That order is fixed beforehand; more hits prove more, more misses less.
    """

    def __init__(self, seen: TwoShares, alpha: float, delta: float, proven: float) -> None:
        from scipy.special import bdtr
        from scipy.stats import binom

        left = _LEFT * alpha
        low, high = float(share_below(seen.misses, seen.m, left / 2)), float(share_above(seen.misses, seen.m, left / 2))
        ends = np.linspace(low, high, _CELLS + 1)
        self.most, self.alpha, self.delta, self.n = ends[1:, None], alpha, delta, seen.n
        # Blocks of misses: what lies beyond the last edges is in a block as well.
        wide = math.sqrt(2 * math.log(1000 / alpha))
        first = math.floor(seen.m * low - wide * math.sqrt(seen.m * low) - 1)
        last = math.ceil(seen.m * high + wide * math.sqrt(seen.m * high) + wide * wide + 1)
        inner = np.linspace(max(first, 0), min(last, seen.m), _BLOCKS).round().astype(np.int64)
        edges = np.unique(np.concatenate([[0], inner, [seen.m + 1]]))
        below = bdtr(np.maximum(edges - 1, 0)[None].astype(float), seen.m, ends[:-1, None])
        below[:, 0], below[:, -1] = 0.0, 1.0
        self.mass = np.maximum(np.diff(below, axis=1), 0.0)
        # The fewest hits that prove as much as what was seen, with the fewest misses of a block.
        wanted = delta + (1 - 1e-9) * math.exp(proven) * share_above(edges[:-1], seen.m, alpha / 2)
        least = 1 + binom.isf(alpha / 2, seen.n, np.minimum(wanted, 1.0))
        self.least = np.where(wanted >= 1, seen.n + 1, least)[None]

    def refutes(self, epsilon: float) -> bool:
        """Whether what was seen is less likely than alpha wherever shares are within epsilon."""
        from scipy.special import bdtrc

        p = np.minimum(math.exp(min(epsilon, _FAR)) * self.most + self.delta, 1.0)
        tail = bdtrc(np.clip(self.least - 1, 0, self.n - 1), self.n, p)
        tail = np.where((self.least <= 0) | (p >= 1), 1.0, tail)
        tail = np.where(self.least > self.n, 0.0, tail)
        chance = float((self.mass * tail).sum(axis=1).max())
        return chance * (1 + 1e-9) + _LEFT * self.alpha < self.alpha
