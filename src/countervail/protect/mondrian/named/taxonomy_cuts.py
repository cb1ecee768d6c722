"""Cuts of a column whose classes are named by groups of a hierarchy: what a cut is worth once it is carried through.

A class is called by the lowest group that holds all its values, so a cut that parts two of five siblings from the other
three gains nothing on that column. What pays is to set siblings apart one by one. The first of these cuts looks poor on
its own; it is judged by the loss that is left when every sibling that is large enough has been set apart, relative to
how finely that divides the rows.
"""

import numpy as np

from countervail.protect.mondrian.constraints import FITS, Ints, Longs, fits, inner
from countervail.protect.mondrian.cuts import (
    HIGH,
    HIST,
    INDEX_OF,
    LOW,
    SIDE,
    TOP,
    VALUES,
    WEIGHTS,
    Secrets,
    Trees,
    add_items,
    both_fit,
    clear,
    group_rows,
    nearest_fitting,
    nearest_half,
    present,
)
from countervail.protect.mondrian.loss import climb
from countervail.protect.mondrian.set_cuts import group_sizes, keep_cut, list_items, top_level


@inner
def bits(part: int, total: int) -> float:
    """What a part contributes to the entropy, in bits, of a division of the rows."""
    if part <= 0:
        return 0.0
    return float(-(part / total) * np.log2(part / total))


@inner
def _items_fit(first: int, last: int, weight: int, k: int, start: int, counts: Longs, secrets: Secrets | None) -> bool:
    """Whether the rows of some items together satisfy every constraint."""
    if weight < k:
        return False
    if secrets is not None:
        classes = secrets.classes[HIGH]
        clear(classes)
        add_items(classes, first, last, np.bool_(False), start, counts, secrets)
        return fits(classes, weight, secrets.rules, secrets.classes[TOP], secrets.flow) == FITS
    return True


@inner
def _carried_through(
    n_values: int,
    m: int,
    total: int,
    k: int,
    start: int,
    counts: Longs,
    tree: int,
    weights: Longs,
    ints: Ints,
    trees: Trees,
    secrets: Secrets | None,
) -> tuple[float, float]:
    """Values times rows that are left unsaid once each large enough item stands alone, and the bits of that division.

    Items come heaviest first. Those from the first that is too small on are pooled, with as many of the larger ones as
    the pool needs; nothing is left unsaid of a single value.
    """
    alone, pooled = 0, total
    while alone < m and _items_fit(alone, alone + 1, weights[alone], k, start, counts, secrets):
        pooled -= weights[alone]
        alone += 1
    while 0 < alone < m and not _items_fit(alone, m, pooled, k, start, counts, secrets):
        alone -= 1
        pooled += weights[alone]
    ancestors, leaves = trees.ancestors, trees.leaves
    n_parts = alone + 1
    first, level = np.full(n_parts, -1, np.int64), np.zeros(n_parts, np.int64)
    for i in range(n_values):
        v = ints[VALUES, i]
        part = min(ints[INDEX_OF, v], alone)
        first[part], level[part] = climb(v, first[part], level[part], tree, ancestors)
    loss, divided = 0.0, 0.0
    for part in range(n_parts):
        weight = weights[part] if part < alone else pooled
        divided += bits(weight, total)
        if level[part] > 0:
            loss += weight * leaves[tree, ancestors[tree, first[part], level[part]], level[part]]
    return loss, divided


@inner
def taxonomy_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    total: int,
    k: int,
    level: int,
    prefix: bool,
    j: int,
    start: int,
    longs: Longs,
    ints: Ints,
    trees: Trees,
    secrets: Secrets | None,
) -> tuple[int, int, float, float, float]:
    """One cut at a level: the heaviest group alone, or the heaviest groups up to half.

    Returns the number of groups (0: no such cut), the rows on the left, the loss of the two halves on this column, and
    loss and bits of the cut carried through (-1 where it cannot be). The cut is left as `keep_cut` does.
    """
    values, hist, weights, side = ints[VALUES], longs[HIST], longs[WEIGHTS], ints[SIDE]
    n_values = present(codes, counts, low, high, values, hist)
    tree = trees.tree_of[j]
    m, left, loss, later, divided = 0, 0, 0.0, -1.0, 0.0
    if level <= top_level(n_values, tree, trees.ancestors, values):
        above = list_items(n_values, level + 1, tree, longs, ints, trees)
        m = list_items(n_values, level, tree, longs, ints, trees)
        m = 0 if m == above else m  # the same groups as one level up
    if m > 0:
        length = 1
        if secrets is not None:
            group_rows(codes, m, ints[INDEX_OF], secrets)
            if prefix:
                length, left = nearest_fitting(weights, m, total, start, counts, secrets)
        elif prefix:
            left = weights[0]
            while length < m - 1 and not nearest_half(left, left + weights[length], total):
                left += weights[length]
                length += 1
        fitting = not prefix or length > 1  # one group alone is the other cut
        left = 0
        for i in range(m):
            side[i] = 1 if i < length else 0
            left += weights[i] if i < length else 0
        if secrets is not None and not prefix:
            classes = secrets.classes[LOW]
            clear(classes)
            add_items(classes, np.int64(0), np.int64(1), np.bool_(False), start, counts, secrets)
            fitting = both_fit(classes, left, total, secrets)
        if not fitting or left < k or total - left < k:
            m = 0
    if m > 0:
        left_size, right_size = group_sizes(n_values, tree, ints, trees)
        loss = left * left_size + (total - left) * right_size
        if not prefix:
            later, divided = _carried_through(
                n_values, m, total, k, start, counts, tree, weights, ints, trees, secrets
            )  # fmt: skip
        keep_cut(n_values, m, ints)
    for i in range(n_values):
        hist[values[i]] = 0
    return m, left, loss, later, divided
