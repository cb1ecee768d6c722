"""Compiled loops of the randomiser. Each has a plain-Python twin in the tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import kernel

I = NDArray[np.int64]  # noqa: E741
W = NDArray[np.uint64]
B = NDArray[np.bool_]


@kernel
def randomise(codes: I, words: W, sizes: I, windows: I, high: I, low: I, out: I, open_: B) -> int:
    """Draw a new code where `open_`; a word beyond the total weight leaves its cell open. How many are open now.

    Whether a word falls into the window or beside it is not to be seen in what is done: both are worked out.
    """
    rows, d = codes.shape
    left = 0
    for i in range(rows):
        for j in range(d):
            if not open_[i, j]:
                continue
            m, n = sizes[j], windows[j]
            u = np.int64(words[i, j] >> np.uint64(4))
            inside = n * high[j]
            if u >= inside + (m - n) * low[j]:
                left += 1
                continue
            first = min(max(codes[i, j] - n // 2, 0), m - n)
            near = first + u // high[j]
            other = max(u - inside, 0) // low[j]
            far = other + n * np.int64(other >= first)
            out[i, j] = far + (near - far) * np.int64(u < inside)
            open_[i, j] = False
    return left


@kernel
def choose(words: W, n: int, out: I, open_: B) -> int:
    """The first draws of a shuffle of 0..n-1, one row at a time; a row with a word out of reach stays open."""
    rows, picks = words.shape
    bag = np.empty(n, np.int64)
    left = 0
    for i in range(rows):
        if not open_[i]:
            continue
        for a in range(n):
            bag[a] = a
        whole = True
        for a in range(picks):
            rest = n - a
            u = np.int64(words[i, a] >> np.uint64(4))
            if u >= (1 << 60) // rest * rest:
                whole = False
                break
            b = a + u % rest
            bag[a], bag[b] = bag[b], bag[a]
            out[i, a] = bag[a]
        if whole:
            open_[i] = False
        else:
            left += 1
    return left
