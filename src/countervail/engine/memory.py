"""Rows in this process: each column once, as codes of its distinct values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.errors import SchemaError
from countervail.engine.codes import all_differ, keyed_hash, number, sorted_values, whole_codes
from countervail.engine.files.parts import write_parts
from countervail.engine.files.sources import Sources, common_kinds, find_files
from countervail.engine.interface import CODE, COUNT, LABEL, ROWS_PER_FILE, Labelling, Relation, Work
from countervail.engine.pool import spread_over, work_on
from countervail.engine.settle import settle_column

_BATCH = 1 << 20


def open_memory(sources: Sources, *, memory: int, threads: int | None) -> MemoryRelation:
    """Rows of Parquet files, read into this process; what fits it is known to whoever chose it."""
    files = find_files(sources)
    return MemoryRelation(files, common_kinds(files))


class MemoryRelation(Relation):
    """Rows of Parquet files; a column is read when it is first asked for, and never an identifier nobody asks for."""

    here = True

    def __init__(self, files: Sequence[str], kinds: Mapping[str, Any]) -> None:
        self._files, self._kinds = list(files), dict(kinds)
        self._read: dict[str, tuple[Ints, Any]] = {}
        self._last: tuple[tuple[str, ...], tuple[Ints, Ints]] | None = None

    @property
    def kinds(self) -> Mapping[str, Any]:
        """The settled Arrow type of each column."""
        return self._kinds

    def count(self) -> int:
        """How many rows there are."""
        from pyarrow.parquet import ParquetFile

        total = 0
        for file in self._files:
            with ParquetFile(file) as opened:
                total += opened.metadata.num_rows
        return total

    def grouped(self, columns: Sequence[str], *, limit: int | None = None) -> Any:
        """The distinct combinations of some columns, and how often each occurs."""
        import pyarrow as pa

        which, first = self._numbered(columns)
        if limit is not None and len(first) > limit:
            return None
        held = {n: self._values(n, self._column(n)[0][first]) for n in columns}
        return pa.table({**held, COUNT: np.bincount(which, minlength=len(first)).astype(np.int64)})

    def expect(self, columns: Sequence[str]) -> None:
        """Rows are here anyway."""

    def recoded(self, dictionaries: Mapping[str, Any], *, limit: int | None = None) -> Any:
        """The distinct combinations of codes of some columns, and how often each occurs."""
        import pyarrow as pa

        columns = []
        for name, given in dictionaries.items():
            codes, values = self._column(name)
            table = np.zeros(len(values) + 2, np.int64)
            table[self._places(name, given[name])] = given[CODE].to_numpy()
            columns.append(table[codes])
        which, first = number(columns, [int(c.max(initial=0)) + 1 for c in columns])
        if limit is not None and len(first) > limit:
            return None
        held = {n: c[first] for n, c in zip(dictionaries, columns)}
        return pa.table({**held, COUNT: np.bincount(which, minlength=len(first)).astype(np.int64)})

    def extremes(self, column: str) -> tuple[Any, Any]:
        """The least and the greatest value."""
        import pyarrow.compute as pc

        found = pc.min_max(self._column(column)[1])
        return found["min"].as_py(), found["max"].as_py()

    def quantile(self, column: str, rank: int) -> Any:
        """The value that has exactly `rank` of the values that are there before it."""
        import pyarrow.compute as pc

        codes, values = self._column(column)
        order = pc.sort_indices(values).to_numpy()
        upto = np.cumsum(np.bincount(codes, minlength=len(values))[order])
        at = int(np.searchsorted(upto, rank, side="right"))
        return values[int(order[at])].as_py() if at < len(order) else None

    def most_equal(self, column: str) -> int:
        """How often the most frequent value occurs."""
        import pyarrow as pa

        if self._kinds[column] == pa.int64() and column not in self._read:
            chunks = [c.drop_null().to_numpy() for f in self._files for c in _read(f, column, pa.int64())]
            if all_differ([c for c in chunks if len(c)]):
                return 1
        codes, values = self._column(column)
        return int(np.bincount(codes, minlength=len(values) + 1)[: len(values)].max(initial=1))

    def alone(self, column: str) -> tuple[int, int]:
        """How many values occur once, and how many rows have a value."""
        codes, values = self._column(column)
        often = np.bincount(codes, minlength=len(values) + 1)[: len(values)]
        return int((often == 1).sum()), int(often.sum())

    def write(self, labelling: Labelling, folder: Path, *, key: bytes, rows_per_file: int = ROWS_PER_FILE) -> None:
        """Write the published rows in the order of a keyed hash of themselves."""
        write_parts(self._published(labelling, key), labelling, self._kinds, folder, rows_per_file)

    def rows(self, columns: Sequence[str], *, limit: int | None = None) -> Iterator[Any]:
        """The rows themselves, file by file."""
        import pyarrow as pa
        from pyarrow.parquet import ParquetFile

        left = limit
        for file in self._files:
            try:
                with ParquetFile(file) as opened:
                    for batch in opened.iter_batches(columns=list(columns)):
                        if left is not None:
                            batch, left = batch.slice(0, left), max(left - batch.num_rows, 0)
                        yield pa.record_batch({n: settle_column(batch.column(n), self._kinds[n]) for n in columns})
                        if left == 0:
                            return
            except (pa.ArrowException, OSError):
                raise SchemaError(f"The file '{Path(file).name}' is damaged, or not a Parquet file.") from None

    def worked_on(
        self, columns: Sequence[str], work: Work, fields: Any, folder: Path, *, jobs: int | None = None
    ) -> None:
        """Write what `work` makes of batches of rows."""
        work_on(self.rows(columns), work, fields, folder, jobs)

    def spread(self, work: Work, parts: Sequence[bytes], *, jobs: int | None = None) -> list[bytes]:
        """What `work` makes of each part."""
        return spread_over(work, parts, jobs)

    def reopened(self, folder: Path) -> MemoryRelation:
        """The Parquet files of a folder."""
        return open_memory(folder, memory=0, threads=None)

    def close(self) -> None:
        """Forget the columns."""
        self._read.clear()
        self._last = None

    def _column(self, name: str) -> tuple[Ints, Any]:
        """A column's codes (missing is the last), and its distinct values."""
        if name not in self._read:
            self._read[name] = _encoded(self._files, name, self._kinds[name])
        return self._read[name]

    def _values(self, name: str, codes: Ints) -> Any:
        import pyarrow as pa

        values = self._column(name)[1]
        return values.take(pa.array(codes, mask=codes == len(values)))

    def _numbered(self, columns: Sequence[str]) -> tuple[Ints, Ints]:
        """A number for each row, equal where these columns are, and one row of each number."""
        if self._last is None or self._last[0] != tuple(columns):
            read = [self._column(n) for n in columns]
            found = number([codes for codes, _ in read], [len(values) + 1 for _, values in read])
            self._last = tuple(columns), found
        return self._last[1]

    def labelled(self, labelling: Labelling, *, limit: int | None = None) -> Any:
        """Label, other columns and how often both occur."""
        import pyarrow as pa

        lines, counts = self._lines(labelling)
        if limit is not None and len(counts) > limit:
            return None
        held = {n: self._values(n, codes) for n, codes in zip(labelling.others, lines[1:])}
        return pa.table({LABEL: lines[0], **held, COUNT: counts})

    def _lines(self, labelling: Labelling) -> tuple[list[Ints], Ints]:
        """Distinct lines of a label and codes of the other columns, and how many rows are so."""
        which, first = self._numbered(labelling.keys)
        label = self._labels(labelling, first)[which]
        others = [self._column(n) for n in labelling.others]
        stay = label >= 0
        everyone = bool(stay.all())
        columns = [c if everyone else c[stay] for c in (label, *(codes for codes, _ in others))]
        sizes = [int(label.max(initial=0)) + 1, *(len(values) + 1 for _, values in others)]
        which, first = number(columns, sizes)
        counts = np.bincount(which, minlength=len(first)).astype(np.int64)
        return self._joined([c[first] for c in columns], counts, labelling)

    def _joined(self, lines: list[Ints], counts: Ints, labelling: Labelling) -> tuple[list[Ints], Ints]:
        """The lines with those that are there already."""
        if labelling.lines is None:
            return lines, counts
        more = [labelling.lines[LABEL].to_numpy().astype(np.int64)]
        more += [self._places(n, labelling.lines[n]) for n in labelling.others]
        lines = [np.concatenate([a, b]) for a, b in zip(lines, more)]
        which, first = number(lines, [int(c.max(initial=0)) + 1 for c in lines])
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, which, np.concatenate([counts, labelling.lines[COUNT].to_numpy()]))
        return [c[first] for c in lines], sums

    def _places(self, name: str, asked: Any) -> Ints:
        """The codes of some values of a column; one more than missing for a value that no row has."""
        import pyarrow.compute as pc

        asked, values = asked.combine_chunks(), self._column(name)[1]
        found = pc.fill_null(pc.index_in(asked, value_set=values), len(values) + 1).to_numpy()
        return np.where(pc.is_null(asked).to_numpy(zero_copy_only=False), len(values), found).astype(np.int64)

    def _published(self, labelling: Labelling, key: bytes) -> Iterator[Any]:
        """Label, other columns and how many rows are so, in the order of the hash."""
        import pyarrow as pa

        lines, counts = self._lines(labelling)
        held = [sorted_values(self._column(n)[1], codes) for n, codes in zip(labelling.others, lines[1:])]
        ranks = [lines[0], *(codes for codes, _ in held)]
        order = np.lexsort([*ranks[::-1], keyed_hash(key, ranks)])
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            arrays = {LABEL: pa.array(lines[0][some])}
            for name, (codes, values) in zip(labelling.others, held):
                at = pa.array(codes[some].astype(np.int32), mask=codes[some] == len(values))
                text = pa.types.is_string(values.type)
                arrays[name] = pa.DictionaryArray.from_arrays(at, values) if text else values.take(at)
            yield pa.record_batch({**arrays, COUNT: pa.array(counts[some])})

    def _labels(self, labelling: Labelling, first: Ints) -> Ints:
        """The label of the row that stands for each combination of keys; -1: none."""
        import pyarrow as pa

        columns, sizes = [], []
        for name in labelling.keys:
            codes, values = self._column(name)
            columns.append(np.concatenate([codes[first], self._places(name, labelling.lookup[name])]))
            sizes.append(len(values) + 2)
        which, distinct = number(columns, sizes)
        of = np.full(len(distinct), -1, np.int64)
        of[which[len(first) :]] = labelling.lookup[LABEL].cast(pa.int64()).to_numpy()
        return of[which[: len(first)]]


def _read(file: str, name: str, kind: Any) -> list[Any]:
    """A column of a file, settled; all but whole numbers with a dictionary of their values."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    text = pa.types.is_string(kind)
    try:
        with ParquetFile(file, read_dictionary=[name] if text else None) as opened:
            column = opened.read(columns=[name]).column(0)
    except (pa.ArrowException, OSError):
        raise SchemaError(f"The file '{Path(file).name}' is damaged, or not a Parquet file.") from None
    if kind == pa.int64():
        return list(settle_column(column, kind).chunks)
    if not (text and pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)):
        column = settle_column(column, kind).dictionary_encode()
    return list(column.chunks)


def _encoded(files: Sequence[str], name: str, kind: Any) -> tuple[Ints, Any]:
    """The codes of a column of some files (missing is the last), and its distinct values."""
    import pyarrow as pa

    chunks: list[Any] = []
    whole: list[Any] = []
    for file in files:
        if kind == pa.int64():
            whole += _read(file, name, kind)
        else:
            chunks += _read(file, name, kind)
    if whole:
        return whole_codes(pa.chunked_array(whole, kind))
    held = pa.chunked_array(chunks, type=pa.dictionary(pa.int32(), kind)).unify_dictionaries()
    if not held.num_chunks:
        return np.zeros(0, np.int32), pa.array([], kind)
    values = held.chunk(0).dictionary
    parts = [c.indices.fill_null(len(values)).to_numpy() for c in held.chunks]
    return np.concatenate(parts), values
