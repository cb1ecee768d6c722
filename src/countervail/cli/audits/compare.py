"""countervail compare: several protections side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.common import (
    AsJson,
    Data,
    SchemaFile,
    check_ending,
    json_text,
    note,
    page_text,
    progress,
    remark,
    say,
    say_json,
    table,
    with_noted,
)
from countervail.cli.shared.reading import read_table
from countervail.cli.shared.words import in_flags

ENDINGS = (".html", ".json")


def compare(
    data: Data,
    schema: SchemaFile,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A saved model (.skops); default: a forest trained on DATA.")
    ] = None,
    control: Annotated[
        Path | None, typer.Option(help="People who were never in DATA; default: two fifths of DATA, held out.")
    ] = None,
    appetite: Annotated[Path | None, typer.Option(help="How much risk is accepted, as TOML.")] = None,
    answers: Annotated[int, typer.Option(help="How many people are asked about, at most.", min=1)] = 500,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}; may be repeated.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option(help="Open the model even if it is a pickle (it can run code).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare protections on your own data: plain, k-anonymous and noisy explanations, attacked alike.

    Example: `countervail compare people.csv --schema people.toml --model model.skops -o compared.html`
    """
    from countervail.auditing.side_by_side import HEADER
    from countervail.auditing.side_by_side import compare as run_compare
    from countervail.core.files.frames import write_text
    from countervail.model import load_model, train_forest

    for path in output or ():
        check_ending(path, ENDINGS, data, schema, model, control, appetite)
    people = read_table(data, schema)
    members, others = (
        people.split(test_size=0.4, random_state=0) if control is None else (people, read_table(control, schema))
    )
    if model is None:
        note("No --model given: a forest of 100 trees is trained on the data.")
    decide = train_forest(members) if model is None else load_model(model, allow_pickle=allow_pickle)
    with progress("Comparing", quiet=as_json) as tick:
        found = run_compare(members, decide, control=others, appetite=appetite, answers=answers, progress=tick)
    found = replace(found, contenders=tuple(replace(c, why=in_flags(c.why)) for c in found.contenders))
    for path in output or ():
        html = path.suffix == ".html"
        write_text(page_text(found.page()) if html else json_text(with_noted(found.to_dict())), path)
    if as_json:
        say_json(found.to_dict())
    else:
        table(list(HEADER), [list(row) for row in found.rows()])
        for c in (c for c in found.contenders if c.audit is None):
            say(f"{c.name} was not tried: {c.why}")
    for path in output or ():
        remark(f"Written: {path}")
