"""Tables: frames of any kind, checked against what is declared."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import train_test_split

from countervail import Column, CountervailError, Schema, SchemaError, Table
from countervail.core.errors import DataNotFoundError, ParameterError
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema

SECRET = "Xanthippe"  # a row's value that no message may hold


def people():
    return pd.DataFrame(
        {
            "name": [SECRET, "Bo", "Cy", "Di"],
            "age": [31, 42, 53, 31],
            "income": [10.5, 20.0, np.nan, 40.0],
            "city": ["Ghent", "Bruges", None, "Ghent"],
            "member": [True, False, True, False],
            "level": pd.Categorical(["lo", "hi", "lo", "mid"], ["lo", "mid", "hi"], ordered=True),
            "sort": pd.Categorical(["a", "b", "a", "b"]),
            "ok": [1, 0, 1, 0],
        }
    )


def types(table):
    return {c.name: c.type for c in table.schema}


def test_types_follow_the_dtypes():
    assert types(Table.from_frame(people())) == {
        "name": "categorical",
        "age": "numeric",
        "income": "numeric",
        "city": "categorical",
        "member": "categorical",
        "level": "ordinal",
        "sort": "categorical",
        "ok": "numeric",
    }


@pytest.mark.parametrize("dtype", ["int8", "uint16", "Int64", "float32", "Float64", "int64[pyarrow]"])
def test_every_number_dtype_is_numeric(dtype):
    assert Table.from_frame(pd.DataFrame({"a": pd.Series([1, 2], dtype=dtype)})).schema["a"].type == "numeric"


@pytest.mark.parametrize("dtype", ["str", "object", "string", "bool", "boolean", "category"])
def test_every_label_dtype_is_categorical(dtype):
    values = pd.Series([True, False] if "bool" in dtype else ["x", "y"], dtype=dtype)
    assert Table.from_frame(pd.DataFrame({"a": values})).schema["a"].type == "categorical"


def test_an_ordered_category_brings_its_levels():
    assert Table.from_frame(people()).schema["level"].levels == ("lo", "mid", "hi")


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_frames_of_other_libraries_give_the_same_table(kind):
    df = people().drop(columns=["level", "sort"])
    other = Table.from_frame(kind(df), target="ok", favourable=1, quasi_identifiers=["age"])
    ours = Table.from_frame(df, target="ok", favourable=1, quasi_identifiers=["age"])
    assert other.schema == ours.schema
    pd.testing.assert_frame_equal(other.frame.astype(object), ours.frame.astype(object), check_dtype=False)


def test_a_polars_enum_gives_its_labels():
    df = pl.DataFrame({"level": pl.Series(["lo", "hi"], dtype=pl.Enum(["lo", "hi"]))})
    assert Table.from_frame(df).frame["level"].tolist() == ["lo", "hi"]


def test_roles_are_declared_once():
    table = Table.from_frame(
        people(),
        target="ok",
        favourable=1,
        identifiers=["name"],
        quasi_identifiers=["age", "city"],
        sensitive=["income"],
    )
    assert table.schema.names("identifier") == ["name"]
    assert list(table.select("quasi")) == ["age", "city"]
    assert list(table.features) == ["age", "income", "city", "member", "level", "sort"]
    assert table.target.tolist() == [1, 0, 1, 0]
    assert repr(table) == "Table(4 rows; identifier: name; quasi: age, city; sensitive: income; target: ok)"


def test_roles_given_in_the_call_override_the_schema():
    schema = Table.from_frame(people(), quasi_identifiers=["age"]).schema
    table = Table.from_frame(people(), schema=schema, quasi_identifiers=["city"])
    assert table.schema.names("quasi") == ["city"]


@pytest.mark.parametrize("favourable", [1, "1", 1.0, [1], {1}, np.int64(1), np.array([1])])
def test_the_favourable_label_may_be_spelled_otherwise(favourable):
    schema = Table.from_frame(people(), target="ok", favourable=favourable).schema
    assert schema.favourable == (1,)
    assert type(schema.favourable[0]) is int


@pytest.mark.parametrize("spelling", ["True", True])
def test_a_truth_value_may_be_favourable(spelling):
    assert Table.from_frame(people(), target="member", favourable=spelling).schema.favourable == (True,)


def test_a_declared_label_may_be_favourable_though_nobody_has_it():
    table = Table.from_frame(people(), target="city", favourable="Lier", domains={"city": ["Bruges", "Ghent", "Lier"]})
    assert table.schema.favourable == ("Lier",)


def test_domains_are_declared_by_type():
    table = Table.from_frame(
        people(), domains={"age": (17, 90, 5), "city": ["Ghent", "Bruges", "Lier"], "level": ["lo", "mid", "hi", "top"]}
    )
    assert table.schema["age"].domain == (17, 90, 5)
    assert table.schema["city"].domain == ("Ghent", "Bruges", "Lier")
    assert table.schema["level"].levels == ("lo", "mid", "hi", "top")


def test_a_category_dtype_takes_the_declared_values():
    table = Table.from_frame(people(), domains={"sort": ["a", "b", "z"], "level": ["lo", "mid", "hi", "top"]})
    assert table.frame["sort"].dtype == pd.CategoricalDtype(["a", "b", "z"])
    assert table.frame["level"].dtype == pd.CategoricalDtype(["lo", "mid", "hi", "top"], ordered=True)
    assert table.frame["level"].tolist() == ["lo", "hi", "lo", "mid"]


def test_the_input_is_untouched_and_not_shared():
    df = people().set_axis([7, 8, 9, 10])
    before = df.copy(deep=True)
    table = Table.from_frame(df, target="ok", favourable="1")
    table.frame.loc[0, "age"] = 99
    pd.testing.assert_frame_equal(df, before)
    assert table.frame.index.equals(pd.RangeIndex(4))


def test_numbers_may_be_declared_categorical_and_text_ordinal():
    schema = Schema((Column("a", "categorical", domain=("1", "2")), Column("b", "ordinal", levels=(10, 20))))
    table = Table(pd.DataFrame({"a": [1, 2], "b": ["10", None]}), schema)
    assert table.frame["a"].tolist() == ["1", "2"]
    assert table.frame["b"].iloc[0] == 10 and pd.isna(table.frame["b"].iloc[1])


def test_with_types_makes_a_list_of_levels_an_ordinal_column():
    table = Table.from_frame(people()).with_types(city=["Bruges", "Ghent"], age="categorical")
    assert table.schema["city"].levels == ("Bruges", "Ghent")
    assert table.schema["age"].type == "categorical"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_files_give_the_frame_back(ending, tmp_path):
    df = people().drop(columns=["level", "sort"])
    write_frame(df, tmp_path / f"people{ending}")
    table = Table.read(tmp_path / f"people{ending}", target="ok")
    pd.testing.assert_frame_equal(table.frame, df)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_schema_turns_labels_of_a_file_into_exact_categories(ending, tmp_path):
    schema = Table.from_frame(people(), identifiers=["name"], domains={"city": ["Ghent", "Bruges", "Lier"]}).schema
    write_frame(people(), tmp_path / f"people{ending}")
    write_schema(schema, tmp_path / "people.toml")
    table = Table.read(tmp_path / f"people{ending}", tmp_path / "people.toml")
    assert table.frame["city"].dtype == pd.CategoricalDtype(["Ghent", "Bruges", "Lier"])
    assert table.frame["level"].dtype == pd.CategoricalDtype(["lo", "mid", "hi"], ordered=True)
    assert table.frame["age"].dtype == "int64"


def test_text_that_looks_missing_is_kept_and_an_empty_field_is_missing(tmp_path):
    (tmp_path / "a.csv").write_text("city,n\nNA,1\n,2\nnull,3\n")
    city = Table.read(tmp_path / "a.csv").frame["city"]
    assert city.iloc[0] == "NA" and pd.isna(city.iloc[1]) and city.iloc[2] == "null"


@pytest.mark.parametrize("spelling", ["1.0", "01", "1"])
def test_a_file_may_spell_declared_numbers_otherwise(spelling, tmp_path):
    (tmp_path / "a.csv").write_text(f"a\n{spelling}\n2\n")
    table = Table.read(tmp_path / "a.csv", Schema((Column("a", domain=(1, 2)),)))
    assert table.frame["a"].tolist() == [1, 2]


def test_a_file_may_spell_truth_values_in_capitals(tmp_path):
    (tmp_path / "a.csv").write_text("a\nTRUE\nfalse\n")
    assert Table.read(tmp_path / "a.csv", Schema((Column("a", domain=(False, True)),))).frame["a"].tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("test_size", [0.25, 0.4, 10])
@pytest.mark.parametrize("seed", [0, 7])
def test_split_takes_the_rows_that_scikit_learn_takes(test_size, seed):
    df = pd.DataFrame({"n": np.arange(50)})
    train, test = Table.from_frame(df).split(test_size=test_size, random_state=seed)
    theirs = train_test_split(df, test_size=test_size, random_state=seed)
    assert [train.frame["n"].tolist(), test.frame["n"].tolist()] == [part["n"].tolist() for part in theirs]
    assert test.frame.index.equals(pd.RangeIndex(len(test)))


def test_split_without_a_seed_is_a_partition_that_differs():
    table = Table.from_frame(pd.DataFrame({"n": np.arange(200)}))
    first, second = table.split(), table.split()
    assert sorted(first[0].frame["n"].tolist() + first[1].frame["n"].tolist()) == list(range(200))
    assert first[1].frame["n"].tolist() != second[1].frame["n"].tolist()


def test_take_accepts_positions_and_masks():
    table = Table.from_frame(people())
    assert table.take([3, 0]).frame["age"].tolist() == [31, 31]
    assert table.take(table.frame["age"] > 40).frame["name"].tolist() == ["Bo", "Cy"]


AGE, NAME = Column("age", "numeric"), Column("name")
BAD = {
    "unknown target": (lambda: Table.from_frame(people(), target="goal"), "'target' parameter of Table.from_frame"),
    "unknown identifier": (lambda: Table.from_frame(people(), identifiers=["who"]), "'identifiers' parameter"),
    "unknown quasi": (lambda: Table.from_frame(people(), quasi_identifiers=["who"]), "'quasi_identifiers' parameter"),
    "unknown sensitive": (lambda: Table.from_frame(people(), sensitive=["who"]), "'sensitive' parameter"),
    "unknown domain": (lambda: Table.from_frame(people(), domains={"who": (0, 1)}), "'domains' parameter"),
    "a string for a list": (lambda: Table.from_frame(people(), identifiers="name"), r"Write \['name'\]"),
    "a number for a domain": (lambda: Table.from_frame(people(), domains={"age": 3}), "'domains' parameter"),
    "a string for a domain": (lambda: Table.from_frame(people(), domains={"city": "Ghent"}), "'domains' parameter"),
    "two roles": (
        lambda: Table.from_frame(people(), identifiers=["age"], quasi_identifiers=["age"]),
        "'age' was given two roles",
    ),
    "not a frame": (lambda: Table.from_frame([[1, 2]]), "'df' parameter of Table"),
    "empty": (lambda: Table.from_frame(people().iloc[:0]), "table is empty"),
    "no columns": (lambda: Table.from_frame(people()[[]]), "table is empty"),
    "repeated columns": (
        lambda: Table.from_frame(pd.concat([people(), people()[["age"]]], axis=1)),
        r"unique. Repeated in the data: \['age'\]",
    ),
    "a column too few": (lambda: Table(people()[["age"]], Schema((AGE, NAME))), r"lacks columns .*\['name'\]"),
    "a column too many": (lambda: Table(people()[["age", "name"]], Schema((AGE,))), r"does not declare .*\['name'\]"),
    "text for numbers": (
        lambda: Table(people()[["name"]], Schema((Column("name", "numeric"),))),
        "'name' is declared numeric",
    ),
    "truth values for numbers": (
        lambda: Table(people()[["member"]], Schema((Column("member", "numeric"),))),
        "'member' is declared numeric",
    ),
    "outside the range": (
        lambda: Table.from_frame(people(), domains={"age": (17, 40)}),
        r"'age' has 2 value\(s\) outside its declared domain",
    ),
    "outside the values": (
        lambda: Table.from_frame(people(), domains={"name": ["Bo", "Cy", "Di"]}),
        r"'name' has 1 value\(s\) outside its declared domain",
    ),
    "outside the levels": (
        lambda: Table.from_frame(people()).with_types(name=["Bo", "Cy"]),
        r"'name' has 2 value\(s\) outside its declared levels",
    ),
    "ordinal without levels": (
        lambda: Table(people()[["name"]], Schema((Column("name", "ordinal"),))),
        "Ordinal column 'name' needs its levels",
    ),
    "infinite": (lambda: Table.from_frame(people().assign(income=np.inf)), "'income' holds infinite values"),
    "lists": (lambda: Table.from_frame(people().assign(name=[[SECRET]] * 4)), "'name' holds lists"),
    "favourable without target": (lambda: Table.from_frame(people(), favourable=1), "Declare the target"),
    "favourable unknown": (
        lambda: Table.from_frame(people(), target="ok", favourable="good"),
        r"\['good'\] do not occur in the target column 'ok'.*\['0', '1'\]",
    ),
    "favourable among names": (
        lambda: Table.from_frame(people(), target="name", favourable="good"),
        r"\['good'\] do not occur in the target column 'name'",
    ),
    "no target": (lambda: Table.from_frame(people()).target, "no target column"),
    "split too small": (lambda: Table.from_frame(people()).take([0]).split(), "'table' parameter of Table.split"),
    "split too much": (lambda: Table.from_frame(people()).split(test_size=9), "'test_size' parameter of Table.split"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_an_error_that_says_who_and_shows_nobody(case):
    make, words = BAD[case]
    with pytest.raises(CountervailError, match=words) as caught:
        make()
    assert not any(str(v) in str(caught.value) for v in [SECRET, "Bo'", "Cy'", "Di'", "10.5"])
    assert isinstance(caught.value, (SchemaError, ParameterError))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"name\n", "table is empty"),
        ("a.csv", b"name,age\n\xff\xfe,1\n", "not a readable CSV"),
        ("a.csv", b'name\n"Xanthippe', "not a readable CSV"),
        ("a.csv.gz", b"name\nXanthippe\n", "not a readable CSV"),
        ("a.csv.gz", gzip.compress(b"name\nXanthippe\n" * 99, mtime=0)[:-12], "not a readable CSV"),
        ("a.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x00\x00\x00", "not a readable CSV"),
        ("a.parquet", b"name\nXanthippe\n", "not a readable Parquet"),
        ("a.ods", b"name\nXanthippe\n", "must end in one of"),
    ],
)
def test_a_broken_file_gets_a_clear_error(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaError, match=words) as caught:
        Table.read(tmp_path / name)
    assert SECRET not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"nobody\.csv"):
        Table.read(tmp_path / "nobody.csv")


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    kept = tmp_path / "a.parquet"
    kept.write_text("old")
    with pytest.raises(SchemaError, match="cannot hold this table"):
        write_frame(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), kept)
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept]


def test_a_repr_shows_no_row():
    assert SECRET not in repr(Table.from_frame(people()))


def test_a_generator_splits_and_goes_on():
    table = Table.from_frame(pd.DataFrame({"a": range(40)}))
    one, other = np.random.default_rng(0), np.random.default_rng(0)
    first, second = (table.split(random_state=one)[0].frame["a"].tolist() for _ in range(2))
    assert first == table.split(random_state=other)[0].frame["a"].tolist()
    assert first != second


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "0"])
def test_a_wrong_seed_is_not_blamed_on_the_size(seed):
    with pytest.raises(ParameterError, match=r"'random_state' parameter of Table\.split"):
        Table.from_frame(people()).split(random_state=seed)
