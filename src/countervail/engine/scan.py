"""Scan: rows that stay where they are, and what is publicly known about their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.errors import SchemaError, bad_parameter, listed
from countervail.core.schema import Schema
from countervail.core.table import Table, declared_schema
from countervail.engine.files.sources import Sources
from countervail.engine.interface import COUNT, Relation

# Where each engine is opened; what it needs is imported when it is chosen.
_ENGINES: Final = {
    "memory": ("memory", "open_memory"),
    "duckdb": ("duckdb", "open_duckdb"),
    "spark": ("spark", "open_spark"),
}
_CLUSTER: Final = "spark"  # takes a session or a master
_UNITS: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BINARY: Final = {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_LEAST: Final = 32 * 10**6
_TUPLE: Final = 160  # bytes that a distinct row takes while it is cut, beside those of its columns
_VALUE: Final = 48


def engines() -> tuple[str, ...]:
    """The names of the engines."""
    return tuple(_ENGINES)


@dataclass(frozen=True, eq=False, slots=True)
class Distinct:
    """Distinct rows and how often each occurs: as the engine gave them (`raw`), and as a table in the same order."""

    raw: Any
    table: Table
    counts: Ints


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Scan:
    """Rows in an engine and their schema; nothing is read but what is asked for, and nothing is held.

    Examples
    --------
    >>> import tempfile, pandas as pd, countervail as cv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/people.parquet"
    ...     pd.DataFrame({"age": [30, 30, 41], "city": ["Ghent", "Ghent", "Bruges"]}).to_parquet(path)
    ...     rows = cv.Table.scan(path, quasi_identifiers=["age", "city"])
    ...     print(rows, rows.distinct(["age", "city"]).counts.tolist())
    Scan(3 rows; memory; quasi: age, city) [2, 1]
    """

    relation: Relation
    schema: Schema
    engine: str
    memory: int

    def __len__(self) -> int:
        return self.relation.count()

    def __repr__(self) -> str:
        quasi = ", ".join(self.schema.names("quasi"))
        return f"Scan({len(self):,} rows; {self.engine}; quasi: {quasi})"

    def budget(self, columns: int) -> int:
        """How many distinct rows of so many columns may come out of the engine."""
        return room_for(self.memory, columns)

    def distinct(self, columns: Iterable[str], *, limit: int | None = None) -> Distinct | None:
        """The distinct combinations of some columns with their counts; None where there are more than `limit`."""
        names = list(columns)
        raw = self.relation.grouped(names, limit=limit)
        if raw is None:
            return None
        counts: Ints = raw[COUNT].to_numpy()
        raw = raw.drop_columns([COUNT])
        return Distinct(raw, as_table(raw, self.schema), counts)

    def rows_per_person(self) -> tuple[int, tuple[str, ...]]:
        """How many rows one person has at most by the identifiers, and by which; 1 where none is declared."""
        often = {n: self.relation.most_equal(n) for n in self.schema.names("identifier")}
        names = tuple(n for n, most in often.items() if most > 1)
        if len(names) > 1 or (names and len(often) > 1):
            hint = "Give the others no role of an identifier, or leave them out of the files."
            must = f"to have one identifier where somebody has several rows; here are {listed(list(often))}"
            raise SchemaError(f"The schema of a scan needs {must}. {hint}")
        return max(often.values(), default=1), names

    def close(self) -> None:
        """Give back what the engine holds."""
        self.relation.close()


def scan(
    sources: Sources,
    schema: Schema | str | Path | None = None,
    *,
    engine: str = "memory",
    memory: int | str = "2 GB",
    threads: int | None = None,
    session: Any = None,
    master: str | None = None,
    **roles: Any,
) -> Scan:
    """Look at rows without reading them; see :meth:`countervail.core.table.Table.scan`."""
    relation, room = open_relation(sources, engine, memory, threads, session, master)
    known = declared_schema(empty_frame(relation.kinds), schema, owner="Table.scan", **roles)
    if lost := [c.name for c in known if c.name not in relation.kinds]:
        extra = known.undeclared(relation.kinds)
        raise SchemaError(
            f"The data lacks columns that the schema names: {listed(lost)}. "
            f"Columns that the schema does not declare: {extra}"
        )
    if any(n not in known for n in relation.kinds):
        raise SchemaError(
            f"The schema does not declare these columns of the data: {known.undeclared(relation.kinds)}. "
            f"Declare or drop them."
        )
    return Scan(relation, known, engine, room)


def open_relation(
    sources: Sources, engine: str, memory: int | str, threads: int | None, session: Any, master: str | None
) -> tuple[Relation, int]:
    """Rows in an engine, and the bytes that may be taken."""
    if engine not in _ENGINES:
        raise bad_parameter("Table.scan", "engine", f"one of {engines()}", engine)
    where = {n: v for n, v in (("session", session), ("master", master)) if v is not None}
    if where and engine != _CLUSTER:
        raise bad_parameter("Table.scan", next(iter(where)), f"given with engine='{_CLUSTER}' only", engine)
    if len(where) > 1:
        raise bad_parameter("Table.scan", "master", "left out where a session is given", master)
    room = read_bytes(memory)
    module, door = _ENGINES[engine]
    relation: Relation = getattr(import_module(f"countervail.engine.{module}"), door)(
        sources, memory=room, threads=threads, **where
    )
    return relation, room


def room_for(memory: int, columns: int) -> int:
    """How many distinct rows of so many columns may come out of an engine."""
    return max(memory // 2 // (_TUPLE + _VALUE * columns), 1)


def read_bytes(memory: int | str) -> int:
    """A number of bytes from `2 GB`, `512MiB` or a whole number."""
    must = "a size such as '2 GB', of at least 32 MB"
    if isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    else:
        found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]{0,3})\s*", str(memory).lower())
        unit = None if found is None else {**_UNITS, **_BINARY, "": 1}.get(found[2])
        if found is None or unit is None:
            raise bad_parameter("Table.scan", "memory", must, memory)
        size = int(float(found[1]) * unit)
    if size < _LEAST:
        raise bad_parameter("Table.scan", "memory", must, memory)
    return size


def empty_frame(kinds: Any) -> pd.DataFrame:
    """No rows of these columns."""
    import pyarrow as pa

    frame: pd.DataFrame = pa.schema(list(kinds.items())).empty_table().to_pandas()
    return frame


def as_table(raw: Any, schema: Schema) -> Table:
    """Settled rows as a table of those columns that they have, checked as a file's rows are."""
    names = raw.column_names
    columns = tuple(c for c in schema if c.name in names)
    held = schema.target in names
    return Table(as_frame(raw), replace(schema, columns=columns, favourable=schema.favourable if held else ()))


def as_frame(raw: Any) -> pd.DataFrame:
    """Arrow's columns as pandas reads them from a file; whole numbers stay whole where some are missing."""
    import pyarrow as pa

    columns = {}
    for name, values in zip(raw.column_names, raw.columns):
        holes = bool(values.null_count) and pa.types.is_integer(values.type)
        columns[name] = values.to_pandas(types_mapper=_nullable if holes else None)
    return pd.DataFrame(columns, copy=False)


def _nullable(kind: Any) -> Any:
    import pyarrow as pa

    return pd.UInt64Dtype() if pa.types.is_uint64(kind) else pd.Int64Dtype()


def names_of(columns: Sequence[str | None]) -> list[str]:
    """The columns that are named, each once, in their order."""
    return list(dict.fromkeys(n for n in columns if n is not None))
