"""Published rows as Parquet files of bounded size: lines that stand for several equal rows are written so often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from countervail.core.errors import CountervailError, SchemaError
from countervail.engine.interface import COUNT, LABEL, Labelling

_GROUP = 1 << 20  # rows of a row group, and the most that are made at once


def write_parts(
    batches: Iterable[Any], labelling: Labelling, kinds: Mapping[str, Any], folder: Path, rows_per_file: int
) -> None:
    """Write `part-00000.parquet` and so on from lines of a label, other columns and a count, in the order they come."""
    import pyarrow as pa

    cells = {n: labelling.labels[n].combine_chunks() for n in labelling.labels.column_names}
    schema = pa.schema([pa.field(n, cells[n].type if n in cells else kinds[n]) for n in labelling.names])
    coded = {n: _coded(values) for n, values in cells.items()}
    room, made = 0, 0
    with ExitStack() as files:
        for rows in _expanded(batches, coded, labelling.names):
            while rows.num_rows:
                if not room:
                    files.close()
                    kinds_now = pa.schema([f.with_type(rows.schema.field(f.name).type) for f in schema])
                    writer = files.enter_context(_PartFile(folder / f"part-{made:05d}.parquet", kinds_now))
                    room, made = rows_per_file, made + 1
                now = rows.slice(0, room)
                writer.write(now)
                rows, room = rows.slice(now.num_rows), room - now.num_rows
    if not made:
        raise SchemaError("Nothing is left to write: no row has a label.")


class _PartFile:
    """One file of a release; what the disk refuses is told in our words."""

    def __init__(self, path: Path, schema: Any) -> None:
        self._path, self._schema = path, schema

    def __enter__(self) -> Self:
        from pyarrow.parquet import ParquetWriter

        with _told(self._path):
            self._writer = ParquetWriter(self._path, self._schema, store_schema=False, compression="snappy")
        return self

    def write(self, rows: Any) -> None:
        """Write some rows."""
        with _told(self._path):
            self._writer.write_table(rows, row_group_size=_GROUP)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            with _told(self._path):
                self._writer.close()
        except CountervailError:
            if kind is None:
                raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from None


def disk_error(path: Path, error: OSError) -> CountervailError:
    """What is said where a file cannot be written; nothing has left."""
    why = error.strerror or "the disk may be full"
    return CountervailError(f"The file '{path.name}' of the release cannot be written ({why}). Nothing has left.")


def _coded(values: Any) -> Any:
    """Texts as places in a dictionary, which is all that is taken row by row; other values as they are."""
    import pyarrow as pa

    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def _expanded(batches: Iterable[Any], cells: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Tables of at most so many published rows as are made at once."""
    import pyarrow as pa

    for batch in batches:
        if not batch.num_rows:
            continue
        counts = batch.column(COUNT).to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum(counts)
        label = batch.column(LABEL).to_numpy(zero_copy_only=False).astype(np.int64)
        once = bool(ends[-1] == len(counts))
        for start in range(0, int(ends[-1]), _GROUP):
            stop = min(start + _GROUP, int(ends[-1]))
            if once:
                part = batch.slice(start, stop - start)
                mine, line = label[start:stop], None
            else:
                line = np.searchsorted(ends, np.arange(start, stop), side="right")
                part, mine = batch, label[line]
            columns = []
            for name in names:
                if name in cells:
                    columns.append(cells[name].take(pa.array(mine)))
                else:
                    held = part.column(name)
                    columns.append(held if line is None else held.take(pa.array(line)))
            yield pa.table(columns, names=list(names))
