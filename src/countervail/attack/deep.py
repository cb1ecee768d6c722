"""The deep attack: where the shallow one fails, look for released rows that agree with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Knowledge, Scored
from countervail.attack.result import rate, right_cells
from countervail.attack.shallow import Attacked, Shallow, by_values, possible, single_values
from countervail.attack.shared.released import Released
from countervail.core.arrays import Bools
from countervail.core.errors import bad_parameter
from countervail.core.region import Regions
from countervail.core.stats import Estimate
from countervail.core.table import Table


class Deep(Shallow):
    """Among the rows that fit what is known, find the fewest compatible ones that single out a value.

    The guess stands if no fitting row without that value is compatible with them, and no other set of such rows
    singles out another value.

    Parameters
    ----------
    attacked : {"conditions", "decision"}
        Look for the other features, or for the target.
    known : int
        How many features of a person are known; every combination of that many is tried.
    budget : int
        How many sets of rows one search may look at; where it is spent the attack gives up.
    n_targets : int, optional
        How many people are attacked; all by default. The search is meant for small tables.
    random_state : int
        Which ones, if not all.

    Notes
    -----
    *Threat model*: that of `Shallow`, with patience. `members` counts what either attack finds;
    `detail["deep only"]` what this one adds.

    References
    ----------
    Inuiguchi, Ichida, Torra: Data anonymization with imprecise rules and its performance evaluations (2019).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_evaluation")
    >>> release = cv.KCommonPatterns(k=2, random_state=0).fit(table).protect(table)
    >>> result = cv.attack.Deep("decision").run(release, table, control=table)
    >>> round(result.detail["shallow"].value, 2), round(result.detail["deep only"].value, 2)
    (0.56, 0.33)
    """

    name: ClassVar[str] = "deep"

    def __init__(
        self,
        attacked: Attacked = "conditions",
        *,
        known: int = 2,
        budget: int = 200_000,
        n_targets: int | None = None,
        random_state: int = 0,
    ) -> None:
        super().__init__(attacked, known=known, n_targets=n_targets, random_state=random_state)
        self.budget = budget

    def details(self, release: Released, members: list[Scored]) -> dict[str, Estimate]:
        """What each of the two attacks finds."""
        shallow = Shallow(self.attacked, known=self.known)
        plain = [right_cells(shallow.guess(release, s.known), s.truth) for s in members]
        both = [s.right for s in members]
        return {
            "shallow": rate(np.concatenate(plain, axis=1)),
            "deep only": rate(np.concatenate([b & ~p for b, p in zip(both, plain)], axis=1)),
            "value combinations": by_values(members),
            "value combinations, shallow": by_values([Scored(s.known, s.truth, p) for s, p in zip(members, plain)]),
        }

    def plans(self, table: Table) -> Any:
        """Every combination of known features, against the other features or the target."""
        if not isinstance(self.budget, (int, np.integer)) or self.budget < 1:
            raise bad_parameter("Deep", "budget", "a whole number of at least 1", self.budget)
        return super().plans(table)

    def _column(self, sets: Regions, fits: Bools, kinds: pd.DataFrame, name: str, known: Knowledge) -> Any:
        out = single_values(sets, fits, name, known)
        values = known.domains[name]
        target = _masks(sets, name, values)
        if target is None:
            return out
        names = [n for n in known.domains if n != name]
        others = [m for n in names if (m := _masks(sets, n, known.domains[n])) is not None]
        rows = list(zip(target, *others))
        found: dict[bytes, int | None] = {}  # by the rows that fit: many people have the same
        for i in np.flatnonzero(out == None):  # noqa: E711 -- elementwise
            fitting = fits[:, i].tobytes()
            if fitting not in found:
                matching = list(dict.fromkeys(rows[r] for r in np.flatnonzero(fits[:, i])))
                found[fitting] = deep_value(matching, int(self.budget))
            if (value := found[fitting]) is not None:
                out[i] = values[value]
        return out


def _masks(sets: Regions, name: str, values: Any) -> list[int] | None:
    """Each released row's value set of one column, as bits over the values."""
    can = possible(sets, name, values)
    if can is None:
        return None
    packed = np.packbits(can, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


Row = tuple[int, ...]  # bits of the column attacked, then of the columns that must be compatible


@dataclass(slots=True)
class _Search:
    """A search over sets of rows, with what is left to spend."""

    rows: list[Row]
    left: int

    def smallest(self) -> Row | None:
        """What the fewest compatible rows that single out a value have in common; None without such a set."""
        for size in range(1, len(self.rows) + 1):
            found, deeper = self._grow(0, None, size)
            if found is not None or not deeper:
                return found
        return None

    def _grow(self, start: int, common: Row | None, left: int) -> tuple[Row | None, bool]:
        """Add `left` more rows; also whether larger sets are worth a look."""
        deeper = False
        for i in range(start, len(self.rows)):
            self.left -= 1
            if self.left < 0:
                return None, False
            row = self.rows[i]
            joint = row if common is None else tuple(a & b for a, b in zip(common, row))
            # Every member must leave something in each column, and take something away in the one attacked.
            if 0 in joint or (common is not None and joint[0] == common[0]):
                continue
            if joint[0] & (joint[0] - 1) == 0:
                if left == 1:
                    return joint, False
            elif left > 1:
                found, more = self._grow(i + 1, joint, left - 1)
                deeper |= more
                if found is not None:
                    return found, False
            else:
                deeper = True
        return None, deeper


def deep_value(rows: list[Row], budget: int) -> int | None:
    """Steps d1 to d4 on the rows that match what is known: the number of the value singled out, or None."""
    search = _Search(rows, budget)
    found = search.smallest()
    if found is None or search.left < 0:
        return None
    against = [row for row in rows if not row[0] & found[0]]
    if any(all(a & b for a, b in zip(row[1:], found[1:])) for row in against):
        return None
    rival = _Search(against, budget)
    if rival.smallest() is not None or rival.left < 0:
        return None
    return found[0].bit_length() - 1
