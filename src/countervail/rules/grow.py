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
    Side,
    Whole,
    contains,
    count_covered,
    inner,
    keep_inside,
    kernel,
    lay_out,
    mark_meeting,
    may_side,
    sure_side,
)
from countervail.rules.values import Bools, Coded, Codes, Ints

# Lines of the state of a growing rule: the goal that it covers, rows inside, and possibly inside.
GOAL, COV, POS = 0, 1, 2
# Lines of the scales that conditions are weighed by.
HELD, TOTAL, TIGHTEST = 0, 1, 2


class Scales(NamedTuple):
    """Where conditions start, and what they are weighed by.

    `of` has a line for the rows of the class that each condition covers, for those of the table, and for the tightest
    that covers as many rows of the class.
    """

    base: Ints
    ups: Ints
    of: Ints


def weigh_conditions(t: Coded, inside: Bools) -> Scales:
    """What the conditions of a table are weighed by, for rules within `inside`."""
    base, ups = lay_out(t)
    held = count_covered(t, base, ups, inside)
    total = count_covered(t, base, ups, np.ones(len(inside), np.bool_))
    tightest = np.arange(base[-1])
    for a in np.flatnonzero(t.ordered):
        middle = base[a] + ups[a]
        _mark_runs(held[base[a] : middle], tightest[base[a] : middle])
        _mark_runs(held[middle : base[a + 1]][::-1], tightest[middle : base[a + 1]][::-1])
    return Scales(base, ups, np.stack([held, total, tightest]))


def _mark_runs(held: Ints, tightest: Ints) -> None:
    """Within stretches of equal counts, take the first."""
    first = np.flatnonzero(np.diff(held, prepend=-1))
    tightest[:] = tightest[np.repeat(first, np.diff([*first, len(held)]))]


class _Places(NamedTuple):
    """Where rows are counted: at both ends of every ordered attribute, and at their value set of the others.

    `of` is row x place; the rows of a place start at `at` in `rows`.
    """

    of: Ints
    at: Ints
    rows: Ints


def _list_places(side: Side, w: Scales) -> _Places:
    columns = []
    for a in range(len(side.ordered)):
        columns.append(w.base[a] + side.up[a])
        if side.ordered[a]:
            columns.append(w.base[a] + w.ups[a] + side.down[a])
    of = np.stack(columns, axis=1).astype(np.int64)
    places = of.ravel()
    at = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=w.base[-1]))]).astype(np.int64)
    return _Places(of, at, np.argsort(places, kind="stable") // of.shape[1])


class _RowsLeft(NamedTuple):
    """Rows that a growing rule still has, by line: how many people in all and at each place, and how many `wrong`."""

    inside: Bools
    wrong: Bools
    size: Ints
    bins: Ints

    def copied(self) -> _RowsLeft:
        """To be narrowed."""
        return _RowsLeft(self.inside.copy(), self.wrong, self.size.copy(), self.bins.copy())


def _count_left(places: list[_Places], weight: Ints, inside: Bools, wrong: Bools) -> _RowsLeft:
    """Rows to start from."""
    bins = [
        np.bincount(p.of[rows].ravel(), weights=np.repeat(weight[rows], p.of.shape[1]), minlength=len(p.at) - 1)
        for p, rows in zip(places, inside, strict=True)
    ]
    size = np.stack([inside @ weight, (inside & wrong).sum(axis=1)], axis=1)
    return _RowsLeft(inside, wrong, size.astype(np.int64), np.array(bins).astype(np.int64))


@inner
def _remove(
    first: int, last: int, of: Ints, rows: Ints, weight: Ints, inside: Bools, wrong: Bools, bins: Ints, size: Ints
) -> None:
    """Take out all rows of a stretch of places."""
    people, wrongs = 0, 0
    for i in range(first, last):
        row = rows[i]
        if inside[row]:
            inside[row] = False
            people += weight[row]
            wrongs += wrong[row]
            for j in range(of.shape[1]):
                bins[of[row, j]] -= weight[row]
    size[0] -= people
    size[1] -= wrongs


@inner
def _narrow(
    line: Whole,
    a: int,
    kind: int,
    code: int,
    base: Ints,
    ups: Ints,
    ends: Ints,
    side: Side,
    p: _Places,
    weight: Ints,
    s: _RowsLeft,
) -> None:
    """Take out the rows that do not meet a condition; none lies beyond the `ends`."""
    here, middle, begin, of, rows = base[a], base[a] + ups[a], p.at, p.of, p.rows
    inside, wrong, bins, size = s.inside[line], s.wrong[line], s.bins[line], s.size[line]
    if kind != IN:
        start, stop = here + code + 1, here + ends[a, 0] + 1
        if kind == DOWN:
            start, stop = middle + ends[a, 1], middle + code
        _remove(begin[start], begin[stop], of, rows, weight, inside, wrong, bins, size)
        return
    first, at, sets = side.first, side.at, side.sets
    for v in range(first[a + 1] - first[a]):
        if not contains(sets, at[first[a] + v], at[first[a] + v + 1], code):
            _remove(begin[here + v], begin[here + v + 1], of, rows, weight, inside, wrong, bins, size)


@inner
def _move_ends(ordered: Bools, base: Ints, ups: Ints, bins: Ints, ends: Ints) -> None:
    """Move the outermost ranks of each ordered attribute, (upper, lower), inwards to where rows are left."""
    last = bins.shape[0] - 1  # those possibly inside, or those inside where nothing is possible
    for a in range(len(ordered)):
        if ordered[a]:
            here, middle = base[a], base[a] + ups[a]
            while bins[COV, here + ends[a, 0]] == 0 and bins[last, here + ends[a, 0]] == 0:
                ends[a, 0] -= 1
            while bins[COV, middle + ends[a, 1]] == 0 and bins[last, middle + ends[a, 1]] == 0:
                ends[a, 1] += 1


@inner
def _count_goal(ordered: Bools, base: Ints, first: Ints, at: Ints, sets: Codes, bins: Ints, hits: Ints) -> None:
    """How much of the goal each value set covers."""
    for a in range(len(ordered)):
        if ordered[a]:
            continue
        here, own = base[a], first[a]
        for i in range(here, base[a + 1]):
            hits[i] = 0
        for v in range(first[a + 1] - own):
            people = bins[GOAL, here + v]
            if people > 0:
                for i in range(at[own + v], at[own + v + 1]):
                    hits[here + sets[i]] += people


@inner
def _all_meet(line: Whole, bins: Ints, here: int, own: int, end: int, at: Ints, sets: Codes, code: int) -> bool:
    """Whether one of an attribute's value sets covers (or may cover) all rows that are left."""
    for v in range(end - own):
        if bins[line, here + v] > 0 and not contains(sets, at[own + v], at[own + v + 1], code):
            return False
    return True


@inner
def _choose(
    goal_size: int,
    ordered: Bools,
    base: Ints,
    ups: Ints,
    scales: Ints,
    bins: Ints,
    ends: Ints,
    hits: Ints,
    idle: Bools,
    first: Ints,
    at_sure: Ints,
    sets: Codes,
    may: Side | None,
) -> tuple[int, int, int]:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first.

    A candidate covers part of the goal and shrinks what the rule covers or may cover. A value set that does not is
    `idle` from then on.
    """
    best_a, best_kind, best_code = -1, -1, -1
    most, most_held, most_total = 0, 0, 0
    cov, pos = np.int64(COV), np.int64(POS)
    for a in range(len(ordered)):
        here, middle, end = base[a], base[a] + ups[a], base[a + 1]
        for i in range(2 if ordered[a] else end - here):
            kind, at = IN, here + i
            if ordered[a]:
                kind = UP if i == 0 else DOWN
                edge = here + ends[a, 0] if i == 0 else middle + ends[a, 1]
                if edge == (here if i == 0 else end - 1):
                    continue
                at = scales[TIGHTEST, edge - 1 if i == 0 else edge + 1]
                goal = goal_size - bins[GOAL, edge]
            else:
                goal = hits[at]
                if idle[at]:
                    continue
            if goal == 0 or goal < most:
                continue
            held, total = scales[HELD, at], -scales[TOTAL, at]
            if goal == most and (held < most_held or (held == most_held and total <= most_total)):
                continue
            if not ordered[a]:
                own, stop = first[a], first[a + 1]
                idle[at] = _all_meet(cov, bins, here, own, stop, at_sure, sets, at - here)
                if may is not None and idle[at]:
                    idle[at] = _all_meet(pos, bins, here, own, stop, may.at, may.sets, at - here)
                if idle[at]:
                    continue
            most, most_held, most_total = goal, held, total
            best_a, best_kind, best_code = a, kind, at - (middle if kind == DOWN else here)
    return best_a, best_kind, best_code


@kernel
def _grow(
    base: Ints,
    ups: Ints,
    scales: Ints,
    weight: Ints,
    s: _RowsLeft,
    sure: Side,
    places: _Places,
    may: Side | None,
    may_places: _Places | None,
    chosen: Ints,
) -> int:
    """Conditions that together leave no wrong row inside or possibly inside: their number, filled into `chosen`.

    Rows of the goal that are left stay in `s`. -1 where the rows that are left cannot be told from others, and the
    negative of the room needed where `chosen` is too short.
    """
    m, size, bins = len(ups), s.size, s.bins
    ordered, first, at, sets = sure.ordered, sure.first, sure.at, sure.sets
    ends = np.zeros((m, 2), np.int64)
    for a in range(m):
        ends[a, 0] = ups[a] - 1
    hits, idle = np.zeros(base[m], np.int64), np.zeros(base[m], np.bool_)
    n, counted = 0, 0
    last = size.shape[0] - 1
    goal, cov, pos = np.int64(GOAL), np.int64(COV), np.int64(POS)
    while n == 0 or size[COV, 1] > 0 or size[last, 1] > 0:
        if size[GOAL, 0] != counted:
            _count_goal(ordered, base, first, at, sets, bins, hits)
            counted = size[GOAL, 0]
        _move_ends(ordered, base, ups, bins, ends)
        a, kind, code = _choose(
            size[GOAL, 0], ordered, base, ups, scales, bins, ends, hits, idle, first, at, sets, may
        )  # fmt: skip
        if a < 0:
            return -1
        if n == len(chosen):
            return -2 * n
        chosen[n, 0], chosen[n, 1], chosen[n, 2] = a, kind, code
        n += 1
        _narrow(goal, a, kind, code, base, ups, ends, sure, places, weight, s)
        _narrow(cov, a, kind, code, base, ups, ends, sure, places, weight, s)
        if may is not None and may_places is not None:
            _narrow(pos, a, kind, code, base, ups, ends, may, may_places, weight, s)
    return n


def _drop_wider(conditions: Ints) -> Ints:
    """The conditions without cuts that a later and therefore tighter one of the same side makes idle."""
    used = conditions[:, 1] == IN
    cuts = np.flatnonzero(~used)[::-1]
    _, last = np.unique(2 * conditions[cuts, 0] + conditions[cuts, 1], return_index=True)
    used[cuts[last]] = True
    kept: Ints = conditions[used]
    return kept


def _shorten(sure: Side, may: Side | None, conditions: Ints, outside: Ints, bads: Ints) -> Ints:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    used = np.ones(len(conditions), np.bool_)
    room = np.empty(max(len(outside), len(bads)), np.bool_)
    for c in range(len(conditions)):
        used[c] = False
        lets_in = mark_meeting(sure, conditions, used, outside, room, True) > 0
        if may is not None and not lets_in:
            lets_in = mark_meeting(may, conditions, used, bads, room, True) > 0
        used[c] = lets_in or not used.any()
    return conditions[used]


def induce(t: Coded, goal: Bools, inside: Bools, bad: Bools) -> tuple[Ints, Ints]:
    """MLEM2: rules that together cover `goal`, each within `inside` and without overlap with `bad`.

    Returns where the conditions of each rule start, and the conditions (attribute, kind, code).
    """
    w, sure, everyone = weigh_conditions(t, inside), sure_side(t), np.ones(len(goal), np.bool_)
    may = may_side(t) if bad.any() else None
    places = _list_places(sure, w)
    may_places = None if may is None else _list_places(may, w)
    lists = [places, places] if may_places is None else [places, places, may_places]
    left = _count_left(
        lists,
        t.weight,
        np.array([goal, everyone, everyone][: len(lists)]),
        np.array([~everyone, ~inside, bad][: len(lists)]),
    )
    outside, bads = np.flatnonzero(~inside), np.flatnonzero(bad)
    open_, found, sizes = goal.copy(), [np.zeros((0, 3), np.int64)], [0]
    chosen = np.empty((8, 3), np.int64)
    while open_.any():
        s = left.copied()
        n = _grow(w.base, w.ups, w.of, t.weight, s, sure, places, may, may_places, chosen)
        if n < -1:
            chosen = np.empty((-n, 3), np.int64)
            continue
        done = np.flatnonzero(s.inside[GOAL])
        if n > 0:  # otherwise no conditions tell these rows from those outside
            conditions = _shorten(sure, may, _drop_wider(chosen[:n]), outside, bads)
            found.append(conditions)
            sizes.append(len(conditions))
            done = keep_inside(sure, conditions, np.flatnonzero(open_))
        open_[done] = left.inside[GOAL, done] = False
        left.size[GOAL, 0] -= t.weight[done].sum()
        people = np.repeat(t.weight[done], places.of.shape[1])
        np.subtract.at(left.bins[GOAL], places.of[done].ravel(), people)
    return np.cumsum(sizes), np.concatenate(found)
