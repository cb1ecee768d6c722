"""NICE: nearest instance counterfactual explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints, Matrix, unlike
from countervail.core.constraints import Constraints
from countervail.core.distance import HEOM, SCALES, Neighbours, Scale, stretched_columns
from countervail.core.errors import bad_parameter, check_count
from countervail.core.table import Rows, Table
from countervail.explain.answering import Answers, Queries, remarks
from countervail.explain.autoencoder import AutoEncoder
from countervail.explain.base import Explainer
from countervail.explain.crowd import RowCrowd
from countervail.explain.several import SeveralAnswers, Ways
from countervail.explain.typical import choose_typical, within
from countervail.explain.walk import Walk

Reward = Literal["none", "sparsity", "proximity", "plausibility", "typical"]
REWARDS: tuple[Reward, ...] = ("none", "sparsity", "proximity", "plausibility", "typical")
_MASKED = 1 << 25  # cells of a query x row mask worked on at once
_TRIED = 10  # neighbours that are walked to where one answer is not enough
_STRETCHED = (
    "A few extreme values make up the range of {}: distances hardly see what differs between all others there. "
    "Use scale='iqr' or scale='quantile'."
)

AutoEncoderError = Callable[[pd.DataFrame], Any]


class NICE(Explainer):
    """Counterfactuals that start from the nearest unlike neighbour, a real training row.

    Parameters
    ----------
    reward : {"none", "sparsity", "proximity", "plausibility", "typical"}
        "none" returns the neighbour itself. The next three move towards it one column at a time, by the best gain in
        score, gain per distance, or gain times fall in the auto-encoder's error (two negative factors count as a
        gain, as in the reference). "typical" (ours) goes to ten neighbours in each of the first three ways and takes
        the answer that lies nearest to the rows of the table and, half as much, to the query.
    justified : bool
        Only training rows that the model classifies correctly serve as neighbours.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers per query. With "none", the next unlike neighbours; otherwise answers by other
        columns where there are any, then by other values.
    scale : {"minmax", "std", "iqr", "range", "quantile"}
        What differences of numeric columns are divided by: range, standard deviation, interquartile range, or declared
        domain; "quantile" measures by rank.
    immutable : list of str
        Columns that stay as they are. What the schema declares (`actionable`, `range`) holds as well; for a column
        that is named here or in the following four, what is said here counts. Where no neighbour is allowed as it is,
        the rewards take over what is allowed of the ten nearest ones.
    ranges : mapping
        Allowed values of the counterfactual: `(low, high)` for numeric columns, a list otherwise, None for all.
    monotone : mapping
        Columns that may only go "up" or "down" ("any" lifts what the schema says).
    forbidden : mapping
        Per column the `(from, to)` pairs that may not happen.
    max_changes : int, optional
        How many columns may change at most.
    costs : mapping
        How hard it is to change each column, 1 unless told: a factor of its distance, and a divisor of the gains that
        the rewards look at.
    auto_encoder : callable, optional
        Reconstruction errors of a frame's rows, for "plausibility"; by default a small one is trained.

    Notes
    -----
    *Threat model*: none. With "none" the answer is another person's record, with the other rewards it is a mixture
    of two; whoever knows that person's quasi-identifiers learns the rest. The guarantee says so.

    References
    ----------
    Brughmans, Leyman, Martens: NICE: an algorithm for nearest instance counterfactual explanations (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.NICE().fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> print(e.to_text())  # doctest: +NORMALIZE_WHITESPACE
    If you were 3 years older (from 21 to 24), lived in Antwerp (instead of Brussels) and earned $10K more (from $50K to
    $60K), the decision would be Accept.
    """

    name: ClassVar[str] = "nice"
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        reward: Reward = "none",
        *,
        justified: bool = True,
        target: Any = "other",
        n_counterfactuals: int = 1,
        scale: Scale = "minmax",
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
        auto_encoder: AutoEncoderError | None = None,
    ) -> None:
        self.reward = reward
        self.justified = justified
        self.target = target
        self.n_counterfactuals = n_counterfactuals
        self.scale = scale
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs
        self.auto_encoder = auto_encoder

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        if self.reward not in REWARDS:
            raise bad_parameter("NICE", "reward", f"one of {REWARDS}", self.reward)
        if self.scale not in SCALES:
            raise bad_parameter("NICE", "scale", f"one of {SCALES}", self.scale)
        check_count("NICE", "n_counterfactuals", self.n_counterfactuals)
        super().fit(table, model)
        if self.reward not in ("none", "typical") and not self.decision_.has_scores:
            must = "'none' or 'typical' for a model that gives labels only"
            way_out = "Use reward='none', or a model with predict_proba."
            raise bad_parameter("NICE", "reward", must, self.reward, way_out)
        self._aim().wanted(self.decision_.train[:1])
        self.heom_ = HEOM.fit(self.encoder_, self.rows_, self.scale)
        self.stretched_ = stretched_columns(self.encoder_, self.rows_) if self.scale == "minmax" else []
        self.neighbours_ = Neighbours(self.heom_, self.rows_, self.decision_.train, self.eligible())
        if self.reward == "plausibility":
            self.auto_encoder_ = self.auto_encoder or AutoEncoder(self.encoder_, self.rows_)
        if self.reward == "typical":
            self.crowd_ = RowCrowd(self.heom_, self.rows_)
        return self

    @property
    def native(self) -> bool:
        """Whether counterfactuals are training rows as they are."""
        return self.reward == "none"

    def nearest(self, rows: Rows, n: int = 1) -> Ints:
        """Row numbers of each row's `n` nearest unlike neighbours; -1: none, or already as wanted. Never released."""
        encoder, frame, queries = self._queries(rows)
        return self.nearest_to(self._aim().ask(encoder, frame, queries), n)

    def nearest_to(self, asked: Queries, n: int = 1) -> Ints:
        """The same for queries that the model was asked about already, under this explainer's own constraints."""
        wanted, constraints = asked.wanted & ~asked.already[:, None], self.constraints_.coded(asked.encoder)
        return self._search(asked.x, wanted, n, constraints)

    def apart(self, queries: Matrix, rows: Matrix) -> Matrix:
        """Query x row: the distance that neighbours are chosen by."""
        return np.stack([self.heom_.between(np.repeat(q[None], len(rows), axis=0), rows) for q in queries])

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        bound = cls("sparsity", n_counterfactuals=3, monotone={"age": "up"}, max_changes=3, costs={"income": 2.0})
        return [*(cls(reward=r) for r in REWARDS), cls(target="favourable", n_counterfactuals=2), bound]

    def eligible(self) -> Bools:
        """Which training rows may serve as neighbours."""
        if not self.justified:
            return np.ones(len(self.rows_), dtype=bool)
        truth = self.table_.target
        position = {label: i for i, label in enumerate(self.decision_.classes)}
        codes = np.array([position.get(v, -1) for v in truth.astype(object).tolist()])
        correct: Bools = codes == self.decision_.train
        return correct

    def _caveats(self) -> tuple[str, ...]:
        return (_STRETCHED.format(", ".join(self.stretched_)),) if self.stretched_ else ()

    def _find(self, asked: Queries) -> Answers:
        """The nearest unlike neighbours of queries, or how far it takes to go towards them."""
        assert asked.constraints is not None
        n, c = self.n_counterfactuals, asked.constraints
        one = n == 1 and c.max_changes is None
        if self.reward == "none":
            answers = self._neighbours(asked, n, c)
        elif self.reward == "typical":
            answers = self._typical(asked, n, c)
        elif one:
            answers = self._walked(asked, self._neighbours(asked, 1, c))
        else:
            goals = self._neighbours(asked, max(n, _TRIED), replace(c, max_changes=None))
            answers = SeveralAnswers(asked, goals, n, self._ways(c)).run()
        if c.bound and self.reward != "none" and asked.scores is not None:
            self._go_part_way(asked, answers, c)
        return replace(answers, notes=remarks(answers.found.reshape(len(asked), n), c.notes(asked.x)))

    def _go_part_way(self, asked: Queries, answers: Answers, c: Constraints) -> None:
        """Where no neighbour is allowed as it is: of the nearest ones, what is; if the model says that it is enough."""
        n, tried = self.n_counterfactuals, _TRIED
        at = np.flatnonzero(~answers.found.reshape(len(asked), n).any(axis=1) & ~c.stuck(asked.x).any(axis=1))
        if not len(at):
            return
        some, weights = asked.only(at), c.weights.copy()
        weights[list(c.immutable)] = 0.0  # what stays does not make a neighbour far
        rows = self.neighbours_.nearest(some.x, some.wanted, tried, weights=weights)[0].ravel()
        x = np.repeat(some.x, tried, axis=0)
        cells = np.where(c.holds(x, goal := self.rows_[rows]), goal, x)
        found = (rows >= 0) & c.in_range(cells).all(axis=1) & unlike(cells, x).any(axis=1)
        scores = np.full((len(cells), len(self.decision_.classes)), np.nan)
        goals = Answers(cells, np.full(len(cells), -1, dtype=np.int64), found, scores)
        reward = "sparsity" if self.reward == "typical" else self.reward
        ways = replace(
            self._ways(c),
            walks=lambda asked, goals, free: self._walked(asked, goals, free, reward, whole=False),
            near=lambda asked: Answers.nothing(np.repeat(asked.x, n, axis=0)),
            goals_too=False,
        )
        part = SeveralAnswers(some, goals, n, ways).run()
        place = (at[:, None] * n + np.arange(n)).ravel()
        answers.cells[place], answers.after[place], answers.found[place] = part.cells, part.after, part.found
        if answers.scores is not None and part.scores is not None:
            answers.scores[place] = part.scores

    def _ways(self, c: Constraints) -> Ways:
        weights = c.weights if c.costs else None
        return Ways(
            self._walked,
            lambda asked: self._neighbours(asked, self.n_counterfactuals, c),
            lambda a, b: self.heom_.between(a, b, weights),
            c.max_changes is None,
        )

    def _neighbours(self, asked: Queries, n: int, c: Constraints) -> Answers:
        """The neighbours themselves."""
        decision = self.decision_
        rows = self._search(asked.x, asked.wanted, n, c).ravel()
        found = rows >= 0
        at = np.flatnonzero(found)
        cells = np.repeat(asked.x, n, axis=0)
        after = np.full(len(rows), -1, dtype=np.int64)
        scores = np.full((len(rows), len(decision.classes)), np.nan)
        cells[at], after[at] = self.rows_[rows[at]], decision.train[rows[at]]
        if decision.train_scores is not None:
            scores[at] = decision.train_scores[rows[at]]
        return Answers(cells, after, found, scores)

    def _typical(self, asked: Queries, n: int, c: Constraints) -> Answers:
        """Of the neighbours themselves and of the walks to them, those that lie best among the rows of the table."""
        goals = self._neighbours(asked, max(n, _TRIED), replace(c, max_changes=None))
        parts = [within(asked, goals, c.max_changes)]
        if self.decision_.has_scores:
            parts += self._walks(asked, goals, None, ("sparsity", "proximity"))
        weights = c.weights if c.costs else None
        return choose_typical(asked, parts, n, self.crowd_, lambda a, b: self.heom_.between(a, b, weights))

    def _walked(
        self,
        asked: Queries,
        goals: Answers,
        movable: Bools | None = None,
        reward: str | None = None,
        *,
        whole: bool = True,
    ) -> Answers:
        """As near to each query as one gets on the way to its neighbours; `found` where that is an answer.

        Neighbours that are not `whole` are no rows of the table: to arrive there is an answer if the model says so.
        """
        return self._walks(asked, goals, movable, () if reward is None else (reward,), whole=whole)[0]

    def _walks(
        self, asked: Queries, goals: Answers, movable: Bools | None, rewards: Sequence[str], *, whole: bool = True
    ) -> list[Answers]:
        """The same by each of some rewards, in as many model calls as the longest way takes."""
        n, at, some = len(goals.cells) // len(asked), np.flatnonzero(goals.found), len(rewards) or 1
        blank = np.full((len(goals.cells), len(self.decision_.classes)), np.nan)
        scores = blank if goals.scores is None else goals.scores
        parts = [(goals.cells.copy(), goals.after.copy(), goals.found.copy(), scores.copy()) for _ in range(some)]
        if len(at) and asked.scores is not None and asked.constraints is not None:
            origin = np.repeat(np.arange(len(asked)), n)[at]
            free, wanted = None if movable is None else movable[origin], asked.wanted[origin]
            ways = (asked.constraints, asked.encoder, asked.x[origin], goals.cells[at], wanted, free, rewards)
            ends = Walk(self, *ways).run(asked.scores[origin], asked.now[origin])
            for (cells, after, found, scored), end in zip(parts, ends.parted(some)):
                done = end.done if whole else end.done & wanted[np.arange(len(at)), end.after]
                cells[at], found[at], short = end.cells, done, ~end.arrived | (not whole)
                after[at[short]], scored[at[short]] = end.after[short], end.scores[short]
                after[~found] = -1
        return [Answers(*part) for part in parts]

    def _search(self, queries: Matrix, wanted: Bools, n: int, c: Constraints) -> Ints:
        """Row numbers of the nearest neighbours."""
        weights = c.weights if c.costs else None
        if not c:
            return self.neighbours_.nearest(queries, wanted, n, weights=weights)[0]
        step = max(1, _MASKED // len(self.rows_))
        parts = []
        for a in range(0, len(queries), step):
            part = queries[a : a + step]
            ok = c.admissible(part, self.rows_)
            parts.append(self.neighbours_.nearest(part, wanted[a : a + step], n, ok, weights)[0])
        return np.concatenate(parts)
