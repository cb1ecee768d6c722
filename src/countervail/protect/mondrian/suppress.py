"""Rows that are left out so that the others of their class get a narrower label, within a budget.

A move leaves out all rows of a class that hold one end of a range, the rarest value of a set, or whatever lies outside
the heaviest group below a hierarchy's label. The move that spares most per row lost comes first. Moves look at codes
(and, with l, at whether the rest of the class still is diverse), never at the order of the rows.
"""

import heapq
from typing import Final

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import FITS, CutConstraints, Flags, Ints, fits, kernel
from countervail.protect.mondrian.labels import by_cell
from countervail.protect.mondrian.relaxed import Scratch, make_scratch, rows_loss

_SLACK: Final = 1e-12


@kernel
def _common_level(codes: Ints, rows: Ints, j: int, data: Attributes) -> int:
    """Level of the lowest common group of some rows."""
    tree, level = data.tree_of[j], 0
    for r in rows:
        while data.ancestors[tree, codes[r, j], level] != data.ancestors[tree, codes[rows[0], j], level]:
            level += 1
    return level


@kernel
def _mark(codes: Ints, rows: Ints, j: int, which: int, data: Attributes, work: Scratch, gone: Flags) -> int:
    """Mark the rows that a move leaves out; returns how many. Two moves per attribute: lowest and highest end."""
    tree = data.tree_of[j] if data.tree_loss else -1
    if data.kind[j] == ORDERED:
        end = codes[rows[0], j]
        for r in rows:
            end = min(end, codes[r, j]) if which == 0 else max(end, codes[r, j])
        m = 0
        for i in range(rows.shape[0]):
            gone[i] = codes[rows[i], j] == end
            m += gone[i]
        return m
    if which == 1:
        return 0
    level = _common_level(codes, rows, j, data) - 1 if tree >= 0 else 0
    weight = work.weight
    for r in rows:
        v = codes[r, j]
        weight[data.ancestors[tree, v, level] if level > 0 else v] += 1
    best, best_weight = -1, 0
    for r in rows:
        v = data.ancestors[tree, codes[r, j], level] if level > 0 else codes[r, j]
        # The rarest value goes; under a hierarchy all but the heaviest group go. Ties by code.
        better = weight[v] > best_weight if tree >= 0 else weight[v] < best_weight
        if best < 0 or better or (weight[v] == best_weight and v < best):
            best, best_weight = v, weight[v]
    m = 0
    for i in range(rows.shape[0]):
        v = data.ancestors[tree, codes[rows[i], j], level] if level > 0 else codes[rows[i], j]
        gone[i] = (v != best) if tree >= 0 else (v == best)
        m += gone[i]
        weight[v] = 0
    return m


@kernel
def _best_move(
    codes: Ints,
    secret: Ints,
    rows: Ints,
    most: int,
    data: Attributes,
    constraints: CutConstraints,
    work: Scratch,
    gone: Flags,
    best_gone: Flags,
    mark: int,
) -> tuple[float, int, int]:
    """The move within a class that spares its other rows most per row lost: (NCP spared per row, rows lost, marks)."""
    n, q = rows.shape[0], codes.shape[1]
    best, best_lost, used = 0.0, 0, mark
    whole = 0.0
    losses = np.zeros(q, np.float64)
    for j in range(q):
        used += 1
        losses[j] = rows_loss(codes, rows, j, data, work.stamp, used)
        whole += losses[j]
    rest = np.empty(n, np.int32)
    for j in range(q):
        if losses[j] == 0.0:
            continue
        for which in range(2):
            lost = _mark(codes, rows, j, which, data, work, gone)
            if lost == 0 or lost > most or n - lost < constraints.k:
                continue
            left = 0
            work.left[:] = 0
            for i in range(n):
                if not gone[i]:
                    rest[left] = rows[i]
                    work.left[secret[rows[i]]] += 1
                    left += 1
            if fits(work.left, left, constraints, work.top, work.flow) != FITS:
                continue
            loss = 0.0
            for i in range(q):
                used += 1
                loss += rows_loss(codes, rest[:left], i, data, work.stamp, used) if losses[i] > 0 else 0.0
            spared = left * (whole - loss) / lost
            if spared > best + _SLACK:
                best, best_lost = spared, lost
                best_gone[:n] = gone[:n]
    return best, best_lost, used


def leave_out(
    codes: Ints, secret: Ints, cell_of: Ints, n_cells: int, data: Attributes, constraints: CutConstraints, budget: int
) -> Ints:
    """Classes with at most `budget` rows left out (-1); no remaining row has a wider label than before."""
    out = cell_of.astype(np.int32, copy=True)
    codes = np.ascontiguousarray(codes)
    start, order = by_cell(out, n_cells)
    rows = {c: order[start[c] : start[c + 1]] for c in range(n_cells) if start[c + 1] - start[c] > constraints.k}
    widest = max((len(r) for r in rows.values()), default=0)
    gone, best_gone = np.zeros(widest, np.bool_), np.zeros(widest, np.bool_)
    work, mark = make_scratch(max(data.positions.shape[1], data.ancestors.shape[1]), len(constraints.share)), 0
    heap: list[tuple[float, int, int]] = []

    def consider(cell: int) -> None:
        nonlocal mark
        some = rows[cell]
        spared, lost, mark = _best_move(codes, secret, some, budget, data, constraints, work, gone, best_gone, mark)
        if lost:
            heapq.heappush(heap, (-spared, cell, lost))
            moves[cell] = best_gone[: len(some)].copy()

    moves: dict[int, Flags] = {}
    for cell in rows:
        consider(cell)
    while heap and budget > 0:
        _, cell, lost = heapq.heappop(heap)
        if lost <= budget:
            out[rows[cell][moves[cell]]] = -1
            rows[cell] = rows[cell][~moves[cell]]
            budget -= lost
        consider(cell)
    return out
