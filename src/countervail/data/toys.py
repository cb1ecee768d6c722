"""The papers' toy tables, small enough to check by hand."""

from __future__ import annotations

import pandas as pd

from countervail.core.schema import Column, Schema
from countervail.core.table import Table
from countervail.core.words.phrases import Phrases

_CREDIT_COLUMNS = (
    Column("name", role="identifier"),
    Column("age", "numeric", "quasi", unit="years", phrases=Phrases("{} year|years older", "{} year|years younger")),
    Column("gender", "categorical", "quasi", ("F", "M")),
    Column("city", "categorical", "quasi", ("Antwerp", "Brussels"), phrases=Phrases(is_="lived in {}")),
    Column("salary", "numeric", unit="${}K", phrases=Phrases("earned {} more", "earned {} less")),
    Column(
        "relationship",
        domain=("Cohabiting", "Married", "Separated", "Single", "Widowed"),
        phrases=Phrases(is_="were {}"),
    ),
    Column("decision", role="target", domain=("Accept", "Reject")),
)
_CREDIT_ROWS = (
    ("Alfred", 25, "M", "Brussels", 50, "Single", "Reject"),
    ("Boris", 23, "M", "Antwerp", 40, "Separated", "Reject"),
    ("Casper", 34, "M", "Brussels", 30, "Cohabiting", "Reject"),
    ("Derek", 47, "M", "Antwerp", 100, "Married", "Accept"),
    ("Edward", 70, "M", "Brussels", 90, "Single", "Accept"),
    ("Fiona", 24, "F", "Antwerp", 60, "Single", "Accept"),
    ("Gina", 27, "F", "Antwerp", 80, "Married", "Accept"),
    ("Hilda", 38, "F", "Brussels", 60, "Widowed", "Reject"),
    ("Ingrid", 26, "F", "Antwerp", 60, "Single", "Reject"),
    ("Jade", 50, "F", "Brussels", 100, "Married", "Accept"),
)
_EVALUATION_ROWS = (
    ("male", "salesman", "Osaka", "high"),
    ("male", "salesman", "Tokyo", "high"),
    ("female", "salesman", "Tokyo", "low"),
    ("female", "engineer", "Fukuoka", "medium"),
    ("male", "engineer", "Osaka", "low"),
    ("male", "salesman", "Fukuoka", "high"),
)


def toy_credit() -> Table:
    """The training set of Goethals et al. (Table 2): ten invented people; salaries in thousands of dollars."""
    frame = pd.DataFrame(_CREDIT_ROWS, columns=[c.name for c in _CREDIT_COLUMNS])
    return Table(frame, Schema(_CREDIT_COLUMNS, ("Accept",)))


def toy_credit_query() -> pd.DataFrame:
    """Lisa, whose credit is rejected (Goethals et al., Table 1)."""
    return pd.DataFrame(
        {"age": [21], "gender": ["F"], "city": ["Brussels"], "salary": [50], "relationship": ["Single"]}
    )


def toy_credit_model(frame: pd.DataFrame) -> pd.Series:
    """A rule that decides as the paper prints it: Tables 1 and 2 row for row, and Table 4.

    High salaries are accepted; $60K is enough up to the age of 25 in Antwerp.
    """
    enough = (frame["salary"] >= 80) | ((frame["salary"] >= 60) & (frame["age"] <= 25) & (frame["city"] == "Antwerp"))
    return enough.map({True: "Accept", False: "Reject"})


def toy_evaluation() -> Table:
    """The decision table of Inuiguchi et al. (Table 1): six people, three classes."""
    columns = (
        Column("sex", "categorical", "quasi", ("female", "male")),
        Column("occupation", "categorical", "quasi", ("engineer", "salesman")),
        Column("domicile", "categorical", "quasi", ("Fukuoka", "Osaka", "Tokyo")),
        Column("evaluation", "categorical", "target", ("high", "low", "medium")),
    )
    frame = pd.DataFrame(_EVALUATION_ROWS, columns=[c.name for c in columns])
    return Table(frame, Schema(columns, ("high",)))
