"""The data sets, splits and models of the CF-K figures: one setting for speed, quality and reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import countervail as cv
from countervail.model import train_forest


@dataclass(frozen=True)
class Setting:
    """A training table, the model, and the people it refuses."""

    name: str
    train: cv.Table
    model: Any
    refused: cv.Table


@dataclass(frozen=True)
class Recipe:
    """Quasi-identifiers (numeric ones marked), columns left out, and the forest."""

    quasi: tuple[str, ...]
    numeric: tuple[str, ...]
    trees: int
    leaves: int | None = None
    dropped: tuple[str, ...] = ()


RECIPES = {
    "heart_c": Recipe(("age", "sex"), ("age",), 500),
    "cmc": Recipe(("WifeAge", "ChildrenBorn"), ("WifeAge", "ChildrenBorn"), 100, 100),
    "german_credit": Recipe(
        (
            "age",
            "personal_status",
            "foreign_worker",
            "residence_since",
            "employment",
            "property_magnitude",
            "housing",
            "job",
        ),
        ("age", "residence_since"),
        500,
    ),
    "informs_5000": Recipe(
        ("DOBMM", "DOBYY", "SEX", "RACEX", "EDUCYEAR", "marry"),
        ("DOBMM", "DOBYY", "EDUCYEAR"),
        100,
        100,
        ("income", "Year"),
    ),
    "adult": Recipe(
        ("age", "sex", "race", "relationship", "marital-status"), ("age",), 100, 100, ("fnlwgt", "education-num")
    ),
}


def setting(name: str, most: int = 400, split: int = 0) -> Setting:
    """The setting of one data set: 60% for training, and of the first 1,000 test rows those that are refused."""
    recipe = RECIPES[name]
    train, test = table(name).split(test_size=0.4, random_state=split)
    model = train_forest(train, trees=recipe.trees, leaves=recipe.leaves)
    first = test.take(range(min(1000, len(test))))
    refused = model.predict(first.features) != train.schema.favourable[0]
    return Setting(name, train, model, first.take(refused.nonzero()[0][:most]))


def table(name: str) -> cv.Table:
    """The table with the types and roles of the figures: every column numeric or categorical, two decisions."""
    recipe, loaded = RECIPES[name], cv.load(name)
    frame, schema = loaded.frame.drop(columns=list(recipe.dropped)), loaded.schema
    schema = cv.Schema(tuple(c for c in schema if c.name not in recipe.dropped), schema.favourable)
    for column in schema:
        if column.name in recipe.numeric and column.type != "numeric":
            schema = schema.with_column(column.name, type="numeric")
            frame[column.name] = frame[column.name].astype(str).astype(int)
        elif column.type == "ordinal":
            schema = schema.with_column(column.name, type="categorical")
    decided, wanted = frame[schema.target].astype(str), str(schema.favourable[0])
    if decided.nunique() > 2:
        frame[schema.target] = decided.where(decided == wanted, "other").astype("category")
    return cv.Table.from_frame(frame, schema=schema.with_roles(quasi=recipe.quasi))
