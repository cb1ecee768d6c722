"""Before the search: distances, an upper bound, and the part of the problem that the search can reach.

See regions for the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.protect.cfk.regions import _inside, _point_region, _widen, _widening_forbidden

GREEDY_TUPLES = 300
GREEDY_TUPLES_WIDE = 3000
DISTANCE_BINS = 2048


@kernel
def _own_tuple(tuples: Codes, centre: Ints) -> int:
    """Index of the centre's tuple by bisection, or -1."""
    first, last = 0, tuples.shape[0] - 1
    while first <= last:
        middle: int = (first + last) // 2
        order = 0
        for j in range(tuples.shape[1]):
            if tuples[middle, j] != centre[j]:
                order = -1 if tuples[middle, j] < centre[j] else 1
                break
        if order == 0:
            return middle
        if order < 0:
            first = middle + 1
        else:
            last = middle - 1
    return -1


@kernel
def _step_costs(interval: Bools, sizes: Ints, positions: Floats, unit: Floats, centre: Ints) -> Floats:
    """Cost, per attribute and code, of a region that holds the centre and this code."""
    costs = np.zeros(positions.shape)
    for j in range(interval.shape[0]):
        for v in range(sizes[j]):
            if interval[j]:
                costs[j, v] = unit[j] * abs(positions[j, v] - positions[j, centre[j]])
            elif v != centre[j]:
                costs[j, v] = 2.0 * unit[j]
    return costs


@kernel
def _distances(tuples: Codes, costs: Floats) -> Floats:
    distance = np.empty(tuples.shape[0])
    for t in range(tuples.shape[0]):
        total = 0.0
        for j in range(tuples.shape[1]):
            total += costs[j, tuples[t, j]]
        distance[t] = total
    return distance


@kernel
def _ranking(values: Floats) -> Ints:
    # The one sort of this module: each further kind and type costs a second of compilation.
    return np.argsort(values, kind="mergesort")


@kernel
def _kth_distance(distance: Floats, counts: Ints, k: int) -> float:
    """Distance within which there are k rows, inf if there are fewer."""
    rows = 0
    for x in _ranking(distance):
        rows += counts[x]
        if rows >= k:
            reached: float = distance[x]
            return reached
    return np.inf


@kernel
def _nearest(distance: Floats, counts: Ints, longest: float, atleast: int, k: int) -> Ints:
    """Nearest tuples, at least `atleast` of them with at least k rows where they exist, in table order."""
    scale = (DISTANCE_BINS - 1) / longest if longest > 0.0 else 0.0
    in_bin = np.zeros(DISTANCE_BINS, np.int64)
    rows_in_bin = np.zeros(DISTANCE_BINS, np.int64)
    for t in range(distance.shape[0]):
        b = int(distance[t] * scale)
        in_bin[b] += 1
        rows_in_bin[b] += counts[t]
    last, found, rows = -1, 0, 0
    while last < DISTANCE_BINS - 1 and (found < atleast or rows < k):
        last += 1
        found += in_bin[last]
        rows += rows_in_bin[last]
    near = np.empty(found, np.int64)
    found = 0
    for t in range(distance.shape[0]):
        if int(distance[t] * scale) <= last:
            near[found] = t
            found += 1
    if found <= 2 * atleast:
        return near
    by_distance = _ranking(distance[near])
    found, rows = 0, 0
    while found < near.shape[0] and (found < atleast or rows < k):
        rows += counts[near[by_distance[found]]]
        found += 1
    kept = np.zeros(near.shape[0], np.bool_)
    for x in range(found):
        kept[by_distance[x]] = True
    return near[kept]


@kernel
def _update_extra(
    extra: Floats,
    cells: Codes,
    listed: Ints,
    j: int,
    is_interval: bool,
    positions: Floats,
    unit: float,
    low: int,
    high: int,
    member: Bools,
    width: int,
) -> None:
    """Refresh what the listed tuples' values of attribute j would add to the cost of the region."""
    for t in listed:
        v = cells[t, j]
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
    centre: Ints,
    k: int,
    forbidden: Ints,
    costs: Floats,
) -> tuple[bool, Ints, Ints, Bools]:
    """Widen by the tuple that adds least to the cost until k rows fit; False if that comes to an end."""
    q = centre.shape[0]
    low, high, member = _point_region(centre, positions.shape[1])
    width = np.ones(q, np.int64)
    extra = costs.copy()
    outside = np.arange(cells.shape[0])
    left, rows = cells.shape[0], 0
    while True:
        best, chosen, kept = np.inf, -1, 0
        for x in range(left):
            t = outside[x]
            added = 0.0
            for j in range(q):
                added += extra[j, cells[t, j]]
            if added == 0.0 and _inside(cells[t], interval, low, high, member):
                rows += counts[t]
                continue
            outside[kept] = t
            if added < best:
                best, chosen = added, kept
            kept += 1
        left = kept
        if rows >= k:
            return True, low, high, member
        if chosen < 0:
            return False, low, high, member
        t = outside[chosen]
        if _widening_forbidden(cells[t], interval, low, high, member, forbidden):
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
                extra[j],
                cells,
                outside[:left],
                j,
                interval[j],
                positions[j],
                unit[j],
                low[j],
                high[j],
                member[j],
                width[j],
            )


@kernel
def _reachable(
    tuples: Codes, distance: Floats, limit: float, interval: Bools, centre: Ints, values: int, forbidden: Ints
) -> Ints:
    """Tuples nearer than `limit` that a region without forbidden cells can hold together with the centre."""
    low, high, member = _point_region(centre, values)
    found = 0
    for t in range(distance.shape[0]):
        found += distance[t] < limit
    reach = np.empty(found, np.int64)
    found = 0
    for t in range(distance.shape[0]):
        if distance[t] < limit and not _widening_forbidden(tuples[t], interval, low, high, member, forbidden):
            reach[found] = t
            found += 1
    return reach[:found]


class _Local(NamedTuple):
    """The part of the problem that can be reached; attributes in search order."""

    order: Ints  # caller's attribute of each level
    names: Ints  # (q, W) caller's code of each local code
    interval: Bools
    sizes: Ints
    positions: Floats  # (q, W)
    unit: Floats
    centre: Ints
    codes: Codes  # (q, n)
    counts: Ints
    rest: Floats  # (q + 1, n) least cost of the attributes from this level on in a region with the tuple
    forbidden: Ints  # (F, q)
    settled: Ints  # (F,) last level at which the cell differs from the centre


@kernel
def search_order(interval: Bools, sizes: Ints, centre: Ints) -> Ints:
    """Attributes by number of choices, fewest first: the last level is solved in closed form."""
    q = interval.shape[0]
    choices = np.empty(q)
    for j in range(q):
        if interval[j]:
            choices[j] = np.log2((centre[j] + 1.0) * (sizes[j] - centre[j]))
        else:
            choices[j] = sizes[j] - 1.0
    order: Ints = _ranking(choices)
    return order


@kernel
def _relevant(tuples: Codes, reach: Ints, interval: Bools, centre: Ints, forbidden: Ints, present: Bools) -> Ints:
    """Mark the values in reach; return the forbidden cells that some region over these values contains."""
    q = centre.shape[0]
    least, most = centre.copy(), centre.copy()
    for j in range(q):
        present[j, centre[j]] = True
    for t in reach:
        for j in range(q):
            v = np.int64(tuples[t, j])
            present[j, v] = True
            least[j] = min(least[j], v)
            most[j] = max(most[j], v)
    relevant = np.empty(forbidden.shape[0], np.int64)
    found = 0
    for f in range(forbidden.shape[0]):
        within = True
        for j in range(q):
            v = forbidden[f, j]
            within = least[j] <= v <= most[j] if interval[j] else present[j, v]
            if not within:
                break
        if within:
            relevant[found] = f
            found += 1
    return relevant[:found]


@kernel
def _localise(
    tuples: Codes,
    counts: Ints,
    reach: Ints,
    interval: Bools,
    sizes: Ints,
    positions: Floats,
    unit: Floats,
    centre: Ints,
    forbidden: Ints,
) -> _Local:
    q, n = centre.shape[0], reach.shape[0]
    present = np.zeros(positions.shape, np.bool_)
    relevant = _relevant(tuples, reach, interval, centre, forbidden, present)
    for f in relevant:
        for j in range(q):
            present[j, forbidden[f, j]] = True
    rank = np.empty(positions.shape, np.int32)
    near_sizes, near_centre = np.zeros(q, np.int64), np.empty(q, np.int64)
    for j in range(q):
        for v in range(sizes[j]):
            if present[j, v]:
                rank[j, v] = near_sizes[j]
                near_sizes[j] += 1
        near_centre[j] = rank[j, centre[j]]
    order = search_order(interval, near_sizes, near_centre)
    names = np.zeros((q, near_sizes.max()), np.int64)
    places = np.zeros(names.shape)
    codes, rest = np.empty((q, n), np.int32), np.zeros((q + 1, n))
    cells, settled = np.empty((relevant.shape[0], q), np.int64), np.full(relevant.shape[0], -1)
    for i in range(q):
        j = order[i]
        for v in range(sizes[j]):
            if present[j, v]:
                names[i, rank[j, v]] = v
                places[i, rank[j, v]] = positions[j, v]
        for x in range(n):
            codes[i, x] = rank[j, tuples[reach[x], j]]
        for x in range(relevant.shape[0]):
            cells[x, i] = rank[j, forbidden[relevant[x], j]]
            if cells[x, i] != near_centre[j]:
                settled[x] = i
    costs = _step_costs(interval[order], near_sizes[order], places, unit[order], near_centre[order])
    for i in range(q - 1, -1, -1):
        for x in range(n):
            rest[i, x] = rest[i + 1, x] + costs[i, codes[i, x]]
    return _Local(
        order,
        names,
        interval[order],
        near_sizes[order],
        places,
        unit[order],
        near_centre[order],
        codes,
        counts[reach],
        rest,
        cells,
        settled,
    )


@kernel
def _delocalise(
    p: _Local, low: Ints, high: Ints, chosen: Bools, interval: Bools, centre: Ints, values: int
) -> tuple[Ints, Ints, Bools]:
    """The region in the caller's codes, shrunk to the tuples inside it: free attributes may be wider than needed."""
    tight_low, tight_high, member = _point_region(centre, values)
    width = np.ones(centre.shape[0], np.int64)
    cell, local_cell = np.empty(centre.shape[0], np.int32), np.empty(centre.shape[0], np.int32)
    for t in range(p.counts.shape[0]):
        for i in range(centre.shape[0]):
            local_cell[i] = p.codes[i, t]
        if _inside(local_cell, p.interval, low, high, chosen):
            for i in range(centre.shape[0]):
                cell[p.order[i]] = p.names[i, local_cell[i]]
            _widen(cell, interval, tight_low, tight_high, member, width)
    return tight_low, tight_high, member
