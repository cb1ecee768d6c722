"""Several answers to each query that differ: in the columns that they change, then in the values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike

Distances = Callable[[Matrix, Matrix], Floats]


def choose_sparsest(owner: Ints, x: Matrix, rows: Matrix, distances: Distances, place: Ints) -> Ints:
    """For each owner that occurs, which of its rows changes the fewest columns; then the nearest, then the first."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    features = unlike(x[owner], rows).sum(axis=1)
    order = np.lexsort([place, distances(x[owner], rows), features, owner])
    first = np.concatenate([[True], owner[order][1:] != owner[order][:-1]])
    best: Ints = order[first]
    return best


def choose_different(x: Matrix, taken: Sequence[Matrix], rows: Matrix, apart: Floats, n: int) -> list[int]:
    """Which rows to take besides those of one query, up to `n` in all: as different from all of them as there are.

    Two rows are as alike as the share of columns that both change, of those that the one with fewer changes: to do the
    same and more is nothing new. Among equally alike ones fewer changes are better, then nearer ones, then the first.
    Equal rows are taken once.
    """
    held = [unlike(row, x) for row in taken]
    seen = {row.tobytes() for row in taken}
    changed = unlike(rows, x[None])
    out: list[int] = []
    while len(taken) + len(out) < n:
        free = [i for i, row in enumerate(rows) if row.tobytes() not in seen and changed[i].any()]
        if not free:
            break
        best = min(free, key=lambda i: (_alike(changed[i], held), int(changed[i].sum()), float(apart[i]), i))
        out.append(best)
        held.append(changed[best])
        seen.add(rows[best].tobytes())
    return out


def _alike(changed: Bools, held: Sequence[Bools]) -> float:
    return max((float((changed & h).sum() / max(min(changed.sum(), h.sum()), 1)) for h in held), default=0.0)
