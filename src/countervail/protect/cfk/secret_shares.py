"""l and t of the people in a region: how many sensitive values they have, and how far from everybody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.errors import bad_parameter
from countervail.core.guarantee.diversity import SLACK
from countervail.core.table import Table
from countervail.protect.cfk.base import SearchSettings
from countervail.protect.cfk.space import Boxes, Space


@dataclass(frozen=True, eq=False, slots=True)
class SecretShares:
    """The sensitive value of each row as a number, what share of everybody has each, and what is asked of regions."""

    codes: Ints
    shares: Floats
    l: float | None  # noqa: E741 -- the name the literature uses
    t: float | None

    @classmethod
    def of(cls, settings: SearchSettings, table: Table) -> Self | None:
        """What was asked for, if anything; missing is a value of its own."""
        if settings.l is None and settings.t is None:
            return None
        names = list(table.frame.columns)
        if settings.sensitive is None or settings.sensitive not in names:
            raise bad_parameter(settings.owner, "sensitive", f"one of the columns {names}", settings.sensitive)
        codes, found = pd.factorize(table.frame[settings.sensitive], use_na_sentinel=False)
        if settings.l is not None and settings.l > len(found):
            must = f"at most the number of values of '{settings.sensitive}'"
            raise bad_parameter(settings.owner, "l", must, settings.l)
        return cls(codes.astype(np.int64), np.bincount(codes) / len(codes), settings.l, settings.t)

    def failing(self, space: Space, boxes: Boxes) -> Bools:
        """Which regions hold too few values, or values that are distributed too differently."""
        failing = np.zeros(len(boxes), dtype=bool)
        for i in range(len(boxes)):
            people = np.bincount(self.codes[self._inside(space, boxes, i)], minlength=len(self.shares))
            if self.l is not None:
                failing[i] |= int((people > 0).sum()) < self.l
            if self.t is not None:
                failing[i] |= 0.5 * np.abs(people / max(people.sum(), 1) - self.shares).sum() > self.t + SLACK
        return failing

    def _inside(self, space: Space, boxes: Boxes, i: int) -> Bools:
        """The rows whose quasi-identifiers lie in a region."""
        inside = np.ones(len(space.tuples), dtype=bool)
        for j in range(len(space.sizes)):
            inside &= boxes.member[i, j, space.tuples[:, j]]
        rows: Bools = inside[space.row_tuple]
        return rows
