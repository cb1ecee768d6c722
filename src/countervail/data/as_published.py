"""The data sets of "Differentially-private and plausible counterfactuals", with the columns its authors kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from countervail.core.errors import bad_parameter
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.data.load import load

_FEW = 10  # columns with fewer labels are compared as labels


@dataclass(frozen=True, slots=True)
class PaperSet:
    """Columns that the authors left out; their target, and the decision people ask for, where these are not ours."""

    without: tuple[str, ...] = ()
    asks_for: tuple[Any, ...] = ()
    target: str | None = None


PAPER_SETS: dict[str, PaperSet] = {
    # The paper names none of its ten columns: these give its accuracy, and NICE's M0 and distances. Nor does it say
    # who asks: its figures are those of people with a high income who ask for the other decision.
    "adult": PaperSet(("fnlwgt", "education", "capital-gain", "capital-loss"), ("<=50K",)),
    "acs_income_ca_2018": PaperSet(),
    # Its table of sets names the target "Low_risk"; its accuracy, and eight columns, are those of two-year recidivism.
    "compas": PaperSet(("length_of_stay", "risk"), (0,), "two_year_recid"),
    "default_credit": PaperSet(),
    "heloc": PaperSet(),
    "acs_public_coverage_ca_2018": PaperSet(),
    "give_me_some_credit": PaperSet(),
}


def paper_table(name: str, *, coded: bool = False) -> Table:
    """A registered set as the paper uses it: its columns, whole rows, labels for missing categories, who asks for what.

    `coded` makes numbers of the labels of every column that has ten or more: the codes themselves, or places in
    alphabetical order. The paper does not say so, but its reported distances are those of this form.
    """
    if name not in PAPER_SETS:
        raise bad_parameter("paper_table", "name", f"one of {list(PAPER_SETS)}", name)
    table, known = load(name), PAPER_SETS[name]
    kept = [
        replace(c, role="target") if c.name == known.target else c for c in table.schema if c.name not in known.without
    ]
    numeric = [c.name for c in kept if c.numeric]
    frame = table.frame[[c.name for c in kept]].dropna(subset=numeric).reset_index(drop=True)
    schema = Schema(tuple(kept), known.asks_for or table.schema.favourable)
    for column in kept:
        if not column.numeric and column.role != "target":
            text = frame[column.name].astype(object).where(frame[column.name].notna(), "missing").astype(str)
            many = coded and text.nunique() >= _FEW
            frame[column.name] = _numbers(text) if many else text
            change: dict[str, Any] = {"type": "numeric" if many else "categorical", "levels": None, "domain": None}
            schema = schema.with_column(column.name, **change)
    return Table(frame, schema)


def _numbers(labels: pd.Series) -> pd.Series:
    """Codes that are numbers as such, other labels by their place in alphabetical order."""
    found = sorted(labels.unique())
    if all(v.removeprefix("-").isdecimal() for v in found):
        return labels.astype("int64")
    return labels.map({v: i for i, v in enumerate(found)}).astype("int64")
