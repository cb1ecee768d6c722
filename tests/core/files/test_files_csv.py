"""CSV files as people have them: separators, encodings, broken lines, codes with leading zeros."""

import gzip

import pandas as pd
import pytest

import countervail as cv
from countervail.core.conform import conform_column, plain
from countervail.core.errors import SchemaError
from countervail.core.files.frames import read_frame, write_frame

SECRET = "Xanthippe"
PLAIN = f"name,age,score\n{SECRET},41,1.5\nSocrates,70,2.25\n"


def read(tmp_path, content, name="a.csv", schema=None):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_frame(tmp_path / name, schema)


@pytest.mark.parametrize("mark", [";", "\t"])
def test_semicolons_and_tabs_are_read_where_the_header_has_no_comma(mark, tmp_path):
    pd.testing.assert_frame_equal(read(tmp_path, PLAIN.replace(",", mark)), read(tmp_path, PLAIN))


def test_a_byte_order_mark_and_gzip_change_nothing(tmp_path):
    expected = read(tmp_path, PLAIN)
    marked = PLAIN.replace(",", ";").encode("utf-8-sig")
    pd.testing.assert_frame_equal(read(tmp_path, marked), expected)
    pd.testing.assert_frame_equal(read(tmp_path, gzip.compress(marked), "a.csv.gz"), expected)


def test_a_quoted_comma_in_a_header_does_not_hide_its_semicolons(tmp_path):
    assert list(read(tmp_path, '"last, first";age\nx;1\n').columns) == ["last, first", "age"]


def test_a_header_with_commas_keeps_its_semicolons(tmp_path):
    frame = read(tmp_path, "a;b,c\n1;2,3\n")
    assert list(frame.columns) == ["a;b", "c"]


def test_one_column_needs_no_separator(tmp_path):
    assert read(tmp_path, "age\n41\n70\n")["age"].tolist() == [41, 70]


def test_decimal_commas_are_numbers_between_semicolons(tmp_path):
    frame = read(tmp_path, "pay;kind\n12,5;a,b\n7;c\n;d\n")
    assert frame["pay"].iloc[:2].tolist() == [12.5, 7.0] and frame["pay"].isna().tolist() == [False, False, True]
    assert frame["kind"].tolist() == ["a,b", "c", "d"]


def test_a_comma_that_may_part_thousands_stays_text(tmp_path):
    assert read(tmp_path, "pay;n\n1,500;1\n2,750;2\n")["pay"].tolist() == ["1,500", "2,750"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name,city\nBo,Gent\nXanthippe,Liège\n".encode("latin-1"), r"encoding is not UTF-8 \(first seen in line 3\)"),
        (PLAIN.encode("utf-16"), "UTF-16"),
        (PLAIN.encode("utf-16-le"), "UTF-16"),
        (b"a,b\n1,2\n1,2\nXanthippe,2,3\n", "line 4 has 3 cells, but 2 are due.*comma"),
        (b"a;b\n1;2\nXanthippe;2;3\n", "line 3 has 3 cells, but 2 are due.*semicolon"),
        (b"a,b\nXanthippe,2,3\n1,2,3\n", "line 2 has more cells than the header"),
        (b'a,b\n1,2\n"Xanthippe,2\n', "quotation mark that opens in line 3 is never closed"),
    ],
)
def test_an_error_says_what_is_wrong_and_where_and_shows_no_cell(content, words, tmp_path):
    with pytest.raises(SchemaError, match=words) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith("The file 'a.csv' is not a readable CSV: ")
    assert SECRET not in str(caught.value)


def test_gzip_that_was_cut_off_is_named(tmp_path):
    with pytest.raises(SchemaError, match="not a gzip file, or it was cut off"):
        read(tmp_path, gzip.compress(PLAIN.encode())[:-12], "a.csv.gz")


def test_leading_zeros_survive_unless_the_schema_says_number(tmp_path):
    content = "code,n,when\n01018,1,01/02/2000\n90210,2,03/04/2001\n,3,\n"
    frame = read(tmp_path, content)
    assert frame["code"].iloc[:2].tolist() == ["01018", "90210"] and pd.isna(frame["code"].iloc[2])
    assert frame["n"].tolist() == [1, 2, 3]
    numbers = read(tmp_path, content, schema=cv.Schema((cv.Column("code", "numeric"),)))
    assert numbers["code"].iloc[:2].tolist() == [1018, 90210]


def test_zeros_and_decimals_are_numbers(tmp_path):
    frame = read(tmp_path, "a,b\n0,0.5\n10,0.0\n0,-0.25\n")
    assert frame["a"].tolist() == [0, 10, 0] and frame["b"].tolist() == [0.5, 0.0, -0.25]


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (pd.Timestamp("1951-05-25"), "1951-05-25"),
        (pd.Timestamp("1951-05-25").to_datetime64(), "1951-05-25"),
        (pd.Timestamp("1951-05-25").date(), "1951-05-25"),
        ("1951-05-25 00:00:00", "1951-05-25"),
        (pd.Timestamp("1951-05-25 13:00"), "1951-05-25 13:00:00"),
        ("midnight is 00:00:00", "midnight is 00:00:00"),
        (2.0, "2"),
    ],
)
def test_a_day_and_its_midnight_are_spelt_alike(value, spelling):
    assert plain(value) == spelling


@pytest.mark.parametrize("declared", [("1951-05-25", "1960-01-01"), ("1951-05-25 00:00:00", "1960-01-01 00:00:00")])
@pytest.mark.parametrize("as_categories", [False, True])
def test_days_of_a_parquet_file_fit_a_domain_written_as_text(declared, as_categories):
    days = pd.Series(pd.to_datetime(["1960-01-01", "1951-05-25"]), name="born")
    values, _ = conform_column(
        days.astype("category") if as_categories else days, cv.Column("born", "categorical", "quasi", declared)
    )
    assert values.tolist() == [declared[1], declared[0]]


def test_carriage_returns_and_quotes_survive_writing_and_reading(tmp_path):
    frame = pd.DataFrame({"a": ["x\ry", "b\r\n", 'c"', None], "c\rd": ["1,2", "2\n", "3", "4"], "n": [1, 2, 3, 4]})
    write_frame(frame, tmp_path / "a.csv")
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.csv"), frame)
