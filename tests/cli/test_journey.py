"""A data-protection officer's way through an export, in German and in English: schema to the page that is signed."""

import csv
import json
import random
from datetime import date, timedelta

import pandas as pd
import pytest

from countervail.core.files.schema_file import read_schema

NAMES = {
    "en": ("customer_id", "name", "email", "birth_date", "postcode", "town", "salary", "diagnosis", "remarks"),
    "de": ("Kundennummer", "Name", "E-Mail", "Geburtsdatum", "PLZ", "Ort", "Gehalt", "Diagnose", "Bemerkung"),
}
FIRST = {"en": ("Mary", "John", "Alice", "Peter"), "de": ("Anna", "Peter", "Jürgen", "Sabine")}
LAST = {"en": ("Smith", "Brown", "Clark"), "de": ("Müller", "Weber", "Koch")}
ROLES = ["identifier", "identifier", "identifier", "quasi", "quasi", "quasi", "sensitive", "sensitive", "identifier"]


def export(folder, language, rows=120):
    """Made-up customers: decimal commas, semicolons, Windows' letters and day-first dates in the German file."""
    chance, german = random.Random(7), language == "de"
    lines = []
    for i in range(rows):
        born = date(1940, 1, 1) + timedelta(chance.randrange(22_000))
        money = f"{chance.gauss(3000, 700):.2f}"
        lines.append(
            (
                f"K{i:05}",
                f"{chance.choice(FIRST[language])} {chance.choice(LAST[language])}",
                f"person{i}@example.org",
                born.strftime("%d.%m.%Y" if german else "%m/%d/%Y"),
                f"{chance.choice((50, 51))}{chance.randrange(200):03}",
                chance.choice(("Köln", "Düren") if german else ("Leeds", "York")),
                "" if i % 20 == 3 else money.replace(".", ",") if german else money,
                chance.choice(("Grippe", "Asthma", "keine")),
                f"Das ist eine lange Bemerkung mit der laufenden Nummer {i}",
            )
        )
    path = folder / f"export_{language}.csv"
    with path.open("w", newline="", encoding="cp1252" if german else "utf-8") as file:
        csv.writer(file, delimiter=";" if german else ",").writerows([NAMES[language], *lines])
    return path, lines


@pytest.mark.parametrize("language", ["de", "en"])
def test_an_officer_gets_from_an_export_to_a_page_that_can_be_signed(run, tmp_path, language):
    data, lines = export(tmp_path, language)
    born, code, pay = (NAMES[language][i] for i in (3, 4, 6))
    schema, flags = tmp_path / "s.toml", ("--encoding", "cp1252") if language == "de" else ()
    if language == "de":
        assert "--encoding" in run("schema", data)[2]  # the way out is named
    assert run("schema", data, "-o", schema, *flags)[0] == 0
    known = read_schema(schema)
    assert [c.role for c in known] == ROLES
    assert (known[born].type, known[born].order) == ("date", "dmy" if language == "de" else "mdy")
    assert (known[code].type, known[pay].type) == ("categorical", "numeric")
    given = (data, "--schema", schema, *flags)
    secrets = {cell for line in lines for cell in (*line[:4], line[8])}

    pages = [tmp_path / name for name in ("risk.html", "sweep.html", "report.html", "check.html", "periods.html")]
    told = [run("risk", *given, "-o", pages[0])]
    groups = tmp_path / "groups"
    groups.mkdir()
    assert run("hierarchy", data, born, "-s", schema, "-o", groups / f"{born}.csv", *flags)[0] == 0
    told.append(run("anonymize", *given, "--sweep", "k=2,5,10", "--report", pages[1]))
    refused = run("anonymize", *given, "--k", 5, "-o", tmp_path / "public.csv")
    assert refused[0] == 2 and f"--keep {pay}" in refused[2]
    made = ("anonymize", *given, "--k", 5, "--keep", pay)
    told.append(run(*made, "-o", tmp_path / "public.csv", "--report", pages[2]))
    told.append(run("check", tmp_path / "public.csv", "-s", schema, "--k", 5, "-o", pages[3]))
    told.append(
        run(*made, "-o", tmp_path / "p.csv", "--labels", "hierarchy", "--hierarchies", groups, "--report", pages[4])
    )
    assert [code for code, _, _ in told] == [0] * len(told), told
    public = pd.read_csv(tmp_path / "public.csv", dtype=str, keep_default_na=False)
    assert public.groupby(known.names("quasi")).size().min() >= 5
    assert public[born].str.fullmatch(r"\d{4}-\d\d-\d\d( to \d{4}-\d\d-\d\d)?").all()
    assert public[code].str.fullmatch(r"\d+\**|\*").all()
    periods = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert periods[born].str.fullmatch(r"\d{4}-\d\d(-\d\d)?|\d{4}s?|\*").all()
    everything = "".join(out + err for _, out, err in told) + "".join(p.read_text(encoding="utf-8") for p in pages)
    assert not [s for s in secrets if s in everything]
    exact = {date.strftime(pd.to_datetime(line[3], dayfirst=language == "de").date(), "%Y-%m-%d") for line in lines}
    assert pages[3].read_text(encoding="utf-8").count("<td>not in the file</td>") == 4  # identifiers did not leave
    page = pages[4].read_text(encoding="utf-8")
    assert f"<td>{born}, {code}</td>" in page and "by --keep" in page  # hierarchies of which columns; who let it go
    assert "accuracy" not in pages[1].read_text(encoding="utf-8")  # nothing is predicted
    assert not [day for day in exact if day in page and day not in set(periods[born])]


@pytest.mark.parametrize("language", ["de", "en"])
def test_excel_and_parquet_folders_are_read_as_the_csv_is(run, tmp_path, language):
    data, _ = export(tmp_path, language, rows=40)
    flags = ("--encoding", "cp1252") if language == "de" else ()
    frame = pd.read_csv(data, sep=";" if language == "de" else ",", dtype=str, encoding=flags[1] if flags else "utf-8")
    pay = NAMES[language][6]
    frame[pay] = frame[pay].str.replace(",", ".").astype(float)
    frame.to_excel(tmp_path / "same.xlsx", index=False)
    (tmp_path / "parts").mkdir()
    frame[:25].to_parquet(tmp_path / "parts" / "a.parquet")
    frame[25:].to_parquet(tmp_path / "parts" / "b.parquet")
    schema = tmp_path / "s.toml"
    assert run("schema", data, "-o", schema, *flags)[0] == 0
    plain = json.loads(run("risk", data, "-s", schema, "--json", *flags)[1])
    for other in ("same.xlsx", "parts"):
        assert json.loads(run("risk", tmp_path / other, "-s", schema, "--json")[1]) == plain


def test_numbers_are_read_as_their_marks_say(run, tmp_path):
    path = tmp_path / "marks.csv"
    path.write_text("a|b|day\n" + "1.234,5|1.000|31.12.1999\n2,5|7|1.2.2003\n" * 10, encoding="utf-8")
    code, out, _ = run("schema", path, "--sep", "|", "--decimal", ",", "--thousands", ".", "--json")
    columns = json.loads(out)["columns"]
    assert code == 0 and columns["day"]["type"] == "categorical"  # two values: too few to speak of dates
    schema = tmp_path / "s.toml"
    schema.write_text(
        'version = 1\n[columns.a]\ntype = "numeric"\nrole = "quasi"\n[columns.b]\ntype = "numeric"\nrole = "quasi"\n'
        '[columns.day]\ntype = "date"\nrole = "quasi"\n'
    )
    marks = ("--sep", "|", "--decimal", ",", "--thousands", ".")
    code, _, errors = run("anonymize", path, "-s", schema, "--k", 10, "-o", tmp_path / "p.csv", *marks)
    assert code == 0, errors
    run("anonymize", path, "-s", schema, "--k", 10, "-o", tmp_path / "bom.csv", "--bom", *marks)
    assert (tmp_path / "bom.csv").read_bytes().startswith(b"\xef\xbb\xbfa,b,day")
    rows = pd.read_csv(tmp_path / "p.csv", dtype=str).drop_duplicates()
    assert sorted(map(tuple, rows.to_numpy())) == [("1234.5", "1000", "1999-12-31"), ("2.5", "7", "2003-02-01")]
    code, _, errors = run("risk", path, "-s", schema, "--sep", "|")
    assert code == 2 and "--decimal" in errors
    assert run("risk", path, "-s", schema, "--sep", ",,")[0] == 2


def test_a_repeated_header_is_said_everywhere(run, tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text("city,age,age\n" + "Ghent,30,31\nBruges,40,41\n" * 6)
    code, out, errors = run("schema", path, "--json")
    assert code == 0
    assert "(columns 2, 3)" in errors and any("(columns 2, 3)" in note for note in json.loads(out)["notes"])
