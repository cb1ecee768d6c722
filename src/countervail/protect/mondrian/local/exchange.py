"""Classes made better once strict cuts have ended: distinct rows move to another class where the table loses less.

Cuts are greedy, and an early one cannot be taken back. Here every distinct row (with all rows equal to it) is offered
to every class; it goes where the loss of both classes together, rows times NCP, falls most, if its own class keeps k. A
class may also be dissolved, if all of its rows find better places, and one that has grown is cut again. All of it looks
at codes, counts and k, in the order of the codes: the same for every order of the rows. Time grows with rows times
classes.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.core.rng import generator
from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import Floats, Ints, Longs, inner, kernel, make_constraints
from countervail.protect.mondrian.grow import partition
from countervail.protect.mondrian.loss import climb, ordered_loss

_SLACK: Final = 1e-9
_ROUNDS: Final = 4
_WORK: Final = 150_000_000  # pairs of a row and a class, shared out among the times that classes are cut anew
_LEAST: Final = 3
_MOST: Final = 24
_ENOUGH: Final = 1e-3  # of what was saved so far: a pass that saves less is the last
_NONE: Final = -1


class Held(NamedTuple):
    """What classes hold: `low` and `high` are ends of a range, or any code and the level of a group; bits of sets."""

    low: Longs
    high: Longs
    size: Longs  # of a set
    part: Floats  # NCP by column
    members: NDArray[np.uint64]
    weight: Longs
    loss: Floats
    first: Longs  # of the chained rows of a class
    after: Longs  # the next row in its class
    changed: Longs  # when a class last changed


@inner
def _column_loss(j: int, low: int, high: int, size: int, data: Attributes) -> float:
    """NCP of a column: of a range, of a group (any code, level), or of a set of so many values."""
    if data.kind[j] == ORDERED:
        return ordered_loss(low, high, data.missing[j], data.positions, j, data.span[j])
    if data.tree_loss and data.tree_of[j] >= 0:
        tree = data.tree_of[j]
        return float(data.leaves[tree, data.ancestors[tree, low, high], high] / data.span[j]) if high > 0 else 0.0
    return float(size / data.span[j]) if size > 1 else 0.0


@inner
def _set_size(words: NDArray[np.uint64]) -> int:
    size = 0
    for i in range(words.shape[0]):
        word = words[i]
        while word != np.uint64(0):
            word &= word - np.uint64(1)
            size += 1
    return size


@inner
def _measure(
    codes: Ints, counts: Longs, c: int, skip: int, slot: Ints, data: Attributes, held: Held, out: Longs
) -> float:
    """NCP of a class without one of its rows (-1: none), scanned anew; what it holds is left in line `out`."""
    total = 0.0
    at = out[0]
    for j in range(codes.shape[1]):
        low, high, size = -1, -1, 0
        if slot[j] >= 0:
            held.members[at, slot[j], :] = np.uint64(0)
        r = held.first[c]
        while r >= 0:
            if r != skip:
                v = codes[r, j]
                if data.kind[j] == ORDERED:
                    low = v if low < 0 else min(low, v)
                    high = max(high, v)
                elif slot[j] >= 0:
                    held.members[at, slot[j], v >> 6] |= np.uint64(1) << np.uint64(v & 63)
                else:
                    low, high = climb(v, low, max(high, 0), data.tree_of[j], data.ancestors)
            r = held.after[r]
        if slot[j] >= 0:
            size = _set_size(held.members[at, slot[j]])
        held.low[at, j], held.high[at, j], held.size[at, j] = low, high, size
        held.part[at, j] = _column_loss(j, low, high, size, data)
        total += held.part[at, j]
    return total


@inner
def _unchain(x: int, c: int, held: Held) -> None:
    r = held.first[c]
    if r == x:
        held.first[c] = held.after[x]
        return
    while held.after[r] != x:
        r = held.after[r]
    held.after[r] = held.after[x]


@inner
def _refresh(c: int, codes: Ints, counts: Longs, slot: Ints, data: Attributes, held: Held, line: Longs) -> None:
    line[0] = c
    held.loss[c] = _measure(codes, counts, c, _NONE, slot, data, held, line)


@inner
def _move(
    x: int,
    a: int,
    b: int,
    cell: Longs,
    codes: Ints,
    counts: Longs,
    slot: Ints,
    data: Attributes,
    held: Held,
    line: Longs,
) -> None:
    _unchain(x, a, held)
    held.after[x] = held.first[b]
    held.first[b] = x
    cell[x] = b
    held.weight[a] -= counts[x]
    held.weight[b] += counts[x]
    if held.weight[a] > 0:
        _refresh(a, codes, counts, slot, data, held, line)
    else:
        held.loss[a] = 0.0
    _refresh(b, codes, counts, slot, data, held, line)


@inner
def _best_place(
    x: int, a: int, since: int, most: float, codes: Ints, counts: Longs, slot: Ints, data: Attributes, held: Held
) -> tuple[int, float]:
    """The class that x costs least, if less than `most`, and what it costs; the first of those that cost the same.

    Classes that have not changed `since` are passed over.
    """
    # One loop over arrays: handing bundles to a function for every pair of row and class takes ten times as long.
    best, found, w, q = most, -1, counts[x], codes.shape[1]
    low, high, part, size, bits = held.low, held.high, held.part, held.size, held.members
    weight, loss, changed = held.weight, held.loss, held.changed
    kind, tree_of, ancestors, leaves, span = data.kind, data.tree_of, data.ancestors, data.leaves, data.span
    missing, positions = data.missing, data.positions
    for b in range(weight.shape[0] - 1):
        if changed[b] <= since or weight[b] == 0 or b == a or w * loss[b] >= best:
            continue
        have, both = weight[b] * loss[b], weight[b] + w
        limit, total = (best + have) / both, 0.0
        for j in range(q):
            v, lo, hi = codes[x, j], low[b, j], high[b, j]
            if kind[j] == ORDERED:
                if lo <= v <= hi:
                    total += part[b, j]
                elif max(hi, v) == missing[j]:
                    total += 1.0
                else:
                    total += (positions[j, max(hi, v)] - positions[j, min(lo, v)]) / span[j]
            elif slot[j] >= 0:
                if (bits[b, slot[j], v >> 6] >> np.uint64(v & 63)) & np.uint64(1):
                    total += part[b, j]
                else:
                    total += (size[b, j] + 1) / span[j]
            else:
                tree = tree_of[j]
                if ancestors[tree, v, hi] == ancestors[tree, lo, hi]:
                    total += part[b, j]
                else:
                    while ancestors[tree, v, hi] != ancestors[tree, lo, hi]:
                        hi += 1
                    total += leaves[tree, ancestors[tree, lo, hi], hi] / span[j]
            if total > limit:
                break
        if total <= limit:
            cost = both * total - have
            if cost < best:
                best, found = cost, b
    return found, best


@inner
def _dissolve(
    a: int, cell: Longs, codes: Ints, counts: Longs, slot: Ints, data: Attributes, held: Held, line: Longs, rows: Longs
) -> float:
    """Send all rows of a class elsewhere if that saves something, and what it saves; else leave all as it was."""
    left, m = held.weight[a] * held.loss[a], 0
    r = held.first[a]
    while r >= 0:
        rows[m] = r
        m += 1
        r = held.after[r]
    places, moved = np.empty(m, np.int64), 0
    while moved < m:
        b, cost = _best_place(rows[moved], a, -1, left - _SLACK, codes, counts, slot, data, held)
        if b < 0:
            break
        _move(rows[moved], a, b, cell, codes, counts, slot, data, held, line)
        places[moved] = b
        left -= cost
        moved += 1
    if moved == m:
        for i in range(m):
            held.changed[places[i]] = line[1]
        return float(left)
    for i in range(moved - 1, -1, -1):
        _move(rows[i], places[i], a, cell, codes, counts, slot, data, held, line)
    return 0.0


@kernel
def exchange(
    codes: Ints, counts: Longs, cell: Longs, seen: Longs, k: int, clock: int, slot: Ints, data: Attributes, held: Held
) -> tuple[float, int]:
    """Move rows until a pass saves nothing; what was saved, and the time. The last line of `held` is scratch.

    `seen[x]` is when x was last offered to all classes, `held.changed` when each class last changed.
    """
    n, spare, saved = codes.shape[0], held.weight.shape[0] - 1, 0.0
    line, rows, gains = np.zeros(2, np.int64), np.empty(n, np.int64), np.zeros(n)
    tried = np.full(spare, -1, np.int64)
    for c in range(spare):
        if held.weight[c] > 0:
            _refresh(c, codes, counts, slot, data, held, line)
    while True:
        before = saved
        for x in range(n):
            a, w = cell[x], counts[x]
            if held.weight[a] - w < k or held.loss[a] == 0.0:
                continue
            since = seen[x] if held.changed[a] <= seen[x] else -1
            if since < 0 or gains[x] == 0.0:
                line[0] = spare
                left = _measure(codes, counts, a, x, slot, data, held, line)
                gains[x] = held.weight[a] * held.loss[a] - (held.weight[a] - w) * left
            seen[x] = clock
            if gains[x] <= _SLACK:
                continue
            b, cost = _best_place(x, a, since, gains[x] - _SLACK, codes, counts, slot, data, held)
            if b >= 0:
                _move(x, a, b, cell, codes, counts, slot, data, held, line)
                saved += gains[x] - cost
                clock += 1
                held.changed[a], held.changed[b] = clock, clock
        for a in range(spare):
            small = 0 < held.weight[a] < 2 * k and held.loss[a] > 0.0
            if small and held.changed[a] > tried[a]:
                clock += 1
                line[1], tried[a] = clock, clock
                saved += _dissolve(a, cell, codes, counts, slot, data, held, line, rows)
        if saved - before <= _ENOUGH * (saved + _SLACK):
            break
    return saved, clock


def improve(distinct: Ints, counts: Longs, cells: Ints, data: Attributes, k: int) -> Ints:
    """The class of each distinct row after moves and cuts have ended, numbered anew; none is smaller than k.

    Where nothing moves any more, a part of the classes is thrown together and cut and exchanged again, and kept where
    less is lost. Which part is drawn with a seed that is part of the code.
    """
    codes, q = np.ascontiguousarray(distinct), distinct.shape[1]
    sets = np.array([data.kind[j] != ORDERED and not (data.tree_loss and data.tree_of[j] >= 0) for j in range(q)])
    best, losses = _settled(codes, counts, cells.astype(np.int64), data, k, sets)
    rng, work = generator(0), len(codes) * len(losses)
    for _ in range(int(np.clip(_WORK // work, _LEAST, _MOST))):
        lossy = np.flatnonzero(losses > 0)
        if len(lossy) < 2:
            break
        mixed = np.isin(best, rng.choice(lossy, max(2, len(lossy) // 4), replace=False))
        again = _cut_anew(codes, counts, best, np.flatnonzero(mixed), data, k)
        found, others = _settled(codes, counts, again, data, k, sets)
        if others.sum() < losses.sum() * (1 - _SLACK):
            best, losses = found, others
    return best.astype(np.int32)


def _settled(
    codes: Ints, counts: Longs, cell: Longs, data: Attributes, k: int, sets: NDArray[np.bool_]
) -> tuple[Longs, Floats]:
    """Exchange and cut again until neither finds anything: classes, and what each loses, rows times NCP."""
    cell, seen, clock = cell.copy(), np.full(len(codes), -1, np.int64), 1
    slot = np.where(sets, np.cumsum(sets) - 1, -1).astype(np.int32)
    words = (int(data.sizes[sets].max(initial=1)) + 63) // 64
    changed = np.zeros(int(cell.max()) + 1, np.int64)
    for _ in range(_ROUNDS):
        held = _held(codes, counts, cell, changed, int(sets.sum()), words)
        _, clock = exchange(codes, counts, cell, seen, k, clock, slot, data, held)
        lost = held.weight * held.loss
        clock += 1
        changed = _cut_again(codes, counts, cell, held.changed[:-1], clock, data, k)
        if (changed < clock).all():
            break
    else:
        held = _held(codes, counts, cell, changed, int(sets.sum()), words)
        exchange(codes, counts, cell, seen, k, clock, slot, data, held)
        lost = held.weight * held.loss
    known, numbered = np.unique(cell, return_inverse=True)
    return numbered.astype(np.int64), lost[known]


def _cut_anew(codes: Ints, counts: Longs, cell: Longs, rows: Longs, data: Attributes, k: int) -> Longs:
    """Some classes thrown together and cut as if they were a table."""
    secret = np.zeros(len(rows), np.int32)
    found = partition(codes[rows], counts[rows], secret, data, make_constraints(secret, counts[rows], 1, k))
    out = cell.copy()
    out[rows] = int(cell.max()) + 1 + found.cell_of
    return np.unique(out, return_inverse=True)[1].astype(np.int64)


def _held(codes: Ints, counts: Longs, cell: Longs, changed: Longs, sets: int, words: int) -> Held:
    (n, q), m = codes.shape, len(changed)
    first, after = np.full(m + 1, -1, np.int64), np.full(n, -1, np.int64)
    order = np.argsort(cell, kind="stable")
    same = cell[order][:-1] == cell[order][1:]
    after[order[:-1][same]] = order[1:][same]
    first[cell[order][::-1]] = order[::-1]
    return Held(
        np.full((m + 1, q), -1, np.int64),
        np.full((m + 1, q), -1, np.int64),
        np.zeros((m + 1, q), np.int64),
        np.zeros((m + 1, q)),
        np.zeros((m + 1, max(sets, 1), words), np.uint64),
        np.bincount(cell, counts, m + 1).astype(np.int64),
        np.zeros(m + 1),
        first,
        after,
        np.append(changed, 0),
    )


def _cut_again(codes: Ints, counts: Longs, cell: Longs, changed: Longs, clock: int, data: Attributes, k: int) -> Longs:
    """Cut classes of 2k rows and more on, in place; when each class last changed."""
    sizes = np.bincount(cell, counts, len(changed))
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(len(sizes) + 1))
    n = len(sizes)
    for c in np.flatnonzero((sizes >= 2 * k) & (changed > 0)):
        rows = order[ends[c] : ends[c + 1]]
        secret = np.zeros(len(rows), np.int32)
        found = partition(codes[rows], counts[rows], secret, data, make_constraints(secret, counts[rows], 1, k))
        if found.n_cells > 1:
            cell[rows] = np.where(found.cell_of == 0, c, n + found.cell_of - 1)
            changed = np.append(changed, np.full(found.n_cells - 1, clock))
            changed[c] = clock
            n += found.n_cells - 1
    return changed
