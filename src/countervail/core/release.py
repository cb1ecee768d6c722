"""Release: all that the outside sees of a protected table."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints, frame_of, number_rows, plain_array
from countervail.core.canonical import canonical_series
from countervail.core.cells import cell_column, cell_from_json, cell_text, cell_to_json, frame_from_json, frame_to_json
from countervail.core.errors import SchemaError
from countervail.core.files.frames import write_frame
from countervail.core.files.json_data import is_count, json_object, need, places, texts, whole_json
from countervail.core.guarantee import Guarantee, guarantee_from_dict
from countervail.core.region import Axis, Range, Regions, distinct_cells
from countervail.core.schema import Column, Schema
from countervail.core.stats import plain_value
from countervail.core.table import Table
from countervail.core.words.dates import dated_frame, day_cell, iso_column

_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Release:
    """A protected table: shuffled rows whose quasi-identifiers are those of their class.

    `regions` holds one region per class, `groups` the class of each row, `others` the columns that are released as
    they are; `words` names sets of values (by column and text) where a hierarchy has a name for them. The original
    table is held for the measures while the process lives, and so are, where cells are centres of groups, the ranges
    and sets that the groups lie in (`held`); neither is part of repr, JSON or pickle.
    """

    regions: Regions
    groups: Ints
    others: pd.DataFrame
    schema: Schema
    guarantee: Guarantee
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    suppressed: int = 0
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    audit: Table | None = field(default=None, repr=False)
    held: Regions | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.groups.setflags(write=False)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return f"Release({len(self):,} rows in {len(self.regions):,} classes; {self.guarantee})"

    def to_frame(self) -> pd.DataFrame:
        """The released rows: plain values, closed intervals and frozensets for the quasi-identifiers."""
        cells = self.cells()
        return dated_frame(cells, self.schema.dates(cells.columns))

    def cells(self) -> pd.DataFrame:
        """The released rows as a table holds them, where dates are days: :meth:`to_frame` shows these as dates."""
        shown = {axis.name: _column(axis, self.groups) for axis in self.regions.axes}
        return self._frame(shown)

    def to_text_frame(self) -> pd.DataFrame:
        """The released rows with generalised cells as people read them: `24-27`, `{Antwerp, Brussels}`, `coast`."""
        shown = {axis.name: _column(axis, self.groups, self.words.get(axis.name, {})) for axis in self.regions.axes}
        frame = self._frame(shown)
        days = self.schema.dates(frame.columns)
        dated = {a.name: _dates(a, self.groups) for a in self.regions.axes if a.name in days}
        return frame.assign(**{n: dated[n] if n in dated else iso_column(frame[n]) for n in days})

    def write(self, path: str | Path) -> None:
        """Write the rows to a .csv, .csv.gz or .parquet file, whole or not at all."""
        write_frame(self.to_text_frame(), path)

    def classes(self) -> Ints:
        """A number for each row, equal where the published quasi-identifiers are."""
        if not self.regions.axes:  # noisy rows have no classes: each stands alone
            return self.groups.copy()
        number, several = np.zeros(len(self.regions), np.int64), len(self.regions)
        for axis in self.regions.axes:
            number = number_rows([number, distinct_cells(axis)[1]])
            if number.max(initial=-1) + 1 == several:
                break  # further columns have nothing left to tell apart
        return number[self.groups]

    def column(self, name: str) -> pd.Series:
        """One released column that is not generalised."""
        if name not in self.others.columns:
            raise SchemaError(f"The release has no plain column {name!r}. It has {list(self.others.columns)}.")
        values: pd.Series = self.others[name]
        return values

    def original_table(self, table: Table | None = None) -> Table:
        """The table that the measures need: the one given, or the one still held in this process."""
        held = table if table is not None else self.audit
        if held is None:
            raise SchemaError("This release no longer holds its table. Pass table=... to the measure.")
        return held

    def holding(self) -> Regions:
        """The regions that the people of each class lie in: the published ones, unless their cells are centres."""
        if self.held is not None:
            return self.held
        if getattr(self.guarantee, "centres", False):
            raise SchemaError(
                "The cells of this release are centres of groups, and where its people lie is known only in the "
                "process that made it. Fit and protect again, and measure or attack that."
            )
        return self.regions

    def without_audit(self) -> Self:
        """The release as an outsider holds it, who may have rerun the code and know the groups' ranges."""
        return replace(self, audit=None)

    def to_json(self) -> str:
        """The rows, their promise and their provenance as JSON."""
        return json.dumps(
            {
                "kind": "release",
                "version": 1,
                "schema": self.schema.to_dict(),
                "guarantee": self.guarantee.to_dict(),
                "provenance": plain_value(self.provenance),
                "caveats": list(self.caveats),
                "suppressed": int(self.suppressed),
                "words": {name: dict(words) for name, words in self.words.items()},
                "regions": regions_to_json(self.regions),
                "groups": self.groups.tolist(),
                "others": frame_to_json(self.others),
            },
            default=str,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`; the table does not come along."""
        data = json_object(text, "text", "Release.from_json", "Release.to_json()")
        if data.get("kind") != "release" or data.get("version") != 1:
            raise SchemaError("This JSON does not hold a release of version 1.")
        with whole_json("text", "Release.from_json", "Release.to_json()"):
            regions = regions_from_json(data["regions"])
            groups = places(data["groups"], len(regions) if regions.axes else 2**63)
            others = frame_from_json(data["others"])
            if not len(others.columns):
                others = pd.DataFrame(index=pd.RangeIndex(len(groups)))
            need(len(others) == len(groups) and is_count(data["suppressed"]))
            return cls(
                regions,
                groups,
                others,
                Schema.from_dict(data["schema"]),
                guarantee_from_dict(data["guarantee"]),
                dict(data["provenance"]),
                texts(data["caveats"]),
                data["suppressed"],
                {name: dict(zip(words, texts(list(words.values())))) for name, words in data["words"].items()},
            )

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: None if f.name in ("audit", "held") else getattr(self, f.name) for f in fields(self)}

    def _frame(self, shown: Mapping[str, Any]) -> pd.DataFrame:
        names = [n for n in self.schema.names() if n in shown or n in self.others.columns]
        columns = {n: shown[n] if n in shown else self.others[n] for n in names}
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self)), copy=False)

    def _repr_html_(self) -> str:
        head = replace(self, groups=self.groups[:_SHOWN].copy(), others=self.others.iloc[:_SHOWN]).to_text_frame()
        names = "".join(f"<th>{html.escape(str(n))}</th>" for n in head.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell_text(v))}</td>" for v in row) + "</tr>"
            for row in head.itertuples(index=False)
        )
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in (str(self.guarantee), *self.caveats))
        count = f"<p>{len(self):,} rows in {len(self.regions):,} classes</p>"
        return f"{notes}{count}<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>"


def regions_to_json(regions: Regions) -> list[dict[str, Any]]:
    """Each column's distinct cells, and which of them each region has."""
    out = []
    for axis in regions.axes:
        first, at = distinct_cells(axis)
        cells = [cell_to_json(axis.cell(int(i))) for i in first]
        out.append({"name": axis.name, "range": isinstance(axis, Range), "cells": cells, "at": at.tolist()})
    return out


def regions_from_json(data: list[dict[str, Any]]) -> Regions:
    """The inverse of :func:`regions_to_json`; to be called inside :func:`whole_json`."""
    need(isinstance(data, list) and len({len(entry["at"]) for entry in data}) <= 1)
    axes: list[Axis] = []
    for name, entry in zip(texts([entry["name"] for entry in data]), data):
        cells = [{name: cell_from_json(c)} for c in entry["cells"]]
        kind = Schema((Column(name, "numeric" if entry["range"] else "categorical"),))
        axes.append(Regions.from_cells(cells, kind).axes[0].take(places(entry["at"], len(cells))))
    need(len({axis.name for axis in axes}) == len(axes))
    return Regions(tuple(axes), len(data[0]["at"]) if data else 0)


def _column(axis: Axis, groups: Ints, words: Mapping[str, str] | None = None) -> Any:
    """The cells of a column, each rendered once (as text where `words` is given) and then taken row by row."""
    if isinstance(axis, Range) and words is None and _all_intervals(axis):
        low, high = (v.astype(np.int64) if axis.whole else v for v in (axis.low, axis.high))
        return pd.arrays.IntervalArray.from_arrays(low, high, closed="both").take(groups)
    first, at = distinct_cells(axis)
    cells = [axis.cell(int(i)) for i in first]
    wide = any(isinstance(c, (pd.Interval, frozenset)) for c in cells)
    if wide and words is not None:
        texts = [None if c is None else cell_text(c) for c in cells]
        cells = [None if text is None else words.get(text, text) for text in texts]
    values = cell_column(cells)
    if values.dtype != object:
        return values.array.take(at[groups])
    rendered = np.empty(len(cells), dtype=object)
    rendered[:] = cells
    # A dtype of its own: pandas would look through all rows for a better one.
    return pd.Series(rendered[at[groups]], dtype=object, copy=False)


def _dates(axis: Axis, groups: Ints) -> pd.Series:
    """The cells of a column of days as dates and ranges of dates; missing ones stay missing."""
    first, at = distinct_cells(axis)
    cells = [axis.cell(int(i)) for i in first]
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [None if c is None else day_cell(c) for c in cells]
    return pd.Series(texts[at[groups]], dtype=object, copy=False)


def _all_intervals(axis: Range) -> bool:
    """Whether no cell is a single number or holds missing values."""
    return bool((axis.low < axis.high).all()) and (axis.holes is None or not axis.holes.any())


def without_traces(frame: pd.DataFrame, schema: Schema | None = None) -> pd.DataFrame:
    """A frame whose spelling, dtypes and categories tell nothing but its own cells, and what the schema declares."""
    declared = {} if schema is None else {c.name: c.public for c in schema if not c.numeric}
    if not len(frame.columns):
        return frame.copy()
    clean = [canonical_series(values, declared.get(str(n))).array for n, values in frame.items()]
    return frame_of([plain_array(c) for c in clean], frame.columns).set_axis(frame.index)


def provenance(kind: str, maker: Any, schema: Schema | None = None) -> dict[str, Any]:
    """How something was made: parameters, version, and the digest of a table's schema as it was declared."""
    params = {k: v if _is_plain(v) else _in_words(v) for k, v in parameters_of(maker).items()}
    if params.get("random_state") is not None:
        params["random_state"] = "given"  # the seed itself would undo a shuffle, or take noise off
    made = {kind: maker.name, "parameters": params, "countervail": package_version()}
    return made if schema is None else made | origin(schema)


def _in_words(value: Any) -> Any:
    """Of what is given by column the columns, of other objects their kind."""
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return sorted(value)
    return type(value).__name__


def origin(schema: Schema) -> dict[str, str]:
    """What provenance says of a table: the digest of its schema as it was declared."""
    return {"schema": schema.declared().digest()}


def parameters_of(maker: Any) -> dict[str, Any]:
    """What `get_params(deep=False)` gives, with the signature read once for each class."""
    kind: Any = type(maker)
    return {name: getattr(maker, name) for name in _parameter_names(kind)}


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


@cache
def package_version() -> str:
    """Our version, or "unknown" when run from a source tree that is not installed."""
    try:
        return version("countervail")
    except PackageNotFoundError:
        return "unknown"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))
