"""Whether a file begins with the names of its columns, or with somebody's row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

import pandas as pd

from countervail.core.errors import SchemaError

_NUMBER = re.compile(r"\s*[+-]?(\d+|\d{1,3}([ .,']\d{3})+|\d*[.,]\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(\D.*)?")
_REPEATED = re.compile(r"\.\d+\Z")  # pandas numbers names that come twice
_MANY = 5


def check_header(columns: Mapping[str, pd.Series]) -> None:
    """Refuse columns whose names read like the values of a row; they are not shown, for somebody's they may be.

    Numbers in order, such as years or wavelengths, are names.
    """
    names = list(columns)
    numbers = [n for n in names if _NUMBER.fullmatch(n) or _DATE.fullmatch(n)]
    found = [n for n in names if n not in numbers and _is_value(n, columns[n], names)]
    if not found and _in_order(numbers):
        return
    if numbers or len(found) >= min(2, max(len(names), 1)):
        raise SchemaError(
            f"The table seems to have no header: of its {len(names)} column names, {len(numbers)} are numbers or dates "
            f"and {len(found)} are values that the same column holds. Put a line with the names of the columns first. "
            f"If these are names, put a letter before the numbers, or choose others."
        )


def _is_value(name: str, values: pd.Series, names: list[str]) -> bool:
    """Whether the cells below hold what stands above them."""
    if pd.api.types.is_numeric_dtype(values):
        return False
    base = _REPEATED.sub("", name)
    above = {name, base} if base in names else {name}
    known = values.dtype.categories if isinstance(values.dtype, pd.CategoricalDtype) else values.dropna().unique()
    return any(isinstance(v, str) and v in above for v in known)


def _in_order(names: list[str]) -> bool:
    """Whole numbers one after the other, or many that rise."""
    try:
        values = [float(n) for n in names]
    except ValueError:
        return False
    steps = {b - a for a, b in pairwise(values)}
    return not names or steps == {1.0} or (len(names) >= _MANY and min(steps) > 0)
