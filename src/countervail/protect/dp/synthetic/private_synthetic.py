"""PrivateSynthetic: the budget is spent once on a synthetic table with joint structure; every answer comes from it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.constraints import CONSTRAINTS, Constraints
from countervail.core.errors import PrivacyWarning, SchemaError, bad_parameter, check_count
from countervail.core.explanation import Explanations
from countervail.core.files.json_data import need
from countervail.core.guarantee import Adjacency, DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table
from countervail.engine import Scan
from countervail.explain.nice import NICE, Reward
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._fitted import (
    begin_fit,
    finish_fit,
    live_table,
    snapshot,
    verify_promised,
    verify_unchanged,
)
from countervail.protect.base import ExplanationProtector
from countervail.protect.dp.base import DECLARED, SEEDED, check_epsilon, made_by
from countervail.protect.dp.budgeted import beside, cost_of, promised, spelling
from countervail.protect.dp.grid import Axis, Grid, Records, RecordStream, declared_table, read_records
from countervail.protect.dp.public import Public, public_schema
from countervail.protect.dp.synthetic.accounting import L1, Neighbouring, NoiseBudget, check_budget, rho_of
from countervail.protect.dp.synthetic.draw import TOTAL, BudgetShares, Draw, draw_counts, draw_read
from countervail.protect.dp.synthetic.rows import public_rows, synthetic_rows
from countervail.protect.saved import Savable

PAGE = "docs/decisions/dp-synthetic.md"
_REWARDS: tuple[Reward, ...] = ("sparsity", "proximity", "plausibility", "typical")
_ASKED = (*CONSTRAINTS, "n_counterfactuals")
_MADE_UP = "The rows are made up from noisy counts: none of them is anybody's."
_LEVELS = {
    "pairs": (),
    "columns": (
        "There are too few people for this budget to count columns together: each column is made up by itself, and "
        "what goes with what is the model's word alone.",
    ),
    "nothing": (
        "There are too few people for this budget to count anything: the rows are drawn from the public domains "
        "alone, and tell nothing about the people.",
    ),
}
_LARGE_DELTA = (
    "delta is not small beside the number of people: it allows for giving one of them away whole. Take a delta far "
    "below one in the number of people."
)
_MOST_POSITIONS = 1 << 20  # of one column: what is counted must fit memory, whatever the table holds


class PrivateSynthetic(Savable, ExplanationProtector):
    """A synthetic table from one private draw of counts, and counterfactuals from it without limit.

    Parameters
    ----------
    epsilon, delta : float
        What the draw costs, all together: answers and the synthetic table cost nothing more; another `fit` costs again,
        unless a ledger keeps the draw. `delta=0` promises epsilon alone, for more noise.
    adjacency : {"add-remove", "replace-one"}
        What the promise is about: one record is there or not; or is another, which covers both and takes more noise.
    rows : int, optional
        How many synthetic rows to make; by default about as many as there are people (by the noisy count), from 1,000
        up to 50,000.
    reward : {"sparsity", "proximity", "plausibility", "typical"}
        How answers are searched in the synthetic table, as in :class:`NICE`. With a model that gives labels only,
        "typical" chooses among whole synthetic rows, and the others give the nearest one.
    missing : list of str
        Columns in which "missing" is a public level of its own (for numbers, the model must take them); elsewhere a
        missing value counts as the middle of the domain, or the first label, and nobody is told.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals, immutable, ranges, monotone, forbidden, max_changes, costs
        As for :class:`NICE`. They cost nothing.
    random_state : int, optional
        For tests only: seeded noise promises nothing, and says so.
    ledger : Ledger, optional
        Counts the draw against a budget for these people and keeps it. One that counts in rho ("zcdp") is charged the
        draw's rho, which is less than its epsilon and delta say.

    Notes
    -----
    *Threat model*: someone who knows every other record, the domains, the model and this code, asks without limit and
    holds the synthetic table. The model is taken as public: what it has memorised about the people it was trained on
    is not covered, and shows in answers. Below about `18 * sqrt((columns - 1) / (1.1 * rho))` people (350 with 11
    columns at epsilon 1) pairs of columns are not counted, far below that nothing is; the noisy number of people
    decides, and answers say so. A file holds the noisy counts, no rows; a pickle the model as well.

    References
    ----------
    Proof: docs/decisions/dp-synthetic.md. Noise: OpenDP's discrete Gaussian, discrete Laplace and noisy max. After
    McKenna, Miklau, Sheldon: Winning the NIST contest: a scalable and general approach to differentially private
    synthetic data (2021).

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> private = cv.PrivateSynthetic(epsilon=1.0).fit(small_table(), small_model)
    >>> e = private.explain(small_table(3))
    >>> e.guarantee.answers is None, e.guarantee.total, e.guarantee.delta
    (True, 1.0, 1e-06)
    """

    name: ClassVar[str] = "private-synthetic"
    draws_noise: ClassVar[bool] = True
    keeps_draw: ClassVar[bool] = True
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"delta": 0.0})

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        adjacency: Neighbouring = "add-remove",
        rows: int | None = None,
        reward: Reward = "sparsity",
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
        self.delta = delta
        self.adjacency = adjacency
        self.rows = rows
        self.reward = reward
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

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(epsilon=20.0, rows=300),
            cls(epsilon=20.0, rows=200, reward="typical"),
            cls(epsilon=20.0, delta=0.0, adjacency="replace-one", rows=200, reward="proximity"),
            cls(epsilon=20.0, rows=200, random_state=0),
        ]

    def fit(self, table: Table | Scan, model: Any) -> Self:
        """Draw the noisy counts of a table with declared domains, under a model that is taken as public.

        Rows in an engine (:meth:`Table.scan`) are counted there; the counts are those of a table with the same rows.
        """
        given = begin_fit(self)
        self._check_parameters()
        declared = declared_table(table, self._owner, DECLARED)
        _check_sizes(declared.schema, self._owner)
        grid = Grid.of(declared, self._owner, self.missing, numbers=True)
        self._prepare(grid, public_schema(declared.schema), model)
        self._make(self._drawn(read_records(table, grid)), model)
        if isinstance(table, Scan):
            self._forget()
        else:
            self._remember(table)
        self.fitted_as_ = finish_fit(self, given)
        return self

    def explain(self, rows: Rows, *, constraints: Any = None, progress: Progress | None = None) -> Explanations:
        """Explain rows from the synthetic table alone, as often as you like.

        `constraints` are those of these people besides: a mapping for all rows, or a list with one for each row.
        """
        return snapshot(self)._explained(rows, constraints, progress)

    def _explained(self, rows: Rows, constraints: Any, progress: Progress | None) -> Explanations:
        verify_unchanged(self)
        answers = self.search_.explain(self.public_.queries(rows)[1], constraints=constraints, progress=progress)
        return answers.with_parts(
            guarantee=self._stated(),
            provenance=made_by(self),
            caveats=self._caveats(),
            audit=live_table(self),
        )

    def protect(self, rows: Rows | None = None) -> Release:
        """The synthetic table, without any decision; always the same draw."""
        return snapshot(self)._released(rows)

    def _released(self, rows: Rows | None) -> Release:
        verify_unchanged(self)
        table = live_table(self)
        if rows is not None and table is not None and rows is not table:
            hint = "Fit to the rows that are to be protected: each draw of noise costs the budget."
            raise bad_parameter(self._owner, "rows", "the fitted table itself", "other rows", hint)
        made = self.public_.grid.frame(self.codes_)
        schema = Schema(tuple(c for c in self.schema_ if c.name in made.columns))
        return Release(
            Regions((), len(made)),
            np.arange(len(made)),
            made,
            schema,
            self._stated(),
            made_by(self),
            (_MADE_UP, *self._caveats()),
            audit=table,
        )

    def labelled(self) -> Table:
        """The synthetic rows with the model's decisions about them as target: a table for any explainer."""
        now = snapshot(self)
        verify_unchanged(now)
        return now._labelled(now.codes_, now.public_.classes_of_made_up(now.codes_))

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        verify_promised(self)
        return self._stated()

    def _stated(self) -> Guarantee:
        if self.random_state is not None:
            return NoGuarantee("the noise was seeded")
        return promised(self._promise(), self.ledger, getattr(self, "public_", None))

    def save(self, path: str | Path) -> None:
        """Write the noisy counts and the declaration to a JSON file; `cv.load_protector` makes the same answers of it.

        It holds nothing of the table but the draw, which is as private as what it answers. No ledger comes along.
        """
        super().save(path)

    def _promise(self) -> DifferentialPrivacy:
        epsilon, delta = float(self.epsilon), float(self.delta)
        rho = rho_of(epsilon, delta) if delta else None
        covers: Adjacency = "both" if self.adjacency == "replace-one" else "add-remove"
        return DifferentialPrivacy(epsilon, None, covers, PAGE, delta=delta, rho=rho)

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon, self._owner)
        number = isinstance(self.delta, (int, float, np.integer, np.floating)) and not isinstance(self.delta, bool)
        if not number or not 0 <= self.delta < 1:
            raise bad_parameter(self._owner, "delta", "at least 0 and below 1", self.delta, "Try delta=1e-6.")
        check_budget(self.epsilon, self.delta, self._owner)
        if self.adjacency not in L1:
            raise bad_parameter(self._owner, "adjacency", f"one of {list(L1)}", self.adjacency)
        if self.reward not in _REWARDS:
            raise bad_parameter(self._owner, "reward", f"one of {_REWARDS}", self.reward)
        if self.rows is not None:
            check_count(self._owner, "rows", self.rows)
        check_count(self._owner, "n_counterfactuals", self.n_counterfactuals)
        check_ledger(self.ledger, self._owner, self.random_state)

    def _prepare(self, grid: Grid, schema: Schema, model: Any) -> None:
        """All that is public."""
        self.schema_ = schema
        self.public_ = Public.of(grid, schema, model, self._owner)
        asked = {n: getattr(self, n) for n in CONSTRAINTS}
        self.constraints_ = Constraints.of(self.public_.encoder, self._owner, **asked)

    def _drawn(self, records: Records | RecordStream) -> Draw:
        """The draw; from the ledger, where it keeps one of these people with the same settings."""
        public, about = self.public_, (len(self.public_.decision.classes), self.public_.grid)
        budget = self._budget(self.random_state)

        def draw() -> Draw:
            if isinstance(records, RecordStream):
                return draw_read(records.parts, public.classes_of, *about, budget)
            return draw_counts(records.codes, public.classes_of(records.codes), *about, budget, records.times)

        if self.ledger is None:
            return draw()
        # What is made of the counts later does not matter to them: other answers from them cost nothing.
        named = {n: getattr(self, n) for n in ("epsilon", "delta", "adjacency")}
        request = spelling(named, (), public.grid, public)
        cost = cost_of(self._promise())
        return Draw.from_bytes(self.ledger.once(request, cost, self.name, lambda: draw().to_bytes()))

    def _make(self, draw: Draw, model: Any) -> None:
        """Synthetic rows and a search among them: from here on only the draw is looked at."""
        public, budget = self.public_, self._budget()
        spread = BudgetShares.of(draw.total, len(public.grid.axes), len(public.decision.classes), budget)
        draw.check(public.grid, spread)
        self.draw_, self.level_ = draw, spread.level
        self.codes_ = synthetic_rows(draw, public.grid, spread, budget, self.rows)
        if self._careless:
            warnings.warn(f"PrivateSynthetic: {_LARGE_DELTA}", PrivacyWarning, stacklevel=3)
        codes, classes = self.codes_, public.classes_of_made_up(self.codes_)
        if len(np.unique(classes)) == 1:  # an answer may lie where nobody does
            more = public_rows(public.grid)
            codes, classes = np.concatenate([codes, more]), np.concatenate([classes, public.classes_of_made_up(more)])
        reward = self.reward if self.reward == "typical" or public.decision.has_scores else "none"
        settings = {n: getattr(self, n) for n in _ASKED}
        search = NICE(reward, justified=False, target=self.target, scale="range", **settings)
        # Every label must be there for the search to know it; the target of its rows is not looked at otherwise.
        absent = np.setdiff1d(np.arange(len(public.decision.classes)), classes)
        self.search_ = search.fit(self._labelled(codes, np.concatenate([absent, classes[len(absent) :]])), model)
        self.search_.constraints_ = replace(self.search_.constraints_, owner=self._owner)

    def _labelled(self, codes: Ints, classes: Ints) -> Table:
        public, target = self.public_, str(self.schema_.target)
        labels = public.decision.labels(classes).tolist()
        schema = public.probe.schema
        return Table(public.grid.frame(codes).assign(**{target: labels})[schema.names()], schema)

    def _budget(self, random_state: RandomState = None) -> NoiseBudget:
        return NoiseBudget(float(self.epsilon), float(self.delta), self.adjacency, random_state)

    @property
    def _careless(self) -> bool:
        budget = self._budget()
        people = self.draw_.total - 3 * budget.deviation(budget.total * TOTAL)  # hardly fewer
        return bool(self.delta * people >= 1)

    def _caveats(self) -> tuple[str, ...]:
        """What must be known of every answer; a function of the draw and the settings."""
        said = (*_LEVELS[self.level_], *((_LARGE_DELTA,) if self._careless else ()))
        return (*said, *((SEEDED,) if self.random_state is not None else ()), *beside(self.ledger))

    def _saved(self) -> dict[str, Any]:
        stored = {a.column.name: _kind(a.dtype) for a in self.public_.grid.axes}
        about = {"schema": self.schema_.to_dict(), "stored": stored, "decisions": self._sampled_decisions()}
        about |= {"model": self.public_.model_digest} if self.public_.model_digest else {}
        return {**about, "draw": self.draw_.to_dict()}

    def _sampled_decisions(self) -> list[int]:
        """What the model says of some made-up rows: to tell it from another one."""
        decided: list[int] = self.public_.decide(self.public_.grid.codes(self.public_.probe.features)).tolist()
        return decided

    def _restore(self, data: dict[str, Any], model: Any) -> None:
        if model is None:
            raise bad_parameter("load_protector", "model", "the model that it was fitted with", None)
        self._check_parameters()
        schema, stored = Schema.from_dict(data["schema"]), data["stored"]
        need(set(stored) == set(schema.features) and set(stored.values()) <= {"plain", "labels", "levels"})
        axes = (Axis.of(schema[n], _dtype(stored[n]), n in self.missing) for n in schema.features)
        self._prepare(Grid(tuple(axes)), schema, model)
        other = data.get("model", "") != self.public_.model_digest
        if other or self._sampled_decisions() != data["decisions"]:
            raise SchemaError(
                "The model that was given decides otherwise than the one that this protector was fitted with. Give "
                "that one, or fit again."
            )
        self._make(Draw.from_dict(data["draw"]), model)


def _check_sizes(schema: Schema, owner: str) -> None:
    """Declared grids must fit memory; whether they do is no secret."""
    public = {n: schema[n].public for n in schema.features if schema[n].numeric}
    large = [n for n, d in public.items() if d is not None and len(d) == 3 and d[2] > _MOST_POSITIONS]
    if large:
        raise SchemaError(
            f"{owner} counts every position of a column, and these declare more than {_MOST_POSITIONS:,}: {large}. "
            f"Declare a coarser grid, such as (low, high, 101)."
        )


def _kind(dtype: Any) -> str:
    if not isinstance(dtype, pd.CategoricalDtype):
        return "plain"
    return "levels" if dtype.ordered else "labels"


def _dtype(kind: str) -> Any:
    return np.dtype(object) if kind == "plain" else pd.CategoricalDtype(ordered=kind == "levels")
