"""From a file to letters: identifiers, languages, letters and warnings on the command line."""

import json
import re

import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.frames import read_frame, write_frame
from countervail.core.files.schema_file import write_schema
from countervail.model import save_model, train_forest
from countervail.testing import small_table


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A small table as a user has it; the people who ask have numbers with leading zeros."""
    folder = tmp_path_factory.mktemp("people")
    table, asked = small_table(), small_table(6, seed=1).features
    write_frame(table.frame, folder / "people.csv")
    write_schema(table.schema, folder / "people.toml")
    save_model(train_forest(table, trees=5), folder / "model.skops")
    numbers = pd.Series([f"00{i}" for i in range(6)], name="application_id")
    write_frame(pd.concat([numbers, asked], axis=1), folder / "asked.csv")
    write_frame(asked, folder / "plain.csv")
    hole = pd.concat([numbers.mask(numbers == "003"), asked], axis=1)
    write_frame(hole, folder / "hole.csv")
    return folder


def words(place, *more, rows="asked.csv"):
    given = () if rows is None else ("--rows", place / rows)
    model = ("--model", place / "model.skops")
    return ["explain", place / "people.csv", "--schema", place / "people.toml", *model, *given, "--k", 5, *more]


def test_identifiers_come_back_in_every_file(run, place, tmp_path):
    ids = [f"00{i}" for i in range(6)]
    for ending in (".csv", ".parquet", ".json", ".txt", ".html"):
        path = tmp_path / f"answers{ending}"
        code, _, err = run(*words(place, "--id", "application_id", "-o", path))
        assert code == 0, err
        if ending in (".csv", ".parquet"):
            assert read_frame(path)["application_id"].tolist() == ids
        elif ending == ".json":
            assert [p["id"] for p in json.loads(path.read_text())["people"]] == ids
        elif ending == ".txt":
            assert re.findall(r"(?m)^(00\d): ", path.read_text()) == ids
        else:
            assert all(f"<blockquote>{i}: " in path.read_text() for i in ids)


def test_answers_with_and_without_identifiers_are_the_same(run, place):
    _, named, _ = run(*words(place, "--id", "application_id"))
    code, plain, _ = run(*words(place, rows="plain.csv"))
    assert code == 0 and re.sub(r"(?m)^00\d: ", "", named) == plain


def test_people_of_the_data_are_named_by_its_own_identifier(run, place):
    code, out, _ = run(*words(place, "--id", "id", rows=None))
    assert code == 0 and all(re.match(r"person-\d+: ", line) for line in out.splitlines() if line[:2] != "  ")


@pytest.mark.parametrize("language", ["de", "fr", "nl"])
def test_sentences_come_in_the_language_that_was_asked_for(run, place, language):
    code, out, _ = run(*words(place, "--language", language, rows="plain.csv"))
    first = {"de": "Wenn ", "fr": "Si ", "nl": "Als "}[language]
    assert code == 0 and first in out and "If " not in out


def test_letters_lie_in_a_folder_of_their_own_for_their_owner_only(run, place, tmp_path):
    given = ("--letters", tmp_path / "post", "--sender", "The Bank")
    code, out, err = run(*words(place, "--id", "application_id", *given))
    assert code == 0 and out == "" and "6 letters written to" in err
    files = sorted((tmp_path / "post").iterdir())
    assert [f.name for f in files] == [f"000{i + 1}-00{i}.txt" for i in range(6)]
    assert all(f.stat().st_mode & 0o077 == 0 for f in [*files, tmp_path / "post"])
    for i, file in enumerate(files):
        text = file.read_text()
        assert f"Your reference: 00{i}\n" in text and text.startswith("The Bank\n") and "Confidential" in text
        assert not any(f"00{j}" in text.replace(",00", "") for j in range(6) if j != i)
    code, _, err = run(*words(place, "--letters", tmp_path / "post"))
    assert code == 2 and "must name a new or an empty folder" in err


def test_a_template_of_ones_own_makes_the_letters(run, place, tmp_path):
    (tmp_path / "own.html.j2").write_text("<b>{{ id }}</b> {{ decision }}")
    given = ("--letters", tmp_path / "post", "--letter-template", tmp_path / "own.html.j2", "--language", "de")
    assert run(*words(place, "--id", "application_id", *given))[0] == 0
    assert (tmp_path / "post" / "0001-000.html").read_text().startswith("<b>000</b> Sie haben nach")


def test_changes_are_a_table(run, place, tmp_path):
    code, out, err = run(*words(place, "--id", "application_id", "--changes", tmp_path / "changes.csv"))
    assert code == 0 and out == "" and "Their changes written" in err
    table = read_frame(tmp_path / "changes.csv")
    assert list(table) == ["application_id", "answer", "feature", "what", "now", "instead", "decision"]
    assert len(table) > 0 and set(table["feature"]) <= set(small_table().schema.features)


def test_whatever_is_printed_as_a_warning_is_in_the_json_and_on_the_page(run, place, tmp_path):
    for ending in (".json", ".html"):
        given = words(place, "-o", tmp_path / f"a{ending}", rows="plain.csv")
        code, _, err = run(*[w for w in given if w not in ("--model", place / "model.skops")])
        assert code == 0 and "Who hides with whom was not kept" in err and "No --model given" in err
    caveats = json.loads((tmp_path / "a.json").read_text())["caveats"]
    page = (tmp_path / "a.html").read_text()
    for start in ("Who hides with whom was not kept", "No --model given", "The forest itself has seen the data"):
        assert any(c.startswith(start) for c in caveats) and start in page
        assert err.count(start) == 1
    assert all(c in " ".join(err.split()) for c in caveats) and len(caveats) == len(set(caveats)) == 4
    code, out, _ = run(*words(place, "--json", rows="plain.csv"))
    with_a_model = [c for c in caveats if not c.startswith(("No --model", "The forest"))]
    assert code == 0 and json.loads(out)["caveats"] == with_a_model


def test_a_column_of_names_that_points_at_people_is_warned_of_everywhere(run, tmp_path):
    frame = small_table().frame.assign(note=[f"n{i}" for i in range(len(small_table()))])
    schema = small_table().schema
    write_frame(frame, tmp_path / "people.csv")
    write_schema(cv.Schema((*schema.columns, cv.Column("note")), schema.favourable), tmp_path / "people.toml")
    given = ("explain", tmp_path / "people.csv", "--schema", tmp_path / "people.toml", "--method", "nice")
    code, _, err = run(*given, "-o", tmp_path / "a.json")
    note = "Note: many people have a value of their own in note."
    assert code == 0 and note in err and note in (tmp_path / "a.json").read_text()


ERRORS = {
    "no such column": (("--id", "number"), "asked.csv", "--id must name a column of asked.csv"),
    "a feature": (("--id", "age"), "asked.csv", "neither explained nor the target"),
    "a hole": (("--id", "application_id"), "hole.csv", "where 1 of the people in hole.csv have no value"),
    "not of the data": (("--id", "application_id"), None, "has the role 'identifier' in the schema"),
    "a language": (("--language", "it"), "plain.csv", "one of de, en, fr, nl. Got 'it'"),
    "no letters": (("--sender", "x"), "plain.csv", "need --letters"),
    "no folder": (("--letters", "no/such/post"), "plain.csv", "Create it first"),
    "a file": (("--letters", "FILE"), "plain.csv", "must name a new or an empty folder"),
    "a promise": (("--letters", "post", "--method", "nice"), "plain.csv", "no letter may hold its answers"),
    "a template": (("--letters", "post", "--letter-template", "none.j2"), "plain.csv", "No letter template at"),
    "an ending": (("--changes", "changes.txt"), "plain.csv", "must end in one of .csv"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_done_is_said_before_anything_is_written(name, run, place, tmp_path, monkeypatch):
    more, rows, message = ERRORS[name]
    monkeypatch.chdir(tmp_path)
    given = [place / "asked.csv" if w == "FILE" else w for w in more]
    base = words(place, *given, rows=rows)
    code, out, err = run(*([w for w in base if w not in ("--k", 5)] if "nice" in more else base))
    assert code == 2 and out == "" and message in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_schema_without_a_target_is_named_as_what_is_missing(run, place, tmp_path):
    schema = small_table().schema
    columns = [cv.Column(c.name, c.type, "attribute") if c.role == "target" else c for c in schema.columns]
    write_schema(type(schema)(tuple(columns)), tmp_path / "people.toml")
    given = ("explain", place / "people.csv", "--schema", tmp_path / "people.toml", "--rows", place / "plain.csv")
    code, _, err = run(*given)
    assert code == 2 and "role 'target'" in err and "--target COLUMN --favourable VALUE" in err and "lack" not in err
