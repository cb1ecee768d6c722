"""From queries towards their neighbours, one column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints, Matrix, first_best, unlike
from countervail.core.constraints import Constraints
from countervail.core.distance import EPS
from countervail.core.encode import Encoder
from countervail.explain.autoencoder import AutoEncoder

if TYPE_CHECKING:
    from countervail.explain.nice import NICE


@dataclass(frozen=True, eq=False, slots=True)
class Walked:
    """Where queries ended: rows with the decisions and scores there. `done` have a wanted decision, or have arrived."""

    cells: Matrix
    after: Ints
    scores: Matrix
    done: Bools
    arrived: Bools

    def parted(self, n: int) -> list[Walked]:
        """In so many equal parts."""
        if n == 1:
            return [self]
        each, arrays = len(self.cells) // n, [getattr(self, f.name) for f in fields(self)]
        return [Walked(*(a[i * each : (i + 1) * each] for a in arrays)) for i in range(n)]


class Walk:
    """All open queries of a batch move towards their neighbours together: one model call per step.

    `movable` columns may be moved (all, unless told), and at most `max_changes` of the constraints. Values outside
    their allowed range move first, whatever they are. With several `rewards` everybody walks once by each of them: all
    by the first, then all by the next.
    """

    def __init__(
        self,
        nice: NICE,
        constraints: Constraints,
        encoder: Encoder,
        start: Matrix,
        goal: Matrix,
        wanted: Bools,
        movable: Bools | None = None,
        rewards: Sequence[str] = (),
    ) -> None:
        self.rewards, self.people, self.alike = rewards or (nice.reward,), len(start), True
        movable = np.ones(start.shape, dtype=bool) if movable is None else movable
        every = (start, goal, wanted, movable)
        if len(self.rewards) > 1:
            start, goal, wanted, movable = (np.concatenate([part] * len(self.rewards)) for part in every)
        self.nice, self.encoder, self.start, self.goal, self.wanted = nice, encoder, start, goal, wanted
        self.costs, self.movable = constraints.weights if constraints.costs else None, movable
        self.current = start.copy()
        outside = ~constraints.in_range(start)
        self.forced = outside.any(axis=1)
        self.current[outside] = goal[outside]
        most = start.shape[1] if constraints.max_changes is None else constraints.max_changes
        self.left: Ints = most - outside.sum(axis=1)  # how many columns may still move

    def run(self, scores: Matrix, decisions: Ints) -> Walked:
        """Walk until the decision is a wanted one, or there is nowhere left to go."""
        decision, ways = self.nice.decision_, len(self.rewards)
        self.scores, after = np.concatenate([scores] * ways), np.concatenate([decisions] * ways)
        if self.forced.any():  # values outside their allowed range move first
            frame = self.encoder.decode(self.current[self.forced])
            self.scores[self.forced] = decision.scores(frame)
            after[self.forced] = decision.decide(frame, self.scores[self.forced])
        self.plausible = "plausibility" in self.rewards
        self.errors = self._errors(self.current) if self.plausible else np.zeros(len(after))
        every = np.arange(len(after))
        open_ = np.flatnonzero(~self.wanted[every, after] & self._goes_on(every))
        while len(open_):
            after[open_] = self._step(open_)
            self.left[open_] -= 1
            # Who has arrived is done, even if the model answers differently to a batch of another size.
            open_ = open_[~self.wanted[open_, after[open_]] & self._goes_on(open_)]
        arrived = np.asarray(~unlike(self.current, self.goal).any(axis=1))
        done = (arrived | self.wanted[every, after]) & (self.left >= 0)
        return Walked(self.current, after, self.scores, done, arrived)

    def _ways(self, at: Ints) -> Bools:
        """Row x column: what may still be moved."""
        return unlike(self.current[at], self.goal[at]) & self.movable[at]

    def _goes_on(self, at: Ints) -> Bools:
        on: Bools = self._ways(at).any(axis=1) & (self.left[at] > 0)
        return on

    def _step(self, open_: Ints) -> Ints:
        """Move each open query by its best column; the new decisions."""
        local, column = np.nonzero(self._ways(open_))
        owner = open_[local]
        trial = self.current[owner]
        trial[np.arange(len(owner)), column] = self.goal[owner, column]
        # The first step is the same for every reward: the model is asked once.
        decision, each = self.nice.decision_, len(trial) // len(self.rewards) if self.alike else len(trial)
        frame, self.alike = self.encoder.decode(trial[:each]), False
        said, place = decision.scores(frame), np.arange(len(trial)) % max(each, 1)
        scores = said[place]
        errors = self._errors(trial[:each], frame)[place] if self.plausible else np.zeros(len(owner))
        best = first_best(local, self._rewards(owner, column, trial, scores, errors))
        self.current[open_], self.scores[open_], self.errors[open_] = trial[best], scores[best], errors[best]
        if decision.needs_call:
            return decision.decide(frame.iloc[place[best]])
        return decision.decide(frame, scores[best])

    def _rewards(self, owner: Ints, column: Ints, trial: Matrix, scores: Matrix, errors: Matrix) -> Matrix:
        gain = scores - self.scores[owner]
        for i, reward in enumerate(self.rewards):
            mine = slice(*np.searchsorted(owner, (i * self.people, (i + 1) * self.people)))
            if reward == "proximity":
                gain[mine] /= (self._steps(owner[mine], trial[mine]) + EPS)[:, None]
            elif reward == "plausibility":
                gain[mine] *= (self.errors[owner[mine]] - errors[mine])[:, None]
        gain = np.where(self.wanted[owner] & ~np.isnan(gain), gain, -np.inf)
        best: Matrix = gain.max(axis=1)
        if self.costs is not None:  # the same gain by a dear column is worth less, the same loss counts for more
            cost = self.costs[column]
            best = np.where(best > 0, best / cost, best * cost)
        return best

    def _steps(self, owner: Ints, trial: Matrix) -> Matrix:
        """How much farther from its start each trial is than its owner was before."""
        heom, start = self.nice.heom_, self.start[owner]
        step: Matrix = heom.between(start, trial) - heom.between(start, self.current[owner])
        return step

    def _errors(self, rows: Matrix, frame: pd.DataFrame | None = None) -> Matrix:
        measure = self.nice.auto_encoder_
        if isinstance(measure, AutoEncoder):
            return measure.errors(rows)
        frame = self.encoder.decode(rows) if frame is None else frame
        return np.array(measure(frame), dtype=float).reshape(len(rows))
