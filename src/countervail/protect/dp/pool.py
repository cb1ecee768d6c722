"""The noisy pool behind one answer: the nearest records, randomised, in an order that tells nothing.

The proofs are in docs/decisions/dp-neighbours.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Ints
from countervail.core.errors import SchemaError
from countervail.core.rng import Words
from countervail.protect.dp.grid import UNIT, Grid
from countervail.protect.dp.randomiser import Randomiser, choose, sampled_budget

Variant = Literal["all", "sampled", "features"]
VARIANTS: tuple[Variant, ...] = ("all", "sampled", "features")


@dataclass(frozen=True, eq=False, slots=True)
class PoolRecords:
    """The protected records in the order of their content, with the model's decision about each."""

    codes: Codes
    classes: Ints
    default: Ints

    @classmethod
    def of(cls, codes: Ints, classes: Ints, default: Ints) -> Self:
        """Sort by content: equal records are interchangeable, so the order of the table's rows leaves no trace."""
        most = (1 << 63) // ((2 * codes.shape[1] + 2) * UNIT)
        if len(codes) >= most:
            raise SchemaError(
                f"Among records of {codes.shape[1]} columns the nearest of at most {most:,} can be told. Take fewer, "
                f"or PrivateSynthetic, which counts them."
            )
        order = np.lexsort(codes.T[::-1]) if len(codes) else np.zeros(0, dtype=np.int64)
        return cls(np.ascontiguousarray(codes[order], dtype=np.int32), classes[order].astype(np.int64), default)

    def nearest(self, distances: Ints, wanted: Bools, k: int) -> Ints:
        """The k nearest records of a wanted class, query x slot x column; a public record where there are fewer."""
        found = nearest_kernel(self.codes, self.classes, np.ascontiguousarray(wanted), distances, k)
        rows = self.codes[np.maximum(found, 0)].astype(np.int64) if len(self.codes) else np.zeros(1, dtype=np.int64)
        return np.where(found[:, :, None] >= 0, rows, self.default)


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """Randomised slots. One record changes one slot, so the pool costs what one slot costs.

    "all": every slot, each column on its share of the budget. "sampled": `slots` of the k, chosen secretly for each
    query; each may spend more. "features": every slot, but only `features` of its columns, chosen without looking.
    """

    variant: Variant
    randomiser: Randomiser
    slots: int
    features: int

    @classmethod
    def of(
        cls, grid: Grid, variant: Variant, shares: tuple[Fraction, ...], epsilon: Fraction, k: int, slots: int, m: int
    ) -> Self:
        """The pool whose release is epsilon-private; `shares` of the columns sum to one."""
        if variant == "features":
            return cls(variant, Randomiser.over(grid, [epsilon / m] * len(shares)), k, m)
        each = epsilon if variant == "all" else sampled_budget(epsilon, slots, k)
        return cls(
            variant,
            Randomiser.over(grid, [each * s for s in shares]),
            slots if variant == "sampled" else k,
            len(shares),
        )

    def draw(self, nearest: Ints, words: Words) -> tuple[Ints, Bools]:
        """Noisy slots and which of their columns may be looked at; slots sorted by what they show."""
        queries, k, d = nearest.shape
        if self.slots < k:
            picked = choose(queries, k, self.slots, words)
            nearest = np.take_along_axis(nearest, picked[:, :, None], axis=1)
        noisy = self.randomiser.draw(nearest, words)
        shown = np.ones(noisy.shape, dtype=bool)
        if self.features < d:
            shown[:] = False
            flat = shown.reshape(-1, d)
            columns = choose(len(flat), d, self.features, words)
            flat[np.arange(len(flat))[:, None], columns] = True
            noisy = np.where(shown, noisy, -1)
        # Sorting by the noisy content is a function of the set of slots: it hides their order as a shuffle does,
        # and there is no permutation to be secret about or to reuse by mistake.
        order = np.lexsort([*np.moveaxis(noisy, 2, 0)[::-1]], axis=1)
        noisy = np.take_along_axis(noisy, order[:, :, None], axis=1)
        return np.maximum(noisy, 0), noisy >= 0


@kernel
def nearest_kernel(records: Codes, classes: Ints, wanted: Bools, distances: Ints, k: int) -> Ints:
    """Positions of the `k` nearest records of a wanted class; -1 where there are fewer.

    `records` run in the order of their content, so "nearer, and among equals the smaller content" is "nearer, and
    among equals the earlier": a strict order on contents that no other record takes part in. What is done is the same
    whatever the records hold: each is measured in full and pushed into its place among the k nearest by as many
    comparisons as there are places, those of other classes behind all that are wanted.
    """
    queries = len(wanted)
    n, d = records.shape
    out = np.full((queries, k), -1, np.int64)
    if n == 0 or queries == 0:
        return out
    behind = d * distances.max() + 1
    held, pushed = np.empty(k, np.int64), np.empty(k, np.int64)
    for i in range(queries):
        held[:] = 2 * behind * n
        for r in range(n):
            s = behind * (1 - np.int64(wanted[i, classes[r]]))
            for j in range(d):
                s += distances[i, j, records[r, j]]
            key = s * n + r  # no two are equal
            pushed[0] = min(held[0], key)
            for b in range(1, k):
                pushed[b] = min(held[b], max(held[b - 1], key))
            held, pushed = pushed, held
        for b in range(k):
            out[i, b] = (held[b] % n + 1) * np.int64(held[b] < behind * n) - 1
    return out
