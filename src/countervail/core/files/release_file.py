"""Published files, whoever wrote them: rows grouped by equal cells, or read back as a release."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import number_columns, number_rows
from countervail.core.cells import cell_text
from countervail.core.conform import check_hashable, conform_column
from countervail.core.counting.copies import EqualRows
from countervail.core.errors import SchemaError, listed
from countervail.core.files.csv_text import PLAIN, Reading
from countervail.core.files.frames import read_frame
from countervail.core.files.published_cells import CellReader, inside_set, one_kind, range_ends
from countervail.core.guarantee import Guarantee, KAnonymity, LDiversity, NoGuarantee, TCloseness
from countervail.core.guarantee.promises import PublishedTable, class_sizes
from countervail.core.hierarchy import Hierarchy
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.schema import Column, Schema
from countervail.core.stats import plain_json
from countervail.core.table import Table, to_pandas
from countervail.core.words.dates import read_days


@dataclass(frozen=True, eq=False, slots=True)
class PublishedFile:
    """The rows of a file, grouped by their quasi-identifiers as they stand there.

    What differs as written differs for whoever reads it: `07` is not `7`, `{b, a}` not `{a, b}`. A missing cell equals
    a missing one only.
    """

    frame: pd.DataFrame
    schema: Schema

    @classmethod
    def read(cls, path: str | Path, schema: Schema, reading: Reading = PLAIN) -> PublishedFile:
        """Read a .csv, .csv.gz or .parquet file that holds at least the schema's quasi-identifiers."""
        return cls.of(read_frame(path, text=schema.names("quasi"), reading=reading), schema)

    @classmethod
    def of(cls, frame: Any, schema: Schema) -> PublishedFile:
        """Take the rows of a frame."""
        frame = to_pandas(frame, "PublishedFile", "frame")
        quasi = schema.names("quasi")
        if not quasi:
            raise SchemaError("The schema declares no quasi-identifier. Give columns the role 'quasi'.")
        twice = [n for n in schema.names() if (frame.columns == n).sum() > 1]
        if twice or frame.columns.duplicated().any():
            which = listed(twice) if twice else "columns that the schema does not declare"
            raise SchemaError(f"Column names must be unique. Repeated in the release: {which}.")
        if lost := [n for n in quasi if n not in frame.columns]:
            raise SchemaError(f"The release lacks quasi-identifiers that the schema names: {lost}.")
        if frame.empty:
            raise SchemaError("The release has no rows.")
        cells = {n: _keyed(frame[n]) for n in quasi}
        return cls(frame.assign(**cells).reset_index(drop=True), schema)

    def classes(self) -> NDArray[np.int64]:
        """A number for each row, equal where all quasi-identifier cells are."""
        return pd.factorize(number_rows(number_columns(self.frame, self.schema.names("quasi"))))[0].astype(np.int64)

    def each_once(self, person: NDArray[np.int64]) -> PublishedFile:
        """One row of each person in a class; `person` numbers the people of the rows."""
        twice = pd.DataFrame({"class": self.classes(), "person": person}).duplicated().to_numpy()
        return replace(self, frame=self.frame[~twice].reset_index(drop=True))

    def people_at_least(self, rows_each: int) -> PublishedFile:
        """As many rows of each class as there are people at least, where nobody has more than so many rows."""
        place = pd.Series(self.classes()).groupby(self.classes()).cumcount().to_numpy()
        return replace(self, frame=self.frame[place % rows_each == 0].reset_index(drop=True))

    def equal_rows(self) -> EqualRows:
        """Rows that are equal in every column, as written."""
        cells = pd.DataFrame({n: _keyed(self.frame[n]) for n in self.frame.columns}, index=self.frame.index)
        return EqualRows.of(cells, self.schema.names("quasi"))

    def column(self, name: str) -> pd.Series:
        """A column as it stands in the file; levels get their declared spelling."""
        if name not in self.frame.columns:
            there = [c.name for c in self.schema if c.name in self.frame.columns]
            raise SchemaError(f"The release has no column {name!r}. Of the schema's columns it has {listed(there)}.")
        values: pd.Series = self.frame[name]
        check_hashable(values)
        declared = name in self.schema and self.schema[name].levels is not None
        return conform_column(values, self.schema[name])[0] if declared else values

    @property
    def identifiers(self) -> list[str]:
        """Identifiers that should not be there."""
        return [n for n in self.schema.names("identifier") if n in self.frame.columns]

    @property
    def undeclared(self) -> list[str]:
        """Columns that the schema does not know: nobody has said whether they point at people."""
        return [str(n) for n in self.frame.columns if n not in self.schema]

    @property
    def seems_patterns(self) -> bool:
        """Whether rows look like patterns, not people: no two are equal, and more than quasi-identifiers are wide."""
        if self.frame.astype(str).duplicated().any():
            return False
        names = [c for c in self.schema if c.role not in ("quasi", "identifier") and c.name in self.frame.columns]
        return any(_is_wide(v, c.numeric) for c in names for v in _keyed(self.frame[c.name]).unique())


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question about a release: what was asked, what it reaches, and how much of it fails.

    `shown` is False where it fails only if rows that look repeated are one person's, which the file does not tell.
    """

    claim: str
    holds: bool
    reached: float
    classes: int
    failing_classes: int
    failing_rows: int
    shown: bool = True

    @property
    def answer(self) -> str:
        """In a word: it holds, it is broken, or the file does not show it."""
        return "holds" if self.holds else "BROKEN" if self.shown else "NOT SHOWN"

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON data."""
        return plain_json(self)


def conclude(verdicts: Sequence[Verdict], holds: bool) -> str:
    """All verdicts, and what else keeps a file from passing (`holds`), in a sentence."""
    if holds:
        return "The table keeps what was asked."
    if all(v.holds or not v.shown for v in verdicts) and not all(v.holds for v in verdicts):
        return "It is NOT SHOWN that the table keeps what was asked: that depends on whose the repeated rows are."
    return "The table does NOT keep what was asked."


def examine(published: PublishedTable, promise: Guarantee) -> Verdict:
    """Whether one promise holds for a release, with the classes that break it as counts."""
    failing = promise.failing(published)
    sizes = class_sizes(published)
    if isinstance(promise, KAnonymity):
        reached = float(sizes.min())
    elif isinstance(promise, LDiversity):
        values = promise.reached(published)
        reached = float(values.max() if promise.kind == "recursive" else values.min())
    elif isinstance(promise, TCloseness):
        reached = float(promise.reached(published).max())
    else:
        raise SchemaError(f"There is no way to count {promise.claim} on a release alone.")
    lost = int(sizes[failing].sum())
    return Verdict(promise.claim, not failing.any(), reached, len(sizes), int(failing.sum()), lost)


def cell_key(cell: Any) -> Any:
    """What a cell is told from others by: texts as written, numbers by value, sets in any order; None for missing.

    Examples
    --------
    >>> cell_key("07") == cell_key("7"), cell_key(7.0) == cell_key(7), cell_key(float("nan"))
    (False, True, None)
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, (set, frozenset)):
        return frozenset(cell_key(v) for v in cell)
    if isinstance(cell, (list, tuple, np.ndarray)):
        return tuple(cell_key(v) for v in cell)
    if isinstance(cell, Mapping):
        return tuple((str(k), cell_key(v)) for k, v in cell.items())
    if _is_missing(cell):
        return None
    # Python takes True for 1; whoever reads the file does not.
    return str(cell) if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, Hashable) else cell


def _keyed(values: pd.Series) -> pd.Series:
    """Only a column of objects can mix kinds of cells; others are told apart by pandas as they are."""
    if values.dtype != object:
        return values
    cells = np.empty(len(values), dtype=object)
    cells[:] = [cell_key(v) for v in values]
    return pd.Series(cells, index=values.index, dtype=object)


def _is_wide(cell: Any, numeric: bool) -> bool:
    """Whether a cell is a set of several values or, in a numeric column, a range."""
    text = "" if _is_missing(cell) else cell_text(cell)
    if (inside := inside_set(text)) is not None:
        return "," in inside
    ends = range_ends(text) if numeric else None
    return ends is not None and float(ends[0]) < float(ends[1])


def _is_missing(value: Any) -> bool:
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def read_release(
    path: str | Path,
    table: Table,
    *,
    others: Sequence[Table] = (),
    hierarchies: Mapping[str, Hierarchy] | None = None,
    reading: Reading = PLAIN,
) -> Release:
    """Read a file with the table's columns; people's values say what its cells stand for.

    `others` are people who were never in the table: a prefix or a period may fit them too.
    """
    names = table.schema.names("quasi")
    frame = read_frame(path, text=names, reading=reading)
    if lost := [n for n in names if n not in frame.columns]:
        raise SchemaError(f"The release '{Path(path).name}' lacks quasi-identifiers of the table: {lost}.")
    axes = []
    for name in names:
        column = table.schema[name]
        codes, texts = pd.factorize(frame[name], use_na_sentinel=False)
        held = pd.unique(pd.concat([t.frame[name].dropna().astype(object) for t in (table, *others)]))
        reader = CellReader(column, tuple(map(_item, held)), (hierarchies or {}).get(name))
        cells = [{name: c} for c in one_kind([reader.read(t) for t in texts], reader.values)]
        axes.append(Regions.from_cells(cells, Schema((column,))).axes[0].take(codes))
    shown = Schema(tuple(c for c in table.schema if c.role == "quasi" or c.name in frame.columns))
    plain = [c.name for c in shown if c.role != "quasi"]
    beside = pd.DataFrame({n: _as_in_table(frame[n], table.frame[n], table.schema[n]) for n in plain})
    return Release(
        Regions(tuple(axes), len(frame)),
        np.arange(len(frame)),
        beside,
        shown,
        NoGuarantee("rows in a file do not say how they were made"),
    )


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_in_table(values: pd.Series, like: pd.Series, column: Column) -> pd.Series:
    """A plain column in the table's own spelling."""
    if column.type == "date":
        return read_days(values, "ymd", column.name).astype(object)
    known = {str(v): v for v in pd.unique(like.dropna())}
    return pd.Series([None if pd.isna(v) else known.get(str(v), v) for v in values], dtype=object)
