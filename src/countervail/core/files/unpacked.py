"""How much a packed file may unpack to: a small file can hold more than any memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from countervail.core.errors import ParameterError, SchemaError

LIMIT: Final = "COUNTERVAIL_UNPACKED_LIMIT"
_UNPACKED: Final = 2 << 30
_CELL: Final = 8  # bytes that a cell takes in memory, at the least
_BATCH: Final = 1 << 12


def most_bytes() -> int:
    """The most that a packed file may unpack to."""
    text = os.environ.get(LIMIT, "")
    if text and not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**62):
        raise ParameterError(f"The environment variable {LIMIT} must be a number of bytes. Got '{text}' instead.")
    return int(text) if text else _UNPACKED


def too_large(path: Path, packed: int, most: int) -> SchemaError:
    """What is said of a file that unpacks to more."""
    return SchemaError(
        f"The file '{path.name}' ({packed:,} bytes) unpacks to more than {most:,} bytes. If that is meant, set "
        f"the environment variable {LIMIT} to a larger number of bytes."
    )


def check_zip(path: Path) -> None:
    """Refuse a zipped file, as those of Excel are, that unpacks to more than is allowed."""
    from zipfile import BadZipFile, ZipFile

    most = most_bytes()
    try:
        with ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
    except (BadZipFile, OSError, ValueError):
        raise SchemaError(f"The file '{path.name}' is not a readable Excel file.") from None
    if size > most:
        raise too_large(path, path.stat().st_size, most)


def check_parquet(path: Path) -> None:
    """Refuse a Parquet file that would take more memory than is allowed, before any of it is read as a table.

    Numbers are counted from what the file says of itself. A text that occurs often is stored once, so texts are counted
    where so many cells of such columns could be too many.
    """
    from pyarrow.parquet import ParquetFile

    most, packed = most_bytes(), path.stat().st_size
    with ParquetFile(path) as file:
        about = file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        chunks = [group.column(j) for group in groups for j in range(about.num_columns)]
        cells = sum(max(chunk.num_values, 0) for chunk in chunks)
        stored = sum(max(chunk.total_uncompressed_size, 0) for chunk in chunks)
        if max(cells, about.num_rows * about.num_columns) * _CELL > most or stored > most:
            raise too_large(path, packed, most)
        texts = [c for c in chunks if c.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")]
        if sum(c.num_values * c.total_uncompressed_size for c in texts) <= most:
            return
        names = {c.path_in_schema for c in texts}
    if _bytes_of_texts(path, sorted(names), most) > most:
        raise too_large(path, packed, most)


def _bytes_of_texts(path: Path, names: list[str], most: int) -> int:
    """What the texts of these columns take when each cell has its own; counting ends above `most`."""
    from pyarrow.parquet import ParquetFile

    total = 0
    with ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(_BATCH, columns=names):
            for column in batch.columns:
                total += _bytes_of(column)
            if total > most:
                break
    return total


def _bytes_of(column: Any) -> int:
    """The bytes of the values behind a column of codes, or of the column itself."""
    import pyarrow.compute as pc
    from pyarrow import DictionaryArray

    if not isinstance(column, DictionaryArray):
        return int(column.nbytes)
    lengths = pc.take(pc.binary_length(column.dictionary), column.indices)
    return int(pc.sum(lengths).as_py() or 0)
