"""The `countervail` command: a thin shell around the library."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer

from countervail.cli.anonymize import FLAGS as ANONYMIZE_FLAGS
from countervail.cli.anonymize import anonymize
from countervail.cli.audits.attack import AttackCommand, attack
from countervail.cli.audits.audit import audit
from countervail.cli.audits.compare import compare
from countervail.cli.audits.holdout import holdout
from countervail.cli.audits.verify import verify
from countervail.cli.check import check
from countervail.cli.demo import demo
from countervail.cli.dit import FLAGS as DIT_FLAGS
from countervail.cli.dit import dit
from countervail.cli.explain import FLAGS as EXPLAIN_FLAGS
from countervail.cli.explain import explain
from countervail.cli.hierarchy import hierarchy
from countervail.cli.ledger import ledger
from countervail.cli.proof import proof
from countervail.cli.recommend import recommend
from countervail.cli.reproduce import reproduce
from countervail.cli.risk import risk
from countervail.cli.rules import rules
from countervail.cli.schema import schema
from countervail.cli.shared.common import forget_notes, remark, say
from countervail.cli.shared.methods import PlainCommand, PlainGroup, explaining, releasing, testable, with_methods
from countervail.cli.shared.reading import told_warnings, with_reading
from countervail.cli.shared.words import in_flags
from countervail.cli.warm import warm
from countervail.core import compiling
from countervail.core.cells import visible
from countervail.core.errors import CountervailError

_COMPILING = (
    "Compiling what this needs, once: it is kept for later runs. `countervail warm` compiles everything beforehand."
)
app = typer.Typer(
    name="countervail",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_METHODS: dict[Any, type[PlainCommand]] = {
    explain: with_methods(explaining, EXPLAIN_FLAGS),
    anonymize: with_methods(releasing, ANONYMIZE_FLAGS),
    dit: with_methods(testable, DIT_FLAGS),
    attack: AttackCommand,
}


def _show_version(asked: bool) -> None:
    if asked:
        say(f"countervail {version('countervail')}")
        raise typer.Exit


@app.callback()
def _start(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
) -> None:
    """Reasons for a decision without giving away other people: private explanations, private tables, attacks."""
    forget_notes()


_RELEASING = (schema, hierarchy, risk, explain, anonymize, check, rules)
_READING = (*_RELEASING, recommend, dit, holdout, attack, audit, compare)
for command in (demo, *_READING, verify, proof, reproduce, warm):
    app.command(cls=_METHODS.get(command, PlainCommand))(with_reading(command) if command in _READING else command)
app.add_typer(ledger)


def main() -> None:
    """Run the command; errors become one line and an exit code (2: what was asked cannot be done)."""
    if "--json" not in sys.argv[1:] and "warm" not in sys.argv[1:2]:
        compiling.when_compiling(lambda: remark(_COMPILING))
    try:
        with told_warnings():
            app()
    except CountervailError as error:
        remark(visible(f"countervail: {in_flags(str(error))}"))
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        remark(f"countervail: {error.strerror or type(error).__name__}: {error.filename2 or error.filename}")
        sys.exit(2)
