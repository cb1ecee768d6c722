"""Words in a schema: written as tables, read back as they were, refused where they are none."""

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


def test_every_value_of_german_credit_has_words_in_english_and_german():
    table = cv.load("german_credit")
    for column in table.schema:
        if column.type == "numeric":
            continue
        values = set(table.frame[column.name].dropna().unique()) | set(column.levels or ())
        for language in ("en", "de"):
            assert values <= column.phrases.spoken(language).labels.keys(), column.name
        assert column.phrases.labels.keys() == column.phrases.languages["de"].labels.keys()


WORDED = sorted(p.name.removesuffix(".toml") for p in (files("countervail.data") / "bundled" / "words").iterdir())


@pytest.mark.parametrize("name", WORDED)
def test_registered_sets_with_words_have_them_in_english_and_german(name):
    words = read_schema(str(files("countervail.data") / "bundled" / "words" / f"{name}.toml"))
    for column in words:
        german = column.phrases.languages["de"]
        assert column.phrases.labels.keys() == german.labels.keys() and column.phrases.subject and german.subject
    try:
        table = cv.load(name)
    except DataNotFoundError:
        pytest.skip(f"{name} is not on this machine")
    assert {c.name for c in words} == set(table.schema.names())
    for column in table.schema:
        if column.type != "numeric" and column.phrases.labels:
            assert set(table.frame[column.name].dropna().unique()) <= column.phrases.labels.keys(), column.name
