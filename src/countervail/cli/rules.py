"""countervail rules: publishable rules of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countervail.cli.shared.common import (
    AsJson,
    Data,
    SchemaFile,
    check_ending,
    json_text,
    note,
    note_formulas,
    page_text,
    progress,
    remark,
    say,
    say_json,
    with_noted,
)
from countervail.cli.shared.reading import note_equal_rows, read_table
from countervail.core.files.frames import write_frame, write_text
from countervail.core.guarantee import KCommonality
from countervail.core.people import rows_for

if TYPE_CHECKING:
    from countervail.rules import RuleSet
    from countervail.rules.classify import Bounds

_SHOWN = 40
_EXACT = "The bounds of these rules are values that somebody has: look at them, do not hand them out."
ENDINGS = (".txt", ".csv", ".csv.gz", ".parquet", ".json", ".html")


def rules(
    data: Data,
    schema: SchemaFile,
    k: Annotated[int, typer.Option(help="People who support every rule, at least.", min=2)] = 5,
    max_union: Annotated[int | None, typer.Option(help="The most classes a rule may leave open.", min=1)] = None,
    max_values: Annotated[
        int, typer.Option(help="The most values of a column of labels that one condition may name.", min=1)
    ] = 1,
    exact_bounds: Annotated[
        bool, typer.Option("--exact-bounds", help="For your own eyes: bounds are values that somebody has.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}.")] = None,
    as_json: AsJson = False,
) -> None:
    """What the target depends on, in rules that at least k people support.

    Where too few people support a rule for one class, a rule for several classes says what can be said. Bounds are
    round numbers that nobody has, or that at least k people (and ten) share; dates are told by months.

    Example: `countervail rules people.csv --schema people.toml --k 5 -o rules.csv`
    """
    from countervail.rules import LERS

    check_ending(output, ENDINGS, data, schema)
    table = read_table(data, schema)
    note_equal_rows(table)
    with progress("Inducing rules", quiet=as_json) as tick:
        rows = rows_for(k, table, "LERS")
        bounds: Bounds = "values" if exact_bounds else "round"
        found = LERS(k=rows, max_union=max_union, max_values=max_values, bounds=bounds).fit(table).rules_
        tick(1, 1)
    promise = KCommonality(k, of="rule")
    if rows > k:
        note(f"Some people have several rows: every rule holds {rows} rows, so that {k} people are in it.")
    if exact_bounds:
        note(_EXACT)
    if output is not None:
        _write(found, promise, output)
        remark(f"{len(found)} rules written to {output}.")
    if as_json:
        say_json({"guarantee": promise.to_dict(), **found.to_dict()})
    elif output is None:
        _show(found, k)
    remark(str(promise))


def _show(found: RuleSet, k: int) -> None:
    """The rules that most people support, the largest first; all of them are for a file."""
    if not len(found):
        say(f"No rule has {k} supporters. Lower k.")
        return
    most = sorted(found, key=lambda rule: -rule.support)[:_SHOWN]
    for rule in most:
        say(f"{rule.sentence} ({rule.support} row{'' if rule.support == 1 else 's'})")
    if len(found) > _SHOWN:
        say(f"\nThese are the {_SHOWN} of {len(found):,} rules that most people support; -o rules.csv writes all.")


def _write(found: RuleSet, promise: KCommonality, path: Path) -> None:
    if path.suffix == ".json":
        write_text(json_text(with_noted({"guarantee": promise.to_dict(), **found.to_dict()})), path)
    elif path.suffix == ".txt":
        write_text(found.to_text() + "\n", path)
    elif path.suffix == ".html":
        from countervail.report.rules_page import rules_page, summarize_rules

        write_text(page_text(rules_page(summarize_rules(found, promise))), path)
    else:
        write_frame(found.to_frame(), path)
        note_formulas(found.to_frame(), path)
