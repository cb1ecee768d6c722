"""The smallest region around a counterfactual: branch and bound over one attribute after the other.

See regions for the arrays, bounds for the codes of a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.protect.cfk.bounds import (
    GREEDY_TUPLES,
    GREEDY_TUPLES_WIDE,
    _delocalise,
    _distances,
    _greedy,
    _kth_distance,
    _Local,
    _localise,
    _nearest,
    _own_tuple,
    _ranking,
    _reachable,
    _step_costs,
)
from countervail.protect.cfk.regions import (
    TOLERANCE,
    _fill_intervals,
    _point_region,
    _widening_forbidden,
    region_cost,
)

# A node stands for this many tuple visits, so that a node budget bounds the time whatever the size of the table.
VISITS_PER_NODE = 256


class _Frames(NamedTuple):
    """What the depth-first search knows at each level."""

    tuples: Codes  # (q, n) tuples still in play, and how many
    n_tuples: Ints
    active: Codes  # (q, F) forbidden cells inside the levels above, and how many
    n_active: Ints
    spent: Floats  # cost of the levels above
    value: Ints  # (q, W) values in play; of a set without the centre's, commonest first
    n_value: Ints
    rows: Ints  # (q, W + 1) running sum of the rows of `value`
    own: Ints  # interval: index of the centre in `value`; set: rows with the centre's value
    step: Ints  # (q, W) interval: next upper end of each lower end; set: indices of the values chosen
    width: Ints  # set: how many are chosen besides the centre's, -1 before the first choice
    low: Ints
    high: Ints
    chosen: Bools  # (q, W)


@kernel
def _first_frame(p: _Local) -> _Frames:
    q, n = p.codes.shape
    cells, values = p.forbidden.shape[0], p.names.shape[1]
    frames = _Frames(
        np.empty((q, n), np.int32),
        np.zeros(q, np.int64),
        np.empty((q, cells), np.int32),
        np.zeros(q, np.int64),
        np.zeros(q),
        np.empty((q, values), np.int64),
        np.zeros(q, np.int64),
        np.zeros((q, values + 1), np.int64),
        np.zeros(q, np.int64),
        np.empty((q, values), np.int64),
        np.zeros(q, np.int64),
        p.centre.copy(),
        p.centre.copy(),
        np.zeros((q, values), np.bool_),
    )
    for x in range(n):
        frames.tuples[0, x] = x
    for x in range(cells):
        frames.active[0, x] = x
    frames.n_tuples[0], frames.n_active[0] = n, cells
    return frames


@kernel
def _histogram(p: _Local, f: _Frames, level: int, rows: Ints) -> None:
    for v in range(p.sizes[level]):
        rows[v] = 0
    for x in range(f.n_tuples[level]):
        t = f.tuples[level, x]
        rows[p.codes[level, t]] += p.counts[t]


@kernel
def _open_interval(p: _Local, f: _Frames, level: int, k: int, rows: Ints) -> None:
    """Set every lower end to the first upper end that leaves k rows."""
    n = 0
    for v in range(p.sizes[level]):
        if v == p.centre[level]:
            f.own[level] = n
        elif rows[v] == 0:
            continue
        f.value[level, n] = v
        f.rows[level, n + 1] = f.rows[level, n] + rows[v]
        n += 1
    f.n_value[level] = n
    upper = n
    # Lower ends from the outermost: the further out, the sooner k rows are reached.
    for a in range(f.own[level], -1, -1):
        while upper > f.own[level] and f.rows[level, upper] - f.rows[level, a] >= k:
            upper -= 1
        f.step[level, a] = upper
    if p.unit[level] == 0.0 and f.n_active[level] == 0:
        # Free and harmless: the whole range is as good as any part of it.
        for a in range(f.own[level] + 1):
            f.step[level, a] = n - 1 if a == 0 else n


@kernel
def _open_set(p: _Local, f: _Frames, level: int, rows: Ints) -> None:
    n = 0
    for v in range(p.sizes[level]):
        if rows[v] > 0 and v != p.centre[level]:
            f.step[level, n] = v
            n += 1
    rarity = np.empty(n)
    for i in range(n):
        rarity[i] = -rows[f.step[level, i]]
    commonest = _ranking(rarity)
    for i in range(n):
        f.value[level, i] = f.step[level, commonest[i]]
        f.rows[level, i + 1] = f.rows[level, i] + rows[f.value[level, i]]
    f.n_value[level], f.own[level], f.width[level] = n, rows[p.centre[level]], -1
    if p.unit[level] == 0.0 and f.n_active[level] == 0 and n > 0:
        # As for intervals; the last choice of n - 1 values is followed by the choice of all.
        f.width[level] = n - 1
        for i in range(n - 1):
            f.step[level, i] = i + 1


@kernel
def _cheapest_interval(p: _Local, f: _Frames, level: int) -> tuple[float, int]:
    """Cost of the cheapest interval not tried yet, and the index of its lower end (-1 if none is left)."""
    best, lower = np.inf, -1
    for a in range(f.own[level] + 1):
        b = f.step[level, a]
        if b < f.n_value[level]:
            length = p.positions[level, f.value[level, b]] - p.positions[level, f.value[level, a]]
            if length < best:
                best, lower = length, a
    return f.spent[level] + p.unit[level] * best if lower >= 0 else np.inf, lower


@kernel
def _set_cost(p: _Local, f: _Frames, level: int) -> float:
    width = f.width[level]
    if width > f.n_value[level]:
        return np.inf
    cost: float = f.spent[level] + (p.unit[level] * (width + 1) if width > 0 else 0.0)
    return cost


@kernel
def _advance_set(f: _Frames, level: int, k: int) -> None:
    """Next choice of values with k rows: by size, then in the order of `value`; too wide a width if none is left."""
    step, rows, n, width = f.step[level], f.rows[level], f.n_value[level], f.width[level]
    kept = f.own[level]
    for i in range(width):
        kept += rows[step[i] + 1] - rows[step[i]]
    for i in range(width - 1, -1, -1):
        kept -= rows[step[i] + 1] - rows[step[i]]
        first = step[i] + 1
        last = first + width - i
        # Values come commonest first: if the next ones in line are too few rows, so are all later ones.
        if last <= n and kept + rows[last] - rows[first] >= k:
            for x in range(i, width):
                step[x] = first + x - i
            return
    for wider in range(width + 1, n + 1):
        if f.own[level] + rows[wider] >= k:
            for x in range(wider):
                step[x] = x
            f.width[level] = wider
            return
    f.width[level] = n + 1


@kernel
def _take(p: _Local, f: _Frames, level: int, k: int, limit: float) -> float:
    """Move to the next choice at this level; its cost so far, or inf if no choice below `limit` is left."""
    if p.interval[level]:
        cost, lower = _cheapest_interval(p, f, level)
        if cost < limit:
            f.low[level] = f.value[level, lower]
            f.high[level] = f.value[level, f.step[level, lower]]
            f.step[level, lower] += 1
            return cost
        return np.inf
    _advance_set(f, level, k)
    cost = _set_cost(p, f, level)
    if cost < limit:
        for v in range(p.sizes[level]):
            f.chosen[level, v] = False
        f.chosen[level, p.centre[level]] = True
        for i in range(f.width[level]):
            f.chosen[level, f.value[level, f.step[level, i]]] = True
        return cost
    return np.inf


@kernel
def _descend(p: _Local, f: _Frames, level: int, cost: float, k: int, limit: float, seen: Bools) -> bool:
    """Fill the next level for the choice made at this one; False if it cannot lead to a region below `limit`."""
    low, high, is_interval = f.low[level], f.high[level], p.interval[level]
    chosen, codes, rest = f.chosen[level], p.codes[level], p.rest[level + 1]
    source, target = f.tuples[level], f.tuples[level + 1]
    for v in range(p.sizes[level]):
        seen[v] = False
    kept, rows, room = 0, 0, limit - cost
    for x in range(f.n_tuples[level]):
        t = source[x]
        v = codes[t]
        if ((low <= v <= high) if is_interval else chosen[v]) and rest[t] < room:
            target[kept] = t
            kept += 1
            rows += p.counts[t]
            seen[v] = True
    if rows < k:
        return False
    # A choice wider than the tuples it keeps costs no less than a narrower one, which is tried as well.
    seen[p.centre[level]] = True
    if is_interval:
        if not (seen[low] and seen[high]):
            return False
    else:
        for i in range(f.width[level]):
            if not seen[f.value[level, f.step[level, i]]]:
                return False
    active = 0
    for x in range(f.n_active[level]):
        c = f.active[level, x]
        v = p.forbidden[c, level]
        if (low <= v <= high) if is_interval else chosen[v]:
            if p.settled[c] <= level:
                return False
            f.active[level + 1, active] = c
            active += 1
    f.n_tuples[level + 1], f.n_active[level + 1], f.spent[level + 1] = kept, active, cost
    return True


@kernel
def _close_interval(p: _Local, f: _Frames, k: int, limit: float, rows: Ints) -> float:
    """Cheapest interval of the last level, if below `limit`: two pointers around the centre."""
    level = p.order.shape[0] - 1
    centre, places = p.centre[level], p.positions[level]
    least, most = 0, p.sizes[level] - 1
    for x in range(f.n_active[level]):
        v = p.forbidden[f.active[level, x], level]
        if v < centre:
            least = max(least, v + 1)
        else:
            most = min(most, v - 1)
    best, spent, unit = limit, f.spent[level], p.unit[level]
    low, high, inside = centre, centre, rows[centre]
    while inside < k and high < most:
        high += 1
        inside += rows[high]
    while True:
        while high > centre and inside - rows[high] >= k:
            inside -= rows[high]
            high -= 1
        cost = spent + unit * (places[high] - places[low])
        if inside >= k and cost < best:
            best, f.low[level], f.high[level] = cost, low, high
        low -= 1
        if low < least or spent + unit * (places[centre] - places[low]) >= best:
            return best if best < limit else np.inf
        inside += rows[low]


@kernel
def _close_set(p: _Local, f: _Frames, k: int, limit: float, rows: Ints) -> float:
    """Smallest value set of the last level, if below `limit`: the commonest values first."""
    level = p.order.shape[0] - 1
    chosen = f.chosen[level]
    for v in range(p.sizes[level]):
        chosen[v] = False
    chosen[p.centre[level]] = True
    inside, values, cost = rows[p.centre[level]], 1, f.spent[level]
    rows[p.centre[level]] = 0
    for x in range(f.n_active[level]):
        rows[p.forbidden[f.active[level, x], level]] = 0
    while inside < k and cost < limit:
        v = 0
        for w in range(1, p.sizes[level]):
            if rows[w] > rows[v]:
                v = w
        if rows[v] == 0:
            return np.inf
        inside += rows[v]
        rows[v] = 0
        chosen[v] = True
        values += 1
        cost = f.spent[level] + p.unit[level] * values
    return cost if cost < limit else np.inf


@kernel
def _close(p: _Local, f: _Frames, k: int, limit: float, rows: Ints) -> float:
    if p.interval[p.order.shape[0] - 1]:
        return _close_interval(p, f, k, limit, rows)
    return _close_set(p, f, k, limit, rows)


@kernel
def _open_bound(p: _Local, f: _Frames, level: int, k: int) -> float:
    """Lower bound over all choices not tried yet, at this level and those above."""
    bound = np.inf
    for i in range(level + 1):
        cost = _cheapest_interval(p, f, i)[0] if p.interval[i] else _set_cost(p, f, i)
        tuples = f.tuples[i, : f.n_tuples[i]]
        counts = p.counts[tuples]
        here = f.spent[i] + _kth_distance(p.rest[i][tuples], counts, k)
        bound = min(bound, max(here, cost + _kth_distance(p.rest[i + 1][tuples], counts, k)))
    return bound


@kernel
def _search(p: _Local, k: int, upper: float, node_budget: int) -> tuple[float, Ints, Ints, Bools, int, float]:
    """Cheapest region below `upper` (cost inf: none found), nodes spent, lower bound on what was not tried."""
    f = _first_frame(p)
    last = p.order.shape[0] - 1
    low, high, chosen = f.low.copy(), f.high.copy(), f.chosen.copy()
    rows, seen = np.zeros(p.names.shape[1], np.int64), np.zeros(p.names.shape[1], np.bool_)
    found, limit = np.inf, upper - TOLERANCE
    # numba would compile the helpers twice for a literal 0.
    level, nodes, entering = int(np.int64(0)), 0, True
    while level >= 0:
        if entering:
            entering = False
            nodes += 1 + (f.n_tuples[level] + p.sizes[level]) // VISITS_PER_NODE
            _histogram(p, f, level, rows)
            if level == last:
                cost = _close(p, f, k, limit, rows)
                if cost < limit:
                    found, limit = cost, cost - TOLERANCE
                    low, high, chosen = f.low.copy(), f.high.copy(), f.chosen.copy()
                level -= 1
                continue
            if p.interval[level]:
                _open_interval(p, f, level, k, rows)
            else:
                _open_set(p, f, level, rows)
        if nodes >= node_budget:
            return found, low, high, chosen, nodes, _open_bound(p, f, level, k)
        cost = _take(p, f, level, k, limit)
        if cost < limit:
            nodes += 1 + (f.n_tuples[level] + p.sizes[level]) // VISITS_PER_NODE
            if _descend(p, f, level, cost, k, limit, seen):
                level += 1
                entering = True
        else:
            level -= 1
    return found, low, high, chosen, nodes, np.inf


# Limits of successive searches, between the first lower and upper bound. Below a low limit a search is quick; a region
# it finds is the optimum, and if there is none the limit is a proven bound. The last one has to be 1.
LIMIT_SHARES = (0.25, 0.5, 1.0)


@kernel
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


@kernel
def _largest_cost(interval: Bools, sizes: Ints, positions: Floats, unit: Floats) -> float:
    cost = 0.0
    for j in range(interval.shape[0]):
        last = sizes[j] - 1
        cost += unit[j] * (positions[j, last] - positions[j, 0] if interval[j] else sizes[j])
    return cost


@kernel
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


@kernel
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
