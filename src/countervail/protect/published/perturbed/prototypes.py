"""Counterfactuals that are led by noisy class prototypes, which an autoencoder learns by the functional mechanism."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.core.errors import check_count
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.model.decision import Decision
from countervail.protect.published.clusters import spread_out
from countervail.protect.published.perturbed.base import PerturbedExplainer
from countervail.protect.published.perturbed.descent import Loss
from countervail.protect.published.perturbed.functional import noisy_prototypes, noisy_weights


class FunctionalPrototypes(PerturbedExplainer):
    """Counterfactuals by noisy class prototypes: an autoencoder and its prototypes by the functional mechanism.

    An autoencoder is trained once on the records, with noise on the coefficients of what it loses; so are the
    prototypes, the middle of each class of decisions among its codes. An asker's row is then moved until it is decided
    as wanted, stays near, and its code comes near the prototype of a wanted class. Needs declared domains.

    Parameters
    ----------
    epsilon : float
        The budget of the one training: half for the autoencoder, half for the prototypes.
    latent : int
        How many numbers a code has (at most as many as a row has coordinates).
    deciding, near, prototype : float
        How much weighs what the row lacks of the wanted decision, how far it moves, and how far its code is from the
        prototype.
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
    *Threat model*: none. The paper's networks and weights were not at hand: sizes, weights and the search are ours, and
    the autoencoder is linear with shared orthonormal weights: its objective is a polynomial as it stands. For ideal
    noise, codes and prototypes would be epsilon-differentially private (one record there or not), and answers
    follow from them, the model and the asker. Two things fail: the noise is drawn in floating point by an ordinary
    generator, and the model, which says whose class a record is in and where answers end, is whatever was given.
    Moments of d columns get noise of scale d (d + 1) / epsilon: with fewer records than that, codes are noise.

    References
    ----------
    Yang, Feng, Zhou, Chen, Hu: Differentially private counterfactuals via functional mechanism (2022).
    Zhang, Zhang, Xiao, Yang, Winslett: Functional mechanism, regression analysis under differential privacy (2012).

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.FunctionalPrototypes(epsilon=5.0).fit(small_table(500), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-prototypes"
    keeps_draw: ClassVar[bool] = True
    why: ClassVar[str] = (
        "the epsilon of its prototypes is that of ideal noise, which was drawn in floating point by an ordinary "
        "generator, and does not cover the given model, which decides what class a record is in and where answers end"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        latent: int = 4,
        deciding: float = 10.0,
        near: float = 1.0,
        prototype: float = 1.0,
        steps: int = 5,
        missing: Any = (),
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.latent = latent
        self.deciding = deciding
        self.near = near
        self.prototype = prototype
        self.steps = steps
        self.missing = missing
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls(epsilon=5.0, latent=2, prototype=3.0, random_state=0)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count(self._owner, "latent", self.latent)
        self._check_positive("deciding", "near", "prototype")

    def _learn_noisy(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        points = spread_out(self.grid_, self.grid_.codes(table.features))
        axes, half = len(self.grid_.axes), float(self.epsilon) / 2
        latent = min(int(self.latent), points.shape[1])
        self.weights_ = noisy_weights(points, axes, latent, half, rng)
        said = Decision(model, table, self._owner)
        names = self.explainer_.decision_.labels(np.arange(len(self.explainer_.decision_.classes)))
        classes = self.explainer_.decision_.codes(said.labels(said.train).tolist(), "model")
        self.prototypes_ = noisy_prototypes(points @ self.weights_, classes, len(names), axes, half, rng)

    def _loss(self, asked: Queries, start: Ints, rng: np.random.Generator) -> Loss:
        towards = self._towards(asked, start)

        def loss(at: Ints, who: Ints) -> Floats:
            codes = spread_out(self.grid_, at) @ self.weights_
            far: Floats = ((codes - towards[who]) ** 2).sum(axis=1)
            lacking = self._short_of(asked, self._cells(asked, start, at, who), who)
            return self.deciding * lacking + self.near * self._apart(start, at, who) + self.prototype * far

        return loss

    def _towards(self, asked: Queries, start: Ints) -> Floats:
        """The prototype of a wanted class that is nearest to each asker's code."""
        codes = spread_out(self.grid_, start) @ self.weights_
        apart = ((codes[:, None, :] - self.prototypes_[None]) ** 2).sum(axis=2)
        nearest: Ints = np.where(asked.wanted, apart, np.inf).argmin(axis=1)
        found: Floats = self.prototypes_[nearest]
        return found
