"""Hierarchies built by a rule: they nest, hold every value, survive a file, and refuse what cannot be a tree."""

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.core.conform import plain
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.hierarchy import Hierarchy
from countervail.core.hierarchy.rows import PERIODS

ARX = Path(__file__).resolve().parents[4] / "shared" / "data" / "hierarchies"


def nests(hierarchy):
    """Every group lies in one group of the next level, and there is one root."""
    for level in range(hierarchy.levels - 1):
        above = {}
        for row in hierarchy.rows:
            above.setdefault(row[level], set()).add(row[level + 1])
        assert all(len(parents) == 1 for parents in above.values())
    assert len({row[-1] for row in hierarchy.rows}) == 1


@given(
    st.lists(st.integers(-500, 500), min_size=1, max_size=40),
    st.integers(1, 20),
    st.lists(st.integers(2, 4), max_size=3),
    st.integers(-50, 50),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_intervals_hold_their_values_and_nest(values, width, factors, start):
    widths = [width]
    for factor in factors:
        widths.append(widths[-1] * factor)
    h = Hierarchy.intervals(values, widths=widths, start=start)
    nests(h)
    assert set(h.values) == {plain(v) for v in values}
    for value, *groups, _ in h.rows:
        for group, w in zip(groups, widths):
            steps = np.floor((int(value) - start) / w)
            low = int(start + steps * w)
            assert group == (f"{low}-{low + w - 1}" if w > 1 else str(low))


def test_intervals_of_fractions_say_which_end_they_hold():
    assert Hierarchy.intervals([0.1, 0.5, 1.2], widths=(0.5, 1)).rows == (
        ("0.1", "[0, 0.5)", "[0, 1)", "*"),
        ("0.5", "[0.5, 1)", "[0, 1)", "*"),
        ("1.2", "[1, 1.5)", "[1, 2)", "*"),
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(2, 9))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_quantile_groups_are_about_equal_and_nest(values, parts):
    h = Hierarchy.quantiles(values, parts=parts)
    nests(h)
    assert set(h.values) == {plain(v) for v in values}
    group = {row[0]: row[1] for row in h.rows}
    sizes = pd.Series([group[plain(v)] for v in values]).value_counts()
    most = pd.Series(values).value_counts().max()
    # A group ends where its share is reached; it is longer only by the rows equal to its last value.
    assert sizes.max() <= np.ceil(len(values) / parts) + most
    assert len(sizes) <= parts or h.levels == 2


@given(st.lists(st.dates(date(1901, 1, 1), date(2099, 12, 31)), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_dates_nest(days):
    h = Hierarchy.dates(days, periods=PERIODS)
    nests(h)
    for row in h.rows:
        day = date.fromisoformat(row[0])
        quarter = ["Q1", "Q2", "Q3", "Q4"][(day.month - 1) // 3]
        assert row[1:4] == (day.strftime("%Y-%m"), f"{day.year} {quarter}", str(day.year))


def test_dates_come_as_texts_and_timestamps():
    texts = Hierarchy.dates(["1999-12-31T10:00", "2000-01-01"], periods=("year", "century"))
    assert [row[1:] for row in texts.rows] == [("1999", "1900-1999", "*"), ("2000", "2000-2099", "*")]
    stamps = Hierarchy.dates(pd.Series(pd.to_datetime(["2024-05-31"])))
    assert stamps.rows[0][1:] == ("2024-05", "2024", "2020s", "*")


@given(st.lists(st.text("0123456789", min_size=1, max_size=6), min_size=1, max_size=30))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_prefixes_nest_and_no_group_bears_the_name_of_a_value(texts):
    h = Hierarchy.prefixes(texts)
    nests(h)
    for row in h.rows:
        assert all(row[0].startswith(group.rstrip("*")) for group in row[1:])
        assert not {*row[1:]} & {*h.values}


@given(st.integers(1, 20), st.integers(2, 5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_an_order_joins_neighbours(n, size):
    levels = [f"v{i:02d}" for i in range(n)]
    h = Hierarchy.order(levels, size=size)
    nests(h)
    assert list(h.values) == levels
    for level in range(1, h.levels - 1):
        held = [row[level] for row in h.rows]
        blocks = [i for i in range(n) if i == 0 or held[i] != held[i - 1]]
        assert blocks == list(range(0, n, size**level))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Hierarchy.intervals([1, 2], widths=(2, 3)), "'widths' parameter of Hierarchy.intervals .*multiples"),
        (lambda: Hierarchy.intervals([1, 2], widths=(0,)), "positive numbers"),
        (lambda: Hierarchy.intervals(["a"]), "'values' parameter of Hierarchy.intervals must be numbers"),
        (lambda: Hierarchy.intervals([None]), "at least one number"),
        (lambda: Hierarchy.quantiles([1, 2], parts=1), "'parts' parameter"),
        (lambda: Hierarchy.dates(["soon"]), "texts that begin with year-month-day"),
        (lambda: Hierarchy.dates(["2020-01-01"], periods=("year", "month")), "in this order"),
        (lambda: Hierarchy.prefixes(["ab"], lengths=(1, 2)), "the largest first"),
        (lambda: Hierarchy.prefixes([]), "at least one value"),
        (lambda: Hierarchy.order(["a", "a"]), "different values"),
        (lambda: Hierarchy.order(["a", "b"], size=1), "'size' parameter"),
    ],
)
def test_bad_builders_say_what_must_be(build, message):
    with pytest.raises(ParameterError, match=message):
        build()


def test_a_file_written_is_the_file_read(tmp_path):
    for h in (Hierarchy.prefixes(["1;2", 'say "x"', "zz"]), Hierarchy.intervals(range(20), name="age")):
        h.write(tmp_path / f"{h.name}.csv")
        assert Hierarchy.read(tmp_path / f"{h.name}.csv", h.name) == h


def test_intervals_that_reach_over_a_border_are_parted_there():
    """ARX reads every level on its own; its files hold such intervals."""
    lines = (("45", "41-60", "1-50"), ("48", "41-60", "1-50"), ("55", "41-60", "51-100"), ("7", "1-20", "1-50"))
    h = Hierarchy(lines)
    assert [row[1] for row in h.rows] == ["45-48", "45-48", "55", "1-20"]
    nests(h)
    with pytest.raises(SchemaError, match="'x' lies under 'p' and 'q'"):
        Hierarchy((("a", "x", "p"), ("b", "x", "q")))


@pytest.mark.skipif(not ARX.is_dir(), reason="needs the hierarchies of ARX beside the checkout")
def test_the_files_of_arx_load_and_nest():
    files = sorted(ARX.rglob("*.csv"))
    assert len(files) > 15
    for file in files:
        nests(Hierarchy.read(file))


def test_groups_named_by_quantiles_of_the_table_are_published():
    table = cv.load("german_credit").with_roles(quasi=["age", "personal_status"], sensitive=[])
    tree = {"age": Hierarchy.quantiles(table.frame["age"], parts=8, name="age")}
    release = cv.Mondrian(10, hierarchies=tree, labels="hierarchy").fit(table).protect(table)
    groups = {label for row in tree["age"].rows for label in row}
    assert {str(v) for v in release.to_text_frame()["age"].unique()} <= groups
