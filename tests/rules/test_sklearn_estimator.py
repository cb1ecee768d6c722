"""MLEM2 and LERS as scikit-learn's own checks, arrays, pipelines and searches want them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError

MODELS = [cv.MLEM2(), cv.LERS(), cv.LERS(k=3)]
EXCEPTIONS = {
    "check_estimators_nan_inf": "fit refuses missing numbers in words of its own, and predict takes them on purpose: "
    "they match no condition, and what the other columns say still counts",
}


@parametrize_with_checks(MODELS, expected_failed_checks=lambda model: EXCEPTIONS)
def test_the_checks_of_scikit_learn_hold(estimator, check):
    check(estimator)


def mixed():
    """Numbers, whole numbers, labels with a missing one, and flags."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=60).round(1),
            "rooms": rng.integers(0, 6, 60),
            "colour": rng.choice(["red", "green", "blue"], 60),
            "sold": rng.integers(0, 2, 60).astype(bool),
        }
    )
    frame.loc[7, "colour"] = None
    y = np.where(frame["size"] + frame["rooms"] > 2, "far", np.where(frame["colour"] == "red", "near", "middle"))
    return frame, y


def told(model, rows):
    return model.rules_.to_text(), model.predict(rows).tolist(), model.predict_proba(rows).tolist()


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("names", [["size", "rooms", "colour", "sold"], ["size"], ["rooms"], ["colour"], ["sold"]])
def test_arrays_lists_and_frames_of_the_same_content_give_the_same_rules(model, names):
    frame, y = mixed()
    rows = frame[names].set_axis([f"x{i}" for i in range(len(names))], axis=1)
    expected = told(model.fit(rows, y), rows)
    array, unnamed = rows.to_numpy(), rows.set_axis(range(len(names)), axis=1)
    assert told(model.fit(array, y), array) == expected
    assert told(model.fit(array.tolist(), y.tolist()), array.tolist()) == expected
    assert told(model.fit(unnamed, y), unnamed) == expected


@given(st.data())
def test_an_array_of_numbers_gives_the_rules_of_its_frame(data):
    n = data.draw(st.integers(3, 12))
    kind = data.draw(st.sampled_from([float, int, "float32", "int8"]))
    cells = st.lists(st.integers(0, 4), min_size=3, max_size=3)
    array = np.array(data.draw(st.lists(cells, min_size=n, max_size=n)), dtype=kind)
    y = np.array([0, 1, *data.draw(st.lists(st.integers(0, 2), min_size=n - 2, max_size=n - 2))])
    frame = pd.DataFrame(array, columns=["x0", "x1", "x2"])
    assert told(cv.LERS().fit(array, y), array) == told(cv.LERS().fit(frame, y), frame)


def test_columns_are_found_by_name_where_both_sides_have_names_and_by_place_otherwise():
    frame, y = mixed()
    named = cv.MLEM2().fit(frame, y)
    expected = named.predict(frame).tolist()
    assert named.feature_names_in_.tolist() == list(frame.columns) and named.n_features_in_ == 4
    assert named.predict(frame.iloc[:, ::-1].assign(other=1)).tolist() == expected
    with pytest.warns(UserWarning, match="X does not have valid feature names, but MLEM2 was fitted with"):
        assert named.predict(frame.to_numpy()).tolist() == expected
    unnamed = named.fit(frame.to_numpy(), y)
    assert not hasattr(unnamed, "feature_names_in_")
    with pytest.warns(UserWarning, match="X has feature names, but MLEM2 was fitted without"):
        assert unnamed.predict(frame).tolist() == expected


def test_a_pipeline_takes_arrays_and_whatever_frames_the_steps_give():
    frame, y = mixed()
    frame.loc[3, "size"] = np.nan
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size", "rooms"]),
            ("labels", "passthrough", ["colour"]),
        ],
        verbose_feature_names_out=False,
    )
    found = {
        kind: make_pipeline(clone(columns), cv.LERS(k=2)).set_output(transform=kind).fit(frame, y)
        for kind in ("default", "pandas", "polars")
    }
    said = {kind: model.predict(frame).tolist() for kind, model in found.items()}
    assert said["default"] == said["pandas"] == said["polars"]
    assert found["pandas"][-1].feature_names_in_.tolist() == ["size", "rooms", "colour"]
    assert found["pandas"].score(frame, y) > 0.8
    text = found["default"][-1].rules_.to_text()
    for i, name in enumerate(["size", "rooms", "colour"]):
        text = text.replace(f"x{i} is", f"{name} is")
    assert text == found["pandas"][-1].rules_.to_text() == found["polars"][-1].rules_.to_text()


def test_categories_of_a_frame_keep_their_order_behind_a_transformer():
    levels = pd.Categorical(["low", "mid", "high"] * 20, ["low", "mid", "high"], ordered=True)
    frame, y = pd.DataFrame({"level": levels, "n": range(60)}), ["a", "b", "b"] * 20
    keep = ColumnTransformer([("keep", "passthrough", ["level"])], verbose_feature_names_out=False)
    model = make_pipeline(keep, cv.MLEM2()).set_output(transform="pandas").fit(frame, y)
    assert model[-1].to_frame()["condition"].tolist() == ["level is low", "level is at least mid"]


@pytest.mark.parametrize("model", [cv.MLEM2(), cv.LERS(k=2)], ids=str)
def test_scores_and_searches_are_the_same_on_arrays_and_frames(model):
    table = cv.load("iris")
    array, y = table.features.to_numpy(), table.target.to_numpy()
    assert cross_val_score(model, array, y).tolist() == cross_val_score(model, table.features, y).tolist()
    bins = KBinsDiscretizer(encode="ordinal", strategy="uniform")
    grid = {"kbinsdiscretizer__n_bins": [3, 8], f"{type(model).__name__.lower()}__ties": ["first", "last"]}
    searches = [GridSearchCV(make_pipeline(bins, model), grid, cv=3).fit(rows, y) for rows in (array, table.features)]
    assert searches[0].best_params_ == searches[1].best_params_
    assert searches[0].best_score_ == searches[1].best_score_ > 0.85


def test_missing_numbers_of_an_array_are_refused_in_training_and_match_nothing_later():
    for bad, words in ((np.nan, "missing numbers in column 'x1'"), (np.inf, "Column 'x1' holds infinite values")):
        with pytest.raises(SchemaError, match=words):
            cv.MLEM2().fit(np.array([[1.0, 2.0], [3.0, bad], [0.0, 1.0]]), [0, 1, 1])
    model = cv.MLEM2().fit(np.array([[1.0], [2.0], [3.0]]), ["p", "q", "q"])
    assert model.predict(np.array([[np.nan], [1.0]])).tolist() == ["q", "p"]
    assert not get_tags(model).input_tags.allow_nan and get_tags(model).input_tags.string


def test_labels_keep_their_types_and_fractions_are_no_classes():
    rows = np.array([[1], [2], [3]])
    assert cv.MLEM2().fit(rows, [1, "a", "a"]).predict(rows).tolist() == [1, "a", "a"]
    with pytest.warns(DataConversionWarning):
        assert cv.MLEM2().fit(rows, np.array([[0], [1], [1]])).predict(rows).tolist() == [0, 1, 1]
    for given_rows in (rows, pd.DataFrame(rows, columns=["a"])):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            cv.MLEM2().fit(given_rows, [0.5, 1.5, 2.5])
        with pytest.raises(ParameterError, match="every row has a class"):
            cv.MLEM2().fit(given_rows, [1.0, np.nan, 2.0])
        with pytest.raises(ParameterError, match="of finite numbers"):
            cv.MLEM2().fit(given_rows, [1.0, np.inf, 2.0])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([123.25, 124.5]), "an array of rows and columns. Got '1 dimension"),
        ([123.25, 124.5], "an array of rows and columns. Got '1 dimension"),
        ([[123.25, 1], [2]], "an array of rows and columns. Got '1 dimension"),
        (np.array([[123.25 + 1j], [2]]), "of real numbers or labels. Got 'complex128'"),
        (np.zeros((2, 0)), "0 feature"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros((2, 2, 2)), "Got '3 dimension"),
        (csr_array(np.array([[123.25], [1.0]])), "dense data is required"),
        (np.array([[123.25], [{"a": 1}]], dtype=object), "compound values"),
    ],
)
def test_bad_arrays_are_named_without_their_values(rows, words):
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        cv.MLEM2().fit(rows, [0, 1])
    assert "123" not in str(refused.value)
