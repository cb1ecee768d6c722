"""Hierarchies as ARX writes them."""

import numpy as np
import pytest

from countervail.core.errors import DataNotFoundError, ParameterError, SchemaError
from countervail.core.hierarchy import Hierarchy, read_hierarchies


def write(folder, text, name="job.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_line_by_line(tmp_path):
    h = Hierarchy.read(write(tmp_path, "cook;hands;*\nsmith;hands;*\nclerk;desk;*\n"))
    assert h.name == "job"
    assert h.levels == 3
    assert h.values == ("cook", "smith", "clerk")
    assert h.below("cook", 1) == ("cook", "smith")
    assert h.group("clerk", 1) == "desk"


def test_a_root_is_added_where_the_top_is_not_one():
    assert Hierarchy((("a", "x"), ("b", "y"))).levels == 3
    assert Hierarchy((("a",), ("b",))).levels == 2


def test_ancestors_are_numbered_by_content_and_missing_hangs_below_the_root():
    h = Hierarchy((("cook", "hands", "*"), ("smith", "hands", "*"), ("clerk", "desk", "*")))
    np.testing.assert_array_equal(h.ancestors(["clerk", "cook", None]), [[0, 0, 0], [1, 1, 0], [2, 2, 0]])


def test_numbers_match_their_spelling():
    h = Hierarchy((("1", "low"), ("2", "high")))
    assert h.ancestors([1, 2.0]).shape == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;x;*\nb;*\n", "same number of levels"),
        ("a;;*\n", "hole: no name at level 1 above the value of line 1"),
        ("a;x;*\n;x;*\n", "hole: no name at level 0 below 'x'"),
        ("a;x;y;*\nb;y;x;*\n", "cycle: 'x' under 'y' under 'x'"),
        ("a;x;*\nb;a;*\nx;b;*\n", "cycle: the value of line 1 under the value of line 3 under"),
        ("a;x;*\na;y;*\n", "value of the hierarchy of 'job' has two different parents"),
        ("a;x;p;*\nb;x;q;*\n", "group at level 1 .* two different parents"),
        ("", "is empty"),
    ],
)
def test_holes_and_contradictions_are_refused(tmp_path, text, message):
    with pytest.raises(SchemaError, match=message):
        Hierarchy.read(write(tmp_path, text))


@pytest.mark.parametrize(
    "text", ["{0};x;*\nb;*\n", "b;*\nc;*\n{0};x;*\n", "{0};;*\n", "{0};x;*\n{0};y;*\n", "{0};b;*\nb;{0};*\n"]
)
def test_a_value_of_somebody_is_told_by_its_line(tmp_path, text):
    with pytest.raises(SchemaError, match="line") as error:
        Hierarchy.read(write(tmp_path, text.format("secret")))
    assert "secret" not in str(error.value)


def test_values_it_misses_are_counted_and_not_shown():
    h = Hierarchy((("a", "*"),), "job")
    with pytest.raises(SchemaError, match="misses 2 of the 3 values") as error:
        h.ancestors(["a", "secret-1", "secret-2"])
    assert "secret" not in str(error.value)


def test_folders_mappings_and_files(tmp_path):
    write(tmp_path, "a;*\n", "job.csv")
    write(tmp_path, "a;*\n", "other.csv")
    assert set(read_hierarchies(tmp_path, ["job", "age"], "X")) == {"job"}
    assert set(read_hierarchies({"job": tmp_path / "job.csv"}, ["job"], "X")) == {"job"}
    assert read_hierarchies(None, ["job"], "X") == {}
    with pytest.raises(DataNotFoundError, match="No folder"):
        read_hierarchies(tmp_path / "nowhere", ["job"], "X")
    with pytest.raises(DataNotFoundError, match="No hierarchy file"):
        Hierarchy.read(tmp_path / "nowhere.csv")
    with pytest.raises(SchemaError, match="must map columns"):
        read_hierarchies(3, ["job"], "X")


@pytest.mark.parametrize("method", ["below", "group"])
def test_a_value_or_level_that_it_does_not_have_is_said_so(method):
    h = Hierarchy((("cook", "hands", "*"), ("clerk", "desk", "*")), "job")
    with pytest.raises(SchemaError, match=rf"'value' parameter of Hierarchy.{method} .* 2 values .* 'job'"):
        getattr(h, method)("Xanthippe", 1)
    with pytest.raises(ParameterError, match=rf"'level' parameter of Hierarchy.{method} .* 0 .* to 2 "):
        getattr(h, method)("cook", 3)
