"""What the adversary knows about a person's sensitive value before any release, and what follows from both."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats, Ints
from countervail.core.canonical import canonical_value
from countervail.core.errors import bad_parameter


@dataclass(frozen=True, eq=False, slots=True)
class Prior:
    """Weights of the sensitive values: one line for everybody, or one for each row of the table."""

    weights: Floats

    @classmethod
    def of(cls, given: Any, values: Sequence[Any], n: int, owner: str) -> Self | None:
        """From a mapping of values to weights, or a frame with a column per value and a row per person.

        Values that are left out have no weight: the adversary knows that nobody, or not this person, has them.
        """
        if given is None:
            return None
        if isinstance(given, Mapping):
            named, table = list(given), np.array([list(given.values())], dtype=object)
        elif isinstance(given, pd.DataFrame) and len(given) == n:
            named, table = list(given.columns), given.to_numpy(dtype=object)
        else:
            must = f"a mapping of values to weights, or a DataFrame with {n} rows and a column per value"
            raise bad_parameter(owner, "prior", must, type(given).__name__)
        place = {canonical_value(v): i for i, v in enumerate(values)}
        where = [place.get(canonical_value(None if pd.isna(v) else v), -1) for v in named]
        if -1 in where or len(set(where)) < len(where):
            got = f"{where.count(-1)} others, {len(where) - len(set(where))} twice"
            raise bad_parameter(owner, "prior", "of values that the sensitive column has, each once", got)
        try:
            numbers = table.astype(float)
        except (TypeError, ValueError):
            numbers = np.full(table.shape, np.nan)
        if not np.isfinite(numbers).all() or (numbers < 0).any() or not (numbers.sum(axis=1) > 0).all():
            raise bad_parameter(owner, "prior", "of weights of at least 0, not all of them 0", "others")
        weights = np.zeros((len(numbers), len(values)))
        weights[:, where] = numbers / numbers.sum(axis=1, keepdims=True)
        return cls(weights)

    def after(self, p: Floats, rows: Ints) -> Floats:
        """Bayes' rule: the weights times what a release says; where the two exclude each other, the weights stay."""
        known = self.weights if len(self.weights) == 1 else self.weights[rows]
        joined = known * p
        total = joined.sum(axis=-1, keepdims=True)
        found: Floats = np.where(total > 0, joined / np.where(total > 0, total, 1.0), known)
        return found

    @property
    def digest(self) -> str:
        """What tells one prior from another."""
        return hashlib.sha256(np.ascontiguousarray(self.weights).tobytes()).hexdigest()
