"""Reading and writing frames: CSV (plain or gzipped), Parquet (files and folders), Excel (reading only)."""

from __future__ import annotations

import csv
import os
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

import pandas as pd

from countervail.core.conform import conform_column, plain
from countervail.core.errors import CountervailError, DataNotFoundError, InputWarning, SchemaError, listed
from countervail.core.files.csv_text import FORMULA, MARKS, PLAIN, Reading, read_csv, warn_of_repeated
from countervail.core.files.json_data import DAMAGED
from countervail.core.files.unpacked import check_parquet, check_zip
from countervail.core.schema import Column, Schema

ENDINGS = (".csv", ".csv.gz", ".parquet")  # that are written
READABLE = (*ENDINGS, ".xlsx")
_TRUTHS = ("True", "TRUE", "true", "False", "FALSE", "false")  # as pandas reads them in a CSV


def read_frame(
    path: str | Path, schema: Schema | None = None, *, text: Iterable[str] = (), reading: Reading = PLAIN
) -> pd.DataFrame:
    """Read a file; columns declared categorical or ordinal become categories with exactly their values.

    A CSV is read with semicolons or tabs where its header has them and no comma. Undeclared columns with leading zeros
    (`01018`) stay text, and so do those named in `text`, as they are written. Of an Excel file the first sheet is read;
    a folder is read as the Parquet files in it.
    """
    path = Path(path)
    if path.is_dir():
        frame = _folder(path)
    elif not path.is_file():
        must = f"a {', '.join(READABLE)} file, or of a folder of .parquet files"
        raise DataNotFoundError(f"No data file at '{path}'. Give the path of {must}.")
    elif path.name.endswith(".parquet"):
        frame = _parquet(path)
    elif path.name.endswith((".csv", ".csv.gz")):
        frame = read_csv(path, schema, set(text), reading)
    elif path.name.endswith(".xlsx"):
        numbers = {c.name for c in schema or () if c.type == "numeric"}
        frame = _excel(path, {*text, *(c.name for c in schema or () if not c.numeric)}, numbers)
    else:
        raise SchemaError(f"The file '{path.name}' must end in one of {', '.join(READABLE)}.")
    for column in schema or ():
        if column.name in frame.columns and not column.numeric and column.role != "identifier":
            frame[column.name] = _categories(frame[column.name], column)
    return frame


def write_frame(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a frame whole or not at all: a temporary file is renamed into place.

    In a CSV, texts that a spreadsheet would take for a formula get an apostrophe in front; reading takes it off again.
    """
    write_file(Path(path), frame_writer(frame, path))


def frame_writer(frame: pd.DataFrame, path: str | Path, *, bom: bool = False) -> Callable[[Path], object]:
    """What writes a frame into some file, in the format of `path`; `bom` begins a CSV with Excel's mark of UTF-8."""
    path = Path(path)
    if not path.name.endswith(ENDINGS):
        raise SchemaError(f"The output file '{path.name}' must end in one of {', '.join(ENDINGS)}.")

    def write(place: Path) -> None:
        if path.name.endswith(".parquet"):
            _write_parquet(frame, place)
        else:
            plain = _without_formulas(frame)
            # pandas puts no quotes around a carriage return, which readers take for the end of a line.
            quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if _holds(plain, "\r") else csv.QUOTE_MINIMAL
            gzipped = path.name.endswith(".gz")
            pack: Literal["gzip"] | None = "gzip" if gzipped else None
            encoding = "utf-8-sig" if bom else "utf-8"
            plain.to_csv(place, index=False, compression=pack, quoting=quoting, encoding=encoding)

    return write


def formula_cells(frame: pd.DataFrame) -> int:
    """How many cells of a frame a spreadsheet would take for formulas."""
    return sum(int(_formulas(values).sum()) for _, values in frame.items())


def _formulas(values: pd.Series) -> pd.Series:
    """Which cells begin like a formula and are no numbers, ranges or lone marks."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        there = [isinstance(v, str) and FORMULA.match(v) is not None for v in values.cat.categories]
        return values.isin(values.cat.categories[there])
    text = values.dtype == object or pd.api.types.is_string_dtype(values)
    if not text or (values.dtype != object and not values.str.startswith(MARKS, na=False).any()):
        return pd.Series(False, index=values.index)
    return values.map(lambda v: isinstance(v, str) and FORMULA.match(v) is not None).astype(bool)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with an apostrophe before what a spreadsheet would take for a formula, in the header as well."""
    marked = {i: found for i, (_, v) in enumerate(frame.items()) if (found := _formulas(v)).any()}
    names = [f"'{n}" if isinstance(n, str) and FORMULA.match(n) else n for n in frame.columns]
    if not marked and names == list(frame.columns):
        return frame
    columns = [frame.iloc[:, i] for i in range(len(names))]
    for i, found in marked.items():
        columns[i] = columns[i].astype(object).where(~found, "'" + columns[i].astype(object).where(found, ""))
    return pd.concat(columns, axis=1).set_axis(names, axis=1)


def _write_parquet(frame: pd.DataFrame, place: Path) -> None:
    import pyarrow

    try:
        frame.to_parquet(place, index=False)
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError):
        mixed = [str(n) for n in frame.columns if frame[n].dtype == object and not _is_one_kind(frame[n])]
        which = f"columns {listed(mixed)} hold" if mixed else "some column holds"
        raise SchemaError(
            f"A Parquet file cannot hold this table: {which} values of several kinds, or of a kind that Parquet does "
            f"not know. Make them text, or write a .csv file."
        ) from None


def _is_one_kind(values: pd.Series) -> bool:
    import pyarrow

    try:
        pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowException, ValueError, TypeError, OverflowError):
        return False
    return True


def _holds(frame: pd.DataFrame, mark: str) -> bool:
    """Whether the header or some text has this character in it."""
    texts = frame.select_dtypes(exclude=["number", "bool"]).items()
    kept = (v.cat.categories if isinstance(v.dtype, pd.CategoricalDtype) else v for _, v in texts)
    return any(isinstance(c, str) and mark in c for cells in (frame.columns, *kept) for c in cells)


def write_text(text: str, path: str | Path, *, confidential: bool = False) -> None:
    """Write a text file whole or not at all; a confidential one is readable by its owner only."""
    write_files({Path(path): text_writer(text)}, confidential={Path(path)} if confidential else ())


def text_writer(text: str) -> Callable[[Path], object]:
    """What writes a text into some file."""
    return lambda place: place.write_text(text, encoding="utf-8")


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then rename it into place: whole or not at all."""
    write_files({path: write})


def write_files(writers: Mapping[Path, Callable[[Path], object]], *, confidential: Collection[Path] = ()) -> None:
    """Fill a temporary file for each path, then rename them all into place: if one cannot be written, none is.

    Temporary files are readable by their owner only, and confidential ones stay so.
    """
    places: dict[Path, Path] = {}
    try:
        for path, write in writers.items():
            if not path.parent.is_dir():
                raise DataNotFoundError(f"No folder '{path.parent}' to write '{path.name}' into. Create it first.")
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".countervail-")
            os.close(handle)
            places[path] = Path(name)
            write(places[path])
            if path not in confidential:
                os.chmod(places[path], 0o644)
        for path, place in places.items():
            os.replace(place, path)
    finally:
        for place in places.values():
            place.unlink(missing_ok=True)


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow

    try:
        check_parquet(path)
        return pd.read_parquet(path)
    except CountervailError:
        raise
    # What pandas has written beside the columns is read by pandas itself, which checks nothing of it.
    except (pyarrow.ArrowException, OSError, *DAMAGED):
        raise SchemaError(f"The file '{path.name}' is not a readable Parquet file.") from None


def _folder(path: Path) -> pd.DataFrame:
    """The rows of all Parquet files of a folder, with columns that the names of folders in it stand for."""
    import pyarrow

    files = sorted(p for p in path.rglob("*.parquet") if p.is_file())
    if not files:
        raise DataNotFoundError(f"The folder '{path.name}' holds no .parquet file. Name a file, or another folder.")
    try:
        for file in files:
            check_parquet(file)
        return pd.read_parquet(path)
    except CountervailError:
        raise
    except (pyarrow.ArrowException, OSError, *DAMAGED):
        raise SchemaError(
            f"The folder '{path.name}' is not readable as one table: a file in it is no Parquet file, or has other "
            f"columns than the rest."
        ) from None


def _excel(path: Path, text: set[str], numbers: set[str]) -> pd.DataFrame:
    """The first sheet; whole numbers of columns that are read as text lose their decimal point."""
    from zipfile import BadZipFile

    check_zip(path)
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            first = pd.read_excel(book, sheet_name=0, nrows=1, header=None)
            names = [str(n) for n in first.iloc[0]] if len(first) else []
            frame: pd.DataFrame = pd.read_excel(book, sheet_name=0, keep_default_na=False, na_values=[""], dtype=object)
            more = len(book.sheet_names) - 1
    except (BadZipFile, OSError, IndexError, *DAMAGED):
        raise SchemaError(
            f"The file '{path.name}' is not a readable Excel file with a table on its first sheet."
        ) from None
    warn_of_repeated(names, path)
    if more:
        said = f"'{path.name}' has {more} more sheet(s); only the first is read."
        warnings.warn(said, InputWarning, stacklevel=2)
    frame.columns = frame.columns.map(str)
    if not frame.columns.is_unique:  # what reads the table says so
        return frame.infer_objects()
    return frame.assign(**{n: _typed(frame[n], text=n in text, number=n in numbers) for n in frame.columns})


def _typed(values: pd.Series, *, text: bool, number: bool) -> pd.Series:
    """A column of a sheet as a CSV of it would be read: texts of digits are numbers, but for codes such as `01018`."""
    values = values.infer_objects()
    if not pd.api.types.is_numeric_dtype(values):
        held = values.dropna()
        if not len(held) or not held.map(lambda v: isinstance(v, (str, int, float))).all():
            return values
        if held.astype(str).str.fullmatch(r"\s*\d{19,}\s*").any():  # more digits than a number holds
            return values
        if held.isin(_TRUTHS).all() and len(held) == len(values):
            counted = held.str.lower() == "true"
        else:
            counted = pd.to_numeric(values, errors="coerce")
            if counted.isna().sum() > values.isna().sum() or held.map(lambda v: isinstance(v, bool)).any():
                return values
        text = text or bool(not number and held.astype(str).str.fullmatch(r"\s*0\d+\s*").any())
        if not text:
            return counted
    if not text:
        return values
    written = [None if pd.isna(v) else v if isinstance(v, str) else plain(v) for v in values]
    return pd.Series(written, values.index).astype("str")


def _categories(values: pd.Series, column: Column) -> pd.Series:
    if column.type == "ordinal" and column.levels is None:
        return values
    values, _ = conform_column(values, column)
    known = list(column.values) if column.values is not None else sorted(pd.unique(values.dropna()))
    return values.astype(pd.CategoricalDtype(known, ordered=column.type == "ordinal"))
