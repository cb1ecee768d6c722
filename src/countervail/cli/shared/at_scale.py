"""Tables of any size on the command line: which engine counts, with how much memory, and what it takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from countervail.cli.shared.common import as_word, counted, note, noted, pointing_note, say, say_json
from countervail.cli.shared.groups import grouped
from countervail.cli.shared.reading import noted_warnings
from countervail.core.errors import ParameterError
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Schema
from countervail.core.table import Table

if TYPE_CHECKING:
    from countervail.engine import Scan
    from countervail.protect._scanned import WrittenRelease

_OWN, _FEW = 0.2, 20  # as `pointing` has them for tables
_PANEL = "Large tables"
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Leave the rows where they are (Parquet files, folders, patterns, URLs): memory, duckdb or spark.",
        rich_help_panel=_PANEL,
    ),
]
Memory = Annotated[
    str | None, typer.Option(help="With --engine: what may be taken. Default: 2 GB.", rich_help_panel=_PANEL)
]
Threads = Annotated[
    int | None, typer.Option(help="With --engine: how many are used. Default: all.", min=1, rich_help_panel=_PANEL)
]
Master = Annotated[
    str | None,
    typer.Option(
        help="With --engine spark: its master, such as local[2], spark://host:7077 or sc://host (Connect).",
        rich_help_panel=_PANEL,
    ),
]
_TUNING = ("memory", "threads", "master")


def check_engine(engine: str | None, **flags: Any) -> None:
    """Refuse flags that an engine does not take, and flags of engines without one."""
    from countervail.engine import engines

    if engine is None:
        if given := [f for f in _TUNING if flags.pop(f, None) is not None]:
            raise ParameterError(f"--{given[0]} is for --engine ({', '.join(engines())}).")
        return
    if engine not in engines():
        raise ParameterError(f"--engine must be one of {', '.join(engines())}. Got '{engine}' instead.")
    if wrong := [n for n, v in flags.items() if n not in _TUNING and v not in (None, False, [], ())]:
        raise ParameterError(f"--engine does not take --{wrong[0].replace('_', '-')}: leave one of them out.")


def as_source(data: Path) -> str:
    """A source as it was given: a path has one slash where a URL has two."""
    return re.sub(r"^([a-z][a-z0-9]+):/(?=[^/])", r"\1://", str(data))


def open_scan(
    data: Path,
    schema: Path | Schema,
    engine: str,
    memory: str | None,
    threads: int | None,
    person: str | None = None,
    master: str | None = None,
) -> Scan:
    """The rows of a source, in an engine; `person` is the one identifier that tells people apart."""
    known = schema if isinstance(schema, Schema) else read_schema(schema)
    how: dict[str, Any] = {"engine": engine, "memory": memory or "2 GB", "threads": threads, "master": master}
    found: Scan = Table.scan(as_source(data), known, **how)
    if person is None:
        return found
    named = known.names("identifier")
    if person not in named:
        given = f"Identifiers: {', '.join(named)}." if named else "Give it the role 'identifier' in the schema."
        raise ParameterError(f"--person must name an identifier of the schema. {given}")
    kept = tuple(c for c in known if c.role != "identifier" or c.name == person)
    return replace(found, schema=replace(found.schema, columns=kept))


def groups_of(scan: Scan, hierarchies: Path | None, labels: str | None) -> dict[str, Any]:
    """What columns are grouped by where nobody says it, as for a table."""
    quasi = [scan.schema[n] for n in scan.schema.names("quasi")]
    files = set() if hierarchies is None else {p.stem for p in hierarchies.glob("*.csv")}
    if dates := [c.name for c in quasi if c.type == "date" and (labels == "hierarchy" or c.name in files)]:
        raise ParameterError(
            f"--engine does not group dates by periods: leave '{dates[0]}' as ranges (--labels tight)."
        )
    held = {}
    for name in (c.name for c in quasi if c.type == "categorical" or c.name in files):
        one = scan.distinct([name], limit=scan.budget(1))
        if one is None:
            raise ParameterError(f"--memory must be enough for the different values of '{name}'. Give more.")
        held[name] = one.table.frame[name].reset_index(drop=True)
    if not held:
        return {} if hierarchies is None else {"hierarchies": hierarchies}
    longest = max(map(len, held.values()))
    frame = pd.DataFrame({n: v.reindex(range(longest), method="ffill") for n, v in held.items()})
    part = replace(scan.schema, columns=tuple(c for c in quasi if c.name in held), favourable=())
    found = grouped(Table(frame, part), hierarchies, labels).settings
    return {n: v for n, v in found.items() if v is not None}


def pointing_scan(scan: Scan, names: list[str]) -> list[str]:
    """In which of these columns many people have a value that nobody else has."""
    often = {n: scan.relation.alone(n) for n in names}
    return [n for n, (alone, filled) in often.items() if filled >= _FEW and alone > _OWN * filled]


def check_leaving(scan: Scan, keep: list[str]) -> list[str]:
    """Columns that point at people leave only when that was said; those that do."""
    leaving = [c.name for c in scan.schema if c.role not in ("identifier", "quasi")]
    if strange := [n for n in keep if n not in leaving]:
        must = f"one of the columns that leave as they are: {', '.join(leaving)}"
        raise ParameterError(f"--keep must name {must}. Got '{strange[0]}'.")
    pointed = pointing_scan(scan, leaving)
    if refused := [n for n in pointed if n not in keep]:
        flags = " ".join(f"--keep {as_word(n)}" for n in refused)
        raise ParameterError(
            f"Many people have a value of their own in {', '.join(refused)}, which would leave as it is and points at "
            f"people as a name does. Group its values, give it the role 'quasi' or 'identifier' in the schema, or say "
            f"that it may leave: {flags}."
        )
    return pointed


def anonymize_scan(scan: Scan, protector: Any, output: Path, keep: list[str], tick: Any) -> dict[str, Any]:
    """Cut, write, and say what was written."""
    tick(1, 4)
    pointed = check_leaving(scan, keep)
    tick(2, 4)
    with noted_warnings():
        protector.fit(scan)
    tick(3, 4)
    written: WrittenRelease = protector.write(output)
    tick(4, 4)
    if pointed:
        note(pointing_note(pointed))
    for text in written.caveats:
        note(text)
    return {**written.to_dict(), "pointing": pointed, "notes": list(noted())}


def tell_written(found: dict[str, Any], promise: Any, output: Path, as_json: bool) -> None:
    """The result, for a person or a program."""
    if as_json:
        say_json({**found, "output": str(output)})
        return
    say(f"{found['rows']:,} rows in {counted(found['classes'], 'class', 'classes')} written to {output}.")
    sizes = f"Smallest class {found['smallest']:,}, average {found['average']:.1f}"
    say(f"{sizes}; information lost (NCP) {found['ncp']:.2%}; {found['suppressed']:,} rows suppressed.")
    say(f"Promise: {promise}")
    if found["as_they_are"]:
        say(f"Published as they are: {', '.join(found['as_they_are'])}.")
