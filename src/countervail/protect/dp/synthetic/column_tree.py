"""A tree of columns whose counts are nearest to the noisy ones: fitted by mirror descent, and sampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countervail.core.arrays import Floats, Ints

_STEPS = 1000
_HALVINGS = 40
_GAIN = 1e-6  # a step that improves less ends the search
Tables = list[Floats]


class ColumnTree:
    """Counts of columns, and of the pairs that are edges, that agree with each other; no record is looked at."""

    def __init__(self, sizes: Sequence[int], edges: Sequence[tuple[int, int]], total: float) -> None:
        self.sizes, self.edges, self.total = list(sizes), list(edges), max(total, 1.0)
        self.order, self.roots = _downwards(len(self.sizes), self.edges)
        self.one, self.two = self._counts(*self._flat())

    def fit(self, ones: Sequence[tuple[Floats, Floats]], pairs: Sequence[tuple[Floats, float]]) -> ColumnTree:
        """Counts nearest to the noisy ones, each with its variance."""
        node, pair = self._flat()
        loss, up_one, up_two = _loss(self.one, self.two, ones, pairs)
        rate = 1.0 / self.total
        for _ in range(_STEPS):
            for _ in range(_HALVINGS):
                new_node = [t - rate * g for t, g in zip(node, up_one)]
                new_pair = [t - rate * g for t, g in zip(pair, up_two)]
                one, two = self._counts(new_node, new_pair)
                then, then_one, then_two = _loss(one, two, ones, pairs)
                gain = _sum([g * (a - b) for g, a, b in zip(up_one, self.one, one)])
                gain += _sum([g * (a - b) for g, a, b in zip(up_two, self.two, two)])
                if then <= loss - 0.5 * gain + 1e-9:
                    break
                rate /= 2
            done = loss - then < _GAIN * max(loss, 1.0)
            node, pair, self.one, self.two = new_node, new_pair, one, two
            loss, up_one, up_two = then, then_one, then_two
            rate *= 1.25
            if done:
                break
        return self

    def sample(self, rng: np.random.Generator, rows: int) -> Ints:
        """Rows of bins: roots first, then each column given the one above it."""
        out = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        for root in self.roots:
            out[:, root] = _drawn(rng, self.one[root][None, :], out[:, root])
        for child, parent, edge in self.order:
            out[:, child] = _drawn(rng, self._from(self.two, parent, edge), out[:, parent])
        return out

    def _flat(self) -> tuple[Tables, Tables]:
        return [np.zeros(m) for m in self.sizes], [np.zeros((self.sizes[a], self.sizes[b])) for a, b in self.edges]

    def _from(self, tables: Tables, parent: int, edge: int) -> Floats:
        """The table of an edge, with the parent's bins as rows."""
        return tables[edge] if self.edges[edge][0] == parent else tables[edge].T

    def _counts(self, node: Tables, pair: Tables) -> tuple[Tables, Tables]:
        """Counts of columns and of edges under these potentials: sums up to the roots, and down again."""
        up = [t.copy() for t in node]
        sent = [np.zeros(0)] * len(pair)
        for child, parent, edge in reversed(self.order):
            t = self._from(pair, parent, edge) + up[child]
            top = t.max(axis=1)
            sent[edge] = top + np.log(np.exp(t - top[:, None]).sum(axis=1))
            up[parent] += sent[edge]
        one, two = [np.zeros(0)] * len(node), [np.zeros((0, 0))] * len(pair)
        for root in self.roots:
            weights = np.exp(up[root] - up[root].max())
            one[root] = weights / weights.sum() * self.total
        for child, parent, edge in self.order:
            given = np.exp(self._from(pair, parent, edge) + up[child] - sent[edge][:, None])  # rows sum to one
            joint = given * one[parent][:, None]
            one[child] = joint.sum(axis=0)
            two[edge] = joint if self.edges[edge][0] == parent else joint.T
        return one, two


def _downwards(columns: int, edges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Child, parent and edge, parents first; and the columns at the top."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(columns)]
    for e, (a, b) in enumerate(edges):
        near[a].append((b, e))
        near[b].append((a, e))
    order, roots, seen = [], [], set()
    for root in range(columns):
        if root in seen:
            continue
        roots.append(root)
        seen.add(root)
        left = [root]
        while left:
            parent = left.pop()
            for child, e in near[parent]:
                if child not in seen:
                    seen.add(child)
                    order.append((child, parent, e))
                    left.append(child)
    return order, roots


def _loss(
    one: Tables, two: Tables, ones: Sequence[tuple[Floats, Floats]], pairs: Sequence[tuple[Floats, float]]
) -> tuple[float, Tables, Tables]:
    """Half the squared distance in units of variance, and its slopes."""
    up_one = [(m - y) / v for m, (y, v) in zip(one, ones)]
    up_two = [(m - y) / v for m, (y, v) in zip(two, pairs)]
    loss = _sum([g * g * v for g, (_, v) in zip(up_one, ones)]) + _sum([g * g * v for g, (_, v) in zip(up_two, pairs)])
    return loss / 2, up_one, up_two


def _sum(parts: Tables) -> float:
    return float(sum(p.sum() for p in parts))


def _drawn(rng: np.random.Generator, table: Floats, given: Ints) -> Ints:
    """One bin for each row, by the weights in the given row of the table."""
    ends = np.cumsum(np.maximum(table, 0.0) + 1e-12, axis=1)
    ends /= ends[:, -1:]
    u, out = rng.random(len(given)), np.empty(len(given), dtype=np.int64)
    for row in np.unique(given).tolist():
        at = np.flatnonzero(given == row)
        out[at] = np.minimum(np.searchsorted(ends[row], u[at], side="left"), table.shape[1] - 1)
    return out
