"""PrivRecourse: recourse paths through the centres of differentially private clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Matrix
from countervail.core.errors import bad_parameter, check_count
from countervail.core.rng import RandomState
from countervail.core.table import Rows, Table
from countervail.explain.answering import Queries
from countervail.explain.face.face import FACE
from countervail.explain.face.paths import Paths
from countervail.protect.dp.grid import Grid
from countervail.protect.published.base import PublishedExplainer
from countervail.protect.published.clusters import folded_back, noisy_centres, spread_out
from countervail.protect.published.made_up import made_up_table


class PrivRecourse(PublishedExplainer):
    """PrivRecourse as described: noisy cluster centres are the nodes of a graph, and recourse is a path in it.

    The records are clustered once, with noise; each centre is read as a row of public values. These rows are joined to
    near ones, and an asker is led by the shortest way to a centre that the model decides as wanted. Needs declared
    domains.

    Parameters
    ----------
    epsilon : float
        The budget of the one clustering, whatever is asked later.
    clusters : int
        How many centres there are at most (equal rows count once).
    rounds : int
        Steps of the clustering; they share the budget.
    neighbours : int
        How many nearest centres each is joined to, and the asker too.
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: none. Any private clustering fits the description; here it is Lloyd's algorithm with Laplace noise,
    from centres drawn over the public domain. For ideal noise its centres would be epsilon-differentially private (one
    record there or not), and the paths would follow from them and the model. Two things fail: the noise is drawn in
    floating point by an ordinary generator, and the model, which the description trains privately too, is whatever was
    given: it decides which centres are answers, and may have been trained on the same records without noise.
    :class:`countervail.PrivateSynthetic` keeps its promise for the same kind of answer.

    Noise of scale (1 + columns) rounds / epsilon is added to each cluster's count and sums: with fewer records than
    that in a cluster the centres are noise.

    References
    ----------
    Pentyala, Sharma, Kariyappa, Lecue, Magazzeni: Privacy-preserving algorithmic recourse (2023).
    Blum, Dwork, McSherry, Nissim: Practical privacy, the SuLQ framework (2005), for the clustering.

    Examples
    --------
    >>> import warnings, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", cv.PrivacyWarning)
    ...     made = cv.published.PrivRecourse(epsilon=50.0).fit(small_table(500), small_model)
    >>> type(made.paths(small_table(3)).guarantee).__name__
    'NoGuarantee'
    """

    name: ClassVar[str] = "published-recourse"
    keeps_draw: ClassVar[bool] = True
    why: ClassVar[str] = (
        "the epsilon of its clustering is that of ideal noise, which was drawn in floating point by an ordinary "
        "generator, and does not cover the given model, which decides which centres are answers"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        clusters: int = 20,
        rounds: int = 3,
        neighbours: int = 5,
        missing: Any = (),
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.clusters = clusters
        self.rounds = rounds
        self.neighbours = neighbours
        self.missing = missing
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0), cls(epsilon=50.0, clusters=8, rounds=2, random_state=0)]

    @property
    def centres_(self) -> pd.DataFrame:
        """The rows that paths go through: noisy, and nobody's but by chance."""
        found: pd.DataFrame = self.explainer_.table_.features.copy()
        return found

    def paths(self, rows: Rows) -> Paths:
        """The way to each counterfactual, centre by centre."""
        found: Paths = self.explainer_.paths(self._queries(rows)[1])
        return replace(found, guarantee=self.guarantee())

    def _check_parameters(self) -> None:
        for name in ("clusters", "rounds", "neighbours"):
            check_count(self._owner, name, getattr(self, name))
        if self.clusters < 2:
            raise bad_parameter(self._owner, "clusters", "a whole number of at least 2", self.clusters)

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        grid = Grid.of(table, self._owner, self.missing)
        start = spread_out(grid, rng.integers(grid.sizes, size=(int(self.clusters), len(grid.axes))))
        points = spread_out(grid, grid.codes(table.features))
        centres = noisy_centres(points, start, len(grid.axes), float(self.epsilon), int(self.rounds), rng)
        frame = grid.frame(folded_back(grid, centres))
        face: Any = FACE(neighbours=int(self.neighbours), target=self.target)
        self.explainer_ = face.fit(made_up_table(frame, table, model, self._owner), model)

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        return self._plain(asked)
