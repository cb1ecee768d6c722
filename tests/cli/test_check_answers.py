"""Answers are checked against people, not as a table; a ledger says what its epsilon does not cover."""

import json
from dataclasses import replace

import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_model, small_table


@pytest.fixture
def answers(tmp_path):
    table = small_table(200)
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")

    def write(explainer):
        e = explainer.fit(table, small_model).explain(small_table(40, seed=1))
        (tmp_path / "answers.json").write_text(e.to_json(), encoding="utf-8")
        write_frame(e.to_frame().astype(str), tmp_path / "answers.csv")
        return e

    given = (tmp_path / "answers.json", "--against", tmp_path / "people.csv", "-s", tmp_path / "people.toml")
    return table, write, given, tmp_path


def test_answers_of_groups_keep_k_and_whole_neighbours_do_not(run, answers):
    table, write, given, _ = answers
    e = write(cv.CFK(k=5))
    code, out, _ = run("check", *given, "--k", 5, "--json")
    said = json.loads(out)
    assert code == 0 and said["holds"] and said["answers"] == int(e.found.sum())
    assert said["least"] == int(e.regions.count(table.frame).min()) >= 5
    code, out, _ = run("check", *given, "--k", 5)
    assert code == 0 and "keep what was asked" in out
    write(cv.NICE())
    code, out, _ = run("check", *given, "--k", 5)
    assert code == 1 and "do NOT keep what was asked" in out


def test_answers_are_about_people_not_about_their_rows(run, answers):
    """Everybody is there twice: 200 people in 400 rows, and twice k rows are k people."""
    table, write, given, folder = answers
    write(cv.CFK(k=5))
    before = json.loads(run("check", *given, "--k", 5, "--json")[1])
    rows = table.frame.assign(who=[f"K{i:04}" for i in range(len(table))])
    declared = replace(table.schema, columns=(*table.schema.columns, cv.Column("who", role="identifier")))
    write_frame(pd.concat([rows, rows]), folder / "people.csv")
    write_schema(declared, folder / "people.toml")
    code, out, _ = run("check", *given, "--k", 5, "--json")
    after = json.loads(out)
    assert code == 0 and after["people"] == 200 and after["rows"] == 400 and after["least"] == before["least"]
    assert "about 200 people (in 400 rows)" in run("check", *given, "--k", 5)[1]


def test_the_schema_that_is_given_says_what_people_are_known_by(run, answers):
    """A file that calls nothing a quasi-identifier does not get away with it."""
    _, write, given, folder = answers
    write(cv.NICE())
    data = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    for column in data["schema"]["columns"].values():
        column["role"] = "attribute" if column.get("role") == "quasi" else column.get("role", "attribute")
    (folder / "answers.json").write_text(json.dumps(data), encoding="utf-8")
    assert run("check", *given, "--k", 5)[0] == 1


def test_a_table_of_answers_is_no_table_of_people(run, answers):
    _, write, given, folder = answers
    write(cv.CFK(k=5))
    code, _, err = run("check", folder / "answers.csv", "-s", folder / "people.toml")
    assert code == 2 and "holds explanations" in err and "--against" in err
    code, _, err = run("check", folder / "answers.json", "-s", folder / "people.toml")
    assert code == 2 and "give --against" in err
    code, _, err = run("check", folder / "people.csv", *given[1:])
    assert code == 2 and "--against is for explanations" in err
    code, _, err = run("check", folder / "nobody.json", *given[1:])
    assert code == 2 and "No file of explanations" in err
    code, _, err = run("check", *given, "--l", 2)
    assert code == 2 and "--l and --t are for tables" in err


def test_nobody_answered_is_nothing_given_away(run, answers):
    _, write, given, _ = answers
    e = write(cv.CFK(k=5, ranges={"income": (0, 1)}, immutable=["level", "ill", "age", "city"]))
    assert not e.found.any()
    code, out, _ = run("check", *given, "--k", 5, "--json")
    assert code == 0 and json.loads(out)["answers"] == 0 and json.loads(out)["least"] is None


def test_a_ledger_says_that_no_epsilon_covers_k_anonymous_releases(run, tmp_path):
    ledger = cv.Ledger.create(tmp_path / "a.ledger", "people", epsilon=4)
    assert ledger.statement().promise.startswith("Everything released with this ledger about 'people' stays within")
    table = small_table(60)
    cv.Mondrian(k=5, ledger=ledger).fit(table).protect(table)
    said = ledger.statement().promise
    assert "No epsilon covers the k-anonymous releases" in said and "Everything" not in said
    assert said in run("ledger", "show", tmp_path / "a.ledger")[1]
    assert json.loads(run("ledger", "show", tmp_path / "a.ledger", "--json")[1])["promise"] == said
    assert run("ledger", "history", tmp_path / "a.ledger", "-o", tmp_path / "page.html")[0] == 0
    assert "No epsilon covers the k-anonymous releases" in (tmp_path / "page.html").read_text(encoding="utf-8")
