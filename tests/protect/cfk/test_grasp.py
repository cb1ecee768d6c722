"""The local search of GRASP: on counts of what the model was asked once, and region by region, it is one search."""

import numpy as np
import pytest
from moves_twin import labels, people, scores

import countervail as cv
from countervail.protect import GraspSearch
from countervail.protect.cfk.climbing import TooManyError


def one_by_one(self, start):
    raise TooManyError


def solved(table, model, k, search):
    """All that is known of the regions around some rows, and how often the model was asked."""
    fitted, asked = cv.CFK(k=k, search=search, reward="none").fit(table, model).search_, []
    accepts = fitted.accepts
    fitted.accepts = lambda rows: asked.append(len(rows)) or accepts(rows)
    found = fitted.solve_rows(fitted.encoder_.encode(table.features)[:12])
    boxes = tuple(a.tolist() for a in (found.boxes.low, found.boxes.high, found.boxes.member))
    return (*boxes, found.cost.tolist(), found.sampled.tolist()), found.pureness, len(asked)


@pytest.mark.parametrize("budget", [20_000, 150, 12, 1])
def test_regions_are_those_that_are_found_when_each_is_judged_by_itself(budget, monkeypatch, seeds):
    impure = 0
    for seed in seeds(6, 100):
        table, model = people(seed, 60), (labels if seed % 2 else scores)(seed)
        given = GraspSearch(alpha=8, iterations=1 + seed % 3, cell_budget=budget)
        at_once = solved(table, model, 3 + seed % 4, given)
        with monkeypatch.context() as patch:
            patch.setattr(GraspSearch, "_at_once", one_by_one)
            slow = solved(table, model, 3 + seed % 4, given)
        assert at_once[0] == slow[0] and np.array_equal(at_once[1], slow[1])
        impure += int((slow[1] < 1).sum())
    assert impure


def test_the_model_is_asked_once_about_pure_regions():
    table = people(1, 60)
    _, pureness, asked = solved(table, lambda rows: np.repeat("yes", len(rows)), 5, GraspSearch())
    assert (pureness == 1).all() and asked == 12
