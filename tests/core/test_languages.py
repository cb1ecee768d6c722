"""Catalogues: the same places in every language, and sentences that a reader of each would write."""

import re
import string
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countervail import Column, Explanations, NoGuarantee, ParameterError, Phrases, Schema
from countervail.core.explanation import STATUSES
from countervail.core.phrase import sentence
from countervail.core.words.catalogue import LANGUAGES, catalogue

INCOME = Column(
    "income",
    "numeric",
    domain=(0, 100_000),
    phrases=Phrases(
        subject="your income",
        languages={
            "de": Phrases(subject="Ihr Einkommen", unit="Euro"),
            "fr": Phrases(subject="votre revenu", unit="euro|euros"),
            "nl": Phrases(subject="uw inkomen", unit="euro"),
        },
    ),
    unit="euros",
)
AGE = Column(
    "age",
    "numeric",
    "quasi",
    unit="years",
    phrases=Phrases(
        "{} year|years older",
        "{} year|years younger",
        languages={
            "de": Phrases("{} Jahr|Jahre älter wären", "{} Jahr|Jahre jünger wären"),
            "fr": Phrases("aviez {} an|ans de plus", "aviez {} an|ans de moins"),
            "nl": Phrases("{} jaar ouder was", "{} jaar jonger was"),
        },
    ),
)
HOME = Column(
    "housing",
    phrases=Phrases(
        labels={"own": "a home of your own", "rent": "a rented home"},
        subject="your home",
        languages={"de": Phrases(subject="Ihre Wohnung", labels={"own": "Eigentum", "rent": "gemietet"})},
    ),
)
DEBT = Column("debt_ratio", "numeric")
PHONE = Column("phone")
OK = Column(
    "ok",
    role="target",
    phrases=Phrases(
        is_="your loan would be {}",
        labels={"yes": "granted"},
        languages={
            "de": Phrases(is_="würde Ihr Kredit {}", labels={"yes": "bewilligt"}),
            "fr": Phrases(labels={"yes": "favorable"}),
            "nl": Phrases(labels={"yes": "gunstig"}),
        },
    ),
)
SCHEMA = Schema((INCOME, AGE, HOME, DEBT, PHONE, OK), ("yes",))


def span(low, high):
    return pd.Interval(low, high, closed="both")


def places(template):
    return sorted(name for _, name, _, _ in string.Formatter().parse(template) if name is not None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_has_the_places_of_the_english_one(language):
    here, english = catalogue(language), catalogue("en")
    assert here.templates.keys() == english.templates.keys()
    assert {n: places(t) for n, t in here.templates.items()} == {n: places(t) for n, t in english.templates.items()}
    assert here.units.keys() == english.units.keys() and len(here.months) == 12
    assert all(unit.count("|") <= 1 for unit in here.units.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_status_has_words(language):
    assert {f"status.{s}" for s in STATUSES if s != "found"} <= catalogue(language).templates.keys()


@pytest.mark.parametrize("language", [n for n in LANGUAGES if n != "en"])
def test_no_template_was_left_in_english(language):
    here, english = catalogue(language).templates, catalogue("en").templates
    same = {n for n in here if here[n] == english[n] and re.search("[a-z]{3}", re.sub(r"{\w+}", "", here[n]))}
    assert same == set()


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "-1,234,567.5"), ("de", "-1.234.567,5"), ("fr", "-1\u202f234\u202f567,5"), ("nl", "-1.234.567,5")],
)
def test_numbers_are_written_as_the_language_does(language, text):
    assert catalogue(language).number(Decimal("-1234567.50")) == text
    assert catalogue(language).number(Decimal("1e3"), grouped=False) == "1000"


# What is asked of a person, and how people who speak the language put it.
CASES = [
    ({"income": 2100}, {"income": span(6000, 100_000)}),
    ({"income": 2100}, {"income": 1099}),
    ({"income": 2100}, {"income": span(3000, 4000.5)}),
    ({"age": 22}, {"age": 21}),
    ({"age": 22, "income": 10}, {"age": span(25, 30), "income": 1}),
    ({"housing": "rent"}, {"housing": "own"}),
    ({"debt_ratio": 1.5, "phone": False}, {"debt_ratio": 0.25, "phone": True}),
    ({"phone": None}, {"phone": frozenset(["a", "b", "c"])}),
    ({"debt_ratio": 0.25}, {"debt_ratio": None}),
    ({"age": 20}, {"age": 20}),
]
SAID = tomllib.loads((Path(__file__).parents[1] / "golden" / "sentences.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_read_as_people_write_them(language):
    assert [sentence(a, b, SCHEMA, "yes", language) for a, b in CASES] == SAID[language]


def answers():
    factuals = pd.DataFrame({"age": [20, 20, 20, 30, 40]})
    cells = pd.DataFrame({"age": pd.Series([25, 28, 25, np.nan, np.nan], dtype=object)})
    status = ["found", "found", "found", "already_favourable", "no_counterfactual"]
    before, after = pd.Series(["no"] * 3 + ["yes", "no"]), pd.Series(["yes"] * 3 + [None] * 2)
    promise = NoGuarantee("it is a test")
    return Explanations(
        factuals, cells, pd.Series(status), before, after, SCHEMA, promise,
        query=np.array([0, 0, 0, 1, 2]), pureness=np.array([1, 0.999, 1, np.nan, np.nan]),
    )  # fmt: skip


def test_answers_come_in_the_language_that_was_asked_for():
    assert answers().to_text("de").splitlines() == [
        "Wenn Sie 5 Jahre älter wären (25 statt 20), würde Ihr Kredit bewilligt.",
        "Oder: Wenn Sie 8 Jahre älter wären (28 statt 20), würde Ihr Kredit bewilligt.",
        "  Das gilt für 99 % der Kombinationen dieser Werte.",
        "Die Entscheidung ist schon günstig.",
        "Wir haben nichts gefunden, was Sie ändern könnten, um eine andere Entscheidung zu erreichen.",
    ]


def test_of_several_answers_each_sentence_is_said_once():
    assert [len(said) for said in answers().texts()] == [2, 1, 1]
    assert answers().to_text().count("5 years older") == 1
    assert answers().to_text().splitlines()[1].startswith("Or: if you were 8 years older")


def test_an_unknown_language_is_refused_with_those_that_there_are():
    with pytest.raises(ParameterError, match=r"one of \['de', 'en', 'fr', 'nl'\]. Got 'it'"):
        answers().to_text("it")


def test_labels_that_say_it_all_stay_in_their_language():
    phone = Column("phone", phrases=Phrases(is_="{}", labels={"yes": "had a telephone"}))
    schema = replace(SCHEMA, columns=(phone,))
    assert (
        sentence({"phone": "no"}, {"phone": "yes"}, schema, "ok") == "If you had a telephone, the decision would be ok."
    )
    assert "had a" not in sentence({"phone": "no"}, {"phone": "yes"}, schema, "ok", "de")
