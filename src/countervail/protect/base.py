"""The contract every protector keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from countervail.core.encode import Matrix
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Native, Progress
from countervail.core.table import Rows, Table
from countervail.explain.base import Explainer, as_labels, provenance
from countervail.explain.nice import NICE


class ExplanationProtector(BaseEstimator, ABC):
    """Answers queries with counterfactuals that are safe to hand out.

    A subclass writes `guarantee` and `explain`; the base fits the explainer underneath, drops identifiers (they are no
    features), and strips released frames of what the training table alone would tell.
    """

    name: ClassVar[str]
    explainer: Explainer | None
    target: Any

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        if isinstance(table, Table) and not table.schema.names("quasi"):
            raise SchemaError(
                f"{self._owner} protects quasi-identifiers, but the table declares none. "
                f"Pass quasi_identifiers=[...] to Table.from_frame, or give columns the role 'quasi' in the schema."
            )
        self.explainer_ = self._native().fit(table, model)
        self.table_: Table = self.explainer_.table_
        return self

    @abstractmethod
    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _native(self) -> Any:
        """A fresh explainer whose counterfactuals are training rows, aimed where this protector aims."""
        if self.explainer is None:
            return NICE(reward="none", justified=False, target=self.target)
        if not (isinstance(self.explainer, Explainer) and isinstance(self.explainer, Native) and self.explainer.native):
            must = "a native explainer, whose counterfactuals are training rows, such as NICE(reward='none')"
            raise bad_parameter(self._owner, "explainer", must, self.explainer)
        explainer = clone(self.explainer)
        if explainer.get_params().get("target") == "other":
            explainer.set_params(target=self.target)
        return explainer

    def _provenance(self) -> dict[str, Any]:
        return provenance("protector", self, self.table_)


def released(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without the categories that no row of it holds: they would tell what else the table holds."""
    held = {
        n: frame[n].cat.remove_unused_categories()
        for n in frame.columns
        if isinstance(frame[n].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**held)


def unique_rows(rows: Matrix) -> tuple[Matrix, Any]:
    """Distinct rows in the order of their content, and which of them each row is."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.ravel()


__all__ = ["ExplanationProtector", "as_labels", "released", "unique_rows"]
