"""Words in a schema: written as tables, read back as they were, refused where they are none."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail import Column, Phrases, Schema, SchemaError
from countervail.core.errors import DataNotFoundError
from countervail.core.files.schema_file import read_schema, write_schema
from countervail.core.words.catalogue import LANGUAGES

TOML = """
version = 1

[columns.employment]
type = "ordinal"
levels = ["<1", "1<=X<4"]
unit = "years"
phrases = { is = "had worked for {}", subject = "your time in the job", numbers = "plain" }

[columns.employment.labels]
"1<=X<4" = "1 to 4 years"

[columns.employment.languages.de]
subject = "Ihre Zeit im Beruf"
unit = "Jahre"

[columns.employment.languages.de.labels]
"1<=X<4" = "1 bis 4 Jahre"
"""

text = st.text(max_size=8)
labels = st.dictionaries(text, text, max_size=3)
own = st.builds(Phrases, text, text, text, text, labels, st.sampled_from(["", "plain"]), text)
phrases = st.builds(
    lambda words, languages: replace(words, unit="", languages=languages),
    own,
    st.dictionaries(st.sampled_from(LANGUAGES), own, max_size=2),
)


def test_phrases_labels_and_languages_are_read(tmp_path):
    (tmp_path / "s.toml").write_text(TOML, encoding="utf-8")
    words = read_schema(tmp_path / "s.toml")["employment"].phrases
    assert words == Phrases(
        is_="had worked for {}",
        subject="your time in the job",
        labels={"1<=X<4": "1 to 4 years"},
        numbers="plain",
        languages={"de": Phrases(subject="Ihre Zeit im Beruf", labels={"1<=X<4": "1 bis 4 Jahre"}, unit="Jahre")},
    )


@given(phrases)
def test_words_survive_their_dictionary(words):
    schema = Schema((Column("a", phrases=words),))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert hash(schema["a"]) == hash(Schema.from_dict(schema.to_dict())["a"])


def test_words_survive_their_file(tmp_path):
    schema = cv.load("german_credit").schema
    write_schema(schema, tmp_path / "s.toml")
    assert read_schema(tmp_path / "s.toml") == schema


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"phrases": ["more"]}, "must be a table with the keys more, less, is, subject and numbers"),
        ({"phrases": {"most": "{}"}}, r"Unknown phrases for column 'a': \['most'\]"),
        ({"phrases": {"more": 3}}, "must be text"),
        ({"phrases": {"numbers": "roman"}}, "must be 'plain'"),
        ({"labels": ["x"]}, "The labels of column 'a' must be a table"),
        ({"labels": {"x": 3}}, "must be text"),
        ({"languages": "de"}, "must be tables"),
        ({"languages": {"de": "x"}}, "must be tables"),
        ({"languages": {"tlh": {}}}, r"Unknown languages for column 'a': \['tlh'\]. Known: \['de', 'en', 'fr', 'nl'\]"),
        ({"languages": {"de": {"most": "{}"}}}, r"Unknown phrases for column 'a': \['most'\]"),
        ({"languages": {"de": {"unit": 3}}}, "texts and labels only"),
        ({"languages": {"de": {"languages": {}}}}, "texts and labels only"),
        ({"unit": 3}, "The unit of column 'a' must be text"),
    ],
)
def test_what_is_no_word_is_refused(entry, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"version": 1, "columns": {"a": entry}})


def test_every_value_of_german_credit_has_words_in_every_language():
    table = cv.load("german_credit")
    for column in table.schema:
        if column.type == "numeric":
            continue
        values = set(table.frame[column.name].dropna().unique()) | set(column.levels or ())
        for language in LANGUAGES:
            assert values <= column.phrases.spoken(language).labels.keys(), column.name
        for words in column.phrases.languages.values():
            assert column.phrases.labels.keys() == words.labels.keys(), column.name


OTHERS = set(LANGUAGES) - {"en"}
WORDED = sorted(p.name.removesuffix(".toml") for p in (files("countervail.data") / "bundled" / "words").iterdir())


@pytest.mark.parametrize("name", WORDED)
def test_registered_sets_with_words_have_them_in_every_language(name):
    words = read_schema(str(files("countervail.data") / "bundled" / "words" / f"{name}.toml"))
    for column in words:
        assert column.phrases.subject and column.phrases.languages.keys() == OTHERS, column.name
        for spoken in column.phrases.languages.values():
            assert column.phrases.labels.keys() == spoken.labels.keys() and spoken.subject, column.name
    try:
        table = cv.load(name)
    except DataNotFoundError:
        pytest.skip(f"{name} is not on this machine")
    assert {c.name for c in words} == set(table.schema.names())
    for column in table.schema:
        if column.type != "numeric" and column.phrases.labels:
            assert set(table.frame[column.name].dropna().unique()) <= column.phrases.labels.keys(), column.name


# A phrase begins or ends with its verb, so as to fit behind "If you", "Si vous", "Wenn Sie", "Als u".
FIRST = {
    "en": "{} did were had asked paid lived owned worked gained lost used owed still earned",
    "fr": "n\u2019aviez n\u2019étiez aviez étiez demandiez payiez possédiez habitiez travailliez gagniez "
    "perdiez utilisiez deviez restiez",
}
LAST = {
    "de": "hätten wären arbeiteten zahlten wohnten besäßen müssten nutzten schuldeten verdienten",
    "nl": "had was deed werkte woonde bezat betaalde gebruikte aangevraagd betaald geopend zorgen gedaan "
    "gekregen gehad werken verdiende",
}


def every_phrase(language):
    """The phrases of people's columns in one language; where the labels say it all, these."""
    folder = files("countervail.data") / "bundled"
    paths = [folder / "german_credit.toml", *(folder / "words" / f"{n}.toml" for n in WORDED)]
    goals = {"class", "income", "default_payment_next_month", "heart_disease", "RiskPerformance"}
    goals |= {"ContraceptiveMethodUsed", "SeriousDlqin2yrs", "PINCP_over_50K"}
    for column in (c for path in paths for c in read_schema(str(path)) if c.name not in goals):
        words = column.phrases.spoken(language)
        whole = words.labels.values() if words.is_ == "{}" else [words.is_]
        yield from ((column.name, text) for text in (words.more, words.less, *whole) if text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_phrase_of_the_data_sets_fits_into_its_sentence(language):
    for name, text in every_phrase(language):
        verb = text.split()[0] if language in FIRST else text.split()[-1]
        assert verb in (FIRST | LAST)[language].split(), (name, text)
        assert text.count("{}") == ("{}" in text) and text.count("|") == len(re.findall(r"[^\s|]+\|[^\s|]+", text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_phrases_of_the_data_sets_are_whole_words(language):
    for name, text in every_phrase(language):
        assert text == text.strip() and "  " not in text and not text.endswith((".", ",")), (name, text)
