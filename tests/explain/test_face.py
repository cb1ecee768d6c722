"""FACE by hand, and against a slow twin: weights from the paper's formulas, shortest ways by Bellman and Ford."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_nice_properties import distance, linear_model, people

import countervail as cv
from countervail.testing import small_model, small_table


def on_a_line():
    """0, 2, 3, 4 and 10; from 3.5 on the decision is yes."""
    frame = pd.DataFrame({"x": [0.0, 2.0, 3.0, 4.0, 10.0], "ok": list("nnnyy")})
    return cv.Table.from_frame(frame, target="ok", favourable="y"), lambda rows: np.where(rows["x"] >= 3.5, "y", "n")


def test_the_way_leads_through_the_crowd():
    # Two nearest rows; r = k / (N v) = 2 / (5 * 2) = 0.2. Distances over the range of 10: 2-3 and 3-4 are 0.1, density
    # 0.2 / 0.1 = 2, the peak: these steps have no length; 2-4 is 0.2 with density 1, so 0.2 * log 2 long. The asker
    # at 1 is joined to 0 and 2, and goes 2, 3, 4, not 2, 4.
    table, model = on_a_line()
    face = cv.FACE(neighbours=2).fit(table, model)
    assert face.graph_.peak == pytest.approx(math.log(2))
    x = [r[0] for r in face.nodes_]
    edges = {(x[a], x[b]): w for a, b, w in zip(face.tails_, face.graph_.ends, face.lengths_)}
    assert edges[2, 4] == pytest.approx(0.2 * math.log(2)) and edges[2, 3] == edges[3, 4] == pytest.approx(0)
    assert edges[4, 10] == pytest.approx(0.6 * math.log(6)) and (0, 10) not in edges and (0, 4) not in edges
    ways = face.paths(pd.DataFrame({"x": [1.0]}))
    assert ways.rows["x"].tolist() == [1, 2, 3, 4] and ways.decision.tolist() == ["n", "n", "n", "y"]
    assert ways.step.tolist() == [0, 1, 2, 3] and face.explain(pd.DataFrame({"x": [1.0]})).counterfactuals["x"][0] == 4


def test_steps_keep_the_constraints_too():
    table, model = on_a_line()
    down = cv.FACE(neighbours=2, monotone={"x": "down"}, target=["y"]).fit(table, model)
    asker = pd.DataFrame({"x": [1.0]})
    e = down.explain(asker)
    assert not e.found.any() and e.notes[0] == "No way through rows of the table leads to such a decision."
    wide = cv.FACE(neighbours=2, ranges={"x": (9.0, 20.0)}).fit(table, model).paths(asker)
    assert wide.rows["x"].tolist()[-1] == 10 and len(wide.rows) > 2  # the range is for the answer, not for the way


def test_ways_come_as_frames_text_and_json():
    face = cv.FACE(neighbours=5, n_counterfactuals=2, target="favourable").fit(small_table(), small_model)
    rows = small_table(8, seed=1)
    ways, e = face.paths(rows), face.explain(rows)
    ends = ways.rows[_last(ways)]
    assert ends.astype(object).to_numpy().tolist() == e.counterfactuals[e.found].astype(object).to_numpy().tolist()
    assert set(ways.rows.columns) == set(rows.schema.features) and "id" not in ways.to_frame()
    assert ways.to_frame()["query"].nunique() == len(np.unique(e.query[e.found]))
    assert "would be yes" in ways.to_text() and "wäre die Entscheidung" in ways.to_text("de")
    assert json.loads(ways.to_json())["guarantee"]["promise"] == "NoGuarantee"
    assert not any(value in ways.to_json() + ways.to_text() + repr(ways) for value in small_table().frame["id"])
    nobody = face.paths(rows.take(np.flatnonzero(e.before[~pd.Series(e.query).duplicated()].to_numpy() == "yes")))
    assert len(nobody) == 0 and nobody.to_text() == ""


def _last(ways):
    step = ways.step.to_numpy()
    return np.append(step[1:] == 0, True)


def test_an_answer_lies_where_others_do_and_is_sure_enough():
    table, rows = small_table(200), small_table(30, seed=1)
    plain = cv.FACE(target="favourable").fit(table, small_model)
    sure = cv.FACE(target="favourable", min_score=0.8, min_density=0.5).fit(table, small_model)
    e = sure.explain(rows)
    assert (e.scores["yes"][e.found] >= 0.8).all() and e.found.any()
    assert plain.explain(rows).scores["yes"].min() < 0.8
    emptier = np.argsort(sure.graph_.sparse)[len(sure.nodes_) // 2 + 1 :]
    thin = {tuple(r) for r in sure.encoder_.decode(sure.nodes_[emptier]).astype(object).to_numpy().tolist()}
    assert not any(tuple(r) in thin for r in e.counterfactuals[e.found].astype(object).to_numpy().tolist())
    with pytest.raises(ValueError, match="'min_score' parameter of FACE must be None for a model that gives labels"):
        sure.fit(table, lambda rows: np.where(small_model(rows)[:, 1] > 0.5, "yes", "no"))


def spread_out(seed, n):
    """People of whom no two lie equally far from a third: which of equals is joined would be a matter of content."""
    table = people(seed, n)
    rng = np.random.default_rng(seed)
    return cv.Table(table.frame.assign(debt=table.frame["debt"] + rng.random(n)), table.schema)


def slow_lengths(table, kind, density, k, row):
    """Who is joined to whom, and how long the steps are, from the formulas of the paper; node -1 is the asker."""
    nodes = [dict(zip(table.features, r)) for r in dict.fromkeys(table.features.itertuples(index=False, name=None))]
    counts = table.features.astype(object).apply(tuple, axis=1).value_counts()
    scale = {n: max(np.ptp(table.frame[n]), 1e-11) for n in ("age", "debt")}
    n, columns, levels = len(nodes), 5, ("low", "mid", "high")
    away = [[distance(a, b, scale) for b in nodes] for a in nodes]
    reach = [sorted(away[i])[min(k, n - 1)] for i in range(n)]
    epsilon = width = float(np.median(reach)) or 1.0

    def middle(a, b, r):
        total = sum(abs((a[m] + b[m]) / 2 - r[m]) / scale[m] for m in scale)
        total += abs((levels.index(a["level"]) + levels.index(b["level"])) / 2 - levels.index(r["level"])) / 2
        return total + sum(0.5 * (a[m] != r[m]) + 0.5 * (b[m] != r[m]) for m in ("city", "own"))

    def log_density(a, b, far):
        if density == "knn":
            ball = math.pi ** (columns / 2) / math.gamma(columns / 2 + 1)
            return math.log(k / (len(table) * ball) / far) if far else math.log(k / (len(table) * ball))
        if density == "epsilon":
            return math.log(epsilon**columns / far) if far else columns * math.log(epsilon)
        kernel = [counts[tuple(r.values())] * math.exp(-((middle(a, b, r) / width) ** 2) / 2) for r in nodes]
        return math.log(sum(kernel) / len(table) / (2 * math.pi * width**2) ** (columns / 2))

    edges = {}
    for i in range(n):
        near = sorted((j for j in range(n) if j != i), key=lambda j: away[i][j])
        cut = away[i][near[min(k, n - 1) - 1]] if near else 0
        for j in near:
            joined = away[i][j] <= cut if kind == "knn" else away[i][j] <= epsilon
            if joined:
                edges[i, j] = edges[j, i] = (away[i][j], log_density(nodes[i], nodes[j], away[i][j]))
    peak = max([0.0, *(log for _, log in edges.values())])
    lengths = {e: far * (peak - log) for e, (far, log) in edges.items()}
    mine = [distance(row, r, scale) for r in nodes]
    cut = sorted(mine)[min(k, n) - 1] if kind == "knn" else epsilon
    for j in range(n):
        if mine[j] <= cut:
            lengths[-1, j] = mine[j] * max(peak - log_density(row, nodes[j], mine[j]), 0.0)
    return nodes, lengths


def no_ties(table, row):
    """Whether nobody, nor the asker, lies equally far from two people: debts apart by their range weigh as a city."""
    people = [*table.features.to_dict("records"), row]
    scale = {n: max(np.ptp(table.frame[n]), 1e-11) for n in ("age", "debt")}
    away = [np.sort([distance(a, b, scale) for b in people[:-1] if b is not a]) for a in people]
    return all((np.diff(mine) > 1e-9).all() for mine in away)


def shortest(lengths, n):
    """Bellman and Ford."""
    best = dict.fromkeys(range(n), math.inf) | {-1: 0.0}
    for _ in range(n + 1):
        for (a, b), w in lengths.items():
            best[b] = min(best[b], best[a] + w)
    return best


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(4, 14),
    kind=st.sampled_from(["knn", "epsilon"]),
    density=st.sampled_from(["knn", "kde", "epsilon"]),
    k=st.integers(1, 5),
)
def test_equals_the_slow_twin(seed, n, kind, density, k):
    table, model, rows = spread_out(seed, n), linear_model(seed), spread_out(seed + 1, 2).features
    face = cv.FACE(graph=kind, density=density, neighbours=k).fit(table, model)
    e, ways = face.explain(rows), face.paths(rows)
    for q, row in enumerate(rows.to_dict("records")):
        assume(no_ties(table, row))
        nodes, lengths = slow_lengths(table, kind, density, k, row)
        said = model(pd.DataFrame(nodes).astype(table.features.dtypes.to_dict())).argmax(axis=1)
        now, best = model(rows.iloc[[q]])[0].argmax(), shortest(lengths, len(nodes))
        goals = [i for i in range(len(nodes)) if said[i] != now and best[i] < math.inf]
        assert e.found[q] == bool(goals)
        if not goals:
            continue
        least = min(best[i] for i in goals)
        trail = [nodes.index(r) for r in ways.rows[(ways.query == q) & (ways.step > 0)].to_dict("records")]
        along = sum(lengths[a, b] for a, b in zip([-1, *trail], trail))
        assert along == pytest.approx(least, abs=1e-9) and said[trail[-1]] != now
        assert nodes[trail[-1]] == e.counterfactuals.iloc[q].to_dict()


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr("countervail.explain.face.graph._EDGES", 10)
    with pytest.raises(ValueError, match="'radius' parameter of FACE must be so small that at most 10 pairs"):
        cv.FACE(graph="epsilon", radius=9.0).fit(small_table(), small_model)
