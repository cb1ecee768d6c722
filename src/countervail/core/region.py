"""Regions: the one shape every generalised thing has (a CF-K box, a Mondrian cell, a rule, a pattern)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Bools, Ints, Matrix, distinct_frame_rows, distinct_rows, number_rows
from countervail.core.canonical import canonical_value, code_values
from countervail.core.cells import cell_column, cell_text
from countervail.core.encode import Coding
from countervail.core.errors import SchemaError
from countervail.core.schema import Schema
from countervail.core.table import to_pandas
from countervail.core.words.dates import read_days

_BLOCK = 1 << 24  # cells of a region x row matrix worked on at once
_PAIRS = 1 << 26  # regions times rows, above which a tree of the rows is grown: below it, that takes longer
_WHOLE = 2.0**53  # whole numbers below it are told apart as floats


@dataclass(frozen=True, eq=False, slots=True)
class Range:
    """One numeric column of many regions: closed intervals; NaN bounds with `holes` accept missing values alone."""

    name: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: bool = False
    holes: Bools | None = None

    def take(self, rows: Any) -> Self:
        """The bounds of some of the regions."""
        return replace(
            self, low=self.low[rows], high=self.high[rows], holes=None if self.holes is None else self.holes[rows]
        )

    def read(self, values: pd.Series) -> tuple[NDArray[np.float64], Bools]:
        """Values as numbers (NaN: none), and which of them are missing."""
        missing = values.isna().to_numpy(dtype=bool)
        if pd.api.types.is_datetime64_any_dtype(values.dtype):
            values = read_days(values, "", self.name)  # times in ranges of numbers: days are meant
        try:
            v = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        except (ValueError, TypeError):
            v = np.full(len(values), np.nan)
        # A few labels among numbers lie in no range; if there is nothing else, the column is another one.
        if (np.isnan(v) & ~missing).all() and len(v):
            raise SchemaError(f"Column '{self.name}' is numeric in the regions but not in the rows.")
        return v, missing

    def covers(self, values: pd.Series) -> Bools:
        """Region x row: which values lie inside."""
        v, missing = self.read(values)
        inside: Bools = (self.low[:, None] <= v) & (v <= self.high[:, None])
        if self.holes is not None:
            inside |= self.holes[:, None] & missing
        return inside

    def cell(self, i: int) -> Any:
        """The cell of region `i`: a number, a closed interval, or a set with the missing value."""
        hole = self.holes is not None and bool(self.holes[i])
        low, high = (int(v) if self.whole and v == v else float(v) for v in (self.low[i], self.high[i]))
        if low != low:
            return None if hole else frozenset()
        value = low if low == high else pd.Interval(low, high, closed="both")
        return frozenset([value, None]) if hole else value

    def meet(self, other: Range) -> Range:
        """The intersection, region by region; an empty one has NaN bounds and no holes."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        gone = ~(low <= high)
        holes = self.holes & other.holes if self.holes is not None and other.holes is not None else None
        return Range(
            self.name, np.where(gone, np.nan, low), np.where(gone, np.nan, high), self.whole and other.whole, holes
        )

    def canonical(self) -> Range:
        """The same bounds as whole numbers where all of them are; holes only where there are any."""
        ends = np.concatenate([self.low, self.high])
        ends = ends[~np.isnan(ends)]
        whole = bool(((np.abs(ends) < _WHOLE) & (ends == np.floor(ends))).all())
        holes = self.holes if self.holes is not None and self.holes.any() else None
        return Range(self.name, self.low + 0.0, self.high + 0.0, whole, holes)  # -0.0 and 0.0 are one number

    @property
    def empty(self) -> Bools:
        """Which regions accept no value of this column."""
        gone: Bools = np.isnan(self.low)
        return gone if self.holes is None else gone & ~self.holes


@dataclass(frozen=True, eq=False, slots=True)
class Values:
    """One ordinal or categorical column of many regions: value sets as packed bits over `known` values."""

    name: str
    known: tuple[Any, ...]
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, name: str, known: Sequence[Any], member: Bools) -> Self:
        """From a region x value matrix."""
        return cls(name, tuple(known), np.packbits(member, axis=1))

    @property
    def member(self) -> Bools:
        """Region x value: which values belong."""
        return np.unpackbits(self.bits, axis=1, count=len(self.known)).astype(bool)

    @property
    def sizes(self) -> Ints:
        """How many values belong to each region."""
        held: Ints = np.bitwise_count(self.bits).sum(axis=1, dtype=np.int64)
        return held

    @property
    def first(self) -> Ints:
        """The place of the first value that belongs to each region; 0 where there is none."""
        if not self.bits.shape[1]:
            return np.zeros(len(self.bits), dtype=np.int64)
        at = (self.bits != 0).argmax(axis=1)
        held = self.bits[np.arange(len(self.bits)), at]
        place: Ints = 8 * at.astype(np.int64) + np.unpackbits(held[:, None], axis=1).argmax(axis=1)
        return place

    def take(self, rows: Any) -> Self:
        """The value sets of some of the regions."""
        return replace(self, bits=self.bits[rows])

    def places(self, values: pd.Series) -> NDArray[np.intp]:
        """Each value's place among the known ones; -1: it is none of them."""
        position = {canonical_value(v): i for i, v in enumerate(self.known)}
        codes, kinds = code_values(values)
        return np.array([position.get(v, -1) for v in kinds], dtype=np.intp)[codes]

    def covers(self, values: pd.Series) -> Bools:
        """Region x row: which values belong; a missing value matches only where missing is a member."""
        member = np.concatenate([self.member, np.zeros((len(self.bits), 1), dtype=bool)], axis=1)
        return member[:, self.places(values)]

    def cell(self, i: int) -> Any:
        """The cell of region `i`: one value, or a frozenset."""
        inside = np.flatnonzero(np.unpackbits(self.bits[i], count=len(self.known)))
        values = [self.known[j] for j in inside]
        return values[0] if len(values) == 1 else frozenset(values)

    def meet(self, other: Values) -> Values:
        """The intersection, region by region."""
        position = {v: i for i, v in enumerate(other.known)}
        theirs = np.concatenate([other.member, np.zeros((len(other.bits), 1), dtype=bool)], axis=1)
        at = [position.get(v, -1) for v in self.known]
        return Values.of(self.name, self.known, self.member & theirs[:, at])

    @property
    def empty(self) -> Bools:
        """Which regions accept no value of this column."""
        return np.asarray(self.sizes == 0)

    def canonical(self, declared: Sequence[Any] | None = None) -> Values:
        """The same sets over the values that some region holds, in their declared or their one spelling and order."""
        held = self.pruned()
        at, known = code_values(held.known, declared)
        member, old = np.zeros((len(self.bits), len(known)), dtype=bool), held.member
        for i, j in enumerate(at):
            member[:, j] |= old[:, i]
        return Values.of(self.name, known, member)

    def pruned(self) -> Values:
        """Without the values that no region holds, so that they do not leave with it."""
        used: Bools = np.asarray(self.member.any(axis=0))
        return Values.of(self.name, [v for v, u in zip(self.known, used) if u], self.member[:, used])


Axis = Range | Values


@dataclass(frozen=True, slots=True)
class Region:
    """A conjunction: each named column lies in an interval or in a set. Absent column: any value.

    Examples
    --------
    >>> import pandas as pd
    >>> r = Region({"age": pd.Interval(24, 27, closed="both"), "city": "Antwerp"})
    >>> print(r)
    age 24-27, city Antwerp
    >>> r.covers(pd.DataFrame({"age": [24, 30], "city": ["Antwerp", "Antwerp"]})).tolist()
    [True, False]
    """

    cells: Mapping[str, Any]

    def covers(self, rows: Any) -> Bools:
        """Which rows lie inside; columns the rows lack are not asked about."""
        inside: Bools = Regions.from_cells([self.cells]).covers(rows)[0]
        return inside

    def count(self, rows: Any) -> int:
        """How many rows lie inside."""
        return int(self.covers(rows).sum())

    def __str__(self) -> str:
        return ", ".join(f"{name} {cell_text(cell)}" for name, cell in self.cells.items())


@dataclass(frozen=True, eq=False, slots=True)
class Regions:
    """Many regions over the same columns, stored column by column; where `free` (region x column), any value fits."""

    axes: tuple[Axis, ...]
    size: int
    free: Bools | None = None

    @classmethod
    def around(cls, codings: Sequence[Coding], low: Matrix, high: Matrix, members: Mapping[str, Bools]) -> Self:
        """From coded bounds (numeric columns) and membership matrices (the others)."""
        axes: list[Axis] = []
        for j, c in enumerate(codings):
            if c.numeric:
                whole = pd.api.types.is_integer_dtype(c.dtype)
                axes.append(Range(c.name, low[:, j].astype(float), high[:, j].astype(float), whole))
            else:
                axes.append(Values.of(c.name, c.values, members[c.name]))
        return cls(tuple(axes), len(low))

    @classmethod
    def points(cls, codings: Sequence[Coding], rows: Matrix) -> Self:
        """One-point regions: each row for itself."""
        members = {}
        for j, c in enumerate(codings):
            if not c.numeric:
                member = np.zeros((len(rows), len(c.lookup)), dtype=bool)
                member[np.arange(len(rows)), rows[:, j].astype(np.intp)] = True
                members[c.name] = member
        return cls.around(codings, rows, rows, members)

    @classmethod
    def from_cells(cls, records: Sequence[Mapping[str, Any]], schema: Schema | None = None) -> Self:
        """From cells as they are shown: plain values, closed intervals, frozensets."""
        names = list(records[0]) if records else []
        if any(list(r) != names for r in records):
            raise SchemaError("All regions must name the same columns in the same order.")
        axes = [_axis(n, [r[n] for r in records], None if schema is None else schema[n].type) for n in names]
        return cls(tuple(axes), len(records))

    @property
    def names(self) -> list[str]:
        """The columns that the regions speak of."""
        return [a.name for a in self.axes]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, (int, np.integer)):
            if not -self.size <= i < self.size:
                raise IndexError(i)
            said = self.axes if self.free is None else [a for a, any_ in zip(self.axes, self.free[i]) if not any_]
            return Region({a.name: a.cell(int(i) % self.size) for a in said})
        rows = np.arange(self.size)[i]
        free = None if self.free is None else self.free[rows]
        return replace(self, axes=tuple(a.take(rows) for a in self.axes), size=len(rows), free=free)

    def __iter__(self) -> Iterator[Region]:
        return (self[i] for i in range(self.size))

    def covers(self, rows: Any) -> Bools:
        """Region x row: which rows lie inside; columns the rows lack are not asked about."""
        frame = to_pandas(rows, "Regions.covers", "rows")
        inside = np.ones((self.size, len(frame)), dtype=bool)
        for j, axis in enumerate(self.axes):
            if axis.name in frame.columns:
                fits = axis.covers(frame[axis.name])
                inside &= fits if self.free is None else fits | self.free[:, j, None]
        return inside

    def count(self, rows: Any, times: Ints | None = None) -> NDArray[np.int64]:
        """How many rows lie in each region (equal rows are looked at once; of very many pairs, few are looked at).

        Each row is there once, or so many `times`.
        """
        frame = to_pandas(rows, "Regions.count", "rows")
        asked = [n for n in self.names if n in frame.columns]
        if not asked:
            return np.full(self.size, len(frame) if times is None else times.sum(), dtype=np.int64)
        if self.size * len(frame) > _PAIRS:
            from countervail.core.counting import count_in_tree

            return count_in_tree(self, frame, times)[0]
        tuples, weights = distinct_frame_rows(frame, asked, times)
        step = max(1, _BLOCK // max(1, len(tuples)))
        parts = [self[a : a + step].covers(tuples) @ weights for a in range(0, self.size, step)]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    def meet(self, other: Regions) -> Regions:
        """The intersection, region by region; a column that only one of them names keeps its cells."""
        if self.size != other.size:
            raise SchemaError(f"Regions must be as many to intersect pairwise. Got {self.size} and {other.size}.")
        theirs = {a.name: a for a in other.axes}
        axes = [_meet(a, theirs.pop(a.name)) if a.name in theirs else a for a in self.axes]
        return Regions((*axes, *theirs.values()), self.size)

    @property
    def empty(self) -> Bools:
        """Which regions accept nothing."""
        gone = np.zeros(self.size, dtype=bool)
        for axis in self.axes:
            gone |= axis.empty
        return gone

    def pruned(self) -> Regions:
        """Without the values that no region holds."""
        return replace(self, axes=tuple(a.pruned() if isinstance(a, Values) else a for a in self.axes))

    def canonical(self, schema: Schema) -> Regions:
        """The same regions, told by nothing but their cells and what the schema declares."""
        axes = (a.canonical() if isinstance(a, Range) else a.canonical(schema[a.name].public) for a in self.axes)
        return replace(self, axes=tuple(axes))

    def ranks(self) -> NDArray[np.int64]:
        """Each region's place in an order of their cells; equal ones share theirs."""
        place = np.zeros(self.size, dtype=np.int64)
        for a in self.axes:
            cells = np.column_stack([a.low, a.high, _holes(a)]) if isinstance(a, Range) else a.bits
            place = distinct_rows(np.column_stack([place, distinct_rows(cells)[1]]))[1]
            if place.max(initial=-1) + 1 == self.size:
                break  # further columns have nothing left to tell apart
        return place

    def shown_in(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame whose columns of these names hold the regions' cells instead."""
        cells = self.to_frame()
        return frame.assign(**{n: cells[n].astype(object) for n in cells.columns})

    def to_frame(self) -> pd.DataFrame:
        """One row of cells per region: plain values, closed intervals, frozensets."""
        return pd.DataFrame({a.name: cell_column([a.cell(i) for i in range(self.size)]) for a in self.axes})

    def text(self) -> list[str]:
        """Each region in words."""
        return [str(region) for region in self]


def distinct_cells(axis: Axis) -> tuple[Ints, Ints]:
    """The first region with each different cell, and which of these cells every region has."""
    if isinstance(axis, Range):
        holes = np.zeros(len(axis.low), bool) if axis.holes is None else axis.holes
        parts = [pd.factorize(v, use_na_sentinel=False)[0].astype(np.int64) for v in (axis.low, axis.high, holes)]
        numbers = number_rows(parts)
    else:
        width = axis.bits.shape[1]
        padded = np.zeros((len(axis.bits), max(-(-width // 8), 1) * 8), np.uint8)
        padded[:, :width] = axis.bits
        words = padded.view(np.uint64)
        numbers = number_rows([pd.factorize(words[:, i])[0].astype(np.int64) for i in range(words.shape[1])])
    # Numbers count up in the order of first appearance.
    first = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))
    return first, numbers


def joined_regions(one: Regions, other: Regions) -> Regions:
    """The regions of both, which must name the same columns in the same order and kinds."""
    if one.names != other.names:
        raise SchemaError("Regions must name the same columns in the same order to be joined.")
    axes = tuple(_joined(a, b) for a, b in zip(one.axes, other.axes))
    return Regions(axes, one.size + other.size)


def _joined(a: Axis, b: Axis) -> Axis:
    if isinstance(a, Range) and isinstance(b, Range):
        low, high = np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high])
        return Range(a.name, low, high, a.whole and b.whole, np.concatenate([_holes(a), _holes(b)])).canonical()
    if isinstance(a, Values) and isinstance(b, Values):
        known = [*a.known, *(v for v in b.known if v not in a.known)]
        place = {v: i for i, v in enumerate(known)}
        member = np.zeros((len(a.bits) + len(b.bits), len(known)), dtype=bool)
        member[: len(a.bits), : len(a.known)] = a.member
        member[len(a.bits) :, [place[v] for v in b.known]] = b.member
        return Values.of(a.name, known, member)
    raise SchemaError(f"Column '{a.name}' is published as ranges in one of the regions and as sets in the other.")


def _holes(axis: Range) -> Bools:
    return np.zeros(len(axis.low), dtype=bool) if axis.holes is None else axis.holes


def _meet(a: Axis, b: Axis) -> Axis:
    if isinstance(a, Range) and isinstance(b, Range):
        return a.meet(b)
    if isinstance(a, Values) and isinstance(b, Values):
        return a.meet(b)
    raise SchemaError(f"Column '{a.name}' is numeric in one of the regions and not in the other.")


def _axis(name: str, cells: list[Any], kind: str | None) -> Axis:
    parts = [_parts(c) for c in cells]
    flat = [v for part in parts for v in part if v is not None]
    spans = any(isinstance(v, pd.Interval) for v in flat)
    listed = any(len(part) > 1 + (None in part) for part in parts)
    if spans and listed:
        raise SchemaError(f"Column '{name}' mixes intervals with sets of several values; use one kind.")
    if spans or (kind in ("numeric", "date") and not listed):
        return _range(name, parts)
    known = sorted(set(flat), key=lambda v: (type(v).__name__, v))
    if any(v is None for part in parts for v in part):
        known.append(None)
    position = {v: i for i, v in enumerate(known)}
    member = np.zeros((len(cells), len(known)), dtype=bool)
    for i, part in enumerate(parts):
        member[i, [position[v] for v in part]] = True
    return Values.of(name, known, member)


def _range(name: str, parts: list[list[Any]]) -> Range:
    low, high = np.full(len(parts), np.nan), np.full(len(parts), np.nan)
    holes = np.zeros(len(parts), dtype=bool)
    whole = True
    for i, part in enumerate(parts):
        for v in part:
            if v is None:
                holes[i] = True
                continue
            left, right = (v.left, v.right) if isinstance(v, pd.Interval) else (v, v)
            low[i], high[i] = np.fmin(low[i], left), np.fmax(high[i], right)
            whole &= isinstance(left, (int, np.integer)) and isinstance(right, (int, np.integer))
    return Range(name, low, high, whole, holes if holes.any() else None)


def _parts(cell: Any) -> list[Any]:
    if isinstance(cell, frozenset):
        return [None if not isinstance(v, pd.Interval) and pd.isna(v) else v for v in cell]
    if isinstance(cell, pd.Interval):
        if cell.closed != "both":
            raise SchemaError(f"Intervals of a region must be closed on both ends. Got one closed on '{cell.closed}'.")
        return [cell]
    return [None] if pd.isna(cell) else [cell.item() if isinstance(cell, np.generic) else cell]
