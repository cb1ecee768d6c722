"""Row order: a published table whose rows stand as the people stood in the table behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult, right_rows
from countervail.attack.shared.persons import hit_once, owners
from countervail.attack.shared.planted import open_release
from countervail.attack.shared.released import Released
from countervail.core.arrays import Bools, Ints
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.release import Release
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_PAIRS = 2 * 10**7  # people times classes that are gone through


class RowOrder(SetAttack):
    """Take the rows of a class for the people who fit it, in the order in which these stand in the table.

    Parameters
    ----------
    n_targets : int, optional
        How many rows are tried, in whole classes.
    random_state : int
        Which classes.

    Notes
    -----
    *Threat model*: someone who knows what others may know of people (quasi-identifiers) and in which order they stand
    in the table, such as by name, by number or by the day they came. Success: all that the row shows beside its
    quasi-identifiers is that person's. Controls: the same people in an order that is drawn at random, which is what the
    values of a class give away in any order; blind the same, drawn once more. Tools that change cells and leave rows
    where they are give all of it away, whatever k is. Other orders (by a column that is not published, backwards)
    are not tried.

    References
    ----------
    Sweeney: k-anonymity, a model for protecting privacy (2002), section 4.1: the unsorted matching attack.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.RowOrder()
    >>> float(attack.run(attack.planted(train, test), train, test).members.value)
    1.0
    >>> attack.run(cv.Mondrian(k=20).fit(train).protect(train), train, test).members.value < 0.1
    True
    """

    name: ClassVar[str] = "row-order"
    criterion: ClassVar[Criterion] = "linkability"
    tables_only: ClassVar[bool] = True

    def planted(self, table: Table, control: Table) -> Released:
        """Everybody's record as a table, in the order of the people."""
        return open_release(table)

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How many rows are those of the people at their places, and at places drawn at random."""
        if not isinstance(release, Release):
            raise SchemaError("Answers stand in the order of the questions: orders are looked at in tables only.")
        if self.n_targets is not None and self.n_targets < 1:
            raise bad_parameter("RowOrder", "n_targets", "None or a whole number of at least 1", self.n_targets)
        names = [n for n in release.others.columns if n in table.frame.columns]
        if not names:
            raise SchemaError("RowOrder looks at columns that are published as they are, and there is none.")
        rng = generator(self.random_state)
        parts = list(self._matched(release, table, rng))
        if not parts:
            raise SchemaError("RowOrder needs classes with as many rows as there are people who fit them.")
        rows = np.concatenate([r for r, _ in parts])
        shown = release.others[names].iloc[rows]

        whose = owners(table)

        def right(places: list[Ints]) -> Bools:
            at = np.concatenate(places)
            person = None if whose is None else pd.factorize(whose[at])[0].astype(np.int64)
            return hit_once(right_rows(shown, table.frame[names].iloc[at]), person)

        told = [right([p for _, p in parts])] + [right([rng.permutation(p) for _, p in parts]) for _ in range(2)]
        kept, mixed, blind = (clopper_pearson(int(r.sum()), len(r)) for r in told)
        return AttackResult(self.label, kept, mixed, blind)

    def _matched(self, release: Release, table: Table, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
        """Rows and people of some classes, as many of both, in their orders."""
        people = table.frame
        if not release.regions.axes:  # every row could be anybody's
            if len(release) == len(people):
                some = np.sort(rng.permutation(len(people))[: self.n_targets])
                yield some, some
            return
        held, tried = release.holding(), 0
        names, of = [a.name for a in held.axes], release.classes()  # rows of a file may each have a region of their own
        first = np.unique(of, return_index=True)[1]
        for at in rng.permutation(first)[: max(_PAIRS // max(len(people), 1), 20)]:
            rows = np.flatnonzero(of == of[at])
            fitting = np.flatnonzero(held[release.groups[[at]]].covers(people[names])[0])
            if len(rows) == len(fitting):
                yield rows, fitting
                tried += len(rows)
            if self.n_targets is not None and tried >= self.n_targets:
                return
