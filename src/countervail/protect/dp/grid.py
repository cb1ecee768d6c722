"""Finite public domains: every declared column as a short list of values, and rows as positions in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Floats, Ints, distinct_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.schema import Column
from countervail.core.table import Table
from countervail.engine import Scan
from countervail.engine.interface import CODE, COUNT
from countervail.engine.scan import as_table, empty_frame
from countervail.explain.base import check_features, check_table

LEVELS = 101  # cells of a numeric domain that declares none
UNIT = 1 << 30  # a distance of one, as a whole number


@dataclass(frozen=True, eq=False, slots=True)
class Axis:
    """The public values of one column by position; the last stands for "missing" where that is a level of its own.

    Everything here follows from the declaration (and from whether the column is stored as a category): neither the
    values nor the dtype tell anything about the rows.
    """

    column: Column
    values: tuple[Any, ...]
    dtype: Any
    missing: bool = False

    @classmethod
    def of(cls, column: Column, stored: Any, missing: bool) -> Self:
        """The axis of a declared column; `stored` is the dtype of the table's column."""
        if column.numeric:
            assert column.domain is not None
            values, whole = _cells(column.domain) if column.cuts is None else _declared(column.cuts)
            # Numbers with holes are fractions to pandas and to models.
            return cls(column, values, np.dtype(np.int64 if whole and not missing else np.float64), missing)
        values = tuple(column.values or ())
        if isinstance(stored, pd.CategoricalDtype):
            return cls(column, values, pd.CategoricalDtype(list(values), ordered=stored.ordered), missing)
        plain = pd.Series(list(values)).dtype
        nullable = {"i": "Int64", "b": "boolean"}.get(plain.kind) if missing else None
        return cls(column, values, pd.api.types.pandas_dtype(nullable) if nullable else plain, missing)

    def __len__(self) -> int:
        return len(self.values) + self.missing

    @property
    def numeric(self) -> bool:
        """Whether positions stand for numbers."""
        return self.column.numeric

    @property
    def ordered(self) -> bool:
        """Whether near positions stand for near values; of numbers all but the last, where that is "missing"."""
        return self.numeric or (self.column.type == "ordinal" and not self.missing)

    @property
    def default(self) -> int:
        """The position that stands for whatever has no place on the axis: the middle of an order, the first label."""
        return len(self.values) // 2 if self.column.type != "categorical" else 0

    def codes(self, values: pd.Series) -> Ints:
        """The position nearest to each value. Numbers beyond the ends go to the ends; the rest to its default."""
        if self.numeric:
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
            cells = np.asarray(self.values, dtype=float)
            codes = np.searchsorted((cells[1:] + cells[:-1]) / 2, numbers, side="right")
            nothing = len(cells) if self.missing else self.default
            return np.where(np.isnan(numbers), nothing, codes).astype(np.int64)
        absent = len(self.values) if self.missing else self.default
        found: Ints
        if self._stored_as(values.dtype):
            found = np.asarray(values.array.codes, dtype=np.int64)
            return np.where(found < 0, absent, found)
        found = pd.Index(list(self.values), dtype=object).get_indexer(pd.Index(values.astype(object)))
        return np.where(values.isna().to_numpy(), absent, np.where(found < 0, self.default, found)).astype(np.int64)

    def _stored_as(self, dtype: Any) -> bool:
        """Whether a column's codes are positions of this axis as they are."""
        mine = self.dtype
        both = isinstance(dtype, pd.CategoricalDtype) and isinstance(mine, pd.CategoricalDtype)
        return both and dtype.categories.dtype == mine.categories.dtype and dtype.categories.equals(mine.categories)

    def series(self, codes: Ints) -> pd.Series:
        """The values at these positions, always in the same dtype."""
        if isinstance(self.dtype, pd.CategoricalDtype):
            held = np.where(codes < len(self.values), codes, -1)
            return pd.Series(pd.Categorical.from_codes(held, dtype=self.dtype))
        every = pd.Series([*self.values, *([None] if self.missing else [])], dtype=self.dtype)
        held_values: pd.Series = every.take(codes).reset_index(drop=True)
        return held_values

    def numbers(self) -> Floats:
        """What an :class:`Encoder` fitted to this axis makes of each position: the number, or the position itself."""
        if not self.numeric:
            return np.arange(len(self), dtype=float)
        return np.array([*self.values, *([np.nan] if self.missing else [])], dtype=float)

    def distances(self, x: Floats) -> Ints:
        """HEOM terms from each number or position to every position of the axis, as whole numbers of 2**-30."""
        if self.column.type == "categorical":
            apart: Ints = np.where(x[:, None] != np.arange(len(self)), UNIT, 0).astype(np.int64)
            return apart
        at = np.asarray(self.values, dtype=float) if self.numeric else np.arange(len(self.values), dtype=float)
        span = float(at[-1] - at[0]) or 1.0
        near: Ints = np.rint(np.minimum(np.abs(x[:, None] - at) / span, 1.0) * UNIT).astype(np.int64)
        if self.numeric:
            return near
        absent = (x < 0) | (x >= len(at))  # a missing level lies 1 from any other
        near[absent] = UNIT
        if self.missing:
            near = np.column_stack([near, np.where(x == len(at), 0, UNIT)])
        return near


@dataclass(frozen=True, eq=False, slots=True)
class Grid:
    """The public domain of a table's feature columns, as a product of short axes.

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> df = pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})
    >>> t = cv.Table.from_frame(df, domains={"age": (18, 80), "job": ["cook", "nurse", "clerk"]})
    >>> grid = Grid.of(t, "Example")
    >>> grid.sizes.tolist(), grid.codes(t.features).tolist()
    ([63, 3], [[12, 0], [23, 1]])
    """

    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, table: Table, owner: str, missing: Sequence[str] = (), *, numbers: bool = False) -> Self:
        """The grid of a table whose every feature has a declared domain; `missing` names columns with that level.

        `numbers` says whether columns of numbers may be among them.
        """
        schema = table.schema
        bare = [n for n in schema.features if schema[n].public is None]
        if bare:
            raise SchemaError(
                f"{owner} adds noise over public domains, but these columns declare none: {bare}. Pass domains={{...}} "
                f"to Table.from_frame or add them to the schema, from what is publicly known; a domain read off the "
                f"rows, or off an ordered category dtype, would give them away. Where a proposed schema says "
                f"'read = true', correct the values and delete that line."
            )
        loose = [n for n in schema.features if schema[n].type == "date" and not schema[n].order]
        if loose:
            raise SchemaError(
                f"{owner} needs to know beforehand in which order the dates of {loose} are written: read off the rows, "
                f'one of them may change what all others say. Declare order = "ymd", "dmy" or "mdy" in the schema.'
            )
        labels = [n for n in schema.features if not schema[n].numeric]
        able = schema.features if numbers else labels
        if isinstance(missing, str) or not set(missing) <= set(able):
            must = "a list of feature columns" if numbers else "a list of ordinal or categorical columns"
            hint = "" if numbers else "PrivateSynthetic and train_private_logistic take missing numbers as well."
            got = missing if isinstance(missing, str) else list(missing)
            raise bad_parameter(owner, "missing", f"{must}, among {list(able)}", got, hint)
        empty = [n for n in labels if not schema[n].values]
        if empty:
            raise SchemaError(f"The domains of these columns hold no value: {empty}.")
        halved = [n for n in schema.features if _is_halved(schema[n], table.frame[n].dtype)]
        if halved:
            raise SchemaError(
                f"These columns are stored as fractions, but their domains leave two whole numbers: {halved}. Write "
                f"the bounds with decimals, as in (0.0, 1.0); where only the two occur, (0.0, 1.0, 2)."
            )
        return cls(tuple(Axis.of(schema[n], table.frame[n].dtype, n in missing) for n in schema.features))

    @property
    def sizes(self) -> Ints:
        """How many positions each axis has."""
        return np.array([len(a) for a in self.axes], dtype=np.int64)

    @property
    def ordered(self) -> NDArray[np.bool_]:
        """Which axes have an order."""
        return np.array([a.ordered for a in self.axes], dtype=bool)

    @property
    def default(self) -> Ints:
        """A public record that stands for no record."""
        return np.array([a.default for a in self.axes], dtype=np.int64)

    def codes(self, frame: pd.DataFrame) -> Ints:
        """Rows as positions, each on its own: what one row becomes does not depend on any other."""
        return np.column_stack([a.codes(frame[a.column.name]) for a in self.axes])

    def frame(self, codes: Ints) -> pd.DataFrame:
        """Positions as rows of values."""
        return pd.DataFrame({a.column.name: a.series(codes[:, j]) for j, a in enumerate(self.axes)}, copy=False)

    def numbers(self) -> Floats:
        """Axis x position: the encoder's number of each position (zero beyond the end of a short axis)."""
        out = np.zeros((len(self.axes), int(self.sizes.max())))
        for j, axis in enumerate(self.axes):
            out[j, : len(axis)] = axis.numbers()
        return out

    def distances(self, queries: Floats) -> Ints:
        """Query x axis x position: HEOM terms with public ranges, in whole numbers: no sum depends on its order."""
        out = np.zeros((len(queries), len(self.axes), int(self.sizes.max())), dtype=np.int64)
        for j, axis in enumerate(self.axes):
            out[:, j, : len(axis)] = axis.distances(queries[:, j])
        return out


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """Positions of each record, or of all that occur with how many records are so (`times`)."""

    codes: Ints
    times: Ints | None = None

    def __len__(self) -> int:
        return len(self.codes) if self.times is None else int(self.times.sum())

    def parts(self) -> Iterator[Records]:
        """All of them at once."""
        yield self


def declared_table(rows: Any, owner: str, build: str) -> Table:
    """A table that has the declaration and the types of the rows: the rows themselves, or none of a scan."""
    if not isinstance(rows, Scan):
        check_table(rows, owner, build)
        return rows  # type: ignore[no-any-return]
    check_features(rows.schema, owner)
    nobody: Table = object.__new__(Table)  # a table has rows, by its own account
    return nobody.with_frame(empty_frame(rows.relation.kinds), rows.schema)


@dataclass(frozen=True, eq=False, slots=True)
class RecordStream:
    """Records of a scan of which more differ than memory holds: they are read anew each time they are counted."""

    rows: Scan
    grid: Grid

    def parts(self) -> Iterator[Records]:
        """Positions, batch by batch, equal ones of a batch brought together."""
        import pyarrow as pa

        for batch in self.rows.relation.rows([a.column.name for a in self.grid.axes]):
            codes = self.grid.codes(as_table(pa.Table.from_batches([batch]), self.rows.schema).frame)
            first, which = distinct_rows(codes)
            yield Records(codes[first], np.bincount(which, minlength=len(first)).astype(np.int64))


def read_records(rows: Table | Scan, grid: Grid) -> Records | RecordStream:
    """The records of a table, each on its own, or of a scan, equal positions brought together where the rows are.

    Where too many of a scan differ for its memory, they are read in parts: no table is refused for what it holds.
    """
    if not isinstance(rows, Scan):
        return Records(grid.codes(rows.features))
    import pyarrow as pa

    here, dictionaries = rows.relation.here, {}
    for axis in grid.axes:
        name = axis.column.name
        held = rows.distinct([name], limit=None if here else rows.budget(1))
        if held is None:
            return RecordStream(rows, grid)
        codes = axis.codes(held.table.frame[name]).astype(np.int32)
        dictionaries[name] = held.raw.append_column(CODE, pa.array(codes))
    found = rows.relation.recoded(dictionaries, limit=None if here else rows.budget(len(dictionaries)))
    if found is None:
        return RecordStream(rows, grid)
    return Records(np.column_stack([found[n].to_numpy() for n in dictionaries]), found[COUNT].to_numpy())


def _is_halved(column: Column, stored: Any) -> bool:
    """Whether everything in between would go to one of two ends: told by the declaration and the dtype alone."""
    d = column.domain
    if not column.numeric or column.cuts is not None or d is None or not pd.api.types.is_float_dtype(stored):
        return False
    return len(d) == 2 and isinstance(d[0], int) and isinstance(d[1], int) and d[1] - d[0] == 1


def _declared(cuts: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """Declared cells, and whether they are whole numbers."""
    whole = all(isinstance(v, int) for v in cuts)
    return cuts if whole else tuple(float(v) for v in cuts), whole


def _cells(domain: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
    """The cells of a numeric domain, and whether they are whole numbers (as bounds given as whole numbers ask for)."""
    low, high = domain[0], domain[1]
    whole = isinstance(low, int) and isinstance(high, int)
    levels = int(domain[2]) if len(domain) == 3 else min(LEVELS, high - low + 1) if whole else LEVELS
    if low == high:
        levels = 1
    whole = whole and levels <= high - low + 1
    steps = max(levels - 1, 1)
    if whole:  # in whole numbers throughout, rounding halves up
        return tuple(low + (2 * i * (high - low) + steps) // (2 * steps) for i in range(levels)), True
    cells = np.linspace(low, high, levels)
    return tuple(float(v) for v in cells), False
