"""What we publish can be read back: every label stands for the people for whom it was written."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.published_cells import CellReader, period_days
from countervail.core.files.release_file import read_release
from countervail.core.files.schema_file import write_schema
from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Column, Schema
from countervail.core.words.dates import iso

LEVELS = ("none", "low", "mid", "high")
COLUMNS = {
    "age": Column("age", "numeric", "quasi"),
    "pay": Column("pay", "numeric", "quasi"),
    "code": Column("code", role="quasi"),
    "born": Column("born", "date", "quasi"),
    "city": Column("city", role="quasi"),
    "school": Column("school", "ordinal", "quasi", levels=LEVELS),
}


def people(n, seed, names, gaps=0.1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(-3, 60, n),
            "pay": np.round(rng.uniform(-1, 9, n), 2),
            "code": [f"{i:05}" for i in rng.integers(1_000, 54_000, n)],
            "born": rng.integers(-20_000, 12_000, n),
            "city": rng.choice(["Köln", "Bad X, Y", "=1+1", "{a}", "07"], n),
            "school": rng.choice(LEVELS, n),
        }
    ).astype(object)
    frame = frame.mask(rng.random(frame.shape) < gaps)[list(names)].infer_objects()
    return cv.Table.from_frame(frame.assign(ill=rng.choice(["flu", "=2"], n)), schema=schema_of(names))


def schema_of(names):
    return Schema((*(COLUMNS[n] for n in names), Column("ill", role="sensitive")))


def groups_of(table):
    made = {
        "age": lambda v: Hierarchy.intervals(v, widths=(5, 20), name="age"),
        "pay": lambda v: Hierarchy.intervals(v, widths=(0.5, 2), name="pay"),
        "code": lambda v: Hierarchy.prefixes(v, name="code"),
        "city": lambda v: Hierarchy(tuple((t, "a town" if len(t) > 3 else "a sign") for t in sorted(set(v))), "city"),
        "school": lambda v: Hierarchy.order(LEVELS, name="school"),
    }
    return {n: made[n](table.frame[n].dropna()) for n in table.schema.names("quasi") if n in made}


def same_people(release, back, table):
    """Whom each published row fits, as it was made and as it was read."""
    made = release.regions.covers(table.frame)[release.groups]
    read = back.regions.covers(table.frame)[back.groups]
    return bool((made == read).all())


@given(
    st.integers(0, 10_000),
    st.sets(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4),
    st.sampled_from(["tight", "hierarchy"]),
    st.sampled_from([".csv", ".parquet"]),
)
@settings(max_examples=40)
def test_whoever_fits_a_published_row_fits_it_when_it_is_read_back(tmp_path_factory, seed, names, labels, ending):
    table = people(60, seed, sorted(names))
    groups = groups_of(table) if labels == "hierarchy" else {}
    path = tmp_path_factory.mktemp("r") / f"r{ending}"
    made = cv.Mondrian(k=4, hierarchies=groups, labels=labels) if groups else cv.Mondrian(k=4)
    release = made.fit(table).protect(table)
    write_frame(release.to_text_frame(), path)
    assert same_people(release, read_release(path, table, hierarchies=groups), table)


@pytest.mark.parametrize("name", ["age", "pay", "code", "school"])
@pytest.mark.parametrize("gaps", [0, 0.1])
def test_names_that_follow_a_rule_are_read_without_the_hierarchy(tmp_path, name, gaps):
    table = people(80, 3, [name], gaps)
    groups = groups_of(table)
    release = cv.Mondrian(k=4, hierarchies=groups, labels="hierarchy").fit(table).protect(table)
    write_frame(release.to_text_frame(), tmp_path / "r.csv")
    assert same_people(release, read_release(tmp_path / "r.csv", table), table)


def test_groups_with_names_of_their_own_need_the_hierarchy(tmp_path):
    table = people(80, 3, ["city"])
    groups = groups_of(table)
    release = cv.Mondrian(k=30, hierarchies=groups, labels="hierarchy").fit(table).protect(table)
    write_frame(release.to_text_frame(), tmp_path / "r.csv")
    with pytest.raises(cv.SchemaError, match=r"'city' of the release .*--hierarchies"):
        read_release(tmp_path / "r.csv", table)
    assert same_people(release, read_release(tmp_path / "r.csv", table, hierarchies=groups), table)


def test_a_prefix_fits_people_who_were_never_in_the_table():
    reader = CellReader(COLUMNS["code"], ("50667", "50999", "10115"))
    assert reader.read("50***") == {"50667", "50999"} and reader.read("50667") == "50667"
    assert reader.read("*") == {"50667", "50999", "10115", None} and reader.read("{10115, missing}") == {"10115", None}


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("1984-02", "1984-02-01", "1984-02-29"),
        ("1984 Q4", "1984-10-01", "1984-12-31"),
        ("1984", "1984-01-01", "1984-12-31"),
        ("1980s", "1980-01-01", "1989-12-31"),
        ("1900-1999", "1900-01-01", "1999-12-31"),
    ],
)
def test_periods_are_their_days(text, first, last):
    assert [iso(d) for d in period_days(text)] == [first, last]
    days = pd.date_range(first, last).strftime("%Y-%m-%d")
    assert {text} == {r[1] for r in Hierarchy.dates(days, periods=(PERIOD[len(text) + text.count("Q")],)).rows}


PERIOD = {7: "month", 8: "quarter", 4: "year", 5: "decade", 9: "century"}


@pytest.mark.parametrize("text", ["1984-13", "198", "0000", "9999s", "soon"])
def test_what_is_no_period_is_none(text):
    assert period_days(text) is None


def test_attack_and_audit_read_what_anonymize_wrote(run, tmp_path):
    """Postcodes as prefixes, birth dates as periods, a file of people with semicolons: all in one walk."""
    names = ["code", "born", "age"]
    table = people(400, 1, names, gaps=0.03)
    for part, rows in (("in", slice(0, 200)), ("out", slice(200, 400))):
        frame = table.frame.iloc[rows].assign(born=table.frame["born"].iloc[rows].map(iso, na_action="ignore"))
        frame.to_csv(tmp_path / f"{part}.csv", index=False, sep=";")
    write_schema(schema_of(names), tmp_path / "s.toml")
    given = ("-s", tmp_path / "s.toml", "--sep", ";")
    release = tmp_path / "p.csv"
    assert run("anonymize", tmp_path / "in.csv", *given, "--k", 5, "--labels", "hierarchy", "-o", release)[0] == 0
    shown = pd.read_csv(release, dtype=str)
    assert shown["code"].str.contains(r"\d\*", na=False).any() and shown["born"].str.contains("0s").any()
    people_ = ("--against", tmp_path / "in.csv", "--control", tmp_path / "out.csv")
    code, out, err = run("attack", "linkage", release, *given, *people_, "--json")
    assert code == 0, err
    assert json.loads(out)["planted_found"]
    code, _, err = run("audit", release, *given, *people_, "--attack", "linkage", "--json")
    assert code == 0, err
