"""The command line: the whole way on German credit, and errors of one line that name nobody."""

import json
import os
import runpy
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import countervail as cv
from countervail.cli import app
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import read_schema, write_schema
from countervail.core.schema import Schema
from countervail.model import save_model, train_forest
from countervail.testing import small_table

COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """German credit as a user has it: a file, a schema, a small saved model, and two people who ask."""
    place = tmp_path_factory.mktemp("german")
    table = cv.load("german_credit")
    write_frame(table.frame, place / "people.csv")
    write_schema(table.schema, place / "people.toml")
    labels = [n for n in table.schema.features if table.schema[n].type != "numeric"]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), labels), remainder="passthrough")
    model = make_pipeline(encode, StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))
    model.fit(table.features, table.target.astype(object))
    save_model(model, place / "model.skops")
    joblib.dump(model, place / "model.joblib")
    refused = table.features[model.predict(table.features) == "bad"]
    write_frame(refused.head(2), place / "asked.csv")
    return place


def test_from_a_file_to_a_schema_to_its_risk(run, folder, tmp_path):
    code, _, err = run("schema", folder / "people.csv", "-o", tmp_path / "s.toml", "--target", "class")
    assert code == 0 and "Read and correct it" in err
    edited = (tmp_path / "s.toml").read_text().replace("favourable = []", 'favourable = ["good"]')
    (tmp_path / "s.toml").write_text(edited)
    proposed = read_schema(tmp_path / "s.toml")
    assert proposed.target == "class" and proposed.favourable == ("good",)
    write_schema(proposed.with_roles(quasi=cv.load("german_credit").schema.names("quasi")), tmp_path / "s.toml")
    code, out, _ = run("risk", folder / "people.csv", "--schema", tmp_path / "s.toml", "--k", "10")
    # Goethals et al., "The privacy issue of counterfactual explanations", Table 5.
    assert code == 0 and "83.7% are unique" in out and "100.0% share it with fewer than 9 others" in out


def test_a_proposed_schema_is_printed_when_no_file_is_named(run, folder):
    code, out, _ = run("schema", folder / "people.csv")
    assert code == 0 and out.startswith("version = 1\n") and "[columns.age]" in out and "# numeric: " in out


def test_a_proposed_schema_says_which_decisions_people_hope_for(run, folder, tmp_path):
    named = ("schema", folder / "people.csv", "--target", "class", "--favourable")
    assert run(*named, "GOOD", "-o", tmp_path / "s.toml")[0] == 0
    assert read_schema(tmp_path / "s.toml").favourable == ("good",)
    code, _, err = run(*named, "fine")
    assert code == 2 and "--favourable must be among the labels of the target 'class'" in err


def test_schema_and_risk_speak_json(run, folder):
    code, out, _ = run("schema", folder / "people.csv", "--json")
    data = json.loads(out)
    assert code == 0 and data["columns"]["age"]["role"] == "quasi" and "age" in data["reasons"]
    code, out, _ = run("risk", folder / "people.csv", "-s", folder / "people.toml", "--json")
    data = json.loads(out)
    assert code == 0 and data["rows"] == 1000 and round(data["unique"], 3) == 0.837


def explain(folder, *more):
    return (
        "explain", folder / "people.csv", "-s", folder / "people.toml", "-m", folder / "model.skops",
        "-r", folder / "asked.csv", "--method", "nice", *more,
    )  # fmt: skip


@pytest.fixture
def named(folder, tmp_path):
    """The same people with an identifier."""
    table = cv.load("german_credit")
    numbers = [f"person {i}" for i in range(len(table))]
    write_frame(table.frame.assign(number=numbers), tmp_path / "people.csv")
    schema = Schema((*table.schema.columns, cv.Column("number", role="identifier")), table.schema.favourable)
    write_schema(schema, tmp_path / "people.toml")
    for name in ("model.skops", "asked.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def test_explanations_are_private_by_default_and_who_hides_with_whom_is_kept(run, named):
    kept = named / "people.roster.json"
    words = [w for w in explain(named, "--k", "5", "--previous", kept) if w not in ("--method", "nice")]
    code, out, err = run(*words)
    assert code == 0
    assert "5-anonymity" in err and "our code" in err
    assert "version 1" in err
    assert kept.stat().st_mode & 0o077 == 0, "a roster is confidential"
    code, again, err = run(*words)
    assert (code, again) == (0, out) and "version 2" in err
    assert "No privacy guarantee" not in err


def test_whoever_waits_for_a_group_is_not_told_by_what_nobody_has(run, tmp_path):
    # Ann is new and alone. Somebody asked with every job in turn: that "the table never had" it was not said of hers.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"number": [f"n{i}" for i in range(30)], "age": rng.integers(20, 60, 30)})
    frame["job"], frame["pay"] = rng.choice(["cook", "nurse"], 30), rng.integers(0, 10, 30)
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    columns = (
        cv.Column("number", role="identifier"),
        cv.Column("age", "numeric", "quasi"),
        cv.Column("job"),
        cv.Column("pay", "numeric"),
        cv.Column("ok", role="target"),
    )
    write_schema(Schema(columns, ("yes",)), tmp_path / "s.toml")
    save_model(train_forest(cv.Table(frame, Schema(columns, ("yes",)))), tmp_path / "m.skops")
    write_frame(pd.DataFrame({"age": [30], "job": ["pilot"], "pay": [1]}), tmp_path / "asked.csv")
    said = []
    for job in (None, "pilot", "cook"):
        ann = pd.DataFrame({"number": ["ann1"], "age": [33], "job": [job], "pay": [7], "ok": ["yes"]})
        write_frame(frame if job is None else pd.concat([frame, ann]), tmp_path / "people.csv")
        kept = tmp_path / f"{job}.json"
        if job is not None:
            kept.write_bytes((tmp_path / "None.json").read_bytes())
        words = ("-s", tmp_path / "s.toml", "-m", tmp_path / "m.skops", "-r", tmp_path / "asked.csv", "--k", 3)
        assert run("explain", tmp_path / "people.csv", *words, "--previous", kept, "-o", tmp_path / "o.json")[0] == 0
        said.append((tmp_path / "o.json").read_text())
    assert all("value in job that the table never had" in text for text in said) and said[1] == said[2]


def test_without_identifiers_nobody_is_recognised_in_a_later_run(run, folder, tmp_path):
    words = [w for w in explain(folder, "--previous", tmp_path / "r.json") if w not in ("--method", "nice")]
    code, out, err = run(*words)
    assert code == 2 and out == "" and "--previous recognises people by identifiers" in err
    assert not (tmp_path / "r.json").exists()


def test_explanations_are_sentences_with_their_promise(run, folder):
    code, out, err = run(*explain(folder))
    assert code == 0
    assert [
        line.startswith("If ") and line.endswith("your application would be approved.") for line in out.splitlines()
    ] == [True] * 2
    assert "No privacy guarantee" in err


def test_those_refused_are_explained_when_no_rows_are_given(run, folder):
    code, out, _ = run(*explain(folder)[:6], "--method", "nice", "--json")
    assert code == 0 and json.loads(out)["status"].keys() == {"found"}


@pytest.mark.parametrize("reward", ["sparsity", "proximity"])
def test_rewards_are_options(run, folder, reward):
    assert run(*explain(folder, "--reward", reward))[0] == 0


def test_amounts_are_round_unless_they_are_asked_for_as_they_are(run, folder, tmp_path):
    told = {}
    for flags in ((), ("--amounts", "round"), ("--amounts", "exact")):
        assert run(*explain(folder)[:6], *flags, "-o", tmp_path / "a.txt")[0] == 0
        told[flags] = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert told[()] == told["--amounts", "round"] != told["--amounts", "exact"]
    code, _, err = run(*explain(folder, "--amounts", "exact"))
    assert code == 2 and "--method nice does not take --amounts (that is for cfk)" in err


def test_answers_are_written_in_every_format(run, folder, tmp_path):
    paths = {e: tmp_path / f"answers{e}" for e in (".csv", ".csv.gz", ".parquet", ".json", ".txt", ".html")}
    for path in paths.values():
        code, out, err = run(*explain(folder, "-o", path))
        assert code == 0 and out == "" and "2 explanations written" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths.values())
    frames = [pd.read_csv(paths[".csv"]), pd.read_csv(paths[".csv.gz"]), pd.read_parquet(paths[".parquet"])]
    for frame in frames:
        assert frame["decision"].tolist() == ["good", "good"] and "age" in frame
    back = cv.Explanations.from_json(paths[".json"].read_text())
    assert back.to_text() + "\n" == paths[".txt"].read_text()
    assert back[0].sentence[:40] in paths[".html"].read_text()
    svg = paths[".html"].read_text().split("<figure>")[1].split("<figcaption>")[0]
    assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_a_pickle_opens_only_with_the_flag(run, folder):
    words = [w if w != folder / "model.skops" else folder / "model.joblib" for w in explain(folder)]
    code, out, err = run(*words)
    assert code == 2 and out == "" and "--allow-pickle" in err
    assert run(*words, "--allow-pickle")[0] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0 and f"countervail {command}" in out.split("Example", 1)[1]


def test_help_lists_every_command(run):
    code, out, _ = run("--help")
    assert code == 0 and all(command in out for command in COMMANDS)


@pytest.mark.parametrize("words", [(), ("ledger",), *((command,) for command in COMMANDS)])
def test_no_flag_without_a_value_shows_a_type(run, words):
    code, out, _ = run(*words, "--help")
    assert code == 0 and "bool" not in out


SECRET = "Xanthippe"


@pytest.fixture
def bad(folder, tmp_path):
    """Files that are wrong in one way each."""
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("age,name\n")
    (tmp_path / "inf.csv").write_text("age,name,ok\n1,a,y\ninf,b,n\n3,c,n\n")
    (tmp_path / "odd.csv").write_text(f"age,name,ok\n1,{SECRET},y\n2,b,n\n{SECRET},c,n\n")
    (tmp_path / "one.csv").write_text(f"age,name,ok\n1,{SECRET},y\n2,b,y\n")
    (tmp_path / "odd.toml").write_text(
        'version = 1\nfavourable = ["y"]\n[columns.age]\ntype = "numeric"\nrole = "quasi"\n'
        '[columns.name]\n[columns.ok]\nrole = "target"\n'
    )
    (tmp_path / "closed.toml").write_text(
        'version = 1\n[columns.age]\n[columns.name]\ndomain = ["b", "c"]\n[columns.ok]\n'
    )
    (tmp_path / "nested.toml").write_text("version = 1\n[columns.age]\ndomain = [[1], [2]]\n")
    (tmp_path / "broken.toml").write_text("version = ")
    (tmp_path / "model.skops").write_text("no model")
    write_schema(cv.load("german_credit").schema.with_roles(identifier=["age"]), tmp_path / "roles.toml")
    asked = pd.read_csv(folder / "asked.csv", dtype=str, keep_default_na=False)
    asked.assign(age=SECRET).to_csv(tmp_path / "text.csv", index=False)
    asked.assign(age="").to_csv(tmp_path / "hole.csv", index=False)
    asked.assign(housing=SECRET).to_csv(tmp_path / "unseen.csv", index=False)
    asked.assign(shoe=SECRET).to_csv(tmp_path / "extra.csv", index=False)
    asked.drop(columns="age").to_csv(tmp_path / "short.csv", index=False)
    pd.DataFrame({"a": [[SECRET], ["b"]]}).to_parquet(tmp_path / "lists.parquet")
    (tmp_path / "folder.html").mkdir()
    return tmp_path


def asked(folder, bad, rows):
    words = explain(folder)
    return [*words[:6], "-r", bad / rows, "-o", bad / "out.csv"]


ERRORS = {
    "no data": (lambda f, b: ["schema", b / "nobody.csv"], "No data file at"),
    "other ending": (lambda f, b: ["schema", b / "odd.toml"], "must end in one of .csv"),
    "empty file": (lambda f, b: ["schema", b / "empty.csv"], "'empty.csv' is empty"),
    "no rows": (lambda f, b: ["schema", b / "header.csv"], "table is empty"),
    "lists": (lambda f, b: ["schema", b / "lists.parquet"], "'a' holds lists"),
    "unknown target": (lambda f, b: ["schema", f / "people.csv", "--target", "goal"], "'goal' is not a column"),
    "schema ending": (lambda f, b: ["schema", f / "people.csv", "-o", b / "s.json"], "must end in .toml"),
    "no folder": (lambda f, b: ["schema", f / "people.csv", "-o", b / "no" / "s.toml"], "Create it first"),
    "no schema": (lambda f, b: ["risk", f / "people.csv", "-s", b / "nobody.toml"], "No schema file at"),
    "broken schema": (lambda f, b: ["risk", f / "people.csv", "-s", b / "broken.toml"], "not valid TOML"),
    "nested domain": (lambda f, b: ["risk", f / "people.csv", "-s", b / "nested.toml"], "must hold plain values"),
    "other schema": (lambda f, b: ["risk", f / "people.csv", "-s", b / "odd.toml"], "lacks columns that the schema"),
    "infinite": (lambda f, b: ["risk", b / "inf.csv", "-s", b / "odd.toml"], "'age' holds infinite values"),
    "text for numbers": (lambda f, b: ["risk", b / "odd.csv", "-s", b / "odd.toml"], "'age' is declared numeric"),
    "outside the domain": (
        lambda f, b: ["risk", b / "one.csv", "-s", b / "closed.toml"],
        "outside its declared domain",
    ),
    "one class": (lambda f, b: ["explain", b / "one.csv", "-s", b / "odd.toml", "-o", b / "out.csv"], "one class only"),
    "no model": (
        lambda f, b: [*explain(f)[:4], "-m", b / "nobody.skops", "-o", b / "out.csv"],
        "No model file at",
    ),
    "broken model": (
        lambda f, b: [*explain(f)[:4], "-m", b / "model.skops", "-o", b / "out.csv"],
        "not a readable skops file",
    ),
    "other columns": (
        lambda f, b: ["explain", f / "people.csv", "-s", b / "roles.toml", "-m", f / "model.skops"],
        "--model was trained on the columns",
    ),
    "unknown label": (
        lambda f, b: [*explain(f), "--target", "great", "-o", b / "out.csv"],
        "--target must",
    ),
    "answer ending": (lambda f, b: [*explain(f), "-o", b / "out.pdf"], "must end in one of .csv"),
    "a folder for a file": (lambda f, b: [*explain(f), "-o", b / "folder.html"], "'folder.html' is a folder"),
    "query of text": (lambda f, b: asked(f, b, "text.csv"), "'age' is declared numeric"),
    "query with a hole": (lambda f, b: asked(f, b, "hole.csv"), "missing values in numeric columns: age"),
    "query unseen": (
        lambda f, b: asked(f, b, "unseen.csv"),
        "Column 'housing' has 2 value(s) outside its declared domain",
    ),
    "query too wide": (lambda f, b: asked(f, b, "extra.csv"), "does not declare: shoe"),
    "query too short": (lambda f, b: asked(f, b, "short.csv"), "lack these columns of the table: age"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_one_line_that_names_the_fault_and_nobody(run, folder, bad, case):
    make, words = ERRORS[case]
    before = sorted(bad.rglob("*"))
    code, out, err = run(*make(folder, bad))
    last = [line for line in err.splitlines() if not line.startswith("No --model given")]
    assert code == 2 and out == ""
    assert len(last) == 1 and last[0].startswith("countervail: ") and words in last[0]
    assert SECRET not in err and "Traceback" not in err
    assert sorted(bad.rglob("*")) == before


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    """The schema of German credit with a public domain for every column, as differential privacy needs it."""
    table = cv.load("german_credit")

    def domain(name):
        column = table.frame[name]
        numeric = pd.api.types.is_numeric_dtype(column)
        return (0, 100_000) if numeric else tuple(sorted(column.dropna().unique()))

    columns = [c if c.role == "target" else replace(c, domain=domain(c.name)) for c in table.schema]
    path = tmp_path_factory.mktemp("public") / "public.toml"
    write_schema(cv.Schema(tuple(columns), ("good",)), path)
    return path


@pytest.mark.parametrize("rows", ["text", "hole", "unseen", "extra", "short"])
@pytest.mark.parametrize("method", ["cfk", "nice", "private-neighbours", "dp-table"])
def test_wrong_rows_are_refused_before_anything_is_fitted(run, folder, bad, public, monkeypatch, rows, method):
    def fit(*_, **__):
        raise AssertionError("nothing is to be trained or fitted for rows that are refused")

    for place in ("model.train_forest", "NICE.fit", "CFK.fit", "PrivateNeighbours.fit", "DPTable.fit"):
        monkeypatch.setattr(f"countervail.{place}", fit)
    schema = folder / "people.toml" if method in ("cfk", "nice") else public
    code, out, err = run("explain", folder / "people.csv", "-s", schema, "-r", bad / f"{rows}.csv", "--method", method)
    assert code == 2 and out == ""
    assert "Traceback" not in err and SECRET not in err


def test_a_value_that_the_table_never_had_is_answered_and_said_everywhere(run, tmp_path):
    """Where no domain is declared."""
    table = small_table(120, domains=False)
    write_frame(table.frame, tmp_path / "people.csv")
    write_schema(table.schema, tmp_path / "people.toml")
    write_frame(small_table(5, seed=1).features.assign(city="elsewhere"), tmp_path / "asked.csv")
    page = tmp_path / "answers.html"
    given = ("explain", tmp_path / "people.csv", "-s", tmp_path / "people.toml", "-r", tmp_path / "asked.csv")
    code, out, err = run(*given, "-o", page, "--json")
    assert code == 0 and "has a value in city that the table never had" in err
    assert any("in city that" in text for text in json.loads(out)["caveats"])
    assert "in city that the table never had" in page.read_text(encoding="utf-8")


def test_a_wrong_option_is_refused_as_usual(run, folder):
    code, _, err = run("risk", folder / "people.csv", "-s", folder / "people.toml", "--k", "0")
    assert code == 2 and "--k" in err


def test_the_installed_module_exits_with_a_code_and_no_traceback(tmp_path):
    program = "from countervail.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "schema", str(tmp_path / "nobody.csv")],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("countervail: No data file at") and done.stderr.count("\n") == 1


def test_the_package_is_a_command_too(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["countervail", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("countervail", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("countervail 0.")
