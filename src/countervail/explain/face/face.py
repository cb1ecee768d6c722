"""FACE: counterfactuals that can be reached by way of rows like those that exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.constraints import Constraints, asked_for
from countervail.core.distance import HEOM
from countervail.core.errors import bad_parameter, check_count
from countervail.core.table import Rows, Table
from countervail.explain.answering import Answers, Queries
from countervail.explain.face.graph import DENSITIES, JOINS, Density, Joins, RowGraph, shortest_paths
from countervail.explain.face.paths import Paths
from countervail.explain.native import NativeExplainer

_ENTRIES = 1 << 24  # entries of a query x node mask worked on at once


class FACE(NativeExplainer):
    """The training row of a wanted decision that is reached by the shortest way through rows like those that exist.

    Rows are joined to near ones. A step is as long as the distance times -log of the density of rows on the way, so
    that ways through empty space are long. The asker is joined to the rows nearest to her.

    Parameters
    ----------
    graph : {"knn", "epsilon"}
        Who is joined: each row to its nearest ones, or all rows that lie within a radius, the paper's epsilon.
    density : {"knn", "kde", "epsilon"}
        How dense it is on the way, as the paper has it: `k / (N v) / distance` with the unit ball's volume v; a
        Gaussian kernel estimate half-way (from at most 2,000 rows); `radius ** columns / distance`. Where densities
        above 1 would make a step shorter than nothing, all are divided by the largest.
    neighbours : int
        How many nearest rows each is joined to.
    radius : float, optional
        The paper's epsilon, no privacy budget. By default the median distance of a row to the last of its `neighbours`.
    bandwidth : float, optional
        Of the kernel estimate; by default the same.
    min_score : float, optional
        What the model's score of the wanted decisions must be at least in an answer.
    min_density : float
        The share of the rows that lie in emptier places than an answer may.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers per query: the next ones that are reached.
    immutable, ranges, monotone, forbidden, max_changes, costs : optional
        What answers may not ask of people, as in :class:`NICE`. What may not change, or not this way, holds for every
        step; ranges and the number of changes hold for the answer. Costs are a factor of the distance, not of the
        density.

    Notes
    -----
    *Threat model*: none. Every answer is another person's record, and so is every step of :meth:`paths`. The guarantee
    says so. Distances are HEOM in its L1 form, so that labels have a place in them.

    References
    ----------
    Poyiadzi, Sokol, Santos-Rodriguez, De Bie, Flach: FACE: feasible and actionable counterfactual explanations (2020).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> face = cv.FACE(neighbours=1, target="favourable").fit(table, cv.data.toy_credit_model)
    >>> print(face.paths(lisa).to_text())  # doctest: +NORMALIZE_WHITESPACE
    1. If you were 4 years older (from 21 to 25) and your gender were M (instead of F), the decision would be Reject.
    2. If you were 45 years older (from 25 to 70) and earned $40K more (from $50K to $90K), the decision would be
    Accept.
    """

    name: ClassVar[str] = "face"
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        *,
        graph: Joins = "knn",
        density: Density = "knn",
        neighbours: int = 20,
        radius: float | None = None,
        bandwidth: float | None = None,
        min_score: float | None = None,
        min_density: float = 0.0,
        target: Any = "other",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.graph = graph
        self.density = density
        self.neighbours = neighbours
        self.radius = radius
        self.bandwidth = bandwidth
        self.min_score = min_score
        self.min_density = min_density
        self.target = target
        self.n_counterfactuals = n_counterfactuals
        self.immutable = immutable
        self.ranges = ranges
        self.monotone = monotone
        self.forbidden = forbidden
        self.max_changes = max_changes
        self.costs = costs

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        self._check_parameters()
        super().fit(table, model)
        if self.min_score is not None and not self.decision_.has_scores:
            raise bad_parameter(self._owner, "min_score", "None for a model that gives labels only", self.min_score)
        self.graph_ = RowGraph.of(
            HEOM.fit(self.encoder_, self.rows_),
            self.nodes_,
            self.counts_,
            self.graph,
            self.density,
            int(self.neighbours),
            self.radius,
            self.bandwidth,
            self._owner,
        )
        thin = np.quantile(self.graph_.sparse, 1 - self.min_density) if len(self.nodes_) else 0.0
        self.dense_ = self.graph_.sparse <= thin
        self.tails_, self.lengths_ = self.graph_.tails, self.graph_.lengths(_weights(self.constraints_))
        return self

    def _check_parameters(self) -> None:
        if self.graph not in JOINS:
            raise bad_parameter(self._owner, "graph", f"one of {JOINS}", self.graph)
        if self.density not in DENSITIES:
            raise bad_parameter(self._owner, "density", f"one of {DENSITIES}", self.density)
        check_count(self._owner, "neighbours", self.neighbours)
        for name in ("radius", "bandwidth"):
            given = getattr(self, name)
            if given is not None and (not _is_number(given) or not 0 < given < np.inf):
                raise bad_parameter(self._owner, name, "a finite number above 0, or None", given)
        if self.min_score is not None and (not _is_number(self.min_score) or not 0 <= self.min_score <= 1):
            raise bad_parameter(self._owner, "min_score", "between 0 and 1, or None", self.min_score)
        if not _is_number(self.min_density) or not 0 <= self.min_density < 1:
            raise bad_parameter(self._owner, "min_density", "at least 0 and below 1", self.min_density)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        bound = cls(density="kde", n_counterfactuals=2, monotone={"age": "up"}, costs={"income": 2.0})
        return [cls(neighbours=8), cls(graph="epsilon", density="epsilon", target="favourable", min_score=0.6), bound]

    def ranked(self, x: Matrix, wanted: Bools, n: int, constraints: Constraints) -> Ints:
        """The rows of wanted decisions that are reached first."""
        return self._reached(x, wanted, n, constraints)[0]

    def paths(self, rows: Rows, *, constraints: Any = None) -> Paths:
        """The way to each counterfactual that `explain` gives, row by row; every step is another person's record."""
        encoder, frame, x = self._queries(rows)
        asked = self._aim().ask(encoder, frame, x)
        kinds, of = asked_for(constraints, len(frame), self.constraints_)
        ways: list[tuple[int, int, list[int]]] = []
        for kind in np.unique(of).tolist():
            at = np.flatnonzero((of == kind) & ~asked.already)
            if not len(at):
                continue
            some = asked.only(at)
            found, trails = self._reached(some.x, some.wanted, self.n_counterfactuals, kinds[kind].coded(encoder))
            for i, q in enumerate(at.tolist()):
                ways += [(q, a, trails[i][node]) for a, node in enumerate(found[i].tolist()) if node >= 0]
        ways.sort(key=lambda w: w[:2])
        return self._written(asked, ways)

    def _written(self, asked: Queries, ways: list[tuple[int, int, list[int]]]) -> Paths:
        who = [(q, a, s) for q, a, way in ways for s in range(len(way) + 1)]
        cells = [self.nodes_[node] if node >= 0 else asked.x[q] for q, _, way in ways for node in (-1, *way)]
        said = [self.classes_[node] if node >= 0 else asked.now[q] for q, _, way in ways for node in (-1, *way)]
        coded = np.array(cells).reshape(len(cells), asked.x.shape[1])
        query, answer, step = (pd.Series([w[i] for w in who], dtype=np.int64) for i in range(3))
        decision = self.decision_.labels(np.array(said, dtype=np.int64))
        shown = asked.encoder.decode(coded) if len(coded) else asked.frame.iloc[:0].reset_index(drop=True)
        return Paths(query, answer, step, decision, shown, self.table_.schema.without_identifiers(), self.guarantee())

    def _reached(self, x: Matrix, wanted: Bools, n: int, c: Constraints) -> tuple[Ints, list[dict[int, list[int]]]]:
        """Query x rank: the nodes reached first; and for each query the way to each of them."""
        graph, weights, steps = self.graph_, _weights(c), replace(c, allowed={}, max_changes=None)
        same = dict(c.costs) == dict(self.constraints_.costs)
        lengths = self.lengths_ if same else graph.lengths(weights)
        open_: Bools = np.zeros(0, dtype=bool)
        if steps:
            open_ = np.asarray(steps.holds(self.nodes_[self.tails_], self.nodes_[graph.ends]).all(axis=1))
        places, trails = np.full((len(x), n), -1, dtype=np.int64), []
        goals = self._goals(x, wanted, c)
        for q in range(len(x)):
            allowed = steps.admissible(x[q : q + 1], self.nodes_)[0] if steps else None
            first, way = graph.entered(x[q], allowed, weights)
            found, whence = shortest_paths(graph.starts, graph.ends, lengths, open_, first, way, goals(q), n)
            places[q] = found
            trails.append({node: _trail(node, whence) for node in found.tolist() if node >= 0})
        return places, trails

    def _goals(self, x: Matrix, wanted: Bools, c: Constraints) -> Any:
        """For a query, which nodes would be an answer; worked out for many queries at once."""
        step = max(1, _ENTRIES // max(len(self.nodes_), 1))
        held: dict[int, Bools] = {}

        def of(q: int) -> Bools:
            a = q // step * step
            if a not in held:
                held.clear()
                held[a] = self._goal_masks(x[a : a + step], wanted[a : a + step], c)
            mine: Bools = held[a][q - a]
            return mine

        return of

    def _goal_masks(self, x: Matrix, wanted: Bools, c: Constraints) -> Bools:
        fine: Bools = wanted[:, self.classes_] & self.dense_
        scores = self.decision_.train_scores
        if self.min_score is not None and scores is not None:
            fine &= wanted.astype(float) @ scores[self.places_].T >= self.min_score
        return fine & c.admissible(x, self.nodes_) if c else fine

    def _find(self, asked: Queries) -> Answers:
        answers = super()._find(asked)
        n = self.n_counterfactuals
        none = ~answers.found.reshape(len(asked), n).any(axis=1)
        if not none.any():
            return answers
        notes = list(answers.notes) if answers.notes is not None else [""] * len(answers.cells)
        for q in np.flatnonzero(none).tolist():
            notes[q * n] = notes[q * n] or _NO_WAY
        return replace(answers, notes=notes)


_NO_WAY = "No way through rows of the table leads to such a decision."


def _weights(c: Constraints) -> Floats | None:
    return c.weights if c.costs else None


def _trail(node: int, whence: Ints) -> list[int]:
    """The nodes on the way to one, the first first."""
    out = [node]
    while whence[out[-1]] >= 0:
        out.append(int(whence[out[-1]]))
    return out[::-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
