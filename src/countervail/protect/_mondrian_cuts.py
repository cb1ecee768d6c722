"""Strict Mondrian on code arrays: the admissible cuts of one attribute."""

import numpy as np

from countervail.protect._mondrian_loss import climb
from countervail.protect._mondrian_rules import DIRECT, Attributes, Ints, Longs, Rules, Work, both_fit, kernel


@kernel
def nearest_half(before: int, after: int, total: int) -> bool:
    """Whether a left half of `before` rows is at least as near to half the node as one of `after`."""
    return abs(2 * before - total) <= abs(2 * after - total)


@kernel
def median_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    total: int,
    hist: Longs,
    keys: Ints,
    key_weights: Longs,
    buckets: Longs,
) -> tuple[int, int]:
    """The cut nearest half: (last code on the left, rows on the left), without sorting the node."""
    first, last = low, high
    below = 0
    n = codes.shape[0]
    crossing = low
    weight = 0
    while True:
        width = last - first + 1
        if width <= min(4 * n + 32, DIRECT):
            for r in range(n):
                hist[codes[r]] += counts[r]
            v = first
            while 2 * (below + hist[v]) < total:
                below += hist[v]
                v += 1
            crossing = v
            weight = hist[v]
            if width <= 2 * n:
                hist[first : last + 1] = 0
            else:
                for r in range(n):
                    hist[codes[r]] = 0
            break
        if n <= 24:
            for r in range(n):
                x = codes[r]
                w = counts[r]
                i = r
                while i > 0 and keys[i - 1] > x:
                    keys[i] = keys[i - 1]
                    key_weights[i] = key_weights[i - 1]
                    i -= 1
                keys[i] = x
                key_weights[i] = w
            i = 0
            while True:
                crossing = keys[i]
                weight = 0
                while i < n and keys[i] == crossing:
                    weight += key_weights[i]
                    i += 1
                if 2 * (below + weight) >= total:
                    break
                below += weight
            break
        # Few rows spread over many codes: narrow the search to the bucket where the running count passes half.
        shift = 0
        while (width >> shift) >= min(2 * n, DIRECT):
            shift += 1
        n_buckets = (width >> shift) + 1
        buckets[:n_buckets] = 0
        for r in range(n):
            buckets[(codes[r] - first) >> shift] += counts[r]
        b = 0
        while 2 * (below + buckets[b]) < total:
            below += buckets[b]
            b += 1
        m = 0
        for r in range(n):
            if (codes[r] - first) >> shift == b:
                keys[m] = codes[r]
                key_weights[m] = counts[r]
                m += 1
        first = first + (b << shift)
        last = min(last, first + (1 << shift) - 1)
        codes = keys[:m]
        counts = key_weights[:m]
        n = m
    if crossing > low and (crossing == high or nearest_half(below, below + weight, total)):
        return crossing - 1, below
    return crossing, below + weight


@kernel
def present(codes: Ints, counts: Longs, low: int, high: int, work: Work) -> int:
    """List the distinct codes in ascending order in `work.values`, their weights in `work.hist`."""
    n = codes.shape[0]
    hist = work.hist
    m = 0
    if high - low < 4 * n + 32:
        for r in range(n):
            hist[codes[r]] += counts[r]
        for v in range(low, high + 1):
            if hist[v] > 0:
                work.values[m] = v
                m += 1
        return m
    for r in range(n):
        v = codes[r]
        if hist[v] == 0:
            work.values[m] = v
            m += 1
        hist[v] += counts[r]
    work.values[:m].sort()
    return m


@kernel
def group_rows(codes: Ints, n_items: int, work: Work) -> None:
    """Counting sort of the node's rows by item: rows of item i are grouped[offsets[i]:offsets[i + 1]]."""
    offsets = work.offsets
    offsets[: n_items + 1] = 0
    n = codes.shape[0]
    for r in range(n):
        offsets[work.index_of[codes[r]] + 1] += 1
    for i in range(n_items):
        offsets[i + 1] += offsets[i]
    for r in range(n):
        i = work.index_of[codes[r]]
        work.grouped[offsets[i]] = r
        offsets[i] += 1
    for i in range(n_items, 0, -1):
        offsets[i] = offsets[i - 1]
    offsets[0] = 0


@kernel
def add_item(item: int, sign: int, counts: Longs, secret: Ints, classes: Longs, work: Work) -> None:
    """Add (or take away) the sensitive values of one item's rows."""
    for g in range(work.offsets[item], work.offsets[item + 1]):
        r = work.grouped[g]
        classes[secret[r]] += sign * counts[r]


@kernel
def nearest_fitting(
    weights: Longs, n_items: int, total: int, counts: Longs, secret: Ints, rules: Rules, work: Work
) -> tuple[int, int]:
    """The prefix of the items nearest half that satisfies every constraint: (its length or 0, its rows)."""
    low, low_total = 0, 0
    low_classes, high_classes = work.low_classes, work.high_classes
    low_classes[:] = 0
    while low < n_items - 1 and 2 * (low_total + weights[low]) <= total:
        add_item(low, 1, counts, secret, low_classes, work)
        low_total += weights[low]
        low += 1
    high_classes[:] = low_classes
    high, high_total = low, low_total
    if high < n_items:
        add_item(high, 1, counts, secret, high_classes, work)
        high_total += weights[high]
        high += 1
    while True:
        low_open = low >= 1 and low_total >= rules.k
        high_open = high < n_items and total - high_total >= rules.k
        if not low_open and not high_open:
            return 0, 0
        if low_open and (not high_open or nearest_half(low_total, high_total, total)):
            if both_fit(low_classes, low_total, total, rules, work):
                return low, low_total
            low -= 1
            add_item(low, -1, counts, secret, low_classes, work)
            low_total -= weights[low]
        else:
            if both_fit(high_classes, high_total, total, rules, work):
                return high, high_total
            add_item(high, 1, counts, secret, high_classes, work)
            high_total += weights[high]
            high += 1


@kernel
def ordered_cut(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    low: int,
    high: int,
    missing: int,
    total: int,
    plain: bool,
    rules: Rules,
    work: Work,
) -> tuple[int, int]:
    """The admissible cut of an ordered attribute: (last code on the left or -1, rows on the left)."""
    mixed = high == missing
    n = codes.shape[0]
    if plain:
        if mixed:
            left = 0
            for r in range(n):
                if codes[r] != missing:
                    left += counts[r]
            if left >= rules.k and total - left >= rules.k:
                return missing - 1, left
        threshold, left = median_cut(
            codes, counts, low, high, total, work.hist, work.keys, work.key_weights, work.buckets
        )
        if left >= rules.k and total - left >= rules.k:
            return threshold, left
        return -1, 0
    m = present(codes, counts, low, high, work)
    for i in range(m):
        v = work.values[i]
        work.weights[i] = work.hist[v]
        work.hist[v] = 0
        work.index_of[v] = i
    group_rows(codes, m, work)
    if mixed:
        left = total - work.weights[m - 1]
        work.low_classes[:] = work.node_classes
        add_item(m - 1, -1, counts, secret, work.low_classes, work)
        if both_fit(work.low_classes, left, total, rules, work):
            return missing - 1, left
    length, left = nearest_fitting(work.weights, m, total, counts, secret, rules, work)
    if length == 0:
        return -1, 0
    return work.values[length - 1], left


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
    candidate: int, m: int, total: int, counts: Longs, secret: Ints, plain: bool, rules: Rules, work: Work
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
            length, left = nearest_fitting(weights, m, total, counts, secret, rules, work)
        for i in range(m):
            side[i] = 1 if i < length else 0
    if left < rules.k or total - left < rules.k:
        return 0
    if not plain and candidate != 0:
        _left_classes(m, counts, secret, work.low_classes, work)
        if not both_fit(work.low_classes, left, total, rules, work):
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
    rules: Rules,
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
                left = _share_out(candidate, m, total, counts, secret, plain, rules, work)
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
