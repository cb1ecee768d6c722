"""What CF-K has found for a batch of queries, before it is released."""

from __future__ import annotations

import numpy as np

from countervail.core.encode import Matrix
from countervail.protect.cfk.exact import Solved
from countervail.protect.cfk.space import Bools, Boxes, Ints, Space

SAMPLED = "The share of combinations that hold was sampled."


class Answers:
    """What has been found for a batch of queries."""

    def __init__(
        self, now: Ints, already: Bools, found: Bools, rows: Matrix, boxes: Boxes, pureness: Matrix, notes: list[str]
    ) -> None:
        self.now, self.already, self.found = now, already, found
        self.rows, self.boxes, self.pureness, self.notes = rows, boxes, pureness, notes
        self.group = np.full(len(now), -1, dtype=np.int64)

    @classmethod
    def empty(cls, n: int, width: int, space: Space, now: Ints, already: Bools) -> Answers:
        """No answer yet."""
        q, v = len(space.sizes), space.positions.shape[1]
        boxes = Boxes(np.zeros((n, q), np.int64), np.zeros((n, q), np.int64), np.zeros((n, q, v), dtype=bool))
        return cls(now, already, np.zeros(n, dtype=bool), np.zeros((n, width)), boxes, np.full(n, np.nan), [""] * n)

    @classmethod
    def joined(cls, parts: list[Answers]) -> Answers:
        """Several batches as one."""
        boxes = Boxes(
            np.concatenate([p.boxes.low for p in parts]),
            np.concatenate([p.boxes.high for p in parts]),
            np.concatenate([p.boxes.member for p in parts]),
        )
        now, already, found, rows, pureness = (
            np.concatenate([getattr(p, field) for p in parts])
            for field in ("now", "already", "found", "rows", "pureness")
        )
        out = cls(now, already, found, rows, boxes, pureness, [n for p in parts for n in p.notes])
        out.group = np.concatenate([p.group for p in parts])
        return out

    def take(self, open_: Ints, distinct: Matrix, which: Ints, solved: Solved, rank: int) -> None:
        """Enter what was solved for the distinct counterfactuals of the open queries."""
        ok = solved.found[which]
        at, source = open_[ok], which[ok]
        self.found[at] = True
        self.rows[at] = distinct[source]
        self.boxes.low[at], self.boxes.high[at] = solved.boxes.low[source], solved.boxes.high[source]
        self.boxes.member[at], self.pureness[at] = solved.boxes.member[source], solved.pureness[source]
        for a, s in zip(at, source):
            self.notes[a] = _note(rank, solved, int(s))


def _note(rank: int, solved: Solved, i: int) -> str:
    """What the asker should know about how the region came about."""
    notes = []
    if rank > 0:
        notes.append("Nearer counterfactuals have no region in which every combination keeps the decision.")
    gap = float(solved.cost[i] - solved.bound[i])
    if gap > 1e-9 and solved.pureness[i] == 1:
        notes.append(f"The region is not proven minimal: its NCP is at most {gap:.2%} above the least possible.")
    if solved.sampled[i]:
        notes.append(SAMPLED)
    return " ".join(notes)
