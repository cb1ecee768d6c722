"""Tables of made-up rows, for explainers that are fitted to something: labelled by the model, so that they agree."""

from __future__ import annotations

from typing import Any

import pandas as pd

from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.model.decision import Decision


def made_up_table(frame: pd.DataFrame, table: Table, model: Any, owner: str) -> Table:
    """Rows of public or noisy values as a table like the given one; every label that it declares or has occurs.

    Labels are what the model says of the rows; where it never says one, a row at the end gets it.
    """
    target = table.schema.target
    assert target is not None
    labels = sorted(table.target.dropna().unique().tolist(), key=lambda v: (type(v).__name__, v))
    kept = Schema(tuple(c for c in table.schema if c.role != "identifier"), table.schema.favourable)
    decision = Decision.unseen(model, kept, labels, frame.iloc[:2], owner)
    said = decision.labels(decision.decide(frame)).tolist()
    known = set(said)
    for place, label in zip(range(len(said) - 1, -1, -1), [v for v in labels if v not in known]):
        said[place] = label
    return Table(frame.assign(**{target: pd.Series(said).astype(table.target.dtype)}), kept)
