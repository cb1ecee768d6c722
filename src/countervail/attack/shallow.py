"""The shallow attack: what all released rows that fit a few known values have in common."""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, Knowledge, Plan, ReleaseAttack, Scored
from countervail.attack.shared.persons import register_counts, register_of
from countervail.attack.shared.released import Released, value_sets
from countervail.core.arrays import Bools, Ints, number_columns, number_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.region import Regions
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

Attacked = Literal["conditions", "decision"]


class Shallow(ReleaseAttack):
    """Intersect the value sets of everything released that can take the values known.

    Parameters
    ----------
    attacked : {"conditions", "decision"}
        Look for the other features, or for the target.
    known : int
        How many features of a person are known; every combination of that many is tried.
    n_targets : int, optional
        How many people are attacked; all by default.
    random_state : int
        Which ones, if not all.

    Notes
    -----
    *Threat model*: someone who knows a few values of a person, and which values a column can have. Success: exactly one
    value is left, and it is the person's. `members` is a share of all attacks on a person, over people;
    `detail["value combinations"]` is the paper's figure, which counts every combination of known values once.

    References
    ----------
    Inuiguchi, Ichida, Torra: Data anonymization with imprecise rules and its performance evaluations (2019).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_evaluation")
    >>> release = cv.KCommonPatterns(k=2, random_state=0).fit(table).protect(table)
    >>> result = cv.attack.Shallow("decision", known=1).run(release, table, control=table)
    >>> round(result.detail["value combinations"].value, 2)
    0.0
    """

    name: ClassVar[str] = "shallow"
    criterion: ClassVar[Criterion] = "inference"
    joint: ClassVar[bool] = False
    for_small_tables: ClassVar[bool] = True

    def __init__(
        self,
        attacked: Attacked = "conditions",
        *,
        known: int = 2,
        n_targets: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.attacked = attacked
        self.known = known

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return f"{self.name} ({self.attacked})"

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    def plans(self, table: Table) -> list[Plan]:
        """Every combination of known features, against the other features or the target."""
        owner, features = type(self).__name__, table.schema.features
        if self.attacked not in ("conditions", "decision"):
            raise bad_parameter(owner, "attacked", "'conditions' or 'decision'", self.attacked)
        most = len(features) - (self.attacked == "conditions")
        if not isinstance(self.known, (int, np.integer)) or isinstance(self.known, bool) or not 1 <= self.known <= most:
            raise bad_parameter(owner, "known", f"a whole number from 1 to {most} for this table", self.known)
        if self.attacked == "decision" and table.schema.target is None:
            raise SchemaError(f"{owner}(attacked='decision') needs a target column. Declare one.")
        target = str(table.schema.target)
        return [
            Plan(k, (target,) if self.attacked == "decision" else tuple(n for n in features if n not in k))
            for k in combinations(features, self.known)
        ]

    def register(self, table: Table, control: Table) -> pd.DataFrame:
        """Everybody's features; a guess sees of them only what is known of its target."""
        return register_of(table, names=table.schema.features)

    def sizes(self, release: Released, register: pd.DataFrame) -> Ints:
        """How many people fit each released row."""
        return register_counts(value_sets(release), register)

    def guess(self, release: Released, known: Knowledge) -> pd.DataFrame:
        """The one value left in each column looked for; missing where none or several are."""
        kinds, which = distinct_targets(known.targets)
        sets = value_sets(release)
        fits = fitting(sets, kinds)
        found = {n: self._column(sets, fits, kinds, n, known) for n in known.secret}
        return pd.DataFrame({n: v[which] for n, v in found.items()}, dtype=object)

    def details(self, release: Released, members: list[Scored]) -> dict[str, Estimate]:
        """The paper's figure: combinations of known values for which some person's value is found."""
        return {"value combinations": by_values(members)}

    def _column(self, sets: Regions, fits: Bools, kinds: pd.DataFrame, name: str, known: Knowledge) -> Any:
        return single_values(sets, fits, name, known)


def single_values(sets: Regions, fits: Bools, name: str, known: Knowledge) -> Any:
    """For each combination of known values the one value that all fitting rows can have, or None."""
    values = known.domains[name]
    out = np.full(fits.shape[1], None, dtype=object)
    can = possible(sets, name, values)
    if can is None or not values or not len(can):
        return out
    refused = fits.T.astype(np.float32) @ (~can).astype(np.float32)
    left = (refused == 0) & np.asarray(fits.any(axis=0))[:, None]
    alone = np.flatnonzero(left.sum(axis=1) == 1)
    for i in alone:
        out[i] = values[int(left[i].argmax())]
    return out


def possible(sets: Regions, name: str, values: Any) -> Bools | None:
    """Released row x value: which values a row can have; None when the column was not released."""
    place = next((j for j, a in enumerate(sets.axes) if a.name == name), None)
    if place is None:
        return None
    can = sets.axes[place].covers(pd.Series(values, dtype=None if values else object))
    return can if sets.free is None else can | sets.free[:, place, None]


def fitting(sets: Regions, kinds: pd.DataFrame) -> Bools:
    """Released row x combination: which rows can take all the known values."""
    return sets.covers(kinds)


def distinct_targets(targets: pd.DataFrame) -> tuple[pd.DataFrame, Ints]:
    """The different combinations of known values, and which of them each person has."""
    which = pd.factorize(number_rows(number_columns(targets, list(targets.columns))))[0].astype(np.int64)
    _, first = np.unique(which, return_index=True)
    return targets.iloc[first].reset_index(drop=True), which


def by_values(scored: list[Scored]) -> Estimate:
    """Share of combinations of known values, column by column, for which somebody's value was found."""
    hits = n = 0
    for s in scored:
        _, which = distinct_targets(s.known.targets)
        found = np.zeros((int(which.max(initial=-1)) + 1, s.right.shape[1]), dtype=bool)
        np.logical_or.at(found, which, s.right)
        hits, n = hits + int(found.sum()), n + found.size
    return clopper_pearson(hits, n)
