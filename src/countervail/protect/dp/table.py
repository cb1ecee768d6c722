"""DPTable: a noisy copy of a table, from which anything may be computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState, Words
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table
from countervail.explain.base import Explainer, check_table
from countervail.explain.nice import NICE
from countervail.ledger.codec import pack, unpack
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.model.private import PrivateLogistic
from countervail.protect._fitted import begin_fit, finish_fit, snapshot, verify_promised, verify_unchanged
from countervail.protect.base import TableProtector
from countervail.protect.dp.base import DECLARED, SEEDED, check_epsilon, made_by, shares
from countervail.protect.dp.budgeted import beside, cost_of, promised, spelling
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.public import Public, public_schema
from countervail.protect.dp.randomiser import Randomiser, choose

_NOISY = "The rows are noisy: that several of them agree says nothing about how many people do."


@dataclass(frozen=True, eq=False, slots=True)
class NoisyAnswering:
    """An explainer that was fitted to noisy rows, and what is public about them."""

    public: Public
    inner: Explainer


class DPTable(TableProtector):
    """A differentially private table: noise on every feature of every row, rows shuffled, all else left out.

    Parameters
    ----------
    epsilon : float
        What the table costs: the budget of each record, shared by its columns.
    split : mapping, optional
        Weight of each column in the budget; equal by default.
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own; elsewhere a missing value
        counts as the middle level, or the first label.
    random_state : int, optional
        For tests only: a seeded table promises nothing, and says so.
    ledger : Ledger, optional
        Counts the draw against a budget for these people and keeps it: another fit with the same settings gives the
        same noisy table again, at no cost, even if the table has changed (name another edition to draw anew).

    Notes
    -----
    *Threat model*: someone who knows every other record, the domains and this code, and does whatever he likes with
    the released table. The number of rows is public. The noise is drawn once, at `fit`: another fit costs again,
    unless a ledger keeps the draw.

    References
    ----------
    Proof: docs/decisions/dp-table.md.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_table
    >>> table = small_table()
    >>> release = cv.DPTable(epsilon=1.0).fit(table).protect(table)
    >>> len(release) == len(table), "id" in release.to_frame(), "ok" in release.to_frame()
    (True, False, False)
    """

    name: ClassVar[str] = "dp-table"
    table_: Table | None
    keeps_rows: ClassVar[bool] = False
    draws_noise: ClassVar[bool] = True
    rows_are: ClassVar[str] = "noisy rows"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        split: Mapping[str, float] | None = None,
        missing: Sequence[str] = (),
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.split = split
        self.missing = missing
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, table: Table) -> Self:
        """Draw the noisy table. The draw is kept: releasing it again costs nothing, fitting again does."""
        if hasattr(self, "table_"):
            del self.table_  # a fit that fails leaves nothing to ask
        given = begin_fit(self)
        check_epsilon(self.epsilon, self._owner)
        check_ledger(self.ledger, self._owner, self.random_state)
        check_table(table, self._owner, DECLARED)
        self._learn(table)
        self.table_, self.schema_, self.fitted_as_ = table, public_schema(table.schema), finish_fit(self, given)
        return self

    def protect(self, rows: Rows | None = None) -> Release:
        """The noisy copy of the fitted table; always the same draw (a pickle holds nothing else of the table)."""
        return snapshot(self)._released(rows)

    def _released(self, rows: Rows | None) -> Release:
        check_is_fitted(self, "table_")
        verify_unchanged(self)
        if rows is not None and self.table_ is not None and rows is not self.table_:
            hint = "Fit to the rows that are to be protected: each draw of noise costs the budget."
            raise bad_parameter("DPTable", "rows", "the fitted table itself", "other rows", hint)
        schema = Schema(tuple(c for c in self.schema_ if c.name in self.noisy_.columns))
        return Release(
            Regions((), len(self.noisy_)),
            np.arange(len(self.noisy_)),
            self.noisy_.copy(),
            schema,
            self.guarantee(),
            made_by(self),
            (_NOISY, *self._caveats()),
            audit=self.table_,
        )

    def labelled(self, model: Any) -> Table:
        """The noisy rows with the model's decisions about them as target: a table for any explainer."""
        return snapshot(self)._labelled(model)

    def _labelled(self, model: Any) -> Table:
        check_is_fitted(self, "table_")
        verify_unchanged(self)
        return self._label(self._public(model))

    def _label(self, public: Public) -> Table:
        schema = self.schema_
        kept = [c for c in schema if c.role != "identifier"]
        target = public.decision.labels(public.decision.decide(self.noisy_)).tolist()
        if len(set(target)) == 1:  # the noise alone may leave one decision: what others there are is public
            labels = tuple(public.decision.classes)
            kept = [replace(c, type="categorical", domain=labels) if c.role == "target" else c for c in kept]
        return Table(self.noisy_.assign(**{str(schema.target): target}), Schema(tuple(kept), schema.favourable))

    def explain(
        self, rows: Rows, model: Any, explainer: Explainer | None = None, *, constraints: Any = None
    ) -> Explanations:
        """Explain rows from the noisy table alone, with any explainer (NICE by default), as often as you like."""
        return snapshot(self)._explained(rows, model, explainer, constraints)

    def _explained(self, rows: Rows, model: Any, explainer: Explainer | None, constraints: Any) -> Explanations:
        return self.tell(rows, self.told(model, explainer), constraints)

    def told(self, model: Any, explainer: Explainer | None) -> NoisyAnswering:
        """An explainer that has seen the noisy rows alone: the same for all who ask."""
        check_is_fitted(self, "table_")
        verify_unchanged(self)
        public = self._public(model)
        reward: Any = "sparsity" if public.decision.has_scores else "none"
        inner = clone(explainer) if explainer is not None else NICE(reward, target="favourable")
        return NoisyAnswering(public, inner.fit(self._label(public), model))

    def tell(self, rows: Rows, told: NoisyAnswering, constraints: Any) -> Explanations:
        """What such an explainer says about rows."""
        verify_unchanged(self)
        answers = told.inner.explain(told.public.queries(rows)[1], constraints=constraints)
        return answers.with_parts(
            guarantee=self.answers_guarantee(told.public.decision.model),
            provenance=made_by(self) | {"explainer": dict(answers.provenance)},
            caveats=(*answers.caveats, *self._caveats()),
            audit=self.table_,
        )

    def has_scores(self, model: Any) -> bool:
        """Whether the model scores its decisions, as some explainers need."""
        return bool(self._public(model).decision.has_scores)

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        return self._promised(self._promise())

    def answers_guarantee(self, model: Any = None) -> Guarantee:
        """What is promised of answers from the noisy table: the table's own promise, and that of a private model."""
        promise = replace(self._promise(), given="public model")
        own = model.promise if isinstance(model, PrivateLogistic) else None
        return self._promised(promise if own is None else promise.with_model(own))

    def _promised(self, promise: DifferentialPrivacy) -> Guarantee:
        verify_promised(self)
        if self.random_state is not None:
            return NoGuarantee("the noise was seeded")
        return promised(promise, self.ledger)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls(random_state=0)]

    def _learn(self, table: Table) -> None:
        self.grid_ = Grid.of(table, self._owner, self.missing)
        parts = shares(table.schema.features, self.split, self._owner)
        budget = [Fraction(float(self.epsilon)) * s for s in parts]
        randomiser = Randomiser.over(self.grid_, budget)
        if self.ledger is None:
            noisy = self._noisy(table, randomiser)
        else:
            request = spelling(self.get_params(deep=False), parts, self.grid_)
            cost = cost_of(self._promise())
            kept = self.ledger.once(request, cost, self.name, lambda: pack([self._noisy(table, randomiser)]))
            noisy = unpack(kept)[0]
        self.noisy_ = self.grid_.frame(noisy.astype(np.int64))

    def _noisy(self, table: Table, randomiser: Randomiser) -> NDArray[np.int32]:
        """The one draw: noisy positions of every row, in an order that tells nothing."""
        words = Words(self.random_state)
        noisy = randomiser.draw(self.grid_.codes(table.features), words)
        shuffled: NDArray[np.int32] = noisy[choose(1, len(noisy), len(noisy), words)[0]].astype(np.int32)
        return shuffled

    def _promise(self) -> DifferentialPrivacy:
        page = "docs/decisions/dp-table.md"
        return DifferentialPrivacy(float(self.epsilon), None, "replace-one", page, given="no model")

    def _caveats(self) -> tuple[str, ...]:
        return (*((SEEDED,) if self.random_state is not None else ()), *beside(self.ledger))

    def _public(self, model: Any) -> Public:
        return Public.of(self.grid_, self.schema_, model, self._owner)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if "table_" in state:
            state["table_"] = None
        return state
