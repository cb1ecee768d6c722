"""Linkability: two files about one person, joined through what was released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.planted import open_release
from countervail.attack.shared.released import Released, value_sets
from countervail.core.arrays import Bools, Ints, distinct_rows
from countervail.core.canonical import code_values
from countervail.core.errors import RefusedError, bad_parameter
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_TELLING: Final = 0.5  # of people whose halves meet where everything is open


class Linkability(SetAttack):
    """Join a person's two halves if the same released thing is nearest to both.

    Parameters
    ----------
    known, sought : sequence of str, optional
        The columns of the two files; default: quasi-identifiers, and the other features (two halves of the features
        where one of these is empty).
    n_targets : int, optional
        How many members, and how many strangers, are looked for.
    random_state : int
        Which ones, and which of equally near things is taken.

    Notes
    -----
    *Threat model*: someone with two files about the same people that share no column, such as a register and a
    customer file without names, and the release, which has columns of both. Success: the nearest thing to the one half
    is the nearest to the other. Of equally near things one is drawn for each half, so a class of k rows links with a
    chance of one in k. Blind: two things drawn at random.

    References
    ----------
    Article 29 Working Party: Opinion 05/2014; Giomi et al.: A unified framework for quantifying privacy risk in
    synthetic data (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> release = cv.Mondrian(k=20).fit(train).protect(train)
    >>> attack = cv.attack.Linkability()
    >>> attack.run(attack.planted(train, test), train, test).members.value > 0.9
    True
    >>> attack.run(release, train, test).members.value < 0.1
    True
    """

    name: ClassVar[str] = "linkability"
    criterion: ClassVar[Criterion] = "linkability"
    by_person: ClassVar[bool] = True  # each person's outcome is their own, whoever else is attacked

    def __init__(
        self,
        known: Sequence[str] | None = None,
        sought: Sequence[str] | None = None,
        *,
        n_targets: int | None = 1000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.known = known
        self.sought = sought

    def planted(self, table: Table, control: Table) -> Released:
        """Everybody's record as a table; refused where even that would join few people's halves."""
        release = open_release(table)
        halves = self._halves(release, table)
        if (share := _joined(table, halves)) < _TELLING:
            few = min(halves, key=lambda names: _kinds(table, names).max(initial=-1))
            raise RefusedError(
                f"Linkability can show nothing here: {few} tell too few people apart. Even where everything is open, "
                f"{share:.0%} of people's halves would be joined. Say known= and sought= to try other columns."
            )
        return release

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How many people's halves meet in one released thing."""
        halves = self._halves(release, table)
        sets, rng = value_sets(release), generator(self.random_state)
        orders = [rng.permutation(len(sets)) for _ in halves]
        spaces = [Nearness(sets[o], names, table.schema, control.frame) for o, names in zip(orders, halves)]

        def linked(people: pd.DataFrame) -> Bools:
            if not len(sets):
                return np.zeros(len(people), dtype=bool)
            one, other = (o[s.nearest_thing(people)[0]] for o, s in zip(orders, spaces))
            return np.asarray(one == other)

        inside, outside = linked(self._drawn(table)), linked(self._drawn(control))
        blind = rng.integers(max(len(sets), 1), size=(2, len(inside)))
        return AttackResult(
            self.label,
            clopper_pearson(int(inside.sum()), len(inside)),
            clopper_pearson(int(outside.sum()), len(outside)),
            clopper_pearson(int((blind[0] == blind[1]).sum()) if len(sets) else 0, len(inside)),
        )

    def _halves(self, release: Released, table: Table) -> tuple[list[str], list[str]]:
        shown = self._names(release, table, "features")
        for parameter in ("known", "sought"):
            given = getattr(self, parameter)
            if given is not None and (isinstance(given, str) or not given or any(n not in shown for n in given)):
                must = f"a list of released features, such as {shown[:2]}"
                raise bad_parameter("Linkability", parameter, must, given)
        quasi = [n for n in shown if n in table.schema.names("quasi")]
        others = [n for n in shown if n not in quasi]
        if self.known is None and self.sought is None:
            halves = (quasi, others) if quasi and others else (shown[0::2], shown[1::2])
        elif self.known is not None:
            rest = [n for n in shown if n not in self.known]
            halves = (list(self.known), list(self.sought) if self.sought is not None else rest)
        else:
            assert self.sought is not None
            halves = ([n for n in shown if n not in self.sought], list(self.sought))
        if not halves[0] or not halves[1] or set(halves[0]) & set(halves[1]):
            must = "two lists of released features that share none, neither of them empty"
            raise bad_parameter("Linkability", "known, sought", must, halves)
        return halves


def _joined(table: Table, halves: tuple[list[str], list[str]]) -> float:
    """The expected share of people whose halves meet in their own record, where everybody's is published as it is."""
    one, other = (_kinds(table, names) for names in halves)
    both = distinct_rows(np.column_stack([one, other]))[1]
    alike = [np.bincount(kind)[kind] for kind in (one, other, both)]
    return float((alike[2] / (alike[0] * alike[1])).mean())


def _kinds(table: Table, names: list[str]) -> Ints:
    """A number for each person, shared by those who are alike in these columns."""
    codes = [code_values(table.frame[name])[0] for name in names]
    return distinct_rows(np.column_stack(codes))[1]
