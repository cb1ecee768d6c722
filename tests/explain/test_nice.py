"""NICE against its specification: worked examples, statuses, labels of any kind, bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import countervail as cv
from countervail.explain.nice import REWARDS
from countervail.model import train_forest
from countervail.testing import small_model, small_table


@pytest.fixture(scope="module")
def toy():
    return cv.NICE().fit(cv.load("toy_credit"), cv.data.toy_credit_model)


def test_lisa_is_pointed_at_fiona(toy):
    # Goethals et al., Figure 1: the nearest unlike neighbour of Lisa is Fiona.
    e = toy.explain(cv.data.toy_credit_query())
    assert e.counterfactuals.iloc[0].to_dict() == {
        "age": 24,
        "gender": "F",
        "city": "Antwerp",
        "salary": 60,
        "relationship": "Single",
    }
    assert e.to_text() == (
        "If you were 3 years older (from 21 to 24), lived in Antwerp (instead of Brussels) and earned $10K more (from "
        "$50K to $60K), the decision would be Accept."
    )


@pytest.mark.parametrize("reward", REWARDS)
def test_three_classes_work_for_every_reward(reward):
    iris = cv.load("iris")
    model = LogisticRegression(max_iter=1000).fit(iris.features, iris.target)
    e = cv.NICE(reward).fit(iris, model).explain(iris)
    assert e.found.all()
    assert (model.predict(e.counterfactuals) == e.after).all()
    assert (e.after != e.before).all()
    assert set(e.after) == {"setosa", "versicolor", "virginica"}


@pytest.mark.parametrize("labels", [("no", "yes"), (1, 2), (False, True), (-1.0, 1.0)])
def test_any_labels_serve(labels):
    t = small_table()
    frame = t.frame.assign(ok=t.target.map({"no": labels[0], "yes": labels[1]}).astype(type(labels[0])))
    table = cv.Table.from_frame(frame, target="ok", favourable=labels[1], identifiers=["id"])
    e = cv.NICE("sparsity", target=labels[1]).fit(table, small_model).explain(table)
    assert set(e.after[e.found]) == {labels[1]}


def test_a_favourable_row_gets_a_status_of_its_own():
    t = small_table()
    e = cv.NICE(target="favourable").fit(t, small_model).explain(t)
    assert set(e.status) == {"found", "already_favourable"}
    assert (e.status == "already_favourable").sum() == (e.before == "yes").sum()
    assert e.counterfactuals[~e.found].isna().all(axis=None)
    assert e.counterfactuals["age"].dtype == "Int64"


def test_a_row_without_candidate_never_fails_a_batch():
    t = small_table()
    nice = cv.NICE(target="favourable", ranges={"income": (150, 150)}).fit(t, small_model)
    e = nice.explain(t)
    assert set(e.status) == {"no_counterfactual", "already_favourable"}
    assert "We found nothing that you could change" in e.to_text()


def test_label_only_models_allow_the_neighbour_itself():
    t = small_table()
    frame = pd.get_dummies(t.features.drop(columns="level"))

    def model(rows):
        wide = pd.get_dummies(rows.drop(columns="level")).reindex(columns=frame.columns, fill_value=0)
        return svm.predict(wide)

    svm = SVC().fit(frame, t.target)
    assert cv.NICE().fit(t, model).explain(t).found.any()
    with pytest.raises(ValueError, match="'reward' parameter of NICE must be 'none'"):
        cv.NICE("sparsity").fit(t, model)


def test_several_counterfactuals_are_distinct_and_ever_farther():
    t = small_table(200)
    e = cv.NICE(n_counterfactuals=4).fit(t, small_model).explain(small_table(5, seed=1))
    cost = cv.measure.recourse_cost(e)
    for q in range(5):
        of_one = e.query == q
        assert of_one.sum() == 4
        assert (np.diff(cost[of_one]) >= 0).all()
        assert not e.counterfactuals[of_one].duplicated().any()


def test_fewer_neighbours_than_asked_give_fewer_rows():
    table = cv.load("toy_credit")
    e = cv.NICE(n_counterfactuals=9).fit(table, cv.data.toy_credit_model).explain(cv.data.toy_credit_query())
    assert len(e) == 5  # five people are accepted


def test_predictions_decide_where_a_threshold_was_tuned():
    t = small_table(150)

    class Strict:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, frame):
            return small_model(frame)

        def predict(self, frame):
            return np.where(small_model(frame)[:, 1] > 0.8, "yes", "no")

    e = cv.NICE("sparsity", target="favourable").fit(t, Strict()).explain(t)
    assert e.found.any()
    assert (Strict().predict(e.counterfactuals[e.found]) == "yes").all()


def test_a_pipeline_gets_the_tables_own_columns_and_dtypes():
    t = small_table(150)
    seen = []

    def model(frame):
        seen.append(frame)
        return small_model(frame)

    cv.NICE("proximity").fit(t, model).explain(t.features.iloc[:10])
    for frame in seen:
        assert list(frame.columns) == t.schema.features
        assert (frame.dtypes == t.features.dtypes).all()


def test_one_model_call_per_step_serves_the_whole_batch():
    t = small_table(150)
    calls = []

    def model(frame):
        calls.append(len(frame))
        return small_model(frame)

    nice = cv.NICE("sparsity").fit(t, model)
    calls.clear()
    nice.explain(t)
    assert len(calls) <= 1 + len(t.schema.features)


def test_queries_may_hold_values_the_table_never_had():
    frame = small_table(100).frame.astype({"city": "str"})
    t = cv.Table.from_frame(frame, target="ok", identifiers=["id"])
    row = t.features.iloc[[0]].assign(city="elsewhere")
    e = cv.NICE("sparsity").fit(t, small_model).explain(row)
    assert e.found.all()
    assert e.factuals["city"].tolist() == ["elsewhere"]


def test_missing_categories_and_levels_are_values_of_their_own():
    frame = small_table(100).frame
    frame.loc[::3, "city"] = None
    frame.loc[::4, "level"] = None
    t = cv.Table.from_frame(frame, target="ok", identifiers=["id"])
    e = cv.NICE("proximity").fit(t, small_model).explain(t)
    assert e.found.all()
    assert e.counterfactuals["city"].isna().any()


def test_missing_numbers_are_refused_by_name():
    frame = small_table(30).frame
    t = cv.Table.from_frame(frame.assign(income=frame["income"].where(frame.index > 3)), target="ok")
    with pytest.raises(cv.SchemaError, match=r"missing values in numeric columns: \['income'\]"):
        cv.NICE().fit(t, small_model)
    whole = small_table(30)
    rows = whole.features.assign(income=np.nan)
    with pytest.raises(cv.SchemaError, match=r"'rows' given to NICE have missing values .* \['income'\]"):
        cv.NICE().fit(whole, small_model).explain(rows)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reward": "speed"}, "'reward' parameter of NICE must be one of"),
        ({"scale": "max"}, "'scale' parameter of NICE"),
        ({"n_counterfactuals": 0}, "'n_counterfactuals' parameter of NICE"),
        ({"target": "maybe"}, "'target' parameter of NICE must be among the labels"),
        ({"immutable": "age"}, r"Write \['age'\]"),
        ({"immutable": ["height"]}, "'immutable' parameter of NICE"),
        ({"ranges": {"age": (50, 20)}}, "'ranges' parameter of NICE"),
        ({"ranges": {"age": 5}}, r"'ranges' parameter of NICE must be \(low, high\) .* 'age'"),
        ({"ranges": {"age": ("20", "50")}}, "'ranges' parameter of NICE .* 'age'"),
        ({"ranges": {"age": (20, float("nan"))}}, "'ranges' parameter of NICE .* 'age'"),
        ({"ranges": {"city": "ab"}}, "'ranges' parameter of NICE must be a list of values for 'city'"),
        ({"ranges": {"city": ["a", "typo"]}}, r"'ranges' parameter of NICE .* column 'city' has. Got \['typo'\]"),
        ({"ranges": {"level": ["low", "typo"]}}, r"'ranges' parameter of NICE .* column 'level' has. Got \['typo'\]"),
        ({"monotone": {"age": "sideways"}}, "'up' or 'down'"),
        ({"monotone": {"height": "up"}}, "'monotone' parameter of NICE"),
        ({"monotone": {"city": "up"}}, "categorical and has no order"),
        ({"forbidden": {"height": []}}, "'forbidden' parameter of NICE"),
        ({"forbidden": {"city": [("a", "typo")]}}, r"'forbidden' parameter of NICE .* 'city' has. Got \['typo'\]"),
        ({"forbidden": {"city": [("typo", "a")]}}, "'forbidden' parameter of NICE .* Correct them, or declare them"),
        ({"forbidden": {"city": ("ab", "cb")}}, r"'forbidden' parameter of NICE must be a list of \(from, to\) pairs"),
        ({"forbidden": {"city": 3}}, r"'forbidden' parameter of NICE must be a list of \(from, to\) pairs"),
        ({"forbidden": {"age": [(20, "old")]}}, "'forbidden' parameter of NICE must be made of numbers .* 'age'"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        cv.NICE(**parameters).fit(small_table(), small_model)


def test_a_target_with_one_class_is_refused():
    t = small_table()
    table = cv.Table.from_frame(t.frame.assign(ok="yes"), target="ok", identifiers=["id"])
    with pytest.raises(cv.SchemaError, match="one class only"):
        cv.NICE().fit(table, small_model)


def test_a_model_trained_on_other_columns_is_refused():
    t = small_table()
    model = train_forest(t, trees=2)
    with pytest.raises(cv.SchemaError, match="was trained on the columns"):
        cv.NICE().fit(t.with_roles(identifier=["id", "age"]), model)


def test_forests_answer_the_same_alone_and_together():
    t = small_table(200)
    nice = cv.NICE("proximity").fit(t, train_forest(t, trees=10))
    rows = small_table(20, seed=5).features
    alone = pd.concat([nice.explain(rows.iloc[[i]]).counterfactuals for i in range(20)], ignore_index=True)
    pd.testing.assert_frame_equal(nice.explain(rows).counterfactuals, alone)


@pytest.mark.parametrize("domains", [True, False])
def test_a_mistyped_value_tells_none_of_the_tables(domains):
    frame = small_table().frame.assign(city=["Xanthippe", *small_table().frame["city"].iloc[1:]])
    schema = small_table(domains=domains).schema.with_column("city", domain=["Xanthippe", *"abc"] if domains else None)
    with pytest.raises(cv.CountervailError, match="'ranges' parameter of NICE") as caught:
        cv.NICE(ranges={"city": ["Xanthipe"]}).fit(cv.Table(frame, schema), small_model)
    assert "Xanthippe" not in str(caught.value)


@pytest.mark.parametrize("hole", [None, float("nan"), pd.NA])
def test_missing_is_a_value_that_may_be_allowed_or_forbidden(hole):
    t = small_table(120, domains=False)
    frame = t.frame.assign(city=t.frame["city"].where(t.frame["city"] != "c"))
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", identifiers=["id"])
    asked = table.features[(table.target == "no") & (table.frame["city"] == "a")]
    only = cv.NICE(ranges={"city": [hole]}).fit(table, small_model).explain(asked)
    assert only.found.all() and only.counterfactuals["city"].isna().all()
    never = cv.NICE(ranges={"city": [hole, "b"]}, forbidden={"city": [("a", hole)]}).fit(table, small_model)
    assert never.explain(asked).counterfactuals["city"].tolist() == ["b"] * len(asked)
