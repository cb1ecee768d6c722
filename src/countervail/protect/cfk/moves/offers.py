"""What the anonymised table has to offer: candidates, the cells of their regions, and the table as a whole.

Plain arrays, and nothing that tells who of a group owns which private vector: whatever is computed from them, from the
query, from the model and from public constraints is post-processing of the k-anonymous table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.groups.candidates import Candidates, shapes
from countervail.protect.cfk.groups.group_table import GroupTable
from countervail.protect.cfk.moves.cell_kernels import to_moves, to_steps
from countervail.protect.cfk.moves.cells import CellColumn, PackedCells, scales_of

_FEW: Final = 64  # so few candidates are not worth to be looked through for equal ones


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
