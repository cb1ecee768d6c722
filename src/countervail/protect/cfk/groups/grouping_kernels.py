"""Compiled clustering of items (people with equal quasi-identifiers) into groups of at least k with small total NCP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Draws = NDArray[np.float32]

NEW = 0.02  # how often an item tries a group of its own


class Items(NamedTuple):
    """What is clustered. The last item is nobody: without people, places or values, so that it changes no group."""

    row: Floats  # (N + 1, 2a + b) edges: places on a interval attributes in NCP, the same negated; b columns of counts
    share: Floats  # (b,) NCP per value of a set of two values and more
    people: Ints  # (N + 1,)


class Clusters(NamedTuple):
    """Groups and their hulls. Leaving is as fast as coming: the second least edges and counts of values are known.

    A hull is the least edges (2a), the second least (2a), how many values of each set attribute occur (b), the items
    with each value, and 2 for nobody's value. All in one array: many arrays are slow to compile and to hand on.
    """

    hull: Floats
    members: Ints  # (G, room)
    length: Ints  # (G,) items
    people: Ints  # (G,)
    cost: Floats  # (G,) as of the last change


def no_groups(p: Items, groups: int, room: int) -> Clusters:
    """Groups without members, each with room for some."""
    sets = len(p.share)
    edges = p.row.shape[1] - sets
    width = int(p.row[-1, -1]) + 1 if sets else 2 * edges
    hull = np.zeros((groups, width))
    hull[:, : 2 * edges] = np.inf
    if sets:
        hull[:, -1] = 2
    length, people = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    return Clusters(hull, np.zeros((groups, room), dtype=np.int64), length, people, np.zeros(groups))


@kernel
def ncp(row: Floats, share: Floats, hull: Floats, g: int, leaves: int, comes: int) -> float:
    """NCP of the region around group `g` without item `leaves` and with item `comes`; somebody is left."""
    total, edges = 0.0, row.shape[1] - len(share)
    half = edges // 2
    for j in range(half):
        low, high = hull[g, j], hull[g, half + j]
        if row[leaves, j] == low:
            low = hull[g, edges + j]
        if row[leaves, half + j] == high:
            high = hull[g, edges + half + j]
        if row[comes, j] < low:
            low = row[comes, j]
        if row[comes, half + j] < high:
            high = row[comes, half + j]
        total -= low + high
    for j in range(len(share)):
        n, old, new = hull[g, 2 * edges + j], int(row[leaves, edges + j]), int(row[comes, edges + j])
        if old != new:
            if hull[g, old] == 1.0:
                n -= 1.0
            if hull[g, new] == 0.0:
                n += 1.0
        if n > 1.0:
            total += share[j] * n
    return total


@kernel
def exchange(
    row: Floats, hull: Floats, members: Ints, length: Ints, sets: int, g: int, leaves: int, comes: int
) -> None:
    """Replace an item of group `g` by another, either of them perhaps nobody, in place; not its people and cost."""
    nobody, edges = len(row) - 1, row.shape[1] - sets
    if leaves < nobody:
        i, length[g] = 0, length[g] - 1
        while members[g, i] != leaves:
            i += 1
        members[g, i] = members[g, length[g]]
    if comes < nobody:
        members[g, length[g]] = comes
        length[g] += 1
    for j in range(edges):
        first = length[g] - 1 if comes < nobody else length[g]
        if row[leaves, j] <= hull[g, edges + j] and leaves < nobody:
            hull[g, j] = hull[g, edges + j] = np.inf
            first = 0
        for i in range(first, length[g]):
            x = row[members[g, i], j]
            if x < hull[g, j]:
                hull[g, edges + j] = hull[g, j]
                hull[g, j] = x
            elif x < hull[g, edges + j]:
                hull[g, edges + j] = x
    for j in range(sets):
        old, new = int(row[leaves, edges + j]), int(row[comes, edges + j])
        if leaves < nobody:
            hull[g, old] -= 1.0
            if hull[g, old] == 0.0:
                hull[g, 2 * edges + j] -= 1.0
        if comes < nobody:
            hull[g, new] += 1.0
            if hull[g, new] == 1.0:
                hull[g, 2 * edges + j] += 1.0


@kernel
def count_costs(p: Items, s: Clusters, k: int, lack: float) -> None:
    """The cost of each group: people times NCP, and `lack` for each person short of k; in place."""
    nobody = len(p.people) - 1
    for g in range(len(s.cost)):
        people = s.people[g]
        s.cost[g] = people * ncp(p.row, p.share, s.hull, g, nobody, nobody) if people else 0.0
        if 0 < people < k:
            s.cost[g] += lack * (k - people)


@kernel
def apart(row: Floats, share: Floats, a: int, b: int) -> float:
    """NCP of the region around two items."""
    total, edges = 0.0, row.shape[1] - len(share)
    for j in range(edges // 2):
        total += abs(row[a, j] - row[b, j])
    for j in range(len(share)):
        if row[a, edges + j] != row[b, edges + j]:
            total += 2 * share[j]
    return total


@kernel
def cluster(p: Items, s: Clusters, group: Ints, k: int) -> None:
    """Greedy k-member clustering: seeds far from the last one, then the cheapest item each time; in place.

    `group` comes with -1, and keeps it where fewer than k people are left.
    """
    row, share, hull, members, length = p.row, p.share, s.hull, s.members, s.length
    nobody, left = len(row) - 1, 0
    for t in range(nobody):
        left += p.people[t]
    # The compiler takes a literal for a case of its own.
    g, last, none = int(np.int64(0)), int(np.int64(0)), int(np.int64(-1))
    while left >= k:
        seed, most = none, -1.0
        for t in range(nobody):
            if group[t] < 0:
                distance = apart(row, share, last, t)
                if distance > most:
                    seed, most = t, distance
        t = seed
        while True:
            group[t] = g
            exchange(row, hull, members, length, len(share), g, nobody, t)
            s.people[g] += p.people[t]
            left -= p.people[t]
            if s.people[g] >= k:
                break
            least = np.inf
            for other in range(nobody):
                if group[other] < 0:
                    cost = ncp(row, share, hull, g, nobody, other)
                    if cost < least:
                        t, least = other, cost
        g, last = g + 1, seed


@kernel
def share_out(p: Items, s: Clusters, group: Ints, k: int) -> bool:
    """Put items without a group of k people where they cost least, in place; whether there was such a group for all."""
    row, share, hull, members, length = p.row, p.share, s.hull, s.members, s.length
    nobody, none = len(row) - 1, int(np.int64(-1))
    for t in range(nobody):
        g = group[t]
        if g >= 0 and s.people[g] >= k:
            continue
        chosen, least = none, np.inf
        for h in range(len(length)):
            people = s.people[h]
            if people >= k and length[h] < members.shape[1]:
                more = (people + p.people[t]) * ncp(row, share, hull, h, nobody, t)
                more -= people * ncp(row, share, hull, h, nobody, nobody)
                if more < least:
                    chosen, least = h, more
        if chosen < 0:
            return False
        if g >= 0:
            exchange(row, hull, members, length, len(share), g, t, nobody)
            s.people[g] -= p.people[t]
        exchange(row, hull, members, length, len(share), chosen, nobody, t)
        s.people[chosen] += p.people[t]
        group[t] = chosen
    return True


@kernel
def neighbours(p: Items, out: Ints, distance: Floats) -> None:
    """The nearest other items of each item, nearest first, into `out` (N, m); `distance` (m,) is room to work in."""
    row, share = p.row, p.share
    n, m = out.shape
    for a in range(n):
        for i in range(m):
            distance[i] = np.inf
        for b in range(n):
            d = apart(row, share, a, b)
            if b == a or d >= distance[m - 1]:
                continue
            i = m - 1
            while i > 0 and d < distance[i - 1]:
                distance[i], out[a, i] = distance[i - 1], out[a, i - 1]
                i -= 1
            distance[i], out[a, i] = d, b


@kernel
def improve(p: Items, s: Clusters, group: Ints, near: Ints, chances: Draws, k: int, heat: float, lack: float) -> None:
    """Move items to groups of near items, or swap them with a member, once per draw; in place.

    `chances` (I, 4) in [0, 1). A change may cost up to a random share of `heat`; a group may be short of k people, at
    `lack` each, so that groups can come into being and go.
    """
    row, share, hull, members, length, people = p.row, p.share, s.hull, s.members, s.length, s.people
    n, m = near.shape
    empty, none = int(np.int64(0)), int(np.int64(-1))
    for i in range(len(chances)):
        a, u, v = int(chances[i, 0] * n), chances[i, 1], chances[i, 3]
        g, h = group[a], group[near[a, int(u * u * m)]]
        if v < NEW:
            for _ in range(len(length)):
                empty = empty + 1 if empty + 1 < len(length) else 0
                if length[empty] == 0:
                    h = empty
                    break
        if g == h:
            continue
        most, other, mine, theirs = s.cost[g] + s.cost[h] + heat * chances[i, 2], none, 0.0, 0.0
        for swap in range(2):
            if length[h] == (0 if swap else members.shape[1]):
                continue
            b = members[h, int(v * length[h])] if swap else n
            more = p.people[a] - p.people[b]
            left, come = people[g] - more, people[h] + more
            here, there = lack * max(k - left, 0) if left > 0 else 0.0, lack * max(k - come, 0)
            if here + there >= most:
                continue
            if left > 0:
                here += left * ncp(row, share, hull, g, a, b)
            if here + there >= most:
                continue
            there += come * ncp(row, share, hull, h, b, a)
            if here + there < most:
                most, other, mine, theirs = here + there, b, here, there
        if other >= 0:
            exchange(row, hull, members, length, len(share), g, a, other)
            exchange(row, hull, members, length, len(share), h, other, a)
            more = p.people[a] - p.people[other]
            people[g] -= more
            people[h] += more
            group[a], s.cost[g], s.cost[h] = h, mine, theirs
            if other < n:
                group[other] = g
