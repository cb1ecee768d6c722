"""The contract every attack keeps: it sees a release or asks an explainer, knows what it is told, and no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table
from countervail.core.tuples import distinct_rows

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Knowledge:
    """What the adversary brings: the quasi-identifiers of the targets, and a register of people."""

    targets: pd.DataFrame
    register: pd.DataFrame


@dataclass(frozen=True, eq=False, slots=True)
class AttackResult:
    """Success on members, on people who were never in the data, and by guessing blindly.

    `set_sizes` holds, for each thing released, how many people of the register it may speak of.
    """

    attack: str
    members: Estimate
    controls: Estimate
    baseline: Estimate
    set_sizes: Ints

    @property
    def excess(self) -> float:
        """Success beyond what the same attack achieves on people who were never in the data."""
        free = self.controls.value if self.controls.n else 0.0
        return (self.members.value - free) / (1 - free) if free < 1 else 0.0

    @property
    def exposed(self) -> Estimate:
        """Share of released things that speak of exactly one person."""
        return clopper_pearson(int((self.set_sizes == 1).sum()), len(self.set_sizes))

    def __str__(self) -> str:
        return (
            f"{self.attack}: members {self.members}, controls {self.controls}, blind {self.baseline}; "
            f"{self.exposed.value:.1%} of what was released speaks of one person"
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return {
            "attack": self.attack,
            "members": self.members.to_dict(),
            "controls": self.controls.to_dict(),
            "baseline": self.baseline.to_dict(),
            "excess": self.excess,
            "exposed": self.exposed.to_dict(),
            "set_sizes": dict(zip(*(v.tolist() for v in np.unique(self.set_sizes, return_counts=True)))),
        }


class _Attack(BaseEstimator, ABC):
    name: ClassVar[str]
    n_targets: int | None
    random_state: int

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    def _drawn(self, table: Table) -> pd.DataFrame:
        """The targets: all people of a table, or some drawn at random."""
        if self.n_targets is None or self.n_targets >= len(table):
            return table.frame
        if self.n_targets < 1:
            raise bad_parameter(
                type(self).__name__, "n_targets", "None or a whole number of at least 1", self.n_targets
            )
        picked = generator(self.random_state).permutation(len(table))[: self.n_targets]
        return table.frame.iloc[np.sort(picked)]


class ReleaseAttack(_Attack):
    """Works on what was released. A subclass writes `guess` and `sizes`; the base hides, draws and scores."""

    def __init__(self, *, n_targets: int | None = None, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, release: Explanations, table: Table, control: Table) -> AttackResult:
        """Attack the people of `table`, and as a control those of `control`, who were never in it."""
        quasi, secret = table.schema.names("quasi"), self.secrets(table)
        if not quasi or not secret:
            raise SchemaError(f"{type(self).__name__} needs quasi-identifiers and at least one attribute besides them.")
        outside = release.without_audit()
        register = self.register(table, control)
        inside, strangers = self._drawn(table), self._drawn(control)

        def hits(people: pd.DataFrame) -> Estimate:
            guesses = self.guess(outside, Knowledge(people[quasi].reset_index(drop=True), register))
            return clopper_pearson(int(_equal(guesses, people[secret]).sum()), len(people))

        kinds, counts = distinct_rows(control.frame, secret)
        blind = kinds.iloc[[int(counts.argmax())] * len(inside)]
        return AttackResult(
            self.label,
            hits(inside),
            hits(strangers),
            clopper_pearson(int(_equal(blind, inside[secret]).sum()), len(inside)),
            self.sizes(outside, register),
        )

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return self.name

    def secrets(self, table: Table) -> list[str]:
        """What the adversary wants to learn: the features that are no quasi-identifiers."""
        return table.schema.names("sensitive", "attribute")

    def register(self, table: Table, control: Table) -> pd.DataFrame:
        """The people the adversary holds a register of."""
        return table.select("quasi")

    @abstractmethod
    def guess(self, release: Explanations, known: Knowledge) -> pd.DataFrame:
        """The secret columns of each target, in order; a row of missing values where the adversary does not dare."""

    @abstractmethod
    def sizes(self, release: Explanations, register: pd.DataFrame) -> Ints:
        """How many people of the register each released thing may speak of."""


class OracleAttack(_Attack):
    """Asks an explainer or protector, through what core's protocols allow. A subclass writes `ask`."""

    def __init__(self, *, n_targets: int | None = 50, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Ask the oracle as the people of `control`, then look for the people of `table` in the answers."""
        if not table.schema.names("quasi"):
            raise SchemaError(f"{type(self).__name__} needs quasi-identifiers. Give columns the role 'quasi'.")
        queries = self._drawn(control)[control.schema.features].reset_index(drop=True)
        sizes = self.ask(oracle, queries, table.select("quasi"))
        alone = clopper_pearson(int((sizes == 1).sum()), len(sizes))
        nobody = clopper_pearson(0, 0)
        return AttackResult(self.name, alone, nobody, nobody, sizes)

    @abstractmethod
    def ask(self, oracle: Explains, queries: pd.DataFrame, register: pd.DataFrame) -> Ints:
        """How many people of the register are left for each person the answers spoke of."""


def _equal(guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
    """Which rows are guessed right in every column; a row of missing values is no guess."""
    a, b = guesses.reset_index(drop=True).astype(object), truth.reset_index(drop=True).astype(object)
    same = (a.values == b.values) | (pd.isna(a).to_numpy() & pd.isna(b).to_numpy())
    right: Bools = np.asarray(same.all(axis=1)) & ~np.asarray(pd.isna(a).to_numpy().all(axis=1))
    return right
