"""What an engine does, as SQL text written once; a dialect says how its engine spells and runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from countervail.core.errors import bad_parameter
from countervail.engine.files.parts import write_parts
from countervail.engine.interface import CODE, COUNT, LABEL, ROWS_PER_FILE, Labelling, Relation, Work
from countervail.engine.pool import spread_over, work_on


class Dialect(ABC):
    """How one engine spells SQL and runs it; errors of the engine leave as ours, without a row in them."""

    @abstractmethod
    def quote(self, name: str) -> str:
        """A column's name."""

    @abstractmethod
    def settled(self, column: str, kind: Any) -> str:
        """An expression for a (quoted) column in its settled form."""

    @abstractmethod
    def table(self, query: str) -> Any:
        """Run a query; its rows as an Arrow table."""

    @abstractmethod
    def batches(self, query: str) -> Generator[Any]:
        """Run a query; its rows as Arrow batches in the query's order, never all at once."""

    @abstractmethod
    def lend(self, table: Any) -> str:
        """Make an Arrow table known to the engine; the name by which queries call it."""

    @abstractmethod
    def take_back(self, name: str) -> None:
        """Forget a table that was lent."""

    def keep(self, query: str) -> str:
        """Keep the rows of a query in the engine, not here; the name by which queries call them."""
        must = "enough for all distinct rows: this engine does not keep them"
        raise bad_parameter("Table.scan", "memory", must, "less", "Give more (--memory), or take another engine.")

    def drop(self, name: str) -> None:  # noqa: B027 -- nothing was kept
        """Give back what was kept."""

    @abstractmethod
    def hashed(self, key: bytes, expressions: Sequence[str]) -> str:
        """An expression for a hash of a key and of values, missing ones included."""

    @abstractmethod
    def files(self, files: Sequence[str]) -> str:
        """What a query reads Parquet files from."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the engine holds."""


class SqlRelation(Relation):
    """Rows of a table, a view or files that an engine reads by SQL."""

    here = False

    def __init__(self, dialect: Dialect, source: str, kinds: Mapping[str, Any]) -> None:
        self.dialect, self.source, self._kinds = dialect, source, dict(kinds)

    @property
    def kinds(self) -> Mapping[str, Any]:
        """The settled Arrow type of each column."""
        return self._kinds

    def count(self) -> int:
        """How many rows there are."""
        return int(self.dialect.table(f"SELECT count(*) AS {COUNT} FROM {self.source}")[COUNT][0].as_py())

    def grouped(self, columns: Sequence[str], *, limit: int | None = None) -> Any:
        """The distinct combinations of some columns, and how often each occurs."""
        end = "" if limit is None else f" LIMIT {limit + 1}"
        found = self.dialect.table(f"{self.counted(columns)}{end}")
        return None if limit is not None and found.num_rows > limit else self.as_settled(found)

    def expect(self, columns: Sequence[str]) -> None:
        """Nothing is kept."""

    def recoded(self, dictionaries: Mapping[str, Any], *, limit: int | None = None) -> Any:
        """The distinct combinations of codes of some columns, and how often each occurs."""
        import pyarrow as pa

        q, lent = self.dialect.quote, {n: self.dialect.lend(d) for n, d in dictionaries.items()}
        try:
            read = ", ".join(f"{self.value(n)} AS {q(n)}" for n in lent)
            joins = " ".join(
                f"JOIN {name} AS d{j} ON r.{q(n)} IS NOT DISTINCT FROM d{j}.{q(n)}"
                for j, (n, name) in enumerate(lent.items())
            )
            shown = ", ".join(f"d{j}.{CODE} AS {q(n)}" for j, n in enumerate(lent))
            by = ", ".join(f"d{j}.{CODE}" for j in range(len(lent)))
            end = "" if limit is None else f" LIMIT {limit + 1}"
            rows = f"(SELECT {read} FROM {self.source}) AS r"
            found = self.dialect.table(f"SELECT {shown}, count(*) AS {COUNT} FROM {rows} {joins} GROUP BY {by}{end}")
        finally:
            for name in lent.values():
                self.dialect.take_back(name)
        if limit is not None and found.num_rows > limit:
            return None
        return found.cast(pa.schema([(n, pa.int64()) for n in found.column_names]))

    def extremes(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value."""
        value = self.value(column)
        found = self.dialect.table(f"SELECT min({value}) AS low, max({value}) AS high FROM {self.source}")
        return found["low"][0].as_py(), found["high"][0].as_py()

    def quantile(self, column: str, rank: int) -> Any:
        """The value that has exactly `rank` of the values that are there before it."""
        name = self.dialect.quote(column)
        sums = (
            f"SELECT {name}, sum({COUNT}) OVER (ORDER BY {name} ROWS UNBOUNDED PRECEDING) AS upto "
            f"FROM ({self.counted([column])}) AS counted WHERE {name} IS NOT NULL"
        )
        found = self.dialect.table(f"SELECT min({name}) AS value FROM ({sums}) AS summed WHERE upto > {int(rank)}")
        return found["value"][0].as_py()

    def most_equal(self, column: str) -> int:
        """How often the most frequent value occurs."""
        value = self.value(column)
        counts = f"SELECT count(*) AS {COUNT} FROM {self.source} WHERE {value} IS NOT NULL GROUP BY {value}"
        found = self.dialect.table(f"SELECT max({COUNT}) AS most FROM ({counts}) AS counted")["most"][0].as_py()
        return int(found or 1)

    def alone(self, column: str) -> tuple[int, int]:
        """How many values occur once, and how many rows have a value."""
        value = self.value(column)
        counts = f"SELECT count(*) AS {COUNT} FROM {self.source} WHERE {value} IS NOT NULL GROUP BY {value}"
        once = f"sum(CASE WHEN {COUNT} = 1 THEN 1 ELSE 0 END)"
        found = self.dialect.table(f"SELECT {once} AS once, sum({COUNT}) AS filled FROM ({counts}) AS counted")
        return int(found["once"][0].as_py() or 0), int(found["filled"][0].as_py() or 0)

    def write(self, labelling: Labelling, folder: Path, *, key: bytes, rows_per_file: int = ROWS_PER_FILE) -> None:
        """Write the published rows in the order of a keyed hash of themselves."""
        lent = [] if isinstance(labelling.lookup, str) else [self.dialect.lend(labelling.lookup)]
        if labelling.lines is not None:
            lent.append(self.dialect.lend(labelling.lines))
        lookup = labelling.lookup if isinstance(labelling.lookup, str) else lent[0]
        try:
            query = self.published(labelling, lookup, key, lent[-1] if labelling.lines is not None else None)
            with closing(self.dialect.batches(query)) as lines:
                write_parts(lines, labelling, self._kinds, folder, rows_per_file)
        finally:
            for name in lent:
                self.dialect.take_back(name)

    def labelled(self, labelling: Labelling, *, limit: int | None = None) -> Any:
        """Label, other columns and how often both occur."""
        lookup = self.dialect.lend(labelling.lookup)
        end = "" if limit is None else f" LIMIT {limit + 1}"
        try:
            found = self.dialect.table(f"{self.label_lines(labelling, lookup)}{end}")
        finally:
            self.dialect.take_back(lookup)
        return None if limit is not None and found.num_rows > limit else self.as_settled(found)

    def rows(self, columns: Sequence[str], *, limit: int | None = None) -> Iterator[Any]:
        """The rows themselves, as Arrow batches of settled values."""
        import pyarrow as pa

        fields = pa.schema([(n, self._kinds[n]) for n in columns])
        named = ", ".join(f"{self.value(n)} AS {self.dialect.quote(n)}" for n in columns)
        end = "" if limit is None else f" LIMIT {limit}"
        for batch in self.dialect.batches(f"SELECT {named} FROM {self.source}{end}"):
            yield batch.cast(fields)

    def worked_on(
        self, columns: Sequence[str], work: Work, fields: Any, folder: Path, *, jobs: int | None = None
    ) -> None:
        """Write what `work` makes of batches of rows."""
        work_on(self.rows(columns), work, fields, folder, jobs)

    def spread(self, work: Work, parts: Sequence[bytes], *, jobs: int | None = None) -> list[bytes]:
        """What `work` makes of each part."""
        return spread_over(work, parts, jobs)

    def reopened(self, folder: Path) -> Self:
        """The Parquet files of a folder, in the same engine."""
        from countervail.engine.files.sources import common_kinds, find_files

        files = find_files(folder)
        return type(self)(self.dialect, self.dialect.files(files), common_kinds(files))

    def close(self) -> None:
        """Give back what the engine holds."""
        self.dialect.close()

    def value(self, column: str) -> str:
        """A column's settled value."""
        return self.dialect.settled(self.dialect.quote(column), self._kinds[column])

    def as_settled(self, found: Any) -> Any:
        """An answer of the engine with the settled types, and counts as 64 bits."""
        import pyarrow as pa

        kinds = [self._kinds.get(n, pa.int64()) for n in found.column_names]
        return found.cast(pa.schema(list(zip(found.column_names, kinds))))

    def counted(self, columns: Iterable[str]) -> str:
        """The query for distinct combinations and their counts."""
        columns = list(columns)
        values = [self.value(n) for n in columns]
        named = ", ".join(f"{v} AS {self.dialect.quote(n)}" for n, v in zip(columns, values))
        return f"SELECT {named}, count(*) AS {COUNT} FROM {self.source} GROUP BY {', '.join(values)}"

    def label_lines(self, labelling: Labelling, lookup: str, more: str | None = None) -> str:
        """The query for label, other columns and how many rows are so, with more such lines that are there already."""
        q = self.dialect.quote
        met = " AND ".join(f"r.{q(n)} IS NOT DISTINCT FROM l.{q(n)}" for n in labelling.keys)
        shown = ", ".join([LABEL, *(q(n) for n in labelling.others)])
        rows = self.counted(dict.fromkeys((*labelling.keys, *labelling.others)))
        picked = ", ".join([f"l.{LABEL} AS {LABEL}", *(f"r.{q(n)} AS {q(n)}" for n in labelling.others)])
        joined = f"SELECT {picked}, r.{COUNT} AS {COUNT} FROM ({rows}) AS r JOIN {lookup} AS l ON {met}"
        if more is not None:
            joined = f"{joined} UNION ALL SELECT {shown}, {COUNT} FROM {more}"
        return f"SELECT {shown}, sum({COUNT}) AS {COUNT} FROM ({joined}) AS j GROUP BY {shown}"

    def published(self, labelling: Labelling, lookup: str, key: bytes, more: str | None = None) -> str:
        """The query for the published rows: label, other columns and how many rows are so, in the order of the hash."""
        shown = [LABEL, *(self.dialect.quote(n) for n in labelling.others)]
        order = ", ".join([self.dialect.hashed(key, shown), *shown])
        return f"SELECT * FROM ({self.label_lines(labelling, lookup, more)}) AS p ORDER BY {order}"
