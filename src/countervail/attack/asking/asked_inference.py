"""Attribute inference by asking: one value is made up, and the answer puts the true one in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, answers_of
from countervail.attack.result import AttackResult, rate
from countervail.attack.shared.persons import one_row_each
from countervail.attack.shared.planted import CompletingOracle
from countervail.attack.shared.released import alike
from countervail.core.arrays import Bools
from countervail.core.cells import is_missing
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import Estimate
from countervail.core.table import Table

_WIDE = (pd.Interval, frozenset)
_COLUMNS = 5  # that are asked about, unless they are named


class AskedInference(OracleAttack):
    """Ask in a person's name with one value made up, and take what the answer puts in its place for the true one.

    Parameters
    ----------
    secret : sequence of str, optional
        The columns that are guessed, one at a time; default: those declared sensitive, else the features that are no
        quasi-identifiers, else all of them, and five at most (`remarks` say how many are left).
    tolerance : float
        A number is guessed right if it is this near, as a share of the true one.
    n_targets : int, optional
        How many members, and how many strangers, are asked about.
    random_state : int
        Which ones, and which values are made up.

    Notes
    -----
    *Threat model*: someone who knows everything of a person but one value, and may ask. Two values that strangers have
    are made up, one after the other: one at least is not the true one. An answer that leaves what was asked with, or
    shows a range or a set, guesses nothing. Controls: strangers, whom an answer cannot know. Blind: the most frequent
    value of strangers.
    `AttributeInference` reads answers to others; here the answer is to a question that fits one person alone.

    References
    ----------
    Fredrikson, Jha, Ristenpart: Model inversion attacks that exploit confidence information (2015), who ask a model so.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.AskedInference(["purpose"], n_targets=50)
    >>> found = attack.run(attack.planted(train, test), train, test)
    >>> found.members.value > found.controls.value + 0.3
    True
    """

    name: ClassVar[str] = "asked-inference"
    criterion: ClassVar[Criterion] = "inference"

    def __init__(
        self,
        secret: Sequence[str] | None = None,
        *,
        tolerance: float = 0.05,
        n_targets: int | None = 100,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.secret = secret
        self.tolerance = tolerance

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that completes questions to the records that they fit best."""
        return CompletingOracle(table)

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """How many values are guessed right, person x column."""
        if not 0 <= self.tolerance < 1:
            raise bad_parameter("AskedInference", "tolerance", "at least 0 and below 1", self.tolerance)
        control = one_row_each(control, self.random_state)
        secret = self._secrets(table)
        members, strangers = self._drawn(table), self._drawn(control)
        inside, outside = (self._right(oracle, people, secret, table, control) for people in (members, strangers))
        blind = np.column_stack([self._blind(control, members, n) for n in secret])
        detail: dict[str, Estimate] = {}
        for j, name in enumerate(secret):
            detail[f"{name}: members"], detail[f"{name}: controls"] = rate(inside[:, [j]]), rate(outside[:, [j]])
        left = 0 if self.secret is not None else len(_guessed(table)) - len(secret)
        said = (f"{left} further columns were not asked about; name them in `secret` to try them.",) if left else ()
        return AttackResult(self.label, rate(inside), rate(outside), rate(blind), detail=detail, remarks=said)

    def _secrets(self, table: Table) -> list[str]:
        schema = table.schema
        if self.secret is None:
            return _guessed(table)[:_COLUMNS]
        if isinstance(self.secret, str) or not self.secret or any(n not in schema.features for n in self.secret):
            raise bad_parameter("AskedInference", "secret", f"a list of features of {schema.features}", self.secret)
        return list(self.secret)

    def _right(self, oracle: Explains, people: pd.DataFrame, secret: list[str], table: Table, control: Table) -> Bools:
        """Person x column: whose value the answer puts in the place of one that was made up."""
        rng, features = generator(self.random_state), people[table.schema.features].reset_index(drop=True)
        right = np.zeros((len(people), len(secret)), dtype=bool)
        for j, name in enumerate(secret):
            guesses: dict[int, Any] = {}
            for made_up in _made_up(control.frame[name], len(people), rng):
                asked = features.assign(**{name: made_up})
                for q, value in _put_in_place(answers_of(oracle, asked), asked, name).items():
                    guesses.setdefault(q, value)
            truth = features[name].tolist()
            right[:, j] = [q in guesses and self._same(guesses[q], truth[q]) for q in range(len(people))]
        return right

    def _same(self, shown: Any, truth: Any) -> bool:
        if isinstance(shown, _WIDE) or is_missing(shown) or is_missing(truth):
            return is_missing(shown) and is_missing(truth)
        if isinstance(truth, (int, float, np.number)) and isinstance(shown, (int, float, np.number)):
            return abs(float(shown) - float(truth)) <= self.tolerance * abs(float(truth))
        return bool(shown == truth)

    def _blind(self, control: Table, people: pd.DataFrame, name: str) -> Bools:
        held = control.frame[name].dropna()
        if not len(held):
            raise SchemaError(f"AskedInference finds no value of '{name}' among the controls. Leave it out of secret=.")
        numeric = control.schema[name].numeric
        typical = float(held.median()) if numeric else held.value_counts().index[0]
        return np.array([self._same(typical, truth) for truth in people[name].tolist()], dtype=bool)


def _guessed(table: Table) -> list[str]:
    schema = table.schema
    return schema.names("sensitive") or schema.names("attribute") or schema.features


def _made_up(held: pd.Series, people: int, rng: np.random.Generator) -> Iterator[pd.Series]:
    """For each person two values that strangers have, different where there are two: one at least is not hers."""
    rows = rng.integers(len(held), size=people)
    kinds = held.iloc[rng.permutation(len(held))].drop_duplicates()
    codes = pd.Index(kinds).get_indexer(held)
    beside = (codes[rows] + 1 + rng.integers(max(len(kinds) - 1, 1), size=people)) % len(kinds)
    yield held.iloc[rows].reset_index(drop=True)
    yield kinds.iloc[beside].reset_index(drop=True)


def _put_in_place(e: Explanations, asked: pd.DataFrame, name: str) -> dict[int, Any]:
    """What the first answer to each question shows in a column, where that is another value than was asked with."""
    if name not in e.counterfactuals:
        return {}
    query = np.asarray(e.query)
    hers = asked[name].iloc[query].reset_index(drop=True)
    first = np.zeros(len(e), dtype=bool)
    found = np.flatnonzero(e.found)
    first[found[np.unique(query[found], return_index=True)[1]]] = True
    moved = np.flatnonzero(first & ~alike(hers, e.counterfactuals[name]))
    shown = e.counterfactuals[name].tolist()
    return {int(query[i]): shown[i] for i in moved}
