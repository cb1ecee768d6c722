"""Registered data sets: known by name, kept outside the package."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.schema import Column, Schema

_UCI = "UCI Machine Learning Repository"


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a data set comes from and under what terms."""

    name: str
    source: str
    licence: str


# The identifier that names a person, where others (a household, a number in it) are parts of it.
PERSON = {"informs": "DUPERSID", "informs_5000": "DUPERSID"}
REGISTERED: dict[str, Registered] = {
    r.name: r
    for r in (
        Registered("acs_income_ca_2018", "US Census Bureau, ACS PUMS 2018 (folktables ACSIncome)", "US government"),
        Registered(
            "acs_public_coverage_ca_2018", "US Census Bureau, ACS PUMS 2018 (ACSPublicCoverage)", "US government"
        ),
        Registered("adult", f"{_UCI}, Adult", "CC BY 4.0"),
        Registered("car", f"{_UCI}, Car Evaluation", "CC BY 4.0"),
        Registered("cmc", f"{_UCI}, Contraceptive Method Choice", "CC BY 4.0"),
        Registered("compas", "ProPublica, compas-analysis", "none stated"),
        Registered("default_credit", f"{_UCI}, Default of Credit Card Clients", "CC BY 4.0"),
        Registered("give_me_some_credit", "Kaggle competition GiveMeSomeCredit", "competition rules"),
        Registered("hayes_roth", f"{_UCI}, Hayes-Roth", "CC BY 4.0"),
        Registered("heart_c", f"{_UCI}, Heart Disease (Cleveland)", "CC BY 4.0"),
        Registered("heloc", "FICO Explainable Machine Learning Challenge", "challenge terms"),
        Registered("hospital", "New York State SPARCS inpatient discharges 2016", "NY State open data"),
        Registered("informs", "INFORMS Data Mining Contest 2008 (AHRQ MEPS)", "not stated"),
        Registered("informs_5000", "INFORMS Data Mining Contest 2008 (AHRQ MEPS), 5,000 rows", "not stated"),
        Registered("internet_usage", "UCI KDD Archive, Internet Usage Data", "CC BY 4.0"),
        Registered("zoo", f"{_UCI}, Zoo", "CC BY 4.0"),
    )
}


def places() -> list[Path]:
    """The folders searched, in order."""
    found = [Path(os.environ["COUNTERVAIL_DATA"])] if os.environ.get("COUNTERVAIL_DATA") else []
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        found.append(checkout.parent / "shared" / "data")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return [*found, cache / "countervail" / "data"]


def find(name: str) -> Path:
    """The CSV file of a registered data set, or an error that says where to put it."""
    about = REGISTERED[name]
    for place in places():
        path = place / f"{name}.csv.gz"
        if path.is_file() and description_path(path).is_file():
            return path
    raise DataNotFoundError(
        f"The data set '{name}' is registered but not on this machine. It comes from: {about.source} "
        f"(licence: {about.licence}). Put {name}.csv.gz and its description {name}.json into one of these folders, or "
        f"name the folder in the environment variable COUNTERVAIL_DATA: {[str(p) for p in places()]}."
    )


def description_path(path: Path) -> Path:
    """The JSON description beside a CSV file."""
    return path.with_name(path.name.removesuffix(".csv.gz") + ".json")


def read_description(path: Path) -> Schema:
    """The schema in a JSON description."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        columns = tuple(
            Column(
                c["name"],
                c.get("type", "categorical"),
                c.get("role", "attribute"),
                levels=tuple(c["levels"]) if c.get("levels") else None,
            )
            for c in data["columns"]
        )
    except (json.JSONDecodeError, KeyError, TypeError):
        raise SchemaError(
            f"The description '{path.name}' must be JSON with 'columns', each with a name, type and role."
        ) from None
    favourable = data.get("favourable")
    return Schema(columns, () if favourable is None else (favourable,))
