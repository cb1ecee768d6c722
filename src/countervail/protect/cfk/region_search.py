"""Regions around the counterfactual of a plain explainer: what the exact search and GRASP share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix, distinct_rows
from countervail.core.constraints import Constraints
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder, require_numbers
from countervail.core.errors import check_count
from countervail.core.region import Region
from countervail.core.table import Table
from countervail.explain.answering import Aim, Answers, Queries
from countervail.explain.native import NativeExplainer
from countervail.explain.nice import NICE
from countervail.protect.cfk.base import SAMPLED, SearchSettings
from countervail.protect.cfk.moves.allowed import Allowed
from countervail.protect.cfk.moves.amounts import Amounts, Rounding
from countervail.protect.cfk.moves.project import JoinedOwners, KnownRegions, OwnedRegions, RankedOwners, way_left
from countervail.protect.cfk.moves.relax import advised
from countervail.protect.cfk.moves.search import MoveSearch, MovesFound, moved_answers, whole_cells
from countervail.protect.cfk.moves.sets import PROJECTED, AskedModel
from countervail.protect.cfk.space import Boxes, Space

_PASSED_OVER = "Nearer counterfactuals lead to no such answer."

Favourable = Callable[[Matrix], Bools]  # which coded feature rows get the desired decision


@dataclass(frozen=True, eq=False, slots=True)
class Solved:
    """One region per centre; `cost` is infinite where there is none."""

    boxes: Boxes
    cost: Floats
    bound: Floats
    pureness: Floats
    sampled: Bools

    @property
    def found(self) -> Bools:
        """Which centres have a region."""
        return np.isfinite(self.cost)


class RegionSearch(BaseEstimator, ABC):
    """The nearest counterfactuals, training rows, and a region around each. A subclass writes `solve` and `tried`.

    All its parameters count something.
    """

    cell_budget: int

    def fit(self, settings: SearchSettings, table: Table, model: Any) -> Self:
        """Fit the explainer underneath, and code the quasi-identifiers."""
        for name, value in self.get_params(deep=False).items():
            check_count(type(self).__name__, name, value)
        self.settings_ = settings
        names, way = table.schema.names("quasi"), "Impute or drop them, or use search='groups'"
        require_numbers(table.frame[names], table.schema, settings.owner, "table", way)
        # What may be asked of people is for the moves, where there are any: whole rows would rarely be allowed.
        free = table if settings.reward == "none" else Table(table.frame, table.schema.without_actions())
        self.explainer_ = settings.native().fit(free, model)
        self.table_, self.schema_, self.encoder_ = table, table.schema, Encoder.fit(table)
        self.decision_, self.rows_ = self.explainer_.decision_, self.explainer_.rows_
        self.caveats_, self.heom_ = self.explainer_.caveats_, HEOM.fit(self.encoder_, self.rows_)
        self.space_ = Space.fit(table, self.encoder_, self.rows_, settings.weights, settings.owner)
        self.desired_ = Aim(self.decision_, settings.target, table.schema, settings.owner).aimed()
        self.constraints_ = settings.constraints(self.encoder_)
        quasi = np.isin(np.arange(self.rows_.shape[1]), self.space_.columns)
        self.amounts_, self.known_ = Amounts.of(self.encoder_, quasi, self.rows_), KnownRegions.of(self.space_)
        return self

    @property
    @abstractmethod
    def tried(self) -> int:
        """How many neighbours are tried before there is no answer."""

    @abstractmethod
    def solve(self, centres: Codes, rows: Matrix, salt: int = 0) -> Solved:
        """A region around each centre; `rows` hold the private values that go with it."""

    def answer(self, asked: Queries) -> Answers:
        """The fewest moves towards a near neighbour's region; without a reward, all of it."""
        return self._nearest(asked) if self.settings_.reward == "none" else self._moved(asked)

    def _moved(self, asked: Queries) -> Answers:
        """What must move towards the nearest neighbour's region, or the next one's where that is not enough."""
        n, owned = self.settings_.n, OwnedRegions(self)
        limits = self.constraints_ if asked.constraints is None else asked.constraints
        model = AskedModel(self.decision_, self.desired_, asked.encoder)
        rounding = Rounding(self.amounts_, Allowed(limits), asked.encoder, PROJECTED[self.settings_.reward])
        found = self._found(asked, owned, limits, n, model, rounding if self.settings_.amounts == "round" else None)
        answers, behind = Answers.nothing(np.repeat(asked.x, n, axis=0)), found.behind[found.behind >= 0]
        if len(behind):
            regions = owned.regions(behind)
            answers = moved_answers(answers, found, model, asked.encoder, regions, _PASSED_OVER)

        return advised(answers, n, limits, asked, partial(self._look, asked, owned, model))

    def _look(
        self, asked: Queries, owned: OwnedRegions, model: AskedModel, wanted: Sequence[tuple[Constraints, Ints]]
    ) -> list[MovesFound]:
        """What some of the queries would get under other constraints; all of them share their model calls."""
        model.again = True
        at, tried = [some for _, some in wanted], max(self.tried, self.settings_.neighbours)
        ends, whose = np.cumsum([len(some) for some in at])[:-1], np.unique(np.concatenate(at))
        ranks = self._ranks(asked.only(whose), tried)
        places = [np.searchsorted(whose, some) for some in at]
        search = MoveSearch(model, PROJECTED[self.settings_.reward], way_left, self.cell_budget, tried)

        def source(blocked: Bools) -> JoinedOwners:
            parts = zip(wanted, places, np.split(blocked, ends))
            return JoinedOwners(
                owned,
                [
                    RankedOwners(owned, Allowed(limits), asked.encoder, asked.x[some], ranks[place], own)
                    for (limits, some), place, own in parts
                ],
            )

        (found,) = search.find(asked.x[np.concatenate(at)], source)
        return found.parted(ends)

    def _found(
        self,
        asked: Queries,
        owned: OwnedRegions,
        constraints: Constraints,
        n: int,
        model: AskedModel,
        rounding: Rounding | None = None,
    ) -> MovesFound:
        tried = max(self.tried, self.settings_.neighbours)
        allowed, ranks = Allowed(constraints), self._ranks(asked, tried)
        search = MoveSearch(model, PROJECTED[self.settings_.reward], way_left, self.cell_budget, tried, rounding)
        source = partial(RankedOwners, owned, allowed, asked.encoder, asked.x, ranks)
        return MovesFound.side_by_side(search.find(asked.x, source, n))

    def _ranks(self, asked: Queries, n: int) -> Ints:
        """The nearest neighbours of each query; the model is not asked again by an explainer that aims alike."""
        explainer: Any = self.explainer_
        if isinstance(explainer, (NICE, NativeExplainer)) and explainer.target is self.settings_.target:
            return explainer.nearest_to(asked, n)
        near: Ints = explainer.nearest(asked.frame, n)
        return near

    def _nearest(self, asked: Queries) -> Answers:
        """Solve for the nearest neighbour of each query, then for the next one where no region was found."""
        ranks = self._ranks(asked, self.tried)
        answers = Answers.nothing(asked.x)
        boxes, rows = self.space_.no_boxes(len(asked)), np.zeros((len(asked), self.rows_.shape[1]))
        pureness, notes = np.full(len(asked), np.nan), [""] * len(asked)
        for rank in range(self.tried):
            open_ = np.flatnonzero(~answers.found & (ranks[:, rank] >= 0))
            if not len(open_):
                break
            near = self.rows_[ranks[open_, rank]]
            first, which = distinct_rows(near)
            solved = self.solve_rows(near[first])
            at, source = open_[solved.found[which]], which[solved.found[which]]
            answers.found[at], rows[at], pureness[at] = True, near[first][source], solved.pureness[source]
            boxes.put(at, solved.boxes, source)
            for a, s in zip(at, source):
                notes[a] = _note(rank, solved, int(s))
        at = np.flatnonzero(answers.found)
        if not len(at):
            return answers
        regions = self.space_.regions(boxes.take(at))
        after = self.decision_.decide(self.encoder_.decode(rows[at]))
        shown = partial(whole_cells, self.encoder_, rows[at], regions)
        part = Answers(rows[at], after, answers.found[at], None, pureness[at], [notes[a] for a in at], shown)
        return answers.filled(at, part)

    def whole(self, answers: Answers) -> Answers:
        """The neighbour behind each answer, all of it."""
        if answers.behind is None or not (answers.behind >= 0).any():
            return answers
        at = np.flatnonzero(answers.behind >= 0)
        owned, rows = OwnedRegions(self), self.rows_[answers.behind[at]]
        pureness, after = owned.solve(answers.behind[at]), self.decision_.decide(self.encoder_.decode(rows))
        shown = partial(whole_cells, self.encoder_, rows, owned.regions(answers.behind[at]))
        notes = [answers.notes[i] if answers.notes is not None else "" for i in at.tolist()]
        part = Answers(rows, after, np.ones(len(at), dtype=bool), None, pureness, notes, shown)
        return Answers.nothing(answers.cells).filled(at, part)

    @property
    def looks_at(self) -> int:
        """Of how many nearest neighbours an answer may be taken, but for what its note says."""
        return 1

    def solve_rows(self, rows: Matrix, salt: int = 0) -> Solved:
        """A region around each of some rows."""
        return self.solve(self.space_.codes_of(rows), rows, salt)

    def accepts(self, rows: Matrix) -> Bools:
        """Which coded rows get the desired decision."""
        wanted: Bools = self.desired_[self.decision_.decide(self.encoder_.decode(rows))]
        return wanted

    def region_of(self, rows: Matrix, salt: int = 0) -> list[frozenset[str]]:
        """For rows put in the counterfactual's place, the regions (as text) that the search could release."""
        solved = self.solve_rows(rows, salt)
        found = np.flatnonzero(solved.found)
        texts = dict(zip(found.tolist(), self.space_.regions(solved.boxes.take(found)).text()))
        return [frozenset([texts[i]]) if i in texts else frozenset() for i in range(len(rows))]

    def distance(self, queries: Matrix, rows: Matrix, regions: list[Region]) -> Matrix:
        """Query x row: the distance that the neighbour search uses; it does not look at regions.

        Nothing where an explainer goes by more than a distance of two rows.
        """
        apart = getattr(self.explainer_, "apart", None)
        away: Matrix = np.zeros((len(queries), len(rows))) if apart is None else apart(queries, rows)
        return away


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
