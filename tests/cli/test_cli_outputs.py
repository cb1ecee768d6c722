"""What a command writes appears whole and together, runs nowhere, and what it says shows nobody's row."""

import json

import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.files.frames import formula_cells, read_frame, write_files, write_frame
from countervail.core.files.schema_file import write_schema

SECRET = "Xanthippe"
ROW = f"{SECRET},41,Athens,hemlock,no"
COLUMNS = (
    cv.Column("name", role="identifier"),
    cv.Column("age", "numeric", "quasi"),
    cv.Column("town", role="quasi"),
    cv.Column("ill", role="sensitive"),
    cv.Column("ok", role="target"),
)


@pytest.fixture
def folder(tmp_path):
    lines = [
        f"{SECRET} {i},{20 + i % 30},{'Athens' if i % 2 else 'Sparta'},cold,{'yes' if i % 3 else 'no'}"
        for i in range(60)
    ]
    (tmp_path / "headless.csv").write_text("\n".join([ROW, *lines]) + "\n")
    (tmp_path / "people.csv").write_text("\n".join(["name,age,town,ill,ok", *lines]) + "\n")
    write_schema(cv.Schema(COLUMNS, ("yes",)), tmp_path / "people.toml")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("risk", "headless.csv", "-s", "people.toml"),
        ("anonymize", "headless.csv", "-s", "people.toml", "-o", "out.csv"),
        ("check", "headless.csv", "-s", "people.toml"),
        ("rules", "headless.csv", "-s", "people.toml"),
        ("explain", "headless.csv", "-s", "people.toml"),
        ("explain", "people.csv", "-s", "people.toml", "--rows", "headless.csv"),
        ("dit", "headless.csv", "-s", "people.toml"),
        ("hierarchy", "headless.csv", "age"),
        ("hierarchy", "headless.csv", "age", "-s", "people.toml"),
        ("schema", "headless.csv", "--target", "ok"),
    ],
    ids=" ".join,
)
def test_a_file_without_a_header_shows_nobodys_row(words, run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = run(*words)
    assert code == 2 and not any(word in out + err for word in (SECRET, "41", "Athens", "hemlock"))


def test_a_file_without_a_header_is_asked_for_one(run, folder):
    _, _, err = run("risk", folder / "headless.csv", "-s", folder / "people.toml")
    assert "5 of 5 (number 1, 2, 3, 4, 5). Does the file begin with a line of column names?" in err


def test_reading_without_a_schema_lists_columns_only_where_some_fit(folder):
    with pytest.raises(ParameterError, match="The data has 5 columns") as caught:
        cv.Table.read(folder / "headless.csv", target="ok", quasi_identifiers=["age", "town"])
    assert SECRET not in str(caught.value)
    with pytest.raises(ParameterError, match=r"The columns are \['name', 'age'"):
        cv.Table.read(folder / "people.csv", target="okay", quasi_identifiers=["age", "town"])


def test_undeclared_columns_of_a_file_with_a_header_are_named(run, folder):
    text = (folder / "people.csv").read_text()
    (folder / "wide.csv").write_text("\n".join(f"{line},mail" for line in text.splitlines()) + "\n")
    _, _, err = run("risk", folder / "wide.csv", "-s", folder / "people.toml")
    assert "does not declare these columns of the data: mail" in err


def test_a_target_of_very_many_labels_shows_none_of_them():
    frame = pd.DataFrame({"age": range(60), "boss": [f"{SECRET} {i // 2}" for i in range(60)]})
    with pytest.raises(SchemaError, match="It has 30 labels that several rows share") as caught:
        cv.Table.from_frame(frame, target="boss", favourable="yes")
    assert SECRET not in str(caught.value)


def test_a_target_of_few_labels_shows_them():
    frame = pd.DataFrame({"age": range(6), "ok": ["good", "bad"] * 3})
    with pytest.raises(SchemaError, match=r"\['bad', 'good'\]"):
        cv.Table.from_frame(frame, target="ok", favourable="yes")


def test_files_are_written_together_or_not_at_all(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("old")

    def fail(place):
        place.write_text("half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_files({one: lambda place: place.write_text("new"), two: fail})
    assert one.read_text() == "old" and list(tmp_path.iterdir()) == [one]
    write_files({one: lambda place: place.write_text("new"), two: lambda place: place.write_text("too")})
    assert (one.read_text(), two.read_text()) == ("new", "too")


def broken(*_):
    raise OSError(28, "No space left on device", "page.html")


def test_no_table_is_left_where_its_report_fails(run, folder, monkeypatch):
    monkeypatch.setattr("countervail.report.page.render_page", broken)
    given = ("anonymize", folder / "people.csv", "-s", folder / "people.toml", "--k", 3)
    code, _, err = run(*given, "-o", folder / "out.csv", "--report", folder / "page.html")
    assert code == 2 and "No space left" in err
    assert not {"out.csv", "page.html"} & {p.name for p in folder.iterdir()}
    assert not [p for p in folder.iterdir() if p.name.startswith(".countervail-")]


def test_no_groups_are_left_where_the_answers_fail(run, folder, monkeypatch):
    monkeypatch.setattr("countervail.report.page.render_page", broken)
    given = ("explain", folder / "people.csv", "-s", folder / "people.toml", "--k", 3)
    code, out, _ = run(*given, "-o", folder / "page.html", "--previous", folder / "groups.json")
    assert code == 2 and not out and not {"groups.json", "page.html"} & {p.name for p in folder.iterdir()}


def test_no_figures_are_left_where_the_page_fails(run, folder, monkeypatch):
    monkeypatch.setattr("countervail.report.page.render_page", broken)
    given = ("dit", folder / "people.csv", "-s", folder / "people.toml", "--k", 3)
    code, _, _ = run(*given, "-o", folder / "a.json", "-o", folder / "page.html")
    assert code == 2 and not {"a.json", "page.html"} & {p.name for p in folder.iterdir()}


FORMULAS = [
    "=1+1",
    "=HYPERLINK(1)",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "-x",
    "+32 475 x",
    "+1-2",
    "-3--1",
]
PLAIN = ["-5", "+3", "-1.5e3", "-3 to 4", "1-2", "-", "=", "'quoted'", "a=b", "x", "", "12,5", "-12,5"]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("kind", [object, "str", "category"])
def test_no_cell_of_a_csv_begins_like_a_formula(ending, kind, tmp_path):
    frame = pd.DataFrame({"a": pd.Series([*FORMULAS, *PLAIN, None], dtype=kind)})
    assert formula_cells(frame) == len(FORMULAS)
    write_frame(frame, tmp_path / f"a{ending}")
    cells = pd.read_csv(tmp_path / f"a{ending}", keep_default_na=False, skip_blank_lines=False)["a"].tolist()
    assert cells[: len(FORMULAS)] == [f"'{text}" for text in FORMULAS]
    assert cells[len(FORMULAS) :] == [*PLAIN, ""]


def test_what_was_written_with_an_apostrophe_is_read_without_it(tmp_path):
    frame = pd.DataFrame({"a": FORMULAS, "=b": [f"x{i}" for i in range(len(FORMULAS))], "n": [-5.5] * len(FORMULAS)})
    write_frame(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().startswith('"a","\'=b","n"')
    pd.testing.assert_frame_equal(read_frame(tmp_path / "a.csv"), frame)
    schema = cv.Schema((cv.Column("a", domain=tuple(FORMULAS)), cv.Column("=b"), cv.Column("n", "numeric")))
    assert cv.Table.read(tmp_path / "a.csv", schema).frame["a"].tolist() == FORMULAS


def test_numbers_stay_numbers_and_parquet_stays_as_it_is(tmp_path):
    frame = pd.DataFrame({"a": ["=1", "-x"], "n": [-5, 3], "f": [-1.5, 2.0]})
    write_frame(frame, tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), frame)
    write_frame(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "a,n,f\n'=1,-5,-1.5\n'-x,3,2.0\n"


def test_a_command_says_how_many_cells_it_marked(run, folder):
    text = (folder / "people.csv").read_text().replace("cold", "=cold()")
    (folder / "people.csv").write_text(text)
    given = ("anonymize", folder / "people.csv", "-s", folder / "people.toml", "--k", 3)
    code, out, err = run(*given, "-o", folder / "out.csv", "--json")
    assert code == 0 and json.loads(out)["rows"] == 60 and "60 cell(s) begin like a formula" in err
    assert any("60 cell(s) begin like a formula" in note for note in json.loads(out)["notes"])
    assert "'=cold()" in (folder / "out.csv").read_text()
    assert run("check", folder / "out.csv", "-s", folder / "people.toml", "--k", 3)[0] == 0
    code, _, err = run(*given, "-o", folder / "out.parquet")
    assert code == 0 and "formula" not in err
    assert set(pd.read_parquet(folder / "out.parquet")["ill"]) == {"=cold()"}


def test_answers_are_written_in_several_forms_and_what_answers_is_kept(run, folder):
    people = (folder / "people.csv", "-s", folder / "people.toml")
    outputs = [folder / name for name in ("answers.json", "answers.html", "answers.csv")]
    words = [w for path in outputs for w in ("-o", path)]
    code, _, err = run("explain", *people, "--k", 3, *words, "--save", folder / "cfk.json")
    assert code == 0 and all(path.stat().st_size for path in outputs)
    assert err.count("explanations written to") == 3
    kept = folder / "cfk.json", folder / "cfk.skops"
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    again = cv.load_protector(kept[0], cv.model.load_model(kept[1]))
    told = cv.Explanations.from_json(outputs[0].read_text())
    assert again.explain(told.factuals).to_frame().astype(str).equals(told.to_frame().astype(str))


@pytest.mark.parametrize(
    "words, says",
    [
        (("--method", "nice", "--save", "x.json"), "holds people's rows"),
        (("--search", "exact", "--k", 2, "--save", "x.json"), "--search must be 'groups'"),
        (("--save", "x.bin"), "must end in .json"),
        (("--save", "people.json"), "would overwrite the data"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(run, folder, monkeypatch, words, says):
    monkeypatch.chdir(folder)
    (folder / "people.json").symlink_to(folder / "people.toml")
    code, _, err = run("explain", "people.csv", "-s", "people.toml", "-o", "e.json", *words)
    assert code == 2 and says in err
    assert not (folder / "e.json").exists() and not (folder / "x.json").exists()


@pytest.mark.parametrize("method", ["cfk", "nice"])
def test_answers_about_dates_are_a_table_of_ranges_of_dates(run, tmp_path, method):
    days = pd.date_range("1960-01-01", periods=400, freq="31D")
    frame = pd.DataFrame({"born": days.strftime("%Y-%m-%d"), "town": ["Athens", "Sparta"] * 200})
    frame["ok"] = ["yes" if d.year < 1980 else "no" for d in days]
    frame.to_csv(tmp_path / "people.csv", index=False)
    columns = (cv.Column("born", "date", "quasi"), cv.Column("town", role="quasi"), cv.Column("ok", role="target"))
    write_schema(cv.Schema(columns, ("yes",)), tmp_path / "people.toml")
    given = (tmp_path / "people.csv", "-s", tmp_path / "people.toml")
    code, _, err = run("explain", *given, "--method", method, "-o", tmp_path / "answers.csv")
    assert code == 0, err
    told = pd.read_csv(tmp_path / "answers.csv")["born"].dropna()
    assert len(told) and told.str.fullmatch(r"\d{4}-\d{2}-\d{2}( to \d{4}-\d{2}-\d{2})?").all(), told.tolist()
