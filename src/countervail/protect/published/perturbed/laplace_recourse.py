"""Recourse found by asking for noisy predictions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Floats, Ints, Matrix
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.protect.published.perturbed.base import PerturbedExplainer
from countervail.protect.published.perturbed.descent import Loss


class LaplaceRecourse(PerturbedExplainer):
    """Laplace recourse: a search for a counterfactual that sees every prediction of the model with noise.

    An asker's row is moved until its noisy prediction is the wanted one. No record is looked at: what is to be hidden
    is what the model remembers of those it was trained on. Needs declared domains.

    Parameters
    ----------
    epsilon : float
        The budget of one prediction.
    deciding, near : float
        How much weighs what the row lacks of the wanted decision, and how far it moves.
    steps : int
        How many columns are moved at most.
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. The paper's code was not at hand: that predictions get Laplace noise while the search runs is
    what others say of it; scale, weights and search are ours. Each prediction gets the whole epsilon (a training
    record can move it by 1 at most); a search looks at dozens of them, and whoever asks again starts anew. Who is
    answered at all, and whether the answer is valid, is said without noise. Noise of scale 1 / epsilon on a
    probability drowns it unless epsilon is large.

    The paper's other way, a model that is trained under differential privacy, is
    :func:`countervail.train_private_logistic`.

    References
    ----------
    Huang, Swoopes, Xiao, Ma, Lakkaraju: Accurate, explainable, and private models: providing recourse while minimizing
    training data leakage (2023).

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.LaplaceRecourse(epsilon=20.0).fit(small_table(500), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-laplace-recourse"
    why: ClassVar[str] = (
        "each of the dozens of predictions that a search looks at is given the whole epsilon, and who is answered, and "
        "whether the answer is valid, is the model's word without noise"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        deciding: float = 10.0,
        near: float = 1.0,
        steps: int = 5,
        missing: Any = (),
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.deciding = deciding
        self.near = near
        self.steps = steps
        self.missing = missing
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(epsilon=50.0, near=0.5, steps=3, random_state=0)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_positive("deciding", "near")

    def _learn_noisy(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        """Nothing: the records are in the model alone."""

    def _loss(self, asked: Queries, start: Ints, rng: np.random.Generator) -> Loss:
        def loss(at: Ints, who: Ints) -> Floats:
            told = self._predicted(asked, self._cells(asked, start, at, who), who)
            told = told + rng.laplace(0.0, 1 / float(self.epsilon), len(told))
            lacking: Floats = np.where(told < 0.5, 1.5 - told, 0.0)
            return self.deciding * lacking + self.near * self._apart(start, at, who)

        return loss

    def _predicted(self, asked: Queries, cells: Matrix, who: Ints) -> Floats:
        """How likely a wanted decision is: a number from 0 to 1; of a model without scores, one or the other."""
        decision, frame = self.explainer_.decision_, asked.encoder.decode(cells)
        wanted = asked.wanted[who]
        if not decision.has_scores:
            said: Floats = wanted[np.arange(len(who)), decision.decide(frame)].astype(float)
            return said
        likely: Floats = np.clip(np.where(wanted, decision.scores(frame), 0.0).sum(axis=1), 0.0, 1.0)
        return likely
