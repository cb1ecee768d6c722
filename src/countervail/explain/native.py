"""Explainers that answer with rows of the table as they are: another person's record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, distinct_rows
from countervail.core.constraints import Constraints
from countervail.core.errors import check_count
from countervail.core.table import Rows, Table
from countervail.explain.answering import Answers, Queries, remarks
from countervail.explain.base import Explainer

_ENTRIES = 1 << 22  # entries of a query x row array worked on at once


class NativeExplainer(Explainer):
    """Answers with training rows; equal ones are one, in order of content. A subclass writes `ranked`."""

    immutable: Iterable[str] = ()
    ranges: Mapping[str, Any] | None = None
    monotone: Mapping[str, str] | None = None
    forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None
    max_changes: int | None = None
    costs: Mapping[str, float] | None = None

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        check_count(self._owner, "n_counterfactuals", self.n_counterfactuals)
        super().fit(table, model)
        self._aim().wanted(self.decision_.train[:1])
        self.places_, self.counts_ = _first_of_equals(self.rows_)
        self.nodes_, self.classes_ = self.rows_[self.places_], self.decision_.train[self.places_]
        return self

    @property
    def native(self) -> bool:
        """Whether counterfactuals are training rows as they are."""
        return True

    def nearest(self, rows: Rows, n: int = 1) -> Ints:
        """Row numbers of the `n` rows that would answer each row first; -1: none, or already as wanted. Never
        released."""
        encoder, frame, queries = self._queries(rows)
        return self.nearest_to(self._aim().ask(encoder, frame, queries), n)

    def nearest_to(self, asked: Queries, n: int = 1) -> Ints:
        """The same for queries that the model was asked about already, under this explainer's own constraints."""
        wanted, constraints = asked.wanted & ~asked.already[:, None], self.constraints_.coded(asked.encoder)
        return self._rows_of(self.ranked(asked.x, wanted, n, constraints))

    @abstractmethod
    def ranked(self, x: Matrix, wanted: Bools, n: int, constraints: Constraints) -> Ints:
        """Query x rank: places among the different rows (-1: none left) of the `n` best answers of wanted classes."""

    def _rows_of(self, places: Ints) -> Ints:
        return np.where(places >= 0, self.places_[places], -1)

    def _find(self, asked: Queries) -> Answers:
        """Whole rows, the best ones first."""
        assert asked.constraints is not None
        n, constraints = self.n_counterfactuals, asked.constraints
        answers = self._as_they_are(asked, self.ranked(asked.x, asked.wanted, n, constraints))
        found = answers.found.reshape(len(asked), n)
        return Answers(
            answers.cells,
            answers.after,
            answers.found,
            answers.scores,
            notes=remarks(found, constraints.notes(asked.x)),
        )

    def _as_they_are(self, asked: Queries, places: Ints) -> Answers:
        """Rows of the table as answers; query x rank."""
        decision, rows = self.decision_, self._rows_of(places).ravel()
        at, cells = np.flatnonzero(rows >= 0), np.repeat(asked.x, places.shape[1], axis=0)
        after, scores = np.full(len(rows), -1, dtype=np.int64), np.full((len(rows), len(decision.classes)), np.nan)
        cells[at], after[at] = self.rows_[rows[at]], decision.train[rows[at]]
        if decision.train_scores is not None:
            scores[at] = decision.train_scores[rows[at]]
        return Answers(cells, after, rows >= 0, scores)

    def _first_ranks(self, distances: Any, x: Matrix, wanted: Bools, n: int, constraints: Constraints) -> Ints:
        """The nearest allowed rows of wanted classes by `distances(queries)`, query x row; ties by content."""
        step, parts = max(1, _ENTRIES // max(len(self.nodes_), 1)), []
        for a in range(0, len(x), step):
            part = x[a : a + step]
            away = np.where(wanted[a : a + step][:, self.classes_], distances(part), np.inf)
            if constraints:
                away[~constraints.admissible(part, self.nodes_)] = np.inf
            parts.append(smallest(away, n))
        return np.concatenate(parts)


def smallest(away: Floats, n: int) -> Ints:
    """Row x rank: where the `n` smallest finite entries stand, the first of equals first; -1 where there are fewer."""
    out = np.full((len(away), n), -1, dtype=np.int64)
    if not away.shape[1]:
        return out
    if n == 1:
        order = away.argmin(axis=1)[:, None]
    elif n < away.shape[1]:
        # All that are at most the n-th smallest, so that ties at the end go by place as well.
        bound = np.partition(away, n - 1, axis=1)[:, n - 1 : n]
        order = np.argsort(np.where(away <= bound, away, np.inf), axis=1, kind="stable")[:, :n]
    else:
        order = np.argsort(away, axis=1, kind="stable")[:, :n]
    near = np.take_along_axis(away, order, axis=1)
    out[:, : order.shape[1]] = np.where(np.isfinite(near), order, -1)
    return out


def _first_of_equals(rows: Matrix) -> tuple[Ints, Ints]:
    """Where each different row comes first, in order of content, and how many rows are like it."""
    first, which = distinct_rows(rows)
    return first, np.bincount(which, minlength=len(first)).astype(np.int64)
