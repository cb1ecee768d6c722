"""How far rows lie from the nearest of a table, of which only the near ones are looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import kernel
from countervail.core.arrays import Codes, Floats, Ints, Matrix
from countervail.core.distance import HEOM, Neighbours

_CROWD = 5  # rows that an answer should lie near to
_MANY = 4096  # rows from which on they are arranged in blocks
_BLOCK = 64  # rows of a block, at least
_BLOCKS = 1024  # blocks, about, at most
_LOOKED_AT = 500  # rows, about, that say how others are parted
Sets = NDArray[np.uint64]


class RowCrowd:
    """The rows of a table, to say how far others lie from the nearest; equal rows count as often as they are."""

    def __init__(self, heom: HEOM, rows: Matrix) -> None:
        self._many = min(_CROWD, len(rows))
        alike = np.zeros(len(rows), dtype=np.int64)
        few = len(rows) < _MANY
        self._rows = Neighbours(heom, rows, alike, alike == 0, distinct=False) if few else RowBlocks(heom, rows)

    def away(self, found: Matrix) -> Floats:
        """The mean distance of each row from its nearest rows of the table."""
        seen: dict[bytes, int] = {}
        inverse = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in found], dtype=np.int64)
        rows = found[np.unique(inverse, return_index=True)[1]]
        if isinstance(self._rows, RowBlocks):
            distances = self._rows.distances(rows, self._many)
        else:
            distances = self._rows.nearest(rows, np.ones((len(rows), 1), dtype=bool), self._many)[1]
        mean: Floats = distances.mean(axis=1)[inverse]
        return mean


class RowBlocks:
    """Rows in blocks of near ones, each with its bounds: a block whose bounds lie too far is not looked into.

    Bounds are added up as distances are, column by column, from terms that are no larger; so rounding cannot make a
    bound larger than the distance of a row within it, and the distances are those of a search through all rows.
    """

    def __init__(self, heom: HEOM, rows: Matrix) -> None:
        self.heom = heom
        numbers, labels = heom.numbers(rows), heom.labels(rows)
        order, starts = _arranged(numbers / heom.scale, labels, max(_BLOCK, len(rows) // _BLOCKS))
        self._numbers, self._labels, self._starts = numbers[order], labels[order], starts
        holes = np.isnan(self._numbers)
        low, high = np.where(holes, -np.inf, self._numbers), np.where(holes, np.inf, self._numbers)
        heads = starts[:-1]  # where a number is missing nothing is known about the block
        self._low, self._high = np.minimum.reduceat(low, heads), np.maximum.reduceat(high, heads)
        marks = np.left_shift(np.uint64(1), (self._labels & 63).astype(np.uint64))
        self._held: Sets = np.bitwise_or.reduceat(marks, heads)

    def distances(self, queries: Matrix, n: int) -> Floats:
        """The distances of the `n` nearest rows of each query, the nearest first."""
        numbers, labels = self.heom.numbers(queries), self.heom.labels(queries)
        bounds = (self._low, self._high, self._held)
        return nearest_distances(
            numbers, labels, self.heom.scale, self._numbers, self._labels, self._starts, *bounds, n
        )


def _arranged(numbers: Matrix, labels: Codes, size: int) -> tuple[Ints, Ints]:
    """An order of rows in which near ones lie together, and where blocks of at most so many begin (and the end)."""
    blocks, left = [], [np.arange(len(numbers))]
    while left:
        at = left.pop()
        if len(at) <= size:
            blocks.append(at)
        else:
            left.extend(_halved(at, numbers, labels))
    starts: Ints = np.cumsum([0, *map(len, blocks)]).astype(np.int64)
    return np.concatenate(blocks), starts


def _halved(at: Ints, numbers: Matrix, labels: Codes) -> tuple[Ints, Ints]:
    """Two parts, by the column in which some of the rows lie farthest apart on average."""
    some = at[:: max(len(at) // _LOOKED_AT, 1)]
    known = _without_holes(numbers[some])
    middles = np.partition(known, len(some) // 2, axis=0)[len(some) // 2]
    with np.errstate(invalid="ignore"):  # infinity less infinity: both missing
        apart = np.abs(known - middles)
    spread = np.where(np.isnan(apart), 0.0, np.minimum(apart, 1.0)).mean(axis=0)
    usual = np.array([np.bincount(c).argmax() for c in labels[some].T], dtype=labels.dtype)
    spreads = np.concatenate([spread, (labels[some] != usual).mean(axis=0)])
    j = int(spreads.argmax())
    if spreads[j] == 0:  # all alike
        beyond = np.arange(len(at)) >= len(at) // 2
    elif j >= len(spread):
        beyond = labels[at, j - len(spread)] != usual[j - len(spread)]
    else:
        column = _without_holes(numbers[at, j])
        # Where many are in the middle, that may be the largest.
        beyond = column > middles[j] if (known[:, j] > middles[j]).any() else column >= middles[j]
    return at[~beyond], at[beyond]


def _without_holes(numbers: Matrix) -> Matrix:
    """Missing numbers lie together, beyond all others."""
    return np.where(np.isnan(numbers), np.inf, numbers)


@kernel
def nearest_distances(
    x_numbers: Floats,
    x_labels: Codes,
    scale: Floats,
    numbers: Floats,
    labels: Codes,
    starts: Ints,
    low: Floats,
    high: Floats,
    held: Sets,
    n: int,
) -> Floats:
    """The distances by HEOM of the `n` nearest rows of each query; blocks are visited from the nearest bounds on."""
    queries, p = x_numbers.shape
    q = x_labels.shape[1]
    blocks = len(starts) - 1
    out = np.full((queries, n), np.inf)
    bound = np.empty(blocks)
    for i in range(queries):
        first = 0
        for b in range(blocks):
            apart = 0.0
            for j in range(q):
                mark = np.uint64(1) << np.uint64(x_labels[i, j] & 63)
                if held[b, j] & mark == np.uint64(0):
                    apart += 1.0
            s = 0.0
            for j in range(p):
                x = x_numbers[i, j]
                if x < low[b, j]:
                    s += (low[b, j] - x) / scale[j]
                elif x > high[b, j]:
                    s += (x - high[b, j]) / scale[j]
            bound[b] = s + apart
            if bound[b] < bound[first]:
                first = b
        for step in range(2 * blocks):  # from there on outwards: neighbours lie near
            b = first + (step + 1) // 2 if step % 2 else first - step // 2
            if b < 0 or b >= blocks or bound[b] >= out[i, n - 1]:
                continue
            for a in range(starts[b], starts[b + 1]):
                worst = out[i, n - 1]
                apart = 0.0
                for j in range(q):
                    if x_labels[i, j] != labels[a, j]:
                        apart += 1.0
                if apart >= worst:
                    continue
                s = 0.0
                for j in range(p):
                    d = abs(numbers[a, j] - x_numbers[i, j]) / scale[j]
                    if d != d:  # a missing level: 0 from itself, 1 from any other
                        both = np.isnan(numbers[a, j]) and np.isnan(x_numbers[i, j])
                        d = 0.0 if both else 1.0
                    s += d
                    if s + apart >= worst:
                        break
                d = s + apart
                if d >= worst:
                    continue
                c = n - 1
                while c > 0 and d < out[i, c - 1]:
                    out[i, c] = out[i, c - 1]
                    c -= 1
                out[i, c] = d
    return out
