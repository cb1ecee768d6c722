"""Frames of polars and pyarrow wherever one of pandas is taken: the same result."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.core.files.release_file import PublishedFile
from countervail.core.table import to_labels, to_pandas
from countervail.testing import small_table

LIBRARIES = {
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None),
}


@pytest.fixture(params=sorted(LIBRARIES))
def other(request):
    """Turns a pandas frame into one of another library."""
    return LIBRARIES[request.param]


@pytest.fixture(scope="module")
def german():
    return cv.load("german_credit")


@pytest.fixture(scope="module")
def fitted(german):
    train, test = german.split(test_size=0.3, random_state=0)
    numeric = [n for n in german.schema.features if german.schema[n].type == "numeric"]

    class Simple:
        def __init__(self):
            self.forest = RandomForestClassifier(10, random_state=0)

        def fit(self, X, y):
            self.forest.fit(X[numeric], y)
            return self

        def predict(self, X):
            return self.forest.predict(X[numeric])

    return train, test, Simple().fit(train.features, train.target.astype(object))


PLAIN = pd.DataFrame(
    {
        "age": [30, 41, 55, 23],
        "pay": [1.5, None, 2.0, 3.25],
        "children": pd.array([1, None, 0, 2], dtype="Int64"),
        "city": ["Ghent", "Bruges", None, "Ghent"],
        "member": [True, False, True, False],
        "ok": ["no", "yes", "no", "yes"],
    }
)


def test_a_table_has_the_same_types_and_values(other):
    roles = {"target": "ok", "favourable": "yes", "quasi_identifiers": ["age", "city"], "domains": {"age": (18, 90)}}
    one, two = cv.Table.from_frame(PLAIN, **roles), cv.Table.from_frame(other(PLAIN), **roles)
    assert one.schema == two.schema
    pd.testing.assert_frame_equal(one.frame, two.frame)


def test_a_declared_schema_brings_categories_in_order(other, german):
    table = cv.Table.from_frame(other(german.frame), schema=german.schema)
    assert table.schema == german.schema
    one, two = (cv.Mondrian(10, random_state=0).fit(t) for t in (german, table))
    np.testing.assert_array_equal(one.cell_of_, two.cell_of_)
    assert one.regions_.text() == two.regions_.text()
    assert cv.measure.risk(german) == cv.measure.risk(table)


def test_ordered_levels_of_polars_are_ordinal():
    frame = pl.DataFrame({"level": pl.Series(["lo", "hi", "lo"], dtype=pl.Enum(["lo", "mid", "hi"]))})
    column = cv.Table.from_frame(frame).schema["level"]
    assert (column.type, column.levels) == ("ordinal", ("lo", "mid", "hi"))


@pytest.mark.parametrize("protector", [cv.Mondrian(5, random_state=0), cv.Mondrian(5, l=2, random_state=0)])
def test_new_rows_are_released_alike(other, protector):
    table = small_table(200)
    named = table.schema.names("sensitive")[0]
    fitted = protector.set_params(sensitive=named).fit(table)
    rows = table.frame.iloc[:120]
    one, two = fitted.protect(rows), fitted.protect(other(rows))
    pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())


@pytest.mark.parametrize("explainer", [cv.NICE(reward="none"), cv.CFK(k=5), cv.CFK(k=5, search="exact")])
def test_explanations_are_the_same(other, fitted, explainer):
    train, test, model = fitted
    ready = explainer.fit(train, model)
    rows = test.frame.iloc[:20]
    one, two = ready.explain(rows), ready.explain(other(rows))
    assert one.to_json() == two.to_json()
    assert ready.explain(test.features.iloc[:1]).to_json() == ready.explain(other(test.features.iloc[:1])).to_json()


def test_rules_learn_and_predict_the_same(other):
    frame = PLAIN[["age", "city"]].fillna({"city": "none"})
    labels = PLAIN["ok"]
    foreign = other(PLAIN)["ok"]
    one, two = cv.LERS().fit(frame, labels), cv.LERS().fit(other(frame), foreign)
    assert one.predict(frame).tolist() == two.predict(other(frame)).tolist()
    assert len(one.rules_) == len(two.rules_)


def test_proposed_schemas_are_the_same(other):
    assert cv.data.propose_schema(PLAIN, "ok").schema == cv.data.propose_schema(other(PLAIN), "ok").schema


def test_regions_and_published_files_count_the_same(other, german):
    release = cv.Mondrian(10).fit(german).protect(german)
    np.testing.assert_array_equal(release.regions.count(german.frame), release.regions.count(other(german.frame)))
    text = release.to_text_frame().astype(dict.fromkeys(german.schema.names("quasi"), str))
    one, two = (PublishedFile.of(f, german.schema) for f in (text, other(text)))
    np.testing.assert_array_equal(one.classes(), two.classes())


def test_labels_come_from_any_library():
    assert list(to_labels(pl.Series("y", ["a", "b"]))) == ["a", "b"]
    assert list(to_labels(pa.chunked_array([["a"], ["b"]]))) == ["a", "b"]
    assert list(to_labels(pa.array(["a", "b"]))) == ["a", "b"]
    given = np.array(["a"])
    assert to_labels(given) is given


def test_what_is_no_frame_says_so():
    with pytest.raises(ParameterError, match="'df' parameter of Table must be a DataFrame"):
        cv.Table.from_frame(pl.LazyFrame({"a": [1]}))
    with pytest.raises(ParameterError, match="'rows' parameter of X"):
        to_pandas(3, "X", "rows")


def test_one_row_comes_as_a_mapping(german):
    row = pl.from_pandas(german.frame.head(1)).row(0, named=True)
    assert to_pandas(row).shape == (1, len(german.frame.columns))
