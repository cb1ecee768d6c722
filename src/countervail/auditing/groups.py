"""Groups of people who are looked at by themselves: those who ask, or those in a published table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.auditing.subject import Subject
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.release import Release
from countervail.core.table import Table

_GROUP = 20  # people that a group must have to be looked at
_MOST_GROUPS = 20


@dataclass(frozen=True, eq=False, slots=True)
class GroupPart:
    """A group that is attacked by itself: answers to its askers, or its people in a table and among strangers."""

    name: str
    released: Explanations | Release
    members: Table
    strangers: Table


def groups_of(subject: Subject, table: Table, by: str | None) -> tuple[GroupPart, ...]:
    """Groups of at least 20 askers, or of at least 20 people in a table and 20 strangers; none without `by`."""
    if by is None:
        return ()
    e = subject.released
    asking = isinstance(e, Explanations)
    frame = e.factuals if isinstance(e, Explanations) else table.frame[table.schema.features]
    if by not in frame.columns:
        whom = "people who ask" if asking else "people in the table"
        raise bad_parameter("audit", "by", f"a column of the {whom}: {', '.join(frame.columns)}", by)
    values, large = large_groups(e, frame[by])
    if isinstance(e, Explanations):
        parts = ((g, part_of(e, (values == g).to_numpy())) for g in large)
        return tuple(GroupPart(g, part, table, subject.strangers) for g, part in parts)
    others = _texts(subject.strangers.frame[by])
    large = [g for g in large if (others == g).sum() >= _GROUP]
    return tuple(
        GroupPart(g, e, table.take((values == g).to_numpy()), subject.strangers.take((others == g).to_numpy()))
        for g in large
    )


def large_groups(released: Explanations | Release, values: pd.Series) -> tuple[pd.Series, list[str]]:
    """Everybody's group as a text, and the groups of at least 20 people (who got an answer)."""
    texts = _texts(values)
    kinds = (texts[released.found] if isinstance(released, Explanations) else texts).value_counts()
    if len(kinds) > _MOST_GROUPS:
        raise bad_parameter("audit", "by", f"a column of at most {_MOST_GROUPS} values", f"one of {len(kinds)}")
    return texts, sorted(str(g) for g in kinds.index[kinds >= _GROUP])


def _texts(values: pd.Series) -> pd.Series:
    return values.astype(object).where(values.notna(), "missing").astype(str)


def part_of(e: Explanations, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Explanations:
    """Some of the answers."""
    at = np.flatnonzero(rows)

    def picked(values: Any) -> Any:
        return values.iloc[at].reset_index(drop=True)

    return replace(
        e,
        factuals=picked(e.factuals),
        counterfactuals=picked(e.counterfactuals),
        status=picked(e.status),
        before=picked(e.before),
        after=picked(e.after),
        scores=None,
        pureness=None if e.pureness is None else e.pureness[at],
        own=None if e.own is None else e.own[at],
        query=np.arange(len(at)),
        notes=None,
        ids=None,
        audit=None,
    )
