"""From noisy counts of one column to counts that could be, and to cells that are worth counting in pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from countervail.core.arrays import Floats, Ints

_MOST_BINS = 32.0


@dataclass(frozen=True, eq=False, slots=True)
class MarginalCounts:
    """One column: the bin of each position, noisy counts of the bins, and how the positions of a bin share it.

    `noisy` is stratum x bin, `within` stratum x position.
    """

    bins: Ints
    noisy: Floats
    within: Floats

    @classmethod
    def of(cls, noisy: Ints, bins: Ints, cells: Floats) -> Self:
        """From noisy counts, and counts that could be (both stratum x position)."""
        added: Floats = np.stack([np.bincount(bins, weights=y.astype(float)) for y in noisy]).astype(np.float64)
        return cls(bins, added, np.stack([_shares(y, bins) for y in cells]))

    @property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.noisy.shape[1])

    @property
    def widths(self) -> Ints:
        """How many positions each bin holds."""
        return np.bincount(self.bins)

    def positions(self, rng: np.random.Generator, bins: Ints, stratum: int) -> Ints:
        """A position for each bin, by its share."""
        out = np.empty(len(bins), dtype=np.int64)
        for b in np.unique(bins).tolist():
            at, inside = np.flatnonzero(bins == b), np.flatnonzero(self.bins == b)
            out[at] = inside[rng.choice(len(inside), len(at), p=self.within[stratum, inside])]
        return out


def smoothed(noisy: Floats, bins: Ints, noise: float) -> Floats:
    """Counts whose differences within a bin are kept as far as they exceed what noise of this deviation would make."""
    out = noisy.copy()
    for b in range(int(bins.max()) + 1):
        at = np.flatnonzero(bins == b)
        if len(at) > 1:
            mean, spread = noisy[at].mean(), noisy[at].var(ddof=1)
            trust = max(0.0, 1.0 - noise**2 / spread) if spread > 0 else 0.0
            out[at] = mean + trust * (noisy[at] - mean)
    return np.maximum(out, 0.0)


def _shares(counts: Floats, bins: Ints) -> Floats:
    """How positions share their bin."""
    some = counts + 1e-12
    whole = np.bincount(bins, weights=some)[bins]
    shares: Floats = some / whole
    return shares


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """The nearest counts (in the sum of squares) that are not negative and have this total."""
    falling = np.sort(noisy)[::-1]
    over = np.cumsum(falling) - total
    last = np.flatnonzero(falling - over / np.arange(1, len(noisy) + 1) > 0)[-1]
    counts: Floats = np.maximum(noisy - over[last] / (last + 1), 0.0)
    return counts


def settle_bins(mass: Floats, widest: float, noise: float, ordered: bool) -> Ints:
    """The bin of each position: about `widest` bins; ordered positions join their neighbours only.

    Labels need less to stand alone: what is merged there has nothing in common.
    """
    many = min(max(widest, 2.0), _MOST_BINS)
    least = max(mass.sum() / many / (1.5 if ordered else 4.0), 2 * noise)
    return _in_order(mass, least) if ordered else _labels(mass, least)


def _labels(mass: Floats, least: float) -> Ints:
    heavy = mass >= least
    return np.where(heavy, np.cumsum(heavy) - 1, heavy.sum()).astype(np.int64)


def _in_order(mass: Floats, least: float) -> Ints:
    bins = np.empty(len(mass), dtype=np.int64)
    at, held, opened = -1, 0.0, False
    for i, m in enumerate(mass.tolist()):
        if m >= least:
            at, opened = at + 1, False
            bins[i] = at
            continue
        if not opened or held >= least:
            at, held, opened = at + 1, 0.0, True
        bins[i], held = at, held + m
    return bins
