"""The What-If Tool's distance, by hand and by a slow twin."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_nice_properties import linear_model, people

import countervail as cv


def test_the_distance_is_the_tools():
    # wit-dashboard (getDist, calculateDistanceStats_): numbers over the standard deviation, labels the chance of two
    # equal ones. Ages 20, 30, 40, 50 deviate by sqrt(125); cities a a a b: 9/16 + 1/16; sex f m f m: 1/2.
    frame = pd.DataFrame({"age": [20, 30, 40, 50], "city": list("aaab"), "sex": list("fmfm"), "ok": list("nnyy")})
    table = cv.Table.from_frame(frame, target="ok", favourable="y")
    fitted = cv.NearestCounterfactual().fit(table, lambda rows: np.where(rows["age"] >= 40, "y", "n"))
    asker = pd.DataFrame({"age": [33], "city": ["b"], "sex": ["m"]})
    away = fitted.apart(fitted.encoder_.encode(asker), fitted.nodes_)[0]
    by_age = dict(zip(fitted.nodes_[:, 0], away))
    assert by_age[40] == pytest.approx(7 / np.sqrt(125) + 10 / 16 + 1 / 2)
    assert by_age[50] == pytest.approx(17 / np.sqrt(125))
    assert fitted.explain(asker).counterfactuals["age"].tolist() == [50]  # 1.52 against 1.75
    squared = cv.NearestCounterfactual("l2").fit(table, fitted.model_)
    assert squared.explain(asker).counterfactuals["age"].tolist() == [40]  # 1.03 against 2.31


def test_columns_that_tell_nothing_count_nothing():
    # Of labels that are all different, and of numbers that are all alike, the tool's distance sees nothing.
    frame = pd.DataFrame({"age": [20, 30, 50], "name": list("xyz"), "one": [1, 1, 1], "ok": list("nyy")})
    table = cv.Table.from_frame(frame, target="ok", favourable="y")
    fitted = cv.NearestCounterfactual().fit(table, lambda rows: np.where(rows["age"] >= 30, "y", "n"))
    assert fitted.distance_.scale.tolist() == pytest.approx([frame["age"].std(ddof=0), 0, 0])
    assert fitted.explain(frame.iloc[[0]]).counterfactuals["age"].tolist() == [30]


def slow_scale(table):
    """Deviations and chances, from lists."""
    out = {}
    for name in table.features:
        column = table.frame[name].tolist()
        if name in ("age", "debt"):
            mean = sum(column) / len(column)
            out[name] = (sum((v - mean) ** 2 for v in column) / len(column)) ** 0.5
        else:
            shares = [column.count(v) / len(column) for v in set(column)]
            out[name] = 0.0 if len(shares) == len(column) else sum(share**2 for share in shares)
    return out


def slow_distance(scale, a, b, norm):
    total = 0.0
    for name in a:
        step = scale[name] * (a[name] != b[name])
        if name in ("age", "debt"):
            step = abs(a[name] - b[name]) / scale[name] if scale[name] > 1e-12 else 0.0
        total += step**2 if norm == "l2" else step
    return total


@given(seed=st.integers(0, 10**6), n=st.integers(4, 25), norm=st.sampled_from(["l1", "l2"]))
def test_equals_the_slow_twin(seed, n, norm):
    table, model, rows = people(seed, n), linear_model(seed), people(seed + 1, 4).features
    e = cv.NearestCounterfactual(norm, n_counterfactuals=2).fit(table, model).explain(rows)
    said, records, scale = model(table.features).argmax(axis=1), table.features.to_dict("records"), slow_scale(table)
    for q, row in enumerate(rows.to_dict("records")):
        now = model(rows.iloc[[q]])[0].argmax()
        unlike = {tuple(r.values()): slow_distance(scale, row, r, norm) for r, s in zip(records, said) if s != now}
        mine = e.counterfactuals[(e.query == q) & e.found].to_dict("records")
        assert len(mine) == min(2, len(unlike))
        expected = sorted(unlike.values())[:2]
        assert [slow_distance(scale, row, r, norm) for r in mine] == pytest.approx(expected)
        assert all(tuple(r.values()) in unlike for r in mine)
