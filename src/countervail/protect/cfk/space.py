"""The quasi-identifiers of a training table as small integer tuples with counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix, distinct_rows, every_combination
from countervail.core.encode import Coding, Encoder
from countervail.core.loss import as_interval, column_weights
from countervail.core.region import Range, Regions, Values
from countervail.core.table import Table


@dataclass(frozen=True, eq=False, slots=True)
class Boxes:
    """Regions in codes: `low` and `high` (E, q), and membership (E, q, V)."""

    low: Ints
    high: Ints
    member: Bools

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: Ints | Bools) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.low[rows], self.high[rows], self.member[rows])

    def put(self, at: Any, others: Boxes, source: Any) -> None:
        """Write some of the other boxes into the places `at`."""
        self.low[at], self.high[at], self.member[at] = others.low[source], others.high[source], others.member[source]


@dataclass(frozen=True, eq=False, slots=True)
class Space:
    """Each quasi-identifier rank-coded on its sorted distinct training values; equal tuples stand once, with counts.

    `tuples` run in lexicographic order, so whatever is computed from them depends on the table's content alone.
    """

    codings: tuple[Coding, ...]
    columns: Ints  # position of each quasi-identifier among the features
    values: tuple[Floats, ...]  # the encoder's number or code of each rank
    row_codes: Codes
    tuples: Codes
    counts: Ints
    row_tuple: Ints
    interval: Bools
    sizes: Ints
    positions: Floats
    unit: Floats
    scale: Floats

    @classmethod
    def fit(
        cls,
        table: Table,
        encoder: Encoder,
        rows: Matrix,
        weights: Mapping[str, float] | None,
        owner: str,
        people: Ints | None = None,
    ) -> Self:
        """Code the quasi-identifiers of `rows`, each that of one person or of so many `people`."""
        names = table.schema.names("quasi")
        w = column_weights(names, weights, owner)
        columns = np.array([encoder.names.index(n) for n in names], dtype=np.int64)
        values, codes = [], np.empty((len(rows), len(names)), dtype=np.int32)
        for j, c in enumerate(columns):
            inverse, distinct = pd.factorize(rows[:, c], sort=True, use_na_sentinel=False)  # missing comes last
            values.append(np.asarray(distinct, dtype=float))
            codes[:, j] = inverse
        sizes = np.array([len(v) for v in values], dtype=np.int64)
        interval = np.array([as_interval(table, n) for n in names], dtype=bool)
        positions = np.zeros((len(names), int(sizes.max())))
        scale = np.ones(len(names))
        for j, v in enumerate(values):
            positions[j, : len(v)] = v
            if interval[j]:
                coding, there = encoder.codings[columns[j]], v[~np.isnan(v)]
                spread = float(np.ptp(there)) if len(there) else 0.0
                scale[j] = spread if coding.numeric else float(max(coding.levels - 1, 1))
                if len(there) < len(v):  # off the scale: whoever is grouped with numbers costs a whole column
                    positions[j, len(v) - 1] = there.max(initial=0.0) + (spread or 1.0)
        unit = np.where(interval, np.divide(w, scale, out=np.zeros_like(w), where=scale > 0), w / sizes)
        first, row_tuple = distinct_rows(codes)
        return cls(
            tuple(encoder.codings[c] for c in columns),
            columns,
            tuple(values),
            codes,
            np.ascontiguousarray(codes[first]),
            np.bincount(row_tuple, people).astype(np.int64),
            row_tuple,
            interval,
            sizes,
            positions,
            unit,
            np.where(scale > 0, scale, 1.0),
        )

    @property
    def missing(self) -> list[int]:
        """The rank of a missing number, the last one, in each column (-1: none is missing)."""
        return [len(v) - 1 if np.isnan(v[-1]) else -1 for v in self.values]

    def only(self, rows: Ints) -> Space:
        """The same codes and costs for some of the rows."""
        codes = self.row_codes[rows]
        first, row_tuple = distinct_rows(codes)
        counts = np.bincount(row_tuple).astype(np.int64)
        tuples = np.ascontiguousarray(codes[first])
        return replace(self, row_codes=codes, tuples=tuples, counts=counts, row_tuple=row_tuple)

    def codes_of(self, rows: Matrix) -> Codes:
        """The codes of training rows."""
        codes = [np.searchsorted(v, rows[:, c]) for v, c in zip(self.values, self.columns)]
        return np.column_stack(codes).astype(np.int32)

    def no_boxes(self, n: int) -> Boxes:
        """Room for `n` boxes."""
        q, v = len(self.sizes), self.positions.shape[1]
        return Boxes(np.zeros((n, q), np.int64), np.zeros((n, q), np.int64), np.zeros((n, q, v), dtype=bool))

    def cells(self, boxes: Boxes, i: int) -> Codes:
        """All code combinations of box `i`."""
        options = [np.flatnonzero(boxes.member[i, j, : self.sizes[j]]) for j in range(len(self.sizes))]
        return every_combination(options).astype(np.int32)

    def sizes_of(self, boxes: Boxes) -> Floats:
        """How many code combinations each box holds (as a float: it can be astronomical)."""
        product: Floats = boxes.member.sum(axis=2).astype(float).prod(axis=1)
        return product

    def draw(self, boxes: Boxes, i: int, n: int, rng: np.random.Generator) -> Codes:
        """`n` code combinations of box `i` drawn at random, with repetition."""
        out = np.empty((n, len(self.sizes)), dtype=np.int32)
        for j in range(len(self.sizes)):
            options = np.flatnonzero(boxes.member[i, j, : self.sizes[j]])
            out[:, j] = rng.choice(options, n)
        return out

    def place(self, cells: Codes, rows: Matrix) -> Matrix:
        """`rows` with their quasi-identifiers replaced by those of `cells`."""
        out = rows.copy()
        for j, c in enumerate(self.columns):
            out[:, c] = self.values[j][cells[:, j]]
        return out

    def widths(self, boxes: Boxes) -> list[Floats]:
        """How far each box reaches, column by column: its part of NCP without a weight."""
        every = np.arange(len(self.sizes))
        reach = (self.positions[every, boxes.high] - self.positions[every, boxes.low]) / self.scale
        held = boxes.member.sum(axis=2)
        return list(np.where(self.interval, reach, np.where(held > 1, held / self.sizes, 0.0)).T)

    def regions(self, boxes: Boxes) -> Regions:
        """The boxes as regions of values, without those that no box holds."""
        axes: list[Range | Values] = []
        for j, coding in enumerate(self.codings):
            if coding.numeric:
                low, high = self.values[j][boxes.low[:, j]], self.values[j][boxes.high[:, j]]
                whole = pd.api.types.is_integer_dtype(coding.dtype)
                holes = boxes.member[:, j, self.missing[j]] if self.missing[j] >= 0 else None
                axes.append(Range(coding.name, low, high, whole, holes))
                continue
            member = boxes.member[:, j, : self.sizes[j]]
            used = np.asarray(member.any(axis=0))
            known = [coding.values[v] for v in self.values[j][used].astype(np.intp).tolist()]
            axes.append(Values.of(coding.name, known, member[:, used]))
        return Regions(tuple(axes), len(boxes))
