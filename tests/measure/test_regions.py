"""Measures of k-anonymous explanations against slow twins."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect import GraspSearch
from countervail.testing import small_model, small_table


@pytest.fixture(scope="module")
def private():
    table = small_table(120)
    return table, cv.CFK(k=6, search=GraspSearch(iterations=1), reward="none").fit(table, small_model).explain(
        small_table(25, seed=3)
    )


def values(table, name, cell):
    if isinstance(cell, pd.Interval):
        return sorted(v for v in set(table.frame[name]) if cell.left <= v <= cell.right)
    return sorted(cell) if isinstance(cell, frozenset) else [cell]


def test_pureness_equals_a_loop_over_all_combinations(private):
    table, e = private
    for i in np.flatnonzero(e.found):
        cells = e.counterfactuals.iloc[i]
        rows = pd.DataFrame(
            list(product(*(values(table, n, cells[n]) for n in table.schema.features))), columns=table.schema.features
        )
        rows["level"] = pd.Categorical(rows["level"], ["low", "mid", "high"], ordered=True)
        share = (small_model(rows).argmax(axis=1) == 1).mean()
        assert cv.measure.pureness(e, small_model)[i] == pytest.approx(share)
        assert e.pureness[i] == pytest.approx(share)


def test_sampled_pureness_brackets_the_exact_one(private):
    _, e = private
    exact = cv.measure.pureness(e, small_model)
    sampled = cv.measure.sampled_pureness(e, small_model, draws=200, level=0.999)
    for share, estimate in zip(exact, sampled):
        if estimate is not None:
            assert estimate.low <= share <= estimate.high
            assert estimate.n == 200


def test_the_degree_of_privacy_is_a_count_of_people(private):
    table, e = private
    for i, region in zip(np.flatnonzero(e.found), e.regions):
        people = sum(
            all(table.frame[n].iloc[r] in values(table, n, c) for n, c in region.cells.items()) for r in range(120)
        )
        assert cv.measure.degree_of_privacy(e)[i] == people


def test_discernibility_adds_up_sizes_and_charges_refusals_the_whole_table(private):
    _, e = private
    refused = int((e.status == "no_counterfactual").sum())
    expected = np.nansum(cv.measure.degree_of_privacy(e)) + 120 * refused
    assert cv.measure.discernibility(e) == expected


def test_the_classification_metric_counts_minority_promises(private):
    table, e = private
    said = np.array(["no", "yes"])[small_model(table.features).argmax(axis=1)]
    bad = [np.mean(said[inside] == "yes") < 0.5 for inside in e.regions.covers(table)]
    assert cv.measure.classification_metric(e, small_model) == pytest.approx(np.mean(bad))


def test_recourse_cost_is_the_distance_to_the_nearest_point_of_the_region(private):
    table, e = private
    age, income = np.ptp(table.frame["age"]), np.ptp(table.frame["income"])
    levels = ["low", "mid", "high"]
    for i in np.flatnonzero(e.found):
        x, cells = e.factuals.iloc[i], e.counterfactuals.iloc[i]
        cost = min(abs(v - x["age"]) for v in _ends(cells["age"], x["age"])) / age
        cost += abs(cells["income"] - x["income"]) / income + (x["ill"] != cells["ill"])
        cost += x["city"] not in values(table, "city", cells["city"])
        ranks = [levels.index(v) for v in values(table, "level", cells["level"])]
        cost += min(abs(r - levels.index(x["level"])) for r in ranks) / 2
        assert cv.measure.recourse_cost(e)[i] == pytest.approx(cost)


def _ends(cell, value):
    if not isinstance(cell, pd.Interval):
        return [cell]
    return [value] if cell.left <= value <= cell.right else [cell.left, cell.right]


def test_measures_ask_for_the_table_after_reloading(private):
    table, e = private
    stored = cv.Explanations.from_json(e.to_json())
    with pytest.raises(cv.SchemaError, match="Pass table="):
        cv.measure.ncp(stored)
    np.testing.assert_allclose(cv.measure.ncp(stored, table=table), cv.measure.ncp(e))


def test_a_region_is_as_plausible_as_its_combinations(private):
    _, e = private
    near, five = cv.measure.plausibility(e), cv.measure.plausibility(e, neighbours=5)
    assert (near[e.found] <= five[e.found]).all()
    assert np.isnan(near[~e.found]).all()


def test_fairness_compares_the_rarest_with_the_commonest_group(private):
    table, e = private
    f = cv.measure.fairness(e, "city", model=small_model)
    counts = table.frame["city"].value_counts()
    standing = {g.standing: g for g in f.groups}
    assert standing["majority"].value == counts.index[0]
    assert standing["minority"].value == counts.index[-1]
    assert f.ncp_gap.value == pytest.approx(standing["minority"].ncp.value - standing["majority"].ncp.value)
    assert f.ncp_gap.low < f.ncp_gap.value < f.ncp_gap.high
    assert sum(g.n for g in f.groups) == e.found.sum()


@pytest.mark.parametrize("by", ["height", "ok"])
def test_fairness_needs_a_feature(private, by):
    with pytest.raises(ValueError, match="'by' parameter of fairness"):
        cv.measure.fairness(private[1], by)


def test_bad_parameters_of_pureness_are_named(private):
    with pytest.raises(ValueError, match="'method' parameter of pureness"):
        cv.measure.pureness(private[1], small_model, method="guess")
    with pytest.raises(ValueError, match="'draws' parameter of pureness"):
        cv.measure.pureness(private[1], small_model, draws=0)


def test_every_column_of_a_region_counts_whatever_its_role(private):
    table, e = private
    other = table.with_roles(quasi=["age"])
    np.testing.assert_array_equal(cv.measure.degree_of_privacy(e, table=other), cv.measure.degree_of_privacy(e))
    fewer = e.regions.count(table.frame[["age"]].assign(city="a", level="low"))
    assert not np.array_equal(fewer, cv.measure.degree_of_privacy(e)[e.found])


def test_where_nobody_got_an_answer_the_loss_is_open_whatever_the_weights():
    table = small_table()
    accepted = table.features[small_model(table.features)[:, 1] > 0.5]
    nobody = cv.CFK(k=6).fit(table, small_model).explain(accepted)
    assert len(nobody) > 5 and not nobody.found.any()
    weights = {"age": 0.5, "city": 0.25, "level": 0.25}
    assert np.isnan(cv.measure.ncp(nobody, weights=weights)).all()


def test_wrong_weights_are_still_named(private):
    with pytest.raises(ValueError, match="'weights' parameter of ncp"):
        cv.measure.ncp(private[1], weights={"age": 1.0})


def test_fairness_knows_no_group_that_nobody_is_in(private):
    table, e = private
    wide = table.frame.assign(city=pd.Categorical(table.frame["city"], ["never", *"abc"]))
    other = cv.Table(wide, table.schema.with_column("city", domain=["never", *"abc"]))
    assert cv.measure.fairness(e, "city", table=other) == cv.measure.fairness(e, "city")


@pytest.mark.parametrize(
    ("dtype", "values"), [("boolean", (True, False, None)), ("Int64", (1, 2, None)), ("string", ("x", "y", None))]
)
def test_fairness_takes_columns_with_holes(dtype, values):
    def people(n, seed):
        t = small_table(n, seed, domains=False)
        group = pd.array([values[i % 7 if i % 7 < 2 else 0 if i % 7 < 5 else 2] for i in range(n)], dtype=dtype)
        schema = cv.Schema((*t.schema.columns, cv.Column("group")), t.schema.favourable)
        return cv.Table(t.frame.assign(group=group), schema)

    table, asked = people(120, 0), people(30, 3)
    e = cv.CFK(k=6, search=GraspSearch(iterations=1), reward="none").fit(table, small_model).explain(asked)
    found = cv.measure.fairness(e, "group", model=small_model)
    n = {g.value: g.n for g in found.groups}
    given = asked.frame["group"][e.found]
    assert n == {v: int((given == v).sum()) for v in values[:2]}
    assert sum(n.values()) < e.found.sum()
    assert found.groups[0].value == values[0] and found.groups[0].standing == "majority"


def test_fairness_is_json_where_a_group_is_too_small(private):
    table, _ = private
    e = (
        cv.CFK(k=6, search=GraspSearch(iterations=1), reward="none")
        .fit(table, small_model)
        .explain(small_table(25, seed=3).take([0, 1]))
    )
    found = cv.measure.fairness(e, "city", model=small_model)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["ncp_gap"]["low"] is None and plain["groups"][0]["value"] == found.groups[0].value
    assert plain["ncp_gap"] == found.ncp_gap.to_dict()
