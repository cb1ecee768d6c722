"""The stacks of the sweep: changed cuts, and the nodes of one tree that are still to be visited.

Rows are copied by loops: an assignment of slices brings the code of its error message along.
"""

from typing import Any, NamedTuple

import numpy as np

from countervail.protect.mondrian.constraints import Ints, Longs, kernel


class Variants(NamedTuple):
    """A stack of changed cuts: the rows of the node (in the arena), the cut, who causes it, and what is done of it."""

    start: Longs
    stop: Longs
    top: Longs  # where the arena is free
    attribute: Ints
    cut: Ints  # threshold or level
    above: Ints  # next value above a threshold
    low: Ints
    high: Ints
    first: Longs  # who: flock[first:last]
    last: Longs
    done: Longs  # half or group that was taken last


class Walk(NamedTuple):
    """A stack of the nodes of one tree that are still to be visited, and scratch for one node."""

    start: Longs
    stop: Longs
    watch: Longs  # who is still on the path: watched[watch:until]
    until: Longs
    low: Ints
    high: Ints
    leaf: Longs  # -1, or a mark: where the leaves of a node with changed cuts begin
    moved: Ints
    watched: Ints
    which: Ints  # variant of each person who leaves the path here


def make_variants(room: int, q: int) -> Variants:
    """An empty stack with this much room."""
    return Variants(
        start=np.empty(room, np.int64),
        stop=np.empty(room, np.int64),
        top=np.empty(room, np.int64),
        attribute=np.empty(room, np.int32),
        cut=np.empty(room, np.int32),
        above=np.empty(room, np.int32),
        low=np.empty((room, q), np.int32),
        high=np.empty((room, q), np.int32),
        first=np.empty(room, np.int64),
        last=np.empty(room, np.int64),
        done=np.empty(room, np.int64),
    )


def make_walk(n: int, q: int) -> Walk:
    """Room for any tree over n rows."""
    room = 2 * n + 2
    return Walk(
        start=np.empty(room, np.int64),
        stop=np.empty(room, np.int64),
        watch=np.empty(room, np.int64),
        until=np.empty(room, np.int64),
        low=np.empty((room, q), np.int32),
        high=np.empty((room, q), np.int32),
        leaf=np.empty(room, np.int64),
        moved=np.empty(n, np.int32),
        watched=np.empty(n, np.int32),
        which=np.empty(n, np.int32),
    )


@kernel
def push(walk: Walk, depth: int, start: int, stop: int, watch: int, until: int, low: Ints, high: Ints) -> int:
    """Put a node on the stack; its new height."""
    walk.start[depth], walk.stop[depth] = start, stop
    walk.watch[depth], walk.until[depth] = watch, until
    for j in range(low.shape[0]):
        walk.low[depth, j], walk.high[depth, j] = low[j], high[j]
    walk.leaf[depth] = -1
    return depth + 1


@kernel
def longer(array: Any, size: int) -> Any:
    """A copy with room for `size` entries."""
    larger = np.empty(size, array.dtype)
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@kernel
def _taller(array: Ints, size: int) -> Ints:
    larger = np.empty((size, array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            larger[i, j] = array[i, j]
    return larger


@kernel
def with_room(variants: Variants, size: int) -> Variants:
    """The stack, or a copy with at least this much room."""
    if size <= variants.start.shape[0]:
        return variants
    room = 2 * size
    return Variants(
        longer(variants.start, room),
        longer(variants.stop, room),
        longer(variants.top, room),
        longer(variants.attribute, room),
        longer(variants.cut, room),
        longer(variants.above, room),
        _taller(variants.low, room),
        _taller(variants.high, room),
        longer(variants.first, room),
        longer(variants.last, room),
        longer(variants.done, room),
    )
