"""The construction phase of the published search (see regions for the arrays)."""

from __future__ import annotations

import numpy as np
from numba import njit

from countervail.protect.cfk.regions import Bools, Codes, Floats, Ints, _fill_intervals, _inside, _point_region, _widen


@njit(cache=True, nogil=True)
def _gap(cell: Codes, interval: Bools, positions: Floats, scale: Floats, low: Ints, high: Ints, member: Bools) -> float:
    """Distance of a cell to a region: per interval the gap in ranges, per set 1 for a value that is not in it."""
    gap = 0.0
    for j in range(cell.shape[0]):
        v = cell[j]
        if not interval[j]:
            gap += 0.0 if member[j, v] else 1.0
        elif scale[j] > 0.0:
            place = positions[j, v]
            gap += max(positions[j, low[j]] - place, place - positions[j, high[j]], 0.0) / scale[j]
    return gap


@njit(cache=True, nogil=True)
def _pick(
    tuples: Codes,
    places: Ints,
    outside: Bools,
    interval: Bools,
    positions: Floats,
    scale: Floats,
    low: Ints,
    high: Ints,
    member: Bools,
    alpha: int,
    draw: float,
) -> int:
    """One of the alpha nearest rows outside, each tuple filling `places` of them; -1 if there is none."""
    nearest, gaps = np.empty(alpha, np.int64), np.empty(alpha)
    found = 0
    for t in range(tuples.shape[0]):
        if not outside[t] or places[t] <= 0:
            continue
        gap = _gap(tuples[t], interval, positions, scale, low, high, member)
        if found == alpha and gap >= gaps[alpha - 1]:
            continue
        x = min(found, alpha - 1)
        while x > 0 and gaps[x - 1] > gap:
            nearest[x], gaps[x] = nearest[x - 1], gaps[x - 1]
            x -= 1
        nearest[x], gaps[x] = t, gap
        found = min(found + 1, alpha)
    filled = 0
    for x in range(found):
        filled += places[nearest[x]]
    filled = min(filled, alpha)
    position = min(int(draw * filled), filled - 1)
    for x in range(found):
        picked: int = nearest[x]
        position -= places[picked]
        if position < 0:
            return picked
    return -1


@njit(cache=True, nogil=True)
def grasp_construct(
    tuples: Codes,
    counts: Ints,
    eligible_counts: Ints,
    interval: Bools,
    positions: Floats,
    scale: Floats,
    centre: Ints,
    k: int,
    alpha: int,
    draws: Floats,
) -> tuple[Ints, Ints, Bools]:
    """Construction phase of GRASP: widen to one of the alpha nearest rows of the desired class until k rows fit.

    `eligible_counts` int64 (T,): rows of the desired class of each tuple; `scale` float64 (q,): range of each interval
    attribute; `draws`: uniform numbers in [0, 1), one per step; max(k, 1) are always enough, fewer are used in turn.
    Ties go by table order. If no row of the desired class is left outside, any row is taken. Needs alpha >= 1.
    """
    low, high, member = _point_region(centre, positions.shape[1])
    width = np.ones(centre.shape[0], np.int64)
    outside = np.ones(tuples.shape[0], np.bool_)
    rows, step = 0, 0
    while True:
        for t in range(tuples.shape[0]):
            if outside[t] and _inside(tuples[t], interval, low, high, member):
                outside[t] = False
                rows += counts[t]
        if rows >= k:
            break
        draw = draws[step % draws.shape[0]]
        step += 1
        chosen = _pick(tuples, eligible_counts, outside, interval, positions, scale, low, high, member, alpha, draw)
        if chosen < 0:
            chosen = _pick(tuples, counts, outside, interval, positions, scale, low, high, member, alpha, draw)
        if chosen < 0:
            break
        _widen(tuples[chosen], interval, low, high, member, width)
    _fill_intervals(interval, low, high, member)
    return low, high, member
