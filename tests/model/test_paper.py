"""The models of the paper: their settings, and that all of them learn."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError, ParameterError
from countervail.model import PAPER_MODELS, train_paper_model
from countervail.model.paper import KINDS

needs_lightgbm = pytest.mark.skipif(not find_spec("lightgbm"), reason="the extra 'lightgbm' is not installed")
EVERY = [pytest.param(k, marks=needs_lightgbm if k == "lightgbm" else ()) for k in KINDS]


@pytest.mark.parametrize("kind", EVERY)
def test_every_model_learns_german_credit(kind):
    train, test = cv.load("german_credit").split(test_size=0.3, random_state=0)
    model = train_paper_model(train, kind, "adult", random_state=1)
    right = (model.predict(test.features) == test.target.astype(object)).mean()
    common = (test.target == "good").mean()
    assert right > common - 0.05 and model.predict_proba(test.features).shape == (len(test), 2)
    again = train_paper_model(train, kind, "adult", random_state=1)
    assert np.array_equal(again.predict_proba(test.features), model.predict_proba(test.features))


@pytest.mark.parametrize("kind", EVERY)
def test_unknown_labels_do_not_stop_a_model(kind):
    table = cv.load("german_credit")
    train, test = table.split(test_size=0.3, random_state=0)
    name = next(c.name for c in table.schema if c.type == "categorical" and c.role != "target")
    rows = test.features.copy()
    rows[name] = "never seen"
    assert len(train_paper_model(train, kind).predict(rows)) == len(rows)


def test_the_settings_are_those_of_table_10():
    adult, compas, credit = (PAPER_MODELS[n] for n in ("adult", "compas", "default_credit"))
    assert adult.forest == {"n_estimators": 100, "max_depth": 20, "min_samples_split": 10}
    assert adult.network["activation"] == "tanh" and adult.network["hidden_layer_sizes"] == (50,)
    assert adult.lightgbm["num_leaves"] == 31 and adult.lightgbm["max_depth"] == 10
    assert compas.forest["max_depth"] == 10 and compas.lightgbm["learning_rate"] == 0.01
    assert credit.network["solver"] == "sgd" and credit.lightgbm["num_leaves"] == 100
    assert PAPER_MODELS["heloc"].reported == {"network": 0.720, "forest": 0.720, "lightgbm": 0.729}
    assert len(PAPER_MODELS) == 7


def test_bad_names_are_refused():
    iris = cv.load("iris")
    with pytest.raises(ParameterError, match="'kind' parameter of train_paper_model"):
        train_paper_model(iris, "svm")
    with pytest.raises(ParameterError, match="'settings' parameter of train_paper_model"):
        train_paper_model(iris, "forest", "mnist")


def test_lightgbm_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ParameterError, match=r"countervail\[lightgbm\]"):
        train_paper_model(cv.load("iris"), "lightgbm")


@pytest.mark.parametrize(("name", "features"), [("adult", 10), ("compas", 8), ("heloc", 23), ("default_credit", 23)])
def test_the_papers_tables_have_its_columns(name, features):
    try:
        typed, coded = cv.data.paper_table(name), cv.data.paper_table(name, coded=True)
    except DataNotFoundError:
        pytest.skip(f"the registered set {name} is not on this machine")
    assert len(typed.schema.features) == features and not typed.features.isna().any().any()
    assert {c.type for c in typed.schema} <= {"numeric", "categorical"}
    assert all(
        coded.features[c.name].nunique() < 10 for c in coded.schema if c.type == "categorical" and c.role != "target"
    )
    assert len(coded) == len(typed) and coded.schema.features == typed.schema.features


def test_on_adult_the_papers_people_ask_for_the_low_income():
    try:
        table = cv.data.paper_table("adult")
    except DataNotFoundError:
        pytest.skip("the registered set adult is not on this machine")
    assert table.schema.favourable == ("<=50K",)


def test_other_names_are_refused():
    with pytest.raises(ParameterError, match="'name' parameter of paper_table"):
        cv.data.paper_table("german_credit")
