"""One spelling per value, and columns that tell of nothing but their cells, however these were stored."""

import datetime as dt
import unicodedata
from decimal import Decimal
from io import BytesIO

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from countervail.core import canonical
from countervail.core.canonical import canonical_series, canonical_value, code_values, typed_column
from countervail.core.release import without_traces
from countervail.core.schema import Column, Schema

NOON = dt.datetime(2020, 3, 1, 12)
TOKYO = dt.timezone(dt.timedelta(hours=9))

KINDS = {
    "whole": st.integers(-3, 3),
    "wide": st.sampled_from([0, 2**53 + 1, -(2**63), 2**63 - 1]),
    "fractions": st.sampled_from([-0.0, 0.0, 0.5, 1.0, 1e300]),
    "floats": st.sampled_from([-0.0, 0.0, 1.0, 2.0]),
    "truth": st.booleans(),
    "text": st.sampled_from(["a", "b", "é", "e\u0301", "Liège", ""]),
    "days": st.sampled_from([dt.date(1990, 1, 1), dt.date(9999, 12, 31)]),
    "times": st.sampled_from([NOON, NOON + dt.timedelta(hours=1)]),
    "zoned": st.sampled_from([NOON.replace(tzinfo=dt.UTC), NOON.replace(hour=21, tzinfo=TOKYO)]),
    "decimals": st.sampled_from([Decimal("1.0"), Decimal("1.00"), Decimal("2.5")]),
}


def through_parquet(values):
    file = BytesIO()
    pq.write_table(pa.table({"x": values}), file)
    return pd.read_parquet(BytesIO(file.getvalue()))["x"]


STORED = {
    "as pandas does": lambda cells: pd.Series(cells),
    "objects": lambda cells: pd.Series(cells, dtype=object),
    "nullable": lambda cells: pd.Series(cells, dtype=object).infer_objects().convert_dtypes(),
    "Arrow": lambda cells: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells))),
    "Arrow dictionary": lambda cells: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(cells).dictionary_encode())),
    "from Arrow": lambda cells: pa.array(cells).to_pandas(),
    "from polars": lambda cells: pl.Series(cells).to_pandas(),
    "from Parquet": lambda cells: through_parquet(pa.array(cells)),
}
CATEGORIES = {
    "of pandas": lambda cells: pd.Series(pd.Categorical(cells, list(dict.fromkeys(c for c in cells if c is not None)))),
    "from Arrow": lambda cells: pa.array(cells).dictionary_encode().to_pandas(),
    "from Parquet": lambda cells: through_parquet(pa.array(cells).dictionary_encode()),
    "from polars": lambda cells: pl.Series(cells).cast(pl.Categorical).to_pandas(),
}
CANNOT = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    TypeError,
    ValueError,
    OverflowError,
    pl.exceptions.PolarsError,
)


def stored(store, cells):
    """The cells as a column, unless they cannot be stored so."""
    try:
        return pd.Series(store(cells))
    except CANNOT:
        assume(False)


def spelt(values):
    return [canonical_value(v) for v in values]


def told(values):
    """All that a released column tells: dtype, categories, cells, null mask, CSV, Parquet schema."""
    frame = without_traces(pd.DataFrame({"x": values}).reset_index(drop=True))
    x = frame["x"]
    file = BytesIO()
    held = None
    try:
        frame.to_parquet(file, index=False)
        held = str(pq.read_schema(BytesIO(file.getvalue())).remove_metadata())
    except CANNOT:  # kinds are mixed: there is no such file
        pass
    categories = [repr(v) for v in x.cat.categories] if isinstance(x.dtype, pd.CategoricalDtype) else None
    cells = [(type(v).__name__, repr(v)) for v in x.astype(object).where(x.notna(), None)]
    return str(x.dtype), categories, cells, x.isna().tolist(), frame.to_csv(index=False), held


columns = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.lists(st.one_of(KINDS[kind], st.none()), min_size=1, max_size=8)
)


@given(columns, st.sampled_from(sorted(STORED)))
def test_a_column_tells_the_same_however_it_was_stored(cells, store):
    column = stored(STORED[store], cells)
    assume(spelt(column) == spelt(cells))  # floats cannot hold every whole number
    assert told(column) == told(pd.Series(cells, dtype=object))


@given(st.lists(st.one_of(KINDS["text"], st.none()), min_size=1, max_size=8), st.sampled_from(sorted(CATEGORIES)))
def test_categories_tell_the_same_however_they_were_stored(cells, store):
    assume(any(c is not None for c in cells))
    texts = [None if c is None else unicodedata.normalize("NFC", c) for c in cells]
    by_content = pd.Series(pd.Categorical(texts, sorted({c for c in texts if c is not None})))
    assert told(stored(CATEGORIES[store], cells)) == told(by_content)


ODD = st.sampled_from(
    [None, 2.5, -0.0, 7, 2**60, "text", "zzz", True, NOON, NOON.replace(tzinfo=TOKYO), dt.date(1, 1, 1), Decimal("0.1")]
)


@given(columns, ODD, st.sampled_from([*sorted(STORED.items()), *sorted(CATEGORIES.items())]))
def test_a_row_that_stays_behind_leaves_no_trace(cells, odd, named):
    store = named[1]
    alone, beside = stored(store, cells), stored(store, [*cells, odd])
    # A file that cannot mix kinds may spell all cells anew: then they are other cells.
    same = spelt(alone) == spelt(beside.iloc[:-1])
    kept = isinstance(alone.dtype, pd.CategoricalDtype) == isinstance(beside.dtype, pd.CategoricalDtype)
    assume(same and kept)
    assert told(beside.iloc[:-1]) == told(alone)


@given(columns, st.randoms(use_true_random=False))
def test_codes_follow_content_and_not_the_order_of_rows(cells, chance):
    codes, kinds = code_values(cells)
    order = list(range(len(cells)))
    chance.shuffle(order)
    moved, same = code_values([cells[i] for i in order])
    assert moved.tolist() == [codes[i] for i in order]
    assert [(type(v), v) for v in same] == [(type(v), v) for v in kinds]
    assert sorted(set(codes.tolist())) == list(range(len(kinds)))
    assert [kinds[c] for c in codes] == spelt(cells)
    assert None not in kinds[:-1] and kinds[:-1] == [v for v in kinds if v is not None][: len(kinds) - 1]


@given(columns)
def test_the_canonical_form_of_a_canonical_column_is_itself(cells):
    once = canonical_series(cells)
    assert told(canonical_series(once)) == told(once)
    codes, kinds = code_values(cells)
    assert typed_column([kinds[c] for c in codes]).dtype == once.dtype


@pytest.mark.parametrize(
    ("spellings", "one"),
    [
        ([1, 1.0, Decimal("1.0"), Decimal("1"), np.int8(1), np.float32(1), np.uint64(1)], 1),
        ([0, 0.0, -0.0, Decimal("-0.0")], 0),
        ([0.5, Decimal("0.50"), np.float16(0.5)], 0.5),
        ([2**60, float(2**60), Decimal(2**60)], 2**60),
        ([10**20, 1e20, Decimal(10**20)], 1e20),
        ([True, np.True_], True),
        (["é", "e\u0301", np.str_("é")], "é"),
        ([None, float("nan"), np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT")], None),
        (
            [dt.date(2020, 1, 1), np.datetime64("2020-01-01"), pd.Timestamp("2020-01-01").as_unit("s")],
            dt.datetime(2020, 1, 1),
        ),
        ([NOON.replace(tzinfo=dt.UTC), NOON.replace(hour=21, tzinfo=TOKYO)], pd.Timestamp(NOON, tz="UTC")),
        ([dt.timedelta(hours=1), np.timedelta64(1, "h")], pd.Timedelta("1h")),
        ([frozenset({1.0, None}), frozenset({Decimal("1.0"), float("nan")})], frozenset({1, None})),
        ([pd.Interval(1.0, 2.5), pd.Interval(1, 2.5)], pd.Interval(1, 2.5)),
    ],
)
def test_a_value_has_one_spelling(spellings, one):
    found = [canonical_value(v) for v in spellings]
    assert all(v == one or (v is None and one is None) for v in found)
    assert len({(type(v), repr(v)) for v in found}) == 1


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        ([1, 2.0], "int64"),
        ([1, None], "Int64"),
        ([1, 2.5], "float64"),
        ([2.5, None], "float64"),
        ([2**64, 1], "float64"),
        ([True, False], "bool"),
        ([True, None], "boolean"),
        ([dt.date(2020, 1, 1), None], "datetime64[us]"),
        ([NOON.replace(tzinfo=TOKYO)], "datetime64[us, UTC]"),
        ([pd.Timestamp("2020-01-01 00:00:00.000000001")], "datetime64[ns]"),
        ([pd.Timestamp("2020-01-01 00:00:00.000000001"), dt.date(9999, 1, 1)], "object"),
        ([NOON, NOON.replace(tzinfo=TOKYO)], "object"),
        ([dt.timedelta(hours=1)], "timedelta64[us]"),
        ([1, "a"], "object"),
        ([None, None], "object"),
        ([], "object"),
    ],
    ids=str,
)
def test_every_kind_of_cell_has_one_dtype(cells, dtype):
    assert str(canonical_series(cells).dtype) == dtype


def test_declared_values_keep_their_spelling_and_their_order():
    declared = ("high", "low", "e\u0301")
    codes, kinds = code_values(["low", "é", "zero", "high", None], declared)
    assert (codes.tolist(), kinds) == ([1, 2, 3, 0, 4], ["high", "low", "e\u0301", "zero", None])
    frame = pd.DataFrame({"x": pd.Categorical(["low", "high", "low"], ["low", "zzz", "high"])})
    shown = without_traces(frame, Schema((Column("x", domain=("high", "low")),)))["x"]
    assert shown.cat.categories.tolist() == ["high", "low"] and shown.tolist() == ["low", "high", "low"]


def test_an_order_of_categories_is_kept_and_those_of_nobody_are_not():
    stage = pd.Categorical(["II", "I", None], ["I", "II", "IV"], ordered=True)
    shown = canonical_series(pd.Series(stage))
    assert shown.cat.ordered and shown.cat.categories.tolist() == ["I", "II"] and shown.isna().tolist()[2]
    # Numbers as levels are whole again when the fraction has gone.
    grade = canonical_series(pd.Series(pd.Categorical([1.0, 2.0], [2.5, 2.0, 1.0], ordered=True)))
    assert grade.cat.categories.dtype == np.int64 and grade.cat.categories.tolist() == [2, 1]


@pytest.mark.parametrize("ordered", [False, True])
@given(
    st.lists(st.sampled_from(["a", "b", "é", "e\u0301", "c", None]), max_size=4), st.permutations(["c", "b", "a", "é"])
)
def test_categories_have_one_form_by_the_short_way_and_by_the_long_one(ordered, cells, order):
    held = pd.Series(pd.Categorical(cells, [*order, "e\u0301"], ordered=ordered), name="v")
    quick = canonical_series(held)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "_quick_categories", lambda values: None)
        pd.testing.assert_series_equal(quick, canonical_series(held))


@given(st.one_of(*KINDS.values(), st.none()))
def test_a_cell_alone_is_spelt_as_among_its_equals(cell):
    alone, twice = (canonical_series(pd.Series([cell] * n, dtype=object)) for n in (1, 2))
    pd.testing.assert_series_equal(alone, twice.iloc[:1])
