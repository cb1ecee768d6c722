"""countervail hierarchy: propose a hierarchy of a column's values to edit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.common import (
    AsJson,
    Data,
    check_ending,
    numbers,
    remark,
    say_json,
    show_text,
    whole_numbers,
)
from countervail.cli.shared.reading import read_rows
from countervail.core.errors import SchemaError, listed
from countervail.core.files.schema_file import read_schema


class HierarchyKind(StrEnum):
    """How values are grouped."""

    intervals = "intervals"
    quantiles = "quantiles"
    dates = "dates"
    prefixes = "prefixes"
    order = "order"
    flat = "flat"


def hierarchy(
    data: Data,
    column: Annotated[str, typer.Argument(help="The column whose values are grouped.", show_default=False)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the lines here (.csv).")] = None,
    kind: Annotated[HierarchyKind | None, typer.Option(help="How values are grouped; default: by their type.")] = None,
    widths: Annotated[str | None, typer.Option(help="Of intervals, smallest first: 5,10,20.")] = None,
    parts: Annotated[int, typer.Option(help="Number of quantile groups.", min=2)] = 8,
    lengths: Annotated[str | None, typer.Option(help="Characters that prefixes keep, largest first: 3,2.")] = None,
    schema: Annotated[Path | None, typer.Option("--schema", "-s", help="For the order of levels.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a hierarchy: one line per value, from the value over its groups to `*`, as ARX reads and writes them.

    The file lists the column's values: it is as private as they are until you have read it.

    Example: `countervail hierarchy people.csv age --widths 5,10,20 -o hierarchies/age.csv`
    """
    from countervail.data.propose_hierarchy import propose_hierarchy

    check_ending(output, (".csv",), data, schema)
    known = read_schema(schema) if schema is not None else None
    frame = read_rows(data, known)
    if column not in frame.columns:
        shown = [c.name for c in known or () if c.name in frame.columns]
        there = f"Columns: {listed(shown)}" if shown else f"It has {len(frame.columns)} columns"
        raise SchemaError(f"No column named {column!r} in the data. {there}.")
    proposal = propose_hierarchy(
        frame[column],
        kind=None if kind is None else kind.value,
        column=known[column] if known is not None and column in known else None,
        widths=None if widths is None else numbers(widths, "--widths"),
        parts=parts,
        lengths=None if lengths is None else whole_numbers(lengths, "--lengths"),
    )
    if output is not None:
        proposal.hierarchy.write(output)
    if as_json:
        about = {"column": column, "kind": proposal.kind, "reason": proposal.reason}
        say_json({**about, "lines": [list(row) for row in proposal.hierarchy.rows]})
    elif output is None:
        show_text(proposal.hierarchy.to_csv())
    where = "" if output is None else f" Written to {output}."
    text = (
        f"{column}: {proposal.kind} ({proposal.reason}), {proposal.hierarchy.levels} levels.{where} Read and edit it."
    )
    remark(text)
