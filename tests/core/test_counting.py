"""People in regions, counted by a tree: against a slow twin that asks every region about every row."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail import Regions, Schema, SchemaError
from countervail.core import region as region_module
from countervail.core.counting import _kernels, count_in_tree
from countervail.core.region import Range, Values
from countervail.core.schema import Column

SCHEMA = Schema((Column("age", "numeric"), Column("pay", "numeric"), Column("city"), Column("code", "categorical")))
MANY = [f"c{i:03}" for i in range(150)]  # more than a word has bits
CITIES = ["Ghent", "Bruges", "Lier"]


def span(low, high):
    return pd.Interval(low, high, closed="both")


def holds(cell, value):
    if isinstance(cell, frozenset):
        return any(holds(part, value) for part in cell)
    if value is None or value != value:
        return cell is None
    if isinstance(cell, pd.Interval):
        return cell.left <= value <= cell.right
    return cell is not None and cell == value


def slow_count(records, free, rows):
    def inside(record, open_, row):
        return all(o or holds(record[n], row[n]) for n, o in zip(record, open_))

    return [sum(inside(r, o, row) for row in rows) for r, o in zip(records, free)]


whole = st.integers(-3, 6)
quarter = st.integers(-8, 8).map(lambda v: v / 4)


def numeric_cell(number):
    spans = st.tuples(number, number).map(lambda t: span(min(t), max(t)))
    kept = number | spans
    return kept | st.none() | kept.map(lambda c: frozenset([c, None])) | st.just(frozenset())


def label_cell(values, most):
    each = st.sampled_from([*values, None])
    return each | st.frozensets(each, max_size=most)


record = st.fixed_dictionaries(
    {
        "age": numeric_cell(whole),
        "pay": numeric_cell(quarter),
        "city": label_cell(CITIES, 4),
        "code": label_cell(MANY[:4] + MANY[60:70], 12),
    }
).map(lambda cells: {n: cells[n] for n in ("age", "pay", "city", "code")})
row = st.fixed_dictionaries(
    {
        "age": st.none() | whole,
        "pay": st.none() | quarter,
        "city": st.none() | st.sampled_from([*CITIES, "Paris"]),
        "code": st.none() | st.sampled_from([*MANY[:4], *MANY[60:70], "unheard of"]),
    }
)
open_columns = st.lists(st.booleans(), min_size=4, max_size=4)
regions_ = st.lists(st.tuples(record, open_columns), min_size=1, max_size=6)
rows_ = st.lists(row, min_size=1, max_size=60)


def as_frame(rows):
    dtypes = {"age": "Int64", "pay": float, "city": "category", "code": object}
    return pd.DataFrame({n: pd.Series([r[n] for r in rows], dtype=t) for n, t in dtypes.items()})


def made_regions(records):
    """Regions whose last column knows more values than a word has bits."""
    regions = Regions.from_cells(records, SCHEMA)
    known = [*MANY, None]
    member = np.array([[holds(r["code"], v) for v in known] for r in records])
    return Regions((*regions.axes[:3], Values.of("code", known, member)), len(records))


@given(regions_, rows_, st.integers(1, 3))
def test_the_tree_counts_what_the_slow_twin_counts(drawn, rows, times):
    records, free = [r for r, _ in drawn] * times, [o for _, o in drawn] * times
    regions = Regions(made_regions(records).axes, len(records), np.array(free))
    people = rows * times
    expected = slow_count(records, free, people)
    assert count_in_tree(regions, as_frame(people))[0].tolist() == expected
    assert regions.count(as_frame(people)).tolist() == expected


@given(regions_, rows_)
def test_kernels_count_as_they_do_in_plain_python(drawn, rows):
    records, free = [r for r, _ in drawn], [o for _, o in drawn]
    regions = Regions(made_regions(records).axes, len(records), np.array(free))
    compiled = count_in_tree(regions, as_frame(rows))
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for name in ("grow", "walk"):
            patch.setattr(_kernels, name, getattr(_kernels, name).py_func)
        plain = count_in_tree(regions, as_frame(rows))
    assert [v.tolist() for v in plain] == [v.tolist() for v in compiled]


def many_people(n, seed=0):
    rng = np.random.default_rng(seed)
    pay = np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 9, n).round(1))
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": pay,
            "city": rng.choice([*CITIES, "Paris"], n),
            "code": rng.choice(MANY, n),
        }
    )


def many_regions(n, seed=1):
    rng = np.random.default_rng(seed)
    low, width = rng.integers(15, 90, n).astype(float), rng.integers(0, 30, n)
    pay, above = rng.normal(30, 9, n).round(1), rng.exponential(5, n)
    axes = (
        Range("age", low, low + width, True),
        Range("pay", pay, pay + above, holes=rng.random(n) < 0.3),
        Values.of("city", [*CITIES, None], rng.random((n, 4)) < 0.6),
        Values.of("code", MANY, rng.random((n, len(MANY))) < rng.random((n, 1))),
    )
    return Regions(axes, n, rng.random((n, 4)) < 0.2)


def test_large_tables_take_the_tree_and_small_ones_do_not(monkeypatch):
    people, regions = many_people(3000), many_regions(200)
    plain = regions.count(people)
    called = []
    monkeypatch.setattr("countervail.core.counting.count_in_tree", lambda *a: called.append(1) or count_in_tree(*a))
    assert regions.count(people).tolist() == plain.tolist()
    assert called == []
    monkeypatch.setattr(region_module, "_PAIRS", 0)
    assert regions.count(people).tolist() == plain.tolist()
    assert called == [1]
    assert plain.sum() > 0


def test_equal_regions_and_equal_rows_are_looked_at_once():
    people, regions = many_people(500), many_regions(50)
    once, looked = count_in_tree(regions, people)
    again, same = count_in_tree(regions[np.tile(np.arange(50), 4)], pd.concat([people] * 3, ignore_index=True))
    assert again.tolist() == (3 * np.tile(once, 4)).tolist()
    assert same.tolist() == looked.tolist()


def test_of_a_published_table_few_pairs_are_looked_at():
    frame = many_people(20_000)
    table = cv.Table.from_frame(frame.assign(ill=frame["age"] % 7), quasi_identifiers=list(frame.columns))
    release = cv.Mondrian(k=10).fit(table).protect(table)
    found, looked = count_in_tree(release.regions, frame)
    assert found.tolist() == np.bincount(release.groups).tolist()
    assert looked.sum() < 0.03 * len(frame) * len(release.regions)


def test_columns_that_rows_lack_are_not_asked_about_and_nobody_is_counted_in_nothing():
    people, regions = many_people(300), many_regions(40)
    fewer = people[["code", "pay"]]
    assert count_in_tree(regions, fewer)[0].tolist() == regions.covers(fewer).sum(axis=1).tolist()
    assert count_in_tree(regions, people.iloc[:0])[0].tolist() == [0] * 40
    assert count_in_tree(regions[:0], people)[0].tolist() == []


def test_labels_among_numbers_lie_in_no_range_and_a_column_of_labels_is_refused():
    axis = Range("age", np.array([1.0, np.nan]), np.array([3.0, np.nan]), holes=np.array([False, True]))
    mixed = pd.DataFrame({"age": pd.Series([2, "two", None, 3.0], dtype=object)})
    assert count_in_tree(Regions((axis,), 2), mixed)[0].tolist() == [2, 1]
    with pytest.raises(SchemaError, match="numeric in the regions"):
        count_in_tree(Regions((axis,), 2), pd.DataFrame({"age": ["a", "b"]}))


def test_open_ends_and_infinite_values_are_numbers():
    low, high = np.array([-np.inf, 2.0, -np.inf]), np.array([1.0, np.inf, np.inf])
    people = pd.DataFrame({"x": [-np.inf, 0.0, 1.0, 2.0, np.inf, np.nan]})
    assert count_in_tree(Regions((Range("x", low, high),), 3), people)[0].tolist() == [3, 2, 5]
