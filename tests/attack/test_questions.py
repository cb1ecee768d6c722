"""Attacks that ask in people's names: with a value made up, and to see whether there is an answer at all."""

import numpy as np
import pytest

import countervail as cv
from countervail.attack.asking.asked_inference import _made_up
from countervail.attack.shared.planted import CompletingOracle, RefusingOracle
from countervail.core.rng import generator
from countervail.testing import small_model, small_table

TABLE, CONTROL = small_table(800).split(test_size=0.5, random_state=0)


@pytest.mark.parametrize("name", ["ill", "city", "age", "income"])
def test_one_of_two_values_that_are_made_up_is_not_the_true_one(name):
    first, second = (v.tolist() for v in _made_up(CONTROL.frame[name], 300, generator(0)))
    assert all(a != b for a, b in zip(first, second))
    assert set(first) | set(second) <= set(CONTROL.frame[name])


def test_completed_questions_tell_members_and_no_strangers():
    found = cv.attack.AskedInference(["ill", "income"]).run(CompletingOracle(TABLE), TABLE, CONTROL)
    assert found.members.value > 0.7 > 0.5 > found.controls.value
    assert found.detail["income: members"].value > 0.6 > 0.3 > found.detail["income: controls"].value


def test_answers_that_leave_what_was_asked_or_show_ranges_guess_nothing():
    grouped = cv.CFK(k=10, search="exact", reward="none").fit(TABLE, small_model)
    found = cv.attack.AskedInference(["age"]).run(grouped, TABLE, CONTROL)
    assert found.members.value == found.controls.value == 0


@pytest.mark.parametrize("explainer", [cv.NICE(target="favourable"), cv.CFK(k=10)])
def test_explainers_that_answer_everybody_tell_nothing_by_silence(explainer):
    found = cv.attack.AnsweredMembership(n_targets=150).run(explainer.fit(TABLE, small_model), TABLE, CONTROL)
    assert found.counts[0] == found.counts[2] == 0 and found.members.n > 50


def test_silence_is_read_either_way_and_those_decided_in_favour_of_do_not_count():
    found = cv.attack.AnsweredMembership().run(RefusingOracle(TABLE), TABLE, CONTROL)
    assert found.detail["members who get an answer"].value == 0 < found.detail["strangers who get an answer"].value
    everybody = lambda frame: np.tile([0.0, 1.0], (len(frame), 1))  # noqa: E731
    with pytest.raises(ValueError, match="hardly anybody"):
        cv.attack.AnsweredMembership().run(cv.NICE(target="favourable").fit(TABLE, everybody), TABLE, CONTROL)


def test_bad_parameters_are_named():
    oracle = CompletingOracle(TABLE)
    for attack, says in (
        (cv.attack.AskedInference("ill"), "'secret' parameter of AskedInference"),
        (cv.attack.AskedInference(["nothing"]), "'secret' parameter of AskedInference"),
        (cv.attack.AskedInference(tolerance=1), "'tolerance' parameter of AskedInference"),
        (cv.attack.AnsweredMembership(n_targets=0), "'n_targets' parameter of AnsweredMembership"),
    ):
        with pytest.raises(ValueError, match=says):
            attack.run(oracle, TABLE, CONTROL)
