"""What a file holds never steers the terminal: control characters are shown as escapes."""

import json
import sys

import pandas as pd
import pytest

import countervail as cv
from countervail.cli.shared.common import remark, say, table
from countervail.core.cells import visible
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import read_schema, schema_toml, write_schema
from countervail.core.phrase import sentence

EVIL = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e\r\x7f"


def is_harmless(text, *, lines=True):
    return visible(text, keep="\n" if lines else "") == text


def test_every_way_to_speak_shows_escapes(capsys):
    say(f"one {EVIL}\ntwo")
    remark(EVIL)
    table([EVIL, "b"], [[EVIL, f"{EVIL}\n"]])
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert is_harmless(text) and "\\x1b]0;owned\\x07" in text and "\\u202e" in text
    assert said.out.splitlines()[1] == "two"


def test_sentences_stay_on_one_line_and_show_escapes():
    schema = cv.Schema((cv.Column("job"), cv.Column("age", "numeric", unit=EVIL)))
    said = sentence({"job": "a", "age": 1}, {"job": f"b\n{EVIL}", "age": 2}, schema, EVIL)
    assert is_harmless(said, lines=False) and "your job were b\\n\\x1b]0;" in said
    same = sentence({"job": "a"}, {"job": "a"}, schema, EVIL)
    assert is_harmless(same, lines=False)


def test_notes_of_an_explanation_show_escapes():
    schema = cv.Schema((cv.Column("job"),))
    made = cv.core.explanation.Explanation({"job": "a"}, {"job": EVIL}, "found", "no", "yes", schema, note=EVIL)
    assert is_harmless(made.to_text())


@pytest.fixture
def evil(tmp_path):
    frame = pd.DataFrame({"job": [EVIL, "b"] * 30, f"ci{EVIL}ty": ["x", "y", EVIL] * 20, "ok": ["1", "0"] * 30})
    write_frame(frame, tmp_path / "people.csv")
    columns = (cv.Column("job", role="quasi"), cv.Column(f"ci{EVIL}ty", role="quasi"), cv.Column("ok", role="target"))
    write_schema(cv.Schema(columns, ("1",)), tmp_path / "people.toml")
    return tmp_path


@pytest.mark.parametrize("command", ["schema", "hierarchy", "risk", "check", "rules", "explain", "anonymize"])
def test_commands_show_escapes(command, run, evil, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    rest = {
        "schema": (),
        "hierarchy": ("job",),
        "explain": ("--schema", evil / "people.toml", "--method", "nice"),
        "anonymize": ("--schema", evil / "people.toml", "-o", evil / "out.csv", "--k", 2),
    }.get(command, ("--schema", evil / "people.toml"))
    code, out, err = run(command, evil / "people.csv", *rest)
    assert code in (0, 1) and is_harmless(out) and is_harmless(err)


def test_an_error_is_one_line_whatever_a_column_is_called(run, evil):
    frame = pd.DataFrame({f"job\n{EVIL}": ["a"], "b": [1]})
    write_frame(frame, evil / "other.csv")
    code, _, err = run("risk", evil / "other.csv", "--schema", evil / "people.toml")
    assert code == 2 and is_harmless(err) and err.count("\n") == 1


def test_a_proposed_schema_holds_escapes_that_toml_reads_back(tmp_path):
    schema = cv.Schema((cv.Column("job", domain=(EVIL, "b")),))
    text = schema_toml(schema)
    assert is_harmless(text)
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    assert read_schema(tmp_path / "s.toml") == schema


@pytest.mark.parametrize(
    "cells", [["1e308"], ["-1e308", "1e308"], ["1.7976931348623157e308", "0"], ["5e-324", "0"], ["1e308", "1", "-1"]]
)
def test_a_schema_is_proposed_for_the_largest_and_smallest_numbers(cells, run, tmp_path):
    cells = [*cells, "2.5", "3.5"]
    (tmp_path / "a.csv").write_text("x\n" + "\n".join(cells) + "\n")
    code, out, _ = run("schema", tmp_path / "a.csv", "--json")
    low, high = json.loads(out)["columns"]["x"]["domain"]
    assert code == 0 and low <= min(map(float, cells)) and high >= max(map(float, cells))


@pytest.mark.parametrize("kind", ["numeric", "categorical", "ordinal"])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", "1" + "0" * 400, "9" * 5000])
@pytest.mark.parametrize("place", ["domain", "levels", "favourable"])
def test_a_number_that_is_none_is_refused_in_one_line(kind, number, place, run, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    top = f"favourable = [{number}]\n" if place == "favourable" else ""
    entry = "" if place == "favourable" else f"{place} = [0, {number}]\n"
    (tmp_path / "s.toml").write_text(
        f'version = 1\n{top}[columns.x]\ntype = "{kind}"\nrole = "quasi"\n{entry}[columns.y]\nrole = "target"\n'
    )
    code, _, err = run("risk", tmp_path / "a.csv", "--schema", tmp_path / "s.toml")
    assert code == 2 and err.startswith("countervail: ") and err.count("\n") == 1 and len(err) < 400
