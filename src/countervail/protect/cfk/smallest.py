"""The smallest region around a counterfactual, for one and for many."""

from __future__ import annotations

import numpy as np
from numba import njit

from countervail.protect.cfk.bounds import (
    GREEDY_TUPLES,
    GREEDY_TUPLES_WIDE,
    _distances,
    _greedy,
    _kth_distance,
    _nearest,
    _own_tuple,
    _reachable,
    _step_costs,
)
from countervail.protect.cfk.branch_and_bound import _search
from countervail.protect.cfk.compact import _delocalise, _localise
from countervail.protect.cfk.regions import (
    TOLERANCE,
    Bools,
    Codes,
    Floats,
    Ints,
    _fill_intervals,
    _point_region,
    _widening_forbidden,
    region_cost,
)

# Limits of successive searches, between the first lower and upper bound. Below a low limit a search is quick; a region
# it finds is the optimum, and if there is none the limit is a proven bound. The last one has to be 1.
LIMIT_SHARES = (0.25, 0.5, 1.0)


@njit(cache=True, nogil=True)
def _incumbent(
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
) -> tuple[bool, Ints, Ints, Bools]:
    """A first region, from the nearest tuples; False if the greedy search finds none."""
    longest = 0.0
    for j in range(costs.shape[0]):
        longest += costs[j].max()
    low, high, member = _point_region(centre, positions.shape[1])
    tried = 0
    for atleast in (GREEDY_TUPLES, GREEDY_TUPLES_WIDE):
        near = _nearest(distance, counts, longest, atleast, k)
        if near.shape[0] == tried:
            break
        tried = near.shape[0]
        feasible, low, high, member = _greedy(
            tuples[near], counts[near], interval, positions, unit, centre, k, forbidden, costs
        )
        if feasible:
            return True, low, high, member
    return False, low, high, member


@njit(cache=True, nogil=True)
def _largest_cost(interval: Bools, sizes: Ints, positions: Floats, unit: Floats) -> float:
    cost = 0.0
    for j in range(interval.shape[0]):
        last = sizes[j] - 1
        cost += unit[j] * (positions[j, last] - positions[j, 0] if interval[j] else sizes[j])
    return cost


@njit(cache=True, nogil=True)
def smallest_region(
    tuples: Codes,
    counts: Ints,
    interval: Bools,
    sizes: Ints,
    positions: Floats,
    unit: Floats,
    centre: Ints,
    k: int,
    forbidden: Ints,
    node_budget: int,
) -> tuple[float, Ints, Ints, Bools, int, float]:
    """Region of least NCP with the centre, at least k rows and none of the forbidden cells int64 (F, q).

    Returns (cost, low, high, member, nodes, bound). Without a region the cost is inf and the region is the centre.
    `bound` is a lower bound on the optimum, proven up to TOLERANCE. It equals the cost (inf: there is no region) unless
    the node budget was spent; then the cost is that of the best region found, inf if none was. A node is one choice
    tried for one attribute, and at most VISITS_PER_NODE tuples looked at; the budget is checked between choices.
    """
    values = positions.shape[1]
    low, high, member = _point_region(centre, values)
    if counts.sum() < k or _widening_forbidden(centre.astype(np.int32), interval, low, high, member, forbidden):
        return np.inf, low, high, member, 0, np.inf
    own = _own_tuple(tuples, centre)
    if k <= 0 or (own >= 0 and counts[own] >= k):
        return 0.0, low, high, member, 0, 0.0
    costs = _step_costs(interval, sizes, positions, unit, centre)
    distance = _distances(tuples, costs)
    feasible, first_low, first_high, first_member = _incumbent(
        tuples, counts, distance, interval, positions, unit, centre, k, forbidden, costs
    )
    upper, stop = np.inf, _largest_cost(interval, sizes, positions, unit)
    if feasible:
        low, high, member = first_low, first_high, first_member
        upper = stop = region_cost(interval, sizes, positions, unit, low, high, member)
    reach = _reachable(tuples, distance, upper - TOLERANCE, interval, centre, values, forbidden)
    reach_distance, reach_counts = distance[reach], counts[reach]
    start = _kth_distance(reach_distance, reach_counts, k)
    nodes, bound, cut_short = 0, min(start, upper), False
    for share in LIMIT_SHARES:
        if bound >= upper - TOLERANCE:
            break
        final = share == 1.0
        if cut_short and not final:
            continue
        limit = upper if final else start + share * (stop - start)
        near = reach_distance < limit - TOLERANCE
        open_bound = np.inf
        if reach_counts[near].sum() >= k:
            p = _localise(tuples, counts, reach[near], interval, sizes, positions, unit, centre, forbidden)
            budget = node_budget - nodes if final else (node_budget - nodes) // 2
            found, near_low, near_high, chosen, used, open_bound = _search(p, k, limit, budget)
            nodes += used
            if found < np.inf:
                feasible, upper = True, found
                low, high, member = _delocalise(p, near_low, near_high, chosen, interval, centre, values)
        cut_short = open_bound < np.inf
        bound = max(bound, min(open_bound, limit, upper))
    if not feasible:
        return np.inf, low, high, member, nodes, bound
    _fill_intervals(interval, low, high, member)
    cost = region_cost(interval, sizes, positions, unit, low, high, member)
    return cost, low, high, member, nodes, cost if bound >= upper - TOLERANCE else min(bound, cost)


@njit(cache=True, nogil=True)
def smallest_regions(
    tuples: Codes,
    counts: Ints,
    interval: Bools,
    sizes: Ints,
    positions: Floats,
    unit: Floats,
    centres: Ints,
    k: int,
    forbidden: Ints,
    starts: Ints,
    node_budget: int,
) -> tuple[Floats, Ints, Ints, Bools, Ints, Floats]:
    """`smallest_region` for each of the E rows of `centres`, with forbidden[starts[e]:starts[e + 1]] forbidden."""
    number, q = centres.shape
    cost, bound, nodes = np.empty(number), np.empty(number), np.empty(number, np.int64)
    low, high = np.empty((number, q), np.int64), np.empty((number, q), np.int64)
    member = np.empty((number, q, positions.shape[1]), np.bool_)
    for e in range(number):
        cells = forbidden[starts[e] : starts[e + 1]]
        cost[e], low[e], high[e], member[e], nodes[e], bound[e] = smallest_region(
            tuples, counts, interval, sizes, positions, unit, centres[e], k, cells, node_budget
        )
    return cost, low, high, member, nodes, bound
