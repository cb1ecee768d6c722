"""countervail compare: several protections side by side."""

from __future__ import annotations

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
    say_json,
    table,
    with_noted,
)
from countervail.cli.shared.reading import read_table

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
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}.")] = None,
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

    check_ending(output, ENDINGS, data, schema, model, control, appetite)
    people = read_table(data, schema)
    members, others = (
        people.split(test_size=0.4, random_state=0) if control is None else (people, read_table(control, schema))
    )
    if model is None:
        note("No --model given: a forest of 100 trees is trained on the data.")
    decide = train_forest(members) if model is None else load_model(model, allow_pickle=allow_pickle)
    with progress("Comparing", quiet=as_json) as tick:
        found = run_compare(members, decide, control=others, appetite=appetite, answers=answers, progress=tick)
    if output is not None and output.suffix == ".html":
        write_text(page_text(found.page()), output)
    elif output is not None:
        write_text(json_text(with_noted(found.to_dict())), output)
    if as_json:
        say_json(found.to_dict())
    else:
        table(list(HEADER), [list(row) for row in found.rows()])
    if output is not None:
        remark(f"Written: {output}")
