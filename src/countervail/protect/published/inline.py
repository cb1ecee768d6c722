"""InlineDP: the published noise inside NICE."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, distinct_rows, first_best
from countervail.core.distance import Neighbours
from countervail.core.errors import bad_parameter, check_count
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.protect.published.base import PublishedExplainer
from countervail.protect.published.columns import RESPONSES

SPLITS = ("columns", "columns and neighbours")
REWARDS = ("nearest", "gain")
SENSITIVITIES = ("range", "one")
BASES = ("random", "exponential")
_CHOICE = 0.5  # of the budget, for a basis that is chosen: the paper says "a fraction"
_VALID = 1.0  # no score is larger: whatever changes the decision comes first


class InlineDP(PublishedExplainer):
    """Inline_DP as published: noisy values of the k nearest records, tried one column at a time.

    One of the neighbours is drawn; the columns in which it differs from the query are the ones that may change. Their
    values in all neighbours get noise. The most rewarding value is taken, its column is closed, and so on until the
    decision changes.

    Parameters
    ----------
    epsilon : float
        The budget that the authors claim for an answer.
    neighbours : int
        How many of the nearest records of the other class fill the pool.
    split : {"columns", "columns and neighbours"}
        What the budget is divided by: the number of open columns (Algorithm 1), or that times the number of
        neighbours (the text).
    reward : {"nearest", "gain"}
        What makes a value rewarding. "gain": it raises the wanted score most. "nearest": the same while no value
        changes the decision; of those that do, the one that leads least far away. The paper does not say; only
        "nearest" gives its figures.
    response : {"kept", "any"}
        What randomised response makes of a label that it does not keep: another one, as in the authors' experiments,
        or any value of the column, its own among them (Algorithm 2 to the letter).
    sensitivity : {"range", "one"}
        What the noise on numbers is scaled by: the range of the column, as in the experiments, or 1 for every column,
        as the text says: then numbers of large columns hardly move.
    basis : {"random", "exponential"}
        How the neighbour is chosen whose columns open: by lot, or by the exponential mechanism with half of the budget,
        its score the largest distance less its own, which the text offers as another possibility.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. Which columns may change comes from a record without noise, and shows; so does the scale of
    the noise. :class:`countervail.PrivateNeighbours` is the mechanism that keeps the promise.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 4.2, Algorithm 1.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.InlineDP(epsilon=1.0, neighbours=5).fit(small_table(), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-inline"
    why: ClassVar[str] = "which columns change, and how strong the noise is, comes from a neighbour's record untouched"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        neighbours: int = 20,
        split: str = "columns",
        reward: str = "nearest",
        response: str = "kept",
        sensitivity: str = "range",
        basis: str = "random",
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.neighbours = neighbours
        self.split = split
        self.reward = reward
        self.response = response
        self.sensitivity = sensitivity
        self.basis = basis
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(30.0, neighbours=3),
            cls(60.0, neighbours=2, split=SPLITS[1], reward=REWARDS[1]),
            cls(60.0, neighbours=3, response="any", sensitivity="one", basis="exponential"),
            cls(30.0, random_state=0),
        ]

    def _check_parameters(self) -> None:
        check_count(self._owner, "neighbours", self.neighbours)
        choices = {"split": SPLITS, "reward": REWARDS, "response": RESPONSES, "sensitivity": SENSITIVITIES}
        for name, known in {**choices, "basis": BASES}.items():
            if getattr(self, name) not in known:
                raise bad_parameter(self._owner, name, f"one of {known}", getattr(self, name))

    def _readings(self) -> dict[str, str]:
        return {"response": self.response, "sensitivity": self.sensitivity}

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        super()._learn(table, model, rng)
        nice = self.explainer_
        self.nearest_ = Neighbours(nice.heom_, nice.rows_, nice.decision_.train, nice.eligible(), distinct=False)

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        first, place = distinct_rows(asked.x)
        near = self.nearest_.nearest(asked.x[first], asked.wanted[first], int(self.neighbours))[0][place]
        held = near >= 0
        given: Bools = np.any(held, axis=1)
        at = np.flatnonzero(given)
        cells = asked.x.copy()
        if len(at):
            pool, open_ = self._pool(asked.x[at], near[at], held[at], rng)
            cells[at] = self._walk(asked, at, pool, held[at], open_)
        return cells, given

    def _pool(self, x: Matrix, near: Ints, held: Bools, rng: np.random.Generator) -> tuple[Floats, Bools]:
        """Query x neighbour x column: noisy values, and which columns of each query may change."""
        pool = self.explainer_.rows_[np.maximum(near, 0)]
        count = held.sum(axis=1)  # the nearest come first, so the neighbours that exist do
        budget = float(self.epsilon)
        if self.basis == "exponential":
            chosen = self._chosen(x, pool, held, _CHOICE * budget, rng)
            budget *= 1 - _CHOICE
        else:
            chosen = rng.integers(0, count)
        open_ = pool[np.arange(len(x)), chosen] != x
        parts = np.maximum(open_.sum(axis=1), 1) * (count if self.split == SPLITS[1] else 1)
        share = np.repeat((budget / parts)[:, None], pool.shape[1], axis=1)
        for j in range(x.shape[1]):
            some = open_[:, j]
            pool[some, :, j] = self.columns_.noisy(j, pool[some, :, j], share[some], rng)
        return pool, open_

    def _chosen(self, x: Matrix, pool: Floats, held: Bools, budget: float, rng: np.random.Generator) -> Ints:
        """The exponential mechanism over neighbours; the largest of score + Gumbel noise is distributed as it draws."""
        many = pool.shape[1]
        far = self.explainer_.heom_.between(np.repeat(x, many, axis=0), pool.reshape(-1, x.shape[1])).reshape(-1, many)
        score = np.where(held, far, -np.inf).max(axis=1, keepdims=True) - far
        noisy = budget * score / 2 + rng.gumbel(size=score.shape)
        return np.asarray(np.where(held, noisy, -np.inf).argmax(axis=1), dtype=np.int64)

    def _walk(self, asked: Queries, at: Ints, pool: Floats, held: Bools, open_: Bools) -> Matrix:
        """Each query takes its most rewarding value, closes that column, and goes on until the decision changes."""
        start = asked.x[at]
        cells, todo = start.copy(), np.arange(len(at))
        while len(todo := todo[open_[todo].any(axis=1)]):
            trial, owner, column = _trials(cells, pool, held, open_, todo)
            valid, score = self._judge(asked, trial, asked.wanted[at[owner]])
            if self.reward == "nearest":
                far = self.explainer_.heom_.between(start[owner], trial)
                score = np.where(valid, _VALID + 1 / (1 + far), score)
            best = first_best(owner, score)
            cells[owner[best]] = trial[best]
            open_[owner[best], column[best]] = False
            todo = owner[best][~valid[best]]
        return cells

    def _judge(self, asked: Queries, rows: Matrix, wanted: Bools) -> tuple[Bools, Floats]:
        """Wanted or not, and the score of the wanted decision; equal rows are asked about once."""
        decision = self.explainer_.decision_
        first, place = distinct_rows(rows)
        frame = asked.encoder.decode(rows[first])
        scores = decision.scores(frame) if decision.has_scores else None
        said = decision.decide(frame, scores)[place]
        valid: Bools = wanted[np.arange(len(rows)), said]
        if scores is None:
            return valid, valid.astype(float)
        return valid, np.where(wanted, scores[place], -np.inf).max(axis=1)


def _trials(cells: Matrix, pool: Floats, held: Bools, open_: Bools, todo: Ints) -> tuple[Matrix, Ints, Ints]:
    """Every row that one more value of the pool leads to; a value that several neighbours have counts once."""
    local, column = np.nonzero(open_[todo])
    owner = todo[local]
    values = np.where(held[owner], pool[owner, :, column], np.nan)
    values.sort(axis=1)
    fresh = ~np.isnan(values) & np.concatenate(
        [np.ones((len(values), 1), dtype=bool), values[:, 1:] != values[:, :-1]], axis=1
    )
    which, slot = np.nonzero(fresh)
    trial = cells[owner[which]]
    trial[np.arange(len(which)), column[which]] = values[which, slot]
    return trial, owner[which], column[which]
