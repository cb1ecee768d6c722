"""Ties shared out and rows left out where equal rows have been counted: a row here stands for as many as there are.

The rules are those of `narrow.py`. Of equal rows so many go to each class as would if they stood one by one; which of
them is drawn by lot, when it is known what else they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countervail.core.rng import RandomState, generator
from countervail.engine.codes import order_lines
from countervail.engine.interface import COUNT, LABEL
from countervail.protect.mondrian.columns import ORDERED, Attributes, deduplicate
from countervail.protect.mondrian.constraints import CutConstraints, Ints, Longs, kernel
from countervail.protect.mondrian.labels import by_cell
from countervail.protect.mondrian.narrow import Scratch, before, leave_out, make_scratch, place, rows_loss

_CANDIDATES = 4
SPLIT = -2


@dataclass(frozen=True, eq=False, slots=True)
class SharedRows:
    """Lines of a distinct row, its class (-1: none) and how many of its rows are in it; `which`: of each given row."""

    which: Longs
    row: Ints
    cell: Ints
    count: Longs
    codes: Ints
    n_cells: int

    def classes(self) -> Ints:
        """The class of each given row; SPLIT where its equals are in several."""
        m = int(self.which.max(initial=-1)) + 1
        of = np.full(m, -1, np.int32)
        of[self.row] = self.cell
        of[np.bincount(self.row, minlength=m) > 1] = SPLIT
        return of[self.which]


def narrow_counted(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    cell_of: Ints,
    n_cells: int,
    data: Attributes,
    constraints: CutConstraints,
    budget: int,
    *,
    share: bool,
    gain: bool,
) -> SharedRows:
    """Rows shared out where that is wanted, and left out within a budget."""
    which = np.arange(len(codes), dtype=np.int64)
    row, cell, count = which.astype(np.int32), cell_of.astype(np.int32), counts
    if share:
        # Equal rows of two parts, which were cut one by one, are in two cells.
        codes, cells, _, first = deduplicate(codes, cell, data.sizes, n_cells)
        which = first.astype(np.int64)
        weights = np.zeros(len(codes), np.int64)
        np.add.at(weights, which, counts)
        row, cell, count, n_cells = share_counted(codes, weights, cells, n_cells, data, constraints.k, gain=gain)
        secret = np.zeros(len(row), np.int32)
    if budget:
        cell = leave_out(codes[row], secret, cell, n_cells, data, constraints, budget, count)
    return SharedRows(which, row, cell, count, codes[row], n_cells)


def share_counted(
    codes: Ints, counts: Longs, cell_of: Ints, n_cells: int, data: Attributes, k: int, *, gain: bool
) -> tuple[Ints, Ints, Longs, int]:
    """Distinct rows, their classes within the given ones and how many rows are in each, and the number of classes."""
    order = np.lexsort(codes.T[::-1])
    work = make_scratch(max(data.positions.shape[1], data.ancestors.shape[1]), 1)
    room = len(codes) + int(counts.sum()) // max(k, 1) + 1
    row, cell, count = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64)
    n_lines, n_new = _share_counted(
        codes[order], counts[order], cell_of[order], n_cells, data, k, gain, work, row, cell, count
    )
    return order[row[:n_lines]].astype(np.int32), cell[:n_lines].copy(), count[:n_lines].copy(), n_new


@kernel
def _lay_out_counted(
    codes: Ints, rows: Ints, counts: Longs, j: int, data: Attributes, work: Scratch, out: Ints, out_counts: Longs
) -> int:
    """Fill `out` with the rows by their value, equal values in the order they come in; returns the number of values.

    `work.start` then holds how many rows lie up to the end of each value.
    """
    weight, rank, start = work.weight, work.rank, work.start
    n = rows.shape[0]
    low, high = codes[rows[0], j], codes[rows[0], j]
    for i in range(n):
        weight[codes[rows[i], j]] += counts[i]
        low, high = min(low, codes[rows[i], j]), max(high, codes[rows[i], j])
    found = np.empty(min(high - low + 1, n), np.int32)
    m = 0
    if data.kind[j] == ORDERED or high - low < n:
        for v in range(low, high + 1):
            if weight[v] > 0:
                found[m] = v
                m += 1
    else:
        for i in range(n):
            v = codes[rows[i], j]
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
    lines = np.zeros(m + 1, np.int64)
    for i in range(m):
        rank[found[i]] = i
    for i in range(n):
        lines[rank[codes[rows[i], j]] + 1] += 1
    total = 0
    for i in range(m):
        lines[i + 1] += lines[i]
        total += weight[found[i]]
        start[i] = total
        weight[found[i]] = 0
    for i in range(n):
        at = rank[codes[rows[i], j]]
        out[lines[at]] = rows[i]
        out_counts[lines[at]] = counts[i]
        lines[at] += 1
    return m


@kernel
def _share_counted(
    codes: Ints,
    counts: Longs,
    cell_of: Ints,
    n_cells: int,
    data: Attributes,
    k: int,
    gain: bool,
    work: Scratch,
    out_row: Ints,
    out_cell: Ints,
    out_count: Longs,
) -> tuple[int, int]:
    """Cut every class on while both halves keep k; lines come out class by class."""
    q = codes.shape[1]
    start, rows = by_cell(cell_of, n_cells)
    room = out_row.shape[0]
    # The node that is cut next lies at the end of what is held; of its halves, the left one is put last.
    held, held_counts = np.empty(room, np.int32), np.empty(room, np.int64)
    line, line_counts = np.empty(room, np.int32), np.empty(room, np.int64)
    best, best_counts = np.empty(room, np.int32), np.empty(room, np.int64)
    stack = np.empty(room + 2, np.int64)
    losses = np.zeros(q, np.float64)
    order = np.empty(q, np.int64)
    n_new, n_lines, mark = 0, 0, 0
    for cell in range(n_cells):
        top, depth = 0, 1
        stack[0] = 0
        for i in range(start[cell], start[cell + 1]):
            held[top], held_counts[top] = rows[i], counts[rows[i]]
            top += 1
        while depth > 0:
            depth -= 1
            first = stack[depth]
            node, node_counts, m_lines = held[first:top], held_counts[first:top], top - first
            total = 0
            for i in range(m_lines):
                total += node_counts[i]
            best_at, best_loss, n_tries = 0, np.inf, 0
            if total >= 2 * k:
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
                m = _lay_out_counted(codes, node, node_counts, order[p], data, work, line, line_counts)
                for which in range(_CANDIDATES):
                    at = place(which, total, m, k, work.start)
                    if at < k or total - at < k:
                        continue
                    left, upto = 0, 0
                    while upto + line_counts[left] <= at:
                        upto += line_counts[left]
                        left += 1
                    stop = left + 1 if upto < at else left
                    loss = 0.0
                    for i in range(n_tries if gain else 0):
                        mark += 2
                        loss += at * rows_loss(codes, line[:stop], order[i], data, work.stamp, mark - 1)
                        loss += (total - at) * rows_loss(codes, line[left:m_lines], order[i], data, work.stamp, mark)
                    if loss < best_loss:
                        best_at, best_loss = at, loss
                        for i in range(m_lines):
                            best[i], best_counts[i] = line[i], line_counts[i]
                    if not gain:
                        break
                if not gain and best_at > 0:
                    break
            if best_at == 0:
                for i in range(first, top):
                    out_row[n_lines], out_cell[n_lines], out_count[n_lines] = held[i], n_new, held_counts[i]
                    n_lines += 1
                n_new += 1
                top = first
                continue
            left, upto = 0, 0
            while upto + best_counts[left] <= best_at:
                upto += best_counts[left]
                left += 1
            top = first
            for i in range(left, m_lines):
                held[top], held_counts[top] = best[i], best_counts[i] - (best_at - upto if i == left else 0)
                top += 1
            stack[depth], stack[depth + 1] = first, top
            depth += 2
            for i in range(left):
                held[top], held_counts[top] = best[i], best_counts[i]
                top += 1
            if upto < best_at:
                held[top], held_counts[top] = best[left], best_at - upto
                top += 1
    return n_lines, n_new


def draw_lots(contents: Any, shared: SharedRows, others: Sequence[str], random_state: RandomState) -> Any:
    """Who of equal rows is in which class: lines of a class (as `LABEL`), the other columns and a count.

    `contents` holds what else rows hold whose equals are in several classes, with counts, and which row of `shared`
    they are (as `LABEL`). The draw is uniform over all ways to share the rows out, and depends on what they hold, not
    on how they came.
    """
    import pyarrow as pa

    rng, others, tuple_of = generator(random_state), list(others), contents[LABEL].to_numpy().astype(np.int64)
    place_, _ = order_lines(contents.select(others)) if others else (np.zeros(len(tuple_of), np.int64), None)
    order = np.lexsort((place_, tuple_of))
    counts = contents[COUNT].to_numpy()[order]
    starts = np.flatnonzero(np.diff(tuple_of[order], prepend=-1))
    by_row = np.argsort(shared.row, kind="stable")
    first = np.searchsorted(shared.row[by_row], np.arange(int(shared.row.max(initial=0)) + 2))
    took, label, count = [], [], []
    for start, stop in zip(starts, [*starts[1:], len(order)]):
        left = counts[start:stop].copy()
        row = int(tuple_of[order[start]])
        for line in by_row[first[row] : first[row + 1]]:
            drawn = rng.multivariate_hypergeometric(left, int(shared.count[line]), method="marginals")
            left -= drawn
            if shared.cell[line] >= 0:
                some = np.flatnonzero(drawn)
                took.append(order[start:stop][some])
                label.append(np.full(len(some), int(shared.cell[line])))
                count.append(drawn[some])
    at = np.concatenate(took) if took else np.zeros(0, np.int64)
    held = contents.select(others).take(at) if others else pa.table({})
    labels = pa.array(np.concatenate(label) if label else np.zeros(0, np.int64), pa.int32())
    sums = pa.array(np.concatenate(count) if count else np.zeros(0, np.int64), pa.int64())
    return pa.table({LABEL: labels, **{n: held[n] for n in others}, COUNT: sums})
