"""DPGAN: counterfactuals from synthetic rows of a generator that was trained with noisy gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Matrix
from countervail.core.errors import bad_parameter, check_count
from countervail.core.rng import RandomState
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.protect.dp.grid import Grid
from countervail.protect.published.base import PublishedExplainer


@dataclass(frozen=True, slots=True)
class Spent:
    """What opacus' accountant says of the training: epsilon at delta, the noise, and the number of steps."""

    epsilon: float
    delta: float
    noise: float
    steps: int
    sample_rate: float


class DPGAN(PublishedExplainer):
    """DPGAN, the baseline of the paper: a small GAN trained by DP-SGD makes synthetic rows, and NICE runs on them.

    Needs the extra `gan` (torch and opacus) and declared domains: the ranges must be public.

    Parameters
    ----------
    epsilon, delta : float
        What the training may spend by opacus' accountant; `spent_` says what it did spend.
    steps : int
        Steps of the discriminator; each looks at a random sample of the records.
    batch : int
        How many records a step looks at on average.
    rows : int, optional
        How many synthetic rows are made; by default as many as the table has (which is then public).
    missing : list of str
        Ordinal and categorical columns in which "missing" is a public level of its own.
    target : "favourable", "other", a label or several
        The decisions a counterfactual may lead to.
    random_state : int, optional
        For tests and studies: seeded noise can be taken off.

    Notes
    -----
    *Threat model*: the accountant's (epsilon, delta) is about one record there or not, given perfect noise. It is not
    passed on as a promise: the noise is torch's ordinary generator in floating point, and no page of ours proves it.
    :class:`countervail.DPTable` is the mechanism that keeps a promise for synthetic rows.

    References
    ----------
    Nelson: Privacy-preserving counterfactual explanations to help humans contest AI-based decisions (2022).
    Abadi et al.: Deep learning with differential privacy (2016).

    Examples
    --------
    >>> import countervail as cv
    >>> cv.published.DPGAN(epsilon=1.0, steps=20).delta
    1e-05
    """

    name: ClassVar[str] = "published-dpgan"
    keeps_draw: ClassVar[bool] = True
    extra: ClassVar[str | None] = "gan"
    why: ClassVar[str] = (
        "the (epsilon, delta) of its training is the accountant's word for ideal noise, which was drawn in floating "
        "point by an ordinary generator, and is not proven here"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        steps: int = 500,
        batch: int = 64,
        rows: int | None = None,
        missing: Any = (),
        target: Any = "favourable",
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.steps = steps
        self.batch = batch
        self.rows = rows
        self.missing = missing
        self.target = target
        self.random_state = random_state

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(epsilon=5.0, steps=3, batch=16, rows=200)]

    def _check_parameters(self) -> None:
        for name in ("steps", "batch"):
            check_count(self._owner, name, getattr(self, name))
        if self.rows is not None:
            check_count(self._owner, "rows", self.rows)
        if not 0 < self.delta < 1:
            raise bad_parameter(self._owner, "delta", "strictly between 0 and 1", self.delta)

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        from countervail.protect.published.gan_training import Settings, synthesise

        grid = Grid.of(table, self._owner, self.missing)
        settings = Settings(float(self.epsilon), float(self.delta), int(self.steps), int(self.batch))
        rows = len(table) if self.rows is None else int(self.rows)
        codes, spent = synthesise(grid.codes(table.features), grid.sizes, grid.ordered, settings, rows, rng)
        self.spent_ = Spent(**spent)
        frame = grid.frame(codes)
        assert table.schema.target is not None
        # Any labels do: the search asks the model, and looks at no label.
        frame[table.schema.target] = np.resize(table.target.to_numpy(copy=True), rows)
        kept = tuple(c for c in table.schema if c.role != "identifier")
        self.explainer_ = self._nice(Table(frame, Schema(kept, table.schema.favourable)), model, justified=False)

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        return self._plain(asked)
