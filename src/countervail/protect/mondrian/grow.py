"""Strict Mondrian on code arrays: the partition and its cut tree.

A permutation of the rows permutes `cell_of` and changes nothing else: cells are numbered from left to right in the
cut tree, and every tie is broken by code.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes, as_one
from countervail.protect.mondrian.constraints import FITS, Bytes, CutConstraints, Floats, Ints, Longs, fits, kernel
from countervail.protect.mondrian.cuts import DIRECT, Work, median_cut, ordered_cut
from countervail.protect.mondrian.loss import (
    extent,
    node_loss,
    ordered_halves,
    ordered_loss,
    set_halves,
    tree_halves,
)
from countervail.protect.mondrian.set_cuts import set_cut
from countervail.protect.mondrian.taxonomy_cuts import bits, taxonomy_cut

CUT_LEAF: Final = -1
CUT_ORDERED: Final = 0
CUT_MISSING: Final = 1
CUT_SET: Final = 2
PLAIN_CUT: Final = -1
LAST_RESORT: Final = -2


class Tree(NamedTuple):
    """The cuts in flat arrays; node 0 is the root, children come after their parent."""

    attribute: Ints  # -1 in a leaf
    cut: Bytes  # CUT_*
    threshold: Ints  # ordered cuts: codes <= threshold go left; a missing value is the last code, so it goes right
    level: Ints  # set cuts: level of the hierarchy whose node ids are listed (0: the codes themselves)
    left: Ints
    right: Ints
    cell: Ints  # -1 in an inner node
    start: Longs  # set cuts: members[start:middle] go left, members[middle:stop] go right, both ascending
    middle: Longs
    stop: Longs
    members: Ints


class Partition(NamedTuple):
    """Cells of the rows, the cut tree, and which constraint the root breaks (FITS, FAILS_K, FAILS_L, FAILS_T)."""

    cell_of: Ints
    n_cells: int
    tree: Tree
    failed: int


@dataclass(frozen=True, eq=False, slots=True)
class Branch:
    """The cuts of the whole table, or of one class of it; its cells are numbered from `first` on."""

    value: Any
    first: int
    nodes: Tree


@dataclass(frozen=True, eq=False, slots=True)
class CutRows:
    """A table cut part by part: the cell of each row, and of each of its distinct rows (a label needs them once)."""

    branches: list[Branch]
    cell_of: Ints
    n_cells: int
    distinct: Ints
    distinct_cells: Ints


@kernel
def _move32(column: Ints, mask: Ints, buffer: Ints) -> None:
    """Stable partition: rows with mask -1 first."""
    left, right = 0, 0
    for r in range(column.shape[0]):
        x = column[r]
        column[left] = x
        buffer[right] = x
        left -= mask[r]
        right += 1 + mask[r]
    column[left:] = buffer[:right]


@kernel
def _move64(column: Longs, mask: Ints, buffer: Longs) -> None:
    """Stable partition: rows with mask -1 first."""
    left, right = 0, 0
    for r in range(column.shape[0]):
        x = column[r]
        column[left] = x
        buffer[right] = x
        left -= mask[r]
        right += 1 + mask[r]
    column[left:] = buffer[:right]


@kernel
def _middle_code(left_high: int, right_low: int, positions: Floats) -> int:
    """The last code that lies no farther from the left half than from the right one (for rows not seen here)."""
    low, high = left_high, right_low - 1
    while low < high:
        middle = (low + high + 1) // 2
        if positions[middle] - positions[left_high] <= positions[right_low] - positions[middle]:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def _grown32(array: Ints, size: int) -> Ints:
    """The array, or a copy with twice the room."""
    if size <= array.shape[0]:
        return array
    larger = np.empty(2 * size, array.dtype)
    larger[: array.shape[0]] = array
    return larger


@kernel
def grow_tree(
    columns: Ints,
    counts: Longs,
    secret: Ints,
    data: Attributes,
    constraints: CutConstraints,
    gain: bool,
    work: Work,
    cell_of: Ints,
    once: bool,
) -> tuple[int, Tree]:
    """Cut until no attribute admits a cut, or once; `columns`, `counts` and `secret` are reordered in place."""
    q, n_rows = columns.shape
    plain = constraints.diversity == 0 and constraints.closeness == 0
    taxonomy = gain and data.tree_loss and (data.tree_of >= 0).any()
    # Taking an array from a tuple counts references, which in small nodes costs more than the work.
    kind, sizes, missing, positions, span = data.kind, data.sizes, data.missing, data.positions, data.span
    tree_of, ancestors, leaves = data.tree_of, data.ancestors, data.leaves
    hist, keys, key_weights, buckets = work.hist, work.keys, work.key_weights, work.buckets
    everyone = 0
    for r in range(n_rows):
        everyone += counts[r]
    room = int(min(n_rows, everyone // max(constraints.k, 1))) * 2 + 1
    attribute = np.full(room, -1, np.int32)
    cut = np.full(room, CUT_LEAF, np.int8)
    thresholds = np.full(room, -1, np.int32)
    levels = np.zeros(room, np.int32)
    lefts = np.full(room, -1, np.int32)
    rights = np.full(room, -1, np.int32)
    cells = np.full(room, -1, np.int32)
    starts = np.zeros(room, np.int64)
    middles = np.zeros(room, np.int64)
    stops = np.zeros(room, np.int64)
    members = np.empty(64, np.int32)
    n_members = 0

    rows = np.arange(n_rows).astype(np.int32)
    mask = np.empty(n_rows, np.int32)
    best_mask = np.empty(n_rows, np.int32)
    buffer = work.keys
    best_items = np.empty_like(work.sorted_items)
    best_item_side = np.empty_like(work.best_side)
    losses = np.zeros(q, np.float64)
    lows = np.zeros(q, np.int32)
    highs = np.zeros(q, np.int32)
    # What is tried: an attribute, and under a hierarchy that names the classes, a level and one of two cuts there.
    n_levels = ancestors.shape[2] - 1 if taxonomy else 0
    order = np.empty(q * (2 * n_levels + 1), np.int64)
    ways = np.full(q * (2 * n_levels + 1), PLAIN_CUT, np.int64)

    # Constant attributes stay constant below, so each node hands the open ones down.
    stack_node = np.empty(n_rows + 1, np.int32)
    stack_start = np.empty(n_rows + 1, np.int64)
    stack_stop = np.empty(n_rows + 1, np.int64)
    stack_total = np.empty(n_rows + 1, np.int64)
    stack_open = np.empty((n_rows + 1, q), np.bool_)
    stack_node[0], stack_start[0], stack_stop[0], stack_total[0] = 0, 0, n_rows, everyone
    stack_open[0] = True
    depth, n_nodes, n_cells = 1, 1, 0
    is_open = np.empty(q, np.bool_)
    while depth > 0:
        depth -= 1
        node, start, stop, total = stack_node[depth], stack_start[depth], stack_stop[depth], stack_total[depth]
        is_open[:] = stack_open[depth]
        if once and node > 0:
            total = 0
        best_attribute = -1
        best_gain = -np.inf
        best_threshold, best_level, best_m, best_left = -1, 0, 0, 0
        n_tries, n_open = 0, 0
        if total >= 2 * constraints.k and stop - start > 1:
            cnt, sec = counts[start:stop], secret[start:stop]
            if not plain:
                work.node_classes[:] = 0
                for r in range(stop - start):
                    work.node_classes[sec[r]] += cnt[r]
            for j in range(q):
                losses[j] = 0.0
                if not is_open[j]:
                    continue
                col = columns[j, start:stop]
                low, high = extent(col)
                lows[j], highs[j] = low, high
                if low == high:
                    is_open[j] = False
                    continue
                losses[j] = node_loss(col, low, high, j, data, hist)
                p = n_tries
                while not gain and p > 0 and losses[order[p - 1]] < losses[j]:
                    order[p] = order[p - 1]
                    p -= 1
                n_open += 1
                for way in range(2 * n_levels if taxonomy and tree_of[j] >= 0 else 1):
                    order[p + way] = j
                    ways[p + way] = way if taxonomy and tree_of[j] >= 0 else PLAIN_CUT
                    n_tries += 1
            if taxonomy:
                for j in range(q):
                    if is_open[j] and tree_of[j] >= 0:
                        order[n_tries], ways[n_tries] = j, LAST_RESORT
                        n_tries += 1
            whole_loss = 0.0
            for j in range(q):
                whole_loss += losses[j]
            for p in range(n_tries):
                if ways[p] == LAST_RESORT and best_attribute >= 0:
                    break
                j = order[p]
                col = columns[j, start:stop]
                n = stop - start
                threshold, level, m, left = -1, 0, 0, 0
                own, later, divided = 0.0, -1.0, 0.0
                if kind[j] == ORDERED:
                    if plain and highs[j] != missing[j]:
                        threshold, left = median_cut(
                            col, cnt, lows[j], highs[j], total, hist, keys, key_weights, buckets
                        )
                        if left < constraints.k or total - left < constraints.k:
                            continue
                    else:
                        threshold, left = ordered_cut(
                            col, cnt, sec, lows[j], highs[j], missing[j], total, plain, constraints, work
                        )
                        if threshold < 0:
                            continue
                    for r in range(n):
                        mask[r] = np.int32(-1) if col[r] <= np.int32(threshold) else np.int32(0)
                elif ways[p] >= 0:
                    level = n_levels - 1 - ways[p] // 2
                    m, left, own, later, divided = taxonomy_cut(
                        col,
                        cnt,
                        sec,
                        lows[j],
                        highs[j],
                        total,
                        plain,
                        level,
                        ways[p] % 2 == 1,
                        j,
                        data,
                        constraints,
                        work,
                    )
                    if m == 0:
                        continue
                    for r in range(n):
                        mask[r] = work.code_side[col[r]]
                else:
                    m, level, left = set_cut(
                        col, cnt, sec, lows[j], highs[j], total, plain, gain, j, data, constraints, work
                    )
                    if m == 0:
                        continue
                    for r in range(n):
                        mask[r] = work.code_side[col[r]]
                value = 0.0
                if gain and n_open + n_levels > 1:
                    left_loss, right_loss = 0.0, 0.0
                    side = mask[:n]
                    for i in range(q):
                        if not is_open[i] or (i == j and ways[p] >= 0):
                            continue
                        other = columns[i, start:stop]
                        if kind[i] == ORDERED:
                            a, b, c, d = ordered_halves(other, side)
                            left_loss += ordered_loss(a, b, missing[i], positions, i, span[i])
                            right_loss += ordered_loss(c, d, missing[i], positions, i, span[i])
                        elif data.tree_loss and tree_of[i] >= 0:
                            left_size, right_size = tree_halves(other, side, tree_of[i], ancestors, leaves)
                            left_loss += left_size / span[i]
                            right_loss += right_size / span[i]
                        else:
                            full = round(losses[i] * span[i])
                            n_left, n_right = set_halves(other, side, sizes[i], full, hist)
                            left_loss += n_left / span[i] if n_left > 1 else 0.0
                            right_loss += n_right / span[i] if n_right > 1 else 0.0
                    value = total * whole_loss - (left * left_loss + (total - left) * right_loss)
                    if taxonomy:
                        others = value
                        value = (others - own / span[j]) / np.sqrt(bits(left, total) + bits(total - left, total))
                        if later >= 0:
                            value = max(value, (others - later / span[j]) / np.sqrt(divided))
                if value > best_gain:
                    best_gain, best_attribute = value, j
                    best_threshold, best_level, best_m, best_left = threshold, level, m, left
                    best_items[:m] = work.best_items[:m]
                    best_item_side[:m] = work.best_side[:m]
                    mask, best_mask = best_mask, mask
                if not gain:
                    break
        if best_attribute < 0:
            cells[node] = n_cells
            for r in range(start, stop):
                cell_of[rows[r]] = n_cells
            n_cells += 1
            continue
        j = best_attribute
        side = best_mask[: stop - start]
        n_left = 0
        for r in range(stop - start):
            n_left -= side[r]
        for i in range(q):
            if is_open[i]:
                _move32(columns[i, start:stop], side, buffer)
        _move32(rows[start:stop], side, buffer)
        _move32(secret[start:stop], side, buffer)
        _move64(counts[start:stop], side, work.key_weights)
        attribute[node] = j
        if kind[j] == ORDERED:
            cut[node] = CUT_ORDERED
            if best_threshold == missing[j] - 1:
                cut[node] = CUT_MISSING
            else:
                left_high = extent(columns[j, start : start + n_left])[1]
                right_low = extent(columns[j, start + n_left : stop])[0]
                best_threshold = _middle_code(left_high, right_low, positions[j])
            thresholds[node] = best_threshold
        else:
            cut[node] = CUT_SET
            levels[node] = best_level
            members = _grown32(members, n_members + best_m)
            starts[node] = n_members
            for half in range(1, -1, -1):
                first = n_members
                for i in range(best_m):
                    if best_item_side[i] == half:
                        members[n_members] = best_items[i]
                        n_members += 1
                members[first:n_members].sort()
                if half == 1:
                    middles[node] = n_members
            stops[node] = n_members
        lefts[node], rights[node] = n_nodes, n_nodes + 1
        # The right half goes under the left one on the stack: cells are numbered from left to right.
        stack_node[depth], stack_start[depth], stack_stop[depth] = n_nodes + 1, start + n_left, stop
        stack_total[depth] = total - best_left
        stack_open[depth] = is_open
        stack_node[depth + 1], stack_start[depth + 1], stack_stop[depth + 1] = n_nodes, start, start + n_left
        stack_total[depth + 1] = best_left
        stack_open[depth + 1] = is_open
        depth += 2
        n_nodes += 2
    tree = Tree(
        attribute[:n_nodes].copy(),
        cut[:n_nodes].copy(),
        thresholds[:n_nodes].copy(),
        levels[:n_nodes].copy(),
        lefts[:n_nodes].copy(),
        rights[:n_nodes].copy(),
        cells[:n_nodes].copy(),
        starts[:n_nodes].copy(),
        middles[:n_nodes].copy(),
        stops[:n_nodes].copy(),
        members[:n_members].copy(),
    )
    return n_cells, tree


def make_work(n_rows: int, n_codes: int, n_secret: int) -> Work:
    """Scratch space for a table of this size."""
    width = n_codes + 1
    return Work(
        hist=np.zeros(width, np.int64),
        group_hist=np.zeros(width, np.int64),
        values=np.empty(width, np.int32),
        items=np.empty(width, np.int32),
        weights=np.empty(width, np.int64),
        sorted_items=np.empty(width, np.int32),
        sorted_weights=np.empty(width, np.int64),
        side=np.empty(width, np.int32),
        best_items=np.empty(width, np.int32),
        best_side=np.empty(width, np.int32),
        code_side=np.empty(width, np.int32),
        index_of=np.empty(width, np.int32),
        offsets=np.empty(width + 1, np.int64),
        grouped=np.empty(n_rows, np.int32),
        keys=np.empty(n_rows, np.int32),
        key_weights=np.empty(n_rows, np.int64),
        buckets=np.empty(DIRECT + 1, np.int64),
        node_classes=np.zeros(n_secret, np.int64),
        low_classes=np.zeros(n_secret, np.int64),
        high_classes=np.zeros(n_secret, np.int64),
        rest_classes=np.zeros(n_secret, np.int64),
        top_classes=np.zeros(n_secret, np.int64),
        flow=np.zeros(n_secret, np.float64),
    )


def partition(
    codes: Ints, counts: Longs, secret: Ints, data: Attributes, constraints: CutConstraints, *, gain: bool = True
) -> Partition:
    """Strict Mondrian of rows (or distinct rows with counts >= 1); gain or span chooses the attribute."""
    n = len(codes)
    n_secret = len(constraints.share)
    work = make_work(n, max(data.positions.shape[1], data.ancestors.shape[1]), n_secret)
    classes = np.bincount(secret, weights=counts, minlength=n_secret).astype(np.int64)
    failed = fits(classes, int(counts.sum()), constraints, work.top_classes, work.flow)
    cell_of = np.zeros(n, np.int32)
    if failed != FITS:
        return Partition(cell_of, 1, single_cell(), failed)
    # A copy in every case: the kernel reorders it.
    columns = codes.T.copy(order="C")
    n_cells, tree = grow_tree(columns, counts.copy(), secret.copy(), data, constraints, gain, work, cell_of, False)
    return Partition(cell_of, n_cells, tree, FITS)


def single_cell() -> Tree:
    """A tree of one cell."""
    zero, none, empty = np.zeros(1, np.int32), np.full(1, -1, np.int32), np.zeros(1, np.int64)
    leaf = np.full(1, CUT_LEAF, np.int8)
    return Tree(none, leaf, none, zero, none, none, zero, empty, empty, empty, np.zeros(0, np.int32))


def cut_parts(
    codes: Ints,
    secret: Ints,
    data: Attributes,
    constraints: CutConstraints,
    parts: Iterable[tuple[Any, Longs]],
    cut: Callable[[Ints, Longs, Ints, Attributes, CutConstraints], Partition],
    check: Callable[[int, int], None],
) -> CutRows:
    """Cut every part on its own, equal rows as one; `check` gets what a part breaks as a whole, and its size."""
    cell_of = np.empty(len(codes), np.int32)
    branches, first = [], 0
    distinct, cells = [], []
    for value, rows in parts:
        some, values, counts, which = as_one(codes[rows], secret[rows], data.sizes, len(constraints.share))
        found = cut(some, counts, values, data, constraints)
        check(found.failed, len(rows))
        branches.append(Branch(value, first, found.tree))
        cell_of[rows] = found.cell_of[which] + first
        distinct.append(some)
        cells.append(found.cell_of + np.int32(first))
        first += found.n_cells
    return CutRows(branches, cell_of, first, np.concatenate(distinct), np.concatenate(cells))
