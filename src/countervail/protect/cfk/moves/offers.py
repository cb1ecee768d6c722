"""What the anonymised table has to offer: candidates, the cells of their regions, and the table as a whole.

Plain arrays, and nothing that tells who of a group owns which private vector: whatever is computed from them, from the
query, from the model and from public constraints is post-processing of the k-anonymous table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.groups.candidates import Candidates, SetShape, SpanShape, shapes
from countervail.protect.cfk.groups.group_table import GroupTable


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
    def of(cls, shape: SpanShape | SetShape, heom: HEOM, width: Floats, distinct: Floats) -> Self:
        """Number the cells; `distinct` are the column's values in the table, which a span stands for."""
        j = shape.column
        content = shape.content
        seen: dict[bytes, int] = {}
        number = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in content], dtype=np.int64)
        firsts = np.unique(number, return_index=True)[1]
        digests = (hashlib.blake2b(content[g].tobytes(), digest_size=6).digest() for g in firsts)
        name = np.array([float(int.from_bytes(digest)) for digest in digests])  # 48 bits: a float tells them apart
        inside = (shape.options(int(g), distinct) for g in firsts)
        options = tuple(o if len(o) else np.array([np.nan]) for o in inside)  # everybody of a stored group may be gone
        sizes = np.array([len(o) for o in options], dtype=np.int64)
        numbers = (o[~np.isnan(o)] if len(o) > 1 else o for o in options)
        ends = np.array([(o[0], o[-1]) for o in numbers]).reshape(-1, 2)
        nearest = np.zeros((0, 0))
        if isinstance(shape, SetShape):
            values = shape.member.shape[1]
            nearest = _nearest_members(options, values, bool(heom.measured[j]), float(heom.missing[j]))
        return cls(shape, _scales(heom)[j], width, number, name[number], options, sizes[number], ends[number], nearest)

    @property
    def column(self) -> int:
        """The column's place among the features."""
        return self.shape.column

    def gap(self, x: Floats) -> Floats:
        """Query x region: 0 inside, else to the nearest value."""
        return self.shape.gap(x, self.scale)

    def outside(self, x: Floats) -> Bools:
        """Query x region: whose value lies in no cell; one that the table never had is in no set."""
        if isinstance(self.shape, SpanShape):
            return self.shape.outside(x)
        return ~self.shape.holding[:, self._codes(x)].T

    def goal(self, x: Floats, region: Ints) -> Floats:
        """For queries and a region of each (same shape but for trailing axes): the value of the cell nearest to x."""
        own = x.reshape(x.shape + (1,) * (region.ndim - 1))
        if isinstance(self.shape, SpanShape):
            low, high = self.ends[region, 0], self.ends[region, 1]
            return np.where(np.isnan(own), low, np.clip(own, low, high))
        near: Floats = self.nearest[self.number[region], self._codes(own)]
        return near

    def _codes(self, x: Floats) -> Ints:
        assert isinstance(self.shape, SetShape)
        last = self.shape.member.shape[1]
        return np.where((x >= 0) & (x < last), x, last).astype(np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Offers:
    """Candidates (a region each, a private vector each) in order of content, and all pairs of the anonymised table.

    `scale` divides differences of the measured columns; it is 1 in the others. `missing` is the code of a missing level
    (-1: none). Quasi-identifiers of `private` and `pool_private` are blank.
    """

    group: Ints
    private: Matrix
    cells: tuple[CellColumn, ...]
    measured: Bools
    scale: Floats
    missing: Floats
    pool_group: Ints
    pool_private: Matrix
    quasi: Bools = field(init=False)  # which features are quasi-identifiers
    holes: frozenset[int] = field(init=False)  # measured columns with a missing level

    def __post_init__(self) -> None:
        quasi = np.zeros(len(self.scale), dtype=bool)
        quasi[[c.column for c in self.cells]] = True
        quasi.setflags(write=False)
        object.__setattr__(self, "quasi", quasi)
        holes = np.flatnonzero(self.measured & (self.missing >= 0))
        object.__setattr__(self, "holes", frozenset(holes.tolist()))

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        heom: HEOM,
        regions: Regions,
        widths: Sequence[Floats],
        distinct: Sequence[Floats],
        candidates: tuple[Ints, Matrix],
        pool: tuple[Ints, Matrix],
    ) -> Self:
        """From regions, with the width of each cell and the table's values column by column, and pairs of a region's
        number and a private vector."""
        columns = [
            CellColumn.of(shape, heom, width, values)
            for shape, width, values in zip(shapes(regions, encoder), widths, distinct)
        ]
        return cls(*candidates, tuple(columns), heom.measured, _scales(heom), heom.missing, *pool)

    def between(self, x: Floats, v: Floats) -> Floats:
        """HEOM's terms of rows, column by column as they are private; of no use for quasi-identifiers."""
        apart: Floats = unlike(x, v).astype(float)
        step: Floats = np.abs(x - v) / self.scale
        hole = (x == self.missing) | (v == self.missing)
        return np.where(self.measured & ~hole & ~np.isnan(step), step, apart)

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.cells[0].width)

    def plain(self, rows: Matrix, columns: Ints) -> Floats:
        """Some columns of rows for the kernels: a missing level of a measured column is NaN."""
        out = np.ascontiguousarray(rows[:, columns])
        if self.holes:
            for a, j in enumerate(columns.tolist()):
                if j in self.holes:
                    out[:, a][out[:, a] == self.missing[j]] = np.nan
        return out


def _scales(heom: HEOM) -> Floats:
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


def offered(made: GroupTable, judged: Candidates) -> Offers:
    """The candidates, and the sealed table as a whole: distinct pairs of a group and a private vector."""
    every = Candidates(made)
    register = [made.register.get(axis.name, np.zeros(0)) for axis in made.sealed.regions.axes]
    return Offers.of(
        made.encoder,
        judged.heom,
        made.sealed.regions,
        list(made.reach.T),
        register,
        (judged.group, judged.private),
        (every.group, every.private),
    )
