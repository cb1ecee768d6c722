"""Pairs of rows that differ in few columns and in the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix, unlike
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder


@kernel
def find_pairs(
    numbers: Floats, labels: Codes, scale: Floats, tolerance: Floats, classes: Ints, many: int, most: int
) -> Ints:
    """Row x class: the row of that class which differs least, in 1 to `most` columns (-1: none).

    Fewest columns first, then the nearest, then the first. Numbers within `tolerance` of each other do not differ.
    """
    n, p = numbers.shape
    partner = np.full((n, many), -1, np.int64)
    fewest = np.full((n, many), most + 1, np.int64)
    least = np.full((n, many), np.inf)
    for i in range(n):
        for j in range(i):
            a, b = classes[i], classes[j]
            if a == b:
                continue
            count, away = 0, 0.0
            for c in range(labels.shape[1]):
                count += labels[i, c] != labels[j, c]
                if count > most:
                    break
            if count > most:
                continue
            away = float(count)
            for c in range(p):
                step = abs(numbers[i, c] - numbers[j, c]) / scale[c]
                if step != step:  # missing: like itself, unlike any other
                    step = 0.0 if np.isnan(numbers[i, c]) and np.isnan(numbers[j, c]) else 1.0
                    count += step > 0.0
                else:
                    count += step > tolerance[c]
                if count > most:
                    break
                away += step
            if count > most or count == 0:
                continue
            if count < fewest[i, b] or (count == fewest[i, b] and away < least[i, b]):
                partner[i, b], fewest[i, b], least[i, b] = j, count, away
            if count < fewest[j, a] or (count == fewest[j, a] and away < least[j, a]):
                partner[j, a], fewest[j, a], least[j, a] = i, count, away
    return partner


@dataclass(frozen=True, eq=False, slots=True)
class Likeness:
    """When two values are the same: labels if they are equal, numbers if they lie within a share of the range."""

    heom: HEOM
    share: Floats  # of each measured column
    measured: Ints

    @classmethod
    def of(cls, encoder: Encoder, heom: HEOM, tolerance: float) -> Self:
        """Levels of an order are labels here."""
        measured = np.flatnonzero(heom.measured)
        return cls(heom, np.where(encoder.numeric[measured], tolerance, 0.0), measured)

    def differ(self, a: Matrix, b: Matrix) -> Bools:
        """Row x column: where rows of `a` differ from the same rows of `b`."""
        out = unlike(a, b)
        x, y = self.heom.numbers(a), self.heom.numbers(b)
        near = np.abs(x - y) / self.heom.scale <= self.share
        out[:, self.measured] &= ~near
        return out

    def pairs(self, rows: Matrix, classes: Ints, many: int, most: int) -> Ints:
        """Row x class: the partner of each row in each other class."""
        found: Ints = find_pairs(
            self.heom.numbers(rows), self.heom.labels(rows), self.heom.scale, self.share, classes, many, most
        )
        return found
