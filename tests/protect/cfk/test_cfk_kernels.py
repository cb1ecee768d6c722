"""The compiled region search against a plain enumeration of every region."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countervail.protect.cfk.branch_and_bound import smallest_region, smallest_regions
from countervail.protect.cfk.grasp import grasp_construct
from countervail.protect.cfk.regions import count_inside, region_cost

PLENTY = 10**9


@dataclass(frozen=True)
class Problem:
    tuples: Any
    counts: Any
    interval: Any
    sizes: Any
    positions: Any
    unit: Any
    centre: Any
    k: int
    forbidden: Any

    @property
    def table(self):
        return self.tuples, self.counts, self.interval

    @property
    def measure(self):
        return self.interval, self.sizes, self.positions, self.unit

    def solve(self, node_budget=PLENTY):
        return smallest_region(
            self.tuples, self.counts, *self.measure, self.centre, self.k, self.forbidden, node_budget
        )


def sorted_table(tuples, counts):
    """Distinct tuples in lexicographic order with the sum of their counts."""
    distinct, which = np.unique(tuples, axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), weights=counts).astype(np.int64)
    return np.ascontiguousarray(distinct, dtype=np.int32), total


def problem(rows, counts, interval, sizes, positions, weights, centre, k, forbidden=()):
    tuples, total = sorted_table(np.asarray(rows), np.asarray(counts))
    interval, sizes = np.asarray(interval, bool), np.asarray(sizes, np.int64)
    table = np.zeros((len(sizes), sizes.max()))
    unit = np.zeros(len(sizes))
    for j, m in enumerate(sizes):
        table[j, :m] = positions[j][:m]
        span = table[j, m - 1] - table[j, 0] if interval[j] else m
        unit[j] = weights[j] / span if span > 0 else 0.0
    cells = np.array(sorted(set(map(tuple, forbidden))), np.int64).reshape(-1, len(sizes))
    return Problem(tuples, total, interval, sizes, table, unit, np.asarray(centre, np.int64), k, cells)


def random_problem(rng):
    q = int(rng.integers(1, 5))
    sizes = rng.integers(1, 6, q)
    interval = rng.random(q) < 0.5
    if rng.random() < 0.2:
        # Value sets of several values each, where the choice of values is the problem.
        q, sizes, interval = 2, rng.integers(5, 8, 2), np.zeros(2, bool)
    number = int(rng.integers(1, 26))
    # Whole positions and weights of few values make equal costs common.
    if rng.random() < 0.5:
        positions = [np.cumsum(rng.integers(1, 3, m)).astype(float) for m in sizes]
    else:
        positions = [np.cumsum(rng.random(m) + 0.01) for m in sizes]
    rows = rng.integers(0, sizes, (number, q))
    centre = rows[0] if rng.random() < 0.7 else rng.integers(0, sizes)
    forbidden = rng.integers(0, sizes, (int(rng.integers(0, 7)) if rng.random() < 0.6 else 0, q))
    return problem(
        rows,
        rng.integers(1, 4, number),
        interval,
        sizes,
        positions,
        rng.choice([0.0, 0.25, 0.5, 1.0], q),
        centre,
        int(rng.integers(1, 12)),
        forbidden,
    )


def large_problem(rng, interval, sizes, number, k):
    rows = rng.integers(0, sizes, (number, len(sizes)))
    positions = [np.arange(m, dtype=float) for m in sizes]
    weights = np.full(len(sizes), 1 / len(sizes))
    return problem(rows, np.ones(number), interval, sizes, positions, weights, rows[0], k)


def choices(is_interval, size, centre):
    """Every admissible set of codes of one attribute."""
    if is_interval:
        return [frozenset(range(a, b + 1)) for a in range(centre + 1) for b in range(centre, size)]
    others = [v for v in range(size) if v != centre]
    return [frozenset(c) | {centre} for r in range(size) for c in itertools.combinations(others, r)]


def plain_cost(p, region):
    cost = 0.0
    for j, part in enumerate(region):
        if p.interval[j]:
            cost += float(p.unit[j] * (p.positions[j, max(part)] - p.positions[j, min(part)]))
        elif len(part) > 1:
            cost += float(p.unit[j] * len(part))
    return cost


def plain_contains(region, cell):
    return all(v in part for v, part in zip(cell, region, strict=True))


def plain_count(p, region):
    inside = (plain_contains(region, t) for t in p.tuples.tolist())
    return sum(c for c, keep in zip(p.counts.tolist(), inside, strict=True) if keep)


def plain_optimum(p):
    """Least cost over all regions by enumeration, cheapest first so that the first hit is the answer."""
    parts = [choices(*a) for a in zip(p.interval.tolist(), p.sizes.tolist(), p.centre.tolist(), strict=True)]
    tuples, cells = p.tuples.tolist(), p.forbidden.tolist()
    # Bit masks of the tuples and the forbidden cells that each part admits keep the enumeration quick.
    options = []
    for j, family in enumerate(parts):
        singles = [[frozenset({int(p.centre[i])}) for i in range(len(parts))] for _ in family]
        for region, part in zip(singles, family, strict=True):
            region[j] = part
        options.append(
            [
                (
                    plain_cost(p, region),
                    sum(1 << i for i, t in enumerate(tuples) if t[j] in part),
                    sum(1 << i for i, c in enumerate(cells) if c[j] in part),
                )
                for region, part in zip(singles, family, strict=True)
            ]
        )
    counts = p.counts.tolist()
    best = np.inf
    for picked in itertools.product(*options):
        cost, inside, bad = 0.0, -1, (1 << len(cells)) - 1
        for part_cost, admitted, hit in picked:
            cost, inside, bad = cost + part_cost, inside & admitted, bad & hit
        if cost < best and not bad and sum(c for i, c in enumerate(counts) if inside >> i & 1) >= p.k:
            best = cost
    return best


def as_region(p, low, high, member):
    return [
        frozenset(range(low[j], high[j] + 1)) if p.interval[j] else frozenset(np.flatnonzero(member[j]).tolist())
        for j in range(len(p.sizes))
    ]


def check_region(p, cost, low, high, member):
    region = as_region(p, low, high, member)
    for j, part in enumerate(region):
        assert set(np.flatnonzero(member[j]).tolist()) == part
        assert max(part) < p.sizes[j]
        if not p.interval[j]:
            assert low[j] == high[j] == p.centre[j]
    assert plain_contains(region, p.centre.tolist())
    assert plain_count(p, region) >= p.k
    assert not any(plain_contains(region, c) for c in p.forbidden.tolist())
    assert plain_cost(p, region) == pytest.approx(cost, abs=1e-12)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_cost_is_that_of_the_best_of_all_regions(seed):
    rng = np.random.default_rng(seed)
    infeasible = 0
    for _ in range(300):
        p = random_problem(rng)
        cost, low, high, member, _, bound = p.solve()
        best = plain_optimum(p)
        assert cost == pytest.approx(best, abs=1e-9)
        assert bound == cost
        if np.isfinite(best):
            check_region(p, cost, low, high, member)
        infeasible += not np.isfinite(best)
    assert 5 < infeasible < 200


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_spent_budget_leaves_the_optimum_between_bound_and_cost(seed, node_budget):
    p = random_problem(np.random.default_rng(seed))
    cost, low, high, member, _, bound = p.solve(node_budget)
    best = plain_optimum(p)
    assert bound <= best + 1e-9
    assert best <= cost + 1e-9
    if np.isfinite(cost):
        check_region(p, cost, low, high, member)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, PLENTY]))
@settings(max_examples=300, deadline=None)
def test_result_depends_on_content_only(seed, node_budget):
    rng = np.random.default_rng(seed)
    p = random_problem(rng)
    rows = rng.permutation(np.repeat(p.tuples, p.counts, axis=0))
    tuples, counts = sorted_table(rows, np.ones(len(rows)))
    shuffled = replace(p, tuples=tuples, counts=counts, forbidden=rng.permutation(p.forbidden))
    assert same(p.solve(node_budget), shuffled.solve(node_budget))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_cost_does_not_depend_on_the_order_of_attributes_or_tuples(seed):
    rng = np.random.default_rng(seed)
    p = random_problem(rng)
    order, shuffle = rng.permutation(len(p.sizes)), rng.permutation(len(p.tuples))
    turned = Problem(
        np.ascontiguousarray(p.tuples[shuffle][:, order]),
        np.ascontiguousarray(p.counts[shuffle]),
        *(np.ascontiguousarray(a[order]) for a in p.measure),
        np.ascontiguousarray(p.centre[order]),
        p.k,
        np.ascontiguousarray(p.forbidden[:, order]),
    )
    cost, low, high, member, _, _ = turned.solve()
    assert cost == pytest.approx(p.solve()[0], abs=1e-9)
    if np.isfinite(cost):
        check_region(turned, cost, low, high, member)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_batch_equals_one_by_one(seed):
    rng = np.random.default_rng(seed)
    p = random_problem(rng)
    others = [replace(p, centre=rng.integers(0, p.sizes), forbidden=p.forbidden[i:]) for i in range(3)]
    starts = np.cumsum([0] + [len(o.forbidden) for o in others])
    together = smallest_regions(
        p.tuples,
        p.counts,
        *p.measure,
        np.stack([o.centre for o in others]),
        p.k,
        np.concatenate([o.forbidden for o in others]),
        starts,
        PLENTY,
    )
    for e, other in enumerate(others):
        assert same([part[e] for part in together], other.solve())


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_counts_and_costs_equal_plain_ones(seed):
    rng = np.random.default_rng(seed)
    p = random_problem(rng)
    low, high = rng.integers(0, p.centre + 1, (4, len(p.sizes))), rng.integers(p.centre, p.sizes, (4, len(p.sizes)))
    member = (rng.random((4, *p.positions.shape)) < 0.5) & (np.arange(p.positions.shape[1]) < p.sizes[:, None])
    expected = [plain_count(p, as_region(p, *region)) for region in zip(low, high, member, strict=True)]
    assert [count_inside(*p.table, *region) for region in zip(low, high, member, strict=True)] == expected
    for region in zip(low, high, member, strict=True):
        assert region_cost(*p.measure, *region) == pytest.approx(plain_cost(p, as_region(p, *region)), abs=1e-12)


def medium_problem(rng):
    """Two intervals and a set over several hundred tuples: more than the greedy start looks at."""
    sizes = np.array([12, 10, 6])
    number = int(rng.integers(900, 2500))
    rows = np.minimum(rng.geometric([0.15, 0.2, 0.3], (number, 3)) - 1, sizes - 1) if rng.random() < 0.5 else None
    rows = rng.integers(0, sizes, (number, 3)) if rows is None else rows
    positions = [np.cumsum(rng.integers(1, 4, m)).astype(float) for m in sizes]
    forbidden = rng.integers(0, sizes, (int(rng.choice([0, 2, 8, 30])), 3))
    k = int(rng.choice([5, 20, 80, 300]))
    weights = rng.choice([0.25, 0.5, 1.0], 3)
    return problem(rows, np.ones(number), [True, True, False], sizes, positions, weights, rows[0], k, forbidden)


def windows(cells):
    """Sum of `cells` over all intervals of the first two axes: [low, high, low, high]."""
    first = np.cumsum(np.pad(cells, ((1, 0), (0, 0))), axis=0)
    second = np.cumsum(np.pad(first[None, 1:] - first[:-1, None], ((0, 0), (0, 0), (1, 0))), axis=2)
    return second[:, :, None, 1:] - second[:, :, :-1, None]


def medium_optimum(p):
    """Least cost by summing histograms over every interval, interval and set."""
    rows, bad = np.zeros(p.sizes), np.zeros(p.sizes)
    rows[tuple(p.tuples.T)] = p.counts
    bad[tuple(p.forbidden.T)] = 1
    low, high = np.arange(p.centre[0] + 1), np.arange(p.centre[0], p.sizes[0])
    left, right = np.arange(p.centre[1] + 1), np.arange(p.centre[1], p.sizes[1])
    around = np.ix_(low, high, left, right)
    lengths = p.unit[0] * (p.positions[0][high] - p.positions[0][low][:, None])[:, :, None, None] + p.unit[1] * (
        p.positions[1][right] - p.positions[1][left][:, None]
    )
    best = np.inf
    for chosen in map(list, choices(False, p.sizes[2], p.centre[2])):
        fits = (windows(rows[:, :, chosen].sum(2))[around] >= p.k) & (windows(bad[:, :, chosen].sum(2))[around] == 0)
        if fits.any():
            best = min(best, lengths[fits].min() + (p.unit[2] * len(chosen) if len(chosen) > 1 else 0.0))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_cost_is_optimal_beyond_the_tuples_of_the_greedy_start(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(30):
        p = medium_problem(rng)
        best = medium_optimum(p)
        cost, low, high, member, _, bound = p.solve()
        assert cost == bound == pytest.approx(best, abs=1e-9)
        if np.isfinite(cost):
            check_region(p, cost, low, high, member)
        for budget in (3, 30, 100):
            cost, _, _, _, _, bound = p.solve(budget)
            assert bound - 1e-9 <= best <= cost + 1e-9


def small(**changes):
    """Two attributes, interval and set; five rows."""
    values = {
        "rows": [[0, 0], [1, 0], [1, 1], [3, 2]],
        "counts": [1, 1, 2, 1],
        "interval": [True, False],
        "sizes": [4, 3],
        "positions": [[0.0, 1.0, 2.0, 3.0], [0.0] * 3],
        "weights": [0.5, 0.5],
        "centre": [1, 1],
        "k": 3,
    }
    return problem(**(values | changes))


def test_own_class_of_k_rows_costs_nothing():
    cost, low, high, member, nodes, bound = small(k=2).solve()
    assert (cost, nodes, bound) == (0.0, 0, 0.0)
    assert low.tolist() == high.tolist() == [1, 1]
    assert member.sum() == 2


def test_more_rows_than_the_table_has_is_infeasible():
    assert small(k=5).solve()[0] < np.inf
    assert small(k=6).solve()[0] == small(k=6).solve()[5] == np.inf


@pytest.mark.parametrize("k", [1, 3])
def test_forbidden_centre_is_infeasible(k):
    assert small(k=k, forbidden=[(1, 1)]).solve()[0] == np.inf


def test_forbidden_cell_without_rows_cuts_the_interval():
    free = problem([[0], [4]], [1, 1], [True], [5], [np.arange(5.0)], [1.0], [0], 2)
    assert free.solve()[0] == pytest.approx(1.0)
    assert replace(free, forbidden=np.array([[2]])).solve()[0] == np.inf


def test_centre_need_not_be_a_row():
    p = small(centre=[2, 0], k=1)
    assert not (p.tuples == p.centre).all(axis=1).any()
    cost, low, high, member, _, _ = p.solve()
    assert cost == pytest.approx(plain_optimum(p))
    check_region(p, cost, low, high, member)


def test_infeasible_after_a_search_is_proven():
    p = small(k=5, forbidden=[(2, 1)])
    cost, _, _, _, _, bound = p.solve()
    assert plain_optimum(p) == cost == bound == np.inf


@pytest.mark.parametrize("forbid", [False, True])
def test_wide_categoricals_end_within_the_budget(forbid):
    rng = np.random.default_rng(5)
    interval, sizes = [False, False, True], np.array([1000, 1000, 50])
    p = large_problem(rng, interval, sizes, 20_000, 40)
    if forbid:
        p = replace(
            p, forbidden=np.array([[p.centre[0], v, p.centre[2]] for v in range(0, 1000, 7) if v != p.centre[1]])
        )
    budget = 20_000
    cost, low, high, member, nodes, bound = p.solve(budget)
    check_region(p, cost, low, high, member)
    assert nodes <= budget + len(p.tuples)
    assert 0 < bound <= cost


def test_one_categorical_of_a_thousand_values_takes_the_commonest():
    rng = np.random.default_rng(6)
    rows = np.arange(1000)[:, None]
    counts = rng.integers(1, 50, 1000)
    p = problem(rows, counts, [False], [1000], [np.zeros(1000)], [1.0], [17], 2000)
    cost, low, high, member, _, bound = p.solve(100)
    check_region(p, cost, low, high, member)
    others = np.sort(np.delete(counts, 17))[::-1]
    needed = 2 + int(np.searchsorted(np.cumsum(others), 2000 - counts[17]))
    assert cost == bound == pytest.approx(needed / 1000)


def test_eight_numeric_attributes_end_within_the_budget_with_an_honest_bound():
    p = large_problem(np.random.default_rng(7), [True] * 8, np.full(8, 2000), 20_000, 10)
    budget = 30_000
    cost, low, high, member, nodes, bound = p.solve(budget)
    check_region(p, cost, low, high, member)
    assert nodes <= budget + len(p.tuples)
    assert 0 < bound <= cost
    longer = p.solve(4 * budget)
    assert bound - 1e-9 <= longer[5] <= longer[0] <= cost + 1e-9


def grasp(p, eligible, alpha, draws):
    scale = np.array([row[:m].max() - row[:m].min() for row, m in zip(p.positions, p.sizes, strict=True)])
    return grasp_construct(
        p.tuples, p.counts, eligible, p.interval, p.positions, scale, p.centre, p.k, alpha, np.asarray(draws)
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
@settings(max_examples=300, deadline=None)
def test_grasp_holds_the_centre_and_k_rows(seed, alpha, take_all):
    rng = np.random.default_rng(seed)
    p = random_problem(rng)
    total = int(p.counts.sum())
    p = replace(p, k=total if take_all else min(p.k, total), forbidden=p.forbidden[:0])
    eligible = rng.integers(0, p.counts + 1)
    draws = rng.random(p.k)
    region = grasp(p, eligible, alpha, draws)
    check_region(p, plain_cost(p, as_region(p, *region)), *region)
    assert same(region, grasp(p, eligible, alpha, draws))


def test_grasp_draws_among_rows_not_tuples():
    positions = [np.arange(5.0)]
    p = problem([[0], [1], [2], [4]], [1, 3, 1, 1], [True], [5], positions, [1.0], [0], 2)
    everyone = p.counts
    highs = [grasp(p, everyone, 4, [d])[1][0] for d in (0.0, 0.74, 0.76)]
    assert highs == [1, 1, 2]
    assert grasp(p, everyone, 3, [0.99])[1][0] == 1


def test_grasp_prefers_the_desired_class_and_falls_back_to_any_row():
    positions = [np.arange(5.0)]
    p = problem([[0], [1], [2], [4]], [1, 1, 1, 1], [True], [5], positions, [1.0], [0], 2)
    assert grasp(p, np.array([0, 0, 1, 0]), 1, [0.5])[1][0] == 2
    assert grasp(replace(p, k=4), np.array([0, 0, 1, 0]), 1, [0.5])[1][0] == 4
    assert grasp(p, np.zeros(4, np.int64), 1, [0.5])[1][0] == 1


def test_grasp_measures_the_gap_to_the_nearer_end_in_ranges():
    # From the centre (10, a): (14, a) is 0.4 away, (10, b) is 1 away; the range is 10.
    p = problem(
        [[0, 0], [1, 0], [0, 1], [2, 0]],
        [1, 1, 1, 1],
        [True, False],
        [3, 2],
        [[10.0, 14.0, 20.0], [0.0, 1.0]],
        [0.5, 0.5],
        [0, 0],
        2,
    )
    low, high, member = grasp(p, p.counts, 1, [0.0])
    assert (low[0], high[0], np.flatnonzero(member[1]).tolist()) == (0, 1, [0])
    low, high, member = grasp(replace(p, k=3), p.counts, 1, [0.0])
    assert (low[0], high[0], np.flatnonzero(member[1]).tolist()) == (0, 2, [0])
