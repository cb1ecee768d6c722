"""Which moves public constraints allow: every value of a cell, or none of it."""

from __future__ import annotations

import numpy as np

from countervail.core.arrays import Bools, Ints, Matrix
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder


class Allowed:
    """Constraints as masks over single columns; `fixed` columns never move, `limited` ones only to some values."""

    def __init__(self, constraints: Constraints) -> None:
        self._given = constraints
        columns = len(constraints.encoder.codings)
        self.fixed: Bools = np.isin(np.arange(columns), constraints.immutable)
        self.limited: Ints = np.array(sorted({*constraints.bound} - set(constraints.immutable)), dtype=np.int64)

        self.weights, self.most = constraints.weights, columns
        if constraints.max_changes is not None:
            self.most = constraints.max_changes

    def must(self, encoder: Encoder, x: Matrix) -> Bools:
        """Query x column: where her own value is out of range, so that it has to move."""
        return ~self._given.coded(encoder).in_range(x)

    def may_become(self, encoder: Encoder, x: Matrix, j: int, values: Matrix) -> Bools:
        """Query x value: whether column j of a query may become the value; those of each query, or of all in a row."""
        return self._given.coded(encoder).allows_values(j, x[:, j], values)

    def holds(self, encoder: Encoder, x: Matrix, rows: Matrix) -> Bools:
        """Row x column: which values of each row its own query (the same row of `x`) may have."""
        return self._given.coded(encoder).holds(x, rows)
