"""HEOM and the nearest-neighbour kernel against plain-Python twins."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail import Column, Schema, Table
from countervail.core.distance import EPS, HEOM, Neighbours, stretched_columns
from countervail.core.encode import Encoder

LEVELS, CITIES = ("lo", "mid", "hi"), ("x", "y", "z")
SCHEMA = Schema(
    (
        Column("a", "numeric"),
        Column("b", "numeric"),
        Column("level", "ordinal", levels=LEVELS),
        Column("city"),
        Column("job"),
    )
)
row = st.tuples(
    st.integers(0, 4),
    st.integers(0, 6).map(lambda v: v / 4),
    st.sampled_from([*LEVELS, None]),
    st.sampled_from([*CITIES, None]),
    st.sampled_from(["p", "q"]),
)


def as_frame(rows):
    return pd.DataFrame(rows, columns=SCHEMA.names()).astype({"level": object, "city": object, "job": object})


def slow_distance(p, q, scales, weights=(1, 1, 1, 1, 1)):
    """The slow twin: HEOM of two rows as the paper writes it, terms in column order; weights are ours."""
    total = 0.0
    for j in (0, 1):
        total += abs(p[j] - q[j]) / scales[j] * weights[j]
    if p[2] is None or q[2] is None:
        total += 0.0 if p[2] is q[2] else weights[2]
    else:
        total += abs(LEVELS.index(p[2]) - LEVELS.index(q[2])) / 2 * weights[2]
    return total + sum(weights[j] * (p[j] != q[j]) for j in (3, 4))


def slow_scales(rows, kind):
    out = []
    for j in (0, 1):
        values = [r[j] for r in rows]
        mean = sum(values) / len(values)
        spread = (
            max(values) - min(values)
            if kind == "minmax"
            else math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
        )
        out.append(max(spread, EPS))
    return out


def space(rows, queries, kind="minmax"):
    table, asked = Table(as_frame(rows), SCHEMA), as_frame(queries)
    encoder = Encoder.fit(table)
    heom = HEOM.fit(encoder, encoder.encode(table.frame), kind)
    wide, _ = encoder.extended(asked)
    heom = HEOM(heom.measured, heom.scale, np.array([c.missing for c in wide.codings], dtype=float))
    return heom, wide.encode(table.frame), wide.encode(asked)


@given(st.lists(row, min_size=2, max_size=8), st.sampled_from(["minmax", "std"]))
def test_between_is_the_distance_of_the_paper(rows, kind):
    heom, coded, _ = space(rows, rows, kind)
    scales = slow_scales(rows, kind)
    there = heom.between(coded, coded[::-1])
    assert there.tolist() == pytest.approx([slow_distance(p, q, scales) for p, q in zip(rows, rows[::-1])])
    assert heom.between(coded, coded).tolist() == [0.0] * len(rows)


def slow_nearest(
    rows, classes, eligible, query, wanted, n, scales, admissible=None, distinct=True, weights=(1, 1, 1, 1, 1)
):
    """The slow twin: all rows by distance and row number; of equal rows of a class only the first."""
    seen, ranked = set(), []
    for i, r in enumerate(rows):
        if not eligible[i] or (distinct and (r, classes[i]) in seen):
            continue
        seen.add((r, classes[i]))
        if wanted[classes[i]] and (admissible is None or admissible[i]):
            ranked.append((slow_distance(r, query, scales, weights), i))
    ranked.sort()
    return [i for _, i in ranked[:n]] + [-1] * (n - len(ranked)), [d for d, _ in ranked[:n]]


@given(st.data(), st.lists(row, min_size=2, max_size=14), st.lists(row, min_size=1, max_size=4), st.integers(1, 4))
def test_nearest_rows_are_those_of_the_slow_twin(data, rows, queries, n):
    classes = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    eligible = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    wanted = data.draw(
        st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=len(queries), max_size=len(queries))
    )
    distinct = data.draw(st.booleans())
    # Scales that are exact in binary keep ties ties in both computations.
    heom, coded, asked = space([*rows, (0, 0.0, "lo", "x", "p"), (4, 1.0, "hi", "y", "q")], queries)
    heom = HEOM(heom.measured, np.array([4.0, 2.0, 2.0]), heom.missing)
    index = Neighbours(heom, coded[: len(rows)], np.array(classes), np.array(eligible), distinct=distinct)
    found, distances = index.nearest(asked, np.array(wanted), n)
    for i, query in enumerate(queries):
        expected, apart = slow_nearest(rows, classes, eligible, query, wanted[i], n, (4.0, 2.0), distinct=distinct)
        assert found[i].tolist() == expected
        assert distances[i].tolist() == apart + [np.inf] * (n - len(apart))


@given(st.data(), st.lists(row, min_size=2, max_size=10, unique=True), st.integers(1, 3))
def test_only_admissible_rows_are_found(data, rows, n):
    allowed = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    heom, coded, asked = space([*rows, (0, 0.0, "lo", "x", "p"), (4, 1.0, "hi", "y", "q")], rows[:1])
    heom = HEOM(heom.measured, np.array([4.0, 2.0, 2.0]), heom.missing)
    every = np.zeros(len(rows), dtype=np.int64)
    index = Neighbours(heom, coded[: len(rows)], every, every == 0)
    found, _ = index.nearest(asked, np.ones((1, 1), dtype=bool), n, np.array([allowed]))
    expected, _ = slow_nearest(rows, every, every == 0, rows[0], [True], n, (4.0, 2.0), admissible=allowed)
    assert found[0].tolist() == expected


def test_a_tie_goes_to_the_first_row():
    rows = [(2, 0.0, "lo", "y", "p"), (0, 0.0, "lo", "x", "q"), (4, 0.0, "lo", "x", "q")]
    heom, coded, asked = space(rows, [(2, 0.0, "lo", "x", "q")])
    index = Neighbours(heom, coded, np.zeros(3, dtype=np.int64), np.ones(3, dtype=bool))
    found, distances = index.nearest(asked, np.ones((1, 1), dtype=bool), 3)
    # Rows 1 and 2 lie half a range away; row 0 differs in two labels.
    assert found.tolist() == [[1, 2, 0]]
    assert distances.tolist() == [[0.5, 0.5, 2.0]]


def test_equal_rows_are_neighbours_each_unless_distinct_ones_are_asked_for():
    rows = [(1, 0.0, "lo", "x", "p")] * 3 + [(3, 0.0, "lo", "x", "p")]
    heom, coded, asked = space(rows, rows[:1])
    every = np.zeros(4, dtype=np.int64)
    wanted = np.ones((1, 1), dtype=bool)
    assert Neighbours(heom, coded, every, every == 0, distinct=False).nearest(asked, wanted, 4)[0].tolist() == [
        [0, 1, 2, 3]
    ]
    assert Neighbours(heom, coded, every, every == 0).nearest(asked, wanted, 4)[0].tolist() == [[0, 3, -1, -1]]


def test_no_eligible_row_means_no_neighbour():
    rows = [(1, 0.0, "lo", "x", "p"), (2, 0.0, "lo", "x", "p")]
    heom, coded, asked = space(rows, rows)
    index = Neighbours(heom, coded, np.zeros(2, dtype=np.int64), np.zeros(2, dtype=bool))
    assert index.nearest(asked, np.ones((2, 1), dtype=bool), 2)[0].tolist() == [[-1, -1], [-1, -1]]


@pytest.mark.parametrize("kinds", [["numeric"], ["categorical"]])
def test_one_kind_of_column_is_enough(kinds):
    frame = pd.DataFrame({"a": [1, 2, 5] if kinds == ["numeric"] else ["x", "y", "z"]})
    encoder = Encoder.fit(Table.from_frame(frame))
    coded = encoder.encode(frame)
    heom = HEOM.fit(encoder, coded)
    index = Neighbours(heom, coded, np.array([0, 1, 1]), np.ones(3, dtype=bool))
    assert index.nearest(coded[:1], np.array([[False, True]]))[0].tolist() == [[1]]


def test_a_constant_column_does_not_divide_by_zero():
    rows = [(1, 0.0, "lo", "x", "p"), (1, 1.0, "lo", "x", "p")]
    heom, coded, _ = space(rows, rows)
    assert heom.scale.tolist() == [EPS, 1.0, 2.0]
    assert heom.between(coded[:1], coded[1:]).tolist() == [1.0]


def test_a_level_that_only_the_query_misses_is_one_away_from_every_level():
    rows = [(1, 0.0, level, "x", "p") for level in LEVELS]
    table, asked = Table(as_frame(rows), SCHEMA), as_frame([(1, 0.0, None, "x", "p")])
    encoder = Encoder.fit(table)
    heom = HEOM.fit(encoder, encoder.encode(table.frame))
    wide, query = encoder.extended(asked)
    coded = wide.encode(table.frame)
    assert heom.between(np.repeat(query, 3, axis=0), coded).tolist() == [1.0, 1.0, 1.0]
    every = np.zeros(3, dtype=np.int64)
    _, away = Neighbours(heom, coded, every, every == 0).nearest(query, np.ones((1, 1), dtype=bool), 3)
    assert away.tolist() == [[1.0, 1.0, 1.0]]


@given(
    st.lists(row, min_size=2, max_size=14), row, st.integers(1, 4), st.tuples(*[st.sampled_from((0.25, 1.0, 8.0))] * 5)
)
def test_weighed_columns_are_those_of_the_slow_twin(rows, query, n, weights):
    heom, coded, asked = space([*rows, (0, 0.0, "lo", "x", "p"), (4, 1.0, "hi", "y", "q")], [query])
    heom = HEOM(heom.measured, np.array([4.0, 2.0, 2.0]), heom.missing)
    every = np.zeros(len(rows), dtype=np.int64)
    index = Neighbours(heom, coded[: len(rows)], every, every == 0, distinct=False)
    found, distances = index.nearest(asked, np.ones((1, 1), dtype=bool), n, weights=np.array(weights))
    args = (rows, every, every == 0, query, [True], n, (4.0, 2.0))
    expected, apart = slow_nearest(*args, distinct=False, weights=weights)
    assert found[0].tolist() == expected and distances[0, : len(apart)].tolist() == apart
    again = heom.between(np.repeat(asked, len(rows), axis=0), coded[: len(rows)], np.array(weights))
    assert again.tolist() == [slow_distance(r, query, (4.0, 2.0), weights) for r in rows]


def one_column(values, domain=None):
    table = Table(pd.DataFrame({"a": values}), Schema((Column("a", "numeric", domain=domain),)))
    encoder = Encoder.fit(table)
    return encoder, encoder.encode(table.frame)


@pytest.mark.parametrize(
    ("scale", "domain", "expected"),
    [
        ("minmax", None, 1000.0),
        ("range", None, 1000.0),
        ("range", (0, 5000), 5000.0),
        ("iqr", None, 2.0),  # quartiles 1 and 3 by linear interpolation
        ("std", None, float(np.std([0, 1, 2, 3, 1000]))),
    ],
)
def test_scales_are_what_they_are_called(scale, domain, expected):
    encoder, rows = one_column([0, 1, 2, 3, 1000], domain)
    assert HEOM.fit(encoder, rows, scale).scale.tolist() == [expected]


def test_an_interquartile_range_of_nothing_is_replaced_by_the_standard_deviation():
    encoder, rows = one_column([5, 5, 5, 5, 5, 9])
    assert HEOM.fit(encoder, rows, "iqr").scale.tolist() == [pytest.approx(np.std([5, 5, 5, 5, 5, 9]))]
    encoder, rows = one_column([5, 5, 5])
    assert HEOM.fit(encoder, rows, "iqr").scale.tolist() == [EPS]


def test_by_rank_a_distance_is_the_share_of_people_in_between():
    encoder, rows = one_column([0, 1, 1, 3, 1000])
    heom = HEOM.fit(encoder, rows, "quantile")
    # Half of those at either end count: 0 is at 0.1, 1 at 0.4, 3 at 0.7, 1000 at 0.9.
    steps = heom.between(np.array([[0.0], [1.0], [3.0], [0.0]]), np.array([[1.0], [3.0], [1000.0], [1000.0]]))
    assert steps.tolist() == pytest.approx([0.3, 0.3, 0.2, 0.8])
    assert heom.between(np.array([[2.0]]), np.array([[1.0]])).tolist() == pytest.approx([0.15])  # halfway to 3
    assert heom.between(np.array([[-9.0]]), np.array([[2000.0]])).tolist() == pytest.approx([0.8])  # beyond the ends


def test_columns_that_a_few_values_stretch_are_named():
    rng = np.random.default_rng(0)
    usual = rng.normal(0, 1, 1000)
    assert stretched_columns(*one_column(usual)) == []
    assert stretched_columns(*one_column([*usual, 1e6])) == ["a"]
    assert stretched_columns(*one_column([*usual, *rng.uniform(0, 1e6, 100)])) == []  # not a few
    assert stretched_columns(*one_column([0.0] * 1000 + [1.0])) == []  # the others do not differ at all
    assert stretched_columns(*one_column([*usual, float("nan"), 1e6])) == ["a"]
