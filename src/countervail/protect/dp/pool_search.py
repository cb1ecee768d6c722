"""From a noisy pool to counterfactuals. Only the query, the pool, the model and public constraints are looked at: this
costs nothing, however many of them there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix

# Rows and the query each belongs to -> whether the decision is a wanted one, and the score of the wanted decision.
Judge = Callable[[Matrix, Ints], tuple[Bools, Floats]]
_FIRST = 24  # single changes of a query that are tried at once, the nearest first
_FAR = np.iinfo(np.int64).max
_TIE = 1e-9 / (1 << 30)  # among equal scores the smaller change wins


@dataclass(frozen=True, eq=False, slots=True)
class Pooled:
    """Queries with their pools: positions (query x slot x column), which may be looked at, and distances from x.

    `allowed` says which positions a query may move to (query x column x position), `most` how many columns may still
    move, and `moved` whose x is not the query's own any more, because it had to move; without them everything is free.
    """

    x: Matrix
    pool: Ints
    shown: Bools
    distances: Ints
    numbers: Floats
    allowed: Bools | None = None
    most: Ints | None = None
    moved: Bools | None = None

    @property
    def moves(self) -> Bools:
        """Which pool values differ from the query's own, and may be taken."""
        columns = np.arange(self.x.shape[1])
        free: Bools = self.shown & (self.numbers[columns, self.pool] != self.x[:, None, :])
        if self.allowed is not None:
            free &= self.allowed[np.arange(len(self.x))[:, None, None], columns, self.pool]
        if self.most is not None:
            free &= (self.most > 0)[:, None, None]
        return free

    def goes_on(self, queries: Ints, taken: int) -> Bools:
        """Whose answers may change more columns than were taken."""
        on: Bools = np.ones(len(queries), dtype=bool) if self.most is None else self.most[queries] > taken
        return on

    def only(self, at: Ints, free: Bools | None = None) -> Pooled:
        """Some of the queries; of these, only the columns that are `free` (query x column) may move."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}
        parts = {n: v if v is None or n == "numbers" else v[at] for n, v in held.items()}
        if free is not None:
            parts["shown"] = parts["shown"] & free[:, None, :]
        return Pooled(**parts)


def search_several(p: Pooled, judge: Judge, n: int) -> Matrix:
    """`n` different rows for each query, one below the other; NaN where there are no more.

    The first is what `search` finds. Each further one is valid and leaves alone the columns that earlier ones moved;
    where there is none, it is another valid row than these.
    """
    cells, valid = search(p, judge)
    out = np.full((len(cells), n, cells.shape[1]), np.nan)
    out[:, 0] = cells
    open_ = np.flatnonzero(valid)
    for a in range(1, n):
        if not len(open_):
            break
        free = (out[open_, :a] == p.x[open_, None]).all(axis=1)
        new, ok = search(p.only(open_, free), _new(judge, open_, out[:, :a]))
        rest = np.flatnonzero(~ok)
        if len(rest):
            new[rest], ok[rest] = search(p.only(open_[rest]), _new(judge, open_[rest], out[:, :a]))
        open_ = open_[ok]
        out[open_, a] = new[ok]
    return out.reshape(len(cells) * n, -1)


def _new(judge: Judge, queries: Ints, before: Matrix) -> Judge:
    """The judge of some of the queries, for whom rows that they already have are no answer."""

    def judged(rows: Matrix, owner: Ints) -> tuple[Bools, Floats]:
        valid, score = judge(rows, queries[owner])
        again = (rows[:, None] == before[queries[owner]]).all(axis=2).any(axis=1)
        return valid & ~again, score

    return judged


def search(p: Pooled, judge: Judge) -> tuple[Matrix, Bools]:
    """The nearest valid row found on the way from each query to its noisy rows, or the last one tried, and which it is.

    From x a walk leads to each noisy row, one column at a time by the best score, until the decision is a wanted one.
    A walk that is already as far from x as a valid row is given up: it can only get farther. Where no walk succeeds,
    values of different noisy rows are combined.
    """
    state = _State(p)
    if p.moved is not None and p.moved.any():
        at = np.flatnonzero(p.moved)
        state.offer(at, p.x[at], np.zeros(len(at), dtype=np.int64), judge(p.x[at], at)[0])
    values = _singles(p, state, judge)
    _walks(p, state, values, judge)
    _combine(p, state, values, judge)
    return state.cells, state.valid


class _State:
    """The nearest valid row of each query so far."""

    def __init__(self, p: Pooled) -> None:
        self.best = np.full(len(p.x), _FAR)
        self.cells = p.x.copy()

    @property
    def valid(self) -> Bools:
        found: Bools = self.best < _FAR
        return found

    def offer(self, owner: Ints, rows: Matrix, cost: Ints, valid: Bools) -> None:
        """Take the valid rows that are nearer than what is there; the first of equally near ones."""
        at = np.flatnonzero(valid & (cost < self.best[owner]))
        at = at[np.lexsort([at, cost[at], owner[at]])]
        first = at[np.concatenate([[True], owner[at][1:] != owner[at][:-1]])] if len(at) else at
        self.best[owner[first]], self.cells[owner[first]] = cost[first], rows[first]


def _singles(p: Pooled, state: _State, judge: Judge) -> Floats:
    """Try every single change that the pool offers; the scores by query, column and position (-inf: not tried)."""
    q, s, j = np.nonzero(p.moves)
    offered = np.zeros(p.distances.shape, dtype=bool)
    offered[q, j, p.pool[q, s, j]] = True
    q, j, c = np.nonzero(offered)
    cost = p.distances[q, j, c]
    order = np.lexsort([cost, q])
    q, j, c, cost = q[order], j[order], c[order], cost[order]
    rank = np.arange(len(q)) - np.searchsorted(q, q)
    values = np.full(p.distances.shape, -np.inf)
    for group in (rank < _FIRST, rank >= _FIRST):
        at = np.flatnonzero(group & (cost < state.best[q]))
        if not len(at):
            continue
        rows = p.x[q[at]]
        rows[np.arange(len(at)), j[at]] = p.numbers[j[at], c[at]]
        valid, score = judge(rows, q[at])
        values[q[at], j[at], c[at]] = score - _TIE * cost[at]
        state.offer(q[at], rows, cost[at], valid)
    return values


def _walks(p: Pooled, state: _State, values: Floats, judge: Judge) -> None:
    """Walk on from the best single change towards each noisy row."""
    queries, slots, d = p.pool.shape
    columns = np.arange(d)
    owner = np.repeat(np.arange(queries), slots)
    goal, left = p.pool.reshape(-1, d), p.moves.reshape(-1, d).copy()
    gain = np.where(left, values[owner[:, None], columns, goal], -np.inf)
    at = np.flatnonzero(np.isfinite(gain).any(axis=1))
    current, cost = p.x[owner], np.zeros(len(owner), dtype=np.int64)
    step = gain.argmax(axis=1)
    taken = 0
    while len(at):
        taken += 1
        j = step[at]
        current[at, j] = p.numbers[j, goal[at, j]]
        cost[at] += p.distances[owner[at], j, goal[at, j]]
        left[at, j] = False
        at = at[cost[at] < state.best[owner[at]]]  # also ends walks that have just become valid
        at = at[p.goes_on(owner[at], taken)]
        w, j = np.nonzero(left[at])
        w = at[w]
        total = cost[w] + p.distances[owner[w], j, goal[w, j]]
        near = total < state.best[owner[w]]
        w, j, total = w[near], j[near], total[near]
        if not len(w):
            return
        rows = current[w]
        rows[np.arange(len(w)), j] = p.numbers[j, goal[w, j]]
        valid, score = judge(rows, owner[w])
        state.offer(owner[w], rows, total, valid)
        at, best = _best_of(w, score - _TIE * total)
        step[at] = j[best]


def _combine(p: Pooled, state: _State, values: Floats, judge: Judge) -> None:
    """Where nothing is valid yet: take the best value that any noisy row offers, then the next, column by column."""
    open_ = np.flatnonzero(~state.valid)
    if not len(open_):
        return
    offered = np.isfinite(values[open_])
    current, cost = p.x[open_].copy(), np.zeros(len(open_), dtype=np.int64)
    gain = values[open_].copy()
    taken = 0
    while True:
        taken += 1
        flat = gain.reshape(len(open_), -1)
        best = flat.argmax(axis=1)
        at = np.flatnonzero(np.isfinite(flat[np.arange(len(open_)), best]) & ~state.valid[open_])
        if not len(at):
            break
        j, c = np.unravel_index(best[at], gain.shape[1:])
        current[at, j] = p.numbers[j, c]
        cost[at] += p.distances[open_[at], j, c]
        offered[at, j] = False
        gain[:] = -np.inf
        at = at[p.goes_on(open_[at], taken)]
        w, j, c = np.nonzero(offered[at])
        w = at[w]
        if not len(w):
            break
        rows = current[w]
        rows[np.arange(len(w)), j] = p.numbers[j, c]
        total = cost[w] + p.distances[open_[w], j, c]
        valid, score = judge(rows, open_[w])
        gain[w, j, c] = score - _TIE * total
        state.offer(open_[w], rows, total, valid)
    last = ~state.valid[open_]
    state.cells[open_[last]] = current[last]


def _best_of(group: Ints, value: Floats) -> tuple[Ints, Ints]:
    """Each group (contiguous) and the position of its first largest value."""
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    top = np.repeat(np.maximum.reduceat(value, starts), np.diff(np.append(starts, len(group))))
    hits = np.flatnonzero(value == top)
    first = hits[np.concatenate([[True], group[hits][1:] != group[hits][:-1]])]
    return group[first], first
