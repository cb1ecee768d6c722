"""Which pairs of columns to count: a tree, edge by noisy edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.protect.dp.synthetic.accounting import UNIT
from countervail.protect.dp.synthetic.bins import MarginalCounts, nearest_counts

Edges = tuple[tuple[int, int], ...]


def pair_counts(
    binned: Ints, strata: Ints, marginals: Sequence[MarginalCounts], a: int, b: int, times: Ints | None = None
) -> Ints:
    """Records by stratum and the bins of two columns; every record is in exactly one of these cells."""
    many, p, q = len(marginals[a].noisy), marginals[a].size, marginals[b].size
    flat = np.bincount((strata * p + binned[:, a]) * q + binned[:, b], times, minlength=many * p * q)
    counts: Ints = flat.reshape(many, p, q).astype(np.int64)
    return counts


def choose_edges(
    binned: Ints,
    strata: Ints,
    marginals: Sequence[MarginalCounts],
    totals: Floats,
    noise: float,
    choose: Callable[[Ints], int],
    times: Ints | None = None,
) -> Edges:
    """A forest of pairs that columns drawn alone would miss most. `choose` is a noisy max, and all that is let out.

    The last choice offered is to stop: pairs that are not worth their noise stay out.
    """
    d = binned.shape[1]
    pairs = [(a, b) for a in range(d) for b in range(a + 1, d)]
    scores = pair_scores(binned, strata, marginals, totals, noise, pairs, times)
    tree, chosen = list(range(d)), []
    for _ in range(d - 1):
        offered = [i for i, (a, b) in enumerate(pairs) if tree[a] != tree[b]]
        picked = choose(np.append(scores[offered], 0))
        if picked == len(offered):
            break
        a, b = pairs[offered[picked]]
        chosen.append((a, b))
        tree = [tree[a] if t == tree[b] else t for t in tree]
    return tuple(chosen)


def pair_scores(
    binned: Ints,
    strata: Ints,
    marginals: Sequence[MarginalCounts],
    totals: Floats,
    noise: float,
    pairs: Sequence[tuple[int, int]],
    times: Ints | None = None,
) -> Ints:
    """How far each pair is from what its columns alone say, less what its noise would add; in whole units.

    One record moves one exact count by one, so a sum of distances by `UNIT` at most: whole numbers, no rounding.
    """
    alone = [
        np.stack([nearest_counts(y, t) / t for y, t in zip(m.noisy, totals)]) for m in marginals
    ]  # the guess is made of noisy counts: no record moves it
    scores = np.empty(len(pairs), dtype=np.int64)
    for i, (a, b) in enumerate(pairs):
        exact = pair_counts(binned, strata, marginals, a, b, times) * UNIT
        guess = np.rint(totals[:, None, None] * alone[a][:, :, None] * alone[b][:, None, :] * UNIT).astype(np.int64)
        cost = int(noise * math.sqrt(2 / math.pi) * exact.size * UNIT)
        scores[i] = int(np.abs(exact - guess).sum()) - cost
    return scores
