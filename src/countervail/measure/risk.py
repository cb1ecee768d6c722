"""How identifiable people are by their quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from countervail.core.arrays import Ints, number_columns, number_rows
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.people import count_people, people_of, person_columns
from countervail.core.protocols import Progress
from countervail.core.stats import plain_json
from countervail.core.table import Table
from countervail.engine import Scan


@dataclass(frozen=True, slots=True)
class Offender:
    """A combination of columns and what it alone gives away."""

    columns: tuple[str, ...]
    unique: float
    below_k: float


@dataclass(frozen=True, slots=True)
class Risk:
    """Shares of people who stand alone, or among fewer than k, by their quasi-identifiers.

    Whoever has several rows is counted once, and stands alone where one of them does.
    """

    rows: int
    people: int
    quasi: tuple[str, ...]
    k: int
    unique: float
    below_k: float
    classes: int
    offenders: tuple[Offender, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def class_sizes(table: Table, columns: Sequence[str] | None = None) -> Ints:
    """For each row, how many rows share its values in `columns` (default: the quasi-identifiers)."""
    names = table.schema.names("quasi") if columns is None else [table.schema[n].name for n in columns]
    if not names:
        raise SchemaError("No quasi-identifier is declared. Give columns the role 'quasi' in the schema.")
    return _sizes(number_columns(table.frame, names))


def risk(
    table: Table | Scan,
    *,
    k: int = 10,
    largest: int = 10,
    depth: int = 3,
    person: str | None = None,
    progress: Progress | None = None,
) -> Risk:
    """Share unique, share in classes below `k`, and the combinations of up to `depth` columns that give most away.

    Rows that share a key among the identifiers are one person's; `person` names the column that tells people apart. Of
    a scan, whose distinct combinations are counted by its engine, everybody has one row.

    Examples
    --------
    >>> import countervail as cv
    >>> r = cv.measure.risk(cv.load("german_credit"))
    >>> f"{r.unique:.1%} unique, {r.below_k:.0%} in classes below {r.k}"
    '83.7% unique, 100% in classes below 10'
    """
    quasi = table.schema.names("quasi")
    if not quasi:
        raise SchemaError("No quasi-identifier is declared. Give columns the role 'quasi' in the schema.")
    if k < 1:
        raise bad_parameter("risk", "k", "a whole number of at least 1", k)
    crowd: _Crowd | _Counted
    if isinstance(table, Scan):
        crowd = _Counted.of(table, quasi, person)
    else:
        named = person_columns(table) if person is None else [table.schema[person].name]
        crowd = _Crowd(number_columns(table.frame, quasi), people_of(table.frame, named))
    all_columns = range(len(quasi))
    depth = min(depth, len(quasi))
    total = sum(comb(len(quasi), r) for r in range(1, depth + 1))
    offenders = []
    for r in range(1, depth + 1):
        for columns in combinations(range(len(quasi)), r):
            unique, below = crowd.shares(columns, k)
            names = tuple(quasi[j] for j in columns)
            offenders.append(Offender(names, unique, below))
            if progress is not None:
                progress(len(offenders), total)
    offenders.sort(key=lambda o: (-o.unique, -o.below_k, len(o.columns), o.columns))
    telling = tuple(o for o in offenders if o.below_k > 0)[:largest]
    unique, below = crowd.shares(all_columns, k)
    return Risk(crowd.rows, crowd.people, tuple(quasi), k, unique, below, crowd.classes, telling)


@dataclass(frozen=True, eq=False, slots=True)
class _Crowd:
    """Rows as codes of their quasi-identifiers, and whose they are."""

    codes: list[Ints]
    who: Ints

    @property
    def rows(self) -> int:
        return len(self.who)

    @property
    def people(self) -> int:
        return int(self.who.max(initial=-1)) + 1

    @property
    def classes(self) -> int:
        return int(number_rows(self.codes).max(initial=-1)) + 1

    def shares(self, columns: Iterable[int], k: int) -> tuple[float, float]:
        """The shares of people who stand alone, and among fewer than k, by some columns."""
        around = _people_around([self.codes[j] for j in columns], self.who)
        return float((around == 1).mean()), float((around < k).mean())


@dataclass(frozen=True, eq=False, slots=True)
class _Counted:
    """Distinct rows as codes, and how many people have each."""

    codes: list[Ints]
    counts: Ints

    @classmethod
    def of(cls, scan: Scan, quasi: list[str], person: str | None) -> _Counted:
        if person is not None:
            raise bad_parameter("risk", "person", "left out for a scan: people are told apart row by row", person)
        if scan.rows_per_person()[0] > 1:
            raise SchemaError("Some people have several rows of the scan: read them with Table.read to count people.")
        found = scan.distinct(quasi, limit=None if scan.relation.here else scan.budget(len(quasi)))
        if found is None:
            must = "enough for the distinct rows of all quasi-identifiers"
            raise bad_parameter("Table.scan", "memory", must, f"{scan.memory:,} bytes", "Give more (--memory).")
        return cls(number_columns(found.table.frame, quasi), found.counts)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def people(self) -> int:
        return self.rows

    @property
    def classes(self) -> int:
        return int(number_rows(self.codes).max(initial=-1)) + 1

    def shares(self, columns: Iterable[int], k: int) -> tuple[float, float]:
        """The shares of people who stand alone, and among fewer than k, by some columns."""
        key = number_rows([self.codes[j] for j in columns])
        sizes = np.bincount(key, self.counts).astype(np.int64)
        return int(sizes[sizes == 1].sum()) / self.rows, int(sizes[sizes < k].sum()) / self.rows


def _people_around(codes: list[Ints], who: Ints) -> Ints:
    """For each person, how many people share the class of the row that gives most away."""
    key = number_rows(codes)
    least = np.full(int(who.max(initial=-1)) + 1, len(who), dtype=np.int64)
    np.minimum.at(least, who, count_people(key, who)[key])
    return least


def _sizes(codes: list[Ints]) -> Ints:
    """Sizes of the classes of equal codes, row by row."""
    key = number_rows(codes)
    sizes: Ints = np.bincount(key)[key]
    return sizes
