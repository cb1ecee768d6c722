"""Who is behind which row: several rows of one person count once."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.errors import bad_parameter
from countervail.core.region import Regions
from countervail.core.table import Table

_MOST = 0.9  # of the values of a key look like one
_BLOCK = 1 << 24  # pairs of a region and a row that are looked at together
_LINKED = (
    "Rows of one person that are alike in the other columns can be linked with each other, which leaves fewer people: "
    "no promise covers that. Keep one row for each person."
)


def people_of(frame: pd.DataFrame, names: Sequence[str]) -> Ints:
    """A number for the person of each row: rows that share a value of any of these columns are one person's.

    That may take two people of one name for one, and then counts too few; a missing value is shared with nobody.

    Examples
    --------
    >>> rows = pd.DataFrame({"name": ["Ann", "Bob", "Ann"], "mail": ["a@x", "b@x", "b@x"]})
    >>> people_of(rows, ["name"]).tolist(), people_of(rows, ["name", "mail"]).tolist()
    ([0, 1, 0], [0, 0, 0])
    """
    person = np.arange(len(frame), dtype=np.int64)
    codes = [pd.factorize(frame[n])[0] for n in names]
    repeated = [c for c in codes if len(c) and np.bincount(c[c >= 0], minlength=1).max() > 1]
    while True:
        before = person
        for code in repeated:
            least = np.full(int(code.max()) + 1, len(frame), dtype=np.int64)
            there = code >= 0
            np.minimum.at(least, code[there], person[there])
            person = np.where(there, least[code], person)
            person = person[person]  # whoever was found to be somebody else leads there
        if (person == before).all():
            return pd.factorize(person)[0].astype(np.int64)


def person_columns(table: Table) -> list[str]:
    """The identifiers that tell people apart: keys (numbers, codes, mail), which two people do not share by chance, as
    they share a name or a remark; all identifiers where there is no key."""
    return keys_of(table.frame, table.schema.names("identifier"))


def keys_of(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Those of these identifiers that are keys; all of them where none is."""
    return [n for n in names if _is_key(frame[n])] or list(names)


def _is_key(values: pd.Series) -> bool:
    texts = values.dropna().astype(str)
    return bool(len(texts)) and bool((texts.str.contains(r"[\d@]") & ~texts.str.contains(r"\s")).mean() > _MOST)


def rows_per_person(table: Table) -> int:
    """How many rows one person has at most, by the identifiers; 1 where none is declared."""
    names = person_columns(table)
    if not names or not len(table):
        return 1
    return int(np.bincount(people_of(table.frame, names)).max())


def people_in(table: Table) -> int:
    """How many people the rows are about, by the identifiers; one each where none is declared."""
    names = person_columns(table)
    return int(people_of(table.frame, names).max(initial=-1)) + 1 if names else len(table)


def each_once(table: Table, name: str) -> pd.Series:
    """A column's values, of each person once: how many people hold a value, not how many of their rows."""
    names = person_columns(table)
    values: pd.Series = table.frame[name]
    if not names:
        return values
    twice = pd.DataFrame({"who": people_of(table.frame, names), "value": values.to_numpy()}).duplicated()
    return values[~twice.to_numpy()]


def check_k(k: Any, table: Sized, owner: str) -> None:
    """At least two people, and no more than there are."""
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 2:
        raise bad_parameter(owner, "k", "a whole number of at least 2", k)
    if k > len(table):
        raise bad_parameter(owner, "k", f"at most the number of rows, {len(table)}", k)


def rows_for(k: int, table: Table, owner: str) -> int:
    """How many rows are sure to hold k people; refused where the table has fewer."""
    return rows_holding(k, rows_per_person(table), len(table), person_columns(table), owner)


def rows_holding(k: int, most: int, rows: int, names: Sequence[str], owner: str) -> int:
    """The same, where it is known how many rows one person has at most, by these columns."""
    if k * most <= rows:
        return k * most
    if most == 1:
        raise bad_parameter(owner, "k", f"at most the number of rows, {rows}", k)
    way_out = (
        f"Rows that share a value of {', '.join(names)} count as one person's: leave only the column that names a "
        f"person among the identifiers."
    )
    must = f"at most {rows // most} where one person has up to {most} of {rows} rows"
    raise bad_parameter(owner, "k", must, k, way_out)


def say_rows_per_person(table: Table, k: int) -> tuple[str, ...]:
    """What it means for the classes that some people have several rows; nothing where nobody has."""
    return rows_remark(rows_per_person(table), person_columns(table), k)


def rows_remark(most: int, names: Sequence[str], k: int) -> tuple[str, ...]:
    """The same, where it is known how many rows one person has at most, by these columns."""
    if most == 1:
        return ()
    each = f"every class holds {k * most:,} rows, so that {k:,} people are in it"
    return (f"Some people have up to {most} rows, by {', '.join(names)}: {each}.", _LINKED)


def say_linked(table: Table) -> tuple[str, ...]:
    """What is not promised to people who have several rows; nothing where nobody has."""
    return linked_remark(rows_per_person(table))


def linked_remark(most: int) -> tuple[str, ...]:
    """The same, where it is known how many rows one person has at most."""
    return (_LINKED,) if most > 1 else ()


def count_people(classes: Ints, person: Ints | None) -> Ints:
    """How many people each class (numbered from 0) holds; rows, where nobody is named."""
    if person is None:
        return np.bincount(classes)
    pairs = pd.unique(classes * (int(person.max(initial=0)) + 1) + person)
    return np.bincount(pairs // (int(person.max(initial=0)) + 1))


def people_inside(regions: Regions, frame: pd.DataFrame, person: Ints) -> Ints:
    """How many people (numbered from 0, row by row) have a row in each region."""
    if int(np.bincount(person).max(initial=1)) == 1:
        return regions.count(frame)
    order = np.argsort(person, kind="stable")
    begin = np.flatnonzero(np.diff(person[order], prepend=-1))
    step = max(1, _BLOCK // max(1, len(frame)))
    parts = [
        np.logical_or.reduceat(regions[a : a + step].covers(frame)[:, order], begin, axis=1).sum(axis=1)
        for a in range(0, len(regions), step)
    ]
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


def most_of_one(classes: Ints, person: Ints) -> Ints:
    """How many rows of each class (numbered from 0) are one person's at most."""
    wide = int(person.max(initial=0)) + 1
    pairs, times = np.unique(classes * wide + person, return_counts=True)
    most = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, pairs // wide, times)
    return most
