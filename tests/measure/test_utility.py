"""What a release is good for: models, counts and columns, against figures worked out by hand or the slow way."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB

import countervail as cv
from countervail.core.cells import fits
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.stats import clopper_pearson
from countervail.measure.queries import _overlap
from countervail.measure.sweep import knee_of
from countervail.measure.utility import ENCODINGS


def people(n=200, seed=0):
    """The decision follows age and city; pay is noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "city": rng.choice(["a", "b", "c"], n),
            "level": rng.choice(["lo", "mid", "hi"], n),
            "pay": rng.normal(size=n),
        }
    )
    frame["ok"] = np.where((frame["age"] > 40) ^ (frame["city"] == "a"), "yes", "no")
    columns = (
        cv.Column("age", "numeric", "quasi"),
        cv.Column("city", "categorical", "quasi"),
        cv.Column("level", "ordinal", "quasi", levels=("lo", "mid", "hi")),
        cv.Column("pay", "numeric"),
        cv.Column("ok", role="target"),
    )
    return cv.Table(frame, cv.Schema(columns))


TRAIN, TEST = people(300), people(100, 1)


def release_of(table, k, **settings):
    return cv.Mondrian(k, **settings).fit(table).protect(table)


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_an_open_release_is_as_good_as_the_table(encoding):
    """k=1 still publishes every distinct row as it is, so the same learner sees the same numbers."""
    found = cv.measure.model_utility(release_of(TRAIN, 1), TEST, encoding=encoding)
    assert found.released.value == pytest.approx(found.original.value, abs=0.03)
    assert found.released.n == 100


def test_a_release_without_information_is_a_guess():
    release = release_of(TRAIN, 300)
    assert len(release.regions) == 1
    found = cv.measure.model_utility(release, TEST, encoding="tf")
    assert found.original.value > found.majority
    # The columns that are published as they are (here noise) are all that is left.
    assert found.released.value <= found.original.value


def test_more_k_costs_accuracy_and_a_learner_can_be_chosen():
    near, far = (cv.measure.model_utility(release_of(TRAIN, k), TEST).released.value for k in (2, 100))
    assert near > far
    own = cv.measure.model_utility(release_of(TRAIN, 5), TEST, learner=LogisticRegression(max_iter=2000))
    assert 0 <= own.released.value <= 1
    again = cv.measure.model_utility(release_of(TRAIN, 5), TEST, before=own.original)
    assert again.original is own.original


def test_tf_is_naive_bayes_on_whether_cells_hold_a_persons_values():
    """The slow way: for each person, encode every released row as yes or no per column, and fit BernoulliNB."""
    table = cv.Table(TRAIN.frame.drop(columns="pay"), cv.Schema(tuple(c for c in TRAIN.schema if c.name != "pay")))
    test = cv.Table(TEST.frame.drop(columns="pay").head(25), table.schema)
    release = release_of(table, 8)
    frame = release.to_frame()
    right = 0
    for person in test.frame.to_dict("records"):
        answers = np.array([[fits(person[n], row[n]) for n in ("age", "city", "level")] for _, row in frame.iterrows()])
        guess = BernoulliNB(alpha=1).fit(answers, frame["ok"]).predict(np.ones((1, 3)))[0]
        right += guess == person["ok"]
    assert cv.measure.model_utility(release, test, encoding="tf").released.value == right / 25


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda r: cv.measure.model_utility(r, TEST, encoding="hot"), ParameterError, "'encoding' parameter"),
        (lambda r: cv.measure.model_utility(r, cv.load("toy_credit")), ParameterError, "'test' parameter"),
        (lambda r: cv.measure.model_utility(r.without_audit(), TEST), SchemaError, "table="),
        (lambda r: cv.measure.query_error(r, columns=9), ParameterError, "'columns' parameter"),
        (lambda r: cv.measure.query_error(r, queries=0), ParameterError, "'queries' parameter"),
        (lambda r: cv.measure.query_error(r, share=1.5), ParameterError, "'share' parameter"),
        (lambda r: cv.measure.sweep(TRAIN, [0]), ParameterError, "'ks' parameter"),
        (lambda r: cv.measure.sweep(TRAIN, []), ParameterError, "'ks' parameter"),
    ],
)
def test_bad_requests_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(release_of(TRAIN, 5))


def test_a_release_without_target_has_no_model():
    table = TRAIN.with_roles(target=[])
    with pytest.raises(SchemaError, match="no target column"):
        cv.measure.model_utility(release_of(table, 5), TEST)


# ---------------------------------------------------------------- counts and columns


def test_overlap_counts_whole_numbers_and_lengths():
    whole = cv.Regions.from_cells([{"q": pd.Interval(20, 29, closed="both")}, {"q": 25}]).axes[0]
    assert whole.whole
    assert _overlap(whole, 25, 40).tolist() == [0.5, 1.0]
    assert _overlap(whole, 30, 40).tolist() == [0.0, 0.0]
    parts = cv.Regions.from_cells([{"q": pd.Interval(0.0, 2.0, closed="both")}, {"q": 0.5}]).axes[0]
    assert _overlap(parts, 0.5, 1.0).tolist() == [0.25, 1.0]


def test_counts_of_an_open_release_are_right():
    found = cv.measure.query_error(release_of(TRAIN, 1), queries=100, columns=3)
    assert found.mean == 0
    assert found.worst_tenth == 0


def test_counts_get_worse_with_k_and_with_suppression():
    errors = [cv.measure.query_error(release_of(TRAIN, k), queries=200).mean for k in (2, 10, 60)]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_a_worked_shift():
    """Ages 20, 20, 20, 40 in one class of 20-40: three quarters of them are 20, and one in 21 when evenly spread."""
    frame = pd.DataFrame({"age": [20, 20, 20, 40], "sex": ["f", "f", "f", "m"]})
    schema = cv.Schema((cv.Column("age", "numeric", "quasi"), cv.Column("sex", "categorical", "quasi")))
    release = release_of(cv.Table(frame, schema), 4)
    age, sex = cv.measure.column_shifts(release)
    # At 20 the table has 3/4 of its rows, the release 1/21; between 20 and 40 nothing else is compared.
    assert age.distance == pytest.approx(abs(3 / 4 - 1 / 21))
    assert sex.distance == pytest.approx(1 / 4)


def test_columns_do_not_move_at_k_1_and_move_more_with_k():
    assert all(s.distance == pytest.approx(0, abs=1e-12) for s in cv.measure.column_shifts(release_of(TRAIN, 1)))
    small, large = (sum(s.distance for s in cv.measure.column_shifts(release_of(TRAIN, k))) for k in (3, 150))
    assert small < large


# ---------------------------------------------------------------- choosing k


def test_a_sweep_has_one_line_per_k_and_says_where_the_knee_is():
    found = cv.measure.sweep(TRAIN, [50, 2, 10, 2], encoding="tf")
    assert [p.k for p in found.points] == [2, 10, 50]
    assert [p.ncp for p in found.points] == sorted(p.ncp for p in found.points)
    assert all(p.prosecutor <= 1 / p.k for p in found.points)
    assert "knee" in found.words
    assert "original rows" in found.words
    assert found.to_dict()["points"][0]["model"]["encoding"] == "tf"


def test_a_sweep_takes_the_settings_of_a_protector_and_tables_without_target():
    base = cv.Mondrian(suppress=0.05, mode="relaxed", random_state=0)
    found = cv.measure.sweep(TRAIN.with_roles(target=[]), [3, 9, 27], protector=base)
    assert all(p.model is None for p in found.points)
    assert "model" not in found.words
    assert any(p.suppressed for p in found.points)


@pytest.mark.parametrize(
    ("costs", "knee", "word"),
    [
        ([0.01, 0.02, 0.03, 0.3], 8, "costs more"),
        ([0.0, 0.28, 0.29, 0.3], 4, "adds little"),
        ([0.1, 0.2, 0.3, 0.4], None, "no knee"),
        ([0.1, 0.1, 0.1, 0.1], None, "does not grow"),
    ],
)
def test_the_knee_is_where_the_curve_bends(costs, knee, word):
    found, words = knee_of([2, 4, 8, 16], costs)
    assert found == knee
    assert word in words


def test_two_points_have_no_knee():
    assert knee_of([2, 4], [0.1, 0.2])[0] is None


LEVELS = ("none", "lo", "mid", "hi", "top")


def levels_released(values):
    """Of four people with these levels, two are published as `lo` or `mid`, one as `hi`, and one is left out."""
    schema = cv.Schema((cv.Column("level", "ordinal", "quasi", levels=LEVELS),))
    table = cv.Table(pd.DataFrame({"level": values}), schema)
    regions = Regions.from_cells([{"level": frozenset(["lo", "mid"])}, {"level": "hi"}], schema)
    others = pd.DataFrame(index=range(3))
    return Release(regions, np.array([0, 0, 1]), others, schema, cv.KAnonymity(1), audit=table)


def test_levels_that_nobody_holds_do_not_move_a_column():
    """People at lo, lo, mid, hi; published are lo-mid twice and hi: (1/2, 1/4, 1/4) becomes (1/3, 1/3, 1/3)."""
    held = ["lo", "lo", "mid", "hi"]
    text = cv.measure.column_shifts(levels_released(held))[0].distance
    category = pd.Categorical(held, LEVELS, ordered=True)
    assert cv.measure.column_shifts(levels_released(category))[0].distance == text
    assert text == pytest.approx((1 / 6 + 1 / 12) / 2)


@pytest.mark.parametrize("labels", ["train", "test"])
def test_missing_labels_are_counted_before_anything_is_trained(labels):
    holes = cv.Table(TEST.frame.assign(ok=TEST.frame["ok"].where(TEST.frame.index > 1)), TEST.schema)
    train, test = (holes, TEST) if labels == "train" else (TEST, holes)
    with pytest.raises(SchemaError, match="given to model_utility has 2 missing label"):
        cv.measure.model_utility(release_of(train, 5), test)
    with pytest.raises(SchemaError, match="given to sweep has 2 missing label"):
        cv.measure.sweep(holes, [2])


def test_figures_of_models_and_sweeps_are_json():
    found = cv.measure.sweep(TEST, [2, 5], encoding="tf")
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [p["k"] for p in plain["points"]] == [2, 5] and plain["knee"] is None
    assert plain["points"][0]["model"]["released"] == found.points[0].model.released.to_dict()
    empty = replace(found.points[0].model, majority=float("nan"), released=clopper_pearson(0, 0))
    assert empty.to_dict()["majority"] is None and empty.to_dict()["released"]["value"] is None
    shown = replace(found, points=(replace(found.points[0], model=empty, ncp=np.float64("nan")),))
    assert json.loads(json.dumps(shown.to_dict(), allow_nan=False))["points"][0]["ncp"] is None
