"""Rules that somebody brings: written by hand, by experts or by `countervail rules`, fitted to a table."""

from __future__ import annotations

import json
from calendar import monthrange
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.cells import is_missing
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.rules.induce import mark_inside
from countervail.rules.inputs import build_value_table, take_features, take_target
from countervail.rules.ruleset import Rule, RuleSet
from countervail.rules.values import Attribute, Bools, ValueTable

_EPOCH = date(1970, 1, 1).toordinal()
_FORM = 'such as {"if": {"age": {"from": 18, "to": 25}, "city": {"any_of": ["Ghent", "Liège"]}}, "then": ["high"]}'


def read_rules(source: Any, table: Table) -> RuleSet:
    """Rules of a JSON file or of plain data, fitted to a table: who supports them is counted there.

    Parameters
    ----------
    source : path, mapping, list or RuleSet
        What `countervail rules -o rules.json` writes, the same as plain data, or a list of rules: mappings with "if"
        (a cell per column: a value, `{"from": low, "to": high}` with null for an open side, or `{"any_of": [...]}`;
        dates as text, "1967-12" for a month) and "then" (the classes of the conclusion), or :class:`Rule` objects.
        What is said of support is not believed.
    table : Table
        Whose columns and classes the rules speak of.

    Notes
    -----
    A row supports a rule if it meets the condition and has a class of the conclusion. A rule may have exceptions.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.rules import read_rules
    >>> given = [{"if": {"domicile": {"any_of": ["Tokyo", "Osaka"]}}, "then": ["low", "high"]}]
    >>> print(read_rules(given, cv.load("toy_evaluation")).to_text())
    If domicile is Osaka or Tokyo then evaluation is high or low. (4 rows)
    """
    owner = "read_rules"
    if not isinstance(table, Table):
        raise ParameterError(f"The 'table' parameter of {owner} must be a Table. Got {type(table).__name__} instead.")
    values = build_value_table(take_features(table, owner), take_target(table, owner), table.schema, owner)
    return fit_rules(_listed(source, owner), values, table.schema, owner)


def fit_rules(given: Iterable[Any], table: ValueTable, schema: Schema, owner: str) -> RuleSet:
    """Rules as arrays over a table's own attributes and classes, with the rows that support each counted."""
    rules = list(given)
    n, m = len(rules), len(table.attributes)
    place = {a.name: j for j, a in enumerate(table.attributes)}
    named = np.zeros((n, m), dtype=bool)
    low, high = np.full((n, m), -np.inf), np.full((n, m), np.inf)
    members = tuple(None if a.ordered else np.ones((n, len(a.known)), dtype=bool) for a in table.attributes)
    conclusions = np.zeros(n, dtype=np.uint64)
    for i, rule in enumerate(rules):
        cells, labels = _parts(rule, i, owner)
        if unknown := [c for c in cells if c not in place]:
            raise _wrong(owner, i, f"columns of the table ({', '.join(place)})", f"'{unknown[0]}'")
        for name, cell in cells.items():
            j, a = place[name], table.attributes[place[name]]
            named[i, j], member = True, members[place[name]]
            if member is None:
                low[i, j], high[i, j] = _bounds(a, cell, i, owner)
            else:
                member[i] = _members(a, cell, schema, i, owner)
        for label in labels:
            if label not in table.classes:
                raise _wrong(owner, i, "a conclusion of classes that the table has", "another class")
            conclusions[i] |= np.uint64(1) << np.uint64(table.classes.index(label))
        if not labels or len(set(labels)) == len(table.classes):
            raise _wrong(owner, i, "a conclusion of one class or several, but not of all", f"{len(labels)} classes")
    whole = [not (e[np.isfinite(e)] % 1).any() for e in np.hstack([low.T, high.T])]
    attributes = tuple(replace(a, whole=a.whole and w) for a, w in zip(table.attributes, whole))
    parts = (attributes, table.classes, named, low, high, members, conclusions)
    fitted = RuleSet(*parts, np.zeros(n, dtype=np.int64), table.rows, schema.target or "class")
    counted = [int(table.weight[mark_supporting(fitted, i, table)].sum()) for i in range(n)]
    return replace(fitted, support=np.array(counted, dtype=np.int64))


def mark_supporting(rules: RuleSet, i: int, table: ValueTable) -> Bools:
    """Which rows meet a rule's condition and have nothing but classes of its conclusion."""
    agree: Bools = (table.decisions & ~rules.conclusions[i]) == np.uint64(0)
    return mark_inside(rules, i, table) & agree


def count_exceptions(rules: RuleSet, table: ValueTable) -> int:
    """How many rules some row contradicts."""
    met = (mark_inside(rules, i, table) & ~mark_supporting(rules, i, table) for i in range(len(rules)))
    return sum(bool(rows.any()) for rows in met)


def _listed(source: Any, owner: str) -> list[Any]:
    if isinstance(source, (str, Path)):
        try:
            source = json.loads(Path(source).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ParameterError(f"There is no file {source}. Rules are read from JSON.") from None
        except (ValueError, OSError):
            raise ParameterError(
                f"{source} is no JSON file of rules. `countervail rules ... -o rules.json` writes one."
            ) from None
    if isinstance(source, Mapping) and "rules" in source:
        source = source["rules"]
    if isinstance(source, (RuleSet, list, tuple)) and len(source):
        return list(source)
    raise ParameterError(f"The rules given to {owner} must be a list of at least one rule, {_FORM}.")


def _parts(rule: Any, i: int, owner: str) -> tuple[dict[str, Any], list[Any]]:
    """The cells and the classes of one rule."""
    if isinstance(rule, Rule):
        cells, labels = dict(rule.region.cells), list(rule.conclusion)
    elif isinstance(rule, Mapping) and isinstance(rule.get("if"), Mapping) and "then" in rule:
        cells, then = dict(rule["if"]), rule["then"]
        labels = list(then) if isinstance(then, (list, tuple, set, frozenset)) else [then]
    else:
        raise _wrong(owner, i, f"a mapping with 'if' and 'then', {_FORM}", type(rule).__name__)
    if not cells:
        raise _wrong(owner, i, "a condition on at least one column", "none")
    return cells, labels


def _bounds(a: Attribute, cell: Any, i: int, owner: str) -> tuple[float, float]:
    """Both ends of a condition on numbers, or the ranks of levels that stand side by side."""
    if a.known:
        ranks = sorted(_places(a, cell, i, owner))
        if ranks != list(range(ranks[0], ranks[-1] + 1)):
            raise _wrong(owner, i, f"levels of '{a.name}' that stand side by side", "some with others between")
        last = len(a.known) - 1
        return (-np.inf if ranks[0] == 0 else float(ranks[0])), (np.inf if ranks[-1] == last else float(ranks[-1]))
    ends = (cell, cell)
    if isinstance(cell, pd.Interval):
        ends = (cell.left, cell.right)
    elif isinstance(cell, Mapping) and cell.keys() == {"from", "to"}:
        ends = (-np.inf if cell["from"] is None else cell["from"], np.inf if cell["to"] is None else cell["to"])
    if a.told != "number" and any(isinstance(v, str) for v in ends):
        ends = (_day(ends[0], last=False), _day(ends[1], last=True))
    wrong = any(isinstance(v, (bool, np.bool_)) or not isinstance(v, Real) for v in ends)
    if wrong or not ends[0] <= ends[1] or (np.isinf(ends[0]) and np.isinf(ends[1])):
        raise _wrong(owner, i, f"a number or a range of '{a.name}', from low to high", "something else")
    return float(ends[0]), float(ends[1])


def _day(text: Any, *, last: bool) -> Any:
    """A date, or the first or last day of a month, as the number of days; anything else as it is."""
    if not isinstance(text, str):
        return text
    try:
        month = len(text) == len("2000-01")
        day = date.fromisoformat(f"{text}-01" if month else text)
    except ValueError:
        return text
    if month and last:
        day = day.replace(day=monthrange(day.year, day.month)[1])
    return day.toordinal() - _EPOCH


def _members(a: Attribute, cell: Any, schema: Schema, i: int, owner: str) -> Bools:
    """The values of a condition, marked; those that are declared and that nobody has change nothing."""
    declared = frozenset(schema[a.name].values or ()) if a.name in schema else frozenset()
    found = np.zeros(len(a.known), dtype=bool)
    found[list(_places(a, cell, i, owner, declared))] = True
    return found


def _places(a: Attribute, cell: Any, i: int, owner: str, declared: frozenset[Any] = frozenset()) -> set[int]:
    """Where the values of a cell stand among those that are known."""
    values = cell["any_of"] if isinstance(cell, Mapping) and cell.keys() == {"any_of"} else cell
    listed = list(values) if isinstance(values, (list, tuple, set, frozenset)) else [values]
    if not listed or any(isinstance(v, (list, tuple, Mapping, pd.Interval)) for v in listed):
        raise _wrong(owner, i, f"a value of '{a.name}' or several ({{\"any_of\": [...]}})", "something else")
    listed = [None if is_missing(v) else v for v in listed]
    known = {v: j for j, v in enumerate(a.known)}
    if any(v not in known and v not in declared for v in listed):
        raise _wrong(owner, i, f"values of '{a.name}' that the table has or its schema declares", "another")
    return {known[v] for v in listed if v in known}


def _wrong(owner: str, i: int, must: str, got: str) -> SchemaError:
    return SchemaError(f"Rule {i + 1} of those given to {owner} must have {must}. Got {got} instead.")
