"""Counts asked of a released table, and its columns before and after: each class lies evenly over its cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.attack.shared.released import plain_axis
from countervail.core.arrays import Floats
from countervail.core.divergence import half_l1, line_distance
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.region import Axis, Range, Values
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.stats import plain_json
from countervail.core.table import Table

_LEAST = 0.001  # of the rows: below it, an error is not divided by the true count


@dataclass(frozen=True, slots=True)
class QueryError:
    """Relative errors of random counts; those of rare answers are taken relative to a thousandth of the rows."""

    queries: int
    columns: int
    median: float
    mean: float
    worst_tenth: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


@dataclass(frozen=True, slots=True)
class ColumnShift:
    """How far a column's distribution moved: earth mover's distance as a share of the range (numbers, levels), or half
    the sum of the differences (categories). The range is that of the table, and of released numbers beyond it."""

    name: str
    distance: float


def query_error(
    release: Release,
    *,
    queries: int = 500,
    columns: int = 2,
    share: float = 0.1,
    table: Table | None = None,
    random_state: RandomState = 0,
) -> QueryError:
    """Ask random counts of the release and of the table: "how many people of 30 to 45 live in one of these cities?"

    A query asks about `columns` random generalised columns (or noisy ones, where none is generalised), so that it would
    cover about `share` of evenly spread rows.
    Suppressed rows are missing from the answers, and count as error.

    Examples
    --------
    >>> import countervail as cv
    >>> t = cv.load("german_credit")
    >>> near, far = (cv.Mondrian(k=k).fit(t).protect(t) for k in (3, 50))
    >>> cv.measure.query_error(near).median < cv.measure.query_error(far).median
    True
    """
    original = release.original_table(table)
    axes, weights = _changed_columns(release, original, "query_error")
    if not 1 <= columns <= len(axes):
        raise bad_parameter("query_error", "columns", f"between 1 and the {len(axes)} changed columns", columns)
    if queries < 1:
        raise bad_parameter("query_error", "queries", "at least 1", queries)
    if not 0 < share < 1:
        raise bad_parameter("query_error", "share", "between 0 and 1", share)
    rng = generator(random_state)
    asked = [_AskedColumn.of(a, original.frame[a.name]) for a in axes]
    errors = np.empty(queries)
    for i in range(queries):
        inside = np.ones(len(original), dtype=bool)
        estimate = weights.copy()
        for j in rng.choice(len(asked), columns, replace=False):
            rows, classes = asked[j].draw(share ** (1 / columns), rng)
            inside &= rows
            estimate *= classes
        true = int(inside.sum())
        errors[i] = abs(estimate.sum() - true) / max(true, _LEAST * len(original))
    worst = float(np.quantile(errors, 0.9))
    return QueryError(queries, columns, float(np.median(errors)), float(errors.mean()), worst)


@dataclass(frozen=True, eq=False, slots=True)
class _AskedColumn:
    """A column to ask about: the table's values as places among `kinds` (-1: missing), and the released cells."""

    axis: Axis
    kinds: Any
    at: NDArray[np.int64]

    @classmethod
    def of(cls, axis: Axis, values: pd.Series) -> _AskedColumn:
        if isinstance(axis, Range):
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            kinds, at = np.unique(numbers[np.isfinite(numbers)], return_inverse=True)
            place = np.full(len(numbers), -1, np.int64)
            place[np.isfinite(numbers)] = at
            return cls(axis, kinds, place)
        known = sorted((v for v in axis.known if v is not None), key=lambda v: (type(v).__name__, v))
        return cls(axis, known, np.asarray(pd.Index(known).get_indexer(pd.Index(values.astype(object))), np.int64))

    def draw(self, share: float, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
        """A random range of numbers or set of values: which rows lie in it, and what share of each class."""
        width = max(1, round(share * len(self.kinds)))
        if not len(self.kinds):  # nothing but missing values
            return np.zeros(len(self.at), dtype=bool), np.zeros(_size(self.axis))
        if isinstance(self.axis, Range):
            first = int(rng.integers(0, len(self.kinds) - width + 1))
            rows = (self.at >= first) & (self.at < first + width)
            return rows, _overlap(self.axis, float(self.kinds[first]), float(self.kinds[first + width - 1]))
        wanted = np.zeros(len(self.kinds) + 1, dtype=bool)  # the last is missing, which is never asked for
        wanted[rng.permutation(len(self.kinds))[:width]] = True
        chosen = {v for v, w in zip(self.kinds, wanted) if w}
        member = self.axis.member
        hit = member[:, [v in chosen for v in self.axis.known]].sum(axis=1)
        return wanted[self.at], hit / np.maximum(member.sum(axis=1), 1)


def _size(axis: Axis) -> int:
    return len(axis.low) if isinstance(axis, Range) else len(axis.bits)


def _overlap(axis: Range, low: float, high: float) -> Floats:
    """Share of each class's range that lies within [low, high]; missing values never do."""
    pad = 0.5 if axis.whole else 0.0
    a, b = axis.low - pad, axis.high + pad
    shared = np.clip(np.minimum(b, high + pad) - np.maximum(a, low - pad), 0, None)
    point = b <= a
    inside = (axis.low >= low) & (axis.high <= high)
    share: Floats = np.where(point, inside, shared / np.where(point, 1.0, b - a)).astype(float)
    return np.where(np.isfinite(share), share, 0.0)


def column_shifts(release: Release, *, table: Table | None = None) -> tuple[ColumnShift, ...]:
    """Each generalised (or noisy) column before and after, missing values aside: 0 where nothing moved, at most 1.

    Examples
    --------
    >>> import countervail as cv
    >>> t = cv.load("german_credit")
    >>> [s.distance for s in cv.measure.column_shifts(cv.Mondrian(k=1).fit(t).protect(t))][:2]
    [0.0, 0.0]
    """
    original = release.original_table(table)
    axes, weights = _changed_columns(release, original, "column_shifts")
    return tuple(ColumnShift(a.name, _distance(a, weights, original)) for a in axes)


def _changed_columns(release: Release, table: Table, owner: str) -> tuple[tuple[Axis, ...], Floats]:
    """Generalised columns by class, with the rows of each; in a noisy table, without classes, all features by row."""
    if release.regions.axes:
        return release.regions.axes, np.bincount(release.groups, minlength=len(release.regions)).astype(float)
    shown = [n for n in table.schema.features if n in release.others.columns]
    if not shown:
        raise SchemaError(f"{owner} compares features with those of the table, but the release shows none of them.")
    return tuple(plain_axis(release.others[n], n, table.schema) for n in shown), np.ones(len(release))


def _distance(axis: Axis, weights: Floats, table: Table) -> float:
    values = table.frame[axis.name]
    if isinstance(axis, Range):
        return _moved(axis, weights, values)
    return _changed(axis, weights, table, values)


def _moved(axis: Range, weights: Floats, values: pd.Series) -> float:
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    some = np.isfinite(axis.low) & (weights > 0)
    low, high = axis.low[some], axis.high[some]
    kinds = np.unique(np.concatenate([numbers, low[low == high]]))
    if len(kinds) < 2 or not len(numbers) or not len(low):
        return 0.0
    mass = weights[some] / weights[some].sum()
    before = np.searchsorted(numbers, kinds, side="right") / len(numbers)
    after = np.zeros(len(kinds))
    step = 1.0 if axis.whole else 0.0
    for i, value in enumerate(kinds):
        width = high - low + step
        reached = np.clip((value - low + step) / np.where(width > 0, width, 1.0), 0, 1)
        after[i] = mass @ np.where(width > 0, reached, value >= low)
    return float((np.abs(before - after)[:-1] * np.diff(kinds)).sum() / (kinds[-1] - kinds[0]))


def _changed(axis: Values, weights: Floats, table: Table, values: pd.Series) -> float:
    known = [v for v in axis.known if v is not None]
    keep = [i for i, v in enumerate(axis.known) if v is not None]
    member = axis.member[:, keep]
    after = weights @ (member / np.maximum(member.sum(axis=1, keepdims=True), 1))
    held = {v: float(n) for v, n in values.value_counts().items() if n > 0}  # a category may be nobody's
    extra = [v for v in held if v not in set(known)]  # suppressed altogether
    before = np.array([held.get(v, 0.0) for v in [*known, *extra]])
    after = np.append(after, np.zeros(len(extra)))
    if not before.sum() or not after.sum():
        return 0.0
    p, q = before / before.sum(), after / after.sum()
    column = table.schema[axis.name]
    if column.type == "categorical":
        return float(half_l1(p, q))
    levels = list(column.levels or ())
    place = np.array([float(levels.index(v)) if levels else float(v) for v in [*known, *extra]])
    order = np.argsort(place)
    reach = place.max() - place.min()
    return float(line_distance(p[order], q[order], place[order]) / reach) if reach > 0 else 0.0
