"""What is said beside a result is said on the terminal, in JSON and on the page: one source for all three."""

import hashlib
import html
import importlib
import json
import re
from dataclasses import replace

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
    public = {"age": (0, 120), "pay": (0.0, 5000.0)}
    known = {n: tuple(sorted(frame[n].unique())) for n in ("city", "code", "remark")} | {"ok.1": ("no", "yes")}
    domains = {**public, **known}
    declared = tuple(replace(c, domain=domains.get(c.name)) for c in columns)
    write_schema(Schema(declared, ("yes",)), tmp_path / "g.toml")
    others = frame.assign(age=frame["age"] + 1, code=[f"{8000 + i}" for i in range(rows)], pay=frame["pay"] + 7)
    write_frame(pd.concat([others, others[["ok"]]], axis=1), tmp_path / "c.csv")
    return tmp_path


SMALL = ("--people", "2", "--runs", "1", "--seeds", "1", "--neighbours", "3")
PEOPLE = ("-s", "s.toml", "--against", "d.csv", "--control", "c.csv")
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
    "rules": (
        ("rules", "d.csv", "-s", "s.toml", "--k", "2", "--exact-bounds"),
        "-o",
        ["more than once", "values that somebody has"],
    ),
    "holdout": (
        ("holdout", "d.csv", "-s", "s.toml", "--members", "m.csv", "--control", "c.csv"),
        None,
        ["more than once", "hold people as they are", "begin like a formula"],
    ),
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
    "recommend": (
        ("recommend", "d.csv", "-s", "g.toml", *SMALL, "--audit-draws", "0"),
        "-o",
        ["more than once", "No --model given"],
    ),
    "compare": (("compare", "d.csv", "-s", "s.toml", "--answers", "5"), "-o", ["more than once", "No --model given"]),
    "audit": (
        ("audit", "a.json", *PEOPLE, "--attack", "linkage", "--jobs", "1"),
        "-o",
        ["more than once"],
    ),
    "attack": (("attack", "linkage", "a.json", *PEOPLE), None, ["more than once"]),
    "check answers": (
        ("check", "a.json", "-s", "s.toml", "--against", "d.csv", "--k", "2"),
        None,
        ["more than once"],
    ),
    "hierarchy": (("hierarchy", "d.csv", "code", "-s", "s.toml"), None, ["more than once"]),
    "history": (("ledger", "history", "b.ledger"), "-o", []),
    "show": (("ledger", "show", "b.ledger"), None, []),
    "verify": (("verify", "v.json"), None, []),
    "reproduce": (("reproduce", "--quick", "inuiguchi"), None, ["Left out"]),
}
BEFORE = {
    "a.json": ("explain", "d.csv", "-s", "s.toml", "--method", "cfk", "--k", "3", "-o", "a.json"),
    "b.ledger": ("ledger", "create", "b.ledger", "--dataset", "people", "--epsilon", "4"),
    "v.json": ("audit", "a.json", *PEOPLE, "--attack", "linkage", "--jobs", "1", "-o", "v.json"),
}
# What is on the terminal beside notes: which files were written, what is promised, and what was proposed.
BESIDE = re.compile(
    r"(Report|Written|Pictures): |.* written to |.*-(anonymity|commonality) |.*Proof: docs/decisions"
    r"|code: prefixes .* Read and edit it\.$"
)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_terminal_json_and_the_page_say_the_same(run, people, monkeypatch, name):
    monkeypatch.chdir(people)
    words, flag, expected = COMMANDS[name]
    if name == "reproduce":
        catalogue = importlib.import_module("countervail.study.reproduce.catalogue")
        monkeypatch.setattr(catalogue, "possible", lambda paper: paper.exhibits[1:2])
    wanted = {m for m in BEFORE if m in words} | ({"a.json"} if "v.json" in words else set())
    for made in (m for m in BEFORE if m in wanted):
        assert run(*BEFORE[made])[0] == 0
    page = () if flag is None else (flag, "page.html")
    _, _, told = run(*words, *page)
    code, out, errors = run(*words, "--json")
    assert code in (0, 1), errors
    found = json.loads(out)
    found = found if isinstance(found, dict) else {}
    held = [n.removeprefix("Note: ") for n in (*found.get("notes", ()), *found.get("caveats", ()))]
    told = errors if flag is None and errors else told  # who is set aside is drawn anew in every run
    lines = [line for line in told.splitlines() if not BESIDE.match(line)]
    # How many rows are equal follows from who owns what: it is for whoever holds the rows, and leaves in no file.
    alone = [line for line in lines if line.startswith("For you alone: ")]
    lines = [line for line in lines if line not in alone]
    if name == "recommend":  # last comes what is promised by what was chosen, which noise decides
        lines = lines[:-1] if not lines[-1].startswith("Note: ") else lines
    said = [line.removeprefix("Note: ") for line in lines]
    assert name in ("explain", "attack") or all(line.startswith("Note: ") for line in lines), lines
    assert not [s for s in said if s not in held]
    shown = "" if flag is None else html.unescape((people / "page.html").read_text(encoding="utf-8"))
    assert flag is None or not [s for s in said if s not in shown]
    hidden = [line.removeprefix("For you alone: ") for line in alone]
    assert not [h for h in hidden if h in out or h in shown]
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


def test_no_page_confirms_guesses_about_a_table_that_is_not_published(run, people):
    # Whoever knows all of a file but one value could try values until the SHA-256 on a page is right.
    data, page = people / "d.csv", people / "page.html"
    asked = ("-s", people / "s.toml", "-o", page)
    assert run("risk", data, *asked)[0] == 0 and "SHA-256" not in page.read_text(encoding="utf-8")
    assert run("check", data, *asked, "--k", 5)[0] == 1 and "SHA-256" not in page.read_text(encoding="utf-8")
    assert hashlib.sha256(data.read_bytes()).hexdigest() not in page.read_text(encoding="utf-8")
    blurred = pd.read_csv(data).assign(age="20-69", city="{Bruges, Ghent}", code="9")
    write_frame(blurred.drop(columns="ok.1"), people / "public.csv")
    assert run("check", people / "public.csv", *asked, "--k", 5)[0] == 0
    assert hashlib.sha256((people / "public.csv").read_bytes()).hexdigest() in page.read_text(encoding="utf-8")


def test_every_command_that_reads_people_is_among_these():
    from countervail.cli import _READING, app

    covered = {words[0] for words, _, _ in COMMANDS.values()}
    assert {c.__name__ for c in _READING} <= covered
    # The demo has tests of its own; a proof is read, and warm compiles: neither looks at anybody.
    others = {c.callback.__name__ for c in app.registered_commands if c.callback is not None} - {
        "demo",
        "proof",
        "warm",
    }
    assert others <= covered


def test_what_explain_notes_of_a_spreadsheet_is_on_its_page_too(run, people, monkeypatch):
    monkeypatch.chdir(people)
    asked = ("explain", "d.csv", "-s", "s.toml", "--method", "cfk", "--k", "3")
    pages = ("-o", "e.csv", "-o", "e.html", "-o", "e.json")
    code, _, told = run(*asked, *pages)
    assert code == 0, told
    page, held = (people / "e.html").read_text(encoding="utf-8"), (people / "e.json").read_text(encoding="utf-8")
    formulas = [line.removeprefix("Note: ") for line in told.splitlines() if "like a formula" in line]
    assert formulas and all(line in html.unescape(page) for line in formulas)
    caveats = [text.removeprefix("Note: ") for text in json.loads(held)["caveats"]]
    assert all(line in caveats for line in formulas)


@pytest.mark.parametrize("language", ["de", "fr", "nl"])
def test_in_other_languages_the_terminal_and_the_page_say_the_same(run, people, monkeypatch, language):
    monkeypatch.chdir(people)
    asked = ("explain", "d.csv", "-s", "s.toml", "--method", "cfk", "--k", "3", "--language", language)
    code, _, told = run(*asked, "-o", "e.html")
    assert code == 0, told
    page = html.unescape((people / "e.html").read_text(encoding="utf-8"))
    said = [line for line in told.splitlines() if not BESIDE.match(line)]
    assert said and not [line for line in said if line.removeprefix("Note: ") not in page]
