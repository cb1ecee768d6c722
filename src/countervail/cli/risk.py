"""countervail risk: how identifiable are these people?"""

from __future__ import annotations

from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, Data, Person, SchemaFile, progress, say, say_json, table
from countervail.core.table import Table


def risk(
    data: Data,
    schema: SchemaFile,
    k: Annotated[int, typer.Option(help="A class below this size counts as small.", min=1)] = 10,
    person: Person = None,
    as_json: AsJson = False,
) -> None:
    """How identifiable people are by their quasi-identifiers: shares and column combinations, never a row.

    Example: `countervail risk people.csv --schema people.toml --k 10`
    """
    from countervail import measure

    people = Table.read(data, schema)
    with progress("Looking at column combinations", quiet=as_json) as tick:
        found = measure.risk(people, k=k, person=person, progress=tick)
    if as_json:
        say_json(found.to_dict())
        return
    several = f" in {found.rows:,} rows" if found.rows != found.people else ""
    say(f"{found.people:,} people{several}, quasi-identifiers: {', '.join(found.quasi)}")
    say(f"{found.unique:.1%} are unique: nobody else shares their combination.")
    say(
        f"{found.below_k:.1%} share it with fewer than {found.k - 1} others ({found.classes:,} different combinations)."
    )
    if found.offenders:
        say("\nWhat gives most away, by combinations of up to three columns:")
        rows = [[" + ".join(o.columns), f"{o.unique:.1%}", f"{o.below_k:.1%}"] for o in found.offenders]
        table(["columns", "unique", f"in classes below {found.k}"], rows)
