"""Noisy k-means (Lloyd's steps with Laplace noise on counts and sums), over points whose range is public."""

from __future__ import annotations

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.protect.dp.grid import Grid


def spread_out(grid: Grid, codes: Ints) -> Floats:
    """Positions as points: an ordered axis is a number from 0 to 1, of another each value has a place of its own.

    Every axis adds at most 1 to the sum of a point's coordinates.
    """
    parts = []
    for j, axis in enumerate(grid.axes):
        if axis.ordered:
            parts.append(np.minimum(codes[:, [j]] / max(len(axis.values) - 1, 1), 1.0))
        else:
            parts.append(np.eye(len(axis))[codes[:, j]])
    return np.concatenate(parts, axis=1)


def folded_back(grid: Grid, points: Floats) -> Ints:
    """Points as positions: the nearest number, or the value with the largest share."""
    codes, at = np.empty((len(points), len(grid.axes)), dtype=np.int64), 0
    for j, axis in enumerate(grid.axes):
        width = 1 if axis.ordered else len(axis)
        part = points[:, at : at + width]
        codes[:, j] = np.rint(part[:, 0] * (len(axis.values) - 1)) if axis.ordered else part.argmax(axis=1)
        at += width
    return codes


def nearest_centre(points: Floats, centres: Floats) -> Ints:
    """Which centre each point is nearest to (squared distance; of equals the first)."""
    apart = (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1)
    found: Ints = apart.argmin(axis=1).astype(np.int64)
    return found


def counts_and_sums(points: Floats, centres: Floats) -> Floats:
    """Centre x (1 + coordinate): how many points are nearest to each, and their sum. One point is in one line."""
    at = nearest_centre(points, centres)
    out: Floats = np.zeros((len(centres), 1 + points.shape[1]))
    np.add.at(out, at, np.column_stack([np.ones(len(points)), points]))
    return out


def noisy_centres(
    points: Floats, start: Floats, axes: int, epsilon: float, rounds: int, rng: np.random.Generator
) -> Floats:
    """Lloyd's steps from `start`, each with `epsilon / rounds`.

    A record that comes or goes changes one line of counts and sums, by 1 in the count and by at most 1 per axis: the
    noise has scale (1 + axes) rounds / epsilon. A centre with a noisy count below 1 stays where it is.
    """
    centres, scale = start, (1 + axes) * rounds / epsilon
    for _ in range(rounds):
        noisy = counts_and_sums(points, centres) + rng.laplace(0.0, scale, (len(centres), 1 + points.shape[1]))
        kept = noisy[:, 0] >= 1
        moved = np.clip(noisy[:, 1:] / np.where(kept, noisy[:, 0], 1.0)[:, None], 0.0, 1.0)
        centres = np.where(kept[:, None], moved, centres)
    return centres
