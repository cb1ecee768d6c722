"""Distances between distributions: worked values, and a linear programme as the slow twin of each closed form."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countervail.core.divergence import (
    Distance,
    half_l1,
    kl_divergence,
    line_distance,
    matrix_distance,
    max_divergence,
    tree_distance,
)
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.hierarchy import Hierarchy
from countervail.core.schema import Column

JOBS = Hierarchy(
    (
        ("Engineer", "Professional", "*"),
        ("Lawyer", "Professional", "*"),
        ("Dancer", "Artist", "*"),
        ("Writer", "Artist", "*"),
    ),
    "job",
)
VALUES = ("Dancer", "Engineer", "Lawyer", "Writer")
JOB = Column("job", "categorical", "sensitive")


def distance(kind="emd", ground="equal", scale="half", values=VALUES, column=JOB):
    return Distance(kind, ground, scale, values, column, "Test")


@st.composite
def pairs(draw, size=4):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return rng.dirichlet(np.ones(size) * 0.5, 2)


def test_the_example_of_the_paper_at_half_and_at_a_quarter():
    # Kassem et al. (2018), section 3.4.1: they print 0.24, a quarter of the L1 distance
    p, q = [[0.49, 0.01, 0.5]], [[0.01, 0.49, 0.5]]
    args = {"values": ("a", "b", "c")}
    assert distance(**args)(p, q) == pytest.approx([0.48])
    assert distance(scale="quarter", **args)(p, q) == pytest.approx([0.24])


def test_path_lengths_in_a_hierarchy():
    d = distance(ground=JOBS)
    one = np.eye(4)
    assert d(one[[0]], one[[3]]) == pytest.approx([2])  # Dancer and Writer (figure 2 of the paper)
    assert d(one[[0]], one[[1]]) == pytest.approx([4])


def test_groups_of_a_hierarchy_are_values_too():
    # Kassem et al. (2018), figure 2: S takes values from {Engineer, Lawyer, Professional, Dancer, Writer, Artist, ANY};
    # "the ground distance between Engineer and Artist is 3, and between Dancer and Writer is 2".
    values = ("Engineer", "Lawyer", "Professional", "Dancer", "Writer", "Artist", "*")
    d, one = distance(ground=JOBS, values=values), np.eye(len(values))
    far = {(a, b): float(d(one[[i]], one[[j]])[0]) for i, a in enumerate(values) for j, b in enumerate(values)}
    assert far["Engineer", "Artist"] == 3 and far["Dancer", "Writer"] == 2
    assert far["Engineer", "Professional"] == 1 and far["Professional", "Artist"] == 2 and far["Engineer", "*"] == 2
    steps = slow_path_lengths(JOBS)
    assert all(far[a, b] == steps[a, b] for a in values for b in values)
    with pytest.raises(SchemaError, match="misses 1 of the 2 values"):
        distance(ground=JOBS, values=("Engineer", "Plumber"))


def slow_path_lengths(tree):
    """From every node to every other, edge by edge."""
    edges = {frozenset(pair) for row in tree.rows for pair in pairwise(row)}
    nodes = sorted({label for row in tree.rows for label in row})
    out = {}
    for start in nodes:
        out[start, start], front = 0, [start]
        while front:
            node = front.pop(0)
            for other in nodes:
                if frozenset((node, other)) in edges and (start, other) not in out:
                    out[start, other] = out[start, node] + 1
                    front.append(other)
    return out


@settings(max_examples=40, deadline=None)
@given(pairs(size=7))
def test_masses_on_groups_move_as_the_linear_programme_says(both):
    values = ("Engineer", "Lawyer", "Professional", "Dancer", "Writer", "Artist", "*")
    steps = slow_path_lengths(JOBS)
    cost = np.array([[steps[a, b] for b in values] for a in values])
    p, q = both[:1], both[1:]
    assert distance(ground=JOBS, values=values)(p, q) == pytest.approx(matrix_distance(p, q, cost), abs=1e-9)


def test_ordered_values_by_rank_and_by_number():
    levels = Column("pay", "ordinal", "sensitive", levels=("low", "mid", "high"))
    d = distance(ground="ordered", values=("high", "low", "mid"), column=levels)
    assert d([[1.0, 0, 0]], [[0, 1.0, 0]]) == pytest.approx([2])
    number = Column("n", "numeric", "sensitive")
    d = distance(ground="ordered", values=(10, 3, None), column=number)
    assert d([[1.0, 0, 0]], [[0, 1.0, 0]]) == pytest.approx([7])
    assert d([[1.0, 0, 0]], [[0, 0, 1.0]]) == pytest.approx([1])


@settings(max_examples=40, deadline=None)
@given(pairs())
def test_closed_forms_equal_the_linear_programme(both):
    p, q = both[:1], both[1:]
    assert half_l1(p, q) == pytest.approx(matrix_distance(p, q, 1 - np.eye(4)), abs=1e-9)
    places = np.array([0.0, 1.0, 4.0, 4.5])
    assert line_distance(p, q, places) == pytest.approx(matrix_distance(p, q, abs(places[:, None] - places)), abs=1e-9)
    above = JOBS.ancestors(list(VALUES))
    meet = np.array([[2 * min(k for k in range(3) if a[k] == b[k]) for b in above] for a in above])
    assert tree_distance(p, q, above) == pytest.approx(matrix_distance(p, q, meet), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(pairs())
def test_pinsker_holds_and_equal_distributions_are_at_distance_zero(both):
    p, q = both[:1], both[1:]
    assert kl_divergence(p, q)[0] >= 2 * half_l1(p, q)[0] ** 2 - 1e-12
    assert kl_divergence(p, q)[0] <= max_divergence(p, q)[0] + 1e-12
    for f in (half_l1, kl_divergence, max_divergence):
        assert f(p, p)[0] == 0


def test_what_one_rules_out_and_the_other_allows_is_infinitely_far():
    p, q = [[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]]
    assert max_divergence(p, q)[0] == np.inf
    assert kl_divergence(p, q)[0] == np.inf
    assert kl_divergence(q, p)[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "hellinger"}, "'distance'"),
        ({"scale": "third"}, "'scale'"),
        ({"scale": "quarter", "kind": "kl"}, "'scale'"),
        ({"ground": "far"}, "'ground'"),
        ({"ground": np.ones((4, 4))}, "4 x 4"),
        ({"ground": np.zeros((2, 2))}, "4 x 4"),
        ({"ground": object()}, "4 x 4"),
    ],
    ids=["kind", "scale", "quarter", "ground", "diagonal", "shape", "object"],
)
def test_bad_distances_say_what_must_be(changes, says):
    with pytest.raises(ParameterError, match=says):
        distance(**changes)


def test_categories_have_no_order():
    with pytest.raises(SchemaError, match="no order"):
        distance(ground="ordered")
