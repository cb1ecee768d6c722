"""CF-K as its authors' experiments ran it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Codes, Matrix
from countervail.core.guarantee import Guarantee, KAnonymity
from countervail.core.people import check_k, rows_per_person
from countervail.core.table import Table
from countervail.protect.cfk.base import FittedSearch, SearchSettings
from countervail.protect.cfk.cfk import RegionProtector
from countervail.protect.cfk.grasp import SAMPLES, Construction, Judged, count_eligible
from countervail.protect.cfk.region_search import RegionSearch, Solved
from countervail.protect.cfk.space import Boxes, Space


class GraspCFK(RegionProtector):
    """CF-K by GRASP with the quirks of the authors' experiments, for reproduction.

    Rows of the desired class are counted by their true labels, one more start is made than was asked for, the result of
    the local search is never taken, pureness is always sampled, and NCP is that of the rows found in a region.
    :class:`countervail.CFK` with `search="grasp"` is the search as the paper's text describes it.

    Parameters
    ----------
    k : int
        How many training rows every released region holds at least (the counterfactual's owner included).
    alpha, iterations : int
        Size of the list that a neighbour is drawn from, and number of restarts.
    weights : mapping, optional
        Weight of each quasi-identifier in NCP; they sum to one.
    target : "favourable", a label or several
        The decisions a counterfactual may lead to.

    Notes
    -----
    *Threat model*: someone with a register of everybody's quasi-identifiers who sees explanations. Whoever knows this
    code can often rule most people of a region out (docs/decisions/k-anonymity-register.md).

    References
    ----------
    Goethals, Sörensen, Martens: The privacy issue of counterfactual explanations: explanation linkage attacks (2023).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.published.GraspCFK(k=3, alpha=1, iterations=1).fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> e.guarantee.k
    3
    """

    name: ClassVar[str] = "published-grasp-cfk"

    def __init__(
        self,
        k: int = 10,
        *,
        alpha: int = 20,
        iterations: int = 3,
        weights: Mapping[str, float] | None = None,
        target: Any = "favourable",
    ) -> None:
        self.k = k
        self.alpha = alpha
        self.iterations = iterations
        self.weights = weights
        self.target = target

    def guarantee(self) -> Guarantee:
        """k-anonymity against someone with a register."""
        return KAnonymity(self.k, against="register")

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(k=3)]

    def _search(self, table: Table, model: Any) -> FittedSearch:
        check_k(self.k, table, self._owner)
        settings = SearchSettings(self._owner, self.k * rows_per_person(table), self.target, self.weights)
        return PublishedGraspSearch(alpha=self.alpha, iterations=self.iterations).fit(settings, table, model)


class PublishedGraspSearch(RegionSearch):
    """GRASP as the authors' code runs it."""

    def __init__(self, *, alpha: int = 20, iterations: int = 3) -> None:
        self.alpha = alpha
        self.iterations = iterations

    @property
    def tried(self) -> int:
        """How many neighbours are tried before there is no answer."""
        return 1

    def solve(self, centres: Codes, rows: Matrix, salt: int = 0) -> Solved:
        """The best of the constructed regions around each centre."""
        truth = self.decision_.codes(self.table_.target.tolist(), "target")
        eligible = count_eligible(self, truth)
        boxes, cost, pureness = self.space_.no_boxes(len(centres)), np.empty(len(centres)), np.empty(len(centres))
        for i, (centre, row) in enumerate(zip(centres, rows)):
            start = Construction.around(self, centre, row, eligible, salt)
            drawn = [self._judge(start) for _ in range(self.iterations + 1)]
            best = drawn[0]
            for other in drawn[1:]:
                best = other if other.beats(best) else best
            boxes.put(i, best.box, 0)
            cost[i], pureness[i] = best.ncp, best.pureness
        sampled = self.space_.sizes_of(boxes) > SAMPLES
        return Solved(boxes, cost, np.full(len(centres), np.nan), pureness, sampled)

    def _judge(self, start: Construction) -> Judged:
        box = start.draw(self.settings_.k, self.alpha)
        cells = start.space.draw(box, 0, SAMPLES, start.rng)
        return Judged(box, start.pureness(self, cells), start.ncp(_hull(start.space, box)))


def _hull(space: Space, box: Boxes) -> Boxes:
    """The values of the rows found in a box: the authors measure these, not the declared region."""
    inside = np.ones(len(space.tuples), dtype=bool)
    for j in range(len(space.sizes)):
        inside &= box.member[0, j, space.tuples[:, j]]
    rows = space.tuples[inside]
    member = np.zeros_like(box.member)
    for j in range(len(space.sizes)):
        member[0, j, rows[:, j]] = True
    low = np.where(space.interval, rows.min(axis=0), box.low[0])
    high = np.where(space.interval, rows.max(axis=0), box.high[0])
    return Boxes(low[None].astype(np.int64), high[None].astype(np.int64), member)
