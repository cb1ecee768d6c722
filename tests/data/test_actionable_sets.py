"""What is declared of the data sets: nobody is asked to be somebody else, and every step that is named exists."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.constraints import ANY, Constraints
from countervail.core.encode import Encoder
from countervail.core.errors import DataNotFoundError
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Schema

BUNDLED = Path(str(files("countervail.data") / "bundled"))
DECLARED = {p.stem: p for p in [BUNDLED / "german_credit.toml", *sorted((BUNDLED / "words").glob("*.toml"))]}
FIXED = {
    "german_credit": {"age", "personal_status", "foreign_worker", "num_dependents", "credit_history"},
    "acs_income_ca_2018": {"AGEP", "SEX", "RAC1P", "MAR", "POBP", "RELP"},
    "adult": {"age", "race", "sex", "native-country", "marital-status", "relationship", "fnlwgt", "capital-gain"},
    "cmc": {"WifeAge", "ChildrenBorn", "WifeReligion", "HusbandEducation", "HusbandOccupation"},
    "default_credit": {"SEX", "AGE", "MARRIAGE"},
    "give_me_some_credit": {"age", "NumberOfTimes90DaysLate", "NumberOfDependents"},
    "heart_c": {"age", "sex", "cp", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal"},
    "heloc": {
        "ExternalRiskEstimate",
        "NumSatisfactoryTrades",
        "NumTrades60Ever2DerogPubRec",
        "NumTrades90Ever2DerogPubRec",
        "PercentTradesNeverDelq",
        "PercentInstallTrades",
        "MaxDelqEver",
    },
}

HOURS = {"adult": "hours-per-week", "acs_income_ca_2018": "WKHP"}


@pytest.mark.parametrize("name", HOURS)
def test_nobody_is_told_to_work_more_than_sixty_hours_and_who_does_may(name):
    read = read_schema(DECLARED[name])
    column, coded = read[HOURS[name]], Schema(tuple(c for c in read if c.name == HOURS[name]))
    frame = pd.DataFrame({column.name: np.arange(1.0, 100.0)})
    limits = Constraints.of(Encoder.fit(cv.Table(frame, coded)), "test")
    hours = frame[column.name].to_numpy()
    may = limits.allows_values(0, hours, hours)
    assert (may == ((hours >= hours[:, None]) & ((hours <= 60) | (hours == hours[:, None])))).all()
    assert not limits.stuck(hours[:, None]).any()


@pytest.mark.parametrize("name", DECLARED)
def test_what_people_are_stays_as_it_is(name):
    assert FIXED[name] <= {c.name for c in read_schema(DECLARED[name]) if c.actionable == "no"}


@pytest.mark.parametrize("name", DECLARED)
def test_something_is_said_of_every_set_and_something_may_change(name):
    schema = read_schema(DECLARED[name])
    assert schema != schema.without_actions()
    assert [c.name for c in schema if c.role != "target" and c.actionable != "no"]


@pytest.mark.parametrize("name", DECLARED)
def test_forbidden_steps_are_between_values_that_the_set_has(name):
    try:
        table = cv.load(name, actionable=True)
    except DataNotFoundError:
        pytest.skip(f"needs the rows of {name}, which is not on this machine")
    for column in table.schema:
        ends = {v for pair in column.forbidden for v in pair} - {ANY}
        known = set(table.frame[column.name].dropna().unique()) | set(column.values or ())
        codes = {-9, -8, -7} if column.type == "numeric" else {"8"}  # FICO's dictionary has more codes than the rows
        assert ends <= known | codes, column.name


def test_no_way_leads_to_less_money_or_later_payment():
    table = cv.load("german_credit", actionable=True)
    train, test = table.split(test_size=0.4, random_state=0)
    from countervail.model import train_forest

    answers = cv.CFK(k=10).fit(train, train_forest(train)).explain(test.features.head(60))
    levels = table.schema["savings_status"].levels
    for one in (x for x in answers if x.found):
        assert not FIXED["german_credit"] & one.changes.keys()
        if "savings_status" in one.changes:
            assert levels.index(one.changes["savings_status"]) > levels.index(one.factual["savings_status"])
        assert one.changes.get("own_telephone") != "none" and one.changes.get("other_parties") != "none"
    assert answers.found.any()
