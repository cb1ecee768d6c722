"""countervail verify: is this dossier as it was written, and do its figures follow from its counts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, say, say_json
from countervail.core.errors import DataNotFoundError


def verify(
    dossier: Annotated[Path, typer.Argument(help="A dossier (.json) of `countervail audit`.", show_default=False)],
    schema: Annotated[
        Path | None, typer.Option("--schema", "-s", help="Also check that it is about tables of this schema.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Also check that it is about this file: the release, or answers.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute what a dossier says: digest, intervals, decisions, verdict, expiry; exit code 1 if anything is wrong.

    The digest finds slips and careless edits. Whoever forges a dossier can write a new digest: sign it where that
    matters.

    Example: `countervail verify dossier.json --schema people.toml --file public.csv`
    """
    from countervail.auditing import Audit
    from countervail.auditing import verify as check
    from countervail.auditing.result import file_digest, read_dossier
    from countervail.core.files.schema_file import read_schema

    text = read_dossier(dossier)
    problems = check(text)
    audit = Audit.from_json(text)
    if schema is not None and read_schema(schema).declared().digest() != audit.provenance.get("schema"):
        problems.append("It is about a table of another schema.")
    if file is not None:
        if not file.is_file():
            raise DataNotFoundError(f"No file '{file}' to look at. Give what was audited.")
        known = audit.provenance.get("file", {}).get("sha256")
        if known is None:
            why = "a saved protector was audited" if audit.verdict == "release" else f"its verdict is {audit.verdict}"
            problems.append(f"It permits no file to leave: {why}.")
        elif known != file_digest(file):
            problems.append(f"It is not about '{file.name}' as that is now: the file is another one, or was changed.")
    if as_json:
        say_json({"holds": not problems, "verdict": audit.verdict, "sentence": audit.sentence, "problems": problems})
    else:
        for line in problems:
            say(line)
        say("The dossier does NOT hold." if problems else f"The dossier holds: {audit.verdict}. {audit.sentence}")
    raise typer.Exit(1 if problems else 0)
