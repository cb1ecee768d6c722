"""What a model said about points, so that it is not asked twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from countervail.core.arrays import Ints, Matrix
from countervail.protect.cfk.moves.kernels import number_rows

_FIRST: Final = 1 << 10  # points that there is room for at first


class KnownPoints:
    """Points by content, bit by bit, and the numbers that were said about each."""

    def __init__(self, columns: int, numbers: int = 1) -> None:
        self._count = 0
        self._held = np.empty((_FIRST, columns + 1), dtype=np.int64)  # behind a hash each
        self._slots = np.full(4 * _FIRST, -1, dtype=np.int64)
        self._said = np.full((_FIRST, numbers), np.nan)

    def __len__(self) -> int:
        return self._count

    def tell(self, rows: Matrix, answers: Matrix) -> None:
        """Take down what was said."""
        numbers = self._numbers(rows)
        self._said[numbers] = answers

    def recall(self, rows: Matrix, ask: Callable[[Matrix], Any]) -> Matrix:
        """What was said about each row; `ask` is called with one row for each point of which nothing is known."""
        numbers = self._numbers(rows)
        unknown = np.flatnonzero(np.isnan(self._said[numbers, 0]))
        fresh = unknown[np.unique(numbers[unknown], return_index=True)[1]]
        if len(fresh):
            self._said[numbers[fresh]] = ask(rows[fresh])
        said: Matrix = self._said[numbers]
        return said

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
        self._said = np.full((room, said.shape[1]), np.nan)
        # All differ, so each keeps its number.
        number_rows(self._slots, self._held, np.int64(0), np.ascontiguousarray(held[:, 1:]))
        self._said[: self._count] = said
