"""Strict Mondrian on code arrays: the information that a class, or the halves of a cut, lose."""

from typing import Final

import numpy as np

from countervail.protect.mondrian.columns import ORDERED, Attributes
from countervail.protect.mondrian.constraints import Floats, Ints, Longs, Whole, inner

# Rows looked at between two tests whether a set is complete.
_CHUNK: Final = 512
_BIG: Final = np.int32(2**31 - 1)


@inner
def extent(codes: Ints) -> tuple[int, int]:
    """Smallest and largest code."""
    low, high = codes[0], codes[0]
    for r in range(codes.shape[0]):
        low = min(low, codes[r])
        high = max(high, codes[r])
    return low, high


@inner
def ordered_loss(
    low: int | np.int32, high: int | np.int32, missing: int, positions: Floats, j: int, span: float
) -> float:
    """NCP of a range of codes; a class that mixes missing and present values says nothing, so it costs 1."""
    if low >= high:
        return 0.0
    if high == missing:
        return 1.0
    return float((positions[j, high] - positions[j, low]) / span)


@inner
def ordered_halves(codes: Ints, mask: Ints) -> tuple[np.int32, np.int32, np.int32, np.int32]:
    """Extents of both halves; a mask of -1 and 0 instead of a branch lets the compiler vectorise.

    So do the casts: without them, what two 32-bit numbers make is 64 bits wide, and the loop takes ten times as long.
    """
    left_low, right_low = _BIG, _BIG
    left_high, right_high = np.int32(0), np.int32(0)
    for r in range(codes.shape[0]):
        x, m = codes[r], mask[r]
        left_low = min(left_low, np.int32(x | np.int32(~m & _BIG)))
        right_low = min(right_low, np.int32(x | np.int32(m & _BIG)))
        left_high = max(left_high, np.int32(x & m))
        right_high = max(right_high, np.int32(x & ~m))
    return left_low, left_high, right_low, right_high


@inner
def _bits(word: np.uint64) -> int:
    """Number of ones in a 64-bit word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def set_halves(codes: Ints, mask: Ints, size: int, full: int, hist: Longs) -> tuple[int, int]:
    """Number of distinct codes in both halves; `full` is the node's, and once both have all there is no more to see."""
    n = codes.shape[0]
    if size <= 32:
        left32, right32 = np.uint32(0), np.uint32(0)
        for start in range(0, n, _CHUNK):
            for r in range(start, min(start + _CHUNK, n)):
                bit = np.uint32(np.uint32(1) << np.uint32(codes[r]))
                m = np.uint32(mask[r])
                left32 |= bit & m
                right32 |= bit & ~m
            if left32 == right32 and _bits(np.uint64(left32)) == full:
                break
        return _bits(np.uint64(left32)), _bits(np.uint64(right32))
    if size <= 64:
        left, right = np.uint64(0), np.uint64(0)
        for start in range(0, n, _CHUNK):
            for r in range(start, min(start + _CHUNK, n)):
                long_bit = np.uint64(1) << np.uint64(codes[r])
                long_mask = np.uint64(np.int64(mask[r]))
                left |= long_bit & long_mask
                right |= long_bit & ~long_mask
            if left == right and _bits(left) == full:
                break
        return _bits(left), _bits(right)
    n_left, n_right = 0, 0
    for r in range(codes.shape[0]):
        seen = hist[codes[r]]
        if mask[r] != 0:
            n_left += (seen & 1) ^ 1
            hist[codes[r]] = seen | 1
        else:
            n_right += ((seen >> 1) & 1) ^ 1
            hist[codes[r]] = seen | 2
    for r in range(codes.shape[0]):
        hist[codes[r]] = 0
    return n_left, n_right


@inner
def distinct_codes(codes: Ints, size: int, hist: Longs) -> int:
    """Number of distinct codes."""
    if size <= 64:
        word = np.uint64(0)
        for r in range(codes.shape[0]):
            word |= np.uint64(1) << np.uint64(codes[r])
        return _bits(word)
    n = 0
    for r in range(codes.shape[0]):
        n += 1 - hist[codes[r]]
        hist[codes[r]] = 1
    for r in range(codes.shape[0]):
        hist[codes[r]] = 0
    return n


@inner
def climb(code: int, first: int, level: int, tree: Whole, ancestors: Ints) -> tuple[int, int]:
    """Widen (any code of a group, level of its lowest common ancestor) by one code; first is -1 for no code yet."""
    if first < 0:
        return code, 0
    while ancestors[tree, code, level] != ancestors[tree, first, level]:
        level += 1
    return first, level


@inner
def values_below(first: int, level: int, tree: Whole, ancestors: Ints, leaves: Floats) -> float:
    """Number of values below the ancestor that a group is called by; 0 for a single value."""
    return float(leaves[tree, ancestors[tree, first, level], level]) if level > 0 else 0.0


@inner
def tree_halves(codes: Ints, mask: Ints, tree: int, ancestors: Ints, leaves: Floats) -> tuple[float, float]:
    """Number of values below the lowest common ancestors of both halves; 0 for a single value."""
    left_first, right_first, left_level, right_level = -1, -1, 0, 0
    for r in range(codes.shape[0]):
        if mask[r] != 0:
            left_first, left_level = climb(codes[r], left_first, left_level, tree, ancestors)
        else:
            right_first, right_level = climb(codes[r], right_first, right_level, tree, ancestors)
    left = values_below(left_first, left_level, tree, ancestors, leaves)
    return left, values_below(right_first, right_level, tree, ancestors, leaves)


@inner
def tree_loss(codes: Ints, tree: int, span: float, ancestors: Ints, leaves: Floats) -> float:
    """NCP of a node whose classes are called by groups of a hierarchy."""
    first, level = -1, 0
    for r in range(codes.shape[0]):
        first, level = climb(codes[r], first, level, tree, ancestors)
    return float(leaves[tree, ancestors[tree, first, level], level] / span)


@inner
def relative_width(j: int, low: int, high: int, data: Attributes) -> float:
    """Normalised width: of a range of codes, or of (any code below, level) in a hierarchy."""
    if data.kind[j] == ORDERED:
        return ordered_loss(low, high, data.missing[j], data.positions, j, data.span[j])
    if high == 0:
        return 0.0
    tree = data.tree_of[j]
    if tree < 0:
        return float(data.sizes[j] / data.span[j])
    return float(data.leaves[tree, data.ancestors[tree, low, high], high] / data.span[j])
