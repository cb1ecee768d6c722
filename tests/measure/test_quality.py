"""Quality measures against slow twins that look at every pair of rows."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import Explanations, NoGuarantee, SchemaError, measure
from countervail.core.errors import ParameterError
from countervail.testing import small_model, small_table

LEVELS = ["low", "mid", "high"]


@pytest.fixture(scope="module")
def answers():
    return (
        cv.NICE(reward="sparsity", target="favourable").fit(small_table(), small_model).explain(small_table(30, seed=2))
    )


def slow_heom(p, q, table):
    """HEOM of two rows from its definition."""
    total = 0.0
    for name in ("age", "income"):
        values = table.frame[name]
        total += abs(p[name] - q[name]) / (values.max() - values.min())
    total += abs(LEVELS.index(p["level"]) - LEVELS.index(q["level"])) / 2
    return total + sum(p[name] != q[name] for name in ("city", "ill"))


def rows(frame):
    return frame.to_dict("records")


def test_recourse_cost_is_the_distance_walked(answers):
    table, cost = small_table(), measure.recourse_cost(answers)
    for i, (p, q) in enumerate(zip(rows(answers.factuals), rows(answers.counterfactuals))):
        if answers.found[i]:
            assert cost[i] == pytest.approx(slow_heom(p, q, table))
        else:
            assert np.isnan(cost[i])
    assert 0 < answers.found.sum() < len(answers)


@pytest.mark.parametrize("neighbours", [1, 5])
def test_plausibility_is_the_mean_distance_to_the_nearest_people(answers, neighbours):
    table, near = small_table(), measure.plausibility(answers, neighbours=neighbours)
    for i, q in enumerate(rows(answers.counterfactuals)):
        if answers.found[i]:
            every = sorted(slow_heom(q, r, table) for r in rows(table.features))
            assert near[i] == pytest.approx(np.mean(every[:neighbours]))
        else:
            assert np.isnan(near[i])


def test_people_with_equal_records_are_neighbours_each():
    frame = pd.DataFrame({"age": [1] * 4 + [2] * 2, "ok": ["no"] * 4 + ["yes"] * 2})
    table = cv.Table.from_frame(frame, target="ok")
    e = cv.NICE().fit(table, lambda f: np.where(f["age"] > 1, "yes", "no")).explain({"age": 1})
    # By hand: the answer is age 2; two people have it, the next two lie one range away.
    assert measure.plausibility(e, neighbours=4).tolist() == [0.5]


def test_sparsity_counts_the_columns_that_differ(answers):
    counted = measure.sparsity(answers)
    for i, (p, q) in enumerate(zip(rows(answers.factuals), rows(answers.counterfactuals))):
        assert np.isnan(counted[i]) if not answers.found[i] else counted[i] == sum(p[n] != q[n] for n in p)


def test_validity_asks_the_model_about_the_answer(answers):
    assert np.array_equal(np.isnan(measure.validity(answers, small_model)), ~answers.found)
    assert np.nanmin(measure.validity(answers, small_model)) == 1.0

    def contrary(frame):
        return small_model(frame)[:, ::-1]

    assert np.nanmax(measure.validity(answers, contrary)) == 0.0


def test_measures_work_on_explanations_that_were_stored(answers):
    back = Explanations.from_json(answers.to_json())
    table = small_table()
    for function in (measure.recourse_cost, measure.plausibility):
        assert np.array_equal(function(back, table=table), function(answers), equal_nan=True)
    assert np.array_equal(
        measure.validity(back, small_model, table=table), measure.validity(answers, small_model), equal_nan=True
    )
    assert np.array_equal(measure.sparsity(back), measure.sparsity(answers), equal_nan=True)
    with pytest.raises(SchemaError, match="Pass table="):
        measure.recourse_cost(back)


@pytest.mark.parametrize("neighbours", [0, 61])
def test_more_neighbours_than_people_are_refused(answers, neighbours):
    with pytest.raises(
        ParameterError, match="'neighbours' parameter of plausibility must be between 1 and the 60 rows"
    ):
        measure.plausibility(answers, neighbours=neighbours)


def test_no_answer_at_all_measures_nothing(answers):
    favourable = cv.NICE(target="favourable").fit(small_table(), small_model).explain(answers.factuals[~answers.found])
    assert not favourable.found.any()
    measured = [
        measure.recourse_cost(favourable),
        measure.plausibility(favourable),
        measure.sparsity(favourable),
        measure.validity(favourable, small_model),
    ]
    assert all(np.isnan(values).all() and len(values) == len(favourable) for values in measured)


def test_generalised_counterfactuals_are_refused_by_column(answers):
    cells = pd.DataFrame({"age": pd.Series([pd.Interval(1, 2, closed="both")], dtype=object)})
    one = [pd.Series([v], dtype=object) for v in ("found", "no", "yes")]
    wide = Explanations(pd.DataFrame({"age": [1]}), cells, *one, answers.schema, NoGuarantee("x"), audit=small_table())
    with pytest.raises(SchemaError, match=r"validity takes plain .* these columns are generalised: \['age'\]"):
        measure.validity(wide, small_model)
