"""What a released table costs, and how likely its people are found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from countervail.core import loss
from countervail.core.arrays import Floats, Ints
from countervail.core.canonical import canonical_value, code_values
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.guarantee.promises import class_sizes
from countervail.core.people import rows_per_person
from countervail.core.release import Release
from countervail.core.stats import plain_json
from countervail.core.table import Table
from countervail.engine import Scan
from countervail.engine.columns import distinct_people
from countervail.engine.published import PublishedCounts

Published = Release | PublishedCounts  # a release, or one that was written and whose equal rows an engine has counted


@dataclass(frozen=True, slots=True)
class ReleaseRisk:
    """Chances of finding people again by their published quasi-identifiers.

    `prosecutor` is the highest chance for somebody known to be in the table, `journalist` for somebody who may be in
    the population only, `marketer` the expected share of all rows that are matched rightly.
    """

    prosecutor: float
    journalist: float
    marketer: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def ncp(release: Release, *, weights: Mapping[str, float] | None = None, table: Table | None = None) -> Floats:
    """Normalised certainty penalty of each released row; the mean is that of the table.

    Where cells are centres of groups, it is that of the ranges and sets in which the groups lie.
    """
    by_class = loss.ncp(release.holding(), release.original_table(table), weights)
    return by_class[release.groups]


def squared_loss(table: Table, classes: Ints) -> float:
    """SSE / SST: the share of the variance of ordered quasi-identifiers within classes, the mean over columns.

    `classes` is the class of each row of the table (-1: none), such as a fitted protector's `cell_of_`. Levels count by
    rank, missing values not at all; 0 where every class is of one value.

    Examples
    --------
    >>> import numpy as np, pandas as pd, countervail as cv
    >>> t = cv.Table.from_frame(pd.DataFrame({"age": [20, 22, 40, 42]}), quasi_identifiers=["age"])
    >>> round(squared_loss(t, np.array([0, 0, 1, 1])), 4)  # 4 of 404
    0.0099
    """
    shares = []
    for column in (table.schema[n] for n in table.schema.names("quasi")):
        if column.type == "categorical":
            continue
        values = table.frame[column.name]
        if column.type == "ordinal":
            rank = {canonical_value(v): i for i, v in enumerate(column.levels or ())}
            codes, kinds = code_values(values)
            numbers = np.array([rank.get(v, np.nan) for v in kinds], dtype=float)[codes]
        else:
            numbers = values.to_numpy(dtype=float, na_value=np.nan)
        there = np.isfinite(numbers) & (classes >= 0)
        x, at = numbers[there], classes[there]
        spread = float(((x - x.mean()) ** 2).sum()) if len(x) else 0.0
        if spread > 0:
            mean = np.bincount(at, x) / np.maximum(np.bincount(at), 1)
            shares.append(float(((x - mean[at]) ** 2).sum()) / spread)
    return float(np.mean(shares)) if shares else 0.0


def class_counts(release: Published) -> Ints:
    """Rows of each class of equal published quasi-identifiers."""
    return class_sizes(release)


def most_rows(release: Published) -> int:
    """How many rows of a release one person has at most, by the identifiers of its table while that is there."""
    held = release.audit if isinstance(release, Release) else None
    return 1 if held is None else rows_per_person(held)


def discernibility(release: Published) -> float:
    """C_DM: squares of the class sizes added up; a suppressed row costs the whole table."""
    sizes = class_counts(release).astype(float)
    return float((sizes**2).sum()) + release.suppressed * float(len(release) + release.suppressed)


def average_class_size(release: Published, *, k: int | None = None) -> float:
    """C_AVG: the mean class size; with `k`, in multiples of the least that is allowed.

    Examples
    --------
    >>> import countervail as cv
    >>> t = cv.load("german_credit")
    >>> r = cv.Mondrian(k=10).fit(t).protect(t)
    >>> 1 <= cv.measure.average_class_size(r, k=10) < 2
    True
    """
    if k is not None and k < 1:
        raise bad_parameter("average_class_size", "k", "a whole number of at least 1", k)
    return float(class_counts(release).mean()) / (1 if k is None else k)


def classification_metric(release: Published, *, target: str | None = None) -> float:
    """CM: share of rows whose label is not the majority of their class; suppressed rows count as wrong."""
    name = target if target is not None else release.schema.target
    if name is None:
        raise SchemaError("The release has no target column. Name a column with target='...'.")
    labels = code_values(release.column(name))[0]
    classes = release.classes()
    rows = release.counts if isinstance(release, PublishedCounts) else np.ones(len(classes), np.int64)
    pairs, at = np.unique(classes * (labels.max() + 1) + labels, return_inverse=True)
    counts = np.bincount(at, rows).astype(np.int64)
    most = np.zeros(int(classes.max()) + 1, np.int64)
    np.maximum.at(most, pairs // (labels.max() + 1), counts)
    total = len(release) + release.suppressed
    return float((total - most.sum()) / total)


def release_risk(release: Published, *, population: Table | Scan | None = None) -> ReleaseRisk:
    """Prosecutor, journalist and marketer risk; without a population the table is all there is.

    A population may stay in an engine (:meth:`Table.scan`), which counts its distinct quasi-identifiers. Where the
    table's identifiers say that some people have several rows, a class holds fewer people than rows: the risk is then
    at most what is said.
    """
    sizes = class_counts(release)
    people = -(-sizes // most_rows(release))
    prosecutor = 1 / float(people.min())
    if population is None:
        return ReleaseRisk(prosecutor, prosecutor, float((sizes / people).sum()) / len(release))
    if isinstance(release, PublishedCounts):
        hint = "Released cells are compared with people one by one: measure a Release."
        raise bad_parameter("release_risk", "population", "left out for counts of a written release", "a Table", hint)
    if isinstance(population, Scan):
        found = release.holding().count(*distinct_people(population, population.schema.names("quasi")))
    else:
        found = release.holding().count(population.select("quasi"))
    if (found == 0).any():
        raise bad_parameter(
            "release_risk",
            "population",
            "a table that holds the released people",
            f"one with nobody in {int((found == 0).sum())} of the classes",
        )
    return ReleaseRisk(prosecutor, 1 / float(found.min()), float((1 / found[release.groups]).mean()))
