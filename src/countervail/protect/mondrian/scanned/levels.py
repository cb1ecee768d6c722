"""Cuts of more distinct rows than memory holds: level by level in the engine, by the rules of `grow.py`.

The cut of a node on one column depends on how often each of its codes occurs there (with each sensitive value), so the
kernel finds it on that histogram as it does on the rows. Which column is cut depends on what both halves hold of the
other columns: least and greatest codes, numbers of different codes. A node whose distinct rows are few enough comes out
and is cut by the kernel whole. Trees are put together, and cells numbered, as if there had been one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.engine.coded import CODE, NODE, SIDE, TUPLES, CodedRows, code
from countervail.engine.coded import SECRET as SECRET_CODE
from countervail.engine.interface import COUNT
from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import CutConstraints, Ints, Longs
from countervail.protect.mondrian.cuts import Trees, make_buckets, make_ints, make_longs, make_secrets
from countervail.protect.mondrian.grow import (
    CUT_LEAF,
    CUT_SET,
    Partition,
    Tree,
    count_codes,
    grow_tree,
    make_facts,
    make_nodes,
    make_trees,
    partition,
    tree_of_nodes,
)
from countervail.protect.mondrian.labels import TightLabels, tight_labels

Histogram = tuple[Ints, Ints, Longs]  # codes, sensitive values and how often both occur


@dataclass(eq=False, slots=True)
class Grown:
    """A node: a cut and its children, or the tree and the labels of the cells below it."""

    part: int
    cut: Tree | None = None
    left: Grown | None = None
    right: Grown | None = None
    below: Tree | None = None
    labels: TightLabels | None = None
    first: int = -1  # number of the first cell below, as the engine holds it

    @property
    def cells(self) -> int:
        """How many cells a finished node has."""
        return 0 if self.labels is None else len(self.labels.low)


@dataclass(eq=False, slots=True)
class LevelCuts:
    """All parts, cut: their roots, and the labels of all cells in the order in which the engine numbers them."""

    roots: list[Grown]
    n_cells: int = 0
    finished: list[Grown] = field(default_factory=list)


def cut_levels(
    rows: CodedRows, parts: int, data: Attributes, constraints: CutConstraints, *, gain: bool, limit: int
) -> LevelCuts:
    """Cut nodes in the engine until each has at most `limit` distinct rows, then here."""
    out = LevelCuts([Grown(p) for p in range(parts)])
    open_: dict[int, Grown] = dict(enumerate(out.roots))
    used = parts
    while open_:
        sizes = {int(n): (int(t), int(c)) for n, t, c in _lines(rows.sizes(), NODE, TUPLES, COUNT)}
        few = [n for n in open_ if sizes[n][0] <= limit]
        for batch in _batches(few, {n: sizes[n][0] for n in few}, limit):
            _finish_here(rows, {n: open_.pop(n) for n in batch}, data, constraints, gain, out)
        if not open_:
            return out
        found = _level(rows, {n: sizes[n][1] for n in open_}, data, constraints, gain)
        chosen: dict[int, int] = {}
        sides: list[tuple[int, Ints, Ints]] = []
        after: dict[int, Grown] = {}
        for n, node in open_.items():
            cut = found.best.get(n)
            if cut is None:
                _finish_whole(rows, n, node, found.histograms, data, out)
                continue
            node.cut, chosen[n] = cut.tree, cut.column
            node.left, node.right = Grown(node.part), Grown(node.part)
            after[used], after[used + 1] = node.left, node.right
            sides.append((n, cut.codes, np.where(cut.left, used, used + 1)))
            used += 2
        if not after:
            return out
        rows.split(chosen, _sides(sides))
        open_ = after
    return out


@dataclass(frozen=True, eq=False, slots=True)
class OneCut:
    """A cut of one node on one column: which of its codes go left, and the tree of that one cut."""

    column: int
    tree: Tree
    codes: Ints
    left: Any
    rows_left: int


@dataclass(frozen=True, eq=False, slots=True)
class _Level:
    """The best cut of each node that has one, and the histograms of all."""

    best: Mapping[int, OneCut]
    histograms: Sequence[Mapping[int, Histogram]]


def _level(
    rows: CodedRows, totals: Mapping[int, int], data: Attributes, constraints: CutConstraints, gain: bool
) -> _Level:
    """The cut that the kernel would choose in each node."""
    q = len(data.kind)
    histograms = [_histograms(rows.histogram(j), j) for j in range(q)]
    losses = {n: [_loss(histograms[j][n][0], j, data) for j in range(q)] for n in totals}
    cuts: dict[int, dict[int, OneCut]] = {n: {} for n in totals}
    for n, total in totals.items():
        order = [j for j in range(q) if len(np.unique(histograms[j][n][0])) > 1]
        if not gain:
            order.sort(key=lambda j: -losses[n][j])  # stable, as the kernel's
        for j in order if total >= 2 * constraints.k else ():
            cut = _one_cut(histograms[j][n], j, data, constraints, gain)
            if cut is not None:
                cuts[n][j] = cut
                if not gain:
                    break
    if not gain:
        return _Level({n: next(iter(c.values())) for n, c in cuts.items() if c}, histograms)
    worth: dict[int, dict[int, float]] = {n: {} for n in totals}
    ordered = [i for i in range(q) if data.kind[i] == ORDERED]
    others = [i for i in range(q) if data.kind[i] != ORDERED]
    for j in range(q):
        sides = [(n, c[j].codes, np.where(c[j].left, 0, 1)) for n, c in cuts.items() if j in c]
        if not sides:
            continue
        held = {(line[NODE], line[SIDE]): line for line in rows.halves(j, _sides(sides), ordered, others).to_pylist()}
        for n, _, _ in sides:
            is_open = [i for i in range(q) if len(np.unique(histograms[i][n][0])) > 1]
            value = 0.0
            if len(is_open) > 1:
                whole = 0.0
                for i in is_open:
                    whole += losses[n][i]
                left_loss, right_loss = (_half_loss(held[n, side], is_open, data) for side in (0, 1))
                left, total = cuts[n][j].rows_left, totals[n]
                value = total * whole - (left * left_loss + (total - left) * right_loss)
            worth[n][j] = value
    best = {}
    for n, values in worth.items():
        most = -np.inf
        for j in sorted(values):
            if values[j] > most:
                most, best[n] = values[j], cuts[n][j]
    return _Level(best, histograms)


def _histograms(found: Any, j: int) -> dict[int, Histogram]:
    """The histogram of each node."""
    node, codes = found[NODE].to_numpy(), found[code(j)].to_numpy().astype(np.int32)
    secret, counts = found[SECRET_CODE].to_numpy().astype(np.int32), found[COUNT].to_numpy()
    order = np.lexsort((secret, codes, node))
    starts = np.flatnonzero(np.diff(node[order], prepend=-1))
    parts = np.split(order, starts[1:])
    return {int(node[p[0]]): (codes[p], secret[p], counts[p]) for p in parts if len(p)}


def _loss(codes: Ints, j: int, data: Attributes) -> float:
    """NCP of a node on one column, as the kernel counts it."""
    low, high = int(codes.min()), int(codes.max())
    if low == high:
        return 0.0
    if data.kind[j] == ORDERED:
        return _range_loss(low, high, j, data)
    return len(np.unique(codes)) / float(data.span[j])


def _range_loss(low: int, high: int, j: int, data: Attributes) -> float:
    if low >= high:
        return 0.0
    if high == data.missing[j]:
        return 1.0
    return float((data.positions[j, high] - data.positions[j, low]) / data.span[j])


def _half_loss(half: Mapping[str, int], is_open: Sequence[int], data: Attributes) -> float:
    """NCP of one half of a cut on all open columns."""
    loss = 0.0
    for i in is_open:
        if data.kind[i] == ORDERED:
            loss += _range_loss(half[f"low{i}"], half[f"high{i}"], i, data)
        else:
            kinds = half[f"kinds{i}"]
            loss += kinds / float(data.span[i]) if kinds > 1 else 0.0
    return loss


def _one_cut(histogram: Histogram, j: int, data: Attributes, constraints: CutConstraints, gain: bool) -> OneCut | None:
    """The kernel's cut of a node on one column, found on its histogram."""
    codes, secret, counts = histogram
    width, found = count_codes(data), make_trees(data)
    trees = None if found is None else Trees(found.tree_of[j : j + 1], found.ancestors, found.leaves, False)
    nodes = make_nodes(len(codes), int(counts.sum()), constraints.k)
    cell_of = np.zeros(len(codes), np.int32)
    n_nodes, _, members = grow_tree(
        codes[None, :].copy(),
        counts.copy(),
        make_facts(data)[:, j : j + 1].copy(),
        data.positions[j : j + 1].copy(),
        data.span[j : j + 1].copy(),
        constraints.k,
        gain,
        True,
        make_longs(width),
        make_ints(width),
        make_buckets(width),
        nodes,
        cell_of,
        trees,
        make_secrets(secret.copy(), constraints, width),
    )
    if n_nodes == 1:
        return None
    tree = tree_of_nodes(nodes[:n_nodes], members)
    tree.attribute[0] = j
    left = cell_of == 0
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return OneCut(j, tree, codes[first], left[first], int(counts[left].sum()))


def _finish_here(
    rows: CodedRows,
    nodes: Mapping[int, Grown],
    data: Attributes,
    constraints: CutConstraints,
    gain: bool,
    out: LevelCuts,
) -> None:
    """Cut nodes whose rows are few enough by the kernel, and keep their cells in the engine."""
    node, held, secret, counts = rows.take(list(nodes))
    codes: Ints = np.ascontiguousarray(held.astype(np.int32))
    part, cell = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
    for n, grown in nodes.items():
        mine = np.flatnonzero(node == n)
        found: Partition = partition(
            codes[mine], counts[mine], secret[mine].astype(np.int32), data, constraints, gain=gain
        )
        grown.below = found.tree
        _number(grown, tight_labels(codes[mine], found.cell_of, found.n_cells, data), out)
        cell[mine], part[mine] = found.cell_of + grown.first, grown.part
    rows.assign(held, part, cell)


def _finish_whole(
    rows: CodedRows,
    n: int,
    node: Grown,
    histograms: Sequence[Mapping[int, Histogram]],
    data: Attributes,
    out: LevelCuts,
) -> None:
    """A node that no column cuts is one cell, however many distinct rows it has."""
    held = [np.unique(h[n][0]) for h in histograms]
    longest = max(map(len, held))
    codes = np.column_stack([np.resize(h, longest) for h in held]).astype(np.int32)
    _number(node, tight_labels(codes, np.zeros(longest, np.int32), 1, data), out)
    rows.assign_node(n, node.part, node.first)


def _number(node: Grown, labels: TightLabels, out: LevelCuts) -> None:
    node.labels, node.first = labels, out.n_cells
    out.n_cells += len(labels.low)
    out.finished.append(node)


def _batches(nodes: Sequence[int], tuples: Mapping[int, int], limit: int) -> list[list[int]]:
    """Nodes that come out together."""
    batches: list[list[int]] = []
    room = 0
    for n in nodes:
        if not batches or room < tuples[n]:
            batches.append([])
            room = limit
        batches[-1].append(n)
        room -= tuples[n]
    return batches


def _sides(sides: Sequence[tuple[int, Ints, Ints]]) -> Any:
    import pyarrow as pa

    node = np.concatenate([np.full(len(codes), n, np.int64) for n, codes, _ in sides])
    codes = np.concatenate([codes for _, codes, _ in sides]).astype(np.int64)
    return pa.table({NODE: node, CODE: codes, SIDE: np.concatenate([side for _, _, side in sides]).astype(np.int64)})


def _lines(found: Any, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(found[n].to_pylist() for n in names)))


def check_levels(data: Attributes) -> None:
    """Cuts that name classes by groups of a hierarchy look at more than halves: they need all distinct rows."""
    if data.tree_loss and (data.tree_of >= 0).any():
        must = "enough for all distinct rows where hierarchies name the classes"
        raise bad_parameter("Table.scan", "memory", must, "less", "Give more (--memory), or use labels='tight'.")


def all_labels(cut: LevelCuts, order: Longs) -> TightLabels:
    """The labels of all cells; `order` holds the engine's number of each."""
    found = [n.labels for n in cut.finished if n.labels is not None]
    low, high, missing, members = (np.concatenate([f[i] for f in found])[order] for i in range(4))
    return TightLabels(low, high, missing, members, found[0].slot)


def put_together(root: Grown) -> tuple[Tree, Longs]:
    """The tree of a part, numbered as the kernel numbers it, and the engine's number of each of its cells."""
    nodes: list[list[int]] = []
    members: list[int] = []
    cells: list[int] = []
    nodes.append([])
    stack: list[tuple[int, Grown, int]] = [(0, root, 0)]
    while stack:
        at, grown, local = stack.pop()
        tree = grown.cut if grown.cut is not None else grown.below
        if tree is None or tree.cut[local] == CUT_LEAF:
            nodes[at] = [-1, CUT_LEAF, -1, 0, -1, -1, len(cells), 0, 0, 0]
            cells.append(grown.first + (0 if tree is None else int(tree.cell[local])))
            continue
        ends = [0, 0, 0]
        if tree.cut[local] == CUT_SET:
            a, b, c = (int(v[local]) for v in (tree.start, tree.middle, tree.stop))
            ends = [len(members), len(members) + b - a, len(members) + c - a]
            members += tree.members[a:c].tolist()
        low = len(nodes)
        facts = [int(v[local]) for v in (tree.attribute, tree.cut, tree.threshold, tree.level)]
        nodes[at] = [*facts, low, low + 1, -1, *ends]
        nodes += [[], []]
        if grown.cut is not None:
            assert grown.left is not None and grown.right is not None
            stack += [(low + 1, grown.right, 0), (low, grown.left, 0)]
        else:
            stack += [(low + 1, grown, int(tree.right[local])), (low, grown, int(tree.left[local]))]
    flat = np.array(nodes, np.int64)
    short = flat[:, :7].astype(np.int32).T.copy()
    start, middle, stop = flat[:, 7:].T.copy()
    attribute, kind, threshold, level, left, right, cell = short
    held = np.array(members, np.int32)
    whole = Tree(attribute, kind.astype(np.int8), threshold, level, left, right, cell, start, middle, stop, held)
    return whole, np.array(cells, np.int64)
