"""What a model said about points, so that it is not asked twice."""

from __future__ import annotations

from typing import Final

import numpy as np

from countervail.core.arrays import Floats, Ints, Matrix
from countervail.protect.cfk.moves.kernels import number_rows

_FIRST: Final = 1 << 10  # points that there is room for at first


class KnownPoints:
    """Points by content, bit by bit, and one number that was said about each."""

    def __init__(self, columns: int) -> None:
        self._count = 0
        self._held = np.empty((_FIRST, columns), dtype=np.int64)
        self._slots = np.full(4 * _FIRST, -1, dtype=np.int64)
        self._said = np.full(_FIRST, np.nan)

    def __len__(self) -> int:
        return self._count

    def tell(self, rows: Matrix, answers: Floats) -> None:
        """Take down what was said."""
        numbers = self._numbers(rows)
        self._said[numbers] = answers

    def recall(self, rows: Matrix) -> tuple[Floats, Ints]:
        """What was said about each row (NaN: nothing yet), and one row for each point of which nothing is known."""
        numbers = self._numbers(rows)
        said: Floats = self._said[numbers]
        unknown = np.flatnonzero(np.isnan(said))
        return said, unknown[np.unique(numbers[unknown], return_index=True)[1]]

    def _numbers(self, rows: Matrix) -> Ints:
        bits = np.ascontiguousarray(rows, dtype=float).view(np.int64)
        if self._count + len(bits) > len(self._held):
            self._grow(2 * (self._count + len(bits)))
        numbers: Ints = number_rows(self._slots, self._held, np.int64(self._count), bits)
        self._count = max(self._count, int(numbers.max(initial=-1)) + 1)
        return numbers

    def _grow(self, room: int) -> None:
        held, said = self._held[: self._count], self._said[: self._count]
        self._held = np.empty((room, held.shape[1]), dtype=np.int64)
        self._slots = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int64)
        self._said = np.full(room, np.nan)
        number_rows(self._slots, self._held, np.int64(0), held)  # all differ, so each keeps its number
        self._said[: self._count] = said
