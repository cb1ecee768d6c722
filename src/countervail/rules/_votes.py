"""Compiled matching of rows against rules. Each loop has a plain-Python twin in the tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from countervail.rules.ruleset import Rules

F = NDArray[np.float64]
I = NDArray[np.int64]  # noqa: E741


class Conditions(NamedTuple):
    """The rules' conditions one after the other; `start` is where a value set starts in `member`, -1: an interval."""

    at: I
    attribute: I
    low: F
    high: F
    start: I
    member: NDArray[np.bool_]


def conditions(rules: Rules) -> Conditions:
    """The conditions of all rules, one per attribute named."""
    rule, attribute = np.nonzero(rules.named)
    start = np.full(len(rule), -1, dtype=np.int64)
    parts, total = [np.zeros(0, dtype=bool)], 0
    for j, member in enumerate(rules.members):
        if member is not None:
            here = attribute == j
            start[here] = total + rule[here] * member.shape[1]
            parts.append(member.ravel())
            total += member.size
    at = np.concatenate([[0], np.cumsum(rules.named.sum(axis=1))]).astype(np.int64)
    low, high = rules.low[rule, attribute], rules.high[rule, attribute]
    return Conditions(at, attribute.astype(np.int64), low, high, start, np.concatenate(parts))


@njit(cache=True, nogil=True)
def met(x: F, row: int, c: Conditions, i: int) -> bool:
    """Whether a row meets a condition; an unknown value (-1 or NaN) meets none."""
    value = x[row, c.attribute[i]]
    if c.start[i] < 0:
        return c.low[i] <= value <= c.high[i]
    return value >= 0 and c.member[c.start[i] + int(value)]


@njit(cache=True, nogil=True)
def votes(x: F, c: Conditions, weight: F, conclusions: NDArray[np.uint64], classes: int) -> F:
    """LERS: the weights of all matching rules for each class; of partly matching ones where none matches."""
    out = np.zeros((len(x), classes))
    n = len(c.at) - 1
    for row in range(len(x)):
        matched = False
        for partly in (False, True):
            if partly and matched:
                break
            for r in range(n):
                hits = 0
                for i in range(c.at[r], c.at[r + 1]):
                    if met(x, row, c, i):
                        hits += 1
                    elif not partly:
                        break
                size = c.at[r + 1] - c.at[r]
                if hits == 0 or (hits < size and not partly):
                    continue
                matched = True
                for k in range(classes):
                    if (conclusions[r] >> np.uint64(k)) & np.uint64(1):
                        out[row, k] += weight[r] * hits / size
    return out


@njit(cache=True, nogil=True)
def matches(x: F, c: Conditions) -> NDArray[np.bool_]:
    """Rule x row: which rows meet all conditions."""
    n = len(c.at) - 1
    out = np.ones((n, len(x)), np.bool_)
    for r in range(n):
        for row in range(len(x)):
            for i in range(c.at[r], c.at[r + 1]):
                if not met(x, row, c, i):
                    out[r, row] = False
                    break
    return out
