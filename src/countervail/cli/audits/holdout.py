"""countervail holdout: people who are set aside before anything is released, for audits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from countervail.cli.shared.common import AsJson, Data, SchemaFile, check_ending, note, note_formulas, say, say_json
from countervail.cli.shared.reading import note_equal_rows, read_table
from countervail.core.errors import ParameterError
from countervail.core.files.frames import frame_writer, write_files
from countervail.core.people import people_in
from countervail.core.table import Table
from countervail.core.words.dates import iso_column

ENDINGS = (".csv", ".csv.gz", ".parquet")


def holdout(
    data: Data,
    schema: SchemaFile,
    members: Annotated[Path, typer.Option(help=f"The people to release: one of {', '.join(ENDINGS)}.")],
    control: Annotated[Path, typer.Option(help=f"The people who stay out: one of {', '.join(ENDINGS)}.")],
    share: Annotated[float, typer.Option(help="How many of the people stay out, as a share.")] = 0.3,
    as_json: AsJson = False,
) -> None:
    """Set people aside before anything is released: an audit needs some who were never in the table.

    People are drawn at random, with all rows of theirs where identifiers name them. Release the members only. Both
    files hold people as they are, dates as year-month-day, numbers with a decimal point.

    Example: `countervail holdout people.csv -s people.toml --share 0.3 --members members.csv --control others.csv`

    Then: `countervail anonymize members.csv -s people.toml --k 10 -o public.csv`, and
    `countervail audit public.csv -s people.toml --against members.csv --control others.csv -o dossier.html`
    """
    check_ending(members, ENDINGS, data, schema, control)
    check_ending(control, ENDINGS, data, schema, members)
    if members.resolve() == control.resolve():
        raise ParameterError("--members and --control must name two files: they hold different people.")
    if not 0 < share < 1:
        raise ParameterError(f"--share must be between 0 and 1. Got {share:g} instead.")
    table = read_table(data, schema)
    note_equal_rows(table)
    kept, others = table.split(test_size=share)
    note("Both files hold people as they are: keep them with the table.")
    frames = {path: _written(part) for path, part in ((members, kept), (control, others))}
    for path, frame in frames.items():
        note_formulas(frame, path)
    writers = {path: frame_writer(frame, path) for path, frame in frames.items()}
    write_files(writers, confidential=set(writers))
    found = {n: {"people": people_in(t), "rows": len(t)} for n, t in (("members", kept), ("control", others))}
    if as_json:
        say_json({**found, "files": {"members": str(members), "control": str(control)}})
        return
    for name, path in (("members", members), ("control", control)):
        say(f"{found[name]['people']:,} people in {found[name]['rows']:,} rows written to {path}.")


def _written(part: Table) -> pd.DataFrame:
    """The rows as a file holds them: dates as dates."""
    dates = part.schema.dates(part.frame.columns)
    return part.frame.assign(**{n: iso_column(part.frame[n]) for n in dates})
