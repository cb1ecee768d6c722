"""People who ask: what names them, and the letters that reach them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date as Date
from pathlib import Path

import pandas as pd

from countervail.core.errors import ParameterError
from countervail.core.explanation import Explanations
from countervail.core.files.frames import text_writer
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.core.words.letters import letter_names, read_template


def without_ids(frame: pd.DataFrame, name: str, schema: Schema, where: str) -> tuple[pd.DataFrame, pd.Series]:
    """Rows without the column that names people, and that column: nothing that explains ever sees it."""
    if name not in frame.columns or name in schema.features or name == schema.target:
        raise ParameterError(
            f"--id must name a column of {where} that is neither explained nor the target. Got '{name}'."
        )
    return frame.drop(columns=name), _whole(frame[name], where)


def ids_of(table: Table, rows: pd.DataFrame, name: str) -> pd.Series:
    """What names these rows of the data itself."""
    if name not in table.schema.names("identifier"):
        raise ParameterError(
            f"--id must name a column that has the role 'identifier' in the schema; or give the people with --rows. "
            f"Got '{name}'."
        )
    return _whole(table.frame.loc[rows.index, name], "the data")


def _whole(ids: pd.Series, where: str) -> pd.Series:
    if count := int(ids.isna().sum()):
        raise ParameterError(f"--id names a column where {count} of the people in {where} have no value. Fill it in.")
    return ids


def check_letters(folder: Path | None, template: Path | None, sender: str) -> None:
    """Letters go into a folder of their own: no letter of another day may lie between them."""
    if folder is None:
        if template is not None or sender:
            raise ParameterError("--letter-template and --sender need --letters: say where the letters go.")
        return
    if not folder.parent.is_dir():
        raise ParameterError(f"No folder '{folder.parent}' to make the folder '{folder.name}' in. Create it first.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(f"--letters must name a new or an empty folder. '{folder.name}' is not empty.")
    read_template(template)


def letter_writers(
    answers: Explanations, folder: Path, template: Path | None, sender: str, language: str
) -> dict[Path, Callable[[Path], object]]:
    """What writes each letter into its file."""
    texts = answers.to_letters(language, template=template, sender=sender, date=Date.today())
    return {folder / name: text_writer(text) for name, text in zip(letter_names(answers, template), texts)}
