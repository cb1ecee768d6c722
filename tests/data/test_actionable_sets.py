"""What is declared of the data sets: nobody is asked to be somebody else, and every step that is named exists."""

from importlib.resources import files

import pytest

import countervail as cv
from countervail.core.constraints import ANY
from countervail.core.errors import DataNotFoundError

SETS = [
    "german_credit",
    *sorted(p.name.removesuffix(".toml") for p in (files("countervail.data") / "bundled" / "words").iterdir()),
]
FIXED = {
    "german_credit": {"age", "personal_status", "foreign_worker", "num_dependents", "credit_history"},
    "acs_income_ca_2018": {"AGEP", "SEX", "RAC1P", "MAR", "POBP", "RELP"},
    "adult": {"age", "race", "sex", "native-country", "marital-status", "relationship", "fnlwgt"},
    "cmc": {"WifeAge", "ChildrenBorn", "WifeReligion"},
    "default_credit": {"SEX", "AGE", "MARRIAGE"},
    "give_me_some_credit": {"age", "NumberOfTimes90DaysLate", "NumberOfDependents"},
    "heart_c": {"age", "sex"},
    "heloc": {"NumTrades60Ever2DerogPubRec", "NumTrades90Ever2DerogPubRec", "MaxDelqEver"},
}


@pytest.fixture(params=SETS)
def declared(request):
    try:
        return request.param, cv.load(request.param, actionable=True)
    except DataNotFoundError:
        pytest.skip(f"{request.param} is not on this machine")


def test_what_people_are_stays_as_it_is(declared):
    name, table = declared
    assert FIXED[name] <= {c.name for c in table.schema if c.actionable == "no"}


def test_something_may_change(declared):
    _, table = declared
    assert [n for n in table.schema.features if table.schema[n].actionable != "no"]


def test_forbidden_steps_are_between_values_that_the_set_has(declared):
    _, table = declared
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
