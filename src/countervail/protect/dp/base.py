"""What all differentially private explanation protectors share."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.release import provenance
from countervail.core.rng import RandomState, Words
from countervail.core.table import Rows, Table
from countervail.explain.answering import Aim, Answers, Queries, explanations, join_queries
from countervail.explain.base import check_table
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._fitted import finish_fit, freeze, snapshot, verify_unchanged
from countervail.protect.base import ExplanationProtector
from countervail.protect.dp.budgeted import beside, cost_of, counted, personal, promised, spelling
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.pool_search import Judge, Pooled, search
from countervail.protect.dp.public import Public

_BATCH = 256  # queries in lock-step at once: keeps the rows of one model call, and memory, bounded
DECLARED = "Table.from_frame(df, target=..., domains={...})"  # how a table with public domains is built
SEEDED = "The noise was seeded: whoever knows or guesses the seed can take it off."
_INVALID = "No row that changes the decision was found within this budget; the last one tried is given."


class PrivateExplainer(ExplanationProtector):
    """Answers queries with noise. A subclass writes `_learn` (from coded records) and `_answer` (a batch).

    Nothing but `_learn` sees the table, and what it keeps reaches answers through noise only.
    """

    draws_noise: ClassVar[bool] = True
    keeps_draw: ClassVar[bool] = False  # answers come from one draw, made at fit: pickles need no table
    table_: Table | None
    target: Any
    epsilon: float
    split: Mapping[str, float] | None
    missing: Sequence[str]
    random_state: RandomState
    ledger: Ledger | None

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table with declared domains and a model that is taken as public."""
        if hasattr(self, "table_"):
            del self.table_  # a fit that fails leaves nothing to ask
        check_epsilon(self.epsilon, self._owner)
        check_ledger(self.ledger, self._owner, self.random_state)
        self._check_parameters()
        check_table(table, self._owner, DECLARED)
        given = freeze(self)
        grid = Grid.of(table, self._owner, self.missing)
        self.shares_ = shares(table.schema.features, self.split, self._owner)
        self.public_ = Public.of(grid, table.schema, model, self._owner)
        self._aim().wanted(np.zeros(1, dtype=np.int64))
        if self.ledger is not None and not self.keeps_draw:
            self.spelt_ = spelling(self.get_params(deep=False), self.shares_, grid, self.public_)
        self._learn(table, model, grid.codes(table.features))
        self.fitted_as_ = finish_fit(self, given)
        self.table_ = table
        return self

    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping.

        Every row costs the budget anew, unless a ledger has an answer to an equal one; the ledger covers all rows of a
        call, or none of them is answered.
        """
        return snapshot(self)._explained(rows, progress)

    def _explained(self, rows: Rows, progress: Progress | None) -> Explanations:
        check_is_fitted(self, "table_")
        verify_unchanged(self)
        public, given = self.public_, self.public_.queries(rows)
        aim = self._aim()
        if self.ledger is not None and not self.keeps_draw:
            encoder, frame, x = given
            starts = range(0, len(frame), _BATCH)
            asked = join_queries([aim.ask(encoder, frame.iloc[i : i + _BATCH], x[i : i + _BATCH]) for i in starts])
            answers = asked.answer(lambda queries: self._from_ledger(queries, progress))
        else:
            words = Words(self.random_state)
            asked, answers = aim.answer(
                *given,
                lambda queries: self._judged(queries, self._answer(queries, words)),
                batch=_BATCH,
                progress=progress,
            )
        promise = self.guarantee().over(int((~asked.already).sum()))
        return explanations(
            asked,
            answers,
            public.decision,
            public.probe.schema,
            promise,
            made_by(self),
            caveats=self._caveats(),
            undone=_INVALID,
            audit=self.table_,
        )

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        if self.random_state is not None:
            return NoGuarantee("the noise was seeded")
        return promised(self._promise(), self.ledger)

    @abstractmethod
    def _promise(self) -> DifferentialPrivacy:
        """The promise of unseeded noise."""

    @abstractmethod
    def _learn(self, table: Table, model: Any, codes: Ints) -> None:
        """Keep what answers need."""

    @abstractmethod
    def _answer(self, asked: Queries, words: Words) -> Matrix:
        """The row that answers each query."""

    def _check_parameters(self) -> None:
        """Parameters of the subclass."""

    def _judged(self, asked: Queries, cells: Matrix) -> Answers:
        """Rows with the decisions about them, wanted or not: noise may have undone what was looked for."""
        after = self.public_.decision.decide(asked.encoder.decode(cells))
        return Answers(cells, after, asked.wanted[np.arange(len(after)), after])

    def _from_ledger(self, asked: Queries, progress: Progress | None) -> Answers:
        """Stored answers and newly paid ones, all equal for equal rows of the grid."""
        public, ledger = self.public_, self.ledger
        assert ledger is not None

        def draw(rows: pd.DataFrame, x: Matrix, wanted: Bools) -> Matrix:
            nobody = np.full(len(x), -1, dtype=np.int64)  # what is decided about them now is not looked at
            return self._answer(Queries(public.encoder, rows, x, nobody, wanted), Words())

        cost = cost_of(self._promise())
        found = counted(ledger, cost, self.name, self.spelt_, public, asked.frame, asked.wanted, draw, progress)
        cells, after = personal(public, asked.encoder, asked.frame, asked.x, found, asked.wanted)
        return Answers(cells, after, asked.wanted[np.arange(len(after)), after])

    def _aim(self) -> Aim:
        return Aim(self.public_.decision, self.target, self.public_.probe.schema, self._owner)

    def _judge(self, asked: Queries) -> Judge:
        """The model on rows of a batch: wanted or not, and the score of the wanted decision."""
        decision = self.public_.decision

        def judge(rows: Matrix, owner: Ints) -> tuple[Bools, Floats]:
            frame = asked.encoder.decode(rows)
            scores = decision.scores(frame) if decision.has_scores else None
            valid: Bools = asked.wanted[owner, decision.decide(frame, scores)]
            if scores is None:
                return valid, valid.astype(float)
            return valid, np.where(asked.wanted[owner], scores, -np.inf).max(axis=1)

        return judge

    def _searched(self, asked: Queries, distances: Ints, pool: Ints, shown: Bools) -> Matrix:
        """The counterfactual that a pool leads to."""
        pooled = Pooled(asked.x, pool, shown, distances, self.public_.grid.numbers())
        return search(pooled, self._judge(asked))[0]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.keeps_draw and "table_" in state:
            state["table_"] = None
        return state

    def _caveats(self) -> tuple[str, ...]:
        return (*((SEEDED,) if self.random_state is not None else ()), *beside(self.ledger))


def check_epsilon(epsilon: Any, owner: str) -> None:
    """A budget is a finite number above zero."""
    number = isinstance(epsilon, (int, float, np.integer, np.floating)) and not isinstance(epsilon, bool)
    if not number or not 0 < epsilon <= sys.float_info.max:
        raise bad_parameter(owner, "epsilon", "a finite number above 0", epsilon)


def shares(names: Sequence[str], split: Mapping[str, float] | None, owner: str) -> tuple[Fraction, ...]:
    """Each column's share of the budget as an exact fraction; they sum to one."""
    if split is None:
        return (Fraction(1, len(names)),) * len(names)
    if not isinstance(split, Mapping) or set(split) != set(names):
        must = f"a mapping of exactly the feature columns {list(names)} to their weights"
        raise bad_parameter(owner, "split", must, list(split) if isinstance(split, Mapping) else split)
    if not all(isinstance(v, (int, float)) and 0 < v <= sys.float_info.max for v in split.values()):
        raise bad_parameter(owner, "split", "finite weights above 0", dict(split))
    total = sum(Fraction(split[n]) for n in names)
    return tuple(Fraction(split[n]) / total for n in names)


def made_by(protector: Any) -> dict[str, Any]:
    """How an answer was made, without the seed and the schema's digest: types and labels may come from rows."""
    return provenance("protector", protector)
