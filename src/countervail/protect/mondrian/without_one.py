"""What basic Mondrian's release would look like to each person, had they not been there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.protocols import Agreement
from countervail.core.region import Regions
from countervail.core.table import Table
from countervail.protect.mondrian.columns import ORDERED, Attributes, Quasi, deduplicate
from countervail.protect.mondrian.constraints import DIVERSITY, FITS, CutConstraints, Ints, Longs, fits
from countervail.protect.mondrian.without_one_kernels import sweep
from countervail.protect.mondrian.without_one_leaves import make_leaves
from countervail.protect.mondrian.without_one_node import People, make_node
from countervail.protect.mondrian.without_one_stacks import make_variants, make_walk

Refit = Callable[[Table], tuple[Regions, Ints]]  # the regions and each row's, of a run on another table


@dataclass(frozen=True, eq=False, slots=True)
class WithoutEach:
    """Counts of agreement for basic Mondrian with and without each row, from one sweep.

    Rows that alone hold an end of a column's range, or a category, change how widths are measured everywhere: the
    few of them are taken away one by one, by `refit`.
    """

    table: Table
    quasi: tuple[Quasi, ...]
    codes: Ints
    data: Attributes
    rules: CutConstraints
    secret: Ints
    values: tuple[Any, ...]
    group_labels: bool
    diverse: bool
    refit: Refit

    def survives(self) -> bool:
        """Whether the table keeps its promise as one class, whoever is missing."""
        work = np.zeros(len(self.rules.share), np.int64)
        flow = np.zeros(len(self.rules.share))
        classes = np.bincount(self.secret, minlength=len(self.rules.share)) if self.diverse else work
        for s in np.flatnonzero(classes) if self.diverse else [0]:
            less = classes.copy()
            less[s] -= 1
            if fits(less, len(self.codes) - 1, self.rules, work, flow) != FITS:
                return False
        return len(self.codes) > 1

    def agreement(self, rows: NDArray[np.int64]) -> Agreement:
        """How many released rows agree with each of these, by column and sensitive value, with and without them."""
        sizes, n_secret = self.data.sizes, len(self.values)
        codes, secret, counts, which = deduplicate(self.codes, self.secret, sizes, n_secret)
        who, slot = np.unique(which[rows], return_inverse=True)
        place = np.zeros(len(codes), np.int32)
        place[who] = np.arange(len(who))
        shape = (len(who), codes.shape[1], n_secret)
        with_her, without_her = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self._sweep(who.astype(np.int32), codes, secret, counts, place, with_her, without_her)
        with_all, without_all = with_her[slot], without_her[slot]
        for at in np.flatnonzero(self.alone()[rows]):
            without_all[at] = self._counted(int(rows[at]))
        return Agreement(with_all, without_all)

    def alone(self) -> NDArray[np.bool_]:
        """Which rows alone hold a category, or an end of an ordered column's range."""
        out = np.zeros(len(self.codes), dtype=bool)
        for j, q in enumerate(self.quasi):
            held = np.bincount(self.codes[:, j], minlength=q.size)
            if q.kind == ORDERED:
                there = np.flatnonzero(held[: len(q.values)])
                ends = [*there[:1], *there[-1:], *([q.size - 1] if q.missing else [])]
                out |= np.isin(self.codes[:, j], [v for v in ends if held[v] == 1])
            else:
                out |= held[self.codes[:, j]] == 1
        return out

    def _sweep(
        self, who: Ints, codes: Ints, secret: Ints, counts: Longs, place: Ints, with_her: Ints, without_her: Ints
    ) -> None:
        n, q = codes.shape
        n_codes = max(self.data.positions.shape[1], self.data.ancestors.shape[1])
        loose = self.rules._replace(k=1)
        people = People(
            np.ascontiguousarray(codes), counts, secret, self.data, self.rules.k, self._least(), self.diverse, loose
        )
        low, high = codes.min(axis=0).astype(np.int32), codes.max(axis=0).astype(np.int32)
        for j in range(q):
            if self.data.kind[j] != ORDERED:
                low[j], high[j] = codes[0, j], 1 if self.data.tree_of[j] < 0 else self.data.ancestors.shape[2] - 1
        leaves = make_leaves(n, q, self.data.sizes, self.data.kind, len(self.values), self.group_labels)
        node = make_node(n, q, n_codes, max(self.data.ancestors.shape[2], 1), len(self.values), self.diverse)
        sweep(who, low, high, people, node, make_walk(n, q), leaves, make_variants(16, q), place, with_her, without_her)

    def _least(self) -> int:
        """Rows that a node needs to be cut: two parts of k, and of l different people for most meanings of l."""
        part = self.rules.k
        if self.diverse and self.rules.diversity in (
            DIVERSITY["distinct"],
            DIVERSITY["entropy"],
            DIVERSITY["frequency"],
        ):
            part = max(part, math.ceil(self.rules.l - 1e-6))
        return 2 * part

    def _counted(self, row: int) -> Ints:
        """The counts of a run without one row, made anew."""
        others = np.delete(np.arange(len(self.codes)), row)
        regions, cell_of = self.refit(self.table.take(others))
        held = np.zeros((len(regions), len(self.values)), np.int64)
        np.add.at(held, (cell_of, self.secret[others]), 1)
        person: pd.DataFrame = self.table.frame.iloc[[row]]
        inside = [axis.covers(person[axis.name])[:, 0] for axis in regions.axes]
        return np.stack([i @ held for i in inside]).astype(np.int32)
