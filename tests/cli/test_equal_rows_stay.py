"""How many rows are equal follows from who owns what: the owner is told, and nothing that leaves says it."""

import importlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.schema_file import write_schema

AGES = [30, 30, 30, 31, 31, 31] * 3
DOMAINS = {"age": (18, 90), "pay": (0, 9), "ill": ["flu", "none"], "ok": ["no", "yes"]}


def people(pays):
    """Groups of six by age; who of a group owns which private row is the order of `pays`."""
    frame = pd.DataFrame({"age": np.repeat([0, 20, 40], 6) + AGES, "pay": pays * 3, "ill": "flu"})
    return frame.assign(ok=np.where(frame["pay"] > 4, "yes", "no"))


# The same register and the same private rows in each group; in the first world people of one age own the same.
WORLDS = [people([1, 1, 1, 6, 6, 6]), people([1, 6, 1, 6, 1, 6])]


@pytest.fixture
def folder(tmp_path):
    for i, frame in enumerate(WORLDS):
        frame.to_csv(tmp_path / f"w{i}.csv", index=False)
    roles = {"target": "ok", "favourable": "yes", "quasi_identifiers": ["age"], "sensitive": ["ill"]}
    table = cv.Table.from_frame(WORLDS[0], **roles, domains=DOMAINS)
    write_schema(table.schema, tmp_path / "s.toml")
    frame = pd.DataFrame({"age": [33, 60], "pay": [2, 3], "ill": ["flu", "none"]})
    frame.to_csv(tmp_path / "asked.csv", index=False)
    return tmp_path


def rule(frame):
    return np.where(frame["pay"].to_numpy(float) > 4, "yes", "no")


@pytest.fixture
def public_model(monkeypatch):
    """The model is not learnt from who owns what."""
    monkeypatch.setattr(importlib.import_module("countervail.cli.explain"), "_model", lambda *_: rule)


def test_the_worlds_are_permuted_within_groups_and_differ_in_equal_rows():
    equal = [int(f.duplicated(keep=False).sum()) for f in WORLDS]
    assert equal == [18, 12]
    groups = [f.assign(group=f["age"] // 2 * 2).drop(columns="age").sort_values(["group", "pay"]) for f in WORLDS]
    assert groups[0].to_numpy().tolist() == groups[1].to_numpy().tolist()


@pytest.mark.parametrize("ending", ["json", "html", "csv"])
def test_answers_from_groups_are_the_same_file_in_both_worlds(run, folder, public_model, ending):
    """The file counted rows of the table that are equal in every column: with k=3, that can say who owns what."""
    written = []
    for i in range(2):
        out = folder / f"a.{ending}"
        words = ("--rows", folder / "asked.csv", "--method", "cfk", "--k", 6, "-o", out)
        code, _, err = run("explain", folder / f"w{i}.csv", "-s", folder / "s.toml", *words)
        assert code == 0 and f"For you alone: {(18, 12)[i]} rows are equal" in " ".join(err.split())
        written.append(re.sub(r"w[01]\.csv", "w.csv", out.read_text(encoding="utf-8")))
    assert written[0] == written[1]
    assert ending == "csv" or "each row counts as one person" in written[0]


def test_a_release_says_the_same_of_both_worlds(run, folder):
    said = []
    for i in range(2):
        out, page = folder / "p.csv", folder / f"p{i}.html"
        words = ("--k", 6, "-o", out, "--report", page, "--rows-are-people", "--json")
        code, told, err = run("anonymize", folder / f"w{i}.csv", "-s", folder / "s.toml", *words)
        assert code == 0 and f"For you alone: {(18, 12)[i]} rows are equal" in " ".join(err.split())
        assert "rows are equal" not in page.read_text(encoding="utf-8")
        said.append(json.loads(told)["notes"])
    assert said[0] == said[1] and "equal" not in " ".join(said[0])


@pytest.mark.parametrize("method", ["private-synthetic", "private-neighbours", "noisy-counterfactual"])
def test_no_exact_count_stands_beside_answers_that_owe_their_privacy_to_noise(run, folder, public_model, method):
    """The caveats of a private answer held an exact figure of the table, which no epsilon covered."""
    out = folder / "a.json"
    words = ("--rows", folder / "asked.csv", "--method", method, "--epsilon", 1, "-o", out)
    code, _, err = run("explain", folder / "w0.csv", "-s", folder / "s.toml", *words)
    assert code == 0 and "For you alone: 18 rows are equal" in " ".join(err.split())
    assert "equal" not in " ".join(json.loads(out.read_text(encoding="utf-8"))["caveats"])


def test_no_exact_count_stands_beside_a_noisy_table(run, folder):
    words = ("--method", "dp-table", "--epsilon", 1, "-o", folder / "p.csv", "--rows-are-people", "--json")
    code, told, err = run("anonymize", folder / "w0.csv", "-s", folder / "s.toml", *words)
    assert code == 0 and "For you alone: 18 rows are equal" in " ".join(err.split())
    assert "equal" not in " ".join(json.loads(told)["notes"])


def test_identifiers_leave_nothing_to_say(run, folder, public_model):
    named = WORLDS[0].assign(id=range(18))
    named.to_csv(folder / "named.csv", index=False)
    table = cv.Table.from_frame(WORLDS[0], target="ok", favourable="yes", quasi_identifiers=["age"], domains=DOMAINS)
    column = replace(table.schema["ill"], name="id", role="identifier", domain=None)
    write_schema(replace(table.schema, columns=(*table.schema, column)), folder / "n.toml")
    words = ("--rows", folder / "asked.csv", "--method", "cfk", "--k", 6, "-o", folder / "a.json")
    code, _, err = run("explain", folder / "named.csv", "-s", folder / "n.toml", *words)
    assert code == 0 and "For you alone" not in err and "each row counts" not in err


@pytest.mark.parametrize("method", ["private-synthetic", "dp-table"])
def test_the_owner_is_told_that_a_promise_is_about_one_row_of_a_person(run, folder, public_model, method):
    WORLDS[0].assign(id=np.arange(18) // 3).to_csv(folder / "named.csv", index=False)
    table = cv.Table.from_frame(WORLDS[0], target="ok", favourable="yes", quasi_identifiers=["age"], domains=DOMAINS)
    column = replace(table.schema["ill"], name="id", role="identifier", domain=None)
    write_schema(replace(table.schema, columns=(*table.schema, column)), folder / "n.toml")
    out = folder / "a.csv"
    words = ("--method", method, "--epsilon", 1, "-o", out)
    asked = ("--rows", folder / "asked.csv") if method == "private-synthetic" else ()
    command = "explain" if asked else "anonymize"
    code, told, err = run(command, folder / "named.csv", "-s", folder / "n.toml", *words, *asked, "--json")
    assert code == 0 and "For you alone: Some people have up to 3 rows" in " ".join(err.split())
    assert "up to 3 rows" not in told + out.read_text(encoding="utf-8")
