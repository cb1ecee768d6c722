"""DuckDB: files larger than memory on one machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from countervail.core.errors import CountervailError, DataNotFoundError, ParameterError, SchemaError, bad_parameter
from countervail.engine.files.sources import Sources, common_kinds, find_files, is_url, settled_kinds
from countervail.engine.sql import Dialect, SqlRelation

_SHARE = 0.6  # of the memory that is given, for the engine itself; the rest is for what comes out of it
_BATCH = 1 << 17
_SPARSE = 8  # times as many numbers as there are rows may lie between the least and the greatest
_BITS = 1 << 30


def open_duckdb(sources: Sources, *, memory: int, threads: int | None) -> DuckRelation:
    """Rows of Parquet files, read by DuckDB."""
    files = find_files(sources)
    local = [f for f in files if not is_url(f)]
    kinds = common_kinds(local) if local else {}
    dialect = DuckDialect(memory=memory, threads=threads)
    source = dialect.files(files)
    if len(local) < len(files):
        kinds = settled_kinds(dialect.table(f"SELECT * FROM {source} LIMIT 0").schema)
    return DuckRelation(dialect, source, kinds)


class DuckRelation(SqlRelation):
    """Rows that DuckDB reads."""

    def most_equal(self, column: str) -> int:
        """How often the most frequent value occurs; keys that number the rows are told by a bit each."""
        low, high, filled = self._whole_range(column)
        if filled and high - low < min(_SPARSE * filled, _BITS):
            seen = np.zeros(high - low + 1, bool)
            for batch in self.dialect.batches(f"SELECT {self.value(column)} AS v FROM {self.source}"):
                seen[batch.column(0).drop_null().to_numpy() - low] = True
            if int(np.count_nonzero(seen)) == filled:
                return 1
        return super().most_equal(column)

    def _whole_range(self, column: str) -> tuple[int, int, int]:
        """The least and the greatest of a column of whole numbers, and how many there are; nothing of others."""
        import pyarrow as pa

        if self._kinds[column] != pa.int64():
            return 0, 0, 0
        v = self.value(column)
        found = self.dialect.table(
            f"SELECT min({v}) AS low, max({v}) AS high, count({v}) AS filled FROM {self.source}"
        ).to_pylist()[0]
        return int(found["low"] or 0), int(found["high"] or 0), int(found["filled"])


class DuckDialect(Dialect):
    """A database in this process: it holds the rows of a running query, and spills them to a folder of its own."""

    def __init__(self, *, memory: int, threads: int | None = None) -> None:
        try:
            import duckdb
        except ImportError:
            hint = "Install it: pip install 'countervail[scale]'."
            raise bad_parameter("Table.scan", "engine", "one that is installed", "duckdb", hint) from None
        self._spill = tempfile.mkdtemp(prefix="countervail-")
        weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        config: dict[str, Any] = {
            "memory_limit": f"{max(int(memory * _SHARE) >> 20, 1)}MiB",
            "temp_directory": self._spill,
            "preserve_insertion_order": "false",
        }
        if threads is not None:
            config["threads"] = int(threads)
        self._errors = duckdb.Error
        self._db = duckdb.connect(":memory:", config=config)
        self._lent = 0
        self._urls: list[str] = []
        self._local: list[str] = []

    def quote(self, name: str) -> str:
        """A column's name."""
        return '"' + name.replace('"', '""') + '"'

    def settled(self, column: str, kind: Any) -> str:
        """An expression for a column in its settled form."""
        import pyarrow as pa

        if pa.types.is_floating(kind):
            value = f"CAST({column} AS DOUBLE)"
            return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} + 0.0 END"
        if kind == pa.int64():
            return f"CAST({column} AS BIGINT)"
        if pa.types.is_string(kind):
            return f"CAST({column} AS VARCHAR)"
        return f"CAST({column} AS DATE)" if pa.types.is_date(kind) else column

    def table(self, query: str) -> Any:
        """Run a query; its rows as an Arrow table."""
        try:
            return self._db.sql(query).to_arrow_table()
        except self._errors as error:
            raise self._told(error) from None

    def batches(self, query: str) -> Generator[Any]:
        """Run a query; its rows as Arrow batches."""
        import pyarrow as pa

        reader = None
        try:
            reader = self._db.sql(query).to_arrow_reader(_BATCH)
            yield from reader
        except (self._errors, pa.ArrowException) as error:
            raise self._told(error) from None
        finally:
            if reader is not None:  # an open result would keep the database from everything else
                reader.close()

    def lend(self, table: Any) -> str:
        """Make an Arrow table known to the engine."""
        self._lent += 1
        name = f"lent_{self._lent}"
        self._db.register(name, table)
        return name

    def take_back(self, name: str) -> None:
        """Forget a table that was lent."""
        self._db.unregister(name)

    def keep(self, query: str) -> str:
        """Keep the rows of a query in the database, which spills what memory cannot hold."""
        self._lent += 1
        name = f"kept_{self._lent}"
        try:
            self._db.execute(f"CREATE TEMP TABLE {name} AS {query}")
        except self._errors as error:
            raise self._told(error) from None
        return name

    def drop(self, name: str) -> None:
        """Drop a kept table."""
        self._db.execute(f"DROP TABLE {name}")

    def hashed(self, key: bytes, expressions: Sequence[str]) -> str:
        """DuckDB's own hash: the order it gives tells nothing whatever the function is."""
        return f"hash('{key.hex()}', {', '.join(expressions)})"

    def files(self, files: Sequence[str]) -> str:
        """What a query reads Parquet files from."""
        self._urls += [f for f in files if is_url(f)]
        self._local += [f for f in files if not is_url(f)]
        quoted = ", ".join("'" + f.replace("'", "''") + "'" for f in files)
        return f"read_parquet([{quoted}], union_by_name = true, hive_partitioning = false)"

    def close(self) -> None:
        """End the database, and remove what it spilled."""
        self._db.close()
        shutil.rmtree(self._spill, ignore_errors=True)

    def _damaged(self) -> str | None:
        """The first file that cannot be read to its end; looked for once something has failed."""
        for file in self._local:
            quoted = file.replace("'", "''")
            try:
                self._db.execute(f"SELECT count(hash(t)) FROM read_parquet('{quoted}') AS t").fetchall()
            except self._errors:
                return os.path.basename(file)
        return None

    def _told(self, error: Exception) -> CountervailError:
        """The engine's error in words of ours: its own may hold values of a row."""
        kind, text = type(error).__name__, str(error)
        if "OutOfMemory" in kind:
            return ParameterError(
                "DuckDB needs more memory than it may take. Give more with memory='...' (--memory), or make room for "
                "temporary files (TMPDIR)."
            )
        if "httpfs" in text or "HTTP" in kind or "://" in text:
            url = next((u.partition("?")[0] for u in self._urls), "the URL")
            return DataNotFoundError(f"DuckDB cannot read {url}: it cannot be reached, or its extension is not there.")
        if "No space left" in text or self._spill in text:
            return CountervailError(
                "DuckDB cannot write its temporary files (a full disk?). Set TMPDIR to another place."
            )
        if (file := self._damaged()) is not None:
            return SchemaError(f"DuckDB cannot read the data: the file '{file}' is damaged.")
        return SchemaError(f"DuckDB cannot work on the data ({kind}).")
