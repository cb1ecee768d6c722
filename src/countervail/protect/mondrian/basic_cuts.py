"""The cuts of basic Mondrian on code arrays: the size of the right half of an ordered cut is not looked at."""

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import (
    FITS,
    CutConstraints,
    Flags,
    Floats,
    Ints,
    Longs,
    fits,
    inner,
    kernel,
)
from countervail.protect.mondrian.cuts import copy_codes, sort_codes
from countervail.protect.mondrian.grow import CUT_LEAF, CUT_ORDERED, CUT_SET, Partition, Tree
from countervail.protect.mondrian.loss import extent, relative_width


@inner
def _half_fits(classes: Longs, total: int, constraints: CutConstraints, work: Longs, flow: Floats) -> bool:
    """Whether a part satisfies l and t; its size is another matter."""
    loose = CutConstraints(
        1,
        constraints.diversity,
        constraints.l,
        constraints.c,
        constraints.closeness,
        constraints.t,
        constraints.share,
        constraints.ancestors,
    )
    return fits(classes, total, loose, work, flow) == FITS


@kernel
def grow_basic(
    codes: Ints,
    counts: Longs,
    secret: Ints,
    data: Attributes,
    constraints: CutConstraints,
    cell_of: Ints,
    once: bool,
    lows: Ints,
    highs: Ints,
    tried: Flags,
) -> tuple[int, Tree]:
    """Widest attribute first; the size of the right half of an ordered cut is not looked at.

    `lows[0]` and `highs[0]` are what the root takes for the ranges. A single cut (`once`) leaves in them what it hands
    down to each cell; `tried` says which attributes were looked at.
    """
    n_rows, q = codes.shape
    n_secret = constraints.share.shape[0]
    n_codes = max(data.positions.shape[1], data.ancestors.shape[1])
    room = 2 * n_rows + 1
    attribute, cut = np.full(room, -1, np.int32), np.full(room, CUT_LEAF, np.int8)
    thresholds, levels = np.full(room, -1, np.int32), np.zeros(room, np.int32)
    lefts, rights = np.full(room, -1, np.int32), np.full(room, -1, np.int32)
    cells = np.full(room, -1, np.int32)
    starts, middles, stops = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
    members = np.empty(64, np.int32)
    n_members = 0
    rows, moved = np.empty(n_rows, np.int32), np.empty(n_rows, np.int32)
    for r in range(n_rows):
        rows[r] = r
    # Two numbers per attribute: lowest and highest code, or (any code below, level) of a node of the hierarchy. They
    # are brought up to date only when the attribute is tried, as in the original.
    low, high = np.zeros(q, np.int32), np.zeros(q, np.int32)
    stack_low, stack_high = np.zeros((n_rows + 1, q), np.int32), np.zeros((n_rows + 1, q), np.int32)
    stack_node = np.zeros(n_rows + 1, np.int32)
    stack_start, stack_stop = np.zeros(n_rows + 1, np.int64), np.zeros(n_rows + 1, np.int64)
    stack_stop[0] = n_rows
    copy_codes(lows[0], stack_low[0])
    copy_codes(highs[0], stack_high[0])
    hist = np.zeros(n_codes, np.int64)
    group_rows = np.zeros(n_codes, np.int64)
    groups = np.empty(n_codes, np.int32)
    classes, right_classes = np.zeros(n_secret, np.int64), np.zeros(n_secret, np.int64)
    scratch, flow = np.zeros(n_secret, np.int64), np.zeros(n_secret, np.float64)
    plain = constraints.diversity == 0 and constraints.closeness == 0
    closed = np.zeros(q, np.bool_)
    depth, n_nodes, n_cells = 1, 1, 0
    while depth > 0:
        depth -= 1
        node, start, stop = stack_node[depth], stack_start[depth], stack_stop[depth]
        copy_codes(stack_low[depth], low)
        copy_codes(stack_high[depth], high)
        total = 0
        for r in range(start, stop):
            total += counts[rows[r]]
        closed[:] = False
        found = False
        j, threshold, m, level = -1, -1, 0, 0
        if once and node > 0:
            closed[:] = True
        while not found:
            j, width = -1, -1.0
            for i in range(q):
                if not closed[i]:
                    w = relative_width(i, low[i], high[i], data)
                    if w > width:
                        j, width = i, w
            if j < 0:
                break
            closed[j], tried[j] = True, True
            if data.kind[j] == ORDERED:
                column = np.empty(stop - start, np.int32)
                for r in range(start, stop):
                    column[r - start] = codes[rows[r], j]
                low[j], high[j] = extent(column)
                if total // 2 < constraints.k or low[j] == high[j]:
                    continue
                for r in range(start, stop):
                    hist[column[r - start]] += counts[rows[r]]
                threshold = low[j]
                left = hist[threshold]
                while left < total // 2:
                    threshold += 1
                    left += hist[threshold]
                for r in range(stop - start):
                    hist[column[r]] = 0
                if threshold >= high[j]:
                    continue
                if not plain:
                    classes[:], right_classes[:] = 0, 0
                    for r in range(start, stop):
                        if column[r - start] <= threshold:
                            classes[secret[rows[r]]] += counts[rows[r]]
                        else:
                            right_classes[secret[rows[r]]] += counts[rows[r]]
                    if not _half_fits(classes, left, constraints, scratch, flow) or not _half_fits(
                        right_classes, total - left, constraints, scratch, flow
                    ):
                        continue
                found = True
                continue
            tree = data.tree_of[j]
            m = 0
            if high[j] > 0:
                level = high[j] - 1
                for r in range(start, stop):
                    v = codes[rows[r], j]
                    g = data.ancestors[tree, v, level] if level > 0 else v
                    if hist[g] == 0:
                        groups[m] = g
                        m += 1
                    hist[g] += counts[rows[r]]
                    group_rows[g] += 1
                small = False
                for i in range(m):
                    small = small or hist[groups[i]] < constraints.k
                if m == 1 or small:
                    for i in range(m):
                        hist[groups[i]] = 0
                        group_rows[groups[i]] = 0
                if m == 1:
                    # The same rows under a narrower name, which may no longer be the widest: choose again. The code
                    # that was handed down lies under the wider name, but not always under this one.
                    low[j], high[j] = codes[rows[start], j], level
                    closed[j] = level == 0
                if small:
                    m = 0
            if m < 2:
                continue
            sort_codes(groups, np.int64(m))
            fine = True
            if not plain:
                for i in range(m):
                    classes[:] = 0
                    for r in range(start, stop):
                        v = codes[rows[r], j]
                        if (data.ancestors[tree, v, level] if level > 0 else v) == groups[i]:
                            classes[secret[rows[r]]] += counts[rows[r]]
                    if not _half_fits(classes, hist[groups[i]], constraints, scratch, flow):
                        fine = False
                        break
            if fine:
                found = True
            else:
                for i in range(m):
                    hist[groups[i]] = 0
                    group_rows[groups[i]] = 0
        if not found:
            cells[node] = n_cells
            if once:
                copy_codes(low, lows[n_cells])
                copy_codes(high, highs[n_cells])
            for r in range(start, stop):
                cell_of[rows[r]] = n_cells
            n_cells += 1
            continue
        attribute[node] = j
        if data.kind[j] == ORDERED:
            cut[node], thresholds[node] = CUT_ORDERED, threshold
            a, b, left_high, right_low = start, start, low[j], high[j]
            for r in range(start, stop):
                v = codes[rows[r], j]
                if v <= threshold:
                    moved[a] = rows[r]
                    a += 1
                    left_high = max(left_high, v)
                else:
                    right_low = min(right_low, v)
            b = a
            for r in range(start, stop):
                if codes[rows[r], j] > threshold:
                    moved[b] = rows[r]
                    b += 1
            copy_codes(moved[start:stop], rows[start:stop])
            lefts[node], rights[node] = n_nodes, n_nodes + 1
            for half in range(2):
                at = depth + half
                copy_codes(low, stack_low[at])
                copy_codes(high, stack_high[at])
                stack_node[at] = n_nodes + 1 - half
                stack_start[at], stack_stop[at] = (a, stop) if half == 0 else (start, a)
                if half == 0:
                    stack_low[at, j] = right_low
                else:
                    stack_high[at, j] = left_high
            depth += 2
            n_nodes += 2
            continue
        # Many children in one go: a chain of binary set cuts, one child at a time.
        tree = data.tree_of[j]
        at = start
        for i in range(m):
            n = group_rows[groups[i]]
            group_rows[groups[i]] = at
            hist[groups[i]] = n
            at += n
        for r in range(start, stop):
            v = codes[rows[r], j]
            g = data.ancestors[tree, v, level] if level > 0 else v
            moved[group_rows[g]] = rows[r]
            group_rows[g] += 1
        copy_codes(moved[start:stop], rows[start:stop])
        if n_members + m * (m + 1) // 2 > members.shape[0]:
            larger = np.empty(2 * (n_members + m * (m + 1) // 2), np.int32)
            copy_codes(members[:n_members], larger)
            members = larger
        at = start
        for i in range(m):
            n = hist[groups[i]]
            hist[groups[i]] = 0
            group_rows[groups[i]] = 0
            child = node
            if i < m - 1:
                attribute[node], cut[node], levels[node] = j, CUT_SET, level
                starts[node], middles[node] = n_members, n_members + 1
                for p in range(i, m):
                    members[n_members] = groups[p]
                    n_members += 1
                stops[node] = n_members
                lefts[node], rights[node] = n_nodes, n_nodes + 1
                child = n_nodes
                node = n_nodes + 1
                n_nodes += 2
            # Reversed, so that the first child is taken from the stack first.
            slot = depth + m - 1 - i
            copy_codes(low, stack_low[slot])
            copy_codes(high, stack_high[slot])
            stack_low[slot, j], stack_high[slot, j] = codes[rows[at], j], level
            stack_node[slot], stack_start[slot], stack_stop[slot] = child, at, at + n
            at += n
        depth += m
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


def first_ranges(codes: Ints, data: Attributes) -> tuple[Ints, Ints]:
    """Lowest and highest code of each attribute, or (any code, level of the root) of a hierarchy; one line each."""
    root = np.where(data.tree_of < 0, 1, data.ancestors.shape[2] - 1)
    ordered = data.kind == ORDERED
    low, high = np.where(ordered, codes.min(axis=0), codes[0]), np.where(ordered, codes.max(axis=0), root)
    return low[None].astype(np.int32), high[None].astype(np.int32)


def partition_basic(
    codes: Ints, counts: Longs, secret: Ints, data: Attributes, constraints: CutConstraints
) -> Partition:
    """Cells may have fewer than k rows; ordered cuts check l and t on both halves.

    The first code where the running count reaches half (rounded down) ends the left half; a categorical attribute is
    split into all children present (a flat one into its values), each of which must have k rows.
    """
    n_secret = len(constraints.share)
    classes = np.bincount(secret, weights=counts, minlength=n_secret).astype(np.int64)
    failed = fits(classes, int(counts.sum()), constraints, np.zeros(n_secret, np.int64), np.zeros(n_secret, np.float64))
    cell_of = np.zeros(len(codes), np.int32)
    lows, highs = first_ranges(codes, data)
    tried = np.zeros(codes.shape[1], np.bool_)
    rows = np.ascontiguousarray(codes)
    n_cells, tree = grow_basic(rows, counts, secret, data, constraints, cell_of, False, lows, highs, tried)
    return Partition(cell_of, n_cells, tree, failed)
