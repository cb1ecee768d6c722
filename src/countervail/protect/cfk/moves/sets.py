"""The fewest features that lead to the desired decision when they are moved towards a candidate.

Everything here is a function of the query, the model, public constraints and the offers, i.e. post-processing of the
k-anonymous table: private vectors permuted within groups change no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any, Final

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.model.decision import Decision
from countervail.protect.cfk.moves.askers import Moves
from countervail.protect.cfk.moves.recall import KnownPoints

_CHUNK: Final = 50_000  # rows of one model call
_SLICE: Final = 2_000  # rows of whole cells asked about per query and round
_BEAM: Final = 32  # best-scoring sets that are extended by one more feature
_WIDE: Final = 128  # the same among all candidates, for those who have an answer and want a shorter one
_SETS: Final = 4_096  # sets of one size and query that are tried without scores
_LITTLE: Final = 4_096  # points that are looked up without a kernel
_APART: Final = np.int64(0x1E3779B97F4A7C15)  # keeps the names of different queries apart
_BLIND: Final = 3  # features of the largest sets that are tried without scores
_SMALL: Final = 0.05  # cost of the largest step that is made for nearness alone
_WORTH: Final = 0.1  # share of the distance to the anonymised table that such a step must take away


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the way to the answer and of its distance to the anonymised table, and features to spare for them;
    then up to so many `further` ones, in small steps, that bring it nearer to the anonymised table."""

    way: float
    near: float
    spare: int
    further: int = 0


REWARDS: Final[dict[str, Weights]] = {
    "sparsity": Weights(1.0, 1.0, 0),
    "proximity": Weights(1.0, 0.0, 1),
    "plausibility": Weights(0.5, 1.0, 1, 5),
    "typical": Weights(0.5, 1.0, 3),
}
# Towards one neighbour only, what is nearer to the asker is farther from the neighbour by as much.
PROJECTED: Final = {**REWARDS, "sparsity": Weights(1.0, 0.0, 0), "plausibility": Weights(0.5, 1.0, 1)}


Ask = Callable[[Matrix], Any]  # one answer for each row


class AskedModel:
    """What the model says about coded rows, asked in pieces that bound memory.

    Farther candidates offer the same moves again, and so does every search under fewer constraints: once `again` is
    set, the model is not asked twice about points.
    """

    def __init__(self, decision: Decision, desired: Bools, encoder: Encoder) -> None:
        self._decision, self._desired, self._encoder = decision, desired, encoder
        self.scored, self.again = decision.has_scores, False
        self._nothing = np.zeros((0, len(desired)))
        self._said: list[tuple[Ask, Matrix, Matrix]] = []
        self._known: dict[Ask, KnownPoints] = {}

    def accepts(self, rows: Matrix) -> Bools:
        """Which rows get the desired decision."""
        parts = [self._desired[self._decision.decide(frame)] for frame in self._frames(rows)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def decisions(self, rows: Matrix) -> Ints:
        """The decisions about rows that were accepted."""
        if self._desired.sum() == 1:
            return np.full(len(rows), self._desired.argmax(), dtype=np.int64)
        return self._decision.decide(self._encoder.decode(rows))

    def accepts_points(self, rows: Matrix) -> Bools:
        """The same for rows that may come again."""
        if self._decision.needs_call:
            return self._recalled(self.accepts, rows)[:, 0] > 0
        return self._recalled(self._both, rows)[:, 1] > 0

    def scores(self, rows: Matrix) -> Floats:
        """How strongly the model leans to the desired decision, for rows that may come again."""
        if self._decision.needs_call:
            return self._recalled(self._lean, rows)[:, 0]
        # These were accepted or not: what was said then is looked up.
        return self._recalled(self._both, rows, told=True)[:, 0]

    def _lean(self, rows: Matrix) -> Floats:
        return self._both(rows)[:, 0]

    def _both(self, rows: Matrix) -> Matrix:
        """How strongly it leans to the desired decision, and whether that is its decision, where scores tell."""
        said = np.concatenate([self._decision.scores(f) for f in self._frames(rows)] or [self._nothing])
        return np.column_stack([said[:, self._desired].sum(axis=1), self._desired[said.argmax(axis=1)]])

    def _recalled(self, ask: Ask, rows: Matrix, *, told: bool = False) -> Matrix:
        if not (self.again or told):
            said = _columns(ask(rows))
            self._said.append((ask, rows, said))
            return said
        if not self.again and (found := self._told(ask, rows)) is not None:
            return found
        for asked, old, answers in self._said:
            self._points(asked, old).tell(old, answers)
        self._said.clear()
        return self._points(ask, rows).recall(rows, lambda fresh: _columns(ask(fresh)))

    def _told(self, ask: Ask, rows: Matrix) -> Matrix | None:
        """What was said already about each row, where that is little; None where there is more, or a row is new."""
        said = [(old, answers) for asked, old, answers in self._said if asked == ask]
        if not len(rows) or sum(len(old) for old, _ in said) > _LITTLE:
            return None
        known = {row.tobytes(): one for old, answers in said for row, one in zip(np.ascontiguousarray(old), answers)}
        found = [known.get(row.tobytes()) for row in np.ascontiguousarray(rows)]
        return None if any(one is None for one in found) else np.array(found)

    def _points(self, ask: Ask, rows: Matrix) -> KnownPoints:
        return self._known.setdefault(ask, KnownPoints(rows.shape[1], 2 if ask == self._both else 1))

    def _frames(self, rows: Matrix) -> Iterator[pd.DataFrame]:
        return (self._encoder.decode(rows[a : a + _CHUNK]) for a in range(0, len(rows), _CHUNK))


def _columns(said: Any) -> Matrix:
    """One row for each answer."""
    answers = np.asarray(said, dtype=float)
    return answers if answers.ndim == 2 else answers[:, None]


@dataclass(frozen=True, eq=False, slots=True)
class Trials:
    """Sets of moves: whose, towards which candidate, and which features; in the order in which ties are settled."""

    query: Ints
    place: Ints
    moved: Bools

    def __len__(self) -> int:
        return len(self.query)

    def take(self, at: Ints | Bools) -> Trials:
        """Some of them."""
        return Trials(self.query[at], self.place[at], self.moved[at])


Nearness = Callable[[Moves, Trials, Matrix], Floats]


@dataclass(frozen=True, eq=False, slots=True)
class Earlier:
    """Answers that were given already (answer x query x feature, named as moves; 0: not moved).

    A set that holds all moves of one of them, or some of these and no others, is no other answer; with `features`,
    neither is one that moves the same features.
    """

    names: Ints
    features: bool = False

    def fresh(self, moves: Moves, trials: Trials) -> Bools:
        """Which sets are other answers."""
        if not len(self.names):
            return np.ones(len(trials), dtype=bool)
        mine = np.where(trials.moved, moves.name[trials.query, trials.place], 0)
        return self.others(trials.query, trials.moved, mine)

    def others(self, query: Ints, moved: Bools, mine: Ints) -> Bools:
        """The same for sets whose moves have these names."""
        out = np.ones(len(query), dtype=bool)
        for given in self.names[:, query]:
            same = given == mine
            out &= ~(same | (given == 0)).all(axis=1) & ~(same | ~moved).all(axis=1)
            if self.features:
                out &= ~((given != 0) == moved).all(axis=1)
        return out


class SetSearch:
    """The best set of moves of each asker of a batch; every model call is about all of them.

    What is found stands in `place` (-1: nothing), `moved`, `rows` (with the nearest value of every moved cell), `share`
    (of combinations that hold) and `drawn` (the share was sampled).
    """

    def __init__(
        self,
        moves: Moves,
        model: AskedModel,
        weights: Weights,
        nearness: Nearness,
        cell_budget: int,
        earlier: Earlier,
        below: Ints | None = None,
    ) -> None:
        self.moves, self.model, self.weights, self.nearness = moves, model, weights, nearness
        self.cell_budget, self.earlier = cell_budget, earlier
        # Whoever has an answer already wants one that moves fewer features than that.
        self.below = np.full(len(moves.x), moves.x.shape[1] + 1) if below is None else below
        # Towards a candidate that does not offer what must move, nothing is moved.
        self.possible = np.asarray(moves.may.any(axis=2) & (moves.may | ~moves.must[:, None]).all(axis=2))
        n = len(moves.x)
        self.key, self.size, self.place = np.full(n, np.inf), np.full(n, -1), np.full(n, -1)
        self.moved, self.share, self.drawn = np.zeros(moves.x.shape, dtype=bool), np.full(n, np.nan), np.zeros(n, bool)
        self.rows = moves.x.copy()

    def run(self) -> SetSearch:
        """By size; then from all moves of a candidate downwards for those whom no size served; then small steps."""
        self._by_size()
        self._give_up()
        for _ in range(self.weights.further):
            if not self._draw_near():
                break
        at = np.flatnonzero(self.place >= 0)
        self.rows[at] = self.moves.points(at, self.place[at], self.moved[at])
        return self

    def combinations(self, query: int, row: Floats) -> Matrix:
        """Every combination of the cells that were moved for a query, with the private values of this row."""
        moves = self.moves
        out = moves.cells(query, int(self.place[query]), self.moved[query], self.cell_budget)[0]
        private = ~moves.offers.quasi
        out[:, private] = row[private]
        return out

    def _by_size(self) -> None:
        """Sets of 0, 1, 2, ... features beyond those that must move, until a pure one is found (and `spare` more)."""
        exhaustive = 1 if self.model.scored else _BLIND
        last = Trials(np.zeros(0, np.int64), np.zeros(0, np.int64), self.moved[:0])
        for size in range(self.moves.x.shape[1] + 1):
            todo = ((self.size < 0) | (size <= self.size + self.weights.spare)) & (size < self.below)
            if not todo.any():
                break
            if size == 0 and not self.moves.must.any():
                continue  # no move at all is no answer
            if size <= exhaustive:
                last = self._all_sets(todo, size)
            elif self.model.scored and len(last):
                last = self._extended(last.take(todo[last.query]))
            else:
                break
            self._take_best(last, size)

    def _all_sets(self, todo: Bools, size: int) -> Trials:
        """All sets of this size, towards the nearest candidates that the budget of sets allows."""
        moves = self.moves
        free, open_ = moves.may & ~moves.must[:, None], self.possible & todo[:, None]
        many = free.sum(axis=2)
        sets = np.array([comb(f, size) for f in range(free.shape[2] + 1)])[many] * open_
        query, place = np.nonzero((sets > 0) & (np.cumsum(sets, axis=1) <= _SETS))
        if size == 1:
            at, column = np.nonzero(free[query, place])
            moved = np.zeros((len(at), free.shape[2]), dtype=bool)
            moved[np.arange(len(at)), column] = True
            return self._once(Trials(query[at], place[at], moved))
        parts = [Trials(query[:0], place[:0], free[:0, 0])]
        for f in np.unique(many[query, place]):
            at = np.flatnonzero(many[query, place] == f)
            columns = np.nonzero(free[query[at], place[at]])[1].reshape(len(at), f)
            chosen = columns[:, _choose(int(f), size)]
            moved = np.zeros((*chosen.shape[:2], free.shape[2]), dtype=bool)
            np.put_along_axis(moved, chosen, True, axis=2)
            each = np.repeat(at, chosen.shape[1])
            parts.append(Trials(query[each], place[each], moved.reshape(-1, free.shape[2])))
        every = Trials(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("query", "place", "moved")))
        order = np.lexsort((every.place, every.query))
        return self._once(every.take(order))

    def _extended(self, last: Trials) -> Trials:
        """The sets whose nearest combination scores best, each with every one more feature."""
        moves = self.moves
        scores = self.model.scores(moves.points(last.query, last.place, last.moved))
        order = np.lexsort((-scores, last.query))
        beam = np.where(self.below > moves.x.shape[1], _BEAM, _WIDE)[last.query[order]]
        top = last.take(order[_ranks(last.query[order]) < beam])
        at, j = np.nonzero(moves.may[top.query, top.place] & ~top.moved)
        wider = top.take(at)
        moved = wider.moved.copy()
        moved[np.arange(len(at)), j] = True
        return self._once(Trials(wider.query, wider.place, moved))

    def _once(self, trials: Trials) -> Trials:
        """Equal moves once, towards the first candidate that offers them; no move at all is no answer."""
        trials = Trials(trials.query, trials.place, trials.moved | self.moves.must[trials.query])
        size = trials.moved.sum(axis=1)
        most = np.minimum(self.moves.most, self.below - 1)[trials.query]
        trials = trials.take(np.flatnonzero((size > 0) & (size <= most)))
        names = self.moves.add_up(trials.query, trials.place, trials.moved)[1]
        apart = names + trials.query * _APART
        return trials.take(np.sort(np.unique(apart, return_index=True)[1]))

    def _take_best(self, trials: Trials, size: int) -> None:
        """Take each query's pure set of least key. First the nearest combination of each is asked about: it is the
        likeliest to fail. Then whole cells, best first."""
        trials = trials.take(self.earlier.fresh(self.moves, trials))
        if not len(trials):
            return
        points = self.moves.points(trials.query, trials.place, trials.moved)
        good = np.flatnonzero(self.model.accepts_points(points))
        trials, points = trials.take(good), points[good]
        key = self.weights.way * self.moves.add_up(trials.query, trials.place, trials.moved)[0]
        if self.weights.near:
            key += self.weights.near * self.nearness(self.moves, trials, points)
        key = np.round(key, 9)  # sums that are equal but for rounding are ties
        order = np.lexsort((key, trials.query))
        order = order[key[order] < self.key[trials.query[order]]]
        key, trials = key[order], trials.take(order)
        wide = self.moves.wide(trials.query, trials.place, trials.moved)
        line: dict[int, list[int]] = {}
        for t in range(len(trials)):
            line.setdefault(int(trials.query[t]), []).append(t)
        while line:
            line = self._settle(trials, key, wide, line, size)

    def _settle(
        self, trials: Trials, key: Floats, wide: Bools, line: dict[int, list[int]], size: int
    ) -> dict[int, list[int]]:
        """One round of whole cells for the best sets of every query; the queries that are still open."""
        batch: list[tuple[int, Matrix, bool]] = []
        for waiting in line.values():
            rows = 0
            while waiting and rows < _SLICE:
                t = waiting.pop(0)
                if not wide[t]:  # its one combination is known to be good
                    batch.append((t, trials.moved[:0].astype(float), False))
                    break
                cells, drawn = self.moves.cells(
                    int(trials.query[t]), int(trials.place[t]), trials.moved[t], self.cell_budget
                )
                batch.append((t, cells, drawn))
                rows += len(cells)
        done: set[int] = set()
        for (t, _, drawn), share in zip(batch, self.shares([cells for _, cells, _ in batch])):
            i = int(trials.query[t])
            if i not in done and share >= self.moves.least[i]:
                done.add(i)
                self.key[i] = key[t]
                self.size[i] = size if self.size[i] < 0 else self.size[i]
                self._take(i, int(trials.place[t]), trials.moved[t], share, drawn)
        return {i: waiting for i, waiting in line.items() if waiting and i not in done}

    def _give_up(self) -> None:
        """Make all moves of the nearest candidate for which that is pure, then give up one by one, dearest first."""
        moves, open_ = self.moves, (self.place < 0) & (self.below > self.moves.x.shape[1])
        if not open_.any():
            return
        at, place = np.nonzero(self.possible & open_[:, None])
        whole = self._accepted(Trials(at, place, moves.may[at, place]))
        for nearest in np.unique(whole.place).tolist():
            self._take_pure(whole.take((whole.place == nearest) & (self.place[whole.query] < 0)))
        served = np.flatnonzero(open_ & (self.place >= 0))
        dearest = np.argsort(-moves.step[served, self.place[served]], axis=1, kind="stable")
        for column in dearest.T:
            some = self.moved[served, column] & ~moves.must[served, column]
            at, fewer = served[some], self.moved[served[some]].copy()
            fewer[np.arange(len(at)), column[some]] = False
            self._take_pure(self._accepted(Trials(at, self.place[at], fewer)))
        self.place[served[self.moved[served].sum(axis=1) > moves.most[served]]] = -1

    def _draw_near(self) -> bool:
        """Give each answer the small step that brings it most, if one is worth it; whether any answer got one."""
        moves, at = self.moves, np.flatnonzero(self.place >= 0)
        now = Trials(at, self.place[at], self.moved[at])
        near = np.zeros(len(self.place))
        near[at] = self.nearness(moves, now, moves.points(now.query, now.place, now.moved))
        trials = self._wider(now, near[at])
        if not len(trials):
            return False
        left = self.nearness(moves, trials, moves.points(trials.query, trials.place, trials.moved))
        trials = trials.take(near[trials.query] - left >= _WORTH * near[trials.query])
        before = self.moved.copy()
        self.key[trials.query] = np.inf  # the way is longer with every step
        self._take_best(trials, 0)
        return bool((self.moved != before).any())

    def _wider(self, now: Trials, near: Floats) -> Trials:
        """Answers with one more small step each, towards any candidate that offers their moves."""
        moves, at = self.moves, now.query
        same = moves.may[at] & (moves.name[at] == moves.name[at, now.place][:, None])
        step = np.where(moves.may[at] & ~now.moved[:, None], moves.step[at], np.inf)
        small = (step <= _SMALL) & (step >= _WORTH * near[:, None, None])
        i, place, j = np.nonzero(small & (same | ~now.moved[:, None]).all(axis=2)[:, :, None])
        moved = now.moved[i]
        moved[np.arange(len(i)), j] = True
        return self._accepted(self._once(Trials(at[i], place, moved)))

    def _accepted(self, trials: Trials) -> Trials:
        """The sets that are other answers, and whose nearest combination the model accepts."""
        trials = trials.take(self.earlier.fresh(self.moves, trials))
        points = self.moves.points(trials.query, trials.place, trials.moved)
        return trials.take(self.model.accepts_points(points))

    def _take_pure(self, trials: Trials) -> None:
        """Take the sets, one of a query and accepted at its nearest combination, that are pure."""
        moves, wide = self.moves, self.moves.wide(trials.query, trials.place, trials.moved)
        known: tuple[Matrix, bool] = (trials.moved[:0].astype(float), False)
        whole = [
            moves.cells(int(q), int(p), m, self.cell_budget) if w else known
            for q, p, m, w in zip(trials.query, trials.place, trials.moved, wide)
        ]
        for t, share in enumerate(self.shares([cells for cells, _ in whole])):
            if share >= self.moves.least[trials.query[t]]:
                self._take(int(trials.query[t]), int(trials.place[t]), trials.moved[t], share, whole[t][1])

    def shares(self, cells: list[Matrix]) -> Floats:
        """The share of each list of combinations that keeps the decision; 1 for an empty list."""
        said = self.model.accepts(np.concatenate(cells)) if cells else np.zeros(0, dtype=bool)
        ends = np.cumsum([len(c) for c in cells])
        good = np.concatenate([[0], np.cumsum(said)])
        sizes = np.array([len(c) for c in cells], dtype=float)
        hits = good[ends] - good[ends - sizes.astype(np.int64)] if cells else np.zeros(0)
        share: Floats = np.divide(hits, sizes, out=np.ones(len(cells)), where=sizes > 0)
        return share

    def _take(self, i: int, place: int, moved: Bools, share: float, drawn: bool) -> None:
        self.place[i], self.moved[i], self.share[i], self.drawn[i] = place, moved, share, drawn


def _ranks(group: Ints) -> Ints:
    """The rank of each entry in its group; the entries of a group stand together."""
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]])) if len(group) else np.zeros(0, np.int64)
    return np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))


@cache
def _choose(n: int, size: int) -> Ints:
    """All sets of `size` numbers below n."""
    return np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(comb(n, size), size)
