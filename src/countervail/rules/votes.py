"""Compiled matching of rows against rules. Each loop has a plain-Python twin in the tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from countervail.rules.kernels import kernel
from countervail.rules.ruleset import RuleSet
from countervail.rules.values import Bools, Floats, Ints, Masks


class Conditions(NamedTuple):
    """The rules' conditions one after the other; `start` is where a value set starts in `member`, -1: an interval."""

    at: Ints
    attribute: Ints
    low: Floats
    high: Floats
    start: Ints
    member: Bools


def list_conditions(rules: RuleSet) -> Conditions:
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


@kernel
def _meets(x: Floats, row: int, c: Conditions, i: int) -> bool:
    """Whether a row meets a condition; an unknown value (-1 or NaN) meets none."""
    value = x[c.attribute[i], row]
    if c.start[i] < 0:
        return bool(c.low[i] <= value <= c.high[i])
    return bool(value >= 0 and c.member[c.start[i] + int(value)])


@kernel
def _keep_matching(x: Floats, c: Conditions, r: int, rows: Ints) -> Ints:
    """The rows that meet all conditions of a rule."""
    for i in range(c.at[r], c.at[r + 1]):
        met, values = np.empty(len(rows), np.bool_), x[c.attribute[i]]
        if c.start[i] < 0:
            low, high = c.low[i], c.high[i]
            for j in range(len(rows)):
                met[j] = (low <= values[rows[j]]) & (values[rows[j]] <= high)
        else:
            for j in range(len(rows)):
                value = int(values[rows[j]])
                met[j] = value >= 0 and c.member[c.start[i] + value]
        rows = rows[met]
    return rows


@kernel
def vote(x: Floats, c: Conditions, weight: Floats, conclusions: Masks, classes: int) -> Floats:
    """LERS: the weights of all matching rules for each class; of partly matching ones where none matches.

    `x` is attribute x row.
    """
    out = np.zeros((x.shape[1], classes))
    matched = np.zeros(x.shape[1], np.bool_)
    everyone = np.arange(x.shape[1])
    for r in range(len(c.at) - 1):
        rows = _keep_matching(x, c, r, everyone)
        if c.at[r] < c.at[r + 1]:
            matched[rows] = True
            for k in range(classes):
                if (conclusions[r] >> np.uint64(k)) & np.uint64(1):
                    out[rows, k] += weight[r]
    for row in np.flatnonzero(~matched):
        for r in range(len(c.at) - 1):
            hits = 0
            for i in range(c.at[r], c.at[r + 1]):
                hits += _meets(x, int(row), c, i)
            for k in range(classes):
                if hits > 0 and (conclusions[r] >> np.uint64(k)) & np.uint64(1):
                    out[row, k] += weight[r] * hits / (c.at[r + 1] - c.at[r])
    return out
