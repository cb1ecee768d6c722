"""What the anonymised table has to offer: candidates, the cells of their regions, and the table as a whole.

Plain arrays, and nothing that tells who of a group owns which private vector: whatever is computed from them, from the
query, from the model and from public constraints is post-processing of the k-anonymous table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.groups.candidates import Candidates, SetShape, SpanShape, shapes
from countervail.protect.cfk.groups.group_table import GroupTable
from countervail.protect.cfk.moves.cell_kernels import FIELDS, to_cells, to_moves, to_steps

_FEW: Final = 64  # so few candidates are not worth to be looked through for equal ones


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
        gap, apart = np.zeros((len(rows), away.shape[2])), np.zeros((len(rows), away.shape[2]), dtype=bool)
        for c in range(len(self.columns)):
            if counts[c]:
                gap += away[rows, c] + self.width[c]
            apart |= opens[rows, c, None] & outside[rows, c]
        return gap, apart


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


@dataclass(frozen=True, eq=False, slots=True)
class Offers:
    """Candidates (a region each, a private vector each) in order of content, and all pairs of the anonymised table.

    `scale` divides differences of the measured columns; it is 1 in the others. `missing` is the code of a missing level
    (-1: none). Quasi-identifiers of `private` and `pool_private` are blank. `least` (column) is the declared step of
    numbers that leave as multiples of it (0: as they are), between `ends` (2 x column).
    """

    group: Ints
    private: Matrix
    cells: tuple[CellColumn, ...]
    measured: Bools
    scale: Floats
    missing: Floats
    pool_group: Ints
    pool_private: Matrix
    least: Floats
    ends: Floats
    quasi: Bools = field(init=False)  # which features are quasi-identifiers
    holes: frozenset[int] = field(init=False)  # measured columns with a missing level
    packed: PackedCells = field(init=False)  # the cells, for kernels
    steps: Floats = field(init=False)  # the scale as kernels have it: 0 in columns of labels
    names: Ints = field(init=False)  # candidate x feature: of the private value or the cell; of few candidates none

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed", PackedCells.of(self.cells))
        object.__setattr__(self, "steps", np.where(self.measured, self.scale, 0.0))
        quasi = np.zeros(len(self.scale), dtype=bool)
        quasi[[c.column for c in self.cells]] = True
        quasi.setflags(write=False)
        object.__setattr__(self, "quasi", quasi)
        content = self.private.copy() if len(self.group) > _FEW else self.private[:0]
        for c in self.cells if len(content) else ():
            content[:, c.column] = c.name[self.group]
        object.__setattr__(self, "names", named(content))
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
        *,
        steps: bool,
    ) -> Self:
        """From regions, with the width of each cell and the table's values column by column, and pairs of a region's
        number and a private vector; `steps`: whether amounts are moved by declared steps."""
        scale = scales_of(heom)
        columns = [
            CellColumn.of(shape, heom, float(scale[shape.column]), width, values)
            for shape, width, values in zip(shapes(regions, encoder), widths, distinct)
        ]
        least, ends = declared_steps(encoder, steps)
        return cls(*candidates, tuple(columns), heom.measured, scale, heom.missing, *pool, least=least, ends=ends)

    def moves(
        self, rows: Ints, x: Matrix, candidate: Ints, away: Floats, outside: Bools, vague: float
    ) -> tuple[Bools, Floats, Floats, Ints, Floats]:
        """What moving each feature to a candidate means, see `to_moves`."""
        p = self.packed
        cells = (p.heads, p.cells, p.tables, p.columns)
        given = (self.group, self.private, self.steps, self.missing)
        found: tuple[Bools, Floats, Floats, Ints, Floats] = to_moves(
            *cells, rows, x, candidate, *given, away, outside, vague, self.least, self.ends
        )
        return found

    def goals(self, j: int, x: Floats, values: Floats) -> Floats:
        """Query x value: what a query with `x` in column j is told for each private value; her own where that is no
        move."""
        low, high = self.ends[:, j].tolist()
        stepped: Floats = to_steps(x, values, float(self.least[j]), low, high)
        return stepped

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


def declared_steps(encoder: Encoder, told: bool) -> tuple[Floats, Floats]:
    """The step of each column (0: none, or not `told`), and between which ends (2 x column) numbers may be."""
    columns = [coding.column for coding in encoder.codings]
    domains = [c.domain[:2] if c.numeric and c.domain is not None else (-np.inf, np.inf) for c in columns]
    least = np.array([c.step if told and c.step is not None else 0.0 for c in columns])
    return least, np.ascontiguousarray(np.array(domains, dtype=float).reshape(-1, 2).T)


def offered(made: GroupTable, judged: Candidates, *, steps: bool) -> Offers:
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
        steps=steps,
    )


def named(content: Floats) -> Ints:
    """A 64-bit name of each (feature, value or cell); the sum of names stands for a set of moves."""
    columns = np.arange(1, content.shape[-1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    told = np.where(np.isnan(content), np.inf, content + 0.0)  # NaN has many spellings
    z = np.ascontiguousarray(told).view(np.uint64) + columns
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return (z ^ (z >> np.uint64(31))).view(np.int64)
