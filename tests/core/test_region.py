"""Regions against a slow twin that asks every cell about every value."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail import Column, Region, Regions, Schema, SchemaError, Table
from countervail.core import region as region_module
from countervail.core.encode import Encoder

SCHEMA = Schema((Column("age", "numeric"), Column("pay", "numeric"), Column("city"), Column("n", "categorical")))


def span(low, high):
    return pd.Interval(low, high, closed="both")


def holds(cell, value):
    """The slow twin: whether one value lies in one cell."""
    if isinstance(cell, frozenset):
        return any(holds(part, value) for part in cell)
    if value is None or value != value:
        return cell is None
    if isinstance(cell, pd.Interval):
        return cell.left <= value <= cell.right
    return cell is not None and cell == value


def slow_covers(records, rows):
    return [[all(holds(r[n], row[n]) for n in r) for row in rows] for r in records]


whole = st.integers(-3, 6)
quarter = st.integers(-8, 8).map(lambda v: v / 4)


def numeric_cell(number):
    spans = st.tuples(number, number).map(lambda t: span(min(t), max(t)))
    kept = st.one_of(number, spans)
    return st.one_of(number, spans, st.none(), kept.map(lambda c: frozenset([c, None])), st.just(frozenset()))


def label_cell(values):
    return st.one_of(st.sampled_from([*values, None]), st.frozensets(st.sampled_from([*values, None])))


CITIES, NUMBERS = ["Ghent", "Bruges", "Lier"], [1, 2, 3]
NAMES = ["age", "pay", "city", "n"]
record = st.fixed_dictionaries(
    {"age": numeric_cell(whole), "pay": numeric_cell(quarter), "city": label_cell(CITIES), "n": label_cell(NUMBERS)}
).map(lambda cells: {n: cells[n] for n in NAMES})
row = st.fixed_dictionaries(
    {
        "age": st.none() | whole,
        "pay": st.none() | quarter,
        "city": st.none() | st.sampled_from([*CITIES, "Paris"]),
        "n": st.none() | st.sampled_from([*NUMBERS, 9]),
    }
)
records, rows_ = st.lists(record, min_size=1, max_size=5), st.lists(row, min_size=1, max_size=8)


def as_frame(rows):
    dtypes = {"age": "Int64", "pay": float, "city": "category", "n": "Int64"}
    return pd.DataFrame({n: pd.Series([r[n] for r in rows], dtype=t) for n, t in dtypes.items()})


@given(records, rows_)
def test_covers_asks_every_cell_about_every_value(records, rows):
    regions = Regions.from_cells(records, SCHEMA)
    assert regions.covers(as_frame(rows)).tolist() == slow_covers(records, rows)


@given(records, rows_)
def test_count_adds_up_what_is_covered(records, rows):
    regions = Regions.from_cells(records, SCHEMA)
    assert regions.count(as_frame(rows)).tolist() == [sum(r) for r in slow_covers(records, rows)]


@given(records, records, rows_)
def test_meet_covers_what_both_cover(a, b, rows):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    both = Regions.from_cells(a, SCHEMA).meet(Regions.from_cells(b, SCHEMA))
    expected = np.array(slow_covers(a, rows)) & np.array(slow_covers(b, rows))
    assert both.covers(as_frame(rows)).tolist() == expected.tolist()


@given(records, records)
def test_meet_is_empty_exactly_when_no_value_fits_both(a, b):
    size = min(len(a), len(b))
    both = Regions.from_cells(a[:size], SCHEMA).meet(Regions.from_cells(b[:size], SCHEMA))
    every = {
        "age": [None, *range(-3, 7)],
        "pay": [None, *(v / 4 for v in range(-8, 9))],
        "city": [None, *CITIES],
        "n": [None, *NUMBERS],
    }
    gone = [any(not any(holds(x[n], v) and holds(y[n], v) for v in every[n]) for n in every) for x, y in zip(a, b)]
    assert both.empty.tolist() == gone


@given(records, rows_)
def test_cells_shown_as_a_frame_make_the_same_regions_again(records, rows):
    regions = Regions.from_cells(records, SCHEMA)
    shown = regions.to_frame()
    again = Regions.from_cells(shown.astype(object).to_dict("records"), SCHEMA)
    assert again.covers(as_frame(rows)).tolist() == regions.covers(as_frame(rows)).tolist()
    assert again.text() == regions.text()


@given(records, rows_)
def test_pruning_drops_unused_values_and_nothing_else(records, rows):
    regions = Regions.from_cells(records, SCHEMA)[:1]
    pruned = regions.pruned()
    assert pruned.covers(as_frame(rows)).tolist() == regions.covers(as_frame(rows)).tolist()
    for axis in pruned.axes:
        if isinstance(axis, region_module.Values):
            assert set(axis.known) == {v for v in [*CITIES, *NUMBERS, None] if holds(records[0][axis.name], v)}


@given(records, rows_)
def test_counting_in_blocks_makes_no_difference(records, rows):
    regions, frame = Regions.from_cells(records, SCHEMA), as_frame(rows)
    whole_count = regions.count(frame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_module, "_BLOCK", 1)
        assert regions.count(frame).tolist() == whole_count.tolist()


@given(records)
def test_slices_keep_their_regions(records):
    regions = Regions.from_cells(records, SCHEMA)
    assert [str(r) for r in regions[::-1]] == regions.text()[::-1]
    assert str(regions[-1]) == regions.text()[-1]
    assert len(regions[np.zeros(len(regions), dtype=bool)]) == 0


def test_cells_read_as_people_write_them():
    cells = {
        "age": span(24, 27),
        "pay": span(-3, 4),
        "rate": span(0.5, 1.25),
        "city": frozenset(["Brussels", "Antwerp"]),
        "job": "clerk",
        "gap": None,
    }
    words = "age 24-27, pay -3 to 4, rate 0.5-1.25, city {Antwerp, Brussels}, job clerk, gap missing"
    assert str(Region(cells)) == words
    assert Regions.from_cells([cells]).text() == [words]


def test_whole_numbers_stay_whole():
    frame = Regions.from_cells([{"age": 39, "pay": 1.5}, {"age": span(24, 27), "pay": 2.0}], SCHEMA).to_frame()
    assert frame["age"].tolist() == [39, span(24, 27)]
    assert type(frame["age"].iloc[0]) is int
    assert frame["pay"].tolist() == [1.5, 2.0]


def test_points_cover_their_own_row():
    frame = pd.DataFrame({"age": [30, 41, 30], "city": ["a", None, "b"]})
    encoder = Encoder.fit(Table.from_frame(frame))
    points = Regions.points(encoder.codings, encoder.encode(frame))
    assert points.covers(frame).tolist() == np.eye(3, dtype=bool).tolist()
    assert points.to_frame()["age"].tolist() == [30, 41, 30]


def test_columns_that_the_rows_lack_are_not_asked_about():
    regions = Regions.from_cells([{"age": span(1, 2), "city": "a"}])
    assert regions.covers(pd.DataFrame({"age": [1, 3]})).tolist() == [[True, False]]
    assert regions.count(pd.DataFrame({"other": [1, 3]})).tolist() == [2]


def test_a_column_that_one_side_names_keeps_its_cells_when_they_meet():
    a, b = Regions.from_cells([{"age": span(1, 4)}]), Regions.from_cells([{"age": span(3, 9), "city": "x"}])
    assert a.meet(b).text() == ["age 3-4, city x"]


def test_no_regions_count_nothing():
    none = Regions.from_cells([])
    assert len(none) == 0
    assert none.count(pd.DataFrame({"age": [1]})).tolist() == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Regions.from_cells([{"a": 1}, {"b": 1}]), "same columns"),
        (lambda: Regions.from_cells([{"a": pd.Interval(1, 2, closed="left")}]), "closed on both ends"),
        (lambda: Regions.from_cells([{"a": 1}]).meet(Regions.from_cells([])), "as many"),
        (
            lambda: Regions.from_cells([{"a": span(1, 2)}]).meet(Regions.from_cells([{"a": "x"}])),
            "'a' is numeric in one",
        ),
        (
            lambda: Region({"a": span(1, 2)}).covers(pd.DataFrame({"a": ["Xanthippe"]})),
            "'a' is numeric in the regions but not in the rows",
        ),
    ],
)
def test_regions_that_do_not_fit_are_refused(make, words):
    with pytest.raises(SchemaError, match=words) as caught:
        make()
    assert "Xanthippe" not in str(caught.value)


def test_an_index_beyond_the_end_is_refused():
    with pytest.raises(IndexError):
        Regions.from_cells([{"a": 1}])[1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("ab")), max_size=12))
def test_regions_are_ranked_by_their_cells_column_by_column(rows):
    records = [{"age": span(low, low + wide), "city": city} for low, wide, city in rows]
    keys = [(low, low + wide, city) for low, wide, city in rows]
    found = Regions.from_cells(records, SCHEMA).ranks()
    pairs = [(i, j) for i in range(len(keys)) for j in range(len(keys))]
    assert sorted(set(found.tolist())) == list(range(len(set(keys))))
    assert all((found[i] == found[j]) == (keys[i] == keys[j]) for i, j in pairs)
    assert all(found[i] < found[j] for i, j in pairs if keys[i][:2] < keys[j][:2])
