"""Reading and writing frames: CSV (plain or gzipped) and Parquet."""

from __future__ import annotations

import csv
import gzip
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from countervail.core.conform import conform_column
from countervail.core.errors import CountervailError, DataNotFoundError, SchemaError, listed
from countervail.core.files.json_data import DAMAGED
from countervail.core.files.unpacked import check_parquet, most_bytes, too_large
from countervail.core.schema import Column, Schema

ENDINGS = (".csv", ".csv.gz", ".parquet")
_HEAD: Final = 1 << 16  # the header is looked for in this many bytes
# What spreadsheets take for a formula, but for numbers and ranges of them (-5, -3 to 4), and for a mark that is all.
_AMOUNT: Final = r"[+-]?[\d.,]*\d[\d.,]*(?:e[+-]?\d+)?%?"
_FORMULA: Final = re.compile(rf"(?!{_AMOUNT}(?:\s*(?:-| to )\s*{_AMOUNT})?\s*\Z)[=+\-@\t\r\n].", re.DOTALL)
_MARKS: Final = tuple("=+-@\t\r\n")
_DECIMAL_COMMA: Final = r"[+-]?\d+(,\d+)?"


def read_frame(path: str | Path, schema: Schema | None = None, *, text: Iterable[str] = ()) -> pd.DataFrame:
    """Read a file; columns declared categorical or ordinal become categories with exactly their values.

    A CSV is read with semicolons or tabs where its header has them and no comma. Undeclared columns with leading zeros
    (`01018`) stay text, and so do those named in `text`, as they are written.
    """
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"No data file at '{path}'. Give the path of a {', '.join(ENDINGS)} file.")
    if path.name.endswith(".parquet"):
        frame = _parquet(path)
    elif path.name.endswith((".csv", ".csv.gz")):
        frame = _csv(path, schema, set(text))
    else:
        raise SchemaError(f"The file '{path.name}' must end in one of {', '.join(ENDINGS)}.")
    for column in schema or ():
        if column.name in frame.columns and column.type != "numeric" and column.role != "identifier":
            frame[column.name] = _categories(frame[column.name], column)
    return frame


def write_frame(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a frame whole or not at all: a temporary file is renamed into place.

    In a CSV, texts that a spreadsheet would take for a formula get an apostrophe in front; reading takes it off again.
    """
    write_file(Path(path), frame_writer(frame, path))


def frame_writer(frame: pd.DataFrame, path: str | Path) -> Callable[[Path], object]:
    """What writes a frame into some file, in the format of `path`."""
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
            plain.to_csv(place, index=False, compression="gzip" if gzipped else None, quoting=quoting)

    return write


def formula_cells(frame: pd.DataFrame) -> int:
    """How many cells of a frame a spreadsheet would take for formulas."""
    return sum(int(_formulas(values).sum()) for _, values in frame.items())


def _formulas(values: pd.Series) -> pd.Series:
    """Which cells begin like a formula and are no numbers, ranges or lone marks."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        there = [isinstance(v, str) and _FORMULA.match(v) is not None for v in values.cat.categories]
        return values.isin(values.cat.categories[there])
    text = values.dtype == object or pd.api.types.is_string_dtype(values)
    if not text or (values.dtype != object and not values.str.startswith(_MARKS, na=False).any()):
        return pd.Series(False, index=values.index)
    return values.map(lambda v: isinstance(v, str) and _FORMULA.match(v) is not None).astype(bool)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy with an apostrophe before what a spreadsheet would take for a formula, in the header as well."""
    marked = {i: found for i, (_, v) in enumerate(frame.items()) if (found := _formulas(v)).any()}
    names = [f"'{n}" if isinstance(n, str) and _FORMULA.match(n) else n for n in frame.columns]
    if not marked and names == list(frame.columns):
        return frame
    columns = [frame.iloc[:, i] for i in range(len(names))]
    for i, found in marked.items():
        columns[i] = columns[i].astype(object).where(~found, "'" + columns[i].astype(object).where(found, ""))
    return pd.concat(columns, axis=1).set_axis(names, axis=1)


def _with_formulas(values: pd.Series) -> pd.Series:
    """The texts of a CSV without the apostrophes that keep spreadsheets from running them."""
    kept = values.map(lambda v: isinstance(v, str) and _is_kept_formula(v)).astype(bool)
    return values.where(~kept, values.str[1:])


def _has_apostrophes(values: pd.Series) -> bool:
    return pd.api.types.is_string_dtype(values) and bool(values.str.startswith("'", na=False).any())


def _is_kept_formula(text: str) -> bool:
    return text.startswith("'") and _FORMULA.match(text[1:]) is not None


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


def _csv(path: Path, schema: Schema | None, text: set[str]) -> pd.DataFrame:
    data, as_written = _bytes(path), text
    text = text | {c.name for c in schema or () if c.type != "numeric"}
    numeric = {c.name for c in schema or () if c.type == "numeric"}
    separator = _separator(data)
    frame = _parsed(data, path, separator, text)
    if _may_pad(data) and (codes := _padded(frame, data, path, separator, text | numeric)):
        frame = _parsed(data, path, separator, text | codes)
    if separator != ",":
        for name in frame.columns.difference(list(text)):
            frame[name] = _decimal_commas(frame[name])
    changed = {n: _with_formulas(frame[n]) for n in frame.columns if n not in as_written and _has_apostrophes(frame[n])}
    return frame.assign(**changed) if changed else frame


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"The file '{path.name}' is not a readable CSV: {error.strerror}.") from None
    if path.name.endswith(".gz"):
        data = _unpacked(data, path)
    # Without a byte-order mark, every second byte of Latin letters is zero.
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or max(data[:40:2].count(0), data[1:40:2].count(0)) > 5:
        raise _unreadable(path, "it is in UTF-16. Save it as UTF-8 (in Excel: 'CSV UTF-8').")
    return data


def _unpacked(data: bytes, path: Path) -> bytes:
    most = most_bytes()
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as packed:
            out = packed.read(most + 1)
    except (OSError, EOFError, zlib.error):
        raise _unreadable(path, "it is not a gzip file, or it was cut off. Compress it again.") from None
    if len(out) > most:
        raise too_large(path, len(data), most)
    return out


def _separator(data: bytes) -> str:
    """A comma, unless the header has none: then a semicolon or a tab, as spreadsheets write in much of Europe."""
    header = re.sub(rb'"[^"]*"', b"", data[:_HEAD].lstrip(b"\xef\xbb\xbf\r\n")).split(b"\n", 1)[0]
    counts = {mark: header.count(mark.encode()) for mark in ",;\t"}
    return "," if counts[","] or not any(counts.values()) else max(";\t", key=lambda mark: counts[mark])


def _parsed(data: bytes, path: Path, separator: str, text: set[str]) -> pd.DataFrame:
    try:
        frame = pd.read_csv(
            BytesIO(data),
            sep=separator,
            keep_default_na=False,
            na_values=[""],
            dtype=dict.fromkeys([*text, *(f"'{n}" for n in text)], "str"),
        )
    except pd.errors.EmptyDataError:
        raise SchemaError(f"The file '{path.name}' is empty: a header and at least one row are needed.") from None
    except UnicodeDecodeError:
        raise _unreadable(path, _not_utf8(data)) from None
    except pd.errors.ParserError as error:
        raise _unreadable(path, _broken_line(str(error), separator)) from None
    frame = frame.rename(columns=lambda n: n[1:] if _is_kept_formula(str(n)) else n)
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes a surplus first cell for the name of the row
        raise _unreadable(path, "line 2 has more cells than the header has names. Name every column.")
    return frame


def _not_utf8(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return (
            f"its encoding is not UTF-8 (first seen in line {line}), but perhaps Latin-1 or Windows-1252. "
            f"Save it as UTF-8 (in Excel: 'CSV UTF-8')."
        )
    return "its encoding is not UTF-8. Save it as UTF-8."


def _broken_line(message: str, separator: str) -> str:
    """What the parser says, in our words: only its numbers are taken over, never text that may be a cell."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        due, line, seen = found.groups()
        mark = {",": "comma", ";": "semicolon", "\t": "tab"}[separator]
        return f"line {line} has {seen} cells, but {due} are due. Put quotes around a cell that holds a {mark}."
    if found := re.search(r"EOF inside string starting at row (\d+)", message):
        return f"a quotation mark that opens in line {int(found.group(1)) + 1} is never closed."
    return "it must be text in UTF-8 with a header and one line per row."


def _unreadable(path: Path, why: str) -> SchemaError:
    return SchemaError(f"The file '{path.name}' is not a readable CSV: {why}")


def _may_pad(data: bytes) -> bool:
    """Whether some cell may begin with a zero and another digit: a quick look before a slow one."""
    marks = np.frombuffer(data, np.uint8)
    zeros = np.flatnonzero(marks[1:-1] == ord("0")) + 1
    zeros = zeros[(marks[zeros + 1] >= ord("0")) & (marks[zeros + 1] <= ord("9"))]
    return bool(np.isin(marks[zeros - 1], np.frombuffer(b',;\t\n\r" ', np.uint8)).any())


def _padded(frame: pd.DataFrame, data: bytes, path: Path, separator: str, declared: set[str]) -> set[str]:
    """Columns read as numbers whose cells have leading zeros, such as postcodes: the zeros are part of the code."""
    numbers = [str(n) for n in frame.select_dtypes("number").columns if n not in declared]
    if not numbers:
        return set()
    texts = _parsed(data, path, separator, set(numbers))
    return {n for n in numbers if texts[n].dropna().str.fullmatch(r"\s*0\d+\s*").any()}


def _decimal_commas(values: pd.Series) -> pd.Series:
    """Numbers from texts such as 12,5; where 1,500 could as well be a thousand and a half, the texts stay."""
    if not pd.api.types.is_string_dtype(values) or not values.notna().any():
        return values
    texts = values.dropna()
    commas = texts[texts.str.contains(",", regex=False)]
    if not len(commas) or not texts.str.fullmatch(_DECIMAL_COMMA).all() or commas.str.fullmatch(r".*,\d{3}").all():
        return values
    return values.str.replace(",", ".", regex=False).astype(float)


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


def _categories(values: pd.Series, column: Column) -> pd.Series:
    if column.type == "ordinal" and column.levels is None:
        return values
    values, _ = conform_column(values, column)
    known = list(column.values) if column.values is not None else sorted(pd.unique(values.dropna()))
    return values.astype(pd.CategoricalDtype(known, ordered=column.type == "ordinal"))
