"""Released cells as numbers for a learner: the 6 x 4 encodings of continuous and categorical attributes.

What an encoding needs to know beyond the release (range, quantiles, categories, whether anything is missing) is taken
from the tested table once, so that the same yardstick serves the release with and without a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Floats
from countervail.core.cells import cell_text
from countervail.core.errors import bad_parameter
from countervail.core.region import Axis, Range, Values
from countervail.core.schema import Column
from countervail.core.table import Table

CONTINUOUS: Final = ("scaling", "bounds", "binary", "quantiles-before", "quantiles-after", "tf")
CATEGORICAL: Final = ("hot", "binary", "hot-after", "tf")


def parse_encoding(encoding: Any, owner: str) -> tuple[str, str]:
    """The pair of encodings, from a pair or from its name such as "tf-tf" or "quantiles-before-hot"."""
    pairs = {f"{a}-{b}": (a, b) for a in CONTINUOUS for b in CATEGORICAL}
    found = pairs.get(encoding) if isinstance(encoding, str) else None
    if found is None and isinstance(encoding, (tuple, list)) and tuple(encoding) in pairs.values():
        found = (encoding[0], encoding[1])
    if found is None:
        must = f"a continuous encoding of {CONTINUOUS} and a categorical one of {CATEGORICAL}, as a pair or 'tf-tf'"
        raise bad_parameter(owner, "encoding", must, encoding)
    return found


@dataclass(frozen=True, eq=False, slots=True)
class Spec:
    """How one quasi-identifier is encoded."""

    column: Column
    how: str
    low: float
    high: float
    edges: Floats
    values: tuple[Any, ...]


def make_specs(table: Table, encoding: tuple[str, str], quantiles: int) -> list[Spec]:
    """One per quasi-identifier; ordinal columns are continuous on the ranks of their levels."""
    out = []
    for name in table.schema.names("quasi"):
        column, values = table.schema[name], table.frame[name]
        if column.type == "categorical":
            kinds = sorted(pd.unique(values.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
            missing = (None,) if values.isna().any() else ()
            out.append(Spec(column, encoding[1], 0.0, 0.0, np.zeros(0), (*kinds, *missing)))
            continue
        numbers = places(values, column)
        numbers = numbers[np.isfinite(numbers)]
        low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
        if column.numeric and column.domain is not None:
            low, high = float(column.domain[0]), float(column.domain[1])
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, quantiles + 1))) if len(numbers) else np.zeros(0)
        out.append(Spec(column, encoding[0], low, high, edges, tuple(column.levels or ())))
    return out


def quantiles_before(table: Table, quantiles: int) -> Table:
    """The table with its continuous quasi-identifiers cut into quantiles and declared categorical."""
    frame, schema = table.frame.copy(), table.schema
    for column in [c for c in schema if c.role == "quasi" and c.type != "categorical"]:
        numbers = places(frame[column.name], column)
        edges = np.unique(np.quantile(numbers[np.isfinite(numbers)], np.linspace(0, 1, quantiles + 1)))
        bins = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, max(len(edges) - 2, 0))
        labels = pd.Series([f"quantile {b + 1}" for b in bins], dtype=object)
        frame[column.name] = labels.where(np.isfinite(numbers), None)
        schema = schema.with_column(column.name, type="categorical")
    return Table(frame, schema)


def places(values: pd.Series, column: Column) -> Floats:
    """Numbers as they are, levels by rank; missing is NaN."""
    if column.numeric:
        return values.to_numpy(dtype=float, na_value=np.nan)
    rank = {v: float(i) for i, v in enumerate(column.levels or ())}
    return np.array([np.nan if pd.isna(v) else rank[v] for v in values.astype(object)])


def encode_axis(axis: Axis, person: pd.Series, spec: Spec) -> tuple[Floats, Floats]:
    """Region x feature, and the person's own features."""
    if spec.how == "tf":
        return axis.covers(person).astype(float), np.ones(1)
    if spec.column.type == "categorical":
        return _categories(axis, person, spec)
    low, high = _ends(axis, spec)
    own = places(person, spec.column)
    both = _numbers(np.append(low, own), np.append(high, own), spec)
    return both[:-1], both[-1]


def _ends(axis: Axis, spec: Spec) -> tuple[Floats, Floats]:
    """Lowest and highest place of each region; NaN where it holds missing values alone."""
    if isinstance(axis, Range):
        return axis.low, axis.high
    known = pd.Series(list(axis.known), dtype=object)
    at, member = places(known, spec.column), axis.member
    there = member & np.isfinite(at)[None, :]
    low = np.where(there, at[None, :], np.inf).min(axis=1, initial=np.inf)
    high = np.where(there, at[None, :], -np.inf).max(axis=1, initial=-np.inf)
    none = ~there.any(axis=1)
    return np.where(none, np.nan, low), np.where(none, np.nan, high)


def _numbers(low: Floats, high: Floats, spec: Spec) -> Floats:
    """Scaling, bounds, binary or quantiles after; missing values are zero everywhere."""
    span = spec.high - spec.low if spec.high > spec.low else 1.0
    middle = (low + high) / 2
    if spec.how == "scaling":
        out = ((middle - spec.low) / span)[:, None]
    elif spec.how == "bounds":
        out = np.column_stack([(low - spec.low) / span, (high - spec.low) / span])
    elif spec.how == "binary":
        shifted = np.floor(np.nan_to_num(middle) - spec.low).astype(np.int64)
        out = _bits(np.clip(shifted, 0, None), max(int(np.floor(span)).bit_length(), 1))
    else:
        left, right = spec.edges[:-1], spec.edges[1:]
        if len(left) == 0:
            return np.isfinite(low)[:, None].astype(float)
        # Quantiles are half-open, but for the last; a region meets one where they share a point.
        last = np.arange(len(left)) == len(left) - 1
        meets = (high[:, None] >= left) & ((low[:, None] < right) | (last & (low[:, None] <= right)))
        out = meets.astype(float)
    return np.where(np.isfinite(middle)[:, None], out, 0.0)


def _categories(axis: Axis, person: pd.Series, spec: Spec) -> tuple[Floats, Floats]:
    """Hot over the table's values; or binary or hot over the generalisations that the release shows."""
    own = None if pd.isna(person.iloc[0]) else person.iloc[0]
    if not isinstance(axis, Values):
        raise bad_parameter("an encoding", "release", f"categorical in column '{axis.name}'", "numbers")
    if spec.how == "hot":
        at = {v: i for i, v in enumerate(axis.known)}
        padded = np.column_stack([axis.member, np.zeros(axis.bits.shape[0], dtype=bool)])
        hot = padded[:, [at.get(v, -1) for v in spec.values]].astype(float)
        return hot, np.array([float(v == own) for v in spec.values])
    texts = [cell_text(axis.cell(i)) for i in range(axis.bits.shape[0])]
    plain = {cell_text(v) for v in spec.values}
    place = {text: i for i, text in enumerate(sorted(plain | set(texts)))}
    codes = np.array([place[t] for t in (*texts, cell_text(own))])
    out = _bits(codes + 1, len(place).bit_length()) if spec.how == "binary" else np.eye(len(place))[codes]
    return out[:-1], out[-1]


def _bits(numbers: Sequence[int] | NDArray[np.int64], width: int) -> Floats:
    """Binary digits, the most significant first."""
    shifts = np.arange(width - 1, -1, -1)
    return ((np.asarray(numbers, np.int64)[:, None] >> shifts) & 1).astype(float)
