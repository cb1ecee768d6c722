"""Explanations of cells that were read: one row per counterfactual, and one for everybody who got none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.cells import fits
from countervail.core.explanation import Explanations
from countervail.core.guarantee import NoGuarantee
from countervail.core.release import origin, package_version
from countervail.core.table import Table
from countervail.explain.answering import widened
from countervail.explain.foreign.fitting import Fitted
from countervail.explain.foreign.taken import OWNER, Taken
from countervail.model.decision import Decision

STRANGE_LABELS = "Decisions that the tool names are no labels of the table's target. Give labels=... to translate them."
UNCHANGED = (
    "Values that equal the asker's count as said of the person behind the counterfactual. Some tools copy them from "
    "the asker: read with own='unchanged', they count for nothing. Attack both readings: either may find more."
)


def assembled(
    taken: Taken, fitted: Fitted, table: Table, *, own: Sequence[str], model: Any, made: Mapping[str, Any]
) -> Explanations:
    """The explanations, in the order of the factuals. In the columns `own`, cells that equal the factual's are its."""
    query, row = _in_order(taken, len(fitted.factuals))
    found = row >= 0
    factuals = fitted.factuals.iloc[query].reset_index(drop=True)
    answers = fitted.counterfactuals
    cells = answers.iloc[row] if found.all() else widened(answers).reindex(row)
    cells = cells.reset_index(drop=True)
    unsaid = np.zeros(cells.shape, dtype=bool)
    unsaid[found] = fitted.open[row[found]]
    for j in (list(cells.columns).index(n) for n in own):
        equal = [fits(a, b) for a, b in zip(factuals.iloc[:, j].array, cells.iloc[:, j].array)]
        unsaid[:, j] |= found & np.array(equal, dtype=bool)
    before, after = _decisions(taken, fitted, model, table)
    now, then = [before[q] for q in query], [after[r] if r >= 0 else None for r in row]
    caveats = [*taken.remarks, *fitted.remarks]
    if same := sum(a is not None and a == b for a, b in zip(now, then)):
        caveats.append(
            f"{same:,} counterfactual(s) lead to the same decision as before; they left all the same, and count."
        )
    return Explanations(
        factuals,
        cells,
        pd.Series(np.where(found, "found", "no_counterfactual"), dtype=object),
        pd.Series(now, dtype=object),
        pd.Series(then, dtype=object),
        table.schema.without_identifiers(),
        NoGuarantee(f"another tool wrote these explanations ({taken.format})"),
        {**made, "countervail": package_version(), **origin(table.schema)},
        (*dict.fromkeys(caveats), *(() if own else (UNCHANGED,))),
        query,
        own=unsaid if own or unsaid.any() else None,
        audit=table,
    )


def _in_order(taken: Taken, asked: int) -> tuple[Ints, Ints]:
    """For every row its factual and its counterfactual (-1: there is none); answers to one person stand together."""
    assert taken.query is not None
    silent = np.setdiff1d(np.arange(asked), taken.query)
    query = np.concatenate([taken.query, silent]).astype(np.int64)
    row = np.concatenate([np.arange(len(taken.query)), np.full(len(silent), -1)]).astype(np.int64)
    order = np.argsort(query, kind="stable")
    return query[order], row[order]


def _decisions(taken: Taken, fitted: Fitted, model: Any, table: Table) -> tuple[list[Any], list[Any]]:
    """What was said, and the model's decisions where nothing was."""
    said = [list(taken.before or ()), list(taken.after or ())]
    if model is None:
        return said[0], said[1]
    decision = Decision(model, table, OWNER)
    for told, frame in zip(said, (fitted.factuals, fitted.counterfactuals)):
        if gaps := [i for i, v in enumerate(told) if v is None]:
            asked = decision.labels(decision.decide(frame.iloc[gaps].reset_index(drop=True))).tolist()
            for i, label in zip(gaps, asked):
                told[i] = label
    return said[0], said[1]
