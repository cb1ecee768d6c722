"""Cells as people read them and as JSON carries them: plain values, closed intervals, frozensets."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import pandas as pd

# Control characters, line separators, marks that turn the direction of reading, halves of a character.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ENDLESS = (float("inf"), float("-inf"))


def is_missing(cell: Any) -> bool:
    """Whether a cell is a missing value (not an interval, not a set)."""
    return not isinstance(cell, (pd.Interval, frozenset)) and bool(pd.isna(cell))


def fits(value: Any, cell: Any) -> bool:
    """Whether a plain value lies in a cell; a missing value fits a missing one only."""
    if isinstance(cell, frozenset):
        return any(fits(value, c) for c in cell)
    if is_missing(value) or is_missing(cell):
        return is_missing(value) and is_missing(cell)
    return bool(cell.left <= value <= cell.right) if isinstance(cell, pd.Interval) else bool(value == cell)


def cell_text(cell: Any) -> str:
    """A cell as people read it.

    Examples
    --------
    >>> cell_text(frozenset({"Brussels", "Antwerp"})), cell_text(2.50), cell_text(None)
    ('{Antwerp, Brussels}', '2.5', 'missing')
    """
    if isinstance(cell, pd.Interval) and cell.left < cell.right:
        return range_text(cell.left, cell.right)
    if isinstance(cell, pd.Interval):
        return _point(cell.left)
    if isinstance(cell, frozenset):
        return "{" + ", ".join(sorted(cell_text(v) for v in cell)) + "}"
    if is_missing(cell):
        return "missing"
    if isinstance(cell, pd.Timestamp) and cell == cell.normalize():
        return str(cell.date())
    return _point(float(cell)) if isinstance(cell, (float, np.floating)) else str(cell)


def visible(text: str, keep: str = "") -> str:
    r"""A text whose control characters are shown as escapes: a terminal would obey them, and a line would break.

    Examples
    --------
    >>> print(visible("red: \x1b[31m"), visible("two\nlines"))
    red: \x1b[31m two\nlines
    """
    return _CONTROL.sub(lambda m: m[0] if m[0] in keep else m[0].encode("unicode_escape").decode(), text)


def range_text(low: float, high: float) -> str:
    """`24-27`, or `-3 to 4` where a dash would be misread."""
    if low == high:
        return number_text(low)
    ends = range_ends(low, high)
    return f"{ends[0]}{'-' if low >= 0 else ' to '}{ends[1]}"


def range_ends(low: float, high: float) -> tuple[str, str]:
    """Both ends of a range. It must hold what it stands for: an end that has to be rounded goes outwards."""
    return _rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING)


def _point(value: float) -> str:
    """A single number as it is, but for noise in the last digit: rounded further, it would be another one."""
    text = number_text(value)
    return text if float(text) == value else f"{value:.15g}"


def _rounded(value: float, rounding: str) -> str:
    exact = Decimal(repr(float(value)))
    if not exact.is_finite() or exact == exact.to_integral_value():
        return number_text(value)
    digits = max(6, exact.adjusted() + 1)
    return number_text(float(Context(prec=digits, rounding=rounding).create_decimal(exact)))


def number_text(value: float) -> str:
    """A number without idle decimals."""
    whole = float(value).is_integer() or 1e6 <= abs(value) < float("inf")
    return str(round(value)) if whole else f"{value:.6g}"


def cell_to_json(cell: Any) -> Any:
    """A cell as plain JSON data; a plain number that is not finite is left open, as a missing one is."""
    if isinstance(cell, pd.Interval):
        return {"from": _item(cell.left), "to": _item(cell.right)}
    if isinstance(cell, frozenset):
        return {"any_of": [cell_to_json(v) for v in sorted(cell, key=cell_text)]}
    return None if is_missing(cell) or cell in _ENDLESS else _item(cell)


def cell_from_json(data: Any) -> Any:
    """The inverse of :func:`cell_to_json`; what is no cell raises ValueError."""
    if isinstance(data, dict) and data.keys() == {"any_of"} and isinstance(data["any_of"], list):
        return frozenset(cell_from_json(v) for v in data["any_of"])
    if isinstance(data, dict) and data.keys() == {"from", "to"}:
        if not all(isinstance(v, float) or -(2**63) <= v < 2**63 for v in data.values()):
            raise ValueError
        return pd.Interval(data["from"], data["to"], closed="both")
    if isinstance(data, (dict, list)) or (isinstance(data, int) and not -(2**63) <= data < 2**64):
        raise ValueError
    return data


def frame_to_json(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """A frame of cells as columns of plain JSON data."""
    return {str(n): [cell_to_json(c) for c in frame[n]] for n in frame.columns}


def frame_from_json(data: dict[str, list[Any]]) -> pd.DataFrame:
    """The inverse of :func:`frame_to_json`; what is no frame raises ValueError."""
    if not isinstance(data, dict) or not all(isinstance(cells, list) for cells in data.values()):
        raise ValueError
    if len({len(cells) for cells in data.values()}) > 1:
        raise ValueError
    return pd.DataFrame({n: cell_column([cell_from_json(c) for c in cells]) for n, cells in data.items()})


def cell_column(cells: list[Any]) -> pd.Series:
    """A column of cells; plain values get a dtype of their own, generalised ones stay objects."""
    if not cells or any(isinstance(c, (pd.Interval, frozenset)) for c in cells):
        return pd.Series(cells, dtype=object)
    kinds = {type(c) for c in cells if c is not None}
    nullable = {int: "Int64", bool: "boolean"}.get(next(iter(kinds)), "") if len(kinds) == 1 and None in cells else ""
    return pd.Series(cells, dtype=nullable) if nullable else pd.Series(cells)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
