"""What the commands share: messages, progress, and output files."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from countervail.core.arrays import Ints
from countervail.core.cells import visible
from countervail.core.errors import ParameterError
from countervail.core.files.frames import formula_cells
from countervail.core.protocols import Progress as Tick
from countervail.core.schema import Schema
from countervail.core.stats import plain_value

if TYPE_CHECKING:
    from countervail.report.counted_page import Counted
    from countervail.report.page import Page

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_OWN = 0.2  # above this share of people with a value of their own, a column points at people
_WIDE = 1_000  # characters of a table's line at most
_EXACT = 1e15  # whole numbers below it are the same as floats
_FEW = 20  # with fewer values, all of them may differ by chance

Data = Annotated[
    Path,
    typer.Argument(help="A .csv, .csv.gz, .parquet or .xlsx file, or a folder of .parquet files.", show_default=False),
]
SchemaFile = Annotated[
    Path,
    typer.Option("--schema", "-s", help="Schema file; `countervail schema DATA` proposes one.", show_default=False),
]
Person = Annotated[
    str | None,
    typer.Option("--person", help="The column that names a person: several rows of one count once."),
]
RowsArePeople = Annotated[
    bool, typer.Option("--rows-are-people", help="Every row is another person's, however much they look repeated.")
]
LedgerOption = Annotated[
    Path | None, typer.Option("--ledger", help="Count this release in a ledger (`countervail ledger create`).")
]
DatasetOption = Annotated[str | None, typer.Option("--dataset", help="With --ledger: whose ledger it must be.")]
PageFile = Annotated[Path | None, typer.Option("--output", "-o", help="Write a page here (.html).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_NOTES: ContextVar[tuple[str, ...]] = ContextVar("notes", default=())


def say(text: str) -> None:
    """A line for the person at the terminal; never markup or control characters, so that data cannot style it."""
    out.print(visible(text, keep="\n"), markup=False)


def remark(text: str) -> None:
    """A line beside the result, where it does not get into a pipe."""
    err.print(visible(text, keep="\n"), markup=False)


def note(text: str) -> None:
    """Something to know beside the result: on the terminal now, and in the JSON and on the page of this run."""
    for fresh in take_notes([text]):
        remark(fresh)


def tell_owner(text: str) -> None:
    """What whoever holds the rows should know and nobody else: on the terminal, and in nothing that is handed on."""
    remark(f"For you alone: {text}")


def take_notes(texts: Iterable[str]) -> list[str]:
    """What goes into the JSON and on the page; those that are new are left to be said when it is their turn."""
    told = [text if text.startswith("Note: ") else f"Note: {text}" for text in texts]
    fresh = [text for text in dict.fromkeys(told) if text not in _NOTES.get()]
    _NOTES.set((*_NOTES.get(), *fresh))
    return fresh


def noted() -> tuple[str, ...]:
    """All that was noted in this run."""
    return _NOTES.get()


def forget_notes() -> None:
    """A new run begins."""
    _NOTES.set(())


def page_text(page: Page) -> str:
    """A page with all that was noted in this run, as HTML."""
    from countervail.report.page import render_page, with_notes

    return render_page(with_notes(page, noted()))


def counted_file(path: Path, schema: Schema, *, published: bool, held: Collection[str] | None = None) -> Counted:
    """Which file a page is about; a digest of a table that is not published would confirm guesses about it.

    `held`: the columns of the file, where it need not have all that the schema declares.
    """
    from countervail.core.release import package_version
    from countervail.report.counted_page import Counted

    files = sorted(p for p in path.rglob("*.parquet") if p.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256(b"".join(hashlib.sha256(p.read_bytes()).digest() for p in files))
    whole = digest.hexdigest() if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    absent = "not in the file"
    columns = tuple((c.name, c.type, c.role if held is None or c.name in held else absent) for c in schema)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return Counted(
        path.name, whole if published else None, when, package_version(), schema.declared().digest(), columns
    )


def show_text(text: str) -> None:
    """Text that may go into a file; control characters are shown as escapes only where a person looks at it."""
    typer.echo(visible(text, keep="\n\t") if sys.stdout.isatty() else text, nl=False)


def say_json(data: Any) -> None:
    """The result for a program, with all that was noted in this run."""
    sys.stdout.write(json_text(with_noted(data)))


def with_noted(data: Any) -> Any:
    """A result with the notes of this run beside its own."""
    if not isinstance(data, Mapping):
        return data
    own = list(data.get("notes", ()))
    if not own and not noted():
        return data
    return {**data, "notes": [*own, *(n for n in noted() if n not in own)]}


def json_text(data: Any) -> str:
    """The result as JSON that every reader takes: a number that is not finite is null."""
    return json.dumps(plain_value(data), indent=1, allow_nan=False) + "\n"


def table(header: list[str], rows: list[list[str]]) -> None:
    """A small table, as wide as it needs to be: cut cells, or cut bars, would mislead."""
    grid = RichTable(*map(visible, header), box=None, pad_edge=False, header_style="")
    for row in rows:
        grid.add_row(*map(visible, row))
    needed = Measurement.get(out, out.options.update(max_width=_WIDE), grid).maximum
    wide = Console(file=out.file, highlight=False, width=max(out.width, needed))
    wide.print(grid, markup=False)


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Tick]:
    """A progress bar on the terminal; silent where there is none."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def open_ledger(path: Path | None, dataset: str | None, edition: str = "") -> Any:
    """The ledger to count in, if one is given; whose it is must be said."""
    if path is None:
        return None
    if dataset is None:
        raise ParameterError("--ledger needs --dataset: say whose ledger it must be, so that no other is taken.")
    from countervail.ledger import Ledger

    return Ledger.open(path, dataset, edition)


def note_formulas(frame: pd.DataFrame, path: Path) -> None:
    """Say that a CSV differs from its table where a spreadsheet would have run a cell."""
    for text in formula_notes(frame, path):
        note(text)


def formula_notes(frame: pd.DataFrame, path: Path) -> list[str]:
    """What is to be said of cells that a spreadsheet would have run."""
    count = formula_cells(frame) if ".csv" in path.suffixes else 0
    if not count:
        return []
    return [
        f"Note: {count:,} cell(s) begin like a formula; an apostrophe stands before them in {path.name}, so that "
        f"no spreadsheet runs them (`countervail proof csv-formulas`)."
    ]


def check_ending(path: Path | None, endings: tuple[str, ...], *read: Path | None) -> None:
    """Refuse an output name before any work is done: a wrong ending, no folder, or one of the files that are read."""
    if path is not None and not path.name.endswith(endings):
        any_of = "one of " if len(endings) > 1 else ""
        raise ParameterError(f"The output file '{path.name}' must end in {any_of}{', '.join(endings)}.")
    if path is not None and path.is_dir():
        raise ParameterError(f"The output file '{path.name}' is a folder. Name a file in it.")
    if path is not None and not path.parent.is_dir():
        raise ParameterError(f"No folder '{path.parent}' to write '{path.name}' into. Create it first.")
    check_not_read(path, *read)


def check_not_read(path: Path | None, *read: Path | None) -> None:
    """Refuse to write over a file that is read, however its path is spelled."""
    if path is not None and path.exists() and any(p is not None and p.exists() and path.samefile(p) for p in read):
        raise ParameterError(
            f"The output file '{path.name}' would overwrite the data: it is one of the files that are read. "
            f"Name another file."
        )


def pointing(frame: pd.DataFrame, names: Iterable[str], who: Ints | None = None) -> list[str]:
    """In which of these columns many people have a value that nobody else has; `who` says whose the rows are."""
    found = []
    for name in names:
        held = pd.DataFrame({"value": frame[name], "who": np.arange(len(frame)) if who is None else who}).dropna()
        held = held.drop_duplicates()  # a person's own value is that person's in every row
        people, own = held["who"].nunique(), held.groupby("value")["who"].transform("size") == 1
        if people >= _FEW and held.loc[own, "who"].nunique() > _OWN * people:
            found.append(name)
    return found


def counted(number: int, one: str, several: str) -> str:
    """A number with its word.

    Examples
    --------
    >>> counted(1, "class", "classes"), counted(2000, "class", "classes")
    ('1 class', '2,000 classes')
    """
    return f"{number:,} {one if number == 1 else several}"


def as_word(name: str) -> str:
    """A column's name as it is typed after a flag, with quotes where a shell would part or read it.

    Examples
    --------
    >>> as_word("salary"), as_word("Gehalt (€)")
    ('salary', '"Gehalt (€)"')
    """
    marked = re.sub(r'(["\\$`])', r"\\\1", name)
    return name if re.fullmatch(r"[\w.,:/+@%][\w.,:/+@%-]*", name) else f'"{marked}"'


def pointing_note(names: list[str]) -> str:
    """What such columns mean."""
    return (
        f"Note: many people have a value of their own in {', '.join(names)}. Such a column points at people as a "
        f"name does. Group its values, give it the role 'quasi' or 'identifier' in the schema, or drop it."
    )


def numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [float("nan")]
    if not all(abs(x) < _EXACT for x in found):
        raise ParameterError(
            f"{option} takes numbers with commas between them, such as 2,5,10, of at most 15 digits. Got '{text}'."
        )
    return [int(x) if x.is_integer() else x for x in found]


def whole_numbers(text: str, option: str) -> list[int]:
    """Whole numbers of at least 1 with commas between them."""
    found = [x for x in numbers(text, option) if isinstance(x, int) and x >= 1]
    if len(found) < text.count(",") + 1:
        raise ParameterError(f"{option} takes whole numbers of at least 1. Got '{text}'.")
    return found


def only_sensitive(schema: Schema) -> str:
    """The column that l and t speak of where none is named."""
    named = schema.names("sensitive")
    if len(named) != 1:
        raise ParameterError("The schema has not exactly one sensitive column. Name one with --sensitive.")
    return named[0]
