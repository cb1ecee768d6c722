"""countervail proof: the pages that prove what is promised."""

from __future__ import annotations

from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, say, say_json
from countervail.core.guarantee.proofs import proof_names, proof_page, proof_title


def proof(
    name: Annotated[
        str | None, typer.Argument(help="A page, as a promise names it; without, all are listed.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show why a promise holds: the page that it names, or the list of all pages.

    Example: `countervail proof dp-table`
    """
    if name is not None:
        text = proof_page(name)
        if as_json:
            say_json({"name": name, "text": text})
        else:
            typer.echo(text, nl=False)
        return
    titles = {n: proof_title(n) for n in proof_names()}
    if as_json:
        say_json(titles)
        return
    wide = max(map(len, titles))
    for page, title in titles.items():
        say(f"{page:<{wide}}  {title}")
    say("\nShow one: countervail proof NAME")
