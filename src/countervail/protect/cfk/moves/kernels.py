"""Compiled loops over candidates and over the anonymised table. Each has a plain twin in the tests.

Private values come as one matrix: measured columns have a `scale` above 0 (a missing level is NaN), labels have 0.
"""

from __future__ import annotations

import numpy as np

from countervail.core._kernels import Whole, inner, kernel
from countervail.core.arrays import Bools, Floats, Ints

_BINS = 64  # of distances, to look at near pairs first


@inner
def _term(x: float, v: float, scale: float) -> float:
    """HEOM's term of one column."""
    if x == v:
        return 0.0
    if scale == 0.0:
        return 1.0
    step = abs(x - v) / scale
    if step != step:  # a missing level: 0 from itself, 1 from any other
        step = 0.0 if np.isnan(x) and np.isnan(v) else 1.0
    return step


@kernel
def nearest_offers(
    gap: Floats,
    apart: Bools,
    x: Floats,
    free: Bools,
    group: Ints,
    private: Floats,
    scale: Floats,
    offered: Bools,
    slot: Ints,
    must: Bools,
    n: int,
) -> Ints:
    """The `n` nearest candidates of each query that have something to offer, ties by number; -1: none left.

    `gap` and `apart` (Q, G): distance to each region, and whether one of its cells may be moved to. `free` (Q,
    columns): where a private difference is a move. Of columns with limits, `slot` (C, limits) says which move a
    candidate offers, `offered` (Q, moves) whether the query may make it, and `must` (Q, limits) that she has to.
    """
    out, best = np.full((len(x), n), -1, np.int64), np.empty(n)
    for i in range(len(x)):
        for a in range(n):
            best[a] = np.inf
        for c in range(len(group)):
            d = gap[i, group[c]]
            if d >= best[n - 1]:
                continue
            moves = apart[i, group[c]]
            fits = True
            for j in range(slot.shape[1]):
                may = offered[i, slot[c, j]]
                moves |= may
                fits &= may or not must[i, j]
            if not fits:
                continue
            for j in range(len(scale)):
                step = _term(x[i, j], private[c, j], scale[j])
                d += step
                moves |= step > 0.0 and free[i, j]
                if d >= best[n - 1]:
                    break
            if d >= best[n - 1] or not moves:
                continue
            a = n - 1
            while a > 0 and d < best[a - 1]:
                best[a], out[i, a] = best[a - 1], out[i, a - 1]
                a -= 1
            best[a], out[i, a] = d, c
    return out


@kernel
def add_up(query: Ints, place: Ints, moved: Bools, step: Floats, name: Ints) -> tuple[Floats, Ints]:
    """What sets of moves cost, and the sums of their names; `step` and `name` are asker x candidate x feature."""
    cost, names = np.zeros(len(query)), np.zeros(len(query), np.int64)
    for t in range(len(query)):
        for j in range(moved.shape[1]):
            if moved[t, j]:
                cost[t] += step[query[t], place[t], j]
                names[t] += name[query[t], place[t], j]
    return cost, names


@kernel
def pool_distances(
    starts: Ints,
    x: Floats,
    points: Floats,
    moved: Bools,
    gaps: Floats,
    reach: Floats,
    group: Ints,
    private: Floats,
    scale: Floats,
) -> Floats:
    """How far each point is from the nearest pair of the anonymised table.

    Points `starts[i]` to `starts[i + 1]` are query i with some columns moved, so no pair comes nearer to a point than
    to the query by more than what was moved: few pairs are looked at, and of these only the terms of moved columns
    are exchanged. Quasi-identifiers have a `scale` below 0; there `x` and `points` hold a row of `gaps` (values, G),
    the distances to each region's cell. `reach` (G,): the widths of the regions.
    """
    pairs, d = private.shape
    out, shift = np.empty(len(points)), np.empty(len(points))
    near, base, bin_ends = np.empty(pairs, np.int64), np.empty(pairs), np.empty(_BINS + 1, np.int64)
    region, at = np.empty(len(reach)), np.empty(d, np.int64)
    for i in range(len(x)):
        if starts[i] == starts[i + 1]:
            continue
        widest = 0.0
        for t in range(starts[i], starts[i + 1]):
            shift[t] = _shift(x[i], points[t], moved[t], gaps, scale)
            widest = max(widest, shift[t])
        for g in range(len(reach)):
            region[g] = reach[g]
        for j in range(d):
            if scale[j] < 0.0:
                place = int(x[i, j])
                for g in range(len(reach)):
                    region[g] += gaps[place, g]
        least = np.inf
        for c in range(pairs):
            least = min(least, _away(x[i], private[c], scale, region[group[c]], least))
        # The pairs that may count, nearest first but for what one of `_BINS` holds.
        bin_ends[:] = 0
        for c in range(pairs):
            base[c] = _away(x[i], private[c], scale, region[group[c]], least + 2.0 * widest)
            if base[c] < least + 2.0 * widest:
                bin_ends[min(int((base[c] - least) / (2.0 * widest) * _BINS), _BINS - 1) + 1] += 1
        for b in range(_BINS):
            bin_ends[b + 1] += bin_ends[b]
        many = bin_ends[_BINS]
        for c in range(pairs):
            if base[c] < least + 2.0 * widest:
                b = min(int((base[c] - least) / (2.0 * widest) * _BINS), _BINS - 1)
                near[bin_ends[b]] = c
                bin_ends[b] += 1
        for t in range(starts[i], starts[i + 1]):
            columns = 0
            for j in range(d):
                if moved[t, j]:
                    at[columns] = j
                    columns += 1
            best = least + shift[t]
            for a in range(many):
                c = near[a]
                total = base[c]
                if total - shift[t] >= best:
                    if total - shift[t] >= best + 2.0 * widest / _BINS:
                        break  # and so is all that follows
                    continue
                for b in range(columns):
                    j = at[b]
                    if scale[j] < 0.0:
                        total += gaps[int(points[t, j]), group[c]] - gaps[int(x[i, j]), group[c]]
                    else:
                        v = private[c, j]
                        total += _term(points[t, j], v, scale[j]) - _term(x[i, j], v, scale[j])
                best = min(best, total)
            out[t] = best
    return out


@inner
def _shift(x: Floats, point: Floats, moved: Bools, gaps: Floats, scale: Floats) -> float:
    """The most by which moving can bring a pair nearer; a little more, for rounding."""
    total = 1e-9
    for j in range(len(scale)):
        if moved[j] and scale[j] < 0.0:
            most = 0.0
            for g in range(gaps.shape[1]):
                most = max(most, abs(gaps[int(point[j]), g] - gaps[int(x[j]), g]))
            total += most
        elif moved[j]:
            total += _term(x[j], point[j], scale[j])
    return total


@inner
def _away(x: Floats, v: Floats, scale: Floats, start: float, bound: float) -> float:
    """The distance of a pair whose region lies `start` away, or something of at least `bound`."""
    total = start
    for j in range(len(scale)):
        if total >= bound:
            return total
        if scale[j] >= 0.0:
            total += _term(x[j], v[j], scale[j])
    return total


@kernel
def number_rows(slots: Ints, held: Ints, count: Whole, rows: Ints) -> Ints:
    """The number of each row, as bits: that of the first equal one.

    New ones get the next numbers from `count` on and are written into `held`, which has room for them, behind a hash
    that tells most rows apart. `slots` (a power of two, more than twice as many; -1: free) leads there.
    """
    out, last, free = np.empty(len(rows), np.int64), len(slots) - 1, count
    for i in range(len(rows)):
        z = np.uint64(0)
        for j in range(rows.shape[1]):
            z = (z ^ np.uint64(rows[i, j])) * np.uint64(0x9E3779B97F4A7C15)
            z ^= z >> np.uint64(29)
        # Whole numbers have few bits, all of them high: without this, those of the last column would not count.
        z = (z ^ (z >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(32)
        at, mark = np.int64(z & np.uint64(last)), np.int64(z)
        while slots[at] >= 0:
            n = slots[at]
            same = held[n, 0] == mark
            for j in range(rows.shape[1]):
                if not same:
                    break
                same = held[n, j + 1] == rows[i, j]
            if same:
                break
            at = (at + 1) & last
        if slots[at] < 0:
            slots[at] = free
            held[free, 0] = mark
            for j in range(rows.shape[1]):
                held[free, j + 1] = rows[i, j]
            free += 1
        out[i] = slots[at]
    return out
