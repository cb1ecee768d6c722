"""Arrays that everything is made of, and what is done to their rows everywhere: equal ones once, the best of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Matrix = Floats  # rows as numbers and codes, one column each

_FEW = 48  # rows that are compared each with each


def unlike(a: Any, b: Any) -> Bools:
    """Where values differ; a missing one (NaN) is like another missing one."""
    differ: Bools = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return differ


def number_rows(columns: Sequence[Ints]) -> Ints:
    """A dense number for each distinct row of coded columns; they are paired off so that keys never overflow."""
    key = columns[0]
    for column in columns[1:]:
        key = pd.factorize(key * (int(column.max(initial=0)) + 1) + column)[0].astype(np.int64)
    return key


def number_columns(frame: pd.DataFrame, names: Sequence[str]) -> list[Ints]:
    """Each column as dense numbers; missing is a value of its own."""
    return [pd.factorize(frame[n], use_na_sentinel=False)[0].astype(np.int64) for n in names]


def every_combination(options: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows with one of the options in each column, the last column turning fastest; numpy's grids have 64 at most.

    Examples
    --------
    >>> every_combination([np.array([1, 2]), np.array([5]), np.array([7, 8])]).tolist()
    [[1, 5, 7], [1, 5, 8], [2, 5, 7], [2, 5, 8]]
    """
    sizes = [len(o) for o in options]
    total = math.prod(sizes)
    columns, block = [], total
    for option, size in zip(options, sizes):
        block = block // size if size else 0
        columns.append(np.tile(np.repeat(option, block), total // (block * size) if total else 0))
    return np.stack(columns, axis=1)


def distinct_rows(rows: NDArray[np.generic]) -> tuple[Ints, Ints]:
    """Where each distinct row comes first, in the order of their content, and which of them every row is."""
    codes = [c for c in _ranked(rows) if c.any()]  # what is equal in all rows tells none apart
    sizes = [int(c.max(initial=0)) + 1 for c in codes]
    if math.prod(sizes) < 2**62:  # and so they are at most 61 columns: numpy takes 64
        key = np.ravel_multi_index(tuple(codes), tuple(sizes)) if codes else np.zeros(len(rows), np.int64)
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return first.astype(np.int64), which.ravel().astype(np.int64)
    order = np.lexsort(codes[::-1])
    ranked = np.column_stack(codes)[order]
    opens = np.concatenate([[True], (ranked[1:] != ranked[:-1]).any(axis=1)])
    which = np.empty(len(rows), dtype=np.int64)
    which[order] = np.cumsum(opens) - 1
    return order[opens].astype(np.int64), which


def _ranked(rows: NDArray[np.generic]) -> list[Ints]:
    """Each column as numbers in the order of its values, equal ones alike; missing ones come last."""
    if len(rows) <= _FEW and rows.dtype == np.float64 and not np.isnan(rows).any():
        values = rows.astype(np.float64, copy=False)
        return list((values[None] < values[:, None]).sum(axis=1).T)
    return [pd.factorize(column, sort=True, use_na_sentinel=False)[0].astype(np.int64) for column in rows.T]


def distinct_frame_rows(
    frame: pd.DataFrame, names: Sequence[str], times: Ints | None = None
) -> tuple[pd.DataFrame, Ints]:
    """The first of equal rows of a frame, and how many rows each stands for; each is there once, or so many `times`."""
    key = pd.factorize(number_rows(number_columns(frame, names)))[0]
    first, counts = first_and_counts(key, times)
    return frame[list(names)].iloc[first].reset_index(drop=True), counts.astype(np.int64)


def first_and_counts(key: Ints, times: Ints | None = None) -> tuple[Ints, Ints]:
    """Where each number of a key is first, and how often it is there; each place counts once, or so many `times`."""
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return first, counts if times is None else np.bincount(key, times).astype(np.int64)


def first_best(group: Ints, value: Floats) -> Ints:
    """Position of the first largest value of each group; the rows of a group stand together."""
    if len(group) and group[0] == group[-1]:
        return np.array([value.argmax()], dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    top = np.repeat(np.maximum.reduceat(value, starts), np.diff(np.append(starts, len(group))))
    hits = np.flatnonzero(value == top)
    first: Ints = hits[np.concatenate([[True], group[hits][1:] != group[hits][:-1]])]
    return first
