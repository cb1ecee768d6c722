"""GRASP: random construction, local search, best of a few iterations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix
from countervail.core.rng import generator
from countervail.core.table import Table
from countervail.protect.cfk.base import SearchSettings
from countervail.protect.cfk.climbing import Ask, TooManyError, climb_all
from countervail.protect.cfk.region_search import RegionSearch, Solved
from countervail.protect.cfk.regions import (
    count_inside,
    fill_intervals,
    inside,
    point_region,
    region_cost,
)
from countervail.protect.cfk.space import Boxes, Space

SAMPLES = 100  # combinations drawn where there are too many to ask about


class GraspSearch(RegionSearch):
    """The heuristic of the paper: greedy regions drawn at random, each improved by single steps.

    Parameters
    ----------
    alpha : int
        Size of the list that a neighbour is drawn from.
    iterations : int
        How often it starts anew.
    cell_budget : int
        Combinations of a region that the model is asked about; above it, pureness is a sampled figure.

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023).
    """

    def __init__(self, *, alpha: int = 20, iterations: int = 3, cell_budget: int = 20_000) -> None:
        self.alpha = alpha
        self.iterations = iterations
        self.cell_budget = cell_budget

    @property
    def tried(self) -> int:
        """How many neighbours are tried before there is no answer."""
        return 1

    def fit(self, settings: SearchSettings, table: Table, model: Any) -> Self:
        """As all searches around rows; and how many of the desired class have each combination."""
        super().fit(settings, table, model)
        self.eligible_ = count_eligible(self, self.decision_.train)
        return self

    def solve(self, centres: Codes, rows: Matrix, salt: int = 0) -> Solved:
        """A region around each centre; a `salt` other than 0 draws other lots, which answers never do."""
        boxes, cost, pureness = self.space_.no_boxes(len(centres)), np.empty(len(centres)), np.empty(len(centres))
        for i, (centre, row) in enumerate(zip(centres, rows)):
            best = self._best(Construction.around(self, centre, row, self.eligible_, salt))
            boxes.put(i, best.box, 0)
            cost[i], pureness[i] = best.ncp, best.pureness
        sampled = self.space_.sizes_of(boxes) > self.cell_budget
        return Solved(boxes, cost, np.full(len(centres), np.nan), pureness, sampled)

    def _best(self, start: Construction) -> Judged:
        before = start.rng.bit_generator.state
        try:
            return _first_best(self._at_once(start))
        except TooManyError:  # where regions are sampled, lots are drawn for each in turn
            start.rng.bit_generator.state = before
            return _first_best(self._one_by_one(start))

    def _at_once(self, start: Construction) -> list[Judged]:
        """All regions that are drawn, each improved, where the model can be asked about all of their combinations."""
        k, budget = self.settings_.k, self.cell_budget
        drawn = [start.draw(k, self.alpha) for _ in range(self.iterations)]
        return [Judged(*one) for one in climb_all(start.space, start.centre, drawn, k, budget, start.asking(self))]

    def _one_by_one(self, start: Construction) -> list[Judged]:
        """The same, where each region is judged by itself."""
        k, turns = self.settings_.k, range(self.iterations)
        return [self._climb(start, self._judge(start, start.draw(k, self.alpha))) for _ in turns]

    def _judge(self, start: Construction, box: Boxes) -> Judged:
        few = start.space.sizes_of(box)[0] <= self.cell_budget
        cells = start.space.cells(box, 0) if few else start.space.draw(box, 0, SAMPLES, start.rng)
        return Judged(box, start.pureness(self, cells), start.ncp(box))

    def _climb(self, start: Construction, current: Judged) -> Judged:
        """Per quasi-identifier one value more where it is single, one fewer where it is general; first better wins."""
        improved = True
        while improved:
            improved = False
            for box in _moves(start, current.box):
                if start.count(box) < self.settings_.k:
                    continue
                other = self._judge(start, box)
                if other.beats(current):
                    current, improved = other, True
                    break
        return current


@dataclass(frozen=True, eq=False, slots=True)
class Judged:
    """A region with its pureness and its loss."""

    box: Boxes
    pureness: float
    ncp: float

    def beats(self, other: Judged | None) -> bool:
        """Higher pureness first, lower NCP on ties: what the authors' experiments do."""
        return other is None or (self.pureness, -self.ncp) > (other.pureness, -other.ncp)


@dataclass(frozen=True, eq=False, slots=True)
class Construction:
    """Regions drawn around one centre. Chance is keyed by content: asking again gives the same regions."""

    space: Space
    centre: Ints
    row: Matrix
    eligible: Ints
    rng: np.random.Generator

    @classmethod
    def around(cls, search: RegionSearch, centre: Codes, row: Matrix, eligible: Ints, salt: int) -> Construction:
        """Around one centre, with the private values of `row`; `eligible` counts rows of the desired class."""
        content = centre.astype(np.int32).tobytes() + np.ascontiguousarray(row).tobytes()
        digest = hashlib.sha256(salt.to_bytes(8, "little") + content).digest()
        rng = generator(int.from_bytes(digest[:8], "little"))
        return cls(search.space_, centre.astype(np.int64), row, eligible, rng)

    def draw(self, k: int, alpha: int) -> Boxes:
        """A region grown from the centre until it holds k rows."""
        s = self.space
        low, high, member = grasp_construct(
            s.tuples,
            s.counts,
            self.eligible,
            s.interval,
            s.positions,
            s.scale,
            self.centre,
            k,
            alpha,
            self.rng.random(max(k, 1)),
        )
        return Boxes(low[None], high[None], member[None])

    def asking(self, search: RegionSearch) -> Ask:
        """What tells which combinations keep the decision."""

        def ask(cells: Codes) -> Bools:
            return search.accepts(self.space.place(cells, np.repeat(self.row[None], len(cells), axis=0)))

        return ask

    def pureness(self, search: RegionSearch, cells: Codes) -> float:
        """The share of combinations that keep the decision."""
        return float(self.asking(search)(cells).mean())

    def ncp(self, box: Boxes) -> float:
        """The loss of a region."""
        s = self.space
        return float(region_cost(s.interval, s.sizes, s.positions, s.unit, box.low[0], box.high[0], box.member[0]))

    def count(self, box: Boxes) -> int:
        """How many rows lie in a region."""
        s = self.space
        return int(count_inside(s.tuples, s.counts, s.interval, box.low[0], box.high[0], box.member[0]))


def _first_best(found: list[Judged]) -> Judged:
    """The first region that no other beats."""
    best = found[0]
    for other in found[1:]:
        best = other if other.beats(best) else best
    return best


def count_eligible(search: RegionSearch, classes: Ints) -> Ints:
    """Rows of the desired class of each tuple."""
    wanted = search.desired_[classes]
    counts: Ints = np.bincount(search.space_.row_tuple, wanted, len(search.space_.tuples)).astype(np.int64)
    return counts


def _moves(start: Construction, box: Boxes) -> list[Boxes]:
    moves, space = [], start.space
    for j in range(len(start.centre)):
        inside = np.flatnonzero(box.member[0, j, : space.sizes[j]])
        outside = np.flatnonzero(~box.member[0, j, : space.sizes[j]])
        if space.interval[j]:
            low, high, c = int(inside[0]), int(inside[-1]), int(start.centre[j])
            ends = [(low, high - 1)] * (high > c) + [(low + 1, high)] * (low < c)
            if low == high:
                last = int(space.sizes[j]) - 1
                ends = [(low - 1, high)] * (low > 0) + [(low, high + 1)] * (high < last)
            moves += [_changed(space, box, j, np.arange(a, b + 1)) for a, b in ends]
        elif len(inside) > 1:
            moves += [_changed(space, box, j, inside[inside != v]) for v in inside if v != start.centre[j]]
        else:
            moves += [_changed(space, box, j, np.append(inside, v)) for v in outside]
    return moves


def _changed(space: Space, box: Boxes, j: int, values: Ints) -> Boxes:
    low, high, member = box.low.copy(), box.high.copy(), box.member.copy()
    member[0, j] = False
    member[0, j, values] = True
    if space.interval[j]:
        low[0, j], high[0, j] = values[0], values[-1]
    return Boxes(low, high, member)


@kernel
def _gap(cell: Codes, interval: Bools, positions: Floats, scale: Floats, low: Ints, high: Ints, member: Bools) -> float:
    """Distance of a cell to a region: per interval the gap in ranges, per set 1 for a value that is not in it."""
    gap = 0.0
    for j in range(cell.shape[0]):
        v = cell[j]
        if not interval[j]:
            gap += 0.0 if member[j, v] else 1.0
        elif scale[j] > 0.0:
            place = positions[j, v]
            gap += max(positions[j, low[j]] - place, place - positions[j, high[j]], 0.0) / scale[j]
    return gap


@kernel
def _pick(
    tuples: Codes,
    places: Ints,
    outside: Bools,
    interval: Bools,
    positions: Floats,
    scale: Floats,
    low: Ints,
    high: Ints,
    member: Bools,
    alpha: int,
    draw: float,
) -> int:
    """One of the alpha nearest rows outside, each tuple filling `places` of them; -1 if there is none."""
    nearest, gaps = np.empty(alpha, np.int64), np.empty(alpha)
    found = 0
    for t in range(tuples.shape[0]):
        if not outside[t] or places[t] <= 0:
            continue
        gap = _gap(tuples[t], interval, positions, scale, low, high, member)
        if found == alpha and gap >= gaps[alpha - 1]:
            continue
        x = min(found, alpha - 1)
        while x > 0 and gaps[x - 1] > gap:
            nearest[x], gaps[x] = nearest[x - 1], gaps[x - 1]
            x -= 1
        nearest[x], gaps[x] = t, gap
        found = min(found + 1, alpha)
    filled = 0
    for x in range(found):
        filled += places[nearest[x]]
    filled = min(filled, alpha)
    position = min(int(draw * filled), filled - 1)
    for x in range(found):
        picked: int = nearest[x]
        position -= places[picked]
        if position < 0:
            return picked
    return -1


def grasp_construct(
    tuples: Codes,
    counts: Ints,
    eligible_counts: Ints,
    interval: Bools,
    positions: Floats,
    scale: Floats,
    centre: Ints,
    k: int,
    alpha: int,
    draws: Floats,
) -> tuple[Ints, Ints, Bools]:
    """Construction phase of GRASP: widen to one of the alpha nearest rows of the desired class until k rows fit.

    `eligible_counts` int64 (T,): rows of the desired class of each tuple; `scale` float64 (q,): range of each interval
    attribute; `draws`: uniform numbers in [0, 1), one per step; max(k, 1) are always enough, fewer are used in turn.
    Ties go by table order. If no row of the desired class is left outside, any row is taken. Needs alpha >= 1.
    """
    low, high, member = point_region(centre, positions.shape[1])
    _widen_to_k(tuples, counts, eligible_counts, interval, positions, scale, k, alpha, draws, low, high, member)
    fill_intervals(interval, low, high, member)
    return low, high, member


@kernel
def _widen_to_k(
    tuples: Codes,
    counts: Ints,
    eligible_counts: Ints,
    interval: Bools,
    positions: Floats,
    scale: Floats,
    k: int,
    alpha: int,
    draws: Floats,
    low: Ints,
    high: Ints,
    member: Bools,
) -> None:
    """Widen a region in place."""
    outside = np.ones(tuples.shape[0], np.bool_)
    rows, step = 0, 0
    while True:
        for t in range(tuples.shape[0]):
            if outside[t] and inside(tuples[t], interval, low, high, member):
                outside[t] = False
                rows += counts[t]
        if rows >= k:
            break
        draw = draws[step % draws.shape[0]]
        step += 1
        chosen = _pick(tuples, eligible_counts, outside, interval, positions, scale, low, high, member, alpha, draw)
        if chosen < 0:
            chosen = _pick(tuples, counts, outside, interval, positions, scale, low, high, member, alpha, draw)
        if chosen < 0:
            break
        for j in range(tuples.shape[1]):
            v = np.int64(tuples[chosen, j])
            if interval[j]:
                low[j], high[j] = min(low[j], v), max(high[j], v)
            else:
                member[j, v] = True
