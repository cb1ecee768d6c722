"""Frames and the arrays of their columns, made and taken apart in as little time as pandas lets us."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints

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
