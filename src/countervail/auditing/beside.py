"""What an audit measures beside its attacks: how groups fare, and what one person's record changes in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from countervail import measure
from countervail.auditing.groups import large_groups
from countervail.auditing.subject import Subject
from countervail.core.errors import CountervailError
from countervail.core.explanation import Explanations
from countervail.core.stats import clopper_pearson, mean_interval
from countervail.core.table import Table

_PEOPLE, _FEW = 200, 20  # tested for their influence, where that is quick, and where everything is run again
_VALUES = 50  # of a column that is learnt


def by_group(e: Explanations, by: str) -> dict[str, dict[str, Any]]:
    """Of each group of at least 20 askers: how many, how often there is an answer, and how much it asks for.

    The intervals are sure for all groups together.
    """
    values, large = large_groups(e, e.factuals[by])
    level = 1 - 0.05 / max(len(large), 1)
    changes, query = np.asarray(measure.sparsity(e), dtype=float), np.asarray(e.query)
    out = {}
    for group in large:
        inside = (values == group).to_numpy()
        asked, answered = len(np.unique(query[inside])), len(np.unique(query[inside & e.found]))
        out[group] = {
            "asked": asked,
            "answered": clopper_pearson(answered, asked, level).to_dict(),
            "changes": mean_interval(changes[inside & e.found], level).to_dict(),
        }
    return out


def influence(subject: Subject, table: Table) -> dict[str, Any] | None:
    """What a learner predicts of people with and without their own record, of some drawn at random.

    None where no protector is given that could be run again, or no column of few values that is published.
    """
    from countervail.attack import DifferentialInferenceTest

    maker, released = subject.maker, subject.released
    if not subject.is_table or maker is None or not table.schema.names("quasi"):
        return None
    shown = set(released.others.columns) if not isinstance(released, Explanations) else set()
    wanted = [*table.schema.names("sensitive"), *table.schema.names("target"), *table.schema.names("attribute")]
    column = next((n for n in wanted if n in shown and 2 <= table.frame[n].nunique() <= _VALUES), None)
    if column is None:
        return None
    quick = hasattr(type(maker), "leave_one_out")
    people = min(_PEOPLE if quick else _FEW, len(table))
    test = DifferentialInferenceTest(maker, n_records=people, beside=0)
    try:
        found = test.run(table, column).to_dict()
    except CountervailError as error:
        return {"column": column, "why": str(error)}
    kept: Mapping[str, Any] = {key: found[key] for key in ("learner", "tested", "mean", "changed_predictions")}
    return {"column": column, **kept, "above": found["share_above"]}
