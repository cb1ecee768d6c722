"""Several answers to each query that differ: in the columns that they change, then in the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.explain.answering import Answers, Queries, join_answers

Distances = Callable[[Matrix, Matrix], Floats]
Walks = Callable[[Queries, Answers, Bools | None], Answers]  # queries, their goals, and which columns may move


@dataclass(frozen=True, eq=False, slots=True)
class Ways:
    """How answers are found: by walks to neighbours, or by rows that are answers as they are (`n` for each query)."""

    walks: Walks
    near: Callable[[Queries], Answers]
    distances: Distances
    goals_too: bool  # whether neighbours may be answers, however much they change


class SeveralAnswers:
    """Up to `n` different answers for each query, from walks to the same number of `goals` each."""

    def __init__(self, asked: Queries, goals: Answers, n: int, ways: Ways) -> None:
        assert goals.scores is not None
        self.asked, self.goals, self.n, self.ways = asked, goals, n, ways
        self.wide = len(goals.cells) // len(asked)
        nothing = Answers.nothing(np.repeat(asked.x, n, axis=0))
        self.answers = replace(nothing, scores=np.full((len(nothing.cells), goals.scores.shape[1]), np.nan))
        self.held = np.zeros(len(asked), dtype=np.int64)
        self.free = np.ones(asked.x.shape, dtype=bool)

    def run(self) -> Answers:
        """The walk to the nearest neighbour; then walks by other columns only; then whatever else there is."""
        asked, every = self.asked, np.arange(len(self.asked))
        plain = self.ways.walks(asked, self.goals, None)
        self._take(every, plain.only(every * self.wide))
        self._take_sparsest(every[self.held == 0], plain)
        open_ = every[self.held > 0]
        while len(open_) and self.held[open_[0]] < self.n:
            at = self._rows_of(open_)
            walked = self.ways.walks(asked.only(open_), self.goals.only(at), self.free[open_])
            open_ = self._take_sparsest(open_, self.goals.filled(at, walked))
        self._fill(plain)
        return self.answers

    def _rows_of(self, queries: Ints) -> Ints:
        rows: Ints = (queries[:, None] * self.wide + np.arange(self.wide)).ravel()
        return rows

    def _take_sparsest(self, queries: Ints, walks: Answers) -> Ints:
        """The best new one of the walks of some queries; which of them had one."""
        at = self._rows_of(queries)
        at = at[walks.found[at]]
        owner, shape = at // self.wide, (len(self.asked), self.n)
        held = self.answers.cells.reshape(*shape, -1)[owner]
        again = ~unlike(walks.cells[at][:, None], held).any(axis=2) & self.answers.found.reshape(shape)[owner]
        at = at[~again.any(axis=1)]
        best = choose_sparsest(at // self.wide, self.asked.x, walks.cells[at], self.ways.distances, at)
        taken: Ints = at[best] // self.wide
        self._take(taken, walks.only(at[best]))
        return taken

    def _fill(self, plain: Answers) -> None:
        """Where answers are left: other walks, rows that are answers as they are, and neighbours."""
        n, short = self.n, np.flatnonzero(self.held < self.n)
        if not len(short):
            return
        near = self.ways.near(self.asked.only(short))
        for i, q in enumerate(short.tolist()):
            own, x = self._rows_of(np.array([q])), self.asked.x[q]
            parts = [plain.only(own), near.only(np.arange(i * n, (i + 1) * n))]
            pool = join_answers([*parts, self.goals.only(own)] if self.ways.goals_too else parts)
            pool = pool.only(np.flatnonzero(pool.found))
            apart = self.ways.distances(np.repeat(x[None], len(pool.cells), axis=0), pool.cells)
            taken = list(self.answers.cells[q * n : q * n + self.held[q]])
            for best in choose_different(x, taken, pool.cells, apart, n):
                self._take(np.array([q]), pool.only(np.array([best])))

    def _take(self, queries: Ints, found: Answers) -> None:
        """Put answers behind those that the queries have; their columns are used up."""
        kept = np.flatnonzero(found.found)
        at = queries[kept]
        place, a = at * self.n + self.held[at], self.answers
        assert a.scores is not None and found.scores is not None
        a.cells[place], a.after[place], a.found[place] = found.cells[kept], found.after[kept], True
        a.scores[place] = found.scores[kept]
        self.held[at] += 1
        self.free[at] &= ~unlike(self.asked.x[at], found.cells[kept])


def choose_sparsest(owner: Ints, x: Matrix, rows: Matrix, distances: Distances, place: Ints) -> Ints:
    """For each owner that occurs, which of its rows changes the fewest columns; then the nearest, then the first."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    features = unlike(x[owner], rows).sum(axis=1)
    order = np.lexsort([place, distances(x[owner], rows), features, owner])
    first = np.concatenate([[True], owner[order][1:] != owner[order][:-1]])
    best: Ints = order[first]
    return best


def choose_different(x: Matrix, taken: Sequence[Matrix], rows: Matrix, apart: Floats, n: int) -> list[int]:
    """Which rows to take besides those of one query, up to `n` in all: as different from all of them as there are.

    Two rows are as alike as the share of columns that both change, of those that the one with fewer changes: to do the
    same and more is nothing new. Among equally alike ones fewer changes are better, then nearer ones, then the first.
    Equal rows are taken once.
    """
    held = [unlike(row, x) for row in taken]
    seen = {row.tobytes() for row in taken}
    changed = unlike(rows, x[None])
    out: list[int] = []
    while len(taken) + len(out) < n:
        free = [i for i, row in enumerate(rows) if row.tobytes() not in seen and changed[i].any()]
        if not free:
            break
        best = min(free, key=lambda i: (_alike(changed[i], held), int(changed[i].sum()), float(apart[i]), i))
        out.append(best)
        held.append(changed[best])
        seen.add(rows[best].tobytes())
    return out


def _alike(changed: Bools, held: Sequence[Bools]) -> float:
    return max((float((changed & h).sum() / max(min(changed.sum(), h.sum()), 1)) for h in held), default=0.0)
