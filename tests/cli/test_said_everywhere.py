"""What is said beside a result is said on the terminal, in JSON and on the page: one source for all three."""

import html
import json

import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.schema import Column, Schema


@pytest.fixture
def people(tmp_path):
    """A table that much is to be said of: a name twice in its header, formulas, equal rows, a column of money."""
    rows = 60
    frame = pd.DataFrame(
        {
            "age": [20 + 7 * i % 50 for i in range(rows)],
            "city": [("Ghent", "Bruges")[i % 2] for i in range(rows)],
            "code": [f"{9000 + i}" for i in range(rows)],
            "pay": [1000.5 + 13 * i for i in range(rows)],
            "remark": [("=1+1", "fine", "good")[i % 3] for i in range(rows)],
            "ok": [("no", "yes")[i % 3 > 0] for i in range(rows)],
        }
    )
    columns = (
        Column("age", "numeric", "quasi"),
        Column("city", role="quasi"),
        Column("code", role="quasi"),
        Column("pay", "numeric"),
        Column("remark", role="sensitive"),
        Column("ok", role="target"),
        Column("ok.1"),
    )
    write_schema(Schema(columns, ("yes",)), tmp_path / "s.toml")
    write_frame(pd.concat([frame, frame[["ok"]]], axis=1), tmp_path / "d.csv")
    return tmp_path


COMMANDS = {
    "schema": (("schema", "d.csv"), None, ["more than once"]),
    "risk": (("risk", "d.csv", "-s", "s.toml"), "-o", ["more than once", "value of their own"]),
    "sweep": (
        ("anonymize", "d.csv", "-s", "s.toml", "--sweep", "k=2,5"),
        "--report",
        ["more than once", "'code' has many"],
    ),
    "anonymize": (
        ("anonymize", "d.csv", "-s", "s.toml", "--k", "3", "--keep", "pay", "-o", "p.csv", "--mode", "relaxed"),
        "--report",
        ["more than once", "'code' has many", "value of their own", "begin like a formula", "lot"],
    ),
    "check": (("check", "d.csv", "-s", "s.toml", "--k", "2"), "-o", ["more than once"]),
    "rules": (("rules", "d.csv", "-s", "s.toml", "--k", "2"), "-o", ["more than once", "values that somebody has"]),
    "dit": (
        ("dit", "d.csv", "-s", "s.toml", "--k", "3", "--records", "3", "--sensitive", "remark"),
        "-o",
        ["more than once", "No promise"],
    ),
    "explain": (
        ("explain", "d.csv", "-s", "s.toml", "--method", "cfk", "--k", "3"),
        "-o",
        ["more than once", "No --model given"],
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_terminal_json_and_the_page_say_the_same(run, people, monkeypatch, name):
    monkeypatch.chdir(people)
    words, flag, expected = COMMANDS[name]
    page = () if flag is None else (flag, "page.html")
    _, _, told = run(*words, *page)
    code, out, errors = run(*words, "--json")
    assert code in (0, 1), errors
    said = [line.removeprefix("Note: ") for line in told.splitlines() if line.startswith("Note: ")]
    found = json.loads(out)
    held = [n.removeprefix("Note: ") for n in (*found.get("notes", ()), *found.get("caveats", ()))]
    assert not [s for s in said if s not in held]
    shown = "" if flag is None else html.unescape((people / "page.html").read_text(encoding="utf-8"))
    assert flag is None or not [s for s in said if s not in shown]
    for text in expected:
        assert text in told, told
        assert any(text in h for h in held), held
        assert flag is None or text in shown


def test_notes_of_one_run_are_not_those_of_the_next(run, people, monkeypatch):
    monkeypatch.chdir(people)
    run("risk", "d.csv", "-s", "s.toml")
    table = cv.load("toy_credit")
    write_frame(table.frame, people / "toy.csv")
    write_schema(table.schema, people / "toy.toml")
    assert "more than once" not in run("risk", "toy.csv", "-s", "toy.toml", "--json")[1]
