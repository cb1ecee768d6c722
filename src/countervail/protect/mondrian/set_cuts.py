"""Strict Mondrian on code arrays: the admissible cut of a categorical attribute."""

import numpy as np

from countervail.protect.mondrian.constraints import Ints, Longs, Whole, inner
from countervail.protect.mondrian.cuts import (
    BEST_ITEMS,
    BEST_SIDE,
    CODE_SIDE,
    GROUP_HIST,
    HIST,
    INDEX_OF,
    ITEMS,
    LOW,
    SIDE,
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
from countervail.protect.mondrian.loss import climb, values_below


@inner
def top_level(n_values: int, tree: Whole, ancestors: Ints, values: Ints) -> int:
    """The level just below the lowest common ancestor of the values present: there they still differ."""
    first, level = -1, 0
    for i in range(n_values):
        first, level = climb(values[i], first, level, tree, ancestors)
    return level - 1


@inner
def _by_weight(items: Ints, weights: Longs, n: Whole) -> None:
    """Sort items by weight descending, then id (Shell's way)."""
    gap = 1
    while 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item, weight, at = items[i], weights[i], i
            while at >= gap and (
                weights[at - gap] < weight or (weights[at - gap] == weight and items[at - gap] > item)
            ):
                items[at] = items[at - gap]
                weights[at] = weights[at - gap]
                at -= gap
            items[at] = item
            weights[at] = weight
        gap //= 3


@inner
def list_items(n_values: int, level: Whole, tree: Whole, longs: Longs, ints: Ints, trees: Trees | None) -> int:
    """List what a set cut shares out, the groups of values at a level, by weight descending then id."""
    hist, groups, weights = longs[HIST], longs[GROUP_HIST], longs[WEIGHTS]
    values, items, index_of = ints[VALUES], ints[ITEMS], ints[INDEX_OF]
    m: Whole = np.int64(0)
    for i in range(n_values):
        v = values[i]
        g = v
        if trees is not None and level > 0:
            g = trees.ancestors[tree, v, level]
        if groups[g] == 0:
            items[m] = g
            m += 1
        groups[g] += hist[v]
    for i in range(m):
        weights[i] = groups[items[i]]
    _by_weight(items, weights, m)
    for i in range(m):
        groups[items[i]] = i
    for i in range(n_values):
        v = values[i]
        g = v
        if trees is not None and level > 0:
            g = trees.ancestors[tree, v, level]
        index_of[v] = groups[g]
    for i in range(m):
        groups[items[i]] = 0
    return int(m)


@inner
def _set_loss(n_values: int, left: int, total: int, tree: Whole, ints: Ints, trees: Trees | None) -> float:
    """Values times rows summed over both halves (a single value costs nothing): what the cut leaves unsaid."""
    values, side, index_of = ints[VALUES], ints[SIDE], ints[INDEX_OF]
    if trees is not None and trees.names_classes and tree >= 0:
        left_size, right_size = group_sizes(n_values, tree, ints, trees)
        return left * left_size + (total - left) * right_size
    n_left = 0
    for i in range(n_values):
        n_left += side[index_of[values[i]]]
    n_right = n_values - n_left
    return (left * float(n_left) if n_left > 1 else 0.0) + ((total - left) * float(n_right) if n_right > 1 else 0.0)


@inner
def group_sizes(n_values: int, tree: Whole, ints: Ints, trees: Trees) -> tuple[float, float]:
    """Number of values in the groups that the halves of a cut are called by; 0 for a single value."""
    ancestors, leaves = trees.ancestors, trees.leaves
    values, side, index_of = ints[VALUES], ints[SIDE], ints[INDEX_OF]
    left_first, right_first, left_level, right_level = -1, -1, 0, 0
    for i in range(n_values):
        v = values[i]
        if side[index_of[v]] == 1:
            left_first, left_level = climb(v, left_first, left_level, tree, ancestors)
        else:
            right_first, right_level = climb(v, right_first, right_level, tree, ancestors)
    left = values_below(left_first, left_level, tree, ancestors, leaves)
    return left, values_below(right_first, right_level, tree, ancestors, leaves)


@inner
def _share_out(
    candidate: int,
    m: int,
    total: int,
    k: int,
    start: int,
    counts: Longs,
    weights: Longs,
    side: Ints,
    secrets: Secrets | None,
) -> int:
    """Fill `side` (1: left) with a candidate that satisfies every constraint; rows on the left, 0 for none.

    Candidates: 0, the prefix by weight nearest half; 1, each item in turn to the lighter side; 2, the heaviest alone.
    """
    left = 0
    if candidate == 1:
        right = 0
        for i in range(m):
            if left <= right:
                side[i] = 1
                left += weights[i]
            else:
                side[i] = 0
                right += weights[i]
    else:
        length = 1
        left = weights[0]
        if candidate == 0:
            if secrets is None:
                while length < m - 1 and not nearest_half(left, left + weights[length], total):
                    left += weights[length]
                    length += 1
            else:
                length, left = nearest_fitting(weights, m, total, start, counts, secrets)
        for i in range(m):
            side[i] = 1 if i < length else 0
    if left < k or total - left < k:
        return 0
    if secrets is not None and candidate != 0:
        classes, more = secrets.classes[LOW], np.bool_(False)
        clear(classes)
        for i in range(m):
            if side[i] == 1:
                add_items(classes, i, i + 1, more, start, counts, secrets)
        if not both_fit(classes, left, total, secrets):
            return 0
    return left


@inner
def keep_cut(n_values: int, m: int, ints: Ints) -> None:
    """Leave a cut in BEST_ITEMS, BEST_SIDE (1: left) and CODE_SIDE (-1: left)."""
    for i in range(m):
        ints[BEST_ITEMS, i] = ints[ITEMS, i]
        ints[BEST_SIDE, i] = ints[SIDE, i]
    for i in range(n_values):
        v = ints[VALUES, i]
        ints[CODE_SIDE, v] = -ints[SIDE, ints[INDEX_OF, v]]


@inner
def set_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    total: int,
    k: int,
    gain: bool,
    j: int,
    start: int,
    longs: Longs,
    ints: Ints,
    trees: Trees | None,
    secrets: Secrets | None,
) -> tuple[int, int, int]:
    """The admissible cut of a categorical attribute: (items shared out or 0, their level, rows on the left).

    A hierarchy offers the children of the node first, then the levels below: a small child must not keep its large
    sibling from being cut. Gain takes the candidate that leaves least unsaid on this attribute, span the first that
    is admissible. The cut is left as `keep_cut` does.
    """
    values, hist, weights, side = ints[VALUES], longs[HIST], longs[WEIGHTS], ints[SIDE]
    n_values = present(codes, counts, low, high, values, hist)
    tree: Whole = np.int64(-1)
    level: Whole = np.int64(0)
    if trees is not None:
        tree = trees.tree_of[j]
        if tree >= 0:
            level = top_level(n_values, tree, trees.ancestors, values)
    best = np.inf
    best_m, best_left, last_m = 0, 0, 0
    best_level: Whole = 0
    while level >= 0:
        m = list_items(n_values, level, tree, longs, ints, trees)
        if m > last_m:
            last_m = m
            if secrets is not None:
                group_rows(codes, m, ints[INDEX_OF], secrets)
            for candidate in range(3):
                left = _share_out(candidate, m, total, k, start, counts, weights, side, secrets)
                if left == 0:
                    continue
                loss = _set_loss(n_values, left, total, tree, ints, trees) if gain else 0.0
                if loss < best:
                    best, best_m, best_level, best_left = loss, m, level, left
                    keep_cut(n_values, m, ints)
                if not gain:
                    break
        if not gain and best_m > 0:
            break
        level -= 1
    for i in range(n_values):
        hist[values[i]] = 0
    return best_m, int(best_level), best_left
