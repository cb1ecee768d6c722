"""Strict Mondrian on code arrays: the admissible cut of an ordered attribute, and what all cuts share."""

from typing import Final, NamedTuple

from countervail.protect.mondrian.constraints import FITS, CutConstraints, Floats, Ints, Longs, fits, kernel

# Histograms of this many codes stay in the first-level cache.
DIRECT: Final = 2048


class Work(NamedTuple):
    """Scratch space; `hist` and `group_hist` are zero between uses."""

    hist: Longs
    group_hist: Longs
    values: Ints
    items: Ints
    weights: Longs
    sorted_items: Ints
    sorted_weights: Longs
    side: Ints
    best_items: Ints
    best_side: Ints
    code_side: Ints
    index_of: Ints
    offsets: Longs
    grouped: Ints
    keys: Ints
    key_weights: Longs
    buckets: Longs
    node_classes: Longs
    low_classes: Longs
    high_classes: Longs
    rest_classes: Longs
    top_classes: Longs
    flow: Floats


@kernel
def both_fit(left: Longs, left_total: int, total: int, constraints: CutConstraints, work: Work) -> bool:
    """Whether the left classes and what they leave of the node both satisfy every constraint."""
    if left_total < constraints.k or total - left_total < constraints.k:
        return False
    rest = work.rest_classes
    for s in range(left.shape[0]):
        rest[s] = work.node_classes[s] - left[s]
    if fits(left, left_total, constraints, work.top_classes, work.flow) != FITS:
        return False
    return fits(rest, total - left_total, constraints, work.top_classes, work.flow) == FITS


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
    weights: Longs, n_items: int, total: int, counts: Longs, secret: Ints, constraints: CutConstraints, work: Work
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
        low_open = low >= 1 and low_total >= constraints.k
        high_open = high < n_items and total - high_total >= constraints.k
        if not low_open and not high_open:
            return 0, 0
        if low_open and (not high_open or nearest_half(low_total, high_total, total)):
            if both_fit(low_classes, low_total, total, constraints, work):
                return low, low_total
            low -= 1
            add_item(low, -1, counts, secret, low_classes, work)
            low_total -= weights[low]
        else:
            if both_fit(high_classes, high_total, total, constraints, work):
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
    constraints: CutConstraints,
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
            if left >= constraints.k and total - left >= constraints.k:
                return missing - 1, left
        threshold, left = median_cut(
            codes, counts, low, high, total, work.hist, work.keys, work.key_weights, work.buckets
        )
        if left >= constraints.k and total - left >= constraints.k:
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
        if both_fit(work.low_classes, left, total, constraints, work):
            return missing - 1, left
    length, left = nearest_fitting(work.weights, m, total, counts, secret, constraints, work)
    if length == 0:
        return -1, 0
    return work.values[length - 1], left
