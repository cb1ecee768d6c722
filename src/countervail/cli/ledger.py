"""countervail ledger: make a budget for some people, and see what became of it."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countervail.cli.shared.common import AsJson, check_ending, counted, json_text, remark, say, say_json, table
from countervail.cli.shared.methods import PlainCommand, PlainGroup
from countervail.core.errors import ParameterError

if TYPE_CHECKING:
    from countervail.ledger import Entry, Ledger

ENDINGS = (".html", ".json", ".csv")
_WIDTH = 40

ledger = typer.Typer(
    name="ledger",
    cls=PlainGroup,
    help="A privacy budget for the people of a data set, kept in a file that all releases about them are counted in.",
    no_args_is_help=True,
)
LedgerFile = Annotated[Path, typer.Argument(help="The ledger's file. Keep it confidential.", show_default=False)]


class Composition(StrEnum):
    """How answers add up."""

    basic = "basic"
    optimal = "optimal"
    zcdp = "zcdp"


class Adjacency(StrEnum):
    """What one record means."""

    replace_one = "replace-one"
    add_remove = "add-remove"


@ledger.command(cls=PlainCommand)
def create(
    file: LedgerFile,
    dataset: Annotated[str, typer.Option(help="A name for the people; keep it whatever becomes of the table.")],
    epsilon: Annotated[float | None, typer.Option(help="The most that all answers together may cost.")] = None,
    delta: Annotated[float, typer.Option(help="The chance that it is more; 1e-6, or below one in the people.")] = 0.0,
    rho: Annotated[float | None, typer.Option(help="A budget of zCDP instead of epsilon and delta.")] = None,
    composition: Annotated[
        Composition | None, typer.Option(help="Default: basic without delta, zcdp with it, optimal with --plan.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="optimal: epsilon of every answer (0.1), or epsilon:answers,... (0.1:500,1:1).")
    ] = None,
    adjacency: Annotated[Adjacency, typer.Option(help="What one record means.")] = Adjacency.replace_one,
) -> None:
    """Create a ledger. An existing file is never touched: a budget cannot be started again.

    Example: `countervail ledger create people.ledger --dataset "customers 2026" --epsilon 4 --delta 1e-6`
    """
    from countervail.ledger import Ledger

    made = Ledger.create(
        file,
        dataset,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        composition=None if composition is None else composition.value,
        plan=_plan(plan),
        adjacency=adjacency.value,
    )
    say(f"Ledger of '{made.dataset}' created: {made.budget.claim}. Left: {made.statement().left}.")
    for each in (0.01, 0.1, 1.0):
        say(f"  Answers of epsilon = {each:g}: {made.left(each):,}")
    remark("Pass it to every release about these people. Keep it confidential; an old copy forgets what was spent.")


@ledger.command(cls=PlainCommand)
def show(
    file: LedgerFile,
    check: Annotated[bool, typer.Option("--check", help="Read all of it, and check every seal and sum.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a budget and what is left of it. For the owner: what is left tells how much others have asked.

    Example: `countervail ledger show people.ledger --check`
    """
    from countervail.ledger import Ledger
    from countervail.ledger.history import in_words

    opened = Ledger.open(file, None)
    found = opened.verify() if check else opened.statement()
    if as_json:
        say_json(found.to_dict() | {"checked": check})
        return
    done = round(found.share_spent * _WIDTH)
    say(f"Ledger of '{found.budget.dataset}': {found.budget.claim} ({found.budget.adjacency}).")
    say(f"[{'#' * done}{'.' * (_WIDTH - done)}] {found.share_spent:.1%} spent")
    say(f"Left: {found.left}. Composition: {found.budget.composition}.")
    say(f"Entries: {found.entries:,}; groupings for k-anonymous releases: {found.groupings:,}.")
    say(found.promise)
    if found.last:
        say(f"Created {in_words(found.created)}, last entry {in_words(found.last)} (UTC).")
    if check:
        say("Every seal and every sum is right.")


@ledger.command(cls=PlainCommand)
def history(
    file: LedgerFile,
    last: Annotated[int, typer.Option(help="How many of the latest entries.", min=1)] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}; .html has a picture.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what was released when, without a query or an answer in it: keyed hashes stand for them.

    Example: `countervail ledger history people.ledger --last 50 -o budget.html`
    """
    from countervail.ledger import Ledger
    from countervail.report.ledger_page import HEADER, rows_of

    check_ending(output, ENDINGS, file)
    opened = Ledger.open(file, None)
    entries = opened.history(last)
    plain = [asdict(e) for e in entries]
    if output is not None:
        _write(opened, plain, entries, output)
        remark(f"{counted(len(entries), 'entry', 'entries')} written to {output}.")
    if as_json:
        say_json(plain)
    elif output is None:
        table(list(HEADER), rows_of(entries))


def _write(opened: Ledger, plain: list[dict[str, Any]], entries: list[Entry], output: Path) -> None:
    from countervail.core.files.frames import write_frame, write_text

    if output.suffix == ".json":
        write_text(json_text(plain), output)
    elif output.suffix == ".csv":
        import pandas as pd

        write_frame(pd.DataFrame(plain), output)
    else:
        from countervail.report import write_page
        from countervail.report.ledger_page import ledger_page

        write_page(ledger_page(opened.statement(), entries, opened.over_time()), output)


def _plan(text: str | None) -> float | dict[float, int] | None:
    if text is None:
        return None
    try:
        if ":" not in text:
            return float(text)
        return {float(e): int(n) for e, n in (part.split(":") for part in text.split(","))}
    except ValueError:
        raise ParameterError(f"--plan must be an epsilon, or epsilon:answers,... Got '{text}' instead.") from None
