"""Columns are recognised by what they are called, in five languages, and by what their cells are."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.data.column_words import suggests
from countervail.data.contents import form_of
from countervail.data.propose import propose_schema

RNG = np.random.default_rng(0)
N = 60
FAMILIES = ["Müller", "Dubois", "García", "de Vries", "Smith", "O'Neill", "Schäfer", "Petit", "Janssen", "Brown"]
GIVEN = ["Anna", "Peter", "Marie", "Jean", "Carmen", "Luis", "Sanne", "Daan", "John", "Mary", "Wolfgang", "Chloe"]


def dates(form):
    days = pd.to_datetime("1940-01-01") + pd.to_timedelta(RNG.integers(0, 25_000, N), "D")
    return pd.Series(days.strftime(form))


def iban(country, digits):
    body = "".join(RNG.choice(list("0123456789"), digits))
    number = int("".join(str(int(c, 36)) for c in body + country + "00"))
    return f"{country}{98 - number % 97:02d}{body}"


CELLS = {
    "dates": ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%Y-%m-%dT%H:%M:%S", "%d %b %Y", "%B %d, %Y"],
    "e-mail addresses": [f"{g}.{i}@mail.example" for i, g in enumerate(GIVEN * 5)],
    "telephone numbers": [f"+49 30 {RNG.integers(10**6, 10**7)}" for _ in range(N)],
    "accounts (IBAN)": [iban("DE", 18) for _ in range(N)],
    "postcodes": [f"{RNG.integers(1000, 9999)} {a}{b}" for a, b in RNG.choice(list("ABCDEFG"), (N, 2))],
    "names": [f"{g} {f}" for g in GIVEN[:6] for f in FAMILIES],
}


@pytest.mark.parametrize("form", CELLS["dates"])
def test_dates_of_any_common_order_are_dates(form):
    assert form_of(dates(form)) == "dates"


@pytest.mark.parametrize("form", [f for f in CELLS if f != "dates"])
def test_cells_are_known_by_their_form(form):
    assert form_of(pd.Series(CELLS[form])) == form


def test_names_may_stand_in_either_order():
    assert form_of(pd.Series([f"{f}, {g}" for g in GIVEN[:5] for f in FAMILIES])) == "names"


@pytest.mark.parametrize(
    "cells",
    [
        ["own", "rent", "for free", "with parents", "other", "unknown"],
        [f"{i}.5" for i in range(50)],
        [str(i) for i in range(10_000, 10_050)],
        ["New York", "San Francisco", "Los Angeles", "Den Haag", "Le Havre", "Bad Homburg", "Santa Cruz"],
        ["20-29", "30-39", "40-49", "50-59", "60-69", "70-79"],
        ["1-2-3", "4-5-6", "a"],
        [],
    ],
    ids=["labels", "fractions", "numbers", "cities", "bands", "few", "none"],
)
def test_other_cells_have_no_form(cells):
    assert form_of(pd.Series(cells, dtype=object)) == ""


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *[(n, "direct") for n in ("customer_id", "Vorname", "Nachname", "nom", "Prénom", "apellidos", "achternaam")],
        *[(n, "direct") for n in ("eMail", "Telefonnummer", "teléfono", "IBAN", "Kundennummer", "first name")],
        *[
            (n, "quasi")
            for n in ("Geburtsdatum", "date_naissance", "fecha de nacimiento", "geboortedatum", "birthDate")
        ],
        *[(n, "quasi") for n in ("PLZ", "code postal", "código_postal", "postcode", "ZIP Code", "Wohnort", "ciudad")],
        *[(n, "quasi") for n in ("Geschlecht", "sexe", "género", "geslacht", "Familienstand", "état civil", "beroep")],
        *[(n, "sensitive") for n in ("Diagnose", "salaire", "Einkommen", "enfermedad", "inkomen", "diagnosis")],
        *[(n, "sensitive") for n in ("icd10", "ICD-10 code", "diagnoses", "comorbidities")],
        *[(n, "target") for n in ("bewilligt", "Décision", "aprobado", "toegekend", "loan_granted")],
        *[(n, "fixed") for n in ("Geschlecht", "nationalité", "sexo", "geboortejaar", "Behinderung")],
    ],
)
def test_names_of_columns_are_understood_in_five_languages(name, what):
    assert suggests(name, what)


@pytest.mark.parametrize("name", ["agent", "package", "percentage", "stage", "message", "landing", "identity_score"])
def test_words_inside_words_say_nothing(name):
    assert not suggests(name, "direct") and not suggests(name, "quasi")


def test_an_export_in_german_is_read_as_an_officer_would():
    frame = pd.DataFrame(
        {
            "Kunde": CELLS["names"],
            "Kontakt": CELLS["e-mail addresses"],
            "Bankverbindung": CELLS["accounts (IBAN)"],
            "Rückruf": CELLS["telephone numbers"],
            "Stichtag": dates("%d.%m.%Y"),
            "PLZ": RNG.integers(10_000, 99_999, N).astype(str),
            "Geschlecht": RNG.choice(["m", "w"], N),
            "Einkommen": RNG.integers(1_000, 9_000, N),
            "Bemerkung": [f"rief am Montag an und fragte nach Vertrag {i}" for i in range(N)],
            "Punkte": RNG.integers(0, 9, N),
        }
    )
    proposed = propose_schema(frame)
    roles = {c.name: c.role for c in proposed.schema}
    naming = ("Kunde", "Kontakt", "Bankverbindung", "Rückruf", "Bemerkung")
    assert all(roles[n] == "identifier" for n in naming), roles
    assert all(roles[n] == "quasi" for n in ("Stichtag", "PLZ", "Geschlecht")), roles
    assert roles["Einkommen"] == "sensitive" and roles["Punkte"] == "attribute"
    assert not any(name in why for why in proposed.reasons.values() for name in CELLS["names"])


def test_times_are_something_that_others_may_know():
    frame = pd.DataFrame({"t": pd.to_datetime("2020-01-01") + pd.to_timedelta(range(40), "D"), "x": range(40)})
    assert propose_schema(frame).schema["t"].role == "quasi"


def test_whether_there_is_a_telephone_is_no_telephone():
    assert propose_schema(cv.load("german_credit").frame).schema["own_telephone"].role != "identifier"


@pytest.mark.parametrize(
    "name", ["Jahresgehalt", "Erkrankung", "Vorerkrankungen", "Bruttoeinkommen", "Mietschulden", "bruto_jaarsalaris"]
)
def test_words_that_are_written_together_are_known_by_their_end(name):
    assert suggests(name, "sensitive")


def test_amounts_that_hardly_two_people_share_are_no_identifiers():
    frame = pd.DataFrame({"age": np.arange(N) % 9, "credit_amount": RNG.permutation(10**4)[:N]})
    frame = frame.assign(loan_number=RNG.permutation(10**6)[:N])
    proposed = propose_schema(frame).schema
    assert proposed["credit_amount"].role != "identifier"
    assert proposed["loan_number"].role == "identifier"


def test_remarks_are_free_text_by_their_name_unless_they_are_a_few_labels():
    frame = pd.DataFrame({"Bemerkung": [f"Anruf {i % 9}" for i in range(N)], "notes": ["a", "b"] * (N // 2)})
    proposed = propose_schema(frame.assign(age=range(N))).schema
    assert proposed["Bemerkung"].role == "identifier"
    assert proposed["notes"].role == "attribute"


@pytest.mark.parametrize("name", ["bewilligt", "décision", "Entscheidung", "aprobado", "beslissing"])
def test_a_decision_is_the_target_in_five_languages(name):
    proposed = propose_schema(pd.DataFrame({"alter": range(N), name: ["ja", "nein"] * (N // 2)})).schema
    assert proposed.target == name


def test_the_proposed_range_of_dates_is_whole_years():
    days = pd.Series(pd.date_range("1951-05-20", periods=N, freq="97D").strftime("%d.%m.%Y"))
    domain = propose_schema(pd.DataFrame({"Geburtsdatum": days})).schema["Geburtsdatum"].domain
    first, last = (str(np.datetime64(int(d), "D")) for d in domain)
    assert first.endswith("-01-01") and last.endswith("-12-31") and first < "1951-05-20"
    ends = pd.Series(["01.01.0001", "31.12.9999", *days])
    domain = propose_schema(pd.DataFrame({"Geburtsdatum": ends})).schema["Geburtsdatum"].domain
    assert [str(np.datetime64(int(d), "D")) for d in domain] == ["0001-01-01", "9999-12-31"]


def test_a_target_says_where_the_good_labels_are_named():
    proposal = propose_schema(pd.DataFrame({"age": range(N), "granted": ["yes", "no"] * (N // 2)}), "granted")
    assert 'favourable = ["..."]' in proposal.reasons["granted"]


@pytest.mark.parametrize("column", ["customer", "Kunde", "x"])
@pytest.mark.parametrize(
    "codes",
    [
        [f"K{i:05}" for i in range(1, 601)] + [f"K{i:05}" for i in range(1, 349)],
        [f"P{i}" for i in range(75)] * 10,
        [f"PAT-{i}" for i in np.random.default_rng(0).integers(10_000, 99_999, 80)] * 5,
    ],
    ids=["customers", "running numbers", "long numbers"],
)
def test_codes_of_people_are_identifiers_though_people_have_several_rows(column, codes):
    frame = pd.DataFrame({column: codes, "age": np.arange(len(codes)) % 50})
    assert propose_schema(frame).schema[column].role == "identifier"


@pytest.mark.parametrize(
    ("codes", "role"),
    [
        ([f"D-{i}" for i in np.random.default_rng(0).integers(10_000, 99_999, 80)] * 5, "quasi"),
        ([f"A-{i}" for i in np.random.default_rng(0).integers(1_000, 9_999, 80)] * 5, "quasi"),
        ([f"W{i}" for i in range(8)] * 50, "attribute"),
        ([f"R{i}" for i in range(30)] * 50, "attribute"),
        ([f"{a}{i}" for a in "ABCDEFGHIJ" for i in range(10, 30)] * 3, "attribute"),
    ],
    ids=["German postcodes", "Austrian postcodes", "wards", "rooms", "classifications"],
)
def test_codes_of_places_and_kinds_are_no_identifiers(codes, role):
    frame = pd.DataFrame({"x": codes, "age": np.arange(len(codes)) % 50})
    assert propose_schema(frame).schema["x"].role == role
