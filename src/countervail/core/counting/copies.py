"""Rows that are equal in every column, where nobody is named: several people, or one person several times?

What is done about them, and why: docs/decisions/equal-rows.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats, Ints, number_columns, number_rows

_COPIES = 0.2  # share of rows with an equal one in their class, beyond what chance gives, from which they seem copied
_COVERED = 0.3  # of what chance leaves open, a column must follow from all others, where rows were repeated
_LIFT, _OFTEN = 10, 0.1  # or be equal so many times as often as by chance, and in this share of pairs
_ENOUGH = 10  # different rows, each of them there equally often
_UNLIKELY = -9.0  # decimal logarithm of a chance that is none


@dataclass(frozen=True, eq=False, slots=True)
class EqualRows:
    """How many rows are equal to another one in every column, which (`content`), and whether they seem copied."""

    equal: int
    content: Ints
    copied: bool

    @classmethod
    def of(cls, frame: pd.DataFrame, quasi: Sequence[str]) -> EqualRows:
        """Those of a table of people, or of a published one; identifiers must have been left out."""
        start = np.zeros(len(frame), dtype=np.int64)
        classes = number_rows([start, *number_columns(frame, list(quasi))])
        others = frame[[n for n in frame.columns if n not in quasi]]
        content = number_rows([classes, *number_columns(others, list(others.columns))])
        equal = int((np.bincount(content)[content] > 1).sum())
        copied = equal > 0 and seem_copied(others, pd.factorize(classes)[0].astype(np.int64))
        return cls(equal, content, copied)

    @property
    def first(self) -> Ints:
        """One row of each content."""
        return np.unique(self.content, return_index=True)[1].astype(np.int64)

    def least(self, groups: Ints) -> int:
        """How many people the smallest group (numbered from 0; -1: none) holds, if equal rows are one person's."""
        inside = groups >= 0
        pairs = pd.DataFrame({"group": groups[inside], "content": self.content[inside]}).drop_duplicates()
        return int(pairs["group"].value_counts().min()) if len(pairs) else 0

    @property
    def words(self) -> str:
        """What was seen, without a judgement."""
        return f"{self.equal:,} rows are equal to another one in every column"


def seem_copied(frame: pd.DataFrame, classes: Ints) -> bool:
    """Whether rows of one class are equal far more often than their contents, seen elsewhere, explain.

    In a table of people, two rows of a class are equal if they happen to share everything else: about as often as with
    rows of other classes. In a table in which rows were repeated, the equal one stands in the same class; and whichever
    column is covered, rows that are equal in the others are equal there too, which columns that follow from the class
    alone do not explain. Where few contents exist, everybody has a twin anyway: then it tells that every row is there
    ten times, say, and none once.
    """
    columns = number_columns(frame, list(frame.columns))
    content = number_rows([np.zeros(len(frame), dtype=np.int64), *columns])
    mine, everywhere = np.bincount(classes)[classes], np.bincount(content)[content]
    inside = number_rows([classes, content])
    twins = np.bincount(inside)[inside]
    outside: Floats = np.divide(
        everywhere - twins, len(frame) - mine, out=np.zeros(len(frame)), where=mine < len(frame)
    )
    chance = 1 - (1 - outside) ** (mine - 1)
    if (twins > 1).mean() - chance.mean() > _COPIES and _all_follow(classes, columns):
        return True
    times = np.bincount(inside)
    same = min(float(outside.mean()) + 1 / len(frame), 1.0)  # how likely two rows are equal without being one
    often = int(np.gcd.reduce(times)) > 1 and len(times) >= _ENOUGH
    return bool(len(frame.columns)) and often and (len(frame) - len(times)) * np.log10(same) < _UNLIKELY


def _all_follow(classes: Ints, columns: list[Ints]) -> bool:
    """Whether each column agrees far more often than by chance where the class and all other columns do."""
    every, pairs = _pairs(number_rows([classes, *columns])), len(classes) * (len(classes) - 1) / 2
    for j, column in enumerate(columns):
        chance = _pairs(column) / pairs
        if chance == 1:
            continue
        rest = _pairs(number_rows([classes, *columns[:j], *columns[j + 1 :]]))
        found = every / rest if rest else 0.0
        if found - chance <= _COVERED * (1 - chance) and found < max(_OFTEN, _LIFT * chance):
            return False
    return True


def _pairs(key: Ints) -> float:
    """How many pairs of rows have the same number."""
    counts = np.bincount(key).astype(float)
    return float((counts * (counts - 1)).sum() / 2)
