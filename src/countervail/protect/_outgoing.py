"""What leaves: frames whose dtypes tell of nothing but their own cells, and new rows that are to leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.table import Rows, Table, to_pandas
from countervail.explain.base import provenance

_EXACT = 2.0**53  # whole numbers below it are the same as floats


def new_rows(rows: Rows, table: Table, owner: str) -> pd.DataFrame:
    """New rows with the columns that are released; categories the table never had are left as they are."""
    frame = to_pandas(rows, owner, "rows")
    needed = [c.name for c in table.schema if c.role != "identifier"]
    if missing := [n for n in needed if n not in frame.columns]:
        raise SchemaError(f"The 'rows' given to {owner} lack these columns of the table: {missing}.")
    if extra := [str(n) for n in frame.columns if n not in table.schema]:
        raise SchemaError(f"The 'rows' given to {owner} have columns that the schema does not declare: {extra}.")
    if len(frame) == 0:
        raise bad_parameter(owner, "rows", "at least one row", "none")
    return frame[needed].assign(**_as_categories(frame, needed, table)).reset_index(drop=True)


def _as_categories(frame: pd.DataFrame, names: list[str], table: Table) -> dict[str, pd.Series]:
    """Columns with the categories (and their order) of the table, where all their values are among them."""
    out = {}
    for name in names:
        dtype = table.frame[name].dtype
        if isinstance(dtype, pd.CategoricalDtype) and frame[name].dtype != dtype:
            values = frame[name].astype(object)
            if (values.isin(list(dtype.categories)) | values.isna()).all():
                out[name] = values.astype(dtype)
    return out


def released(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose dtypes tell nothing but its own cells.

    Categories that no row of it holds are dropped, those without an order are put in order (they come in the order of
    the table's rows), and numbers that only a row that stayed behind made fractions are whole again.
    """
    return frame.assign(**{n: _of_these_cells(frame[n]) for n in frame.columns})


def _of_these_cells(values: pd.Series) -> pd.Series:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        held = values.cat.remove_unused_categories()
        if dtype.ordered:
            return held
        names = held.cat.categories.tolist()
        return held.cat.reorder_categories(sorted(names, key=lambda v: (type(v).__name__, v)))
    if pd.api.types.is_float_dtype(dtype) and len(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        if (np.abs(numbers) < _EXACT).all() and (numbers % 1 == 0).all():
            return pd.Series(numbers.astype(np.int64), index=values.index, name=values.name)
    return values.infer_objects() if pd.api.types.is_object_dtype(dtype) else values


def unseeded(made: dict[str, Any]) -> dict[str, Any]:
    """Provenance without the seed, which would undo a shuffle or take noise off."""
    if made["parameters"].get("random_state") is not None:
        made["parameters"]["random_state"] = "given"
    return made


def describe_table_release(protector: Any, table: Table) -> dict[str, Any]:
    """How a table release was made."""
    return unseeded(provenance("protector", protector, table))
