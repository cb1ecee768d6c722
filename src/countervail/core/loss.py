"""What generalisation costs: NCP, and pureness over the combinations of values in a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats
from countervail.core.canonical import canonical_value, code_values
from countervail.core.errors import bad_parameter
from countervail.core.region import Range, Regions, Values
from countervail.core.table import Table

_FACTS: WeakKeyDictionary[Table, dict[tuple[str, Any], Any]] = WeakKeyDictionary()


def as_interval(table: Table, name: str) -> bool:
    """Whether a column generalises to an interval (of numbers or levels) rather than to a set of values.

    A level column with missing values has no place for them in its order, so it generalises to sets.
    """
    kind = table.schema[name].type
    return kind in ("numeric", "date") or (kind == "ordinal" and _once(table, name, _complete))


def column_weights(names: Sequence[str], weights: Mapping[str, float] | None, owner: str) -> Floats:
    """Weights of the quasi-identifiers, equal unless given; they sum to one."""
    if weights is None:
        return np.full(len(names), 1.0 / max(len(names), 1))
    if set(weights) != set(names):
        raise bad_parameter(
            owner, "weights", f"a mapping with exactly the quasi-identifiers {list(names)}", list(weights)
        )
    w = np.array([float(weights[n]) for n in names])
    if (w < 0).any() or not np.isclose(w.sum(), 1.0):
        raise bad_parameter(owner, "weights", "non-negative and sum to one", dict(weights))
    return w


def ncp(regions: Regions, table: Table, weights: Mapping[str, float] | None = None) -> Floats:
    """Normalised certainty penalty of each region: the weighted mean over its columns.

    Numeric: width over the range of the table's values. Ordinal: steps over the steps between all levels.
    Categorical: 0 for one value, else the share of the table's values that the set holds.

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> region = {"age": pd.Interval(24, 27, closed="both"), "gender": "F", "city": "Antwerp"}
    >>> t = cv.load("toy_credit")
    >>> float(ncp(Regions.from_cells([region], t.schema), t).round(3)[0])
    0.021
    """
    if not len(regions):  # where nothing was found there are no columns either, whose weights could be checked
        return np.zeros(0)
    w = column_weights(regions.names, weights, "ncp")
    total = np.zeros(len(regions))
    for weight, axis in zip(w, regions.axes):
        total += weight * _penalty(axis, table)
    return total


def cell_widths(regions: Regions, table: Table) -> list[Floats]:
    """How far each region's cell reaches, column by column: its part of NCP without a weight."""
    return [_penalty(axis, table) for axis in regions.axes]


def _penalty(axis: Range | Values, table: Table) -> Floats:
    if isinstance(axis, Range):
        spread = _once(table, axis.name, _spread)
        width = np.nan_to_num(axis.high - axis.low)
        part = width / spread if spread > 0 else np.zeros(len(axis.low))
        # Numbers or none at all: such a cell says nothing.
        return part if axis.holes is None else np.where(axis.holes & ~np.isnan(axis.low), 1.0, part)
    member = axis.member
    if table.schema[axis.name].type == "ordinal" and as_interval(table, axis.name):
        levels = table.schema[axis.name].levels
        place = {canonical_value(v): i for i, v in enumerate(levels or ())}
        rank = np.array([place[canonical_value(v)] if levels else v for v in axis.known], dtype=float)
        high = np.where(member, rank, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(member, rank, np.inf).min(axis=1, initial=np.inf)
        most = len(levels) - 1 if levels else _once(table, axis.name, _between_ends)
        steps: Floats = np.maximum(high - low, 0.0) / (most or 1)
        return steps
    held = _once(table, axis.name, _held)
    # A hierarchy's group may hold values that the table does not have: they are no loss.
    among = member[:, [canonical_value(v) in held for v in axis.known]].sum(axis=1)
    return np.where(member.sum(axis=1) > 1, among / len(held), 0.0)


def _once(table: Table, name: str, look: Callable[[pd.Series], Any]) -> Any:
    """A fact about a column, looked up once for as long as somebody keeps the table."""
    known = _FACTS.setdefault(table, {})
    if (name, look) not in known:
        known[name, look] = look(table.frame[name])
    return known[name, look]


def _spread(values: pd.Series) -> float:
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    return float(np.ptp(numbers)) if len(numbers) else 0.0


def _complete(values: pd.Series) -> bool:
    return not values.isna().any()


def _between_ends(values: pd.Series) -> float:
    return float(values.max()) - float(values.min())


def _held(values: pd.Series) -> frozenset[Any]:
    return frozenset(code_values(values)[1])


def region_values(cell: Any, table: Table, name: str) -> list[Any]:
    """The values a cell stands for: a set's members, or the table's distinct values inside an interval."""
    if isinstance(cell, frozenset):
        values: list[Any] = []
        for part in cell:
            values += region_values(part, table, name)
        return values
    if isinstance(cell, pd.Interval):
        column = table.frame[name]
        return sorted(pd.unique(column[(column >= cell.left) & (column <= cell.right)]).tolist())
    return [cell]
