"""A batch of askers: which candidates are near them, and what each may move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.core.encode import Encoder
from countervail.protect.cfk.groups.candidates import combine
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.kernels import add_up, nearest_offers
from countervail.protect.cfk.moves.offers import Offers, named

CANDIDATES: Final = 64  # looked at together
WAVES: Final = 10  # of candidates, for those whom the nearer ones did not help
VAGUE: Final = 8.0  # what a cell leaves open counts so many times the way to it: it helps nobody to act


@dataclass(frozen=True, eq=False, slots=True)
class Moves:
    """What askers may move: arrays are asker x candidate x feature, candidates nearest first (-1: none).

    `goal` is the private value, or the value of the cell nearest to hers; `step` what the move costs: the way to the
    goal, and `VAGUE` times how far the cell reaches; `many` how many values the cell has; equal moves share a `name`.
    `must` (asker x feature): her own value is not allowed. `behind` (asker x candidate) is what the candidate is
    known by outside, `least` (asker) the share of combinations that must hold, and `most` (asker) how many features may
    move.
    """

    offers: Offers
    x: Matrix
    candidate: Ints
    may: Bools
    goal: Floats
    step: Floats
    many: Ints
    name: Ints
    must: Bools
    behind: Ints
    least: Floats
    most: Ints

    @classmethod
    def joined(cls, parts: Sequence[Moves]) -> Moves:
        """Those of several askers, one below the other, towards the same offers."""
        if len(parts) == 1:
            return parts[0]
        each = [f.name for f in fields(cls) if f.name != "offers"]
        return cls(parts[0].offers, *(np.concatenate([getattr(p, name) for p in parts]) for name in each))

    def points(self, query: Ints, place: Ints, moved: Bools) -> Matrix:
        """Sets of moves with the nearest value of every moved cell."""
        return np.where(moved, self.goal[query, place], self.x[query])

    def add_up(self, query: Ints, place: Ints, moved: Bools) -> tuple[Floats, Ints]:
        """What sets of moves cost, and one name for each of them."""
        summed: tuple[Floats, Ints] = add_up(query, place, np.ascontiguousarray(moved), self.step, self.name)
        return summed

    def wide(self, query: Ints, place: Ints, moved: Bools) -> Bools:
        """Which sets of moves stand for more than one combination."""
        return np.asarray((moved & (self.many[query, place] > 1)).any(axis=1))

    def cells(self, query: int, place: int, moved: Bools, budget: int) -> tuple[Matrix, bool]:
        """Every combination of the moved cells, or a fixed sample where there are too many."""
        row = np.where(moved, self.goal[query, place], self.x[query])
        wide = [c for c in self.offers.cells if moved[c.column] and self.many[query, place, c.column] > 1]
        if not wide:
            return row[None], False
        g = int(self.offers.group[self.candidate[query, place]])
        options = [c.options[c.number[g]] for c in wide]
        one = len(options) == 1 and len(options[0]) <= budget
        combined, drawn = (options[0][:, None], False) if one else combine(options, budget)
        out = np.repeat(row[None], len(combined), axis=0)
        out[:, [c.column for c in wide]] = combined
        return out, drawn


@dataclass(frozen=True, eq=False, slots=True)
class LimitedColumn:
    """A column that may move to some values only: which move each candidate offers, and the values of each move."""

    column: int
    number: Ints
    values: Floats
    starts: Ints
    region: Ints | None  # a region with the cell of each move, where moves are cells

    @classmethod
    def of(cls, offers: Offers, j: int) -> LimitedColumn:
        """Equal values or cells are one move."""
        cells = next((c for c in offers.cells if c.column == j), None)
        if cells is None:
            values, number = np.unique(offers.private[:, j], return_inverse=True)
            return cls(j, number.astype(np.int64), values, np.arange(len(values)), None)
        starts = np.cumsum([0, *(len(o) for o in cells.options)])[:-1]
        region = np.unique(cells.number, return_index=True)[1]
        return cls(j, cells.number[offers.group], np.concatenate(cells.options), starts, region)


class Reachable:
    """Candidates laid out for the search, once for all askers; `allowed` says what may move at all, and `least` is the
    share of combinations that must keep the decision. `like` has the same offers, and perhaps columns with limits."""

    def __init__(self, offers: Offers, allowed: Allowed, least: float = 1.0, like: Reachable | None = None) -> None:
        self.offers, self.allowed, self.least = offers, allowed, least
        known: dict[int, LimitedColumn] = {} if like is None else {limit.column: limit for limit in like.limits}
        self.limits: list[LimitedColumn] = [
            known.get(j) or LimitedColumn.of(offers, j) for j in allowed.limited.tolist()
        ]
        self.columns = np.flatnonzero(~offers.quasi & ~allowed.fixed)
        # What stays as it is, tells nobody apart: of candidates that offer the same, the first one.
        self.kept = np.arange(len(offers.group))
        if len(offers.names) and allowed.fixed.any():
            self.kept = np.sort(np.unique(offers.names[:, ~allowed.fixed].sum(axis=1), return_index=True)[1])
        self.group = offers.group[self.kept]
        self.private = offers.plain(offers.private[self.kept], self.columns)
        self.scale = offers.steps[self.columns]
        self.limited = np.isin(np.arange(len(offers.quasi)), allowed.limited)
        self.counts = ~allowed.fixed[offers.packed.columns]  # what stays as it is, is no way to go
        ends = np.cumsum([0, *(len(limit.starts) for limit in self.limits)])
        slots = [limit.number[self.kept] + start for limit, start in zip(self.limits, ends)]
        self.slot = np.stack(slots, axis=1) if slots else np.zeros((len(self.kept), 0), dtype=np.int64)


class Askers:
    """Queries in codes; what is `blocked` (asker x feature) does not move this time. A wave has `step` candidates."""

    def __init__(self, within: Reachable, encoder: Encoder, x: Matrix, blocked: Bools, step: int = CANDIDATES) -> None:
        allowed, self.step = within.allowed, step
        self.within, self.x, self.must = within, x, allowed.must(encoder, x)
        self.closed = allowed.fixed[None] | (blocked & ~self.must)
        self.away, self.outside = within.offers.packed.ask(x)
        self.offered = [self._offered(encoder, limit) for limit in within.limits]

    def near(self, at: Ints, waves: range) -> tuple[Ints, Ints, Moves]:
        """The next nearest candidates of some askers, and what these may move; asker by asker, wave by wave."""
        return self._by_wave(at, waves, self._ranked(at, self.step * waves.stop)[:, self.step * waves.start :])

    def looked_through(self, waves: int) -> bool:
        """Whether so many waves hold every candidate."""
        return len(self.within.kept) <= self.step * waves

    def _ranked(self, at: Ints, n: int) -> Ints:
        """Asker x rank: the first candidates of some askers (-1: none left)."""
        return self.nearest(at, n)

    def _by_wave(self, at: Ints, waves: range, found: Ints) -> tuple[Ints, Ints, Moves]:
        whose, wave = np.repeat(at, len(waves)), np.tile(np.array(waves, dtype=np.int64), len(at))
        apart = found.reshape(len(whose), self.step)
        some = np.flatnonzero(apart[:, 0] >= 0)
        return whose[some], wave[some], self.moves(whose[some], apart[some])

    def nearest(self, rows: Ints, n: int) -> Ints:
        """Asker x rank: the nearest candidates that have something to offer; fixed columns count for nothing."""
        within, columns = self.within, self.within.columns
        free, quasi = ~(self.closed | within.limited), within.offers.packed.columns
        gap, apart = within.offers.packed.reach(rows, self.away, self.outside, within.counts, free[:, quasi])
        offered = [o[rows] for o in self.offered]
        found: Ints = nearest_offers(
            gap,
            apart,
            within.offers.plain(self.x[rows], columns),
            free[rows[:, None], columns],
            within.group,
            within.private,
            within.scale,
            np.concatenate(offered, axis=1) if offered else np.zeros((len(rows), 0), dtype=bool),
            within.slot,
            np.ascontiguousarray(self.must[rows][:, within.allowed.limited]),
            n,
        )
        found[(self.must[rows] & within.allowed.fixed).any(axis=1)] = -1
        some = found >= 0
        found[some] = within.kept[found[some]]
        return found

    def whole(self, i: int) -> tuple[Ints, Matrix]:
        """All candidates that offer asker `i` what she must move, and her row with all of their moves made; the
        shortest way first, equal rows once."""
        every = self.moves(np.array([i]), self.within.kept[None])
        may = every.may[0]
        some = np.flatnonzero(may.any(axis=1) & (may | ~self.must[i]).all(axis=1))
        some = some[np.argsort((every.step[0, some] * may[some]).sum(axis=1), kind="stable")]
        some = some[np.sort(np.unique((every.name[0, some] * may[some]).sum(axis=1), return_index=True)[1])]
        return self.within.kept[some], every.points(np.zeros(len(some), dtype=np.int64), some, may[some])

    def moves(self, rows: Ints, candidate: Ints) -> Moves:
        """What some askers may move towards these candidates."""
        offers, x = self.within.offers, self.x[rows]
        may, goal, step, many, content = offers.moves(rows, self.x, candidate, self.away, self.outside, VAGUE)
        query, at = np.asarray(rows)[:, None], np.maximum(candidate, 0)
        for limit, ok in zip(self.within.limits, self.offered):
            may[:, :, limit.column] &= ok[query, limit.number[at]]
        may &= ~self.closed[rows][:, None]
        step *= self.within.allowed.weights
        least, most = np.full(len(rows), self.within.least), np.full(len(rows), self.within.allowed.most)
        name = named(content)
        return Moves(offers, x, candidate, may, goal, step, many, name, self.must[rows], candidate, least, most)

    def _offered(self, encoder: Encoder, limit: LimitedColumn) -> Bools:
        """Query x move of a limited column: whether it is a move, and may be made with every value of its cell."""
        j = limit.column
        offers, may_become = self.within.offers, self.within.allowed.may_become
        known, which = np.unique(limit.values, return_inverse=True)
        fine = may_become(encoder, self.x, j, known[None])[:, which]
        every: Bools = np.logical_and.reduceat(fine, limit.starts, axis=1)
        if limit.region is None:
            goals = limit.values[None]
            if offers.least[j]:
                goals = offers.goals(j, self.x[:, j], limit.values)
                every = every & may_become(encoder, self.x, j, goals)
            differs = unlike(self.x[:, j, None], goals)
        else:
            place = [c.column for c in offers.cells].index(j)
            differs = self.outside[:, place, limit.region]
        return np.asarray(every & differs & ~self.closed[:, j, None])


class JoinedAskers:
    """Askers of several kinds, one below the other."""

    def __init__(self, parts: Sequence[Askers]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(len(p.x) for p in parts)])

    def near(self, at: Ints, waves: range) -> tuple[Ints, Ints, Moves]:
        """As each part has it."""
        which = np.searchsorted(self._starts, at, side="right") - 1
        found = [(i, self._parts[i].near(at[which == i] - self._starts[i], waves)) for i in np.unique(which).tolist()]
        whose = np.concatenate([own + self._starts[i] for i, (own, _, _) in found])
        return whose, np.concatenate([wave for _, (_, wave, _) in found]), Moves.joined([m for _, (_, _, m) in found])
