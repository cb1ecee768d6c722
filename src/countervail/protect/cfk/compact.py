"""The part of a problem that a search can reach: attributes in search order, codes renumbered to their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from countervail.protect.cfk.bounds import _ranking, _step_costs
from countervail.protect.cfk.regions import Bools, Codes, Floats, Ints, _inside, _point_region, _widen


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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
