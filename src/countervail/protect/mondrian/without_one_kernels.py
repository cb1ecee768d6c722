"""Mondrian without each person in turn, in one go.

Taking one row away changes decisions on the row's own path only. At each node everybody who is on the path is asked
what would be done there without them; those with the same answer share the cut, made on all rows of the node, and are
asked again in its parts. A part that a person is not in is as it would be without them. All answers are the partition
kernels' own: people are asked together only where the kernels cannot tell them apart.

A node is its distinct rows and, alongside, which of them are asked. `work` is None for basic Mondrian, `basic` for all
others: the compiler leaves out what is None. Every function that reaches the partition kernels is compiled with them
once more, and once more for every literal that it is called with: hence few of them, and np.int64 and np.bool_.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.protect.mondrian.basic_cuts import grow_basic
from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import CutConstraints, Flags, Floats, Ints, Longs, kernel
from countervail.protect.mondrian.cuts import Work
from countervail.protect.mondrian.grow import grow_tree
from countervail.protect.mondrian.loss import climb, ordered_loss

Whole = int | np.signedinteger[Any]  # counters start as np.int64, for the compiler's sake
# Nodes of so few rows are grown anew without each person.
_FEW: Final = 16


class Kinds(NamedTuple):
    """Distinct (row, sensitive value) pairs, how many people each stands for, and where its counts go in the output."""

    codes: Ints
    counts: Longs
    secret: Ints
    place: Ints


class Task(NamedTuple):
    """How rows are cut; `lows` and `highs` are scratch space for the ranges that parts take over (basic Mondrian)."""

    data: Attributes
    rules: CutConstraints
    gain: bool
    work: Work | None
    basic: bool | None
    lows: Ints
    highs: Ints


class Leaves(NamedTuple):
    """What leaves say: ranges, sets (bits; of an ordered attribute only whether values are missing), and who is in."""

    low: Ints
    high: Ints
    words: NDArray[np.uint64]
    classes: Longs
    table: Longs
    groups: bool


def make_leaves(room: int, data: Attributes, n_secret: int, *, groups: bool) -> Leaves:
    """Room for leaves, and scratch space to sum them up by attribute, code and sensitive value."""
    q, widest = len(data.sizes), int(data.sizes[data.kind != ORDERED].max(initial=1))
    return Leaves(
        np.empty((room, q), np.int32),
        np.empty((room, q), np.int32),
        np.empty((room, q, widest // 64 + 1), np.uint64),
        np.empty((room, n_secret), np.int64),
        np.zeros((q, int(data.sizes.max()) + 1, n_secret), np.int64),
        groups,
    )


@kernel
def _write_leaf(at: int, rows: Ints, skip: Whole, kinds: Kinds, data: Attributes, leaves: Leaves) -> None:
    """The leaf that these rows make, without one person of row number `skip` (-1: all are there)."""
    codes, counts, words, ancestors = kinds.codes, kinds.counts, leaves.words, data.ancestors
    one = np.uint64(1)
    leaves.classes[at] = 0
    for r in range(rows.shape[0]):
        leaves.classes[at, kinds.secret[rows[r]]] += counts[rows[r]] - (r == skip)
    for j in range(codes.shape[1]):
        words[at, j] = np.uint64(0)
        low, high, first, level, tree = 2**31 - 1, -1, -1, 0, data.tree_of[j]
        for r in range(rows.shape[0]):
            if r == skip and counts[rows[r]] == 1:
                continue
            v = codes[rows[r], j]
            if data.kind[j] == ORDERED and v == data.missing[j]:
                words[at, j, 0] = one
            elif data.kind[j] == ORDERED:
                low, high = min(low, v), max(high, v)
            elif leaves.groups and tree >= 0:
                first, level = climb(v, first, level, tree, ancestors)
            else:
                words[at, j, v >> 6] |= one << np.uint64(v & 63)
        leaves.low[at, j], leaves.high[at, j] = low, high
        if first >= 0:
            for v in range(data.sizes[j]):
                if ancestors[tree, v, level] == ancestors[tree, first, level]:
                    words[at, j, v >> 6] |= one << np.uint64(v & 63)


@kernel
def _holds(at: int, j: int, v: int, data: Attributes, leaves: Leaves) -> bool:
    """Whether a leaf's range or set holds a code."""
    if data.kind[j] != ORDERED:
        return bool((leaves.words[at, j, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))
    if v == data.missing[j]:
        return bool(leaves.words[at, j, 0])
    return bool(leaves.low[at, j] <= v <= leaves.high[at, j])


@kernel
def _sum_up(start: int, stop: int, data: Attributes, leaves: Leaves) -> None:
    """The people of all leaves that hold a code, by sensitive value; ranges by their ends first."""
    table, classes = leaves.table, leaves.classes
    for j in range(data.sizes.shape[0]):
        size = data.sizes[j]
        table[j, : size + 1] = 0
        ordered = data.kind[j] == ORDERED
        for at in range(start, stop):
            low, high = leaves.low[at, j], leaves.high[at, j] + 1
            for s in range(classes.shape[1]):
                if ordered and high > 0:
                    table[j, low, s] += classes[at, s]
                    table[j, high, s] -= classes[at, s]
        for v in range(size):
            if ordered and v != data.missing[j]:
                for s in range(classes.shape[1] if v > 0 else 0):
                    table[j, v, s] += table[j, v - 1, s]
                continue
            table[j, v] = 0
            for at in range(start, stop):
                if _holds(at, j, v, data, leaves):
                    for s in range(classes.shape[1]):
                        table[j, v, s] += classes[at, s]


@kernel
def add_leaves(start: int, stop: int, who: Ints, kinds: Kinds, data: Attributes, leaves: Leaves, out: Ints) -> None:
    """Add to the counts of these rows the people of all leaves that hold their value, attribute by attribute."""
    codes, table, classes = kinds.codes, leaves.table, leaves.classes
    n_leaves = stop - start
    # A table pays once enough people ask it.
    summed = who.shape[0] * n_leaves > 4 * (n_leaves + data.sizes.sum())
    if summed:
        _sum_up(start, stop, data, leaves)
    for i in who:
        for j in range(codes.shape[1]):
            v, line = codes[i, j], out[kinds.place[i], j]
            if summed:
                for s in range(line.shape[0]):
                    line[s] += table[j, v, s]
                continue
            for at in range(start, stop):
                if _holds(at, j, v, data, leaves):
                    for s in range(line.shape[0]):
                        line[s] += classes[at, s]


@kernel
def _cut(
    rows: Ints, skip: Whole, once: Any, kinds: Kinds, task: Task, work: Work | None, basic: bool | None, side: Ints,
    tried: Flags,
) -> int:  # fmt: skip
    """Cut rows, once or all the way, without one person of row `skip`: the number of parts, and the part of each row.

    A row that goes with its only person is put to those of equal value, so that others can share the answer.
    """
    m, q = rows.shape[0], kinds.codes.shape[1]
    gone = skip if skip >= 0 and kinds.counts[rows[skip]] == 1 else -1
    size = m - 1 if gone >= 0 else m
    codes, counts, secret = np.empty((size, q), np.int32), np.empty(size, np.int64), np.empty(size, np.int32)
    at = 0
    for r in range(m):
        if r != gone:
            for j in range(q):
                codes[at, j] = kinds.codes[rows[r], j]
            counts[at], secret[at] = kinds.counts[rows[r]] - (r == skip), kinds.secret[rows[r]]
            at += 1
    part = np.empty(size, np.int32)
    n, j = 0, 0
    if basic is not None:
        n, tree = grow_basic(
            codes, counts, secret, task.data, task.rules, part, once, task.lows, task.highs, tried
        )  # fmt: skip
        j = tree.attribute[0]
    if work is not None:
        n, cut_tree = grow_tree(
            codes.T.copy(), counts, secret, task.data, task.rules, task.gain, work, part, once
        )  # fmt: skip
        j = cut_tree.attribute[0]
    at = 0
    for r in range(m):
        side[r] = 0
        if r != gone:
            side[r] = part[at]
            at += 1
    if gone >= 0 and once and n > 1:
        for r in range(m):
            if r != gone and kinds.codes[rows[r], j] == kinds.codes[rows[gone], j]:
                side[gone] = side[r]
                break
    return n


@kernel
def _write_leaves(
    at: int, rows: Ints, skip: Whole, side: Ints, n: int, kinds: Kinds, data: Attributes, leaves: Leaves
) -> None:
    """All n leaves of rows that were cut all the way without one person of row `skip`, from `at` on."""
    m = rows.shape[0]
    if skip >= 0 and kinds.counts[rows[skip]] == 1:
        side[skip] = -1
    start, order = np.zeros(n + 2, np.int64), np.empty(m, np.int32)
    for r in range(m):
        start[side[r] + 2] += 1
    start[1] = 0
    for c in range(n):
        start[c + 2] += start[c + 1]
    left_out = 0
    for r in range(m):
        if side[r] >= 0:
            place = start[side[r] + 1]
            order[place] = rows[r]
            start[side[r] + 1] += 1
            if r == skip:
                left_out = place + 1
    for c in range(n):
        _write_leaf(at + c, order[start[c] : start[c + 1]], np.int64(left_out - 1 - start[c]), kinds, data, leaves)


@kernel
def _pairs(rows: Ints, j: int, n_secret: int, kinds: Kinds, slot: Ints, pair: Ints) -> int:
    """Number the pairs of code and sensitive value (codes alone, if that is not looked at): how many there are."""
    n = 0
    for again in range(2):
        for r in range(rows.shape[0]):
            key = kinds.codes[rows[r], j] * n_secret + (kinds.secret[rows[r]] if n_secret > 1 else 0)
            if again == 1:
                slot[key] = -1
                continue
            if slot[key] < 0:
                slot[key] = n
                n += 1
            pair[r] = slot[key]
    return n


@kernel
def _extents(rows: Ints, side: Ints, kinds: Kinds, data: Attributes, held: Longs, unsure: Flags, loss: Floats) -> None:
    """What both halves of a cut lose; those who alone keep an extent as it is become `unsure`."""
    low, high, distinct = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    for j in range(kinds.codes.shape[1]):
        low[:], high[:], distinct[:] = 2**31, -1, 0
        for r in range(rows.shape[0]):
            v, c = kinds.codes[rows[r], j], side[r]
            distinct[c] += held[c, v] == 0
            held[c, v] += kinds.counts[rows[r]]
            low[c], high[c] = min(low[c], v), max(high[c], v)
        for r in range(rows.shape[0]):
            v, c = kinds.codes[rows[r], j], side[r]
            unsure[r] |= held[c, v] == 1 and (data.kind[j] != ORDERED or v == low[c] or v == high[c])
        for r in range(rows.shape[0]):
            held[side[r], kinds.codes[rows[r], j]] = 0
        for c in range(2):
            if data.kind[j] == ORDERED:
                loss[c] += ordered_loss(low[c], high[c], data.missing[j], data.positions, j, data.span[j])
            elif distinct[c] > 1:
                loss[c] += distinct[c] / data.span[j]


@kernel
def _settle(cuts: Ints, n: int, first: int, gone: Whole) -> int:
    """The number of a cut that says the same as cut n, the last, but for a row that is gone; n if there is none."""
    for v in range(n):
        same = cuts[v, 0] == cuts[n, 0]
        a = 2
        while same and a < cuts.shape[1] and cuts[n, 0] > 1:
            same = cuts[v, a] == cuts[n, a] or a == first + gone
            a += 1
        if same:
            return v
    return n


@kernel
def _compare(
    rows: Ints, asked: Flags, low: Ints, high: Ints, tried: Flags, kinds: Kinds, task: Task, cuts: Ints, answer: Longs
) -> int:
    """Answer those without whom every attribute is cut as before and every half keeps its extents; the number of cuts.

    The cut of one attribute depends on a person's value there and the sensitive one: those who share both are asked
    as one. Of the cuts that nobody changed, span takes the same as before, gain the one whose halves lose least.
    """
    data, gain, lows, highs = task.data, task.gain, task.lows, task.highs
    m, q, n_secret, width = rows.shape[0], kinds.codes.shape[1], task.rules.share.shape[0], low.shape[0]
    first = 2 + 4 * width
    pair, n_pairs = np.empty((q, m), np.int32), np.zeros(q, np.int64)
    slot = np.full(data.sizes.max() * n_secret, -1, np.int32)
    for j in range(q):
        n_pairs[j] = _pairs(rows, j, n_secret, kinds, slot, pair[j]) if tried[j] else 0
    if n_pairs.sum() > asked.sum():
        return 1
    n, number = 1, np.full(q, -1, np.int64)
    unsure, losses, whole = np.zeros(m, np.bool_), np.zeros((q, 2)), np.zeros(q)
    held, anything = np.zeros((2, data.sizes.max()), np.int64), np.empty(q, np.bool_)
    for j in range(q):
        size = n_pairs[j]
        codes, counts, secret = np.zeros((size, q), np.int32), np.zeros(size, np.int64), np.zeros(size, np.int32)
        for r in range(m if size > 0 else 0):
            p = pair[j, r]
            codes[p, j], secret[p] = kinds.codes[rows[r], j], kinds.secret[rows[r]]
            counts[p] += kinds.counts[rows[r]]
        alike, these = Kinds(codes, counts, secret, secret), np.arange(size).astype(np.int32)
        lines = np.zeros((2, 5 + size), np.int32)  # with everybody, and without one
        changed = np.zeros(size, np.bool_)
        for p in range(-1, size if size > 0 else -1):
            line = lines[0 if p < 0 else 1]
            if width > 0:
                lows[0], highs[0] = 0, 0
                lows[0, j], highs[0, j] = low[j], high[j]
            parts = _cut(these, p, np.bool_(True), alike, task, task.work, task.basic, line[5:], anything)
            line[0] = parts
            if width > 0:
                line[1], line[2], line[3], line[4] = lows[0, j], highs[0, j], lows[parts - 1, j], highs[parts - 1, j]
            for a in range(5 + size if p >= 0 else 0):
                changed[p] |= lines[0, a] != line[a] and (a != 5 + p or counts[p] > 1)
        for r in range(m if size > 0 else 0):
            unsure[r] |= changed[pair[j, r]]
        if gain and lines[0, 0] > 1:
            cuts[n, 0] = 2
            for r in range(m):
                cuts[n, first + r] = lines[0, 5 + pair[j, r]]
            _extents(rows, cuts[n, first:], kinds, data, held, unsure, losses[j])
            for r in range(m):
                whole[j] += kinds.counts[rows[r]] * losses[j, cuts[n, first + r]]
            number[j] = _settle(cuts, n, first, np.int64(-first))
            n = max(n, number[j] + 1)
    if not gain and width == 0:
        _extents(rows, np.zeros(m, np.int32), kinds, data, held, unsure, losses[0])
    for r in range(m):
        best, least, second = 0, np.inf, np.inf
        for j in range(q):
            if number[j] >= 0:
                loss = whole[j] - losses[j, cuts[number[j], first + r]]
                if loss < least:
                    best, least, second = number[j], loss, least
                elif number[j] != best:
                    second = min(second, loss)
        # Nearly equal losses are left to the kernel, which sums them up in another order.
        if not unsure[r] and (n == 1 or second - least > 1e-9 * (1.0 + least)):
            answer[r] = best
    return n


@kernel
def _ask(rows: Ints, asked: Flags, low: Ints, high: Ints, kinds: Kinds, task: Task, answer: Longs) -> Ints:
    """What is done with a node, and would be without each person: `answer` gets a number of the cuts returned.

    Cut 0 is that with everybody. A cut is the number of its parts (1: a leaf), who asked for it, the ranges that the
    first and the last part take over (basic Mondrian), and the part of each row.
    """
    data, lows, highs, k = task.data, task.lows, task.highs, task.rules.k
    m, q, width = rows.shape[0], kinds.codes.shape[1], low.shape[0]
    first, total, n = 2 + 4 * width, 0, 0
    cuts = np.ones((q + 3, first + m), np.int32)
    tried = np.ones(q, np.bool_)
    for r in range(m):
        total += kinds.counts[rows[r]]
    if total < 2 * k:
        return cuts[:1]
    for r in range(-1, m):
        if r >= 0 and (not asked[r] or answer[r] >= 0):
            continue
        if n == cuts.shape[0]:
            more = np.ones((2 * n, cuts.shape[1]), np.int32)
            more[:n] = cuts
            cuts = more
        if width > 0:
            lows[0], highs[0], tried[:] = low, high, False
        parts = _cut(rows, r, np.bool_(True), kinds, task, task.work, task.basic, cuts[n, first:], tried)
        cuts[n, 0], cuts[n, 1] = parts, r
        for j in range(width):
            cuts[n, 2 + j], cuts[n, 2 + width + j] = lows[0, j], lows[parts - 1, j]
            cuts[n, 2 + 2 * width + j], cuts[n, 2 + 3 * width + j] = highs[0, j], highs[parts - 1, j]
        gone = r if r >= 0 and kinds.counts[rows[r]] == 1 else -first
        v = _settle(cuts, n, first, gone)
        n = max(n, v + 1)
        if r >= 0:
            answer[r] = v
        elif total - 1 < 2 * k:
            # Nothing is cut without one of them.
            cuts[1, 0] = 1
            answer[:] = cuts[0, 0] > 1
            return cuts[:2]
        else:
            answer[:] = -1
            # Under hierarchies that name the classes, gain weighs several cuts of one attribute: ask for everybody.
            if not (task.gain and data.tree_loss and (data.tree_of >= 0).any()):
                n = _compare(rows, asked, low, high, tried, kinds, task, cuts, answer)
    return cuts[:n]


@kernel
def explore(
    at: int, rows: Ints, asked: Flags, low: Ints, high: Ints, kinds: Kinds, task: Task, leaves: Leaves, out: Ints
) -> int:
    """Write the leaves of a node down from `at` on, and count for each person asked those that would be without them.

    Returns where the leaves end. `low` and `high` are the ranges that a node of basic Mondrian takes over.
    """
    data, m, answer = task.data, rows.shape[0], np.zeros(rows.shape[0], np.int64)
    cuts, again, tried = np.ones((1, m), np.int32), np.empty(m, np.int32), np.empty(kinds.codes.shape[1], np.bool_)
    few = m <= _FEW or not asked.any()
    if not few:
        cuts = _ask(rows, asked, low, high, kinds, task, answer)
    # Others first: leaves that are written down are never more than rows, and these are not needed for long.
    for v in range(cuts.shape[0] - 1, -1, -1):
        n_parts, mine = cuts[v, 0], np.flatnonzero(asked & (answer == v))
        if few or n_parts == 1 or (v > 0 and mine.shape[0] == 1):
            for i in range(mine.shape[0] + (v == 0)):
                r, end = mine[i] if i < mine.shape[0] else np.int64(-1), at + 1
                if n_parts == 1 and not few:
                    _write_leaf(at, rows, r, kinds, data, leaves)
                else:
                    task.lows[0], task.highs[0] = low, high
                    end = at + _cut(rows, r, np.bool_(False), kinds, task, task.work, task.basic, again, tried)
                    _write_leaves(at, rows, r, again, end - at, kinds, data, leaves)
                if r >= 0:
                    add_leaves(at, end, rows[r : r + 1], kinds, data, leaves, out)
            if v == 0:
                at = end
            continue
        side = cuts[v, cuts.shape[1] - m :]
        below, above = np.empty((n_parts, low.shape[0]), np.int32), np.empty((n_parts, low.shape[0]), np.int32)
        if low.shape[0] > 0:
            task.lows[0], task.highs[0] = low, high
            _cut(rows, np.int64(cuts[v, 1]), np.bool_(True), kinds, task, task.work, task.basic, again, tried)
            below[:], above[:] = task.lows[:n_parts], task.highs[:n_parts]
        for c in range(n_parts):
            inside, others = np.flatnonzero(side == c), mine[side[mine] != c]
            theirs = asked[inside] & (answer[inside] == v)
            end = explore(at, rows[inside], theirs, below[c], above[c], kinds, task, leaves, out)
            add_leaves(at, end, rows[others], kinds, data, leaves, out)
            if v == 0:
                at = end
    return at
