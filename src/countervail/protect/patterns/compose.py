"""Patterns: each row's rules, filled up with the values of k rows that support them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, number_rows
from countervail.core.region import Axis, Range, Regions, Values
from countervail.rules import RuleSet, ValueTable
from countervail.rules.given import mark_supporting
from countervail.rules.kernels import kernel

Objects = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class PatternParts:
    """For one row: the rules that settle its class, and for each of them rows that support it (the row included)."""

    rules: tuple[int, ...]
    people: tuple[Sequence[int], ...]


def choose(table: ValueTable, rules: RuleSet, k: int, objects: Objects) -> list[PatternParts | None]:
    """What every row's patterns are made of; None where the row supports no rule."""
    order = _order_by_content(table)
    supporters = [order[mark_supporting(rules, r, table)[order]] for r in range(len(rules))]
    # The rules of each row, one after the other: as long as the supports together, never rules x rows.
    told = np.concatenate(supporters)
    named = np.repeat(np.arange(len(rules)), [len(s) for s in supporters])[np.argsort(told, kind="stable")]
    at = np.concatenate([[0], np.cumsum(np.bincount(told, minlength=len(table)))])
    conclusions = [int(z) for z in rules.conclusions]
    settled: dict[tuple[int, ...], tuple[int, ...]] = {}
    out: list[PatternParts | None] = []
    for row in range(len(table)):
        matching = tuple(named[at[row] : at[row + 1]].tolist())
        if not matching:
            out.append(None)
            continue
        if matching not in settled:
            settled[matching] = pick_rules(matching, conclusions)
        picked = settled[matching]
        people = tuple(
            pick_company(table.low, table.weight, supporters[r], row, k, objects == "max").tolist() for r in picked
        )
        out.append(PatternParts(picked, people))
    return out


def describe_rest(
    table: ValueTable, rules: RuleSet, choices: Sequence[PatternParts | None], k: int, objects: Objects
) -> tuple[RuleSet, list[PatternParts]]:
    """The rules with one more that says nothing, and by it patterns for the rows that no rule covers."""
    columns, every = len(table.attributes), (1 << len(table.classes)) - 1
    nothing = RuleSet(
        rules.attributes,
        rules.classes,
        np.zeros((1, columns), dtype=bool),
        np.full((1, columns), -np.inf),
        np.full((1, columns), np.inf),
        tuple(None if a.ordered else np.ones((1, len(a.known)), dtype=bool) for a in table.attributes),
        np.array([every], dtype=np.uint64),
        np.array([int(table.weight.sum())], dtype=np.int64),
        rules.rows,
        rules.target,
    )
    order, last = _order_by_content(table), len(rules)

    def parts(row: int, choice: PatternParts | None) -> PatternParts:
        if choice is not None:
            return choice
        company = pick_company(table.low, table.weight, order, row, k, objects == "max")
        return PatternParts((last,), (company.tolist(),))

    return RuleSet.joined([rules, nothing]), [parts(row, choice) for row, choice in enumerate(choices)]


def pick_rules(matching: Sequence[int], conclusions: Sequence[int]) -> tuple[int, ...]:
    """The fewest rules whose conclusions have in common what all have; of several such sets the first."""
    first: dict[int, int] = {}
    goal = -1
    for r in matching:
        first.setdefault(conclusions[r], r)
        goal &= conclusions[r]
    masks = list(first)
    rest = [-1] * (len(masks) + 1)  # what the conclusions from here on have in common
    for i in range(len(masks) - 1, -1, -1):
        rest[i] = rest[i + 1] & masks[i]

    def search(start: int, known: int, left: int) -> tuple[int, ...] | None:
        if left == 0:
            return () if known == goal else None
        for i in range(start, len(masks) - left + 1):
            if known & rest[i] != goal:
                return None
            if known & masks[i] != known and (more := search(i + 1, known & masks[i], left - 1)) is not None:
                return (first[masks[i]], *more)
        return None

    sizes = (search(0, -1, size) for size in range(1, len(masks) + 1))
    return next(found for found in sizes if found is not None)


@kernel
def pick_company(values: Any, weight: Ints, supporters: Ints, row: int, k: int, alike: bool) -> Ints:
    """The row and those that stand for k-1 other supporters: most (or least) alike first, then in order."""
    m = len(values)
    score = np.empty(len(supporters), np.int64)
    for i in range(len(supporters)):
        same = 0
        for a in range(m):
            same += values[a, supporters[i]] == values[a, row]
        score[i] = same
    out = np.empty(len(supporters) + 1, np.int64)
    out[0] = row
    n, people = 1, 1
    for step in range(m + 1):
        wanted = m - step if alike else step
        for i in range(len(supporters)):
            if people >= k:
                return out[:n]
            if score[i] != wanted:
                continue
            if supporters[i] == row:
                people += weight[row] - 1
            else:
                people += weight[supporters[i]]
                out[n] = supporters[i]
                n += 1
    return out[:n]


def compose(table: ValueTable, rules: RuleSet, choices: Sequence[PatternParts], spread: bool, target: str) -> Regions:
    """One pattern per row and rule, equal ones once, over the condition attributes and the decision."""
    rule = np.array([r for c in choices for r in c.rules], dtype=np.int64)
    people = [np.asarray(p, dtype=np.int64) for c in choices for p in c.people]
    which = np.concatenate(people)
    pair_at = np.cumsum([0, *(len(p) for p in people)])[:-1]
    choice_at = np.cumsum([0, *(len(c.rules) for c in choices)])[:-1]
    of_choice = np.repeat(np.arange(len(choices)), [len(c.rules) for c in choices])
    axes: list[Axis] = []
    keys: list[Ints] = []
    for j, a in enumerate(table.attributes):
        named = rules.named[rule, j]
        group = _Group(named, choice_at, of_choice) if spread else None
        if a.ordered:
            low, high = _fill_interval(table, rules, j, rule, which, pair_at, group)
            keys += [pd.factorize(low)[0], pd.factorize(high)[0]]
            if not a.known:
                axes.append(Range(a.name, low, high, a.whole))
                continue
            rank = np.arange(len(a.known))
            member = (low[:, None] <= rank) & (rank <= high[:, None])
        else:
            member = _fill_set(table, rules, j, rule, which, pair_at, group)
            keys.append(np.unique(np.packbits(member, axis=1), axis=0, return_inverse=True)[1].ravel())
        axes.append(Values.of(a.name, a.known, member))
    masks = rules.conclusions[rule]
    bits = (masks[:, None] >> np.arange(len(table.classes), dtype=np.uint64)) & np.uint64(1)
    axes.append(Values.of(target, table.classes, bits.astype(bool)))
    _, first = np.unique(number_rows([*keys, pd.factorize(masks)[0]]), return_index=True)
    patterns: Regions = Regions(tuple(axes), len(rule))[np.sort(first)]
    return patterns


@dataclass(frozen=True, slots=True)
class _Group:
    """The pairs of row and rule, row by row, and which of the rules name the attribute."""

    named: Bools
    at: Ints
    of: Ints

    @property
    def named_by_any(self) -> Bools:
        """For each pair: whether any rule of its row names the attribute."""
        found: Bools = np.logical_or.reduceat(self.named, self.at)[self.of]
        return found

    def joined(self, values: Any, join: np.ufunc, neutral: Any) -> Any:
        """For each pair: its values joined with those that its row's rules name, or with all where none does."""
        every = join.reduceat(values, self.at)[self.of]
        named = join.reduceat(np.where(_align(self.named, values), values, neutral), self.at)[self.of]
        wide = np.where(_align(self.named_by_any, values), join(values, named), every)
        return np.where(_align(self.named, values), values, wide)


def _fill_interval(
    table: ValueTable, rules: RuleSet, j: int, rule: Ints, which: Ints, at: Ints, group: _Group | None
) -> tuple[Floats, Floats]:
    """The rule's bounds; a missing one, and both where the rule does not name the attribute, from the people."""
    low = np.minimum.reduceat(table.low[j, which], at)
    high = np.maximum.reduceat(table.high[j, which], at)
    low = np.where(np.isfinite(rules.low[rule, j]), rules.low[rule, j], low)
    high = np.where(np.isfinite(rules.high[rule, j]), rules.high[rule, j], high)
    if group is None:
        return low, high
    return group.joined(low, np.minimum, np.inf), group.joined(high, np.maximum, -np.inf)


def _fill_set(
    table: ValueTable, rules: RuleSet, j: int, rule: Ints, which: Ints, at: Ints, group: _Group | None
) -> Bools:
    """The rule's value set, or the values of the people."""
    sizes = np.diff([*at, len(which)])
    member = np.zeros((len(rule), len(table.attributes[j].known)), dtype=bool)
    member[np.repeat(np.arange(len(rule)), sizes), table.low[j, which].astype(np.intp)] = True
    held = rules.members[j]
    assert held is not None
    member = np.where(rules.named[rule, j][:, None], held[rule], member)
    joined: Bools = member if group is None else group.joined(member, np.logical_or, False)
    return joined


def _align(flags: Bools, values: Any) -> Any:
    return flags if values.ndim == 1 else flags[:, None]


def _order_by_content(table: ValueTable) -> Ints:
    """The rows in an order that does not depend on how the table was sorted."""
    return np.lexsort((table.decisions, *table.low[::-1])).astype(np.int64)
