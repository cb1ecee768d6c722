"""The cells of all regions, quasi-identifier by quasi-identifier, and the same as plain arrays for the kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.distance import HEOM
from countervail.protect.cfk.groups.candidates import SetShape, SpanShape
from countervail.protect.cfk.moves.cell_kernels import FIELDS, to_cells, to_regions


@dataclass(frozen=True, eq=False, slots=True)
class CellColumn:
    """One quasi-identifier of all regions: cells, how far each reaches, and the values that it stands for.

    Equal cells share a `number`, and `options` holds the values of each number. `width`, `number`, `name` (of the
    cell's content), `sizes` and `ends` run over regions; of sets, `nearest` holds for each number the member nearest
    to every value (last: to one never seen).
    """

    shape: SpanShape | SetShape
    scale: float
    width: Floats
    number: Ints
    name: Floats
    options: tuple[Floats, ...]
    sizes: Ints
    ends: Floats
    nearest: Floats

    @classmethod
    def of(cls, shape: SpanShape | SetShape, heom: HEOM, scale: float, width: Floats, distinct: Floats) -> Self:
        """Number the cells; `distinct` are the column's values in the table, which a span stands for."""
        j, whole, n = shape.column, shape.content.tobytes(), len(width)
        step = len(whole) // max(n, 1)
        keys = [whole[g * step : (g + 1) * step] for g in range(n)]
        seen: dict[bytes, int] = {}
        number = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
        firsts = dict(zip(reversed(keys), range(n - 1, -1, -1)))  # the first region with each cell
        digests = (hashlib.blake2b(key, digest_size=6).digest() for key in seen)
        name = np.array([float(int.from_bytes(digest)) for digest in digests])  # 48 bits: a float tells them apart
        inside = (shape.options(g, distinct) for g in map(firsts.__getitem__, seen))
        options = tuple(o if len(o) else np.array([np.nan]) for o in inside)  # everybody of a stored group may be gone
        sizes = np.array([len(o) for o in options], dtype=np.int64)
        numbers = (o[~np.isnan(o)] if len(o) > 1 else o for o in options)
        ends = np.array([(o[0], o[-1]) for o in numbers]).reshape(-1, 2)
        nearest = np.zeros((0, 0))
        if isinstance(shape, SetShape):
            values = shape.member.shape[1]
            nearest = _nearest_members(options, values, bool(heom.measured[j]), float(heom.missing[j]))
        return cls(shape, scale, width, number, name[number], options, sizes[number], ends[number], nearest)

    @property
    def column(self) -> int:
        """The column's place among the features."""
        return self.shape.column

    def pack(self, into: Floats) -> None:
        """Write the fields of each region's cell (region x field), as `cell_kernels` names them."""
        if isinstance(self.shape, SpanShape):
            into[:, 0], into[:, 1], into[:, 2] = self.shape.low, self.shape.high, self.shape.holes
        into[:, 3], into[:, 4], into[:, 5], into[:, 6] = self.width, self.number, self.name, self.sizes
        into[:, 7:] = self.ends

    @property
    def tables(self) -> list[Floats]:
        """Of a set: value x region, how far the value is and whether it lies outside; number x value, the nearest
        member. The last value is one never seen."""
        if isinstance(self.shape, SpanShape):
            return []
        return [self.shape.wide.T, (~self.shape.holding.T).astype(float), self.nearest]


@dataclass(frozen=True, eq=False, slots=True)
class PackedCells:
    """The cells of all regions; `cell_kernels` names the fields of `heads` (column x field) and `cells` (column x
    region x field), and `tables` holds one after the other those of sets."""

    heads: Floats
    cells: Floats
    tables: Floats
    columns: Ints
    width: Floats  # column x region

    @classmethod
    def of(cls, columns: Sequence[CellColumn]) -> Self:
        """Of columns that have the same regions."""
        regions = len(columns[0].width) if columns else 0
        heads, cells = np.zeros((len(columns), 5)), np.zeros((len(columns), regions, FIELDS))
        flat: list[Floats] = [np.zeros(0)]
        start = 0
        for head, into, c in zip(heads, cells, columns):
            c.pack(into)
            head[0], head[1], tables = c.scale, -1.0, c.tables
            if isinstance(c.shape, SetShape):
                head[1] = c.shape.member.shape[1]
            head[2:] = start
            for a, table in enumerate(tables):
                head[2 + a] = start
                flat.append(table.ravel())
                start += table.size
        places = np.array([c.column for c in columns], dtype=np.int64)
        width = np.array([c.width for c in columns], dtype=float)
        return cls(heads, cells, np.concatenate(flat), places, width)

    def ask(self, x: Matrix) -> tuple[Floats, Bools]:
        """Query x column x region: how far the query's value is from the cell, and whether it lies outside."""
        away, outside = self.look(np.tile(np.arange(len(self.columns)), len(x)), x[:, self.columns].ravel())
        shape = (len(x), len(self.columns), self.width.shape[1])
        return away.reshape(shape), outside.reshape(shape)

    def look(self, which: Ints, values: Floats) -> tuple[Floats, Bools]:
        """The same for values of some columns: value x region."""
        found: tuple[Floats, Bools] = to_cells(self.heads, self.cells, self.tables, which, values)
        return found

    def reach(self, rows: Ints, away: Floats, outside: Bools, counts: Bools, opens: Bools) -> tuple[Floats, Bools]:
        """Query x region, for some queries: the distance and how far the region reaches, over the columns that
        `counts` names, and whether one of the cells that are open to the query may be moved to."""
        found: tuple[Floats, Bools] = to_regions(rows, away, outside, self.width, counts, opens)
        return found


def scales_of(heom: HEOM) -> Floats:
    out = np.ones(len(heom.measured))
    out[heom.measured] = heom.scale
    return out


def _nearest_members(options: tuple[Floats, ...], n: int, measured: bool, missing: float) -> Floats:
    """Cell x value: the member nearest to each value, the first of equals; labels have no order, so the first."""
    values = np.arange(n + 1, dtype=float)
    out = np.zeros((len(options), n + 1))
    for a, members in enumerate(options):
        known = members[members != missing]
        out[a] = members[0]
        if measured and len(known):
            near = known[np.abs(known[None] - values[:-1, None]).argmin(axis=1)]
            out[a, :-1] = np.where(values[:-1] == missing, out[a, :-1], near)
    return out
