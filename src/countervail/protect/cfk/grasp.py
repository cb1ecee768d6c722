"""GRASP as published: random construction, local search, best of a few iterations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from countervail.core.encode import Matrix
from countervail.core.rng import generator
from countervail.protect.cfk.exact import Favourable, Solved
from countervail.protect.cfk.grasp_kernels import grasp_construct
from countervail.protect.cfk.regions import count_inside, region_cost
from countervail.protect.cfk.space import Boxes, Codes, Ints, Space


@dataclass(frozen=True, slots=True)
class Settings:
    """What the published search is run with."""

    k: int
    alpha: int
    iterations: int
    published: bool
    cell_budget: int = 20_000
    salt: int = 0  # 0 for answers; others only to show what a search that draws lots anew would give away
    samples: int = 100


@dataclass(frozen=True, eq=False, slots=True)
class _Candidate:
    box: Boxes
    pureness: float
    ncp: float

    def beats(self, other: _Candidate | None) -> bool:
        """Higher pureness first, lower NCP on ties: what the authors' experiments do."""
        return other is None or (self.pureness, -self.ncp) > (other.pureness, -other.ncp)


def solve(
    space: Space, centres: Codes, rows: Matrix, favourable: Favourable, eligible: Ints, settings: Settings
) -> Solved:
    """A region around each centre; `eligible` counts the rows of the desired class of each tuple."""
    e, q, v = len(centres), len(space.sizes), space.positions.shape[1]
    boxes = Boxes(np.zeros((e, q), np.int64), np.zeros((e, q), np.int64), np.zeros((e, q, v), dtype=bool))
    cost, pureness = np.empty(e), np.empty(e)
    for i in range(e):
        best = _Search(space, centres[i], rows[i], favourable, eligible, settings).run()
        boxes.low[i], boxes.high[i], boxes.member[i] = best.box.low[0], best.box.high[0], best.box.member[0]
        cost[i], pureness[i] = best.ncp, best.pureness
    sampled = space.sizes_of(boxes) > (settings.samples if settings.published else settings.cell_budget)
    return Solved(boxes, cost, np.full(e, np.nan), pureness, sampled)


class _Search:
    """The search from one centre. Chance is keyed by the instance's content: asking again gives the same region."""

    def __init__(
        self, space: Space, centre: Codes, row: Matrix, favourable: Favourable, eligible: Ints, settings: Settings
    ) -> None:
        self.space, self.centre, self.row = space, centre.astype(np.int64), row
        self.favourable, self.eligible, self.settings = favourable, eligible, settings
        content = centre.astype(np.int32).tobytes() + np.ascontiguousarray(row).tobytes()
        digest = hashlib.sha256(settings.salt.to_bytes(8, "little") + content).digest()
        self.rng = generator(int.from_bytes(digest[:8], "little"))

    def run(self) -> _Candidate:
        """The best of the iterations."""
        best: _Candidate | None = None
        # The authors' loop runs once more than asked, and never takes the result of the local search.
        rounds = self.settings.iterations + 1 if self.settings.published else self.settings.iterations
        for _ in range(rounds):
            found = self._judge(self._construct())
            if not self.settings.published:
                found = self._climb(found)
            if found.beats(best):
                best = found
        assert best is not None
        return best

    def _construct(self) -> Boxes:
        s = self.space
        low, high, member = grasp_construct(
            s.tuples,
            s.counts,
            self.eligible,
            s.interval,
            s.positions,
            s.scale,
            self.centre,
            self.settings.k,
            self.settings.alpha,
            self.rng.random(max(self.settings.k, 1)),
        )
        return Boxes(low[None], high[None], member[None])

    def _climb(self, current: _Candidate) -> _Candidate:
        """Per quasi-identifier one value more where it is single, one fewer where it is general; first better wins."""
        improved = True
        while improved:
            improved = False
            for box in self._moves(current.box):
                if self._count(box) < self.settings.k:
                    continue
                other = self._judge(box)
                if other.beats(current):
                    current, improved = other, True
                    break
        return current

    def _moves(self, box: Boxes) -> list[Boxes]:
        moves = []
        for j in range(len(self.centre)):
            inside = np.flatnonzero(box.member[0, j, : self.space.sizes[j]])
            outside = np.flatnonzero(~box.member[0, j, : self.space.sizes[j]])
            if self.space.interval[j]:
                low, high, c = int(inside[0]), int(inside[-1]), int(self.centre[j])
                ends = [(low, high - 1)] * (high > c) + [(low + 1, high)] * (low < c)
                if low == high:
                    last = int(self.space.sizes[j]) - 1
                    ends = [(low - 1, high)] * (low > 0) + [(low, high + 1)] * (high < last)
                moves += [self._changed(box, j, range(a, b + 1)) for a, b in ends]
            elif len(inside) > 1:
                moves += [self._changed(box, j, inside[inside != v]) for v in inside if v != self.centre[j]]
            else:
                moves += [self._changed(box, j, np.append(inside, v)) for v in outside]
        return moves

    def _changed(self, box: Boxes, j: int, values: object) -> Boxes:
        low, high, member = box.low.copy(), box.high.copy(), box.member.copy()
        member[0, j] = False
        member[0, j, np.asarray(values, dtype=np.intp)] = True
        if self.space.interval[j]:
            inside = np.flatnonzero(member[0, j])
            low[0, j], high[0, j] = inside[0], inside[-1]
        return Boxes(low, high, member)

    def _count(self, box: Boxes) -> int:
        s = self.space
        return int(count_inside(s.tuples, s.counts, s.interval, box.low[0], box.high[0], box.member[0]))

    def _judge(self, box: Boxes) -> _Candidate:
        cells = self._cells(box)
        rows = self.space.place(cells, np.repeat(self.row[None], len(cells), axis=0))
        pureness = float(self.favourable(rows).mean())
        return _Candidate(box, pureness, self._ncp(box))

    def _cells(self, box: Boxes) -> Codes:
        size = self.space.sizes_of(box)[0]
        if self.settings.published or size > self.settings.cell_budget:
            return self.space.draw(box, 0, self.settings.samples, self.rng)
        return self.space.cells(box, 0)

    def _ncp(self, box: Boxes) -> float:
        s, shown = self.space, box
        if self.settings.published:
            shown = _hull(s, box)
        return float(
            region_cost(s.interval, s.sizes, s.positions, s.unit, shown.low[0], shown.high[0], shown.member[0])
        )


def _hull(space: Space, box: Boxes) -> Boxes:
    """The values of the rows found in a box: the authors measure these, not the declared region."""
    inside = np.ones(len(space.tuples), dtype=bool)
    for j in range(len(space.sizes)):
        inside &= box.member[0, j, space.tuples[:, j]]
    rows = space.tuples[inside]
    member = np.zeros_like(box.member)
    for j in range(len(space.sizes)):
        member[0, j, rows[:, j]] = True
    low = np.where(space.interval, rows.min(axis=0), box.low[0])
    high = np.where(space.interval, rows.max(axis=0), box.high[0])
    return Boxes(low[None].astype(np.int64), high[None].astype(np.int64), member)
