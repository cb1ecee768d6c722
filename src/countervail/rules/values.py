"""Value-set tables: rows whose cells are intervals or sets of values, and whose decision is a set of classes.

An ordinary decision table is the special case of single values. Rows that are equal in all of it are kept once, with
their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import number_rows
from countervail.core.errors import SchemaError
from countervail.core.region import Axis, Range, Regions
from countervail.core.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Masks = NDArray[np.uint64]
Bools = NDArray[np.bool_]
MAX_CLASSES = 63


@dataclass(frozen=True, slots=True)
class Attribute:
    """A condition attribute: ordered (numbers, or ranks of `known` levels), or sets of `known` values.

    Numbers may be days, which sentences tell as dates, or as the months that they begin or end.
    """

    name: str
    ordered: bool
    known: tuple[Any, ...] = ()
    whole: bool = False
    told: Literal["number", "day", "month"] = "number"

    def cell(self, low: float, high: float) -> Any:
        """The cell that an interval stands for: a number, a closed interval, a level, or a set of levels."""
        if self.known:
            first, last = max(low, 0), min(high, len(self.known) - 1)
            levels = self.known[int(first) : int(last) + 1]
            return levels[0] if len(levels) == 1 else frozenset(levels)
        ends = [int(v) if self.whole and np.isfinite(v) else float(v) for v in (low, high)]
        return ends[0] if low == high else pd.Interval(ends[0], ends[1], closed="both")

    def subset(self, member: Bools) -> Any:
        """The cell that a set of values stands for."""
        values = [self.known[i] for i in np.flatnonzero(member)]
        return values[0] if len(values) == 1 else frozenset(values)


class Coded(NamedTuple):
    """What the kernels see. Ordered attributes: ranks among the cuts; others: numbers of value sets.

    `up` is the rank of the upper end among all upper ends and `down` that of the lower end among all lower ends, so
    `a <= cut r` holds of a row when `up <= r`. `may_up` and `may_down` say the same of "can hold". Value sets of
    attribute a are numbered from `first[a]`; `sup` lists the sets that include each, `meet` those that overlap it.
    """

    up: Codes
    down: Codes
    may_up: Codes
    may_down: Codes
    weight: Ints
    ordered: Bools
    first: Ints
    sup_at: Ints
    sup: Codes
    meet_at: Ints
    meet: Codes


@dataclass(frozen=True, eq=False, slots=True)
class ValueTable:
    """Distinct rows: `low` and `high` by attribute x row (of a nominal attribute both are the number of a set).

    `weight` is how many rows each stands for, `group` which of them each row is, and `conditions` a number that is the
    same for rows with equal conditions.
    """

    attributes: tuple[Attribute, ...]
    low: Floats
    high: Floats
    sets: tuple[Bools | None, ...]
    decisions: Masks
    weight: Ints
    classes: tuple[Any, ...]
    group: Ints
    conditions: Ints
    crisp: bool
    coded: Coded = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "coded", _encode_table(self))

    @classmethod
    def from_rows(
        cls, attributes: Sequence[Attribute], values: Floats, labels: Sequence[Any], classes: tuple[Any, ...]
    ) -> Self:
        """An ordinary decision table: attribute x row of numbers, ranks of levels, or places of known values."""
        masks = encode_decisions(labels, classes)
        return cls._grouped(tuple(attributes), values, values, (None,) * len(values), masks, classes, True)

    @classmethod
    def from_regions(cls, regions: Regions, labels: Sequence[Any], classes: tuple[Any, ...], schema: Schema) -> Self:
        """Rows with intervals and sets: patterns, or the cells of an anonymised table."""
        if regions.empty.any():
            raise SchemaError("A table of value sets must not hold an empty set or a cell without values.")
        parts = [_read_axis(axis, schema) for axis in regions.axes]
        low, high = np.array([p[1] for p in parts]), np.array([p[2] for p in parts])
        sets = tuple(p[3] for p in parts)
        masks = encode_decisions(labels, classes)
        crisp = bool(np.array_equal(low, high)) and all(s is None or bool((s.sum(axis=1) == 1).all()) for s in sets)
        return cls._grouped(tuple(p[0] for p in parts), low, high, sets, masks, classes, crisp)

    @classmethod
    def _grouped(
        cls,
        attributes: tuple[Attribute, ...],
        low: Floats,
        high: Floats,
        sets: tuple[Bools | None, ...],
        masks: Masks,
        classes: tuple[Any, ...],
        crisp: bool,
    ) -> Self:
        same = number_rows([pd.factorize(c)[0] for c in (*low, *(() if crisp else high))])
        key = number_rows([same, pd.factorize(masks)[0]])
        _, first, group, weight = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        # Groups in the order of their first row, so that "first" means the same with and without equal rows.
        order = np.argsort(first, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        at = first[order]
        return cls(
            attributes,
            np.ascontiguousarray(low[:, at]),
            np.ascontiguousarray(high[:, at]),
            sets,
            masks[at],
            weight[order].astype(np.int64),
            classes,
            place[group.ravel()].astype(np.int64),
            same[at],
            crisp,
        )

    def with_values(self, values: Floats, sets: tuple[Bools | None, ...]) -> Self:
        """An ordinary table's rows with other values (attribute x distinct row), grouped anew."""
        rows, masks = values[:, self.group], self.decisions[self.group]
        return self._grouped(self.attributes, rows, rows, sets, masks, self.classes, True)

    def __len__(self) -> int:
        return len(self.decisions)

    @property
    def rows(self) -> int:
        """How many rows there are, equal ones included."""
        return len(self.group)

    @property
    def names(self) -> list[str]:
        """The condition attributes, in order."""
        return [a.name for a in self.attributes]

    @property
    def imprecise(self) -> bool:
        """Whether some decision is a set of several classes, as in a table of patterns."""
        return bool((self.decisions & (self.decisions - np.uint64(1))).any())

    def members(self, j: int) -> Bools:
        """Set x value of nominal attribute `j`."""
        held = self.sets[j]
        return np.eye(len(self.attributes[j].known), dtype=bool) if held is None else held


def encode_decisions(labels: Sequence[Any], classes: Sequence[Any]) -> Masks:
    """Each label, or set of labels, as bits over the classes."""
    bit = {c: np.uint64(1) << np.uint64(i) for i, c in enumerate(classes)}
    plain = pd.Series(list(labels), dtype=object)
    codes, kinds = pd.factorize(plain)
    masks = np.zeros(len(kinds), dtype=np.uint64)
    for i, kind in enumerate(kinds):
        for label in kind if isinstance(kind, frozenset) else (kind,):
            masks[i] |= bit[label]
    out: Masks = masks[codes]
    return out


def _read_axis(axis: Axis, schema: Schema) -> tuple[Attribute, Floats, Floats, Bools | None]:
    if isinstance(axis, Range):
        if axis.holes is not None and axis.holes.any():
            raise SchemaError(f"Column '{axis.name}' has missing numbers. Impute or drop them before inducing rules.")
        told: Literal["number", "day"] = "day" if schema[axis.name].type == "date" else "number"
        return Attribute(axis.name, True, whole=axis.whole, told=told), axis.low, axis.high, None
    column, member = schema[axis.name], axis.member
    if column.values is not None and (unknown := [v for v in axis.known if v is not None and v not in column.values]):
        word = "levels" if column.type == "ordinal" else "domain"
        raise SchemaError(f"Column '{axis.name}' has {len(unknown)} value(s) outside its declared {word}.")
    if column.type == "ordinal" and column.levels is not None and None not in axis.known:
        rank = np.array([column.levels.index(v) for v in axis.known], dtype=float)
        low = np.where(member, rank, np.inf).min(axis=1)
        high = np.where(member, rank, -np.inf).max(axis=1)
        return Attribute(axis.name, True, column.levels), low, high, None
    # Reversed, so that sets sort as whole numbers do whose bit i is value i.
    _, first, number = np.unique(np.packbits(member[:, ::-1], axis=1), axis=0, return_index=True, return_inverse=True)
    code = number.ravel().astype(float)
    return Attribute(axis.name, False, axis.known), code, code, member[first]


def _encode_table(t: ValueTable) -> Coded:
    m, n = t.low.shape
    up, down = np.zeros((m, n), dtype=np.int32), np.zeros((m, n), dtype=np.int32)
    may_up, may_down = (up, down) if t.crisp else (np.zeros_like(up), np.zeros_like(down))
    first = np.zeros(m + 1, dtype=np.int64)
    relations: list[tuple[Bools | None, int]] = []
    for j, a in enumerate(t.attributes):
        if a.ordered:
            highs, lows = np.unique(t.high[j]), np.unique(t.low[j])
            up[j], down[j] = np.searchsorted(highs, t.high[j]), np.searchsorted(lows, t.low[j])
            may_up[j] = np.searchsorted(highs, t.low[j])
            may_down[j] = np.searchsorted(lows, t.high[j], side="right") - 1
        else:
            up[j] = down[j] = may_up[j] = may_down[j] = t.low[j].astype(np.int32)
            held = t.sets[j]
            relations.append((held, len(a.known) if held is None else len(held)))
        first[j + 1] = first[j] + (0 if a.ordered else relations[-1][1])
    sup_at, sup = _flatten([_find_including(s, q) for s, q in relations])
    meet_at, meet = _flatten([_find_overlapping(s, q) for s, q in relations])
    ordered = np.array([a.ordered for a in t.attributes], dtype=bool)
    return Coded(up, down, may_up, may_down, t.weight, ordered, first, sup_at, sup, meet_at, meet)


def _find_including(sets: Bools | None, q: int) -> list[Ints]:
    """The sets that include each set."""
    if sets is None:
        return [np.array([s]) for s in range(q)]
    return [np.flatnonzero(~(sets[s] & ~sets).any(axis=1)) for s in range(q)]


def _find_overlapping(sets: Bools | None, q: int) -> list[Ints]:
    """The sets that overlap each set."""
    if sets is None:
        return [np.array([s]) for s in range(q)]
    return [np.flatnonzero((sets[s] & sets).any(axis=1)) for s in range(q)]


def _flatten(per_attribute: list[list[Ints]]) -> tuple[Ints, Codes]:
    """Lists of lists as offsets and one array."""
    lists = [x for part in per_attribute for x in part]
    at = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    return at, (np.concatenate(lists) if lists else np.zeros(0)).astype(np.int32)
