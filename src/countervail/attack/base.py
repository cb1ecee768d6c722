"""The contract every attack keeps: it sees a release or asks an explainer, knows what it is told, and no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from countervail.attack.result import AttackResult, rate, right_cells, right_rows
from countervail.attack.shared.persons import hit_once, one_row_each, owners, register_of, thinned, without_members
from countervail.attack.shared.planted import VerbatimOracle, open_explanations
from countervail.attack.shared.released import Released, as_seen
from countervail.core.arrays import Bools, Ints, distinct_frame_rows
from countervail.core.errors import CountervailError, SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains
from countervail.core.release import Release
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

Criterion = Literal["singling out", "linkability", "inference", "membership", "model"]


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


class _Attack(BaseEstimator, ABC):
    name: ClassVar[str]
    criterion: ClassVar[Criterion]  # what success means, in the words of WP29's opinion 05/2014 and beyond
    tables_only: ClassVar[bool] = False  # whether answers to people give it nothing to look at
    n_targets: int | None
    random_state: int

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    def _drawn(self, table: Table) -> pd.DataFrame:
        """The targets: all people of a table, or some drawn at random; one row each."""
        table = one_row_each(table, self.random_state)
        picked = self._picked(len(table))
        return table.frame if len(picked) == len(table) else table.frame.iloc[picked]

    def _picked(self, people: int) -> Ints:
        """Which of so many people are attacked."""
        if self.n_targets is None or self.n_targets >= people:
            return np.arange(people)
        if self.n_targets < 1:
            raise bad_parameter(
                type(self).__name__, "n_targets", "None or a whole number of at least 1", self.n_targets
            )
        return np.sort(generator(self.random_state).permutation(people)[: self.n_targets])

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return self.name


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
        control, plans = without_members(control, table), self.plans(table)
        outside = seen_from_outside(type(self).__name__, release)
        register = self.register(table, control)
        (inside, person), (strangers, stranger) = self._drawn_whole(table), self._drawn_whole(control)
        domains = {n: _values(table.frame[n]) for n in sorted({n for p in plans for n in (*p.known, *p.secret)})}

        def carried_out(people: pd.DataFrame) -> list[Scored]:
            return [self._score(outside, plan, people, register, domains) for plan in plans]

        members = carried_out(inside)
        return AttackResult(
            self.label,
            self._rate([s.right for s in members], person),
            self._rate([s.right for s in carried_out(strangers)], stranger),
            self._rate([self._blind(plan, control, inside) for plan in plans], person),
            self.sizes(outside, register),
            self.details(outside, members),
        )

    def _drawn_whole(self, table: Table) -> tuple[pd.DataFrame, Ints | None]:
        """The targets with all rows that they have, and whose each row is (None: everybody has one)."""
        person = owners(table)
        if person is None:
            return self._drawn(table), None
        kept = np.isin(person, self._picked(int(person.max()) + 1))
        return table.frame[kept], pd.factorize(person[kept])[0].astype(np.int64)

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
        return right_rows(guesses, truth)[:, None] if self.joint else right_cells(guesses, truth)

    def _rate(self, right: list[Bools], person: Ints | None) -> Estimate:
        return rate(hit_once(np.concatenate(right, axis=1), person))

    def planted(self, table: Table, control: Table) -> Released:
        """A release that this attack must find something in: everybody's record as if it were an explanation."""
        return open_explanations(table)

    def secrets(self, table: Table) -> list[str]:
        """What the adversary wants to learn: the features that are no quasi-identifiers."""
        return table.schema.names("sensitive", "attribute")

    def register(self, table: Table, control: Table) -> pd.DataFrame:
        """The people the adversary holds a register of."""
        return register_of(table)

    @abstractmethod
    def guess(self, release: Released, known: Knowledge) -> pd.DataFrame:
        """The secret columns of each target, in order; a row of missing values where the adversary does not dare."""

    @abstractmethod
    def sizes(self, release: Released, register: pd.DataFrame) -> Ints:
        """How many people of the register each released thing may speak of."""


class SetAttack(_Attack):
    """Works on all that was released, explanations or a table, as one set. A subclass writes `figures`."""

    def __init__(self, *, n_targets: int | None = 1000, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, release: Released, table: Table, control: Table) -> AttackResult:
        """Look for the people of `table`, and as a control for those of `control`, who were never in it."""
        check_people(type(self).__name__, table=table, control=control)
        control = without_members(control, table)
        return self.figures(seen_from_outside(type(self).__name__, release), table, control)

    def planted(self, table: Table, control: Table) -> Released:
        """A release that this attack must find something in: everybody's record as if it were an explanation."""
        return open_explanations(table)

    @abstractmethod
    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """The attack carried out; of the table only what the attack is scored on may be looked at."""

    def _names(self, release: Released, table: Table, columns: str) -> list[str]:
        """The features that a release and both tables have: what others may know, or all of them."""
        if columns not in ("quasi", "features"):
            raise bad_parameter(type(self).__name__, "columns", "'quasi' or 'features'", columns)
        wanted = (table.schema.names("quasi") if columns == "quasi" else []) or table.schema.features
        shown = release.counterfactuals.columns if isinstance(release, Explanations) else release.schema.names()
        names = [n for n in wanted if n in shown]
        if not names:
            raise SchemaError(f"{type(self).__name__} finds no column of the table in what was released.")
        return names


class OracleAttack(_Attack):
    """Asks an explainer or protector, through what core's protocols allow. A subclass writes `figures`."""

    reruns: ClassVar[bool] = False  # whether it needs a protector whose search can be rerun

    def __init__(self, *, n_targets: int | None = 50, random_state: int = 0) -> None:
        self.n_targets = n_targets
        self.random_state = random_state

    def run(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Ask the oracle, which was fitted to `table`; the people of `control` were never in it."""
        check_people(type(self).__name__, table=table, control=control)
        if not callable(getattr(oracle, "explain", None)):
            must = "a fitted explainer or protector, which answers `explain(rows)`"
            raise bad_parameter(type(self).__name__, "oracle", must, type(oracle).__name__)
        return self.figures(oracle, table, without_members(control, table))

    def planted(self, table: Table, control: Table) -> Any:
        """An oracle that this attack must find something in: it answers with other people's records as they are."""
        return VerbatimOracle(table)

    @abstractmethod
    def figures(self, oracle: Any, table: Table, control: Table) -> AttackResult:
        """The attack carried out; of the table only what the attack is scored on may be looked at."""

    def _left(
        self, sizes: Ints, cases: Ints, table: Table, detail: Mapping[str, Estimate] | None = None
    ) -> AttackResult:
        """The result of an attack that leaves so many people for each thing that was answered, and for each case."""
        cases, nobody = thinned(cases, table), clopper_pearson(0, 0)
        alone = clopper_pearson(int((cases == 1).sum()), len(cases))
        return AttackResult(self.label, alone, nobody, nobody, sizes, detail or {})


def seen_from_outside(owner: str, release: Any) -> Released:
    """A release without what only its maker holds."""
    if not isinstance(release, (Explanations, Release)):
        must = "Explanations or a Release, such as what explain(...) or protect(...) gives"
        raise bad_parameter(owner, "release", must, type(release).__name__)
    outside = release.without_audit()
    return as_seen(outside) if isinstance(outside, Explanations) else outside


class UnansweredError(CountervailError, RuntimeError):
    """What is attacked raised an error when it was asked: the attack is not carried out, which shows nothing."""


def answers_of(oracle: Any, rows: Any, *, behind: bool = False) -> Explanations:
    """What an explainer or protector answers, as whoever asks sees it; with `behind`, all that it was taken from.

    Advice to those who get no answer is left out where that can be had: no attack reads it.
    """
    try:
        given: Explanations = _way_of_asking(oracle, "disclosed" if behind else "unadvised")(rows)
    except CountervailError as error:
        raise UnansweredError(str(error)) from error
    asked = rows.reset_index(drop=True) if isinstance(rows, pd.DataFrame) else None
    return as_seen(given.without_audit(), asked)


def ours(oracle: Any) -> bool:
    """Whether a class of this package answers: what somebody else's says beside its answers is not taken on trust."""
    return type(oracle).__module__.startswith("countervail.")


def always_same(oracle: Any) -> bool:
    """Whether it is known that the same question always gets the same answer: of classes of this package only."""
    kind = type(oracle)
    fresh = getattr(kind, "draws_noise", False) and not getattr(kind, "keeps_draw", False)
    return ours(oracle) and not fresh


def _way_of_asking(oracle: Any, name: str) -> Callable[[Any], Explanations]:
    """The method of this name of the class that answers; `explain` itself where somebody else wrote that anew."""
    answers = next((c for c in type(oracle).__mro__ if "explain" in vars(c)), None)
    theirs = answers is None or not answers.__module__.startswith("countervail.")
    if theirs or name not in vars(answers) or "explain" in getattr(oracle, "__dict__", {}):
        return cast("Callable[[Any], Explanations]", oracle.explain)
    return cast("Callable[[Any], Explanations]", vars(answers)[name].__get__(oracle))


def _values(column: pd.Series) -> list[Any]:
    kinds = sorted(pd.unique(column.dropna()).tolist(), key=lambda v: (type(v).__name__, v))
    return [*kinds, None] if column.isna().any() else kinds


def _most_frequent(column: pd.Series) -> Any:
    counts = column.value_counts()
    return counts.index[0] if len(counts) else None


def check_people(owner: str, **people: Any) -> None:
    """The people attacked, and strangers for comparison, come as tables."""
    for name, given in people.items():
        if not isinstance(given, Table):
            must = "a Table, such as a part of `table.split()`: it knows which columns others may know"
            raise bad_parameter(owner, name, must, type(given).__name__)
