"""Answers that move as few features as possible: waves of near candidates, and further answers that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Protocol

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.region import Regions
from countervail.explain.answering import Answers
from countervail.protect.cfk.base import SAMPLED
from countervail.protect.cfk.moves.amounts import Rounding, shown_names
from countervail.protect.cfk.moves.askers import CANDIDATES, Askers, Moves
from countervail.protect.cfk.moves.kernels import pool_distances
from countervail.protect.cfk.moves.offers import Offers
from countervail.protect.cfk.moves.sets import AskedModel, Earlier, Nearness, SetSearch, Trials, Weights

_GAPS: Final = 1 << 24  # entries of value x region worked on at once
LONG: Final = 3  # more changes than this are hard to act on: farther candidates may offer an answer with fewer
ROOM: Final = 1 << 22  # entries of asker x candidate x feature worked on at once
_TOGETHER: Final = 256  # askers with all their candidates in memory
_ONCE: Final = 64  # so few values are not worth to be looked through for equal ones


class PoolNearness:
    """How far points are from the anonymised table, eligible or not: distinct pairs of a region and a vector."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._private = offers.plain(offers.pool_private, np.arange(len(offers.scale)))
        self._scale = np.where(offers.quasi, -1.0, offers.steps)
        self._reach = np.sum(offers.packed.width, axis=0)

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
        every = np.concatenate([x, points])
        both = self._offers.plain(every, np.arange(x.shape[1]))
        which, values, rows, one_by_one = [], [], 0, np.arange(len(every))
        for c, column in enumerate(self._offers.packed.columns.tolist()):
            asked, place = every[:, column], one_by_one
            if len(every) > _ONCE:
                asked, place = np.unique(asked, return_inverse=True)
            both[:, column] = place + rows
            which.append(np.full(len(asked), c))
            values.append(asked)
            rows += len(asked)
        out: Floats = pool_distances(
            starts,
            both[: len(x)],
            both[len(x) :],
            np.ascontiguousarray(moved),
            self._offers.packed.look(np.concatenate(which), np.concatenate(values))[0],
            self._reach,
            self._offers.pool_group,
            self._private,
            self._scale,
        )
        return out


@dataclass(frozen=True, eq=False, slots=True)
class MovesFound:
    """The answers to queries: the candidate behind each (-1: none), moved features, their names before and after
    amounts were rounded, the row nearest to the query, the share of combinations that hold, whether that was sampled,
    and the wave of candidates that it took."""

    behind: Ints
    moved: Bools
    names: Ints
    shown: Ints
    rows: Matrix
    share: Floats
    drawn: Bools
    wave: Ints

    @classmethod
    def nothing(cls, x: Matrix) -> MovesFound:
        """No answers yet."""
        n, moved, names = len(x), np.zeros(x.shape, dtype=bool), np.zeros(x.shape, dtype=np.int64)
        nobody = np.full(n, -1, dtype=np.int64)
        unknown, no = np.full(n, np.nan), np.zeros(n, dtype=bool)
        return cls(nobody, moved, names, names.copy(), x.copy(), unknown, no, nobody.copy())

    @classmethod
    def joined(cls, parts: Sequence[MovesFound]) -> MovesFound:
        """Several batches as one."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(p, field.name) for p in parts]) for field in fields(cls)))

    @classmethod
    def side_by_side(cls, answers: Sequence[MovesFound]) -> MovesFound:
        """Several answers to each query, one below the other."""
        if len(answers) == 1:
            return answers[0]
        stacked = (np.stack([getattr(a, field.name) for a in answers], axis=1) for field in fields(cls))
        return cls(*(part.reshape(-1, *part.shape[2:]) for part in stacked))

    def parted(self, ends: Ints) -> list[MovesFound]:
        """Batches that were put together, one by one."""
        return [MovesFound(*part) for part in zip(*(np.split(getattr(self, f.name), ends) for f in fields(self)))]

    def put(self, at: Ints, searched: SetSearch, wave: Ints) -> None:
        """Write what a search found for the queries `at`."""
        some = np.flatnonzero(searched.place >= 0)
        moves, place, moved, rows = searched.moves, searched.place[some], searched.moved[some], at[some]
        self.behind[rows], self.moved[rows], self.wave[rows] = moves.behind[some, place], moved, wave[some]
        self.names[rows] = np.where(moved, moves.name[some, place], 0)
        self.shown[rows] = shown_names(searched, some, searched.rows[some])
        self.rows[rows] = searched.rows[some]
        self.share[rows], self.drawn[rows] = searched.share[some], searched.drawn[some]


class Source(Protocol):
    """Where a batch of askers finds candidates, wave after wave."""

    def near(self, at: Ints, waves: range) -> tuple[Ints, Ints, Moves | None]:
        """Those of the askers who have candidates in these waves, asker by asker, with the wave of each entry, and what
        they may move towards them (None: nobody)."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class MoveSearch:
    """Waves of candidates until every asker is served; then other answers, with what is moved already blocked."""

    model: AskedModel
    weights: Weights
    nearness: Nearness
    cell_budget: int
    waves: int
    rounding: Rounding | None = None  # of amounts; None leaves the candidates' own
    together: int = 1  # waves after the first that share their model calls; the nearest one that serves counts
    farther: bool = False  # whether those whom no wave served are sent to all candidates

    def find(
        self, x: Matrix, source: Callable[[Bools], Source], n: int = 1, wide: Callable[[Bools], Source] | None = None
    ) -> list[MovesFound]:
        """The best answer to each query, and up to n - 1 others: with other features if that can be, else with other
        sets of features, else with other values. `source` is given what must not move (query x feature); `wide` has
        all candidates in its first wave, for those who would have to change much."""
        free, found = np.zeros(x.shape, dtype=bool), [MovesFound.nothing(x) for _ in range(n)]
        plain, everybody = source(free), np.ones(len(x), dtype=bool)
        self._search(plain, found[0], Earlier(found[0].names[None][:0]), everybody, self.waves)
        if isinstance(plain, Askers) and self.farther:
            self._search_far(plain, found[0])
        if wide is not None:
            self._shorten(wide, found[0])
        for r in range(1, n):
            served = found[r - 1].behind >= 0
            if not served.any():
                break
            given = np.stack([names for f in found[:r] for names in (f.names, f.shown)])
            apart = source((given != 0).any(axis=0))
            self._search(apart, found[r], Earlier(given), served, 1)
            self._search(plain, found[r], Earlier(given, features=True), served, 1)
            self._search(plain, found[r], Earlier(given), served, self.waves)
        return found

    def _search(self, source: Source, found: MovesFound, earlier: Earlier, among: Bools, waves: int) -> None:
        """The nearest candidates, then the next ones for those whom these did not help."""
        for some in (range(1), *(range(a, min(a + self.together, waves)) for a in range(1, waves, self.together))):
            open_ = np.flatnonzero(among & (found.behind < 0))
            self.model.again |= some.start > 0
            step = max(1, ROOM // (len(some) * CANDIDATES * found.moved.shape[1]))
            for a in range(0, len(open_), step):
                at, wave, moves = source.near(open_[a : a + step], some)
                if moves is not None and len(at):
                    mine = Earlier(earlier.names[:, at], earlier.features)
                    found.put(at, self._best(moves, mine, whose=at), wave)

    def _search_far(self, source: Askers, found: MovesFound) -> None:
        """For those whom the waves did not help: of all candidates, those with which all moves together are enough."""
        open_ = np.flatnonzero(found.behind < 0)
        if source.looked_through(self.waves) or not len(open_):
            return
        self.model.again = True
        each = [source.whole(i) for i in open_.tolist()]
        good = self.model.accepts_points(np.concatenate([points for _, points in each]))
        ends = np.cumsum([len(of) for of, _ in each])[:-1]
        near = np.full((len(open_), source.step), -1, dtype=np.int64)
        for i, ((of, _), fine) in enumerate(zip(each, np.split(good, ends))):
            some = of[fine][: source.step]
            near[i, : len(some)] = some
        served = near[:, 0] >= 0
        if served.any():
            at = open_[served]
            best = self._best(source.moves(at, near[served]), Earlier(found.names[None, at][:0]))
            found.put(at, best, np.full(len(at), self.waves))

    def _shorten(self, wide: Callable[[Bools], Source], found: MovesFound) -> None:
        """Fewer moves, of all candidates, for those who would have to make many."""
        size = found.moved.sum(axis=1)
        long = np.flatnonzero((found.behind >= 0) & (size > LONG))
        if not len(long):
            return
        source = wide(np.zeros(found.moved.shape, dtype=bool))
        for some in np.split(long, range(_TOGETHER, len(long), _TOGETHER)):
            at, wave, moves = source.near(some, range(1))
            if moves is not None and len(at):
                found.put(at, self._best(moves, Earlier(found.names[None, at][:0]), size[at]), wave + 1)

    def _best(self, moves: Moves, earlier: Earlier, below: Ints | None = None, whose: Ints | None = None) -> SetSearch:
        """The best set of each entry; with `whose`, of the first entry of each asker that has one."""
        search = SetSearch(moves, self.model, self.weights, self.nearness, self.cell_budget, earlier, below)
        search.run()
        if whose is not None:
            served = np.flatnonzero(search.place >= 0)
            first = served[np.unique(whose[served], return_index=True)[1]]
            search.place[np.setdiff1d(served, first)] = -1
        if self.rounding is not None:
            self.rounding.settle(search)
        return search


def moved_answers(
    nothing: Answers, found: MovesFound, model: AskedModel, encoder: Encoder, regions: Regions, passed_over: str = ""
) -> Answers:
    """What was found as answers; `regions` lie behind those found, and `passed_over` is said of later waves."""
    at = np.flatnonzero(found.behind >= 0)
    if not len(at):
        return nothing
    rows, moved = found.rows[at], found.moved[at]
    after = model.decisions(rows)
    said = [(passed_over * bool(wave), SAMPLED * bool(drawn)) for wave, drawn in zip(found.wave[at], found.drawn[at])]
    notes = [" ".join(word for word in words if word) for words in said]
    shown, yes = partial(shown_cells, encoder, rows, moved, regions), np.ones(len(at), dtype=bool)
    part = Answers(rows, after, yes, None, found.share[at], notes, shown, ~moved, found.behind[at])
    return nothing.filled(at, part)


def whole_cells(encoder: Encoder, rows: Matrix, regions: Regions) -> pd.DataFrame:
    """Rows as people see them: a region's cells in the place of all quasi-identifiers."""
    return regions.shown_in(encoder.decode(rows))


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
