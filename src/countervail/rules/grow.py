"""Compiled loops of MLEM2: growing rules condition by condition. `induce` has a plain-Python twin in the tests.

Row sets are lists of row numbers that shrink while a rule grows; the goal's rows are also counted by value. Time and
memory are linear in rows and attributes, however many different values a column has. Of the many cuts of an ordered
attribute only the best one on each side is looked at: what a condition covers grows with the cut, so the others cannot
win (docs/decisions/rule-induction.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.rules.kernels import (
    DOWN,
    IN,
    UP,
    count_covered,
    holds,
    keep_inside,
    kernel,
    lay_out,
    mark_meeting,
    may_hold,
)
from countervail.rules.values import Bools, Coded, Codes, Ints


@kernel
def _find_tightest(t: Coded, base: Ints, ups: Ints, held: Ints) -> Ints:
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


@kernel
def _count_rows(t: Coded, rows: Ints) -> int:
    """How many rows a list of distinct rows stands for."""
    total = 0
    for row in rows:
        total += t.weight[row]
    return total


@kernel
def _count(t: Coded, w: Scales, bins: Ints, rows: Ints, sign: int) -> None:
    """Add rows to (or take them from) the counts by upper end, lower end or value set of each attribute."""
    for a in range(len(t.ordered)):
        here, middle = w.base[a], w.base[a] + w.ups[a]
        for row in rows:
            bins[here + t.up[a, row]] += sign * t.weight[row]
        if t.ordered[a]:
            for row in rows:
                bins[middle + t.down[a, row]] += sign * t.weight[row]


@kernel
def _aim(t: Coded, w: Scales, condition: tuple[int, int, int], goal: Ints, bins: Ints) -> Ints:
    """The rows of the goal that a condition covers; their counts follow."""
    met = mark_meeting(t, condition[0], condition[1], condition[2], goal, False)
    kept = goal[met]
    if 2 * len(kept) >= len(goal):
        _count(t, w, bins, goal[~met], -1)
    else:
        bins[:] = 0
        _count(t, w, bins, kept, 1)
    return kept


@kernel
def _find_highest(ranks: Codes, rows: Ints, end: int) -> int:
    """The highest rank among the rows, which is `end` or less."""
    best = -1
    for row in rows:
        if ranks[row] == end:
            return end
        best = max(best, ranks[row])
    return best


@kernel
def _find_lowest(ranks: Codes, rows: Ints, end: int) -> int:
    """The lowest rank among the rows, which is `end` or more."""
    best = ranks[rows[0]]
    for row in rows:
        if ranks[row] == end:
            return end
        best = min(best, ranks[row])
    return int(best)


@kernel
def _all_meet(t: Coded, a: int, code: int, rows: Ints, may: bool) -> bool:
    """Whether a value set covers (or may cover) all rows."""
    for row in rows:  # noqa: SIM110 -- numba compiles no generators
        if not (may_hold(t, a, IN, code, row) if may else holds(t, a, IN, code, row)):
            return False
    return True


class Scales(NamedTuple):
    """What conditions are weighed by: rows of the class and of the table that each covers, and the tightest alike."""

    base: Ints
    ups: Ints
    held: Ints
    total: Ints
    tightest: Ints


@kernel
def weigh_conditions(t: Coded, inside: Bools) -> Scales:
    """What the conditions of a table are weighed by, for rules within `inside`."""
    base, ups = lay_out(t)
    held = count_covered(t, base, ups, inside)
    total = count_covered(t, base, ups, np.ones(len(inside), np.bool_))
    return Scales(base, ups, held, total, _find_tightest(t, base, ups, held))


class _GrowingRule(NamedTuple):
    """A rule on its way: rows of the goal with their counts, rows inside (`cov`) and possibly inside (`pos`).

    `ends` are the outermost ranks of the rows inside or possibly inside, attribute x (upper, lower); `idle` marks the
    value sets that cover all of them: they can cut nothing off, now or later.
    """

    goal: Ints
    bins: Ints
    cov: Ints
    pos: Ints
    ends: Ints
    idle: Bools


@kernel
def _move_ends(t: Coded, s: _GrowingRule, soft: bool) -> None:
    """Move the outermost ranks inwards to where rows are left."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            top, bottom = s.ends[a]
            s.ends[a, 0] = _find_highest(t.up[a], s.cov, top)
            s.ends[a, 1] = _find_lowest(t.down[a], s.cov, bottom)
            if soft:
                s.ends[a, 0] = max(s.ends[a, 0], _find_highest(t.may_up[a], s.pos, top))
                s.ends[a, 1] = min(s.ends[a, 1], _find_lowest(t.may_down[a], s.pos, bottom))


@kernel
def _choose(t: Coded, w: Scales, s: _GrowingRule, size: int, soft: bool) -> tuple[int, int, int]:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first.

    A candidate covers part of the goal (`size` rows) and shrinks what the rule covers or may cover.
    """
    best = (-1, -1, -1)
    most = (0, 0, 0)
    for a in range(len(t.ordered)):
        here, middle = w.base[a], w.base[a] + w.ups[a]
        if t.ordered[a]:
            top, bottom = s.ends[a]
            for kind in (UP, DOWN):
                if kind == UP:
                    at = here + top - 1
                    if at < here:
                        continue
                    hits = size - s.bins[at + 1]
                else:
                    at = middle + bottom + 1
                    if at >= w.base[a + 1]:
                        continue
                    hits = size - s.bins[at - 1]
                at = w.tightest[at]
                scale = (hits, w.held[at], -w.total[at])
                if hits > 0 and scale > most:
                    most, best = scale, (a, kind, at - (here if kind == UP else middle))
            continue
        q = t.first[a + 1] - t.first[a]
        hits_of = np.zeros(q, np.int64)
        for v in range(q):
            if s.bins[here + v] > 0:
                for i in range(t.sup_at[t.first[a] + v], t.sup_at[t.first[a] + v + 1]):
                    hits_of[t.sup[i]] += s.bins[here + v]
        for v in range(q):
            scale = (hits_of[v], w.held[here + v], -w.total[here + v])
            if hits_of[v] == 0 or s.idle[here + v] or scale <= most:
                continue
            if _all_meet(t, a, v, s.cov, False) and not (soft and not _all_meet(t, a, v, s.pos, True)):
                s.idle[here + v] = True
            else:
                most, best = scale, (a, IN, v)
    return best


@kernel
def _grow(t: Coded, w: Scales, open_: Ints, open_bins: Ints, flags: Bools, bad: Bools, soft: bool) -> tuple[Ints, Ints]:
    """Conditions that together leave no flagged row inside and overlap no bad one, and the goal that is left.

    No conditions where the rows that are left cannot be told from others.
    """
    everyone = np.arange(len(flags))
    ends = np.zeros((len(t.ordered), 2), np.int64)
    ends[:, 0] = w.ups - 1
    s = _GrowingRule(open_, open_bins.copy(), everyone, everyone, ends, np.zeros(w.base[-1], np.bool_))
    n_out, n_bad = 1, 1 if soft else 0
    chosen = np.empty((8, 3), np.int64)
    n = 0
    while n_out > 0 or n_bad > 0:
        _move_ends(t, s, soft)
        best = _choose(t, w, s, _count_rows(t, s.goal), soft)
        if best[0] < 0:
            return chosen[:0], s.goal
        if n == len(chosen):
            chosen = np.concatenate((chosen, np.empty((n, 3), np.int64)))
        chosen[n, 0], chosen[n, 1], chosen[n, 2] = best
        n += 1
        goal = _aim(t, w, best, s.goal, s.bins)
        cov, pos = s.cov[mark_meeting(t, best[0], best[1], best[2], s.cov, False)], s.pos
        n_out = flags[cov].sum()
        if soft:
            pos = s.pos[mark_meeting(t, best[0], best[1], best[2], s.pos, True)]
            n_bad = bad[pos].sum()
        s = _GrowingRule(goal, s.bins, cov, pos, ends, s.idle)
    return chosen[:n], s.goal


@kernel
def _find_last_unmet(t: Coded, conditions: Ints, rows: Ints, may: bool) -> Ints:
    """For each row the last condition that it does not meet."""
    out, left = np.full(len(rows), -1, np.int64), np.arange(len(rows))
    for c in range(len(conditions) - 1, -1, -1):
        met = mark_meeting(t, conditions[c, 0], conditions[c, 1], conditions[c, 2], rows[left], may)
        out[left[~met]] = c
        left = left[met]
    return out


@kernel
def _lets_in(t: Coded, conditions: Ints, used: Bools, rows: Ints, unmet: Ints, c: int, may: bool) -> bool:
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


@kernel
def _shorten(t: Coded, conditions: Ints, outside: Ints, bads: Ints) -> Ints:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    used = np.ones(len(conditions), np.bool_)
    left = len(conditions)
    out_unmet, bad_unmet = _find_last_unmet(t, conditions, outside, False), _find_last_unmet(t, conditions, bads, True)
    for c in range(len(conditions)):
        if left == 1:
            break
        if not _lets_in(t, conditions, used, outside, out_unmet, c, False) and not _lets_in(
            t, conditions, used, bads, bad_unmet, c, True
        ):
            used[c] = False
            left -= 1
    return conditions[used]


@kernel
def induce(t: Coded, goal: Bools, inside: Bools, bad: Bools) -> tuple[Ints, Ints]:
    """MLEM2: rules that together cover `goal`, each within `inside` and without overlap with `bad`.

    Returns where the conditions of each rule start, and the conditions (attribute, kind, code).
    """
    soft = bool(bad.any())
    w = weigh_conditions(t, inside)
    flags = ~inside
    outside, bads = np.flatnonzero(flags), np.flatnonzero(bad)
    open_ = np.flatnonzero(goal)
    bins = np.zeros(w.base[-1], np.int64)
    _count(t, w, bins, open_, 1)
    ends, flat = [0], [np.int64(0) for _ in range(0)]
    done = np.zeros(len(goal), np.bool_)
    while len(open_) > 0:
        conditions, left = _grow(t, w, open_, bins, flags, bad, soft)
        if len(conditions) == 0:  # no conditions tell these rows from those outside
            done[left] = True
        else:
            conditions = _shorten(t, conditions, outside, bads)
            for c in range(len(conditions)):
                flat.extend([conditions[c, 0], conditions[c, 1], conditions[c, 2]])
            ends.append(len(flat) // 3)
            done[keep_inside(t, conditions, open_)] = True
        _count(t, w, bins, open_[done[open_]], -1)
        open_ = open_[~done[open_]]
    return np.array(ends, np.int64), np.array(flat, np.int64).reshape(-1, 3)
