"""Arrays that everything is made of, what is done to their rows everywhere (equal ones once, the best of each), and
frames made of them and taken apart in as little time as pandas lets us."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Matrix = Floats  # rows as numbers and codes, one column each

_FEW = 48  # rows that are compared each with each
_SORTED = 1 << 16  # numbers, from which on they are sorted by their bits


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


def stable_order(keys: Ints) -> Ints:
    """As numpy's stable argsort, of numbers from 0 up; of very many it takes half the time, 16 bits after 16 bits."""
    top = int(keys.max(initial=0))
    if len(keys) < _SORTED or top >= 1 << 32:
        return np.argsort(keys, kind="stable")
    order: Ints = np.argsort(keys.astype(np.uint16), kind="stable")  # numpy counts numbers as short as these
    return order if top < 1 << 16 else order[np.argsort((keys >> 16).astype(np.uint16)[order], kind="stable")]


def first_best(group: Ints, value: Floats) -> Ints:
    """Position of the first largest value of each group; the rows of a group stand together."""
    if len(group) and group[0] == group[-1]:
        return np.array([value.argmax()], dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    top = np.repeat(np.maximum.reduceat(value, starts), np.diff(np.append(starts, len(group))))
    hits = np.flatnonzero(value == top)
    first: Ints = hits[np.concatenate([[True], group[hits][1:] != group[hits][:-1]])]
    return first


# How pandas itself makes a frame of arrays that are known to be whole columns: in a third of the time.
_OF_ARRAYS: Any = getattr(pd.DataFrame, "_from_arrays", None)


def frame_of(columns: Sequence[Any], names: pd.Index) -> pd.DataFrame:
    """A frame of arrays of equal length, at least one, each in its own dtype; they are not copied."""
    if _OF_ARRAYS is None:
        held = {n: pd.Series(c, dtype=c.dtype, copy=False) for n, c in zip(names, columns)}
        return pd.DataFrame(held, columns=names, copy=False)
    made: pd.DataFrame = _OF_ARRAYS(columns, names, pd.RangeIndex(len(columns[0])), verify_integrity=False)
    return made


# Public in pandas 3: numbers of one dtype come as one block, and nothing has to be grouped.
_OF_BLOCKS: Any = getattr(getattr(pd.api, "internals", None), "create_dataframe_from_blocks", None)
# The columns as pandas stores them; each as a Series takes ten times as long.
_ARRAYS: Any = getattr(pd.DataFrame, "_iter_column_arrays", None)


def frame_of_blocks(blocks: Sequence[tuple[Any, Ints]], names: pd.Index, rows: int) -> pd.DataFrame:
    """A frame of arrays and the columns that each stands for: columns x rows of numpy, or one column of pandas."""
    if _OF_BLOCKS is not None:
        made: pd.DataFrame = _OF_BLOCKS(blocks, index=pd.RangeIndex(rows), columns=names)
        return made
    columns: dict[int, Any] = {}
    for values, places in blocks:
        columns.update(zip(places.tolist(), values if isinstance(values, np.ndarray) else [values]))
    return frame_of([columns[j] for j in range(len(names))], names)


class FramePattern:
    """How pandas holds frames of the same columns and dtypes, taken from the first: others take a third of its time.

    Whoever has another pandas, whose frames cannot be made this way or would be others, gets them made one by one.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return FramePattern, ()

    def frame(self, blocks: Sequence[tuple[Any, Ints]], names: pd.Index, rows: int) -> pd.DataFrame:
        """As `frame_of_blocks` makes it; the same columns in the same dtypes each time."""
        if self._held:
            return _like(self._held, [values for values, _ in blocks], names, rows)
        made = frame_of_blocks(blocks, names, rows)
        if self._held is None:
            self._held = _pattern(made, blocks)
        return made


def _pattern(made: pd.DataFrame, blocks: Sequence[tuple[Any, Ints]]) -> Any:
    """The kind and the place of each block of a frame; nothing where another frame like it would differ."""
    try:
        manager = made._mgr
        held = type(manager), [(type(block), block.mgr_locs) for block in manager.blocks]
        values = [block.values for block in manager.blocks]
        again = _like(held, [given for given, _ in blocks], made.columns, len(made))
    except (AttributeError, TypeError):
        return ()
    same = len(values) == len(blocks) and all(
        type(a) is type(b) and a.shape == b.shape for a, (b, _) in zip(values, blocks)
    )
    return held if same and again.dtypes.equals(made.dtypes) and again.equals(made) else ()


def _like(held: Any, values: Sequence[Any], names: pd.Index, rows: int) -> pd.DataFrame:
    manager, kinds = held
    blocks = tuple(kind(v, placement=place, ndim=2) for (kind, place), v in zip(kinds, values))
    whole = manager(blocks, [names, pd.RangeIndex(rows)], verify_integrity=False)
    frames: Any = pd.DataFrame  # the stubs do not know its insides
    made: pd.DataFrame = frames._from_mgr(whole, whole.axes)
    return made


def column_arrays(frame: pd.DataFrame) -> list[Any]:
    """The array of each column, in order."""
    return list(_ARRAYS(frame)) if _ARRAYS is not None else [plain_array(values.array) for _, values in frame.items()]


def plain_array(values: Any) -> Any:
    """The array of a column as frames store it: numpy's own where numpy can."""
    return values.to_numpy() if isinstance(values, pd.arrays.NumpyExtensionArray) else values


# The labels of categories while somebody has them; one that is looked up alone takes longer than a short list.
_CATEGORIES: dict[int, tuple[ref[Any], list[Any]]] = {}


def category_labels(dtype: pd.CategoricalDtype) -> list[Any]:
    """The labels of categories as plain Python objects."""
    held = _CATEGORIES.get(id(dtype))
    if held is None or held[0]() is not dtype:
        held = (ref(dtype, partial(_forget_categories, id(dtype))), pd.Series(dtype.categories).tolist())
        _CATEGORIES[id(dtype)] = held
    return held[1]


def _forget_categories(of: int, gone: ref[Any]) -> None:
    if (held := _CATEGORIES.get(of)) is not None and held[0] is gone:
        del _CATEGORIES[of]
