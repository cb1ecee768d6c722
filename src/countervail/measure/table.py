"""What a released table costs, and how likely its people are found again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from countervail.core import loss
from countervail.core.arrays import Floats, Ints
from countervail.core.canonical import code_values
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.release import Release
from countervail.core.stats import plain_json
from countervail.core.table import Table


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
    """Normalised certainty penalty of each released row; the mean is that of the table."""
    by_class = loss.ncp(release.regions, release.original_table(table), weights)
    return by_class[release.groups]


def class_counts(release: Release) -> Ints:
    """Rows of each class of equal published quasi-identifiers."""
    return np.bincount(release.classes())


def discernibility(release: Release) -> float:
    """C_DM: squares of the class sizes added up; a suppressed row costs the whole table."""
    sizes = class_counts(release).astype(float)
    return float((sizes**2).sum()) + release.suppressed * float(len(release) + release.suppressed)


def average_class_size(release: Release, *, k: int | None = None) -> float:
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


def classification_metric(release: Release, *, target: str | None = None) -> float:
    """CM: share of rows whose label is not the majority of their class; suppressed rows count as wrong."""
    name = target if target is not None else release.schema.target
    if name is None:
        raise SchemaError("The release has no target column. Name a column with target='...'.")
    labels = code_values(release.column(name))[0]
    classes = release.classes()
    pairs, counts = np.unique(classes * (labels.max() + 1) + labels, return_counts=True)
    most = np.zeros(int(classes.max()) + 1, np.int64)
    np.maximum.at(most, pairs // (labels.max() + 1), counts)
    total = len(release) + release.suppressed
    return float((total - most.sum()) / total)


def release_risk(release: Release, *, population: Table | None = None) -> ReleaseRisk:
    """Prosecutor, journalist and marketer risk; without a population the table is all there is."""
    sizes = class_counts(release)
    prosecutor = 1 / float(sizes.min())
    if population is None:
        return ReleaseRisk(prosecutor, prosecutor, len(sizes) / len(release))
    found = release.regions.count(population.select("quasi"))
    if (found == 0).any():
        raise bad_parameter(
            "release_risk",
            "population",
            "a table that holds the released people",
            f"one with nobody in {int((found == 0).sum())} of the classes",
        )
    return ReleaseRisk(prosecutor, 1 / float(found.min()), float((1 / found[release.groups]).mean()))
