"""Rules: conjunctions of conditions and the classes they conclude, as arrays, sentences and a frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.cells import cell_text, cell_to_json, range_ends
from countervail.core.region import Region
from countervail.core.words.dates import iso
from countervail.rules import kernels
from countervail.rules.values import Attribute, Bools, Floats, Ints, Masks, ValueTable


@dataclass(frozen=True, slots=True)
class Rule:
    """If a row lies in `region`, its class is one of `conclusion`.

    `support` is the number of rows covered, `strength` their share of all rows, `specificity` the number of attributes.
    """

    region: Region
    conclusion: tuple[Any, ...]
    support: int
    strength: float
    condition: str
    target: str = "class"

    @property
    def specificity(self) -> int:
        """How many attributes the rule names."""
        return len(self.region.cells)

    @property
    def sentence(self) -> str:
        """The rule in words."""
        return f"If {self.condition} then {self.target} is {_join_words([cell_text(c) for c in self.conclusion])}."

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, eq=False, slots=True)
class RuleSet:
    """Many rules. Bounds are values (infinite where open); value sets are marked over each attribute's values."""

    attributes: tuple[Attribute, ...]
    classes: tuple[Any, ...]
    named: Bools
    low: Floats
    high: Floats
    members: tuple[Bools | None, ...]
    conclusions: Masks
    support: Ints
    rows: int
    target: str = "class"

    @classmethod
    def of(cls, table: ValueTable, at: Ints, conditions: Ints, conclusions: Masks, target: str = "class") -> Self:
        """From the conditions that the kernels found; the bounds of one attribute become one interval."""
        n, m = len(at) - 1, len(table.attributes)
        rule = np.repeat(np.arange(n), np.diff(at))
        named = np.zeros((n, m), dtype=bool)
        named[rule, conditions[:, 0]] = True
        low, high = np.full((n, m), -np.inf), np.full((n, m), np.inf)
        members: list[Bools | None] = []
        for j, a in enumerate(table.attributes):
            here = conditions[:, 0] == j
            if not a.ordered:
                held = np.ones((n, len(a.known)), dtype=bool)
                sets = table.members(j) if here.any() else held
                for r, code in zip(rule[here], conditions[here, 2]):
                    held[r] &= sets[code]
                members.append(held)
                continue
            members.append(None)
            highs, lows = np.unique(table.high[j]), np.unique(table.low[j])
            for side, cuts, pick, bounds in (
                (kernels.UP, highs, np.minimum, high),
                (kernels.DOWN, lows, np.maximum, low),
            ):
                these = here & (conditions[:, 1] == side)
                pick.at(bounds[:, j], rule[these], cuts[conditions[these, 2]])
        support = kernels.count_supports(table.coded, at, conditions)
        return cls(
            table.attributes, table.classes, named, low, high, tuple(members), conclusions, support, table.rows, target
        )

    @classmethod
    def joined(cls, parts: Sequence[RuleSet]) -> RuleSet:
        """Several sets of rules of one table, one after the other."""
        members = tuple(
            None if first is None else np.concatenate([p.members[j] for p in parts])
            for j, first in enumerate(parts[0].members)
        )
        fields = ("named", "low", "high", "conclusions", "support")
        stacked: dict[str, Any] = {f: np.concatenate([getattr(p, f) for p in parts]) for f in fields}
        return replace(parts[0], members=members, **stacked)

    def take(self, rules: Any) -> Self:
        """Some of the rules."""
        picked = np.arange(len(self))[rules]
        members = tuple(None if x is None else x[picked] for x in self.members)
        fields = ("named", "low", "high", "conclusions", "support")
        return replace(self, members=members, **{f: getattr(self, f)[picked] for f in fields})

    def publishable(self) -> Self:
        """The same rules, with no class and no value that none of them speaks of: those may be one person's."""
        told = int(np.bitwise_or.reduce(self.conclusions)) if len(self) else 0
        kept = [i for i in range(len(self.classes)) if told >> i & 1]
        masks = np.zeros(len(self), dtype=self.conclusions.dtype)
        for new, old in enumerate(kept):
            masks |= ((self.conclusions >> np.uint64(old)) & np.uint64(1)) << np.uint64(new)
        attributes: list[Attribute] = []
        members: list[Bools | None] = []
        for j, (a, held) in enumerate(zip(self.attributes, self.members)):
            named = self.named[:, j]
            if held is None and (named.any() or not a.known):
                attributes.append(a)
                members.append(None)
                continue
            if held is None:
                a, held = replace(a, ordered=False), np.zeros((len(self), len(a.known)), dtype=bool)
            used = np.flatnonzero(held[named].any(axis=0))
            attributes.append(replace(a, known=tuple(a.known[i] for i in used)))
            members.append(held[:, used])
        return replace(
            self,
            attributes=tuple(attributes),
            classes=tuple(self.classes[i] for i in kept),
            members=tuple(members),
            conclusions=masks,
        )

    def __len__(self) -> int:
        return len(self.conclusions)

    def __iter__(self) -> Iterator[Rule]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Rule:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        cells, words = {}, []
        for j in np.flatnonzero(self.named[i]):
            a, member = self.attributes[j], self.members[j]
            low, high = float(self.low[i, j]), float(self.high[i, j])
            cells[a.name] = a.cell(low, high) if member is None else a.subset(member[i])
            words.append(_describe_interval(a, low, high) if member is None else _describe_subset(a, member[i]))
        return Rule(
            Region(cells),
            list_labels(int(self.conclusions[i]), self.classes),
            int(self.support[i]),
            int(self.support[i]) / max(self.rows, 1),
            " and ".join(words),
            self.target,
        )

    @property
    def specificity(self) -> Ints:
        """How many attributes each rule names."""
        named: Ints = self.named.sum(axis=1).astype(np.int64)
        return named

    def to_frame(self) -> pd.DataFrame:
        """One row per rule: condition, conclusion, support, strength, specificity."""
        found = list(self)
        return pd.DataFrame(
            {
                "condition": [r.condition for r in found],
                "conclusion": [" or ".join(cell_text(c) for c in r.conclusion) for r in found],
                "support": [r.support for r in found],
                "strength": [r.strength for r in found],
                "specificity": [r.specificity for r in found],
            }
        )

    def to_text(self) -> str:
        """The rules as sentences, one per line."""
        return "\n".join(f"{r.sentence} ({r.support} row{'' if r.support == 1 else 's'})" for r in self)

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain JSON data; days are dates, or the months that they begin or end, as in the sentences."""
        dated = {a.name: a for a in self.attributes if a.told != "number"}
        return {
            "target": self.target,
            "classes": [cell_to_json(c) for c in self.classes],
            "rules": [
                {
                    "if": {n: _to_json(c, dated.get(n)) for n, c in r.region.cells.items()},
                    "then": [cell_to_json(c) for c in r.conclusion],
                    "support": r.support,
                    "strength": r.strength,
                    "specificity": r.specificity,
                    "sentence": r.sentence,
                }
                for r in self
            ],
        }

    def __repr__(self) -> str:
        return f"RuleSet({len(self)} rules for {self.target})"


def list_labels(mask: int, classes: Sequence[Any]) -> tuple[Any, ...]:
    """The classes of a mask."""
    return tuple(c for i, c in enumerate(classes) if mask >> i & 1)


def _to_json(cell: Any, dated: Attribute | None) -> Any:
    """A cell as plain JSON data; JSON knows no infinity, so an open side is null."""
    if not isinstance(cell, pd.Interval):
        return cell_to_json(cell) if dated is None else iso(float(cell))
    ends = {"from": cell.left, "to": cell.right}
    if dated is None:
        return {side: None if np.isinf(v) else v for side, v in ends.items()}
    return {side: _tell_day(dated, float(v)) or None for side, v in ends.items()}


def _join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _describe_interval(a: Attribute, low: float, high: float) -> str:
    if a.known:
        low, high = max(low, 0.0), min(high, len(a.known) - 1.0)
        ends = [cell_text(a.known[int(v)]) for v in (low, high)]
        bottom, top = low <= 0, high >= len(a.known) - 1
    elif a.told != "number":
        ends, bottom, top = [_tell_day(a, v) for v in (low, high)], bool(np.isinf(low)), bool(np.isinf(high))
    else:
        ends = list(range_ends(low, high)) if low < high else [cell_text(low)] * 2
        bottom, top = bool(np.isinf(low)), bool(np.isinf(high))
    if low == high or (a.told == "month" and ends[0] == ends[1]):
        return f"{a.name} is {ends[0]}"
    if bottom:
        return f"{a.name} is at most {ends[1]}"
    return f"{a.name} is at least {ends[0]}" if top else f"{a.name} is from {ends[0]} to {ends[1]}"


def _tell_day(a: Attribute, day: float) -> str:
    """A bound of days as a date, or as the month that begins or ends with it."""
    return "" if np.isinf(day) else iso(day)[: 7 if a.told == "month" else None]


def _describe_subset(a: Attribute, member: Bools) -> str:
    return f"{a.name} is {_join_words([cell_text(a.known[i]) for i in np.flatnonzero(member)])}"
