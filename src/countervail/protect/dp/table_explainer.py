"""DPTableExplainer: a noisy table, and an explainer that sees nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from countervail.core.constraints import CONSTRAINTS
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Progress
from countervail.core.rng import RandomState
from countervail.core.table import Rows, Table
from countervail.explain.base import Explainer
from countervail.explain.nice import NICE
from countervail.ledger.ledger import Ledger
from countervail.protect._fitted import begin_fit, finish_fit, snapshot, verify_promised, verify_unchanged
from countervail.protect.base import ExplanationProtector
from countervail.protect.dp.base import made_by
from countervail.protect.dp.table import DPTable, NoisyAnswering

_ASKED = (*CONSTRAINTS, "n_counterfactuals")


class DPTableExplainer(ExplanationProtector):
    """Counterfactuals from a differentially private table; the budget is spent once, at fit.

    Parameters
    ----------
    epsilon : float
        What the noisy table costs. Answers cost nothing more; another `fit` costs again, unless a ledger keeps it.
    explainer : Explainer, optional
        Explains from the noisy rows; by default NICE towards `target`, with the sparsity reward where there are scores.
    split, missing, random_state, ledger
        As for :class:`DPTable`.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals, immutable, ranges, monotone, forbidden, max_changes, costs
        As for :class:`NICE`, and for the default explainer only: another one has its own. They cost nothing.

    Notes
    -----
    *Threat model*: that of :class:`DPTable`, with a public model; the adversary may ask without limit. A pickle holds
    the noisy table and the model, not the table.

    References
    ----------
    Proof: docs/decisions/dp-table.md; whatever is computed from a noisy table is as private as the table.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> e = cv.DPTableExplainer(epsilon=1.0).fit(small_table(), small_model).explain(small_table(3))
    >>> e.guarantee.answers is None, e.guarantee.total
    (True, 1.0)
    """

    name: ClassVar[str] = "dp-table"
    draws_noise: ClassVar[bool] = True
    keeps_draw: ClassVar[bool] = True
    noisy_: DPTable

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        explainer: Explainer | None = None,
        split: Mapping[str, float] | None = None,
        missing: Sequence[str] = (),
        target: Any = "favourable",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.explainer = explainer
        self.split = split
        self.missing = missing
        self.target = target
        self.n_counterfactuals = n_counterfactuals
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, table: Table, model: Any) -> Self:
        """Draw the noisy table."""
        if hasattr(self, "noisy_"):
            del self.noisy_  # a fit that fails leaves nothing to ask
        given = begin_fit(self)
        if self.explainer is not None and (named := [n for n in _ASKED if getattr(self, n) not in ((), None, 1)]):
            raise bad_parameter("DPTableExplainer", named[0], "given to the explainer itself", getattr(self, named[0]))
        noisy = self._table().fit(table)
        self.model_, self.fitted_as_ = model, finish_fit(self, given)
        self.noisy_ = noisy
        return self

    def explain(self, rows: Rows, *, constraints: Any = None, progress: Progress | None = None) -> Explanations:
        """Explain rows from the noisy table alone, as often as you like.

        `constraints` are those of these people besides: a mapping for all rows, or a list with one for each row.
        """
        now = snapshot(self)
        told = now._told()
        # Kept for all who ask later; threads that come first may each make it, and make the same.
        self._kept = now.noisy_, told
        answers = now.noisy_.tell(rows, told, constraints)
        if progress is not None:
            progress(len(answers), len(answers))
        return answers.with_parts(provenance=made_by(now))

    def _told(self) -> NoisyAnswering:
        """The explainer behind all answers of this fit."""
        check_is_fitted(self, "noisy_")
        verify_unchanged(self)
        kept: tuple[DPTable, NoisyAnswering] | None = self.__dict__.get("_kept")
        if kept is not None and kept[0] is self.noisy_:
            return kept[1]
        explainer = self.explainer
        if explainer is None:
            reward: Any = "sparsity" if self.noisy_.has_scores(self.model_) else "none"
            explainer = NICE(reward, target=self.target, **{n: getattr(self, n) for n in _ASKED})
        return self.noisy_.told(self.model_, explainer)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_kept", None)  # made again from the noisy table
        return state

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        verify_promised(self)
        return self._table().answers_guarantee(getattr(self, "model_", None))

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls(random_state=0)]

    def _table(self) -> DPTable:
        return DPTable(
            self.epsilon, split=self.split, missing=self.missing, random_state=self.random_state, ledger=self.ledger
        )
