"""countervail ledger, and commands that count in one."""

import json

import pytest

from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.ledger import Ledger
from countervail.model import save_model, train_forest
from countervail.testing import small_table

KEEP = ("--keep", "income")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("small")
    table, asked = small_table(200), small_table(6, seed=1)
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    write_frame(asked.features, place / "asked.csv")
    save_model(train_forest(table, trees=5), place / "small.skops")
    return place


@pytest.fixture
def path(run, tmp_path):
    path = tmp_path / "people.ledger"
    code, out, err = run("ledger", "create", path, "--dataset", "customers", "--epsilon", "1")
    assert code == 0 and "epsilon = 1" in out and "Answers of epsilon = 0.1: 10" in out and "confidential" in err
    return path


def explain(folder, path, *more, method="private-neighbours", dataset="customers"):
    words = ("explain", folder / "people.csv", "-s", folder / "people.toml", "-r", folder / "asked.csv")
    words = (*words, "--model", folder / "small.skops")
    return (*words, "--method", method, "--ledger", path, "--dataset", dataset, *more)


def test_a_budget_is_shown_spent_and_gone(run, folder, path, tmp_path):
    out = tmp_path / "answers.json"
    code, _, err = run(*explain(folder, path, "--epsilon", "0.1", "-o", out))
    assert code == 0 and "within epsilon = 1" in err
    assert json.loads(out.read_text())["guarantee"]["budget"]["dataset"] == "customers"
    spent = Ledger.open(path, None).statement().entries
    assert 1 <= spent <= 6
    again = tmp_path / "again.json"
    run(*explain(folder, path, "--epsilon", "0.1", "-o", again))
    assert json.loads(again.read_text())["counterfactuals"] == json.loads(out.read_text())["counterfactuals"]
    assert Ledger.open(path, None).statement().entries == spent
    code, said, _ = run("ledger", "show", path, "--check")
    assert code == 0 and f"{spent * 10}.0% spent" in said and "Every seal and every sum is right" in said
    code, _, err = run(*explain(folder, path, "--epsilon", "0.9"))
    assert code == 2 and "would exceed the budget of 'customers'" in err


def test_show_speaks_json(run, path):
    code, out, _ = run("ledger", "show", path, "--json")
    found = json.loads(out)
    assert code == 0 and found["counters"][0] == {"name": "epsilon", "spent": 0.0, "allowed": 1.0}


@pytest.mark.parametrize("ending", [".html", ".csv", ".json"])
def test_history_has_a_picture_and_no_value(run, folder, path, tmp_path, ending):
    run(*explain(folder, path, "--epsilon", "0.1"))
    out = tmp_path / f"history{ending}"
    code, _, _ = run("ledger", "history", path, "-o", out)
    text = out.read_text()
    assert code == 0 and "private-neighbours" in text
    assert Ledger.open(path, None).history()[0].request in text
    if ending == ".html":
        assert "<svg" in text and "the budget" in text
    else:
        assert not any(name in text for name in ("income", "age", "city"))
    code, said, _ = run("ledger", "history", path, "--last", "1")
    assert code == 0 and "an answer" in said
    code, said, _ = run("ledger", "history", path, "--json")
    assert len(json.loads(said)) == len(Ledger.open(path, None).history())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "4", "--delta", "1e-6"], "rho 0.311065"),
        (["--epsilon", "4", "--delta", "1e-6", "--plan", "0.1"], "74 of 74 answers of epsilon = 0.1"),
        (["--epsilon", "4", "--delta", "1e-6", "--plan", "0.1:20,1:1"], "1 of 1 answers of epsilon = 1"),
        (["--rho", "0.5"], "rho = 0.5 of zCDP"),
    ],
    ids=range(4),
)
def test_all_kinds_of_budgets_can_be_created(run, tmp_path, words, said):
    code, out, _ = run("ledger", "create", tmp_path / "a.ledger", "--dataset", "customers", *words)
    assert code == 0 and said in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "4", "--plan", "a:b"], "--plan must be"),
        (["--epsilon", "-1"], "--epsilon must"),
        (["--epsilon", "1", "--plan", "0.1"], "--delta must"),
    ],
    ids=range(3),
)
def test_budgets_that_make_no_sense_are_refused(run, tmp_path, words, said):
    code, _, err = run("ledger", "create", tmp_path / "a.ledger", "--dataset", "customers", *words)
    assert code == 2 and said in err and not (tmp_path / "a.ledger").exists()


def test_a_ledger_is_never_created_twice_nor_taken_for_another(run, folder, path, tmp_path):
    code, _, err = run("ledger", "create", path, "--dataset", "customers", "--epsilon", "9")
    assert code == 2 and "already" in err
    code, _, err = run(*explain(folder, path, dataset="patients"))
    assert code == 2 and "belongs to 'customers'" in err
    code, _, err = run(*explain(folder, path)[:-2])
    assert code == 2 and "--ledger needs --dataset" in err
    code, _, err = run("ledger", "show", tmp_path / "none.ledger")
    assert code == 2 and "No ledger at" in err
    code, _, err = run(*explain(folder, path, method="nice"))
    assert code == 2 and "no ledger can count that" in err


def test_tables_and_explanations_of_other_groups_are_refused(run, folder, path, tmp_path):
    words = (
        "anonymize",
        *KEEP,
        folder / "people.csv",
        "-s",
        folder / "people.toml",
        "--ledger",
        path,
    )
    code, _, _ = run(*words, "--dataset", "customers", "--k", "5", "-o", tmp_path / "a.csv")
    assert code == 0
    code, _, err = run(*words, "--dataset", "customers", "--k", "9", "-o", tmp_path / "b.csv")
    assert code == 2 and "grouped before" in err and not (tmp_path / "b.csv").exists()
    code, _, err = run(*explain(folder, path, "--k", "5", "-o", tmp_path / "e.json", method="cfk"))
    assert code == 2 and "grouped before" in err and not (tmp_path / "e.json").exists()


def test_one_of_a_kind_is_not_several(run, folder, path, tmp_path):
    given = ("anonymize", folder / "people.csv", "-s", folder / "people.toml", *KEEP, "--k", 5)
    assert run(*given, "-o", tmp_path / "p.csv", "--ledger", path, "--dataset", "customers")[0] == 0
    assert "(1 grouping): they keep their own promise" in run("ledger", "show", path)[1]
    _, _, told = run("ledger", "history", path, "-o", tmp_path / "h.html")
    page = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "1 entry written" in told and "<b>1</b>entry" in page and "<b>1</b>grouping for" in page
