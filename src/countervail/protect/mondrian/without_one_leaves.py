"""The leaves of basic Mondrian: how many of their people agree with somebody, attribute by attribute."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.protect.mondrian.columns import ORDERED
from countervail.protect.mondrian.constraints import Ints, Longs, kernel
from countervail.protect.mondrian.without_one_node import Node, People, count_codes, group_of

Words = NDArray[np.uint64]


class Leaves(NamedTuple):
    """Labels and sensitive values of the leaves found so far; `table` is scratch, attribute x code x value."""

    low: Ints
    high: Ints
    hole: NDArray[np.bool_]
    words: Words
    classes: Ints
    table: Longs
    group_labels: bool


def make_leaves(room: int, q: int, sizes: Ints, kind: NDArray[np.int8], n_secret: int, group_labels: bool) -> Leaves:
    """Room for this many leaves."""
    widest = max((int(s) for s, t in zip(sizes, kind) if t != ORDERED), default=1)
    return Leaves(
        np.empty((room, q), np.int32),
        np.empty((room, q), np.int32),
        np.empty((room, q), np.bool_),
        np.empty((room, q, widest // 64 + 1), np.uint64),
        np.empty((room, n_secret), np.int32),
        np.zeros((q, int(sizes.max()) + 1, n_secret), np.int64),
        group_labels,
    )


@kernel
def _put(words: Words, code: int) -> None:
    words[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@kernel
def _common_level(j: int, rows: Ints, people: People, skip: int) -> int:
    """The lowest level at which all rows but one (unless it occurs more than once) share a group; -1: no row."""
    tree, ancestors, level, first = people.data.tree_of[j], people.data.ancestors, np.int64(0), np.int64(-1)
    for r in rows:
        if r == skip and people.counts[r] == 1:
            continue
        code = np.int64(people.codes[r, j])
        if first < 0:
            first = code
        while group_of(code, level, tree, ancestors) != group_of(first, level, tree, ancestors):
            level += 1
    return level if first >= 0 else -1


@kernel
def add_leaf(at: int, rows: Ints, people: People, leaves: Leaves) -> None:
    """Write a leaf down: tight ranges and sets, or the lowest common group of a hierarchy."""
    codes, data = people.codes, people.data
    leaves.classes[at] = 0
    for r in rows:
        leaves.classes[at, people.secret[r]] += people.counts[r]
    for j in range(codes.shape[1]):
        if data.kind[j] == ORDERED:
            missing, low, high, hole = data.missing[j], np.int32(2**31 - 1), np.int32(-1), False
            for r in rows:
                if codes[r, j] == missing:
                    hole = True
                else:
                    low, high = min(low, codes[r, j]), max(high, codes[r, j])
            leaves.low[at, j], leaves.high[at, j], leaves.hole[at, j] = low, high, hole
            continue
        words = leaves.words[at, j]
        words[:] = np.uint64(0)
        if leaves.group_labels and data.tree_of[j] >= 0:
            level, tree, ancestors = _common_level(j, rows, people, -1), data.tree_of[j], data.ancestors
            own = group_of(codes[rows[0], j], level, tree, ancestors)
            for code in range(data.sizes[j]):
                if group_of(code, level, tree, ancestors) == own:
                    _put(words, code)
        else:
            for r in rows:
                _put(words, codes[r, j])


@kernel
def _fill_table(start: int, stop: int, people: People, leaves: Leaves) -> None:
    """Sum the leaves up by attribute, code and sensitive value; ranges by their ends first."""
    data, table, classes, words = people.data, leaves.table, leaves.classes, leaves.words
    n_secret = classes.shape[1]
    for j in range(people.codes.shape[1]):
        size = data.sizes[j]
        table[j, : size + 1] = 0
        if data.kind[j] != ORDERED:
            for at in range(start, stop):
                for code in range(size):
                    if (words[at, j, code >> 6] >> np.uint64(code & 63)) & np.uint64(1):
                        for s in range(n_secret):
                            table[j, code, s] += classes[at, s]
            continue
        for at in range(start, stop):
            if leaves.high[at, j] >= 0:
                low, high = leaves.low[at, j], leaves.high[at, j] + 1
                for s in range(n_secret):
                    table[j, low, s] += classes[at, s]
                    table[j, high, s] -= classes[at, s]
        for code in range(1, size):
            for s in range(n_secret):
                table[j, code, s] += table[j, code - 1, s]
        if data.missing[j] >= 0:
            table[j, data.missing[j]] = 0
            for at in range(start, stop):
                if leaves.hole[at, j]:
                    for s in range(n_secret):
                        table[j, data.missing[j], s] += classes[at, s]


@kernel
def add_leaves(
    start: int, stop: int, who: Ints, sign: int, people: People, leaves: Leaves, place: Ints, out: Ints
) -> None:
    """Add (or take away) what the leaves hold of each sensitive value in agreement with each of these people."""
    codes, data, n_leaves = people.codes, people.data, stop - start
    low, high, hole, words, classes = leaves.low, leaves.high, leaves.hole, leaves.words, leaves.classes
    q, n_secret, table = codes.shape[1], classes.shape[1], leaves.table
    if n_leaves == 0 or who.shape[0] == 0:
        return
    # A table pays once enough people ask it.
    if who.shape[0] * n_leaves > 4 * (n_leaves + data.sizes.sum()):
        _fill_table(start, stop, people, leaves)
        for i in who:
            for j in range(q):
                for s in range(n_secret):
                    out[place[i], j, s] += sign * table[j, codes[i, j], s]
        return
    for i in who:
        for j in range(q):
            code, ordered, missing = codes[i, j], data.kind[j] == ORDERED, codes[i, j] == data.missing[j]
            for at in range(start, stop):
                if missing:
                    inside = hole[at, j]
                elif ordered:
                    inside = low[at, j] <= code <= high[at, j]
                else:
                    inside = (words[at, j, code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)
                if inside:
                    for s in range(n_secret):
                        out[place[i], j, s] += sign * classes[at, s]


@kernel
def _still_inside(j: int, i: int, rows: Ints, people: People, node: Node, group_labels: bool) -> bool:
    """Whether the label that these rows have without one of them would still contain her value."""
    data, codes, code = people.data, people.codes, people.codes[i, j]
    if node.hist[j, code] > 1:
        return True
    if data.kind[j] == ORDERED:
        if code == data.missing[j]:
            return False
        below, above = False, False
        for r in rows:
            v = codes[r, j]
            below |= v < code
            above |= v > code and v != data.missing[j]
        return below and above
    if not group_labels or data.tree_of[j] < 0:
        return False
    level = _common_level(j, rows, people, i)
    if level < 0:
        return False
    other = rows[0] if rows[0] != i else rows[1]
    tree, ancestors = data.tree_of[j], data.ancestors
    return group_of(people.codes[other, j], level, tree, ancestors) == group_of(code, level, tree, ancestors)


@kernel
def add_own(
    i: int, sign: int, rows: Ints, people: People, node: Node, group_labels: bool, place: Ints, out: Ints
) -> None:
    """Add the leaf that these rows make without one of them; or (sign -1) exchange the leaf with her for it."""
    for j in range(people.codes.shape[1]):
        count_codes(j, rows, people, node)
        inside = _still_inside(j, i, rows, people, node, group_labels)
        if inside:
            out[place[i], j, people.secret[i]] -= 1
        if inside == (sign > 0):
            for s in range(out.shape[2]):
                out[place[i], j, s] += sign * node.classes[s]
