"""One column against its declaration: the same check for tables, files and queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError
from countervail.core.schema import Column


def conform_column(values: pd.Series, column: Column) -> tuple[pd.Series, Column]:
    """Check one column against its declaration; recode text to declared numbers and back where that is meant."""
    if column.type == "numeric":
        if column.role != "identifier":
            _check_numbers(values, column)
        return values, column
    if column.type == "ordinal" and column.levels is None:
        if not (isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered):
            raise SchemaError(
                f"Ordinal column '{column.name}' needs its levels in order: declare levels=[...] or use an ordered "
                f"category dtype."
            )
        column = replace(column, levels=tuple(values.dtype.categories))
    if column.values is not None:
        values = _recode(values, column.values)
        _check_values(values, column)
    return values, column


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
            raise SchemaError(
                f"Column '{column.name}' has {outside} value(s) outside its declared domain "
                f"[{column.domain[0]}, {column.domain[1]}]. Clip them, or widen the domain."
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
    """Bring values to the declared spelling when only the type differs (1 and "1", 1.0 and 1)."""
    if values.isin(list(declared)).any() or not len(values):
        return values
    spelling = {plain(v): v for v in declared}
    present = [v for v in pd.unique(values) if not pd.isna(v)]
    if not present or not all(plain(v) in spelling for v in present):
        return values
    mapping = {v: spelling[plain(v)] for v in present}
    return pd.Series([mapping.get(v, np.nan) for v in values], index=values.index, name=values.name).infer_objects()


def plain(value: Any) -> str:
    """A value's spelling, the same for 1, 1.0 and \"1\"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
