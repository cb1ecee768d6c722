"""One column against its declaration: the same check for tables, files and queries."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Hashable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError
from countervail.core.schema import Column
from countervail.core.words.dates import iso, read_days


def conform_column(values: pd.Series, column: Column) -> tuple[pd.Series, Column]:
    """Check one column against its declaration; recode text to declared numbers and back where that is meant."""
    if column.type == "date" and column.role != "identifier":
        values = read_days(values, column.order, column.name)
    if column.numeric:
        if column.role != "identifier":
            _check_numbers(values, column)
        return values, column
    check_hashable(values)
    if column.type == "ordinal" and column.levels is None:
        if column.role == "identifier":  # its levels would be people's names, and stand in every file of the schema
            return values, column
        if not (isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered):
            raise SchemaError(
                f"Ordinal column '{column.name}' needs its levels in order: declare levels=[...] or use an ordered "
                f"category dtype."
            )
        column = replace(column, levels=tuple(values.dtype.categories), read=True)
    if column.values is not None and not _has_exactly(values, column.values):
        values = _recode(values, column.values)
        _check_values(values, column)
        if isinstance(values.dtype, pd.CategoricalDtype) and list(values.dtype.categories) != list(column.values):
            values = values.astype(pd.CategoricalDtype(list(column.values), ordered=values.dtype.ordered))
    return values, column


def _has_exactly(values: pd.Series, declared: tuple[Any, ...]) -> bool:
    return isinstance(values.dtype, pd.CategoricalDtype) and tuple(values.dtype.categories) == declared


def check_hashable(values: pd.Series) -> None:
    """Refuse compound values, and equal values that differ in type: labels must be told apart."""
    if values.dtype != object:
        return
    if not all(isinstance(v, Hashable) and pd.api.types.is_scalar(v) for v in values):
        raise SchemaError(f"Column '{values.name}' holds lists or other compound values. Unpack or drop it.")
    kinds = {(type(v).__name__, v) for v in values if not pd.isna(v)}
    if len({v for _, v in kinds}) < len(kinds):
        raise SchemaError(f"Column '{values.name}' holds equal values of several types (1, 1.0, True). Use one type.")


def _check_numbers(values: pd.Series, column: Column) -> None:
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        raise SchemaError(
            f"Column '{column.name}' is declared numeric but holds {values.dtype} values. Convert it with "
            f"pd.to_numeric, or declare it categorical or ordinal."
        )
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(numbers).any():
        raise SchemaError(f"Column '{column.name}' holds infinite values. Replace them, or mark them missing.")
    if column.domain is not None:
        outside = int(((numbers < column.domain[0]) | (numbers > column.domain[1])).sum())
        if outside:
            low, high = (iso(v) if column.type == "date" else v for v in column.domain[:2])
            raise SchemaError(
                f"Column '{column.name}' has {outside} value(s) outside its declared domain "
                f"[{low}, {high}]. Clip them, or widen the domain."
            )


def _check_values(values: pd.Series, column: Column) -> None:
    known = values.isin(list(column.values or ())) | values.isna()
    if not known.all():
        word = "levels" if column.type == "ordinal" else "domain"
        raise SchemaError(
            f"Column '{column.name}' has {int((~known).sum())} value(s) outside its declared {word}. "
            f"Correct them, or add them to the {word}."
        )


def _recode(values: pd.Series, declared: tuple[Any, ...]) -> pd.Series:
    """Bring values to the declared spelling when only the type differs (1 and "1", 1.0 and 1, TRUE and True)."""
    if isinstance(values.dtype, pd.CategoricalDtype) and pd.api.types.is_datetime64_any_dtype(values.cat.categories):
        values = values.astype(object)  # pandas would find the text of a day among days
    if values.isin(list(declared)).any() or not len(values):
        return values
    spelling = {plain(v): v for v in declared}
    spell = _read_number if all(isinstance(v, (int, float)) for v in declared) else plain
    texts = _texts(values, spell)
    there = {t for t in texts if t is not None}
    if not there or not there <= set(spelling):
        return values
    found = [np.nan if t is None else spelling[t] for t in texts]
    return pd.Series(found, index=values.index, name=values.name).infer_objects()


def _texts(values: pd.Series, spell: Callable[[Any], str]) -> list[str | None]:
    """The spelling of each value by itself; None for a missing one.

    Values that are equal may be spelt otherwise (a moment on two clocks, a day of another type): none stands for
    another.
    """
    known: dict[tuple[type, Any], str | None] = {}
    texts = []
    for value in values:
        key = (type(value), value if isinstance(value, (str, int, float)) else repr(value))
        if key not in known:
            known[key] = None if pd.isna(value) else spell(value)
        texts.append(known[key])
    return texts


def _read_number(value: Any) -> str:
    """The spelling of a number or truth value that a file may write otherwise: 01, 1.0, TRUE."""
    if not isinstance(value, str):
        return plain(value)
    text = value.strip()
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        return plain(float(text))
    except ValueError:
        return text


def plain(value: Any) -> str:
    """A value's spelling, the same for 1, 1.0 and \"1\", for a day and its midnight, for letters in one piece or two.

    Examples
    --------
    >>> plain(1.0), plain(pd.Timestamp("1951-05-25")), plain("1951-05-25 00:00:00")
    ('1', '1951-05-25', '1951-05-25')
    """
    if isinstance(value, (float, np.floating, Decimal)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    text = unicodedata.normalize("NFC", str(value))
    if isinstance(value, (str, datetime)) and len(text) == 19 and text.endswith("00:00:00") and text[:4].isdecimal():
        return text[:10]
    return text
