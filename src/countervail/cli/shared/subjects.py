"""What an attack or an audit is tried on, read from a file: explanations, a published table, or a saved protector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from countervail.cli.shared.foreign import ForeignFile
from countervail.cli.shared.reading import how_to_read
from countervail.core.errors import DataNotFoundError, ParameterError, SchemaError
from countervail.core.explanation import Explanations
from countervail.core.files.csv_text import PLAIN
from countervail.core.files.frames import ENDINGS as TABLES
from countervail.core.files.frames import read_frame
from countervail.core.files.release_file import read_release
from countervail.core.hierarchy import read_hierarchies
from countervail.core.release import Release
from countervail.core.table import Table

_ANSWERS = {"query", "status", "decision"}  # columns of answers that were written as a table


Hierarchies = Annotated[
    Path | None,
    typer.Option(help="Of a published table: the folder with the COLUMN.csv hierarchies whose groups it names."),
]


def read_what(
    path: Path,
    people: tuple[Table, Table],
    foreign: ForeignFile,
    model: Path | None = None,
    allow_pickle: bool = False,
    hierarchies: Path | None = None,
) -> Any:
    """Whatever a file holds: our explanations, releases and protectors, a published table, or other tools' answers."""
    table = people[0]
    if hierarchies is not None and not path.name.endswith(TABLES):
        raise ParameterError("--hierarchies is for a published table, whose cells name groups. Leave it out.")
    if not path.is_file():
        raise DataNotFoundError(
            f"No file '{path}' to look at. Give explanations, a published table or a saved protector."
        )
    if path.name.endswith(TABLES):
        return _read_table(path, people, foreign, hierarchies)
    kind = _kind(path)
    if kind == "explanations":
        return Explanations.from_json(path.read_text(encoding="utf-8"))
    if kind == "release":
        return Release.from_json(path.read_text(encoding="utf-8"))
    if kind == "protector":
        from countervail.model import load_model
        from countervail.protect import load_protector

        return load_protector(path, None if model is None else load_model(model, allow_pickle=allow_pickle))
    return foreign.read(path, table)


def _read_table(path: Path, people: tuple[Table, Table], foreign: ForeignFile, hierarchies: Path | None) -> Any:
    table, others = people
    if foreign.asked is not None:
        return foreign.read(path, table)
    quasi = set(table.schema.names("quasi"))
    # Our own releases are written in one way, however the people's file is; others as the flags say.
    ways = [PLAIN, how_to_read()]
    found = [set(map(str, read_frame(path, reading=way).columns)) for way in ways]
    if any(names >= _ANSWERS for names in found):
        raise ParameterError(
            f"'{path.name}' holds explanations as a table, which does not say whose values are whose. Write them with "
            f"-o answers.json, and give that file."
        )
    for way, names in zip(ways, found):
        if quasi <= names:
            groups = read_hierarchies(hierarchies, table.schema.names("quasi"), "a release")
            return read_release(path, table, others=(others,), hierarchies=groups, reading=way)
    raise ParameterError(
        f"'{path.name}' lacks quasi-identifiers of the schema: it is no published table. For a table of "
        f"counterfactuals, give --asked, the rows that were explained."
    )


def _kind(path: Path) -> str:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        raise SchemaError(
            f"'{path.name}' is neither JSON nor a table ({', '.join(TABLES)}). Give explanations, a published table or "
            f"a saved protector."
        ) from None
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else ""
