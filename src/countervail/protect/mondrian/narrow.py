"""Classes made narrower once strict cuts have ended: ties are shared out, and rows are left out.

Sharing ties: classes that strict cuts leave large are cut on. Rows come in the order of their content, equal ones in
an order drawn by lot. Everything here looks at codes and places in that order, so how many of equal rows go left
depends on the quasi-identifiers alone, and which of them on the lot.

Leaving rows out, within a budget, so that the others of their class get a narrower label: a move leaves out all rows
of a class that hold one end of a range, the rarest value of a set, or whatever lies outside the heaviest group below a
hierarchy's label. The move that spares most per row lost comes first. Moves look at codes (and, with l, at whether the
rest of the class still is diverse), never at the order of the rows.
"""

import heapq
from typing import Final, NamedTuple

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, TREE, Attributes
from countervail.protect.mondrian.constraints import (
    FITS,
    CutConstraints,
    Flags,
    Floats,
    Ints,
    Longs,
    fits,
    inner,
    kernel,
)
from countervail.protect.mondrian.cuts import copy_codes
from countervail.protect.mondrian.labels import by_cell
from countervail.protect.mondrian.loss import climb, ordered_loss

_CANDIDATES: Final = 4
_SLACK: Final = 1e-12


class Scratch(NamedTuple):
    """Space that every node reuses; `stamp` only grows, so it need not be cleared."""

    stamp: Longs
    weight: Longs
    rank: Ints
    start: Longs
    left: Longs
    right: Longs
    top: Longs
    flow: Floats


def make_scratch(n_codes: int, n_secret: int) -> Scratch:
    """Space for attributes with up to this many codes."""
    return Scratch(
        np.full(n_codes, -1, np.int64),
        np.zeros(n_codes, np.int64),
        np.zeros(n_codes, np.int32),
        np.zeros(n_codes + 2, np.int64),
        np.zeros(n_secret, np.int64),
        np.zeros(n_secret, np.int64),
        np.zeros(n_secret, np.int64),
        np.zeros(n_secret, np.float64),
    )


@kernel
def rows_loss(codes: Ints, rows: Ints, j: int, data: Attributes, stamp: Longs, mark: int) -> float:
    """NCP of some rows on one attribute; `mark` has not been used with `stamp` before."""
    low = codes[rows[0], j]
    high = low
    if data.kind[j] == ORDERED:
        for r in rows:
            low, high = min(low, codes[r, j]), max(high, codes[r, j])
        return ordered_loss(low, high, data.missing[j], data.positions, j, data.span[j])
    tree = data.tree_of[j]
    if data.tree_loss and tree >= 0:
        first, level = -1, 0
        for r in rows:
            first, level = climb(codes[r, j], first, level, tree, data.ancestors)
        if level == 0:
            return 0.0
        return float(data.leaves[tree, data.ancestors[tree, first, level], level] / data.span[j])
    distinct = 0
    for r in rows:
        distinct += stamp[codes[r, j]] != mark
        stamp[codes[r, j]] = mark
    return float(distinct / data.span[j]) if distinct > 1 else 0.0


@inner
def before(a: int, b: int, j: int, weight: Longs, data: Attributes) -> bool:
    """Whether code a comes before code b where a set is laid out in a row: groups together, heavy values first."""
    if data.kind[j] == TREE:
        tree = data.tree_of[j]
        for level in range(data.ancestors.shape[2] - 1, 0, -1):
            x, y = data.ancestors[tree, a, level], data.ancestors[tree, b, level]
            if x != y:
                return bool(x < y)
    if weight[a] != weight[b]:
        return bool(weight[a] > weight[b])
    return a < b


@inner
def _lay_out(codes: Ints, rows: Ints, j: int, data: Attributes, work: Scratch, out: Ints) -> int:
    """Fill `out` with the rows by their value, equal values in the order they come in; returns the number of values."""
    weight, rank, start = work.weight, work.rank, work.start
    low, high = codes[rows[0], j], codes[rows[0], j]
    for r in rows:
        weight[codes[r, j]] += 1
        low, high = min(low, codes[r, j]), max(high, codes[r, j])
    found = np.empty(min(high - low + 1, rows.shape[0]), np.int32)
    m = 0
    if data.kind[j] == ORDERED or high - low < rows.shape[0]:
        for v in range(low, high + 1):
            if weight[v] > 0:
                found[m] = v
                m += 1
    else:
        for r in rows:
            v = codes[r, j]
            if weight[v] > 0:
                found[m] = v
                m += 1
                weight[v] = -weight[v]
        for i in range(m):
            weight[found[i]] = -weight[found[i]]
    if data.kind[j] != ORDERED:
        for i in range(1, m):
            v, p = found[i], i
            while p > 0 and before(v, found[p - 1], j, weight, data):
                found[p] = found[p - 1]
                p -= 1
            found[p] = v
    start[0] = 0
    for i in range(m):
        rank[found[i]] = i
        start[i + 1] = start[i] + weight[found[i]]
        weight[found[i]] = 0
    for r in rows:
        i = rank[codes[r, j]]
        out[start[i]] = r
        start[i] += 1
    return m


@inner
def place(which: int, total: int, m: int, k: int, start: Longs) -> int:
    """A place to cut: between two values (the one nearest half), at half, after k rows, or before the last k."""
    if which == 1:
        return total // 2
    if which == 2:
        return k
    if which == 3:
        return total - k
    best = 0
    for i in range(m - 1):  # `start` holds where each value ends
        if abs(2 * start[i] - total) < abs(2 * best - total):
            best = start[i]
    return best


@inner
def _both_fit(secret: Ints, rows: Ints, at: int, constraints: CutConstraints, work: Scratch) -> bool:
    """Whether the rows before and after a place satisfy every constraint."""
    if at < constraints.k or rows.shape[0] - at < constraints.k:
        return False
    if constraints.diversity == 0 and constraints.closeness == 0:
        return True
    for s in range(work.left.shape[0]):
        work.left[s], work.right[s] = 0, 0
    for i in range(rows.shape[0]):
        if i < at:
            work.left[secret[rows[i]]] += 1
        else:
            work.right[secret[rows[i]]] += 1
    if fits(work.left, at, constraints, work.top, work.flow) != FITS:
        return False
    return fits(work.right, rows.shape[0] - at, constraints, work.top, work.flow) == FITS


@kernel
def _share_ties(
    codes: Ints,
    secret: Ints,
    cell_of: Ints,
    n_cells: int,
    data: Attributes,
    constraints: CutConstraints,
    gain: bool,
    work: Scratch,
) -> tuple[Ints, int]:
    """Cut every class on while both halves fit; new numbers, class by class."""
    n, q = codes.shape
    start, rows = by_cell(cell_of, n_cells)
    out = np.full(n, -1, np.int32)
    sorted_ = np.empty(n, np.int32)
    best_rows = np.empty(n, np.int32)
    stack = np.empty((n + 2, 2), np.int64)
    losses = np.zeros(q, np.float64)
    order = np.empty(q, np.int64)
    n_new, mark = 0, 0
    for cell in range(n_cells):
        depth = 1
        stack[0, 0], stack[0, 1] = start[cell], start[cell + 1]
        while depth > 0:
            depth -= 1
            first, last = stack[depth, 0], stack[depth, 1]
            node, total = rows[first:last], last - first
            best_at, best_loss, n_tries = 0, np.inf, 0
            if total >= 2 * constraints.k:
                for j in range(q):
                    mark += 1
                    losses[j] = rows_loss(codes, node, j, data, work.stamp, mark)
                    if losses[j] == 0.0:
                        continue
                    p = n_tries
                    while not gain and p > 0 and losses[order[p - 1]] < losses[j]:
                        order[p] = order[p - 1]
                        p -= 1
                    order[p] = j
                    n_tries += 1
            for p in range(n_tries):
                line = sorted_[:total]
                m = _lay_out(codes, node, order[p], data, work, line)
                for which in range(_CANDIDATES):
                    at = place(which, total, m, constraints.k, work.start)
                    if not _both_fit(secret, line, at, constraints, work):
                        continue
                    loss = 0.0
                    for i in range(n_tries if gain else 0):
                        mark += 2
                        loss += at * rows_loss(codes, line[:at], order[i], data, work.stamp, mark - 1)
                        loss += (total - at) * rows_loss(codes, line[at:], order[i], data, work.stamp, mark)
                    if loss < best_loss:
                        best_at, best_loss = at, loss
                        copy_codes(line, best_rows)
                    if not gain:
                        break
                if not gain and best_at > 0:
                    break
            if best_at == 0:
                for i in range(first, last):
                    out[rows[i]] = n_new
                n_new += 1
                continue
            copy_codes(best_rows[:total], rows[first:last])
            stack[depth, 0], stack[depth, 1] = first + best_at, last
            stack[depth + 1, 0], stack[depth + 1, 1] = first, first + best_at
            depth += 2
    return out, n_new


def share_ties(
    codes: Ints,
    secret: Ints,
    cell_of: Ints,
    n_cells: int,
    data: Attributes,
    constraints: CutConstraints,
    drawn: Longs,
    *,
    gain: bool = True,
) -> tuple[Ints, int]:
    """Classes within the given ones, and their number: as small as sharing out equal values allows.

    `drawn` is an order of the rows drawn by lot; of equal rows, those that come first in it go left.
    """
    order = drawn[np.lexsort(codes[drawn].T[::-1])]
    work = make_scratch(max(data.positions.shape[1], data.ancestors.shape[1]), len(constraints.share))
    found, n_found = _share_ties(codes[order], secret[order], cell_of[order], n_cells, data, constraints, gain, work)
    out = np.empty_like(found)
    out[order] = found
    return out, n_found


@inner
def _common_level(codes: Ints, rows: Ints, j: int, data: Attributes) -> int:
    """Level of the lowest common group of some rows."""
    tree, level = data.tree_of[j], 0
    for r in rows:
        while data.ancestors[tree, codes[r, j], level] != data.ancestors[tree, codes[rows[0], j], level]:
            level += 1
    return level


@inner
def _mark(
    codes: Ints, counts: Longs, rows: Ints, j: int, which: int, data: Attributes, work: Scratch, gone: Flags
) -> int:
    """Mark the rows that a move leaves out; returns how many. Two moves per attribute: lowest and highest end."""
    tree = data.tree_of[j] if data.tree_loss else -1
    if data.kind[j] == ORDERED:
        end = codes[rows[0], j]
        for r in rows:
            end = min(end, codes[r, j]) if which == 0 else max(end, codes[r, j])
        m = 0
        for i in range(rows.shape[0]):
            gone[i] = codes[rows[i], j] == end
            m += counts[rows[i]] if gone[i] else 0
        return m
    if which == 1:
        return 0
    level = _common_level(codes, rows, j, data) - 1 if tree >= 0 else 0
    weight = work.weight
    for r in rows:
        v = codes[r, j]
        weight[data.ancestors[tree, v, level] if level > 0 else v] += counts[r]
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
        m += counts[rows[i]] if gone[i] else 0
        weight[v] = 0
    return m


@kernel
def _best_move(
    codes: Ints,
    counts: Longs,
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
    whole, people = 0.0, 0
    for r in rows:
        people += counts[r]
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
            lost = _mark(codes, counts, rows, j, which, data, work, gone)
            if lost == 0 or lost > most or people - lost < constraints.k:
                continue
            left, lines = people - lost, 0
            for s in range(work.left.shape[0]):
                work.left[s] = 0
            for i in range(n):
                if not gone[i]:
                    rest[lines] = rows[i]
                    work.left[secret[rows[i]]] += counts[rows[i]]
                    lines += 1
            if fits(work.left, left, constraints, work.top, work.flow) != FITS:
                continue
            loss = 0.0
            for i in range(q):
                used += 1
                loss += rows_loss(codes, rest[:lines], i, data, work.stamp, used) if losses[i] > 0 else 0.0
            spared = left * (whole - loss) / lost
            if spared > best + _SLACK:
                best, best_lost = spared, lost
                for i in range(n):
                    best_gone[i] = gone[i]
    return best, best_lost, used


def leave_out(
    codes: Ints,
    secret: Ints,
    cell_of: Ints,
    n_cells: int,
    data: Attributes,
    constraints: CutConstraints,
    budget: int,
    weights: Longs | None = None,
) -> Ints:
    """Classes with at most `budget` rows left out (-1); no remaining row has a wider label than before.

    `weights`: the rows that each row stands for.
    """
    out = cell_of.astype(np.int32, copy=True)
    codes = np.ascontiguousarray(codes)
    counts = np.ones(len(codes), np.int64) if weights is None else weights
    start, order = by_cell(out, n_cells)
    people = np.bincount(out, counts, n_cells).astype(np.int64)
    rows = {c: order[start[c] : start[c + 1]] for c in range(n_cells) if people[c] > constraints.k}
    widest = max((len(r) for r in rows.values()), default=0)
    gone, best_gone = np.zeros(widest, np.bool_), np.zeros(widest, np.bool_)
    work, mark = make_scratch(max(data.positions.shape[1], data.ancestors.shape[1]), len(constraints.share)), 0
    heap: list[tuple[float, int, int]] = []

    def consider(cell: int) -> None:
        nonlocal mark
        some = rows[cell]
        spared, lost, mark = _best_move(
            codes, counts, secret, some, budget, data, constraints, work, gone, best_gone, mark
        )
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
