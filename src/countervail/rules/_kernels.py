"""Compiled loops of rule induction. Each has a plain-Python twin in the tests.

Row sets are lists of row numbers that shrink while a rule grows, and counts by value that shrink with them: time and
memory are linear in rows and attributes, however many different values a column has. Of the many cuts of an ordered
attribute only the best one on each side is looked at: what a condition covers grows with the cut, so the others cannot
win (docs/decisions/rule-induction.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from countervail.rules.values import Coded

I = NDArray[np.int64]  # noqa: E741
C = NDArray[np.int32]
B = NDArray[np.bool_]
M = NDArray[np.uint64]
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
def _tightest(t: Coded, base: I, ups: I, held: I) -> I:
    """For each cut the tightest one that covers as many rows of the class."""
    out = np.arange(base[-1])
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            middle = base[a] + ups[a]
            for i in range(base[a] + 1, middle):
                if held[i] == held[i - 1]:
                    out[i] = out[i - 1]
            for i in range(base[a + 1] - 2, middle - 1, -1):
                if held[i] == held[i + 1]:
                    out[i] = out[i + 1]
    return out


@njit(cache=True, nogil=True)
def _weigh(t: Coded, rows: I) -> int:
    """How many rows a list of distinct rows stands for."""
    total = 0
    for row in rows:
        total += t.weight[row]
    return total


@njit(cache=True, nogil=True)
def _count(t: Coded, base: I, ups: I, bins: I, rows: I, sign: int, may: bool) -> None:
    """Add rows to (or take them from) the counts by upper end, lower end or value set of each attribute."""
    up, down = (t.may_up, t.may_down) if may else (t.up, t.down)
    for a in range(len(t.ordered)):
        here, middle = base[a], base[a] + ups[a]
        if t.ordered[a]:
            for row in rows:
                bins[here + up[a, row]] += sign * t.weight[row]
                bins[middle + down[a, row]] += sign * t.weight[row]
        else:
            for row in rows:
                bins[here + up[a, row]] += sign * t.weight[row]


@njit(cache=True, nogil=True)
def _restrict(
    t: Coded, base: I, ups: I, bins: I, rows: I, condition: tuple[int, int, int], flags: B, may: bool
) -> tuple[I, int, int]:
    """The rows that a condition covers (or may cover), their number, and how many are flagged; the counts follow."""
    a, kind, code = condition
    kept, gone = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    n = lost = flagged = size = 0
    for row in rows:
        if may_hold(t, a, kind, code, row) if may else holds(t, a, kind, code, row):
            kept[n] = row
            n += 1
            size += t.weight[row]
            flagged += flags[row]
        else:
            gone[lost] = row
            lost += 1
    if lost <= n:
        _count(t, base, ups, bins, gone[:lost], -1, may)
    else:
        bins[:] = 0
        _count(t, base, ups, bins, kept[:n], 1, may)
    return kept[:n], size, flagged


@njit(cache=True, nogil=True)
def _ends(t: Coded, base: I, ups: I, bins: I, ends: I) -> None:
    """Move the last upper end and the first lower end of each ordered attribute inwards to where rows are left."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            middle = base[a] + ups[a]
            while ends[a, 0] > 0 and bins[base[a] + ends[a, 0]] == 0:
                ends[a, 0] -= 1
            while middle + ends[a, 1] < base[a + 1] - 1 and bins[middle + ends[a, 1]] == 0:
                ends[a, 1] += 1


@njit(cache=True, nogil=True)
def _outermost(t: Coded, base: I, ups: I) -> I:
    """The widest ends that rows can have."""
    ends = np.zeros((len(t.ordered), 2), np.int64)
    ends[:, 0] = ups - 1
    return ends


@njit(cache=True, nogil=True)
def _sums(t: Coded, a: int, bins: I, here: int, at: I, lists: C, out: I) -> None:
    """For each value set the weight of the sets that are listed with it."""
    out[:] = 0
    for s in range(t.first[a + 1] - t.first[a]):
        if bins[here + s] > 0:
            for i in range(at[t.first[a] + s], at[t.first[a] + s + 1]):
                out[lists[i]] += bins[here + s]


class _Scales(NamedTuple):
    """What conditions are weighed by, condition by condition, and the counts by value of the whole table."""

    base: I
    ups: I
    held: I
    total: I
    tightest: I
    all_bins: I
    pos_bins: I
    rows: int


@njit(cache=True, nogil=True)
def _choose(
    t: Coded, w: Any, goal: I, cov: I, pos: I, g_ends: I, c_ends: I, p_ends: I, n: tuple[int, int, int], soft: bool
) -> tuple[int, int, int]:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first.

    A candidate covers part of the goal and shrinks what the rule covers (`cov`) or may cover (`pos`). All three are
    counts by value; `n` are their numbers of rows.
    """
    best_a, best_kind, best_code = -1, -1, -1
    most, most_held, fewest = 0, 0, 0
    for a in range(len(t.ordered)):
        here, middle = w.base[a], w.base[a] + w.ups[a]
        if t.ordered[a]:
            last, first = g_ends[a, 0], g_ends[a, 1]
            top, bottom = c_ends[a, 0], c_ends[a, 1]
            if soft:
                top, bottom = max(top, p_ends[a, 0]), min(bottom, p_ends[a, 1])
            for kind in (UP, DOWN):
                if kind == UP:
                    at = here + top - 1
                    if at < here:
                        continue
                    hits = n[0] if top - 1 >= last else n[0] - goal[here + last]
                else:
                    at = middle + bottom + 1
                    if at >= w.base[a + 1]:
                        continue
                    hits = n[0] if bottom + 1 <= first else n[0] - goal[middle + first]
                at = w.tightest[at]
                if hits > 0 and (hits, w.held[at], -w.total[at]) > (most, most_held, -fewest):
                    most, most_held, fewest = hits, w.held[at], w.total[at]
                    best_a, best_kind, best_code = a, kind, at - (here if kind == UP else middle)
            continue
        q = t.first[a + 1] - t.first[a]
        in_goal, in_cov, in_pos = np.empty(q, np.int64), np.empty(q, np.int64), np.empty(q, np.int64)
        _sums(t, a, goal, here, t.sup_at, t.sup, in_goal)
        _sums(t, a, cov, here, t.sup_at, t.sup, in_cov)
        if soft:
            _sums(t, a, pos, here, t.meet_at, t.meet, in_pos)
        for s in range(q):
            shrinks = in_cov[s] < n[1] or (soft and in_pos[s] < n[2])
            scale = (in_goal[s], w.held[here + s], -w.total[here + s])
            if in_goal[s] > 0 and shrinks and scale > (most, most_held, -fewest):
                most, most_held, fewest = in_goal[s], w.held[here + s], w.total[here + s]
                best_a, best_kind, best_code = a, IN, s
    return best_a, best_kind, best_code


@njit(cache=True, nogil=True)
def _grow(t: Coded, w: Any, open_: I, open_bins: I, flags: B, bad: B, soft: bool) -> tuple[I, I]:
    """Conditions that together leave no flagged row inside and overlap no bad one, and the goal that is left.

    No conditions where the rows that are left cannot be told from others.
    """
    everyone = np.arange(len(flags))
    goal_bins, cov_bins, pos_bins = open_bins.copy(), w.all_bins.copy(), w.pos_bins.copy()
    goal, cov, pos = open_, everyone, everyone
    n_goal, n_cov, n_pos = _weigh(t, open_), w.rows, w.rows
    n_out, n_bad = 1, 1 if soft else 0
    g_ends, c_ends, p_ends = _outermost(t, w.base, w.ups), _outermost(t, w.base, w.ups), _outermost(t, w.base, w.ups)
    chosen = np.empty((8, 3), np.int64)
    n = 0
    while n_out > 0 or n_bad > 0:
        _ends(t, w.base, w.ups, goal_bins, g_ends)
        _ends(t, w.base, w.ups, cov_bins, c_ends)
        if soft:
            _ends(t, w.base, w.ups, pos_bins, p_ends)
        sizes = (n_goal, n_cov, n_pos)
        best = _choose(t, w, goal_bins, cov_bins, pos_bins, g_ends, c_ends, p_ends, sizes, soft)
        if best[0] < 0:
            return chosen[:0], goal
        if n == len(chosen):
            chosen = np.concatenate((chosen, np.empty((n, 3), np.int64)))
        chosen[n, 0], chosen[n, 1], chosen[n, 2] = best
        n += 1
        goal, n_goal, _ = _restrict(t, w.base, w.ups, goal_bins, goal, best, flags, False)
        cov, n_cov, n_out = _restrict(t, w.base, w.ups, cov_bins, cov, best, flags, False)
        if soft:
            pos, n_pos, n_bad = _restrict(t, w.base, w.ups, pos_bins, pos, best, bad, True)
    return chosen[:n], goal


@njit(cache=True, nogil=True)
def _last_unmet(t: Coded, conditions: I, rows: I, may: bool) -> I:
    """For each row the last condition that it does not meet."""
    out = np.full(len(rows), -1, np.int64)
    for i in range(len(rows)):
        for c in range(len(conditions) - 1, -1, -1):
            a, kind, code = conditions[c]
            if not (may_hold(t, a, kind, code, rows[i]) if may else holds(t, a, kind, code, rows[i])):
                out[i] = c
                break
    return out


@njit(cache=True, nogil=True)
def _let_in(t: Coded, conditions: I, used: B, rows: I, unmet: I, c: int, may: bool) -> bool:
    """Whether without condition `c` some row would meet all others that are in use.

    Only rows whose last unmet condition is `c` matter: a later one keeps a row out, and for an earlier one this has
    been looked at already.
    """
    for i in range(len(rows)):
        if unmet[i] != c:
            continue
        met = True
        for b in range(c):
            if used[b]:
                a, kind, code = conditions[b]
                met = may_hold(t, a, kind, code, rows[i]) if may else holds(t, a, kind, code, rows[i])
                if not met:
                    break
        if met:
            return True
    return False


@njit(cache=True, nogil=True)
def _minimal(t: Coded, conditions: I, outside: I, bads: I) -> I:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    used = np.ones(len(conditions), np.bool_)
    left = len(conditions)
    out_unmet, bad_unmet = _last_unmet(t, conditions, outside, False), _last_unmet(t, conditions, bads, True)
    for c in range(len(conditions)):
        if left == 1:
            break
        if not _let_in(t, conditions, used, outside, out_unmet, c, False) and not _let_in(
            t, conditions, used, bads, bad_unmet, c, True
        ):
            used[c] = False
            left -= 1
    return conditions[used]


@njit(cache=True, nogil=True)
def meets(t: Coded, conditions: I, row: int) -> bool:
    """Whether a row lies inside all conditions."""
    for c in range(len(conditions)):  # noqa: SIM110 -- numba compiles no generators
        if not holds(t, conditions[c, 0], conditions[c, 1], conditions[c, 2], row):
            return False
    return True


@njit(cache=True, nogil=True)
def induce(t: Coded, goal: B, inside: B, bad: B) -> tuple[I, I]:
    """MLEM2: rules that together cover `goal`, each within `inside` and without overlap with `bad`.

    Returns where the conditions of each rule start, and the conditions (attribute, kind, code).
    """
    soft = bool(bad.any())
    base, ups = layout(t)
    held = covered(t, base, ups, inside)
    total, everyone = covered(t, base, ups, np.ones(len(goal), np.bool_)), np.arange(len(goal))
    all_bins, pos_bins = np.zeros(base[-1], np.int64), np.zeros(base[-1], np.int64)
    _count(t, base, ups, all_bins, everyone, 1, False)
    _count(t, base, ups, pos_bins, everyone, 1, True)
    tightest = _tightest(t, base, ups, held)
    w = _Scales(base, ups, held, total, tightest, all_bins, pos_bins, _weigh(t, everyone))
    flags = ~inside
    outside, bads = np.flatnonzero(flags), np.flatnonzero(bad)
    open_ = np.flatnonzero(goal)
    bins = np.zeros(base[-1], np.int64)
    _count(t, base, ups, bins, open_, 1, False)
    ends, flat = [0], [np.int64(0) for _ in range(0)]
    done = np.zeros(len(goal), np.bool_)
    while len(open_) > 0:
        conditions, left = _grow(t, w, open_, bins, flags, bad, soft)
        if len(conditions) == 0:  # no conditions tell these rows from those outside
            done[left] = True
        else:
            conditions = _minimal(t, conditions, outside, bads)
            for c in range(len(conditions)):
                flat.extend([conditions[c, 0], conditions[c, 1], conditions[c, 2]])
            ends.append(len(flat) // 3)
            for row in open_:
                done[row] = meets(t, conditions, row)
        _count(t, base, ups, bins, open_[done[open_]], -1, False)
        open_ = open_[~done[open_]]
    return np.array(ends, np.int64), np.array(flat, np.int64).reshape(-1, 3)


@njit(cache=True, nogil=True)
def needed(t: Coded, at: I, conditions: I, goal: B) -> B:
    """Which rules are kept when, first to last, those are dropped that the others cover."""
    rows = np.flatnonzero(goal)
    times = np.zeros(len(rows), np.int64)
    for r in range(len(at) - 1):
        for i in range(len(rows)):
            times[i] += meets(t, conditions[at[r] : at[r + 1]], rows[i])
    keep = np.ones(len(at) - 1, np.bool_)
    for r in range(len(at) - 1):
        part = conditions[at[r] : at[r + 1]]
        alone = False
        for i in range(len(rows)):
            if times[i] == 1 and meets(t, part, rows[i]):
                alone = True
                break
        if not alone:
            keep[r] = False
            for i in range(len(rows)):
                times[i] -= meets(t, part, rows[i])
    return keep


@njit(cache=True, nogil=True)
def supports(t: Coded, at: I, conditions: I) -> I:
    """How many rows each rule covers."""
    out = np.zeros(len(at) - 1, np.int64)
    for r in range(len(at) - 1):
        for row in range(len(t.weight)):
            if meets(t, conditions[at[r] : at[r + 1]], row):
                out[r] += t.weight[row]
    return out
