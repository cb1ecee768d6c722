"""The local search of GRASP on what the model says of every combination of a region: it is asked once for all of them.

A region that gives up a value holds nothing new, and one that takes a value adds a slice: pureness is a count. The
moves, their order and what beats what are those of `GraspSearch`, which judges regions of too many combinations itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from countervail.core.arrays import Bools, Codes, Ints, every_combination
from countervail.protect.cfk.regions import region_cost
from countervail.protect.cfk.space import Boxes, Space

Ask = Callable[[Codes], Bools]  # which combinations keep the decision


class TooManyError(Exception):
    """A region has more combinations than the model is asked about."""


class Climb:
    """A region that gives up or takes one value after the other, as long as it gets better.

    `good` has an axis for each quasi-identifier, and an entry for each combination of the region's values.
    """

    def __init__(self, space: Space, centre: Ints, box: Boxes, good: Bools, k: int, budget: int, ask: Ask) -> None:
        self.space, self.centre, self.k, self.budget, self.ask = space, centre, k, budget, ask
        self.low, self.high, self.member = box.low[0].copy(), box.high[0].copy(), box.member[0].copy()
        self.values = values_of(space, box)
        self.good = good.reshape([len(v) for v in self.values])
        self.beyond: dict[tuple[int, int], Bools] = {}  # the same of one value that is not in the region
        inside = np.ones(len(space.tuples), dtype=bool)
        for j in range(len(centre)):
            inside &= self.member[j, space.tuples[:, j]]
        self.tuples, self.counts = space.tuples[inside], space.counts[inside]
        self._settle()

    def run(self) -> Climb:
        """Moves until none is better."""
        while self._step():
            pass
        return self

    @property
    def box(self) -> Boxes:
        """The region as it is now."""
        return Boxes(self.low[None], self.high[None], self.member[None])

    def _settle(self) -> None:
        """What the region is worth."""
        self.held, self.many, self.people = int(np.count_nonzero(self.good)), self.good.size, int(self.counts.sum())
        self.pureness, self.ncp = self.held / self.many, self._cost()

    def _step(self) -> bool:
        """Make the first move that is better; whether there is one."""
        for j, values in enumerate(self.values):
            if len(values) > 1:
                v = self._first_given_up(j, values)
                if v >= 0:
                    self._give_up(j, v)
                    return True
                continue
            free = self._free(j, int(values[0]))
            if free and 2 * self.many > self.budget:
                raise TooManyError
            if self.pureness < 1:  # a pure region that takes a value costs as much as before, or more
                for v, said in self._offered(j, free):
                    if self._better(self.held + int(np.count_nonzero(said)), 2 * self.many, j, v):
                        self._take(j, v, said)
                        return True
        return False

    def _first_given_up(self, j: int, values: Ints) -> int:
        """The first value of a column that is better given up; -1 for none."""
        c = int(self.centre[j])
        if self.space.interval[j]:
            ends = int(values[0]), int(values[-1])
            tried = [ends[1]] * (ends[1] > c) + [ends[0]] * (ends[0] < c)
        else:
            tried = [v for v in values.tolist() if v != c]
        people = np.bincount(self.tuples[:, j], self.counts, len(self.member[j]))
        part = self.many // len(values)
        held = None if self.held == self.many else self.good.sum(axis=self._others(j)).tolist()
        place = {v: a for a, v in enumerate(values.tolist())}
        for v in tried:
            if self.people - people[v] >= self.k:
                gone = part if held is None else held[place[v]]
                if self._better(self.held - gone, self.many - part, j, v):
                    return v
        return -1

    def _better(self, held: int, many: int, j: int, v: int) -> bool:
        """Whether the region with value `v` of column `j` changed beats what it is now."""
        pureness = held / many
        if pureness != self.pureness:
            return pureness > self.pureness
        self._turn(j, v)
        cost = self._cost()
        self._turn(j, v)
        return cost < self.ncp

    def _give_up(self, j: int, v: int) -> None:
        at = int(np.searchsorted(self.values[j], v))
        self.beyond = {key: np.delete(said, at, axis=j) for key, said in self.beyond.items() if key[0] != j}
        self.beyond[j, v] = np.take(self.good, [at], axis=j)
        self.good, self.values[j] = np.delete(self.good, at, axis=j), np.delete(self.values[j], at)
        stay = self.tuples[:, j] != v
        self.tuples, self.counts = self.tuples[stay], self.counts[stay]
        self._turn(j, v)
        self._settle()

    def _take(self, j: int, v: int, said: Bools) -> None:
        at = int(np.searchsorted(self.values[j], v))
        self.good = np.concatenate([said, self.good] if at == 0 else [self.good, said], axis=j)
        self.values[j], self.beyond = np.insert(self.values[j], at, v), {}
        self._turn(j, v)
        inside = np.ones(len(self.space.tuples), dtype=bool)
        for i in range(len(self.values)):
            inside &= self.member[i, self.space.tuples[:, i]]
        self.tuples, self.counts = self.space.tuples[inside], self.space.counts[inside]
        self._settle()

    def _turn(self, j: int, v: int) -> None:
        """Put a value of a column in, or out if it is in; of intervals one beside an end, or at one."""
        self.member[j, v] = not self.member[j, v]
        if self.space.interval[j]:
            there = np.flatnonzero(self.member[j])
            self.low[j], self.high[j] = there[0], there[-1]

    def _cost(self) -> float:
        s = self.space
        return float(region_cost(s.interval, s.sizes, s.positions, s.unit, self.low, self.high, self.member))

    def _others(self, j: int) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.values)) if i != j)

    def _free(self, j: int, value: int) -> list[int]:
        """The values that a column of one value may take."""
        last = int(self.space.sizes[j]) - 1
        if self.space.interval[j]:
            return [v for v in (value - 1, value + 1) if 0 <= v <= last]
        return [v for v in range(last + 1) if v != value]

    def _offered(self, j: int, free: list[int]) -> Iterator[tuple[int, Bools]]:
        """Values that a column may take, and what the model says of each with all values of the others."""
        step = max(1, self.budget // self.many)
        for some in (free[a : a + step] for a in range(0, len(free), step)):
            new = [v for v in some if (j, v) not in self.beyond]
            if new:
                options = [np.array(new) if i == j else held for i, held in enumerate(self.values)]
                said = self.ask(every_combination(options).astype(np.int32)).reshape([len(o) for o in options])
                self.beyond.update({(j, v): np.take(said, [a], axis=j) for a, v in enumerate(new)})
            yield from ((v, self.beyond[j, v]) for v in some)


def values_of(space: Space, box: Boxes) -> list[Ints]:
    """The values of each column in one region, in codes."""
    return [np.flatnonzero(box.member[0, j, :size]) for j, size in enumerate(space.sizes.tolist())]


def climb_all(
    space: Space, centre: Ints, boxes: list[Boxes], k: int, budget: int, ask: Ask
) -> list[tuple[Boxes, float, float]]:
    """Each of some regions as good as it gets, with its pureness and its loss; the model is asked once about them all.

    Raises TooManyError where a region has too many combinations, or would get too many.
    """
    if any(space.sizes_of(box)[0] > budget for box in boxes):
        raise TooManyError
    cells = [every_combination(values_of(space, box)).astype(np.int32) for box in boxes]
    said = np.split(ask(np.concatenate(cells)), np.cumsum([len(c) for c in cells])[:-1])
    done = [Climb(space, centre, box, good, k, budget, ask).run() for box, good in zip(boxes, said)]
    return [(c.box, c.pureness, c.ncp) for c in done]
