"""People in regions, counted by a tree over the people: most of them are never looked at."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints, first_and_counts, number_rows
from countervail.core.counting.coded import CodedColumn, coded_column
from countervail.core.region import Regions


def count_in_tree(regions: Regions, frame: pd.DataFrame, times: Ints | None = None) -> tuple[Ints, Ints]:
    """How many rows lie in each region, and how many nodes of a tree and rows were looked at for it.

    Each row is there once, or so many `times`.
    Equal regions and rows that no region tells apart are looked at once. The tree is cut where the regions are narrow.
    """
    asked = [(j, a) for j, a in enumerate(regions.axes) if a.name in frame.columns]
    free = regions.free
    columns = [coded_column(a, frame[a.name], None if free is None else free[:, j]) for j, a in asked]
    return _counted(sorted(columns, key=lambda c: c.share), times)  # what few values fit is asked first


def _counted(columns: list[CodedColumn], times: Ints | None) -> tuple[Ints, Ints]:
    from countervail.core.counting._kernels import grow, walk

    which = pd.factorize(number_rows([c.cell for c in columns]))[0]
    first = np.flatnonzero(np.diff(np.maximum.accumulate(which), prepend=-1))
    rows = pd.factorize(number_rows([c.codes.astype(np.int64) for c in columns]))[0]
    kept, weights = first_and_counts(rows, times)
    codes = np.column_stack([c.codes[kept] for c in columns])
    if not len(codes) or not len(first):
        return np.zeros(len(which), dtype=np.int64), np.zeros(2, dtype=np.int64)
    begin = np.cumsum([0, *(len(c.spans) for c in columns)])
    cells = np.column_stack([c.cell[first] + b for c, b in zip(columns, begin)]).astype(np.int32)
    shifts = np.array([c.shift for c in columns], dtype=np.int64)
    bytes_ = np.cumsum([0, *(len(c.bits) for c in columns)])
    starts = np.concatenate([c.starts + b for c, b in zip(columns, bytes_)])
    # A cut leaves regions behind the sooner the wider rows lie apart and the narrower the regions are.
    worth = np.array([1 / (c.share * c.size) for c in columns])
    weights, nodes, box, masks = grow(codes, weights.astype(np.int64), shifts, worth)
    found, looked = walk(
        codes,
        weights,
        shifts,
        nodes,
        box,
        masks,
        cells,
        np.concatenate([c.spans for c in columns]),
        np.concatenate([c.groups for c in columns]),
        np.append(np.concatenate([c.bits for c in columns]), np.uint8(0)),
        starts,
    )
    return found[which], looked
