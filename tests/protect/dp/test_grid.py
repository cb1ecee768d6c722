"""Public grids: what a value becomes depends on the declaration and on that value alone."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.core.schema import Column
from countervail.protect.dp.grid import Axis, Grid


def grid_of(values, domain, missing=(), **more):
    frame = pd.DataFrame({"v": values, **more})
    return Grid.of(cv.Table.from_frame(frame, domains={"v": domain}), "test", missing)


@pytest.mark.parametrize(
    ("domain", "cells"),
    [
        ((17, 20), (17, 18, 19, 20)),
        ((0, 10, 3), (0, 5, 10)),
        ((0, 9, 4), (0, 3, 6, 9)),
        ((0.0, 1.0, 5), (0.0, 0.25, 0.5, 0.75, 1.0)),
        ((0, 1, 3), (0.0, 0.5, 1.0)),
        ((5, 5), (5,)),
        ((0, 100, 1), (0,)),
    ],
)
def test_cells_follow_the_declared_bounds(domain, cells):
    assert grid_of([domain[0]], domain).axes[0].values == cells


def test_a_range_without_levels_has_at_most_101_cells():
    assert len(grid_of([0], (0, 99999)).axes[0]) == 101
    assert len(grid_of([0.5], (0.0, 1.0)).axes[0]) == 101
    assert len(grid_of([3], (0, 50)).axes[0]) == 51
    cells = grid_of([0], (0, 99999)).axes[0].values
    assert all(isinstance(v, int) for v in cells) and cells[0] == 0 and cells[-1] == 99999


@given(st.integers(-1000, 1000), st.integers(0, 2000), st.integers(1, 120))
def test_a_cell_is_its_own_nearest(low, width, levels):
    axis = grid_of([low], (low, low + width, levels)).axes[0]
    values = np.asarray(axis.values, dtype=float)
    assert (np.diff(values) > 0).all()
    assert axis.codes(pd.Series(values)).tolist() == list(range(len(axis)))


def test_numbers_beyond_the_ends_go_to_the_ends_and_holes_to_the_middle():
    axis = grid_of([0], (0, 10)).axes[0]
    assert axis.codes(pd.Series([-5.0, 3.4, 3.6, 1e9, np.nan])).tolist() == [0, 3, 4, 10, 5]


def test_unknown_and_missing_labels_have_a_public_place():
    axis = grid_of(["b"], ["a", "b"]).axes[0]
    assert axis.codes(pd.Series(["b", "z", None])).tolist() == [1, 0, 0]
    own = grid_of(["b"], ["a", "b"], ["v"]).axes[0]
    assert own.codes(pd.Series(["b", "z", None])).tolist() == [1, 0, 2]
    assert own.series(np.array([0, 2])).isna().tolist() == [False, True]


@pytest.mark.parametrize("values", [["a", "b"], [1, 2], [True, False]])
@pytest.mark.parametrize("missing", [(), ("v",)])
@pytest.mark.parametrize("category", [False, True])
def test_rows_survive_the_way_through_codes(values, missing, category):
    column = pd.Series(values, dtype=pd.CategoricalDtype(values)) if category else pd.Series(values)
    frame = pd.DataFrame({"v": column})
    schema = cv.Schema((Column("v", "categorical", domain=tuple(values)),))
    grid = Grid.of(cv.Table(frame, schema), "test", missing)
    codes = np.arange(len(grid.axes[0]))[:, None]
    back = grid.frame(codes)
    assert np.array_equal(grid.codes(back), codes)
    assert back["v"].isna().sum() == len(missing)


def test_the_dtype_does_not_depend_on_the_rows():
    for values in ([1, 2], [1.5, 2], [None, 2.0]):
        assert grid_of(values, (0, 10)).axes[0].dtype == np.int64


def test_distances_are_heom_with_public_ranges():
    frame = pd.DataFrame({"n": [1.0], "o": ["low"], "c": ["x"]})
    columns = (
        Column("n", "numeric", domain=(0.0, 10.0, 11)),
        Column("o", "ordinal", levels=("low", "mid", "high")),
        Column("c", "categorical", domain=("x", "y")),
    )
    grid = Grid.of(cv.Table(frame, cv.Schema(columns)), "test", ["o", "c"])
    far = grid.distances(np.array([[2.5, 1.0, 0.0], [0.0, 3.0, -1.0]])) / 2**30
    assert far[0, 0, :4] == pytest.approx([0.25, 0.15, 0.05, 0.05], abs=1e-8)
    assert far[0, 1, :4].tolist() == [0.5, 0, 0.5, 1] and far[0, 2, :3].tolist() == [0, 1, 1]
    assert far[1, 1, :4].tolist() == [1, 1, 1, 0] and far[1, 2, :3].tolist() == [1, 1, 1]


def test_a_missing_domain_is_named_and_the_way_out_told():
    table = cv.Table.from_frame(pd.DataFrame({"a": [1], "b": ["x"]}), domains={"a": (0, 1)})
    with pytest.raises(cv.SchemaError, match=r"declare none: \['b'\].*Pass domains"):
        Grid.of(table, "DPTable")


def test_an_empty_domain_is_refused():
    table = cv.Table(pd.DataFrame({"b": [None]}, dtype=object), cv.Schema((Column("b", domain=()),)))
    with pytest.raises(cv.SchemaError, match="hold no value"):
        Grid.of(table, "DPTable")


def test_declared_cuts_are_the_positions():
    schema = cv.Schema((cv.Column("pay", "numeric", domain=(0, 1000), cuts=(0, 10, 100, 1000)),))
    grid = Grid.of(cv.Table(pd.DataFrame({"pay": [0, 4, 6, 54, 56, 549, 551]}), schema), "test")
    frame = pd.DataFrame({"pay": [0, 4, 6, 54, 56, 549, 551]})
    assert grid.axes[0].values == (0, 10, 100, 1000) and grid.axes[0].dtype.kind == "i"
    assert grid.codes(frame).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert cv.Schema.from_dict(schema.to_dict()) == schema
    assert schema.with_column("pay", domain=(0, 10))["pay"].cuts is None


@pytest.mark.parametrize("cuts", [(), (5, 1), (0, 0), (-1, 5), (0, 2000), (0, "many"), (True, 5)])
def test_bad_cuts_are_refused(cuts):
    with pytest.raises(cv.SchemaError, match="cuts of column 'pay'"):
        cv.Column("pay", "numeric", domain=(0, 1000), cuts=cuts)
    with pytest.raises(cv.SchemaError, match="has cuts"):
        cv.Column("pay", "numeric", cuts=(0, 10))


def test_two_whole_numbers_for_a_column_of_fractions_are_refused_at_once():
    shares = pd.DataFrame({"share": [0.25, 0.5]})
    with pytest.raises(cv.SchemaError, match=r"two whole numbers: \['share'\]"):
        Grid.of(cv.Table.from_frame(shares, domains={"share": (0, 1)}), "test")
    assert len(Grid.of(cv.Table.from_frame(shares, domains={"share": (0.0, 1.0)}), "test").axes[0]) == 101
    flags = pd.DataFrame({"share": [0, 1]})
    assert len(Grid.of(cv.Table.from_frame(flags, domains={"share": (0, 1)}), "test").axes[0]) == 2


def test_german_credit_declares_every_domain():
    table = cv.load("german_credit")
    assert all(table.schema[n].public is not None for n in [*table.schema.features, table.schema.target])
    assert Grid.of(table, "test").sizes.tolist()[4] == 19


def test_a_missing_number_has_the_last_place():
    axis = Axis.of(Column("x", type="numeric", domain=(0, 4)), np.dtype(float), True)
    assert len(axis) == 6 and axis.codes(pd.Series([0.0, np.nan, 9.0])).tolist() == [0, 5, 4]
    assert axis.series(np.array([5, 2])).tolist()[1] == 2.0 and np.isnan(axis.series(np.array([5])).iloc[0])
    assert np.isnan(axis.numbers()[-1]) and axis.dtype == np.float64 and axis.ordered


def test_no_record_tells_how_the_dates_of_others_are_read():
    # 31/12 or 12/31: one record told the order of all, and moved nine in ten of the others.
    rng = np.random.default_rng(0)
    texts = [f"{a:02d}/{b:02d}/1999" for a, b in rng.integers(1, 13, (50, 2)).tolist()]
    first = ("31/12/1999", "12/31/1999")

    def codes(order, one):
        column = Column("born", "date", domain=("1999-01-01", "1999-12-31"), order=order)
        table = cv.Table(pd.DataFrame({"born": [one, *texts]}), cv.Schema((column,)))
        return Grid.of(table, "PrivateSynthetic").codes(table.features)[1:].tolist()

    for one in first:
        with pytest.raises(SchemaError, match=r"order the dates of \['born'\] are written"):
            codes("", one)
    assert codes("dmy", "31/12/1999") == codes("dmy", "30/11/1999") != codes("mdy", "12/31/1999")


def codes_of(values, column):
    table = cv.Table(pd.DataFrame({"v": pd.Series(values, dtype=object)}), cv.Schema((column,)))
    return Grid.of(table, "PrivateSynthetic", ["v"], numbers=True).codes(table.features)[:, 0].tolist()


def test_a_day_is_that_of_its_own_clock_whoever_else_is_there():
    # The same moment on two clocks is equal, and was read as the day of whoever came first: one record moved others.
    column = Column("v", "date", domain=("2019-12-01", "2020-01-31"), order="ymd")
    east = pd.Timestamp("2020-01-01 00:30", tz="Etc/GMT-2")
    west = pd.Timestamp("2019-12-31 22:30", tz="UTC")
    assert east == west
    assert codes_of([east, west, west], column) == codes_of([east], column) + codes_of([west, west], column)


def test_a_label_is_read_the_same_whoever_else_is_there():
    # Days of two types are equal and hash otherwise: some were taken for each other, and then for missing.
    days = pd.date_range("2000-01-01", periods=2_000)
    column = Column("v", "categorical", domain=tuple(d.date().isoformat() for d in days))
    both = [*(d.date() for d in days), *(d.to_datetime64().astype("datetime64[D]") for d in days)]
    assert codes_of(both, column) == [*range(2_000), *range(2_000)]


SPELLINGS = {
    "categorical": ((1, 2, 3.5, 0), [1, 2, 3.5, 0, 1.0, "1", "2", "3.5", True, False, None, np.nan, "01", "TRUE"]),
    "ordinal": (("1", "2", "é"), ["1", "2", "é", "e\u0301", 1, 2.0, None, np.nan]),
    "date": (
        ("2019-01-01", "2021-12-31"),
        [
            *("2020-01-01", "1/2/2020", "01.02.2020", date(2020, 5, 5), np.datetime64("2020-05-05"), None, pd.NaT),
            *(pd.Timestamp("2020-01-01 00:30", tz="Etc/GMT-2"), pd.Timestamp("2019-12-31 22:30", tz="UTC")),
        ],
    ),
}


@given(st.data(), st.sampled_from(sorted(SPELLINGS)))
def test_no_record_moves_another_or_the_table_is_refused(data, kind):
    domain, spellings = SPELLINGS[kind]
    column = Column("v", kind, domain=domain, order="dmy" if kind == "date" else "")
    values = data.draw(st.lists(st.sampled_from(spellings), min_size=2, max_size=6))
    gone = data.draw(st.integers(0, len(values) - 1))
    try:
        whole = codes_of(values, column)
        rest = codes_of(values[:gone] + values[gone + 1 :], column)
    except SchemaError:
        return
    assert rest == whole[:gone] + whole[gone + 1 :]
