"""Rows joined to near ones; a step is the longer, the fewer people there are on the way."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix
from countervail.core.distance import HEOM, Neighbours
from countervail.core.errors import bad_parameter

Joins = Literal["knn", "epsilon"]
Density = Literal["knn", "kde", "epsilon"]
JOINS: tuple[Joins, ...] = get_args(Joins)
DENSITIES: tuple[Density, ...] = get_args(Density)
_EDGES = 50_000_000  # at most so many: more do not fit into memory
_SAMPLE = 2_000  # rows that a density is estimated from, spread over the table's content


@kernel
def row_distances(numbers: Floats, labels: Codes, scale: Floats, x_numbers: Floats, x_labels: Codes) -> Floats:
    """HEOM of one row to all rows."""
    out = np.empty(len(numbers))
    for i in range(len(numbers)):
        d = 0.0
        for c in range(numbers.shape[1]):
            step = abs(numbers[i, c] - x_numbers[c]) / scale[c]
            if step != step:  # missing: 0 from itself, 1 from any other
                step = 0.0 if np.isnan(numbers[i, c]) and np.isnan(x_numbers[c]) else 1.0
            d += step
        for c in range(labels.shape[1]):
            d += labels[i, c] != x_labels[c]
        out[i] = d
    return out


@kernel
def log_densities(
    a_numbers: Floats,
    a_labels: Codes,
    b_numbers: Floats,
    b_labels: Codes,
    numbers: Floats,
    labels: Codes,
    scale: Floats,
    often: Floats,
    width: float,
) -> Floats:
    """The logarithm of a Gaussian kernel estimate in the middle between rows of `a` and of `b`, up to a constant.

    A label that only one of the two rows has is half of the middle's. `often` weighs the rows of the estimate.
    """
    out = np.empty(len(a_numbers))
    apart = np.empty(len(numbers))
    for e in range(len(a_numbers)):
        least = np.inf
        for r in range(len(numbers)):
            d = 0.0
            for c in range(numbers.shape[1]):
                step = abs((a_numbers[e, c] + b_numbers[e, c]) / 2 - numbers[r, c]) / scale[c]
                if step != step:
                    gone = np.isnan(numbers[r, c])
                    step = 0.5 * (np.isnan(a_numbers[e, c]) != gone) + 0.5 * (np.isnan(b_numbers[e, c]) != gone)
                d += step
            for c in range(labels.shape[1]):
                d += 0.5 * (a_labels[e, c] != labels[r, c]) + 0.5 * (b_labels[e, c] != labels[r, c])
            apart[r] = d * d / (2 * width * width)
            least = min(least, apart[r])
        total = 0.0
        for r in range(len(numbers)):
            total += often[r] * np.exp(least - apart[r])
        out[e] = np.log(total) - least
    return out


@kernel
def shortest_paths(
    starts: Ints, ends: Ints, length: Floats, passable: Bools, first: Ints, way: Floats, goal: Bools, n: int
) -> tuple[Ints, Ints]:
    """The `n` goals that are reached first from outside by way of `first` nodes, and whence each node is reached.

    Edges of node i are `starts[i]` to `starts[i + 1]`; `passable` (or nothing at all) says which may be taken. Whence
    is -1 for a node that is entered from outside. Equally long ways: the node that stands first.
    """
    nodes = len(starts) - 1
    best, whence = np.full(nodes, np.inf), np.full(nodes, -2, np.int64)
    done, found, held = np.zeros(nodes, np.bool_), np.full(n, -1, np.int64), 0
    heap = [(np.inf, np.int64(nodes))]
    for i in range(len(first)):
        if way[i] < best[first[i]]:
            best[first[i]], whence[first[i]] = way[i], -1
            heapq.heappush(heap, (way[i], first[i]))
    while held < n:
        d, node = heapq.heappop(heap)
        if node == nodes:
            break
        if done[node]:
            continue
        done[node] = True
        if goal[node]:
            found[held] = node
            held += 1
        for e in range(starts[node], starts[node + 1]):
            if len(passable) > 0 and not passable[e]:
                continue
            there, far = ends[e], d + length[e]
            if far < best[there]:
                best[there], whence[there] = far, node
                heapq.heappush(heap, (far, there))
    return found, whence


@dataclass(frozen=True, eq=False, slots=True)
class RowDensity:
    """How densely rows populate the way between two of them: the logarithm, as the paper estimates it.

    `constant` is the logarithm of what a distance divides; None for the kernel estimate, which is made from some rows
    that count `often`, with a `width`.
    """

    heom: HEOM
    constant: float | None
    rows: Matrix
    often: Floats
    width: float

    @classmethod
    def of(cls, kind: Density, heom: HEOM, nodes: Matrix, counts: Ints, k: int, radius: float, width: float) -> Self:
        """From the different rows of a table, and how often each occurs."""
        columns = nodes.shape[1]
        ball = columns / 2 * math.log(math.pi) - math.lgamma(columns / 2 + 1)  # of the unit ball's volume
        constants = {"knn": math.log(k / counts.sum()) - ball, "epsilon": columns * math.log(radius), "kde": None}
        some = np.unique(np.linspace(0, len(nodes) - 1, min(len(nodes), _SAMPLE)).astype(np.int64))
        return cls(heom, constants[kind], nodes[some], counts[some] / counts[some].sum(), width)

    def logs(self, a: Matrix, b: Matrix, far: Floats) -> Floats:
        """On the way from each row of `a` to the same row of `b`, which lie `far` from each other."""
        if self.constant is not None:
            return self.constant - np.log(np.where(far > 0, far, 1.0))
        heom = self.heom
        found: Floats = log_densities(
            heom.numbers(a),
            heom.labels(a),
            heom.numbers(b),
            heom.labels(b),
            heom.numbers(self.rows),
            heom.labels(self.rows),
            heom.scale,
            self.often,
            self.width,
        )
        constant: float = a.shape[1] / 2 * math.log(2 * math.pi * self.width**2)
        return found - constant


@dataclass(frozen=True, eq=False, slots=True)
class RowGraph:
    """Different rows of a table as nodes, joined to near ones.

    A step is as long as the distance times `slow`, which is -log of the density on the way, above that of the `peak` (0
    unless a density is above 1: no step is shorter than nothing). `sparse` says how empty the place of each node is.
    """

    heom: HEOM
    nodes: Matrix
    index: Neighbours
    neighbours: int
    radius: float | None  # None where the nearest ones are joined
    density: RowDensity
    peak: float
    starts: Ints
    ends: Ints
    slow: Floats
    sparse: Floats

    @classmethod
    def of(
        cls,
        heom: HEOM,
        nodes: Matrix,
        counts: Ints,
        joins: Joins,
        kind: Density,
        neighbours: int,
        radius: float | None,
        width: float | None,
        owner: str,
    ) -> Self:
        """Join the rows, and measure the ways; what is None is the median distance to the last of the neighbours."""
        index = Neighbours(heom, nodes, np.zeros(len(nodes), dtype=np.int64), np.ones(len(nodes), dtype=bool))
        near, away = _other_rows(index, nodes, neighbours)
        reach = away[:, -1] if away.shape[1] else np.zeros(len(nodes))
        usual = float(np.median(reach)) or 1.0
        radius, width = usual if radius is None else radius, usual if width is None else width
        low, high, far = _joined(near, away) if joins == "knn" else _within(heom, nodes, radius, owner)
        density = RowDensity.of(kind, heom, nodes, counts, neighbours, radius, width)
        logs = density.logs(nodes[low], nodes[high], far)
        peak = max(0.0, float(logs.max(initial=0.0)))
        edges = _both_ways(low, high, peak - logs, len(nodes))
        sparse = -density.logs(nodes, nodes, reach) if kind == "kde" else reach
        return cls(heom, nodes, index, neighbours, None if joins == "knn" else radius, density, peak, *edges, sparse)

    @property
    def tails(self) -> Ints:
        """Where each edge begins."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.starts))

    def lengths(self, weights: Floats | None = None) -> Floats:
        """How long each edge is; `weights` are factors of the columns' distances."""
        return self.heom.between(self.nodes[self.tails], self.nodes[self.ends], weights) * self.slow

    def entered(self, x: Matrix, allowed: Bools | None, weights: Floats | None = None) -> tuple[Ints, Floats]:
        """The nodes that a row from outside is joined to (of those it may go to), and how long each step is."""
        if self.radius is None:
            mask = None if allowed is None else allowed[None]
            near, away = self.index.nearest(x[None], np.ones((1, 1), dtype=bool), self.neighbours, mask)
            first, far = near[0][near[0] >= 0], away[0][near[0] >= 0]
        else:
            every = self.heom.between(np.broadcast_to(x, self.nodes.shape), self.nodes)
            first = np.flatnonzero((every <= self.radius) & (True if allowed is None else allowed))
            far = every[first]
        here = np.broadcast_to(x, (len(first), len(x)))
        slow = np.maximum(self.peak - self.density.logs(here, self.nodes[first], far), 0.0)
        if weights is not None:
            far = self.heom.between(here, self.nodes[first], weights)
        return first, far * slow


def _joined(near: Ints, away: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows and their nearest ones, each pair once."""
    there = near >= 0
    a, b, far = np.nonzero(there)[0], near[there], away[there]
    low, high = np.minimum(a, b), np.maximum(a, b)
    first = np.unique(low * len(near) + high, return_index=True)[1]
    return low[first], high[first], far[first]


def _other_rows(index: Neighbours, nodes: Matrix, n: int) -> tuple[Ints, Floats]:
    """Row x rank: the nearest other rows (-1: none left), and how far they lie."""
    n = min(n, max(len(nodes) - 1, 0))
    near, away = index.nearest(nodes, np.ones((len(nodes), 1), dtype=bool), n + 1)
    others = near != np.arange(len(nodes))[:, None]
    order = np.argsort(~others, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(away, order, axis=1)


def _within(heom: HEOM, nodes: Matrix, radius: float, owner: str) -> tuple[Ints, Ints, Floats]:
    """All pairs of rows that lie within radius."""
    numbers, labels = heom.numbers(nodes), heom.labels(nodes)
    low, high, far, held = [], [], [], 0
    for i in range(len(nodes) - 1):
        away = row_distances(numbers[i + 1 :], labels[i + 1 :], heom.scale, numbers[i], labels[i])
        near = np.flatnonzero(away <= radius)
        low.append(np.full(len(near), i))
        high.append(near + i + 1)
        far.append(away[near])
        held += len(near)
        if held > _EDGES:
            must = f"so small that at most {_EDGES:,} pairs of rows lie within it"
            raise bad_parameter(owner, "radius", must, radius, "Use graph='knn', or a smaller radius.")
    if not low:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(low), np.concatenate(high), np.concatenate(far)


def _both_ways(low: Ints, high: Ints, slow: Floats, nodes: int) -> tuple[Ints, Ints, Floats]:
    """Edges in both directions, node by node."""
    tail, head = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort([head, tail])
    starts = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=nodes))]).astype(np.int64)
    return starts, head[order].astype(np.int64), np.concatenate([slow, slow])[order]
