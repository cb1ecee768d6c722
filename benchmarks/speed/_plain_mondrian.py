"""Strict Mondrian in plain Python, span and gain: a slow twin that shares no code with the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


class PlainMondrian:
    """Rows are tuples; a column is a set of values (categorical) or a range (ordered)."""

    def __init__(self, rows: Sequence[tuple[Any, ...]], ordered: Sequence[bool], k: int, *, gain: bool) -> None:
        self.rows, self.ordered, self.k, self.gain = rows, ordered, k, gain
        columns = list(zip(*rows))
        self.span = [max(c) - min(c) if o else len(set(c)) for c, o in zip(columns, ordered)]

    def loss(self, rows: list[int], j: int) -> float:
        """NCP of some rows on one column."""
        values = [self.rows[r][j] for r in rows]
        if self.ordered[j]:
            return (max(values) - min(values)) / (self.span[j] or 1)
        distinct = len(set(values))
        return distinct / self.span[j] if distinct > 1 else 0.0

    def halves(self, rows: list[int], j: int) -> list[tuple[list[int], list[int]]]:
        """The admissible cuts that are considered: the one nearest half; for sets also balanced and heaviest."""
        counts = Counter(self.rows[r][j] for r in rows)
        if len(counts) < 2:
            return []
        order = sorted(counts) if self.ordered[j] else sorted(counts, key=lambda v: (-counts[v], v))
        best, left, total = None, 0, len(rows)
        for i, value in enumerate(order[:-1]):
            left += counts[value]
            if best is None or abs(2 * left - total) < best[0]:
                best = (abs(2 * left - total), set(order[: i + 1]))
        assert best is not None
        sides = [best[1]]
        if not self.ordered[j]:
            balanced: set[Any] = set()
            weight = [0, 0]
            for value in order:
                side = 0 if weight[0] <= weight[1] else 1
                weight[side] += counts[value]
                if side == 0:
                    balanced.add(value)
            sides += [balanced, {order[0]}]
        found = []
        for side in sides:
            inside = [r for r in rows if self.rows[r][j] in side]
            if len(inside) >= self.k and total - len(inside) >= self.k:
                found.append((inside, [r for r in rows if self.rows[r][j] not in side]))
        return found

    def split(self, rows: list[int]) -> tuple[list[int], list[int]] | None:
        """The cut of a class, or None."""
        if len(rows) < 2 * self.k:
            return None
        q = range(len(self.ordered))
        losses = [self.loss(rows, j) for j in q]
        best, least = None, float("inf")
        for j in q if self.gain else sorted(q, key=lambda j: -losses[j]):
            if losses[j] == 0:
                continue
            candidates = self.halves(rows, j)
            if not candidates:
                continue
            if not self.gain:
                return candidates[0]
            one = min(candidates, key=lambda halves: sum(len(h) * self.loss(h, j) for h in halves))
            after = sum(len(half) * sum(self.loss(half, i) for i in q) for half in one)
            if after < least:
                best, least = one, after
        return best

    def partition(self) -> list[list[int]]:
        """Classes as lists of row numbers."""
        done, stack = [], [list(range(len(self.rows)))]
        while stack:
            rows = stack.pop()
            halves = self.split(rows)
            if halves is None:
                done.append(rows)
            else:
                stack += halves
        return done
