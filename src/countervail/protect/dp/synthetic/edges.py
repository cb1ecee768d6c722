"""Which pairs of columns to count: a tree, edge by noisy edge."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.protect.dp.synthetic.accounting import UNIT
from countervail.protect.dp.synthetic.bins import MarginalCounts, nearest_counts

Edges = tuple[tuple[int, int], ...]
ExactPair = Callable[[int, int], Ints]  # the exact counts of two columns
_CELLS = 1 << 23  # exact counts that are held at once


@dataclass(frozen=True, eq=False, slots=True)
class Binned:
    """Some records: the bin of each in every column, its stratum, and how many records it stands for."""

    codes: Ints
    strata: Ints
    times: Ints | None = None


def pair_counts(
    binned: Ints, strata: Ints, marginals: Sequence[MarginalCounts], a: int, b: int, times: Ints | None = None
) -> Ints:
    """Records by stratum and the bins of two columns; every record is in exactly one of these cells."""
    many, p, q = len(marginals[a].noisy), marginals[a].size, marginals[b].size
    flat = np.bincount((strata * p + binned[:, a]) * q + binned[:, b], times, minlength=many * p * q)
    counts: Ints = flat.reshape(many, p, q).astype(np.int64)
    return counts


def choose_edges(
    exact: ExactPair, marginals: Sequence[MarginalCounts], totals: Floats, noise: float, choose: Callable[[Ints], int]
) -> Edges:
    """A forest of pairs that columns drawn alone would miss most. `choose` is a noisy max, and all that is let out.

    The last choice offered is to stop: pairs that are not worth their noise stay out.
    """
    d = len(marginals)
    pairs = all_pairs(d)
    scores = pair_scores(exact, marginals, totals, noise, pairs)
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


def all_pairs(columns: int) -> list[tuple[int, int]]:
    """All pairs of columns, in order."""
    return [(a, b) for a in range(columns) for b in range(a + 1, columns)]


def pair_scores(
    exact: ExactPair,
    marginals: Sequence[MarginalCounts],
    totals: Floats,
    noise: float,
    pairs: Sequence[tuple[int, int]],
) -> Ints:
    """How far each pair is from what its columns alone say, less what its noise would add; in whole units.

    One record moves one exact count by one, so a sum of distances by `UNIT` at most: whole numbers, no rounding.
    """
    alone = [
        np.stack([nearest_counts(y, t) / t for y, t in zip(m.noisy, totals)]) for m in marginals
    ]  # the guess is made of noisy counts: no record moves it
    scores = np.empty(len(pairs), dtype=np.int64)
    for i, (a, b) in enumerate(pairs):
        counted = exact(a, b) * UNIT
        guess = np.rint(totals[:, None, None] * alone[a][:, :, None] * alone[b][:, None, :] * UNIT).astype(np.int64)
        cost = int(noise * math.sqrt(2 / math.pi) * counted.size * UNIT)
        scores[i] = int(np.abs(counted - guess).sum()) - cost
    return scores


class PairReader:
    """Exact counts of pairs of columns; each time records are read, of as many pairs as fit memory."""

    def __init__(self, read: Callable[[], Iterable[Binned]], marginals: Sequence[MarginalCounts]) -> None:
        self._read, self._marginals = read, marginals
        self._held: dict[tuple[int, int], Ints] = {}

    def __call__(self, a: int, b: int) -> Ints:
        """Records by stratum and the bins of two columns."""
        if (a, b) not in self._held:
            self._count(a, b)
        return self._held[a, b]

    def _count(self, a: int, b: int) -> None:
        """This pair and those that come after it."""
        pairs = all_pairs(len(self._marginals))
        strata, sizes = len(self._marginals[0].noisy), [m.size for m in self._marginals]
        self._held = {}
        cells = 0
        for p, q in pairs[pairs.index((a, b)) :]:
            cells += strata * sizes[p] * sizes[q]
            if self._held and cells > _CELLS:
                break
            self._held[p, q] = np.zeros((strata, sizes[p], sizes[q]), dtype=np.int64)
        for part in self._read():
            for (p, q), counts in self._held.items():
                counts += pair_counts(part.codes, part.strata, self._marginals, p, q, part.times)
