"""Compiled loops of MLEM2: growing rules condition by condition. `induce` has a plain-Python twin in the tests.

The rows left in a growing rule are counted by value, and rows are listed by value: a condition costs no more than the
rows that it removes, so a rule costs time linear in rows and attributes, however many conditions it goes through and
however many different values a column has. Of the many cuts of an ordered attribute only the best one on each side is
looked at: what a condition covers grows with the cut, so the others cannot win (docs/decisions/rule-induction.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.rules.kernels import (
    DOWN,
    IN,
    UP,
    contains,
    count_covered,
    keep_inside,
    kernel,
    lay_out,
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


class _Places(NamedTuple):
    """Where rows are counted: at both ends of every ordered attribute, and at their value set of the others.

    `of` is row x place; the rows of a place start at `at` in `rows`.
    """

    of: Ints
    at: Ints
    rows: Ints
    weight: Ints


@kernel
def _list_places(t: Coded, w: Scales, may: bool) -> _Places:
    up, down = (t.may_up, t.may_down) if may else (t.up, t.down)
    n, width = len(t.weight), 0
    of = np.empty((n, len(t.ordered) + t.ordered.sum()), np.int64)
    for a in range(len(t.ordered)):
        of[:, width] = w.base[a] + up[a]
        if t.ordered[a]:
            width += 1
            of[:, width] = w.base[a] + w.ups[a] + down[a]
        width += 1
    at, rows = np.zeros(w.base[-1] + 1, np.int64), np.empty(n * width, np.int64)
    for place in of.ravel():
        at[place] += 1
    at = at.cumsum()
    for row in range(n):
        for place in of[row]:
            at[place] -= 1
            rows[at[place]] = row
    return _Places(of, at, rows, t.weight)


class _RowsLeft(NamedTuple):
    """Rows that a growing rule still has: how many people in all and at each place, and how many rows are `wrong`."""

    inside: Bools
    wrong: Bools
    size: Ints
    bins: Ints
    p: _Places


@kernel
def _tally(s: _RowsLeft, row: int, sign: int) -> None:
    """Add a row to (or take it from) those that are left."""
    people = sign * s.p.weight[row]
    s.inside[row] = sign > 0
    s.size[0] += people
    s.size[1] += sign * s.wrong[row]
    for place in s.p.of[row]:
        s.bins[place] += people


@kernel
def _gather(p: _Places, rows: Bools, wrong: Bools) -> _RowsLeft:
    """Rows to start from."""
    size, bins = np.zeros(2, np.int64), np.zeros(len(p.at) - 1, np.int64)
    s = _RowsLeft(np.zeros(len(rows), np.bool_), wrong, size, bins, p)
    for row in np.flatnonzero(rows):
        _tally(s, int(row), 1)
    return s


@kernel
def _copy(s: _RowsLeft) -> _RowsLeft:
    return _RowsLeft(s.inside.copy(), s.wrong, s.size.copy(), s.bins.copy(), s.p)


@kernel
def _remove(s: _RowsLeft, start: int, stop: int) -> None:
    """Take out all rows of a stretch of places."""
    for i in range(s.p.at[start], s.p.at[stop]):
        if s.inside[s.p.rows[i]]:
            _tally(s, s.p.rows[i], -1)


@kernel
def _narrow(t: Coded, w: Scales, s: _RowsLeft, ends: Ints, condition: tuple[int, int, int], may: bool) -> None:
    """Take out the rows that do not meet a condition; none lies beyond the `ends`."""
    a, kind, code = condition
    here, middle = w.base[a], w.base[a] + w.ups[a]
    if kind == UP:
        _remove(s, here + code + 1, here + ends[a, 0] + 1)
    elif kind == DOWN:
        _remove(s, middle + ends[a, 1], middle + code)
    else:
        at, sets = (t.meet_at, t.meet) if may else (t.sup_at, t.sup)
        for v in range(t.first[a + 1] - t.first[a]):
            if not contains(sets, at[t.first[a] + v], at[t.first[a] + v + 1], code):
                _remove(s, here + v, here + v + 1)


@kernel
def _move_ends(ordered: Bools, w: Scales, cov: Ints, pos: Ints, ends: Ints) -> None:
    """Move the outermost ranks of each ordered attribute, (upper, lower), inwards to where rows are left."""
    for a in range(len(ordered)):
        if ordered[a]:
            here, middle = w.base[a], w.base[a] + w.ups[a]
            while cov[here + ends[a, 0]] == 0 and pos[here + ends[a, 0]] == 0:
                ends[a, 0] -= 1
            while cov[middle + ends[a, 1]] == 0 and pos[middle + ends[a, 1]] == 0:
                ends[a, 1] += 1


@kernel
def _count_goal(t: Coded, w: Scales, bins: Ints, hits: Ints) -> None:
    """How much of the goal each value set covers."""
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            continue
        here, own = w.base[a], t.first[a]
        hits[here : w.base[a + 1]] = 0
        for v in range(t.first[a + 1] - own):
            if bins[here + v] > 0:
                for i in range(t.sup_at[own + v], t.sup_at[own + v + 1]):
                    hits[here + t.sup[i]] += bins[here + v]


@kernel
def _all_meet(bins: Ints, here: int, end: int, at: Ints, first: int, sets: Codes, code: int) -> bool:
    """Whether one of an attribute's value sets covers (or may cover) all rows that are left."""
    for v in range(end - here):
        if bins[here + v] > 0 and not contains(sets, at[first + v], at[first + v + 1], code):
            return False
    return True


@kernel
def _choose(
    t: Coded, w: Scales, goal: _RowsLeft, cov: Ints, pos: Ints, ends: Ints, hits: Ints, idle: Bools, soft: bool
) -> tuple[int, int, int]:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first.

    A candidate covers part of the goal and shrinks what the rule covers (`cov`) or may cover (`pos`). A value set that
    does not is `idle` from then on.
    """
    best = (-1, -1, -1)
    most = (0, 0, 0)
    for a in range(len(t.ordered)):
        here, middle, end = w.base[a], w.base[a] + w.ups[a], w.base[a + 1]
        if t.ordered[a]:
            outer, lower = here + ends[a, 0], middle + ends[a, 1]
            for kind in (UP, DOWN):
                if (kind == UP and outer == here) or (kind == DOWN and lower == end - 1):
                    continue
                at = w.tightest[outer - 1 if kind == UP else lower + 1]
                scale = (goal.size[0] - goal.bins[outer if kind == UP else lower], w.held[at], -w.total[at])
                if scale[0] > 0 and scale > most:
                    most, best = scale, (a, kind, at - (here if kind == UP else middle))
            continue
        for at in range(here, end):
            if hits[at] == 0 or hits[at] < most[0] or idle[at]:
                continue
            scale = (hits[at], w.held[at], -w.total[at])
            if scale > most:
                idle[at] = _all_meet(cov, here, end, t.sup_at, t.first[a], t.sup, at - here) and (
                    not soft or _all_meet(pos, here, end, t.meet_at, t.first[a], t.meet, at - here)
                )
                if not idle[at]:
                    most, best = scale, (a, IN, at - here)
    return best


@kernel
def _grow(t: Coded, w: Scales, goal: _RowsLeft, cov: _RowsLeft, pos: _RowsLeft, soft: bool) -> tuple[Ints, Ints]:
    """Conditions that together leave no wrong row inside or possibly inside, and the rows of the goal that are left.

    No conditions where the rows that are left cannot be told from others.
    """
    goal, cov = _copy(goal), _copy(cov)
    pos = _copy(pos) if soft else cov
    ends = np.zeros((len(t.ordered), 2), np.int64)
    ends[:, 0] = w.ups - 1
    hits, idle = np.empty(w.base[-1], np.int64), np.zeros(w.base[-1], np.bool_)
    chosen = np.empty((8, 3), np.int64)
    n = counted = 0
    while n == 0 or cov.size[1] > 0 or pos.size[1] > 0:
        if goal.size[0] != counted:
            _count_goal(t, w, goal.bins, hits)
            counted = goal.size[0]
        _move_ends(t.ordered, w, cov.bins, pos.bins, ends)
        best = _choose(t, w, goal, cov.bins, pos.bins, ends, hits, idle, soft)
        if best[0] < 0:
            return chosen[:0], np.flatnonzero(goal.inside)
        if n == len(chosen):
            chosen = np.concatenate((chosen, np.empty((n, 3), np.int64)))
        chosen[n, 0], chosen[n, 1], chosen[n, 2] = best
        n += 1
        _narrow(t, w, goal, ends, best, False)
        _narrow(t, w, cov, ends, best, False)
        if soft:
            _narrow(t, w, pos, ends, best, True)
    return _drop_wider(chosen[:n], len(t.ordered)), np.flatnonzero(goal.inside)


@kernel
def _drop_wider(conditions: Ints, attributes: int) -> Ints:
    """The conditions without cuts that a later and therefore tighter one of the same side makes idle."""
    used, last = np.ones(len(conditions), np.bool_), np.full((attributes, 2), -1, np.int64)
    for c in range(len(conditions)):
        a, kind = conditions[c, 0], conditions[c, 1]
        if kind != IN:
            if last[a, kind] >= 0:
                used[last[a, kind]] = False
            last[a, kind] = c
    return conditions[used]


@kernel
def _shorten(t: Coded, conditions: Ints, outside: Ints, bads: Ints) -> Ints:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    used = np.ones(len(conditions), np.bool_)
    for c in range(len(conditions)):
        used[c] = False
        others = conditions[used]
        lets_in = len(keep_inside(t, others, outside, False)) > 0 or len(keep_inside(t, others, bads, True)) > 0
        used[c] = len(others) == 0 or lets_in
    return conditions[used]


@kernel
def induce(t: Coded, goal: Bools, inside: Bools, bad: Bools) -> tuple[Ints, Ints]:
    """MLEM2: rules that together cover `goal`, each within `inside` and without overlap with `bad`.

    Returns where the conditions of each rule start, and the conditions (attribute, kind, code).
    """
    soft = bool(bad.any())
    w = weigh_conditions(t, inside)
    everyone, places = np.ones(len(goal), np.bool_), _list_places(t, w, False)
    cov = _gather(places, everyone, ~inside)
    pos = _gather(_list_places(t, w, True), everyone, bad) if soft else cov
    open_ = _gather(places, goal, ~everyone)
    outside, bads = np.flatnonzero(~inside), np.flatnonzero(bad)
    ends, flat = [0], [np.int64(0) for _ in range(0)]
    while open_.size[0] > 0:
        conditions, done = _grow(t, w, open_, cov, pos, soft)
        if len(conditions) > 0:  # otherwise no conditions tell these rows from those outside
            conditions = _shorten(t, conditions, outside, bads)
            for c in range(len(conditions)):
                flat.extend([conditions[c, 0], conditions[c, 1], conditions[c, 2]])
            ends.append(len(flat) // 3)
            done = keep_inside(t, conditions, np.flatnonzero(open_.inside), False)
        for row in done:
            _tally(open_, row, -1)
    return np.array(ends, np.int64), np.array(flat, np.int64).reshape(-1, 3)
