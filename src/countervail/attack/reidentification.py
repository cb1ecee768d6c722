"""Re-identification by distance: what was released lies nearer to one person of the data than strangers do."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult
from countervail.attack.shared.cases import first_of_each, over_columns
from countervail.attack.shared.crowds import coincidence, crowd
from countervail.attack.shared.nearness import Nearness
from countervail.attack.shared.persons import many, owners, thinned
from countervail.attack.shared.planted import jittered_explanations, open_explanations, those_alone
from countervail.attack.shared.released import Released, plain_sets, value_sets
from countervail.attack.singling_out import Columns, count_people
from countervail.core.errors import bad_parameter
from countervail.core.region import Regions
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_HAIR = 0.01  # what lies as near as this lies near, even where strangers often equal somebody


class Reidentification(SetAttack):
    """Take a released thing for the one person whom it lies nearer to than strangers lie to anybody.

    Parameters
    ----------
    columns : {"quasi", "features"}
        What the distance looks at: what others may know (all features where no quasi-identifier is declared), or
        every feature.
    share : float
        "Near" is what this share of strangers reach by chance: that quantile of their own nearest distances.
    n_targets : int, optional
        How many released things, and how many strangers, are measured.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone who holds records and looks for the one behind an answer. A counterfactual that equals no
    row is no evidence of privacy: a tiny jitter on copied rows reaches that, and is found here. `members` is the share
    of things that lie near exactly one person of the data, `controls` near one of as many strangers; `detail` has the
    shares of exact copies. Equal things are one case, however many people got them. Distances are HEOM; a range or set
    lies from a person as its values do on average, so that a wide one is near to nobody, and an asker's own values lie
    as far as any two people's. What fits several people speaks of all of them (`set_sizes`), to whomever its middle
    lies nearest. With `features`, whoever knows the private values too finds k-anonymous rows that show them as they
    are.

    References
    ----------
    Vo et al.: Feature-based learning for diverse and privacy-preserving counterfactual explanations (2023), for the
    match rates M0 and M1; Platzer, Reutterer: Holdout-based empirical assessment of mixed-type synthetic data (2021).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("german_credit")
    >>> train, test = table.split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.Reidentification(n_targets=50)
    >>> attack.run(attack.planted(train, test), train, test).members.value > 0.8  # copied rows under a tiny jitter
    True
    """

    name: ClassVar[str] = "reidentification"
    criterion: ClassVar[Criterion] = "singling out"

    def __init__(
        self,
        columns: Columns = "quasi",
        *,
        share: float = 0.05,
        n_targets: int | None = 1000,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.columns = columns
        self.share = share

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(), cls("features")]

    def planted(self, table: Table, control: Table) -> Released:
        """The records of those who are alone with theirs, under a tiny jitter."""
        names = self._names(open_explanations(table), table, self.columns)
        return jittered_explanations(those_alone("Reidentification", table, names))

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How many things lie near one person: of the data, of strangers."""
        if not 0 < self.share < 1:
            raise bad_parameter("Reidentification", "share", "strictly between 0 and 1", self.share)
        names = self._names(release, table, self.columns)
        strangers = crowd(control, many(table), self.random_state)
        drawn = self._drawn(control)
        own = Nearness(plain_sets(drawn, names, control.schema), names, table.schema, control.frame)
        limit = max(float(np.quantile(own.nearest_person(table.frame), self.share)), _HAIR)
        sets = value_sets(release)
        first = first_of_each(sets, names)
        order = generator(self.random_state).permutation(len(first))[: self.n_targets]
        tried: Regions = sets[first[np.sort(order)]]
        space, whose = Nearness(tried, names, table.schema, control.frame), owners(table)
        near = space.people_within(table.frame, limit, whose)
        fits = count_people(over_columns(tried, names), table.frame, whose)
        inside, copies = (thinned(c, table) for c in (near, space.people_within(table.frame, 1e-6, whose)))
        outside = thinned(space.people_within(strangers.frame, limit, owners(strangers)), table)
        return AttackResult(
            self.label,
            clopper_pearson(int((inside == 1).sum()), len(inside)),
            coincidence(outside, many(table), many(strangers)),
            clopper_pearson(round(self.share * len(drawn)), len(drawn)),
            np.where(near > 0, np.maximum(near, fits), 0),
            {
                "equals nobody": clopper_pearson(int((copies == 0).sum()), len(copies)),
                "near somebody": clopper_pearson(int((inside > 0).sum()), len(inside)),
                "equals one person": clopper_pearson(int((copies == 1).sum()), len(copies)),
            },
        )
