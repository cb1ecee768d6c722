"""countervail hierarchy, and anonymize with hierarchies, relaxed cuts, suppression and several k."""

import json

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import read_frame, write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.hierarchy import Hierarchy

KEEP = ("--keep", "credit_amount")


@pytest.fixture
def people(tmp_path):
    """German credit as files."""
    table = cv.load("german_credit")
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")
    return tmp_path


def given(people):
    return (people / "people.csv", "--schema", people / "people.toml")


def test_a_proposed_hierarchy_can_be_edited_read_and_used(run, people):
    folder = people / "hierarchies"
    folder.mkdir()
    code, _, errors = run("hierarchy", people / "people.csv", "age", "--widths", "5,10,20", "-o", folder / "age.csv")
    assert code == 0
    assert "intervals" in errors
    text = (folder / "age.csv").read_text()
    assert text.splitlines()[0] == "19;15-19;10-19;0-19;*"
    (folder / "age.csv").write_text(text.replace("15-19", "teens"))
    code, _, _ = run("hierarchy", people / "people.csv", "job", "-o", folder / "job.csv")
    assert code == 0
    words = (
        "anonymize",
        "--keep",
        "credit_amount",
        *given(people),
        "--k",
        20,
        "--hierarchies",
        folder,
        "--labels",
        "hierarchy",
    )
    code, _, _ = run(*words, "-o", people / "public.csv")
    assert code == 0
    groups = {label for row in Hierarchy.read(folder / "age.csv").rows for label in row}
    assert set(read_frame(people / "public.csv")["age"].astype(str)) <= groups


def test_a_hierarchy_goes_to_the_terminal_or_as_json(run, people):
    code, out, _ = run("hierarchy", people / "people.csv", "age", "--kind", "quantiles", "--parts", 4)
    assert code == 0
    assert out.count("\n") == cv.load("german_credit").frame["age"].nunique()
    code, out, _ = run("hierarchy", people / "people.csv", "employment", "-s", people / "people.toml", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["kind"] == "order"
    assert found["lines"][0][-1] == "*"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "No column named 'nowhere'"),
        (("age", "--widths", "5;10"), "--widths takes numbers with commas"),
        (("age", "--widths", "5,7"), "multiples of one another"),
        (("job", "--kind", "dates"), "texts that begin with year-month-day"),
        (("age", "-o", "age.txt"), "must end in .csv"),
    ],
)
def test_bad_hierarchies_say_what_to_do(run, people, words, message):
    code, _, errors = run("hierarchy", people / "people.csv", *words)
    assert code == 2
    assert message in errors


def test_a_broken_hierarchy_is_named_by_its_line(run, people):
    folder = people / "hierarchies"
    folder.mkdir()
    (folder / "housing.csv").write_text("own;home;*\nrent;;*\nfor free;home;*\n")
    code, _, errors = run("anonymize", *KEEP, *given(people), "--hierarchies", folder, "-o", people / "public.csv")
    assert code == 2
    assert "hole: no name at level 1 above the value of line 2" in errors
    assert not (people / "public.csv").exists()


def test_ties_and_suppression_are_told(run, people):
    words = (
        "anonymize",
        "--keep",
        "credit_amount",
        *given(people),
        "--mode",
        "relaxed",
        "--suppress",
        0.02,
        "-o",
        people / "public.csv",
        "--json",
    )
    code, out, _ = run(*words)
    assert code == 0
    found = json.loads(out)
    assert 0 < found["suppressed"] <= 20
    assert found["rows"] + found["suppressed"] == 1000
    assert any("by lot" in text for text in found["caveats"])
    code, _, _ = run("check", people / "public.csv", "--schema", people / "people.toml", "--k", 10)
    assert code == 0


def test_several_k_side_by_side(run, people):
    page = people / "which-k.html"
    code, out, _ = run(
        "anonymize",
        "--keep",
        "credit_amount",
        *given(people),
        "--sweep",
        "k=2,10,50",
        "--cells",
        "tf",
        "--report",
        page,
    )
    assert code == 0
    assert "knee" in out
    assert "original rows" in out
    text = page.read_text()
    assert text.count("<svg") == 2
    code, out, _ = run("anonymize", *KEEP, *given(people), "--sweep", "k=2,10,50", "--cells", "tf", "--json")
    assert [p["k"] for p in json.loads(out)["points"]] == [2, 10, 50]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sweep", "2,5"), "--sweep takes values of k"),
        (("--sweep", "k=2,x"), "--sweep takes numbers"),
        (("--sweep", "k=2.5,5,10"), "whole numbers"),
        (("--sweep", "k=2,5,10", "-o", "x.csv"), "releases nothing"),
        ((), "Name the file to write with --output"),
        (("--suppress", "2", "-o", "x.csv"), "--suppress must"),
    ],
)
def test_bad_requests_say_what_to_do(run, people, words, message, monkeypatch):
    monkeypatch.chdir(people)
    code, _, errors = run("anonymize", *KEEP, *given(people), *words)
    assert code == 2
    assert message in errors


def test_tables_are_not_cut_and_bars_grow_with_what_they_show(run, people, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = run("anonymize", *given(people), "--sweep", "k=2,10,50")
    assert code == 0 and "…" not in out
    bars = [line.count("█") for line in out.splitlines() if "█" in line]
    assert len(bars) == 3 and bars == sorted(bars) and bars[0] < bars[-1]


def test_wide_tables_of_dates_are_compared_without_a_warning():
    """Sets of very many dates: their number of combinations has no end."""
    rng, n = np.random.default_rng(0), 400
    days = pd.to_datetime("1930-01-01") + pd.to_timedelta(rng.integers(0, 27_000, n), "D")
    frame = pd.DataFrame({"born": days.strftime("%d.%m.%Y"), "city": rng.choice(list("abcdefgh"), n)})
    frame["ok"] = rng.choice(["no", "yes"], n)
    table = cv.Table.from_frame(frame, target="ok", quasi_identifiers=["born", "city"])
    points = cv.measure.sweep(table, [2, 10]).points
    assert 0 < points[0].ncp < points[1].ncp
