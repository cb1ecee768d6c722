"""Mondrian on arrays against slow twins in plain Python that share no code with it."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from countervail.protect.mondrian.basic_cuts import partition_basic
from countervail.protect.mondrian.columns import FLAT, ORDERED, TREE, Attributes, attributes, deduplicate, rank_numbers
from countervail.protect.mondrian.constraints import (
    CLOSENESS,
    DIVERSITY,
    FAILS_K,
    FAILS_L,
    FAILS_T,
    FITS,
    CutConstraints,
    earth_mover,
    entropy,
    make_constraints,
)
from countervail.protect.mondrian.cut_tree import walk
from countervail.protect.mondrian.grow import CUT_MISSING, Partition, Tree, partition
from countervail.protect.mondrian.labels import tight_labels
from countervail.protect.mondrian.narrow import rows_loss
from countervail.protect.published.equal_halves import partition_equal

LEVELS = 4
SLACK = 1e-12


@dataclass(frozen=True)
class Example:
    """A random table with its description."""

    codes: np.ndarray
    counts: np.ndarray
    secret: np.ndarray
    n_secret: int
    data: Attributes
    secret_ancestors: np.ndarray

    def rules(
        self, k: int, diversity: str = "none", ell: float = 1, c: float = 1, near: str = "none", t: float = 1
    ) -> CutConstraints:
        return make_constraints(
            self.secret,
            self.counts,
            self.n_secret,
            k,
            DIVERSITY[diversity],
            ell,
            c,
            CLOSENESS[near],
            t,
            self.secret_ancestors,
        )

    def cut(self, rules: CutConstraints, *, gain: bool = True) -> Partition:
        return partition(self.codes, self.counts, self.secret, self.data, rules, gain=gain)


def nested_levels(rng: np.random.Generator, size: int, width: int) -> np.ndarray:
    """A random hierarchy over `size` codes: (width, LEVELS), the code itself first, the root last."""
    result = np.zeros((width, LEVELS), np.int32)
    result[:, 0] = np.arange(width)
    below = size
    for level in range(1, LEVELS - 1):
        above = int(rng.integers(1, below + 1))
        parents = np.unique(rng.integers(0, above, below), return_inverse=True)[1]
        result[:size, level] = parents[result[:size, level - 1]]
        below = int(parents.max()) + 1
    return result


def example(seed: int, *, max_rows: int = 40, max_size: int = 7, max_count: int = 3) -> Example:
    """A table of mixed kinds with missing values, hierarchies and duplicates."""
    rng = np.random.default_rng(seed)
    n, q = int(rng.integers(1, max_rows + 1)), int(rng.integers(1, 5))
    kind = rng.integers(0, 3, q).astype(np.int8)
    sizes = rng.integers(1, max_size + 1, q).astype(np.int32)
    has_missing = rng.random(q) < 0.4
    width = int(sizes.max())
    positions, span = np.zeros((q, width)), np.zeros(q)
    codes = np.zeros((n, q), np.int32)
    tree_of, trees = np.full(q, -1, np.int32), [np.zeros((width, LEVELS), np.int32)]
    for j in range(q):
        skew = rng.random(sizes[j]) ** 3 + 0.02
        codes[:, j] = rng.choice(sizes[j], n, p=skew / skew.sum())
        positions[j] = np.cumsum(rng.integers(1, 5, width))
        last = max(sizes[j] - 1 - has_missing[j], 0)
        span[j] = positions[j, last] - positions[j, 0] if kind[j] == ORDERED else sizes[j]
        if kind[j] == TREE:
            tree_of[j] = len(trees)
            trees.append(nested_levels(rng, int(sizes[j]), width))
    n_secret = int(rng.integers(1, 6))
    return Example(
        codes,
        rng.integers(1, max_count + 1, n),
        rng.integers(0, n_secret, n).astype(np.int32),
        n_secret,
        attributes(
            kind, sizes, has_missing, positions, span, tree_of, np.array(trees), tree_loss=bool(rng.random() < 0.5)
        ),
        nested_levels(rng, n_secret, n_secret),
    )


# ---------------------------------------------------------------- twins


def twin_emd(histogram: Counter[int], share: np.ndarray, near: int, ancestors: np.ndarray) -> float:
    """Earth mover's distance by the formulas of Li, Li and Venkatasubramanian (2007)."""
    total = sum(histogram.values())
    extra = [histogram[s] / total - share[s] for s in range(len(share))]
    if len(share) < 2:
        return 0.0
    if near == CLOSENESS["equal"]:
        return math.fsum(e for e in extra if e > 0)
    if near == CLOSENESS["ordered"]:
        return math.fsum(abs(math.fsum(extra[: i + 1])) for i in range(len(extra))) / (len(extra) - 1)
    height = ancestors.shape[1] - 1
    cost = 0.0
    for level in range(1, height + 1):
        for node in set(ancestors[:, level].tolist()):
            inside = [s for s in range(len(extra)) if ancestors[s, level] == node]
            below: dict[int, list[float]] = {}
            for s in inside:
                below.setdefault(int(ancestors[s, level - 1]), []).append(extra[s])
            nets = [math.fsum(part) for part in below.values()]
            surplus, deficit = math.fsum(x for x in nets if x > 0), -math.fsum(x for x in nets if x < 0)
            cost += level / height * min(surplus, deficit)
    return cost


def twin_fits(histogram: Counter[int], rules: CutConstraints, slack: float = SLACK) -> bool:
    """k, l and t of one class, counted anew."""
    histogram = Counter({s: c for s, c in histogram.items() if c > 0})
    total = sum(histogram.values())
    if total < rules.k:
        return False
    ranked = sorted(histogram.values(), reverse=True)
    if rules.diversity == DIVERSITY["distinct"] and len(ranked) < rules.l:
        return False
    if rules.diversity == DIVERSITY["entropy"]:
        entropy = -math.fsum(x / total * math.log(x / total) for x in ranked)
        if entropy < math.log(rules.l) - slack:
            return False
    if rules.diversity == DIVERSITY["recursive"] and not ranked[0] < rules.c * sum(ranked[int(rules.l) - 1 :]):
        return False
    if rules.diversity == DIVERSITY["frequency"] and Fraction(ranked[0], total) > 1 / Fraction(rules.l):
        return False
    if rules.closeness == 0:
        return True
    return twin_emd(histogram, rules.share, rules.closeness, rules.ancestors) <= rules.t + slack


class Twin:
    """The split rules once more, on lists and dictionaries."""

    def __init__(self, table: Example, rules: CutConstraints, *, gain: bool) -> None:
        self.table, self.rules, self.gain = table, rules, gain
        self.data = table.data
        self.q = table.codes.shape[1]

    def histogram(self, rows: list[int]) -> Counter[int]:
        result: Counter[int] = Counter()
        for r in rows:
            result[int(self.table.secret[r])] += int(self.table.counts[r])
        return result

    def weight(self, rows: list[int]) -> int:
        return int(sum(self.table.counts[r] for r in rows))

    def loss(self, values: set[int], j: int) -> float:
        if len(values) == 1:
            return 0.0
        if self.data.kind[j] == ORDERED:
            if self.data.missing[j] in values:
                return 1.0
            return float(
                (self.data.positions[j, max(values)] - self.data.positions[j, min(values)]) / self.data.span[j]
            )
        return self.extent(values, j) / float(self.data.span[j])

    def extent(self, values: set[int], j: int) -> float:
        if self.data.kind[j] != TREE or not self.data.tree_loss:
            return float(len(values))
        above = self.data.ancestors[self.data.tree_of[j]]
        level = next(level for level in range(LEVELS) if len({int(above[v, level]) for v in values}) == 1)
        node = above[min(values), level]
        return float(sum(above[v, level] == node for v in range(self.data.sizes[j])))

    def values(self, rows: list[int], j: int) -> set[int]:
        return {int(self.table.codes[r, j]) for r in rows}

    def admissible(self, rows: list[int], left: set[int], j: int) -> bool:
        inside = [r for r in rows if int(self.table.codes[r, j]) in left]
        outside = [r for r in rows if int(self.table.codes[r, j]) not in left]
        return twin_fits(self.histogram(inside), self.rules) and twin_fits(self.histogram(outside), self.rules)

    def prefixes(self, rows: list[int], items: list[set[int]], j: int) -> list[set[int]]:
        total = self.weight(rows)
        ranked = []
        for length in range(1, len(items)):
            left = set().union(*items[:length])
            inside = self.weight([r for r in rows if int(self.table.codes[r, j]) in left])
            ranked.append((abs(2 * inside - total), length, left))
        return [left for _, _, left in sorted(ranked, key=lambda entry: entry[:2])]

    def cuts(self, rows: list[int], j: int) -> Iterator[list[set[int]]]:
        """Groups of candidate left halves; within a group the first that is admissible stands for it."""
        present = self.values(rows, j)
        if self.data.kind[j] == ORDERED:
            ordered = [{v} for v in sorted(present)]
            separate = [present - {int(self.data.missing[j])}] if self.data.missing[j] in present else []
            yield separate + self.prefixes(rows, ordered, j)
            return
        previous = 1
        for level in range(LEVELS - 1, -1, -1) if self.data.kind[j] == TREE else [0]:
            groups: dict[int, set[int]] = {}
            for v in present:
                group = v if level == 0 else int(self.data.ancestors[self.data.tree_of[j], v, level])
                groups.setdefault(group, set()).add(v)
            if len(groups) == previous:
                continue
            previous = len(groups)
            heavy = {g: self.weight([r for r in rows if int(self.table.codes[r, j]) in groups[g]]) for g in groups}
            ranked = sorted(groups, key=lambda g: (-heavy[g], g))
            yield self.prefixes(rows, [groups[g] for g in ranked], j)
            left, sides = set(), [0, 0]
            for g in ranked:
                side = 0 if sides[0] <= sides[1] else 1
                sides[side] += heavy[g]
                if side == 0:
                    left |= groups[g]
            yield [left]
            yield [groups[ranked[0]]]

    def best_cut(self, rows: list[int], j: int) -> set[int] | None:
        best, best_loss = None, math.inf
        for group in self.cuts(rows, j):
            left = next((x for x in group if self.admissible(rows, x, j)), None)
            if left is None:
                continue
            if not self.gain or self.data.kind[j] == ORDERED:
                return left
            loss = 0.0
            for half in (left, self.values(rows, j) - left):
                size = self.weight([r for r in rows if int(self.table.codes[r, j]) in half])
                loss += size * self.extent(half, j) if len(half) > 1 else 0.0
            if loss < best_loss:
                best, best_loss = left, loss
        return best

    def total_loss(self, rows: list[int]) -> float:
        result = 0.0
        for j in range(self.q):
            result += self.loss(self.values(rows, j), j)
        return result

    def bits(self, parts: list[list[int]]) -> float:
        total = sum(self.weight(part) for part in parts)
        return -math.fsum(self.weight(p) / total * math.log2(self.weight(p) / total) for p in parts)

    def halves(self, rows: list[int], left: set[int] | None, j: int) -> list[list[int]]:
        inside = left or set()
        return [[r for r in rows if (int(self.table.codes[r, j]) in inside) == side] for side in (True, False)]

    def worth(self, rows: list[int], left: set[int], j: int, parts: list[list[int]]) -> float:
        """Loss saved per root of bits: on the other attributes by the cut, on this one by a division into parts."""
        saved = 0.0
        for i in range(self.q):
            now = parts if i == j else self.halves(rows, left, j)
            saved += self.weight(rows) * self.loss(self.values(rows, i), i)
            saved -= sum(self.weight(part) * self.loss(self.values(part, i), i) for part in now)
        return saved / math.sqrt(self.bits(parts))

    def named_cuts(self, rows: list[int], j: int) -> Iterator[tuple[set[int], float]]:
        """Cuts of a column whose classes are named by groups, with what they are worth."""
        above, previous = self.data.ancestors[self.data.tree_of[j]], 1
        for level in range(LEVELS - 2, -1, -1):
            groups: dict[int, list[int]] = {}
            for r in rows:
                groups.setdefault(int(above[self.table.codes[r, j], level]), []).append(r)
            if len(groups) == previous:
                continue
            previous = len(groups)
            ranked = sorted(groups, key=lambda g: (-self.weight(groups[g]), g))
            items = [self.values(groups[g], j) for g in ranked]
            if self.admissible(rows, items[0], j):
                yield items[0], self.carried_through(rows, [groups[g] for g in ranked], items[0], j)
            for left in self.prefixes(rows, items, j):
                if self.admissible(rows, left, j):
                    if left != items[0]:
                        yield left, self.worth(rows, left, j, self.halves(rows, left, j))
                    break

    def carried_through(self, rows: list[int], parts: list[list[int]], left: set[int], j: int) -> float:
        alone = 0
        while alone < len(parts) and twin_fits(self.histogram(parts[alone]), self.rules):
            alone += 1
        while 0 < alone < len(parts) and not twin_fits(self.histogram([*chain(*parts[alone:])]), self.rules):
            alone -= 1
        pool = [*chain(*parts[alone:])]
        after = [*parts[:alone], pool] if pool else parts
        halves = [parts[0], [*chain(*parts[1:])]]
        worth = self.worth(rows, left, j, halves)
        return max(worth, self.worth(rows, left, j, after)) if len(after) > 1 else worth

    def named_split(self, rows: list[int]) -> tuple[list[int], list[int]] | None:
        best, best_worth, best_attribute = None, -math.inf, -1
        open_attributes = [j for j in range(self.q) if len(self.values(rows, j)) > 1]
        for j in open_attributes:
            if self.data.kind[j] == TREE:
                found = list(self.named_cuts(rows, j))
            else:
                left = self.best_cut(rows, j)
                found = [] if left is None else [(left, self.worth(rows, left, j, self.halves(rows, left, j)))]
            for left, worth in found:
                if worth > best_worth + 1e-12:
                    best, best_worth, best_attribute = left, worth, j
        if best is None:
            for j in [j for j in open_attributes if self.data.kind[j] == TREE]:
                left = self.best_cut(rows, j)
                if left is not None:
                    best, best_attribute = left, j
                    break
        if best is None:
            return None
        inside = [r for r in rows if int(self.table.codes[r, best_attribute]) in best]
        return inside, [r for r in rows if r not in set(inside)]

    def split(self, rows: list[int]) -> tuple[list[int], list[int]] | None:
        if self.gain and self.data.tree_loss and (self.data.tree_of >= 0).any():
            return self.named_split(rows)
        open_attributes = [j for j in range(self.q) if len(self.values(rows, j)) > 1]
        if not self.gain:
            open_attributes.sort(key=lambda j: -self.loss(self.values(rows, j), j))
        best, best_gain = None, -math.inf
        for j in open_attributes:
            left = self.best_cut(rows, j)
            if left is None:
                continue
            inside = [r for r in rows if int(self.table.codes[r, j]) in left]
            outside = [r for r in rows if int(self.table.codes[r, j]) not in left]
            if not self.gain:
                return inside, outside
            after = self.weight(inside) * self.total_loss(inside) + self.weight(outside) * self.total_loss(outside)
            gain = self.weight(rows) * self.total_loss(rows) - after
            if gain > best_gain:
                best, best_gain = (inside, outside), gain
        return best

    def cells(self) -> np.ndarray:
        result = np.full(len(self.table.codes), -1)
        stack, n = [list(range(len(self.table.codes)))], 0
        while stack:
            rows = stack.pop()
            halves = self.split(rows)
            if halves is None:
                result[rows] = n
                n += 1
            else:
                stack += [halves[1], halves[0]]
        return result


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two labellings put the same rows together."""
    pairs = len(set(zip(a.tolist(), b.tolist())))
    return pairs == len(set(a.tolist())) == len(set(b.tolist()))


def random_rules(table: Example, seed: int) -> CutConstraints:
    """Constraints of every sort, strict and lax."""
    rng = np.random.default_rng([seed, 1])
    diversity = list(DIVERSITY)[seed % 5]
    near = list(CLOSENESS)[seed // 5 % 4]
    strictest = 2.5 if diversity == "entropy" else 4
    l_value = float(rng.uniform(1, strictest)) if diversity in ("entropy", "frequency") else int(rng.integers(1, 4))
    return table.rules(
        int(rng.integers(1, 6)), diversity, l_value, float(rng.uniform(0.5, 4)), near, float(rng.random())
    )


# ---------------------------------------------------------------- the promise


def test_every_cell_satisfies_k_l_and_t_or_the_root_is_refused() -> None:
    cells_seen, refused = 0, 0
    for seed in range(1500):
        table = example(seed)
        rules = random_rules(table, seed)
        result = table.cut(rules, gain=bool(seed % 2))
        twin = Twin(table, rules, gain=True)
        assert (result.failed == FITS) == twin_fits(twin.histogram(list(range(len(table.codes)))), rules)
        if result.failed != FITS:
            refused += 1
            continue
        cells_seen += result.n_cells
        for cell in range(result.n_cells):
            rows = np.flatnonzero(result.cell_of == cell).tolist()
            assert rows
            assert twin_fits(twin.histogram(rows), rules, slack=1e-9)
    assert refused > 100
    assert cells_seen > 2000


@pytest.mark.parametrize("gain", [False, True])
def test_the_partition_is_the_one_of_the_slow_twin(gain: bool) -> None:
    cut = 0
    for seed in range(300):
        table = example(10_000 + seed)
        rules = random_rules(table, seed) if seed % 3 else table.rules(int(seed % 7) + 1)
        result = table.cut(rules, gain=gain)
        if result.failed == FITS:
            np.testing.assert_array_equal(result.cell_of, Twin(table, rules, gain=gain).cells())
            cut += result.n_cells > 1
    assert cut > 80


@pytest.mark.parametrize("gain", [False, True])
def test_wide_domains_take_the_same_cuts_as_the_slow_twin(gain: bool) -> None:
    """Buckets, sorts of few rows and sets of more than 64 values are other code paths."""
    for seed in range(12):
        table = example(20_000 + seed, max_rows=150, max_size=[90, 3000][seed % 2], max_count=1)
        rules = table.rules(8) if seed % 3 else table.rules(5, "distinct", 2)
        result = table.cut(rules, gain=gain)
        if result.failed == FITS:
            np.testing.assert_array_equal(result.cell_of, Twin(table, rules, gain=gain).cells())


@pytest.mark.parametrize("seed", [50_002, 50_013, 50_016])
def test_large_nodes_take_the_same_cuts_as_the_slow_twin(seed: int) -> None:
    """Above 512 rows a set that is complete in both halves is not read to the end."""
    table = example(seed, max_rows=1600, max_size=6, max_count=1)
    assert len(table.codes) > 1000
    rules = table.rules(25)
    np.testing.assert_array_equal(table.cut(rules).cell_of, Twin(table, rules, gain=True).cells())


def test_sorting_a_large_table_never_changes_the_cells() -> None:
    """Sorted rows show a half its last value late: reading must not stop before."""
    for seed in range(50_000, 50_040):
        table = example(seed, max_rows=3000, max_size=6, max_count=1)
        rules = table.rules(20)
        if table.cut(rules).failed == FITS:
            for j in range(table.codes.shape[1]):
                order = np.argsort(table.codes[:, j], kind="stable")
                again = partition(table.codes[order], table.counts[order], table.secret[order], table.data, rules)
                np.testing.assert_array_equal(table.cut(rules).cell_of[order], again.cell_of)


def test_no_leaf_admits_another_cut() -> None:
    for seed in range(300):
        table = example(30_000 + seed)
        rules = random_rules(table, seed)
        result = table.cut(rules, gain=bool(seed % 2))
        if result.failed != FITS:
            continue
        twin = Twin(table, rules, gain=False)
        for cell in range(result.n_cells):
            rows = np.flatnonzero(result.cell_of == cell).tolist()
            for j in range(twin.q):
                if len(twin.values(rows, j)) > 1:
                    assert not any(twin.admissible(rows, left, j) for group in twin.cuts(rows, j) for left in group)


@given(seed=st.integers(0, 2**32 - 1), gain=st.booleans())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_row_order_never_changes_the_cells(seed: int, gain: bool) -> None:
    table = example(seed)
    rules = random_rules(table, seed)
    order = np.random.default_rng(seed).permutation(len(table.codes))
    result = table.cut(rules, gain=gain)
    again = partition(table.codes[order], table.counts[order], table.secret[order], table.data, rules, gain=gain)
    np.testing.assert_array_equal(result.cell_of[order], again.cell_of)
    for one, other in zip(result.tree, again.tree):
        np.testing.assert_array_equal(one, other)


@given(seed=st.integers(0, 2**32 - 1), gain=st.booleans())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_deduplicated_and_raw_rows_give_the_same_cells(seed: int, gain: bool) -> None:
    table = example(seed)
    raw, secret = np.repeat(table.codes, table.counts, axis=0), np.repeat(table.secret, table.counts)
    rules = random_rules(table, seed)
    direct = partition(raw, np.ones(len(raw), np.int64), secret, table.data, rules, gain=gain)
    codes, values, counts, which = deduplicate(raw, secret, table.data.sizes, table.n_secret)
    result = partition(codes, counts, values, table.data, rules, gain=gain)
    np.testing.assert_array_equal(result.cell_of[which], direct.cell_of)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_input_is_left_as_it_was(columns: int) -> None:
    """With one column a transposed array is contiguous already, and the kernel reorders what it is given."""
    for seed in range(40):
        table = example(seed)
        codes, counts, secret = np.tile(table.codes[:, :1], columns), table.counts.copy(), table.secret.copy()
        kept = codes.copy()
        data = attributes(
            np.zeros(columns, np.int8),
            np.full(columns, table.data.sizes[0], np.int32),
            np.zeros(columns, np.bool_),
            np.tile(np.arange(7.0), (columns, 1)),
            np.full(columns, 7.0),
        )
        partition(codes, counts, secret, data, table.rules(2))
        np.testing.assert_array_equal(codes, kept)
        np.testing.assert_array_equal(counts, table.counts)
        np.testing.assert_array_equal(secret, table.secret)


# ---------------------------------------------------------------- deduplication, routing, labels


@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1, 10**4]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_deduplication_is_lossless_and_ordered_by_content(seed: int, scale: int) -> None:
    """Domains of 70,000 values in five columns overflow a single 64-bit key."""
    table = example(seed)
    codes = np.tile(table.codes, (2, 2)).astype(np.int32) * np.int32(scale)
    sizes = np.tile(table.data.sizes * scale, 2).astype(np.int32)
    secret = np.tile(table.secret, 2)
    distinct, values, counts, which = deduplicate(codes, secret, sizes, table.n_secret)
    np.testing.assert_array_equal(distinct[which], codes)
    np.testing.assert_array_equal(values[which], secret)
    rows = [(*row, value) for row, value in zip(distinct.tolist(), values.tolist())]
    assert rows == sorted(Counter((*row, value) for row, value in zip(codes.tolist(), secret.tolist())))
    np.testing.assert_array_equal(counts, np.bincount(which))


def route(codes: np.ndarray, tree: Tree, data: Attributes) -> np.ndarray:
    """The cells that rows walk to."""
    cell_of = np.empty(len(codes), np.int32)
    walk(codes, *tree, data.tree_of, data.ancestors, cell_of)
    return cell_of


def losses(table: Example, result: Partition) -> np.ndarray:
    """NCP (cell, attribute), as the kernels count it."""
    q, data = table.codes.shape[1], table.data
    stamp = np.full(max(data.positions.shape[1], data.ancestors.shape[1]), -1, np.int64)
    cells = [np.flatnonzero(result.cell_of == c).astype(np.int32) for c in range(result.n_cells)]
    return np.array(
        [[rows_loss(table.codes, rows, j, data, stamp, c * q + j) for j in range(q)] for c, rows in enumerate(cells)]
    )


@given(seed=st.integers(0, 2**32 - 1), gain=st.booleans())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_routing_the_rows_gives_their_own_cells(seed: int, gain: bool) -> None:
    table = example(seed)
    rules = random_rules(table, seed)
    for result in (
        table.cut(rules, gain=gain),
        partition_basic(table.codes, table.counts, table.secret, table.data, rules),
    ):
        np.testing.assert_array_equal(route(table.codes, result.tree, table.data), result.cell_of)


def one_column(
    values: list[int], kind: int, *, size: int, missing: bool = False, secret: list[int] | None = None
) -> Example:
    """A table of one attribute whose positions are its codes."""
    data = attributes(
        np.array([kind], np.int8),
        np.array([size], np.int32),
        np.array([missing]),
        np.arange(size, dtype=float)[None, :],
        np.array([float(size - 1 - missing if kind == ORDERED else size)]),
    )
    hidden = np.array(secret if secret is not None else [0] * len(values), np.int32)
    n_secret = int(hidden.max()) + 1
    return Example(
        np.array(values, np.int32)[:, None],
        np.ones(len(values), np.int64),
        hidden,
        n_secret,
        data,
        np.zeros((n_secret, 1), np.int32),
    )


def test_a_new_number_goes_to_the_nearest_half_and_an_unseen_category_nowhere() -> None:
    numbers = one_column([0, 0, 9, 9], ORDERED, size=10)
    tree = numbers.cut(numbers.rules(2)).tree
    new = np.arange(10, dtype=np.int32)[:, None]
    np.testing.assert_array_equal(route(new, tree, numbers.data), [0] * 5 + [1] * 5)
    names = one_column([0, 0, 2, 2], FLAT, size=4)
    tree = names.cut(names.rules(2)).tree
    np.testing.assert_array_equal(route(np.array([[0], [1], [2], [-1]], np.int32), tree, names.data), [0, -1, 1, -1])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_labels_are_tight(seed: int) -> None:
    table = example(seed, max_size=[7, 90][seed % 2])
    result = table.cut(table.rules(3))
    labels = tight_labels(table.codes, result.cell_of, result.n_cells, table.data)
    loss = losses(table, result)
    twin = Twin(table, table.rules(3), gain=True)
    for cell in range(result.n_cells):
        rows = np.flatnonzero(result.cell_of == cell).tolist()
        for j in range(table.codes.shape[1]):
            values = twin.values(rows, j)
            assert loss[cell, j] == pytest.approx(twin.loss(values, j), abs=1e-12)
            present = values - {int(table.data.missing[j])}
            assert labels.missing[cell, j] == (present != values)
            assert labels.low[cell, j] == min(present, default=-1)
            assert labels.high[cell, j] == max(present, default=-1)
            if table.data.kind[j] != ORDERED:
                words = labels.members[cell, labels.slot[j]]
                assert values == {v for v in range(64 * len(words)) if int(words[v // 64]) >> (v % 64) & 1}


def test_gain_loses_less_than_span_on_average() -> None:
    lost = {True: 0.0, False: 0.0}
    for seed in range(60):
        table = example(seed, max_rows=300)
        for gain in lost:
            result = table.cut(table.rules(4), gain=gain)
            loss = losses(table, result).mean(axis=1)
            lost[gain] += float((loss[result.cell_of] * table.counts).sum() / table.counts.sum())
    assert lost[True] < lost[False]


# ---------------------------------------------------------------- statistics


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_entropy_and_closeness_agree_with_a_recount(seed: int) -> None:
    table = example(seed)
    some = np.flatnonzero(np.random.default_rng(seed).integers(0, 3, len(table.codes)) == 0).tolist() or [0]
    share = table.rules(1).share
    histogram = Twin(table, table.rules(1), gain=True).histogram(some)
    classes, total = np.array([histogram[s] for s in range(table.n_secret)]), sum(histogram.values())
    expected = math.prod((x / total) ** (-x / total) for x in histogram.values())
    assert math.exp(entropy(classes, total)) == pytest.approx(expected)
    for ground in (1, 2, 3):
        found = earth_mover(classes, total, share, ground, table.secret_ancestors, np.zeros(table.n_secret))
        assert found == pytest.approx(twin_emd(histogram, share, ground, table.secret_ancestors), abs=1e-12)


@pytest.mark.parametrize("ground", [1, 2, 3])
def test_closeness_is_the_optimum_of_the_transport_problem(ground: int) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        above = nested_levels(rng, n, n)
        counts, share = rng.integers(0, 5, n), rng.dirichlet(np.ones(n))
        counts[0] += 1
        distance = np.zeros((n, n))
        for a in range(n):
            for b in range(n):
                level = next(x for x in range(LEVELS) if above[a, x] == above[b, x])
                distance[a, b] = [float(a != b), abs(a - b) / (n - 1), level / (LEVELS - 1)][ground - 1]
        rows = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
        best = linprog(distance.ravel(), A_eq=np.vstack(rows), b_eq=np.concatenate([counts / counts.sum(), share]))
        found = earth_mover(counts, int(counts.sum()), share, ground, above, np.zeros(n))
        assert found == pytest.approx(best.fun, abs=1e-7)


# ---------------------------------------------------------------- single cases


def test_a_root_that_cannot_satisfy_the_constraints_says_which() -> None:
    table = one_column([0, 0, 1, 1, 1], ORDERED, size=2, secret=[0, 1, 0, 1, 0])
    assert table.cut(table.rules(10)).failed == FAILS_K
    for diversity, strength in (("distinct", 5), ("entropy", 2.0), ("recursive", 3), ("frequency", 2.0)):
        assert table.cut(table.rules(2, diversity, strength)).failed == FAILS_L
    result = table.cut(table.rules(2, near="equal", t=-0.1))
    assert result.failed == FAILS_T
    assert result.n_cells == 1


def test_the_minimality_example_stays_unsplit() -> None:
    """Ages 20, 20, 40, 40, 40 with H, H, f, c, a at k=2, l=2: table-anonymisation.md."""
    table = one_column([0, 0, 1, 1, 1], ORDERED, size=2, secret=[0, 0, 1, 2, 3])
    assert table.cut(table.rules(2)).n_cells == 2
    assert table.cut(table.rules(2, "distinct", 2)).n_cells == 1


def test_missing_numbers_are_a_cell_of_their_own_when_they_can_be() -> None:
    table = one_column([0, 1, 2, 3, 4, 4, 4], ORDERED, size=5, missing=True)
    result = table.cut(table.rules(2))
    assert result.tree.cut[0] == CUT_MISSING
    np.testing.assert_array_equal(result.cell_of, [0, 0, 1, 1, 2, 2, 2])
    few = one_column([0, 0, 1, 1, 2, 2, 3], ORDERED, size=4, missing=True)
    result = few.cut(few.rules(2))
    assert CUT_MISSING not in result.tree.cut
    np.testing.assert_array_equal(result.cell_of, [0, 0, 1, 1, 2, 2, 2])
    labels = tight_labels(few.codes, result.cell_of, result.n_cells, few.data)
    assert labels.missing[:, 0].tolist() == [False, False, True]
    assert losses(few, result)[2, 0] == 1.0


def test_a_small_child_does_not_keep_its_sibling_from_being_cut() -> None:
    """Divorced and never-married share a parent; one married person must not block the cut between them."""
    above = np.array([[[0, 0, 0], [1, 0, 0], [2, 1, 0]]], np.int32)
    data = attributes(
        np.array([TREE], np.int8),
        np.array([3], np.int32),
        np.zeros(1, np.bool_),
        np.zeros((1, 3)),
        np.array([3.0]),
        np.zeros(1, np.int32),
        above,
    )
    codes = np.array([[0]] * 5 + [[1]] * 5 + [[2]], np.int32)
    counts, secret = np.ones(11, np.int64), np.zeros(11, np.int32)
    for gain in (False, True):
        assert partition(codes, counts, secret, data, make_constraints(secret, counts, 1, 3), gain=gain).n_cells == 2


def test_basic_mondrian_breaks_k_and_ours_never_does() -> None:
    table = one_column([0, 0, 0, 0, 1], ORDERED, size=2)
    rules = table.rules(2)
    basic = partition_basic(table.codes, table.counts, table.secret, table.data, rules)
    assert np.bincount(basic.cell_of).tolist() == [4, 1]
    assert table.cut(rules).n_cells == 1
    broken = 0
    for seed in range(200):
        table = example(seed)
        rules = table.rules(3)
        if table.cut(rules).failed == FITS:
            basic = partition_basic(table.codes, table.counts, table.secret, table.data, rules)
            broken += np.bincount(basic.cell_of, table.counts).min() < 3
            assert np.bincount(table.cut(rules).cell_of, table.counts).min() >= 3
    assert broken > 10


def twin_basic(table: Example, k: int) -> np.ndarray:
    """Basic Mondrian as published: recursive, widths brought up to date only when tried."""
    data, codes, counts = table.data, table.codes, table.counts
    cells = np.full(len(codes), -1)

    def above(v: int, j: int, level: int) -> int:
        if data.kind[j] == FLAT:
            return v if level == 0 else 0
        return int(data.ancestors[data.tree_of[j], v, level])

    def width(j: int, state: tuple[int, int]) -> float:
        a, b = state
        if data.kind[j] == ORDERED:
            if a == b:
                return 0.0
            return 1.0 if b == data.missing[j] else float((data.positions[j, b] - data.positions[j, a]) / data.span[j])
        if b == 0:
            return 0.0
        return sum(above(v, j, b) == above(a, j, b) for v in range(data.sizes[j])) / float(data.span[j])

    def visit(rows: np.ndarray, states: list[tuple[int, int]]) -> None:
        states = list(states)
        total = int(counts[rows].sum())
        left_to_try = list(range(codes.shape[1]))
        while left_to_try:
            j = max(left_to_try, key=lambda i: (width(i, states[i]), -i))
            left_to_try.remove(j)
            column = codes[rows, j]
            if data.kind[j] == ORDERED:
                low, high = int(column.min()), int(column.max())
                states[j] = (low, high)
                if total // 2 < k or low == high:
                    continue
                cut = next(v for v in range(low, high + 1) if counts[rows][column <= v].sum() >= total // 2)
                if cut == high:
                    continue
                inside = column <= cut
                visit(rows[inside], [*states[:j], (low, int(column[inside].max())), *states[j + 1 :]])
                visit(rows[~inside], [*states[:j], (int(column[~inside].min()), high), *states[j + 1 :]])
                return
            if states[j][1] == 0:
                continue
            level = states[j][1] - 1
            groups = np.array([above(int(v), j, level) for v in column])
            if any(counts[rows][groups == g].sum() < k for g in set(groups.tolist())):
                continue
            for g in sorted(set(groups.tolist())):
                child = rows[groups == g]
                visit(child, [*states[:j], (int(codes[child[0], j]), level), *states[j + 1 :]])
            return
        cells[rows] = cells.max() + 1

    start = [
        (int(codes[:, j].min()), int(codes[:, j].max()))
        if data.kind[j] == ORDERED
        else (int(codes[0, j]), 1 if data.kind[j] == FLAT else LEVELS - 1)
        for j in range(codes.shape[1])
    ]
    visit(np.arange(len(codes)), start)
    return cells


def test_basic_mondrian_is_the_published_algorithm() -> None:
    for seed in range(300):
        table = example(40_000 + seed)
        k = seed % 5 + 1
        if table.counts.sum() >= k:
            basic = partition_basic(table.codes, table.counts, table.secret, table.data, table.rules(k))
            assert same_partition(basic.cell_of, twin_basic(table, k))


def test_equal_halves_differ_by_one_row_at_most() -> None:
    """Inuiguchi, Ichida, Torra (2019): while a cell has 2k rows, sort by the widest attribute and cut at floor(n/2)."""
    for seed in range(100):
        table = example(seed, max_rows=60)
        k = seed % 4 + 1
        cell_of, n_cells = partition_equal(table.codes, table.data, k)
        sizes = np.bincount(cell_of, minlength=n_cells)
        assert sizes.max() - sizes.min() <= max(1, k)
        if len(table.codes) >= k:
            assert sizes.min() >= k
            assert sizes.max() < 2 * k
    ages = one_column([5, 1, 1, 3, 1], ORDERED, size=6)
    assert partition_equal(ages.codes, ages.data, 2)[0].tolist() == [1, 0, 0, 1, 1]


MANY = 40_000  # more numbers than are sorted at once
SPREAD = {
    "all different": lambda rng: rng.normal(size=MANY),
    "some alike": lambda rng: np.round(rng.normal(size=MANY), 4),
    "most alike": lambda rng: rng.integers(0, 9, MANY) / 7,
    "a few far away": lambda rng: np.exp(4 * rng.normal(size=MANY)),
    "with holes": lambda rng: np.where(rng.random(MANY) < 0.1, np.nan, rng.normal(size=MANY)),
    "endless": lambda rng: np.append(rng.normal(size=MANY), [np.inf, -np.inf]),
    "as wide as numbers are": lambda rng: np.append(rng.normal(size=MANY), [1.7e308, -1.7e308]),
    "as narrow": lambda rng: rng.permutation(MANY) * 5e-324,
    "two zeros": lambda rng: np.append(rng.normal(size=MANY), [0.0, -0.0]),
}


@pytest.mark.parametrize("kind", SPREAD)
def test_many_numbers_have_the_places_that_sorting_gives(kind):
    numbers = SPREAD[kind](np.random.default_rng(0))
    known, codes = rank_numbers(pd.Series(numbers))
    there = ~np.isnan(numbers)
    expected, places = np.unique(numbers[there] + 0.0, return_inverse=True)
    assert known.tobytes() == expected.tobytes()
    assert (codes[there] == places).all() and (codes[~there] == -1).all()
