"""The published noise on coded columns: ranges and values are read off the rows, which is part of what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Matrix
from countervail.core.encode import Encoder


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """What the mechanisms know of the training columns: least and largest number, or the values that occur."""

    numeric: Bools
    low: Floats
    high: Floats
    values: tuple[Floats, ...]
    reach: Floats  # what the noise on numbers is scaled by
    draw: str

    @classmethod
    def of(cls, encoder: Encoder, rows: Matrix, *, response: str = "kept", sensitivity: str = "range") -> Self:
        """From the rows themselves, as published."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        reach = np.ones(len(low)) if sensitivity == "one" else high - low
        return cls(encoder.numeric, low, high, tuple(np.unique(c) for c in rows.T), reach, response)

    def noisy(self, j: int, cells: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Column `j` with Laplace noise, or through randomised response; one budget per cell."""
        if self.numeric[j]:
            return laplace(cells, float(self.low[j]), float(self.high[j]), epsilon, rng, float(self.reach[j]))
        return _RESPONSES[self.draw](cells, self.values[j], epsilon, rng)


def laplace(
    cells: Floats, low: float, high: float, epsilon: Floats, rng: np.random.Generator, reach: float | None = None
) -> Floats:
    """Noise of scale reach / epsilon (by default that of the range), clipped to the range and cut to whole numbers."""
    moved = cells + rng.laplace(size=cells.shape) * ((high - low if reach is None else reach) / epsilon)
    whole: Floats = np.trunc(np.clip(moved, low, high))
    return whole


def response(cells: Floats, values: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
    """Kept with probability e**epsilon / (1 + e**epsilon), else one of the other values of the column.

    With m values the truth is e**epsilon * (m - 1) times as likely as any other: ln(m - 1) more than is promised.
    """
    if len(values) == 1:
        return cells.copy()
    kept = rng.random(cells.shape) < 1 / (1 + np.exp(-epsilon))
    place = np.searchsorted(values, cells)
    others = values[(place + rng.integers(1, len(values), cells.shape)) % len(values)]
    return np.where(kept, cells, others)


def response_of_any(cells: Floats, values: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
    """Algorithm 2 to the letter: with probability 1 / (1 + e**epsilon) one of all values, its own among them.

    With m values the truth is 1 + m * e**epsilon times as likely as any other: more than ln m above what is promised.
    """
    drawn = rng.random(cells.shape) >= 1 / (1 + np.exp(-epsilon))
    return np.where(drawn, values[rng.integers(0, len(values), cells.shape)], cells)


_RESPONSES: Final = {"kept": response, "swapped": response, "any": response_of_any}
RESPONSES: Final = ("kept", "any")
