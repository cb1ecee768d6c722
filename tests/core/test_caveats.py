"""Caveats in other languages: every one that answers bring has words, and what is not known stays as it is."""

import string
from importlib import import_module

import pytest

import countervail as cv
from countervail.cli.shared.common import pointing_note
from countervail.cli.shared.epsilon import check_private
from countervail.cli.shared.reading import EACH_ROW
from countervail.core.words.catalogue import LANGUAGES, catalogue
from countervail.core.words.caveats import say_caveat
from countervail.explain import base, nice
from countervail.protect import _classes
from countervail.protect.cfk import cfk
from countervail.protect.dp import base as dp_base
from countervail.protect.dp import budgeted, noisy
from countervail.testing import small_model, small_table

explain_command = import_module("countervail.cli.explain")
ARISE = {
    "own": cfk._OWN,
    "unheard": base.UNHEARD,
    "stretched": nice._STRETCHED.format("debt, income"),
    "noise_seeded": dp_base.SEEDED,
    "chance_seeded": _classes.SEEDED,
    "drawn_again": noisy._RETRIED,
    "beside": budgeted._BESIDE,
    "trained": explain_command._TRAINED,
    "unseen": explain_command._UNSEEN.format("debt, income"),
    "memorised": check_private("rows.csv", None)[0],
    "pointing": pointing_note(["a", "b"]),
    "each_row": f"Note: {EACH_ROW}",
}


@pytest.mark.parametrize("language", [n for n in LANGUAGES if n != "en"])
@pytest.mark.parametrize("name", ARISE)
def test_what_answers_bring_is_said_in_every_language(name, language):
    text = ARISE[name]
    said = say_caveat(text, language)
    assert said != text and say_caveat(text, "en") == text
    places = {p for _, p, _, _ in string.Formatter().parse(catalogue("en").templates[f"caveat.{name}"]) if p}
    assert not places or "debt, income" in said or "a, b" in said


@pytest.mark.parametrize("language", [n for n in LANGUAGES if n != "en"])
def test_what_depends_on_table_and_model_is_said_in_every_language(language):
    table = small_table()
    bare = cv.Table(table.frame, table.schema.with_roles(identifier=[]))
    fitted = cv.CFK(k=5).fit(table, small_model)
    texts = [explain_command._kept(fitted, t, None)[0] for t in (table, bare)]
    with pytest.warns(cv.ModelWarning):
        inverted = cv.NICE().fit(table, lambda rows: small_model(rows)[:, ::-1])
    texts += inverted.caveats_
    said = [say_caveat(text, language) for text in texts]
    assert len(said) == 3 and not set(said) & set(texts) and "NICE" in said[2] and "'ok'" in said[2]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_caveat_that_no_catalogue_knows_stays_as_it_is(language):
    assert say_caveat("Mind the gap.", language) == "Mind the gap."
