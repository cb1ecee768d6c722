"""What all differentially private explanation protectors share."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.constraints import CONSTRAINTS, Constraints, asked_for
from countervail.core.errors import bad_parameter, check_count
from countervail.core.explanation import Explanations
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.release import provenance
from countervail.core.rng import RandomState, Words
from countervail.core.table import Rows, Table
from countervail.engine import Scan
from countervail.explain.answering import (
    Aim,
    Answers,
    Queries,
    constrained,
    explanations,
    join_queries,
    remarks,
)
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._elsewhere import AT_ONCE, Spread, draw_elsewhere
from countervail.protect._fitted import begin_fit, finish_fit, snapshot, verify_promised, verify_unchanged
from countervail.protect.base import ExplanationProtector
from countervail.protect.dp.budgeted import (
    beside,
    cost_of,
    counted,
    personal,
    promised,
    spell_constraints,
    spelling,
)
from countervail.protect.dp.grid import Grid, Records, RecordStream, declared_table, read_records
from countervail.protect.dp.pool_search import Judge, Pooled, search_several
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
    counts_only: ClassVar[bool] = False  # nothing but counts of records is looked at
    table_: Table | None
    target: Any
    epsilon: float
    split: Mapping[str, float] | None
    missing: Sequence[str]
    random_state: RandomState
    ledger: Ledger | None
    n_counterfactuals: int = 1

    def fit(self, table: Table | Scan, model: Any) -> Self:
        """Learn from a table with declared domains and a model that is taken as public.

        What is learnt from counts alone can be learnt from rows in an engine (:meth:`Table.scan`), which counts them.
        """
        if hasattr(self, "table_"):
            del self.table_  # a fit that fails leaves nothing to ask
        given = begin_fit(self)
        check_epsilon(self.epsilon, self._owner)
        check_ledger(self.ledger, self._owner, self.random_state)
        check_count(self._owner, "n_counterfactuals", self.n_counterfactuals)
        self._check_parameters()
        if isinstance(table, Scan) and not self.counts_only:
            must = "a Table: this is learnt row by row"
            raise bad_parameter(self._owner, "table", must, "a Scan", "Read it into memory.")
        declared = declared_table(table, self._owner, DECLARED)
        grid = Grid.of(declared, self._owner, self.missing)
        self.shares_ = shares(declared.schema.features, self.split, self._owner)
        self.public_ = Public.of(grid, declared.schema, model, self._owner)
        self._aim().wanted(np.zeros(1, dtype=np.int64))
        asked = {n: getattr(self, n) for n in CONSTRAINTS if hasattr(self, n)}
        self.constraints_ = Constraints.of(self.public_.encoder, self._owner, **asked)
        if self.ledger is not None and not self.keeps_draw:
            self.spelt_ = spelling(self.get_params(deep=False), self.shares_, grid, self.public_)
        self._learn(declared, model, read_records(table, grid))
        self.fitted_as_ = finish_fit(self, given)
        self.table_ = None if isinstance(table, Scan) else table
        return self

    def explain(self, rows: Rows, *, constraints: Any = None, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping.

        Every row costs the budget anew, unless a ledger has an answer to an equal one; the ledger covers all rows of a
        call, or none of them is answered. `constraints` are those of these people besides the ones of the protector:
        a mapping for all rows, such as `{"immutable": ["job"]}`, or a list with one (or None) for each row.
        """
        return snapshot(self)._explained(rows, constraints, progress)

    def _explained(
        self, rows: Rows, constraints: Any, progress: Progress | None, spread: Spread | None = None
    ) -> Explanations:
        """Answers; with `spread`, what a ledger has debited is drawn elsewhere."""
        if not hasattr(self, "table_"):
            check_is_fitted(self, "table_")  # scikit-learn's words
        verify_unchanged(self)
        public, given = self.public_, self.public_.queries(rows)
        aim, n = self._aim(), int(self.n_counterfactuals)
        kinds, of = asked_for(constraints, len(given[1]), self.constraints_)
        if self.ledger is not None and not self.keeps_draw:
            encoder, frame, x = given
            starts = range(0, len(frame), _BATCH)
            asked = join_queries([aim.ask(encoder, frame.iloc[i : i + _BATCH], x[i : i + _BATCH]) for i in starts])
            answers = asked.answer(lambda queries: self._from_ledger(queries, kinds, of, progress, spread), n)
        else:
            words = Words(self.random_state)
            find = constrained(lambda queries: self._judged(queries, self._answer(queries, words)), kinds, of, n)
            asked, answers = aim.answer(*given, find, batch=_BATCH, n=n, progress=progress)
        promise = self._stated().over(int((~asked.already).sum()))
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
        verify_promised(self)
        return self._stated()

    def _stated(self) -> Guarantee:
        if self.random_state is not None:
            return NoGuarantee("the noise was seeded")
        return promised(self._promise(), self.ledger, getattr(self, "public_", None))

    @abstractmethod
    def _promise(self) -> DifferentialPrivacy:
        """The promise of unseeded noise."""

    @abstractmethod
    def _learn(self, table: Table, model: Any, records: Records | RecordStream) -> None:
        """Keep what answers need."""

    @abstractmethod
    def _answer(self, asked: Queries, words: Words) -> Matrix:
        """The row that answers each query."""

    def _check_parameters(self) -> None:
        """Parameters of the subclass."""

    def _judged(self, asked: Queries, cells: Matrix) -> Answers:
        """Rows with the decisions about them, wanted or not: noise may have undone what was looked for.

        Rows of NaN are none.
        """
        n = len(cells) // len(asked)
        origin = np.repeat(np.arange(len(asked)), n)
        none = np.asarray(np.isnan(cells).any(axis=1))
        cells = np.where(none[:, None], asked.x[origin], cells)
        after = self.public_.decision.decide(asked.encoder.decode(cells))
        found = asked.wanted[origin, after] & ~none
        return self._noted(asked, Answers(cells, np.where(none, -1, after), found))

    def _noted(self, asked: Queries, answers: Answers) -> Answers:
        assert asked.constraints is not None
        given = answers.given.reshape(len(asked), -1)
        return replace(answers, notes=remarks(given, asked.constraints.notes(asked.x)))

    def _from_ledger(
        self,
        asked: Queries,
        kinds: Sequence[Constraints],
        of: Ints,
        progress: Progress | None,
        spread: Spread | None = None,
    ) -> Answers:
        """Stored answers and newly paid ones, all equal for equal rows of the grid."""
        public, ledger, n = self.public_, self.ledger, int(self.n_counterfactuals)
        assert ledger is not None
        mine = of[asked.frame.index.to_numpy()]

        def draw(at: Ints, rows: pd.DataFrame, x: Matrix, wanted: Bools) -> Matrix:
            out = np.empty((len(at), n, x.shape[1]))
            for kind in np.unique(mine[at]).tolist():
                held = np.flatnonzero(mine[at] == kind)
                nobody = np.full(len(held), -1, dtype=np.int64)  # what is decided about them now is not looked at
                part = Queries(public.encoder, rows.iloc[held], x[held], nobody, wanted[held], None, kinds[kind])
                found = self._answer(part, Words()) if spread is None else draw_elsewhere(self, part, spread)
                out[held] = found.reshape(len(held), n, -1)
            return out.reshape(len(at) * n, -1)

        cost = cost_of(self._promise())
        heads = [self.spelt_ + spell_constraints(c) for c in kinds]
        asked_as = [heads[kind] for kind in mine]
        at_once = None if spread is None else AT_ONCE
        found = counted(ledger, cost, self.name, asked_as, public, asked.frame, asked.wanted, draw, progress, at_once)
        places = pd.Series(np.arange(len(asked)), index=asked.frame.index)

        def settled(part: Queries) -> Answers:
            at = places[part.frame.index].to_numpy()
            return self._noted(part, personal(public, part, found.reshape(len(asked), n, -1)[at]))

        return constrained(settled, kinds, of, n)(asked)

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

    def _distances(self, asked: Queries) -> Ints:
        """Query x column x position: how far each value is, dear columns farther. A public function of the query."""
        distances = self.public_.grid.distances(asked.x)
        if asked.constraints is None or not asked.constraints.costs:
            return distances
        weights = asked.constraints.weights
        dear: Ints = np.rint(distances * (weights / weights.max())[None, :, None]).astype(np.int64)
        return dear

    def _searched(self, asked: Queries, distances: Ints, pool: Ints, shown: Bools) -> Matrix:
        """The counterfactuals that a pool leads to, one below the other."""
        grid, c, n = self.public_.grid, asked.constraints, int(self.n_counterfactuals)
        numbers, judge = grid.numbers(), self._judge(asked)
        if not c:
            return search_several(Pooled(asked.x, pool, shown, distances, numbers), judge, n)
        start, allowed, most = self._start(asked, distances)
        lost = most < 0
        out = np.full((len(asked), n, asked.x.shape[1]), np.nan)
        at = np.flatnonzero(~lost)
        if len(at):
            moved = (start != asked.x).any(axis=1)
            pooled = Pooled(start, pool, shown, distances, numbers, allowed, most, moved).only(at)
            found = search_several(pooled, lambda rows, owner: judge(rows, at[owner]), n)
            out[at] = found.reshape(len(at), n, -1)
        return out.reshape(len(asked) * n, -1)

    def _start(self, asked: Queries, distances: Ints) -> tuple[Matrix, Bools, Ints]:
        """Queries whose values have moved into their allowed ranges, where they may still go, and how many may move.

        A public function of the query: the nearest position that is allowed. Less than 0 columns may move where that
        takes too many changes, or where no value is allowed.
        """
        grid, c = self.public_.grid, asked.constraints
        assert c is not None
        numbers = grid.numbers()
        allowed = c.reach(asked.x, numbers) & (np.arange(numbers.shape[1]) < grid.sizes[:, None])[None]
        must = ~c.in_range(asked.x)
        nearest = np.where(allowed, distances, np.iinfo(np.int64).max).argmin(axis=2)
        start = np.where(must, numbers[np.arange(numbers.shape[0]), nearest], asked.x)
        most = (asked.x.shape[1] if c.max_changes is None else c.max_changes) - must.sum(axis=1)
        most[(must & ~allowed.any(axis=2)).any(axis=1)] = -1
        return start, allowed & ~must[:, :, None], most

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
