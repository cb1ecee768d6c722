"""From what a tool works on (codes, one-hot columns, scaled numbers) back to cells as the table has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools
from countervail.core.conform import plain
from countervail.core.errors import SchemaError, bad_parameter, listed
from countervail.core.table import Table
from countervail.explain.foreign.taken import OWNER, Cells

_MARKS = ("__", "_", "=", "|", ": ", ":", "-", ".", " ")
_STEP = (
    "'one-hot', a function, an object with inverse_transform, a mapping of column to its labels or inverse, or a list"
)


def decoded(cells: Cells, decode: Any, table: Table, columns: Sequence[str] | None) -> pd.DataFrame:
    """Rows with the names of their columns, after every step of `decode`."""
    if not isinstance(cells, pd.DataFrame) and columns is not None:
        cells = _named(cells, list(columns), "columns")
    steps = decode if isinstance(decode, list) else [] if decode is None else [decode]
    for step in steps if len(cells) else ():
        cells = _step(cells, step, table)
    frame = cells if isinstance(cells, pd.DataFrame) else _named(cells, table.schema.features, "features")
    return frame.set_axis([str(n) for n in frame.columns], axis=1).reset_index(drop=True)


def blank_rows(cells: Cells, features: Sequence[str]) -> Bools:
    """Rows in which nothing stands, encoded or not: how several tools say that they found no counterfactual."""
    if isinstance(cells, pd.DataFrame):
        told = [j for j, n in enumerate(cells.columns) if str(n).startswith(tuple(features))]
        cells = cells.iloc[:, told] if told else cells
    if not cells.shape[1]:
        return np.zeros(len(cells), dtype=bool)
    return np.array(np.asarray(pd.isna(cells), dtype=bool).all(axis=1))


def known_values(table: Table, name: str) -> list[Any]:
    """The values that a column can have: declared, or else those of the table."""
    column = table.schema[name]
    if column.values is not None:
        return list(column.values)
    return [v.item() if isinstance(v, np.generic) else v for v in pd.unique(table.frame[name].dropna())]


def one_hot_columns(names: Sequence[str], feature: str, known: Sequence[Any]) -> dict[str, Any]:
    """The columns that look like one value of a feature each, such as sex_male, and that value."""
    spelt = {plain(v): v for v in known}
    found = {}
    for name in names:
        rest = [name.removeprefix(feature + mark) for mark in _MARKS if name.startswith(feature + mark)]
        value = next((spelt[r] for r in rest if r in spelt), None)
        if value is not None:
            found[name] = value
    return found


def _named(rows: Any, names: Sequence[str], source: str) -> pd.DataFrame:
    array = np.asarray(rows)
    if not len(array):
        return pd.DataFrame(columns=list(names), dtype=object)
    if array.ndim != 2 or array.shape[1] != len(names):
        width = array.shape[1] if array.ndim == 2 else 1
        if source == "columns":
            raise bad_parameter(
                OWNER, "columns", f"the names of the {width} columns of the rows", f"{len(names)} names"
            )
        raise SchemaError(
            f"The rows given to {OWNER} have {width} columns without names, but the table has {len(names)} features. "
            f"Name them with columns=[...], or give decode=... if they are encoded."
        )
    return pd.DataFrame(array, columns=list(names)).infer_objects()


def _step(cells: Cells, step: Any, table: Table) -> Any:
    if isinstance(step, str):
        if step != "one-hot":
            raise bad_parameter(OWNER, "decode", _STEP, step)
        return _without_one_hot(cells, table)
    if isinstance(step, Mapping):
        return _by_column(cells, step, table)
    out = _undone(step, cells)
    if isinstance(out, pd.Series) or not isinstance(out, pd.DataFrame):
        out = np.asarray(out.toarray() if hasattr(out, "toarray") else out)
    if out.ndim != 2 or len(out) != len(cells):
        raise bad_parameter(
            OWNER, "decode", f"something that gives {len(cells)} rows for as many", f"shape {out.shape}"
        )
    if not isinstance(out, pd.DataFrame) and isinstance(cells, pd.DataFrame) and out.shape[1] == cells.shape[1]:
        return pd.DataFrame(out, columns=cells.columns).infer_objects()
    return out


def _undone(step: Any, values: Any) -> Any:
    undo: Callable[[Any], Any] | None = getattr(step, "inverse_transform", step if callable(step) else None)
    if undo is None:
        raise bad_parameter(OWNER, "decode", _STEP, type(step).__name__)
    try:
        return undo(values)
    except Exception as error:  # noqa: BLE001 -- whatever a transformer raises may quote a row
        raise SchemaError(
            f"The 'decode' given to {OWNER} failed with {type(error).__name__}. It gets {type(values).__name__} of "
            f"shape {values.shape}, as the tool wrote them; wrap it in a function that takes these."
        ) from None


def _by_column(cells: Cells, steps: Mapping[Any, Any], table: Table) -> pd.DataFrame:
    frame = cells if isinstance(cells, pd.DataFrame) else _named(cells, table.schema.features, "features")
    if unknown := [n for n in steps if n not in frame.columns]:
        raise bad_parameter(OWNER, "decode", f"about columns of the rows, {listed(list(frame.columns))}", unknown)
    return frame.assign(**{str(n): _one_column(frame[n], step) for n, step in steps.items()})


def _one_column(values: pd.Series, step: Any) -> Any:
    if isinstance(step, (list, tuple)):
        step = dict(enumerate(step))
    if isinstance(step, Mapping):
        labels = {plain(k): v for k, v in step.items()}
        return [None if pd.isna(v) else labels.get(plain(v)) for v in values]
    out = _undone(step, values.to_frame() if hasattr(step, "inverse_transform") else values)
    return out.iloc[:, 0].tolist() if isinstance(out, pd.DataFrame) else np.asarray(out).ravel().tolist()


def _without_one_hot(cells: Cells, table: Table) -> pd.DataFrame:
    """Columns such as sex_male and sex_female as one column again: the value whose column is highest."""
    if not isinstance(cells, pd.DataFrame):
        raise bad_parameter(OWNER, "decode", "'one-hot' for rows with names; give columns=[...]", "an array")
    names, made, used = [str(n) for n in cells.columns], {}, []
    for feature in (n for n in table.schema.features if n not in names):
        known = known_values(table, feature)
        parts = one_hot_columns(names, feature, known)
        if not parts:
            continue
        marks = cells.set_axis(names, axis=1)[list(parts)].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
        left = [v for v in known if v not in parts.values()]
        other = left[0] if len(left) == 1 else None  # the value that has no column of its own
        held = list(parts.values())
        high = np.where(np.isnan(marks), -np.inf, marks)
        best = high.argmax(axis=1)
        least = 0.5 if other is not None else np.nextafter(0.0, 1.0)
        made[feature] = [held[j] if row[j] >= least else other for j, row in zip(best, high)]
        used += list(parts)
    kept = cells.set_axis(names, axis=1).drop(columns=used)
    return pd.concat([kept, pd.DataFrame(made, index=kept.index, dtype=object)], axis=1)
