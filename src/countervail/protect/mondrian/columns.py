"""A table's quasi-identifiers as the code arrays that the Mondrian kernels cut, and the rows that are cut together.

Codes of an ordered attribute are ranks; those of a categorical one follow the content of its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from countervail.core.canonical import canonical_value, code_values
from countervail.core.errors import SchemaError
from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Column
from countervail.core.table import Table
from countervail.engine.scan import Scan
from countervail.protect.mondrian.constraints import Bytes, Flags, Floats, Ints, Longs, inner, kernel

ORDERED: Final = 0
FLAT: Final = 1
TREE: Final = 2
Gaps = tuple[tuple[int, int], ...]  # columns, and the code of what is missing there
# So many numbers of one bucket are sorted by exchanges.
_BUCKET: Final = 32
# So few rows are sorted sooner than a kernel is compiled that need not sort them.
_FEW: Final = 1 << 15


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


@dataclass(frozen=True, eq=False, slots=True)
class Quasi:
    """How one quasi-identifier is coded: `values` in the order of their codes; a missing value is the last code."""

    column: Column
    kind: int
    values: Any
    missing: bool
    hierarchy: Hierarchy | None = None

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values) + self.missing

    @property
    def known(self) -> list[Any]:
        """The value of each code as a plain Python object (None for missing)."""
        numeric = self.column.numeric
        values = [canonical_value(v) for v in self.values] if numeric else list(self.values)
        return [*values, None] if self.missing else values


def encode(table: Table, hierarchies: Mapping[str, Hierarchy]) -> tuple[list[Quasi], Ints]:
    """The codings of the quasi-identifiers, and the rows in codes (row x column)."""
    names = table.schema.names("quasi")
    quasi = []
    codes = np.empty((len(table.frame), len(names)), np.int32)
    for j, name in enumerate(names):
        column, values = table.schema[name], table.frame[name]
        hierarchy = hierarchies.get(name)
        known: Any
        if column.numeric:
            known, codes[:, j] = rank_numbers(values)
        elif column.type == "ordinal" and hierarchy is None:
            known, codes[:, j] = list(column.levels or ()), place_values(values, column.levels or ())
        else:
            codes[:, j], kinds = code_values(values)
            known = [v for v in kinds if v is not None]
            codes[codes[:, j] == len(known), j] = -1
        holes = codes[:, j] < 0
        missing = bool(holes.any())
        if missing:
            codes[holes, j] = len(known)
        kind = TREE if hierarchy is not None else FLAT if column.type == "categorical" else ORDERED
        quasi.append(Quasi(column, kind, known, missing, hierarchy))
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
            positions[j, :n] = q.values if q.column.numeric else np.arange(n)
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


def named_gaps(quasi: Sequence[Quasi], *, tree_loss: bool) -> Gaps:
    """The columns whose classes are named by groups and in which values are missing."""
    if not tree_loss:
        return ()
    return tuple((j, q.size - 1) for j, q in enumerate(quasi) if q.missing and q.hierarchy is not None)


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
    numbers = values.to_numpy(dtype=float, na_value=np.nan) + 0.0  # -0.0 and 0.0 are one number
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
        known, found = _rank_reals(inside, low, reach)
    codes[present if not everywhere else slice(None)] = found
    return known, codes


def _rank_reals(numbers: Floats, low: float, reach: float) -> tuple[Floats, Ints | Longs]:
    """Distinct numbers in ascending order, and the place of each; many that are spread out, without a full sort."""
    n = len(numbers)
    if n > _FEW and 0 < reach < np.inf and (scale := (n - 1) / reach) < np.inf:
        known, places = np.empty(n), np.empty(n, np.int32)
        if distinct := _rank_in_buckets(numbers, low, scale, known, places):
            return known[:distinct].copy(), places
    return np.unique(numbers, return_inverse=True)


@kernel
def _rank_in_buckets(numbers: Floats, low: float, scale: float, known: Floats, places: Ints) -> int:
    """How many distinct numbers there are; 0, and nothing else, where one of the equal buckets has too many of them."""
    n = numbers.shape[0]
    starts = np.zeros(n + 2, np.int32)
    for r in range(n):
        starts[int((numbers[r] - low) * scale) + 2] += 1
    for b in range(2, n + 2):
        if starts[b] > _BUCKET:
            return 0
        starts[b] += starts[b - 1]
    values, rows = np.empty(n), np.empty(n, np.int32)
    for r in range(n):
        b = int((numbers[r] - low) * scale) + 1
        values[starts[b]], rows[starts[b]] = numbers[r], r
        starts[b] += 1
    # Each number is at most a bucket away from its place.
    m = 0
    for at in range(n):
        value, row, i = values[at], rows[at], at
        while i > 0 and values[i - 1] > value:
            values[i], rows[i] = values[i - 1], rows[i - 1]
            i -= 1
        values[i], rows[i] = value, row
    for at in range(n):
        if at == 0 or values[at] != values[at - 1]:
            known[m] = values[at]
            m += 1
        places[rows[at]] = m - 1
    return m


def place_values(values: pd.Series, known: Sequence[Any]) -> Ints:
    """Each row's place among known values (-1: unseen or missing)."""
    place = {canonical_value(v): i for i, v in enumerate(known) if v is not None}
    codes, kinds = code_values(values)
    return np.array([place.get(v, -1) for v in kinds], np.int32)[codes]


def class_column(table: Table | Scan, *, by_class: bool, owner: str) -> str | None:
    """The column whose classes are cut one by one, if they are."""
    if by_class and table.schema.target is None:
        raise SchemaError(f"{owner}(by_class=True) cuts the classes of the target, but the table has no target.")
    return table.schema.target if by_class else None


def parts_of(table: Table, by: str | None) -> Iterator[tuple[Any, Longs]]:
    """The rows to cut: all at once, or each class of a column as it is declared, or by content."""
    if by is None:
        yield None, np.arange(len(table.frame))
        return
    codes, values = code_values(table.frame[by], table.schema[by].values)
    for i, value in enumerate(values):
        yield value, np.flatnonzero(codes == i)


def content_order(table: Table) -> Longs:
    """The rows in an order of all that a release could show of them: a lot drawn on it ignores how they came."""
    names = [c.name for c in table.schema if c.role != "identifier"]
    return np.lexsort([code_values(table.frame[n])[0] for n in reversed(names)]).astype(np.int64)


def part_remarks(by: str | None) -> tuple[str, ...]:
    """What a release must say about the parts."""
    return () if by is None else (f"The classes of '{by}' were cut one by one.",)


@kernel
def _label(keys: Longs, labels: Ints, distinct: Longs) -> int:
    """Number equal keys alike, in order of appearance, by open addressing; returns how many there are."""
    n = keys.shape[0]
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    # Start small: a table that fits the cache is faster, and most data repeat.
    bits = min(bits, 12)
    slots = np.full(1 << bits, -1, np.int32)
    m = 0
    for r in range(n):
        if 2 * m >= slots.shape[0]:
            bits += 2
            slots = np.full(1 << bits, -1, np.int32)
            for i in range(m):
                s = _slot(distinct[i], bits)
                while slots[s] >= 0:
                    s = (s + 1) & (slots.shape[0] - 1)
                slots[s] = i
        s = _slot(keys[r], bits)
        while slots[s] >= 0 and distinct[slots[s]] != keys[r]:
            s = (s + 1) & (slots.shape[0] - 1)
        if slots[s] < 0:
            slots[s] = m
            distinct[m] = keys[r]
            m += 1
        labels[r] = slots[s]
    return m


@inner
def _slot(key: int, bits: int) -> np.int64:
    """Fibonacci hashing."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))


def deduplicate(codes: Ints, secret: Ints, sizes: Ints, n_secret: int) -> tuple[Ints, Ints, Longs, Ints]:
    """Distinct (row, sensitive value) pairs: (codes, secret, counts, which of them each row is), ordered by content."""
    n, q = codes.shape
    keys = np.zeros(n, np.int64)
    room = 1
    for j in range(q + 1):
        size = int(sizes[j]) if j < q else n_secret
        if room * size >= 2**62:
            # Too many combinations for one key: go on from the dense ranks of the prefixes that occur.
            room, keys = _rank(keys)
        keys *= size
        keys += codes[:, j] if j < q else secret
        room *= size
    m, ranks = _rank(keys)
    first = np.empty(m, np.int64)
    first[ranks] = np.arange(n)
    return codes[first], secret[first], np.bincount(ranks, minlength=m), ranks.astype(np.int32)


def as_one(codes: Ints, secret: Ints, sizes: Ints, n_secret: int) -> tuple[Ints, Ints, Longs, Ints]:
    """Equal rows as one with a count; left as they are where a column has almost as many values as there are rows."""
    n = len(codes)
    if n > 100_000 and 2 * int(sizes.max()) > n:
        return codes, secret, np.ones(n, np.int64), np.arange(n, dtype=np.int32)
    return deduplicate(codes, secret, sizes, n_secret)


def _rank(keys: Longs) -> tuple[int, Longs]:
    """Dense ranks of the keys."""
    n = len(keys)
    if n <= _FEW:
        known, ranks = np.unique(keys, return_inverse=True)
        return len(known), ranks.astype(np.int64, copy=False)
    labels, distinct = np.empty(n, np.int32), np.empty(n, np.int64)
    m = _label(keys, labels, distinct)
    rank = np.empty(m, np.int64)
    rank[np.argsort(distinct[:m])] = np.arange(m)
    return m, rank[labels]
