"""From what a user holds (a frame, an array, a table, a release) to a value-set table, and from rows to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from countervail.core.cells import is_missing
from countervail.core.conform import conform_column
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.schema import Column, Schema
from countervail.core.table import Table, to_labels, to_pandas
from countervail.rules.values import MAX_CLASSES, Attribute, Floats, ValueTable


def build_value_table(frame: pd.DataFrame, labels: Iterable[Any], schema: Schema | None, owner: str) -> ValueTable:
    """The value-set table of a frame: ordinary rows, or cells with intervals and sets."""
    y = [v.item() if isinstance(v, np.generic) else v for v in labels]
    if len(y) != len(frame):
        raise bad_parameter(owner, "y", f"as long as X, {len(frame)} rows", f"{len(y)} labels")
    classes = _list_classes(y, owner)
    columns = tuple(_declare(frame[n], str(n), schema) for n in frame.columns)
    features = Schema(columns)
    if not any(_has_cells(frame[n]) for n in frame.columns):
        parts = [_encode_column(frame[c.name], c, owner) for c in columns]
        return ValueTable.from_rows([a for a, _ in parts], np.array([v for _, v in parts]), y, classes)
    records: Any = frame.astype(object).to_dict("records")
    return ValueTable.from_regions(Regions.from_cells(records, features), y, classes, features)


def encode_rows(frame: pd.DataFrame, attributes: Sequence[Attribute], owner: str) -> Floats:
    """Rows as the numbers that rules are matched with; a value that training never had matches no condition."""
    if missing := [a.name for a in attributes if a.name not in frame.columns]:
        raise SchemaError(f"The rows given to {owner} lack these columns: {missing}.")
    out = np.empty((len(frame), len(attributes)))
    for j, a in enumerate(attributes):
        out[:, j] = _encode(frame[a.name], a, owner)
    return out


def _encode_column(values: pd.Series, column: Column, owner: str) -> tuple[Attribute, Floats]:
    """How an ordinary column takes part; levels with missing values have no order and count as plain values."""
    values, column = conform_column(values, column)
    if column.numeric:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        if np.isnan(numbers).any():
            hint = "Impute or drop them first; categorical and ordinal columns may hold missing values."
            raise SchemaError(f"The 'X' given to {owner} has missing numbers in column '{column.name}'. {hint}")
        whole = pd.api.types.is_integer_dtype(values.dtype)
        return Attribute(column.name, True, whole=whole, told="day" if column.type == "date" else "number"), numbers
    known = column.values
    if known is None and isinstance(values.dtype, pd.CategoricalDtype):
        known = tuple(values.dtype.categories.tolist())
    if known is None:
        known = tuple(sorted(pd.unique(values.dropna()).tolist(), key=lambda v: (type(v).__name__, v)))
    holes = bool(values.isna().any())
    a = Attribute(column.name, column.type == "ordinal" and not holes, (*known, None) if holes else known)
    return a, _encode(values, a, owner)


def _encode(values: pd.Series, a: Attribute, owner: str) -> Any:
    if _has_cells(values):
        raise SchemaError(f"{owner} classifies plain rows, but column '{a.name}' holds intervals or sets.")
    if a.ordered and not a.known:
        try:
            return pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
        except (ValueError, TypeError):
            raise SchemaError(f"Column '{a.name}' was numeric in training but is not in the rows.") from None
    place = {v: i for i, v in enumerate(a.known)}
    if isinstance(values.dtype, pd.CategoricalDtype):
        raw, kinds = values.cat.codes.to_numpy(), values.dtype.categories.tolist()
    else:
        raw, found = pd.factorize(values)
        kinds = found.tolist()
    table = np.array([*(place.get(v, -1) for v in kinds), place.get(None, -1)], dtype=float)
    codes = table[raw]
    return np.where(codes < 0, np.nan, codes) if a.ordered else codes


def _list_classes(labels: list[Any], owner: str) -> tuple[Any, ...]:
    kinds = set(labels)
    flat = {v for kind in kinds for v in (kind if isinstance(kind, frozenset) else (kind,))}
    if any(is_missing(v) for v in flat) or frozenset() in kinds:
        raise bad_parameter(owner, "y", "complete: every row has a class", "missing labels", "Drop those rows first.")
    if len(flat) < 2:
        hint = "There is nothing to tell apart."
        raise bad_parameter(owner, "y", "of at least two classes", f"{len(flat)} class", hint)
    if len(flat) > MAX_CLASSES:
        hint = "Merge rare classes, or bin a numeric target."
        raise bad_parameter(owner, "y", f"of at most {MAX_CLASSES} classes", f"{len(flat)} classes", hint)
    return tuple(sorted(flat, key=lambda v: (type(v).__name__, v)))


def _declare(values: pd.Series, name: str, schema: Schema | None) -> Column:
    if schema is not None and name in schema:
        c = schema[name]
        return Column(name, c.type, "attribute", None if c.numeric else c.domain, c.levels)
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Column(name, "ordinal", levels=tuple(dtype.categories)) if dtype.ordered else Column(name)
    plain = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
    return Column(name, "numeric" if plain or _has_intervals(values) else "categorical")


def _has_intervals(values: pd.Series) -> bool:
    if isinstance(values.dtype, pd.IntervalDtype):
        return True
    return bool(values.dtype == object) and any(isinstance(v, pd.Interval) for v in values)


def _has_cells(values: pd.Series) -> bool:
    sets = bool(values.dtype == object) and any(isinstance(v, frozenset) for v in values)
    return sets or _has_intervals(values)


def take_features(X: Any, owner: str) -> pd.DataFrame:
    """The features as a pandas frame with at least one row and column; those of an array have no names."""
    if isinstance(X, (Table, Release)):
        whole = X.frame if isinstance(X, Table) else X.cells()
        frame = whole[[n for n in X.schema.features if n in whole.columns]]
    elif _is_array(X):
        frame = pd.DataFrame(_check_array(X, owner)).infer_objects()
    else:
        frame = to_pandas(X, owner, "X")
    if not len(frame) or not len(frame.columns):
        raise bad_parameter(owner, "X", "a frame with at least one row and one column", f"{frame.shape}")
    if twice := sorted({str(c) for c in frame.columns[frame.columns.duplicated()]}):
        raise SchemaError(f"Column names must be unique. Repeated in the data: {twice}. Rename them.")
    return frame


def _is_array(X: Any) -> bool:
    framed = hasattr(X, "columns") or isinstance(X, pd.Series)
    return isinstance(X, (list, tuple)) or issparse(X) or (hasattr(X, "__array__") and not framed)


def _check_array(X: Any, owner: str) -> NDArray[Any]:
    """An array with rows and columns; scikit-learn names what is wrong, but for two errors that would show values."""
    if not issparse(X):
        X = np.asarray(X, dtype=object if isinstance(X, (list, tuple)) else None)
        if X.ndim != 2:
            hint = "Reshape your data: X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row."
            raise bad_parameter(owner, "X", "an array of rows and columns", f"{X.ndim} dimension(s)", hint)
        if X.dtype.kind == "c":
            hint = "Complex data not supported: pass the two parts as columns."
            raise bad_parameter(owner, "X", "of real numbers or labels", str(X.dtype), hint)
    found: NDArray[Any] = check_array(X, dtype=None, ensure_all_finite=False, estimator=owner, input_name="X")
    return found


def take_labels(y: Any, owner: str) -> Any:
    """The labels as something to go through; a column vector is made flat, with scikit-learn's warning."""
    y = to_labels(y)
    if y is None:
        hint = f"{owner} requires y to be passed, but the target y is None; a Table or Release may have its own."
        raise bad_parameter(owner, "y", "given with a frame or an array", None, hint)
    if hasattr(y, "__array__") and not isinstance(y, pd.Series):
        y = column_or_1d(np.asarray(y), warn=True)
    if pd.api.types.infer_dtype(y) in ("floating", "mixed-integer-float"):
        numbers = pd.Series(y, dtype=float).dropna().to_numpy()
        if np.isinf(numbers).any():
            raise bad_parameter(owner, "y", "of finite numbers or of labels", "infinite numbers")
        check_classification_targets(numbers)  # fractions are the target of a regression
    return y


def take_target(X: Table | Release, owner: str) -> pd.Series:
    """The classes of a table, or the sets of classes of a release."""
    if X.schema.target is None:
        raise bad_parameter(owner, "y", "given where the table has no target", None)
    target: pd.Series = X.frame[X.schema.target] if isinstance(X, Table) else X.cells()[X.schema.target]
    return target
