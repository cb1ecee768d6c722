"""Intersection: several answers about one person leave fewer people than each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, always_same, answers_of
from countervail.attack.result import AttackResult
from countervail.attack.shared.crowds import coincidence, crowd
from countervail.attack.shared.persons import many, owners, register_of, thinned
from countervail.attack.shared.planted import VerbatimOracle, those_alone
from countervail.core.arrays import Bools, Ints
from countervail.core.cells import cell_text
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.people import people_of, person_columns
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_FEWEST = 20  # strangers in whose name nobody asks, for them to say what happens by chance


class Intersection(OracleAttack):
    """Ask the same and nearly the same again, and intersect the regions of answers about one person.

    Parameters
    ----------
    repeats : int
        How often each query is asked.
    n_targets : int, optional
        How many different queries are asked.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: a register of quasi-identifiers, and as many questions as one likes. The released private attributes
    serve as a pseudonym: answers to one query that share them are taken to speak of one person. Where their regions
    have nobody in common they do not, and each stands for itself. Where answers move only some features towards a
    neighbour, the attack is told the whole neighbour behind each. Controls: the same regions among as many strangers in
    whose name nobody asks: what is drawn or made up fits one person by chance.
    """

    name: ClassVar[str] = "intersection"
    criterion: ClassVar[Criterion] = "singling out"

    def __init__(self, *, repeats: int = 5, n_targets: int | None = 50, random_state: int = 0) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.repeats = repeats

    def between(self, first: Explains, second: Explains, table: Table, control: Table) -> AttackResult:
        """Two fits of the same people: intersect their answers about one pseudonym."""
        queries = self._drawn(control)[control.schema.features].reset_index(drop=True)
        register = register_of(table)
        seen: dict[str, tuple[list[Bools], list[Bools]]] = {}
        for place, oracle in enumerate((first, second)):
            for _, pseudonym, people in _answers(_told(oracle, queries), register):
                seen.setdefault(pseudonym, ([], []))[place].append(people)
        pairs = [(a, b) for one, other in seen.values() for a in one for b in other if (a & b).any()]
        sizes = np.array([_people(a & b, register) for a, b in pairs], dtype=np.int64)
        cases = thinned(sizes[_once([a & b for a, b in pairs])], table)
        alone, nobody = clopper_pearson(int((cases == 1).sum()), len(cases)), clopper_pearson(0, 0)
        return AttackResult(f"{self.name} (two fits)", alone, nobody, nobody, sizes)

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that answers with the records of those who are alone with theirs."""
        return VerbatimOracle(those_alone("Intersection", table, table.schema.names("quasi")))

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Ask as people of `control`; how many of the register are left for each person the answers spoke of."""
        if not table.schema.names("quasi"):
            raise SchemaError("Intersection needs quasi-identifiers. Give columns the role 'quasi'.")
        queries = self._drawn(control)[control.schema.features].reset_index(drop=True)
        strangers = self._strangers(control, many(table))
        members = len(table)
        sets, pseudonyms = self.ask(oracle, queries, register_of(table, *strangers), members)
        sizes, others = (_sizes([part(s) for s in sets], r) for part, r in _sides(members, table, strangers))
        first = _once([s[:members] for s in sets], pseudonyms)
        found = self._left(sizes, sizes[first], table)
        if not strangers:
            return found
        chance = coincidence(thinned(others[first], table), many(table), many(strangers[0]))
        return replace(found, controls=chance)

    def _picked(self, people: int) -> Ints:
        """Who asks: of few no more than two in three, so that some are left to compare with."""
        order = super()._picked(people)
        if self.n_targets is None or people - len(order) >= _FEWEST or people < 3 * _FEWEST:
            return order
        return np.sort(generator(self.random_state).permutation(people)[: 2 * people // 3])

    def _strangers(self, control: Table, members: int) -> list[Table]:
        """Those of the controls in whose name nobody asks, as many as there are members; none where all ask."""
        asking = np.isin(np.arange(len(control)), self._picked(len(control)))
        if owners(control) is not None:  # whoever asks with one row asks with all
            names = person_columns(control)
            both = pd.concat([control.frame[names], self._drawn(control)[names]], ignore_index=True)
            person = people_of(both, names)
            asking = np.isin(person[: len(control)], person[len(control) :])
        if (~asking).sum() < _FEWEST:
            return []
        return [crowd(control.take(~asking), members, self.random_state)]

    def ask(
        self, oracle: Explains, queries: pd.DataFrame, register: pd.DataFrame, members: int
    ) -> tuple[list[Bools], list[str]]:
        """The rows of the register, members first, that are left for each pseudonym seen, and the pseudonyms."""
        if self.repeats < 1:
            raise bad_parameter("Intersection", "repeats", "a whole number of at least 1", self.repeats)
        seen: dict[tuple[int, str], list[Bools]] = {}
        for _ in range(1 if always_same(oracle) else self.repeats):  # the same answer again leaves whom it left
            for group in (queries, self._nearly(queries)):
                for query, pseudonym, people in _answers(_told(oracle, group), register):
                    seen.setdefault((query, pseudonym), []).append(people)
        left = [(pseudonym, some) for (_, pseudonym), sets in seen.items() for some in _left(sets, members)]
        return [some for _, some in left], [pseudonym for pseudonym, _ in left]

    def _nearly(self, queries: pd.DataFrame) -> pd.DataFrame:
        """The queries with one numeric value moved a little, or as they are where there is none."""
        numeric = [n for n in queries.columns if pd.api.types.is_float_dtype(queries[n].dtype)]
        return queries.assign(**{n: queries[n] * (1 + 1e-6) for n in numeric[:1]})


def _told(oracle: Explains, queries: pd.DataFrame) -> Explanations:
    return answers_of(oracle, queries, behind=True)


def _answers(e: Explanations, register: pd.DataFrame) -> Iterator[tuple[int, str, Bools]]:
    """Query, released private values (none that is the asker's own) and matching people of each answer."""
    private = [n for n in e.counterfactuals.columns if n not in register.columns]
    shown = e.counterfactuals[private].astype(object).mask(e.unmoved(private), "its own")[e.found]
    inside = e.regions.covers(register)
    asked = np.arange(len(e)) if e.query is None else e.query
    for people, query, cells in zip(inside, asked[e.found], shown.itertuples(index=False)):
        yield int(query), "|".join(map(cell_text, cells)), people


def _sides(members: int, table: Table, strangers: list[Table]) -> list[tuple[Callable[[Bools], Bools], pd.DataFrame]]:
    """The parts of a set that are members, and that are strangers, each with their register."""
    return [
        (lambda rows: rows[:members], register_of(table)),
        (lambda rows: rows[members:], register_of(*strangers) if strangers else register_of(table)[:0]),
    ]


def _sizes(sets: list[Bools], register: pd.DataFrame) -> Ints:
    return np.array([_people(some, register) for some in sets], dtype=np.int64)


def _left(sets: list[Bools], members: int) -> list[Bools]:
    together: Bools = np.logical_and.reduce(sets)
    return [together] if together[:members].any() else sets


def _people(rows: Bools, register: pd.DataFrame) -> int:
    return int(rows.sum()) if register.index.is_unique else register.index[rows].nunique()


def _once(sets: Sequence[Bools], pseudonyms: Sequence[str] | None = None) -> Ints:
    """Where each different set of rows (under the same pseudonym) comes first."""
    names = pseudonyms or [""] * len(sets)
    first: dict[tuple[str, bytes], int] = {}
    for i, (name, rows) in enumerate(zip(names, sets)):
        first.setdefault((name, np.packbits(rows).tobytes()), i)
    return np.array(list(first.values()), dtype=np.int64)
