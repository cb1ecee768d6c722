"""Equal rows once, and the best of each group, against plain loops."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countervail.core.arrays import distinct_frame_rows, distinct_rows, every_combination, first_best, stable_order

small = st.sampled_from([0.0, 1.0, 2.0, np.nan])


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=70))
def test_distinct_rows_are_those_of_numpy_in_the_same_order(rows):
    rows = np.array(rows, dtype=float)
    first, which = distinct_rows(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert (rows[first] == expected).all() and (which == inverse.ravel()).all()
    assert all(not (rows[:f] == rows[f]).all(axis=1).any() for f in first), "the first of equal rows stands for them"


@given(st.lists(st.tuples(small, small), min_size=1, max_size=20))
def test_missing_equals_missing(rows):
    first, which = distinct_rows(np.array(rows))
    assert len(first) == len({tuple("nan" if v != v else v for v in row) for row in rows})
    assert np.array_equal(np.array(rows)[first][which], np.array(rows), equal_nan=True)


def test_rows_with_more_combinations_than_a_number_can_hold():
    rows = np.random.default_rng(0).integers(0, 4, (400, 40)).astype(float)
    rows = np.concatenate([rows, rows[::-1], rows[:50]])
    first, which = distinct_rows(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert (rows[first] == expected).all() and (which == inverse.ravel()).all() and first.max() < 400


def test_rows_may_have_more_columns_than_numpy_counts_dimensions():
    rows = np.zeros((5, 90))
    rows[3:, 70] = 1
    first, which = distinct_rows(rows)
    assert first.tolist() == [0, 3] and which.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("shape", [(0, 3), (1, 1)])
def test_few_rows(shape):
    first, which = distinct_rows(np.zeros(shape))
    assert len(first) == len(which) == shape[0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_first_best_is_the_first_largest_of_each_group(pairs):
    pairs = sorted(pairs, key=lambda p: p[0])
    group, value = np.array([g for g, _ in pairs]), np.array([float(v) for _, v in pairs])
    expected = []
    for g in sorted(set(group.tolist())):
        inside = [i for i in range(len(pairs)) if group[i] == g]
        expected.append(max(inside, key=lambda i: (value[i], -i)))
    assert first_best(group, value).tolist() == expected


def test_rows_of_a_frame_count_once_with_their_number():
    frame = pd.DataFrame({"a": ["x", None, "x", None], "b": [1, 2, 1, 2], "c": range(4)})
    rows, counts = distinct_frame_rows(frame, ["a", "b"])
    assert rows["b"].tolist() == [1, 2] and counts.tolist() == [2, 2]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_every_combination_is_the_product_in_order(sizes):
    options = [np.arange(n) + 10 * i for i, n in enumerate(sizes)]
    found = every_combination(options)
    assert found.shape == (math.prod(sizes), len(sizes))
    assert [tuple(row) for row in found.tolist()] == list(product(*(o.tolist() for o in options)))


def test_combinations_of_more_columns_than_numpy_grids_have():
    assert every_combination([np.array([1])] * 70 + [np.array([1, 2])]).tolist() == [[1] * 71, [1] * 70 + [2]]


@pytest.mark.parametrize("top", [1, 60_000, 70_000, 1 << 31, 1 << 40])
def test_very_many_numbers_are_sorted_as_few_are(top):
    keys = np.random.default_rng(top).integers(0, top, 70_000)
    assert (stable_order(keys) == np.argsort(keys, kind="stable")).all()
    assert (stable_order(keys[:50]) == np.argsort(keys[:50], kind="stable")).all()
    assert len(stable_order(keys[:0])) == 0
