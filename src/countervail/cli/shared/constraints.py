"""Constraints on the command line: text that becomes values of the columns it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from countervail.core.conform import plain
from countervail.core.constraints import ANY
from countervail.core.errors import ParameterError
from countervail.core.table import Table

FLAGS = ("immutable", "monotone", "ranges", "forbidden", "max_changes", "costs", "n_counterfactuals")
Immutable = Annotated[list[str] | None, typer.Option(help="A column that stays as it is; may be repeated.")]
Monotone = Annotated[list[str] | None, typer.Option(help="COLUMN=up or COLUMN=down; may be repeated.")]
Ranges = Annotated[
    list[str] | None,
    typer.Option("--range", help="COLUMN=LOW:HIGH (an end may be left open) or COLUMN=A,B,C; may be repeated."),
]
Forbidden = Annotated[list[str] | None, typer.Option("--forbid", help="COLUMN:FROM->TO, * for any; may be repeated.")]
MaxChanges = Annotated[int | None, typer.Option(help="How many columns may change at most.")]
Costs = Annotated[
    list[str] | None, typer.Option("--cost", help="COLUMN=NUMBER: how hard it is to change; may be repeated.")
]
Several = Annotated[int | None, typer.Option("--n", help="How many different answers each person gets.")]


def read_constraints(given: dict[str, Any], table: Table) -> dict[str, Any]:
    """The constraints among the flags, in the values of the table's columns."""
    found: dict[str, Any] = {name: given.get(name) for name in ("immutable", "max_changes", "n_counterfactuals")}
    ways = [_cut(text, "=", "--monotone", "age=up") for text in given.get("monotone") or ()]
    found["monotone"] = dict(ways) or None
    ranges = [_cut(text, "=", "--range", "income=0:100000") for text in given.get("ranges") or ()]
    found["ranges"] = {name: _range(name, text, table) for name, text in ranges} or None
    costs = [_cut(text, "=", "--cost", "income=2") for text in given.get("costs") or ()]
    found["costs"] = {name: _number(text, "--cost") for name, text in costs} or None
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for text in given.get("forbidden") or ():
        name, move = _cut(text, ":", "--forbid", "job:unskilled->management")
        ends = _cut(move, "->", "--forbid", "job:unskilled->management")
        pairs.setdefault(name, []).append((_value(name, ends[0], table), _value(name, ends[1], table)))
    found["forbidden"] = pairs or None
    return {name: value for name, value in found.items() if value is not None}


def _cut(text: str, mark: str, option: str, example: str) -> tuple[str, str]:
    name, found, rest = text.partition(mark)
    if not found or not name.strip() or not rest.strip():
        raise ParameterError(f"{option} is written as in {option} '{example}'. Got '{text}'.")
    return name.strip(), rest.strip()


def _range(name: str, text: str, table: Table) -> Sequence[Any]:
    if not _numeric(name, table):
        return [_value(name, part.strip(), table) for part in text.split(",")]
    low, found, high = text.partition(":")
    if not found:
        raise ParameterError(f"--range of numeric column '{name}' is written as LOW:HIGH. Got '{text}'.")
    dates = table.schema[name].type == "date"  # spelt as dates, which the method reads
    ends = [end.strip() or None for end in (low, high)]
    return [end if end is None or dates else _number(end, "--range") for end in ends]


def _value(name: str, text: str, table: Table) -> Any:
    """The column's own value that is spelt like this; a text that is none stays for the method to refuse."""
    if _numeric(name, table):
        return text if text == ANY or table.schema[name].type == "date" else _number(text, "--forbid")
    if name not in table.schema.features:
        return text
    known = table.schema[name].values
    held = known if known is not None else table.frame[name].dropna().unique().tolist()
    return {plain(v): v for v in held}.get(text, text)


def _numeric(name: str, table: Table) -> bool:
    return name in table.schema.features and table.schema[name].numeric


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{option} needs a number there. Got '{text}'.") from None
