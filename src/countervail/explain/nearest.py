"""The What-If Tool's nearest counterfactual: the most similar row with another decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.table import Table
from countervail.explain.native import NativeExplainer

Norm = Literal["l1", "l2"]
NORMS: tuple[Norm, ...] = get_args(Norm)


@dataclass(frozen=True, eq=False, slots=True)
class WhatIfDistance:
    """Numbers in standard deviations; labels that differ count the chance that two rows have the same label.

    A number that is missing lies 1 from any other, a missing label is a label. Columns in which all rows are alike, and
    columns of labels in which no two rows are, count nothing.
    """

    numeric: Bools
    scale: Floats  # standard deviations, and what labels that differ count
    norm: Norm

    @classmethod
    def fit(cls, encoder: Encoder, rows: Matrix, norm: Norm) -> Self:
        """Deviations and chances over all rows."""
        scale = np.zeros(rows.shape[1])
        for j, coding in enumerate(encoder.codings):
            known = rows[:, j][~np.isnan(rows[:, j])]
            if coding.numeric:
                scale[j] = known.std() if len(known) else 0.0
            else:
                counts = np.unique(known, return_counts=True)[1]
                scale[j] = 0.0 if counts.max(initial=0) <= 1 else float(((counts / len(known)) ** 2).sum())
        return cls(encoder.numeric, scale, norm)

    def away(self, x: Matrix, rows: Matrix, weights: Floats | None = None) -> Floats:
        """Query x row: the distance; of "l2" its square, which puts rows in the same order."""
        total = np.zeros((len(x), len(rows)))
        for j, scale in enumerate(self.scale.tolist()):
            a, b = x[:, j, None], rows[None, :, j]
            if not self.numeric[j]:
                term = np.where(a != b, scale, 0.0)
            elif scale == 0.0:
                term = np.where(np.isnan(a) != np.isnan(b), 1.0, 0.0)
            else:
                term = np.abs(a - b) / scale
                holes = np.isnan(term)
                if holes.any():
                    term[holes] = unlike(a, b)[holes].astype(float)
            if weights is not None:
                term *= weights[j]
            total += term * term if self.norm == "l2" else term
        return total


class NearestCounterfactual(NativeExplainer):
    """The most similar training row with another decision, by the What-If Tool's distance.

    Parameters
    ----------
    norm : {"l1", "l2"}
        Whether the distances of the columns, or their squares, are added up. A number's is the difference in standard
        deviations; labels that differ count the chance that two rows of the table have the same label.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers per query: the next similar rows.
    immutable, ranges, monotone, forbidden, max_changes, costs : optional
        What answers may not ask of people, as in :class:`NICE`; rows that ask for it are passed over.

    Notes
    -----
    *Threat model*: none. Every answer is another person's record: whoever knows that person's quasi-identifiers learns
    the rest. The guarantee says so. The tool counts two missing values as unlike; here they are alike.

    References
    ----------
    Wexler, Pushkarna, Bolukbasi, Wattenberg, Viégas, Wilson: The What-If Tool: interactive probing of machine learning
    models (2020).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.NearestCounterfactual().fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> print(e.to_text())  # doctest: +NORMALIZE_WHITESPACE
    If you were 3 years older (from 21 to 24), lived in Antwerp (instead of Brussels) and earned $10K more (from $50K to
    $60K), the decision would be Accept.
    """

    name: ClassVar[str] = "nearest"
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        norm: Norm = "l1",
        *,
        target: Any = "other",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.norm = norm
        self.target = target
        self.n_counterfactuals = n_counterfactuals
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        if self.norm not in NORMS:
            raise bad_parameter(self._owner, "norm", f"one of {NORMS}", self.norm)
        super().fit(table, model)
        self.distance_ = WhatIfDistance.fit(self.encoder_, self.rows_, self.norm)
        return self

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls("l2", target="favourable", n_counterfactuals=2, monotone={"age": "up"})]

    def ranked(self, x: Matrix, wanted: Bools, n: int, constraints: Constraints) -> Ints:
        """The most similar rows of wanted classes."""
        weights = constraints.weights if constraints.costs else None
        return self._first_ranks(
            lambda part: self.distance_.away(part, self.nodes_, weights), x, wanted, n, constraints
        )

    def apart(self, queries: Matrix, rows: Matrix) -> Floats:
        """Query x row: the distance that answers are chosen by."""
        return self.distance_.away(queries, rows)
