"""Inducing rules: precise (one class), imprecise (unions of classes), and those that enough rows support."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from countervail.core.errors import bad_parameter
from countervail.rules import grow, grow_bits, kernels
from countervail.rules.ruleset import RuleSet
from countervail.rules.values import Bools, Masks, ValueTable

Semantics = Literal["strict", "overlap", "paper"]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
WARN_CLASSES, MOST_CLASSES = 10, 16
UNIONS = 1_000  # about 2^10: what ten classes give without a cap


class Inducer:
    """Rules of one value-set table. What holds of the whole table is worked out once.

    `semantics` says when a rule of a table with sets is valid (ordinary tables: no difference). "strict": no row whose
    decision has nothing in common with the conclusion may overlap the rule, and a row stands for the decisions of all
    rows inside it. "overlap": the same, but first rows with equal conditions narrow each other's decisions. "paper":
    only rows that lie inside the rule count, with narrowed decisions.
    """

    def __init__(self, table: ValueTable, semantics: Semantics = "strict", target: str = "class") -> None:
        self.table = table
        self.semantics = semantics
        self.target = target
        self.effective = _join_decisions(table, narrowed=semantics != "strict" and table.imprecise)

    def lower(self, union: int) -> tuple[Bools, Bools]:
        """The rows that surely belong to a union of classes, and those that no rule for it may overlap."""
        z, none = np.uint64(union), np.uint64(0)
        inside: Bools = (self.effective != none) & ((self.effective & ~z) == none)
        if self.table.crisp or self.semantics == "paper":
            return inside, np.zeros(len(inside), dtype=bool)
        bad: Bools = (self.table.decisions & z) == none
        return kernels.mark_clear(self.table.coded, self.table.low, self.table.high, inside, bad), bad

    def cover(self, unions: Iterable[int], goal: Bools | None = None) -> RuleSet:
        """MLEM2: for each union of classes, minimal rules that conclude it and together cover the goal."""
        induce = grow_bits.induce if grow_bits.fits(self.table.coded) else grow.induce
        sizes, conditions, conclusions = [], [np.zeros((0, 3), dtype=np.int64)], []
        for union in unions:
            inside, bad = self.lower(union)
            wanted = inside if goal is None else inside & goal
            if wanted.any():
                at, found = induce(self.table.coded, wanted, inside, bad)
                kept = kernels.mark_needed(self.table.coded, at, found, wanted)
                conditions.append(found[np.repeat(kept, np.diff(at))])
                sizes += np.diff(at)[kept].tolist()
                conclusions += [union] * int(kept.sum())
        at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        masks = np.array(conclusions, dtype=np.uint64)
        return RuleSet.of(self.table, at, np.concatenate(conditions), masks, self.target)

    def unions(self, size: int, goal: Bools | None = None) -> RuleSet:
        """The rules for every union of `size` classes."""
        return self.cover(_list_unions(len(self.table.classes), size), goal)

    def precise(self) -> RuleSet:
        """The rules for every single class."""
        return self.unions(1)

    def imprecise(self, max_union: int | None = None) -> RuleSet:
        """Precise rules, then rules for ever larger unions for the rows that no rule covers yet."""
        left = np.ones(len(self.table), dtype=bool)
        parts: list[RuleSet] = []
        for size in range(1, _find_largest(self.table, max_union) + 1):
            parts.append(self.unions(size, left))
            left &= ~mark_covered(parts[-1], self.table)
            if not left.any():
                break
        return RuleSet.joined(parts)

    def supported(self, k: int, max_union: int | None = None) -> RuleSet:
        """Rules with at least `k` supporting rows; a row is done when those that cover it agree on its class alone."""
        left = np.ones(len(self.table), dtype=bool)
        known = np.full(len(self.table), (1 << len(self.table.classes)) - 1, dtype=np.uint64)
        parts: list[RuleSet] = []
        for size in range(1, _find_largest(self.table, max_union) + 1):
            found = self.unions(size, left)
            parts.append(found.take(found.support >= k))
            known &= conclude(parts[-1], self.table)
            left = known != self.table.decisions
            if not left.any():
                break
        return RuleSet.joined(parts)


def mark_covered(rules: RuleSet, table: ValueTable) -> Bools:
    """Which rows of a table lie inside some rule."""
    inside: Bools = np.zeros(len(table), dtype=bool)
    for i in range(len(rules)):
        inside |= mark_inside(rules, i, table)
    return inside


def conclude(rules: RuleSet, table: ValueTable) -> Masks:
    """For each row the classes on which all rules that cover it agree; all classes where none does."""
    known = np.full(len(table), (1 << len(table.classes)) - 1, dtype=np.uint64)
    for i in range(len(rules)):
        known[mark_inside(rules, i, table)] &= rules.conclusions[i]
    return known


def mark_inside(rules: RuleSet, i: int, table: ValueTable) -> Bools:
    """Which rows of a table lie inside one rule."""
    inside: Bools = np.ones(len(table), dtype=bool)
    for j in np.flatnonzero(rules.named[i]).tolist():
        member = rules.members[j]
        if member is None:
            inside &= (table.low[j] >= rules.low[i, j]) & (table.high[j] <= rules.high[i, j])
        else:
            within = ~(table.members(j) & ~member[i]).any(axis=1)
            inside &= within[table.low[j].astype(np.intp)]
    return inside


def cap_unions(table: ValueTable, max_union: int | None, owner: str) -> int | None:
    """The cap on unions that applies; a warning or an error where there are too many classes to do without."""
    p = len(table.classes)
    if max_union is not None:
        if not isinstance(max_union, (int, np.integer)) or isinstance(max_union, bool) or max_union < 1:
            raise bad_parameter(owner, "max_union", "None or a whole number of at least 1", max_union)
        return int(max_union)
    if p <= WARN_CLASSES:
        return None
    hint = f"Unions of {p} classes grow as 2^{p}: pass max_union=2, say, or merge classes."
    if p > MOST_CLASSES:
        raise bad_parameter(owner, "max_union", f"given for more than {MOST_CLASSES} classes", max_union, hint)
    cap, total = 0, 0
    while total <= UNIONS:
        cap += 1
        total += sum(1 for _ in combinations(range(p), cap))
    return max(cap - 1, 1)


def _find_largest(table: ValueTable, max_union: int | None) -> int:
    p = len(table.classes)
    return p - 1 if max_union is None else min(max_union, p - 1)


def _list_unions(p: int, size: int) -> Iterator[int]:
    for picked in combinations(range(p), size):
        yield sum(1 << i for i in picked)


def _join_decisions(table: ValueTable, narrowed: bool) -> Masks:
    """The decisions that a row stands for."""
    decisions = table.decisions
    if table.crisp or narrowed:
        same = table.conditions
        join = np.bitwise_and if narrowed else np.bitwise_or
        start = np.full(int(same.max()) + 1, np.iinfo(np.uint64).max if narrowed else 0, dtype=np.uint64)
        join.at(start, same, decisions)
        decisions = start[same]
    if table.crisp:
        return decisions
    return np.asarray(kernels.join_decisions(table.coded, table.low, table.high, decisions), dtype=np.uint64)
