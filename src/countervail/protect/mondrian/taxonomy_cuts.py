"""Cuts of a column whose classes are named by groups of a hierarchy: what a cut is worth once it is carried through.

A class is called by the lowest group that holds all its values, so a cut that parts two of five siblings from the other
three gains nothing on that column. What pays is to set siblings apart one by one. The first of these cuts looks poor on
its own; it is judged by the loss that is left when every sibling that is large enough has been set apart, relative to
how finely that divides the rows.
"""

import numpy as np

from countervail.protect.mondrian.columns import Attributes
from countervail.protect.mondrian.constraints import FITS, CutConstraints, Ints, Longs, fits, kernel
from countervail.protect.mondrian.cuts import (
    Work,
    add_item,
    both_fit,
    group_rows,
    nearest_fitting,
    nearest_half,
    present,
)
from countervail.protect.mondrian.loss import climb
from countervail.protect.mondrian.set_cuts import list_items, top_level


@kernel
def bits(part: int, total: int) -> float:
    """What a part contributes to the entropy, in bits, of a division of the rows."""
    if part <= 0:
        return 0.0
    return float(-(part / total) * np.log2(part / total))


@kernel
def _items_fit(
    first: int, last: int, weight: int, counts: Longs, secret: Ints, constraints: CutConstraints, work: Work
) -> bool:
    """Whether the rows of some items together satisfy every constraint."""
    if weight < constraints.k:
        return False
    if constraints.diversity == 0 and constraints.closeness == 0:
        return True
    work.high_classes[:] = 0
    for item in range(first, last):
        add_item(item, 1, counts, secret, work.high_classes, work)
    return fits(work.high_classes, weight, constraints, work.top_classes, work.flow) == FITS


@kernel
def _carried_through(
    n_values: int,
    m: int,
    total: int,
    counts: Longs,
    secret: Ints,
    j: int,
    data: Attributes,
    constraints: CutConstraints,
    work: Work,
) -> tuple[float, float]:
    """Values times rows that are left unsaid once each large enough item stands alone, and the bits of that division.

    Items come heaviest first. Those from the first that is too small on are pooled, with as many of the larger ones as
    the pool needs; nothing is left unsaid of a single value.
    """
    weights = work.sorted_weights
    alone, pooled = 0, total
    while alone < m and _items_fit(alone, alone + 1, weights[alone], counts, secret, constraints, work):
        pooled -= weights[alone]
        alone += 1
    while 0 < alone < m and not _items_fit(alone, m, pooled, counts, secret, constraints, work):
        alone -= 1
        pooled += weights[alone]
    tree, ancestors = data.tree_of[j], data.ancestors
    n_parts = alone + 1
    first, level = np.full(n_parts, -1, np.int64), np.zeros(n_parts, np.int64)
    for i in range(n_values):
        v = work.values[i]
        part = min(work.index_of[v], alone)
        first[part], level[part] = climb(v, first[part], level[part], tree, ancestors)
    loss, divided = 0.0, 0.0
    for part in range(n_parts):
        weight = weights[part] if part < alone else pooled
        divided += bits(weight, total)
        if level[part] > 0:
            loss += weight * data.leaves[tree, ancestors[tree, first[part], level[part]], level[part]]
    return loss, divided


@kernel
def _halves(n_values: int, left: int, total: int, j: int, data: Attributes, work: Work) -> float:
    """Values times rows that both halves of a cut leave unsaid."""
    tree, ancestors = data.tree_of[j], data.ancestors
    left_first, right_first, left_level, right_level = -1, -1, 0, 0
    for i in range(n_values):
        v = work.values[i]
        if work.side[work.index_of[v]] == 1:
            left_first, left_level = climb(v, left_first, left_level, tree, ancestors)
        else:
            right_first, right_level = climb(v, right_first, right_level, tree, ancestors)
    loss = 0.0
    if left_level > 0:
        loss += left * data.leaves[tree, ancestors[tree, left_first, left_level], left_level]
    if right_level > 0:
        loss += (total - left) * data.leaves[tree, ancestors[tree, right_first, right_level], right_level]
    return loss


@kernel
def taxonomy_cut(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    low: int,
    high: int,
    total: int,
    plain: bool,
    level: int,
    prefix: bool,
    j: int,
    data: Attributes,
    constraints: CutConstraints,
    work: Work,
) -> tuple[int, int, float, float, float]:
    """One cut at a level: the heaviest group alone, or the heaviest groups up to half.

    Returns the number of groups (0: no such cut), the rows on the left, the loss of the two halves on this column, and
    loss and bits of the cut carried through (-1 where it cannot be). The cut is left as `set_cut` leaves it.
    """
    n_values = present(codes, counts, low, high, work)
    tree = data.tree_of[j]
    m, left, loss, later, divided = 0, 0, 0.0, -1.0, 0.0
    if level <= top_level(n_values, tree, data.ancestors, work.values):
        above = list_items(n_values, level + 1, tree, data.ancestors, work)
        m = list_items(n_values, level, tree, data.ancestors, work)
        m = 0 if m == above else m  # the same groups as one level up
    if m > 0:
        weights = work.sorted_weights
        if not plain:
            group_rows(codes, m, work)
        length = 1
        if prefix and plain:
            left = weights[0]
            while length < m - 1 and not nearest_half(left, left + weights[length], total):
                left += weights[length]
                length += 1
        elif prefix:
            length, left = nearest_fitting(weights, m, total, counts, secret, constraints, work)
        fitting = not prefix or length > 1  # one group alone is the other cut
        left = 0
        for i in range(m):
            work.side[i] = 1 if i < length else 0
            left += weights[i] if i < length else 0
        if not plain and not prefix:
            work.low_classes[:] = 0
            add_item(0, 1, counts, secret, work.low_classes, work)
            fitting = both_fit(work.low_classes, left, total, constraints, work)
        if not fitting or left < constraints.k or total - left < constraints.k:
            m = 0
    if m > 0:
        loss = _halves(n_values, left, total, j, data, work)
        if not prefix:
            later, divided = _carried_through(n_values, m, total, counts, secret, j, data, constraints, work)
        work.best_items[:m] = work.sorted_items[:m]
        work.best_side[:m] = work.side[:m]
        for i in range(n_values):
            v = work.values[i]
            work.code_side[v] = -work.side[work.index_of[v]]
    for i in range(n_values):
        work.hist[work.values[i]] = 0
    return m, left, loss, later, divided
