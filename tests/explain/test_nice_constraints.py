"""NICE with everything that may be asked of an answer: few changes, dear columns, several answers, one's own wishes."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_nice_properties import CITIES, LEVELS, distance, linear_model
from test_nice_properties import people as drawn_people

import countervail as cv
from countervail.core.schema import Column, Schema
from countervail.explain import Explainer
from countervail.explain.answering import Answers
from countervail.testing import small_model, small_table

REWARDS = ["none", "sparsity", "proximity"]
WALKS = REWARDS[1:]


def people(seed, n):
    table = drawn_people(seed, n)
    return cv.Table(table.frame, table.schema.with_column("city", domain=CITIES))


def changes(e):
    """Answer x column: what an answer changes."""
    a, b = e.factuals[e.found].astype(object), e.counterfactuals[e.found].astype(object)
    return (a.to_numpy() != b.to_numpy()) & ~(a.isna().to_numpy() & b.isna().to_numpy())


def drawn_constraints(rng):
    """Some of everything, at random."""
    low = int(rng.integers(19, 24))
    every = {
        "immutable": [n for n in ("own", "city") if rng.random() < 0.4],
        "ranges": {
            "age": (low, low + int(rng.integers(1, 5))),
            "city": [str(c) for c in rng.choice(CITIES, 2, replace=False)],
        },
        "monotone": {"level": str(rng.choice(["up", "down"])), "debt": str(rng.choice(["up", "down"]))},
        "forbidden": {"city": [("a", "b"), ("c", "a")], "level": [("low", "high")]},
        "max_changes": int(rng.integers(1, 5)),
        "costs": {"age": float(rng.integers(1, 9)), "city": 0.5},
    }
    return {name: value for name, value in every.items() if rng.random() < 0.7}


def broken(given, a, b):
    """Which of the constraints a change from a to b breaks, read off the parameters one by one."""
    found = [n for n in given.get("immutable", ()) if a[n] != b[n]]
    for n, allowed in given.get("ranges", {}).items():
        if not (allowed[0] <= b[n] <= allowed[1] if n == "age" else b[n] in allowed):
            found.append(n)
    for n, way in given.get("monotone", {}).items():
        step = LEVELS.index(b[n]) - LEVELS.index(a[n]) if n == "level" else b[n] - a[n]
        if step * (1 if way == "up" else -1) < 0:
            found.append(n)
    found += [n for n, moves in given.get("forbidden", {}).items() if (a[n], b[n]) in moves]
    if sum(a[n] != b[n] for n in a) > given.get("max_changes", 9):
        found.append("max_changes")
    return found


@pytest.mark.parametrize("reward", REWARDS)
def test_no_answer_breaks_any_constraint(reward, seeds):
    answered = 0
    for seed in seeds(40, 1_000):
        rng = np.random.default_rng(seed)
        table, model, rows = people(seed, 40), linear_model(seed), people(seed + 7, 15).features
        given = drawn_constraints(rng)
        own = [drawn_constraints(rng) if rng.random() < 0.3 else None for _ in range(len(rows))]
        nice = cv.NICE(reward, justified=False, n_counterfactuals=int(rng.integers(1, 4)), **given).fit(table, model)
        e = nice.explain(rows, constraints=own)
        before = model(rows).argmax(axis=1)[e.query[e.found]]
        after = model(e.counterfactuals[e.found].astype(rows.dtypes.to_dict())).argmax(axis=1)
        assert (before != after).all()
        for i in np.flatnonzero(e.found):
            a, b = e.factuals.iloc[i].to_dict(), e.counterfactuals.iloc[i].to_dict()
            asked = {**given}
            for name, value in (own[e.query[i]] or {}).items():
                asked[name] = {**given.get(name, {}), **value} if isinstance(value, dict) else value
                if name == "immutable":
                    asked[name] = [*given.get(name, ()), *value]
            assert broken(asked, a, b) == []
        for q in np.unique(e.query):
            assert not e.counterfactuals[(e.query == q) & e.found].duplicated().any()
        answered += int(e.found.sum())
    assert answered > 100


def scorer(table, model):
    """The model for one row at a time, asked once about each."""
    dtypes, known = table.features.dtypes.to_dict(), {}

    def score(row):
        key = tuple(row.items())
        if key not in known:
            known[key] = model(pd.DataFrame([row]).astype(dtypes))[0]
        return known[key]

    return score


def slow_nice(table, score, row, reward, n, given):
    """The slow twin with costs and a number of changes, one row at a time: the first answer only."""
    eps, records, costs = 1e-11, table.features.to_dict("records"), given.get("costs", {})
    scale = {m: max(np.ptp(table.frame[m]), eps) for m in ("age", "debt")}
    goal = 1 - int(np.argmax(score(row)))

    def far(a, b):
        return sum(costs.get(m, 1.0) * distance({**a, m: b[m]}, a, scale) for m in a)

    fit = [r for r in records if np.argmax(score(r)) == goal]
    if reward == "none":
        fit = [r for r in fit if broken(given, row, r) == []]
        return min(fit, key=lambda r: far(row, r), default=None)
    free = {k: v for k, v in given.items() if k != "max_changes"}
    near = sorted((r for r in fit if broken(free, row, r) == []), key=lambda r: far(row, r))
    seen = [r for i, r in enumerate(near) if r not in near[:i]][: max(n, 10)]
    ends = [walk(row, r, score, goal, reward, scale, given) for r in seen]
    if not ends:
        return None
    if ends[0] is not None:
        return ends[0]
    done = [r for r in ends if r is not None]
    if done:
        return min(done, key=lambda r: (sum(r[m] != row[m] for m in row), far(row, r)))
    few = [r for r in near if broken(given, row, r) == []]
    return min(few, key=lambda r: (sum(r[m] != row[m] for m in row), far(row, r)), default=None)


def part_way(table, score, row, reward, given):
    """Where walks towards what is allowed of other rows end with the decision."""
    records, free = table.features.to_dict("records"), {k: v for k, v in given.items() if k != "max_changes"}
    scale = {m: max(np.ptp(table.frame[m]), 1e-11) for m in ("age", "debt")}
    goal = 1 - int(np.argmax(score(row)))
    ends = []
    for r in (r for r in records if np.argmax(score(r)) == goal):
        allowed = {m: r[m] if m not in broken(free, row, {**row, m: r[m]}) else row[m] for m in row}
        if broken(free, row, allowed) == [] and allowed != row:
            end = walk(row, allowed, score, goal, reward, scale, given)
            ends += [end] if end is not None and np.argmax(score(end)) == goal else []
    return ends


def walk(row, goal_row, score, goal, reward, scale, given):
    current = dict(row)
    for m, allowed in given.get("ranges", {}).items():
        inside = allowed[0] <= row[m] <= allowed[1] if m == "age" else row[m] in allowed
        current[m] = row[m] if inside else goal_row[m]
    left = given.get("max_changes", 9) - sum(current[m] != row[m] for m in row)
    while left >= 0:
        if np.argmax(score(current)) == goal or current == goal_row:
            return current
        left -= 1
        trials = [(m, {**current, m: goal_row[m]}) for m in row if current[m] != goal_row[m]]
        gains = []
        for m, t in trials:
            gain = score(t)[goal] - score(current)[goal]
            if reward == "proximity":
                gain /= distance(row, t, scale) - distance(row, current, scale) + 1e-11
            cost = given.get("costs", {}).get(m, 1.0)
            gains.append(gain / cost if gain > 0 else gain * cost)
        current = trials[int(np.argmax(gains))][1]
    return None


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(6, 20), reward=st.sampled_from(REWARDS))
def test_the_first_answer_is_the_slow_twins(seed, n, reward):
    table, model, rows = people(seed, n), linear_model(seed), people(seed + 1, 4).features
    given_ = {**drawn_constraints(np.random.default_rng(seed)), "costs": {"age": 3.0, "own": 0.5}}
    e = cv.NICE(reward, justified=False, **given_).fit(table, model).explain(rows)
    scale = {m: max(np.ptp(table.frame[m]), 1e-11) for m in ("age", "debt")}
    score = scorer(table, model)
    for i, row in enumerate(rows.to_dict("records")):
        expected = slow_nice(table, score, row, reward, 1, given_)
        if expected is None and reward != "none":  # what is allowed of the ten nearest: all of these, in small tables
            ends = part_way(table, score, row, reward, given_)
            assert e.found[i] <= bool(ends) and (e.found[i] or not ends or n > 10)
            assert not e.found[i] or e.counterfactuals.iloc[i].to_dict() in ends
            continue
        assert e.found[i] == (expected is not None)
        if expected is not None:
            got = e.counterfactuals.iloc[i].to_dict()
            cost = lambda r: sum(given_["costs"].get(m, 1.0) * distance({**row, m: r[m]}, row, scale) for m in row)  # noqa: E731, B023
            # Equal distances may be added up in another order: neighbours that are as far are as good.
            assert got == expected or (reward == "none" and cost(got) == pytest.approx(cost(expected)))


@pytest.mark.parametrize("reward", WALKS)
def test_several_answers_differ_and_the_first_is_the_one_that_was_alone(reward, seeds):
    for seed in seeds(15, 300):
        table, model, rows = people(seed, 40), linear_model(seed), people(seed + 7, 10).features
        one = cv.NICE(reward).fit(table, model).explain(rows)
        e = cv.NICE(reward, n_counterfactuals=3).fit(table, model).explain(rows)
        for q in range(len(rows)):
            mine = e.counterfactuals[(e.query == q) & e.found]
            assert not mine.duplicated().any()
            if one.found[q]:
                assert mine.iloc[0].to_dict() == one.counterfactuals.iloc[q].to_dict()
            held = len(mine)
            notes = [e[i].note for i in np.flatnonzero((e.query == q) & e.found)]
            assert notes == [""] * held if held in (0, 3) else notes[-1] == f"{held} of 3 different answers were found."


def test_other_columns_come_before_other_values():
    # Any one of three columns is enough; the neighbours differ in all of them.
    frame = pd.DataFrame({"a": [0, 5, 6, 7], "b": [0, 5, 6, 7], "c": [0, 5, 6, 7], "ok": ["no", "yes", "yes", "yes"]})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes")

    def model(rows):
        yes = np.clip(rows[["a", "b", "c"]].to_numpy(float) @ [0.13, 0.12, 0.11], 0, 1)
        return np.column_stack([1 - yes, yes])

    nice = cv.NICE("sparsity", n_counterfactuals=5).fit(table, model)
    e = nice.explain(frame[["a", "b", "c"]].iloc[[0]])
    assert e.counterfactuals.to_numpy().tolist()[:3] == [[5, 0, 0], [0, 5, 0], [0, 0, 5]]
    assert changes(e)[3:].sum(axis=1).tolist() == [1, 1]  # then other values of single columns
    assert not e.counterfactuals.duplicated().any()


def test_dear_columns_are_left_alone_where_others_do():
    t = small_table(300)
    asked = small_table(60, seed=3)
    plain = cv.NICE("sparsity", target="favourable").fit(t, small_model).explain(asked)
    dear = cv.NICE("sparsity", target="favourable", costs={"income": 50.0}).fit(t, small_model).explain(asked)
    income = list(t.schema.features).index("income")
    assert changes(dear)[:, income].mean() < changes(plain)[:, income].mean()
    np.testing.assert_array_equal(plain.found, dear.found)


def test_equal_costs_change_nothing():
    t, asked = small_table(200), small_table(20, seed=3)
    plain = cv.NICE("proximity").fit(t, small_model).explain(asked)
    equal = cv.NICE("proximity", costs=dict.fromkeys(t.schema.features, 1.0)).fit(t, small_model).explain(asked)
    pd.testing.assert_frame_equal(plain.counterfactuals, equal.counterfactuals)
    doubled = cv.NICE("none", costs=dict.fromkeys(t.schema.features, 2.0)).fit(t, small_model).explain(asked)
    pd.testing.assert_frame_equal(cv.NICE().fit(t, small_model).explain(asked).counterfactuals, doubled.counterfactuals)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), reward=st.sampled_from(REWARDS))
def test_a_batch_with_wishes_of_their_own_equals_one_by_one(seed, reward):
    rng = np.random.default_rng(seed)
    table, model, rows = people(seed, 25), linear_model(seed), people(seed + 3, 6).features
    own = [drawn_constraints(rng) if rng.random() < 0.6 else None for _ in range(len(rows))]
    nice = cv.NICE(reward, justified=False, n_counterfactuals=2, monotone={"age": "up"}).fit(table, model)
    together = nice.explain(rows, constraints=own).to_text()
    alone = [nice.explain(rows.iloc[[i]], constraints=own[i]).to_text() for i in range(len(rows))]
    assert together == "\n".join(alone)


def test_whoever_is_out_of_an_immutable_range_gets_a_status_and_the_column():
    t = small_table(100)
    nice = cv.NICE(target="favourable", immutable=["age"], ranges={"age": (70, 90)}).fit(t, small_model)
    asked = t.features[t.target == "no"].assign(age=30)
    e = nice.explain(asked)
    assert set(e.status) <= {"no_counterfactual", "already_favourable"}
    text = e.to_text()
    assert "lies outside what is allowed: your age." in text and "30" not in text


def test_the_schema_declares_once_what_every_call_obeys():
    t = small_table(200)
    schema = t.schema.with_column("age", actionable="up").with_column("city", actionable="no")
    table = cv.Table(t.frame, schema.with_column("income", range=(0, 80)))
    e = cv.NICE("sparsity", target="favourable").fit(table, small_model).explain(small_table(40, seed=2))
    a, b = e.factuals[e.found], e.counterfactuals[e.found]
    assert (
        len(a) and (b["age"] >= a["age"]).all() and (a["city"] == b["city"]).all() and b["income"].between(0, 80).all()
    )
    lifted = cv.NICE(target="favourable", monotone={"city": "any"}).fit(table, small_model)
    assert (lifted.explain(small_table(40, seed=2)).counterfactuals["city"].dropna() != a["city"].iloc[0]).any()


def test_everything_fixed_by_the_schema_is_an_error():
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "ok": ["n", "y", "n", "y"]})
    schema = Schema((Column("a", "numeric", actionable="no"), Column("ok", role="target")), ("y",))
    with pytest.raises(cv.CountervailError, match="less than all feature columns"):
        cv.NICE().fit(cv.Table(frame, schema), lambda rows: np.where(rows["a"] > 2, "y", "n"))


def test_fewer_changes_than_the_walk_needs_are_looked_for_elsewhere():
    # The nearest neighbour needs two changes; one that is farther needs a single one.
    frame = pd.DataFrame({"a": [0.0, 1.0, 9.0], "b": [0.0, 1.0, 9.0], "ok": ["no", "yes", "yes"]})
    table = cv.Table.from_frame(frame, target="ok")

    def model(rows):
        yes = np.clip((rows["a"].to_numpy() + rows["b"].to_numpy()) / 4 + 0.05, 0, 1)
        return np.column_stack([1 - yes, yes])

    asked = frame[["a", "b"]].iloc[[0]]
    assert cv.NICE("sparsity").fit(table, model).explain(asked).counterfactuals.to_numpy().tolist() == [[1.0, 1.0]]
    one = cv.NICE("sparsity", max_changes=1).fit(table, model).explain(asked)
    assert one.counterfactuals.to_numpy().tolist() == [[9.0, 0.0]]
    assert not cv.NICE("none", max_changes=1).fit(table, model).explain(asked).found.any()


@pytest.mark.parametrize("wrong", [{"max_changes": 0}, {"costs": {"age": 0.0}}, {"immutable": "age"}, {"n": 3}])
def test_wrong_wishes_at_the_query_are_named(wrong):
    nice = cv.NICE().fit(small_table(), small_model)
    with pytest.raises(cv.CountervailError, match="parameter of NICE must be"):
        nice.explain(small_table(3, seed=1), constraints=wrong)


def test_a_column_is_used_twice_only_where_no_neighbour_leads_there_without_it():
    t, asked = small_table(300), small_table(60, seed=5).features.reset_index(drop=True)
    nice = cv.NICE("sparsity", target="favourable", n_counterfactuals=2).fit(t, small_model)
    e, near = nice.explain(asked), nice.nearest(asked, 10)
    moved, query = changes(e), e.query[e.found]
    apart = []
    for i, j in pairwise(range(len(query))):
        if query[i] != query[j]:
            continue
        apart.append(not (moved[i] & moved[j]).any())
        others = t.features.iloc[near[query[i]]].reset_index(drop=True)
        used = [n for n, m in zip(asked.columns, moved[i]) if m]
        ends = others.assign(**{n: asked[n].iloc[query[i]] for n in used})[list(asked.columns)]
        reached = small_model(ends.astype(asked.dtypes.to_dict())).argmax(axis=1) == 1
        assert apart[-1] == reached.any()
    assert len(set(apart)) == 2


def stretched(seed=0, n=300):
    t = small_table(n, seed=seed, domains=False)
    frame = t.frame.assign(debt=np.random.default_rng(seed).gamma(2.0, 0.2, n))
    frame.iloc[0, frame.columns.get_loc("debt")] = 50_000.0
    return cv.Table.from_frame(frame, target="ok", favourable="yes", identifiers=["id"])


def test_a_range_that_a_few_values_make_is_said_wherever_the_answers_go():
    table = stretched()
    e = cv.NICE().fit(table, small_model).explain(table.features.iloc[:3])
    assert len(e.caveats) == 1 and "A few extreme values make up the range of debt" in e.caveats[0]
    assert "scale='quantile'" in e.to_json() and "range of debt" in e._repr_html_()
    for scale in ("iqr", "std", "quantile"):
        assert cv.NICE(scale=scale).fit(table, small_model).explain(table.features.iloc[:3]).caveats == ()


@pytest.mark.parametrize("scale", ["iqr", "quantile"])
def test_robust_scales_look_at_what_one_outlier_hides(scale):
    table, asked = stretched(), stretched(seed=1).features.iloc[1:60]
    kept = {}
    for kind in ("minmax", scale):
        e = cv.NICE(scale=kind, justified=False).fit(table, small_model).explain(asked)
        kept[kind] = float((e.counterfactuals["debt"] - e.factuals["debt"]).abs().median())
    assert kept[scale] < kept["minmax"] / 2


class First(Explainer):
    """Shows everybody the first row with a wanted decision."""

    name = "first"

    def _find(self, asked):
        row = np.array([np.flatnonzero(w[self.decision_.train])[0] for w in asked.wanted])
        return Answers(self.rows_[row], self.decision_.train[row], np.ones(len(row), dtype=bool))


def test_an_explainer_that_takes_no_constraints_says_so():
    t = small_table()
    fitted = First().fit(t, small_model)
    assert fitted.explain(t).caveats == ()
    with pytest.raises(cv.CountervailError, match="'constraints' parameter of First must be None"):
        fitted.explain(t, constraints={"immutable": ["age"]})
    declared = cv.Table(t.frame, t.schema.with_column("city", actionable="no"))
    assert "takes no constraints" in First().fit(declared, small_model).explain(t).caveats[0]
