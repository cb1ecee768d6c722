"""What the published mechanisms share: plain NICE underneath, noise on top, and a label that promises nothing."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from countervail.core.arrays import Bools, Matrix, distinct_rows
from countervail.core.encode import Encoder, encode_queries, require_numbers
from countervail.core.errors import PrivacyWarning
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.rng import RandomState, generator
from countervail.core.table import Rows, Table, to_pandas
from countervail.explain.answering import Aim, Answers, Queries, explanations
from countervail.explain.base import check_table
from countervail.explain.nice import NICE
from countervail.protect._fitted import freeze, verify_unchanged
from countervail.protect.base import ExplanationProtector
from countervail.protect.dp.base import DECLARED, SEEDED, check_epsilon, made_by
from countervail.protect.published.columns import Columns

_BATCH = 1024  # answers at once: keeps the rows of one model call, and memory, bounded
_INVALID = "The noise has undone the counterfactual: the decision stays as it was."


class PublishedExplainer(ExplanationProtector):
    """A published mechanism. A subclass writes `why` nothing is promised, and `_answer`.

    `fit` warns once; answers carry the label instead.
    """

    draws_noise: ClassVar[bool] = True
    proven: ClassVar[bool] = False
    why: ClassVar[str]
    table_: Table
    target: Any
    epsilon: float
    random_state: RandomState

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model, and warn that no promise comes with it."""
        if hasattr(self, "table_"):
            del self.table_
        check_epsilon(self.epsilon, self._owner)
        self._check_parameters()
        check_table(table, self._owner, DECLARED)
        warnings.warn(f"{self._owner} has no privacy guarantee: {self.why}.", PrivacyWarning, stacklevel=2)
        self._learn(table, model, generator(self.random_state))
        self.table_, self.fitted_as_ = table, freeze(self)
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Equal rows share the work before noise."""
        check_is_fitted(self, "table_")
        verify_unchanged(self)
        nice, rng = self.explainer_, generator(self.random_state)
        aim = Aim(nice.decision_, self.target, self.table_.schema, self._owner)

        def find(queries: Queries) -> Answers:
            return self._judged(queries, *self._answer(queries, rng))

        asked, answers = aim.answer(*self._queries(rows), find, batch=_BATCH, progress=progress)
        return explanations(
            asked,
            answers,
            nice.decision_,
            self.table_.schema.without_identifiers(),
            self.guarantee(),
            made_by(self),
            caveats=(SEEDED,) if self.random_state is not None else (),
            undone=_INVALID,
            audit=self.table_,
        )

    def guarantee(self) -> Guarantee:
        """Nothing, and why."""
        return NoGuarantee(self.why)

    def _check_parameters(self) -> None:
        """Parameters of the subclass."""

    def _readings(self) -> dict[str, str]:
        """How the text is read where it leaves several ways: the response, and what noise is scaled by."""
        return {}

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        """Keep what answers need: NICE with the sparsity reward, fitted to the rows as they are."""
        self.explainer_ = self._nice(table, model, justified=True)
        self.columns_ = Columns.of(self.explainer_.encoder_, self.explainer_.rows_, **self._readings())

    def _nice(self, table: Table, model: Any, *, justified: bool) -> NICE:
        require_numbers(table.features, table.schema, self._owner, "table")
        nice = NICE("none", justified=justified, target=self.target).fit(table, model)
        return nice.set_params(reward="sparsity") if nice.decision_.has_scores else nice

    def _queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        inner, schema = self.explainer_.table_, self.table_.schema
        given = to_pandas(rows, self._owner, "rows")
        given = given.drop(columns=[n for n in schema.names("identifier") if n in given.columns])
        return encode_queries(given, inner.schema, self.explainer_.encoder_, self._owner)

    @abstractmethod
    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        """The row that answers each query, and whether there is one at all."""

    def _plain(self, asked: Queries) -> tuple[Matrix, Bools]:
        """NICE's own answers, found once for equal queries."""
        first, place = distinct_rows(asked.x)
        distinct = asked.x[first]
        found = self.explainer_.explain(asked.encoder.decode(distinct))
        given, cells = found.found, distinct.copy()
        if given.any():
            cells[given] = asked.encoder.encode(found.counterfactuals[given].astype(dict(_dtypes(asked.encoder))))
        return cells[place], given[place]

    def _judged(self, asked: Queries, cells: Matrix, given: Bools) -> Answers:
        """Rows with the decisions about them; equal ones are asked about once."""
        first, place = distinct_rows(cells)
        said = self.explainer_.decision_.decide(asked.encoder.decode(cells[first]))[place]
        after = np.where(given, said, -1)
        return Answers(cells, after, given & asked.wanted[np.arange(len(said)), said])


def _dtypes(encoder: Encoder) -> list[tuple[str, Any]]:
    """The dtype of each column, for frames whose blanks have widened it."""
    return [(c.name, c.dtype) for c in encoder.codings]
