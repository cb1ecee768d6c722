"""What published mechanisms share that make a row instead of finding one: public values, moves, and a loss."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.errors import bad_parameter, check_count
from countervail.core.table import Table
from countervail.explain.answering import Queries
from countervail.explain.nice import NICE
from countervail.protect.dp.grid import Grid
from countervail.protect.published.base import PublishedExplainer
from countervail.protect.published.made_up import made_up_table
from countervail.protect.published.perturbed.descent import Loss, descended, spread_places

_MOST = 11  # positions of a column that are tried


class PerturbedExplainer(PublishedExplainer):
    """The asker's own row, moved column by column to public values until a loss is smallest.

    A subclass writes `_learn_noisy`, which looks at the records, and `_loss`, which must not.
    """

    missing: Any
    target: Any
    steps: int

    def _check_parameters(self) -> None:
        check_count(self._owner, "steps", self.steps)

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise bad_parameter(self._owner, name, "a number of at least 0", value)

    def _learn(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        self.grid_ = Grid.of(table, self._owner, self.missing)
        self.places_ = spread_places(self.grid_.sizes.tolist(), _MOST)
        public = self._public(table, model)
        # What it is fitted to is made up: every public value once, in nobody's combination.
        self.explainer_ = NICE("none", target=self.target).fit(public, model)
        coded = self.explainer_.encoder_.encode(public.features)
        self.numbers_ = [coded[:n, j] for j, n in enumerate(self.grid_.sizes)]
        self._learn_noisy(table, model, rng)

    def _public(self, table: Table, model: Any) -> Table:
        """Made-up rows that hold every public value."""
        at = np.arange(int(max(self.grid_.sizes.max(), 2)))
        return made_up_table(self.grid_.frame(at[:, None] % self.grid_.sizes), table, model, self._owner)

    @abstractmethod
    def _learn_noisy(self, table: Table, model: Any, rng: np.random.Generator) -> None:
        """What is kept of the records."""

    @abstractmethod
    def _loss(self, asked: Queries, start: Ints, rng: np.random.Generator) -> Loss:
        """What is made smallest for these queries."""

    def _answer(self, asked: Queries, rng: np.random.Generator) -> tuple[Matrix, Bools]:
        start = self.grid_.codes(asked.frame)
        found = descended(start, self.places_, self._loss(asked, start, rng), int(self.steps))
        return self._cells(asked, start, found, np.arange(len(found))), np.ones(len(found), dtype=bool)

    def _cells(self, asked: Queries, start: Ints, at: Ints, who: Ints) -> Matrix:
        """Positions as rows; a column that stays where it was keeps the asker's own value."""
        made = np.column_stack([numbers[at[:, j]] for j, numbers in enumerate(self.numbers_)])
        return np.where(at == start[who], asked.x[who], made)

    def _short_of(self, asked: Queries, cells: Matrix, who: Ints) -> Floats:
        """1 for rows without a wanted decision, and how far their scores are from one where the model gives any."""
        decision, frame = self.explainer_.decision_, asked.encoder.decode(cells)
        wanted, each = asked.wanted[who], np.arange(len(who))
        if not decision.has_scores:
            return np.where(wanted[each, decision.decide(frame)], 0.0, 1.0)
        scores = decision.scores(frame)
        best = np.where(wanted, scores, -np.inf).max(axis=1)
        other = np.where(wanted, -np.inf, scores).max(axis=1)
        lacking = ~wanted[each, decision.decide(frame, scores)]
        return np.where(lacking, 1.0 + np.maximum(other - best, 0.0), 0.0)

    def _apart(self, start: Ints, at: Ints, who: Ints) -> Floats:
        """How far rows have moved: by parts of its range on an order, by 1 for another label, over the columns."""
        gone = np.abs(at - start[who]) / np.maximum(self.grid_.sizes - 1, 1)
        out: Floats = np.where(self.grid_.ordered, gone, at != start[who]).mean(axis=1, dtype=np.float64)
        return out
