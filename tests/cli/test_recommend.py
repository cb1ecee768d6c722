"""countervail recommend."""

import json

import pytest

from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("small")
    table = small_table(200)
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    write_schema(small_table(200, domains=False).schema, place / "bare.toml")
    return place


def words(folder, *more, schema="people.toml"):
    few = ("--people", "6", "--runs", "2", "--seeds", "1", "--audit-draws", "200", "--store", folder / "cells")
    return ("recommend", folder / "people.csv", "--schema", folder / schema, *few, *more)


def test_a_table_and_a_sentence(run, folder):
    code, out, err = run(*words(folder, "--priority", "correctness"))
    assert code == 0 and "dp-table" in out and "published" not in out
    assert "of its answers change the decision" in " ".join(out.split()) and "Differential privacy" in err


def test_json_and_a_page(run, folder, tmp_path):
    page = tmp_path / "choice.html"
    code, out, _ = run(*words(folder, "--priority", "privacy", "--answers", "50", "--json", "-o", page))
    found = json.loads(out)
    assert code == 0 and found["recommended"]["proven"] and found["answers"] == 50
    assert "Recommendation" in page.read_text(encoding="utf-8")
    assert "person-" not in out + page.read_text(encoding="utf-8")


def test_published_ones_are_compared_only_when_asked(run, folder, tmp_path):
    out = tmp_path / "choice.json"
    code, text, _ = run(*words(folder, "--priority", "proximity", "--allow-no-guarantee", "-o", out))
    found = json.loads(out.read_text(encoding="utf-8"))
    names = {r["mechanism"] for r in found["rows"]}
    assert code == 0 and {"published-inline", "published-laplace", "private-neighbours"} <= names
    caught = {r["mechanism"]: r["audited"] for r in found["rows"]}
    assert caught["published-noisy-max"] > 1 and "published-ldp" in text


def test_what_cannot_be_done_is_said_in_one_line(run, folder, tmp_path):
    code, _, err = run(*words(folder, schema="bare.toml"))
    assert code == 2 and "domain" in err
    code, _, err = run(*words(folder, "-o", tmp_path / "choice.txt"))
    assert code == 2 and "must end in one of .json, .html" in err
    code, _, err = run(*words(folder, "--priority", "speed"))
    assert code == 2 and "speed" in err
