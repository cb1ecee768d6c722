"""Groups of at least k people with similar quasi-identifiers: who is grouped depends on quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, sqrt

import numpy as np

from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.core.rng import generator
from countervail.protect.cfk.groups import grouping_kernels as kernels
from countervail.protect.cfk.groups.grouping_kernels import Clusters, Items
from countervail.protect.cfk.space import Boxes, Space

_BLOCK = 1200  # items clustered at once
_NEAR = 60
_WORK = 6_000_000  # draws in all, between the fewest and the most per item
_DRAWS = (50, 2000)
_RUNS = 8
_PASSES = 40  # of a run
# What a change may cost (in a typical person's cost, times the root of k) in the first run and every other one, and its
# change per pass; what a person short of k costs, and its change. Found by trial on German credit, Adult, CMC, HELOC.
_HEAT, _COOLING = (0.4, 1.0), 0.935
_LACK, _RISING = 3.0, 1.061


def form_groups(space: Space, k: int) -> Ints:
    """The group of each row: greedy clustering, then moves and swaps that may cost less and less (annealing).

    People with equal quasi-identifiers stay together, people are taken in the order of their quasi-identifiers, and
    chance is seeded by a constant: groups are a function of the quasi-identifiers, whatever the order of the rows.

    References
    ----------
    Byun, Kamra, Bertino, Li, "Efficient k-Anonymization Using Clustering Techniques" (the greedy part).
    """
    group = np.empty(len(space.tuples), dtype=np.int64)
    used: int = 0
    for block in _blocks(space, space.tuples, space.counts, k):
        found = _cluster(space, space.tuples[block], space.counts[block], k, len(space.tuples))
        group[block] = found + used
        used += int(found.max()) + 1
    by_row: Ints = dense(group)[space.row_tuple]
    return by_row


def dense(group: Ints) -> Ints:
    """Group numbers without gaps; their order stays, so that it never follows the order of rows."""
    _, inverse = np.unique(group, return_inverse=True)
    return inverse.ravel().astype(np.int64)


def boxes_of(space: Space, group: Ints) -> Boxes:
    """The region around each group's rows."""
    n, q, v = int(group.max()) + 1, len(space.sizes), space.positions.shape[1]
    member = np.zeros((n, q, v), dtype=bool)
    for column in range(q):
        member[group, column, space.row_codes[:, column]] = True
    known, ranks = member.copy(), np.arange(v)
    for column, hole in enumerate(space.missing):
        if hole >= 0:  # numbers alone have ends, where there are any
            known[:, column, hole] &= ~known[:, column, :hole].any(axis=1)
    low, high = known.argmax(axis=2), v - 1 - known[:, :, ::-1].argmax(axis=2)
    for j in np.flatnonzero(space.interval):
        member[:, j] |= (ranks >= low[:, j, None]) & (ranks <= high[:, j, None])
    return Boxes(low.astype(np.int64), high.astype(np.int64), member)


def _cluster(space: Space, codes: Codes, counts: Ints, k: int, total: int) -> Ints:
    """Cluster one block; the more items there are in all, the fewer draws each gets, and small tables several runs."""
    p, n = _pack(space, codes, counts), len(codes)
    start = kernels.no_groups(p, min(int(counts.sum()) // k, n) + 2, min(4 * k, n))
    greedy = np.full(n, -1, dtype=np.int64)
    kernels.cluster(p, start, greedy, k)
    if not kernels.share_out(p, start, greedy, k):
        return np.zeros(n, dtype=np.int64)
    kernels.count_costs(p, start, k, 0.0)
    best, least = greedy, fsum(start.cost)
    if best.max() == 0 or least == 0:
        return best
    near = np.zeros((n, min(_NEAR, n - 1)), dtype=np.int64)
    kernels.neighbours(p, near, np.empty(near.shape[1]))
    draws = np.clip(_WORK / total, *_DRAWS)
    rng, unit = generator(0), least / int(start.people[start.cost > 0].sum())
    for run in range(int(np.clip(_WORK / (4 * total * draws), 1, _RUNS))):
        s, group = Clusters._make(a.copy() for a in start), greedy.copy()
        heat, lack = _HEAT[run % 2] * sqrt(k) * unit, _LACK * unit
        for _ in range(_PASSES):
            chances = rng.random((int(n * draws) // _PASSES + 1, 4), dtype=np.float32)
            kernels.count_costs(p, s, k, lack)
            kernels.improve(p, s, group, near, chances, k, heat, lack)
            heat, lack = heat * _COOLING, lack * _RISING
        fits = kernels.share_out(p, s, group, k)
        kernels.count_costs(p, s, k, 0.0)
        if fits and fsum(s.cost) < least:
            best, least = group, fsum(s.cost)
    return best


def _pack(space: Space, codes: Codes, counts: Ints) -> Items:
    """The items of a block as the kernels want them, and nobody."""
    intervals, sets = np.flatnonzero(space.interval), np.flatnonzero(~space.interval)
    edges = 2 * len(intervals)
    row = np.full((len(codes) + 1, edges + len(sets)), np.inf)
    for a, j in enumerate(intervals):
        row[:-1, a] = space.unit[j] * space.positions[j, codes[:, j]]
        row[:-1, len(intervals) + a] = -row[:-1, a]
    used = 2 * edges + len(sets)
    for b, j in enumerate(sets):
        held, inverse = np.unique(codes[:, j], return_inverse=True)
        row[:-1, edges + b], used = inverse + used, used + len(held)
    row[-1, edges:] = used
    return Items(row, space.unit[sets], np.append(counts, 0))


def _blocks(space: Space, codes: Codes, counts: Ints, k: int) -> list[Ints]:
    """Neighbourhoods of about `_BLOCK` items and at least k people, by halving along the widest column."""
    done, open_ = [], [np.arange(len(codes))]
    while open_:
        block = open_.pop()
        halves = _halve(space, codes, counts, block, k) if len(block) > _BLOCK else None
        if halves is None:
            done.append(block)
        else:
            open_ += halves
    return sorted(done, key=lambda b: int(b[0]))


def _halve(space: Space, codes: Codes, counts: Ints, block: Ints, k: int) -> list[Ints] | None:
    part, people = codes[block], counts[block]
    width = [
        space.unit[j] * (np.ptp(space.positions[j, part[:, j]]) if space.interval[j] else len(np.unique(part[:, j])))
        for j in range(part.shape[1])
    ]
    for j in np.argsort(-np.array(width), kind="stable"):
        order = np.argsort(part[:, j], kind="stable")
        before = np.cumsum(people[order])
        edges = np.flatnonzero(np.diff(part[order, j])) + 1
        fit = edges[(before[edges - 1] >= k) & (before[-1] - before[edges - 1] >= k)]
        if len(fit):
            cut = fit[np.argmin(np.abs(2 * before[fit - 1] - before[-1]))]
            return [np.sort(block[order[:cut]]), np.sort(block[order[cut:]])]
    return None


def merge(space: Space, group: Ints, failing: Callable[[Ints], Bools], people: Ints | None = None) -> Ints:
    """Merge groups that fail with the one that costs least, until none fails or one group is left.

    `people`: how many each row stands for.
    """
    group = dense(group)
    while group.max() > 0 and (bad := failing(group)).any():
        boxes, sizes = boxes_of(space, group), np.bincount(group, people).astype(np.int64)
        g = int(np.flatnonzero(bad)[0])
        both = boxes.member | boxes.member[g]
        cost = (sizes + sizes[g]) * _ncp(space, both) - sizes * _ncp(space, boxes.member)
        cost[g] = np.inf
        group = dense(np.where(group == g, int(cost.argmin()), group))
    return group


def _ncp(space: Space, member: Bools) -> Floats:
    """NCP of boxes given by membership."""
    total = np.zeros(len(member))
    for j in range(len(space.sizes)):
        inside = member[:, j, : space.sizes[j]]
        if space.interval[j]:
            place = space.positions[j, : space.sizes[j]]
            high = np.where(inside, place, -np.inf).max(axis=1)
            total += space.unit[j] * (high - np.where(inside, place, np.inf).min(axis=1))
        else:
            n = inside.sum(axis=1)
            total += np.where(n > 1, space.unit[j] * n, 0.0)
    return total
