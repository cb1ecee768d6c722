"""Data sets: the bundled ones row for row, the registered ones where they are, an error where they are not."""

import json
from importlib.resources import files

import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError, ParameterError
from countervail.data import REGISTERED, find
from countervail.data.registry import PERSON, places, read_description

# Goethals et al., "The privacy issue of counterfactual explanations", Table 2, as printed.
TABLE_2 = """
Alfred 25 M Brussels 50 Single Reject
Boris 23 M Antwerp 40 Separated Reject
Casper 34 M Brussels 30 Cohabiting Reject
Derek 47 M Antwerp 100 Married Accept
Edward 70 M Brussels 90 Single Accept
Fiona 24 F Antwerp 60 Single Accept
Gina 27 F Antwerp 80 Married Accept
Hilda 38 F Brussels 60 Widowed Reject
Ingrid 26 F Antwerp 60 Single Reject
Jade 50 F Brussels 100 Married Accept
"""
# Inuiguchi et al., "Data anonymization with imprecise rules", Table 1, as printed.
TABLE_1 = """
male salesman Osaka high
male salesman Tokyo high
female salesman Tokyo low
female engineer Fukuoka medium
male engineer Osaka low
male salesman Fukuoka high
"""


def printed(text):
    return [line.split() for line in text.strip().splitlines()]


def test_german_credit_has_the_size_and_the_risk_that_the_paper_states():
    table = cv.load("german_credit")
    # Goethals et al., Table 5: 1,000 instances, 19 attributes, 83.7% uniquely identifiable, all in classes below 10.
    risk = cv.measure.risk(table, k=10, depth=1)
    assert len(table) == 1000
    assert round(100 * risk.unique, 1) == 83.7
    assert risk.below_k == 1.0
    assert table.schema.names("quasi", "sensitive") == [
        "employment",
        "personal_status",
        "residence_since",
        "property_magnitude",
        "age",
        "housing",
        "job",
        "foreign_worker",
    ]


def test_german_credit_hopes_for_good_and_says_whose_it_is():
    table = cv.load("german_credit")
    # UCI Statlog: 700 good and 300 bad.
    assert table.target.value_counts().to_dict() == {"good": 700, "bad": 300}
    assert table.schema.favourable == ("good",)
    attribution = (files("countervail.data") / "bundled" / "ATTRIBUTION.md").read_text()
    assert "CC BY 4.0" in attribution and "UCI" in attribution


def test_german_credit_asks_for_anything_unless_told_to_keep_to_what_people_can_do():
    plain, declared = cv.load("german_credit"), cv.load("german_credit", actionable=True)
    assert plain.schema == declared.schema.without_actions() != declared.schema
    assert {c.actionable for c in plain.schema} == {"any"} and not any(c.range or c.forbidden for c in plain.schema)
    pd.testing.assert_frame_equal(plain.frame, declared.frame)
    ways = {c.name: c.actionable for c in declared.schema}
    assert {n for n, way in ways.items() if way == "no"} == {
        "age",
        "credit_history",
        "foreign_worker",
        "housing",
        "installment_commitment",
        "num_dependents",
        "personal_status",
        "purpose",
    }
    assert ways["credit_amount"] == ways["existing_credits"] == "down" and ways["savings_status"] == "up"


@pytest.mark.parametrize("name", ["iris", "toy_credit", "toy_evaluation"])
def test_a_set_without_declarations_says_so(name):
    with pytest.raises(ParameterError, match=f"'actionable' parameter of load must be False for '{name}'"):
        cv.load(name, actionable=True)


def test_toy_credit_is_table_2_row_for_row():
    table = cv.load("toy_credit")
    assert table.frame.astype(str).to_numpy().tolist() == printed(TABLE_2)
    assert table.schema.names("identifier") == ["name"]
    assert table.schema.names("quasi") == ["age", "gender", "city"]
    assert table.schema.favourable == ("Accept",)


def test_the_toy_model_decides_as_table_2_prints():
    table = cv.load("toy_credit")
    assert cv.data.toy_credit_model(table.features).tolist() == [row[-1] for row in printed(TABLE_2)]


def test_the_toy_model_rejects_lisa_as_table_1_prints():
    lisa = cv.data.toy_credit_query()
    assert lisa.to_dict("records") == [
        {"age": 21, "gender": "F", "city": "Brussels", "salary": 50, "relationship": "Single"}
    ]
    assert cv.data.toy_credit_model(lisa).tolist() == ["Reject"]


def test_the_toy_model_decides_as_table_4_prints():
    cell = {"gender": "F", "city": "Antwerp", "salary": 60, "relationship": "Single"}
    rows = pd.DataFrame([{"age": age, **cell} for age in (24, 25, 26, 27)])
    assert cv.data.toy_credit_model(rows).tolist() == ["Accept", "Accept", "Reject", "Reject"]


def test_toy_evaluation_is_table_1_row_for_row():
    table = cv.load("toy_evaluation")
    assert table.frame.to_numpy().tolist() == printed(TABLE_1)
    assert table.schema.target == "evaluation" and table.schema.favourable == ("high",)


def test_iris_has_three_classes_of_fifty_in_centimetres():
    table = cv.load("iris")
    assert table.target.value_counts().to_dict() == {"setosa": 50, "versicolor": 50, "virginica": 50}
    assert table.schema.features == ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    assert {table.schema[n].unit for n in table.schema.features} == {"cm"}


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(ParameterError, match=r"'name' parameter of load must be one of .*german_credit.*zoo"):
        cv.load("titanic")


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERVAIL_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = [p for p in places() if p.is_relative_to(tmp_path)]
    monkeypatch.setattr("countervail.data.registry.places", lambda: kept)
    return tmp_path


def test_a_registered_set_that_is_nowhere_says_where_to_put_it(nowhere):
    with pytest.raises(DataNotFoundError) as caught:
        cv.load("adult")
    message = str(caught.value)
    assert str(nowhere / "mine") in message and str(nowhere / "cache" / "countervail" / "data") in message
    assert all(word in message for word in ("adult.csv.gz", "adult.json", "COUNTERVAIL_DATA", "UCI", "CC BY 4.0"))


def test_the_named_folder_comes_first_and_the_cache_last(nowhere):
    for folder in (nowhere / "mine", nowhere / "cache" / "countervail" / "data"):
        folder.mkdir(parents=True)
        (folder / "zoo.json").write_text("{}")
        pd.DataFrame({"a": [1]}).to_csv(folder / "zoo.csv.gz", index=False)
    assert find("zoo").parent == nowhere / "mine"
    (nowhere / "mine" / "zoo.json").unlink()  # a set without its description does not count
    assert find("zoo").parent == nowhere / "cache" / "countervail" / "data"


def test_a_registered_set_loads_with_the_roles_of_its_description(nowhere):
    (nowhere / "mine").mkdir()
    pd.DataFrame({"legs": [4, 2], "size": ["big", "small"], "type": ["m", "b"]}).to_csv(
        nowhere / "mine" / "zoo.csv.gz", index=False
    )
    columns = [
        {"name": "legs", "type": "numeric", "role": "quasi"},
        {"name": "size", "type": "ordinal", "role": "attribute", "levels": ["small", "big"]},
        {"name": "type", "type": "categorical", "role": "target"},
    ]
    (nowhere / "mine" / "zoo.json").write_text(json.dumps({"columns": columns, "favourable": "m"}))
    table = cv.load("zoo")
    assert repr(table) == "Table(2 rows; quasi: legs; target: type)"
    assert table.schema["size"].levels == ("small", "big") and table.schema.favourable == ("m",)


@pytest.mark.parametrize("text", ["{", "{}", '{"columns": [{"type": "numeric"}]}', '{"columns": 3}'])
def test_a_broken_description_is_refused(text, tmp_path):
    (tmp_path / "zoo.json").write_text(text)
    with pytest.raises(cv.SchemaError, match=r"description 'zoo\.json' must be JSON"):
        read_description(tmp_path / "zoo.json")


@pytest.mark.parametrize("name", REGISTERED)
def test_a_registered_set_that_is_here_loads(name):
    try:
        path = find(name)
    except DataNotFoundError:
        pytest.skip(f"{name} is not on this machine")
    about = json.loads(path.with_name(f"{name}.json").read_text())
    table = cv.load(name)
    assert len(table) == about["rows"]
    declared = [c["name"] for c in about["columns"] if name not in PERSON or c["role"] != "identifier"]
    assert [n for n in table.schema.names() if n != PERSON.get(name)] == declared
    assert table.schema.target is not None and table.target.nunique() >= 2
    assert table.schema == table.schema.without_actions()
