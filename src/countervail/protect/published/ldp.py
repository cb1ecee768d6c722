"""LDP: the published noise before the explainer."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Matrix
from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.protect.published.base import PublishedExplainer
from countervail.protect.published.columns import Columns

RESPONSES = ("kept", "swapped", "any")


class LDP(PublishedExplainer):
    """DP-Pre as published: every cell of the training table gets noise, and NICE runs on the noisy table.

    Parameters
    ----------
    epsilon : float
        The budget that the authors claim for a record, shared equally by its columns.
    response : {"kept", "swapped", "any"}
        Whether randomised response keeps a label with the larger of its two probabilities, as described, or with the
        smaller one. The reported distances on Adult, which grow with epsilon, are those of the second. "any" is
        Algorithm 2 to the letter: what is not kept becomes any value of the column, its own among them.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. The ranges of the noise are those of the data, so one record moves them for all; and the
    randomised response over m values keeps the truth with e**epsilon * (m - 1) times the probability of any other.
    :class:`countervail.DPTable` is the mechanism that keeps the promise.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 4.1.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.LDP(epsilon=1.0).fit(small_table(), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-ldp"
    keeps_draw: ClassVar[bool] = True
    why: ClassVar[str] = (
        "the noise is scaled by ranges read off the records, and its randomised response keeps the truth more often "
        "than epsilon allows (by ln(m - 1) for m values)"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        response: str = "kept",
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.response = response
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls(response="swapped", random_state=0)]

    def _check_parameters(self) -> None:
        if self.response not in RESPONSES:
            raise bad_parameter(self._owner, "response", f"one of {RESPONSES}", self.response)

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        # As NICE does by default, only rows that the model gives their label are candidates: noisy rows, true labels.
        self.explainer_ = self._nice(self._reference(table, rng), model, justified=True)

    def _reference(self, table: Table, rng: np.random.Generator) -> Table:
        """The noisy table, with the true labels."""
        encoder = Encoder.fit(table)
        rows = encoder.encode(table.features)
        columns = Columns.of(encoder, rows, response=self.response)
        share = np.full(len(rows), float(self.epsilon) / rows.shape[1])
        swapped = self.response == "swapped"  # a negative budget swaps the probabilities of the response
        noisy = np.column_stack(
            [
                columns.noisy(j, cells, -share if swapped and not columns.numeric[j] else share, rng)
                for j, cells in enumerate(rows.T)
            ]
        )
        return reference(table, encoder, noisy)

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        return self._plain(asked)


def reference(table: Table, encoder: Encoder, rows: Any) -> Table:
    """A table of other rows in the place of the original ones, without its identifiers."""
    frame = encoder.decode(rows)
    assert table.schema.target is not None
    target = table.target.to_numpy(copy=True)
    frame[table.schema.target] = np.resize(target, len(frame))
    return Table(frame, table.schema.without_identifiers())
