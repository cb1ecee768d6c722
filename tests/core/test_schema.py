"""Columns and schemas: what may be declared, and how it is written down."""

import pickle
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail import Column, Phrases, Schema, SchemaError
from countervail.core.errors import DataNotFoundError
from countervail.core.files.schema_file import read_schema, schema_toml, write_schema

PEOPLE = Schema(
    (
        Column("id", role="identifier"),
        Column("age", "numeric", "quasi", (17, 90), unit="years", phrases=Phrases("{} years older", "{} younger")),
        Column("level", "ordinal", levels=("low", "mid", "high")),
        Column("ok", role="target"),
    ),
    ("yes",),
)
# What a TOML file can hold: no lone surrogates.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
value = st.one_of(text, st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False), st.booleans())


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(["numeric", "ordinal", "categorical"]))
    role = draw(st.sampled_from(["identifier", "quasi", "sensitive", "attribute"]))
    domain = levels = None
    if kind == "numeric" and draw(st.booleans()):
        domain = tuple(sorted(draw(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=2))))
    elif kind == "ordinal":
        levels = draw(st.none() | st.lists(value, max_size=4, unique=True).map(tuple))
    elif kind == "categorical":
        domain = draw(st.none() | st.lists(value, max_size=4, unique=True).map(tuple))
    ways = ["no", "any"] if kind == "categorical" else ["no", "up", "down", "any"]
    known, range_ = levels if kind == "ordinal" else domain, None
    if kind == "numeric" and draw(st.booleans()):
        range_ = tuple(sorted(draw(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=2))))
    elif kind != "numeric" and known:
        range_ = draw(st.none() | st.lists(st.sampled_from(known), min_size=1, unique=True).map(tuple))
    ends = st.integers(-(10**9), 10**9) if kind == "numeric" else st.sampled_from(known or (None,))
    steps = st.lists(st.tuples(ends | st.just("*"), ends), max_size=2) if kind == "numeric" or known else st.just([])
    way, amounts = draw(st.sampled_from(ways)), st.none() | st.integers(1, 10**9) | st.floats(0.001, 1e6)
    return Column(
        name,
        kind,
        role,
        domain,
        levels,
        draw(text),
        Phrases(draw(text), draw(text), draw(text)),
        actionable=way,
        step=draw(amounts) if kind == "numeric" else None,
        until=draw(amounts) if kind == "numeric" and way in ("up", "down") else None,
        range=range_,
        forbidden=tuple((a, b) for a, b in draw(steps) if a != b),
    )


@st.composite
def schemas(draw):
    names = draw(st.lists(text, max_size=4, unique=True))
    return Schema(tuple(draw(columns(n)) for n in names), draw(st.lists(value, max_size=3).map(tuple)))


@given(schemas())
def test_toml_gives_back_every_schema(schema):
    assert Schema.from_dict(tomllib.loads(schema_toml(schema))) == schema


@given(schemas())
def test_equal_schemas_have_equal_digests_after_a_round_trip(schema):
    assert Schema.from_dict(schema.to_dict()).digest() == schema.digest()


@pytest.mark.parametrize(
    "name",
    ["", "plain", "with space", 'quo"te', "apo'strophe", "a.b", "a]b", "line\nbreak", "\x7f", "âge", "年齢", "#"],
)
def test_odd_column_names_survive_the_file(name, tmp_path):
    schema = Schema((Column(name, "categorical", "quasi", ("a\\b", 'x"y', "two\nlines", "ü", "\x00\x1f")),))
    write_schema(schema, tmp_path / "s.toml", {name: "why\nand why"})
    assert read_schema(tmp_path / "s.toml") == schema


def test_comments_stand_above_their_column():
    lines = schema_toml(PEOPLE, {"age": "a reason\nanother"}).splitlines()
    at = lines.index("[columns.age]")
    assert lines[at - 2 : at] == ["# a reason", "# another"]


def test_numpy_values_are_declared_as_plain_ones():
    column = Column("a", "numeric", domain=np.array([0, 3]))
    assert column.domain == (0, 3)
    assert [type(v) for v in column.domain] == [int, int]
    assert Schema((column,)).digest() == Schema((Column("a", "numeric", domain=(0, 3)),)).digest()


def test_the_domain_of_an_ordinal_column_is_its_levels():
    column = Column("a", "ordinal", domain=("lo", "hi"))
    assert column.levels == column.values == ("lo", "hi")
    assert column.domain is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Column("a", "number"), "type of column 'a'"),
        (lambda: Column("a", role="secret"), "role of column 'a'"),
        (lambda: Column("a", "numeric", domain=(3, 1)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(1,)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=("x", "y")), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(False, True)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(0, float("nan"))), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(0, float("inf"))), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(float("-inf"), 0)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(0, 1, 0)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(0, 1, 1.5)), "domain of numeric column 'a'"),
        (lambda: Column("a", "numeric", domain=(0, 1, float("inf"))), "domain of numeric column 'a'"),
        (lambda: Column("a", domain=("x", "x")), "must not repeat a value"),
        (lambda: Column("a", "ordinal", levels=("x", "x")), "must not repeat a value"),
        (lambda: Column("a", domain=(["x"], ["y"])), "must hold plain values"),
        (lambda: Column("a", "categorical", levels=("x",)), "only ordinal columns have levels"),
        (lambda: Column("a", actionable="maybe"), "actionable of column 'a' must be one of"),
        (lambda: Column("a", actionable="up"), "actionable of column 'a' must be 'no' or 'any'"),
        (lambda: Column("a", "numeric", range=(3, 1)), "range of column 'a' must be"),
        (lambda: Column("a", "numeric", range=(0, float("inf"))), "range of column 'a' must be"),
        (lambda: Column("a", "numeric", range=(1,)), "range of column 'a' must be"),
        (lambda: Column("a", "numeric", step=0), "step of column 'a' must be a number above 0"),
        (lambda: Column("a", "numeric", step=True), "step of column 'a' must be a number above 0"),
        (lambda: Column("a", "numeric", step=float("nan")), "step of column 'a' must be a number above 0"),
        (lambda: Column("a", "ordinal", step=1), "Column 'a' has 'step': it belongs to numeric columns"),
        (lambda: Column("a", "numeric", until=3), "until of column 'a' must go with actionable 'up' or 'down'"),
        (lambda: Column("a", "numeric", actionable="up", until="3"), "until of column 'a' must be a finite number"),
        (lambda: Column("a", domain=("x",), range=("y",)), "range of column 'a' must be a list of its declared values"),
        (lambda: Column("a", domain=("x",), range=()), "range of column 'a' must be a list of its declared values"),
        (lambda: Column("a", range=(["x"],)), "must hold plain values"),
        (lambda: Column("a", range=(float("nan"),)), "range of column 'a' must hold finite numbers"),
        (lambda: Column("a", forbidden=("x",)), "forbidden steps of column 'a' must be a list of .from, to. pairs"),
        (lambda: Column("a", forbidden=(("x", "x"),)), "forbidden steps of column 'a' must be from one value to anoth"),
        (lambda: Column("a", forbidden=((["x"], "y"),)), "must hold plain values"),
        (lambda: Column("a", domain=("x",), forbidden=(("x", "y"),)), "forbidden steps of column 'a' .* declared val"),
        (
            lambda: Column("a", "numeric", forbidden=((1, "y"),)),
            "forbidden steps of column 'a' must be made of numbers",
        ),
        (lambda: Column("a", "numeric", forbidden=((1, True),)), "forbidden steps of column 'a' must be made of num"),
        (lambda: Schema((Column("a"), Column("a"))), "must be unique"),
        (lambda: Schema((Column("a", role="target"), Column("b", role="target"))), "At most one column"),
        (lambda: PEOPLE["nobody"], "No column named 'nobody'"),
        (lambda: PEOPLE.with_roles(boss=["age"]), "A role must be one of"),
        (lambda: PEOPLE.with_roles(quasi=["age"], sensitive=["age"]), "given two roles"),
    ],
)
def test_a_wrong_declaration_is_refused(make, words):
    with pytest.raises(SchemaError, match=words):
        make()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "version must be 1"),
        ({"version": 2}, "version must be 1"),
        ({"version": 1, "colums": {}}, r"Unknown keys in the schema: \['colums'\]"),
        ({"version": 1, "columns": ["a"]}, "'columns' must be a table"),
        ({"version": 1, "columns": {"a": "numeric"}}, "entry of column 'a' must be a table"),
        ({"version": 1, "columns": {"a": {"kind": "numeric"}}}, r"Unknown keys for column 'a': \['kind'\]"),
        ({"version": 1, "columns": {"a": {"domain": 3}}}, "domain of column 'a' must be a list"),
        ({"version": 1, "columns": {"a": {"domain": "xy"}}}, "domain of column 'a' must be a list"),
        ({"version": 1, "columns": {"a": {"domain": [["x"]]}}}, "must hold plain values"),
        ({"version": 1, "columns": {"a": {"phrases": "more"}}}, "phrases of column 'a' must be a table"),
        ({"version": 1, "columns": {"a": {"phrases": {"most": "x"}}}}, "Unknown phrases for column 'a'"),
        ({"version": 1, "columns": {"a": {"phrases": {"more": 3}}}}, "must be text"),
        ({"version": 1, "columns": {"a": {"unit": 3}}}, "must be text"),
        ({"version": 1, "columns": {"a": {"range": 3}}}, "range of column 'a' must be a list"),
        ({"version": 1, "columns": {"a": {"forbidden": "x"}}}, "forbidden of column 'a' must be a list"),
        ({"version": 1, "columns": {"a": {"actionable": ["up"]}}}, "actionable of column 'a' must be one of"),
    ],
)
def test_a_wrong_schema_file_is_refused(data, words):
    with pytest.raises(SchemaError, match=words):
        Schema.from_dict(data)


def test_one_favourable_label_needs_no_list():
    assert Schema.from_dict({"version": 1, "favourable": "yes"}).favourable == ("yes",)


def test_a_file_that_is_not_toml_is_refused(tmp_path):
    (tmp_path / "s.toml").write_text("version = ")
    with pytest.raises(SchemaError, match=r"s\.toml' is not valid TOML"):
        read_schema(tmp_path / "s.toml")


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(DataNotFoundError, match="countervail schema DATA"):
        read_schema(tmp_path / "s.toml")


@pytest.mark.parametrize(
    "change",
    [
        {"type": "categorical"},
        {"role": "sensitive"},
        {"domain": (17, 91)},
        {"domain": (17, 90, 5)},
        {"unit": "months"},
        {"actionable": "up"},
        {"range": (18, 80)},
        {"forbidden": ((30, "*"),)},
        {"phrases": Phrases("{} years older")},
    ],
)
def test_any_change_of_a_column_changes_the_digest(change):
    assert PEOPLE.with_column("age", **change).digest() != PEOPLE.digest()


def test_a_change_of_the_favourable_decision_changes_the_digest():
    assert Schema(PEOPLE.columns, ("no",)).digest() != PEOPLE.digest()


def test_names_follow_roles_and_features_leave_out_identifiers_and_target():
    assert PEOPLE.names() == ["id", "age", "level", "ok"]
    assert PEOPLE.names("quasi", "target") == ["age", "ok"]
    assert PEOPLE.features == ["age", "level"]
    assert PEOPLE.target == "ok"
    assert "age" in PEOPLE and "nobody" not in PEOPLE and len(PEOPLE) == 4


def test_with_roles_leaves_other_roles_alone():
    changed = PEOPLE.with_roles(quasi=["level"])
    assert changed.names("quasi") == ["level"]
    assert changed.names("attribute") == ["age"]
    assert changed.names("identifier") == ["id"]


def test_a_new_type_drops_the_old_domain():
    assert PEOPLE.with_column("age", type="categorical")["age"].domain is None
    assert PEOPLE.with_column("age", unit="y")["age"].domain == (17, 90)


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_a_new_type_drops_the_old_way_and_range():
    schema = PEOPLE.with_column("age", actionable="up", range=(18, 80)).with_column("level", actionable="no")
    assert schema.with_column("age", type="categorical")["age"].actionable == "any"
    assert schema.with_column("age", type="ordinal")["age"].range is None
    assert schema.with_column("level", type="categorical")["level"].actionable == "no"


def test_old_files_are_read_and_what_is_not_declared_is_not_written():
    assert "actionable" not in schema_toml(PEOPLE) and "range" not in schema_toml(PEOPLE)
    text = schema_toml(PEOPLE.with_column("age", actionable="up", range=(18, 80)))
    assert 'actionable = "up"\nrange = [18, 80]' in text


def test_a_wide_schema_looks_every_name_up_once():
    names = [CountedName(f"column {i}") for i in range(20_000)]
    CountedName.compared = 0
    schema = Schema(tuple(Column(n, "numeric", "quasi") for n in names))
    found = [schema[f"column {i}"].name for i in range(20_000)]
    assert found == list(map(str, names)) and "column 7" in schema and "nobody" not in schema
    half = schema.with_roles(quasi=[f"column {i}" for i in range(10_000)])
    assert len(half.names("quasi")) == 10_000
    assert Schema.from_dict(half.to_dict()) == half
    # Comparing all pairs of names would take 200 million.
    assert CountedName.compared < 10 * len(names)


def test_an_unknown_name_of_a_wide_schema_is_said_in_one_short_line():
    schema = Schema(tuple(Column(f"column {i}") for i in range(20_000)))
    with pytest.raises(SchemaError, match="and 19,980 more") as caught:
        schema["nobody"]
    assert len(str(caught.value)) < 500


def test_a_schema_survives_pickling_and_what_cannot_be_a_name_is_none():
    schema = Schema((Column("age", "numeric"), Column("job")))
    assert pickle.loads(pickle.dumps(schema))["job"] == Column("job")
    assert ["age"] not in schema and None not in schema
    assert hash(schema) == hash(Schema(schema.columns))
