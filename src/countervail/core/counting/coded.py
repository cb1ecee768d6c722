"""Rows and regions as whole numbers: values that no region tells apart share a code, equal cells are one cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Bools, Codes, Ints
from countervail.core.region import Axis, Range, Values, distinct_cells

_GROUPS = 64  # bits of a word


@dataclass(frozen=True, eq=False, slots=True)
class CodedColumn:
    """One column of rows and of regions: the rows' codes, each region's cell, and the cells.

    A cell holds the codes of a span, and one more (-1: none); of the groups of codes in its first word some, of those
    in its second all. `bits` tells codes of other groups, from `starts` on. The last cell is the one where any value
    fits.
    """

    codes: Codes
    cell: Ints
    spans: Codes
    groups: NDArray[np.uint64]
    bits: NDArray[np.uint8]
    starts: Ints
    shift: int
    size: int  # codes from 0 to below it
    share: float  # of the codes that a cell holds, on average over regions


def coded_column(axis: Axis, values: pd.Series, free: Bools | None) -> CodedColumn:
    """A column of regions, and what the rows have there; where `free`, any value fits."""
    first, cell = distinct_cells(axis)
    told = axis.take(first)
    made = _ranges(told, values) if isinstance(told, Range) else _sets(told, values)
    codes, spans, groups, bits, held, size, shift = made
    cell = cell if free is None else np.where(free, len(first), cell)
    anything = np.array([[0, size - 1, -1]], dtype=np.int32)
    whole = np.full((1, 2), np.iinfo(np.uint64).max, dtype=np.uint64)
    starts = np.append(np.arange(len(first), dtype=np.int64) * (bits.shape[1] if len(bits) else 0), 0)
    return CodedColumn(
        codes,
        cell,
        np.concatenate([spans, anything]),
        np.concatenate([groups, whole]),
        bits.ravel(),
        starts,
        shift,
        size,
        float(np.maximum(np.append(held, size), 1)[cell].mean()) / size if len(cell) else 1.0,
    )


def _ranges(axis: Range, values: pd.Series) -> Any:
    """Ends of ranges have odd codes, what lies between two of them an even one; missing and labels come last."""
    numbers, missing = axis.read(values)
    ends = np.unique(np.concatenate([axis.low, axis.high]))
    ends = ends[~np.isnan(ends)]
    hole = 2 * len(ends) + 1
    codes = (np.searchsorted(ends, numbers, "left") + np.searchsorted(ends, numbers, "right")).astype(np.int32)
    codes[np.isnan(numbers)] = hole + 1
    codes[missing] = hole
    low, high = (2 * np.searchsorted(ends, v) + 1 for v in (axis.low, axis.high))
    gone = ~(axis.low <= axis.high)
    more = np.full(len(low), -1) if axis.holes is None else np.where(axis.holes, hole, -1)
    spans = np.column_stack([np.where(gone, 1, low), np.where(gone, 0, high), more]).astype(np.int32)
    groups = np.ones((len(low), 2), dtype=np.uint64)
    return codes, spans, groups, np.zeros((0, 0), dtype=np.uint8), high - low + 1, hole + 2, 31


def _sets(axis: Values, values: pd.Series) -> Any:
    """Values have their place among the known ones; one that is not known comes last."""
    known = len(axis.known)
    at = axis.places(values)
    codes = np.where(at < 0, known, at).astype(np.int32)
    shift = 0
    while known >> shift >= _GROUPS:
        shift += 1
    member = axis.member
    low = member.argmax(axis=1) if known else np.zeros(len(member), dtype=np.int64)
    high = known - 1 - member[:, ::-1].argmax(axis=1) if known else low
    some = np.asarray(member.any(axis=1))
    spans = np.column_stack([np.where(some, low, 1), np.where(some, high, 0), np.full(len(low), -1)]).astype(np.int32)
    width = (known >> shift) + 1
    padded = np.zeros((len(member), width << shift), dtype=bool)
    padded[:, :known] = member
    apart = padded.reshape(len(member), width, 1 << shift)
    words = np.uint64(1) << np.arange(width, dtype=np.uint64)
    groups = np.column_stack([_words(np.asarray(h), words) for h in (apart.any(axis=2), apart.all(axis=2))])
    bits = axis.bits if shift else np.zeros((0, 0), dtype=np.uint8)
    return codes, spans, groups, bits, member.sum(axis=1), known + 1, shift


def _words(held: Bools, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    made: NDArray[np.uint64] = np.where(held, words, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return made
