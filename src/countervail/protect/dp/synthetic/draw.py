"""What is drawn of a table, once: noisy counts. Everything that leaves is a function of them and of what is public."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.core.files.json_data import is_count, need
from countervail.ledger.codec import pack, unpack
from countervail.protect.dp.grid import Grid, Records
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.protect.dp.synthetic.bins import MarginalCounts, nearest_counts, settle_bins, smoothed
from countervail.protect.dp.synthetic.edges import Binned, PairReader, choose_edges

Level = Literal["pairs", "columns", "nothing"]
TOTAL, ONES, CHOICE, PAIRS = Fraction(1, 100), Fraction(39, 100), Fraction(5, 100), Fraction(55, 100)
_LEAST_BINS = 3  # of each column in a pair: where noise leaves fewer, columns alone carry as much
PAIRED = 2.0 * _LEAST_BINS**2  # people per unit of noise on a pair from which on pairs are counted; as in `settle`
_APART = 500.0  # and, for each decision, from which on the decisions are counted apart
_COUNTED = 8.0  # people per unit of noise on a column from which on columns are counted at all
SURE = 4.0  # deviations of the noisy number of people itself: fewer, and there may be nobody
_MOST = 1 << 40  # no table has more people, whatever the noise says: scores stay within 64 bits


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """How a budget is spread, as the noisy number of people decides: what is counted, and with how much noise."""

    level: Level
    strata: int  # decisions that are counted apart; 1: all together
    one: Fraction  # budget of each column
    choice: Fraction  # of each choice of a pair
    pairs: Fraction  # of all pairs together

    @classmethod
    def of(cls, total: int, columns: int, classes: int, budget: NoiseBudget) -> Self:
        """A function of the noisy total and of what is public."""
        edges = columns - 1
        sure = total >= SURE * budget.deviation(budget.total * TOTAL)
        if edges and sure:
            paired = total / budget.deviation(budget.total * PAIRS / edges)
            if paired >= PAIRED:
                strata = classes if paired >= _APART * classes else 1
                each = budget.total * ONES / columns
                return cls("pairs", strata, each, budget.total * CHOICE / edges, budget.total * PAIRS)
        each = budget.total * (1 - TOTAL) / columns
        level: Level = "columns" if sure and total / budget.deviation(each) >= _COUNTED else "nothing"
        return cls(level, 1, each, Fraction(0), Fraction(0))  # so few people would be fewer in each decision


@dataclass(frozen=True, eq=False, slots=True)
class Draw:
    """The noisy number of people, noisy counts of each column (decision x position), and of pairs of columns."""

    total: int
    ones: tuple[Ints, ...]
    edges: tuple[tuple[int, int], ...]
    pairs: tuple[Ints, ...]

    def to_bytes(self) -> bytes:
        """The counts as bytes."""
        edges = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        return pack([np.array([self.total], dtype=np.int64), edges, *self.ones, *self.pairs])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of :meth:`to_bytes`."""
        total, edges, *counts = unpack(data)
        pairs = len(edges)
        ones, twos = counts[: len(counts) - pairs], counts[len(counts) - pairs :]
        return cls(int(total[0]), tuple(ones), tuple((int(a), int(b)) for a, b in edges), tuple(twos))

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain JSON data."""
        counts = {"ones": [y.tolist() for y in self.ones], "pairs": [y.tolist() for y in self.pairs]}
        return {"total": self.total, "edges": [list(e) for e in self.edges], **counts}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`; to be called inside `whole_json`."""
        ones, pairs = (tuple(_whole(y, d) for y in data[n]) for n, d in (("ones", 2), ("pairs", 3)))
        edges = _whole(data["edges"], 2) if data["edges"] else np.zeros((0, 2), dtype=np.int64)
        need(is_count(data["total"]) and edges.shape[1] == 2)
        return cls(data["total"], ones, tuple((int(a), int(b)) for a, b in edges), pairs)

    def seed(self) -> int:
        """A number that follows from the counts: what is made of them needs no chance of its own."""
        spelt = json.dumps(self.to_dict(), sort_keys=True).encode()  # alike on every machine
        return int.from_bytes(hashlib.sha256(spelt).digest()[:16], "little")

    def check(self, grid: Grid, spread: BudgetShares) -> None:
        """Whether the counts are those of this grid; to be called inside `whole_json`."""
        need(len(self.ones) == (0 if spread.level == "nothing" else len(grid.axes)))
        need(all(y.shape == (spread.strata, len(a)) for y, a in zip(self.ones, grid.axes)))
        need(not self.edges or spread.level == "pairs")
        need(all(0 <= a < b < len(grid.axes) for a, b in self.edges) and len(self.pairs) == len(self.edges))


def _whole(data: Any, dimensions: int) -> Ints:
    counts = np.asarray(data)
    need(counts.dtype.kind == "i" and counts.ndim == dimensions)
    return counts.astype(np.int64)


def draw_counts(
    codes: Ints, classes: Ints, decisions: int, grid: Grid, budget: NoiseBudget, times: Ints | None = None
) -> Draw:
    """The one draw of records at hand. `classes` is the decision about each record, by itself.

    `times`: how many records each row of codes stands for.
    """
    return draw_read(lambda: [Records(codes, times)], lambda _: classes, decisions, grid, budget)


def draw_read(
    read: Callable[[], Iterable[Records]],
    decide: Callable[[Ints], Ints],
    decisions: int,
    grid: Grid,
    budget: NoiseBudget,
) -> Draw:
    """The one draw: the only function that looks at records, part by part and as often as it has to.

    `decide` is the decision about each record, by itself; `read` gives the same records each time.
    """
    people = sum(len(part) for part in read())
    noisy = int(budget.counts(np.array([people], dtype=np.int64), budget.total * TOTAL)[0])
    total = min(max(noisy, 0), _MOST)
    spread = BudgetShares.of(total, len(grid.axes), decisions, budget)
    if spread.level == "nothing":
        return Draw(total, (), (), ())

    def strata(part: Records) -> Ints:
        return decide(part.codes) if spread.strata > 1 else np.zeros(len(part.codes), dtype=np.int64)

    exact = [np.zeros((spread.strata, len(a)), dtype=np.int64) for a in grid.axes]
    for part in read():
        mine = strata(part)
        for j, counts in enumerate(exact):
            counts += cell_counts(mine, part.codes[:, j], *counts.shape, part.times)
    ones = tuple(budget.counts(counts, spread.one) for counts in exact)
    if spread.level == "columns":
        return Draw(total, ones, (), ())
    marginals, totals = settle(ones, grid, spread, budget)

    def binned() -> Iterator[Binned]:
        for part in read():
            bins = np.column_stack([m.bins[part.codes[:, j]] for j, m in enumerate(marginals)])
            yield Binned(bins, strata(part), part.times)

    pair = PairReader(binned, marginals)
    cost = budget.deviation(spread.pairs / (len(grid.axes) - 1))
    edges = choose_edges(pair, marginals, totals, cost, lambda s: budget.choose(s, spread.choice))
    pairs = tuple(budget.counts(pair(a, b), spread.pairs / len(edges)) for a, b in edges)
    return Draw(total, ones, edges, pairs)


def cell_counts(strata: Ints, codes: Ints, many: int, size: int, times: Ints | None = None) -> Ints:
    """Records by stratum and position; every record is in exactly one of these cells."""
    counts: Ints = np.bincount(strata * size + codes, times, minlength=many * size).astype(np.int64)
    return counts.reshape(many, size)


def settle(
    ones: Sequence[Ints], grid: Grid, spread: BudgetShares, budget: NoiseBudget
) -> tuple[tuple[MarginalCounts, ...], Floats]:
    """What the noisy counts of single columns say: people of each stratum, counts that could be, and merged cells."""
    totals = _totals(ones)
    people, noise = float(totals.sum()), budget.deviation(spread.one)
    widest = math.inf
    if spread.level == "pairs":
        pair_noise = budget.deviation(spread.pairs / (len(grid.axes) - 1))
        # A pair of columns with b bins each has about people / b^2 in a cell: not far below the noise.
        widest = math.sqrt(people / (2.0 * pair_noise * spread.strata))
    found = []
    for axis, noisy in zip(grid.axes, ones):
        cells = np.stack([nearest_counts(y.astype(float), t) for y, t in zip(noisy, totals)])
        alone = int(axis.numeric and axis.missing)  # "missing" lies beside no number
        held = cells.sum(axis=0)[: len(axis) - alone]
        bins = settle_bins(held, widest, noise, axis.ordered)
        bins = np.append(bins, bins.max() + 1) if alone else bins
        if spread.level == "columns":  # there noise is most of what stands in a light cell
            cells = np.stack([smoothed(y.astype(float), bins, noise) for y in noisy])
        found.append(MarginalCounts.of(noisy, bins, cells))
    return tuple(found), totals


def _totals(ones: Sequence[Ints]) -> Floats:
    """People of each stratum: every column says so, short ones most reliably."""
    weight = np.array([1 / y.shape[1] for y in ones])
    said = np.stack([y.sum(axis=1) for y in ones]).astype(float)
    people: Floats = np.clip(weight @ said / weight.sum(), 1.0, _MOST)
    return people
