"""The smallest region around a counterfactual: branch and bound over one attribute after the other.

See regions for the arrays, bounds for the codes of a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.core._kernels import inner, kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints
from countervail.protect.cfk.bounds import (
    CENTRE,
    INTERVAL,
    SIZE,
    Local,
    delocalise,
    find_own,
    find_reachable,
    first_region,
    kth_distance,
    localise,
    step_costs,
    sum_costs,
)
from countervail.protect.cfk.regions import TOLERANCE, fill_intervals, point_region, region_cost

# A node stands for this many tuple visits, so that a node budget bounds the time whatever the size of the table.
VISITS_PER_NODE = 256
# Lines of the whole numbers of each level: tuples still in play, forbidden cells inside the levels above, values in
# play, ...
N_TUPLES, N_ACTIVE, N_VALUE = 0, 1, 2
OWN = 3  # interval: index of the centre among the values; set: rows with the centre's value
WIDTH = 4  # set: how many are chosen besides the centre's, -1 before the first choice
LOW, HIGH = 5, 6
# Lines of the lists of each level: the values in play (of a set without the centre's, commonest first), the running sum
# of their rows, and steps (interval: next upper end of each lower end; set: indices of the values chosen).
VALUE, ROWS, STEP = 0, 1, 2


class Frames(NamedTuple):
    """What the depth-first search knows at each level; few arrays, as each is slow to compile and to hand on."""

    tuples: Codes  # (q, n)
    active: Codes  # (q, F)
    spent: Floats  # cost of the levels above
    at: Ints  # (7, q) whole numbers
    lists: Ints  # (3, q, W + 1)
    chosen: Bools  # (q, W)


def _first_frame(p: Local) -> Frames:
    q, n = p.codes.shape
    cells, values = len(p.forbidden), p.names.shape[1]
    tuples, active = np.empty((q, n), np.int32), np.empty((q, cells), np.int32)
    tuples[0], active[0] = np.arange(n), np.arange(cells)
    at = np.zeros((7, q), np.int64)
    at[N_TUPLES, 0], at[N_ACTIVE, 0] = n, cells
    at[LOW], at[HIGH] = p.facts[CENTRE], p.facts[CENTRE]
    lists, chosen = np.zeros((3, q, values + 1), np.int64), np.zeros((q, values), np.bool_)
    return Frames(tuples, active, np.zeros(q), at, lists, chosen)


@inner
def _histogram(p: Local, f: Frames, level: int, rows: Ints) -> None:
    for v in range(p.facts[SIZE, level]):
        rows[v] = 0
    for x in range(f.at[N_TUPLES, level]):
        t = f.tuples[level, x]
        rows[p.codes[level, t]] += p.counts[t]


@inner
def _open_interval(p: Local, f: Frames, level: int, k: int, rows: Ints) -> None:
    """Set every lower end to the first upper end that leaves k rows."""
    n = 0
    for v in range(p.facts[SIZE, level]):
        if v == p.facts[CENTRE, level]:
            f.at[OWN, level] = n
        elif rows[v] == 0:
            continue
        f.lists[VALUE, level, n] = v
        f.lists[ROWS, level, n + 1] = f.lists[ROWS, level, n] + rows[v]
        n += 1
    f.at[N_VALUE, level] = n
    upper = n
    # Lower ends from the outermost: the further out, the sooner k rows are reached.
    for a in range(f.at[OWN, level], -1, -1):
        while upper > f.at[OWN, level] and f.lists[ROWS, level, upper] - f.lists[ROWS, level, a] >= k:
            upper -= 1
        f.lists[STEP, level, a] = upper
    if p.unit[level] == 0.0 and f.at[N_ACTIVE, level] == 0:
        # Free and harmless: the whole range is as good as any part of it.
        for a in range(f.at[OWN, level] + 1):
            f.lists[STEP, level, a] = n - 1 if a == 0 else n


@inner
def _open_set(p: Local, f: Frames, level: int, rows: Ints) -> None:
    values, sums, steps = f.lists[VALUE, level], f.lists[ROWS, level], f.lists[STEP, level]
    n = 0
    for v in range(p.facts[SIZE, level]):
        if rows[v] > 0 and v != p.facts[CENTRE, level]:
            f.lists[STEP, level, n] = v
            n += 1
    # Commonest first, ties by value.
    for i in range(n):
        v, place = steps[i], i
        while place > 0 and rows[values[place - 1]] < rows[v]:
            values[place] = values[place - 1]
            place -= 1
        values[place] = v
    for i in range(n):
        sums[i + 1] = sums[i] + rows[values[i]]
    f.at[N_VALUE, level], f.at[OWN, level], f.at[WIDTH, level] = n, rows[p.facts[CENTRE, level]], -1
    if p.unit[level] == 0.0 and f.at[N_ACTIVE, level] == 0 and n > 0:
        # As for intervals; the last choice of n - 1 values is followed by the choice of all.
        f.at[WIDTH, level] = n - 1
        for i in range(n - 1):
            f.lists[STEP, level, i] = i + 1


@inner
def _cheapest_interval(p: Local, f: Frames, level: int) -> tuple[float, int]:
    """Cost of the cheapest interval not tried yet, and the index of its lower end (-1 if none is left)."""
    best, lower = np.inf, -1
    for a in range(f.at[OWN, level] + 1):
        b = f.lists[STEP, level, a]
        if b < f.at[N_VALUE, level]:
            length = p.positions[level, f.lists[VALUE, level, b]] - p.positions[level, f.lists[VALUE, level, a]]
            if length < best:
                best, lower = length, a
    return f.spent[level] + p.unit[level] * best if lower >= 0 else np.inf, lower


@inner
def _set_cost(p: Local, f: Frames, level: int) -> float:
    width = f.at[WIDTH, level]
    if width > f.at[N_VALUE, level]:
        return np.inf
    cost: float = f.spent[level] + (p.unit[level] * (width + 1) if width > 0 else 0.0)
    return cost


@inner
def _advance_set(f: Frames, level: int, k: int) -> None:
    """Next choice of values with k rows: by size, then in the order of `value`; too wide a width if none is left."""
    step, rows, n, width = f.lists[STEP, level], f.lists[ROWS, level], f.at[N_VALUE, level], f.at[WIDTH, level]
    kept = f.at[OWN, level]
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
        if f.at[OWN, level] + rows[wider] >= k:
            for x in range(wider):
                step[x] = x
            f.at[WIDTH, level] = wider
            return
    f.at[WIDTH, level] = n + 1


@inner
def _take(p: Local, f: Frames, level: int, k: int, limit: float) -> float:
    """Move to the next choice at this level; its cost so far, or inf if no choice below `limit` is left."""
    if p.facts[INTERVAL, level]:
        cost, lower = _cheapest_interval(p, f, level)
        if cost < limit:
            f.at[LOW, level] = f.lists[VALUE, level, lower]
            f.at[HIGH, level] = f.lists[VALUE, level, f.lists[STEP, level, lower]]
            f.lists[STEP, level, lower] += 1
            return cost
        return np.inf
    _advance_set(f, level, k)
    cost = _set_cost(p, f, level)
    if cost < limit:
        for v in range(p.facts[SIZE, level]):
            f.chosen[level, v] = False
        f.chosen[level, p.facts[CENTRE, level]] = True
        for i in range(f.at[WIDTH, level]):
            f.chosen[level, f.lists[VALUE, level, f.lists[STEP, level, i]]] = True
        return cost
    return np.inf


@inner
def _descend(p: Local, f: Frames, level: int, cost: float, k: int, limit: float, seen: Bools) -> bool:
    """Fill the next level for the choice made at this one; False if it cannot lead to a region below `limit`."""
    low, high, is_interval = f.at[LOW, level], f.at[HIGH, level], p.facts[INTERVAL, level]
    chosen, codes, rest = f.chosen[level], p.codes[level], p.rest[level + 1]
    source, target = f.tuples[level], f.tuples[level + 1]
    for v in range(p.facts[SIZE, level]):
        seen[v] = False
    kept, rows, room = 0, 0, limit - cost
    for x in range(f.at[N_TUPLES, level]):
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
    seen[p.facts[CENTRE, level]] = True
    if is_interval:
        if not (seen[low] and seen[high]):
            return False
    else:
        for i in range(f.at[WIDTH, level]):
            if not seen[f.lists[VALUE, level, f.lists[STEP, level, i]]]:
                return False
    active = 0
    for x in range(f.at[N_ACTIVE, level]):
        c = f.active[level, x]
        v = p.forbidden[c, level]
        if (low <= v <= high) if is_interval else chosen[v]:
            if p.settled[c] <= level:
                return False
            f.active[level + 1, active] = c
            active += 1
    f.at[N_TUPLES, level + 1], f.at[N_ACTIVE, level + 1], f.spent[level + 1] = kept, active, cost
    return True


@inner
def _close_interval(p: Local, f: Frames, k: int, limit: float, rows: Ints) -> float:
    """Cheapest interval of the last level, if below `limit`: two pointers around the centre."""
    level = p.facts.shape[1] - 1
    centre, places = p.facts[CENTRE, level], p.positions[level]
    least, most = 0, p.facts[SIZE, level] - 1
    for x in range(f.at[N_ACTIVE, level]):
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
            best, f.at[LOW, level], f.at[HIGH, level] = cost, low, high
        low -= 1
        if low < least or spent + unit * (places[centre] - places[low]) >= best:
            return best if best < limit else np.inf
        inside += rows[low]


@inner
def _close_set(p: Local, f: Frames, k: int, limit: float, rows: Ints) -> float:
    """Smallest value set of the last level, if below `limit`: the commonest values first."""
    level = p.facts.shape[1] - 1
    chosen = f.chosen[level]
    for v in range(p.facts[SIZE, level]):
        chosen[v] = False
    chosen[p.facts[CENTRE, level]] = True
    inside, values, cost = rows[p.facts[CENTRE, level]], 1, f.spent[level]
    rows[p.facts[CENTRE, level]] = 0
    for x in range(f.at[N_ACTIVE, level]):
        rows[p.forbidden[f.active[level, x], level]] = 0
    while inside < k and cost < limit:
        v = 0
        for w in range(1, p.facts[SIZE, level]):
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


@inner
def _close(p: Local, f: Frames, k: int, limit: float, rows: Ints) -> float:
    if p.facts[INTERVAL, p.facts.shape[1] - 1]:
        return _close_interval(p, f, k, limit, rows)
    return _close_set(p, f, k, limit, rows)


@kernel
def _search(
    p: Local, f: Frames, low: Ints, high: Ints, chosen: Bools, k: int, upper: float, node_budget: int
) -> tuple[float, int, int]:
    """Cheapest region below `upper`, left in `low`, `high` and `chosen`: its cost (inf: none found) and nodes spent.

    The third number is the level at which the budget was spent, -1 if all was tried.
    """
    facts, at = p.facts, f.at
    last, values = facts.shape[1] - 1, p.names.shape[1]
    rows, seen = np.zeros(values, np.int64), np.zeros(values, np.bool_)
    found, limit = np.inf, upper - TOLERANCE
    # numba would compile the helpers twice for a literal 0.
    level, nodes, entering = int(np.int64(0)), 0, True
    while level >= 0:
        if entering:
            entering = False
            nodes += 1 + (at[N_TUPLES, level] + facts[SIZE, level]) // VISITS_PER_NODE
            _histogram(p, f, level, rows)
            if level == last:
                cost = _close(p, f, k, limit, rows)
                if cost < limit:
                    found, limit = cost, cost - TOLERANCE
                    for i in range(last + 1):
                        low[i], high[i] = at[LOW, i], at[HIGH, i]
                        for v in range(values):
                            chosen[i, v] = f.chosen[i, v]
                level -= 1
                continue
            if facts[INTERVAL, level]:
                _open_interval(p, f, level, k, rows)
            else:
                _open_set(p, f, level, rows)
        if nodes >= node_budget:
            return found, nodes, level
        cost = _take(p, f, level, k, limit)
        if cost < limit:
            nodes += 1 + (at[N_TUPLES, level] + facts[SIZE, level]) // VISITS_PER_NODE
            if _descend(p, f, level, cost, k, limit, seen):
                level += 1
                entering = True
        else:
            level -= 1
    return found, nodes, -1


def _open_bound(p: Local, f: Frames, level: int, k: int) -> float:
    """Lower bound over all choices not tried yet, at this level and those above."""
    bound = np.inf
    for i in range(level + 1):
        cost = f.spent[i] + _cheapest_left(p, f, i)
        tuples = f.tuples[i, : f.at[N_TUPLES, i]]
        counts = p.counts[tuples]
        here = f.spent[i] + kth_distance(p.rest[i][tuples], counts, k)
        bound = min(bound, max(here, cost + kth_distance(p.rest[i + 1][tuples], counts, k)))
    return float(bound)


def _cheapest_left(p: Local, f: Frames, level: int) -> float:
    """What the cheapest choice costs that was not tried yet at a level; inf if none is left."""
    n, width, unit = f.at[N_VALUE, level], int(f.at[WIDTH, level]), float(p.unit[level])
    if not p.facts[INTERVAL, level]:
        return np.inf if width > n else unit * (width + 1) if width > 0 else 0.0
    lower = np.arange(f.at[OWN, level] + 1)
    upper = f.lists[STEP, level, lower]
    lower, upper = lower[upper < n], upper[upper < n]
    if not len(lower):
        return np.inf
    place = p.positions[level][f.lists[VALUE, level]]
    return float(unit * (place[upper] - place[lower]).min())


# Limits of successive searches, between the first lower and upper bound. Below a low limit a search is quick; a region
# it finds is the optimum, and if there is none the limit is a proven bound. The last one has to be 1.
LIMIT_SHARES = (0.25, 0.5, 1.0)


def _largest_cost(interval: Bools, sizes: Ints, positions: Floats, unit: Floats) -> float:
    cost = 0.0
    for j, last in enumerate((sizes - 1).tolist()):
        cost += float(unit[j] * (positions[j, last] - positions[j, 0] if interval[j] else sizes[j]))
    return cost


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
    low, high, member = point_region(centre, values)
    if counts.sum() < k or (forbidden == centre).all(axis=1).any():
        return np.inf, low, high, member, 0, np.inf
    own = find_own(tuples, centre)
    if k <= 0 or (own >= 0 and counts[own] >= k):
        return 0.0, low, high, member, 0, 0.0
    costs = step_costs(interval, sizes, positions, unit, centre)
    distance = sum_costs(tuples, costs)
    first = first_region(tuples, counts, distance, interval, positions, unit, centre, k, forbidden, costs)
    feasible, upper, stop = False, np.inf, _largest_cost(interval, sizes, positions, unit)
    if first is not None:
        feasible = True
        low, high, member = first
        upper = stop = region_cost(interval, sizes, positions, unit, low, high, member)
    reach = find_reachable(tuples, distance, upper - TOLERANCE, interval, centre, values, forbidden)
    reach_distance, reach_counts = distance[reach], counts[reach]
    start = kth_distance(reach_distance, reach_counts, k)
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
            p = localise(tuples, counts, reach[near], interval, sizes, positions, unit, centre, forbidden)
            f = _first_frame(p)
            near_low, near_high, chosen = p.facts[CENTRE].copy(), p.facts[CENTRE].copy(), np.zeros_like(f.chosen)
            budget = node_budget - nodes if final else (node_budget - nodes) // 2
            found, used, level = _search(p, f, near_low, near_high, chosen, k, limit, budget)
            nodes += used
            if level >= 0:
                open_bound = _open_bound(p, f, level, k)
            if found < np.inf:
                feasible, upper = True, found
                low, high, member = delocalise(p, near_low, near_high, chosen, centre, values)
        cut_short = open_bound < np.inf
        bound = max(bound, min(open_bound, limit, upper))
    if not feasible:
        return np.inf, low, high, member, nodes, bound
    fill_intervals(interval, low, high, member)
    cost = region_cost(interval, sizes, positions, unit, low, high, member)
    return cost, low, high, member, nodes, cost if bound >= upper - TOLERANCE else min(bound, cost)


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
