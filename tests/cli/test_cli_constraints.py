"""countervail explain with constraints: from flags and from the schema file to answers that obey."""

import json

import pandas as pd
import pytest

from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.schema import Column
from countervail.testing import small_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("constrained")
    table, asked = small_table(200), small_table(25, seed=1)
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    declared = table.schema.with_column("age", actionable="up").with_column("city", actionable="no")
    write_schema(declared.with_column("income", range=(0, 90)), place / "declared.toml")
    write_frame(asked.features, place / "asked.csv")
    return place


def words(folder, *more, method="nice", schema="people.toml"):
    head = ("explain", folder / "people.csv", "--schema", folder / schema, "--method", method)
    return (*head, "--rows", folder / "asked.csv", *more)


def answers(path):
    data = json.loads(path.read_text())
    found = [s == "found" for s in data["status"]]
    a, b = pd.DataFrame(data["factuals"])[found], pd.DataFrame(data["counterfactuals"])[found]
    return data, a, b


def test_flags_reach_the_answers(run, folder, tmp_path):
    out = tmp_path / "out.json"
    flags = ("--reward", "sparsity", "--immutable", "city", "--immutable", "ill", "--monotone", "age=up", "--n", "3")
    more = ("--range", "income=0:100", "--forbid", "level:low->high", "--max-changes", "2", "--cost", "age=5")
    code, _, err = run(*words(folder, *flags, *more, "-o", out))
    assert code == 0, err
    data, a, b = answers(out)
    assert len(b) and (a["city"] == b["city"]).all() and (a["ill"] == b["ill"]).all()
    assert (b["age"] >= a["age"]).all() and b["income"].between(0, 100).all()
    assert not ((a["level"] == "low") & (b["level"] == "high")).any()
    assert ((a != b) & ~(a.isna() & b.isna())).sum(axis=1).max() <= 2
    assert pd.Series(data["query"]).value_counts().max() > 1


def test_the_schema_file_is_enough(run, folder, tmp_path):
    out = tmp_path / "out.json"
    code, _, _ = run(*words(folder, "-o", out, schema="declared.toml"))
    _, a, b = answers(out)
    assert code == 0 and len(b)
    assert (b["age"] >= a["age"]).all() and (a["city"] == b["city"]).all() and b["income"].between(0, 90).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--monotone", "age"), "--monotone is written as in --monotone 'age=up'"),
        (("--monotone", "age=sideways"), "'up' or 'down'"),
        (("--range", "income=10"), "written as LOW:HIGH"),
        (("--range", "income=a:b"), "--range needs a number there. Got 'a'"),
        (("--range", "city=a,z"), "made of values that column 'city' has"),
        (("--forbid", "city:a"), "--forbid is written as in"),
        (("--cost", "age=dear"), "--cost needs a number there"),
        (("--cost", "age=0"), "finite number above 0"),
        (("--immutable", "shoe"), "--immutable must be made of feature columns"),
        (("--max-changes", "0"), "--max-changes must"),
        (("--n", "0"), "--n must"),
    ],
)
def test_what_is_written_wrongly_is_said_in_one_line(run, folder, more, message):
    code, _, err = run(*words(folder, *more))
    assert code == 2 and message in err.replace("\n", " ")


def test_open_ends_and_sets_are_ranges_too(run, folder, tmp_path):
    out = tmp_path / "out.json"
    code, _, _ = run(*words(folder, "--range", "income=40:", "--range", "city=a,b", "-o", out))
    _, _, b = answers(out)
    assert code == 0 and len(b) and (b["income"] >= 40).all() and set(b["city"]) <= {"a", "b"}


@pytest.mark.parametrize("flag", [("--n", "3")])
def test_methods_that_do_not_take_a_flag_name_those_that_do(run, folder, flag):
    code, _, err = run(*words(folder, *flag, method="noisy-counterfactual"))
    assert code == 2 and "noisy-counterfactual does not take --n (that is for case-based, " in err.replace("\n", " ")


@pytest.mark.parametrize("method", ["private-neighbours", "private-histograms", "dp-table"])
def test_private_methods_take_the_same_flags(run, folder, tmp_path, method):
    out = tmp_path / "out.json"
    flags = ("--immutable", "city", "--monotone", "age=up", "--range", "income=0:90", "--max-changes", "3", "--n", "2")
    code, _, err = run(*words(folder, *flags, "--epsilon", "5", "-o", out, method=method))
    assert code == 0, err
    data, a, b = answers(out)
    assert (
        len(b) and (a["city"] == b["city"]).all() and (b["age"] >= a["age"]).all() and b["income"].between(0, 90).all()
    )
    assert data["guarantee"]["epsilon"] == 5.0


def test_a_range_of_dates_is_said_in_dates(run, tmp_path):
    table, asked = small_table(120), small_table(25, seed=1)
    for place, held in (("people.csv", table.frame), ("asked.csv", asked.features)):
        days = pd.Timestamp("1990-01-01") + pd.to_timedelta(held["income"] * 30, unit="D")
        write_frame(held.assign(born=days.dt.strftime("%Y-%m-%d")), tmp_path / place)
    schema = table.schema
    write_schema(type(schema)((*schema.columns, Column("born", "date")), schema.favourable), tmp_path / "people.toml")
    flags = ("--reward", "none", "--range", "born=1993-06-01:", "-o", tmp_path / "out.json")
    code, _, err = run(*words(tmp_path, *flags))
    assert code == 0, err
    _, a, b = answers(tmp_path / "out.json")
    start = (pd.Timestamp("1993-06-01") - pd.Timestamp(0)).days
    assert len(b) and (a["born"] < start).any() and (b["born"] >= start).all()
    code, _, err = run(*words(tmp_path, "--range", "born=soon:"))
    assert code == 2 and "--range" in err and "two dates" in err and "Traceback" not in err
