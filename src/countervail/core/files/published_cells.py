"""Published cells read back: values, ranges, sets, periods, prefixes, and the names of groups of hierarchies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.cells import cell_text, fits
from countervail.core.conform import plain
from countervail.core.errors import SchemaError
from countervail.core.files.csv_text import FORMULA
from countervail.core.hierarchy import Hierarchy
from countervail.core.hierarchy.rows import ROOT
from countervail.core.schema import Column
from countervail.core.words.dates import cell_days, day_number, iso, read_days

_NUMBER = r"(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_RANGE = re.compile(rf"^\s*{_NUMBER}\s*(?:-| to )\s*{_NUMBER}\s*$")
_HALF_OPEN = re.compile(rf"^\[{_NUMBER}, {_NUMBER}\)$")
_PERIOD = re.compile(r"(\d{4})(?:-(\d{2})| Q([1-4])|(s)|-(\d{4}))?")


@dataclass(frozen=True, eq=False)
class CellReader:
    """Reads the cells of one column; `values` are those that people have there, in their own type.

    `hierarchy` says which values the names of its groups stand for. Without it, what `countervail anonymize` writes
    is read by its form: prefixes (`53***`), periods (`1984-05`, `1984`, `1980s`), neighbouring levels (`low to mid`),
    and `*` for all.
    """

    column: Column
    values: tuple[Any, ...]
    hierarchy: Hierarchy | None = None
    _known: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shown = iso if self.column.type == "date" else cell_text
        held = (*self.values, *(self.column.values or ()))
        object.__setattr__(self, "_known", {shown(v): v for v in held})

    def read(self, text: Any) -> Any:
        """One cell: a value, an interval, or a set; None for a missing one."""
        if text is None or (pd.api.types.is_scalar(text) and pd.isna(text)):
            return None
        if not isinstance(text, str):
            return text.item() if isinstance(text, np.generic) else text
        if text not in self._known and text.startswith("'") and FORMULA.match(text[1:]):
            text = text[1:]  # stands before what a spreadsheet would run
        if text in self._known:
            return self._known[text]
        if text == "missing":
            return None
        if (inside := inside_set(text)) is not None:
            parts = [self.read(part) for part in self._parts(inside)]
            return frozenset().union(*(p if isinstance(p, frozenset) else [p] for p in parts))
        if text in self._groups:
            return self._groups[text]
        if text == ROOT:
            return self._everything
        return self._by_form(text)

    def _by_form(self, text: str) -> Any:
        """A cell that is no value: a range of numbers or dates, a period, a prefix, neighbouring levels."""
        if self.column.type == "date":
            if (days := cell_days(text) or period_days(text)) is None:
                raise SchemaError(
                    f"Column '{self.column.name}' of the release holds text that is neither a date nor a range."
                )
            return days[0] if days[0] == days[1] else pd.Interval(*days, closed="both")
        if self.column.type == "numeric":
            if (ends := range_ends(text)) is not None:
                return pd.Interval(_read_number(ends[0]), _read_number(ends[1]), closed="both")
            if (half := _HALF_OPEN.match(text)) is not None:
                return pd.Interval(float(half[1]), math.nextafter(float(half[2]), -math.inf), closed="both")
            return _read_number(text)
        if found := self._with_prefix(text) or self._between(text):
            return found
        raise self._unknown()

    def _with_prefix(self, text: str) -> frozenset[Any]:
        """The values of which `text` is the beginning, with a star for each character that is left out."""
        head = text.rstrip(ROOT)
        if head == text:
            return frozenset()
        return frozenset(v for t, v in self._known.items() if t.startswith(head) and len(t) <= len(text))

    def _between(self, text: str) -> frozenset[Any]:
        """The levels from one to another."""
        levels = list(map(cell_text, self.column.levels or ()))
        low, to, high = text.partition(" to ")
        if not to or low not in levels or high not in levels:
            return frozenset()
        return frozenset(self._known[t] for t in levels[levels.index(low) : levels.index(high) + 1])

    @cached_property
    def _everything(self) -> Any:
        """Whatever people have, and nothing."""
        if self.column.numeric and self.values:
            return frozenset([pd.Interval(min(self.values), max(self.values), closed="both"), None])
        return frozenset([*self._known.values(), None])

    @cached_property
    def _groups(self) -> dict[str, frozenset[Any]]:
        """The names of the hierarchy's groups, and the values below."""
        if self.hierarchy is None:
            return {}
        texts = pd.Series(self.hierarchy.values, dtype="str")
        if self.column.type == "date":
            below: list[Any] = read_days(texts, self.column.order, self.column.name).tolist()
        elif self.column.numeric:
            below = [_read_number(t) for t in texts]
        else:
            spelt = {plain(v): v for v in self._known.values()}
            below = [spelt.get(t, t) for t in texts]
        found: dict[str, set[Any]] = {}
        for value, row in zip(below, self.hierarchy.rows):
            for name in row[1:-1]:
                found.setdefault(name, set()).add(value)
        # The name on top stands for all, also for those who have none.
        return {n: frozenset(v) for n, v in found.items()} | {self.hierarchy.rows[0][-1]: frozenset([*below, None])}

    def _parts(self, text: str) -> list[str]:
        """The items of a set; values may hold commas themselves, so the longest one that fits is taken."""
        pieces, out = text.split(", "), []
        while pieces:
            size = next((n for n in range(len(pieces), 0, -1) if ", ".join(pieces[:n]) in self._known), 1)
            out.append(", ".join(pieces[:size]))
            pieces = pieces[size:]
        return out

    def _unknown(self) -> SchemaError:
        return SchemaError(
            f"Column '{self.column.name}' of the release holds names of groups that are no values of the table. Give "
            f"the folder of its hierarchies (--hierarchies), or publish sets such as {{a, b}}."
        )


def one_kind(cells: list[Any], values: Iterable[Any]) -> list[Any]:
    """The cells of a column; where ranges stand beside sets of several values, all as sets of what people have."""
    listed = any(isinstance(c, frozenset) and len(c - {None}) > 1 for c in cells)
    spans = any(isinstance(v, pd.Interval) for c in cells for v in (c if isinstance(c, frozenset) else (c,)))
    if not listed or not spans:
        return cells
    held = tuple(values)
    return [_as_set(c, held) for c in cells]


def _as_set(cell: Any, held: tuple[Any, ...]) -> Any:
    inside = cell if isinstance(cell, frozenset) else frozenset([cell])
    if not any(isinstance(v, pd.Interval) for v in inside):
        return cell
    ends = {e for v in inside if isinstance(v, pd.Interval) for e in (v.left, v.right)}
    return frozenset(
        [*(v for v in (*held, *ends) if fits(v, inside)), *(v for v in inside if not isinstance(v, pd.Interval))]
    )


def inside_set(text: str) -> str | None:
    """What stands between braces; None where there are none."""
    return text[1:-1] if text.startswith("{") and text.endswith("}") else None


def range_ends(text: str) -> tuple[str, str] | None:
    """Both ends of a range of numbers, as in "24-27", "-3--1" or "-3 to -1"; None where it is none."""
    match = _RANGE.match(text)
    return (match[1], match[2]) if match else None


def period_days(text: str) -> tuple[int, int] | None:
    """The first and last day of a month, quarter, year, decade or century, as hierarchies of dates call them.

    Examples
    --------
    >>> [[iso(d) for d in period_days(text)] for text in ("1984-02", "1980s")]
    [['1984-02-01', '1984-02-29'], ['1980-01-01', '1989-12-31']]
    """
    found = _PERIOD.fullmatch(text)
    if found is None:
        return None
    year, month, quarter = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    last = int(found[5]) if found[5] else year + 9 if found[4] else year
    if found[2] and not 1 <= month <= 12:
        return None
    first_month = month or (3 * quarter - 2 if quarter else 1)
    last_month = month or (3 * quarter if quarter else 12)
    try:
        begin = day_number(date(year, first_month, 1))
        end = day_number(date(last + last_month // 12, last_month % 12 + 1, 1))
    except ValueError:
        return None
    assert begin is not None and end is not None
    return begin, end - 1


def _read_number(text: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise SchemaError("A numeric column of the release holds text that is neither a number nor a range.") from None
    return int(value) if value.is_integer() and "." not in text else value
