"""SEDC: which evidence would have to go for another decision."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix, unlike
from countervail.core.constraints import Constraints
from countervail.core.encode import Coding
from countervail.core.errors import bad_parameter, check_count
from countervail.core.table import Table
from countervail.explain.answering import Answers, Queries, remarks
from countervail.explain.base import Explainer


class Removals:
    """The search of one asker: sets of columns by how much taking them away helps, the best first.

    Sets are bits of a whole number. One that holds an explanation already is never looked at; nor is one twice.
    """

    def __init__(self, free: list[int], base: int, most: int) -> None:
        self.free, self.base, self.most = free, base, most
        self.found: list[tuple[int, int, float]] = []  # set, place among what was asked, worth
        self._open: list[tuple[float, int, int]] = []
        self._seen: set[int] = set()
        self._born = 0

    def first(self) -> list[int]:
        """What has to go anyway, and each piece of evidence on top of it."""
        return self._fresh([*([self.base] if self.base else []), *(self.base | 1 << j for j in self.free)])

    def expand(self) -> list[int]:
        """The best set so far with one piece more; empty when there is nothing left to try."""
        while self._open:
            _, _, best = heapq.heappop(self._open)
            if self._explained(best):
                continue
            if grown := self._fresh([best | 1 << j for j in self.free if not best >> j & 1]):
                return grown
        return []

    def learn(self, asked: list[int], worth: Floats, enough: Bools, place: Ints) -> None:
        """What the model says about sets: explanations, the best first, or something to go on from."""
        order = sorted(range(len(asked)), key=lambda i: (-float(worth[i]), i))
        for i in order:
            if enough[i] and not self._explained(asked[i]):
                self.found.append((asked[i], int(place[i]), float(worth[i])))
        for i in range(len(asked)):
            if not enough[i]:
                heapq.heappush(self._open, (-float(worth[i]), self._born, asked[i]))
                self._born += 1

    def _fresh(self, sets: list[int]) -> list[int]:
        new = [s for s in sets if s not in self._seen and s.bit_count() <= self.most and not self._explained(s)]
        self._seen.update(new)
        return new

    def _explained(self, given: int) -> bool:
        return any(s & given == s for s, _, _ in self.found)


class SEDC(Explainer):
    """The smallest set of values without which the decision would be another, found best first.

    A value that is taken away becomes a neutral one: the mean of its column (rounded where the column holds whole
    numbers), or its most frequent label.

    Parameters
    ----------
    neutral : mapping, optional
        The neutral values of some columns, such as `{"debt": 0}`.
    max_iterations : int
        How often a set is extended by every other column before the search gives up.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers per query: sets of which none holds another.
    immutable, ranges, monotone, forbidden, max_changes, costs : optional
        What answers may not ask of people, as in :class:`NICE`. Costs divide what a set gains.

    Notes
    -----
    *Threat model*: none. No record is copied: what an answer tells of the table are means and most frequent labels of
    columns. Nothing is proven of it, and whoever has the means of two tables has the difference; the guarantee says so.
    With a model that gives labels only, small sets are tried first, in the order of the columns.

    References
    ----------
    Martens, Provost: Explaining data-driven document classifications (2014).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.SEDC(target="favourable").fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> print(e.to_text())  # doctest: +NORMALIZE_WHITESPACE
    If you lived in Antwerp (instead of Brussels) and earned $17K more (from $50K to $67K), the decision would be
    Accept.
    """

    name: ClassVar[str] = "sedc"
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        *,
        neutral: Mapping[str, Any] | None = None,
        max_iterations: int = 50,
        target: Any = "other",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.neutral = neutral
        self.max_iterations = max_iterations
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
        check_count(self._owner, "n_counterfactuals", self.n_counterfactuals)
        check_count(self._owner, "max_iterations", self.max_iterations)
        super().fit(table, model)
        self._aim().wanted(self.decision_.train[:1])
        given = dict(self.neutral or {})
        names = self.encoder_.names
        if strange := [n for n in given if n not in names]:
            raise bad_parameter(self._owner, "neutral", f"made of feature columns {names}", strange)
        codings = self.encoder_.codings
        told = [self._given(c, given[c.name]) if c.name in given else None for c in codings]
        self.neutral_ = np.array(
            [_usual(c, self.rows_[:, j]) if v is None else v for j, (c, v) in enumerate(zip(codings, told))]
        )
        return self

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        bound = cls(neutral={"income": 80.0}, n_counterfactuals=2, max_changes=3, costs={"age": 2.0})
        return [cls(), cls(neutral={"income": 60.0, "level": "high"}, target="favourable"), bound]

    def _find(self, asked: Queries) -> Answers:
        """All askers extend their best sets together: one model call per step."""
        assert asked.constraints is not None
        n, c = self.n_counterfactuals, asked.constraints
        cells = np.repeat(asked.x, n, axis=0)
        after, found = np.full(len(cells), -1, dtype=np.int64), np.zeros(len(cells), dtype=bool)
        scores = np.full((len(cells), len(self.decision_.classes)), np.nan) if self.decision_.has_scores else None
        searches, start = self._searches(asked.x, c), self._mass(asked.scores, asked.wanted)
        open_ = {q: s.first() for q, s in searches.items()}
        for step in range(int(self.max_iterations) + 1):
            if step:
                open_ = {q: searches[q].expand() for q in open_ if len(searches[q].found) < n}
            open_ = {q: sets for q, sets in open_.items() if sets}
            if not open_:
                break
            owner = np.repeat(list(open_), [len(sets) for sets in open_.values()])
            every = [s for sets in open_.values() for s in sets]
            trial = np.where(_members(every, cells.shape[1]), self.neutral_, asked.x[owner])
            frame = asked.encoder.decode(trial)
            said = self.decision_.scores(frame) if scores is not None else None
            decided = self.decision_.decide(frame, said)
            gain = self._mass(said, asked.wanted[owner]) - start[owner]
            worth, enough = _per_cost(gain, every, c), asked.wanted[owner, decided]
            ends = np.cumsum([0, *(len(sets) for sets in open_.values())])
            for (q, sets), a, b in zip(open_.items(), ends, ends[1:]):
                search, before = searches[q], len(searches[q].found)
                search.learn(sets, worth[a:b], enough[a:b], np.arange(a, b))
                for i, (_, place, _) in enumerate(search.found[before:n], start=before):
                    at = q * n + i
                    cells[at], after[at], found[at] = trial[place], decided[place], True
                    if scores is not None and said is not None:
                        scores[at] = said[place]
        notes = remarks(found.reshape(len(asked), n), c.notes(asked.x))
        return Answers(cells, after, found, scores, notes=notes)

    def _searches(self, x: Matrix, c: Constraints) -> dict[int, Removals]:
        """A search for each asker whose values out of range can all go."""
        neutral = np.broadcast_to(self.neutral_, x.shape)
        free, must = unlike(x, neutral) & c.holds(x, neutral), ~c.in_range(x)
        possible = ~(must & ~free).any(axis=1)
        most = x.shape[1] if c.max_changes is None else c.max_changes
        out = {}
        for q in np.flatnonzero(possible).tolist():
            columns = np.flatnonzero(free[q] & ~must[q]).tolist()
            out[q] = Removals(columns, sum(1 << j for j in np.flatnonzero(must[q]).tolist()), most)
        return out

    def _mass(self, scores: Floats | None, wanted: Bools) -> Floats:
        """The score of all wanted decisions together."""
        if scores is None:
            return np.zeros(len(wanted))
        return np.asarray(np.where(wanted, scores, 0.0).sum(axis=1))

    def _given(self, coding: Coding, value: Any) -> float:
        if coding.numeric:
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not np.isfinite(value):
                must = f"a finite number for numeric column '{coding.name}'"
                raise bad_parameter(self._owner, "neutral", must, value)
            if pd.api.types.is_integer_dtype(coding.dtype) and value != int(value):
                raise bad_parameter(self._owner, "neutral", f"a whole number for column '{coding.name}'", value)
            return float(value)
        if value not in coding.values:
            must = f"a value that column '{coding.name}' has"
            raise bad_parameter(self._owner, "neutral", must, value, "Correct it, or declare it in the domain.")
        return float(coding.values.index(value))


def _usual(coding: Coding, column: Floats) -> float:
    """The mean of numbers, the most frequent label (the first of equals)."""
    known = column[~np.isnan(column)]
    if not coding.numeric:
        return float(np.bincount(known.astype(np.int64)).argmax())
    if not len(known):
        return float("nan")
    return float(np.rint(known.mean()) if pd.api.types.is_integer_dtype(coding.dtype) else known.mean())


def _members(sets: list[int], columns: int) -> Bools:
    return np.array([[s >> j & 1 for j in range(columns)] for s in sets], dtype=bool).reshape(len(sets), columns)


def _per_cost(gain: Floats, sets: list[int], c: Constraints) -> Floats:
    """Gains by the mean cost of the columns; a loss counts for more."""
    if not c.costs:
        return gain
    taken = _members(sets, len(c.weights))
    cost = np.where(taken, c.weights, 0.0).sum(axis=1) / np.maximum(taken.sum(axis=1), 1)
    per: Floats = np.where(gain > 0, gain / cost, gain * cost)
    return per
