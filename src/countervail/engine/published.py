"""Published rows in an engine, equal ones counted: as much of a release as its promise is counted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.canonical import canonical_series
from countervail.core.errors import SchemaError, bad_parameter, listed
from countervail.core.schema import Schema
from countervail.engine.codes import order_lines
from countervail.engine.files.sources import Sources
from countervail.engine.interface import COUNT, Relation
from countervail.engine.scan import as_table, open_relation, room_for


@dataclass(frozen=True, eq=False, slots=True)
class PublishedCounts:
    """Lines of published quasi-identifiers, with columns that a promise speaks of, and how many rows each stands for.

    `columns` are all that the files have; how many rows were `suppressed` they do not tell.
    """

    lines: Any
    schema: Schema
    counts: Ints
    columns: tuple[str, ...]
    suppressed: int = 0

    @classmethod
    def read(
        cls, relation: Relation, schema: Schema, columns: Sequence[str], *, limit: int | None = None
    ) -> PublishedCounts:
        """Count the quasi-identifiers as they were written, with these other columns."""
        names = [*schema.names("quasi"), *(n for n in columns if n)]
        if lost := [n for n in names if n not in relation.kinds]:
            raise SchemaError(f"The release lacks columns that are asked about: {listed(lost)}.")
        found = relation.grouped(names, limit=limit)
        if found is None:
            must = f"enough for the classes of the release, of which there are more than {limit:,}"
            raise bad_parameter("Table.scan", "memory", must, "less", "Give more (--memory).")
        if not found.num_rows:
            raise SchemaError("The release has no rows.")
        return cls(found, schema, found[COUNT].to_numpy(), tuple(relation.kinds))

    def __len__(self) -> int:
        return int(self.counts.sum())

    def classes(self) -> Ints:
        """A number for each line, equal where the published quasi-identifiers are."""
        return order_lines(self.lines.select(self.schema.names("quasi")))[0]

    def column(self, name: str) -> pd.Series:
        """One released column that is not generalised."""
        values: pd.Series = as_table(self.lines.select([name]), self.schema).frame[name]
        return canonical_series(values, self.schema[name].values)

    @property
    def identifiers(self) -> list[str]:
        """Identifiers that should not be there."""
        return [n for n in self.schema.names("identifier") if n in self.columns]

    @property
    def undeclared(self) -> list[str]:
        """Columns that the schema does not know: nobody has said whether they point at people."""
        return [n for n in self.columns if n not in self.schema]


def count_published(
    sources: Sources,
    schema: Schema,
    columns: Sequence[str] = (),
    *,
    engine: str = "memory",
    memory: int | str = "2 GB",
    threads: int | None = None,
    master: str | None = None,
    suppressed: int = 0,
) -> PublishedCounts:
    """The counts of published Parquet files, ours or anybody's, that hold at least the quasi-identifiers.

    `columns` are counted with them, such as the target for :func:`countervail.measure.classification_metric`;
    `suppressed` is how many rows were left out, where that is known.
    """
    if not schema.names("quasi"):
        raise SchemaError("The schema declares no quasi-identifier. Give columns the role 'quasi'.")
    relation, room = open_relation(sources, engine, memory, threads, None, master)
    try:
        limit = None if relation.here else room_for(room, len(schema.names("quasi")) + len(columns))
        return replace(PublishedCounts.read(relation, schema, columns, limit=limit), suppressed=suppressed)
    finally:
        relation.close()
