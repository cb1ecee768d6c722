"""Spark, on a cluster of two workers: the same counts, trees and releases as in memory and on DuckDB."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import countervail as cv
from countervail.engine.interface import COUNT
from countervail.engine.spark.relation import SparkDialect
from countervail.engine.spark.session import usable_session

KINDS = ["classic", "connect"]


def lines(table):
    """Rows of an Arrow table in an order of their own."""
    return sorted(zip(*(table[n].to_pylist() for n in sorted(table.column_names))), key=repr)


def odd_values():
    """Values that engines are known to treat differently."""
    table = pa.table(
        {
            "x": pa.array([float("nan"), -0.0, 0.0, None, 1.5]),
            "wide": pa.array([2**53 + 1, 2**53, -(2**63), 2**63 - 1, None]),
            "unsigned": pa.array([2**64 - 1, 2**63, 0, None, 5], pa.uint64()),
            "text": pa.array(["é", "e\u0301", "", "a`b'\"", "\U0001f600 "]),
            "Text": pa.array(["A", "a", None, "A ", "a"]),
            "day": pa.array([None, -1, 0, 20000, -100000], pa.int32()).cast(pa.date32()),
            "time": pa.array([0, 1, None, -5, 10**15], pa.timestamp("us")),
            "zoned": pa.array([0, 1, None, -5, 10**12], pa.timestamp("ms", tz="Europe/Paris")),
            "yes": pa.array([True, None, False, True, True]),
            "money": pa.array([Decimal("9007199254740993.01"), Decimal("0.10"), None, Decimal("-3"), Decimal("2.675")]),
            "a.b c": pa.array([1, 2, 3, 4, None], pa.int8()),
        }
    )
    return pa.concat_tables([table] * 3)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """The same values in files that store numbers in 64 and in 32 bits."""
    folder = tmp_path_factory.mktemp("odd")
    table = odd_values()
    pq.write_table(table, folder / "a.parquet")
    at = table.column_names.index("a.b c")
    pq.write_table(table.set_column(at, "a.b c", table["a.b c"].cast(pa.int64())), folder / "b.parquet")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_odd_values_are_settled_as_in_memory(kind, sessions, odd):
    here = cv.Table.scan(odd).relation
    there = cv.Table.scan(odd, engine="spark", session=sessions[kind]).relation
    names = list(here.kinds)
    assert there.kinds == here.kinds
    wanted, found = here.grouped(names), there.grouped(names)
    assert found.schema.remove_metadata() == wanted.schema.remove_metadata()
    assert lines(found) == lines(wanted)
    assert found.num_rows == 5 and there.count() == 30
    assert there.grouped(names, limit=4) is None
    for name in ("wide", "x", "text"):
        assert there.extremes(name) == here.extremes(name)
    assert [there.quantile("wide", r) for r in (0, 6, 23, 24)] == [here.quantile("wide", r) for r in (0, 6, 23, 24)]
    assert there.most_equal("Text") == 12
    there.close()


def test_a_session_is_left_as_it_was(sessions, odd):
    session = sessions["classic"]
    before = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false"}
    for name, value in before.items():
        session.conf.set(name, value)
    views = len(session.catalog.listTables())
    relation = cv.Table.scan(odd, engine="spark", session=session).relation
    assert lines(relation.grouped(["zoned"])) == lines(cv.Table.scan(odd).relation.grouped(["zoned"]))
    relation.close()
    assert {n: session.conf.get(n) for n in before} == before and len(session.catalog.listTables()) == views
    for name in before:
        session.conf.unset(name)


def test_a_frame_and_a_table_of_the_session_are_scanned(sessions):
    session = sessions["classic"]
    frame = session.sql("SELECT id % 3 AS a, CAST(id AS STRING) COLLATE UTF8_LCASE AS b FROM range(9)")
    frame = frame.selectExpr("a", "CASE WHEN b = '1' THEN 'x' WHEN b = '4' THEN 'X' ELSE 'y' END AS b")
    scan = cv.Table.scan(frame, engine="spark", quasi_identifiers=["a"])
    found = scan.relation.grouped(["a", "b"])
    assert set(lines(found)) == {(3, 0, "y"), (1, 1, "x"), (1, 1, "X"), (1, 1, "y"), (3, 2, "y")}
    frame.createOrReplaceTempView("known_rows")
    assert len(cv.Table.scan("table:known_rows", engine="spark", session=session)) == 9
    with pytest.raises(cv.DataNotFoundError, match="no table of this name"):
        cv.Table.scan("table:nobody_knows", engine="spark", session=session)
    session.catalog.dropTempView("known_rows")


ROLES = {"identifiers": ["id"], "quasi_identifiers": ["age", "income", "city"], "sensitive": ["illness"]}


def people(n=400, seed=3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"person-{i}" for i in rng.permutation(n)],
            "age": rng.integers(18, 60, n),
            "income": np.where(rng.random(n) < 0.05, np.nan, rng.gamma(2, 1000, n).round(-2)),
            "city": rng.choice(["Ghent", "Bruges", "Liège", "Ostend", None], n, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "illness": rng.choice(["none", "flu", "gout"], n),
            "number": rng.choice([2**60 + 1, 2**60, -1], n),
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_the_one_of_memory(kind, sessions, tmp_path):
    (tmp_path / "rows").mkdir()
    for i, at in enumerate(np.array_split(np.arange(400), 3)):
        people().iloc[at].to_parquet(tmp_path / "rows" / f"{i}.parquet")
    options = {"l": 2, "sensitive": "illness"} if kind == "connect" else {"choose": "span"}
    found = {}
    for engine, where in (("memory", {}), ("spark", {"session": sessions[kind]})):
        scan = cv.Table.scan(tmp_path / "rows", engine=engine, **where, **ROLES)
        written = cv.Mondrian(k=6, **options).fit(scan).write(tmp_path / engine)
        files = sorted(p.name for p in (tmp_path / engine).glob("*.parquet"))
        about = json.loads((tmp_path / engine / "_release.json").read_text())
        assert list(about["files"]) == files and files[0] == "part-00000.parquet"
        found[engine] = (written.rows, written.classes, written.smallest, lines(pq.read_table(tmp_path / engine)))
    assert found["spark"] == found["memory"]
    assert "id" not in pq.read_table(tmp_path / "spark").column_names
    assert {p.name for p in (tmp_path / "spark").iterdir()} == {*files, "_release.json"}


def test_rows_stand_where_their_content_and_the_key_put_them(sessions, tmp_path):
    frame = people(200)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.sample(frac=1, random_state=1).to_parquet(tmp_path / "b.parquet")
    for name in ("a", "b"):
        scan = cv.Table.scan(tmp_path / f"{name}.parquet", engine="spark", session=sessions["classic"], **ROLES)
        cv.Mondrian(k=6, random_state=5).fit(scan).write(tmp_path / name)
    a, b = (pq.read_table(tmp_path / n).to_pylist() for n in ("a", "b"))
    assert a == b


def test_bad_input_is_told_in_words_of_ours(sessions, tmp_path, odd):
    session = sessions["classic"]
    people(2000).to_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:500] + bytes(2000) + whole[2500:])
    scan = cv.Table.scan(tmp_path, engine="spark", session=session, **ROLES)
    with pytest.raises(cv.CountervailError) as told:
        scan.relation.grouped(["age", "income", "city", "illness", "number", "id"])
    assert "person-" not in str(told.value)
    with pytest.raises(cv.DataNotFoundError, match="cannot be reached"):
        cv.Table.scan("hdfs://nobody.invalid:9/rows.parquet", engine="spark", session=session)
    with pytest.raises(cv.ParameterError, match=r"'session' parameter.*Spark 4.*Spark 3\.5\.1"):
        usable_session(type("Session", (), {"version": "3.5.1", "sql": None})())
    with pytest.raises(cv.ParameterError, match="'session' parameter"):
        cv.Table.scan(odd, engine="spark", session="local[2]")
    with pytest.raises(cv.ParameterError, match="'master' parameter"):
        cv.Table.scan(odd, engine="memory", master="local[2]")
    pq.write_table(pa.table({"t": pa.array([0], pa.timestamp("ns"))}), tmp_path / "ns.parquet", version="2.6")
    with pytest.raises(cv.SchemaError, match="'t' counts time in nanoseconds"):
        cv.Table.scan(tmp_path / "ns.parquet", engine="spark", session=session)


def test_counts_and_dialect_names_are_quoted():
    dialect = SparkDialect(None, stop=False)
    assert dialect.quote("a`b") == "`a``b`" and COUNT not in dialect.hashed(b"k", ["a"])
