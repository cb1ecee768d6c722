"""countervail attack: one attack, tried on a file."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from countervail import registry
from countervail.cli.shared.common import AsJson, SchemaFile, remark, say, say_json
from countervail.cli.shared.common import table as show_table
from countervail.cli.shared.foreign import Asked, ForeignFile, OneHot, Query
from countervail.cli.shared.methods import PlainCommand
from countervail.cli.shared.reading import noted_warnings, read_table
from countervail.cli.shared.subjects import Hierarchies, read_what
from countervail.core.errors import CountervailError, ParameterError, RefusedError
from countervail.core.rng import generator
from countervail.core.stats import Estimate
from countervail.core.table import Table

_PLANTED = 500  # people among whom a leak is planted
_OURS = ("n_targets", "random_state", "again")  # parameters with a flag of their own, or that no text can give


class AttackCommand(PlainCommand):
    """A command whose help lists the attacks; they are looked up only then, because that imports them all."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = _listed()
        super().format_help(ctx, formatter)


def attack(
    name: Annotated[str, typer.Argument(help="Which attack; see below.", show_default=False)],
    what: Annotated[
        Path,
        typer.Argument(
            help="Explanations (.json, ours or others'), a published table (.csv, .parquet), or a saved protector.",
            show_default=False,
        ),
    ],
    schema: SchemaFile,
    against: Annotated[Path, typer.Option(help="The people behind it, as a file of rows.", show_default=False)],
    control: Annotated[
        Path | None, typer.Option(help="People of the same kind who were never in it, as a file of rows.")
    ] = None,
    split: Annotated[
        float | None,
        typer.Option(help="In the place of --control: --against holds both; this share of it was held out (--seed)."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="With a saved protector that explains: its model (.skops).")
    ] = None,
    asked: Asked = None,
    query: Query = None,
    one_hot: OneHot = False,
    hierarchies: Hierarchies = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the attack, such as columns=features; repeatable.")
    ] = None,
    targets: Annotated[int | None, typer.Option(help="How many are attacked, or asked about.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Which ones; and of --split, as in table.split().", min=0)] = 0,
    allow_pickle: Annotated[
        bool, typer.Option(help="Open the model even if it is a pickle (it can run code).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Try one attack: on the people behind a file, on people who were never in it, and on a leak planted for it.

    Success beyond that on strangers is the excess. An attack that does not find its planted leak has shown nothing.

    Example: `countervail attack singling-out answers.json --schema people.toml --against people.csv
    --control others.csv`

    A saved protector is asked: `countervail attack averaging cfk.json -s people.toml --against people.csv
    --control others.csv --model m.skops`
    """
    kind = _kind(name)
    tried = _made(kind, settings or [], targets, seed)
    members, others = _people(against, schema, control, split, seed)
    opened = read_what(what, (members, others), ForeignFile(asked, query, one_hot), model, allow_pickle, hierarchies)
    released, strangers, caveats = _subject(kind, name, opened, members, others)
    result = _run(name, tried, released, members, strangers)
    few, fewer = (_some(t, seed) for t in (members, others))
    planted = _run(name, tried, tried.planted(few, fewer), few, fewer)
    found = planted.excess.low > 0
    if as_json:
        said = {**result.to_dict(), "criterion": kind.criterion, "caveats": caveats}
        say_json({**said, "planted": planted.to_dict(), "planted_found": found})
        return
    _tell(result, kind, caveats)
    say(
        f"A leak planted for it among {len(few):,} of these people is found."
        if found
        else f"A leak planted for it among {len(few):,} of these people is NOT found: nothing is shown here. Give more "
        "people and controls."
    )


def _kind(name: str) -> type[Any]:
    kinds = registry.attacks()
    if name not in kinds:
        raise ParameterError(f"NAME must be one of {', '.join(kinds)}. Got '{name}' instead.")
    return kinds[name]


def _settings(kind: type[Any]) -> list[str]:
    return [n for n in registry.parameters(kind) if n not in _OURS]


def _made(kind: type[Any], settings: list[str], targets: int | None, seed: int) -> Any:
    """The attack with its settings, which are numbers, words, or lists of columns."""
    given: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or key not in _settings(kind):
            known = ", ".join(_settings(kind)) or "nothing: it has no settings"
            raise ParameterError(f"--set takes NAME=VALUE, where {kind.name} knows {known}. Got '{text}' instead.")
        listed = "Sequence" in str(inspect.signature(kind).parameters[key].annotation)
        given[key] = [part.strip() for part in value.split(",")] if listed else _value(value)
    held = {} if targets is None else {"n_targets": targets}
    return kind(**given, **held, random_state=seed)


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _people(against: Path, schema: Path, control: Path | None, split: float | None, seed: int) -> tuple[Table, Table]:
    if (control is None) == (split is None):
        raise ParameterError("Give --control, a file of people who were never in it, or --split, the share held out.")
    members = read_table(against, schema)
    if control is not None:
        return members, read_table(control, schema)
    if split is None or not 0 < split < 1:
        raise ParameterError(f"--split must be a share between 0 and 1. Got {split} instead.")
    return members.split(test_size=split, random_state=seed)


def _subject(kind: type[Any], name: str, opened: Any, members: Table, others: Table) -> tuple[Any, Table, list[str]]:
    """What the attack is tried on, people who were never in it nor asked, and what is to be said beside."""
    from countervail.attack import OracleAttack
    from countervail.auditing.subject import check_controls, read_subject

    try:
        check_controls(members, others)
        if issubclass(kind, OracleAttack):
            if not hasattr(opened, "explain"):
                raise ParameterError(f"{name} asks, and a file of answers does not answer. Give a saved protector.")
            return opened, others, []
        subject = read_subject(opened, members, others)
    except ParameterError as error:
        raise ParameterError(_with_flags(str(error))) from None
    return subject.released, subject.strangers, list(subject.caveats)


def _with_flags(text: str) -> str:
    for parameter, flag in (("control", "--control"), ("table", "--against")):
        text = text.replace(f"The '{parameter}' parameter of audit", flag)
    return text.replace(" given to audit", "")


def _with_settings(text: str, kind: type[Any]) -> str:
    """A message about the attack's own parameters, as they are given here."""
    flags = {n: f"--set {n}" for n in _settings(kind)} | {"n_targets": "--targets"}
    for parameter, flag in flags.items():
        text = re.sub(rf"The '{parameter}' parameter of (?:{kind.__name__}|a membership attack)", flag, text)
    return text


def _run(name: str, tried: Any, target: Any, members: Table, others: Table) -> Any:
    try:
        with noted_warnings():
            return tried.run(target, members, others)
    except ParameterError as error:
        raise ParameterError(_with_settings(str(error), type(tried))) from None
    except CountervailError:
        raise
    except Exception as error:  # noqa: BLE001 - a file can hold anything, and an error's text may hold rows
        raise RefusedError(
            f"{name} cannot be carried out on this: it ended with {type(error).__name__}. Check that the file is about "
            f"the people of --against, in the columns of --schema."
        ) from None


def _some(people: Table, seed: int) -> Table:
    if len(people) <= _PLANTED:
        return people
    return people.take(generator(seed).permutation(len(people))[:_PLANTED])


def _tell(result: Any, kind: type[Any], caveats: list[str]) -> None:
    say(f"{result.attack}: {registry.summary(kind)}")
    rows = [
        ["members", *_cells(result.members)],
        ["people never in it", *_cells(result.controls)],
        ["blind guesses", *_cells(result.baseline)],
        ["excess over people never in it", *_cells(result.excess)],
    ]
    show_table(["", "success", "interval (95%)", "n"], rows)
    if result.detail:
        say("")
        show_table(["further", "", "interval (95%)", "n"], [[n, *_cells(e)] for n, e in result.detail.items()])
    for text in result.remarks:
        say(text)
    for text in caveats:
        remark(text)


def _cells(e: Estimate) -> list[str]:
    if not e.n or e.value != e.value:
        return ["none", "", f"{e.n:,}"]
    return [f"{e.value:.1%}", f"{e.low:.1%} to {e.high:.1%}", f"{e.n:,}"]


def _listed() -> str:
    lines = []
    for name, kind in registry.attacks().items():
        known = _settings(kind)
        defaults = registry.parameters(kind)
        taken = ", ".join(f"`{n}={defaults[n]}`" if defaults[n] is not None else f"`{n}`" for n in known)
        lines.append(f"- `{name}` ({kind.criterion}): {registry.summary(kind)} Settings: {taken or 'none'}.")
    return "\n\n".join(["Attacks, what success means, and their settings (`--set`):", *lines])
