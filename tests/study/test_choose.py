"""The recommendation: what each priority looks at, and that no promise means no recommendation."""

import math

import pytest

from countervail.core.errors import ParameterError, RefusedError
from countervail.report.compared_page import compared_page, pictures, summarize_comparison
from countervail.report.page import render_page
from countervail.study import PRIORITIES, Study, StudyPlan, recommend
from countervail.study.choose import total_epsilon
from countervail.study.plan import Cell
from countervail.study.result import FIGURES, SHARES, CellResult, Moments
from countervail.testing import small_table

N = 1000


def made(found, epsilons=(1.0,)):
    """A study out of means: (mechanism, epsilon) -> correctness, dist_rec, plaus_prox."""
    names = tuple(dict.fromkeys(name for name, _ in found))
    plan = StudyPlan({"small": small_table()}, names, epsilons=epsilons, seeds=(0,))
    results = {}
    for cell in plan.cells():
        if (key := (cell.mechanism, cell.epsilon)) in found:
            correct, near, real = found[key]
            means = {"correctness": correct, "dist_rec": near, "plaus_prox": real, "m0": 0.9, "m1": 0.05, "d_min": 0.1}
            moments = {n: of_mean(means[n], share=n in SHARES) for n in FIGURES}
            results[cell] = CellResult(moments, N, 0.8, 1.0)
    return Study(plan, results)


def of_mean(mean, *, share):
    squares = N * mean if share else N * (mean**2 + 0.01)
    return Moments(N, N * mean, squares, N, N * mean, squares)


FOUND = {
    ("nice", None): (1.0, 0.1, 0.1),
    ("private-histograms", 1.0): (0.95, 0.4, 0.5),
    ("dp-table", 1.0): (0.99, 0.8, 0.6),
    ("noisy-counterfactual", 1.0): (0.5, 0.2, 0.2),
    ("published-inline", 1.0): (1.0, 0.2, 0.2),
}


def test_each_priority_takes_its_own_best():
    study = made(FOUND)
    best = {p: recommend(study, p).best.mechanism for p in PRIORITIES}
    # Noisy counterfactuals lie nearest, but half of them change nothing.
    expected = {"correctness": "dp-table", "proximity": "private-histograms", "plausibility": "private-histograms"}
    assert best == {
        **expected,
        "privacy": "dp-table",
        "trade-off": "private-histograms",  # as little epsilon as the noisy table, and nearer
        "model-agnostic": "dp-table",  # histograms do not take an explainer
    }


def test_a_trade_off_adds_the_places_by_epsilon_and_by_quality():
    found = {
        ("private-histograms", 1.0): (1.0, 0.4, 0.4),
        ("private-histograms", 0.1): (1.0, 0.5, 0.5),
        ("dp-table", 0.1): (1.0, 0.9, 0.9),
        ("private-synthetic", 1.0): (0.8, 0.1, 0.1),
    }
    study = made(found, epsilons=(0.1, 1.0))
    ranked = recommend(study, "trade-off").ranked
    # 0 + 2 places (the one that is seldom correct counts as near, too), 2 + 1, 0 + 3, and last: seldom correct.
    assert [(r.mechanism, r.epsilon) for r in ranked] == [
        ("private-histograms", 0.1),
        ("private-histograms", 1.0),
        ("dp-table", 0.1),
        ("private-synthetic", 1.0),
    ]


def test_without_a_mechanism_around_any_explainer_none_is_recommended_for_it():
    with pytest.raises(RefusedError, match="any explainer"):
        recommend(made({("private-histograms", 1.0): (1.0, 0.4, 0.4)}), "model-agnostic")


def test_without_a_guarantee_nothing_is_recommended_unless_asked():
    study = made(FOUND)
    for priority in PRIORITIES:
        assert recommend(study, priority).best.proven
        assert all(r.proven for r in recommend(study, priority).ranked)
    asked = recommend(study, "proximity", allow_no_guarantee=True)
    assert asked.best.mechanism == "published-inline" and "no privacy guarantee" in asked.sentence
    assert recommend(study, "privacy", allow_no_guarantee=True).best.proven
    only = made({k: v for k, v in FOUND.items() if k[0] in ("nice", "published-inline")})
    with pytest.raises(RefusedError, match="--allow-no-guarantee"):
        recommend(only, "correctness")


def test_what_cannot_be_told_apart_is_decided_by_what_it_costs():
    level = made({("noisy-counterfactual", 1.0): (0.95, 0.400, 0.5), ("dp-table", 1.0): (0.95, 0.401, 0.5)})
    chosen = recommend(level, "proximity", answers=100)
    assert chosen.best.mechanism == "dp-table" and chosen.as_good == ("noisy-counterfactual (epsilon 1)",)
    assert "costs the least of those" in chosen.sentence
    assert [total_epsilon(r, 100) for r in chosen.ranked] == [100.0, 1.0]


def test_without_a_bound_the_total_is_infinite():
    asked = recommend(made(FOUND), "proximity", allow_no_guarantee=True)
    assert total_epsilon(asked.best, 10) == math.inf
    assert {r["total_epsilon"] for r in asked.to_dict()["rows"]} == {None, 1000.0, 1.0}


def test_when_nothing_is_correct_often_enough_the_nearest_still_wins():
    study = made({("private-histograms", 1.0): (0.3, 0.4, 0.5), ("dp-table", 1.0): (0.4, 0.8, 0.6)})
    assert recommend(study, "proximity").best.mechanism == "private-histograms"


@pytest.mark.parametrize("priority", sorted(set(PRIORITIES) - {"model-agnostic"}))
def test_neighbours_are_recommended_to_nobody_up_to_epsilon_ten(priority):
    found = {("private-neighbours", e): (1.0, 0.1, 0.1) for e in (1.0, 10.0)}
    with pytest.raises(RefusedError, match="a pool without any record"):
        recommend(made(found, (1.0, 10.0)), priority, answers=1)
    chosen = recommend(made({**found, ("dp-table", 10.0): (0.9, 0.8, 0.8)}, (1.0, 10.0)), priority, answers=1)
    assert chosen.best.mechanism == "dp-table" and len(chosen.ranked) == 3 and chosen.as_good == ()
    assert "carry nothing: private-neighbours." in chosen.sentence
    assert recommend(made({("private-neighbours", 20.0): (1.0, 0.1, 0.1)}, (20.0,)), priority).best


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"priority": "speed"}, "'priority' parameter of recommend"),
        ({"answers": 0}, "'answers' parameter of recommend"),
    ],
    ids=str,
)
def test_bad_questions_are_refused(change, words):
    with pytest.raises(ParameterError, match=words):
        recommend(made(FOUND), **({"priority": "privacy"} | change))


def test_one_table_and_one_model_at_a_time():
    plan = StudyPlan({"a": small_table(), "b": small_table()}, ("dp-table",), epsilons=(1.0,), seeds=(0,))
    moments = {n: of_mean(0.5, share=n in SHARES) for n in FIGURES}
    cells = {c: CellResult(moments, N, 0.8, 1.0) for c in plan.cells()}
    with pytest.raises(ParameterError, match="one table and one model"):
        recommend(Study(plan, cells), "privacy")
    assert Cell("a", "forest", 0, "dp-table", 1.0, None) in cells


def test_the_page_shows_the_sentence_the_table_and_the_pictures():
    several = {(n, e): (0.95, 0.4 / e, 0.5) for n in ("private-neighbours", "dp-table") for e in (1.0, 5.0)}
    study = made({("nice", None): (1.0, 0.1, 0.1), **several}, epsilons=(1.0, 5.0))
    chosen = recommend(study, "proximity")
    html = render_page(compared_page(summarize_comparison(study, chosen)))
    assert chosen.best.mechanism in html and "private table" in html and html.count("<svg") == len(FIGURES)
    assert "Dist_rec" in html and "95% intervals" in html
    assert pictures(made(FOUND).rows()) == []  # one budget makes no line
