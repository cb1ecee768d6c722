"""Few missing values in a column whose classes are named by groups: set apart before anything else is cut.

Missing lies under the root alone, so a class with one row whose value is missing is called by the root, and says
nothing. Eighteen such rows, spread over classes of twenty, cost a table of six hundred the whole column. To part them
from all others saves nothing by itself, so none of the cuts of `taxonomy_cuts.py` is chosen for it; what pays is that
no later class has them. Whether it does is known once the tree has been grown: both are, and the better one is kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from countervail.core._kernels import kernel
from countervail.protect.mondrian.columns import Attributes, Gaps
from countervail.protect.mondrian.constraints import FITS, CutConstraints, Floats, Ints, Longs, first_broken
from countervail.protect.mondrian.grow import CUT_SET, Partition, Tree, partition, single_cell
from countervail.protect.mondrian.labels import by_cell
from countervail.protect.mondrian.narrow import rows_loss

_WORTH: Final = 0.05  # of what a table loses: so much a gap costs before another tree is grown
_WIDER: Final = 1.25  # so much larger is each part that is tried where l or t refuse one
_SLACK: Final = 1e-9


def partition_named(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    data: Attributes,
    constraints: CutConstraints,
    *,
    gaps: Gaps,
) -> Partition:
    """Strict Mondrian; with the gaps of a column set apart first, for each column where the table then loses less."""
    best = partition(codes, counts, secret, data, constraints)
    if best.failed != FITS:
        return best
    least = _lost(codes, counts, best, data)
    apart: Gaps = ()
    for gap in gaps:
        if _mixed(codes, counts, best, gap) <= _WORTH * least:
            continue
        found = _set_apart(codes, counts, secret, data, constraints, (*apart, gap))
        lost = _lost(codes, counts, found, data)
        if lost < least * (1 - _SLACK):
            best, least, apart = found, lost, (*apart, gap)
    return best


def _mixed(codes: Ints, counts: Longs, found: Partition, gap: tuple[int, int]) -> int:
    """The rows in classes that hold both missing and other values of a column: about what its gaps can cost."""
    j, missing = gap
    holes = codes[:, j] == missing
    both = np.intersect1d(found.cell_of[holes], found.cell_of[~holes])
    return int(counts[np.isin(found.cell_of, both)].sum())


def _set_apart(
    codes: Ints, counts: Longs, secret: Ints, data: Attributes, constraints: CutConstraints, gaps: Gaps
) -> Partition:
    """The gaps of each column in turn against all other rows, and both sides cut."""
    if not gaps:
        return partition(codes, counts, secret, data, constraints)
    (j, missing), *others = gaps
    pool = _pool(codes[:, j], counts, secret, constraints, missing)
    if pool is None:
        return _set_apart(codes, counts, secret, data, constraints, tuple(others))
    inside = np.isin(codes[:, j], pool)
    left = partition(codes[inside], counts[inside], secret[inside], data, constraints)
    right = _set_apart(codes[~inside], counts[~inside], secret[~inside], data, constraints, tuple(others))
    cell_of = np.empty(len(codes), np.int32)
    cell_of[inside] = left.cell_of
    cell_of[~inside] = right.cell_of + np.int32(left.n_cells)
    return Partition(cell_of, left.n_cells + right.n_cells, _joined(j, pool, left, right.tree), FITS)


def _pool(column: Ints, counts: Longs, secret: Ints, constraints: CutConstraints, missing: int) -> Ints | None:
    """What is missing with the rarest values, as few as it takes; None where either side would break a promise."""
    weights = np.bincount(column, counts, missing + 1)
    if not weights[missing]:
        return None
    values = np.flatnonzero(weights[:missing])
    values = values[np.argsort(weights[values], kind="stable")]
    reached = np.cumsum(np.append(weights[missing], weights[values]))
    least, total = float(constraints.k), int(reached[-1])
    while least <= total - constraints.k:
        taken = int(np.searchsorted(reached, least))
        pool = np.sort(np.append(values[:taken], missing)).astype(np.int32)
        if total - reached[taken] < constraints.k:
            return None
        inside = np.isin(column, pool)
        sides = (first_broken(secret[side], counts[side], constraints) for side in (inside, ~inside))
        if all(broken == FITS for broken in sides):
            return pool
        least = max(reached[taken] + 1, _WIDER * least)
    return None


def _joined(j: int, pool: Ints, left: Partition, right: Tree) -> Tree:
    """The tree of a cut and what comes below it; nothing is listed for the right, where whatever is not left goes."""
    top = single_cell()
    n = len(left.tree.cut)
    root = top._replace(
        attribute=np.array([j], np.int32),
        cut=np.array([CUT_SET], np.int8),
        left=np.array([1], np.int32),
        right=np.array([1 + n], np.int32),
        cell=np.array([-1], np.int32),
        middle=np.array([len(pool)], np.int64),
        stop=np.array([len(pool)], np.int64),
        members=pool,
    )
    before = len(pool) + len(left.tree.members)
    parts = [root, _moved(left.tree, 1, 0, len(pool)), _moved(right, 1 + n, left.n_cells, before)]
    return Tree(*(np.concatenate([tree[line] for tree in parts]) for line in range(len(root))))


def _moved(tree: Tree, nodes: int, cells: int, members: int) -> Tree:
    """The same tree where nodes, cells and members before it count."""
    inner = tree.left >= 0
    sets = tree.cut == CUT_SET
    return tree._replace(
        left=np.where(inner, tree.left + nodes, -1).astype(np.int32),
        right=np.where(inner, tree.right + nodes, -1).astype(np.int32),
        cell=np.where(inner, -1, tree.cell + cells).astype(np.int32),
        start=np.where(sets, tree.start + members, 0),
        middle=np.where(sets, tree.middle + members, 0),
        stop=np.where(sets, tree.stop + members, 0),
    )


def _lost(codes: Ints, counts: Longs, found: Partition, data: Attributes) -> float:
    """Rows times NCP of all classes."""
    start, rows = by_cell(found.cell_of, found.n_cells)
    weights = np.bincount(found.cell_of, counts, found.n_cells)
    stamp = np.full(max(data.positions.shape[1], data.ancestors.shape[1]), -1, np.int64)
    losses = np.zeros(found.n_cells)
    _class_losses(np.ascontiguousarray(codes), start, rows, data, stamp, losses)
    return float(weights @ losses)


@kernel
def _class_losses(codes: Ints, start: Longs, rows: Ints, data: Attributes, stamp: Longs, losses: Floats) -> None:
    """NCP of each class."""
    mark = 0
    for c in range(losses.shape[0]):
        for j in range(codes.shape[1]):
            losses[c] += rows_loss(codes, rows[start[c] : start[c + 1]], j, data, stamp, mark)
            mark += 1
