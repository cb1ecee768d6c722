"""countervail dit: several k and l, HTML and JSON, no row anywhere."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from countervail.cli import app
from countervail.core.errors import ParameterError

SCHEMA = """
version = 1
[columns.id]
role = "identifier"
[columns.age]
type = "numeric"
role = "quasi"
[columns.city]
role = "quasi"
[columns.ill]
role = "sensitive"
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "id": [f"secret-{i}" for i in range(n)],
            "age": rng.integers(20, 50, n),
            "city": rng.choice(["Ghent", "Bruges", "Ostend"], n),
            "ill": rng.choice(["flu", "cold", "none"], n),
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def run(folder, *arguments):
    common = ["dit", str(folder / "people.csv"), "--schema", str(folder / "people.toml")]
    return CliRunner().invoke(app, [*common, *arguments], catch_exceptions=True)


def test_a_prior_is_read_from_a_file(files):
    (files / "prior.csv").write_text("value,weight\nflu,8\ncold,1\nnone,1\n")
    means = {}
    for name, more in {"plain": [], "prior": ["--prior", str(files / "prior.csv")]}.items():
        result = run(files, "--k", "5", "--json", *more)
        assert result.exit_code == 0, result.output
        means[name] = result.stdout
    assert means["plain"] != means["prior"] and "know a prior" in means["prior"]
    for text, message in (("flu", "with a header"), ("value,weight\nplague,1\n", "the sensitive column has")):
        (files / "prior.csv").write_text(text)
        result = run(files, "--k", "5", "--prior", str(files / "prior.csv"))
        assert (
            result.exit_code != 0 and isinstance(result.exception, ParameterError) and message in str(result.exception)
        )


def test_several_k_and_l_side_by_side(files):
    html, data = files / "report.html", files / "report.json"
    done = run(
        files, "--k", "2,5", "--l", "1.5", "--method", "published-basic-mondrian", "-o", str(html), "-o", str(data)
    )
    assert done.exit_code == 0, done.output
    assert "k=2" in done.output
    assert "l=1.5" in done.output
    assert "DecisionTree" in done.output
    found = json.loads(data.read_text())
    assert list(found["tests"]) == ["k=2", "k=5", "l=1.5"]
    one = found["tests"]["k=5"]
    assert one["tested"] == one["people"] == 90
    assert one["path"] == "fast"
    assert set(one["beside"]) == {"identity", "second learner", "identity, second learner"}
    page = html.read_text()
    assert "No promise" in page
    assert "<svg" in page
    assert "secret-" not in page + data.read_text()


@pytest.mark.parametrize(("encoding", "path"), [("tf-tf", "fast"), ("bounds-hot", "general")])
def test_people_are_drawn_at_random_where_that_is_asked_for(files, encoding, path):
    drawn = ("--records", "8", "--cells", encoding)
    done = run(files, "--k", "4", *drawn, "--json", "--method", "mondrian", "--sensitive", "ill")
    assert done.exit_code == 0, done.output
    one = json.loads(done.stdout)["tests"]["k=4"]
    assert (one["tested"], one["people"], one["path"]) == (8, 90, path)


def test_our_own_mondrian_is_tested_on_everybody(files):
    done = run(files, "--k", "4", "--json", "--sensitive", "ill")
    one = json.loads(done.stdout)["tests"]["k=4"]
    assert (one["tested"], one["people"], one["path"]) == (90, 90, "fast")


def test_recursive_diversity_has_its_c(files):
    done = run(files, "--l", "2", "--diversity", "recursive", "--method", "published-basic-mondrian", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tests"]["l=2"]["path"] == "fast"


def test_a_run_can_be_resumed(files):
    file = files / "kept.json"
    words = ("--k", "4", "--records", "5", "--cells", "bounds-hot", "--json", "--resume", str(file))
    first, again = run(files, *words), run(files, *words)
    assert first.exit_code == again.exit_code == 0
    assert (files / "kept-0.json").is_file()
    assert json.loads(first.stdout) == json.loads(again.stdout)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--k", "two"], "--k takes numbers"),
        (["--k", "2.5"], "whole numbers"),
        (["--k", "5", "--sensitive", "age"], "neither identifier"),
        (["--k", "5", "--cells", "hot"], "'encoding'"),
        (["--k", "500"], "at most the number of rows"),
        (["-o", "report.txt"], "must end in"),
    ],
    ids=["text", "fraction", "sensitive", "encoding", "too large", "ending"],
)
def test_what_cannot_be_done_is_said(files, arguments, says):
    done = run(files, *arguments)
    assert done.exit_code != 0
    assert isinstance(done.exception, ParameterError)
    assert says in str(done.exception)


def test_the_help_has_an_example():
    shown = CliRunner().invoke(app, ["dit", "--help"])
    assert "Example" in shown.output


def test_learner_distance_and_ground_are_chosen_on_the_command_line(files):
    (files / "ill.csv").write_text("flu;ill;*\ncold;ill;*\nnone;well;*\n", encoding="utf-8")
    data = files / "report.json"
    few = ("--k", "5", "--records", "3", "-o", str(data))
    done = run(files, *few, "--learner", "logistic", "--ground", str(files / "ill.csv"))
    assert done.exit_code == 0, done.output
    told = json.loads(data.read_text())["tests"]["k=5"]
    assert "Logistic" in told["learner"] and told["distance"] == "emd, path lengths in a hierarchy"
    done = run(files, *few, "--distance", "max_divergence", "--learner", "tree")
    told = json.loads(data.read_text())["tests"]["k=5"]
    assert done.exit_code == 0 and "DecisionTree" in told["learner"] and told["distance"] == "max_divergence"
    half, quarter = (run(files, "--k", "5", "--json", "--scale", s) for s in ("half", "quarter"))
    means = [json.loads(r.stdout)["tests"]["k=5"]["mean"]["value"] for r in (half, quarter)]
    assert means[0] == pytest.approx(2 * means[1], rel=0.1)  # told to two digits


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ground", "far"), "--ground must be 'equal', 'ordered' or a hierarchy in a .csv file. Got 'far' instead."),
        (("--ground", "ordered", "--distance", "kl"), "--ground is for --distance emd"),
        (("--scale", "quarter", "--ground", "ordered"), "--scale quarter is for --distance emd with --ground equal"),
    ],
)
def test_what_does_not_go_together_is_refused(files, words, message):
    done = run(files, *words)
    assert isinstance(done.exception, ParameterError) and message in str(done.exception)


def test_several_rows_of_one_person_are_said_everywhere(files):
    frame = pd.read_csv(files / "people.csv")
    pd.concat([frame, frame.head(20)]).to_csv(files / "people.csv", index=False)
    page = files / "report.html"
    done = run(files, "--k", "5", "--sensitive", "ill", "-o", str(page))
    assert done.exit_code == 0, done.output
    told = run(files, "--k", "5", "--sensitive", "ill", "--json").stdout
    for text in (done.output, told, page.read_text(encoding="utf-8")):
        assert "up to 2 rows, and rows are left out one at a time" in " ".join(text.split())
