"""countervail schema: propose a schema file to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, Data, check_ending, remark, say_json, show_text
from countervail.cli.shared.reading import read_rows
from countervail.core.files.frames import write_text
from countervail.core.files.schema_file import schema_toml


def schema(
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the schema here (.toml).")] = None,
    target: Annotated[str | None, typer.Option(help="The column that the model predicts.")] = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema file: types, domains, likely identifiers and quasi-identifiers, each with its reason.

    Nothing in it is final: read it, correct the roles, and state which decisions are favourable.

    Example: `countervail schema people.csv -o people.toml --target approved`
    """
    from countervail.data.propose import propose_schema

    check_ending(output, (".toml",), data)
    proposal = propose_schema(read_rows(data), target)
    if as_json:
        say_json({**proposal.schema.to_dict(), "reasons": proposal.reasons})
    text = schema_toml(proposal.schema, proposal.reasons)
    if output is not None:
        write_text(text, output)
        remark(f"Proposed schema written to {output}. Read and correct it before you rely on it.")
    elif not as_json:
        show_text(text)
