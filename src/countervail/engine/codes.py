"""Rows as codes: numbered, put in the order of their content, hashed with a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints

_ROOM = 2**62
_FEW = 1 << 16
_SPARSE = 8  # times as many numbers as there are rows may lie between the least and the greatest
_BITS = 1 << 30
_ODD = np.uint64(0x9E3779B97F4A7C15)


def number(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """A dense number for each distinct row of codes, and one row of each number."""
    key, room = columns[0].astype(np.int64), sizes[0]
    for column, size in zip(columns[1:], sizes[1:]):
        if room * size >= _ROOM:
            key, found = pd.factorize(key)
            key, room = key.astype(np.int64, copy=False), len(found)
        key *= size
        key += column
        room *= size
    which, found = pd.factorize(key)
    first = np.empty(len(found), np.int64)
    first[which] = np.arange(len(which))
    return which.astype(np.int64, copy=False), first


def sorted_values(values: Any, codes: Ints) -> tuple[Ints, Any]:
    """The values that some codes stand for, in their order, and the codes as places among them (missing is last)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    used = np.unique(codes[codes < len(values)])
    held = values.take(pa.array(used))
    order = pc.sort_indices(held).to_numpy().astype(np.int64)
    place = np.full(len(values) + 1, len(used), np.int64)
    place[used[order]] = np.arange(len(used))
    return place[codes], held.take(pa.array(order))


def keyed_hash(key: bytes, columns: Sequence[Ints]) -> Any:
    """A number of 64 bits for each line of codes and a key, equal for equal lines."""
    words = np.frombuffer(key.ljust(16, b"\0")[:16], np.uint64)
    state = np.full(len(columns[0]), words[0], np.uint64)
    for column in columns:
        state = (state ^ column.astype(np.uint64)) + _ODD
        for shift, odd in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(odd)
        state = state ^ (state >> np.uint64(31)) ^ words[1]
    return state


def order_lines(table: Any) -> tuple[Ints, Any]:
    """Each line's place among the distinct lines of an Arrow table, and these in an order of their content."""
    held = []
    for column in table.columns:
        values = column.combine_chunks().dictionary_encode()
        codes = values.indices.fill_null(len(values.dictionary)).to_numpy().astype(np.int64)
        held.append(sorted_values(values.dictionary, codes)[0])
    which, first = number(held, [int(c.max(initial=0)) + 1 for c in held])
    order = np.lexsort([c[first] for c in reversed(held)])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[which], table.take(first[order])


def whole_codes(column: Any) -> tuple[Any, Any]:
    """The codes of whole numbers in 64 bits (missing is the last), and the distinct ones in ascending order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(column)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is None or high == 2**63 - 1 or high - low > max(_FEW, 2 * len(column)):
        found = column.dictionary_encode().unify_dictionaries()
        if not found.num_chunks:
            return np.zeros(0, np.int32), pa.array([], pa.int64())
        values = found.chunk(0).dictionary
        return np.concatenate([c.indices.fill_null(len(values)).to_numpy() for c in found.chunks]), values
    seen = np.zeros(high - low + 2, bool)  # the last place is that of missing values
    places = []
    for chunk in column.chunks:
        at = chunk.fill_null(high + 1).to_numpy() - low
        places.append(at)
        seen[at] = True
    seen[-1] = False
    place = (np.cumsum(seen) - seen).astype(np.int32)
    place[-1] = int(seen.sum())
    return np.concatenate([place[at] for at in places]), pa.array(np.flatnonzero(seen) + low, pa.int64())


def all_differ(chunks: Sequence[Ints]) -> bool:
    """Whether whole numbers that lie close together all differ: a bit for each; False where they lie far apart."""
    filled = sum(map(len, chunks))
    if not filled:
        return True
    low, high = min(int(c.min()) for c in chunks), max(int(c.max()) for c in chunks)
    if high - low >= min(_SPARSE * filled, _BITS):
        return False
    seen = np.zeros(high - low + 1, bool)
    for chunk in chunks:
        seen[chunk - low] = True
    return int(np.count_nonzero(seen)) == filled
