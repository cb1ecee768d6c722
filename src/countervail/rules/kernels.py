"""Compiled checks of rows against conditions, rules and other rows. Each has a plain-Python twin in the tests."""

from __future__ import annotations

import numpy as np

from countervail.core._kernels import kernel as kernel
from countervail.rules.values import Bools, Coded, Codes, Floats, Ints, Masks

UP, DOWN, IN = 0, 1, 2  # a <= cut, a >= cut, a within a set


@kernel
def contains(items: Codes, start: int, end: int, wanted: int) -> bool:
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


@kernel
def lay_out(t: Coded) -> tuple[Ints, Ints]:
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


@kernel
def count_covered(t: Coded, base: Ints, ups: Ints, rows: Bools) -> Ints:
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


@kernel
def mark_meeting(t: Coded, a: int, kind: int, code: int, rows: Ints, may: bool) -> Bools:
    """Which of the rows a condition covers (or may cover)."""
    out = np.empty(len(rows), np.bool_)
    if kind == IN:
        sets = np.empty(t.first[a + 1] - t.first[a], np.bool_)
        at, lists = (t.meet_at, t.meet) if may else (t.sup_at, t.sup)
        for v in range(len(sets)):
            sets[v] = contains(lists, at[t.first[a] + v], at[t.first[a] + v + 1], code)
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


@kernel
def keep_inside(t: Coded, conditions: Ints, rows: Ints, may: bool) -> Ints:
    """The rows that lie (or may lie) inside all conditions."""
    for c in range(len(conditions)):
        rows = rows[mark_meeting(t, conditions[c, 0], conditions[c, 1], conditions[c, 2], rows, may)]
    return rows


@kernel
def mark_needed(t: Coded, at: Ints, conditions: Ints, goal: Bools) -> Bools:
    """Which rules are kept when, first to last, those are dropped that the others cover."""
    rows = np.flatnonzero(goal)
    times = np.zeros(len(goal), np.int64)
    for r in range(len(at) - 1):
        times[keep_inside(t, conditions[at[r] : at[r + 1]], rows, False)] += 1
    keep = np.ones(len(at) - 1, np.bool_)
    for r in range(len(at) - 1):
        mine = keep_inside(t, conditions[at[r] : at[r + 1]], rows, False)
        if len(mine) == 0 or times[mine].min() > 1:
            keep[r] = False
            times[mine] -= 1
    return keep


@kernel
def count_supports(t: Coded, at: Ints, conditions: Ints) -> Ints:
    """How many rows each rule covers."""
    out = np.zeros(len(at) - 1, np.int64)
    everyone = np.arange(len(t.weight))
    for r in range(len(at) - 1):
        out[r] = t.weight[keep_inside(t, conditions[at[r] : at[r + 1]], everyone, False)].sum()
    return out


@kernel
def lies_inside(t: Coded, low: Floats, high: Floats, inner: int, outer: int) -> bool:
    """Whether one row's value sets all lie inside another's."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, inner] < low[a, outer] or high[a, inner] > high[a, outer]:
                return False
        else:
            s = t.first[a] + t.up[a, inner]
            if not contains(t.sup, t.sup_at[s], t.sup_at[s + 1], t.up[a, outer]):
                return False
    return True


@kernel
def overlaps(t: Coded, low: Floats, high: Floats, one: int, other: int) -> bool:
    """Whether two rows have a value in common in every attribute."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, one] > high[a, other] or low[a, other] > high[a, one]:
                return False
        else:
            s = t.first[a] + t.up[a, one]
            if not contains(t.meet, t.meet_at[s], t.meet_at[s + 1], t.up[a, other]):
                return False
    return True


@kernel
def join_decisions(t: Coded, low: Floats, high: Floats, decisions: Masks) -> Masks:
    """The union of the decisions of all rows inside each row."""
    out = decisions.copy()
    for outer in range(len(decisions)):
        for inner in range(len(decisions)):
            if (decisions[inner] & ~out[outer]) != 0 and lies_inside(t, low, high, inner, outer):
                out[outer] |= decisions[inner]
    return out


@kernel
def mark_clear(t: Coded, low: Floats, high: Floats, rows: Bools, bad: Bools) -> Bools:
    """Which of the rows overlap no bad one."""
    out = rows.copy()
    bads = np.flatnonzero(bad)
    for row in np.flatnonzero(rows):
        for other in bads:
            if overlaps(t, low, high, int(row), int(other)):
                out[row] = False
                break
    return out
