"""The k-anonymous table as a value of its own: groups, their regions, and in each a sorted multiset of private rows.

Building it is the only step that sees a table. Whatever is made of it afterwards (answers, releases, files) cannot tell
more than it holds. See docs/decisions/sealed-tables.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints, distinct_rows, stable_order
from countervail.core.canonical import canonical_series, canonical_value, code_values, typed_column
from countervail.core.files.json_data import is_scalar, need, places
from countervail.core.region import Regions
from countervail.core.release import regions_from_json, regions_to_json, without_traces
from countervail.core.schema import Schema, infer_type
from countervail.core.table import Table

_TIMES = {"time": pd.Timestamp, "span": pd.Timedelta}


@dataclass(frozen=True, eq=False, slots=True)
class SealedTable:
    """Regions in the order of their cells, and private rows in the order of their group, then of their content.

    Two tables that differ only in who of a group owns which private row, or in spelling, dtypes, index or the order of
    rows or categories, are sealed alike: :attr:`digest` is the same. With `times`, equal rows of a group stand once and
    are there so often; that too makes no difference to what is sealed.

    Examples
    --------
    >>> import pandas as pd
    >>> from countervail.core.schema import Column, Schema
    >>> ages = Regions.from_cells([{"age": pd.Interval(30, 39, closed="both")}])
    >>> schema = Schema((Column("age", "numeric", "quasi"), Column("ill")))
    >>> one, other = (
    ...     SealedTable.of(ages, np.zeros(2, np.int64), pd.DataFrame({"ill": ill}), schema)[0]
    ...     for ill in (["flu", "none"], ["none", "flu"])
    ... )
    >>> one.digest == other.digest
    True
    """

    schema: Schema
    regions: Regions
    groups: Ints
    others: pd.DataFrame
    times: Ints | None = None

    @classmethod
    def of(
        cls, regions: Regions, groups: Ints, others: pd.DataFrame, schema: Schema, times: Ints | None = None
    ) -> tuple[Self, Ints]:
        """Seal rows that are in groups, each there so many `times`; and the new number of each group.

        What `schema` declares is public; what was read off the rows is kept for these rows only.
        """
        clean = without_traces(others, schema)
        codes = [code_values(clean[n])[0] for n in clean.columns]
        content = distinct_rows(np.column_stack(codes))[1] if codes else np.zeros(len(clean), np.int64)
        clear = regions.canonical(schema)
        place = _order_groups(clear, groups, content, times)
        groups = place[groups]
        key = groups * (int(content.max(initial=0)) + 1) + content
        if times is None:
            order = stable_order(key)
        else:
            _, order, which = np.unique(key, return_index=True, return_inverse=True)
            times = np.bincount(which, times).astype(np.int64)
        clean = clean.iloc[order].reset_index(drop=True)
        shown = spell_favourable(schema.beside(clean).typed_by(clean))
        return cls(shown, clear[np.argsort(place)], groups[order], clean, times), place

    def __len__(self) -> int:
        return len(self.groups) if self.times is None else int(self.times.sum())

    def __repr__(self) -> str:
        return f"SealedTable({len(self):,} rows in {len(self.regions):,} groups)"

    @property
    def digest(self) -> str:
        """What tells one sealed table from another."""
        return digest_of(self.to_dict())

    def lines_of(self, rows: Ints) -> Ints:
        """The lines in which some rows stand, rows counted as often as they are there."""
        return rows if self.times is None else np.searchsorted(np.cumsum(self.times), rows, side="right")

    def to_dict(self) -> dict[str, Any]:
        """All that it holds, as plain JSON data."""
        return {
            "schema": self.schema.to_dict(),
            "regions": named_regions(self.regions),
            "groups": repeated(self.groups, self.times).tolist(),
            "others": {str(n): column_to_json(self.others[n], self.times) for n in self.others.columns},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called inside `whole_json`."""
        schema = Schema.from_dict(data["schema"])
        regions = read_regions(data["regions"]).canonical(schema)
        groups = places(data["groups"], len(regions))
        others = pd.DataFrame({n: column_from_json(c) for n, c in data["others"].items()}, copy=False)
        if not len(others.columns):
            others = pd.DataFrame(index=pd.RangeIndex(len(groups)))
        need(len(others) == len(groups))
        return cls(schema, regions, groups, others)


def canonical_table(table: Table) -> Table:
    """The table in canonical form, without identifiers: one spelling per value, numbers as floats, categories by
    declaration or content. What follows from it does not depend on how the table was stored.
    """
    data: dict[str, pd.Series] = {}
    for column in table.schema.without_identifiers():
        values = table.frame[column.name]
        if column.numeric:
            data[column.name] = pd.Series(values.to_numpy(dtype=float, na_value=np.nan) + 0.0)
            continue
        clean = canonical_series(values, column.values).reset_index(drop=True)
        if isinstance(clean.dtype, pd.CategoricalDtype):
            known = list(clean.dtype.categories) if column.values is None else list(column.values)
            clean = clean.astype(pd.CategoricalDtype(known, ordered=column.type == "ordinal"))
        data[column.name] = clean
    schema = spell_favourable(table.schema.without_identifiers())
    if schema.target is not None and schema[schema.target].inferred:
        labels = typed_column(code_values(data[schema.target])[1])
        target = replace(schema[schema.target], type=infer_type(labels), levels=None)
        schema = replace(schema, columns=tuple(target if c.name == target.name else c for c in schema))
    return table.with_frame(pd.DataFrame(data, copy=False), schema)


def spell_favourable(schema: Schema) -> Schema:
    """The favourable labels in their one spelling, or in that of their declaration."""
    declared = schema[schema.target].public if schema.target is not None else None
    known = {canonical_value(v): v for v in declared or ()}
    labels = tuple(known.get(canonical_value(v), canonical_value(v)) for v in schema.favourable)
    return replace(schema, favourable=labels)


def digest_of(data: Any) -> str:
    """A digest of plain JSON data."""
    text = json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def repeated(lines: Ints, times: Ints | None) -> Ints:
    """Each line as often as it is there."""
    return lines if times is None else np.repeat(lines, times)


def column_to_json(values: pd.Series, times: Ints | None = None) -> dict[str, Any]:
    """A canonical column as its distinct values, in order, and the place of each cell among them."""
    dtype = values.dtype
    kind = "plain" if not isinstance(dtype, pd.CategoricalDtype) else "ordered" if dtype.ordered else "category"
    order = list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None
    codes, kinds = code_values(values, order)
    return {"kind": kind, "values": [value_to_json(v) for v in kinds], "at": repeated(codes, times).tolist()}


def column_from_json(data: Any) -> Any:
    """The inverse of :func:`column_to_json`."""
    kinds = [value_from_json(v) for v in data["values"]]
    at = places(data["at"], len(kinds))
    need(data["kind"] in ("plain", "ordered", "category") and None not in kinds[:-1])
    if data["kind"] == "plain":
        return typed_column(kinds).array.take(at)
    known = kinds[:-1] if kinds and kinds[-1] is None else kinds
    codes = np.where(at < len(known), at, -1)
    return pd.Categorical.from_codes(codes, pd.Index(typed_column(known)), ordered=data["kind"] == "ordered")


def value_to_json(value: Any) -> Any:
    """A value in its one spelling; times under their name."""
    value = canonical_value(value)
    named = [name for name, kind in _TIMES.items() if isinstance(value, kind)]
    return {named[0]: value.isoformat()} if named else value


def value_from_json(data: Any) -> Any:
    """The inverse of :func:`value_to_json`."""
    if isinstance(data, dict):
        ((name, text),) = data.items()
        need(isinstance(text, str))
        return canonical_value(_TIMES[name](text))
    need(is_scalar(data))
    return canonical_value(data)


def named_regions(regions: Regions) -> list[dict[str, Any]]:
    """Regions as plain JSON data, with times under their name."""
    return [{**axis, "cells": _mapped(axis["cells"], value_to_json)} for axis in regions_to_json(regions)]


def read_regions(data: list[dict[str, Any]]) -> Regions:
    """The inverse of :func:`named_regions`."""
    return regions_from_json([{**axis, "cells": _mapped(axis["cells"], value_from_json)} for axis in data])


def _mapped(cells: Any, change: Callable[[Any], Any]) -> Any:
    """Cells of JSON data with every single value changed."""
    if isinstance(cells, list):
        return [_mapped(cell, change) for cell in cells]
    if isinstance(cells, dict) and not cells.keys() & _TIMES.keys():
        return {name: _mapped(cell, change) for name, cell in cells.items()}
    return change(cells)


def _order_groups(regions: Regions, groups: Ints, content: Ints, times: Ints | None) -> Ints:
    """Each group's place among all by its cells, and by its rows where cells are equal."""
    place = regions.ranks()
    if len(place) and place.max() + 1 < len(place):
        groups, content = repeated(groups, times), repeated(content, times)
        parts = np.split(content[np.lexsort((content, groups))], np.cumsum(np.bincount(groups))[:-1])
        order = sorted(range(len(place)), key=lambda c: (place[c], parts[c].tolist()))
        place[order] = np.arange(len(place))
    return place
