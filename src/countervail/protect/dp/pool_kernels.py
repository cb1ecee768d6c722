"""Compiled loops of the pool. Each has a plain-Python twin in the tests."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

I = NDArray[np.int64]  # noqa: E741
C = NDArray[np.int32]
B = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def nearest(records: C, classes: I, wanted: B, distances: I, k: int) -> I:
    """Positions of the `k` nearest records of a wanted class; -1 where there are fewer.

    `records` run in the order of their content, so "nearer, and among equals the smaller content" is "nearer, and
    among equals the earlier": a strict order on contents that no other record takes part in.
    """
    queries = len(wanted)
    n, d = records.shape
    out = np.full((queries, k), -1, np.int64)
    dist = np.empty(k, np.int64)
    for i in range(queries):
        held = 0
        for r in range(n):
            if not wanted[i, classes[r]]:
                continue
            s = np.int64(0)
            beaten = False
            for j in range(d):
                s += distances[i, j, records[r, j]]
                if held == k and s >= dist[k - 1]:
                    beaten = True
                    break
            if beaten:
                continue
            b = held if held < k else k - 1
            while b > 0 and s < dist[b - 1]:
                dist[b] = dist[b - 1]
                out[i, b] = out[i, b - 1]
                b -= 1
            dist[b] = s
            out[i, b] = r
            if held < k:
                held += 1
    return out
