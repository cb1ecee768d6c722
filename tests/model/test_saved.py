"""Saved models: skops files open, pickles only when allowed, strangers never."""

import io
import pickle
import random
import threading
import zipfile
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops.io import dump

import countervail as cv
from countervail.core.errors import CountervailError, DataNotFoundError, ModelFileError
from countervail.model import load_model, save_model, train_forest


@pytest.fixture(scope="module")
def forest():
    return train_forest(cv.load("toy_credit"), trees=3)


def survives(model, path):
    rows = cv.load("toy_credit").features
    save_model(model, path)
    assert load_model(path).predict_proba(rows).tolist() == model.predict_proba(rows).tolist()


def test_a_linear_model_survives_its_file(tmp_path):
    table = cv.load("toy_credit")
    labels = make_column_transformer((OneHotEncoder(), ["gender", "city", "relationship"]), remainder="passthrough")
    model = make_pipeline(labels, StandardScaler(with_mean=False), LogisticRegression())
    survives(model.fit(table.features, table.target.astype(object)), tmp_path / "model.skops")


def test_a_forest_survives_its_file(forest, tmp_path):
    survives(forest, tmp_path / "forest.skops")


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib"])
def test_a_pickle_opens_only_when_allowed(name, forest, tmp_path):
    joblib.dump(forest, tmp_path / name)
    with pytest.raises(ModelFileError, match="allow_pickle=True"):
        load_model(tmp_path / name)
    assert type(load_model(tmp_path / name, allow_pickle=True)) is type(forest)


class Trap:
    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_a_refused_pickle_runs_nothing(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "m.pkl")
    assert not Trap.sprung


def shout(frame):
    return frame


def test_types_that_are_not_known_to_be_safe_are_refused_by_name(tmp_path):
    with pytest.raises(ModelFileError, match=r"is not saved: .*shout"):
        save_model(FunctionTransformer(shout), tmp_path / "m.skops")
    dump(FunctionTransformer(shout), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"not known to be safe: .*shout"):
        load_model(tmp_path / "m.skops")


class HeldInC:
    """As models of compiled libraries: their state is no Python object."""

    def __init__(self, state):
        self.state = state


@pytest.mark.parametrize("state", [memoryview(b"x"), threading.Lock()])
def test_a_model_that_no_file_can_hold_is_refused_when_it_is_saved(state, tmp_path):
    with pytest.raises(ModelFileError, match="This model is not saved"):
        save_model(HeldInC(state), tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())


def test_a_function_with_something_put_in_beforehand_must_be_the_known_one(tmp_path):
    dump(FunctionTransformer(partial(np.add, 1)), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="holds a function that no model of scikit-learn holds"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x05\x06" + bytes(18)])
def test_a_broken_skops_file_is_refused(content, tmp_path):
    (tmp_path / "m.skops").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"'m\.skops' is not a readable skops file"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickle.dumps([1, 2])[:-3],
        b"cno_such_module\nThing\n.",
        b"cos\nno_such_name\n.",
        b"}}}",
        b"0.",
    ],
)
def test_a_broken_pickle_is_refused(content, tmp_path):
    (tmp_path / "m.pkl").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"'m\.pkl' cannot be opened as a pickle"):
        load_model(tmp_path / "m.pkl", allow_pickle=True)


def test_other_endings_and_missing_files_are_refused(forest, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"x")
    with pytest.raises(ModelFileError, match=r"must end in \.skops"):
        load_model(tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match=r"must end in \.skops"):
        save_model(forest, tmp_path / "m.pkl")
    with pytest.raises(DataNotFoundError, match="No model file"):
        load_model(tmp_path / "nobody.skops")
    assert issubclass(ModelFileError, CountervailError)


def test_the_same_seed_trains_the_same_forest():
    table = cv.load("toy_credit")
    one, two = (train_forest(table, trees=5, random_state=4) for _ in range(2))
    assert one.predict_proba(table.features).tolist() == two.predict_proba(table.features).tolist()


def test_a_tree_that_leads_outside_of_itself_is_refused(tmp_path):
    iris = cv.load("iris")
    model = DecisionTreeClassifier(max_depth=2).fit(iris.features, iris.target.astype(object))
    model.tree_.children_left[0] = 10_000
    save_model(model, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="links that lead outside"):
        load_model(tmp_path / "m.skops")


def wide_tree(columns=40, classes=2):
    rng = np.random.default_rng(0)
    rows = rng.random((80, columns))
    return DecisionTreeClassifier(max_depth=3).fit(
        rows[:, ::-1], np.digitize(rows[:, 0], np.arange(1, classes) / classes)
    )


def small(model):
    rng = np.random.default_rng(0)
    return model.fit(rng.random((60, 3)), np.arange(60) % 3)


def with_a_wide_tree(model):
    made = small(model)
    if isinstance(made, GradientBoostingClassifier):
        made.estimators_[0, 0].tree_ = wide_tree().tree_
    else:
        made.estimators_[0] = wide_tree()
    return made


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(2),
        ExtraTreesClassifier(2),
        GradientBoostingClassifier(n_estimators=2),
        IsolationForest(n_estimators=2),
        BaggingClassifier(n_estimators=2, max_features=2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_tree_that_reads_more_columns_than_its_model_lets_in_is_refused(model, tmp_path):
    save_model(small(model), tmp_path / "whole.skops")
    load_model(tmp_path / "whole.skops")
    save_model(with_a_wide_tree(model), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="links that lead outside"):
        load_model(tmp_path / "m.skops")


def lying_width():
    made = small(DecisionTreeClassifier())
    made.tree_ = wide_tree().tree_
    return made


def lying_classes():
    made = small(DecisionTreeClassifier())
    made.classes_ = np.arange(7)
    return made


def lying_forest():
    made = small(RandomForestClassifier(2))
    made.n_features_in_ = 2
    return made


def too_many_per_round():
    made = small(GradientBoostingClassifier(n_estimators=2))
    made.estimators_ = np.repeat(made.estimators_, 20, axis=1)
    return made


def too_many_classes_per_round():
    made = small(GradientBoostingClassifier(n_estimators=2))
    made.estimators_[0, 0] = small(DecisionTreeClassifier())
    return made


def no_trees():
    made = small(RandomForestClassifier(2))
    made.estimators_ = [small(LogisticRegression()), made.estimators_[0]]
    return made


@pytest.mark.parametrize(
    "craft", [lying_width, lying_classes, lying_forest, too_many_per_round, too_many_classes_per_round, no_trees]
)
def test_a_model_whose_trees_are_not_of_its_shape_is_refused(craft, tmp_path):
    save_model(craft(), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="links that lead outside"):
        load_model(tmp_path / "m.skops")


def test_a_damaged_skops_file_is_one_line_of_ours(forest, tmp_path, seeds):
    save_model(forest, tmp_path / "m.skops")
    whole = (tmp_path / "m.skops").read_bytes()
    refused = 0
    for seed in seeds(150, 5_000):
        rng = random.Random(seed)
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(tmp_path / "m.skops", "w") as new:
            for name in old.namelist():
                content = old.read(name)
                if rng.random() < 0.1:
                    at = rng.randrange(len(content))
                    content = rng.choice(
                        [content[:at], content[:at] + b"\xff" + content[at + 1 :], b"", b"[]", b"null"]
                    )
                if rng.random() < 0.97:
                    new.writestr(name, content)
        try:
            load_model(tmp_path / "m.skops")
        except ModelFileError as error:
            refused += 1
            assert str(error).startswith("'m.skops' ") and "\n" not in str(error)
    assert refused > 50


def test_a_skops_file_without_its_schema_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as new:
        new.writestr("other.json", "{}")
    with pytest.raises(ModelFileError, match="not a readable skops file"):
        load_model(tmp_path / "m.skops")
