"""Strict Mondrian on code arrays: the partition and its cut tree.

A permutation of the rows permutes `cell_of` and changes nothing else: cells are numbered from left to right in the
cut tree, and every tie is broken by code.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes, as_one
from countervail.protect.mondrian.constraints import (
    FITS,
    Bytes,
    CutConstraints,
    Flags,
    Floats,
    Ints,
    Longs,
    first_broken,
    inner,
    kernel,
)
from countervail.protect.mondrian.cuts import (
    BEST_ITEMS,
    BEST_SIDE,
    CODE_SIDE,
    HIST,
    NODE,
    Secrets,
    Trees,
    clear,
    fitting_cut,
    make_buckets,
    make_ints,
    make_longs,
    make_secrets,
    plain_cut,
)
from countervail.protect.mondrian.loss import (
    distinct_codes,
    extent,
    ordered_halves,
    ordered_loss,
    set_halves,
    tree_halves,
    tree_loss,
)
from countervail.protect.mondrian.named.taxonomy_cuts import bits, taxonomy_cut
from countervail.protect.mondrian.set_cuts import set_cut

CUT_LEAF: Final = -1
CUT_ORDERED: Final = 0
CUT_MISSING: Final = 1
CUT_SET: Final = 2
PLAIN_CUT: Final = -1
LAST_RESORT: Final = -2
# Columns of the nodes, and lines of the facts about attributes, as the kernel keeps them.
ATTRIBUTE: Final = 0
CUT: Final = 1
THRESHOLD: Final = 2
LEVEL: Final = 3
LEFT: Final = 4
RIGHT: Final = 5
CELL: Final = 6
START: Final = 7
MIDDLE: Final = 8
STOP: Final = 9
KIND: Final = 0
SIZE: Final = 1
MISSING: Final = 2


class Tree(NamedTuple):
    """The cuts in flat arrays; node 0 is the root, children come after their parent."""

    attribute: Ints  # -1 in a leaf
    cut: Bytes  # CUT_*
    threshold: Ints  # ordered cuts: codes <= threshold go left; a missing value is the last code, so it goes right
    level: Ints  # set cuts: level of the hierarchy whose node ids are listed (0: the codes themselves)
    left: Ints
    right: Ints
    cell: Ints  # -1 in an inner node
    start: Longs  # set cuts: members[start:middle] go left, members[middle:stop] right (none: all others)
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


@inner
def _move32(column: Ints, mask: Ints, buffer: Ints) -> None:
    """Stable partition: rows with mask -1 first."""
    left, right = 0, 0
    for r in range(column.shape[0]):
        x = column[r]
        column[left] = x
        buffer[right] = x
        left -= mask[r]
        right += 1 + mask[r]
    for r in range(right):
        column[left + r] = buffer[r]


@inner
def _move64(column: Longs, mask: Ints, buffer: Longs) -> None:
    """Stable partition: rows with mask -1 first."""
    left, right = 0, 0
    for r in range(column.shape[0]):
        x = column[r]
        column[left] = x
        buffer[right] = x
        left -= mask[r]
        right += 1 + mask[r]
    for r in range(right):
        column[left + r] = buffer[r]


@inner
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


@inner
def _grown32(array: Ints, size: int) -> Ints:
    """The array, or a copy with twice the room."""
    if size <= array.shape[0]:
        return array
    larger = np.empty(2 * size, np.int32)
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@inner
def _other_losses(
    skip: int,
    start: int,
    stop: int,
    columns: Ints,
    mask: Ints,
    is_open: Flags,
    losses: Floats,
    facts: Ints,
    positions: Floats,
    span: Floats,
    hist: Longs,
    trees: Trees | None,
) -> tuple[float, float]:
    """NCP of both halves of a cut on all open attributes but one (-1: on all)."""
    left_loss, right_loss = 0.0, 0.0
    side = mask[: stop - start]
    for i in range(columns.shape[0]):
        if not is_open[i] or i == skip:
            continue
        other = columns[i, start:stop]
        if facts[KIND, i] == ORDERED:
            a, b, c, d = ordered_halves(other, side)
            left_loss += ordered_loss(a, b, facts[MISSING, i], positions, i, span[i])
            right_loss += ordered_loss(c, d, facts[MISSING, i], positions, i, span[i])
            continue
        if trees is not None and trees.names_classes and trees.tree_of[i] >= 0:
            left_size, right_size = tree_halves(other, side, trees.tree_of[i], trees.ancestors, trees.leaves)
            left_loss += left_size / span[i]
            right_loss += right_size / span[i]
            continue
        full = int(losses[i] * span[i] + 0.5)
        n_left, n_right = set_halves(other, side, facts[SIZE, i], full, hist)
        left_loss += n_left / span[i] if n_left > 1 else 0.0
        right_loss += n_right / span[i] if n_right > 1 else 0.0
    return left_loss, right_loss


@kernel
def grow_tree(
    columns: Ints,
    counts: Longs,
    facts: Ints,
    positions: Floats,
    span: Floats,
    k: int,
    gain: bool,
    once: bool,
    longs: Longs,
    ints: Ints,
    buckets: Longs | None,
    nodes: Longs,
    cell_of: Ints,
    trees: Trees | None,
    secrets: Secrets | None,
) -> tuple[int, int, Ints]:
    """Cut until no attribute admits a cut, or once; `columns`, `counts` and the secrets are reordered in place.

    Returns how many nodes and cells there are, and the members of set cuts; `nodes` (all -1) and `cell_of` are filled.
    """
    q, n_rows = columns.shape
    hist, code_side = longs[HIST], ints[CODE_SIDE]
    everyone = 0
    for r in range(n_rows):
        everyone += counts[r]
    members = np.empty(64, np.int32)
    n_members = 0
    rows = np.empty(n_rows, np.int32)
    for r in range(n_rows):
        rows[r] = r
    mask, best_mask = np.empty(n_rows, np.int32), np.empty(n_rows, np.int32)
    keys, key_weights = np.empty(n_rows, np.int32), np.empty(n_rows, np.int64)
    best_items, best_side = np.empty(ints.shape[1], np.int32), np.empty(ints.shape[1], np.int32)
    losses = np.zeros(q, np.float64)
    lows, highs = np.zeros(q, np.int32), np.zeros(q, np.int32)
    # What is tried: an attribute, and under a hierarchy that names the classes, a level and one of two cuts there.
    n_levels = 0
    if trees is not None and gain and trees.names_classes:
        n_levels = trees.ancestors.shape[2] - 1
    order = np.empty(q * (2 * n_levels + 1), np.int64)
    ways = np.full(q * (2 * n_levels + 1), PLAIN_CUT, np.int64)

    # Constant attributes stay constant below, so each node hands the open ones down.
    stack = np.empty((n_rows + 1, 4), np.int64)
    stack_open = np.empty((n_rows + 1, q), np.bool_)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, n_rows, everyone
    is_open = np.empty(q, np.bool_)
    for j in range(q):
        stack_open[0, j] = True
    depth, n_nodes, n_cells = 1, 1, 0
    while depth > 0:
        depth -= 1
        node, start, stop, total = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        n = stop - start
        best_attribute, best_gain = -1, -np.inf
        best_threshold, best_level, best_m, best_left = -1, 0, 0, 0
        n_tries, n_open, whole_loss = 0, 0, 0.0
        if total >= 2 * k and n > 1 and (node == 0 or not once):
            if secrets is not None:
                classes, sec = secrets.classes[NODE], secrets.codes
                clear(classes)
                for r in range(start, stop):
                    classes[sec[r]] += counts[r]
            for j in range(q):
                is_open[j] = stack_open[depth, j]
                losses[j] = 0.0
                if not is_open[j]:
                    continue
                col = columns[j, start:stop]
                low, high = extent(col)
                lows[j], highs[j] = low, high
                if low == high:
                    is_open[j] = False
                    continue
                tree = -1
                if trees is not None:
                    tree = trees.tree_of[j]
                if facts[KIND, j] == ORDERED:
                    losses[j] = ordered_loss(low, high, facts[MISSING, j], positions, j, span[j])
                elif trees is not None and tree >= 0 and trees.names_classes:
                    losses[j] = tree_loss(col, tree, span[j], trees.ancestors, trees.leaves)
                else:
                    losses[j] = distinct_codes(col, facts[SIZE, j], hist) / span[j]
                whole_loss += losses[j]
                p = n_tries
                while not gain and p > 0 and losses[order[p - 1]] < losses[j]:
                    order[p] = order[p - 1]
                    p -= 1
                n_open += 1
                if tree < 0 or n_levels == 0:
                    order[p], ways[p] = j, PLAIN_CUT
                    n_tries += 1
                elif trees is not None:
                    for way in range(2 * n_levels):
                        order[p + way], ways[p + way] = j, way
                    n_tries += 2 * n_levels
            if trees is not None and n_levels > 0:
                for j in range(q):
                    if is_open[j] and trees.tree_of[j] >= 0:
                        order[n_tries], ways[n_tries] = j, LAST_RESORT
                        n_tries += 1
        for p in range(n_tries):
            if ways[p] == LAST_RESORT and best_attribute >= 0:
                break
            j = order[p]
            col, cnt = columns[j, start:stop], counts[start:stop]
            threshold, level, m, left = -1, 0, 0, 0
            own, later, divided = 0.0, -1.0, 0.0
            if facts[KIND, j] == ORDERED:
                if secrets is None:
                    threshold, left = plain_cut(
                        col, cnt, lows[j], highs[j], facts[MISSING, j], total, k, hist, keys, key_weights, buckets
                    )
                else:
                    threshold, left = fitting_cut(
                        col, cnt, lows[j], highs[j], facts[MISSING, j], total, start, longs, ints, secrets
                    )
                if threshold < 0:
                    continue
                last = np.int32(threshold)
                for r in range(n):
                    mask[r] = np.int32(-1) if col[r] <= last else np.int32(0)
            else:
                if trees is not None and ways[p] >= 0:
                    level, prefix = n_levels - 1 - ways[p] // 2, ways[p] % 2 == 1
                    m, left, own, later, divided = taxonomy_cut(
                        col, cnt, lows[j], highs[j], total, k, level, prefix, j, start, longs, ints, trees, secrets
                    )
                else:
                    m, level, left = set_cut(
                        col, cnt, lows[j], highs[j], total, k, gain, j, start, longs, ints, trees, secrets
                    )
                if m == 0:
                    continue
                for r in range(n):
                    mask[r] = code_side[col[r]]
            value = 0.0
            if gain and n_open + n_levels > 1:
                left_loss, right_loss = _other_losses(
                    j if ways[p] >= 0 else -1,
                    start, stop, columns, mask, is_open, losses, facts, positions, span, hist, trees,
                )  # fmt: skip
                value = total * whole_loss - (left * left_loss + (total - left) * right_loss)
                if trees is not None and n_levels > 0:
                    others = value
                    value = (others - own / span[j]) / np.sqrt(bits(left, total) + bits(total - left, total))
                    if later >= 0:
                        value = max(value, (others - later / span[j]) / np.sqrt(divided))
            if value > best_gain:
                best_gain, best_attribute = value, j
                best_threshold, best_level, best_m, best_left = threshold, level, m, left
                for i in range(m):
                    best_items[i], best_side[i] = ints[BEST_ITEMS, i], ints[BEST_SIDE, i]
                mask, best_mask = best_mask, mask
            if not gain:
                break
        if best_attribute < 0:
            nodes[node, CELL] = n_cells
            for r in range(start, stop):
                cell_of[rows[r]] = n_cells
            n_cells += 1
            continue
        j = best_attribute
        side = best_mask[:n]
        middle = start
        for r in range(n):
            middle -= side[r]
        for i in range(q):
            if is_open[i]:
                _move32(columns[i, start:stop], side, keys)
        _move32(rows[start:stop], side, keys)
        if secrets is not None:
            _move32(secrets.codes[start:stop], side, keys)
        _move64(counts[start:stop], side, key_weights)
        cut = CUT_ORDERED
        if facts[KIND, j] != ORDERED:
            cut = CUT_SET
            members = _grown32(members, n_members + best_m)
            nodes[node, START] = n_members
            for half in range(1, -1, -1):
                for i in range(best_m):
                    if best_side[i] == half:
                        members[n_members] = best_items[i]
                        n_members += 1
                nodes[node, STOP - half] = n_members
        elif best_threshold == facts[MISSING, j] - 1:
            cut = CUT_MISSING
        else:
            left_high = extent(columns[j, start:middle])[1]
            right_low = extent(columns[j, middle:stop])[0]
            best_threshold = _middle_code(left_high, right_low, positions[j])
        nodes[node, ATTRIBUTE], nodes[node, CUT] = j, cut
        nodes[node, THRESHOLD], nodes[node, LEVEL] = best_threshold, best_level
        nodes[node, LEFT], nodes[node, RIGHT] = n_nodes, n_nodes + 1
        # The right half goes under the left one on the stack: cells are numbered from left to right.
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = n_nodes + 1, middle, stop
        stack[depth, 3] = total - best_left
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = n_nodes, start, middle
        stack[depth + 1, 3] = best_left
        for i in range(q):
            stack_open[depth, i] = is_open[i]
            stack_open[depth + 1, i] = is_open[i]
        depth += 2
        n_nodes += 2
    return n_nodes, n_cells, members[:n_members]


def make_nodes(rows: int, people: int, k: int) -> Longs:
    """Room for the nodes that so many distinct rows can be cut into; -1 where nothing is written."""
    return np.full((2 * min(rows, people // max(k, 1)) + 1, STOP + 1), -1, np.int64)


def make_facts(data: Attributes) -> Ints:
    """Kind, size and code of a missing value of each attribute, in the lines KIND, SIZE and MISSING."""
    return np.stack([data.kind, data.sizes, data.missing]).astype(np.int32)


def make_trees(data: Attributes) -> Trees | None:
    """The hierarchies; None for a table without."""
    if (data.tree_of < 0).all():
        return None
    return Trees(data.tree_of, data.ancestors, data.leaves, data.tree_loss)


def count_codes(data: Attributes) -> int:
    """How many codes the scratch space must have room for."""
    return int(max(data.positions.shape[1], data.ancestors.shape[1]))


def partition(
    codes: Ints, counts: Longs, secret: Ints, data: Attributes, constraints: CutConstraints, *, gain: bool = True
) -> Partition:
    """Strict Mondrian of rows (or distinct rows with counts >= 1); gain or span chooses the attribute."""
    n, width = len(codes), count_codes(data)
    failed = first_broken(secret, counts, constraints)
    cell_of = np.zeros(n, np.int32)
    if failed != FITS:
        return Partition(cell_of, 1, single_cell(), failed)
    nodes = make_nodes(n, int(counts.sum()), constraints.k)
    # Copies in every case: the kernel reorders them.
    n_nodes, n_cells, members = grow_tree(
        codes.T.copy(order="C"),
        counts.copy(),
        make_facts(data),
        data.positions,
        data.span,
        constraints.k,
        gain,
        False,
        make_longs(width),
        make_ints(width),
        make_buckets(width),
        nodes,
        cell_of,
        make_trees(data),
        make_secrets(secret.copy(), constraints, width),
    )
    return Partition(cell_of, n_cells, tree_of_nodes(nodes[:n_nodes], members), FITS)


def tree_of_nodes(nodes: Longs, members: Ints) -> Tree:
    """The cuts column by column, the members of each half ascending."""
    sets = nodes[:, CUT] == CUT_SET
    ends = np.sort(nodes[sets][:, [MIDDLE, STOP]].ravel())
    half = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    short = nodes[:, :START].astype(np.int32).T.copy()
    return Tree(
        short[ATTRIBUTE],
        short[CUT].astype(np.int8),
        short[THRESHOLD],
        np.maximum(short[LEVEL], 0),
        short[LEFT],
        short[RIGHT],
        short[CELL],
        np.where(sets, nodes[:, START], 0),
        np.where(sets, nodes[:, MIDDLE], 0),
        np.where(sets, nodes[:, STOP], 0),
        members[np.lexsort((members, half))],
    )


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
    weights: Longs | None = None,
) -> CutRows:
    """Cut every part on its own, equal rows as one; `check` gets what a part breaks as a whole, and its size.

    `weights`: the rows are distinct already, and each stands for so many.
    """
    cell_of = np.empty(len(codes), np.int32)
    branches, first = [], 0
    distinct, cells = [], []
    for value, rows in parts:
        every = len(rows) == len(codes)  # in their order, as parts have it
        some, values = (codes, secret) if every else (codes[rows], secret[rows])
        if weights is None:
            some, values, counts, which = as_one(some, values, data.sizes, len(constraints.share))
        else:
            counts, which = weights[rows], np.arange(len(rows), dtype=np.int32)
        found = cut(some, counts, values, data, constraints)
        check(found.failed, int(counts.sum()))
        branches.append(Branch(value, first, found.tree))
        cell_of[rows] = found.cell_of[which] + first
        distinct.append(some)
        cells.append(found.cell_of + np.int32(first))
        first += found.n_cells
    joined = (distinct[0], cells[0]) if len(cells) == 1 else (np.concatenate(distinct), np.concatenate(cells))
    return CutRows(branches, cell_of, first, *joined)
