"""Answers from regions around single rows: the owner's region as it is, and only the cells that must move are shown.

A projected answer is a function of the query, the model, public constraints and the neighbours with their regions, as
the search without a reward would release them. No region depends on the query, so all answers about one owner intersect
to at least that owner's region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.askers import Askers, Moves, Reachable
from countervail.protect.cfk.moves.offers import Offers
from countervail.protect.cfk.moves.sets import Trials
from countervail.protect.cfk.space import Boxes, Space

if TYPE_CHECKING:
    from countervail.protect.cfk.region_search import RegionSearch

_MEMORY: Final = 1 << 26  # bytes, about, of what is known about regions


@dataclass(eq=False, slots=True)
class OwnedRegion:
    """The region of one training row; `pureness` is NaN where there is none. Offers and cells are made when asked."""

    boxes: Boxes
    pureness: float
    offers: Offers | None = None
    regions: Regions | None = None


class KnownRegions:
    """Regions that were solved for earlier queries, for those to come: a region does not depend on who asks.

    Where there is room for no more, it begins anew. A copy or a pickle begins empty.
    """

    def __init__(self, room: int) -> None:
        self._held: dict[int, OwnedRegion] = {}
        self._room = room

    @classmethod
    def of(cls, space: Space) -> Self:
        """Room for as many regions as fit the memory: a mark for each code, and tables for each code of a set."""
        one = space.positions.size + 32 * int(space.sizes[~space.interval].sum()) + 8192
        return cls(max(1, _MEMORY // one))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._room,)

    def get(self, row: int) -> OwnedRegion | None:
        """What is known about a training row."""
        return self._held.get(row)

    def put(self, row: int, owned: OwnedRegion) -> None:
        """Keep it for later queries."""
        if len(self._held) >= self._room:
            self._held = {}
        self._held[row] = owned


class OwnedRegions:
    """The region of each training row that a batch asks about, solved once."""

    def __init__(self, search: RegionSearch) -> None:
        self._search = search
        self._mine: dict[int, OwnedRegion] = {}

    def solve(self, rows: Ints) -> Floats:
        """How pure the region of each row is."""
        wanted = rows.tolist()
        known = self._search.known_
        for row in {*wanted} - {*self._mine}:
            if (held := known.get(row)) is not None:
                self._mine[row] = held
        if fresh := sorted({*wanted} - {*self._mine}):
            solved = self._search.solve_rows(self._search.rows_[fresh])
            for i, row in enumerate(fresh):
                pureness = float(solved.pureness[i]) if solved.found[i] else np.nan
                self._mine[row] = OwnedRegion(solved.boxes.take(np.array([i])), pureness)
                known.put(row, self._mine[row])
        return np.array([self._mine[r].pureness for r in wanted])

    def regions(self, rows: Ints) -> Regions:
        """The regions of rows that have one."""
        if len(rows) != 1:
            return self._search.space_.regions(self._joined(rows))
        one = self._mine[int(rows[0])]
        if one.regions is None:
            one.regions = self._search.space_.regions(one.boxes)
        return one.regions

    def offers(self, rows: Ints) -> Offers:
        """Rows that have a region as candidates."""
        if len(rows) != 1:
            return self._offered(rows)
        one = self._mine[int(rows[0])]
        if one.offers is None:
            one.offers = self._offered(rows)
        return one.offers

    def _offered(self, rows: Ints) -> Offers:
        search, space, nobody = self._search, self._search.space_, np.zeros(0, dtype=np.int64)
        private = search.rows_[rows].copy()
        private[:, space.columns] = 0.0
        widths, candidates = space.widths(self._joined(rows)), (np.arange(len(rows)), private)
        pool, steps = (nobody, private[:0]), search.settings_.amounts == "round"
        given = (search.encoder_, search.heom_, self.regions(rows), widths, space.values)
        return Offers.of(*given, candidates, pool, steps=steps)

    def _joined(self, rows: Ints) -> Boxes:
        boxes = [self._mine[r].boxes for r in rows.tolist()]
        if len(boxes) == 1:
            return boxes[0]
        return Boxes(*(np.concatenate([getattr(b, name) for b in boxes]) for name in ("low", "high", "member")))


class RankedOwners:
    """The neighbours of a batch of askers, rank by rank; what is `blocked` does not move this time."""

    def __init__(
        self, owned: OwnedRegions, allowed: Allowed, encoder: Encoder, x: Matrix, ranks: Ints, blocked: Bools
    ) -> None:
        self._owned, self._allowed, self._encoder = owned, allowed, encoder
        self._x, self._ranks, self._blocked = x, ranks, blocked

    def near(self, at: Ints, waves: range) -> tuple[Ints, Ints, Moves | None]:
        """Those of the askers whose neighbour of this rank has a region, and what they may move towards it."""
        return JoinedOwners(self._owned, [self]).near(at, waves)

    def __len__(self) -> int:
        return len(self._x)

    def ranked(self, at: Ints, wave: int) -> Ints:
        """The neighbour of this rank of some askers (-1: none left)."""
        return np.asarray(self._ranks[at, wave])

    def moves(self, at: Ints, offers: Offers, which: Ints) -> Moves:
        """What some askers may move towards one candidate each."""
        askers = Askers(Reachable(offers, self._allowed), self._encoder, self._x[at], self._blocked[at])
        return askers.moves(np.arange(len(at)), which.reshape(-1, 1))


class JoinedOwners:
    """Askers of several kinds, one below the other: their neighbours' regions are solved together."""

    def __init__(self, owned: OwnedRegions, parts: Sequence[RankedOwners]) -> None:
        self._owned, self._parts = owned, parts
        self._starts = np.cumsum([0, *map(len, parts)])

    def near(self, at: Ints, waves: range) -> tuple[Ints, Ints, Moves | None]:
        """As each part has it."""
        (wave,) = waves
        part = np.searchsorted(self._starts, at, side="right") - 1
        each = [self._parts[i].ranked(at[part == i] - self._starts[i], wave) for i in range(len(self._parts))]
        behind = np.concatenate(each)
        at, part, behind = at[behind >= 0], part[behind >= 0], behind[behind >= 0]
        pureness = self._owned.solve(behind)
        some = ~np.isnan(pureness)
        at, part, behind = at[some], part[some], behind[some]
        rows, which = np.unique(behind, return_inverse=True)
        if not len(rows):
            return at, at, None
        offers = self._owned.offers(rows)
        moves = [
            self._parts[i].moves(at[part == i] - self._starts[i], offers, which[part == i])
            for i in np.unique(part).tolist()
        ]
        joined = replace(Moves.joined(moves), behind=behind[:, None], least=pureness[some])
        return at, np.full(len(at), wave), joined


def way_left(moves: Moves, trials: Trials, points: Matrix) -> Floats:
    """How far sets of moves are from their neighbour still."""
    left: Floats = moves.step[trials.query, trials.place].sum(axis=1)
    return left - moves.add_up(trials.query, trials.place, trials.moved)[0]
