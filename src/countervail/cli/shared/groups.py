"""Groups that nobody had to write: periods of dates and prefixes of codes, said in a note."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from countervail.cli.shared.common import note
from countervail.core.errors import ParameterError
from countervail.core.hierarchy import Hierarchy
from countervail.core.table import Table
from countervail.core.words.dates import iso_column, read_days

_MANY = 50  # different texts; sets of fewer are read


@dataclass(frozen=True, slots=True)
class Grouping:
    """The table as it is cut, and what its columns are grouped by."""

    table: Table
    settings: Mapping[str, Any] = field(default_factory=dict)


def grouped(table: Table, hierarchies: Path | None, labels: str | None) -> Grouping:
    """Periods for dates where labels are those of hierarchies, prefixes for codes of many values unless told otherwise.

    A file of --hierarchies always goes before. Its dates may be spelt as they are in the data. Where it groups a column
    of many values, classes are called by its groups unless told otherwise: sets would list people's own values.
    """
    quasi = [table.schema[n] for n in table.schema.names("quasi")]
    files = {} if hierarchies is None else {p.stem: p for p in hierarchies.glob("*.csv")}
    dates = [c for c in quasi if c.type == "date" and (labels == "hierarchy" or c.name in files)]
    coded = [c.name for c in quasi if c.name not in files and _is_coded(table.frame[c.name], c.type)]
    owned = [c for c in quasi if c.name in files]
    many = [c.name for c in owned if c.type == "date" or table.frame[c.name].nunique() > _MANY]
    if many and labels is None:
        labels = "hierarchy"
        note(f"Classes are called by the groups of --hierarchies: sets of '{many[0]}' would list people's own values.")
    elif many and labels == "tight":
        note(f"Sets of '{many[0]}' list people's own values: --labels hierarchy publishes its groups.")
    wanted = labels == "hierarchy" or (labels is None and hierarchies is None)
    if labels == "hierarchy" and hierarchies is None and not dates and not coded:
        raise ParameterError(
            "--labels hierarchy needs --hierarchies, a folder with COLUMN.csv files: no quasi-identifier is a date or "
            "a code, which have groups of their own."
        )
    if not dates and not (coded and wanted):
        for name in coded:
            note(f"Sets of '{name}' may list many codes: --labels hierarchy groups them by their first characters.")
        named = {} if labels is None else {"labels": labels}
        return Grouping(table, named if hierarchies is None else {"hierarchies": hierarchies, **named})
    groups: dict[str, Any] = {n: p for n, p in files.items() if n in table.schema}
    for c in dates:
        texts = iso_column(table.frame[c.name])
        if c.name in files:
            groups[c.name] = _spelt_as_dates(Hierarchy.read(files[c.name], c.name), c.order)
        else:
            groups[c.name] = Hierarchy.dates(texts.dropna(), name=c.name)
            note(f"'{c.name}' is published by days, months, years or decades, as each class allows.")
    for name in coded if wanted else []:
        groups[name] = Hierarchy.prefixes(table.frame[name].dropna().unique(), name=name)
        note(f"'{name}' has many codes: they are published by their first characters. --labels tight lists them.")
    table = table.with_types(**{c.name: "categorical" for c in dates}) if dates else table
    kept = {n: g for n, g in groups.items() if table.schema[n].role in ("quasi", "sensitive")}
    return Grouping(table, {"hierarchies": kept, "labels": labels or ("hierarchy" if coded else None)})


def note_ungrouped(table: Table, *, centres: bool) -> None:
    """Say what becomes of labels of very many values where a method knows no groups of them."""
    quasi = [table.schema[n] for n in table.schema.names("quasi")]
    many = [c.name for c in quasi if c.type == "categorical" and table.frame[c.name].nunique() > _MANY]
    for name in many:
        told = "the commonest of a group is published, which may be one person's" if centres else "sets list them"
        note(f"'{name}' has many labels, and {told}: group them in the file, or take --method mondrian.")


def _is_coded(values: pd.Series, kind: str) -> bool:
    """Whether a column holds many texts of one length with digits in them, such as postcodes."""
    if kind != "categorical":
        return False
    texts = [str(v) for v in values.dropna().unique()]
    if len(texts) <= _MANY or not all(isinstance(v, str) for v in values.dropna().unique()):
        return False
    return len({len(t) for t in texts}) == 1 and all(any(ch.isdigit() for ch in t) for t in texts)


def _spelt_as_dates(given: Hierarchy, order: Any) -> Hierarchy:
    """A hierarchy whose values are dates in any spelling, with the one spelling of a table's dates."""
    days = iso_column(read_days(pd.Series(given.values, dtype="str"), order, given.name))
    return Hierarchy(tuple((day, *row[1:]) for day, row in zip(days, given.rows)), given.name)
