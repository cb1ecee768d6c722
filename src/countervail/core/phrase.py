"""Sentences: a counterfactual as the change it asks for, in the words that the schema declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from countervail.core.cells import cell_text, fits, is_missing, range_text, visible
from countervail.core.schema import Column, Schema


def sentence(factual: Mapping[str, Any], cells: Mapping[str, Any], schema: Schema, decision: Any) -> str:
    """What would have to be different, and what the decision would be.

    Examples
    --------
    >>> s = Schema((Column("age", "numeric"), Column("housing")))
    >>> sentence({"age": 21, "housing": "rent"}, {"age": 24, "housing": frozenset(["own", "free"])}, s, "good")
    'If your age were 3 higher and your housing were free or own, the decision would be good.'
    """
    clauses = [_clause(factual[n], cell, schema[n]) for n, cell in cells.items() if n in factual]
    said = [c for c in clauses if c is not None]
    if not said:
        return visible(f"Nothing would have to change: people with these values get the decision {decision}.")
    words, subject = [], ""
    for who, what in said:
        words.append(what if who == subject else f"{who} {what}")
        subject = who
    listing = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return visible(f"If {listing}, the decision would be {decision}.")


def one_of(values: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def _clause(value: Any, cell: Any, column: Column) -> tuple[str, str] | None:
    """Subject and predicate of one change; None when the value already fits."""
    if fits(value, cell):
        return None
    if column.type == "numeric" and not is_missing(value) and not is_missing(cell) and not isinstance(cell, frozenset):
        return _numeric(float(value), cell, column)
    values = cell if isinstance(cell, frozenset) else frozenset([cell])
    return _is(one_of(_ordered(values, column)), column)


def _numeric(value: float, cell: Any, column: Column) -> tuple[str, str]:
    low, high = (cell.left, cell.right) if isinstance(cell, pd.Interval) else (cell, cell)
    more = low > value
    near, far = (low - value, high - value) if more else (value - high, value - low)
    amount, phrase = range_text(near, far), column.phrases.more if more else column.phrases.less
    if phrase:
        return "you", _predicate(phrase, _with_unit(amount, column, plain=False))
    if column.phrases.is_:
        return _is(range_text(low, high), column)
    return f"your {_spoken(column)}", f"were {_with_unit(amount, column)} {'higher' if more else 'lower'}"


def _is(values: str, column: Column) -> tuple[str, str]:
    if column.phrases.is_:
        return "you", _predicate(column.phrases.is_, _with_unit(values, column, plain=False))
    return f"your {_spoken(column)}", f"were {_with_unit(values, column)}"


def _predicate(phrase: str, words: str) -> str:
    # "{} years older" needs its verb; "lived in {}" brings one.
    return ("were " if phrase.startswith("{}") else "") + phrase.replace("{}", words)


def _with_unit(words: str, column: Column, *, plain: bool = True) -> str:
    if "{}" in column.unit:
        return column.unit.replace("{}", words)
    return f"{words} {column.unit}" if plain and column.unit else words


def _spoken(column: Column) -> str:
    return column.name.replace("_", " ")


def _ordered(values: frozenset[Any], column: Column) -> list[str]:
    levels = column.levels or ()
    rank = {v: i for i, v in enumerate(levels)}
    return [cell_text(v) for v in sorted(values, key=lambda v: (rank.get(v, len(rank)), cell_text(v)))]
