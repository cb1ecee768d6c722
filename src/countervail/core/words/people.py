"""Answers person by person: what each would have to change, for programs, tables and letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countervail.core.cells import cell_to_json, is_missing, visible
from countervail.core.phrase import ColumnWords
from countervail.core.schema import Column
from countervail.core.words.dates import day_json

if TYPE_CHECKING:
    from countervail.core.explanation import Explanation, Explanations


def changes(e: Explanation) -> list[dict[str, Any]]:
    """Each change as JSON data: the feature, the asker's value, the nearest that would do, all that would, the cost.

    The cost is null for a number without a declared domain: a scale that was learnt from people would tell about them.
    """
    to = {n: nearest(e.factual[n], cell, e.schema[n]) for n, cell in e.changes.items()}
    spelt = {n: day_json if e.schema[n].type == "date" else cell_to_json for n in to}
    return [
        {
            "feature": n,
            "from": spelt[n](e.factual[n]),
            "to": spelt[n](to[n]),
            "cell": spelt[n](cell),
            "cost": change_cost(e.factual[n], to[n], e.schema[n]),
        }
        for n, cell in e.changes.items()
    ]


def change_cost(value: Any, to: Any, column: Column) -> float | None:
    """The part of a column's declared range that a change crosses; 1 for another label, or to and from nothing stated.

    Summed over the changes, this is the recourse cost by declared domains: what people told us, the answer and public
    knowledge go into it, and nothing else.
    """
    if column.type == "categorical" or is_missing(value) or is_missing(to):
        return 1.0
    if column.public is None:
        return None
    if column.type == "ordinal":
        rank = {v: i for i, v in enumerate(column.public)}
        steps = max(len(rank) - 1, 1)
        return abs(rank[to] - rank[value]) / steps if value in rank and to in rank else None
    low, high = column.public[:2]
    return float(abs(to - value) / (high - low)) if high > low else None


def worded_changes(e: Explanation, language: str) -> list[dict[str, str]]:
    """Each change in words: what, now, instead."""
    spoken = {n: ColumnWords.of(e.schema[n], language) for n in e.changes}
    return [
        {
            "feature": n,
            "what": visible(spoken[n].name),
            "now": visible(spoken[n].value(e.factual[n])),
            "instead": visible(spoken[n].cell(cell)),
        }
        for n, cell in e.changes.items()
    ]


def nearest(value: Any, cell: Any, column: Column) -> Any:
    """The value of a cell that lies nearest; of labels without an order, the first by name."""
    if isinstance(cell, pd.Interval):
        return cell.left if is_missing(value) or value < cell.left else cell.right
    if not isinstance(cell, frozenset):
        return cell
    rank = {v: i for i, v in enumerate(column.levels or ())}
    near = [nearest(value, c, column) for c in cell]

    def far(v: Any) -> tuple[bool, float, str]:
        if v in rank and value in rank:
            return is_missing(v), abs(rank[v] - rank[value]), str(v)
        numbers = column.numeric and not is_missing(v) and not is_missing(value)
        return is_missing(v), abs(v - value) if numbers else 0.0, str(v)

    return min(near, key=far, default=None)


def people(e: Explanations, language: str = "en") -> list[dict[str, Any]]:
    """One entry per person: who, the decision, and the answers, each of them once."""
    assert e.query is not None
    found: dict[int, dict[str, Any]] = {}
    for i, (query, one) in enumerate(zip(e.query.tolist(), e)):
        person = found.setdefault(query, {"query": query, "status": one.status, "before": cell_to_json(one.before)})
        if e.ids is not None:
            person["id"] = e.ids.iloc[i]
        answer = {"after": cell_to_json(one.after), "sentence": one.say(language), "changes": changes(one)}
        answers = person.setdefault("answers", [])
        if one.found and answer not in answers:
            answers.append(answer)
    return list(found.values())


def change_table(e: Explanations, language: str = "en") -> pd.DataFrame:
    """One row per change: who, which answer, what, now, instead, and the decision it leads to."""
    assert e.query is not None
    lead = "query" if e.ids is None else str(e.ids.name)
    rows: list[dict[str, Any]] = []
    number: dict[int, int] = {}
    for i, (query, one) in enumerate(zip(e.query.tolist(), e)):
        number[query] = number.get(query, 0) + 1
        who = query if e.ids is None else e.ids.iloc[i]
        rows += [
            {lead: who, "answer": number[query], **change, "decision": one.after}
            for change in worded_changes(one, language)
        ]
    return pd.DataFrame(rows, columns=[lead, "answer", "feature", "what", "now", "instead", "decision"])
