"""Case-based counterfactuals: how a pair of people who differ in little was told apart, carried over to the asker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from countervail.core.arrays import Bools, Ints, Matrix, unlike
from countervail.core.constraints import Constraints
from countervail.core.distance import HEOM, Neighbours
from countervail.core.errors import bad_parameter, check_count
from countervail.core.table import Table
from countervail.explain.answering import Answers, Queries, remarks
from countervail.explain.cases.pairs import Likeness
from countervail.explain.native import NativeExplainer

_MASKED = 1 << 25  # cells of a query x row mask worked on at once


class CaseBased(NativeExplainer):
    """Counterfactuals after explanation cases: pairs of training rows that differ in few columns and in the decision.

    The case whose first row is most similar to the asker says which columns to change; they take the values of its
    second row, or where that is not enough those of rows like it. If none of that changes the decision, the answer is
    the nearest row of a wanted decision as it is.

    Parameters
    ----------
    max_differences : int
        In how many columns the two rows of a case may differ.
    tolerance : float
        Numbers that lie within this share of their column's range count as the same in a case.
    cases : int
        How many cases are looked at, the most similar first.
    neighbours : int
        How many rows of the same decision as the case's second row lend their values where its own do not change the
        decision.
    adapt : bool
        False gives the second row of the case as it is: another person's record.
    target : "other", "favourable", a label or several
        The decisions a counterfactual may lead to.
    n_counterfactuals : int
        How many different answers per query: from as many cases, then nearest rows.
    immutable, ranges, monotone, forbidden, max_changes, costs : optional
        What answers may not ask of people, as in :class:`NICE`.

    Notes
    -----
    *Threat model*: none. An answer is another person's record, or the asker's own with a few values of another
    person's. The guarantee says so. Decisions are those of the model, and similarity is HEOM.

    References
    ----------
    Keane, Smyth: Good counterfactuals and where to find them: a case-based technique for generating counterfactuals for
    explainable AI (XAI) (2020).

    Examples
    --------
    >>> import countervail as cv
    >>> table, lisa = cv.load("toy_credit"), cv.data.toy_credit_query()
    >>> e = cv.CaseBased(target="favourable").fit(table, cv.data.toy_credit_model).explain(lisa)
    >>> print(e.to_text())
    If you were 49 years older (from 21 to 70) and earned $40K more (from $50K to $90K), the decision would be Accept.
    """

    name: ClassVar[str] = "case-based"
    takes_missing: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_differences: int = 2,
        tolerance: float = 0.0,
        cases: int = 1,
        neighbours: int = 10,
        adapt: bool = True,
        target: Any = "other",
        n_counterfactuals: int = 1,
        immutable: Iterable[str] = (),
        ranges: Mapping[str, Any] | None = None,
        monotone: Mapping[str, str] | None = None,
        forbidden: Mapping[str, Iterable[tuple[Any, Any]]] | None = None,
        max_changes: int | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.max_differences = max_differences
        self.tolerance = tolerance
        self.cases = cases
        self.neighbours = neighbours
        self.adapt = adapt
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
        for name in ("max_differences", "cases", "neighbours"):
            check_count(self._owner, name, getattr(self, name))
        given = self.tolerance
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given < 1:
            raise bad_parameter(self._owner, "tolerance", "a share of the range, at least 0 and below 1", given)
        super().fit(table, model)
        self.heom_ = HEOM.fit(self.encoder_, self.rows_)
        self.alike_ = Likeness.of(self.encoder_, self.heom_, float(self.tolerance))
        self.partner_ = self.alike_.pairs(
            self.nodes_, self.classes_, len(self.decision_.classes), int(self.max_differences)
        )
        held: Bools = np.asarray((self.partner_ >= 0).any(axis=1))
        self.first_rows_ = Neighbours(self.heom_, self.nodes_, self.classes_, held)
        self.all_rows_ = Neighbours(self.heom_, self.nodes_, self.classes_, np.ones(len(self.nodes_), dtype=bool))
        return self

    @property
    def native(self) -> bool:
        """Whether counterfactuals are training rows as they are."""
        return not self.adapt

    @property
    def n_cases_(self) -> int:
        """How many explanation cases the table has: rows with a partner, counted for each of its decisions."""
        return int((self.partner_ >= 0).sum())

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        bound = cls(tolerance=0.2, cases=3, n_counterfactuals=2, monotone={"age": "up"}, max_changes=3)
        return [cls(tolerance=0.1), cls(tolerance=0.1, adapt=False, target="favourable"), bound]

    def ranked(self, x: Matrix, wanted: Bools, n: int, constraints: Constraints) -> Ints:
        """The second rows of the most similar cases, then the nearest rows of wanted decisions."""
        _, second = self._cases(x, self._decided(x, constraints), wanted, constraints, int(self.cases))
        if constraints:
            each = np.repeat(x, second.shape[1], axis=0)
            fine = _allowed(constraints, each, self.nodes_[second.ravel()]).reshape(second.shape)
            second = np.where(fine, second, -1)
        return _once(np.concatenate([second, self._nearest_rows(x, wanted, n, constraints)], axis=1), n)

    def _find(self, asked: Queries) -> Answers:
        """What the most similar cases change, carried over; where that is not enough, the nearest rows."""
        if not self.adapt:
            return super()._find(asked)
        assert asked.constraints is not None
        n, c = self.n_counterfactuals, asked.constraints
        carried = self._carried(asked, max(int(self.cases), n), c)
        plain = self._as_they_are(asked, self._nearest_rows(asked.x, asked.wanted, n, c))
        answers = _first_different(asked, [carried, plain], n)
        return Answers(
            answers.cells,
            answers.after,
            answers.found,
            answers.scores,
            notes=remarks(answers.found.reshape(len(asked), n), c.notes(asked.x)),
        )

    def _carried(self, asked: Queries, cases: int, c: Constraints) -> Answers:
        """One answer for each case: with the values of its second row, or of the first like it that are enough."""
        first, second = self._cases(asked.x, asked.now, asked.wanted, c, cases)
        origin, there = np.repeat(np.arange(len(asked)), cases), np.flatnonzero(second.ravel() >= 0)
        nothing = Answers.nothing(np.repeat(asked.x, cases, axis=0))
        classes = len(self.decision_.classes)
        scores = np.full((len(nothing.cells), classes), np.nan) if self.decision_.has_scores else None
        if not len(there):
            return Answers(nothing.cells, nothing.after, nothing.found, scores)
        one, two = first.ravel()[there], second.ravel()[there]
        moved = self.alike_.differ(self.nodes_[one], self.nodes_[two])
        donors = np.column_stack([two, self._like(two)])
        done = np.zeros(len(there), dtype=bool)
        for part in (donors[:, :1], donors[:, 1:]):  # the second row itself first: mostly it is enough
            left = np.flatnonzero(~done)
            if not len(left) or not part.shape[1]:
                break
            local, place = np.nonzero(part[left] >= 0)
            who = left[local]
            x = asked.x[origin[there[who]]]
            cells = np.where(moved[who], self.nodes_[part[who, place]], x)
            fine = np.flatnonzero(_allowed(c, x, cells))
            if not len(fine):
                continue
            frame = asked.encoder.decode(cells[fine])
            said = self.decision_.scores(frame) if scores is not None else None
            after = self.decision_.decide(frame, said)
            good = asked.wanted[origin[there[who[fine]]], after]
            hit, at = np.unique(who[fine][good], return_index=True)  # the first donor of each case
            chosen = np.flatnonzero(good)[at]
            place_of = there[hit]
            nothing.cells[place_of], nothing.after[place_of] = cells[fine][chosen], after[chosen]
            nothing.found[place_of], done[hit] = True, True
            if scores is not None and said is not None:
                scores[place_of] = said[chosen]
        return Answers(nothing.cells, nothing.after, nothing.found, scores)

    def _cases(self, x: Matrix, now: Ints, wanted: Bools, c: Constraints, n: int) -> tuple[Ints, Ints]:
        """Query x rank: the two rows of the most similar cases from the asker's decision to a wanted one (-1: none)."""
        same = np.zeros(wanted.shape, dtype=bool)
        same[np.arange(len(x)), np.maximum(now, 0)] = now >= 0
        parts = []
        for a, b in _steps(len(x), len(self.nodes_)):
            mask = wanted[a:b].astype(np.int8) @ (self.partner_ >= 0).T.astype(np.int8) > 0
            weights = c.weights if c.costs else None
            parts.append(self.first_rows_.nearest(x[a:b], same[a:b], n, mask, weights)[0])
        first = np.concatenate(parts)
        partner = np.where(wanted[:, None, :], self.partner_[first], -1)
        best = self._best_partner(first, partner)
        return first, np.where(first >= 0, best, -1)

    def _best_partner(self, first: Ints, partner: Ints) -> Ints:
        """Of a row's partners in several classes, the one that differs in the fewest columns, then the nearest."""
        if partner.shape[2] == 2:  # at most one of them is wanted
            return np.asarray(partner.max(axis=2))
        flat, own = partner.reshape(-1, partner.shape[2]), np.repeat(first.ravel(), partner.shape[2])
        a, b = self.nodes_[own], self.nodes_[flat.ravel()]
        count = self.alike_.differ(a, b).sum(axis=1).astype(float).reshape(flat.shape)
        away = self.heom_.between(a, b).reshape(flat.shape)
        count[flat < 0], away[flat < 0] = np.inf, np.inf
        fewest = count == count.min(axis=1, keepdims=True)
        best = np.where(fewest, away, np.inf).argmin(axis=1)
        return np.asarray(flat[np.arange(len(flat)), best].reshape(first.shape))

    def _like(self, rows: Ints) -> Ints:
        """The nearest other rows of the same decision."""
        distinct, which = np.unique(rows, return_inverse=True)
        same = np.zeros((len(distinct), len(self.decision_.classes)), dtype=bool)
        same[np.arange(len(distinct)), self.classes_[distinct]] = True
        near = self.all_rows_.nearest(self.nodes_[distinct], same, int(self.neighbours) + 1)[0]
        others = near != distinct[:, None]
        order = np.argsort(~others, axis=1, kind="stable")[:, : int(self.neighbours)]
        return np.take_along_axis(np.where(others, near, -1), order, axis=1)[which]

    def _nearest_rows(self, x: Matrix, wanted: Bools, n: int, c: Constraints) -> Ints:
        weights, parts = c.weights if c.costs else None, []
        for a, b in _steps(len(x), len(self.nodes_)):
            fine = c.admissible(x[a:b], self.nodes_) if c else None
            parts.append(self.all_rows_.nearest(x[a:b], wanted[a:b], n, fine, weights)[0])
        return np.concatenate(parts)

    def _decided(self, x: Matrix, c: Constraints) -> Ints:
        return self.decision_.decide(c.encoder.decode(x))


def _allowed(c: Constraints, x: Matrix, rows: Matrix) -> Bools:
    """Which rows their own queries may be sent to."""
    ok: Bools = np.asarray(c.holds(x, rows).all(axis=1))
    if c.max_changes is not None:
        ok &= unlike(x, rows).sum(axis=1) <= c.max_changes
    return ok


def _steps(queries: int, rows: int) -> list[tuple[int, int]]:
    step = max(1, _MASKED // max(rows, 1))
    return [(a, min(a + step, queries)) for a in range(0, queries, step)]


def _once(places: Ints, n: int) -> Ints:
    """Row x rank: the first `n` different places of each row, without the missing ones."""
    out = np.full((len(places), n), -1, dtype=np.int64)
    for i, row in enumerate(places.tolist()):
        kept = list(dict.fromkeys(p for p in row if p >= 0))[:n]
        out[i, : len(kept)] = kept
    return out


def _first_different(asked: Queries, parts: list[Answers], n: int) -> Answers:
    """The first `n` different answers of each query, part by part."""
    cells = np.repeat(asked.x, n, axis=0)
    after, found = np.full(len(cells), -1, dtype=np.int64), np.zeros(len(cells), dtype=bool)
    scores = None
    if all(p.scores is not None for p in parts):
        scores = np.full((len(cells), parts[0].scores.shape[1]), np.nan)  # type: ignore[union-attr]
    for q in range(len(asked)):
        held: set[bytes] = set()
        for part in parts:
            wide = len(part.cells) // len(asked)
            for i in range(q * wide, (q + 1) * wide):
                key = part.cells[i].tobytes()
                if not part.found[i] or key in held or len(held) == n:
                    continue
                at = q * n + len(held)
                held.add(key)
                cells[at], after[at], found[at] = part.cells[i], part.after[i], True
                if scores is not None and part.scores is not None:
                    scores[at] = part.scores[i]
    return Answers(cells, after, found, scores)
