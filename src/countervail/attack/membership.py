"""Membership: whoever lies near to what was released was in the data."""

from __future__ import annotations

from typing import ClassVar

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.released import Released, value_sets
from countervail.attack.shared.roc import tell_members
from countervail.attack.singling_out import Columns
from countervail.core.table import Table


class Membership(SetAttack):
    """Tell members by their distance to the nearest counterfactual or row, without asking the model.

    Parameters
    ----------
    columns : {"features", "quasi"}
        What is known of the people who are suspected to be in the data.
    fpr : float
        The share of strangers that may be taken for members; the threshold is set on one half of them, and rates are
        counted on members and on the other half.
    n_targets : int, optional
        How many members, and how many strangers, are suspected.
    random_state : int
        Which ones, and which strangers set the threshold.

    Notes
    -----
    *Threat model*: someone who holds a person's record and the set of all counterfactuals (or a table), not the model.
    `detail` has the area under the curve and true positive rates at false positive rates of 10, 1 and 0.1%; `remarks`
    say which of them the number of controls cannot show. k-anonymity promises nothing here: who knows a record
    whole may see that its private values were handed out.

    References
    ----------
    Pawelczyk, Lakkaraju, Neel: On the privacy risks of algorithmic recourse (2023); Carlini et al.: Membership
    inference attacks from first principles (2022), for the rates that count; sets of counterfactuals: arXiv 2606.06334.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.Membership()
    >>> attack.run(attack.planted(train, test), train, test).detail["AUC"].value  # everybody's record was released
    1.0
    """

    name: ClassVar[str] = "membership"
    criterion: ClassVar[Criterion] = "membership"
    by_person: ClassVar[bool] = True  # each person's outcome is their own, whoever else is attacked

    def __init__(
        self,
        columns: Columns = "features",
        *,
        fpr: float = 0.1,
        n_targets: int | None = 2000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.columns = columns
        self.fpr = fpr

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How well nearness tells members from strangers."""
        names = self._names(release, table, self.columns)
        space = Nearness(value_sets(release), names, table.schema, control.frame)
        members, strangers = (-space.nearest_thing(self._drawn(t))[1] for t in (table, control))
        told = tell_members(members, strangers, self.fpr, self.random_state)
        return AttackResult(
            self.label,
            told.members,
            told.controls,
            told.baseline,
            detail=told.detail,
            remarks=told.remarks,
            curve=told.curve,
        )
