"""schema, anonymize, risk and check of rows that stay in files, as those of a table."""

import json

import numpy as np
import pandas as pd
import pytest

SCHEMA = """version = 1
[columns.id]
role = "identifier"
type = "numeric"
[columns.age]
type = "numeric"
role = "quasi"
[columns.zip]
role = "quasi"
[columns.ill]
role = "sensitive"
"""


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "id": np.arange(400),
            "age": rng.integers(20, 60, 400),
            "zip": [f"{z:05d}" for z in rng.integers(10_000, 10_080, 400)],
            "ill": rng.choice(["none", "flu", "gout"], 400),
        }
    )
    rows.to_parquet(tmp_path / "people.parquet", index=False)
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_folder_holds_what_a_file_would(engine, files, run):
    data, schema = files / "people.parquet", files / "people.toml"
    assert run("anonymize", data, "-s", schema, "--k", 5, "--l", 2, "-o", files / "whole.csv")[0] == 0
    words = ("--k", 5, "--l", 2, "--engine", engine, "--threads", 2, "--memory", "1 GB")
    code, out, err = run("anonymize", data, "-s", schema, *words, "-o", files / "out", "--json")
    found = json.loads(out)
    assert (code, found["rows"], found["as_they_are"]) == (0, 400, ["ill"])
    assert "published by their first characters" in err  # as of a table: codes have groups of their own
    shown = [pd.read_csv(files / "whole.csv", dtype=str), pd.read_parquet(files / "out").astype(str)]
    assert sorted(map(tuple, shown[0].to_numpy())) == sorted(map(tuple, shown[1].to_numpy()))
    code, out, _ = run("check", files / "out", "-s", schema, "--k", 5, "--l", 2, "--engine", engine, "--json")
    assert (code, json.loads(out)["holds"], json.loads(out)["rows"]) == (0, True, 400)
    assert (
        run("check", data, "-s", schema, "--k", 5, "--engine", engine)[0] == 1
    )  # the identifier is there, and k is not


def test_the_same_schema_is_proposed(files, run):
    words = ("schema", files / "people.parquet", "--target", "ill", "--json")
    code, out, _ = run(*words)
    assert code == 0 and json.loads(out)["reasons"]
    assert out == run(*words, "--engine", "duckdb", "--memory", "1 GB")[1] == run(*words, "--engine", "memory")[1]
    assert "is for --engine" in run(*words, "--memory", "1 GB")[2]


def test_risk_is_the_same_figures(files, run):
    words = ("risk", files / "people.parquet", "-s", files / "people.toml", "--json")
    assert run(*words)[1] == run(*words, "--engine", "duckdb")[1] == run(*words, "--engine", "memory")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "1 GB"), "--memory is for --engine"),
        (("--engine", "abacus"), "--engine must be one of memory, duckdb"),
        (("--engine", "duckdb", "--report", "r.html"), "--engine does not take --report"),
        (("--engine", "duckdb", "--memory", "lots"), "--memory must be a size such as '2 GB'"),
        (("--engine", "duckdb", "--master", "local[2]"), "--master must be given with"),
        (("--engine", "duckdb", "--method", "microaggregation"), "must be a Table: it works row by row"),
        (("--engine", "duckdb", "--keep", "age"), "--keep must name one of the columns that leave as they are: ill"),
        (("--engine", "duckdb", "--person", "ill"), "--person must name an identifier"),
    ],
)
def test_flags_that_do_not_go_together_are_named(words, said, files, run):
    code, _, err = run("anonymize", files / "people.parquet", "-s", files / "people.toml", "-o", files / "out", *words)
    assert (code, said in err) == (2, True), err
    assert not (files / "out").exists()
