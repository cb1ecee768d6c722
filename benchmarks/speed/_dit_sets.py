"""The tables of the paper on differential inference testing: its samples, quasi-identifiers and hierarchies."""

from __future__ import annotations

from typing import Any

import countervail as cv
from countervail.core.hierarchy import read_hierarchies
from countervail.data.registry import find

ADULT = ["age", "education", "marital-status", "hours-per-week", "native-country"]
INTERNET = ["Age", "Country", "Education_Attainment", "Major_Occupation", "Marital_Status", "Race"]
GROUPED = ["education", "marital-status", "native-country"]


def adult(rows: int | None, seed: int) -> cv.Table:
    """Complete rows of Adult: all 45,222, or some drawn at random; occupation is sensitive."""
    frame = cv.load("adult").frame.dropna()
    if rows is not None:
        frame = frame.sample(rows, random_state=seed)
    frame = frame[[*ADULT, "occupation"]].astype(dict.fromkeys([*GROUPED, "occupation"], "str")).reset_index(drop=True)
    return cv.Table.from_frame(frame, quasi_identifiers=ADULT, sensitive=["occupation"])


def internet() -> cv.Table:
    """Internet usage without those who did not say their age; household income is sensitive."""
    table = cv.load("internet_usage")
    frame = table.frame[table.frame["Age"].notna()]
    frame = frame[[*INTERNET, "Household_Income"]].reset_index(drop=True)
    for name in frame.columns:
        if name != "Age":
            frame[name] = frame[name].astype(str)
    return cv.Table.from_frame(frame, quasi_identifiers=INTERNET, sensitive=["Household_Income"])


def adult_settings() -> dict[str, Any]:
    """Basic Mondrian with the hierarchies that come with the set, as the paper used it."""
    folder = find("adult").parent / "hierarchies" / "adult"
    trees = read_hierarchies(folder, GROUPED, "dit")
    return {"hierarchies": trees, "labels": "hierarchy", "sensitive": "occupation"}


def internet_settings(table: cv.Table) -> dict[str, Any]:
    """Basic Mondrian with hierarchies of our own making (labels in pairs, by name): the paper names none."""
    labels = {n: sorted(table.frame[n].unique()) for n in INTERNET if n != "Age"}
    made = {n: cv.Hierarchy.order(v, name=n) for n, v in labels.items()}
    return {"hierarchies": made, "labels": "hierarchy", "sensitive": "Household_Income"}
