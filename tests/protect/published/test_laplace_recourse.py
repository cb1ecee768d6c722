"""Recourse by noisy predictions: the noise of each, what it does to answers, and what leaves without any."""

import warnings

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import registry
from countervail.testing import explainer_checks, small_model, small_table

P = cv.published


def fitted(made, table, model=small_model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        return made.fit(table, model)


def by_hand():
    frame = pd.DataFrame({"income": np.arange(101), "ok": np.where(np.arange(101) > 50, "yes", "no")})
    return cv.Table.from_frame(frame, target="ok", favourable="yes", domains={"income": (0, 100)})


def rich(rows):
    return np.where(rows["income"] > 50, "yes", "no")


def certain(rows):
    yes = np.where(rows["income"] > 50, 0.9, 0.2)
    return np.column_stack([1 - yes, yes])


@pytest.mark.parametrize("model", [rich, certain])
def test_without_noise_the_nearest_valid_row_answers(model):
    found = fitted(P.LaplaceRecourse(1e9, random_state=0), by_hand(), model).explain(pd.DataFrame({"income": [10]}))
    assert found.counterfactuals["income"].tolist() == [60]


def test_every_prediction_that_the_search_looks_at_gets_noise_of_its_own(monkeypatch):
    asked = []

    class Silent:
        def laplace(self, at, scale, size):
            asked.append((at, scale, size))
            return np.zeros(size)

    monkeypatch.setattr("countervail.protect.published.base.generator", lambda _: Silent())
    made = fitted(P.LaplaceRecourse(4.0, steps=1), by_hand(), certain)
    made.explain(pd.DataFrame({"income": [10, 20]}))
    # Two people as they are, then eleven places for each of them.
    assert asked == [(0.0, 0.25, 2), (0.0, 0.25, 22)]


def test_a_small_budget_undoes_answers_and_another_call_draws_anew():
    table, asked = small_table(300), small_table(60, seed=9)
    made = fitted(P.LaplaceRecourse(1.0), table)
    first, second = made.explain(asked), made.explain(asked)
    assert not first.counterfactuals.equals(second.counterfactuals)
    assert first.found.sum() < fitted(P.LaplaceRecourse(1e6), table).explain(asked).found.sum()


def test_who_is_answered_at_all_is_told_without_noise():
    """By hand: one person more in the training data turns the asker's decision, and every call says so."""
    asker = pd.DataFrame({"income": [50]})

    def statuses(training):
        middle = np.mean(training)
        made = fitted(P.LaplaceRecourse(0.01), by_hand(), lambda rows: np.where(rows["income"] > middle, "yes", "no"))
        return {status for _ in range(20) for status in made.explain(asker).status}

    assert statuses([40, 60, 0]) == {"already_favourable"}
    assert "already_favourable" not in statuses([40, 60])


@pytest.mark.parametrize("kind", [P.LaplaceRecourse, P.FunctionalPrototypes, P.RobustSVM, P.PrivRecourse])
def test_a_model_that_refuses_every_public_row_answers_nobody(kind):
    made = fitted(kind(50.0), by_hand(), lambda rows: np.where(rows["income"] > 1000, "yes", "no"))
    assert set(made.explainer_.table_.target) == {"yes", "no"}  # an explainer is fitted to both
    assert not made.explain(pd.DataFrame({"income": [10, 90]})).found.any()


def test_no_promise_comes_with_it_and_it_says_what_fails():
    with pytest.warns(cv.PrivacyWarning, match="given the whole epsilon"):
        made = P.LaplaceRecourse().fit(small_table(), small_model)
    for promise in (made.guarantee(), made.explain(small_table(3)).guarantee):
        assert isinstance(promise, cv.NoGuarantee) and "without noise" in promise.why
    assert registry.published()["published-laplace-recourse"] is P.LaplaceRecourse


@pytest.mark.parametrize("example", P.LaplaceRecourse.examples(), ids=str)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_the_contract_of_explainers_holds(example):
    for check in explainer_checks(example):
        check(example)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (P.LaplaceRecourse(0), "'epsilon' parameter of LaplaceRecourse"),
        (P.LaplaceRecourse(near=-1), "'near' parameter of LaplaceRecourse must be a number of at least 0"),
        (P.LaplaceRecourse(steps=0), "'steps' parameter of LaplaceRecourse"),
        (P.LaplaceRecourse(missing=["shoe"]), "'missing' parameter of LaplaceRecourse"),
    ],
)
def test_bad_parameters_are_named(made, words):
    with pytest.raises(cv.ParameterError, match=words):
        fitted(made, small_table())
