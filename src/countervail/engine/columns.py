"""Columns of a scan by themselves: what values each has, whoever has them, and what that tells of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter, listed
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.engine.codes import order_lines
from countervail.engine.scan import Distinct, Scan


def one_column(scan: Scan, name: str) -> Distinct:
    """The distinct values of a column, which must fit the budget of memory."""
    found = scan.distinct([name], limit=None if scan.relation.here else scan.budget(1))
    if found is None:
        must = f"enough for the different values of '{name}', of which there are more than {scan.budget(1):,}"
        hint = f"Give more (--memory), or round or group '{name}'."
        raise bad_parameter("Table.scan", "memory", must, f"{scan.memory:,} bytes", hint)
    return found


def distinct_people(scan: Scan, names: Sequence[str]) -> tuple[pd.DataFrame, Ints]:
    """The distinct rows of some columns, which must fit the budget of memory, and how many rows each stands for."""
    limit = scan.budget(len(names))
    found = scan.distinct(names, limit=None if scan.relation.here else limit)
    if found is None:
        must = f"enough for the distinct rows of {listed(list(names))}, of which there are more than {limit:,}"
        raise bad_parameter("Table.scan", "memory", must, f"{scan.memory:,} bytes", "Give more (--memory).")
    return found.table.frame, found.counts


def side_by_side(scan: Scan, tables: Mapping[str, Table]) -> Table:
    """A table that has each column's values, for what is found out column by column; its rows are nobody's."""
    tables = {c.name: tables[c.name] for c in scan.schema if c.name in tables}
    longest = max(map(len, tables.values()))
    frame = {n: t.frame[n].take(np.resize(np.arange(len(t)), longest)).array for n, t in tables.items()}
    columns = tuple(t.schema[n] for n, t in tables.items())
    favourable = scan.schema.favourable if scan.schema.target in tables else ()
    some = next(iter(tables.values()))
    return some.with_frame(pd.DataFrame(frame), replace(scan.schema, columns=columns, favourable=favourable))


def known_schema(scan: Scan, *seen: Schema) -> Schema:
    """The schema of a scan with what its values have told of some columns."""
    known = {c.name: c for schema in seen for c in schema}
    return replace(scan.schema, columns=tuple(known.get(c.name, c) for c in scan.schema))


def lookup_once(raw: Any, of: Ints) -> tuple[Any, Ints]:
    """Combinations that came several times, once; equal ones have one number."""
    which, lines = order_lines(raw)
    cell = np.full(lines.num_rows, -1, np.int64)
    cell[which] = of
    return lines, cell
