"""Groups of at least k people with similar quasi-identifiers: who is grouped depends on quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.core.rng import generator
from countervail.protect.cfk.groups import grouping_kernels as kernels
from countervail.protect.cfk.groups.grouping_kernels import Items
from countervail.protect.cfk.space import Boxes, Space

_BLOCK = 1200  # items clustered at once
_NEAR = 60
_TOGETHER = 4  # groups taken apart at once
_WORK = 10_000


def form_groups(space: Space, k: int) -> Ints:
    """The group of each row: greedy clustering from several starts, then repeated rebuilding of neighbouring groups.

    People with equal quasi-identifiers stay together, people are taken in the order of their quasi-identifiers, and
    chance is seeded by a constant: groups are a function of the quasi-identifiers, whatever the order of the rows.
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
    low, high = member.argmax(axis=2), v - 1 - member[:, :, ::-1].argmax(axis=2)
    ranks = np.arange(v)
    for j in np.flatnonzero(space.interval):
        member[:, j] = (ranks >= low[:, j, None]) & (ranks <= high[:, j, None])
    return Boxes(low.astype(np.int64), high.astype(np.int64), member)


def _cluster(space: Space, codes: Codes, counts: Ints, k: int, total: int) -> Ints:
    """Cluster one block; the more items there are in all, the less time each gets."""
    p, n = _pack(space, codes, counts), len(codes)
    starts = 8 if total <= _WORK else 2
    draws = int(n * np.clip(_WORK / total, 0.2, 10.0))
    every = np.arange(n)
    best, least = np.zeros(n, dtype=np.int64), np.inf
    for first in np.unique(np.linspace(0, n - 1, starts).astype(np.int64)):
        group, groups = kernels.cluster(p, every, int(first), k)
        cost = float(kernels.total_cost(p, every, group, groups))
        if cost < least:
            best, least = group, cost
    if best.max() > 0 and least > 0:
        near = kernels.neighbours(p, min(_NEAR, n - 1))
        chances = generator(0).random((draws, 2))
        kernels.improve(p, best, near, chances, k, min(_TOGETHER, int(best.max()) + 1), 2 * n)
    return dense(best)


def _pack(space: Space, codes: Codes, counts: Ints) -> Items:
    """The items of a block as the kernels want them."""
    intervals, sets = np.flatnonzero(space.interval), np.flatnonzero(~space.interval)
    place = np.column_stack([space.positions[j, codes[:, j]] for j in intervals] or [np.zeros((len(codes), 0))])
    words = [-(-int(space.sizes[j]) // 64) for j in sets]
    first = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    word = np.zeros((len(codes), int(first[-1])), dtype=np.uint64)
    for b, j in enumerate(sets):
        value = codes[:, j].astype(np.uint64)
        word[np.arange(len(codes)), first[b] + (codes[:, j] // 64)] = np.uint64(1) << (value % np.uint64(64))
    return Items(np.ascontiguousarray(place, dtype=float), space.unit[intervals], word, first, space.unit[sets], counts)


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


def merge(space: Space, group: Ints, failing: Callable[[Ints], Bools]) -> Ints:
    """Merge groups that fail with the one that costs least, until none fails or one group is left."""
    group = dense(group)
    while group.max() > 0 and (bad := failing(group)).any():
        boxes, sizes = boxes_of(space, group), np.bincount(group)
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
