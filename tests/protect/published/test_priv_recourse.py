"""PrivRecourse: noisy clusters against a plain twin, the noise that is drawn, paths through centres, and its label."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail import registry
from countervail.protect.dp.grid import Grid
from countervail.protect.published.clusters import counts_and_sums, folded_back, noisy_centres, spread_out
from countervail.testing import explainer_checks, small_model, small_table

P = cv.published


def fitted(made, table, model=small_model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        return made.fit(table, model)


class Silent:
    """A generator without noise that writes down the scales it was asked for."""

    def __init__(self):
        self.asked = []

    def laplace(self, at, scale, shape):
        self.asked.append((at, scale, shape))
        return np.zeros(shape)


def plain_lloyd(points, centres, rounds):
    """Lloyd's algorithm, point by point."""
    centres = [list(c) for c in centres]
    for _ in range(rounds):
        mine = [[] for _ in centres]
        for p in points:
            apart = [sum((a - b) ** 2 for a, b in zip(p, c)) for c in centres]
            mine[apart.index(min(apart))].append(p)
        centres = [[sum(v) / len(some) for v in zip(*some)] if some else c for some, c in zip(mine, centres)]
    return np.array(centres)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_without_noise_it_is_lloyds_algorithm(seed, rounds):
    rng = np.random.default_rng(seed)
    points, start = rng.random((25, 3)), rng.random((4, 3))
    found = noisy_centres(points, start, 3, 1.0, rounds, Silent())
    np.testing.assert_allclose(found, plain_lloyd(points.tolist(), start.tolist(), rounds), atol=1e-9)


@given(st.integers(0, 10**6))
def test_a_record_that_comes_moves_counts_and_sums_by_no_more_than_the_noise_is_made_for(seed):
    grid = Grid.of(small_table(40, seed=seed % 50), "test")
    rng = np.random.default_rng(seed)
    points = spread_out(grid, rng.integers(grid.sizes, size=(30, len(grid.axes))))
    centres = rng.random((5, points.shape[1]))
    moved = counts_and_sums(points, centres) - counts_and_sums(points[1:], centres)
    assert np.abs(moved).sum() <= 1 + len(grid.axes) + 1e-9 and (np.abs(moved).sum(axis=1) > 1e-9).sum() == 1


@pytest.mark.parametrize(("epsilon", "rounds"), [(1.0, 1), (0.5, 3), (7.0, 5)])
def test_the_scales_of_all_rounds_add_up_to_epsilon(epsilon, rounds):
    silent = Silent()
    noisy_centres(
        np.random.default_rng(0).random((9, 4)), np.random.default_rng(1).random((2, 4)), 3, epsilon, rounds, silent
    )
    assert len(silent.asked) == rounds and all(at == 0 and shape == (2, 5) for at, _, shape in silent.asked)
    assert sum((1 + 3) / scale for _, scale, _ in silent.asked) == pytest.approx(epsilon)


def test_a_cluster_of_nobody_stays_where_it_is():
    points, start = np.zeros((5, 2)), np.array([[0.1, 0.1], [0.9, 0.9]])
    assert noisy_centres(points, start, 2, 1.0, 2, Silent()).tolist() == [[0.0, 0.0], [0.9, 0.9]]


def test_rows_come_back_from_their_points():
    grid = Grid.of(small_table(50), "test")
    codes = grid.codes(small_table(50).features)
    assert (folded_back(grid, spread_out(grid, codes)) == codes).all()
    assert (spread_out(grid, codes).sum(axis=1) <= len(grid.axes) + 1e-12).all()


def test_two_kinds_of_people_are_two_centres_and_the_way_leads_from_one_to_the_other():
    """By hand: poor people around 20, rich ones around 80; whoever is poor is shown the rich centre."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": np.r_[rng.integers(18, 23, 300), rng.integers(78, 83, 300)]})
    frame["ok"] = np.where(frame["income"] > 50, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", domains={"income": (0, 100)})

    def model(rows):
        return np.where(rows["income"] > 50, "yes", "no")

    made = fitted(P.PrivRecourse(1000.0, clusters=2, rounds=5, random_state=3), table, model)
    assert sorted(made.centres_["income"]) == [20, 80]
    asker = pd.DataFrame({"income": [10]})
    assert made.explain(asker).counterfactuals["income"].tolist() == [80]
    way = made.paths(asker)
    assert way.rows["income"].tolist()[0] == 10 and way.rows["income"].tolist()[-1] == 80
    assert set(way.rows["income"][1:]) <= set(made.centres_["income"])


def test_every_answer_is_a_centre_and_of_the_wanted_decision():
    made = fitted(P.PrivRecourse(5.0, random_state=0), small_table(400))
    found = made.explain(small_table(60, seed=9))
    centres = set(map(tuple, made.centres_.astype(str).to_numpy()))
    given_rows = found.counterfactuals[found.found][made.centres_.columns].astype(str).to_numpy()
    assert found.found.any() and {tuple(r) for r in given_rows} <= centres
    assert set(found.after[found.found]) == {"yes"}


def test_answers_come_from_one_draw_and_another_fit_draws_anew():
    table, asked = small_table(300), small_table(20, seed=5)
    made = fitted(P.PrivRecourse(1.0), table)
    assert made.explain(asked).counterfactuals.equals(made.explain(asked).counterfactuals)
    assert not fitted(P.PrivRecourse(1.0), table).centres_.equals(made.centres_)
    same = [fitted(P.PrivRecourse(1.0, random_state=4), table).centres_ for _ in range(2)]
    assert same[0].equals(same[1])


def test_centres_carry_the_models_own_labels_so_that_it_never_seems_to_contradict_them():
    """Labels by turns made a model that disagreed with them by chance look as if it were the wrong way round."""
    made = fitted(P.PrivRecourse(50.0, clusters=30, random_state=0), small_table(400))
    said = np.array(["no", "yes"])[small_model(made.centres_).argmax(axis=1)]
    assert set(said) == {"no", "yes"} and made.explainer_.table_.target.tolist() == said.tolist()


def test_no_promise_comes_with_it_and_it_says_what_fails():
    with pytest.warns(cv.PrivacyWarning, match="does not cover the given model"):
        made = P.PrivRecourse().fit(small_table(), small_model)
    for promise in (made.guarantee(), made.explain(small_table(3)).guarantee, made.paths(small_table(3)).guarantee):
        assert isinstance(promise, cv.NoGuarantee) and "ordinary generator" in promise.why
    assert registry.published()["published-recourse"] is P.PrivRecourse


@pytest.mark.parametrize("example", P.PrivRecourse.examples(), ids=str)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_the_contract_of_explainers_holds(example):
    for check in explainer_checks(example):
        check(example)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (P.PrivRecourse(0), "'epsilon' parameter of PrivRecourse"),
        (P.PrivRecourse(clusters=1), "'clusters' parameter of PrivRecourse must be a whole number of at least 2"),
        (P.PrivRecourse(rounds=0), "'rounds' parameter of PrivRecourse"),
        (P.PrivRecourse(neighbours=1.5), "'neighbours' parameter of PrivRecourse"),
        (P.PrivRecourse(missing=["shoe"]), "'missing' parameter of PrivRecourse"),
    ],
)
def test_bad_parameters_are_named(made, words):
    with pytest.raises(cv.ParameterError, match=words):
        fitted(made, small_table())


def test_without_public_domains_it_is_refused():
    with pytest.raises(cv.SchemaError, match="these columns declare none"):
        fitted(P.PrivRecourse(), small_table(domains=False))
