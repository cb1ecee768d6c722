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
def vote(x: Floats, c: Conditions, weight: Floats, conclusions: Masks, classes: int) -> Floats:
    """LERS: the weights of all matching rules for each class; of partly matching ones where none matches.

    `x` is attribute x row.
    """
    n_rows, n_rules = x.shape[1], len(c.at) - 1
    out, matched = np.zeros((n_rows, classes)), np.zeros(n_rows, np.bool_)
    # Taking an array from a tuple counts references, which in a loop costs more than the work.
    at, attribute, lows, highs, start, member = c.at, c.attribute, c.low, c.high, c.start, c.member
    for way in range(2):  # rules that match, or else those that match partly
        for r in range(n_rules):
            size = at[r + 1] - at[r]
            for row in range(n_rows):
                if way == 1 and matched[row]:
                    continue
                hits = 0
                for i in range(at[r], at[r + 1]):
                    value = x[attribute[i], row]
                    met = lows[i] <= value <= highs[i]
                    if start[i] >= 0:
                        met = value >= 0 and member[start[i] + int(value)]  # an unknown value (-1) meets none
                    if met:
                        hits += 1
                    elif way == 0:
                        break
                if hits == 0 or (way == 0 and hits < size):
                    continue
                if way == 0:
                    matched[row] = True
                share = weight[r] if way == 0 else weight[r] * hits / size
                for k in range(classes):
                    if (conclusions[r] >> np.uint64(k)) & np.uint64(1) != np.uint64(0):
                        out[row, k] += share
    return out
