"""Attribute inference: all but one value of a person is known, and what was released tells the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, SetAttack
from countervail.attack.result import AttackResult, rate
from countervail.attack.shared.nearness import Block, Nearness
from countervail.attack.shared.released import Released, value_sets
from countervail.attack.singling_out import Columns
from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.canonical import code_values
from countervail.core.errors import bad_parameter
from countervail.core.region import Range, Regions
from countervail.core.table import Table

_SAME = np.float32(1e-5)  # distances that differ by less are the same


class AttributeInference(SetAttack):
    """Guess a value as the nearest released things have it, from all the other values of a person.

    Parameters
    ----------
    secret : sequence of str, optional
        The columns that are guessed, each from the others; default: the features that are no
        quasi-identifiers, or all of them.
    columns : {"features", "quasi"}
        What is known of a person besides: all other features, or the quasi-identifiers alone.
    tolerance : float
        A number is guessed right if it is this near, as a share of the true one.
    n_targets : int, optional
        How many members, and how many strangers, are attacked.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone who knows everything of a person but one value (or the quasi-identifiers only). Of the
    things that are nearest in what is known and say the value, the most frequent one is guessed. What the same attack
    achieves on strangers is what the release tells about people in general, and no leak; only the rest is. Blind: the
    most frequent value. `members` is the mean over columns, `detail` has each of them.

    References
    ----------
    Article 29 Working Party: Opinion 05/2014; Stadler, Oprisanu, Troncoso: Synthetic data - anonymisation groundhog day
    (2022); Giomi et al.: A unified framework for quantifying privacy risk in synthetic data (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.AttributeInference(["purpose"], n_targets=100)
    >>> attack.run(attack.planted(train, test), train, test).members.value
    1.0
    """

    name: ClassVar[str] = "attribute-inference"
    criterion: ClassVar[Criterion] = "inference"
    by_person: ClassVar[bool] = True  # each person's outcome is their own, whoever else is attacked

    def __init__(
        self,
        secret: Sequence[str] | None = None,
        *,
        columns: Columns = "features",
        tolerance: float = 0.05,
        n_targets: int | None = 500,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.secret = secret
        self.columns = columns
        self.tolerance = tolerance

    def figures(self, release: Released, table: Table, control: Table) -> AttackResult:
        """How many values are guessed right, person x column."""
        if not 0 <= self.tolerance < 1:
            raise bad_parameter("AttributeInference", "tolerance", "at least 0 and below 1", self.tolerance)
        names = self._names(release, table, "features")
        secret = self._secrets(names, table)
        sets, known = value_sets(release), self._names(release, table, self.columns)
        space = Nearness(sets, known, table.schema, control.frame)
        members, strangers = self._drawn(table), self._drawn(control)
        inside, outside = (self._right(space, sets, secret, people) for people in (members, strangers))
        blind = np.column_stack([self._blind(control.frame[n], members[n], table) for n in secret])
        detail = {}
        for j, name in enumerate(secret):
            detail[f"{name}: members"], detail[f"{name}: controls"] = rate(inside[:, [j]]), rate(outside[:, [j]])
        return AttackResult(self.label, rate(inside), rate(outside), rate(blind), detail=detail)

    def _secrets(self, names: list[str], table: Table) -> list[str]:
        quasi = table.schema.names("quasi")
        if self.secret is None:
            return [n for n in names if n not in quasi] or names
        if isinstance(self.secret, str) or not self.secret or any(n not in names for n in self.secret):
            raise bad_parameter("AttributeInference", "secret", f"a list of released features of {names}", self.secret)
        return list(self.secret)

    def _right(self, space: Nearness, sets: Regions, secret: list[str], people: pd.DataFrame) -> Bools:
        right = np.zeros((len(people), len(secret)), dtype=bool)
        if not space.things or not set(space.names) - {secret[0]}:
            return right
        said = {n: _said(sets, n) for n in secret}
        truth = {n: self._true(said[n][1], people[n]) for n in secret}
        for at, columns in space.blocks(people):
            total = np.add.reduce(columns)
            for j, name in enumerate(secret):
                codes, kinds = said[name]
                known = np.flatnonzero(codes >= 0)
                if len(known):
                    apart = total - columns[space.names.index(name)] if name in space.names else total
                    votes = _votes(apart[:, known] if len(known) < len(codes) else apart, codes[known], len(kinds))
                    right[at, j] = self._agrees(kinds, votes, truth[name][at])
        return right

    def _true(self, kinds: Any, values: pd.Series) -> Any:
        """What people have: numbers, or the place of their value among those released (-1: it was not)."""
        if isinstance(kinds, np.ndarray):
            return values.to_numpy(dtype=float, na_value=np.nan)
        position = {v: i for i, v in enumerate(kinds)}
        codes, own = code_values(values)
        return np.array([position.get(v, -1) for v in own], dtype=np.int64)[codes]

    def _agrees(self, kinds: Any, votes: Ints, truth: Any) -> Bools:
        if isinstance(kinds, np.ndarray):
            return self._near(kinds[votes], truth)
        return np.asarray(votes == truth)

    def _near(self, guess: Floats, truth: Floats) -> Bools:
        near: Bools = (np.abs(guess - truth) <= self.tolerance * np.abs(truth)) | (np.isnan(guess) & np.isnan(truth))
        return near

    def _blind(self, reference: pd.Series, values: pd.Series, table: Table) -> Bools:
        """Who is right by the guess that is right for most strangers."""
        if not table.schema[str(reference.name)].numeric:
            top = reference.value_counts().index[:1].tolist()
            return values.isin(top).to_numpy(dtype=bool)
        numbers, truth = (v.to_numpy(dtype=float, na_value=np.nan) for v in (reference, values))
        held = np.unique(numbers[~np.isnan(numbers)])
        if not len(held):
            return np.zeros(len(truth), dtype=bool)
        tried = held[np.unique(np.linspace(0, len(held) - 1, 200).astype(int))]
        best = max(tried, key=lambda v: int(self._near(np.full(len(numbers), v), numbers).sum()))
        return self._near(np.full(len(truth), best), truth)


def _said(sets: Regions, name: str) -> tuple[Ints, Any]:
    """Which value each thing says in a column (-1: none in particular), and the values."""
    place = sets.names.index(name)
    axis = sets.axes[place]
    kinds: Any
    if isinstance(axis, Range):
        plain = axis.low == axis.high
        codes, kinds = pd.factorize(np.where(plain, axis.low, np.nan))
    else:
        known = code_values(pd.Series(list(axis.known), dtype=object))
        codes, kinds = np.where(axis.sizes == 1, axis.first, -1), [known[1][c] for c in known[0]]
    codes = codes.astype(np.int64)
    if sets.free is not None:
        codes[sets.free[:, place]] = -1
    return codes, kinds


def _votes(apart: Block, codes: Ints, kinds: int) -> Ints:
    """The most frequent value among the nearest things of each person; of equally frequent ones the first."""
    nearest = apart.min(axis=1, keepdims=True)
    person, thing = np.nonzero(apart <= nearest + _SAME)
    ballots, counts = np.unique(person * kinds + codes[thing], return_counts=True)
    order = np.lexsort([ballots, -counts, ballots // kinds])
    voter = ballots[order] // kinds
    first = np.concatenate([[True], voter[1:] != voter[:-1]])
    chosen: Ints = ballots[order][first] % kinds
    return chosen
