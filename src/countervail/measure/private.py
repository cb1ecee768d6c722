"""What noise costs the asker, and what it hides: the figures by which private explanations are compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.decision import Decision
from countervail.core.encode import conform_rows
from countervail.core.explanation import Explanations
from countervail.core.stats import Estimate, clopper_pearson, mean_interval
from countervail.core.table import Table
from countervail.core.tuples import column_numbers, row_numbers
from countervail.measure.quality import plausibility, recourse_cost

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
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

    dist_rec: Spread
    plaus_prox: Spread
    correctness: Estimate
    m0: Estimate
    m1: Estimate
    d_min: Spread

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return asdict(self)


def private_quality(
    e: Explanations, model: Any, *, neighbours: int = 5, table: Table | None = None, level: float = 0.95
) -> PrivateQuality:
    """Dist_rec, Plaus_prox, Correctness, M0, M1 and d_min over all rows that were given, valid or not.

    Dist_rec: HEOM from the query to its answer. Plaus_prox: mean HEOM from the answer to its `neighbours` nearest
    records; d_min: to the nearest one. Correctness: share with another decision than before. M0, M1: shares that
    equal no record, and exactly one.

    References
    ----------
    Differentially-private and plausible counterfactuals (paper 004), section 5.1.
    """
    training = _floats(e.training_table(table))
    given = _given(e)
    matches = exact_matches(given, table=training)
    decision = Decision(model, _few(e.training_table(table)), "private_quality")
    answers = conform_rows(given.counterfactuals, training, "private_quality")
    after = decision.decide(_typed(answers, e.training_table(table)))
    other = after != decision.codes(given.before.tolist(), "e")
    n = len(given)
    return PrivateQuality(
        _spread(recourse_cost(given, table=training), level),
        _spread(plausibility(given, neighbours=neighbours, table=training), level),
        clopper_pearson(int(other.sum()), n, level),
        clopper_pearson(int((matches == 0).sum()), n, level),
        clopper_pearson(int((matches == 1).sum()), n, level),
        _spread(plausibility(given, neighbours=1, table=training), level),
    )


def exact_matches(e: Explanations, *, table: Table | None = None) -> Floats:
    """How many records of the table equal each answer in every column."""
    training = _floats(e.training_table(table))
    names = training.schema.features
    answers = conform_rows(e.counterfactuals[names], training, "exact_matches")
    both = pd.concat([training.features.astype(object), answers.astype(object)], ignore_index=True)
    key = row_numbers(column_numbers(both, names))
    counts = np.bincount(key[: len(training)], minlength=int(key.max()) + 1)
    return counts[key[len(training) :]].astype(float)


def _given(e: Explanations) -> Explanations:
    """Every row that was given as an answer, counted as found."""
    at = np.flatnonzero((e.status != "already_favourable").to_numpy() & e.after.notna().to_numpy())
    rows = {
        n: getattr(e, n).iloc[at].reset_index(drop=True) for n in ("factuals", "counterfactuals", "before", "after")
    }
    return replace(
        e,
        **rows,
        status=pd.Series(["found"] * len(at), dtype=object),
        query=None,
        notes=None,
        pureness=None,
        scores=None,
    )


def _few(table: Table) -> Table:
    """One row of each label: enough to learn what the model calls them."""
    return table.take(np.sort(np.unique(pd.factorize(table.target)[0], return_index=True)[1]))


def _floats(table: Table) -> Table:
    """The table with all numbers as floats: answers lie on a grid that may hold fractions."""
    numeric = [c.name for c in table.schema if c.type == "numeric" and c.role not in ("identifier", "target")]
    return replace(table, frame=table.frame.astype(dict.fromkeys(numeric, float)))


def _typed(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Whole numbers where the table has them and no fraction would be lost."""
    whole = [
        n
        for n in frame.columns
        if pd.api.types.is_integer_dtype(table.frame[n].dtype)
        and (frame[n].to_numpy(dtype=float) % 1 == 0).all()
        and table.schema[n].type == "numeric"
    ]
    return frame.astype({n: table.frame[n].dtype for n in whole})


def _spread(values: Floats, level: float) -> Spread:
    finite = values[np.isfinite(values)]
    return Spread(mean_interval(finite, level), float(finite.std(ddof=1)) if len(finite) > 1 else float("nan"))
