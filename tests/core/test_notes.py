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
        "It rests on your age, which nobody asks you to change; and on your age, which nobody asks you to lower; "
        "and on your city, which may not change in just any way."
    )
    assert say_note(note, SCHEMA, "de") == (
        "Den Ausschlag gibt, was niemand von Ihnen zu ändern verlangt: Ihr Alter; und was Sie nicht verringern sollen: "
        "Ihr Alter; und was sich nicht beliebig ändern darf: der Wert für „city“."
    )


def test_limits_of_one_kind_are_told_together_with_what_the_asker_said():
    note = "There would be one without that 'WifeAge' stays as it is and that 'city' keeps its value."
    told = {"WifeAge": 31.0, "city": "Ghent"}
    assert say_note(note, SCHEMA, "en", told) == (
        "It rests on your age (31) and your city (Ghent), which nobody asks you to change."
    )
    assert say_note(note, SCHEMA, "de", told) == (
        "Den Ausschlag gibt, was niemand von Ihnen zu ändern verlangt: "
        "Ihr Alter (derzeit: 31) und der Wert für „city“ (derzeit: „Ghent“)."
    )


def test_a_long_list_of_limits_is_not_read_out():
    note = f"There would be one without {', '.join(LIMITS[:4])} and the forbidden steps of 'city'."
    assert say_note(note, SCHEMA, "en") == "It rests on several things at once that may not be asked of you."


def test_labels_that_were_written_for_a_longer_phrase_do_not_stand_alone():
    words = {
        "had {}": "your scan (a normal scan)",
        "{}": "your scan",  # the label is a whole predicate
        "had {} on the film": "your scan",
    }
    for phrase, said in words.items():
        scan = Column("scan", phrases=Phrases(is_=phrase, subject="your scan", labels={"n": "a normal scan"}))
        note = "There would be one without that 'scan' stays as it is."
        assert say_note(note, Schema((scan,)), "en", {"scan": "n"}) == (
            f"It rests on {said}, which nobody asks you to change."
        )


def test_notes_of_earlier_files_still_have_words():
    note = "There would be one without the direction of 'WifeAge'."
    assert say_note(note, SCHEMA, "en") == "It rests on your age, which may change one way only."


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_note_that_nobody_knows_stays_as_it_is(language):
    assert say_note("Ask at the desk.", SCHEMA, language) == "Ask at the desk."
