"""Strict Mondrian on code arrays: the admissible cut of an ordered attribute, and what all cuts share.

Kernels get few plain arrays: what is compiled grows with every array that a tuple carries through them. `trees` is None
for a table without hierarchies, `secrets` without l and t: the compiler leaves out what is None.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from countervail.protect.mondrian.constraints import FITS, CutConstraints, Floats, Ints, Longs, Whole, fits, inner

# Histograms of this many codes stay in the first-level cache.
DIRECT: Final = 2048
# Lines of the scratch space by code: whole numbers of 64 bits (the first two are zero between uses) ...
HIST: Final = 0
GROUP_HIST: Final = 1
WEIGHTS: Final = 2
# ... and of 32.
VALUES: Final = 0
ITEMS: Final = 1
SIDE: Final = 2
BEST_ITEMS: Final = 3
BEST_SIDE: Final = 4
CODE_SIDE: Final = 5
INDEX_OF: Final = 6
# Lines of the counts by sensitive value.
NODE: Final = 0
LOW: Final = 1
HIGH: Final = 2
REST: Final = 3
TOP: Final = 4


class Trees(NamedTuple):
    """The hierarchies of a table that has some; `names_classes`: classes are called by their groups."""

    tree_of: Ints
    ancestors: Ints
    leaves: Floats
    names_classes: bool


class Secrets(NamedTuple):
    """The sensitive values of rows that l or t speak of, and scratch space: rows by item, counts by value."""

    codes: Ints
    rules: CutConstraints
    offsets: Longs
    grouped: Ints
    classes: Longs
    flow: Floats


def make_longs(n_codes: int) -> Longs:
    """Scratch space for attributes of so many codes, 64 bits each."""
    return np.zeros((3, n_codes + 1), np.int64)


def make_ints(n_codes: int) -> Ints:
    """Scratch space for attributes of so many codes, 32 bits each."""
    return np.zeros((7, n_codes + 1), np.int32)


def make_buckets(widest: int) -> Longs | None:
    """Scratch space for the median of many codes; None where all fit a histogram."""
    return np.zeros(DIRECT + 1, np.int64) if widest > DIRECT else None


def make_secrets(codes: Ints, rules: CutConstraints, n_codes: int) -> Secrets | None:
    """What cuts must know of the sensitive values; None where neither l nor t is asked for."""
    if rules.diversity == 0 and rules.closeness == 0:
        return None
    n_secret = len(rules.share)
    offsets, grouped = np.zeros(n_codes + 2, np.int64), np.zeros(len(codes), np.int32)
    return Secrets(codes, rules, offsets, grouped, np.zeros((5, n_secret), np.int64), np.zeros(n_secret, np.float64))


@inner
def both_fit(left: Longs, left_total: int, total: int, secrets: Secrets) -> bool:
    """Whether the left classes and what they leave of the node both satisfy every constraint."""
    rules, classes, flow = secrets.rules, secrets.classes, secrets.flow
    if left_total < rules.k or total - left_total < rules.k:
        return False
    for s in range(classes.shape[1]):
        classes[REST, s] = classes[NODE, s] - left[s]
    if fits(left, left_total, rules, classes[TOP], flow) != FITS:
        return False
    return fits(classes[REST], total - left_total, rules, classes[TOP], flow) == FITS


@inner
def nearest_half(before: int, after: int, total: int) -> bool:
    """Whether a left half of `before` rows is at least as near to half the node as one of `after`."""
    return abs(2 * before - total) <= abs(2 * after - total)


@inner
def median_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    total: int,
    hist: Longs,
    keys: Ints,
    key_weights: Longs,
    buckets: Longs | None,
) -> tuple[int, int]:
    """The cut nearest half: (last code on the left, rows on the left), without sorting the node."""
    first, last = low, high
    below, weight, crossing = 0, 0, low
    n = codes.shape[0]
    # Few rows spread over many codes: narrow the search to the bucket where the running count passes half.
    if buckets is not None:
        while last - first + 1 > min(4 * n + 32, DIRECT) and n > 24:
            width, shift = last - first + 1, 0
            while (width >> shift) >= min(2 * n, DIRECT):
                shift += 1
            for b in range((width >> shift) + 1):
                buckets[b] = 0
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
    if n > 24 or last - first + 1 <= min(4 * n + 32, DIRECT):
        for r in range(n):
            hist[codes[r]] += counts[r]
        crossing = first
        while 2 * (below + hist[crossing]) < total:
            below += hist[crossing]
            crossing += 1
        weight = hist[crossing]
        if last - first < 2 * n:
            for v in range(first, last + 1):
                hist[v] = 0
        else:
            for r in range(n):
                hist[codes[r]] = 0
    else:
        for r in range(n):
            x, w, i = codes[r], counts[r], r
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
    if crossing > low and (crossing == high or nearest_half(below, below + weight, total)):
        return crossing - 1, below
    return crossing, below + weight


@inner
def plain_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    missing: int,
    total: int,
    k: int,
    hist: Longs,
    keys: Ints,
    key_weights: Longs,
    buckets: Longs | None,
) -> tuple[int, int]:
    """The cut of an ordered attribute where only k counts: (last code on the left or -1, rows on the left)."""
    if high == missing:
        left = 0
        for r in range(codes.shape[0]):
            if codes[r] != missing:
                left += counts[r]
        if left >= k and total - left >= k:
            return missing - 1, left
    threshold, left = median_cut(codes, counts, low, high, total, hist, keys, key_weights, buckets)
    if left >= k and total - left >= k:
        return threshold, left
    return -1, 0


@inner
def sort_codes(values: Ints, n: Whole) -> None:
    """Ascending, in place (Shell's way): the library's own takes a second to compile."""
    gap = 1
    while 9 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, at = values[i], i
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@inner
def copy_codes(source: Ints, target: Ints) -> None:
    """One by one: for a slice the compiler needs a second, most of it for words about slices that do not fit."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@inner
def present(codes: Ints, counts: Longs, low: int, high: int, values: Ints, hist: Longs) -> int:
    """List the distinct codes in `values`, their weights in `hist`; returns how many there are."""
    n, m = codes.shape[0], 0
    if high - low < 4 * n + 32:
        for r in range(n):
            hist[codes[r]] += counts[r]
        for v in range(low, high + 1):
            if hist[v] > 0:
                values[m] = v
                m += 1
        return m
    for r in range(n):
        v = codes[r]
        if hist[v] == 0:
            values[m] = v
            m += 1
        hist[v] += counts[r]
    return m


@inner
def group_rows(codes: Ints, n_items: int, index_of: Ints, secrets: Secrets) -> None:
    """Counting sort of the node's rows by item: rows of item i are grouped[offsets[i]:offsets[i + 1]]."""
    offsets, grouped = secrets.offsets, secrets.grouped
    n = codes.shape[0]
    for i in range(n_items + 1):
        offsets[i] = 0
    for r in range(n):
        offsets[index_of[codes[r]] + 1] += 1
    for i in range(n_items):
        offsets[i + 1] += offsets[i]
    for r in range(n):
        i = index_of[codes[r]]
        grouped[offsets[i]] = r
        offsets[i] += 1
    for i in range(n_items, 0, -1):
        offsets[i] = offsets[i - 1]
    offsets[0] = 0


@inner
def add_items(line: Longs, first: Whole, last: Whole, minus: Any, start: int, counts: Longs, secrets: Secrets) -> None:
    """Add (or take away) the sensitive values of some items' rows; `start` is where the node's rows start."""
    offsets, grouped, codes = secrets.offsets, secrets.grouped, secrets.codes
    for g in range(offsets[first], offsets[last]):
        r = grouped[g]
        line[codes[start + r]] += -counts[r] if minus else counts[r]


@inner
def clear(line: Longs) -> None:
    """Set all counts to 0."""
    for s in range(line.shape[0]):
        line[s] = 0


@inner
def nearest_fitting(
    weights: Longs, n_items: int, total: int, start: int, counts: Longs, secrets: Secrets
) -> tuple[int, int]:
    """The prefix of the items nearest half that satisfies every constraint: (its length or 0, its rows)."""
    low, low_total, k = 0, 0, secrets.rules.k
    low_classes, high_classes = secrets.classes[LOW], secrets.classes[HIGH]
    less, more, none = np.bool_(True), np.bool_(False), np.int64(0)
    clear(low_classes)
    while low < n_items - 1 and 2 * (low_total + weights[low]) <= total:
        low_total += weights[low]
        low += 1
    add_items(low_classes, none, low, more, start, counts, secrets)
    for s in range(low_classes.shape[0]):
        high_classes[s] = low_classes[s]
    high, high_total = low, low_total
    if high < n_items:
        add_items(high_classes, high, high + 1, more, start, counts, secrets)
        high_total += weights[high]
        high += 1
    while True:
        low_open = low >= 1 and low_total >= k
        high_open = high < n_items and total - high_total >= k
        if not low_open and not high_open:
            return 0, 0
        if low_open and (not high_open or nearest_half(low_total, high_total, total)):
            if both_fit(low_classes, low_total, total, secrets):
                return low, low_total
            low -= 1
            add_items(low_classes, low, low + 1, less, start, counts, secrets)
            low_total -= weights[low]
        else:
            if both_fit(high_classes, high_total, total, secrets):
                return high, high_total
            add_items(high_classes, high, high + 1, more, start, counts, secrets)
            high_total += weights[high]
            high += 1


@inner
def fitting_cut(
    codes: Ints,
    counts: Longs,
    low: int,
    high: int,
    missing: int,
    total: int,
    start: int,
    longs: Longs,
    ints: Ints,
    secrets: Secrets,
) -> tuple[int, int]:
    """The cut of an ordered attribute that keeps l and t: (last code on the left or -1, rows on the left)."""
    hist, weights, values, index_of = longs[HIST], longs[WEIGHTS], ints[VALUES], ints[INDEX_OF]
    m = present(codes, counts, low, high, values, hist)
    sort_codes(values, m)
    for i in range(m):
        v = values[i]
        weights[i] = hist[v]
        hist[v] = 0
        index_of[v] = i
    group_rows(codes, m, index_of, secrets)
    if high == missing:
        left = total - weights[m - 1]
        low_classes = secrets.classes[LOW]
        for s in range(low_classes.shape[0]):
            low_classes[s] = secrets.classes[NODE, s]
        add_items(low_classes, m - 1, m, np.bool_(True), start, counts, secrets)
        if both_fit(low_classes, left, total, secrets):
            return missing - 1, left
    length, left = nearest_fitting(weights, m, total, start, counts, secrets)
    if length == 0:
        return -1, 0
    return values[length - 1], left
