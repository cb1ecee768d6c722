"""One node of basic Mondrian, asked again and again: what would be done here if one of its rows were missing?

The counts of the whole node are made once, when an attribute is first tried. What changes without a row follows from
them in a few steps, so that asking for every row costs little more than asking once.
"""

from typing import Final, NamedTuple

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import FITS, CutConstraints, Flags, Floats, Ints, Longs, fits, kernel
from countervail.protect.mondrian.loss import relative_width

LEAF: Final = -1


class People(NamedTuple):
    """The distinct rows: codes, how often each occurs, the sensitive value; and the rules of a cut."""

    codes: Ints
    counts: Longs
    secret: Ints
    data: Attributes
    k: int
    least: int  # fewer rows than this cannot be cut, whoever is missing
    diverse: bool
    loose: CutConstraints  # l without the size


class Node(NamedTuple):
    """Scratch: what is known of the current node; all counts are zero between nodes.

    Groups of a categorical attribute have a line per level: line j * levels + level.
    """

    hist: Longs  # attribute x code
    joint: Longs  # attribute x code x sensitive value
    counted: Flags
    low: Ints  # ordered attributes: of the whole node
    high: Ints
    median: Ints  # -1: not counted yet
    upto: Longs  # rows up to the median
    left: Longs  # attribute x sensitive value, up to the median
    group: Longs  # line x group
    joint_group: Longs  # line x group x sensitive value
    member: Ints  # line x place: the groups that occur
    example: Ints  # line x group: a code in it
    n_groups: Ints  # 0: not counted yet
    n_small: Ints
    n_mixed: Ints  # groups that break l
    classes: Longs
    side: Longs
    other: Longs
    scratch: Longs
    flow: Floats
    width: Floats
    first_width: Floats
    closed: Flags
    found: Ints  # answer x (attribute or LEAF, threshold or level, next value)
    lows: Ints  # answer x attribute: widths passed on
    highs: Ints


def make_node(n: int, q: int, n_codes: int, n_levels: int, n_secret: int, diverse: bool) -> Node:
    """Scratch for a table of this shape."""
    depth, wide, lines = (n_secret, n_codes, q * n_levels) if diverse else (1, 1, 1)
    return Node(
        hist=np.zeros((q, n_codes), np.int64),
        joint=np.zeros((q, wide, depth), np.int64),
        counted=np.zeros(q, np.bool_),
        low=np.zeros(q, np.int32),
        high=np.zeros(q, np.int32),
        median=np.full(q, -1, np.int32),
        upto=np.zeros(q, np.int64),
        left=np.zeros((q, depth), np.int64),
        group=np.zeros((q * n_levels, n_codes), np.int64),
        joint_group=np.zeros((lines, wide, depth), np.int64),
        member=np.zeros((q * n_levels, n_codes), np.int32),
        example=np.zeros((q * n_levels, n_codes), np.int32),
        n_groups=np.zeros(q * n_levels, np.int32),
        n_small=np.zeros(q * n_levels, np.int32),
        n_mixed=np.zeros(q * n_levels, np.int32),
        classes=np.zeros(n_secret, np.int64),
        side=np.zeros(n_secret, np.int64),
        other=np.zeros(n_secret, np.int64),
        scratch=np.zeros(n_secret, np.int64),
        flow=np.zeros(n_secret, np.float64),
        width=np.zeros(q, np.float64),
        first_width=np.zeros(q, np.float64),
        closed=np.zeros(q, np.bool_),
        found=np.zeros((n + 1, 3), np.int32),
        lows=np.zeros((n + 1, q), np.int32),
        highs=np.zeros((n + 1, q), np.int32),
    )


@kernel
def group_of(code: int, level: int, tree: int, ancestors: Ints) -> int:
    """The group above a code; level 0 is the code itself."""
    return int(ancestors[tree, code, level]) if level > 0 else int(code)


@kernel
def count_codes(j: int, rows: Ints, people: People, node: Node) -> None:
    """Count the codes of an attribute, once per node."""
    if node.counted[j]:
        return
    node.counted[j] = True
    codes, counts, hist = people.codes, people.counts, node.hist
    for r in rows:
        hist[j, codes[r, j]] += counts[r]
    if people.diverse:
        secret, joint = people.secret, node.joint
        for r in rows:
            joint[j, codes[r, j], secret[r]] += counts[r]


@kernel
def _count_ordered(j: int, rows: Ints, total: int, people: People, node: Node) -> None:
    """Ends and median of the whole node."""
    count_codes(j, rows, people, node)
    codes, hist, joint = people.codes, node.hist, node.joint
    low, high = codes[rows[0], j], codes[rows[0], j]
    for r in rows:
        low, high = min(low, codes[r, j]), max(high, codes[r, j])
    node.low[j], node.high[j] = low, high
    at, upto = low, hist[j, low]
    while upto < total // 2:
        at += 1
        upto += hist[j, at]
    node.median[j], node.upto[j] = at, upto
    if people.diverse:
        node.left[j] = 0
        for v in range(low, at + 1):
            if hist[j, v] > 0:
                for s in range(node.left.shape[1]):
                    node.left[j, s] += joint[j, v, s]


@kernel
def count_groups(j: int, level: int, line: int, rows: Ints, people: People, node: Node) -> None:
    """Count the groups of a categorical attribute at a level, once per node."""
    if node.n_groups[line] > 0:
        return
    codes, counts, secret, group, m = people.codes, people.counts, people.secret, node.group, 0
    tree, ancestors = people.data.tree_of[j], people.data.ancestors
    for r in rows:
        code = codes[r, j]
        g = group_of(code, level, tree, ancestors)
        if group[line, g] == 0:
            node.member[line, m], node.example[line, g] = g, code
            m += 1
        group[line, g] += counts[r]
        if people.diverse:
            node.joint_group[line, g, secret[r]] += counts[r]
    node.n_groups[line], node.n_small[line], node.n_mixed[line] = m, 0, 0
    for place in range(m):
        g = node.member[line, place]
        node.n_small[line] += group[line, g] < people.k
        if people.diverse and not _fits(node.joint_group[line, g], group[line, g], people, node):
            node.n_mixed[line] += 1


@kernel
def forget(rows: Ints, people: People, node: Node) -> None:
    """Leave the node: all counts back to zero."""
    codes, hist, joint, group = people.codes, node.hist, node.joint, node.group
    for j in range(codes.shape[1]):
        if node.counted[j]:
            for r in rows:
                if people.diverse:
                    joint[j, codes[r, j], people.secret[r]] = 0
                hist[j, codes[r, j]] = 0
            node.counted[j] = False
        node.median[j] = -1
    for line in range(node.n_groups.shape[0]):
        for place in range(node.n_groups[line]):
            g = node.member[line, place]
            group[line, g] = 0
            if people.diverse:
                node.joint_group[line, g] = 0
        node.n_groups[line] = 0


@kernel
def _fits(classes: Longs, total: int, people: People, node: Node) -> bool:
    return fits(classes, total, people.loose, node.scratch, node.flow) == FITS


@kernel
def _halves_fit(j: int, threshold: int, left: int, total: int, i: int, people: People, node: Node) -> bool:
    """Whether both halves of an ordered cut keep l."""
    side, other, joint, median = node.side, node.other, node.joint, node.median[j]
    for s in range(side.shape[0]):
        side[s] = node.left[j, s]
    for v in range(median + 1, threshold + 1):
        for s in range(side.shape[0]):
            side[s] += joint[j, v, s]
    for v in range(threshold + 1, median + 1):
        for s in range(side.shape[0]):
            side[s] -= joint[j, v, s]
    for s in range(side.shape[0]):
        other[s] = node.classes[s] - side[s]
    if i >= 0:
        if people.codes[i, j] <= threshold:
            side[people.secret[i]] -= 1
        else:
            other[people.secret[i]] -= 1
    return _fits(side, left, people, node) and _fits(other, total - left, people, node)


@kernel
def _mixed_without(line: int, g: int, held: int, i: int, people: People, node: Node) -> int:
    """Groups that break l without row i, who is in group g."""
    classes, s = node.joint_group[line, g], people.secret[i]
    mixed = int(node.n_mixed[line]) - int(not _fits(classes, held, people, node))
    if held > 1:
        classes[s] -= 1
        mixed += int(not _fits(classes, held - 1, people, node))
        classes[s] += 1
    return mixed


@kernel
def _all_alike(rows: Ints, codes: Ints) -> bool:
    """Whether no attribute tells these rows apart."""
    first = rows[0]
    for r in rows:
        for j in range(codes.shape[1]):
            if codes[r, j] != codes[first, j]:
                return False
    return True


@kernel
def decide_each(rows: Ints, total: int, who: Ints, people: People, node: Node, low: Ints, high: Ints) -> None:
    """What basic Mondrian does with these rows (answer 0), and what without each of `who` (answers 1, 2, ...).

    `low` and `high` are the widths that the node inherits; those it passes on are part of the answers. All in one
    loop nest: a call per person would cost more than the answer.
    """
    q, k, diverse, data = people.codes.shape[1], people.k, people.diverse, people.data
    codes, kind, tree_of, ancestors = people.codes, data.kind, data.tree_of, data.ancestors
    levels = node.n_groups.shape[0] // q
    hist, median, upto, group, n_groups = node.hist, node.median, node.upto, node.group, node.n_groups
    width, closed, first_width = node.width, node.closed, node.first_width
    found, lows, highs = node.found, node.lows, node.highs
    if _all_alike(rows, codes):
        for a in range(who.shape[0] + 1):
            found[a, 0], found[a, 1], found[a, 2] = LEAF, 0, 0
        return
    for j in range(q):
        first_width[j] = relative_width(j, low[j], high[j], data)
    for a in range(who.shape[0] + 1):
        i = np.int64(who[a - 1]) if a > 0 else np.int64(-1)
        rest = total - 1 if a > 0 else total
        found[a, 0], found[a, 1], found[a, 2] = LEAF, 0, 0
        if rest < people.least:
            continue
        for j in range(q):
            lows[a, j], highs[a, j], width[j], closed[j] = low[j], high[j], first_width[j], False
        while found[a, 0] == LEAF:
            j, widest = np.int64(-1), -1.0
            for b in range(q):
                if not closed[b] and width[b] > widest:
                    j, widest = b, width[b]
            if j < 0:
                break
            closed[j] = True
            v = np.int64(codes[i, j]) if a > 0 else np.int64(-1)
            if kind[j] == ORDERED:
                if median[j] < 0:
                    _count_ordered(j, rows, total, people, node)
                least, most, half = node.low[j], node.high[j], rest // 2
                if v >= 0:
                    hist[j, v] -= 1
                    while hist[j, least] == 0:
                        least += 1
                    while hist[j, most] == 0:
                        most -= 1
                if half >= k and least < most:
                    at, left = median[j], upto[j]
                    if 0 <= v <= at:
                        left -= 1
                    # The median of the whole node is one value away at most.
                    while left < half:
                        at += 1
                        left += hist[j, at]
                    while left - hist[j, at] >= half:
                        left -= hist[j, at]
                        at -= 1
                    if at < most and (not diverse or _halves_fit(j, at, left, rest, i, people, node)):
                        above = at + 1
                        while hist[j, above] == 0:
                            above += 1
                        found[a, 0], found[a, 1], found[a, 2] = j, at, above
                if v >= 0:
                    hist[j, v] += 1
                lows[a, j], highs[a, j] = least, most
            elif highs[a, j] > 0:
                level = highs[a, j] - 1
                line = j * levels + level
                if n_groups[line] == 0:
                    count_groups(j, level, line, rows, people, node)
                m, small, mixed, g = n_groups[line], node.n_small[line], node.n_mixed[line], np.int64(-1)
                if v >= 0:
                    g = group_of(v, level, tree_of[j], ancestors)
                    held = group[line, g]
                    if held == 1:
                        m -= 1
                    small += int(1 < held <= k) - int(held < k)
                    if diverse:
                        mixed = _mixed_without(line, g, held, i, people, node)
                if m == 1:
                    # The same rows under a narrower name, which may no longer be the widest.
                    other = node.member[line, 0]
                    if other == g and n_groups[line] > 1:
                        other = node.member[line, 1]
                    lows[a, j], highs[a, j] = node.example[line, other], level
                    closed[j] = level == 0
                    width[j] = relative_width(j, lows[a, j], level, data)
                elif small == 0 and mixed == 0:
                    found[a, 0], found[a, 1] = j, level


@kernel
def same_answer(low: Ints, high: Ints, low2: Ints, high2: Ints, data: Attributes) -> bool:
    """Whether two answers pass the same widths on; of a hierarchy's node any code below it will do."""
    for j in range(low.shape[0]):
        if high[j] != high2[j]:
            return False
        if data.kind[j] == ORDERED:
            if low[j] != low2[j]:
                return False
        elif data.tree_of[j] >= 0:
            tree, level = data.tree_of[j], high[j]
            if group_of(low[j], level, tree, data.ancestors) != group_of(low2[j], level, tree, data.ancestors):
                return False
    return True
