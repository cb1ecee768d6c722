"""What Mondrian's release would look like to each person, had they not been there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from countervail.core.canonical import code_values
from countervail.core.hierarchy import Hierarchy
from countervail.core.protocols import Agreement
from countervail.core.region import Regions
from countervail.core.table import Table
from countervail.protect._classes import Classes
from countervail.protect.mondrian.basic_cuts import first_ranges
from countervail.protect.mondrian.columns import ORDERED, Attributes, Quasi, deduplicate, describe, encode, parts_of
from countervail.protect.mondrian.constraints import FITS, CutConstraints, Ints, Requirements, first_broken
from countervail.protect.mondrian.cuts import make_buckets, make_ints, make_longs, make_secrets
from countervail.protect.mondrian.grow import count_codes, make_facts, make_trees
from countervail.protect.mondrian.without_one_kernels import Basic, Kinds, Task, add_leaves, explore, make_leaves

# Rows times people asked about: so few are counted by runs without each, for which nothing more is compiled.
_SMALL: Final = 20_000
Refit = Callable[[Table], tuple[Regions, Ints]]  # the regions and each row's, of a run on another table


@dataclass(frozen=True, eq=False, slots=True)
class WithoutEach:
    """Counts of agreement for Mondrian with and without each row, in one go.

    Rows that alone hold an end of a column's range, or a category, change how losses are measured everywhere: the
    few of them are taken away one by one, by `refit`.
    """

    table: Table
    quasi: tuple[Quasi, ...]
    codes: Ints
    data: Attributes
    rules: CutConstraints
    secret: Ints
    values: tuple[Any, ...]
    part: Ints  # the tables that are cut one by one: all rows 0, or their class
    group_labels: bool
    gain: bool
    basic: bool
    refit: Refit

    def survives(self) -> bool:
        """Whether every part of the table keeps its promise as one class, whoever is missing."""
        n_secret = len(self.rules.share)
        for p in range(int(self.part.max()) + 1):
            inside = self.secret[self.part == p] if n_secret > 1 else np.zeros((self.part == p).sum(), np.int32)
            classes = np.bincount(inside, minlength=n_secret)
            for s in np.flatnonzero(classes):
                less = classes - (np.arange(n_secret) == s)
                if first_broken(np.arange(n_secret, dtype=np.int32), less, self.rules) != FITS:
                    return False
        return True

    def agreement(self, rows: NDArray[np.int64]) -> Agreement:
        """How many released rows agree with each of these, by column and sensitive value, with and without them."""
        if len(rows) * len(self.codes) <= _SMALL:
            everybody = self._counted(rows, np.arange(len(self.codes)))
            return Agreement(everybody, np.concatenate([self._without(int(row)) for row in rows]))
        n_secret, n_parts = len(self.values), int(self.part.max()) + 1
        joint = self.part * np.int32(n_secret) + self.secret
        codes, secret, counts, which = deduplicate(self.codes, joint, self.data.sizes, n_parts * n_secret)
        who, slot = np.unique(which[rows], return_inverse=True)
        place = np.full(len(codes), -1, np.int32)
        place[who] = np.arange(len(who))
        kinds = Kinds(np.ascontiguousarray(codes), counts, secret % np.int32(n_secret), place)
        counted = [c[slot] for c in self._count(kinds, secret // n_secret)]
        for at in np.flatnonzero(self.alone()[rows]):
            counted[1][at] = self._without(int(rows[at]))[0]
        return Agreement(*counted)

    def _count(self, kinds: Kinds, part: Ints) -> tuple[Ints, Ints]:
        """Counts for the kinds of rows that have a place, part by part of the table."""
        n, q = kinds.codes.shape
        asked, data, rules = kinds.place >= 0, self.data, self.rules
        shape = (int(asked.sum()), q, len(self.values))
        with_person, without_person = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        leaves = make_leaves(n + 1, data, len(self.values), groups=self.group_labels)
        trees, secrets, low, high = make_trees(data), None, *first_ranges(kinds.codes, data)
        task = Task(
            make_facts(data),
            data.positions,
            data.span,
            rules.k,
            len(rules.share),
            self.gain and not self.basic,
            make_longs(count_codes(data)),
            make_ints(count_codes(data)),
            make_buckets(count_codes(data)),
        )
        basic, strict = None, None if self.basic else True
        if self.basic:
            widest = int(data.sizes[data.kind != ORDERED].max(initial=2))
            basic = Basic(data, rules, np.empty((widest, q), np.int32), np.empty((widest, q), np.int32))
        else:
            secrets = make_secrets(kinds.secret, rules, count_codes(data))
            low = high = np.zeros((1, 0), np.int32)
        end = 0
        for p in range(int(part.max()) + 1):
            rows, start = np.flatnonzero(part == p).astype(np.int32), end
            given = (kinds, task, trees, secrets, basic, strict, leaves, without_person)
            end = explore(start, rows, asked[rows], low[0], high[0], *given)
            others = np.flatnonzero(asked & (part != p)).astype(np.int32)
            add_leaves(start, end, others, kinds, task.facts, leaves, without_person)
        add_leaves(0, end, np.flatnonzero(asked).astype(np.int32), kinds, task.facts, leaves, with_person)
        return with_person, without_person

    def alone(self) -> NDArray[np.bool_]:
        """Which rows alone hold a category, or an end of an ordered column's range."""
        out = np.zeros(len(self.codes), dtype=bool)
        for j, q in enumerate(self.quasi):
            held = np.bincount(self.codes[:, j], minlength=q.size)
            if q.kind == ORDERED:
                there = np.flatnonzero(held[: len(q.values)])
                ends = [*there[:1], *there[-1:], *([q.size - 1] if q.missing else [])]
                out |= np.isin(self.codes[:, j], [v for v in ends if held[v] == 1])
            else:
                out |= held[self.codes[:, j]] == 1
        return out

    def _without(self, row: int) -> Ints:
        """The counts of a run without one row, made anew."""
        return self._counted(np.array([row]), np.delete(np.arange(len(self.codes)), row))

    def _counted(self, rows: NDArray[np.int64], among: NDArray[np.int64]) -> Ints:
        """Row x column x sensitive value: how many of the others agree with each row in a run on these others."""
        regions, cell_of = self.refit(self.table.take(among))
        held = np.zeros((len(regions), len(self.values)), np.int64)
        np.add.at(held, (cell_of, self.secret[among]), 1)
        people: pd.DataFrame = self.table.frame.iloc[rows]
        inside = [axis.covers(people[axis.name]).T for axis in regions.axes]
        return np.stack([i @ held for i in inside], axis=1).astype(np.int32)


class _CutTable(Protocol):
    """What is asked of a protector that cuts tables."""

    labels: str
    quasi_: list[Quasi]
    by_: str | None
    hierarchies_: dict[str, Hierarchy]

    def _learn(self, table: Table) -> Classes: ...

    def _requirements(self) -> Requirements: ...


def without_each(protector: _CutTable, table: Table, sensitive: str, *, gain: bool, basic: bool) -> WithoutEach | None:
    """The counts of a protector that records nowhere; None if the column is no secret, or somebody is needed for k.

    None too where two trees may be grown of which one is kept.
    """
    if sensitive not in table.schema or table.schema[sensitive].role in ("identifier", "quasi"):
        return None
    fitted = protector
    fitted._learn(table)

    def refit(others: Table) -> tuple[Regions, Ints]:
        classes = clone(fitted)._learn(others)
        return classes.regions, classes.of

    groups = fitted.labels == "hierarchy"
    if groups and gain and any(q.hierarchy is not None and q.missing for q in fitted.quasi_):
        return None  # with their gaps set apart or not: which tree is kept may change with each person
    _, codes = encode(table, {q.column.name: q.hierarchy for q in fitted.quasi_ if q.hierarchy is not None})
    data = describe(fitted.quasi_, tree_loss=groups)
    secret, kinds = code_values(table.frame[sensitive], table.schema[sensitive].values)
    _, constraints = fitted._requirements().read(table, fitted.hierarchies_)
    part = np.zeros(len(table), np.int32)
    for number, (_, rows) in enumerate(parts_of(table, fitted.by_)):
        part[rows] = number
    quasi, values = tuple(fitted.quasi_), tuple(kinds)
    found = WithoutEach(
        table, quasi, codes, data, constraints, secret.astype(np.int32), values, part, groups, gain, basic, refit
    )
    return found if found.survives() else None
