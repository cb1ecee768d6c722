"""The data sets, splits and models of the CF-K figures: those of `countervail reproduce goethals`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import countervail as cv
from countervail.study.reproduce.work import linkage

RECIPES = {name: recipe for name, recipe in linkage.RECIPES.items() if name != "hospital"}
table = linkage.linkage_table


@dataclass(frozen=True)
class Setting:
    """A training table, the model, and the people it refuses."""

    name: str
    train: cv.Table
    model: Any
    refused: cv.Table


def setting(name: str, most: int = 400, split: int = 0) -> Setting:
    """The setting of one data set: 60% for training, and of the first 1,000 test rows those that are refused."""
    found = linkage.refused(name, split)
    return Setting(name, found.train, found.model, found.people.take(range(min(most, len(found.people)))))
