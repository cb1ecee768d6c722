"""A tree over coded rows, and a walk through it for every region. Their plain twin is in the tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import kernel
from countervail.core.arrays import Codes, Floats, Ints

Bits = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_LEAF = 12  # rows that are gone through one by one
_NONE, _ONE = np.uint64(0), np.uint64(1)


@kernel
def grow(codes: Codes, weights: Ints, shifts: Ints, worth: Floats) -> tuple[Ints, Ints, Codes, Bits]:
    """Halve the rows again and again; they are put in order in place.

    Nodes stand before what is below them. Each has its rows' first and last place, the node after all that is below it,
    and its weight (`nodes`); for each column the least and greatest code (`box`) and which groups of codes occur
    (`masks`; a code's group is the code without its last `shifts` bits). A node is cut at the mean of the column whose
    width, times what a cut of that column is worth, is greatest.
    """
    n, q = codes.shape
    most = 2 * n + 1
    nodes = np.empty((most, 4), np.int64)
    box = np.empty((most, q, 2), np.int32)
    masks = np.empty((most, q), np.uint64)
    stack = np.empty((most, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    waiting, count = 1, 0
    while waiting > 0:
        waiting -= 1
        start, end = stack[waiting, 0], stack[waiting, 1]
        at, best, score = count, -1, 0.0
        count += 1
        weight = np.int64(0)
        for i in range(start, end):
            weight += weights[i]
        nodes[at, 0], nodes[at, 1], nodes[at, 3] = start, end, weight
        for j in range(q):
            low, high, mask = codes[start, j], codes[start, j], _NONE
            for i in range(start, end):
                low, high = min(low, codes[i, j]), max(high, codes[i, j])
                mask |= _ONE << np.uint64(codes[i, j] >> shifts[j])
            box[at, j, 0], box[at, j, 1], masks[at, j] = low, high, mask
            if (high - low) * worth[j] > score:
                best, score = j, (high - low) * worth[j]
        if end - start <= _LEAF or best < 0:
            continue
        total = np.int64(0)
        for i in range(start, end):
            total += codes[i, best]
        # Below the greatest code, so that neither side is empty.
        cut = min(total // (end - start), np.int64(box[at, best, 1] - 1))
        a, b = start, end - 1
        while a <= b:
            if codes[a, best] <= cut:
                a += 1
                continue
            for j in range(q):
                codes[a, j], codes[b, j] = codes[b, j], codes[a, j]
            weights[a], weights[b] = weights[b], weights[a]
            b -= 1
        stack[waiting, 0], stack[waiting, 1] = a, end
        stack[waiting + 1, 0], stack[waiting + 1, 1] = start, a
        waiting += 2
    after = np.empty(n + 1, np.int64)
    after[n] = count
    for at in range(count - 1, -1, -1):  # of the nodes that begin at a place the first one stays
        nodes[at, 2] = after[nodes[at, 1]]
        after[nodes[at, 0]] = at
    return weights, nodes[:count].copy(), box[:count].copy(), masks[:count].copy()


@kernel
def walk(
    codes: Codes,
    weights: Ints,
    shifts: Ints,
    nodes: Ints,
    box: Codes,
    masks: Bits,
    cells: Codes,
    spans: Codes,
    groups: Bits,
    bits: Bytes,
    starts: Ints,
) -> tuple[Ints, Ints]:
    """The weight of the rows in each region, and how many nodes and rows were looked at.

    `cells` says which cell a region has in each column. A cell holds the codes from `spans[0]` to `spans[1]`, and
    besides them `spans[2]` (-1: none); of these, all codes of the groups in `groups[1]`, none of the groups that are
    not in `groups[0]`, and of the other groups those with a bit in `bits`, where the cell's begin at `starts`.
    """
    regions, q = cells.shape
    found, looked = np.zeros(regions, np.int64), np.zeros(2, np.int64)
    for r in range(regions):
        at = 0
        while at < len(nodes):
            looked[0] += 1
            apart, within = False, True
            for j in range(q):
                c = cells[r, j]
                low, high, more = spans[c, 0], spans[c, 1], spans[c, 2]
                a, b = box[at, j, 0], box[at, j, 1]
                if ((b < low or a > high) and not (a <= more <= b)) or masks[at, j] & groups[c, 0] == _NONE:
                    apart = True
                    break
                if not ((low <= a and b <= high) or (a == b and a == more)) or masks[at, j] & ~groups[c, 1] != _NONE:
                    within = False
            if apart or within:
                if within and not apart:
                    found[r] += nodes[at, 3]
                at = nodes[at, 2]
                continue
            if nodes[at, 2] > at + 1:  # there are nodes below
                at += 1
                continue
            for i in range(nodes[at, 0], nodes[at, 1]):
                looked[1] += 1
                fits = True
                for j in range(q):
                    c, v = cells[r, j], codes[i, j]
                    group = np.uint64(v >> shifts[j])
                    outside = (v < spans[c, 0] or v > spans[c, 1]) and v != spans[c, 2]
                    if outside or (groups[c, 0] >> group) & _ONE == _NONE:
                        fits = False
                    elif (groups[c, 1] >> group) & _ONE == _NONE:
                        fits = (bits[starts[c] + (v >> 3)] >> (7 - (v & 7))) & 1 == 1
                    if not fits:
                        break
                if fits:
                    found[r] += weights[i]
            at = nodes[at, 2]
    return found, looked
