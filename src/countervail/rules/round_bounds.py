"""Round bounds: cuts of a column of numbers that point at nobody, for rules that are told to others.

Between two neighbouring cuts, below the first and above the last stand `least` rows at least; and each cut is said by a
number that nobody has, or that as many rows share. Of the cuts that could follow the one before, the roundest is taken.
The decision page: docs/decisions/rule-bounds.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from countervail.core.arrays import Floats, Ints
from countervail.rules.ruleset import RuleSet
from countervail.rules.values import Attribute, Bools, ValueTable

FLOOR = 10  # people who share a number that is told, whatever k is
_EPOCH = date(1970, 1, 1).toordinal()
_CALENDAR = ((12, 10), (12, 5), (12, 1), (3, 1), (1, 1))  # months from January, in every so many years


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a column may be cut: whoever is below has at most `high`, whoever is above at least `low`."""

    high: float
    low: float
    step: float


@dataclass(frozen=True, eq=False, slots=True)
class RoundBounds:
    """The attributes as they are told, and of the ordered ones the ends of their bins."""

    attributes: tuple[Attribute, ...]
    low: tuple[Floats | None, ...]
    high: tuple[Floats | None, ...]

    def of(self, rules: RuleSet) -> RuleSet:
        """Rules over bins, told by the ends of these."""
        low, high = rules.low.copy(), rules.high.copy()
        for j, (first, last) in enumerate(zip(self.low, self.high)):
            if first is None or last is None:
                continue
            below, above = np.isfinite(rules.low[:, j]), np.isfinite(rules.high[:, j])
            low[below, j] = first[rules.low[below, j].astype(np.intp)]
            high[above, j] = last[rules.high[above, j].astype(np.intp)]
        return replace(rules, attributes=self.attributes, low=low, high=high)


def bin_numbers(table: ValueTable, k: int, most: int = 1) -> tuple[ValueTable, RoundBounds]:
    """An ordinary table whose ordered columns are numbers of bins, and what these are called.

    `most`: the rows that one person has at most; ten people are sure to be in ten times as many. Of the conditions
    that name several labels, those with a label of fewer than `k` rows are gone.
    """
    values = table.low.copy()
    attributes, sets = list(table.attributes), list(table.sets)
    lows: list[Floats | None] = [None] * len(attributes)
    highs: list[Floats | None] = [None] * len(attributes)
    for j, a in enumerate(table.attributes):
        if not a.ordered:
            sets[j] = _without_rare(table, j, k)
            continue
        held, place = np.unique(table.low[j], return_inverse=True)
        rows = np.bincount(place.ravel(), table.weight).astype(np.int64)
        cuts = find_cuts(held, rows, a, k if a.known else max(k, FLOOR * most))
        low, high = np.array([-np.inf, *(c.low for c in cuts)]), np.array([*(c.high for c in cuts), np.inf])
        values[j] = np.searchsorted(low, table.low[j], side="right") - 1
        whole = a.whole and all(float(v).is_integer() for c in cuts for v in (c.low, c.high))
        attributes[j] = replace(a, whole=whole, told="month" if a.told == "day" else a.told)
        lows[j], highs[j] = low, high
    binned = table.with_values(values, tuple(sets))
    return binned, RoundBounds(tuple(attributes), tuple(lows), tuple(highs))


def tell_common(rules: RuleSet, table: ValueTable, k: int) -> RuleSet:
    """The rules whose conclusions name no class of fewer than `k` rows."""
    bits = np.uint64(1) << np.arange(len(table.classes), dtype=np.uint64)
    rows = np.array([int(table.weight[(table.decisions & bit) != 0].sum()) for bit in bits])
    rare = np.bitwise_or.reduce(bits[rows < k], initial=np.uint64(0))
    return rules.take((rules.conclusions & rare) == np.uint64(0))


def _without_rare(table: ValueTable, j: int, k: int) -> Bools | None:
    """The value sets of a column of labels but those of several that name a rare one; they stand behind the others."""
    sets = table.sets[j]
    if sets is None:
        return None
    rows = np.bincount(table.low[j].astype(np.intp), table.weight, sets.shape[1])
    kept: Bools = sets[(sets.sum(axis=1) == 1) | ~(sets & (rows < k)).any(axis=1)]
    return kept


def find_cuts(values: Floats, rows: Ints, a: Attribute, least: int) -> list[Cut]:
    """The cuts of a column whose distinct values (ascending) so many rows have each."""
    below = np.cumsum(rows)
    every, done, i = int(below[-1]), 0, 0
    cuts: list[Cut] = []
    best: tuple[Cut, int] | None = None  # the roundest cut since the bin was full, and the value below it
    while i < len(values) - 1 and every - int(below[i]) >= least:
        if int(below[i]) - done >= least:
            found = _cut(float(values[i]), float(values[i + 1]), bool(rows[i] >= least), bool(rows[i + 1] >= least), a)
            if found is not None and (best is None or found.step > best[0].step):
                best = (found, i)
        if best is not None and int(below[i]) - done >= 2 * least:
            cuts.append(best[0])
            i, done, best = best[1], int(below[best[1]]), None
        i += 1
    return cuts if best is None else [*cuts, best[0]]


def _cut(v: float, w: float, many_v: bool, many_w: bool, a: Attribute) -> Cut | None:
    """The roundest way to say that a column is cut between two neighbours; None where there is none."""
    if a.told == "day":
        return _month(int(v), int(w))
    if a.whole or a.known:
        low, high = int(v) + (1 if many_v else 2), int(w) - (0 if many_w else 1)
        if low <= high:
            step = next(s for s in _steps(high - low + max(abs(low), abs(high), 1)) if high // s * s >= low)
            at = high // step * step
            return Cut(at - 1, at, step)
        return None if a.known else Cut(v + 0.5, v + 0.5, 0.5)
    found = _between(v, w)
    return Cut(v, w, w - v if found is None else found.step) if many_v and many_w else found


def _steps(most: int) -> list[int]:
    """1, 2, 5, 10, 20, ... in falling order."""
    return [m * 10**e for e in range(len(str(most)), -1, -1) for m in (5, 2, 1)]


def _between(v: float, w: float) -> Cut | None:
    """The roundest number strictly between two; None where floats hold none."""
    top = math.floor(math.log10(max(abs(v), abs(w), w - v))) + 1
    for e in range(top, math.floor(math.log10(w - v)) - 3, -1):
        for m in (5, 2, 1):
            step = m * 10.0**e
            n = math.floor(v / step) + 1
            at = float(n * m * 10**e if e >= 0 else n * m / 10**-e)
            if v < at < w:
                return Cut(at, at, step)
    return None


def _month(v: int, w: int) -> Cut | None:
    """A month that begins after one day and not after another: the first of a decade or a year, if there is one."""
    last = date.fromordinal(w + _EPOCH)
    for months, years in _CALENDAR:
        month, year = (last.month - 1) // months * months + 1, last.year // years * years
        if year < 1:
            continue
        at = date(year, month, 1).toordinal() - _EPOCH
        if at > v:
            return Cut(at - 1, at, months * years)
    return None
