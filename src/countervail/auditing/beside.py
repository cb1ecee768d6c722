"""What an audit measures beside its attacks: how groups fare, and what one person's record changes in a table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from countervail import measure
from countervail.auditing.battery import TimeUp, alarm
from countervail.auditing.finding import TIME_UP
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


def influence(subject: Subject, table: Table, until: float | None = None) -> dict[str, Any] | None:
    """What a learner predicts of people with and without their own record, of some drawn at random; or `why` not.

    None where answers leave and no table: the test is about tables.
    """
    from countervail.attack import DifferentialInferenceTest

    maker, released = subject.maker, subject.released
    if isinstance(released, Explanations):
        return None
    if maker is None:
        return {"column": None, "why": "only the table was given, and no protector that could be run again"}
    shown = set(released.others.columns) if table.schema.names("quasi") else set()
    wanted = [*table.schema.names("sensitive"), *table.schema.names("target"), *table.schema.names("attribute")]
    column = next((n for n in wanted if n in shown and 2 <= table.frame[n].nunique() <= _VALUES), None)
    if column is None:
        return {
            "column": None,
            "why": f"it needs quasi-identifiers and a column of 2 to {_VALUES} values that is shown",
        }
    if until is not None and time.monotonic() >= until:
        return {"column": column, "why": TIME_UP}
    quick = hasattr(type(maker), "leave_one_out")
    people = min(_PEOPLE if quick else _FEW, len(table))
    test = DifferentialInferenceTest(maker, n_records=people, beside=0)
    try:
        with alarm(until):
            found = test.run(table, column).to_dict()
    except TimeUp:
        return {"column": column, "why": TIME_UP}
    except CountervailError as error:
        return {"column": column, "why": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever somebody else's protector raises; its text may hold rows
        return {"column": column, "why": f"what is audited raised {type(error).__name__} when it was run again"}
    kept: Mapping[str, Any] = {key: found[key] for key in ("learner", "tested", "mean", "changed_predictions")}
    return {"column": column, **kept, "above": found["share_above"]}
