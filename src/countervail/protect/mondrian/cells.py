"""What the cells of a partition say: tight labels, and which rows are in each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.protect.mondrian.constraints import ORDERED, Attributes, Flags, Ints, Longs, kernel


class Labels(NamedTuple):
    """Tight labels per cell and attribute.

    `low` and `high` are codes of ordered attributes without the missing value (-1 if there is no other), smallest and
    largest code of categorical ones; `missing` says whether an ordered cell holds missing values. Bit v % 64 of
    `members[cell, slot[j], v // 64]` says whether categorical attribute j takes the value v; `slot` is -1 for ordered.
    """

    low: Ints
    high: Ints
    missing: Flags
    members: NDArray[np.uint64]
    slot: Ints


@kernel
def _tight_labels(
    codes: Ints,
    cell_of: Ints,
    missing: Ints,
    slot: Ints,
    low: Ints,
    high: Ints,
    has_missing: Flags,
    members: NDArray[np.uint64],
) -> None:
    """One pass over the rows."""
    for r in range(codes.shape[0]):
        cell = cell_of[r]
        if cell < 0:
            continue
        for j in range(codes.shape[1]):
            v = codes[r, j]
            if v == missing[j]:
                has_missing[cell, j] = True
                continue
            if low[cell, j] < 0 or v < low[cell, j]:
                low[cell, j] = v
            if v > high[cell, j]:
                high[cell, j] = v
            if slot[j] >= 0:
                members[cell, slot[j], v >> 6] |= np.uint64(1) << np.uint64(v & 63)


def tight_labels(codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> Labels:
    """Tight ranges and sets of every cell; rows with cell -1 are left out."""
    categorical = data.kind != ORDERED
    slot = np.where(categorical, np.cumsum(categorical) - 1, -1).astype(np.int32)
    words = (int(data.sizes[categorical].max(initial=1)) + 63) // 64
    shape = (n_cells, codes.shape[1])
    low, high = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    has_missing = np.zeros(shape, np.bool_)
    members = np.zeros((n_cells, int(categorical.sum()), words), np.uint64)
    _tight_labels(np.ascontiguousarray(codes), cell_of, data.missing, slot, low, high, has_missing, members)
    return Labels(low, high, has_missing, members, slot)


@kernel
def by_cell(cell_of: Ints, n_cells: int) -> tuple[Longs, Ints]:
    """Rows of cell c are order[start[c]:start[c + 1]]; rows with cell -1 are left out."""
    start = np.zeros(n_cells + 2, np.int64)
    for r in range(cell_of.shape[0]):
        if cell_of[r] >= 0:
            start[cell_of[r] + 2] += 1
    for c in range(2, n_cells + 2):
        start[c] += start[c - 1]
    order = np.empty(start[n_cells + 1], np.int32)
    for r in range(cell_of.shape[0]):
        c = cell_of[r]
        if c >= 0:
            order[start[c + 1]] = r
            start[c + 1] += 1
    return start[: n_cells + 1], order
