"""Membership by asking: a model that knows people by heart sends them farther than strangers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, answers_of
from countervail.attack.result import AttackResult
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.persons import one_row_each
from countervail.attack.shared.planted import MemorisingOracle
from countervail.attack.shared.released import plain_sets, value_sets
from countervail.attack.shared.roc import auc, tell_members
from countervail.core.arrays import Floats, Ints
from countervail.core.errors import SchemaError, bad_parameter, check_count
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.table import Table

_ALIKE = 10  # strangers whose distances say what is usual for a person
_KNOWN = 2_000  # strangers, at most, who are asked about to know what is usual
_LEAST = 1e-6  # added to distances before logarithms are taken

Usual = Callable[[pd.DataFrame], Floats]  # people -> what is usual for each, several figures a person


class RecourseMembership(OracleAttack):
    """Ask for a person's own counterfactual, and take the person for a member if it is far away.

    Parameters
    ----------
    version : {"distance", "likelihood-ratio"}
        The distance as it is; or how unusual its logarithm is for such a person who is not in the data.
    again : callable, optional
        Fits the oracle to another table: `again(table)`. Then what is usual comes from oracles that were fitted to
        strangers, as published, and records that are planted into the table are told from ones that are left out.
        Otherwise what is usual comes from the strangers who are most alike, among 2,000 at most.
    shadows : int
        How many oracles are fitted to strangers.
    fpr : float
        The share of strangers that may be taken for members; see `Membership`.
    n_targets : int, optional
        How many members, and how many strangers, are asked about.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone who holds a person's record whole and asks in that person's name. People who get no
    counterfactual are left out. Mostly this attacks the model; an explainer that keeps k people together, or noise on
    answers, does not make a model forget.

    References
    ----------
    Pawelczyk, Lakkaraju, Neel: On the privacy risks of algorithmic recourse (2023), whose likelihood ratio takes the
    logarithm of a stranger's distance for normal.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.RecourseMembership(n_targets=100)
    >>> attack.run(attack.planted(train, test), train, test).detail["AUC"].value > 0.9
    True
    """

    name: ClassVar[str] = "recourse-membership"
    criterion: ClassVar[Criterion] = "membership"
    variants: ClassVar[tuple[dict[str, str], ...]] = ({}, {"version": "likelihood-ratio"})

    def __init__(
        self,
        version: Literal["distance", "likelihood-ratio"] = "distance",
        *,
        again: Callable[[Table], Explains] | None = None,
        shadows: int = 4,
        fpr: float = 0.1,
        n_targets: int | None = 500,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.version = version
        self.again = again
        self.shadows = shadows
        self.fpr = fpr

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls("likelihood-ratio")]

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return f"{self.name} ({self.version})"

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that sends members far away."""
        return MemorisingOracle(table)

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """How well distances tell members from strangers."""
        if self.version not in ("distance", "likelihood-ratio"):
            raise bad_parameter(type(self).__name__, "version", "'distance' or 'likelihood-ratio'", self.version)
        check_count(type(self).__name__, "shadows", self.shadows)
        control = one_row_each(control, self.random_state)  # nobody is asked about and known besides
        members, strangers, detail = self._drawn(table), self._drawn(control), {}
        if self.version == "distance":
            inside, outside = (_distances(oracle, p, table, control) for p in (members, strangers))
        else:
            order = generator(self.random_state).permutation(len(control))
            known = control.take(order[: len(order) // 2])
            strangers = self._drawn(control.take(order[len(order) // 2 :]))
            usual = self._by_shadows(table, known) if self.again is not None else self._by_alike(oracle, table, known)
            inside, outside = (_unusual(oracle, p, table, known, usual) for p in (members, strangers))
        if self.again is not None:
            order = generator(self.random_state).permutation(len(strangers))
            put, left = strangers.iloc[order[::2]], strangers.iloc[order[1::2]]
            bigger = table.with_frame(pd.concat([table.frame, put], ignore_index=True), table.schema)
            other = self.again(bigger)
            there, gone = (_distances(other, p, table, control) for p in (put, left))
            detail["AUC of planted records"] = auc(there[~np.isnan(there)], gone[~np.isnan(gone)])
        inside, outside = inside[~np.isnan(inside)], outside[~np.isnan(outside)]
        if len(outside) < 2 or not len(inside):
            raise SchemaError(
                f"{type(self).__name__} needs counterfactuals of at least one member and two strangers; hardly anybody "
                f"gets one here. Give a larger table or control, or raise n_targets."
            )
        told_by = tell_members(inside, outside, self.fpr, self.random_state)
        return AttackResult(
            self.label,
            told_by.members,
            told_by.controls,
            told_by.baseline,
            detail=told_by.detail | detail,
            remarks=told_by.remarks,
            curve=told_by.curve,
        )

    def _by_alike(self, oracle: Explains, table: Table, known: Table) -> Usual:
        """Logarithms of the distances of the strangers who are most alike; so many strangers are asked at most."""
        rng = generator(self.random_state)
        some = known.frame.iloc[rng.permutation(len(known))[:_KNOWN]] if len(known) > _KNOWN else known.frame
        theirs = np.log(_distances(oracle, some, table, known) + _LEAST)
        answered = ~np.isnan(theirs)
        if not answered.any():
            return lambda people: np.full((len(people), 1), np.nan)
        return lambda people: theirs[answered][_alike(people, some[answered], table)]

    def _by_shadows(self, table: Table, known: Table) -> Usual:
        """Logarithms of distances by oracles that were fitted to strangers, person x oracle."""
        assert self.again is not None
        rng = generator(self.random_state)
        halves = (rng.permutation(len(known))[: max(len(known) * 2 // 3, 1)] for _ in range(self.shadows))
        oracles = [self.again(known.take(half)) for half in halves]

        def usual(people: pd.DataFrame) -> Floats:
            said = np.column_stack([np.log(_distances(o, people, table, known) + _LEAST) for o in oracles])
            said[np.isnan(said).all(axis=1)] = float(np.nanmean(said)) if not np.isnan(said).all() else 0.0
            return said

        return usual


def _unusual(oracle: Explains, people: pd.DataFrame, table: Table, known: Table, usual: Usual) -> Floats:
    """By how many standard deviations the logarithm of a distance is above what is usual for such a stranger."""
    here, there = np.log(_distances(oracle, people, table, known) + _LEAST), usual(people)
    if np.isnan(there).all():
        return np.full(len(people), np.nan)
    middle, spread = np.nanmean(there, axis=1), np.nanstd(there, axis=1)
    overall = float(np.nanmean(spread)) or 1.0
    score: Floats = (here - middle) / ((spread + overall) / 2)
    return score


def _distances(oracle: Explains, people: pd.DataFrame, table: Table, reference: Table) -> Floats:
    """How far each person's first counterfactual is; NaN where there is none."""
    rows = people[table.schema.features].reset_index(drop=True)
    e = answers_of(oracle, rows)
    assert e.query is not None
    out = np.full(len(rows), np.nan)
    if not e.found.any():
        return out
    sets = replace(value_sets(e), free=None)  # an asker's own values are as they were: no way to go
    space = Nearness(sets, table.schema.features, table.schema, reference.frame)
    asker = e.query[e.found]
    first = np.flatnonzero(np.concatenate([[True], asker[1:] != asker[:-1]]))
    asked = rows.iloc[asker]
    for at, columns in space.blocks(asked):
        total = np.add.reduce(columns)
        mine = first[(first >= at.start) & (first < at.stop)]
        out[asker[mine]] = total[mine - at.start, mine]
    return out


def _alike(people: pd.DataFrame, known: pd.DataFrame, table: Table) -> Ints:
    """The places of the most alike strangers of each person."""
    names = table.schema.features
    space = Nearness(plain_sets(known, names, table.schema), names, table.schema, known)
    n = min(_ALIKE, len(known))
    found = np.empty((len(people), n), dtype=np.int64)
    for at, columns in space.blocks(people):
        found[at] = np.argpartition(np.add.reduce(columns), n - 1, axis=1)[:, :n]
    return found
