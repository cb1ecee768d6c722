"""Dates as whole days since 1970-01-01, from any common spelling, and back to what people read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from countervail.core.cells import cell_text
from countervail.core.errors import SchemaError

Order = Literal["", "ymd", "dmy", "mdy"]
ORDERS: tuple[Order, ...] = get_args(Order)
ORDER_WORDS: Final = {"ymd": "year-month-day", "dmy": "day, month, year", "mdy": "month, day, year"}
_EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST, LAST = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
_TIME: Final = r"(?:[T ]\d{1,2}:\d{2}.*)?"
_YEAR_FIRST: Final = re.compile(rf"(\d{{4}})([-/. ])(\d{{1,2}})\2(\d{{1,2}}){_TIME}|(\d{{4}})(\d\d)(\d\d)")
_YEAR_LAST: Final = re.compile(rf"(\d{{1,2}})([-/.]) ?(\d{{1,2}})\2 ?(\d{{4}}){_TIME}")
_NAMED: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|\.)?[ -](?:de )?([^\W\d]{3,10})\.?,?[ -](?:de )?(\d{4})")
_NAME_FIRST: Final = re.compile(r"([^\W\d]{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")
# By the first letters that tell them apart, in English, German, French, Spanish and Dutch.
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan ene",
            "feb fév",
            "mar mär mrz maa mrt",
            "apr avr abr",
            "may mai mei",
            "jun juin",
            "jul juil",
            "aug aoû ago",
            "sep set",
            "oct okt",
            "nov",
            "dec dez déc dic",
        ),
        1,
    )
    for name in names.split()
}


def date_order(texts: Iterable[str]) -> Order | None:
    """In which order most of these texts say day, month and year; "" where that cannot be told, None for no dates.

    Examples
    --------
    >>> date_order(["31.12.1999", "1.2.2003"]), date_order(["02/28/1999"]), date_order(["01/02/1999"])
    ('dmy', 'mdy', '')
    """
    seen = [t.strip() for t in texts]
    numeric = [m for t in seen if (m := _YEAR_LAST.fullmatch(t))]
    clear = [t for t in seen if _clear_day(t) is not None]
    if not seen or len(numeric) + len(clear) < len(seen):
        return None
    if not numeric:
        return "ymd" if any(_YEAR_FIRST.fullmatch(t) for t in seen) else "dmy"
    can = [order for order in ("dmy", "mdy") if all(_ordered_day(m, order) is not None for m in numeric)]
    if can == ["dmy", "mdy"]:
        return "dmy" if all(m[2] == "." for m in numeric) else ""
    return can[0] if can else None  # type: ignore[return-value]


def read_days(values: pd.Series, order: Order, column: str) -> pd.Series:
    """A column of dates, times or texts as days since 1970-01-01; whole numbers are such days already."""
    if pd.api.types.is_integer_dtype(values.dtype) or (
        pd.api.types.is_float_dtype(values.dtype) and not (values.dropna() % 1).any()
    ):
        if not values.dropna().between(FIRST, LAST).all():
            raise SchemaError(f"Column '{column}' is declared a date, but some of its numbers are no days.")
        return values if not pd.api.types.is_float_dtype(values.dtype) else _whole(values)
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return _whole(_of_times(values))
    codes, found = pd.factorize(values)
    if any(getattr(v, "tzinfo", None) is not None for v in found):
        # The same moment on two clocks is equal, and may be two days: each is that of its own clock.
        codes, found = pd.factorize(values.map(_on_its_clock))
    texts = {i: v.strip() for i, v in enumerate(found) if isinstance(v, str)}
    said: Order | None = order or date_order(texts.values())
    if said == "" and texts:
        raise SchemaError(
            f"In column '{column}' nothing tells whether the day or the month comes first. "
            f'Say so in the schema: order = "dmy" or order = "mdy".'
        )
    days = [_day(texts.get(i, v), said or "dmy") for i, v in enumerate(found)]
    if bad := sum(d is None for d in days):
        hint = "Years need four digits" if any(_short_year(t) for t in texts.values()) else "Correct them, or"
        rest = "" if hint.startswith("Years") else " declare the column categorical"
        raise SchemaError(
            f"Column '{column}' is declared a date, but {bad} of its {len(days)} different values are none"
            f"{f' (read as {ORDER_WORDS[said]})' if said else ''}. {hint}{rest}."
        )
    numbers = np.array([*(np.nan if d is None else float(d) for d in days), np.nan])[codes]
    return _whole(pd.Series(numbers, index=values.index, name=values.name))


def day_number(value: Any) -> int | None:
    """The day of one date, time or text that begins with its year; whole numbers are days already."""
    if isinstance(value, bool):
        return None
    return int(value) if isinstance(value, (int, np.integer)) else _day(value, "ymd")


def iso(day: float) -> str:
    """A day as people of all countries read it.

    Examples
    --------
    >>> iso(0), iso(-6801)
    ('1970-01-01', '1951-05-20')
    """
    return date.fromordinal(math.floor(day) + _EPOCH).isoformat()


def day_cell(cell: Any) -> Any:
    """A cell of days as text: a date, a range of them, or a set."""
    if isinstance(cell, frozenset):
        return "{" + ", ".join(sorted(str(day_cell(v)) for v in cell)) + "}"
    if isinstance(cell, pd.Interval):
        low, high = iso(np.floor(cell.left)), iso(np.ceil(cell.right))
        return low if low == high else f"{low} to {high}"
    return "missing" if cell is None or pd.isna(cell) else iso(cell)


def day_json(cell: Any) -> Any:
    """A cell of days as plain JSON data, spelt as dates."""
    if isinstance(cell, frozenset):
        return {"any_of": [day_json(v) for v in sorted(cell, key=day_cell)]}
    if isinstance(cell, pd.Interval):
        return {"from": iso(np.floor(cell.left)), "to": iso(np.ceil(cell.right))}
    return None if cell is None or pd.isna(cell) else iso(cell)


def shown_cell(cell: Any, kind: str) -> str:
    """A cell as people read it, of a column of this type."""
    return str(day_cell(cell)) if kind == "date" else cell_text(cell)


def iso_column(days: pd.Series) -> pd.Series:
    """A column of days as texts; missing ones stay missing."""
    codes, found = pd.factorize(days)
    texts = np.array([*(iso(d) for d in found), None], dtype=object)
    return pd.Series(texts[codes], index=days.index, name=days.name, dtype="str")


def dated_frame(cells: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Cells as people see them: these columns, which are days, as dates."""
    return cells.assign(**{n: _dated_column(cells[n]) for n in names}) if names else cells


def _dated_column(cells: pd.Series) -> pd.Series:
    """A column of days as times of pandas: plain ones as `datetime64`, ranges as closed intervals, sets of them."""
    if isinstance(cells.dtype, pd.IntervalDtype):
        low, high = (_midnights(pd.Series(np.asarray(v, dtype=float))) for v in (cells.array.left, cells.array.right))
        wide = pd.arrays.IntervalArray.from_arrays(low, high, closed="both")
        return pd.Series(wide, index=cells.index, name=cells.name)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return _midnights(cells)
    return pd.Series([_dated(c) for c in cells], index=cells.index, name=cells.name, dtype=object)


def cell_days(text: str) -> tuple[int, int] | None:
    """The first and last day of a published cell, `1951-05-20` or `1951-05-20 to 1953-01-01`; None for another text."""
    ends = [_day(part, "ymd") for part in text.split(" to ")]
    if len(ends) > 2 or any(e is None for e in ends):
        return None
    return ends[0], ends[-1]  # type: ignore[return-value]


def _midnights(days: pd.Series) -> pd.Series:
    whole = np.floor(days.to_numpy(dtype=float, na_value=np.nan))
    times = np.where(np.isnan(whole), np.iinfo(np.int64).min, np.nan_to_num(whole)).astype("datetime64[D]")
    return pd.Series(times.astype("datetime64[us]"), index=days.index, name=days.name)


def _dated(cell: Any) -> Any:
    """One cell of days, whatever it is, in times of pandas."""
    if isinstance(cell, frozenset):
        return frozenset(_dated(c) for c in cell)
    if isinstance(cell, pd.Interval):
        return pd.Interval(_dated(cell.left), _dated(cell.right), closed=cell.closed)
    return cell if cell is None or pd.isna(cell) else pd.Timestamp(iso(cell))


def _whole(days: pd.Series) -> pd.Series:
    """Whole numbers; where some are missing, as fractions that models take."""
    return days.astype(float if days.isna().any() else np.int64)


def _of_times(values: pd.Series) -> pd.Series:
    """Days on the clock that the times were written by."""
    zoned = pd.api.types.infer_dtype(values, skipna=True) != "date" and values.dt.tz is not None
    local = values.dt.tz_localize(None) if zoned else values
    whole = local.to_numpy(dtype="datetime64[D]")
    days = whole.astype(np.int64).astype(float)
    days[np.isnat(whole)] = np.nan
    return pd.Series(days, index=values.index, name=values.name)


def _on_its_clock(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) and not pd.isna(value) else value


def _day(value: Any, order: str) -> int | None:
    """The day that a value stands for, or None."""
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, (date, datetime)) and not pd.isna(value):
        return date(value.year, value.month, value.day).toordinal() - _EPOCH
    if not isinstance(value, str):
        return None
    text = value.strip()
    if (found := _YEAR_LAST.fullmatch(text)) is not None:
        return None if order == "ymd" else _ordered_day(found, order)
    return _clear_day(text)


def _ordered_day(found: re.Match[str], order: str) -> int | None:
    first, second = int(found[1]), int(found[3])
    day, month = (first, second) if order == "dmy" else (second, first)
    return _ordinal(int(found[4]), month, day)


def _clear_day(text: str) -> int | None:
    """The day of a text that leaves no doubt about its order."""
    if (found := _YEAR_FIRST.fullmatch(text)) is not None:
        parts: Sequence[str] = [found[1], found[3], found[4]] if found[1] else [found[5], found[6], found[7]]
        return _ordinal(*map(int, parts))
    if (found := _NAMED.fullmatch(text)) is not None:
        return _ordinal(int(found[3]), _month(found[2]), int(found[1]))
    if (found := _NAME_FIRST.fullmatch(text)) is not None:
        return _ordinal(int(found[3]), _month(found[1]), int(found[2]))
    return None


def _month(name: str) -> int:
    short = name.casefold()
    return _MONTHS.get(short[:4], _MONTHS.get(short[:3], 0))


def _ordinal(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _short_year(text: str) -> bool:
    return re.fullmatch(r"\d{1,2}([-/.]) ?(\d{1,2}|[^\W\d]{3,10})\1 ?\d{2}", text) is not None
