"""What k-anonymous explanations cost and how far they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from countervail.core import loss
from countervail.core.arrays import Floats
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.rng import RandomState, generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table
from countervail.measure._combinations import Combinations
from countervail.model.decision import Decision

_CHUNK = 100_000  # combinations asked of the model at once


def degree_of_privacy(e: Explanations, *, table: Table | None = None) -> Floats:
    """How many training rows share each released combination of quasi-identifiers; NaN where nothing was released."""
    training = e.training_table(table)
    return _spread(e, e.regions.count(training.frame).astype(float))


def ncp(e: Explanations, *, weights: Mapping[str, float] | None = None, table: Table | None = None) -> Floats:
    """Normalised certainty penalty of each explanation, 0 for what did not move; NaN where there is none."""
    shown = replace(e.regions, free=None)  # the asker's own value is a point
    return _spread(e, loss.ncp(shown, e.training_table(table), weights))


def pureness(
    e: Explanations,
    model: Any,
    *,
    table: Table | None = None,
    method: Literal["exact", "sampled"] = "exact",
    draws: int = 100,
    cell_budget: int = 20_000,
    random_state: RandomState = 0,
) -> Floats:
    """Share of the value combinations of each region that get the promised decision; NaN where there is none.

    "exact" asks the model about every combination, up to `cell_budget` per explanation; past it, and with "sampled",
    `draws` combinations are drawn. :func:`sampled_pureness` gives the interval.
    """
    hits, asked = _ask(e, model, table, method, draws, cell_budget, random_state)
    share: Floats = np.divide(hits, asked, out=np.full(len(e), np.nan), where=asked > 0)
    return share


def sampled_pureness(
    e: Explanations,
    model: Any,
    *,
    table: Table | None = None,
    draws: int = 100,
    level: float = 0.95,
    random_state: RandomState = 0,
) -> list[Estimate | None]:
    """Pureness of each explanation from `draws` combinations with its interval; None where there is no explanation."""
    hits, asked = _ask(e, model, table, "sampled", draws, 0, random_state)
    return [clopper_pearson(int(h), int(n), level) if n else None for h, n in zip(hits, asked)]


def discernibility(e: Explanations, *, table: Table | None = None) -> float:
    """C_DM: the sizes of the released regions added up; a refused answer costs the whole table."""
    training = e.training_table(table)
    refused = int((e.status == "no_counterfactual").sum())
    return float(np.nansum(degree_of_privacy(e, table=training))) + refused * len(training)


def classification_metric(e: Explanations, model: Any, *, table: Table | None = None) -> float:
    """CM: share of explanations whose decision is not the majority prediction of the people in the region."""
    training = e.training_table(table)
    decision = Decision(model, training, "classification_metric")
    inside = e.regions.covers(training.select("quasi"))
    votes = np.stack([inside[:, decision.train == c].sum(axis=1) for c in range(len(decision.classes))], axis=1)
    promised = decision.codes(e.after[e.found].tolist(), "e")
    if not len(promised):
        return float("nan")
    return float((votes[np.arange(len(promised)), promised] < votes.max(axis=1)).mean())


def _ask(
    e: Explanations,
    model: Any,
    table: Table | None,
    method: str,
    draws: int,
    cell_budget: int,
    random_state: RandomState,
) -> tuple[Floats, Floats]:
    """How many combinations of each explanation got the promised decision, of how many asked."""
    if method not in ("exact", "sampled"):
        raise bad_parameter("pureness", "method", "'exact' or 'sampled'", method)
    if draws < 1:
        raise bad_parameter("pureness", "draws", "a whole number of at least 1", draws)
    training = e.training_table(table)
    decision = Decision(model, training, "pureness")
    rng = generator(random_state)
    combinations = Combinations(e, training)
    favourable = set(e.schema.favourable)
    hits, asked = np.zeros(len(e)), np.zeros(len(e))
    parts: list[Any] = []
    owners: list[Any] = []

    def flush() -> None:
        if not parts:
            return
        owner = np.concatenate(owners)
        said = decision.decide(combinations.encoder.decode(np.concatenate(parts)))
        good = wanted[owner, said]
        hits[:] += np.bincount(owner, good, len(e))
        parts.clear()
        owners.clear()

    wanted = np.zeros((len(e), len(decision.classes)), dtype=bool)
    for i in np.flatnonzero(e.found):
        promised = e.after.iloc[i]
        labels = favourable if promised in favourable else {promised}
        wanted[i, decision.codes(sorted(labels, key=str), "e")] = True
        every = method == "exact" and combinations.size(int(i)) <= cell_budget
        rows = combinations.every(int(i)) if every else combinations.draw(int(i), draws, rng)
        parts.append(rows)
        owners.append(np.full(len(rows), i))
        asked[i] = len(rows)
        if sum(map(len, parts)) >= _CHUNK:
            flush()
    flush()
    return hits, asked


def _spread(e: Explanations, values: Floats) -> Floats:
    out = np.full(len(e), np.nan)
    out[e.found] = values
    return out
