"""What a sheet of Excel holds is read as a CSV of it would be: codes keep their zeros, whatever type a cell has."""

import pandas as pd
import pytest

from countervail.core.files.frames import read_frame
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Column, Schema
from countervail.data.propose import propose_schema

CELLS = {
    "zip": ["02133", "10115", "02000"],  # texts, as Excel keeps them in a column of the format text
    "loose": ["02133", 10115, 2000],  # some were typed without it
    "count": ["12", "13", None],
    "pay": [1, 2.5, None],
    "day": pd.to_datetime(["2024-01-01", "2024-02-01", None]),
    "mark": ["NA", None, "null"],
    "number": ["12345678901234567890123", "1", "2"],
    "told": ["True", "False", "True"],
    "true": [True, False, None],
    "empty": [None, None, None],
}


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "people.xlsx"
    pd.DataFrame(CELLS).to_excel(path, index=False)
    return path


def test_codes_of_a_sheet_keep_their_zeros(sheet):
    found = read_frame(sheet)
    assert found["zip"].tolist() == ["02133", "10115", "02000"]
    assert found["loose"].tolist() == ["02133", "10115", "2000"]
    assert found["number"].tolist() == CELLS["number"]  # more digits than a number holds
    assert propose_schema(found).schema["zip"].type == "categorical"
    declared = Schema((Column("zip", role="quasi"), Column("count", role="quasi"), Column("pay", role="quasi")))
    known = read_frame(sheet, declared)
    assert known["zip"].astype(str).tolist() == ["02133", "10115", "02000"]
    assert known["count"].astype(object).tolist()[:2] == ["12", "13"] and known["count"].isna().sum() == 1
    assert known["pay"].astype(object).tolist()[:2] == ["1", "2.5"]
    numeric = read_frame(sheet, Schema((Column("zip", "numeric", "quasi"),)))
    assert numeric["zip"].tolist() == [2133, 10115, 2000]


@pytest.mark.parametrize("name", ["zip", "count", "pay", "mark", "told", "true", "empty"])
def test_a_sheet_is_read_as_a_csv_of_it(sheet, name):
    written = pd.DataFrame(CELLS)
    written.to_csv(sheet.with_suffix(".csv"), index=False)
    mine, theirs = (read_frame(p)[name] for p in (sheet, sheet.with_suffix(".csv")))
    pd.testing.assert_series_equal(mine, theirs)


def test_the_way_of_codes_through_the_command_line(run, tmp_path):
    rows = 60
    codes = [f"{i % 3}2{i % 7:03}" for i in range(rows)]
    pd.DataFrame({"zip": codes, "illness": ["flu", "none"] * (rows // 2)}).to_excel(tmp_path / "d.xlsx", index=False)
    assert run("schema", tmp_path / "d.xlsx", "-o", tmp_path / "s.toml")[0] == 0
    assert read_schema(tmp_path / "s.toml")["zip"].type == "categorical"
    asked = ("-s", tmp_path / "s.toml", "--k", 2, "-o", tmp_path / "p.csv")
    assert run("anonymize", tmp_path / "d.xlsx", *asked)[0] == 0
    published = pd.read_csv(tmp_path / "p.csv", dtype=str)["zip"]
    assert {c for text in published for c in text.strip("{}").split(", ")} == set(codes)
