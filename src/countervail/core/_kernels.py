"""Compiled loops over plain arrays. Each has a plain-Python twin in the tests.

What is compiled is kept in a cache folder (numba's), by source file, processor and version: another of these is
compiled anew, and two processes that compile the same at once both succeed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core import event

from countervail.core import compiling
from countervail.core.arrays import Bools, Codes, Floats, Ints

Function = TypeVar("Function", bound=Callable[..., Any])


# Counters that kernels are called with start as np.int64: the compiler takes a literal 0 for a case of its own.
Whole = int | np.signedinteger[Any]


class _FirstCompilation(event.Listener):
    """Says, once per process, that something is being compiled."""

    def on_start(self, event: event.Event) -> None:
        compiling.tell_once()

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _FirstCompilation())


def kernel(function: Function) -> Function:
    """Compile with the project's settings and keep the signature for the type checker."""
    return _compiled(function, {})


def inner(function: Function) -> Function:
    """Compile a step that only kernels call; without a door from Python it is compiled in less time."""
    return _compiled(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True})


def _compiled(function: Function, options: dict[str, bool]) -> Function:
    try:
        return cast(Function, njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # numba finds no folder that it can write to
        compiling.tell_nothing_is_kept()
        return cast(Function, njit(nogil=True, **options)(function))


@kernel
def nearest(
    x_numbers: Floats,
    x_labels: Codes,
    wanted: Bools,
    admissible: Bools,
    scale: Floats,
    weights: tuple[Floats, Floats] | None,
    numbers: Floats,
    row: Ints,
    starts: Ints,
    group_class: Ints,
    group_labels: Codes,
    n: int,
) -> tuple[Ints, Floats]:
    """The `n` nearest rows of each query by HEOM, ties by row number.

    Rows come in groups that share class and labels, so the label part of the distance is counted once per group and
    groups are visited from the fewest mismatches up; most rows are never looked at.
    `wanted[i, c]`: query i accepts class c. `admissible[i, r]` (or no columns at all): query i accepts row r. `weights`
    are those of numbers and of labels; None: all columns weigh alike, and nothing is compiled for them.
    """
    queries, p = x_numbers.shape
    q = x_labels.shape[1]
    groups = len(group_class)
    out, dist = np.empty((queries, n), np.int64), np.empty((queries, n))
    misses = np.empty(groups, np.int64)
    gap = np.empty(groups, np.float64)
    order = np.empty(groups, np.int64)
    at = np.empty(q + 2, np.int64)
    for i in range(queries):
        for b in range(n):
            out[i, b], dist[i, b] = -1, np.inf
        for m in range(q + 2):
            at[m] = 0
        for g in range(groups):
            miss = -1
            if wanted[i, group_class[g]]:
                miss = 0
                for j in range(q):
                    miss += x_labels[i, j] != group_labels[g, j]
                at[miss + 1] += 1
            misses[g] = miss
        for m in range(q + 1):
            at[m + 1] += at[m]
        total = at[q + 1]
        for g in range(groups):
            if misses[g] >= 0:
                order[at[misses[g]]] = g
                at[misses[g]] += 1
        if weights is not None:
            for o in range(total):
                gap[o] = 0.0
                for j in range(q):
                    if x_labels[i, j] != group_labels[order[o], j]:
                        gap[o] += weights[1][j]
            rank = np.argsort(gap[:total], kind="mergesort")
            gap[:total] = gap[:total][rank]
            order[:total] = order[:total][rank]
        for o in range(total):
            g = order[o]
            apart = float(misses[g])
            if weights is not None:
                apart = gap[o]
            if apart > dist[i, n - 1]:
                break
            for a in range(starts[g], starts[g + 1]):
                if admissible.shape[1] > 0 and not admissible[i, row[a]]:
                    continue
                worst = dist[i, n - 1]
                s = 0.0
                for j in range(p):
                    d = abs(numbers[a, j] - x_numbers[i, j]) / scale[j]
                    if d != d:  # a missing level: 0 from itself, 1 from any other
                        both = np.isnan(numbers[a, j]) and np.isnan(x_numbers[i, j])
                        d = 0.0 if both else 1.0
                    if weights is not None:
                        d *= weights[0][j]
                    s += d
                    if s + apart > worst:
                        break
                d = s + apart
                if d > worst or (d == worst and row[a] > out[i, n - 1] >= 0):
                    continue
                b = n - 1
                while b > 0 and (d < dist[i, b - 1] or (d == dist[i, b - 1] and row[a] < out[i, b - 1])):
                    dist[i, b] = dist[i, b - 1]
                    out[i, b] = out[i, b - 1]
                    b -= 1
                dist[i, b] = d
                out[i, b] = row[a]
    return out, dist
