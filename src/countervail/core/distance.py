"""HEOM in its L1 form: scaled differences of numbers plus mismatches of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from countervail.core import _kernels
from countervail.core.arrays import Matrix, number_rows
from countervail.core.encode import Encoder

EPS = 1e-11  # the reference's: scales below it become it


@dataclass(frozen=True, eq=False, slots=True)
class HEOM:
    """The distance between coded rows; scales are learnt from a table's rows.

    Numeric columns are divided by their range (or population standard deviation), ordinal ones by the number of
    steps between their levels; a missing level lies 1 from any other.
    """

    measured: NDArray[np.bool_]
    scale: NDArray[np.float64]
    missing: NDArray[np.float64]

    @classmethod
    def fit(cls, encoder: Encoder, rows: Matrix, scale: Literal["minmax", "std"] = "minmax") -> Self:
        """Scales over all `rows`."""
        measured = np.array([c.column.type != "categorical" for c in encoder.codings], dtype=bool)
        missing = np.array(
            [-1 if c.numeric else c.missing if c.missing >= 0 else c.levels for c in encoder.codings], dtype=float
        )
        scales = []
        for j in np.flatnonzero(measured):
            coding = encoder.codings[j]
            if not coding.numeric:
                scales.append(float(max(coding.levels - 1, 1)))
                continue
            spread = float(np.ptp(rows[:, j]) if scale == "minmax" else rows[:, j].std())
            scales.append(spread if spread >= EPS else EPS)
        return cls(measured, np.array(scales, dtype=float), missing)

    def numbers(self, rows: Matrix) -> Matrix:
        """The measured columns, missing levels as NaN."""
        out = np.ascontiguousarray(rows[:, self.measured])
        for a, j in enumerate(np.flatnonzero(self.measured)):
            if self.missing[j] >= 0:
                out[:, a][out[:, a] == self.missing[j]] = np.nan
        return out

    def labels(self, rows: Matrix) -> NDArray[np.int32]:
        """The categorical columns as codes."""
        return np.ascontiguousarray(rows[:, ~self.measured].astype(np.int32))

    def between(self, a: Matrix, b: Matrix) -> NDArray[np.float64]:
        """Distance of each row of `a` to the same row of `b` (terms are added in column order)."""
        x, y = self.numbers(a), self.numbers(b)
        total = np.zeros(len(x))
        for j in range(len(self.scale)):
            term = np.abs(x[:, j] - y[:, j]) / self.scale[j]
            holes = np.isnan(term)
            if holes.any():
                term[holes] = np.where(np.isnan(x[holes, j]) & np.isnan(y[holes, j]), 0.0, 1.0)
            total += term
        total += (self.labels(a) != self.labels(b)).sum(axis=1)
        return total


class Neighbours:
    """Rows arranged for nearest-neighbour queries among chosen classes; read-only once built."""

    def __init__(
        self,
        heom: HEOM,
        rows: Matrix,
        classes: NDArray[np.int64],
        eligible: NDArray[np.bool_],
        *,
        distinct: bool = True,
    ) -> None:
        """Arrange the eligible rows; `distinct` keeps the first of equal ones only."""
        self.heom = heom
        kept = np.flatnonzero(eligible)
        numbers, labels = heom.numbers(rows[kept]), heom.labels(rows[kept])
        # Rows of one group need only lie together: one number for all labels sorts faster than the labels do.
        alike = number_rows([classes[kept].astype(np.int64), *(labels.T.astype(np.int64) + 1)])
        order = np.lexsort([kept, *numbers.T[::-1], alike])
        kept, numbers, labels, klass = kept[order], numbers[order], labels[order], classes[kept][order]
        if len(kept):
            same_group = (labels[1:] == labels[:-1]).all(axis=1) & (klass[1:] == klass[:-1])
            equal = (numbers[1:] == numbers[:-1]) | (np.isnan(numbers[1:]) & np.isnan(numbers[:-1]))
            repeated = same_group & equal.all(axis=1) & distinct
            first = np.concatenate([[True], ~repeated])  # the first of equal rows stands for all
            opens = np.concatenate([[True], ~same_group])[first]
            kept, numbers, labels, klass = kept[first], numbers[first], labels[first], klass[first]
            heads = np.flatnonzero(opens)
        else:
            heads = np.zeros(0, dtype=np.int64)
        self._numbers, self._row = np.ascontiguousarray(numbers), kept.astype(np.int64)
        self._starts = np.append(heads, len(kept)).astype(np.int64)
        self._class, self._labels = klass[heads].astype(np.int64), np.ascontiguousarray(labels[heads])

    def nearest(
        self, queries: Matrix, wanted: NDArray[np.bool_], n: int = 1, admissible: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Row numbers (-1: none left) and distances of the `n` nearest rows of the wanted classes."""
        if admissible is None:
            admissible = np.zeros((len(queries), 0), dtype=bool)
        found: tuple[NDArray[np.int64], NDArray[np.float64]] = _kernels.nearest(
            self.heom.numbers(queries),
            self.heom.labels(queries),
            np.ascontiguousarray(wanted),
            np.ascontiguousarray(admissible),
            self.heom.scale,
            self._numbers,
            self._row,
            self._starts,
            self._class,
            self._labels,
            n,
        )
        return found
