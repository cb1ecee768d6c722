"""Cases are people: where somebody has several rows, they are on one side, are counted once, and are hit once."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints
from countervail.core.errors import ParameterError
from countervail.core.people import people_inside, people_of, person_columns
from countervail.core.region import Regions
from countervail.core.rng import generator
from countervail.core.table import Table

_PAIRS = 5 * 10**9  # of a region and a row, above which people are counted as the fewest whom so many rows can be
_OWNERS: WeakKeyDictionary[Table, Ints | None] = WeakKeyDictionary()  # asked for by every attack of a battery


def owners(table: Table) -> Ints | None:
    """Whose each row is, by the identifiers; None where everybody has one."""
    if table not in _OWNERS:
        names = person_columns(table)
        person = people_of(table.frame, names) if names else np.arange(len(table), dtype=np.int64)
        _OWNERS[table] = None if int(person.max(initial=-1)) + 1 == len(table) else person
    return _OWNERS[table]


def many(table: Table) -> int:
    """How many people the rows are about."""
    person = owners(table)
    return len(table) if person is None else int(person.max()) + 1


def one_row_each(table: Table, random_state: int) -> Table:
    """One row of everybody, drawn at random where they have several."""
    person = owners(table)
    if person is None:
        return table
    order = generator(random_state).permutation(len(table))
    return table.take(np.sort(order[np.unique(person[order], return_index=True)[1]]))


def without_members(control: Table, table: Table) -> Table:
    """Controls who have no row among the members; looked at where anybody has several rows."""
    if control is table or (owners(table) is None and owners(control) is None):
        return control
    names = person_columns(table)
    if not names or any(n not in control.frame.columns for n in names):
        return control
    both = people_of(pd.concat([table.frame[names], control.frame[names]], ignore_index=True), names)
    shared = np.isin(both[len(table) :], both[: len(table)])
    if shared.all():
        raise ParameterError(
            "The 'control' given to an attack must hold people who are not in the table: all of them have rows among "
            "the members, by their identifiers. Hold people out, as table.split() does."
        )
    return control.take(~shared) if shared.any() else control


def register_of(*tables: Table, names: Sequence[str] | None = None) -> pd.DataFrame:
    """Columns (the quasi-identifiers) of all rows; the index says whose each row is."""
    kept = [t.select("quasi") if names is None else t.frame[list(names)] for t in tables]
    frame = pd.concat(kept, ignore_index=True)
    if all(owners(t) is None for t in tables):
        return frame
    keys = person_columns(tables[0])
    frame.index = pd.Index(people_of(pd.concat([t.frame[keys] for t in tables], ignore_index=True), keys))
    return frame


def register_counts(regions: Regions, register: pd.DataFrame) -> Ints:
    """How many people of a register fit each region; of very many pairs, the fewest whom so many rows can be."""
    if register.index.is_unique:
        return regions.count(register)
    person = pd.factorize(register.index)[0].astype(np.int64)
    return people_fitting(regions, register, person)


def people_fitting(regions: Regions, rows: pd.DataFrame, person: Ints | None) -> Ints:
    """How many people have a row in each region."""
    if person is None:
        return regions.count(rows)
    if len(regions) * len(rows) > _PAIRS:
        counted: Ints = -(-regions.count(rows) // int(np.bincount(person).max()))
        return counted
    return people_inside(regions, rows, person)


def hit_once(right: Bools, person: Ints | None) -> Bools:
    """Person x column: a person is hit where any of their rows is."""
    if person is None:
        return right
    out = np.zeros((int(person.max(initial=-1)) + 1, *right.shape[1:]), dtype=bool)
    np.logical_or.at(out, person, right)
    return out


def thinned(outcomes: Ints, table: Table) -> Ints:
    """Outcomes of released things, as many as they weigh, with the same shares; all where everybody has one row.

    Things that were taken from rows of one person may succeed or fail together. As if they always did (Kish's design
    effect), n things of N rows weigh as n / (1 + (m - 1) (n - 1) / (N - 1)), with m rows of the person of a row.
    """
    person, n = owners(table), len(outcomes)
    if person is None or n < 2:
        return outcomes
    rows = np.bincount(person)
    together = 1 + (float((rows**2).sum()) / len(table) - 1) * min((n - 1) / (len(table) - 1), 1.0)
    weigh = max(round(n / together), 1)
    places = ((np.arange(weigh) + 0.5) * n / weigh).astype(np.int64)
    return np.sort(outcomes)[places]
