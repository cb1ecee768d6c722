"""Basic Mondrian without each person in turn, in one go.

Taking one row away changes decisions on the row's own path only. So the tree of all rows is grown once, and at each
node everybody who is still on the unchanged path is asked what would be done there without them. Who leaves the path
is put into a *variant*: the changed cut, made on all rows of the node and shared by everyone who causes it. A variant's
halves are grown and asked in the same way. Every tree holds the people it is grown for, so that what they take away is
always one leaf; all other leaves are as they would be without them.

Numbers that a loop carries start as np.int64: from a literal, the compiler would make every function it reaches twice.
Rows are copied by loops for the same reason: an assignment of slices brings the code of its error message along.
"""

import numpy as np

from countervail.protect.mondrian.columns import ORDERED
from countervail.protect.mondrian.constraints import Ints, kernel
from countervail.protect.mondrian.without_one_leaves import Leaves, add_leaf, add_leaves, add_own
from countervail.protect.mondrian.without_one_node import (
    LEAF,
    Node,
    People,
    count_groups,
    decide_each,
    forget,
    group_of,
    same_answer,
)
from countervail.protect.mondrian.without_one_stacks import Variants, Walk, longer, push, with_room


@kernel
def _variant(first: int, n: int, a: int, people: People, node: Node, variants: Variants) -> int:
    """The variant of this node that answer a asks for; a new one (number n) if there is none."""
    found, low, high = node.found[a], node.lows[a], node.highs[a]
    for v in range(first, n):
        if (
            variants.attribute[v] == found[0]
            and variants.cut[v] == found[1]
            and variants.above[v] == found[2]
            and same_answer(variants.low[v], variants.high[v], low, high, people.data)
        ):
            return v
    variants.attribute[n], variants.cut[n], variants.above[n] = found[0], found[1], found[2]
    for j in range(low.shape[0]):
        variants.low[n, j], variants.high[n, j] = low[j], high[j]
    variants.first[n], variants.last[n] = 0, 0
    return n


@kernel
def _unchanged(a: int, people: People, node: Node) -> bool:
    """Whether answer a is that of the whole node; what a leaf would pass on does not matter."""
    found = node.found
    if found[a, 0] != found[0, 0] or found[a, 1] != found[0, 1] or found[a, 2] != found[0, 2]:
        return False
    return found[0, 0] == LEAF or same_answer(node.lows[a], node.highs[a], node.lows[0], node.highs[0], people.data)


@kernel
def _sort_out(
    rows: Ints, start: int, stop: int, watch: int, until: int, total: int, people: People, node: Node, walk: Walk,
    variants: Variants, n: int, flock: Ints, flock_top: int, top: int, leaves: Leaves, place: Ints, out: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Who stays on the path (watched[watch:kept]), and in which variants the others go on; (kept, variants, flock)."""
    members, first, kept, gone, leaf = rows[start:stop], n, watch, np.int64(0), node.found[0, 0] == LEAF
    for a in range(watch, until):
        i, answer = walk.watched[a], a - watch + 1
        same = total < people.least or _unchanged(answer, people, node)
        if same and leaf:
            add_own(i, np.int64(-1), members, people, node, leaves.group_labels, place, out)
        elif same:
            walk.watched[kept] = i
            kept += 1
        else:
            flock[flock_top + gone] = i
            walk.which[gone] = -1
            if node.found[answer, 0] == LEAF:
                add_own(i, np.int64(1), members, people, node, leaves.group_labels, place, out)
            else:
                v = _variant(first, n, answer, people, node, variants)
                n = max(n, v + 1)
                variants.last[v] += 1
                walk.which[gone] = v
            gone += 1
    end = flock_top + gone
    # Behind the list of all who left, the same people by variant.
    for v in range(first, n):
        variants.start[v], variants.stop[v], variants.top[v], variants.done[v] = start, stop, top, -1
        variants.first[v], end = end, end + variants.last[v]
        variants.last[v] = variants.first[v]
    for g in range(gone):
        v = walk.which[g]
        if v >= 0:
            flock[variants.last[v]] = flock[flock_top + g]
            variants.last[v] += 1
    return kept, n, end


@kernel
def _part(codes: Ints, column: int, rows: Ints, start: int, stop: int, threshold: int, moved: Ints) -> int:
    """Stable partition of rows[start:stop] at a threshold; where the right half begins."""
    left, right = start, 0
    for r in range(start, stop):
        row = rows[r]
        if codes[row, column] <= threshold:
            rows[left] = row
            left += 1
        else:
            moved[right] = row
            right += 1
    for r in range(right):
        rows[left + r] = moved[r]
    return left


@kernel
def _gather(people: People, j: int, level: int, group: int, rows: Ints, start: int, stop: int, moved: Ints) -> int:
    """Move the rows of one group to the front of rows[start:stop]; where the others begin."""
    codes, tree, ancestors = people.codes, people.data.tree_of[j], people.data.ancestors
    left, right = start, 0
    for r in range(start, stop):
        row = rows[r]
        if group_of(codes[row, j], level, tree, ancestors) == group:
            rows[left] = row
            left += 1
        else:
            moved[right] = row
            right += 1
    for r in range(right):
        rows[left + r] = moved[r]
    return left


@kernel
def _descend(
    rows: Ints, start: int, stop: int, watch: int, kept: int, people: People, node: Node, walk: Walk, depth: int
) -> int:
    """Cut a node, and those who are still on the path, as answer 0 says."""
    j, cut = np.int64(node.found[0, 0]), np.int64(node.found[0, 1])
    low, high = node.lows[0], node.highs[0]
    if people.data.kind[j] == ORDERED:
        middle = _part(people.codes, j, rows, start, stop, cut, walk.moved)
        split = _part(people.codes, j, walk.watched, watch, kept, cut, walk.moved)
        least, low[j] = low[j], node.found[0, 2]
        depth = push(walk, depth, middle, stop, split, kept, low, high)
        low[j], high[j] = least, cut
        return push(walk, depth, start, middle, watch, split, low, high)
    high[j] = cut
    line = j * (node.n_groups.shape[0] // low.shape[0]) + cut
    count_groups(j, cut, line, rows[start:stop], people, node)
    for place in range(node.n_groups[line]):
        g = node.member[line, place]
        middle = _gather(people, j, cut, g, rows, start, stop, walk.moved)
        split = _gather(people, j, cut, g, walk.watched, watch, kept, walk.moved)
        low[j] = people.codes[rows[start], j]
        depth = push(walk, depth, start, middle, watch, split, low, high)
        start, watch = middle, split
    return depth


@kernel
def _grow(
    rows: Ints, begin: int, end: int, n_watched: int, low: Ints, high: Ints, people: People, node: Node, walk: Walk,
    leaves: Leaves, variants: Variants, n: int, flock: Ints, flock_top: int, place: Ints, out: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Grow the tree of rows[begin:end] and ask walk.watched[:n_watched]; (leaves, variants, end of the flock)."""
    n_leaves = np.int64(0)
    left_path = np.empty(8, np.int64)  # where those who left the path at marked nodes are listed
    marked = 0
    depth = push(walk, np.int64(0), begin, end, np.int64(0), n_watched, low, high)
    while depth > 0:
        depth -= 1
        start, stop, watch, until = walk.start[depth], walk.stop[depth], walk.watch[depth], walk.until[depth]
        if walk.leaf[depth] >= 0:
            marked -= 1
            who = flock[left_path[2 * marked] : left_path[2 * marked + 1]]
            add_leaves(walk.leaf[depth], n_leaves, who, np.int64(-1), people, leaves, place, out)
            continue
        members, total = rows[start:stop], np.int64(0)
        node.classes[:] = 0
        for r in members:
            total += people.counts[r]
            node.classes[people.secret[r]] += people.counts[r]
        if total < people.least:
            node.found[0, 0] = LEAF
        else:
            asked = walk.watched[watch:until]
            decide_each(members, total, asked, people, node, walk.low[depth], walk.high[depth])
        before = flock_top
        kept, grown, flock_top = _sort_out(
            rows, start, stop, watch, until, total, people, node, walk, variants, n, flock, flock_top, end, leaves,
            place, out,
        )  # fmt: skip
        if flock_top > before:
            # Those who left are listed once, and once more by variant unless they made a leaf of the node.
            listed = flock_top - before
            for v in range(n, grown):
                listed -= variants.last[v] - variants.first[v]
            walk.leaf[depth] = n_leaves
            depth += 1
            if 2 * marked + 2 > left_path.shape[0]:
                left_path = longer(left_path, 2 * left_path.shape[0])
            left_path[2 * marked], left_path[2 * marked + 1] = before, before + listed
            marked += 1
        n = grown
        if node.found[0, 0] == LEAF:
            add_leaf(n_leaves, members, people, leaves)
            n_leaves += 1
        else:
            depth = _descend(rows, start, stop, watch, kept, people, node, walk, depth)
        forget(members, people, node)
    return n_leaves, n, flock_top


@kernel
def _side(i: int, j: int, cut: int, people: People) -> int:
    """Which half (0, 1) or group of a cut a row belongs to."""
    if people.data.kind[j] == ORDERED:
        return int(people.codes[i, j] > cut)
    return group_of(people.codes[i, j], cut, people.data.tree_of[j], people.data.ancestors)


@kernel
def _next_side(v: int, rows: Ints, people: People, variants: Variants) -> tuple[int, int]:
    """The half or group of a variant that comes next, and how many rows it has; (-1, 0) after the last."""
    j, cut, best, size = variants.attribute[v], variants.cut[v], -1, 0
    for r in range(variants.start[v], variants.stop[v]):
        side = _side(rows[r], j, cut, people)
        if side > variants.done[v]:
            if best < 0 or side < best:
                best, size = side, 0
            size += side == best
    return best, size


@kernel
def _take_side(
    v: int, side: int, rows: Ints, flock: Ints, people: People, variants: Variants, walk: Walk, low: Ints, high: Ints
) -> int:
    """Copy the rows of a half to the free end of the arena, its people to walk.watched; how many of them there are."""
    j, cut, at = variants.attribute[v], variants.cut[v], variants.top[v]
    for r in range(variants.start[v], variants.stop[v]):
        if _side(rows[r], j, cut, people) == side:
            rows[at] = rows[r]
            at += 1
    watched = 0
    for g in range(variants.first[v], variants.last[v]):
        if _side(flock[g], j, cut, people) == side:
            walk.watched[watched] = flock[g]
            watched += 1
    for a in range(low.shape[0]):
        low[a], high[a] = variants.low[v, a], variants.high[v, a]
    if people.data.kind[j] != ORDERED:
        low[j], high[j] = people.codes[rows[variants.top[v]], j], cut
    elif side == 0:
        high[j] = cut
    else:
        low[j] = variants.above[v]
    return watched


@kernel
def sweep(
    who: Ints, low: Ints, high: Ints, people: People, node: Node, walk: Walk, leaves: Leaves, variants: Variants,
    place: Ints, with_her: Ints, without_her: Ints,
) -> None:  # fmt: skip
    """For each row of `who`: how many released rows agree with it, by attribute and sensitive value."""
    rows = np.arange(people.codes.shape[0]).astype(np.int32)
    end, zero, plus = np.int64(rows.shape[0]), np.int64(0), np.int64(1)
    for a in range(who.shape[0]):
        walk.watched[a] = who[a]
    flock = np.empty(2 * who.shape[0], np.int32)
    variants = with_room(variants, who.shape[0])
    n_leaves, n, _ = _grow(
        rows,
        zero,
        end,
        who.shape[0],
        low,
        high,
        people,
        node,
        walk,
        leaves,
        variants,
        zero,
        flock,
        zero,
        place,
        without_her,
    )
    add_leaves(zero, n_leaves, who, plus, people, leaves, place, with_her)
    for i in who:
        for j in range(with_her.shape[1]):
            for s in range(with_her.shape[2]):
                without_her[place[i], j, s] += with_her[place[i], j, s]
    while n > 0:
        v = n - 1
        side, size = _next_side(v, rows, people, variants)
        if side < 0:
            n -= 1
            continue
        variants.done[v] = side
        top, free = variants.top[v], variants.last[v]
        if top + size > rows.shape[0]:
            rows = longer(rows, 2 * (top + size))
        watched = _take_side(v, side, rows, flock, people, variants, walk, low, high)
        if free + 2 * watched > flock.shape[0]:
            flock = longer(flock, 2 * (free + 2 * watched))
        variants = with_room(variants, n + watched)
        n_leaves, n, _ = _grow(
            rows, top, top + size, watched, low, high, people, node, walk, leaves, variants, n, flock, free, place,
            without_her,
        )  # fmt: skip
        add_leaves(zero, n_leaves, flock[variants.first[v] : free], plus, people, leaves, place, without_her)
