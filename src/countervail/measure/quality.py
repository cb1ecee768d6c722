"""How good explanations are for the person who asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats
from countervail.core.cells import is_missing
from countervail.core.distance import HEOM, Neighbours
from countervail.core.encode import Encoder, conform_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.rng import RandomState, generator
from countervail.core.table import Table
from countervail.measure._combinations import Combinations
from countervail.model.decision import Decision


def recourse_cost(e: Explanations, *, table: Table | None = None) -> Floats:
    """HEOM distance from each factual row to its counterfactual, or to the nearest point of its region; NaN without."""
    training = e.training_table(table)
    encoder, heom = _space(training)
    out = np.full(len(e), np.nan)
    if not e.found.any():
        return out
    rows = conform_rows(e.factuals[e.found], training, "recourse_cost")
    shown = e.counterfactuals[e.found]
    nearest = {n: [_nearest(v, c, training, n) for v, c in zip(rows[n], shown[n])] for n in training.schema.features}
    answers = conform_rows(pd.DataFrame(nearest), training, "recourse_cost")
    _, both = encoder.extended(pd.concat([rows, answers]))
    out[e.found] = heom.between(both[: len(rows)], both[len(rows) :])
    return out


def sparsity(e: Explanations) -> Floats:
    """How many columns each counterfactual changes; NaN where there is none."""
    return np.array([len(x.changes) if x.found else np.nan for x in e], dtype=float)


def plausibility(
    e: Explanations,
    *,
    neighbours: int = 1,
    table: Table | None = None,
    draws: int = 100,
    random_state: RandomState = 0,
) -> Floats:
    """Mean HEOM distance from each counterfactual to its nearest training rows (1 or 5 are usual); NaN without one.

    For a region it is the mean over its combinations, or over `draws` of them where there are more.
    """
    training = e.training_table(table)
    if not 1 <= neighbours <= len(training):
        raise bad_parameter("plausibility", "neighbours", f"between 1 and the {len(training)} rows", neighbours)
    combinations, rng = Combinations(e, training), generator(random_state)
    out = np.full(len(e), np.nan)
    found = np.flatnonzero(e.found)
    if not len(found):
        return out
    rows = [
        combinations.every(i) if combinations.size(i) <= draws else combinations.draw(i, draws, rng)
        for i in map(int, found)
    ]
    encoder, every = combinations.encoder, np.zeros(len(training), dtype=np.int64)
    coded = encoder.encode(training.features)
    index = Neighbours(HEOM.fit(encoder, coded), coded, every, every == 0, distinct=False)
    owner = np.repeat(np.arange(len(found)), [len(r) for r in rows])
    wanted = np.ones((len(owner), 1), dtype=bool)
    distance = index.nearest(np.concatenate(rows), wanted, neighbours)[1].mean(axis=1)
    out[found] = np.bincount(owner, distance) / np.bincount(owner)
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
        raise SchemaError(f"{owner} takes plain counterfactuals; these columns are generalised: {wide}. Use pureness.")


def _space(table: Table) -> tuple[Encoder, HEOM]:
    encoder = Encoder.fit(table)
    return encoder, HEOM.fit(encoder, encoder.encode(table.features))


def _nearest(value: Any, cell: Any, table: Table, name: str) -> Any:
    """The value of a cell that lies nearest to `value`."""
    if isinstance(cell, pd.Interval):
        return min(max(value, cell.left), cell.right)
    if not isinstance(cell, frozenset):
        return cell
    if value in cell:
        return value
    levels = table.schema[name].levels
    known = [v for v in cell if not is_missing(v)]
    if levels and known and not is_missing(value):
        return min(known, key=lambda v: (abs(levels.index(v) - levels.index(value)), levels.index(v)))
    return min(cell, key=str)
