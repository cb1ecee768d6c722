"""Sensitive values per published class, counted anew: nothing here shares code with the algorithms that it checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats, Ints
from countervail.core.errors import SchemaError
from countervail.core.schema import Column

DIVERSITIES = ("distinct", "entropy", "recursive", "frequency")
GROUNDS = ("equal", "ordered", "hierarchical")
SLACK = 1e-9  # sums of shares and logarithms differ in their last digits
_BLOCK = 1 << 22  # class x value cells worked on at once


@dataclass(frozen=True, eq=False, slots=True)
class Tally:
    """How often each value occurs in each class: one entry per (class, value) that occurs."""

    classes: Ints
    values: Ints
    counts: Ints
    sizes: Ints
    kinds: tuple[Any, ...]

    @classmethod
    def of(cls, labels: Ints, secret: pd.Series, lines: Ints | None = None) -> Tally:
        """Count a column by class; missing is a value of its own. `lines`: how many rows each line stands for."""
        codes, found = pd.factorize(secret, use_na_sentinel=False)
        pairs, at, counts = np.unique(labels * len(found) + codes, return_inverse=True, return_counts=True)
        sizes = np.bincount(labels)
        if lines is not None:
            counts, sizes = np.zeros(len(pairs), np.int64), np.zeros(len(sizes), np.int64)
            np.add.at(counts, at, lines)
            np.add.at(sizes, labels, lines)
        kinds = tuple(None if pd.isna(v) else v for v in found.tolist())
        return cls(pairs // len(found), pairs % len(found), counts.astype(np.int64), sizes, kinds)

    def distinct(self) -> Floats:
        """Different values in each class."""
        return np.bincount(self.classes, minlength=len(self.sizes)).astype(float)

    def largest(self) -> Ints:
        """Rows of the most frequent value of each class."""
        top = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(top, self.classes, self.counts)
        return top

    def entropy(self) -> Floats:
        """exp(entropy) of each class: as many equally likely values would be as uncertain."""
        p = self.counts / self.sizes[self.classes]
        spread: Floats = np.exp(np.bincount(self.classes, -p * np.log(p), len(self.sizes)))
        return spread

    def recursive(self, l: int) -> Floats:  # noqa: E741 -- the name the literature uses
        """r_1 / (r_l + ... + r_m) of each class; recursive (c, l)-diversity holds where it is below c."""
        order = np.lexsort((-self.counts, self.classes))
        classes, counts = self.classes[order], self.counts[order]
        first = np.flatnonzero(np.r_[True, classes[1:] != classes[:-1]])
        rank = np.arange(len(classes)) - np.repeat(first, np.diff(np.r_[first, len(classes)]))
        tail = np.bincount(classes, np.where(rank >= l - 1, counts, 0), len(self.sizes))
        with np.errstate(divide="ignore"):
            ratio: Floats = np.where(tail > 0, self.largest() / np.maximum(tail, 1), np.inf)
        return ratio

    def reached(self, kind: str, l: float) -> Floats:  # noqa: E741
        """The l that each class reaches; for "recursive", the c above which it holds."""
        if kind == "distinct":
            return self.distinct()
        if kind == "entropy":
            return self.entropy()
        if kind == "frequency":
            return self.sizes / np.maximum(self.largest(), 1)
        return self.recursive(int(l))

    def distances(self, ground: str, column: Column, tree: Sequence[Sequence[str]] | None = None) -> Floats:
        """Earth mover's distance of each class's values from those of all rows."""
        m = len(self.kinds)
        if m < 2:
            return np.zeros(len(self.sizes))
        edges = _edges(ground, self.kinds, column, tree)
        share = np.bincount(self.values, self.counts, m) / self.sizes.sum()
        out = np.zeros(len(self.sizes))
        step = max(1, _BLOCK // m)
        for a in range(0, len(self.sizes), step):
            b = min(a + step, len(self.sizes))
            low, high = np.searchsorted(self.classes, (a, b))
            dense = np.zeros((b - a, m))
            dense[self.classes[low:high] - a, self.values[low:high]] = self.counts[low:high]
            surplus = dense / self.sizes[a:b, None] - share
            for length, inside in edges:
                out[a:b] += length * np.abs(surplus @ inside).sum(axis=1)
        return out


def _edges(
    ground: str, kinds: tuple[Any, ...], column: Column, tree: Sequence[Sequence[str]] | None
) -> list[tuple[float, Floats]]:
    """The ground distance as a tree: for edges of one length, which values (rows) lie below each edge (columns)."""
    m = len(kinds)
    if ground == "equal":
        return [(0.5, np.eye(m))]
    if ground == "ordered":
        rank = value_ranks(kinds, column)
        below = rank[:, None] <= np.arange(m - 1)[None, :]
        return [(1 / (m - 1), below.astype(float))]
    line = {row[0]: tuple(row) for row in tree or ()}
    if not line:
        raise SchemaError(
            f"The 'hierarchical' distance needs the hierarchy of column '{column.name}'. Give it: "
            f"TCloseness(..., tree=hierarchy.rows); or use the 'equal' distance."
        )
    if unknown := sum(v is not None and _text(v) not in line for v in kinds):
        raise SchemaError(
            f"The hierarchy of column '{column.name}' misses {unknown} of its {m} values. Add a line for each of them."
        )
    height = len(next(iter(line.values()))) - 1
    paths = [line[_text(v)] if v is not None else (*[None] * height, "*") for v in kinds]
    edges = []
    for level in range(height):
        names = [path[level] for path in paths]
        groups = sorted(set(names), key=str)
        edges.append((1 / (2 * height), np.array([[n == g for g in groups] for n in names], dtype=float)))
    return edges


def value_ranks(kinds: Sequence[Any], column: Column) -> Ints:
    """The place of each value in the column's order; missing comes last."""
    if column.type == "categorical":
        raise SchemaError(
            f"Column '{column.name}' is categorical: its values have no order. Declare it ordinal with its levels, "
            f"or use the 'equal' or 'hierarchical' distance."
        )
    levels = {v: i for i, v in enumerate(column.levels or ())}
    place = [np.inf if v is None else levels.get(v, len(levels)) if levels else float(v) for v in kinds]
    ranks = np.empty(len(kinds), np.int64)
    ranks[np.argsort(np.array(place, dtype=float), kind="stable")] = np.arange(len(kinds))
    return ranks


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
