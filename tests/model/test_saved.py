"""Saved models: skops files open, pickles only when allowed, strangers never."""

import pickle

import joblib
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

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
    save_model(FunctionTransformer(shout), tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match=r"not known to be safe: .*shout"):
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
    from sklearn.tree import DecisionTreeClassifier

    iris = cv.load("iris")
    model = DecisionTreeClassifier(max_depth=2).fit(iris.features, iris.target.astype(object))
    model.tree_.children_left[0] = 10_000
    save_model(model, tmp_path / "m.skops")
    with pytest.raises(ModelFileError, match="links that lead outside"):
        load_model(tmp_path / "m.skops")
