"""Typical answers: of several ways to another decision, the one that lies best among the rows of the table."""

import numpy as np
import pytest

import countervail as cv
from countervail.core.arrays import Bools
from countervail.measure.private import answer_figures
from countervail.testing import small_model, small_table

TABLE, ROWS = small_table(200), small_table(25, seed=1)


def made(reward, **given):
    return cv.NICE(reward, target="favourable", **given).fit(TABLE, small_model)


def worth(nice, x, rows):
    """By hand: mean distance to the five nearest rows of the table, and half the distance from the asker."""
    away = np.stack([nice.heom_.between(np.repeat(r[None], len(nice.rows_), axis=0), nice.rows_) for r in rows])
    return np.sort(away, axis=1)[:, :5].mean(axis=1) + 0.5 * nice.heom_.between(np.repeat(x[None], len(rows), 0), rows)


def coded(nice, frame):
    return nice.encoder_.encode(frame[TABLE.schema.features])


def test_the_best_of_neighbours_and_walks_is_taken():
    nice = made("typical")
    answers = nice.explain(ROWS)
    found: Bools = np.asarray(answers.found)
    x, y = coded(nice, answers.factuals), coded(nice, answers.counterfactuals[found])
    others = {r: made(r, n_counterfactuals=10 if r == "none" else 1).explain(ROWS) for r in ("none", "sparsity")}
    for row, q in zip(y, np.flatnonzero(found)):
        mine = worth(nice, x[q], row[None])[0]
        for other in others.values():
            held = np.asarray(other.query) == q
            theirs = coded(nice, other.counterfactuals[held & np.asarray(other.found)])
            assert mine <= worth(nice, x[q], theirs).min() + 1e-9


def test_typical_answers_lie_nearer_to_the_table_than_sparse_ones():
    answers = {r: made(r).explain(ROWS) for r in ("typical", "sparsity")}
    away = {r: answer_figures(e, small_model).plaus_prox.mean() for r, e in answers.items()}
    assert away["typical"] < away["sparsity"]


def test_several_typical_answers_differ_and_the_first_stays():
    one, three = made("typical").explain(ROWS), made("typical", n_counterfactuals=3).explain(ROWS)
    first = np.concatenate([[True], np.diff(three.query) != 0])
    assert three.counterfactuals[first].reset_index(drop=True).astype(object).equals(one.counterfactuals.astype(object))
    assert len(three) > len(one)


@pytest.mark.parametrize("most", [1, 2])
def test_typical_answers_change_as_few_columns_as_are_allowed(most):
    answers = made("typical", max_changes=most, immutable=["city"]).explain(ROWS)
    changed = cv.measure.sparsity(answers)
    assert answers.found.any() and np.nanmax(changed) <= most


def test_models_that_give_labels_only_have_typical_neighbours():
    def labels(frame):
        return np.where(small_model(frame)[:, 1] > 0.5, "yes", "no")

    answers = cv.NICE("typical", target="favourable").fit(TABLE, labels).explain(ROWS)
    rows = {tuple(r) for r in TABLE.features.astype(object).to_numpy()}
    assert all(tuple(r) in rows for r in answers.counterfactuals[answers.found].astype(object).to_numpy())


def test_both_ways_to_a_neighbour_share_their_model_calls():
    """One call about those who ask, then one for each step; the first step, which is the same, is asked about once."""
    frames = []

    def asked(frame):
        frames.append(frame)
        return small_model(frame)

    nice = cv.NICE("typical", target="favourable").fit(TABLE, asked)
    frames.clear()
    answers = nice.explain(ROWS)
    said, found = list(frames), np.asarray(answers.found)
    x, near = coded(nice, answers.factuals)[found], nice.nearest(ROWS, 10)[found]
    assert len(said[1]) == sum((nice.rows_[r] != q).sum() for q, rows in zip(x, near) for r in rows if r >= 0)
    assert sum(frame.equals(said[1]) for frame in said) == 1
