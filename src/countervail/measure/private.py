"""What noise costs the asker, and what it hides: the figures by which private explanations are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, number_columns, number_rows
from countervail.core.distance import HEOM, Neighbours
from countervail.core.encode import Encoder, conform_rows
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.region import Regions
from countervail.core.stats import Estimate, clopper_pearson, mean_interval, plain_json
from countervail.core.table import Table
from countervail.measure.quality import plausibility, recourse_cost
from countervail.measure.regions import pureness
from countervail.model.decision import Decision


@dataclass(frozen=True, slots=True)
class FigureSpread:
    """A mean with its interval, and the standard deviation."""

    mean: Estimate
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean.value:.3f} ± {self.deviation:.2f} [{self.mean.low:.3f}, {self.mean.high:.3f}]"


@dataclass(frozen=True, slots=True)
class PrivateQuality:
    """Utility (`dist_rec`, `plaus_prox`, `correctness`) and how near answers come to records (`m0`, `m1`, `d_min`).

    The last three look at the private table: they are audit figures for the owner, not private answers.
    """

    dist_rec: FigureSpread
    plaus_prox: FigureSpread
    correctness: Estimate
    m0: Estimate
    m1: Estimate
    d_min: FigureSpread

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


@dataclass(frozen=True, eq=False, slots=True)
class AnswerFigures:
    """The same figures for each answer that was given; `row` says which row of the explanations it is.

    For whoever holds the table and wants to count further: exact distances to records must not be handed out.
    """

    row: Ints
    dist_rec: Floats
    plaus_prox: Floats
    correct: Bools | Floats
    matches: Floats
    d_min: Floats


def answer_figures(e: Explanations, model: Any, *, neighbours: int = 5, table: Table | None = None) -> AnswerFigures:
    """Distances, correctness and matches of every plain answer, valid or not; equal answers are looked at once."""
    original = e.training_table(table)
    if not 1 <= neighbours <= len(original):
        raise bad_parameter("answer_figures", "neighbours", f"between 1 and the {len(original)} rows", neighbours)
    training, at = _floats(original), _given(e)
    if not len(at):  # nobody was answered
        return AnswerFigures(at, *(np.zeros(0) for _ in range(5)))
    names = training.schema.features
    factuals, answers = (
        conform_rows(f[names].iloc[at], training, "answer_figures") for f in (e.factuals, e.counterfactuals)
    )
    encoder, coded = Encoder.fit(training).extended(pd.concat([training.features, factuals, answers]))
    rows, x, y = np.split(coded, [len(training), len(training) + len(at)])
    heom = HEOM.fit(encoder, rows)
    columns = np.concatenate([rows, y]).T
    key = number_rows([pd.factorize(c, use_na_sentinel=False)[0].astype(np.int64) for c in columns])
    counts = np.bincount(key[: len(rows)], minlength=int(key.max(initial=0)) + 1)
    _, first, place = np.unique(key[len(rows) :], return_index=True, return_inverse=True)
    every = np.zeros(len(rows), dtype=np.int64)
    index = Neighbours(heom, rows, every, every == 0, distinct=False)
    away = index.nearest(y[first], np.ones((len(first), 1), dtype=bool), neighbours)[1][place]
    decision = Decision(model, _few(original), "answer_figures")
    after = decision.decide(_typed(answers.iloc[first], original))[place]
    return AnswerFigures(
        at,
        heom.between(x, y),
        away.mean(axis=1),
        after != decision.codes(e.before.iloc[at].tolist(), "e"),
        counts[key[len(rows) :]].astype(float),
        away[:, 0],
    )


def region_figures(e: Explanations, model: Any, *, neighbours: int = 5, table: Table | None = None) -> AnswerFigures:
    """The same of answers that hold ranges and sets: to the nearest point of a region, and means over its combinations.

    `correct` is the share of a region's combinations that get the promised decision; `matches` counts the records that
    lie within an answer in every column.
    """
    training = e.training_table(table)
    at = np.flatnonzero(e.found)
    names = training.schema.features
    cells = [dict(zip(names, row)) for row in e.counterfactuals[names].iloc[at].itertuples(index=False, name=None)]
    within = Regions.from_cells(cells, training.schema).count(training.frame) if len(at) else np.zeros(0)
    pure = pureness(e, model, table=training)[at]
    return AnswerFigures(
        at,
        recourse_cost(e, table=training)[at],
        plausibility(e, neighbours=neighbours, table=training)[at],
        pure,
        within.astype(float),
        plausibility(e, neighbours=1, table=training)[at],
    )


def private_quality(
    e: Explanations, model: Any, *, neighbours: int = 5, table: Table | None = None, level: float = 0.95
) -> PrivateQuality:
    """Dist_rec, Plaus_prox, Correctness, M0, M1 and d_min over all rows that were given, valid or not.

    Dist_rec: HEOM from the query to its answer. Plaus_prox: mean HEOM from the answer to its `neighbours` nearest
    records; d_min: to the nearest one. Correctness: share with another decision than before. M0, M1: shares that
    equal no record, and exactly one.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 5.1.
    """
    found = answer_figures(e, model, neighbours=neighbours, table=table)
    n = len(found.row)
    return PrivateQuality(
        _spread(found.dist_rec, level),
        _spread(found.plaus_prox, level),
        clopper_pearson(int(found.correct.sum()), n, level),
        clopper_pearson(int((found.matches == 0).sum()), n, level),
        clopper_pearson(int((found.matches == 1).sum()), n, level),
        _spread(found.d_min, level),
    )


def exact_matches(e: Explanations, *, table: Table | None = None) -> Floats:
    """How many records of the table equal each answer in every column."""
    training = _floats(e.training_table(table))
    names = training.schema.features
    answers = conform_rows(e.counterfactuals[names], training, "exact_matches")
    both = pd.concat([training.features.astype(object), answers.astype(object)], ignore_index=True)
    key = number_rows(number_columns(both, names))
    counts = np.bincount(key[: len(training)], minlength=int(key.max()) + 1)
    return counts[key[len(training) :]].astype(float)


def _given(e: Explanations) -> Ints:
    """The rows that were given as an answer."""
    return np.flatnonzero((e.status != "already_favourable").to_numpy() & e.after.notna().to_numpy())


def _few(table: Table) -> Table:
    """One row of each label: enough to learn what the model calls them."""
    return table.take(np.sort(np.unique(pd.factorize(table.target)[0], return_index=True)[1]))


def _floats(table: Table) -> Table:
    """The table with all numbers as floats: answers lie on a grid that may hold fractions."""
    numeric = [c.name for c in table.schema if c.numeric and c.role not in ("identifier", "target")]
    return replace(table, frame=table.frame.astype(dict.fromkeys(numeric, float)))


def _typed(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Whole numbers where the table has them and no fraction would be lost."""
    whole = [
        n
        for n in frame.columns
        if pd.api.types.is_integer_dtype(table.frame[n].dtype)
        and (frame[n].to_numpy(dtype=float) % 1 == 0).all()
        and table.schema[n].numeric
    ]
    return frame.astype({n: table.frame[n].dtype for n in whole})


def _spread(values: Floats, level: float) -> FigureSpread:
    finite = values[np.isfinite(values)]
    return FigureSpread(mean_interval(finite, level), float(finite.std(ddof=1)) if len(finite) > 1 else float("nan"))
