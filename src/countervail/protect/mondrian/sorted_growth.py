"""Strict Mondrian of very many numbers: the cuts of `grow`, found in columns that stay sorted.

In a sorted column the median stands in the middle, and where a half ends is told by the first of its rows from either
end: near ones, unless columns say the same. So a cut is judged without a look at every row.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from countervail.core._kernels import Whole
from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import (
    FITS,
    Bytes,
    CutConstraints,
    Floats,
    Ints,
    Longs,
    inner,
    kernel,
)
from countervail.protect.mondrian.cuts import nearest_half
from countervail.protect.mondrian.grow import (
    ATTRIBUTE,
    CELL,
    CUT,
    CUT_ORDERED,
    LEFT,
    LEVEL,
    RIGHT,
    THRESHOLD,
    Partition,
    make_nodes,
    partition,
    tree_of_nodes,
)

MANY: Final = 100_000  # rows: with fewer, a kernel more takes longer to compile than it saves
_FEW: Final = 8  # rows of a half that are looked at anyway
_PATIENCE: Final = 3  # more of them for each row and pair of columns, before all is done as `grow` does it
_NEAR: Final = 3  # steps by the slope, before those that double


def partition_sorted(
    codes: Ints, counts: Longs, secret: Ints, data: Attributes, constraints: CutConstraints
) -> Partition:
    """As `partition` with gain; rows of numbers are cut in sorted columns where each is one person, and k all that is
    asked for."""
    rows, people = len(codes), int(counts.sum())
    numbers = bool((data.kind == ORDERED).all() and (data.missing < 0).all())
    alone = constraints.k <= rows == people and not (constraints.diversity or constraints.closeness)
    found = grown_sorted(codes, data, constraints.k) if numbers and alone else None
    return partition(codes, counts, secret, data, constraints) if found is None else found


def grown_sorted(codes: Ints, data: Attributes, k: int) -> Partition | None:
    """The partition of rows of numbers; None where columns say so much the same that this is no way."""
    rows = len(codes)
    nodes, cell_of = make_nodes(rows, rows, k), np.empty(rows, np.int32)
    held, places, order = np.ascontiguousarray(codes), np.empty(codes.shape), np.empty(codes.shape[::-1], np.int32)
    _arrange(held, data.sizes, data.positions, places, order)
    n_nodes, n_cells = _grow(held, places, order, data.positions, data.span, k, nodes, cell_of)
    return Partition(cell_of, n_cells, tree_of_nodes(nodes[:n_nodes], np.zeros(0, np.int32)), FITS) if n_nodes else None


@kernel
def _arrange(codes: Ints, sizes: Ints, positions: Floats, places: Floats, order: Ints) -> None:
    """The position of each code, row by row, and column by column the rows in the order of their codes."""
    n, q = codes.shape
    for j in range(q):
        for r in range(n):
            places[r, j] = positions[j, codes[r, j]]
            order[j, codes[r, j]] = r
        if sizes[j] == n:
            continue
        starts = np.zeros(sizes[j] + 1, np.int32)
        for r in range(n):
            starts[codes[r, j] + 1] += 1
        for v in range(sizes[j]):
            starts[v + 1] += starts[v]
        for r in range(n):
            order[j, starts[codes[r, j]]] = r
            starts[codes[r, j]] += 1


@inner
def _median(line: Ints, places: Floats, start: int, stop: int, j: Whole) -> int:
    """How many rows lie on the left of the cut nearest half."""
    below = start + (stop - start + 1) // 2 - 1
    crossing, above = places[line[below], j], below + 1
    while below > start and places[line[below - 1], j] == crossing:
        below -= 1
    while above < stop and places[line[above], j] == crossing:
        above += 1
    if below > start and (above == stop or nearest_half(below - start, above - start, stop - start)):
        return below - start
    return above - start


@inner
def _ends(
    line: Ints, places: Floats, start: int, step: int, i: Whole, j: Whole, cut: float
) -> tuple[float, float, int]:
    """In column i, from an end of its rows on: where the left and the right half of a cut of column j end, and how many
    rows beyond a few were looked at."""
    p, row = start, line[start]
    near, left = places[row, i], places[row, j] <= cut
    while (places[row, j] <= cut) == left:
        p += step
        row = line[p]
    far, beyond = places[row, i], max(abs(p - start) - _FEW, 0)
    return (near, far, beyond) if left else (far, near, beyond)


@inner
def _width(low: float, high: float, span: float) -> float:
    """The loss of a range of positions."""
    return (high - low) / span if high > low else 0.0


@inner
def _last_nearer(left_high: int, right_low: int, positions: Floats) -> int:
    """The last code that lies no farther from the left half than from the right one, as `grow` has it. Where positions
    grow evenly, few of them are looked at."""
    low, high = left_high, right_low - 1
    start, stop = positions[left_high], positions[right_low]
    middle, slope = start + (stop - start) / 2, (right_low - left_high) / (stop - start)
    guess, wide = low + (high - low) // 2, 1
    for _ in range(_NEAR):
        away = (middle - positions[guess]) * slope
        if not abs(away) < high - low:  # or it is no number
            break
        guess = min(max(guess + int(away), low), high)
    if positions[guess] - start <= stop - positions[guess]:
        low = guess
        while low < high:
            at = min(low + wide, high)
            if positions[at] - start > stop - positions[at]:
                high = at - 1
                break
            low, wide = at, 2 * wide
    else:
        high = guess - 1
        while low < high:
            at = max(high - wide, low)
            if positions[at] - start <= stop - positions[at]:
                low = at
                break
            high, wide = at - 1, 2 * wide
    while low < high:
        at = (low + high + 1) // 2
        if positions[at] - start <= stop - positions[at]:
            low = at
        else:
            high = at - 1
    return low


@inner
def _part(line: Ints, side: Bytes, start: int, stop: int, buffer: Ints) -> None:
    """Stable partition: rows on the left first."""
    left, right = start, 0
    for p in range(start, stop):
        row = line[p]
        held = side[row]
        line[left] = row
        buffer[right] = row
        left += held
        right += 1 - held
    for p in range(right):
        line[left + p] = buffer[p]


@kernel
def _grow(
    codes: Ints, places: Floats, order: Ints, positions: Floats, span: Floats, k: int, nodes: Longs, cell_of: Ints
) -> tuple[int, int]:
    """How many nodes and cells there are, as `grow_tree` fills them; no nodes if patience is at its end."""
    n_rows, q = codes.shape
    buffer, side = np.empty(n_rows, np.int32), np.zeros(n_rows, np.int8)
    lows, highs, is_open = np.zeros(q), np.zeros(q), np.empty(q, np.bool_)
    stack, stack_open = np.empty((n_rows + 1, 3), np.int64), np.ones((n_rows + 1, q), np.bool_)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, n_rows
    depth, n_nodes, n_cells, looked = 1, 1, 0, 0
    while depth > 0:
        depth -= 1
        node, start, stop = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        total, some = stop - start, 0
        for j in range(q):
            is_open[j] = stack_open[depth, j]
            if is_open[j]:
                some = j
        best, best_gain, best_left = -1, -np.inf, 0
        if total >= 2 * k and total > 1:
            n_open, whole_loss = 0, 0.0
            for j in range(q):
                if is_open[j]:
                    lows[j], highs[j] = places[order[j, start], j], places[order[j, stop - 1], j]
                    is_open[j] = lows[j] < highs[j]
                    n_open += is_open[j]
                    whole_loss += _width(lows[j], highs[j], span[j])
            for j in range(q):
                left = _median(order[j], places, start, stop, j) if is_open[j] else 0
                if not is_open[j] or left < k or total - left < k:
                    continue
                value = 0.0
                if n_open > 1:
                    cut = places[order[j, start + left - 1], j]
                    left_loss, right_loss = 0.0, 0.0
                    for i in range(q):
                        if not is_open[i]:
                            continue
                        left_low, right_low = lows[j], places[order[j, start + left], j]
                        left_high, right_high = cut, highs[j]
                        if i != j:
                            left_low, right_low, first = _ends(order[i], places, start, 1, i, j, cut)
                            left_high, right_high, second = _ends(order[i], places, stop - 1, -1, i, j, cut)
                            looked += first + second
                        left_loss += _width(left_low, left_high, span[i])
                        right_loss += _width(right_low, right_high, span[i])
                    value = total * whole_loss - (left * left_loss + (total - left) * right_loss)
                if value > best_gain:
                    best_gain, best, best_left = value, j, left
            if looked > _PATIENCE * q * q * n_rows:
                return 0, 0
        if best < 0:
            nodes[node, CELL] = n_cells
            for p in range(start, stop):
                cell_of[order[some, p]] = n_cells
            n_cells += 1
            continue
        middle = start + best_left
        for p in range(start, stop):
            side[order[best, p]] = p < middle
        for i in range(q):
            if i != best and is_open[i]:
                _part(order[i], side, start, stop, buffer)
        last, first_code = codes[order[best, middle - 1], best], codes[order[best, middle], best]
        nodes[node, ATTRIBUTE], nodes[node, CUT], nodes[node, LEVEL] = best, CUT_ORDERED, 0
        nodes[node, THRESHOLD] = _last_nearer(last, first_code, positions[best])
        nodes[node, LEFT], nodes[node, RIGHT] = n_nodes, n_nodes + 1
        # The right half goes under the left one on the stack: cells are numbered from left to right.
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = n_nodes + 1, middle, stop
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = n_nodes, start, middle
        for i in range(q):
            stack_open[depth, i] = is_open[i]
            stack_open[depth + 1, i] = is_open[i]
        depth += 2
        n_nodes += 2
    return n_nodes, n_cells
