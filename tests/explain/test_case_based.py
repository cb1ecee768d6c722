"""Explanation cases by hand, and by a slow twin that compares every pair."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nice_properties import LEVELS, distance, linear_model, people

import countervail as cv


def test_the_nearest_case_is_carried_over_to_lisa():
    # Of the toy table, Alfred and Edward differ in age and salary alone, Alfred is refused and most like Lisa of those
    # with such a partner: her age and salary become Edward's. As it is, Edward's row is the answer.
    table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    fitted = cv.CaseBased(target="favourable").fit(table, cv.data.toy_credit_model)
    assert fitted.n_cases_ == 4  # Alfred and Edward, Fiona and Ingrid, each way
    e = fitted.explain(lisa)
    assert e.counterfactuals.iloc[0].to_dict() == {**lisa.iloc[0].to_dict(), "age": 70, "salary": 90}
    whole = cv.CaseBased(target="favourable", adapt=False).fit(table, cv.data.toy_credit_model)
    assert whole.native and not fitted.native
    edward = table.features[table.frame["name"] == "Edward"].iloc[0].to_dict()
    assert whole.explain(lisa).counterfactuals.iloc[0].to_dict() == edward


def test_rows_like_the_second_lend_their_values_where_its_own_are_not_enough():
    # The case says that pay decides. 30 is enough for the first row of the case, not for the asker; 35, of the next row
    # of the same decision, is.
    frame = pd.DataFrame({"pay": [10, 30, 35, 90], "debt": [0, 0, 1, 9], "ok": list("nyyy")})
    table = cv.Table.from_frame(frame, target="ok", favourable="y")

    def model(rows):
        return np.where(rows["pay"] - 3 * rows["debt"] >= 28, "y", "n")

    asker = pd.DataFrame({"pay": [10], "debt": [2]})
    carried = cv.CaseBased(max_differences=1).fit(table, model).explain(asker)
    assert carried.counterfactuals.to_dict("records") == [{"pay": 35, "debt": 2}]
    # Without such rows, the nearest of the class as it is.
    alone = cv.Table.from_frame(frame.iloc[:2], target="ok", favourable="y")
    plain = cv.CaseBased(max_differences=1).fit(alone, model).explain(asker)
    assert plain.counterfactuals.to_dict("records") == [{"pay": 30, "debt": 0}]


def test_numbers_within_the_tolerance_are_the_same():
    frame = pd.DataFrame({"a": [0, 4, 100], "b": [0, 4, 100], "c": [0, 100, 100], "ok": list("nyy")})
    table = cv.Table.from_frame(frame, target="ok", favourable="y")

    def model(rows):
        return np.where(rows["c"] > 50, "y", "n")

    assert cv.CaseBased().fit(table, model).n_cases_ == 0
    near = cv.CaseBased(tolerance=0.05).fit(table, model)
    assert near.n_cases_ == 2
    asker = pd.DataFrame({"a": [2], "b": [7], "c": [1]})
    assert near.explain(asker).counterfactuals.to_dict("records") == [{"a": 2, "b": 7, "c": 100}]


def spread_out(seed, n):
    """People of whom no two lie equally far from a third; what is added is less than the tolerance."""
    table, rng = people(seed, n), np.random.default_rng(seed)
    return cv.Table(table.frame.assign(debt=table.frame["debt"] + rng.random(n) / 200), table.schema)


def decided(seed):
    """The decision of `linear_model` about a dictionary."""
    w = np.random.default_rng(seed + 1000).normal(size=5)

    def decide(r):
        z = w[0] * (r["age"] - 22.5) / 3 + w[1] * r["debt"] + w[2] * (r["city"] == "a")
        return int(z + w[3] * (LEVELS.index(r["level"]) - 1) + w[4] * (r["own"] - 0.5) > 0)

    return decide


def slow_answer(table, decide, row, neighbours, tolerance):
    """The description of the class, on dictionaries."""
    records = [dict(zip(table.features, r)) for r in dict.fromkeys(table.features.itertuples(index=False, name=None))]
    scale = {n: max(np.ptp(table.frame[n]), 1e-11) for n in ("age", "debt")}
    said, now = [decide(r) for r in records], decide(row)

    def differ(a, b):
        return [n for n in a if (abs(a[n] - b[n]) / scale[n] > tolerance if n in scale else a[n] != b[n])]

    cases = []
    for i, r in enumerate(records):
        partners = [j for j in range(len(records)) if said[j] != said[i] and 1 <= len(differ(r, records[j])) <= 2]
        if said[i] == now and partners:
            best = min(partners, key=lambda j, r=r: (len(differ(r, records[j])), distance(r, records[j], scale)))
            cases.append((distance(row, r, scale), r, best))
    if cases:
        _, first, second = min(cases, key=lambda c: c[0])
        like = [j for j in range(len(records)) if j != second and said[j] == said[second]]
        like.sort(key=lambda j: distance(records[second], records[j], scale))
        for j in (second, *like[:neighbours]):
            trial = {**row, **{n: records[j][n] for n in differ(first, records[second])}}
            if decide(trial) != now:
                return trial
    return min((r for r, s in zip(records, said) if s != now), key=lambda r: distance(row, r, scale), default=None)


@given(seed=st.integers(0, 10**6), n=st.integers(6, 25), tolerance=st.sampled_from([0.01, 0.25]))
def test_equals_the_slow_twin(seed, n, tolerance):
    table, model, rows = spread_out(seed, n), linear_model(seed), spread_out(seed + 1, 3).features
    e = cv.CaseBased(tolerance=tolerance, neighbours=3).fit(table, model).explain(rows)
    for q, row in enumerate(rows.to_dict("records")):
        expected = slow_answer(table, decided(seed), row, 3, tolerance)
        assert e.found[q] == (expected is not None)
        if expected is not None:
            assert e.counterfactuals.iloc[q].to_dict() == expected


def test_pairs_are_those_of_all_comparisons(seeds):
    for seed in seeds(10, 300):
        table, model = people(seed, 30), linear_model(seed)
        fitted = cv.CaseBased(tolerance=0.25).fit(table, model)
        nodes, classes = fitted.nodes_, fitted.classes_
        for i in range(len(nodes)):
            for c in (0, 1):
                counts = fitted.alike_.differ(np.repeat(nodes[[i]], len(nodes), axis=0), nodes).sum(axis=1)
                away = fitted.heom_.between(np.repeat(nodes[[i]], len(nodes), axis=0), nodes)
                fit = [j for j in range(len(nodes)) if classes[j] == c != classes[i] and 1 <= counts[j] <= 2]
                best = min(fit, key=lambda j: (counts[j], away[j], j), default=-1)
                mine = fitted.partner_[i, c]
                assert (mine < 0) == (best < 0)
                if best >= 0:
                    assert counts[mine] == counts[best] and away[mine] == pytest.approx(away[best])
