"""countervail reproduce: the list, one table, folders of results, and what is refused."""

import json

import pytest

from countervail.study import papers
from countervail.study.reproduce import record


@pytest.fixture
def four(run, tmp_path):
    def call(*words):
        return run("reproduce", "goethals", "4", "--quick", "--store", tmp_path / "kept", *words)

    return call


def test_the_list_has_everything_and_what_it_needs(run):
    code, out, _ = run("reproduce")
    assert code == 0
    for paper in papers().values():
        assert paper.title in out and all(e.title in out for e in paper.exhibits)
    listed = json.loads(run("reproduce", "--json")[1])
    assert {t["id"] for t in listed["goethals"]["tables"]} == {e.id for e in papers()["goethals"].exhibits}
    assert "not reproducible" in out


def test_a_table_is_shown_beside_the_papers(four):
    code, out, _ = four()
    assert code == 0 and "reported" in out and "5 as printed." in out
    found = json.loads(four("--json")[1])
    assert found["id"] == "4" and found["size"] == "quick" and len(found["lines"]) == 5
    assert {"commit", "seed", "data_sha256", "versions", "code_sha256"} <= set(found["about"])


def test_results_go_into_a_folder_and_are_never_written_over_unasked(four, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    assert four("-o", folder)[0] == 0
    written = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert set(written) == {"goethals-4-quick.json", "goethals-4-quick.svg"}
    code, _, said = four("-o", folder)
    assert code == 2 and "never written over unless --record" in said
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == written
    monkeypatch.setattr(record, "uncommitted", lambda: ["src/countervail/new.py"])
    code, _, said = four("-o", folder, "--record")
    assert code == 2 and "uncommitted changes" in said
    monkeypatch.setattr(record, "uncommitted", list)
    assert four("-o", folder, "--record")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "No paper is called 'nobody'. There are: goethals"),
        (("kassem", "99"), "Nothing of 'kassem' is called '99'. There are: fig1, fig2"),
        (("kassem", "fig1"), "cannot be reproduced: a drawing"),
    ],
)
def test_what_is_not_there_is_told_what_is(run, words, said):
    code, _, err = run("reproduce", *words)
    assert code == 2 and said in err


def test_a_file_is_no_folder(four, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    code, _, err = four("-o", tmp_path / "file")
    assert code == 2 and "--output must be a folder" in err


def test_the_help_has_an_example(run):
    assert "countervail reproduce goethals 6 --quick" in run("reproduce", "--help")[1].replace("\n", " ")
