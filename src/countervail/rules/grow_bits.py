"""Compiled loops of MLEM2 on bitsets: one bit per row for each condition. Same rules as `grow`, rule by rule.

For columns of few values this is many times faster than lists of rows; a column of n different numbers has 2n
conditions and would take memory quadratic in n, so `fits` says where the bits take no more room than the table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from countervail.rules.grow import Scales, weigh_conditions
from countervail.rules.kernels import DOWN, IN, UP, kernel, lay_out, mark_meeting
from countervail.rules.values import Bools, Coded, Ints

Words = NDArray[np.uint64]

_MOST = 64  # conditions per attribute: 64 bits are as wide as one number of the table


def fits(t: Coded) -> bool:
    """Whether a bit per row and condition takes no more room than the table's numbers."""
    return int(lay_out(t)[0][-1]) <= _MOST * len(t.ordered)


@kernel
def _count_ones(x: np.uint64) -> np.uint64:
    """How many bits are set."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def _count_common(a: Words, b: Words) -> int:
    """How many rows two sets have in common."""
    total = np.uint64(0)
    for i in range(len(a)):
        total += _count_ones(a[i] & b[i])
    return int(total)


@kernel
def _have_common(a: Words, b: Words) -> bool:
    """Whether two sets have a row in common."""
    for i in range(len(a)):  # noqa: SIM110 -- numba compiles no generators
        if a[i] & b[i]:
            return True
    return False


@kernel
def _lies_within(a: Words, b: Words) -> bool:
    """Whether all rows of one set are in another."""
    for i in range(len(a)):  # noqa: SIM110 -- numba compiles no generators
        if a[i] & ~b[i]:
            return False
    return True


@kernel
def _pack(rows: Bools, weight: Ints, words: int) -> Words:
    """Marked rows as bits, each as often as it stands for rows."""
    out = np.zeros(words, np.uint64)
    at = 0
    for row in range(len(rows)):
        for _ in range(weight[row]):
            if rows[row]:
                out[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
            at += 1
    return out


class _Blocks(NamedTuple):
    """The rows that each condition covers, and may cover, and all rows."""

    sure: Words
    may: Words
    all: Words


@kernel
def _mark_blocks(t: Coded, base: Ints, ups: Ints, words: int, may: bool) -> Words:
    out = np.zeros((base[-1], words), np.uint64)
    everyone = np.arange(len(t.weight))
    for a in range(len(t.ordered)):
        for at in range(base[a], base[a + 1]):
            code, kind = at - base[a], IN
            if t.ordered[a]:
                code, kind = (code, UP) if code < ups[a] else (code - ups[a], DOWN)
            out[at] = _pack(mark_meeting(t, a, kind, code, everyone, may), t.weight, words)
    return out


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


@kernel
def _cuts_nothing(blocks: _Blocks, s: _GrowingBits, at: int, soft: bool) -> bool:
    return _lies_within(s.cov, blocks.sure[at]) and (not soft or _lies_within(s.pos, blocks.may[at]))


@kernel
def _find_cuts(t: Coded, w: Scales, blocks: _Blocks, s: _GrowingBits, a: int, soft: bool) -> tuple[int, int]:
    """The widest upper and lower cut of an ordered attribute that leave some row out; -1 where there is none."""
    here, middle, end = w.base[a], w.base[a] + w.ups[a], w.base[a + 1]
    while s.ends[a, 0] > 0 and _cuts_nothing(blocks, s, here + s.ends[a, 0] - 1, soft):
        s.ends[a, 0] -= 1
    while middle + s.ends[a, 1] + 1 < end and _cuts_nothing(blocks, s, middle + s.ends[a, 1] + 1, soft):
        s.ends[a, 1] += 1
    upper = here + s.ends[a, 0] - 1 if s.ends[a, 0] > 0 else -1
    return upper, middle + s.ends[a, 1] + 1 if middle + s.ends[a, 1] + 1 < end else -1


@kernel
def _choose(t: Coded, w: Scales, blocks: _Blocks, s: _GrowingBits, soft: bool) -> int:
    """The best next condition: most of the goal, then most of the class, then fewest rows, then the first."""
    best, most = -1, (0, 0, 0)
    for a in range(len(t.ordered)):
        if t.ordered[a]:
            for cut in _find_cuts(t, w, blocks, s, a, soft):
                if cut >= 0:
                    at = w.tightest[cut]
                    scale = (_count_common(s.goal, blocks.sure[cut]), w.held[at], -w.total[at])
                    if scale[0] > 0 and scale > most:
                        best, most = at, scale
            continue
        for at in range(w.base[a], w.base[a + 1]):
            if not s.idle[at]:
                scale = (_count_common(s.goal, blocks.sure[at]), w.held[at], -w.total[at])
                if scale[0] > 0 and scale > most:
                    if _cuts_nothing(blocks, s, at, soft):
                        s.idle[at] = True
                    else:
                        best, most = at, scale
    return best


@kernel
def _grow(
    t: Coded, w: Scales, blocks: _Blocks, open_: Words, outside: Words, bads: Words, soft: bool
) -> tuple[Ints, Words]:
    """Conditions that together leave no row outside the class inside and overlap no bad one; the goal that is left.

    No conditions where the rows that are left cannot be told from others.
    """
    ends = np.zeros((len(t.ordered), 2), np.int64)
    ends[:, 0] = w.ups - 1
    s = _GrowingBits(open_.copy(), blocks.all.copy(), blocks.all.copy(), ends, np.zeros(w.base[-1], np.bool_))
    chosen = np.empty(8, np.int64)
    n = 0
    while n == 0 or _have_common(s.cov, outside) or (soft and _have_common(s.pos, bads)):
        best = _choose(t, w, blocks, s, soft)
        if best < 0:
            return chosen[:0], s.goal
        if n == len(chosen):
            chosen = np.concatenate((chosen, np.empty(n, np.int64)))
        chosen[n] = best
        n += 1
        s.goal[:] &= blocks.sure[best]
        s.cov[:] &= blocks.sure[best]
        if soft:
            s.pos[:] &= blocks.may[best]
    return chosen[:n], s.goal


@kernel
def _shorten(blocks: _Blocks, chosen: Ints, outside: Words, bads: Words, soft: bool) -> Ints:
    """The conditions that stay when, first to last, those are dropped that keep no row out."""
    n, words = len(chosen), len(outside)
    after, may_after = np.empty((n + 1, words), np.uint64), np.empty((n + 1 if soft else 1, words), np.uint64)
    after[n] = outside
    may_after[-1] = bads
    for c in range(n - 1, -1, -1):
        after[c] = after[c + 1] & blocks.sure[chosen[c]]
        if soft:
            may_after[c] = may_after[c + 1] & blocks.may[chosen[c]]
    before, may_before = np.full(words, ~np.uint64(0)), np.full(words, ~np.uint64(0))
    used, left = np.ones(n, np.bool_), n
    for c in range(n):
        lets_in = _have_common(before, after[c + 1]) or (soft and _have_common(may_before, may_after[c + 1]))
        if left > 1 and not lets_in:
            used[c] = False
            left -= 1
            continue
        before &= blocks.sure[chosen[c]]
        if soft:
            may_before &= blocks.may[chosen[c]]
    return chosen[used]


@kernel
def induce(t: Coded, goal: Bools, inside: Bools, bad: Bools) -> tuple[Ints, Ints]:
    """As `induce` of `grow`, on bits."""
    soft = bool(bad.any())
    w = weigh_conditions(t, inside)
    words = (t.weight.sum() + 63) // 64
    sure = _mark_blocks(t, w.base, w.ups, words, False)
    everyone = _pack(np.ones(len(goal), np.bool_), t.weight, words)
    blocks = _Blocks(sure, _mark_blocks(t, w.base, w.ups, words, True) if soft else sure, everyone)
    outside, bads = _pack(~inside, t.weight, words), _pack(bad, t.weight, words)
    open_ = _pack(goal, t.weight, words)
    ends, flat = [0], [np.int64(0) for _ in range(0)]
    while open_.any():
        chosen, left = _grow(t, w, blocks, open_, outside, bads, soft)
        if len(chosen) == 0:  # no conditions tell these rows from those outside
            open_ &= ~left
            continue
        chosen = _shorten(blocks, chosen, outside, bads, soft)
        covered = np.full(words, ~np.uint64(0))
        for at in chosen:
            a = np.searchsorted(w.base, at, side="right") - 1
            code, kind = at - w.base[a], IN
            if t.ordered[a]:
                code, kind = (code, UP) if code < w.ups[a] else (code - w.ups[a], DOWN)
            flat.extend([a, np.int64(kind), code])
            covered &= blocks.sure[at]
        ends.append(len(flat) // 3)
        open_ &= ~covered
    return np.array(ends, np.int64), np.array(flat, np.int64).reshape(-1, 3)
