"""The published noise after the explainer: LaplaceNoise, NoisyMax, FeatureExponential."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, distinct_rows
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.protect.published.base import PublishedExplainer
from countervail.protect.published.columns import RESPONSES

Held = tuple[Floats, Floats]  # the values of a column in a class, and how often each occurs
SCORES = ("frequency", "nearness")
NOISES = ("laplace", "gaussian")
_ALL = -1  # in the place of a class that the model gives to no record
_CELLS = 1 << 22  # cells of an answer x value matrix worked on at once


class PostExplainer(PublishedExplainer):
    """NICE's counterfactual, with the columns that it changed drawn anew. A subclass writes `_redrawn`."""

    def __init__(self, epsilon: float = 1.0, *, target: Any = "favourable", random_state: RandomState = None) -> None:
        self.epsilon = epsilon
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(random_state=0)]

    def behind(self, rows: Any) -> Explanations:
        """NICE's own answers, before anything is drawn. For audits: never released."""
        _, frame, _ = self._queries(rows)
        return self.explainer_.explain(frame)

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        plain, given = self._plain(asked)
        changed = (plain != asked.x) & given[:, None]
        share = float(self.epsilon) / np.maximum(changed.sum(axis=1), 1)
        # Which class the counterfactual belongs to: the frequencies are those of its records.
        classes = self._classes(asked, plain)
        cells = plain.copy()
        for j in range(cells.shape[1]):
            at = np.flatnonzero(changed[:, j])
            if len(at):
                cells[at, j] = self._redrawn(j, cells[at, j], share[at], classes[at], rng)
        return cells, given

    def _classes(self, asked: Queries, plain: Matrix) -> Ints:
        return np.zeros(len(plain), dtype=np.int64)

    @abstractmethod
    def _redrawn(self, j: int, cells: Floats, epsilon: Floats, classes: Ints, rng: np.random.Generator) -> Floats:
        """New values of column `j`, one budget per answer."""


class LaplaceNoise(PostExplainer):
    """Laplace_Noise_DP as published: Laplace noise or randomised response on the columns that NICE changed.

    Parameters
    ----------
    epsilon : float
        The budget that the authors claim for an answer, shared by the changed columns.
    response : {"kept", "any"}
        What randomised response makes of a label that it does not keep: another one, as in the authors' experiments,
        or any value of the column, its own among them (Algorithm 2 to the letter).
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. Which columns changed is released exactly, and the budget is split by their number.
    :class:`countervail.NoisyCounterfactual` is the mechanism that keeps the promise.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 4.3, Algorithm 2.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.LaplaceNoise(epsilon=1.0).fit(small_table(), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-laplace"
    why: ClassVar[str] = "which columns changed is released exactly, and the noise depends on their number"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        response: str = "kept",
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(epsilon, target=target, random_state=random_state)
        self.response = response

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(response="any", random_state=0)]

    def _check_parameters(self) -> None:
        _check_choice(self, "response", RESPONSES)

    def _readings(self) -> dict[str, str]:
        return {"response": self.response}

    def _redrawn(self, j: int, cells: Floats, epsilon: Floats, classes: Ints, rng: np.random.Generator) -> Floats:
        return self.columns_.noisy(j, cells, epsilon, rng)


class _Frequencies(PostExplainer):
    """Keeps, for each class and column, which values its records hold and how often."""

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        super()._learn(table, model, rng)
        rows, classes = self.explainer_.rows_, self.explainer_.decision_.train
        self.counts_: dict[tuple[int, int], Held] = {}
        for c in (_ALL, *np.unique(classes)):
            for j, column in enumerate(rows[(classes == c) | (c == _ALL)].T):
                values, counts = np.unique(column, return_counts=True)
                self.counts_[int(c), j] = values, counts.astype(float)

    def _classes(self, asked: Queries, plain: Matrix) -> Ints:
        decision = self.explainer_.decision_
        first, place = distinct_rows(plain)
        said = decision.decide(asked.encoder.decode(plain[first]))[place]
        return np.where(np.isin(said, decision.train), said, _ALL)

    def _among(self, j: int, cells: Floats, epsilon: Floats, classes: Ints, rng: np.random.Generator) -> Floats:
        """A value of the class's records for each answer: the best of the noisy scores."""
        out = np.empty(len(epsilon))
        for c in np.unique(classes):
            held = self.counts_[int(c), j]
            at = np.flatnonzero(classes == c)
            step = max(1, _CELLS // len(held[0]))
            for some in (at[i : i + step] for i in range(0, len(at), step)):
                out[some] = held[0][self._scores(j, held, cells[some], epsilon[some], rng).argmax(axis=1)]
        return out

    @abstractmethod
    def _scores(self, j: int, held: Held, cells: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
        """Answer x value: noisy scores, the largest of which wins."""


class NoisyMax(_Frequencies):
    """Report noisy max as published: changed numbers become the most frequent value of the class, by noisy counts.

    As in the authors' experiments the budget of a column is divided by its number of distinct values too, and changed
    labels go through randomised response.

    Parameters
    ----------
    epsilon : float
        The budget that the authors claim for an answer, shared by the changed columns.
    noise : {"laplace", "gaussian"}
        What the counts get: Laplace noise, as in the experiments, or Gaussian noise of the same scale, as the text
        says, for which no finite epsilon holds.
    response : {"kept", "any"}
        What randomised response makes of a label that it does not keep: another one, as in the authors' experiments,
        or any value of the column, its own among them (Algorithm 2 to the letter).
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. Which columns changed is released exactly, and only values that occur in the class can win:
    one that only one person has gives that person away. :class:`countervail.PrivateHistograms` keeps the promise.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 4.3.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.NoisyMax(epsilon=1.0).fit(small_table(), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-noisy-max"
    why: ClassVar[str] = "which columns changed is released exactly, and only values that somebody holds can come out"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        noise: str = "laplace",
        response: str = "kept",
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(epsilon, target=target, random_state=random_state)
        self.noise = noise
        self.response = response

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(noise="gaussian", response="any", random_state=0)]

    def _check_parameters(self) -> None:
        _check_choice(self, "noise", NOISES)
        _check_choice(self, "response", RESPONSES)

    def _readings(self) -> dict[str, str]:
        return {"response": self.response}

    def _redrawn(self, j: int, cells: Floats, epsilon: Floats, classes: Ints, rng: np.random.Generator) -> Floats:
        if not self.columns_.numeric[j]:
            return self.columns_.noisy(j, cells, epsilon, rng)
        return self._among(j, cells, epsilon, classes, rng)

    def _scores(self, j: int, held: Held, cells: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
        counts = held[1]
        scale = len(counts) / epsilon
        draw = rng.laplace if self.noise == "laplace" else rng.normal
        scores: Floats = counts + draw(size=(len(epsilon), len(counts))) * scale[:, None]
        return scores


class FeatureExponential(_Frequencies):
    """The feature-based exponential mechanism as published: changed columns take a value of the class by score.

    Parameters
    ----------
    epsilon : float
        The budget that the authors claim for an answer, shared by the changed columns.
    score : {"frequency", "nearness"}
        What the paper describes: the frequency of a value among the records of the class, divided by that of the most
        frequent one (the paper leaves the scale open). Or what its figures show: how near the value lies to NICE's.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. Which columns changed is released exactly, and only values that occur in the class can come
    out. :class:`countervail.PrivateHistograms` keeps the promise.

    References
    ----------
    Anonymous authors: Differentially-private and plausible counterfactuals (under review), section 4.3.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.FeatureExponential(epsilon=1.0).fit(small_table(), small_model)
    >>> type(made.explain(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-exponential"
    why: ClassVar[str] = "which columns changed is released exactly, and only values that somebody holds can come out"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        score: str = "frequency",
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(epsilon, target=target, random_state=random_state)
        self.score = score

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(score="nearness", random_state=0)]

    def _check_parameters(self) -> None:
        _check_choice(self, "score", SCORES)

    def _redrawn(self, j: int, cells: Floats, epsilon: Floats, classes: Ints, rng: np.random.Generator) -> Floats:
        return self._among(j, cells, epsilon, classes, rng)

    def _scores(self, j: int, held: Held, cells: Floats, epsilon: Floats, rng: np.random.Generator) -> Floats:
        # The largest of score + Gumbel noise is distributed as the exponential mechanism draws.
        values, counts = held
        if self.score == "frequency":
            weight = epsilon[:, None] * (counts / counts.max())[None, :] / 2
        else:
            apart = np.abs(cells[:, None] - values[None, :])
            width = max(float(self.columns_.high[j] - self.columns_.low[j]), 1.0)
            weight = -epsilon[:, None] * (apart / width if self.columns_.numeric[j] else apart > 0)
        scores: Floats = weight + rng.gumbel(size=weight.shape)
        return scores


def _check_choice(made: PostExplainer, name: str, known: tuple[str, ...]) -> None:
    if getattr(made, name) not in known:
        raise bad_parameter(made._owner, name, f"one of {known}", getattr(made, name))
