"""Identifiability against slow twins that count equal rows."""

from collections import Counter
from itertools import combinations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail import SchemaError, Table, load, measure
from countervail.core.errors import ParameterError

row = st.tuples(st.sampled_from([1.0, 2.0, None]), st.sampled_from(["x", "y", None]), st.sampled_from([True, False]))


def as_table(rows):
    frame = pd.DataFrame(
        {"a": pd.Series([r[0] for r in rows], dtype=float), "b": pd.Series([r[1] for r in rows], dtype="str")}
    )
    frame["c"] = [r[2] for r in rows]
    return Table.from_frame(frame, quasi_identifiers=["a", "b", "c"])


def slow_sizes(rows, columns):
    keys = [tuple(r[j] for j in columns) for r in rows]
    counts = Counter(keys)
    return [counts[k] for k in keys]


@given(st.lists(row, min_size=1, max_size=25))
def test_class_sizes_count_equal_rows(rows):
    table = as_table(rows)
    assert measure.class_sizes(table).tolist() == slow_sizes(rows, (0, 1, 2))
    assert measure.class_sizes(table, ["c", "a"]).tolist() == slow_sizes(rows, (2, 0))


@given(st.lists(row, min_size=1, max_size=25), st.integers(1, 4))
def test_risk_is_the_share_of_small_classes(rows, k):
    found = measure.risk(as_table(rows), k=k, largest=99)
    sizes = slow_sizes(rows, (0, 1, 2))
    assert found.rows == len(rows) and found.quasi == ("a", "b", "c")
    assert found.unique == pytest.approx(sizes.count(1) / len(rows))
    assert found.below_k == pytest.approx(sum(s < k for s in sizes) / len(rows))
    assert found.classes == len(set(rows))


@given(st.lists(row, min_size=1, max_size=25), st.integers(2, 4), st.integers(1, 3))
def test_offenders_are_all_combinations_that_leave_someone_in_a_small_class(rows, k, depth):
    found = measure.risk(as_table(rows), k=k, largest=99, depth=depth)
    expected = []
    for r in range(1, depth + 1):
        for columns in combinations(range(3), r):
            sizes = slow_sizes(rows, columns)
            below = sum(s < k for s in sizes) / len(rows)
            if below > 0:
                names = tuple("abc"[j] for j in columns)
                expected.append((-sizes.count(1) / len(rows), -below, len(names), names))
    assert [o.columns for o in found.offenders] == [e[-1] for e in sorted(expected)]
    assert [o.unique for o in found.offenders] == pytest.approx([-e[0] for e in sorted(expected)])


def test_largest_limits_the_list_and_progress_is_told_of_every_combination():
    told = []
    found = measure.risk(load("german_credit"), largest=2, depth=2, progress=lambda done, of: told.append((done, of)))
    quasi = len(found.quasi)
    total = quasi + quasi * (quasi - 1) // 2
    assert len(found.offenders) == 2
    assert told == [(i + 1, total) for i in range(total)]


def test_the_figures_hold_no_value_of_a_row():
    text = str(measure.risk(load("toy_credit"), k=3).to_dict())
    assert not any(word in text for word in ("Fiona", "Antwerp", "Brussels", "Single"))


def test_without_quasi_identifiers_there_is_nothing_to_measure():
    table = load("toy_credit").with_roles(quasi=[])
    for function in (measure.risk, measure.class_sizes):
        with pytest.raises(SchemaError, match="role 'quasi'"):
            function(table)


def test_wrong_parameters_are_refused():
    with pytest.raises(ParameterError, match="'k' parameter of risk"):
        measure.risk(load("toy_credit"), k=0)
    with pytest.raises(SchemaError, match="No column named 'who'"):
        measure.class_sizes(load("toy_credit"), ["who"])
