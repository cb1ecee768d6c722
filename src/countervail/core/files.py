"""Reading and writing frames: CSV (plain or gzipped) and Parquet."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from countervail.core.conform import conform_column
from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.schema import Column, Schema

ENDINGS = (".csv", ".csv.gz", ".parquet")


def read_frame(path: str | Path, schema: Schema | None = None) -> pd.DataFrame:
    """Read a file; columns declared categorical or ordinal become categories with exactly their values."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"No data file at '{path}'. Give the path of a {', '.join(ENDINGS)} file.")
    if path.name.endswith(".parquet"):
        frame = _parquet(path)
    elif path.name.endswith((".csv", ".csv.gz")):
        frame = _csv(path, schema)
    else:
        raise SchemaError(f"The file '{path.name}' must end in one of {', '.join(ENDINGS)}.")
    for column in schema or ():
        if column.name in frame.columns and column.type != "numeric" and column.role != "identifier":
            frame[column.name] = _categories(frame[column.name], column)
    return frame


def write_frame(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a frame whole or not at all: a temporary file is renamed into place."""
    path = Path(path)
    if not path.name.endswith(ENDINGS):
        raise SchemaError(f"The output file '{path.name}' must end in one of {', '.join(ENDINGS)}.")

    def write(place: Path) -> None:
        if path.name.endswith(".parquet"):
            frame.to_parquet(place, index=False)
        else:
            frame.to_csv(place, index=False, compression="gzip" if path.name.endswith(".gz") else None)

    write_file(path, write)


def write_text(text: str, path: str | Path) -> None:
    """Write a text file whole or not at all."""
    write_file(Path(path), lambda place: place.write_text(text, encoding="utf-8"))


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then rename it into place: whole or not at all."""
    if not path.parent.is_dir():
        raise DataNotFoundError(f"No folder '{path.parent}' to write '{path.name}' into. Create it first.")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".countervail-")
    os.close(handle)
    place = Path(name)
    try:
        write(place)
        os.chmod(place, 0o644)
        os.replace(place, path)
    finally:
        place.unlink(missing_ok=True)


def _csv(path: Path, schema: Schema | None) -> pd.DataFrame:
    text = [c.name for c in schema or () if c.type != "numeric"]
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(text, "str"))
    except pd.errors.EmptyDataError:
        raise SchemaError(f"The file '{path.name}' is empty: a header and at least one row are needed.") from None
    except (pd.errors.ParserError, UnicodeDecodeError, OSError, EOFError, zlib.error):
        raise SchemaError(f"The file '{path.name}' is not a readable CSV (UTF-8, comma-separated, header).") from None


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow

    try:
        return pd.read_parquet(path)
    except (pyarrow.ArrowInvalid, OSError):
        raise SchemaError(f"The file '{path.name}' is not a readable Parquet file.") from None


def _categories(values: pd.Series, column: Column) -> pd.Series:
    if column.type == "ordinal" and column.levels is None:
        return values
    values, _ = conform_column(values, column)
    known = list(column.values) if column.values is not None else sorted(pd.unique(values.dropna()))
    return values.astype(pd.CategoricalDtype(known, ordered=column.type == "ordinal"))
