"""The exact search of CF-K: minimal NCP among pure regions, a whole batch in lock-step.

Pureness 1 is monotone: an impure cell spoils every region that contains it. So: solve without regard to pureness, ask
the model about the region's unseen cells, forbid the impure ones, and solve again. When all cells are pure the region
is optimal; when nothing is left no pure region exists. One model call per round serves every open explanation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from countervail.core.arrays import Bools, Codes, Ints, Matrix, distinct_rows
from countervail.core.rng import generator
from countervail.core.table import Table
from countervail.protect.cfk.base import SearchSettings
from countervail.protect.cfk.branch_and_bound import smallest_regions
from countervail.protect.cfk.region_search import Favourable, RegionSearch, Solved
from countervail.protect.cfk.secret_shares import SecretShares
from countervail.protect.cfk.space import Boxes, Space

_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work one explanation may take, and what is acceptable when no pure region exists."""

    k: int
    node_budget: int
    cell_budget: int
    min_pureness: float = 1.0


class ExactSearch(RegionSearch):
    """The region of least NCP in which every combination keeps the decision.

    Parameters
    ----------
    node_budget, cell_budget : int
        Work per explanation: nodes of the search, and combinations asked of the model. Where the first is spent, the
        explanation says how far from optimal it may be; where the second is, pureness is a sampled figure.
    """

    def __init__(self, *, node_budget: int = 200_000, cell_budget: int = 20_000) -> None:
        self.node_budget = node_budget
        self.cell_budget = cell_budget

    def fit(self, settings: SearchSettings, table: Table, model: Any) -> Self:
        """As all searches around rows; and what l and t ask of regions."""
        super().fit(settings, table, model)
        self.secret_ = SecretShares.of(settings, table)
        return self

    @property
    def tried(self) -> int:
        """How many neighbours are tried before there is no answer."""
        return self.settings_.neighbours

    def solve(self, centres: Codes, rows: Matrix, salt: int = 0) -> Solved:
        """The smallest pure region around each centre; nothing is drawn, so `salt` changes nothing."""
        limits = Limits(self.settings_.k, self.node_budget, self.cell_budget, self.settings_.min_pureness)
        solved = solve(self.space_, centres, rows, self.accepts, limits)
        return solved if self.secret_ is None else self._widened(solved, centres, rows, limits, self.secret_)

    def _widened(self, solved: Solved, centres: Codes, rows: Matrix, limits: Limits, secret: SecretShares) -> Solved:
        """Regions of more and more people, until l and t hold; each depends on its own centre alone.

        Where no pure region of so many people exists there is none of more, and the centre has no region.
        """
        space, cost = self.space_, solved.cost
        open_ = np.flatnonzero(solved.found)
        open_ = open_[secret.failing(space, solved.boxes.take(open_))]
        cost[open_] = np.inf
        while len(open_) and limits.k < int(space.counts.sum()):
            limits = replace(limits, k=min(limits.k + max(limits.k // 2, 1), int(space.counts.sum())))
            wider = solve(space, centres[open_], rows[open_], self.accepts, limits)
            at = np.flatnonzero(wider.found)
            kept = at[~secret.failing(space, wider.boxes.take(at))]
            solved.boxes.put(open_[kept], wider.boxes, kept)
            for name in ("cost", "pureness", "sampled"):
                getattr(solved, name)[open_[kept]] = getattr(wider, name)[kept]
            open_ = open_[np.setdiff1d(at, kept)]
        return solved


def ncp_band(least: float) -> float:
    """How much NCP an impure answer may cost when the least possible is `least`."""
    return max(1.25 * least, least + 0.03)


@dataclass(slots=True)
class _Open:
    """What is known about one centre's cells so far."""

    keys: list[Any] = field(default_factory=list)
    seen: dict[Any, bool] = field(default_factory=dict)
    forbidden: list[Codes] = field(default_factory=list)
    least: float = np.inf


def solve(space: Space, centres: Codes, rows: Matrix, favourable: Favourable, limits: Limits) -> Solved:
    """The smallest pure region around each centre; `rows` hold the private values that go with it."""
    return _Batch(space, centres, rows, favourable, limits).run()


class _Batch:
    def __init__(self, space: Space, centres: Codes, rows: Matrix, favourable: Favourable, limits: Limits) -> None:
        self.space, self.centres, self.rows, self.favourable, self.limits = space, centres, rows, favourable, limits
        e = len(centres)
        self.state = [_Open() for _ in range(e)]
        self.boxes = space.no_boxes(e)
        self.cost, self.bound = np.full(e, np.inf), np.zeros(e)
        self.pureness, self.sampled = np.full(e, np.nan), np.zeros(e, dtype=bool)
        self.kept: list[list[tuple[float, float, Boxes, bool]]] = [[] for _ in range(e)]

    def run(self) -> Solved:
        """Rounds until every centre has its pure region or is proven to have none."""
        open_ = np.arange(len(self.centres))
        for _ in range(_ROUNDS):
            if not len(open_):
                break
            open_ = self._round(open_)
        for e in np.flatnonzero(~np.isfinite(self.cost)):
            self._settle_impure(int(e))
        return Solved(self.boxes, self.cost, self.bound, self.pureness, self.sampled)

    def _round(self, open_: Ints) -> Ints:
        space, limits = self.space, self.limits
        cells = [c for e in open_ for c in self.state[e].forbidden]
        starts = np.concatenate([[0], np.cumsum([sum(map(len, self.state[e].forbidden)) for e in open_])])
        q = len(space.sizes)
        cost, low, high, member, _, bound = smallest_regions(
            space.tuples,
            space.counts,
            space.interval,
            space.sizes,
            space.positions,
            space.unit,
            np.ascontiguousarray(self.centres[open_], dtype=np.int64),
            limits.k,
            np.ascontiguousarray(np.concatenate(cells), np.int64) if cells else np.zeros((0, q), np.int64),
            starts.astype(np.int64),
            limits.node_budget,
        )
        boxes = Boxes(low, high, member)
        feasible = np.flatnonzero(np.isfinite(cost))
        asked, sampled = self._unseen(open_, boxes, feasible)
        self._ask(open_, asked)
        still = []
        for i in feasible:
            e = int(open_[i])
            if self._judge(e, boxes, int(i), asked[int(i)], bool(sampled[i]), float(cost[i]), float(bound[i])):
                still.append(e)
        return np.array(still, dtype=np.int64)

    def _unseen(self, open_: Ints, boxes: Boxes, feasible: Ints) -> tuple[dict[int, Codes], Bools]:
        """The cells of each region, or a sample of them where there are too many to ask about."""
        asked: dict[int, Codes] = {}
        sampled = self.space.sizes_of(boxes) > self.limits.cell_budget
        for i in map(int, feasible):
            if sampled[i]:
                # Seeded by the centre: the same counterfactual gets the same region every time.
                rng = generator(int.from_bytes(self.centres[open_[i]].tobytes()[:8], "little"))
                drawn = self.space.draw(boxes, i, min(self.limits.cell_budget, 1000), rng)
                asked[i] = drawn[distinct_rows(drawn)[0]]
            else:
                asked[i] = self.space.cells(boxes, i)
        return asked, sampled

    def _ask(self, open_: Ints, asked: dict[int, Codes]) -> None:
        """One model call for all cells that have not been seen yet."""
        parts, owners, keys = [], [], []
        for i, cells in asked.items():
            state = self.state[open_[i]]
            state.keys = self._keys(cells)
            fresh = np.array([key not in state.seen for key in state.keys], dtype=bool)
            if fresh.any():
                parts.append(self.space.place(cells[fresh], np.repeat(self.rows[[open_[i]]], int(fresh.sum()), axis=0)))
                owners += [state] * int(fresh.sum())
                keys += [key for key, f in zip(state.keys, fresh) if f]
        if parts:
            answers = self.favourable(np.concatenate(parts)).tolist()
            for state, key, answer in zip(owners, keys, answers):
                state.seen[key] = answer

    def _keys(self, cells: Codes) -> list[Any]:
        """A key per cell: one number where that cannot overflow."""
        telling = np.flatnonzero(self.space.sizes > 1)  # so they are at most 61 columns where it fits: numpy takes 64
        sizes = self.space.sizes[telling]
        if len(telling) and float(np.prod(sizes.astype(float))) < 2.0**62:
            numbers: Ints = np.asarray(np.ravel_multi_index(tuple(cells[:, telling].T), sizes.tolist()))
            return list(numbers.tolist())
        return [c.tobytes() for c in cells]

    def _judge(self, e: int, boxes: Boxes, i: int, cells: Codes, sampled: bool, cost: float, bound: float) -> bool:
        """Take a pure region; otherwise forbid its impure cells. Whether the centre stays open."""
        state = self.state[e]
        pure = np.array([state.seen[key] for key in state.keys], dtype=bool)
        state.least = min(state.least, cost)
        if pure.all():
            self._take(e, boxes.take(np.array([i])), cost, bound, 1.0, sampled)
            return False
        if self.limits.min_pureness < 1:
            self.kept[e].append((float(pure.mean()), cost, boxes.take(np.array([i])), sampled))
        state.forbidden.append(cells[~pure])
        return True

    def _settle_impure(self, e: int) -> None:
        """The purest region seen within the NCP band, where the caller accepts less than pureness 1."""
        limit = ncp_band(self.state[e].least)
        kept = [c for c in self.kept[e] if c[0] >= self.limits.min_pureness and c[1] <= limit + 1e-12]
        if kept:
            pureness, cost, box, sampled = max(kept, key=lambda c: (c[0], -c[1]))
            self._take(e, box, cost, self.state[e].least, pureness, sampled)

    def _take(self, e: int, box: Boxes, cost: float, bound: float, pureness: float, sampled: bool) -> None:
        self.boxes.put(e, box, 0)
        self.cost[e], self.bound[e], self.pureness[e], self.sampled[e] = cost, bound, pureness, sampled
