"""How identifiable people are by their quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Sequence
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
    table: Table,
    *,
    k: int = 10,
    largest: int = 10,
    depth: int = 3,
    person: str | None = None,
    progress: Progress | None = None,
) -> Risk:
    """Share unique, share in classes below `k`, and the combinations of up to `depth` columns that give most away.

    Rows that share a key among the identifiers are one person's; `person` names the column that tells people apart.

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
    named = person_columns(table) if person is None else [table.schema[person].name]
    who = people_of(table.frame, named)
    codes = number_columns(table.frame, quasi)
    around = _people_around(codes, who)
    depth = min(depth, len(quasi))
    total = sum(comb(len(quasi), r) for r in range(1, depth + 1))
    offenders = []
    for r in range(1, depth + 1):
        for columns in combinations(range(len(quasi)), r):
            part = _people_around([codes[j] for j in columns], who)
            names = tuple(quasi[j] for j in columns)
            offenders.append(Offender(names, float((part == 1).mean()), float((part < k).mean())))
            if progress is not None:
                progress(len(offenders), total)
    offenders.sort(key=lambda o: (-o.unique, -o.below_k, len(o.columns), o.columns))
    telling = tuple(o for o in offenders if o.below_k > 0)[:largest]
    return Risk(
        len(table),
        len(around),
        tuple(quasi),
        k,
        float((around == 1).mean()),
        float((around < k).mean()),
        int(number_rows(codes).max(initial=-1)) + 1,
        telling,
    )


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
