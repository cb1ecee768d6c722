"""A model that decides against the target it was trained for: labels or scores may be the wrong way round."""

from __future__ import annotations

import math
import warnings

import numpy as np

from countervail.core.arrays import Ints
from countervail.core.errors import ModelWarning
from countervail.core.table import Table
from countervail.model.decision import Decision

# Standard deviations below chance: agreement that low comes by chance once in millions of tables.
_FAR = 5.0


def doubts(decision: Decision, table: Table, owner: str) -> tuple[str, ...]:
    """What to say of a model that agrees with the table's target less than chance would; it is also warned of.

    Only for explainers that may ask the model about the table's own rows.
    """
    positions = {label: i for i, label in enumerate(decision.classes)}
    truth = np.array([positions.get(v, -1) for v in table.target.astype(object)], dtype=np.int64)
    known = truth >= 0
    if _standardised(decision.train[known], truth[known], len(positions)) > -_FAR:
        return ()
    text = (
        f"The 'model' given to {owner} contradicts the table's target '{table.schema.target}': the two agree less "
        f"often than by chance. Its labels or scores may be the wrong way round: scores come in the order of the "
        f"sorted labels (or of the model's classes_), or as a DataFrame with a column for each label."
    )
    warnings.warn(text, ModelWarning, stacklevel=3)
    return (text,)


def _standardised(said: Ints, truth: Ints, classes: int) -> float:
    """Agreements above what shuffled labels would give, in standard deviations of such shuffling."""
    n = len(truth)
    if n < 2:
        return 0.0
    a, b = np.bincount(said, minlength=classes) / n, np.bincount(truth, minlength=classes) / n
    both = a * b
    # Fixed margins: the variances of the diagonal's cells, and the covariances between them.
    spread = (both * (1 - a) * (1 - b)).sum() + both.sum() ** 2 - (both**2).sum()
    if spread <= 0:
        return 0.0
    return float(((said == truth).mean() - both.sum()) / math.sqrt(spread / (n - 1)))
