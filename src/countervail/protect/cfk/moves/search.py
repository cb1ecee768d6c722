"""Answers that move as few features as possible: waves of near candidates, and further answers that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.askers import Askers, Moves, Reachable
from countervail.protect.cfk.moves.kernels import pool_distances
from countervail.protect.cfk.moves.offers import Offers
from countervail.protect.cfk.moves.sets import AskedModel, Earlier, SetSearch, Trials, Weights

CANDIDATES: Final = 50  # looked at together
WAVES: Final = 10  # of candidates, for those whom the nearer ones did not help
_ROOM: Final = 1 << 22  # entries of asker x candidate x feature worked on at once
_GAPS: Final = 1 << 24  # entries of value x region worked on at once


class PoolNearness:
    """How far points are from the anonymised table, eligible or not: distinct pairs of a region and a vector."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._private = offers.plain(offers.pool_private, np.arange(len(offers.scale)))
        self._scale = np.where(offers.quasi, -1.0, np.where(offers.measured, offers.scale, 0.0))
        self._reach = np.sum([c.width for c in offers.cells], axis=0)

    def __call__(self, moves: Moves, trials: Trials, points: Matrix) -> Floats:
        """The distance of each point; trials run query by query."""
        starts = np.searchsorted(trials.query, np.arange(len(moves.x) + 1))
        step = max(1, _GAPS // max(1, self._offers.regions))
        parts = []
        for a in range(0, len(moves.x), step):
            b = min(a + step, len(moves.x))
            mine = slice(starts[a], starts[b])
            parts.append(self._block(starts[a : b + 1] - starts[a], moves.x[a:b], points[mine], trials.moved[mine]))
        return np.concatenate(parts)

    def _block(self, starts: Ints, x: Matrix, points: Matrix, moved: Bools) -> Floats:
        both = self._offers.plain(np.concatenate([x, points]), np.arange(x.shape[1]))
        gaps, rows = [], 0
        for column in self._offers.cells:
            values, which = np.unique(np.concatenate([x, points])[:, column.column], return_inverse=True)
            both[:, column.column] = which + rows
            gaps.append(column.gap(values))
            rows += len(values)
        out: Floats = pool_distances(
            starts,
            both[: len(x)],
            both[len(x) :],
            np.ascontiguousarray(moved),
            np.concatenate(gaps),
            self._reach,
            self._offers.pool_group,
            self._private,
            self._scale,
        )
        return out


@dataclass(frozen=True, eq=False, slots=True)
class MovesFound:
    """The answers to queries: candidate (-1: none), moved features, the row nearest to the query, how far it holds."""

    candidate: Ints
    moved: Bools
    names: Ints
    rows: Matrix
    share: Floats
    drawn: Bools

    @classmethod
    def nothing(cls, x: Matrix) -> MovesFound:
        """No answers yet."""
        n, moved = len(x), np.zeros(x.shape, dtype=bool)
        candidate, names = np.full(n, -1, dtype=np.int64), np.zeros(x.shape, dtype=np.int64)
        return cls(candidate, moved, names, x.copy(), np.full(n, np.nan), np.zeros(n, dtype=bool))

    @classmethod
    def joined(cls, parts: Sequence[MovesFound]) -> MovesFound:
        """Several batches as one."""
        return cls(*(np.concatenate([getattr(p, field.name) for p in parts]) for field in fields(cls)))

    def put(self, at: Ints, searched: SetSearch) -> None:
        """Write what a search found for the queries `at`."""
        some = np.flatnonzero(searched.place >= 0)
        moves, place, moved, rows = searched.moves, searched.place[some], searched.moved[some], at[some]
        self.candidate[rows], self.moved[rows] = moves.candidate[some, place], moved
        self.names[rows] = np.where(moved, moves.name[some, place], 0)
        self.rows[rows] = moves.points(some, place, moved)
        self.share[rows], self.drawn[rows] = searched.share[some], searched.drawn[some]


class MoveSearch:
    """The nearest candidates of each asker, and the fewest moves towards one of them."""

    def __init__(self, offers: Offers, allowed: Allowed, weights: Weights, cell_budget: int, least: float) -> None:
        self.offers, self._within = offers, Reachable(offers, allowed)
        self._weights, self._cell_budget, self._least = weights, cell_budget, least
        self._nearness = PoolNearness(offers)

    def find(self, model: AskedModel, encoder: Encoder, x: Matrix, n: int = 1) -> list[MovesFound]:
        """The best answer to each query, and up to n - 1 others: with other features if that can be, else with other
        sets of features, else with other values."""
        block = max(1, _ROOM // (CANDIDATES * x.shape[1]))
        parts = [self._block(model, encoder, x[a : a + block], n) for a in range(0, len(x), block)]
        return [MovesFound.joined(answers) for answers in zip(*parts)]

    def _block(self, model: AskedModel, encoder: Encoder, x: Matrix, n: int) -> list[MovesFound]:
        nobody = np.zeros(x.shape, dtype=bool)
        found = [MovesFound.nothing(x) for _ in range(n)]
        self._search(model, Askers(self._within, encoder, x, nobody), found[0], Earlier(found[0].names[None][:0]))
        for r in range(1, n):
            open_ = np.flatnonzero(found[r - 1].candidate >= 0)
            if not len(open_):
                break
            given = np.stack([f.names[open_] for f in found[:r]])
            part = MovesFound.nothing(x[open_])
            apart = Askers(self._within, encoder, x[open_], (given != 0).any(axis=0))
            self._search(model, apart, part, Earlier(given), waves=1)
            again = Askers(self._within, encoder, x[open_], nobody[open_])
            self._search(model, again, part, Earlier(given, features=True), waves=1)
            self._search(model, again, part, Earlier(given))
            for field in fields(MovesFound):
                getattr(found[r], field.name)[open_] = getattr(part, field.name)
        return found

    def _search(
        self, model: AskedModel, askers: Askers, found: MovesFound, earlier: Earlier, waves: int = WAVES
    ) -> None:
        """Look at the nearest candidates, then at the next ones for those whom these did not help."""
        for wave in range(waves):
            open_ = np.flatnonzero(found.candidate < 0)
            if not len(open_):
                return
            near = askers.nearest(open_, CANDIDATES * (wave + 1))[:, CANDIDATES * wave :]
            open_, near = open_[near[:, 0] >= 0], near[near[:, 0] >= 0]
            if not len(open_):
                return
            search = SetSearch(
                askers.moves(open_, near),
                model,
                self._weights,
                self._nearness,
                cell_budget=self._cell_budget,
                least=np.full(len(open_), self._least),
                earlier=Earlier(earlier.names[:, open_], earlier.features),
            )
            found.put(open_, search.run())


def shown_cells(encoder: Encoder, rows: Matrix, moved: Bools, regions: Regions) -> pd.DataFrame:
    """Rows as people see them: a region's whole cell where a quasi-identifier moved, plain values elsewhere."""
    frame = encoder.decode(rows)
    for axis in regions.axes:
        j = encoder.names.index(axis.name)
        cells = frame[axis.name].astype(object).to_numpy().copy()
        for i in np.flatnonzero(moved[:, j]):
            cells[i] = axis.cell(int(i))
        frame[axis.name] = pd.Series(cells, dtype=object)
    return frame
