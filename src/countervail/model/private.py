"""A model that was trained under differential privacy: plain tables of weights, and the promise they were made with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats, Ints
from countervail.core.errors import SchemaError
from countervail.core.guarantee import DifferentialPrivacy, guarantee_from_dict

_FAR = 30.0  # scores beyond it do not differ any more


class PrivateLogistic:
    """Logistic regression over public positions: one weight for each position of each column, added up.

    Made by :func:`countervail.train_private_logistic`. It holds what was declared and noisy weights, so that it may be
    published; `promise` is what it keeps by itself, None where its noise was seeded. Protectors that it is given to
    promise for both.

    Numbers between two positions are judged between them, those beyond the ends as the ends; a label that was not
    declared counts as the first one, and a missing value as its level where that was declared, else as the middle
    position or the first label.
    """

    def __init__(self, labels: Sequence[Any], columns: Sequence[Mapping[str, Any]], promise: dict[str, Any] | None):
        self.classes_ = np.array(list(labels), dtype=None if len({type(v) for v in labels}) == 1 else object)
        self.columns_ = [dict(c) for c in columns]  # name, numeric, values, default, missing, weights
        self.promise_ = promise
        self.feature_names_in_ = np.array([str(c["name"]) for c in self.columns_], dtype=object)

    @property
    def promise(self) -> DifferentialPrivacy | None:
        """What the model itself keeps, for whatever it is used."""
        if self.promise_ is None:
            return None
        found = guarantee_from_dict(self.promise_)
        return found if isinstance(found, DifferentialPrivacy) else None

    @property
    def digest(self) -> str:
        """What tells one model from another: its promise is about these weights, and no others."""
        spelt = json.dumps([self.classes_.tolist(), self.columns_, self.promise_], sort_keys=True, default=str)
        return hashlib.sha256(spelt.encode()).hexdigest()

    def predict(self, rows: pd.DataFrame) -> Any:
        """The likeliest label of each row."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    def predict_proba(self, rows: pd.DataFrame) -> Floats:
        """The probability of each label."""
        if missing := [str(c["name"]) for c in self.columns_ if c["name"] not in rows.columns]:
            raise SchemaError(f"PrivateLogistic needs columns that the rows do not have: {missing}.")
        sums = np.zeros((len(rows), len(self.columns_[0]["weights"])))
        for column in self.columns_:
            sums += _judged(column, rows[column["name"]])
        if sums.shape[1] == 1:  # two labels: how far the second is ahead
            sums = np.column_stack([np.zeros(len(rows)), sums])
        weights = np.exp(np.maximum(sums - sums.max(axis=1, keepdims=True), -_FAR))
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def __repr__(self) -> str:
        own = "seeded, no promise" if self.promise is None else self.promise.claim
        return f"PrivateLogistic({len(self.columns_)} columns, {len(self.classes_)} labels; {own})"


def _judged(column: Mapping[str, Any], values: pd.Series) -> Floats:
    """Row x vector: what this column adds."""
    weights = np.asarray(column["weights"], dtype=float)
    default = int(column["default"])
    if column["numeric"]:
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        at = np.asarray(column["values"], dtype=float)
        absent = np.isnan(numbers)
        known = np.where(absent, at[default], numbers)
        judged: Floats = np.column_stack([np.interp(known, at, w[: len(at)]) for w in weights])
        if column["missing"]:
            judged[absent] = weights[:, len(at)]
        return judged
    found: Ints = pd.Index(list(column["values"]), dtype=object).get_indexer(pd.Index(values.astype(object)))
    absent_at = len(column["values"]) if column["missing"] else default
    places = np.where(values.isna().to_numpy(), absent_at, np.where(found < 0, default, found))
    added: Floats = weights[:, places].T
    return added
