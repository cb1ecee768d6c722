"""Compiled comparisons between the rows of a table of value sets. Each has a plain-Python twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from countervail.rules.kernels import listed
from countervail.rules.values import Coded

F = NDArray[np.float64]
B = NDArray[np.bool_]
M = NDArray[np.uint64]


@njit(cache=True, nogil=True)
def lies_inside(t: Coded, low: F, high: F, inner: int, outer: int) -> bool:
    """Whether one row's value sets all lie inside another's."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, inner] < low[a, outer] or high[a, inner] > high[a, outer]:
                return False
        else:
            s = t.first[a] + t.up[a, inner]
            if not listed(t.sup, t.sup_at[s], t.sup_at[s + 1], t.up[a, outer]):
                return False
    return True


@njit(cache=True, nogil=True)
def overlaps(t: Coded, low: F, high: F, one: int, other: int) -> bool:
    """Whether two rows have a value in common in every attribute."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, one] > high[a, other] or low[a, other] > high[a, one]:
                return False
        else:
            s = t.first[a] + t.up[a, one]
            if not listed(t.meet, t.meet_at[s], t.meet_at[s + 1], t.up[a, other]):
                return False
    return True


@njit(cache=True, nogil=True)
def joined(t: Coded, low: F, high: F, decisions: M) -> M:
    """The union of the decisions of all rows inside each row."""
    out = decisions.copy()
    for outer in range(len(decisions)):
        for inner in range(len(decisions)):
            if (decisions[inner] & ~out[outer]) != 0 and lies_inside(t, low, high, inner, outer):
                out[outer] |= decisions[inner]
    return out


@njit(cache=True, nogil=True)
def clear_of(t: Coded, low: F, high: F, rows: B, bad: B) -> B:
    """Which of the rows overlap no bad one."""
    out = rows.copy()
    bads = np.flatnonzero(bad)
    for row in np.flatnonzero(rows):
        for other in bads:
            if overlaps(t, low, high, row, other):
                out[row] = False
                break
    return out
