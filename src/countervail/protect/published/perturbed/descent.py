"""Rows that are moved one column at a time over a public domain, as long as that makes a loss smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from countervail.core.arrays import Floats, Ints

Loss = Callable[[Ints, Ints], Floats]  # positions, and which query each row is tried for
_LESS = 1e-9  # what counts as smaller
_TRIED = 200_000  # rows of one call of the loss


def spread_places(sizes: Sequence[int], most: int) -> list[Ints]:
    """Positions of each axis that are tried: all, or so many from one end to the other."""
    return [np.unique(np.rint(np.linspace(0, n - 1, min(n, most))).astype(np.int64)) for n in sizes]


def descended(start: Ints, places: Sequence[Ints], loss: Loss, steps: int) -> Ints:
    """Each row after at most so many moves: every time the one move, of one column, that leaves the least loss."""
    at = start.copy()
    column = np.repeat(np.arange(len(places)), [len(p) for p in places])
    position = np.concatenate(list(places))
    value, going = loss(at, np.arange(len(at))), np.arange(len(at))
    for _ in range(steps):
        moved = [_moved(part, at, column, position, loss) for part in _parts(going, len(column))]
        if not moved:
            break
        best, least = (np.concatenate(found) for found in zip(*moved))
        better = least < value[going] - _LESS
        going, best, least = going[better], best[better], least[better]
        at[going, column[best]], value[going] = position[best], least
    return at


def _moved(who: Ints, at: Ints, column: Ints, position: Ints, loss: Loss) -> tuple[Ints, Floats]:
    """The best single move of each, and what it leaves."""
    tried = np.repeat(at[who], len(column), axis=0)
    tried[np.arange(len(tried)), np.tile(column, len(who))] = np.tile(position, len(who))
    found = loss(tried, np.repeat(who, len(column))).reshape(len(who), len(column))
    best: Ints = found.argmin(axis=1).astype(np.int64)
    return best, found[np.arange(len(who)), best]


def _parts(who: Ints, moves: int) -> list[Ints]:
    """Queries in parts whose tried rows fit into one call."""
    few = max(_TRIED // moves, 1)
    return [who[i : i + few] for i in range(0, len(who), few)]
