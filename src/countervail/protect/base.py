"""The two contracts: protectors of explanations, and of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Progress
from countervail.core.release import Release
from countervail.core.table import Rows, Table
from countervail.explain.base import Named


class ExplanationProtector(Named, BaseEstimator, ABC):
    """Answers queries with counterfactuals that are safe to hand out. A subclass writes these three."""

    name: ClassVar[str]

    @abstractmethod
    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""

    @abstractmethod
    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]


class TableProtector(Named, BaseEstimator, ABC):
    """Publishes a table, or what stands for one. A subclass writes these three."""

    name: ClassVar[str]
    keeps_rows: ClassVar[bool] = True  # whether each released row stands for one row of the table

    @abstractmethod
    def fit(self, table: Table) -> Self:
        """Learn from a table."""

    @abstractmethod
    def protect(self, rows: Rows | None = None) -> Release:
        """Release rows: the fitted table, or new rows where that has a meaning."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]
