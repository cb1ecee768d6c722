"""The published noise on coded columns: ranges and values are read off the rows, which is part of what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

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

    @classmethod
    def of(cls, encoder: Encoder, rows: Matrix) -> Self:
        """From the rows themselves, as published."""
        return cls(encoder.numeric, rows.min(axis=0), rows.max(axis=0), tuple(np.unique(c) for c in rows.T))

    def noisy(self, j: int, cells: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Column `j` with Laplace noise, or through randomised response; one budget per cell."""
        if self.numeric[j]:
            return laplace(cells, float(self.low[j]), float(self.high[j]), epsilon, rng)
        return response(cells, self.values[j], epsilon, rng)


def laplace(cells: Floats, low: float, high: float, epsilon: Floats, rng: np.random.Generator) -> Floats:
    """Noise of scale (high - low) / epsilon, clipped to the range and cut to whole numbers."""
    moved = cells + rng.laplace(size=cells.shape) * ((high - low) / epsilon)
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
