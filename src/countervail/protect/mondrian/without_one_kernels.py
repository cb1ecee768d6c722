"""Mondrian without each person in turn, in one go.

Taking one row away changes decisions on the row's own path only. At each node everybody who is on the path is asked
what would be done there without them; those with the same answer share the cut, made on all rows of the node, and are
asked again in its parts. A part that a person is not in is as it would be without them. All answers are the partition
kernels' own: people are asked together only where the kernels cannot tell them apart.

A node is its distinct rows and, alongside, which of them are asked. `trees` and `secrets` are None as they are for the
partition kernels, `basic` for all but basic Mondrian, and `strict` for that alone: the compiler leaves out what is only
done where something is there that is None, and not what is only done where it is not. Every function that reaches the
partition kernels is compiled with them once more, and once more for every literal that it is called with: hence few of
them, and np.int64 and np.bool_.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.protect.mondrian.basic_cuts import grow_basic
from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import CutConstraints, Flags, Floats, Ints, Longs, Whole, inner, kernel
from countervail.protect.mondrian.cuts import Secrets, Trees
from countervail.protect.mondrian.grow import ATTRIBUTE, KIND, MISSING, SIZE, grow_tree
from countervail.protect.mondrian.loss import climb, ordered_loss

# Nodes of so few rows are grown anew without each person.
_FEW: Final = 16


class Kinds(NamedTuple):
    """Distinct (row, sensitive value) pairs, how many people each stands for, and where its counts go in the output."""

    codes: Ints
    counts: Longs
    secret: Ints
    place: Ints


class Task(NamedTuple):
    """How rows are cut: what `grow_tree` takes of the attributes, and its scratch space."""

    facts: Ints
    positions: Floats
    span: Floats
    k: int
    n_secret: int
    gain: bool
    longs: Longs
    ints: Ints
    buckets: Longs | None


class Basic(NamedTuple):
    """How basic Mondrian cuts; `lows` and `highs` are scratch space for the ranges that parts take over."""

    data: Attributes
    rules: CutConstraints
    lows: Ints
    highs: Ints


class Leaves(NamedTuple):
    """What leaves say: ranges, sets (bits; of an ordered attribute only whether values are missing), and who is in."""

    low: Ints
    high: Ints
    words: NDArray[np.uint64]
    classes: Longs
    table: Longs
    groups: bool


def make_leaves(room: int, data: Attributes, n_secret: int, *, groups: bool) -> Leaves:
    """Room for leaves, and scratch space to sum them up by attribute, code and sensitive value."""
    q, widest = len(data.sizes), int(data.sizes[data.kind != ORDERED].max(initial=1))
    return Leaves(
        np.empty((room, q), np.int32),
        np.empty((room, q), np.int32),
        np.empty((room, q, widest // 64 + 1), np.uint64),
        np.empty((room, n_secret), np.int64),
        np.zeros((q, int(data.sizes.max()) + 1, n_secret), np.int64),
        groups,
    )


@inner
def _write_leaf(
    at: int, rows: Ints, skip: Whole, kinds: Kinds, facts: Ints, leaves: Leaves, trees: Trees | None
) -> None:
    """The leaf that these rows make, without one person of row number `skip` (-1: all are there)."""
    codes, counts, secret, words, classes = kinds.codes, kinds.counts, kinds.secret, leaves.words, leaves.classes
    one, none = np.uint64(1), np.uint64(0)
    for s in range(classes.shape[1]):
        classes[at, s] = 0
    for r in range(rows.shape[0]):
        classes[at, secret[rows[r]]] += counts[rows[r]] - (r == skip)
    for j in range(codes.shape[1]):
        for w in range(words.shape[2]):
            words[at, j, w] = none
        low, high, first, level, tree = 2**31 - 1, -1, -1, 0, -1
        if trees is not None and leaves.groups:
            tree = trees.tree_of[j]
        ordered, missing = facts[KIND, j] == ORDERED, facts[MISSING, j]
        for r in range(rows.shape[0]):
            if r == skip and counts[rows[r]] == 1:
                continue
            v = codes[rows[r], j]
            if ordered and v == missing:
                words[at, j, 0] = one
            elif ordered:
                low, high = min(low, v), max(high, v)
            elif trees is not None and tree >= 0:
                first, level = climb(v, first, level, tree, trees.ancestors)
            else:
                words[at, j, v >> 6] |= one << np.uint64(v & 63)
        leaves.low[at, j], leaves.high[at, j] = low, high
        if trees is not None and first >= 0:
            for v in range(facts[SIZE, j]):
                if trees.ancestors[tree, v, level] == trees.ancestors[tree, first, level]:
                    words[at, j, v >> 6] |= one << np.uint64(v & 63)


@inner
def _holds(at: int, j: int, v: int, facts: Ints, leaves: Leaves) -> bool:
    """Whether a leaf's range or set holds a code."""
    if facts[KIND, j] != ORDERED:
        return bool((leaves.words[at, j, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))
    if v == facts[MISSING, j]:
        return bool(leaves.words[at, j, 0])
    return bool(leaves.low[at, j] <= v <= leaves.high[at, j])


@inner
def _sum_up(start: int, stop: int, facts: Ints, leaves: Leaves) -> None:
    """The people of all leaves that hold a code, by sensitive value; ranges by their ends first."""
    table, classes = leaves.table, leaves.classes
    n_secret = classes.shape[1]
    for j in range(facts.shape[1]):
        size = facts[SIZE, j]
        for v in range(size + 1):
            for s in range(n_secret):
                table[j, v, s] = 0
        ordered = facts[KIND, j] == ORDERED
        for at in range(start, stop):
            low, high = leaves.low[at, j], leaves.high[at, j] + 1
            for s in range(n_secret):
                if ordered and high > 0:
                    table[j, low, s] += classes[at, s]
                    table[j, high, s] -= classes[at, s]
        for v in range(size):
            if ordered and v != facts[MISSING, j]:
                for s in range(n_secret if v > 0 else 0):
                    table[j, v, s] += table[j, v - 1, s]
                continue
            for s in range(n_secret):
                table[j, v, s] = 0
            for at in range(start, stop):
                if _holds(at, j, v, facts, leaves):
                    for s in range(n_secret):
                        table[j, v, s] += classes[at, s]


@kernel
def add_leaves(start: int, stop: int, who: Ints, kinds: Kinds, facts: Ints, leaves: Leaves, out: Ints) -> None:
    """Add to the counts of these rows the people of all leaves that hold their value, attribute by attribute."""
    codes, place, table, classes = kinds.codes, kinds.place, leaves.table, leaves.classes
    n_leaves, n_secret, sizes = stop - start, classes.shape[1], 0
    for j in range(facts.shape[1]):
        sizes += facts[SIZE, j]
    # A table pays once enough people ask it.
    summed = who.shape[0] * n_leaves > 4 * (n_leaves + sizes)
    if summed:
        _sum_up(start, stop, facts, leaves)
    for w in range(who.shape[0]):
        i = who[w]
        at_out = place[i]
        for j in range(codes.shape[1]):
            v = codes[i, j]
            if summed:
                for s in range(n_secret):
                    out[at_out, j, s] += table[j, v, s]
                continue
            for at in range(start, stop):
                if _holds(at, j, v, facts, leaves):
                    for s in range(n_secret):
                        out[at_out, j, s] += classes[at, s]


@inner
def _cut(
    rows: Ints,
    skip: Whole,
    once: Any,
    kinds: Kinds,
    task: Task,
    trees: Trees | None,
    secrets: Secrets | None,
    basic: Basic | None,
    strict: bool | None,
    side: Ints,
    tried: Flags,
) -> int:
    """Cut rows, once or all the way, without one person of row `skip`: the number of parts, and the part of each row.

    A row that goes with its only person is put to those of equal value, so that others can share the answer.
    """
    all_codes, all_counts, all_secret = kinds.codes, kinds.counts, kinds.secret
    m, q = rows.shape[0], all_codes.shape[1]
    gone = skip if skip >= 0 and all_counts[rows[skip]] == 1 else -1
    size = m - 1 if gone >= 0 else m
    counts, secret, part = np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    at = 0
    for r in range(m):
        if r != gone:
            counts[at], secret[at] = all_counts[rows[r]] - (r == skip), all_secret[rows[r]]
            at += 1
    n, j = 0, -1
    if basic is not None:
        codes = np.empty((size, q), np.int32)
        at = 0
        for r in range(m):
            if r != gone:
                for i in range(q):
                    codes[at, i] = all_codes[rows[r], i]
                at += 1
        n, tree = grow_basic(
            codes, counts, secret, basic.data, basic.rules, part, once, basic.lows, basic.highs, tried
        )  # fmt: skip
        j = tree.attribute[0]
    if strict is not None:
        columns = np.empty((q, size), np.int32)
        at, people = 0, 0
        for r in range(m):
            if r != gone:
                for i in range(q):
                    columns[i, at] = all_codes[rows[r], i]
                people += counts[at]
                at += 1
        nodes = np.full((3 if once else 2 * min(size, people // max(task.k, 1)) + 1, 10), -1, np.int64)
        found = secrets
        if secrets is not None:
            found = Secrets(secret, secrets.rules, secrets.offsets, secrets.grouped, secrets.classes, secrets.flow)
        _, n, _ = grow_tree(
            columns, counts, task.facts, task.positions, task.span, task.k, task.gain, once, task.longs, task.ints,
            task.buckets, nodes, part, trees, found,
        )  # fmt: skip
        j = nodes[0, ATTRIBUTE]
    at = 0
    for r in range(m):
        side[r] = 0
        if r != gone:
            side[r] = part[at]
            at += 1
    if gone >= 0 and once and n > 1:
        for r in range(m):
            if r != gone and all_codes[rows[r], j] == all_codes[rows[gone], j]:
                side[gone] = side[r]
                break
    return n


@inner
def _write_leaves(
    at: int,
    rows: Ints,
    skip: Whole,
    side: Ints,
    n: int,
    kinds: Kinds,
    facts: Ints,
    leaves: Leaves,
    trees: Trees | None,
) -> None:
    """All n leaves of rows that were cut all the way without one person of row `skip`, from `at` on."""
    m = rows.shape[0]
    if skip >= 0 and kinds.counts[rows[skip]] == 1:
        side[skip] = -1
    start, order = np.zeros(n + 2, np.int64), np.empty(m, np.int32)
    for r in range(m):
        start[side[r] + 2] += 1
    start[1] = 0
    for c in range(n):
        start[c + 2] += start[c + 1]
    left_out = 0
    for r in range(m):
        if side[r] >= 0:
            place = start[side[r] + 1]
            order[place] = rows[r]
            start[side[r] + 1] += 1
            if r == skip:
                left_out = place + 1
    for c in range(n):
        some = order[start[c] : start[c + 1]]
        _write_leaf(at + c, some, np.int64(left_out - 1 - start[c]), kinds, facts, leaves, trees)


@inner
def _pairs(rows: Ints, j: int, n_secret: int, kinds: Kinds, slot: Ints, pair: Ints) -> int:
    """Number the pairs of code and sensitive value (codes alone, if that is not looked at): how many there are."""
    codes, secret = kinds.codes, kinds.secret
    n = 0
    for again in range(2):
        for r in range(rows.shape[0]):
            key = codes[rows[r], j] * n_secret + (secret[rows[r]] if n_secret > 1 else 0)
            if again == 1:
                slot[key] = -1
                continue
            if slot[key] < 0:
                slot[key] = n
                n += 1
            pair[r] = slot[key]
    return n


@inner
def _extents(
    rows: Ints, side: Ints, codes: Ints, counts: Longs, task: Task, held: Longs, unsure: Flags, loss: Floats
) -> None:
    """What both halves of a cut lose; those who alone keep an extent as it is become `unsure`."""
    facts, span = task.facts, task.span
    low, high, distinct = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2, np.int64)
    for j in range(codes.shape[1]):
        for c in range(2):
            low[c], high[c], distinct[c] = 2**31, -1, 0
        ordered = facts[KIND, j] == ORDERED
        for r in range(rows.shape[0]):
            v, c = codes[rows[r], j], side[r]
            distinct[c] += held[c, v] == 0
            held[c, v] += counts[rows[r]]
            if v < low[c]:
                low[c] = v
            if v > high[c]:
                high[c] = v
        for r in range(rows.shape[0]):
            v, c = codes[rows[r], j], side[r]
            if held[c, v] == 1 and (not ordered or v == low[c] or v == high[c]):
                unsure[r] = True
        for r in range(rows.shape[0]):
            held[side[r], codes[rows[r], j]] = 0
        for c in range(2):
            if ordered:
                loss[c] += ordered_loss(low[c], high[c], facts[MISSING, j], task.positions, j, span[j])
            elif distinct[c] > 1:
                loss[c] += distinct[c] / span[j]


@inner
def _settle(cuts: Ints, n: int, first: int, gone: Whole) -> int:
    """The number of a cut that says the same as cut n, the last, but for a row that is gone; n if there is none."""
    for v in range(n):
        same = cuts[v, 0] == cuts[n, 0]
        a = 2
        while same and a < cuts.shape[1] and cuts[n, 0] > 1:
            same = cuts[v, a] == cuts[n, a] or a == first + gone
            a += 1
        if same:
            return v
    return n


@inner
def _compare(
    rows: Ints,
    asked: Flags,
    low: Ints,
    high: Ints,
    tried: Flags,
    kinds: Kinds,
    task: Task,
    trees: Trees | None,
    secrets: Secrets | None,
    basic: Basic | None,
    strict: bool | None,
    cuts: Ints,
    answer: Longs,
) -> int:
    """Answer those without whom every attribute is cut as before and every half keeps its extents; the number of cuts.

    The cut of one attribute depends on a person's value there and the sensitive one: those who share both are asked
    as one. Of the cuts that nobody changed, span takes the same as before, gain the one whose halves lose least.
    """
    gain, all_codes, all_counts = task.gain, kinds.codes, kinds.counts
    m, q, n_secret = rows.shape[0], all_codes.shape[1], task.n_secret
    first, widest, n_asked, n_all = cuts.shape[1] - m, 0, 0, 0
    for j in range(q):
        widest = max(widest, task.facts[SIZE, j])
    for r in range(m):
        n_asked += asked[r]
    pair, n_pairs = np.empty((q, m), np.int32), np.zeros(q, np.int64)
    slot = np.full(widest * n_secret, -1, np.int32)
    for j in range(q):
        if tried[j]:
            n_pairs[j] = _pairs(rows, j, n_secret, kinds, slot, pair[j])
        n_all += n_pairs[j]
    if n_all > n_asked:
        return 1
    n, number = int(np.int64(1)), np.full(q, -1, np.int64)
    unsure, losses, whole = np.zeros(m, np.bool_), np.zeros((q, 2)), np.zeros(q)
    held, anything = np.zeros((2, widest), np.int64), np.empty(q, np.bool_)
    for j in range(q):
        size = n_pairs[j]
        if size == 0:
            continue
        codes, counts, secret = np.zeros((size, q), np.int32), np.zeros(size, np.int64), np.zeros(size, np.int32)
        these = np.empty(size, np.int32)
        for r in range(m):
            p = pair[j, r]
            codes[p, j], secret[p] = all_codes[rows[r], j], kinds.secret[rows[r]]
            counts[p] += all_counts[rows[r]]
        for p in range(size):
            these[p] = p
        alike = Kinds(codes, counts, secret, secret)
        lines = np.zeros((2, 5 + size), np.int32)  # with everybody, and without one
        changed = np.zeros(size, np.bool_)
        for p in range(-1, size):
            line = lines[0 if p < 0 else 1]
            if basic is not None:
                for i in range(q):
                    basic.lows[0, i], basic.highs[0, i] = 0, 0
                basic.lows[0, j], basic.highs[0, j] = low[j], high[j]
            parts = _cut(these, p, np.bool_(True), alike, task, trees, secrets, basic, strict, line[5:], anything)
            line[0] = parts
            if basic is not None:
                line[1], line[2] = basic.lows[0, j], basic.highs[0, j]
                line[3], line[4] = basic.lows[parts - 1, j], basic.highs[parts - 1, j]
            for a in range(5 + size if p >= 0 else 0):
                if lines[0, a] != line[a] and (a != 5 + p or counts[p] > 1):
                    changed[p] = True
        for r in range(m):
            if changed[pair[j, r]]:
                unsure[r] = True
        if gain and lines[0, 0] > 1:
            cuts[n, 0] = 2
            for r in range(m):
                cuts[n, first + r] = lines[0, 5 + pair[j, r]]
            _extents(rows, cuts[n, first:], all_codes, all_counts, task, held, unsure, losses[j])
            for r in range(m):
                whole[j] += all_counts[rows[r]] * losses[j, cuts[n, first + r]]
            number[j] = _settle(cuts, n, first, -first)
            n = max(n, number[j] + 1)
    if strict is not None and not gain:
        _extents(rows, np.zeros(m, np.int32), all_codes, all_counts, task, held, unsure, losses[0])
    for r in range(m):
        best, least, second = 0, np.inf, np.inf
        for j in range(q):
            if number[j] >= 0:
                loss = whole[j] - losses[j, cuts[number[j], first + r]]
                if loss < least:
                    best, least, second = number[j], loss, least
                elif number[j] != best and loss < second:
                    second = loss
        # Nearly equal losses are left to the kernel, which sums them up in another order.
        if not unsure[r] and (n == 1 or second - least > 1e-9 * (1.0 + least)):
            answer[r] = best
    return n


@inner
def _ask(
    rows: Ints,
    asked: Flags,
    low: Ints,
    high: Ints,
    kinds: Kinds,
    task: Task,
    trees: Trees | None,
    secrets: Secrets | None,
    basic: Basic | None,
    strict: bool | None,
    answer: Longs,
) -> Ints:
    """What is done with a node, and would be without each person: `answer` gets a number of the cuts returned.

    Cut 0 is that with everybody. A cut is the number of its parts (1: a leaf), who asked for it, the ranges that the
    first and the last part take over (basic Mondrian), and the part of each row.
    """
    k, counts = task.k, kinds.counts
    m, q, width = rows.shape[0], kinds.codes.shape[1], low.shape[0]
    first, total, n = 2 + 4 * width, 0, int(np.int64(0))
    cuts = np.ones((q + 3, first + m), np.int32)
    tried = np.ones(q, np.bool_)
    for r in range(m):
        total += counts[rows[r]]
    if total < 2 * k:
        return cuts[:1]
    # Under hierarchies that name the classes, gain weighs several cuts of one attribute: ask for everybody.
    each = False
    if trees is not None:
        each = task.gain and trees.names_classes
    for r in range(-1, m):
        if r >= 0 and (not asked[r] or answer[r] >= 0):
            continue
        if n == cuts.shape[0]:
            more = np.ones((2 * n, cuts.shape[1]), np.int32)
            for v in range(n):
                for a in range(cuts.shape[1]):
                    more[v, a] = cuts[v, a]
            cuts = more
        if basic is not None:
            for j in range(q):
                basic.lows[0, j], basic.highs[0, j], tried[j] = low[j], high[j], False
        parts = _cut(rows, r, np.bool_(True), kinds, task, trees, secrets, basic, strict, cuts[n, first:], tried)
        cuts[n, 0], cuts[n, 1] = parts, r
        if basic is not None:
            for j in range(width):
                cuts[n, 2 + j], cuts[n, 2 + width + j] = basic.lows[0, j], basic.lows[parts - 1, j]
                cuts[n, 2 + 2 * width + j] = basic.highs[0, j]
                cuts[n, 2 + 3 * width + j] = basic.highs[parts - 1, j]
        gone = r if r >= 0 and counts[rows[r]] == 1 else -first
        v = _settle(cuts, n, first, gone)
        n = max(n, v + 1)
        if r >= 0:
            answer[r] = v
            continue
        if total - 1 < 2 * k:
            # Nothing is cut without one of them.
            cuts[1, 0] = 1
            for i in range(m):
                answer[i] = 1 if cuts[0, 0] > 1 else 0
            return cuts[:2]
        for i in range(m):
            answer[i] = -1
        if not each:
            n = _compare(rows, asked, low, high, tried, kinds, task, trees, secrets, basic, strict, cuts, answer)
    return cuts[:n]


@kernel
def explore(
    at: int,
    rows: Ints,
    asked: Flags,
    low: Ints,
    high: Ints,
    kinds: Kinds,
    task: Task,
    trees: Trees | None,
    secrets: Secrets | None,
    basic: Basic | None,
    strict: bool | None,
    leaves: Leaves,
    out: Ints,
) -> int:
    """Write the leaves of a node down from `at` on, and count for each person asked those that would be without them.

    Returns where the leaves end. `low` and `high` are the ranges that a node of basic Mondrian takes over.
    """
    m, q, width, facts = rows.shape[0], kinds.codes.shape[1], low.shape[0], task.facts
    answer = np.zeros(m, np.int64)
    cuts, again, tried = np.ones((1, m), np.int32), np.empty(m, np.int32), np.empty(q, np.bool_)
    mine, some, few = np.empty(m, np.int64), np.empty(m, np.int32), True
    for r in range(m if m > _FEW else 0):
        if asked[r]:
            few = False
    if not few:
        cuts = _ask(rows, asked, low, high, kinds, task, trees, secrets, basic, strict, answer)
    # Others first: leaves that are written down are never more than rows, and these are not needed for long.
    for v in range(cuts.shape[0] - 1, -1, -1):
        n_parts, n_mine, end = cuts[v, 0], 0, at
        for r in range(m):
            if asked[r] and answer[r] == v:
                mine[n_mine] = r
                n_mine += 1
        if few or n_parts == 1 or (v > 0 and n_mine == 1):
            for i in range(n_mine + (v == 0)):
                r = int(mine[i]) if i < n_mine else -1
                end = at + 1
                if n_parts == 1 and not few:
                    _write_leaf(at, rows, r, kinds, facts, leaves, trees)
                else:
                    if basic is not None:
                        for j in range(q):
                            basic.lows[0, j], basic.highs[0, j] = low[j], high[j]
                    end = at + _cut(rows, r, np.bool_(False), kinds, task, trees, secrets, basic, strict, again, tried)
                    _write_leaves(at, rows, r, again, end - at, kinds, facts, leaves, trees)
                if r >= 0:
                    add_leaves(at, end, rows[r : r + 1], kinds, facts, leaves, out)
            if v == 0:
                at = end
            continue
        first = cuts.shape[1] - m
        below, above = np.empty((n_parts, width), np.int32), np.empty((n_parts, width), np.int32)
        if basic is not None:
            for j in range(q):
                basic.lows[0, j], basic.highs[0, j] = low[j], high[j]
            _cut(rows, np.int64(cuts[v, 1]), np.bool_(True), kinds, task, trees, secrets, basic, strict, again, tried)
            for c in range(n_parts):
                for j in range(q):
                    below[c, j], above[c, j] = basic.lows[c, j], basic.highs[c, j]
        for c in range(n_parts):
            n_inside, n_others = 0, 0
            for r in range(m):
                n_inside += cuts[v, first + r] == c
            inside, theirs = np.empty(n_inside, np.int32), np.empty(n_inside, np.bool_)
            n_inside = 0
            for r in range(m):
                if cuts[v, first + r] == c:
                    inside[n_inside], theirs[n_inside] = rows[r], asked[r] and answer[r] == v
                    n_inside += 1
            for i in range(n_mine):
                if cuts[v, first + mine[i]] != c:
                    some[n_others] = rows[mine[i]]
                    n_others += 1
            end = explore(
                at, inside, theirs, below[c], above[c], kinds, task, trees, secrets, basic, strict, leaves, out
            )
            add_leaves(at, end, some[:n_others], kinds, facts, leaves, out)
            if v == 0:
                at = end
    return at
