"""Notes below an answer: every one that arises has words in every language, and names columns as people know them."""

import pytest

from countervail import Column, Phrases, Schema
from countervail.core import constraints
from countervail.core.words.catalogue import LANGUAGES
from countervail.core.words.notes import say_note
from countervail.protect.cfk.moves import relax
from countervail.protect.dp import base as dp_base
from countervail.protect.published import base as published_base

AGE = Column("WifeAge", "numeric", phrases=Phrases(subject="your age", languages={"de": Phrases(subject="Ihr Alter")}))
SCHEMA = Schema((AGE, Column("city")))
LIMITS = [form.format("WifeAge") for form in relax._WORDS.values()]
ARISE = [
    relax.NOTHING_HELPS,
    *(f"There would be one without {limit}." for limit in LIMITS),
    constraints._STUCK.format("WifeAge, city"),
    "1 of 3 different answers were found.",
    dp_base._INVALID,
    published_base._INVALID,
]


@pytest.mark.parametrize("language", [n for n in LANGUAGES if n != "en"])
@pytest.mark.parametrize("text", ARISE)
def test_every_note_that_arises_is_said_in_every_language(text, language):
    said = say_note(text, SCHEMA, language)
    assert said != text and "WifeAge" not in said.replace("„wife age“", "") and "{" not in said
    assert not {"without", "there", "found"} & set(said.lower().split())


def test_limits_are_told_one_by_one_with_the_words_of_their_columns():
    note = f"There would be one without {LIMITS[0]}, {LIMITS[1]} and the forbidden steps of 'city'."
    assert say_note(note, SCHEMA, "en") == (
        "There would be one if this did not hold: your age may not change; your age may change one way only; "
        "your city may not change in some ways."
    )
    assert say_note(note, SCHEMA, "de") == (
        "Es gäbe eine, wenn dies nicht gälte: Ihr Alter bleibt unverändert; "
        "Ihr Alter ändert sich nur in eine Richtung; bestimmte Änderungen sind ausgeschlossen (der Wert für „city“)."
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_note_that_nobody_knows_stays_as_it_is(language):
    assert say_note("Ask at the desk.", SCHEMA, language) == "Ask at the desk."
