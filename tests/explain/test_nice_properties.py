"""NICE on random tables: wanted classes, constraints, row order, and a slow twin written from the specification."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv

CITIES, LEVELS = ("a", "b", "c"), ("low", "mid", "high")


def people(seed, n):
    """Small domains, so that ties and equal rows are common."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 26, n),
            "debt": rng.integers(0, 4, n) / 2,
            "city": rng.choice(CITIES, n),
            "level": pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True),
            "own": rng.random(n) < 0.5,
        }
    )
    frame["ok"] = np.where(np.arange(n) < 2, ["yes", "no"] * (n // 2) + ["yes"] * (n % 2), rng.choice(["no", "yes"], n))
    return cv.Table.from_frame(frame, target="ok", favourable="yes")


def linear_model(seed):
    w = np.random.default_rng(seed + 1000).normal(size=5)

    def scores(frame):
        z = (
            w[0] * (frame["age"].to_numpy(float) - 22.5) / 3
            + w[1] * frame["debt"].to_numpy(float)
            + w[2] * (frame["city"] == "a").to_numpy(float)
            + w[3] * (frame["level"].cat.codes.to_numpy(float) - 1)
            + w[4] * (frame["own"].to_numpy(float) - 0.5)
        )
        yes = 1 / (1 + np.exp(-z))
        return np.column_stack([1 - yes, yes])

    return scores


def distance(a, b, scale):
    total = abs(a["age"] - b["age"]) / scale["age"] + abs(a["debt"] - b["debt"]) / scale["debt"]
    total += abs(LEVELS.index(a["level"]) - LEVELS.index(b["level"])) / 2
    return total + (a["city"] != b["city"]) + (a["own"] != b["own"])


def score_of_each_row(table, model):
    """What the model says of every row that these domains have: asked once, so that the twin need not wait for it."""
    numbers = {"age": range(20, 26), "debt": (0.0, 0.5, 1.0, 1.5)}
    domains = {**numbers, "city": CITIES, "level": LEVELS, "own": (False, True)}
    rows = list(product(*domains.values()))
    frame = pd.DataFrame(rows, columns=list(domains)).astype(table.features.dtypes.to_dict())
    known = dict(zip(rows, model(frame)))
    return lambda r: known[tuple(r.values())]


def slow_nice(table, score, row, reward):
    """The specification, word for word, on dictionaries and one row at a time."""
    eps, classes = 1e-11, ["no", "yes"]
    records, truth = table.features.to_dict("records"), table.target.tolist()
    scale = {n: max(table.frame[n].max() - table.frame[n].min(), eps) for n in ("age", "debt")}
    goal = 1 - int(np.argmax(score(row)))
    fit = [i for i, r in enumerate(records) if np.argmax(score(r)) == goal and truth[i] == classes[goal]]
    if not fit:
        return None
    best = min(fit, key=lambda i: (distance(row, records[i], scale), i))
    if reward == "none":
        return records[best]
    current = dict(row)
    while True:
        trials = [{**current, n: records[best][n]} for n in current if current[n] != records[best][n]]
        gains = [score(t)[goal] - score(current)[goal] for t in trials]
        if reward == "proximity":
            here = distance(row, current, scale)
            gains = [g / (distance(row, t, scale) - here + eps) for g, t in zip(gains, trials)]
        current = trials[int(np.argmax(gains))]
        if np.argmax(score(current)) == goal:
            return current


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 30), reward=st.sampled_from(["none", "sparsity", "proximity"]))
def test_equals_the_slow_twin(seed, n, reward):
    table, model = people(seed, n), linear_model(seed)
    rows = people(seed + 1, 4).features
    e, score = cv.NICE(reward).fit(table, model).explain(rows), score_of_each_row(table, model)
    for i, row in enumerate(rows.to_dict("records")):
        expected = slow_nice(table, score, row, reward)
        assert e.found[i] == (expected is not None)
        if expected is not None:
            assert e.counterfactuals.iloc[i].to_dict() == expected


@pytest.mark.parametrize("reward", ["none", "sparsity", "proximity", "plausibility"])
def test_constraints_are_never_violated(reward, seeds):
    """20 queries of each random table: immutable, ranges, monotone, forbidden transitions, and the wanted class."""
    checked, tables = 0, seeds(25, 500)
    for seed in tables:
        rng = np.random.default_rng(seed)
        table, model, rows = people(seed, 40), linear_model(seed), people(seed + 7, 20).features
        immutable = [n for n in ("own", "city") if rng.random() < 0.4]
        low = int(rng.integers(19, 24))
        ranges = {"age": (low, low + int(rng.integers(1, 5))), "city": list(rng.choice(CITIES, 2, replace=False))}
        monotone = {"level": rng.choice(["up", "down"]), "debt": rng.choice(["up", "down"])}
        forbidden = {"city": [("a", "b"), ("c", "a")], "level": [("low", "high")]}
        errors = (lambda frame: frame["debt"].to_numpy(float)) if reward == "plausibility" else None
        nice = cv.NICE(
            reward,
            justified=False,
            immutable=immutable,
            ranges=ranges,
            monotone=monotone,
            forbidden=forbidden,
            auto_encoder=errors,
        ).fit(table, model)
        e = nice.explain(rows)
        a, b = e.factuals[e.found], e.counterfactuals[e.found]
        checked += len(rows)
        if b.empty:
            continue
        b = b.astype(rows.dtypes.to_dict())
        assert (model(b).argmax(axis=1) != model(a).argmax(axis=1)).all()
        for n in immutable:
            assert (a[n] == b[n]).all()
        assert b["age"].between(*ranges["age"]).all()
        assert b["city"].isin(ranges["city"]).all()
        for n, way in monotone.items():
            step = (b[n].cat.codes - a[n].cat.codes) if n == "level" else b[n] - a[n]
            assert (step >= 0).all() if way == "up" else (step <= 0).all()
        for n, moves in forbidden.items():
            assert not any(((a[n] == s) & (b[n] == t)).any() for s, t in moves)
    assert checked == 20 * len(tables)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_counterfactual_found_within_constraints_is_the_nearest_admissible_row(seed):
    table, model, rows = people(seed, 30), linear_model(seed), people(seed + 3, 5).features
    e = cv.NICE(justified=False, monotone={"age": "up"}, immutable=["own"]).fit(table, model).explain(rows)
    decided = model(table.features).argmax(axis=1)
    scale = {n: max(np.ptp(table.frame[n]), 1e-11) for n in ("age", "debt")}
    records = table.features.to_dict("records")
    for i, row in enumerate(rows.to_dict("records")):
        now = model(rows.iloc[[i]])[0].argmax()
        fit = [r for r, d in zip(records, decided) if d != now and r["age"] >= row["age"] and r["own"] == row["own"]]
        assert e.found[i] == bool(fit)
        if fit:
            best = min(distance(row, r, scale) for r in fit)
            assert distance(row, e.counterfactuals.iloc[i].to_dict(), scale) == pytest.approx(best)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_row_order_changes_ties_only(seed):
    table, model, rows = people(seed, 25), linear_model(seed), people(seed + 3, 6).features
    shuffled = table.take(np.random.default_rng(seed).permutation(len(table)))
    costs = [cv.measure.recourse_cost(cv.NICE().fit(t, model).explain(rows)) for t in (table, shuffled)]
    np.testing.assert_allclose(costs[0], costs[1], atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), reward=st.sampled_from(["none", "sparsity", "proximity", "plausibility"]))
def test_batch_equals_single(seed, reward):
    table, model, rows = people(seed, 25), linear_model(seed), people(seed + 3, 6).features
    errors = (lambda frame: frame["age"].to_numpy(float)) if reward == "plausibility" else None
    nice = cv.NICE(reward, auto_encoder=errors, n_counterfactuals=2).fit(table, model)
    together = nice.explain(rows).to_text()
    assert together == "\n".join(nice.explain(rows.iloc[[i]]).to_text() for i in range(len(rows)))
