"""Answers from groups: neighbour search and eligibility that see group regions and private vectors, never a person.

Everything here is a function of the groups' regions, the set of private vectors in each group, the model and the query.
It does not change when private vectors are permuted within a group; the promise rests on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from countervail.core._kernels import kernel
from countervail.core.arrays import Bools, Codes, Floats, Ints, Matrix, distinct_rows, every_combination
from countervail.core.distance import HEOM
from countervail.core.encode import Encoder
from countervail.core.region import Range, Regions
from countervail.core.rng import generator
from countervail.protect.cfk.groups.group_table import GroupTable

Decide = Callable[[Matrix], Ints]  # the class of coded rows
_CHUNK = 50_000  # rows of one model call
_SAMPLE = 1_000


@kernel
def nearest_candidate(
    gap: Floats,
    x_numbers: Floats,
    x_labels: Codes,
    group: Ints,
    numbers: Floats,
    labels: Codes,
    scale: Floats,
) -> Ints:
    """The candidate nearest to each query, the first of equals; -1 where there is none.

    `gap` (Q, G): distance of each query to each group's region; private values count as in HEOM.
    """
    out = np.full(len(gap), -1, np.int64)
    for i in range(len(gap)):
        best = np.inf
        for c in range(len(group)):
            d = gap[i, group[c]]
            if d >= best:
                continue
            for j in range(labels.shape[1]):
                d += x_labels[i, j] != labels[c, j]
            for j in range(numbers.shape[1]):
                if d >= best:
                    break
                step = abs(numbers[c, j] - x_numbers[i, j]) / scale[j]
                if step != step:  # a missing level: 0 from itself, 1 from any other
                    step = 0.0 if np.isnan(numbers[c, j]) and np.isnan(x_numbers[i, j]) else 1.0
                d += step
            if d < best:
                out[i], best = c, d
    return out


@dataclass(frozen=True, eq=False, slots=True)
class SpanShape:
    """A numeric column of the group regions."""

    column: int
    low: Floats
    high: Floats
    holes: Bools  # whether somebody's number is missing

    @property
    def content(self) -> Floats:
        """What tells cells apart; of NaN there are many, but they say the same."""
        ends = np.column_stack([self.low, self.high, self.holes])
        return np.where(np.isnan(ends), np.inf, ends)

    def gap(self, x: Floats, scale: float) -> Floats:
        """Query x group: 0 inside, else to the nearer end; 1 between what is missing and what is not."""
        away = np.maximum(np.maximum(self.low[None] - x[:, None], x[:, None] - self.high[None]), 0.0) / scale
        return np.where(np.isnan(away), ~(np.isnan(x)[:, None] & self.holes[None]), away)

    def options(self, g: int, distinct: Floats) -> Floats:
        """The register's values inside group `g`; a missing one comes last."""
        inside: Floats = distinct[(distinct >= self.low[g]) & (distinct <= self.high[g])]
        return np.append(inside, np.nan) if self.holes[g] else inside


@dataclass(frozen=True, eq=False, slots=True)
class SetShape:
    """An ordinal or categorical column of the group regions: members, and the distance of every value to each set.

    `holding` and `wide` are these with one more column, for values never seen.
    """

    column: int
    member: Bools
    away: Floats
    holding: Bools = field(init=False)
    wide: Floats = field(init=False)

    def __post_init__(self) -> None:
        never, far = np.zeros((len(self.member), 1), dtype=bool), np.ones((len(self.away), 1))
        object.__setattr__(self, "holding", np.concatenate([self.member, never], axis=1))
        object.__setattr__(self, "wide", np.concatenate([self.away, far], axis=1))

    @property
    def content(self) -> Bools:
        """What tells cells apart."""
        return self.member

    def gap(self, x: Floats, scale: float) -> Floats:
        """Query x group: 0 in the set, else steps to its nearest level, or 1 for labels and values never seen."""
        known = (x >= 0) & (x < self.away.shape[1])
        out: Floats = self.wide[:, np.where(known, x, self.away.shape[1]).astype(np.intp)].T
        return out

    def options(self, g: int, distinct: Floats) -> Floats:
        """The members of group `g`'s set."""
        return np.flatnonzero(self.member[g]).astype(np.float64)


def shapes(regions: Regions, encoder: Encoder) -> list[SpanShape | SetShape]:
    """The group regions in the encoder's numbers and codes, column by column."""
    out: list[SpanShape | SetShape] = []
    for axis in regions.axes:
        j = encoder.names.index(axis.name)
        coding = encoder.codings[j]
        if isinstance(axis, Range):
            holes = np.zeros(len(regions), dtype=bool) if axis.holes is None else axis.holes
            out.append(SpanShape(j, axis.low, axis.high, holes))
            continue
        position = {v: i for i, v in enumerate(coding.values)}
        member = np.zeros((len(regions), len(position)), dtype=bool)
        for i, v in enumerate(axis.known):
            if v in position:
                member[:, position[v]] = axis.member[:, i]
        out.append(SetShape(j, member, _away(member, coding.column.type == "ordinal", coding.missing, coding.levels)))
    return out


@dataclass(frozen=True, eq=False, slots=True)
class Members:
    """The distinct quasi-identifiers of each group's people, in order of content; looked at during fit only."""

    tuples: dict[int, Matrix]

    @classmethod
    def of(cls, made: GroupTable, rows: Matrix, group: Ints) -> Members:
        """The members of all groups."""
        pairs = np.column_stack([group, rows[:, made.quasi]])
        pairs = pairs[distinct_rows(pairs)[0]]
        starts = np.flatnonzero(np.r_[True, pairs[1:, 0] != pairs[:-1, 0]]) if len(pairs) else np.zeros(0, np.intp)
        return cls({int(part[0, 0]): part[:, 1:] for part in np.split(pairs, starts[1:]) if len(part)})


class Candidates:
    """The candidates: distinct pairs of a group and a private vector of one of its members, in order of content."""

    def __init__(self, made: GroupTable) -> None:
        self.encoder, self.heom, self.blur = made.encoder, made.heom, made.reach.sum(axis=1)
        self.shapes = shapes(made.sealed.regions, made.encoder)
        self.quasi, self.register = made.quasi, made.register
        pairs = np.column_stack([made.sealed.groups, made.private])
        pairs = pairs[distinct_rows(pairs)[0]]
        self.group, self.private = pairs[:, 0].astype(np.int64), np.ascontiguousarray(pairs[:, 1:])
        quasi = np.isin(np.arange(self.private.shape[1]), self.quasi)
        self._own = ~quasi[self.heom.measured], ~quasi[~self.heom.measured]

    def judge(
        self,
        decide: Decide,
        wanted: Bools,
        members: Members,
        cell_budget: int,
        min_pureness: float,
        *,
        whole: bool = True,
    ) -> None:
        """Keep the candidates that every member's quasi-identifiers lead to the desired decision, and purely enough.

        Without `whole`, nobody is shown a whole region, and how pure it is does not matter.
        """
        kept, after = np.arange(len(self.group)), np.full(len(self.group), -1, dtype=np.int64)
        most = max((len(t) for t in members.tuples.values()), default=0)
        for place in range(most):  # one member after the other: most candidates fall with the first
            has = np.array([place < len(members.tuples[int(g)]) for g in self.group[kept]], dtype=bool)
            if not has.any():
                break
            asked = kept[has]
            cells = np.array([members.tuples[int(g)][place] for g in self.group[asked]])
            said = self._ask(decide, asked, cells)
            if place == 0:
                after[asked] = said  # the decision that is told: the first member's, in order of content
            good = np.ones(len(kept), dtype=bool)
            good[has] = wanted[said]
            kept = kept[good]
        pureness, sampled = np.ones(len(kept)), np.zeros(len(kept), dtype=bool)
        if whole:
            pureness, sampled = self._pureness(decide, wanted, kept, cell_budget)
        fit = pureness >= min_pureness
        self.keep(kept[fit], pureness[fit], sampled[fit], after[kept][fit])

    def keep(self, candidates: Ints, pureness: Floats, sampled: Bools, after: Ints) -> None:
        """Only some of them may be handed out, with what the model says about each."""
        self.kept, self.pureness, self.sampled, self.after = candidates, pureness, sampled, after
        self.group, self.private = self.group[candidates], self.private[candidates]
        self._numbers = np.ascontiguousarray(self.heom.numbers(self.private)[:, self._own[0]])
        self._labels = np.ascontiguousarray(self.heom.labels(self.private)[:, self._own[1]])

    def nearest(self, queries: Matrix) -> Ints:
        """The nearest eligible candidate of each query (-1: none)."""
        if not len(self.group):
            return np.full(len(queries), -1, dtype=np.int64)
        found: Ints = nearest_candidate(
            self._gap(queries),
            np.ascontiguousarray(self.heom.numbers(queries)[:, self._own[0]]),
            np.ascontiguousarray(self.heom.labels(queries)[:, self._own[1]]),
            self.group,
            self._numbers,
            self._labels,
            np.ascontiguousarray(self.heom.scale[self._own[0]]),
        )
        return found

    def distance(self, queries: Matrix, rows: Matrix, regions: Regions, blur: Floats) -> Floats:
        """Query x row: distance to a region given for each row, with the row's private values."""
        total = _region_gap(shapes(regions, self.encoder), blur, queries, self.heom)
        numbers, labels = self.heom.numbers(rows)[:, self._own[0]], self.heom.labels(rows)[:, self._own[1]]
        x, named = self.heom.numbers(queries)[:, self._own[0]], self.heom.labels(queries)[:, self._own[1]]
        for j, scale in enumerate(self.heom.scale[self._own[0]]):
            step = np.abs(x[:, j, None] - numbers[None, :, j]) / scale
            both = np.isnan(x[:, j, None]) & np.isnan(numbers[None, :, j])
            total += np.where(np.isnan(step), np.where(both, 0.0, 1.0), step)
        for j in range(labels.shape[1]):
            total += named[:, j, None] != labels[None, :, j]
        return total

    def _gap(self, queries: Matrix) -> Floats:
        """Query x group: the distance to the region, and how far it reaches from there."""
        return _region_gap(self.shapes, self.blur, queries, self.heom)

    def _ask(self, decide: Decide, candidates: Ints, cells: Matrix) -> Ints:
        out = np.empty(len(candidates), dtype=np.int64)
        for a in range(0, len(candidates), _CHUNK):
            rows = self.private[candidates[a : a + _CHUNK]].copy()
            rows[:, self.quasi] = cells[a : a + _CHUNK]
            out[a : a + _CHUNK] = decide(rows)
        return out

    def _pureness(self, decide: Decide, wanted: Bools, kept: Ints, budget: int) -> tuple[Floats, Bools]:
        """Share of each candidate's combinations that keep the decision, sampled where there are too many."""
        pureness, sampled = np.zeros(len(kept)), np.zeros(len(kept), dtype=bool)
        for batch in self._batches(kept, budget):
            owner = np.concatenate([np.full(len(cells), i) for i, cells, _ in batch])
            good = wanted[self._ask(decide, kept[owner], np.concatenate([cells for _, cells, _ in batch]))]
            for i, _, drawn in batch:
                pureness[i], sampled[i] = good[owner == i].mean(), drawn
        return pureness, sampled

    def _batches(self, kept: Ints, budget: int) -> Iterator[list[tuple[int, Matrix, bool]]]:
        """Candidates with the combinations of their region, about one model call's worth at a time."""
        none = np.zeros(0)
        distinct = [self.register.get(self.encoder.names[s.column], none) for s in self.shapes]
        columns = [s.column for s in self.shapes]
        at = [columns.index(int(j)) for j in self.quasi]
        cache: dict[int, tuple[Matrix, bool]] = {}
        batch: list[tuple[int, Matrix, bool]] = []
        rows = 0
        for i, c in enumerate(kept):
            g = int(self.group[c])
            if g not in cache:
                cells, drawn = combine([s.options(g, d) for s, d in zip(self.shapes, distinct)], budget)
                cache = {g: (cells[:, at], drawn)}
            batch.append((i, *cache[g]))
            rows += len(cache[g][0])
            if rows >= _CHUNK:
                yield batch
                batch, rows = [], 0
        if batch:
            yield batch


def _region_gap(columns: list[SpanShape | SetShape], blur: Floats, queries: Matrix, heom: HEOM) -> Floats:
    scale = dict(zip(np.flatnonzero(heom.measured).tolist(), heom.scale.tolist()))
    total = np.repeat(blur[None], len(queries), axis=0)
    for shape in columns:
        total += shape.gap(queries[:, shape.column], scale.get(shape.column, 1.0))
    return total


def combine(options: list[Floats], budget: int) -> tuple[Matrix, bool]:
    """Every combination of the options, or a fixed sample (and True) where there are more than the budget."""
    size = float(np.prod([float(len(o)) for o in options]))
    if size <= budget:
        return every_combination(options), False
    rng = generator(0)  # the same sample for the same region
    return np.stack([rng.choice(o, _SAMPLE) for o in options], axis=1), True


def _away(member: Bools, ordered: bool, missing: int, levels: int) -> Floats:
    """Group x value: 0 in the set; else steps to the nearest level of it, or 1 for labels."""
    out: Floats = np.where(member, 0.0, 1.0)
    if not ordered:
        return out
    rank = np.arange(member.shape[1], dtype=float)
    known = np.ones(member.shape[1], dtype=bool)
    if missing >= 0:
        known[missing] = False
    for g in range(len(member)):
        inside = np.flatnonzero(member[g] & known)
        if len(inside):
            steps = np.abs(rank[:, None] - rank[inside][None]).min(axis=1) / max(levels - 1, 1)
            out[g, known] = steps[known]
    return out
