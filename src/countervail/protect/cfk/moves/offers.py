"""What the anonymised table has to offer: candidates, the cells of their regions, and the table as a whole.

Plain arrays, and nothing that tells who of a group owns which private vector: whatever is computed from them, from the
query, from the model and from public constraints is post-processing of the k-anonymous table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.groups.candidates import Candidates, shapes
from countervail.protect.cfk.groups.group_table import GroupTable
from countervail.protect.cfk.moves.cell_kernels import to_moves
from countervail.protect.cfk.moves.cells import CellColumn, PackedCells, scales_of


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
    packed: PackedCells = field(init=False)  # the cells, for kernels
    steps: Floats = field(init=False)  # the scale as kernels have it: 0 in columns of labels

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed", PackedCells.of(self.cells))
        object.__setattr__(self, "steps", np.where(self.measured, self.scale, 0.0))
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
        scale = scales_of(heom)
        columns = [
            CellColumn.of(shape, heom, float(scale[shape.column]), width, values)
            for shape, width, values in zip(shapes(regions, encoder), widths, distinct)
        ]
        return cls(*candidates, tuple(columns), heom.measured, scale, heom.missing, *pool)

    def moves(
        self, rows: Ints, x: Matrix, candidate: Ints, away: Floats, outside: Bools, vague: float
    ) -> tuple[Bools, Floats, Floats, Ints, Floats]:
        """What moving each feature to a candidate means, see `to_moves`."""
        p = self.packed
        given = (rows, x, candidate, self.group, self.private, self.steps, self.missing, away, outside, vague)
        found: tuple[Bools, Floats, Floats, Ints, Floats] = to_moves(p.heads, p.cells, p.tables, p.columns, *given)
        return found

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
