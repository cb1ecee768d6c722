"""Noisy class prototypes: coefficients and their reach, the objectives against plain twins, moves, and the label."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail import registry
from countervail.protect.dp.grid import Grid
from countervail.protect.published.clusters import spread_out
from countervail.protect.published.perturbed.descent import descended, spread_places
from countervail.protect.published.perturbed.functional import (
    moment_reach,
    moments,
    noisy_prototypes,
    noisy_weights,
    prototype_reach,
)
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


def people(n, seed):
    """Public points of a declared table."""
    grid = Grid.of(small_table(40, seed=seed % 50), "test")
    codes = np.random.default_rng(seed).integers(grid.sizes, size=(n, len(grid.axes)))
    return spread_out(grid, codes), len(grid.axes)


@given(st.integers(0, 10**6))
def test_one_record_moves_the_moments_by_no_more_than_the_noise_is_made_for(seed):
    points, axes = people(20, seed)
    moved = np.triu(moments(points) - moments(points[1:]))
    assert np.abs(moved).sum() <= moment_reach(axes) + 1e-9


def test_a_record_at_every_end_moves_the_moments_by_just_that():
    point = np.ones((1, 4))
    assert np.triu(moments(point)).sum() == moment_reach(4)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_one_record_moves_the_coefficients_of_its_class_by_no_more_than_the_noise_is_made_for(seed, latent):
    points, axes = people(2, seed)
    weights = noisy_weights(points, axes, latent, 1.0, np.random.default_rng(seed))
    code = points[0] @ weights
    assert 1 + np.abs(2 * code).sum() <= prototype_reach(axes, latent) + 1e-9


@given(st.integers(0, 10**6), st.integers(1, 3))
def test_without_noise_no_other_directions_lose_less(seed, latent):
    points, axes = people(30, seed)
    weights = noisy_weights(points, axes, latent, 1.0, Silent())
    np.testing.assert_allclose(weights.T @ weights, np.eye(latent), atol=1e-9)
    best = (np.linalg.svd(points, compute_uv=False)[latent:] ** 2).sum()  # Eckart and Young
    assert ((points - points @ weights @ weights.T) ** 2).sum() == pytest.approx(best, abs=1e-8)


def test_without_noise_prototypes_are_the_middles_of_their_classes():
    codes = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    found = noisy_prototypes(codes, np.array([0, 0, 2]), 3, 2, 1.0, Silent())
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.0, 0.0], [0.5, 0.5]])


def test_noise_goes_on_every_coefficient_at_the_scale_of_its_half():
    silent, (points, axes) = Silent(), people(9, 1)
    weights = noisy_weights(points, axes, 2, 0.25, silent)
    noisy_prototypes(points @ weights, np.zeros(9, dtype=int), 2, axes, 0.25, silent)
    (_, first, wide), (_, second, tall) = silent.asked
    assert first == moment_reach(axes) / 0.25 and wide == (points.shape[1],) * 2
    assert second == prototype_reach(axes, 2) / 0.25 and tall == (2, 3)


def test_however_large_the_noise_prototypes_stay_where_points_can_be():
    points, axes = people(5, 2)
    codes = points @ noisy_weights(points, axes, 2, 1e-6, np.random.default_rng(0))
    found = noisy_prototypes(codes, np.zeros(5, dtype=int), 2, axes, 1e-6, np.random.default_rng(0))
    assert np.isfinite(found).all() and (np.linalg.norm(found, axis=1) <= np.sqrt(axes) + 1e-9).all()


@given(st.integers(0, 10**6))
def test_moves_are_those_of_a_search_that_tries_them_one_by_one(seed):
    rng = np.random.default_rng(seed)
    sizes, table = [3, 4, 2], rng.random((3, 4, 2))
    start = rng.integers(sizes, size=(4, 3))

    def loss(at, who):
        return table[tuple(at.T)] + 0.1 * (at != start[who]).sum(axis=1)

    def plain(row):
        at = list(row)
        for _ in range(2):
            tried = [[*at[:j], v, *at[j + 1 :]] for j, n in enumerate(sizes) for v in range(n)]
            costs = [table[tuple(t)] + 0.1 * sum(a != b for a, b in zip(t, row)) for t in tried]
            now = table[tuple(at)] + 0.1 * sum(a != b for a, b in zip(at, row))
            if min(costs) >= now - 1e-9:
                break
            at = tried[costs.index(min(costs))]
        return at

    found = descended(start, spread_places(sizes, 9), loss, 2)
    assert found.tolist() == [plain(row) for row in start.tolist()]


def test_tried_places_reach_from_end_to_end():
    assert [p.tolist() for p in spread_places([3, 101], 5)] == [[0, 1, 2], [0, 25, 50, 75, 100]]


def by_hand():
    """Poor people around 20 who rent, rich ones around 80 who own; only income decides."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": np.r_[rng.integers(18, 23, 300), rng.integers(78, 83, 300)]})
    frame["home"] = np.where(frame["income"] > 50, "own", "rent")
    frame["ok"] = np.where(frame["income"] > 50, "yes", "no")
    domains = {"income": (0, 100), "home": ["own", "rent"]}
    return cv.Table.from_frame(frame, target="ok", favourable="yes", domains=domains)


def rich(rows):
    return np.where(rows["income"] > 50, "yes", "no")


def test_without_the_prototype_the_nearest_row_answers_and_with_it_one_like_the_rich():
    """By hand: income alone decides, so only the pull of the prototype makes anybody an owner."""
    asker = pd.DataFrame({"income": [10], "home": ["rent"]})
    alone = fitted(P.FunctionalPrototypes(1e4, prototype=0.0, random_state=0), by_hand(), rich).explain(asker)
    assert alone.counterfactuals["income"].tolist() == [60] and alone.counterfactuals["home"].tolist() == ["rent"]
    led = fitted(P.FunctionalPrototypes(1e4, latent=3, prototype=5.0, random_state=0), by_hand(), rich).explain(asker)
    assert led.counterfactuals["income"].tolist() == [80] and led.counterfactuals["home"].tolist() == ["own"]


def test_a_column_that_is_not_moved_keeps_the_askers_own_value():
    table = by_hand().frame.assign(debt=np.arange(600))
    domains = {"income": (0, 100), "home": ["own", "rent"], "debt": (0, 1000)}
    table = cv.Table.from_frame(table, target="ok", favourable="yes", domains=domains)
    made = fitted(P.FunctionalPrototypes(1e4, prototype=0.0, random_state=0), table, rich)
    assert 333 not in made.grid_.axes[2].values
    found = made.explain(pd.DataFrame({"income": [10], "home": ["rent"], "debt": [333]}))
    assert found.counterfactuals["debt"].tolist() == [333] and found.counterfactuals["income"].tolist() == [60]


def test_answers_are_moved_to_public_values_alone():
    table = small_table(400)
    made = fitted(P.FunctionalPrototypes(5.0), table)
    asked = small_table(60, seed=9)
    found = made.explain(asked)
    assert found.found.any() and set(found.after[found.found]) == {"yes"}
    for name in table.schema.features:
        new = found.counterfactuals[name].astype(object)
        moved = new[found.found & (new != asked.features[name].astype(object)).to_numpy()]
        axis = next(a for a in made.grid_.axes if a.column.name == name)
        assert set(moved) <= set(axis.values)


def test_answers_come_from_one_draw_and_another_fit_draws_anew():
    table, asked = small_table(300), small_table(20, seed=5)
    made = fitted(P.FunctionalPrototypes(1.0), table)
    assert made.explain(asked).counterfactuals.equals(made.explain(asked).counterfactuals)
    assert not np.array_equal(fitted(P.FunctionalPrototypes(1.0), table).prototypes_, made.prototypes_)
    same = [fitted(P.FunctionalPrototypes(1.0, random_state=4), table).prototypes_ for _ in range(2)]
    assert np.array_equal(*same)


def test_no_promise_comes_with_it_and_it_says_what_fails():
    with pytest.warns(cv.PrivacyWarning, match="does not cover the given model"):
        made = P.FunctionalPrototypes().fit(small_table(), small_model)
    for promise in (made.guarantee(), made.explain(small_table(3)).guarantee):
        assert isinstance(promise, cv.NoGuarantee) and "ordinary generator" in promise.why
    assert registry.published()["published-prototypes"] is P.FunctionalPrototypes


@pytest.mark.parametrize("example", P.FunctionalPrototypes.examples(), ids=str)
@pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning")
def test_the_contract_of_explainers_holds(example):
    for check in explainer_checks(example):
        check(example)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (P.FunctionalPrototypes(0), "'epsilon' parameter of FunctionalPrototypes"),
        (P.FunctionalPrototypes(latent=0), "'latent' parameter of FunctionalPrototypes"),
        (P.FunctionalPrototypes(steps=1.5), "'steps' parameter of FunctionalPrototypes"),
        (P.FunctionalPrototypes(near=-1), "'near' parameter of FunctionalPrototypes must be a number of at least 0"),
        (P.FunctionalPrototypes(deciding=True), "'deciding' parameter of FunctionalPrototypes"),
        (P.FunctionalPrototypes(prototype=float("nan")), "'prototype' parameter of FunctionalPrototypes"),
        (P.FunctionalPrototypes(missing=["shoe"]), "'missing' parameter of FunctionalPrototypes"),
    ],
)
def test_bad_parameters_are_named(made, words):
    with pytest.raises(cv.ParameterError, match=words):
        fitted(made, small_table())


def test_without_public_domains_it_is_refused():
    with pytest.raises(cv.SchemaError, match="these columns declare none"):
        fitted(P.FunctionalPrototypes(), small_table(domains=False))
