"""One spelling per value, and columns whose dtype, order and codes follow from their values alone.

What a table was read from (nullable, Arrow, category or object columns, other rows that made a column wider) must not
be seen in what is made of some of its rows. See docs/decisions/canonical-form.md.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints

_TEXT = pd.Series(["text"]).dtype  # how pandas stores texts
_WHOLE = 2.0**63  # whole numbers below it fit 64 bits


def canonical_value(value: Any) -> Any:
    """The one spelling of a value; None for a missing one.

    Whole numbers that fit 64 bits are int, other numbers float; times are pandas' own, in UTC where they have a zone; a
    day is its midnight; text is in Unicode's form NFC.

    Examples
    --------
    >>> from decimal import Decimal
    >>> [canonical_value(v) for v in (Decimal("1.0"), np.float32(2.5), -0.0, np.True_, "e\\u0301", float("nan"))]
    [1, 2.5, 0, True, 'é', None]
    """
    if isinstance(value, str):
        return str(value) if value.isascii() else unicodedata.normalize("NFC", str(value))
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, frozenset):
        return frozenset(map(canonical_value, value))
    if isinstance(value, pd.Interval):
        return pd.Interval(canonical_value(value.left), canonical_value(value.right), closed=value.closed)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    if isinstance(value, (date, np.datetime64)):
        stamp = pd.Timestamp(value)
        return _in_micros(stamp if stamp.tzinfo is None else stamp.tz_convert("UTC"))
    if isinstance(value, (timedelta, np.timedelta64)):
        return _in_micros(pd.Timedelta(value))
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    return _number(value) if isinstance(value, (int, float, Decimal)) else value


def content_key(value: Any) -> tuple[Any, ...]:
    """What canonical values are sorted by: truth values, numbers, times, texts, all else; missing last."""
    if value is None:
        return (9,)
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, (int, float)):
        return 1, value
    if isinstance(value, pd.Timestamp):
        return 2, value.tzinfo is not None, value
    if isinstance(value, pd.Timedelta):
        return 3, value
    if isinstance(value, str):
        return 4, value
    if isinstance(value, frozenset):
        return 5, sorted(map(content_key, value))
    return 6, type(value).__name__, str(value)


def code_values(values: Any, declared: Sequence[Any] | None = None) -> tuple[Ints, list[Any]]:
    """Each value's number, and the distinct values by number: as declared, then by content; None for missing last.

    A value that is declared keeps the spelling of its declaration; only values that occur are numbered.

    Examples
    --------
    >>> codes, kinds = code_values(["b", None, "a", "b"])
    >>> codes.tolist(), kinds
    ([1, 2, 0, 1], ['a', 'b', None])
    >>> code_values(["b", "a"], declared=["b", "a"])[1]
    ['b', 'a']
    """
    values = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    if declared is None and _is_plain(values.dtype):
        return _code_numbers(values.to_numpy())
    raw, found = _factorize(values)
    spelt = [canonical_value(v) for v in found]
    public = {canonical_value(v): (i, v) for i, v in enumerate(declared or ())}
    distinct = {v for v in spelt if v is not None}
    if not public and all(isinstance(v, str) for v in distinct):
        order = sorted(distinct)
    else:
        last = (len(public), None)
        order = sorted(distinct, key=lambda v: (public.get(v, last)[0], content_key(v)))
    place = {v: i for i, v in enumerate(order)} | {None: len(order)}
    codes: Ints = np.array([*(place[v] for v in spelt), len(order)], dtype=np.int64)[raw]
    kinds = [public[v][1] if v in public else v for v in order]
    return codes, [*kinds, None] if bool((codes == len(order)).any()) else kinds


def canonical_series(values: Any, declared: Sequence[Any] | None = None) -> pd.Series:
    """The same cells, each in its one spelling, with a dtype that depends on them alone.

    Categories stay categories, those that occur, in the order of their declaration (a dtype with an order is one) or of
    their content. Other columns get the dtype of :func:`typed_column`, whatever theirs was.

    Examples
    --------
    >>> canonical_series(pd.Series([1.0, None, 2.0])).dtype, canonical_series(pd.Series([1, 2], dtype=object)).dtype
    (Int64Dtype(), dtype('int64'))
    """
    values = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    dtype = values.dtype
    found = _quick(values) if declared is None or _is_plain(dtype) else None
    if found is None and isinstance(dtype, pd.CategoricalDtype):
        order = [canonical_value(v) for v in dtype.categories] if dtype.ordered else declared
        codes, kinds = code_values(values, order)
        if None in kinds:
            kinds, codes = kinds[:-1], np.where(codes == len(kinds) - 1, -1, codes)
        found = pd.Categorical.from_codes(codes, pd.Index(typed_column(kinds)), ordered=bool(dtype.ordered))
    elif found is None:
        codes, kinds = code_values(values, declared)
        found = typed_column(kinds).array.take(codes)
    return pd.Series(found, index=values.index, name=values.name, copy=False)


def typed_column(cells: Sequence[Any]) -> pd.Series:
    """Canonical cells as a column: one dtype per kind of value, objects where kinds are mixed or not plain."""
    there = [v for v in cells if v is not None]
    holes = len(there) < len(cells)
    kinds = {content_key(v)[: 2 if isinstance(v, pd.Timestamp) else 1] for v in there}
    kind = kinds.pop() if len(kinds) == 1 else ()
    if kind == (0,):
        return pd.Series(cells, dtype="boolean" if holes else bool)
    if kind == (1,) and all(isinstance(v, int) and -_WHOLE <= v < _WHOLE for v in there):
        return pd.Series(cells, dtype="Int64" if holes else np.int64)
    if kind == (1,):
        return pd.Series([np.nan if v is None else float(v) for v in cells], dtype=float)
    if kind and kind[0] in (2, 3):
        return _times(cells, there)
    if kind == (4,):
        return pd.Series(cells)
    objects = np.empty(len(cells), dtype=object)
    objects[:] = cells
    return pd.Series(objects, dtype=object)


def _number(value: int | float | Decimal) -> int | float:
    """Whole numbers as int, others as float; what 64 bits cannot hold is a float in every spelling."""
    return int(value) if -_WHOLE <= value < _WHOLE and value == int(value) else float(value)


def _in_micros(value: Any) -> Any:
    """A time in microseconds, or in nanoseconds where it has any: years far off fit the former only."""
    return value.as_unit("ns" if getattr(value, "nanosecond", getattr(value, "nanoseconds", 0)) else "us")


def _times(cells: Sequence[Any], there: Sequence[Any]) -> pd.Series:
    unit = "ns" if any(v.unit == "ns" for v in there) else "us"
    kind = "timedelta64" if isinstance(there[0], pd.Timedelta) else "datetime64"
    zone = ", UTC" if getattr(there[0], "tzinfo", None) is not None else ""
    try:
        return pd.Series([None if v is None else v.as_unit(unit) for v in cells], dtype=f"{kind}[{unit}{zone}]")
    except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        return pd.Series(list(cells), dtype=object)


def _quick(values: pd.Series) -> Any:
    """Numpy's numbers, texts in categories and single cells, without the work for the others; None for these."""
    if not len(values):
        return None
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _quick_categories(values.array)
    if not _is_plain(values.dtype):
        return typed_column([canonical_value(values.iloc[0])]).array if len(values) == 1 else None
    if values.dtype.kind != "f":
        return values.to_numpy().astype(bool if values.dtype.kind == "b" else np.int64)
    numbers = values.to_numpy().astype(float) + 0.0
    holes = np.isnan(numbers)
    if holes.all():
        return None
    inside = np.where(holes, 0.0, numbers)
    if not ((inside >= -_WHOLE) & (inside < _WHOLE) & (inside == np.floor(inside))).all():
        return numbers
    whole = inside.astype(np.int64)
    return pd.arrays.IntegerArray(whole, holes) if holes.any() else whole


def _quick_categories(values: Any) -> Any:
    """Categories that occur, where these are plain texts that stand in order already; None for all others."""
    held = values.remove_unused_categories()
    texts = held.categories.tolist()
    spelt = held.categories.dtype == _TEXT and all(type(v) is str and v.isascii() for v in texts)
    return held if texts and spelt and (held.ordered or texts == sorted(texts)) else None


def _is_plain(dtype: Any) -> bool:
    """Whether numpy holds truth values, whole numbers or fractions, and nothing that int64 and float64 cannot."""
    return isinstance(dtype, np.dtype) and dtype.kind in "bif" and dtype.itemsize <= 8


def _code_numbers(numbers: Any) -> tuple[Ints, list[Any]]:
    """The codes of numpy's numbers; they are sorted by content as they are."""
    if numbers.dtype.kind != "f":
        found, codes = np.unique(numbers, return_inverse=True)
        return codes, found.tolist()
    holes = np.isnan(numbers)
    found, at = np.unique(numbers[~holes].astype(float) + 0.0, return_inverse=True)
    codes = np.full(len(numbers), len(found), dtype=np.int64)
    codes[~holes] = at
    kinds = [int(v) if v.is_integer() and -_WHOLE <= v < _WHOLE else v for v in found.tolist()]
    return codes, [*kinds, None] if holes.any() else kinds


def _factorize(values: pd.Series) -> tuple[Any, list[Any]]:
    """Each row's place among the distinct values that occur (-1: missing), however they are stored."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        raw, kinds = values.cat.codes.to_numpy().astype(np.int64), values.cat.categories
    else:
        raw, kinds = pd.factorize(values)
    # Categories, and dictionaries of Arrow, may hold values that no row has.
    used = np.bincount(raw[raw >= 0], minlength=len(kinds)) > 0
    place = np.append(np.cumsum(used) - 1, -1)
    return place[raw], kinds[used].tolist()
