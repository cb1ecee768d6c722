"""countervail explain with the private methods."""

import json

import pytest

from countervail.cli.shared.epsilon import meaning
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.core.guarantee import DifferentialPrivacy, NoGuarantee
from countervail.registry import explanation_protectors, takers
from countervail.testing import small_table

PRIVATE = takers(explanation_protectors(), "epsilon")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("small")
    table, asked = small_table(200), small_table(6, seed=1)
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    write_frame(asked.features, place / "asked.csv")
    bare = small_table(200, domains=False)
    write_schema(bare.schema, place / "bare.toml")
    return place


def words(folder, method, *more, schema="people.toml"):
    return ("explain", folder / "people.csv", "--schema", folder / schema, "--method", method, *more)


@pytest.mark.parametrize("method", PRIVATE)
def test_every_private_method_answers_and_says_what_it_costs(run, folder, tmp_path, method):
    out = tmp_path / "answers.json"
    code, _, err = run(*words(folder, method, "--rows", folder / "asked.csv", "--epsilon", "1", "-o", out))
    assert code == 0 and "given a public model" in err
    assert "has seen the data" in err
    data = json.loads(out.read_text())
    assert data["guarantee"]["promise"] == "DifferentialPrivacy" and data["guarantee"]["epsilon"] == 1.0
    if method in ("private-neighbours", "noisy-counterfactual"):
        assert "Over 100 queries epsilon adds up to 100 (to 83.5" in err and "Over 1,000 queries" in err
        assert "no protection to speak of" in err
    else:
        assert "100 or 1,000 queries cost nothing more" in err


def test_a_private_model_is_trained_and_counted(run, folder, tmp_path):
    out, more = tmp_path / "a.json", ("--rows", folder / "asked.csv", "--epsilon", "1", "--model-epsilon", "2")
    book = tmp_path / "people.ledger"
    run("ledger", "create", book, "--dataset", "people", "--epsilon", 9, "--delta", 1e-5, "--adjacency", "add-remove")
    counted = ("--ledger", book, "--dataset", "people")
    code, _, err = run(*words(folder, "private-synthetic", *more, *counted, "-o", out))
    assert code == 0 and "given a private model" in err and "epsilon = 3, delta = 2e-06 in all" in err
    assert "has seen the data" not in err and "forest" not in err
    promise = json.loads(out.read_text())["guarantee"]
    assert (promise["given"], promise["model_epsilon"]) == ("private model", 2.0)
    assert run("ledger", "history", book)[1].count("private-") == 2
    code, _, err = run(*words(folder, "cfk", "--rows", folder / "asked.csv", "--model-epsilon", "2"))
    assert code == 2 and "--model-epsilon trains a model in the place of --model" in err


def test_the_people_of_the_data_are_not_explained_privately(run, folder):
    code, _, err = run(*words(folder, "private-neighbours"))
    assert code == 2 and "need --rows" in err


def test_domains_must_be_declared(run, folder):
    more = ("--rows", folder / "asked.csv")
    code, _, err = run(*words(folder, "private-neighbours", *more, schema="bare.toml"))
    assert code == 2 and "adds noise over public domains" in err


def test_a_bad_budget_is_one_line(run, folder):
    code, _, err = run(*words(folder, "dp-table", "--rows", folder / "asked.csv", "--epsilon", "0"))
    assert code == 2 and "--epsilon must" in err


def test_a_delta_is_asked_for_and_told(run, folder, tmp_path):
    out, more = tmp_path / "a.json", ("--rows", folder / "asked.csv", "--epsilon", "2", "--delta", "1e-5")
    code, _, err = run(*words(folder, "private-synthetic", *more, "--reward", "typical", "-o", out))
    assert code == 0 and "delta = 1e-05" in err and "finds at most" in err
    assert json.loads(out.read_text())["guarantee"]["delta"] == 1e-5
    page = tmp_path / "a.html"
    assert run(*words(folder, "private-synthetic", *more, "-o", page))[0] == 0
    assert "given a public model" in page.read_text() and "finds at most" in page.read_text()
    code, _, err = run(*words(folder, "private-histograms", *more))
    assert code == 2 and "--delta (that is for private-synthetic)" in err


def test_small_budgets_are_said_to_protect():
    lines = meaning(DifferentialPrivacy(0.001))
    assert "strong protection" in lines[1] and "times as likely" in lines[0]
    assert "some protection" in meaning(DifferentialPrivacy(0.1))[1]
    assert meaning(NoGuarantee("x")) == []


def test_what_a_model_tells_is_left_aside_in_words():
    public, private = DifferentialPrivacy(0.1), DifferentialPrivacy(0.1, given="private model", model_epsilon=1.0)
    assert all("the model itself tells left aside" in meaning(p)[0] for p in (public, private))
    once = DifferentialPrivacy(0.1, None, given="private model", model_epsilon=1.0)
    assert not any("aside" in line for line in meaning(once))
    assert not any("aside" in line for line in meaning(DifferentialPrivacy(0.1, None, given="no model")))
