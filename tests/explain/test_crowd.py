"""How far rows lie from a crowd: blocks of near rows against a plain search through all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.core.distance import HEOM
from countervail.explain import crowd
from countervail.explain.crowd import RowBlocks, RowCrowd
from countervail.testing import small_model, small_table


def slow_distances(heom, rows, x, n):
    """Every row, column by column, as the definition says."""
    numbers, labels, own, words = heom.numbers(rows), heom.labels(rows), heom.numbers(x)[0], heom.labels(x)[0]
    found = []
    for a in range(len(rows)):
        s = 0.0
        for j, width in enumerate(heom.scale):
            if np.isnan(numbers[a, j]) or np.isnan(own[j]):
                s += 0.0 if np.isnan(numbers[a, j]) and np.isnan(own[j]) else 1.0
            else:
                s += abs(numbers[a, j] - own[j]) / width
        found.append(s + float((labels[a] != words).sum()))
    return sorted(found)[:n]


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(0, 4), st.integers(0, 4), st.integers(1, 40))
def test_blocks_find_the_distances_of_a_search_through_all_rows(seed, many, numbers, labels, size):
    rng = np.random.default_rng(seed)
    if numbers + labels == 0:
        numbers = 1
    heom = HEOM(
        np.arange(numbers + labels) < numbers, rng.choice([0.1, 1.0, 7.0, 30.0], numbers), np.full(numbers, -1.0)
    )
    ties, holes, many_labels = rng.integers(1, 40), rng.choice([0.0, 0.2, 0.9]), rng.choice([2, 5, 150])

    def made(n):
        held = np.rint(rng.normal(0, 3, (n, numbers)) * ties) / ties
        held[rng.random(held.shape) < holes] = np.nan
        return np.column_stack([held, rng.integers(0, many_labels, (n, labels))]).astype(float)

    rows, asked = made(many), made(5)
    rows = rows[rng.integers(0, many, many)]  # some of them several times
    with pytest.MonkeyPatch.context() as m:
        m.setattr(crowd, "_BLOCK", size)
        m.setattr(crowd, "_BLOCKS", many + 1)
        blocks = RowBlocks(heom, rows)
    n = min(5, many)
    found = blocks.distances(asked, n)
    for x, distances in zip(asked, found):
        assert distances.tolist() == slow_distances(heom, rows, x[None], n)  # to the last digit
    assert np.diff(blocks._starts).max() <= size and blocks._starts[-1] == many


def test_answers_are_the_same_with_blocks_and_without(monkeypatch):
    table, rows = small_table(900), small_table(40, seed=3)
    frames = []
    for many in (10**9, 1):
        monkeypatch.setattr(crowd, "_MANY", many)
        nice = cv.NICE("typical", target="favourable").fit(table, small_model)
        assert isinstance(nice.crowd_._rows, RowBlocks) == (many == 1)
        frames.append(nice.explain(rows).to_json())
    assert frames[0] == frames[1]


def test_a_crowd_of_one_row_many_times_lies_nowhere_else():
    row = np.array([[3.0, 1.0]])
    heom = HEOM(np.array([True, False]), np.array([2.0]), np.array([-1.0, -1.0]))
    away = RowCrowd(heom, np.repeat(row, 5_000, axis=0)).away(np.array([[3.0, 1.0], [4.0, 1.0], [3.0, 0.0]]))
    assert away.tolist() == [0.0, 0.5, 1.0]
