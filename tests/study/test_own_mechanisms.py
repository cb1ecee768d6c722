"""Studies of objects: CFK, and explainers of somebody's own, beside the registered ones, in several processes."""

import json
import threading
from xml.etree import ElementTree

import numpy as np
import pytest

import countervail as cv
from countervail.core.errors import ParameterError
from countervail.study import StudyPlan, mechanisms, recommend, run, sound
from countervail.testing import small_model, small_table

TABLE = small_table(200)


class Named(cv.NICE):
    """An explainer of somebody's own."""

    name = "named"


class Locked(cv.NICE):
    """One that no other process can be given."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class Rule:
    """The small model as an estimator."""

    classes_ = np.array(["no", "yes"])

    def predict(self, frame):
        return self.classes_[small_model(frame).argmax(axis=1)]

    def predict_proba(self, frame):
        return small_model(frame)


def plan(given, **settings):
    return StudyPlan({"small": TABLE}, given, **({"seeds": (0, 1), "people": 6, "runs": 1, "model": Rule()} | settings))


@pytest.fixture(scope="module")
def study():
    given = ("nice", cv.CFK(k=5), cv.CFK(k=5, search="exact", reward="none"), Named(reward="none"))
    return run(plan(given), n_jobs=2)


def test_objects_are_compared_under_names_that_say_their_settings(study):
    rows = {r.mechanism: r for r in study.rows()}
    assert list(rows) == ["nice", "CFK(k=5)", "CFK(k=5, reward='none', search='exact')", "Named()"]
    assert rows["CFK(k=5)"].proven and "5" in rows["CFK(k=5)"].guarantee and not rows["Named()"].proven
    assert study.complete and all(r.people > 3 and r.seeds == 2 for r in rows.values())


def test_regions_are_measured_as_regions(study):
    rows = {r.mechanism: r.figures for r in study.rows()}
    groups = rows["CFK(k=5)"]
    assert groups["correctness"].mean.value == 1  # pure by default
    assert 0 <= groups["d_min"].mean.value <= groups["plaus_prox"].mean.value
    assert groups["dist_rec"].mean.value > 0


def test_one_process_finds_what_two_find(study):
    again = run(plan((cv.CFK(k=5),)))
    assert again.rows()[0].figures == {r.mechanism: r.figures for r in study.rows()}["CFK(k=5)"]


def test_results_become_frames_pictures_and_json(study):
    assert len(study.to_frame()) == 4
    ElementTree.fromstring(study.plot())
    assert json.loads(study.to_json())["plan"]["mechanisms"][1] == "CFK(k=5)"


def test_a_mapping_names_objects_and_finished_cells_are_found_again(tmp_path):
    given = {"mine": cv.CFK(k=5), "plain": "nice"}
    first = run(plan(given, seeds=(0,)), store=tmp_path)
    told = []
    again = run(plan(given, seeds=(0,)), store=tmp_path, progress=lambda n, of: told.append((n, of)))
    assert told[0] == (2, 2) and [r.mechanism for r in again.rows()] == ["mine", "plain"]
    assert again.rows() == first.rows()
    other = run(plan({"mine": cv.CFK(k=6), "plain": "nice"}, seeds=(0,)), store=tmp_path)
    assert other.rows()[0] != first.rows()[0]


def test_what_cannot_be_sent_to_a_process_is_said():
    with pytest.raises(ParameterError, match="cannot be sent to another process"):
        run(plan((Locked(), "nice")), n_jobs=2)


@pytest.mark.parametrize("given", [(cv.CFK,), (object(),), (cv.CFK(k=5), cv.CFK(k=5)), (), 3, {"a": "magic"}])
def test_what_does_not_explain_is_refused(given):
    with pytest.raises(ParameterError, match="'mechanisms' parameter of StudyPlan"):
        plan(given)


def test_what_needs_quasi_identifiers_is_left_out_without_any():
    bare = TABLE.with_roles(quasi=[])
    asked = StudyPlan({"bare": bare, "small": TABLE}, ("nice", "cfk"), seeds=(0,), people=3, model=Rule())
    assert [(c.table, c.mechanism) for c in asked.cells()] == [("bare", "nice"), ("small", "nice"), ("small", "cfk")]


def test_recommendations_consider_regions_and_synthetic_rows():
    assert {"cfk", "private-synthetic"} <= set(sound()) <= set(mechanisms())
    found = run(plan(("nice", "cfk", "private-synthetic"), epsilons=(1.0,), seeds=(0,)))
    chosen = recommend(found, "correctness")
    assert {r.mechanism for r in chosen.ranked} == {"cfk", "private-synthetic"}
    near = recommend(found, "proximity")
    assert near.best.mechanism in ("cfk", "private-synthetic") and near.sentence
    assert recommend(found, "privacy").best.mechanism == "private-synthetic"  # the only one with an epsilon
