"""Proposing a hierarchy for a column: a tree of groups with its reason, for a person to edit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import pandas as pd

from countervail.core.conform import plain
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.hierarchy import Hierarchy
from countervail.core.hierarchy.rows import PERIODS, ROOT
from countervail.core.schema import Column
from countervail.core.words.dates import iso_column, read_days

KINDS: Final = ("intervals", "quantiles", "dates", "prefixes", "order", "flat")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPOKEN_DATE = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})(?!\d)")
_CODE = re.compile(r"[A-Z]{0,3}[\d ]{3,12}[A-Z]{0,3}", re.IGNORECASE)
_MOST_WHOLE: Final = 2000  # wider ranges list the values that occur instead of every whole number


@dataclass(frozen=True, slots=True)
class HierarchyProposal:
    """A hierarchy to edit, of which kind, and why."""

    hierarchy: Hierarchy
    kind: str
    reason: str


def propose_hierarchy(
    values: pd.Series,
    *,
    kind: str | None = None,
    column: Column | None = None,
    widths: Sequence[float] | None = None,
    parts: int = 8,
    lengths: Sequence[int] | None = None,
) -> HierarchyProposal:
    """A hierarchy for a column's values: by their type unless `kind` says otherwise.

    Examples
    --------
    >>> propose_hierarchy(pd.Series([18, 33, 71], name="age")).hierarchy.rows[0]
    ('18', '15-19', '10-19', '0-19', '*')
    """
    if kind is not None and kind not in KINDS:
        raise bad_parameter("propose_hierarchy", "kind", f"one of {KINDS}", kind)
    name = str(values.name)
    if column is not None and column.type == "date":
        values = iso_column(read_days(values, column.order, name))
    present = values.dropna()
    if not len(present):
        raise SchemaError(f"Column '{name}' holds missing values only: there is nothing to group.")
    kind, reason = (kind, "as told") if kind is not None else _guess(present, column)
    if kind in ("intervals", "quantiles") and not pd.api.types.is_numeric_dtype(present):
        raise SchemaError(f"Column '{name}' holds no numbers: choose another kind than {kind!r}.")
    if kind == "intervals":
        numbers, chosen = _all_whole(present), widths if widths is not None else _widths(present)
        built = Hierarchy.intervals(numbers, widths=chosen, start=_start(present, chosen), name=name)
    elif kind == "quantiles":
        built = Hierarchy.quantiles(present, parts=parts, name=name)
        reason += "; the groups are read off the rows, so their ends are values of people in this table"
    elif kind == "dates":
        built = _dates(present, name)
    elif kind == "prefixes":
        built = Hierarchy.prefixes(present, lengths=lengths, name=name)
    elif kind == "order":
        built = Hierarchy.order(_levels(present, column, name), name=name)
    else:
        built = Hierarchy(tuple((v, ROOT) for v in _spelled(present)), name)
    return HierarchyProposal(built, kind, reason)


def _guess(values: pd.Series, column: Column | None) -> tuple[str, str]:
    ordered = isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered
    if ordered or (column is not None and column.levels is not None):
        return "order", "its levels have an order: neighbours are joined by two"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "dates", "dates"
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        return "intervals", "numbers: intervals of round widths"
    texts = _spelled(values)
    if all(_DATE.match(t) for t in texts):
        return "dates", "texts that begin with a date"
    if (found := _spoken_days(texts)) is not None:
        return "dates", f"texts that begin with a date, {found[1]}"
    if len(texts) > 10 and len({len(t) for t in texts}) == 1 and all(_CODE.fullmatch(t) for t in texts):
        return "prefixes", "codes of equal length: the last characters are cut off one by one"
    return "flat", "names without an order: every value lies under the root; group them by writing a level in between"


def _dates(values: pd.Series, name: str) -> Hierarchy:
    """Days under their periods; texts such as 31/05/1984 keep their spelling."""
    periods = [p for p in PERIODS if p not in ("quarter", "century")]
    found = None if pd.api.types.is_datetime64_any_dtype(values) else _spoken_days(_spelled(values))
    if found is None:
        return Hierarchy.dates(values, periods=periods, name=name)
    above = {row[0]: row[1:] for row in Hierarchy.dates(found[0].values(), periods=periods, name=name).rows}
    return Hierarchy(tuple((text, *above[str(day)]) for text, day in found[0].items()), name)


def _spoken_days(texts: Sequence[str]) -> tuple[dict[str, date], str] | None:
    """The days of texts such as 31/05/1984 in order, and how they were read: the day first, unless that cannot be."""
    parts = [_SPOKEN_DATE.match(t) for t in texts]
    for order, words in (((2, 1), "read as day/month/year"), ((1, 2), "read as month/day/year")):
        try:
            days = {t: date(*(int(m.group(i)) for i in (3, *order))) for t, m in zip(texts, parts) if m is not None}
        except ValueError:
            continue
        if len(days) < len(texts):
            return None
        sure = any(d.day > 12 for d in days.values())
        doubt = "" if sure else " (no day above 12 tells which comes first: check)"
        return dict(sorted(days.items(), key=lambda item: (item[1], item[0]))), words + doubt
    return None


def _spelled(values: pd.Series) -> list[str]:
    return sorted({plain(v) for v in values.unique()})


def _all_whole(values: pd.Series) -> list[Any]:
    """Every whole number of the range where that is not too many: the file then does not tell who is there."""
    numbers = values.to_numpy(dtype=float)
    low, high = numbers.min(), numbers.max()
    if np.isfinite(numbers).all() and (numbers % 1 == 0).all() and high - low <= _MOST_WHOLE:
        return list(range(int(low), int(high) + 1))
    return sorted(set(numbers.tolist()))


def _widths(values: pd.Series) -> list[float]:
    """Three round widths that nest: about a fifteenth, an eighth and a quarter of the range."""
    numbers = values.to_numpy(dtype=float)
    spread = float(numbers.max() - numbers.min()) or 1.0
    unit = 10.0 ** math.floor(math.log10(spread / 15))
    small = next(unit * m for m in (1, 2, 5, 10) if unit * m * 15 >= spread * 0.6)
    if (numbers % 1 == 0).all():
        small = max(1.0, small)
    return [small, 2 * small, 4 * small]


def _start(values: pd.Series, widths: Sequence[float]) -> float:
    """Intervals are counted from a round number at or below the lowest value."""
    return float(math.floor(float(values.min()) / widths[-1]) * widths[-1]) if widths and widths[-1] > 0 else 0.0


def _levels(values: pd.Series, column: Column | None, name: str) -> Sequence[Any]:
    if column is not None and column.levels is not None:
        return column.levels
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered:
        return list(values.dtype.categories)
    if pd.api.types.is_numeric_dtype(values):
        return sorted(values.unique().tolist())
    raise SchemaError(f"The order of '{name}' is not known. Give a schema that declares levels = [...] for it.")
