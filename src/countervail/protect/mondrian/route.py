"""Strict Mondrian on code arrays: new rows down an existing tree, and equal rows as one."""

import numpy as np

from countervail.protect.mondrian.constraints import Bytes, Ints, Longs, kernel
from countervail.protect.mondrian.grow import CUT_LEAF, CUT_SET


@kernel
def _find(members: Ints, start: int, stop: int, item: int) -> bool:
    """Whether the ascending list holds the item."""
    while start < stop:
        middle = (start + stop) // 2
        if members[middle] < item:
            start = middle + 1
        elif members[middle] > item:
            stop = middle
        else:
            return True
    return False


@kernel
def walk(
    codes: Ints,
    attribute: Ints,
    cut: Bytes,
    threshold: Ints,
    level: Ints,
    left: Ints,
    right: Ints,
    cell: Ints,
    start: Longs,
    middle: Longs,
    stop: Longs,
    members: Ints,
    tree_of: Ints,
    ancestors: Ints,
    cell_of: Ints,
) -> None:
    """Walk every row down the tree; -1 where a cut meets a value it has not seen (code -1 or in neither half)."""
    for r in range(codes.shape[0]):
        node = 0
        while node >= 0 and cut[node] != CUT_LEAF:
            j = attribute[node]
            code = codes[r, j]
            if code < 0:
                node = -1
            elif cut[node] != CUT_SET:
                node = left[node] if code <= threshold[node] else right[node]
            else:
                item = code if level[node] == 0 else ancestors[tree_of[j], code, level[node]]
                if _find(members, start[node], middle[node], item):
                    node = left[node]
                elif _find(members, middle[node], stop[node], item):
                    node = right[node]
                else:
                    node = -1
        cell_of[r] = cell[node] if node >= 0 else -1


@kernel
def _label(keys: Longs, labels: Ints, distinct: Longs) -> int:
    """Number equal keys alike, in order of appearance, by open addressing; returns how many there are."""
    n = keys.shape[0]
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    # Start small: a table that fits the cache is faster, and most data repeat.
    bits = min(bits, 12)
    slots = np.full(1 << bits, -1, np.int32)
    m = 0
    for r in range(n):
        if 2 * m >= slots.shape[0]:
            bits += 2
            slots = np.full(1 << bits, -1, np.int32)
            for i in range(m):
                s = _slot(distinct[i], bits)
                while slots[s] >= 0:
                    s = (s + 1) & (slots.shape[0] - 1)
                slots[s] = i
        s = _slot(keys[r], bits)
        while slots[s] >= 0 and distinct[slots[s]] != keys[r]:
            s = (s + 1) & (slots.shape[0] - 1)
        if slots[s] < 0:
            slots[s] = m
            distinct[m] = keys[r]
            m += 1
        labels[r] = slots[s]
    return m


@kernel
def _slot(key: int, bits: int) -> np.int64:
    """Fibonacci hashing."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))


@kernel
def _mix(keys: Longs, column: Ints, size: int) -> None:
    """Append a digit to mixed-radix keys."""
    for r in range(keys.shape[0]):
        keys[r] = keys[r] * size + column[r]


def deduplicate(codes: Ints, secret: Ints, sizes: Ints, n_secret: int) -> tuple[Ints, Ints, Longs, Ints]:
    """Distinct (row, sensitive value) pairs: (codes, secret, counts, which of them each row is), ordered by content."""
    n, q = codes.shape
    keys = np.zeros(n, np.int64)
    labels, distinct = np.empty(n, np.int32), np.empty(n, np.int64)
    room = 1
    for j in range(q + 1):
        size = int(sizes[j]) if j < q else n_secret
        if room * size >= 2**62:
            # Too many combinations for one key: go on from the dense ranks of the prefixes that occur.
            room, keys = _rank(keys, labels, distinct)
        _mix(keys, codes[:, j] if j < q else secret, size)
        room *= size
    m, ranks = _rank(keys, labels, distinct)
    first = np.empty(m, np.int64)
    first[ranks] = np.arange(n)
    return codes[first], secret[first], np.bincount(ranks, minlength=m), ranks.astype(np.int32)


def as_one(codes: Ints, secret: Ints, sizes: Ints, n_secret: int) -> tuple[Ints, Ints, Longs, Ints]:
    """Equal rows as one with a count; left as they are where a column has almost as many values as there are rows."""
    n = len(codes)
    if n > 100_000 and 2 * int(sizes.max()) > n:
        return codes, secret, np.ones(n, np.int64), np.arange(n, dtype=np.int32)
    return deduplicate(codes, secret, sizes, n_secret)


def _rank(keys: Longs, labels: Ints, distinct: Longs) -> tuple[int, Longs]:
    """Dense ranks of the keys."""
    m = _label(keys, labels, distinct)
    rank = np.empty(m, np.int64)
    rank[np.argsort(distinct[:m])] = np.arange(m)
    return m, rank[labels]
