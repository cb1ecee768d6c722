"""The contract every attack keeps: it sees a release or asks an explainer, knows what it is told, and no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from countervail.attack._released import Released
from countervail.core.arrays import Bools, Ints, distinct_frame_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson, mean_interval, plain_value
from countervail.core.table import Table

UNSAID: Any = object()  # in a guess: of this column nothing is said


@dataclass(frozen=True, eq=False, slots=True)
class Knowledge:
    """What the adversary brings: some columns of the targets, the same of a register of people, what is looked for.

    `domains` holds the values that a column can have, which are taken to be public.
    """

    targets: pd.DataFrame
    register: pd.DataFrame
    secret: tuple[str, ...] = ()
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """One way to attack: which columns are known, and which are looked for."""

    known: tuple[str, ...]
    secret: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Scored:
    """One plan carried out: what was known of each person, the truth, and person x column, what was guessed right."""

    known: Knowledge
    truth: pd.DataFrame
    right: Bools


@dataclass(frozen=True, eq=False, slots=True)
class AttackResult:
    """Success on members, on people who were never in the data, and by guessing blindly.

    `set_sizes` holds, for each thing released, how many people of the register it may speak of. `detail` holds further
    figures of some attacks.
    """

    attack: str
    members: Estimate
    controls: Estimate
    baseline: Estimate
    set_sizes: Ints
    detail: Mapping[str, Estimate] = field(default_factory=dict)

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
            "excess": plain_value(self.excess),
            "exposed": self.exposed.to_dict(),
            "set_sizes": dict(zip(*(v.tolist() for v in np.unique(self.set_sizes, return_counts=True)))),
            "detail": {name: figure.to_dict() for name, figure in self.detail.items()},
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
    """Works on what was released: explanations or a table. A subclass writes `guess` and `sizes`.

    The base hides the secret columns, draws and scores. With `joint`, success means that every secret column is right;
    otherwise each column counts, and the interval is over people, whose attacks are not independent of each other.
    """

    joint: ClassVar[bool] = True

    def __init__(self, *, n_targets: int | None = None, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, release: Released, table: Table, control: Table) -> AttackResult:
        """Attack the people of `table`, and as a control those of `control`, who were never in it."""
        check_people(type(self).__name__, table=table, control=control)
        plans = self.plans(table)
        outside = release.without_audit()
        register = self.register(table, control)
        inside, strangers = self._drawn(table), self._drawn(control)
        domains = {n: _values(table.frame[n]) for n in sorted({n for p in plans for n in (*p.known, *p.secret)})}

        def carried_out(people: pd.DataFrame) -> list[Scored]:
            return [self._score(outside, plan, people, register, domains) for plan in plans]

        members = carried_out(inside)
        return AttackResult(
            self.label,
            self._rate([s.right for s in members]),
            self._rate([s.right for s in carried_out(strangers)]),
            self._rate([self._blind(plan, control, inside) for plan in plans]),
            self.sizes(outside, register),
            self.details(outside, members),
        )

    def plans(self, table: Table) -> list[Plan]:
        """Which columns are known and looked for; by default once, the quasi-identifiers and the rest."""
        quasi, secret = table.schema.names("quasi"), self.secrets(table)
        if not quasi or not secret:
            raise SchemaError(f"{type(self).__name__} needs quasi-identifiers and at least one attribute besides them.")
        return [Plan(tuple(quasi), tuple(secret))]

    def details(self, release: Released, members: list[Scored]) -> dict[str, Estimate]:
        """Further figures on the members."""
        return {}

    def _score(
        self, release: Released, plan: Plan, people: pd.DataFrame, register: pd.DataFrame, domains: dict[str, Any]
    ) -> Scored:
        shared = [n for n in register.columns if n in plan.known]
        known = Knowledge(people[list(plan.known)].reset_index(drop=True), register[shared], plan.secret, domains)
        truth = people[list(plan.secret)].reset_index(drop=True)
        return Scored(known, truth, self._right(self.guess(release, known), truth))

    def _blind(self, plan: Plan, control: Table, people: pd.DataFrame) -> Bools:
        """Who is right by naming what is most frequent among strangers."""
        truth = people[list(plan.secret)]
        if self.joint:
            kinds, counts = distinct_frame_rows(control.frame, list(plan.secret))
            return self._right(kinds.iloc[[int(counts.argmax())] * len(people)], truth)
        tops = {n: [_most_frequent(control.frame[n])] * len(people) for n in plan.secret}
        return self._right(pd.DataFrame(tops, dtype=object), truth)

    def _right(self, guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
        return _equal(guesses, truth)[:, None] if self.joint else right_cells(guesses, truth)

    def _rate(self, right: list[Bools]) -> Estimate:
        return rate(np.concatenate(right, axis=1))

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
    def guess(self, release: Released, known: Knowledge) -> pd.DataFrame:
        """The secret columns of each target, in order; a row of missing values where the adversary does not dare."""

    @abstractmethod
    def sizes(self, release: Released, register: pd.DataFrame) -> Ints:
        """How many people of the register each released thing may speak of."""


class OracleAttack(_Attack):
    """Asks an explainer or protector, through what core's protocols allow. A subclass writes `ask`."""

    reruns: ClassVar[bool] = False  # whether it needs a protector whose search can be rerun

    def __init__(self, *, n_targets: int | None = 50, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Ask the oracle as the people of `control`, then look for the people of `table` in the answers."""
        check_people(type(self).__name__, table=table, control=control)
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


def rate(right: Bools) -> Estimate:
    """Share of successes, person x attack; several attacks on one person are one observation."""
    people, attacks = right.shape
    if people == 0 or attacks == 0:
        return clopper_pearson(0, 0)
    shares = right.mean(axis=1)
    if attacks == 1 or people < 2 or (shares == shares[0]).all():
        exact = clopper_pearson(int(np.rint(shares.sum())), people)
        return Estimate(float(shares.mean()), exact.low, exact.high, people)
    spread = mean_interval(shares)
    return Estimate(spread.value, max(spread.low, 0.0), min(spread.high, 1.0), people)


def right_cells(guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
    """Person x column: which cells are guessed right; a missing value is no guess."""
    a, b = (f.reset_index(drop=True).astype(object).where(f.notna().to_numpy(), None) for f in (guesses, truth))
    right: Bools = np.asarray(a.to_numpy() == b.to_numpy(), dtype=bool) & ~np.asarray(pd.isna(a).to_numpy())
    return right


def _values(column: pd.Series) -> list[Any]:
    kinds = sorted(pd.unique(column.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
    return [*kinds, None] if column.isna().any() else kinds


def _most_frequent(column: pd.Series) -> Any:
    counts = column.value_counts()
    return counts.index[0] if len(counts) else None


def _equal(guesses: pd.DataFrame, truth: pd.DataFrame) -> Bools:
    """Which rows are guessed right in every column of which anything is said; a row of missing values is no guess."""
    a, b = (f.reset_index(drop=True).astype(object).where(f.notna().to_numpy(), None) for f in (guesses, truth))
    unsaid = a.map(lambda v: v is UNSAID).to_numpy(dtype=bool)
    same = (a.values == b.values) | (pd.isna(a).to_numpy() & pd.isna(b).to_numpy()) | unsaid
    right: Bools = np.asarray(same.all(axis=1)) & ~np.asarray((pd.isna(a).to_numpy() | unsaid).all(axis=1))
    return right


def check_people(owner: str, **people: Any) -> None:
    """The people attacked, and strangers for comparison, come as tables."""
    for name, given in people.items():
        if not isinstance(given, Table):
            must = "a Table, such as a part of `table.split()`: it knows which columns others may know"
            raise bad_parameter(owner, name, must, type(given).__name__)
