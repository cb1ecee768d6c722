"""Rows <-> one float matrix: numbers as they are, other values as codes. The kernels see only this."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import (
    FramePattern,
    Ints,
    Matrix,
    category_labels,
    column_arrays,
    frame_of,
    frame_of_blocks,
    plain_array,
)
from countervail.core.conform import conform_column
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.schema import Column, Schema
from countervail.core.table import Table, to_pandas

_PLAIN = (str, int, float, bool)
_NUMBERS = (np.dtype(np.int64), np.dtype(np.float64))
_TOGETHER = 256  # rows whose labels are looked up at once: with more, one column after the other is quicker
_EXACT = 2.0**53  # whole numbers below it are told apart as floats


@dataclass(frozen=True, eq=False, slots=True)
class Coding:
    """How one column is coded. `lookup` holds the value of each code in the column's own dtype."""

    column: Column
    dtype: Any
    lookup: Any = None
    missing: int = -1
    index: Any = field(init=False, default=None)
    own: Any = field(init=False, default=None)  # the codes of the column's own categories
    known: Any = field(init=False, default=None)  # the code of each plain value, with its type: 1 is not True
    spelt: Any = field(init=False, default=None)  # of each of the column's own categories, as `code_of` gives it
    values: list[Any] = field(init=False, repr=False)  # of each code, as plain Python objects (None for missing)

    def __post_init__(self) -> None:
        held = [] if self.lookup is None else pd.Series(self.lookup).tolist()
        object.__setattr__(self, "values", [None if pd.isna(v) else v for v in held])
        if self.lookup is not None:
            object.__setattr__(self, "index", pd.Index(self.lookup))
        if self.lookup is not None and isinstance(self.dtype, pd.CategoricalDtype):
            object.__setattr__(self, "own", self.index.get_indexer(pd.Index(self.dtype.categories)))
        if self.lookup is not None:
            known = {(type(v), v): float(i) for i, v in enumerate(self.values) if type(v) in _PLAIN}
            object.__setattr__(self, "known", known)
        if self.own is not None:
            held = pd.Series(self.dtype.categories).tolist()
            object.__setattr__(self, "spelt", [self.code_of(v) for v in held])

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def numeric(self) -> bool:
        """Whether the column is kept as numbers."""
        return self.column.numeric

    @property
    def levels(self) -> int:
        """How many values there are besides missing."""
        return len(self.lookup) - (self.missing >= 0)

    def encode(self, values: pd.Series) -> Matrix:
        """Numbers, or codes; -1 for a value without a code."""
        if self.numeric:
            return values.to_numpy(dtype=float, na_value=np.nan) + 0.0  # -0.0 and 0.0 are one number
        if isinstance(values.dtype, pd.CategoricalDtype):
            mine = values.dtype is self.dtype
            table = self.own if mine else self.index.get_indexer(pd.Index(values.dtype.categories))
            raw = np.asarray(values.array.codes)
            codes = np.where(raw < 0, self.missing, table[raw] if len(table) else -1)
        else:
            codes = np.where(values.isna().to_numpy(), self.missing, self.index.get_indexer(pd.Index(values)))
        return codes.astype(float)

    def code_of(self, value: Any) -> float | None:
        """The number or code of a single value; None where more must be looked at than this value."""
        if not self.numeric:
            code: float | None = self.known.get((type(value), value)) if type(value) in _PLAIN else None
            return code
        if type(value) not in (int, float) or not -_EXACT < value < _EXACT or self.dtype not in _NUMBERS:
            return None
        low, high = self.column.domain[:2] if self.column.domain is not None else (value, value)
        fraction, negative = self.dtype == np.int64 and value != int(value), math.copysign(1.0, value) < 0
        return None if fraction or (value == 0 and negative) or not low <= value <= high else float(value)

    def code_in(self, values: Any) -> float | None:
        """The same for the first value of a column's array."""
        if self.numeric:
            return self.code_of(values[0].item()) if values.dtype in _NUMBERS else None
        if self.spelt is not None and values.dtype is self.dtype:
            place = values.codes.item(0)
            code: float | None = self.spelt[place] if place >= 0 else None
            return code
        if isinstance(values, pd.Categorical):
            place = values.codes.item(0)
            return self.code_of(category_labels(values.dtype)[place]) if place >= 0 else None
        value = values[0]
        return self.code_of(value.item() if isinstance(value, np.generic) else value)

    def decode(self, codes: Matrix) -> Any:
        """The values of `codes` in the column's own dtype, as an array of numpy or pandas."""
        if self.numeric:
            dtype = _with_room(self.dtype, codes)
            if isinstance(dtype, np.dtype) and (dtype.kind == "f" or not np.isnan(codes).any()):
                return (codes if dtype.kind == "f" else np.rint(codes)).astype(dtype)
            if not pd.api.types.is_integer_dtype(dtype):
                return pd.Series(codes).astype(dtype).array
            whole = pd.Series(np.rint(codes))
            return whole.astype("Int64" if np.isnan(codes).any() else dtype).array
        return plain_array(self.lookup.take(codes.astype(np.intp)))


@dataclass(frozen=True, eq=False, slots=True)
class Encoder:
    """Codes the chosen columns of a table; fitted once, read-only afterwards."""

    codings: tuple[Coding, ...]
    columns: pd.Index = field(init=False, repr=False)
    blocks: tuple[tuple[np.dtype[Any], Ints], ...] = field(init=False, repr=False)  # numbers that are decoded together
    coded: Ints = field(init=False, repr=False)  # the places of columns of codes
    single: tuple[tuple[int, Ints], ...] = field(init=False, repr=False)  # those of all other columns
    labels: NDArray[np.int8] | None = field(init=False, repr=False)  # coded column x code: the category, where short
    pattern: FramePattern = field(init=False, repr=False, default_factory=FramePattern)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", pd.Index(self.names))
        alike = [(t, [j for j, c in enumerate(self.codings) if c.numeric and c.dtype == t]) for t in _NUMBERS]
        blocks = tuple((t, np.array(places)) for t, places in alike if places)
        together = {j for _, places in alike for j in places}
        object.__setattr__(self, "blocks", blocks)
        coded = [j for j, c in enumerate(self.codings) if not c.numeric]
        object.__setattr__(self, "coded", np.array(coded, dtype=np.int64))
        object.__setattr__(self, "labels", _category_places([self.codings[j].lookup for j in coded]))
        rest = [j for j, c in enumerate(self.codings) if c.numeric and j not in together]
        object.__setattr__(self, "single", tuple((j, np.array([j])) for j in rest))

    @classmethod
    def fit(cls, table: Table, names: Sequence[str] | None = None) -> Self:
        """Learn the codes of a table's feature columns (or of `names`), ordered by content."""
        chosen = table.schema.features if names is None else names
        return cls(tuple(_coding(table.frame[c.name], c) for c in (table.schema[n] for n in chosen)))

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return [c.name for c in self.codings]

    @property
    def numeric(self) -> NDArray[np.bool_]:
        """Which columns are numeric."""
        return np.array([c.numeric for c in self.codings], dtype=bool)

    def encode(self, frame: pd.DataFrame) -> Matrix:
        """One row of numbers and codes per row of `frame`."""
        out = np.empty((len(frame), len(self.codings)))
        for j, coding in enumerate(self.codings):
            out[:, j] = coding.encode(frame[coding.name])
        return out

    def decode(self, matrix: Matrix) -> pd.DataFrame:
        """A frame with the table's own dtypes and categories."""
        made = []
        for dtype, places in self.blocks:
            numbers = matrix[:, places].T
            if dtype.kind == "i" and np.isnan(numbers).any():  # such a column becomes nullable
                return frame_of([c.decode(matrix[:, j]) for j, c in enumerate(self.codings)], self.columns)
            whole = np.rint(numbers) if dtype.kind == "i" else numbers
            made.append((whole.astype(dtype, order="C"), places))
        make = frame_of_blocks if self.single else self.pattern.frame  # their dtypes may change with what is missing
        single = [(self.codings[j].decode(matrix[:, j]), place) for j, place in self.single]
        codes = matrix.T[self.coded].astype(np.intp)
        single += zip(self._labels(codes), self.coded[:, None])
        made += [(values[None] if isinstance(values, np.ndarray) else values, place) for values, place in single]
        return make(made, self.columns, len(matrix))

    def _labels(self, codes: NDArray[np.intp]) -> list[Any]:
        """The values of the columns of codes; those of few rows are looked up all at once, if all are categories."""
        if self.labels is None or codes.shape[1] > _TOGETHER:
            return [plain_array(self.codings[j].lookup.take(row)) for j, row in zip(self.coded, codes)]
        places = self.labels[np.arange(len(codes))[:, None], codes]
        return [self.codings[j].lookup._from_backing_data(row) for j, row in zip(self.coded.tolist(), places)]

    def code_row(self, cells: Mapping[Any, Any]) -> Matrix | None:
        """One row in codes; None where a value is not spelt as this encoder does, or is missing, or not allowed."""
        return self._row(c.code_of(cells[c.name]) for c in self.codings)

    def code_arrays(self, columns: Mapping[Any, Any]) -> Matrix | None:
        """The same for the columns of a frame with one row, as arrays."""
        return self._row(c.code_in(columns[c.name]) for c in self.codings)

    def _row(self, codes: Iterable[float | None]) -> Matrix | None:
        found = []
        for code in codes:
            if code is None:
                return None
            found.append(code)
        return np.array([found], dtype=float)

    def extended(self, frame: pd.DataFrame) -> tuple[Self, Matrix]:
        """The rows in codes, and an encoder that also has codes for values that the table never had."""
        rows = self.encode(frame)
        unseen = (rows < 0).any(axis=0) & ~self.numeric
        if not unseen.any():
            return self, rows
        wider = replace(
            self,
            codings=tuple(_extend(c, frame[c.name]) if new else c for c, new in zip(self.codings, unseen)),
        )
        return wider, wider.encode(frame)


def _category_places(lookups: Sequence[Any]) -> NDArray[np.int8] | None:
    """Column x code: the place among pandas' categories; None where a column has others than a few of these."""
    short = all(isinstance(v, pd.Categorical) and v.codes.dtype == np.int8 and len(v) for v in lookups)
    if not (lookups and short and hasattr(pd.Categorical, "_from_backing_data")):
        return None
    wide = max(map(len, lookups))
    return np.stack([np.append(v.codes, np.repeat(v.codes[-1:], wide - len(v))) for v in lookups])


def encode_queries(
    rows: Any, schema: Schema, encoder: Encoder, owner: str, *, beside: Sequence[str] = (), holes: bool = False
) -> tuple[Encoder, pd.DataFrame, Matrix]:
    """Query rows as a frame and as numbers, and an encoder that knows their values too.

    Columns named in `beside` may be there and are left aside; numbers may be missing with `holes` only.
    """
    known = encode_one(rows, schema, encoder, beside)
    if known is not None:
        return encoder, encoder.decode(known), known
    frame = to_pandas(rows, owner, "rows").drop(columns=list(beside), errors="ignore")
    frame = _conformed(frame, schema, {c.name: c.dtype for c in encoder.codings}, owner)
    if not holes:
        require_numbers(frame, schema, owner, "rows")
    wider, queries = encoder.extended(frame)
    return wider, frame, queries


def encode_one(rows: Any, schema: Schema, encoder: Encoder, beside: Sequence[str] = ()) -> Matrix | None:
    """A single row that is as the table's rows are, in codes: nothing has to be recoded or refused. Else None."""
    if isinstance(rows, Table):
        rows = rows.frame
    framed = isinstance(rows, pd.DataFrame)
    cells = _columns_of_one(rows) if framed else _cells_of_one(rows)
    if cells is None or not all(c.name in cells for c in encoder.codings):
        return None
    if len(cells) > len(encoder.codings) and not all(n in schema or n in beside for n in cells):
        return None
    return encoder.code_arrays(cells) if framed else encoder.code_row(cells)


def _columns_of_one(rows: pd.DataFrame) -> Mapping[Any, Any] | None:
    """The columns of a frame with one row, as arrays; None where there are several rows, or columns of one name."""
    if len(rows) != 1 or not rows.columns.is_unique:
        return None
    return dict(zip(rows.columns.tolist(), column_arrays(rows)))


def _cells_of_one(rows: Any) -> Mapping[Any, Any] | None:
    """The cells of a row that is no frame; None where it is something else."""
    if isinstance(rows, pd.Series):
        return rows.to_dict() if rows.index.is_unique else None
    return rows if isinstance(rows, Mapping) else None


def conform_rows(rows: Any, table: Table, owner: str) -> pd.DataFrame:
    """Query rows as a frame of the table's feature columns, in order and with its dtypes."""
    return _conformed(rows, table.schema, dict(table.frame.dtypes), owner)


def _conformed(rows: Any, schema: Schema, dtypes: Mapping[str, Any], owner: str) -> pd.DataFrame:
    frame = _declared_columns(rows, schema, owner)
    given = {n: frame[n] for n in frame.columns}
    data = {n: _conform_query(values, schema[n], dtypes[n], owner) for n, values in given.items()}
    as_it_is = all(data[n] is values for n, values in given.items())
    return (frame if as_it_is else pd.DataFrame(data)).reset_index(drop=True)


def check_declared(rows: Any, schema: Schema, owner: str, *, holes: bool = False) -> None:
    """Refuse query rows by the declaration alone: what is said depends on nobody's row."""
    frame = _declared_columns(rows, schema, owner)
    data = {n: conform_column(_numbers_as_such(frame[n], schema[n]), schema[n])[0] for n in frame.columns}
    if not holes:
        require_numbers(pd.DataFrame(data), schema, owner, "rows")


def _declared_columns(rows: Any, schema: Schema, owner: str) -> pd.DataFrame:
    """The feature columns of query rows, which must be there once each, with no others but declared ones."""
    frame = to_pandas(rows, owner, "rows")
    features = schema.features
    if twice := sorted({str(n) for n in frame.columns[frame.columns.duplicated()]}):
        raise SchemaError(
            f"The 'rows' given to {owner} have more than one column of the name {twice}. Keep one of each."
        )
    if missing := [n for n in features if n not in frame.columns]:
        raise SchemaError(f"The 'rows' given to {owner} lack these columns of the table: {missing}.")
    if extra := [str(n) for n in frame.columns if n not in schema]:
        raise SchemaError(f"The 'rows' given to {owner} have columns that the schema does not declare: {extra}.")
    if len(frame) == 0:
        raise bad_parameter(owner, "rows", "at least one row", "none")
    asked: pd.DataFrame = frame[features]
    return asked


def _numbers_as_such(values: pd.Series, column: Column) -> pd.Series:
    """Numbers that stand among missing values as objects, as numbers."""
    if column.numeric and values.dtype == object:
        return values.where(values.notna(), np.nan).infer_objects()
    return values


def require_numbers(frame: pd.DataFrame, schema: Schema, owner: str, parameter: str, way: str = "") -> None:
    """Numeric columns must be complete where distances are taken."""
    numeric = [n for n in frame.columns if schema[n].numeric]
    if holes := [n for n in numeric if frame[n].isna().any()]:
        have = "have" if parameter.endswith("s") else "has"
        raise SchemaError(
            f"The '{parameter}' given to {owner} {have} missing values in numeric columns: {holes}. "
            f"{way or 'Impute or drop them first'}; categorical and ordinal columns may hold missing values."
        )


def _conform_query(values: pd.Series, column: Column, dtype: Any, owner: str) -> pd.Series:
    if values.dtype is dtype and isinstance(dtype, pd.CategoricalDtype):
        return values  # the table's own categories, which were checked with it
    values, _ = conform_column(_numbers_as_such(values, column), column)
    if isinstance(dtype, pd.CategoricalDtype):
        recoded = _recategorised(values, dtype)
        if recoded is not None:
            return recoded
        # Through objects: `astype` would leave the order of equal categories as it is.
        given = values.astype(object)
        return given.astype(_widened(dtype, given[~(given.isin(dtype.categories) | given.isna())]))
    if values.dtype == dtype:
        return values
    if pd.api.types.is_bool_dtype(dtype):
        if not (values.isin([True, False]) | values.isna()).all():
            raise SchemaError(
                f"Column '{column.name}' of the 'rows' given to {owner} must hold truth values. Got {values.dtype}."
            )
        return values.astype("boolean") if values.isna().any() else values.astype(dtype)
    if pd.api.types.is_integer_dtype(dtype):
        present = values.dropna()
        if pd.api.types.is_float_dtype(present) and not (present == np.rint(present.to_numpy(dtype=float))).all():
            raise SchemaError(
                f"Column '{column.name}' of the 'rows' given to {owner} has fractions, but the table holds whole "
                f"numbers. Round them, or make the table's column float."
            )
        dtype = _with_room(dtype, present.to_numpy(dtype=float)) if len(present) == len(values) else "Int64"
    try:
        return values.astype(dtype)
    except (ValueError, TypeError):
        raise SchemaError(
            f"Column '{column.name}' of the 'rows' given to {owner} must have dtype {dtype}. Got {values.dtype}."
        ) from None


def _recategorised(values: pd.Series, dtype: pd.CategoricalDtype) -> pd.Series | None:
    """Categories of the same kind in another order, by their codes; None where that does not hold."""
    old = values.dtype
    if not isinstance(old, pd.CategoricalDtype) or old.categories.dtype != dtype.categories.dtype:
        return None
    place, raw = dtype.categories.get_indexer(old.categories), np.asarray(values.array.codes)
    codes = np.append(place, -1)[raw]  # missing is -1, the last
    if ((codes < 0) & (raw >= 0)).any():
        return None
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=values.index, name=values.name)


def _with_room(dtype: Any, numbers: NDArray[np.float64]) -> Any:
    """The dtype of a column; of whole numbers a larger one where some do not fit: they would wrap around in silence."""
    if not pd.api.types.is_integer_dtype(dtype):
        return dtype
    plain = np.dtype(getattr(dtype, "numpy_dtype", dtype))
    known = numbers[~np.isnan(numbers)]
    if plain.itemsize == 8 or not len(known):
        return dtype
    bounds = np.iinfo(plain)
    if bounds.min <= known.min() and known.max() <= bounds.max:
        return dtype
    return np.dtype(np.int64) if isinstance(dtype, np.dtype) else "Int64"


def _coding(values: pd.Series, column: Column) -> Coding:
    dtype = values.dtype
    if column.numeric:
        return Coding(column, dtype)
    if column.values is not None:
        known = list(column.values)
    else:
        # By content: categories may come in the order of somebody's rows, and ties go by code.
        held = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else pd.unique(values.dropna())
        known = sorted(held.tolist(), key=lambda v: (type(v).__name__, v))
    holes = bool(values.isna().any())
    return Coding(column, dtype, _lookup([*known, None] if holes else known, dtype), len(known) if holes else -1)


def _extend(coding: Coding, values: pd.Series) -> Coding:
    if coding.numeric:
        return coding
    codes = coding.encode(values)
    if not (codes < 0).any():
        return coding
    fresh = values[codes < 0]
    added = sorted(pd.unique(fresh.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
    holes = bool(fresh.isna().any())
    known, dtype = [*coding.values, *added, *([None] if holes else [])], _widened(coding.dtype, fresh.dropna())
    missing = len(known) - 1 if holes else coding.missing
    return replace(coding, dtype=dtype, lookup=_lookup(known, dtype), missing=missing)


def _widened(dtype: Any, fresh: pd.Series) -> Any:
    """The dtype with values that are new to it; only categories have to know all of theirs."""
    if not isinstance(dtype, pd.CategoricalDtype) or not len(fresh):
        return dtype
    added = sorted(pd.unique(fresh.astype(object)).tolist(), key=lambda v: (type(v).__name__, v))
    return pd.CategoricalDtype([*dtype.categories.tolist(), *added])


def _lookup(values: list[Any], dtype: Any) -> Any:
    if None in values and pd.api.types.is_integer_dtype(dtype):
        dtype = "Int64"
    elif None in values and pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype):
        dtype = "boolean"
    return pd.Series(values, dtype=dtype).array
