"""Private counterfactuals as published, on the data sets, models and splits of their paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.stats import clopper_pearson
from countervail.core.table import Table
from countervail.data.as_published import paper_table
from countervail.model.paper import PAPER_MODELS, train_paper_model
from countervail.protect.published import LDP
from countervail.study.plan import StudyPlan
from countervail.study.reproduce.together import figure
from countervail.study.run import run

FIGURES = ("dist_rec", "plaus_prox", "correctness", "m0", "m1", "d_min")
_GAN = "published-dpgan"


@lru_cache(maxsize=2)
def private_table(name: str, rows: int | None, declared: bool) -> Table:
    """A set as the paper uses it, long columns of labels as numbers; with its codes declared where they must be."""
    table = paper_table(name, coded=True)
    if rows is not None and len(table) > rows:
        table, _ = table.split(test_size=len(table) - rows, random_state=0)
    if not declared:
        return table
    # The codes of a census are public; with this many rows, those of the codebook are those that occur.
    domains: dict[str, Any] = {}
    for c in table.schema:
        if c.role != "target":
            values = table.frame[c.name]
            whole = (int(values.min()), int(values.max())) if c.numeric else tuple(sorted(values.unique()))
            domains[c.name] = whole
    return Table.from_frame(table.frame, schema=table.schema, domains=domains)


@lru_cache(maxsize=2)
def _trained(name: str, rows: int | None, declared: bool, kind: str, seed: int) -> Any:
    """The model of the split that a study makes from the same seed: learnt once for all its mechanisms."""
    train, _ = private_table(name, rows, declared).split(test_size=0.3, random_state=seed)
    return train_paper_model(train, kind, name, random_state=seed)  # type: ignore[arg-type]


def private(
    seed: int,
    set: str,
    model: str,
    mechanism: str,
    epsilons: Sequence[float],
    neighbours: Sequence[int],
    people: int,
    runs: int,
    rows: int | None = None,
    split: int = 0,
) -> dict[str, Any]:
    """The six figures of one mechanism over its settings, as sums that can be pooled over seeds."""
    declared = mechanism == _GAN
    at = seed + split
    table, fitted = private_table(set, rows, declared), _trained(set, rows, declared, model, at)
    plan = StudyPlan(
        {set: table},
        (mechanism,),
        epsilons=tuple(epsilons),
        neighbours=tuple(neighbours),
        seeds=(at,),
        people=people,
        runs=runs,
        model=fitted,
    )
    found: dict[str, Any] = {}
    for cell, result in run(plan).results.items():
        for n in FIGURES:
            found[f"{n}|{cell.epsilon}|{cell.neighbours}"] = asdict(result.moments[n])
    return {"figures": {}, "moments": found, "name": mechanism}


def models(seed: int, set: str, kind: str, rows: int) -> dict[str, Any]:
    """How often a model of Table 10 is right about rows that it has not seen, and its settings."""
    table = private_table(set, rows, False)
    train, test = table.split(test_size=0.2 / 0.9, random_state=seed)
    fitted = train_paper_model(train, kind, set, random_state=seed)  # type: ignore[arg-type]
    right = int((np.asarray(fitted.predict(test.features), dtype=object) == test.target.astype(object)).sum())
    settings: dict[str, Any] = dict(getattr(PAPER_MODELS[set], kind))
    told = {f"setting {n}": " ".join(map(str, v)) if isinstance(v, tuple) else f"{v}" for n, v in settings.items()}
    return {
        "figures": {"accuracy": figure(clopper_pearson(right, len(test)))} | {n: figure(v) for n, v in told.items()}
    }


def distributions(seed: int, set: str, epsilon: float, rows: int) -> dict[str, Any]:
    """How far each column of a noisy table lies from that of the data: half the L1 distance over twenty bins."""
    table = private_table(set, rows, False)
    fitted = _trained(set, rows, False, "forest", seed)
    made = LDP(epsilon=epsilon).fit(table, fitted)
    noisy = made.explainer_.table_.features
    out = {}
    for c in table.schema.features:
        out[c] = _apart(table.frame[c], noisy[c], numeric=table.schema[c].numeric)
    return {
        "figures": {f"shift of {c}": figure(v) for c, v in out.items()}
        | {"mean shift": figure(float(np.mean([*out.values()])))}
    }


def _apart(a: pd.Series, b: pd.Series, *, numeric: bool) -> float:
    if numeric:
        edges = np.histogram_bin_edges(a.to_numpy(dtype=float), bins=20)
        p, q = (np.asarray(np.histogram(v.to_numpy(dtype=float), edges)[0] / len(v)) for v in (a, b))
    else:
        kinds = sorted({*a.astype(str), *b.astype(str)})
        p, q = (np.asarray(v.astype(str).value_counts(normalize=True).reindex(kinds).fillna(0)) for v in (a, b))
    return float(np.abs(p - q).sum() / 2)
