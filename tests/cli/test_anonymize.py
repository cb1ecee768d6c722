"""countervail anonymize and countervail check: the whole way on German credit."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import read_frame, write_frame
from countervail.core.files.schema_file import write_schema

KEEP = ("--keep", "credit_amount")


@pytest.fixture
def people(tmp_path):
    """German credit as files, with an identifier."""
    table = cv.load("german_credit")
    frame = table.frame.assign(name=[f"person-{i}" for i in range(len(table))])
    columns = (*table.schema.columns, cv.Column("name", role="identifier"))
    schema = cv.Schema(columns, table.schema.favourable).with_column("purpose", role="sensitive")
    write_frame(frame, tmp_path / "people.csv")
    write_schema(schema, tmp_path / "people.toml")
    return tmp_path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_what_anonymize_writes_check_confirms(run, people, ending):
    out = people / f"public{ending}"
    given = (people / "people.csv", "--schema", people / "people.toml", "--k", 10, "--l", 3)
    code, text, _ = run("anonymize", *KEEP, *given, "-o", out)
    assert code == 0
    assert "10-anonymity and distinct 3-diversity of 'purpose' against someone who holds a register" in text
    assert "name" not in read_frame(out).columns
    code, text, _ = run("check", out, "--schema", people / "people.toml", "--k", 10, "--l", 3)
    assert code == 0
    assert "keeps what was asked" in text


def test_both_numbers_of_recursive_diversity_are_taken_and_confirmed(run, people):
    asked = ("--k", 5, "--l", 2, "--c", 4, "--diversity", "recursive")
    files = ("--schema", people / "people.toml")
    code, text, _ = run("anonymize", *KEEP, people / "people.csv", *files, *asked, "-o", people / "public.csv")
    assert code == 0
    assert "recursive (4, 2)-diversity of 'purpose'" in text
    assert run("check", people / "public.csv", *files, *asked)[0] == 0


def test_l_without_a_sensitive_column_says_how_to_name_one(run, people):
    schema = (people / "people.toml").read_text(encoding="utf-8").replace('"sensitive"', '"attribute"')
    (people / "people.toml").write_text(schema, encoding="utf-8")
    given = (people / "people.csv", "--schema", people / "people.toml", "-o", people / "public.csv")
    code, _, err = run("anonymize", *KEEP, *given, "--l", 2)
    assert code == 2
    assert "Name one with --sensitive." in err
    assert run("anonymize", *KEEP, *given, "--l", 2, "--sensitive", "purpose")[0] == 0


def test_check_finds_what_is_broken_and_names_nobody(run, people):
    code, text, errors = run("check", people / "people.csv", "--schema", people / "people.toml", "--k", 5)
    assert code == 1
    assert "BROKEN" in text
    assert "Identifiers are in the file: name." in errors
    assert "person-" not in text + errors


def test_check_answers_in_json(run, people):
    out = people / "public.csv"
    run(
        "anonymize",
        "--keep",
        "credit_amount",
        people / "people.csv",
        "--schema",
        people / "people.toml",
        "--k",
        5,
        "-o",
        out,
    )
    words = ("check", out, "--schema", people / "people.toml", "--k", 6, "--l", 2, "--t", 0.1, "--json")
    code, text, _ = run(*words)
    found = json.loads(text)
    assert code == 1
    assert found["holds"] is False
    assert set(found["verdicts"][0]) >= {"claim", "holds", "reached", "failing_classes", "failing_rows"}
    assert found["verdicts"][0]["reached"] == 5


def test_check_of_another_tools_file(run, people, tmp_path):
    frame = pd.DataFrame({"age": ["[20, 30)"] * 3 + ["*"] * 2, "job": ["x"] * 5})
    write_frame(frame, tmp_path / "theirs.csv")
    schema = cv.Schema((cv.Column("age", "numeric", "quasi"), cv.Column("job", role="quasi")))
    write_schema(schema, tmp_path / "theirs.toml")
    assert run("check", tmp_path / "theirs.csv", "--schema", tmp_path / "theirs.toml", "--k", 2)[0] == 0
    assert run("check", tmp_path / "theirs.csv", "--schema", tmp_path / "theirs.toml", "--k", 3)[0] == 1


def test_a_report_shows_every_column_before_and_after(run, people):
    page = people / "page.html"
    given = (people / "people.csv", "--schema", people / "people.toml", "-o", people / "public.csv")
    code, text, _ = run("anonymize", *KEEP, *given, "--report", page, "--json")
    assert code == 0
    found = json.loads(text)
    assert found["smallest"] >= 10
    assert found["guarantee"] == {"promise": "KAnonymity", "k": 10, "against": "algorithm"}
    html = page.read_text(encoding="utf-8")
    quasi = cv.load("german_credit").schema.names("quasi")
    assert html.count("<svg") == len(quasi)
    assert found["promise"].split(" against ")[0] in html
    assert "person-" not in html


def test_hierarchies_and_classes(run, people):
    folder = people / "trees"
    folder.mkdir()
    values = cv.load("german_credit").frame["housing"].dropna().unique()
    (folder / "housing.csv").write_text("\n".join(f"{v};*" for v in values), encoding="utf-8")
    given = (people / "people.csv", "--schema", people / "people.toml", "-o", people / "public.csv")
    code, _, _ = run("anonymize", *KEEP, *given, "--hierarchies", folder, "--labels", "hierarchy", "--by-class")
    assert code == 0
    assert run("check", people / "public.csv", "--schema", people / "people.toml")[0] == 0


def test_classes_that_give_a_sensitive_value_away_are_counted_and_said(run, tmp_path):
    ages = [20, 21, 22, 60, 61, 62] * 2
    frame = pd.DataFrame({"age": ages, "illness": ["a" if a < 30 else "bcd"[a - 60] for a in ages]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    schema = [cv.Column("age", "numeric", "quasi"), cv.Column("illness", role="sensitive")]
    write_schema(cv.Schema(tuple(schema)), tmp_path / "p.toml")
    given = ("anonymize", tmp_path / "p.csv", "-s", tmp_path / "p.toml", "--k", 6, "-o", tmp_path / "public.csv")
    given = (*given, "--rows-are-people")  # everybody has a twin here
    assert "In 1 of 2 classes everybody has the same 'illness'" in run(*given)[2]
    _, out, _ = run(*given, "--json")
    assert any("everybody has the same 'illness'" in text for text in json.loads(out)["notes"])
    assert "everybody has" not in run(*given, "--l", 2)[2]


def test_groups_of_many_values_name_the_classes_unless_sets_are_asked_for(run, tmp_path):
    days = pd.date_range("1950-01-01", periods=90, freq="150D").strftime("%d.%m.%Y")
    pd.DataFrame({"birth": days, "sex": ["f", "m"] * 45, "ill": ["a", "b", "c"] * 30}).to_csv(
        tmp_path / "p.csv", index=False
    )
    run("schema", tmp_path / "p.csv", "-o", tmp_path / "p.toml")
    (tmp_path / "trees").mkdir()
    run("hierarchy", tmp_path / "p.csv", "birth", "-o", tmp_path / "trees" / "birth.csv")
    given = ("anonymize", tmp_path / "p.csv", "-s", tmp_path / "p.toml", "--k", 3, "--hierarchies", tmp_path / "trees")
    code, _, err = run(*given, "-o", tmp_path / "public.csv")
    assert code == 0 and "sets of 'birth' would list people's own values" in err
    shown = pd.read_csv(tmp_path / "public.csv")["birth"].astype(str)
    assert (
        not shown.str.contains("{", regex=False).any() and shown.isin(["*", *(f"{y}0s" for y in range(195, 199))]).any()
    )
    code, _, err = run(*given, "--labels", "tight", "-o", tmp_path / "public.csv")
    assert code == 0 and "--labels hierarchy publishes its groups" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("anonymize", *KEEP, "--k", 5000, "-o", "public.csv"), "at most the number of rows, 1000"),
        (("anonymize", *KEEP, "--l", 900, "-o", "public.csv"), "--l must"),
        (("anonymize", *KEEP, "--t", 2, "-o", "public.csv"), "--t must"),
        (("anonymize", *KEEP, "-o", "public.docx"), "must end in one of"),
        (("anonymize", *KEEP, "-o", "public.csv", "--report", "page.pdf"), "'page.pdf' must end in .html"),
        (("anonymize", *KEEP, "--hierarchies", "nowhere", "-o", "public.csv"), "No folder"),
        (("check", "--t", 2), "--t must"),
        (("check", "--l", 2, "--sensitive", "age"), "neither identifier nor quasi-identifier"),
        (("check", "--t", 0.5, "--closeness", "hierarchical"), "needs --hierarchies"),
    ],
)
def test_errors_are_one_line_with_exit_code_two(run, people, monkeypatch, words, message):
    monkeypatch.chdir(people)
    code, out, err = run(words[0], "people.csv", "--schema", "people.toml", *words[1:])
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not out
    assert not (people / "public.csv").exists()


def test_a_column_of_which_nothing_is_left_is_named(run, tmp_path):
    """Postcodes that no class of fifty shares become `*` for everybody; whoever reads the release is told."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": [f"{i:05}" for i in rng.permutation(100)], "sex": ["f", "m"] * 50})
    frame.to_csv(tmp_path / "d.csv", index=False)
    table = cv.Table.from_frame(frame, quasi_identifiers=["code", "sex"])
    write_schema(table.schema, tmp_path / "s.toml")
    asked = ("anonymize", tmp_path / "d.csv", "-s", tmp_path / "s.toml", "-o", tmp_path / "p.csv", "--json")
    said = json.loads(run(*asked, "--k", 50)[1])
    assert any("Nothing is left of code: every row says the same" in n for n in said["notes"])
    said = json.loads(run(*asked, "--k", 5)[1])
    assert not any("Nothing is left" in n for n in said["notes"])


@pytest.fixture
def odd(tmp_path):
    """People with a column whose name a shell would part, and one of very many labels."""
    rows = 90
    frame = pd.DataFrame(
        {
            "zip": [f"{10_000 + 7 * i}" for i in range(rows)],
            "age": [20 + i % 9 for i in range(rows)],
            "Gehalt (€)": [1000.5 + 13 * i for i in range(rows)],
            "ok": [("no", "yes")[i % 9 > 4] for i in range(rows)],
        }
    )
    ages = cv.Column("age", "numeric", "quasi", domain=(0, 120))
    codes = cv.Column("zip", role="quasi", domain=tuple(sorted(frame["zip"])))
    pay = cv.Column("Gehalt (€)", "numeric", domain=(0, 9000))
    write_frame(frame, tmp_path / "d.csv")
    write_schema(cv.Schema((codes, ages, pay, cv.Column("ok", role="target")), ("yes",)), tmp_path / "s.toml")
    return tmp_path


def test_a_column_is_named_as_a_shell_takes_it(run, odd):
    given = ("anonymize", odd / "d.csv", "-s", odd / "s.toml", "--k", 5, "-o", odd / "p.csv")
    code, _, err = run(*given)
    assert code == 2 and err.rstrip().endswith('--keep "Gehalt (€)".')
    assert run(*given, *shlex.split('--keep "Gehalt (€)"'))[0] == 0


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (("microaggregation", "--k", 5, "--keep", "Gehalt (€)"), "'zip' has many labels, and the commonest of a group"),
        (("k-common", "--k", 5), "'zip' has many labels, and sets list them"),
        (("dp-table", "--epsilon", 1), "Not in what was written: ok."),
    ],
    ids=["microaggregation", "k-common", "dp-table"],
)
def test_what_a_method_does_to_columns_is_said_on_the_terminal_and_in_json(run, odd, method, said):
    given = ("anonymize", odd / "d.csv", "-s", odd / "s.toml", "-o", odd / "p.csv", "--method", *method)
    code, _, err = run(*given)
    assert code == 0 and said in err, err
    code, out, _ = run(*given, "--json")
    assert code == 0 and any(said in text for text in json.loads(out)["notes"])
    assert ("ok" in pd.read_csv(odd / "p.csv").columns) == (method[0] != "dp-table")


def test_equal_rows_of_a_published_file_are_told_with_a_flag_that_helps_there(run, odd):
    rows = pd.DataFrame({"zip": ["1****"] * 12, "age": ["20-28"] * 12, "ok": ["yes", "no"] * 6})
    rows.to_csv(odd / "p.csv", index=False)
    _, _, err = run("check", odd / "p.csv", "-s", odd / "s.toml", "--k", 5)
    assert "--rows-per-person" in err and "name people with --person" not in err
