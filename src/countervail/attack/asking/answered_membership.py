"""Membership by silence: whether somebody gets a counterfactual at all depends on who was in the data."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, answers_of
from countervail.attack.result import AttackResult
from countervail.attack.shared.persons import one_row_each
from countervail.attack.shared.planted import RefusingOracle
from countervail.core.arrays import Bools, Ints
from countervail.core.errors import SchemaError
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_TRIES = 3  # times as many people are asked about, because some are decided in favour of
_LEARNT = 4  # one in so many people says which way to guess
_FEWEST = 2 * _LEARNT


class AnsweredMembership(OracleAttack):
    """Ask in people's names, and tell members by whether they get a counterfactual at all.

    Parameters
    ----------
    n_targets : int, optional
        How many members, and how many strangers, count at most; those who are decided in favour of do not.
    random_state : int
        Which ones, and on whom it is learnt which way to guess.

    Notes
    -----
    *Threat model*: someone who holds a person's record whole and asks in that person's name. A quarter of the people
    say whether members or strangers are refused more often; the guess is tried on the others. People whom the model
    decides in favour of are left out: what a decision says of who was in the data is the model's matter, and of whoever
    asks for a reason nobody can claim it. `RecourseMembership` looks at those who get an answer.

    References
    ----------
    Pawelczyk, Lakkaraju, Neel: On the privacy risks of algorithmic recourse (2023), whose attacks need an answer.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.AnsweredMembership(n_targets=100)
    >>> attack.run(attack.planted(train, test), train, test).members.value > 0.9
    True
    """

    name: ClassVar[str] = "answered-membership"
    criterion: ClassVar[Criterion] = "membership"

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that refuses members."""
        return RefusingOracle(table)

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """How often members, and strangers, are treated as members mostly are."""
        control = one_row_each(control, self.random_state)
        inside, outside = (self._answered(oracle, one_row_each(t, self.random_state)) for t in (table, control))
        if min(len(inside), len(outside)) < _FEWEST:
            raise SchemaError(
                f"AnsweredMembership needs at least {_FEWEST} members and as many strangers who ask for another "
                f"decision; hardly anybody does. Give a larger table or control, or raise n_targets."
            )
        (learnt, members), (learnt_outside, strangers) = _parted(inside), _parted(outside)
        told = _rarer(learnt, learnt_outside)
        return AttackResult(
            self.label,
            clopper_pearson(int((members == told).sum()), len(members)),
            clopper_pearson(int((strangers == told).sum()), len(strangers)),
            clopper_pearson(int((learnt_outside == told).sum()), len(learnt_outside)),
            detail={
                "members who get an answer": clopper_pearson(int(inside.sum()), len(inside)),
                "strangers who get an answer": clopper_pearson(int(outside.sum()), len(outside)),
            },
        )

    def _answered(self, oracle: Explains, people: Table) -> Bools:
        """Who gets an answer, of those who ask for another decision; in an order drawn at random."""
        order = generator(self.random_state).permutation(len(people))
        tried: Ints = order if self.n_targets is None else order[: _TRIES * self._most(len(order))]
        rows = people.features.iloc[tried].reset_index(drop=True)
        e = answers_of(oracle, rows)
        status = pd.Series(e.status.to_numpy()).groupby(np.asarray(e.query)).agg(set).reindex(range(len(rows)))
        wanting = [s for s in status if isinstance(s, set) and "already_favourable" not in s]
        return np.array(["found" in s for s in wanting], dtype=bool)[: self.n_targets]

    def _most(self, people: int) -> int:
        return len(self._picked(people))


def _parted(answered: Bools) -> tuple[Bools, Bools]:
    """Those who say which way to guess, and the others."""
    few = len(answered) // _LEARNT
    return answered[:few], answered[few:]


def _rarer(members: Bools, strangers: Bools) -> bool:
    """What is commoner among members than among strangers; where neither is, what is rarer among both."""
    if members.mean() != strangers.mean():
        return bool(members.mean() > strangers.mean())
    return bool(members.mean() + strangers.mean() < 1)
