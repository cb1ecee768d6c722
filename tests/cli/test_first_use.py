"""What somebody meets who uses the commands for the first time: files that clash, columns that nobody declared."""

import hashlib
import html
import json
import re

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.cli.shared.common import pointing
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema

KEEP = ("--keep", "salary", "--keep", "notes")

ROWS = 120
SCHEMA = cv.Schema(
    (
        cv.Column("id", role="identifier"),
        cv.Column("age", "numeric", "quasi"),
        cv.Column("city", role="quasi"),
        cv.Column("salary", "numeric", "sensitive"),
        cv.Column("notes"),
        cv.Column("owner"),
        cv.Column("ok", role="target"),
    ),
    favourable=("yes",),
)


@pytest.fixture
def people(tmp_path):
    """A small table with free text, as files."""
    rng = np.random.default_rng(0)
    age, salary = rng.integers(20, 70, ROWS), rng.permutation(ROWS) * 100 + 20_000
    frame = pd.DataFrame(
        {
            "id": [f"id-{i}" for i in range(ROWS)],
            "age": age,
            "city": rng.choice(["Ghent", "Bruges"], ROWS),
            "salary": salary,
            "notes": [f"secret call {i}" if i % 2 else None for i in range(ROWS)],
            "owner": rng.choice(["a", "b"], ROWS),
            "ok": np.where(salary + 50 * age > 28_000, "yes", "no"),
        }
    )
    write_frame(frame, tmp_path / "people.csv")
    write_schema(SCHEMA, tmp_path / "people.toml")
    return tmp_path


def given(people):
    return (people / "people.csv", "--schema", people / "people.toml")


def released(people):
    return pd.DataFrame(
        {"age": ["20-30"] * 10, "city": "Ghent", "salary": range(10), "notes": "x", "owner": "a", "ok": "yes"}
    )


@pytest.mark.parametrize("extra", ["email", "Unnamed: 0"])
def test_check_fails_for_columns_that_nobody_declared(run, people, extra):
    write_frame(released(people).assign(**{extra: [f"p{i}@x.be" for i in range(10)]}), people / "public.csv")
    words = ("check", people / "public.csv", "-s", people / "people.toml", "--k", 5)
    code, _, text = run(*words)
    assert code == 1
    assert f"these columns of the file: {extra}. Declare them or drop them." in text
    assert "@x.be" not in text
    code, text, _ = run(*words, "--json")
    assert code == 1 and json.loads(text)["undeclared"] == [extra]
    write_frame(released(people), people / "public.csv")
    assert run(*words)[0] == 0


def test_anonymize_names_what_is_published_as_it_is(run, people):
    words = ("anonymize", *given(people), *KEEP, "--k", 5, "-o", people / "public.csv")
    code, text, note = run(*words)
    assert code == 0
    promise, shown = text.splitlines()[2:4]
    assert promise.startswith("Promise: ")
    assert shown == "Published as they are: salary, notes, owner, ok."
    assert "a value of their own in salary, notes. Such a column points at people as a name does" in note
    assert "secret call" not in text
    found = json.loads(run(*words, "--json")[1])
    assert (found["as_they_are"], found["pointing"]) == (["salary", "notes", "owner", "ok"], ["salary", "notes"])


def test_only_columns_with_many_different_values_point_at_people():
    frame = pd.DataFrame({"few": [*range(19), *[None] * 21], "own": range(40), "two": [*range(20)] * 2})
    assert pointing(frame, frame.columns) == ["own"]
    fifth = pd.DataFrame({"edge": [*range(20), *[77] * 80], "above": [*range(21), *[77] * 79]})
    assert pointing(fifth, fifth.columns) == ["above"]


def test_explain_warns_of_texts_that_point_at_people(run, people):
    note = "many people have a value of their own in"
    code, _, err = run("explain", *given(people), "--k", 5, "-o", people / "a.txt")
    assert code == 0 and f"{note} notes. Such a column points at people" in err
    write_schema(SCHEMA.with_roles(identifier=["id", "notes"]), people / "people.toml")
    code, _, err = run("explain", *given(people), "--k", 5, "-o", people / "a.txt")
    assert code == 0 and note not in err


@pytest.mark.parametrize(
    ("words", "over"),
    [
        (("anonymize", "people.csv", "-s", "people.toml", "--k", "5"), "people.csv"),
        (("anonymize", "people.csv", "-s", "people.toml", "--k", "5", "--method", "k-common"), "people.csv"),
        (("explain", "people.csv", "-s", "people.toml"), "people.csv"),
        (("explain", "people.csv", "-s", "people.toml", "--rows", "asked.csv"), "asked.csv"),
        (("hierarchy", "people.csv", "age"), "people.csv"),
        (("rules", "people.csv", "-s", "people.toml"), "people.csv"),
    ],
)
@pytest.mark.parametrize("spelling", ["{}", "sub/../{}", "./{}", "link-{}"])
def test_no_command_writes_over_what_it_reads(run, people, monkeypatch, words, over, spelling):
    monkeypatch.chdir(people)
    (people / "sub").mkdir()
    (people / "asked.csv").write_bytes((people / "people.csv").read_bytes())
    (people / f"link-{over}").symlink_to(people / over)
    before = {p.name: p.read_bytes() for p in people.iterdir() if p.is_file()}
    code, out, err = run(*words, "-o", spelling.format(over))
    assert code == 2 and out == ""
    assert "would overwrite the data" in err and len(err.splitlines()) == 1
    assert {p.name: p.read_bytes() for p in people.iterdir() if p.is_file()} == before
    assert (people / f"link-{over}").is_symlink()


def test_groups_and_ledgers_are_not_written_over_either(run, people, monkeypatch):
    monkeypatch.chdir(people)
    code, _, err = run("explain", "people.csv", "-s", "people.toml", "--previous", "./people.csv")
    assert code == 2 and "would overwrite the data" in err
    run("ledger", "create", "budget.json", "--dataset", "us", "--epsilon", 1)
    code, _, err = run("ledger", "history", "budget.json", "-o", "./budget.json")
    assert code == 2 and "would overwrite the data" in err


def test_a_schema_without_favourable_decision_says_which_line_to_write(run, people):
    write_schema(cv.Schema(SCHEMA.columns), people / "people.toml")
    head = pd.read_csv(people / "people.csv").drop(columns=["id", "ok"]).head(2)
    write_frame(head, people / "asked.csv")
    line = 'Write favourable = ["..."] at the top of the schema file, or use --target'
    rows = ("--rows", people / "asked.csv")
    for more in (("--k", 5), ("--k", 5, *rows), (*rows, "--method", "nice")):
        code, _, err = run("explain", *given(people), *more)
        assert code == 2 and line in err
    code, _, err = run("explain", *given(people), "--k", 5, "--target", "yes", "-o", people / "a.csv")
    assert code == 0 and "explanations written" in err


def test_private_explanations_name_the_same_line(run, people):
    columns = (
        cv.Column("id", role="identifier"),
        cv.Column("age", "numeric", "quasi", domain=(20, 70)),
        cv.Column("city", role="quasi", domain=("Ghent", "Bruges")),
        cv.Column("salary", "numeric", "sensitive", domain=(20_000, 32_000)),
        cv.Column("ok", role="target", domain=("no", "yes")),
    )
    frame = pd.read_csv(people / "people.csv")[[c.name for c in columns]]
    write_frame(frame, people / "people.csv")
    write_frame(frame.head(2), people / "asked.csv")
    write_schema(cv.Schema(columns), people / "people.toml")
    words = ("explain", *given(people), "--rows", people / "asked.csv", "--method", "private-neighbours")
    code, _, err = run(*words)
    assert code == 2 and 'Write favourable = ["..."] at the top of the schema file, or use --target' in err


def trees(people, *names):
    folder = people / "trees"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("Ghent;*\nBruges;*\n", encoding="utf-8")
    return (
        "anonymize",
        *given(people),
        *KEEP,
        "--k",
        5,
        "--hierarchies",
        folder,
        "-o",
        people / "public.csv",
    )


def test_hierarchies_of_no_column_are_named(run, people):
    words = trees(people, "city.csv", "town.csv", "notes.csv")
    code, _, text = run(*words)
    assert code == 0
    assert "Note: No column that is generalised has the name of notes.csv, town.csv in" in text
    assert json.loads(run(*words, "--json")[1])["unused_hierarchies"] == ["notes.csv", "town.csv"]


@pytest.mark.parametrize("names", [(), ("City.csv",)])
def test_a_folder_without_a_fitting_hierarchy_is_an_error(run, people, names):
    code, out, err = run(*trees(people, *names))
    assert code == 2 and out == ""
    assert "has no hierarchy of a column that Mondrian generalises. It looks for age.csv, city.csv" in err
    assert not (people / "public.csv").exists()


def test_names_of_groups_need_hierarchies(run, people):
    code, _, err = run("anonymize", *given(people), "--labels", "hierarchy", "-o", people / "public.csv")
    assert code == 2 and "--labels hierarchy needs --hierarchies" in err
    assert not (people / "public.csv").exists()


def test_dit_says_how_to_group_a_sensitive_column_of_many_numbers(run, people, recwarn):
    code, _, err = run("dit", *given(people), "--k", 5, "--records", 2)
    assert code == 0
    assert "'salary' has 120 different numbers in 120 rows" in err and "--groups 5 --ground ordered" in err
    assert "UserWarning" not in err and not [w for w in recwarn if issubclass(w.category, UserWarning)]
    code, _, err = run("dit", *given(people), "--k", 5, "--records", 2, "--sensitive", "owner")
    assert code == 0 and "different numbers" not in err


def test_explanations_spell_ranges_as_tables_do(run, people):
    code, _, _ = run("explain", *given(people), "--k", 5, "--reward", "none", "-o", people / "a.csv")
    found = pd.read_csv(people / "a.csv")
    assert code == 0 and (found["status"] == "found").all()
    assert found["age"].astype(str).str.fullmatch(r"\d+(-\d+)?").all()
    assert found["age"].astype(str).str.contains("-").any()


def test_who_needs_no_counterfactual_has_empty_cells(run, people):
    rows = pd.read_csv(people / "people.csv").drop(columns=["id", "ok"])
    write_frame(rows.sort_values("salary").iloc[[0, -1]], people / "asked.csv")
    code, _, _ = run("explain", *given(people), "--k", 5, "--rows", people / "asked.csv", "-o", people / "a.csv")
    found = pd.read_csv(people / "a.csv")
    assert code == 0 and found["status"].tolist() == ["found", "already_favourable"]
    assert found["age"].isna().tolist() == [False, True]


def test_check_tells_patterns_from_people(run, people):
    words = ("check", people / "public.csv", "-s", people / "people.toml", "--k", 5)
    made = ("--k", 5, "-o", people / "public.csv")
    assert run("anonymize", *given(people), "--method", "k-common", *made)[0] == 0
    code, _, text = run(*words)
    assert code == 1 and "Patterns are not rows of people" in text
    plain = pd.read_csv(people / "people.csv").drop(columns="id")
    write_frame(plain, people / "public.csv")
    code, _, text = run(*words)
    assert code == 1 and "Patterns" not in text


def test_rules_end_with_a_word_on_their_bounds(run, people):
    code, _, err = run("rules", *given(people), "--k", 5, "--exact-bounds")
    assert code == 0
    assert "Note: The bounds of these rules are values that somebody has" in err


# ---------------------------------------------------------------- what a person signs


def test_a_column_in_which_many_have_a_value_of_their_own_leaves_only_when_that_is_said(run, people):
    words = ("anonymize", *given(people), "--k", 5, "-o", people / "public.csv")
    code, out, err = run(*words)
    assert code == 2 and not out and not (people / "public.csv").exists()
    assert "in salary, notes" in err and "--keep salary --keep notes" in err
    assert run(*words, *KEEP)[0] == 0
    code, _, err = run(*words, *KEEP, "--keep", "age")
    assert code == 2 and "--keep must name one of the columns that leave as they are" in err


def test_the_page_holds_all_that_was_said_and_how_it_was_made(run, people):
    words = ("anonymize", *given(people), *KEEP, "--k", 5, "-o", people / "public.csv", "--report", people / "p.html")
    _, _, text = run(*words)
    said = json.loads(run(*words, "--json")[1])
    page = html.unescape((people / "p.html").read_text(encoding="utf-8"))
    for note in said["notes"]:
        assert note in text.splitlines() and note in page
    assert len(said["notes"]) >= 1
    made = said["making"]
    assert made["sha256"] == hashlib.sha256((people / "public.csv").read_bytes()).hexdigest()
    for word in (
        made["sha256"],
        "people.csv",
        "public.csv",
        made["when"],
        made["version"],
        made["schema"],
        "method",
        "k",
    ):
        assert word in page
    for column, role, how in made["leaves"]:
        assert column in page and role in page and how in page


@pytest.mark.parametrize("labels", ["tight", "hierarchy"])
def test_no_page_shows_a_value_that_few_people_hold(run, tmp_path, labels):
    """Birth dates of three or four people each, and the oldest of all."""
    rng = np.random.default_rng(0)
    born = pd.Series(
        [f"19{rng.integers(50, 99)}-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}" for _ in range(90)]
    )
    frame = pd.DataFrame({"born": pd.concat([born, born, born], ignore_index=True)})
    frame["points"] = np.append(rng.integers(100, 200, len(frame) - 1), 987)
    frame["ok"] = rng.choice(["no", "yes"], len(frame))
    schema = cv.Schema(
        (
            cv.Column("born", "categorical", "quasi"),
            cv.Column("points", "numeric", "quasi"),
            cv.Column("ok", role="target"),
        )
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    write_schema(schema, tmp_path / "people.toml")
    (tmp_path / "h").mkdir()
    rows = [f"{v};{v[:3]}0s;*" for v in sorted(set(frame["born"]))]
    (tmp_path / "h" / "born.csv").write_text("\n".join(rows), encoding="utf-8")
    code, _, err = run(
        *("anonymize", tmp_path / "people.csv", "-s", tmp_path / "people.toml", "--k", 10, "--labels", labels),
        *("--hierarchies", tmp_path / "h", "-o", tmp_path / "public.csv", "--report", tmp_path / "page.html"),
    )
    assert code == 0, err
    page, public = (tmp_path / "page.html").read_text(encoding="utf-8"), (tmp_path / "public.csv").read_text()
    shown = set(re.findall(r"19\d\d-\d\d-\d\d", page))
    assert not shown, "dates that three people share"
    assert "987" not in page or "987" in public
