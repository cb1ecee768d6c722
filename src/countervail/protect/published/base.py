"""What the published mechanisms share: plain NICE underneath, noise on top, and a label that promises nothing."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from countervail.core.encode import Encoder, Matrix, conform_rows, require_numbers
from countervail.core.errors import PrivacyWarning
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.rng import RandomState, generator
from countervail.core.table import Rows, Table, to_pandas
from countervail.explain.nice import NICE
from countervail.protect.base import ExplanationProtector, check_unchanged, frozen
from countervail.protect.dp.base import (
    SEEDED,
    blanked,
    check_epsilon,
    check_table,
    made_by,
)
from countervail.protect.published.columns import Columns, distinct_rows

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_BATCH = 1024  # answers at once: keeps the rows of one model call, and memory, bounded
_INVALID = "The noise has undone the counterfactual: the decision stays as it was."


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """Queries that want an answer; `place` says which distinct query each is."""

    encoder: Encoder
    x: Matrix
    wanted: Bools
    distinct: Matrix
    place: Ints


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """The row that answers each query, and whether there is one at all."""

    cells: Matrix
    given: Bools


class PublishedExplainer(ExplanationProtector):
    """A published mechanism. A subclass writes `why` nothing is promised, and `_answer`.

    `fit` warns once; answers carry the label instead.
    """

    draws_noise: ClassVar[bool] = True
    proven: ClassVar[bool] = False
    why: ClassVar[str]
    epsilon: float
    random_state: RandomState

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model, and warn that no promise comes with it."""
        if hasattr(self, "table_"):
            del self.table_
        check_epsilon(self.epsilon, self._owner)
        self._check_parameters()
        check_table(table, self._owner)
        warnings.warn(f"{self._owner} has no privacy guarantee: {self.why}.", PrivacyWarning, stacklevel=2)
        self._learn(table, model, generator(self.random_state))
        self.table_, self.fitted_as_ = table, frozen(self)
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping. Equal rows share the work before noise."""
        check_is_fitted(self, "table_")
        check_unchanged(self)
        encoder, frame, queries = self._queries(rows)
        rng = generator(self.random_state)
        parts = []
        for start in range(0, len(frame), _BATCH):
            stop = min(start + _BATCH, len(frame))
            parts.append(self._batch(encoder, frame.iloc[start:stop], queries[start:stop], rng))
            if progress is not None:
                progress(stop, len(frame))
        cells, now, after, already = (np.concatenate([p[i] for p in parts]) for i in range(4))
        return self._release(encoder, frame, cells, now, after, already)

    def guarantee(self) -> Guarantee:
        """Nothing, and why."""
        return NoGuarantee(self.why)

    def _check_parameters(self) -> None:
        """Parameters of the subclass."""

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        """Keep what answers need: NICE with the sparsity reward, fitted to the rows as they are."""
        self.explainer_ = self._nice(table, model, justified=True)
        self.columns_ = Columns.of(self.explainer_.encoder_, self.explainer_.rows_)

    def _nice(self, table: Table, model: Any, *, justified: bool) -> NICE:
        nice = NICE("none", justified=justified, target=self.target).fit(table, model)
        return nice.set_params(reward="sparsity") if nice.decision_.has_scores else nice

    def _queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        inner, schema = self.explainer_.table_, self.table_.schema
        given = to_pandas(rows, self._owner, "rows")
        given = given.drop(columns=[n for n in schema.names("identifier") if n in given.columns])
        frame = conform_rows(given, inner, self._owner)
        require_numbers(frame, schema, self._owner, "rows")
        encoder, queries = self.explainer_.encoder_.extended(frame)
        return encoder, frame, queries

    @abstractmethod
    def _answer(self, asked: Asked, rng: np.random.Generator) -> Answers:
        """The rows that answer a batch."""

    def _plain(self, asked: Asked) -> Answers:
        """NICE's own answers, found once for equal queries."""
        found = self.explainer_.explain(asked.encoder.decode(asked.distinct))
        given = found.found
        cells = asked.distinct.copy()
        if given.any():
            cells[given] = asked.encoder.encode(found.counterfactuals[given].astype(dict(_dtypes(asked.encoder))))
        return Answers(cells[asked.place], given[asked.place])

    def _batch(
        self, encoder: Encoder, frame: pd.DataFrame, queries: Matrix, rng: np.random.Generator
    ) -> tuple[Matrix, Ints, Ints, Bools]:
        """Cells, decision now and after (-1: no row), and who has what he wants already."""
        decision = self.explainer_.decision_
        first, place = distinct_rows(queries)
        distinct = queries[first]
        now = decision.decide(encoder.decode(distinct))[place]
        wanted = self.explainer_._targets(self.target, now)
        already = wanted[np.arange(len(now)), now]
        cells, after = queries.copy(), np.where(already, now, -1)
        at = np.flatnonzero(~already)
        if len(at):
            held, local = np.unique(place[at], return_inverse=True)
            found = self._answer(Asked(encoder, queries[at], wanted[at], distinct[held], local), rng)
            cells[at] = found.cells
            some, which = distinct_rows(found.cells)
            said = decision.decide(encoder.decode(found.cells[some]))[which]
            after[at] = np.where(found.given, said, -1)
        return cells, now, after, already

    def _release(
        self, encoder: Encoder, frame: pd.DataFrame, cells: Matrix, now: Ints, after: Ints, already: Bools
    ) -> Explanations:
        decision = self.explainer_.decision_
        wanted = self.explainer_._targets(self.target, now)
        valid = wanted[np.arange(len(now)), after] & ~already & (after >= 0)
        status = np.where(valid, "found", np.where(already, "already_favourable", "no_counterfactual"))
        return Explanations(
            frame,
            blanked(encoder.decode(cells), already | (after < 0)),
            pd.Series(status),
            decision.labels(now),
            decision.labels(np.where(already, -1, after)),
            self.table_.schema.without_identifiers(),
            self.guarantee(),
            made_by(self),
            caveats=(SEEDED,) if self.random_state is not None else (),
            notes=tuple("" if ok else _INVALID for ok in valid | already | (after < 0)),
            audit=self.table_,
        )


def _dtypes(encoder: Encoder) -> list[tuple[str, Any]]:
    """The dtype of each column, for frames whose blanks have widened it."""
    return [(c.name, c.dtype) for c in encoder.codings]
