"""countervail schema: propose a schema file to edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countervail.cli.shared.at_scale import Engine, Master, Memory, Threads, as_source, check_engine
from countervail.cli.shared.common import AsJson, Data, check_ending, remark, say_json, show_text
from countervail.cli.shared.reading import read_rows
from countervail.core.errors import ParameterError
from countervail.core.files.frames import write_text
from countervail.core.files.schema_file import schema_toml
from countervail.core.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


def schema(
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the schema here (.toml).")] = None,
    target: Annotated[str | None, typer.Option(help="The column that the model predicts.")] = None,
    favourable: Annotated[
        list[str] | None, typer.Option(help="A decision that people hope for, of the target; as often as needed.")
    ] = None,
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema file: types, domains, likely identifiers and quasi-identifiers, each with its reason.

    Nothing in it is final: read it, correct the roles, and state which decisions are favourable.

    Example: `countervail schema people.csv -o people.toml --target approved --favourable yes`

    Larger than memory: `countervail schema big.parquet --engine duckdb -o people.toml`
    """
    from countervail.data.propose import propose_schema

    check_engine(engine, memory=memory, threads=threads, master=master)
    check_ending(output, (".toml",), data)
    rows = read_rows(data) if engine is None else None
    if engine is None:
        proposal = propose_schema(rows, target)
    else:
        from countervail.engine.proposal import propose_scan

        proposal = propose_scan(
            as_source(data), target, engine=engine, memory=memory or "2 GB", threads=threads, master=master
        )
    if favourable:
        proposal = replace(proposal, schema=_hoped_for(proposal.schema, favourable, rows))
    if as_json:
        say_json({**proposal.schema.to_dict(), "reasons": proposal.reasons})
    text = schema_toml(proposal.schema, proposal.reasons)
    if output is not None:
        write_text(text, output)
        remark(f"Proposed schema written to {output}. Read and correct it before you rely on it.")
    elif not as_json:
        show_text(text)


def _hoped_for(schema: Schema, favourable: list[str], rows: pd.DataFrame | None) -> Schema:
    """The schema with the labels of its target that were named; those that no row has are refused."""
    if schema.target is None:
        raise ParameterError("--favourable is about decisions, and no column looks like one. Name it with --target.")
    if rows is None:  # whoever reads the table by this schema compares
        return replace(schema, favourable=tuple(favourable))
    known = {str(v).lower(): v for v in rows[schema.target].dropna().unique().tolist()}
    if missing := sum(t.lower() not in known for t in favourable):
        raise ParameterError(
            f"--favourable must be among the labels of the target '{schema.target}', of which the data has "
            f"{len(known)}: {missing} of the {len(favourable)} given {'is none' if missing == 1 else 'are none'}."
        )
    return replace(schema, favourable=tuple(known[t.lower()] for t in favourable))
