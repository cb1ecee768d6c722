"""Compiled loops of rule induction. Each has a plain-Python twin in the tests.

Row sets are lists of row numbers that shrink while a rule grows: time and memory are linear in rows and attributes,
however many different values a column has. Of the many cuts of an ordered attribute only the best one on each side is
looked at: what a condition covers grows with the cut, so the others cannot win (docs/decisions/rule-induction.md).
"""

from __future__ import annotations

from typing import Any

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
def _listed(items: C, start: int, end: int, wanted: int) -> bool:
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
    return _listed(t.sup, t.sup_at[s], t.sup_at[s + 1], code)


@njit(cache=True, nogil=True)
def may_hold(t: Coded, a: int, kind: int, code: int, row: int) -> bool:
    """Whether the row's value set overlaps a condition."""
    if kind == UP:
        return t.may_up[a, row] <= code
    if kind == DOWN:
        return t.may_down[a, row] >= code
    s = t.first[a] + t.up[a, row]
    return _listed(t.meet, t.meet_at[s], t.meet_at[s + 1], code)


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
def _ends(t: Coded, a: int, g: I, cov: I, pos: I, whole: bool, soft: bool) -> tuple[int, int, int, int, int, int]:
    """Of the goal: last upper end and its weight, first lower end and its weight; the ends of what is covered."""
    last, last_w, first, first_w = -1, 0, 1 << 40, 0
    for row in g:
        u, d, w = t.up[a, row], t.down[a, row], t.weight[row]
        if u > last:
            last, last_w = u, 0
        if d < first:
            first, first_w = d, 0
        last_w += w if u == last else 0
        first_w += w if d == first else 0
    top, bottom = last, first
    if whole:
        return last, last_w, first, first_w, t.up[a].max(), 0
    for row in cov:
        top, bottom = max(top, t.up[a, row]), min(bottom, t.down[a, row])
    if soft:
        for row in pos:
            top, bottom = max(top, t.may_up[a, row]), min(bottom, t.may_down[a, row])
    return last, last_w, first, first_w, top, bottom


@njit(cache=True, nogil=True)
def _push(t: Coded, a: int, rows: I, at: I, lists: C, sums: I, own: I) -> None:
    """Add up the weights of rows by the sets that each row's set is listed with."""
    for row in rows:
        own[t.up[a, row]] += t.weight[row]
    for row in rows:
        s = t.up[a, row]
        if own[s] > 0:
            for i in range(at[t.first[a] + s], at[t.first[a] + s + 1]):
                sums[lists[i]] += own[s]
            own[s] = 0


@njit(cache=True, nogil=True)
def _weigh(t: Coded, rows: I) -> int:
    """How many rows a list of distinct rows stands for."""
    total = 0
    for row in rows:
        total += t.weight[row]
    return total


@njit(cache=True, nogil=True)
def _choose(
    t: Coded, base: I, ups: I, held: I, total: I, snap: I, g: I, cov: I, pos: I, n_rows: int, soft: bool, whole: bool
) -> tuple[int, int, int]:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first.

    A candidate covers part of the goal and shrinks what the rule covers (`cov`) or may cover (`pos`).
    """
    rows, n_cov, n_pos = _weigh(t, g), 0 if whole else _weigh(t, cov), 0 if whole else _weigh(t, pos)
    best_a, best_kind, best_code = -1, -1, -1
    most, most_held, fewest = 0, 0, 0
    widest = 0
    for a in range(len(t.ordered)):
        widest = max(widest, t.first[a + 1] - t.first[a])
    in_g, in_cov = np.zeros(widest, np.int64), np.zeros(widest, np.int64)
    in_pos, own = np.zeros(widest, np.int64), np.zeros(widest, np.int64)
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            last, last_w, first, first_w, top, bottom = _ends(t, a, g, cov, pos, whole, soft)
            middle = base[a] + ups[a]
            for kind in (UP, DOWN):
                if kind == UP:
                    at = base[a] + top - 1
                    if at < base[a]:
                        continue
                    hits = rows if top - 1 >= last else rows - last_w
                else:
                    at = middle + bottom + 1
                    if at >= base[a + 1]:
                        continue
                    hits = rows if bottom + 1 <= first else rows - first_w
                at = snap[at]
                if hits > 0 and (hits, held[at], -total[at]) > (most, most_held, -fewest):
                    most, most_held, fewest = hits, held[at], total[at]
                    best_a, best_kind, best_code = a, kind, at - (base[a] if kind == UP else middle)
            continue
        q = t.first[a + 1] - t.first[a]
        in_g[:q] = 0
        _push(t, a, g, t.sup_at, t.sup, in_g, own)
        if not whole:
            in_cov[:q] = 0
            _push(t, a, cov, t.sup_at, t.sup, in_cov, own)
            if soft:
                in_pos[:q] = 0
                _push(t, a, pos, t.meet_at, t.meet, in_pos, own)
        for s in range(q):
            if in_g[s] == 0:
                continue
            at = base[a] + s
            shrinks = total[at] < n_rows if whole else in_cov[s] < n_cov or (soft and in_pos[s] < n_pos)
            if shrinks and (in_g[s], held[at], -total[at]) > (most, most_held, -fewest):
                most, most_held, fewest = in_g[s], held[at], total[at]
                best_a, best_kind, best_code = a, IN, s
    return best_a, best_kind, best_code


@njit(cache=True, nogil=True)
def _kept(t: Coded, rows: I, a: int, kind: int, code: int, may: bool) -> I:
    """The rows that a condition covers, or may cover."""
    out = np.empty(len(rows), np.int64)
    n = 0
    for row in rows:
        if may_hold(t, a, kind, code, row) if may else holds(t, a, kind, code, row):
            out[n] = row
            n += 1
    return out[:n]


@njit(cache=True, nogil=True)
def _any(t: Coded, rows: I, conditions: I, used: B, may: bool) -> bool:
    """Whether some row meets, or may meet, all used conditions."""
    for row in rows:
        met = True
        for c in range(len(conditions)):
            if used[c]:
                a, kind, code = conditions[c]
                met = may_hold(t, a, kind, code, row) if may else holds(t, a, kind, code, row)
                if not met:
                    break
        if met:
            return True
    return False


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
    total = covered(t, base, ups, np.ones(len(goal), np.bool_))
    snap = _tightest(t, base, ups, held)
    outside, bads, everyone = np.flatnonzero(~inside), np.flatnonzero(bad), np.arange(len(goal))
    open_ = np.flatnonzero(goal)
    n_rows = _weigh(t, everyone)
    ends, flat = [0], [np.int64(0) for _ in range(0)]
    while len(open_) > 0:
        chosen = np.empty((8, 3), np.int64)
        n = 0
        g, cov, pos = open_, everyone, everyone if soft else bads
        out, may = outside, bads
        found = True
        while n == 0 or len(out) > 0 or len(may) > 0:
            a, kind, code = _choose(t, base, ups, held, total, snap, g, cov, pos, n_rows, soft, n == 0)
            if a < 0:
                found = False
                break
            if n == len(chosen):
                chosen = np.concatenate((chosen, np.empty((n, 3), np.int64)))
            chosen[n, 0], chosen[n, 1], chosen[n, 2] = a, kind, code
            n += 1
            g, cov = _kept(t, g, a, kind, code, False), _kept(t, cov, a, kind, code, False)
            out = _kept(t, out, a, kind, code, False)
            if soft:
                pos, may = _kept(t, pos, a, kind, code, True), _kept(t, may, a, kind, code, True)
        if not found:  # rows that no conditions tell from those outside
            lost = np.zeros(len(goal), np.bool_)
            lost[g] = True
            open_ = open_[~lost[open_]]
            continue
        conditions = chosen[:n]
        used = np.ones(n, np.bool_)
        left = n
        for c in range(n):
            if left == 1:
                break
            used[c] = False
            if _any(t, outside, conditions, used, False) or (soft and _any(t, bads, conditions, used, True)):
                used[c] = True
            else:
                left -= 1
        conditions = conditions[used]
        for c in range(len(conditions)):
            flat.extend([conditions[c, 0], conditions[c, 1], conditions[c, 2]])
        ends.append(len(flat) // 3)
        still = np.array([not meets(t, conditions, row) for row in open_], np.bool_)
        open_ = open_[still]
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


@njit(cache=True, nogil=True)
def narrow(t: Coded, at: I, conditions: I, conclusions: M, known: M, touched: B) -> None:
    """Intersect what is known of each row with the conclusions of the rules that cover it."""
    for r in range(len(at) - 1):
        for row in range(len(t.weight)):
            if meets(t, conditions[at[r] : at[r + 1]], row):
                known[row] &= conclusions[r]
                touched[row] = True


@njit(cache=True, nogil=True)
def lies_inside(t: Coded, low: Any, high: Any, inner: int, outer: int) -> bool:
    """Whether one row's value sets all lie inside another's."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, inner] < low[a, outer] or high[a, inner] > high[a, outer]:
                return False
        else:
            s = t.first[a] + t.up[a, inner]
            if not _listed(t.sup, t.sup_at[s], t.sup_at[s + 1], t.up[a, outer]):
                return False
    return True


@njit(cache=True, nogil=True)
def overlaps(t: Coded, low: Any, high: Any, one: int, other: int) -> bool:
    """Whether two rows have a value in common in every attribute."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            if low[a, one] > high[a, other] or low[a, other] > high[a, one]:
                return False
        else:
            s = t.first[a] + t.up[a, one]
            if not _listed(t.meet, t.meet_at[s], t.meet_at[s + 1], t.up[a, other]):
                return False
    return True


@njit(cache=True, nogil=True)
def joined(t: Coded, low: Any, high: Any, decisions: M) -> M:
    """The union of the decisions of all rows inside each row."""
    out = decisions.copy()
    for outer in range(len(decisions)):
        for inner in range(len(decisions)):
            if (decisions[inner] & ~out[outer]) != 0 and lies_inside(t, low, high, inner, outer):
                out[outer] |= decisions[inner]
    return out


@njit(cache=True, nogil=True)
def clear_of(t: Coded, low: Any, high: Any, rows: B, bad: B) -> B:
    """Which of the rows overlap no bad one."""
    out = rows.copy()
    bads = np.flatnonzero(bad)
    for row in np.flatnonzero(rows):
        for other in bads:
            if overlaps(t, low, high, row, other):
                out[row] = False
                break
    return out
