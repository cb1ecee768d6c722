"""Which moves public constraints allow: every value of a cell, or none of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.explain.constraints import Constraints


class Allowed:
    """Constraints as masks over single columns; `fixed` columns never move, `limited` ones only to some values."""

    def __init__(self, constraints: Constraints | None, columns: int) -> None:
        self._given = constraints if constraints is not None else Constraints((), {}, {}, {})
        self.fixed: Bools = np.isin(np.arange(columns), self._given.immutable)
        given = self._given
        limited = {*given.allowed, *given.direction, *given.forbidden} - set(given.immutable)
        self.limited: Ints = np.array(sorted(limited), dtype=np.int64)

    def must(self, encoder: Encoder, x: Matrix) -> Bools:
        """Query x column: where her own value is out of range, so that it has to move."""
        if not self._given.allowed:
            return np.zeros(x.shape, dtype=bool)
        return ~self._given.in_range(encoder, x)

    def may_become(self, encoder: Encoder, x: Matrix, j: int, values: Floats) -> Bools:
        """Query x value: whether column j of a query may become the value."""
        given = self._given
        only = replace(
            given,
            immutable=tuple(i for i in given.immutable if i == j),
            allowed={i: v for i, v in given.allowed.items() if i == j},
            direction={i: v for i, v in given.direction.items() if i == j},
            forbidden={i: v for i, v in given.forbidden.items() if i == j},
        )
        rows = np.zeros((len(values), x.shape[1]))
        rows[:, j] = values
        return only.admissible(encoder, x, rows)
