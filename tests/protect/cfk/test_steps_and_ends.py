"""Declared steps and ends: nobody is asked for next to nothing, or for more than the end of a way."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moves_twin import REWARDS, otherwise, permuted, values_of
from test_amounts import drawn, people, pure

import countervail as cv
from countervail.protect.cfk.moves.cell_kernels import to_steps

STEPS = {"money": 500, "share": 0.25, "score": 10}
ENDS = {"money": ("up", 6_000), "share": ("down", 0.4), "age": ("up", 27)}
DOMAINS = {"money": (0, 9_800), "score": (0, 100)}


def declared(table, steps=STEPS, ends=ENDS):
    schema = table.schema
    for name, step in steps.items():
        schema = schema.with_column(name, step=step)
    for name, (way, end) in ends.items():
        schema = schema.with_column(name, actionable=way, until=end)
    return cv.Table(table.frame, schema)


def small_fit(seed, n=45, ends=ENDS):
    table, queries, model, _ = drawn(seed, n)
    table = declared(table, ends=ends)
    return table, queries, model, cv.CFK(k=3).fit(table, model)


def is_multiple(value, step):
    return abs(value / step - round(value / step)) < 1e-9


def twin_step(x, v, step, low, high):
    """What is told in the place of v, in fractions."""
    x, v, step, low, high = map(Fraction, (x, v, step, low, high))
    if x == v:
        return v
    enough = abs(v - x) >= step / 2
    far = v if enough else x + (step if v > x else -step) / 2
    told = (math.ceil(far / step) if v > x else math.floor(far / step)) * step
    return told if low <= told <= high else v if enough else x


WHOLE = st.integers(-5_000, 5_000)


@given(WHOLE, WHOLE, st.integers(1, 700), WHOLE, WHOLE)
def test_what_is_told_is_a_multiple_of_the_step_and_worth_telling(x, v, step, a, b):
    low, high = min(a, b), max(a, b)
    (told,) = to_steps(np.array([float(x)]), np.array([float(v)]), float(step), float(low), float(high))[0].tolist()
    assert told == twin_step(x, v, step, low, high)
    assert told == x or 2 * abs(told - x) >= step or x == v
    assert (told - x) * (v - x) >= 0 and (told % step == 0 or told in (x, v))


def test_what_is_missing_is_no_amount():
    nan = float("nan")
    told = to_steps(np.array([nan, 3.0]), np.array([nan, 4.0]), 10.0, -np.inf, np.inf)
    np.testing.assert_array_equal(told, [[nan, 4.0], [nan, 10.0]])


@pytest.mark.parametrize("reward", REWARDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_amount_that_moves_is_worth_it_round_and_pure_and_within_the_ends(seed, reward):
    table, queries, model, base = small_fit(seed)
    e = otherwise(base, reward=reward).explain(queries)
    for one in (x for x in e if x.found):
        for name in STEPS:
            now, then = one.factual[name], one.cells[name]
            if then != now:
                assert 2 * abs(then - now) >= STEPS[name] * (1 - 1e-9), (name, now, then)
                low, high = DOMAINS.get(name, (-np.inf, np.inf))
                inside = low <= then <= high
                assert inside and (is_multiple(then, STEPS[name]) or then in set(table.frame[name])), (name, then)
        for name, (way, end) in ENDS.items():
            for value in values_of(one.cells[name], name, table):
                went = value - one.factual[name] if way == "up" else one.factual[name] - value
                assert went == 0 or (went > 0 and (value <= end if way == "up" else value >= end)), (name, value)
        assert pure(one.cells, table, model)
    assert e.found.any() or seed


@pytest.mark.parametrize("n_counterfactuals", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_permuting_private_vectors_within_groups_changes_no_answer(seed, n_counterfactuals):
    table, queries, model, base = small_fit(seed, ends={})
    group = base.search_.row_group_
    again = cv.CFK(k=3).fit(permuted(table, group, seed), model)
    for reward in REWARDS:
        one, other = (
            otherwise(p, reward=reward, n_counterfactuals=n_counterfactuals).explain(queries).to_text()
            for p in (base, again)
        )
        assert one == other


def test_exact_amounts_are_the_neighbours_own():
    table, queries, _, base = small_fit(1, ends={})
    plain = cv.Table(table.frame, people(1, 5).schema)
    both = [
        otherwise(p, amounts="exact").explain(queries).to_text() for p in (base, cv.CFK(k=3).fit(plain, drawn(1)[2]))
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_projected_answers_keep_to_steps_too(search):
    table, queries, model, _ = small_fit(3)
    e = cv.CFK(k=3, search=search).fit(table, model).explain(queries)
    moved = [(n, one.factual[n], one.cells[n]) for one in e if one.found for n in STEPS if n in one.changes]
    assert all(2 * abs(then - now) >= STEPS[n] * (1 - 1e-9) for n, now, then in moved)


def test_who_meets_the_end_of_a_way_is_told_so():
    frame = pd.DataFrame({"hours": [30, 40, 50, 60, 70, 80] * 5, "age": 30, "ok": (["no"] * 3 + ["yes"] * 3) * 5})
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    schema = table.schema.with_column("hours", actionable="up", until=50)
    made = cv.CFK(k=3).fit(cv.Table(frame, schema), lambda rows: np.where(rows["hours"].to_numpy() > 55, "yes", "no"))
    text = made.explain(frame[["hours", "age"]].head(1)).to_text()
    assert "It rests on your hours (30), within its limits" in text
    further = made.explain(frame[["hours", "age"]].head(1), constraints={"monotone": {"hours": "any"}})
    assert further.found.all()  # whoever lifts the way lifts its end


def test_a_saved_protector_keeps_steps_and_ends(tmp_path):
    _, queries, model, made = small_fit(2)
    made.save(tmp_path / "made.json")
    again = cv.load_protector(tmp_path / "made.json", model)
    assert again.explain(queries).to_json() == made.explain(queries).to_json()
