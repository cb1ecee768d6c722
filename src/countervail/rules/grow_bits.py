"""Compiled loops of MLEM2 on bitsets: one bit per row for each condition. Same rules as `grow`, rule by rule.

For columns of few values this is many times faster than lists of rows; a column of n different numbers has 2n
conditions and would take memory quadratic in n, so `fits` says where the bits take no more room than the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.rules.grow import HELD, TIGHTEST, TOTAL, Scales, weigh_conditions
from countervail.rules.kernels import DOWN, IN, UP, Side, inner, kernel, lay_out, may_side, sure_side
from countervail.rules.values import Bools, Coded, Ints

Words = NDArray[np.uint64]

_MOST = 64  # conditions per attribute: 64 bits are as wide as one number of the table
_ALL = np.uint64(2**64 - 1)


def fits(t: Coded) -> bool:
    """Whether a bit per row and condition takes no more room than the table's numbers."""
    return int(lay_out(t)[0][-1]) <= _MOST * len(t.ordered)


def _pack(rows: Bools, weight: Ints) -> Words:
    """Marked rows as bits, each as often as it stands for rows; one line or several."""
    bits = np.packbits(np.repeat(rows, weight, axis=-1), axis=-1, bitorder="little")
    short = -bits.shape[-1] % 8
    return np.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, short)]).view("<u8").astype(np.uint64, copy=False)


def _mark_blocks(side: Side, w: Scales, weight: Ints) -> Words:
    """The rows that meet each condition."""
    blocks = []
    for a in range(len(side.ordered)):
        if side.ordered[a]:
            n_down = w.base[a + 1] - w.base[a] - w.ups[a]
            blocks.append(_pack(side.up[a] <= np.arange(w.ups[a])[:, None], weight))
            blocks.append(_pack(side.down[a] >= np.arange(n_down)[:, None], weight))
        else:
            n, at = w.base[a + 1] - w.base[a], side.at[side.first[a] : side.first[a + 1] + 1]
            meets = np.zeros((n, n), np.bool_)  # condition x value set
            meets[side.sets[at[0] : at[-1]], np.repeat(np.arange(n), np.diff(at))] = True
            blocks.append(_pack(meets[:, side.up[a]], weight))
    return np.concatenate(blocks)


class _GrowingBits(NamedTuple):
    """A rule on its way: the goal that it covers, rows inside (`cov`) and possibly inside (`pos`).

    `ends` are the outermost ranks of those rows, attribute x (upper, lower); `idle` marks the conditions that cover
    all of them: they can cut nothing off, now or later.
    """

    goal: Words
    cov: Words
    pos: Words
    ends: Ints
    idle: Bools


@inner
def _count_common(a: Words, b: Words) -> int:
    """How many rows two sets have in common."""
    total = np.uint64(0)
    for i in range(len(a)):
        x = a[i] & b[i]
        x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return int(total)


@inner
def _have_common(a: Words, b: Words) -> bool:
    """Whether two sets have a row in common."""
    for i in range(len(a)):  # noqa: SIM110 -- numba compiles no generators
        if a[i] & b[i]:
            return True
    return False


@inner
def _lies_within(a: Words, b: Words) -> bool:
    """Whether all rows of one set are in another."""
    for i in range(len(a)):  # noqa: SIM110 -- numba compiles no generators
        if a[i] & ~b[i]:
            return False
    return True


@inner
def _cuts_nothing(at: int, s: _GrowingBits, sure: Words, may: Words | None) -> bool:
    if not _lies_within(s.cov, sure[at]):
        return False
    if may is not None:
        return _lies_within(s.pos, may[at])
    return True


@inner
def _move_ends(a: int, base: Ints, ups: Ints, s: _GrowingBits, sure: Words, may: Words | None) -> None:
    """Move the outermost ranks of an ordered attribute inwards to the widest cuts that leave some row out."""
    here, middle, end, ends = base[a], base[a] + ups[a], base[a + 1], s.ends
    while ends[a, 0] > 0 and _cuts_nothing(here + ends[a, 0] - 1, s, sure, may):
        ends[a, 0] -= 1
    while middle + ends[a, 1] + 1 < end and _cuts_nothing(middle + ends[a, 1] + 1, s, sure, may):
        ends[a, 1] += 1


@inner
def _choose(
    ordered: Bools, base: Ints, ups: Ints, scales: Ints, s: _GrowingBits, sure: Words, may: Words | None
) -> int:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first."""
    best, most, most_held, most_total = -1, 0, 0, 0
    for a in range(len(ordered)):
        here, middle, end = base[a], base[a] + ups[a], base[a + 1]
        if ordered[a]:
            _move_ends(a, base, ups, s, sure, may)
        for i in range(2 if ordered[a] else end - here):
            cut = here + i
            if ordered[a]:
                cut = here + s.ends[a, 0] - 1 if i == 0 else middle + s.ends[a, 1] + 1
                if cut < here or cut >= end or (i == 0 and s.ends[a, 0] == 0):
                    continue
            elif s.idle[cut]:
                continue
            at = scales[TIGHTEST, cut] if ordered[a] else cut
            goal, held, total = _count_common(s.goal, sure[cut]), scales[HELD, at], -scales[TOTAL, at]
            if goal == 0 or goal < most:
                continue
            if goal == most and (held < most_held or (held == most_held and total <= most_total)):
                continue
            if not ordered[a] and _cuts_nothing(at, s, sure, may):
                s.idle[at] = True
                continue
            best, most, most_held, most_total = at, goal, held, total
    return best


@kernel
def _grow(
    ordered: Bools,
    base: Ints,
    ups: Ints,
    scales: Ints,
    outside: Words,
    bads: Words,
    s: _GrowingBits,
    sure: Words,
    may: Words | None,
    chosen: Ints,
) -> int:
    """Conditions that together leave no row outside the class inside and overlap no bad one: how many.

    The goal that is left stays in `s`. -1 where the rows that are left cannot be told from others, and the negative
    of the room needed where `chosen` is too short.
    """
    goal, cov, pos = s.goal, s.cov, s.pos
    n, wrong = 0, True
    while wrong:
        best = _choose(ordered, base, ups, scales, s, sure, may)
        if best < 0:
            return -1
        if n == len(chosen):
            return -2 * n
        chosen[n] = best
        n += 1
        for i in range(len(goal)):
            goal[i] &= sure[best, i]
            cov[i] &= sure[best, i]
        wrong = _have_common(cov, outside)
        if may is not None:
            for i in range(len(pos)):
                pos[i] &= may[best, i]
            wrong = wrong or _have_common(pos, bads)
    return n


def _shorten(chosen: Ints, outside: Words, bads: Words, sure: Words, may: Words | None) -> Ints:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    used = np.ones(len(chosen), np.bool_)
    tests = [(outside, sure)] if may is None else [(outside, sure), (bads, may)]
    after = [
        np.bitwise_and.accumulate(np.vstack([rows[None], blocks[chosen[::-1]]]), axis=0)[::-1] for rows, blocks in tests
    ]
    before = [np.full(len(outside), _ALL) for _ in tests]
    for c in range(len(chosen)):
        lets_in = any((b & a[c + 1]).any() for b, a in zip(before, after, strict=True))
        if used.sum() > 1 and not lets_in:
            used[c] = False
            continue
        for b, (_, blocks) in zip(before, tests, strict=True):
            b &= blocks[chosen[c]]
    return chosen[used]


def induce(t: Coded, goal: Bools, inside: Bools, bad: Bools) -> tuple[Ints, Ints]:
    """As `induce` of `grow`, on bits."""
    w, side, everyone = weigh_conditions(t, inside), sure_side(t), np.ones(len(goal), np.bool_)
    sure = _mark_blocks(side, w, t.weight)
    may = _mark_blocks(may_side(t), w, t.weight) if bad.any() else None
    outside, bads, all_rows = _pack(~inside, t.weight), _pack(bad, t.weight), _pack(everyone, t.weight)
    open_ = _pack(goal, t.weight)
    first_ends = np.stack([w.ups - 1, np.zeros_like(w.ups)], axis=1)
    attribute = np.repeat(np.arange(len(w.ups)), np.diff(w.base))
    code = np.arange(w.base[-1]) - w.base[attribute]
    down = t.ordered[attribute] & (code >= w.ups[attribute])
    kind = np.where(~t.ordered[attribute], IN, np.where(down, DOWN, UP))
    described = np.stack([attribute, kind, np.where(down, code - w.ups[attribute], code)], axis=1).astype(np.int64)
    sizes, found, chosen = [0], [described[:0]], np.empty(8, np.int64)
    while open_.any():
        idle = np.zeros(w.base[-1], np.bool_)
        s = _GrowingBits(open_.copy(), all_rows.copy(), all_rows.copy(), first_ends.copy(), idle)
        n = _grow(t.ordered, w.base, w.ups, w.of, outside, bads, s, sure, may, chosen)
        if n < -1:
            chosen = np.empty(-n, np.int64)
            continue
        if n < 0:  # no conditions tell these rows from those outside
            open_ &= ~s.goal
            continue
        kept = _shorten(chosen[:n], outside, bads, sure, may)
        found.append(described[kept])
        sizes.append(len(kept))
        open_ &= ~np.bitwise_and.reduce(sure[kept], axis=0)
    return np.cumsum(sizes), np.concatenate(found)
