"""What the cells of a partition say: tight labels, sensitive values per cell, information loss."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.protect._mondrian_loss import ordered_loss
from countervail.protect._mondrian_rules import ORDERED, Attributes, Flags, Floats, Ints, Longs, earth_mover, kernel


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


class Statistics(NamedTuple):
    """Per cell: rows, distinct values, exp(entropy), largest share, and r_1 / (r_l + ... + r_m) of recursive (c, l)."""

    size: Longs
    distinct: Longs
    entropy_l: Floats
    max_share: Floats
    recursive: Floats


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


@kernel
def _class_statistics(
    cell_of: Ints, counts: Longs, secret: Ints, n_cells: int, n_secret: int, tail_from: int
) -> tuple[Longs, Longs, Floats, Floats, Floats]:
    """Histogram each cell in turn; only the values that occur are touched."""
    size, distinct = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    entropy_l, max_share = np.zeros(n_cells, np.float64), np.zeros(n_cells, np.float64)
    recursive = np.zeros(n_cells, np.float64)
    hist, seen = np.zeros(n_secret, np.int64), np.empty(n_secret, np.int64)
    start, order = by_cell(cell_of, n_cells)
    for cell in range(n_cells):
        m, total = 0, 0
        for g in range(start[cell], start[cell + 1]):
            r = order[g]
            if hist[secret[r]] == 0:
                seen[m] = secret[r]
                m += 1
            hist[secret[r]] += counts[r]
            total += counts[r]
        if m == 0:
            continue
        # Sorted, so that the floating-point sum does not depend on the order of the rows.
        found = np.empty(m, np.int64)
        for i in range(m):
            found[i] = hist[seen[i]]
            hist[seen[i]] = 0
        found.sort()
        entropy, tail = 0.0, 0
        for i in range(m):
            p = found[i] / total
            entropy -= p * np.log(p)
            if i <= m - tail_from:
                tail += found[i]
        size[cell], distinct[cell] = total, m
        entropy_l[cell], max_share[cell] = np.exp(entropy), found[m - 1] / total
        recursive[cell] = found[m - 1] / tail if tail > 0 else np.inf
    return size, distinct, entropy_l, max_share, recursive


def class_statistics(
    cell_of: Ints, counts: Longs, secret: Ints, n_cells: int, n_secret: int, tail_from: int = 2
) -> Statistics:
    """Sizes and diversity of every cell; `tail_from` is the l of recursive (c, l), which holds for c > `recursive`."""
    return Statistics(*_class_statistics(cell_of, counts, secret, n_cells, n_secret, tail_from))


@kernel
def _closeness(
    cell_of: Ints, counts: Longs, secret: Ints, n_cells: int, share: Floats, ground: int, ancestors: Ints
) -> Floats:
    """Earth mover's distance of every cell."""
    result = np.zeros(n_cells, np.float64)
    hist, flow = np.zeros(share.shape[0], np.int64), np.zeros(share.shape[0], np.float64)
    start, order = by_cell(cell_of, n_cells)
    for cell in range(n_cells):
        total = 0
        for g in range(start[cell], start[cell + 1]):
            hist[secret[order[g]]] += counts[order[g]]
            total += counts[order[g]]
        if total > 0:
            result[cell] = earth_mover(hist, total, share, ground, ancestors, flow)
        hist[:] = 0
    return result


def closeness(
    cell_of: Ints,
    counts: Longs,
    secret: Ints,
    n_cells: int,
    share: Floats,
    ground: int,
    secret_ancestors: Ints | None = None,
) -> Floats:
    """Distance of every cell's sensitive values from `share`; `ground` is a value of CLOSENESS."""
    if secret_ancestors is None:
        secret_ancestors = np.zeros((len(share), 1), np.int32)
    return _closeness(cell_of, counts, secret, n_cells, share, ground, secret_ancestors)


@kernel
def _ncp_of_cells(codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> Floats:
    """NCP per cell and attribute."""
    q = codes.shape[1]
    result = np.zeros((n_cells, q), np.float64)
    start, order = by_cell(cell_of, n_cells)
    stamp = np.full(max(data.positions.shape[1], data.ancestors.shape[1]), -1, np.int64)
    for j in range(q):
        tree = data.tree_of[j] if data.tree_loss else -1
        stamp[:] = -1
        for cell in range(n_cells):
            if start[cell] == start[cell + 1]:
                continue
            low = codes[order[start[cell]], j]
            high, distinct, level, first = low, 0, 0, low
            for g in range(start[cell], start[cell + 1]):
                v = codes[order[g], j]
                low, high = min(low, v), max(high, v)
                if data.kind[j] != ORDERED:
                    distinct += 1 if stamp[v] != cell else 0
                    stamp[v] = cell
                    while tree >= 0 and data.ancestors[tree, v, level] != data.ancestors[tree, first, level]:
                        level += 1
            if data.kind[j] == ORDERED:
                result[cell, j] = ordered_loss(low, high, data.missing[j], data.positions, j, data.span[j])
            elif distinct > 1 and tree >= 0:
                result[cell, j] = data.leaves[tree, data.ancestors[tree, first, level], level] / data.span[j]
            elif distinct > 1:
                result[cell, j] = distinct / data.span[j]
    return result


def ncp_of_cells(codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> Floats:
    """NCP (cell, attribute); the mean over attributes, weighted by rows, is the NCP of the table."""
    return _ncp_of_cells(np.ascontiguousarray(codes), cell_of, n_cells, data)
