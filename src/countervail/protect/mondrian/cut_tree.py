"""The cut tree: reusable on new rows, and as JSON. It holds cut points and category names, no rows and no counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.canonical import canonical_value, code_values
from countervail.core.conform import plain
from countervail.core.errors import SchemaError
from countervail.core.files.json_data import is_count, json_object, need, whole_json
from countervail.core.region import Regions
from countervail.core.sealed import named_regions, read_regions, value_from_json, value_to_json
from countervail.protect._classes import NEW_ROWS, Classes
from countervail.protect.mondrian.columns import ORDERED, Quasi, part_remarks, place_values, stacked
from countervail.protect.mondrian.constraints import Bytes, Floats, Ints, Longs, kernel
from countervail.protect.mondrian.grow import CUT_LEAF, CUT_MISSING, CUT_ORDERED, CUT_SET, Branch, Tree
from countervail.protect.mondrian.labels import unseen_values


@dataclass(frozen=True, eq=False, slots=True)
class TreeColumn:
    """How the tree reads one column: by cut points (numbers, or ranks of `values`), or by values and their groups."""

    name: str
    cuts: Floats | None
    values: tuple[Any, ...] | None
    missing: bool
    above: Ints | None = None

    def codes(self, column: pd.Series) -> Ints:
        """What the cuts compare; -1 for a value that the tree does not know."""
        holes = column.isna().to_numpy()
        if self.cuts is None:
            values = self.values or ()
            codes = place_values(column, values)
            last = values.index(None) if self.missing else -1
        else:
            codes, unknown = self._ordered(column)
            codes[unknown] = -1
            last = len(self.cuts) + 1
        codes[holes] = last if self.missing else -1
        return codes

    def _ordered(self, column: pd.Series) -> tuple[Ints, Any]:
        assert self.cuts is not None
        if self.values is None:
            numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            unknown = np.isnan(numbers)
        else:
            numbers = place_values(column, self.values).astype(float)
            unknown = numbers < 0
        return np.searchsorted(self.cuts, numbers, side="left").astype(np.int32), unknown

    def to_dict(self) -> dict[str, Any]:
        """The column as plain JSON data."""
        return {
            "name": self.name,
            "cuts": None if self.cuts is None else self.cuts.tolist(),
            "values": None if self.values is None else [value_to_json(v) for v in self.values],
            "missing": self.missing,
            "above": None if self.above is None else self.above.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called inside `whole_json`."""
        cuts, values, missing, above = (data[n] for n in ("cuts", "values", "missing", "above"))
        need(isinstance(data["name"], str) and isinstance(missing, bool))
        read = cls(
            data["name"],
            None if cuts is None else np.array(cuts, dtype=float),
            None if values is None else tuple(map(value_from_json, values)),
            missing,
            None if above is None else np.array(above, np.int32),
        )
        need(read.cuts is None or (read.cuts.ndim == 1 and not (np.diff(read.cuts) <= 0).any()))
        need(read.cuts is None or not np.isnan(read.cuts).any())
        known = read.values or ()
        need(len(set(known)) == len(known))
        need(read.cuts is not None or (read.values is not None and (None in known) >= missing))
        need(read.above is None or (read.above.ndim == 2 and len(read.above) == len(known)))
        return read


@dataclass(frozen=True, eq=False, slots=True)
class CutTree:
    """The cuts and the labels of their cells. `cells` sends rows down; `to_json` stores it.

    It is a function of the quasi-identifiers (of `by` and the sensitive column too, where those took part): cut points,
    category names and labels. Who may not see the release should not see the tree.
    """

    axes: tuple[TreeColumn, ...]
    branches: tuple[Branch, ...]
    regions: Regions
    by: str | None = None

    @classmethod
    def of(cls, quasi: Sequence[Quasi], branches: Sequence[Branch], regions: Regions, by: str | None) -> Self:
        """From what the kernels found: thresholds become cut points halfway between neighbouring values."""
        axes, trees = [], [b.nodes for b in branches]
        for j, q in enumerate(quasi):
            if q.kind == ORDERED:
                axis, trees = _ordered_axis(q, j, trees)
            elif q.hierarchy is None:
                axis = TreeColumn(q.column.name, None, tuple(q.known), q.missing)
            else:
                # The table's values (and missing) keep their codes; those that only the hierarchy knows come after.
                known = [*q.known, *unseen_values(q)]
                axis = TreeColumn(q.column.name, None, tuple(known), q.missing, _known_groups(q, known))
            axes.append(axis)
        renewed = tuple(Branch(b.value, b.first, t) for b, t in zip(branches, trees))
        return cls(tuple(axes), renewed, regions, by)

    def __len__(self) -> int:
        return len(self.regions)

    def __repr__(self) -> str:
        return f"CutTree({len(self)} cells; {', '.join(a.name for a in self.axes)})"

    def cells(self, frame: pd.DataFrame) -> Ints:
        """The cell of each row; -1 where a cut meets a category that it has not seen."""
        used = [*(a.name for a in self.axes), *([] if self.by is None else [self.by])]
        if lost := [n for n in used if n not in frame.columns]:
            raise SchemaError(f"The rows lack columns that the cut tree reads: {lost}.")
        codes = np.column_stack([axis.codes(frame[axis.name]) for axis in self.axes]).astype(np.int32)
        groups = [a.above for a in self.axes if a.above is not None]
        above = stacked(groups) if groups else np.zeros((1, 1, 1), np.int32)
        tree_of = np.cumsum([a.above is not None for a in self.axes]).astype(np.int32) - 1
        out = np.full(len(frame), -1, np.int32)
        for branch in self.branches:
            rows = np.arange(len(frame)) if self.by is None else _rows_of(frame[self.by], branch.value)
            cell = np.empty(len(rows), np.int32)
            walk(np.ascontiguousarray(codes[rows]), *branch.nodes, tree_of, above, cell)
            out[rows] = np.where(cell >= 0, cell + branch.first, -1)
        return out

    def classes(self, frame: pd.DataFrame, words: Mapping[str, Mapping[str, str]]) -> Classes:
        """The cells of rows that the cuts have not seen, with what a release of them must say."""
        cells = self.cells(frame)
        lost = int((cells < 0).sum())
        text = f"{lost} row(s) were suppressed: they hold categories, classes or missing values the cuts never saw."
        return Classes(cells, self.regions, (*NEW_ROWS, *((text,) if lost else ()), *part_remarks(self.by)), words)

    def to_json(self) -> str:
        """The tree as JSON."""
        branches = [
            {
                "value": value_to_json(b.value),
                "first": b.first,
                "nodes": {n: a.tolist() for n, a in b.nodes._asdict().items()},
            }
            for b in self.branches
        ]
        data = {
            "kind": "cut tree",
            "version": 1,
            "by": self.by,
            "axes": [a.to_dict() for a in self.axes],
            "branches": branches,
            "regions": named_regions(self.regions),
        }
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`."""
        owner, writer = "CutTree.from_json", "CutTree.to_json()"
        data = json_object(text, "text", owner, writer)
        if data.get("kind") != "cut tree" or data.get("version") != 1:
            raise SchemaError("This JSON does not hold a cut tree of version 1.")
        with whole_json("text", owner, writer):
            need(data["by"] is None or isinstance(data["by"], str))
            axes = tuple(TreeColumn.from_dict(a) for a in data["axes"])
            need(0 < len(axes) == len({a.name for a in axes}))
            regions = read_regions(data["regions"])
            branches = []
            for b in data["branches"]:
                need(is_count(b["first"]))
                branches.append(Branch(value_from_json(b["value"]), b["first"], _tree(b["nodes"])))
                _check_walk(branches[-1].nodes, axes, len(regions) - b["first"])
            return cls(axes, tuple(branches), regions, data["by"])


def _ordered_axis(q: Quasi, j: int, trees: list[Tree]) -> tuple[TreeColumn, list[Tree]]:
    """Cut points of an ordered column, and the trees with thresholds that count them."""
    numeric = q.column.numeric
    values = np.asarray(q.values, float) if numeric else np.arange(len(q.values), dtype=float)
    used = [t.threshold[(t.attribute == j) & (t.cut == CUT_ORDERED)] for t in trees]
    thresholds = np.unique(np.concatenate(used)) if used else np.zeros(0, np.int32)
    points = _between(values, thresholds)
    renewed = []
    for t in trees:
        at = t.threshold.copy()
        mine = (t.attribute == j) & (t.cut == CUT_ORDERED)
        at[mine] = np.searchsorted(thresholds, t.threshold[mine])
        at[(t.attribute == j) & (t.cut == CUT_MISSING)] = len(points)
        renewed.append(t._replace(threshold=at))
    return TreeColumn(q.column.name, points, None if numeric else tuple(q.values), q.missing), renewed


def _between(values: Floats, codes: Ints) -> Floats:
    """Points between a value and the next: the nearer of the two decides where an unseen number goes."""
    low, high = values[codes], np.append(values, np.inf)[codes + 1]
    with np.errstate(invalid="ignore", over="ignore"):  # as wide as all numbers, or between infinities
        middle = low + (high - low) / 2
    return np.where(codes + 1 >= len(values), np.inf, np.where(middle < high, middle, low))


def _known_groups(q: Quasi, known: list[Any]) -> Ints:
    """Value x level in the numbers of the cuts; -1 for groups that the table has nobody in."""
    assert q.hierarchy is not None
    above = q.hierarchy.ancestors(q.known)
    line = {row[0]: row for row in q.hierarchy.rows}
    number: dict[tuple[int, str], int] = {}
    for row, v in zip(above, q.known):
        for level in range(q.hierarchy.levels):
            if v is not None:
                number[level, line[plain(v)][level]] = int(row[level])
    out = np.full((len(known), q.hierarchy.levels), -1, np.int32)
    for i, v in enumerate(known):
        if v is None:
            out[i] = above[len(q.known) - 1]
        else:
            out[i] = [number.get((level, line[plain(v)][level]), -1) for level in range(q.hierarchy.levels)]
    return out


def _rows_of(column: pd.Series, value: Any) -> Any:
    codes, kinds = code_values(column)
    value = canonical_value(value)
    return np.flatnonzero(codes == kinds.index(value)) if value in kinds else np.zeros(0, np.intp)


def _tree(nodes: dict[str, list[int]]) -> Tree:
    types = {"cut": np.int8, "start": np.int64, "middle": np.int64, "stop": np.int64}
    return Tree(**{n: np.array(a, types.get(n, np.int32)) for n, a in nodes.items()})


def _check_walk(tree: Tree, axes: tuple[TreeColumn, ...], cells: int) -> None:
    """Whether a walk down the tree ends, and in a cell: the kernel itself looks at no bound."""
    n = len(tree.cut)
    need(n > 0 and all(a.shape == (n,) for name, a in tree._asdict().items() if name != "members"))
    need(tree.members.ndim == 1)
    need(bool(np.isin(tree.cut, (CUT_LEAF, CUT_ORDERED, CUT_MISSING, CUT_SET)).all()))
    leaf, at = tree.cut == CUT_LEAF, np.arange(n)
    need(((tree.cell[leaf] >= 0) & (tree.cell[leaf] < cells)).all())
    for child in (tree.left, tree.right):  # children come after their parent, so that no walk goes round
        need(((child > at) & (child < n))[~leaf].all())
    need(((tree.attribute >= 0) & (tree.attribute < len(axes)))[~leaf].all())
    sets = tree.cut == CUT_SET
    ordered = (tree.start >= 0) & (tree.start <= tree.middle) & (tree.middle <= tree.stop)
    need((ordered & (tree.stop <= len(tree.members)))[sets].all())
    heights = np.array([1 if a.above is None else a.above.shape[1] for a in axes])
    need(((tree.level[sets] >= 0) & (tree.level[sets] < heights[tree.attribute[sets]])).all())


@kernel
def _find(members: Ints, start: int, stop: int, item: int) -> bool:
    """Whether the ascending list holds the item."""
    while start < stop:
        middle = (start + stop) // 2
        if members[middle] < item:
            start = middle + 1
        elif members[middle] > item:
            stop = middle
        else:
            return True
    return False


@kernel
def walk(
    codes: Ints,
    attribute: Ints,
    cut: Bytes,
    threshold: Ints,
    level: Ints,
    left: Ints,
    right: Ints,
    cell: Ints,
    start: Longs,
    middle: Longs,
    stop: Longs,
    members: Ints,
    tree_of: Ints,
    ancestors: Ints,
    cell_of: Ints,
) -> None:
    """Walk every row down the tree; -1 where a cut meets a value it has not seen (code -1 or in neither half).

    A set cut that lists nothing for the right sends there whatever is not on the left.
    """
    for r in range(codes.shape[0]):
        node = 0
        while node >= 0 and cut[node] != CUT_LEAF:
            j = attribute[node]
            code = codes[r, j]
            if code < 0:
                node = -1
            elif cut[node] != CUT_SET:
                node = left[node] if code <= threshold[node] else right[node]
            else:
                item = code if level[node] == 0 else ancestors[tree_of[j], code, level[node]]
                if _find(members, start[node], middle[node], item):
                    node = left[node]
                elif middle[node] == stop[node] or _find(members, middle[node], stop[node], item):
                    node = right[node]
                else:
                    node = -1
        cell_of[r] = cell[node] if node >= 0 else -1
