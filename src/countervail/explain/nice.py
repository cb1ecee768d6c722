"""NICE: nearest instance counterfactual explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints, Matrix, first_best
from countervail.core.constraints import Constraints
from countervail.core.distance import EPS, HEOM, Neighbours
from countervail.core.encode import Encoder
from countervail.core.errors import bad_parameter
from countervail.core.table import Rows, Table
from countervail.explain.answering import Answers, Queries
from countervail.explain.autoencoder import AutoEncoder
from countervail.explain.base import Explainer

Reward = Literal["none", "sparsity", "proximity", "plausibility"]
REWARDS: tuple[Reward, ...] = ("none", "sparsity", "proximity", "plausibility")
_MASKED = 1 << 25  # cells of a query x row mask worked on at once

AutoEncoderError = Callable[[pd.DataFrame], Any]


class NICE(Explainer):
    """Counterfactuals that start from the nearest unlike neighbour, a real training row.

    Parameters
    ----------
    reward : {"none", "sparsity", "proximity", "plausibility"}
        "none" returns the neighbour itself. The others move towards it one column at a time, by the best gain in
        score, gain per distance, or gain times fall in the auto-encoder's error (two negative factors count as a
        gain, as in the reference).
    justified : bool
        Only training rows that the model classifies correctly serve as neighbours.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many answers per query, from the next unlike neighbours on (distinct rows).
    scale : {"minmax", "std"}
        What differences of numeric columns are divided by.
    immutable : list of str
        Columns that stay as they are.
    ranges : mapping
        Allowed values of the counterfactual: `(low, high)` for numeric columns, a list otherwise.
    monotone : mapping
        Columns that may only go "up" or "down".
    forbidden : mapping
        Per column the `(from, to)` pairs that may not happen.
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
    >>> print(e.to_text())
    If you were 3 years older, lived in Antwerp and earned $10K more, the decision would be Accept.
    """

    name: ClassVar[str] = "nice"

    def __init__(
        self,
        reward: Reward = "none",
        *,
        justified: bool = True,
        target: Any = "other",
        n_counterfactuals: int = 1,
        scale: Literal["minmax", "std"] = "minmax",
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
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
        self.auto_encoder = auto_encoder

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        if self.reward not in REWARDS:
            raise bad_parameter("NICE", "reward", f"one of {REWARDS}", self.reward)
        if self.scale not in ("minmax", "std"):
            raise bad_parameter("NICE", "scale", "'minmax' or 'std'", self.scale)
        if not isinstance(self.n_counterfactuals, (int, np.integer)) or self.n_counterfactuals < 1:
            raise bad_parameter("NICE", "n_counterfactuals", "a whole number of at least 1", self.n_counterfactuals)
        super().fit(table, model)
        if self.reward != "none" and not self.decision_.has_scores:
            way_out = "Use reward='none', or a model with predict_proba."
            raise bad_parameter("NICE", "reward", "'none' for a model that gives labels only", self.reward, way_out)
        self._aim().wanted(self.decision_.train[:1])
        self.constraints_ = Constraints.of(table, "NICE", self.immutable, self.ranges, self.monotone, self.forbidden)
        self.heom_ = HEOM.fit(self.encoder_, self.rows_, self.scale)
        self.neighbours_ = Neighbours(self.heom_, self.rows_, self.decision_.train, self.eligible())
        if self.reward == "plausibility":
            self.auto_encoder_ = self.auto_encoder or AutoEncoder(self.encoder_, self.rows_)
        return self

    @property
    def native(self) -> bool:
        """Whether counterfactuals are training rows as they are."""
        return self.reward == "none"

    def nearest(self, rows: Rows, n: int = 1) -> Ints:
        """Row numbers of each row's `n` nearest unlike neighbours; -1: none, or already as wanted. Never released."""
        encoder, frame, queries = self._queries(rows)
        asked = self._aim().ask(encoder, frame, queries)
        return self._search(encoder, queries, asked.wanted & ~asked.already[:, None], n)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(reward=r) for r in REWARDS] + [cls(target="favourable", n_counterfactuals=2)]

    def eligible(self) -> Bools:
        """Which training rows may serve as neighbours."""
        if not self.justified:
            return np.ones(len(self.rows_), dtype=bool)
        truth = self.table_.target
        position = {label: i for i, label in enumerate(self.decision_.classes)}
        codes = np.array([position.get(v, -1) for v in truth.astype(object).tolist()])
        correct: Bools = codes == self.decision_.train
        return correct

    def _find(self, asked: Queries) -> Answers:
        """The nearest unlike neighbours of queries, or how far it takes to go towards them."""
        decision, n = self.decision_, self.n_counterfactuals
        rows = self._search(asked.encoder, asked.x, asked.wanted, n).ravel()
        found = rows >= 0
        at = np.flatnonzero(found)
        origin = np.repeat(np.arange(len(asked)), n)[at]
        cells = np.repeat(asked.x, n, axis=0)
        after = np.full(len(rows), -1, dtype=np.int64)
        scores = np.full((len(rows), len(decision.classes)), np.nan)
        cells[at], after[at] = self.rows_[rows[at]], decision.train[rows[at]]
        if decision.train_scores is not None:
            scores[at] = decision.train_scores[rows[at]]
        if self.reward != "none" and asked.scores is not None and len(at):
            walk = _Walk(self, asked.encoder, asked.x[origin], cells[at], asked.wanted[origin])
            short, cells[at], passed, walked = walk.run(asked.scores[origin], asked.now[origin])
            after[at[short]], scores[at[short]] = passed[short], walked[short]
        return Answers(cells, after, found, scores)

    def _search(self, encoder: Encoder, queries: Matrix, wanted: Bools, n: int) -> Ints:
        if not self.constraints_:
            return self.neighbours_.nearest(queries, wanted, n)[0]
        step = max(1, _MASKED // len(self.rows_))
        parts = []
        for a in range(0, len(queries), step):
            part = queries[a : a + step]
            ok = self.constraints_.admissible(encoder, part, self.rows_)
            parts.append(self.neighbours_.nearest(part, wanted[a : a + step], n, ok)[0])
        return np.concatenate(parts)


class _Walk:
    """All open queries of a batch move towards their neighbours together: one model call per step."""

    def __init__(self, nice: NICE, encoder: Encoder, start: Matrix, goal: Matrix, wanted: Bools) -> None:
        self.nice, self.encoder, self.start, self.goal, self.wanted = nice, encoder, start, goal, wanted
        self.current = start.copy()
        outside = ~nice.constraints_.in_range(encoder, start)
        self.forced = outside.any(axis=1)
        self.current[outside] = goal[outside]

    def run(self, scores: Matrix, decisions: Ints) -> tuple[Bools, Matrix, Ints, Matrix]:
        """Which queries stopped short of their neighbour, and final cells, decisions and scores."""
        nice, decision = self.nice, self.nice.decision_
        self.scores, after = scores.copy(), decisions.copy()
        if self.forced.any():  # values outside their allowed range move first
            frame = self.encoder.decode(self.current[self.forced])
            self.scores[self.forced] = decision.scores(frame)
            after[self.forced] = decision.decide(frame, self.scores[self.forced])
        plausible = nice.reward == "plausibility"
        self.errors = self._errors(self.encoder.decode(self.current)) if plausible else np.zeros(len(after))
        away = (self.current != self.goal).any(axis=1)
        open_ = np.flatnonzero(~self.wanted[np.arange(len(after)), after] & away)
        while len(open_):
            moved = self._step(open_)
            after[open_] = moved
            # Who has arrived is done, even if the model answers differently to a batch of another size.
            away = (self.current[open_] != self.goal[open_]).any(axis=1)
            open_ = open_[~self.wanted[open_, moved] & away]
        short: Bools = (self.current != self.goal).any(axis=1)
        return short, self.current, after, self.scores

    def _step(self, open_: Ints) -> Ints:
        """Move each open query by its best column; the new decisions."""
        local, column = np.nonzero(self.current[open_] != self.goal[open_])
        owner = open_[local]
        trial = self.current[owner]
        trial[np.arange(len(owner)), column] = self.goal[owner, column]
        frame = self.encoder.decode(trial)
        scores = self.nice.decision_.scores(frame)
        errors = self._errors(frame) if self.nice.reward == "plausibility" else np.zeros(len(owner))
        best = first_best(local, self._rewards(owner, trial, scores, errors))
        self.current[open_], self.scores[open_], self.errors[open_] = trial[best], scores[best], errors[best]
        if self.nice.decision_.needs_call:
            return self.nice.decision_.decide(frame.iloc[best])
        return self.nice.decision_.decide(frame, scores[best])

    def _rewards(self, owner: Ints, trial: Matrix, scores: Matrix, errors: Matrix) -> Matrix:
        gain = scores - self.scores[owner]
        if self.nice.reward == "proximity":
            heom, start = self.nice.heom_, self.start[owner]
            step = heom.between(start, trial) - heom.between(start, self.current[owner])
            gain = gain / (step + EPS)[:, None]
        elif self.nice.reward == "plausibility":
            gain = gain * (self.errors[owner] - errors)[:, None]
        gain = np.where(self.wanted[owner] & ~np.isnan(gain), gain, -np.inf)
        best: Matrix = gain.max(axis=1)
        return best

    def _errors(self, frame: pd.DataFrame) -> Matrix:
        return np.array(self.nice.auto_encoder_(frame), dtype=float).reshape(len(frame))
