"""Measures that exist for explanations and for released tables: one name each, chosen by what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countervail.core.arrays import Floats
from countervail.core.errors import bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.release import Release
from countervail.core.table import Table
from countervail.engine.published import PublishedCounts
from countervail.measure import regions
from countervail.measure import table as tables

Released = Explanations | Release


def ncp(e: Released, *, weights: Mapping[str, float] | None = None, table: Table | None = None) -> Floats:
    """Normalised certainty penalty of each explanation (NaN where there is none) or of each released row."""
    _check(e, "ncp")
    if isinstance(e, Release):
        return tables.ncp(e, weights=weights, table=table)
    return regions.ncp(e, weights=weights, table=table)


def discernibility(e: Released | PublishedCounts, *, table: Table | None = None) -> float:
    """C_DM: sizes of the explanations' regions added up, or squares of the sizes of a release's classes."""
    if isinstance(e, (Release, PublishedCounts)):
        return tables.discernibility(e)
    _check(e, "discernibility")
    return regions.discernibility(e, table=table)


def classification_metric(e: Released | PublishedCounts, model: Any = None, *, table: Table | None = None) -> float:
    """CM: share of explanations (with their `model`) or of released rows that go against their class's majority."""
    if isinstance(e, (Release, PublishedCounts)):
        return tables.classification_metric(e)
    _check(e, "classification_metric")
    if model is None:
        raise bad_parameter("classification_metric", "model", "given for explanations", model)
    return regions.classification_metric(e, model, table=table)


def _check(e: Any, owner: str) -> None:
    if not isinstance(e, (Explanations, Release)):
        raise bad_parameter(owner, "e", "Explanations or a Release", type(e).__name__)
