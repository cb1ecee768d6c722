"""Strict Mondrian on code arrays: what the kernels share, and the constraints on both halves of a cut.

Codes of an ordered attribute are ranks, of a categorical one any numbering that depends on the values alone. Nothing
here depends on the order of the rows: every tie is broken by code.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.int8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ORDERED: Final = 0
FLAT: Final = 1
TREE: Final = 2
DIVERSITY: Final = {"none": 0, "distinct": 1, "entropy": 2, "recursive": 3, "frequency": 4}
CLOSENESS: Final = {"none": 0, "equal": 1, "ordered": 2, "hierarchical": 3}
# The constraint that a group breaks first.
FITS: Final = 0
FAILS_K: Final = 1
FAILS_L: Final = 2
FAILS_T: Final = 3

# Sums of logarithms and shares differ in the last digits between orders of summation; exact ties must pass.
_SLACK: Final = 1e-12
# Histograms of this many codes stay in the first-level cache.
DIRECT: Final = 2048

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile with the project's settings and keep the signature for the type checker."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


class Rules(NamedTuple):
    """What both halves of a cut must satisfy; `share` is the sensitive value's distribution in the table."""

    k: int
    diversity: int
    l: float  # noqa: E741 -- the name the literature uses
    c: float
    closeness: int
    t: float
    share: Floats
    ancestors: Ints


class Attributes(NamedTuple):
    """The quasi-identifiers: `missing` is the code of a missing ordered value or -1, `tree_of` a hierarchy or -1."""

    kind: Bytes
    sizes: Ints
    missing: Ints
    positions: Floats
    span: Floats
    tree_of: Ints
    ancestors: Ints
    leaves: Floats
    tree_loss: bool


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


def attributes(
    kind: Bytes,
    sizes: Ints,
    has_missing: Flags,
    positions: Floats,
    span: Floats,
    tree_of: Ints | None = None,
    ancestors: Ints | None = None,
    *,
    tree_loss: bool = False,
) -> Attributes:
    """Bundle the quasi-identifiers for `partition`.

    `ancestors[h, code, level]` is the node above a code: level 0 the code itself, the last level the root, short
    hierarchies padded with their root; ids count from 0 within a level and depend on the values alone. A missing
    value is the last code; under a hierarchy it is a child of the root. `tree_loss` makes gain count the values below
    the lowest common ancestor (hierarchy labels) instead of the values in the class (sets).
    """
    if tree_of is None or ancestors is None:
        tree_of, ancestors = np.full(len(kind), -1, np.int32), np.zeros((1, 1, 1), np.int32)
    leaves = np.zeros(ancestors.shape, np.float64)
    for j, h in enumerate(tree_of):
        if h >= 0:
            for level in range(ancestors.shape[2]):
                np.add.at(leaves[h, :, level], ancestors[h, : sizes[j], level], 1.0)
    missing = np.where(has_missing & (kind == ORDERED), sizes - 1, -1).astype(np.int32)
    # The kernels meet one layout only; a constant attribute has no span, but nothing may divide by 0.
    return Attributes(
        np.array(kind, np.int8),
        np.array(sizes, np.int32),
        missing,
        np.ascontiguousarray(positions, np.float64),
        np.where(span > 0, span, 1.0),
        np.array(tree_of, np.int32),
        np.array(ancestors, np.int32, order="C"),
        leaves,
        bool(tree_loss),
    )


def make_rules(
    secret: Ints,
    counts: Longs,
    n_secret: int,
    k: int,
    diversity: int = 0,
    l: float = 1.0,  # noqa: E741 -- the name the literature uses
    c: float = 1.0,
    closeness: int = 0,
    t: float = 1.0,
    secret_ancestors: Ints | None = None,
) -> Rules:
    """Bundle the constraints; the distribution that t-closeness compares with is the one of these rows.

    `diversity` and `closeness` are values of DIVERSITY and CLOSENESS. `secret_ancestors[value, level]` is the node
    above a sensitive value, level 0 the value itself and the last level the root: two values are as far apart as the
    level where they meet, divided by the root's.
    """
    if secret_ancestors is None:
        secret_ancestors = np.zeros((n_secret, 1), np.int32)
    classes = np.bincount(secret, weights=counts, minlength=n_secret)
    share = classes / max(float(counts.sum()), 1.0)
    above = np.array(secret_ancestors, np.int32, order="C")
    return Rules(int(k), int(diversity), float(l), float(c), int(closeness), float(t), share, above)


def make_work(n_rows: int, n_codes: int, n_secret: int) -> Work:
    """Scratch space for a table of this size."""
    width = n_codes + 1
    return Work(
        hist=np.zeros(width, np.int64),
        group_hist=np.zeros(width, np.int64),
        values=np.empty(width, np.int32),
        items=np.empty(width, np.int32),
        weights=np.empty(width, np.int64),
        sorted_items=np.empty(width, np.int32),
        sorted_weights=np.empty(width, np.int64),
        side=np.empty(width, np.int32),
        best_items=np.empty(width, np.int32),
        best_side=np.empty(width, np.int32),
        code_side=np.empty(width, np.int32),
        index_of=np.empty(width, np.int32),
        offsets=np.empty(width + 1, np.int64),
        grouped=np.empty(n_rows, np.int32),
        keys=np.empty(n_rows, np.int32),
        key_weights=np.empty(n_rows, np.int64),
        buckets=np.empty(DIRECT + 1, np.int64),
        node_classes=np.zeros(n_secret, np.int64),
        low_classes=np.zeros(n_secret, np.int64),
        high_classes=np.zeros(n_secret, np.int64),
        rest_classes=np.zeros(n_secret, np.int64),
        top_classes=np.zeros(n_secret, np.int64),
        flow=np.zeros(n_secret, np.float64),
    )


@kernel
def earth_mover(classes: Longs, total: int, share: Floats, closeness: int, ancestors: Ints, flow: Floats) -> float:
    """Distance of a class's distribution from `share`: equal, ordered or hierarchical ground distance."""
    n = classes.shape[0]
    if n < 2:
        return 0.0
    moved = 0.0
    if closeness == 1:
        for s in range(n):
            moved += abs(classes[s] / total - share[s])
        return float(moved / 2.0)
    if closeness == 2:
        surplus = 0.0
        for s in range(n - 1):
            surplus += classes[s] / total - share[s]
            moved += abs(surplus)
        return float(moved / (n - 1))
    height = ancestors.shape[1] - 1
    if height < 1:
        return 0.0
    # In a tree the optimal flow crosses every edge with the net surplus below it; an edge costs 1/(2 height).
    for level in range(height):
        for s in range(n):
            flow[s] = 0.0
        for s in range(n):
            flow[ancestors[s, level]] += classes[s] / total - share[s]
        for s in range(n):
            moved += abs(flow[s])
    return float(moved / (2.0 * height))


@kernel
def _top(classes: Longs, count: int, scratch: Longs) -> int:
    """Sum of the `count` largest entries."""
    n = classes.shape[0]
    scratch[:n] = classes
    total = 0
    for _ in range(min(count, n)):
        best = 0
        for s in range(1, n):
            if scratch[s] > scratch[best]:
                best = s
        total += scratch[best]
        scratch[best] = 0
    return total


@kernel
def entropy(classes: Longs, total: int) -> float:
    """Shannon entropy in nats of a vector of counts."""
    result = 0.0
    for s in range(classes.shape[0]):
        if classes[s] > 0:
            p = classes[s] / total
            result -= p * np.log(p)
    return result


@kernel
def fits(classes: Longs, total: int, rules: Rules, scratch: Longs, flow: Floats) -> int:
    """FITS, or the first constraint that a group with these sensitive values breaks."""
    if total < rules.k or total < 1:
        return FAILS_K
    if rules.diversity == 1:
        distinct = 0
        for s in range(classes.shape[0]):
            if classes[s] > 0:
                distinct += 1
        if distinct < rules.l:
            return FAILS_L
    elif rules.diversity == 2:
        if entropy(classes, total) < np.log(rules.l) - _SLACK:
            return FAILS_L
    elif rules.diversity == 3:
        largest = classes.max()
        if not largest < rules.c * (total - _top(classes, int(rules.l) - 1, scratch)):
            return FAILS_L
    elif rules.diversity == 4 and classes.max() * rules.l > total * (1.0 + _SLACK):
        return FAILS_L
    if rules.closeness > 0:
        distance = earth_mover(classes, total, rules.share, rules.closeness, rules.ancestors, flow)
        if distance > rules.t + _SLACK:
            return FAILS_T
    return FITS


@kernel
def both_fit(left: Longs, left_total: int, total: int, rules: Rules, work: Work) -> bool:
    """Whether the left classes and what they leave of the node both satisfy every constraint."""
    if left_total < rules.k or total - left_total < rules.k:
        return False
    rest = work.rest_classes
    for s in range(left.shape[0]):
        rest[s] = work.node_classes[s] - left[s]
    if fits(left, left_total, rules, work.top_classes, work.flow) != FITS:
        return False
    return fits(rest, total - left_total, rules, work.top_classes, work.flow) == FITS
