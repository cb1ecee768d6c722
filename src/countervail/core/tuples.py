"""Equal rows of a frame: the same number for the same values, missing ones included."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def row_numbers(columns: Sequence[Ints]) -> Ints:
    """A dense number for each distinct row of coded columns; they are paired off so that keys never overflow."""
    key = columns[0]
    for column in columns[1:]:
        key = pd.factorize(key * (int(column.max(initial=0)) + 1) + column)[0].astype(np.int64)
    return key


def column_numbers(frame: pd.DataFrame, names: Sequence[str]) -> list[Ints]:
    """Each column as dense numbers; missing is a value of its own."""
    return [pd.factorize(frame[n], use_na_sentinel=False)[0].astype(np.int64) for n in names]


def distinct_rows(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, Ints]:
    """The first of equal rows, and how many rows each stands for."""
    key = pd.factorize(row_numbers(column_numbers(frame, names)))[0]
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    return frame[list(names)].iloc[first].reset_index(drop=True), counts.astype(np.int64)
