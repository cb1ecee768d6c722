"""A published file as a release: cells are read from the text that people see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.cells import cell_text
from countervail.core.errors import SchemaError
from countervail.core.files import read_frame
from countervail.core.guarantee import NoGuarantee
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.schema import Column, Schema
from countervail.core.table import Table

_RANGE = re.compile(r"^(-?[\d.]+(?:e[+-]?\d+)?)(?:-| to )(-?[\d.]+(?:e[+-]?\d+)?)$")


def read_release(path: str | Path, table: Table) -> Release:
    """Read a file with the table's columns; the table says which values a text may stand for."""
    frame = read_frame(path)
    names = table.schema.names("quasi")
    if lost := [n for n in names if n not in frame.columns]:
        raise SchemaError(f"The release '{Path(path).name}' lacks quasi-identifiers of the table: {lost}.")
    axes = []
    for name in names:
        column = table.schema[name]
        codes, texts = pd.factorize(frame[name], use_na_sentinel=False)
        known = {cell_text(v): v for v in pd.unique(table.frame[name].dropna())} | {
            cell_text(v): v for v in column.values or ()
        }
        cells = [{name: _cell(t, column, known)} for t in texts]
        axes.append(Regions.from_cells(cells, Schema((column,))).axes[0].take(codes))
    shown = Schema(tuple(c for c in table.schema if c.role == "quasi" or c.name in frame.columns))
    plain = [c.name for c in shown if c.role != "quasi"]
    others = pd.DataFrame({n: _plain(frame[n], table.frame[n]) for n in plain})
    return Release(Regions(tuple(axes), len(frame)), np.arange(len(frame)), others, shown, NoGuarantee("a file"))


def _cell(text: Any, column: Column, known: dict[str, Any]) -> Any:
    """A number, a range or a set; the name of a group that is no value is refused."""
    if pd.isna(text) or text == "missing":
        return None
    if not isinstance(text, str):
        return text.item() if isinstance(text, np.generic) else text
    if text.startswith("{") and text.endswith("}"):
        return frozenset(_cell(part, column, known) for part in _parts(text[1:-1], known))
    if column.type == "numeric":
        if match := _RANGE.match(text):
            low, high = (_number(t) for t in match.groups())
            return pd.Interval(low, high, closed="both")
        return _number(text)
    if text not in known:
        raise SchemaError(
            f"Column '{column.name}' of the release holds names that are no values of the table. "
            f"Publish sets such as {{a, b}} instead of names of groups."
        )
    return known[text]


def _parts(text: str, known: dict[str, Any]) -> list[str]:
    """The items of a set; values may hold commas themselves, so the longest one that fits is taken."""
    pieces, out = text.split(", "), []
    while pieces:
        size = next((n for n in range(len(pieces), 0, -1) if ", ".join(pieces[:n]) in known), 1)
        out.append(", ".join(pieces[:size]))
        pieces = pieces[size:]
    return out


def _number(text: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        raise SchemaError("A numeric column of the release holds text that is neither a number nor a range.") from None
    return int(value) if value.is_integer() and "." not in text else value


def _plain(values: pd.Series, like: pd.Series) -> pd.Series:
    """A plain column in the table's own spelling."""
    known = {str(v): v for v in pd.unique(like.dropna())}
    return pd.Series([None if pd.isna(v) else known.get(str(v), v) for v in values], dtype=object)
