"""Encoding: rows to one matrix and back, without a trace on dtypes; queries brought to the table's form."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail import CFK, NICE, Column, Schema, SchemaError, Table
from countervail.core import arrays
from countervail.core.encode import Encoder, conform_rows, encode_one, require_numbers
from countervail.core.errors import ParameterError
from countervail.testing import small_model, small_table

COLUMNS = {
    "int": pd.Series([3, -1, 3, 0]),
    "int8": pd.Series([3, -1, 3, 0], dtype="int8"),
    "uint": pd.Series([3, 1, 3, 0], dtype="uint16"),
    "float": pd.Series([0.1, -2.5, 1e300, 0.0]),
    "float with holes": pd.Series([0.1, np.nan, 1.0, 0.0]),
    "float32": pd.Series([0.1, -2.5, 3.0, 0.0], dtype="float32"),
    "Int64": pd.Series([3, -1, 3, 0], dtype="Int64"),
    "Int64 with holes": pd.Series([3, None, 3, 0], dtype="Int64"),
    "Float64 with holes": pd.Series([3.5, None, 3, 0], dtype="Float64"),
    "bool": pd.Series([True, False, True, True]),
    "boolean with holes": pd.Series([True, None, True, False], dtype="boolean"),
    "str": pd.Series(["b", "a", "c", "a"], dtype="str"),
    "str with holes": pd.Series(["b", None, "c", "a"], dtype="str"),
    "string": pd.Series(["b", None, "c", "a"], dtype="string"),
    "object": pd.Series(["b", "a", 3, 2.5], dtype=object),
    "object with holes": pd.Series(["b", None, "c", "a"], dtype=object),
    "category": pd.Series(pd.Categorical(["b", "a", "c", "a"], ["c", "b", "a", "never"])),
    "category with holes": pd.Series(pd.Categorical(["b", None, "c", "a"], ["c", "b", "a"])),
    "int category": pd.Series(pd.Categorical([3, 1, 3, 1], [3, 1])),
    "bool category": pd.Series(pd.Categorical([True, False, True, True])),
    "ordered": pd.Series(pd.Categorical(["mid", "lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True)),
    "ordered with holes": pd.Series(pd.Categorical(["mid", None, "hi", "lo"], ["lo", "mid", "hi"], ordered=True)),
    "date": pd.Series(pd.to_datetime(["2020-01-02", "2020-01-01", "2021-01-01", "2020-01-01"])),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_encoding_and_decoding_gives_the_column_back(kind):
    frame = pd.DataFrame({"a": COLUMNS[kind]})
    encoder = Encoder.fit(Table.from_frame(frame))
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), frame)


@pytest.mark.parametrize("kind", ["int", "Int64 with holes", "bool", "str"])
@pytest.mark.parametrize("declared", ["categorical", "ordinal"])
def test_any_values_can_be_labels(kind, declared):
    values = COLUMNS[kind]
    known = tuple(sorted(values.dropna().unique().tolist()))
    column = Column("a", "categorical") if declared == "categorical" else Column("a", "ordinal", levels=known)
    frame = pd.DataFrame({"a": values})
    encoder = Encoder.fit(Table(frame, Schema((column,))))
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), frame)


def test_codes_follow_content_and_levels_not_row_order():
    frame = pd.DataFrame({"city": ["b", "a"], "level": ["hi", "lo"]})
    schema = Schema((Column("city"), Column("level", "ordinal", levels=("lo", "mid", "hi"))))
    assert Encoder.fit(Table(frame, schema)).encode(frame).tolist() == [[1, 2], [0, 0]]


def test_a_missing_label_has_a_code_of_its_own():
    frame = pd.DataFrame({"city": ["b", None, "a"]})
    encoder = Encoder.fit(Table.from_frame(frame))
    assert encoder.encode(frame)[:, 0].tolist() == [1, 2, 0]
    assert encoder.codings[0].missing == 2
    assert encoder.codings[0].levels == 2
    assert encoder.codings[0].values == ["a", "b", None]


def test_a_value_without_a_code_is_minus_one_until_the_encoder_is_extended():
    table = Table.from_frame(pd.DataFrame({"city": ["b", "a"]}))
    encoder, query = Encoder.fit(table), pd.DataFrame({"city": ["z", None, "a", "y"]})
    assert encoder.encode(query)[:, 0].tolist() == [-1, -1, 0, -1]
    wider, _ = encoder.extended(query)
    assert wider.encode(query)[:, 0].tolist() == [3, 4, 0, 2]
    assert wider.encode(table.frame).tolist() == encoder.encode(table.frame).tolist()
    pd.testing.assert_frame_equal(wider.decode(wider.encode(query)), query)


@pytest.mark.parametrize("values", [[True, False], [1, 2]], ids=["bool", "int"])
def test_a_missing_query_value_keeps_apart_from_every_label(values):
    table = Table(pd.DataFrame({"a": values}), Schema((Column("a"),)))
    query = conform_rows(pd.DataFrame({"a": [None, values[0]]}, dtype=object), table, "Test")
    encoder, _ = Encoder.fit(table).extended(query)
    codes = encoder.encode(query)[:, 0]
    assert codes[0] == encoder.codings[0].missing == 2
    back = encoder.decode(encoder.encode(query))["a"]
    assert pd.isna(back.iloc[0]) and back.iloc[1] == values[0]


def test_an_extension_that_adds_nothing_changes_nothing():
    encoder = Encoder.fit(Table.from_frame(pd.DataFrame({"city": ["b", "a"], "n": [1, 2]})))
    assert encoder.extended(pd.DataFrame({"city": ["a"], "n": [9]}))[0].codings == encoder.codings


@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from(["x", "y", "z", None])), min_size=1, max_size=12))
def test_the_codes_of_any_rows_decode_to_those_rows(rows):
    frame = pd.DataFrame({"n": [n for n, _ in rows], "c": pd.Series([c for _, c in rows], dtype=object)})
    encoder = Encoder.fit(Table.from_frame(frame))
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), frame)


def shop():
    frame = pd.DataFrame(
        {
            "id": ["p1", "p2", "p3"],
            "age": [30, 40, 50],
            "income": [1.5, 2.5, 3.5],
            "member": [True, False, True],
            "city": pd.Categorical(["b", "a", "b"], ["b", "a"]),
            "level": pd.Categorical(["lo", "hi", "lo"], ["lo", "hi"], ordered=True),
            "ok": ["no", "yes", "no"],
        }
    )
    return Table.from_frame(frame, target="ok", identifiers=["id"], domains={"age": (18, 90)})


ROW = {"age": 33, "income": 2.0, "member": False, "city": "a", "level": "hi"}
EXPECTED = pd.DataFrame([ROW]).astype(shop().features.dtypes.to_dict())


@pytest.mark.parametrize(
    "query",
    [
        ROW,
        {**ROW, "id": "p9", "ok": "no"},
        pd.Series(ROW),
        pd.DataFrame([ROW], index=[77]),
        pd.DataFrame([dict(reversed(ROW.items()))]),
        pl.DataFrame([ROW]),
        pl.DataFrame([ROW]).to_arrow(),
        {**ROW, "age": 33.0, "income": 2, "member": 0},
        pd.DataFrame([ROW]).astype(object),
    ],
    ids=["mapping", "whole row", "series", "frame", "other order", "polars", "arrow", "other numbers", "objects"],
)
def test_queries_of_any_form_become_rows_of_the_table(query):
    pd.testing.assert_frame_equal(conform_rows(query, shop(), "Test"), EXPECTED)


def test_a_table_is_a_query_too():
    pd.testing.assert_frame_equal(conform_rows(shop(), shop(), "Test"), shop().features)


def test_queries_get_the_exact_order_of_the_categories():
    query = pd.DataFrame([ROW]).astype({"city": pd.CategoricalDtype(["a", "b"])})
    assert conform_rows(query, shop(), "Test")["city"].cat.categories.tolist() == ["b", "a"]


def test_queries_are_untouched():
    query = pd.DataFrame([{**ROW, "age": 33.0}])
    before = query.copy(deep=True)
    conform_rows(query, shop(), "Test")
    pd.testing.assert_frame_equal(query, before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "Xanthippe"}, "'age' is declared numeric"),
        ({"age": 33.5}, "'age' of the 'rows' given to Test has fractions"),
        ({"age": 7}, r"'age' has 1 value\(s\) outside its declared domain"),
        ({"level": "Xanthippe"}, r"'level' has 1 value\(s\) outside its declared levels"),
        ({"member": "Xanthippe"}, "'member' of the 'rows' given to Test must hold truth values"),
        ({"shoe": "Xanthippe"}, r"columns that the schema does not declare: \['shoe'\]"),
    ],
)
def test_a_query_that_does_not_fit_is_refused_without_being_quoted(change, words):
    with pytest.raises(SchemaError, match=words) as caught:
        conform_rows({**ROW, **change}, shop(), "Test")
    assert not any(secret in str(caught.value) for secret in ("Xanthippe", "33.5", "7."))


def test_a_category_that_the_table_never_had_is_a_value_of_its_own():
    query = conform_rows(pd.DataFrame([ROW, {**ROW, "city": "z"}]), shop(), "Test")
    assert query["city"].tolist() == ["a", "z"] and query["city"].cat.categories.tolist() == ["b", "a", "z"]
    wider, rows = Encoder.fit(shop()).extended(query)
    at = wider.names.index("city")
    assert len({rows[0, at], rows[1, at]}) == 2 and (rows[:, at] >= 0).all()
    assert wider.decode(rows)["city"].tolist() == ["a", "z"]


@pytest.mark.parametrize("protector", [NICE(), CFK(k=5), CFK(k=5, search="exact")], ids=["nice", "groups", "exact"])
@pytest.mark.parametrize("dtype", [object, "category"])
def test_somebody_with_a_category_of_her_own_gets_an_answer_and_the_others_the_same_as_without_her(protector, dtype):
    table = small_table(200)
    frame = table.frame.astype({"city": "category"})
    table = Table.from_frame(frame.drop(columns="id"), target="ok", favourable="yes", quasi_identifiers=["age", "city"])
    queries = table.features.head(20).astype({"city": object})
    hers = queries.copy()
    hers.loc[-1] = {**queries.iloc[0].to_dict(), "city": "elsewhere"}
    made = protector.fit(table, small_model)
    alone, beside = made.explain(queries), made.explain(hers.astype({"city": dtype}))
    assert [e.to_text() for e in alone] == [e.to_text() for e in list(beside)[:20]]
    assert beside.factuals["city"].iloc[-1] == "elsewhere" and beside.status.tolist()[-1] == alone.status.tolist()[0]


def test_a_query_without_a_column_or_a_row_is_refused():
    with pytest.raises(SchemaError, match=r"'rows' given to Test lack these columns of the table: \['age'\]"):
        conform_rows({k: v for k, v in ROW.items() if k != "age"}, shop(), "Test")
    with pytest.raises(ParameterError, match="'rows' parameter of Test must be at least one row"):
        conform_rows(shop().features.iloc[:0], shop(), "Test")
    with pytest.raises(ParameterError, match="'rows' parameter of Test"):
        conform_rows(3, shop(), "Test")


def test_missing_numbers_are_refused_by_column_name():
    frame = pd.DataFrame({"n": [1.0, np.nan], "c": ["x", None]})
    schema = Table.from_frame(frame).schema
    with pytest.raises(SchemaError, match=r"'rows' given to Test have missing values in numeric columns: \['n'\]"):
        require_numbers(frame, schema, "Test", "rows")
    require_numbers(frame.iloc[:1], schema, "Test", "rows")


def test_a_missing_whole_number_reaches_that_check_instead_of_becoming_a_number():
    query = conform_rows({**ROW, "age": None}, shop(), "Test")
    with pytest.raises(SchemaError, match=r"\['age'\]"):
        require_numbers(query, shop().schema, "Test", "rows")


def test_encoding_a_column_that_does_not_exist_is_refused():
    with pytest.raises(SchemaError, match="No column named 'who'"):
        Encoder.fit(shop(), ["who"])


def test_a_query_with_a_repeated_column_is_refused():
    table = Table(pd.DataFrame({"age": [1, 2], "city": ["a", "b"]}), Schema((Column("age", "numeric"), Column("city"))))
    twice = pd.DataFrame([[1, "Xanthippe", 2]], columns=["age", "city", "age"])
    with pytest.raises(SchemaError, match=r"'rows' given to NICE .* \['age'\]\. Keep one of each") as caught:
        conform_rows(twice, table, "NICE")
    assert "Xanthippe" not in str(caught.value)


@pytest.mark.parametrize("form", ["frame", "series", "mapping"])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_single_row_is_coded_at_once_as_it_is_among_others_or_not_at_all(kind, form):
    table = Table.from_frame(pd.DataFrame({"a": COLUMNS[kind], "b": ["x", "y", "x", "y"]}))
    encoder, known = Encoder.fit(table), []
    for i in range(len(table)):
        row = table.frame.iloc[[i]]
        given = {"frame": row, "series": row.iloc[0], "mapping": row.astype(object).to_dict("records")[0]}[form]
        quick = encode_one(given, table.schema, encoder)
        frame = conform_rows(given, table, "Test")
        known.append(quick is not None)
        if quick is not None:
            np.testing.assert_array_equal(quick, encoder.extended(frame)[1])
            pd.testing.assert_frame_equal(encoder.decode(quick), frame, check_column_type=False)
    if kind in ("int", "bool", "str", "category", "ordered"):
        assert all(known)


ODD = {
    "a value of another type": {"age": 30, "city": 1},
    "an unknown value": {"age": 30, "city": "c"},
    "a missing value": {"age": 30, "city": None},
    "a missing number": {"age": np.nan, "city": "a"},
    "a truth value": {"age": True, "city": "a"},
    "a number as text": {"age": "30", "city": "a"},
    "a fraction": {"age": 30.5, "city": "a"},
    "beyond the domain": {"age": 130, "city": "a"},
    "an infinite number": {"age": np.inf, "city": "a"},
    "a compound value": {"age": 30, "city": ["a"]},
    "a column too few": {"age": 30},
    "a column that nobody declared": {"age": 30, "city": "a", "name": "Ann"},
}


@pytest.mark.parametrize("odd", ODD)
def test_a_row_that_must_be_looked_at_more_closely_is_not_coded_at_once(odd):
    frame = pd.DataFrame({"age": [30, 40], "city": ["a", "b"], "ok": ["y", "n"]})
    table = Table.from_frame(frame, target="ok", domains={"age": (0, 99)})
    encoder = Encoder.fit(table)
    assert encode_one({"age": 30, "city": "a", "ok": "y"}, table.schema, encoder) is not None
    assert encode_one({"age": 30, "city": "a", "id": 7}, table.schema, encoder, beside=["id"]) is not None
    assert encode_one(ODD[odd], table.schema, encoder) is None
    if odd not in ("a compound value", "a number as text"):
        assert encode_one(pd.DataFrame([ODD[odd]]), table.schema, encoder) is None


def test_numbers_that_a_float_does_not_tell_apart_are_not_coded_at_once():
    whole = Table.from_frame(pd.DataFrame({"n": [1, 2]}))
    assert encode_one({"n": 2**53 + 1}, whole.schema, Encoder.fit(whole)) is None
    parts = Table.from_frame(pd.DataFrame({"n": [1.5, 2.0]}))
    assert encode_one({"n": -0.0}, parts.schema, Encoder.fit(parts)) is None
    assert encode_one(pd.DataFrame({"n": pd.Categorical([1.5])}), parts.schema, Encoder.fit(parts)) is None
    assert encode_one(parts.frame, parts.schema, Encoder.fit(parts)) is None
    assert encode_one(pd.DataFrame([[1.5, 2.0]], columns=["n", "n"]), parts.schema, Encoder.fit(parts)) is None


@pytest.mark.parametrize("kind", COLUMNS)
def test_frames_are_the_same_without_the_short_way(kind, monkeypatch):
    frame = pd.DataFrame({"a": COLUMNS[kind], "b": COLUMNS["int"], "c": COLUMNS["str"]})
    encoder = Encoder.fit(Table.from_frame(frame))
    encoder.decode(encoder.encode(frame))
    quick = encoder.decode(encoder.encode(frame))
    monkeypatch.setattr(encoder.pattern, "_held", ())
    pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), quick)
    for short in ("_OF_BLOCKS", "_OF_ARRAYS"):
        monkeypatch.setattr(arrays, short, None)
        pd.testing.assert_frame_equal(encoder.decode(encoder.encode(frame)), quick)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "Int8", "UInt16", "int8[pyarrow]"])
@pytest.mark.parametrize("explainer", [NICE(target="favourable"), CFK(k=3, search="exact"), CFK(k=3)], ids=str)
def test_people_with_larger_numbers_than_a_column_holds_are_decided_about_as_they_are(explainer, dtype):
    """Somebody who earns 5000 was asked about as -120, because the table's numbers fit 8 bits."""
    pay = np.array([3, 40, 60, 70, 80, 90, 10, 20, 100, 99])
    frame = pd.DataFrame({"age": np.arange(10) // 5, "pay": pd.Series(pay).astype(dtype)})
    frame["ok"] = np.where(pay > 50, "yes", "no")
    table = Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])

    def model(rows):
        return np.where(rows["pay"].to_numpy(dtype=float) > 50, "yes", "no")

    fitted = explainer.fit(table, model)
    for asked in (pd.DataFrame({"age": [0, 1, 0], "pay": [3_000_000_000, -3_000_000_000, 20]}), frame[["age", "pay"]]):
        said = fitted.explain(asked)
        assert said.before.tolist() == model(asked).tolist()
        assert said.factuals["pay"].astype(float).tolist() == asked["pay"].astype(float).tolist()
        assert (said.counterfactuals["pay"][said.found].astype(float) > 50).all()
    narrow = conform_rows(frame[["age", "pay"]], table, "test")
    assert narrow["pay"].dtype == table.frame["pay"].dtype, "what fits stays as the model knows it"
