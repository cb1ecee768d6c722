"""The published study in small: German credit, a forest, one seed; what the record shows at length holds here too."""

import itertools

import numpy as np
import pytest

import countervail as cv
from countervail.study import StudyPlan, as_published, run


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        # A study never seeds noise; here chance must not decide whether a test passes.
        patch.setattr("countervail.protect.published.base.generator", _fixed(itertools.count()))
        yield _studied()


def _fixed(numbers):
    return lambda _: np.random.default_rng(next(numbers))


def _studied():
    plan = StudyPlan(
        {"german_credit": cv.load("german_credit")},
        ("nice", *as_published()),
        epsilons=(0.01, 10.0),
        neighbours=(3, 20),
        seeds=(0,),
        people=30,
        runs=3,
        target="other",
    )
    return {(r.mechanism, r.epsilon, r.neighbours): r.figures for r in run(plan).rows()}


def mean(rows, figure, mechanism, epsilon=None, neighbours=None):
    return rows[mechanism, epsilon, neighbours][figure].mean.value


def test_noise_before_the_search_leaves_every_answer_correct(rows):
    # Tables 2 and 25: LDP is at 100, as plain NICE is.
    assert mean(rows, "correctness", "nice") == 1
    assert all(mean(rows, "correctness", "published-ldp", e) == 1 for e in (0.01, 10.0))


def test_noise_after_the_search_undoes_many_answers(rows):
    # Tables 5-7 and 27-29: all three stay far below LDP.
    for name in ("published-laplace", "published-noisy-max", "published-exponential"):
        assert mean(rows, "correctness", name, 0.01) < 0.9


def test_more_neighbours_make_inline_answers_more_often_correct(rows):
    # Tables 4 and 26.
    few, many = (mean(rows, "correctness", "published-inline", 0.01, k) for k in (3, 20))
    assert many >= few


def test_a_larger_budget_brings_noisy_answers_nearer(rows):
    # For LDP and Inline_DP 30 people are too few: repeated runs gave either order.
    assert mean(rows, "dist_rec", "published-laplace", 10.0) < mean(rows, "dist_rec", "published-laplace", 0.01)


def test_plain_answers_lie_nearest_to_records(rows):
    # Centres of clusters lie in the middle of records, which is why recourse along them is no case of this.
    plain, others = mean(rows, "d_min", "nice"), {"published-noisy-max", "published-recourse"}
    assert all(f["d_min"].mean.value >= plain for (name, *_), f in rows.items() if name not in others)
