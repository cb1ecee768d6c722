"""What the cells of a partition hold and what they are called: tight ranges and sets, or groups of a hierarchy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.core.arrays import Bools
from countervail.core.canonical import canonical_value
from countervail.core.cells import cell_text
from countervail.core.conform import plain
from countervail.core.hierarchy import Hierarchy
from countervail.core.region import Axis, Range, Regions, Values
from countervail.protect.mondrian.columns import ORDERED, Attributes, Quasi
from countervail.protect.mondrian.constraints import Flags, Ints, Longs, kernel


class TightLabels(NamedTuple):
    """Tight labels per cell and attribute.

    `low` and `high` are codes of ordered attributes without the missing value (-1 if there is no other), smallest and
    largest code of categorical ones; `missing` says whether an ordered cell holds missing values. Bit v % 64 of
    `members[cell, slot[j], v // 64]` says whether categorical attribute j takes the value v; `slot` is -1 for ordered.
    """

    low: Ints
    high: Ints
    missing: Flags
    members: NDArray[np.uint64]
    slot: Ints


@kernel
def _tight_labels(
    codes: Ints,
    cell_of: Ints,
    missing: Ints,
    slot: Ints,
    low: Ints,
    high: Ints,
    has_missing: Flags,
    members: NDArray[np.uint64],
) -> None:
    """One pass over the rows."""
    for r in range(codes.shape[0]):
        cell = cell_of[r]
        if cell < 0:
            continue
        for j in range(codes.shape[1]):
            v = codes[r, j]
            if v == missing[j]:
                has_missing[cell, j] = True
                continue
            if low[cell, j] < 0 or v < low[cell, j]:
                low[cell, j] = v
            if v > high[cell, j]:
                high[cell, j] = v
            if slot[j] >= 0:
                members[cell, slot[j], v >> 6] |= np.uint64(1) << np.uint64(v & 63)


def tight_labels(codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> TightLabels:
    """Tight ranges and sets of every cell; rows with cell -1 are left out."""
    categorical = data.kind != ORDERED
    slot = np.where(categorical, np.cumsum(categorical) - 1, -1).astype(np.int32)
    words = (int(data.sizes[categorical].max(initial=1)) + 63) // 64
    shape = (n_cells, codes.shape[1])
    low, high = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    has_missing = np.zeros(shape, np.bool_)
    members = np.zeros((n_cells, int(categorical.sum()), words), np.uint64)
    _tight_labels(np.ascontiguousarray(codes), cell_of, data.missing, slot, low, high, has_missing, members)
    return TightLabels(low, high, has_missing, members, slot)


@kernel
def by_cell(cell_of: Ints, n_cells: int) -> tuple[Longs, Ints]:
    """Rows of cell c are order[start[c]:start[c + 1]]; rows with cell -1 are left out."""
    start = np.zeros(n_cells + 2, np.int64)
    for r in range(cell_of.shape[0]):
        if cell_of[r] >= 0:
            start[cell_of[r] + 2] += 1
    for c in range(2, n_cells + 2):
        start[c] += start[c - 1]
    order = np.empty(start[n_cells + 1], np.int32)
    for r in range(cell_of.shape[0]):
        c = cell_of[r]
        if c >= 0:
            order[start[c + 1]] = r
            start[c + 1] += 1
    return start[: n_cells + 1], order


def class_regions(
    quasi: Sequence[Quasi], codes: Ints, cell_of: Ints, n_cells: int, data: Attributes, *, groups: bool
) -> Regions:
    """One region per class; `groups` names classes by the lowest common groups of the hierarchies."""
    return label_regions(quasi, tight_labels(codes, cell_of, n_cells, data), n_cells, groups=groups)


def label_regions(quasi: Sequence[Quasi], labels: TightLabels, n_cells: int, *, groups: bool) -> Regions:
    """The same, where tight labels are known."""
    axes = [_axis(q, j, labels, groups=groups) for j, q in enumerate(quasi)]
    return Regions(tuple(axes), n_cells).pruned()


def _axis(q: Quasi, j: int, labels: TightLabels, *, groups: bool) -> Axis:
    name = q.column.name
    if q.kind != ORDERED:
        member = _members(labels, j, q.size)
        if groups and q.hierarchy is not None:
            return _grouped(q, q.hierarchy, member)
        return Values.of(name, q.known, member)
    low, high, holes = labels.low[:, j], labels.high[:, j], labels.missing[:, j]
    if q.column.numeric:
        values = np.append(np.asarray(q.values, float), np.nan)  # code -1: none but missing
        return Range(name, values[low], values[high], holes=holes if q.missing else None).canonical()
    place = np.arange(len(q.values))
    member = (low[:, None] <= place) & (place <= high[:, None]) & (low[:, None] >= 0)
    if q.missing:
        member = np.column_stack([member, holes])
    return Values.of(name, q.known, member)


def _members(labels: TightLabels, j: int, size: int) -> Bools:
    """Class x code: which values a class holds."""
    words = np.ascontiguousarray(labels.members[:, labels.slot[j], :]).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), axis=1, count=size, bitorder="little").astype(bool)


def _grouped(q: Quasi, hierarchy: Hierarchy, member: Bools) -> Values:
    """All values below the lowest node that holds every value of the class.

    Values that no class holds are spelt like those that one does, whether a row that was left out has them or nobody.
    """
    held = [q.known[i] for i in np.flatnonzero(member.any(axis=0))]
    known = [v if v in held or v is None else spell_like(plain(v), held) for v in (*q.known, *unseen_values(q))]
    below = hierarchy.ancestors(known)
    out = np.zeros((len(member), len(known)), dtype=bool)
    open_ = np.flatnonzero(member.any(axis=1))
    first = member.argmax(axis=1)
    for level in range(hierarchy.levels):
        node = below[:, level]
        # A class fits a group when all that it holds lies in the group of what it holds first.
        group = node[None, :] == node[first[open_]][:, None]
        fits = ~(member[open_] & ~group[:, : q.size]).any(axis=1)
        out[open_[fits]] = group[fits]
        open_ = open_[~fits]
    return Values.of(q.column.name, known, out)


def set_names(quasi: Sequence[Quasi], *, groups: bool) -> dict[str, dict[str, str]]:
    """What hierarchies call the published sets, by column."""
    return {q.column.name: group_names(q) for q in quasi if q.hierarchy and groups}


def group_names(q: Quasi) -> dict[str, str]:
    """The hierarchy's name of each of its groups, by the text of the set; a name that is also a value is not used."""
    if q.hierarchy is None:
        return {}
    known = [v for v in (*q.known, *unseen_values(q)) if v is not None]
    spelled = {plain(v): v for v in known}
    names: dict[str, str] = {}
    for level in range(1, q.hierarchy.levels):
        inside: dict[str, list[Any]] = {}
        for row in q.hierarchy.rows:
            if row[0] in spelled:
                inside.setdefault(row[level], []).append(spelled[row[0]])
        for name, values in inside.items():
            if len(values) > 1 and name not in spelled:
                names.setdefault(cell_text(frozenset(values)), name)
    if q.missing:
        names[cell_text(frozenset([*known, None]))] = q.hierarchy.rows[0][-1]
    return names


def unseen_values(q: Quasi) -> list[Any]:
    """The values that only the hierarchy knows, in the column's own type."""
    if q.hierarchy is None:
        return []
    present = {plain(v) for v in q.known if v is not None}
    extra = [v for v in dict.fromkeys(q.hierarchy.values) if v not in present]
    if not q.column.numeric:
        return [spell_like(v, q.known) for v in extra]
    return [canonical_value(float(v)) for v in extra if _is_number(v)]


def spell_like(text: str, values: Sequence[Any]) -> Any:
    """A value that a hierarchy writes as text, as it is where texts are among the values, else in their type."""
    kinds = {type(v) for v in values if v is not None}
    if kinds == {bool}:
        return {"True": True, "False": False}.get(text, text)
    if kinds and kinds <= {int, float} and _is_number(text) and plain(canonical_value(float(text))) == text:
        return canonical_value(float(text))
    return text


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
