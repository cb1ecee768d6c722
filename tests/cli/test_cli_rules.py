"""countervail rules, and anonymize --method k-common: files in, files out, errors of one line."""

import json
from xml.etree import ElementTree

import numpy as np
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
    expected = cv.LERS(k=5, bounds="round").fit(cv.load("iris")).to_frame()
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


def test_several_rows_of_one_person_are_one_supporter(run, tmp_path):
    rng = np.random.default_rng(0)
    who, pay = np.repeat(np.arange(60), 4), rng.integers(100, 900, 240)
    frame = pd.DataFrame({"number": who, "pay": pay, "ok": np.where(pay > 400, "yes", "no")})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", identifiers=["number"])
    write_frame(table.frame, tmp_path / "t.csv")
    write_schema(table.schema, tmp_path / "t.toml")
    code, out, err = run("rules", tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--k", 5, "--json")
    rules = json.loads(out)["rules"]
    assert code == 0 and "every rule holds 20 rows, so that 5 people are in it" in err
    for rule in rules:
        low, high = (rule["if"]["pay"][side] for side in ("from", "to"))
        inside = (pay >= (-np.inf if low is None else low)) & (pay <= (np.inf if high is None else high))
        assert len(set(who[inside])) >= 5
    code, _, err = run("rules", tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--k", 61)
    assert code == 2 and "--k must be at most 60 where one person has up to 4 of 240 rows" in err


def test_no_rule_is_said_plainly(run, folder):
    code, out, _ = run(*asked(folder, "--k", 100, "--max-union", 1))
    assert code == 0 and "No rule has 100 supporters" in out


def test_a_condition_may_name_two_values(run, tmp_path):
    table = cv.load("toy_evaluation")
    write_frame(table.frame, tmp_path / "t.csv")
    write_schema(table.schema, tmp_path / "t.toml")
    words = ("rules", tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--k", 2)
    line = "If domicile is Osaka or Tokyo then evaluation is high or low. (4 rows)"
    assert line not in run(*words)[1].splitlines()
    code, out, _ = run(*words, "--max-values", 2)
    assert code == 0 and line in out.splitlines()
    code, _, err = run(*words, "--max-values", 0)
    assert code == 2 and "--max-values" in err


def test_a_pattern_table_is_written(run, folder, tmp_path):
    words = ("anonymize", folder / "iris.csv", "-s", folder / "iris.toml", "--method", "k-common", "--k", 5)
    code, out, _ = run(*words, "-o", tmp_path / "p.csv")
    assert code == 0 and "Promise: 5-commonality" in out and "rows are in none of them" in out
    assert list(pd.read_csv(tmp_path / "p.csv").columns) == [*cv.load("iris").schema.names()]
    code, out, _ = run(*words, "-o", tmp_path / "p.csv", "--json")
    assert code == 0 and json.loads(out)["least_supporters"] >= 5


def test_patterns_are_made_of_the_rules_in_a_file(run, folder, tmp_path):
    words = ("anonymize", folder / "iris.csv", "-s", folder / "iris.toml", "--method", "k-common", "--k", 5)
    assert run(*asked(folder, "--k", 5, "--exact-bounds", "-o", tmp_path / "r.json"))[0] == 0
    for name, more in {"own": (), "given": ("--rules", tmp_path / "r.json")}.items():
        assert run(*words, *more, "-o", tmp_path / f"{name}.csv")[0] == 0
    own, given = (
        sorted(map(tuple, pd.read_csv(tmp_path / f"{n}.csv").astype(str).to_numpy())) for n in ("own", "given")
    )
    assert own == given
    few = [{"if": {"petal_width": {"from": None, "to": 0.6}}, "then": ["setosa"]}]
    (tmp_path / "few.json").write_text(json.dumps(few))
    code, out, _ = run(*words, "--rules", tmp_path / "few.json", "-o", tmp_path / "p.csv")
    assert code == 0 and "100 of 150 rows are in none of them" in out
    wide = ("--undescribed", "widen", "--objects", "min", "--spread")
    code, out, _ = run(*words, "--rules", tmp_path / "few.json", *wide, "-o", tmp_path / "p.csv")
    assert code == 0 and "0 of 150 rows are in none of them" in out


def test_rules_that_do_not_fit_are_refused_in_one_line(run, folder, tmp_path):
    words = ("anonymize", folder / "iris.csv", "-s", folder / "iris.toml", "--k", 60, "-o", tmp_path / "p.csv")
    (tmp_path / "r.json").write_text(
        json.dumps([{"if": {"petal_width": {"from": None, "to": 0.6}}, "then": ["setosa"]}])
    )
    (tmp_path / "bad.json").write_text("{")
    for rules, message in (
        ("r.json", "--rules must be"),
        ("bad.json", "no JSON file of rules"),
        ("gone.json", "no file"),
    ):
        code, _, err = run(*words, "--method", "k-common", "--rules", tmp_path / rules)
        assert code == 2 and message in err and "Traceback" not in err and not (tmp_path / "p.csv").exists()
    code, _, err = run(*words, "--rules", tmp_path / "r.json")
    assert code == 2 and "--method mondrian does not take --rules (that is for k-common)" in err


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
