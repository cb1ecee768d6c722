"""Spark: rows on a cluster. Sessions are the user's own, classic or Connect, or are started for a master."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from countervail.core.errors import SchemaError, bad_parameter
from countervail.engine.files.sources import Sources, common_kinds, find_files, is_url, read_footer, settled_kinds
from countervail.engine.interface import COUNT, LABEL, ROWS_PER_FILE, Labelling, Work
from countervail.engine.pool import small
from countervail.engine.spark.kept_lines import KeptLines, sampled, worth_keeping
from countervail.engine.spark.session import Pinned, quiet, started, usable_session
from countervail.engine.sql import Dialect, SqlRelation

_BATCH = 2048  # rows of a batch that Python works on
_FILE = 1_000_000  # rows of a file that one task writes
_PLACE = "__place"  # where a line stands: a hash of itself and a key
_RUN = 4096  # times that a line is repeated at once
_ENDING = 50  # looks at a folder that a task may still be writing to


def open_spark(
    sources: Sources | Any,
    *,
    memory: int,
    threads: int | None,
    session: Any = None,
    master: str | None = None,
) -> SparkRelation:
    """Rows of Parquet files, of a table that Spark knows, or of a Spark DataFrame."""
    frame = sources if hasattr(sources, "sparkSession") else None
    files = None if frame is not None or _is_table(sources) else find_files(sources)
    local = [f for f in files or () if not is_url(f)]
    kinds = common_kinds(local) if local else {}
    check_kinds(kinds)
    if frame is not None:
        session = frame.sparkSession
    held = usable_session(session) if session is not None else started(master, threads=threads, memory=memory)
    dialect = SparkDialect(held, stop=session is None)
    if files is not None:
        source = dialect.files(files)
    else:
        source = dialect.known(frame if frame is not None else dialect.reading(str(sources).removeprefix("table:")))
    if len(local) != len(files or ("",)):
        kinds = settled_kinds(dialect.fields(source))
    return SparkRelation(dialect, source, kinds)


def check_kinds(kinds: Mapping[str, Any]) -> None:
    """What Parquet can hold and Spark cannot read."""
    for name, kind in kinds.items():
        if str(kind).startswith("timestamp[ns"):
            raise SchemaError(
                f"Column '{name}' counts time in nanoseconds, which Spark cannot read. Write it in microseconds, or "
                f"use another engine."
            )


def _is_table(sources: Any) -> bool:
    return isinstance(sources, str) and sources.startswith("table:")


class SparkDialect(Dialect):
    """How Spark spells SQL; its settings are pinned while a query runs, and are the user's own again afterwards."""

    def __init__(self, session: Any, *, stop: bool) -> None:
        self.session, self._stop = session, stop
        self._views: list[str] = []

    def quote(self, name: str) -> str:
        """A column's name."""
        return "`" + name.replace("`", "``") + "`"

    def settled(self, column: str, kind: Any) -> str:
        """An expression for a column in its settled form."""
        import pyarrow as pa

        if pa.types.is_floating(kind):
            value = f"CAST({column} AS DOUBLE)"
            return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} + 0.0D END"
        if kind == pa.int64():
            return f"CAST({column} AS BIGINT)"
        if kind == pa.uint64():
            return f"CAST({column} AS DECIMAL(20, 0))"
        if pa.types.is_string(kind):
            return f"(CAST({column} AS STRING) COLLATE UTF8_BINARY)"
        return f"CAST({column} AS DATE)" if pa.types.is_date(kind) else column

    def table(self, query: str) -> Any:
        """Run a query; its rows as an Arrow table."""
        with self.pinned():
            return self.session.sql(query).toArrow()

    def batches(self, query: str) -> Generator[Any]:
        """Run a query; its rows as Arrow batches."""
        yield from self.table(query).to_batches()

    def lend(self, table: Any) -> str:
        """Make an Arrow table known to Spark, which sends it to every worker."""
        with self.pinned():
            return self.known(self.session.createDataFrame(_signed(table)).hint("broadcast"))

    def known(self, frame: Any) -> str:
        """Make a DataFrame known by a name of its own."""
        name = f"countervail_{secrets.token_hex(8)}"
        with self.pinned():
            frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def take_back(self, name: str) -> None:
        """Forget a table that was lent."""
        self._views.remove(name)
        with self.pinned():
            self.session.catalog.dropTempView(name)

    def keep(self, query: str) -> str:
        """Keep the rows of a query on the workers, who make them anew where one of them is lost."""
        with self.pinned():
            name = self.known(self.session.sql(query))
            self.session.sql(f"CACHE TABLE {name}")
        return name

    def drop(self, name: str) -> None:
        """Give back what was kept."""
        with self.pinned():
            self.session.sql(f"UNCACHE TABLE IF EXISTS {name}")
        self.take_back(name)

    def hashed(self, key: bytes, expressions: Sequence[str]) -> str:
        """Spark's own hash: the order it gives tells nothing whatever the function is."""
        return f"xxhash64('{key.hex()}', {', '.join(expressions)})"

    def files(self, files: Sequence[str]) -> str:
        """Files whose columns are stored alike are read together: one may have 32 bits where another has 64."""
        stored = [(f, "" if is_url(f) else str(read_footer(f).remove_metadata())) for f in files]
        alike = [[f for f, _ in held] for _, held in groupby(sorted(stored, key=lambda s: s[1]), lambda s: s[1])]
        with self.pinned():
            frames = [self.session.read.parquet(*(_as_uri(f) for f in held)) for held in alike]
            whole = frames[0]
            if len(frames) > 1:
                kinds = settled_kinds(read_footer(files[0]))
                shown = [f"{self.settled(self.quote(n), kind)} AS {self.quote(n)}" for n, kind in kinds.items()]
                whole = reduce(lambda a, b: a.unionByName(b), [f.selectExpr(*shown) for f in frames])
        return self.known(whole)

    def reading(self, name: str) -> Any:
        """A table of the catalogue."""
        with self.pinned():
            return self.session.table(name)

    def fields(self, source: str) -> Any:
        """The Arrow schema of what Spark reads."""
        return self.table(f"SELECT * FROM {source} LIMIT 0").schema

    def plain(self, source: str) -> frozenset[str]:
        """Columns that are stored in their settled form: texts compared by bytes, whole numbers of 64 bits, days."""
        with self.pinned():
            fields = self.session.table(source).schema.fields
        return frozenset(f.name for f in fields if f.dataType.simpleString() in ("string", "bigint", "date"))

    def pinned(self) -> Any:
        """Settings that answers depend on, and errors in our words, while something runs."""
        return Pinned(self.session)

    def close(self) -> None:
        """Forget all views; end the session if it was started for this."""
        for name in list(self._views):
            self.drop(name)
        if self._stop:
            with quiet():
                self.session.stop()


class SparkRelation(SqlRelation):
    """Rows that Spark reads; what is written is written by its workers."""

    dialect: SparkDialect

    def __init__(self, dialect: SparkDialect, source: str, kinds: Mapping[str, Any]) -> None:
        super().__init__(dialect, source, kinds)
        self._plain = dialect.plain(source)
        self._lines: KeptLines | None = None

    def value(self, column: str) -> str:
        """A column's settled value; what is stored as it is settled is read as it is."""
        quoted = self.dialect.quote(column)
        return quoted if column in self._plain else self.dialect.settled(quoted, self._kinds[column])

    def expect(self, columns: Sequence[str]) -> None:
        """Keep distinct rows until they are written, if a look at some says that there are far fewer of them."""
        named = ", ".join(f"{self.value(n)} AS {self.dialect.quote(n)}" for n in columns)
        if worth_keeping(self.dialect.table(sampled(f"SELECT {named} FROM {self.source}"))):
            self._lines = KeptLines(self.dialect, super().counted(columns), columns)

    def counted(self, columns: Iterable[str]) -> str:
        """The query for distinct combinations and their counts."""
        columns = list(columns)
        kept = self._lines
        held = kept is not None and len(columns) > 1 and kept.columns.issuperset(columns)
        return kept.counted(columns) if kept is not None and held else super().counted(columns)

    def write(self, labelling: Labelling, folder: Path, *, key: bytes, rows_per_file: int = ROWS_PER_FILE) -> None:
        """Write the published rows: which file a row stands in, and where, follows from itself and the key."""
        import pyarrow as pa

        if wide := [n for n in labelling.others if self._kinds[n] == pa.uint64()]:
            raise SchemaError(f"Spark cannot write whole numbers of 64 bits without a sign: {wide}. Make them text.")
        dialect, q = self.dialect, self.dialect.quote
        there = isinstance(labelling.lookup, str)
        lookup = labelling.lookup if there else dialect.lend(labelling.lookup)
        labels, more = dialect.lend(_numbered(labelling.labels)), None
        try:
            met = " AND ".join(f"r.{q(n)} IS NOT DISTINCT FROM l.{q(n)}" for n in labelling.keys)
            shown = ", ".join([f"l.{LABEL}", *(f"r.{q(n)}" for n in labelling.others)])
            rows = self._lines_of(list(dict.fromkeys((*labelling.keys, *labelling.others))))
            joined = f"SELECT {shown}, r.{COUNT} FROM ({rows}) AS r JOIN {lookup} AS l ON {met}"
            names = [LABEL, *(q(n) for n in labelling.others)]
            if labelling.lines is not None:
                more = dialect.lend(labelling.lines)
                joined = f"{joined} UNION ALL SELECT {', '.join(names)}, {COUNT} FROM {more}"
            hashed = f"{dialect.hashed(key, names)} AS {_PLACE}"
            told = ", ".join(names)
            counted = f"SELECT {told}, {hashed}, sum({COUNT}) AS {COUNT} FROM ({joined}) AS j GROUP BY {told}"
            with dialect.pinned():
                parts = max(-(-self.count() // min(rows_per_file, _FILE)), 1)
                lines = dialect.session.sql(counted).repartition(parts, _PLACE)
                # Sorted after the join: Spark takes sorts below one for idle, and leaves them out.
                named = lines.join(dialect.session.table(labels), LABEL).sortWithinPartitions(_PLACE, *names)
                write_frame(_repeated(named, [q(n) for n in labelling.names]), folder, rows_per_file)
        finally:
            dialect.take_back(labels)
            if more is not None:
                dialect.take_back(more)
            if not there:
                dialect.take_back(lookup)
            if self._lines is not None:
                self._lines.drop()
                self._lines = None

    def _lines_of(self, columns: Sequence[str]) -> str:
        """The query for rows and how often each is there: kept lines, or row by row."""
        told = [self.dialect.quote(n) for n in columns]
        if self._lines is not None and self._lines.columns.issuperset(columns):
            return f"SELECT {', '.join(told)}, {COUNT} FROM {self._lines.name}"
        read = ", ".join(f"{self.value(n)} AS {q}" for n, q in zip(columns, told))
        return f"SELECT {read}, 1 AS {COUNT} FROM {self.source}"

    def worked_on(
        self, columns: Sequence[str], work: Work, fields: Any, folder: Path, *, jobs: int | None = None
    ) -> None:
        """Write what `work` makes of batches of rows, on the workers."""
        with self.dialect.pinned():
            session = self.dialect.session
            shown = ", ".join(f"{self.value(n)} AS {self.dialect.quote(n)}" for n in columns)
            most = int(session.conf.get("spark.sql.shuffle.partitions"))
            parts = max(min(-(-self.count() // _BATCH * 4), most), 1)
            frame = session.sql(f"SELECT {shown} FROM {self.source}").repartition(parts, columns[0])
            with quiet():
                done = frame.mapInArrow(InBatches(work, small), _ddl(fields))
            write_frame(done, folder, ROWS_PER_FILE)

    def spread(self, work: Work, parts: Sequence[bytes], *, jobs: int | None = None) -> list[bytes]:
        """What `work` makes of each part, on the workers; of parts that were worked on twice, one result comes back."""
        import pyarrow as pa

        table = pa.table({"at": pa.array(range(len(parts)), pa.int64()), "part": pa.array(parts, pa.binary())})
        with self.dialect.pinned():
            frame = self.dialect.session.createDataFrame(table).repartition(len(parts), "at")
            with quiet():
                done = frame.mapInArrow(OnParts(work), "at bigint, part binary").toArrow()
        found = dict(zip(done["at"].to_pylist(), done["part"].to_pylist()))
        return [found[i] for i in range(len(parts))]

    def reopened(self, folder: Path) -> Self:
        """The Parquet files of a folder, read by Spark."""
        files = find_files(folder)
        return type(self)(self.dialect, self.dialect.files(files), common_kinds(files))


class InBatches:
    """Work on Arrow batches, as a task of Spark does it."""

    def __init__(self, work: Work, cut: Any) -> None:
        self.work, self.cut = work, cut

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in self.cut(batches):
            yield from self.work(batch).to_batches()


class OnParts:
    """Work on numbered parts, as a task of Spark does it."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            done = [self.work(part.as_py()) for part in batch.column("part")]
            yield pa.record_batch({"at": batch.column("at"), "part": pa.array(done, pa.binary())})


def write_frame(frame: Any, folder: Path, rows_per_file: int) -> None:
    """Write a DataFrame's partitions, in their order, as `part-00000.parquet` and so on.

    Spark's workers write into a folder inside; a task that was run twice leaves one file.
    """
    inside = folder / "written"
    options = {"maxRecordsPerFile": rows_per_file, "mapreduce.fileoutputcommitter.algorithm.version": 1}
    frame.write.options(**options, compression="snappy").mode("error").parquet(_as_uri(str(inside)))
    if not (inside / "_SUCCESS").is_file():
        must = "on a file system that the driver and all workers share"
        raise bad_parameter("write", "folder", must, folder.name)
    import pyarrow.parquet as pq

    files = sorted(f for f in inside.iterdir() if f.name.endswith(".parquet") and not f.name.startswith("."))
    held = [f for f in files if pq.read_metadata(f).num_rows] or files[:1]
    for i, file in enumerate(held):
        os.rename(file, folder / f"part-{i:05d}.parquet")
    _clear(inside)


def _clear(inside: Path) -> None:
    """Remove what is left; a task that was run twice may still be ending, and put a folder of its own there anew."""
    for _ in range(_ENDING):
        shutil.rmtree(inside, ignore_errors=True)
        if not inside.exists():
            return
        time.sleep(0.1)
    shutil.rmtree(inside)


def _repeated(lines: Any, names: Sequence[str]) -> Any:
    """Each line as often as it counts, in the same order; no task holds a long list for a line that counts much."""
    whole = lines.selectExpr(*names, COUNT, f"explode(sequence(0, CAST(({COUNT} - 1) DIV {_RUN} AS INT))) AS __run")
    left = f"CAST(least({_RUN}, {COUNT} - __run * {_RUN}) AS INT)"
    return whole.selectExpr(*names, f"explode(sequence(1, {left})) AS __one").select(*names)


def _as_uri(file: str) -> str:
    """A path as Spark takes it for what it is: no pattern, and no other file system's."""
    return file if is_url(file) else Path(file).absolute().as_uri()


def _signed(table: Any) -> Any:
    """An Arrow table that Spark takes: it has no whole numbers without a sign, and no dictionaries."""
    import pyarrow as pa

    def plain(kind: Any) -> Any:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        kind = pa.string() if pa.types.is_null(kind) else kind
        return pa.decimal128(20, 0) if pa.types.is_uint64(kind) else kind

    return table.cast(pa.schema([pa.field(f.name, plain(f.type)) for f in table.schema]))


def _numbered(labels: Any) -> Any:
    """Labels with their places."""
    import pyarrow as pa

    return labels.append_column(LABEL, pa.array(range(labels.num_rows), pa.int64()))


def _ddl(fields: Any) -> str:
    """Arrow's fields as Spark's schema; texts, whole and other numbers are all that answers have."""
    import pyarrow as pa

    kinds = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN"}
    return ", ".join(f"`{f.name.replace('`', '``')}` {kinds[f.type]}" for f in fields)
