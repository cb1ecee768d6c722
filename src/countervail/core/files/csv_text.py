"""CSV files as text: encodings, separators, decimal marks, leading zeros, and cells that a spreadsheet would run."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import warnings
import zlib
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from countervail.core.errors import InputWarning, ParameterError, SchemaError
from countervail.core.files.unpacked import most_bytes, too_large
from countervail.core.schema import Schema

_HEAD: Final = 1 << 16  # the header is looked for in this many bytes
# What spreadsheets take for a formula, but for numbers and ranges of them (-5, -3 to 4), and for a mark that is all.
# `+1-2` is none of these: a spreadsheet calculates it.
_AMOUNT: Final = r"[+-]?[\d.,]*\d[\d.,]*(?:e[+-]?\d+)?%?"
FORMULA: Final = re.compile(rf"(?!{_AMOUNT}(?: to {_AMOUNT})? *\Z)[=+\-@\t\r\n].", re.DOTALL | re.ASCII)
MARKS: Final = tuple("=+-@\t\r\n")
_DECIMAL_COMMA: Final = r"[+-]?\d+(,\d+)?"
_NAMES: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a CSV file is written, where its header does not tell; an empty text stands for: find out.

    Parameters
    ----------
    encoding : str
        Such as "latin-1" or "cp1252"; default UTF-8.
    sep : str
        What stands between cells; default: a comma, or the semicolon or tab of a header without one.
    decimal, thousands : str
        The marks in numbers, as in 1.234,5.
    """

    encoding: str = ""
    sep: str = ""
    decimal: str = ""
    thousands: str = ""

    def __post_init__(self) -> None:
        for name in ("sep", "decimal", "thousands"):
            mark = {"tab": "\t", "\\t": "\t", "space": " "}.get(getattr(self, name), getattr(self, name))
            if len(mark) > 1 or mark in ('"', "\n", "\r"):
                raise ParameterError(f"--{name} must be one character (or 'tab', 'space'). Got '{mark}' instead.")
            object.__setattr__(self, name, mark)
        given = [m for m in (self.sep, self.decimal, self.thousands) if m]
        if len(set(given)) < len(given):
            raise ParameterError("--sep, --decimal and --thousands must be different characters.")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except (LookupError, ValueError):
            raise ParameterError(
                f"--encoding must be one that Python knows, such as utf-8, latin-1 or cp1252. Got '{self.encoding}'."
            ) from None


PLAIN: Final = Reading()


def read_csv(path: Path, schema: Schema | None, text: set[str], how: Reading = PLAIN) -> pd.DataFrame:
    """Read a CSV file; columns named in `text` as they are written, declared ones by their type, others by content."""
    data, as_written = _bytes(path, how.encoding), text
    text = text | {c.name for c in schema or () if c.type != "numeric"}
    numeric = {c.name for c in schema or () if c.type == "numeric"}
    counted = {c.name for c in schema or () if _are_numbers(c.values)} - as_written
    separator = how.sep or _separator(data)
    warn_of_repeated(_header(data, separator), path)
    if how.decimal or how.thousands:
        frame = _parsed(data, path, separator, None)
        for name in frame.columns.difference(list(text - counted)):
            frame[name] = _marked_numbers(frame[name], how, padded=name in numeric)
        return _unescaped(frame, as_written)
    frame = _parsed(data, path, separator, text)
    if _may_pad(data) and (codes := _padded(frame, data, path, separator, text | numeric)):
        frame = _parsed(data, path, separator, text | codes)
    if separator != ",":
        for name in frame.columns.difference(list(text - counted)):
            frame[name] = _decimal_commas(frame[name])
    return _unescaped(frame, as_written)


def _are_numbers(values: tuple[Any, ...] | None) -> bool:
    """Whether declared labels are numbers, which a file may write with marks."""
    return bool(values) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values or ())


def warn_of_repeated(names: list[str], path: Path) -> None:
    """Say that a header has a name twice, and where: the later ones get a number, and nobody would know.

    The names themselves are not shown: without a header they are somebody's values.
    """
    worded = [n for n in names if re.search(r"[^\W\d]", n)]
    if places := [str(i) for i, n in enumerate(names, 1) if worded.count(n) > 1]:
        warnings.warn(
            f"The header of '{path.name}' has a name more than once (columns {', '.join(places)}): the later ones are "
            f"read with .1, .2 and so on behind it. Are they what you think?",
            InputWarning,
            stacklevel=2,
        )


def _header(data: bytes, separator: str) -> list[str]:
    text = data[:_HEAD].lstrip(b"\xef\xbb\xbf\r\n").decode("utf-8", errors="replace")
    try:
        return next(csv.reader(StringIO(text), delimiter=separator), [])
    except csv.Error:
        return []


def _marked_numbers(values: pd.Series, how: Reading, *, padded: bool) -> pd.Series:
    """Numbers from texts such as 1.234,5; the texts stay where one is no such number, or begins with a zero."""
    decimal, thousands = re.escape(how.decimal or "."), re.escape(how.thousands)
    whole = rf"(?:\d{{1,3}}(?:{thousands}\d{{3}})+|\d+)" if thousands else r"\d+"
    texts = values.dropna().str.strip()
    if not len(texts) or not texts.str.fullmatch(rf"[+-]?(?:{whole})?(?:{decimal}\d+)?(?:[eE][+-]?\d+)?").all():
        return values
    if not padded and texts.str.fullmatch(r"0\d+").any():
        return values
    bare = values.str.strip().str.replace(how.thousands, "", regex=False) if thousands else values.str.strip()
    numbers = pd.to_numeric(bare.str.replace(how.decimal or ".", ".", regex=False), errors="coerce")
    if int(numbers.isna().sum()) > int(values.isna().sum()):
        return values
    return numbers


def _unescaped(frame: pd.DataFrame, as_written: set[str]) -> pd.DataFrame:
    changed = {n: _with_formulas(frame[n]) for n in frame.columns if n not in as_written and _has_apostrophes(frame[n])}
    return frame.assign(**changed) if changed else frame


def _bytes(path: Path, encoding: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SchemaError(f"The file '{path.name}' is not a readable CSV: {error.strerror}.") from None
    if path.name.endswith(".gz"):
        data = _unpacked(data, path)
    if encoding:
        try:
            return data.decode(encoding).encode("utf-8")
        except (UnicodeError, LookupError, TypeError, AttributeError):
            raise _unreadable(path, f"it is not in the encoding '{encoding}' that --encoding names.") from None
    # Without a byte-order mark, every second byte of Latin letters is zero.
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or max(data[:40:2].count(0), data[1:40:2].count(0)) > 5:
        raise _unreadable(path, "it is in UTF-16. Say --encoding utf-16, or save it as UTF-8 (in Excel: 'CSV UTF-8').")
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


def _parsed(data: bytes, path: Path, separator: str, text: set[str] | None) -> pd.DataFrame:
    """The cells; those of columns in `text` as they are written, or all of them."""
    try:
        frame = pd.read_csv(
            BytesIO(data),
            sep=separator,
            keep_default_na=False,
            na_values=[""],
            dtype="str" if text is None else dict.fromkeys([*text, *(f"'{n}" for n in text)], "str"),
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
            f"Say --encoding cp1252, or save it as UTF-8 (in Excel: 'CSV UTF-8')."
        )
    return "its encoding is not UTF-8. Save it as UTF-8."


def _broken_line(message: str, separator: str) -> str:
    """What the parser says, in our words: only its numbers are taken over, never text that may be a cell."""
    if found := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message):
        due, line, seen = found.groups()
        mark = _NAMES.get(separator, f"'{separator}'")
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


def _with_formulas(values: pd.Series) -> pd.Series:
    """The texts of a CSV without the apostrophes that keep spreadsheets from running them."""
    kept = values.map(lambda v: isinstance(v, str) and _is_kept_formula(v)).astype(bool)
    return values.where(~kept, values.str[1:])


def _has_apostrophes(values: pd.Series) -> bool:
    return pd.api.types.is_string_dtype(values) and bool(values.str.startswith("'", na=False).any())


def _is_kept_formula(text: str) -> bool:
    return text.startswith("'") and FORMULA.match(text[1:]) is not None
