"""Records as positions in public domains: those of a table, or of rows in an engine, counted there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter
from countervail.core.table import Table
from countervail.engine import Scan
from countervail.engine.columns import one_column
from countervail.engine.interface import CODE, COUNT
from countervail.engine.scan import empty_frame
from countervail.explain.base import check_features, check_table
from countervail.protect.dp.grid import Grid


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """Positions of each record, or of all that occur with how many records are so (`times`)."""

    codes: Ints
    times: Ints | None = None

    def __len__(self) -> int:
        return len(self.codes) if self.times is None else int(self.times.sum())


def declared_table(rows: Any, owner: str, build: str) -> Table:
    """A table that has the declaration and the types of the rows: the rows themselves, or none of a scan."""
    if not isinstance(rows, Scan):
        check_table(rows, owner, build)
        return rows  # type: ignore[no-any-return]
    check_features(rows.schema, owner)
    nobody: Table = object.__new__(Table)  # a table has rows, by its own account
    return nobody.with_frame(empty_frame(rows.relation.kinds), rows.schema)


def read_records(rows: Table | Scan, grid: Grid) -> Records:
    """The records of a table, each on its own, or of a scan, equal positions brought together where the rows are."""
    if not isinstance(rows, Scan):
        return Records(grid.codes(rows.features))
    import pyarrow as pa

    dictionaries = {}
    for axis in grid.axes:
        name = axis.column.name
        held = one_column(rows, name)
        codes = axis.codes(held.table.frame[name]).astype(np.int32)
        dictionaries[name] = held.raw.append_column(CODE, pa.array(codes))
    limit = rows.budget(len(dictionaries))
    found = rows.relation.recoded(dictionaries, limit=None if rows.relation.here else limit)
    if found is None:
        must = f"enough for records that differ in the public domains, of which there are more than {limit:,}"
        hint = "Give more (--memory), or declare fewer levels."
        raise bad_parameter("Table.scan", "memory", must, f"{rows.memory:,} bytes", hint)
    return Records(np.column_stack([found[n].to_numpy() for n in dictionaries]), found[COUNT].to_numpy())
