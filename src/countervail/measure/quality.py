"""How good explanations are for the person who asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.decision import Decision
from countervail.core.distance import HEOM, Neighbours
from countervail.core.encode import Encoder, conform_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.table import Table

Floats = NDArray[np.float64]


def recourse_cost(e: Explanations, *, table: Table | None = None) -> Floats:
    """HEOM distance from each factual row to its counterfactual; NaN where there is none."""
    _plain(e, "recourse_cost")
    training = e.training_table(table)
    encoder, heom = _space(training)
    out = np.full(len(e), np.nan)
    if e.found.any():
        rows, answers = (conform_rows(f[e.found], training, "recourse_cost") for f in (e.factuals, e.counterfactuals))
        both = encoder.extended(pd.concat([rows, answers]))
        out[e.found] = heom.between(both.encode(rows), both.encode(answers))
    return out


def sparsity(e: Explanations) -> Floats:
    """How many columns each counterfactual changes; NaN where there is none."""
    return np.array([len(x.changes) if x.found else np.nan for x in e], dtype=float)


def plausibility(e: Explanations, *, neighbours: int = 1, table: Table | None = None) -> Floats:
    """Mean HEOM distance from each counterfactual to its nearest training rows (1 or 5 are usual); NaN without one."""
    _plain(e, "plausibility")
    training = e.training_table(table)
    if not 1 <= neighbours <= len(training):
        raise bad_parameter("plausibility", "neighbours", f"between 1 and the {len(training)} rows", neighbours)
    encoder, heom = _space(training)
    out = np.full(len(e), np.nan)
    if e.found.any():
        answers = conform_rows(e.counterfactuals[e.found], training, "plausibility")
        wide = encoder.extended(answers)
        every = np.zeros(len(training), dtype=np.int64)
        index = Neighbours(heom, wide.encode(training.features), every, every == 0, distinct=False)
        wanted = np.ones((len(answers), 1), dtype=bool)
        out[e.found] = index.nearest(wide.encode(answers), wanted, neighbours)[1].mean(axis=1)
    return out


def validity(e: Explanations, model: Any, *, table: Table | None = None) -> Floats:
    """1 where the model gives the counterfactual the decision it was promised, 0 where not, NaN where there is none."""
    _plain(e, "validity")
    training = e.training_table(table)
    decision = Decision(model, training, "validity")
    out = np.full(len(e), np.nan)
    if e.found.any():
        answers = conform_rows(e.counterfactuals[e.found], training, "validity")
        promised = decision.codes(e.after[e.found].tolist(), "e")
        out[e.found] = decision.decide(answers) == promised
    return out


def _plain(e: Explanations, owner: str) -> None:
    cells = e.counterfactuals
    wide = [n for n in cells.columns if cells[n].map(lambda c: isinstance(c, (pd.Interval, frozenset))).any()]
    if wide:
        raise SchemaError(f"{owner} takes plain counterfactuals; these columns are generalised: {wide}.")


def _space(table: Table) -> tuple[Encoder, HEOM]:
    encoder = Encoder.fit(table)
    return encoder, HEOM.fit(encoder, encoder.encode(table.features))
