"""The contract every explainer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from countervail.core.arrays import Matrix
from countervail.core.encode import Encoder, encode_queries, require_numbers
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.release import provenance
from countervail.core.table import Rows, Table
from countervail.explain.agreement import doubts
from countervail.explain.answering import Aim, Answers, Queries, explanations
from countervail.model.decision import Decision

_BATCH = 2048  # queries in lock-step at once: keeps the rows of one model call, and memory, bounded


class Named:
    """Knows what it is called in errors."""

    _owner: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._owner = cls.__name__


class Explainer(Named, BaseEstimator, ABC):
    """Answers "what would have to be different?" for rows, from a table and a model.

    A subclass writes `_find`, and extends `fit` where it has to. Fitted explainers are read-only and thread-safe; they
    hold the training rows, also when pickled.
    """

    name: ClassVar[str]
    target: Any = "other"
    n_counterfactuals: int = 1

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        check_table(table, self._owner)
        require_numbers(table.features, table.schema, self._owner, "table")
        self.table_ = table
        self.decision_ = Decision(model, table, self._owner)
        self.caveats_ = doubts(self.decision_, table, self._owner)
        self.encoder_ = Encoder.fit(table)
        self.rows_ = self.encoder_.encode(table.features)
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Batches share every model call."""
        given = self._queries(rows)
        asked, answers = self._aim().answer(
            *given, self._find, batch=_BATCH, n=self.n_counterfactuals, scored=True, progress=progress
        )
        schema, made = self.table_.schema.without_identifiers(), provenance("explainer", self, self.table_)
        return explanations(
            asked,
            answers,
            self.decision_,
            schema,
            self.guarantee(),
            made,
            caveats=self.caveats_,
            scored=True,
            audit=self.table_,
        )

    @abstractmethod
    def _find(self, asked: Queries) -> Answers:
        """Answers to a batch of queries that do not have what they want; `n_counterfactuals` rows for each."""

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        return NoGuarantee("a plain counterfactual can be another person's record")

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    def _queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        check_is_fitted(self, "table_")
        return encode_queries(rows, self.table_, self.encoder_, self._owner)

    def _aim(self) -> Aim:
        return Aim(self.decision_, self.target, self.table_.schema, self._owner)


def check_table(table: Any, owner: str, build: str = "Table.from_frame(df, target=...)") -> None:
    """A Table with features."""
    if not isinstance(table, Table):
        hint = f"Build one with {build} or Table.read(path, schema=...)."
        raise bad_parameter(owner, "table", "a Table", type(table).__name__, hint)
    if not table.schema.features:
        raise SchemaError(f"The table given to {owner} has no feature columns: all are identifiers or target.")
