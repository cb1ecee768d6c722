"""Answers from regions around single rows: the owner's region as it is, and only the cells that must move are shown.

A projected answer is a function of the query, the model, public constraints and the neighbours with their regions, as
the search without a reward would release them. No region depends on the query, so all answers about one owner intersect
to at least that owner's region.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.askers import Askers, Moves, Reachable
from countervail.protect.cfk.moves.offers import Offers
from countervail.protect.cfk.moves.sets import Trials
from countervail.protect.cfk.space import Boxes

if TYPE_CHECKING:
    from countervail.protect.cfk.region_search import RegionSearch


class OwnedRegions:
    """The region of each training row that was asked about, solved once; `pureness` is NaN where there is none."""

    def __init__(self, search: RegionSearch) -> None:
        self._search = search
        self._boxes: dict[int, Boxes] = {}
        self._pureness: dict[int, float] = {}
        self._last: tuple[list[int], Regions] = ([], search.space_.regions(search.space_.no_boxes(0)))

    def solve(self, rows: Ints) -> Floats:
        """How pure the region of each row is."""
        if len(fresh := np.array([r for r in np.unique(rows) if r not in self._pureness], dtype=np.int64)):
            solved = self._search.solve_rows(self._search.rows_[fresh])
            for i, row in enumerate(fresh.tolist()):
                self._boxes[row] = solved.boxes.take(np.array([i]))
                self._pureness[row] = float(solved.pureness[i]) if solved.found[i] else np.nan
        return np.array([self._pureness[r] for r in rows.tolist()])

    def regions(self, rows: Ints) -> Regions:
        """The regions of rows that have one."""
        if self._last[0] != (wanted := rows.tolist()):
            self._last = (wanted, self._search.space_.regions(self._joined(wanted)))
        return self._last[1]

    def offers(self, rows: Ints) -> Offers:
        """Rows that have a region as candidates."""
        search, space, nobody = self._search, self._search.space_, np.zeros(0, dtype=np.int64)
        private = search.rows_[rows].copy()
        private[:, space.columns] = 0.0
        widths, candidates = space.widths(self._joined(rows.tolist())), (np.arange(len(rows)), private)
        pool, steps = (nobody, private[:0]), search.settings_.amounts == "round"
        given = (search.encoder_, search.heom_, self.regions(rows), widths, space.values)
        return Offers.of(*given, candidates, pool, steps=steps)

    def _joined(self, rows: list[int]) -> Boxes:
        boxes = [self._boxes[r] for r in rows]
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
        (wave,) = waves
        at = at[self._ranks[at, wave] >= 0]
        pureness = self._owned.solve(self._ranks[at, wave])
        at, pureness = at[~np.isnan(pureness)], pureness[~np.isnan(pureness)]
        rows, which = np.unique(self._ranks[at, wave], return_inverse=True)
        if not len(rows):
            return at, at, None
        within = Reachable(self._owned.offers(rows), self._allowed)
        askers = Askers(within, self._encoder, self._x[at], self._blocked[at])
        moves = askers.moves(np.arange(len(at)), which.reshape(-1, 1))
        behind = self._ranks[at, wave][:, None]
        return at, np.full(len(at), wave), replace(moves, behind=behind, least=pureness)


def way_left(moves: Moves, trials: Trials, points: Matrix) -> Floats:
    """How far sets of moves are from their neighbour still."""
    left: Floats = moves.step[trials.query, trials.place].sum(axis=1)
    return left - moves.add_up(trials.query, trials.place, trials.moved)[0]
