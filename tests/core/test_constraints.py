"""Constraints against a slow twin that reads the parameters value by value."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.constraints import ANY, Constraints, asked_for
from countervail.core.encode import Encoder
from countervail.core.schema import Column, Schema

LEVELS, CITIES = ("low", "mid", "high"), ("a", "b", "c")
NAMES = ("age", "debt", "level", "city")
AGES, DEBTS = (20.0, 25.0, 30.0, math.nan), (0.0, 1.0, 2.0)
POOL = {"age": AGES, "debt": DEBTS, "level": (*LEVELS, None), "city": (*CITIES, None)}


def encoder_of(**columns):
    plain = {
        "age": Column("age", "numeric", domain=(0, 99)),
        "debt": Column("debt", "numeric"),
        "level": Column("level", "ordinal", levels=LEVELS),
        "city": Column("city", domain=CITIES),
    }
    frame = pd.DataFrame({"age": [20.0, math.nan], "debt": [0.0, 1.0], "level": ["low", None], "city": ["a", None]})
    table = cv.Table(frame.astype({"level": object, "city": object}), Schema(tuple({**plain, **columns}.values())))
    return Encoder.fit(table)


ENCODER = encoder_of()


def coded(rows):
    frame = pd.DataFrame(rows, columns=NAMES).astype({"level": object, "city": object, "age": float, "debt": float})
    return ENCODER.encode(frame)


def same(a, b):
    return (a is None and b is None) or a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b or 0.0))


def slow_allows(given, name, start, end):
    """The slow twin: one value of one column, by the words of the documentation."""
    if name in given.get("ranges", {}):
        allowed = given["ranges"][name]
        inside = allowed[0] <= end <= allowed[1] if name in ("age", "debt") else any(same(end, v) for v in allowed)
        if not inside:
            return False
    if name in given.get("immutable", ()):
        return same(start, end)
    way = given.get("monotone", {}).get(name)
    if way is not None and not same(start, end):
        holes = [v for v in (start, end) if v is None or v != v]
        if holes:
            return False
        a, b = (LEVELS.index(start), LEVELS.index(end)) if name == "level" else (start, end)
        if (b < a) if way == "up" else (b > a):
            return False
    steps = given.get("forbidden", {}).get(name, ())
    meant = any((a == "*" or same(start, a)) and (b == "*" or same(end, b)) for a, b in steps)
    return same(start, end) or not meant


row = st.tuples(*(st.sampled_from(POOL[n]) for n in NAMES))
bounds = st.tuples(st.sampled_from((18.0, 20.0, 22.0)), st.sampled_from((24.0, 25.0, 99.0)))
pairs = st.lists(st.permutations((*CITIES, None, "*")).map(lambda p: tuple(p[:2])), max_size=3)
ages = st.lists(st.permutations((20.0, 25.0, 30.0, "*")).map(lambda p: tuple(p[:2])), max_size=3)
settings_given = st.fixed_dictionaries(
    {},
    optional={
        "immutable": st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        "ranges": st.fixed_dictionaries(
            {},
            optional={
                "age": bounds,
                "level": st.lists(st.sampled_from((*LEVELS, None)), min_size=1, unique=True),
                "city": st.lists(st.sampled_from((*CITIES, None)), min_size=1, unique=True),
            },
        ),
        "monotone": st.dictionaries(st.sampled_from(("age", "debt", "level")), st.sampled_from(("up", "down"))),
        "forbidden": st.fixed_dictionaries({}, optional={"city": pairs, "age": ages}),
        "max_changes": st.integers(1, 4),
    },
)


@given(settings_given, st.lists(row, min_size=1, max_size=4), st.lists(row, min_size=1, max_size=5))
def test_every_mask_says_what_the_slow_twin_says(given, queries, rows):
    c, x, values = Constraints.of(ENCODER, "Test", **given), coded(queries), coded(rows)
    expected = np.array(
        [[[slow_allows(given, n, q[j], r[j]) for j, n in enumerate(NAMES)] for r in rows] for q in queries]
    )
    changes = np.array([[sum(not same(a, b) for a, b in zip(q, r)) for r in rows] for q in queries])
    np.testing.assert_array_equal(c.allows(x, values), expected)
    few = changes <= given.get("max_changes", 9)
    np.testing.assert_array_equal(c.admissible(x, values), expected.all(axis=2) & few)
    n = min(len(queries), len(rows))
    np.testing.assert_array_equal(c.holds(x[:n], values[:n]), expected[np.arange(n), np.arange(n)])


@given(settings_given, row, st.sampled_from(("level", "city")), st.data())
def test_a_set_is_allowed_when_every_value_of_it_is(given, query, name, data):
    c, j, pool = Constraints.of(ENCODER, "Test", **given), NAMES.index(name), POOL[name]
    sets = data.draw(st.lists(st.sets(st.sampled_from(pool), min_size=1), min_size=1, max_size=4))
    held = ENCODER.codings[j].values
    member = np.array([[v in s for v in held] for s in sets])
    expected = [all(slow_allows(given, name, query[j], v) for v in s) for s in sets]
    assert c.allows_sets(j, coded([query])[:, j], member)[0].tolist() == expected


@given(settings_given, row, st.lists(st.tuples(st.integers(17, 32), st.integers(0, 8)), min_size=1, max_size=5))
def test_an_interval_is_allowed_when_every_number_of_it_is(given, query, spans):
    c = Constraints.of(ENCODER, "Test", **given)
    low = np.array([float(a) for a, _ in spans])
    high = low + np.array([float(w) for _, w in spans])
    # Half steps stand for what lies between whole numbers: a fixed value, a bound or a forbidden end is among them.
    inside = [np.arange(a, b + 0.25, 0.5) for a, b in zip(low, high)]
    expected = [all(slow_allows(given, "age", query[0], float(v)) for v in values) for values in inside]
    assert c.allows_intervals(0, coded([query])[:, 0], low, high)[0].tolist() == expected


def test_a_missing_number_may_stay_where_only_an_order_is_asked_for():
    c = Constraints.of(ENCODER, "Test", monotone={"age": "up"})
    hole = np.array([math.nan])
    assert c.allows_intervals(0, hole, hole, hole).tolist() == [[True]]
    assert c.allows_intervals(0, hole, np.array([20.0]), np.array([20.0])).tolist() == [[False]]
    assert not Constraints.of(ENCODER, "Test", ranges={"age": (0, 99)}).in_range(coded([(math.nan, 0.0, "low", "a")]))[
        0, 0
    ]


@given(settings_given, st.lists(row, min_size=1, max_size=4))
def test_whoever_is_stuck_can_be_sent_nowhere_and_is_told_by_column(given, queries):
    c, x = Constraints.of(ENCODER, "Test", **given), coded(queries)
    stuck = c.stuck(x)
    pools = [np.linspace(0, 99, 199).tolist(), [*DEBTS, math.nan], [*LEVELS, None], [*CITIES, None]]
    for q, query in enumerate(queries):
        for j, name in enumerate(NAMES):
            reach = any(slow_allows(given, name, query[j], v) for v in [*pools[j], query[j]])
            assert stuck[q, j] == (not reach)
    notes = c.notes(x)
    assert [bool(n) for n in notes] == stuck.any(axis=1).tolist()
    assert all(name in note for note, mask in zip(notes, stuck) for name, bad in zip(NAMES, mask) if bad)


def test_the_schema_is_heard_and_parameters_win():
    encoder = encoder_of(
        age=Column("age", "numeric", actionable="up", range=(18, 80)),
        city=Column("city", domain=CITIES, actionable="no"),
        level=Column("level", "ordinal", levels=LEVELS, range=("mid", "high")),
        debt=Column("debt", "numeric", forbidden=((0, "*"), ("*", 2))),
    )
    assert Constraints.of(encoder, "Test").spelt() == {
        "immutable": ["city"],
        "ranges": {"age": [18.0, 80.0], "level": ["mid", "high"]},
        "monotone": {"age": "up"},
        "forbidden": {"debt": [[0, "*"], ["*", 2]]},
    }
    given = Constraints.of(
        encoder,
        "Test",
        immutable=["age"],
        monotone={"city": "any"},
        ranges={"level": None, "age": (20, 30)},
        forbidden={"debt": []},
    )
    assert given.spelt() == {"immutable": ["age"], "ranges": {"age": [20.0, 30.0]}}


def test_a_step_that_the_schema_forbids_may_name_what_no_row_has():
    table = cv.Table(pd.DataFrame({"city": ["a", "b"], "debt": [0, 1]}), Schema((
        Column("city", forbidden=(("*", "c"), ("b", "*"))), Column("debt", "numeric"),
    )))  # fmt: skip
    c = Constraints.of(Encoder.fit(table), "Test")
    codes = np.array([0.0, 1.0])
    assert c.allows_values(0, codes, codes).tolist() == [[True, True], [False, True]]


def test_a_star_that_is_a_value_of_the_column_is_that_value():
    c = Constraints.of(
        encoder_of(city=Column("city", domain=("*", "a", "b"))), "Test", forbidden={"city": [("*", "a")]}
    )
    codes = np.array([0.0, 1.0, 2.0])
    assert (~c.allows_values(3, codes, codes)).sum() == 1


def test_what_people_ask_for_besides_is_theirs_alone():
    fitted = Constraints.of(ENCODER, "Test", immutable=["city"])
    found, of = asked_for([None, {"immutable": ["age"]}, {}, {"immutable": ["age"]}, {"max_changes": 1}], 5, fitted)
    assert of.tolist() == [0, 1, 0, 1, 2]
    assert [c.spelt() for c in found] == [
        {"immutable": ["city"]},
        {"immutable": ["age", "city"]},
        {"immutable": ["city"], "max_changes": 1},
    ]
    found, of = asked_for({"costs": {"debt": 3}}, 2, fitted)
    assert of.tolist() == [0, 0] and found[0].weights.tolist() == [1.0, 3.0, 1.0, 1.0]
    for wrong in ([{}], {"imutable": ["age"]}, ["age"], "age", 3):
        with pytest.raises(cv.CountervailError, match="'constraints' parameter of Test must be"):
            asked_for(wrong, 2, fitted)


def test_none_leaves_an_end_open_and_dates_may_be_said_as_dates():
    assert Constraints.of(ENCODER, "Test", ranges={"age": (None, 30)}).allowed == {0: (-math.inf, 30.0)}
    assert Constraints.of(ENCODER, "Test", ranges={"debt": (5, None)}).allowed == {1: (5.0, math.inf)}
    born = Column("born", "date")
    frame = pd.DataFrame({"born": ["1970-01-02", "1999-12-31"]})
    encoder = Encoder.fit(cv.Table(frame, Schema((born,))))
    for low in ("1970-01-03", pd.Timestamp("1970-01-03 10:00"), np.datetime64("1970-01-03"), 2, 2.0):
        assert Constraints.of(encoder, "Test", ranges={"born": (low, None)}).allowed == {0: (2.0, math.inf)}
    assert Constraints.of(encoder, "Test", forbidden={"born": [("*", "1970-01-02")]}).forbidden == {0: ((ANY, 1.0),)}
    for wrong in ("soon", True, "1970-02-30"):
        with pytest.raises(ValueError, match="two dates or None for an open end"):
            Constraints.of(encoder, "Test", ranges={"born": (wrong, None)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"immutable": NAMES}, "'immutable' parameter of Test must be less than all feature columns"),
        ({"immutable": ["shoe"]}, "'immutable' parameter of Test must be made of feature columns"),
        ({"ranges": {"age": (120, 200)}}, "'ranges' .* holds values of its declared domain"),
        ({"ranges": {"city": []}}, "'ranges' parameter of Test must be a list of values for 'city', at least one"),
        ({"ranges": {"age": (3, 2)}}, "'ranges' parameter of Test"),
        ({"ranges": {"age": (3, "old")}}, "two numbers or None for an open end"),
        ({"ranges": {"age": (None,)}}, "two numbers or None for an open end"),
        ({"ranges": {"age": (math.nan, 3)}}, "two numbers or None for an open end"),
        ({"forbidden": {"age": [(None, 30)]}}, "made of numbers for column 'age'"),
        ({"monotone": {"city": "up"}}, "categorical and has no order"),
        ({"forbidden": {"city": [("a", "a")]}}, "from one value to another"),
        ({"forbidden": {"city": [("*", "*")]}}, "from one value to another"),
        ({"forbidden": {"city": [("*", "typo")]}}, "values that column 'city' has"),
        ({"max_changes": 0}, "'max_changes' parameter of Test must be a whole number of at least 1"),
        ({"max_changes": 1.5}, "'max_changes' parameter of Test"),
        ({"costs": {"age": 0}}, "'costs' parameter of Test must be a finite number above 0 for column 'age'"),
        ({"costs": {"age": -1}}, "'costs' parameter of Test"),
        ({"costs": {"age": math.nan}}, "'costs' parameter of Test"),
        ({"costs": {"age": math.inf}}, "'costs' parameter of Test"),
        ({"costs": {"age": True}}, "'costs' parameter of Test"),
        ({"costs": {"shoe": 1}}, "'costs' parameter of Test must be made of feature columns"),
    ],
)
def test_contradictions_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        Constraints.of(ENCODER, "Test", **given)


@pytest.mark.parametrize(
    ("given", "stuck"),
    [
        ({"forbidden": {"age": [(20, "*")]}, "ranges": {"age": (22, 24)}}, True),
        ({"forbidden": {"age": [(21, "*")]}, "ranges": {"age": (22, 24)}}, False),
        ({"forbidden": {"age": [(20, 23)]}, "ranges": {"age": (22, 24)}}, False),
        ({"forbidden": {"age": [(20, 23)]}, "ranges": {"age": (23, 23)}}, True),
        ({"forbidden": {"age": [("*", 23)]}, "ranges": {"age": (23, 23)}, "monotone": {"age": "up"}}, True),
    ],
)
def test_a_number_that_must_move_and_may_not_be_left_is_stuck(given, stuck):
    c = Constraints.of(ENCODER, "Test", **given)
    assert c.stuck(coded([(20, DEBTS[0], LEVELS[0], CITIES[0])]))[0].tolist()[0] is stuck
