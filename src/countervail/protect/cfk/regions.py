"""Compiled search for the smallest region around a counterfactual that holds at least k training rows.

A *region* gives every quasi-identifier an interval of codes (numeric, ordinal) or a set of codes (categorical). Its
cost is its weighted NCP. Arrays shared by the functions below, all C-contiguous:

- ``tuples`` int32 (T, q): distinct training tuples as codes 0..m_j-1, **sorted lexicographically**; ``counts`` int64
  (T,): rows of each. With the order fixed every result depends on the table's content only. An unsorted table is
  still solved to the same cost, but equal costs may then be resolved differently.
- ``interval`` bool (q,): interval attribute or value set; ``sizes`` int64 (q,): m_j.
- ``positions`` float64 (q, V), V = max m_j: increasing values of the codes of an interval attribute.
- ``unit`` float64 (q,): cost per unit of length, or per value of a set of two values and more.
- ``low``, ``high`` int64 (q,), ``member`` bool (q, V): a region. Sets have low = high = the centre's code and read
  ``member``; intervals read ``low`` and ``high`` and have ``member`` True from low to high.

The search is branch and bound over one attribute after the other. Its bound: a region with the centre c and a tuple t
costs at least as much as the region spanned by c and t alone, so a region of cost below C can hold k rows only if k
rows are each within C of c.
"""

from __future__ import annotations

import numpy as np

from countervail.core._kernels import inner, kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints

TOLERANCE = 1e-12


@inner
def inside(cell: Codes, interval: Bools, low: Ints, high: Ints, member: Bools) -> bool:
    for j in range(cell.shape[0]):
        v = cell[j]
        if interval[j]:
            if v < low[j] or v > high[j]:
                return False
        elif not member[j, v]:
            return False
    return True


@kernel
def count_inside(tuples: Codes, counts: Ints, interval: Bools, low: Ints, high: Ints, member: Bools) -> int:
    """Number of training rows inside one region."""
    rows = 0
    for t in range(tuples.shape[0]):
        if inside(tuples[t], interval, low, high, member):
            rows += counts[t]
    return rows


@kernel
def region_cost(
    interval: Bools, sizes: Ints, positions: Floats, unit: Floats, low: Ints, high: Ints, member: Bools
) -> float:
    """NCP of a region, summed in attribute order."""
    cost = 0.0
    for j in range(interval.shape[0]):
        if interval[j]:
            cost += unit[j] * (positions[j, high[j]] - positions[j, low[j]])
        else:
            values = 0
            for v in range(sizes[j]):
                values += member[j, v]
            if values > 1:
                cost += unit[j] * values
    return cost


def point_region(centre: Ints, values: int) -> tuple[Ints, Ints, Bools]:
    """The region of the centre alone."""
    member = np.zeros((len(centre), values), np.bool_)
    member[np.arange(len(centre)), centre] = True
    return centre.copy(), centre.copy(), member


def fill_intervals(interval: Bools, low: Ints, high: Ints, member: Bools) -> None:
    """Mark the codes of intervals, in place."""
    code = np.arange(member.shape[1])
    member |= interval[:, None] & (low[:, None] <= code) & (code <= high[:, None])


@inner
def widening_forbidden(cell: Codes, interval: Bools, low: Ints, high: Ints, member: Bools, forbidden: Ints) -> bool:
    """Whether the region widened to hold `cell` contains a forbidden cell."""
    for f in range(forbidden.shape[0]):
        contained = True
        for j in range(cell.shape[0]):
            v, b = forbidden[f, j], np.int64(cell[j])
            contained = min(low[j], b) <= v <= max(high[j], b) if interval[j] else v == b or member[j, v]
            if not contained:
                break
        if contained:
            return True
    return False
