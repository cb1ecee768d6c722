"""What the private studies share: public domains (from documentation, not from the rows), and where results come from.

Adult: the codebook adult.names of the UCI repository lists all labels; the bounds are those of the census form (age
capped at 90, capital gain at 99,999, hours at 99). German credit: labels from the UCI codebook; bounds that a lender
would state in its conditions. COMPAS: round bounds of counts, and days of a stay in steps that grow. CMC: the survey's
women of 15 to 49. Car evaluation: the labels of its codebook. Give Me Some Credit: people with complete rows, bounds
that a lender would state (what lies beyond counts as the bound), counts up to the code 98 of its dictionary, money and
shares in steps that grow. ACS public coverage (California, 2018): ages and incomes as the task selects them (under 65,
at most 30,000 dollars; losses down to 19,998 by the PUMS dictionary), income in thousands. ACS income, credit card
defaults and HELOC: the codebooks that the package bundles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import _record  # scripts put benchmarks/speed on the path

import countervail as cv

BUNDLED = ("acs_income_ca_2018", "default_credit", "heloc")  # with domains of their codebooks
DROPPED = ("fnlwgt", "education-num", "capital-loss")
_BOUNDS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {"age": (17, 90), "capital-gain": (0, 99999), "hours-per-week": (1, 99)},
    "german_credit": {"duration": (0, 72), "credit_amount": (0, 20000), "age": (18, 80)},
    "compas": {
        "age": (18, 100),
        **dict.fromkeys(("juv_fel_count", "juv_misd_count", "juv_other_count"), (0, 20)),
        "priors_count": (0, 40),
        "length_of_stay": (-1, 800),
    },
    "cmc": {"WifeAge": (15, 49), "ChildrenBorn": (0, 20)},
    "acs_public_coverage_ca_2018": {"AGEP": (15, 64), "PINCP": (-20000, 30000)},
    "car": {},
    "give_me_some_credit": {
        "RevolvingUtilizationOfUnsecuredLines": (0, 10),
        "age": (18, 110),
        "DebtRatio": (0, 10_000),
        "MonthlyIncome": (0, 100_000),
        "NumberOfOpenCreditLinesAndLoans": (0, 60),
        "NumberRealEstateLoansOrLines": (0, 60),
        "NumberOfDependents": (0, 20),
        "NumberOfTime30-59DaysPastDueNotWorse": (0, 98),
        "NumberOfTime60-89DaysPastDueNotWorse": (0, 98),
        "NumberOfTimes90DaysLate": (0, 98),
    },
}
_DAYS = (-1, 0, 1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 270, 365, 540, 800)
_DOLLARS = (-20000, -10000, -5000, -2000, -1000, -500, 0, 500, *range(1000, 30001, 1000))
_SHARES = (*(n / 20 for n in range(21)), 1.25, 1.5, 2, 5, 10)
_DEBTS = (*(n / 20 for n in range(21)), 1.25, 1.5, 2, 5, 10, 100, 500, 1_000, 2_000, 5_000, 10_000)
_MONTHLY = (*range(0, 10_000, 500), 10_000, 12_500, 15_000, 20_000, 25_000, 50_000, 100_000)
_CUTS = {
    ("compas", "length_of_stay"): _DAYS,
    ("acs_public_coverage_ca_2018", "PINCP"): _DOLLARS,
    ("give_me_some_credit", "RevolvingUtilizationOfUnsecuredLines"): _SHARES,
    ("give_me_some_credit", "DebtRatio"): _DEBTS,
    ("give_me_some_credit", "MonthlyIncome"): _MONTHLY,
}
_MISSING = {"adult": ("workclass", "occupation", "native-country")}
_COMPLETE = ("give_me_some_credit",)  # of which people with a missing value are left out


def load_declared(name: str) -> tuple[cv.Table, tuple[str, ...]]:
    """A data set with declared domains, and the columns in which "missing" is a level of its own."""
    if name in BUNDLED:
        return cv.load(name, declared=True), ()
    table = cv.load(name)
    frame = table.frame.drop(columns=[n for n in DROPPED if n in table.frame.columns])
    frame = frame.dropna().reset_index(drop=True) if name in _COMPLETE else frame
    domains: dict[str, Any] = {n: b for n, b in _BOUNDS[name].items() if n in frame.columns}
    frame = frame.assign(**{n: frame[n].clip(*b[:2]) for n, b in domains.items()})
    for column in table.schema:
        if column.name in frame.columns and column.type == "categorical":
            # The file holds every label of its codebook, so listing them here adds nothing to what is public.
            domains[column.name] = sorted(frame[column.name].dropna().unique().tolist())
    kept = tuple(c for c in table.schema if c.name in frame.columns)
    schema = cv.Schema(kept, table.schema.favourable)
    declared = cv.Table.from_frame(frame, schema=schema, domains=domains)
    schema = declared.schema
    for (owner, column), cuts in _CUTS.items():
        if owner == name:
            schema = schema.with_column(column, domain=schema[column].domain, cuts=cuts)
    return replace(declared, schema=schema), _MISSING.get(name, ())


def provenance(seed: int | None, *sets: str) -> dict[str, Any]:
    """Commit, seed, versions and data hashes; ask before the run, which takes minutes."""
    return _record.provenance(sets, seed, "opendp")
