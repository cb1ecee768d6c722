"""Strict Mondrian on code arrays: the admissible cut of a categorical attribute."""

import numpy as np

from countervail.protect.mondrian.columns import Attributes
from countervail.protect.mondrian.constraints import CutConstraints, Ints, Longs, kernel
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


@kernel
def top_level(n_values: int, tree: int, ancestors: Ints, values: Ints) -> int:
    """The level just below the lowest common ancestor of the values present: there they still differ."""
    first, level = -1, 0
    for i in range(n_values):
        first, level = climb(values[i], first, level, tree, ancestors)
    return level - 1


@kernel
def list_items(n_values: int, level: int, tree: int, ancestors: Ints, work: Work) -> int:
    """List what a set cut shares out, the groups of values at a level, by weight descending then id."""
    hist, groups = work.hist, work.group_hist
    m = n_values
    if level == 0:
        for i in range(m):
            work.items[i] = work.values[i]
            work.weights[i] = hist[work.values[i]]
    else:
        m = 0
        for i in range(n_values):
            g = ancestors[tree, work.values[i], level]
            if groups[g] == 0:
                work.items[m] = g
                m += 1
            groups[g] += hist[work.values[i]]
        work.items[:m].sort()
        for i in range(m):
            work.weights[i] = groups[work.items[i]]
    if m <= 40:
        for i in range(m):
            item, weight = work.items[i], work.weights[i]
            p = i
            while p > 0 and work.sorted_weights[p - 1] < weight:
                work.sorted_items[p] = work.sorted_items[p - 1]
                work.sorted_weights[p] = work.sorted_weights[p - 1]
                p -= 1
            work.sorted_items[p] = item
            work.sorted_weights[p] = weight
    else:
        order = np.argsort(-work.weights[:m], kind="mergesort")
        for i in range(m):
            work.sorted_items[i] = work.items[order[i]]
            work.sorted_weights[i] = work.weights[order[i]]
    for i in range(m):
        groups[work.sorted_items[i]] = i
    for i in range(n_values):
        v = work.values[i]
        work.index_of[v] = groups[v if level == 0 else ancestors[tree, v, level]]
    for i in range(m):
        groups[work.sorted_items[i]] = 0
    return m


@kernel
def _set_loss(n_values: int, left: int, total: int, j: int, data: Attributes, work: Work) -> float:
    """Values times rows summed over both halves (a single value costs nothing): what the cut leaves unsaid."""
    tree = data.tree_of[j]
    n_left, n_right = 0, 0
    left_first, right_first, left_level, right_level = -1, -1, 0, 0
    for i in range(n_values):
        v = work.values[i]
        if work.side[work.index_of[v]] == 1:
            n_left += 1
            if data.tree_loss and tree >= 0:
                left_first, left_level = climb(v, left_first, left_level, tree, data.ancestors)
        else:
            n_right += 1
            if data.tree_loss and tree >= 0:
                right_first, right_level = climb(v, right_first, right_level, tree, data.ancestors)
    left_size, right_size = float(n_left), float(n_right)
    if data.tree_loss and tree >= 0:
        left_size = data.leaves[tree, data.ancestors[tree, left_first, left_level], left_level]
        right_size = data.leaves[tree, data.ancestors[tree, right_first, right_level], right_level]
    return (left * left_size if n_left > 1 else 0.0) + ((total - left) * right_size if n_right > 1 else 0.0)


@kernel
def _left_classes(n_items: int, counts: Longs, secret: Ints, classes: Longs, work: Work) -> None:
    """Sensitive values of the rows whose item lies on the left."""
    classes[:] = 0
    for i in range(n_items):
        if work.side[i] == 1:
            add_item(i, 1, counts, secret, classes, work)


@kernel
def _share_out(
    candidate: int,
    m: int,
    total: int,
    counts: Longs,
    secret: Ints,
    plain: bool,
    constraints: CutConstraints,
    work: Work,
) -> int:
    """Fill `work.side` (1: left) with a candidate that satisfies every constraint; rows on the left, 0 for none.

    Candidates: 0, the prefix by weight nearest half; 1, each item in turn to the lighter side; 2, the heaviest alone.
    """
    weights, side = work.sorted_weights, work.side
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
        if candidate == 0 and plain:
            while length < m - 1 and not nearest_half(left, left + weights[length], total):
                left += weights[length]
                length += 1
        elif candidate == 0:
            length, left = nearest_fitting(weights, m, total, counts, secret, constraints, work)
        for i in range(m):
            side[i] = 1 if i < length else 0
    if left < constraints.k or total - left < constraints.k:
        return 0
    if not plain and candidate != 0:
        _left_classes(m, counts, secret, work.low_classes, work)
        if not both_fit(work.low_classes, left, total, constraints, work):
            return 0
    return left


@kernel
def set_cut(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    low: int,
    high: int,
    total: int,
    plain: bool,
    gain: bool,
    j: int,
    data: Attributes,
    constraints: CutConstraints,
    work: Work,
) -> tuple[int, int, int]:
    """The admissible cut of a categorical attribute: (items shared out or 0, their level, rows on the left).

    A hierarchy offers the children of the node first, then the levels below: a small child must not keep its large
    sibling from being cut. Gain takes the candidate that leaves least unsaid on this attribute, span the first that
    is admissible. The cut is left in `best_items`, `best_side` (1: left) and `code_side` (-1: left).
    """
    n_values = present(codes, counts, low, high, work)
    tree = data.tree_of[j]
    level = 0 if tree < 0 else top_level(n_values, tree, data.ancestors, work.values)
    best = np.inf
    best_m, best_level, best_left, last_m = 0, 0, 0, 0
    while level >= 0:
        m = list_items(n_values, level, tree, data.ancestors, work)
        if m > last_m:
            last_m = m
            if not plain:
                group_rows(codes, m, work)
            for candidate in range(3):
                left = _share_out(candidate, m, total, counts, secret, plain, constraints, work)
                if left == 0:
                    continue
                loss = _set_loss(n_values, left, total, j, data, work) if gain else 0.0
                if loss < best:
                    best, best_m, best_level, best_left = loss, m, level, left
                    work.best_items[:m] = work.sorted_items[:m]
                    work.best_side[:m] = work.side[:m]
                    for i in range(n_values):
                        v = work.values[i]
                        work.code_side[v] = -work.side[work.index_of[v]]
                if not gain:
                    break
        if not gain and best_m > 0:
            break
        level -= 1
    for i in range(n_values):
        work.hist[work.values[i]] = 0
    return best_m, best_level, best_left
