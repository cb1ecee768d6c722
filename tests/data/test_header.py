"""A file without a header begins with somebody's row: that is said, and the row is not shown."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.core.files.frames import read_frame, write_frame
from countervail.data.propose import propose_schema

GERMAN = cv.load("german_credit").frame
SECRET = ("Adelheid", "adelheid@example.org", "1971-03-05", "4711.5")


def headerless(frame, path):
    frame.to_csv(path, index=False, header=False)
    return path


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(
            [SECRET, ("Bo", "b@example.org", "1980-01-01", "12.5"), ("Cy", "c@example.org", "1990-02-02", "9")]
        ),
        pd.DataFrame({"a": ["Adelheid", "Bo", "Cy"], "b": [4711.5, 12, 9]}),
        pd.DataFrame({"city": ["Ghent", "Ghent", "Bruges"] * 9, "work": ["nurse", "clerk", "nurse"] * 9}),
        pd.DataFrame({"born": ["05.03.1971", "01.01.1980"], "city": ["Ghent", "Bruges"]}),
        pd.DataFrame({"age": [34, 51, 34], "size": [34, 2, 3]}),
        pd.DataFrame({"city": ["Ghent", "Ghent", "Bruges"]}),
    ],
)
def test_a_file_without_a_header_is_refused_and_its_first_row_is_not_shown(frame, as_json, run, tmp_path):
    path = headerless(frame, tmp_path / "people.csv")
    code, out, err = run("schema", path, *as_json)
    assert code == 2 and out == "" and "seems to have no header" in err and err.count("\n") == 1
    assert not any(str(v) in err.replace("people.csv", "") for v in frame.iloc[0] if len(str(v)) > 2)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_german_credit_without_its_header_writes_no_schema(ending, run, tmp_path):
    headerless(GERMAN, tmp_path / f"people{ending}")
    code, _, err = run("schema", tmp_path / f"people{ending}", "-o", tmp_path / "people.toml")
    assert code == 2 and "seems to have no header" in err
    assert not (tmp_path / "people.toml").exists()


@pytest.mark.parametrize(
    "names",
    [
        ["2019", "2020", "2021"],
        ["400.5", "401", "402.5", "403", "404"],
        ["1", "2", "3"],
        ["q1", "q2", "q3"],
        ["age", "1st_income", "income-2"],
        [0, 1, 2],
    ],
    ids=str,
)
def test_names_that_are_numbers_in_order_are_names(names, tmp_path):
    frame = pd.DataFrame(np.arange(3 * len(names)).reshape(3, -1), columns=names)
    assert propose_schema(frame).schema.names() == [str(n) for n in names]
    write_frame(frame.set_axis([str(n) for n in names], axis=1), tmp_path / "a.csv")
    assert propose_schema(read_frame(tmp_path / "a.csv")).schema.names() == [str(n) for n in names]


def test_one_text_that_is_a_name_and_a_value_is_no_sign():
    frame = pd.DataFrame({"other": ["rent", "other", "own"], "age": [1, 2, 3], "pay": [3, 2, 1]})
    assert propose_schema(frame).schema.names() == ["other", "age", "pay"]


def test_the_sets_that_come_along_have_headers():
    for name in ("german_credit", "toy_credit", "toy_evaluation", "iris"):
        propose_schema(cv.load(name).frame)


def test_the_reason_counts_and_names_nothing():
    with pytest.raises(SchemaError, match="of its 2 column names, 1 are numbers or dates and 1 are values"):
        propose_schema(pd.DataFrame({"Ghent": ["Ghent", "Bruges"], "34": [3, 4]}))
