"""Compiled checks of rows against conditions and rules. Each has a plain-Python twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from countervail.rules.values import Coded

I = NDArray[np.int64]  # noqa: E741
C = NDArray[np.int32]
B = NDArray[np.bool_]
UP, DOWN, IN = 0, 1, 2  # a <= cut, a >= cut, a within a set


@njit(cache=True, nogil=True)
def listed(items: C, start: int, end: int, wanted: int) -> bool:
    """Whether a sorted stretch of a list holds a number."""
    while start < end:
        middle = (start + end) // 2
        if items[middle] == wanted:
            return True
        if items[middle] < wanted:
            start = middle + 1
        else:
            end = middle
    return False


@njit(cache=True, nogil=True)
def holds(t: Coded, a: int, kind: int, code: int, row: int) -> bool:
    """Whether the row's value set lies inside a condition."""
    if kind == UP:
        return t.up[a, row] <= code
    if kind == DOWN:
        return t.down[a, row] >= code
    s = t.first[a] + t.up[a, row]
    return listed(t.sup, t.sup_at[s], t.sup_at[s + 1], code)


@njit(cache=True, nogil=True)
def may_hold(t: Coded, a: int, kind: int, code: int, row: int) -> bool:
    """Whether the row's value set overlaps a condition."""
    if kind == UP:
        return t.may_up[a, row] <= code
    if kind == DOWN:
        return t.may_down[a, row] >= code
    s = t.first[a] + t.up[a, row]
    return listed(t.meet, t.meet_at[s], t.meet_at[s + 1], code)


@njit(cache=True, nogil=True)
def layout(t: Coded) -> tuple[I, I]:
    """Where the conditions of each attribute start in one array, and how many of them are of the kind UP."""
    m = len(t.ordered)
    base, ups = np.zeros(m + 1, np.int64), np.zeros(m, np.int64)
    for a in range(m):
        if t.ordered[a]:
            ups[a] = t.up[a].max() + 1
            base[a + 1] = base[a] + ups[a] + t.down[a].max() + 1
        else:
            base[a + 1] = base[a] + t.first[a + 1] - t.first[a]
    return base, ups


@njit(cache=True, nogil=True)
def covered(t: Coded, base: I, ups: I, rows: B) -> I:
    """How many of the marked rows each condition covers."""
    out = np.zeros(base[-1], np.int64)
    for a in range(len(t.ordered)):
        here, middle = base[a], base[a] + ups[a]
        for row in range(len(rows)):
            if not rows[row]:
                continue
            w = t.weight[row]
            if t.ordered[a]:
                out[here + t.up[a, row]] += w
                out[middle + t.down[a, row]] += w
            else:
                s = t.first[a] + t.up[a, row]
                for i in range(t.sup_at[s], t.sup_at[s + 1]):
                    out[here + t.sup[i]] += w
        if t.ordered[a]:
            for i in range(here + 1, middle):
                out[i] += out[i - 1]
            for i in range(base[a + 1] - 2, middle - 1, -1):
                out[i] += out[i + 1]
    return out


@njit(cache=True, nogil=True)
def meeting(t: Coded, a: int, kind: int, code: int, rows: I, may: bool) -> B:
    """Which of the rows a condition covers (or may cover)."""
    out = np.empty(len(rows), np.bool_)
    if kind == IN:
        sets = np.empty(t.first[a + 1] - t.first[a], np.bool_)
        at, lists = (t.meet_at, t.meet) if may else (t.sup_at, t.sup)
        for v in range(len(sets)):
            sets[v] = listed(lists, at[t.first[a] + v], at[t.first[a] + v + 1], code)
        for i in range(len(rows)):
            out[i] = sets[t.up[a, rows[i]]]
    elif kind == UP:
        ends = t.may_up[a] if may else t.up[a]
        for i in range(len(rows)):
            out[i] = ends[rows[i]] <= code
    else:
        ends = t.may_down[a] if may else t.down[a]
        for i in range(len(rows)):
            out[i] = ends[rows[i]] >= code
    return out


@njit(cache=True, nogil=True)
def inside_of(t: Coded, conditions: I, rows: I) -> I:
    """The rows that lie inside all conditions."""
    for c in range(len(conditions)):
        rows = rows[meeting(t, conditions[c, 0], conditions[c, 1], conditions[c, 2], rows, False)]
    return rows


@njit(cache=True, nogil=True)
def needed(t: Coded, at: I, conditions: I, goal: B) -> B:
    """Which rules are kept when, first to last, those are dropped that the others cover."""
    rows = np.flatnonzero(goal)
    times = np.zeros(len(goal), np.int64)
    for r in range(len(at) - 1):
        times[inside_of(t, conditions[at[r] : at[r + 1]], rows)] += 1
    keep = np.ones(len(at) - 1, np.bool_)
    for r in range(len(at) - 1):
        mine = inside_of(t, conditions[at[r] : at[r + 1]], rows)
        if len(mine) == 0 or times[mine].min() > 1:
            keep[r] = False
            times[mine] -= 1
    return keep


@njit(cache=True, nogil=True)
def supports(t: Coded, at: I, conditions: I) -> I:
    """How many rows each rule covers."""
    out = np.zeros(len(at) - 1, np.int64)
    everyone = np.arange(len(t.weight))
    for r in range(len(at) - 1):
        out[r] = t.weight[inside_of(t, conditions[at[r] : at[r + 1]], everyone)].sum()
    return out
