"""Counterfactuals some way beyond the boundary of a private support vector machine."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.errors import ParameterError, bad_parameter
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Aim, Queries
from countervail.model.decision import Decision
from countervail.protect.published.clusters import spread_out
from countervail.protect.published.perturbed.base import PerturbedExplainer
from countervail.protect.published.perturbed.descent import Loss, descended
from countervail.protect.published.perturbed.svm import least_weights, noise_quantile, noisy, weight_reach

_TINY = 1e-9


class RobustSVM(PerturbedExplainer):
    """Counterfactuals that lie as far beyond a private support vector machine's boundary as its noise reaches.

    The machine learns once what the given model decides about the records, and gets noise on its weights. An asker's
    row is moved until it lies so far beyond the noisy boundary that noise of this size would, with the stated
    `confidence`, not have put it there, and the given model decides it as wanted. Where no row is, there is no
    answer. Needs declared domains.

    Parameters
    ----------
    epsilon : float
        The budget of the one training.
    ridge : float
        What weights are held small by: the noise is smaller for more of it, and the machine worse.
    confidence : float
        How sure a row that the noise did not choose would be to lie beyond the boundary without it: from 0.5 to
        below 1.
    steps : int
        How many columns are moved at most.
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to ("other" for two decisions only).
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. The paper's code was not at hand: the private machine is that of Chaudhuri, Monteleoni and
    Sarwate (noise on the weights of a smooth hinge), ridge and search are ours, and boundaries are linear. The
    confidence is that for a row which does not depend on the noise; an answer is found by the noisy weights, and where
    noise leads the search it holds far less often (whether the paper's does, its abstract does not say). For ideal
    noise and an exact minimum the weights would be epsilon-differentially private (one record exchanged, their number
    public), and answers would follow from them. Three things fail: the noise is drawn in floating point by an ordinary
    generator, the minimum is found to a tolerance, and the given model, which has the last word, is not covered.

    References
    ----------
    Mochaourab, Sinha, Greenstein, Papapetrou: Robust explanations for private support vector machines (2021);
    Demonstrator on counterfactual explanations for differentially private support vector machines (2022).
    Chaudhuri, Monteleoni, Sarwate: Differentially private empirical risk minimization (2011).

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.RobustSVM(epsilon=20.0).fit(small_table(500), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-robust-svm"
    keeps_draw: ClassVar[bool] = True
    why: ClassVar[str] = (
        "the epsilon of its weights is that of ideal noise on an exact minimum; the noise was drawn in floating point "
        "by an ordinary generator, and it does not cover the given model, which has the last word about answers"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        ridge: float = 0.01,
        confidence: float = 0.95,
        steps: int = 8,
        missing: Any = (),
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.ridge = ridge
        self.confidence = confidence
        self.steps = steps
        self.missing = missing
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=50.0), cls(epsilon=200.0, ridge=0.05, confidence=0.8, random_state=0)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_positive("ridge")
        if self.ridge == 0:
            raise bad_parameter(self._owner, "ridge", "above 0", self.ridge)
        sure = self.confidence
        if isinstance(sure, bool) or not isinstance(sure, (int, float)) or not 0.5 <= sure < 1:
            raise bad_parameter(self._owner, "confidence", "from 0.5 to below 1", sure)

    def _learn_noisy(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        said = Decision(model, table, self._owner)
        aimed = self._aimed(said, table)
        points = self._points(self.grid_.codes(table.features))
        exact = least_weights(points, np.where(aimed[said.train], 1.0, -1.0), float(self.ridge))
        scale = weight_reach(len(points), float(self.ridge)) / float(self.epsilon)
        self.weights_ = noisy(exact, scale, rng)
        self.unsure_ = noise_quantile(len(exact), scale, float(self.confidence))

    def _aimed(self, said: Decision, table: Table) -> Bools:
        """The decisions on the upper side: those aimed at, or the second of two."""
        if not (isinstance(self.target, str) and self.target == "other"):
            self.fixed_ = True
            return Aim(said, self.target, table.schema, self._owner).aimed()
        if len(said.classes) != 2:
            raise ParameterError(
                f"The 'target' parameter of {self._owner} cannot be 'other' for {len(said.classes)} decisions: one "
                f"boundary has two sides. Name the wanted decisions."
            )
        self.fixed_ = False
        return np.array([False, True])

    def _points(self, at: Ints) -> Floats:
        """Positions as points of length 1 at most, with a coordinate that is always the same."""
        spread = spread_out(self.grid_, at)
        out: Floats = np.column_stack([spread, np.ones(len(at))]) / np.sqrt(len(self.grid_.axes) + 1)
        return out

    def _beyond(self, asked: Queries, at: Ints, who: Ints) -> Floats:
        """How far rows are beyond the boundary for sure, in parts of the weights' length; below 0: not."""
        side = np.where(asked.wanted[who, -1], 1.0, -1.0) if not self.fixed_ else 1.0
        points = self._points(at)
        length = np.linalg.norm(points, axis=1)
        out: Floats = (side * (points @ self.weights_) - self.unsure_ * length) / (
            np.linalg.norm(self.weights_) + _TINY
        )
        return out

    def _loss(self, asked: Queries, start: Ints, rng: np.random.Generator) -> Loss:
        def loss(at: Ints, who: Ints) -> Floats:
            lacking = np.maximum(-self._beyond(asked, at, who), 0.0)
            lacking += self._short_of(asked, self._cells(asked, start, at, who), who)
            found: Floats = 100.0 * lacking + self._apart(start, at, who)
            return found

        return loss

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        start, who = self.grid_.codes(asked.frame), np.arange(len(asked))
        found = descended(start, self.places_, self._loss(asked, start, rng), int(self.steps))
        sure: Bools = self._beyond(asked, found, who) >= 0
        return self._cells(asked, start, found, who), sure
