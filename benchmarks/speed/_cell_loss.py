"""Information loss of any partition of the rows, ours or a peer's."""

from __future__ import annotations

from typing import Any

import numpy as np

from countervail.protect.mondrian.labels import by_cell
from countervail.protect.mondrian.narrow import rows_loss


def ncp_of_cells(codes: Any, cell_of: Any, n_cells: int, data: Any) -> Any:
    """NCP (cell, attribute); the mean over attributes, weighted by rows, is the NCP of the table."""
    codes = np.ascontiguousarray(codes)
    start, order = by_cell(cell_of, n_cells)
    q = codes.shape[1]
    stamp = np.full(max(data.positions.shape[1], data.ancestors.shape[1]), -1, np.int64)
    loss = np.zeros((n_cells, q))
    for cell in np.flatnonzero(np.diff(start)):
        rows = order[start[cell] : start[cell + 1]]
        loss[cell] = [rows_loss(codes, rows, j, data, stamp, cell * q + j) for j in range(q)]
    return loss
