"""Compiled clustering of items (people with equal quasi-identifiers) into groups of at least k with small total NCP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import kernel

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

TINY = 1e-12


class Items(NamedTuple):
    """What is clustered: places on the interval attributes, values of the set attributes as bits, and people."""

    place: Floats  # (N, a) position on each interval attribute
    length: Floats  # (a,) NCP per unit of length
    word: Words  # (N, W) values of the set attributes, one bit each
    first: Ints  # (b + 1,) words of each set attribute
    share: Floats  # (b,) NCP per value of a set of two values and more
    people: Ints  # (N,)


@kernel
def _ones(word: np.uint64) -> int:
    """How many bits are set."""
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@kernel
def _ncp(p: Items, low: Floats, high: Floats, word: Words) -> float:
    """NCP of the region with these bounds and values."""
    total = 0.0
    for j in range(len(p.length)):
        total += p.length[j] * (high[j] - low[j])
    for j in range(len(p.share)):
        n = 0
        for w in range(p.first[j], p.first[j + 1]):
            n += _ones(word[w])
        if n > 1:
            total += p.share[j] * n
    return total


@kernel
def _take(p: Items, t: int, low: Floats, high: Floats, word: Words) -> None:
    """Widen the region to item `t`, in place."""
    for j in range(len(low)):
        x = p.place[t, j]
        if x < low[j]:
            low[j] = x
        if x > high[j]:
            high[j] = x
    for w in range(len(word)):
        word[w] |= p.word[t, w]


@kernel
def _empty(low: Floats, high: Floats, word: Words) -> None:
    low[:], high[:], word[:] = np.inf, -np.inf, np.uint64(0)


@kernel
def _with(p: Items, t: int, low: Floats, high: Floats, word: Words) -> float:
    """NCP of the region after taking in item `t`."""
    total = 0.0
    for j in range(len(low)):
        x = p.place[t, j]
        total += p.length[j] * (max(high[j], x) - min(low[j], x))
    for j in range(len(p.share)):
        n = 0
        for w in range(p.first[j], p.first[j + 1]):
            n += _ones(word[w] | p.word[t, w])
        if n > 1:
            total += p.share[j] * n
    return total


@kernel
def apart(p: Items, a: int, b: int) -> float:
    """NCP of the region around two items."""
    total = 0.0
    for j in range(len(p.length)):
        total += p.length[j] * abs(p.place[a, j] - p.place[b, j])
    for j in range(len(p.share)):
        for w in range(p.first[j], p.first[j + 1]):
            if p.word[a, w] != p.word[b, w]:
                total += 2 * p.share[j]
                break
    return total


@kernel
def _around(
    p: Items, items: Ints, group: Ints, g: int, skip: int, extra: int, low: Floats, high: Floats, word: Words
) -> float:
    """NCP of group `g` among `items`, without position `skip` and with item `extra` (-1: none)."""
    _empty(low, high, word)
    if extra >= 0:
        _take(p, extra, low, high, word)
    held = extra >= 0
    for a in range(len(items)):
        if group[a] == g and a != skip:
            _take(p, items[a], low, high, word)
            held = True
    return _ncp(p, low, high, word) if held else 0.0


@kernel
def cluster(p: Items, items: Ints, start: int, k: int) -> tuple[Ints, int]:
    """Greedy k-member clustering: seeds far from the last group, then the cheapest item each time.

    Returns the group of each item and the number of groups: at least one, also where there are fewer than k people.
    """
    n = len(items)
    group = np.full(n, -1, np.int64)
    low, high, word = np.empty(p.place.shape[1]), np.empty(p.place.shape[1]), np.empty(p.word.shape[1], np.uint64)
    left = 0
    for t in items:
        left += p.people[t]
    last, groups = start, 0
    while left >= k or groups == 0:
        seed, far = -1, -1.0
        for a in range(n):
            if group[a] < 0:
                distance = apart(p, items[last], items[a])
                if distance > far:
                    seed, far = a, distance
        _empty(low, high, word)
        a, size = seed, 0
        while a >= 0:
            group[a] = groups
            _take(p, items[a], low, high, word)
            size += p.people[items[a]]
            left -= p.people[items[a]]
            if size >= k:
                break
            a, best = -1, np.inf
            for b in range(n):
                if group[b] < 0:
                    cost = _with(p, items[b], low, high, word)
                    if cost < best:
                        a, best = b, cost
        groups += 1
        last = seed
    _place_rest(p, items, group, groups)
    return group, groups


@kernel
def _place_rest(p: Items, items: Ints, group: Ints, groups: int) -> None:
    """Put the items that are left, too few for a group, where they cost least."""
    low, high, word = np.empty(p.place.shape[1]), np.empty(p.place.shape[1]), np.empty(p.word.shape[1], np.uint64)
    sizes = _sizes(p, items, group, groups)
    for a in range(len(items)):
        if group[a] >= 0:
            continue
        best, chosen = np.inf, 0
        for g in range(groups):
            before = _around(p, items, group, g, -1, -1, low, high, word)
            after = _with(p, items[a], low, high, word)
            cost = after * (sizes[g] + p.people[items[a]]) - before * sizes[g]
            if cost < best:
                best, chosen = cost, g
        group[a] = chosen
        sizes[chosen] += p.people[items[a]]


@kernel
def _sizes(p: Items, items: Ints, group: Ints, groups: int) -> Ints:
    sizes = np.zeros(groups, np.int64)
    for a in range(len(items)):
        if group[a] >= 0:
            sizes[group[a]] += p.people[items[a]]
    return sizes


@kernel
def total_cost(p: Items, items: Ints, group: Ints, groups: int) -> float:
    """People times NCP, added up over the groups."""
    low, high, word = np.empty(p.place.shape[1]), np.empty(p.place.shape[1]), np.empty(p.word.shape[1], np.uint64)
    sizes = _sizes(p, items, group, groups)
    total = 0.0
    for g in range(groups):
        total += sizes[g] * _around(p, items, group, g, -1, -1, low, high, word)
    return total


@kernel
def _hull(p: Items, members: Ints, n: int, skip: int, extra: int, low: Floats, high: Floats, word: Words) -> float:
    """NCP of the region around `members[:n]` without item `skip` and with item `extra` (-1: none)."""
    _empty(low, high, word)
    held = extra >= 0
    if held:
        _take(p, extra, low, high, word)
    for a in range(n):
        if members[a] != skip:
            _take(p, members[a], low, high, word)
            held = True
    return _ncp(p, low, high, word) if held else 0.0


@kernel
def _exchange(members: Ints, n: int, leaves: int, comes: int) -> int:
    """Replace one item of a list by another (-1: none), in place; its new length."""
    for a in range(n):
        if members[a] == leaves:
            n -= 1
            members[a] = members[n]
            break
    if comes >= 0:
        members[n] = comes
        n += 1
    return n


@kernel
def polish(p: Items, items: Ints, group: Ints, groups: int, k: int) -> None:
    """Moves and swaps between groups, in place, while the total falls."""
    low, high, word = np.empty(p.place.shape[1]), np.empty(p.place.shape[1]), np.empty(p.word.shape[1], np.uint64)
    n = len(items)
    sizes, cost = _sizes(p, items, group, groups), np.empty(groups)
    members, length = np.empty((groups, n + 1), np.int64), np.zeros(groups, np.int64)
    for a in range(n):
        members[group[a], length[group[a]]] = items[a]
        length[group[a]] += 1
    for g in range(groups):
        cost[g] = _hull(p, members[g], length[g], -1, -1, low, high, word)
    improved, rounds = True, 0
    while improved and rounds < 4:
        improved, rounds = False, rounds + 1
        for a in range(n):
            mine, alone = items[a], np.inf
            for b in range(-groups, n):  # first every group to move to, then every item to swap with
                g, h = group[a], b + groups if b < 0 else group[b]
                other = -1 if b < 0 else items[b]
                if h == g or 0 <= b < a:
                    continue
                if b == -groups or alone == np.inf:
                    alone = _hull(p, members[g], length[g], mine, -1, low, high, word)
                moved = p.people[mine] - (p.people[other] if b >= 0 else 0)
                now = cost[g] * sizes[g] + cost[h] * sizes[h]
                # Without `mine` the group costs at least `alone`, whatever comes instead.
                if sizes[g] - moved < k or sizes[h] + moved < k or now <= alone * (sizes[g] - moved) + TINY:
                    continue
                if b >= 0 and apart(p, mine, other) == 0.0:
                    continue
                here = alone if b < 0 else _hull(p, members[g], length[g], mine, other, low, high, word)
                rest = now - here * (sizes[g] - moved)
                if rest <= TINY:
                    continue
                there = _hull(p, members[h], length[h], other, mine, low, high, word)
                if rest - there * (sizes[h] + moved) > TINY:
                    group[a] = h
                    if b >= 0:
                        group[b] = g
                    length[g] = _exchange(members[g], length[g], mine, other)
                    length[h] = _exchange(members[h], length[h], other, mine)
                    sizes[g] -= moved
                    sizes[h] += moved
                    cost[g], cost[h], improved, alone = here, there, True, np.inf


@kernel
def neighbours(p: Items, n: int) -> Ints:
    """The `n` nearest other items of each item, nearest first."""
    total = len(p.people)
    out, distance = np.empty((total, n), np.int64), np.empty(total)
    for a in range(total):
        for b in range(total):
            distance[b] = apart(p, a, b)
        distance[a] = np.inf
        out[a] = np.argsort(distance, kind="mergesort")[:n]
    return out


@kernel
def improve(p: Items, group: Ints, near: Ints, draws: Floats, k: int, together: int, patience: int) -> None:
    """Take a few neighbouring groups apart, cluster them anew, keep what is cheaper; in place, once per draw.

    `draws` (I, 2) in [0, 1): which item to start from, and from which of its crowd to cluster. Ends after `patience`
    draws without gain. Numbers of emptied groups are left unused.
    """
    total, idle = len(p.people), 0
    free = group.max() + 1
    chosen = np.empty(together, np.int64)
    for i in range(len(draws)):
        if idle > patience:
            break
        idle += 1
        first = min(int(draws[i, 0] * total), total - 1)
        many = _crowd(group, first, near, chosen)
        if many < 2:
            continue
        items, old = _those(group, chosen, many)
        before = total_cost(p, items, old, many)
        if before <= TINY:
            continue
        start = min(int(draws[i, 1] * len(items)), len(items) - 1)
        fresh, groups = cluster(p, items, start, k)
        polish(p, items, fresh, groups, k)
        if total_cost(p, items, fresh, groups) < before - TINY:
            idle = 0
            for a in range(len(items)):
                group[items[a]] = chosen[fresh[a]] if fresh[a] < many else free + fresh[a] - many
            free += max(groups - many, 0)


@kernel
def _crowd(group: Ints, first: int, near: Ints, chosen: Ints) -> int:
    """The groups of an item and of its nearest items; how many were found."""
    chosen[0], many = group[first], 1
    for b in near[first]:
        if many == len(chosen):
            break
        known = False
        for c in range(many):
            known = known or chosen[c] == group[b]
        if not known:
            chosen[many] = group[b]
            many += 1
    return many


@kernel
def _those(group: Ints, chosen: Ints, many: int) -> tuple[Ints, Ints]:
    """The items of some groups, and which of these groups each is in."""
    items, which, n = np.empty(len(group), np.int64), np.empty(len(group), np.int64), 0
    for a in range(len(group)):
        for c in range(many):
            if group[a] == chosen[c]:
                items[n], which[n] = a, c
                n += 1
                break
    return items[:n].copy(), which[:n].copy()
