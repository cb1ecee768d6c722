"""countervail schema: propose a schema file to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.at_scale import Engine, Master, Memory, Threads, as_source, check_engine
from countervail.cli.shared.common import AsJson, Data, check_ending, remark, say_json, show_text
from countervail.cli.shared.reading import read_rows
from countervail.core.files.frames import write_text
from countervail.core.files.schema_file import schema_toml


def schema(
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the schema here (.toml).")] = None,
    target: Annotated[str | None, typer.Option(help="The column that the model predicts.")] = None,
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema file: types, domains, likely identifiers and quasi-identifiers, each with its reason.

    Nothing in it is final: read it, correct the roles, and state which decisions are favourable.

    Example: `countervail schema people.csv -o people.toml --target approved`

    Larger than memory: `countervail schema big.parquet --engine duckdb -o people.toml`
    """
    from countervail.data.propose import propose_schema

    check_engine(engine, memory=memory, threads=threads, master=master)
    check_ending(output, (".toml",), data)
    if engine is None:
        proposal = propose_schema(read_rows(data), target)
    else:
        from countervail.engine.proposal import propose_scan

        proposal = propose_scan(
            as_source(data), target, engine=engine, memory=memory or "2 GB", threads=threads, master=master
        )
    if as_json:
        say_json({**proposal.schema.to_dict(), "reasons": proposal.reasons})
    text = schema_toml(proposal.schema, proposal.reasons)
    if output is not None:
        write_text(text, output)
        remark(f"Proposed schema written to {output}. Read and correct it before you rely on it.")
    elif not as_json:
        show_text(text)
