"""MDAV and V-MDAV on distinct points with weights: whoever is equal stays together, and ties go to the first point.

Points must stand in an order of their content: then groups are a function of which points there are and how often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.protect.mondrian.constraints import Floats, Ints, Longs, inner, kernel

APART = 2.0  # the squared distance that two different labels add, as far apart as two people are in a number


class Points(NamedTuple):
    """Distinct points: standardised numbers, codes of labels, and how many rows each stands for."""

    numbers: Floats
    labels: Ints
    weight: Longs


@inner
def _between(points: Points, a: int, b: int) -> float:
    """The squared distance of two points."""
    far = 0.0
    for j in range(points.numbers.shape[1]):
        step = points.numbers[a, j] - points.numbers[b, j]
        far += step * step
    for j in range(points.labels.shape[1]):
        if points.labels[a, j] != points.labels[b, j]:
            far += APART
    return far


@inner
def _from_mean(points: Points, left: Longs, m: int, shares: Floats) -> Floats:
    """Squared distances of the points left from their mean; a label is compared with the shares of all labels."""
    q, labels = points.numbers.shape[1], points.labels.shape[1]
    mean, total = np.zeros(q), 0.0
    shares[:] = 0.0
    for i in range(m):
        x = left[i]
        w = points.weight[x]
        total += w
        for j in range(q):
            mean[j] += w * points.numbers[x, j]
        for j in range(labels):
            shares[j, points.labels[x, j]] += w
    mean /= total
    shares /= total
    spread = np.zeros(labels)
    for j in range(labels):
        for v in range(shares.shape[1]):
            spread[j] += shares[j, v] * shares[j, v]
    far = np.zeros(m)
    for i in range(m):
        x = left[i]
        for j in range(q):
            step = points.numbers[x, j] - mean[j]
            far[i] += step * step
        for j in range(labels):
            far[i] += (1.0 - 2.0 * shares[j, points.labels[x, j]] + spread[j]) * APART / 2.0
    return far


@inner
def _farthest_from(points: Points, left: Longs, m: int, a: int) -> int:
    best, found = -1.0, int(left[0])
    for i in range(m):
        far = _between(points, left[i], a)
        if far > best:
            best, found = far, int(left[i])
    return found


@inner
def _group_around(points: Points, left: Longs, m: int, a: int, k: int, group: Longs, g: int, far: Floats) -> int:
    """Put the nearest points into group g until they weigh k; how many points are left.

    `far` gets the squared distance of each point that was left.
    """
    room = min(k, m)
    near, which, held = np.empty(room), np.empty(room, np.int64), 0
    for i in range(m):
        x = left[i]
        d = _between(points, x, a)
        far[x] = d
        if held == room and d >= near[held - 1]:
            continue
        at = held if held < room else held - 1
        while at > 0 and near[at - 1] > d:
            near[at], which[at] = near[at - 1], which[at - 1]
            at -= 1
        near[at], which[at] = d, x
        held = min(held + 1, room)
    weight = 0
    for i in range(held):
        group[which[i]] = g
        weight += points.weight[which[i]]
        if weight >= k:
            break
    return _still_left(left, m, group)


@inner
def _still_left(left: Longs, m: int, group: Longs) -> int:
    kept = 0
    for i in range(m):
        if group[left[i]] < 0:
            left[kept] = left[i]
            kept += 1
    return kept


@inner
def _weight_left(points: Points, left: Longs, m: int) -> int:
    weight = 0
    for i in range(m):
        weight += points.weight[left[i]]
    return weight


@inner
def _join_nearest(points: Points, left: Longs, m: int, group: Longs) -> None:
    """Fewer than k are left: each joins the group of the nearest point that has one."""
    joined = np.empty(m, np.int64)
    for i in range(m):
        best = np.inf
        for x in range(len(group)):
            if group[x] >= 0:
                d = _between(points, left[i], x)
                if d < best:
                    best, joined[i] = d, group[x]
    for i in range(m):
        group[left[i]] = joined[i]


@kernel
def mdav(points: Points, sizes: int, k: int) -> Longs:
    """The group of each point, each of weight k at least; `sizes` is the largest number of labels of a column."""
    n = len(points.weight)
    group, left, far = np.full(n, -1, np.int64), np.arange(n), np.empty(n)
    shares = np.zeros((points.labels.shape[1], sizes))
    m, g, weight = n, 0, _weight_left(points, left, n)
    while weight >= 3 * k:
        r = left[np.argmax(_from_mean(points, left, m, shares))]
        s = _farthest_from(points, left, m, r)
        m = _group_around(points, left, m, r, k, group, g, far)
        g, weight = g + 1, _weight_left(points, left, m)
        if weight < k:
            break
        if group[s] >= 0:
            s = _farthest_from(points, left, m, r)
        m = _group_around(points, left, m, s, k, group, g, far)
        g, weight = g + 1, _weight_left(points, left, m)
    if weight >= 2 * k:
        r = left[np.argmax(_from_mean(points, left, m, shares))]
        m = _group_around(points, left, m, r, k, group, g, far)
        g, weight = g + 1, _weight_left(points, left, m)
    if weight >= k:
        for i in range(m):
            group[left[i]] = g
    elif m > 0:
        _join_nearest(points, left, m, group)
    return group


@inner
def _nearest_to_group(
    points: Points, left: Longs, m: int, members: Longs, size: int, reach: float, far: Floats
) -> tuple[int, float]:
    """The point left that is nearest to any member, and its squared distance.

    `far` holds squared distances from the first member, `reach` how far the others are from it: what lies beyond
    cannot be nearer.
    """
    first, start = left[0], np.inf
    for i in range(m):
        if far[left[i]] < start:
            first, start = left[i], far[left[i]]
    best, found = start, first
    for i in range(m):
        x = left[i]
        if np.sqrt(far[x]) - reach > np.sqrt(best) * (1.0 + 1e-12):
            continue
        for j in range(size):
            d = _between(points, x, members[j])
            if d < best or (d == best and x < found):
                best, found = d, x
    return found, best


@kernel
def v_mdav(points: Points, sizes: int, k: int, gamma: float) -> Longs:
    """The group of each point: like `mdav`, but a group takes in who is near to it and not to others, below 2k."""
    n = len(points.weight)
    group, left, far = np.full(n, -1, np.int64), np.arange(n), np.empty(n)
    shares = np.zeros((points.labels.shape[1], sizes))
    from_outside = np.argsort(-_from_mean(points, left, n, shares), kind="mergesort")
    members = np.empty(n, np.int64)
    m, g, weight, next_ = n, 0, _weight_left(points, left, n), 0
    while weight >= k:
        while group[from_outside[next_]] >= 0:
            next_ += 1
        e = from_outside[next_]
        old = left[:m].copy()
        m = _group_around(points, left, m, e, k, group, g, far)
        size, held, reach = 0, 0, 0.0
        for i in range(len(old)):
            if group[old[i]] == g:
                members[size] = old[i]
                size, held = size + 1, held + points.weight[old[i]]
                reach = max(reach, np.sqrt(far[old[i]]))
        while m > 0:
            x, inside = _nearest_to_group(points, left, m, members, size, reach, far)
            if held + points.weight[x] > 2 * k - 1:
                break
            outside = np.inf
            for i in range(m):
                if left[i] != x:
                    outside = min(outside, _between(points, left[i], x))
            if not np.sqrt(inside) < gamma * np.sqrt(outside):
                break
            group[x], members[size] = g, x
            size, held, reach = size + 1, held + points.weight[x], max(reach, np.sqrt(far[x]))
            m = _still_left(left, m, group)
        g, weight = g + 1, _weight_left(points, left, m)
    if m > 0:
        _join_nearest(points, left, m, group)
    return group
