"""Compiled checks of rows against conditions, rules and other rows. Each has a plain-Python twin in the tests.

Kernels get few plain arrays, and None for what a table of single values does not need: the compiler leaves that out.
What is done once per table, or once per rule, is left to numpy and Python.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from countervail.core._kernels import Whole as Whole
from countervail.core._kernels import inner as inner
from countervail.core._kernels import kernel as kernel
from countervail.rules.values import Bools, Coded, Codes, Floats, Ints, Masks

UP, DOWN, IN = 0, 1, 2  # a <= cut, a >= cut, a within a set


class Side(NamedTuple):
    """What rows surely meet, or may meet: ends of ordered attributes, and the sets that include (or overlap) theirs."""

    up: Codes
    down: Codes
    ordered: Bools
    first: Ints
    at: Ints
    sets: Codes


def sure_side(t: Coded) -> Side:
    """What rows surely meet."""
    return Side(t.up, t.down, t.ordered, t.first, t.sup_at, t.sup)


def may_side(t: Coded) -> Side:
    """What rows may meet."""
    return Side(t.may_up, t.may_down, t.ordered, t.first, t.meet_at, t.meet)


@inner
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


def lay_out(t: Coded) -> tuple[Ints, Ints]:
    """Where the conditions of each attribute start in one array, and how many of them are of the kind UP."""
    n = len(t.ordered)
    none = t.up.shape[1] == 0
    ups = np.where(t.ordered, 0 if none else t.up.max(axis=1, initial=-1) + 1, 0).astype(np.int64)
    downs = np.where(t.ordered, 0 if none else t.down.max(axis=1, initial=-1) + 1, np.diff(t.first)[:n])
    return np.concatenate([[0], np.cumsum(ups + downs)]).astype(np.int64), ups


def count_covered(t: Coded, base: Ints, ups: Ints, rows: Bools) -> Ints:
    """How many of the marked rows each condition covers."""
    out = np.zeros(base[-1], np.int64)
    weight = t.weight[rows]
    for a in range(len(t.ordered)):
        here, middle, end = base[a], base[a] + ups[a], base[a + 1]
        up = np.bincount(t.up[a, rows], weights=weight, minlength=(middle if t.ordered[a] else end) - here)
        if t.ordered[a]:
            down = np.bincount(t.down[a, rows], weights=weight, minlength=end - middle)
            out[here:middle] = up.cumsum()
            out[middle:end] = down[::-1].cumsum()[::-1]
        else:
            at = t.sup_at[t.first[a] : t.first[a + 1] + 1]
            people = np.repeat(up, np.diff(at))
            out[here:end] = np.bincount(t.sup[at[0] : at[-1]], weights=people, minlength=end - here)
    return out


@kernel
def mark_meeting(side: Side, conditions: Ints, used: Bools, rows: Ints, out: Bools, first_only: bool) -> int:
    """Mark the rows that meet all used conditions: how many there are (`first_only`: whether there is one)."""
    # Taking an array from a tuple counts references, which in a loop costs more than the work.
    up, down, first, at, sets = side.up, side.down, side.first, side.at, side.sets
    n = 0
    for i in range(len(rows)):
        row, met = rows[i], True
        for c in range(len(conditions)):
            if not used[c]:
                continue
            a, kind, code = conditions[c, 0], conditions[c, 1], conditions[c, 2]
            if kind == UP:
                met = up[a, row] <= code
            elif kind == DOWN:
                met = down[a, row] >= code
            else:
                s = first[a] + up[a, row]
                met = contains(sets, at[s], at[s + 1], code)
            if not met:
                break
        out[i] = met
        n += met
        if met and first_only:
            break
    return n


def keep_inside(side: Side, conditions: Ints, rows: Ints) -> Ints:
    """The rows that meet all conditions."""
    out = np.empty(len(rows), np.bool_)
    mark_meeting(side, conditions, np.ones(len(conditions), np.bool_), rows, out, False)
    return rows[out]


def mark_needed(t: Coded, at: Ints, conditions: Ints, goal: Bools) -> Bools:
    """Which rules are kept when, first to last, those are dropped that the others cover."""
    rows, side = np.flatnonzero(goal), sure_side(t)
    covered = [keep_inside(side, conditions[a:b], rows) for a, b in pairwise(at)]
    times = np.bincount(np.concatenate([*covered, rows[:0]]), minlength=len(goal))
    keep = np.ones(len(covered), np.bool_)
    for r, mine in enumerate(covered):
        if len(mine) == 0 or times[mine].min() > 1:
            keep[r] = False
            times[mine] -= 1
    return keep


def count_supports(t: Coded, at: Ints, conditions: Ints) -> Ints:
    """How many rows each rule covers."""
    everyone, side = np.arange(len(t.weight)), sure_side(t)
    rules = pairwise(at)
    return np.array([t.weight[keep_inside(side, conditions[a:b], everyone)].sum() for a, b in rules], np.int64)


@inner
def lies_inside(t: Coded, low: Floats, high: Floats, one: int, other: int) -> bool:
    """Whether one row's value sets all lie inside another's."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, one] < low[a, other] or high[a, one] > high[a, other]:
                return False
        else:
            s = t.first[a] + t.up[a, one]
            if not contains(t.sup, t.sup_at[s], t.sup_at[s + 1], t.up[a, other]):
                return False
    return True


@inner
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
        for other in range(len(decisions)):
            if (decisions[other] & ~out[outer]) != 0 and lies_inside(t, low, high, other, outer):
                out[outer] |= decisions[other]
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
