"""Leaks that are there on purpose: an attack that does not find its own in a run has shown nothing in that run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.attack.shared.persons import owners
from countervail.core.arrays import Bools, Floats, Ints, Matrix, number_columns, number_rows
from countervail.core.distance import HEOM, Neighbours
from countervail.core.encode import Encoder, encode_queries
from countervail.core.errors import RefusedError
from countervail.core.explanation import Explanations
from countervail.core.guarantee import NoGuarantee
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import generator
from countervail.core.table import Table

_PLANTED = NoGuarantee("a leak that is planted to test an attack")
_ALONE = 20  # people who are alone with their record, for a leak to be one
_STRIPES = 8  # decisions that alternate along a column


def explained(factuals: pd.DataFrame, cells: pd.DataFrame, table: Table, before: Any = None) -> Explanations:
    """Answers that were found for everybody who asked."""
    n = len(factuals)
    was = pd.Series(["no"] * n if before is None else before, dtype=object)
    now = was.map({"no": "yes", "yes": "no"}).astype(object)
    found, schema = pd.Series(["found"] * n, dtype=object), table.schema.without_identifiers()
    return Explanations(
        factuals.reset_index(drop=True), cells.reset_index(drop=True), found, was, now, schema, _PLANTED, audit=table
    )


def open_explanations(table: Table) -> Explanations:
    """Everybody's record, handed out as if it were an explanation."""
    return explained(table.features, table.features, table)


def those_alone(owner: str, table: Table, names: Sequence[str]) -> Table:
    """The people whom these columns tell from everybody else; refused where they are too few for a leak."""
    kind = number_rows([np.zeros(len(table), dtype=np.int64), *number_columns(table.frame, list(names))])
    whose = owners(table)
    pairs = kind if whose is None else np.unique(np.column_stack([kind, whose]), axis=0)[:, 0]
    alone = np.bincount(pairs)[kind] == 1
    if alone.sum() < _ALONE:
        raise RefusedError(
            f"{owner} can show nothing here: even where everything is open, {', '.join(names)} tell only "
            f"{int(alone.sum())} of {len(table):,} rows from all others, and it takes {_ALONE}. Declare more of what "
            f"others may know."
        )
    return table.take(np.flatnonzero(alone))


def answers_to_strangers(table: Table, control: Table) -> Explanations:
    """Records of the table, each handed out to a stranger who asked."""
    asked = np.arange(len(table)) % len(control)
    return explained(control.features.iloc[asked], table.features, table)


def open_release(table: Table) -> Release:
    """Everybody's record, handed out as a table."""
    schema = table.schema.without_identifiers()
    rows = np.arange(len(table), dtype=np.int64)
    return Release(Regions((), len(table)), rows, table.frame[schema.names()], schema, _PLANTED, audit=table)


def jittered_explanations(table: Table, share: float = 1e-4, seed: int = 0) -> Explanations:
    """Everybody's record with a little noise on every number: nothing is equal to a row any more."""
    cells, rng = table.features.copy(), generator(seed)
    for name in (n for n in cells.columns if table.schema[n].numeric):
        numbers = cells[name].to_numpy(dtype=float, na_value=np.nan)
        cells[name] = numbers + rng.normal(0, share * max(float(np.nanstd(numbers)), 1e-12), len(cells))
    return explained(table.features, cells, table)


class VerbatimOracle:
    """Answers with the nearest record of the table as it is."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.encoder = Encoder.fit(table)
        self.rows = self.encoder.encode(table.features)
        self.heom = HEOM.fit(self.encoder, self.rows)
        everybody = np.ones(len(self.rows), dtype=bool)
        self._near = Neighbours(self.heom, self.rows, np.zeros(len(self.rows), dtype=np.int64), everybody)

    def explain(self, rows: Any) -> Explanations:
        """The nearest record of each row."""
        frame, behind, _ = self._behind(rows)
        return explained(frame, self._shown(behind), self.table)

    def _behind(self, rows: Any) -> tuple[pd.DataFrame, Ints, Matrix]:
        """The rows as a frame, who of the table answers each, and the rows in codes."""
        _, frame, x = encode_queries(rows, self.table.schema, self.encoder, type(self).__name__, holes=True)
        near, _ = self._near.nearest(x, np.ones((len(x), 1), dtype=bool))
        return frame, near[:, 0], x

    def _shown(self, people: Ints) -> pd.DataFrame:
        return self.table.features.iloc[people].reset_index(drop=True)


class NoisyOracle(VerbatimOracle):
    """Answers with the nearest record under noise that is drawn anew for each answer."""

    draws_noise = True

    def __init__(self, table: Table, noise: float = 0.3, seed: int = 0) -> None:
        super().__init__(table)
        self.noise = noise
        self._rng = generator(seed)

    def explain(self, rows: Any) -> Explanations:
        """The nearest record of each row: Laplace noise on numbers, and now and then another label."""
        frame, behind, _ = self._behind(rows)
        cells = self._shown(behind)
        for j, coding in enumerate(self.encoder.codings):
            if coding.numeric:
                width = self.noise * max(float(np.nanstd(self.rows[:, j])), 1e-12)
                cells[coding.name] = self.rows[behind, j] + self._rng.laplace(0, width, len(cells))
            else:
                others = self._shown(self._rng.integers(len(self.rows), size=len(cells)))[coding.name]
                cells[coding.name] = cells[coding.name].where(self._rng.random(len(cells)) > self.noise / 3, others)
        return explained(frame, cells, self.table)

    def behind(self, rows: Any) -> Explanations:
        """The answers before noise."""
        return super().explain(rows)


class CentredOracle(VerbatimOracle):
    """Answers with a record whose quasi-identifiers are widened to its two nearest neighbours, and to nobody else's."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.quasi = table.schema.names("quasi")
        places = [self.encoder.names.index(n) for n in self.quasi]
        self._weights = np.isin(np.arange(len(self.encoder.names)), places).astype(float)
        everybody = np.ones(len(self.rows), dtype=bool)
        classes = np.zeros(len(self.rows), dtype=np.int64)
        self._all = Neighbours(self.heom, self.rows, classes, everybody, distinct=False)

    k = 3

    def explain(self, rows: Any) -> Explanations:
        """The nearest record, with regions in the place of its quasi-identifiers."""
        frame, behind, _ = self._behind(rows)
        regions = self._regions(self.rows[behind])
        return explained(frame, regions.shown_in(self._shown(behind)), self.table)

    def region_of(self, rows: Any, salt: int = 0) -> list[frozenset[str]]:
        """The regions around rows that stand in the record's place."""
        return [frozenset([text]) for text in self._regions(self._coded(rows)).text()]

    def accepts(self, rows: Any) -> Bools:
        """Everybody: there is no model."""
        return np.ones(len(rows), dtype=bool)

    def distance(self, queries: Any, rows: Any, regions: Any) -> Floats:
        """From every query to every row."""
        x, y = self._coded(queries), self._coded(rows)
        return np.stack([self.heom.between(np.broadcast_to(q, y.shape), y) for q in x])

    def _coded(self, rows: Any) -> Matrix:
        return encode_queries(rows, self.table.schema, self.encoder, type(self).__name__, holes=True)[2]

    def _regions(self, x: Matrix) -> Regions:
        near, _ = self._all.nearest(x, np.ones((len(x), 1), dtype=bool), self.k, weights=self._weights)
        frame, cells = self.table.frame, []
        for people in near:
            held = {n: frame[n].iloc[people[people >= 0]].tolist() for n in self.quasi}
            cells.append({n: _hull(v, self.table.schema[n].numeric) for n, v in held.items()})
        return Regions.from_cells(cells, self.table.schema)


class MemorisingOracle(VerbatimOracle):
    """Sends people of the table far away, and strangers a step aside, as where a model has learnt people by heart."""

    def explain(self, rows: Any) -> Explanations:
        """A record that is far from members and near to strangers."""
        frame, near, x = self._behind(rows)
        member = self.heom.between(x, self.rows[near]) < 1e-9
        far = np.array([self.heom.between(np.broadcast_to(q, self.rows.shape), self.rows).argmax() for q in x])
        return explained(frame, self._shown(np.where(member, far, near)), self.table)


class RefusingOracle(VerbatimOracle):
    """Refuses whoever is in the table, and answers strangers with the nearest record."""

    def explain(self, rows: Any) -> Explanations:
        """The nearest record of each row that is nobody's."""
        frame, near, x = self._behind(rows)
        member = self.heom.between(x, self.rows[near]) < 1e-9
        made, cells = explained(frame, self._shown(near), self.table), self._shown(near).astype(object)
        cells.iloc[np.flatnonzero(member)] = None
        status = made.status.where(~member, "no_counterfactual")
        return replace(made, counterfactuals=cells, status=status)


class CompletingOracle(VerbatimOracle):
    """Answers with the record that is equal to the question in most columns."""

    def explain(self, rows: Any) -> Explanations:
        """The record that differs in the fewest columns, as it is."""
        frame, _, x = self._behind(rows)
        held, asked = (np.nan_to_num(m, nan=-np.inf) for m in (self.rows, x))
        equal = np.zeros((len(asked), len(held)), dtype=np.int64)
        for j in range(held.shape[1]):
            equal += asked[:, j, None] == held[None, :, j]
        return explained(frame, self._shown(equal.argmax(axis=1)), self.table)


class StripedOracle(VerbatimOracle):
    """Decides by stripes along one number, and answers with the nearest edge: labels alone hardly show the stripes."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        numeric = [j for j, c in enumerate(self.encoder.codings) if c.numeric]
        self.place = max(numeric, key=lambda j: len(np.unique(self.rows[:, j])), default=-1)
        column = self.rows[:, self.place]
        self.edges = np.unique(np.nanquantile(column, np.arange(1, _STRIPES) / _STRIPES))

    def explain(self, rows: Any) -> Explanations:
        """The row itself, a hair beyond the nearest edge."""
        frame, _, x = self._behind(rows)
        value = x[:, self.place]
        nearest = self.edges[np.abs(value[:, None] - self.edges[None, :]).argmin(axis=1)]
        step = 1e-6 * max(float(np.ptp(self.edges)), 1.0)
        name = self.encoder.names[self.place]
        cells = frame.assign(**{name: np.where(value >= nearest, nearest - step, nearest)})
        odd = np.searchsorted(self.edges, value, side="right") % 2
        return explained(frame, cells, self.table, np.where(odd == 1, "yes", "no").tolist())


def _hull(values: list[Any], numeric: bool) -> Any:
    """One cell that holds all of these values."""
    held = [v for v in values if not pd.isna(v)]
    if numeric and held:
        cell: Any = pd.Interval(min(held), max(held), closed="both") if min(held) < max(held) else held[0]
        return cell if len(held) == len(values) else frozenset([cell, None])
    kinds = frozenset(None if pd.isna(v) else v for v in values)
    return next(iter(kinds)) if len(kinds) == 1 else kinds
