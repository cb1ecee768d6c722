"""countervail rules, and anonymize --method k-common: files in, files out, errors of one line."""

import json
from xml.etree import ElementTree

import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("iris")
    table = cv.load("iris")
    write_frame(table.frame, place / "iris.csv")
    write_schema(table.schema, place / "iris.toml")
    return place


def asked(folder, *words):
    return ("rules", folder / "iris.csv", "--schema", folder / "iris.toml", *words)


def test_rules_are_printed_with_their_promise(run, folder):
    code, out, err = run(*asked(folder, "--k", 10))
    lines = out.splitlines()
    assert code == 0 and all(line.startswith("If ") and line.endswith(" rows)") for line in lines)
    assert all(int(line.rsplit("(", 1)[1].split()[0]) >= 10 for line in lines)
    assert "10-commonality" in err and "every rule fits at least 10 people" in err


def test_rules_are_written_in_every_format(run, folder, tmp_path):
    expected = cv.LERS(k=5).fit(cv.load("iris")).to_frame()
    for ending in ("csv", "json", "txt", "html", "parquet"):
        code, _, err = run(*asked(folder, "-o", tmp_path / f"r.{ending}"))
        assert code == 0 and f"{len(expected)} rules written" in err
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "r.csv"), expected)
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["guarantee"] == {"promise": "KCommonality", "k": 5, "of": "rule", "against": "register"}
    assert [r["support"] for r in data["rules"]] == expected["support"].tolist()
    page = (tmp_path / "r.html").read_text()
    picture = page[page.index("<svg") : page.index("</svg>") + 6]
    assert ElementTree.fromstring(picture) is not None
    assert "people who support the rule" in picture and "setosa" in picture


def test_rules_speak_json(run, folder):
    code, out, _ = run(*asked(folder, "--json"))
    data = json.loads(out)
    assert code == 0 and data["target"] == "species" and all(r["support"] >= 5 for r in data["rules"])


def test_no_rule_is_said_plainly(run, folder):
    code, out, _ = run(*asked(folder, "--k", 100, "--max-union", 1))
    assert code == 0 and "No rule has 100 supporters" in out


def test_a_pattern_table_is_written(run, folder, tmp_path):
    words = ("anonymize", folder / "iris.csv", "-s", folder / "iris.toml", "--method", "k-common", "--k", 5)
    code, out, _ = run(*words, "-o", tmp_path / "p.csv")
    assert code == 0 and "Promise: 5-commonality" in out and "rows are in none of them" in out
    assert list(pd.read_csv(tmp_path / "p.csv").columns) == [*cv.load("iris").schema.names()]
    code, out, _ = run(*words, "-o", tmp_path / "p.csv", "--json")
    assert code == 0 and json.loads(out)["least_supporters"] >= 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rules", "--k", 1000), "at most the number of rows, 150"),
        (("rules", "-o", "r.xlsx"), "must end in one of"),
        (("anonymize", "--method", "k-common", "--t", 0.2, "-o", "p.csv"), "does not take --t"),
        (("anonymize", "--method", "k-common", "--k", 1, "-o", "p.csv"), "--k must"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, folder, words, message):
    command, *rest = words
    code, _, err = run(command, folder / "iris.csv", "-s", folder / "iris.toml", *rest)
    assert code == 2 and message in err and "Traceback" not in err
