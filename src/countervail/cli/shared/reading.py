"""How files are read on the command line: four flags that every command with data takes, and what is said of a file."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from countervail.cli.shared.common import note, tell_owner
from countervail.core.counting.copies import EqualRows
from countervail.core.errors import InputWarning, ModelWarning, PrivacyWarning
from countervail.core.files.csv_text import PLAIN, Reading
from countervail.core.files.frames import read_frame
from countervail.core.people import rows_per_person
from countervail.core.schema import Schema
from countervail.core.table import Table

_OURS = (InputWarning, ModelWarning, PrivacyWarning)
LOOK_REPEATED = "far more than chance explains: they look repeated"
ROWS_IN_AN_ENGINE = "With --engine every row counts as a person; whether rows look repeated is not looked at."
EACH_ROW = (
    "No identifier names people, so each row counts as one person: if somebody has several, fewer people are behind "
    "what is promised."
)
_READING: ContextVar[Reading] = ContextVar("reading", default=PLAIN)
_FLAGS = {
    "encoding": "Of a CSV: such as cp1252 or latin-1. Default: UTF-8.",
    "sep": "Of a CSV: what stands between cells (or 'tab'). Default: as the header tells.",
    "decimal": "Of a CSV: the decimal mark in numbers.",
    "thousands": "Of a CSV: the mark between thousands.",
}


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """The command with flags that say how its CSV files are written."""

    @wraps(command)
    def run(**given: Any) -> None:
        token = _READING.set(Reading(**{n: given.pop(n) or "" for n in _FLAGS}))
        try:
            command(**given)
        finally:
            _READING.reset(token)

    plain = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, typer.Option(f"--{name}", help=text, rich_help_panel="Reading files")],
        )
        for name, text in _FLAGS.items()
    ]
    given = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in plain.parameters.values()]
    signature = plain.replace(parameters=[*given, *added])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return run


def how_to_read() -> Reading:
    """How the files of this run are written, as the flags say."""
    return _READING.get()


def read_table(path: Path, schema: Path | Schema) -> Table:
    """The rows of a file that a schema declares; what is strange about it is noted."""
    with noted_warnings():
        return Table.read(path, schema, reading=how_to_read())


def equal_rows(table: Table) -> EqualRows | None:
    """Rows of a table that are equal in every column; None where identifiers tell people apart, or none are equal."""
    if table.schema.names("identifier"):
        return None
    found = EqualRows.of(table.frame, table.schema.names("quasi"))
    return found if found.equal else None


def copies_once(table: Table) -> Table:
    """Where nobody is named: rows that look repeated count once; others that are equal stay, and both are noted."""
    equal = equal_rows(table)
    if equal is None:
        return table
    note_once(equal)
    return table.take(equal.first) if equal.copied else table


def note_once(equal: EqualRows, *, published: bool = False) -> None:
    """Say how rows that are equal in every column are counted."""
    if equal.copied:
        each = ", --rows-per-person N" if published else ""
        note(
            f"{equal.words}, {LOOK_REPEATED}, and count once. Say whose they are: --person{each} or --rows-are-people."
        )
    else:
        named = "say how many rows one has: --rows-per-person N" if published else "name people with --person"
        note(f"{equal.words}; they count as different people. If some are one person's, {named}.")


def note_equal_rows(table: Table) -> None:
    """Say that rows are equal in every column: what is promised counts them as different people."""
    if found := equal_rows(table):
        seen = f"{found.words}, {LOOK_REPEATED}" if found.copied else found.words
        note(
            f"{seen}. Here each counts as a person: if some are one person's, fewer people are behind what is "
            f"promised. Keep one row for each person, or give the column that names them the role 'identifier'."
        )


def tell_equal_rows(table: Table) -> None:
    """The same beside what leaves with a promise: how many rows are equal follows from who owns what, so it is told to
    the owner alone. That rows count as people follows from the schema."""
    if table.schema.names("identifier"):
        return
    note(EACH_ROW)
    if found := equal_rows(table):
        seen = f"{found.words}, {LOOK_REPEATED}" if found.copied else found.words
        tell_owner(f"{seen}. If some are one person's, keep one row for each person, or name people by an identifier.")


def tell_own_rows(table: Table) -> None:
    """Tell the owner where people have several rows, which a promise about one record does not cover."""
    if (most := rows_per_person(table)) > 1:
        tell_owner(
            f"Some people have up to {most} rows, and the promise is about one: for all rows of such a person together "
            f"epsilon is {most} times as large, or more with a delta. Give a table with one row for each person."
        )


def read_rows(path: Path, schema: Schema | None = None, *, text: tuple[str, ...] = ()) -> pd.DataFrame:
    """The rows of a file as they are; what is strange about it is noted."""
    with noted_warnings():
        return read_frame(path, schema, text=text, reading=how_to_read())


@contextmanager
def told_warnings() -> Iterator[None]:
    """Of all warnings of a run ours become notes; those of other packages, which may quote cells, are not shown."""

    def tell(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, _OURS):
            note(str(message))

    with warnings.catch_warnings():
        for kind in _OURS:
            warnings.simplefilter("always", kind)
        warnings.showwarning = tell
        yield


@contextmanager
def noted_warnings() -> Iterator[None]:
    """Warnings of ours become notes, which are on the terminal, in JSON and on the page; others stay as they are."""
    with warnings.catch_warnings(record=True) as held:
        warnings.simplefilter("default")
        for kind in _OURS:
            warnings.simplefilter("always", kind)
        yield
    for found in held:
        if issubclass(found.category, _OURS):
            note(str(found.message))
        else:
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)
