"""The contract every explainer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from countervail.core.arrays import Matrix
from countervail.core.constraints import CONSTRAINTS, Constraints, asked_for
from countervail.core.encode import Encoder, conform_rows, encode_one, require_numbers
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.release import origin, provenance
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table
from countervail.explain.agreement import doubts
from countervail.explain.answering import Aim, Answers, Queries, constrained, explanations
from countervail.model.decision import Decision, answers_to

_BATCH = 2048  # queries in lock-step at once: keeps the rows of one model call, and memory, bounded

UNHEARD = "The schema says what may be asked of people; this explainer takes no constraints, and may break them."


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
    takes_missing: ClassVar[bool] = False  # explains numbers that are missing, where the model takes them
    target: Any = "other"
    n_counterfactuals: int = 1

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        check_table(table, self._owner)
        self._check_numbers(model, table.features, table, "table")
        self.table_ = table
        self.decision_ = Decision(model, table, self._owner)
        self.caveats_ = doubts(self.decision_, table, self._owner)
        self.encoder_ = Encoder.fit(table)
        self.rows_ = self.encoder_.encode(table.features)
        given = {n: getattr(self, n) for n in CONSTRAINTS if hasattr(self, n)}
        self.constraints_ = Constraints.of(self.encoder_, self._owner, **given)
        self.model_, self.origin_ = model, origin(table.schema)
        return self

    def explain(self, rows: Rows, *, constraints: Any = None, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Batches share every model call.

        `constraints` are those of these people besides the ones of the explainer, under the same names: a mapping for
        all rows, such as `{"immutable": ["job"]}`, or a list with one (or None) for each row.
        """
        if constraints is not None and not self._obeys:
            raise bad_parameter(self._owner, "constraints", "None: this explainer takes none", constraints)
        given = self._queries(rows)
        n, kinds = self.n_counterfactuals, asked_for(constraints, len(given[1]), self.constraints_)
        find = constrained(self._find, *kinds, n)
        asked, answers = self._aim().answer(*given, find, batch=_BATCH, n=n, scored=True, progress=progress)
        schema, made = self.table_.schema.without_identifiers(), provenance("explainer", self) | self.origin_
        return explanations(
            asked,
            answers,
            self.decision_,
            schema,
            self.guarantee(),
            made,
            caveats=(*self.caveats_, *self._caveats()),
            scored=True,
            audit=self.table_,
        )

    @abstractmethod
    def _find(self, asked: Queries) -> Answers:
        """Answers to a batch of queries that do not have what they want; `n_counterfactuals` rows for each.

        All of them ask for the same `asked.constraints`.
        """

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        return NoGuarantee("a plain counterfactual can be another person's record")

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    def _queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        if not hasattr(self, "table_"):
            check_is_fitted(self, "table_")  # scikit-learn's words
        known = encode_one(rows, self.table_.schema, self.encoder_)
        if known is not None:
            return self.encoder_, self.encoder_.decode(known), known
        frame = conform_rows(rows, self.table_, self._owner)
        encoder, x = self.encoder_.extended(frame)
        if np.isnan(x[:, encoder.numeric]).any():
            self._check_numbers(self.model_, frame, self.table_, "rows")
        return encoder, frame, x

    def _check_numbers(self, model: Any, frame: pd.DataFrame, table: Table, parameter: str) -> None:
        """Missing numbers are refused, unless explainer and model both take them."""
        holes = frame[[n for n in frame.columns if table.schema[n].numeric]].isna().any(axis=1)
        if not holes.any() or (self.takes_missing and answers_to(model, frame[holes])):
            return
        whole = frame[~holes].iloc[:2]
        # A model that fails on complete rows too fails for another reason, which is said when it is asked.
        if not self.takes_missing or whole.empty or answers_to(model, whole):
            require_numbers(frame, table.schema, self._owner, parameter)

    @property
    def _obeys(self) -> bool:
        return "immutable" in self.get_params(deep=False)

    def _caveats(self) -> tuple[str, ...]:
        """What must be known about every answer."""
        return (UNHEARD,) if self.constraints_ and not self._obeys else ()

    def _aim(self) -> Aim:
        return Aim(self.decision_, self.target, self.table_.schema, self._owner)


def check_table(table: Any, owner: str, build: str = "Table.from_frame(df, target=...)") -> None:
    """A Table with features."""
    if not isinstance(table, Table):
        hint = f"Build one with {build} or Table.read(path, schema=...)."
        raise bad_parameter(owner, "table", "a Table", type(table).__name__, hint)
    check_features(table.schema, owner)


def check_features(schema: Schema, owner: str) -> None:
    """There are columns that a model looks at."""
    if not schema.features:
        raise SchemaError(f"The table given to {owner} has no feature columns: all are identifiers or target.")
