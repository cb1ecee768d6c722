"""Whether some groups get worse explanations than others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.stats import Estimate, difference_interval, mean_interval, plain_json
from countervail.core.table import Table
from countervail.measure.regions import ncp, pureness


@dataclass(frozen=True, slots=True)
class Group:
    """One group of askers: how many, and what their explanations are like."""

    value: Any
    standing: Literal["majority", "minority", "other"]
    n: int
    ncp: Estimate
    pureness: Estimate | None


@dataclass(frozen=True, slots=True)
class Fairness:
    """Quality by group, and minority minus majority."""

    by: str
    groups: tuple[Group, ...]
    ncp_gap: Estimate
    pureness_gap: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def fairness(e: Explanations, by: str, *, model: Any = None, table: Table | None = None) -> Fairness:
    """NCP (and, given the model, pureness) of the explanations of each group of askers.

    As Goethals et al. define them, the majority is the value of `by` that most training rows hold, the minority the
    value that fewest hold.
    """
    training = e.training_table(table)
    if by not in e.factuals.columns:
        raise bad_parameter("fairness", "by", f"one of the features {list(e.factuals.columns)}", by)
    counts = training.frame[by].value_counts().loc[lambda n: n > 0]
    if len(counts) < 2:
        raise bad_parameter("fairness", "by", "a column with at least two values", by)
    standing = {counts.index[0]: "majority", counts.index[-1]: "minority"}
    cost = ncp(e, table=training)
    pure = pureness(e, model, table=training) if model is not None else None
    groups, member = [], {}
    for value in counts.index:
        member[value] = (e.factuals[by] == value).to_numpy(dtype=bool, na_value=False) & e.found
        groups.append(
            Group(
                value,
                standing.get(value, "other"),  # type: ignore[arg-type]
                int(member[value].sum()),
                mean_interval(cost[member[value]]),
                mean_interval(pure[member[value]]) if pure is not None else None,
            )
        )
    few, most = member[counts.index[-1]], member[counts.index[0]]
    return Fairness(
        by,
        tuple(groups),
        difference_interval(cost[few], cost[most]),
        difference_interval(np.asarray(pure)[few], np.asarray(pure)[most]) if pure is not None else None,
    )
