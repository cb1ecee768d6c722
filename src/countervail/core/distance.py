"""HEOM in its L1 form: scaled differences of numbers plus mismatches of labels; missing lies 1 from all else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from countervail.core import _kernels
from countervail.core.arrays import Matrix, number_rows
from countervail.core.encode import Encoder

EPS = 1e-11  # the reference's: scales below it become it


Scale = Literal["minmax", "std", "iqr", "range", "quantile"]
SCALES: tuple[Scale, ...] = get_args(Scale)
_OUTER = 0.01  # the share of rows at either end that may not set the scale
_STRETCHED = 10  # times the width of all other rows: what differs among these hardly counts


@dataclass(frozen=True, eq=False, slots=True)
class HEOM:
    """The distance between coded rows; scales are learnt from a table's rows.

    Numeric columns are divided by their range ("minmax"), population standard deviation, interquartile range (the
    standard deviation where that is nothing) or declared domain ("range"; that of the rows where none is declared), or
    are measured by rank ("quantile": the share of rows between two values). Ordinal ones are divided by the number of
    steps between their levels. What is missing lies 1 from anything else.
    """

    measured: NDArray[np.bool_]
    scale: NDArray[np.float64]
    missing: NDArray[np.float64]
    ranks: tuple[tuple[Matrix, Matrix] | None, ...] = ()
    at: NDArray[np.int64] = field(init=False, repr=False)  # the places of the measured columns
    others: NDArray[np.int64] = field(init=False, repr=False)  # those of the categorical ones
    holed: tuple[tuple[int, float], ...] = field(init=False, repr=False)  # measured columns with a missing level

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", np.flatnonzero(self.measured))
        object.__setattr__(self, "others", np.flatnonzero(~self.measured))
        levels = [(a, float(self.missing[j])) for a, j in enumerate(self.at.tolist())]
        object.__setattr__(self, "holed", tuple((a, level) for a, level in levels if level >= 0))

    @classmethod
    def fit(cls, encoder: Encoder, rows: Matrix, scale: Scale = "minmax") -> Self:
        """Scales over all `rows`."""
        measured = np.array([c.column.type != "categorical" for c in encoder.codings], dtype=bool)
        missing = np.array(
            [-1 if c.numeric else c.missing if c.missing >= 0 else c.levels for c in encoder.codings], dtype=float
        )
        scales: list[float] = []
        ranks: list[tuple[Matrix, Matrix] | None] = []
        for j in np.flatnonzero(measured):
            coding = encoder.codings[j]
            known = rows[:, j][~np.isnan(rows[:, j])]
            by_rank = coding.numeric and scale == "quantile" and len(known) > 0
            ranks.append(_middle_ranks(known) if by_rank else None)
            if not coding.numeric:
                scales.append(float(max(coding.levels - 1, 1)))
            else:
                spread = 1.0 if by_rank else _spread(known, scale, coding.column.public)
                scales.append(spread if spread >= EPS else EPS)
        held = tuple(ranks) if any(r is not None for r in ranks) else ()
        return cls(measured, np.array(scales, dtype=float), missing, held)

    def numbers(self, rows: Matrix) -> Matrix:
        """The measured columns, missing levels as NaN."""
        out = np.ascontiguousarray(rows[:, self.at])
        for a, level in self.holed:
            out[:, a][out[:, a] == level] = np.nan
        for a, ranked in enumerate(self.ranks):
            if ranked is not None:
                out[:, a] = np.interp(out[:, a], *ranked)
        return out

    def labels(self, rows: Matrix) -> NDArray[np.int32]:
        """The categorical columns as codes."""
        return np.ascontiguousarray(rows[:, self.others].astype(np.int32))

    def between(self, a: Matrix, b: Matrix, weights: Matrix | None = None) -> NDArray[np.float64]:
        """Distance of each row of `a` to the same row of `b` (terms are added in column order)."""
        number_weight, label_weight = self._weights(weights)
        x, y = self.numbers(a), self.numbers(b)
        terms = np.abs(x - y) / self.scale
        holes = np.isnan(terms)
        if holes.any():
            terms[holes] = np.where(np.isnan(x[holes]) & np.isnan(y[holes]), 0.0, 1.0)
        if weights is not None:
            terms *= number_weight
        # A running sum adds up from left to right, in whatever order numpy adds up otherwise.
        total: NDArray[np.float64] = terms.cumsum(axis=1)[:, -1].copy() if len(self.at) else np.zeros(len(x))
        differ = self.labels(a) != self.labels(b)
        total += differ.sum(axis=1) if weights is None else differ @ label_weight
        return total

    def _weights(self, weights: Matrix | None) -> tuple[Matrix, Matrix]:
        """Weights of the measured and of the other columns; empty ones where all weigh alike."""
        if weights is None:
            return np.zeros(0), np.zeros(0)
        return np.ascontiguousarray(weights[self.measured]), np.ascontiguousarray(weights[~self.measured])


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
        self,
        queries: Matrix,
        wanted: NDArray[np.bool_],
        n: int = 1,
        admissible: NDArray[np.bool_] | None = None,
        weights: Matrix | None = None,
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
            None if weights is None else self.heom._weights(weights),
            self._numbers,
            self._row,
            self._starts,
            self._class,
            self._labels,
            n,
        )
        return found


def stretched_columns(encoder: Encoder, rows: Matrix) -> list[str]:
    """Numeric columns whose range is that of a few values: min-max makes all others look alike."""
    found = []
    for j, coding in enumerate(encoder.codings):
        known = rows[:, j][~np.isnan(rows[:, j])]
        if coding.numeric and len(known):
            low, high = np.quantile(known, [_OUTER, 1 - _OUTER])
            if 0 < _STRETCHED * (high - low) < np.ptp(known):
                found.append(coding.name)
    return found


def _spread(known: Matrix, scale: Scale, domain: tuple[Any, ...] | None) -> float:
    if scale == "range" and domain is not None:
        return float(domain[1] - domain[0])
    if not len(known):
        return 0.0
    if scale == "iqr":
        low, high = np.quantile(known, [0.25, 0.75])
        return float(high - low) or float(known.std())
    return float(known.std() if scale == "std" else np.ptp(known))


def _middle_ranks(known: Matrix) -> tuple[Matrix, Matrix]:
    """Each value, and the share of rows below it with half of those at it."""
    values, counts = np.unique(known, return_counts=True)
    return values, (np.cumsum(counts) - counts / 2) / len(known)
