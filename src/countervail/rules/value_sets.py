"""Imprecise nominal conditions: "the city is Ghent or Liège", beside those of one value."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.rules.values import Bools, ValueTable

MOST_SETS = 1_000  # per attribute: each is compared with all others once


def add_value_sets(table: ValueTable, most: int, owner: str) -> ValueTable:
    """The same table with conditions of up to `most` values of a nominal attribute, after those that occur.

    They stand by size and then in the order of the values; sets of all values that occur say nothing and are left out.
    """
    if not isinstance(most, (int, np.integer)) or isinstance(most, bool) or most < 1:
        raise bad_parameter(owner, "max_values", "a whole number of at least 1", most)
    if most == 1:
        return table
    return replace(table, sets=tuple(_wider(table, j, int(most), owner) for j in range(len(table.attributes))))


def _wider(table: ValueTable, j: int, most: int, owner: str) -> Bools | None:
    a = table.attributes[j]
    if a.ordered:
        return None
    held = table.members(j)
    occur = np.flatnonzero(held[np.unique(table.low[j].astype(np.intp))].any(axis=0)).tolist()
    sizes = range(1, min(most, len(occur) - 1) + 1)
    if sum(comb(len(occur), size) for size in sizes) > MOST_SETS:
        must = f"small enough for {MOST_SETS:,} sets of values in a column"
        hint = f"Column '{a.name}' has {len(occur)} values: merge some, or lower it."
        raise bad_parameter(owner, "max_values", must, most, hint)
    known = {tuple(np.flatnonzero(row).tolist()) for row in held}
    new = [picked for size in sizes for picked in combinations(occur, size) if picked not in known]
    added = np.zeros((len(new), len(a.known)), dtype=bool)
    for i, picked in enumerate(new):
        added[i, list(picked)] = True
    wider: Bools = np.concatenate([held, added])
    return wider
