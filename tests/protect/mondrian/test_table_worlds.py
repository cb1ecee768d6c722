"""Worlds that differ in what is not released (order, storage, spelling, a row that stays behind) look the same."""

import json
import unicodedata
from decimal import Decimal
from io import BytesIO

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import countervail as cv
from countervail.core.errors import CountervailError
from countervail.core.schema import Column, Schema

TOWNS = ["Liège", "Ghent", "Namur", "Brussels", "Antwerp"]
REGIONS = dict(zip([*TOWNS, "Spa"], ["south", "north", "south", "middle", "north", "south"]))
HIERARCHIES = {"town": cv.Hierarchy(tuple((town, part, "*") for town, part in REGIONS.items()), "town")}
SCHEMA = Schema(
    (
        Column("id", role="identifier"),
        Column("age", "numeric", "quasi"),
        Column("town", "categorical", "quasi"),
        Column("born", "categorical", "quasi"),
        Column("grade", "ordinal", "quasi", levels=("low", "mid", "high")),
        Column("ill", "categorical", "sensitive"),
        Column("visits", "numeric"),
        Column("seen", "categorical"),
        Column("score", "categorical"),
        Column("smokes", "categorical"),
        Column("y", "categorical", "target"),
    )
)
PROTECTORS = {
    "strict": cv.Mondrian(k=3),
    "span": cv.Mondrian(k=3, choose="span"),
    "relaxed": cv.Mondrian(k=3, mode="relaxed"),
    "suppress": cv.Mondrian(k=3, suppress=0.2),
    "relaxed and suppress": cv.Mondrian(k=2, mode="relaxed", suppress=0.2),
    "by class": cv.Mondrian(k=2, by_class=True),
    "l": cv.Mondrian(k=2, l=2, sensitive="ill"),
    "l, relaxed and suppress": cv.Mondrian(k=2, l=2, sensitive="ill", mode="relaxed", suppress=0.2),
    "t": cv.Mondrian(k=2, t=0.5, sensitive="ill"),
    "ordered t": cv.Mondrian(k=2, t=0.5, sensitive="visits", closeness="ordered"),
    "hierarchy": cv.Mondrian(k=3, hierarchies=HIERARCHIES, labels="hierarchy", suppress=0.2),
    "hierarchy of sets": cv.Mondrian(k=3, hierarchies=HIERARCHIES, suppress=0.2),
    "equal halves": cv.published.EqualHalvesMondrian(k=3),
    "equal halves by class": cv.published.EqualHalvesMondrian(k=2, by_class=True),
    "basic": cv.published.BasicMondrian(k=3),
    "microaggregation": cv.Microaggregation(k=3),
    "patterns": cv.KCommonPatterns(k=3),
    "spread patterns": cv.KCommonPatterns(k=3, objects="min", spread=True),
}


def people(rng, name):
    n = int(rng.integers(8, 40))
    noon = pd.Timestamp("2020-03-01 12:00", tz="UTC")
    visits = pd.Series(rng.choice([0, 1, 2], n)).astype(float)
    return pd.DataFrame(
        {
            "id": range(n),
            "age": rng.integers(-2, 6, n),
            "town": rng.choice(TOWNS, n),
            "born": [pd.Timestamp("1990-01-01") + pd.Timedelta(days=int(v)) for v in rng.integers(0, 3, n)],
            "grade": pd.Series(rng.choice(["low", "mid", "high", None], n, p=[0.3, 0.3, 0.3, 0.1]), dtype=object),
            "ill": pd.Series(rng.choice(["grippe", "fièvre", "hiv", None], n, p=[0.3, 0.3, 0.3, 0.1]), dtype=object),
            "visits": visits if "patterns" in name else visits.where(rng.random(n) > 0.1),
            "seen": [noon + pd.Timedelta(hours=int(v)) for v in rng.integers(0, 4, n)],
            "score": rng.choice([0.5, 1.0, 2.0], n),
            "smokes": rng.choice([True, False], n),
            "y": rng.choice(["a", "b", "c"], n),
        }
    )


def through_parquet(frame):
    file = BytesIO()
    frame.to_parquet(file)
    return pd.read_parquet(BytesIO(file.getvalue()))


def some(rng, values, change):
    """A column with some of its values changed."""
    return pd.Series([change(v) if rng.random() < 0.5 and not pd.isna(v) else v for v in values], dtype=object)


def worlds(f, rng):
    """The same people, told otherwise."""
    n = len(f)
    labels = ["town", "born", "ill", "seen", "score", "smokes", "y"]
    yield "other rows first", f.iloc[rng.permutation(n)]
    yield "other index", f.set_index(pd.Index(7 * rng.permutation(n)))
    yield "objects", f.astype(dict.fromkeys(labels, object))
    names = {"age": "Int64", "visits": "Int64", "score": "Float64", "smokes": "boolean"}
    yield "nullable", f.astype({"town": "string", "ill": "string", "y": "string", **names})
    yield "floats", f.assign(age=f["age"].astype(float).replace(0.0, -0.0), visits=f["visits"].replace(0.0, -0.0))
    apart = {n: some(rng, f[n], lambda v: unicodedata.normalize("NFD", v)) for n in ("town", "ill")}
    yield "letters in pieces", f.assign(**apart)
    yield "zones", f.assign(seen=some(rng, f["seen"], lambda v: v.tz_convert("Asia/Tokyo")))
    exact = f["score"].map(lambda v: Decimal(str(v))).astype(object)
    yield "decimals", f.assign(score=some(rng, exact, lambda v: v * Decimal("1.00")))
    yield "days", f.assign(born=[v.date() for v in f["born"]])
    yield "polars", pl.from_pandas(f)
    yield "Arrow", pa.Table.from_pandas(f, preserve_index=False)
    yield "Arrow in pandas", pa.Table.from_pandas(f, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype)
    yield "Parquet", through_parquet(f)


def worlds_of_categories(f, rng):
    """The same people, whose labels are categories in some order."""

    def coded(frame, sign, *more):
        names = {n: [*list(pd.unique(frame[n].dropna()))[::sign], *more] for n in ("town", "ill", "y")}
        return frame.assign(**{n: pd.Categorical(frame[n], known) for n, known in names.items()})

    yield "first seen first", coded(f, 1)
    yield "other rows first", coded(f.iloc[rng.permutation(len(f))], 1)
    yield "last seen first, and one of nobody", coded(f, -1, "of nobody")
    yield "polars", pl.from_pandas(coded(f.iloc[rng.permutation(len(f))], 1))
    yield "Arrow", pa.Table.from_pandas(coded(f, -1), preserve_index=False)
    yield "Parquet", through_parquet(coded(f, -1))


def told(protector, table):
    """All that leaves: rows, regions, schema, caveats, dtypes, CSV, Parquet; or what was refused."""
    try:
        release = protector.fit(table).protect(table)
    except CountervailError as error:
        return type(error).__name__
    text, file = release.to_text_frame(), BytesIO()
    text.to_parquet(file, index=False)
    dtypes = [list(map(str, frame.dtypes)) for frame in (release.to_frame(), text)]
    categories = [list(c.cat.categories) for _, c in text.items() if isinstance(c.dtype, pd.CategoricalDtype)]
    return release.to_json(), dtypes, categories, text.to_csv(index=False), file.getvalue()


@pytest.mark.parametrize("family", [worlds, worlds_of_categories])
@pytest.mark.parametrize("name", PROTECTORS)
def test_order_storage_and_spelling_do_not_reach_a_release(name, family, seeds):
    left = 0
    for seed in seeds(2, 15):
        rng = np.random.default_rng(seed)
        protector = PROTECTORS[name].set_params(random_state=int(rng.integers(2**32)))
        frame = people(rng, name)
        others = list(family(frame, rng))
        first = told(protector, cv.Table.from_frame(frame if family is worlds else others[0][1], schema=SCHEMA))
        left += not isinstance(first, str)
        for what, other in others:
            assert told(protector, cv.Table.from_frame(other, schema=SCHEMA)) == first, (seed, what)
    assert left or name == "basic"


ODD = {
    "visits": [None, 2.5, "many", Decimal("3.5"), 2**60],
    "ill": [None, "ebola", 7, "fie\u0300vre"],
    "seen": [None, "never", pd.Timestamp("2020-03-01"), pd.Timestamp("2020-03-01 12:00:00.000000001", tz="Asia/Tokyo")],
    "smokes": [None, "perhaps"],
    "score": [None, 0.25, "none"],
}
NOON = pd.Timestamp("2020-03-01 12:00", tz="UTC")
USUAL = {"visits": 1.0, "ill": "hiv", "seen": NOON, "smokes": True, "score": 0.5}
KEPT = {
    "as pandas does": lambda f: f,
    "nullable": lambda f: f.convert_dtypes(),
    "polars": pl.from_pandas,
    "Arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    "Arrow in pandas": lambda f: pa.Table.from_pandas(f, preserve_index=False).to_pandas(types_mapper=pd.ArrowDtype),
}


def beside(odd, name, kept, stage):
    """Twenty people of four ages, and one far off who is suppressed, with this value in one column."""
    frame = pd.DataFrame(
        {
            "age": [20, 21, 22, 23] * 5 + [900],
            "ill": ["fièvre", "hiv"] * 10 + ["hiv"],
            "visits": [1.0, 2.0, 3.0, 1.0] * 5 + [1.0],
            "seen": [NOON] * 21,
            "smokes": [True, False] * 10 + [True],
            "score": [0.5, 1.0] * 10 + [0.5],
        }
    )
    values = [*frame[name].tolist()[:-1], odd]
    there = list(dict.fromkeys(v for v in values if not pd.isna(v)))
    frame[name] = pd.Series(values) if stage == "plain" else pd.Categorical(values, there)
    roles = {"quasi_identifiers": ["age"], "sensitive": ["ill"]}
    return cv.Table.from_frame(KEPT[kept](frame), **roles)


@pytest.mark.parametrize("stage", ["plain", "category"])
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize(("name", "odd"), [(name, odd) for name, odds in ODD.items() for odd in odds], ids=str)
def test_a_suppressed_row_leaves_nothing_but_the_number_of_such_rows(name, odd, kept, stage):
    protector = cv.Mondrian(k=5, suppress=0.05, random_state=1)
    try:
        odd_world = beside(odd, name, kept, stage)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        assert kept in ("polars", "Arrow", "Arrow in pandas")  # they hold one kind of value in a column
        return
    usual = beside(USUAL[name], name, kept, stage)
    found = told(protector, odd_world)
    assert found == told(protector, usual)
    assert json.loads(found[0])["suppressed"] == 1


def test_patterns_know_no_values_of_deleted_rows_by_their_type():
    frame = pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0, 9.0], "y": list("aabba")})
    found = []
    for odd in (9.0, 9.5):
        odd_frame = frame.assign(x=[*frame["x"][:-1], odd])
        table = cv.Table.from_frame(odd_frame, quasi_identifiers=["x"], target="y")
        found.append(told(cv.KCommonPatterns(k=2, random_state=0), table))
    assert json.loads(found[0][0])["suppressed"] == 1 and found[0] == found[1]


def test_names_of_sets_and_types_of_their_values_do_not_tell_of_suppressed_rows():
    lines = tuple((str(v), "few" if v < 3 else "some" if v < 5 else "many", "*") for v in range(1, 8))
    found = []
    for odd in (6, 7, None):
        frame = pd.DataFrame({"n": pd.Series([1, 2, 3, 4] * 5 + [odd], dtype=object)})
        schema = Schema((Column("n", "categorical", "quasi"),))
        table = cv.Table.from_frame(frame, schema=schema)
        protector = cv.Mondrian(
            k=9, hierarchies={"n": cv.Hierarchy(lines, "n")}, labels="hierarchy", suppress=0.05, random_state=0
        )
        found.append(told(protector, table))
        assert json.loads(found[-1][0])["suppressed"] == 1
    assert found[0] == found[1] == found[2]


def test_a_seed_tells_nothing_about_who_stood_where():
    frame = pd.DataFrame({"age": [20] * 6, "ill": list("abcdef")})
    orders = set()
    for rng in map(np.random.default_rng, range(5)):
        table = cv.Table.from_frame(frame.iloc[rng.permutation(6)], quasi_identifiers=["age"], sensitive=["ill"])
        orders.add(tuple(cv.Mondrian(k=3, random_state=0).fit(table).protect(table).column("ill")))
    assert len(orders) == 1
