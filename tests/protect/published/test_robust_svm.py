"""A private support vector machine: least weights, how far one record moves them, sure answers, and the label."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail import registry
from countervail.protect.published.perturbed.svm import least_weights, noise_quantile, noisy, weight_reach
from countervail.testing import explainer_checks, small_model, small_table

P = cv.published


def fitted(made, table, model=small_model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        return made.fit(table, model)


def cloud(seed, n=25):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1)
    return points, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def plain_loss(w, points, sides, ridge):
    """The smooth hinge of slope 1, point by point, and the ridge."""
    total = 0.0
    for x, y in zip(points, sides):
        m = y * float(x @ w)
        total += 0 if m > 1.5 else 1 - m if m < 0.5 else (1.5 - m) ** 2 / 2
    return total / len(points) + ridge * float(w @ w) / 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_weights_nearby_lose_less(seed):
    points, sides = cloud(seed)
    w = least_weights(points, sides, 0.1)
    least = plain_loss(w, points, sides, 0.1)
    rng = np.random.default_rng(seed)
    assert all(
        plain_loss(w + step * rng.normal(size=3), points, sides, 0.1) >= least - 1e-12 for step in (1e-3, 0.1, 1)
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1, 1.0]))
def test_another_record_in_ones_place_moves_the_weights_by_no_more_than_the_noise_is_made_for(seed, ridge):
    points, sides = cloud(seed)
    before = least_weights(points, sides, ridge)
    points[0], sides[0] = -points[0], sides[0]
    moved = np.linalg.norm(least_weights(points, sides, ridge) - before)
    assert moved <= weight_reach(len(points), ridge) + 1e-6


def test_noise_has_the_length_and_no_direction():
    rng = np.random.default_rng(0)
    drawn = np.stack([noisy(np.zeros(3), 0.5, rng) for _ in range(20_000)])
    assert np.linalg.norm(drawn, axis=1).mean() == pytest.approx(3 * 0.5, rel=0.02)
    assert np.abs(drawn.mean(axis=0)).max() < 0.03


@pytest.mark.parametrize(("coordinates", "confidence"), [(1, 0.9), (2, 0.95), (7, 0.8), (30, 0.99)])
def test_the_quantile_is_that_of_drawn_noise(coordinates, confidence):
    rng = np.random.default_rng(1)
    along = np.stack([noisy(np.zeros(coordinates), 2.0, rng) for _ in range(40_000)])[:, 0]
    assert (along <= noise_quantile(coordinates, 2.0, confidence)).mean() == pytest.approx(confidence, abs=0.006)


def test_half_a_confidence_asks_for_no_distance():
    assert noise_quantile(5, 1.0, 0.5) == pytest.approx(0.0, abs=1e-6)


def by_hand():
    """Everybody above 50 is accepted; nothing else counts."""
    frame = pd.DataFrame({"income": np.tile(np.arange(101), 8)})
    frame["ok"] = np.where(frame["income"] > 50, "yes", "no")
    return cv.Table.from_frame(frame, target="ok", favourable="yes", domains={"income": (0, 100)})


def rich(rows):
    return np.where(rows["income"] > 50, "yes", "no")


def test_the_surer_an_answer_must_be_the_further_it_lies():
    """By hand: the boundary is near 50, answers are tens, and more confidence or less budget asks for more."""
    asker = pd.DataFrame({"income": [10]})

    def answered(epsilon, confidence):
        made = fitted(P.RobustSVM(epsilon, ridge=0.001, confidence=confidence, random_state=1), by_hand(), rich)
        return made.explain(asker).counterfactuals["income"].tolist()[0]

    assert answered(1e6, 0.5) == answered(1e6, 0.99) == 60
    assert [answered(5.0, sure) for sure in (0.5, 0.999)] == [60, 80]


def test_where_no_row_is_sure_nobody_is_answered():
    found = fitted(P.RobustSVM(0.01, confidence=1 - 1e-7, random_state=0), small_table(300)).explain(
        small_table(30, seed=3)
    )
    assert not found.found.any() and "no_counterfactual" in set(found.status)


@pytest.mark.parametrize("target", ["favourable", "other"])
def test_every_answer_lies_beyond_the_noisy_boundary_and_the_model_agrees(target):
    made = fitted(P.RobustSVM(100.0, target=target), small_table(400))
    asked = small_table(60, seed=9)
    found = made.explain(asked)
    rows = found.counterfactuals[found.found]
    said = np.array(["no", "yes"])[small_model(rows).argmax(axis=1)]
    assert found.found.any() and (said == np.asarray(found.after)[found.found]).all()
    points = made._points(made.grid_.codes(rows))
    side = np.where(said == "yes", 1, -1)
    assert (side * (points @ made.weights_) >= made.unsure_ * np.linalg.norm(points, axis=1) - 1e-9).all()


def test_a_sure_answer_holds_for_the_machine_without_noise_as_often_as_it_says():
    table, asked = small_table(300), small_table(40, seed=9)
    exact = fitted(P.RobustSVM(1e9, confidence=0.5), table).weights_
    held = []
    for seed in range(12):
        made = fitted(P.RobustSVM(15.0, confidence=0.9, random_state=seed), table)
        found = made.explain(asked)
        held += list(made._points(made.grid_.codes(found.counterfactuals[found.found])) @ exact >= 0)
    assert len(held) > 100 and np.mean(held) >= 0.9


def test_where_noise_leads_the_search_the_stated_confidence_is_not_kept():
    """Eleven of twelve columns say nothing, and the noisy weights choose rows by them all."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 11, 400) for i in range(12)})

    def model(rows):
        return np.where(rows["c0"] >= 9, "yes", "no")

    domains = dict.fromkeys(frame.columns, (0, 10))
    table = cv.Table.from_frame(frame.assign(ok=model(frame)), target="ok", favourable="yes", domains=domains)
    exact = fitted(P.RobustSVM(1e9, confidence=0.5), table, model).weights_
    held = []
    for seed in range(8):
        made = fitted(P.RobustSVM(0.5, confidence=0.95, random_state=seed), table, model)
        found = made.explain(frame.head(40))
        if found.found.any():
            held += list(made._points(made.grid_.codes(found.counterfactuals[found.found])) @ exact >= 0)
    assert len(held) > 30 and np.mean(held) < 0.5


def test_answers_come_from_one_draw_and_another_fit_draws_anew():
    table, asked = small_table(300), small_table(20, seed=5)
    made = fitted(P.RobustSVM(20.0), table)
    assert made.explain(asked).counterfactuals.equals(made.explain(asked).counterfactuals)
    assert not np.array_equal(fitted(P.RobustSVM(20.0), table).weights_, made.weights_)


def test_no_promise_comes_with_it_and_it_says_what_fails():
    with pytest.warns(cv.PrivacyWarning, match="does not cover the given model"):
        made = P.RobustSVM().fit(small_table(), small_model)
    for promise in (made.guarantee(), made.explain(small_table(3)).guarantee):
        assert isinstance(promise, cv.NoGuarantee) and "ordinary generator" in promise.why
    assert registry.published()["published-robust-svm"] is P.RobustSVM


@pytest.mark.parametrize("example", P.RobustSVM.examples(), ids=str)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_the_contract_of_explainers_holds(example):
    for check in explainer_checks(example):
        check(example)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (P.RobustSVM(0), "'epsilon' parameter of RobustSVM"),
        (P.RobustSVM(ridge=0), "'ridge' parameter of RobustSVM must be above 0"),
        (P.RobustSVM(confidence=1), "'confidence' parameter of RobustSVM must be from 0.5 to below 1"),
        (P.RobustSVM(steps=0), "'steps' parameter of RobustSVM"),
        (P.RobustSVM(missing=["shoe"]), "'missing' parameter of RobustSVM"),
    ],
)
def test_bad_parameters_are_named(made, words):
    with pytest.raises(cv.ParameterError, match=words):
        fitted(made, small_table())


def test_three_decisions_have_no_other_side():
    frame = small_table(60).frame.assign(ok=np.resize(["no", "yes", "maybe"], 60))
    table = cv.Table.from_frame(frame, schema=small_table(60).schema.with_column("ok", domain=("maybe", "no", "yes")))
    with pytest.raises(cv.ParameterError, match="cannot be 'other' for 3 decisions"):
        fitted(P.RobustSVM(target="other"), table, lambda rows: np.resize(["no", "yes", "maybe"], len(rows)))
