"""Compiled loops over the cells of all regions. Each has a plain twin in the tests.

`heads` (column x field): the scale; of sets, how many values are known (-1: a span), and where its tables start.
`cells` (column x region x field): the fields that are named below. `tables`, one after the other: see CellColumn.
"""

from __future__ import annotations

import numpy as np

from countervail.core._kernels import inner, kernel
from countervail.core.arrays import Bools, Floats, Ints

_SAME = 1e-9  # what is lost when a number is divided by its step
_SCALE, _LEVELS, _AWAY, _OUTSIDE, _NEAREST = range(5)
_LOW, _HIGH, _HOLES, _WIDTH, _NUMBER, _NAME, _SIZE, _FIRST, _LAST = range(9)
FIELDS = 9


@inner
def _place(x: float, levels: float) -> int:
    """A value's place in a table; the last one is that of a value never seen."""
    return int(x) if 0.0 <= x < levels else int(levels)


@kernel
def to_cells(heads: Floats, cells: Floats, tables: Floats, which: Ints, values: Floats) -> tuple[Floats, Bools]:
    """Value x region: how far each value, one of the column `which` says, is from the cell; and if it lies outside."""
    regions = cells.shape[1]
    away, outside = np.empty((len(which), regions)), np.empty((len(which), regions), np.bool_)
    for i in range(len(which)):
        c, x = which[i], values[i]
        if heads[c, _LEVELS] >= 0.0:
            skip = _place(x, heads[c, _LEVELS]) * regions
            near, apart = int(heads[c, _AWAY]) + skip, int(heads[c, _OUTSIDE]) + skip
            for g in range(regions):
                away[i, g], outside[i, g] = tables[near + g], tables[apart + g] > 0.0
            continue
        for g in range(regions):
            below, above = cells[c, g, _LOW] - x, x - cells[c, g, _HIGH]
            hole = np.isnan(x) and cells[c, g, _HOLES] > 0.0
            outside[i, g] = not (hole or (below <= 0.0 and above <= 0.0))
            if np.isnan(below) or np.isnan(above):  # a missing number lies 1 from any other
                away[i, g] = 0.0 if hole else 1.0
            else:
                away[i, g] = max(below, above, 0.0) / heads[c, _SCALE]
    return away, outside


@kernel
def to_moves(
    heads: Floats,
    cells: Floats,
    tables: Floats,
    columns: Ints,
    rows: Ints,
    x: Floats,
    candidate: Ints,
    group: Ints,
    private: Floats,
    steps: Floats,
    missing: Floats,
    away: Floats,
    outside: Bools,
    vague: float,
    least: Floats,
    ends: Floats,
) -> tuple[Bools, Floats, Floats, Ints, Floats]:
    """What moving each feature to a candidate means (asker x candidate x feature): whether it is a move, the value that
    it leads to, its cost, how many values there are, and what tells it from others.

    The askers are the queries `rows`, in whose places `x`, `away` and `outside` stand. `steps` divides private
    differences; it is 0 for labels. `least` and `ends` say by how much numbers move: see `_stepped`. Of candidates that
    are not there (-1), nothing is a move.
    """
    shape = (len(rows), candidate.shape[1], x.shape[1])
    may, goal, step = np.zeros(shape, np.bool_), np.empty(shape), np.empty(shape)
    many, content = np.ones(shape, np.int64), np.empty(shape)
    for i in range(len(rows)):
        q = rows[i]
        for a in range(candidate.shape[1]):
            at = max(candidate[i, a], 0)
            for j in range(x.shape[1]):
                v = private[at, j]
                if least[j] > 0.0:
                    v = _stepped(x[q, j], v, least[j], ends[0, j], ends[1, j])
                step[i, a, j] = _way(x[q, j], v, steps[j], missing[j])
                may[i, a, j] = v != x[q, j] and not (np.isnan(v) and np.isnan(x[q, j]))
                goal[i, a, j] = content[i, a, j] = v
            g = group[at]
            for c in range(len(columns)):
                j = columns[c]
                goal[i, a, j] = _nearest(heads[c], cells[c, g], tables, x[q, j])
                step[i, a, j] = away[q, c, g] + vague * cells[c, g, _WIDTH]
                many[i, a, j] = int(cells[c, g, _SIZE])
                may[i, a, j] = outside[q, c, g] and not abs(goal[i, a, j] - x[q, j]) < 0.5 * least[j]
                content[i, a, j] = cells[c, g, _NAME]
            if candidate[i, a] < 0:
                may[i, a] = False
    return may, goal, step, many, content


@kernel
def to_steps(x: Floats, values: Floats, least: float, low: float, high: float) -> Floats:
    """Asker x value: what each is told, see `_stepped`."""
    out = np.empty((len(x), len(values)))
    for i in range(len(x)):
        for a in range(len(values)):
            out[i, a] = _stepped(x[i], values[a], least, low, high) if least > 0.0 else values[a]
    return out


@inner
def _stepped(x: float, v: float, least: float, low: float, high: float) -> float:
    """The number that is told in the place of v: the next multiple of `least` from there on, half of it away from x.

    Where that lies beyond the declared ends, v itself, or x if v is too near to it.
    """
    far = abs(v - x)
    if not far > 0.0:  # nothing moves, or something is missing
        return v
    half = 0.5 * least
    there = v if far >= half else (x + half if v > x else x - half)
    told = float((np.ceil(there / least - _SAME) if v > x else np.floor(there / least + _SAME)) * least)
    if low <= told <= high:
        return told
    return v if far >= half else x


@inner
def _way(x: float, v: float, scale: float, missing: float) -> float:
    """HEOM's term of one private column."""
    if scale > 0.0 and x != missing and v != missing:
        far = abs(x - v) / scale
        if not np.isnan(far):
            return far
    return 0.0 if x == v or (np.isnan(x) and np.isnan(v)) else 1.0


@inner
def _nearest(head: Floats, cell: Floats, tables: Floats, x: float) -> float:
    """The value of a cell that is nearest to x."""
    if head[_LEVELS] >= 0.0:
        skip = int(cell[_NUMBER]) * (int(head[_LEVELS]) + 1)
        return float(tables[int(head[_NEAREST]) + skip + _place(x, head[_LEVELS])])
    if np.isnan(x) or np.isnan(cell[_FIRST]):
        return float(cell[_FIRST])
    return float(min(max(x, cell[_FIRST]), cell[_LAST]))
