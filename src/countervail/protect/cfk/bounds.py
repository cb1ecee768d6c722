"""Before the search: distances, an upper bound, and the part of the problem that the search can reach.

See regions for the arrays. What is done once or twice per region is left to numpy; loops in which a step depends on the
last one are compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.core._kernels import inner, kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.protect.cfk.regions import inside, point_region, widening_forbidden

GREEDY_TUPLES = 300
GREEDY_TUPLES_WIDE = 3000
DISTANCE_BINS = 2048


def find_own(tuples: Codes, centre: Ints) -> int:
    """Index of the centre's tuple by bisection, or -1."""
    first, last, wanted = 0, len(tuples) - 1, centre.tolist()
    while first <= last:
        middle = (first + last) // 2
        there = tuples[middle].tolist()
        if there == wanted:
            return middle
        if there < wanted:
            first = middle + 1
        else:
            last = middle - 1
    return -1


def step_costs(interval: Bools, sizes: Ints, positions: Floats, unit: Floats, centre: Ints) -> Floats:
    """Cost, per attribute and code, of a region that holds the centre and this code."""
    code = np.arange(positions.shape[1])
    away = unit[:, None] * np.abs(positions - positions[np.arange(len(centre)), centre][:, None])
    other = np.where(code != centre[:, None], 2.0 * unit[:, None], 0.0)
    out: Floats = np.where(code < sizes[:, None], np.where(interval[:, None], away, other), 0.0)
    return out


@kernel
def sum_costs(tuples: Codes, costs: Floats) -> Floats:
    """The distance of each tuple: the cost of a region that holds it and the centre."""
    distance = np.empty(tuples.shape[0])
    for t in range(tuples.shape[0]):
        total = 0.0
        for j in range(tuples.shape[1]):
            total += costs[j, tuples[t, j]]
        distance[t] = total
    return distance


def kth_distance(distance: Floats, counts: Ints, k: int) -> float:
    """Distance within which there are k rows, inf if there are fewer."""
    order = np.argsort(distance, kind="stable")
    rows = np.cumsum(counts[order])
    if not len(rows) or rows[-1] < k:
        return np.inf
    return float(distance[order[np.searchsorted(rows, k)]])


def find_nearest(distance: Floats, counts: Ints, longest: float, atleast: int, k: int) -> Ints:
    """Nearest tuples, at least `atleast` of them with at least k rows where they exist, in table order."""
    scale = (DISTANCE_BINS - 1) / longest if longest > 0.0 else 0.0
    bins = (distance * scale).astype(np.int64)
    found = np.cumsum(np.bincount(bins, minlength=DISTANCE_BINS))
    rows = np.cumsum(np.bincount(bins, weights=counts, minlength=DISTANCE_BINS))
    enough = (found >= atleast) & (rows >= k)
    near = np.flatnonzero(bins <= enough.argmax()) if enough.any() else np.arange(len(distance))
    if len(near) <= 2 * atleast:
        return near
    by_distance = np.argsort(distance[near], kind="stable")
    needed = int(np.searchsorted(np.cumsum(counts[near[by_distance]]), k)) + 1
    return near[np.sort(by_distance[: max(atleast, needed)])]


@inner
def _update_extra(
    extra: Floats,
    cells: Codes,
    outside: Ints,
    left: int,
    j: int,
    is_interval: bool,
    positions: Floats,
    unit: float,
    low: int,
    high: int,
    member: Bools,
    width: int,
) -> None:
    """Refresh what the values of the tuples still outside, of attribute j, would add to the cost of the region."""
    for x in range(left):
        v = cells[outside[x], j]
        if member[v]:
            extra[v] = 0.0
        elif is_interval:
            extra[v] = unit * max(positions[low] - positions[v], positions[v] - positions[high])
        else:
            extra[v] = unit if width > 1 else 2.0 * unit


@kernel
def _greedy(
    cells: Codes,
    counts: Ints,
    interval: Bools,
    positions: Floats,
    unit: Floats,
    low: Ints,
    high: Ints,
    member: Bools,
    extra: Floats,
    k: int,
    forbidden: Ints,
) -> bool:
    """Widen the region by the tuple that adds least to the cost until k rows fit; False if that comes to an end.

    `extra` starts as the cost of each code, and changes as the region does.
    """
    n, q = cells.shape
    width, outside = np.ones(q, np.int64), np.empty(n, np.int64)
    for x in range(n):
        outside[x] = x
    left, rows = n, 0
    while True:
        best, chosen, kept = np.inf, -1, 0
        for x in range(left):
            t = outside[x]
            added = 0.0
            for j in range(q):
                added += extra[j, cells[t, j]]
            if added == 0.0 and inside(cells[t], interval, low, high, member):
                rows += counts[t]
                continue
            outside[kept] = t
            if added < best:
                best, chosen = added, kept
            kept += 1
        left = kept
        if rows >= k:
            return True
        if chosen < 0:
            return False
        t = outside[chosen]
        if widening_forbidden(cells[t], interval, low, high, member, forbidden):
            # A larger region cannot take this tuple either.
            left -= 1
            for x in range(chosen, left):
                outside[x] = outside[x + 1]
            continue
        for j in range(q):
            v = cells[t, j]
            if member[j, v]:
                continue
            member[j, v] = True
            width[j] += 1
            while interval[j] and v < low[j]:
                low[j] -= 1
                member[j, low[j]] = True
            while interval[j] and v > high[j]:
                high[j] += 1
                member[j, high[j]] = True
            _update_extra(
                extra[j], cells, outside, left, j, interval[j], positions[j], unit[j], low[j], high[j], member[j],
                width[j],
            )  # fmt: skip


def first_region(
    tuples: Codes,
    counts: Ints,
    distance: Floats,
    interval: Bools,
    positions: Floats,
    unit: Floats,
    centre: Ints,
    k: int,
    forbidden: Ints,
    costs: Floats,
) -> tuple[Ints, Ints, Bools] | None:
    """A first region, from the nearest tuples; None if the greedy search finds none."""
    longest = 0.0
    for most in costs.max(axis=1).tolist():
        longest += most
    tried = 0
    for atleast in (GREEDY_TUPLES, GREEDY_TUPLES_WIDE):
        near = find_nearest(distance, counts, longest, atleast, k)
        if len(near) == tried:
            break
        tried = len(near)
        low, high, member = point_region(centre, positions.shape[1])
        cells, rows = tuples[near], counts[near]
        if _greedy(cells, rows, interval, positions, unit, low, high, member, costs.copy(), k, forbidden):
            return low, high, member
    return None


@kernel
def _mark_allowed(
    tuples: Codes, near: Ints, interval: Bools, low: Ints, high: Ints, member: Bools, forbidden: Ints, out: Bools
) -> None:
    for x in range(len(near)):
        out[x] = not widening_forbidden(tuples[near[x]], interval, low, high, member, forbidden)


def find_reachable(
    tuples: Codes, distance: Floats, limit: float, interval: Bools, centre: Ints, values: int, forbidden: Ints
) -> Ints:
    """Tuples nearer than `limit` that a region without forbidden cells can hold together with the centre."""
    near = np.flatnonzero(distance < limit)
    if not len(forbidden):
        return near
    allowed = np.empty(len(near), np.bool_)
    _mark_allowed(tuples, near, interval, *point_region(centre, values), forbidden, allowed)
    return near[allowed]


class Local(NamedTuple):
    """The part of the problem that can be reached; attributes in search order."""

    order: Ints  # caller's attribute of each level
    names: Ints  # (q, W) caller's code of each local code
    facts: Ints  # (3, q) whether it is an interval, how many codes there are, the centre's
    positions: Floats  # (q, W)
    unit: Floats
    codes: Codes  # (q, n)
    counts: Ints
    rest: Floats  # (q + 1, n) least cost of the attributes from this level on in a region with the tuple
    forbidden: Ints  # (F, q)
    settled: Ints  # (F,) last level at which the cell differs from the centre


INTERVAL, SIZE, CENTRE = 0, 1, 2


def search_order(interval: Bools, sizes: Ints, centre: Ints) -> Ints:
    """Attributes by number of choices, fewest first: the last level is solved in closed form."""
    choices = np.where(interval, np.log2((centre + 1.0) * (sizes - centre)), sizes - 1.0)
    return np.argsort(choices, kind="stable")


def localise(
    tuples: Codes,
    counts: Ints,
    reach: Ints,
    interval: Bools,
    sizes: Ints,
    positions: Floats,
    unit: Floats,
    centre: Ints,
    forbidden: Ints,
) -> Local:
    """The codes, tuples and forbidden cells within reach, renumbered."""
    q, values = positions.shape
    every, near = np.arange(q), tuples[reach]
    present = np.zeros((q, values), np.bool_)
    present[every, centre] = True
    present.reshape(-1)[near + every * values] = True
    cells = forbidden
    if len(cells):
        # Those that some region over these values contains.
        least, most = present.argmax(axis=1), values - 1 - present[:, ::-1].argmax(axis=1)
        within = np.where(interval, (least <= cells) & (cells <= most), present[every, cells])
        cells = cells[within.all(axis=1)]
        present.reshape(-1)[cells + every * values] = True
    rank = present.cumsum(axis=1) - 1
    near_sizes, near_centre = rank[:, -1] + 1, rank[every, centre]
    order = search_order(interval, near_sizes, near_centre)
    rank, size = rank[order], int(near_sizes.max())
    level, known = np.nonzero(present[order])
    names, places = np.zeros((q, size), np.int64), np.zeros((q, size))
    to = rank[level, known]
    names[level, to] = known
    places[level, to] = positions[order[level], known]
    codes = np.ascontiguousarray(rank.reshape(-1)[near[:, order] + every * values].T.astype(np.int32))
    facts = np.empty((3, q), np.int64)
    facts[INTERVAL], facts[SIZE], facts[CENTRE] = interval[order], near_sizes[order], near_centre[order]
    local = np.ascontiguousarray(rank[every, cells[:, order]])  # one signature, whatever is forbidden
    settled = np.full(len(cells), -1, np.int64)
    if len(cells):
        differs = local != facts[CENTRE]
        settled[:] = np.where(differs.any(axis=1), q - 1 - differs[:, ::-1].argmax(axis=1), -1)
    costs = step_costs(interval[order], facts[SIZE], places, unit[order], facts[CENTRE])
    rest = np.zeros((q + 1, len(reach)))
    rest[:q] = costs[every[:, None], codes][::-1].cumsum(axis=0)[::-1]
    return Local(order, names, facts, places, unit[order], codes, counts[reach], rest, local, settled)


def delocalise(p: Local, low: Ints, high: Ints, chosen: Bools, centre: Ints, values: int) -> tuple[Ints, Ints, Bools]:
    """The region in the caller's codes, shrunk to the tuples inside it: free attributes may be wider than needed."""
    tight_low, tight_high, member = point_region(centre, values)
    held = np.ones(len(p.counts), np.bool_)
    for i, codes in enumerate(p.codes):
        held &= (low[i] <= codes) & (codes <= high[i]) if p.facts[INTERVAL, i] else chosen[i, codes]
    for i, j in enumerate(p.order.tolist()):
        found = p.names[i, p.codes[i, held]]
        if p.facts[INTERVAL, i]:
            tight_low[j] = found.min(initial=centre[j])
            tight_high[j] = found.max(initial=centre[j])
        else:
            member[j, found] = True
    return tight_low, tight_high, member
