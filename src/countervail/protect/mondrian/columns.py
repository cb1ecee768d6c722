"""A table's quasi-identifiers as the code arrays that the Mondrian kernels cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Column
from countervail.core.table import Table
from countervail.protect.mondrian.constraints import FLAT, ORDERED, TREE, Attributes, Floats, Ints, attributes


@dataclass(frozen=True, eq=False, slots=True)
class Quasi:
    """How one quasi-identifier is coded: `values` in the order of their codes; a missing value is the last code."""

    column: Column
    kind: int
    values: Any
    missing: bool
    whole: bool = False
    hierarchy: Hierarchy | None = None

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values) + self.missing

    @property
    def known(self) -> list[Any]:
        """The value of each code as a plain Python object (None for missing)."""
        if self.column.type == "numeric":
            values = [int(v) if self.whole else float(v) for v in self.values]
        else:
            values = list(self.values)
        return [*values, None] if self.missing else values


def encode(table: Table, hierarchies: Mapping[str, Hierarchy]) -> tuple[list[Quasi], Ints]:
    """The codings of the quasi-identifiers, and the rows in codes (row x column)."""
    names = table.schema.names("quasi")
    quasi = []
    codes = np.empty((len(table), len(names)), np.int32)
    for j, name in enumerate(names):
        column, values = table.schema[name], table.frame[name]
        hierarchy = hierarchies.get(name)
        known: Any
        if column.type == "numeric":
            known, codes[:, j] = rank_numbers(values)
        elif column.type == "ordinal" and hierarchy is None:
            known, codes[:, j] = list(column.levels or ()), _place(values, list(column.levels or ()))
        else:
            known, codes[:, j] = rank_values(values)
        holes = codes[:, j] < 0
        missing = bool(holes.any())
        if missing:
            codes[holes, j] = len(known)
        kind = TREE if hierarchy is not None else FLAT if column.type == "categorical" else ORDERED
        quasi.append(Quasi(column, kind, known, missing, pd.api.types.is_integer_dtype(values.dtype), hierarchy))
    return quasi, codes


def describe(quasi: Sequence[Quasi], *, tree_loss: bool) -> Attributes:
    """The codings for the kernels."""
    width = max(q.size for q in quasi)
    positions = np.zeros((len(quasi), width))
    span = np.zeros(len(quasi))
    tree_of = np.full(len(quasi), -1, np.int32)
    above: list[Ints] = []
    for j, q in enumerate(quasi):
        n = len(q.values)
        if q.kind == ORDERED:
            positions[j, :n] = q.values if q.column.type == "numeric" else np.arange(n)
            positions[j, n:] = positions[j, n - 1] if n else 0.0
            span[j] = positions[j, n - 1] - positions[j, 0] if n else 0.0
        else:
            span[j] = q.size
        if q.hierarchy is not None:
            tree_of[j] = len(above)
            above.append(q.hierarchy.ancestors(q.known))
    return attributes(
        np.array([q.kind for q in quasi], np.int8),
        np.array([q.size for q in quasi], np.int32),
        np.array([q.missing for q in quasi], np.bool_),
        positions,
        span,
        tree_of if above else None,
        stacked(above) if above else None,
        tree_loss=tree_loss,
    )


def stacked(above: Sequence[Ints]) -> Ints:
    """Hierarchies of different sizes in one array, short ones padded with their root."""
    codes, levels = max(a.shape[0] for a in above), max(a.shape[1] for a in above)
    out = np.zeros((len(above), codes, levels), np.int32)
    for h, a in enumerate(above):
        out[h, :, 0] = np.arange(codes)
        out[h, : a.shape[0], : a.shape[1]] = a
    return out


def rank_numbers(values: pd.Series) -> tuple[Floats, Ints]:
    """Distinct numbers in ascending order, and each row's place among them (-1: missing)."""
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    present = ~np.isnan(numbers)
    everywhere = bool(present.all())
    inside = numbers if everywhere else numbers[present]
    codes = np.full(len(numbers), -1, np.int32)
    if not len(inside):
        return np.zeros(0), codes
    low = float(inside.min())
    reach = float(inside.max()) - low
    if pd.api.types.is_integer_dtype(values.dtype) and reach <= max(1 << 16, 2 * len(inside)):
        shifted = (inside - low).astype(np.int64)
        seen = np.zeros(int(reach) + 1, bool)
        seen[shifted] = True
        known: Floats = (np.flatnonzero(seen) + low).astype(float)
        found = (np.cumsum(seen) - 1)[shifted]
    else:
        known, found = np.unique(inside, return_inverse=True)
    codes[present if not everywhere else slice(None)] = found
    return known, codes


def rank_values(values: pd.Series) -> tuple[list[Any], Ints]:
    """Distinct values in the order of their content, and each row's place among them (-1: missing)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        raw, kinds = values.cat.codes.to_numpy(), list(values.cat.categories)
        used = np.zeros(len(kinds) + 1, bool)
        used[raw] = True  # -1 lands on the last, which is not a value
        seen = np.flatnonzero(used[:-1])
    else:
        raw, found = pd.factorize(values)
        kinds, seen = found.tolist(), np.arange(len(found))
    order = sorted(seen.tolist(), key=lambda i: (type(kinds[i]).__name__, kinds[i]))
    place = np.full(len(kinds) + 1, -1, np.int32)
    place[order] = np.arange(len(order))
    return [kinds[i] for i in order], place[raw]


def _place(values: pd.Series, levels: list[Any]) -> Ints:
    """Each row's place among declared values (-1: missing or unknown)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        table = np.append(pd.Index(levels).get_indexer(pd.Index(values.dtype.categories)), -1)
        return np.asarray(table[values.cat.codes.to_numpy()], np.int32)
    return np.asarray(pd.Index(levels).get_indexer(pd.Index(values)), np.int32)


def place_values(values: pd.Series, known: Sequence[Any]) -> Ints:
    """Each row's place among known values (-1: unseen or missing)."""
    return _place(values, list(known))
