"""Cuts found in sorted columns are those of the kernel that looks at every row, which has a slow twin of its own."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect.mondrian import mondrian, sorted_growth
from countervail.protect.mondrian.columns import attributes, rank_numbers
from countervail.protect.mondrian.constraints import make_constraints
from countervail.protect.mondrian.grow import partition
from countervail.protect.mondrian.sorted_growth import grown_sorted, partition_sorted

KINDS = ("different", "ties", "few values", "alike", "skewed", "constant", "infinite", "zeros")


def numbers(kind, rows, columns, seed):
    """Rows of numbers of some kind."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    if kind == "ties":
        return np.round(x, 1)
    if kind == "few values":
        return np.hstack([x[:, :1], rng.integers(0, 3, (rows, columns - 1))])
    if kind == "alike":
        return x[:, :1] * rng.normal(size=columns) + 0.3 * x
    if kind == "skewed":
        return np.exp(20 * x)
    if kind == "constant":
        return np.where(np.arange(columns) == 0, x, 3.0)
    if kind == "infinite":
        return np.where(rng.random(x.shape) < 0.01, np.inf * np.sign(x), x)
    return np.where(rng.random(x.shape) < 0.5, -0.0, x) if kind == "zeros" else x


def coded(x):
    """Codes and their description."""
    known, codes = zip(*(rank_numbers(pd.Series(column)) for column in x.T))
    positions, rows = np.zeros((x.shape[1], max(map(len, known)))), x.shape[1]
    for line, values in zip(positions, known):
        line[: len(values)], line[len(values) :] = values, values[-1]
    with np.errstate(invalid="ignore"):
        span = np.array([v[-1] - v[0] for v in known])
    sizes = np.array([len(v) for v in known], np.int32)
    return np.column_stack(codes), attributes(np.zeros(rows, np.int8), sizes, np.zeros(rows, bool), positions, span)


def rules(rows, k):
    return make_constraints(np.zeros(rows, np.int32), np.ones(rows, np.int64), 1, k, 0, 1, 1, 0, 1, np.zeros((1, 1)))


def cut(x, k):
    """The partition of the kernel that looks at every row."""
    codes, data = coded(x)
    secret, counts = np.zeros(len(x), np.int32), np.ones(len(x), np.int64)
    return partition(codes, counts, secret, data, rules(len(x), k))


def assert_same(one, other):
    assert one.n_cells == other.n_cells and (one.cell_of == other.cell_of).all()
    for name, nodes in one.tree._asdict().items():
        same = getattr(other.tree, name)
        assert nodes.dtype == same.dtype and (nodes == same).all(), name


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("kind", KINDS)
def test_sorted_columns_give_the_same_cuts(kind, seeds):
    for seed in seeds(12, 400):
        rng = np.random.default_rng(seed)
        x = numbers(kind, int(rng.integers(2, 700)), int(rng.integers(1, 7)), seed)
        k = int(rng.integers(1, 9))
        found = grown_sorted(*coded(x), min(k, len(x)))
        assert found is not None
        assert_same(found, cut(x, min(k, len(x))))


def test_columns_that_say_the_same_are_left_to_the_other_kernel():
    x = np.repeat(np.random.default_rng(0).normal(size=(4000, 1)), 8, axis=1)
    codes, data = coded(x)
    assert grown_sorted(codes, data, 2) is None
    given = codes.copy()
    found = partition_sorted(codes, np.ones(4000, np.int64), np.zeros(4000, np.int32), data, rules(4000, 2))
    assert_same(found, cut(x, 2))
    assert (codes == given).all()


def test_only_rows_of_single_people_are_cut_in_sorted_columns(monkeypatch):
    calls = []
    grown = sorted_growth.grown_sorted
    monkeypatch.setattr(sorted_growth, "grown_sorted", lambda *given: calls.append(1) or grown(*given))
    x = numbers("different", 300, 3, 0)
    codes, data = coded(x)
    secret, one, two = np.zeros(300, np.int32), np.ones(300, np.int64), np.full(300, 2)
    partition_sorted(codes, two, secret, data, rules(300, 5))
    partition_sorted(codes, one, secret, data._replace(missing=np.full(3, 299, np.int32)), rules(300, 5))
    assert partition_sorted(codes, one, secret, data, rules(300, 301)).failed
    assert not calls
    assert_same(partition_sorted(codes, one, secret, data, rules(300, 5)), cut(x, 5))
    assert calls == [1]


@pytest.mark.parametrize("choose", ["gain", "span"])
def test_a_release_is_the_same_either_way(choose, monkeypatch):
    calls = []
    monkeypatch.setattr(mondrian, "partition_sorted", lambda *given: calls.append(1) or partition_sorted(*given))
    frame = pd.DataFrame(numbers("different", 1500, 4, 0), columns=list("abcd"))
    table = cv.Table(frame, cv.Schema(tuple(cv.Column(n, "numeric", "quasi") for n in frame.columns)))

    def released():
        return cv.Mondrian(k=5, choose=choose, random_state=0).fit(table).protect(table)

    before = released()
    assert not calls
    monkeypatch.setattr(mondrian, "MANY", 1)
    after = released()
    assert len(calls) == (choose == "gain")
    assert after.to_json() == before.to_json() and after.to_frame().equals(before.to_frame())
