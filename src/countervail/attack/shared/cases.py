"""What one case is: a thing that was released counts once, however many people it was handed to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countervail.core.arrays import Bools, Ints, distinct_rows
from countervail.core.region import Regions, distinct_cells


def over_columns(sets: Regions, names: Sequence[str]) -> Regions:
    """The regions over some of their columns."""
    kept = [j for j, a in enumerate(sets.axes) if a.name in names]
    free = None if sets.free is None else sets.free[:, kept]
    return Regions(tuple(sets.axes[j] for j in kept), len(sets), free)


def free_cells(sets: Regions) -> Bools:
    """Thing x column: what a thing says nothing of."""
    return np.zeros((len(sets), len(sets.axes)), dtype=bool) if sets.free is None else sets.free


def first_of_each(sets: Regions, names: Sequence[str]) -> Ints:
    """Where each case comes first: things that say the same of these columns are one.

    Whoever gets the answer that others got adds nothing to what an attack can try, and fares as they do. Things that
    say nothing of these columns are one case where they show the same in every column, an asker's own values included.
    """
    part = over_columns(sets, names)
    free = free_cells(part)
    silent = free.all(axis=1)
    said = np.flatnonzero(~silent)
    cells = cell_codes(part[said], free[said])
    first = said[distinct_rows(cells)[0]] if len(said) else said
    if silent.any():
        rest = np.flatnonzero(silent)
        shown = cell_codes(sets[rest], np.zeros((len(rest), len(sets.axes)), dtype=bool))
        first = np.concatenate([first, rest[distinct_rows(shown)[0]]])
    return np.sort(first)


def cell_codes(sets: Regions, free: Bools) -> Ints:
    """Thing x column: a number for each cell, -1 where nothing is said."""
    if not sets.axes:
        return np.zeros((len(sets), 1), dtype=np.int64)
    cells = np.column_stack([distinct_cells(a)[1] for a in sets.axes])
    cells[free] = -1
    return cells
