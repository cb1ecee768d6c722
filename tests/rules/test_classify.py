"""MLEM2 and LERS as classifiers: voting against the definition, scikit-learn's manners, and bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_twin import decision_tables, lers, ours
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import countervail as cv
from countervail.core.errors import CountervailError, ParameterError, SchemaError
from countervail.rules import Inducer
from countervail.rules.votes import list_conditions, vote


@given(decision_tables(), st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5), st.integers(-1, 3)), max_size=5))
def test_votes_follow_the_definition(table, asked):
    rules = Inducer(table).imprecise()
    x = np.array(asked, dtype=float).reshape(-1, 3)
    x[x < 0] = np.nan
    x[:, 2] = np.where(np.isnan(x[:, 2]) | (x[:, 2] >= len(table.attributes[2].known)), -1, x[:, 2])
    weight = (rules.support * rules.specificity).astype(float)
    found = vote(x.T.copy(), list_conditions(rules), weight, rules.conclusions, len(table.classes))
    expected = lers(ours(rules), x, table.attributes, len(table.classes))
    assert found.shape == (len(x), len(table.classes))
    assert np.allclose(found, expected.reshape(found.shape))


def test_rules_read_as_sentences_and_as_a_frame():
    frame = pd.DataFrame({"age": [20, 25, 40, 60], "town": ["x", "x", "y", "y"], "ok": ["no", "no", "yes", "no"]})
    model = cv.MLEM2().fit(frame[["age", "town"]], frame["ok"])
    assert [r.sentence for r in model.rules_] == [
        "If age is at most 25 then ok is no.",
        "If age is at least 60 then ok is no.",
        "If age is 40 then ok is yes.",
    ]
    shown = model.to_frame()
    assert list(shown.columns) == ["condition", "conclusion", "support", "strength", "specificity"]
    assert (shown["strength"] == shown["support"] / 4).all()
    assert shown["specificity"].tolist() == [len(r.region.cells) for r in model.rules_]


def test_levels_and_open_intervals_are_worded():
    levels = pd.Categorical(["low", "low", "mid", "high"], ["low", "mid", "high"], ordered=True)
    rules = cv.MLEM2().fit(pd.DataFrame({"safety": levels}), ["a", "a", "b", "c"]).rules_
    assert [r.condition for r in rules] == [
        "safety is low",
        "safety is mid",
        "safety is high",
    ]
    numbers = cv.MLEM2().fit(pd.DataFrame({"x": [1.5, 2.0, 3.0]}), ["a", "b", "b"]).rules_
    assert [r.condition for r in numbers] == ["x is at most 1.5", "x is at least 2"]
    assert numbers.to_dict()["rules"][0]["if"] == {"x": {"from": None, "to": 1.5}}


def test_a_rule_is_a_region_that_covers_its_rows():
    table = cv.load("iris")
    model = cv.MLEM2().fit(table)
    for rule in model.rules_:
        inside = rule.region.covers(table.features)
        assert inside.sum() == rule.support
        assert set(table.target[inside]) <= set(rule.conclusion)


@pytest.mark.parametrize("model", [cv.MLEM2(), cv.LERS(), cv.LERS(k=3)], ids=str)
def test_scikit_learn_can_use_it(model):
    table = cv.load("iris")
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(table.features)
    assert cross_val_score(fresh, table.features, table.target, cv=5).mean() > 0.9
    fitted = fresh.fit(table.features, table.target)
    shares = fitted.predict_proba(table.features)
    assert shares.shape == (150, 3) and np.allclose(shares.sum(axis=1), 1)
    assert (fitted.classes_[shares.argmax(axis=1)] == fitted.predict(table.features)).all()
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(table.features) == fitted.predict(table.features)).all()


def test_precise_rules_know_their_own_rows():
    table = cv.load("iris")
    consistent = ~table.frame.duplicated(table.schema.features, keep=False)
    model = cv.MLEM2().fit(table)
    assert (model.predict(table.features) == table.target)[consistent].mean() > 0.98


def test_other_frames_and_tables_give_the_same_rules():
    table = cv.load("iris")
    ours_ = cv.MLEM2().fit(table)
    theirs = cv.MLEM2().fit(pl.from_pandas(table.features), table.target)
    assert ours_.rules_.to_frame().equals(theirs.rules_.to_frame())


def test_ties_go_to_the_first_class_or_to_the_last():
    frame = pd.DataFrame({"a": ["u", "v"]})
    for ties, winner in (("first", "p"), ("last", "q")):
        model = cv.MLEM2(ties=ties).fit(frame, ["p", "q"])
        assert model.predict(pd.DataFrame({"a": ["w"]})).tolist() == [winner]


def test_where_no_rule_even_partly_matches_the_frequent_class_is_taken():
    model = cv.MLEM2().fit(pd.DataFrame({"a": ["u", "v", "v"]}), ["p", "q", "q"])
    assert model.predict_proba(pd.DataFrame({"a": ["w"]})).round(3).tolist() == [[0.333, 0.667]]


def test_missing_labels_are_values_and_missing_numbers_match_nothing():
    frame = pd.DataFrame({"a": ["u", None, None], "n": [1, 2, 3]})
    model = cv.MLEM2().fit(frame[["a"]], ["p", "q", "q"])
    assert [r.condition for r in model.rules_] == ["a is u", "a is missing"]
    assert model.predict(frame[["a"]]).tolist() == ["p", "q", "q"]
    with pytest.raises(SchemaError, match="missing numbers in column 'n'"):
        cv.MLEM2().fit(frame.assign(n=[1, None, 3]), ["p", "q", "q"])
    numbers = cv.MLEM2().fit(frame[["n"]], ["p", "q", "q"])
    assert numbers.predict(pd.DataFrame({"n": [None, 1.0]})).tolist() == ["q", "p"]


def test_levels_with_holes_lose_their_order():
    levels = pd.Categorical(["low", "mid", None, "high"], ["low", "mid", "high"], ordered=True)
    rules = cv.MLEM2().fit(pd.DataFrame({"s": levels}), list("abcd")).rules_
    assert [r.condition for r in rules] == ["s is low", "s is mid", "s is missing", "s is high"]


def test_a_pattern_table_is_training_data():
    table = cv.load("iris")
    release = cv.KCommonPatterns(k=5, random_state=0).fit(table).protect(table)
    from_release = cv.LERS().fit(release)
    shown = release.to_frame()
    from_frame = cv.LERS(schema=release.schema).fit(shown[table.schema.features], shown["species"])
    assert (
        from_release.rules_.to_text().splitlines()
        == from_frame.rules_.to_text().replace("then class", "then species").splitlines()
    )
    assert (from_release.predict(table.features) == table.target).mean() > 0.9


def test_a_mondrian_release_is_training_data():
    table = cv.load("iris")
    release = cv.published.EqualHalvesMondrian(k=5, by_class=True, random_state=0).fit(table).protect(table)
    assert (cv.LERS(semantics="paper").fit(release).predict(table.features) == table.target).mean() > 0.7


@pytest.mark.parametrize(
    ("fit", "error", "words"),
    [
        (lambda f: cv.MLEM2().fit(f, ["p", "p", "p"]), ParameterError, "'y' parameter of MLEM2 must be of at least"),
        (lambda f: cv.MLEM2().fit(f, ["p", None, "q"]), ParameterError, "every row has a class"),
        (lambda f: cv.MLEM2().fit(f, ["p", "q"]), ParameterError, "as long as X, 3 rows"),
        (lambda f: cv.MLEM2().fit(f), ParameterError, "'y' parameter of MLEM2 must be given"),
        (lambda f: cv.MLEM2().fit(f.iloc[:0], []), ParameterError, "at least one row"),
        (lambda f: cv.MLEM2().fit({1, 2, 3}, list("pqp")), ParameterError, "a DataFrame"),
        (lambda f: cv.MLEM2().fit(pd.concat([f, f], axis=1), list("pqp")), SchemaError, "must be unique"),
        (lambda f: cv.MLEM2(semantics="loose").fit(f, list("pqp")), ParameterError, "'semantics' parameter of MLEM2"),
        (lambda f: cv.MLEM2(ties="both").fit(f, list("pqp")), ParameterError, "'ties' parameter of MLEM2"),
        (lambda f: cv.MLEM2(schema="s.toml").fit(f, list("pqp")), ParameterError, "'schema' parameter of MLEM2"),
        (lambda f: cv.LERS(k=0).fit(f, list("pqp")), ParameterError, "'k' parameter of LERS"),
        (lambda f: cv.LERS(k=4).fit(f, list("pqp")), ParameterError, "at most the number of rows, 3"),
        (lambda f: cv.LERS(max_union=0).fit(f, list("pqp")), ParameterError, "'max_union' parameter of LERS"),
        (lambda f: cv.MLEM2().fit(f, list("pqp")).predict(f[["a"]]), SchemaError, "lack these columns"),
        (lambda f: cv.MLEM2().fit(f, list("pqp")).predict(f.assign(n="x")), SchemaError, "was numeric in training"),
    ],
)
def test_bad_input_is_named(fit, error, words):
    frame = pd.DataFrame({"a": ["u", "v", "w"], "n": [1, 2, 3]})
    with pytest.raises(error, match=words):
        fit(frame)


def test_cells_are_no_rows_to_classify():
    frame = pd.DataFrame({"a": ["u", "v"]})
    model = cv.MLEM2().fit(frame, ["p", "q"])
    with pytest.raises(SchemaError, match="holds intervals or sets"):
        model.predict(pd.DataFrame({"a": [frozenset("uv")]}))


def test_values_outside_the_schema_are_refused_without_naming_them():
    schema = cv.Schema((cv.Column("s", "ordinal", levels=("low", "high")),))
    with pytest.raises(CountervailError, match="outside its declared levels") as refused:
        cv.LERS(schema=schema).fit(pd.DataFrame({"s": ["low", "Ann's"]}), ["p", "q"])
    assert "Ann" not in str(refused.value)
    cells = pd.DataFrame({"s": pd.Series([frozenset({"low"}), frozenset({"Ann's", "low"})], dtype=object)})
    with pytest.raises(CountervailError, match="outside its declared levels") as refused:
        cv.LERS(schema=schema).fit(cells, ["p", "q"])
    assert "Ann" not in str(refused.value)


def test_too_many_classes_need_a_cap():
    def data(p):
        return pd.DataFrame({"n": range(2 * p)}), [f"c{i % p:02}" for i in range(2 * p)]

    with pytest.warns(UserWarning, match="only those of up to"):
        cv.LERS(k=3).fit(*data(12))
    with pytest.raises(ParameterError, match="given for more than 16 classes"):
        cv.LERS().fit(*data(17))
    assert len(cv.LERS(max_union=1).fit(*data(17)).rules_)
    with pytest.raises(ParameterError, match="at most 63 classes"):
        cv.MLEM2().fit(*data(64))


def test_a_class_below_k_gets_no_rule_of_its_own():
    table = cv.load("toy_evaluation")
    conclusions = {r.conclusion for r in cv.LERS(k=2).fit(table).rules_}
    assert ("medium",) not in conclusions and ("low", "medium") in conclusions
