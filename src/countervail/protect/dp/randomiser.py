"""Noise on finite public domains, in whole numbers only: no rounding stands between the code and the proof.

The proof is in docs/decisions/dp-randomiser.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.rng import Words
from countervail.protect.dp import randomiser_kernels as kernels
from countervail.protect.dp.grid import Grid

_TOTAL = 1 << 60  # weights of one row add up to at most this
_MARGIN = Fraction(1, 10**40)  # covers the last digit of a decimal function at 60 digits
_CANDIDATES = 400  # windows tried at most


def exp_below(epsilon: Fraction) -> Fraction:
    """A fraction just below e**epsilon (far below it beyond 1000, where nothing is private anyway)."""
    epsilon = min(epsilon, Fraction(1000))
    with localcontext() as context:
        context.prec, context.rounding = 60, ROUND_FLOOR
        power = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
    return Fraction(power) * (1 - _MARGIN)


def log_below(ratio: Fraction) -> Fraction:
    """A fraction just below ln(ratio), for a ratio above one; never below zero."""
    with localcontext() as context:
        context.prec, context.rounding = 60, ROUND_FLOOR
        power = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    return max(Fraction(power) - _MARGIN, Fraction(0))


def sampled_budget(epsilon: Fraction, taken: int, of: int) -> Fraction:
    """What each of `taken` secretly sampled slots of `of` may spend when the answer may spend `epsilon`."""
    if taken == of:
        return epsilon
    return log_below(1 + Fraction(of, taken) * (exp_below(epsilon) - 1))


def weights(size: int, window: int, epsilon: Fraction) -> tuple[int, int]:
    """Whole-number weights inside and outside the window, with `inside / outside <= e**epsilon`."""
    ratio = exp_below(epsilon)
    outside = max(int(_TOTAL / (window * ratio + size - window)), 1)
    inside = min(int(ratio * outside), (_TOTAL - (size - window) * outside) // window)
    inside = max(inside, outside)
    assert Fraction(inside, outside) <= max(ratio, Fraction(1))
    assert window * inside + (size - window) * outside <= _TOTAL
    return inside, outside


@lru_cache(maxsize=1024)
def best_window(size: int, epsilon: float) -> int:
    """The window with the least mean error when every position is as likely; a public figure.

    Examples
    --------
    >>> best_window(101, 1.0), best_window(101, 3.0)
    (41, 21)
    """
    x = np.arange(size, dtype=float)
    ratio = float(np.exp(min(epsilon, 700.0)))
    everywhere = float((x * (x + 1) / 2 + x[::-1] * (x[::-1] + 1) / 2).mean())
    best, least = 1, np.inf
    for n in sorted({int(v) for v in np.linspace(1, size, min(size, _CANDIDATES))}):
        start = np.clip(x - n // 2, 0, size - n)
        a, b = x - start, start + n - 1 - x
        near = float((a * (a + 1) / 2 + b * (b + 1) / 2).mean())
        share = 1 / ratio  # divided through, so that a huge ratio does not overflow
        error = (near * (1 - share) + everywhere * share) / (n + (size - n) * share)
        if error < least - 1e-12:
            best, least = n, error
    return best


@dataclass(frozen=True, eq=False, slots=True)
class Randomiser:
    """Independent noise on each position of a record; all of a record together spends the sum of `epsilons`.

    Each axis has two weights: one inside a window of positions around the true one (moved so that it stays on the
    axis) and a smaller one outside. The window has the same size wherever it lies, so the weights of every row add up
    to the same total, and the ratio of two rows is the ratio of the weights: at most e**epsilon.
    """

    sizes: Ints
    windows: Ints
    inside: Ints
    outside: Ints
    epsilons: tuple[Fraction, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], ordered: Sequence[bool], epsilons: Sequence[Fraction]) -> Self:
        """Windows of several positions where there is an order, of one (k-ary randomised response) elsewhere."""
        windows = [
            best_window(int(m), round(float(e), 6)) if is_ordered else 1
            for m, is_ordered, e in zip(sizes, ordered, epsilons)
        ]
        both = [weights(int(m), n, e) for m, n, e in zip(sizes, windows, epsilons)]
        inside, outside = [b[0] for b in both], [b[1] for b in both]
        return cls(_ints(sizes), _ints(windows), _ints(inside), _ints(outside), tuple(epsilons))

    @classmethod
    def over(cls, grid: Grid, epsilons: Sequence[Fraction]) -> Self:
        """The randomiser of a grid's records."""
        return cls.of(grid.sizes.tolist(), grid.ordered.tolist(), epsilons)

    @property
    def epsilon(self) -> Fraction:
        """What one record spends."""
        return sum(self.epsilons, Fraction(0))

    def draw(self, codes: Ints, words: Words) -> Ints:
        """A noisy copy of coded records; the last axis runs over the columns."""
        flat = np.ascontiguousarray(codes.reshape(-1, len(self.sizes)), dtype=np.int64)
        out, open_ = np.empty_like(flat), np.ones(flat.shape, dtype=bool)
        left = flat.size
        while left:
            left = kernels.randomise(
                flat, words.draw(*flat.shape), self.sizes, self.windows, self.inside, self.outside, out, open_
            )
        return out.reshape(codes.shape)

    def table(self, axis: int) -> list[list[int]]:
        """The exact weights of one axis: true position x noisy position."""
        m, n = int(self.sizes[axis]), int(self.windows[axis])
        rows = []
        for x in range(m):
            first = min(max(x - n // 2, 0), m - n)
            near = range(first, first + n)
            rows.append([int(self.inside[axis] if y in near else self.outside[axis]) for y in range(m)])
        return rows


def choose(rows: int, n: int, picks: int, words: Words) -> Ints:
    """For each row, `picks` of 0..n-1 without repetition, every choice exactly as likely."""
    out, open_ = np.empty((rows, picks), dtype=np.int64), np.ones(rows, dtype=bool)
    left = rows if picks else 0
    while left:
        left = kernels.choose(words.draw(rows, picks), n, out, open_)
    return out


def _ints(values: Sequence[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
